"""How long jobs took before, and what is not guessed at."""

import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.results.estimate import estimate


@pytest.fixture
def output(tmp_path):
    frame = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0)})
    data = karat.Dataset.from_table(frame, target="y", name="line", kind="numbers")
    task = karat.Task("line", data, metrics=["rmse"], split={"use": "kfold", "folds": 2})
    (run,) = karat.evaluate("dummy", [task], output=tmp_path / "out")
    for seconds, path in zip((1.0, 3.0), sorted((run.folder / "jobs").iterdir()), strict=True):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": seconds}))
    return tmp_path / "out"


def test_mean_duration_of_earlier_jobs(output):
    found = estimate([("dummy", "line")] * 5 + [("dummy", "other"), ("ridge", "line")], output)
    assert (found.seconds, found.known, found.jobs) == (10.0, 5, 7)


def test_no_earlier_runs(tmp_path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text("{}")
    assert estimate([("dummy", "line")], tmp_path).known == 0
