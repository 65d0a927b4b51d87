"""The same-class probe: an item asks for others of its class, and all are ranked by cosine."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.bags import holds_bags
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions, as_text
from karat.probes.nearest import nearest, ranked, similarities
from karat.registry import probe
from karat.vectors import Vectors, unit_rows


@probe("same-class")
class SameClass:
    """Rank candidates by their cosine to a query; those of the query's class are its answers.

    Where the train side shows its truth, its items are the candidates and each test item is a
    query. Where it does not (``split: all``), the test items are both, a query never its own
    answer. At most ``queries`` of them are asked, drawn by the seed, since a query has an answer
    for each item of its class. An item of several classes has all of them.
    """

    one_answer_each = False

    def __init__(self, queries: int = 200, random_state: int | None = None) -> None:
        if isinstance(queries, bool) or not isinstance(queries, int) or queries < 1:
            raise DefinitionError(
                f"probe: queries is a whole number of 1 or more, not {queries!r}."
            )
        self.queries = queries
        self.random_state = random_state
        self.train_: _Items | None = None
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention a known item."""
        single = len(data.fields) == 1 and not holds_bags(data.questions.iloc[:, 0])
        if data.kind != "classes" or not single:
            raise DefinitionError(
                f"probe: same-class takes questions about one item each whose truth is a class; "
                f"{data.name} has {len(data.fields)} fields and {data.kind}."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Keep the train items as candidates, unless their truth is hidden."""
        self.train_ = None if train.truth is None else _Items(train, vectors)

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return for each query the nearest candidate, and its answers in the order found."""
        asked = _Items(test, vectors)
        among = self.train_ or asked
        chosen = self._drawn(asked, among, test.name)
        best = np.empty(len(chosen), dtype=np.intp)
        found, ranks = [], []
        scored = similarities(asked.matrix[chosen], among.matrix)
        for i, (query, scores) in enumerate(zip(chosen, scored, strict=True)):
            wanted = among.of(asked.classes(query))
            if among is asked:
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
            group=np.repeat(asked.ids[chosen], sizes),
            rank=np.concatenate(ranks),
            candidates=np.full(sum(sizes), len(among.ids) - (among is asked)),
        )

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: a query nobody knows has no list of answers."""
        raise DefinitionError("probe: same-class cannot penalise; say missing: ignore.")

    def _drawn(self, asked: _Items, among: _Items, name: str) -> np.ndarray:
        """Return the items that ask: of those with something to find, as many as wanted."""
        able = np.flatnonzero(asked.sizes(among) > (among is asked))
        if not len(able):
            raise DataError(f"{name}: no query has another item of its class to find.")
        lost = len(asked.ids) - len(able)
        told = f"{lost} of {len(asked.ids)} items have no other of their class to find; not asked."
        self.notes = [told] if lost else []
        if len(able) > self.queries:
            rng = np.random.default_rng(self.random_state)
            able = np.sort(rng.choice(able, self.queries, replace=False))
        return able


class _Items:
    """The items that questions ask about, each once: ids, vectors at length 1, and classes."""

    def __init__(self, data: Dataset, vectors: Vectors) -> None:
        positions, item = np.unique(data.mentions(data.fields[0]).rows, return_inverse=True)
        self.ids = as_text(data.items.index[positions])
        self.matrix = unit_rows(vectors.at(positions), np.float64)
        codes, self._names = pd.factorize(np.asarray(data.truth))
        # an item may have several classes, and one of them several times
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
        """Return of each item how many others have the largest of its classes."""
        sizes = np.array([len(among._rows.get(name, ())) for name in self._names])
        return np.maximum.reduceat(sizes[self._code], self._starts[:-1])
