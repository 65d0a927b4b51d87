"""Bags: where the mentioned items stand, in cells of one item or of several with weights."""

import numpy as np
import pandas as pd
import pytest

from karat.bags import Bags, find, flat, holds_bags
from karat.errors import DataError

ITEMS = pd.Index(["a", "b", "c"])


def cells(*values):
    return pd.Series(list(values), dtype=object)


def test_plain_cells_are_bags_of_one():
    bags = find(cells("c", "a", "c"), ITEMS, "field")
    assert bags.rows.tolist() == [2, 0, 2]
    assert bags.offsets.tolist() == [0, 1, 2, 3]
    assert bags.weights.tolist() == [1, 1, 1]


def test_bags_are_laid_out_flat_and_may_stand_among_plain_cells():
    bags = find(cells({"c": 0.5, "a": 2}, "b", {"b": 3}), ITEMS, "field")
    assert bags.rows.tolist() == [2, 0, 1, 1]
    assert bags.offsets.tolist() == [0, 2, 3, 4]
    assert bags.weights.tolist() == [0.5, 2, 1, 3]


def test_take_follows_the_questions_asked_for():
    bags = find(cells({"c": 0.5, "a": 2}, "b", {"a": 1, "b": 3}), ITEMS, "field")
    for wanted in (np.array([2, 0]), np.array([True, False, True])[[2, 1, 0]].nonzero()[0][::-1]):
        part = bags.take(wanted)
        assert part.rows.tolist() == [0, 1, 2, 0]
        assert part.offsets.tolist() == [0, 2, 4]
        assert part.weights.tolist() == [1, 3, 0.5, 2]
    none = bags.take(np.array([], dtype=int))
    assert none.offsets.tolist() == [0]
    assert bags.take(np.array([1, 1])).rows.tolist() == [1, 1]
    assert isinstance(none, Bags)


def test_only_mappings_are_bags():
    assert holds_bags(cells("a", {"a": 1}))
    for plain in (cells("a", ("a", "b")), pd.Series([1, 2]), pd.Series(["a"], dtype="str")):
        assert not holds_bags(plain)


def test_ids_may_be_tuples_and_numbers():
    pairs = [("a", 1), ("b", 2)]
    items = pd.Index(pairs, tupleize_cols=False)
    assert find(cells(*pairs[::-1]), items, "field").rows.tolist() == [1, 0]
    assert find(pd.Series([30, 10]), pd.Index([10, 20, 30]), "f").rows.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (["a", "z"], 'question 1 .*"z"'),
        (["a", {"b": 1, "z": 1}], 'question 1 .*"z"'),
        (["a", {}], "question 1 has an empty bag"),
        (["a", None], "is missing in 1 rows \\(first: row 1\\)"),
        ([{"a": 1, np.nan: 1}, "b"], "is missing in 1 rows \\(first: row 0\\)"),
        ([{"a": -1}], "-1.0"),
        ([{"a": 0}], "got 0.0"),
        ([{"a": np.inf}], "inf"),
        ([{"a": None}], "nan"),
        ([{"a": "much"}], "weights of a bag must be numbers"),
    ],
)
def test_errors_name_the_field_and_the_question(wrong, word):
    with pytest.raises(DataError, match=word) as caught:
        find(cells(*wrong), ITEMS, 'toy: the field "q"')
    assert str(caught.value).startswith('toy: the field "q"')


def test_cells_can_be_named_anew():
    found = flat(cells({"c": 0.5, "a": 2}, "b"), "field")
    assert found.renamed(np.array([7, 8, 9])) == [{7: 0.5, 8: 2.0}, {9: 1.0}]
    plain = flat(cells("c", "a"), "field")
    assert plain.renamed(np.array([7, 8])).tolist() == [7, 8]
    assert [found.question(i) for i in range(3)] == [0, 0, 1]
