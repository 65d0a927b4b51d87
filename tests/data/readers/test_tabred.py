"""Folders of arrays."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from karat.data.load_dataset import DataSpec
from karat.data.readers.tabred import read_tabred
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
