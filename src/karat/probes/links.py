"""The links probe: predict the tail of a relation from the vector of its head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions, as_text
from karat.core.registry import probe
from karat.errors import DefinitionError, did_you_mean
from karat.probes.retrieval import Ranking
from karat.probes.trained import missed, need_fields, ranked

WAYS = ("ridge", "translation")
#: number of questions per block
BLOCK = 16_384


@dataclass(frozen=True)
class Triples:
    """Links as positions of their items; relations are text."""

    head: np.ndarray
    relation: np.ndarray
    tail: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> Triples:
        """Return the links of questions; without groups there is one relation."""
        head = data.mentions(data.fields[0]).rows
        relation = np.full(len(data), "") if data.group is None else data.group
        wanted = pd.Index(np.asarray(data.target), tupleize_cols=False)
        return cls(head, as_text(relation), np.asarray(data.items.index.get_indexer(wanted)))


@dataclass(frozen=True)
class AffineMap:
    """An affine map from head to tail: subtract ``start``, apply matrices, add ``end``."""

    start: np.ndarray
    through: tuple[np.ndarray, ...]
    end: np.ndarray

    def follow(self, heads: np.ndarray) -> np.ndarray:
        """Return the predicted tail vector of each head."""
        steps = heads - self.start
        for matrix in self.through:
            steps = steps @ matrix
        return np.asarray(steps + self.end)


@probe("links")
class Links:
    """Rank the tail of a link among all items, by the cosine to its predicted vector.

    Each question is a head, its group the relation and its target the tail. A map from head to tail
    is fitted for every relation: ``relation: ridge`` is a linear map of the centered vectors, with
    the penalty ``alpha`` for vectors of mean length 1; ``translation`` adds the mean tail − head.
    Relations without train links use the map fitted on all links.

    Other correct answers of the same question, in train or test, are not candidates (filtered
    ranks). Ties count against the encoder.
    """

    def __init__(self, relation: str = "ridge", alpha: float = 1.0) -> None:
        if relation not in WAYS:
            raise DefinitionError(
                f'probe: unknown relation "{relation}".{did_you_mean(str(relation), WAYS)} '
                f"Available: {', '.join(WAYS)}."
            )
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
            raise DefinitionError(f"probe: alpha must be a number > 0, got {alpha!r}.")
        self.relation = relation
        self.alpha = float(alpha)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a vector for head and tail."""
        need_fields(data, "links", "items")
        answerable = vectors.answerable(data)
        if data.target is not None:
            answerable &= vectors.known(Triples.of(data).tail)
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Fit the map of each relation, and one of all links."""
        if train.target is None:
            raise DefinitionError(
                "split: all hides the target, which links needs to be fitted; use another split."
            )
        self.taught_ = links = Triples.of(train)
        items = np.unique(np.concatenate([links.head, links.tail]))
        squares = [np.square(block).sum() for block in _blocks(vectors, items, 1.0)]
        self.scale_ = float(np.sqrt(np.sum(squares) / len(items))) or 1.0
        self.all_ = self._way(vectors, links.head, links.tail)
        self.ways_ = {
            relation: self._way(vectors, links.head[rows], links.tail[rows])
            for relation, rows in _by_relation(links.relation)
        }

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the item nearest to the predicted vector, and the rank of the target."""
        links = Triples.of(test)
        known = np.flatnonzero(vectors.known(np.arange(len(test.items))))
        place = np.full(len(test.items), -1, dtype=np.intp)
        place[known] = np.arange(len(known))
        question, other = _other_answers(self.taught_, links)
        competing = place[other] >= 0
        out = question[competing], place[other[competing]]

        def unit(places: slice | np.ndarray) -> np.ndarray:
            return unit_rows(vectors.at(known[places]))

        targets = self._targets(links, vectors)
        best, rank = Ranking(targets, place[links.tail], out, len(known), unit).settle()
        others = len(known) - np.bincount(out[0], minlength=len(test))
        self.candidates_ = len(known)
        return ranked(test, test.items.index[known[best]].to_numpy(), rank, others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return empty predictions that rank the target behind every candidate."""
        return missed(test, getattr(self, "candidates_", len(test.items)))

    def _targets(self, links: Triples, vectors: Vectors) -> np.ndarray:
        """Return the predicted tail vectors at length 1."""
        targets = np.empty((len(links.head), vectors.matrix.shape[1]), dtype=np.float32)
        unseen = 0
        for relation, rows in _by_relation(links.relation):
            way = self.ways_.get(relation, self.all_)
            unseen += len(rows) * (relation not in self.ways_)
            heads = _blocks(vectors, links.head[rows], self.scale_)
            for begin, block in zip(range(0, len(rows), BLOCK), heads, strict=True):
                targets[rows[begin : begin + BLOCK]] = unit_rows(way.follow(block))
        note = f"{unseen} of {len(targets)} questions have a relation without train links"
        self.notes = [f"{note}; they use the map fitted on all links."] if unseen else []
        return targets

    def _way(self, vectors: Vectors, heads: np.ndarray, tails: np.ndarray) -> AffineMap:
        def pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            sides = (_blocks(vectors, rows, self.scale_) for rows in (heads, tails))
            return zip(*sides, strict=True)

        start, end = (
            sum(block.sum(axis=0) for block in _blocks(vectors, rows, self.scale_)) / len(rows)
            for rows in (heads, tails)
        )
        if self.relation == "translation":
            return AffineMap(start, (), end)
        size = len(start)
        if 2 * len(heads) < size:  # with fewer links than dimensions the dual problem is smaller
            ((a, b),) = ((a - start, b - end) for a, b in pairs())
            dual = np.linalg.solve(a @ a.T + self.alpha * np.eye(len(a)), b)
            return AffineMap(start, (a.T, dual), end)
        within, across = self.alpha * np.eye(size), np.zeros((size, size))
        for a, b in pairs():
            a, b = a - start, b - end
            within += a.T @ a
            across += a.T @ b
        return AffineMap(start, (np.linalg.solve(within, across),), end)


def _blocks(vectors: Vectors, rows: np.ndarray, scale: float) -> Iterator[np.ndarray]:
    """Yield blocks of item vectors in 64 bits, divided by the scale."""
    for begin in range(0, len(rows), BLOCK):
        yield vectors.at(rows[begin : begin + BLOCK]).astype(np.float64) / scale


def _by_relation(relations: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    codes, names = pd.factorize(relations)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return zip(names, rows, strict=True)


def _other_answers(train: Triples, test: Triples) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a test question and an item that is another correct answer to it."""
    queries = pd.DataFrame({"head": test.head, "relation": test.relation})
    queries["question"] = np.arange(len(queries))
    links = pd.concat([pd.DataFrame(vars(train)), pd.DataFrame(vars(test))]).drop_duplicates()
    found = queries.merge(links, on=["head", "relation"])
    question, tail = found["question"].to_numpy(), found["tail"].to_numpy()
    other = tail != test.tail[question]
    return question[other], tail[other]
