"""Intervals of scores: over folds, or over clusters of items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import karat
from karat.analysis.score_intervals import cluster_half_width, half_widths

from ..cluster_data import run_users


def test_half_widths_by_hand():
    folds = np.array([[0.8, 0.9, 1.0], [0.5, np.nan, np.nan]])
    found = half_widths(folds)
    assert found[0] == pytest.approx(stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3)) and np.isnan(
        found[1]
    )
    units = np.array([-1.0, -4.0, -7.0])  # squared errors of clusters, a mean of 4
    expected = stats.t.ppf(0.975, 2) * 3 / np.sqrt(3) / (2 * 2)
    assert cluster_half_width(units, 2.0, "rmse") == pytest.approx(expected)


def test_a_column_gives_a_single_fold_an_interval(tmp_path):
    runs = run_users(tmp_path)
    plain = karat.leaderboard(runs, by="task").loc[("users", "a")]
    assert plain["score"] == pytest.approx(21 / 24) and np.isnan(plain["score_low"])
    found = karat.leaderboard(runs, by="task", cluster="user").loc[("users", "a")]
    # 21 of 24 users are all right, 3 all wrong
    spread = np.std([1] * 21 + [0] * 3, ddof=1)
    half = stats.t.ppf(0.975, 23) * spread / np.sqrt(24)
    assert found["score_low"] == pytest.approx(21 / 24 - half)
    assert found["score_high"] == 1.0  # the limit of accuracy
