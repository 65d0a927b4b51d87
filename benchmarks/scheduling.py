"""Overhead per job: 1000 trivial jobs in process, including their files."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from engines import JOBS, Constant

import karat


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    table = pd.DataFrame({"x": np.arange(2.0 * JOBS), "y": np.arange(2.0 * JOBS)})
    data = karat.Dataset.from_table(table, target="y", name="line", kind="regression")
    split = {"use": "kfold", "folds": JOBS}
    task = karat.Task("line", data, split=split, metrics=["rmse"])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KARAT_CACHE"] = folder
        begun = time.process_time(), time.perf_counter()
        karat.evaluate(Constant(), task, output=folder)
        cpu, wall = time.process_time() - begun[0], time.perf_counter() - begun[1]
    yield f"scheduling, CPU per job ({JOBS} jobs)", 1000 * cpu / JOBS, 10, "ms", "nothing"
    yield f"scheduling, wall per job ({JOBS} jobs)", 1000 * wall / JOBS, 10, "ms", "nothing"
