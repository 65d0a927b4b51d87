"""Datasets in the formats of the AutoML Benchmark."""

from __future__ import annotations

import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.compat.amlb.readers import amlb_table
from karat.core.files import cache_folder
from karat.data import download as archive
from karat.data.load_dataset import load_dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.execution.splits import split

pytestmark = pytest.mark.usefixtures("download_settings")


HOW = {"use": "karat.compat.amlb.readers:amlb_folds", "folds": 4}


def csv(first: int, rows: int, last: str = "y") -> str:
    """Return a table whose x counts from ``first``, with alternating classes a and B."""
    lines = [f"{i},{i % 3},{'aB'[i % 2]}" for i in range(first, first + rows)]
    return "\n".join([f"x,k,{last}", *lines, ""])


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def xs(data, rows) -> list[int]:
    return data.take(rows).frame()["x"].tolist()


def test_single_file_is_cut_into_stratified_folds(here):
    Path("t.csv").write_text(csv(0, 40))
    data = amlb_table("t", "t.csv")
    folds = split(data, HOW, 42)
    assert data.classes == ("B", "a") and len(folds) == 4
    assert sorted(row for fold in folds for row in fold.test) == list(range(40))
    for fold in folds:
        assert sorted(data.target[fold.test].tolist()) == ["B"] * 5 + ["a"] * 5
    assert list(data.items.columns) == ["x", "k"]


@pytest.mark.parametrize(
    ("columns", "facts", "target"),
    [
        ("a,Target,class", {}, "Target"),
        ("CLASS,b,c", {}, "CLASS"),
        ("a,b,c", {}, "c"),
        ("a,b,target", {"target": "b"}, "b"),
        ("a,b,target", {"target": 0}, "a"),
    ],
)
def test_which_column_is_the_target(here, columns, facts, target):
    Path("t.csv").write_text(f"{columns}\nu,v,w\nv,w,u\nu,w,w\n")
    data = amlb_table("t", {"path": "t.csv", **facts})
    assert list(data.items.columns) == [c for c in columns.split(",") if c != target]


def test_labels_are_not_converted(here):
    Path("t.csv").write_text("x,y\n1,NA\n2,None\n3,na\n4,NA\n")
    assert amlb_table("t", "t.csv").target.tolist() == ["NA", "None", "na", "NA"]


def test_type_is_given_or_inferred_with_a_warning(here):
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    with pytest.warns(UserWarning, match='"y"'):
        assert amlb_table("t", "t.csv").kind == "classification"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = amlb_table("t", {"path": "t.csv", "type": "regression"})
        assert data.kind == "regression" and data.target.dtype.kind in "if"
        assert amlb_table("t", {"path": "t.csv", "type": "binary"}).classes == ("0", "1")
        Path("f.csv").write_text("x,y\n1,0.5\n2,1.5\n3,2.25\n")
        assert amlb_table("f", "f.csv").kind == "regression"


def test_arff_parquet_and_features(here):
    pytest.importorskip("pyarrow")
    Path("t.arff").write_text(
        "@relation t\n@attribute x real\n@attribute class {a,B}\n@attribute z real\n@data\n"
        "1,a,3\n2,B,4\n3,a,5\n"
    )
    pd.DataFrame({"x": [1.5, 2, 3], "w": [0, 0, 1], "y": ["a", "b", "a"]}).to_parquet("t.parquet")
    assert amlb_table("t", "t.arff").target.tolist() == ["a", "B", "a"]
    data = amlb_table("t", {"path": "t.parquet", "features": ["x"]})
    assert list(data.items.columns) == ["x"] and data.target.tolist() == ["a", "b", "a"]
    data = amlb_table("t", {"path": "t.parquet", "features": [{"name": "w", "data_type": "int"}]})
    assert list(data.items.columns) == ["w"]


def pairs(count: int = 2) -> list[str]:
    """Write ``count`` pairs: fold i trains on x from 100 i and tests x from 100 i + 50."""
    files = []
    for i in range(count):
        for part, first, rows in (("train", 100 * i, 6), ("test", 100 * i + 50, 3)):
            files.append(f"d_{part}_{i}.csv")
            Path(files[-1]).write_text(csv(first, rows))
    return files


def check_folds(data, count: int = 2) -> None:
    folds = split(data, HOW, 1)
    assert len(folds) == count
    for i, fold in enumerate(folds):
        assert xs(data, fold.train) == list(range(100 * i, 100 * i + 6))
        assert xs(data, fold.test) == list(range(100 * i + 50, 100 * i + 53))


@pytest.mark.parametrize("form", ["list", "both", "path", "folder", "zip", "tar", "nested"])
def test_lists_folders_and_archives_keep_their_folds(here, form):
    files = pairs()
    Path("inside/deep").mkdir(parents=True)
    for file in files:
        Path("inside/deep" if form == "nested" else "inside", file).write_text(
            Path(file).read_text()
        )
    with zipfile.ZipFile("d.zip", "w") as made:
        for file in files:
            made.write(file, f"d/{file}")
        made.writestr("__MACOSX/._d_train_0.csv", "x")
    with tarfile.open("d.tar.gz", "w:gz") as made_tar:
        for file in files:
            made_tar.add(file)
    dataset = {
        "list": files,
        "both": {"train": files[::2], "test": files[1::2]},
        "path": {"path": {"train": files[::2], "test": files[1::2]}, "target": "y"},
        "folder": "inside",
        "nested": "inside",
        "zip": "d.zip",
        "tar": {"path": "d.tar.gz", "type": "binary"},
    }[form]
    check_folds(amlb_table("d", dataset))


def test_one_pair_and_a_label_that_only_the_test_file_has(here):
    Path("train.csv").write_text("x,y\n1,a\n2,B\n")
    Path("test.csv").write_text("x,y\n3,c\n4,a\n")
    data = amlb_table("d", {"train": "train.csv", "test": "test.csv"})
    (fold,) = split(data, HOW, 1)
    assert data.classes == ("B", "a", "c") and data.target[fold.test].tolist() == ["c", "a"]


def test_folds_are_in_numeric_order(here):
    pairs(11)
    check_folds(amlb_table("d", str(here)), 11)


def test_folds_stay_valid_in_a_sample(here):
    data = amlb_table("d", pairs())
    few = data.sample(15, np.random.default_rng(0))
    for i, fold in enumerate(split(few, HOW, 1)):
        assert set(xs(few, fold.train)) <= set(range(100 * i, 100 * i + 6))
        assert set(xs(few, fold.test)) <= set(range(100 * i + 50, 100 * i + 53))


def test_relative_path_is_below_the_yaml_file(here):
    Path("deep").mkdir()
    Path("deep/t.csv").write_text(csv(0, 8))
    load = {"use": "karat.compat.amlb.readers:amlb_table", "dataset": "t.csv"}
    data = load_dataset("t", {"load": load}, here / "deep")
    assert len(data) == 8


def test_placeholders_refer_to_data_folders(here, monkeypatch):
    Path("store").mkdir()
    Path("store/t.csv").write_text(csv(0, 8))
    with pytest.raises(DataError, match="KARAT_DATA"):
        amlb_table("t", "{input}/t.csv")
    monkeypatch.setenv("KARAT_DATA", str(here / "store"))
    assert len(amlb_table("t", "{input}/t.csv")) == len(amlb_table("t", "{user}/t.csv")) == 8


def test_url_is_downloaded_once(stub, monkeypatch):
    address = stub.put("/d/t.csv", stub.body(csv(0, 8).encode()))
    assert len(amlb_table("t", address)) == len(amlb_table("t", address)) == 8
    assert stub.asked == ["/d/t.csv"]
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert len(amlb_table("t", address)) == 8
    with pytest.raises(Unavailable, match="KARAT_OFFLINE"):
        amlb_table("t", stub.address + "/other.csv")


def test_missing_and_unsupported_urls(stub):
    with pytest.raises(Unavailable, match="404"):
        amlb_table("t", stub.address + "/t.csv")
    assert not list((cache_folder() / "amlb").rglob("*.csv"))
    with pytest.raises(DataError, match="s3:"):
        amlb_table("t", "s3://bucket/t.csv")


def test_unsafe_archive(here):
    with zipfile.ZipFile("d.zip", "w") as made:
        made.writestr("a/../../out.csv", "x,y\n1,a\n")
    with pytest.raises(DataError, match="unsafe"):
        amlb_table("d", "d.zip")
    assert not list(cache_folder().rglob("*.csv")) and not Path("../out.csv").exists()


def test_archive_that_is_too_large(here, monkeypatch):
    with zipfile.ZipFile("d.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("d.csv", b"x" * 50_000)
    monkeypatch.setattr(archive, "LIMIT", 10_000)
    with pytest.raises(DataError, match=r"d\.zip"):
        amlb_table("d", "d.zip")
    with zipfile.ZipFile("many.zip", "w") as made:
        for i in range(10_001):
            made.writestr(f"{i}.txt", "")
    with pytest.raises(DataError, match="000"):
        amlb_table("d", "many.zip")
    assert not list(cache_folder().rglob("unpacked-*"))


@pytest.mark.parametrize(
    ("dataset", "kind", "word"),
    [
        (["a.csv"], DefinitionError, "files"),
        ({"train": ["a.csv", "b.csv"], "test": "a.csv"}, DefinitionError, "2 train and 1 test"),
        ({"train": "a.csv"}, DefinitionError, "train"),
        ({"target": "y"}, DefinitionError, "train"),
        ({"path": 3}, DefinitionError, "path"),
        ({"train": "a.csv", "test": "a.csv"}, DataError, "train"),
        ("a.cvs", DataError, r'"a\.csv"'),
        ("a.txt", DataError, r"\.parquet"),
        ({"path": "a.csv", "target": "z"}, DataError, '"z" is not a column'),
        ({"path": "a.csv", "target": 9}, DefinitionError, "there is no column 9"),
        ({"path": "a.csv", "type": "timeseries"}, DefinitionError, '"timeseries"'),
        ({"path": "three.csv", "type": "binary"}, DataError, '"y"'),
        ({"path": "a.csv", "features": [1]}, DefinitionError, "features"),
        ({"path": "a.csv", "features": ["q"]}, DataError, '"q" is not a column'),
        ({"train": "a.csv", "test": "other.csv"}, DataError, '"k"'),
        ("lonely", DataError, r"d_train_1\.csv"),
        ("crowd", DataError, r"X_train\.csv"),
        ("empty", DataError, "tables"),
    ],
)
def test_invalid_definitions(here, dataset, kind, word):
    Path("a.csv").write_text(csv(0, 8))
    Path("a.txt").write_text("x")
    Path("other.csv").write_text("x,y\n1,a\n2,B\n")
    Path("three.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    for folder, files in {
        "lonely": ("d_train_0.csv", "d_test_0.csv", "d_train_1.csv"),
        "crowd": ("a.csv", "b.csv"),
        "empty": (),
    }.items():
        Path(folder).mkdir()
        for file in files:
            Path(folder, file).write_text(csv(0, 4))
    with pytest.raises(kind, match=word):
        amlb_table("d", dataset)
