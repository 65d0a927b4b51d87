"""Costs of a job against those of a new run."""

from __future__ import annotations

import pytest

from karat.ext.publish.rerun_costs import is_less_memory, size_differences, unequal_costs


def test_sizes_are_compared_exactly():
    again = {"dimensions": 70, "precision": "float32", "vector_bytes": 280}
    assert list(size_differences(again, again)) == []
    assert len(list(size_differences({**again, "dimensions": 69}, again))) == 1
    assert len(list(size_differences({**again, "dimensions": 8, "vector_bytes": 32}, again))) == 2
    assert list(size_differences({}, again)) == []  # of older versions


@pytest.mark.parametrize(
    ("claimed", "measured", "less"),
    # three times as much, and 200 MB more
    [(100.0, 301.0, True), (100.0, 300.0, False), (101.0, 304.0, True), (10.0, 209.0, False)],
)
def test_memory_is_compared_within_a_factor(claimed, measured, less):
    assert is_less_memory(claimed, measured) is less
    assert not is_less_memory(measured, claimed)  # more than needed is no advantage


def test_the_first_job_with_other_costs():
    jobs = [{"task": "t", "fold": fold, "seconds": 1.0, "dimensions": 4} for fold in (0, 1)]
    assert unequal_costs(jobs, [dict(job) for job in jobs]) is None
    assert unequal_costs(jobs, [jobs[0], {**jobs[1], "dimensions": 2}]) == ("t", 1)
    assert unequal_costs(jobs, [{**jobs[0], "fold": 2}]) == ("t", 2)
