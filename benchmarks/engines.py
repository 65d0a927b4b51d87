"""Overhead of the engines: 1000 trivial jobs in process, in workers, with limits, on Dask."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import karat

JOBS = 1000
#: number of jobs that compute for a while, and their loops
BUSY, LOOPS = 40, 1000


class Constant:
    """Always predicts 0."""

    def fit(self, X: object, y: object) -> Constant:
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.zeros(len(X))


class Busy(Constant):
    """Multiplies matrices for a while."""

    def fit(self, X: object, y: object) -> Busy:
        matrix = np.eye(200)
        for _ in range(LOOPS):
            matrix = matrix @ matrix
        return self


def seconds(model: object, jobs: int, **how: Any) -> float:
    """Return the wall seconds of a run, including files and the start of workers."""
    table = pd.DataFrame({"x": np.arange(2.0 * jobs), "y": np.arange(2.0 * jobs)})
    data = karat.Dataset.from_table(table, target="y", name="line", kind="regression")
    split = {"use": "kfold", "folds": jobs}
    limit = {"max_runtime_seconds": 600} if how.pop("limited", False) else {}
    task = karat.Task("line", data, split=split, metrics=["rmse"], **limit)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KARAT_CACHE"] = folder
        begun = time.perf_counter()
        (run,) = karat.evaluate(model, task, output=Path(folder), **how)
        taken = time.perf_counter() - begun
        assert [r["status"] for r in run.records()] == ["ok"] * jobs
    return taken


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    plain = seconds(Constant(), JOBS)
    ways = {"in 1 worker": (2, {"limited": True}), "in 2 workers": (2, {"workers": 2})}
    if find_spec("distributed"):
        ways["on Dask, 2 workers"] = (6, {"workers": karat.Machines(2, engine="dask")})
    for name, (limit, how) in ways.items():
        taken = seconds(Constant(), JOBS, **how)
        name = name.replace("1 worker", "1 worker, with limits")
        yield f"{JOBS} trivial jobs {name}", taken / plain, limit, "×", "the same in process"
    one, two = (seconds(Busy(), BUSY, limited=True, workers=n) for n in (1, 2))
    yield f"{BUSY} busy jobs in 2 workers", two / one, 0.9, "×", "the same in 1 worker"
    if find_spec("distributed"):
        one, two = (on_cluster(Busy(), BUSY, workers) for workers in (1, 2))
        yield f"{BUSY} busy jobs in 2 workers, Dask", two / one, 0.9, "×", "the same in 1 worker"


def on_cluster(model: object, jobs: int, workers: int) -> float:
    """Return the wall seconds of a run on an existing cluster."""
    from distributed import Client

    from karat.ext.cluster.dask_engine import local_cluster

    with local_cluster(workers) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        return seconds(
            model, jobs, workers=karat.Machines(engine="dask", scheduler=cluster.scheduler_address)
        )
