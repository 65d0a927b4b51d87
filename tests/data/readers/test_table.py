"""Readers of tables, of folders of arrays, and scikit-learn's own tables."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.config.loading import Definitions
from karat.data.load_dataset import DataSpec, load_dataset
from karat.data.readers.table import read_table, read_tabred, sklearn_table
from karat.errors import DataError, DefinitionError


def test_class_names_match_their_codes():
    cancer = sklearn_table("cancer", "load_breast_cancer", target="y")
    assert cancer.items.shape == (569, 30) and "y" not in cancer.items
    assert cancer.classes == ("benign", "malignant")
    assert cancer.target.tolist().count("malignant") == 212
    assert cancer.about["source"] == "scikit-learn, load_breast_cancer"
    assert sklearn_table("digits", "load_digits").target[:3].tolist() == ["0", "1", "2"]
    diabetes = sklearn_table("diabetes", "load_diabetes")
    assert diabetes.kind == "regression" and diabetes.target[:2].tolist() == [151.0, 75.0]
    with pytest.raises(DefinitionError, match='"load_iris"'):
        sklearn_table("iris", "load_irs")


CSV = "id,age,city,fold,churn\n1,31,Oslo,train,NA\n2,,Rome,test,no\n3,45,Oslo,test,NA\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "churn.csv"
    path.write_text(CSV)
    return path


def test_rows_are_items_and_one_column_is_the_target(path):
    given = {"path": path, "target": "churn", "kind": "classification", "drop": ["id"]}
    data = load_dataset("churn", {**given, "group": "city", "part": "fold"})
    assert list(data.items.columns) == ["age"]
    assert data.items["age"].tolist()[::2] == [31.0, 45.0]
    assert data.target.tolist() == ["NA", "no", "NA"]
    assert data.classes == ("NA", "no")
    assert data.group.tolist() == ["Oslo", "Rome", "Oslo"]
    assert data.part.tolist() == ["train", "test", "test"]
    assert (data.kind, data.modality, data.fields) == ("classification", "table", ["row"])


def years(folder: Path, answers: str = "id,y\n3,1\n4,0\n") -> Path:
    (folder / "first.csv").write_text("id,x,year,y\n1,a,2015,0\n2,b,2015,1\n")
    (folder / "later.csv").write_text("id,x,year\n4,c,2016\n3,a,2016\n")
    (folder / "targets.csv").write_text(answers)
    return folder


YEARS = {"files": ["first.csv", "later.csv"], "answers": "targets.csv", "key": "id"}


def test_rows_of_several_files_with_targets_of_another(tmp_path):
    spec = DataSpec("years", target="y", kind="classification", group="year", drop=("id",))
    data = read_table(years(tmp_path), replace(spec, options=YEARS))
    assert data.items["x"].tolist() == ["a", "b", "c", "a"] and list(data.items) == ["x"]
    assert list(map(int, data.target)) == [0, 1, 0, 1]
    assert data.group.tolist() == [2015, 2015, 2016, 2016]


@pytest.mark.parametrize(
    ("options", "answers", "word"),
    [
        ({**YEARS, "files": "first.csv"}, None, "list"),
        ({**YEARS, "files": ["frist.csv"]}, None, '"first.csv"'),
        ({**YEARS, "key": None}, None, '"key"'),
        (YEARS, "id,y\n3,1\n", '"4"'),
        (YEARS, "id,y\n3,1\n3,0\n", "duplicate"),
    ],
)
def test_wrong_files_of_a_folder(tmp_path, options, answers, word):
    folder = years(tmp_path, answers) if answers else years(tmp_path)
    with pytest.raises((DataError, DefinitionError), match=word):
        read_table(folder, DataSpec("years", target="y", kind="classification", options=options))


def test_levels_that_not_all_files_have(tmp_path):
    pytest.importorskip("pyarrow")
    for name, levels in (("one", ["a", "b"]), ("two", ["b", "c"])):
        table = pd.DataFrame({"x": pd.Categorical(levels), "y": ["no", "yes"]})
        table.to_parquet(tmp_path / f"{name}.pq")
    options = {"files": ["one.pq", "two.pq"]}
    data = read_table(tmp_path, DataSpec("levels", target="y", options=options))
    assert data.items["x"].cat.categories.tolist() == ["a", "b", "c"]


def test_numbers_and_texts_in_a_table(path):
    data = read_table(path, DataSpec("ids", target="id", kind="regression"))
    assert data.target.tolist() == [1, 2, 3]
    data = read_table(path, DataSpec("c", target="churn", fields=("city",), modality="text"))
    assert data.modality == "text"
    assert data.items.tolist() == ["Oslo", "Rome"]


def test_missing_settings_and_columns(path):
    with pytest.raises(DefinitionError, match='"target: NAME"'):
        read_table(path, DataSpec("churn"))
    with pytest.raises(DataError, match='"churn"'):
        read_table(path, DataSpec("churn", target="chrun", kind="classification"))
    with pytest.raises(DataError, match='"age"'):
        read_table(path, DataSpec("churn", target="churn", fields=("agee",)))
    with pytest.raises(DefinitionError, match='no option "delimiter"'):
        read_table(path, DataSpec("churn", target="churn", options={"delimiter": ","}))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "info.json").write_text(json.dumps({"name": "t", "task_type": "binclass"}))
    np.save(tmp_path / "X_num.npy", np.array([[1.5, np.nan], [2, 3], [4, 5], [6, 7]], np.float32))
    np.save(tmp_path / "X_cat.npy", np.array([[7], [8], [7], [9]]))
    np.save(tmp_path / "Y.npy", np.array([0, 1, 1, 0], np.uint64))
    split = tmp_path / "split-default"
    split.mkdir()
    for name, rows in (("train_idx", [0]), ("val_idx", [3]), ("test_idx", [2])):
        np.save(split / f"{name}.npy", np.array(rows))
    return tmp_path


def test_arrays_are_joined(folder):
    data = read_tabred(folder, DataSpec("t"))
    assert list(data.items.columns) == ["number 0", "number 1", "category 0"]
    assert data.items["category 0"].tolist() == ["7", "8", "7", "9"]
    assert np.isnan(data.items["number 1"][0]) and data.items["number 0"].tolist()[1:] == [2, 4, 6]
    assert (
        data.target.tolist() == [0, 1, 1, 0] and data.kind == "classification" and data.part is None
    )


def test_split_folder_selects_rows_and_numbers_stay_numbers(folder):
    data = read_tabred(folder, DataSpec("t", options={"split": "default"}))
    assert data.part.tolist() == ["train", "test", "train"]
    assert data.target.tolist() == [0, 1, 0] and data.items.index.tolist() == [0, 2, 3]
    (folder / "info.json").write_text('{"task_type": "regression"}')
    np.save(folder / "Y.npy", np.array([[0.5], [1.5], [2.5], [3.5]], np.float32))
    data = read_tabred(folder, DataSpec("t"))
    assert data.kind == "regression" and data.target.tolist() == [0.5, 1.5, 2.5, 3.5]


def array(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("info.json", b"{}", "task_type"),
        ("info.json", b"nothing", "task_type"),
        ("Y.npy", b"damaged", r"Y\.npy"),
        ("info.json", b"[" * 100_000, "task_type"),
        ("info.json", b'{"task_type": [1]}', "task_type"),
        ("Y.npy", array(np.array(["a", "b", "c", "d"])), r"Y\.npy"),
        ("Y.npy", array(np.array(5)), r"X_num\.npy"),
        ("Y.npy", array(np.array([0, 1])).replace(b"(2,)", b"(9,)"), r"Y\.npy"),
        ("X_num.npy", array(np.zeros(3)), r"X_num\.npy"),
        ("X_num.npy", array(np.array(1.0)), r"X_num\.npy"),
        ("split-default/train_idx.npy", array(np.array([7])), r"train_idx\.npy"),
        ("split-default/train_idx.npy", array(np.array([0.5])), r"train_idx\.npy"),
    ],
)
def test_broken_folder_of_arrays(folder, file, content, word):
    (folder / file).write_bytes(content)
    with pytest.raises(DataError, match=word):
        read_tabred(folder, DataSpec("t", options={"split": "default"}))


def test_folder_without_features_and_a_wrong_kind(folder):
    with pytest.raises(DefinitionError, match="regression"):
        read_tabred(folder, DataSpec("t", kind="regression"))
    for name in ("X_num", "X_cat"):
        (folder / f"{name}.npy").unlink()
    with pytest.raises(DataError, match="X_num"):
        read_tabred(folder, DataSpec("t"))


def test_all_eight_and_all_of_carte_are_defined():
    names = Definitions.load().names("datasets")
    assert sum(name.startswith("tabred_") for name in names) == 8
    # 51 less the four that the package carries
    assert sum(name.startswith("carte_") for name in names) == 47
