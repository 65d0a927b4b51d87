"""The heads returned by ``get_head``, for Karat's trained probe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

from karat.dataset import Dataset
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.probes.trained import Trained

#: types written with ``repr``, and the maximum length of a description
PLAIN = (str, int, float, type(None))
LONGEST = 500


class Headed(Trained):
    """The trained probe with a head that the task makes for each training set."""

    def __init__(self, make: Callable[[Dataset], Any], scale: str) -> None:
        super().__init__(scale=scale)
        self.make = make

    def _make_head(self, train: Dataset) -> Any:
        return self.make(train)


class Detector:
    """A scikit-learn outlier detector with the interface of Karat's heads."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Return the detector."""
        return {"detector": self.detector}

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one outlier score per item; higher is more unusual."""
        self.detector.fit(X)
        if hasattr(self.detector, "negative_outlier_factor_"):
            return -np.asarray(self.detector.negative_outlier_factor_)
        return -np.asarray(self.detector.score_samples(X))


def as_scorer(head: Any) -> Any:
    """Return a head with ``outlier_scores``, wrapping a scikit-learn detector if needed."""
    if hasattr(head, "outlier_scores"):
        return head
    # LocalOutlierFactor has score_samples only with novelty=True
    if hasattr(head, "score_samples") or is_outlier_detector(head):
        return Detector(head)
    raise ContractError(
        f"get_head returned {type(head).__name__}; an anomaly task needs outlier_scores(X), or "
        f"scikit-learn's fit and score_samples."
    )


def with_params(head: Any, params: Mapping[str, Any]) -> Any:
    """Return the head with parameters set; raise if one does not exist."""
    if not params:
        return head
    known = head.get_params() if hasattr(head, "get_params") else vars(head)
    for name in params:
        if name not in known:
            raise DefinitionError(
                f'head_params: {type(head).__name__} has no parameter "{name}".'
                f"{did_you_mean(name, known)}"
            )
    if hasattr(head, "set_params"):
        return head.set_params(**params)
    for name, value in params.items():
        setattr(head, name, value)
    return head


def describe(thing: Any, hidden: Collection[str] = ()) -> str:
    """Return an object's class and parameters in one line, the same in every process.

    A line that is too long ends in a hash of the whole description.

    >>> from sklearn.linear_model import Ridge
    >>> describe(Ridge(alpha=2.0)).startswith("Ridge(alpha=2.0, copy_X=True")
    True
    >>> describe({"b": 1, "a": [Ridge]})
    '{a: [Ridge], b: 1}'
    """
    text = _described(thing, hidden)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _described(thing: Any, hidden: Collection[str] = ()) -> str:
    if isinstance(thing, PLAIN):
        return repr(thing)
    if isinstance(thing, list | tuple):
        return f"[{', '.join(map(_described, thing))}]"
    if isinstance(thing, Mapping):
        return f"{{{', '.join(f'{name}: {_described(thing[name])}' for name in sorted(thing))}}}"
    if hasattr(thing, "__qualname__"):
        return str(thing.__qualname__)
    try:
        params = thing.get_params(deep=False)
    except (AttributeError, RuntimeError, TypeError):
        # other objects may contain anything, even themselves
        held = getattr(thing, "__dict__", {})
        params = {name: value for name, value in held.items() if _is_plain(value)}
    shown = [f"{name}={_described(params[name])}" for name in sorted(params) if name not in hidden]
    return f"{type(thing).__name__}({', '.join(shown)})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)
