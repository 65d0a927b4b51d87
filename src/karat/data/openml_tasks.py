"""Tasks of OpenML: the table of one, and the folds that everybody else uses for it."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.data import openml, transfer
from karat.data.download import offline
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.folders import cache_folder

#: how a task and a suite are named where suites are
NAME = re.compile(r"openml/([ts])/(\d+)")
#: the columns of a file of splits; those of learning curves have ``sample`` too
COLUMNS = ("type", "rowid", "repeat", "fold")


def openml_task(name: str, task_id: int) -> Dataset:
    """Return the table of a classification or regression task, fetched once into the cache."""
    facts = described(task_id)
    source = openml._source(facts)
    kind = openml.KINDS.get(int(facts["task_type_id"]))
    if kind is None:
        raise DataError(
            f"{name}: OpenML's task {task_id} is {facts.get('task_type', 'of another type')}; "
            f"only classification and regression are supported."
        )
    target = source.get("target_feature")
    data = openml.openml_table(name, int(source["data_set_id"]), target=target, kind=kind)
    return replace(data, about={**data.about, "openml_task": str(task_id)})


def openml_folds(data: Dataset, task_id: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Return OpenML's own folds of a task, by repeat, fold and, in learning curves, sample.

    Rows that were left away before stand on no side.
    """
    rows = data.questions[data.fields[0]].to_numpy()
    place = pd.Series(np.arange(len(rows)), index=rows)
    table = splits(task_id)
    table = table[table["rowid"].isin(place.index)]
    by = ["repeat", "fold", *(["sample"] if "sample" in table.columns else [])]
    for key, part in table.groupby(by, sort=True):
        taught = (part["type"] == "TRAIN").to_numpy()
        found = place.loc[part["rowid"]].to_numpy()
        yield found[taught], found[~taught], int(key[0])


def tasks_named(name: str) -> list[dict[str, Any]]:
    """Return the tasks of ``openml/t/59`` or ``openml/s/271``: name, data set and split of each.

    Only descriptions are fetched; the tables are loaded when they are needed.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise DefinitionError(f'"{name}" is neither openml/t/NUMBER nor openml/s/NUMBER.')
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


# -- what OpenML says, kept -----------------------------------------------------------------


def described(task_id: int) -> Mapping[str, Any]:
    """Return what OpenML says about a task; it never changes, so that it is asked once."""
    place = _home(task_id) / "task.json"
    if not place.is_file():
        answer = openml._ask(f"task/{task_id}", f"task {task_id}")["task"]
        _keep(place, json.dumps(answer))
    facts: Mapping[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return facts


def splits(task_id: int) -> pd.DataFrame:
    """Return the rows of all folds of a task: type, rowid, repeat and fold, and sample if any."""
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
    >>> read_splits(head + more + "TRAIN,0,0,0\nTEST,1,0,0", "mine").to_numpy().tolist()
    [['TRAIN', 0, 0, 0], ['TEST', 1, 0, 0]]
    """
    parts = re.split(r"(?im)^\s*@data\s*$", text, maxsplit=1)
    head, rows = parts if len(parts) == 2 else ("", "")
    names = [name.strip("'\"").lower() for name in re.findall(r"(?im)^\s*@attribute\s+(\S+)", head)]
    if not set(COLUMNS) <= set(names) or not rows.strip():
        raise DataError(
            f"{what}: its folds cannot be read; they have {', '.join(names) or 'none'}."
        )
    try:
        table = pd.read_csv(io.StringIO(rows), names=names, comment="%", quotechar="'")
        numbers = [name for name in names if name != "type"]
        table = table.astype({name: int for name in numbers})
    except ValueError as error:
        raise DataError(f"{what}: its folds cannot be read: {error}") from error
    strange = set(table["type"]) - {"TRAIN", "TEST"}
    if strange:
        raise DataError(f'{what}: a row of its folds is "{strange.pop()}", not TRAIN or TEST.')
    return table


def _splits_address(task_id: int) -> str:
    for part in described(task_id)["input"]:
        address = part.get("estimation_procedure", {}).get("data_splits_url")
        if address:
            return str(address)
    raise DataError(f"OpenML's task {task_id} names no folds.")


def _home(task_id: int) -> Path:
    return cache_folder() / "openml" / "tasks" / str(task_id)


def _keep(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = place.with_name(f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, place)
