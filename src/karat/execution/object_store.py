"""Objects that jobs share: models, tasks and datasets, which a worker process reads once."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

from karat.core.task import Task
from karat.core.writing import draft_file
from karat.models.model import Model

#: maximum number of bytes of recently used objects
RECENT = 2**30
T = TypeVar("T")


class ObjectStore:
    """A table of shared objects that can be written to disk for worker processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects: dict[str, Any] = {}
        self._sent: dict[str, Any] = {}
        self._recent: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        #: number of bytes of recently used objects that may be written for other processes
        self.room = 0
        self._groups: dict[str, tuple[str, dict[str, Any]]] = {}

    def put(self, key: str, value: object, sent: object = None) -> str:
        """Store an object and return its key; other processes get ``sent`` instead, if given."""
        self._objects[key] = value
        self._sent[key] = value if sent is None else sent
        return key

    def get(self, key: str) -> Any:
        """Return the object of a key, read from the folder on first use."""
        if key not in self._objects:
            self._objects[key] = _read(self.file(key))
        return self._objects[key]

    def models(self) -> list[Model]:
        """Return the models of this process."""
        return [value for value in self._objects.values() if isinstance(value, Model)]

    def measures(self, dataset: object) -> Any:
        """Return the similarity measures of all tasks on a dataset; a worker knows none."""
        tasks = [task for task in self._sent.values() if isinstance(task, Task)]
        return [task.probe.get("measure") for task in tasks if task.dataset == dataset]  # type: ignore[union-attr]

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """Return the object of a key, made once per process."""
        if key not in self._objects:
            self._objects[key] = make()
        return self._objects[key]

    def get_or_make_recent(self, key: str, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the object of a key from a cache that drops the least recently used objects.

        ``weigh`` returns the size of an object in bytes. An object that another process has written
        to the folder is read, not made.
        """
        if key not in self._recent:
            shared = self.file(key).exists()
            value = _read(self.file(key)) if shared else make()
            self._recent[key] = (value, size := weigh(value))
            if not shared and size <= self.room:
                self.room -= size
                _write(self.file(key), value)
            while len(self._recent) > 1 and sum(w for _, w in self._recent.values()) > RECENT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key][0]

    def get_or_make_in_group(self, kind: str, group: str, name: str, make: Callable[[], T]) -> T:
        """Return the object of a name in a group; the last group of its kind is dropped."""
        if self._groups.get(kind, ("",))[0] != group:
            self._groups[kind] = (group, {})
        members = self._groups[kind][1]
        if name not in members:
            members[name] = make()
        return members[name]

    def save(self) -> None:
        """Write all objects to the folder, together with the code of scripts they need."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, value in self._sent.items():
            _write(self.file(key), value)

    def file(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{key}.pickle"


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return pickle.load(file)


def _write(path: Path, value: object) -> None:
    with draft_file(path) as draft, draft.open("wb") as file:
        cloudpickle.dump(value, file)
