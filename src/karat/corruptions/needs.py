"""Needs: what a corruption takes and what the data must have, so that a plan can ask beforehand.

A corruption of ours is registered with ``corrupts``, which checks its severity and its needs
whenever it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.kinds import CATEGORY, DATE, FLAG, LEVELS, NUMBER, TEXT, kind, places
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import corruption, corruptions

#: the items X, the answers y and their kind → why it cannot be, or nothing
Need = Callable[[Any, Any, str], str]
Corrupted = tuple[Any, Any]
Function = Callable[..., Corrupted]

_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}
#: the generator where none is given, as the benchmark's document has it
_SEED = 42


def reason_not(name: str, data: Dataset) -> str:
    """Return why a corruption cannot change a data set; nothing where it can, or does not say.

    >>> table = pd.DataFrame({"size": [1, 2, 3], "y": [0.5, 1.5, 2.5]})
    >>> data = Dataset.from_table(table, "y", name="sizes")
    >>> reason_not("noise_gaussian", data)
    ''
    >>> reason_not("rare_class_dilution", data)
    'the truth is numbers, not classes'
    """
    part = corruptions.get(name)
    takes, needs = getattr(part, "takes", ()), getattr(part, "needs", ())
    if takes and data.modality not in takes:
        return f"it takes {_listed(takes)}, not {_PLURAL[data.modality]}"
    why = _unmet(name, needs, data.items, data.truth, data.kind)
    if not why and {"rows", "classes", "truth"} & set(needs) and not by_row(data):
        return "it changes rows and their answers, and not every question is about one item"
    return why


def by_row(data: Dataset) -> bool:
    """Return whether each question is about one item, so that rows can be dropped or repeated."""
    asked = data.mentions(data.fields[0]).rows
    if len(data.fields) > 1 or len(asked) != len(data) or data.kind == "items":
        return False
    return data.modality != "entity" or len(np.unique(asked)) == len(asked)


def check_severity(name: str, severity: Any) -> None:
    """Refuse a severity that a corruption does not know.

    >>> check_severity("missingness_mcar", 1.5)
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: corruption missingness_mcar: the severity 1.5 is not in 0 to 1.
    """
    _check_range(name, severity, getattr(corruptions.get(name), "range", None))


def corrupts(
    name: str,
    *,
    takes: Sequence[str] = ("table",),
    needs: Sequence[str] = (),
    range: tuple[float, float] = (0.0, 1.0),
) -> Callable[[Function], Function]:
    """Register a corruption that is never called on what it cannot change.

    It gets X and y of equal length, a severity above 0 and a generator. At severity 0 it is not
    asked, and all comes back as it was.
    """

    def add(change: Function) -> Function:
        @functools.wraps(change)
        def careful(X: Any, y: Any, severity: float, rng: Any = None, **options: Any) -> Corrupted:
            _check_range(name, severity, range)
            X, y = _aligned(name, X, y)
            if severity == 0:
                return X.copy(), y
            why = _untaken(takes, X) or _unmet(name, needs, X, y, _kind_of(y))
            if why:
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
        span = f"in {low:g} to {high:g}" if high < np.inf else f"a finite number from {low:g} on"
        raise DefinitionError(f"corruption {name}: the severity {severity} is not {span}.")


def _aligned(name: str, X: Any, y: Any) -> Corrupted:
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X) if X.ndim == 2 else pd.Series(X)
    if not isinstance(X, pd.DataFrame | pd.Series):
        raise DataError(f"corruption {name}: X is a table or a series, not {type(X).__name__}.")
    if y is not None and len(y) != len(X):
        raise DataError(f"corruption {name}: {len(X)} rows in X and {len(y)} answers in y.")
    return X, y if y is None or isinstance(y, pd.Series) else pd.Series(y, index=X.index)


def _untaken(takes: Sequence[str], X: Any) -> str:
    wanted = "table" if isinstance(X, pd.DataFrame) else "text"
    return "" if wanted in takes else f"it takes {_listed(takes)}, not {_PLURAL[wanted]}"


def _listed(takes: Sequence[str]) -> str:
    return " and ".join(_PLURAL.get(each, each) for each in takes)


def _kind_of(y: pd.Series | None) -> str:
    """Return what answers are where nobody says: fractions are numbers, all others are classes."""
    if y is None:
        return ""
    if getattr(y.dtype, "kind", "") != "f":
        return "classes"
    known = y.dropna()
    return "classes" if (known == known.round()).all() else "numbers"


# -- what the data must have ----------------------------------------------------------------


def _unmet(name: str, needs: Sequence[str], X: Any, y: Any, answers: str) -> str:
    for need in needs:
        if need not in NEEDS:
            hint = did_you_mean(need, NEEDS) or f" It may need: {', '.join(NEEDS)}."
            raise DefinitionError(f'corruption "{name}" cannot need "{need}".{hint}')
        why = NEEDS[need](X, y, answers)
        if why:
            return why
    return ""


def _column(words: str, *kinds: str) -> Need:
    def missing(X: Any, y: Any, answers: str) -> str:
        there = isinstance(X, pd.Series) or places(X, *kinds)
        return "" if there else f"there is no column of {words}"

    return missing


def _two_columns(X: Any, y: Any, answers: str) -> str:
    return "" if X.shape[1] > 1 else "there is only one column"


def _pair(X: Any, y: Any, answers: str) -> str:
    found = [kind(X.iloc[:, i]) for i in range(X.shape[1])]
    twice = any(found.count(each) > 1 for each in (NUMBER, FLAG, CATEGORY, TEXT, DATE))
    return "" if twice else "no two columns are of one kind"


def _truth(X: Any, y: Any, answers: str) -> str:
    if y is None:
        return "the truth is not known"
    return "the truth is items, not classes or numbers" if answers == "items" else ""


def _classes(X: Any, y: Any, answers: str) -> str:
    if answers and answers != "classes":
        return f"the truth is {answers}, not classes"
    return _truth(X, y, answers)


def _rows(X: Any, y: Any, answers: str) -> str:
    return ""  # whether rows can come and go is a matter of the questions


NEEDS: Mapping[str, Need] = {
    "numbers": _column("numbers", NUMBER),
    "dates": _column("dates", DATE),
    "text": _column("text", TEXT),
    "order": _column("numbers or dates", NUMBER, DATE),
    "levels": _column("categories, text or truth values", *LEVELS),
    "names": _column("categories or text", CATEGORY, TEXT),
    "codes": _column("numbers, categories, text or dates", NUMBER, CATEGORY, TEXT, DATE),
    "two columns": _two_columns,
    "pair": _pair,
    "rows": _rows,
    "truth": _truth,
    "classes": _classes,
}
