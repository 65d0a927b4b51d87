"""Arrays of ``.npz`` files."""

import io
import zipfile

import numpy as np
import pytest

from karat.errors import DataError
from karat.models.vectors.vector_formats import read_vectors

from .vector_data import (
    NAMES,
    VECTORS,
    assert_cut_short_is_invalid,
    assert_invalid,
    little_memory,
)


@pytest.mark.parametrize(
    "arrays, match",
    [
        ({"ids": np.array(["a"])}, "vectors"),
        ({"ids": np.array(["a"]), "vectors": np.array([["x"]])}, "not an .npz"),
        ({"ids": np.array(["a"]), "vectors": np.eye(2)}, r"1 ids .*\(2, 2"),
        ({"ids": np.array(["a", "a"]), "vectors": np.eye(2)}, 'duplicate.*"a"'),
        ({"ids": np.array([]), "vectors": np.zeros((0, 2))}, "0 ids"),
    ],
)
def test_broken_arrays(tmp_path, arrays, match):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(DataError, match=match):
        read_vectors(tmp_path / "v.npz")


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(NAMES), vectors=VECTORS)
    return tmp_path / "v.npz"


def test_arrays_that_are_cut_short(npz):
    assert_cut_short_is_invalid(npz, "not an .npz", 0.1, 0.5, 0.95)


def npy(shape, kind="<f4", content=b""):
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


@pytest.mark.parametrize(
    "vectors",
    [
        npy((20_000_000, 1)),
        npy((1, 2)),
        npy((10**15, 0)),
        npy((10**15,), "<U0"),
        npy((0, 10**30)),
    ],
)
def test_arrays_that_declare_too_much(tmp_path, vectors):
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("ids.npy", npy((1,), "<U1", b"a\0\0\0"))
        file.writestr("vectors.npy", vectors)
    with little_memory():
        assert_invalid(path, "ids")
