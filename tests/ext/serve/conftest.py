"""Folders of small runs, a client without a network, and a real server on a free port."""

from __future__ import annotations

import contextlib
import shutil
import textwrap
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.execution.evaluation import evaluate
from karat.ext.serve.server import ServerSettings
from karat.results.run import Run

#: without the libraries of the extra there is nothing to test
LIBRARIES = ("fastapi", "uvicorn", "httpx")
collect_ignore_glob = [] if all(map(find_spec, LIBRARIES)) else ["test_*.py"]
TOKEN = "0123456789abcdef-token"
SCORES = {"halves": [0.5, 0.75, 1.0], "thirds": [0.25, 0.5, 0.5]}

YAML = """
datasets:
  halves: {path: halves.csv, target: y, kind: classification}
tasks:
  halves: {extends: classification, dataset: halves, metrics: [acc], split: {folds: 2}}
  again: {extends: halves}
  texts:
    extends: classification
    dataset: {path: halves.csv, fields: [x], target: y, modality: text}
    metrics: [acc]
    split: {folds: 2}
models:
  gate: {use: "gates:Gate"}
suites:
  mine: {tasks: [halves, again], models: [onehot]}
constraints:
  small: {max_runtime_seconds: 9000, max_mem_size_mb: 4096, cores: 1}
  endless: {max_folds: 1}
"""
GATE = """
    import os, pathlib, time

    class Gate:
        '''Wait for a file in the folder of this module, in the second fold.'''
        def __init__(self, random_state=None):
            self.random_state = random_state
        def fit(self, items, y=None):
            here = pathlib.Path(__file__).parent
            if self.random_state == 43:
                (here / f"waiting-{os.getpid()}").touch()
                (here / "seen.txt").write_text(os.environ.get("KARAT_TOKEN", "no token"))
                while not (here / "open").exists():
                    time.sleep(0.02)
            return self
        def transform(self, items):
            return items.to_numpy(dtype=float)
"""


def write_run(output: Path, model: str, scores: dict[str, list[float]] | None = None) -> Run:
    """Write a run by hand: a score per task and fold, and nothing else."""
    scores = SCORES if scores is None else scores
    tasks = [
        {
            **{"name": task, "kind": "classification", "metrics": ["acc"], "dataset": task},
            **{
                "folds": list(range(len(values))),
                "fingerprint": "",
                "about": {},
                "duplicate_rows": [0, 0],
            },
            "higher_is_better": {"acc": True},
        }
        for task, values in scores.items()
    ]
    about = {
        **{"model": model, "suite": "mine", "constraint": "default", "mode": "local", "seed": 42},
        **{"stamp": "20260101T000000", "karat": "0.1.0", "version": "1", "params": {}},
        **{"versions": {}, "tasks": tasks},
    }
    run = Run.create(output, about)
    for task, values in scores.items():
        for fold, value in enumerate(values):
            run.write(a_record(model, task, fold, value), {})
    return run


def a_record(model: str, task: str, fold: int | None, value: float | None, **more: Any) -> Any:
    view = {"corruption": "", "severity": 0.0, "draw": 0, "coverage": 1.0, "scores": {"acc": value}}
    return {
        **{"spec": "", "model": model, "task": task, "fold": fold, "repeat": 0, "seed": 42},
        **{"metric": "acc", "status": "ok", "info": "", "views": [view], "notes": []},
        **{"history": [], "utc": "2026-01-01T00:00:00", "seconds": 1.0, "kind": "classification"},
        **more,
    }


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory, two_classes, line) -> Path:
    """A folder of real runs: two models on two tasks, with predictions; one job has a log."""
    folder = tmp_path_factory.mktemp("evaluated")
    tasks = [two_classes(corruptions={"noise_gaussian": [0.5]}), line()]
    evaluate(["dummy", "onehot"], tasks, output=folder)
    run = next(folder.glob("onehot.*"))
    log = run / "logs" / "halves" / "0.txt"
    log.parent.mkdir(parents=True)
    log.write_text("Traceback <script>alert(1)</script>\n")
    return folder


@pytest.fixture
def folder(evaluated, tmp_path) -> Path:
    """A copy of the evaluated folder."""
    return Path(shutil.copytree(evaluated, tmp_path / "runs"))


@pytest.fixture
def written(tmp_path) -> Path:
    """Two runs written by hand."""
    folder = tmp_path / "written"
    write_run(folder, "a")
    write_run(folder, "b", {"halves": [0.25, 0.5, 0.5], "thirds": [0.125, 0.25, 0.5]})
    return folder


@pytest.fixture
def defined(tmp_path, monkeypatch) -> Path:
    """A folder with definitions, a table, and a model that waits."""
    table = "x,y\n" + "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
    (tmp_path / "halves.csv").write_text(table)
    (tmp_path / "my.yaml").write_text(YAML)
    (tmp_path / "gates.py").write_text(textwrap.dedent(GATE))
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@contextlib.contextmanager
def opened(folder: Path, **changes: Any) -> Iterator[Any]:
    """A client of an application, without a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Starlette's advice on another HTTP library
        from starlette.testclient import TestClient

        from karat.ext.serve.routes import make_app

    app = make_app(ServerSettings(folder, **changes))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        client.service = app.service
        yield client


@pytest.fixture
def client(folder) -> Iterator[Any]:
    """A client without the token."""
    with opened(folder) as made:
        yield made


@pytest.fixture(scope="session")
def reader(evaluated) -> Iterator[Any]:
    """A client without the token, for tests that change nothing."""
    with opened(evaluated) as made:
        yield made


@pytest.fixture
def writer(written) -> Iterator[Any]:
    """A client with the token."""
    with opened(written, token=TOKEN, max_upload=200_000, queue=2) as made:
        made.headers["authorization"] = f"Bearer {TOKEN}"
        yield made


def wait_until(true: Any) -> Any:
    """Wait until something is true, and return it."""
    while not (found := true()):
        time.sleep(0.05)
    return found


@pytest.fixture(scope="session")
def tools(served) -> Any:
    """Return functions for tests: ``tools.write_run(…)``, ``tools.opened(…)`` etc."""
    functions = {"write_run": write_run, "record": a_record, "opened": opened, "served": served}
    return SimpleNamespace(token=TOKEN, wait_until=wait_until, **functions)
