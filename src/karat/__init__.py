"""Karat evaluates encoders and predictors: scores, robustness, statistics and reports."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

logging.getLogger("karat").addHandler(logging.NullHandler())

#: public names and the modules that define them; each is imported on first use
_PUBLIC = {
    "AllPairs": "karat.analysis.all_pairs",
    "Comparison": "karat.analysis.comparison",
    "ContractError": "karat.errors",
    "DataError": "karat.errors",
    "Dataset": "karat.core.dataset",
    "DefinitionError": "karat.errors",
    "Finding": "karat.analysis.check_facts",
    "Findings": "karat.analysis.check_facts",
    "History": "karat.analysis.history",
    "KaratError": "karat.errors",
    "Leaderboard": "karat.reporting.leaderboard_output",
    "Metric": "karat.metrics.metric",
    "Predictions": "karat.core.predictions",
    "Progress": "karat.execution.progress",
    "Run": "karat.results.run",
    "StatelessEncoder": "karat.models.model",
    "Suite": "karat.core.task",
    "Task": "karat.core.task",
    "check_runs": "karat.analysis.checks",
    "compare": "karat.analysis.comparison",
    "compare_all": "karat.analysis.comparison",
    "compare_to_history": "karat.analysis.comparison",
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
    "probe": "karat.core.registry",
    "query_generator": "karat.core.registry",
    "reader": "karat.core.registry",
    "report": "karat.reporting.page",
    "rescore": "karat.results.rescore",
    "robustness": "karat.analysis.robustness",
    "splitter": "karat.core.registry",
    "suite": "karat.execution.evaluation",
}
__all__ = sorted(["__version__", *_PUBLIC])

if TYPE_CHECKING:
    from karat.analysis.all_pairs import AllPairs as AllPairs
    from karat.analysis.check_facts import Finding as Finding
    from karat.analysis.check_facts import Findings as Findings
    from karat.analysis.checks import check_runs as check_runs
    from karat.analysis.comparison import Comparison as Comparison
    from karat.analysis.comparison import compare as compare
    from karat.analysis.comparison import compare_all as compare_all
    from karat.analysis.comparison import compare_to_history as compare_to_history
    from karat.analysis.history import History as History
    from karat.analysis.robustness import robustness as robustness
    from karat.compat.convert import import_results as import_results
    from karat.core.dataset import Dataset as Dataset
    from karat.core.predictions import Predictions as Predictions
    from karat.core.registry import composer as composer
    from karat.core.registry import corruption as corruption
    from karat.core.registry import dataset as dataset
    from karat.core.registry import encoder as encoder
    from karat.core.registry import head as head
    from karat.core.registry import predictor as predictor
    from karat.core.registry import probe as probe
    from karat.core.registry import query_generator as query_generator
    from karat.core.registry import reader as reader
    from karat.core.registry import splitter as splitter
    from karat.core.task import Suite as Suite
    from karat.core.task import Task as Task
    from karat.errors import ContractError as ContractError
    from karat.errors import DataError as DataError
    from karat.errors import DefinitionError as DefinitionError
    from karat.errors import KaratError as KaratError
    from karat.execution.evaluation import evaluate as evaluate
    from karat.execution.evaluation import suite as suite
    from karat.execution.progress import Progress as Progress
    from karat.metrics.metric import Metric as Metric
    from karat.metrics.metric import metric as metric
    from karat.models.model import StatelessEncoder as StatelessEncoder
    from karat.reporting.leaderboard_output import Leaderboard as Leaderboard
    from karat.reporting.leaderboard_output import leaderboard as leaderboard
    from karat.reporting.page import report as report
    from karat.reporting.plots import plot as plot
    from karat.results.rescore import rescore as rescore
    from karat.results.run import Run as Run
    from karat.results.run import load_artifact as load_artifact
    from karat.results.run import open_runs as open_runs


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
