"""MTEB: a JSON file per task, in the layout of its first and of its later versions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from karat.errors import DataError, KaratError
from karat.results.imports.files import Sample, read_json
from karat.results.imports.found import Found, Told, direction

LOOKS = 'JSON with the keys "task_name" and "scores", or "mteb_dataset_name" and "test"'
META = "model_meta.json"
#: our names of metrics; what MTEB calls f1 of a classification is the mean over classes
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
#: what a main score is, where several metrics have its value or none is named so
ORDER = ("ndcg@10", "map", "v_measure", "spearman", "pr_auc", "acc", "f1_macro", "max_ap")
#: what it calls so where sentences are matched, with precision and recall beside it
MATCHED = {"f1": "f1_weighted", "precision": "", "recall": ""}
#: measures that earlier versions nest scores in; what is told of others than cosine is not kept
MEASURES = {name: name for name in ("cosine", "dot", "euclidean", "manhattan", "max", "similarity")}
MEASURES |= {"cos_sim": "cosine"}
OTHERS = ("dot_", "euclidean_", "manhattan_", "similarity_", "nAUC_")
REVISION = re.compile("[0-9a-f]{7,40}|no_revision_available|external|main")
NOT_SCORES = {"languages", "hf_subset", "evaluation_time", "scores_per_experiment", "v_measures"}


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these."""
    if seen.shape != "json":
        return False
    return seen.has("task_name", "scores") or seen.has("mteb_dataset_name")


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per model: all its files together."""
    models: dict[tuple[str, str], list[Sample]] = {}
    for seen in samples:
        models.setdefault(_model(seen.path, told), []).append(seen)
    for (model, revision), part in models.items():
        found = Found("mteb", model, "mteb", [])
        found.about = {"version": revision}
        files, strange = [], set()
        for seen in part:
            try:
                strange |= _add(found, seen, told)
                files.append(seen.path)
            except KaratError as error:
                told.problems.append(str(error))
        found.files = files
        if files:
            told.skipped(files[0].parent if files[1:] else files[0], strange)
            yield found


def _model(path: Path, told: Told) -> tuple[str, str]:
    """Return a model's name and revision: told, from the file beside, or from the folders."""
    beside = path.with_name(META)
    meta = read_json(beside) if beside.is_file() else {}
    meta = meta if isinstance(meta, dict) else {}
    folder = path.resolve().parent
    revised = REVISION.fullmatch(folder.name)
    name = str(meta.get("name") or (folder.parent if revised else folder).name)
    revision = str(meta.get("revision") or (folder.name if revised else ""))
    return told.model or name.replace("__", "/") or "mteb", revision


def _add(found: Found, seen: Sample, told: Told) -> set[str]:
    """Add the scores of a file; return the names of what we have no metric for."""
    content: Mapping[str, Any] = seen.content
    name = str(content.get("task_name") or content.get("mteb_dataset_name"))
    unknown: set[str] = set()
    count = 0
    for split, subset, scores in _entries(seen.path, content):
        task = _task(name, split, subset)
        if task in found.tasks:
            told.note(f"{seen.path.name}: {task} was there before; this one counts.")
            found.jobs.pop((task, 0), None)
        kept, strange = _kept(scores)
        unknown |= strange
        main: Any = scores.get(MAIN)
        first = _first(kept, main)
        found.tasks[task] = {"dataset": name, "metric": first, "kind": ""}
        job = found.job(task)
        if first == MAIN:
            found.higher[MAIN] = True  # the benchmark ranks by it, the highest first
            kept = {MAIN: main if _is_number(main) else None, **kept}
        for metric, value in kept.items():
            found.put(job, metric, value)
        seconds: Any = scores.get("evaluation_time", content.get("evaluation_time"))
        if _is_number(seconds):
            job.facts["seconds"] = float(seconds)
        count += 1
    if not count:
        raise DataError(f"{seen.path} holds no scores of {name}.")
    return unknown


def _entries(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield split, subset and scores of either layout."""
    if isinstance(content.get("scores"), Mapping):
        for split, entries in content["scores"].items():
            if not isinstance(entries, list):
                raise DataError(f"{path}: the scores of {split} are no list.")
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


def _kept(scores: Mapping[str, Any]) -> tuple[dict[str, float | None], set[str]]:
    """Return scores under our names, and the names that we have no metric for."""
    kept: dict[str, float | None] = {}
    strange = set()
    names = {**OURS, **MATCHED} if scores.keys() >= MATCHED.keys() else OURS
    # what is told of the cosine comes before what is told without a measure
    for name in sorted(scores, key=lambda each: not each.startswith("cosine_")):
        value = scores[name]
        if name in NOT_SCORES or name == MAIN or not isinstance(value, int | float):
            continue
        ours = names.get(name, re.sub("_at_([0-9]+)$", r"@\1", name))
        if name.startswith(OTHERS) or direction(ours) is None:
            strange.add(name)
        else:
            kept.setdefault(ours, float(value) if _is_number(value) else None)
    return kept, {name for name in strange if not name.endswith(("_stderr", "_std"))}


def _first(kept: Mapping[str, float | None], main: Any) -> str:
    """Return the metric that a main score is, by its value, or by what there is."""
    order = [*(name for name in ORDER if name in kept), *kept]
    if not _is_number(main):
        return next(iter(order), MAIN)
    known = ((name, kept[name]) for name in order)
    equal = (n for n, v in known if v is not None and math.isclose(v, main, rel_tol=1e-9))
    return next(equal, MAIN)


def _task(name: str, split: str, subset: str) -> str:
    """Return what a task is called: subsets and splits other than test are tasks of their own."""
    parts = [] if subset == "default" else [subset]
    parts += [] if split == "test" else [split]
    return f"{name} ({', '.join(parts)})" if parts else name


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
