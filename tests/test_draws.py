"""Draws: exact numbers of rows, every class, whole groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.draws import draw

steady = settings(deadline=None, derandomize=True, max_examples=80)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_a_plain_draw_is_exact_ascending_and_follows_the_generator():
    rows = draw(100, 16, rng())
    assert len(set(rows.tolist())) == 16
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == draw(100, 16, rng()).tolist()
    assert rows.tolist() != draw(100, 16, rng(1)).tolist()


def test_classes_keep_their_shares():
    classes = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10)
    for seed in range(5):
        drawn = classes[draw(100, 20, rng(seed), classes)]
        assert [(drawn == c).sum() for c in "abc"] == [12, 6, 2]


@steady
@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.data())
def test_a_draw_is_exact_and_has_every_class_where_it_can(classes, data):
    classes = np.array(classes)
    wanted = data.draw(st.integers(1, len(classes)))
    rows = draw(len(classes), wanted, rng(data.draw(st.integers(0, 9))), classes)
    assert len(np.unique(rows)) == wanted
    distinct = len(np.unique(classes))
    if wanted >= distinct:
        assert len(np.unique(classes[rows])) == distinct


@steady
@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.data())
def test_groups_are_whole_and_no_more_than_wanted(groups, data):
    groups = np.array(groups)
    sizes = np.unique(groups, return_counts=True)[1]
    wanted = data.draw(st.integers(1, len(groups)))
    rows = draw(len(groups), wanted, rng(data.draw(st.integers(0, 9))), None, groups)
    inside, outside = groups[rows], np.delete(groups, rows)
    assert not set(inside) & set(outside)
    if wanted >= sizes.min():
        assert len(rows) <= wanted
        # no group that was left out would have fitted as well
        left = [
            n
            for g, n in zip(*np.unique(groups, return_counts=True), strict=True)
            if g in set(outside)
        ]
        assert all(n > wanted - len(rows) for n in left)
    else:
        assert len(rows) == sizes.min()


def test_whole_groups_show_every_class_where_that_fits():
    groups = np.repeat(np.arange(50), 2)
    classes = np.where(groups == 17, "rare", "common")
    for seed in range(20):
        drawn = classes[draw(100, 10, rng(seed), classes, groups)]
        assert (drawn == "rare").sum() == 2
        assert len(drawn) == 10


@pytest.mark.parametrize("wanted", [1, 3])
def test_fewer_rows_than_classes_is_a_plain_draw(wanted):
    classes = np.array(list("abcdabcd"))
    assert len(draw(8, wanted, rng(), classes)) == wanted


@steady
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=30),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_a_nested_draw_contains_every_smaller_one(rows, by_class, by_group, seed):
    classes = np.array([c for c, _ in rows]) if by_class else None
    groups = np.array([g for _, g in rows]) if by_group else None
    before: set[int] = set()
    for wanted in range(1, len(rows) + 1):
        drawn = draw(len(rows), wanted, rng(seed), classes, groups, nested=True)
        assert before <= set(drawn) and len(drawn) == len(set(drawn))
        before = set(drawn)
        if groups is None:
            assert len(drawn) == wanted
            if classes is not None and wanted >= len(set(classes)):
                assert set(classes[drawn]) == set(classes)
        else:
            inside = set(groups[drawn])
            assert not inside & set(np.delete(groups, drawn))
            assert len(drawn) <= wanted or len(inside) == 1
    assert len(before) == len(rows)
