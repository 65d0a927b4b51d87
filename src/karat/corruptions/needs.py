"""What corruptions need of data, and the decorator that checks it before they are called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.columns import ITEM_TYPES
from karat.core.dataset import PLURAL, Dataset
from karat.core.registry import corruptions, load_object
from karat.corruptions.table_columns import (
    CATEGORY,
    DATE,
    FLAG,
    LEVELS,
    NUMBER,
    TEXT,
    kind,
    places,
)
from karat.errors import DataError, DefinitionError, Unavailable, did_you_mean

#: the dataset with the list of misspelled words
MISSPELLINGS = "misspellings_en"
#: takes the items X, the target y and its kind; returns why the need is not met, or ""
Need = Callable[[Any, Any, str], str]
Corrupted = tuple[Any, Any]
#: the arguments of corruptions
Items: TypeAlias = pd.DataFrame | pd.Series
Rng: TypeAlias = np.random.Generator
Table: TypeAlias = pd.DataFrame
Target: TypeAlias = pd.Series | None
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
    if not why and {"rows", "classes", "target"} & set(needs) and not has_items_by_row(data):
        return "it changes rows and their target, but not every question is about one item"
    return why


def has_items_by_row(data: Dataset) -> bool:
    """Return whether each question is about one item, so that rows can be dropped or repeated."""
    rows = data.mentions(data.fields[0]).rows
    if len(data.fields) > 1 or len(rows) != len(data) or data.kind == "items":
        return False
    return data.modality != "entity" or len(np.unique(rows)) == len(rows)


def check_severity(name: str, severity: float) -> None:
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
        def careful(
            X: Items, y: Target, severity: float, rng: Rng | int | None = None, **options: Any
        ) -> Corrupted:
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


def _check_range(name: str, severity: float, allowed: tuple[float, float] | None) -> None:
    if allowed is None:
        return
    low, high = allowed
    number = isinstance(severity, Real) and not isinstance(severity, bool)
    if not number or not low <= float(severity) <= high or float(severity) == np.inf:
        allowed_text = f"{low:g} to {high:g}" if high < np.inf else f"finite and >= {low:g}"
        raise DefinitionError(
            f"corruption {name}: severity must be {allowed_text}, got {severity}."
        )


def _aligned(name: str, X: Items, y: Target) -> Corrupted:
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X) if X.ndim == 2 else pd.Series(X)
    if not isinstance(X, pd.DataFrame | pd.Series):
        raise DataError(
            f"corruption {name}: X must be a table or a series, got {type(X).__name__}."
        )
    if y is not None and len(y) != len(X):
        raise DataError(f"corruption {name}: X has {len(X)} rows, but y has {len(y)}.")
    return X, y if y is None or isinstance(y, pd.Series) else pd.Series(y, index=X.index)


def _untaken(takes: Sequence[str], X: Items) -> str:
    wanted = "table" if isinstance(X, pd.DataFrame) else "text"
    for modality, cell_type in ITEM_TYPES.items():
        if isinstance(X, pd.Series) and len(X) and isinstance(X.iloc[0], cell_type):
            wanted = modality
    return "" if wanted in takes else f"it takes {_listed(takes)}, not {PLURAL[wanted]}"


def _listed(takes: Sequence[str]) -> str:
    return " and ".join(PLURAL.get(modality, modality) for modality in takes)


def _kind_of(y: pd.Series | None) -> str:
    """Return the kind of an undeclared target: fractions are numbers, all others are classes."""
    if y is None:
        return ""
    if getattr(y.dtype, "kind", "") != "f":
        return "classes"
    present = y.dropna()
    return "classes" if (present == present.round()).all() else "numbers"


def _unmet(name: str, needs: Sequence[str], X: Items, y: Target, answers: str) -> str:
    for need in needs:
        if need not in NEEDS:
            hint = did_you_mean(need, NEEDS) or f" Available: {', '.join(NEEDS)}."
            raise DefinitionError(f'corruption "{name}": unknown need "{need}".{hint}')
        if why := NEEDS[need](X, y, answers):
            return why
    return ""


def _column(words: str, *kinds: str) -> Need:
    def missing(X: Items, y: Target, answers: str) -> str:
        has_column = isinstance(X, pd.Series) or places(X, *kinds)
        return "" if has_column else f"there is no column of {words}"

    return missing


def _pair(X: Items, y: Target, answers: str) -> str:
    kinds = [kind(X.iloc[:, i]) for i in range(X.shape[1])]
    pair = any(kinds.count(wanted) > 1 for wanted in (NUMBER, FLAG, CATEGORY, TEXT, DATE))
    return "" if pair else "no two columns are of the same kind"


def _target(X: Items, y: Target, answers: str) -> str:
    if y is None:
        return "there is no target"
    return "the target is items, not classes or numbers" if answers == "items" else ""


def _classes(X: Items, y: Target, answers: str) -> str:
    if answers and answers != "classes":
        return f"the target is {answers}, not classes"
    return _target(X, y, answers)


def needed_file(name: str) -> Path:
    """Return the file of a built-in dataset; raise Unavailable if it cannot be downloaded."""
    # by its name, as components of other packages are found: this package imports neither
    builtin_file = load_object("karat.config.catalog:builtin_file")
    return Path(builtin_file(name))


def _no_file(name: str) -> Need:
    def missing(X: Items, y: Target, answers: str) -> str:
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
