"""fastText's binary vectors: where the file lies on this machine, and what is in it."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

from karat.errors import DataError, Declined, MissingExtra
from karat.folders import cache_folder

FILE = "cc.en.300.bin"
ADDRESS = f"https://dl.fbaipublicfiles.com/fasttext/vectors-crawl/{FILE}.gz"
_MAGIC = 793712314


def find_fasttext(given: str | None, dimensions: int) -> Path:
    """Return the path of a file of vectors; where there is none, Declined says how to get one.

    Looked at, in this order: what was given, ``KARAT_FASTTEXT``, the folders of ``KARAT_DATA`` and
    the cache. The first two must be right; the file is opened, not read.
    """
    for where, named in (("fasttext", given), ("KARAT_FASTTEXT", os.environ.get("KARAT_FASTTEXT"))):
        if named:
            path = Path(named).expanduser().absolute()
            if not path.is_file():
                raise Declined(f"{where} names {path}, and there is no such file. {_way()}")
            return _checked(path, dimensions)
    for folder in _folders():
        for path in (folder / FILE, folder / "fasttext" / FILE):
            if path.is_file():
                return _checked(path, dimensions)
    raise Declined(f"fastText's English vectors ({FILE}) are not here. {_way()}")


def _way() -> str:
    return (
        f"Unpack {ADDRESS} (4.2 GB) and set KARAT_FASTTEXT to the file. Other ways: the same file "
        f"lies at https://huggingface.co/hi-paris/fastText; the parameter fasttext takes a path; "
        f"a file at $KARAT_DATA/fasttext/{FILE} is found."
    )


def _folders() -> list[Path]:
    given = os.environ.get("KARAT_DATA", "")
    folders = [Path(folder).expanduser() for folder in given.split(os.pathsep) if folder]
    return [folder.absolute() for folder in [*folders, cache_folder()]]


def _checked(path: Path, dimensions: int) -> Path:
    found = dimensions_of(path)
    if found != dimensions:
        raise Declined(f"{path} holds vectors of {found} dimensions; {dimensions} are needed.")
    return path


def dimensions_of(path: Path) -> int:
    """Return the number of dimensions that stands at the beginning of a fastText file."""
    try:
        with path.open("rb") as file:
            begin = file.read(12)
    except OSError as error:
        raise Declined(f"{path} cannot be read: {error.strerror or error}.") from error
    if begin[:2] == b"\x1f\x8b":
        raise Declined(f"{path} is packed: run gunzip on it first.")
    if len(begin) < 12 or struct.unpack("<i", begin[:4])[0] != _MAGIC:
        raise Declined(
            f"{path} is no binary file of fastText; {FILE} is one, {FILE[:-4]}.vec none."
        )
    return int(struct.unpack("<i", begin[8:])[0])


def load_fasttext(path: Path) -> Any:
    """Return fastText's own model of a file; one is kept, for it may take gigabytes."""
    stat = path.stat()
    return _loaded(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1)
def _loaded(path: str, changed: int, size: int) -> Any:
    try:
        import fasttext
    except ImportError as error:
        raise MissingExtra("fasttext", "carte") from error
    _check_whole(Path(path))
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it tells of its own past there
            return fasttext.load_model(path)
    except (ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"fastText cannot read {path}: {error or 'too little memory'}.") from error


def _check_whole(path: Path) -> None:
    """Refuse a file that was cut off: fastText would read on for ever, or make vectors of nothing.

    After 64 bytes of settings come the words, each with a zero and 9 bytes behind it, and then two
    matrices, each with a byte and its two sizes before it.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            words, _, _, _, pruned = struct.unpack_from("<iiiqq", content, 64)
            place = 64 + struct.calcsize("<iiiqq")
            for _ in range(words):
                end = content.find(b"\0", place)
                place = end + 10 if end >= 0 else len(content)
            place += 8 * max(pruned, 0)
            for _ in range(2):
                packed, rows, columns = struct.unpack_from("<?qq", content, place)
                if packed:  # of another layout
                    return
                place += 17 + 4 * rows * columns
        except struct.error:
            place = len(content) + 1
        if place > len(content):
            raise DataError(f"{path} is cut off: download it again.")
