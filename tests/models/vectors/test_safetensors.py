"""Matrices of safetensors files, and their row names."""

import json
import struct

import numpy as np
import pytest

from karat.errors import DataError
from karat.models.vector_files import VectorFile
from karat.models.vectors.vector_formats import read_vectors

from .vector_data import NAMES, VECTORS, assert_invalid, assert_read

MATRIX = {"m": ("F32", (3, 2), VECTORS.tobytes())}


def write_tensors(path, tensors, names=None):
    """Write the format by hand: a length, a header in JSON, the bytes."""
    header, data = {}, b""
    for name, (kind, shape, raw) in tensors.items():
        places = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": places}
        data += raw
    if names is not None:
        header["__metadata__"] = {"names": json.dumps(names)}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_safetensors_with_names_in_metadata_or_a_file(tmp_path):
    path = write_tensors(tmp_path / "v.safetensors", MATRIX, NAMES)
    assert_read(path)
    write_tensors(path, MATRIX)
    assert_invalid(path, "v.names")
    for end in ("txt", "names"):
        file = tmp_path / f"v.{end}"
        file.write_text("\n".join(NAMES) + "\n", encoding="utf-8")
        assert_read(path)
        before = VectorFile(str(path)).fingerprint()
        file.write_text("a\nb\nc", encoding="utf-8")
        assert_read(path, ["a", "b", "c"])
        assert VectorFile(str(path)).fingerprint() != before
    (tmp_path / "v.names").write_text("a\nb\n")
    assert_invalid(path, r"2 ids .*\(3, 2\)")


def test_safetensors_as_its_library_writes_them(tmp_path):
    save = pytest.importorskip("safetensors.numpy").save_file
    path = tmp_path / "v.safetensors"
    for kind in ("f2", "f4", "f8"):
        save({"weight": VECTORS.astype(kind)}, path, metadata={"names": json.dumps(NAMES)})
        assert_read(path, NAMES, VECTORS.astype(kind).astype("f4"))
    save({"a": VECTORS, "vectors": VECTORS[:, :1].copy()}, path, {"names": json.dumps(NAMES)})
    assert_read(path, NAMES, VECTORS[:, :1])


def test_half_precision_of_brains(tmp_path):
    raw = (np.array([1.5, -2.0], dtype="f4").view("u4") >> 16).astype("<u2").tobytes()
    path = write_tensors(tmp_path / "v.safetensors", {"m": ("BF16", (1, 2), raw)}, ["a"])
    assert_read(path, ["a"], [[1.5, -2.0]])


@pytest.mark.parametrize(
    "tensors, match",
    [
        ({}, '"vectors".*none'),
        ({**MATRIX, "n": MATRIX["m"]}, '"vectors".*m, n'),
        ({"m": ("I64", (3, 1), b"\0" * 24)}, '"m".*I64'),
        ({"m": ("F32", (4, 2), VECTORS.tobytes())}, r'"m".*24.*4, 2'),
    ],
)
def test_broken_safetensors(tmp_path, tensors, match):
    assert_invalid(write_tensors(tmp_path / "v.safetensors", tensors, NAMES), match)


@pytest.mark.parametrize(
    "shape, offsets",
    [
        ([1, 2], [-8, 0]),
        ([-1, 2], [0, 8]),
        ([1, 2], [8, 0]),
        ([1, 2], [0, 8.0]),
        ([True, 2], [0, 8]),
        ([1, 2], [0, 800]),
        ([10**30, 10**30], [0, 8]),
        ([1, 2], [4, 12]),
    ],
)
def test_places_of_safetensors_are_checked(tmp_path, shape, offsets):
    other = {"dtype": "U8", "shape": [8], "data_offsets": [8, 16]}
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
    header = {"other": other, "m": tensor, "__metadata__": {"names": '["a"]'}}
    text = json.dumps(header).encode()
    path = tmp_path / "v.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 16)
    with pytest.raises(DataError):
        read_vectors(path)


def test_safetensors_that_are_cut_short(tmp_path):
    path = write_tensors(tmp_path / "v.safetensors", MATRIX, NAMES)
    whole = path.read_bytes()
    for length, match in [(0, "no vectors"), (5, "cannot read"), (40, "cannot read")]:
        path.write_bytes(whole[:length])
        assert_invalid(path, match)
    path.write_bytes(whole[:-1])
    assert_invalid(path, '"m".*truncated')
