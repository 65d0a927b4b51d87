"""Karat evaluates encoders and predictors: scores, robustness, statistics and reports."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from karat.core import lazy_names

__version__ = "0.1.0"

logging.getLogger("karat").addHandler(logging.NullHandler())

#: public names by the module that defines them; each is imported on first use
_MODULES = {
    "analysis.checks": "check_runs",
    "analysis.comparison": "compare",
    "analysis.next_task": "next_task",
    "analysis.robustness": "robustness",
    "core.dataset": "Dataset",
    "core.registry": "corruption dataset encoder predictor reader",
    "core.task": "Suite Task",
    "errors": "DefinitionError KaratError KaratWarning",
    "execution.arguments": "Machines Only Output Variants",
    "execution.evaluation": "evaluate suite",
    "metrics.metric": "metric",
    "reporting.leaderboard_output": "leaderboard",
    "reporting.page": "report",
    "results.rescore": "rescore",
    "results.run": "Run open_runs",
}
#: names that are in a package, too, and are imported from here as well
_ALSO = {
    "analysis.all_pairs": "AllPairs compare_all",
    "analysis.checks": "Finding Findings",
    "analysis.comparison": "Comparison Overall",
    "analysis.history": "History compare_to_history",
    "analysis.items": "ItemComparison compare_items",
    "analysis.next_task": "NextTask",
    "analysis.robustness": "Robustness",
    "analysis.slices": "SliceComparison compare_slices",
    "core.extension": "Command Extension",
    "core.predictions": "Predictions",
    "core.registry": "analogy_function composer head measure probe query_generator splitter "
    "vector_format",
    "errors": "ContractError DataError JobsFailed",
    "execution.progress": "Progress",
    "execution.splits": "Fold",
    "metrics.metric": "Metric",
    "models.model": "StatelessEncoder",
    "reporting.leaderboard_output": "Leaderboard",
    "results.rescore": "Rescored",
    "results.run": "load_artifact",
}
#: names that extensions add and many need; others of theirs are imported from here as well
_OF_EXTENSIONS = {"cheapest", "gate", "plot", "race", "same"}
_MODULES_OF_ALL = {
    module: f"{_MODULES.get(module, '')} {_ALSO.get(module, '')}"
    for module in {**_MODULES, **_ALSO}
}
_find = lazy_names(__name__, _MODULES_OF_ALL)
if TYPE_CHECKING:
    from karat.analysis.all_pairs import AllPairs as AllPairs
    from karat.analysis.all_pairs import compare_all as compare_all
    from karat.analysis.checks import Finding as Finding
    from karat.analysis.checks import Findings as Findings
    from karat.analysis.checks import check_runs as check_runs
    from karat.analysis.comparison import Comparison as Comparison
    from karat.analysis.comparison import Overall as Overall
    from karat.analysis.comparison import compare as compare
    from karat.analysis.history import History as History
    from karat.analysis.history import compare_to_history as compare_to_history
    from karat.analysis.items import ItemComparison as ItemComparison
    from karat.analysis.items import compare_items as compare_items
    from karat.analysis.next_task import NextTask as NextTask
    from karat.analysis.next_task import next_task as next_task
    from karat.analysis.robustness import Robustness as Robustness
    from karat.analysis.robustness import robustness as robustness
    from karat.analysis.slices import SliceComparison as SliceComparison
    from karat.analysis.slices import compare_slices as compare_slices
    from karat.core.dataset import Dataset as Dataset
    from karat.core.extension import Command as Command
    from karat.core.extension import Extension as Extension
    from karat.core.predictions import Predictions as Predictions
    from karat.core.registry import analogy_function as analogy_function
    from karat.core.registry import composer as composer
    from karat.core.registry import corruption as corruption
    from karat.core.registry import dataset as dataset
    from karat.core.registry import encoder as encoder
    from karat.core.registry import head as head
    from karat.core.registry import measure as measure
    from karat.core.registry import predictor as predictor
    from karat.core.registry import probe as probe
    from karat.core.registry import query_generator as query_generator
    from karat.core.registry import reader as reader
    from karat.core.registry import splitter as splitter
    from karat.core.registry import vector_format as vector_format
    from karat.core.task import Suite as Suite
    from karat.core.task import Task as Task
    from karat.errors import ContractError as ContractError
    from karat.errors import DataError as DataError
    from karat.errors import DefinitionError as DefinitionError
    from karat.errors import JobsFailed as JobsFailed
    from karat.errors import KaratError as KaratError
    from karat.errors import KaratWarning as KaratWarning
    from karat.execution.arguments import Machines as Machines
    from karat.execution.arguments import Only as Only
    from karat.execution.arguments import Output as Output
    from karat.execution.arguments import Variants as Variants
    from karat.execution.evaluation import evaluate as evaluate
    from karat.execution.evaluation import suite as suite
    from karat.execution.progress import Progress as Progress
    from karat.execution.splits import Fold as Fold
    from karat.ext.cluster.gather import Gathering as Gathering
    from karat.ext.cluster.gather import gather as gather
    from karat.ext.compat.convert import Imported as Imported
    from karat.ext.compat.convert import import_results as import_results
    from karat.ext.decide.cheapest import Cheapest as Cheapest
    from karat.ext.decide.cheapest import cheapest as cheapest
    from karat.ext.decide.gate import Gate as Gate
    from karat.ext.decide.gate import GateRates as GateRates
    from karat.ext.decide.gate import NewRuns as NewRuns
    from karat.ext.decide.gate import calibrate_gate as calibrate_gate
    from karat.ext.decide.gate import gate as gate
    from karat.ext.decide.power import Power as Power
    from karat.ext.decide.power import power as power
    from karat.ext.decide.race import Race as Race
    from karat.ext.decide.race import RaceReplay as RaceReplay
    from karat.ext.decide.race import race as race
    from karat.ext.decide.race import replay_race as replay_race
    from karat.ext.decide.same_encoder import Fingerprint as Fingerprint
    from karat.ext.decide.same_encoder import Same as Same
    from karat.ext.decide.same_encoder import same as same
    from karat.ext.decide.shrink import Shrunk as Shrunk
    from karat.ext.decide.shrink import shrink as shrink
    from karat.ext.plots.figures import Plot as Plot
    from karat.ext.plots.figures import plot as plot
    from karat.ext.publish.site import site as site
    from karat.ext.publish.tracking import track as track
    from karat.ext.publish.verification import Verification as Verification
    from karat.ext.publish.verification import verify as verify
    from karat.metrics.metric import Metric as Metric
    from karat.metrics.metric import metric as metric
    from karat.models.model import StatelessEncoder as StatelessEncoder
    from karat.reporting.leaderboard_output import Leaderboard as Leaderboard
    from karat.reporting.leaderboard_output import leaderboard as leaderboard
    from karat.reporting.page import report as report
    from karat.results.rescore import Rescored as Rescored
    from karat.results.rescore import rescore as rescore
    from karat.results.run import Run as Run
    from karat.results.run import load_artifact as load_artifact
    from karat.results.run import open_runs as open_runs


def __getattr__(name: str) -> Any:
    if name == "__all__":
        from karat.core.extension import builtin_parts

        names = " ".join(_MODULES.values()).split()
        added = _OF_EXTENSIONS & {*builtin_parts("name")}
        value: Any = sorted(["__version__", *names, *added])
    else:
        value = _find(name)
    globals()[name] = value
    return value


def importable_names() -> list[str]:
    """Return all names that can be imported from here, also those that are in a package, too."""
    from karat.core.extension import builtin_parts

    names = [name for names in _MODULES_OF_ALL.values() for name in names.split()]
    return sorted({*names, *(name for name in builtin_parts("name") if "." not in name)})


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
