"""Read files as they are or decompressed: ``.gz`` and ``.zst`` piece by piece."""

from __future__ import annotations

import gzip
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from karat.core.files import check_content
from karat.errors import DataError
from karat.models.model import import_extra

#: bytes of text in memory at a time
BLOCK = 1 << 19
#: bytes of a line in memory at a time
LINE = 1 << 25
#: compressed bytes read at a time: four bytes may become 128 kB
ZST_BLOCK = 1 << 10


def plain_suffix(path: Path) -> str:
    """Return a file's suffix without that of its compression.

    >>> plain_suffix(Path("glove.TXT.gz"))
    '.txt'
    """
    return Path(path.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix


def read_decompressed(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file piece by piece."""
    suffix = path.suffix.lower()
    if suffix not in (".gz", ".zst"):
        with path.open("rb") as file:
            yield from _pieces(file)
        return
    size = 0
    for piece in _decompressed_zst(path) if suffix == ".zst" else _decompressed_gz(path):
        size += len(piece)
        check_content(path, size)
        yield piece


def _pieces(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while piece := file.read(BLOCK):
        yield piece if piece.endswith(b"\n") else piece + file.readline(LINE)


def _decompressed_gz(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        yield from _pieces(file)


def _decompressed_zst(path: Path) -> Iterator[bytes]:
    zstandard = import_extra("zstandard", "zst")
    with path.open("rb") as file:
        frame = None
        while packed := file.read(ZST_BLOCK):
            while packed:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield frame.decompress(packed)
                except zstandard.ZstdError as error:
                    raise DataError(f"cannot read {path}: {error}.") from error
                packed = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise DataError(f"cannot read {path}: the file is truncated.")


@contextmanager
def mapped_bytes(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Yield the bytes of a file, in memory only as far as they are used if it is not compressed."""
    if path.suffix.lower() in (".gz", ".zst"):
        yield b"".join(read_decompressed(path))
        return
    if not path.stat().st_size:
        raise DataError(f"{path} contains no vectors.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
