"""The similarity probe: how near the two items of a question lie, nothing learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from karat.bags import Bags
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions
from karat.probes.measures import Measure
from karat.registry import probe
from karat.vectors import Vectors

#: questions are compared in blocks of this many
BLOCK = 65_536
#: all matches among this many items are held at once
ITEMS = 4096
#: what becomes of bags: one vector, or each item's best match in the other bag
BAGS = ("mean", "matches", "weighted-matches")
#: what a question that cannot be answered is taken for, where that is to cost
UNKNOWN = ("last", "mean")


@probe("similarity")
class Similarity:
    """Answer each question of two fields with the similarity of their vectors.

    ``measure`` is a name (scikit-learn's distances and kernels are known) or a function of two
    vectors that returns a similarity. A bag of items is their weighted mean, or with ``bags:
    matches`` the mean over the items of both bags of the best match each has in the other; with
    ``weighted-matches`` every match is multiplied by the weights of its two items.

    Where a task penalises what is not known, such a question comes after all others (``unknown:
    last``, for orders) or has the mean of all others (``unknown: mean``, for correlations).
    """

    def __init__(
        self,
        measure: str | Callable[..., Any] = "cosine",
        bags: str = "mean",
        unknown: str = "last",
    ) -> None:
        for what, value, known in (("bags", bags, BAGS), ("unknown", unknown, UNKNOWN)):
            if value not in known:
                raise DefinitionError(f'probe: {what} is one of {", ".join(known)}, not "{value}".')
        self.unknown = unknown
        self.measure = Measure(measure)
        self.bags = bags
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention known items in every field."""
        if len(data.fields) != 2:
            raise DefinitionError(
                f"probe: similarity compares two fields, {data.name} has {len(data.fields)}."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the similarity of each question's two items."""
        scores = self._means(test, vectors) if self.bags == "mean" else self._matches(test, vectors)
        self.lowest_, self.mean_ = float(scores.min()), float(scores.mean())
        return self._predictions(test, scores)

    def _means(self, test: Dataset, vectors: Vectors) -> np.ndarray:
        scores = np.empty(len(test))
        for start in range(0, len(test), BLOCK):
            part = test.take(np.arange(start, min(start + BLOCK, len(test))))
            a, b = (vectors.of(part, name) for name in test.fields)
            scores[start : start + BLOCK] = self.measure.rows(a, b)
        return scores

    def _matches(self, test: Dataset, vectors: Vectors) -> np.ndarray:
        weighted = self.bags == "weighted-matches"
        asked = [np.unique(test.mentions(name).rows) for name in test.fields]
        if max(map(len, asked)) > ITEMS and len(test) > 1:
            halves = np.array_split(np.arange(len(test)), 2)
            return np.concatenate([self._matches(test.take(half), vectors) for half in halves])
        one, other = (_Sets(test.mentions(name), vectors, weighted) for name in test.fields)
        return match(one, other, lambda a, b: self.measure.table(vectors.at(a), vectors.at(b)))

    def unanswered(self, test: Dataset) -> Predictions:
        """Return what says nothing: a similarity below all others, or the mean of them."""
        lowest = getattr(self, "lowest_", 0.0)
        below = min(lowest - 1.0, np.nextafter(lowest, -np.inf))
        value = below if self.unknown == "last" else getattr(self, "mean_", 0.0)
        return self._predictions(test, np.full(len(test), value))

    def _predictions(self, test: Dataset, scores: np.ndarray) -> Predictions:
        return Predictions(
            predictions=scores,
            truth=np.asarray(test.truth),
            truths=test.kind,
            classes=tuple(str(label) for label in test.classes),
            group=test.group,
        )


class _Sets:
    """The known items of bags, equal bags once: questions are about few documents, many times."""

    def __init__(self, bags: Bags, vectors: Vectors, weighted: bool) -> None:
        known = vectors.known(bags.rows)
        bag = np.repeat(np.arange(len(bags.offsets) - 1), np.diff(bags.offsets))[known]
        rows, weights = bags.rows[known], bags.weights[known]
        ends = np.searchsorted(bag, np.arange(len(bags.offsets)))
        cells = [slice(ends[i], ends[i + 1]) for i in range(len(ends) - 1)]
        keys = [rows[cell].tobytes() + weights[cell].tobytes() for cell in cells]
        place: dict[bytes, int] = {}
        self.which = np.array([place.setdefault(key, len(place)) for key in keys])
        first = np.unique(self.which, return_index=True)[1]
        self.sizes = np.array([cells[i].stop - cells[i].start for i in first])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.rows = np.concatenate([rows[cells[i]] for i in first])
        self.weights = np.concatenate([weights[cells[i]] for i in first])
        if not weighted:
            self.weights = np.ones(len(self.rows))


def match(
    one: _Sets, other: _Sets, table: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return for each question the mean over the items of two bags of their best matches."""
    items, place = np.unique(np.concatenate([one.rows, other.rows]), return_inverse=True)
    mine, theirs = place[: len(one.rows)], place[len(one.rows) :]
    near = table(items, items)
    total = _best(near, (mine, one), (theirs, other)) + _best(near, (theirs, other), (mine, one)).T
    found = total / (one.sizes[:, None] + other.sizes)
    return np.asarray(found[one.which, other.which])


def _best(
    near: np.ndarray, one: tuple[np.ndarray, _Sets], other: tuple[np.ndarray, _Sets]
) -> np.ndarray:
    """Return, for all pairs of bags, the sum over the items of one of their best in the other."""
    (mine, bags), (theirs, others) = one, other
    weighed = near[:, theirs] * others.weights
    best = np.maximum.reduceat(weighed, others.starts, axis=1)
    return np.asarray(np.add.reduceat(best[mine] * bags.weights[:, None], bags.starts, axis=0))
