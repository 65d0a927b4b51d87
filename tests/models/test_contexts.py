"""Encoders that learn in context, with a network made of glass: its vectors tell what it saw."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.errors import Declined, DefinitionError
from karat.models.contexts import BLOCK, ContextEncoder, drawn, network_columns


class Glass(ContextEncoder):
    """Its vectors: was the row in the context, how large was that, the mean of its target.

    A row's first column is its number. The second member says the same, plus 10.
    """

    package = "scikit-learn"

    def __init__(
        self,
        weights=("numbers",),
        n_estimators=1,
        join="mean",
        folds=5,
        rows=1000,
        targets=4,
        kind=None,
        random_state=None,
    ):
        self.weights = weights
        self.n_estimators = n_estimators
        self.join = join
        self.folds = folds
        self.rows = rows
        self.targets = targets
        self.kind = kind
        self.random_state = random_state

    def _check_weights(self):
        if not self.weights:
            raise Declined("no weights: fetch some")

    def _reads(self, kind):
        return kind in self.weights

    def _estimator(self, kind):
        return Seen(kind)

    def _members(self, fitted, rows):
        values = np.column_stack(
            [
                np.isin(rows[:, 0], fitted.rows[:, 0]),
                np.full(len(rows), len(fitted.rows)),
                np.full(len(rows), fitted.target.mean()),
            ]
        )
        return np.stack([values + 10 * member for member in range(self.n_estimators)])


class Seen:
    def __init__(self, kind):
        self.kind = kind

    def fit(self, rows, target):
        self.rows, self.target = rows, np.asarray(target)
        return self


def table(count):
    return pd.DataFrame({"n": np.arange(float(count)), "w": np.resize(["a", "b", "c"], count)})


# -- out of fold ----------------------------------------------------------------------------


@given(count=st.integers(6, 40), folds=st.integers(2, 7), seed=st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_no_train_row_is_embedded_by_a_context_that_holds_it(count, folds, seed):
    encoder = Glass(folds=folds, kind="numbers", random_state=seed)
    found = encoder.fit_transform(table(count), np.arange(float(count)))
    assert not found[:, 0].any()
    # a part is as large as any other, so a context lacks that many
    lacking = count - found[:, 1]
    assert set(lacking) <= {count // folds, -(-count // folds)}


def test_other_rows_are_embedded_by_all_train_rows():
    encoder = Glass(kind="numbers")
    encoder.fit_transform(table(10), np.arange(10.0))
    new = pd.DataFrame({"n": [3.0, 99.0], "w": ["a", "z"]})
    assert encoder.transform(new).tolist() == [[1, 10, 4.5], [0, 10, 4.5]]


def test_without_folds_a_train_row_is_in_its_own_context():
    found = Glass(folds=0, kind="numbers").fit_transform(table(10), np.arange(10.0))
    assert found.tolist() == [[1, 10, 4.5]] * 10


def test_rows_outside_the_context_need_no_folds():
    encoder = Glass(rows=8, folds=4, kind="numbers", random_state=3)
    with pytest.warns(UserWarning, match="8 of 20"):
        found = encoder.fit_transform(table(20), np.arange(20.0))
    assert not found[:, 0].any()
    assert sorted(found[:, 1]) == [6] * 8 + [8] * 12


def test_the_seed_decides_the_folds():
    one, same, other = (
        Glass(kind="numbers", random_state=seed).fit_transform(table(30), np.arange(30.0))
        for seed in (1, 1, 2)
    )
    assert one.tolist() == same.tolist() != other.tolist()


# -- targets of the contexts ----------------------------------------------------------------


def test_two_classes_are_read_as_0_and_1():
    y = np.array(["no", "yes"] * 10)
    found = Glass(folds=0, kind="classes").fit_transform(table(20), y)
    assert found.tolist() == [[1, 20, 0.5]] * 20


def test_more_classes_have_a_context_each():
    y = np.array(["a", "b", "b", "c", "c", "c"] * 2)
    found = Glass(folds=0, kind="classes").fit_transform(table(12), y)
    assert found.shape == (12, 9)
    np.testing.assert_allclose(found[0], [1, 12, 1 / 6, 1, 12, 1 / 3, 1, 12, 1 / 2], rtol=1e-6)


def test_weights_for_classes_read_them_all_at_once():
    y = np.array(["a", "b", "c"] * 4)
    encoder = Glass(weights=("classes",), folds=0, kind="classes")
    assert encoder.fit_transform(table(12), y).tolist() == [[1, 12, 1.0]] * 12
    assert [context.fitted.kind for context in encoder.contexts_] == ["classes"]


def test_a_class_of_one_row_leaves_zeros_in_the_part_that_holds_it():
    y = np.array(["rare"] + ["a", "b"] * 6)
    found = Glass(folds=3, kind="classes", random_state=0).fit_transform(table(13), y)
    classes = np.split(found, 3, axis=1)  # a, b, rare
    assert classes[2][0].tolist() == [0, 0, 0]
    known = classes[2][:, 1] > 0
    assert sorted(known) == [False] * 5 + [True] * 8 or sorted(known) == [False] * 4 + [True] * 9
    assert not classes[2][~known].any() and (classes[0][:, 1] > 0).all()


@pytest.mark.parametrize(
    ("encoder", "y", "reason"),
    [
        (Glass(weights=("classes",)), np.arange(20.0), "for classes only"),
        (Glass(), np.arange(20).astype(str), "10 classes.* 20"),
        (Glass(weights=("classes",)), None, "needs weights for numbers"),
        (Glass(targets=0), None, "which is hidden"),
        (Glass(weights=()), np.arange(20.0), "no weights: fetch some"),
        (Glass(), np.ones(20), "constant"),
    ],
)
def test_it_declines_with_a_reason(encoder, y, reason):
    with pytest.raises(Declined, match=reason):
        encoder.fit(table(20), y)


def test_a_table_that_is_too_wide_is_declined():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 501)))
    with pytest.raises(Declined, match="500 .* 501"):
        Glass(kind="numbers").fit(wide, np.arange(5.0))


# -- where the truth is hidden --------------------------------------------------------------


def test_without_a_target_columns_are_predicted_from_the_others():
    rows = table(12).assign(x=np.arange(12) % 5, gap=[None, *range(11)])
    encoder = Glass(targets=9, random_state=0)
    found = encoder.fit_transform(rows)
    # numbers come first: n, x, gap, w; one with gaps cannot be a target
    assert sorted(context.without for context in encoder.contexts_) == [0, 1, 3]
    assert found.shape == (12, 9)
    np.testing.assert_array_equal(encoder.transform(rows), found)
    for context in encoder.contexts_:
        assert context.fitted.rows.shape == (12, 3)


def test_as_many_columns_as_asked_for_drawn_by_the_seed():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 20)))
    drawn_columns = [
        [context.without for context in Glass(targets=3, random_state=seed).fit(rows).contexts_]
        for seed in (1, 1, 2)
    ]
    assert len(drawn_columns[0]) == 3
    assert drawn_columns[0] == drawn_columns[1] != drawn_columns[2]


def test_one_column_alone_is_declined():
    with pytest.raises(Declined, match="no column"):
        Glass().fit(pd.DataFrame({"x": np.arange(5.0)}))


# -- members and blocks ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("join", "row"), [("mean", [11, 14, 14.5]), ("concat", [1, 4, 4.5, 11, 14, 14.5, 21, 24, 24.5])]
)
def test_members_are_averaged_or_concatenated(join, row):
    encoder = Glass(n_estimators=3, join=join, folds=0, kind="numbers")
    found = encoder.fit_transform(table(4), np.array([3.0, 4, 5, 6]))
    assert found[0].tolist() == row


def test_many_rows_are_embedded_in_blocks():
    encoder = Glass(kind="numbers").fit(table(3), np.arange(3.0))
    found = encoder.transform(table(2 * BLOCK + 1))
    assert found.shape == (2 * BLOCK + 1, 3)
    assert found[:, 0].sum() == 3 and found[:3, 0].all()


# -- parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"join": "sum"},
        {"folds": 1},
        {"folds": -1},
        {"folds": 2.5},
        {"rows": 1},
        {"n_estimators": 0},
        {"targets": -1},
    ],
)
def test_a_wrong_parameter_raises_before_fit(wrong):
    with pytest.raises(DefinitionError, match=next(iter(wrong))):
        Glass(**wrong).unavailable()
    with pytest.raises(DefinitionError, match=next(iter(wrong))):
        Glass(**wrong).fit(table(9), np.arange(9.0))


def test_missing_weights_and_required_target():
    assert Glass().unavailable() == ""
    assert Glass(weights=()).unavailable() == "no weights: fetch some"
    assert not Glass().__sklearn_tags__().target_tags.required
    assert Glass(targets=0).__sklearn_tags__().target_tags.required
    assert Glass(weights=("classes",)).__sklearn_tags__().target_tags.required


def test_fingerprint_depends_on_parameters():
    assert Glass().fingerprint() == Glass().fingerprint() != Glass(folds=3).fingerprint()


# -- columns --------------------------------------------------------------------------------


def test_columns_are_read_as_numbers_dates_and_words():
    rows = pd.DataFrame(
        {
            "n": [1.5, np.nan, 1e30],
            "day": pd.to_datetime(["2024-01-31 06:00", None, "1970-01-01 00:00"]),
            "w": ["b", None, "a"],
            "yes": [True, False, True],
        }
    )
    found = network_columns().fit_transform(rows)
    assert found[0].tolist() == [1.5, 2024, 1, 31, 2, 6, 1706680800, 2, 1]
    assert np.isnan(found[1, :7]).all() and found[1, 7:].tolist() == [0, 0]
    assert found[2].tolist() == [1e15, 1970, 1, 1, 3, 0, 0, 1, 1]


def test_a_new_word_is_missing_and_a_missing_number_is_the_median():
    rows = pd.DataFrame({"n": [1.0, 3.0, None], "w": ["a", "b", "a"]})
    new = pd.DataFrame({"n": [None], "w": ["z"]})
    assert np.isnan(network_columns().fit(rows).transform(new)).all()
    assert network_columns(imputed=True).fit(rows).transform(new).tolist() == [[2.0, -1.0]]


# -- which rows make the context ------------------------------------------------------------


def test_a_small_table_is_its_own_context():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drawn(5, 5, None, 0).tolist() == [True] * 5


@pytest.mark.filterwarnings("ignore:the context holds")
def test_a_drawn_context_has_its_share_of_every_class():
    truth = np.repeat(["a", "b", "c"], [60, 30, 10])
    chosen = truth[drawn(100, 20, truth, 1)]
    assert {label: (chosen == label).sum() for label in "abc"} == {"a": 12, "b": 6, "c": 2}


@pytest.mark.filterwarnings("ignore:the context holds")
def test_a_drawn_context_of_numbers_covers_them_evenly():
    truth = np.arange(1000.0)
    chosen = truth[drawn(1000, 11, truth, 1)]
    assert len(chosen) == 11 and chosen[0] == 0 and chosen[-1] == 999
    assert np.ptp(np.diff(chosen)) <= 1


@pytest.mark.filterwarnings("ignore:the context holds")
def test_without_a_target_rows_are_drawn_at_random():
    one, same, other = (drawn(100, 10, None, seed) for seed in (1, 1, 2))
    assert one.sum() == 10 and one.tolist() == same.tolist() != other.tolist()
