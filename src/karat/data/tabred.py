"""The reader "tabred": a folder of arrays, as the benchmark TabReD keeps its tables."""

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

#: the arrays of features, and how their columns are called
FEATURES = {"X_num": "number", "X_bin": "flag", "X_cat": "category"}
KINDS = {"regression": "numbers", "binclass": "classes", "multiclass": "classes"}


@reader("tabred")
def read_tabred(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of ``X_num``, ``X_bin`` and ``X_cat`` with the answers ``Y``.

    ``info.json`` says what is asked. The option ``split`` names a folder ``split-NAME`` whose
    arrays say which rows train (``train_idx`` and ``val_idx``) and which test (``test_idx``);
    others are left out.
    """
    spec.check_options("split")
    folder = one_file(files, spec)
    kind = _kind(folder)
    if spec.kind and spec.kind != kind:
        raise DefinitionError(f"{spec.name}: kind is {spec.kind}, and {folder} holds {kind}.")
    truth = _array(folder, "Y").ravel()
    parts = [name for name in FEATURES if (folder / f"{name}.npy").is_file()]
    if not parts:
        raise DataError(f"{folder} has none of {', '.join(FEATURES)}.")
    columns: dict[str, np.ndarray] = {}
    for name in parts:
        values = _array(folder, name).reshape(len(truth), -1)
        words = values.astype(str).astype(object) if name == "X_cat" else values
        columns |= {f"{FEATURES[name]} {i}": words[:, i] for i in range(words.shape[1])}
    rows, part = _split(folder, spec, len(truth))
    return Dataset(
        name=spec.name,
        items=pd.DataFrame(columns).iloc[rows],
        questions=pd.DataFrame({"row": rows}),
        truth=truth[rows] if kind == "numbers" else truth[rows].astype(np.int64),
        kind=kind,
        modality="table",
        part=part,
        about=spec.about,
    )


def _kind(folder: Path) -> str:
    path = folder / "info.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))["task_type"]
        return KINDS[told]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} must say task_type, one of {', '.join(KINDS)} ({type(error).__name__})."
        ) from error


def _array(folder: Path, name: str) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an array: {error}") from error


def _split(folder: Path, spec: DataSpec, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows to keep and which part each belongs to; all of them without a split."""
    name = spec.options.get("split")
    if name is None:
        return np.arange(size), None
    side = np.full(size, "", dtype=object)
    for file, part in (("train_idx", "train"), ("val_idx", "train"), ("test_idx", "test")):
        side[_array(folder / f"split-{name}", file)] = part
    rows = np.flatnonzero(side != "")
    return rows, side[rows]
