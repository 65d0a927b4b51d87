"""Read the arrays of a table as TabReD stores them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.files import check_array
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import one_file, parse_json, read_text
from karat.errors import DataError, DefinitionError

#: the feature arrays, and the names of their columns
FEATURES = {"X_num": "number", "X_bin": "flag", "X_cat": "category"}
TABRED_KINDS = {
    "regression": "regression",
    "binclass": "classification",
    "multiclass": "classification",
}


@reader("tabred")
def read_tabred(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of ``X_num``, ``X_bin`` and ``X_cat`` with the targets ``Y``.

    ``info.json`` has the task type. The option ``split`` names a folder ``split-NAME`` with the
    indices of the training rows (``train_idx`` and ``val_idx``) and test rows (``test_idx``);
    other rows are dropped.
    """
    spec.check_options("split")
    folder = one_file(files, spec)
    path = folder / "info.json"
    try:
        kind = TABRED_KINDS[parse_json(read_text(path), path)["task_type"]]
    except (DataError, KeyError, TypeError, IndexError) as error:
        allowed = ", ".join(TABRED_KINDS)
        raise DataError(f"{path} must contain task_type, one of {allowed}.") from error
    if spec.kind and spec.kind != kind:
        raise DefinitionError(f"{spec.name}: kind is {spec.kind}, but {folder} has {kind}.")
    target = _array(folder, "Y", "biuf").ravel()
    columns: dict[str, np.ndarray] = {}
    for name, called in FEATURES.items():
        if (folder / f"{name}.npy").is_file():
            values = _features(folder, name, len(target))
            columns |= {f"{called} {i}": values[:, i] for i in range(values.shape[1])}
    if not columns:
        raise DataError(f"{folder} has none of {', '.join(FEATURES)}.")
    rows, part = np.arange(len(target)), None
    if (split := spec.options.get("split")) is not None:
        side = np.full(len(target), "", dtype=object)
        for file, name in (("train_idx", "train"), ("val_idx", "train"), ("test_idx", "test")):
            side[_indices(folder / f"split-{split}", file, len(target))] = name
        rows = np.flatnonzero(side != "")
        part = side[rows]
    items, questions = pd.DataFrame(columns).iloc[rows], pd.DataFrame({"row": rows})
    truth = target[rows] if kind == "regression" else target[rows].astype(np.int64)
    return Dataset(spec.name, items, questions, truth, kind, "table", part=part, about=spec.about)


def _features(folder: Path, name: str, rows: int) -> np.ndarray:
    values = _array(folder, name)
    if not values.ndim or len(values) != rows:
        raise DataError(f"{folder / name}.npy: expected {rows} rows as in Y, got {values.shape}.")
    values = values.reshape(rows, math.prod(values.shape[1:]))
    if name != "X_cat":
        return values
    try:
        return values.astype(str).astype(object)
    except (SystemError, ValueError) as error:
        raise DataError(f"{folder / name}.npy: a text is not Unicode.") from error


def _indices(folder: Path, name: str, rows: int) -> np.ndarray:
    indices = _array(folder, name, "iu").ravel()
    if len(indices) and not (0 <= indices.min() and indices.max() < rows):
        raise DataError(f"{folder / name}.npy: expected row numbers from 0 to {rows - 1}.")
    return indices


def _array(folder: Path, name: str, kinds: str = "biufSU") -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        with path.open("rb") as file:
            check_array(file, path.stat().st_size)
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, TypeError, SyntaxError) as error:
        raise DataError(f"{path} cannot be read as an array: {error}") from error
    if values.dtype.kind not in kinds:
        raise DataError(f"{path} has values of the type {values.dtype}, which is not supported.")
    return np.asarray(values)
