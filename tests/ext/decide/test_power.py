"""How many tasks, folds and items detect a difference, compared with simulations."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.datasets import load_breast_cancer

import karat
from karat.analysis.pairing import pair
from karat.errors import DataError, DefinitionError
from karat.ext.decide.power import Equivalence, equivalence, pool_tasks, variance_parts
from karat.stats.paired_tests import (
    MeanDifference,
    corrected_t,
    needed_folds,
    needed_pairs,
    needed_signs,
)

from ...score_data import score_table

#: the largest distance from 80 % that counts as right
POINTS = 0.05
SIMULATIONS = 4_000


def gains(rng, tasks, folds, mean=0.0, between=0.03, common=0.02, own=0.04):
    """Return tasks × folds of differences: of the task, common to its folds, and of each fold."""
    task = rng.normal(0, between, (*tasks, 1)) + rng.normal(0, common, (*tasks, 1))
    return mean + task + rng.normal(0, own, (*tasks, folds))


def table(differences: np.ndarray, metric: str = "acc", names=("a", "b")) -> pd.DataFrame:
    """Return scores of two models; the first is better by the differences."""
    rows = []
    for t, folds in enumerate(differences):
        for f, apart in enumerate(folds):
            about = {"task": f"t{t:03}", "repeat": 0, "fold": f, "corruption": "", "severity": 0.0}
            about |= {"draw": 0, "epoch": -1, "metric": metric}
            rows += [{**about, "model": names[0], "value": 0.5 + apart / 2}]
            rows += [{**about, "model": names[1], "value": 0.5 - apart / 2}]
    return pd.DataFrame(rows)


def test_variances_are_those_of_the_simulation():
    found = gains(np.random.default_rng(0), (4000,), 5)
    between, within, folds = variance_parts(list(found))
    # the part that is common to the folds of a task is a part of the variance between tasks
    assert between == pytest.approx(0.03**2 + 0.02**2, rel=0.1)
    assert within == pytest.approx(0.04**2, rel=0.05) and folds == pytest.approx(5)


def test_tasks_needed_have_a_power_of_80_percent():
    rng = np.random.default_rng(1)
    earlier = table(gains(rng, (1500,), 3))
    found = karat.power(earlier, 0.02)
    assert found.needed_low < found.needed < found.needed_high
    again = gains(rng, (SIMULATIONS, int(found.needed)), 3, mean=0.02).mean(axis=2)
    p = scipy.stats.ttest_1samp(again, 0, axis=1).pvalue
    assert abs((p < 0.05).mean() - 0.8) < POINTS
    # with many folds, the tasks that are always needed are enough
    fewer = gains(rng, (SIMULATIONS // 2, int(found.needed_any_folds)), 200, mean=0.02).mean(axis=2)
    power = (scipy.stats.ttest_1samp(fewer, 0, axis=1).pvalue < 0.05).mean()
    assert abs(power - 0.8) < POINTS
    wins = (gains(rng, (SIMULATIONS, int(found.needed_wins)), 3, mean=0.02).mean(axis=2) > 0).sum(1)
    exact = [scipy.stats.binomtest(k, int(found.needed_wins)).pvalue for k in range(wins.max() + 1)]
    assert abs((np.array(exact)[wins] < 0.05).mean() - 0.8) < POINTS


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_pairs_and_signs_needed_have_a_power_of_80_percent(effect):
    rng = np.random.default_rng(2)
    pairs = rng.normal(effect, 1, (SIMULATIONS, needed_pairs(1.0, effect)))
    power = (scipy.stats.ttest_1samp(pairs, 0, axis=1).pvalue < 0.05).mean()
    assert abs(power - 0.8) < POINTS
    assert needed_signs(1.0, effect) >= needed_pairs(1.0, effect)


@pytest.mark.parametrize(("difference", "ratio"), [(0.01, 0.1), (0.02, 0.25), (0.012, 1 / 9)])
def test_folds_needed_have_a_power_of_80_percent(difference, ratio):
    """Folds with the correlation of Nadeau and Bengio, ratio / (1 + ratio)."""
    rng, spread = np.random.default_rng(3), 0.01
    folds = int(needed_folds(spread, difference, ratio))
    common = rng.normal(0, spread * np.sqrt(ratio), (SIMULATIONS, 1))
    found = difference + common + rng.normal(0, spread, (SIMULATIONS, folds))
    assert abs((corrected_t(found, ratio).p < 0.05).mean() - 0.8) < POINTS


def test_no_number_of_folds_is_enough_for_a_small_difference():
    assert np.isinf(needed_folds(0.01, 0.01, 0.25))
    assert np.isnan(needed_folds(0.01, 0.01, float("nan"))) and needed_folds(0.0, 0.01, 0.25) == 2
    assert needed_pairs(0.0, 0.01) == 3 and needed_signs(0.0, 0.01) == 6


def test_a_loss_counts_in_its_own_direction():
    """Half of the tasks have a loss, in which the better model has the lower value."""
    differences = np.full((8, 2), 0.1) + np.random.default_rng(4).normal(0, 0.01, (8, 2))
    better = table(differences)
    rows = better["task"].isin([f"t{t:03}" for t in range(4)])
    better.loc[rows, "value"] = 1 - better.loc[rows, "value"]
    better.loc[rows, "metric"] = "brier"
    found = karat.power(better, 0.05)
    assert (found.tasks["difference"] > 0).all() and found.between < 0.05


def test_the_two_best_models_are_compared():
    worse = table(gains(np.random.default_rng(5), (6,), 3), names=("worst", "x"))
    worse = worse[worse["model"] == "worst"].assign(value=0.0)
    both = pd.concat([table(gains(np.random.default_rng(5), (6,), 3)), worse])
    assert set(karat.power(both, 0.01).models) == {"a", "b"}
    assert set(karat.power(both, 0.01, models=["a", "worst"]).models) == {"a", "worst"}
    only = karat.power(both, 0.01, tasks=["t001", "t002"])
    assert len(only.tasks) == 2 and np.isnan(only.needed) and "3" in only.sentence


def test_bad_input():
    one = table(np.zeros((3, 2)))
    with pytest.raises(DataError, match="two models"):
        karat.power(one[one["model"] == "a"], 0.01)
    with pytest.raises(DefinitionError, match="above 0"):
        karat.power(one, 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    data = load_breast_cancer(as_frame=True)
    dataset = karat.Dataset.from_table(
        data.frame.iloc[:240], "target", name="cancer", kind="classification"
    )
    tasks = [karat.Task("cancer", dataset, metrics=["acc"], split={"use": "kfold", "folds": 3})]
    output = tmp_path_factory.mktemp("runs")
    karat.evaluate(["dummy", "logistic-regression"], tasks, output=output, workers=0)
    return output


def test_items_come_from_stored_predictions(runs):
    found = karat.power(runs, 0.05)
    right = []
    for run in karat.open_runs(runs):
        folds = [run.predictions("cancer", fold) for fold in range(3)]
        right.append(
            np.concatenate([each.target == each.predictions for each in folds]).astype(float)
        )
    spread = float(np.std(right[0] - right[1], ddof=1))
    (row,) = found.tasks.to_dict("records")
    assert row["items"] == 240 and row["item_spread"] == pytest.approx(spread)
    assert row["items_needed"] == needed_pairs(spread, 0.05, pilot=min(row["items"], 100) - 1)


SUITE = """
datasets:
  churn: {path: churn.csv, target: left, license: none}
tasks:
  churn: {extends: classification, dataset: churn, split: {use: kfold, folds: 3}}
suites:
  mine: {tasks: [churn], models: [dummy, logistic-regression]}
"""


def test_the_command_prints_the_answer_or_json(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "left": rng.integers(0, 2, 90)})
    frame.to_csv("churn.csv", index=False)
    (tmp_path / "mine.yaml").write_text(SUITE)
    options = ("mine", "--define", "mine.yaml", "--detect", "0.05", "--runs", "results")
    code, _, err = cli("plan", *options)
    assert code == 2 and "--runs" in err
    code, _, err = cli("plan", "mine", "--define", "mine.yaml", "--format", "json")
    assert code == 2 and "--detect" in err
    assert cli("run", "mine", "--define", "mine.yaml", "--workers", "0", "-q").code == 0
    code, out, _ = cli("plan", *options)
    assert code == 0 and "logistic-regression" in out and "churn" in out
    code, out, _ = cli("plan", *options, "--format", "json")
    found = json.loads(out)
    assert found["needed"] is None and found["tasks"][0]["items"] == 90
    assert found["queries"] == []


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


# -- the variance of a pilot is an estimate ----------------------------------------------------


@pytest.mark.parametrize("tasks", [6, 10, 20, 40])
def test_the_promised_power_is_reached_on_average_over_pilots(tasks):
    # the truth is a standard deviation of 1; the power of 80 % was 0.70 to 0.79
    for effect in (0.4, 0.8):
        shares = (np.arange(40) + 0.5) / 40
        spreads = np.sqrt(scipy.stats.chi2.ppf(shares, tasks - 1) / (tasks - 1))
        needed = np.array([needed_pairs(each, effect, pilot=tasks - 1) for each in spreads])
        limit = scipy.stats.t.ppf(0.975, needed - 1)
        reached = scipy.stats.nct.sf(limit, needed - 1, effect * np.sqrt(needed)).mean()
        assert 0.79 <= reached <= 0.84


def test_numbers_from_a_large_pilot_are_those_of_a_known_variance():
    for needed in (needed_pairs, needed_signs):
        assert needed(0.1, 0.05, 1e6) == needed(0.1, 0.05)
        assert needed(0.1, 0.05, 5) > needed(0.1, 0.05, 20) > needed(0.1, 0.05)
    assert needed_folds(0.01, 0.01, 0.1, 1e6) == needed_folds(0.01, 0.01, 0.1)
    assert needed_folds(0.01, 0.02, 0.1, 4) > needed_folds(0.01, 0.02, 0.1)
    assert needed_pairs(0.1, 0.0005, 9) > needed_pairs(0.1, 0.0005)  # the normal approximation


def test_power_counts_with_the_uncertainty_of_the_pilot():
    rng = np.random.default_rng(5)
    gains = rng.normal(0, 0.03, 8)
    scores = {f"t{i}": {"a": 0.7 + gain, "b": 0.7} for i, gain in enumerate(gains)}
    found = karat.power(score_table(scores), 0.02)
    spread = float(np.std(gains, ddof=1))
    assert found.needed == needed_pairs(spread, 0.02, pilot=7) > needed_pairs(spread, 0.02)
