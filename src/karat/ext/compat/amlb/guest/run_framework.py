"""Run one framework of the AutoML Benchmark on one job: ``python run_framework.py JOB.json``.

The job names the module of the framework, the files of the rows and the settings. The module gets
``run(dataset, config)``; what it returns, or its error, is written next to the job.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
from amlb.benchmark import TaskConfig
from amlb.data import Dataset
from amlb.utils import InterruptTimeout, json_dump


def run_job(file: Path) -> dict[str, Any]:
    """Run a job and return the facts of its framework, or its error."""
    job = json.loads(file.read_text(encoding="utf-8"))
    config = TaskConfig(**job["config"])
    rows = {part: pd.read_pickle(file.with_name(f"{part}.pickle")) for part in ("train", "test")}
    dataset = Dataset(
        rows["train"], rows["test"], job["target"], config.type_, str(file.parent / "data")
    )
    (file.parent / "data").mkdir(exist_ok=True)
    try:
        with InterruptTimeout(config.job_timeout_seconds):
            facts = importlib.import_module(job["module"]).run(dataset, config)
    except Exception as error:
        traceback.print_exc()
        return {"error": type(error).__name__, "message": str(error)}
    return {"facts": dict(facts or {})}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    job_file = Path(sys.argv[1])
    json_dump(run_job(job_file), job_file.with_name("outcome.json"))
