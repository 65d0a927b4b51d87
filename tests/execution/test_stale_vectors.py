"""Vectors of a user's code are never older than what the code reads."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.execution.progress import LineProgress
from karat.models.adapters import adapt, keeps_vectors
from karat.models.column_encoders import PooledRows
from karat.models.model import TextEncoder
from karat.models.text_encoders import TfIdf

WORDS = pd.DataFrame({"text": [f"a{i}" for i in range(40)], "y": ["p", "q"] * 20})
WORDS["text"] += np.where(WORDS["y"] == "p", " aa", "")
SCALE = {"value": 1.0}
CALLS: list[int] = []


def scaled(texts, scale):
    """Return vectors that tell the classes apart, unless the scale is 0."""
    CALLS.append(len(texts))
    return np.array([[text.count("a") * scale] for text in texts])


def reads_a_file(texts):
    return scaled(texts, float(Path("scale.txt").read_text()))


def reads_a_global(texts):
    return scaled(texts, SCALE["value"])


def reads_the_environment(texts):
    return scaled(texts, float(os.environ["SCALE"]))


class WithoutFit:
    takes = ("text",)

    def transform(self, items):
        return reads_a_file(items)


class WithEncode:
    def encode(self, texts):
        return reads_a_file(texts)


class Declared(WithoutFit):
    cache = True


class DeclaredEncode(WithEncode):
    cache = True


class DependsOn(WithoutFit):
    depends_on = ("scale.txt",)


class Stateless(karat.StatelessEncoder):
    takes = ("text",)

    def transform(self, items):
        return reads_a_file(items)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Evaluate a model on texts; return its lowest accuracy and what was shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    data = Dataset.from_columns(WORDS, ["text"], "y", name="words")
    split = {"use": "kfold", "folds": 3}
    tasks = [Task(f"words{i}", data, metrics=["acc"], split=split) for i in range(2)]
    shown = []

    def evaluate(thing, scale, workers=0):
        (tmp_path / "scale.txt").write_text(str(scale))
        monkeypatch.setenv("SCALE", str(scale))
        SCALE["value"] = scale
        CALLS.clear()
        progress = LineProgress()
        monkeypatch.setattr(progress, "_print", shown.append)
        shown.clear()
        (made,) = karat.evaluate({"mine": thing}, tasks, workers=workers, progress=progress)
        assert [record["status"] for record in made.records()] == ["ok"] * 6
        scores = [record["views"][0]["scores"]["acc"] for record in made.records()]
        return min(scores), "\n".join(shown)

    return evaluate


@pytest.mark.parametrize(
    "thing",
    [reads_a_file, reads_a_global, reads_the_environment, WithoutFit(), WithEncode()],
    ids=lambda thing: getattr(thing, "__name__", type(thing).__name__),
)
def test_a_change_of_what_it_reads_is_seen_by_the_next_run(run, thing):
    accuracy, _ = run(thing, 1.0)
    assert accuracy == 1 and len(CALLS) == 1, "computed once for all tasks and folds of a run"
    accuracy, shown = run(thing, 0.0)
    assert accuracy < 0.7 and len(CALLS) == 1
    assert "embedded words with mine" in shown and "from the cache" not in shown


MODULE = """
from pathlib import Path

class Reader:
    takes = ("text",)

    def transform(self, items):
        with open("calls.txt", "a") as calls:
            calls.write("one call\\n")
        return [[text.count("a") * float(Path("scale.txt").read_text())] for text in items]
"""


def test_vectors_are_computed_once_per_run_for_all_workers(run, tmp_path, monkeypatch):
    (tmp_path / "my_reader.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert run("my_reader:Reader", 1.0, workers=2)[0] == 1
    assert run("my_reader:Reader", 0.0, workers=2)[0] < 0.7
    assert len((tmp_path / "calls.txt").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "thing", [Declared(), DeclaredEncode(), Stateless()], ids=lambda thing: type(thing).__name__
)
def test_vectors_of_a_model_that_says_so_are_kept_and_the_line_tells_it(run, thing):
    accuracy, shown = run(thing, 1.0)
    assert accuracy == 1 and len(CALLS) == 1 and "from the cache" not in shown
    accuracy, shown = run(thing, 0.0)
    assert accuracy == 1 and not CALLS
    assert "embedded words with mine" in shown and "(vectors from the cache)" in shown


def test_what_a_model_depends_on_is_part_of_its_identity(run):
    assert run(DependsOn(), 1.0)[0] == 1
    assert run(DependsOn(), 0.0)[0] < 0.7 and len(CALLS) == 1
    assert run(DependsOn(), 0.0)[0] < 0.7 and not CALLS


def test_new_texts_are_told_from_those_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    for rows, line in ((20, ""), (40, " (20 of 40 vectors from the cache)")):
        progress, shown = LineProgress(), []
        monkeypatch.setattr(progress, "_print", shown.append)
        data = Dataset.from_columns(WORDS[:rows], ["text"], "y", name="words")
        task = Task("words", data, metrics=["acc"], split={"use": "kfold", "folds": 2})
        karat.evaluate({"mine": Letters()}, task, output=tmp_path, progress=progress)
        (embedded,) = [text for text in shown if text.startswith("embedded")]
        assert embedded.partition(" s")[2] == line


class Letters(TextEncoder):
    def encode(self, texts):
        return [[text.count("a")] for text in texts]


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (reads_a_file, False),
        (WithEncode(), False),
        (PooledRows(WithoutFit()), False),
        (PooledRows(Declared()), True),
        (PooledRows("karat.models.text_encoders:TfIdf"), True),
        ({"a": [1.0], "b": [2.0]}, True),
        (TfIdf(), True),
        (Letters(), True),
    ],
)
def test_whose_vectors_are_kept_between_runs(thing, expected):
    assert keeps_vectors(adapt(thing)) is expected
