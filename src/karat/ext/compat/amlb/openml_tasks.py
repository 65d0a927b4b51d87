"""The data of an OpenML task, or, where OpenML cannot be reached, a local table in its place.

A local table is a file, folder or archive with the name of the task in one of the folders of
KARAT_DATA (``-i``, ``-u``), or one that comes with scikit-learn. Its folds are not OpenML's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from karat.core.dataset import Dataset
from karat.data.openml import openml_folds, openml_task
from karat.data.readers.table_files import sklearn_table
from karat.errors import KaratWarning, Unavailable
from karat.ext.compat.amlb.definitions import ARCHIVES, FOLDS, TABLES, amlb_folds, amlb_table

#: OpenML's tasks on tables that come with scikit-learn: the loader of each, and its target
BUNDLED = {59: ("load_iris", "species")}


def openml_or_local_table(name: str, task_id: int) -> Dataset:
    """Return the table of an OpenML task, or the local one in its place, with a note."""
    try:
        return openml_task(name, task_id)
    except Unavailable as error:
        data = _local(name, task_id)
        if data is None:
            raise Unavailable(
                f"{error} For a table of your own put {name}.csv into a folder of data (-i)."
            ) from error
        warnings.warn(
            f"{name}: OpenML's task {task_id} cannot be fetched; {data.about['source']} is used, "
            "with other folds: its scores are not those of the task.",
            KaratWarning,
            stacklevel=2,
        )
        return data


def openml_or_local_folds(
    data: Dataset, rng: np.random.Generator, task_id: int, folds: int = FOLDS
) -> Iterator[Any]:
    """Yield OpenML's folds of a task, or those of the local table in its place."""
    if "openml_task" in data.about:
        yield from openml_folds(data, task_id)
    else:
        yield from amlb_folds(data, rng, folds)


def _local(name: str, task_id: int) -> Dataset | None:
    """Return the local table of a task, if there is one."""
    folders = os.environ.get("KARAT_DATA", "").split(os.pathsep)
    for folder in (Path(name).expanduser() for name in folders if name):
        for ending in ("", *TABLES, *ARCHIVES):
            if (path := folder / f"{name}{ending}").exists():
                return amlb_table(name, str(path.absolute()))
    if task_id not in BUNDLED:
        return None
    loader, target = BUNDLED[task_id]
    return sklearn_table(name, loader, target=target)
