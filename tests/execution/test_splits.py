"""Splits: every row of a repeat is tested once, whatever is grouped, stratified or balanced."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core import registry
from karat.core.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError
from karat.execution.splits import Fold, describe_split, fold_numbers, split

steady = settings(deadline=None, derandomize=True, max_examples=60)


def classes(labels, group=None, part=None, name="toy"):
    """A table of classes, with groups where asked for."""
    table = pd.DataFrame({"x": np.arange(len(labels)), "y": np.array(labels, dtype=object)})
    extras = {k: v for k, v in {"g": group, "p": part}.items() if v is not None}
    return Dataset.from_table(
        table.assign(**extras),
        "y",
        kind="classification",
        name=name,
        group="g" if group is not None else None,
        part="p" if part is not None else None,
    )


def numbers(count, group=None):
    table = pd.DataFrame({"x": np.arange(count), "y": np.arange(count) / 7})
    if group is None:
        return Dataset.from_table(table, "y", kind="regression", name="toy")
    return Dataset.from_table(table.assign(g=group), "y", kind="regression", name="toy", group="g")


def rows_tested(folds, repeat=0):
    return np.sort(np.concatenate([fold.test for fold in folds if fold.repeat == repeat]))


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a.train, b.train) and np.array_equal(a.test, b.test)
        for a, b in zip(one, other, strict=True)
    )


LABELS = ["a"] * 30 + ["b"] * 20 + ["c"] * 10
GROUPS = np.arange(60) % 15


@pytest.mark.parametrize(
    ("grouped", "stratified", "balanced", "repeats", "folds"),
    list(product([False, True], [None, False, True], [False, True], [1, 3], [2, 5])),
)
def test_the_folds_of_a_repeat_test_every_row_once(grouped, stratified, balanced, repeats, folds):
    data = classes(LABELS, GROUPS if grouped else None)
    how = {"use": "kfold", "folds": folds, "repeats": repeats, "balanced": balanced}
    made = split(data, {**how, "stratified": stratified}, seed=7)
    assert [fold.repeat for fold in made] == np.repeat(range(repeats), folds).tolist()
    for repeat in range(repeats):
        rows = rows_tested(made, repeat)
        if balanced:
            drawn = data.target[rows]
            assert [(drawn == label).sum() for label in "abc"] == [10, 10, 10]
        else:
            assert rows.tolist() == list(range(60))
        for fold in (fold for fold in made if fold.repeat == repeat):
            assert np.array_equal(np.sort(np.concatenate([fold.train, fold.test])), rows)
            if grouped:
                assert not set(data.group[fold.train]) & set(data.group[fold.test])


@steady
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), min_size=6, max_size=40),
    st.integers(2, 4),
    st.booleans(),
    st.integers(0, 5),
)
def test_any_table_is_split_or_an_error(rows, folds, grouped, seed):
    labels, groups = [r[0] for r in rows] + ["a", "b"], [r[1] for r in rows] + [0, 1]
    data = classes(labels, groups if grouped else None)
    try:
        made = split(data, {"use": "kfold", "folds": folds}, seed)
    except DataError:
        assert (grouped and len(set(groups)) < folds) or max(
            labels.count("a"), labels.count("b")
        ) < folds
        return
    assert rows_tested(made).tolist() == list(range(len(labels)))
    for fold in made:
        assert not set(fold.train) & set(fold.test)
        if grouped:
            assert not set(data.group[fold.train]) & set(data.group[fold.test])


def test_folds_are_stratified_and_a_class_may_be_rarer_than_the_folds(recwarn):
    for fold in split(classes(LABELS), {"use": "kfold", "folds": 5}, 0):
        drawn = np.array(LABELS)[fold.test]
        assert [(drawn == label).sum() for label in "abc"] == [6, 4, 2]
    made = split(classes(["a"] * 20 + ["b"] * 2), {"use": "kfold", "folds": 5}, 0)
    assert rows_tested(made).tolist() == list(range(22))
    assert not recwarn.list


def test_undersampling_differs_between_repeats():
    how = {"use": "kfold", "folds": 2, "repeats": 4, "balanced": True}
    made = split(classes(LABELS), how, seed=3)
    drawn = [tuple(rows_tested(made, repeat)) for repeat in range(4)]
    assert len(set(drawn)) == 4
    assert all(set(range(50, 60)) <= set(rows) for rows in drawn)  # the rare class


def test_more_repeats_do_not_change_the_first_ones():
    data, how = classes(LABELS, GROUPS), {"use": "kfold", "folds": 3}
    few = split(data, {**how, "repeats": 2}, 5)
    many = split(data, {**how, "repeats": 6}, 5)
    assert same(few, many[: len(few)])


@pytest.mark.parametrize(
    "how",
    [
        {"use": "kfold", "folds": 4},
        {"use": "kfold", "folds": 3, "repeats": 2, "balanced": True},
        {"use": "holdout", "test": 0.3},
        {"use": "holdout", "train_rows": 16, "repeats": 3},
    ],
)
def test_folds_depend_on_the_seed_and_the_targets_or_the_name(how):
    data = classes(LABELS)
    first = split(data, how, 11)
    before = np.random.get_state()
    np.random.seed(0)
    split(classes(LABELS, name="other"), {"use": "kfold"}, 11)
    split(data, {"use": "holdout"}, 12)
    assert same(first, split(data, how, 11))
    np.random.set_state(before)
    assert not same(first, split(data, how, 12))
    # another data set of the same size is not cut at the same places, but a renamed one is
    assert not same(first, split(classes(LABELS[::-1]), how, 11))
    assert same(first, split(classes(LABELS, name="other"), how, 11))
    named, other = (classes(LABELS, name=name).with_drawn_by("name") for name in ("toy", "other"))
    assert not same(split(named, how, 11), split(other, how, 11))


@pytest.mark.parametrize(
    ("data", "how", "word"),
    [
        (classes(LABELS), {"folds": 1}, "folds"),
        (classes(LABELS), {"folds": "five"}, "'five'"),
        (classes(LABELS), {"folds": 2.0}, "2.0"),
        (classes(LABELS), {"folds": True}, "True"),
        (classes(LABELS), {"repeats": 0}, "repeats"),
        (classes(LABELS), {"fold": 3}, '"folds"'),
        (classes(LABELS), {"folds": 61}, "60 rows"),
        (classes(LABELS), {"folds": 31}, "class"),
        (classes(LABELS, GROUPS), {"folds": 16}, "15 groups"),
        (numbers(20), {"stratified": True}, "stratified"),
        (numbers(20), {"balanced": True}, "balanced"),
    ],
)
def test_impossible_folds_are_an_error(data, how, word):
    with pytest.raises((DataError, DefinitionError), match=word):
        split(data, {"use": "kfold", **how}, 0)


def test_numbers_are_cut_with_and_without_groups():
    assert rows_tested(split(numbers(23), {"use": "kfold"}, 0)).tolist() == list(range(23))
    data = numbers(24, np.arange(24) // 4)
    made = split(data, {"use": "kfold", "folds": 3}, 0)
    assert rows_tested(made).tolist() == list(range(24))
    assert all(not set(data.group[f.train]) & set(data.group[f.test]) for f in made)


@pytest.mark.parametrize(("share", "train"), [(0.2, 48), (0.25, 45), (0.5, 30), (0.9, 6)])
def test_a_share_is_held_out(share, train):
    (fold,) = split(classes(LABELS), {"use": "holdout", "test": share}, 0)
    assert len(fold.train) == train
    assert np.array_equal(np.sort(np.concatenate([fold.train, fold.test])), np.arange(60))


@pytest.mark.parametrize("rows", [3, 4, 16, 59])
@pytest.mark.parametrize("seed", range(4))
def test_train_rows_are_exact_and_have_every_class(rows, seed):
    data = classes(["a"] * 57 + ["b"] * 2 + ["c"])
    made = split(data, {"use": "holdout", "train_rows": rows, "repeats": 3}, seed)
    for fold in made:
        assert len(fold.train) == rows
        assert set(data.target[fold.train]) == {"a", "b", "c"}
        assert len(fold.test) == 60 - rows
    assert [fold.repeat for fold in made] == [0, 1, 2]


def test_classes_may_be_missing_in_few_rows_or_without_stratification():
    (fold,) = split(classes(LABELS), {"use": "holdout", "train_rows": 2}, 0)
    assert len(fold.train) == 2
    data = classes(["a"] * 99 + ["b"])
    how = {"use": "holdout", "train_rows": 5, "stratified": False, "repeats": 20}
    found = [set(data.target[fold.train]) for fold in split(data, how, 0)]
    assert {"a"} in found


def test_groups_are_held_out_whole():
    data = classes(LABELS, GROUPS)
    for fold in split(data, {"use": "holdout", "test": 0.3, "repeats": 5}, 0):
        assert not set(data.group[fold.train]) & set(data.group[fold.test])
        assert 38 < len(fold.train) <= 42  # groups have four rows
        assert set(data.target[fold.train]) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"test": 0}, "test"),
        ({"test": 1.0}, "1.0"),
        ({"test": "half"}, "'half'"),
        ({"train_rows": 0}, "train_rows"),
        ({"train_rows": 60}, "60 of 60"),
        ({"test": 0.999}, "0 of 60"),
        ({"repeats": "two"}, "repeats"),
        ({"test": True}, "True"),
        ({"test_rows": 0}, "test_rows"),
        ({"test_rows": 60}, "0 of 60"),
        ({"test_rows": 99}, "99"),
        ({"test_rows": 20, "train_rows": 41}, "41 of 60"),
        ({"test": 0.3, "train_rows": 5}, "train_rows"),
        ({"test": 0.3, "test_rows": 5}, "test_rows"),
    ],
)
def test_an_impossible_holdout_is_an_error(how, word):
    with pytest.raises((DataError, DefinitionError), match=word):
        split(classes(LABELS), {"use": "holdout", **how}, 0)


@pytest.mark.parametrize(
    ("how", "sizes"), [({}, "10 train and 0 test"), ({"test_rows": 4, "train_rows": 3}, "0 train")]
)
def test_one_group_cannot_be_held_out(how, sizes):
    with pytest.raises(DataError, match=sizes):
        split(classes(["a", "b"] * 5, ["g"] * 10), {"use": "holdout", **how}, 0)


def test_a_number_of_rows_is_held_out_and_the_rest_trains():
    for fold in split(classes(LABELS), {"use": "holdout", "test_rows": 12, "repeats": 3}, 0):
        assert [(classes(LABELS).target[fold.test] == c).sum() for c in "abc"] == [6, 4, 2]
        assert np.array_equal(np.sort(np.concatenate([fold.train, fold.test])), np.arange(60))
    # four rows a group: 14 rows are three groups, and all the others train
    data = classes(LABELS, GROUPS)
    (fold,) = split(data, {"use": "holdout", "test_rows": 14}, 0)
    assert (len(fold.test), len(fold.train)) == (12, 48)


def curve(data, sizes, seed, **how):
    """The folds of a learning curve, by their number of train rows."""
    given = {"use": "holdout", "repeats": 2, **how}
    return [split(data, {**given, "train_rows": size}, seed) for size in sizes]


@steady
@given(
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(2, 20)),
    st.integers(1, 40),
    st.lists(st.integers(1, 80), min_size=2, max_size=5, unique=True),
    st.integers(0, 99),
)
def test_a_learning_curve_tests_the_same_rows_and_only_adds_train_rows(
    labels, groups, test_rows, sizes, seed
):
    rng = np.random.default_rng(seed)
    truth = [f"c{i}" for i in rng.integers(0, labels + 1, size=120)]
    data = classes([*truth, "c0", "c1"], None if groups is None else rng.integers(groups, size=122))
    found = curve(data, sorted(sizes), seed, test_rows=test_rows)
    assert len({tuple(map(tuple, (fold.test for fold in folds))) for folds in found}) == 1
    if groups is None:  # of 122 rows
        assert set(found[0][0].test) != set(found[0][1].test) or test_rows < 3
    for repeat in (0, 1):
        before: set[int] = set()
        for size, folds in zip(sorted(sizes), found, strict=True):
            fold = folds[repeat]
            train, test = set(fold.train), set(fold.test)
            assert before <= train and not train & test
            before = train
            if groups is None:
                assert (len(train), len(test)) == (size, test_rows)
                if size >= len(set(data.target)):
                    left = set(data.target[np.setdiff1d(np.arange(122), fold.test)])
                    assert set(data.target[fold.train]) == left
            else:
                inside, outside = (set(data.group[list(side)]) for side in (train, test))
                assert not inside & outside
                # groups are whole: none is cut by what was left out
                rest = set(range(122)) - train
                assert not inside & set(data.group[list(rest)])
                assert len(train) <= size or len(inside) == 1


def test_all_trains_and_tests_on_everything():
    (fold,) = split(classes(LABELS), {"use": "all"}, 0)
    assert fold.train.tolist() == fold.test.tolist() == list(range(60))
    made = split(classes(LABELS), {"use": "all", "repeats": 3}, 0)
    assert [fold.repeat for fold in made] == [0, 1, 2]
    assert all(fold.train.tolist() == fold.test.tolist() == list(range(60)) for fold in made)


def test_all_draws_another_share_in_each_repeat():
    data = classes(LABELS)
    made = split(data, {"use": "all", "repeats": 4, "share": 0.8}, 0)
    assert len({tuple(fold.test) for fold in made}) == 4
    for fold in made:
        assert fold.train.tolist() == fold.test.tolist()
        assert [(data.target[fold.test] == c).sum() for c in "abc"] == [24, 16, 8]
    assert same(made[:2], split(data, {"use": "all", "repeats": 2, "share": 0.8}, 0))
    assert not same(made, split(data, {"use": "all", "repeats": 4, "share": 0.8}, 1))


def test_all_takes_whole_groups():
    # as many classes as groups, as duplicates have them
    things = np.repeat([f"t{i}" for i in range(20)], 3)
    data = classes(things, things)
    for fold in split(data, {"use": "all", "repeats": 3, "share": 0.5}, 0):
        counts = np.unique(data.target[fold.test], return_counts=True)[1]
        assert counts.tolist() == [3] * 10
    (fold,) = split(numbers(10), {"use": "all", "share": 0.01}, 0)
    assert len(fold.test) == 1  # at least


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("share", value) for value in (0, 1.1, -0.5, True, "half", None)),
        *(("repeats", value) for value in (0, 1.5, True)),
    ],
)
def test_wrong_parameters_of_all_are_an_error(name, value):
    with pytest.raises(DefinitionError, match=f"all: {name}"):
        split(classes(LABELS), {"use": "all", name: value}, 0)


def test_fixed_takes_parts_of_the_dataset_rows_and_lists_of_rows():
    data = classes(list("abab"), part=["test", "train", "train", "test"])
    (fold,) = split(data, {"use": "fixed"}, 0)
    assert (fold.train.tolist(), fold.test.tolist()) == ([1, 2], [0, 3])
    with pytest.raises(DataError, match="0 test"):
        split(classes(list("abab"), part=["train"] * 4), {"use": "fixed"}, 0)
    data = classes(list("ababab"))
    (fold,) = split(data, {"use": "fixed", "test": [4, 0]}, 0)
    assert (fold.train.tolist(), fold.test.tolist()) == ([1, 2, 3, 5], [4, 0])
    (fold,) = split(data, {"use": "fixed", "test": [4], "train": [0, 1]}, 0)
    assert (fold.train.tolist(), fold.test.tolist()) == ([0, 1], [4])
    lists = [{"test": [0]}, {"train": [2], "test": [1, 3], "repeat": 1}]
    one, two = split(data, {"use": "fixed", "folds": lists}, 0)
    assert (one.train.tolist(), one.test.tolist(), one.repeat) == ([1, 2, 3, 4, 5], [0], 0)
    assert (two.train.tolist(), two.test.tolist(), two.repeat) == ([2], [1, 3], 1)


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({}, "part"),
        ({"test": [4]}, "0 to 3"),
        ({"test": [-1]}, "0 to 3"),
        ({"test": []}, "4 train and 0 test"),
        ({"test": [0, 1, 2, 3]}, "0 train and 4 test"),
        ({"test": [0, 0]}, "duplicate"),
        ({"test": [0.5]}, "integers"),
        ({"test": ["a"]}, "integers"),
        ({"test": [0, 1], "train": [1, 2]}, "row 1"),
        ({"folds": [{"train": [0]}]}, '"test"'),
        ({"folds": [{"tset": [0]}]}, '"tset"'),
        ({"folds": []}, "no folds"),
    ],
)
def test_wrong_fixed_rows_are_an_error(how, word):
    with pytest.raises((DataError, DefinitionError), match=word):
        split(classes(list("abab")), {"use": "fixed", **how}, 0)


@pytest.fixture
def own(monkeypatch):
    """Register a splitter for one test."""

    def add(part):
        splitters = registry.splitters
        splitters.get("kfold")
        monkeypatch.setattr(splitters, "_parts", {**splitters._parts, "own": part})

    return add


def test_a_custom_splitter_may_yield_pairs(own):
    own(lambda data, size=1: [(np.arange(size, len(data)), np.arange(size))])
    (fold,) = split(classes(list("abab")), {"use": "own", "size": 3}, 0)
    assert isinstance(fold, Fold)
    assert (fold.train.tolist(), fold.test.tolist()) == ([3], [0, 1, 2])


@pytest.mark.parametrize(
    ("made", "error"),
    [
        ([3], ContractError),
        ([(np.array([0]),)], ContractError),
        ([(np.array([0]), np.array([9]))], DataError),
        ([(np.array([True, False]), np.array([1]))], DataError),
    ],
)
def test_a_custom_splitter_is_checked(own, made, error):
    own(lambda data: made)
    with pytest.raises(error):
        split(classes(list("abab")), {"use": "own"}, 0)


def test_an_unknown_splitter_or_negative_seed_is_an_error():
    with pytest.raises(DefinitionError, match='"kfold"'):
        split(classes(LABELS), {"use": "kfolds"}, 0)
    with pytest.raises(DefinitionError, match="-1"):
        split(classes(LABELS), {"use": "kfold"}, -1)


def asked_twice(repeats: int = 2) -> Dataset:
    texts = [f"text {i}" for i in range(30)] * repeats
    frame = pd.DataFrame({"text": texts, "label": list("abc") * 10 * repeats})
    return Dataset.from_columns(frame, ["text"], "label", name="twice")


@pytest.mark.parametrize("how", [{"use": "kfold", "folds": 5}, {"use": "holdout", "test": 0.3}])
def test_an_item_is_never_in_both_train_and_test(how):
    data = asked_twice()
    items = data.mentions("text").rows
    for fold in split(data, how, 0):
        assert not set(items[fold.train]) & set(items[fold.test])
        assert len(fold.train) + len(fold.test) == len(data)
        if how["use"] == "kfold":  # 30 items of 3 classes in 5 folds: 2 of each, asked twice
            assert np.unique(data.target[fold.test], return_counts=True)[1].tolist() == [4, 4, 4]


def test_grouped_false_allows_an_item_in_both_and_grouped_requires_groups():
    data = asked_twice()
    items = data.mentions("text").rows
    folds = split(data, {"use": "kfold", "folds": 5, "grouped": False}, 0)
    assert any(set(items[fold.train]) & set(items[fold.test]) for fold in folds)
    with pytest.raises(DefinitionError, match="twice"):
        split(asked_twice(1), {"use": "kfold", "grouped": True}, 0)


def test_the_given_parts_are_used_unless_folds_are_requested():
    given = classes(list("abab") * 5, part=(["train"] * 3 + ["test"]) * 5)
    (fold,) = split(given, {"use": "auto"}, 0)
    assert np.array_equal(fold.test, np.flatnonzero(given.part == "test"))
    assert len(split(given, {"use": "auto", "folds": 4}, 0)) == 4
    plain = classes(list("abab") * 5)
    for one, other in zip(
        split(plain, {"use": "auto"}, 0), split(plain, {"use": "kfold"}, 0), strict=True
    ):
        assert np.array_equal(one.test, other.test)


def test_the_split_in_words_says_whose_it_is():
    given = classes(list("abab") * 5, part=(["train"] * 3 + ["test"]) * 5)
    for how, word in (({"use": "fixed"}, "given"), ({"use": "kfold"}, "not used")):
        assert word in describe_split(given, how, split(given, how, 0))
    plain = classes(list("abab") * 5)
    assert "given" not in describe_split(plain, {"use": "kfold"}, split(plain, {"use": "kfold"}, 0))


def timed(times, **given):
    table = pd.DataFrame({"t": times, "y": np.arange(len(times)) % 3 / 2, **given})
    group = "g" if "g" in given else None
    return Dataset.from_table(table, "y", name="timed", kind="regression", group=group)


def test_a_time_split_trains_on_the_past():
    times = np.random.default_rng(0).permutation(12)
    folds = split(timed(times), {"use": "time", "column": "t", "folds": 3}, 0)
    assert [sorted(times[fold.test]) for fold in folds] == [[3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert [sorted(times[fold.train]) for fold in folds] == [[*range(n)] for n in (3, 6, 9)]


@pytest.mark.parametrize(
    "convert",
    [
        lambda days: pd.to_datetime(days),
        lambda days: days,
        lambda days: pd.to_datetime(days).tz_localize("Europe/Paris"),
    ],
)
def test_times_are_numbers_dates_or_dates_as_text(convert):
    days = [f"2024-{month:02d}-01" for month in (3, 1, 2, 6, 5, 4)]
    folds = split(timed(convert(days)), {"use": "time", "column": "t", "folds": 2}, 0)
    assert [fold.train.tolist() for fold in folds] == [[1, 2], [0, 1, 2, 5]]
    assert [fold.test.tolist() for fold in folds] == [[0, 5], [3, 4]]


def test_rows_of_equal_time_are_not_divided():
    times = np.array([0, 0, 0, 0, 1, 2, 2, 2])
    for fold in split(timed(times), {"use": "time", "column": "t", "folds": 2}, 0):
        assert times[fold.train].max() < times[fold.test].min()


def test_the_past_of_a_tested_group_is_left_out():
    data = timed(range(6), g=list("abcabd"))
    (fold,) = split(data, {"use": "time", "column": "t", "folds": 1}, 0)
    assert (fold.train.tolist(), fold.test.tolist()) == ([2], [3, 4, 5])
    (fold,) = split(data, {"use": "time", "column": "t", "folds": 1, "grouped": False}, 0)
    assert fold.train.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("times", "how"),
    [
        ([0, 0, 0, 1], {"column": "t", "folds": 2}),
        ([0, 1, 2, 3], {"column": "s"}),
        (["soon", "late", "now", "never"], {"column": "t", "folds": 1}),
        ([0.0, 1.0, np.nan, 2.0], {"column": "t", "folds": 1}),
        ([0, 1, 2, 3], {"column": "t", "folds": 0}),
        ([0, 1, 2, 3], {}),
    ],
)
def test_times_that_cannot_be_split_are_an_error(times, how):
    with pytest.raises((DataError, DefinitionError)):
        split(timed(times), {"use": "time", **how}, 0)


YEARS = [2015] * 10 + [2016] * 6 + [2017] * 4


def of_years(train, test, **more):
    (fold,) = split(
        classes(["a", "b"] * 10, YEARS), {"use": "groups", "train": train, "test": test, **more}, 3
    )
    return fold


def test_groups_train_on_the_same_rows_whatever_is_tested():
    years = np.array(YEARS)
    same, later, last = (of_years([2015], [year], held_out=0.3) for year in (2015, 2016, 2017))
    assert len(same.train) == 7 and len(same.test) == 3
    assert sorted([*same.train, *same.test]) == list(range(10))
    assert later.train.tolist() == last.train.tolist() == same.train.tolist()
    assert later.test.tolist() == list(range(10, 16)) and last.test.tolist() == [16, 17, 18, 19]
    both = of_years([2015, 2016], [2017, 2016], held_out=0.5)
    assert np.bincount(years[both.train])[2015:].tolist() == [5, 3]
    assert np.bincount(years[both.test])[2016:].tolist() == [3, 4]


def test_rows_of_groups_are_limited():
    few = of_years([2015], [2016, 2017], held_out=0.5, rows=4)
    assert (len(few.train), len(few.test)) == (2, 8)
    assert set(few.test) >= {16, 17, 18, 19}
    assert set(few.train) <= set(range(10))
    assert of_years(["2015"], ["2016", "2017"], held_out=0.5, rows=4).test.tolist() == [*few.test]


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"train": [2015], "test": [2061]}, '"2061"'),
        ({"train": 2015, "test": [2016]}, "train must be a list"),
        ({"train": [2015], "test": []}, "test must be a list"),
        ({"train": [2015], "test": [2016], "held_out": 1}, "held_out"),
        ({"train": [2015], "test": [2016], "rows": 0}, "rows"),
        ({"train": [2015]}, "test"),
    ],
)
def test_wrong_groups_to_split(how, word):
    with pytest.raises(DefinitionError, match=word):
        split(classes(["a", "b"] * 10, YEARS), {"use": "groups", **how}, 3)


@steady
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=40),
    st.integers(2, 6),
    st.one_of(st.none(), st.integers(0, 2**31 - 1)),
)
def test_folds_are_those_of_scikit_learn(codes, folds, seed):
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    how = {"shuffle": seed is not None, "random_state": seed}
    codes, rows = np.array(codes), np.zeros(len(codes))

    def tests(cutter, *given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return [test.tolist() for _, test in cutter.split(rows, *given)]

    def own(numbers):
        return [np.flatnonzero(numbers == fold).tolist() for fold in range(folds)]

    if len(codes) >= folds:
        found = fold_numbers(codes, folds, seed, stratified=False)
        assert own(found) == tests(KFold(folds, **how))
    if np.bincount(codes).max() >= folds:
        assert own(fold_numbers(codes, folds, seed)) == tests(StratifiedKFold(folds, **how), codes)
    groups = np.unique(codes, return_inverse=True)[1]
    if seed is not None and groups.max() + 1 >= folds:
        found = fold_numbers(np.arange(groups.max() + 1), folds, seed, stratified=False)[groups]
        assert own(found) == tests(GroupKFold(folds, **how), codes, groups)
