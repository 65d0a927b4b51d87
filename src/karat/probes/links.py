"""The links probe: which item a relation leads to, from the vector of the item it starts at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DefinitionError, did_you_mean
from karat.predictions import Predictions, as_text
from karat.probes.base import need_items, ranked
from karat.probes.rank import Contest
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

WAYS = ("ridge", "translation")
#: questions are learned from and answered in blocks of this many
BLOCK = 16_384


@dataclass(frozen=True)
class Triples:
    """Links by the positions of their items; relations are text."""

    head: np.ndarray
    relation: np.ndarray
    tail: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> Triples:
        """Return the links that questions ask about; without groups there is one relation."""
        head = data.mentions(data.fields[0]).rows
        relation = np.full(len(data), "") if data.group is None else data.group
        wanted = pd.Index(np.asarray(data.truth), tupleize_cols=False)
        return cls(head, as_text(relation), np.asarray(data.items.index.get_indexer(wanted)))


@dataclass(frozen=True)
class Way:
    """How to get from head to tail: from one centre through some matrices to another centre."""

    start: np.ndarray
    through: tuple[np.ndarray, ...]
    end: np.ndarray

    def follow(self, heads: np.ndarray) -> np.ndarray:
        """Return where the way leads from each head."""
        steps = heads - self.start
        for matrix in self.through:
            steps = steps @ matrix
        return np.asarray(steps + self.end)


@probe("links")
class Links:
    """Rank the item that a relation leads to among all items, by the cosine to where it leads.

    Each question is a head, its group the relation and its truth the tail. Of every relation is
    learned how to get from head to tail: ``relation: ridge`` fits a linear map around the means of
    both, with ``alpha`` as its penalty for vectors of length 1 on average; ``translation`` adds the
    mean of tail − head. A relation that was never taught is answered by the way of all links.

    Other true answers of the same question, taught or asked, are left out (filtered ranks). Ties
    count against the encoder.
    """

    def __init__(self, relation: str = "ridge", alpha: float = 1.0) -> None:
        if relation not in WAYS:
            raise DefinitionError(
                f'probe: there is no relation "{relation}".{did_you_mean(str(relation), WAYS)} '
                f"There are: {', '.join(WAYS)}."
            )
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
            raise DefinitionError(f"probe: alpha is a number above 0, not {alpha!r}.")
        self.relation = relation
        self.alpha = float(alpha)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a known head and a known tail."""
        need_items(data, "links")
        able = vectors.answerable(data)
        if data.truth is not None:
            able &= vectors.known(Triples.of(data).tail)
        return able

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn the way of each relation, and that of all links together."""
        if train.truth is None:
            raise DefinitionError(
                "split: all hides the truth, and links learns from it; use another split."
            )
        self.taught_ = links = Triples.of(train)
        asked = np.unique(np.concatenate([links.head, links.tail]))
        squares = [np.square(block).sum() for block in _blocks(vectors, asked, 1.0)]
        self.scale_ = float(np.sqrt(np.sum(squares) / len(asked))) or 1.0
        self.all_ = self._way(vectors, links.head, links.tail)
        self.ways_ = {
            relation: self._way(vectors, links.head[rows], links.tail[rows])
            for relation, rows in _by_relation(links.relation)
        }

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest item to where each relation leads, and the rank of the true one."""
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
        best, rank = Contest(targets, place[links.tail], out, len(known), unit).settle()
        others = len(known) - np.bincount(out[0], minlength=len(test))
        self.candidates_ = len(known)
        return ranked(test, test.items.index[known[best]].to_numpy(), rank, others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return misses: no answer, and the true item behind every candidate."""
        others = np.full(len(test), getattr(self, "candidates_", len(test.items)))
        return ranked(test, np.full(len(test), ""), np.full(len(test), np.inf), others)

    def _targets(self, links: Triples, vectors: Vectors) -> np.ndarray:
        """Return where the relations lead, at length 1."""
        targets = np.empty((len(links.head), vectors.matrix.shape[1]), dtype=np.float32)
        strange = 0
        for relation, rows in _by_relation(links.relation):
            way = self.ways_.get(relation, self.all_)
            strange += len(rows) * (relation not in self.ways_)
            heads = _blocks(vectors, links.head[rows], self.scale_)
            for begin, block in zip(range(0, len(rows), BLOCK), heads, strict=True):
                targets[rows[begin : begin + BLOCK]] = unit_rows(way.follow(block))
        told = f"{strange} of {len(targets)} questions have a relation that was never taught"
        self.notes = [f"{told}; the way of all links answers them."] if strange else []
        return targets

    def _way(self, vectors: Vectors, heads: np.ndarray, tails: np.ndarray) -> Way:
        """Return how to get from these heads to their tails."""

        def pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            sides = (_blocks(vectors, rows, self.scale_) for rows in (heads, tails))
            return zip(*sides, strict=True)

        start, end = (
            sum(block.sum(axis=0) for block in _blocks(vectors, rows, self.scale_)) / len(rows)
            for rows in (heads, tails)
        )
        if self.relation == "translation":
            return Way(start, (), end)
        size = len(start)
        if 2 * len(heads) < size:  # fewer links than dimensions: their products are the smaller
            ((a, b),) = ((a - start, b - end) for a, b in pairs())
            learned = np.linalg.solve(a @ a.T + self.alpha * np.eye(len(a)), b)
            return Way(start, (a.T, learned), end)
        within, across = self.alpha * np.eye(size), np.zeros((size, size))
        for a, b in pairs():
            a, b = a - start, b - end
            within += a.T @ a
            across += a.T @ b
        return Way(start, (np.linalg.solve(within, across),), end)


def _blocks(vectors: Vectors, rows: np.ndarray, scale: float) -> Iterator[np.ndarray]:
    """Yield the vectors of items in 64 bits, divided by the scale, some at a time."""
    for begin in range(0, len(rows), BLOCK):
        yield vectors.at(rows[begin : begin + BLOCK]).astype(np.float64) / scale


def _by_relation(relations: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    codes, names = pd.factorize(relations)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return zip(names, rows, strict=True)


def _other_answers(taught: Triples, asked: Triples) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a question and an item that is another true answer to it."""
    relation, _ = pd.factorize(np.concatenate([taught.relation, asked.relation]))
    head = np.concatenate([taught.head, asked.head])
    tail = np.concatenate([taught.tail, asked.tail])
    items = int(max(head.max(), tail.max())) + 1
    ask, _ = pd.factorize(relation.astype(np.int64) * items + head)
    mine = ask[len(taught.head) :]
    ask, tail = np.divmod(np.unique(ask * items + tail), items)
    begin, end = (np.searchsorted(ask, mine, side=side) for side in ("left", "right"))
    many = end - begin
    question = np.repeat(np.arange(len(mine)), many)
    found = tail[np.arange(len(question)) + np.repeat(begin - (np.cumsum(many) - many), many)]
    other = found != asked.tail[question]
    return question[other], found[other]
