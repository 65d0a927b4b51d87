"""Karat evaluates encoders and predictors: scores, robustness, statistics and reports."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

logging.getLogger("karat").addHandler(logging.NullHandler())

#: public names and the modules that define them; each is imported on first use
_PUBLIC = {
    "Dataset": "karat.core.dataset",
    "KaratError": "karat.errors",
    "Predictions": "karat.core.predictions",
    "Progress": "karat.execution.progress",
    "Run": "karat.results.run",
    "StatelessEncoder": "karat.models.model",
    "Suite": "karat.core.task",
    "Task": "karat.core.task",
    "asker": "karat.core.registry",
    "check_runs": "karat.analysis.checks",
    "compare": "karat.analysis.comparison",
    "composer": "karat.core.registry",
    "corruption": "karat.core.registry",
    "dataset": "karat.core.registry",
    "encoder": "karat.core.registry",
    "evaluate": "karat.execution.evaluation",
    "head": "karat.core.registry",
    "import_results": "karat.compat.convert",
    "leaderboard": "karat.reporting.leaderboard_output",
    "load_artifact": "karat.results.run",
    "metric": "karat.metrics.metric",
    "open_runs": "karat.results.run",
    "plot": "karat.reporting.plots",
    "predictor": "karat.core.registry",
    "reader": "karat.core.registry",
    "report": "karat.reporting.page",
    "rescore": "karat.results.rescore",
    "robustness": "karat.analysis.robustness",
    "splitter": "karat.core.registry",
    "suite": "karat.execution.evaluation",
}
__all__ = sorted(["__version__", *_PUBLIC])


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
