"""HDF5 files: all vectors, some rows, damaged files and files that refer to others."""

import base64
import struct

import numpy as np
import pandas as pd
import pytest

from karat.errors import DataError
from karat.models.vector_files import VectorFile
from karat.models.vectors import hdf5
from karat.models.vectors.vector_formats import read_vectors

from .vector_data import (
    NAMES,
    VECTORS,
    assert_cut_short_is_invalid,
    assert_invalid,
    key,
    little_memory,
    write_hdf5,
)


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_hdf5_with_a_data_set_per_entity(tmp_path, shape, kind):
    stored = {key(n): v.reshape(shape).astype(kind) for n, v in zip(NAMES, VECTORS, strict=True)}
    path = write_hdf5(tmp_path / "v.h5", stored)
    ids, found = read_vectors(path, 2)
    np.testing.assert_array_equal(found[[ids.index(name) for name in NAMES]], VECTORS)
    rows = VectorFile(str(path)).transform(pd.Series(0, index=["null", "?", f"<{NAMES[0]}>"]))
    np.testing.assert_array_equal(rows, [VECTORS[2], [np.nan, np.nan], VECTORS[0]])


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_hdf5_with_datasets_that_are_stored_in_several_ways(tmp_path, tracked, version):
    h5py = pytest.importorskip("h5py")
    known = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    names = [f"entity {i * 7 % 60:02}" for i in range(60)]
    ways = ({}, {}, {"track_times": True}, {"dtype": "f8"}, {"dtype": ">f4"})
    ways += ({"chunks": (2,), "compression": "gzip"}, {"shape": (1, 5)})
    with h5py.File(tmp_path / "v.h5", "w", libver=version) as file:
        group = file.create_group("Vectors", track_order=tracked)
        for i, name in enumerate(names):
            group.create_dataset(key(name), data=known[i], **ways[i % len(ways)])
        group[key("linked")] = group[key(names[0])]
    ids, found = read_vectors(tmp_path / "v.h5")
    assert ids == ([*names, "linked"] if tracked else sorted(ids, key=key))
    np.testing.assert_array_equal(found[[ids.index(name) for name in names]], known)
    np.testing.assert_array_equal(found[ids.index("linked")], known[0])
    rows = hdf5.read_hdf5_rows(tmp_path / "v.h5", [*names[::-3], "unknown"])
    np.testing.assert_array_equal(rows[:-1], known[::-3])
    assert np.isnan(rows[-1]).all()


def test_hdf5_that_opens_few_datasets(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "v.h5", {key(f"e{i}"): np.full(4, i, "f8") for i in range(200)})
    opened, row = [], hdf5._row
    monkeypatch.setattr(hdf5, "_row", lambda *given: opened.append(given) or row(*given))
    ids, found = read_vectors(path)
    assert {name: vector[0] for name, vector in zip(ids, found, strict=True)} == {
        f"e{i}": i for i in range(200)
    }
    assert len(opened) == 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300])
def test_hdf5_names_the_vector_that_is_not_finite(tmp_path, wrong):
    vectors = {key(f"e{i}"): np.full(3, float(i)) for i in range(20)}
    vectors[key("e13")][1] = wrong
    with pytest.raises(DataError, match='"e13".*NaN'):
        read_vectors(write_hdf5(tmp_path / "v.h5", vectors))


def test_hdf5_with_a_damaged_address(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "v.h5", {key(f"e{i}"): np.full(3, i, "f8") for i in range(20)})
    with h5py.File(path) as file:
        address = file["Vectors"][key("e13")].id.get_offset()
    content = path.read_bytes()
    assert content.count(struct.pack("<q", address)) == 1
    for wrong in (2**40, len(content) - 8):
        path.write_bytes(content.replace(struct.pack("<q", address), struct.pack("<q", wrong)))
        with pytest.raises(DataError):
            read_vectors(path)


@pytest.mark.parametrize("wrong", [2**63 - 1, 2**63 + 5, 2**64 - 1])
def test_hdf5_with_a_damaged_link(tmp_path, wrong):
    h5py = pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "v.h5", {key(f"e{i}"): np.full(3, i, "f8") for i in range(20)})
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["Vectors"][key("e13")].id).addr
    content = path.read_bytes()
    assert content.count(struct.pack("<Q", address)) == 1
    path.write_bytes(content.replace(struct.pack("<Q", address), struct.pack("<Q", wrong)))
    with pytest.raises(DataError, match=r"v\.h5.*address"):
        read_vectors(path)
    with pytest.raises(DataError, match=r"v\.h5.*address"):
        VectorFile(str(path)).transform([f"e{i}" for i in range(20)])


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd", "abcde", "é", "http://x.org/a"])
def test_names_in_base_32(tmp_path, text):
    assert hdf5.name_from_base32(key(text), tmp_path) == text


@pytest.mark.parametrize("text", ["A", "AB======C", "ME", "me======", "M1======", "ME=====", "__"])
def test_names_that_are_not_in_base_32(tmp_path, text):
    with pytest.raises(DataError, match="base 32"):
        hdf5.name_from_base32(text, tmp_path)


def test_of_hdf5_only_the_rows_asked_for_are_read(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "v.hdf5", {key(f"e{i:03}"): np.full(4, i) for i in range(100)})
    read, row = [], hdf5._row

    def watched(group, key, *how):
        read.append(base64.b32decode(key).decode())
        return row(group, key, *how)

    monkeypatch.setattr(hdf5, "_row", watched)
    encoder = VectorFile(str(path))
    assert encoder.transform(["e007", "e042"])[:, 0].tolist() == [7, 42]
    assert encoder.encode(["e099"]).tolist() == [[99] * 4]
    assert set(read) <= {"e000", "e007", "e042", "e099"}
    assert len(encoder.vocabulary()[0]) == 100
    read.clear()
    assert encoder.transform(["e007"]).tolist() == [[7] * 4] and read == []


@pytest.mark.parametrize(
    "vectors, match",
    [
        ({key("a"): [1, 2], key("b"): [1]}, '"b".* 2 .* 1'),
        ({key("a"): [[1, 2], [3, 4]]}, r'"a".*\(2, 2\)'),
        ({key("a"): 5.0}, r'"a".*\(\)'),
        ({key("a"): [1, np.nan]}, '"a".*NaN'),
        ({key("a"): ["x"]}, '"a".*numbers'),
        ({"not base 32": [1, 2]}, '"Vectors/not base 32"'),
        ({key("a"): [1], key("<a>"): [2]}, 'duplicate.*"a"'),
        ({}, "no vectors"),
    ],
)
def test_broken_hdf5(tmp_path, vectors, match):
    path = write_hdf5(tmp_path / "v.h5", vectors)
    assert_invalid(path, match)
    if "duplicate" not in match:
        with pytest.raises(DataError, match=match):
            VectorFile(str(path)).transform(["a", "b"])


def test_hdf5_of_another_layout_or_cut_short(tmp_path):
    path = write_hdf5(tmp_path / "v.h5", {key("a"): [1.0]}, group="Other")
    assert_invalid(path, '"Vectors".*Other')
    write_hdf5(path, {key(f"e{i}"): np.arange(50.0) for i in range(50)})
    assert_cut_short_is_invalid(path, "cannot read", 0.0, 0.3, 0.9)


@pytest.fixture
def elsewhere(tmp_path):
    """Write files whose vector is in another file, in each way that HDF5 has."""
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret"
    secret.write_bytes(b"password")
    other = str(write_hdf5(tmp_path / "other.h5", {key("a"): [1.0, 2.0]}))
    inside = f"/Vectors/{key('a')}"

    def write(how):
        path = tmp_path / f"{how}.h5"
        with h5py.File(path, "w") as file:
            if how == "group":
                file["Vectors"] = h5py.ExternalLink(other, "/Vectors")
                return path
            group = file.create_group("Vectors")
            if how == "storage":
                group.create_dataset(key("a"), (8,), "u1", external=[(str(secret), 0, 8)])
            elif how == "virtual":
                layout = h5py.VirtualLayout((2,), "f8")
                layout[:] = h5py.VirtualSource(other, inside, (2,))
                group.create_virtual_dataset(key("a"), layout)
            else:
                external = h5py.ExternalLink(other, "/" if how == "soft" else inside)
                file["outside" if how == "soft" else f"Vectors/{key('a')}"] = external
            if how == "soft":
                group[key("a")] = h5py.SoftLink(f"/outside{inside}")
        return path

    return write


@pytest.mark.parametrize("how", ["storage", "virtual", "link", "soft", "group"])
def test_hdf5_never_reads_another_file(elsewhere, how):
    path = elsewhere(how)
    with pytest.raises(DataError):
        read_vectors(path)
    with pytest.raises(DataError):
        VectorFile(str(path)).transform(["a"])


@pytest.mark.parametrize("chunks", [None, (50_000_000,)])
def test_hdf5_that_declares_too_much(tmp_path, chunks):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        shape, most = ((10,), (None,)) if chunks else ((50_000_000,), None)
        options = {"chunks": chunks, "compression": "gzip"} if chunks else {}
        group = file.create_group("Vectors")
        group.create_dataset(key("a"), shape, "f4", maxshape=most, **options)
    with little_memory():
        assert_invalid(tmp_path / "v.h5", "bytes")
        with pytest.raises(DataError):
            VectorFile(str(tmp_path / "v.h5")).transform(["a"])
