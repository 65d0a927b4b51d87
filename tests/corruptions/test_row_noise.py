"""Rows that are dropped or repeated, and wrong targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.row_noise import duplicate_rows, label_noise, rare_class_dilution, rarest


def rows(count=30):
    return pd.DataFrame({"x": np.arange(count), "w": "w"}), pd.Series([0, 0, 1] * (count // 3))


@pytest.mark.parametrize(("severity", "lost"), [(0.1, 1), (0.25, 2), (0.4, 4), (1.0, 10)])
def test_a_share_of_the_rarest_class_is_dropped(severity, lost, rng):
    X, y = rows()
    found, truth = rare_class_dilution(X, y, severity, rng())
    assert len(found) == 30 - lost
    assert (truth == 1).sum() == 10 - lost and (truth == 0).sum() == 20
    assert found["x"].tolist() == found.index.tolist() == truth.index.tolist()  # in their order
    assert truth.tolist() == y[found.index].tolist()
    only = pd.Series(["a"] * 30)  # the only class is not dropped, and no answer is wrong
    assert len(rare_class_dilution(X, only, severity, rng())[0]) == 30
    assert set(label_noise(X, only, severity, rng())[1]) == {"a"}


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


@pytest.mark.parametrize(("severity", "changed"), [(0.1, 3), (0.25, 7), (1.0, 30)])
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
def test_a_share_of_rows_is_repeated_and_of_answers_is_wrong(y, severity, changed, rng):
    X, _ = rows()
    found, truth = label_noise(X, y, severity, rng())
    pd.testing.assert_frame_equal(found, X)
    assert truth.dtype == y.dtype and truth.index.equals(y.index)
    assert (truth.astype(object) != y.astype(object)).sum() == changed
    assert set(truth) <= set(y)
    found, truth = duplicate_rows(X, y, severity, rng())
    assert len(found) == 30 + changed
    assert found.index.tolist()[:30] == list(range(30))
    assert found.index.value_counts().max() == 2
    assert truth.tolist() == y[found.index].tolist()
    assert found["x"].tolist() == found.index.tolist()
    assert duplicate_rows(X, None, severity, rng())[1] is None


def test_every_other_answer_is_as_likely():
    X, y = pd.DataFrame({"x": range(6000)}), pd.Series(["a"] * 2000 + ["b"] * 3000 + ["c"] * 1000)
    truth = label_noise(X, y, 1.0, np.random.default_rng(0))[1]
    table = pd.crosstab(y, truth)
    assert (np.diag(table) == 0).all()
    shares = table.div(table.sum(axis=1), axis=0)
    assert shares.loc["a", "b"] == pytest.approx(0.5, abs=5 * 0.5 / 2000**0.5)
    assert shares.loc["b", "a"] == pytest.approx(0.5, abs=5 * 0.5 / 3000**0.5)
