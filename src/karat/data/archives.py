"""Members of wheels, zip and tar archives, unpacked within limits.

A member is given by its path, by a pattern that matches exactly one file (``*.csv``) or, with
``**``, any number of files, or, in a nested archive, by both paths with ``!/`` between them.
"""

from __future__ import annotations

import lzma
import stat
import struct
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
from typing import IO, Any

from karat.core.files import check_content
from karat.data.file_sources import is_safe
from karat.errors import DataError, did_you_mean

LIMIT = 2 * 1024**3
#: the maximum number of entries of an archive, folders included, and bytes of a long name in a tar
MAX_ENTRIES, MAX_TAR_HEADER = 100_000, 1 << 20
CHUNK = 1 << 18
INSIDE = "!/"
#: in a pattern of members: all files that match, not exactly one
SEVERAL = "**"
#: raised for a broken or encrypted archive
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    LookupError,
    OverflowError,
    RuntimeError,
    ValueError,
)
BROKEN = (*ZIP_ERRORS, tarfile.TarError, EOFError, OSError)


@dataclass(frozen=True)
class ArchiveEntry:
    """A file of an archive: its path, its declared size, and whether it is a regular file."""

    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes] | None]


@contextmanager
def _entries(path: Path) -> Iterator[list[ArchiveEntry]]:
    """Open an archive and yield its files; errors of the libraries become a DataError."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as opened:
                _check_count(path, len(opened.infolist()))
                files = [info for info in opened.infolist() if not info.is_dir()]
                modes = [stat.S_IFMT(info.external_attr >> 16) for info in files]
                yield [
                    ArchiveEntry(
                        i.filename, i.file_size, m in (0, stat.S_IFREG), partial(opened.open, i)
                    )
                    for i, m in zip(files, modes, strict=True)
                ]
        elif tarfile.is_tarfile(path):
            with tarfile.open(path, tarinfo=_TarInfo) as tar:
                members = [info for info in _members(tar, path) if not info.isdir()]
                yield [
                    ArchiveEntry(
                        i.name.removeprefix("./"), i.size, i.isreg(), partial(tar.extractfile, i)
                    )
                    for i in members
                ]
        else:
            raise DataError(f"{path.name} is not a wheel, zip or tar archive")
    except BROKEN as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error


class _TarInfo(tarfile.TarInfo):
    """An entry whose name and attributes are not too long: they are read into memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if not self.isreg() and not self.isdir() and self.size > MAX_TAR_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


def _members(tar: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the entries of a tar; stop as soon as they are too many or too large."""
    size = 0
    for count, member in enumerate(tar, start=1):
        _check_count(path, count)
        size += member.size
        check_content(path, size)
        yield member


def _check_count(path: Path, count: int) -> None:
    if count > MAX_ENTRIES:
        raise DataError(f"{path.name} has more than {MAX_ENTRIES:,} entries, the limit")


def extract(path: Path, member: str, target: Path) -> None:
    """Write a member to ``target``: a file, or a folder if it ends with ``/`` or contains ``**``.

    Raises a DataError for a link, a path that leaves the folder, more than 2 GB or more than
    100,000 entries.
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
        several = member.endswith("/") or SEVERAL in member
        base = member.partition("*")[0].rpartition("/")[0] + "/"
        paths = [target / e.name.removeprefix(base) if several else target for e in selected]
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


def _select(entries: list[ArchiveEntry], member: str, archive: str) -> list[ArchiveEntry]:
    def hidden(name: str) -> bool:
        return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)

    if member.endswith("/"):
        selected = [entry for entry in entries if entry.name.startswith(member)]
    elif "*" in member:
        selected = [e for e in entries if fnmatchcase(e.name, member) and not hidden(e.name)]
        names = sorted({entry.name for entry in selected})
        if len(names) > 1 and SEVERAL not in member:
            raise DataError(
                f'{archive} has several members "{member}": {", ".join(names[:5])}; '
                f"give one of them."
            )
        selected = selected if SEVERAL in member else selected[-1:]
    else:
        # If a path occurs twice, the last entry counts, as in other tools.
        selected = [entry for entry in entries if entry.name == member][-1:]
    if not selected:
        hint = did_you_mean(member, [entry.name for entry in entries[:1000]])
        raise DataError(f'{archive} has no member "{member}".{hint}')
    _check_entries(selected, member, archive, LIMIT)
    return selected


def _check_entries(entries: list[ArchiveEntry], member: str, archive: str, limit: int) -> None:
    for entry in entries:
        if not is_safe(entry.name) or not is_safe(entry.name.removeprefix(member) or "file"):
            raise DataError(f'{archive}: unsafe path "{entry.name}"; nothing was unpacked')
        if not entry.regular:
            raise DataError(f'{archive}: "{entry.name}" is a link; nothing was unpacked')
    if sum(entry.size for entry in entries) > limit:
        what = f"{archive}: {member}" if member else archive
        raise DataError(f"{what} is larger than {limit} bytes, the limit")


def _write_all(files: Sequence[tuple[ArchiveEntry, Path]], limit: int) -> None:
    for entry, path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = entry.open()
        assert stream is not None  # only regular files are selected
        with stream, path.open("wb") as file:
            while chunk := stream.read(CHUNK):
                limit -= file.write(chunk)
                if limit < 0:  # the declared sizes were checked before, but may be wrong
                    raise DataError(f"{path.name} is larger than declared and than the limit")
