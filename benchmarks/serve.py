"""Time per request of ``karat serve`` for 190 busy and 220 idle clients, against bare uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from karat.results.run import Run

CLIENTS, IDLE, ROUNDS, SECONDS, WARM_UP = 190, 220, 4, 4.0, 1.0
MODELS, TASKS, FOLDS = 20, 10, 5
API = "/api/v1"
#: what a client asks for in turn; the live page polls the bundle with the tag of the last one
PATHS = (
    f"{API}/bundle",
    f"{API}/progress",
    f"{API}/board",
    f"{API}/bundle",
    f"{API}/runs",
    "/",
    f"{API}/scores?limit=100",
    f"{API}/compare?a=model0&b=model1",
)
BARE = """
import sys, uvicorn

HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"2")]

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"ok"})

options = {"http": "h11", "loop": "asyncio", "lifespan": "off", "log_level": "error"}
uvicorn.run(app, fd=int(sys.argv[1]), access_log=False, **options)
"""


@dataclass
class Load:
    """What the clients saw: seconds of each response, and how many had which status."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    wall: float = 0.0

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]

    @property
    def refused(self) -> float:
        good = self.statuses.get("200", 0) + self.statuses.get("304", 0)
        return 1 - good / max(sum(self.statuses.values()), 1)


class Client(asyncio.Protocol):
    """A client that sends its next request as soon as the last one is answered."""

    def __init__(self, load: Load, number: int, paths: tuple[str, ...]) -> None:
        self.load, self.turn, self.paths = load, number, paths
        self.received, self.tags = b"", dict[str, str]()
        self.stopped = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.turn += 1
        self.path = self.paths[self.turn % len(self.paths)]
        tag = f"If-None-Match: {self.tags[self.path]}\r\n" if self.path in self.tags else ""
        head = f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n{tag}\r\n"
        self.asked = time.perf_counter()
        self.transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        if not end or len(body) < int(headers.get("content-length", 0)):
            return
        self.received = b""
        self.count(status.split()[1])
        if "bundle" in self.path and "etag" in headers:
            self.tags[self.path] = headers["etag"].replace("w/", "")
        self.ask()

    def count(self, status: str) -> None:
        self.load.seconds.append(time.perf_counter() - self.asked)
        self.load.statuses[status] = self.load.statuses.get(status, 0) + 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.count("lost")
        if not self.stopped.done():
            self.stopped.set_result(None)


async def load_server(load: Load, port: int, paths: tuple[str, ...], seconds: float) -> None:
    """Add what the busy clients see, who reconnect when their connection is lost."""
    end = time.perf_counter() + seconds

    async def keep_asking(number: int) -> None:
        while (left := end - time.perf_counter()) > 0:
            transport, client = await asyncio.get_running_loop().create_connection(
                lambda: Client(load, number, paths), "127.0.0.1", port
            )
            await asyncio.wait([client.stopped], timeout=left)
            client.count = lambda status: None  # type: ignore[method-assign]
            transport.abort()

    begun = time.perf_counter()
    await asyncio.gather(*(keep_asking(number) for number in range(CLIENTS)))
    load.wall += time.perf_counter() - begun


def measure_round(load: Load, port: int, paths: tuple[str, ...]) -> None:
    """Add what the busy clients see while others keep connections open and send nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        asyncio.run(load_server(Load(), port, paths, WARM_UP))
        asyncio.run(load_server(load, port, paths, SECONDS))


@contextlib.contextmanager
def karat_server(folder: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "karat", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(word for word in process.stdout.readline().split() if "http://" in word)
        yield urlsplit(address).port or 0
        process.terminate()


@contextlib.contextmanager
def bare_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        number = listening.fileno()
        command = [sys.executable, "-c", BARE, str(number)]
        with subprocess.Popen(command, pass_fds=[number]) as process:
            yield listening.getsockname()[1]
            process.terminate()


def write_runs(folder: Path) -> None:
    """Write small runs of many models, without evaluating anything."""
    for model in range(MODELS):
        write_run(folder, f"model{model}", model)


def write_run(folder: Path, model: str, number: int) -> None:
    shared = {"kind": "classification", "metrics": ["acc"], "fingerprint": "", "about": {}}
    shared |= {
        "duplicate_rows": [0, 0],
        "higher_is_better": {"acc": True},
        "folds": list(range(FOLDS)),
    }
    names = [f"task{task}" for task in range(TASKS)]
    about = {
        **{"model": model, "suite": "mine", "constraint": "default", "mode": "local", "seed": 42},
        **{"stamp": "20260101T000000", "karat": "0.1.0", "version": "1", "params": {}},
        **{"versions": {}, "tasks": [{"name": name, "dataset": name, **shared} for name in names]},
    }
    run = Run.create(folder, about)
    for task, name in enumerate(names):
        for fold in range(FOLDS):
            value = (7 * number + 3 * task + fold) % 50 / 50
            view = {"corruption": "", "severity": 0.0, "draw": 0, "coverage": 1.0}
            record = {
                **{"spec": "", "model": model, "task": name, "fold": fold, "repeat": 0, "seed": 42},
                **{"metric": "acc", "status": "ok", "info": "", "notes": [], "history": []},
                **{"views": [{**view, "scores": {"acc": value}}], "utc": "2026-01-01T00:00:00"},
                **{"seconds": 1.0, "kind": "classification"},
            }
            run.write(record, {})


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        write_runs(Path(folder))
        bare, ours = Load(), Load()
        with bare_server() as bare_port, karat_server(Path(folder)) as port:
            for _ in range(ROUNDS):  # in turns, so that noise affects both alike
                measure_round(bare, bare_port, ("/",))
                measure_round(ours, port, PATHS)
    each, plain = (load.wall / len(load.seconds) for load in (ours, bare))
    what, against = f"karat serve, {CLIENTS} clients", "bare uvicorn, a constant"
    yield f"{what}, per request", each / plain, 4, "×", against
    yield "the same", 1000 * each, 2, "ms", f"{1 / each:.0f} requests/s"
    yield (
        "the same, median",
        ours.quantile(0.5),
        0.25,
        "s",
        f"{bare.quantile(0.5):.3f} s, {against}",
    )
    yield "the same, p99", ours.quantile(0.99), 0.5, "s", f"{bare.quantile(0.99):.3f} s, {against}"
    yield "the same, refused or lost", 100 * ours.refused, 0, "%", str(ours.statuses)
