"""The reader "table": every row is an item, one column is the target.

The small tables bundled with scikit-learn.
The reader "tabred": a folder of arrays in the format of the TabReD benchmark.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    OPTIONS,
    ask_rows,
    need_target,
    one_file,
    read_frame,
    read_parts,
)
from karat.data.readers.text import read_columns
from karat.errors import DataError, DefinitionError, did_you_mean


@reader("table")
def read_table(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of a file (or of a train and a test file) as a dataset."""
    if spec.modality in ("text", "entity"):
        return read_columns(files, spec)
    spec.check_options(*OPTIONS)
    need_target(spec)
    return ask_rows(*read_parts(files, spec, lambda path: read_frame(path, spec)))


KINDS = {
    "load_iris": "classification",
    "load_wine": "classification",
    "load_breast_cancer": "classification",
    "load_digits": "classification",
    "load_diabetes": "regression",
}


def sklearn_table(
    name: str, loader: str, *, target: str = "target", kind: str | None = None
) -> Dataset:
    """Return one of scikit-learn's bundled tables, with class names as labels.

    >>> sklearn_table("iris", "load_iris", target="species")
    <Dataset iris: 150 questions about 150 table items, 3 classes>
    """
    from sklearn import datasets

    if loader not in KINDS:
        raise DefinitionError(
            f'{name}: "{loader}" is not a bundled table.{did_you_mean(loader, KINDS)} '
            f"Available: {', '.join(KINDS)}."
        )
    kind = kind or KINDS[loader]
    bunch = getattr(datasets, loader)(as_frame=True)
    table = bunch.frame.rename(columns={"target": target})
    if kind == "classification" and "target_names" in bunch:
        table[target] = [str(bunch.target_names[code]) for code in table[target]]
    about = {"source": f"scikit-learn, {loader}", "license": "BSD-3-Clause"}
    return Dataset.from_table(table, target, name=name, kind=kind, about=about)


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
        truth=target[rows] if kind == "regression" else target[rows].astype(np.int64),
        kind=kind,
        modality="table",
        part=part,
        about=spec.about,
    )


def _kind(folder: Path) -> str:
    path = folder / "info.json"
    try:
        return TABRED_KINDS[json.loads(path.read_text(encoding="utf-8"))["task_type"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} must contain task_type, one of {', '.join(TABRED_KINDS)} ({type(error).__name__})."
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
