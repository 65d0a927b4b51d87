"""The folds of Ulysses SentEval."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.core.dataset import Dataset
from karat.core.registry import splitter
from karat.errors import DataError, DefinitionError
from karat.execution.splits import (
    Fold,
    check_split_number,
    fold_numbers,
    fold_sides,
    refuse_groups,
    undersampled,
)
from karat.ext.compat.ulysses.adamw import MASTER, repetitions


@splitter("senteval")
def senteval(
    data: Dataset, folds: int = 5, repeats: int = 10, seed: int = MASTER
) -> Iterator[Fold]:
    """Reproduce the folds of Ulysses SentEval: balanced, stratified, same row order.

    They depend on ``seed`` and the targets, not on the seed of the run.
    """
    check_split_number("senteval: folds", folds, 2)
    check_split_number("senteval: repeats", repeats, 1)
    if data.kind != "classification":
        raise DefinitionError(f"{data.name}: split senteval requires classes, got {data.kind}.")
    refuse_groups(data, "senteval")
    codes = np.unique(np.asarray(data.target), return_inverse=True)[1]
    if np.bincount(codes).min() < folds:
        text = f"a class has fewer than {folds} {data.noun}; use fewer folds."
        raise DataError(f"{data.name}: {text}")
    for repeat, seeds in enumerate(repetitions(repeats, folds, seed)):
        rows = undersampled(codes, seeds.undersample)
        for train, test in fold_sides(fold_numbers(codes[rows], folds, seeds.cut), folds):
            seeds.draws.shuffle(train)
            yield Fold(rows[train], rows[test], repeat)
