"""A vector file is read once; all runs look up in the matrix that is kept of it."""

import numpy as np
import pandas as pd
import pytest

import karat
from karat.cache import VectorCache
from karat.folders import cache_folder
from karat.models import vector_file


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Return a list of the vector files that were read as a whole."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    files, read_vectors = [], vector_file.read_vectors

    def watched(path, *how):
        files.append(path.name)
        return read_vectors(path, *how)

    monkeypatch.setattr(vector_file, "read_vectors", watched)
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


def test_another_data_set_and_another_run_do_not_read_it_again(tmp_path, read):
    file = write(tmp_path / "v.txt")
    assert score(file, "abcdefgh", tmp_path / "out") == [1.0, 1.0]
    assert score(file, "bcdefg", tmp_path / "out") == [1.0, 1.0]
    assert read == ["v.txt"]
    kept = [e for e in VectorCache(cache_folder()).entries() if "ids" in e.about]
    assert [entry.about["ids"] for entry in kept] == [list("abcdefgh")]
    matrix = np.load(kept[0].folder / "vectors.npy", mmap_mode="r")
    assert matrix.dtype == np.float32 and matrix[1].tolist() == [1, 1]


def test_other_content_is_read_anew(tmp_path, read):
    score(write(tmp_path / "v.txt"), "abcdefgh", tmp_path / "out")
    score(write(tmp_path / "v.txt", size=2.0), "abcdefgh", tmp_path / "out")
    assert read == ["v.txt", "v.txt"]


def test_without_a_cache_nothing_is_kept(tmp_path, read):
    file = write(tmp_path / "v.txt")
    score(file, "abcdefgh", tmp_path / "out", cache=False)
    score(file, "abcdefgh", tmp_path / "out", cache=False)
    assert read == ["v.txt", "v.txt"]
    assert list(VectorCache(cache_folder()).entries()) == []


def test_hdf5_is_not_read_as_a_whole_for_some(tmp_path, read):
    h5py = pytest.importorskip("h5py")
    from base64 import b32encode

    with h5py.File(tmp_path / "v.h5", "w") as file:
        for entity in "abcdefghij":
            file[f"Vectors/{b32encode(entity.encode()).decode()}"] = [[float(entity < "e"), 1.0]]
    assert score(tmp_path / "v.h5", "abcdefgh", tmp_path / "out") == [1.0, 1.0]
    assert read == []
