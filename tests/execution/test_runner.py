"""What runs a job in a worker: components of a script, and outcomes that are written."""

from __future__ import annotations

import textwrap

import pytest

import karat
from karat.core.writing import write_atomic
from karat.errors import KaratError
from karat.models.tables.one_hot_table import OneHotTable
from karat.results.load import status

SCRIPT = """
    import sys
    import numpy as np, pandas as pd
    import karat

    @karat.encoder("registered")
    class Registered(karat.StatelessEncoder):
        def transform(self, items):
            return items.to_numpy(dtype=float) * FACTOR

    FACTOR = 2.0

    class Unregistered:
        def fit(self, items, y=None):
            self.mean_ = helped(items)
            return self
        def transform(self, items):
            return items.to_numpy(dtype=float) - self.mean_

    def helped(items):
        return items.to_numpy(dtype=float).mean()

    @karat.metric("mine")
    def mine(predictions):
        return float((predictions.predictions == predictions.target).mean())

    @karat.corruption("shift")
    def shift(X, y, severity, rng):
        return X + severity, y

    @karat.head("majority")
    def majority(random_state=None):
        from sklearn.dummy import DummyClassifier
        return DummyClassifier(strategy="prior")

    @karat.splitter("halves")
    def halves(data):
        from karat.execution.splits import Fold
        rows = np.arange(len(data))
        yield Fold(rows[::2], rows[1::2])
        yield Fold(rows[1::2], rows[::2])

    table = pd.DataFrame({"x": np.arange(20.0), "y": ["low"] * 10 + ["high"] * 10})
    data = karat.Dataset.from_table(table, "y", name="halves")
    common = {"split": "halves", "metrics": ["mine", "acc"], "corruptions": {"shift": [1.0]}}
    tasks = [
        karat.Task("own", data, **common),
        karat.Task("head", data, probe={"use": "trained", "head": "majority"}, **common),
    ]
    for workers in (1, 2):
        runs = karat.evaluate(
            ["registered", Unregistered], tasks, workers=workers, output=f"out{workers}"
        )
        for run in runs:
            scores = run.scores()
            print(run.model, *run.results()["status"].unique(), scores["value"].round(6).tolist())
    """


def test_components_of_a_script_are_sent_to_workers(tmp_path, script):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = script("script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == lines[2:]
    for line, name in zip(lines, ("registered", "Unregistered"), strict=False):
        head, _, values = line.partition(" [")
        scores = values.strip("]").split(", ")
        assert head == f"{name} ok"
        assert len(scores) == 16
        assert scores[::2] == scores[1::2]  # the metric of our own is accuracy by another name


def test_a_full_disk_ends_the_run_and_fails_no_job(two_classes, tmp_path, monkeypatch):
    def full(path, content, **how):
        if path.parent.name == "jobs":
            raise KaratError(f"cannot write {path}")
        write_atomic(path, content, **how)

    with monkeypatch.context() as patch:
        patch.setattr("karat.results.run.write_atomic", full)
        with pytest.raises(KaratError, match="cannot write"):
            karat.evaluate(OneHotTable(), [two_classes()], output=tmp_path)
    (row,) = status(tmp_path).to_dict("records")
    assert (row["failed"], row["left"], row["state"]) == (0, 2, "running")
    (run,) = karat.evaluate(OneHotTable(), [two_classes()], output=tmp_path, resume=True)
    assert run.results()["status"].tolist() == ["ok", "ok"]
