"""Heads as a task makes them: asked of ``get_head``, given to Karat's trained probe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

from karat.dataset import Dataset
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.probes.trained import Trained

#: what is written as it is, and how long a line may get
PLAIN = (str, int, float, type(None))
LONGEST = 500


class Headed(Trained):
    """The trained probe with a head that a task makes for each train side."""

    def __init__(self, make: Callable[[Dataset], Any], scale: str) -> None:
        super().__init__(scale=scale)
        self.make = make

    def _make_head(self, train: Dataset) -> Any:
        return self.make(train)


class Detector:
    """A detector in scikit-learn's way, asked how odd each item is."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Return the detector."""
        return {"detector": self.detector}

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one number per item; higher is odder."""
        self.detector.fit(X)
        if hasattr(self.detector, "negative_outlier_factor_"):
            return -np.asarray(self.detector.negative_outlier_factor_)
        return -np.asarray(self.detector.score_samples(X))


def as_scorer(head: Any) -> Any:
    """Return a head that scores oddness, or a detector made into one."""
    if hasattr(head, "outlier_scores"):
        return head
    # a local outlier factor has score_samples only where it is made for items it has not seen
    if hasattr(head, "score_samples") or is_outlier_detector(head):
        return Detector(head)
    raise ContractError(
        f"get_head returned {type(head).__name__}; an anomaly task needs outlier_scores(X), or "
        f"scikit-learn's fit and score_samples."
    )


def with_params(head: Any, params: Mapping[str, Any]) -> Any:
    """Return the head with its parameters set; a name it does not have is a mistake."""
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


def told(thing: Any, hidden: Collection[str] = ()) -> str:
    """Return an object's class and parameters in one line, the same in every process.

    A long line ends in a hash of all that it stands for.

    >>> from sklearn.linear_model import Ridge
    >>> told(Ridge(alpha=2.0)).startswith("Ridge(alpha=2.0, copy_X=True")
    True
    >>> told({"b": 1, "a": [Ridge]})
    '{a: [Ridge], b: 1}'
    """
    text = _told(thing, hidden)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _told(thing: Any, hidden: Collection[str] = ()) -> str:
    if isinstance(thing, PLAIN):
        return repr(thing)
    if isinstance(thing, list | tuple):
        return f"[{', '.join(map(_told, thing))}]"
    if isinstance(thing, Mapping):
        return f"{{{', '.join(f'{name}: {_told(thing[name])}' for name in sorted(thing))}}}"
    if hasattr(thing, "__qualname__"):
        return str(thing.__qualname__)
    try:
        params = thing.get_params(deep=False)
    except (AttributeError, RuntimeError, TypeError):
        # what is no estimator may hold anything, also itself
        held = getattr(thing, "__dict__", {})
        params = {name: value for name, value in held.items() if _is_plain(value)}
    shown = [f"{name}={_told(params[name])}" for name in sorted(params) if name not in hidden]
    return f"{type(thing).__name__}({', '.join(shown)})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)
