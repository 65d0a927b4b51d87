"""The tables of a run, built from its records, and what ``run.json`` and a record must contain.

``results.csv`` has one row per job with the columns of the AutoML Benchmark, then the metrics in
alphabetical order. ``jobs.csv`` has one row per job and view, with Karat's columns after these.
``scores.csv`` is the tidy table with one row per score. An item table,
``items/<dataset>-<hash>.csv.gz``, has the texts or cells of a dataset's test items; its first
column is the key that ``rows.csv`` has for each row, and missing cells are empty.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import ITEM_TYPES, item_text
from karat.core.dataset import Dataset
from karat.core.embeddings import BITS, vector_bytes
from karat.core.files import encodable, read_regular, safe_name
from karat.core.formatting import cut_text
from karat.core.predictions import as_text, quote_cells
from karat.errors import FAILURES, DataError

AMLB_COLUMNS = (
    *("id", "task", "framework", "constraint", "fold", "result", "metric", "mode", "version"),
    *("params", "tag", "utc", "duration", "models", "seed", "info"),
)
KARAT_COLUMNS = (
    *("status", "repeat", "corruption", "severity", "draw", "affected", "coverage", "dimensions"),
    *("vector_precision", "vector_bytes"),  # precision is a metric
    *("train_questions", "questions", "embed_seconds", "load_seconds", "fit_seconds"),
    *("predict_seconds", "score_seconds", "seconds", "cpu_seconds", "peak_memory_mb", "notes"),
)
#: columns of jobs whose vectors come from an endpoint
USAGE_COLUMNS = (
    *("tokens", "price", "embed_tokens", "tokens_estimated", "truncated", "texts", "requests"),
    *("request_seconds_median", "request_seconds_p95", "texts_per_second"),
)
#: columns of jobs of a limited encoder in the same process, and of rerankers
COUNT_COLUMNS = ("truncated", "texts", "pairs")
SCORE_COLUMNS = (
    *("task", "model", "repeat", "fold", "corruption", "severity", "draw", "epoch", "metric"),
    "value",
)
#: columns of integers, of which some may be empty
WHOLE_COLUMNS = (
    *("fold", "seed", "repeat", "dimensions", "vector_bytes", "train_questions", "questions"),
)
#: prefix of the message of a job that was declined, in ``results.csv``
DECLINED = "Declined: "
#: status of jobs that were not run because the model was eliminated in a race
ELIMINATED = "eliminated"
#: epoch of a final score; scores during training have the epochs 1, 2, ...
FINAL_EPOCH = -1
Check = Callable[[Any], bool]
_STATUS = frozenset({"ok", "declined", ELIMINATED, *FAILURES})
_TIMES = ("load", "fit", "predict", "score", "embed", "cpu")
#: the keys every record has
NEEDED = (
    *("spec", "model", "task", "fold", "repeat", "seed", "metric", "status", "info"),
    *("views", "notes", "history", "utc"),
)
FOLDER = "items"
#: longer texts are cut
TEXT_LENGTH = 500
#: size of a file; beyond it, only evenly spaced items are kept
MAX_BYTES = 2_000_000
#: later columns of a wide table are left out
MAX_COLUMNS = 100
#: a file that is larger when decompressed is not read
MAX_READ = 200_000_000
#: columns added to those of the data
GROUP, LENGTH, ANSWER = "group", "characters", "answer"
#: parts of a license that forbid copies of the data
FORBIDDEN = (
    *("non-redistribut", "not redistribut", "no redistribut", "not be redistribut"),
    *(
        "proprietary",
        "confidential",
        "all rights reserved",
        "the copyright of",
        "competition's rules",
    ),
)
#: rows from which the size of a table is estimated, unless it has few cells
_SAMPLE, _SMALL = 500, 50_000
#: why a run without a reason has no item table, and how to get it
ABSENT = "made with --no-items or an earlier version; run it again, or add them with --resume"


def scores_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy table: one row per score, NaN if a metric has no value."""
    rows: list[tuple[Any, ...]] = []
    for record in records:
        job = (record["task"], record["model"], record["repeat"], record["fold"])
        rows += [(*job, *row) for row in score_rows(record["history"], record["views"])]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCORE_COLUMNS)
    table: dict[str, Any] = dict(zip(SCORE_COLUMNS, map(list, columns), strict=True))
    for name in ("value", "severity"):
        table[name] = np.array(table[name], dtype=float)
    return pd.DataFrame(table)


def score_rows(
    history: Sequence[Mapping[str, Any]], views: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    """Yield corruption, severity, draw, epoch, metric and value of each score of a job."""
    for step in history:
        yield "", 0.0, 0, step["epoch"], step["metric"], step["value"]
    for view in views:
        seen = (view["corruption"], view["severity"], view.get("draw", 0), FINAL_EPOCH)
        for name, value in view["scores"].items():
            yield *seen, name, value


def results_table(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return one row per job and view, including failed and declined jobs."""
    table = pd.DataFrame(results_columns(run_facts, records))
    return table.astype({name: "Int64" for name in WHOLE_COLUMNS})


def results_columns(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Return the columns of ``results_table``; empty cells are None."""
    none: list[Mapping[str, Any]] = [{"corruption": "", "severity": 0.0, "scores": {}}]
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = [
        (record, view)
        for record in expand_folds(run_facts, records)
        for view in record["views"] or none
    ]
    batches = sorted({int(size) for r in records for size in r.get("inference", {})})
    planned = {name for task in run_facts["tasks"] for name in task["metrics"] if name != "?"}
    scores = [view["scores"] for _, view in pairs]
    metrics = sorted(planned.union(*set(map(tuple, scores))))
    usage = USAGE_COLUMNS if any("tokens" in record for record in records) else ()
    counts = [n for n in COUNT_COLUMNS if n not in usage and any(n in r for r in records)]
    usage = (*usage, *counts)
    cells = {
        **_of_jobs(run_facts, [record for record, _ in pairs], usage),
        **_of_views(pairs),
        **{name: [view_scores.get(name) for view_scores in scores] for name in metrics},
        **{f"inference_{n}_seconds": _inference(pairs, str(n)) for n in batches},
    }
    timings = [f"inference_{size}_seconds" for size in batches]
    columns = (*AMLB_COLUMNS, *metrics, *KARAT_COLUMNS, *usage, *timings)
    return {name: cells[name] for name in columns}


def amlb_columns(
    run_facts: Mapping[str, Any], every: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the columns of the AutoML Benchmark for one row per job, of ``results_columns``.

    The row of a job is that of the clean data; the parameters are those of its files, a Python
    literal, and a job that was declined says so.
    """
    jobs: dict[tuple[Any, ...], int] = {}
    views = zip(every["task"], every["fold"], every["corruption"], every["status"], strict=True)
    for row, (task, fold, corruption, _) in enumerate(views):
        if not corruption:
            jobs.setdefault((task, fold), row)
    own_columns = {*KARAT_COLUMNS, *USAGE_COLUMNS, *COUNT_COLUMNS}
    names = [
        column
        for column in every
        if column not in own_columns and not column.startswith("inference_")
    ]
    params = repr(run_facts["params"]) if run_facts["params"] else ""
    columns = {name: [every[name][row] for row in jobs.values()] for name in names}
    states = [every["status"][row] for row in jobs.values()]
    columns["params"] = [params] * len(jobs)
    # the metrics of a task whose data could not be read are unknown
    columns["metric"] = ["" if name == "?" else name for name in columns["metric"]]
    columns["info"] = [
        f"{DECLINED}{info}" if state == "declined" else info
        for info, state in zip(columns["info"], states, strict=True)
    ]
    return columns


def _inference(pairs: Sequence[tuple[Mapping[str, Any], Any]], size: str) -> list[Any]:
    return [record.get("inference", {}).get(size) for record, _ in pairs]


def expand_folds(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records; the record of a task that never ran is repeated for each planned fold."""
    folds = {task["name"]: task.get("folds") or [None] for task in run_facts["tasks"]}
    for record in records:
        if record["fold"] is not None:
            yield record
        else:
            yield from ({**record, "fold": fold} for fold in folds.get(record["task"], [None]))


def eliminated_by(run_facts: Mapping[str, Any]) -> str:
    """Return when and why the model of a run was eliminated in a race, or an empty string."""
    race = run_facts.get("race")
    exit_facts = race.get("exit") if isinstance(race, Mapping) else None
    is_eliminated = isinstance(exit_facts, Mapping) and exit_facts.get("reason") == ELIMINATED
    return str(exit_facts.get("text") or ELIMINATED) if is_eliminated else ""  # type: ignore[union-attr]


def eliminated_records(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield a record for each planned job that was not run because the model was eliminated.

    These records have no file: they follow from run.json.
    """
    if not (info := eliminated_by(run_facts)):
        return
    recorded = {(record["task"], record["fold"]) for record in records}
    for task in run_facts["tasks"]:
        for fold in task["folds"] if (task["name"], None) not in recorded else ():
            if (task["name"], fold) not in recorded:
                yield {
                    **{"spec": "", "model": run_facts["model"], "task": task["name"], "fold": fold},
                    **{"kind": task.get("kind", ""), "metric": task["metrics"][0], "seed": None},
                    **{"status": ELIMINATED, "info": info, "repeat": None, "utc": ""},
                    **{"views": [], "notes": [], "history": []},
                }


def _of_jobs(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]], usage: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of the run and of its jobs."""
    datasets = {task["name"]: task.get("id") or task["dataset"] for task in run_facts["tasks"]}
    constant = {name: run_facts[name] for name in ("constraint", "mode", "version")}
    constant["params"] = json.dumps(run_facts["params"]) if run_facts["params"] else ""
    constant["tag"] = run_facts.get("tag") or f"karat-{run_facts['karat']}"
    keys = {name: name for name in (*KARAT_COLUMNS, *usage, "task", "fold", "metric")}
    keys |= {"framework": "model", "utc": "utc", "seed": "seed", "models": "models"}
    keys["duration"] = "fit_seconds"
    sizes = [vector_size(record) for record in records]
    return {
        **{name: [value] * len(records) for name, value in constant.items()},
        **{name: [record.get(key) for record in records] for name, key in keys.items()},
        "id": [datasets.get(record["task"], "") for record in records],
        "notes": ["; ".join(record["notes"]) for record in records],
        "vector_precision": [precision for precision, _ in sizes],
        "vector_bytes": [size for _, size in sizes],
    }


def vector_size(record: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the precision and the bytes of a job's vectors; those of old records are 32 bits."""
    width, precision = record.get("dimensions"), record.get("precision") or "float32"
    return (precision, vector_bytes(width, precision)) if width else (None, None)


def _of_views(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the columns of views: the primary score, the corruption and the status."""
    views = [view for _, view in pairs]
    sources: list[Mapping[str, Any]] = [record for record, _ in pairs]
    if any(view.get("info") for view in views):  # then each view has its own status
        failed = [any(job_view.get("info") for job_view in record["views"]) for record in sources]
        sources = [v if has_own else r for has_own, (r, v) in zip(failed, pairs, strict=True)]
    info = [source["info"] for source in sources]
    if any(view.get("reasons") for view in views):
        reasons = [list(view.get("reasons", {}).values()) for view in views]
        several = ([text, *more] for text, more in zip(info, reasons, strict=True))
        info = ["; ".join(filter(None, messages)) for messages in several]
    return {
        "result": [view["scores"].get(record["metric"]) for record, view in pairs],
        "corruption": [view["corruption"] for view in views],
        "severity": [view["severity"] for view in views],
        "draw": [view.get("draw", 0) for view in views],
        "affected": [view.get("affected") for view in views],
        "coverage": [view.get("coverage") for view in views],
        "status": [source["status"] for source in sources],
        "info": info,
    }


def csv_text(columns: Mapping[Any, Any], whole: Collection[Any] = (), names: Any = ()) -> str:
    r"""Return the text that pandas writes for columns of texts, numbers and None.

    A column of integers and None has decimal points, as in pandas, unless it is one of ``whole``.
    ``names`` are the names in the header, if they are not those of the columns.

    >>> csv_text({"a,b": ["x", None], "n": [1, None], "v": [0.5, float("nan")]}, whole=["n"])
    '"a,b",n,v\nx,1,0.5\n,,\n'
    """
    cells = [_csv_cells(values, name in whole) for name, values in columns.items()]
    header = ",".join(_csv_cells(list(names or columns)))
    return "\n".join([header, *map(",".join, zip(*cells, strict=True))]) + "\n"


def _csv_cells(values: Sequence[Any], whole: bool = False) -> list[str]:
    """Return the cells of a column as they are in a CSV file."""
    kinds = set(map(type, values))
    numbers = {int, float, type(None)}
    if kinds in ({str}, {int}):
        return quote_cells(list(values if str in kinds else map(str, values)))
    if kinds <= numbers and not whole and kinds != {type(None)}:
        floats = values if kinds == {float} else [np.nan if v is None else v for v in values]
        texts = list(map(repr, map(float, floats)))
        return ["" if text == "nan" else text for text in texts] if "nan" in texts else texts
    if len(kinds - {type(None)}) > 1:
        return list(map(_csv_cell, values))
    cell_of = {value: _csv_cell(value) for value in set(values)}
    return [cell_of[value] for value in values]


def _csv_cell(value: Any) -> str:
    return "" if value is None else quote_cells([str(value)])[0]


# -- reading run.json and records ---------------------------------------------------------------


def parse_stored_json(content: str | bytes) -> Any:
    """Return the value of JSON; NaN and infinity, which are not JSON, are null."""
    return json.loads(content, parse_constant=lambda _: None)


def json_value(value: Any) -> Any:
    """Return a value as JSON types; other objects become their repr.

    >>> json_value({"limit": float("nan"), "sizes": (1, 2)})
    {'limit': 'nan', 'sizes': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        content = parse_stored_json(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"cannot read {path}: it is no JSON object.")
    return content


def check_about(run_facts: Mapping[str, Any]) -> str:
    """Return the first key of a ``run.json`` that is missing or wrong, or an empty string."""
    if wrong := _first_wrong(run_facts, _ABOUT, ("model", "tasks")):
        return wrong
    for number, task in enumerate(run_facts["tasks"]):
        if wrong := _first_wrong(task, _TASK, ("name", "metrics")):
            return f"tasks.{number}.{wrong}"
    names = [task["name"] for task in run_facts["tasks"]]
    return "" if len(set(names)) == len(names) else "tasks (two have the same name)"


def without_wrong_facts(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``run.json`` or one of its tasks without wrong facts that are only shown."""
    is_right = {key: check(value[key]) for key, check in _SHOWN.items() if key in value}
    return {key: fact for key, fact in value.items() if is_right.get(key, True)}


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
    if _are_steps(record["history"]):
        return ""
    steps = (_first_wrong(step, _STEP, tuple(_STEP)) for step in record["history"])
    return next((f"history.{wrong}" for wrong in steps if wrong), "")


def _are_steps(history: list[dict[str, Any]]) -> bool:
    """Return whether all steps are as a run writes them: numbered, with finite values."""
    try:
        epochs, metrics, values = ([step[key] for step in history] for key in _STEP)
    except KeyError:
        return False
    texts = all(isinstance(metric, str) for metric in metrics) and all(map(_is_text, set(metrics)))
    finite = all(type(value) is float and math.isfinite(value) for value in values)
    return texts and finite and all(map(_is_integer, epochs))


def _first_wrong(value: Mapping[str, Any], checks: Mapping[str, Check], needed: Any) -> str:
    for key in needed:
        if key not in value:
            return key
    return next(
        (key for key, check in checks.items() if key in value and not check(value[key])), ""
    )


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


def _is_counted_pair(value: Any) -> bool:
    """Return whether a value is a true class, a predicted class and a count."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(map(_is_text, value[:2]))
        and _is_count(value[2])
    )


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
        _list_of(_is_number, 0, 3)(fact) if name == "lengths" else _is_count(fact)
        for name, fact in value.items()
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


_ABOUT: dict[str, Check] = {
    **dict.fromkeys(("constraint", "mode", "stamp", "karat"), _is_text),
    "suite": _is_any_text,
    **dict.fromkeys(("version", "role", "tag", "base"), _none_or(_is_text)),
    **dict.fromkeys(("params", "imported", "rescored", "race"), _is_object),
    "prompts": _object_of(_is_text),
    "declared_prompts": _list_of(_is_text),
    "model": _is_name,
    "seed": _none_or(_is_integer),
    "replicate": _is_count,
    "tasks": _list_of(_is_object),
}
_TASK: dict[str, Check] = {
    **dict.fromkeys(("dataset", "kind", "modality"), _is_text),
    "tested": _is_count,
    "name": _is_name,
    "id": _none_or(_is_text),
    "missing": _none_or(_is_text),
    "keep_predictions": _is_text,
    "roles": _list_of(_is_text),
    "metrics": lambda value: bool(value) and _list_of(_is_text)(value),
    "folds": _list_of(_is_count),
    "higher_is_better": _object_of(lambda value: isinstance(value, bool)),
    "duplicate_rows": _list_of(_is_count, 2),
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
_RECORD: dict[str, Check] = {
    **dict.fromkeys(("spec", "model", "metric", "info", "utc", "kind"), _is_text),
    **dict.fromkeys(("fold", "repeat", "dimensions", "vector_bytes"), _none_or(_is_count)),
    "precision": lambda value: value is None or (isinstance(value, str) and value in BITS),
    **dict.fromkeys(("train_questions", "questions", "unconverged"), _none_or(_is_count)),
    **dict.fromkeys((f"{name}_seconds" for name in _TIMES), _none_or(_is_number)),
    **dict.fromkeys(("seconds", "peak_memory_mb", "coverage"), _none_or(_is_number)),
    "task": _is_name,
    "seed": _none_or(_is_integer),
    "replicate": _is_count,
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
    "stored": lambda value: isinstance(value, bool),
    "confusion": _list_of(_is_counted_pair),
}
_STEP: dict[str, Check] = {"epoch": _is_integer, "metric": _is_text, "value": _none_or(_is_number)}


# -- item tables ----------------------------------------------------------------------------


class NoItems(DataError):
    """A run keeps no items of a task."""


@dataclass(frozen=True)
class ItemTable:
    """The file of an item table, its content, and the numbers of items in it and of all.

    Without a file, ``reason`` says why.
    """

    file: str = ""
    content: bytes = b""
    rows: int = 0
    of: int = 0
    reason: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """The entry of run.json."""
        names = ("file", "rows", "of", "reason")
        return {name: value for name in names if (value := getattr(self, name)) != ""}


def item_keys(data: Dataset) -> np.ndarray:
    """Return the key of each question: its entity, its row name, or its row in the original data.

    >>> frame = pd.DataFrame({"age": [31, 45], "churn": ["yes", "no"]}, index=["Ann", "Bob"])
    >>> item_keys(Dataset.from_table(frame, "churn")).tolist()
    ['Ann', 'Bob']
    """
    names = data.questions.index
    if data.modality in ("entity", *ITEM_TYPES) and has_one_item_each(data):
        names = data.items.index[data.mentions(data.fields[0]).rows]
    texts = as_text(names.to_numpy())
    if not "".join(texts).isascii():
        texts = np.array([encodable(text) for text in texts], dtype=object)
    if len(set(texts.tolist())) < len(texts):
        texts = as_text(np.arange(len(texts)))
    return texts


def has_one_item_each(data: Dataset) -> bool:
    """Return whether each question has one field with one item."""
    return len(data.fields) == 1 and len(data.mentions(data.fields[0]).rows) == len(data)


def copying_forbidden(data_facts: Mapping[str, str]) -> bool:
    """Return whether the license of a dataset forbids copies of its items; unknown ones do not.

    >>> copying_forbidden({"license": "Proprietary"}), copying_forbidden({})
    (True, False)
    """
    terms = f"{data_facts.get('license', '')} {data_facts.get('openml_license', '')}".lower()
    return any(part in terms for part in FORBIDDEN)


def make_item_table(data: Dataset, tested: np.ndarray, max_bytes: int = MAX_BYTES) -> ItemTable:
    """Return the table of the questions at some positions, or why there is none."""
    if copying_forbidden(data.about):
        return ItemTable(of=len(tested), reason="the license of the data forbids copies")
    keys = item_keys(data)

    def packed(rows: np.ndarray) -> bytes:
        cells = _cells(data.take(rows))
        columns = [keys[rows].tolist(), *map(_item_cells, cells.values())]
        text = csv_text(dict(enumerate(columns)), range(len(columns)), ["key", *cells])
        return gzip.compress(text.encode(), 4, mtime=0)  # level 9: 5 % less, twice the time

    try:
        small = len(tested) * (len(data.fields) + data.items.size // len(data.items)) <= _SMALL
        rows = tested if small else _fitting_rows(tested, packed, max_bytes)
        content = packed(rows) if len(rows) else b""
        while len(content) > max_bytes:  # a sample may be smaller than the rest
            rows = _spaced(tested, int(0.95 * len(rows) * max_bytes / len(content)))
            content = packed(rows) if len(rows) else b""
    except Exception as error:  # a cell that cannot be written must not prevent the run
        reason = f"its cells cannot be written: {type(error).__name__}"
        return ItemTable(of=len(tested), reason=reason)
    if not content:
        return ItemTable(of=len(tested), reason=f"a row is larger than {max_bytes:,} bytes")
    digest = hashlib.sha256(data.fingerprint.encode() + np.asarray(tested, np.int64).tobytes())
    file = f"{FOLDER}/{safe_name(data.name)}-{digest.hexdigest()[:8]}.csv.gz"
    return ItemTable(file, content, len(rows), len(tested))


def _fitting_rows(tested: np.ndarray, packed: Any, max_bytes: int) -> np.ndarray:
    """Return the rows, or as many evenly spaced ones as probably fit."""
    sample = _spaced(tested, _SAMPLE)
    row_bytes = len(packed(sample)) / len(sample)
    return _spaced(tested, int(max_bytes / row_bytes))


def _spaced(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _item_cells(column: np.ndarray) -> list[Any]:
    """Return cells as the csv module is to write them: numbers as short texts, missing as None."""
    if column.dtype.kind == "f":
        texts: list[str | None] = list(map("{:.8g}".format, column.tolist()))
        for row in np.flatnonzero(np.isnan(column)).tolist():
            texts[row] = None
        return texts
    cells: list[Any] = column.tolist()
    return [None if cell is pd.NA else cell for cell in cells] if column.dtype == object else cells


def _cells(data: Dataset) -> dict[str, np.ndarray]:
    """Return the columns of a table, or the texts of each field, and what else is known."""
    if data.modality == "table" and has_one_item_each(data):
        table = data.frame().iloc[:, :MAX_COLUMNS]
        cells = {encodable(str(name)): _written(table[name]) for name in table.columns}
    else:
        texts = {name: _texts(data, name) for name in data.fields}
        cells = {
            name: _written(pd.Series(field_texts, dtype=object))
            for name, field_texts in texts.items()
        }
        if data.modality == "text":
            lengths = [
                np.fromiter(map(len, field_texts), np.int64) for field_texts in texts.values()
            ]
            cells.setdefault(LENGTH, np.sum(lengths, axis=0))
    if data.kind == "items" and data.target is not None:
        answers = data.items.index.get_indexer(pd.Index(data.target, tupleize_cols=False))
        cells.setdefault(ANSWER, _written(pd.Series(_named(data, answers), dtype=object)))
    if data.group is not None:
        cells.setdefault(GROUP, _written(pd.Series(data.group)))
    return cells


def _texts(data: Dataset, field: str) -> list[str]:
    """Return the text of each question's field; the items of a bag are joined."""
    bags = data.mentions(field)
    names = _named(data, bags.rows)
    if len(names) == len(data):
        return names
    ends = bags.offsets.tolist()
    return ["; ".join(names[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _named(data: Dataset, places: np.ndarray) -> list[str]:
    if data.modality == "table":
        return [str(name) for name in data.items.index[places]]
    items = data.items.iloc[places].to_numpy(dtype=object)
    return list(map(item_text if data.modality in ITEM_TYPES else str, items))


def _written(column: pd.Series) -> Any:
    """Return numbers as they are and other cells as cut texts; a missing cell is None."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy()
    cells = column.astype(object).tolist()
    if _is_plain(cells):
        return np.array(cells, dtype=object)
    texts = [
        None if is_missing else cut_text(encodable(str(cell)), TEXT_LENGTH)
        for is_missing, cell in zip(column.isna().tolist(), cells, strict=True)
    ]
    return np.array(texts, dtype=object)


def _is_plain(cells: Sequence[Any]) -> bool:
    """Return whether all cells are texts that need not be changed."""
    if set(map(type, cells)) - {str}:
        return False
    return "".join(cells).isascii() and max(map(len, cells), default=0) <= TEXT_LENGTH


# -- reading --------------------------------------------------------------------------------


def read_item_table(folder: Path, task: Mapping[str, Any]) -> pd.DataFrame:
    """Return the item table of a task of run.json: texts by key, empty where a cell is missing.

    Raises ``DataError`` if there is none, or if the file cannot be read.
    """
    facts = task.get("item_table")
    facts = facts if isinstance(facts, Mapping) else {}
    name = str(facts.get("file") or "")
    if not re.fullmatch(rf"{FOLDER}/[^/\\]+\.csv\.gz", name):
        raise NoItems(f"{folder} has no items of {task['name']}: {facts.get('reason') or ABSENT}.")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"the path of {name} leaves the run folder {folder}.")
    try:
        with gzip.open(io.BytesIO(read_regular(path))) as file:
            raw = file.read(MAX_READ + 1)
        if len(raw) > MAX_READ:
            raise DataError(f"{path} has more than {MAX_READ:,} bytes.")
        text = io.StringIO(raw.decode("utf-8"), newline="")
        header = next(csv.reader(text))
        table = pd.read_csv(
            text, header=None, names=range(len(header)), dtype=str, keep_default_na=False
        )
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; --resume writes it again.") from None
    except (OSError, EOFError, ValueError, StopIteration, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}.") from error
    table.columns = pd.Index(header)
    keys = table.iloc[:, 0]
    return table.iloc[:, 1:].set_index(pd.Index(keys, name="key"))


def describe_item(item: pd.Series, width: int) -> str:
    """Return an item as one text: the only text, or its cells with their names.

    >>> describe_item(pd.Series({"age": "31", "plan": "", "city": "Rome"}), 40)
    'age: 31 · city: Rome'
    """
    cells = [pair for pair in item.items() if pair[0] not in (LENGTH, GROUP, ANSWER)]
    filled = {name: value for name, value in cells if value != ""}
    if len(cells) == 1 and filled:
        return cut_text(" ".join(next(iter(filled.values())).split()), width)
    text = " · ".join(f"{name}: {' '.join(value.split())}" for name, value in filled.items())
    return cut_text(text, width)
