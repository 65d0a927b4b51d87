"""Requests for texts: batches, several at a time, with retries and checked answers.

Every answer is stored in a database before it is used, so no text is paid for twice
(``endpoint_store``).
"""

from __future__ import annotations

import json
import logging
import math
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.errors import ContractError, DefinitionError, Postponed, did_you_mean
from karat.ext.endpoints.endpoint_account import (
    Account,
    OverBudget,
    Request,
    Reservation,
    Settlement,
)
from karat.ext.endpoints.endpoint_answers import (
    MESSAGE_LENGTH,
    answer_json,
    check_answer,
    error_text,
    largest_answer,
    plain_message,
    token_count,
)
from karat.ext.endpoints.endpoint_dialects import DIALECTS
from karat.ext.endpoints.endpoint_http import (
    ERROR_BYTES,
    AnswerTooLarge,
    HttpConnections,
    LostAnswer,
    NotSent,
    Response,
)
from karat.ext.endpoints.endpoint_rows import ROW, ReceivedVectors
from karat.ext.endpoints.endpoint_store import Unwritable
from karat.ext.endpoints.endpoint_vectors import VectorTable
from karat.models.model import import_extra

if TYPE_CHECKING:
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

#: statuses after which a request is repeated, besides 5xx
RETRIED = (408, 409, 425, 429)
#: attempts of a request, and the shortest and longest pause between them in seconds
ATTEMPTS, SHORTEST, LONGEST = 8, 0.5, 60.0
#: a server that asks to wait longer than this postpones the job
PATIENCE = 300.0
#: estimated tokens per byte of text, until the server has reported some
TOKENS_PER_BYTE = 0.25
#: tokens that a server may add to a text, such as those of its beginning and end
ADDED_TOKENS = 8
#: requests for a text that the server calls too long, and refusals without an answer between them
SHORTENINGS, REFUSALS = 8, 64
#: seconds between two looks whether another process has received a text, or paid
GLANCE = 0.05
#: seconds that a request may take besides waiting for its answer
SPARE_SECONDS = 60.0
#: statuses and words of a refusal because of too long texts or too many of them
TOO_LARGE = (400, 413, 422)
TOO_LONG = re.compile(
    r"context.{0,9}length|max\w*.{0,20}(length|tokens|sequence)|too (long|large|many)"
    r"|less than \d+ tokens|exceed\w*.{0,40}(length|tokens|limit|size)|batch size",
    re.IGNORECASE | re.DOTALL,
)
log = logging.getLogger(__name__)
#: what a message about a status advises
_ADVICE = {
    401: "check the API key ({key})",
    403: "the API key ({key}) has no access to this model",
    404: "check the address and the model name",
}


def byte_count(text: str) -> int:
    """Return the bytes of a text."""
    return len(text.encode("utf-8", "surrogatepass"))


def tokens_per_byte(table: VectorTable) -> float:
    """Return the tokens per byte that the server has counted so far, or an estimate."""
    return table.tokens / table.bytes if table.bytes else TOKENS_PER_BYTE


class _TooLarge(Exception):
    """The server refused a request because of its size; the message is the server's."""


@dataclass(frozen=True)
class _Batch:
    """Texts of a request, as sent, with their marks; ``truncated`` by Karat or by the server."""

    marks: list[bytes]
    texts: list[str]
    truncated: bool = False

    @cached_property
    def size(self) -> int:
        return sum(map(byte_count, self.texts))

    @property
    def most_tokens(self) -> float:
        """The largest number of tokens that is expected."""
        return float(self.size + ADDED_TOKENS * len(self.texts))

    def part(self, begin: int | None, end: int | None) -> _Batch:
        return _Batch(self.marks[begin:end], self.texts[begin:end], self.truncated)

    def without(self, marks: Collection[bytes]) -> _Batch:
        """Return the batch without some of its texts."""
        rest = [(m, t) for m, t in zip(self.marks, self.texts, strict=True) if m not in marks]
        return _Batch([mark for mark, _ in rest], [text for _, text in rest], self.truncated)


@dataclass
class Learned:
    """What a process has learned about a server.

    Whether it answers at all, whether it has delivered vectors, whether it sends them packed, the
    most texts of a request, and how many times more tokens it counts than was expected.
    """

    answers: bool = False
    delivers: bool = False
    packed: bool = True
    most: int = 2**31
    excess: float = 1.0


@dataclass(frozen=True)
class _Reply:
    """The response to a request, or what went wrong; ``charged`` if it may have been charged."""

    response: Response | None
    reason: str
    charged: bool = False

    @property
    def status(self) -> int:
        return 0 if self.response is None else self.response.status


class Delivery:
    """Requests for texts, several at a time; every answer is stored as soon as it arrives."""

    def __init__(
        self, encoder: EndpointEncoder, account: Account, table: VectorTable, role: str | None
    ) -> None:
        self.encoder, self.account, self.table, self.role = encoder, account, table, role
        self.dialect = DIALECTS[encoder.spoken]
        self.key = ""
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.learned, self.delivered, self.refusals = encoder.learned(), 0, 0
        self.random = np.random.default_rng()
        self.missing: Mapping[bytes, str] = {}

    def send(self, texts: Mapping[bytes, str]) -> None:
        """Request the texts that are missing, by their marks."""
        self.missing = {mark: text for mark, text in texts.items() if mark not in self.table}
        if not self.missing:
            return
        self.key = self.encoder.api_key()
        if (reason := self.account.given_up.get(self.encoder.family())) is not None:
            raise type(reason)(str(reason))
        if self.account.budget is not None and self.encoder.price_per_token is None:
            raise DefinitionError(
                f"{self.encoder.model or self.encoder.url}: a budget requires "
                f"price_per_million_tokens; set it to 0 for a server of your own."
            )
        import_extra("httpx", "endpoint")
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        begun = time.perf_counter()
        try:
            with HttpConnections(headers, self.encoder.timeout) as self.connections:
                self._send_all(list(self._batches(self.missing)))
        finally:
            self.account.sending(self.delivered, time.perf_counter() - begun)
            self.table.database.free_room()
            self.table.refresh()

    def _batches(self, texts: Mapping[bytes, str]) -> Iterator[_Batch]:
        prefix, ratio = self.encoder.prefix_for(self.role), tokens_per_byte(self.table)
        marks: list[bytes] = []
        chosen: list[str] = []
        size, most = 0.0, min(self.encoder.batch_texts or self.dialect.texts, self.learned.most)
        # texts of similar length together, as servers pad them
        for mark, text in sorted(texts.items(), key=lambda pair: -len(pair[1])):
            tokens = byte_count(prefix + text) * ratio
            if chosen and (len(chosen) >= most or size + tokens > self.encoder.batch_tokens):
                yield _Batch(marks, chosen)
                marks, chosen, size = [], [], 0.0
            marks.append(mark)
            chosen.append(prefix + text)
            size += tokens
        yield _Batch(marks, chosen)

    def _send_all(self, batches: list[_Batch]) -> None:
        """Send all batches; after an error, requests under way are still stored."""
        if not self.learned.answers:
            # the first one alone: a wrong address, key or model costs one request
            self._deliver(batches.pop(0))
        with ThreadPoolExecutor(self.encoder.concurrency) as pool:
            futures = [pool.submit(self._deliver, batch) for batch in batches]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _deliver(self, batch: _Batch) -> None:
        """Request a batch and store its vectors; divide it if the server finds it too large."""
        if self.stop.is_set():
            return
        try:
            if len(batch.texts) > self.learned.most:
                raise _TooLarge("")
            self._store(batch, truncate=False)
        except _TooLarge as error:
            half = len(batch.texts) // 2
            if not half:
                self._shorten(batch, str(error))
                return
            if "batch size" in str(error).lower():
                self.learned.most = min(self.learned.most, half)
            self._deliver(batch.part(None, half))
            self._deliver(batch.part(half, None))

    def _shorten(self, batch: _Batch, message: str) -> None:
        """Let the server truncate a text that is too long for its model, or cut its end."""
        truncates = self.dialect.truncation is not None
        text = batch.texts[0]
        for attempt in range(SHORTENINGS):
            if not truncates:
                text = text[: int(len(text) * share_to_keep(message, attempt))]
            if not text.strip():
                break
            try:
                self._store(_Batch(batch.marks, [text], True), truncate=True)
                return
            except _TooLarge as error:
                message, truncates = str(error), False
        first = batch.texts[0][:60]
        raise self._refused_text(
            f"the text {first!r} as too long, also the first hundredth of it: {message}"
        )

    def _refused_text(self, what: str) -> ContractError:
        """Return the error of refused texts; remember it if none was ever accepted."""
        error = ContractError(f"{self._where()} refuses {what}")
        if not self.learned.delivers:
            self.account.given_up[self.encoder.family()] = error
        return error

    # -- one request ------------------------------------------------------------------------

    def _store(self, batch: _Batch, truncate: bool) -> None:
        """Request a batch until its vectors are stored, by this process or by another one."""
        reply = _Reply(None, "")
        for attempt in range(ATTEMPTS):
            remaining, claim = self._claimed(batch)
            if claim is None:
                return
            batch = remaining
            reply = self._send(batch, claim, truncate)
            if reply.status == 200:
                return
            if reply.response is not None and self._is_final(reply.response):
                raise self._refused(reply.response, batch)
            pause = self._pause(attempt, reply.response)
            if attempt == ATTEMPTS - 1 or pause > PATIENCE:
                break
            self._sleep(pause)
        given_up = self._postponed(f"{reply.reason} after {attempt + 1} attempts")
        self.account.given_up[self.encoder.family()] = given_up
        raise given_up

    def _claimed(self, batch: _Batch) -> tuple[_Batch, Reservation | None]:
        """Return the texts that this process is to request now; wait for those of others."""
        while batch.marks:
            try:
                claim = self.account.claim(self.table, self._request(batch), _now())
            except OverBudget as error:
                raise self._postponed(str(error)) from None
            except Unwritable as error:
                raise self._without_room(str(error)) from None
            if isinstance(claim, Reservation):
                try:
                    self._sleep(claim.wait)
                except BaseException:
                    self._finish(claim, Settlement())
                    raise
                return batch, claim
            there = {mark for mark in batch.marks if mark in self.table}
            free, batch = batch.without(claim.marks), batch.without(there)
            if free.marks and claim.marks - there:
                self._store(free, truncate=batch.truncated)
                batch = batch.without(free.marks)
            if batch.marks and not there:
                self._sleep(GLANCE)
                self.table.refresh()
        return batch, None

    def _request(self, batch: _Batch) -> Request:
        """Return what a batch needs at most."""
        return Request(
            batch.marks,
            price=batch.most_tokens * self.learned.excess * (self.encoder.price_per_token or 0.0),
            tokens=batch.size * tokens_per_byte(self.table),
            room=self.table.room(len(batch.marks), self.encoder.dimensions),
            seconds=self.encoder.timeout + SPARE_SECONDS,
            requests_per_minute=self.encoder.requests_per_minute,
            tokens_per_minute=self.encoder.tokens_per_minute,
        )

    def _send(self, batch: _Batch, claim: Reservation, truncate: bool) -> _Reply:
        """Send a request once; store what it delivers and what it costs."""
        outcome = Settlement(charged=claim.request.price)
        try:
            reply = self._attempt(batch, truncate)
            if reply.status == 200:
                assert reply.response is not None
                outcome = self._read(batch, claim, reply.response)
            elif not reply.charged:
                outcome = Settlement()
        except NotSent:
            outcome = Settlement()
            raise
        finally:
            self._finish(claim, outcome)
        return reply

    def _attempt(self, batch: _Batch, truncate: bool) -> _Reply:
        body = self.dialect.request(
            self.encoder, batch.texts, role=self.role, truncate=truncate, packed=self.learned.packed
        )
        most = largest_answer(len(batch.texts), self.table.width or self.encoder.dimensions)
        try:
            response = self.connections.post(self.encoder.address, body, most)
        except AnswerTooLarge as error:
            raise ContractError(
                f"{self._where()} sent an answer of {error} for {len(batch.texts)} texts, where "
                f"at most {most:,} are expected; check the address, or set dimensions."
            ) from None
        except ValueError as error:
            raise ContractError(f"{self._where()}: {self._safe(str(error))}") from None
        except NotSent as error:
            if error.refused and not self.learned.answers:
                raise ContractError(
                    f"no server answers at {self.encoder.address} ({self._safe(str(error))}); "
                    f"start it, or check the address."
                ) from None
            return _Reply(None, f"the connection was lost ({self._safe(str(error))})")
        except LostAnswer as error:
            reason = f"the connection was lost ({self._safe(str(error))})"
            return _Reply(None, reason, charged=True)
        self.learned.answers = True
        return _Reply(response, f"status {response.status} {self._message(response)}")

    def _read(self, batch: _Batch, claim: Reservation, response: Response) -> Settlement:
        """Return the vectors of an answer and what it costs."""
        body = self._json(response, len(batch.texts))
        try:
            vectors = check_answer(self.dialect.vectors(body), len(batch.texts))
            reported = self.dialect.tokens(body, response.headers)
        except ContractError as error:
            raise ContractError(f"{self._where()}: {self._safe(str(error))}.") from None
        except (KeyError, TypeError, AttributeError, IndexError):
            text = self._safe(json.dumps(body)[: 2 * MESSAGE_LENGTH])[:MESSAGE_LENGTH]
            raise ContractError(
                f"{self._where()} sent an answer of another form than that of the dialect "
                f'"{self.encoder.spoken}": {text}; set dialect, or check the address.'
            ) from None
        with self.lock:
            self._check_width(vectors.shape[1])
        tokens = self._tokens(batch, reported)
        sizes = np.array([byte_count(text) for text in batch.texts])
        # without a number of the server, an estimate is stored as a negative number
        total = -claim.request.tokens if tokens is None else tokens
        rows = np.zeros(len(batch.texts), ROW)
        rows["mark"] = np.frombuffer(b"".join(batch.marks), ROW["mark"])
        rows["tokens"] = total * (sizes + 1) / (sizes + 1).sum()
        rows["bytes"], rows["truncated"] = sizes, batch.truncated
        per_token = self.encoder.price_per_token
        return Settlement(
            charged=claim.request.price if tokens is None else tokens * (per_token or 0.0),
            tokens=abs(total),
            price=None if per_token is None else abs(total) * per_token,
            answer=ReceivedVectors(rows, vectors, response.seconds),
        )

    def _tokens(self, batch: _Batch, reported: object) -> float | None:
        """Return the tokens that the server counted; None if it did not, or nonsense."""
        if not reported:
            return None
        tokens = token_count(reported, batch.most_tokens)
        if tokens is None:
            remark = (
                f"{self._where()} counts {self._safe(repr(reported))[:40]} tokens for "
                f"{len(batch.texts)} texts, which cannot be; they were estimated"
            )
            log.warning("%s", remark)
            self.account.remark(remark)
        else:
            self.learned.excess = max(self.learned.excess, tokens / batch.most_tokens)
        return tokens

    def _finish(self, claim: Reservation, outcome: Settlement) -> None:
        with self.lock:
            name = self.encoder.model or self.encoder.url
            self.account.finish(claim, self.table, name, outcome)
            self.table.refresh()
            if outcome.answer is not None:
                # another process may have got the first vectors meanwhile
                self._check_width(outcome.answer.vectors.shape[1])
                self.refusals, self.learned.delivers = 0, True
                self.delivered += len(outcome.answer.rows)
                self.account.services.progress(self.delivered)
        if outcome.answer is not None:
            self.table.database.flush()

    def _check_width(self, width: int) -> None:
        if (earlier := self.table.width) is not None and width != earlier:
            raise ContractError(
                f"{self._where()} sent vectors of {width} dimensions, and of {earlier} earlier; if "
                f"the weights behind the name have changed, set revision to a new text."
            )
        if self.encoder.dimensions not in (None, width):
            raise ContractError(
                f"{self._where()} sent vectors of {width} dimensions instead of the "
                f"{self.encoder.dimensions} requested; it cannot shorten those of this model."
            )

    # -- errors -----------------------------------------------------------------------------

    def _is_final(self, response: Response) -> bool:
        """Return whether an error is not repeated; a refusal of packed vectors is."""
        status = response.status
        if status in (400, 422) and self.learned.packed:
            if re.search("encoding_format|base64", response.text):
                self.learned.packed = False
                return False
        return status not in RETRIED and status < 500

    def _refused(self, response: Response, batch: _Batch) -> Exception:
        """Return the error of a response that would be the same next time."""
        status, message = response.status, self._message(response)
        if status in TOO_LARGE and TOO_LONG.search(message):
            with self.lock:
                self.refusals += 1
                if self.refusals > REFUSALS:
                    return self._refused_text(
                        f"{REFUSALS} requests in a row as too large, the last one with "
                        f"{batch.texts[0][:60]!r}: {message}"
                    )
            return _TooLarge(message)
        if 300 <= status < 400:
            where = self._safe(response.headers.get("location", ""))[:MESSAGE_LENGTH]
            return ContractError(f"{self._where()} redirects to {where}; use that address.")
        key = self.encoder.key_variable() or "set api_key_env to the variable that holds it"
        advice = _ADVICE.get(status, "the same request would be refused again").format(key=key)
        listed = ""
        if status in (400, 404) and self.encoder.spoken == "openai":
            listed = self._known_models()
        return ContractError(f"{self._where()} answered {status}: {message}; {advice}.{listed}")

    def _known_models(self) -> str:
        """Return the models that the server lists, if it does."""
        address = self.encoder.address.removesuffix(self.dialect.path) + "/models"
        try:
            answer = self.connections.get(address, 16 * ERROR_BYTES)
            names = [str(item["id"])[:100] for item in json.loads(answer.content)["data"]]
        except Exception:  # the server has no such list
            return ""
        listed = ", ".join(names[:10])
        return " " + self._safe(f"It has: {listed}.{did_you_mean(self.encoder.model, names)}")

    def _json(self, response: Response, texts: int) -> Any:
        try:
            return answer_json(response.content, texts)
        except ValueError as error:
            kind = self._safe(response.headers.get("content-type", "no type").partition(";")[0])
            if kind == "application/json":
                raise ContractError(
                    f"{self._where()} answered with wrong JSON: {self._safe(str(error))}."
                ) from None
            raise ContractError(
                f"{self._where()} answered with {kind[:60]} instead of JSON; check the address: "
                f"that of most servers ends with /v1."
            ) from None

    def _message(self, response: Response) -> str:
        """Return the server's message in one line, without the API key."""
        if response.status == 200:
            return ""
        text = response.text
        with suppress(ValueError, RecursionError):
            text = error_text(json.loads(response.content))
        if "<html" in text[:500].lower() or "<!doctype" in text[:500].lower():
            text = "an HTML page"
        return self._safe(text)[:MESSAGE_LENGTH] or "no message"

    def _pause(self, attempt: int, response: Response | None) -> float:
        """Return the seconds before the next attempt: random, longer each time."""
        if response is not None and response.status in (400, 422):
            return 0.0  # plain numbers instead of packed ones
        longest = min(LONGEST, SHORTEST * 2**attempt)
        pause = float(self.random.uniform(longest / 2, longest))
        header = response.headers.get("retry-after") if response is not None else None
        return max(pause, retry_after(header))

    def _postponed(self, reason: str) -> Postponed:
        return Postponed(
            f"{self._where()}: {self._safe(reason)}. Vectors that arrived are stored; --resume "
            f"requests the rest"
        )

    def _without_room(self, reason: str) -> Postponed:
        """Return the error of vectors that cannot be stored, with the space that they need."""
        missing = sum(mark not in self.table for mark in self.missing)
        dimensions, most = self.encoder.dimensions, self.encoder.batch_texts or self.dialect.texts
        needed = self.table.database.space(
            self.table.room(missing + self.table.unsaved, dimensions),
            self.encoder.concurrency,
            self.table.room(min(most, missing), dimensions),
        )
        unsaved = ""
        if self.table.unsaved:
            unsaved = (
                f" {self.table.unsaved:,} vectors that arrived are used now, but are not stored."
            )
        return Postponed(
            f"{self._where()}: {reason}. Nothing more is requested, because the {missing:,} "
            f"vectors that are missing need {megabytes(needed)} of free space there.{unsaved} "
            f"Free it, then --resume requests the rest"
        )

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            _wait(self.stop, seconds)
        if self.stop.is_set():
            raise self._postponed("stopped")

    def _where(self) -> str:
        return f"the endpoint {self.encoder.address}"

    def _safe(self, text: str) -> str:
        return plain_message(text, self.key)


def megabytes(size: float) -> str:
    """Return a size with its unit.

    >>> megabytes(3_200_000)
    '3.2 MB'
    """
    return f"{math.ceil(size / 1e5) / 10:,.1f} MB"


def _now() -> float:
    return time.time()


def _wait(stop: threading.Event, seconds: float) -> None:
    stop.wait(seconds)


def share_to_keep(message: str, attempt: int) -> float:
    """Return the share of a text to keep, by the limit and the size in the server's message."""
    numbers = [int(digits) for digits in re.findall(r"\d+", message) if 1 < int(digits) < 10**7]
    for limit, size in zip(numbers, numbers[1:], strict=False):
        if limit < size and attempt < SHORTENINGS // 2:
            return 0.95 * limit / size
    return 0.75 if attempt < 2 else 0.4


def retry_after(header: str | None) -> float:
    """Return the seconds of a Retry-After header, which holds seconds or a date.

    >>> retry_after("3"), retry_after("soon"), retry_after(None)
    (3.0, 0.0, 0.0)
    """
    if not header:
        return 0.0
    with suppress(ValueError):
        seconds = float(header)
        return seconds if 0 <= seconds < math.inf else 0.0
    with suppress(ValueError, TypeError):
        then = parsedate_to_datetime(header)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0.0, (then - datetime.fromtimestamp(_now(), UTC)).total_seconds())
    return 0.0
