"""Folds as scikit-learn makes them, from what its parameter ``cv`` accepts."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np

from karat.core.dataset import Dataset
from karat.errors import DefinitionError, KaratError
from karat.execution.splits import Fold, GivenFolds

#: most characters of a splitter in a message
MOST_CHARACTERS = 80


def cv_folds(data: Dataset, cv: object, seed: int, *, is_sample: bool = False) -> GivenFolds:
    """Return the folds of a dataset under ``cv`` of scikit-learn, as rows.

    An integer is the number of folds in the order of the rows. A splitter whose ``random_state`` is
    None gets the seed. Pairs of rows need all rows, so that they refuse a sample.
    """
    if data.part is not None:
        raise DefinitionError(f"cv has no effect on {data.name}: it has a train and a test part.")
    if isinstance(cv, list):
        if is_sample:
            raise DefinitionError("cv holds rows of all data, of which max_rows draws a sample.")
        pairs, origin = cv, "given rows"
    else:
        pairs, origin = _split_by(data, cv, seed)
    sides = [(_rows(train, len(data)), _rows(test, len(data))) for train, test in pairs]
    repeats = _repeats([test for _, test in sides], len(data))
    folds = [Fold(*pair, repeat) for pair, repeat in zip(sides, repeats, strict=True)]
    if not folds:
        raise DefinitionError(f"cv={origin} makes no folds.")
    return GivenFolds(folds, origin)


def _split_by(data: Dataset, cv: Any, seed: int) -> tuple[list[Any], str]:
    """Return the pairs of rows that a splitter makes, and how it is called."""
    from sklearn.model_selection import check_cv

    origin = f"{cv!r:.{MOST_CHARACTERS}}"
    if isinstance(cv, int):
        if data.group is not None:
            raise DefinitionError(
                f"cv={cv} divides groups, as in scikit-learn; leave it out, or use a splitter such "
                f"as GroupKFold({cv})."
            )
        cv = check_cv(cv, data.target, classifier=data.kind == "classification")
        origin = type(cv).__name__
    splitter = copy.deepcopy(cv)  # a generator of random numbers in it starts the same each time
    if getattr(splitter, "random_state", seed) is None:
        splitter.random_state = seed
    items: Any = np.zeros((len(data), 1))
    with contextlib.suppress(KaratError):
        items = data.frame()
    try:
        return list(splitter.split(items, data.target, data.group)), origin
    except Exception as error:  # the splitter may be the user's own
        hint = (
            " Give the groups of the rows." if data.group is None and "group" in str(error) else ""
        )
        raise DefinitionError(f"cv={origin}: {type(error).__name__}: {error}{hint}") from error


def _rows(side: object, size: int) -> np.ndarray:
    """Return the rows of one side; a mask is as good as numbers.

    >>> _rows([True, False, True], 3)
    array([0, 2])
    """
    rows = np.atleast_1d(np.asarray(side))
    return np.flatnonzero(rows) if rows.dtype.kind == "b" and len(rows) == size else rows


def _repeats(tests: list[np.ndarray], size: int) -> list[int]:
    """Return the repeat of each fold: a new one starts when a row is tested again.

    >>> _repeats([np.array([0]), np.array([1]), np.array([1]), np.array([0])], 2)
    [0, 0, 1, 1]
    """
    numbers, repeat, tested = [], 0, np.zeros(size, dtype=bool)
    for rows in tests:
        rows = rows if rows.dtype.kind in "iu" else np.empty(0, dtype=np.intp)
        inside = rows[(rows >= 0) & (rows < size)]
        if tested[inside].any():
            repeat, tested = repeat + 1, np.zeros(size, dtype=bool)
        tested[inside] = True
        numbers.append(repeat)
    return numbers
