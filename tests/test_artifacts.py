"""Artifacts: stored if a definition names them, and loaded without running code."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import karat
from karat.artifacts import collect
from karat.errors import ContractError, DataError


class Board:
    """A model that leaves a table, a text and a folder."""

    def __init__(self, folder=None):
        self.folder = folder

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        self.models_count_ = 7
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def artifacts(self, names):
        made = {"leaderboard/board.csv": pd.DataFrame({"model": ["a"], "score": [0.5]})}
        made["info/about.json"] = '{"trees": 3}'
        made["info/raw.bin"] = b"\xff\x00"
        return {name: made[name] for name in made if name.partition("/")[0] in names}


@pytest.fixture
def task():
    frame = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0)})
    data = karat.Dataset.from_table(frame, target="y", name="line", kind="numbers")
    return karat.Task("a line", data, metrics=["rmse"], split={"use": "kfold", "folds": 2})


def evaluated(model, task, tmp_path, artifacts):
    from dataclasses import replace

    from karat.catalogue import Catalogue
    from karat.evaluate import find_both, make_options, plan_suite, run_suite

    catalogue = Catalogue()
    models, suite = find_both(catalogue, {"mine": model}, [task])
    models = [replace(each, artifacts=tuple(artifacts)) for each in models]
    options = make_options({"output": tmp_path / "out"})
    (run,) = run_suite(plan_suite(models, suite, catalogue, options), suite, options)
    return run


def test_artifacts_are_stored_and_loaded(task, tmp_path):
    run = evaluated(Board(), task, tmp_path, ["leaderboard", "info", "logs"])
    board = karat.load_artifact(run, "leaderboard", "a line", 1)
    assert board.to_dict("list") == {"model": ["a"], "score": [0.5]}
    info = karat.load_artifact(run.folder, "info", "a line")
    assert info == {"about.json": {"trees": 3}, "raw.bin": b"\xff\x00"}
    row = run.results().iloc[0]
    assert row["models"] == 7
    assert '"logs"' in row["notes"]
    with pytest.raises(DataError, match='"leaderboard"'):
        karat.load_artifact(run, "leaderbord", "a line")


def test_a_pickle_is_loaded_only_with_allow_pickle(task, tmp_path):
    run = evaluated(LinearRegression(), task, tmp_path, ["models"])
    with pytest.raises(DataError, match="allow_pickle=True"):
        karat.load_artifact(run, "models", "a line")
    model = karat.load_artifact(run, "models", "a line", allow_pickle=True)
    np.testing.assert_allclose(model.predict([[3.0]]), [3.0])


def test_no_artifact_is_stored_unless_requested(task, tmp_path):
    run = evaluated(Board(), task, tmp_path, [])
    assert not (run.folder / "leaderboard").exists()
    assert (run.folder / "predictions").is_dir()


def test_a_definition_requests_artifacts(tmp_path, task):
    define = tmp_path / "mine.yaml"
    define.write_text("models:\n  kept: {use: 'sklearn.linear_model:Ridge', artifacts: [models]}\n")
    (run,) = karat.evaluate("kept", [task], define=define, output=tmp_path / "out")
    assert (run.folder / "models").is_dir()


@pytest.mark.parametrize("name", ["../x", "jobs/x", "/etc/x", "models", "a/../../x", "a\\b/c"])
def test_a_name_cannot_leave_the_artifact_folder(name):
    class Sly:
        def artifacts(self, names):
            return {name: b""}

    with pytest.raises(ContractError, match="kind/file"):
        collect(Sly(), ["models"])


def test_an_error_in_artifacts_does_not_affect_scores(task, tmp_path):
    class Broken(Board):
        def artifacts(self, names):
            raise RuntimeError("no room")

    run = evaluated(Broken(), task, tmp_path, ["leaderboard"])
    assert run.results()["status"].tolist() == ["ok", "ok"]
    assert "RuntimeError: no room" in run.results()["notes"].iloc[0]


def test_inference_is_timed_by_batch_size(task, tmp_path):
    (run,) = karat.evaluate(
        {"line": LinearRegression()}, [task], output=tmp_path / "out", inference=[1, 5, 1000]
    )
    row = run.results().iloc[0]
    assert row["inference_1_seconds"] > 0
    assert row["inference_5_seconds"] > 0
    assert "inference_1000_seconds" not in row  # the fold has ten rows
    (run,) = karat.evaluate("onehot", [task], output=tmp_path / "out", inference=[2])
    assert run.results()["inference_2_seconds"].iloc[0] > 0


def test_exit_on_error_stops_after_the_first_failure(task, tmp_path):
    class Fails(Board):
        def fit(self, X, y):
            raise ValueError("no")

    given = {"output": tmp_path / "out", "exit_on_error": True}
    one, two = karat.evaluate({"fails": Fails(), "fine": Board()}, [task], **given)
    assert [record["status"] for record in one.records()] == ["failed"]
    assert two.records() == []
    given["resume"] = True
    one, two = karat.evaluate({"fails": Fails(), "fine": Board()}, [task], **given)
    assert len(one.records()) == 2
