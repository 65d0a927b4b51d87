"""Import of MTEB: a JSON file per task, in the layout of its first or its later versions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from karat.errors import DataError, KaratError
from karat.results.importing import ImportLog, ModelResults, Sample, direction, read_json

LOOKS = 'JSON with the keys "task_name" and "scores", or "mteb_dataset_name" and "test"'
META = "model_meta.json"
#: Karat's names of metrics; MTEB's f1 of a classification is the macro average
OURS = {
    "accuracy": "acc",
    "f1": "f1_macro",
    "ap": "pr_auc",
    "cosine_spearman": "spearman",
    "cosine_pearson": "pearson",
    "cosine_ap": "pr_auc",
    "cosine_f1": "f1_best",
    "cosine_accuracy": "acc_best",
}
MAIN = "main_score"
#: the metric of the main score, if several have its value or there is no main score
ORDER = ("ndcg@10", "map", "v_measure", "spearman", "pr_auc", "acc", "f1_macro", "max_ap")
#: names in bitext mining, recognized by precision and recall
MATCHED = {"f1": "f1_weighted", "precision": "", "recall": ""}
#: measures in which earlier versions nest scores; only those of cosine are imported
MEASURES = {name: name for name in ("cosine", "dot", "euclidean", "manhattan", "max", "similarity")}
MEASURES |= {"cos_sim": "cosine"}
OTHERS = ("dot_", "euclidean_", "manhattan_", "similarity_", "nAUC_")
REVISION = re.compile("[0-9a-f]{7,40}|no_revision_available|external|main")
NOT_SCORES = {"languages", "hf_subset", "evaluation_time", "scores_per_experiment", "v_measures"}


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    if sample.shape != "json":
        return False
    return sample.has("task_name", "scores") or sample.has("mteb_dataset_name")


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per model: all its files together."""
    models: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        models.setdefault(_model(sample.path, log), []).append(sample)
    for (model, revision), part in models.items():
        found = ModelResults("mteb", model, "mteb", [])
        found.about = {"version": revision}
        files, skipped = [], set()
        for sample in part:
            try:
                skipped |= _add(found, sample, log)
                files.append(sample.path)
            except KaratError as error:
                log.problems.append(str(error))
        found.files = files
        if files:
            log.skipped(files[0].parent if files[1:] else files[0], skipped)
            yield found


def _model(path: Path, log: ImportLog) -> tuple[str, str]:
    """Return a model's name and revision: as given, from the metadata file, or from folders."""
    metadata = path.with_name(META)
    meta = read_json(metadata) if metadata.is_file() else {}
    meta = meta if isinstance(meta, dict) else {}
    folder = path.resolve().parent
    revised = REVISION.fullmatch(folder.name)
    name = str(meta.get("name") or (folder.parent if revised else folder).name)
    revision = str(meta.get("revision") or (folder.name if revised else ""))
    return log.model or name.replace("__", "/") or "mteb", revision


def _add(found: ModelResults, sample: Sample, log: ImportLog) -> set[str]:
    """Add the scores of a file; return the names of metrics that Karat does not have."""
    content: Mapping[str, Any] = sample.content
    name = str(content.get("task_name") or content.get("mteb_dataset_name"))
    unknown: set[str] = set()
    count = 0
    for split, subset, scores in _entries(sample.path, content):
        # other subsets and splits than the default are separate tasks
        parts = [subset] * (subset != "default") + [split] * (split != "test")
        task = f"{name} ({', '.join(parts)})" if parts else name
        if task in found.tasks:
            log.note(f"{sample.path.name}: duplicate task {task}; the last one is used.")
            found.jobs.pop((task, 0), None)
        renamed, skipped = _renamed(scores)
        unknown |= skipped
        main: Any = scores.get(MAIN)
        first = _first(renamed, main)
        found.tasks[task] = {"dataset": name, "metric": first, "kind": ""}
        job = found.job(task)
        if first == MAIN:
            found.higher[MAIN] = True  # MTEB ranks by it, highest first
            renamed = {MAIN: main if _is_number(main) else None, **renamed}
        for metric, value in renamed.items():
            found.put(job, metric, value)
        seconds: Any = scores.get("evaluation_time", content.get("evaluation_time"))
        if _is_number(seconds):
            job.facts["seconds"] = float(seconds)
        count += 1
    if not count:
        raise DataError(f"{sample.path} has no scores of {name}.")
    return unknown


def _entries(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield split, subset and scores of either layout."""
    if isinstance(content.get("scores"), Mapping):
        for split, entries in content["scores"].items():
            if not isinstance(entries, list):
                raise DataError(f"{path}: the scores of {split} must be a list.")
            for entry in entries:
                if isinstance(entry, Mapping):
                    yield str(split), str(entry.get("hf_subset", "default")), _flat(entry)
        return
    for split, scores in content.items():
        if not isinstance(scores, Mapping):
            continue
        inner = {k: v for k, v in scores.items() if isinstance(v, Mapping) and k not in MEASURES}
        inner = {k: v for k, v in inner.items() if k not in NOT_SCORES}
        for subset, part in inner.items():
            yield str(split), str(subset), _flat(part)
        plain = _flat({k: v for k, v in scores.items() if k not in inner})
        if set(plain) - NOT_SCORES:
            yield str(split), "default", plain


def _flat(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return scores with those of measures under names such as ``cosine_spearman``."""
    flat: dict[str, Any] = {}
    for name, value in scores.items():
        if isinstance(value, Mapping) and name in MEASURES:
            flat |= {f"{MEASURES[name]}_{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    return flat


def _renamed(scores: Mapping[str, Any]) -> tuple[dict[str, float | None], set[str]]:
    """Return scores under Karat's names, and the names of metrics that Karat does not have."""
    renamed: dict[str, float | None] = {}
    skipped = set()
    names = {**OURS, **MATCHED} if scores.keys() >= MATCHED.keys() else OURS
    # scores of cosine take precedence over scores without a measure
    for name in sorted(scores, key=lambda each: not each.startswith("cosine_")):
        value = scores[name]
        if name in NOT_SCORES or name == MAIN or not isinstance(value, int | float):
            continue
        ours = names.get(name, re.sub("_at_([0-9]+)$", r"@\1", name))
        if name.startswith(OTHERS) or direction(ours) is None:
            skipped.add(name)
        else:
            renamed.setdefault(ours, float(value) if _is_number(value) else None)
    return renamed, {name for name in skipped if not name.endswith(("_stderr", "_std"))}


def _first(scores: Mapping[str, float | None], main: Any) -> str:
    """Return the metric that equals the main score, or the first one without a main score."""
    order = [*(name for name in ORDER if name in scores), *scores]
    if not _is_number(main):
        return next(iter(order), MAIN)
    known = ((name, scores[name]) for name in order)
    equal = (n for n, v in known if v is not None and math.isclose(v, main, rel_tol=1e-9))
    return next(equal, MAIN)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
