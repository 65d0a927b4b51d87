"""The tables of a run, built from its records, and what ``run.json`` and a record must contain.

``results.csv`` has the columns of the AutoML Benchmark, then the metrics in alphabetical order,
then Karat's columns. ``scores.csv`` is the tidy table with one row per score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from karat.core.files import encodable
from karat.errors import FAILURES, DataError

AMLB_COLUMNS = (
    *("id", "task", "framework", "constraint", "fold", "result", "metric", "mode", "version"),
    *("params", "tag", "utc", "duration", "models", "seed", "info"),
)
KARAT_COLUMNS = (
    *("status", "repeat", "corruption", "severity", "draw", "affected", "coverage", "dimensions"),
    *("train_questions", "questions", "embed_seconds", "load_seconds", "fit_seconds"),
    *("predict_seconds", "score_seconds", "seconds", "cpu_seconds", "peak_memory_mb", "notes"),
)
SCORE_COLUMNS = (
    *("task", "model", "repeat", "fold", "corruption", "severity", "draw", "epoch", "metric"),
    "value",
)
#: epoch of a final score; scores during training have the epochs 1, 2, ...
FINAL_EPOCH = -1


def scores_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy table: one row per score, NaN if a metric has no value."""
    rows: list[tuple[Any, ...]] = []
    for record in records:
        job = (record["task"], record["model"], record["repeat"], record["fold"])
        for step in record["history"]:
            rows.append((*job, "", 0.0, 0, step["epoch"], step["metric"], step["value"]))
        for view in record["views"]:
            seen = (view["corruption"], view["severity"], view.get("draw", 0), FINAL_EPOCH)
            rows += [(*job, *seen, name, value) for name, value in view["scores"].items()]
    table = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    return table.astype({"value": float, "severity": float})


def results_table(about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per job and view, including failed and declined jobs."""
    datasets = {task["name"]: task.get("id") or task["dataset"] for task in about["tasks"]}
    rows = []
    for record in expand_folds(about, records):
        fixed = _fixed(about, record, datasets.get(record["task"], ""))
        views = record["views"] or [{"corruption": "", "severity": 0.0, "scores": {}}]
        rows += [{**fixed, **_of_view(record, view)} for view in views]
    batches = sorted({int(size) for r in records for size in r.get("inference", {})})
    planned = {name for task in about["tasks"] for name in task["metrics"] if name != "?"}
    metrics = sorted(planned | {name for r in records for v in r["views"] for name in v["scores"]})
    timings = [f"inference_{size}_seconds" for size in batches]
    table = pd.DataFrame(rows, columns=[*AMLB_COLUMNS, *metrics, *KARAT_COLUMNS, *timings])
    whole = ["fold", "seed", "repeat", "dimensions", "train_questions", "questions"]
    return table.astype({name: "Int64" for name in whole})


def expand_folds(
    about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records; the record of a task that never ran is repeated for each planned fold."""
    folds = {task["name"]: task.get("folds") or [None] for task in about["tasks"]}
    for record in records:
        if record["fold"] is not None:
            yield record
        else:
            yield from ({**record, "fold": fold} for fold in folds.get(record["task"], [None]))


def _fixed(about: Mapping[str, Any], record: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    own = {name: record.get(name) for name in KARAT_COLUMNS}
    return {
        **own,
        "id": dataset,
        "task": record["task"],
        "framework": record["model"],
        "constraint": about["constraint"],
        "fold": record["fold"],
        "metric": record["metric"],
        "mode": about["mode"],
        "version": about["version"],
        "params": json.dumps(about["params"]) if about["params"] else "",
        "tag": about.get("tag") or f"karat-{about['karat']}",
        "utc": record["utc"],
        "duration": record.get("fit_seconds"),
        "seed": record["seed"],
        "notes": "; ".join(record["notes"]),
        "models": record.get("models"),
        **{f"inference_{n}_seconds": v for n, v in record.get("inference", {}).items()},
    }


def _of_view(record: Mapping[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    # if a view failed, each view has its own status
    source = view if any(each.get("info") for each in record["views"]) else record
    reasons = view.get("reasons", {}).values()
    return {
        **view["scores"],
        "result": view["scores"].get(record["metric"]),
        "corruption": view["corruption"],
        "severity": view["severity"],
        "draw": view.get("draw", 0),
        "affected": view.get("affected"),
        "coverage": view.get("coverage"),
        "status": source["status"],
        "info": "; ".join(message for message in (source["info"], *reasons) if message),
    }


# -- reading run.json and records ---------------------------------------------------------------

Check = Callable[[Any], bool]


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error
    if not isinstance(found, dict):
        raise DataError(f"cannot read {path}: it is no JSON object.")
    return found


def check_about(about: Mapping[str, Any]) -> str:
    """Return the first key of a ``run.json`` that is missing or wrong, or an empty string."""
    if wrong := _first_wrong(about, _ABOUT, ("model", "tasks")):
        return wrong
    for number, task in enumerate(about["tasks"]):
        if wrong := _first_wrong(task, _TASK, ("name", "metrics")):
            return f"tasks.{number}.{wrong}"
    names = [task["name"] for task in about["tasks"]]
    return "" if len(set(names)) == len(names) else "tasks (two have the same name)"


def without_wrong_facts(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``run.json`` or one of its tasks without wrong facts that are only shown."""
    shown = {key: check(value[key]) for key, check in _SHOWN.items() if key in value}
    return {key: each for key, each in value.items() if shown.get(key, True)}


def check_record(record: Mapping[str, Any]) -> str:
    """Return the first key of a record that is missing or wrong, or an empty string."""
    if wrong := _first_wrong(record, _RECORD, NEEDED):
        return wrong
    seen = set()
    for number, view in enumerate(record["views"]):
        if wrong := _first_wrong(view, _VIEW, ("corruption", "severity", "scores")):
            return f"views.{number}.{wrong}"
        seen.add((view["corruption"], view["severity"], view.get("draw", 0)))
    if len(seen) < len(record["views"]):
        return "views (two are the same)"
    steps = (_first_wrong(step, _STEP, tuple(_STEP)) for step in record["history"])
    return next((f"history.{wrong}" for wrong in steps if wrong), "")


def _first_wrong(value: Mapping[str, Any], checks: Mapping[str, Check], needed: Any) -> str:
    for key in needed:
        if key not in value:
            return key
    return next((key for key, check in checks.items() if key in value and not check(value[key])), "")


def _is_any_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text(value: Any) -> bool:
    """Return whether a value is a text without lone surrogates, which cannot be encoded."""
    return isinstance(value, str) and (value.isascii() or encodable(value) == value)


def _is_name(value: Any) -> bool:
    return _is_text(value) and value != ""


def _is_integer(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**63


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_number(value: Any) -> bool:
    return math.isfinite(value) if type(value) is float else _is_integer(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _none_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check, *lengths: int) -> Check:
    """Return a check of lists; without lengths, of any length."""

    def is_list(value: Any) -> bool:
        fits = isinstance(value, list) and (not lengths or len(value) in lengths)
        return fits and all(map(check, value))

    return is_list


def _object_of(check: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(map(_is_text, value)) and all(map(check, value.values()))
    )


def _is_timing(value: Any) -> bool:
    """Return whether a value is seconds by the size of a batch."""
    sizes = isinstance(value, dict) and all(size.isdecimal() and len(size) < 10 for size in value)
    return sizes and all(map(_none_or(_is_number), value.values()))


def _is_shared(value: Any) -> bool:
    """Return whether a value is [shared, tested, what], or empty."""
    return isinstance(value, list) and (
        not value or (len(value) == 3 and all(map(_is_count, value[:2])) and _is_text(value[2]))
    )


def _is_give_away(value: Any) -> bool:
    """Return whether a value is [column, score], or empty."""
    return isinstance(value, list) and (not value or (len(value) == 2 and _is_number(value[1])))


def _is_observed(value: Any) -> bool:
    """Return whether a value is statistics of vectors: counts, and three norms."""
    return isinstance(value, dict) and all(
        _list_of(_is_number, 0, 3)(each) if name == "lengths" else _is_count(each)
        for name, each in value.items()
    )


def _is_probe(value: Any) -> bool:
    return value is None or isinstance(value, str | dict)


def _is_split(value: Any) -> bool:
    """Return whether a value is a split: its parameters, number of folds, and hash of its rows."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("use"), str)
        and _is_count(value.get("count", 0))
        and _is_any_text(value.get("rows", ""))
    )


_STATUS = frozenset({"ok", "declined", *FAILURES})
_TIMES = ("load", "fit", "predict", "score", "embed", "cpu")

_ABOUT: dict[str, Check] = {
    **dict.fromkeys(("constraint", "mode", "stamp", "karat"), _is_text),
    "suite": _is_any_text,
    **dict.fromkeys(("version", "role", "tag"), _none_or(_is_text)),
    **dict.fromkeys(("params", "imported", "rescored"), _is_object),
    "model": _is_name,
    "seed": _none_or(_is_integer),
    "tasks": _list_of(_is_object),
}
_TASK: dict[str, Check] = {
    **dict.fromkeys(("dataset", "kind", "modality"), _is_text),
    "tested": _is_count,
    "name": _is_name,
    "id": _none_or(_is_text),
    "missing": _none_or(_is_text),
    "metrics": lambda value: bool(value) and _list_of(_is_text)(value),
    "folds": _list_of(_is_count),
    "higher_is_better": _object_of(lambda each: isinstance(each, bool)),
    "twins": _list_of(_is_count, 2),
    "entities": _is_shared,
    "give_away": _is_give_away,
    "classes": _object_of(_is_count),
    "ignore": _list_of(_is_text),
    "probe": _is_probe,
    "split": _is_split,
}
#: facts that are only shown: a wrong one is left out
_SHOWN: dict[str, Check] = {
    **dict.fromkeys(("python", "platform"), _is_any_text),
    "fingerprint": _is_text,
    **dict.fromkeys(("items", "questions", "columns"), _is_count),
    "command": lambda value: _is_any_text(value) or _list_of(_is_any_text)(value),
    "versions": _object_of(_none_or(_is_text)),
    "about": _is_object,
}
#: the keys every record has
NEEDED = (
    *("spec", "model", "task", "fold", "repeat", "seed", "metric", "status", "info"),
    *("views", "notes", "history", "utc"),
)
_RECORD: dict[str, Check] = {
    **dict.fromkeys(("spec", "model", "metric", "info", "utc", "kind"), _is_text),
    **dict.fromkeys(("fold", "repeat", "dimensions"), _none_or(_is_count)),
    **dict.fromkeys(("train_questions", "questions", "unconverged"), _none_or(_is_count)),
    **dict.fromkeys((f"{name}_seconds" for name in _TIMES), _none_or(_is_number)),
    **dict.fromkeys(("seconds", "peak_memory_mb", "coverage"), _none_or(_is_number)),
    "task": _is_name,
    "seed": _none_or(_is_integer),
    "status": lambda value: isinstance(value, str) and value in _STATUS,
    "notes": _list_of(_is_text),
    "replaced": _list_of(_is_text),
    "views": _list_of(_is_object),
    "history": _list_of(_is_object),
    "inference": _is_timing,
    "observed": _is_observed,
}
_VIEW: dict[str, Check] = {
    "corruption": _is_text,
    "severity": _is_number,
    "draw": _is_count,
    "coverage": _none_or(_is_number),
    "affected": _none_or(_is_number),
    "scores": _object_of(_none_or(_is_number)),
    "reasons": _object_of(_is_text),
    "status": lambda value: isinstance(value, str) and value in _STATUS,
    "info": _is_text,
}
_STEP: dict[str, Check] = {
    "epoch": _is_integer,
    "metric": _is_text,
    "value": _none_or(_is_number),
}
