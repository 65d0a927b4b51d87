"""Similarity measures: any distance or kernel of scikit-learn by name, or a function.

Higher means more similar: distances are negated, or become 1 / (1 + distance) where a similarity
must not be negative. A custom function takes two vectors and returns their similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.heads.transductive import distance_names
from karat.registry import load_object
from karat.vectors import unit_rows

#: takes two matrices and returns one number per pair of rows
Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosine of the angle between rows; 0 where a vector is zero."""
    lengths = np.sqrt(dot(a, a)) * np.sqrt(dot(b, b))
    return np.clip(np.divide(dot(a, b), lengths, out=np.zeros(len(a)), where=lengths > 0), -1, 1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product of rows."""
    return np.einsum("ij,ij->i", a, b, dtype=np.float64)


def euclidean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the negated Euclidean distance of rows."""
    difference = a.astype(np.float64) - b
    return -np.sqrt(dot(difference, difference))


def manhattan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the negated city-block distance of rows."""
    return -np.abs(a.astype(np.float64) - b).sum(axis=1)


#: vectorized measures
MEASURES: dict[str, Rows] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


class Measure:
    """The similarity of two vectors, for pairs of rows and for all rows of two matrices."""

    def __init__(self, given: str | Callable[..., Any]) -> None:
        self.given = given
        if isinstance(given, str) and ":" in given:
            given = load_object(given)
        if not isinstance(given, str) and not callable(given):
            raise DefinitionError(f"probe: measure must be a name or a function, got {given!r}.")
        self.own = None if isinstance(given, str) else given
        self.name = given if isinstance(given, str) else ""
        if self.own is None and self.name not in names():
            raise DefinitionError(
                f'probe: unknown similarity measure "{self.name}".'
                f"{did_you_mean(self.name, names())} Available: {', '.join(names())}; "
                f'or write "package.module:function".'
            )

    def rows(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the similarity of each row of one matrix to the same row of the other."""
        if self.name in MEASURES:
            return MEASURES[self.name](a, b)
        pairs = zip(_as_float64(a), _as_float64(b), strict=True)
        return np.array([self._one(one, other) for one, other in pairs], dtype=float)

    def table(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the similarity of every row of one matrix to every row of the other, at least -1.

        Distances become 1 / (1 + distance), so that multiplying by a weight below 1 never increases
        a similarity.
        """
        a, b = _as_float64(a), _as_float64(b)
        if self.own is not None:
            return np.array([[self._one(one, other) for other in b] for one in a])
        if self.name in _kernels():
            from sklearn.metrics.pairwise import pairwise_kernels

            return np.asarray(pairwise_kernels(a, b, metric=_kernels()[self.name]))
        if self.name == "cosine":
            return unit_rows(a, np.float64) @ unit_rows(b, np.float64).T
        distances = _distances(self.name)(a, b)
        return 1.0 - distances if self.name == "correlation" else 1.0 / (1.0 + distances)

    def _one(self, a: np.ndarray, b: np.ndarray) -> float:
        if self.own is None:
            if self.name in _kernels():
                return float(self.table(a[None], b[None])[0, 0])
            return -float(_distances(self.name)(a[None], b[None])[0, 0])
        value = self.own(a, b)
        try:
            valid = np.ndim(value) == 0 and bool(np.isfinite(float(value)))
        except (TypeError, ValueError):
            valid = False
        if not valid:
            name = getattr(self.own, "__name__", "the measure")
            raise ContractError(
                f"{name} must return one finite similarity for two vectors, got {value!r}."
            )
        return float(value)


@lru_cache(maxsize=1)
def names() -> list[str]:
    """Return the names of all measures: ours, and scikit-learn's distances and kernels."""
    return list(dict.fromkeys([*MEASURES, *distance_names(), *sorted(_kernels())]))


@lru_cache(maxsize=1)
def _kernels() -> dict[str, str]:
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return {"dot": "linear", **{n: n for n in PAIRWISE_KERNEL_FUNCTIONS if n != "cosine"}}


def _distances(name: str) -> Rows:
    from scipy.spatial.distance import cdist
    from sklearn.metrics.pairwise import pairwise_distances

    if name in ("l1", "l2", "manhattan", "nan_euclidean", "p"):
        return partial(pairwise_distances, metric=name)
    # a zero vector has the distance of an unrelated one
    return lambda a, b: np.nan_to_num(cdist(a, b, metric=name), nan=1.0)


def _as_float64(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix, dtype=np.float64)
