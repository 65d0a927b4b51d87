"""Settings of a server: what it shows, where it listens, who may change things, and its limits."""

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
#: where the token stands when no file is named
TOKEN = "KARAT_TOKEN"
#: a shorter one could be guessed
SHORTEST = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True)
class Patience:
    """How many seconds a client may take, and how many clients may come at once.

    Attributes
    ----------
    header
        From the connection, or the first byte of a further request, to the end of its header.
    idle
        Without a byte sent or taken while a request is answered.
    request
        To answer a request; uploads instead need ``rate`` bytes a second, on average.
    rate
        Bytes a second, below which an upload is given up.
    clients
        Connections at the same time; further ones are told to come back.
    """

    header: float = 10.0
    idle: float = 20.0
    request: float = 60.0
    rate: int = 4096
    clients: int = 200


@dataclass(frozen=True)
class Settings:
    """What ``karat serve`` was asked for. Without a token nothing can be changed."""

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
    patience: Patience = field(default_factory=Patience)

    @property
    def uploads(self) -> Path:
        """Where uploads and evaluations stand."""
        return self.folder / ".uploads"

    def knows_host(self, given: str) -> bool:
        """Return whether a Host header names this server, and not a name that leads here by trick.

        An address cannot be made to lead elsewhere; so, where all addresses are listened to, any
        of them will do.

        >>> here = Settings(Path("results"))
        >>> here.knows_host("localhost:8765"), here.knows_host("evil.example")
        (True, False)
        """
        name = host_name(given)
        allowed = {"localhost", "127.0.0.1", "::1", self.host.lower(), *self.allow_hosts}
        if name in {each.lower().strip("[]") for each in allowed}:
            return True
        return bool(name) and self.host in ("0.0.0.0", "::") and _is_address(name)


def host_name(given: str) -> str:
    """Return the name in a Host header, without its port and brackets; nothing if it is none.

    >>> host_name("[::1]:8765"), host_name("Example.org:80"), host_name("a b"), host_name("a:x")
    ('::1', 'example.org', '', '')
    """
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]\\?#]+))(?::\d{1,5})?", given)
    return (found[1] or found[2]).lower() if found else ""


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def read_token(file: Path | None, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the token of a file or of KARAT_TOKEN, or nothing where neither is given."""
    given = (os.environ if environment is None else environment).get(TOKEN)
    if file is not None:
        try:
            given = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"the token file {file} cannot be read: {error}.") from error
    if given is None:
        return None
    token, where = given.strip(), f"the token of {file if file is not None else TOKEN}"
    if len(token) < SHORTEST or not _TOKEN.fullmatch(token):
        raise DefinitionError(
            f"{where} must have at least {SHORTEST} letters, digits or signs of -._~+/=; "
            f"this makes one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def is_open_to_others(file: Path) -> bool:
    """Return whether other people of this machine can read a file."""
    return os.name == "posix" and bool(file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
