"""Metrics of Predictions: name, direction, range and requirements, declared by one decorator.

A family with a cut-off is registered as ``"hits@k"``, takes ``(predictions, k)`` and is requested
as ``"hits@10"``.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from karat.core import registry
from karat.core.metric_names import canonical_metric, metric_hint
from karat.core.predictions import Predictions
from karat.errors import DefinitionError, KaratError, did_you_mean

Function = TypeVar("Function", bound=Callable[..., float])
Shared = TypeVar("Shared")
#: names of metrics in MTEB; in addition ``"ndcg_at_10"`` is ``"ndcg@10"``, and so on
MTEB = {
    "accuracy": "acc",
    "ap": "pr_auc",
    "cosine_spearman": "spearman",
    "cosine_pearson": "pearson",
    "cosine_ap": "pr_auc",
    "cosine_f1": "f1_best",
    "cosine_accuracy": "acc_best",
    "cosine_precision": "f1_best_precision",
    "cosine_recall": "f1_best_recall",
}
#: a score beyond the range of its metric by this share is rounded, not on another scale
ROUNDED = 1e-6
#: suffix of a metric that ignores questions without vectors
COVERED = "_covered"


class Undefined(KaratError):
    """A metric has no value for these predictions. The message is the reason shown to users."""


@dataclass(frozen=True)
class Metric:
    """A metric and its properties.

    Attributes
    ----------
    name
        The name in tasks.
    compute
        Takes Predictions and returns the value; may raise ``Undefined``. A family also takes ``k``.
    higher_is_better
        Whether a higher value is better.
    range
        The lowest and the highest possible value, infinite if unbounded.
    needs
        What the Predictions must contain, names from ``NEEDS``.
    about
        One-line description.
    weighted
        Whether it uses the ``weight`` of rows.
    by_group
        Whether it is the mean of one value per group.
    positive_class
        Whether, of two classes, it measures one: the value changes if they are swapped.
    """

    name: str
    compute: Callable[..., float]
    higher_is_better: bool
    range: tuple[float, float]
    needs: tuple[str, ...]
    about: str
    weighted: bool = False
    by_group: bool = False
    positive_class: bool = False

    def __repr__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        return f"<Metric {self.name}: {better} is better>"


def metric(
    name: str,
    *,
    higher_is_better: bool = True,
    range: tuple[float, float] = (0.0, 1.0),
    needs: tuple[str, ...] = (),
    weighted: bool = False,
    by_group: bool = False,
    positive_class: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a metric; the function itself is not changed.

    Parameters
    ----------
    name
        The name in tasks.
    higher_is_better, range, needs, weighted, by_group, positive_class
        Properties of the metric, as in ``Metric``.

    >>> metric("error", higher_is_better=False, needs=("clases",))
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: metric "error": unknown need "clases". Did you mean "classes"?
    """
    for need in needs:
        if need not in NEEDS:
            hint = did_you_mean(need, NEEDS) or f" Available: {', '.join(NEEDS)}."
            raise DefinitionError(f'metric "{name}": unknown need "{need}".{hint}')

    def add(compute: Function) -> Function:
        summary = (inspect.getdoc(compute) or "").partition("\n")[0]
        definition = Metric(
            name,
            compute,
            higher_is_better=higher_is_better,
            range=range,
            needs=tuple(needs),
            about=summary,
            weighted=weighted,
            by_group=by_group,
            positive_class=positive_class,
        )
        registry.metrics.register(name, definition)
        return compute

    return add


def shared(function: Callable[[Predictions], Shared]) -> Callable[[Predictions], Shared]:
    """Compute a function of Predictions once for all metrics; nobody may change its result."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def once(predictions: Predictions) -> Shared:
        memo = vars(predictions)
        if key not in memo:
            memo[key] = function(predictions)
        return cast(Shared, memo[key])

    return once


def of_each_row(
    function: Callable[[Predictions], np.ndarray],
) -> Callable[[Predictions], np.ndarray]:
    """Compute a value of each row once, also for Predictions that are some of the rows.

    The values may depend on other rows, but must be right for any selection of rows, as ranks are.
    """
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def once(predictions: Predictions) -> np.ndarray:
        facts = predictions.row_facts
        if key not in facts:
            facts[key] = function(predictions)
        return facts[key]

    return once


def get_metric(name: str) -> Metric:
    """Return a metric by name; ``"ndcg@10"`` is the family ``"ndcg@k"`` with k = 10.

    Names of MTEB are accepted, and those of scikit-learn for a metric with the same value; a score
    that scikit-learn negates keeps its sign here. Other scorers and metric functions of
    scikit-learn have its values. ``"…_covered"`` ignores questions that the model cannot answer.

    >>> get_metric("hits@3").name
    'hits@3'
    >>> get_metric("ndcg_at_10").about == get_metric("ndcg@10").about
    True
    >>> get_metric("roc_auc").name, get_metric("neg_root_mean_squared_error").name
    ('auc', 'rmse')
    >>> get_metric("hits@0")
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: metric "hits@0": k must be an integer >= 1, as in "hits@10".
    """
    if name.endswith(COVERED) and name not in registry.metrics:
        return _covered(get_metric(name.removesuffix(COVERED)))
    name = canonical_metric(name)
    ours = MTEB.get(name) or re.sub("_at_([0-9]+)$", r"@\1", name)
    if ours != name and name not in registry.metrics:
        return replace(get_metric(ours), name=name)
    stem, _, cut = name.partition("@")
    family = f"{stem}@k"
    if ":" in name or (name in registry.metrics and name != family):
        return _plain_metric(name)
    if family not in registry.metrics:
        of_scikit_learn = registry.load_object("karat.metrics.functions:scikit_learn_metric")
        definition: Metric | None = of_scikit_learn(name)
        if definition is None:
            raise _unknown_metric(name, _askable_names(cut))
        return definition
    if not re.fullmatch("[1-9][0-9]*", cut):
        raise DefinitionError(f'metric "{name}": k must be an integer >= 1, as in "{stem}@10".')
    family_metric = _plain_metric(family)
    return replace(family_metric, name=name, compute=partial(family_metric.compute, k=int(cut)))


def metric_label(name: str, higher_is_better: bool | None = None) -> str:
    """Return a metric name with an arrow that shows its direction.

    >>> metric_label("rmse")
    'rmse ↓'
    """
    up = get_metric(name).higher_is_better if higher_is_better is None else higher_is_better
    return f"{name} {'↑' if up else '↓'}"


def has_positive_class(name: str) -> bool:
    """Return whether a metric measures the positive of two classes; False if it is unknown.

    >>> has_positive_class("f1"), has_positive_class("acc")
    (True, False)
    """
    try:
        return get_metric(name).positive_class
    except KaratError:
        return False


def is_ratio(metric: str, values: Sequence[float] | np.ndarray) -> bool:
    """Return whether differences of a metric are relative: it starts at 0 and is unbounded.

    For a metric that is not registered, whether a value lies outside [-1, 1] by more than rounding.

    >>> is_ratio("rmse", [0.5]), is_ratio("acc", [0.5]), is_ratio("r2", [-3.0])
    (True, False, False)
    >>> is_ratio("their score", [1.0000001]), is_ratio("their score", [87.5])
    (False, True)
    """
    try:
        return get_metric(metric).range == (0.0, np.inf)
    except KaratError:
        return bool(np.nanmax(np.abs([*values, 0.0])) > 1 + ROUNDED)


def metric_range(metric: str) -> float:
    """Return the width of the range of a metric; 1 if it has none.

    >>> metric_range("acc"), metric_range("spearman"), metric_range("rmse")
    (1.0, 2.0, 1.0)
    """
    try:
        low, high = get_metric(metric).range
    except KaratError:
        return 1.0
    return high - low if math.isfinite(high - low) else 1.0


def _covered(full: Metric) -> Metric:
    """Return the metric restricted to the questions that the model could answer."""

    def compute(predictions: Predictions) -> float:
        return _value(full, predictions.covered(full.by_group))

    description = f"{full.about.rstrip('.')}; only of questions that the model can answer."
    return replace(full, name=full.name + COVERED, compute=compute, about=description)


def _unknown_metric(name: str, names: list[str]) -> DefinitionError:
    hint = metric_hint(name, names)
    return DefinitionError(f'there is no metric "{name}".{hint}   (karat list metrics)')


def _askable_names(cut: str) -> list[str]:
    k = cut if cut.isdecimal() else "10"
    return [name[:-1] + k if name.endswith("@k") else name for name in registry.metrics]


def _plain_metric(name: str) -> Metric:
    definition = registry.metrics.get(name)
    if not isinstance(definition, Metric):
        # a path or an entry point names the function; importing it has registered the metric
        path = (getattr(definition, name, "?") for name in ("__module__", "__qualname__"))
        origin = ":".join(map(str, path))
        names = [alias for alias in registry.metrics if registry.metrics.origin(alias) == origin]
        registered = map(registry.metrics.get, names)
        definition = next((other for other in registered if isinstance(other, Metric)), definition)
    if not isinstance(definition, Metric):
        raise DefinitionError(f'"{name}" is not a metric; decorate it with @karat.metric(...).')
    return definition


def score(name: str, predictions: Predictions) -> tuple[float | None, str]:
    """Return the value and an empty reason, or None and the reason. Never raises.

    >>> score("rmse", Predictions(predictions=[1, 2], target=[1, 4]))
    (1.4142135623730951, '')
    >>> value, reason = score("acc", Predictions(predictions=[1, 2], target=[1, 4]))
    >>> reason.partition(";")[0]
    'Scoring acc: it needs class labels as targets and predictions'
    """
    try:
        return _value(get_metric(name), predictions), ""
    except KaratError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return None, f"Scoring {name}: {' '.join(reason.split())}"


def _value(definition: Metric, predictions: Predictions) -> float:
    if not len(predictions):
        raise Undefined("there are no rows to score.")
    for need in definition.needs:
        what, is_met = NEEDS[need]
        if not is_met(predictions):
            raise Undefined(f"it needs {what}; got {_description(predictions)}.")
    if predictions.weight is not None and not definition.weighted:
        raise Undefined("it does not support weighted rows.")
    _check_nan(definition, predictions)
    # a division by zero shows in the value, and is reported below
    with np.errstate(all="ignore"):
        value = float(definition.compute(predictions))
    if not math.isfinite(value):
        raise Undefined(f"the value is {value}.")
    return value


def _check_nan(definition: Metric, predictions: Predictions) -> None:
    if not {"numbers", "scores", "clusters", "probabilities"} & set(definition.needs):
        return
    arrays = {"predictions": predictions.predictions, "targets": predictions.target}
    if "probabilities" in definition.needs and predictions.probabilities is not None:
        arrays["rows of probabilities"] = predictions.probabilities.sum(axis=1)
    for what, values in arrays.items():
        if nan := int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0:
            raise Undefined(f"{nan} of {len(values)} {what} are NaN.")


def _description(predictions: Predictions) -> str:
    names = predictions.labels if predictions.truths == "classes" else ()
    count = f" ({len(names)})" if names else ""
    return f"targets: {predictions.truths}{count}, predictions: {predictions.answers}"


def _is_binary(predictions: Predictions) -> bool:
    return len(predictions.labels) == 2


def _has_probabilities(predictions: Predictions) -> bool:
    if predictions.probabilities is not None:
        return predictions.truths == "classes"
    return predictions.answers == "numbers" and _is_binary(predictions)


def _holds(truths: str, answers: str) -> Callable[[Predictions], bool]:
    return lambda p: (p.truths, p.answers) == (truths, answers)


#: possible requirements of a metric: the description, and whether Predictions meet it
NEEDS: dict[str, tuple[str, Callable[[Predictions], Any]]] = {
    "classes": ("class labels as targets and predictions", _holds("classes", "classes")),
    "binary": ("exactly two classes", _is_binary),
    "probabilities": (
        "class probabilities (or, with two classes, numeric scores)",
        _has_probabilities,
    ),
    "numbers": ("numbers as targets and predictions", _holds("numbers", "numbers")),
    "scores": ("numbers as predictions", lambda p: p.answers == "numbers"),
    "clusters": ("classes as targets and clusters as predictions", _holds("classes", "clusters")),
    "group": ("the group of each row", lambda p: p.group is not None),
    "rank": ("the rank of the target", lambda p: p.rank is not None),
}
