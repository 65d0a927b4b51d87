"""Replies: what is sent, with the conditions of HTTP: entity tags, gzip, ranges, HEAD."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = "application/json"
CSV = "text/csv; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
#: smaller bodies are not worth packing; larger files are sent as they are
PACKED_FROM, PACKED_TO = 1024, 2**20
CHUNK = 2**18
#: what pages of ours may do where they say nothing else: nothing
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Refused(Exception):
    """A request that is not answered: a status, what was wrong, and what to do."""

    def __init__(
        self, status: int, error: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.error = error
        self.hint = hint
        self.headers = dict(headers or {})
        super().__init__(error)

    def reply(self) -> Reply:
        """Return it as JSON."""
        said = {"error": self.error, "hint": self.hint}
        return json_reply(said, self.status, {"cache-control": "no-store", **self.headers})


@dataclass(frozen=True)
class Reply:
    """A body, or a file, and what is said about it. It is an ASGI application.

    ``etag`` is made of the body where none is given; ``packed`` is the body in gzip, if somebody
    has it already.
    """

    body: bytes | Path
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str = ""
    packed: bytes | None = None

    @property
    def tag(self) -> str:
        """What tells this body from any other."""
        if self.etag or isinstance(self.body, Path):
            return self.etag or file_tag(self.body)  # type: ignore[arg-type]
        return hashlib.blake2b(self.body, digest_size=12).hexdigest()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it to who asked."""
        asked = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        sent = await asyncio.to_thread(settle, self, scope["method"], asked)
        headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in sent.headers.items()]
        start = {"type": "http.response.start", "status": sent.status, "headers": headers}
        await send(start)
        if isinstance(sent.body, Path):
            await _send_file(sent, send)
        else:
            await send({"type": "http.response.body", "body": sent.body})


@dataclass(frozen=True)
class Sent:
    """What goes over the line: a status, headers, and bytes, or a part of a file."""

    status: int
    headers: dict[str, str]
    body: bytes | Path
    start: int = 0
    length: int = 0


async def _send_file(sent: Sent, send: Any) -> None:
    assert isinstance(sent.body, Path)
    left = sent.length
    with await asyncio.to_thread(sent.body.open, "rb") as file:
        file.seek(sent.start)
        while left:
            chunk = await asyncio.to_thread(file.read, min(CHUNK, left))
            if not chunk:  # it has become shorter meanwhile: end the line, so that it is noticed
                raise OSError(f"{sent.body.name} was cut while it was sent")
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": bool(left)})
    if not sent.length:
        await send({"type": "http.response.body", "body": b""})


def settle(reply: Reply, method: str, asked: Mapping[str, str]) -> Sent:
    """Return what to send: all, a part, the packed body, or only that nothing has changed."""
    fixed = {
        "content-type": reply.kind,
        "cache-control": "no-cache",
        "content-security-policy": POLICY,
        **reply.headers,
    }
    if reply.status != 200:
        return _whole(reply, fixed, method, reply.body)
    fixed["vary"] = "Accept, Accept-Encoding"
    plain, packed = f'"{reply.tag}"', f'"{reply.tag}-gzip"'
    if _matches(asked.get("if-none-match", ""), {plain, packed}):
        kept = ("cache-control", "vary", "content-security-policy")
        same = {name: fixed[name] for name in kept} | {"etag": plain}
        return Sent(304, same, b"")
    fixed["accept-ranges"] = "bytes"
    part = _range(asked, plain, _size(reply.body))
    if part is not None:
        return _part(reply, {**fixed, "etag": plain}, method, part)
    body = _packed(reply) if _takes_gzip(asked.get("accept-encoding", "")) else None
    if body is not None:
        packed_too = {**fixed, "etag": packed, "content-encoding": "gzip"}
        return _whole(reply, packed_too, method, body)
    return _whole(reply, {**fixed, "etag": plain}, method, reply.body)


def _whole(reply: Reply, headers: dict[str, str], method: str, body: bytes | Path) -> Sent:
    size = _size(body)
    headers["content-length"] = str(size)
    return Sent(reply.status, headers, b"" if method == "HEAD" else body, 0, size)


def _part(reply: Reply, headers: dict[str, str], method: str, part: tuple[int, int]) -> Sent:
    start, stop = part
    size = _size(reply.body)
    if start >= stop:
        headers |= {"content-range": f"bytes */{size}", "content-length": "0"}
        return Sent(416, headers, b"")
    headers["content-range"] = f"bytes {start}-{stop - 1}/{size}"
    headers["content-length"] = str(stop - start)
    if method == "HEAD":
        return Sent(206, headers, b"")
    if isinstance(reply.body, Path):
        return Sent(206, headers, reply.body, start, stop - start)
    return Sent(206, headers, reply.body[start:stop])


def _size(body: bytes | Path) -> int:
    return body.stat().st_size if isinstance(body, Path) else len(body)


def file_tag(path: Path) -> str:
    """Return a tag that changes with a file."""
    facts = path.stat()
    return f"{facts.st_mtime_ns:x}-{facts.st_size:x}-{facts.st_ino:x}"


def _matches(given: str, tags: set[str]) -> bool:
    told = {each.strip().removeprefix("W/") for each in given.split(",")}
    return given.strip() == "*" or bool(told & tags)


def _takes_gzip(given: str) -> bool:
    """Return whether a client takes gzip.

    >>> _takes_gzip("gzip, br"), _takes_gzip("br, gzip;q=0"), _takes_gzip("")
    (True, False, False)
    """
    for each in given.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", quality)
    return False


def _packed(reply: Reply) -> bytes | None:
    if reply.packed is not None:
        return reply.packed
    if not PACKED_FROM <= _size(reply.body) <= PACKED_TO and isinstance(reply.body, Path):
        return None
    body = reply.body.read_bytes() if isinstance(reply.body, Path) else reply.body
    return pack(body) if len(body) >= PACKED_FROM else None


def pack(body: bytes) -> bytes:
    """Return bytes in gzip, the same ones at any time."""
    return gzip.compress(body, 6, mtime=0)


def _range(asked: Mapping[str, str], tag: str, size: int) -> tuple[int, int] | None:
    """Return the one part that was asked for, as start and stop; an empty one if there is none."""
    found = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", asked.get("range", "").strip())
    if not found or not (found[1] or found[2]) or asked.get("if-range", tag) != tag:
        return None
    if not found[1]:
        return max(size - int(found[2]), 0), size if int(found[2]) else 0
    last = int(found[2]) if found[2] else size - 1
    if last < int(found[1]):
        return None if found[2] else (int(found[1]), 0)
    return int(found[1]), min(last + 1, size)


# -- JSON -----------------------------------------------------------------------------------


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a value as JSON."""
    return Reply(to_json(value), status=status, headers=headers or {})


def to_json(value: Any) -> bytes:
    r"""Return a value as JSON that any reader takes: no NaN, no characters beyond ASCII.

    >>> to_json({"a": float("nan"), "b": (1, "é")})
    b'{"a":null,"b":[1,"\\u00e9"]}'
    """
    return json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def plain(value: Any) -> Any:
    """Return a value made of what JSON has; what is missing or not finite is null."""
    if isinstance(value, Mapping):
        return {_key(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    return None if str(value) in ("<NA>", "NaT") else str(value)


def _key(key: Any) -> str:
    return " · ".join(map(str, key)) if isinstance(key, tuple) else str(key)
