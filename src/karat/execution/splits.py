"""Splits of a dataset's questions into train and test folds.

A splitter is ``(data, rng, **parameters) -> folds``. Its generator is seeded with the run's seed
and the name of the dataset or its targets, so every model gets the same folds.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import require_columns
from karat.core.dataset import Dataset, sample_rows
from karat.core.digest import sha256_of
from karat.core.formatting import count
from karat.core.registry import accepts, build, splitter, splitters
from karat.errors import ContractError, DataError, DefinitionError, did_you_mean

#: most folds or repeats
MOST = 10_000
#: characters of a parameter of a split, such as a list of rows, from which its hash is stored
MOST_CHARACTERS = 100


@dataclass(frozen=True)
class Fold:
    """The rows of the train and of the test questions.

    Attributes
    ----------
    train, test
        Positions of questions.
    repeat
        Folds of one repeat test each row once.
    """

    train: np.ndarray
    test: np.ndarray
    repeat: int = 0

    def __repr__(self) -> str:
        sizes = f"{len(self.train):,} train and {len(self.test):,} test rows"
        return f"<Fold of repeat {self.repeat}: {sizes}>"


class GivenFolds(Sequence[Mapping[str, Any]]):
    """Folds as rows, for the split "fixed"; their text is a hash of the rows.

    ``origin`` says what made them.
    """

    def __init__(self, folds: Sequence[Fold], origin: str) -> None:
        self.folds = tuple(folds)
        self.origin = origin

    def __getitem__(self, number: Any) -> Any:
        fold = self.folds[number]
        return {"train": fold.train, "test": fold.test, "repeat": fold.repeat}

    def __len__(self) -> int:
        return len(self.folds)

    def __repr__(self) -> str:
        digest = hashlib.sha256()
        for fold in self.folds:
            for rows in (fold.train, fold.test, np.array([fold.repeat])):
                digest.update(np.array([len(rows)], dtype="<i8").tobytes())
                digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes())
        return f"rows {digest.hexdigest()[:32]}"


def split(data: Dataset, how: Mapping[str, Any], seed: int) -> list[Fold]:
    """Return the folds of a dataset under a split definition such as ``{"use": "kfold"}``.

    The same seed and the same name, or the same targets of a user's table, give the same folds.
    Train and test rows of a fold are disjoint or, if nothing is held out, equal.
    """
    if seed < 0:
        raise DefinitionError(f"seed must be an integer >= 0, got {seed}.")
    params = {name: value for name, value in how.items() if name != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"split {data.draw_key}".encode())])
    part = splitters.get(how["use"])
    drawn_folds = build(f'split "{how["use"]}"', part, params, {"data": data, "rng": rng})
    folds = [_checked(data, fold) for fold in drawn_folds]
    if not folds:
        raise DataError(f'{data.name}: the split "{how["use"]}" makes no folds.')
    return folds


def choose_split(data: Dataset, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the split that ``auto`` selects; any other is returned unchanged.

    It is the dataset's own train and test part, if there is one, and k-fold cross-validation
    otherwise, or if a parameter of that is given.
    """
    params = {name: value for name, value in how.items() if name != "use"}
    if how["use"] != "auto":
        return dict(how)
    return {"use": "kfold", **params} if params or data.part is None else {"use": "fixed"}


def has_number_of_folds(how: Mapping[str, Any]) -> bool:
    """Return whether a split has a number of folds.

    >>> has_number_of_folds({"use": "kfold"}), has_number_of_folds({"use": "holdout"})
    (True, False)
    """
    # the folds of "fixed" are rows
    return how["use"] != "fixed" and "folds" in accepts(splitters.get(how["use"]))[0]


def describe_split(data: Dataset, how: Mapping[str, Any], folds: Sequence[Fold]) -> str:
    """Return one line about the folds: whose rows they are, how many, and of which size."""
    first = folds[0]
    sizes = f"{len(first.train):,} train and {len(first.test):,} test rows"
    if isinstance(how.get("folds"), GivenFolds):
        return f"{how['folds'].origin}, {len(folds)} folds, {sizes}"
    is_given = how["use"] == "fixed" and not ({"test", "folds"} & set(how))
    if is_given and data.part is not None:
        return f"the given train and test parts, {sizes}"
    text = f"{how['use']}, {len(folds)} fold{'s' * (len(folds) > 1)}, {sizes}"
    unused = data.part is not None
    return text + (" (the given train and test parts are not used)" if unused else "")


def split_facts(how: Mapping[str, Any], folds: Sequence[Fold]) -> dict[str, Any]:
    """Return a split with the defaults of its parameters, and a hash of its rows, as JSON values.

    ``count`` is the number of all its folds. ``rows`` is equal for two splits if their folds have
    the same test rows and as many train rows.
    """
    signature = inspect.signature(splitters.get(how["use"]))
    defaults = {name: p.default for name, p in signature.parameters.items() if p.default != p.empty}
    settings = {name: value for name, value in {**defaults, **how}.items() if value is not None}
    facts: dict[str, Any] = {}
    for name, value in settings.items():
        text = json.dumps(value, sort_keys=True, default=str)
        long = len(text) > MOST_CHARACTERS
        facts[name] = sha256_of(text, length=16) if long else json.loads(text)
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(
            np.array([len(fold.train), len(fold.test), fold.repeat], dtype="<i8").tobytes()
        )
        digest.update(np.ascontiguousarray(fold.test, dtype="<i8").tobytes())
    return {**facts, "count": len(folds), "rows": digest.hexdigest()[:32]}


def _checked(data: Dataset, fold: Any) -> Fold:
    try:
        fold = fold if isinstance(fold, Fold) else Fold(*fold)
    except TypeError as error:
        raise ContractError(f"a splitter must yield Fold or (train, test): {error}.") from error
    sides = [np.asarray(side) for side in (fold.train, fold.test)]
    for side in sides:
        if not len(side):
            raise DataError(
                f"{data.name}: the split has {len(sides[0])} train and {len(sides[1])} test "
                f"{data.noun}; use fewer folds or more rows."
            )
        if side.dtype.kind not in "iu":
            raise DataError(f"{data.name}: rows of a split must be integers, got {side[0]!r}.")
        if side.min() < 0 or side.max() >= len(data):
            raise DataError(f"{data.name}: rows of a split must be from 0 to {len(data) - 1}.")
    train, test = (np.bincount(side, minlength=len(data)) for side in sides)
    if max(train.max(), test.max()) > 1:
        raise DataError(f"{data.name}: duplicate row in the train or test rows of a split.")
    both = train & test
    if both.any() and not np.array_equal(train, test):
        raise DataError(f"{data.name}: row {np.argmax(both)} is both a train and a test row.")
    return Fold(sides[0].astype(np.intp), sides[1].astype(np.intp), fold.repeat)


@splitter("all")
def all_rows(
    data: Dataset, rng: np.random.Generator, repeats: int = 1, share: float = 1.0
) -> Iterator[Fold]:
    """Train and test on all questions; the targets are hidden from training.

    Each repeat has another model seed and draws ``share`` of the questions, stratified by class
    and with whole groups, which shows how much a score depends on the rows.
    """
    check_split_number("all: repeats", repeats, 1)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise DefinitionError(f"all: share must be above 0 and at most 1, got {share!r}.")
    classes = data.target if data.kind == "classification" else None
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        rows = np.arange(len(data))
        if share < 1:
            wanted = max(1, round(share * len(data)))
            drawn = np.random.default_rng(seed)
            rows = sample_rows(len(data), wanted, drawn, classes, _groups(data, None))
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
    """K-fold cross-validation, stratified by class; groups are not divided.

    Without groups, questions about the same item stay together; ``grouped: false`` disables both.
    ``balanced`` first draws, in each repeat, as many questions of each class as the rarest has.
    """
    check_split_number("kfold: folds", folds, 2)
    check_split_number("kfold: repeats", repeats, 1)
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        rows = np.arange(len(data))
        if balanced:
            if data.kind != "classification":
                raise DefinitionError(f"{data.name}: balanced requires classes, got {data.kind}.")
            codes = pd.factorize(data.target, sort=False)[0]
            rows = np.sort(undersampled(codes, np.random.default_rng(seed)))
        part = data.take(rows)
        cuts = _cut(part, folds, (_by_class(part, stratified), _groups(part, grouped)), seed)
        for train, test in cuts:
            yield Fold(rows[train], rows[test], repeat)


@splitter("auto")
def auto(
    data: Dataset,
    rng: np.random.Generator,
    folds: int | None = None,
    repeats: int | None = None,
    stratified: bool | None = None,
    grouped: bool | None = None,
    balanced: bool | None = None,
) -> Iterator[Fold]:
    """Use the train and test part of the dataset, if it has one, else k-fold cross-validation.

    A parameter of ``kfold`` requests cross-validation of all rows.
    """
    names = ("folds", "repeats", "stratified", "grouped", "balanced")
    values = (folds, repeats, stratified, grouped, balanced)
    settings: dict[str, Any] = {
        name: value for name, value in zip(names, values, strict=True) if value is not None
    }
    how = choose_split(data, {"use": "auto", **settings})
    yield from fixed_folds(data) if how["use"] == "fixed" else kfold(data, rng, **settings)


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
    """Hold out a share of the questions (0.2), or train on a number of rows and test the rest.

    ``test_rows`` are held out first and do not depend on ``train_rows``, and larger train sets
    contain the smaller ones, as a learning curve needs. The train rows have every class, if
    possible; groups are not divided, so that a side may have fewer rows than requested.
    """
    check_split_number("holdout: repeats", repeats, 1)
    for name, rows in (("train_rows", train_rows), ("test_rows", test_rows)):
        if rows is not None:
            check_split_number(f"holdout: {name}", rows, 1)
            if test is not None:
                raise DefinitionError(f"holdout: test and {name} exclude each other.")
    test = 0.2 if test is None else test
    if isinstance(test, bool) or not isinstance(test, int | float) or not 0 < test < 1:
        raise DefinitionError(f"holdout: test must be between 0 and 1, got {test!r}.")
    most = len(data) - (test_rows or 0)
    share = round(len(data) * (1 - test)) if test_rows is None else most
    wanted = share if train_rows is None else train_rows
    if not 0 < wanted < len(data) or wanted > most:
        raise DataError(
            f"{data.name}: cannot train on {max(wanted, 0)} of {len(data)} {data.noun}"
            + (f" and test on {test_rows}." if test_rows else ".")
        )
    classes = np.asarray(data.target) if _by_class(data, stratified) else None
    groups = _groups(data, grouped)
    for repeat, seed in enumerate(_seeds(rng, repeats)):
        sizes = (len(data), wanted, test_rows)
        yield Fold(*_held_out(sizes, (classes, groups), seed), repeat)


def _held_out(
    sizes: tuple[int, int, int | None], labels: tuple[Any, Any], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return train rows and test rows; ``labels`` are the classes and groups to respect."""
    size, train_rows, test_rows = sizes
    rng = np.random.default_rng(seed)
    rows = np.arange(size)
    if test_rows is None:
        train = sample_rows(size, train_rows, rng, *labels)
        return train, np.setdiff1d(rows, train)
    test = sample_rows(size, test_rows, rng, *labels)
    rest = np.setdiff1d(rows, test)
    if train_rows + test_rows == size or not len(rest):  # whole groups change these sizes
        return rest, test
    classes, groups = (None if values is None else values[rest] for values in labels)
    return rest[sample_rows(len(rest), train_rows, rng, classes, groups, nested=True)], test


@splitter("time")
def time(data: Dataset, column: str, folds: int = 5, grouped: bool | None = None) -> Iterator[Fold]:
    """Train on the past and test on what follows: each fold tests the next block of rows.

    ``column`` holds dates or numbers. The rows in its order are cut into ``folds`` + 1 blocks of
    about equal size; fold i tests block i + 1 and trains on all rows before it. Rows of equal time
    are in one block. Train rows of a group that is tested are left out, unless ``grouped`` is
    false.
    """
    check_split_number("time: folds", folds, 1)
    codes = pd.factorize(_times(data, column), sort=True)[0]
    ends = np.cumsum(np.bincount(codes))
    # the last moment of each block but the last: the one whose rows end nearest to its share
    wanted = len(codes) * np.arange(1, folds + 1) / (folds + 1)
    last = np.abs(ends[:, None] - wanted).argmin(axis=0)
    if len(ends) <= folds or len(np.unique(last)) < folds or last[-1] == len(ends) - 1:
        raise DataError(
            f'{data.name}: "{column}" has {len(ends)} distinct times, too few for {folds} folds.'
        )
    groups = _groups(data, grouped)
    for begin, end in zip(last, [*last[1:], len(ends) - 1], strict=True):
        train, test = (
            np.flatnonzero(codes <= begin),
            np.flatnonzero((codes > begin) & (codes <= end)),
        )
        if groups is not None:
            train = train[~np.isin(groups[train], groups[test])]
        yield Fold(train, test)


def _times(data: Dataset, column: str) -> np.ndarray:
    """Return the time of each question as integers or floats, or raise an error."""
    table = data.frame() if data.modality == "table" else None
    if not isinstance(table, pd.DataFrame):
        raise DefinitionError(f"{data.name}: split time needs a table with a column of times.")
    require_columns(table, [column], data.name)
    cells = table[column]
    if not pd.api.types.is_numeric_dtype(cells) or pd.api.types.is_bool_dtype(cells):
        cells = pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
    empty = cells.isna().to_numpy()
    if empty.any():
        row = int(np.argmax(empty))
        raise DataError(
            f'{data.name}: split time: "{table[column].iloc[row]}" in "{column}" (row {row}) is '
            f"neither a number nor a date such as 2024-01-31."
        )
    return cells.to_numpy()


@splitter("groups")
def by_groups(
    data: Dataset,
    rng: np.random.Generator,
    train: Sequence[Any],
    test: Sequence[Any],
    held_out: float = 0.2,
    rows: int | None = None,
) -> Iterator[Fold]:
    """Train on the rows of some groups and test on those of others, such as later years.

    The share ``held_out`` of the rows of every train group is not trained on, whatever is tested. A
    group of both lists is tested on these rows, so that tests of the same train groups differ in
    the test rows only. ``rows`` is the maximum number of rows of a group, drawn at random.
    """
    if isinstance(held_out, bool) or not 0 < held_out < 1:
        raise DefinitionError(f"groups: held_out must be between 0 and 1, got {held_out!r}.")
    check_split_number("groups: rows", 1 if rows is None else rows, 1)
    if data.group is None:
        raise DefinitionError(f"{data.name} has no groups; split groups needs a group column.")
    names = np.array([str(group) for group in data.group])
    trains, tests = _named("train", train, names), _named("test", test, names)
    trained: list[np.ndarray] = []
    tested: list[np.ndarray] = []
    for name in sorted(set(names)):  # the same draws whatever is trained and tested
        drawn = rng.permutation(np.flatnonzero(names == name))[:rows]
        held = drawn[: round(len(drawn) * held_out)]
        if name in trains:
            trained.append(drawn[len(held) :])
        if name in tests:
            tested.append(held if name in trains else drawn)
    yield Fold(np.sort(np.concatenate(trained)), np.sort(np.concatenate(tested)))


def _named(side: str, names: object, groups: np.ndarray) -> set[str]:
    """Return the names of the groups of a side, or raise a DefinitionError for an unknown one."""
    if not isinstance(names, Sequence) or isinstance(names, str) or not len(names):
        raise DefinitionError(f"groups: {side} must be a list of groups, got {names!r}.")
    existing = sorted(set(groups))
    for name in map(str, names):
        if name not in existing:
            listed = ", ".join(existing[:10]) + (" …" if len(existing) > 10 else "")
            hint = did_you_mean(name, existing) or f" There are: {listed}."
            raise DefinitionError(f'groups: {side}: there is no group "{name}".{hint}')
    return set(map(str, names))


@splitter("fixed")
def fixed_folds(
    data: Dataset,
    test: Sequence[int] | None = None,
    train: Sequence[int] | None = None,
    folds: Sequence[Mapping[str, Any]] | None = None,
) -> Iterator[Fold]:
    """Use the train and test rows of the dataset, the given rows, or a list of folds.

    If only test rows are given, all other rows are train rows.
    """
    if test is not None and folds is None:
        folds = [{"test": test, "train": train}]
    if folds is None:
        if data.part is None:
            raise DataError(
                f"{data.name} has no train and test part: give the split test rows, "
                f"or the dataset a train and a test file."
            )
        yield Fold(np.flatnonzero(data.part == "train"), np.flatnonzero(data.part == "test"))
    for number, fold in enumerate(folds or ()):
        unknown = [name for name in fold if name not in ("train", "test", "repeat")]
        if unknown or "test" not in fold:
            what = f'an unknown key "{unknown[0]}"' if unknown else 'no "test"'
            raise DefinitionError(f"fixed: fold {number} has {what}; give train and test rows.")
        rows = np.asarray(fold["test"])
        train = fold.get("train")
        train_rows = (
            np.setdiff1d(np.arange(len(data)), rows) if train is None else np.asarray(train)
        )
        yield Fold(train_rows, rows, fold.get("repeat", 0))


def check_split_number(what: str, value: object, least: int) -> None:
    """Raise a DefinitionError unless a parameter of a splitter is an integer, and large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DefinitionError(f"{what} must be an integer >= {least}, got {value!r}.")
    if value > MOST:
        raise DefinitionError(f"{what} must be at most {MOST:,}, got {value:,}.")


def refuse_groups(data: Dataset, name: str) -> None:
    """Raise a DefinitionError if rows belong to groups, which this splitter would divide."""
    if data.group is not None:
        raise DefinitionError(
            f"{data.name} has groups, which split {name} would divide; use split: kfold."
        )


def _by_class(data: Dataset, stratified: bool | None) -> bool:
    if stratified and data.kind != "classification":
        raise DefinitionError(
            f"{data.name}: stratified requires classes, got {data.kind}; use stratified: false."
        )
    return data.kind == "classification" if stratified is None else bool(stratified)


def _groups(data: Dataset, grouped: bool | None) -> np.ndarray | None:
    """Return the group of each question, or its item if several questions share one."""
    if grouped is False:
        return None
    if data.group is not None:
        return np.asarray(pd.factorize(data.group)[0])
    if grouped:
        raise DefinitionError(f"{data.name} has no groups; omit grouped or define a group.")
    mentioned = data.mentions(data.fields[0]).rows
    if len(data.fields) != 1 or len(mentioned) != len(data):
        return None
    items = np.asarray(pd.factorize(mentioned)[0])
    return items if items.max() + 1 < len(items) else None


def _seeds(rng: np.random.Generator, repeats: int) -> list[int]:
    # drawn one by one, so that more repeats do not change the first ones
    return [int(rng.integers(2**31)) for _ in range(repeats)]


def undersampled(codes: np.ndarray, rng: Any) -> np.ndarray:
    """Return as many rows of each class as the rarest class has."""
    fewest = np.bincount(codes).min()
    drawn = [
        rng.choice(np.flatnonzero(codes == code), size=fewest, replace=False)
        for code in range(codes.max() + 1)
    ]
    return np.concatenate(drawn)


def _cut(
    data: Dataset, folds: int, how: tuple[bool, np.ndarray | None], seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    by_class, groups = how
    units = len(data) if groups is None else groups.max() + 1
    if units < folds:
        grouped = "group" if data.group is not None else "item"
        what = data.noun.removesuffix("s") if groups is None else grouped
        verb = "is" if units == 1 else "are"
        raise DataError(f"{data.name}: {count(units, what)} {verb} too few for {folds} folds.")
    codes = class_codes(data, folds) if by_class else np.zeros(len(data), dtype=int)
    if groups is None:
        return fold_sides(fold_numbers(codes, folds, seed, stratified=by_class), folds)
    if by_class and data.group is not None:
        return _stratified_groups(codes, groups, folds, seed)
    # groups of any class, or several questions per item: each item with its first target
    first = np.unique(groups, return_index=True)[1]
    numbers = fold_numbers(codes[first], folds, seed, stratified=by_class)
    return fold_sides(numbers[groups], folds)


def class_codes(data: Dataset, folds: int) -> np.ndarray:
    """Return the class of each question as a number, or raise an error if all are too rare."""
    codes = np.asarray(pd.factorize(data.target)[0])
    if np.bincount(codes).max() < folds:
        raise DataError(
            f"{data.name}: every class has fewer than {folds} {data.noun} ({len(data.classes)} "
            f'classes such as "{str(data.classes[0])[:40]}" in {len(codes)} {data.noun}). If these '
            f"are no classes, choose another target, or read it as numbers (kind: regression); "
            f"else use fewer folds or stratified: false."
        )
    return codes


def fold_sides(numbers: np.ndarray, folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the train and test rows of each fold, given the fold in which each row is tested."""
    tests = [numbers == fold for fold in range(folds)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]


def fold_numbers(
    codes: np.ndarray, folds: int, seed: int | None = None, *, stratified: bool = True
) -> np.ndarray:
    """Return the fold of each row, stratified by its code, shuffled if a seed is given.

    They are those of scikit-learn's StratifiedKFold and KFold: to import these takes longer than
    most plans take.

    >>> fold_numbers(np.array([0, 0, 1, 1, 0]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    rng = None if seed is None else np.random.RandomState(seed)
    numbers = np.empty(len(codes), dtype=int)
    if not stratified:
        order = np.arange(len(codes))
        if rng is not None:
            rng.shuffle(order)
        for fold, rows in enumerate(np.array_split(order, folds)):
            numbers[rows] = fold
        return numbers
    codes = np.asarray(pd.factorize(codes)[0])
    ordered, classes = np.sort(codes), codes.max() + 1
    counts = [np.bincount(ordered[fold::folds], minlength=classes) for fold in range(folds)]
    for code in range(classes):
        class_numbers = np.arange(folds).repeat([count[code] for count in counts])
        if rng is not None:
            rng.shuffle(class_numbers)
        numbers[codes == code] = class_numbers
    return numbers


def _stratified_groups(
    codes: np.ndarray, groups: np.ndarray, folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedGroupKFold

    cutter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class rarer than the folds
        return list(cutter.split(np.zeros(len(codes)), codes, groups))
