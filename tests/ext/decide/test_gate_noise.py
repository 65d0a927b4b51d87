"""The error rates of a gate come from the test of its verdict; small runs of benchmarks/gate.py."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import karat
from karat.ext.decide.gate_noise import FitDesign, item_noises
from karat.results.run import open_runs

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def simulated():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import gate
    finally:
        sys.path.remove(str(BENCHMARKS))
    return gate


@pytest.mark.parametrize(
    ("evidence", "design"),
    [
        ("items", FitDesign(1, 5, ratio=0.25)),
        ("items", FitDesign(10, 5, ratio=0.25)),
        ("trainings", FitDesign(10, 5, ratio=0.25)),
        ("trainings", FitDesign(seeds=3)),
    ],
    ids=lambda given: getattr(given, "name", given),
)
def test_stated_rates_are_those_of_gates_with_these_fits(simulated, evidence, design):
    stated, observed = simulated.measure(evidence, 1, design, number=100, baselines=10)
    stated, observed = stated.mean(axis=0), observed.mean(axis=0)
    assert observed[0] <= 0.08 and stated[0] <= 0.08
    assert np.abs(stated - observed).max() <= 0.16  # three standard errors of 100 gates


@pytest.fixture
def suite():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    y = np.where(x[:, 0] + rng.normal(0, 1, 300) > 0, "yes", "no")
    data = karat.Dataset.from_table(pd.DataFrame(x).assign(y=y), target="y", name="t")
    task = karat.Task("t", data, split="holdout", metrics=["acc"])
    return karat.Suite("s", (task,))


def tree():
    return DecisionTreeClassifier(max_features=1, max_depth=4)


def test_the_seeds_of_a_baseline_are_in_its_error_rates(tmp_path, suite):
    base, new = tmp_path / "base", tmp_path / "new"
    karat.evaluate(karat.Variants({"tree": tree()}, seeds=3), suite, output=base)
    karat.evaluate({"tree": tree()}, suite, output=new)
    rates = karat.calibrate_gate(base, margin=0.05, simulations=200)
    assert rates.fits == {"t": "1 fold, 3 seeds of the baseline"}
    assert rates.noise.startswith("3 runs") and rates.false_alarms <= 0.08
    rates.save(base)
    assert karat.gate(new, base, margin=0.05).rates is not None
    # a baseline with one fit has another test, and other rates
    one = tmp_path / "one"
    first = next(run for run in open_runs(base) if not run.about.get("replicate"))
    shutil.copytree(first.folder, one)
    shutil.copy(base / "gate.json", one)
    found = karat.gate(new, one, margin=0.05)
    assert found.rates is None and "3 seeds of the baseline" in found.notes[-1]


def test_a_seed_that_averages_out_makes_the_noise_smaller():
    rng = np.random.default_rng(0)
    gains = (rng.random((3, 5000)) < 0.8).astype(float)
    unit = [(1.0, 1 / 5000, True)]
    (one,), (three,) = (item_noises([gains], unit, [FitDesign(seeds=n)]) for n in (1, 3))
    assert np.mean(three.differences**2) == pytest.approx(np.mean(one.differences**2) * 2 / 3)


def test_items_agree_in_repeats_as_the_runs_show():
    rng, unit, design = np.random.default_rng(1), [(1.0, 1 / 5000, True)], [FitDesign(4, 5)]
    fresh = (rng.random((2, 4, 5000)) < 0.8).astype(float)
    (found,) = item_noises([fresh], unit, design)
    assert found.agreement == pytest.approx(0, abs=0.03)
    (found,) = item_noises([np.repeat(fresh[:, :1], 4, axis=1)], unit, design)
    assert found.agreement == pytest.approx(1)
    (found,) = item_noises([fresh[:, 0]], unit, [FitDesign(3, 1, ratio=0.25)])
    assert found.agreement == pytest.approx(0.2)
