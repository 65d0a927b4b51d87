"""Smaller suites: what is selected, how well the order is kept, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError, DefinitionError
from karat.ext.decide.shrink import order_kept, select
from karat.stats.paired_tests import average_ranks


def table(values: np.ndarray, names=None) -> pd.DataFrame:
    """Return the table of scores of models × tasks × folds."""
    models, tasks, folds = values.shape
    names = names or [f"m{m:02}" for m in range(models)]
    rows = [
        (f"t{t:02}", names[m], 0, f, "", 0.0, 0, -1, "acc", values[m, t, f])
        for m in range(models)
        for t in range(tasks)
        for f in range(folds)
    ]
    columns = "task model repeat fold corruption severity draw epoch metric value".split()
    return pd.DataFrame(rows, columns=columns)


def scores(seed, models=12, tasks=14, folds=2, noise=0.5, fold_noise=0.2):
    """Return scores of models with skills from 0 to 1, with noise of tasks and of folds."""
    rng = np.random.default_rng(seed)
    skill = np.linspace(0, 1, models)[:, None, None]
    task = rng.normal(0, noise, (models, tasks, 1)) * rng.uniform(0, 1, (1, tasks, 1))
    return skill + task + rng.normal(0, fold_noise, (models, tasks, folds))


def test_pairs_in_order_are_counted():
    reference = np.array([1.0, 2.0, 3.0, 3.0])
    kept, pairs = order_kept(reference, np.array([1.0, 1.0, 3.0, 0.0]))
    # 1-2 is tied, 1-3 and 2-3 are in order, 1-4 and 2-4 are not; 3-4 is tied in the reference
    assert (float(kept), pairs) == (2.5, 5)
    kept, pairs = order_kept(reference, reference, np.array([True, False, False, False]))
    assert (float(kept), pairs) == (3.0, 3)


def test_the_task_closest_to_the_reference_is_first():
    ranks = average_ranks(-np.random.default_rng(0).normal(size=(8, 5))).copy()
    ranks[:, 3] = np.arange(1, 9)
    order = select(ranks, np.arange(1.0, 9.0))
    assert order[0] == 3 and sorted(order) == [0, 1, 2, 3, 4]
    # a model without a rank does not stop the selection
    ranks[0, 3] = np.nan
    assert sorted(select(ranks, np.arange(1.0, 9.0))) == [0, 1, 2, 3, 4]


def test_without_noise_one_job_is_enough():
    found = karat.shrink(None, table(scores(0, noise=0, fold_noise=0)))
    assert (found.jobs, found.all_jobs) == (1, 28)
    assert found.kept == found.random == found.repeatability == 1.0


def test_tasks_without_ties_are_selected():
    """Two tasks have the order of all; on the others, all models are equal."""
    values = np.zeros((12, 10, 1))
    values[:, [2, 7]] = np.linspace(0, 1, 12)[:, None, None]
    found = karat.shrink(None, table(values))
    assert list(found.tasks) == ["t02"] and found.kept == 1.0
    # a random task is one of the two with a chance of 2 / 10, else all pairs are tied
    assert found.random == pytest.approx(0.6, abs=0.05)


def test_the_measured_share_is_that_of_new_models():
    """Selections on some models keep the order of others as often as measured."""
    claimed, true = [], []
    for seed in range(6):
        values = scores(seed, models=60, tasks=10)
        known = np.random.default_rng(seed).permutation(60)[:14]
        found = karat.shrink(None, table(values[np.sort(known)]), keep_order=0.9)
        places = [int(task[1:]) for task in found.tasks]
        folds = max(found.tasks.values())
        ranks = average_ranks(-values.mean(axis=2)).mean(axis=1)
        means = average_ranks(-values[:, places, :folds].mean(axis=2)).mean(axis=1)
        kept, pairs = order_kept(ranks, means, ~np.isin(np.arange(60), known))
        claimed.append(found.kept)
        true.append(float(kept) / pairs)
    assert np.mean(true) == pytest.approx(np.mean(claimed), abs=0.03)
    assert np.mean(true) > 0.87


def test_the_order_of_rows_changes_nothing():
    rows = table(scores(3))
    once = karat.shrink(None, rows, keep_order=0.9)
    again = karat.shrink(None, rows.sample(frac=1, random_state=1), keep_order=0.9)
    assert once.to_dict() == again.to_dict()
    pd.testing.assert_frame_equal(once.curve, again.curve)


def test_missing_and_failed_scores():
    rows = table(scores(4))
    failed = rows["value"].where(~((rows["model"] == "m03") & (rows["task"] == "t05")))
    some = rows.assign(value=failed)
    some = some[~((some["model"] == "m01") & (some["task"] == "t02"))]
    found = karat.shrink(None, some, keep_order=0.85)
    assert found.jobs < found.all_jobs and len(found.models) == 12


@pytest.mark.parametrize(("models", "tasks", "what"), [(5, 10, "5 models"), (12, 5, "5 tasks")])
def test_too_few_models_or_tasks(models, tasks, what):
    with pytest.raises(DataError, match=what):
        karat.shrink(None, table(scores(0, models=models, tasks=tasks)))


def test_no_smaller_suite_keeps_the_order_of_noise():
    noise = np.random.default_rng(0).normal(size=(20, 6, 1))
    with pytest.raises(DataError, match="no smaller suite"):
        karat.shrink(None, table(noise), keep_order=0.99)
    with pytest.raises(DataError, match="same mean rank"):
        karat.shrink(None, table(np.zeros((8, 8, 1))))


@pytest.mark.parametrize("share", [0.5, 1.0, 95])
def test_invalid_shares(share):
    with pytest.raises(DefinitionError, match="keep_order"):
        karat.shrink(None, table(scores(0)), keep_order=share)


NAMES = [f"t{t:02}" for t in range(14)]
SUITE = """
datasets:
  churn: {path: churn.csv, target: left, license: none}
tasks:
  "t{i}":
    for_each: {i: ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09", 10, 11, 12, 13]}
    extends: classification
    dataset: churn
    split: {use: kfold, folds: 2}
suites:
  mine: {tasks: [NAMES], models: [dummy]}
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "left": rng.integers(0, 2, 60)})
    frame.to_csv("churn.csv", index=False)
    file = tmp_path / "mine.yaml"
    file.write_text(SUITE.replace("NAMES", ", ".join(NAMES)))
    return file


def test_the_written_suite_runs(suite, tmp_path, cli):
    found = karat.shrink("mine", table(scores(5)), keep_order=0.85, define=[suite])
    assert found.suite == "mine" and 1 <= len(found.tasks) < 14
    name = found.write(tmp_path / "small.yaml", define=[suite])
    assert name == "mine-small"
    small = karat.suite(name, define=[suite, tmp_path / "small.yaml"])
    # the tasks keep their names, and have fewer folds
    assert [task.name for task in small] == list(found.tasks)
    assert f"{found.kept:.4f}" in small.description
    files = ["--define", suite, "--define", tmp_path / "small.yaml"]
    assert cli("run", name, *files, "--workers", "0", "-q", "-o", tmp_path / "out").code == 0
    (run,) = karat.open_runs(tmp_path / "out")
    assert len(run.records()) == found.jobs
    with pytest.raises(DefinitionError, match="exists"):
        found.write(tmp_path / "again.yaml", "mine", define=[suite])


def test_the_command(suite, tmp_path, cli):
    rows = table(scores(5), [f'<b>m {m}/"x"' for m in range(12)])
    columns = {"model": "method", "value": "metric_error"}
    rows.rename(columns=columns).assign(metric_error=1 - rows["value"]).drop(
        columns=["metric", "repeat"]
    ).to_csv(tmp_path / "theirs.csv", index=False)
    options = ("--keep-order", "0.85", "--define", suite)
    code, out, err = cli("shrink", "mine", tmp_path / "theirs.csv", *options, "-o", "small.yaml")
    assert code == 0 and "models left out" in " ".join(out.split())
    assert "karat run mine-small" in err and (tmp_path / "small.yaml").is_file()
    code, out, _ = cli("shrink", "mine", tmp_path / "theirs.csv", *options, "--format", "json")
    found = json.loads(out)
    assert found["jobs"] == sum(found["tasks"].values()) < found["all_jobs"] == 28
    code, _, err = cli("shrink", "minee", tmp_path / "theirs.csv", "--define", suite)
    assert code == 2 and "mine" in err
    few = rows[rows["model"].isin(rows["model"].unique()[:4])]
    few.rename(columns=columns).to_csv(tmp_path / "few.csv", index=False)
    code, _, err = cli("shrink", "mine", tmp_path / "few.csv", "--define", suite)
    assert code == 2 and "4 models" in err


def test_results_of_another_system_cannot_be_written_as_a_suite(tmp_path, cli):
    rows = table(scores(5)).rename(columns={"model": "method", "value": "metric_error"})
    rows.drop(columns="metric").to_csv(tmp_path / "theirs.csv", index=False)
    options = ("tabarena", tmp_path / "theirs.csv", "--keep-order", "0.85")
    assert cli("shrink", *options).code == 0
    code, out, err = cli("shrink", *options, "-o", tmp_path / "small.yaml")
    assert code == 2 and "not defined" in " ".join(err.split()) and "t0" in out
    assert not (tmp_path / "small.yaml").exists()
