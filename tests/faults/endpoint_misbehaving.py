"""A server that answers with any bytes, at any pace: what real ones send when they misbehave."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager, suppress

from ..endpoint_server import text_vector

WIDTH = 8
#: makes a connection end with a reset
RESET = struct.pack("ii", 1, 0)

#: the bytes of an answer to some texts, in parts
Answer = Callable[[Sequence[str]], Iterable[bytes]]


def http(
    body: bytes | str | object, status: str = "200 OK", headers: str = "", length: int | None = None
) -> list[bytes]:
    """Return an answer; a body that is not bytes or text is sent as JSON."""
    kind = "application/json"
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\n{headers}\r\n"
    return [head.encode("latin-1"), body]


def vectors_of(texts: Sequence[str], width: int = WIDTH) -> list[list[float]]:
    """Return the right vectors."""
    return [text_vector(text, width).tolist() for text in texts]


def right(vectors: Sequence[object], tokens: object = 7) -> dict:
    """Return the body of an answer."""
    data = [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return {"data": data, "usage": {"total_tokens": tokens}}


def well(texts: Sequence[str]) -> list[bytes]:
    """Answer as a server should."""
    return http(right(vectors_of(texts), sum(len(text) for text in texts)))


class MisbehavingServer(socketserver.ThreadingTCPServer):
    """The server; ``answer`` is how it answers, ``requests`` are the texts of each request."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.answer = answer
        #: whether connections are closed with a reset
        self.resets = False
        self.requests: list[list[str]] = []
        #: bytes that were sent in answers
        self.sent = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about connections that clients close."""


class _Connection(socketserver.StreamRequestHandler):
    server: MisbehavingServer

    def handle(self) -> None:
        while (first := self.rfile.readline()).strip():
            headers = {}
            while line := self.rfile.readline().strip():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", 0)))
            if first.startswith(b"GET"):
                texts = ["GET"]
            else:
                texts = json.loads(body)["input"]
            self.server.requests.append(texts)
            with suppress(OSError):
                self._send(texts)
                if not self.server.resets:
                    continue
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            return

    def _send(self, texts: Sequence[str]) -> None:
        for part in self.server.answer(texts):
            if part is CLOSE:
                raise OSError("closed on purpose")
            self.connection.sendall(part)
            self.server.sent += len(part)


#: a part of an answer after which the connection is closed
CLOSE = b"close the connection"


@contextmanager
def misbehaving(answer: Answer):
    """Serve in threads of this process."""
    server = MisbehavingServer(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
