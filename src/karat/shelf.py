"""The shelf: models, tasks and datasets that jobs share, in memory and with worker processes.

A job names objects by key; a worker process loads each from the shelf's folder once. The folder is
removed at the end of the run.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")

#: maximum number of bytes of recently used objects
RECENT = 2**30


class Shelf:
    """A table of shared objects that can be written to disk for worker processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects: dict[str, Any] = {}
        self._recent: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def put(self, key: str, value: Any) -> str:
        """Store an object and return its key."""
        self._objects[key] = value
        return key

    def get(self, key: str) -> Any:
        """Return the object of a key, read from the folder on first use."""
        if key not in self._objects:
            with self.file(key).open("rb") as file:
                self._objects[key] = pickle.load(file)
        return self._objects[key]

    def remember(self, key: str, make: Callable[[], T]) -> T:
        """Return the object of a key, made once per process."""
        if key not in self._objects:
            self._objects[key] = make()
        return self._objects[key]

    def recall(self, key: str, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the object of a key from a cache that drops the least recently used objects.

        ``weigh`` returns the size of an object in bytes.
        """
        if key not in self._recent:
            value = make()
            self._recent[key] = (value, weigh(value))
            while len(self._recent) > 1 and sum(w for _, w in self._recent.values()) > RECENT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key][0]

    def save(self) -> None:
        """Write all objects to the folder, together with the code of scripts they need."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, value in self._objects.items():
            with self.file(key).open("wb") as file:
                cloudpickle.dump(value, file)

    def file(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{key}.pickle"
