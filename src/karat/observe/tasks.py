"""Statistics of a task: classes, entities in both train and test, columns that leak the target.

Computed once per task, from a sample if the data are large. Models do not see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.predictions import as_text
from karat.splits import Fold

#: number of classes to count, largest first
MOST_CLASSES = 30
#: numbers of sampled rows and cells of a table
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_000_000, 200
#: a column is a key if its share of distinct values is between the first two numbers and its
#: score on rows of equal value (see ``_Distance.score``) is at least the third
KEY_LEAST, KEY_MOST, KEY_AGREES = 0.2, 0.95, 0.9


def task_facts(data: Dataset, folds: Sequence[Fold], blind: bool = False) -> dict[str, Any]:
    """Return ``tested``, ``classes``, ``entities`` and ``give_away`` of a task as JSON values.

    ``tested`` is the number of distinct test questions. ``entities`` is [shared, tested, what]:
    the number of test questions whose entity is also in their train rows. ``give_away`` is
    [column, score], the column that predicts the target best. With ``blind`` (hidden targets)
    the last two are omitted.
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
    """Return the number of questions per class, largest first.

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
    """Return how many test questions share their entity with a train question, of how many.

    An entity is a group, if the data have groups; an item, if questions have several fields; or
    the value of a key column, whose rows of equal value have equal targets. The third value names
    it; None if there is no entity.
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
        for name, codes in (_keys(data) if _is_plain_table(data) else ())
    ]
    return max(found, key=lambda each: each[0], default=None)


def _crossing(codes: np.ndarray, folds: Sequence[Fold]) -> int:
    """Return how many test rows have a code of their train rows; -1 is missing."""
    found = 0
    for fold in folds:
        test = codes[fold.test]
        found += int((np.isin(test, codes[fold.train]) & (test >= 0)).sum())
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
    """Yield the key columns and a code per question."""
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
        if len(same) and distance.score(order[same], order[same + 1]) >= KEY_AGREES:
            yield str(name), codes


# -- columns that leak the target ------------------------------------------------------------


def give_away(data: Dataset) -> tuple[str, float] | None:
    """Return the column that predicts the target best, and its score from 0 to 1.

    Rows are sorted by the column. The score is 1 - D / E: D is the mean distance between the
    targets of neighbors, E that of any two rows. The distance of classes is 0 or 1, of numbers
    the squared difference of their ranks; for neighbors with different text it is E.

    >>> table = pd.DataFrame({"a": range(40), "b": [0, 1, 1, 0] * 10, "y": list("nppn") * 10})
    >>> give_away(Dataset.from_table(table, "y"))
    ('b', 0.949)
    """
    if not _is_plain_table(data) or data.kind == "items":
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
    """Distances between the targets of questions, and their expected value."""

    def __init__(self, data: Dataset) -> None:
        assert data.truth is not None
        classes = data.kind == "classes"
        truth = pd.Series(data.truth)
        self.values = pd.factorize(truth)[0] if classes else truth.rank().to_numpy(dtype=float)
        self.classes = classes
        counts = np.bincount(self.values) if classes else np.array([])
        shares = counts / max(len(truth), 1)
        self.expected = float(1 - (shares**2).sum() if classes else 2 * self.values.var())

    def score(self, first: np.ndarray, second: np.ndarray) -> float:
        """Return 1 - mean distance / expected distance; 1 means equal targets in all pairs."""
        distances = self.between(first, second)
        return 1 - float(distances.mean()) / self.expected if self.expected else 0.0

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the distance of each pair."""
        one, other = self.values[first], self.values[second]
        return (one != other).astype(float) if self.classes else (one - other) ** 2


def _scores(table: pd.DataFrame, distance: _Distance) -> np.ndarray:
    """Return the score of each column."""
    scores = np.zeros(table.shape[1])
    numbers, places = [], []
    for i, column in enumerate(table.items()):
        values = _numbers(column[1])
        if values is None:
            codes = _coded(column[1])
            order = np.argsort(codes, kind="stable")
            # texts have no order: only rows with equal text count as neighbors
            same = np.diff(codes[order]) == 0
            distances = np.where(same, distance.between(order[:-1], order[1:]), distance.expected)
            scores[i] = 1 - float(distances.mean()) / distance.expected
        else:
            numbers.append(values)
            places.append(i)
    if numbers:
        order = np.argsort(np.stack(numbers), axis=1, kind="stable")
        distances = distance.between(order[:, :-1], order[:, 1:])
        scores[places] = 1 - distances.mean(axis=1) / distance.expected
    return scores


def _numbers(column: pd.Series) -> np.ndarray | None:
    """Return a column as numbers, or None if it has no order."""
    types = pd.api.types
    if types.is_datetime64_any_dtype(column):
        return np.asarray(column.rank().to_numpy(dtype=float))
    if not types.is_numeric_dtype(column) or types.is_complex_dtype(column):
        return None
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def _is_plain_table(data: Dataset) -> bool:
    plain = len(data.fields) == 1 and len(data.mentions(data.fields[0]).rows) == len(data)
    return data.modality == "table" and plain


def _coded(column: pd.Series) -> np.ndarray:
    """Return a number per distinct cell; -1 for missing cells."""
    try:
        codes = pd.factorize(column)[0]
    except TypeError:  # unhashable cells are compared by their repr
        codes = pd.factorize(column.map(repr))[0]
    return np.asarray(codes, dtype=np.int64)
