"""What corruptions need, which cells a severity affects, and how changed cells are written back.

The kind of a column depends only on the dtype, which is the same in every fold: numbers, booleans
("flag"), categories, text (strings and plain objects) and dates. All others, such as durations and
intervals, can only become missing. Random draws do not depend on the severity, so a higher severity
affects a superset.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import PLURAL, Dataset
from karat.core.registry import corruption, corruptions, load_object
from karat.core.table_items import ITEM_TYPES
from karat.errors import DataError, DefinitionError, Unavailable, did_you_mean

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

        return corruption(name, takes=takes, needs=needs, range=range)(careful)

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


def count(size: int, severity: float) -> int:
    """Return the number of affected cells or rows, rounded down.

    >>> count(30, 0.1), count(29, 0.1), count(100, 0.29)
    (3, 2, 29)
    """
    return math.floor(round(size * severity, 9))  # 0.29 of 100 are 29, not 28.999999999999996


def count_up(size: int, severity: float) -> int:
    """Return the number of affected columns, rounded up: at least one above severity 0."""
    return min(size, max(math.ceil(round(size * severity, 9)), int(severity > 0)))


def affected_places(size: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the affected cells or rows in random order; a lower severity is a prefix."""
    return rng.permutation(size)[: count(size, severity)]


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
