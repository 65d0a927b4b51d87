"""Small versions of benchmarks/clusters.py: equal models on items that belong together."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from karat.analysis.item_values import contributions
from karat.metrics.metric import score

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def simulated():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import clusters
    finally:
        sys.path.remove(str(BENCHMARKS))
    return clusters


@pytest.mark.parametrize(("folds", "whole"), [(1, True), (5, True), (5, False)])
def test_equal_models_are_rarely_separated_on_groups(simulated, folds, whole):
    """40 groups of 25 items with a design effect of 10; items separate more than a third."""
    design = simulated.Design(10, folds=folds, whole=whole)
    rng, found = np.random.default_rng(folds + whole), {"items": [], "groups": [], "covers": []}
    for _ in range(80):
        answers = simulated.draw(rng, design, "acc", 2)
        groups = simulated.separate(answers, design, "acc", True)
        items = simulated.separate(answers, design, "acc", False)
        found["groups"].append(groups.p[0, 1] < 0.05)
        found["items"].append(items.p[0, 1] < 0.05)
        found["covers"].append(simulated.covered(groups))
    assert np.mean(found["groups"]) <= 0.125 and np.mean(found["covers"]) >= 0.875
    assert np.mean(found["items"]) > (0.3 if folds == 1 or not whole else 0.0)


@pytest.mark.parametrize("metric", ["auc", "f1_macro"])
@pytest.mark.parametrize(("folds", "whole"), [(1, True), (5, True), (5, False)])
def test_block_contributions_are_those_of_predictions(simulated, metric, folds, whole):
    design = simulated.Design(5, groups=15, size=10, folds=folds, whole=whole)
    (answers,) = simulated.draw(np.random.default_rng(0), design, metric, 1)
    given = (metric, simulated._folds(answers, design), simulated._clusters(design))
    fast = simulated.block_contributions(*given)
    assert fast == pytest.approx(contributions(*given))
    expected = [score(metric, fold)[0] for fold in given[1]]
    assert [simulated.fold_score(metric, fold) for fold in given[1]] == pytest.approx(expected)


def test_a_gate_by_clusters_gives_few_false_alarms(simulated):
    (alone, small, large) = simulated.gates(60)
    assert large["items"] > 0.15 > 0.1 >= large["--cluster"]
    assert max(alone["--cluster"], small["--cluster"]) <= 0.15
