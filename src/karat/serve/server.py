"""The server: a socket, uvicorn, and an end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from karat.errors import DataError, KaratError
from karat.serve.app import check_installed, make_app
from karat.serve.guards import Guard
from karat.serve.lines import make_protocol
from karat.serve.orders import Names
from karat.serve.settings import Settings

if TYPE_CHECKING:
    from uvicorn import Server as Base
else:
    Base = object

#: seconds that answers under way have when the server ends
GRACE = 5
#: the most bytes of a request's header
HEADER = 2**16
ENDS = (signal.SIGINT, signal.SIGTERM)


def serve(settings: Settings, ready: Callable[[str], None]) -> int:
    """Serve until somebody ends it; ``ready`` hears the address. Return the exit code.

    That is 130 after Ctrl-C, and 0 after SIGTERM, by which services are ended.
    """
    check_installed()
    if not settings.folder.is_dir():
        raise DataError(f"there is no folder {settings.folder}; karat run makes one.")
    if settings.token is not None:
        Names(settings).check_constraint()
    with contextlib.closing(bind(settings.host, settings.port)) as listening:
        app = make_app(settings)
        server = make_server(app, lambda: ready(address(settings.host, listening)))
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            # a second Ctrl-C does not wait for answers; what runs is ended all the same
            app.service.evaluations.stop()
    return 130 if server.heard == signal.SIGINT else 0


class Polite(Base):
    """Added to the server of uvicorn: says when it is ready, and does not die of a signal."""

    ready: Callable[[], None]
    heard: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and say so."""
        await super().startup(sockets)
        self.ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Note by which signal it is ended."""
        self.heard = self.heard or sig
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals inside; unlike uvicorn, do not raise them again when all has ended well."""
        main = threading.current_thread() is threading.main_thread()
        before = {sig: signal.signal(sig, self.handle_exit) for sig in ENDS} if main else {}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


def make_server(app: Guard, ready: Callable[[], None]) -> Any:
    """Return a server of uvicorn that tells when it is ready, and by which signal it was ended."""
    import uvicorn

    patience = app.settings.patience
    config = uvicorn.Config(
        app,
        http=make_protocol(patience),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=patience.clients,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEADER,
    )
    made: Any = type("Server", (Polite, uvicorn.Server), {})(config)
    made.ready = ready
    return made


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say in one sentence why it cannot."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
    except (OSError, UnicodeError) as error:
        raise KaratError(f'there is no address "{host}" to listen at: {error}.') from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise KaratError(
                f"port {port} of {host} is taken; choose another with --port (0: any free one)."
            ) from error
        raise KaratError(f"cannot listen at {host}, port {port}: {error.strerror}.") from error
    return made


def address(host: str, listening: socket.socket) -> str:
    """Return the address to open in a browser."""
    port = listening.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"
