"""A simulated run of many jobs: the cost of records and predictions, without models.

``python benchmarks/many_jobs.py 100000`` runs that many empty jobs in process and writes their
records and predictions as a real run does. It prints seconds, bytes, files, the memory of the
process, and the time per row in the first and in the last tenth.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from karat.core.task import Task
from karat.execution.job import Job, Outcome, new_record
from karat.execution.object_store import ObjectStore
from karat.execution.workers import execute
from karat.results.run import Run

TASKS = 1000
ROWS = 100


def work(job: Job, store: ObjectStore) -> dict[str, Any]:
    """Return the files of a fold of 100 rows and two classes at once."""
    task = store.get(job.task)
    record = new_record(job.spec, job.model, task)
    view = {"corruption": "clean", "severity": 0.0, "draw": 0, "affected": 0.0, "coverage": 1.0}
    view |= {"scores": {"acc": 0.5, "auc": 0.5}, "reasons": {}, "status": "ok", "info": ""}
    record.update(fold=job.fold, repeat=0, seed=job.model_seed, views=[view], seconds=0.0)
    files = {"predictions.csv": "low,high,predictions,truth\n" + "0.5,0.5,low,high\n" * ROWS}
    outcome = Outcome(record, {**files, "metadata.json": "{}"})
    Run(Path(job.folder)).write(outcome.record, outcome.files)
    return outcome.record


def simulate(count: int, output: Path) -> Iterator[tuple[str, float]]:
    store = ObjectStore(output / "store")
    for number in range(TASKS):
        store.put(f"task-{number}", Task(f"task-{number}", "none", metrics=["acc", "auc"]))
    settings = {"model": "none", "suite": "many", "constraint": "default", "mode": "local"}
    facts = {"metrics": ["acc", "auc"], "folds": [], "dataset": "none"}
    facts["higher_is_better"] = {"acc": True, "auc": True}
    tasks = [{"name": f"task-{n}", **facts} for n in range(TASKS)]
    settings |= {
        "stamp": "20000101T000000",
        "seed": 0,
        "params": {},
        "version": "",
        "karat": "0",
        "tasks": tasks,
    }
    run = Run.create(output, settings)
    folder = str(run.folder)
    begun = time.perf_counter()
    jobs = [
        Job("none", f"task-{i % TASKS}", "none", i // TASKS, 0, f"{i:064x}", folder)
        for i in range(count)
    ]
    yield "planning the jobs, s", time.perf_counter() - begun
    begun, times = time.perf_counter(), [0.0]
    for _ in execute(jobs, "many_jobs:work", store):
        times.append(time.perf_counter() - begun)
    tenth = max(count // 10, 1)
    yield "running them, s", times[-1]
    yield "per row in the first tenth, ms", 1000 * (times[tenth] - times[0]) / tenth
    yield "per row in the last tenth, ms", 1000 * (times[-1] - times[-1 - tenth]) / tenth
    begun = time.perf_counter()
    records = run.records()
    yield "reading all records, s", time.perf_counter() - begun
    assert len(records) == count
    begun = time.perf_counter()
    run.finish()
    yield "reading them and writing the tables, s", time.perf_counter() - begun
    sizes = {kind: _sizes(run.folder / kind) for kind in ("jobs", "predictions")}
    for kind, (files, size) in sizes.items():
        yield f"{kind}: files", files
        yield f"{kind}: bytes per job", size / count
    yield "memory of the process, MB", psutil.Process().memory_info().rss / 2**20


def _sizes(folder: Path) -> tuple[int, int]:
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        for what, value in simulate(count, Path(folder)):
            print(f"{what:<40}{value:>14,.3f}", flush=True)


if __name__ == "__main__":
    main()
