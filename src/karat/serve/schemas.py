"""Schemas: the JSON that the API sends and takes, as JSON Schema."""

from __future__ import annotations

from typing import Any

from karat.errors import FAILURES

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}
WHOLE: dict[str, Any] = {"type": ["integer", "null"]}


def record(needed: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of an object: these keys must be there, others may be."""
    return {"type": "object", "required": list(needed), "properties": {**needed, **more}}


def many(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def named(name: str) -> dict[str, Any]:
    """Return a reference to one of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def page(of: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a part of a list."""
    return record({"total": COUNT, "items": many(of)}, offset=COUNT, **more)


_RUN = record(
    {
        **{"id": TEXT, "model": TEXT, "suite": TEXT, "constraint": TEXT, "stamp": TEXT},
        **{"planned": COUNT, "ok": COUNT, **{name: COUNT for name in FAILURES}},
        **{"declined": COUNT, "running": COUNT, "left": COUNT, "last": TEXT},
        "state": {"enum": ["finished", "running", "stopped"]},
        "seconds_per_job": NUMBER,
    },
    seed=WHOLE,
)
_JOB = record(
    {
        **{"model": TEXT, "task": TEXT, "fold": WHOLE, "repeat": WHOLE, "status": TEXT},
        **{"metric": TEXT, "info": TEXT, "utc": TEXT, "views": many({"type": "object"})},
    },
)
_SCORE = record(
    {
        **{"run": TEXT, "task": TEXT, "model": TEXT, "repeat": WHOLE, "fold": WHOLE},
        **{"corruption": TEXT, "severity": NUMBER, "draw": COUNT, "epoch": {"type": "integer"}},
        **{"metric": TEXT, "value": NUMBER},
    }
)
_PROGRESS = record(
    {
        **{"done": COUNT, "failed": COUNT, "left": COUNT},
        "running": many(record({"model": TEXT, "task": TEXT, "fold": COUNT})),
    }
)
_ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["suite"],
    "additionalProperties": False,
    "properties": {
        "suite": {"type": "string", "minLength": 1, "maxLength": 200},
        "models": {
            "type": "array",
            "maxItems": 50,
            "items": {"type": "string", "minLength": 1, "maxLength": 200},
            "description": "Names that are defined here, or upload:NAME; the suite's own if none.",
        },
        "tasks": {
            "type": "array",
            "maxItems": 500,
            "items": {"type": "string", "minLength": 1, "maxLength": 200},
        },
        "folds": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "integer", "minimum": 0, "maximum": 10_000},
        },
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 42},
    },
    "example": {"suite": "quickstart", "models": ["onehot"], "tasks": ["penguins"]},
}
_EVALUATION = record(
    {
        **{"id": TEXT, "created": TEXT, "started": TEXT, "ended": TEXT, "said": TEXT},
        "status": {"enum": ["queued", "running", "finished", "failed", "cancelled", "stopped"]},
        **{"order": named("Order"), "code": WHOLE, "position": WHOLE},
    }
)
_VECTORS = record({"name": TEXT, "bytes": COUNT, "model": TEXT}, sha256=TEXT, utc=TEXT)
_BOARD = record(
    {
        **{"total": COUNT, "items": many({"type": "object"}), "tasks": many(TEXT)},
        "metrics": {"type": "object"},
        "higher_is_better": {"type": "object"},
    },
)
_BUNDLE = record(
    {
        **{"schema": {"const": 1}, "title": TEXT, "models": many({"type": "object"})},
        **{"tasks": many({"type": "object"}), "progress": named("Progress")},
    }
)
_COMPARISON = record(
    {
        **{"first": TEXT, "second": TEXT, "verdict": TEXT, "rope": NUMBER, "notes": many(TEXT)},
        **{"tasks": many({"type": "object"}), "overall": {"type": "object"}},
    }
)
_PREDICTIONS = page(
    many(TEXT), columns=many(TEXT), answers=MAYBE, truths=MAYBE, classes={"type": ["array", "null"]}
)

#: the schemas that others refer to by name
SCHEMAS: dict[str, Any] = {
    "Error": record({"error": TEXT, "hint": TEXT}),
    "Run": _RUN,
    "Job": _JOB,
    "Score": _SCORE,
    "Progress": _PROGRESS,
    "Predictions": _PREDICTIONS,
    "Board": _BOARD,
    "Comparison": _COMPARISON,
    "Bundle": _BUNDLE,
    "Vectors": _VECTORS,
    "Order": _ORDER,
    "Evaluation": _EVALUATION,
}
