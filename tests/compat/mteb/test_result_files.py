"""Import of MTEB results."""

from __future__ import annotations

import json

import karat

from .test_convert import LATER, put, scores


def firsts(run: karat.Run) -> dict[str, str]:
    return {task["name"]: task["metrics"][0] for task in run.about["tasks"]}


SEARCH = {
    "task_name": "ArguAna",
    "scores": {
        "test": [{"ndcg_at_10": 0.5, "map_at_10": 0.25, "main_score": 0.5, "hf_subset": "default"}],
        "dev": [{"ndcg_at_10": 0.375, "main_score": 0.375, "hf_subset": "default"}],
    },
}


EARLIER = {
    "dataset_revision": "b0",
    "mteb_dataset_name": "STSBenchmark",
    "mteb_version": "1.0.2",
    "test": {
        "cos_sim": {"pearson": 0.8, "spearman": 0.81},
        "euclidean": {"pearson": 0.7, "spearman": 0.71},
        "evaluation_time": 3.5,
    },
}


LANGUAGES = {
    "mteb_dataset_name": "MassiveIntentClassification",
    "mteb_version": "1.0.2",
    "test": {
        "de": {"accuracy": 0.6, "f1": 0.5, "main_score": 0.6},
        "en": {"accuracy": 0.7, "f1": 0.65, "main_score": 0.7},
        "evaluation_time": 9.0,
    },
}


def test_layouts(tmp_path):
    folder = tmp_path / "res" / "org__model" / "1234567890abcdef"
    for name, content in {"b": LATER, "a": SEARCH, "s": EARLIER, "m": LANGUAGES}.items():
        put(folder / f"{name}.json", content)
    done = karat.import_results(tmp_path / "res", tmp_path / "out")
    (run,) = done.runs
    assert run.model == "org/model" and run.about["version"] == "1234567890abcdef"
    assert scores(run) == {
        ("Banking77Classification", "acc"): 0.75,
        ("Banking77Classification", "f1_macro"): 0.625,
        ("ArguAna", "ndcg@10"): 0.5,
        ("ArguAna", "map@10"): 0.25,
        ("ArguAna (dev)", "ndcg@10"): 0.375,
        ("STSBenchmark", "pearson"): 0.8,
        ("STSBenchmark", "spearman"): 0.81,
        ("MassiveIntentClassification (de)", "acc"): 0.6,
        ("MassiveIntentClassification (de)", "f1_macro"): 0.5,
        ("MassiveIntentClassification (en)", "acc"): 0.7,
        ("MassiveIntentClassification (en)", "f1_macro"): 0.65,
    }
    assert firsts(run)["ArguAna"] == "ndcg@10" and firsts(run)["STSBenchmark"] == "spearman"
    (note,) = done.notes
    assert "euclidean_pearson, euclidean_spearman, lrap" in note
    assert set(run.about["imported"]["files"]) == {"a.json", "b.json", "m.json", "s.json"}
    assert {r["seconds"] for r in run.records() if r["task"] == "STSBenchmark"} == {3.5}


def test_main_score_without_a_karat_metric(tmp_path):
    content = json.loads(json.dumps(LATER))
    content["scores"]["test"][0] |= {"main_score": 0.9}
    path = put(tmp_path / "own" / "Banking77Classification.json", content)
    (run,) = karat.import_results(path, tmp_path / "out").runs
    assert run.model == "own" and firsts(run) == {"Banking77Classification": "main_score"}
    assert karat.leaderboard(run).loc["own", "Banking77Classification"] == 0.9
    assert run.about["tasks"][0]["higher_is_better"]["main_score"] is True


def test_nested_measures(tmp_path):
    pairs = {"accuracy": 0.9, "accuracy_threshold": 0.7, "ap": 0.75, "f1": 0.625}
    entry = {"cosine": pairs, "dot": {"ap": 0.5}, "max": {"ap": 0.8}, "main_score": 0.8}
    content = {"task_name": "CDSC-E", "scores": {"test": [{**entry, "hf_subset": "default"}]}}
    (run,) = karat.import_results(put(tmp_path / "m" / "x.json", content), tmp_path / "out").runs
    assert scores(run) == {
        ("CDSC-E", "acc_best"): 0.9,
        ("CDSC-E", "pr_auc"): 0.75,
        ("CDSC-E", "f1_best"): 0.625,
        ("CDSC-E", "max_ap"): 0.8,
    }
    assert firsts(run) == {"CDSC-E": "max_ap"}


def test_f1_of_bitext_mining(tmp_path):
    entry = {"accuracy": 0.5, "f1": 0.375, "precision": 0.25, "recall": 0.5, "main_score": 0.375}
    content = {"task_name": "Bitext", "scores": {"test": [entry]}}
    done = karat.import_results(put(tmp_path / "m" / "x.json", content), tmp_path / "out")
    assert scores(done.runs[0]) == {("Bitext", "acc"): 0.5, ("Bitext", "f1_weighted"): 0.375}
    assert len(done.notes) == 1 and "precision, recall" in done.notes[0]


def test_missing_scores_are_failures(tmp_path):
    nothing = {"cosine_spearman": float("nan"), "main_score": float("nan")}
    some = {"cosine_spearman": 0.5, "main_score": 0.5}
    content = {"task_name": "AFQMC", "scores": {"test": [nothing], "validation": [some]}}
    (run,) = karat.import_results(put(tmp_path / "m" / "x.json", content), tmp_path / "out").runs
    states = {r["task"]: (r["status"], r["metric"]) for r in run.records()}
    assert states == {"AFQMC": ("failed", "spearman"), "AFQMC (validation)": ("ok", "spearman")}


def test_model_name(tmp_path):
    put(tmp_path / "r" / "model_meta.json", {"name": "org/other", "revision": "9"})
    path = put(tmp_path / "r" / "Banking77Classification.json", LATER)
    (run,) = karat.import_results(path, tmp_path / "out").runs
    assert (run.model, run.about["version"]) == ("org/other", "9")
    (run,) = karat.import_results(path, tmp_path / "o", model="given").runs
    assert run.model == "given"
