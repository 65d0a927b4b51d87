"""What the functions of this extension return, in every form of output."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.output.result import Result


def score_table(models: int, tasks: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (f"task {t}", f"model {m}", 0, fold, "acc", 0.5 + 0.04 * m + rng.normal(0, 0.02))
        for t in range(tasks)
        for m in range(models)
        for fold in range(3)
    ]
    table = pd.DataFrame(rows, columns=["task", "model", "repeat", "fold", "metric", "value"])
    return table.assign(corruption="", severity=0.0, epoch=-1)


def some_gate() -> karat.Gate:
    tasks = pd.DataFrame(
        {
            **{"task": ["t"], "metric": ["acc"], "baseline": [0.8], "new": [0.7]},
            **{"difference": [-0.1], "difference_low": [np.nan], "difference_high": [np.nan]},
            **{"p": [np.nan], "test": ["one fold"], "outcome": ["cannot tell"]},
        }
    )
    nan = float("nan")
    more = {"p": nan, "tasks": tasks, "rates": some_rates(), "notes": ("A note.",)}
    bounds = {"difference": -0.1, "difference_low": nan, "difference_high": nan}
    outcome = {"outcome": "cannot tell", "reasons": ("Too few.",), "margin": 0.01}
    return karat.Gate(new="a", baseline="b", **outcome, **bounds, **more)


def some_rates() -> karat.GateRates:
    rates = {"loss": [0.0, 0.01], "passed": [0.9, 0.1], "failed": [0.05, 0.8]}
    frame = pd.DataFrame({**rates, "cannot_tell": [0.05, 0.1]})
    return karat.GateRates(0.01, "several seeds", frame, ("t",))


def some_same() -> karat.Same:
    facts = {"vectors": {"items": 500, "median_cosine": 0.5, "odd": float("nan")}}
    return karat.Same("a", "b", "different", "scale", "a and b differ.", 1, 0.01, facts)


RESULTS = {
    "gate": (some_gate, {"outcome", "exit_code", "reasons", "tasks", "flips", "rates"}),
    "rates": (some_rates, {"margin", "noise", "rates", "tasks", "on_items", "simulations"}),
    "same": (some_same, {"a", "b", "verdict", "cause", "exit_code", "facts", "tasks", "flips"}),
    "power": (
        lambda: karat.power(score_table(2, 6), 0.01),
        {"models", "difference", "needed", "detectable", "tasks", "notes", "verdict"},
    ),
    "shrink": (
        lambda: karat.shrink(None, score_table(8, 6), keep_order=0.8),
        {"suite", "tasks", "kept", "random", "jobs", "models", "verdict", "notes"},
    ),
}


@pytest.fixture(scope="module", params=RESULTS)
def made(request) -> tuple[Result, set[str]]:
    make, keys = RESULTS[request.param]
    return make(), keys


def test_every_form_of_a_result(made, tmp_path):
    found, keys = made
    assert isinstance(found, Result)
    lines = repr(found).splitlines()
    assert max(map(len, lines)) <= 80 and found.sentence.split()[:3] == lines[0].split()[:3]
    assert found.sentence in " ".join(repr(found).split())
    assert str(found) == repr(found) and "DataFrame" not in repr(found)
    assert "<td" in found._repr_html_() and found._repr_html_().startswith("<p><strong>")
    facts = json.loads(found.render("json"), parse_constant=pytest.fail)
    assert keys <= facts.keys() and facts["sentence"] == found.sentence
    assert facts == json.loads(json.dumps(found.to_dict(), allow_nan=False))
    for path in found.to_csv(tmp_path):
        assert "," in path.read_text() or path.stem.endswith("flips")
    assert "| ---" in found.render("markdown") and "tabular" in found.render("latex")
    assert found.render("html").startswith("<div")


def test_rates_of_an_earlier_version_are_read(tmp_path):
    some_rates().save(tmp_path)
    stored = json.loads((tmp_path / "gate.json").read_text())
    del stored["sentence"], stored["cluster"]
    (tmp_path / "gate.json").write_text(json.dumps(stored))
    read = karat.GateRates.load(tmp_path)
    assert read is not None and read.sentence == some_rates().sentence
