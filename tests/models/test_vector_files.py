"""Vector files of all formats; invalid files raise."""

import base64
import gzip
import io
import json
import pickle
import struct
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core import files
from karat.core.files import cache_folder
from karat.errors import DataError, MissingExtra
from karat.execution.embedding_cache import VectorCache
from karat.models import vector_files
from karat.models.adapters import adapt
from karat.models.vector_files import VectorFile, VectorLookup, read_vectors


def read(path, text, **how):
    path.write_text(text, encoding="utf-8", **how)
    ids, vectors = read_vectors(path)
    assert vectors.dtype == np.float32
    return ids, vectors.tolist()


TEXTS = {
    "blanks": "a 1 2\nb 3 4\n",
    "tabs": "a\t1\t2\nb\t3\t4\n",
    "a tab, then blanks": "a\t1 2\nb\t3 4\n",
    "word2vec": "2 2\na 1 2\nb 3 4\n",
    "word2vec with tabs": "2\t2\na\t1\t2\nb\t3\t4\n",
    "brackets": "<a> 1 2\n<b> 3 4\n",
    "spare blanks and lines": "  a  1  2 \n\n b 3 4\n\n",
    "carriage returns": "a 1 2\r\nb 3 4\r\n",
    "byte order mark, no last newline": "\ufeffa 1 2\nb 3 4",
    "exponents and signs": "a 1e0 2.0\nb +3 4\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_one_entity_and_its_numbers_per_line(tmp_path, text):
    assert read(tmp_path / "v.txt", text) == (["a", "b"], [[1, 2], [3, 4]])
    (tmp_path / "v.vec.gz").write_bytes(gzip.compress(text.encode()))
    assert read_vectors(tmp_path / "v.vec.gz")[0] == ["a", "b"]


@pytest.mark.parametrize(
    "name, text, ids",
    [
        ("v.txt", "a\u00a0b 1 2\n\u2028 3 4\n", ["a\u00a0b", "\u2028"]),
        ("v.txt", "http://x/y?<1> 1 2\nz> 3 4\n", ["http://x/y?<1>", "z>"]),
        ("v.txt", "1 1 2\n2 3 4\n", ["1", "2"]),
        ("v.csv", 'a,1,2\n"b, c",3,4\n', ["a", "b, c"]),
        ("v.csv", "id,d0,d1\na,1,2\nb,3,4\n", ["a", "b"]),
        ("v.tsv", "a\t1\t2\nb\t3\t4\n", ["a", "b"]),
    ],
)
def test_ids_are_not_changed(tmp_path, name, text, ids):
    assert read(tmp_path / name, text) == (ids, [[1, 2], [3, 4]])


def test_vectors_of_one_dimension_have_no_header(tmp_path):
    assert read(tmp_path / "v.txt", "1 5\n2 6\n") == (["1", "2"], [[5], [6]])


def test_binary_content_raises(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        read_vectors(tmp_path / "v.txt")
    (tmp_path / "v.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot read"):
        read_vectors(tmp_path / "v.txt.gz")


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


def test_angle_brackets_are_ignored_in_file_and_data(tmp_path):
    path = tmp_path / "tags.tsv"
    path.write_text("<script>\t1\t2\n<http://a.b/c d>\t3\t4\n")
    ids = ["<script>", "http://a.b/c d", "<http://a.b/c d>", "other"]
    got = VectorFile(str(path)).transform(pd.Series(ids, index=ids))
    assert got[:3].tolist() == [[1, 2], [3, 4], [3, 4]] and np.isnan(got[3]).all()


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
    kept = [e for e in VectorCache(cache_folder()).entries() if "ids" in e.about]
    assert [entry.about["ids"] for entry in kept] == [list("abcdefgh")]
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


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(NAMES), vectors=VECTORS)
    return tmp_path / "v.npz"


def test_size_is_checked(npz):
    assert_read(npz)
    assert read_vectors(npz, 2)[1].shape == (3, 2)
    assert_invalid(npz, "200.* 2", size=200)
    with pytest.raises(DataError, match="200"):
        VectorFile(str(npz), size=200).transform(NAMES)
    encoder = VectorFile(str(npz), size=2)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.get_params() == {"path": str(npz), "size": 2, "format": None}
    assert encoder.fingerprint() != VectorFile(str(npz)).fingerprint()


def assert_cut_short_is_invalid(path, match, *shares):
    whole = path.read_bytes()
    for share in shares:
        path.write_bytes(whole[: int(share * len(whole))])
        assert_invalid(path, match)


def test_arrays_that_are_cut_short(npz):
    assert_cut_short_is_invalid(npz, "not an .npz", 0.1, 0.5, 0.95)


def test_a_vector_that_is_not_finite_is_named(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["a", "b"]), vectors=np.array([[1], [np.inf]]))
    assert_invalid(tmp_path / "v.npz", '"b".*NaN')


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
    rows = vector_files.read_hdf5_rows(tmp_path / "v.h5", [*names[::-3], "unknown"])
    np.testing.assert_array_equal(rows[:-1], known[::-3])
    assert np.isnan(rows[-1]).all()


def test_hdf5_that_opens_few_datasets(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "v.h5", {key(f"e{i}"): np.full(4, i, "f8") for i in range(200)})
    opened, row = [], vector_files._row
    monkeypatch.setattr(vector_files, "_row", lambda *given: opened.append(given) or row(*given))
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


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd", "abcde", "é", "http://x.org/a"])
def test_names_in_base_32(tmp_path, text):
    assert vector_files._name(key(text), tmp_path) == text


@pytest.mark.parametrize("text", ["A", "AB======C", "ME", "me======", "M1======", "ME=====", "__"])
def test_names_that_are_not_in_base_32(tmp_path, text):
    with pytest.raises(DataError, match="base 32"):
        vector_files._name(text, tmp_path)


def test_of_hdf5_only_the_rows_asked_for_are_read(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "v.hdf5", {key(f"e{i:03}"): np.full(4, i) for i in range(100)})
    read, row = [], vector_files._row

    def watched(group, key, *how):
        read.append(base64.b32decode(key).decode())
        return row(group, key, *how)

    monkeypatch.setattr(vector_files, "_row", watched)
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


@contextmanager
def little_memory():
    """Fail if Python and numpy allocate more than 50 MB at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


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


@pytest.mark.parametrize(
    "text",
    [
        "1 30000000\na 1 2\n",
        "1000000 300\na 1 2\n",
        "a " + "1 " * 20_000 + "\n" + "b 1\n" * 20_000,
        "1" * 5_000 + " 2\na 1 2\n",
    ],
    ids=["wide", "long", "short lines", "many digits"],
)
def test_text_that_declares_too_much(tmp_path, text):
    (tmp_path / "v.txt").write_text(text)
    with little_memory(), pytest.raises(DataError):
        read_vectors(tmp_path / "v.txt")


def test_compressed_text_that_expands_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FREE_BYTES", 10_000)
    monkeypatch.setattr(files, "MAX_RATIO", 10)
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(b"a 1\n" + b"\n" * 100_000))
    assert_invalid(path, "bytes")
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "v.txt.zst"
    path.write_bytes(zstandard.compress(b"a 1\n" + b"\n" * 100_000))
    assert_invalid(path, "bytes")


def npy(shape, kind="<f4", content=b""):
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


@pytest.mark.parametrize(
    "vectors", [npy((20_000_000, 1)), npy((1, 2)), npy((10**15, 0)), npy((10**15,), "<U0")]
)
def test_arrays_that_declare_too_much(tmp_path, vectors):
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("ids.npy", npy((1,), "<U1", b"a\0\0\0"))
        file.writestr("vectors.npy", vectors)
    with little_memory():
        assert_invalid(path, "ids")


def test_columns_that_repeat_too_much(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr(files, "FREE_BYTES", 1_000_000)
    path = tmp_path / "v.parquet"
    one = pyarrow.array(["a" * 100_000])
    indices = pyarrow.array(np.zeros(1_000, "i4"))
    names = pyarrow.DictionaryArray.from_arrays(indices, one)
    numbers = pyarrow.array(np.zeros(1_000, "f4"))
    parquet.write_table(pyarrow.table({"id": names, "x": numbers}), path, compression="zstd")
    assert_invalid(path, "bytes")
    numbers = pyarrow.array(np.zeros(1_000_000, "f4"))
    parquet.write_table(pyarrow.table({"x": numbers}), path, compression="zstd")
    assert_invalid(path, "bytes")


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
    "content, match",
    [
        (b"", "no vectors"),
        (b"a 1 2\nb 3 4\n", "binary format"),
        (b"\x00" * 500, "binary format"),
        (word2vec()[:-1], "truncated.* 3 .* 2 "),
        (word2vec()[:20], "truncated"),
        (b"999999999 300\n" + b"a 1234", "truncated"),
        (word2vec() + b"more", "more than the 3"),
        (word2vec(names=["a", "b", "a"]), 'duplicate.*"a"'),
        (b"1 1\n\xff \0\0\0\0", "name 1 is not UTF-8"),
        (b"1 1\na \0\0\xc0\x7f", '"a".*NaN'),
    ],
)
def test_broken_word2vec_binary(tmp_path, content, match):
    (tmp_path / "v.bin").write_bytes(content)
    assert_invalid(tmp_path / "v.bin", match)


@pytest.fixture(params=["parquet", "feather"])
def write_columns(request, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    def written(columns, **types):
        table = pa.table({n: pa.array(v, types.get(n)) for n, v in columns.items()})
        path = tmp_path / f"v.{request.param}"
        (parquet.write_table if request.param == "parquet" else feather.write_feather)(table, path)
        return path

    return written


def test_columns_of_numbers_or_of_lists(write_columns):
    pa = pytest.importorskip("pyarrow")
    lists = VECTORS.tolist()
    assert_read(write_columns({"id": NAMES, "d0": VECTORS[:, 0], "d1": VECTORS[:, 1]}))
    assert_read(write_columns({"v": lists, "name": NAMES}))
    assert_read(write_columns({"v": lists, "name": NAMES}, v=pa.list_(pa.float32(), 2)))
    assert_read(
        write_columns(
            {"id": NAMES, "v": lists}, id=pa.large_string(), v=pa.large_list(pa.float64())
        )
    )
    assert_read(write_columns({"id": pa.array(NAMES).dictionary_encode(), "v": lists}))
    assert_read(write_columns({"id": NAMES, "d": [1, 2, 3]}), NAMES, [[1], [2], [3]])


def test_a_frame_with_the_names_as_its_index(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(VECTORS, NAMES, ["x", "y"]).to_parquet(tmp_path / "v.parquet")
    assert_read(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    "columns, match",
    [
        ({"id": [1, 2], "v": [1.0, 2.0]}, "string column.*got 0"),
        ({"a": ["x"], "b": ["y"], "v": [1.0]}, "got 2: a, b"),
        ({"a": ["x", "y"], "v": [[1.0], [1.0, 2.0]]}, "row 2: .* 1 .* 2"),
        ({"a": ["x", "y"], "v": [1.0, None]}, 'row 2: .*"v"'),
        ({"a": ["x", None], "v": [1.0, 2.0]}, 'row 2: .*"a"'),
        ({"a": ["x"], "v": [[None]]}, 'lists in "v"'),
        ({"a": ["x"], "v": [[True]]}, 'lists in "v"'),
        ({"a": ["x"], "v": [True]}, 'column "v"'),
        ({"a": ["x"], "v": [np.nan]}, '"x".*NaN'),
        ({"a": ["x", "x"], "v": [1.0, 2.0]}, 'duplicate.*"x"'),
        ({"a": ["x"]}, "1 ids"),
    ],
)
def test_broken_columns(write_columns, columns, match):
    assert_invalid(write_columns(columns), match)


def test_columns_that_are_cut_short(write_columns):
    path = write_columns({"id": NAMES, "v": VECTORS.tolist()})
    assert_cut_short_is_invalid(path, "cannot read", 0, 0.5, 0.95)


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
