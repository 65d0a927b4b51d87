"""A cache of the tests' own, small tasks, and the command line called from a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from karat import registry
from karat.dataset import Dataset
from karat.task import Task


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> None:
    """Nothing of the person who tests is read or written."""
    monkeypatch.setenv("KARAT_CACHE", str(cache_home))
    monkeypatch.delenv("KARAT_OFFLINE", raising=False)


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    for parts in registry.ALL:
        list(parts)  # what is ours is loaded now, so that it stays
    before = [(dict(parts._parts), dict(parts._origins)) for parts in registry.ALL]
    yield
    for parts, (known, origins) in zip(registry.ALL, before, strict=True):
        parts._parts, parts._origins = known, origins


@pytest.fixture
def two_classes() -> Callable[..., Task]:
    """Make a task of 20 rows: x is 0 … 19, the class is "low" below 10 and "high" from there."""

    def make(name: str = "halves", **changes: Any) -> Task:
        table = pd.DataFrame({"x": range(20), "y": ["low"] * 10 + ["high"] * 10})
        data = Dataset.from_table(table, target="y", name=changes.pop("data", "halves"))
        given = {"split": {"use": "kfold", "folds": 2}, "metrics": ["acc", "auc"], **changes}
        return Task(name, data, **given)

    return make


@pytest.fixture
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


@pytest.fixture
def words() -> Callable[..., Task]:
    """Make a task of 20 texts: those of "a" are one class, those of "b" the other."""

    def make(name: str = "words", **changes: Any) -> Task:
        texts = ["a" * (i + 1) for i in range(10)] + ["b" * (i + 1) for i in range(10)]
        frame = pd.DataFrame({"text": texts, "y": ["A"] * 10 + ["B"] * 10})
        data = Dataset.from_columns(frame, ["text"], "y", name="words")
        given = {"split": {"use": "kfold", "folds": 2}, "metrics": ["acc"], **changes}
        return Task(name, data, **given)

    return make


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Call the command line in this process: ``cli("run", "quickstart")``."""
    from karat.cli import main

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "path", list(sys.path))

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
