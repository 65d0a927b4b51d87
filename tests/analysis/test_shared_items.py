"""Ranks of runs, and the folds that they share."""

import math

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from karat.analysis.shared_items import ranked, shared_units


@given(st.lists(st.integers(0, 5) | st.none(), min_size=2, max_size=8), st.booleans())
def test_ranks_are_those_of_competitions(scores, higher):
    numbers = [math.nan if each is None else float(each) for each in scores]
    known = [each for each in numbers if not math.isnan(each)]
    expected = iter(rankdata([-v if higher else v for v in known], method="min") if known else ())
    ranks = [None if math.isnan(v) else int(next(expected)) for v in numbers]
    assert ranked(numbers, higher) == (ranks if len(known) > 1 else [None] * len(numbers))


@given(st.lists(st.sets(st.tuples(st.integers(0, 3), st.just(0))), min_size=1, max_size=5))
def test_shared_folds_are_held_by_all_who_stay(held):
    shared, lost = shared_units(held)
    there = [units for i, units in enumerate(held) if units and i not in lost]
    assert set(shared) == (set.intersection(*there) if there else set())
    assert bool(shared) == any(held)
    assert not held[0] or 0 not in lost
