"""Bring one file from an address: streamed, checked while it is written, moved when complete."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import requests

from karat.data.sources import without_password
from karat.errors import DataError

T = TypeVar("T")
CHUNK = 1 << 18


@dataclass(frozen=True)
class Patience:
    """How long to wait for a connection and for bytes (seconds), how often to try, how large."""

    connect: float = 10.0
    read: float = 60.0
    tries: int = 3
    pause: float = 0.5
    bytes: int = 2 * 1024**3


PATIENCE = Patience()


class _ShortBody(requests.RequestException):
    """The connection ended before the announced length."""


def download(address: str, target: Path, sha256: str, *, certificate: str | None = None) -> None:
    """Write what an address holds to a file, which exists only once it is whole and right."""
    what = without_password(address)
    target.parent.mkdir(parents=True, exist_ok=True)
    with session(certificate) as http, scratch_file(target) as scratch:
        found = patiently(lambda: _stream(http, address, scratch), what)
        if found != sha256:
            raise DataError(
                f"{what}: the file that came has sha256 {found[:16]}…, expected {sha256[:16]}…; "
                f"it changed at its source or on the way and was not kept"
            )
        os.replace(scratch, target)


@contextmanager
def session(certificate: str | None) -> Iterator[requests.Session]:
    """Return a session that trusts a certificate file; REQUESTS_CA_BUNDLE goes before it."""
    with requests.Session() as http:
        if certificate:
            http.verify = certificate
        # Stored archives are compressed already; a second coding would change their length.
        http.headers["Accept-Encoding"] = "identity"
        yield http


@contextmanager
def scratch_file(target: Path) -> Iterator[Path]:
    """Give a path beside a file to be written; whatever is left there is removed at the end."""
    scratch = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)


def patiently(action: Callable[[], T], what: str) -> T:
    """Return what an action returns; trouble that may pass is tried again, then a DataError."""
    for turn in range(PATIENCE.tries):
        try:
            return action()
        except requests.RequestException as error:
            if not _may_pass(error) or turn + 1 == PATIENCE.tries:
                raise DataError(f"{what}: {_reason(error)}") from error
        except OSError as error:
            # A certificate file that is not there; real trouble with files has a number.
            if error.errno is not None:
                raise
            raise DataError(f"{what}: {error}") from error
        time.sleep(PATIENCE.pause * 2**turn)
    raise AssertionError("Patience.tries is at least 1")


def _stream(http: requests.Session, address: str, scratch: Path) -> str:
    """Write what an address holds to a scratch file and return its sha256."""
    digest = hashlib.sha256()
    wait = (PATIENCE.connect, PATIENCE.read)
    with http.get(address, stream=True, timeout=wait) as response, scratch.open("wb") as file:
        response.raise_for_status()
        announced = response.headers.get("Content-Length", "")
        written = 0
        for chunk in response.iter_content(CHUNK):
            digest.update(chunk)
            written += file.write(chunk)
            if written > PATIENCE.bytes:
                limit = f"more than {PATIENCE.bytes} bytes, which is the limit"
                raise DataError(f"{without_password(address)}: {limit}")
        plain = "Content-Encoding" not in response.headers
        if plain and announced.isdigit() and written != int(announced):
            raise _ShortBody(f"{written} of {announced} bytes came")
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _may_pass(error: requests.RequestException) -> bool:
    if error.response is not None:
        return error.response.status_code >= 500 or error.response.status_code == 429
    passing = (
        requests.ConnectionError,
        requests.Timeout,
        requests.exceptions.ChunkedEncodingError,
        _ShortBody,
    )
    return isinstance(error, passing) and not isinstance(error, requests.exceptions.SSLError)


def _reason(error: requests.RequestException) -> str:
    """Say in one line what went wrong, without the classes of three libraries."""
    if error.response is not None:
        status = f"the server answered {error.response.status_code} {error.response.reason}"
        return f"{status}: there is no such file" if error.response.status_code == 404 else status
    if isinstance(error, requests.exceptions.SSLError):
        return "the server's certificate is not trusted; set REQUESTS_CA_BUNDLE to your own"
    if isinstance(error, requests.Timeout) or "timed out" in str(error):
        return f"no answer in time ({PATIENCE.tries} tries)"
    if isinstance(error, _ShortBody | requests.exceptions.ChunkedEncodingError):
        return f"the connection ended before the whole file had come ({error})"
    if isinstance(error, requests.ConnectionError):
        return "cannot connect"
    return f"{type(error).__name__}: {error}"
