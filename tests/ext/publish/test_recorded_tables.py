"""Runs on a table of the user's are verified with the file."""

from __future__ import annotations

import json

import pytest

import karat
from karat.config.catalog import Catalog
from karat.errors import DataError
from karat.ext.publish.recorded_tables import recorded_table, table_suite_again
from karat.ext.publish.verification import verify

# the target is 1 where x > 19; 40 rows with a comma as the decimal mark
ROWS = "x;y;z;target\n" + "".join(
    f"{row},5;{row % 3};{row % 7};{'yes' if row > 19 else 'no'}\n" for row in range(40)
)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "churn.csv"
    file.write_text(ROWS)
    settings = {"positive": "no", "drop": ["z"], "options": {"separator": ";", "decimal": ","}}
    suite = Catalog().table_suite(file, "target", None, settings)
    (run,) = karat.evaluate("dummy", suite, output=karat.Output(tmp_path / "out", items=False))
    return file, run


def outcomes(found):
    return dict(zip(found.checks["check"], found.checks["outcome"], strict=True))


def test_a_run_on_a_table_is_verified_with_its_file(table):
    _, run = table
    made = outcomes(verify(run, seed=0))
    assert (made["data"], made["rerun"]) == ("passed", "passed")


def test_a_table_that_moved_is_named(table, tmp_path):
    file, run = table
    moved = tmp_path / "other.csv"
    file.rename(moved)
    found = verify(run, seed=0)
    assert outcomes(found)["data"] == "skipped" and "--data" in found.sentence
    made = outcomes(verify(run, seed=0, data=moved))
    assert (made["data"], made["rerun"]) == ("passed", "passed")
    with pytest.raises(DataError, match="nowhere.csv"):
        verify(run, data=tmp_path / "nowhere.csv")


def test_another_table_is_not_read_but_refused_if_it_is_named(table, monkeypatch):
    file, run = table
    file.write_text(ROWS.replace("yes", "no", 1))
    found = verify(run, seed=0)
    assert outcomes(found)["data"] == "skipped" and not found.refused
    found = verify(run, seed=0, data=file)
    assert {reason.check for reason in found.reasons} == {"data"}


def test_settings_of_a_run_folder_name_no_code(table):
    _, run = table
    recorded = recorded_table(run.about)
    recorded["settings"] = {**recorded["settings"], "reader": "os:system", "use": "os:system"}
    recorded["settings"]["options"] = {**recorded["settings"]["options"], "engine": "python"}
    (task,) = table_suite_again(recorded, Catalog())
    assert len(task.dataset.target) == 40
    assert recorded_table({"tasks": []}) is None
    assert recorded_table({"tasks": [{"name": "t", "about": {"source": "x"}}]}) is None
    json.dumps(run.about)
