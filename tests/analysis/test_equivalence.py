"""Two models on tasks: differences within a margin, beyond it, or neither."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.analysis.equivalence import Equivalence, equivalence, pool_tasks
from karat.analysis.pairing import pair
from karat.errors import DataError
from karat.stats.paired_tests import MeanDifference

FOLDS = 10


def scores(differences, folds=FOLDS, noise=0.001, seed=0):
    """Return a table of scores of two models; the second differs by this much on each task."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, difference in enumerate(differences):
        for fold in range(folds):
            common = 0.8 + 0.01 * rng.standard_normal()
            for model, shift in (("a", 0.0), ("b", difference + noise * rng.standard_normal())):
                row = {"task": f"t{number}", "model": model, "fold": fold, "metric": "acc"}
                row |= {"repeat": 0, "corruption": "", "severity": 0.0, "epoch": -1}
                rows.append({**row, "value": common + shift})
    return pd.DataFrame(rows)


def compared(differences, margin=0.01, **given):
    return equivalence(pair(scores(differences, **given), "a", "b", None, "folds"), margin)


def test_equal_models_are_equivalent_and_worse_ones_different():
    assert compared([0.0] * 3).verdict == "equivalent"
    assert compared([-0.05] * 3).verdict == "different"
    assert compared([0.0] * 3, noise=0.05).verdict == "undecided"


def test_differences_are_those_of_the_second_model():
    found = compared([-0.05, 0.02], noise=0.0001)
    assert found.tasks["difference"].tolist() == pytest.approx([-0.05, 0.02], abs=2e-4)
    assert found.mean.mean == pytest.approx(-0.015, abs=2e-4)
    assert (found.tasks["difference_low"] < found.tasks["difference"]).all()


def test_one_task_beyond_the_margin_decides():
    found = compared([0.0] * 7 + [-0.04])
    assert abs(found.mean.mean) < 0.01
    assert found.verdict == "different"
    assert found.tasks["verdict"].tolist()[-1] == "different"


def test_six_tasks_are_a_sample_of_tasks():
    tasks = [MeanDifference(value, 0.001, 9) for value in (0.01, -0.01, 0.02, 0.0, 0.03, 0.01)]
    pooled = pool_tasks(tasks)
    assert pooled.mean == pytest.approx(0.01)
    # the standard deviation of the six is √(0.001 / 5)
    assert pooled.error == pytest.approx(np.sqrt(0.001 / 5) / np.sqrt(6))
    assert pooled.freedom == 5
    assert pool_tasks(tasks[:2]).error == pytest.approx(0.001 / np.sqrt(2))


def test_needed_items_by_hand():
    # (1.645 + 1.282) × 0.02 / 0.01 = 5.854, squared 34.27, times 100 items
    found = Equivalence(pd.DataFrame({"verdict": []}), MeanDifference(0.0, 0.02, 99), 0.01, 100)
    assert found.needed_items == pytest.approx(3427 - 100, abs=2)
    near = Equivalence(found.tasks, MeanDifference(0.02, 0.02, 99), 0.01, 100)
    assert near.needed_items == 0


def test_false_equivalence_is_rare():
    """Models exactly at the margin are called equivalent in at most 5 % of cases."""
    verdicts = [
        compared([-0.01] * 8, folds=3, noise=0.004, seed=seed).verdict for seed in range(60)
    ]
    assert verdicts.count("equivalent") <= 8  # 5 % of 60 are 3; P(> 8) < 0.01


def test_no_common_task_is_an_error():
    table = scores([0.0])
    table.loc[table["model"] == "b", "task"] = "other"
    with pytest.raises(DataError, match="no task in common"):
        equivalence(pair(table, "a", "b", None, "folds"), 0.01)
