"""A local web server, an empty cache, and none of the developer's own settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from karat.data import download as transfer

SETTINGS = ("KARAT_DATA", "KARAT_OFFLINE")
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
Answer = Callable[[BaseHTTPRequestHandler], None]


class Stub:
    """A web server with one scripted answer per path; it records the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        self.ranges: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.asked.append(self.path)
                stub.ranges.append(self.headers.get("Range", ""))
                turns = stub.answers.get(self.path) or [stub.status(404)]
                (turns.pop(0) if len(turns) > 1 else turns[0])(self)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def put(self, path: str, *turns: Answer) -> str:
        """Give the answers of a path in order, the last one repeatedly; return the URL."""
        self.answers[path] = list(turns)
        return self.address + path

    @staticmethod
    def status(code: int) -> Answer:
        return lambda request: request.send_error(code)

    @staticmethod
    def body(content: bytes, announced: int | None = None, kind: str = "text/plain") -> Answer:
        """Answer with bytes; another ``announced`` length makes the answer incomplete."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(announced or len(content)))
            request.end_headers()
            request.wfile.write(content)

        return answer

    @staticmethod
    def ranged(content: bytes, upto: int | None = None) -> Answer:
        """Answer a Range request; the connection breaks before the byte ``upto``."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            asked = request.headers.get("Range", "")
            begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
            if begin >= len(content):
                request.send_error(416)
                return
            request.send_response(206 if asked else 200)
            if asked:
                last = len(content) - 1
                request.send_header("Content-Range", f"bytes {begin}-{last}/{last + 1}")
            request.send_header("Content-Length", str(len(content) - begin))
            request.end_headers()
            request.wfile.write(content[begin:upto])

        return answer

    @staticmethod
    def slow(seconds: float, then: Answer) -> Answer:
        def answer(request: BaseHTTPRequestHandler) -> None:
            time.sleep(seconds)
            try:
                then(request)
            except OSError:
                pass  # the client closed the connection

        return answer

    def index(self, project: str, *files: str, digest: str = "") -> str:
        """Serve the project page of a package index; return the URL of the index."""
        links = [f'<a href="../../files/{file}{digest}">{file}</a>' for file in files]
        page = "<!DOCTYPE html><html><body>" + "".join(links) + "</body></html>"
        self.put(f"/simple/{project}/", self.body(page.encode(), kind="text/html"))
        return f"{self.address}/simple/"


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(transfer, "BACKOFF", 0.01)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of real files next to the repository, or skip; no downloads."""
    if not SHARED.is_dir():
        pytest.skip("no folder shared/data next to the repository")
    monkeypatch.setenv("KARAT_DATA", str(SHARED))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return SHARED
