"""Task: a dataset, a probe, a split and metrics. Data only, no code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import pandas as pd

from karat.core.dataset import Dataset
from karat.core.metric_names import canonical_metric
from karat.core.notebook import facts_html
from karat.core.registry import load_object
from karat.errors import DefinitionError, did_you_mean

MISSING = ("ignore", "penalize")
#: names of tasks in the text form of a suite
SHOWN_TASKS = 6
KEPT = ("all", "clean")
FEWEST_FOLDS = 2


def wrong_folds(folds: Any) -> str:
    """Return what is wrong with a number of folds, or an empty string.

    >>> wrong_folds(10), wrong_folds(None)
    ('', '')
    >>> wrong_folds([0, 1]).partition("; ")[2]
    'karat.Only(folds=[0, 1]) runs these.'
    >>> wrong_folds(1).partition("; ")[2]
    'karat.Only(folds=1) (--only-fold 1) runs this one.'
    """
    is_number = isinstance(folds, Integral) and not isinstance(folds, bool)
    if folds is None or (is_number and FEWEST_FOLDS <= folds < 2**31):
        return ""
    several = isinstance(folds, list | tuple) and all(isinstance(fold, int) for fold in folds)
    option = "" if several else f" (--only-fold {folds})"
    hint = f"; karat.Only(folds={folds!r}){option} runs {'these' if several else 'this one'}"
    is_which = (is_number and 0 <= folds < FEWEST_FOLDS) or (several and len(folds) > 0)
    text = f"folds is the number of folds, an integer >= {FEWEST_FOLDS}, got {folds!r}"
    return f"{text}{hint if is_which else ''}."


def _function_name(metric: object) -> str:
    """Return the name of a metric function or scorer of scikit-learn, or of the user's own."""
    name: str = load_object("karat.metrics.functions:function_name")(metric)
    return name


@dataclass(frozen=True)
class Task:
    """One evaluation of a model. Everything but name and dataset has a default.

    Attributes
    ----------
    name, description
        The name in results, and one line for ``karat list tasks``.
    dataset
        A Dataset, the name of a defined one, or a function that loads it when it is needed.
    ask
        Query generator: ``"partial-rows"``, ``"text-queries"`` or a mapping ``{"use": …}`` with
        parameters. By default the queries of the dataset itself.
    probe
        ``"trained"``, ``"similarity"``, ``"analogy"``, ``"links"``, ``"nearest"``,
        ``"same-class"``, ``"duplicates"`` or a mapping ``{"use": …}`` with parameters.
    split
        ``"kfold"``, ``"holdout"``, ``"time"``, ``"all"``, ``"fixed"`` or a mapping ``{"use": …}``.
        The default, ``"auto"``, uses the train and test part of the dataset, if it has one, and
        k-fold cross-validation otherwise.
    folds
        Number of folds of the split. A split without a number of folds refuses it.
    cv
        Folds as in scikit-learn, instead of ``split``: a number of folds in the order of the rows,
        a splitter such as ``GroupKFold()``, or pairs of train rows and test rows.
    metrics
        Names, or metric functions and scorers of scikit-learn. The first one is the primary metric.
        Empty: the defaults for the data.
    positive
        The positive class of two. Default: that of the dataset.
    roles
        The role of each field in the order of the fields, for encoders with prompts: ``"query"``,
        ``"document"``, or the name of a prompt such as ``"classification"``. If a field is a
        query, all other items are documents. Default: no roles.
    missing
        How to treat queries about items without a vector: ``"ignore"`` leaves them out and records
        the coverage, ``"penalize"`` scores a default answer.
    corruptions
        Severities by the name of a corruption, or of several (``a+b``, ``a@0.2+b@0.1``); the test
        fold is also evaluated under each.
    draws
        Number of random draws of each corruption, for confidence intervals.
    keep_predictions
        ``"all"`` stores the predictions on every view, ``"clean"`` only those on clean data. The
        scores of corrupted views and their confusion matrices are stored in either case.
    usual
        Default metrics for ``"binary"``, ``"multiclass"`` and ``"regression"`` targets.
    max_rows
        Maximum number of rows; of larger data, a random sample is used.
    max_folds
        Maximum number of folds to run, the first ones. Default: the constraint's maximum.
    max_runtime_seconds, max_mem_size_mb, cores, gpus
        Limits of each job. Default: the constraint's limits.
    ignore
        Codes of checks to skip for this task, such as ``"KRT004"``.
    kind
        The task kind on a leaderboard, such as ``"classification"``.

    >>> Task("churn", "churn", split={"use": "kfold", "folds": 10}).probe
    {'use': 'trained'}
    """

    name: str
    dataset: Dataset | str | Callable[[], Dataset]
    probe: Mapping[str, Any] | str = "trained"
    split: Mapping[str, Any] | str = "auto"
    metrics: Sequence[Any] = ()
    missing: str = "ignore"
    corruptions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    draws: int = 1
    kind: str = ""
    max_rows: int | None = None
    description: str = ""
    ask: Mapping[str, Any] | str | None = None
    max_runtime_seconds: float | None = None
    max_mem_size_mb: int | None = None
    cores: int | None = None
    gpus: int | None = None
    folds: int | None = None
    max_folds: int | None = None
    cv: Any = None
    usual: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    positive: Any = None
    keep_predictions: str = "all"
    roles: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DefinitionError(f"task name must be a non-empty string, got {self.name!r}.")
        if not isinstance(self.dataset, Dataset | str) and not callable(self.dataset):
            text = f"dataset must be a Dataset or a name, got {type(self.dataset).__name__}; "
            raise self._error(text + "create one with karat.Dataset.from_table.")
        for name in ("probe", "split", *(["ask"] if self.ask is not None else [])):
            value = getattr(self, name)
            value = {"use": value} if isinstance(value, str) else value
            if not isinstance(value, Mapping) or not isinstance(value.get("use"), str):
                raise self._error(f'{name} must be a name or a mapping with "use".')
            object.__setattr__(self, name, dict(value))
        if self.missing not in MISSING:
            near = did_you_mean(self.missing, MISSING)
            text = f'missing must be "ignore" or "penalize", got "{self.missing}".{near}'
            raise self._error(text)
        if self.keep_predictions not in KEPT:
            got = f"{self.keep_predictions!r}.{did_you_mean(str(self.keep_predictions), KEPT)}"
            raise self._error(f'keep_predictions must be "all" or "clean", got {got}')
        self._check_limits()
        object.__setattr__(self, "cv", self._checked_cv())
        object.__setattr__(self, "metrics", self._checked_metrics())
        object.__setattr__(self, "ignore", self._checked_ignore())
        object.__setattr__(self, "roles", self._checked_roles())
        object.__setattr__(self, "corruptions", self._checked_corruptions())

    def __repr__(self) -> str:
        parts = [f"data {self._data_name()}", f"metrics {', '.join(self.metrics) or 'by default'}"]
        parts += [f"probe {_use(self.probe)}", f"split {_use(self.split)}"]
        corrupted = f", {len(self.corruptions)} corruptions" if self.corruptions else ""
        return f"<Task {self.name}: {', '.join(parts)}{corrupted}>"

    def _repr_html_(self) -> str:
        facts = {
            "data": self.dataset if isinstance(self.dataset, Dataset) else self._data_name(),
            "metrics": ", ".join(self.metrics) or "by default",
            "probe": _settings(self.probe),
            "split": _settings(self.split),
            "corruptions": ", ".join(self.corruptions),
            "description": self.description,
        }
        return facts_html(f"Task {self.name}", facts)

    def _data_name(self) -> str:
        if isinstance(self.dataset, str):
            return self.dataset
        return str(getattr(self.dataset, "name", None) or self.name)

    def _error(self, text: str) -> DefinitionError:
        return DefinitionError(f'task "{self.name}": {text}')

    def _check_limits(self) -> None:
        for name in ("draws", "max_rows", "max_mem_size_mb", "cores", "gpus", "max_folds"):
            number = getattr(self, name)
            if number is None and name != "draws":
                continue
            if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
                raise self._error(f"{name} must be an integer >= 1, got {number!r}.")
        seconds = self.max_runtime_seconds
        if seconds is not None and (not isinstance(seconds, Real) or not 0 < seconds < math.inf):
            raise self._error(f"max_runtime_seconds must be a number > 0, got {seconds!r}.")
        if wrong := wrong_folds(self.folds):
            raise self._error(wrong)

    def _checked_cv(self) -> Any:
        cv: Any = self.cv
        if cv is None:
            return None
        for name, is_given in (("folds", self.folds), ("split", self.split["use"] != "auto")):  # type: ignore[index]
            if is_given:
                raise self._error(f"cv and {name} exclude each other; remove one.")
        if isinstance(cv, Integral) and not isinstance(cv, bool) and int(cv) >= FEWEST_FOLDS:
            return int(cv)
        if isinstance(cv, type):
            raise self._error(f"cv must be a splitter, not a class: {cv.__name__}().")
        if callable(getattr(cv, "split", None)) and not isinstance(cv, str):
            return cv
        pairs = list(cv) if isinstance(cv, Iterable) and not isinstance(cv, str | Mapping) else []
        if not pairs or any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
            raise self._error(
                f"cv must be a number of folds >= {FEWEST_FOLDS}, a splitter such as KFold(5), or "
                f"a list of pairs (train rows, test rows), got {cv!r:.80}."
            )
        return pairs

    def _checked_metrics(self) -> tuple[str, ...]:
        single = isinstance(self.metrics, str) or callable(self.metrics)
        metrics: Any = (self.metrics,) if single else self.metrics
        if isinstance(metrics, Mapping) or not isinstance(metrics, Iterable):
            raise self._error(f"metrics must be a list of names, got {metrics!r}.")
        names = []
        for metric in metrics:
            if not isinstance(metric, str) and not callable(metric):
                raise self._error(f"a metric must be a name or a function, got {metric!r}.")
            name = metric if isinstance(metric, str) else _function_name(metric)
            names.append(canonical_metric(name))
        return tuple(dict.fromkeys(names))

    def _checked_ignore(self) -> tuple[str, ...]:
        codes = (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore)
        for code in codes:
            if not re.fullmatch("KRT[0-9]{1,3}", str(code)):
                raise self._error(f"ignore must hold codes such as KRT004, got {code!r}.")
        return codes

    def _checked_roles(self) -> tuple[str, ...]:
        roles = (self.roles,) if isinstance(self.roles, str) else tuple(self.roles)
        for role in roles:
            if not isinstance(role, str) or not role.strip():
                raise self._error(f"roles must be a list of names such as query, got {role!r}.")
        return roles

    def _checked_corruptions(self) -> dict[str, tuple[float, ...]]:
        if not isinstance(self.corruptions, Mapping):
            raise self._error("corruptions must be a mapping {name: [severities]}.")
        chosen = {}
        for name, severities in self.corruptions.items():
            several = isinstance(severities, Iterable) and not isinstance(severities, str | Mapping)
            values: list[Any] = list(severities) if several else [severities]
            for value in values:
                number = isinstance(value, Real) and not isinstance(value, bool)
                if not number or not 0 <= value < math.inf:
                    text = f"a severity must be a number >= 0, got {value!r}."
                    raise self._error(f"corruptions: {name}: {text}")
            chosen[name] = tuple(dict.fromkeys(float(value) for value in values))
        return chosen


@dataclass(frozen=True)
class Suite:
    """A named list of tasks; iterate over it to get them.

    Attributes
    ----------
    name, description
        The name in results, and one line for ``karat list suites``.
    tasks
        The tasks, in the order in which they are shown.
    models
        Names of the models that run if none is given.
    """

    name: str
    tasks: tuple[Task, ...]
    models: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if not isinstance(task, Task):
                raise DefinitionError(
                    f'suite "{self.name}": {task!r} is not a karat.Task; '
                    f"use karat.suite(NAME) to find tasks by name."
                )
        object.__setattr__(self, "tasks", tuple(self.tasks))
        object.__setattr__(self, "models", tuple(self.models))

    def __repr__(self) -> str:
        names = [task.name for task in self.tasks]
        more = ", …" if len(names) > SHOWN_TASKS else ""
        return f"<Suite {self.name}: {len(names)} tasks: {', '.join(names[:SHOWN_TASKS])}{more}>"

    def _repr_html_(self) -> str:
        rows = [
            {"task": task.name, "kind": task.kind, "metrics": ", ".join(task.metrics)}
            | {"probe": _use(task.probe), "description": task.description}
            for task in self.tasks
        ]
        facts = {"models": ", ".join(self.models), "description": self.description}
        return facts_html(f"Suite {self.name}: {len(rows)} tasks", facts, [pd.DataFrame(rows)])

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


def _use(part: Mapping[str, Any] | str) -> str:
    return part if isinstance(part, str) else str(part.get("use"))


def _settings(part: Mapping[str, Any] | str) -> str:
    """Return the name of a component with its parameters."""
    if isinstance(part, str):
        return part
    params = ", ".join(f"{name}: {value}" for name, value in part.items() if name != "use")
    return f"{_use(part)} ({params})" if params else _use(part)
