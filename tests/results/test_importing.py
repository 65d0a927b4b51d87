"""Result files of other systems: cells, columns, and the run folder that is written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from karat.errors import DataError
from karat.results import compact
from karat.results.importing import (
    ImportLog,
    ModelResults,
    Table,
    direction,
    kind_of,
    number,
    rows,
    sample_file,
    write_run,
)
from karat.results.load import FrozenRun
from karat.results.run import Run


def test_names_in_files_never_import_code():
    assert direction("os:system") is None and kind_of("os:system") == ""
    assert (direction("acc"), direction("rmse"), direction("nothing")) == (True, False, None)


@pytest.mark.parametrize("cell", ["", " ", "nan", "NA", "None", None, "inf"])
def test_empty_and_infinite_cells_are_missing(cell):
    assert number(cell) is None


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
    table = Table.read(sample_file(path))
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
    assert compact.stamp_records(run.folder)[0] == 4
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
