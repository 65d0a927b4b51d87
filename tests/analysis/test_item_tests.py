"""Tests on items: McNemar against statsmodels, max-T against t-tests, error rates under a null."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import karat
from karat.analysis import item_tests
from karat.analysis.item_tests import (
    Separation,
    contributions,
    deciding,
    fold_separation,
    item_separation,
    max_t,
    mcnemar,
)
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.metrics.metric import score
from karat.results.run import Run
from karat.stats.paired_tests import detectable_difference, needed_pairs

RIGHT = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def counted(left: int, right: int, both: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return right answers of two: so many of the first alone, of the second alone, of both."""
    one = np.repeat([True, False, True], [left, right, both])
    other = np.repeat([False, True, True], [left, right, both])
    return one, other


# -- McNemar --------------------------------------------------------------------------------


def test_mcnemar_by_hand():
    found = mcnemar(*counted(5, 1))
    assert (found.first_only, found.second_only, found.exact) == (5, 1, True)
    assert found.p == pytest.approx(2 * 7 / 64)  # none or one of six coins
    found = mcnemar(*counted(30, 10))
    assert not found.exact and found.statistic == pytest.approx(19**2 / 40)
    assert found.p == pytest.approx(stats.chi2.sf(19**2 / 40, 1))
    assert mcnemar(*counted(20, 20)).p == 1.0


@pytest.mark.parametrize(("left", "right"), [(0, 0), (3, 0), (12, 4), (30, 9), (17, 18)])
@pytest.mark.parametrize("exact", [True, False])
def test_mcnemar_equals_that_of_statsmodels(left, right, exact):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    if not exact and not left + right:
        pytest.skip("theirs divides by zero")
    expected = tables.mcnemar([[5, left], [right, 7]], exact=exact, correction=True)
    assert mcnemar(*counted(left, right), exact=exact).p == pytest.approx(expected.pvalue)


@given(RIGHT)
def test_mcnemar_is_symmetric_and_uses_only_disagreements(answers):
    one, other = (np.array(each) for each in zip(*answers, strict=True))
    found, turned = mcnemar(one, other), mcnemar(other, one)
    assert found.p == turned.p and found.first_only == turned.second_only
    apart = one != other
    assert mcnemar(one[apart], other[apart]).p == found.p
    assert mcnemar(one, one).p == 1.0


def test_answers_must_be_to_the_same_questions():
    with pytest.raises(DefinitionError, match="3 answers with 2"):
        mcnemar([1, 0, 1], [1, 0])


# -- max-T over items -----------------------------------------------------------------------


def test_two_models_have_the_p_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    one = rng.normal(0.0, 1.0, 400)
    other = one + rng.normal(0.12, 1.0, 400)
    expected = stats.ttest_rel(one, other).pvalue
    assert 0.001 < expected < 0.1
    assert max_t([one, other], resamples=9999)[0, 1] == pytest.approx(expected, abs=0.006)


def test_right_answers_of_two_models_have_the_exact_p_of_mcnemar():
    one, other = counted(12, 4, both=20)
    found = max_t([one, other], centered=False, resamples=19_999)[0, 1]
    assert found == pytest.approx(mcnemar(one, other, exact=True).p, abs=0.006)


def test_adjusted_p_rise_with_the_number_of_models():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(8, 120))
    values[0] += 0.35
    pair, family = max_t(values[:2])[0, 1], max_t(values)[0, 1]
    assert pair < 0.05 and family >= pair
    everything = max_t(values)
    assert np.array_equal(everything, everything.T) and (np.diag(everything) == 1).all()
    # an order of the models changes no p by more than the resamples do
    turned = max_t(values[::-1])[::-1, ::-1]
    assert turned == pytest.approx(everything, abs=0.03)


def test_equal_models_never_differ_and_few_items_are_not_tested():
    assert max_t(np.ones((2, 50)))[0, 1] == 1.0
    assert np.isnan(max_t(np.eye(2, 5))[0, 1])
    # a constant difference is as sure as the number of items: 2 / 2⁸ for eight
    shifted = np.vstack([np.zeros(8), np.ones(8)])
    assert max_t(shifted, centered=False, resamples=19_999)[0, 1] == pytest.approx(2**-7, abs=0.002)


def simulated(rng: np.random.Generator, models: int, items: int, better: float = 0.0) -> list:
    """Return classifiers of equal quality, fitted once: the logit of the truth plus own noise."""
    logit = 1.5 * rng.normal(size=items)
    truth = np.where(rng.random(items) < 1 / (1 + np.exp(-logit)), "b", "a")
    found = []
    for model in range(models):
        noisy = (
            logit + rng.normal(size=items) + (model == 0) * better * np.where(truth == "b", 1, -1)
        )
        p = 1 / (1 + np.exp(-noisy))
        kinds = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
        chances = np.column_stack([1 - p, p])
        found.append(
            Predictions(np.where(p > 0.5, "b", "a"), truth, probabilities=chances, **kinds)
        )
    return found


@pytest.mark.parametrize("metric", ["acc", "logloss", "auc"])
def test_few_families_of_equal_models_are_separated(metric):
    rng = np.random.default_rng(3)
    false = 0
    for _ in range(60):
        models = simulated(rng, 4, 80)
        values = np.array([contributions(metric, [each]) for each in models])
        false += bool((max_t(values, centered=metric != "acc", resamples=199) < 0.05).any())
    # 5 % of 60 are 3; more than 8 have a chance below 0.5 %
    assert false <= 8 and stats.binom.sf(8, 60, 0.05) < 0.005


def test_a_clearly_better_model_is_separated_in_every_metric():
    models = simulated(np.random.default_rng(5), 3, 150, better=2.0)
    for metric in ("acc", "logloss", "brier", "auc", "balacc", "f1_macro"):
        p = max_t(np.array([contributions(metric, [each]) for each in models]), resamples=499)
        assert (p[0, 1:] < 0.05).all() and p[1, 2] > 0.05, metric


# -- what each item contributes -------------------------------------------------------------


@pytest.mark.parametrize("metric", ["acc", "logloss", "brier"])
def test_the_mean_gain_is_the_score(metric):
    (model,) = simulated(np.random.default_rng(0), 1, 50)
    sign = 1 if metric == "acc" else -1
    expected = score(metric, model)[0]
    assert sign * contributions(metric, [model]).mean() == pytest.approx(expected)


def test_numbers_have_squared_or_absolute_errors():
    given = Predictions([1.0, 2.0, 5.0], [1.0, 3.0, 3.0])
    assert contributions("mae", [given]).tolist() == [0.0, -1.0, -2.0]
    assert contributions("rmse", [given]).tolist() == [0.0, -1.0, -4.0]
    with pytest.raises(DataError):
        contributions("acc", [given])


def test_pseudo_values_have_the_spread_of_delong():
    """The variance of an AUC by its jackknife, against the closed form of DeLong."""
    (model,) = simulated(np.random.default_rng(2), 1, 400)
    p, positive = model.probabilities[:, 1], model.target == "b"
    above = (p[positive][:, None] > p[~positive][None, :]).astype(float)
    tens, ones = above.mean(axis=1), above.mean(axis=0)
    delong = tens.var(ddof=1) / len(tens) + ones.var(ddof=1) / len(ones)
    values = contributions("auc", [model])
    assert values.mean() == pytest.approx(above.mean(), abs=0.002)
    assert values.var(ddof=1) / len(values) == pytest.approx(delong, rel=0.35)


def test_groups_count_as_a_whole():
    group = [f"q{i // 2}" for i in range(40)]
    rank = [1, 2] * 20
    given = Predictions(
        ["a"] * 40, ["a"] * 40, answers="items", truths="items", group=group, rank=rank
    )
    assert len(contributions("mrr", [given])) == 20


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
