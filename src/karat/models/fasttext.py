"""Find and load fastText's binary vectors."""

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
    """Return the path of the vector file; raise Declined with instructions if there is none.

    Searched in this order: ``given``, ``KARAT_FASTTEXT``, the folders of ``KARAT_DATA``, the cache.
    The first two must exist. Only the header of the file is read.
    """
    for source, value in (
        ("fasttext", given),
        ("KARAT_FASTTEXT", os.environ.get("KARAT_FASTTEXT")),
    ):
        if value:
            path = Path(value).expanduser().absolute()
            if not path.is_file():
                raise Declined(f"{source}: file not found: {path}. {_instructions()}")
            return _checked(path, dimensions)
    for folder in _folders():
        for path in (folder / FILE, folder / "fasttext" / FILE):
            if path.is_file():
                return _checked(path, dimensions)
    raise Declined(f"fastText's English vectors ({FILE}) not found. {_instructions()}")


def _instructions() -> str:
    return (
        f"Unpack {ADDRESS} (4.2 GB) and set KARAT_FASTTEXT to the file. Alternatives: the same "
        f"file at https://huggingface.co/hi-paris/fastText; the parameter fasttext; "
        f"a file $KARAT_DATA/fasttext/{FILE}."
    )


def _folders() -> list[Path]:
    given = os.environ.get("KARAT_DATA", "")
    folders = [Path(folder).expanduser() for folder in given.split(os.pathsep) if folder]
    return [folder.absolute() for folder in [*folders, cache_folder()]]


def _checked(path: Path, dimensions: int) -> Path:
    found = dimensions_of(path)
    if found != dimensions:
        raise Declined(f"{path}: expected vectors of {dimensions} dimensions, got {found}.")
    return path


def dimensions_of(path: Path) -> int:
    """Return the number of dimensions in the header of a fastText file."""
    try:
        with path.open("rb") as file:
            begin = file.read(12)
    except OSError as error:
        raise Declined(f"cannot read {path}: {error.strerror or error}.") from error
    if begin[:2] == b"\x1f\x8b":
        raise Declined(f"{path} is compressed; run gunzip first.")
    if len(begin) < 12 or struct.unpack("<i", begin[:4])[0] != _MAGIC:
        raise Declined(f"{path} is not in fastText's binary format (such as {FILE}).")
    return int(struct.unpack("<i", begin[8:])[0])


def load_fasttext(path: Path) -> Any:
    """Return fastText's model of a file; only the last one is cached, as it may take gigabytes."""
    stat = path.stat()
    return _loaded(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1)
def _loaded(path: str, changed: int, size: int) -> Any:
    try:
        import fasttext
    except ImportError as error:
        raise MissingExtra("fasttext", "carte") from error
    _check_complete(Path(path))
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # suppress a deprecation notice
            return fasttext.load_model(path)
    except (ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"fastText cannot read {path}: {error or 'too little memory'}.") from error


def _check_complete(path: Path) -> None:
    """Refuse a truncated file, on which fastText would hang or return wrong vectors.

    Layout: 64 bytes of settings; the words, each followed by a zero and 9 bytes; two matrices, each
    preceded by a byte and its two sizes.
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
                if packed:  # quantized, with another layout
                    return
                place += 17 + 4 * rows * columns
        except struct.error:
            place = len(content) + 1
        if place > len(content):
            raise DataError(f"{path} is truncated; download it again.")
