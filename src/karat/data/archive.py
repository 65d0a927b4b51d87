"""Extract one member of a wheel, zip or tar archive; links and unsafe paths are refused.

A member is given by its path, by a pattern that matches exactly one file (``*.csv``), or, in a
nested archive, by both paths with ``!/`` between them.
"""

from __future__ import annotations

import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from karat.data.sources import is_safe
from karat.errors import DataError, did_you_mean

LIMIT = 2 * 1024**3
CHUNK = 1 << 18
INSIDE = "!/"
# Raised for a broken or encrypted archive.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)
BROKEN = (*ZIP_ERRORS, tarfile.TarError, EOFError, OSError)


@dataclass(frozen=True)
class Entry:
    """A file of an archive: its path, its declared size, and whether it is a regular file."""

    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes] | None]


@contextmanager
def _entries(path: Path) -> Iterator[list[Entry]]:
    """Open an archive and yield its files; errors of the libraries become a DataError."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as opened:
                files = [info for info in opened.infolist() if not info.is_dir()]
                yield [
                    Entry(i.filename, i.file_size, _is_regular(i), partial(opened.open, i))
                    for i in files
                ]
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as tar:
                members = [info for info in tar.getmembers() if not info.isdir()]
                yield [
                    Entry(i.name.removeprefix("./"), i.size, i.isreg(), partial(tar.extractfile, i))
                    for i in members
                ]
        else:
            raise DataError(f"{path.name} is not a wheel, zip or tar archive")
    except BROKEN as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error


def _is_regular(info: zipfile.ZipInfo) -> bool:
    return stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)


def extract(path: Path, member: str, target: Path) -> None:
    """Write a member to ``target``: a file, or a whole folder if the member ends with ``/``.

    Raises a DataError for a link, a path that leaves the folder, or more than 2 GB.
    """
    outer, inside, inner = member.partition(INSIDE)
    if inside:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            nested = Path(folder, PurePosixPath(outer).name)
            extract(path, outer, nested)
            extract(nested, inner, target)
        return
    with _entries(path) as entries:
        selected = _select(entries, member, path.name)
        prefix = member if member.endswith("/") else None
        paths = [target / e.name.removeprefix(prefix) if prefix else target for e in selected]
        _write_all(list(zip(selected, paths, strict=True)), LIMIT)


def unpack(
    path: Path,
    target: Path,
    suffixes: tuple[str, ...],
    most: int = 10_000,
    limit: int | None = None,
) -> None:
    """Write the files with these suffixes to a folder; an unsafe path anywhere is a DataError.

    ``most`` is the maximum number of files and ``limit`` of bytes (default: 2 GB).
    """
    limit = LIMIT if limit is None else limit
    with _entries(path) as entries:
        if len(entries) > most:
            raise DataError(f"{path.name} has {len(entries):,} files; the limit is {most:,}")
        _check_entries(entries, "", path.name, limit)
        selected = [entry for entry in entries if entry.name.lower().endswith(suffixes)]
        _write_all([(entry, target / entry.name) for entry in selected], limit)


def _select(entries: list[Entry], member: str, archive: str) -> list[Entry]:
    if member.endswith("/"):
        selected = [entry for entry in entries if entry.name.startswith(member)]
    elif "*" in member:
        selected = _match_one(entries, member, archive)
    else:
        # If a path occurs twice, the last entry counts, as in other tools.
        selected = [entry for entry in entries if entry.name == member][-1:]
    if not selected:
        hint = did_you_mean(member, [entry.name for entry in entries])
        raise DataError(f'{archive} has no member "{member}".{hint}')
    _check_entries(selected, member, archive, LIMIT)
    return selected


def _check_entries(entries: list[Entry], member: str, archive: str, limit: int) -> None:
    for entry in entries:
        if not is_safe(entry.name) or not is_safe(entry.name.removeprefix(member) or "file"):
            raise DataError(f'{archive}: unsafe path "{entry.name}"; nothing was unpacked')
        if not entry.regular:
            raise DataError(f'{archive}: "{entry.name}" is a link; nothing was unpacked')
    if sum(entry.size for entry in entries) > limit:
        what = f"{archive}: {member}" if member else archive
        raise DataError(f"{what} is larger than {limit} bytes, the limit")


def _match_one(entries: list[Entry], pattern: str, archive: str) -> list[Entry]:
    """Return the only entry that matches a pattern; hidden files do not count."""
    matching = [
        entry
        for entry in entries
        if fnmatchcase(entry.name, pattern)
        and not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(entry.name).parts)
    ]
    if len(names := sorted({entry.name for entry in matching})) > 1:
        raise DataError(
            f'{archive} has several members "{pattern}": {", ".join(names[:5])}; give one of them.'
        )
    return matching[-1:]


def _write_all(files: Sequence[tuple[Entry, Path]], limit: int) -> None:
    for entry, path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = entry.open()
        assert stream is not None  # only regular files are selected
        with stream:
            limit -= _copy(stream, path, limit)


def _copy(stream: IO[bytes], path: Path, limit: int) -> int:
    """Write a stream to a file; its declared size may be wrong, so the bytes are counted."""
    written = 0
    with path.open("wb") as file:
        while chunk := stream.read(CHUNK):
            written += file.write(chunk)
            if written > limit:
                raise DataError(f"{path.name} is larger than declared and than the limit")
    return written
