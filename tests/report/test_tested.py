import numpy as np
import pandas as pd
import pytest

from karat.report import tested
from karat.report.bundle import make_bundle


def table(scores):
    """Return a tidy table of the scores of models, one number per task."""
    rows = [
        {"task": f"t{t}", "model": model, "value": value, "metric": "acc"}
        for model, values in scores.items()
        for t, value in enumerate(values)
    ]
    fixed = {"repeat": 0, "fold": 0, "corruption": "", "severity": 0.0, "draw": 0, "epoch": -1}
    return pd.DataFrame(rows).assign(**fixed)


def test_three_models_in_one_order_on_all_tasks():
    scores = {"a": [0.9] * 6, "b": [0.5, 0.6, 0.7, 0.5, 0.6, 0.7], "c": [0.1] * 6}
    found = make_bundle(table(scores))["tests"]
    # of k models in one order on n tasks, Friedman's statistic is n (k - 1): 12
    assert found["friedman"]["statistic"] == pytest.approx(12)
    assert found["friedman"]["p"] == pytest.approx(np.exp(-6), rel=1e-5)  # two degrees of freedom
    assert found["friedman"]["tasks"] == 6
    # each pair: p = 2 / 2⁶, times 3 after Holm; a less b are 0.5, 0.375 and 0.25, each twice
    assert found["pairs"]["p"][0][1] == pytest.approx(3 * 2 / 64)
    assert found["pairs"]["diff"][0][2] == 1
    assert found["pairs"]["diff"][0][1] == pytest.approx(0.375)
    assert found["pairs"]["diff"][1][0] == pytest.approx(-0.375)
    assert found["cliques"] == [[0, 1, 2]], "six tasks cannot tell three models apart"


def test_tests_use_the_order_of_the_leaderboard():
    rng = np.random.default_rng(0)
    scores = {"worst": rng.random(30) * 0.1, "best": 0.9 + rng.random(30) * 0.1}
    scores["middle"] = 0.4 + rng.random(30) * 0.1
    found = make_bundle(table(scores))
    assert [model["name"] for model in found["models"]] == ["best", "middle", "worst"]
    assert np.sign(found["tests"]["pairs"]["diff"]).tolist() == [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]
    assert found["tests"]["cliques"] == []


def test_of_very_many_models_the_best_are_compared(monkeypatch):
    monkeypatch.setattr(tested, "MAX_MODELS", 3)
    scores = {f"m{i}": [0.9 - i / 10] * 4 for i in range(5)}
    found = make_bundle(table(scores))["tests"]
    assert found["pairs"] is None
    assert found["friedman"]["statistic"] == pytest.approx(16)  # of all five: 4 tasks times 4
    assert found["cliques"] == [[0, 1, 2]]


def test_one_model_has_nothing_to_test():
    found = make_bundle(table({"a": [0.5, 0.6]}))["tests"]
    assert found == {"friedman": None, "cliques": [], "pairs": None}


def test_findings_point_at_models_and_tasks(make_run):
    good = make_run("good", {task: [0.9, 0.9] for task in "tuv"})
    bad = make_run("bad", {task: ["broke", "broke"] for task in "tuv"})
    found = make_bundle([good, bad])
    assert found["checks"], "a model that fails everywhere"
    for each in found["checks"]:
        assert set(each) == {"code", "level", "model", "task", "message", "advice"}
        assert each["code"].startswith("KRT") and each["level"] in ("error", "warning", "note")
        assert each["model"] in (None, 0, 1) and each["task"] in (None, 0, 1, 2)


def test_findings_are_limited(make_run, monkeypatch):
    runs = [make_run("good", {task: [0.9] for task in "tuv"})]
    runs.append(make_run("b" * 5000, {task: ["broke"] for task in "tuv"}))
    whole = make_bundle(runs)
    assert max(len(each["message"]) for each in whole["checks"]) <= tested.MESSAGE
    monkeypatch.setattr(tested, "MAX_FINDINGS", 1)
    found = make_bundle(runs)
    assert found["checks"] == whole["checks"][:1]
    rest = len(whole["checks"]) - 1
    assert found["cut"][-1].startswith(f"{rest} finding")
