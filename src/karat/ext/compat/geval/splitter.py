"""The folds of GEval."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.registry import splitter
from karat.errors import DataError, DefinitionError
from karat.execution.splits import (
    Fold,
    check_split_number,
    class_codes,
    fold_numbers,
    fold_sides,
    refuse_groups,
)
from karat.ext.compat.ulysses.adamw import shuffles


@splitter("geval")
def geval_folds(
    data: Dataset, folds: int = 10, repeats: int = 10, each_class: bool = False
) -> Iterator[Fold]:
    """Reproduce the folds of GEval: rows shuffled repeatedly, each order cut into folds.

    With ``each_class`` every class is cut on its own, so that the first folds are larger: the
    stratified folds of scikit-learn before 0.22, with which GEval recorded its results.

    Questions about one item may be in both train and test, as in GEval: use it only to reproduce
    its numbers. The folds do not depend on the seed of the run.
    """
    check_split_number("geval: folds", folds, 2)
    check_split_number("geval: repeats", repeats, 1)
    if not isinstance(each_class, bool):
        raise DefinitionError(f"split geval: each_class must be true or false, got {each_class!r}.")
    refuse_groups(data, "geval")
    if len(data) < folds:
        raise DataError(f"{data.name}: {len(data)} {data.noun} are too few for {folds} folds.")
    items = data.mentions(data.fields[0]).rows
    single = len(items) == len(data)
    joined = np.argsort(pd.factorize(items)[0], kind="stable") if single else np.arange(len(data))
    classes = data.kind == "classification"
    codes = class_codes(data, folds) if classes else np.zeros(len(data), dtype=int)
    for repeat, order in enumerate(shuffles(len(data), repeats)):
        rows = joined[order]
        if each_class and classes:
            numbers = numbers_by_class(codes[rows], folds)
        else:
            numbers = fold_numbers(codes[rows], folds, stratified=classes)
        for train, test in fold_sides(numbers, folds):
            yield Fold(rows[train], rows[test], repeat)


def numbers_by_class(codes: np.ndarray, folds: int) -> np.ndarray:
    """Return the number of the fold of each row; the rows of each class are cut in their order.

    >>> numbers_by_class(np.array([0, 1, 0, 0, 1, 1]), 2).tolist()
    [0, 0, 0, 1, 0, 1]
    """
    numbers = np.empty(len(codes), dtype=int)
    for code in np.unique(codes):
        for number, rows in enumerate(np.array_split(np.flatnonzero(codes == code), folds)):
            numbers[rows] = number
    return numbers
