"""``karat serve``: listens on a socket, runs uvicorn and shuts down cleanly.

At its import it loads neither FastAPI nor uvicorn, so that ``karat serve`` can report that they are
not installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import DataError, DefinitionError, KaratError, MissingExtra

MEGABYTE = 2**20
#: environment variable that contains the token if no file is given
TOKEN_VARIABLE = "KARAT_TOKEN"
MIN_TOKEN_LENGTH = 16
#: seconds that requests in progress have at shutdown
SHUTDOWN_GRACE = 5
#: maximum size of a request header in bytes
MAX_HEADER = 2**16
#: bytes of a response that a client must take before the limit for idle connections
MIN_TAKEN = 2**14
#: bytes that are received of a body after its request was refused
MAX_UNREAD = 2**23
#: seconds that the thread of all connections makes other threads wait; each access to a file in a
#: scan of the folder waits for as long
SWITCH_INTERVAL = 0.0005
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 10\r\n"
    b'Connection: close\r\n\r\n{"error":"too many connections","hint":"close some"}'
)


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
class ServerLimits:
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
class ServerSettings:
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
    limits: ServerLimits = field(default_factory=ServerLimits)

    @property
    def uploads(self) -> Path:
        """Folder of uploads and evaluations."""
        return self.folder / ".uploads"

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this server (protects against DNS rebinding).

        A server that listens on all addresses accepts any IP address: unlike a name, an address
        cannot be redirected. Starlette's TrustedHostMiddleware has no rule for that.

        >>> settings = ServerSettings(Path("results"))
        >>> settings.allows_host("localhost:8765"), settings.allows_host("evil.example")
        (True, False)
        """
        name = host_name(host)
        allowed = {"localhost", "127.0.0.1", "::1", self.host, *self.allow_hosts}
        if name in {allowed_name.lower().strip("[]") for allowed_name in allowed}:
            return True
        return self.host in ("0.0.0.0", "::") and _is_address(name)


def host_name(host: str) -> str:
    """Return the name in a Host header without port and brackets; empty if it is malformed.

    >>> host_name("[::1]:8765"), host_name("Example.org:80"), host_name("a b"), host_name("a:x")
    ('::1', 'example.org', '', '')
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]\\?#]+))(?::\d{1,5})?", host)
    return (match[1] or match[2]).lower() if match else ""


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


if TYPE_CHECKING:
    from types import FrameType

    from uvicorn.protocols.http.h11_impl import H11Protocol

    from karat.ext.serve.guard import Guard
else:
    H11Protocol = object

#: files that are open besides connections
OTHER_FILES, MIN_CONNECTIONS = 200, 20


def serve(settings: ServerSettings, ready: Callable[[str], None]) -> int:
    """Serve until a signal arrives, and return the exit code: 130 after Ctrl-C, 0 after SIGTERM.

    ``ready`` is called with the URL when the server accepts connections.
    """
    for library in ("fastapi", "uvicorn"):
        if find_spec(library) is None:
            raise MissingExtra(library, "serve")
    from karat.ext.serve.routes import make_app

    if not settings.folder.is_dir():
        raise DataError(f"there is no folder {settings.folder}; create it, or use karat run.")
    with contextlib.closing(bind(settings.host, settings.port)) as listening:
        app = make_app(replace(settings, limits=fitting_limits(settings.limits)))
        if settings.token is not None:
            app.service.names.check_constraint()
        server, received = make_server(app), []

        def stop(
            sig: int, frame: FrameType | None
        ) -> None:  # uvicorn raises signals again at its end
            received.append(sig)
            server.should_exit = True

        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        before = {sig: signal.signal(sig, stop) for sig in (signal.SIGINT, signal.SIGTERM)}
        ready(url(settings.host, listening))
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            # a second Ctrl-C skips uvicorn's shutdown; the running evaluation must end anyway
            app.service.evaluations.stop()
            sys.setswitchinterval(interval)
            for sig, handler in before.items():
                signal.signal(sig, handler)
    return 130 if signal.SIGINT in received else 0


class Connections:
    """The open connections of each client; idle ones are closed to make room for others."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self._open: dict[str, dict[LimitedConnection, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, connection: LimitedConnection) -> bool:
        """Add a connection, unless too many are open and none of them is idle."""
        of_client = self._open.get(connection.owner, {})
        full = len(of_client) >= self.limits.connections_per_client
        if full or len(self) >= self.limits.connections:
            groups = [of_client] if full else self._open.values()
            # first of the client with the most connections, then the one idle for longest
            idle = [(-len(g), c.idle_since, c) for g in groups for c in g if c.is_idle()]
            if not idle:
                return False
            min(idle, key=lambda candidate: candidate[:2])[2].drop()
        self._open.setdefault(connection.owner, {})[connection] = None
        return True

    def remove(self, connection: LimitedConnection) -> None:
        """Forget a connection that is or will be closed."""
        group = self._open.get(connection.owner, {})
        group.pop(connection, None)
        if not group:
            self._open.pop(connection.owner, None)


class LimitedConnection(H11Protocol):
    """Mixin for uvicorn's protocol: limits of connections, and of the time to send and to take.

    uvicorn has a limit for idle connections between requests only, and refuses requests if too
    many connections are open. With these limits, clients that never finish a header, or that never
    read a response, do not shut out others.
    """

    limits = ServerLimits()
    opened: Connections
    header_start: float | None

    def connection_made(self, transport: Any) -> None:
        """Start the timer, or refuse the connection."""
        super().connection_made(transport)
        self.owner = client_key(self.client[0]) if self.client else ""
        self.header_start = self.moved = self.idle_since = self.loop.time()
        self.received = self.seen = self.level = self.unread = 0
        self._check_later()
        if not self.opened.add(self):
            transport.write(REFUSAL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Note whether a header has begun that is not yet a request."""
        if self.transport.is_closing():
            return
        self.received += len(data)
        if self.is_idle() and self.cycle is not None and self.cycle.more_body:
            self.unread += len(data)  # of a body that was refused
            if self.unread > MAX_UNREAD:
                self.transport.abort()
                return
        super().data_received(data)
        if not self.is_idle():
            self.header_start = None
        elif self.header_start is None:
            self.header_start = self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Report a malformed request, or close the connection if a response has already begun."""
        if repr(self.conn.our_state) in ("IDLE", "SEND_RESPONSE"):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Wait for another request, with uvicorn's own limit."""
        self.header_start, self.idle_since = None, self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.timer.cancel()
        self.opened.remove(self)
        super().connection_lost(exc)

    def is_idle(self) -> bool:
        """Return whether no request is in progress, a header that has begun aside."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """Close a connection to make room for another one."""
        self.opened.remove(self)
        self.transport.close()

    def _check_later(self) -> None:
        interval = min(self.limits.header, self.limits.idle) / 4
        self.timer = self.loop.call_later(interval, self._check)

    def _check(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        # more to send than before: the client took enough of what was there
        took = unsent > self.level or self.level - unsent >= MIN_TAKEN
        if took if unsent else self.received != self.seen:
            self.seen, self.level, self.moved = self.received, unsent, now
        late = self.header_start is not None and now - self.header_start > self.limits.header
        uploading = not self.is_idle() and self.cycle.more_body and not self.flow.read_paused
        stuck = (unsent > 0 or uploading) and now - self.moved > self.limits.idle
        if late or stuck:
            self.transport.abort()
        else:
            self._check_later()


def make_server(app: Guard) -> Any:
    """Return a uvicorn server for an application of ``make_app``."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.service.events.close()  # a request in progress delays the shutdown
            await super().shutdown(sockets)

    limits = app.settings.limits
    shared = {"limits": limits, "opened": Connections(limits)}
    config = uvicorn.Config(
        app,
        http=type("LimitedProtocol", (LimitedConnection, Protocol), shared),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_GRACE,
        h11_max_incomplete_event_size=MAX_HEADER,
    )
    return Server(config)


def fitting_limits(limits: ServerLimits) -> ServerLimits:
    """Return limits with as many connections as this process may open files.

    The limit of the operating system is raised if necessary and possible.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        most = max(min(limits.connections, soft - OTHER_FILES), MIN_CONNECTIONS)
        return replace(limits, connections=most)
    return limits


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; a KaratError explains why an address cannot be used."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, number)
    except (OSError, UnicodeError) as error:
        raise KaratError(f'cannot find the address "{host}": {error}.') from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            hint = "choose another with --port (0: any free port)"
            raise KaratError(f"port {port} of {host} is already in use; {hint}.") from error
        raise KaratError(f"cannot listen on {host}, port {port}: {error.strerror}.") from error
    return listening


def url(host: str, listening: socket.socket) -> str:
    """Return the URL to open in a browser."""
    port = listening.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"
