"""Which models of a task differ: items and fits together, error rates under a null."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.analysis import item_tests
from karat.analysis.item_tests import Separation, deciding, fold_separation, item_separation
from karat.results.run import Run
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
