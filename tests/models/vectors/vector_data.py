"""Vectors that tests of all readers write, and what they expect of a reader."""

import base64
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

from karat.errors import DataError
from karat.models.vectors.vector_formats import read_vectors

NAMES = ["http://x/ü?a=(b)", "NA", "null"]
VECTORS = np.array([[1, -2], [0.1, 4], [5, 1e-20]], dtype=np.float32)


def assert_read(path, names=NAMES, vectors=VECTORS):
    ids, found = read_vectors(path)
    assert found.dtype == np.float32
    assert ids == list(names)
    np.testing.assert_array_equal(found, vectors)


def assert_invalid(path, match, **options):
    with pytest.raises(DataError, match=match) as caught:
        read_vectors(path, **options)
    assert path.name in str(caught.value)


def assert_cut_short_is_invalid(path, match, *shares):
    whole = path.read_bytes()
    for share in shares:
        path.write_bytes(whole[: int(share * len(whole))])
        assert_invalid(path, match)


def key(name):
    return base64.b32encode(name.encode()).decode()


def write_hdf5(path, vectors, group="Vectors"):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        made = file.create_group(group)
        for name, vector in vectors.items():
            made[name] = vector
    return path


@contextmanager
def little_memory():
    """Fail if Python and numpy allocate more than 50 MB at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
