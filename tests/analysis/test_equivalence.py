"""Two models are equivalent within a margin, different, or neither is shown."""

import pytest

from karat.analysis.equivalence import equivalence, pool_tasks
from karat.analysis.pairing import pair
from karat.errors import DataError
from karat.stats.paired_tests import MeanDifference

from ..score_data import score_table

BASE = [0.80, 0.82, 0.81, 0.79, 0.78]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ([0.001, 0.0, -0.001, 0.001, 0.0], "equivalent"),
        ([-0.05, -0.06, -0.05, -0.05, -0.06], "different"),
        ([0.05, 0.06, 0.05, 0.05, 0.06], "different"),
        ([-0.05, 0.06, 0.0, 0.02, -0.03], "undecided"),
    ],
)
def test_verdicts(change, verdict):
    new = [a + b for a, b in zip(BASE, change, strict=True)]
    found = equivalence(
        pair(score_table({"t": {"a": BASE, "b": new}}), "a", "b", None, "folds"), 0.01
    )
    assert found.verdict == verdict
    assert found.mean.mean == pytest.approx(sum(change) / 5), "of the second, against the first"


def test_six_tasks_are_a_sample_of_tasks():
    each = [MeanDifference(mean, 0.1, 9) for mean in (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)]
    # the standard deviation of 0 to 5 is the root of 3.5
    assert pool_tasks(each).error == pytest.approx(0.01 * (3.5 / 6) ** 0.5)
    assert pool_tasks(each[:2]).error == pytest.approx(0.1 / 2**0.5)


def test_no_common_task():
    table = score_table({"t": {"a": BASE}, "u": {"b": BASE}})
    with pytest.raises(DataError, match="no task in common"):
        equivalence(pair(table, "a", "b", None, "folds"), 0.01)
