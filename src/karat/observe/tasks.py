"""What can be seen of a task before any model runs: classes, entities on both sides, a give-away.

Computed once per task, from a sample where the data are large. Models never see these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.predictions import as_text
from karat.splits import Fold

#: so many classes are counted, the largest first
MOST_CLASSES = 30
#: so many rows of a table are looked at, and so many cells
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_000_000, 200
#: a column is a key if so large a part of its values are different, not all of them, and rows of
#: one value agree in their answers at least this much
KEY_LEAST, KEY_MOST, KEY_AGREES = 0.2, 0.95, 0.9


def task_facts(data: Dataset, folds: Sequence[Fold], blind: bool = False) -> dict[str, Any]:
    """Return ``tested``, ``classes``, ``entities`` and ``give_away`` of a task, in plain values.

    ``tested`` counts the different questions that are tested. ``entities`` is [shared, tested,
    what]: how many tested questions ask about an entity that their train part has too.
    ``give_away`` is [column, score], the column that tells the answer best. Where nothing is
    learned from answers, neither can leak, and ``blind`` is true.
    """
    rows = np.unique(np.concatenate([fold.test for fold in folds])) if folds else np.array([], int)
    facts: dict[str, Any] = {"tested": len(rows), "classes": count_classes(data)}
    if blind:
        facts["blind"] = True
    elif data.truth is not None:
        facts["entities"] = list(shared_entities(data, folds) or ())
        facts["give_away"] = list(give_away(data) or ())
    return {name: value for name, value in facts.items() if value or name == "tested"}


def count_classes(data: Dataset) -> dict[str, int]:
    """Return how many questions each class has, the largest classes first.

    >>> table = pd.DataFrame({"a": [1, 2, 3], "y": ["n", "p", "n"]})
    >>> count_classes(Dataset.from_table(table, "y"))
    {'n': 2, 'p': 1}
    """
    if data.kind != "classes" or data.truth is None:
        return {}
    counts = pd.Series(as_text(data.truth)).value_counts(sort=False)
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {str(label): int(count) for label, count in ordered[:MOST_CLASSES]}


# -- entities -------------------------------------------------------------------------------


def shared_entities(data: Dataset, folds: Sequence[Fold]) -> tuple[int, int, str] | None:
    """Return how many tested questions share their entity with a train question, and of how many.

    An entity is a group where the data have groups; an item that several questions of several
    fields ask about; or the value of a key of a table, a column whose rows of one value have the
    same answer. Nothing where there is no such thing.
    """
    tested = sum(len(fold.test) for fold in folds)
    if data.kind == "items":
        return None
    if data.group is not None:
        return _crossing(pd.factorize(data.group)[0], folds), tested, "group"
    if len(data.fields) > 1:
        return _items_on_both_sides(data, folds), tested, "item"
    found = [
        (_crossing(codes, folds), tested, name)
        for name, codes in (_keys(data) if _asks_for_rows(data) else ())
    ]
    return max(found, key=lambda each: each[0], default=None)


def _crossing(codes: np.ndarray, folds: Sequence[Fold]) -> int:
    """Return how many tested rows have a code that their train part has; -1 is none."""
    found = 0
    for fold in folds:
        seen = np.zeros(codes.max(initial=0) + 1, dtype=bool)
        taught = codes[fold.train]
        seen[taught[taught >= 0]] = True
        asked = codes[fold.test]
        found += int((seen[asked] & (asked >= 0)).sum())
    return found


def _items_on_both_sides(data: Dataset, folds: Sequence[Fold]) -> int:
    found = 0
    for fold in folds:
        train, test = data.take(fold.train), data.take(fold.test)
        seen = np.zeros(len(data.items), dtype=bool)
        seen[train.mentioned()] = True
        shared = np.zeros(len(test), dtype=bool)
        for name in test.fields:
            bags = test.mentions(name)
            shared |= np.logical_or.reduceat(seen[bags.rows], bags.offsets[:-1])
        found += int(shared.sum())
    return found


def _keys(data: Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the columns that tell whom a row is about, as a code per question."""
    table, distance = data.frame(), _Distance(data)
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_float_dtype(column) or pd.api.types.is_bool_dtype(column):
            continue
        codes = _coded(column)
        different = codes.max(initial=-1) + 1
        if not KEY_LEAST * len(codes) <= different <= KEY_MOST * len(codes):
            continue
        order = np.argsort(codes, kind="stable")
        same = np.flatnonzero((np.diff(codes[order]) == 0) & (codes[order][1:] >= 0))
        if len(same) and distance.told(order[same], order[same + 1]) >= KEY_AGREES:
            yield str(name), codes


# -- a give-away ----------------------------------------------------------------------------


def give_away(data: Dataset) -> tuple[str, float] | None:
    """Return the column of a table that tells the answers best, and how well, from 0 to 1.

    Rows are put in the order of the column. The score is 1 - D / E: D is how unlike the answers of
    neighbours are, E how unlike those of any two rows; classes are unlike or not, numbers by the
    square of the difference of their ranks. Neighbours of unlike text are any two rows.

    >>> table = pd.DataFrame({"a": range(40), "b": [0, 1, 1, 0] * 10, "y": list("nppn") * 10})
    >>> give_away(Dataset.from_table(table, "y"))
    ('b', 0.949)
    """
    if not _asks_for_rows(data) or data.kind == "items":
        return None
    table = data.frame()
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // max(table.shape[1], 1)))
    rng = np.random.default_rng(len(table))
    rows = rng.permutation(len(table))[:most]
    distance = _Distance(data.take(rows))
    if len(rows) < 3 or not distance.expected:
        return None
    table = table.iloc[rows]
    scores = _scores(table, distance)
    best = int(np.argmax(scores))
    return str(table.columns[best]), round(max(float(scores[best]), 0.0), 3)


class _Distance:
    """How unlike the answers of two questions are, and how unlike those of any two."""

    def __init__(self, data: Dataset) -> None:
        assert data.truth is not None
        classes = data.kind == "classes"
        truth = pd.Series(data.truth)
        self.values = pd.factorize(truth)[0] if classes else truth.rank().to_numpy(dtype=float)
        self.classes = classes
        counts = np.bincount(self.values) if classes else np.array([])
        shares = counts / max(len(truth), 1)
        self.expected = float(1 - (shares**2).sum() if classes else 2 * self.values.var())

    def told(self, first: np.ndarray, second: np.ndarray) -> float:
        """Return how much less unlike these pairs are than any two; 1 is the same answer always."""
        unlike = self.between(first, second)
        return 1 - float(unlike.mean()) / self.expected if self.expected else 0.0

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the distance of each pair."""
        one, other = self.values[first], self.values[second]
        return (one != other).astype(float) if self.classes else (one - other) ** 2


def _scores(table: pd.DataFrame, distance: _Distance) -> np.ndarray:
    """Return how well each column tells the answers of its rows."""
    scores = np.zeros(table.shape[1])
    numbers, places = [], []
    for i, column in enumerate(table.items()):
        values = _numbers(column[1])
        if values is None:
            codes = _coded(column[1])
            order = np.argsort(codes, kind="stable")
            # the order of texts means nothing: only rows of one text tell of each other
            same = np.diff(codes[order]) == 0
            unlike = np.where(same, distance.between(order[:-1], order[1:]), distance.expected)
            scores[i] = 1 - float(unlike.mean()) / distance.expected
        else:
            numbers.append(values)
            places.append(i)
    if numbers:
        order = np.argsort(np.stack(numbers), axis=1, kind="stable")
        unlike = distance.between(order[:, :-1], order[:, 1:])
        scores[places] = 1 - unlike.mean(axis=1) / distance.expected
    return scores


def _numbers(column: pd.Series) -> np.ndarray | None:
    """Return a column as numbers, or nothing if its order means nothing."""
    types = pd.api.types
    if types.is_datetime64_any_dtype(column):
        return np.asarray(column.rank().to_numpy(dtype=float))
    if not types.is_numeric_dtype(column) or types.is_complex_dtype(column):
        return None
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def _asks_for_rows(data: Dataset) -> bool:
    plain = len(data.fields) == 1 and len(data.mentions(data.fields[0]).rows) == len(data)
    return data.modality == "table" and plain


def _coded(column: pd.Series) -> np.ndarray:
    """Return a number per different cell; -1 where there is none."""
    try:
        codes = pd.factorize(column)[0]
    except TypeError:  # a cell that cannot be compared is told by what it prints
        codes = pd.factorize(column.map(repr))[0]
    return np.asarray(codes, dtype=np.int64)
