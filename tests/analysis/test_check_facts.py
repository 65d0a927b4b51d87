"""The smallest difference that folds or rows can detect (KRT302)."""

import pytest

from karat.analysis.checks import check_runs


def codes(runs):
    return [finding.code for finding in check_runs(runs)]


@pytest.mark.parametrize(("rows", "found"), [(1440, ["KRT302"]), (1441, [])])
def test_rows_needed_to_detect_a_difference_of_proportions(made, rows, found):
    # 2.80159 · sqrt((0.211975 + 0.228684) / n) = 0.049 at n = 1440.5
    runs = [made(n, [v], task={"tested": rows}) for n, v in (("a", 0.695), ("b", 0.646))]
    assert codes(runs) == found
    assert all(
        "1,440 test rows" in message
        for message in (finding.message for finding in check_runs(runs))
    )


@pytest.mark.parametrize(("apart", "found"), [(0.0042, ["KRT302"]), (0.004, [])])
def test_folds_needed_to_detect_a_difference(made, apart, found):
    # (12.7062 + 1.3764) · sqrt(2 b² · 1.5) = 24.392 b against a gap of 0.1
    runs = [made("a", [0.7 - apart, 0.7 + apart], metric="auc")]
    runs += [made("b", [0.6, 0.6], metric="auc")]
    assert codes(runs) == found


def test_the_ratio_comes_from_the_sizes_of_the_folds(made):
    # 10 train rows and 10 test rows in each of three folds: 1/3 + 1; t(0.975, 2) = 4.3027 and
    # t(0.8, 2) = 1.0607 make 6.193 b of the differences a - b, a, a + b
    for apart, found in ((0.0163, ["KRT302"]), (0.0160, [])):
        ends = [0.6 - apart, 0.6, 0.6 + apart]
        runs = [made("a", ends, metric="ami"), made("b", [0.5] * 3, metric="ami")]
        assert codes(runs) == found
