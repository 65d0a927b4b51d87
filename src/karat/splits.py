"""Splits: which questions teach and which ones test.

A splitter is ``(data, rng, **parameters) -> folds``. Its generator comes from the seed and the data
set's name, so that every model sees the same folds and the folds of one repeat test every row once.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import build, splitter, splitters


@dataclass(frozen=True)
class Fold:
    """The questions that teach and those that test; the folds of a repeat test each row once."""

    train: np.ndarray
    test: np.ndarray
    repeat: int = 0


def split(data: Dataset, how: Mapping[str, Any], seed: int) -> list[Fold]:
    """Return the folds of a data set under a split definition such as ``{"use": "kfold"}``.

    The same seed and data set name give the same folds, whoever asks.
    """
    params = {name: value for name, value in how.items() if name != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"split {data.name}".encode())])
    part = splitters.get(how["use"])
    folds = list(build(f'split "{how["use"]}"', part, params, {"data": data, "rng": rng}))
    for fold in folds:
        if not len(fold.train) or not len(fold.test):
            raise DataError(
                f"{data.name}: the split leaves {len(fold.train)} questions to train on and "
                f"{len(fold.test)} to test; use fewer folds or more rows."
            )
    return folds


@splitter("all")
def everything(data: Dataset) -> Iterator[Fold]:
    """Train and test on all questions; the train side never sees the truth."""
    rows = np.arange(len(data))
    yield Fold(rows, rows)


@splitter("kfold")
def kfold(
    data: Dataset,
    rng: np.random.Generator,
    folds: int = 5,
    repeats: int = 1,
    stratified: bool | None = None,
    balanced: bool = False,
) -> Iterator[Fold]:
    """Cut into folds, each tested once per repeat; groups stay whole, classes keep their shares.

    ``balanced`` first draws as many questions of each class as the rarest has, anew each repeat.
    """
    if folds < 2 or repeats < 1:
        raise DefinitionError(f"kfold needs 2 folds and 1 repeat or more, not {folds}, {repeats}.")
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        rows = _balanced(data, np.random.default_rng(seed)) if balanced else np.arange(len(data))
        part = data.take(rows)
        for train, test in _cut(part, folds, stratified, seed):
            yield Fold(rows[train], rows[test], repeat)


@splitter("holdout")
def holdout(
    data: Dataset,
    rng: np.random.Generator,
    test: float = 0.2,
    train_rows: int | None = None,
    repeats: int = 1,
    stratified: bool | None = None,
) -> Iterator[Fold]:
    """Hold a share of the questions out, or train on a fixed number of rows and test the rest."""
    if not 0 < test < 1:
        raise DefinitionError(f"holdout: test is a share between 0 and 1, not {test}.")
    wanted = train_rows if train_rows is not None else round(len(data) * (1 - test))
    if not 0 < wanted < len(data):
        raise DataError(f"{data.name}: cannot train on {wanted} of {len(data)} questions.")
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        train = _draw(data, wanted, stratified, np.random.default_rng(seed))
        yield Fold(train, np.setdiff1d(np.arange(len(data)), train), repeat)


@splitter("fixed")
def fixed(
    data: Dataset,
    test: Sequence[int] | None = None,
    folds: Sequence[Mapping[str, Sequence[int]]] | None = None,
) -> Iterator[Fold]:
    """Use the parts that came with the data, the given test rows, or lists of train and test."""
    if folds is not None:
        for fold in folds:
            yield _given(data, fold["test"], fold.get("train"))
    elif test is not None:
        yield _given(data, test, None)
    elif data.part is None:
        raise DataError(
            f"{data.name} does not come split: give the split its test rows, "
            f"or the data set a train and a test file."
        )
    else:
        yield Fold(np.flatnonzero(data.part == "train"), np.flatnonzero(data.part == "test"))


def _given(data: Dataset, test: Iterable[int], train: Iterable[int] | None) -> Fold:
    rows = np.asarray(list(test), dtype=int)
    rest = np.setdiff1d(np.arange(len(data)), rows) if train is None else np.asarray(list(train))
    for side in (rows, rest):
        if len(side) and (side.min() < 0 or side.max() >= len(data)):
            raise DataError(f"{data.name} has rows 0 to {len(data) - 1}; the split names others.")
    return Fold(rest.astype(int), rows)


def _seeds(rng: np.random.Generator, repeats: int) -> list[int]:
    # drawn one by one, so that more repeats leave the earlier ones as they were
    return [int(rng.integers(2**31)) for _ in range(repeats)]


def _balanced(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    if data.kind != "classes":
        raise DefinitionError(f"{data.name}: only classes can be balanced, not {data.kind}.")
    codes = pd.factorize(data.truth, sort=False)[0]
    fewest = np.bincount(codes).min()
    drawn = [
        rng.choice(np.flatnonzero(codes == code), size=fewest, replace=False)
        for code in range(codes.max() + 1)
    ]
    return np.sort(np.concatenate(drawn))


def _cut(
    data: Dataset, folds: int, stratified: bool | None, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    by_class = data.kind == "classes" if stratified is None else stratified
    units = len(data) if data.group is None else len(pd.unique(data.group))
    if units < folds:
        what = "questions" if data.group is None else "groups"
        raise DataError(f"{data.name}: {units} {what} cannot make {folds} folds.")
    codes = pd.factorize(data.truth)[0] if by_class else np.zeros(len(data))
    if by_class and np.bincount(codes).max() < folds:
        raise DataError(
            f"{data.name}: no class has {folds} questions; use fewer folds or stratified: false."
        )
    if data.group is None:
        cutter = (StratifiedKFold if by_class else KFold)(folds, shuffle=True, random_state=seed)
    else:
        grouped = StratifiedGroupKFold if by_class else GroupKFold
        cutter = grouped(folds, shuffle=True, random_state=seed)
    groups = None if data.group is None else pd.factorize(data.group)[0]
    with warnings.catch_warnings():
        # a class rarer than the number of folds is the data's way, not a mistake
        warnings.simplefilter("ignore", UserWarning)
        yield from cutter.split(np.zeros(len(data)), codes, groups)


def _draw(
    data: Dataset, wanted: int, stratified: bool | None, rng: np.random.Generator
) -> np.ndarray:
    if data.group is not None:
        codes = pd.factorize(data.group)[0]
        order = rng.permutation(codes.max() + 1)
        sizes = np.cumsum(np.bincount(codes)[order])
        count = max(1, int(np.searchsorted(sizes, wanted, side="right")))
        return np.flatnonzero(np.isin(codes, order[: min(count, len(order) - 1)]))
    by_class = data.kind == "classes" if stratified is None else stratified
    shuffled = rng.permutation(len(data))
    if not by_class or wanted < len(data.classes):
        return np.sort(shuffled[:wanted])
    # interleave the classes in proportion: each question's place is its share of its class
    codes = pd.factorize(data.truth)[0][shuffled]
    counts = np.bincount(codes)
    place = np.empty(len(data))
    for code, count in enumerate(counts):
        place[codes == code] = (np.arange(count) + 0.5) / count
    first = np.zeros(len(data), dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    order = np.lexsort((place, ~first))
    return np.sort(shuffled[order[:wanted]])
