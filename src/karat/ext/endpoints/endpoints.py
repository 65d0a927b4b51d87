"""Text encoders behind an HTTP endpoint: dialects, requests with retries, and checked answers.

Every answer is stored in a database before it is used, so no text is paid for twice
(``endpoint_store``). API keys are read from the environment when a request is sent and are
removed from every message.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from karat.core.registry import encoder
from karat.errors import ContractError, DefinitionError, Postponed, did_you_mean
from karat.ext.endpoints.endpoint_account import (
    SERVICE,
    Account,
    OverBudget,
    Request,
    Reservation,
    Settlement,
    current_account,
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
from karat.ext.endpoints.endpoint_vectors import VectorTable, text_mark
from karat.models.model import PackagedEncoder, import_extra

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
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: what a message about a status advises
_ADVICE = {
    401: "check the API key ({key})",
    403: "the API key ({key}) has no access to this model",
    404: "check the address and the model name",
}
ROLES = ("query", "document", None)


def endpoint_model(address: str) -> tuple[str, EndpointEncoder]:
    """Return the encoder of ``URL#MODEL`` and a short name for it.

    >>> name, encoder = endpoint_model("http://localhost:8080/v1#BAAI/bge-small")
    >>> name, encoder.url, encoder.model
    ('bge-small', 'http://localhost:8080/v1', 'BAAI/bge-small')
    """
    url, _, model = address.partition("#")
    encoder = EndpointEncoder(url, model)
    parts = urlsplit(url)
    host = "-".join(str(part) for part in (parts.hostname, parts.port) if part)
    return model.rstrip("/").rpartition("/")[2] or host, encoder


# -- dialects -------------------------------------------------------------------------------


def _indexed(answer: Any) -> list[Any]:
    """Return the vectors of an answer with an index each, in the order of the texts."""
    items = answer["data"]
    order = [item.get("index", index) for index, item in enumerate(items)]
    if any(type(index) is not int for index in order) or sorted(order) != list(range(len(items))):
        raise ContractError(f"the answer has wrong values of index: {order[:10]}")
    placed = dict(zip(order, items, strict=True))
    return [placed[i]["embedding"] for i in range(len(items))]


def _reported(answer: Any, headers: Mapping[str, str]) -> Any:
    usage = _mapping(answer, "usage")
    return usage.get("total_tokens") or usage.get("prompt_tokens")


def _billed(answer: Any, headers: Mapping[str, str]) -> Any:
    return _mapping(_mapping(answer, "meta"), "billed_units").get("input_tokens")


def _mapping(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of an answer; nothing if it is of another form."""
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _computed(answer: Any, headers: Mapping[str, str]) -> Any:
    text = headers.get("x-compute-tokens") or "0"
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d*)?", text) else text


@dataclass(frozen=True)
class Dialect:
    """How a kind of server is asked and answers; the defaults are those of OpenAI.

    ``path`` follows the URL. ``hosts`` are those of the provider, whose key is in the environment
    variable ``key``. ``texts`` is the maximum number of texts of a request by default, ``input``
    and ``length`` are the keys of the texts and of the length of vectors. ``truncation`` holds the
    key and its values for texts that are refused or truncated if they are too long, ``packing``
    the key of packed vectors, ``types`` the input types of queries, documents and other texts.
    ``vectors`` and ``tokens`` read an answer; tokens may be in its headers.
    """

    path: str = "/embeddings"
    hosts: tuple[str, ...] = ()
    key: str = ""
    texts: int = 256
    input: str = "input"
    length: str = "dimensions"
    packing: str = ""
    truncation: tuple[str, Any, Any] | None = None
    types: tuple[str, str, str] = ("", "", "")
    more: Mapping[str, Any] = field(default_factory=dict)
    vectors: Callable[[Any], Any] = _indexed
    tokens: Callable[[Any, Mapping[str, str]], Any] = _reported

    def input_type(self, role: str | None) -> str:
        """Return the name of a role in this dialect, or an empty string."""
        return self.types[ROLES.index(role if role in ROLES else None)]

    def request(self, asked: EndpointEncoder, texts: Sequence[str], **how: Any) -> dict[str, Any]:
        """Return the body of a request; ``how`` has ``role``, ``truncate`` and ``packed``."""
        body: dict[str, Any] = {self.input: list(texts), **self.more}
        if asked.model:
            body["model"] = asked.model
        if asked.dimensions:
            body[self.length] = asked.dimensions
        if self.packing and how["packed"]:
            body[self.packing] = "base64"
        if named := self.input_type(how["role"]):
            body["input_type"] = named
        if self.truncation is not None:
            key, *values = self.truncation
            body[key] = values[how["truncate"]]
        return body


DIALECTS = {
    "openai": Dialect(hosts=("api.openai.com",), key="OPENAI_API_KEY", packing="encoding_format"),
    "voyage": Dialect(
        hosts=("api.voyageai.com",),
        key="VOYAGE_API_KEY",
        texts=128,
        length="output_dimension",
        packing="encoding_format",
        truncation=("truncation", False, True),
        types=("query", "document", ""),
    ),
    "cohere": Dialect(
        path="/embed",
        hosts=("api.cohere.com", "api.cohere.ai"),
        key="COHERE_API_KEY",
        texts=96,
        input="texts",
        length="output_dimension",
        truncation=("truncate", "NONE", "END"),
        types=("search_query", "search_document", "classification"),
        more={"embedding_types": ["float"]},
        vectors=lambda answer: answer["embeddings"]["float"],
        tokens=_billed,
    ),
    # tokens are in a header, and errors about the number of texts are handled
    "tei": Dialect(
        path="/embed",
        texts=32,
        input="inputs",
        truncation=("truncate", False, True),
        vectors=list,
        tokens=_computed,
    ),
    "ollama": Dialect(
        path="/api/embed",
        texts=64,
        truncation=("truncate", False, True),
        vectors=lambda answer: answer["embeddings"],
        tokens=lambda answer, headers: answer.get("prompt_eval_count"),
    ),
}


# -- the encoder ----------------------------------------------------------------------------


@encoder("endpoint")
@dataclass(eq=False, repr=False)
class EndpointEncoder(PackagedEncoder):
    """A text encoder behind an HTTP endpoint.

    Parameters
    ----------
    url
        The address up to the version, such as ``http://localhost:8080/v1``.
    model
        The name of the model on the server.
    dialect
        ``openai``, ``tei``, ``ollama``, ``cohere`` or ``voyage``; default: by the address.
    api_key_env
        The environment variable that holds the API key; default: that of a known provider.
    batch_tokens, batch_texts
        The maximum size of a request, in estimated tokens and in texts.
    concurrency
        The maximum number of requests under way.
    requests_per_minute, tokens_per_minute
        Rate limits.
    price_per_million_tokens
        The price in dollars; 0 for a server of your own.
    dimensions
        The length of the vectors, where the server can shorten them.
    prompt
        A prefix for every text, or a mapping of ``query`` and ``document`` to prefixes.
    revision
        Any text; change it when the weights behind the name have changed.
    timeout
        Seconds in which an answer must be complete.
    """

    needs = ("httpx",)
    extra = "endpoint"
    uses_roles = True
    #: the account that counts what it sends
    sends_texts_to: ClassVar[str] = SERVICE
    #: its vectors are kept in a database, where every call looks first
    keeps_vectors = True
    #: None: it gets all texts in one call, so that requests never wait for each other
    chunk: ClassVar[int | None] = None

    url: str
    model: str = ""
    dialect: str | None = None
    api_key_env: str | None = None
    batch_tokens: int = 8000
    batch_texts: int | None = None
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price_per_million_tokens: float | None = None
    dimensions: int | None = None
    prompt: str | Mapping[str, str] | None = None
    revision: str | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise a DefinitionError for a wrong parameter; messages do not contain secrets."""
        messages = [*_wrong_url(self.url), *_wrong_numbers(self)]
        if self.dialect is not None and self.dialect not in DIALECTS:
            hint = did_you_mean(self.dialect, DIALECTS)
            dialects = ", ".join(DIALECTS)
            messages.append(f'dialect must be one of {dialects}, got "{self.dialect}".{hint}')
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            messages.append("api_key_env must be the name of an environment variable.")
        roles = {"query", "document"}
        if isinstance(self.prompt, Mapping) and not set(self.prompt) <= roles:
            messages.append("prompt must be a text, or a mapping of query and document to texts.")
        if messages:
            raise DefinitionError(*(f"endpoint: {message}" for message in messages))

    @property
    def spoken(self) -> str:
        """The name of the dialect, by the address if it is not given."""
        if self.dialect is not None:
            return self.dialect
        parts = urlsplit(self.url)
        for name, dialect in DIALECTS.items():
            if parts.hostname in dialect.hosts:
                return name
        if parts.path.endswith("/api/embed") or (parts.port == 11434 and "/v1" not in parts.path):
            return "ollama"
        return "tei" if parts.path.endswith("/embed") else "openai"

    @property
    def address(self) -> str:
        """The address of requests."""
        url, path = self.url.rstrip("/"), DIALECTS[self.spoken].path
        return url if url.endswith(path) else url + path

    @property
    def price_per_token(self) -> float | None:
        """The price of a token in dollars, if it is known."""
        price = self.price_per_million_tokens
        return None if price is None else price / 1e6

    def prompt_for(self, role: str | None) -> str:
        """Return what distinguishes the vectors of a role: its type and its prompt."""
        parts = DIALECTS[self.spoken].input_type(role), self._prefix(role)
        return " ".join(part for part in parts if part)

    def _prefix(self, role: str | None) -> str:
        if isinstance(self.prompt, Mapping):
            return self.prompt.get(role or "", "")
        return self.prompt or ""

    def family(self) -> str:
        """Return the name of its vectors; prices, keys and limits do not change vectors."""
        self.check()
        parts = [self.spoken, self.address, self.model, self.dimensions, self.revision]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def fingerprint(self) -> str:
        """Return what the vectors depend on."""
        return f"{self.family()} {self.prompt!r}"

    def encode(self, texts: list[str], role: str | None = None) -> np.ndarray:
        """Return one row per text; NaN for an empty text, which is not sent."""
        account = current_account()
        table = account.vectors(self.family())
        prompt = self.prompt_for(role)
        marks = [text_mark(prompt, text) if text.strip() else b"" for text in texts]
        wanted = {mark: text for mark, text in zip(marks, texts, strict=True) if mark}
        filled = [i for i, mark in enumerate(marks) if mark]
        delivered = None
        for _ in range(3):  # again, if vectors turn out to be damaged
            Delivery(self, account, table, role).send(wanted)
            delivered = table.read([marks[i] for i in filled]) if filled else None
            if delivered is not None or not filled:
                break
        if filled and delivered is None:
            raise ContractError(f"{table.database.path} does not return what was stored in it.")
        if delivered is not None:
            places = {mark: i for i, mark in enumerate(marks[j] for j in filled)}
            distinct = len(places) == len(filled)
            once = delivered if distinct else delivered.at(list(places.values()))
            account.use(once, self.price_per_token)
            if len(filled) == len(texts):
                return delivered.vectors
        rows = np.full((len(texts), table.width or 1), np.nan, np.float32)
        if delivered is not None:
            rows[filled] = delivered.vectors
        return rows

    def estimate(self, texts: Sequence[str], role: str | None = None) -> tuple[int, float]:
        """Return how many texts are not in the cache, and their estimated tokens."""
        table, prompt = current_account().vectors(self.family()), self.prompt_for(role)
        missing = {text for text in texts if text_mark(prompt, text) not in table}
        missing = {text for text in missing if text.strip()}
        return len(missing), self.estimate_all(list(missing), role)

    def estimate_all(self, texts: Sequence[str], role: str | None = None) -> float:
        """Return the estimated tokens of texts, whether they are in the cache or not."""
        table, prefix = current_account().vectors(self.family()), self._prefix(role)
        return sum(_bytes(prefix + text) for text in texts) * _ratio(table)

    def learned(self) -> _Learned:
        """Return what this process has learned about the server."""
        if not hasattr(self, "learned_"):
            self.learned_ = _Learned()
        return self.learned_

    def key_variable(self) -> str:
        """Return the environment variable of the API key, or an empty string if none is needed."""
        dialect = DIALECTS[self.spoken]
        is_provider = urlsplit(self.url).hostname in dialect.hosts
        return self.api_key_env or (dialect.key if is_provider else "")

    def api_key(self) -> str:
        """Return the API key of the environment, or an empty string if none is needed."""
        name = self.key_variable()
        if not name:
            return ""
        key = os.environ.get(name, "").strip()
        if not key:
            raise ContractError(
                f"the environment variable {name} is not set; it must hold the key."
            )
        if not key.isascii() or not key.isprintable():
            raise ContractError(f"the API key in {name} has characters that no header can hold.")
        return key


def _wrong_url(url: Any) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except (ValueError, AttributeError, TypeError):
        is_address = False
    if not is_address:
        yield "url must be an address such as http://localhost:8080/v1."
        return
    if parts.username is not None or parts.password is not None:
        yield (
            "url must not contain a user name or password; set api_key_env to the name of an "
            "environment variable that holds the key."
        )
    if parts.query or parts.fragment:
        yield (
            "url must not contain ? or #; put the key into an environment variable (api_key_env), "
            "and the name of the model into model, or after # in -m URL#MODEL."
        )


def _wrong_numbers(encoder: EndpointEncoder) -> Iterator[str]:
    whole = ("batch_tokens", "batch_texts", "concurrency", "dimensions")
    above = ("requests_per_minute", "tokens_per_minute", "timeout")
    for name in (*whole, *above, "price_per_million_tokens"):
        value: Any = getattr(encoder, name)
        if value is None and name not in ("batch_tokens", "concurrency", "timeout"):
            continue
        kind = int if name in whole else (int, float)
        right = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
        if not right or value < 0 or (value == 0 and name != "price_per_million_tokens"):
            what = "an integer >= 1" if name in whole else "a number > 0"
            what = "a number >= 0" if name == "price_per_million_tokens" else what
            yield f"{name} must be {what}, got {value!r}."


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _ratio(table: VectorTable) -> float:
    """Return the tokens per byte that the server has counted so far, or an estimate."""
    return table.tokens / table.bytes if table.bytes else TOKENS_PER_BYTE


# -- requests -------------------------------------------------------------------------------


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
        return sum(map(_bytes, self.texts))

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
class _Learned:
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
        self, asked: EndpointEncoder, account: Account, table: VectorTable, role: str | None
    ) -> None:
        self.asked, self.account, self.table, self.role = asked, account, table, role
        self.dialect = DIALECTS[asked.spoken]
        self.key = ""
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.known, self.delivered, self.refusals = asked.learned(), 0, 0
        self.random = np.random.default_rng()
        self.missing: Mapping[bytes, str] = {}

    def send(self, texts: Mapping[bytes, str]) -> None:
        """Request the texts that are missing, by their marks."""
        self.missing = {mark: text for mark, text in texts.items() if mark not in self.table}
        if not self.missing:
            return
        self.key = self.asked.api_key()
        if (reason := self.account.given_up.get(self.asked.family())) is not None:
            raise type(reason)(str(reason))
        if self.account.budget is not None and self.asked.price_per_token is None:
            raise DefinitionError(
                f"{self.asked.model or self.asked.url}: a budget requires "
                f"price_per_million_tokens; set it to 0 for a server of your own."
            )
        import_extra("httpx", "endpoint")
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        begun = time.perf_counter()
        try:
            with HttpConnections(headers, self.asked.timeout) as self.connections:
                self._send_all(list(self._batches(self.missing)))
        finally:
            self.account.sending(self.delivered, time.perf_counter() - begun)
            self.table.database.free_room()
            self.table.refresh()

    def _batches(self, texts: Mapping[bytes, str]) -> Iterator[_Batch]:
        prefix, ratio = self.asked._prefix(self.role), _ratio(self.table)
        marks: list[bytes] = []
        chosen: list[str] = []
        size, most = 0.0, min(self.asked.batch_texts or self.dialect.texts, self.known.most)
        # texts of similar length together, as servers pad them
        for mark, text in sorted(texts.items(), key=lambda pair: -len(pair[1])):
            tokens = _bytes(prefix + text) * ratio
            if chosen and (len(chosen) >= most or size + tokens > self.asked.batch_tokens):
                yield _Batch(marks, chosen)
                marks, chosen, size = [], [], 0.0
            marks.append(mark)
            chosen.append(prefix + text)
            size += tokens
        yield _Batch(marks, chosen)

    def _send_all(self, batches: list[_Batch]) -> None:
        """Send all batches; after an error, requests under way are still stored."""
        if not self.known.answers:
            # the first one alone: a wrong address, key or model costs one request
            self._deliver(batches.pop(0))
        with ThreadPoolExecutor(self.asked.concurrency) as pool:
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
            if len(batch.texts) > self.known.most:
                raise _TooLarge("")
            self._store(batch, truncate=False)
        except _TooLarge as error:
            half = len(batch.texts) // 2
            if not half:
                self._shorten(batch, str(error))
                return
            if "batch size" in str(error).lower():
                self.known.most = min(self.known.most, half)
            self._deliver(batch.part(None, half))
            self._deliver(batch.part(half, None))

    def _shorten(self, batch: _Batch, message: str) -> None:
        """Let the server truncate a text that is too long for its model, or cut its end."""
        truncates = self.dialect.truncation is not None
        text = batch.texts[0]
        for attempt in range(SHORTENINGS):
            if not truncates:
                text = text[: int(len(text) * _share_kept(message, attempt))]
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
        if not self.known.delivers:
            self.account.given_up[self.asked.family()] = error
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
        self.account.given_up[self.asked.family()] = given_up
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
            price=batch.most_tokens * self.known.excess * (self.asked.price_per_token or 0.0),
            tokens=batch.size * _ratio(self.table),
            room=self.table.room(len(batch.marks), self.asked.dimensions),
            seconds=self.asked.timeout + SPARE_SECONDS,
            requests_per_minute=self.asked.requests_per_minute,
            tokens_per_minute=self.asked.tokens_per_minute,
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
            self.asked, batch.texts, role=self.role, truncate=truncate, packed=self.known.packed
        )
        most = largest_answer(len(batch.texts), self.table.width or self.asked.dimensions)
        try:
            response = self.connections.post(self.asked.address, body, most)
        except AnswerTooLarge as error:
            raise ContractError(
                f"{self._where()} sent an answer of {error} for {len(batch.texts)} texts, where "
                f"at most {most:,} are expected; check the address, or set dimensions."
            ) from None
        except ValueError as error:
            raise ContractError(f"{self._where()}: {self._safe(str(error))}") from None
        except NotSent as error:
            if error.refused and not self.known.answers:
                raise ContractError(
                    f"no server answers at {self.asked.address} ({self._safe(str(error))}); start "
                    f"it, or check the address."
                ) from None
            return _Reply(None, f"the connection was lost ({self._safe(str(error))})")
        except LostAnswer as error:
            reason = f"the connection was lost ({self._safe(str(error))})"
            return _Reply(None, reason, charged=True)
        self.known.answers = True
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
                f'"{self.asked.spoken}": {text}; set dialect, or check the address.'
            ) from None
        with self.lock:
            self._check_width(vectors.shape[1])
        tokens = self._tokens(batch, reported)
        sizes = np.array([_bytes(text) for text in batch.texts])
        # without a number of the server, an estimate is stored as a negative number
        total = -claim.request.tokens if tokens is None else tokens
        rows = np.zeros(len(batch.texts), ROW)
        rows["mark"] = np.frombuffer(b"".join(batch.marks), ROW["mark"])
        rows["tokens"] = total * (sizes + 1) / (sizes + 1).sum()
        rows["bytes"], rows["truncated"] = sizes, batch.truncated
        per_token = self.asked.price_per_token
        return Settlement(
            charged=claim.request.price if tokens is None else tokens * (per_token or 0.0),
            tokens=abs(total),
            price=None if per_token is None else abs(total) * per_token,
            answer=ReceivedVectors(rows, vectors, response.seconds),
        )

    def _tokens(self, batch: _Batch, reported: Any) -> float | None:
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
            self.known.excess = max(self.known.excess, tokens / batch.most_tokens)
        return tokens

    def _finish(self, claim: Reservation, outcome: Settlement) -> None:
        with self.lock:
            name = self.asked.model or self.asked.url
            self.account.finish(claim, self.table, name, outcome)
            self.table.refresh()
            if outcome.answer is not None:
                # another process may have got the first vectors meanwhile
                self._check_width(outcome.answer.vectors.shape[1])
                self.refusals, self.known.delivers = 0, True
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
        if self.asked.dimensions not in (None, width):
            raise ContractError(
                f"{self._where()} sent vectors of {width} dimensions instead of the "
                f"{self.asked.dimensions} requested; it cannot shorten those of this model."
            )

    # -- errors -----------------------------------------------------------------------------

    def _is_final(self, response: Response) -> bool:
        """Return whether an error is not repeated; a refusal of packed vectors is."""
        status = response.status
        if status in (400, 422) and self.known.packed:
            if re.search("encoding_format|base64", response.text):
                self.known.packed = False
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
        key = self.asked.key_variable() or "set api_key_env to the variable that holds it"
        advice = _ADVICE.get(status, "the same request would be refused again").format(key=key)
        listed = ""
        if status in (400, 404) and self.asked.spoken == "openai":
            listed = self._known_models()
        return ContractError(f"{self._where()} answered {status}: {message}; {advice}.{listed}")

    def _known_models(self) -> str:
        """Return the models that the server lists, if it does."""
        address = self.asked.address.removesuffix(self.dialect.path) + "/models"
        try:
            answer = self.connections.get(address, 16 * ERROR_BYTES)
            names = [str(item["id"])[:100] for item in json.loads(answer.content)["data"]]
        except Exception:  # the server has no such list
            return ""
        listed = ", ".join(names[:10])
        return " " + self._safe(f"It has: {listed}.{did_you_mean(self.asked.model, names)}")

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
        dimensions, most = self.asked.dimensions, self.asked.batch_texts or self.dialect.texts
        needed = self.table.database.space(
            self.table.room(missing + self.table.unsaved, dimensions),
            self.asked.concurrency,
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
        return f"the endpoint {self.asked.address}"

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


def _share_kept(message: str, attempt: int) -> float:
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
