"""Result files of other systems: cells, columns, and the run folder that is written."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_validate
from sklearn.naive_bayes import GaussianNB

import karat
from karat.errors import DataError, DefinitionError
from karat.results import compact
from karat.results.importing import (
    ImportLog,
    ModelResults,
    ResultTable,
    direction,
    metric_kind,
    number,
    rows,
    sample_file,
    write_run,
)
from karat.results.load import FrozenRun, gather_scores
from karat.results.run import Run


def test_names_in_files_never_import_code():
    assert direction("os:system") is None and metric_kind("os:system") == ""
    assert (direction("acc"), direction("rmse"), direction("nothing")) == (True, False, None)


@pytest.mark.parametrize("cell", ["", " ", "nan", "NA", "None", None, "inf"])
def test_empty_and_infinite_cells_are_missing(cell):
    assert number(cell) is None


@pytest.mark.parametrize("cell", ["1_0", "true", "٣", "0x1"])
def test_cells_are_numbers_of_the_one_pattern(cell):
    with pytest.raises(ValueError, match=cell):
        number(cell)


def test_cells_are_read_with_their_line(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("task,fold,acc\niris,0,0.5\niris,one,high\n")
    sample = sample_file(path)
    assert sample.has("task", "acc") and not sample.has("rmse")
    first, second = rows(sample)
    assert (first.text("task"), first.whole("fold"), first.number("acc")) == ("iris", 0, 0.5)
    for read, name in ((second.whole, "fold"), (second.number, "acc")):
        with pytest.raises(DataError, match=f"3.*{name}"):
            read(name)


def test_columns_are_those_of_the_rows(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text('task,fold,acc\n iris ,0,0.5\n\n"wine\nred",1,\niris,2.5,high\n')
    table = ResultTable.read(sample_file(path))
    assert list(table.texts("task")) == ["iris", "wine\nred", "iris"]
    assert list(table.lines) == [2, 4, 6]
    assert list(table.texts("none")) == ["", "", ""] and table.numbers("none") == [None] * 3
    first = table.take([1, 0])
    assert (first.integers("fold"), first.numbers("acc")) == ([1, 0], [None, 0.5])
    with pytest.raises(DataError, match="line 6.*acc.*high"):
        table.numbers("acc")
    with pytest.raises(DataError, match="line 6.*fold"):
        table.integers("fold")
    with pytest.raises(DataError, match="line 4.*acc"):
        first.integers("acc", required=True)


@pytest.mark.parametrize(("name", "content"), [("a.txt", ""), ("a.json", "{")])
def test_files_that_cannot_be_read_are_named(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=name):
        sample_file(tmp_path / name)
    with pytest.raises(DataError, match="missing.csv"):
        sample_file(tmp_path / "missing.csv")


@pytest.fixture
def results(tmp_path):
    """Return the results of a model, of which one task has an unknown metric."""
    file = tmp_path / "given.csv"
    file.write_text("x")

    def make() -> ModelResults:
        found = ModelResults("amlb", "m", "s", [file])
        for task, metric in (("iris", "acc"), ("odd", "nothing")):
            found.tasks[task] = {"dataset": task, "kind": "classification", "metric": metric}
            found.put(found.job(task), metric, 0.75)
        return found

    return make


KILLED = """
import os, sys
from pathlib import Path
from karat.results import importing
from karat.results.run import Run
Run._write_tables = lambda *_: os._exit(9)  # killed before the tables are written
found = importing.ModelResults("amlb", "m", "s", [Path(sys.argv[1])])
found.tasks["iris"] = {"dataset": "iris", "kind": "classification", "metric": "acc"}
found.put(found.job("iris"), "acc", 0.75)
importing.write_run(found, Path(sys.argv[2]), importing.ImportLog())
"""


def test_a_killed_import_leaves_no_run(results, tmp_path):
    output = tmp_path / "results"
    for _ in range(2):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "given.csv"), str(output)]
        assert subprocess.run(command, check=False).returncode == 9
        assert list(output.glob("*/run.json")) == [] and len(list(output.iterdir())) == 1
    run = write_run(results(), output, ImportLog())
    assert [path.name for path in output.iterdir()] == [run.folder.name]
    assert run.folder.name.startswith("m.s.unknown.imported.")


def test_a_run_is_written_once_without_tasks_of_unknown_metrics(results, tmp_path):
    log = ImportLog()
    run = write_run(results(), tmp_path / "results", log)
    scores = run.scores()
    assert scores[["task", "metric", "value"]].values.tolist() == [["iris", "acc", 0.75]]
    assert "odd" in log.notes[0]
    again = ImportLog()
    assert write_run(results(), tmp_path / "results", again).folder == run.folder
    assert again.again == [run.folder.name]


def test_imported_records_are_lines_of_one_file(results, tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "FEWEST_JOBS", 2)
    found = results()
    for fold in range(1, 4):
        found.put(found.job("iris", fold), "acc", fold / 4)
    run = write_run(found, tmp_path / "runs", ImportLog())
    assert [path.name for path in (run.folder / "jobs").iterdir()] == [compact.IMPORTED]
    assert len(run.records()) == 4 and compact.stamp_records(run.folder)[0] == 1
    scores = [0.75, 0.25, 0.5, 0.75]
    assert run.scores()["value"].tolist() == scores
    assert FrozenRun(run.folder).stored.scores()["value"].tolist() == scores


def test_a_damaged_line_of_an_import_is_left_out_with_a_warning(results, tmp_path):
    found = results()
    found.put(found.job("iris", 1), "acc", 0.25)
    run = write_run(found, tmp_path / "runs", ImportLog())
    path = run.folder / "jobs" / compact.IMPORTED
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{second[:-9]}\n")
    with pytest.warns(UserWarning, match="line 2"):
        assert Run.open(run.folder).scores()["value"].tolist() == [0.75]


def test_a_record_in_its_own_file_replaces_an_imported_one(results, tmp_path):
    run = write_run(results(), tmp_path / "runs", ImportLog())
    (record,) = run.records()
    record["views"][0]["scores"]["acc"] = 0.5
    run.write(record, {})
    assert Run.open(run.folder).scores()["value"].tolist() == [0.5]


X, Y = load_iris(return_X_y=True)
MODELS = {"dummy": DummyClassifier(), "bayes": GaussianNB()}
MANY = ["accuracy", "neg_log_loss", "f1_macro"]


@pytest.fixture(scope="module")
def single():
    return {name: cross_validate(model, X, Y) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def several():
    return {name: cross_validate(model, X, Y, scoring=MANY) for name, model in MODELS.items()}


def test_one_metric(single):
    board = karat.leaderboard(single)
    assert board.index.tolist() == ["bayes", "dummy"]
    mean = single["bayes"]["test_score"].mean()
    assert board.loc["bayes", "cross_validate"] == pytest.approx(mean)
    spent = single["bayes"]["fit_time"] + single["bayes"]["score_time"]
    assert board.loc["bayes", "seconds"] == pytest.approx(spent.sum())
    found = karat.compare(single, "bayes", "dummy")
    apart = single["bayes"]["test_score"] - single["dummy"]["test_score"]
    assert found.tasks.loc[0, "difference"] == pytest.approx(apart.mean())
    assert found.tasks.loc[0, "folds"] == 5


def test_several_metrics_get_the_names_and_signs_of_karat(several):
    given = gather_scores(several)
    assert given.metrics == {"cross_validate": "acc"}
    assert {m: given.higher(m) for m in ("acc", "logloss", "f1_macro")} == {
        "acc": True,
        "logloss": False,
        "f1_macro": True,
    }
    board = karat.leaderboard(several, metrics={"cross_validate": "logloss"})
    loss = -several["bayes"]["test_neg_log_loss"].mean()
    assert board.loc["bayes", "cross_validate"] == pytest.approx(loss) and board.index[0] == "bayes"
    assert karat.compare(several, "bayes", "dummy", metric="f1_macro").tasks["metric"].tolist() == [
        "f1_macro"
    ]


def test_a_scorer_of_the_user_is_higher_is_better():
    found = {"a": {"test_gain": [3.0, 4.0]}, "b": {"test_gain": [1.0, 2.0]}}
    assert karat.leaderboard(found).index.tolist() == ["a", "b"]
    # not Karat's rmse: scikit-learn's scores are always higher-is-better
    found = {"a": {"test_rmse": [-3.0, -4.0]}, "b": {"test_rmse": [-1.0, -2.0]}}
    assert karat.leaderboard(found).index.tolist() == ["b", "a"]


def test_models_by_task(single):
    found = {name: {"iris": each, "again": each} for name, each in single.items()}
    board = karat.leaderboard(found)
    assert {"iris", "again"} <= set(board.columns) and board.index[0] == "bayes"
    assert sorted(karat.compare_all(found).models) == ["bayes", "dummy"]


def test_candidates_of_a_search_are_models():
    search = GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.0001, 1.0]}, cv=4).fit(X, Y)
    board = karat.leaderboard(search.cv_results_)
    assert board.index.tolist() == ["C=1.0", "C=0.0001"]
    mean = search.cv_results_["mean_test_score"][1]
    assert board.loc["C=1.0", "cross_validate"] == pytest.approx(mean)
    named = karat.leaderboard({"logistic": search.cv_results_, "dummy": {"test_score": [0.3] * 4}})
    assert named.index[0] == "logistic C=1.0" and len(named) == 3


def test_sizes_of_folds_are_those_of_the_splits():
    splits = ShuffleSplit(6, test_size=0.5, random_state=0)
    found = {
        name: cross_validate(model, X, Y, cv=splits, return_indices=True)
        for name, model in MODELS.items()
    }
    from karat.analysis.leaderboard import fold_ratios

    assert fold_ratios(gather_scores(found), ["cross_validate"]) == [1.0]


def test_a_failed_fold_counts_as_the_worst():
    found = {"a": {"test_score": [0.9, np.nan]}, "b": {"test_score": [0.5, 0.5]}}
    given = gather_scores(found)
    assert given.jobs["status"].tolist() == ["ok", "failed", "ok", "ok"]
    assert karat.leaderboard(found).loc["a", "failed"] == 1


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({}, "empty"),
        ({"a": 3}, '"a"'),
        ({"a": {}}, '"a"'),
        ({"a": {"fit_time": [1.0]}}, "fit_time"),
        ({"a": {"test_score": ["x"]}}, "test_score"),
        ({"a": {"test_score": []}}, "test_score"),
        ({"a": {"test_acc": [1.0], "test_f1": [1.0, 2.0]}}, '"a"'),
    ],
)
def test_other_dictionaries_are_refused(found, named):
    with pytest.raises(DataError, match=named):
        karat.leaderboard(found)


def test_a_mapping_has_no_predictions(single):
    with pytest.raises(DefinitionError, match="rows"):
        karat.compare(single, "bayes", "dummy", on="rows")
    with pytest.raises(DefinitionError, match="bayes"):
        karat.compare(single, "byes", "dummy")
