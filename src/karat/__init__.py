"""Karat tells people what an encoder or a predictor is worth."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: public names and where they live; each is imported when it is first used
_PUBLIC = {
    "Dataset": "karat.dataset",
    "KaratError": "karat.errors",
    "Predictions": "karat.predictions",
    "Progress": "karat.progress",
    "Run": "karat.results.run",
    "StatelessEncoder": "karat.models.base",
    "Suite": "karat.task",
    "Task": "karat.task",
    "asker": "karat.registry",
    "check_runs": "karat.results.rules.check",
    "compare": "karat.results.either",
    "composer": "karat.registry",
    "corruption": "karat.registry",
    "dataset": "karat.registry",
    "encoder": "karat.registry",
    "evaluate": "karat.evaluate",
    "head": "karat.registry",
    "import_results": "karat.results.imports",
    "leaderboard": "karat.report.boards",
    "load_artifact": "karat.results.artifacts",
    "metric": "karat.metrics.base",
    "open_runs": "karat.results.run",
    "plot": "karat.report.pictures.kinds",
    "predictor": "karat.registry",
    "reader": "karat.registry",
    "report": "karat.report.page",
    "rescore": "karat.results.rescore",
    "robustness": "karat.results.robustness",
    "splitter": "karat.registry",
    "suite": "karat.evaluate",
}
__all__ = sorted(["__version__", *_PUBLIC])

if TYPE_CHECKING:
    from karat.dataset import Dataset as Dataset
    from karat.errors import KaratError as KaratError
    from karat.evaluate import evaluate as evaluate
    from karat.evaluate import suite as suite
    from karat.metrics.base import metric as metric
    from karat.models.base import StatelessEncoder as StatelessEncoder
    from karat.predictions import Predictions as Predictions
    from karat.progress import Progress as Progress
    from karat.registry import asker as asker
    from karat.registry import composer as composer
    from karat.registry import corruption as corruption
    from karat.registry import dataset as dataset
    from karat.registry import encoder as encoder
    from karat.registry import head as head
    from karat.registry import predictor as predictor
    from karat.registry import reader as reader
    from karat.registry import splitter as splitter
    from karat.report.boards import leaderboard as leaderboard
    from karat.report.page import report as report
    from karat.report.pictures.kinds import plot as plot
    from karat.results.artifacts import load_artifact as load_artifact
    from karat.results.either import compare as compare
    from karat.results.imports import import_results as import_results
    from karat.results.rescore import rescore as rescore
    from karat.results.robustness import robustness as robustness
    from karat.results.rules.check import check_runs as check_runs
    from karat.results.run import Run as Run
    from karat.results.run import open_runs as open_runs
    from karat.task import Suite as Suite
    from karat.task import Task as Task


class _Package(ModuleType):
    """Gives public names on first use; a module of the same name does not take their place."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'karat' has no attribute {name!r}")
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # importing karat.evaluate would otherwise put the module where the function belongs
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
