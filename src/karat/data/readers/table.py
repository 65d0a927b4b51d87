"""The reader "tabred": a folder of arrays in the format of the TabReD benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from karat.data.load import DataSpec, Files
from karat.data.questions import one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

#: the feature arrays, and the names of their columns
FEATURES = {"X_num": "number", "X_bin": "flag", "X_cat": "category"}
KINDS = {"regression": "numbers", "binclass": "classes", "multiclass": "classes"}


@reader("tabred")
def read_tabred(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of ``X_num``, ``X_bin`` and ``X_cat`` with the targets ``Y``.

    ``info.json`` has the task type. The option ``split`` names a folder ``split-NAME`` with the
    indices of the training rows (``train_idx`` and ``val_idx``) and test rows (``test_idx``);
    other rows are dropped.
    """
    spec.check_options("split")
    folder = one_file(files, spec)
    kind = _kind(folder)
    if spec.kind and spec.kind != kind:
        raise DefinitionError(f"{spec.name}: kind is {spec.kind}, but {folder} has {kind}.")
    target = _array(folder, "Y").ravel()
    names = [name for name in FEATURES if (folder / f"{name}.npy").is_file()]
    if not names:
        raise DataError(f"{folder} has none of {', '.join(FEATURES)}.")
    columns: dict[str, np.ndarray] = {}
    for name in names:
        values = _array(folder, name).reshape(len(target), -1)
        values = values.astype(str).astype(object) if name == "X_cat" else values
        columns |= {f"{FEATURES[name]} {i}": values[:, i] for i in range(values.shape[1])}
    rows, part = _split(folder, spec, len(target))
    return Dataset(
        name=spec.name,
        items=pd.DataFrame(columns).iloc[rows],
        questions=pd.DataFrame({"row": rows}),
        truth=target[rows] if kind == "numbers" else target[rows].astype(np.int64),
        kind=kind,
        modality="table",
        part=part,
        about=spec.about,
    )


def _kind(folder: Path) -> str:
    path = folder / "info.json"
    try:
        return KINDS[json.loads(path.read_text(encoding="utf-8"))["task_type"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} must contain task_type, one of {', '.join(KINDS)} ({type(error).__name__})."
        ) from error


def _array(folder: Path, name: str) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an array: {error}") from error


def _split(folder: Path, spec: DataSpec, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows to keep and the part of each; all rows without a split."""
    name = spec.options.get("split")
    if name is None:
        return np.arange(size), None
    side = np.full(size, "", dtype=object)
    for file, part in (("train_idx", "train"), ("val_idx", "train"), ("test_idx", "test")):
        side[_array(folder / f"split-{name}", file)] = part
    rows = np.flatnonzero(side != "")
    return rows, side[rows]
