"""The stored form of paid vectors: rows with checksums that are readable without their database.

A row is found by its first bytes and proved by its checksum, wherever it is in a file. So a
damaged database loses the rows whose bytes were changed, and no others (``intact_pieces``). The
journals of earlier versions are read here too.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: number of bytes of the hash of a text, of the name of an encoder, and of that of an answer
MARK_BYTES, FAMILY_BYTES, ANSWER_BYTES = 16, 16, 8
#: the facts of a text; ``bytes`` is its length in UTF-8, an estimate of tokens is negative
ROW = np.dtype(
    [("mark", f"V{MARK_BYTES}"), ("tokens", "<f8"), ("bytes", "<u4"), ("truncated", "u1")]
)
#: how a piece begins; no text, number or page of a database looks like it
SIGNATURE = b"KVec\x9d\x01\r\n"
#: most bytes of numbers of a piece: it fits into a page of the database, so that it is in one part
PIECE_BYTES = 16_000
#: bytes that are read at once in search of pieces, and where a disk cannot read them
_BLOCK, _SECTOR = 2**22, 4096
#: signature, bytes of the piece, encoder, mark, answer, seconds, tokens, bytes of the text, width,
#: number of the piece, truncated
_HEAD = struct.Struct(f"<8sI{FAMILY_BYTES}s{MARK_BYTES}s{ANSWER_BYTES}sddIIHB")
_START, _CHECKSUM = struct.Struct("<8sI"), struct.Struct("<I")
#: the largest piece with its head and checksum
LARGEST = _HEAD.size + PIECE_BYTES + _CHECKSUM.size
#: the head of a frame of an old journal: mark, rows, width, checksum, seconds
_FRAME_HEAD, _FRAME = struct.Struct("<4sIIId"), b"KVJ1"
#: largest plausible numbers of rows and dimensions of a frame
_MOST_ROWS, MOST_DIMENSIONS = 2**20, 2**20


class Piece(NamedTuple):
    """A vector, or a part of a long one, with the facts of its text and of its answer."""

    family: bytes
    mark: bytes
    answer: bytes
    seconds: float
    tokens: float
    text_bytes: int
    width: int
    number: int
    truncated: int
    values: bytes

    def packed(self) -> bytes:
        """Return the piece as bytes that end with their checksum."""
        size = _HEAD.size + len(self.values) + _CHECKSUM.size
        head = _HEAD.pack(
            SIGNATURE, size, self.family, self.mark, self.answer, self.seconds, self.tokens,
            self.text_bytes, self.width, self.number, self.truncated,
        )  # fmt: skip
        content = head + self.values
        return content + _CHECKSUM.pack(zlib.crc32(content))


@dataclass(frozen=True)
class ReceivedVectors:
    """The vectors of a request, a ``ROW`` of facts each, and the seconds of the request."""

    rows: np.ndarray
    vectors: np.ndarray
    seconds: float

    def pieces(self, family: bytes) -> Iterator[Piece]:
        """Yield the pieces to store; those of a vector follow each other."""
        name = os.urandom(ANSWER_BYTES)
        matrix = np.ascontiguousarray(self.vectors, "<f4")
        width = matrix.shape[1]
        for row, vector in zip(self.rows, matrix, strict=True):
            values = vector.tobytes()
            for number in range(pieces_of(width)):
                part = values[number * PIECE_BYTES : (number + 1) * PIECE_BYTES]
                yield Piece(
                    family, row["mark"].tobytes(), name, self.seconds, float(row["tokens"]),
                    int(row["bytes"]), width, number, int(row["truncated"]), part,
                )  # fmt: skip


def pieces_of(width: int) -> int:
    """Return the number of pieces of a vector.

    >>> pieces_of(1), pieces_of(4000), pieces_of(4001)
    (1, 1, 2)
    """
    return max(1, -(-4 * width // PIECE_BYTES))


def stored_bytes(width: int) -> int:
    """Return the bytes that a vector takes in a database, with the unused ends of its pages."""
    page = 2**14
    size = _HEAD.size + min(4 * width, PIECE_BYTES) + _CHECKSUM.size + 16
    return pieces_of(width) * -(-page // max(1, (page - 100) // size))


def piece_at(content: bytes | memoryview, offset: int = 0) -> Piece | None:
    """Return the piece at a place of some bytes; None if it is cut off or damaged."""
    if len(content) - offset < _HEAD.size + _CHECKSUM.size:
        return None
    signature, size = _START.unpack_from(content, offset)
    end = offset + size - _CHECKSUM.size
    if signature != SIGNATURE or not _HEAD.size + _CHECKSUM.size <= size <= LARGEST:
        return None
    if len(content) < offset + size:
        return None
    if zlib.crc32(memoryview(content)[offset:end]) != _CHECKSUM.unpack_from(content, end)[0]:
        return None
    facts = _HEAD.unpack_from(content, offset)
    return Piece._make((*facts[2:], bytes(content[offset + _HEAD.size : end])))


def intact_pieces(path: Path) -> Iterator[Piece]:
    """Yield the intact pieces in the bytes of a file, whatever is around them."""
    with path.open("rb", buffering=0) as file:
        size, begin = os.fstat(file.fileno()).st_size, 0
        while begin < size:
            block = _readable(file.fileno(), begin, _BLOCK + LARGEST)
            offset = block.find(SIGNATURE)
            while 0 <= offset < _BLOCK:
                piece = piece_at(block, offset)
                if piece is not None:
                    yield piece
                offset = block.find(SIGNATURE, offset + len(SIGNATURE))
            begin += _BLOCK


def _readable(descriptor: int, begin: int, size: int) -> bytes:
    """Return bytes of a file; zeros stand for what the disk cannot read."""
    os.lseek(descriptor, begin, os.SEEK_SET)
    try:
        return _read(descriptor, size)
    except OSError:
        if size <= _SECTOR:
            return bytes(size)
    parts = range(begin, begin + size, _SECTOR)
    return b"".join(_readable(descriptor, part, _SECTOR) for part in parts)


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def whole_vectors(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each vector of which all were read, once per text and encoder."""
    gathered: dict[tuple[bytes, bytes, bytes], dict[int, Piece]] = {}
    complete: set[tuple[bytes, bytes]] = set()
    for piece in pieces:
        text = (piece.family, piece.mark)
        if text in complete:
            continue
        key = (*text, piece.answer)
        parts = gathered.setdefault(key, {})
        parts[piece.number] = piece
        if len(parts) == pieces_of(piece.width):
            complete.add(text)
            yield [gathered[key][number] for number in sorted(parts)]
            del gathered[key]


def text_facts(piece: Piece) -> tuple[bytes, float, int, int]:
    """Return the values of a ``ROW``."""
    return piece.mark, piece.tokens, piece.text_bytes, piece.truncated


@dataclass(frozen=True)
class OldJournal:
    """The intact answers of a journal of an earlier version, and the bytes that were damaged."""

    answers: list[ReceivedVectors]
    damaged: int


def read_old_journal(path: Path) -> OldJournal:
    """Read a journal of an earlier version; what follows a damaged answer is read too."""
    content = path.read_bytes()
    answers: list[ReceivedVectors] = []
    offset = damaged = 0
    while offset < len(content):
        frame = _old_answer(content, offset)
        if frame is None:  # go on at the next answer
            after = content.find(_FRAME, offset + 1)
            following = len(content) if after < 0 else after
            damaged += following - offset
            offset = following
        else:
            answer, offset = frame
            answers.append(answer)
    return OldJournal(answers, damaged)


def _old_answer(content: bytes, offset: int) -> tuple[ReceivedVectors, int] | None:
    if len(content) - offset < _FRAME_HEAD.size:
        return None
    mark, count, width, checksum, seconds = _FRAME_HEAD.unpack_from(content, offset)
    if mark != _FRAME or not 0 < count <= _MOST_ROWS or not 0 < width <= MOST_DIMENSIONS:
        return None
    begin = offset + _FRAME_HEAD.size
    end = begin + count * (ROW.itemsize + 4 * width)
    if end > len(content) or zlib.crc32(memoryview(content)[begin:end]) != checksum:
        return None
    rows = np.frombuffer(content, ROW, count, begin)
    matrix = np.frombuffer(content, "<f4", count * width, begin + count * ROW.itemsize)
    return ReceivedVectors(rows, matrix.reshape(count, width), seconds), end
