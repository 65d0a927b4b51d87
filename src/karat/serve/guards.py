"""Guards: what every request has to pass, and the headers that every answer has."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from karat.serve.replies import Refused
from karat.serve.service import Service
from karat.serve.settings import Settings, host_name

SAFE = ("GET", "HEAD", "OPTIONS")
#: what a form on another site can send without asking
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
#: on every answer
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Refuses what comes by a foreign name or from a foreign site, and what takes too long."""

    def __init__(self, app: Any, settings: Settings, service: Service) -> None:
        self.app = app
        self.settings = settings
        self.service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        dressed = _dressed(send)
        clock = asyncio.timeout(self._seconds(scope))

        async def timed(message: Any) -> None:
            clock.reschedule(None)  # from here on the line itself is watched
            await dressed(message)

        try:
            async with clock:
                check_request(scope, self.settings)
                await self.app(scope, receive, timed)
        except Refused as refused:
            await refused.reply()(scope, receive, dressed)
        except TimeoutError:
            if not clock.expired():
                raise
            late = Refused(503, "that took too long", "ask for less", {"retry-after": "10"})
            await late.reply()(scope, receive, dressed)

    def _seconds(self, scope: Any) -> float | None:
        # an upload has a speed to keep instead
        return None if scope["method"] == "POST" else self.settings.patience.request


def _dressed(send: Any) -> Any:
    async def dressed(message: Any) -> None:
        if message["type"] == "http.response.start":
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return dressed


def check_request(scope: Any, settings: Settings) -> None:
    """Refuse a request whose Host is not ours, and one that another site makes a browser send."""
    headers = _headers(scope)
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    host = headers.get("host", "")
    if len(hosts) != 1 or not settings.knows_host(host):
        hint = f"karat serve --allow-host {host_name(host)}" if host_name(host) else "send a Host"
        raise Refused(421, "this server is not called so", hint)
    if scope["method"] in SAFE:
        return
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Refused(403, "another site may not ask for that", "")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Refused(403, "another site may not ask for that", "")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        hint = "send application/json, or application/octet-stream for files"
        raise Refused(415, "forms are not taken", hint)


def _headers(scope: Any) -> Mapping[str, str]:
    return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}


def check_token(token: str | None, given: str) -> None:
    """Refuse who does not have the token; how long that takes tells nothing about it."""
    if token is None:
        hint = "its owner can allow more with --token-file or KARAT_TOKEN"
        raise Refused(403, "this server only shows", hint)
    scheme, _, word = given.partition(" ")
    same = hmac.compare_digest(_digest(word.strip()), _digest(token))
    if not same or scheme.lower() != "bearer":
        hint = "send the header Authorization: Bearer TOKEN"
        raise Refused(401, "the token is missing or wrong", hint, {"www-authenticate": "Bearer"})


def _digest(word: str) -> bytes:
    # of equal length, whatever was sent
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
