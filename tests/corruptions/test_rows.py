"""Rows that are lost or stand twice, and answers that are wrong."""

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.rows import duplicate_rows, label_noise, rare_class_dilution, rarest
from karat.corruptions.view import View, see
from karat.dataset import Dataset
from karat.errors import DefinitionError


def rows(count=30):
    return pd.DataFrame({"x": np.arange(count), "w": "w"}), pd.Series([0, 0, 1] * (count // 3))


# -- fewer of the rare ----------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "lost"), [(0.1, 1), (0.25, 2), (0.4, 4), (1.0, 10)])
def test_a_share_of_the_rarest_class_is_dropped(severity, lost, rng):
    X, y = rows()
    found, truth = rare_class_dilution(X, y, severity, rng())
    assert len(found) == 30 - lost
    assert (truth == 1).sum() == 10 - lost and (truth == 0).sum() == 20
    assert found["x"].tolist() == found.index.tolist() == truth.index.tolist()  # in their order
    assert truth.tolist() == y[found.index].tolist()


@pytest.mark.parametrize(
    ("y", "rare"),
    [
        ([0, 0, 1], [2]),
        ([1, 1, 0], [2]),
        (["yes", "no", "no"], [0]),
        ([0, 1], [1]),
        ([10, 9], [1]),  # in the order of text
        (["c", "a", "b", "a", "b", "c", "c"], [2, 4]),
        ([True, False, True], [1]),
        ([2.0, 1.0, 2.0], [1]),
        (["a", None, None, "b", "b"], [0]),
        (["a", "a"], []),
        ([], []),
    ],
)
def test_the_rarest_class_is_found_in_the_data(y, rare):
    assert np.flatnonzero(rarest(pd.Series(y, dtype=object))).tolist() == rare
    assert np.flatnonzero(rarest(pd.Series(y, dtype="category"))).tolist() == rare


def test_the_only_class_is_not_dropped(rng):
    X, _ = rows()
    assert len(rare_class_dilution(X, pd.Series(["a"] * 30), 1.0, rng())[0]) == 30


def test_numbers_have_no_rare_class(rng):
    X, y = rows()
    with pytest.raises(DefinitionError, match="rare_class_dilution: .*numbers"):
        rare_class_dilution(X, y + 0.5, 0.5, rng())
    with pytest.raises(DefinitionError, match="rare_class_dilution: .*target"):
        rare_class_dilution(X, None, 0.5, rng())


# -- more of the same -----------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "more"), [(0.1, 3), (0.25, 7), (1.0, 30)])
def test_a_share_of_the_rows_is_repeated(severity, more, rng):
    X, y = rows()
    found, truth = duplicate_rows(X, y, severity, rng())
    assert len(found) == 30 + more
    assert found.index.tolist()[:30] == list(range(30))
    assert found.index.value_counts().max() == 2
    assert truth.tolist() == y[found.index].tolist()
    assert found["x"].tolist() == found.index.tolist()
    assert duplicate_rows(X, None, severity, rng())[1] is None


# -- wrong answers --------------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "wrong"), [(0.1, 3), (0.25, 7), (1.0, 30)])
@pytest.mark.parametrize(
    "y",
    [
        pd.Series([0, 1, 2] * 10),
        pd.Series(["a", "b"] * 15),
        pd.Series(["a", "b"] * 15, dtype="category"),
        pd.Series([True, False] * 15),
        pd.Series(np.arange(30) / 7),
    ],
)
def test_a_share_of_the_answers_is_another_one(y, severity, wrong, rng):
    X, _ = rows()
    found, truth = label_noise(X, y, severity, rng())
    pd.testing.assert_frame_equal(found, X)
    assert truth.dtype == y.dtype and truth.index.equals(y.index)
    assert (truth.astype(object) != y.astype(object)).sum() == wrong
    assert set(truth) <= set(y)


def test_every_other_answer_is_as_likely():
    X, y = pd.DataFrame({"x": range(6000)}), pd.Series(["a"] * 2000 + ["b"] * 3000 + ["c"] * 1000)
    truth = label_noise(X, y, 1.0, np.random.default_rng(0))[1]
    table = pd.crosstab(y, truth)
    assert (np.diag(table) == 0).all()
    shares = table.div(table.sum(axis=1), axis=0)
    assert shares.loc["a", "b"] == pytest.approx(0.5, abs=5 * 0.5 / 2000**0.5)
    assert shares.loc["b", "a"] == pytest.approx(0.5, abs=5 * 0.5 / 3000**0.5)


def test_where_there_is_one_answer_none_is_wrong(rng):
    X, _ = rows()
    assert set(label_noise(X, pd.Series(["a"] * 30), 1.0, rng())[1]) == {"a"}


def test_answers_are_needed(rng):
    with pytest.raises(DefinitionError, match="label_noise: .*target"):
        label_noise(rows()[0], None, 0.5, rng())


# -- through a view -------------------------------------------------------------------------


def test_views_follow_rows_that_come_and_go():
    X, y = rows()
    data = Dataset.from_table(X.assign(y=y.map({0: "no", 1: "yes"}), g=X["x"] // 2), "y", group="g")
    less = see(data, View("rare_class_dilution", 0.4), 1, 0)
    assert len(less) == 26 and (less.truth == "yes").sum() == 6
    assert less.group.tolist() == (less.frame()["x"] // 2).tolist()
    more = see(data, View("duplicate_rows", 0.2), 1, 0)
    assert len(more) == 36
    assert more.truth.tolist() == ["yes" if x % 3 == 2 else "no" for x in more.frame()["x"]]
    wrong = see(data, View("label_noise", 0.2), 1, 0)
    assert (wrong.truth != data.truth).sum() == 6
