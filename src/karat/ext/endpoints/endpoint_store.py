"""The database of what endpoints delivered: vectors, usage and reservations in transactions.

One ``sqlite3`` file serves all processes that share a cache, with a write-ahead log where the file
system allows it. Room for an answer is made before it is requested. A database that is damaged is
replaced by a new one with all intact vectors, which are found in its bytes (``endpoint_rows``).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from karat.ext.endpoints.endpoint_processes import locks_in, owner_file
from karat.ext.endpoints.endpoint_rows import Piece, intact_pieces, whole_vectors

T = TypeVar("T")

#: the name of a database; the number grows when a damaged one is replaced
_NAME = re.compile(r"endpoints-(\d+)\.sqlite")
#: bytes of a page, in which a piece of a vector is in one part
PAGE = 2**14
#: seconds to wait while another process writes
BUSY_SECONDS = 60.0
#: pages in the write-ahead log before they are moved to the database
LOG_PAGES = 64
#: bytes that are kept free besides those of answers: pages of the other tables, their log
SLACK = 2**19
#: an answer is written to the log and to the database, in pages that are not quite full, together
#: with the pages of the other tables
ROOM_FACTOR, ROOM_BYTES = 2.5, 12 * PAGE
#: the tables besides those of vectors
TABLES = {
    "families": "family TEXT PRIMARY KEY, pieces INTEGER NOT NULL",
    "rates": "family TEXT, name TEXT, free_at REAL NOT NULL, PRIMARY KEY (family, name)",
    "runs": "run TEXT PRIMARY KEY, spent REAL NOT NULL, began REAL NOT NULL",
    "usage": "run TEXT, model TEXT, requests INTEGER, tokens REAL, price REAL, "
    "PRIMARY KEY (run, model)",
    "reservations": "id INTEGER PRIMARY KEY, run TEXT, family TEXT, machine TEXT, pid INTEGER, "
    "started REAL, until REAL, price REAL, marks BLOB",
}
#: file systems of a network, where a write-ahead log would not be shared
_NETWORK = re.compile(
    r"nfs|cifs|smb|9p|afs|ceph|lustre|gpfs|beegfs|gluster|fuse|virtiofs|davfs|vboxsf|webdav"
)
#: what SQLite says about damage; the others are about the disk, permissions and locks
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_DAMAGE_WORDS = re.compile("no such table|no such column|malformed|unsupported|not a database")

log = logging.getLogger(__name__)


class Damaged(Exception):
    """The content of the database is not what was written."""


class Unwritable(Exception):
    """Nothing can be stored; the message has the file and the reason."""


class EndpointDatabase:
    """The database in a folder, opened once per process; its threads use it one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        #: how often the file has been opened: what was read before may be of another one
        self.opened = 0
        #: intact vectors that are not in the file, by encoder: of a killed or damaged database
        self.loose: dict[bytes, list[list[Piece]]] = {}
        #: what users are told about damage
        self.remarks: list[str] = []
        self._tables: dict[str, Any] = {}
        self._connection: sqlite3.Connection | None = None
        self._path: Path | None = None
        self._inode = 0
        self._writable = True
        self._room = Room(folder)

    def table(self, family: str, make: Callable[[EndpointDatabase, str], T]) -> T:
        """Return the table of an encoder, which is made once."""
        with self.lock:
            return self._tables.setdefault(family, make(self, family))

    def close(self) -> None:
        """Close the file; its tables are read again when it is used again."""
        with self.lock:
            self._close()
            self._room.give()

    @property
    def path(self) -> Path:
        """The file, whether it exists or not."""
        numbered = self._generations()
        return numbered[-1] if numbered else self.folder / "endpoints-1.sqlite"

    def _generations(self) -> list[Path]:
        """Return the databases in the folder; the last one counts."""
        with suppress(OSError):
            matches = [(_NAME.fullmatch(name), name) for name in os.listdir(self.folder)]
            numbered = sorted((int(match[1]), name) for match, name in matches if match)
            return [self.folder / name for _, name in numbered]
        return []

    # -- transactions ---------------------------------------------------------------------------

    def read(self, action: Callable[[sqlite3.Connection], T], missing: T) -> T:
        """Return what an action reads in one transaction; ``missing`` without a database."""
        return self._tried(lambda: self._in_transaction(action, "BEGIN", missing))

    def write(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Return what an action returns in a transaction that changes the database.

        The action is repeated if the database is damaged and replaced. What it wrote survives the
        death of the process, and a power failure after ``flush``. Raises Unwritable.
        """
        return self._tried(lambda: self._in_transaction(action, "BEGIN IMMEDIATE"))

    def flush(self) -> None:
        """Wait until what was written is on the disk; other threads can write meanwhile."""
        log_file, _ = _sides(self.path)
        # without a log, a transaction has waited; no process holds a lock on the log
        with suppress(OSError), log_file.open("rb") as file:
            os.fsync(file.fileno())

    def _tried(self, run: Callable[[], T]) -> T:
        with self.lock:
            for attempt in range(3):
                try:
                    return run()
                except (Damaged, sqlite3.DatabaseError) as error:
                    if attempt == 2 or not _is_damage(error):
                        raise Unwritable(f"cannot use {self.path}: {_reason(error)}") from None
                    self._replace(str(error))
                except OSError as error:
                    raise Unwritable(f"cannot use {self.path}: {_reason(error)}") from None
            raise AssertionError("unreachable")

    def _in_transaction(
        self,
        action: Callable[[sqlite3.Connection], T],
        begin: str,
        missing: T | None = None,
    ) -> T:
        writes = begin != "BEGIN"
        with self._exclusive(writes):
            connection = self._open(writes)
            if connection is None:
                return missing  # type: ignore[return-value]
            if connection.in_transaction:  # an action that calls another one
                return action(connection)
            connection.execute(begin)
            try:
                result = action(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return result

    @contextlib.contextmanager
    def _exclusive(self, writes: bool) -> Iterator[None]:
        """Hold the lock of other processes where the file system has none."""
        if not writes and not self._generations():
            yield
            return
        nested = self._connection is not None and self._connection.in_transaction
        if writes and not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
        if nested or self._has_locks():
            yield
            return
        with owner_file(self.folder / "endpoints.lock"):
            yield

    def _has_locks(self) -> bool:
        try:
            return locks_in(self.folder)
        except OSError:  # a folder that cannot be written to needs none
            return True

    # -- opening --------------------------------------------------------------------------------

    def _open(self, writes: bool) -> sqlite3.Connection | None:
        """Return the connection to the current file; None if there is no file to read."""
        if self._connection is not None:
            if self._is_current() and (self._writable or not writes):
                return self._connection
            self._close()
        path = self.path
        if not path.exists() and not writes:
            return None
        for side in _sides(path):  # what a killed process left may be damaged: it is read first
            self._gather(side)
        self._room.sweep()
        connection = self._connected(path, writes)
        self._connection, self._path = connection, path
        self._inode = path.stat().st_ino if path.exists() else 0
        self.opened += 1
        self._check(connection)
        for older in self._generations()[:-1] if writes else ():
            _remove(older)
        return connection

    def _is_current(self) -> bool:
        """Return whether the opened file is still the database of the folder."""
        assert self._path is not None
        try:
            return self._path.stat().st_ino == self._inode and self._generations()[-1] == self._path
        except OSError:
            return False

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._path = None

    def _connected(self, path: Path, writes: bool) -> sqlite3.Connection:
        """Open a file: for reading only where it cannot be written, without waiting for locks."""
        locks = self._has_locks()
        modes = ["rwc"] if writes else ["rw", "ro", "ro&immutable=1"]
        for mode in modes:
            self._writable = mode.startswith("rw")
            connection = None
            try:
                connection = _connect(path, mode, locks)
                if self._writable:
                    _configure(connection, log=locks and not _on_network(self.folder))
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.DatabaseError as error:
                if connection is not None:
                    connection.close()
                if _is_damage(error) or mode == modes[-1]:
                    raise
            else:
                return connection
        raise AssertionError("unreachable")

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raise Damaged if the pages of the file do not fit together; create missing tables."""
        connection.execute("BEGIN")
        try:
            empty = _is_empty(connection)
        finally:
            connection.execute("ROLLBACK")
        if empty and self._writable:
            connection.execute("BEGIN IMMEDIATE")
            for name, columns in TABLES.items():
                connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            connection.execute("COMMIT")

    # -- damage ---------------------------------------------------------------------------------

    def _gather(self, file: Path) -> None:
        """Remember the intact vectors in the bytes of a file."""
        with suppress(FileNotFoundError):
            for parts in whole_vectors(intact_pieces(file)):
                self.loose.setdefault(parts[0].family, []).append(parts)

    def _replace(self, reason: str) -> None:
        """Replace a damaged database by a new one with all of its intact vectors."""
        damaged = self._path or self.path
        with ExitStack() as stack:
            expected = self._hold(stack)
            files = [file for file in (damaged, *_sides(damaged)) if file.exists()]
            whole = whole_vectors(piece for file in files for piece in intact_pieces(file))
            successor = _successor(damaged)
            draft = _draft(successor)
            try:
                vectors, pieces = _fill(draft, whole)
                _publish(draft, successor)
            except (OSError, sqlite3.Error) as error:
                for file in files:
                    self._gather(file)
                self.say(f"{damaged} is damaged ({reason}).")
                raise Unwritable(
                    f"{damaged} is damaged ({reason}), and its intact vectors cannot be moved to "
                    f"{successor}: {_reason(error)}"
                ) from None
            finally:
                with suppress(OSError):
                    draft.unlink()
        self._close()
        _remove(damaged)
        damage = "those of damaged rows are requested again"
        if expected is not None and expected >= pieces:
            damage = f"{expected - pieces:,} were damaged and are requested again"
        self.say(
            f"{damaged} was damaged ({reason}): {vectors:,} intact vectors are kept in "
            f"{successor.name}, {damage}. What runs under way had spent is not known any more."
        )

    def _hold(self, stack: ExitStack) -> int | None:
        """Keep other processes from writing, as far as possible; return the number of pieces."""
        connection = self._connection
        if connection is None:
            return None
        stack.callback(self._close)
        with suppress(sqlite3.Error):
            connection.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.Error):
            rows = connection.execute("SELECT pieces FROM families").fetchall()
            return sum(int(pieces) for (pieces,) in rows)
        return None

    def say(self, remark: str) -> None:
        """Tell users about damage: in the log, and in the notes of jobs."""
        log.warning("%s", remark)
        self.remarks.append(remark)

    # -- room -----------------------------------------------------------------------------------

    def make_room(self, claim: int, size: int) -> None:
        """Make sure that an answer of this size can be stored; raise Unwritable otherwise."""
        with self.lock:
            try:
                if not self.folder.is_dir():
                    self.folder.mkdir(parents=True, exist_ok=True)
                self._room.add(claim, int(size * ROOM_FACTOR) + ROOM_BYTES, self.path)
            except OSError as error:
                self._room.drop(claim)
                raise Unwritable(f"cannot write {self.path}: {_reason(error)}") from None

    def space(self, vectors: int, requests: int, size: int) -> int:
        """Return the free bytes that vectors of some size need, with requests at the same time."""
        under_way = requests * (int(size * ROOM_FACTOR) + ROOM_BYTES)
        return vectors + under_way + SLACK + 2 * LOG_PAGES * PAGE

    def use_room(self) -> None:
        """Free the room that was made, because an answer needs it now."""
        with self.lock:
            self._room.give()

    def drop_room(self, claim: int) -> None:
        """Forget an answer that was stored, or that does not come."""
        with self.lock:
            self._room.drop(claim)
            if self._room.is_used:  # the others may need what was freed for this one
                with suppress(OSError):
                    self._room.hold()

    def free_room(self) -> None:
        """Free the room if no answer is under way."""
        with self.lock:
            if not self._room.is_used:
                self._room.give()


class Room:
    """A file that holds the room for the answers under way, until one of them needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sizes: dict[int, int] = {}
        self._held = 0

    @property
    def path(self) -> Path:
        """The file of this process."""
        return self.folder / f"room-{os.getpid()}.tmp"

    def add(self, claim: int, size: int, database: Path) -> None:
        """Hold room for one more answer; raises OSError."""
        self._sizes[claim] = size
        _check_file_limit(database, SLACK + sum(self._sizes.values()))
        self.hold()

    def hold(self) -> None:
        """Take the room for all answers under way; raises OSError."""
        needed = SLACK + sum(self._sizes.values())
        if needed > self._held or not self.path.exists():
            with self.path.open("ab") as file:
                _allocate(file.fileno(), needed)
            self._held = needed

    @property
    def is_used(self) -> bool:
        """Whether answers are under way."""
        return bool(self._sizes)

    def drop(self, claim: int) -> None:
        """Forget an answer."""
        self._sizes.pop(claim, None)

    def give(self) -> None:
        """Free the room."""
        self._held = 0
        with suppress(OSError):
            self.path.unlink()

    def sweep(self) -> None:
        """Remove the files of processes that do not run any more."""
        import psutil

        for file in self.folder.glob("*.tmp"):
            pid = re.search(r"-(\d+)\.tmp$", file.name)
            with suppress(OSError):
                old = time.time() - file.stat().st_mtime > 86400
                if old or (pid and not psutil.pid_exists(int(pid[1]))):
                    file.unlink()


def _check_file_limit(database: Path, needed: int) -> None:
    """Raise an OSError if the limit of the size of files is too near."""
    try:
        import resource
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = [file.stat().st_size for file in (database, *_sides(database)) if file.exists()]
    if limit != resource.RLIM_INFINITY and max(sizes, default=0) + needed > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _allocate(descriptor: int, size: int) -> None:
    """Give a file blocks on the disk up to a size."""
    try:
        os.posix_fallocate(descriptor, 0, size)
        return
    except AttributeError:
        pass
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
    missing = size - os.fstat(descriptor).st_size
    while missing > 0:
        missing -= os.write(descriptor, bytes(min(missing, 2**20)))


# -- files --------------------------------------------------------------------------------------


def _connect(path: Path, mode: str, locks: bool = True) -> sqlite3.Connection:
    vfs = "" if locks or os.name == "nt" else "&vfs=unix-none"
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}{vfs}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_SECONDS,
    )


def _configure(connection: sqlite3.Connection, log: bool) -> None:
    """Set the form of a new database, and how it is written."""
    if not log:  # a log that was left is read without memory that processes share
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("PRAGMA cell_size_check = ON")
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    wanted = "wal" if log else "delete"
    if mode != wanted:
        with suppress(sqlite3.OperationalError):  # another process uses it in the other mode
            connection.execute(f"PRAGMA journal_mode = {wanted}")
    connection.execute("PRAGMA locking_mode = NORMAL")
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if log else 'FULL'}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a database has no tables yet; raise Damaged if its pages do not fit."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if not names and pages <= 1:
        return True
    if missing := set(TABLES) - names:
        raise Damaged(f"no table {', '.join(sorted(missing))}")
    (message,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if message != "ok":
        raise Damaged(" ".join(str(message).replace("***", "").split()))
    families = connection.execute("SELECT family FROM families").fetchall()
    expected = {f"vectors_{family}" for (family,) in families}
    if expected != {name for name in names if str(name).startswith("vectors_")}:
        raise Damaged("the tables of vectors are not those that were created")
    return False


def _fill(draft: Path, vectors: Iterator[list[Piece]]) -> tuple[int, int]:
    """Write a new database of vectors; return their number and that of their pieces."""
    draft.unlink(missing_ok=True)
    connection = _connect(draft, "rwc", locks=False)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("BEGIN")
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
        count = pieces = 0
        for parts in vectors:
            insert(connection, parts[0].family.hex(), parts)
            count, pieces = count + 1, pieces + len(parts)
        connection.execute("COMMIT")
    finally:
        connection.close()
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    return count, pieces


def insert(connection: sqlite3.Connection, family: str, pieces: list[Piece]) -> None:
    """Add the pieces of vectors of an encoder; they are numbered from 1 without a gap."""
    row = connection.execute("SELECT pieces FROM families WHERE family = ?", (family,)).fetchone()
    if row is None:
        connection.execute(
            f"CREATE TABLE vectors_{family} (id INTEGER PRIMARY KEY, piece BLOB NOT NULL)"
        )
    before = row[0] if row else 0
    connection.executemany(
        f"INSERT INTO vectors_{family} VALUES (?, ?)",
        ((before + i, piece.packed()) for i, piece in enumerate(pieces, 1)),
    )
    connection.execute("REPLACE INTO families VALUES (?, ?)", (family, before + len(pieces)))


def _successor(path: Path) -> Path:
    """Return the name of the database that replaces a damaged one."""
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return path.with_name(f"endpoints-{int(match[1]) + 1}.sqlite")


def _draft(path: Path) -> Path:
    return path.with_name(f"draft-{path.stem}-{os.getpid()}.tmp")


def _publish(draft: Path, path: Path) -> None:
    """Give a database its name, unless another process was faster."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        os.replace(draft, path)


def _sides(path: Path) -> list[Path]:
    """Return the files in which SQLite keeps what is not in the database yet."""
    return [path.with_name(path.name + end) for end in ("-wal", "-journal")]


def _remove(path: Path) -> None:
    for file in (path, *_sides(path), path.with_name(path.name + "-shm")):
        with suppress(OSError):
            file.unlink()


def _is_damage(error: Exception) -> bool:
    if isinstance(error, Damaged):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE or (
        code == sqlite3.SQLITE_ERROR and bool(_DAMAGE_WORDS.search(str(error)))
    )


def _reason(error: Exception) -> str:
    """Return what is wrong with a file, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return os.strerror(errno.ENOSPC)
    return str(error)


def _on_network(folder: Path) -> bool:
    """Return whether a folder is on a file system of a network."""
    import psutil

    whole = str(folder.absolute())
    best, kind = "", ""
    with suppress(OSError):
        for part in psutil.disk_partitions(all=True):
            inside = whole == part.mountpoint or whole.startswith(part.mountpoint.rstrip("/") + "/")
            if inside and len(part.mountpoint) >= len(best):
                best, kind = part.mountpoint, part.fstype
    return bool(_NETWORK.match(kind.lower()))


@cache
def _database(folder: Path, _: int) -> EndpointDatabase:
    return EndpointDatabase(folder)


def database_in(folder: Path) -> EndpointDatabase:
    """Return the database of a folder, which this process opens once."""
    return _database(folder.absolute(), os.getpid())
