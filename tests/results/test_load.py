"""How long jobs took before, and what is not guessed at.

The progress of runs, computed from their folders.
"""

import json
import os

import numpy as np
import pytest

import karat
from karat.errors import DataError
from karat.reporting.terminal import show_status
from karat.results.load import estimate, status
from karat.results.run import Run


@pytest.fixture
def output(line, tmp_path):
    (run,) = karat.evaluate("dummy", line(), output=tmp_path / "out")
    for seconds, path in zip((1.0, 3.0), sorted((run.folder / "jobs").iterdir()), strict=True):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": seconds}))
    return tmp_path / "out"


def test_mean_duration_of_earlier_jobs(output):
    found = estimate([("dummy", "line")] * 5 + [("dummy", "other"), ("ridge", "line")], output)
    assert (found.seconds, found.timed, found.jobs) == (10.0, 5, 7)


def test_no_earlier_runs(tmp_path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text("{}")
    assert estimate([("dummy", "line")], tmp_path).timed == 0


class Half:
    """Fails in every second fold."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        if self.random_state % 2:
            raise ValueError("odd")
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def run(line, tmp_path):
    task = line("a <b> line", split={"use": "kfold", "folds": 4})
    (made,) = karat.evaluate({"half": Half()}, [task], output=tmp_path / "out", seed=42)
    return made


def test_finished_run(run, capsys):
    (row,) = status(run.folder).to_dict("records")
    assert (row["planned"], row["ok"], row["failed"], row["left"]) == (4, 2, 2, 0)
    assert row["state"] == "finished" and not list(run.folder.glob("jobs/*.running"))
    assert show_status([run.folder]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["half", "4", "of", "4", "2"]


def test_remaining_and_running_jobs(run, capsys):
    for name in ("0", "1"):
        next((run.folder / "jobs").glob(f"*.{name}.json")).unlink()
    (row,) = status(run.folder).to_dict("records")
    assert (row["left"], row["running"], row["state"]) == (2, 0, "stopped")
    run.mark_running("a <b> line", 0)  # in this process
    (row,) = status(run.folder).to_dict("records")
    assert (row["left"], row["running"], row["state"]) == (2, 1, "running")
    assert show_status([run.folder.parent]) == 1
    # of the two finished jobs one failed
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["half", "2", "of", "4"]


def test_jobs_on_other_machines(run):
    next(iter((run.folder / "jobs").glob("*.json"))).unlink()
    with run.marked_running():
        (row,) = status(run.folder)[["running", "left", "state"]].to_numpy().tolist()
        assert row == [1, 1, "running"]
    assert status(run.folder)["state"].tolist() == ["stopped"]


def test_dead_processes_do_not_count(run):
    next((run.folder / "jobs").glob("*.0.json")).unlink()
    run.mark_running("a <b> line", 0)
    (mark,) = (run.folder / "jobs").glob("*.running")
    text = mark.read_text()
    mark.write_text(text.replace(str(os.getpid()), str(2**22 - 1)))
    assert Run(run.folder).running_jobs() == []
    mark.write_text("rubbish")
    assert Run(run.folder).running_jobs() == []


def test_folder_without_runs(tmp_path):
    with pytest.raises(DataError, match="run folder"):
        status(tmp_path)
