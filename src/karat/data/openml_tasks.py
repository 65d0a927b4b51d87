"""Tasks of OpenML: their tables and their official folds."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.data import openml, transfer
from karat.data.download import offline, write_atomic
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.folders import cache_folder

#: the name of a task or a suite on the command line
NAME = re.compile(r"openml/([ts])/(\d+)")
#: the columns of a split file; those of learning curves also have ``sample``
COLUMNS = ("type", "rowid", "repeat", "fold")


def openml_task(name: str, task_id: int) -> Dataset:
    """Return the table of a classification or regression task, downloaded once into the cache."""
    details = described(task_id)
    source = openml._source(details)
    kind = openml.KINDS.get(int(details["task_type_id"]))
    if kind is None:
        raise DataError(
            f"{name}: OpenML's task {task_id} is {details.get('task_type', 'of another type')}; "
            f"only classification and regression are supported."
        )
    target = source.get("target_feature")
    data = openml.openml_table(name, int(source["data_set_id"]), target=target, kind=kind)
    return replace(data, about={**data.about, "openml_task": str(task_id)})


def openml_folds(data: Dataset, task_id: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield OpenML's folds of a task, by repeat, fold and, in learning curves, sample.

    Rows that are not in the dataset are ignored.
    """
    rows = data.questions[data.fields[0]].to_numpy()
    place = pd.Series(np.arange(len(rows)), index=rows)
    table = splits(task_id)
    table = table[table["rowid"].isin(place.index)]
    by = ["repeat", "fold", *(["sample"] if "sample" in table.columns else [])]
    for key, fold in table.groupby(by, sort=True):
        train = (fold["type"] == "TRAIN").to_numpy()
        positions = place.loc[fold["rowid"]].to_numpy()
        yield positions[train], positions[~train], int(key[0])


def tasks_named(name: str) -> list[dict[str, Any]]:
    """Return the tasks of ``openml/t/59`` or ``openml/s/271``: name, dataset and split of each.

    Only descriptions are downloaded; the tables are loaded when they are needed.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise DefinitionError(f'"{name}" is invalid: expected openml/t/NUMBER or openml/s/NUMBER.')
    number = int(match[2])
    if match[1] == "s":
        found = [(table.name, table.task_id) for table in openml.openml_suite(number)]
    else:
        data_id = int(openml._source(described(number))["data_set_id"])
        called = openml._names([data_id]).get(data_id, f"openml-{data_id}")
        found = [(called, number)]
    return [
        {
            "name": called,
            "dataset": partial(openml_task, called, task_id),
            "split": {"use": f"{__name__}:openml_folds", "task_id": task_id},
        }
        for called, task_id in found
    ]


# -- descriptions in the cache --------------------------------------------------------------


def described(task_id: int) -> Mapping[str, Any]:
    """Return OpenML's description of a task, which never changes, from the cache."""
    place = _home(task_id) / "task.json"
    if not place.is_file():
        answer = openml._ask(f"task/{task_id}", f"task {task_id}")["task"]
        write_atomic(place, json.dumps(answer))
    details: Mapping[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return details


def splits(task_id: int) -> pd.DataFrame:
    """Return the rows of all folds of a task: type, rowid, repeat, fold, and sample if any."""
    place = _home(task_id) / "splits.arff"
    if not place.is_file():
        address = _splits_address(task_id)
        if offline():
            raise Unavailable(f"the folds of OpenML's task {task_id} are not in the cache.")
        try:
            transfer.download(address, place)
        except DataError as error:
            raise Unavailable(f"the folds of OpenML's task {task_id}: {error}.") from error
    return read_splits(place.read_text(encoding="utf-8"), f"OpenML's task {task_id}")


def read_splits(text: str, what: str) -> pd.DataFrame:
    r"""Return the table of a file of splits.

    >>> head = "@attribute type {TRAIN,TEST}\n@attribute rowid numeric\n"
    >>> more = "@attribute repeat numeric\n@attribute fold numeric\n@data\n"
    >>> read_splits(head + more + "TRAIN,0,0,0\nTEST,1,0,0", "toy").to_numpy().tolist()
    [['TRAIN', 0, 0, 0], ['TEST', 1, 0, 0]]
    """
    parts = re.split(r"(?im)^\s*@data\s*$", text, maxsplit=1)
    head, rows = parts if len(parts) == 2 else ("", "")
    names = [name.strip("'\"").lower() for name in re.findall(r"(?im)^\s*@attribute\s+(\S+)", head)]
    if not set(COLUMNS) <= set(names) or not rows.strip():
        raise DataError(
            f"{what}: its folds cannot be read; their columns are {', '.join(names) or 'none'}."
        )
    try:
        table = pd.read_csv(io.StringIO(rows), names=names, comment="%", quotechar="'")
        numbers = [name for name in names if name != "type"]
        table = table.astype({name: int for name in numbers})
    except ValueError as error:
        raise DataError(f"{what}: its folds cannot be read: {error}") from error
    unknown = set(table["type"]) - {"TRAIN", "TEST"}
    if unknown:
        raise DataError(f'{what}: a fold has rows of type "{unknown.pop()}", not TRAIN or TEST.')
    return table


def _splits_address(task_id: int) -> str:
    for entry in described(task_id)["input"]:
        address = entry.get("estimation_procedure", {}).get("data_splits_url")
        if address:
            return str(address)
    raise DataError(f"OpenML's task {task_id} has no folds.")


def _home(task_id: int) -> Path:
    return cache_folder() / "openml" / "tasks" / str(task_id)
