"""What ``run.json`` and a record must contain, checked key by key when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from karat.core.embeddings import BITS
from karat.errors import FAILURES
from karat.results.tables import ELIMINATED
from karat.results.value_checks import (
    Check,
    is_any_text,
    is_count,
    is_counted_pair,
    is_give_away,
    is_integer,
    is_name,
    is_number,
    is_object,
    is_observed,
    is_probe,
    is_shared,
    is_split,
    is_text,
    is_timing,
    list_of,
    none_or,
    object_of,
)

_STATUS = frozenset({"ok", "declined", ELIMINATED, *FAILURES})
_TIMES = ("load", "fit", "predict", "score", "embed", "cpu")
#: the keys every record has
NEEDED = (
    "spec",
    "model",
    "task",
    "fold",
    "repeat",
    "seed",
    "metric",
    "status",
    "info",
    "views",
    "notes",
    "history",
    "utc",
)
_ABOUT: dict[str, Check] = {
    **dict.fromkeys(("constraint", "mode", "stamp", "karat"), is_text),
    "suite": is_any_text,
    **dict.fromkeys(("version", "role", "tag", "base"), none_or(is_text)),
    **dict.fromkeys(("params", "imported", "rescored", "race"), is_object),
    "prompts": object_of(is_text),
    "declared_prompts": list_of(is_text),
    "model": is_name,
    "seed": none_or(is_integer),
    "replicate": is_count,
    "tasks": list_of(is_object),
}
_TASK: dict[str, Check] = {
    **dict.fromkeys(("dataset", "kind", "modality"), is_text),
    "tested": is_count,
    "name": is_name,
    "id": none_or(is_text),
    "missing": none_or(is_text),
    "keep_predictions": is_text,
    "roles": list_of(is_text),
    "metrics": lambda value: bool(value) and list_of(is_text)(value),
    "folds": list_of(is_count),
    "higher_is_better": object_of(lambda value: isinstance(value, bool)),
    "duplicate_rows": list_of(is_count, 2),
    "entities": is_shared,
    "give_away": is_give_away,
    "classes": object_of(is_count),
    "ignore": list_of(is_text),
    "probe": is_probe,
    "split": is_split,
}
#: facts that are only shown: a wrong one is left out
_SHOWN: dict[str, Check] = {
    **dict.fromkeys(("python", "platform"), is_any_text),
    "fingerprint": is_text,
    **dict.fromkeys(("items", "questions", "columns"), is_count),
    "command": lambda value: is_any_text(value) or list_of(is_any_text)(value),
    "versions": object_of(none_or(is_text)),
    "about": is_object,
}
_RECORD: dict[str, Check] = {
    **dict.fromkeys(("spec", "model", "metric", "info", "utc", "kind"), is_text),
    **dict.fromkeys(("fold", "repeat", "dimensions", "vector_bytes"), none_or(is_count)),
    "precision": lambda value: value is None or (isinstance(value, str) and value in BITS),
    **dict.fromkeys(("train_questions", "questions", "unconverged"), none_or(is_count)),
    **dict.fromkeys((f"{name}_seconds" for name in _TIMES), none_or(is_number)),
    **dict.fromkeys(("seconds", "peak_memory_mb", "coverage"), none_or(is_number)),
    "task": is_name,
    "seed": none_or(is_integer),
    "replicate": is_count,
    "status": lambda value: isinstance(value, str) and value in _STATUS,
    "notes": list_of(is_text),
    "replaced": list_of(is_text),
    "views": list_of(is_object),
    "history": list_of(is_object),
    "inference": is_timing,
    "observed": is_observed,
}
_VIEW: dict[str, Check] = {
    "corruption": is_text,
    "severity": is_number,
    "draw": is_count,
    "coverage": none_or(is_number),
    "affected": none_or(is_number),
    "scores": object_of(none_or(is_number)),
    "reasons": object_of(is_text),
    "status": lambda value: isinstance(value, str) and value in _STATUS,
    "info": is_text,
    "stored": lambda value: isinstance(value, bool),
    "confusion": list_of(is_counted_pair),
}
_STEP: dict[str, Check] = {"epoch": is_integer, "metric": is_text, "value": none_or(is_number)}


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
    texts = all(isinstance(metric, str) for metric in metrics) and all(map(is_text, set(metrics)))
    finite = all(type(value) is float and math.isfinite(value) for value in values)
    return texts and finite and all(map(is_integer, epochs))


def _first_wrong(value: Mapping[str, Any], checks: Mapping[str, Check], needed: Any) -> str:
    for key in needed:
        if key not in value:
            return key
    return next(
        (key for key, check in checks.items() if key in value and not check(value[key])), ""
    )
