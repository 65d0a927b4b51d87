"""A command that ran nothing of what it was asked for does not exit with 0, and says why."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from karat.ext.compat.amlb import __main__ as amlb

MODELS = """
import karat


class Lacking:
    def unavailable(self):
        return "no license file"

    def fit(self, X, y=None):
        return self


@karat.encoder("lacking")
class LackingEncoder(Lacking):
    def transform(self, X):
        return X


@karat.predictor("lacking-too")
class LackingPredictor(Lacking):
    def predict(self, X):
        return X
"""


@pytest.fixture
def here(tmp_path, monkeypatch, clean_registry):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS)
    pd.DataFrame({"x": range(40), "y": [0, 1] * 20}).to_csv("data.csv", index=False)
    return tmp_path


RUN = ("run", "data.csv", "--target", "y", "--define", "models.py", "-m", "lacking", "-w", "0")


def test_run_names_the_reason(cli, here):
    done = cli(*RUN)
    assert done.code == 1
    assert "lacking ran on no task: no license file" in done.err


def test_a_part_of_nothing_is_an_error(cli, here):
    done = cli(*RUN, "--shard", "1/2")
    assert done.code == 2
    assert "no jobs" in done.err and "no license file" in done.err


def test_slurm_writes_no_script_for_nothing(cli, here):
    words = ("slurm", *RUN[1:-2])
    done = cli(*words, "--array", "2")
    assert done.code == 2 and "no license file" in done.err and not done.out


@pytest.mark.parametrize(
    "command",
    [
        ("rescore",),
        ("lint",),
        ("verify",),
        ("compare",),
        ("robustness",),
        ("cheapest", "--cost", "seconds"),
        ("export", "--as", "taco", "-o", "exported"),
        ("plot", "strip", "-o", "folds.pdf"),
        ("gate", "--against", "results"),
    ],
    ids=lambda command: command[0],
)
def test_commands_on_a_run_without_jobs(cli, here, command):
    cli(*RUN)
    name, *options = command
    place = [options.pop(0)] if name == "plot" else []
    done = cli(name, *place, "results", *options)
    assert done.code not in (0, None), done.out
    assert "error: " in done.err


def test_the_automl_benchmark_without_its_framework(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])
    (here / "bench.yaml").write_text(
        "- name: one\n  folds: 2\n  dataset: {path: data.csv, target: y}\n"
    )
    code = amlb.amlb(["models:LackingPredictor", "bench.yaml", "-o", "out"])
    shown = capsys.readouterr()
    assert code == 1
    assert "no license file" in shown.err


def test_vectors_of_other_items_are_the_reason_not_the_tables(cli, here):
    (here / "vectors.txt").write_text("town1 0.5 1\ntown2 1 0.5\n")
    rows = "".join(f"text {i},{i % 2}\n" for i in range(40))
    (here / "texts.csv").write_text("text,y\n" + rows)
    (here / "both.yaml").write_text(
        "datasets:\n"
        "  rows: {path: data.csv, target: y, kind: classification}\n"
        "  texts: {path: texts.csv, modality: text, target: y, kind: classification,"
        " fields: [text]}\n"
        "tasks:\n"
        "  rows: {dataset: rows, metrics: [acc]}\n"
        "  texts: {dataset: texts, metrics: [acc]}\n"
        "suites:\n"
        "  both: {tasks: [rows, texts]}\n"
    )
    done = cli("run", "both", "--define", "both.yaml", "-m", "vectors.txt", "-w", "0")
    assert done.code == 1
    assert "vectors ran on no task: no vector for any of the 32 items of texts" in done.err
