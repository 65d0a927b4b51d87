"""Take one member out of a wheel, zip or tar archive, and nothing else, without being tricked.

A member is named by its path, by a pattern that fits just one (``*.csv``), or, in an archive that
lies in the archive, by both paths with ``!/`` between them.
"""

from __future__ import annotations

import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from karat.data.sources import is_safe
from karat.errors import DataError, did_you_mean

LIMIT = 2 * 1024**3
CHUNK = 1 << 18
INSIDE = "!/"
# What the four libraries below raise for a broken or encrypted archive.
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
)


@dataclass(frozen=True)
class Entry:
    """A file of an archive: its exact path, its announced size, and whether it is a plain file."""

    name: str
    size: int
    plain: bool
    info: zipfile.ZipInfo | tarfile.TarInfo


class _Archive:
    """The two kinds of archive, seen alike."""

    def __init__(self, opened: zipfile.ZipFile | tarfile.TarFile) -> None:
        self._opened = opened

    def entries(self) -> list[Entry]:
        if isinstance(self._opened, zipfile.ZipFile):
            infos = self._opened.infolist()
            return [
                Entry(i.filename, i.file_size, _is_plain(i), i) for i in infos if not i.is_dir()
            ]
        return [
            Entry(i.name.removeprefix("./"), i.size, i.isreg(), i)
            for i in self._opened.getmembers()
            if not i.isdir()
        ]

    def open(self, entry: Entry) -> IO[bytes]:
        if isinstance(self._opened, zipfile.ZipFile):
            assert isinstance(entry.info, zipfile.ZipInfo)
            return self._opened.open(entry.info)
        assert isinstance(entry.info, tarfile.TarInfo)
        stream = self._opened.extractfile(entry.info)
        assert stream is not None  # a plain file always has one
        return stream


def _is_plain(info: zipfile.ZipInfo) -> bool:
    mode = info.external_attr >> 16
    return stat.S_IFMT(mode) in (0, stat.S_IFREG)


@contextmanager
def _open(path: Path) -> Iterator[_Archive]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as opened:
            yield _Archive(opened)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as opened_tar:
            yield _Archive(opened_tar)
    else:
        raise DataError(f"{path.name} is neither a wheel or zip nor a tar archive")


def extract(path: Path, member: str, target: Path) -> None:
    """Write a member to ``target``: a file, or a whole folder when it ends with ``/``.

    Only plain files with paths inside the folder are written; a link, a path that leaves the
    folder, or more than 2 GB is a DataError.
    """
    outer, inside, inner = member.partition(INSIDE)
    if inside:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            between = Path(folder, PurePosixPath(outer).name)
            extract(path, outer, between)
            extract(between, inner, target)
        return
    try:
        with _open(path) as archive:
            wanted = _select(archive.entries(), member, path.name)
            left = LIMIT
            for entry in wanted:
                below = entry.name.removeprefix(member) if member.endswith("/") else ""
                place = target / below if below else target
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as stream:
                    left -= _copy(stream, place, left)
    except BROKEN as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error


def unpack(
    path: Path,
    target: Path,
    suffixes: tuple[str, ...],
    most: int = 10_000,
    limit: int | None = None,
) -> None:
    """Write the files of these endings below a folder; one that may not be there stops all.

    ``most`` is how many files, ``limit`` how many bytes there may be, 2 GB without it.
    """
    try:
        with _open(path) as archive:
            entries = archive.entries()
            if len(entries) > most:
                raise DataError(f"{path.name} holds more than {most:,} files, which is the limit")
            _check_entries(entries, "", path.name, limit)
            left = LIMIT if limit is None else limit
            for entry in entries:
                if entry.name.lower().endswith(suffixes):
                    place = target / entry.name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(entry) as stream:
                        left -= _copy(stream, place, left)
    except BROKEN as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error


def _select(entries: list[Entry], member: str, archive: str) -> list[Entry]:
    if member.endswith("/"):
        wanted = [entry for entry in entries if entry.name.startswith(member)]
    elif is_pattern(member):
        wanted = _only(entries, member, archive)
    else:
        # An archive may hold a path twice; as everywhere, the last one counts.
        wanted = [entry for entry in entries if entry.name == member][-1:]
    if not wanted:
        hint = did_you_mean(member, [entry.name for entry in entries])
        raise DataError(f'{archive} has no member "{member}".{hint}')
    _check_entries(wanted, member, archive)
    return wanted


def _check_entries(
    wanted: list[Entry], member: str, archive: str, limit: int | None = None
) -> None:
    limit = LIMIT if limit is None else limit
    for entry in wanted:
        if not is_safe(entry.name) or not is_safe(entry.name.removeprefix(member) or "file"):
            raise DataError(f'{archive}: the path "{entry.name}" leads outside; not unpacked')
        if not entry.plain:
            raise DataError(f'{archive}: "{entry.name}" is a link, not a file; not unpacked')
    if sum(entry.size for entry in wanted) > limit:
        what = f"{archive}: {member}" if member else archive
        raise DataError(f"{what} is larger than {limit} bytes, which is the limit")


def is_pattern(member: str) -> bool:
    """Return whether a member is named by what its path looks like.

    >>> is_pattern("data/*.csv"), is_pattern("data/a.csv")
    (True, False)
    """
    return "*" in member


def _only(entries: list[Entry], pattern: str, archive: str) -> list[Entry]:
    """Return the one entry that fits a pattern; what a system hides beside files is not meant."""
    fitting = [
        entry
        for entry in entries
        if fnmatchcase(entry.name, pattern)
        and not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(entry.name).parts)
    ]
    if len({entry.name for entry in fitting}) > 1:
        names = ", ".join(sorted({entry.name for entry in fitting})[:5])
        raise DataError(f'{archive} has several members "{pattern}": {names}; name one of them.')
    return fitting[-1:]


def _copy(stream: IO[bytes], place: Path, limit: int) -> int:
    written = 0
    with place.open("wb") as file:
        while chunk := stream.read(CHUNK):
            written += file.write(chunk)
            # The announced size can lie; what is written cannot.
            if written > limit:
                raise DataError(f"{place.name} is larger than announced and than the limit")
    return written
