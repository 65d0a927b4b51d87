"""A layer in front of the application: protection, a queue, cached responses.

A response that depends on the served folder only is made once until the folder changes, however
many clients ask for it. Other requests wait for their turn, so that no client can keep all threads
busy.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders

from karat.ext.serve.server import ApiError, ServerSettings, client_key, host_name
from karat.ext.serve.snapshots import (
    POLICY,
    BundleCache,
    FolderWatcher,
    Snapshot,
    short_hash,
    to_ascii_json,
)

if TYPE_CHECKING:
    from starlette.types import Message, Scope

    from karat.ext.serve.routes import Service

BASE = "/api/v1"
#: the event stream, which must not be compressed: a compressor holds events back
EVENTS = f"{BASE}/events"
#: maximum size of a JSON body in bytes
MAX_JSON = 2**16
#: maximum size of a request header in bytes and lines, and number of ranges in it
MAX_HEADER, MAX_HEADER_LINES, MAX_RANGES = 2**16, 200, 10
NO_STORE = {"cache-control": "no-store"}
#: headers of every response; routes may set their own policy and caching
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
}
#: headers of a response without a body
UNMODIFIED = (b"etag", b"vary", b"cache-control", b"content-security-policy")
UPLOAD_PATHS = (f"{BASE}/vectors", f"{BASE}/runs")
#: paths whose body is JSON
ORDER_PATHS = (f"{BASE}/evaluations", f"{BASE}/geval")
#: content types that a form on another website can send without permission
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
#: responses that depend on the scanned folder, the query and the Accept header only
SCANNED_PATHS = re.compile(
    rf"/|/report\.html|/favicon\.ico|{BASE}/(openapi\.json|scores|board|compare|bundle"
    r"|progress|names|runs(/[^/]+(/jobs)?)?)"
)
#: those of them that show a bundle
BUNDLE_PATHS = ("/", "/report.html", f"{BASE}/bundle")
#: request headers that a cached response must not depend on
UNSHARED_HEADERS = (b"if-none-match", b"accept-encoding", b"range", b"if-range", b"authorization")
#: maximum number of cached responses, and of their bytes
MAX_CACHED, MAX_CACHED_BYTES = 256, 2**26
#: intervals between scans after which requests wait for the scan in progress
MAX_INTERVALS = 4
#: bytes of a body that are handed to a connection at a time, and from which on a body is compressed
CHUNK, MIN_COMPRESSED = 2**16, 1024

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
#: path, query, Accept header, and whether it is compressed
Key = tuple[str, bytes, str, bool]


class Json(JSONResponse):
    """A JSON response without NaN."""

    def render(self, content: object) -> bytes:
        """Return the content as JSON."""
        return to_ascii_json(content)


def error_response(error: ApiError) -> Json:
    """Return the JSON of an error."""
    content = {"error": error.error, "hint": error.hint}
    content |= {"field": error.field} if error.field else {}
    return Json(content, error.status, {**NO_STORE, **error.headers})


def internal_error() -> ApiError:
    """Return the error that hides an unexpected exception from clients."""
    hint = "the output of the server has the details; please report it"
    return ApiError(500, "internal error", hint)


def has_tag(if_none_match: str, tag: str) -> bool:
    """Return whether an If-None-Match header names an entity tag, weak or not.

    >>> has_tag('"a", W/"b"', '"b"'), has_tag("*", '"b"'), has_tag("", '"b"')
    (True, True, False)
    """
    tags = {entry.strip().removeprefix("W/") for entry in if_none_match.split(",")}
    return tag.removeprefix("W/") in tags or "*" in tags


# -- turns ----------------------------------------------------------------------------------


class Turns:
    """Lets ``total`` requests in at a time, ``per_client`` of one client; the others wait.

    The clients that wait take turns: one with many requests does not delay the others.
    """

    def __init__(self, total: int, per_client: int) -> None:
        self.total = total
        self.per_client = per_client
        self._inside: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self._waiting.values()))

    async def enter(self, client: str) -> Callable[[], None]:
        """Wait for a turn, and return a function that ends it."""
        line = self._waiting.setdefault(client, deque())
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave_line(client, turn)
            else:  # it was this request's turn at the same moment
                self._end(client)
            raise
        ended = False

        def leave() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._end(client)

        return leave

    def _admit(self) -> None:
        for client in list(self._waiting):
            line = self._waiting[client]
            while line and self._inside[client] < self.per_client:
                if self._inside.total() >= self.total:
                    return
                turn = line.popleft()
                if not turn.done():
                    self._inside[client] += 1
                    turn.set_result(None)
                    self._waiting.move_to_end(client)
                    break
            if not line:
                del self._waiting[client]

    def _end(self, client: str) -> None:
        self._inside[client] -= 1
        if not self._inside[client]:
            del self._inside[client]
        self._admit()

    def _leave_line(self, client: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(client, deque())
        if turn in line:
            line.remove(turn)
        if not line:
            self._waiting.pop(client, None)


# -- cached responses -----------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    """A whole response, and the unexpected error that it reports."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    error: Exception | None = None
    #: whether it is valid until the folder changes, not only until the next scan
    lasting: bool = False

    @property
    def tag(self) -> str:
        """The entity tag, or an empty string."""
        return dict(self.headers).get(b"etag", b"").decode("latin-1")

    def with_headers(self, **changes: str) -> Recorded:
        """Return the same response with other headers, whose names have _ for -."""
        headers = MutableHeaders(raw=[*self.headers])
        for name, value in changes.items():
            headers[name.replace("_", "-")] = value
        return replace(self, headers=tuple(headers.raw))


class ResponseCache:
    """Responses of the newest scan; each is made once, and clients that ask meanwhile wait."""

    def __init__(self, watcher: FolderWatcher, bundles: BundleCache) -> None:
        self.watcher = watcher
        self.bundles = bundles
        self._scan: asyncio.Task[Snapshot] | None = None
        self._snapshot: Snapshot | None = None
        self._known: dict[Key, Recorded] = {}
        self._being_made: dict[Key, asyncio.Task[Recorded]] = {}
        self._packed: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    async def get(self, key: Key, make: Callable[[], Awaitable[Recorded]]) -> Recorded:
        """Return the response of a key, made by ``make`` if it is not known."""
        await self._refresh()
        if key in self._known:
            return self._known[key]
        if key not in self._being_made:
            self._being_made[key] = asyncio.create_task(self._make(key, make))
        # the response is made even if this client leaves: others may wait for it
        return await asyncio.shield(self._being_made[key])

    async def _refresh(self) -> None:
        """Drop the responses that are no longer valid."""
        snapshot, before = await self._newest_snapshot(), self._snapshot
        if snapshot is before:
            return
        self._snapshot = snapshot
        if before is None or snapshot.version != before.version:
            self._being_made = {}
        same = before is not None and snapshot.state == before.state
        self._known = {
            key: response for key, response in self._known.items() if same and response.lasting
        }

    async def _newest_snapshot(self) -> Snapshot:
        current = self.watcher.newest()
        if current is not None:
            return current
        if self._scan is None or self._scan.done():
            self._scan = asyncio.create_task(asyncio.to_thread(self.watcher.snapshot))
        # many clients slow down a scan: meanwhile they get what was there before
        earlier = self.watcher.newest(MAX_INTERVALS)
        return await asyncio.shield(self._scan) if earlier is None else earlier

    async def _make(self, key: Key, make: Callable[[], Awaitable[Recorded]]) -> Recorded:
        cached, being_made = self._known, self._being_made
        version = self._snapshot.version if self._snapshot else ""
        # until its new data are made, a page shows the data of an earlier scan
        lasting = key[0] not in BUNDLE_PATHS or self.bundles.version == version
        try:
            response = replace(await make(), lasting=lasting)
            if response.status == 200:
                response = await self._complete(key, response)
                used = sum(len(other.body) for other in cached.values())
                if len(cached) < MAX_CACHED and used + len(response.body) <= MAX_CACHED_BYTES:
                    cached[key] = response
            return response
        finally:
            being_made.pop(key, None)

    async def _complete(self, key: Key, response: Recorded) -> Recorded:
        """Return a response with an entity tag and, if the client accepts it, compressed."""
        tag = response.tag or f'"{short_hash(response.body)}"'
        response = response.with_headers(etag=tag, vary="Accept, Accept-Encoding")
        if not key[3] or len(response.body) < MIN_COMPRESSED:
            return response
        if (key[0], tag) not in self._packed:
            packed = await asyncio.to_thread(gzip.compress, response.body, 6, mtime=0)
            self._packed[key[0], tag] = packed
            while sum(map(len, self._packed.values())) > MAX_CACHED_BYTES:
                self._packed.popitem(last=False)
        else:
            self._packed.move_to_end((key[0], tag))
            packed = self._packed[key[0], tag]
        size = str(len(packed))
        # other bytes than without compression: a weak tag
        response = response.with_headers(
            content_encoding="gzip", content_length=size, etag=f"W/{tag}"
        )
        return replace(response, body=packed)


# -- the guard ------------------------------------------------------------------------------


class Guard:
    """Protects an application: host, origin, size of JSON, time limit, and security headers.

    It wraps the application instead of being one of its middlewares, because Starlette puts its
    handler of unexpected errors outside of these, and that response needs the headers too.
    """

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.app = app
        self.service = service
        self.settings: ServerSettings = service.settings
        limits = self.settings.limits
        self.turns = Turns(limits.requests, limits.requests_per_client)
        self.responses = ResponseCache(service.watcher, service.bundles)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # uploads are limited by speed instead
        upload = scope["method"] == "POST" and scope["path"] in UPLOAD_PATHS
        clock = asyncio.timeout(None if upload else self.settings.limits.request)
        send_protected = _with_headers(send, head_only=scope["method"] == "HEAD")
        started = False

        async def send_in_time(message: Message) -> None:
            nonlocal started
            started = True
            clock.reschedule(None)  # from here on the connection has its own limits
            await send_protected(message)

        try:
            async with clock:
                check_request(scope, self.settings)
                await self._respond(scope, receive, send_in_time)
        except ApiError as error:
            await error_response(error)(scope, receive, send_protected)
        except TimeoutError:
            if not clock.expired():
                raise
            late = ApiError(503, "this took too long", "ask for less", {"retry-after": "10"})
            await error_response(late)(scope, receive, send_protected)
        except Exception:
            if not started:
                await error_response(internal_error())(scope, receive, send_protected)
            raise  # uvicorn reports it

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        receive = self._limited(scope, receive)
        if scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        # FastAPI's routes do not answer HEAD
        scope = {**scope, "method": "GET", "karat.head": scope["method"] == "HEAD"}
        scope["headers"] = _plain_headers(scope)
        if SCANNED_PATHS.fullmatch(scope["path"]):
            await self._respond_once(scope, send)
            return
        leave = await self.turns.enter(client_of(scope))

        async def send_and_leave(message: Message) -> None:
            leave()  # sending takes as long as the client wants
            await send(message)

        try:
            await self.app(scope, receive, send_and_leave)
        finally:
            leave()

    async def _respond_once(self, scope: Scope, send: Send) -> None:
        """Send a response that is made once for all clients."""
        headers = Headers(scope=scope)
        packed = "accept-encoding" in headers
        key = (scope["path"], scope["query_string"], headers.get("accept", ""), packed)
        shared = [(k, v) for k, v in scope["headers"] if k not in UNSHARED_HEADERS]
        response = await self.responses.get(key, lambda: self._make({**scope, "headers": shared}))
        if response.status == 200 and has_tag(headers.get("if-none-match", ""), response.tag):
            start = {"status": 304, "headers": [h for h in response.headers if h[0] in UNMODIFIED]}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": b""})
            return
        start = {"status": response.status, "headers": [*response.headers]}
        await send({"type": "http.response.start", **start})
        body = b"" if scope["karat.head"] else response.body
        for begin in range(0, max(len(body), 1), CHUNK):  # waits for clients that read slowly
            chunk, more = body[begin : begin + CHUNK], begin + CHUNK < len(body)
            await send({"type": "http.response.body", "body": chunk, "more_body": more})
        if response.error is not None:
            raise response.error

    async def _make(self, scope: Scope) -> Recorded:
        """Return a response; after an unexpected error, without the runs that cause it."""
        leave = await self.turns.enter(client_of(scope))
        try:
            response = await self._record({**scope})
            if response.error is not None:
                if await asyncio.to_thread(self.service.watcher.leave_out_damaged):
                    response = await self._record(scope)
            return response
        finally:
            leave()

    async def _record(self, scope: Scope) -> Recorded:
        """Return the response of the application to a request without a body."""
        messages: list[Any] = []
        error = None

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def record(message: Message) -> None:
            messages.append(message)

        try:
            await self.app(scope, receive, record)
        except Exception as raised:  # after its response was sent
            if not messages:
                raise
            error = raised
        body = b"".join(message.get("body", b"") for message in messages[1:])
        return Recorded(messages[0]["status"], tuple(messages[0]["headers"]), body, error)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return ``receive`` with a limit for bodies that FastAPI reads into memory."""
        if scope["path"] in UPLOAD_PATHS:
            return receive
        size = 0

        async def limited() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_JSON:  # FastAPI passes on only its own exceptions here
                raise HTTPException(413, "the body is too large", {"connection": "close"})
            return message

        return limited


def client_of(scope: Scope) -> str:
    """Return the client of a request."""
    return client_key(scope["client"][0]) if scope.get("client") else ""


def _with_headers(send: Send, head_only: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=[*message["headers"]])
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            tag = headers.get("etag", "")
            if "content-encoding" in headers and tag.startswith('"'):
                headers["etag"] = f"W/{tag}"  # other bytes than without compression
            message = {**message, "headers": headers.raw}
        elif head_only:
            message = {**message, "body": b""}
        await send(message)

    return send_with_headers


def check_request(scope: Scope, settings: ServerSettings) -> None:
    """Refuse requests for another host, and requests that another website lets a browser send."""
    headers = Headers(scope=scope)
    _check_header(scope, headers)
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not settings.allows_host(hosts[0]):
        name = host_name(hosts[0]) if hosts else ""
        hint = f"karat serve --allow-host {name}" if name else "send a Host header"
        raise ApiError(421, "unknown host", hint)
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return
    _check_site(headers, hosts[0])
    if headers.get("content-encoding", "identity").lower() != "identity":
        hint = "send the file as it is; it may be a compressed file"
        raise ApiError(415, "compressed bodies are not accepted", hint)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    json_only = scope["path"] in ORDER_PATHS and kind != "application/json"
    if kind in FORM_TYPES or json_only:
        hint = "send application/json, or application/octet-stream for files"
        raise ApiError(415, "wrong content type", hint)


def _check_site(headers: Headers, host: str) -> None:
    origin = headers.get("origin")
    try:
        same = origin is None or urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        same = False
    if not same or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise ApiError(403, "requests from other websites are not allowed")


def _check_header(scope: Scope, headers: Headers) -> None:
    """Refuse a header that is too large, or that a proxy may understand in another way."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    close = {"connection": "close"}
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_HEADER:
        raise ApiError(414, "the address is too long", "", close)
    if size > MAX_HEADER or len(scope["headers"]) > MAX_HEADER_LINES:
        raise ApiError(431, "the header is too large", "", close)
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        raise ApiError(505, "unknown version of HTTP", "use HTTP/1.1", close)
    if "transfer-encoding" in headers and "content-length" in headers:
        hint = "send either Content-Length or Transfer-Encoding"
        raise ApiError(400, "the body has two lengths", hint, close)


def accepts_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip.

    >>> accepts_gzip("gzip, br"), accepts_gzip("gzip;q=0"), accepts_gzip("br"), accepts_gzip("*")
    (True, False, False, True)
    """
    allowed = {}
    for coding in accepted.lower().split(","):
        name, _, quality = (word.strip() for word in coding.partition(";"))
        allowed[name] = re.fullmatch(r"q\s*=\s*0(\.0*)?", quality) is None
    return allowed.get("gzip", allowed.get("*", False))


def _plain_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the request headers without encodings and ranges that the application misreads."""
    headers = Headers(scope=scope)
    wrong = {b"accept-encoding"}
    streamed = scope["path"] == EVENTS
    if headers.get("range", "").count(",") >= MAX_RANGES:
        wrong.add(b"range")
    remaining = [(name, value) for name, value in scope["headers"] if name not in wrong]
    if accepts_gzip(headers.get("accept-encoding", "")) and not streamed:
        remaining.append((b"accept-encoding", b"gzip"))
    return remaining
