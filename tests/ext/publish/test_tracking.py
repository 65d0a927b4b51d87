"""What trackers get of a run, and what goes wrong with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from karat.errors import DefinitionError, KaratError, MissingExtra
from karat.ext.publish import tracking as module
from karat.ext.publish.tracking import check_tracker, track, tracked

from ...score_data import make_view
from ...score_data import write_run as write_scores

ODD = "<script> a/b"


@pytest.fixture
def tracked_runs(tmp_path):
    views = [make_view(acc=0.5), make_view("typos", 0.1, acc=0.25)]
    folder = tmp_path / "tracked_runs"
    write_scores(folder, ODD, {"t": [0.5, 0.7], "rmse x": [2.0, 4.0]}, params={"k": 3})
    write_scores(folder, "other", {"t": [views, None]}, command="karat run s -m other")
    return folder


def client(code, **env):
    """Run code in a new process, as clients keep state, and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_is_sent(tracked_runs, tmp_path):
    from karat.results.run import open_runs

    by_model = {
        run.model: tracked(run, tmp_path / "report.html") for run in open_runs(tracked_runs)
    }
    evil = by_model[ODD]
    assert evil.params["model"] == ODD and evil.params["params.k"] == "3"
    assert evil.metrics["t/acc"] == pytest.approx(0.6) and evil.metrics["rmse x/rmse"] == 3.0
    assert evil.metrics["jobs"] == 4 and evil.metrics["failed_jobs"] == 0
    other = by_model["other"]
    assert other.tags["command"] == "karat run s -m other"
    assert other.metrics["t/typos-0.1/acc"] == 0.25 and other.metrics["failed_jobs"] == 1
    assert [path.name for path in other.files] == ["report.html", "run.json", "scores.csv"]


def test_bad_trackers(tracked_runs, monkeypatch):
    with pytest.raises(DefinitionError, match='"mlflow"'):
        check_tracker("mlfow")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[wandb\]"'):
        track(tracked_runs, "wandb")


def test_a_folder_with_the_name_of_a_client_is_not_the_client(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CLIENTS", {"only_a_folder": None})
    (tmp_path / "only_a_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra, match="pip install"):
        check_tracker("only_a_folder")


def test_an_error_of_the_client_is_a_message(tracked_runs, monkeypatch):
    def refuse(project, sent):
        print("noise")
        raise ValueError("no such host")

    monkeypatch.setattr(module, "check_tracker", lambda name: None)
    monkeypatch.setitem(module._CLIENTS, "mlflow", refuse)
    with pytest.raises(
        KaratError, match="mlflow did not accept the runs: ValueError: no such host"
    ):
        track(tracked_runs, "mlflow")


def test_mlflow_stores_runs(tracked_runs, tmp_path):
    pytest.importorskip("mlflow")
    code = f"""
import json, karat, mlflow
karat.track({str(tracked_runs)!r}, "mlflow", project="p")
client = mlflow.MlflowClient()
experiment = client.get_experiment_by_name("p")
found = client.search_runs([experiment.experiment_id])
print(json.dumps({{run.data.params["model"]: [
    run.data.metrics, run.data.tags, [f.path for f in client.list_artifacts(run.info.run_id)]
] for run in found}}))
"""
    env = {"MLFLOW_TRACKING_URI": (tmp_path / "store").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    found = client(code, **env)
    metrics, _, files = found[ODD]
    assert metrics["t/acc"] == pytest.approx(0.6) and metrics["rmse x/rmse"] == 3.0
    assert sorted(files) == ["report.html", "run.json", "scores.csv"]
    assert found["other"][1]["command"] == "karat run s -m other"


def test_wandb_stores_runs_offline(tracked_runs, tmp_path):
    pytest.importorskip("wandb")
    code = f"import json, karat; print(json.dumps(karat.track({str(tracked_runs)!r}, 'wandb')))"
    env = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"}
    names = client(code, **env, WANDB_CACHE_DIR=str(tmp_path), WANDB_DATA_DIR=str(tmp_path))
    stored = sorted((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(names) == len(stored) == 2
    assert any(b"t/acc" in path.read_bytes() for path in stored)


def test_trackio_stores_runs(tracked_runs, tmp_path):
    pytest.importorskip("trackio")
    code = f"""
import json, karat
karat.track({str(tracked_runs)!r}, "trackio", project="p")
import trackio
api = trackio.Api()
print(json.dumps({{run.config["model"]: run.name for run in api.runs("p")}}))
"""
    found = client(code, TRACKIO_DIR=str(tmp_path / "store"), HF_HOME=str(tmp_path / "hf"))
    assert set(found) == {ODD, "other"} and found["other"].startswith("other.s.c.m.")
