import numpy as np
import pandas as pd
import pytest

from karat.report import scores
from karat.report.bundle import make_bundle


def tidy(rows, **columns):
    table = pd.DataFrame(rows, columns=["task", "model", "fold", "metric", "value"])
    return table.assign(repeat=0, corruption="", severity=0.0, draw=0, epoch=-1, **columns)


TWO = [
    *[("t", "a", fold, "acc", value) for fold, value in enumerate([0.9, 0.7, 0.8])],
    *[("t", "b", fold, "acc", value) for fold, value in enumerate([0.5, 0.6])],
    *[("t", "a", fold, "logloss", 0.25 + fold) for fold in range(3)],
    ("u", "a", 0, "rmse", 3.0),
    ("u", "b", 0, "rmse", 2.0),
]


def test_means_spread_and_folds_are_those_of_the_table():
    found = make_bundle(tidy(TWO))
    a, b = (next(i for i, m in enumerate(found["models"]) if m["name"] == name) for name in "ab")
    assert [task["name"] for task in found["tasks"]] == ["t", "u"]
    assert found["tasks"][0]["metrics"] == ["acc", "logloss"]
    assert found["tasks"][0]["higher"] == [True, False]
    assert found["tasks"][1]["higher"] == [False]
    (acc, logloss), (rmse,) = found["scores"]
    assert (acc[a], acc[b]) == (0.8, 0.55)
    assert (logloss[a], logloss[b]) == (1.25, None)
    assert (rmse[a], rmse[b]) == (3, 2)
    assert found["spread"][0][a] == pytest.approx(0.1)  # of 0.9, 0.7 and 0.8
    assert found["spread"][0][b] == pytest.approx(np.sqrt(0.005), rel=1e-5)  # of 0.5 and 0.6
    assert found["spread"][1] == [None, None], "one fold has no spread"
    assert found["folds"][0][a] == [0.9, 0.7, 0.8]
    assert found["folds"][0][b] == [0.5, 0.6, None], "a fold keeps its place"
    assert found["folds"][1][a] == [3], "as it was measured, whichever way is better"
    assert [task["folds"] for task in found["tasks"]] == [3, 1]


def test_too_many_folds_are_left_out():
    found = make_bundle(tidy(TWO), fold_budget=7)
    assert found["folds"] is None
    assert any("single folds" in note for note in found["cut"])
    assert make_bundle(tidy(TWO), fold_budget=8)["folds"] is not None


def test_a_metric_of_unknown_direction_is_left_out():
    found = make_bundle(tidy([*TWO, ("t", "a", 0, "homemade", 1.0)]))
    assert found["tasks"][0]["metrics"] == ["acc", "logloss"]
    assert any("homemade of t" in note for note in found["cut"])


def test_further_metrics_of_very_many_cells_are_left_out(monkeypatch):
    monkeypatch.setattr(scores, "MAX_NUMBERS", 7)
    rows = [("t", m, 0, metric, 0.5) for m in "abcd" for metric in ("acc", "auc", "balacc")]
    found = make_bundle(tidy(rows))
    assert found["tasks"][0]["metrics"] == ["acc", "auc"]
    assert any("2 metrics" in note for note in found["cut"])


def test_states_of_missing_scores(make_run):
    one = make_run("one", {"t": [0.9, 0.8], "u": ["broke"]}, tasks={"v": {}})
    two = make_run("two", {"t": [0.5, 0.4], "u": [0.5], "v": [0.5]})
    declined = {"fold": None, "repeat": None, "status": "declined", "info": "no", "views": []}
    record = {**two.records()[0], **declined, "model": "three", "task": "t"}
    three = make_run("three", {"u": [0.7], "v": [0.2]}, tasks={"t": {}})
    three.write(record, {})
    three.finish()
    found = make_bundle([one, two, three])
    places = {model["name"]: place for place, model in enumerate(found["models"])}
    signs = {
        (task["name"], name): found["states"][t][place]
        for t, task in enumerate(found["tasks"])
        for name, place in places.items()
    }
    assert signs == {
        **{("t", "one"): ".", ("t", "two"): ".", ("t", "three"): "d"},
        **{("u", "one"): "f", ("u", "two"): ".", ("u", "three"): "."},
        **{("v", "one"): "n", ("v", "two"): ".", ("v", "three"): "."},
    }
