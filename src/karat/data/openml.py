"""OpenML: tables by their id, suites, and tasks with their official folds."""

from __future__ import annotations

import io
import json
import re
import socket
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.core.files import cache_folder
from karat.core.writing import write_atomic
from karat.data import http_download
from karat.data.download import offline
from karat.data.download_display import unmeasured_download_shown
from karat.errors import DataError, DefinitionError, Unavailable

API = "https://www.openml.org/api/v1/json"
#: the supported task types of OpenML, by their ids
KINDS = {1: "classification", 2: "regression"}
#: the name of a task or a suite on the command line
NAME = re.compile(r"openml/([ts])/(\d+)")
#: the columns of a split file; those of learning curves also have ``sample``
COLUMNS = ("type", "rowid", "repeat", "fold")


def openml_table(
    name: str,
    data_id: int,
    *,
    target: str | None = None,
    kind: str | None = None,
    called: str | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
) -> Dataset:
    """Return a table of OpenML, downloaded once into the cache and verified by OpenML's MD5.

    ``called`` is the expected name, to detect a wrong id. The default ``target`` is OpenML's, and
    ``kind`` follows from its type. Rows with the same ``group`` stay on one side of a split; that
    column is not a feature.
    """
    home = cache_folder() / "openml" / str(data_id)
    if not _is_complete(home):
        answer = _ask(f"data/{data_id}", f"dataset {data_id}")
        _check(answer["data_set_description"], name, data_id, called)
    bunch = _fetch(name, data_id, home)
    details = bunch.details
    _check(details, name, data_id, called)
    table = bunch.frame
    for column in table.select_dtypes("category").columns:  # plain values, as in other tables
        table[column] = table[column].astype(table[column].cat.categories.dtype)
    if not target:
        target = str(details.get("default_target_attribute") or "")
        if not target or "," in target:
            raise DefinitionError(
                f"{name}: OpenML's dataset {data_id} has no single target; set target: NAME."
            )
    if kind is None and target in table.columns:
        kind = "regression" if pd.api.types.is_numeric_dtype(table[target]) else "classification"
    facts = _about(details, data_id)
    return Dataset.from_table(
        table, target, name=name, kind=kind, group=group, drop=drop, about=facts
    )


@dataclass(frozen=True)
class OpenMLTable:
    """A table of a suite; call it to load the dataset."""

    name: str
    task_id: int
    data_id: int
    target: str
    kind: str

    def __call__(self) -> Dataset:
        """Return the dataset."""
        return openml_table(self.name, self.data_id, target=self.target, kind=self.kind)


def openml_suite(suite: int | str) -> list[OpenMLTable]:
    """Return the classification and regression tables of a suite (``99``, ``"OpenML-CC18"``).

    Only their descriptions are downloaded. Splits of OpenML tasks are not used.
    """
    study = _ask(f"study/{suite}", f'suite "{suite}"')["study"]
    numbers = study.get("tasks", {}).get("task_id")
    if not numbers:
        raise DataError(f'OpenML\'s suite "{suite}" has no tasks.')
    numbers = numbers if isinstance(numbers, list) else [numbers]
    tasks = [_ask(f"task/{number}", f"task {number}")["task"] for number in numbers]
    tasks = [task for task in tasks if int(task["task_type_id"]) in KINDS]
    sources = [_source(task) for task in tasks]
    names = _names([int(source["data_set_id"]) for source in sources])
    counts = Counter(int(source["data_set_id"]) for source in sources)
    tables = []
    for task, source in zip(tasks, sources, strict=True):
        task_id, data_id = int(task["task_id"]), int(source["data_set_id"])
        name = names.get(data_id, f"openml-{data_id}")
        name = name if counts[data_id] == 1 else f"{name}-{task_id}"
        kind = KINDS[int(task["task_type_id"])]
        tables.append(
            OpenMLTable(
                name=name,
                task_id=task_id,
                data_id=data_id,
                target=source["target_feature"],
                kind=kind,
            )
        )
    return tables


# -- descriptions ---------------------------------------------------------------------------


def _ask(path: str, what: str) -> Any:
    """Return OpenML's answer; ``Unavailable`` without one, a DataError for an unknown id."""
    if offline():
        raise Unavailable(f"OpenML's {what} is not in the cache; unset KARAT_OFFLINE to get it.")
    address = f"{API}/{path}"
    try:
        with http_download.readable_errors(address), http_download.session() as http:
            response = http.get(address, timeout=http_download.TIMEOUT)
            if response.status_code != 412:  # OpenML's answer for an unknown id
                response.raise_for_status()
                return response.json()
    except DataError as error:
        raise Unavailable(f"cannot fetch OpenML's {what}: {error}; try again later.") from error
    raise DataError(f"OpenML has no {what}.")


def _check(details: Mapping[str, Any], name: str, data_id: int, called: str | None) -> None:
    if called is not None and _loosely(called) != _loosely(details["name"]):
        raise DataError(
            f'{name}: OpenML\'s dataset {data_id} is "{details["name"]}", expected "{called}"; '
            f"check the id."
        )
    if str(details.get("format", "")).lower() == "sparse_arff":
        raise DataError(f"{name}: OpenML's dataset {data_id} is sparse, which is not supported.")


def _loosely(name: str) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def _about(details: Mapping[str, Any], data_id: int) -> dict[str, str]:
    facts = {
        "source": f"OpenML, data set {data_id} ({details['name']}, version {details['version']})",
        "version": details["version"],
        "md5": details["md5_checksum"],
        "license": details.get("licence"),
        "openml_license": details.get("licence"),
        "citation": details.get("citation"),
    }
    return {key: str(value) for key, value in facts.items() if value}


def _source(task: Mapping[str, Any]) -> Mapping[str, Any]:
    for entry in task["input"]:
        if entry["name"] == "source_data":
            return dict(entry["data_set"])
    raise DataError(f"OpenML's task {task['task_id']} has no dataset.")


def _names(data_ids: list[int]) -> dict[int, str]:
    listed = ",".join(str(data_id) for data_id in sorted(set(data_ids)))
    answer = _ask(f"data/list/data_id/{listed}/status/all", f"datasets {listed}")
    return {int(entry["did"]): str(entry["name"]) for entry in answer["data"]["dataset"]}


# -- the table ------------------------------------------------------------------------------


def _fetch(name: str, data_id: int, home: Path) -> Any:
    """Return scikit-learn's bunch, from the cache if it is complete there."""
    from sklearn.datasets import fetch_openml

    where = f"{name}: OpenML's dataset {data_id}"
    try:
        display = nullcontext() if _is_complete(home) else unmeasured_download_shown(name)
        with warnings.catch_warnings(), _limited_waits(), display:
            warnings.simplefilter("ignore")
            bunch = fetch_openml(
                data_id=data_id,
                data_home=home,
                target_column=None,
                as_frame=True,
                # the faster parser reads labels as text, with pandas 3 numeric ones as numbers
                parser="liac-arff",
                n_retries=http_download.ATTEMPTS,
                delay=http_download.BACKOFF,
            )
    except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
        raise Unavailable(f"{where} cannot be downloaded: {error}; try again later.") from error
    except OSError as error:
        raise DataError(
            f"{where} cannot be written to {home} ({error.strerror or error}); set KARAT_CACHE."
        ) from error
    except (ValueError, KeyError, pd.errors.ParserError) as error:
        raise DataError(f"{where} cannot be read: {str(error).splitlines()[0]}") from error
    files = {
        str(path.relative_to(home)): sha256_of_file(path) for path in sorted(home.rglob("*.gz"))
    }
    write_atomic(home / "files.json", json.dumps(files))  # so that it can be read again offline
    return bunch


@contextmanager
def _limited_waits() -> Iterator[None]:
    """Set a timeout, for which scikit-learn's function has no argument."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(http_download.TIMEOUT[1])
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _is_complete(home: Path) -> bool:
    try:
        files = json.loads((home / "files.json").read_text(encoding="utf-8"))
        return bool(files) and all(
            sha256_of_file(home / name) == sha for name, sha in files.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def openml_task(name: str, task_id: int) -> Dataset:
    """Return the table of a classification or regression task, downloaded once into the cache."""
    details = described(task_id)
    source = _source(details)
    kind = KINDS.get(int(details["task_type_id"]))
    if kind is None:
        raise DataError(
            f"{name}: OpenML's task {task_id} is {details.get('task_type', 'of another type')}; "
            f"only classification and regression are supported."
        )
    target = source.get("target_feature")
    data = openml_table(name, int(source["data_set_id"]), target=target, kind=kind)
    return replace(data, about={**data.about, "openml_task": str(task_id)})


def openml_folds(data: Dataset, task_id: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield OpenML's folds of a task, by repeat, fold and, in learning curves, sample.

    Rows that are not in the dataset are ignored.
    """
    rows = data.questions[data.fields[0]].to_numpy()
    position = pd.Series(np.arange(len(rows)), index=rows)
    table = splits(task_id)
    table = table[table["rowid"].isin(position.index)]
    by = ["repeat", "fold", *(["sample"] if "sample" in table.columns else [])]
    for key, fold in table.groupby(by, sort=True):
        train = (fold["type"] == "TRAIN").to_numpy()
        positions = position.loc[fold["rowid"]].to_numpy()
        yield positions[train], positions[~train], int(key[0])


def openml_tasks_by_name(name: str) -> list[dict[str, Any]]:
    """Return the tasks of ``openml/t/59`` or ``openml/s/271``: name, dataset and split of each.

    Only descriptions are downloaded; the tables are loaded when they are needed.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise DefinitionError(f'"{name}" is invalid: expected openml/t/NUMBER or openml/s/NUMBER.')
    number = int(match[2])
    if match[1] == "s":
        tasks = [(table.name, table.task_id) for table in openml_suite(number)]
    else:
        data_id = int(_source(described(number))["data_set_id"])
        called = _names([data_id]).get(data_id, f"openml-{data_id}")
        tasks = [(called, number)]
    return [
        {
            "name": called,
            "dataset": partial(openml_task, called, task_id),
            "split": {"use": f"{__name__}:openml_folds", "task_id": task_id},
        }
        for called, task_id in tasks
    ]


# -- descriptions in the cache --------------------------------------------------------------


def described(task_id: int) -> Mapping[str, Any]:
    """Return OpenML's description of a task, which never changes, from the cache."""
    file = _home(task_id) / "task.json"
    if not file.is_file():
        answer = _ask(f"task/{task_id}", f"task {task_id}")["task"]
        write_atomic(file, json.dumps(answer))
    details: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return details


def splits(task_id: int) -> pd.DataFrame:
    """Return the rows of all folds of a task: type, rowid, repeat, fold, and sample if any."""
    file = _home(task_id) / "splits.arff"
    if not file.is_file():
        procedures = [part.get("estimation_procedure", {}) for part in described(task_id)["input"]]
        addresses = [part["data_splits_url"] for part in procedures if part.get("data_splits_url")]
        if not addresses:
            raise DataError(f"OpenML's task {task_id} has no folds.")
        if offline():
            raise Unavailable(f"the folds of OpenML's task {task_id} are not in the cache.")
        try:
            name = f"the folds of OpenML's task {task_id}"
            http_download.download(str(addresses[0]), file, name=name)
        except DataError as error:
            raise Unavailable(f"the folds of OpenML's task {task_id}: {error}.") from error
    return read_splits(file.read_text(encoding="utf-8"), f"OpenML's task {task_id}")


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


def _home(task_id: int) -> Path:
    return cache_folder() / "openml" / "tasks" / str(task_id)
