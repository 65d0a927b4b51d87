import pandas as pd
import pytest

from karat.report import lines
from karat.report.bundle import make_bundle


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
