"""The contents of ``run.json``: model, tasks and machine, as JSON values."""

from __future__ import annotations

import math
import platform
import shlex
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from karat import __version__
from karat.dataset import Dataset
from karat.metrics.base import get_metric
from karat.models.base import Model
from karat.plan import PlannedTask


def of_model(model: Model) -> dict[str, Any]:
    """Return the parameters, the version and the role of a model."""
    return {"params": _plain(model.params), "version": model.version, "role": model.role}


def of_machine() -> dict[str, Any]:
    """Return versions, platform and command line."""
    return {
        "karat": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": 1,
        "versions": dict(_versions()),
        "command": _command(),
    }


def _command() -> str:
    """Return the command line of ``karat``, or the name of the user's script."""
    called, *rest = sys.argv or [""]
    name = Path(called).name
    if name in ("karat", "karat.exe", "__main__.py"):
        return shlex.join(["karat", *rest])
    return f"python {shlex.quote(name)}" if name.endswith(".py") else ""


def of_task(planned: PlannedTask) -> dict[str, Any]:
    """Return the definition of a task and the facts about its data."""
    task, data = planned.task, planned.data
    return {
        "name": task.name,
        "kind": task.kind,
        "metrics": list(task.metrics),
        "higher_is_better": {
            name: get_metric(name).higher_is_better for name in task.metrics if name != "?"
        },
        "folds": list(planned.folds),
        "dataset": data.name if data is not None else getattr(task.dataset, "name", ""),
        "id": _id(data) if data is not None else "",
        "fingerprint": data.fingerprint if data is not None else "",
        "probe": _plain(task.probe),
        "missing": task.missing,
        "modality": data.modality if data is not None else "",
        "twins": list(planned.twins),
        **planned.facts,
        "ignore": list(task.ignore),
        "about": _plain(data.about) if data is not None else {},
        **_size(data),
    }


def _size(data: Dataset | None) -> dict[str, int]:
    """Return the numbers of items, questions and, for a table, columns."""
    if data is None:
        return {}
    sizes = {"items": len(data.items), "questions": len(data)}
    return sizes | ({"columns": data.items.shape[1]} if data.items.ndim > 1 else {})


def _id(data: Dataset) -> str:
    """Return the OpenML task of the data, or its name."""
    number = data.about.get("openml_task")
    return f"openml.org/t/{number}" if number else data.name


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("numpy", "pandas", "scikit-learn", "scipy")}


def _plain(value: Any) -> Any:
    """Return a value as JSON types; other objects become their repr."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
