"""The test of skipped tasks: who judges, what is compared, and how often it is wrong."""

import numpy as np
import pytest

from karat.analysis.skipped_tasks import TaskLevels
from karat.stats.paired_tests import holm

HARD = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])


def skipped_low(takes, levels=HARD, metrics=None, judges=None):
    takes = np.array(takes, dtype=bool)
    judges = np.ones(len(takes), dtype=bool) if judges is None else np.array(judges, dtype=bool)
    values = np.where(takes, levels, np.nan)
    return TaskLevels(values, takes, metrics or ["acc"] * 8, judges).skipped_low()


def test_the_lowest_half_is_skipped():
    rows = [[1] * 8, [1] * 8, [0] * 4 + [1] * 4]
    found = skipped_low(rows)
    # four lowest of eight: (10 - 18 + 0.5) / √12
    assert np.isnan(found[:2]).all() and found[2] == pytest.approx(0.01519, abs=1e-5)
    assert np.isnan(skipped_low(rows, judges=[1, 0, 1])).all()  # one judge
    assert np.isnan(skipped_low(rows, metrics=["acc"] * 4 + ["auc"] * 4)).all()


def test_several_models_are_corrected_after_holm():
    rows = [[1] * 8, [1] * 8, [0] * 4 + [1] * 4, [0] * 4 + [1] * 4]
    raw = skipped_low(rows[:3])[2]
    assert skipped_low(rows)[2:].tolist() == holm([raw, raw]).tolist()


def test_tasks_skipped_at_random_are_rarely_called_hard():
    rng, found = np.random.default_rng(7), []
    for _ in range(300):
        levels = rng.random(20)
        takes = np.ones((6, 20), dtype=bool)
        takes[3:] = rng.random((3, 20)) < 0.6
        noisy = np.where(takes, levels + rng.normal(0, 0.1, takes.shape), np.nan)
        p = TaskLevels(noisy, takes, ["acc"] * 20, np.ones(6, dtype=bool)).skipped_low()
        found.append(bool((p < 0.05).any()))
    assert np.mean(found) <= 0.09
