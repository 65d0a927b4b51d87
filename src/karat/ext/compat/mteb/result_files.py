"""Result files of MTEB, a JSON file per task: import, export, and a folder of many models.

Both the layout of its first versions and the current one are read.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import pandas as pd

from karat.core.files import hashed_name, safe_name
from karat.core.registry import result_folder
from karat.errors import DataError, KaratError
from karat.ext.compat.mteb.task_data import part_name
from karat.metrics.metric import MTEB
from karat.results.importing import (
    ImportLog,
    ModelResults,
    Sample,
    direction,
    metric_kind,
    no_garbage_collection,
    read_json,
    runs_in_memory,
)
from karat.results.load import exported_runs
from karat.results.run import Run

if TYPE_CHECKING:
    from karat.results.run import Runs

LOOKS = 'JSON with the keys "task_name" and "scores", or "mteb_dataset_name" and "test"'
META = "model_meta.json"
#: Karat's names of metrics; MTEB's f1 of a classification is the macro average
OURS = {**MTEB, "f1": "f1_macro"}
MAIN = "main_score"
#: the metric of the main score, if several have its value or there is no main score
ORDER = ("ndcg@10", "map", "v_measure", "spearman", "max_ap", "pr_auc", "acc", "f1_macro")
#: names in bitext mining, recognized by the task or by precision and recall
BITEXT = "BitextMining"
MATCHED = {"f1": "f1_weighted", "precision": "", "recall": ""}
#: measures in which earlier versions nest scores; only those of cosine are imported
MEASURES = {name: name for name in ("cosine", "dot", "euclidean", "manhattan", "max", "similarity")}
MEASURES |= {"cos_sim": "cosine"}
OTHERS = ("dot_", "euclidean_", "manhattan_", "similarity_", "nAUC_")
REVISION = re.compile("[0-9a-f]{7,40}|no_revision_available|external|main")
NOT_SCORES = {"languages", "hf_subset", "evaluation_time", "scores_per_experiment", "v_measures"}
#: MTEB's names of Karat's metrics, by the kind of a task; of other kinds, those of pairs
_PAIRS = {ours: name for name, ours in OURS.items() if name.startswith("cosine_")}
THEIRS = {
    "classification": {"acc": "accuracy", "f1_macro": "f1"},
    "bitext-mining": {
        **{"acc": "accuracy", "f1_weighted": "f1"},
        **{"precision_weighted": "precision", "recall_weighted": "recall"},
    },
}
#: fields of a model that Karat does not know
UNKNOWN_FIELDS = (
    "release_date",
    "languages",
    "n_parameters",
    "memory_usage_mb",
    "max_tokens",
    "embed_dim",
    "license",
    "open_weights",
    "public_training_code",
    "public_training_data",
    "reference",
    "use_instructions",
    "training_datasets",
    "adapted_from",
    "superseded_by",
    "loader",
)
NO_REVISION = "no_revision_available"


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
        results = ModelResults("mteb", model, "mteb", [])
        results.about = {"version": revision}
        files, skipped = [], set()
        for sample in part:
            try:
                skipped |= _add(results, sample, log)
                files.append(sample.path)
            except KaratError as error:
                log.problems.append(str(error))
        results.files = files
        if files:
            log.skipped(files[0].parent if files[1:] else files[0], skipped)
            yield results


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


def _add(results: ModelResults, sample: Sample, log: ImportLog) -> set[str]:
    """Add the scores of a file; return the names of metrics that Karat does not have."""
    content: Mapping[str, Any] = sample.content
    name = str(content.get("task_name") or content.get("mteb_dataset_name"))
    unknown: set[str] = set()
    count, differing = 0, 0
    for split, subset, scores in _entries(sample.path, content):
        # other subsets and splits than the default are separate tasks
        task = part_name(name, subset, split)
        if task in results.tasks:
            log.note(f"{sample.path.name}: duplicate task {task}; the last one is used.")
            results.jobs.pop((task, 0), None)
        first, renamed, skipped = _with_main(name, scores)
        unknown |= skipped
        differing += _differs(renamed[first], scores.get(MAIN))
        results.tasks[task] = {"dataset": name, "metric": first, "kind": ""}
        job = results.job(task)
        if first == MAIN:
            results.higher[MAIN] = True  # MTEB ranks by it, highest first
        for metric, value in renamed.items():
            results.put(job, metric, value)
        seconds: Any = scores.get("evaluation_time", content.get("evaluation_time"))
        if _is_number(seconds):
            job.facts["seconds"] = float(seconds)
        count += 1
    if not count:
        raise DataError(f"{sample.path} has no scores of {name}.")
    if differing:
        log.note(
            f"{sample.path.name}: {differing} main scores are not the metric of {name}; it is used."
        )
    return unknown


def _entries(
    path: str | Path, content: Mapping[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield split, subset and scores of either layout."""
    if isinstance(content.get("scores"), Mapping):
        for split, entries in content["scores"].items():
            if not isinstance(entries, list):
                raise DataError(f"{path}: the scores of {split} must be a list.")
            for entry in entries:
                if isinstance(entry, dict):
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
        if isinstance(value, dict) and name in MEASURES:
            flat |= {
                f"{MEASURES[name]}_{inner}": inner_value for inner, inner_value in value.items()
            }
        else:
            flat[name] = value
    return flat


def _with_main(
    task: str, scores: Mapping[str, Any]
) -> tuple[str, dict[str, float | None], set[str]]:
    """Return the main metric of a task, its scores, and the metrics that Karat does not have."""
    renamed, skipped = _renamed(scores, _is_bitext(task, scores))
    main: Any = scores.get(MAIN)
    first = _first(task, renamed, main)
    if renamed.get(first) is None:
        renamed[first] = main if _is_number(main) else None
    return first, renamed, skipped


def _differs(value: float | None, main: object) -> bool:
    if value is None or not _is_number(main):
        return False
    return not math.isclose(value, main, rel_tol=1e-6, abs_tol=1e-9)


def _is_bitext(task: str, scores: Mapping[str, Any]) -> bool:
    """Return whether scores are those of bitext mining: by the task, or by their names."""
    if task in declared_metrics():
        return declared_metrics()[task][1] == BITEXT
    return scores.keys() >= MATCHED.keys() and "f1_weighted" not in scores


def _renamed(scores: Mapping[str, Any], matched: bool) -> tuple[dict[str, float | None], set[str]]:
    """Return scores under Karat's names, and the names of metrics that Karat does not have."""
    renamed: dict[str, float | None] = {}
    skipped = set()
    # scores of cosine take precedence over scores without a measure
    for name in sorted(scores, key=lambda score_name: not score_name.startswith("cosine_")):
        value = scores[name]
        if name in NOT_SCORES or name == MAIN or not isinstance(value, int | float):
            continue
        ours = _our_name(name, matched)
        if not ours:
            skipped.add(name)
        else:
            renamed.setdefault(ours, float(value) if _is_number(value) else None)
    return renamed, {name for name in skipped if not name.endswith(("_stderr", "_std"))}


@lru_cache(maxsize=4096)
def _our_name(name: str, matched: bool) -> str:
    """Return Karat's name of a metric, or an empty string; ``matched`` are those of bitext."""
    names = {**OURS, **MATCHED} if matched else OURS
    ours = names.get(name, re.sub("_at_([0-9]+)$", r"@\1", name))
    return "" if name.startswith(OTHERS) or direction(ours) is None else ours


@lru_cache(maxsize=1)
def declared_metrics() -> dict[str, tuple[str, str]]:
    """Return the main metric that mteb declares for each of its tasks, and its type if bitext."""
    table = json.loads(Path(__file__).with_name("main_metrics.json").read_text(encoding="utf-8"))
    parts = {key: key.partition(" ") for key in table}
    return {
        name: (parts[key][0], parts[key][2])
        for key, names in table.items()
        for name in names.split()
    }


def _first(task: str, scores: Mapping[str, float | None], main: object) -> str:
    """Return the declared main metric of a task, so that all models have the same one.

    That of a task that mteb does not have is the one that equals the main score.
    """
    declared = declared_metrics().get(task)
    if declared is not None:
        return _our_name(declared[0], declared[1] == BITEXT) or MAIN
    order = [*(name for name in ORDER if name in scores), *scores]
    if not _is_number(main):
        return next(iter(order), MAIN)
    candidates = ((name, scores[name]) for name in order)
    equal = (n for n, v in candidates if v is not None and math.isclose(v, main, rel_tol=1e-9))
    return next(equal, MAIN)


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


# -- a folder of many models ------------------------------------------------------------------


@result_folder("mteb")
def open_results(folder: str | Path) -> list[Run] | None:
    """Return the runs of a folder of MTEB's result files, with the main score of each task.

    The folder is a checkout of its results repository, ``results/MODEL/REVISION/TASK.json``, or a
    part of it. None if there are no such files.
    """
    files = next((below for position in _places(folder) if (below := _files_below(*position))), {})
    log, several, higher = ImportLog(), {}, {MAIN: True}
    with no_garbage_collection():
        for position, paths in files.items():
            results = ModelResults("mteb", "", "mteb", [], higher=higher)
            for path in paths:
                _add_main_scores(results, path, log)
            if results.jobs:
                results.model, results.about["version"] = _model(Path(paths[0]), log)
                several[Path(position)] = results
        runs = runs_in_memory(several)
    if runs and log.problems:
        more = f" and {len(log.problems) - 1} more" * (len(log.problems) > 1)
        warnings.warn(f"skipped {log.problems[0]}{more}", stacklevel=2)
    return runs or None


def is_results_folder(folder: str | Path) -> bool:
    """Return whether a folder is one that ``open_results`` reads, by its first file."""
    path = next((path for position in _places(folder) if (path := _first_below(*position))), "")
    results, log = ModelResults("mteb", "", "mteb", []), ImportLog()
    if path:
        _add_main_scores(results, path, log)
    return bool(results.jobs)


def _places(folder: str | Path) -> list[tuple[str, int]]:
    """Return folders, and how deep their files are: those of a checkout, or of a part of it."""
    inner = (os.path.join(folder, "results"), 2)
    return [inner, *((str(folder), depth) for depth in (2, 1, 0))]


def _first_below(folder: str, depth: int) -> str:
    """Return the first of ``_files_below``, or an empty string."""
    if not depth:
        return next((path for paths in _files_below(folder, 0).values() for path in paths), "")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    inner = (_first_below(os.path.join(folder, name), depth - 1) for name in names)
    return next((path for path in inner if path), "")


def _files_below(folder: str, depth: int) -> dict[str, list[str]]:
    """Return the JSON files in folders at a depth; those of MTEB's metadata are left out."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:  # not a folder
        return {}
    if not depth:
        files = [name for name in names if name.endswith(".json") and name != META]
        return {folder: [os.path.join(folder, name) for name in files]} if files else {}
    below: dict[str, list[str]] = {}
    for name in names:
        below |= _files_below(os.path.join(folder, name), depth - 1)
    return below


def _add_main_scores(results: ModelResults, path: str, log: ImportLog) -> None:
    """Add the main scores of a file; a file of another kind is a problem."""
    from pydantic_core import from_json

    try:
        with open(path, "rb") as file:
            content = from_json(file.read())
    except (OSError, ValueError) as error:
        log.problems.append(f"{path}: {error}")
        return
    names = content.keys() if isinstance(content, dict) else set()
    if not (names >= {"task_name", "scores"} or "mteb_dataset_name" in names):
        log.problems.append(f"{path}: not a result of MTEB")
        return
    name = str(content.get("task_name") or content["mteb_dataset_name"])
    try:
        for split, subset, scores in _entries(path, content):
            _add_main_score(results, part_name(name, subset, split), name, scores)
    except DataError as error:
        log.problems.append(str(error))


def _add_main_score(
    results: ModelResults, task: str, dataset: str, scores: Mapping[str, Any]
) -> None:
    main, matched = scores.get(MAIN), _is_bitext(dataset, scores)
    declared = declared_metrics().get(dataset)
    if declared is not None and _is_number(scores.get(declared[0])):
        scores = {declared[0]: scores[declared[0]]}
    elif _is_number(main):  # only metrics of this value can be the first one
        scores = {name: value for name, value in scores.items() if value == main}
    renamed, _ = _renamed(scores, matched)
    first = _first(dataset, renamed, main)
    results.tasks[task] = {"dataset": dataset, "metric": first, "kind": _kind(first)}
    if first not in results.higher:
        results.higher[first] = direction(first) is not False
    job = results.job(task)
    job.scores.clear()
    value: Any = renamed.get(first, main)
    results.put(job, first, float(value) if _is_number(value) else None)


@lru_cache(maxsize=256)
def _kind(metric: str) -> str:
    return metric_kind(metric) or "other"


# -- export -----------------------------------------------------------------------------------

_PAIRS |= {"f1_best_precision": "cosine_precision", "f1_best_recall": "cosine_recall"}


def mteb_files(runs: Runs) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of MTEB's result files: those of each task, and of each model."""
    models: dict[str, str] = {}
    for run, model, _ in exported_runs(runs):
        revision = str(run.about.get("version") or "") or NO_REVISION
        names = [re.sub("[^A-Za-z0-9._@-]+", "_", n.replace("/", "__")) for n in (model, revision)]
        # a name such as ".." or "a b" must neither leave the folder nor equal another one
        parts = [
            n if n == o.replace("/", "__") and n.strip(".") else safe_name(o)
            for n, o in zip(names, (model, revision), strict=True)
        ]
        if models.setdefault(parts[0].lower(), model) != model:  # "a/B" and "a/b", or "a__b"
            parts[0] = hashed_name(model)
        folder, results = "/".join(["results", *parts]), dict(_task_results(run))
        for task, content in results.items():
            plain = re.fullmatch("[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*", task)
            yield f"{folder}/{task if plain else safe_name(task)}.json", _text(content)
        if results:
            metadata = {"name": model, "revision": revision, **dict.fromkeys(UNKNOWN_FIELDS)}
            metadata |= {"framework": [], "similarity_fn_name": "cosine"}
            yield f"{folder}/{META}", _text(metadata)


def _text(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _task_results(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the file of each task of MTEB; its subsets and splits are in one file."""
    scores = run.scores()
    clean = scores["corruption"].isin(["", None]) & (scores["epoch"] == -1)
    by_task = dict(list(scores[clean].groupby("task", sort=False)))
    seconds: dict[str, float] = {}
    for record in run.records():
        seconds[record["task"]] = seconds.get(record["task"], 0.0) + (record.get("seconds") or 0.0)
    files: dict[str, dict[str, Any]] = {}
    for task in run.about["tasks"]:
        table = by_task.get(task["name"])
        entry = {} if table is None else _entry(task, table)
        if not entry:
            continue
        facts = task.get("about") or {}
        name, subset, split = _place(task["name"], facts)
        content = files.setdefault(
            name,
            {
                "dataset_revision": facts.get("revision") or "",
                "task_name": name,
                "mteb_version": facts.get("mteb_version"),
                "scores": {},
                "evaluation_time": 0.0,
                "kg_co2_emissions": None,
            },
        )
        languages = [code for code in str(facts.get("language", "")).split(", ") if code]
        entry |= {"hf_subset": subset, "languages": languages}
        content["scores"].setdefault(split, []).append(entry)
        content["evaluation_time"] += seconds[task["name"]]
    yield from files.items()


def _place(task: str, facts: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return task, subset and split of MTEB: as recorded, or from a name that an import made."""
    if facts.get("mteb_task"):
        return facts["mteb_task"], facts["mteb_subset"], facts["mteb_split"]
    parts = re.fullmatch(r"(\S+) \(([^(),]+)(?:, ([^(),]+))?\)", task)
    if parts is None:
        return task, "default", "test"
    name, one, other = parts.groups()
    if other is None and one in ("validation", "dev", "train"):
        return name, "default", one
    return name, one, other or "test"


def _entry(task: Mapping[str, Any], table: pd.DataFrame) -> dict[str, Any]:
    """Return the scores of a subset and split; empty without a score of the first metric."""
    names = THEIRS.get(task["kind"], _PAIRS)
    means = table.groupby("metric", sort=False)["value"].mean().dropna()
    primary = task["metrics"][0]
    if primary not in means:
        return {}

    def theirs(metric: str) -> str:
        return names.get(metric) or re.sub("@([0-9]+)$", r"_at_\1", metric)

    scores: dict[str, Any] = {theirs(metric): float(value) for metric, value in means.items()}
    folds = table.groupby("fold", sort=True)
    if task["kind"] == "classification" and len(folds) > 1:
        scores["scores_per_experiment"] = [
            {theirs(m): float(v) for m, v in zip(of_fold["metric"], of_fold["value"], strict=True)}
            for _, of_fold in folds
        ]
    if primary == "v_measure":
        scores["v_measures"] = table.loc[table["metric"] == primary, "value"].tolist()
    return {"main_score": float(means[primary]), **scores}
