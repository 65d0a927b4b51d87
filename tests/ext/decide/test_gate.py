"""A gate passes, fails or cannot tell; and its stated error rates are those of simulations."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.ext.decide.gate import GateRates, _Evidence, calibrate_gate, decide, gate, simulate_gates
from karat.ext.decide.gate_noise import FoldNoise, ItemNoise, fold_noise, item_noises
from karat.ext.decide.racing import loss_e_process
from karat.stats.paired_tests import MeanDifference

from ...score_data import write_run

FACTS = {"answers": "classes", "truths": "classes", "classes": ["no", "yes"]}


@pytest.fixture
def answered(tmp_path):
    """Write a run of right and wrong answers to the items of tasks, given by their wrong items."""

    def make(folder, items, model="m", **wrong):
        files, scores = {}, {}
        about = {k: wrong.pop(k) for k in ("seed", "stamp") if k in wrong}
        for task, errors in wrong.items():
            answers = ["no" if i in set(errors) else "yes" for i in range(items)]
            stored = Predictions(
                answers,
                ["yes"] * items,
                answers="classes",
                truths="classes",
                classes=("no", "yes"),
                key=[f"k{i}" for i in range(items)],
            )
            texts = {**stored.files(), "metadata.json": json.dumps(FACTS)}
            files[task, 0], scores[task] = texts, [1 - len(set(errors)) / items]
        sizes = {"questions": items, "train_questions": 4 * items}
        return write_run(tmp_path / folder, model, scores, files=files, record=sizes, **about)

    return make


# -- the decision ---------------------------------------------------------------------------


def test_tests_are_one_sided_t_tests():
    found = decide([MeanDifference(0.002, 0.006, 20)], 0.01)
    assert found.p_margin == pytest.approx(stats.t.sf(0.012 / 0.006, 20))
    assert found.p_worse == pytest.approx(stats.t.cdf(0.002 / 0.006, 20))
    assert found.p_tasks[0] == pytest.approx(stats.t.cdf(2, 20))
    assert found.outcome == "passed"


def test_a_task_that_is_much_worse_fails_although_the_mean_passes():
    tasks = [MeanDifference(0.02, 0.001, 99)] * 4 + [MeanDifference(-0.03, 0.002, 99)]
    found = decide(tasks, 0.01)
    assert found.p_margin < 0.05 and found.outcome == "failed"
    # a t of -10, of five tasks
    assert found.p_tasks[4] == pytest.approx(5 * stats.t.cdf(-10, 99))


def test_a_small_significant_loss_within_the_margin_passes():
    found = decide([MeanDifference(-0.004, 0.001, 999)], 0.01)
    assert found.p_worse < 0.05 and found.outcome == "passed"


def test_tasks_are_fixed_so_that_a_gain_on_one_of_them_does_no_harm():
    tasks = [MeanDifference(0.0, 0.002, 99)] * 7 + [MeanDifference(0.3, 0.002, 99)]
    assert decide(tasks, 0.01).outcome == "passed"


def test_without_errors_within_tasks_the_test_is_over_six_tasks_or_more():
    alone = [MeanDifference(mean, np.nan, 1) for mean in (0.001, 0.002, -0.001, 0.0, 0.001, 0.0)]
    assert decide(alone, 0.01).outcome == "passed"
    assert decide(alone[:5], 0.01).outcome == "cannot tell"


# -- stored runs ----------------------------------------------------------------------------


def test_items_decide(answered):
    base = answered("base", 2000, t=range(200))
    same = answered("same", 2000, t=range(5, 205))
    worse = answered("worse", 2000, t=range(260))
    found = gate(same.folder, base.folder)
    assert (found.outcome, found.exit_code) == ("passed", 0)
    assert found.tasks.loc[0, "test"] == "t over items" and not len(found.flips)
    found = gate(worse.folder, base.folder)
    assert (found.outcome, found.exit_code) == ("failed", 1)
    assert found.difference == pytest.approx(-0.03)
    assert found.difference_low < -0.03 < found.difference_high < 0
    assert len(found.flips) == 5 and set(found.flips["change"]) == {1.0}
    assert set(found.flips["key"]) <= {f"k{i}" for i in range(200, 260)}


def test_what_would_decide(answered):
    base, new = answered("base", 300, t=range(30)), answered("new", 300, t=range(10, 40))
    found = gate(new.folder, base.folder)
    assert (found.outcome, found.exit_code) == ("cannot tell", 3)
    # 20 of 300 differ: the error of the mean is sqrt(20 / 300 / 299), with a step of 1 / 300
    error = np.hypot(np.sqrt(20 / 300 / 299), 1 / 300)
    more = 300 * (((1.645 + 1.282) * error / 0.01) ** 2 - 1)
    (reason,) = found.reasons
    assert f"{int(np.ceil(more)):,} more items" in reason


def test_missing_scores_fail(tmp_path):
    base = write_run(tmp_path / "base", "m", {"t": [0.8, 0.9], "u": [0.5, 0.5], "v": [0.5, 0.5]})
    new = write_run(tmp_path / "new", "m", {"t": [0.9, None], "u": [None, None], "w": [0.1, 0.1]})
    found = gate(new.folder, base.folder)
    assert found.outcome == "failed"
    assert [reason.partition(":")[0] for reason in found.reasons[:3]] == ["u", "v", "t"]
    assert set(found.tasks["task"]) == {"t", "u", "v"}
    only = gate(new.folder, base.folder, tasks="t")
    assert only.outcome == "failed" and len(only.reasons) == 1 and "1 of 2 folds" in only.reasons[0]


def test_other_data_is_not_a_loss(tmp_path):
    base = write_run(tmp_path / "base", "m", {"t": [0.8, 0.9]})
    new = write_run(tmp_path / "new", "m", {"t": [0.8, 0.9]}, task={"fingerprint": "other"})
    found = gate(new.folder, base.folder)
    assert found.outcome == "cannot tell" and "other data" in found.sentence


def test_another_seed_cannot_be_compared(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "base", "m", {"t": [0.8, 0.9]}, seed=seed)
    new = write_run(tmp_path / "new", "m", {"t": [0.8, 0.9]}, seed=3)
    found = gate(new.folder, tmp_path / "base")
    assert found.outcome == "cannot tell" and list(found.tasks["task"]) == ["t"]
    assert "another seed" in found.sentence
    with pytest.raises(DefinitionError, match="suite"):
        gate(new.folder, tmp_path / "base", run=karat.NewRuns(suite="quickstart"))


def test_a_folder_without_runs_is_no_model(tmp_path, monkeypatch):
    base = write_run(tmp_path / "base", "m", {"t": [0.8, 0.9]})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    with pytest.raises(DataError, match="contains no run folder"):
        gate("results", base.folder)


def test_flips_are_those_of_the_task_that_failed(answered):
    base = answered("base", 2000, t=range(200), u=range(200))
    worse = answered("worse", 2000, t=range(5, 205), u=range(300))
    found = gate(worse.folder, base.folder)
    assert found.tasks.set_index("task")["outcome"].to_dict() == {"t": "passed", "u": "failed"}
    assert set(found.flips["task"]) == {"u"} and len(found.flips) == 5


def test_folders_of_several_models(tmp_path):
    for model, score in (("a", 0.8), ("b", 0.5)):
        write_run(tmp_path / "base", model, {"t": [score, score + 0.1]})
    new = write_run(tmp_path / "new", "b", {"t": [0.5, 0.6]})
    assert gate(new.folder, tmp_path / "base").difference == 0, "the model of that name"
    other = write_run(tmp_path / "other", "c", {"t": [0.5, 0.6]})
    with pytest.raises(DefinitionError, match="a, b"):
        gate(other.folder, tmp_path / "base")
    with pytest.raises(DefinitionError, match='"tt"'):
        gate(new.folder, tmp_path / "base", tasks="tt")
    with pytest.raises(DefinitionError, match="margin"):
        gate(new.folder, tmp_path / "base", margin=-1)
    with pytest.raises(DataError, match="nowhere"):
        gate(new.folder, tmp_path / "nowhere")


@pytest.fixture
def suite():
    """Return two tasks that onehot solves and dummy does not."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    table = pd.DataFrame(x, columns=["x", "z"]).assign(y=np.where(x[:, 0] > 0, "yes", "no"))
    data = karat.Dataset.from_table(table, target="y")
    return karat.Suite("s", tuple(karat.Task(name, data, metrics=["acc"]) for name in "tuv"))


def test_a_model_is_run_as_the_baseline_was(tmp_path, suite):
    about = {"only": karat.Only(["t", "u"], folds=[0, 1]), "seed": 7, "cv": 3}
    (base,) = karat.evaluate("onehot", suite, output=tmp_path / "base", **about)
    run = karat.NewRuns(suite=suite, output=tmp_path / "new")
    found = karat.gate("onehot", base, run=run)
    assert list(found.tasks["task"]) == ["t", "u"] and found.difference == 0
    (new,) = found.runs[0]
    assert new.about["seed"] == 7 and [t["folds"] for t in new.about["tasks"]] == [[0, 1]] * 2
    assert [path.name for path in (tmp_path / "new").glob("*")] == [new.folder.name], "one run"


def test_a_model_that_the_baseline_lacks_is_refused_before_anything_is_run(tmp_path, suite):
    (base,) = karat.evaluate(["dummy"], suite, output=tmp_path / "base")
    how = karat.NewRuns(suite=suite, output=tmp_path / "new")
    with pytest.raises(DefinitionError, match='has no run of "dumy".* Did you mean "dummy"'):
        gate("dummy", base.folder, run=how, model="dumy")
    assert not (tmp_path / "new").exists()


def test_a_clear_case_ends_early(tmp_path, suite):
    (base,) = karat.evaluate("onehot", suite, output=tmp_path / "base")
    run = karat.NewRuns(suite=suite, output=tmp_path / "new")
    found = karat.gate("dummy", base, run=run)
    assert found.outcome == "failed" and list(found.tasks["task"]) == ["t"]
    assert "1 of 3 tasks" in found.sentence
    whole = karat.gate("dummy", base, run=replace(run, all_tasks=True))
    assert whole.outcome == "failed" and list(whole.tasks["task"]) == ["t", "u", "v"]


def test_the_items_of_several_tasks_end_a_run(answered):
    """On no task alone the loss is certain, but on the items of three it is."""
    names = "tuv"
    base = answered("base", 400, **{name: range(40) for name in names}, w=range(40))
    new = answered("new", 400, **{name: range(52) for name in names})
    some = _Evidence([new], [base], 0.01, ["t"], ("u", "v", "w"))
    assert not some.is_certain
    found = _Evidence([new], [base], 0.01, list(names), ("w",))
    # 36 of 1,200 items are lost
    assert found.evidence == pytest.approx(loss_e_process([-1.0] * 36 + [0.0] * 1164, 0.01)[-1])
    assert found.evidence > 100 and found.is_certain and found.judged(None).outcome == "failed"


# -- error rates ----------------------------------------------------------------------------


def test_noise_of_items_is_that_of_the_runs():
    rng = np.random.default_rng(1)
    gains = np.where(rng.random(4000) < 0.1, rng.random((4, 4000)) < 0.5, True).astype(float)
    (noise,) = item_noises([gains], [(1.0, 1 / 4000, True)])
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    expected = np.mean([np.mean(gains[a] != gains[b]) for a, b in pairs])
    assert np.mean(noise.differences != 0) == pytest.approx(expected)
    # the variance of the means of two runs that their items do not explain
    more = gains.mean(axis=1).var(ddof=1) - expected / 4000 / 2
    assert noise.retraining == pytest.approx(np.sqrt(2 * max(more, 0)))
    alone = replace(noise, retraining=0.0)
    drawn = alone.draw(rng, 0.01, 2000)
    means = [each.mean for each in drawn]
    assert np.mean(means) == pytest.approx(-0.01, abs=4 * np.std(means) / np.sqrt(2000))
    assert np.std(means) == pytest.approx(np.mean([each.error for each in drawn]), rel=0.05)


def test_luck_of_training_that_items_do_not_explain_is_included():
    rng = np.random.default_rng(2)
    gains = (rng.random((5, 2000)) < np.array([[0.7], [0.8], [0.75], [0.85], [0.9]])).astype(float)
    (noise,) = item_noises([gains], [(1.0, 1 / 2000, True)])
    # two runs differ by the spread of the true accuracies, times the root of 2
    truth = np.sqrt(2) * np.std([0.7, 0.8, 0.75, 0.85, 0.9], ddof=1)
    assert noise.retraining == pytest.approx(truth, rel=0.1)


def test_one_run_has_the_noise_of_unrelated_errors():
    right = np.repeat([1.0, 0.0], [900, 100])[None]
    (noise,) = item_noises([right], [(1.0, 1 / 1000, True)])
    assert np.mean(noise.differences != 0) == pytest.approx(2 * 0.9 * 0.1, abs=0.02)


def test_noise_of_folds_is_that_of_the_runs():
    rng = np.random.default_rng(3)
    scores = rng.normal(0.8, 0.01, size=(40, 10)) * np.sqrt(0.9) + rng.normal(
        0, 0.01, (40, 1)
    ) * np.sqrt(0.1)
    noise = fold_noise(scores, 1 / 9)
    assert noise.spread == pytest.approx(0.01 * np.sqrt(2), rel=0.1)
    single = fold_noise(scores[:, :1], 0.25)
    assert single.folds == 1 and np.isnan(single.draw(rng, 0.0, 1)[0].error)


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("kind", ["items", "folds"])
def test_stated_rates_are_met(tasks, kind):
    """With known noise: 4 % of 1,000 items differ, or folds differ by 0.01 and are correlated."""
    rng = np.random.default_rng(tasks)
    margin, number = 0.01, 400

    def difference(loss):
        if kind == "items":
            apart = rng.choice([-1.0, 0.0, 1.0], 1000, p=[0.02, 0.96, 0.02])
            apart[rng.random(1000) < loss] = -1
            return MeanDifference(apart.mean(), apart.std(ddof=1) / np.sqrt(1000), 999, 1 / 1000)
        apart = 0.01 * (np.sqrt(0.2) * rng.normal() + np.sqrt(0.8) * rng.normal(size=5)) - loss
        error = apart.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)
        return MeanDifference(apart.mean(), error, 4)

    pool = np.repeat([-1.0, 0.0, 1.0], [20, 960, 20])
    noise = ItemNoise(pool, 1000, 1 / 1000, True) if kind == "items" else FoldNoise(0.01, 5, 0.25)
    stated = simulate_gates([noise] * tasks, margin, simulations=number)["failed"]
    for factor, rate in enumerate(stated):
        each = [[difference(factor * margin) for _ in range(tasks)] for _ in range(number)]
        seen = np.mean([decide(own, margin).outcome == "failed" for own in each])
        error = np.sqrt(2 * rate * (1 - rate) / number)
        assert abs(seen - rate) <= max(3 * error, 0.01)
    assert stated[0] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / number)
    assert stated.is_monotonic_increasing


def test_calibration_is_stored_next_to_the_baseline_and_reported(answered, tmp_path):
    rng = np.random.default_rng(0)
    for seed in (1, 2, 3):
        unstable = [i for i in range(100) if rng.random() < 0.5]
        answered("base", 2000, seed=seed, t=[*range(100, 200), *unstable])
    rates = calibrate_gate(tmp_path / "base", simulations=200)
    share = 100 * 0.5 / 2000
    assert "seeds" in rates.noise and rates.tasks == ("t",)
    assert 0.5 * share < float(rates.noise.split("disagree on ")[1].split(" ")[0]) / 100 < 2 * share
    rates.save(tmp_path / "base")
    again = GateRates.load(tmp_path / "base")
    assert again.to_dict() == rates.to_dict() and rates.on_items == ("t",)
    new = answered("new", 2000, seed=2, t=range(90, 200))
    found = gate(new.folder, tmp_path / "base")
    assert found.rates is not None and rates.sentence in " ".join(str(found).split())
    assert gate(new.folder, tmp_path / "base", margin=0.02).rates is None
    assert json.loads(json.dumps(found.to_dict()))["rates"]["simulations"] == 200
    shutil.rmtree(new.folder / "predictions")  # the test is over folds, not over items
    bare = gate(new.folder, tmp_path / "base")
    assert bare.rates is None and "gate.json" in bare.notes[-1]
    (tmp_path / "base" / "gate.json").write_text("{}")
    with pytest.raises(DataError, match="gate.json"):
        gate(new.folder, tmp_path / "base")


def test_one_fold_without_predictions_cannot_be_calibrated(tmp_path):
    base = write_run(tmp_path, "m", {"t": [0.8]})
    with pytest.raises(DataError, match="one fold"):
        calibrate_gate(base.folder)
    several = write_run(tmp_path / "s", "m", {"t": [0.80, 0.82, 0.81, 0.79, 0.78]})
    rates = calibrate_gate(several.folder, simulations=100)
    assert "unrelated" in rates.noise and len(rates.rates) == 4


def test_the_model_that_both_folders_have_is_compared(tmp_path, cli):
    for folder, models in (("base", "ab"), ("new", "bc"), ("more", "abc"), ("others", "cd")):
        for place, model in enumerate(models):
            write_run(tmp_path / folder, model, {"t": [0.8 + place / 100, 0.9]})
    base = tmp_path / "base"
    found = gate(tmp_path / "new", base)
    assert found.new.startswith("b (") and found.baseline.startswith("b (")
    with pytest.raises(DefinitionError, match="a, b; name one with --model"):
        gate(tmp_path / "more", base)
    assert gate(tmp_path / "more", base, model="a").new.startswith("a (")
    with pytest.raises(DefinitionError, match="none of them"):
        gate(tmp_path / "others", base)
    with pytest.raises(DefinitionError, match='no run of "x"'):
        gate(tmp_path / "more", base, model="x")
    done = cli("gate", tmp_path / "more", "--against", base, "-m", "a", "--format", "json")
    assert json.loads(done.out)["new"].startswith("a (")
