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
from karat.draws import draw
from karat.errors import ContractError, DataError, DefinitionError
from karat.registry import build, splitter, splitters
from karat.replay import MASTER, repetitions, shuffles


@dataclass(frozen=True)
class Fold:
    """The questions that teach and those that test; the folds of a repeat test each row once."""

    train: np.ndarray
    test: np.ndarray
    repeat: int = 0


def split(data: Dataset, how: Mapping[str, Any], seed: int) -> list[Fold]:
    """Return the folds of a data set under a split definition such as ``{"use": "kfold"}``.

    The same seed and data set name give the same folds, whoever asks. The rows of a fold's two
    sides are different ones, or, with nothing held out, the same ones.
    """
    if seed < 0:
        raise DefinitionError(f"the seed is a whole number of 0 or more, not {seed}.")
    params = {name: value for name, value in how.items() if name != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"split {data.name}".encode())])
    part = splitters.get(how["use"])
    made = build(f'split "{how["use"]}"', part, params, {"data": data, "rng": rng})
    folds = [_checked(data, fold) for fold in made]
    if not folds:
        raise DataError(f'{data.name}: the split "{how["use"]}" makes no folds.')
    return folds


def _checked(data: Dataset, fold: Any) -> Fold:
    try:
        fold = fold if isinstance(fold, Fold) else Fold(*fold)
    except TypeError as error:
        raise ContractError(f"a splitter yields a Fold or (train, test): {error}.") from error
    sides = [np.asarray(side) for side in (fold.train, fold.test)]
    named = []
    for side in sides:
        if not len(side):
            raise DataError(
                f"{data.name}: the split leaves {len(sides[0])} questions to train on and "
                f"{len(sides[1])} to test; use fewer folds or more rows."
            )
        if side.dtype.kind not in "iu":
            raise DataError(f"{data.name}: a split names rows by whole numbers, not {side[0]!r}.")
        if side.min() < 0 or side.max() >= len(data):
            raise DataError(f"{data.name} has rows 0 to {len(data) - 1}; the split names others.")
        named.append(np.zeros(len(data), dtype=bool))
        named[-1][side] = True
        if named[-1].sum() < len(side):
            raise DataError(f"{data.name}: the split names a row twice on one side.")
    both = named[0] & named[1]
    if both.any() and not (named[0] == named[1]).all():
        raise DataError(f"{data.name}: the split both trains on and tests row {np.argmax(both)}.")
    return Fold(sides[0].astype(np.intp), sides[1].astype(np.intp), fold.repeat)


@splitter("all")
def everything(
    data: Dataset, rng: np.random.Generator, repeats: int = 1, share: float = 1.0
) -> Iterator[Fold]:
    """Train and test on all questions; the train side never sees the truth.

    Each of the ``repeats`` has another seed for what is random in a model, and draws ``share`` of
    the questions, classes in their shares and groups whole: how far a score hangs on the rows.
    """
    _check_whole("all: repeats", repeats, 1)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise DefinitionError(f"all: share is above 0 and at most 1, not {share!r}.")
    classes = data.truth if data.kind == "classes" else None
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        rows = np.arange(len(data))
        if share < 1:
            wanted = max(1, round(share * len(data)))
            drawn = np.random.default_rng(seed)
            rows = draw(len(data), wanted, drawn, classes, _groups(data, None))
        yield Fold(rows, rows, repeat)


@splitter("kfold")
def kfold(
    data: Dataset,
    rng: np.random.Generator,
    folds: int = 5,
    repeats: int = 1,
    stratified: bool | None = None,
    grouped: bool | None = None,
    balanced: bool = False,
) -> Iterator[Fold]:
    """Cut into folds, each tested once per repeat; groups stay whole, classes keep their shares.

    Without groups, questions about the same item stay together; ``grouped: false`` lets both go.
    ``balanced`` first draws as many questions of each class as the rarest has, anew each repeat.
    """
    _check_whole("kfold: folds", folds, 2)
    _check_whole("kfold: repeats", repeats, 1)
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        rows = _balanced(data, np.random.default_rng(seed)) if balanced else np.arange(len(data))
        part = data.take(rows)
        cuts = _cut(part, folds, (_by_class(part, stratified), _groups(part, grouped)), seed)
        for train, test in cuts:
            yield Fold(rows[train], rows[test], repeat)


@splitter("senteval")
def senteval(
    data: Dataset, folds: int = 5, repeats: int = 10, seed: int = MASTER
) -> Iterator[Fold]:
    """Replay the folds of Ulysses SentEval: balanced, stratified, train rows in its own order.

    They depend on its seed and the answers alone, not on the seed of the run.
    """
    from sklearn.model_selection import StratifiedKFold

    _check_whole("senteval: folds", folds, 2)
    _check_whole("senteval: repeats", repeats, 1)
    if data.kind != "classes":
        raise DefinitionError(f"{data.name}: split senteval wants classes, not {data.kind}.")
    _refuse_groups(data, "senteval")
    codes = np.unique(np.asarray(data.truth), return_inverse=True)[1]
    if np.bincount(codes).min() < folds:
        raise DataError(f"{data.name}: a class has fewer than {folds} questions; use fewer folds.")
    for repeat, seeds in enumerate(repetitions(repeats, folds, seed)):
        rows = _undersampled(codes, seeds.undersample)
        cutter = StratifiedKFold(folds, shuffle=True, random_state=seeds.cut)
        for train, test in cutter.split(rows, codes[rows]):
            seeds.draws.shuffle(train)
            yield Fold(rows[train], rows[test], repeat)


@splitter("geval")
def geval(data: Dataset, folds: int = 10, repeats: int = 10) -> Iterator[Fold]:
    """Replay the folds of GEval: rows shuffled over and over, each order cut into equal parts.

    Questions about one item begin side by side, as its join left them, and nothing keeps them on
    one side later: for old numbers only. They do not depend on the seed of the run.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    _check_whole("geval: folds", folds, 2)
    _check_whole("geval: repeats", repeats, 1)
    _refuse_groups(data, "geval")
    classes = data.kind == "classes"
    cutter = (StratifiedKFold if classes else KFold)(folds)
    if len(data) < folds:
        raise DataError(f"{data.name}: {len(data)} questions cannot make {folds} folds.")
    asked = data.mentions(data.fields[0]).rows
    single = len(asked) == len(data)
    joined = np.argsort(pd.factorize(asked)[0], kind="stable") if single else np.arange(len(data))
    codes = pd.factorize(data.truth)[0]
    for repeat, order in enumerate(shuffles(len(data), repeats)):
        rows = joined[order]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class rarer than the folds
            cuts = list(cutter.split(rows, codes[rows] if classes else None))
        for train, test in cuts:
            yield Fold(rows[train], rows[test], repeat)


@splitter("holdout")
def holdout(
    data: Dataset,
    rng: np.random.Generator,
    test: float | None = None,
    train_rows: int | None = None,
    test_rows: int | None = None,
    repeats: int = 1,
    stratified: bool | None = None,
    grouped: bool | None = None,
) -> Iterator[Fold]:
    """Hold a share of the questions out (0.2), or train on a number of rows and test the rest.

    With ``test_rows`` that many are held out first, the same ones whatever ``train_rows``: more
    rows to train on contain the fewer, as a learning curve needs. The train side has every class,
    where that can be; groups stay whole, so that with them a side may have fewer rows than asked
    for.
    """
    _check_whole("holdout: repeats", repeats, 1)
    for name, count in (("train_rows", train_rows), ("test_rows", test_rows)):
        if count is not None:
            _check_whole(f"holdout: {name}", count, 1)
            if test is not None:
                raise DefinitionError(f"holdout: say test or {name}, not both.")
    wanted = _wanted(data, 0.2 if test is None else test, train_rows, test_rows)
    classes = np.asarray(data.truth) if _by_class(data, stratified) else None
    groups = _groups(data, grouped)
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        yield Fold(*_held_out(len(data), wanted, (classes, groups), seed), repeat)


def _wanted(
    data: Dataset, test: float, train_rows: int | None, test_rows: int | None
) -> tuple[int, int | None]:
    """Return how many rows to train on, and to test where that is a number of its own."""
    if isinstance(test, bool) or not isinstance(test, int | float) or not 0 < test < 1:
        raise DefinitionError(f"holdout: test is a share between 0 and 1, not {test!r}.")
    left = len(data) - (test_rows or 0)
    share = round(len(data) * (1 - test)) if test_rows is None else left
    wanted = share if train_rows is None else train_rows
    if not 0 < wanted < len(data) or wanted > left:
        raise DataError(
            f"{data.name}: cannot train on {max(wanted, 0)} of {len(data)} questions"
            + (f" and test {test_rows}." if test_rows else ".")
        )
    return wanted, test_rows


def _held_out(
    size: int, wanted: tuple[int, int | None], kept: tuple[Any, Any], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to test: the rest, or a number drawn first."""
    train_rows, test_rows = wanted
    drawn = np.random.default_rng(seed)
    rows = np.arange(size)
    if test_rows is None:
        train = draw(size, train_rows, drawn, *kept)
        return train, np.setdiff1d(rows, train)
    test = draw(size, test_rows, drawn, *kept)
    rest = np.setdiff1d(rows, test)
    if train_rows + test_rows == size or not len(rest):  # whole groups may leave more, or nothing
        return rest, test
    classes, groups = (None if values is None else values[rest] for values in kept)
    return rest[draw(len(rest), train_rows, drawn, classes, groups, nested=True)], test


@splitter("fixed")
def fixed(
    data: Dataset,
    test: Sequence[int] | None = None,
    train: Sequence[int] | None = None,
    folds: Sequence[Mapping[str, Any]] | None = None,
) -> Iterator[Fold]:
    """Use the parts that came with the data, the given rows, or a list of folds of such rows.

    Where only the test rows are given, all others teach.
    """
    if folds is not None:
        for number, fold in enumerate(folds):
            strange = [name for name in fold if name not in ("train", "test", "repeat")]
            if strange or "test" not in fold:
                what = f'"{strange[0]}"' if strange else 'nothing under "test"'
                raise DefinitionError(f"fixed: fold {number} has {what}; say train and test rows.")
            yield _given(data, fold["test"], fold.get("train"), fold.get("repeat", 0))
    elif test is not None:
        yield _given(data, test, train)
    elif data.part is None:
        raise DataError(
            f"{data.name} does not come split: give the split its test rows, "
            f"or the data set a train and a test file."
        )
    else:
        yield Fold(np.flatnonzero(data.part == "train"), np.flatnonzero(data.part == "test"))


def _given(
    data: Dataset, test: Iterable[int], train: Iterable[int] | None, repeat: int = 0
) -> Fold:
    rows = np.array(list(test))
    rest = np.setdiff1d(np.arange(len(data)), rows) if train is None else np.array(list(train))
    return Fold(rest, rows, repeat)


def _check_whole(what: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DefinitionError(f"{what} is a whole number of {least} or more, not {value!r}.")


def _refuse_groups(data: Dataset, name: str) -> None:
    if data.group is not None:
        raise DefinitionError(
            f"{data.name} has groups, which split {name} would cut through; say split: kfold."
        )


def _by_class(data: Dataset, stratified: bool | None) -> bool:
    if stratified and data.kind != "classes":
        raise DefinitionError(
            f"{data.name}: only classes can be stratified, not {data.kind}; "
            f"leave stratified out or say false."
        )
    return data.kind == "classes" if stratified is None else bool(stratified)


def _groups(data: Dataset, grouped: bool | None) -> np.ndarray | None:
    """Return which questions must stay on one side: those of a group, or about the same item."""
    if grouped is False:
        return None
    if data.group is not None:
        return np.asarray(pd.factorize(data.group)[0])
    if grouped:
        raise DefinitionError(f"{data.name} has no groups; leave grouped out, or name a group.")
    asked = data.mentions(data.fields[0]).rows
    if len(data.fields) != 1 or len(asked) != len(data):
        return None
    items = np.asarray(pd.factorize(asked)[0])
    return items if items.max() + 1 < len(items) else None


def _seeds(rng: np.random.Generator, repeats: int) -> list[int]:
    # drawn one by one, so that more repeats leave the earlier ones as they were
    return [int(rng.integers(2**31)) for _ in range(repeats)]


def _balanced(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    if data.kind != "classes":
        raise DefinitionError(f"{data.name}: only classes can be balanced, not {data.kind}.")
    return np.sort(_undersampled(pd.factorize(data.truth, sort=False)[0], rng))


def _undersampled(codes: np.ndarray, rng: Any) -> np.ndarray:
    """Return as many rows of each class as the rarest has, class by class."""
    fewest = np.bincount(codes).min()
    drawn = [
        rng.choice(np.flatnonzero(codes == code), size=fewest, replace=False)
        for code in range(codes.max() + 1)
    ]
    return np.concatenate(drawn)


def _cut(
    data: Dataset, folds: int, kept: tuple[bool, np.ndarray | None], seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    by_class, groups = kept
    units = len(data) if groups is None else groups.max() + 1
    if units < folds:
        what = "questions" if groups is None else "groups" if data.group is not None else "items"
        raise DataError(f"{data.name}: {units} {what} cannot make {folds} folds.")
    codes = pd.factorize(data.truth)[0] if by_class else np.zeros(len(data), dtype=int)
    if by_class and np.bincount(codes).max() < folds:
        raise DataError(
            f"{data.name}: no class has {folds} questions; use fewer folds or stratified: false."
        )
    if groups is None or data.group is not None:
        return _scikit_cut(codes, groups, folds, (by_class, seed))
    # a few items asked about twice: cut the items, each with its first answer, then their questions
    first = np.unique(groups, return_index=True)[1]
    cuts = _scikit_cut(codes[first], None, folds, (by_class, seed))
    tests = [np.isin(groups, test) for _, test in cuts]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]


def _scikit_cut(
    codes: np.ndarray, groups: np.ndarray | None, folds: int, how: tuple[bool, int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    by_class, seed = how
    if groups is None:
        cutter = (StratifiedKFold if by_class else KFold)(folds, shuffle=True, random_state=seed)
    else:
        grouped = StratifiedGroupKFold if by_class else GroupKFold
        cutter = grouped(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # a class rarer than the number of folds is the data's way, not a mistake
        warnings.simplefilter("ignore", UserWarning)
        return list(cutter.split(np.zeros(len(codes)), codes, groups))
