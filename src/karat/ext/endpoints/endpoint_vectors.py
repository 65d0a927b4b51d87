"""The vectors of one encoder behind an endpoint: looked up by text, added answer by answer."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from karat.core.files import file_locks
from karat.ext.endpoints.endpoint_rows import (
    MARK_BYTES,
    ROW,
    Piece,
    ReceivedVectors,
    piece_at,
    pieces_of,
    read_old_journal,
    stored_bytes,
    text_facts,
)
from karat.ext.endpoints.endpoint_store import Damaged, EndpointDatabase, Unwritable, insert

#: dimensions that room is made for while they are not known
DIMENSIONS = 8192
#: vectors that may lie between two that are read in one query
NEAR = 8

log = logging.getLogger(__name__)


def text_mark(prompt: str, text: str) -> bytes:
    """Return the hash of a text under a prompt."""
    whole = f"{prompt}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=MARK_BYTES).digest()


@dataclass(frozen=True)
class Delivered:
    """Vectors of texts, a ``ROW`` of facts each, and the seconds of the requests they came with."""

    vectors: np.ndarray
    rows: np.ndarray
    seconds: list[float]

    def at(self, places: Sequence[int]) -> Delivered:
        """Return the vectors and facts of some of the texts."""
        return Delivered(self.vectors[places], self.rows[places], self.seconds)


class VectorTable:
    """The vectors of an encoder in the database; those that cannot be stored are in memory."""

    def __init__(self, database: EndpointDatabase, family: str) -> None:
        self.database, self.family = database, family
        self._name = bytes.fromhex(family)
        self._places: dict[bytes, int] = {}
        self._pieces = 0
        self._opened = -1
        #: pieces of vectors that could not be stored, by text
        self._in_hand: dict[bytes, list[Piece]] = {}
        self._moved = False
        self.width: int | None = None
        self.tokens, self.bytes = 0.0, 0

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._places or mark in self._in_hand

    @property
    def unsaved(self) -> int:
        """The number of vectors that could not be stored."""
        return len(self._in_hand)

    def room(self, texts: int, dimensions: int | None = None) -> int:
        """Return the bytes that the vectors of some texts take in the database."""
        return texts * stored_bytes(self.width or dimensions or DIMENSIONS)

    # -- reading --------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what was added since, also by other processes.

        If the database cannot be read, its intact vectors are read into memory.
        """
        with self.database.lock:
            if not self._moved:
                self._moved = True
                self._move_journal()
            try:
                exists = self.database.read(self._followed, False)
            except Unwritable as error:
                log.warning("%s", error)
                self._forget()
                self._take_loose(store=False)
            else:
                if not exists:
                    self._forget()
                self._take_loose(store=True)

    def _forget(self) -> None:
        self._places, self._pieces, self._opened = {}, 0, -1
        self.width = next((parts[0].width for parts in self._in_hand.values()), None)
        self.tokens, self.bytes = 0.0, 0

    def _followed(self, connection: sqlite3.Connection) -> bool:
        self.follow(connection)
        return True

    def follow(self, connection: sqlite3.Connection) -> None:
        """Read the rows that follow; raise Damaged if one is not what was written."""
        if self._opened != self.database.opened:
            self._forget()
            self._opened = self.database.opened
        select = "SELECT pieces FROM families WHERE family = ?"
        row = connection.execute(select, (self.family,)).fetchone()
        if row is None or row[0] == self._pieces:
            return
        rows = connection.execute(
            f"SELECT id, piece FROM vectors_{self.family} WHERE id > ? ORDER BY id", (self._pieces,)
        )
        number, vector = self._pieces, 0
        for row_number, content in rows:
            number += 1
            piece = self._piece(content, number, vector)
            if row_number != number:
                raise self._damage(number)
            if vector == 0:
                self._enter(piece, number)
            vector = (vector + 1) % pieces_of(piece.width)
        if number != row[0] or vector:
            raise Damaged(f"{self.family} has {number:,} of {row[0]:,} rows")
        self._pieces = number

    def fits(self, answer: ReceivedVectors) -> bool:
        """Return whether the vectors of an answer have the width of those that are there."""
        return self.width in (None, answer.vectors.shape[1])

    def _enter(self, piece: Piece, row_number: int) -> None:
        if self.width not in (None, piece.width):  # cannot be used together
            return
        self._places[piece.mark] = row_number
        self._in_hand.pop(piece.mark, None)
        self.width = piece.width
        self.tokens += abs(piece.tokens)
        self.bytes += piece.text_bytes

    def read(self, marks: Sequence[bytes]) -> Delivered | None:
        """Return the vectors and the facts of texts; None if some are missing, also by damage."""
        with self.database.lock:
            if all(mark in self._in_hand for mark in marks):
                return self._collected(None, marks)
            return self.database.read(lambda connection: self._collected(connection, marks), None)

    def _collected(
        self, connection: sqlite3.Connection | None, marks: Sequence[bytes]
    ) -> Delivered | None:
        if connection is not None:
            self.follow(connection)
        vectors = np.empty((len(marks), self.width or 1), np.float32)
        facts = np.empty(len(marks), ROW)
        seconds: dict[bytes, float] = {}
        stored: dict[int, list[int]] = {}
        for i, mark in enumerate(marks):
            first_row, parts = self._places.get(mark), self._in_hand.get(mark)
            if connection is not None and first_row is not None:
                stored.setdefault(first_row, []).append(i)
            elif parts is not None:
                _copy(parts, [i], vectors, facts)
                seconds[parts[0].answer] = parts[0].seconds
            else:
                return None
        if connection is not None:
            for first_row, parts in self._at_places(connection, sorted(stored)):
                if {part.mark for part in parts} != {marks[stored[first_row][0]]}:
                    raise self._damage(first_row)
                _copy(parts, stored[first_row], vectors, facts)
                seconds[parts[0].answer] = parts[0].seconds
        return Delivered(vectors, facts, list(seconds.values()))

    def _at_places(
        self, connection: sqlite3.Connection, places: Sequence[int]
    ) -> Iterator[tuple[int, list[Piece]]]:
        """Yield the pieces of vectors by the place of their first one; neighbors in one query."""
        count = pieces_of(self.width or 1)
        select = f"SELECT id, piece FROM vectors_{self.family} WHERE id BETWEEN ? AND ? ORDER BY id"
        for run in _runs(places, NEAR * count):
            missing, first_row, parts = set(run), 0, list[Piece]()
            for number, content in connection.execute(select, (run[0], run[-1] + count - 1)):
                if number in missing:
                    first_row, parts = number, []
                elif number != first_row + len(parts):
                    continue
                parts.append(self._piece(content, number, len(parts)))
                if len(parts) == count:
                    yield first_row, parts
                    missing.remove(first_row)
                    first_row, parts = 0, []
            if missing:
                raise self._damage(min(missing))

    def _piece(self, content: object, row: int, number: int) -> Piece:
        """Return the piece in a row; raise Damaged if it is not what was written."""
        piece = piece_at(content) if isinstance(content, bytes) else None
        if piece is None or piece.family != self._name or piece.number != number:
            raise self._damage(row)
        return piece

    def _damage(self, row_number: int) -> Damaged:
        return Damaged(f"row {row_number:,} of {self.family} is not what was written")

    # -- writing --------------------------------------------------------------------------------

    def insert(self, connection: sqlite3.Connection, answer: ReceivedVectors) -> list[Piece]:
        """Store an answer after all rows in a transaction; return its pieces, for ``enter``."""
        pieces = list(answer.pieces(self._name))
        insert(connection, self.family, pieces)
        return pieces

    def enter(self, pieces: Sequence[Piece]) -> None:
        """Take over what was just stored after all rows that are known, instead of reading it.

        The caller holds the lock since it has followed the rows.
        """
        for row_number, piece in enumerate(pieces, self._pieces + 1):
            if piece.number == 0:
                self._enter(piece, row_number)
        self._pieces += len(pieces)

    def keep(self, answer: ReceivedVectors) -> None:
        """Keep an answer that could not be stored in the memory of this process."""
        self._keep(answer.pieces(self._name))

    def _keep(self, pieces: Iterable[Piece]) -> None:
        with self.database.lock:
            for piece in pieces:
                self.width = piece.width
                self._in_hand.setdefault(piece.mark, []).append(piece)

    def save(self) -> None:
        """Store the vectors that could not be stored before; raise Unwritable if they cannot."""
        with self.database.lock:
            if not self._in_hand:
                return
            whole = [piece for parts in self._in_hand.values() for piece in parts]
            self.database.write(lambda c: insert(c, self.family, whole))
            self._in_hand.clear()
            self.refresh()

    def _take_loose(self, *, store: bool) -> None:
        """Take over intact vectors that a killed process or a damaged database left."""
        loose = self.database.loose.pop(self._name, [])
        missing = [parts for parts in loose if parts[0].mark not in self]
        if not missing:
            return
        self.database.say(
            f"{len(missing):,} paid vectors were recovered that {self.database.path} did not show: "
            f"it was damaged, or a process was killed while it wrote. Vectors that are missing "
            f"are requested again."
        )
        for parts in missing:
            self._keep(parts)
        if store:
            with suppress(Unwritable):  # they stay in memory
                self.save()

    # -- journals of earlier versions -----------------------------------------------------------

    def _move_journal(self) -> None:
        """Move the vectors of a journal of an earlier version to the database, once."""
        path = self.database.folder / f"{self.family}.journal"
        if not path.exists():
            return
        journal = read_old_journal(path)
        self.database.read(self.follow, None)
        new: dict[bytes, list[Piece]] = {}
        for answer in journal.answers:
            pieces = answer.pieces(self._name)
            while parts := list(islice(pieces, pieces_of(answer.vectors.shape[1]))):
                if parts[0].mark not in self:
                    new[parts[0].mark] = parts
        if journal.damaged:
            self.database.say(
                f"{path} was damaged: {len(new):,} intact vectors are kept, and those of "
                f"{journal.damaged:,} damaged bytes are requested again."
            )
        for parts in new.values():
            self._keep(parts)
        with suppress(Unwritable):  # read again next time
            self.save()
            _remove_journal(path)


def _copy(
    parts: Sequence[Piece], rows: Sequence[int], vectors: np.ndarray, facts: np.ndarray
) -> None:
    """Copy a vector and its facts to the rows of its texts."""
    values = parts[0].values if len(parts) == 1 else b"".join(part.values for part in parts)
    for row in rows:
        vectors[row] = np.frombuffer(values, "<f4")
        facts[row] = text_facts(parts[0])


def _runs(places: Sequence[int], gap: int) -> Iterator[Sequence[int]]:
    """Yield the parts of sorted numbers between gaps that are larger than some number.

    >>> list(_runs([1, 2, 5, 20], 3))
    [[1, 2, 5], [20]]
    """
    begin = 0
    for i in range(1, len(places) + 1):
        if i == len(places) or places[i] - places[i - 1] > gap:
            yield places[begin:i]
            begin = i


def _remove_journal(path: Path) -> None:
    """Remove a journal and its lock, unless a process of an earlier version still writes to it."""
    locks = file_locks()
    lock = path.with_suffix(".lock")
    with suppress(OSError):
        if locks is not None and lock.exists():
            with lock.open("a+") as file:
                locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
                lock.unlink()
        path.unlink()
