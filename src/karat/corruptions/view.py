"""Views: the clean test questions, or the test questions corrupted with a severity.

The generator of a corruption depends only on seed, fold, draw and its name, so adding a corruption
changes no other. All severities share their random draws, so a higher severity affects a superset.
The first part is what corruptions are written with: what they need, which cells a severity affects,
and how changed cells are written back. The kind of a column depends only on the dtype, which is the
same in every fold: numbers, booleans ("flag"), categories, text (strings and plain objects) and
dates. All others, such as durations and intervals, can only become missing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core import numbers, registry
from karat.core.columns import ITEM_TYPES
from karat.core.dataset import PLURAL, Dataset
from karat.core.embeddings import Vectors
from karat.core.files import cell_text
from karat.core.registry import corruptions, load_object
from karat.errors import ContractError, DataError, DefinitionError, Unavailable, did_you_mean

NUMBER, FLAG, CATEGORY, TEXT, DATE, OTHER = "number", "flag", "category", "text", "date", "other"
#: kinds with levels that can be confused
LEVELS = (CATEGORY, TEXT, FLAG)

#: the dataset with the list of misspelled words
MISSPELLINGS = "misspellings_en"

_LARGEST = float(np.finfo(float).max)
_WIDER = ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float32", "float64")


def kind(column: pd.Series) -> str:
    """Return the kind of a column.

    >>> [kind(pd.Series(v)) for v in ([1], [True], ["a"], [pd.Timestamp("2024-05-01")])]
    ['number', 'flag', 'text', 'date']
    """
    return kind_of(column.dtype)


def kind_of(dtype: Any) -> str:
    """Return the kind of a column of this dtype."""
    kinds = pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        return CATEGORY
    if kinds.is_bool_dtype(dtype):
        return FLAG
    if kinds.is_numeric_dtype(dtype):
        return OTHER if kinds.is_complex_dtype(dtype) else NUMBER
    if kinds.is_object_dtype(dtype) or getattr(dtype, "type", None) is str:
        return TEXT
    return DATE if getattr(dtype, "kind", "") == "M" else OTHER


def places(X: pd.DataFrame, *kinds: str) -> list[int]:
    """Return the positions of the columns of these kinds."""
    return [i for i, dtype in enumerate(X.dtypes) if kind_of(dtype) in kinds]


def with_columns(X: pd.DataFrame, changed: dict[int, pd.Series]) -> pd.DataFrame:
    """Return a new table with replaced columns."""
    table = X.copy()
    for i, column in changed.items():
        table.isetitem(i, column)
    return table


def dense(column: pd.Series) -> pd.Series:
    """Return a sparse column as a dense one; others unchanged."""
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


def floats(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as 64-bit floats; missing ones are NaN."""
    return dense(column).to_numpy(dtype=float, na_value=np.nan)


def spread(values: np.ndarray) -> float:
    """Return the standard deviation (ddof 0) of the finite numbers; exactly 0 if all are equal.

    >>> spread(np.array([1.0, 3.0, np.nan])), spread(np.array([0.1, 0.1, 0.1]))
    (1.0, 0.0)
    """
    known = values[np.isfinite(values)]
    if not len(known) or known.min() == known.max():
        return 0.0
    scale = float(np.abs(known).max())  # so that squares of the largest numbers are finite
    return min(scale * float((known / scale).std()), _LARGEST)


def with_values(column: pd.Series, at: np.ndarray, values: np.ndarray) -> pd.Series:
    """Return a column of numbers with new values in some rows, in a dtype that can hold them.

    The dtype is kept if possible. Otherwise it is a wider one of its kind, or a 64-bit float for
    fractions among integers. A nullable column stays nullable; infinite values are clipped.

    >>> with_values(pd.Series([1, 2], dtype="int8"), np.array([0]), np.array([300.0])).dtype
    dtype('int16')
    """
    if not len(values):
        return column
    values = np.clip(values, -_LARGEST, _LARGEST)
    plain = dense(column)
    own = getattr(plain.dtype, "numpy_dtype", plain.dtype)
    wanted = next(np.dtype(t) for t in (own, *_WIDER) if _holds(np.dtype(t), own, values))
    changed = plain.copy() if wanted == own else plain.astype(_like(plain.dtype, wanted))
    changed.iloc[at] = values.astype(wanted)
    return changed


def _holds(dtype: np.dtype, own: np.dtype, values: np.ndarray) -> bool:
    if dtype == np.float64:
        return True
    if dtype.kind not in ("f" if own.kind == "f" else "iu") or not np.can_cast(own, dtype):
        return False
    low, high = float(values.min()), float(values.max())
    if dtype.kind == "f":
        return max(-low, high) <= float(np.finfo(dtype).max)
    info = np.iinfo(dtype)
    # the largest 64-bit integer is not a float, its successor is
    return bool((values == np.rint(values)).all() and info.min <= low and high < info.max + 1)


def _like(dtype: Any, wanted: np.dtype) -> Any:
    """Return the wanted dtype in the family of a column: NumPy, nullable or Arrow."""
    if isinstance(dtype, pd.ArrowDtype):
        return pd.api.types.pandas_dtype(f"{wanted.name}[pyarrow]")
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return wanted.name.replace("uint", "UInt").replace("int", "Int").replace("float", "Float")
    return wanted


def levels(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of each cell, -1 if missing, and one row of each level.

    Unhashable cells, such as lists, have no level.

    >>> codes, rows = levels(pd.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), rows.tolist()
    ([0, 1, -1, 0], [0, 1])
    """
    try:
        category = isinstance(column.dtype, pd.CategoricalDtype)
        raw = column.cat.codes.to_numpy() if category else pd.factorize(dense(column))[0]
    except TypeError:
        raw = np.full(len(column), -1)
    known = np.flatnonzero(raw >= 0)
    _, first, inverse = np.unique(raw[known], return_index=True, return_inverse=True)
    codes = np.full(len(column), -1)
    codes[known] = inverse
    return codes, known[first]


def from_rows(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """Return a column with the cells of other rows, under its own index."""
    cells = column.array.take(rows)
    return pd.Series(cells, index=column.index, dtype=column.dtype, name=column.name)


#: takes the items X, the target y and its kind; returns why the need is not met, or ""
Need = Callable[[Any, Any, str], str]
Corrupted = tuple[Any, Any]
Function = Callable[..., Corrupted]

#: the default seed, as in the document of the benchmark
_SEED = 42


def unmet_reason(name: str, data: Dataset) -> str:
    """Return why a corruption cannot be applied to a dataset; "" if it can.

    >>> table = pd.DataFrame({"size": [1, 2, 3], "y": [0.5, 1.5, 2.5]})
    >>> data = Dataset.from_table(table, "y", name="sizes")
    >>> unmet_reason("noise_gaussian", data)
    ''
    >>> unmet_reason("rare_class_dilution", data)
    'the target is numbers, not classes'
    """
    function = corruptions.get(name)
    takes, needs = getattr(function, "takes", ()), getattr(function, "needs", ())
    if takes and data.modality not in takes:
        return f"it takes {_listed(takes)}, not {PLURAL[data.modality]}"
    why = _unmet(name, needs, data.items, data.target, data.target_type)
    if not why and {"rows", "classes", "target"} & set(needs) and not by_row(data):
        return "it changes rows and their target, but not every question is about one item"
    return why


def by_row(data: Dataset) -> bool:
    """Return whether each question is about one item, so that rows can be dropped or repeated."""
    asked = data.mentions(data.fields[0]).rows
    if len(data.fields) > 1 or len(asked) != len(data) or data.kind == "items":
        return False
    return data.modality != "entity" or len(np.unique(asked)) == len(asked)


def check_severity(name: str, severity: Any) -> None:
    """Refuse a severity outside of the range of a corruption.

    >>> check_severity("missingness_mcar", 1.5)
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: corruption missingness_mcar: severity must be 0 to 1, got 1.5.
    """
    _check_range(name, severity, getattr(corruptions.get(name), "range", None))


def corrupts(
    name: str,
    *,
    takes: Sequence[str] = ("table",),
    needs: Sequence[str] = (),
    range: tuple[float, float] = (0.0, 1.0),
) -> Callable[[Function], Function]:
    """Register a corruption that is only called on data that meet its needs.

    The function receives X and y of equal length, a severity above 0 and a generator. At severity 0
    it is not called, and the data are returned unchanged.
    """

    def add(change: Function) -> Function:
        @functools.wraps(change)
        def careful(X: Any, y: Any, severity: float, rng: Any = None, **options: Any) -> Corrupted:
            _check_range(name, severity, range)
            X, y = _aligned(name, X, y)
            if severity == 0:
                return X.copy(), y
            if why := _untaken(takes, X) or _unmet(name, needs, X, y, _kind_of(y)):
                raise DefinitionError(f"corruption {name}: {why}.")
            rng = np.random.default_rng(_SEED if rng is None else rng)
            return change(X, y, float(severity), rng, **options)

        return registry.corruption(name, takes=takes, needs=needs, range=range)(careful)

    return add


def _check_range(name: str, severity: Any, allowed: tuple[float, float] | None) -> None:
    if allowed is None:
        return
    low, high = allowed
    number = isinstance(severity, Real) and not isinstance(severity, bool)
    if not number or not low <= float(severity) <= high or float(severity) == np.inf:
        allowed_text = f"{low:g} to {high:g}" if high < np.inf else f"finite and >= {low:g}"
        raise DefinitionError(
            f"corruption {name}: severity must be {allowed_text}, got {severity}."
        )


def _aligned(name: str, X: Any, y: Any) -> Corrupted:
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X) if X.ndim == 2 else pd.Series(X)
    if not isinstance(X, pd.DataFrame | pd.Series):
        raise DataError(
            f"corruption {name}: X must be a table or a series, got {type(X).__name__}."
        )
    if y is not None and len(y) != len(X):
        raise DataError(f"corruption {name}: X has {len(X)} rows, but y has {len(y)}.")
    return X, y if y is None or isinstance(y, pd.Series) else pd.Series(y, index=X.index)


def _untaken(takes: Sequence[str], X: Any) -> str:
    wanted = "table" if isinstance(X, pd.DataFrame) else "text"
    for modality, cell_type in ITEM_TYPES.items():
        if isinstance(X, pd.Series) and len(X) and isinstance(X.iloc[0], cell_type):
            wanted = modality
    return "" if wanted in takes else f"it takes {_listed(takes)}, not {PLURAL[wanted]}"


def _listed(takes: Sequence[str]) -> str:
    return " and ".join(PLURAL.get(each, each) for each in takes)


def _kind_of(y: pd.Series | None) -> str:
    """Return the kind of an undeclared target: fractions are numbers, all others are classes."""
    if y is None:
        return ""
    if getattr(y.dtype, "kind", "") != "f":
        return "classes"
    known = y.dropna()
    return "classes" if (known == known.round()).all() else "numbers"


def _unmet(name: str, needs: Sequence[str], X: Any, y: Any, answers: str) -> str:
    for need in needs:
        if need not in NEEDS:
            hint = did_you_mean(need, NEEDS) or f" Available: {', '.join(NEEDS)}."
            raise DefinitionError(f'corruption "{name}": unknown need "{need}".{hint}')
        if why := NEEDS[need](X, y, answers):
            return why
    return ""


def _column(words: str, *kinds: str) -> Need:
    def missing(X: Any, y: Any, answers: str) -> str:
        found = isinstance(X, pd.Series) or places(X, *kinds)
        return "" if found else f"there is no column of {words}"

    return missing


def _pair(X: Any, y: Any, answers: str) -> str:
    found = [kind(X.iloc[:, i]) for i in range(X.shape[1])]
    pair = any(found.count(each) > 1 for each in (NUMBER, FLAG, CATEGORY, TEXT, DATE))
    return "" if pair else "no two columns are of the same kind"


def _target(X: Any, y: Any, answers: str) -> str:
    if y is None:
        return "there is no target"
    return "the target is items, not classes or numbers" if answers == "items" else ""


def _classes(X: Any, y: Any, answers: str) -> str:
    if answers and answers != "classes":
        return f"the target is {answers}, not classes"
    return _target(X, y, answers)


def needed_file(name: str) -> Path:
    """Return the file of a built-in dataset; raise Unavailable if it cannot be downloaded."""
    # by its name, as components of other packages are found: this package imports neither
    builtin_file = load_object("karat.config.catalog:builtin_file")
    return Path(builtin_file(name))


def _no_file(name: str) -> Need:
    def missing(X: Any, y: Any, answers: str) -> str:
        try:
            needed_file(name)
        except Unavailable as error:
            return str(error)
        return ""

    return missing


NEEDS: Mapping[str, Need] = {
    "numbers": _column("numbers", NUMBER),
    "dates": _column("dates", DATE),
    "text": _column("text", TEXT),
    "order": _column("numbers or dates", NUMBER, DATE),
    "levels": _column("categories, text or booleans", *LEVELS),
    "names": _column("categories or text", CATEGORY, TEXT),
    "codes": _column("numbers, categories, text or dates", NUMBER, CATEGORY, TEXT, DATE),
    "two columns": lambda X, y, _: "" if X.shape[1] > 1 else "there is only one column",
    "pair": _pair,
    "rows": lambda X, y, answers: "",  # depends on the questions, see unmet_reason
    "target": _target,
    "classes": _classes,
    "misspellings": _no_file(MISSPELLINGS),
}


def count_affected(size: int, severity: float) -> int:
    """Return the number of affected cells or rows, rounded down.

    >>> count_affected(30, 0.1), count_affected(29, 0.1), count_affected(100, 0.29)
    (3, 2, 29)
    """
    return math.floor(round(size * severity, 9))  # 0.29 of 100 are 29, not 28.999999999999996


def count_up(size: int, severity: float) -> int:
    """Return the number of affected columns, rounded up: at least one above severity 0."""
    return min(size, max(math.ceil(round(size * severity, 9)), int(severity > 0)))


def affected_places(size: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the affected cells or rows in random order; a lower severity is a prefix."""
    return rng.permutation(size)[: count_affected(size, severity)]


def affected_cells(
    rows: int, columns: int, severity: float, rng: np.random.Generator
) -> np.ndarray:
    """Return which cells of a table are affected, one row per column of the table."""
    hit = np.zeros(rows * columns, dtype=bool)
    hit[affected_places(hit.size, severity, rng)] = True
    return hit.reshape(columns, rows)


def column_generators(rng: np.random.Generator, size: int) -> list[np.random.Generator]:
    """Return an independent generator for each column."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=size)]


# -- views ------------------------------------------------------------------------------------


def changed_share(before: Any, after: Any) -> float:
    """Return the share of changed cells, or of changed rows if rows were dropped or repeated.

    Both arguments are a table, a series, or a pair ``(X, y)``; ``y`` counts if ``X`` has not
    changed. Missing cells are equal, and so are equal numbers of different types. If the index
    differs, rows count that were dropped, repeated, or differ in any cell.

    >>> before = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> changed_share(before, before.assign(a=[1.0, 3.0]))
    0.25
    >>> changed_share(before, before[1:])
    0.5
    """
    if isinstance(before, tuple):
        items = changed_share(before[0], after[0])
        return items if items or before[1] is None else changed_share(before[1], after[1])
    one, other = pd.DataFrame(before), pd.DataFrame(after)
    if not one.size:
        return 0.0
    if one.index.equals(other.index):
        return float(_differing(one, other).mean())
    return min(1.0, _rows_changed(one, other) / len(one))


def _rows_changed(one: pd.DataFrame, other: pd.DataFrame) -> float:
    labels = one.index.append(other.index)
    numbers = pd.factorize(labels)[0]
    had, has = (
        np.bincount(part, minlength=numbers.max() + 1) for part in np.split(numbers, [len(one)])
    )
    moved = float(np.abs(had - has).sum())
    if not one.index.is_unique:
        return moved
    still = other[~other.index.duplicated()]
    still = still[still.index.isin(one.index)]
    return moved + float(_differing(one.loc[still.index], still).any(axis=1).sum())


def _differing(one: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Return which cells differ; all of a removed column."""
    same_columns = one.columns.equals(other.columns)
    found = np.ones(one.shape, dtype=bool)
    for i, name in enumerate(one.columns):
        if same_columns or name in other.columns:
            column = other.iloc[:, i] if same_columns else other[name]
            found[:, i] = _differing_cells(one.iloc[:, i], column)
    return found


def _differing_cells(one: pd.Series, other: pd.Series) -> np.ndarray:
    missing_before, missing_after = one.isna().to_numpy(), other.isna().to_numpy()
    present = ~(missing_before | missing_after)
    differing = missing_before != missing_after
    if one.dtype == other.dtype == "str":
        # compared without conversion to objects
        return np.asarray(differing | (present & np.asarray(one.array != other.array)))
    before, after = (values[present] for values in _plain(one, other))
    try:
        differing[present] = before != after
    except (TypeError, ValueError):  # arrays in cells, or a date that became a number
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        differing[present] = [cell_text(a) != cell_text(b) for a, b in pairs]
    return differing


def _plain(one: pd.Series, other: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns as numbers, dates or codes if both are; otherwise as objects."""
    both = (one, other)
    if isinstance(one.dtype, pd.CategoricalDtype) and one.dtype == other.dtype:
        other = other.cat.set_categories(one.cat.categories)
        return one.cat.codes.to_numpy(), other.cat.codes.to_numpy()
    if all(isinstance(each.dtype, np.dtype) and each.dtype.kind in "iufbmM" for each in both):
        return one.to_numpy(), other.to_numpy()
    return one.to_numpy(dtype=object), other.to_numpy(dtype=object)


#: the ``takes`` of corruptions of vectors
VECTORS = "vectors"


@dataclass(frozen=True)
class View:
    """A corruption, its severity and the number of the draw; the clean view has no corruption.

    Corruptions can be composed, ``a+b`` or ``a@0.2+b@0.1``: they are applied in this order, each
    with its dose times the severity.
    """

    corruption: str = ""
    severity: float = 0.0
    draw: int = 0

    @property
    def name(self) -> str:
        """The name in results: ``clean``, ``noise@0.2``, or ``noise@0.2#1`` for the second draw."""
        if not self.corruption:
            return "clean"
        draw = f"#{self.draw}" if self.draw else ""
        if self.severity == 1 and "@" in self.corruption:
            return f"{self.corruption}{draw}"
        short = f"{self.severity:g}"
        severity = short if float(short) == self.severity else repr(self.severity)
        return f"{self.corruption}@{severity}{draw}"

    def parts(self) -> list[tuple[str, float]]:
        """Return the composed corruptions, each with its severity."""
        return [(name, dose * self.severity) for name, dose in parse_composition(self.corruption)]


CLEAN = View()


def parse_composition(corruption: str) -> list[tuple[str, float]]:
    """Return the corruptions in a name and the dose of each.

    >>> parse_composition("missingness_mcar@0.2+noise_gaussian")
    [('missingness_mcar', 0.2), ('noise_gaussian', 1.0)]
    """
    if not corruption or corruption in corruptions:
        return [(corruption, 1.0)] if corruption else []
    found = []
    for part in corruption.split("+"):
        name, at, written = part.strip().partition("@")
        valid = numbers.NUMBER.fullmatch(written.strip())
        dose = float(written) if valid else -1.0 if at else 1.0
        if not name or not 0 <= dose < np.inf:
            raise DefinitionError(
                f'corruption "{corruption}" is not valid; write "a+b" or "a@0.2+b@0.1".'
            )
        found.append((name, dose))
    return found


def views(chosen: Mapping[str, Sequence[float]], draws: int = 1) -> Iterator[View]:
    """Yield the clean view and then every corruption at each of its severities, in each draw.

    >>> [view.name for view in views({"noise": [0.1, 0.4]})]
    ['clean', 'noise@0.1', 'noise@0.4']
    """
    yield CLEAN
    for corruption, severities in chosen.items():
        for severity in severities:
            for draw in range(draws if severity else 1):
                yield View(corruption, float(severity), draw)


def check_view(view: View) -> None:
    """Refuse unknown corruptions and severities outside of their range."""
    for name, severity in view.parts():
        check_severity(name, severity)


def reason_not_applicable(view: View, data: Dataset, role: str) -> str:
    """Return why a view cannot be applied to the data for a model of this role, or ""."""
    for name, _ in view.parts():
        if VECTORS not in getattr(corruptions.get(name), "takes", ()):
            why = unmet_reason(name, data)
        else:
            why = "" if role == "encoder" else f"it changes vectors, but a {role} has none"
        if why:
            return f"{name}: {why}"
    return ""


def changes_items(view: View) -> bool:
    """Return whether a view differs from the clean one in items or targets, not only in vectors."""
    return any(_changes_items(name, severity) for name, severity in view.parts())


def _changes_items(name: str, severity: float) -> bool:
    return bool(severity) and VECTORS not in getattr(corruptions.get(name), "takes", ())


def corrupt(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the corrupted test questions; the given dataset does not change."""
    return corrupt_with_share(test, view, seed, fold)[0]


def corrupt_with_share(test: Dataset, view: View, seed: int, fold: int) -> tuple[Dataset, float]:
    """Return the corrupted test questions, and the share of changed cells.

    If a corruption drops or repeats rows, it is the share of rows.
    """
    seen, rows = test, np.arange(len(test))
    for (name, severity), rng in _generators(view, seed, fold):
        if _changes_items(name, severity):
            seen, remaining = _see_one(seen, View(name, severity, view.draw), rng)
            rows = rows[remaining]
    return seen, 0.0 if seen is test else _changed(test, seen, rows)


def _changed(test: Dataset, seen: Dataset, rows: np.ndarray) -> float:
    """Return the share of cells or rows that differ; of targets if no cell differs."""
    if by_row(test):
        pairs = [
            (each.frame().set_axis(places, axis=0), pd.Series(each.target, index=places))
            for each, places in ((test, np.arange(len(test))), (seen, rows))
        ]
        return changed_share(*pairs)
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    ids = test.items.index[asked]
    return changed_share(test.items.loc[ids], seen.items.loc[ids])


def corrupt_vectors(vectors: Vectors, view: View, seed: int, fold: int) -> Vectors:
    """Apply the corruptions of a view that change vectors instead of items."""
    for (name, severity), rng in _generators(view, seed, fold):
        function = corruptions.get(name)
        if severity and VECTORS in getattr(function, "takes", ()):
            state = rng.bit_generator.state
            matrix = _blurred(function, vectors.matrix, severity, rng)
            vocabulary = vectors.vocabulary
            if vocabulary is not None:
                rng.bit_generator.state = state
                vocabulary = (vocabulary[0], _blurred(function, vocabulary[1], severity, rng))
            vectors = dataclasses.replace(vectors, matrix=matrix, vocabulary=vocabulary)
    return vectors


def _blurred(function: Any, matrix: np.ndarray, severity: float, rng: np.random.Generator) -> Any:
    changed, _ = function(np.array(matrix), None, severity, rng)
    if np.shape(changed) != matrix.shape:
        raise ContractError(
            f"a corruption of vectors must return the shape {matrix.shape}, got "
            f"{np.shape(changed)}."
        )
    return np.asarray(changed, dtype=matrix.dtype)


def _generators(
    view: View, seed: int, fold: int
) -> Iterator[tuple[tuple[str, float], np.random.Generator]]:
    """Yield the corruptions of a view with their generators; repeated ones get different ones."""
    repeats: dict[str, int] = {}
    for name, severity in view.parts():
        turn = repeats[name] = repeats.get(name, -1) + 1
        more = [view.draw, turn] if view.draw or turn else []
        rng = np.random.default_rng([seed, fold, zlib.crc32(name.encode()), *more])
        yield (name, severity), rng


def _see_one(test: Dataset, view: View, rng: np.random.Generator) -> tuple[Dataset, np.ndarray]:
    """Apply one corruption; return the questions and their original positions."""
    every = np.arange(len(test))
    if by_row(test):
        items = test.frame().reset_index(drop=True).copy()
        truth = None if test.target is None else pd.Series(test.target)
        items, truth = _corrupted(view, items, truth, rng)
        rows = np.asarray(items.index)
        if not len(items):
            raise ContractError(f"{view.name} returned no rows.")
        if not np.isin(rows, np.arange(len(test))).all():
            raise ContractError(f"{view.name} returned rows with new labels; keep the index of X.")
        if test.target is not None:
            _check_truth(view, items, truth)
        rows = rows.astype(np.intp)
        # the index identifies dropped and repeated rows
        named = test.items.index[test.mentions(test.fields[0]).rows][rows]
        items = items.set_axis(named if named.is_unique else pd.RangeIndex(len(items)), axis=0)
        seen = dataclasses.replace(
            test,
            items=items,
            questions=pd.DataFrame({test.fields[0]: items.index}, index=test.questions.index[rows]),
            target=None if test.target is None else np.asarray(truth),
            group=None if test.group is None else test.group[rows],
            part=None,
            weight=None if test.weight is None else test.weight[rows],
        )
        return seen, rows
    if test.kind == "items":
        return _see_queries(test, view, rng), every
    return dataclasses.replace(test, items=_changed_items(test, view, rng, test.mentioned())), every


def _see_queries(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Corrupt the items in the questions; items that are only candidates do not change."""
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    changed = _changed_items(test, view, rng, asked)
    others = np.setdiff1d(np.arange(len(test.items)), asked)
    items = pd.concat([changed, test.items.iloc[others]])
    return dataclasses.replace(test, items=items.iloc[np.argsort(np.concatenate([asked, others]))])


def _changed_items(test: Dataset, view: View, rng: np.random.Generator, rows: np.ndarray) -> Any:
    items = test.items.iloc[rows]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} must not drop items of {test.name}; questions use them.")
    return changed


def _corrupted(view: View, items: Any, target: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    result = corruptions.get(view.corruption)(items, target, view.severity, rng)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], type(items)):
        raise ContractError(
            f"{view.name} must return (X, y), and X must be a {type(items).__name__}."
        )
    return result


def _check_truth(view: View, items: pd.DataFrame | pd.Series, target: Any) -> None:
    targets = 0 if target is None else len(target)
    if targets != len(items):
        raise ContractError(
            f"{view.name} returned X with {len(items)} rows and y with {targets}; they must match."
        )
    if isinstance(target, pd.Series) and not target.index.equals(items.index):
        raise ContractError(f"{view.name} returned X and y with different indexes.")
