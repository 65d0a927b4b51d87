"""Intervals of scores: over folds, or over clusters of items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

import karat
from karat.analysis.score_intervals import cluster_interval, half_widths
from karat.results.load import gather_scores

from ..cluster_data import Says, run_users, users_table


def test_half_widths_by_hand():
    folds = np.array([[0.8, 0.9, 1.0], [0.5, np.nan, np.nan]])
    found = half_widths(folds)
    assert found[0] == pytest.approx(stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3)) and np.isnan(
        found[1]
    )
    units = np.array([-1.0, -4.0, -7.0])  # squared errors of clusters, a mean of 4
    expected = stats.t.ppf(0.975, 2) * 3 / np.sqrt(3) / (2 * 2)
    ends = cluster_interval(units, 2.0, "rmse")
    assert ends == pytest.approx((2 - expected, 2 + expected))
    assert cluster_interval(np.array([0.5] * 6), 0.5, "acc") == (0.5, 0.5)


def without_skewness(units: np.ndarray) -> list[float]:
    """Return the bounds of the mean at which Hall's transformation has the t quantiles."""
    count, middle, spread = len(units), units.mean(), units.std(ddof=1)
    skewness = np.clip(((units - middle) ** 3).mean() / spread**3, -2, 2)

    def away(mean, quantile):
        w = (middle - mean) / spread
        cubic = w + skewness * w**2 / 3 + skewness**2 * w**3 / 27 + skewness / (6 * count)
        return np.sqrt(count) * cubic - quantile

    ends = stats.t.ppf([0.975, 0.025], count - 1)
    return [optimize.brentq(away, middle - 50 * spread, middle + 50 * spread, q) for q in ends]


def test_intervals_over_skewed_clusters_solve_the_transformation():
    units = np.random.default_rng(0).exponential(size=30)
    low, high = without_skewness(units)
    assert cluster_interval(units, units.mean(), "acc") == pytest.approx((low, high))
    assert high - units.mean() > 1.2 * (units.mean() - low)
    # errors are negative gains: the largest are above the score
    assert cluster_interval(-units, units.mean(), "mae") == pytest.approx((low, high))


def test_a_column_gives_a_single_fold_an_interval(tmp_path):
    runs = run_users(tmp_path)
    plain = karat.leaderboard(runs, by="task").loc[("users", "a")]
    assert plain["score"] == pytest.approx(21 / 24) and np.isnan(plain["score_low"])
    found = karat.leaderboard(runs, by="task", cluster="user").loc[("users", "a")]
    # 21 of 24 users are all right, 3 all wrong
    assert found["score_low"] == pytest.approx(21 / 24 - over_users(3, 24))
    assert found["score"] < found["score_high"] < 1.0  # a t interval would go beyond


@pytest.mark.parametrize("grouped", [True, False])
def test_declared_groups_that_folds_divide_are_the_unit(tmp_path, grouped):
    """Without an option: an interval over folds would not show how much groups vary."""
    frame = users_table().drop(columns="part")
    data = karat.Dataset.from_table(frame, "y", name="users", group="user")
    split = {"use": "kfold", "folds": 5, "grouped": grouped}
    runs = karat.evaluate(
        {"a": Says("a"), "b": Says("b")},
        karat.Task("users", data, metrics=["acc"], split=split),
        output=tmp_path,
    )
    found = karat.leaderboard(runs, by="task").loc[("users", "b")]
    scores = gather_scores(runs).scores
    folds = scores.loc[(scores["model"] == "b") & (scores["metric"] == "acc"), "value"]
    over_folds = float(half_widths(folds.to_numpy()[None])[0])
    half = over_folds if grouped else over_users(8, 28)
    assert len(folds) == 5 and abs(over_folds - over_users(8, 28)) > 0.01
    assert found["score_low"] == pytest.approx(found["score"] - half)
    by_column = karat.leaderboard(runs, by="task", cluster="group").loc[("users", "b")]
    assert by_column["score_low"] == pytest.approx(found["score"] - over_users(8, 28))


def test_declared_groups_give_a_single_fold_an_interval(tmp_path):
    found = karat.leaderboard(run_users(tmp_path, group="user"), by="task").loc[("users", "a")]
    assert found["score_low"] == pytest.approx(21 / 24 - over_users(3, 24))


def over_users(wrong: int, users: int) -> float:
    """Return the lower half of the interval over users, of whom some are all wrong."""
    units = np.array([1.0] * (users - wrong) + [0.0] * wrong)
    return float(units.mean() - without_skewness(units)[0])
