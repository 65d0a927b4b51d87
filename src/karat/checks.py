"""Checks: does a stranger's model, metric or corruption keep its promises, and if not, what to do?

A part is tried on small data of our own. What cannot be tried because an earlier promise is broken
is left out, never counted as kept. A part that does not say what it takes is tried on everything,
and what it can do is reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from karat import registry
from karat.corruptions.view import View, see
from karat.dataset import MODALITIES, Dataset
from karat.errors import KaratError, MissingExtra
from karat.execute import one_thread
from karat.fingerprints import fingerprint
from karat.metrics.base import NEEDS, Metric, get_metric, score
from karat.models.base import Model
from karat.predictions import Predictions

SEED = 42
#: how far a vector may move when other rows stand beside its item
TOLERANCE = 1e-5
#: the cut-off a family such as "hits@k" is tried with
CUT = 10
_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}


@dataclass(frozen=True)
class Check:
    """One promise: whether it is kept and, if not, why and what to change."""

    promise: str
    kept: bool
    why: str = ""
    cure: str = ""


def check_model(model: Model, modality: str | None = None) -> list[Check]:
    """Return which promises of an encoder or a predictor are kept, on each modality it takes.

    >>> from karat.models.adapters import adapt
    >>> checks = check_model(adapt(lambda texts: [[len(t)] for t in texts[1:]]), "text")
    >>> [check.why for check in checks if not check.kept]
    ['it returned 149 rows for 150 items.']
    """
    if model.unavailable:
        why, lacking, extra = model.unavailable.partition(": pip install ")
        cure = f"pip install {extra}" if lacking else "Provide what is missing and check again."
        return [Check("can run here", False, why, cure)]
    takes = (modality,) if modality else model.takes
    kinds = ("classes",) if model.role == "encoder" else _kinds(model.prototype)
    # what is declared must work, each for itself; of what is not, something must
    groups = product(
        [[each] for each in takes] if takes else [list(MODALITIES)],
        [[each] for each in kinds] if kinds else [["classes", "numbers"]],
    )
    checks: list[Check] = []
    for modalities, answers in groups:
        trials = {}
        for taken, kind in product(modalities, answers):
            where = f"on {_PLURAL[taken]}" + (f", {kind}" if model.role == "predictor" else "")
            trials[where] = partial(_model, model=model, modality=taken, kind=kind)
        checks += _some(trials)
    return checks


def check_metric(name: str) -> list[Check]:
    """Return which promises a metric keeps; a family such as "hits@k" is tried with k = 10.

    >>> all(check.kept for check in check_metric("acc"))
    True
    """
    metric = get_metric(f"{name[:-1]}{CUT}" if name.endswith("@k") else name)
    trials = {
        f"on {what}": partial(_metric, metric=metric, perfect=perfect, other=other)
        for what, (perfect, other) in _answers().items()
        if _applies(metric, perfect)
    }
    if not trials:
        why = f"no predictions give it a value; it needs: {', '.join(metric.needs) or 'nothing'}."
        return [Check("has a value", False, why, "Mend its needs, or when it is Undefined.")]
    if not metric.needs:
        return _some(trials, wholly=True)
    return [check for where, steps in trials.items() for check in _try(where, steps)[0]]


def check_corruption(name: str) -> list[Check]:
    """Return which promises a corruption keeps, on tables or texts or both.

    >>> check_corruption("typos")[0].promise
    'on texts: returns X and y as they came'
    """
    corrupt = registry.corruptions.get(name)
    taken = ("table", "text")
    return _some(
        {
            f"on {_PLURAL[each]}": partial(_corruption, name=name, corrupt=corrupt, modality=each)
            for each in taken
        }
    )


# -- trying ---------------------------------------------------------------------------------


class _Broken(Exception):
    """A promise is broken; the message is why."""


class _Stop(Exception):
    """A promise is broken without which nothing else can be tried."""


def _need(kept: object, why: str) -> None:
    if not kept:
        raise _Broken(why)


class _Trial:
    """The promises tried on one kind of data, one after the other."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.checks: list[Check] = []

    @contextmanager
    def promise(self, text: str, cure: str, *, fatal: bool = False) -> Iterator[None]:
        """Note whether what is done inside keeps a promise; a fatal break ends the trial."""
        why = ""
        try:
            yield
        except _Broken as broken:
            why = str(broken)
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, MissingExtra):
                cure = str(error).partition(": ")[2]
        self.checks.append(Check(f"{self.where}: {text}", not why, why, cure if why else ""))
        if why and fatal:
            raise _Stop

    @contextmanager
    def watched(self, *given: Any) -> Iterator[None]:
        """Note whether the data given or numpy's global generator are changed inside."""
        marks = [fingerprint(pd.Series(x) if isinstance(x, np.ndarray) else x) for x in given]
        before = np.random.get_state()
        yield
        after = [fingerprint(pd.Series(x) if isinstance(x, np.ndarray) else x) for x in given]
        self.changed = marks != after
        self.drew = repr(before) != repr(np.random.get_state())
        np.random.set_state(before)

    def left_alone(self) -> None:
        """Check what was noted."""
        with self.promise("leaves what it is given as it is", "Change a copy: items.copy()."):
            _need(not self.changed, "the data are others after it ran.")
        with self.promise(
            "leaves numpy's global generator alone",
            "Draw from np.random.default_rng(self.random_state), or from the rng you are given.",
        ):
            _need(not self.drew, "np.random has another state after it ran.")


Steps = Callable[[_Trial], None]


def _try(where: str, steps: Steps) -> tuple[list[Check], bool]:
    """Return the checks of a trial, and whether it came to its end."""
    trial = _Trial(where)
    try:
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps(trial)
    except _Stop:
        return trial.checks, False
    return trial.checks, True


def _some(trials: dict[str, Steps], *, wholly: bool = False) -> list[Check]:
    """Return the checks of the trials that succeeded, or else of the one that went furthest.

    To succeed is to come to the end or, ``wholly``, to keep every promise.
    """
    tried = [_try(where, steps) for where, steps in trials.items()]
    good = [c for c, ended in tried if (all(x.kept for x in c) if wholly else ended)]
    furthest = max((c for c, _ in tried), key=lambda checks: sum(x.kept for x in checks))
    return [check for checks in good or [furthest] for check in checks]


def _array(values: Any) -> np.ndarray:
    """Return what a model gave (sparse, a tensor, lists) as an array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _same(a: Sequence[Any], b: Sequence[Any], tolerance: float = 0.0) -> None:
    for x, y in zip(map(_array, a), map(_array, b), strict=True):
        _need(x.shape == y.shape, f"the shapes are {x.shape} and {y.shape}.")
        if x.dtype.kind == y.dtype.kind == "f":
            equal = np.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            equal = np.asarray(x == y)
        _need(equal.all(), f"{int((~equal).sum())} of {equal.size} values differ.")


@dataclass(frozen=True)
class _Sample:
    """Items and their truth: every fourth one tests, the others train."""

    items: Any
    truth: np.ndarray

    def __post_init__(self) -> None:
        held = np.arange(len(self.items)) % 4 == 0
        self.__dict__.update(
            train=self.items[~held], test=self.items[held], y=self.truth[~held].copy()
        )
