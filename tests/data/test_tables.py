from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load import DataSpec, load_dataset
from karat.data.tables import read_table
from karat.errors import DataError, DefinitionError

CSV = "id,age,city,fold,churn\n1,31,Oslo,train,NA\n2,,Rome,test,no\n3,45,Oslo,test,NA\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "churn.csv"
    path.write_text(CSV)
    return path


def test_rows_are_items_and_one_column_is_the_target(path):
    given = {
        "path": path,
        "target": "churn",
        "kind": "classes",
        "drop": ["id"],
        "group": "city",
        "part": "fold",
    }
    data = load_dataset("churn", given)
    assert list(data.items.columns) == ["age", "city"]
    assert data.items["age"].tolist()[::2] == [31.0, 45.0]
    assert data.truth.tolist() == ["NA", "no", "NA"]
    assert data.classes == ("NA", "no")
    assert data.group.tolist() == ["Oslo", "Rome", "Oslo"]
    assert data.part.tolist() == ["train", "test", "test"]
    assert (data.kind, data.modality, data.fields) == ("classes", "table", ["row"])


def test_fields_are_the_columns_to_keep(path):
    data = read_table(path, DataSpec("churn", target="churn", kind="classes", fields=("age",)))
    assert list(data.items.columns) == ["age"]


def test_numbers(path):
    data = read_table(path, DataSpec("ids", target="id", kind="numbers"))
    assert data.truth.tolist() == [1, 2, 3]


def test_empty_label_is_an_error_of_the_data(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,a\n2,\n3,b\n")
    with pytest.raises(DataError, match='"y"'):
        read_table(path, DataSpec("t", target="y", kind="classes"))


def test_train_and_test_files(tmp_path):
    for name, text in (("a", "x,y\n1,NA\n2,b\n"), ("b", "x,y\n3,b\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    files = {"train": tmp_path / "a.csv", "test": tmp_path / "b.csv"}
    data = read_table(files, DataSpec("t", target="y", kind="classes"))
    assert data.part.tolist() == ["train", "train", "test"]
    assert data.truth.tolist() == ["NA", "b", "b"]
    assert list(data.items.columns) == ["x"]


def test_texts_in_a_table_are_columns(path):
    data = read_table(path, DataSpec("c", target="churn", fields=("city",), modality="text"))
    assert data.modality == "text"
    assert data.items.tolist() == ["Oslo", "Rome"]


def test_missing_settings_and_columns(path):
    with pytest.raises(DefinitionError, match='"target: NAME"'):
        read_table(path, DataSpec("churn"))
    with pytest.raises(DataError, match='"churn"'):
        read_table(path, DataSpec("churn", target="chrun", kind="classes"))
    with pytest.raises(DataError, match='"age"'):
        read_table(path, DataSpec("churn", target="churn", fields=("agee",)))
    with pytest.raises(DefinitionError, match='no option "delimiter"'):
        read_table(path, DataSpec("churn", target="churn", options={"delimiter": ","}))
