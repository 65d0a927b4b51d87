"""What endpoints cost: usage, rate limits, and the budget of a run.

The account of a run says which texts a process may request now, so that no text is requested
twice and no budget is passed, and collects the usage of an embedding or a job.
"""

from __future__ import annotations

import logging
import math
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.core.formatting import money
from karat.core.services import RunServices, current_services
from karat.ext.endpoints.endpoint_processes import ProcessName
from karat.ext.endpoints.endpoint_rows import MARK_BYTES, Piece, ReceivedVectors
from karat.ext.endpoints.endpoint_store import EndpointDatabase, Unwritable, database_in
from karat.ext.endpoints.endpoint_vectors import Delivered, VectorTable

#: the name of this service in the core
SERVICE = "endpoints"
#: seconds after which what a run has spent is forgotten
RUN_SECONDS = 30 * 86400.0
#: seconds that a request of another machine may take longer than it said
UNSEEN_SECONDS = 60.0

log = logging.getLogger(__name__)


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
    remarks: list[str] = field(default_factory=list)

    def remark(self, remarks: Sequence[str]) -> None:
        """Add remarks, each of them once."""
        self.remarks += [remark for remark in remarks if remark not in self.remarks]

    def add(self, delivered: Delivered, price_per_token: float | None) -> None:
        """Count the texts of a call."""
        tokens = np.abs(delivered.rows["tokens"]).sum()
        self.texts += len(delivered.rows)
        self.tokens += float(tokens)
        self.truncated += int(delivered.rows["truncated"].sum())
        self.seconds += delivered.seconds
        # a negative number of tokens is an estimate
        self.estimated |= bool((delivered.rows["tokens"] < 0).any())
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
            **({"remarks": self.remarks} if self.remarks else {}),
        }


class OverBudget(Exception):
    """A request might pass the budget; the message has the figures."""


@dataclass(frozen=True)
class Request:
    """What a request may need at most; ``tokens`` are estimated, ``room`` is in bytes."""

    marks: Sequence[bytes]
    price: float = 0.0
    tokens: float = 0.0
    room: int = 0
    seconds: float = 0.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True)
class Reservation:
    """A request that this process alone may send now, after ``wait`` seconds."""

    number: int
    request: Request
    wait: float


@dataclass(frozen=True)
class Taken:
    """Texts that arrived, or that other requests ask for; without any, the budget is taken."""

    marks: frozenset[bytes]


@dataclass(frozen=True)
class Settlement:
    """What a request used: ``charged`` counts for the budget, the rest only if it was answered."""

    charged: float = 0.0
    tokens: float | None = None
    price: float | None = None
    answer: ReceivedVectors | None = None


class Account:
    """What a run may spend on endpoints, and the database of what it received.

    Parameters
    ----------
    services
        The settings of the run: its name in the database, its budget, and where the database is.
    """

    def __init__(self, services: RunServices) -> None:
        self.services, self.run, self.budget = services, services.run, services.budget
        self._unsettled: list[tuple[Reservation, str, tuple[str, Settlement]]] = []
        #: errors after which nothing is requested from an endpoint, by the name of its encoder
        self.given_up: dict[str, Exception] = {}

    @property
    def database(self) -> EndpointDatabase:
        """The database, which this process opens once."""
        return database_in(self.services.answers(SERVICE))

    def vectors(self, family: str) -> VectorTable:
        """Return the vectors of an encoder."""
        table = self.database.table(family, VectorTable)
        table.refresh()
        return table

    def _usages(self) -> Iterator[Usage]:
        """Yield what is counted now."""
        for counter in self.services.counters:
            yield counter.of(SERVICE, Usage)

    def use(self, delivered: Delivered, price_per_token: float | None) -> None:
        """Count texts in all open counters."""
        remarks = [*self.database.remarks, *remarks_of(delivered.vectors)]
        for usage in self._usages():
            usage.add(delivered, price_per_token)
            usage.remark(remarks)

    def remark(self, remark: str) -> None:
        """Let the notes of jobs have a remark about what is counted now."""
        for usage in self._usages():
            usage.remark([remark])

    def sending(self, texts: int, seconds: float) -> None:
        """Count texts that were requested now."""
        for usage in self._usages():
            usage.sent += texts
            usage.sending += seconds

    # -- requests -------------------------------------------------------------------------------

    def claim(self, table: VectorTable, request: Request, now: float) -> Reservation | Taken:
        """Return the right to send a request: its texts, price and room are reserved.

        Raises OverBudget if the request might pass the budget, Unwritable if its answer, or an
        earlier one, cannot be stored.
        """
        number = secrets.randbits(62)
        result: Reservation | Taken | None = None
        try:
            self._settle_late()
            table.save()
            self.database.make_room(number, request.room)
            result = self.database.write(
                lambda connection: self._claimed(connection, table, (number, request, now))
            )
        finally:
            if not isinstance(result, Reservation):
                self.database.drop_room(number)
        if isinstance(result, Reservation):  # from now on, the database has a row of this run
            self.services.mark_used(SERVICE)
        return result

    def _claimed(
        self,
        connection: sqlite3.Connection,
        table: VectorTable,
        what: tuple[int, Request, float],
    ) -> Reservation | Taken:
        number, request, now = what
        table.follow(connection)
        if stored := frozenset(mark for mark in request.marks if mark in table):
            return Taken(stored)
        self._bury(connection)
        under_way = _marks_under_way(connection, table.family)
        if taken := under_way.intersection(request.marks):
            return Taken(frozenset(taken))
        if not self._within_budget(connection, request.price):
            return Taken(frozenset())
        wait = _wait_for_rates(connection, table.family, request, now)
        process = ProcessName.current()
        until = time.time() + request.seconds + wait
        connection.execute(
            "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, self.run, table.family, process.machine, process.pid, process.started, until,
             request.price, b"".join(request.marks)),
        )  # fmt: skip
        return Reservation(number, request, wait)

    def finish(
        self, claim: Reservation, table: VectorTable, model: str, outcome: Settlement
    ) -> None:
        """Replace a claim by what its request used and delivered.

        Vectors that cannot be stored are kept in memory; then no other request is claimed. Those
        of another width than earlier ones are dropped.
        """

        def store(connection: sqlite3.Connection) -> list[Piece]:
            self._settle(connection, claim, table.family, used)
            table.follow(connection)
            if outcome.answer is None or not table.fits(outcome.answer):
                return []
            return table.insert(connection, outcome.answer)

        used = (model, outcome)

        try:
            with self.database.lock:  # no other request takes the room before the answer has it
                try:
                    stored = self.database.write(store)
                except Unwritable:
                    self.database.use_room()
                    stored = self.database.write(store)
                table.enter(stored)
        except Unwritable as error:
            log.warning("%s", error)
            self._unsettled.append((claim, table.family, used))
            if outcome.answer is not None and table.fits(outcome.answer):
                table.keep(outcome.answer)
        finally:
            self.database.drop_room(claim.number)

    def _settle_late(self) -> None:
        """Settle the claims that could not be settled, because nothing could be stored."""
        while self._unsettled:
            late = self._unsettled[-1]
            self.database.write(lambda connection, late=late: self._settle(connection, *late))  # type: ignore[misc]
            self._unsettled.pop()

    def _settle(
        self,
        connection: sqlite3.Connection,
        claim: Reservation,
        family: str,
        used: tuple[str, Settlement],
    ) -> None:
        model, outcome = used
        removed = connection.execute("DELETE FROM reservations WHERE id = ?", (claim.number,))
        if removed.rowcount:  # otherwise another process has counted the highest price
            self._spend(connection, self.run, outcome.charged)
        if outcome.tokens is None:
            return
        connection.execute(
            "INSERT INTO usage VALUES (?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET requests = "
            "requests + 1, tokens = tokens + excluded.tokens, price = CASE WHEN excluded.price IS "
            "NULL THEN price ELSE coalesce(price, 0) + excluded.price END",
            (self.run, model, outcome.tokens, outcome.price),
        )
        if per_minute := claim.request.tokens_per_minute:
            later = (outcome.tokens - claim.request.tokens) * 60 / per_minute
            connection.execute(
                "UPDATE rates SET free_at = free_at + ? WHERE family = ? AND name = 'tokens'",
                (later, family),
            )

    # -- budget ---------------------------------------------------------------------------------

    def _within_budget(self, connection: sqlite3.Connection, price: float) -> bool:
        """Return whether a price fits now; False if it may fit later."""
        spent = self._spent(connection)
        if self.budget is None:
            return True
        (reserved,) = connection.execute(
            "SELECT coalesce(sum(price), 0) FROM reservations WHERE run = ?", (self.run,)
        ).fetchone()
        if spent + reserved + price <= self.budget:
            return True
        if reserved > 1e-12:
            return False
        raise OverBudget(
            f"{money(spent)} of the budget of {money(self.budget)} are spent and the next request "
            f"may cost {money(price)}"
        )

    def _spent(self, connection: sqlite3.Connection) -> float:
        """Return what the run has spent; enter the run if it is new."""
        row = connection.execute("SELECT spent FROM runs WHERE run = ?", (self.run,)).fetchone()
        if row is not None:
            return float(row[0])
        if self.budget is not None and self.services.is_used(SERVICE):
            raise OverBudget(
                f"{self.database.path} does not tell any more what this run has spent of its "
                f"budget, because it was damaged or removed"
            )
        now = time.time()
        for old in (
            "usage WHERE run IN (SELECT run FROM runs WHERE began < ?)",
            "runs WHERE began < ?",
        ):
            connection.execute(f"DELETE FROM {old}", (now - RUN_SECONDS,))
        connection.execute("INSERT INTO runs VALUES (?, 0, ?)", (self.run, now))
        return 0.0

    def _spend(self, connection: sqlite3.Connection, run: str, price: float) -> None:
        connection.execute("UPDATE runs SET spent = spent + ? WHERE run = ?", (price, run))

    def _bury(self, connection: sqlite3.Connection) -> None:
        """Count what dead processes reserved as spent: it may have been charged."""
        select = "SELECT id, run, price, machine, pid, started, until FROM reservations"
        alive: dict[ProcessName, bool | None] = {ProcessName.current(): True}
        for number, run, price, machine, pid, started, until in connection.execute(
            select
        ).fetchall():
            owner = ProcessName(machine, pid, started)
            if owner not in alive:
                alive[owner] = owner.is_alive()
            unseen = alive[owner] is None and time.time() > until + UNSEEN_SECONDS
            if alive[owner] is False or unseen:
                self._spend(connection, run, price)
                connection.execute("DELETE FROM reservations WHERE id = ?", (number,))

    def sent(self) -> dict[str, tuple[int, float, float | None]]:
        """Return the answered requests, their tokens and their price, by model."""
        if not self.services.is_used(SERVICE):
            return {}
        select = "SELECT model, requests, tokens, price FROM usage WHERE run = ? ORDER BY rowid"
        try:
            rows: list[tuple[str, int, float, float | None]] = self.database.read(
                lambda connection: connection.execute(select, (self.run,)).fetchall(), []
            )
        except Unwritable as error:
            log.warning("%s", error)
            return {}
        return {model: (requests, tokens, price) for model, requests, tokens, price in rows}

    def close(self) -> None:
        """Close the database if it is the run's own."""
        if self.services.store is not None:
            self.database.close()


def _marks_under_way(connection: sqlite3.Connection, family: str) -> set[bytes]:
    """Return the texts that requests under way ask for."""
    rows = connection.execute("SELECT marks FROM reservations WHERE family = ?", (family,))
    return {
        marks[i : i + MARK_BYTES] for (marks,) in rows for i in range(0, len(marks), MARK_BYTES)
    }


def _wait_for_rates(
    connection: sqlite3.Connection, family: str, request: Request, now: float
) -> float:
    """Take a request and its tokens from the rate limits; return the seconds to wait."""
    limits = {
        "requests": (request.requests_per_minute, 1.0),
        "tokens": (request.tokens_per_minute, request.tokens),
    }
    longest = 0.0
    for name, (per_minute, units) in limits.items():
        if per_minute is None:
            continue
        select = "SELECT free_at FROM rates WHERE family = ? AND name = ?"
        row = connection.execute(select, (family, name)).fetchone()
        rate = Rate(per_minute, row[0] if row else 0.0)
        longest = max(longest, rate.wait(units, now))
        connection.execute("REPLACE INTO rates VALUES (?, ?, ?)", (family, name, rate.free_at))
    return longest


def remarks_of(vectors: np.ndarray) -> list[str]:
    """Return what is conspicuous about vectors of different texts.

    >>> remarks_of(np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 3.0]]))
    ['1 of 3 vectors of the endpoint are zero', '1 of 3 vectors of the endpoint are constant']
    >>> remarks_of(np.ones((2, 1)))
    ['all 2 texts got the same vector from the endpoint']
    """
    remarks = []
    total, width = vectors.shape
    if total > 1 and (vectors[-1] == vectors[0]).all() and (vectors == vectors[0]).all():
        remarks.append(f"all {total:,} texts got the same vector from the endpoint")
    # few vectors begin and end with the same number: the others are not looked at
    equal_ends = vectors[vectors[:, 0] == vectors[:, -1]]
    zero = (equal_ends == 0).all(axis=1)
    constant = (equal_ends == equal_ends[:, :1]).all(axis=1) & (width > 1)
    for kind, count in (("zero", zero.sum()), ("constant", (constant & ~zero).sum())):
        if count:
            remarks.append(f"{count:,} of {total:,} vectors of the endpoint are {kind}")
    return remarks


def current_account() -> Account:
    """Return the account of the run that this process works for."""
    account: Account = current_services().account(SERVICE)
    return account
