"""A large plan in shards with simulated scores: plan, run, gather, load, leaderboard and report.

``python benchmarks/shards.py 1000 200 5 --shards 10`` plans 1,000 models on 200 tasks in 5 folds
(1,000,000 jobs), runs each part in a process with jobs that write a random score, gathers
the parts, and runs the commands on the result. It prints the CPU seconds and the peak memory of
each stage, and the CPU time per job in the first and in the last tenth: of the jobs of a part, as
the mean over all parts, and of all jobs in the order of the parts.

``--at-once 2`` runs two parts at a time. ``--folder`` keeps the files and skips finished parts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.task import Suite, Task
from karat.execution import runner
from karat.execution.evaluation import make_options, run_suite
from karat.execution.job import Job, new_record
from karat.execution.object_store import ObjectStore
from karat.execution.plan import Plan, make_plan
from karat.models.adapters import adapt
from karat.results.run import Run

TIMES: list[float] = []
DATASETS = 20
LOAD = """
import sys, time
from karat.results.load import gather_scores
begun = time.process_time()
found = gather_scores(sys.argv[1])
print(len(found.scores), time.process_time() - begun)
"""
GATHER = """
import sys, time
from karat.ext.cluster import gather
times, write = [time.process_time()], gather._Merge.write
def timed(self):
    found = write(self)
    times.append(time.process_time())
    return found
gather._Merge.write = timed
found = gather.gather(sys.argv[1], sys.argv[2])
tenth = max(len(found.runs) // 10, 1)
print(found.planned, len(found.missing), times[tenth] - times[0], times[-1] - times[-1 - tenth])
"""


class Simulated:
    """A model that is never fitted."""

    def __init__(self, skill: float = 0.0) -> None:
        self.skill = skill

    def fit(self, X: Any, y: Any) -> Simulated:
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"skill": self.skill}


def simulate(job: Job, store: ObjectStore) -> dict[str, Any]:
    """Write the record of a job with a random score, as a real job does."""
    model, task = store.get(job.model), store.get(job.task)
    rng = np.random.default_rng(int(job.spec[:12], 16))
    value = float(0.7 + model.prototype.skill + rng.normal(0, 0.02))
    view = {"corruption": "", "severity": 0.0, "draw": 0, "affected": 0.0, "coverage": 1.0}
    view |= {"scores": {"acc": value}, "reasons": {}, "status": "ok", "info": ""}
    record = new_record(job.spec, model.name, task)
    record.update(fold=job.fold, repeat=0, seed=job.model_seed, views=[view], questions=8)
    record.update(train_questions=32, seconds=value, cpu_seconds=value, fit_seconds=value)
    Run(Path(job.folder)).write(record, {})
    TIMES.append(time.process_time())
    return record


def plan_of(models: int, tasks: int, folds: int) -> Plan:
    """Return the plan of simulated models on small tables."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["y"] = ["no", "yes"] * 20
    data = [Dataset.from_table(frame, "y", name=f"data-{n}") for n in range(DATASETS)]
    split = {"use": "kfold", "folds": folds}
    made = [
        Task(f"task-{n}", data[n % DATASETS], split=split, metrics=["acc"]) for n in range(tasks)
    ]
    skills = rng.normal(0, 0.03, models).tolist()
    return make_plan(
        [adapt(Simulated(skill), f"model-{n}") for n, skill in enumerate(skills)], made
    )


def child(*words: str) -> tuple[float, float, str]:
    """Return CPU seconds, memory in MB and the output of a Python process."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed


def run_part(sizes: list[int], part: str, folder: Path) -> dict[str, Any]:
    """Plan and run one part in this process; return what it took, jobs in milliseconds."""
    begun = time.process_time()
    plan = plan_of(*sizes)
    found = {"planned": len(plan.jobs), "plan": time.process_time() - begun, "plan_mb": _memory()}
    suite = Suite("many", tuple(planned.task for planned in plan.tasks))
    runner.work = simulate  # type: ignore[assignment]
    run_suite(plan, suite, make_options({"output": folder / "shards", "shard": part}))
    steps = 1000 * np.diff(TIMES)
    found |= {"jobs": len(TIMES), "tenths": [float(t.mean()) for t in np.array_split(steps, 10)]}
    return found | {"cpu": time.process_time() - begun, "mb": _memory()}


def run_parts(sizes: list[int], shards: int, at_once: int, folder: Path) -> list[dict[str, Any]]:
    """Run all parts, each in a process; return what each took."""

    def run(part: int) -> dict[str, Any]:
        written = folder / f"part-{part}.json"
        if not written.exists():
            numbers = map(str, sizes)
            given = ["--part", f"{part}/{shards}", "--folder", str(folder)]
            written.write_text(child(__file__, *numbers, *given)[2])
        return dict(json.loads(written.read_text()))

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, range(1, shards + 1)))


def measure(
    sizes: list[int], shards: int, at_once: int, folder: Path
) -> Iterator[tuple[str, float, float, str]]:
    """Yield a name, CPU seconds, memory in MB and a remark."""
    wall = time.perf_counter()
    parts = run_parts(sizes, shards, at_once, folder)
    wall = time.perf_counter() - wall
    yield "plan", parts[0]["plan"], parts[0]["plan_mb"], f"{parts[0]['planned']:,} jobs"
    tenths = np.array([part["tenths"] for part in parts])
    within = f"{tenths[:, 0].mean():.2f} and {tenths[:, -1].mean():.2f} ms per job in a part"
    ends = np.array_split(tenths.ravel(), 10)
    over = f"{ends[0].mean():.2f} and {ends[-1].mean():.2f} ms over all"
    jobs = sum(part["jobs"] for part in parts)
    note = f"{jobs:,} jobs; tenths {within}, {over}; {wall:.0f} s"
    yield "run", sum(part["cpu"] for part in parts), max(part["mb"] for part in parts), note
    runs, into = str(folder / "shards"), str(folder / "gathered")
    seconds, memory, printed = child("-c", GATHER, runs, into)
    planned, missing, first, last = printed.split()
    yield "gather", seconds, memory, f"{missing} of {planned} missing; tenths {first}, {last} s"
    seconds, memory, printed = child("-c", LOAD, into)
    rows, own = printed.split()
    yield "load scores", float(own), memory, f"{int(rows):,} rows"
    yield "leaderboard", *child("-m", "karat", "leaderboard", into)[:2], ""
    yield "report", *child("-m", "karat", "report", into, "-o", str(folder / "p.html"))[:2], ""


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs=3, type=int, metavar="N", help="models, tasks, folds")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1, help="parts that run at a time")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(run_part(arguments.sizes, arguments.part, arguments.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, seconds, memory, note in measure(
            arguments.sizes, arguments.shards, arguments.at_once, folder
        ):
            print(f"{name:<12}{seconds:>9.1f} s CPU{memory:>8.0f} MB  {note}", flush=True)


if __name__ == "__main__":
    main()
