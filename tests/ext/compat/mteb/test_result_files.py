"""Import and export of MTEB's result files, and leaderboards of its results repository."""

from __future__ import annotations

import json

import numpy as np
import pytest

import karat
from karat.errors import DataError
from karat.ext.compat.convert import export_results
from karat.ext.compat.mteb.result_files import declared_metrics, is_results_folder, open_results

from ..test_convert import LATER, put, scores


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
    content = json.loads(json.dumps(LATER)) | {"task_name": "Ours"}
    content["scores"]["test"][0] |= {"main_score": 0.9}
    path = put(tmp_path / "own" / "Ours.json", content)
    (run,) = karat.import_results(path, tmp_path / "out").runs
    assert run.model == "own" and firsts(run) == {"Ours": "main_score"}
    assert karat.leaderboard(run).loc["own", "Ours"] == 0.9
    assert run.about["tasks"][0]["higher_is_better"]["main_score"] is True


def test_the_declared_metric_of_a_task_is_one_column(tmp_path):
    """Main scores of pairs equal several metrics, and have other names in earlier versions."""
    several = [
        {"max_ap": 0.7, "cosine_ap": 0.7},
        {"max_ap": 0.8, "cosine_ap": 0.75},
        {"cos_sim": {"ap": 0.6}, "max": {"ap": 0.65}},
        {},
    ]
    for number, scores_of in enumerate(several):
        main = [0.7, 0.8, 0.65, 0.7][number]
        own = {"hf_subset": "default", **scores_of, "main_score": main}
        content = {"task_name": "SprintDuplicateQuestions", "scores": {"test": [own]}}
        put(tmp_path / "results" / f"m{number}" / "abcdef0" / "x.json", content)
    imported = karat.import_results(tmp_path / "results", tmp_path / "out").runs
    for runs in (imported, open_results(tmp_path)):
        assert [firsts(run) for run in runs] == [{"SprintDuplicateQuestions": "max_ap"}] * 4
        board = karat.leaderboard(runs)
        column = board["SprintDuplicateQuestions"]
        assert sorted(column) == pytest.approx([0.65, 0.7, 0.7, 0.8])


def test_f1_of_classes_and_of_bitext_by_the_task(tmp_path):
    own = {"accuracy": 0.5, "f1": 0.4, "precision": 0.3, "recall": 0.2, "main_score": 0.4}
    task = next(n for n, (m, k) in declared_metrics().items() if (m, k) == ("f1", ""))
    for name, wanted in {task: "f1_macro", "Tatoeba": "f1_weighted"}.items():
        path = put(tmp_path / name / "x.json", {"task_name": name, "scores": {"test": [own]}})
        (run,) = karat.import_results(path, tmp_path / "out").runs
        assert firsts(run) == {name: wanted} and scores(run)[name, wanted] == 0.4


def test_a_main_score_that_is_another_metric_is_noted(tmp_path):
    content = json.loads(json.dumps(LATER))
    content["scores"]["test"][0] |= {"main_score": 0.9}
    done = karat.import_results(put(tmp_path / "m" / "x.json", content), tmp_path / "out")
    (run,) = done.runs
    assert karat.leaderboard(run).loc["m", "Banking77Classification"] == 0.75
    assert any("1 main scores are not the metric" in note for note in done.notes)


def test_the_table_has_the_main_metrics_of_mteb():
    table = declared_metrics()
    assert len(table) > 1800
    assert table["STSBenchmark"] == ("cosine_spearman", "")
    assert table["ArguAna"] == ("ndcg_at_10", "") and table["Tatoeba"] == ("f1", "BitextMining")
    mteb = pytest.importorskip("mteb")
    known = {name: table[name][0] for name in ("CDSC-E", "AskUbuntuDupQuestions", "ArguAna")}
    tasks = {name: mteb.get_task(name).metadata.main_score for name in known}
    assert tasks == known


def test_nested_measures(tmp_path):
    pairs = {"accuracy": 0.9, "accuracy_threshold": 0.7, "ap": 0.75, "f1": 0.625, "recall": 0.5}
    entry = {"cosine": pairs, "dot": {"ap": 0.5}, "max": {"ap": 0.8}, "main_score": 0.8}
    content = {"task_name": "CDSC-E", "scores": {"test": [{**entry, "hf_subset": "default"}]}}
    (run,) = karat.import_results(put(tmp_path / "m" / "x.json", content), tmp_path / "out").runs
    assert scores(run) == {
        ("CDSC-E", "acc_best"): 0.9,
        ("CDSC-E", "pr_auc"): 0.75,
        ("CDSC-E", "f1_best"): 0.625,
        ("CDSC-E", "f1_best_recall"): 0.5,
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


# -- a folder of many models ------------------------------------------------------------------


def entry(main, **more):
    return {"main_score": main, "hf_subset": "default", "languages": ["eng-Latn"], **more}


def checkout(folder, models=12, tasks=8, seed=1):
    """Write results/MODEL/REVISION/TASK.json of models, the first of which are the best."""
    rng = np.random.default_rng(seed)
    for m in range(models):
        place = folder / "results" / f"org__m{m:02d}" / f"{m:07x}abc"
        put(place / "model_meta.json", {"name": f"org/m{m:02d}", "revision": "r"})
        for t in range(tasks):
            value = 0.9 - 0.05 * (m // 2) + rng.normal(0, 0.005)
            own = entry(value, cosine_spearman=value, cosine_pearson=0.1)
            put(place / f"T{t}.json", {"task_name": f"T{t}", "scores": {"test": [own]}})
    return folder


def test_leaderboard_of_a_checkout(tmp_path):
    board = karat.leaderboard(checkout(tmp_path, tasks=16))
    assert len(board) == 12 and board.index[0] in ("org/m00", "org/m01")
    assert board.attrs["metrics"] == {f"T{t}": "spearman" for t in range(16)}
    ties = [set(board["tie"][f"org/m{m:02d}"]) for m in range(12)]
    # models of different skill never shared a letter with 360 seeds
    assert not any(ties[m] & ties[m + 2] for m in range(10))
    # at most one of the six pairs of equal skill was set apart by chance, with 14 of these seeds
    assert sum(bool(ties[m] & ties[m + 1]) for m in range(0, 12, 2)) >= 5


@pytest.mark.parametrize(
    "inner", ["", "results", "results/org__m00", "results/org__m00/0000000abc"]
)
def test_a_part_of_a_checkout(tmp_path, inner):
    found = open_results(checkout(tmp_path, models=2) / inner)
    assert len(found) == (2 if inner in ("", "results") else 1)
    assert found[0].model == "org/m00" and len(found[0].records()) == 8


def test_main_scores_are_those_of_an_import(tmp_path):
    folder = checkout(tmp_path / "c", models=2)
    for name, content in {"b": LATER, "a": SEARCH, "s": EARLIER, "m": LANGUAGES}.items():
        put(folder / "results" / "org__x" / "1234567" / f"{name}.json", content)
    imported = karat.import_results(folder, tmp_path / "out").runs
    both = [
        {
            (run.model, r["task"], r["metric"]): r["views"][0]["scores"][r["metric"]]
            for run in runs
            for r in run.records()
        }
        for runs in (imported, open_results(folder))
    ]
    assert both[0] == both[1] and len(both[0]) == 16 + 6


def test_damaged_files_in_a_checkout_are_skipped(tmp_path):
    folder = checkout(tmp_path, models=2, tasks=3)
    place = next((folder / "results").glob("org__m00/*"))
    (place / "broken.json").write_text('{"task_name": ')
    (place / "other.json").write_text("[1, 2]")
    (place / "list.json").write_text('{"task_name": "x", "scores": {"test": 3}}')
    with pytest.warns(UserWarning, match="and 2 more"):
        (first, _) = open_results(folder)
    assert [record["task"] for record in first.records()] == ["T0", "T1", "T2"]


def test_the_command_reads_a_checkout(tmp_path, cli):
    folder = checkout(tmp_path, models=3, tasks=6)
    assert is_results_folder(folder)
    result = cli("leaderboard", folder, "--format", "json")
    assert result.code == 0 and "org/m00" in result.out
    result = cli("export", folder, "--as", "mteb", "-o", tmp_path / "out")
    assert result.code == 0 and len(list((tmp_path / "out").rglob("T*.json"))) == 18


def test_other_folders_are_no_checkouts(tmp_path):
    put(tmp_path / "a" / "b" / "c.json", {"x": 1})
    assert not is_results_folder(tmp_path) and not is_results_folder(tmp_path / "none")
    assert open_results(tmp_path) is None
    with pytest.raises(DataError, match="contains no run folder"):
        karat.leaderboard(tmp_path)


def test_own_runs_and_a_checkout_on_one_leaderboard(tmp_path):
    folder = checkout(tmp_path / "c", models=3)
    path = put(
        tmp_path / "own" / "T0.json",
        {"task_name": "T0", "scores": {"test": [entry(0.99, cosine_spearman=0.99)]}},
    )
    karat.import_results(path, tmp_path / "runs")
    board = karat.leaderboard([tmp_path / "runs", folder])
    assert sorted(board.index) == ["org/m00", "org/m01", "org/m02", "own"]


# -- export -----------------------------------------------------------------------------------


def test_export_of_an_import_is_the_same(tmp_path):
    folder = tmp_path / "res" / "org__model" / "1234567890abcdef"
    contents = {"b": LATER, "a": SEARCH, "s": EARLIER, "m": LANGUAGES}
    for name, content in contents.items():
        put(folder / f"{name}.json", content)
    (run,) = karat.import_results(tmp_path / "res", tmp_path / "runs").runs
    export_results(run, "mteb", tmp_path / "out")
    place = tmp_path / "out" / "results" / "org__model" / "1234567890abcdef"
    assert sorted(path.name for path in place.iterdir()) == [
        "ArguAna.json",
        "Banking77Classification.json",
        "MassiveIntentClassification.json",
        "STSBenchmark.json",
        "model_meta.json",
    ]
    search = json.loads((place / "ArguAna.json").read_text())
    assert search["task_name"] == "ArguAna" and set(search["scores"]) == {"test", "dev"}
    (found,) = search["scores"]["test"]
    assert found["main_score"] == found["ndcg_at_10"] == 0.5 and found["map_at_10"] == 0.25
    sts = json.loads((place / "STSBenchmark.json").read_text())["scores"]["test"][0]
    assert (sts["cosine_spearman"], sts["cosine_pearson"], sts["hf_subset"]) == (
        0.81,
        0.8,
        "default",
    )
    languages = json.loads((place / "MassiveIntentClassification.json").read_text())
    assert {e["hf_subset"]: e["accuracy"] for e in languages["scores"]["test"]} == {
        "de": 0.6,
        "en": 0.7,
    }
    (again,) = karat.import_results(place, tmp_path / "again").runs
    assert scores(again) == scores(run) and again.model == "org/model"


def test_export_of_names_that_are_no_file_names(tmp_path):
    content = {"task_name": "a/<b> c", "scores": {"test": [entry(0.5, accuracy=0.5)]}}
    path = put(tmp_path / "x" / "t.json", content)
    (run,) = karat.import_results(path, tmp_path / "runs", model="../<script> x").runs
    for file in export_results(run, "mteb", tmp_path / "out"):
        assert (tmp_path / "out").resolve() in file.resolve().parents
        assert len(file.relative_to(tmp_path / "out").parts) == 4
    (again,) = karat.import_results(tmp_path / "out", tmp_path / "again").runs
    assert again.model == "../<script> x" and scores(again) == scores(run)


def test_export_of_models_that_differ_in_case_only(tmp_path):
    path = put(tmp_path / "x" / "t.json", LATER)
    names = ["org/m", "org/M", "org__m"]
    for name in names:
        karat.import_results(path, tmp_path / "runs", model=name)
    files = export_results(tmp_path / "runs", "mteb", tmp_path / "out")
    assert len({str(file).lower() for file in files}) == len(files) == 6
    again = karat.import_results(tmp_path / "out", tmp_path / "again").runs
    assert {run.model for run in again} == {"org/m", "org/M"}  # mteb reads __ as a slash


def test_mteb_reads_what_is_exported(tmp_path):
    mteb = pytest.importorskip("mteb")
    run = karat.evaluate(
        "random", ["bbc-headlines"], output=tmp_path / "runs", only=karat.Only(folds=[0, 1])
    )[0]
    files = export_results(run, "mteb", tmp_path / "out")
    (path,) = (file for file in files if file.name != "model_meta.json")
    found = mteb.TaskResult.model_validate_json(path.read_text())
    own = run.scores()
    assert found.scores["test"][0]["main_score"] == pytest.approx(
        own[own["metric"] == "acc"]["value"].mean()
    )
    assert len(found.scores["test"][0]["scores_per_experiment"]) == 2
