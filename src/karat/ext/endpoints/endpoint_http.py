"""HTTP requests whose answers have a largest size, also after decompression, and a deadline."""

from __future__ import annotations

import socket
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from karat.models.model import import_extra

#: the bytes of an error that are read
ERROR_BYTES = 2**16
#: compressions that are understood, with the window bits that zlib needs
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class AnswerTooLarge(Exception):
    """An answer is larger than it can be."""


class LostAnswer(Exception):
    """A request was sent, and its answer did not arrive: it may have been charged."""


class NotSent(Exception):
    """A request did not reach the server; ``refused`` if no server was there."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(message)


@dataclass(frozen=True)
class Response:
    """An answer: its status, its headers and its decompressed content."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    seconds: float

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode("utf-8", "replace")


class HttpConnections:
    """Connections to a server, one per thread, so that one can be cut at its deadline.

    Parameters
    ----------
    headers
        Those of every request.
    timeout
        Seconds after which an answer must be complete.
    """

    def __init__(self, headers: Mapping[str, str], timeout: float) -> None:
        self._httpx = import_extra("httpx", "endpoint")
        self.headers = {**headers, "accept-encoding": "gzip"}
        self.timeout = timeout
        self._local = threading.local()
        self._clients: list[Any] = []

    def __enter__(self) -> HttpConnections:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()

    def post(self, address: str, body: Mapping[str, Any], most: int) -> Response:
        """Send JSON; raises NotSent, LostAnswer, AnswerTooLarge, ValueError (wrong address)."""
        return self._send("POST", address, most, json=body)

    def get(self, address: str, most: int) -> Response:
        """Return what is at an address."""
        return self._send("GET", address, most)

    def _client(self) -> Any:
        if not hasattr(self._local, "client"):
            limits = self._httpx.Limits(max_connections=1)
            self._local.client = self._httpx.Client(
                limits=limits,
                headers=self.headers,
                timeout=self.timeout,
                verify=_certificates(),
            )
            self._local.watch = _Deadline()
            self._clients.append(self._local.client)
        return self._local.client

    def _send(self, method: str, address: str, most: int, **content: Any) -> Response:
        httpx, client = self._httpx, self._client()
        watch: _Deadline = self._local.watch
        begun = time.perf_counter()
        try:
            with (
                watch.running(self.timeout),
                client.stream(
                    method, address, extensions={"trace": watch.trace}, **content
                ) as response,
            ):
                raw = _content(response, most)
                if watch.expired:
                    raise LostAnswer(f"no complete answer within {self.timeout:g} seconds")
        except httpx.TransportError as error:
            reason = f"{type(error).__name__}: {error}"
            if watch.expired or isinstance(error, httpx.ReadTimeout):
                reason = f"no complete answer within {self.timeout:g} seconds"
            elif isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                raise NotSent(str(error), refused=True) from None
            elif isinstance(error, httpx.PoolTimeout | httpx.UnsupportedProtocol):
                raise NotSent(reason) from None
            raise LostAnswer(reason) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return Response(response.status_code, response.headers, raw, time.perf_counter() - begun)


@cache
def _certificates() -> Any:
    """Return the certificates that are trusted, which take a while to read."""
    return import_extra("httpx", "endpoint").create_ssl_context()


class _Deadline:
    """Cuts the connection of a thread when the time of its request is over."""

    def __init__(self) -> None:
        self.expired = False
        self._stream: Any = None

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Remember the connection, which the library tells when it is made."""
        if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._stream = info["return_value"]
            if self.expired:
                self._cut()

    def running(self, seconds: float) -> _Running:
        """Return a context in which the time runs."""
        self.expired = False
        return _Running(self, seconds)

    def expire(self) -> None:
        """End the request."""
        self.expired = True
        self._cut()

    def _cut(self) -> None:
        with suppress(OSError, AttributeError):
            connection = self._stream.get_extra_info("socket")
            # not the method of encrypted connections, which another thread is reading
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Running:
    def __init__(self, deadline: _Deadline, seconds: float) -> None:
        self._timer = threading.Timer(seconds, deadline.expire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _content(response: Any, most: int) -> bytes:
    """Return the decompressed content, at most so many bytes; of an error, its beginning."""
    fails = response.status_code != 200
    limit = min(most, ERROR_BYTES) if fails else most
    declared = response.headers.get("content-length", "")
    if not fails and declared.isdecimal() and len(declared) < 20 and int(declared) > limit:
        raise AnswerTooLarge(f"{int(declared):,} bytes")
    parts, size = [], 0
    for part in _decompressed(response, limit):
        parts.append(part)
        size += len(part)
        if size > limit:
            if fails:
                break
            raise AnswerTooLarge(f"more than {limit:,} bytes")
    return b"".join(parts)[:limit]


def _decompressed(response: Any, limit: int) -> Iterator[bytes]:
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        yield from response.iter_raw()
        return
    if coding not in _WINDOWS:
        raise AnswerTooLarge(f"an unknown number of bytes, compressed as {coding[:40]!r}")
    stream, empty = zlib.decompressobj(_WINDOWS[coding]), True
    try:
        for part in response.iter_raw():
            empty = False
            yield stream.decompress(part, limit + 1)
            if stream.unconsumed_tail:
                yield bytes(limit + 1)  # it is larger, however much larger
    except zlib.error as error:
        raise LostAnswer(f"the compressed answer is damaged ({error})") from None
    if not (empty or stream.eof):
        raise LostAnswer("the compressed answer is cut off")
