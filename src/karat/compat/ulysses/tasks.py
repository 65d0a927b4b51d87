"""The 18 tasks of the catalogue, and their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.catalogue import Catalogue
from karat.compat.ulysses.training import WrongArgument
from karat.data.load import load_dataset
from karat.dataset import Dataset
from karat.errors import did_you_mean
from karat.task import Task

SUITE = "ulysses"


@dataclass(frozen=True)
class Rule:
    """The hidden layers of a task, and the separator of its options."""

    task: str
    hidden_dims: tuple[int, ...]
    separator: str | None


@dataclass(frozen=True)
class Texts:
    """The texts of a task, single or in pairs, and their labels."""

    rule: Rule
    a: list[str]
    b: list[str] | None
    data: Dataset

    def _dataset(self, items: pd.DataFrame | pd.Series, modality: str) -> Dataset:
        return Dataset(
            name=self.rule.task,
            items=items,
            questions=pd.DataFrame({"row": items.index}),
            truth=self.data.truth,
            kind="classes",
            modality=modality,
            classes=self.data.classes,
            about=self.data.about,
        )

    def rows(self) -> Dataset:
        """Return a dataset of row numbers."""
        return self._dataset(pd.Series(np.arange(len(self.a)).astype(str)), "entity")

    def table(self) -> Dataset:
        """Return a dataset of the texts."""
        columns = {"a": self.a} if self.b is None else {"a": self.a, "b": self.b}
        return self._dataset(pd.DataFrame(columns, dtype=object), "table")

    def digest(self) -> str:
        """Return a hash of the texts."""
        made = hashlib.sha256()
        for text in (*self.a, "", *(self.b or ())):
            encoded = text.encode("utf-8", "surrogatepass")
            made.update(len(encoded).to_bytes(8, "little") + encoded)
        return made.hexdigest()


def chosen(wanted: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the selected tasks, without duplicates."""
    known = list(Catalogue().definitions.get("suites", SUITE)["tasks"])
    if isinstance(wanted, str):
        wanted = known if wanted == "all" else [wanted]
    names = tuple(dict.fromkeys(wanted))
    for name in names:
        if name not in known:
            raise WrongArgument(
                f"unknown task {name!r}.{did_you_mean(str(name), known)} "
                f"Available: {', '.join(known)}."
            )
    if not names:
        raise WrongArgument(f"no task given. Available: {', '.join(known)}.")
    return names


def defined(task: str) -> Task:
    """Return a task of the catalogue."""
    return Catalogue().task(task)


@cache
def rule_of(task: str) -> Rule:
    """Return the hidden layers and the option separator of a task."""
    made = defined(task)
    probe: Any = made.probe
    options = _definition(made).get("options") or {}
    return Rule(task, tuple(probe["head"].get("hidden_dims") or ()), options.get("options"))


def load_texts(task: str, folder: Path) -> Texts:
    """Return the texts of a task, from a CSV file in the folder or from the task's sources.

    The options of a question are joined, as in the file.
    """
    made, rule = defined(task), rule_of(task)
    definition = _definition(made)
    own = folder / next(s["folder"] for s in definition["sources"] if "folder" in s)
    if own.is_file():
        local = {**definition, "sources": None, "path": str(own.absolute())}
        data = load_dataset(task, local)
    else:
        loader: Any = made.dataset
        data = replace(loader(), name=task)
    columns = [data.items.iloc[data.mentions(name).rows].tolist() for name in data.fields]
    return Texts(rule, columns[0], _second(columns[1:], rule.separator), data)


def _definition(task: Task) -> dict[str, Any]:
    loader: Any = task.dataset
    return dict(loader.definition)


def _second(columns: Sequence[list[str]], separator: str | None) -> list[str] | None:
    if not columns:
        return None
    if separator is None:
        return list(columns[0])
    return [separator.join(texts) for texts in zip(*columns, strict=True)]
