"""CPU time and memory of commands on run folders of many jobs.

``python benchmarks/run_folders.py 100 200 10`` writes the run folders of 100 models on 200 tasks in
10 folds, three scores each, and measures the commands on them, each in its own process. ``karat
import`` reads a results file of the AutoML Benchmark with as many rows.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from karat.results.run import Run

METRICS = ("auc", "acc", "logloss")
#: command, and what it may take in seconds of CPU at 100 × 200 × 10
COMMANDS = {
    "leaderboard": ("leaderboard RUNS", 6),
    "compare two models": ("compare RUNS -a model-0 -b model-1", 3),
    "lint": ("lint RUNS", 6),
    "report": ("report RUNS -o REPORT", 15),
    "leaderboard, records only": ("leaderboard RUNS", 30),
    "import": ("import RESULTS -o IMPORTED", 20),
}
#: columns of a results file
COLUMNS = ("id", "task", "framework", "constraint", "fold", "type", "result", "metric", "mode")
COLUMNS += ("version", "params", "utc", "duration", "models", "seed", "info", *METRICS)


def write_runs(output: Path, models: int, tasks: int, folds: int) -> None:
    """Write the run folders, as ``karat run`` does."""
    rng = np.random.default_rng(0)
    facts = {"metrics": list(METRICS), "folds": list(range(folds)), "kind": "classification"}
    facts["higher_is_better"] = dict(zip(METRICS, (True, True, False), strict=True))
    planned = [{"name": f"task-{n}", "dataset": f"data-{n}", **facts} for n in range(tasks)]
    difficulty = rng.normal(0.8, 0.05, tasks)
    for number in range(models):
        about = {"model": f"model-{number}", "suite": "many", "constraint": "default"}
        about |= {"mode": "local", "stamp": "20260101T000000", "seed": 0, "params": {}}
        about |= {"version": "", "karat": "0", "tasks": planned}
        run = Run.create(output, about)
        (run.folder / "jobs").mkdir(exist_ok=True)
        skill = rng.normal(0, 0.03)
        for place, task in enumerate(planned):
            for fold in range(folds):
                value = float(difficulty[place] + skill + rng.normal(0, 0.02))
                _write_job(run, task["name"], fold, value)
        run.finish()


def _write_job(run: Run, task: str, fold: int, value: float) -> None:
    view = {"corruption": "", "severity": 0.0, "draw": 0, "affected": 0.0, "coverage": 1.0}
    view |= {"scores": dict(zip(METRICS, (value, value - 0.1, 1 - value), strict=True))}
    view |= {"reasons": {}, "status": "ok", "info": ""}
    record = {
        **{"spec": f"{abs(hash((run.model, task, fold))):064x}", "model": run.model, "task": task},
        **{"kind": "classification", "fold": fold, "repeat": 0, "seed": fold, "metric": "auc"},
        **{"status": "ok", "info": "", "views": [view], "notes": [], "history": []},
        **{"utc": "2026-01-01T00:00:00", "train_questions": 900, "questions": 100},
        **{"dimensions": 64, "models": None, "unconverged": 0, "replaced": []},
        **{"fit_seconds": value, "predict_seconds": value / 10, "seconds": value * 1.2},
        **{"cpu_seconds": value, "peak_memory_mb": 170.5, "embed_seconds": None},
    }
    run._record(record).write_text(json.dumps(record, indent=1))


def write_results(path: Path, models: int, tasks: int, folds: int) -> None:
    """Write a results file as the AutoML Benchmark does."""
    rng = np.random.default_rng(0)
    about = ("binary", "auc", "local", "1.0", "{}", "2026-01-01T00:00:00")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for job, value in enumerate(rng.uniform(0.6, 0.9, models * tasks * folds).tolist()):
            (model, task), fold = divmod(job // folds, tasks), job % folds
            kind, metric, *rest = about
            named = [f"openml.org/t/{task}", f"task-{task}", f"model-{model}", "4h8c", fold]
            scores = [value, value - 0.1, 1 - value]
            costs = [100 * value, 3, fold, ""]
            writer.writerow([*named, kind, value, metric, *rest, *costs, *scores])


def measure(models: int, tasks: int, folds: int) -> Iterator[tuple[str, float, float, int]]:
    """Yield the name of a command, its CPU seconds, its memory in MB, and the goal in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "runs"
        places = {"RUNS": output, "REPORT": f"{folder}/page.html"}
        places |= {"RESULTS": f"{folder}/results.csv", "IMPORTED": f"{folder}/imported"}
        write_runs(output, models, tasks, folds)
        write_results(Path(folder) / "results.csv", models, tasks, folds)
        for name, (command, goal) in COMMANDS.items():
            words = [str(places.get(word, word)) for word in command.split()]
            cache = f"{folder}/cache"
            if name == "leaderboard, records only":
                cache = f"{folder}/empty"
                for path in output.glob("*/scores/jobs.columns"):
                    path.unlink()
            yield name, *_cost(words, cache), goal


def _cost(words: list[str], cache: str) -> tuple[float, float]:
    """Return CPU seconds and the largest memory of a command."""
    command = [sys.executable, "-m", "karat", *words]
    settings = {"env": {**os.environ, "KARAT_CACHE": cache}, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **settings)
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [100, 200, 10]
    for name, seconds, megabytes, goal in measure(*sizes):
        print(f"{name:<26}{seconds:>8.1f} s (goal {goal} s){megabytes:>8.0f} MB", flush=True)


if __name__ == "__main__":
    main()
