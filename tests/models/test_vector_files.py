"""Vector files of all formats; invalid files raise."""

import pickle

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.files import cache_folder
from karat.errors import DataError, MissingExtra
from karat.execution.embedding_cache import VectorCache
from karat.models import vector_files
from karat.models.adapters import adapt
from karat.models.vector_files import VectorFile, VectorLookup, read_vectors

from .vectors.vector_data import NAMES, VECTORS, assert_invalid, assert_read, key


def test_encoder_reads_the_file_once_and_pickles_only_its_path(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("a 1 2\nb 3 4\n")
    encoder = VectorFile(str(file))
    first = encoder.transform(pd.Series(["A", "?"], index=["b", "c"]))
    np.testing.assert_array_equal(first, [[3, 4], [np.nan, np.nan]])
    file.write_text("a 9 9\n")
    assert encoder.transform(pd.Series(["x"], index=["a"])).tolist() == [[1, 2]]
    ids, vectors = encoder.vocabulary()
    assert (list(ids), vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    again = pickle.loads(pickle.dumps(encoder))
    assert again.transform(pd.Series(["x"], index=["a"])).tolist() == [[9, 9]]


def test_of_a_text_only_the_rows_asked_for_are_read(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\nc 5 6\n")
    encoder = VectorFile(str(tmp_path / "v.txt"), 2)
    encoder.read_only(["<a>", "b", "x"])
    assert encoder.reads_rows
    assert np.array_equal(encoder.transform(["b", "x", "a"])[[0, 2]], [[3, 4], [1, 2]])
    assert np.isnan(encoder.transform(["x"])).all() and encoder.transform([]).shape == (0, 2)
    # another name, and all names, are those of the file
    assert encoder.transform(["c"]).tolist() == [[5, 6]]
    assert list(encoder.vocabulary()[0]) == ["a", "b", "c"]
    with pytest.raises(DataError, match="size 3, got 2"):
        VectorFile(str(tmp_path / "v.txt"), 3).read_only(["a"])


def test_missing_file_raises():
    with pytest.raises(DataError, match="nowhere.txt"):
        VectorFile("nowhere.txt").transform(pd.Series(["a"]))


def test_suffix_is_part_of_the_fingerprint(tmp_path):
    for name in ("v.txt", "v.csv"):
        (tmp_path / name).write_text("a,b 1\n")
    one, other = (VectorFile(str(tmp_path / name)).fingerprint() for name in ("v.txt", "v.csv"))
    assert one != other


def test_lookup_does_not_change_the_vectors():
    vectors = np.array([[1.0], [2.0]])
    known = VectorLookup(["a", "b"], vectors)
    assert np.isnan(known.transform(pd.Series(0, index=["b", "zzz"]))[1]).all()
    assert known.transform(["a"]).tolist() == [[1.0]]
    assert vectors.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "ids, vectors, match",
    [
        (["a", "a"], np.eye(2), 'duplicate.*"a"'),
        (["a"], np.eye(2), "1 ids"),
        (["a"], np.array([1.0]), "1 ids"),
        ([], np.zeros((0, 2)), "0 ids"),
        (["a"], np.array([["x"]]), "must be numbers"),
    ],
)
def test_given_vectors_are_checked(ids, vectors, match):
    with pytest.raises(DataError, match=match):
        VectorLookup(ids, vectors).vocabulary()


@pytest.fixture
def files_read(monkeypatch, tmp_path):
    """Return a list of the vector files that were read as a whole."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    files, read_vectors = [], vector_files.read_vectors

    def watched(path, *how):
        files.append(path.name)
        return read_vectors(path, *how)

    monkeypatch.setattr(vector_files, "read_vectors", watched)
    return files


def score(file, entities, output, **options):
    frame = pd.DataFrame({"e": list(entities), "y": [e < "e" for e in entities]})
    data = karat.Dataset.from_columns(frame, ["e"], "y", modality="entity", name=entities)
    task = karat.Task(entities, data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    (run,) = karat.evaluate({"file": file}, task, output=output, **options)
    return run.scores()["value"].tolist()


def write(file, entities="abcdefgh", size=1.0):
    file.write_text("".join(f"{e} {size * (e < 'e')} {i}\n" for i, e in enumerate(entities)))
    return file


def test_another_data_set_and_another_run_do_not_read_it_again(tmp_path, files_read):
    file = write(tmp_path / "v.txt")
    assert score(file, "abcdefgh", tmp_path / "out") == [1.0, 1.0]
    assert score(file, "bcdefg", tmp_path / "out") == [1.0, 1.0]
    assert files_read == ["v.txt"]
    kept = [e for e in VectorCache(cache_folder()).entries() if "ids" in e.facts]
    assert [entry.facts["ids"] for entry in kept] == [list("abcdefgh")]
    matrix = np.load(kept[0].folder / "vectors.npy", mmap_mode="r")
    assert matrix.dtype == np.float32 and matrix[1].tolist() == [1, 1]


def test_other_content_is_read_anew(tmp_path, files_read):
    score(write(tmp_path / "v.txt"), "abcdefgh", tmp_path / "out")
    score(write(tmp_path / "v.txt", size=2.0), "abcdefgh", tmp_path / "out")
    assert files_read == ["v.txt", "v.txt"]


def test_without_a_cache_nothing_is_kept(tmp_path, files_read):
    file = write(tmp_path / "v.txt")
    score(file, "abcdefgh", karat.Output(tmp_path / "out", cache=False))
    score(file, "abcdefgh", karat.Output(tmp_path / "out", cache=False))
    assert files_read == ["v.txt", "v.txt"]
    assert list(VectorCache(cache_folder()).entries()) == []


def test_hdf5_is_not_read_as_a_whole_for_some(tmp_path, files_read):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        for entity in "abcdefghij":
            file[f"Vectors/{key(entity)}"] = [[float(entity < "e"), 1.0]]
    assert score(tmp_path / "v.h5", "abcdefgh", tmp_path / "out") == [1.0, 1.0]
    assert files_read == []


def test_size_is_checked(tmp_path):
    npz = tmp_path / "v.npz"
    np.savez(npz, ids=np.array(NAMES), vectors=VECTORS)
    assert_read(npz)
    assert read_vectors(npz, 2)[1].shape == (3, 2)
    assert_invalid(npz, "200.* 2", size=200)
    with pytest.raises(DataError, match="200"):
        VectorFile(str(npz), size=200).transform(NAMES)
    encoder = VectorFile(str(npz), size=2)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.get_params() == {"path": str(npz), "size": 2, "format": None}
    assert encoder.fingerprint() != VectorFile(str(npz)).fingerprint()


def test_without_its_library_a_file_declines_before_any_job(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "find_spec", lambda name: None)
    (tmp_path / "v.h5").write_bytes(b"")
    assert 'pip install "karat[h5]"' in adapt(tmp_path / "v.h5").unavailable
    assert 'pip install "karat[zst]"' in adapt(tmp_path / "v.txt.zst").unavailable
    assert 'pip install "karat[tables]"' in adapt(tmp_path / "v.feather").unavailable
    assert adapt(tmp_path / "v.txt").unavailable == ""
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtra, match="h5py"):
        VectorFile(str(tmp_path / "v.h5")).vocabulary()
