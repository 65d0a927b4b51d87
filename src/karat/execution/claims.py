"""Claims: files in a shared folder by which processes on several machines divide a list of work.

``KEY.1`` is the first claim of a piece of work, created exclusively. Its owner renews the time of
the file while it works and writes ``KEY.done`` at the end. If the time is older than the lease, the
owner has died, and the one who creates ``KEY.2`` takes over. Nothing is renamed or deleted, so two
processes never take the same claim. Times are those of the file server, not of the machines.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.errors import DefinitionError

LIST = "list.txt"
DONE = "done"


@dataclass
class Claim:
    """A claim of this process on the work of a key; ``generation`` counts its owners from 1."""

    path: Path
    key: str
    generation: int
    lease: float
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        threading.Thread(target=self._renew, daemon=True).start()

    def _renew(self) -> None:
        while not self._ended.wait(self.lease / 4):
            with contextlib.suppress(OSError):  # try again later
                os.utime(self.path)

    def finish(self) -> None:
        """Mark the work as done."""
        self._ended.set()
        self.path.with_name(f"{self.key}.{DONE}").touch()

    def release(self) -> None:
        """Let others take over at once."""
        self._ended.set()
        with contextlib.suppress(OSError):
            os.utime(self.path, (0, 0))


class Claims:
    """The claims in a folder on a list of work, given by its keys; a context manager."""

    def __init__(self, folder: Path, lease: float, keys: Sequence[str]) -> None:
        self.folder, self.lease, self.keys = Path(folder), lease, keys
        self.clock = self.folder / f".clock.{os.urandom(8).hex()}"

    def __enter__(self) -> Claims:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.clock.touch()
        except OSError as error:
            raise DefinitionError(
                f"cannot write claims to {self.folder}: {error.strerror}; choose another --claim."
            ) from error
        digest = hashlib.sha256("\n".join(sorted(self.keys)).encode()).hexdigest()
        with contextlib.suppress(FileExistsError):
            (self.folder / LIST).open("x").write(digest)
        if (self.folder / LIST).read_text() not in (digest, ""):  # empty: being written
            self.clock.unlink()
            raise DefinitionError(
                f"the claims in {self.folder} are of another plan or another number of shards; "
                f"choose another --claim folder."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.clock.unlink(missing_ok=True)

    def take(self, order: Sequence[int]) -> Iterator[tuple[int, Claim]]:
        """Yield the places of keys in this order, each with a claim, until none can be claimed."""
        tried: set[int] = set()
        while (found := self._next(order, tried)) is not None:
            tried.add(found[0])
            yield found

    def _next(self, order: Sequence[int], tried: set[int]) -> tuple[int, Claim] | None:
        latest, done = self._listed()
        for place in order:
            key = self.keys[place]
            if place in tried or key in done:
                continue
            generation = latest.get(key, 0)
            if generation and not self._is_expired(self.folder / f"{key}.{generation}"):
                continue
            if (claim := self._create(key, generation + 1)) is not None:
                return place, claim
        return None

    def _listed(self) -> tuple[dict[str, int], set[str]]:
        """Return the latest generation of each claimed key, and the keys that are done."""
        latest: dict[str, int] = {}
        done: set[str] = set()
        for name in os.listdir(self.folder):
            key, _, rest = name.rpartition(".")
            if rest == DONE:
                done.add(key)
            elif rest.isdecimal():
                latest[key] = max(latest.get(key, 0), int(rest))
        return latest, done

    def _is_expired(self, path: Path) -> bool:
        self.clock.touch()
        about: Any = {}
        with contextlib.suppress(OSError, ValueError):
            about = json.loads(path.read_text(encoding="utf-8"))
        lease = about.get("lease", self.lease) if isinstance(about, dict) else self.lease
        try:
            return self.clock.stat().st_mtime - path.stat().st_mtime > lease
        except OSError:
            return False

    def _create(self, key: str, generation: int) -> Claim | None:
        path = self.folder / f"{key}.{generation}"
        about = {"host": platform.node(), "pid": os.getpid(), "lease": self.lease}
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(json.dumps(about))
        except FileExistsError:
            return None
        return Claim(path, key, generation, self.lease)
