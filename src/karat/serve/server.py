"""``karat serve``: listens on a socket, runs uvicorn and shuts down cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from karat.errors import DataError, KaratError, MissingExtra
from karat.serve.settings import Limits, Settings

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
else:
    H11Protocol = object

#: seconds that requests in progress have at shutdown
SHUTDOWN_GRACE = 5
#: maximum size of a request header in bytes
MAX_HEADER = 2**16


def serve(settings: Settings, ready: Callable[[str], None]) -> int:
    """Serve until a signal arrives, and return the exit code: 130 after Ctrl-C, 0 after SIGTERM.

    ``ready`` is called with the URL when the server accepts connections.
    """
    for library in ("fastapi", "uvicorn"):
        if find_spec(library) is None:
            raise MissingExtra(library, "serve")
    from karat.serve.routes import make_app

    if not settings.folder.is_dir():
        raise DataError(f"there is no folder {settings.folder}; karat run creates one.")
    with contextlib.closing(bind(settings.host, settings.port)) as listening:
        app = make_app(settings)
        if settings.token is not None:
            app.service.names.check_constraint()
        server, received = make_server(app), []

        def stop(sig: int, frame: Any) -> None:  # uvicorn raises signals again at its end
            received.append(sig)
            server.should_exit = True

        before = {sig: signal.signal(sig, stop) for sig in (signal.SIGINT, signal.SIGTERM)}
        ready(url(settings.host, listening))
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            # a second Ctrl-C skips uvicorn's shutdown; the running evaluation must end anyway
            app.service.evaluations.stop()
            for sig, handler in before.items():
                signal.signal(sig, handler)
    return 130 if signal.SIGINT in received else 0


class TimeLimits(H11Protocol):
    """Mixin for uvicorn's protocol: closes connections that send or take nothing for too long.

    uvicorn has a limit for idle connections between requests only. Without these limits, clients
    that never finish a header would occupy all connections.
    """

    limits = Limits()
    header_start: float | None

    def connection_made(self, transport: Any) -> None:
        """Start the timer."""
        super().connection_made(transport)
        self.header_start = self.moved = self.loop.time()
        self.received, self.seen = 0, (0, 0)
        self._check_later()

    def data_received(self, data: bytes) -> None:
        """Note whether a header has begun that is not yet a request."""
        self.received += len(data)
        super().data_received(data)
        if self._is_busy():
            self.header_start = None
        elif self.header_start is None:
            self.header_start = self.loop.time()

    def on_response_complete(self) -> None:
        """Wait for another request, with uvicorn's own limit."""
        self.header_start = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.timer.cancel()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _check_later(self) -> None:
        interval = min(self.limits.header, self.limits.idle) / 4
        self.timer = self.loop.call_later(interval, self._check)

    def _check(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if (self.received, unsent) != self.seen:
            self.seen, self.moved = (self.received, unsent), now
        late = self.header_start is not None and now - self.header_start > self.limits.header
        uploading = self._is_busy() and self.cycle.more_body and not self.flow.read_paused
        stuck = (unsent > 0 or uploading) and now - self.moved > self.limits.idle
        if late or stuck:
            self.transport.abort()
        else:
            self._check_later()


def make_server(app: Any) -> Any:
    """Return a uvicorn server for an application of ``make_app``."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol

    limits = app.settings.limits
    config = uvicorn.Config(
        app,
        http=type("LimitedProtocol", (TimeLimits, Protocol), {"limits": limits}),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_GRACE,
        h11_max_incomplete_event_size=MAX_HEADER,
    )
    return uvicorn.Server(config)


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
