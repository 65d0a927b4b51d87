"""What endpoints delivered and what it cost: journals of vectors, budgets and rate limits.

A journal keeps each vector, by a hash of its text, as soon as it arrives; a text is paid for once,
even if the process is killed. The account of a run holds its budget, counts what all its processes
send, and collects the usage of an embedding or a job.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from karat.core.files import cache_folder, file_locks

#: number of bytes of the hash of a text
MARK_BYTES = 16
#: what a journal stores of each text; ``bytes`` is its length in UTF-8
ROW = np.dtype(
    [("mark", f"V{MARK_BYTES}"), ("tokens", "<f8"), ("bytes", "<u4"), ("truncated", "u1")]
)
#: the head of a frame, the answer to one request: mark, rows, width, checksum, seconds
_HEAD = struct.Struct("<4sIIId")
_FRAME = b"KVJ1"
#: largest plausible numbers of rows and dimensions of a frame
_MOST_ROWS, _MOST_DIMENSIONS = 2**20, 2**20

log = logging.getLogger(__name__)


# -- vectors --------------------------------------------------------------------------------


def text_mark(prompt: str, text: str) -> bytes:
    """Return the hash of a text under a prompt."""
    whole = f"{prompt}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=MARK_BYTES).digest()


@dataclass(frozen=True)
class _Frame:
    """The place of an answer in the file, and the seconds of its request."""

    place: int
    rows: int
    width: int
    seconds: float


class Journal:
    """An append-only file of vectors by text, one frame per answered request.

    A frame that was cut off when a process was killed is ignored and overwritten. If the file
    cannot be written, the vectors are kept in a temporary file until the process ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._writable = False
        self._end = 0
        self._frames: list[_Frame] = []
        self._index: dict[bytes, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self.tokens, self.bytes = 0.0, 0

    @property
    def width(self) -> int | None:
        """The number of dimensions of the vectors, None without any."""
        return self._frames[0].width if self._frames else None

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._index

    @contextlib.contextmanager
    def locked(self) -> Iterator[IO[str] | None]:
        """Hold the lock of the journal, so that no other process requests the same texts.

        Yields the lock's file, in which the holders leave the state of the rate limits.
        """
        locks = file_locks()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.with_suffix(".lock").open("a+", encoding="utf-8")
        except OSError:
            locks = None
        if locks is None:
            yield None
            return
        with file:
            with contextlib.suppress(OSError):  # a file system without locks
                locks.flock(file, locks.LOCK_EX)
            self.refresh()
            yield file

    def refresh(self) -> None:
        """Read the frames that were added since, also by other processes."""
        if self._file is None:
            with contextlib.suppress(OSError):
                self._file = self.path.open("rb")
        if self._file is not None:
            with self._lock:
                while (frame := self._read_frame()) is not None:
                    self._add_frame(*frame)

    def _read_frame(self) -> tuple[_Frame, np.ndarray] | None:
        """Return the next frame and its rows; None if it is cut off or damaged."""
        assert self._file is not None
        self._file.seek(self._end)
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        mark, rows, width, checksum, seconds = _HEAD.unpack(head)
        if mark != _FRAME or rows > _MOST_ROWS or width > _MOST_DIMENSIONS:
            return None
        content = self._file.read(rows * (ROW.itemsize + 4 * width))
        if zlib.crc32(content) != checksum:
            return None
        frame = _Frame(self._end + _HEAD.size, rows, width, seconds)
        return frame, np.frombuffer(content, ROW, rows)

    def _add_frame(self, frame: _Frame, rows: np.ndarray) -> None:
        number = len(self._frames)
        self._frames.append(frame)
        self._index.update((row["mark"].tobytes(), (number, i)) for i, row in enumerate(rows))
        self._end = frame.place + frame.rows * (ROW.itemsize + 4 * frame.width)
        self.tokens += float(np.abs(rows["tokens"]).sum())
        self.bytes += int(rows["bytes"].sum())

    def add(self, rows: np.ndarray, vectors: np.ndarray, seconds: float) -> None:
        """Store the answer to a request; the caller holds the lock of the journal."""
        content = rows.tobytes() + np.ascontiguousarray(vectors, "<f4").tobytes()
        width = vectors.shape[1]
        head = _HEAD.pack(_FRAME, len(rows), width, zlib.crc32(content), seconds)
        with self._lock:
            self._write(head + content)
            self._add_frame(_Frame(self._end + _HEAD.size, len(rows), width, seconds), rows)

    def _write(self, frame: bytes) -> None:
        if not self._writable:
            self._open()
        assert self._file is not None
        try:
            self._append(self._file, frame)
        except OSError as error:
            log.warning("cannot write to the journal %s: %s", self.path, error)
            self._spare(self._file)
            self._append(self._file, frame)

    def _append(self, file: IO[bytes], frame: bytes) -> None:
        file.seek(self._end)
        file.truncate()  # what a killed process has left
        file.write(frame)
        file.flush()

    def _open(self) -> None:
        """Open the file for writing, or a temporary copy of it if that is not possible."""
        before, self._writable = self._file, True
        try:
            # not "r+b", which does not create it, nor "ab", which cannot truncate
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        except OSError as error:
            log.warning("cannot write to the journal %s: %s", self.path, error)
            self._spare(before)
        else:
            if before is not None:
                before.close()

    def _spare(self, before: IO[bytes] | None) -> None:
        self._file = tempfile.TemporaryFile()
        if before is not None:
            before.seek(0)
            self._file.write(before.read(self._end))

    def read(self, marks: Sequence[bytes]) -> Delivered:
        """Return the vectors and the facts of texts, all of which are in the journal."""
        places: dict[int, list[tuple[int, int]]] = {}
        for i, mark in enumerate(marks):
            number, row = self._index[mark]
            places.setdefault(number, []).append((i, row))
        vectors = np.empty((len(marks), self.width or 1), np.float32)
        facts = np.empty(len(marks), ROW)
        for number, pairs in places.items():
            frame = self._frames[number]
            rows, matrix = self._content(frame)
            wanted, found = (list(each) for each in zip(*pairs, strict=True))
            facts[wanted], vectors[wanted] = rows[found], matrix[found]
        return Delivered(vectors, facts, [self._frames[number].seconds for number in places])

    def _content(self, frame: _Frame) -> tuple[np.ndarray, np.ndarray]:
        assert self._file is not None
        with self._lock:
            self._file.seek(frame.place)
            content = self._file.read(frame.rows * (ROW.itemsize + 4 * frame.width))
        rows = np.frombuffer(content, ROW, frame.rows)
        matrix = np.frombuffer(content, "<f4", offset=frame.rows * ROW.itemsize)
        return rows, matrix.reshape(frame.rows, frame.width)


@dataclass(frozen=True)
class Delivered:
    """Vectors of texts, a ``ROW`` of facts each, and the seconds of the requests they came with."""

    vectors: np.ndarray
    rows: np.ndarray
    seconds: list[float]

    def at(self, places: Sequence[int]) -> Delivered:
        """Return the vectors and facts of some of the texts."""
        return Delivered(self.vectors[places], self.rows[places], self.seconds)


# -- rates ----------------------------------------------------------------------------------


class Rate:
    """A maximum number of units per minute: a token bucket that holds one second's worth.

    >>> rate = Rate(60.0)
    >>> [rate.wait(1, 100.0) for _ in range(4)]
    [0.0, 0.0, 1.0, 2.0]
    """

    def __init__(self, per_minute: float | None, free_at: float = 0.0) -> None:
        self.per_second = math.inf if per_minute is None else per_minute / 60
        #: the time at which the units taken so far have been refilled
        self.free_at = free_at

    def wait(self, units: float, now: float) -> float:
        """Take units from the bucket; return the seconds to wait before they may be used."""
        begin = max(self.free_at, now - 1.0)
        self.free_at = begin + units / self.per_second
        return max(0.0, begin - now)

    def correct(self, units: float) -> None:
        """Take further units that turned out to be used, or give back if negative."""
        self.free_at += units / self.per_second


# -- usage and budget -----------------------------------------------------------------------


@dataclass
class Usage:
    """What some texts needed from endpoints, whether they were sent now or earlier.

    ``seconds`` are those of each request. ``sent`` texts were requested now, in ``sending``
    seconds. ``estimated`` tells that a server reported no number of tokens.
    """

    texts: int = 0
    tokens: float = 0.0
    price: float | None = None
    truncated: int = 0
    seconds: list[float] = field(default_factory=list)
    sent: int = 0
    sending: float = 0.0
    estimated: bool = False

    def add(self, found: Delivered, price_per_token: float | None) -> None:
        """Count the texts of a call."""
        tokens = np.abs(found.rows["tokens"]).sum()
        self.texts += len(found.rows)
        self.tokens += float(tokens)
        self.truncated += int(found.rows["truncated"].sum())
        self.seconds += found.seconds
        # a negative number of tokens is an estimate
        self.estimated |= bool((found.rows["tokens"] < 0).any())
        if price_per_token is not None:
            self.price = (self.price or 0.0) + float(tokens) * price_per_token

    def facts(self) -> dict[str, Any]:
        """Return the usage as JSON values; empty if nothing was used."""
        if not self.texts:
            return {}
        rate = self.sent / self.sending if self.sent and self.sending else None
        median, high = np.percentile(self.seconds, [50, 95]) if self.seconds else (None, None)
        return {
            "tokens": round(self.tokens),
            "price": self.price,
            "tokens_estimated": self.estimated,
            "truncated": self.truncated,
            "texts": self.texts,
            "requests": len(self.seconds),
            "request_seconds_median": None if median is None else round(float(median), 6),
            "request_seconds_p95": None if high is None else round(float(high), 6),
            "texts_per_second": None if rate is None else round(rate, 3),
        }


def job_usage(embedded: Mapping[str, Any] | None, used: Usage) -> dict[str, Any]:
    """Return the fields of a job's record: the usage of its data's vectors and of its own calls.

    ``embed_tokens`` are those of the vectors, which the jobs on a dataset share.
    """
    facts = combined_usage([each for each in (embedded, used.facts()) if each])
    return {**facts, "embed_tokens": (embedded or {}).get("tokens", 0)} if facts else {}


def combined_usage(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of several usages: counts are added, others are those of the first.

    >>> combined_usage([{"tokens": 3, "texts": 1}, {"tokens": 4, "price": 0.5}])
    {'tokens': 7, 'price': 0.5, 'texts': 1}
    """
    facts: dict[str, Any] = {}
    for part in reversed(parts):
        facts |= part
    for name in ("tokens", "price", "truncated", "texts", "requests"):
        values = [part[name] for part in parts if part.get(name) is not None]
        if name in facts:
            facts[name] = sum(values) if values else None
    if any(part.get("tokens_estimated") for part in parts):
        facts["tokens_estimated"] = True
    return facts


class OverBudget(Exception):
    """A request might pass the budget; the message has the figures."""


class Account:
    """What a run may spend on endpoints, and where it keeps what it received.

    Parameters
    ----------
    folder
        A folder that the processes of the run share; None: one process.
    journals
        The folder of the journals; None: that of the cache.
    budget
        The most that may be spent; None: no limit.
    """

    def __init__(
        self, folder: Path | None = None, journals: Path | None = None, budget: float | None = None
    ) -> None:
        self.folder, self.journals, self.budget = folder, journals, budget
        self._memory: dict[str, Any] = {"spent": 0.0, "reserved": {}, "sent": {}}
        self._usages: list[Usage] = []
        #: called with the number of texts of a call that have arrived
        self.progress: Callable[[int], None] = lambda done: None
        #: why requests to an endpoint were given up, by the name of its journal
        self.given_up: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "journals": self.journals, "budget": self.budget}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        Account.__init__(self, **state)

    def journal(self, family: str) -> Journal:
        """Return the journal of an encoder."""
        folder = self.journals or cache_folder() / "vectors" / "endpoints"
        found = _journal(folder / f"{family}.journal", os.getpid())
        found.refresh()
        return found

    @contextlib.contextmanager
    def counting(self) -> Iterator[Usage]:
        """Count the texts that encoders are called with inside."""
        usage = Usage()
        self._usages.append(usage)
        try:
            yield usage
        finally:
            self._usages.remove(usage)

    def use(self, found: Delivered, price_per_token: float | None) -> None:
        """Count texts in all open counters."""
        for usage in self._usages:
            usage.add(found, price_per_token)

    def sending(self, texts: int, seconds: float) -> None:
        """Count texts that were requested now."""
        for usage in self._usages:
            usage.sent += texts
            usage.sending += seconds

    def reserve(self, price: float) -> bool:
        """Reserve the highest possible price of a request.

        Returns False while requests under way may turn out cheaper than reserved; raises
        OverBudget if the request might pass the budget.
        """
        if self.budget is None:
            return True
        with self._state() as state:
            reserved = state["reserved"]
            total = sum(reserved.values())
            if state["spent"] + total + price <= self.budget:
                reserved[_pid()] = reserved.get(_pid(), 0.0) + price
                return True
            for pid in [pid for pid in reserved if not _alive(pid)]:
                state["spent"] += reserved.pop(pid)  # may have been charged
            if any(value > 1e-12 for value in reserved.values()):
                return False
            raise OverBudget(
                f"{money(state['spent'])} of the budget of {money(self.budget)} are spent and the "
                f"next request may cost {money(price)}"
            )

    def settle(self, reserved: float, model: str, tokens: float, price: float | None) -> None:
        """Replace the reservation of a request by what it used: nothing, if it failed."""
        with self._state() as state:
            if self.budget is not None:
                left = state["reserved"].get(_pid(), 0.0) - reserved
                state["reserved"][_pid()] = max(0.0, left)
            state["spent"] += price or 0.0
            if tokens:
                before = state["sent"].get(model, [0, 0.0, None])
                cost = before[2] if price is None else (before[2] or 0.0) + price
                state["sent"][model] = [before[0] + 1, before[1] + tokens, cost]

    def sent(self) -> dict[str, tuple[int, float, float | None]]:
        """Return the answered requests, their tokens and their price, by model."""
        with self._state() as state:
            return {name: (each[0], each[1], each[2]) for name, each in state["sent"].items()}

    @contextlib.contextmanager
    def _state(self) -> Iterator[dict[str, Any]]:
        """Hold the state of all processes of the run; changes are stored."""
        locks = file_locks()
        with _STATE_LOCK:
            if locks is None or self.folder is None or not self.folder.is_dir():
                yield self._memory
                return
            with (self.folder / "spending.json").open("a+", encoding="utf-8") as file:
                locks.flock(file, locks.LOCK_EX)
                file.seek(0)
                state = self._memory
                with contextlib.suppress(ValueError):  # a process was killed while it wrote
                    state = json.loads(file.read() or "null") or state
                try:
                    yield state
                finally:
                    file.seek(0)
                    file.truncate()
                    file.write(json.dumps(state))


_STATE_LOCK = threading.Lock()


@cache
def _journal(path: Path, _: int) -> Journal:
    """Return the journal of a file, opened once per process."""
    return Journal(path)


def _pid() -> str:
    return str(os.getpid())


def _alive(pid: str) -> bool:
    import psutil

    return psutil.pid_exists(int(pid))


def money(price: float | None) -> str:
    """Return a price with two decimals, or with two significant digits if it is small.

    >>> money(2.0), money(0.00123), money(0.0), money(None)
    ('$2.00', '$0.0012', '$0.00', '–')
    """
    if price is None or math.isnan(price):
        return "–"
    digits = 2 if price == 0 or price >= 0.1 else 1 - math.floor(math.log10(price))
    return f"${price:,.{digits}f}"


_accounts: list[Account] = [Account()]


def current_account() -> Account:
    """Return the account of the run that this process works for."""
    return _accounts[-1]


@contextlib.contextmanager
def use_account(account: Account) -> Iterator[Account]:
    """Let encoders use an account inside."""
    _accounts.append(account)
    try:
        yield account
    finally:
        _accounts.remove(account)
