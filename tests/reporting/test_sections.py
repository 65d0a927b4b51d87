""" """

import os

import numpy as np
import pandas as pd
import pytest

from karat.reporting import sections as lines
from karat.reporting import sections as origin
from karat.reporting import sections as scores
from karat.reporting.bundle import make_bundle


def row(model, value, corruption="", severity=0.0, **more):
    told = {"task": "t", "model": model, "repeat": 0, "fold": 0, "draw": 0, "epoch": -1}
    told |= {"corruption": corruption, "severity": severity, "metric": "acc", "value": value}
    return {**told, **more}


CORRUPTED = [
    row("a", 0.9),
    row("a", 0.8, fold=1),
    row("a", 0.7, "typos", 0.1),
    row("a", 0.5, "typos", 0.1, fold=1),
    row("a", 0.4, "typos", 0.2),
    row("b", 0.6),
    row("b", 0.5, "typos", 0.1),
    row("b", 0.5, "typos+swaps", 0.1),
]


def test_curves_start_clean_with_bands_of_one_standard_deviation():
    found = make_bundle(pd.DataFrame(CORRUPTED))
    (curve,) = found["curves"]  # the composition was tried at one severity
    told = {name: curve[name] for name in ("task", "metric", "higher", "corruption")}
    assert told == {"task": 0, "metric": "acc", "higher": True, "corruption": "typos"}
    a, b = curve["lines"]
    assert (a["model"], b["model"]) == (0, 1)
    assert (a["x"], a["mean"]) == ([0, 0.1, 0.2], [0.85, 0.6, 0.4])
    # the standard deviation of two numbers is their distance over the root of two
    low, high, alone = a["low"]
    assert (low, high) == pytest.approx((0.85 - 0.1 / 2**0.5, 0.6 - 0.2 / 2**0.5), abs=1e-5)
    assert a["high"][0] == pytest.approx(0.85 + 0.1 / 2**0.5, abs=1e-5)
    assert alone is None, "one number has no spread"
    assert (b["x"], b["low"]) == ([0, 0.1], [None, None])


def test_the_table_of_robustness_has_the_cells_of_the_command():
    found = make_bundle(pd.DataFrame(CORRUPTED))["robustness"]
    assert found["columns"][:5] == ["task", "metric", "model", "clean", "corrupted"]
    assert [each[2] for each in found["rows"]] == ["a", "b"]
    assert found["rows"][1][3].startswith("0.600")
    assert make_bundle(pd.DataFrame([row("a", 0.9), row("b", 0.6)]))["robustness"] is None


def test_learning_is_the_mean_over_folds_and_long_lines_are_thinned():
    table = [row("a", 0.9), row("b", 0.5)]
    table += [row("a", epoch / 100, epoch=epoch, metric="loss") for epoch in range(1, 201)]
    table += [row("a", epoch / 50, epoch=epoch, metric="loss", fold=1) for epoch in (1, 2)]
    found = make_bundle(pd.DataFrame(table))
    (chart,) = found["learning"]
    assert (chart["task"], chart["metric"]) == (0, "loss")
    (line,) = chart["lines"]
    assert line["mean"][0] == pytest.approx(0.015)  # 0.01 and 0.02
    assert (line["x"][0], line["x"][-1], len(line["x"])) == (1, 200, lines.MAX_POINTS)
    assert line["std"][-1] is None
    assert any("60" in note for note in found["cut"])


def test_where_room_is_short_the_best_models_keep_their_lines(monkeypatch):
    names = "abcdef"
    table = [row(name, 0.9 - i / 10) for i, name in enumerate(names)]
    table += [row(name, 0.3, "typos", s) for name in names for s in (0.1, 0.2)]
    whole = make_bundle(pd.DataFrame(table))["curves"][0]["lines"]
    assert [line["model"] for line in whole] == [0, 1, 2, 3, 4, 5]
    one = lines.size(whole[0])
    monkeypatch.setattr(lines, "LINES", 3 * one + one // 2)
    found = make_bundle(pd.DataFrame(table))
    assert [line["model"] for line in found["curves"][0]["lines"]] == [0, 1, 2]
    assert any("best 3 models" in note for note in found["cut"])


def test_provenance_and_job_counts_of_a_run(make_run):
    about = {"command": ["karat", "run", "my suite"], "python": "3.11.7", "platform": "Linux"}
    run = make_run("m", {"t": [0.5, "broke"]}, **about, versions={"numpy": "2.0"})
    (found,) = make_bundle(run)["runs"]
    assert found == {
        "model": 0,
        "folder": run.folder.name,
        "command": "karat run 'my suite'",
        "seed": 42,
        "versions": {"karat": "0.1.0", "python": "3.11.7", "model": "1.0", "numpy": "2.0"},
        "platform": "Linux",
        "jobs": 2,
        "ok": 1,
        "failed": 1,
    }


def test_missing_provenance_is_empty(make_run):
    run = make_run("m", {"t": [0.5]}, versions="unknown")
    (found,) = make_bundle(run)["runs"]
    assert (found["command"], found["platform"]) == (None, None)
    assert found["versions"] == {"karat": "0.1.0", "model": "1.0"}
    assert make_bundle(run)["models"][0]["command"] is None


def test_a_failure_comes_with_the_end_of_its_log(make_run):
    log = "start\n" + "x" * 5000 + "\nKeyError: 'ü'\n"
    kept = {("t", 1): {"log.txt": log}}
    run = make_run("m", {"t": [0.5, "KeyError: 'ü'"]}, files=kept)
    (found,) = make_bundle(run)["failures"]
    assert found.pop("log") == log[-4000:]
    assert found == {
        **{"model": 0, "task": 0, "fold": 1, "status": "failed", "info": "KeyError: 'ü'"}
    }


def test_unreadable_logs_do_not_prevent_the_page(make_run):
    run = make_run("m", {"t": [0.5, "a", "b", "c"]})
    logs = run.folder / "logs" / "t"
    logs.mkdir(parents=True)
    (logs / "1.txt").write_bytes(b"\xff\x00ok")
    (logs / "2.txt").mkdir()
    found = make_bundle(run)
    assert [each["log"] for each in found["failures"]] == ["\ufffd\x00ok", "", ""]
    (note,) = found["cut"]
    assert note.startswith("m on t, fold 2")


def test_many_logs_share_the_room_and_many_failures_are_counted(make_run, monkeypatch):
    kept = {("t", fold): {"log.txt": "l" * 500} for fold in range(1, 6)}
    run = make_run("m", {"t": [0.5, *["broke"] * 5]}, files=kept)
    monkeypatch.setattr(origin, "LOGS", 400)
    monkeypatch.setattr(origin, "MAX_FAILURES", 4)
    found = make_bundle(run)
    assert [len(each["log"]) for each in found["failures"]] == [100] * 4
    more, logs = found["cut"]
    assert "1 failed job" in more and "100" in logs
    assert found["runs"][0]["failed"] == 5


def test_folder_names_have_no_path(make_run, tmp_path):
    run = make_run("m", {"t": [0.5]})
    before = os.getcwd()
    try:
        os.chdir(run.folder)
        found = make_bundle(".")
    finally:
        os.chdir(before)
    assert found == make_bundle(run)
    assert str(tmp_path) not in str(found)


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
