"""Model cards and records of Every Eval Ever, read by the libraries that define them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML
from scipy import stats

from karat.errors import DataError, DefinitionError, KaratError, MissingExtra
from karat.ext.compat.convert import export_results
from karat.ext.publish import publishing as module
from karat.ext.publish.publishing import check_tracker, track, tracked
from karat.results.run import Run

from ...score_data import make_view
from ...score_data import write_run as write_scores

EVIL = "org/<script> |a: b"
SCORES = [0.5, 0.7, 0.6]
SIZES = {"questions": 100, "train_questions": 200}


def write_run(output, model, scores, **about):
    """Write a run of {task: [scores by metric of each fold, None for a failure]}."""
    tasks = []
    for task, folds in scores.items():
        names = list(next((each for each in folds if each), {"acc": 0}))
        facts = {"name": task, "kind": "classification", "dataset": f"{task}-data"}
        facts |= {"metrics": names, "folds": list(range(len(folds))), "fingerprint": "abcdef12"}
        higher = {name: name == "acc" for name in names}
        facts |= {"modality": "table", "about": {"title": "T: 1"}, "higher_is_better": higher}
        tasks.append(facts)
    plan = {"model": model, "suite": "s", "constraint": "c", "mode": "m", "karat": "0.1.0"}
    plan |= {"stamp": "20260101T000000", "seed": 42, "version": "1.0", "params": {}}
    run = Run.create(output, {**plan, "tasks": tasks, **about})
    for task in tasks:
        for fold, given in enumerate(scores[task["name"]]):
            view = {"corruption": "", "severity": 0.0, "scores": given, "coverage": 1.0}
            record = {"spec": "", "model": model, "task": task["name"], "kind": task["kind"]}
            record |= {"fold": fold, "repeat": 0, "seed": 42 + fold, "metric": task["metrics"][0]}
            record |= {"status": "ok" if given else "failed", "info": "", "notes": []}
            record |= {"views": [view] if given else [], "history": [], **SIZES}
            run.write({**record, "utc": f"2026-01-02T03:04:0{fold}"}, {})
    run.finish()


@pytest.fixture
def runs(tmp_path):
    scores = {"t": [{"acc": each, "logloss": 1 - each} for each in SCORES], "u": [{"rmse": 2.0}]}
    write_run(tmp_path / "runs", EVIL, scores, command="karat run s -m 'a b'")
    return tmp_path / "runs"


def metadata(path):
    text = Path(path).read_text("utf-8")
    assert text.startswith("---\n")
    return YAML(typ="safe").load(text.split("---\n")[1])


def test_a_card_has_scores_intervals_revision_and_command(runs, tmp_path):
    (path,) = export_results(runs, "model-card", tmp_path / "out")
    assert path.name == "README.md"
    (model,) = metadata(path)["model-index"]
    assert model["name"] == EVIL
    first, second = model["results"]
    assert first["task"]["type"] == "tabular-classification"
    assert first["dataset"]["revision"] == "abcdef12" and first["dataset"]["name"] == "T: 1"
    accuracy, loss = first["metrics"]
    assert (accuracy["type"], accuracy["value"]) == ("accuracy", pytest.approx(0.6))
    assert loss["value"] == pytest.approx(0.4)
    # Nadeau and Bengio: the variance is multiplied by 1/k + n_test/n_train
    error = np.std(SCORES, ddof=1) * np.sqrt(1 / 3 + 100 / 200)
    half = stats.t.ppf(0.975, 2) * error
    assert accuracy["args"]["low"] == pytest.approx(max(0.6 - half, 0))
    assert accuracy["args"]["high"] == pytest.approx(min(0.6 + half, 1))
    assert accuracy["args"]["command"] == "karat run s -m 'a b'"
    assert "low" not in second["metrics"][0]["args"]  # one fold
    assert "karat run s -m 'a b'" in path.read_text("utf-8").split("---\n")[2]


def test_several_models_have_folders(runs, tmp_path):
    write_run(runs, "b", {"t": [{"acc": 0.5}, {"acc": 0.6}]})
    found = export_results(runs, "model-card", tmp_path / "out")
    assert len({path.parent for path in found}) == 2
    assert {metadata(path)["model-index"][0]["name"] for path in found} == {EVIL, "b"}


def test_names_that_are_no_file_names_have_folders_of_their_own(tmp_path):
    names = ["Model", "model", "a b", "a/b", "a_b", "..", "<script>", "../../x", ".", "CON"]
    for name in names:
        write_run(tmp_path / "runs", name, {"t": [{"acc": 0.5}, {"acc": 0.6}]})
    found = export_results(tmp_path / "runs", "model-card", tmp_path / "out")
    shown = [path.relative_to(tmp_path / "out").as_posix().lower() for path in found]
    assert len(set(shown)) == len(names)  # also where upper and lower case are the same
    assert all(path.resolve().parents[1] == (tmp_path / "out").resolve() for path in found)
    assert {metadata(path)["model-index"][0]["name"] for path in found} == set(names)
    assert all("\n# <script>" not in path.read_text("utf-8") for path in found)


def test_the_hub_reads_a_card(runs, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    (path,) = export_results(runs, "model-card", tmp_path / "out")
    card = hub.ModelCard.load(path)
    assert card.data.model_name == EVIL
    results = card.data.eval_results
    assert [type(each) for each in results] == [hub.EvalResult] * 3
    one = results[0]
    assert (one.metric_type, one.metric_value) == ("accuracy", pytest.approx(0.6))
    assert one.dataset_revision == "abcdef12" and one.metric_args["folds"] == 3
    assert one.source_name.startswith("Karat") and one.source_url.startswith("https://")
    index = hub.repocard_data.eval_results_to_model_index(EVIL, results)
    name, again = hub.repocard_data.model_index_to_eval_results(index)
    assert name == EVIL and again == results


def test_records_of_every_eval_ever(runs, tmp_path):
    (path,) = export_results(runs, "every-eval-ever", tmp_path / "out")
    parts = path.relative_to(tmp_path / "out").parts
    assert parts[:3] == ("data", "s", "org") and path.suffix == ".json"
    record = json.loads(path.read_text("utf-8"))
    accuracy = record["evaluation_results"][0]
    assert accuracy["score_details"]["score"] == pytest.approx(0.6)
    interval = accuracy["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] < 0.6 < interval["upper"]
    assert accuracy["metric_config"]["max_score"] == 1.0
    rmse = record["evaluation_results"][2]
    assert rmse["metric_config"]["lower_is_better"] and "uncertainty" not in rmse["score_details"]
    assert rmse["metric_config"]["max_score"] == "Infinity"
    again = export_results(runs, "every-eval-ever", tmp_path / "again")
    assert [each.name for each in again] == [path.name]


def test_the_schema_of_every_eval_ever(runs, tmp_path):
    if importlib.util.find_spec("every_eval_ever") is None:
        pytest.skip("needs every_eval_ever")
    types = pytest.importorskip("every_eval_ever.eval_types")
    (path,) = export_results(runs, "every-eval-ever", tmp_path / "out")
    log = types.EvaluationLog.model_validate_json(path.read_text("utf-8"))
    assert log.model_info.id == EVIL and len(log.evaluation_results) == 3
    schema = pytest.importorskip("jsonschema")
    folder = Path(importlib.util.find_spec("every_eval_ever").origin).parent
    text = (folder / "schemas" / "eval.schema.json").read_text("utf-8")
    schema.validate(json.loads(path.read_text("utf-8")), json.loads(text))


def test_bad_input(tmp_path):
    write_run(tmp_path / "runs", "m", {"t": [None, None]})
    with pytest.raises(DataError, match="no score"):
        export_results(tmp_path / "runs", "model-card", tmp_path / "out")
    with pytest.raises(DefinitionError, match="model-card"):
        export_results(tmp_path / "runs", "model-cards", tmp_path / "out")


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
