"""The vector cache: found by content, never half-written, safe with several writers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from karat.cache import MARK, VectorCache, mark
from karat.fingerprints import fingerprint

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def cache(tmp_path):
    return VectorCache(tmp_path)


def put(cache, *parts, matrix=MATRIX):
    key = cache.key(*parts)
    return key, cache.put(key, matrix, {"model": "toy", "shape": list(matrix.shape)})


def test_a_stored_matrix_is_returned_memory_mapped(cache):
    key, folder = put(cache, "model", "data")
    found = cache.get(key)
    assert isinstance(found, np.memmap)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, MATRIX)
    assert folder == cache.folder(key)
    assert not found.flags.writeable


def test_a_missing_key_returns_none(cache):
    assert cache.get(cache.key("other")) is None
    assert not cache.root.exists()


def test_keys_depend_on_every_component_and_its_end():
    keys = {
        VectorCache.key(*parts)
        for parts in [("a", "b"), ("ab",), ("a", "", "b"), ("a\0b",), ("b", "a"), ("a", "b", "")]
    }
    assert len(keys) == 6
    assert VectorCache.key("a", "b") == VectorCache.key("a", "b")


def test_other_data_or_parameters_never_return_old_vectors(cache):
    import pandas as pd

    old, new = pd.Series(["a", "b"]), pd.Series(["a", "c"])
    key, _ = put(cache, "model size=3", fingerprint(old))
    assert cache.get(key) is not None
    for model, items in (("model size=3", new), ("model size=4", old), ("model size=3", old[::-1])):
        assert cache.get(cache.key(model, fingerprint(items))) is None


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


def test_the_first_writer_wins(cache):
    key, _ = put(cache, "model")
    put(cache, "model", matrix=MATRIX + 1)
    np.testing.assert_array_equal(cache.get(key), MATRIX)


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
    (cache.root / "zz" / ".draft-at-work").mkdir(parents=True)
    (cache.root / "zz" / ".draft-at-work" / "about.json").write_text("{")
    entries = list(cache.entries())
    assert sorted(entry.folder.name for entry in entries) == sorted(
        [cache.key("one"), cache.key("two")]
    )
    assert [dict(entry.about) for entry in entries] == [{"model": "toy", "shape": [4, 3]}] * 2
    sizes = [sum(f.stat().st_size for f in e.folder.iterdir()) for e in entries]
    assert [entry.bytes for entry in entries] == sizes
    assert cache.clear() == sum(sizes) + 1
    assert list(cache.entries()) == []


WRITER = """
import sys, time, numpy as np
from pathlib import Path
from karat.cache import MARK, VectorCache, mark
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
    assert [writer.wait(timeout=900) for writer in writers] == [0, 0]
    for i in range(60):
        folder = cache.folder(cache.key(str(i)))
        value = json.loads((folder / "about.json").read_text())["writer"]
        assert (cache.get(cache.key(str(i))) == value).all()
    assert len(list(cache.entries())) == 60
    assert list(cache.root.glob("*/.draft-*")) == []


def test_a_draft_that_cannot_be_placed_is_an_error(cache, monkeypatch):
    def refused(*_):
        raise PermissionError("no")

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(PermissionError):
        put(cache, "model")
    assert list(cache.root.glob("*/*")) == []


# -- texts ----------------------------------------------------------------------------------


def keep(cache, texts, seconds=3.0, family="me", key=None):
    matrix = np.array([[len(text), 0.5] for text in texts], dtype=np.float32)
    about = {"family": family, "seconds": seconds}
    key = key or cache.key(family, *texts)
    return cache.put(key, matrix, about, [mark(text) for text in texts])


def had(cache, family, *texts):
    found = list(cache.find(family, [mark(text) for text in texts]))
    return {
        texts[i]: row.tolist()
        for each in found
        for i, row in zip(each.places, each.vectors, strict=True)
    }


def test_texts_are_found_in_all_matrices_of_their_family_and_in_no_other(cache):
    keep(cache, ["a", "bb"])
    keep(cache, ["bb", "ccc", "ccc"])
    keep(cache, ["a", "dddd"], family="other")
    assert had(cache, "me", "ccc", "a", "dddd", "bb") == {
        "a": [1, 0.5],
        "bb": [2, 0.5],
        "ccc": [3, 0.5],
    }
    assert had(cache, "nobody", "a") == {}


def test_the_cost_of_texts_is_divided(cache):
    keep(cache, ["a", "bb", "bb", "ccc"], seconds=6.0)
    (found,) = cache.find("me", [mark("bb"), mark("zz")])
    assert found.seconds == 2.0


def test_a_damaged_family_member_is_ignored(cache):
    for lost in ("texts.npy", "vectors.npy", "about.json"):
        folder = keep(cache, ["a"])
        (folder / lost).write_bytes(b"")
        assert had(cache, "me", "a") == {}
        cache.clear()
    folder = keep(cache, ["a", "b"])
    np.save(folder / "vectors.npy", np.zeros((1, 2)))
    assert had(cache, "me", "a") == {}


def test_families_are_not_entries_and_are_cleared(cache):
    keep(cache, ["a"])
    assert len(list(cache.entries())) == 1
    cache.clear()
    assert not cache.root.exists()


def test_lone_surrogates_are_texts():
    assert len({mark("\ud800"), mark("a"), mark(""), mark("a\0")}) == 4
    assert len(mark("a")) == MARK
