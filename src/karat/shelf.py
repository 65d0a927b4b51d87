"""The shelf: models, tasks and data sets that jobs share, in memory and for other processes.

A job names what it needs; a worker process takes it from the shelf's folder, once. The folder
belongs to one run of one user and is removed afterwards.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")

#: what is kept only because it may be asked for again may weigh so many bytes
RECENT = 2**30


class Shelf:
    """A table of shared objects that can be put on disk for worker processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._things: dict[str, Any] = {}
        self._recent: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def put(self, key: str, thing: Any) -> str:
        """Keep a thing under a key and return the key."""
        self._things[key] = thing
        return key

    def get(self, key: str) -> Any:
        """Return the thing of a key, read from the folder if this process has not met it yet."""
        if key not in self._things:
            with self.file(key).open("rb") as file:
                self._things[key] = pickle.load(file)
        return self._things[key]

    def remember(self, key: str, make: Callable[[], T]) -> T:
        """Return the thing of a key, made once per process."""
        if key not in self._things:
            self._things[key] = make()
        return self._things[key]

    def recall(self, key: str, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the thing of a key, made again only where it was forgotten.

        What was not asked for the longest is forgotten first, once all weigh too much.
        """
        if key not in self._recent:
            thing = make()
            self._recent[key] = (thing, weigh(thing))
            while len(self._recent) > 1 and sum(w for _, w in self._recent.values()) > RECENT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key][0]

    def save(self) -> None:
        """Write everything into the folder, for other processes; code of scripts goes along."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, thing in self._things.items():
            with self.file(key).open("wb") as file:
                cloudpickle.dump(thing, file)

    def file(self, key: str) -> Path:
        """Return where the thing of a key lies, once it is saved."""
        return self.folder / f"{key}.pickle"
