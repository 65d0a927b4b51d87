"""The depot of a Dask worker: files by content hash, and the processes that run jobs.

A worker gets each file once: from a disk shared with the client, or in pieces from the client. Jobs
run in child processes, as without Dask, so that limits end the job and not the worker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import platform
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from karat import __version__
from karat.errors import DefinitionError
from karat.execute import Worker, WorkerDied

#: maximum number of numbered child processes per machine
SEATS = 1024
#: seconds after which an idle child process is ended
IDLE = 300.0


@dataclass(frozen=True)
class Parcel:
    """A file that jobs need: its hash, its size and its path on the client."""

    sha256: str
    size: int
    path: str


@dataclass(frozen=True)
class Order:
    """A job as it is sent to a Dask worker.

    ``parcels`` are its files by their path in the session's folder; ``folders`` are new values for
    fields of the job, relative to that folder.
    """

    job: Any
    work: str
    session: str
    parcels: Mapping[str, Parcel]
    folders: Mapping[str, str]
    versions: tuple[str, str]


@dataclass(frozen=True)
class Lacking:
    """The answer of a worker that lacks files of a job."""

    worker: str
    parcels: tuple[Parcel, ...]


def versions() -> tuple[str, str]:
    """Return the versions of Karat and Python, which must match to read pickles."""
    return __version__, ".".join(platform.python_version_tuple()[:2])


def perform(order: Order) -> Any:
    """Run a job on this Dask worker; return its result, a WorkerDied or Lacking."""
    from distributed import get_worker

    worker = get_worker()
    if order.versions != versions():
        theirs, ours = (" and Python ".join(pair) for pair in (versions(), order.versions))
        raise DefinitionError(
            f"Dask worker {worker.address} has karat {theirs}, the run has karat {ours}; install "
            f"the same versions."
        )
    depot = depot_of(worker)
    with depot.using(order.parcels.values()):
        lacking = depot.lacking(order.parcels.values())
        return Lacking(worker.address, lacking) if lacking else depot.run(order)


def lacking(parcels: Iterable[Parcel], dask_worker: Any) -> tuple[Parcel, ...]:
    """Return the files that a Dask worker lacks."""
    return depot_of(dask_worker).lacking(parcels)


def receive(parcel: Parcel, start: int, piece: bytes, session: str, dask_worker: Any) -> None:
    """Receive a piece of a file; the last piece completes it."""
    depot_of(dask_worker).receive(parcel, start, piece, session)


def close(session: str, dask_worker: Any) -> None:
    """End the child processes of a session and remove its folder; files remain."""
    depot_of(dask_worker).close(session)


def depot_of(worker: Any) -> Depot:
    """Return the depot of a Dask worker, below the local directory that Dask cleans up."""
    made = vars(worker).get("karat_depot") or Depot(Path(worker.local_directory) / "karat")
    return vars(worker).setdefault("karat_depot", made)


class Depot:
    """Files by their hash, folders of sessions that link to them, and child processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        #: maximum number of bytes of all files; the least recently used are removed first
        self.room = shutil.disk_usage(folder).free // 2
        self._lock = threading.RLock()
        self._used: Counter[str] = Counter()
        self._growing: dict[tuple[str, str], tuple[IO[bytes], Any]] = {}
        self._crew: dict[str, list[_Child]] = {}
        self._closed: set[str] = set()

    # -- files --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def using(self, parcels: Iterable[Parcel]) -> Iterator[None]:
        """Protect these files from being removed."""
        names = [parcel.sha256 for parcel in parcels]
        with self._lock:
            self._used.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._used.subtract(names)

    def lacking(self, parcels: Iterable[Parcel]) -> tuple[Parcel, ...]:
        """Return the files that are neither here nor on a disk shared with the client."""
        once = {parcel.sha256: parcel for parcel in parcels}
        return tuple(parcel for parcel in once.values() if not self._has(parcel))

    def _has(self, parcel: Parcel) -> bool:
        file = self.files / parcel.sha256
        if file.exists():
            with contextlib.suppress(OSError):
                os.utime(file, follow_symlinks=False)
            return True
        if not _is_same(Path(parcel.path), parcel):
            return False
        with self._lock:
            if not file.exists():  # not yet made by another thread
                file.unlink(missing_ok=True)  # a broken link
                file.symlink_to(parcel.path)
        return True

    def receive(self, parcel: Parcel, start: int, piece: bytes, session: str) -> None:
        """Add a piece to a file; after the last piece, check the file's hash."""
        draft = self.files / f".{parcel.sha256}.{session}"
        key = (parcel.sha256, session)
        if start == 0:
            self._growing[key] = draft.open("wb"), hashlib.sha256()
        file, digest = self._growing[key]
        try:
            file.write(piece)
            digest.update(piece)
            if start + len(piece) < parcel.size:
                return
            file.close()
            if digest.hexdigest() != parcel.sha256:
                raise OSError(f"{parcel.path} changed while it was sent")
            os.replace(draft, self.files / parcel.sha256)
        except OSError:
            file.close()
            draft.unlink(missing_ok=True)
            raise
        self._tidy(parcel.sha256)

    def _tidy(self, newest: str) -> None:
        """Remove the least recently used files if all files exceed the available room."""
        with self._lock:
            files = [(file, file.stat()) for file in self.files.iterdir() if not file.is_symlink()]
            total = sum(facts.st_size for _, facts in files)
            for file, facts in sorted(files, key=lambda each: each[1].st_mtime_ns):
                if total <= self.room:
                    return
                idle = not self._used[file.name] and not file.name.startswith(".")
                if idle and file.name != newest:
                    file.unlink()
                    total -= facts.st_size

    # -- jobs ---------------------------------------------------------------------------------

    def run(self, order: Order) -> Any:
        """Run a job in a child process; return its result or a WorkerDied."""
        root = self._unpack(order)
        job = order.job
        moved: dict[str, Any] = {name: str(root / at) for name, at in order.folders.items()}
        if getattr(job, "stage", None):
            moved["stage"] = (str(root / "scratch"), job.stage[1])
        child = self._hire(order, root / "shelf")
        try:
            return child.worker.ask(dataclasses.replace(job, **moved))
        except WorkerDied as died:
            return died
        finally:
            self._rest(child)

    def _unpack(self, order: Order) -> Path:
        root = self.folder / order.session
        for place, parcel in order.parcels.items():
            link = root / place
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):  # made by another thread
                    link.symlink_to(self.files / parcel.sha256)
        return root

    def _hire(self, order: Order, shelf: Path) -> _Child:
        with self._lock:
            self._dismiss()
            crew = self._crew.setdefault(order.session, [])
            for child in crew:
                if not child.busy:
                    child.busy = True
                    return child
            slot, seat = _seat()
            crew.append(_Child(Worker(order.work, shelf, slot), order.session, seat))
            return crew[-1]

    def _dismiss(self) -> None:
        """End idle child processes, whose client may have disappeared."""
        for session, crew in self._crew.items():
            late = [c for c in crew if not c.busy and time.monotonic() - c.since > IDLE]
            for child in late:
                child.stop()
            self._crew[session] = [child for child in crew if child not in late]

    def _rest(self, child: _Child) -> None:
        with self._lock:
            child.busy, child.since = False, time.monotonic()
        if child.session in self._closed:
            child.stop()

    def close(self, session: str) -> None:
        """End the child processes of a session and remove its folder."""
        with self._lock:
            self._closed.add(session)
            crew = self._crew.pop(session, [])
        for child in crew:
            child.stop()
        shutil.rmtree(self.folder / session, ignore_errors=True)


@dataclass(eq=False)
class _Child:
    """A child process of a session; ``since`` is when it became idle."""

    worker: Worker
    session: str
    seat: IO[str] | None
    busy: bool = True
    since: float = 0.0

    def stop(self) -> None:
        """End the process and release its number."""
        self.worker.stop()
        if self.seat is not None:
            self.seat.close()


def _seat() -> tuple[int, IO[str] | None]:
    """Return the lowest number that no child process of this machine has, and its lock file.

    The number selects the cores of a child; it is reserved while the file is open.
    """
    try:
        import fcntl
    except ImportError:  # Windows, where processes are not bound to cores
        return 0, None
    folder = Path(tempfile.gettempdir()) / f"karat-seats-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(SEATS):
        file = (folder / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number, file
        except OSError:
            file.close()
    return 0, None  # a file system without locks


def _is_same(path: Path, parcel: Parcel) -> bool:
    """Return whether a client's path is a file here with the same content."""
    try:
        return path.stat().st_size == parcel.size and file_hash(path) == parcel.sha256
    except OSError:
        return False


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
