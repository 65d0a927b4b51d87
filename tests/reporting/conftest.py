"""Run folders written by hand, so that every number in them is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from karat.results.run import Run

STAMP = "20260102T030405"


def task_about(name: str, **changes: Any) -> dict[str, Any]:
    """Return what a run tells of a task measured in accuracy."""
    told = {"name": name, "kind": "classification", "dataset": f"{name}-data", "folds": [0, 1]}
    told |= {"metrics": ["acc", "logloss"], "fingerprint": f"print of {name}"}
    return {**told, "higher_is_better": {"acc": True, "logloss": False}, **changes}


def record_of(model: str, task: str, fold: int | None, scores: Any, **changes: Any) -> dict:
    """Return the record of a job: its scores, or a text that says why it has none."""
    failed = isinstance(scores, str)
    view = {"corruption": "", "severity": 0.0, "draw": 0, "scores": scores}
    return {
        **{"spec": "", "model": model, "task": task, "fold": fold, "repeat": 0, "seed": 1},
        **{"metric": "acc", "status": "failed" if failed else "ok", "notes": [], "history": []},
        **{"info": scores if failed else "", "views": [] if failed else [view]},
        **{"utc": f"2026-01-02T03:04:0{fold or 0}", **changes},
    }


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Write a run: by task the scores of its folds, a number being an accuracy, a text a failure.

    ``files`` are those of a job, by task and fold; ``tasks`` changes what is told of tasks.
    """

    def make(
        model: str,
        scores: Mapping[str, list[Any]],
        *,
        files: Mapping[tuple[str, int], Mapping[str, str]] | None = None,
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
        **about: Any,
    ) -> Run:
        names = [*scores, *(name for name in tasks or {} if name not in scores)]
        facts = {"suite": "s", "constraint": "c", "mode": "local", "stamp": STAMP, "seed": 42}
        facts |= {"model": model, "karat": "0.1.0", "version": "1.0", "params": {}}
        facts["tasks"] = [task_about(name, **(tasks or {}).get(name, {})) for name in names]
        run = Run.create(tmp_path, {**facts, **about})
        for task, folds in scores.items():
            for fold, score in enumerate(folds):
                given = {"acc": score} if isinstance(score, float) else score
                run.write(record_of(model, task, fold, given), (files or {}).get((task, fold), {}))
        run.finish()
        return run

    return make
