"""The text encoder behind an HTTP endpoint: its parameters, their checks, and its vectors.

API keys are read from the environment when a request is sent and are removed from every message.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from karat.core.digest import sha256_of
from karat.core.registry import encoder
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.ext.endpoints.endpoint_account import (
    SERVICE,
    current_account,
)
from karat.ext.endpoints.endpoint_delivery import Delivery, Learned, byte_count, tokens_per_byte
from karat.ext.endpoints.endpoint_dialects import DIALECTS
from karat.ext.endpoints.endpoint_vectors import text_mark
from karat.models.model import PackagedEncoder

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
        parts = DIALECTS[self.spoken].input_type(role), self.prefix_for(role)
        return " ".join(part for part in parts if part)

    def prefix_for(self, role: str | None) -> str:
        """Return what precedes the texts of a role."""
        if isinstance(self.prompt, Mapping):
            return self.prompt.get(role or "", "")
        return self.prompt or ""

    def family(self) -> str:
        """Return the name of its vectors; prices, keys and limits do not change vectors."""
        self.check()
        parts = [self.spoken, self.address, self.model, self.dimensions, self.revision]
        return sha256_of(json.dumps(parts), length=32)

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
        table, prefix = current_account().vectors(self.family()), self.prefix_for(role)
        return sum(byte_count(prefix + text) for text in texts) * tokens_per_byte(table)

    def learned(self) -> Learned:
        """Return what this process has learned about the server."""
        if not hasattr(self, "learned_"):
            self.learned_ = Learned()
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


def _wrong_url(url: str) -> Iterator[str]:
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
