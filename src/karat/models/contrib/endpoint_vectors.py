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
from karat.models.contrib.endpoint_rows import (
    MARK_BYTES,
    ROW,
    Answer,
    Piece,
    pieces_of,
    read_old_journal,
    read_piece,
    stored_bytes,
    text_facts,
)
from karat.models.contrib.endpoint_store import Damaged, EndpointDatabase, Unwritable, insert

#: dimensions that room is made for while they are not known
DIMENSIONS = 8192

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
        name, number, vector = bytes.fromhex(self.family), self._pieces, 0
        for place, content in rows:
            number += 1
            piece = read_piece(content) if isinstance(content, bytes) else None
            if piece is None or piece.family != name or place != number:
                raise Damaged(f"row {number:,} of {self.family} is not what was written")
            if vector == 0:
                self._enter(piece, number)
            elif piece.number != vector:
                raise Damaged(f"row {number:,} of {self.family} is not what was written")
            vector = (vector + 1) % pieces_of(piece.width)
        if number != row[0] or vector:
            raise Damaged(f"{self.family} has {number:,} of {row[0]:,} rows")
        self._pieces = number

    def _enter(self, piece: Piece, place: int) -> None:
        self._places[piece.mark] = place
        self._in_hand.pop(piece.mark, None)
        self.width = piece.width
        self.tokens += abs(piece.tokens)
        self.bytes += piece.text_bytes

    def read(self, marks: Sequence[bytes]) -> Delivered | None:
        """Return the vectors and the facts of texts; None if some are missing, also by damage."""
        with self.database.lock:
            in_hand = [self._in_hand.get(mark) for mark in marks]
            stored: list[list[Piece] | None] | None = in_hand
            if not all(in_hand):
                stored = self.database.read(lambda c: list(self._read_all(c, marks)), None)
        if stored is None:
            return None
        vectors = np.empty((len(marks), self.width or 1), np.float32)
        facts = np.empty(len(marks), ROW)
        seconds: dict[bytes, float] = {}
        for i, parts in enumerate(stored):
            if parts is None:
                return None
            vectors[i] = np.frombuffer(b"".join(part.values for part in parts), "<f4")
            facts[i] = text_facts(parts[0])
            seconds[parts[0].answer] = parts[0].seconds
        return Delivered(vectors, facts, list(seconds.values()))

    def _read_all(
        self, connection: sqlite3.Connection, marks: Sequence[bytes]
    ) -> Iterator[list[Piece] | None]:
        self.follow(connection)
        select = f"SELECT piece FROM vectors_{self.family} WHERE id BETWEEN ? AND ? ORDER BY id"
        count = pieces_of(self.width or 1)
        for mark in marks:
            place = self._places.get(mark)
            if place is None:
                yield self._in_hand.get(mark)
                continue
            rows = connection.execute(select, (place, place + count - 1)).fetchall()
            parts = [piece for (content,) in rows if (piece := read_piece(content)) is not None]
            if len(parts) != count or any(part.mark != mark for part in parts):
                raise Damaged(f"row {place:,} of {self.family} is not what was written")
            yield parts

    # -- writing --------------------------------------------------------------------------------

    def insert(self, connection: sqlite3.Connection, answer: Answer) -> None:
        """Store an answer in a transaction; ``refresh`` finds it afterwards."""
        insert(connection, self.family, list(answer.pieces(bytes.fromhex(self.family))))

    def keep(self, answer: Answer) -> None:
        """Keep an answer that could not be stored in the memory of this process."""
        self._keep(answer.pieces(bytes.fromhex(self.family)))

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
        loose = self.database.loose.pop(bytes.fromhex(self.family), [])
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
        name = bytes.fromhex(self.family)
        self.database.read(self.follow, None)
        new: dict[bytes, list[Piece]] = {}
        for answer in journal.answers:
            pieces = answer.pieces(name)
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
