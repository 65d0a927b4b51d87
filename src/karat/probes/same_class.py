"""The same-class probe: retrieve the items of the same class by cosine."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions, as_text
from karat.probes.base import need_fields
from karat.probes.nearest import nearest, ranked, similarities
from karat.registry import probe
from karat.vectors import Vectors, unit_rows


@probe("same-class")
class SameClass:
    """Rank candidates by their cosine to a query; items of the query's class are its answers.

    The train items are the candidates and each test item is a query. If the train target is hidden
    (``split: all``), the test items are both, and a query is not its own answer. At most
    ``queries`` random queries are used, since a query has as many answers as its class has items.
    An item may have several classes.
    """

    one_answer_each = False

    def __init__(self, queries: int = 200, random_state: int | None = None) -> None:
        if isinstance(queries, bool) or not isinstance(queries, int) or queries < 1:
            raise DefinitionError(f"probe: queries must be an integer >= 1, got {queries!r}.")
        self.queries = queries
        self.random_state = random_state
        self.train_: _Items | None = None
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector."""
        need_fields(data, "same-class", "classes")
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Store the train items as candidates, unless their target is hidden."""
        self.train_ = None if train.truth is None else _Items(train, vectors)

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query, and its answers in the order of rank."""
        items = _Items(test, vectors)
        among = self.train_ or items
        chosen = self._draw(items, among, test.name)
        best = np.empty(len(chosen), dtype=np.intp)
        found, ranks = [], []
        scored = similarities(items.matrix[chosen], among.matrix)
        for i, (query, scores) in enumerate(zip(chosen, scored, strict=True)):
            wanted = among.of(items.classes(query))
            if among is items:
                scores[query] = -np.inf
                wanted = wanted[wanted != query]
            best[i] = nearest(scores)
            order, rank = ranked(scores, wanted)
            found.append(wanted[order])
            ranks.append(rank)
        sizes = [len(rank) for rank in ranks]
        return Predictions(
            predictions=np.repeat(among.ids[best], sizes),
            truth=among.ids[np.concatenate(found)],
            answers="items",
            truths="items",
            group=np.repeat(items.ids[chosen], sizes),
            rank=np.concatenate(ranks),
            candidates=np.full(sum(sizes), len(among.ids) - (among is items)),
        )

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: a query without a vector has no list of answers."""
        raise DefinitionError("probe: same-class cannot penalize; set missing: ignore.")

    def _draw(self, items: _Items, among: _Items, name: str) -> np.ndarray:
        """Draw queries among the items with at least one answer."""
        usable = np.flatnonzero(items.sizes(among) > (among is items))
        if not len(usable):
            raise DataError(f"{name}: no candidate has the class of any query.")
        lost = len(items.ids) - len(usable)
        note = f"{lost} of {len(items.ids)} items have no candidate of their class; not queried."
        self.notes = [note] if lost else []
        if len(usable) > self.queries:
            rng = np.random.default_rng(self.random_state)
            usable = np.sort(rng.choice(usable, self.queries, replace=False))
        return usable


class _Items:
    """The distinct items of questions: ids, unit vectors, and classes."""

    def __init__(self, data: Dataset, vectors: Vectors) -> None:
        positions, item = np.unique(data.mentions(data.fields[0]).rows, return_inverse=True)
        self.ids = as_text(data.items.index[positions])
        self.matrix = unit_rows(vectors.at(positions), np.float64)
        codes, self._names = pd.factorize(np.asarray(data.truth))
        # an item may have several classes, and a class may be repeated
        item, self._code = np.divmod(np.unique(item * len(self._names) + codes), len(self._names))
        self._starts = np.searchsorted(item, np.arange(len(positions) + 1))
        order = np.argsort(self._code, kind="stable")
        rows = np.split(item[order], np.cumsum(np.bincount(self._code))[:-1])
        self._rows = dict(zip(self._names, rows, strict=True))

    def classes(self, item: int) -> np.ndarray:
        """Return the classes of an item."""
        return self._names[self._code[self._starts[item] : self._starts[item + 1]]]

    def of(self, classes: np.ndarray) -> np.ndarray:
        """Return which items have one of these classes, ascending."""
        found = [self._rows[name] for name in classes if name in self._rows]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    def sizes(self, among: _Items) -> np.ndarray:
        """Return, for each item, the size of the largest of its classes among other items."""
        sizes = np.array([len(among._rows.get(name, ())) for name in self._names])
        return np.maximum.reduceat(sizes[self._code], self._starts[:-1])
