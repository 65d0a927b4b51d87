"""The reader of TabReD's folders of arrays."""

from __future__ import annotations

import json

import numpy as np
import pytest

from karat.data.load import DataSpec
from karat.data.tabred import read_tabred
from karat.definitions.loader import Definitions
from karat.errors import DataError, DefinitionError


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
    assert data.truth.tolist() == [0, 1, 1, 0] and data.kind == "classes" and data.part is None


def test_split_folder_selects_rows(folder):
    data = read_tabred(folder, DataSpec("t", options={"split": "default"}))
    assert data.part.tolist() == ["train", "test", "train"]
    assert data.truth.tolist() == [0, 1, 0] and data.items.index.tolist() == [0, 2, 3]


def test_numbers_stay_numbers(folder):
    (folder / "info.json").write_text('{"task_type": "regression"}')
    np.save(folder / "Y.npy", np.array([[0.5], [1.5], [2.5], [3.5]], np.float32))
    data = read_tabred(folder, DataSpec("t"))
    assert data.kind == "numbers" and data.truth.tolist() == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("info.json", b"{}", "task_type"),
        ("info.json", b"nothing", "task_type"),
        ("Y.npy", b"damaged", r"Y\.npy"),
    ],
)
def test_broken_folder_of_arrays(folder, file, content, word):
    (folder / file).write_bytes(content)
    with pytest.raises(DataError, match=word):
        read_tabred(folder, DataSpec("t"))


def test_folder_without_features_and_a_wrong_kind(folder):
    with pytest.raises(DefinitionError, match="numbers"):
        read_tabred(folder, DataSpec("t", kind="numbers"))
    for name in ("X_num", "X_cat"):
        (folder / f"{name}.npy").unlink()
    with pytest.raises(DataError, match="X_num"):
        read_tabred(folder, DataSpec("t"))


def test_all_eight_and_all_of_carte_are_defined():
    names = Definitions.load().names("datasets")
    assert sum(name.startswith("tabred_") for name in names) == 8
    # 51 less the four that the package carries
    assert sum(name.startswith("carte_") for name in names) == 47
