"""Tables of OpenML: one by its number, or those of a whole suite."""

from __future__ import annotations

import json
import os
import secrets
import socket
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pandas as pd

from karat.data import transfer
from karat.data.download import offline
from karat.data.sources import sha256_of
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.folders import cache_folder

API = "https://www.openml.org/api/v1/json"
#: OpenML's numbers of the kinds of task that have one answer per row
KINDS = {1: "classes", 2: "numbers"}


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
    """Return a table of OpenML, fetched once into the cache and checked by OpenML's own MD5.

    ``called`` is the name it must have there, so that a wrong number is found out; without
    ``target`` and ``kind``, OpenML says which column is the target and whether it is a number.
    Rows with one ``group`` stay on one side of a split; that column is no feature.
    """
    home = cache_folder() / "openml" / str(data_id)
    if not _is_whole(home):
        _check_described(_describe(data_id), name, data_id, called)
    bunch = _fetch(name, data_id, home)
    facts = bunch.details
    _check_described(facts, name, data_id, called)
    table = _plain(bunch.frame)
    target = target or _own_target(facts, name, data_id)
    if kind is None and target in table.columns:
        kind = "numbers" if pd.api.types.is_numeric_dtype(table[target]) else "classes"
    about = _about(facts, data_id)
    data = Dataset.from_table(
        table, target, name=name, kind=kind, group=group, drop=drop, about=about
    )
    return data if group is None else replace(data, items=data.items.drop(columns=group))


@dataclass(frozen=True)
class OpenMLTable:
    """A table of a suite; call it to have the data set."""

    name: str
    task_id: int
    data_id: int
    target: str
    kind: str

    def __call__(self) -> Dataset:
        """Return the data set."""
        return openml_table(self.name, self.data_id, target=self.target, kind=self.kind)


def openml_suite(suite: int | str) -> list[OpenMLTable]:
    """Return the classification and regression tables of a suite (``99``, ``"OpenML-CC18"``).

    Only their descriptions are fetched. What a task says about splits is not used: a Karat task
    has its own.
    """
    study = _ask(f"study/{suite}", f'suite "{suite}"')["study"]
    numbers = _listed(study.get("tasks", {}).get("task_id"))
    if not numbers:
        raise DataError(f'OpenML\'s suite "{suite}" has no tasks.')
    tasks = [_ask(f"task/{number}", f"task {number}")["task"] for number in numbers]
    tasks = [task for task in tasks if int(task["task_type_id"]) in KINDS]
    sources = [_source(task) for task in tasks]
    called = _names([int(source["data_set_id"]) for source in sources])
    often = Counter(int(source["data_set_id"]) for source in sources)
    found = []
    for task, source in zip(tasks, sources, strict=True):
        task_id, data_id = int(task["task_id"]), int(source["data_set_id"])
        name = called.get(data_id, f"openml-{data_id}")
        name = name if often[data_id] == 1 else f"{name}-{task_id}"
        kind = KINDS[int(task["task_type_id"])]
        found.append(OpenMLTable(name, task_id, data_id, source["target_feature"], kind))
    return found


# -- what OpenML says -----------------------------------------------------------------------


def _ask(path: str, what: str) -> Any:
    """Return OpenML's answer; ``Unavailable`` without one, a DataError for an unknown id."""
    if offline():
        raise Unavailable(f"OpenML's {what} is not in the cache; unset KARAT_OFFLINE to fetch it.")
    address = f"{API}/{path}"
    try:
        with transfer.readable_errors(address), transfer.session() as http:
            response = http.get(address, timeout=transfer.TIMEOUT)
            if response.status_code != 412:  # OpenML's answer for an unknown id
                response.raise_for_status()
                return response.json()
    except DataError as error:
        raise Unavailable(f"cannot fetch OpenML's {what}: {error}; try again later.") from error
    raise DataError(f"OpenML has no {what}.")


def _describe(data_id: int) -> Mapping[str, Any]:
    return dict(_ask(f"data/{data_id}", f"data set {data_id}")["data_set_description"])


def _check_described(facts: Mapping[str, Any], name: str, data_id: int, called: str | None) -> None:
    if called is not None and _loosely(called) != _loosely(facts["name"]):
        raise DataError(
            f'{name}: OpenML\'s data set {data_id} is called "{facts["name"]}", not "{called}"; '
            f"the number or the name is wrong."
        )
    if str(facts.get("format", "")).lower() == "sparse_arff":
        raise DataError(f"{name}: OpenML's data set {data_id} is sparse; only dense ones are read.")


def _loosely(name: str) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def _own_target(facts: Mapping[str, Any], name: str, data_id: int) -> str:
    target = str(facts.get("default_target_attribute") or "")
    if not target or "," in target:
        raise DefinitionError(
            f"{name}: OpenML names no single target of data set {data_id}; say which: target: NAME."
        )
    return target


def _about(facts: Mapping[str, Any], data_id: int) -> dict[str, str]:
    about = {
        "source": f"OpenML, data set {data_id} ({facts['name']}, version {facts['version']})",
        "version": facts["version"],
        "md5": facts["md5_checksum"],
        "licence": facts.get("licence"),
        "openml_licence": facts.get("licence"),
        "citation": facts.get("citation"),
    }
    return {key: str(value) for key, value in about.items() if value}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _source(task: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in task["input"]:
        if part["name"] == "source_data":
            return dict(part["data_set"])
    raise DataError(f"OpenML's task {task['task_id']} names no data set.")


def _names(data_ids: list[int]) -> dict[int, str]:
    listed = ",".join(str(data_id) for data_id in sorted(set(data_ids)))
    answer = _ask(f"data/list/data_id/{listed}/status/all", f"data sets {listed}")
    return {int(entry["did"]): str(entry["name"]) for entry in answer["data"]["dataset"]}


# -- the table ------------------------------------------------------------------------------


def _fetch(name: str, data_id: int, home: Path) -> Any:
    """Return what scikit-learn makes of it, from the cache when it is whole there."""
    from sklearn.datasets import fetch_openml

    # its faster parser takes labels for text, and pandas 3 reads labels that are digits as numbers
    parser = "liac-arff"
    where = f"{name}: OpenML's data set {data_id}"
    try:
        with warnings.catch_warnings(), _limited_waits():
            warnings.simplefilter("ignore")
            bunch = fetch_openml(
                data_id=data_id,
                data_home=home,
                target_column=None,
                as_frame=True,
                parser=parser,
                n_retries=transfer.ATTEMPTS,
                delay=transfer.BACKOFF,
            )
    except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
        raise Unavailable(f"{where} cannot be had: {error}; try again later.") from error
    except OSError as error:
        raise DataError(
            f"{where} cannot be kept in {home} ({error.strerror or error}); set KARAT_CACHE."
        ) from error
    except (ValueError, KeyError, pd.errors.ParserError) as error:
        raise DataError(f"{where} cannot be read: {str(error).splitlines()[0]}") from error
    _mark_whole(home)
    return bunch


@contextmanager
def _limited_waits() -> Iterator[None]:
    """Give up on a silent server: scikit-learn's function has no argument for it."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(transfer.TIMEOUT[1])
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with labels as text, as in every other table, not as categories."""
    columns = [c for c in frame.columns if isinstance(frame[c].dtype, pd.CategoricalDtype)]
    texts = {c: frame[c].astype(frame[c].cat.categories.dtype) for c in columns}
    return frame.assign(**texts)


def _mark_whole(home: Path) -> None:
    """Note the files of a table that was read, so that it can be read again without a socket."""
    files = {str(path.relative_to(home)): sha256_of(path) for path in sorted(home.rglob("*.gz"))}
    scratch = home / f".files.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    scratch.write_text(json.dumps(files), encoding="utf-8")
    os.replace(scratch, home / "files.json")


def _is_whole(home: Path) -> bool:
    try:
        files = json.loads((home / "files.json").read_text(encoding="utf-8"))
        return bool(files) and all(sha256_of(home / name) == sha for name, sha in files.items())
    except (OSError, ValueError, AttributeError):
        return False
