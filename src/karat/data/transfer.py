"""Bring one file from an address: streamed, checked while it is written, moved when complete."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit

import requests

from karat.data.sources import sha256_of, without_password
from karat.errors import DataError

T = TypeVar("T")
#: small, since what is on its way when a connection ends is lost
CHUNK = 1 << 14
#: what is said where no connection comes about, and for how many seconds a host is then left alone
UNREACHABLE, AGAIN = "cannot connect", 60.0
_silent: dict[str, float] = {}
#: a part that nobody has written to for so many seconds was left behind by who made it
ABANDONED = 600.0


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
    """Write what an address holds to a file, which exists only once it is whole and right.

    A download that broke off is continued where it ended, also by a later call and from another
    address; what does not add up to the right file is fetched again from the beginning.
    """
    what = without_password(address)
    host = urlsplit(what).netloc
    if time.monotonic() - _silent.get(host, -AGAIN) < AGAIN:
        raise DataError(f"{what}: {UNREACHABLE}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with session(certificate) as http, part_file(target.parent, sha256) as part:
        for _ in range(2):
            continued = patiently(lambda: _stream(http, address, part, sha256), what)
            found = sha256_of(part)
            if found != sha256:
                part.unlink()
            if found == sha256 or not continued:
                break
        if found != sha256:
            raise DataError(
                f"{what}: the file that came has sha256 {found[:16]}…, expected {sha256[:16]}…; "
                f"it changed at its source or on the way and was not kept"
            )
        os.replace(part, target)


def download_unchecked(address: str, target: Path) -> None:
    """Write what an address holds to a file, whatever it is: nobody has said its sha256."""
    what = without_password(address)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with session(None) as http:
            patiently(lambda: _stream(http, address, part, ""), what)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


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
def part_file(folder: Path, sha256: str) -> Iterator[Path]:
    """Give a path for the part of a file that has come; it may have begun already.

    What is there at the end is kept for the next one to continue. Two at once never share a part:
    whoever takes one gives it a name of its own.
    """
    start = f".{sha256[:16]}."
    kept = folder / f"{start}part"
    mine = folder / f"{start}{os.getpid()}-{secrets.token_hex(4)}.part"
    for other in [kept, *_left_behind(folder, start)]:
        try:
            os.rename(other, mine)
            break
        except OSError:  # there is none, or another process was faster
            continue
    try:
        yield mine
    finally:
        if _size(mine):
            os.replace(mine, kept)
        mine.unlink(missing_ok=True)


def _left_behind(folder: Path, start: str) -> list[Path]:
    """Return the parts of processes that ended without a word, the largest first."""
    now = time.time()
    found = [path for path in folder.glob(f"{start}*.part") if now - _written(path) > ABANDONED]
    return sorted(found, key=_size, reverse=True)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it is gone
        return time.time()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def patiently(action: Callable[[], T], what: str) -> T:
    """Return what an action returns; trouble that may pass is tried again, then a DataError."""
    for turn in range(PATIENCE.tries):
        try:
            return action()
        except requests.RequestException as error:
            if not _may_pass(error) or turn + 1 == PATIENCE.tries:
                if _reason(error) == UNREACHABLE:
                    _silent[urlsplit(what).netloc] = time.monotonic()
                raise DataError(f"{what}: {_reason(error)}") from error
        except OSError as error:
            # A certificate file that is not there; real trouble with files has a number.
            if error.errno is not None:
                raise
            raise DataError(f"{what}: {error}") from error
        time.sleep(PATIENCE.pause * 2**turn)
    raise AssertionError("Patience.tries is at least 1")


def _stream(http: requests.Session, address: str, part: Path, sha256: str) -> bool:
    """Write what an address holds to a file; return whether it continued what was there."""
    begun = _size(part)
    if begun and sha256_of(part) == sha256:
        return True
    asked = {"Range": f"bytes={begun}-"} if begun else {}
    wait = (PATIENCE.connect, PATIENCE.read)
    with http.get(address, stream=True, timeout=wait, headers=asked) as response:
        if response.status_code == 416:  # the file ends before the part does: another file
            part.unlink()
            raise _ShortBody("the file is shorter than what had come of it")
        response.raise_for_status()
        continued = response.status_code == 206 and _begin(response) == begun
        with part.open("ab" if continued else "wb") as file:
            _copy(response, file, without_password(address))
    return continued


def _begin(response: requests.Response) -> int:
    """Return which byte of the file the answer begins with."""
    told = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(told[1]) if told else 0


def _copy(response: requests.Response, file: IO[bytes], what: str) -> None:
    announced = response.headers.get("Content-Length", "")
    before, written = file.tell(), 0
    for chunk in response.iter_content(CHUNK):
        written += file.write(chunk)
        if before + written > PATIENCE.bytes:
            file.truncate(0)
            raise DataError(f"{what}: more than {PATIENCE.bytes} bytes, which is the limit")
    plain = "Content-Encoding" not in response.headers
    if plain and announced.isdigit() and written != int(announced):
        raise _ShortBody(f"{written} of {announced} bytes came")
    file.flush()
    os.fsync(file.fileno())


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
        return UNREACHABLE
    return f"{type(error).__name__}: {error}"
