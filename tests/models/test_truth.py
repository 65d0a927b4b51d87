"""The truth dealt into parts."""

import numpy as np
import pytest

from karat.models.truth import deal, kind_of


@pytest.mark.parametrize("seed", range(5))
def test_every_part_gets_its_share_of_every_class(seed):
    y = np.array(["a"] * 20 + ["b"] * 10 + ["c"] * 5)
    parts = deal(y, "classes", 5, seed)
    for part in range(5):
        assert [np.sum(y[parts == part] == label) for label in "abc"] == [4, 2, 1]


def test_a_class_of_two_rows_stands_in_two_parts():
    y = np.array(["rare", "rare", *["often"] * 9])
    assert all(len(set(deal(y, "classes", 5, seed)[:2])) == 2 for seed in range(20))


def test_numbers_are_dealt_evenly_and_by_the_seed():
    y = np.arange(11.0)
    parts = deal(y, "numbers", 3, 0)
    assert sorted(np.bincount(parts)) == [3, 4, 4]
    assert deal(y, "numbers", 3, 0).tolist() == parts.tolist()
    assert deal(y, "numbers", 3, 1).tolist() != parts.tolist()


def test_the_kind_is_guessed_only_where_nobody_declared_it():
    assert kind_of(np.array([1, 2]), None) == "classes"
    assert kind_of(np.array([1, 2]), "numbers") == "numbers"
    assert kind_of(None, None) == "classes"
