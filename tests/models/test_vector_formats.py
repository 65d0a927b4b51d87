"""Vectors in files other than text, each written by the library that people write it with."""

import base64
import gzip
import json
import pickle
import struct

import numpy as np
import pandas as pd
import pytest

from karat.errors import DataError, MissingExtra
from karat.models import vector_file, vector_hdf5
from karat.models.adapters import adapt
from karat.models.vector_file import VectorFile, read_vectors

NAMES = ["http://x/ü?a=(b)", "NA", "null"]
VECTORS = np.array([[1, -2], [0.1, 4], [5, 1e-20]], dtype=np.float32)


def assert_read(path, names=NAMES, vectors=VECTORS):
    ids, found = read_vectors(path)
    assert found.dtype == np.float32
    assert ids == list(names)
    np.testing.assert_array_equal(found, vectors)


def refused(path, said, **how):
    with pytest.raises(DataError, match=said) as caught:
        read_vectors(path, **how)
    assert path.name in str(caught.value)


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(NAMES), vectors=VECTORS)
    return tmp_path / "v.npz"


def test_the_size_is_checked_if_it_is_given(npz):
    assert read_vectors(npz, 2)[1].shape == (3, 2)
    refused(npz, "the vectors have 2 numbers, not 200", size=200)
    with pytest.raises(DataError, match="2 numbers, not 200"):
        VectorFile(str(npz), size=200).transform(NAMES)
    encoder = VectorFile(str(npz), size=2)
    assert pickle.loads(pickle.dumps(encoder)).get_params() == {
        "path": str(npz),
        "size": 2,
        "format": None,
    }
    assert encoder.fingerprint() != VectorFile(str(npz)).fingerprint()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_arrays_that_are_cut_short(npz, share):
    whole = npz.read_bytes()
    npz.write_bytes(whole[: int(share * len(whole))])
    refused(npz, "not an .npz")


def test_a_vector_that_is_not_finite_is_named(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["a", "b"]), vectors=np.array([[1], [np.inf]]))
    refused(tmp_path / "v.npz", 'the vector of "b" holds NaN or infinity')


# -- HDF5 -----------------------------------------------------------------------------------


def key(name):
    return base64.b32encode(name.encode()).decode()


def write_hdf5(path, vectors, group="Vectors"):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        made = file.create_group(group)
        for name, vector in vectors.items():
            made[name] = vector
    return path


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_hdf5_with_a_data_set_per_entity(tmp_path, shape, kind):
    stored = {key(n): v.reshape(shape).astype(kind) for n, v in zip(NAMES, VECTORS, strict=True)}
    path = write_hdf5(tmp_path / "v.h5", stored)
    ids, found = read_vectors(path, 2)
    assert dict(zip(ids, found.tolist(), strict=True)) == dict(
        zip(NAMES, VECTORS.tolist(), strict=True)
    )
    rows = VectorFile(str(path)).transform(pd.Series(0, index=["null", "?", f"<{NAMES[0]}>"]))
    np.testing.assert_array_equal(rows, [VECTORS[2], [np.nan, np.nan], VECTORS[0]])


def test_of_hdf5_only_the_rows_asked_for_are_read(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "v.hdf5", {key(f"e{i:03}"): np.full(4, i) for i in range(100)})
    read, row = [], vector_hdf5._row

    def watched(group, key, *how):
        read.append(base64.b32decode(key).decode())
        return row(group, key, *how)

    monkeypatch.setattr(vector_hdf5, "_row", watched)
    encoder = VectorFile(str(path))
    assert encoder.transform(["e007", "e042"])[:, 0].tolist() == [7, 42]
    assert encoder.encode(["e099"]).tolist() == [[99] * 4]
    assert set(read) <= {"e000", "e007", "e042", "e099"}
    assert len(encoder.vocabulary()[0]) == 100
    read.clear()
    # who has all has these
    assert encoder.transform(["e007"]).tolist() == [[7] * 4] and read == []


@pytest.mark.parametrize(
    "vectors, said",
    [
        ({key("a"): [1, 2], key("b"): [1]}, 'vector of "b" has 1 numbers, others have 2'),
        ({key("a"): [[1, 2], [3, 4]]}, r'vector of "a" has the shape \(2, 2\)'),
        ({key("a"): 5.0}, r'vector of "a" has the shape \(\)'),
        ({key("a"): [1, np.nan]}, 'vector of "a" holds NaN or infinity'),
        ({key("a"): ["x"]}, 'vector of "a" is no data set of numbers'),
        ({"not base 32": [1, 2]}, '"Vectors/not base 32" must be named'),
        ({key("a"): [1], key("<a>"): [2]}, '"a" stands twice'),
        ({}, "holds no vectors"),
    ],
)
def test_broken_hdf5(tmp_path, vectors, said):
    path = write_hdf5(tmp_path / "v.h5", vectors)
    refused(path, said)
    if "twice" not in said:
        with pytest.raises(DataError, match=said):
            VectorFile(str(path)).transform(["a", "b"])


def test_hdf5_of_another_layout_or_cut_short(tmp_path):
    path = write_hdf5(tmp_path / "v.h5", {key("a"): [1.0]}, group="Other")
    refused(path, 'has no group "Vectors"; it holds: Other')
    write_hdf5(path, {key(f"e{i}"): np.arange(50.0) for i in range(50)})
    whole = path.read_bytes()
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        refused(path, "cannot be read")


def test_without_its_library_a_file_declines_before_any_job(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_file, "find_spec", lambda name: None)
    (tmp_path / "v.h5").write_bytes(b"")
    assert 'pip install "karat[h5]"' in adapt(tmp_path / "v.h5").unavailable
    assert 'pip install "karat[zst]"' in adapt(tmp_path / "v.txt.zst").unavailable
    assert 'pip install "karat[tables]"' in adapt(tmp_path / "v.feather").unavailable
    assert adapt(tmp_path / "v.txt").unavailable == ""
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtra, match="h5py"):
        VectorFile(str(tmp_path / "v.h5")).vocabulary()


# -- word2vec -------------------------------------------------------------------------------


def word2vec(end=b"", names=NAMES):
    rows = zip(names, VECTORS, strict=True)
    return b"3 2\n" + b"".join(
        n.encode() + b" " + struct.pack("<2f", *v.tolist()) + end for n, v in rows
    )


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_binary(tmp_path, end):
    (tmp_path / "v.bin").write_bytes(word2vec(end))
    assert_read(tmp_path / "v.bin")
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(word2vec(end)))
    assert_read(tmp_path / "v.bin.gz")


def test_word2vec_binary_as_gensim_writes_it(tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(2)
    keyed.add_vectors(NAMES, VECTORS)
    keyed.save_word2vec_format(str(tmp_path / "v.bin"), binary=True)
    assert_read(tmp_path / "v.bin")
    keyed.save_word2vec_format(str(tmp_path / "v.txt"), binary=False)
    assert_read(tmp_path / "v.txt")


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "holds no vectors"),
        (b"a 1 2\nb 3 4\n", "not word2vec's binary"),
        (b"\x00" * 500, "not word2vec's binary"),
        (word2vec()[:-1], "cut short: its header says 3 vectors of 2 numbers"),
        (word2vec()[:20], "cut short"),
        (b"999999999 300\n" + b"a 1234", "cut short"),
        (word2vec() + b"more", "holds more than the 3 vectors"),
        (word2vec(names=["a", "b", "a"]), '"a" stands twice'),
        (b"1 1\n\xff \0\0\0\0", "the name of vector 1 is not UTF-8"),
        (b"1 1\na \0\0\xc0\x7f", 'vector of "a" holds NaN'),
    ],
)
def test_broken_word2vec_binary(tmp_path, content, said):
    (tmp_path / "v.bin").write_bytes(content)
    refused(tmp_path / "v.bin", said)


# -- columns --------------------------------------------------------------------------------


@pytest.fixture(params=["parquet", "feather"])
def write(request, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    def written(columns, **types):
        table = pa.table({n: pa.array(v, types.get(n)) for n, v in columns.items()})
        path = tmp_path / f"v.{request.param}"
        (parquet.write_table if request.param == "parquet" else feather.write_feather)(table, path)
        return path

    return written


def test_columns_of_numbers_or_of_lists(write):
    pa = pytest.importorskip("pyarrow")
    lists = VECTORS.tolist()
    assert_read(write({"id": NAMES, "d0": VECTORS[:, 0], "d1": VECTORS[:, 1]}))
    assert_read(write({"v": lists, "name": NAMES}))
    assert_read(write({"v": lists, "name": NAMES}, v=pa.list_(pa.float32(), 2)))
    assert_read(
        write({"id": NAMES, "v": lists}, id=pa.large_string(), v=pa.large_list(pa.float64()))
    )
    assert_read(write({"id": pa.array(NAMES).dictionary_encode(), "v": lists}))
    assert_read(write({"id": NAMES, "d": [1, 2, 3]}), NAMES, [[1], [2], [3]])


def test_a_frame_with_the_names_as_its_index(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(VECTORS, NAMES, ["x", "y"]).to_parquet(tmp_path / "v.parquet")
    assert_read(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"id": [1, 2], "v": [1.0, 2.0]}, "one column of texts; there are 0"),
        ({"a": ["x"], "b": ["y"], "v": [1.0]}, "there are 2: a, b"),
        ({"a": ["x", "y"], "v": [[1.0], [1.0, 2.0]]}, "row 2: 2 numbers, the rows before have 1"),
        ({"a": ["x", "y"], "v": [1.0, None]}, 'row 2: nothing in the column "v"'),
        ({"a": ["x", None], "v": [1.0, 2.0]}, 'row 2: nothing in the column "a"'),
        ({"a": ["x"], "v": [[None]]}, "hold no numbers, or gaps"),
        ({"a": ["x"], "v": [[True]]}, "hold no numbers, or gaps"),
        ({"a": ["x"], "v": [True]}, 'column "v" holds no numbers'),
        ({"a": ["x"], "v": [np.nan]}, 'vector of "x" holds NaN'),
        ({"a": ["x", "x"], "v": [1.0, 2.0]}, '"x" stands twice'),
        ({"a": ["x"]}, "1 ids and an array of the shape"),
    ],
)
def test_broken_columns(write, columns, said):
    refused(write(columns), said)


def test_columns_that_are_cut_short(write):
    path = write({"id": NAMES, "v": VECTORS.tolist()})
    whole = path.read_bytes()
    for share in (0, 0.5, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        refused(path, "cannot be read")


# -- safetensors ----------------------------------------------------------------------------


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


MATRIX = {"m": ("F32", (3, 2), VECTORS.tobytes())}


def test_safetensors_with_names_in_it_or_beside_it(tmp_path):
    path = write_tensors(tmp_path / "v.safetensors", MATRIX, NAMES)
    assert_read(path)
    write_tensors(path, MATRIX)
    refused(path, "has no names: write them, one per line, to v.names")
    for end in ("txt", "names"):
        file = tmp_path / f"v.{end}"
        file.write_text("\n".join(NAMES) + "\n", encoding="utf-8")
        assert_read(path)
        before = VectorFile(str(path)).fingerprint()
        file.write_text("a\nb\nc", encoding="utf-8")
        assert_read(path, ["a", "b", "c"])
        assert VectorFile(str(path)).fingerprint() != before
    (tmp_path / "v.names").write_text("a\nb\n")
    refused(path, r"2 ids and an array of the shape \(3, 2\)")


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
    "tensors, said",
    [
        ({}, 'one matrix, or one called "vectors": none'),
        ({**MATRIX, "n": MATRIX["m"]}, 'one matrix, or one called "vectors": m, n'),
        ({"m": ("I64", (3, 1), b"\0" * 24)}, 'tensor "m" is of I64'),
        ({"m": ("F32", (4, 2), VECTORS.tobytes())}, "not a safetensors file"),
    ],
)
def test_broken_safetensors(tmp_path, tensors, said):
    refused(write_tensors(tmp_path / "v.safetensors", tensors, NAMES), said)


def test_safetensors_that_are_cut_short(tmp_path):
    path = write_tensors(tmp_path / "v.safetensors", MATRIX, NAMES)
    whole = path.read_bytes()
    for length, said in [(0, "no vectors"), (5, "cannot be read"), (40, "cannot be read")]:
        path.write_bytes(whole[:length])
        refused(path, said)
    path.write_bytes(whole[:-1])
    refused(path, 'tensor "m" is cut short')
