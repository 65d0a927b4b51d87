"""Statistics of tasks and of vectors, from which the checks find leakage and broken encoders.

Duplicate rows, shared entities and leaking columns are found once per task; statistics of the
vectors, and a sample of them for a scatter plot, in the first fold of each model. Large data are
sampled. Models do not see the statistics.
"""

from __future__ import annotations

import csv
import functools
import io
import operator
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import FunctionType, ModuleType
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.files import cell_text
from karat.core.predictions import as_text
from karat.execution.splits import Fold
from karat.results.item_tables import has_one_item_each

#: number of classes to count, and of labels of the scatter plot, largest first
MOST_CLASSES = 30
#: numbers of sampled rows and cells of a table
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_000_000, 200
#: a column is a key if its share of distinct values is between the first two numbers and its
#: score on rows of equal value (see ``_Distance.score``) is at least the third; the fourth, if
#: rows of neighboring values do not agree nearly as well, so that the column is not a quantity
KEY_LEAST, KEY_MOST, KEY_AGREES, KEY_NOISY = 0.2, 0.95, 0.9, 0.4
#: rows are equal if their numbers differ by less than this share of a standard deviation
EQUAL_NUMBERS = 1e-6
#: expected share of rows that equal another row by chance, below which ids are not compared
BY_CHANCE = 1e-3
#: rows are nearly identical if their distance is below this share of that to the tenth neighbor;
#: it takes this share of such rows to report them
NEAR, NEAR_SHARE, NEIGHBORS = 0.02, 0.3, 10
#: numbers of columns and of rows to search for near rows
NEAR_COLUMNS, NEAR_ROWS = (3, 10), 1_000
#: number of rows that show how far away the tenth neighbor is at most, and of pairs to compare
FAR_ROWS, MOST_NEAR_PAIRS = 500, 2_000_000
#: maximum number of sampled values of train and of test vectors, and of values read at once
MOST_NUMBERS = 2**20
#: maximum number of items compared with each other
MOST_COMPARED = 1_000
#: a dimension is nearly dead if its range is below this share of its largest value
NEARLY = 1e-4
#: the scatter plot: number of items and components
SAMPLE, COMPONENTS = 300, 16
#: variances and scores below these shares of the largest are rounding errors
FLAT, TINY = 1e-10, 1e-9
#: number of names in an example
EXAMPLES = 3
#: what may differ between the names of a task and those of a vector file, in this order
NAME_DIFFERENCES: dict[str, Callable[[str], str]] = {
    "prefix": lambda name: re.split("[/#:]", name)[-1],
    "case": str.lower,
    "underscores": lambda name: name.replace("_", " "),
}
#: for these estimators ``max_iter`` is the number of trees, which is always reached
GROWN = "HistGradientBoosting"

#: libraries that compute scores, whose functions no model may replace
GUARDED = ("sklearn", "karat.metrics", "karat.probes", "karat.stats")
#: modules of which only replacements since the first look are found
WATCHED = ("numpy", "numpy.linalg", "numpy.random", "scipy.stats", "scipy.linalg")
#: libraries whose functions the guarded ones import
TRUSTED = ("sklearn", "numpy", "scipy", "pandas", "joblib", "threadpoolctl", "karat")

Side = tuple[Dataset, Vectors]


class LibraryGuard:
    """Finds functions of libraries that a model has replaced in this process.

    A function is replaced if it changes between two looks, or if its code is in a file outside of
    the libraries.
    """

    def __init__(self) -> None:
        #: the names of a module or class, which of them are functions, and these functions
        self._known: dict[str, tuple[Mapping[str, Any], list[str], list[Any]]] = {}
        self._sizes: dict[str, int] = {}
        self._seen: set[str] = set()
        self._foreign: set[str] = set()
        self._looked = False
        self._last_module = ("", 0)
        self._fast: _FastLook | None = None
        self._last: list[str] = []

    def replaced(self, *, foreign: bool = True) -> list[str]:
        """Return the names of replaced functions, sorted.

        ``foreign`` is whether other code than that of libraries has run since the last look.
        """
        if foreign or not self._looked:
            self._last = self._find_replaced()
        else:
            self.prepare()
        return self._last

    def _find_replaced(self) -> list[str]:
        if not self._looked:
            self._looked = True
            self._forget_changed()
        self.prepare()
        self._fast = self._fast or _FastLook(self._known, self._sizes)
        if self._fast.finds_no_change():
            return sorted(self._foreign)
        for full, size in list(self._sizes.items()):
            if len(self._known[full][0]) != size:  # such as a method that overrides another one
                self._look_at(full, self._known[full][0])
        changed = [
            f"{full}.{key}"
            for full, (names, keys, were) in self._known.items()
            if any(map(operator.is_not, map(names.get, keys), were))
            for key, was in zip(keys, were, strict=True)
            if names.get(key) is not was
        ]
        return sorted({*self._foreign, *changed})

    def prepare(self) -> None:
        """Look at new modules, so that the first look takes less time."""
        last = (next(reversed(sys.modules)), len(sys.modules))
        if last == self._last_module:
            return
        self._last_module, self._fast = last, None
        for name in [name for name in sys.modules if name not in self._seen]:
            self._seen.add(name)
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and name in WATCHED:
                names: Mapping[str, Any] = vars(module)
                keys = [key for key, value in names.items() if callable(value)]
                self._known[name] = (names, keys, list(map(names.get, keys)))
            elif isinstance(module, ModuleType) and name.startswith(GUARDED):
                self._look_at(name, vars(module))
                for value in list(vars(module).values()):
                    if isinstance(value, type) and value.__module__ == name:
                        self._look_at(f"{name}.{value.__name__}", vars(value))

    def _forget_changed(self) -> None:
        """Forget what has changed since ``prepare``: only changes after the first look count."""
        for full, (names, keys, were) in list(self._known.items()):
            same = len(names) == self._sizes.get(full, len(names))
            if not same or any(map(operator.is_not, map(names.get, keys), were)):
                del self._known[full]
                self._sizes.pop(full, None)
                self._seen -= {full, full.rpartition(".")[0]}
                self._last_module = ("", 0)

    def _look_at(self, full: str, names: Mapping[str, Any]) -> None:
        """Remember the functions of a module or class; find those of other files."""
        self._fast = None
        self._sizes[full] = len(names)
        functions = [(k, v) for k, v in list(names.items()) if isinstance(v, FunctionType)]
        if full not in self._known:
            self._known[full] = (names, [k for k, _ in functions], [v for _, v in functions])
        homes = _homes(len(sys.modules))
        self._foreign.update(
            f"{full}.{k}" for k, v in functions if not v.__code__.co_filename.startswith(homes)
        )


class _FastLook:
    """Finds out whether anything has changed, in half of the time that it takes to find what."""

    def __init__(self, namespaces: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self._spaces = [namespaces[full][0] for full in sizes]
        self._sizes = list(sizes.values())
        looks = [(names, keys, were) for names, keys, were in namespaces.values() if keys]
        self._names = [names for names, _, _ in looks]
        # of one key, itemgetter would not return a tuple
        self._gets = [operator.itemgetter(*keys, keys[0]) for _, keys, _ in looks]
        self._were = [(*were, were[0]) for _, _, were in looks]

    def finds_no_change(self) -> bool:
        """Return whether every name that was known is still bound to the same function."""
        try:
            # a function is equal to itself only
            return (
                list(map(len, self._spaces)) == self._sizes
                and list(map(operator.call, self._gets, self._names)) == self._were
            )
        except Exception:  # a function was removed, or replaced by an object that raises
            return False


#: the guard of this process
guard = LibraryGuard()


@functools.lru_cache(maxsize=1)
def _homes(loaded: int) -> tuple[str, ...]:
    """Return the folders of trusted libraries, and the mark of generated code."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in ("os", *TRUSTED))
    return ("<", *(os.path.dirname(file) + os.sep for file in files if file))


def count_duplicates(data: Dataset, folds: Iterable[Fold]) -> tuple[int, int]:
    """Return the number of test questions whose item is also a train item, and of all of them.

    Items are equal if all their cells are, whatever their ids, targets and columns in which every
    row differs; entities, if their ids are. Questions about several items, or whose targets are
    items, have no duplicates.

    >>> table = pd.DataFrame({"a": [1, 1, 2], "y": ["n", "p", "n"]})
    >>> data = Dataset.from_table(table, "y")
    >>> folds = [Fold(np.array([0, 2]), np.array([1])), Fold(np.array([0]), np.array([2]))]
    >>> count_duplicates(data, folds)
    (1, 2)
    """
    folds = list(folds)
    tested = sum(len(fold.test) for fold in folds)
    if data.kind == "items" or not has_one_item_each(data):
        return 0, tested
    rows = data.mentions(data.fields[0]).rows
    if data.modality == "entity":
        return _crossing(rows, folds), tested
    return _crossing(_equal_rows(data.items)[rows], folds), tested


def _equal_rows(items: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return a number per item; equal items have the same number.

    Numbers are equal up to rounding errors. Columns of distinct ids are left out if the others
    hardly ever agree by chance.
    """
    if isinstance(items, pd.Series) or not len(items):
        return row_codes(items)
    codes, chance, ids = np.zeros(len(items), dtype=np.int64), float(len(items)), 0
    for column_number in range(items.shape[1]):
        column = items.iloc[:, column_number]
        number = pd.api.types.is_float_dtype(column)
        cells = _coded(_rounded(column) if number else column)
        if not number and cells.max() == len(cells) - 1:
            ids += 1
            continue
        chance *= float(((np.bincount(cells + 1) / len(cells)) ** 2).sum())
        codes = _combined(codes, cells)
        if codes.max() == len(codes) - 1:  # all items differ already
            return codes
    return codes if not ids or chance < BY_CHANCE else row_codes(items)


def _rounded(column: pd.Series) -> pd.Series:
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    finite = numbers[np.isfinite(numbers)]
    scale = float(finite.std()) if len(finite) else 0.0
    return pd.Series(np.round(numbers / (EQUAL_NUMBERS * scale)) if scale else numbers)


def _combined(codes: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return a number per row, equal where both are; renumbered so that it cannot overflow."""
    return np.asarray(pd.factorize(codes * (cells.max() + 2) + cells)[0])


def row_codes(items: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return a number per item; items with equal cells have the same number."""
    frame = items.to_frame() if isinstance(items, pd.Series) else items
    codes = np.zeros(len(frame), dtype=np.int64)
    for i in range(frame.shape[1]):
        codes = _combined(codes, _coded(frame.iloc[:, i]))
        if codes.max() == len(codes) - 1:  # all items differ already
            break
    return codes


def task_facts(data: Dataset, folds: Sequence[Fold], blind: bool = False) -> dict[str, Any]:
    """Return ``tested``, ``classes``, ``entities`` and ``give_away`` of a task as JSON values.

    ``tested`` is the number of distinct test questions. ``entities`` is [shared, tested, what]:
    the number of test questions whose entity is also in their train rows. ``give_away`` is
    [column, score], the column that predicts the target best. With ``blind`` (hidden targets)
    the last two are omitted. ``positive`` is the positive class, as text, of two.
    """
    times = np.bincount(np.concatenate([np.array([], int), *(fold.test for fold in folds)]))
    tested = int(np.count_nonzero(times))
    facts: dict[str, Any] = {"tested": tested, "classes": count_classes(data)}
    if data.positive is not None:
        facts["positive"] = str(data.positive)
    if blind:
        facts["blind"] = True
    elif data.target is not None:
        facts["entities"] = list(shared_entities(data, folds) or ())
        facts["give_away"] = list(leaking_column(data) or ())
    return {name: value for name, value in facts.items() if value or name == "tested"}


def count_classes(data: Dataset) -> dict[str, int]:
    """Return the number of questions per class, largest first.

    >>> table = pd.DataFrame({"a": [1, 2, 3], "y": ["n", "p", "n"]})
    >>> count_classes(Dataset.from_table(table, "y"))
    {'n': 2, 'p': 1}
    """
    if data.kind != "classification" or data.target is None:
        return {}
    counts = Counter(as_text(data.target).tolist())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CLASSES])


def shared_entities(data: Dataset, folds: Sequence[Fold]) -> tuple[int, int, str] | None:
    """Return how many test questions share their entity with a train question, of how many.

    An entity is a group, if the data have groups; an item, if questions have several fields; the
    value of a key column, whose rows of equal value have equal targets; or rows with nearly
    identical numbers. The third value names it; None if there is no entity.
    """
    tested = sum(len(fold.test) for fold in folds)
    if data.kind == "items":
        return None
    if data.group is not None:
        return _crossing(pd.factorize(data.group)[0], folds), tested, "group"
    if len(data.fields) > 1:
        return _items_on_both_sides(data, folds), tested, "item"
    if not _is_table(data):
        return None
    candidates = [(_crossing(codes, folds), tested, name) for name, codes in _keys(data)]
    candidates.append((_near_rows(data, folds), tested, "nearly identical row"))
    best = max(candidates, key=lambda candidate: candidate[0])
    return best if best[0] or len(candidates) > 1 else None


def _near_rows(data: Dataset, folds: Sequence[Fold]) -> int:
    """Return how many test rows have a nearly identical train row, from a sample of the rows."""
    matrix = _continuous(data.frame())
    if matrix is None or not folds:
        return 0
    chosen = evenly_spaced(np.arange(len(matrix)), NEAR_ROWS)
    if _clearly_apart(matrix, chosen):
        return 0
    from scipy.spatial import cKDTree

    distances, neighbors = cKDTree(matrix).query(matrix[chosen], NEIGHBORS + 1)
    # the first neighbor is the row itself; equal rows are duplicates
    near = (distances[:, 1] < NEAR * distances[:, -1]) & (distances[:, 1] > EQUAL_NUMBERS)
    if near.mean() < NEAR_SHARE:
        return 0
    count = 0
    for fold in folds:
        test, train = np.isin(chosen, fold.test), np.isin(neighbors[:, 1], fold.train)
        count += round(float((near & train)[test].mean()) * len(fold.test)) if test.any() else 0
    return count


def _clearly_apart(matrix: np.ndarray, chosen: np.ndarray) -> bool:
    """Return whether too few of the chosen rows can have a nearly identical row.

    A nearly identical row is within ``NEAR`` of the distance to the tenth neighbor, and the tenth
    neighbor among a few rows is at least as far away as that among all. So only rows whose first
    column differs by less than that are compared. False if they are many: a tree is faster then.
    """
    few = matrix[evenly_spaced(np.arange(len(matrix)), FAR_ROWS)]
    rows = matrix[chosen]
    squares = sum(
        np.subtract.outer(rows[:, column], few[:, column]) ** 2 for column in range(rows.shape[1])
    )
    radius = NEAR * np.sqrt(np.partition(squares, NEIGHBORS, axis=1)[:, NEIGHBORS]) * (1 + 1e-9)
    order = np.argsort(matrix[:, 0], kind="stable")
    ordered = matrix[order, 0]
    first = np.searchsorted(ordered, rows[:, 0] - radius, side="left")
    counts = np.searchsorted(ordered, rows[:, 0] + radius, side="right") - first
    if counts.sum() > MOST_NEAR_PAIRS:
        return False
    asking = np.repeat(np.arange(len(rows)), counts)
    places = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
    answering = order[places]
    distances = np.sqrt(((rows[asking] - matrix[answering]) ** 2).sum(axis=1))
    near = (distances <= radius[asking]) & (answering != chosen[asking])
    return bool(len(np.unique(asking[near])) < NEAR_SHARE * len(rows))


def _continuous(table: pd.DataFrame) -> np.ndarray | None:
    """Return the standardized columns with most distinct numbers; None if there are too few."""
    columns = []
    for _, column in table.items():
        if pd.api.types.is_float_dtype(column) and column.notna().all():
            numbers = column.to_numpy(dtype=float)
            distinct, spread = len(np.unique(numbers)), float(np.std(numbers))
            if 2 * distinct > len(numbers) and np.isfinite(spread) and spread > 0:
                columns.append((distinct, (numbers - numbers.mean()) / spread))
    fewest, most = NEAR_COLUMNS
    if len(columns) < fewest or len(table) <= 2 * NEIGHBORS:
        return None
    columns.sort(key=lambda pair: -pair[0])
    return np.column_stack([numbers for _, numbers in columns[:most]])


def _crossing(codes: np.ndarray, folds: Sequence[Fold]) -> int:
    """Return how many test rows have a code of their train rows; -1 is missing."""
    tests = [(codes[fold.test], codes[fold.train]) for fold in folds]
    return sum(int((np.isin(test, train) & (test >= 0)).sum()) for test, train in tests)


def _items_on_both_sides(data: Dataset, folds: Sequence[Fold]) -> int:
    count = 0
    for fold in folds:
        train, test = data.take(fold.train), data.take(fold.test)
        seen = np.zeros(len(data.items), dtype=bool)
        seen[train.mentioned()] = True
        shared = np.zeros(len(test), dtype=bool)
        for name in test.fields:
            bags = test.mentions(name)
            shared |= np.logical_or.reduceat(seen[bags.rows], bags.offsets[:-1])
        count += int(shared.sum())
    return count


def _keys(data: Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the key columns and a code per question."""
    table, distance = data.frame(), _Distance(data)
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_float_dtype(column) or pd.api.types.is_bool_dtype(column):
            continue
        if _is_date(column):
            continue
        codes = _coded(column)
        different = codes.max(initial=-1) + 1
        if not KEY_LEAST * len(codes) <= different <= KEY_MOST * len(codes):
            continue
        order = np.argsort(codes, kind="stable")
        same = np.flatnonzero((np.diff(codes[order]) == 0) & (codes[order][1:] >= 0))
        agree = distance.score(order[same], order[same + 1]) if len(same) else 0.0
        if agree >= KEY_AGREES or (
            agree >= KEY_NOISY and not _is_quantity(column, distance, agree)
        ):
            yield str(name), codes


def _is_date(column: pd.Series) -> bool:
    """Return whether a column holds dates, or texts that are dates."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    texts = column.dropna().head(20)
    if not len(texts) or not all(isinstance(text, str) for text in texts):
        return False
    dates = texts.str.fullmatch(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
    return bool(dates.all())


def _is_quantity(column: pd.Series, distance: _Distance, agree: float) -> bool:
    """Return whether rows of neighboring numbers agree nearly as well as rows of equal ones."""
    if not pd.api.types.is_numeric_dtype(column):
        return False
    values = column.to_numpy(dtype=float, na_value=np.nan)
    order = np.argsort(values, kind="stable")
    next_value = np.flatnonzero(np.diff(values[order]) > 0)
    if not len(next_value):
        return True
    return distance.score(order[next_value], order[next_value + 1]) > agree / 2


def leaking_column(data: Dataset) -> tuple[str, float] | None:
    """Return the column that predicts the target best, and its score from 0 to 1.

    Rows are sorted by the column. The score is 1 - D / E: D is the mean distance between the
    targets of neighbors, E that of any two rows. The distance of classes is 0 or 1, of numbers
    the squared difference of their ranks; for neighbors with different text it is E. If at least
    half of the cells are there, the score is that of the rows with a cell.

    >>> table = pd.DataFrame({"a": range(40), "b": [0, 1, 1, 0] * 10, "y": list("nppn") * 10})
    >>> leaking_column(Dataset.from_table(table, "y"))
    ('b', 0.949)
    """
    if not _is_table(data) or data.kind == "items":
        return None
    table = data.frame()
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // max(table.shape[1], 1)))
    rng = np.random.default_rng(len(table))
    rows = rng.permutation(len(table))[:most]
    distance = _Distance(data.take(rows))
    if len(rows) < 3 or not distance.expected:
        return None
    scores = [_column_score(column, distance) for _, column in table.iloc[rows].items()]
    best = int(np.argmax(scores))
    return str(table.columns[best]), round(max(scores[best], 0.0), 3)


class _Distance:
    """Distances between the targets of questions, and their expected value."""

    def __init__(self, data: Dataset) -> None:
        assert data.target is not None
        classes = data.kind == "classification"
        truth = pd.Series(data.target)
        self.values = pd.factorize(truth)[0] if classes else truth.rank().to_numpy(dtype=float)
        self.classes = classes
        self.expected = self.expected_of(np.arange(len(truth)))

    def expected_of(self, rows: np.ndarray) -> float:
        """Return the expected distance of two of these rows."""
        values = self.values[rows]
        if not self.classes:
            return float(2 * values.var()) if len(values) else 0.0
        shares = np.bincount(values) / max(len(values), 1)
        return float(1 - (shares**2).sum())

    def score(self, first: np.ndarray, second: np.ndarray) -> float:
        """Return 1 - mean distance / expected distance; 1 means equal targets in all pairs."""
        distances = self.between(first, second)
        return 1 - float(distances.mean()) / self.expected if self.expected else 0.0

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the distance of each pair."""
        one, other = self.values[first], self.values[second]
        return (one != other).astype(float) if self.classes else (one - other) ** 2


def _column_score(column: pd.Series, distance: _Distance) -> float:
    """Return the score of a column; of the rows with a cell if at least half of them have one."""
    types = pd.api.types
    rows = np.flatnonzero(column.notna().to_numpy())
    expected = distance.expected_of(rows)
    if 2 * len(rows) < len(column) or not expected:
        rows, expected = np.arange(len(column)), distance.expected
    column = column.iloc[rows]
    ordered = types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
    if types.is_datetime64_any_dtype(column):
        values, ordered = column.rank().to_numpy(dtype=float), True
    elif ordered:
        values = column.to_numpy(dtype=float, na_value=np.nan)
    else:
        values = _coded(column)
    order = np.argsort(values, kind="stable")
    distances = distance.between(rows[order[:-1]], rows[order[1:]])
    if not ordered:  # only rows with equal text are neighbors
        distances = np.where(np.diff(values[order]) == 0, distances, expected)
    return 1 - float(distances.mean()) / expected if len(distances) else 0.0


def _is_table(data: Dataset) -> bool:
    return data.modality == "table" and has_one_item_each(data)


def _coded(column: pd.Series) -> np.ndarray:
    """Return a number per distinct cell; -1 for missing cells."""
    try:
        codes = pd.factorize(column)[0]
    except TypeError:  # lists, arrays, columns or tables in cells
        codes = pd.factorize(np.array([cell_text(cell) for cell in column], dtype=object))[0]
    return np.asarray(codes, dtype=np.int64)


def vector_facts(train: Side, test: Side) -> dict[str, Any]:
    """Return statistics of the train and test vectors of a fold.

    Of the ``dimensions``, ``constant`` are equal for all items and ``nearly_dead`` vary by less
    than 1/10,000 of their size. Of the sampled ``items``, ``zero`` are all zeros; ``lengths`` are
    the 1st, 50th and 99th percentile of the norms. Of the ``compared`` test items, ``same`` have
    the vector of an item with other cells.
    """
    width = int(train[1].matrix.shape[1])
    parts = [(vectors.matrix, _places(data, vectors)) for data, vectors in (train, test)]
    (matrix, places), (other, others) = parts
    # without a split, both sides are the same
    times = 2 if matrix is other and np.array_equal(places, others) else 1
    parts = [(matrix, places) for matrix, places in parts[: 3 - times] if len(places)]
    facts: dict[str, Any] = {"dimensions": width}
    if parts:
        samples = [matrix[evenly_spaced(places, MOST_NUMBERS // width)] for matrix, places in parts]
        squares = [np.einsum("ij,ij->i", sample, sample, dtype=np.float64) for sample in samples]
        lengths = np.sqrt(np.concatenate(squares * times))
        facts |= count_constant_dimensions(parts, samples)
        facts |= {"items": len(lengths), "zero": int((lengths == 0).sum())}
        facts["lengths"] = [float(f"{v:.6g}") for v in np.percentile(lengths, [1, 50, 99])]
    return facts | dict(zip(("same", "compared"), same_vectors(*test), strict=True))


def _places(data: Dataset, vectors: Vectors) -> np.ndarray:
    """Return the matrix rows of the mentioned items that have a vector."""
    places = np.flatnonzero(np.isin(vectors.rows, data.mentioned(), assume_unique=True))
    return places[~np.isnan(vectors.matrix[places, 0])]


def evenly_spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` of the rows, evenly spaced.

    >>> evenly_spaced(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    if len(rows) <= max(most, 2):
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(most, 2)).round().astype(int)]


def count_constant_dimensions(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], samples: Sequence[np.ndarray]
) -> dict[str, int]:
    """Return the numbers of constant and nearly constant dimensions over all rows.

    Dimensions that vary in the samples are not read again.
    """
    low = np.min([matrix.min(axis=0) for matrix in samples], axis=0)
    high = np.max([matrix.max(axis=0) for matrix in samples], axis=0)
    still = np.flatnonzero(_still(low, high))
    for matrix, places in parts:
        begin = 0
        while begin < len(places) and len(still):
            end = begin + max(MOST_NUMBERS // len(still), 1)
            block = matrix[np.ix_(places[begin:end], still)]
            low[still] = np.minimum(low[still], block.min(axis=0))
            high[still] = np.maximum(high[still], block.max(axis=0))
            still, begin = still[_still(low[still], high[still])], end
    constant = int((low[still] == high[still]).sum())
    return {"constant": constant, "nearly_dead": len(still) - constant}


def _still(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    largest = np.maximum(np.abs(low), np.abs(high)).astype(float)
    moved = high.astype(float) - low
    return (low == high) | (moved < NEARLY * largest)


def same_vectors(data: Dataset, vectors: Vectors) -> tuple[int, int]:
    """Return how many items have the vector of an item with other cells, and of how many.

    Entities are compared by id, other items by their cells.
    """
    places = evenly_spaced(_places(data, vectors), MOST_COMPARED)
    if len(places) < 2:
        return 0, len(places)
    rows, first = vectors.rows[places], dict[bytes, int]()
    matrix = vectors.matrix[places] + 0.0  # -0 is 0
    if len(set(map(np.ndarray.tobytes, matrix[:, :8]))) == len(rows):  # all differ at the beginning
        return 0, len(rows)
    vector = np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(matrix)])
    item = rows if data.modality == "entity" else row_codes(data.items.iloc[rows])
    items = item.max() + 1
    pairs = np.unique(vector * items + item)
    several = np.bincount(pairs // items, minlength=vector.max() + 1) > 1
    return int(several[vector].sum()), len(rows)


def unmatched_names(requested: Iterable[str], available: Iterable[str]) -> dict[str, Any]:
    """Return examples of the names asked for and of those with a vector, and how they differ.

    ``cause`` names the smallest set of differences without which some names are equal, and is
    empty if there is none. The result is empty if some names are equal as they are.

    >>> unmatched_names(["http://dbpedia.org/resource/New_York"], ["rome", "new york"])["cause"]
    'prefix, case and underscores'
    """
    requested, available = list(dict.fromkeys(requested)), list(dict.fromkeys(available))
    if not available or not set(requested).isdisjoint(available):
        return {}
    sizes = range(1, len(NAME_DIFFERENCES) + 1)
    for names in (
        differences for size in sizes for differences in combinations(NAME_DIFFERENCES, size)
    ):
        there = {_without(name, names): name for name in reversed(available)}
        pairs = [(a, there[b]) for a in requested if (b := _without(a, names)) in there]
        if pairs:
            first, second = zip(*pairs[:EXAMPLES], strict=True)
            *others, last = names
            cause = f"{', '.join(others)} and {last}" if others else last
            return {"asked": list(first), "known": list(second), "cause": cause}
    return {"asked": requested[:EXAMPLES], "known": available[:EXAMPLES], "cause": ""}


def _without(name: str, differences: Iterable[str]) -> str:
    for difference in differences:
        name = NAME_DIFFERENCES[difference](name)
    return name


def unconverged(fitted: object) -> int:
    """Return how many fitted estimators stopped at their iteration limit."""
    seen: set[int] = set()
    return sum(_hit_limit(estimator) for estimator in _estimators(fitted, seen, 0))


def _estimators(whole: object, seen: set[int], depth: int) -> Iterator[Any]:
    """Yield an estimator and those it consists of."""
    if whole is None or depth > 4 or id(whole) in seen or len(seen) > 500:
        return
    seen.add(id(whole))
    if isinstance(whole, Mapping | list | tuple):
        inside = list(whole.values()) if isinstance(whole, Mapping) else list(whole)
    else:
        if not hasattr(whole, "fit") or isinstance(whole, type):
            return
        yield whole
        attributes = getattr(whole, "__dict__", {})
        fitted = [name for name in attributes if name.endswith("_") and name != "history_"]
        inside = [attributes[name] for name in ("steps", *fitted) if name in attributes]
    for part in inside:
        if hasattr(part, "fit") or isinstance(part, Mapping | list | tuple):
            yield from _estimators(part, seen, depth + 1)


def _hit_limit(estimator: object) -> bool:
    if hasattr(estimator, "converged_"):
        return not np.all(estimator.converged_)
    most, done = getattr(estimator, "max_iter", None), getattr(estimator, "n_iter_", None)
    if not isinstance(most, int) or most < 1 or done is None:
        return False
    return bool(np.max(done, initial=0) >= most) and not type(estimator).__name__.startswith(GROWN)


def sample_csv(
    test: Dataset, vectors: Vectors, seed: int, keys: np.ndarray | None = None
) -> str | None:
    """Return up to 300 test items as ``label,c0,c1,…``: scores on their principal components.

    With the ``keys`` of the items, ``key`` is the last column.

    The items depend on seed and dataset, so all models show the same ones. The label is the
    target; empty for classes beyond the 30 largest. None for questions about several items and
    if all vectors are equal.
    """
    if not has_one_item_each(test):
        return None
    rng = np.random.default_rng([seed, crc32(f"map {test.name}".encode())])
    chosen = np.sort(rng.permutation(len(test))[:SAMPLE])
    rows = test.mentions(test.fields[0]).rows[chosen]
    with_vector = vectors.known(rows)
    scores = principal(vectors.at(rows[with_vector]).astype(np.float64))
    if not scores.size:
        return None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [[]] * len(scores) if keys is None else [[key] for key in keys[chosen[with_vector]]]
    components = [f"c{i}" for i in range(scores.shape[1])]
    writer.writerow(["label", *components, *([] if keys is None else ["key"])])
    labels = _labels(test.take(chosen[with_vector]))
    for label, row, name in zip(labels, scores.tolist(), names, strict=True):
        writer.writerow([label, *(f"{value:.5g}" for value in row), *name])
    return out.getvalue()


def principal(matrix: np.ndarray) -> np.ndarray:
    """Return the scores of rows on their first principal components.

    In each component the score farthest from 0 is positive.

    >>> principal(np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])).ravel().tolist()
    [2.0, 0.0, -2.0]
    """
    if len(matrix) < 2:
        return np.empty((len(matrix), 0))
    centered = matrix - matrix.mean(axis=0)
    if centered.shape[1] <= centered.shape[0]:
        values, axes = np.linalg.eigh(centered.T @ centered)
        scores = centered @ axes
    else:
        values, axes = np.linalg.eigh(centered @ centered.T)
        scores = axes * np.sqrt(np.maximum(values, 0))
    largest = np.argsort(-values, kind="stable")
    largest = largest[values[largest] > FLAT * values.max()]
    scores = scores[:, largest[:COMPONENTS]]
    scores[np.abs(scores) < TINY * np.abs(scores).max(initial=0)] = 0.0
    # of equally distant scores the first counts, independent of rounding
    farthest = (np.abs(scores) / np.abs(scores).max(axis=0, initial=0)).round(9).argmax(axis=0)
    signs = np.sign(scores[farthest, np.arange(scores.shape[1])])
    return np.asarray(scores * signs + 0.0)


def _labels(data: Dataset) -> list[str]:
    if data.target is None or data.kind == "items":
        return [""] * len(data)
    if data.kind == "regression":
        return [f"{float(value):.6g}" for value in data.target]
    largest = count_classes(data)
    return [label if label in largest else "" for label in map(str, as_text(data.target))]
