"""Model cards and records of Every Eval Ever, read by the libraries that define them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML
from scipy import stats

from karat.errors import DataError, DefinitionError
from karat.ext.compat.convert import export_results
from karat.results.run import Run

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
