"""The shelf: models, tasks and data sets that jobs share, in memory and for other processes.

A job names what it needs; a worker process takes it from the shelf's folder, once. The folder
belongs to one run of one user and is removed afterwards.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")


class Shelf:
    """A table of shared objects that can be put on disk for worker processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._things: dict[str, Any] = {}

    def put(self, key: str, thing: Any) -> str:
        """Keep a thing under a key and return the key."""
        self._things[key] = thing
        return key

    def get(self, key: str) -> Any:
        """Return the thing of a key, read from the folder if this process has not met it yet."""
        if key not in self._things:
            with self._file(key).open("rb") as file:
                self._things[key] = pickle.load(file)
        return self._things[key]

    def remember(self, key: str, make: Callable[[], T]) -> T:
        """Return the thing of a key, made once per process."""
        if key not in self._things:
            self._things[key] = make()
        return self._things[key]

    def save(self) -> None:
        """Write everything into the folder, for other processes; code of scripts goes along."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, thing in self._things.items():
            with self._file(key).open("wb") as file:
                cloudpickle.dump(thing, file)

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.pickle"
