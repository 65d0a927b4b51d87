"""Datasets from X and y: what scikit-learn takes, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from karat.data.arrays import data_from_arrays, is_table_like
from karat.errors import KaratError

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "g": list("uuvvww"), "w": range(1, 7)})


@pytest.mark.parametrize("rows, target", [(X, Y), (X, Y.tolist()), (X.tolist(), Y[:, None])])
def test_arrays(rows, target):
    data = data_from_arrays(rows, target)
    assert list(data.items.columns) == ["x0", "x1"] and data.name == "data"
    assert np.array_equal(data.items.to_numpy(), X) and data.target.tolist() == Y.tolist()
    assert data.drawn_by == "target"


def test_rows_of_arrays_and_values_of_a_series_are_paired_in_their_order():
    shuffled = pd.Series(Y, index=[5, 4, 3, 2, 1, 0], name="label")
    data = data_from_arrays(X, shuffled)
    assert data.target.tolist() == Y.tolist() and data.name == "label"


def test_columns_of_a_frame_are_target_groups_and_weights():
    data = data_from_arrays(FRAME, "y", groups="g", sample_weight="w")
    assert list(data.items.columns) == ["a", "b"] and data.name == "y"
    assert data.group.tolist() == list("uuvvww") and data.weight.tolist() == [1, 2, 3, 4, 5, 6]
    values = data_from_arrays(X, Y, groups=FRAME["g"], sample_weight=FRAME["w"].tolist())
    assert values.group.tolist() == list("uuvvww") and values.weight.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_pair_is_a_train_and_a_test_part():
    for rows, target in [
        ((FRAME[:4], FRAME[4:]), "y"),
        ((X[:4], X[4:]), (Y[:4], Y[4:])),
    ]:
        data = data_from_arrays(rows, target)
        assert data.part.tolist() == ["train"] * 4 + ["test"] * 2
        assert data.target.tolist() == Y.tolist()


def test_texts():
    data = data_from_arrays(["one", "two", "three", "four"], [1, 2, 1, 2], kind="classification")
    assert data.modality == "text" and data.items.tolist() == ["one", "two", "three", "four"]


def test_what_is_like_a_table():
    assert all(map(is_table_like, (X, FRAME, Y, sparse.eye(3), (X, X))))
    assert not any(map(is_table_like, ("adult", ["adult"], ("adult", "diabetes"), (X, X, X), None)))


@pytest.mark.parametrize(
    "rows, target, more, word",
    [
        (FRAME, None, {}, r'target="w".*a, b, y, g, w'),
        (X, None, {}, r"evaluate\(model, X, y\)"),
        (sparse.csr_matrix(X), Y, {}, "toarray"),
        (Y, Y, {}, "reshape"),
        (X, Y[:4], {}, "4 values for 6 rows"),
        (X, np.column_stack([Y, Y]), {}, "2 columns"),
        (FRAME, "z", {}, '"z" is not a column'),
        (FRAME, "y", {"groups": "z"}, '"z" is not a column'),
        (X, Y, {"groups": [1, 2]}, "group must have 6 values"),
        (X, Y, {"sample_weight": [[1] * 6]}, "weight must have 6 values"),
        ((X[:4], X[4:]), Y, {}, "a pair of 4 and 2 values"),
        ((FRAME[:4], FRAME[4:][["a", "y"]]), "y", {}, "b, g, w"),
    ],
)
def test_what_is_refused(rows, target, more, word):
    with pytest.raises(KaratError, match=word):
        data_from_arrays(rows, target, **more)
