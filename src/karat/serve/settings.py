"""Settings of a server, its token, and the error class that becomes a JSON response.

This module imports neither FastAPI nor uvicorn, so that ``karat serve`` can report that they are
not installed.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from karat.errors import DataError, DefinitionError

MEGABYTE = 2**20
#: environment variable that contains the token if no file is given
TOKEN_VARIABLE = "KARAT_TOKEN"
MIN_TOKEN_LENGTH = 16


class ApiError(Exception):
    """A request that is refused: HTTP status, message, a hint what to do, and extra headers.

    ``field`` names the parameter or the key of the body that is wrong, if it is a single one.
    """

    def __init__(
        self,
        status: int,
        error: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        field: str = "",
    ) -> None:
        self.status = status
        self.error = error
        self.hint = hint
        self.headers = dict(headers or {})
        self.field = field
        super().__init__(error)


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds for a client, and the number of connections and requests.

    A client is an IPv4 address or an IPv6 network. Clients of a reverse proxy count as one, so the
    limits of one client are half of all.
    """

    #: from the connection, or the first byte of another request, to the end of its header
    header: float = 10.0
    #: without a byte sent or received while a request is in progress
    idle: float = 20.0
    #: to compute a response; uploads need ``rate`` bytes per second on average instead
    request: float = 60.0
    rate: int = 4096
    #: open connections; the one that is idle for longest is closed for another one
    connections: int = 1000
    connections_per_client: int = 500
    #: requests that are computed at a time; the others wait
    requests: int = 32
    requests_per_client: int = 16
    #: open event streams; clients without one poll
    streams: int = 500
    streams_per_client: int = 250


@dataclass(frozen=True)
class Settings:
    """Options of ``karat serve``. Without a token the server is read-only."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allow_hosts: tuple[str, ...] = ()
    max_upload: int = 256 * MEGABYTE
    queue: int = 8
    constraint: str = "served"
    workers: int = 1
    define: tuple[Path, ...] = ()
    geval_gold: Path | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def uploads(self) -> Path:
        """Folder of uploads and evaluations."""
        return self.folder / ".uploads"

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this server (protects against DNS rebinding).

        A server that listens on all addresses accepts any IP address: unlike a name, an address
        cannot be redirected. Starlette's TrustedHostMiddleware has no rule for that.

        >>> settings = Settings(Path("results"))
        >>> settings.allows_host("localhost:8765"), settings.allows_host("evil.example")
        (True, False)
        """
        name = host_name(host)
        allowed = {"localhost", "127.0.0.1", "::1", self.host, *self.allow_hosts}
        if name in {each.lower().strip("[]") for each in allowed}:
            return True
        return self.host in ("0.0.0.0", "::") and _is_address(name)


def host_name(host: str) -> str:
    """Return the name in a Host header without port and brackets; empty if it is malformed.

    >>> host_name("[::1]:8765"), host_name("Example.org:80"), host_name("a b"), host_name("a:x")
    ('::1', 'example.org', '', '')
    """
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]\\?#]+))(?::\d{1,5})?", host)
    return (found[1] or found[2]).lower() if found else ""


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def client_key(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address.

    >>> client_key("::ffff:192.0.2.1"), client_key("2001:db8::1") == client_key("2001:db8::2")
    ('192.0.2.1', True)
    """
    if ":" not in address:
        return address
    try:
        number = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if number.ipv4_mapped is not None:
        return str(number.ipv4_mapped)
    return str(ipaddress.IPv6Network((number, 64), strict=False))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def read_token(file: Path | None, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the token from a file, else from ``KARAT_TOKEN`` in the environment, or None."""
    text = (os.environ if environment is None else environment).get(TOKEN_VARIABLE)
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the token file {file}: {error}.") from error
    if text is None:
        return None
    token, source = text.strip(), TOKEN_VARIABLE if file is None else file
    if len(token) < MIN_TOKEN_LENGTH or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise DefinitionError(
            f"the token in {source} must have at least {MIN_TOKEN_LENGTH} characters from "
            "A-Z a-z 0-9 -._~+/=; to create one: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def is_readable_by_others(file: Path) -> bool:
    """Return whether other users of this machine can read a file."""
    return os.name == "posix" and bool(file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
