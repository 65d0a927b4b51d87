"""Which models of a task differ: items and fits together, error rates under a null."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.analysis import item_tests
from karat.analysis.item_tests import (
    Fits,
    Separation,
    deciding,
    fold_separation,
    item_separation,
    separate_pairs,
)
from karat.analysis.stored_items import ItemValues
from karat.reporting.formats import render
from karat.reporting.page import make_task_tests
from karat.results.load import gather_scores, make_cells
from karat.results.run import Run
from karat.stats.learner_tests import SeedNoise
from karat.stats.paired_items import mcnemar
from karat.stats.paired_tests import detectable_difference, needed_pairs

# -- all models of a task -------------------------------------------------------------------


def test_folds_decide_only_where_items_cannot():
    whole = Separation(np.array([[1.0, 0.01], [0.01, 1.0]]), "McNemar", items=9)
    part = Separation(np.array([[1.0, np.nan], [np.nan, 1.0]]), "max-T over items")
    none = Separation(np.array([[1.0, np.nan], [np.nan, 1.0]]), why="one fold")
    folds = Separation(np.array([[1.0, 0.4], [0.4, 1.0]]), "corrected t")
    assert deciding(whole, folds) is whole and deciding(part, folds) is folds
    assert deciding(part, none) is part and deciding(none, none) is none


def test_folds_by_hand():
    values = np.array([[0.9, 0.8, 0.7, 0.9], [0.8, 0.8, 0.6, 0.6]])
    found = fold_separation(values, 0.25)
    apart = values[0] - values[1]
    t = apart.mean() / np.sqrt(apart.var(ddof=1) * (1 / 4 + 1 / 4))
    assert found.p[0, 1] == pytest.approx(2 * stats.t.sf(t, 3)) and found.test == "corrected t"
    one = fold_separation(values[:, :1], 0.25)
    assert (one.test, one.why) == ("", "one fold") and np.isnan(one.p[0, 1])


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> list[Run]:
    """Three models on one hold-out of 60 questions; "dummy" guesses."""
    names = [f"q{i}" for i in range(240)]
    frame = pd.DataFrame({"item": names, "y": ["a", "b"] * 120})
    data = karat.Dataset.from_columns(frame, ["item"], "y", name="many", modality="entity")
    task = karat.Task("many", data, split="holdout", metrics=["acc", "auc"])
    models = {}
    for name, missed in {"good": 10, "fair": 14, "dummy": 120}.items():
        rng = np.random.default_rng(0)
        signs = [(-1) ** i * (-1 if i % 120 < missed // 2 else 1) for i in range(240)]
        models[name] = {q: [s, rng.normal(0, 0.01)] for q, s in zip(names, signs, strict=True)}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def crossed(tmp_path_factory) -> list[Run]:
    """Four models on five folds of 200 questions, of which two are almost as good."""
    names = [f"q{i}" for i in range(200)]
    frame = pd.DataFrame({"item": names, "y": ["a", "b"] * 100})
    data = karat.Dataset.from_columns(frame, ["item"], "y", name="five", modality="entity")
    split = {"use": "kfold", "folds": 5}
    task = karat.Task("five", data, split=split, metrics=["acc"])
    signs, models = np.array([1.0, -1.0] * 100), {}
    for place, (name, noise) in enumerate({"w": 0.5, "x": 0.6, "y": 0.9, "z": 1.6}.items()):
        values = signs + noise * np.random.default_rng(place).normal(size=200)
        models[name] = {q: [v, 0.0] for q, v in zip(names, values, strict=True)}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("crossed"))


@pytest.mark.parametrize("models", [2, 4])
def test_the_p_of_a_pair_is_one_number_everywhere(crossed, models):
    """In ``compare``, the page's data, all pairs, and the letters of the leaderboard's JSON."""
    runs = crossed[:models]
    given = gather_scores(runs)
    cells = make_cells(given, given.chosen({}))
    (page,) = make_task_tests(given, cells, np.arange(models))
    pairs = karat.compare_all(runs).pairs.set_index(["first", "second"])["p"]
    rows = json.loads(render(karat.leaderboard(runs), "json"))
    letters = {row["model"]: set(row["tie"]) for row in rows}
    for (one, other), p in pairs.items():
        (compared,) = karat.compare(runs, one, other).tasks["p"]
        places = cells.models.index(one), cells.models.index(other)
        assert page["p"][places] == compared
        # of several models, p is corrected for all pairs
        assert p == compared if models == 2 else p >= compared
        assert (p < 0.05) == (not letters[one] & letters[other])
    assert len({p < 0.05 for p in pairs}) == (1 if models == 2 else 2)


def test_the_interval_beside_a_verdict_agrees_with_the_letters(crossed):
    """Also where the test is an exact one, and several pairs are corrected."""
    outside = 0
    for models in (crossed, crossed[:2], crossed[1:3], crossed[2:]):
        board = karat.leaderboard(models)
        margin, ties = board.attrs["separation"]["margin"], board["tie"]
        different = not set(ties[margin["first"]]) & set(ties[margin["second"]])
        assert different == (margin["low"] > 0) and margin["low"] <= margin["gain"]
        outside += different
    assert 0 < outside < 4


def test_no_interval_contradicts_its_p():
    rng = np.random.default_rng(3)
    for models in (2, 5):
        for _ in range(30):
            values = (rng.random((models, 60)) < rng.uniform(0.6, 0.8, (models, 1))).astype(float)
            names = [str(m) for m in range(models)]
            items = ItemValues(names, values, items=60, is_right=True, seeds=[SeedNoise()] * models)
            fits = Fits(values.mean(axis=1, keepdims=True), [0], 0.25)
            found = separate_pairs(items, fits, "acc")
            for one, other in zip(*np.triu_indices(models, 1), strict=True):
                low, high = found.interval(one, other)
                assert (low <= 0 <= high) == (found.p[one, other] >= 0.05)


def test_one_hold_out_separates_what_clearly_differs(stored):
    found = item_separation(stored, "many", "acc", ["good", "fair", "dummy"])
    assert found.test == "max-T over items" and found.items == 48
    assert found.p[0, 2] < 0.05 and found.p[1, 2] < 0.05 and found.p[0, 1] > 0.05
    two = item_separation(stored, "many", "acc", ["dummy", "good"])
    right = [run.predictions("many") for run in stored if run.model in ("good", "dummy")]
    expected = mcnemar(*(each.predictions == each.target for each in right)).p
    assert two.test == "McNemar" and two.p[0, 1] == pytest.approx(expected)
    areas = item_separation(stored, "many", "auc", ["good", "dummy"])
    assert areas.test == "paired bootstrap" and areas.p[0, 1] < 0.05


def test_what_is_not_stored_is_not_tested(stored, tmp_path):
    found = item_separation(stored, "many", "acc", ["good", "absent", "dummy"])
    assert np.isnan(found.p[0, 1]) and found.p[0, 2] < 0.05
    nothing = item_separation(pd.DataFrame(), "many", "acc", ["a", "b"])
    assert nothing.test == "" and nothing.why and np.isnan(nothing.p[0, 1])
    assert item_separation(stored, "other", "acc", ["good", "dummy"]).test == ""


def test_the_needed_number_of_queries_has_the_stated_power():
    """Simulated paired differences of 0.05: a t test on that many queries finds 80 %."""
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(0)
    spread = 0.3
    seen = rng.normal(0, spread, 4000)
    needed = needed_pairs(item_tests._query_spread(seen, len(seen)), item_tests.DETECTED)
    assert needed == pytest.approx((2.8016 * spread / 0.05) ** 2, rel=0.05)
    drawn = rng.normal(0.05, spread, (2000, needed))
    found = np.mean(ttest_1samp(drawn, 0, axis=1).pvalue < 0.05)
    assert found == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("difference", [0.02, 0.1, 0.2])
def test_the_needed_number_holds_for_scores_of_few_values(difference):
    """Differences of reciprocal ranks: most are 0, and the others far apart."""
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(2)
    values = np.array([-1, -0.5, 0, 0, 0, 0, 0.5, 1])
    needed = needed_pairs(values.std(), difference)
    drawn = rng.choice(values, (3000, needed)) + difference
    found = np.mean(ttest_1samp(drawn, 0, axis=1).pvalue < 0.05)
    assert found == pytest.approx(0.8, abs=0.03)
    assert detectable_difference(values.std(), needed) == pytest.approx(difference, rel=0.02)


def test_blocks_of_queries_need_as_many_queries_as_single_ones():
    rng = np.random.default_rng(1)
    single = rng.normal(0, 0.3, 8000)
    blocks = single.reshape(-1, 8).mean(axis=1)
    one, other = (item_tests._query_spread(each, 8000) for each in (single, blocks))
    assert other == pytest.approx(one, rel=0.05)
