"""Files and folders: the cache, temporary folders, atomic writes, safe names, fingerprints."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import Declined, KaratError

#: prefix of temporary folders
SCRATCH = "karat-run-"
#: a file in a folder that is locked while the process that uses the folder lives
LOCK = ".lock"
#: errors of a full disk or quota
FULL = (errno.ENOSPC, errno.EDQUOT)
#: days after which a temporary folder without a lock file counts as abandoned
SCRATCH_DAYS = 7.0


def cache_folder() -> Path:
    """Return the folder for vectors and downloads: ``$KARAT_CACHE`` or the platform's own."""
    if chosen := os.environ.get("KARAT_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "karat"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a temporary folder for one run; remove those of killed runs."""
    remove_abandoned(Path(tempfile.gettempdir()), f"{SCRATCH}*-*", SCRATCH_DAYS)
    prefix = f"{SCRATCH}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        with locked(Path(folder)):
            yield Path(folder)


def file_locks() -> Any:
    """Return the module of file locks; None on Windows, where nothing abandoned is removed."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that ``remove_abandoned`` of no process removes it.

    The system frees the lock when this process ends, however it ends.
    """
    locks = file_locks()
    if locks is None:
        yield
        return
    draft = folder / f"{LOCK}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks, where nothing is removed
            locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
        draft.rename(folder / LOCK)  # nobody sees it before it is locked
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path, pattern: str, days: float) -> None:
    """Remove this user's folders whose lock no process holds.

    A process id would not do: it may be of another machine or container. Folders without a lock
    file are removed if nothing in them has changed for so many days.
    """
    locks = file_locks()
    for folder in parent.glob(pattern) if locks is not None else ():
        with suppress(OSError):  # locked, or removed by another process
            facts = folder.lstat()
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                _remove_if_abandoned(folder, days, locks)


def _remove_if_abandoned(folder: Path, days: float, locks: Any) -> None:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        newest = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
        if time.time() - newest > days * 86400:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)  # raises if it is held
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def private_folder(path: Path) -> Path:
    """Create a folder of a known name that only this user can write to, and return it."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise KaratError(
            f"{path} is not a folder that only you can write to; remove it, or set TMPDIR to a "
            f"folder of your own."
        )
    return path


_PLAIN = re.compile(r"[A-Za-z0-9_@+=,-][A-Za-z0-9_@+=,.-]{0,59}")
#: the suffix of generated names
_MADE = re.compile(r"-[0-9a-f]{12}$")


def safe_name(name: str) -> str:
    """Return a name that is a single path component, different for different names.

    >>> safe_name("penguins"), safe_name("noise@0.1")
    ('penguins', 'noise@0.1')
    >>> safe_name("../etc"), safe_name("a b")
    ('_etc-f7f9121fdb53', 'a_b-c8687a08aa5d')
    """
    if _PLAIN.fullmatch(name) and not _MADE.search(name) and not name.endswith("."):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain}-{digest[:12]}"


def write_atomic(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file atomically; ``durable`` waits until the content has reached the disk.

    Lone surrogates, which UTF-8 cannot encode, are written as escapes. A full disk is a
    ``KaratError`` that names the file.
    """
    raw = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    writer = f"{threading.get_ident()}.{_host()}.{os.getpid()}"
    draft = path.with_name(f".{path.name}.{writer}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(raw)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if error.errno in FULL:
            raise KaratError(
                f"cannot write {path}: {error.strerror}; free some space there, then continue the "
                f"run with --resume."
            ) from error
        raise


def remove_partial_files(folder: Path) -> None:
    """Remove the partial files of processes that were killed while they wrote into a folder.

    Those of other machines and containers, whose processes are not known here, only after a day.
    """
    import psutil

    for draft in folder.rglob(".*.tmp"):
        *_, host, number = ["", *draft.name.removesuffix(".tmp").split(".")]
        with suppress(OSError, OverflowError):  # removed by another process; no process id
            if host == _host() and number.isdecimal():
                abandoned = not psutil.pid_exists(int(number))
            else:
                abandoned = time.time() - draft.lstat().st_mtime > 86400
            if abandoned:
                draft.unlink()


def _host() -> str:
    """Return a short name of this machine or container."""
    return f"{zlib.crc32(platform.node().encode('utf-8', 'replace')):08x}"


def encodable(text: str) -> str:
    """Return a text with lone surrogates, which UTF-8 cannot encode, written as escapes.

    >>> len(chr(0xDC80)), len(encodable(chr(0xDC80)))
    (1, 6)
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


PACKAGE_PREFIX = "package:"


def package_file(name: str) -> Path:
    """Return the path of a file or folder; ``"package:NAME/PATH"`` is in an installed package.

    >>> package_file("package:karat/config/builtin/models.yaml").name
    'models.yaml'
    """
    if not name.startswith(PACKAGE_PREFIX):
        return Path(name).expanduser()
    package, _, inner = name.removeprefix(PACKAGE_PREFIX).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / inner
        if path.exists():
            return path
    raise Declined(f"package {package} or its file {inner or 'folder'} not found")


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that changes with any value, type, name or order.

    >>> fingerprint(pd.Series([1, 2])) == fingerprint(pd.Series([1, 2]))
    True
    >>> fingerprint(pd.Series([1, "1"])) == fingerprint(pd.Series([1, 1], dtype=object))
    False
    """
    frame = values.to_frame("value") if isinstance(values, pd.Series) else values
    digest = hashlib.sha256(repr(list(frame.columns)).encode())
    index = frame.index.to_series(index=range(len(frame)))
    for column in [index, *(frame.iloc[:, i] for i in range(frame.shape[1]))]:
        digest.update(f"{column.dtype} ".encode())
        if isinstance(column.dtype, pd.CategoricalDtype):
            # unused categories count: an encoder may give them a dimension
            categories = column.cat.categories.to_series(index=range(len(column.cat.categories)))
            digest.update(f"{column.cat.ordered} {fingerprint(categories)}".encode())
        digest.update(_content(column))
    return digest.hexdigest()


def _content(column: pd.Series) -> bytes:
    if column.dtype != object:
        return _hashes(column)
    cells = column.tolist()
    types = {type(cell) for cell in cells}
    named = repr(sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in types)).encode()
    if types == {str}:
        with suppress(UnicodeEncodeError):  # a lone surrogate cannot be encoded
            return named + _hashes(column)
    # 1 and "1" have the same hash in a mixed column, so the type is included
    texts = [f"{type(cell).__qualname__} {repr(cell)}" for cell in cells]
    for i, cell in enumerate(cells):
        if isinstance(cell, np.ndarray):  # numpy abbreviates long arrays
            digest = hashlib.sha256(cell.tobytes()).hexdigest()
            texts[i] = f"ndarray {cell.dtype} {cell.shape} {digest}"
    return named + _hashes(pd.Series(texts, dtype=object))


def _hashes(column: pd.Series) -> bytes:
    hashed = pd.util.hash_pandas_object(column, index=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()
