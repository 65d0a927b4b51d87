"""A run of one task, written by hand."""

import itertools

import pytest

from karat.results.run import Run

STAMPS = itertools.count(1)


@pytest.fixture
def made(tmp_path):
    """Make a run of one task: a score per fold, None where it failed; ``task`` are its facts."""

    def make(model, scores, *, task=None, metric="acc", higher=True, **about):
        spec = f"{about.get('seed')}-{about.get('params')}"
        record, coverage = about.pop("record", {}), about.pop("coverage", None)
        facts = {"name": "t", "kind": "", "metrics": [metric], "folds": list(range(len(scores)))}
        facts |= {"higher_is_better": {metric: higher}, "dataset": "d", "modality": "table"}
        facts |= {"fingerprint": "abcdef12", "probe": {"use": "trained"}, **(task or {})}
        about_run = {
            "model": model,
            "suite": "s",
            "constraint": "c",
            "mode": "local",
            "version": "1",
        }
        about_run |= {"stamp": f"{next(STAMPS):08d}", "seed": 42, "params": {}, "role": "encoder"}
        run = Run.create(tmp_path, {**about_run, "karat": "0.1.0", "tasks": [facts], **about})
        for fold, value in enumerate(scores):
            view = {"corruption": "", "severity": 0.0, "draw": 0, "status": "ok", "info": ""}
            view |= {"scores": {metric: value}, "coverage": (coverage or {}).get(fold, 1.0)}
            job = {
                "spec": f"{model}-{spec}-{fold}",
                "model": model,
                "task": facts["name"],
                "fold": fold,
            }
            job |= {"repeat": 0, "seed": 42, "metric": metric, "info": "", "notes": []}
            job |= {"status": "ok" if value is not None else "failed", "history": [], "utc": ""}
            job |= {"views": [view] if value is not None else []}
            job |= {"questions": 10, "train_questions": 10, **record}
            run.write(job, {})
        return run

    return make
