"""Files and folders that appear whole or not at all, and what is said when a disk is full.

A file is written as a hidden draft next to it and then renamed; so is a folder, in a hidden folder
of its own. Drafts of processes that were killed are removed by the next command that writes there,
those of living processes never.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import stat
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from karat.core.files import locked_folder, remove_abandoned
from karat.errors import DiskFull

#: errors of a full disk, of a quota and of a limit of the size of files
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: prefix of hidden folders whose content is moved when it is complete
DRAFT = ".karat-draft-"
#: suffix of draft files, and the number of characters of a file's name in that of its draft
SUFFIX, NAME_LENGTH = ".tmp", 60
#: the name of a draft: that of the file, the thread, the machine and the process
DRAFT_NAME = re.compile(r"\..*\.\d+\.([0-9a-f]{8})\.(\d+)\.tmp", re.DOTALL)
#: days after which drafts that cannot be told to be abandoned are
DRAFT_DAYS = 1.0
#: the folder in a draft folder for files that are moved together
FILES = "files"
#: whose process ids these are, on Linux
NAMESPACE = "/proc/self/ns/pid"


@contextmanager
def full_disk_explained(path: Path) -> Iterator[None]:
    """Turn the error of a full disk into a ``DiskFull`` that names what could not be written."""
    try:
        yield
    except shutil.Error as error:  # of several files, as (source, target, message)
        copies = [copy for copy in error.args[0] if isinstance(copy, tuple)]
        for _, target, message in copies:
            if reason := next((text for text in map(os.strerror, FULL) if text in message), None):
                raise DiskFull(str(target), reason) from error
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        named = error.filename2 or error.filename
        full_path = os.fsdecode(named) if isinstance(named, str | bytes) else str(path)
        raise DiskFull(full_path, error.strerror or "No space left on device") from error


def draft_of(path: Path) -> Path:
    """Return the hidden path of a draft, whose name tells which process writes it."""
    writer = f"{threading.get_ident()}.{_host()}.{os.getpid()}"
    return path.with_name(f".{path.name[:NAME_LENGTH]}.{writer}{SUFFIX}")


@contextmanager
def draft_file(path: Path) -> Iterator[Path]:
    """Yield the path of a draft that replaces a file at the end, unless an error is raised."""
    draft = draft_of(path)
    try:
        with full_disk_explained(path):
            yield draft
            os.replace(draft, path)
    except DiskFull as full:
        # the message names the file, not its draft
        raise DiskFull(str(path), full.reason) from full.__cause__
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file atomically; ``durable`` waits until the content has reached the disk.

    Lone surrogates, which UTF-8 cannot encode, are written as escapes. A full disk is a
    ``DiskFull`` that names the file.
    """
    raw = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with draft_file(path) as draft:
        try:
            file = open(draft, "wb")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = open(draft, "wb")
        with file:
            file.write(raw)
            if durable:
                file.flush()
                os.fsync(file.fileno())


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file that a user asked for, and remove the drafts of killed processes next to it."""
    remove_drafts(path.parent)
    write_atomic(path, content)


@contextmanager
def draft_folder(parent: Path) -> Iterator[Path]:
    """Create a hidden folder, for what is moved out of it when it is complete.

    It is removed at the end, and by later calls if this process is killed.
    """
    try:
        with full_disk_explained(parent):
            parent.mkdir(parents=True, exist_ok=True)
            remove_drafts(parent)
            with locked_folder(DRAFT, parent) as folder:
                yield folder
    except DiskFull as full:
        # the message names the folder, not a draft in it
        raise DiskFull(str(parent), full.reason) from full


def write_together(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder, by name: all are complete before the first is in its place.

    If the disk is full, nothing has changed.
    """
    is_new = not folder.exists()
    try:
        with draft_folder(folder) as draft:
            for name, text in files.items():
                write_atomic(draft / FILES / name, text)
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(draft / FILES / name, folder / name)
    except DiskFull as full:
        if is_new:
            with suppress(OSError):  # it has files of another process
                folder.rmdir()
        raise DiskFull(str(folder), full.reason) from full


def remove_drafts(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder, not those in its folders."""
    if folder.is_dir():
        remove_abandoned(folder, f"{DRAFT}*", DRAFT_DAYS)
        _remove_files(folder.glob(f".*{SUFFIX}"))


def remove_partial_files(folder: Path) -> None:
    """Remove the draft files that killed processes left in a folder and in its folders."""
    _remove_files(folder.rglob(f".*{SUFFIX}"))


def _remove_files(drafts: Iterator[Path]) -> None:
    """Remove drafts of dead processes; those of other machines and containers after a day."""
    import psutil

    for draft in drafts:
        if (named := DRAFT_NAME.fullmatch(draft.name)) is None:
            continue  # of another program
        host, number = named.groups()
        with suppress(OSError, OverflowError):  # removed by another process; no process id
            if host == _host():
                abandoned = not psutil.pid_exists(int(number))
            else:
                abandoned = time.time() - draft.lstat().st_mtime > DRAFT_DAYS * 86_400
            if abandoned and stat.S_ISDIR(draft.lstat().st_mode):
                shutil.rmtree(draft, ignore_errors=True)
            elif abandoned:
                draft.unlink()


def _host() -> str:
    """Return a short name of this machine or container, within which process ids are unique."""
    return _short_name(platform.node())


@lru_cache(maxsize=8)
def _short_name(node: str) -> str:
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink(NAMESPACE)
    return f"{zlib.crc32(f'{node} {namespace}'.encode('utf-8', 'replace')):08x}"
