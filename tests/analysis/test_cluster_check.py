"""KRT306: design effects by hand, and how often random columns are reported."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis.cluster_check import (
    candidate_columns,
    design_effect,
    is_scale,
    strongest_cluster,
    task_cluster,
)
from karat.core.predictions import Predictions

from ..cluster_data import run_users


def test_design_effects_by_hand():
    codes = np.repeat(np.arange(4), 5)
    # all items of a cluster have the same value: 20 items are worth 4
    correlation, effect, _ = design_effect(np.array([1.0, 2.0, 3.0, 5.0])[codes], codes)
    assert (correlation, effect) == (1.0, 5.0)
    # means of clusters that are all the same
    correlation, effect, ratio = design_effect(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4), codes)
    assert (correlation, effect, ratio) == (0.0, 1.0, 0.0)
    # clusters 0, 2 and 1, 3 with means 0.5 and 2: MSB 2.25, MSW 1.5; r = 0.75 / 3.75
    found = design_effect(np.array([0.0, 1.0, 1.0, 3.0]), np.array([0, 0, 1, 1]))
    assert found == pytest.approx(((2.25 - 1.25) / (2.25 + 1.25), 1 + 1 / 3.5, 2.25 / 1.25))


def test_unequal_clusters_count_by_their_squared_sizes():
    codes = np.array([0] * 8 + [1, 2, 3, 4])
    _, effect, _ = design_effect(np.array([9.0, 1.0, 2.0, 3.0, 4.0])[codes], codes)
    assert effect == pytest.approx((64 + 4) / 12)


def test_random_columns_are_rarely_reported():
    """At most 5 % of tasks with 20 columns, in any way the values are spread."""
    rng, reported = np.random.default_rng(3), 0
    for run in range(200):
        names = [int(rng.choice([6, 30, 150])) for _ in range(20)]
        columns = {f"{i}": rng.integers(0, n, 400).astype(str) for i, n in enumerate(names)}
        values = rng.standard_t(3, 400) if run % 2 else rng.choice([-1.0, 0, 0, 0, 0, 1.0], 400)
        reported += strongest_cluster(values, columns) is not None
    assert reported / 200 <= 0.085  # 5 % and two standard errors, rounded up


def test_groups_are_found_among_random_columns():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(40), 25)
    values = 0.6 * rng.normal(size=40)[group] + rng.normal(size=1000)
    columns = {f"{i}": rng.integers(0, 50, 1000).astype(str) for i in range(10)}
    found = strongest_cluster(values, {**columns, "author": group.astype(str)})
    assert found.column == "author" and found.clusters == 40 and found.items == 1000
    # r is 0.36 / 1.36
    assert found.design_effect == pytest.approx(1 + 24 * 0.26, rel=0.4)
    assert found.effective == round(1000 / found.design_effect)
    assert strongest_cluster(np.zeros(1000), columns) is None


def test_measurements_and_categories_are_no_names():
    rng = np.random.default_rng(0)
    items = pd.DataFrame(
        {
            "author": np.repeat([f"a{i}" for i in range(20)], 5),
            "price": (rng.integers(0, 20, 100) / 4).astype(str),
            "gain": ["0"] * 80 + [str(i) for i in range(20)],
            "row": [str(i) for i in range(100)],
            "plan": ["basic", "plus"] * 50,
            "group": np.repeat([f"g{i}" for i in range(10)], 10),
        }
    )
    assert list(candidate_columns(items)) == ["author"]
    ages = np.repeat(np.arange(20, 60), 25)
    assert is_scale(np.sin(ages / 10), ages.astype(str))
    noise = rng.normal(size=40)[ages - 20]
    assert not is_scale(noise, ages.astype(str)) and not is_scale(noise, ages.astype("<U9") + "x")


def test_the_check_names_the_column_and_says_by_how_much(tmp_path):
    run_users(tmp_path / "plain")
    (found,) = [each for each in karat.check_runs(tmp_path / "plain") if each.code == "KRT306"]
    # 24 users whose ten rows are all alike are worth 24 rows
    assert "same user are answered alike (correlation 1)" in found.message
    assert "240 items in 24 clusters count as about 24 (design effect 10)" in found.message
    assert "--cluster" in found.advice
    run_users(tmp_path / "grouped", group="user")
    assert not [e for e in karat.check_runs(tmp_path / "grouped") if e.code == "KRT306"]


@pytest.mark.parametrize("ranked", [False, True])
def test_items_of_ranked_lists_are_not_reported(monkeypatch, ranked):
    """A query is the unit of its list already, so its items may be answered alike."""
    query, keys = np.repeat([f"q{n}" for n in range(20)], 10), np.arange(200).astype(str)
    right = {"one": query < "q15", "other": np.repeat([True, False] * 10, 10)}

    def answers(side, task):
        texts = np.where(right[side.model], "yes", "no")
        rank = np.where(right[side.model], 1.0, 5.0)
        lists = {"group": query, "rank": rank, "candidates": np.full(200, 5)} if ranked else {}
        return {0: Predictions(texts, np.full(200, "yes"), "classes", "classes", key=keys, **lists)}

    monkeypatch.setattr("karat.analysis.cluster_check.first_repeat", answers)
    run = SimpleNamespace(items=lambda task: pd.DataFrame({"query": query}, index=keys))
    tasks = {"t": {"kind": "classification"}}
    sides = [SimpleNamespace(model=model, run=run, tasks=tasks) for model in right]
    found = task_cluster(sides, "t", "acc")
    assert (found is None) == ranked
    assert ranked or (found.column, found.clusters) == ("query", 20)
