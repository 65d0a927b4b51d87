"""Metric: a named number about Predictions, which way is better, and what it needs to exist.

What is known about one metric stands in one place, its decorator. A family with a cut-off is
registered as ``"hits@k"``, takes ``(predictions, k)`` and is asked for as ``"hits@10"``.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from karat import registry
from karat.errors import DefinitionError, KaratError, did_you_mean, unknown
from karat.predictions import Predictions

Function = TypeVar("Function", bound=Callable[..., float])


class Undefined(KaratError):
    """A metric has no value for these predictions. The message is the reason shown to people."""


@dataclass(frozen=True)
class Metric:
    """A metric and all that is known about it.

    Attributes
    ----------
    compute
        From Predictions to the value; may raise ``Undefined``. A family also takes ``k``.
    range
        The lowest and the highest possible value, infinite where there is no bound.
    needs
        What the Predictions must offer, names from ``NEEDS``.
    about
        What it is, in one line.
    weighted
        Whether it counts a row as often as the Predictions' ``weight`` says.
    by_group
        Whether each group has a value of its own, of which the mean is taken.
    """

    name: str
    compute: Callable[..., float]
    higher_is_better: bool
    range: tuple[float, float]
    needs: tuple[str, ...]
    about: str
    weighted: bool = False
    by_group: bool = False


def metric(
    name: str,
    *,
    higher_is_better: bool = True,
    range: tuple[float, float] = (0.0, 1.0),
    needs: tuple[str, ...] = (),
    weighted: bool = False,
    by_group: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a metric under a name; the function itself stays as it is.

    >>> metric("error", higher_is_better=False, needs=("clases",))
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: metric "error" cannot need "clases". Did you mean "classes"?
    """
    for need in needs:
        if need not in NEEDS:
            hint = did_you_mean(need, NEEDS) or f" It may need: {', '.join(NEEDS)}."
            raise DefinitionError(f'metric "{name}" cannot need "{need}".{hint}')

    def add(compute: Function) -> Function:
        about = (inspect.getdoc(compute) or "").partition("\n")[0]
        part = Metric(
            name, compute, higher_is_better, range, tuple(needs), about, weighted, by_group
        )
        registry.metrics.register(name, part)
        return compute

    return add


#: what MTEB calls metrics of ours; ``"ndcg_at_10"`` is ``"ndcg@10"`` there, and so are others
MTEB = {
    "accuracy": "acc",
    "ap": "pr_auc",
    "cosine_spearman": "spearman",
    "cosine_pearson": "pearson",
    "cosine_ap": "pr_auc",
    "cosine_f1": "f1_best",
    "cosine_accuracy": "acc_best",
    "max_ap": "pr_auc",
    "max_f1": "f1_best",
    "max_accuracy": "acc_best",
}


#: what is behind the name of a metric that leaves out what the model does not know
COVERED = "_covered"


def get_metric(name: str) -> Metric:
    """Return the metric of this name; ``"ndcg@10"`` is the family ``"ndcg@k"`` with k = 10.

    Names of MTEB are known too. ``"…_covered"`` counts only what the model knew.

    >>> get_metric("hits@3").name
    'hits@3'
    >>> get_metric("ndcg_at_10").about == get_metric("ndcg@10").about
    True
    >>> get_metric("hits@0")
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: metric "hits@0": k must be 1, 2, 3, …, as in "hits@10".
    """
    if name.endswith(COVERED) and name not in registry.metrics:
        return _over_the_known(get_metric(name.removesuffix(COVERED)))
    ours = MTEB.get(name) or re.sub("_at_([0-9]+)$", r"@\1", name)
    if ours != name and name not in registry.metrics:
        return replace(get_metric(ours), name=name)
    stem, _, cut = name.partition("@")
    family = f"{stem}@k"
    if ":" in name or (name in registry.metrics and name != family):
        return _plain_metric(name)
    if family not in registry.metrics:
        raise unknown("metric", name, _askable_names(cut))
    if not re.fullmatch("[1-9][0-9]*", cut):
        raise DefinitionError(f'metric "{name}": k must be 1, 2, 3, …, as in "{stem}@10".')
    part = _plain_metric(family)
    return replace(part, name=name, compute=partial(part.compute, k=int(cut)))


def _over_the_known(part: Metric) -> Metric:
    """Return a metric of the questions the model could answer, whatever the others cost."""

    def compute(predictions: Predictions) -> float:
        return _value(part, predictions.covered(part.by_group))

    about = f"{part.about.rstrip('.')}; only of what the model knows."
    return replace(part, name=part.name + COVERED, compute=compute, about=about)


def _askable_names(cut: str) -> list[str]:
    k = cut if cut.isdecimal() else "10"
    return [name[:-1] + k if name.endswith("@k") else name for name in registry.metrics]


def _plain_metric(name: str) -> Metric:
    part = registry.metrics.get(name)
    if not isinstance(part, Metric):
        # a path or an entry point names the function; importing it has registered the metric
        origin = f"{getattr(part, '__module__', '?')}:{getattr(part, '__qualname__', '?')}"
        names = [known for known in registry.metrics if registry.metrics.origin(known) == origin]
        found = map(registry.metrics.get, names)
        part = next((other for other in found if isinstance(other, Metric)), part)
    if not isinstance(part, Metric):
        raise DefinitionError(f'"{name}" is not a metric; write @karat.metric(...) above it.')
    return part


def score(name: str, predictions: Predictions) -> tuple[float | None, str]:
    """Return the value and an empty reason, or nothing and the reason. Never raises.

    >>> score("rmse", Predictions(predictions=[1, 2], truth=[1, 4]))
    (1.4142135623730951, '')
    >>> value, reason = score("acc", Predictions(predictions=[1, 2], truth=[1, 4]))
    >>> reason.partition(";")[0]
    'Scoring acc: it needs class labels as truth and answers'
    """
    try:
        return _value(get_metric(name), predictions), ""
    except KaratError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return None, f"Scoring {name}: {' '.join(reason.split())}"


def _value(part: Metric, predictions: Predictions) -> float:
    if not len(predictions):
        raise Undefined("there are no rows to score.")
    for need in part.needs:
        what, met = NEEDS[need]
        if not met(predictions):
            raise Undefined(f"it needs {what}; here {_offered(predictions)}.")
    if predictions.weight is not None and not part.weighted:
        raise Undefined("it cannot count rows that stand for several questions (weight).")
    _check_numbers(part, predictions)
    # a division by zero shows in the value, and is reported below
    with np.errstate(all="ignore"):
        value = float(part.compute(predictions))
    if not math.isfinite(value):
        raise Undefined(f"the value is {value}.")
    return value


def _check_numbers(part: Metric, predictions: Predictions) -> None:
    if not {"numbers", "scores", "clusters", "probabilities"} & set(part.needs):
        return
    arrays = {"answers": predictions.predictions, "true values": predictions.truth}
    if "probabilities" in part.needs and predictions.probabilities is not None:
        arrays["rows of probabilities"] = predictions.probabilities.sum(axis=1)
    for what, values in arrays.items():
        empty = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
        if empty:
            raise Undefined(f"{empty} of {len(values)} {what} are not a number (NaN).")


def class_names(predictions: Predictions) -> tuple[str, ...]:
    """Return all class labels: the known ones in their order, then any other label met.

    A truth of the numbers 0 and 1 counts as two classes.

    >>> class_names(Predictions(["b", "a"], ["b", "b"], answers="classes", truths="classes"))
    ('a', 'b')
    """
    return predictions.labels


def _offered(predictions: Predictions) -> str:
    names = class_names(predictions) if predictions.truths == "classes" else ()
    count = f" ({len(names)})" if names else ""
    return f"truth: {predictions.truths}{count}, answers: {predictions.answers}"


def _is_binary(predictions: Predictions) -> bool:
    return len(class_names(predictions)) == 2


def _has_probabilities(predictions: Predictions) -> bool:
    if predictions.probabilities is not None:
        return predictions.truths == "classes"
    return predictions.answers == "numbers" and _is_binary(predictions)


#: what a metric may need of Predictions: how it is said to people, and whether it is there
NEEDS: dict[str, tuple[str, Callable[[Predictions], Any]]] = {
    "classes": (
        "class labels as truth and answers",
        lambda p: p.truths == "classes" and p.answers == "classes",
    ),
    "binary": ("exactly two classes", _is_binary),
    "probabilities": (
        "class probabilities (or, with two classes, numeric scores)",
        _has_probabilities,
    ),
    "numbers": (
        "numbers as truth and answers",
        lambda p: p.truths == "numbers" and p.answers == "numbers",
    ),
    "scores": ("numbers as answers", lambda p: p.answers == "numbers"),
    "clusters": (
        "classes as truth and clusters as answers",
        lambda p: p.truths == "classes" and p.answers == "clusters",
    ),
    "group": ("the group of each question", lambda p: p.group is not None),
    "rank": ("the rank of the true item", lambda p: p.rank is not None),
}
