"""Leaderboard of a checkout of MTEB's results repository, in CPU seconds.

The checkout is synthetic: 400 models × 56 tasks in the current layout, with about as many metrics
per file as mteb writes. The score of a model on a task is its skill plus noise; a tenth of the
files is missing.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

MODELS, TASKS = 400, 56
KINDS = {
    "Classification": ("accuracy", ("f1", "f1_weighted", "precision", "recall", "ap")),
    "Clustering": ("v_measure", ("v_measure_std", "ami", "ami_std")),
    "PairClassification": (
        "max_ap",
        [
            f"{measure}_{name}"
            for measure in ("similarity", "cosine", "manhattan", "euclidean", "dot", "max")
            for name in ("accuracy", "f1", "precision", "recall", "ap")
        ],
    ),
    "Retrieval": (
        "ndcg_at_10",
        [
            *(f"{name}_at_{k}" for name in ("ndcg", "map", "recall", "mrr") for k in (1, 10, 100)),
            *(
                f"nauc_{name}_at_{k}_{how}"
                for name in ("ndcg", "map", "recall", "mrr")
                for k in (1, 3, 5, 10, 20, 100, 1000)
                for how in ("max", "std", "diff1")
            ),
        ],
    ),
    "STS": ("cosine_spearman", ("cosine_pearson", "euclidean_spearman", "manhattan_spearman")),
}
LIMIT = 5.0


def write_checkout(folder: Path, models: int = MODELS, tasks: int = TASKS) -> int:
    """Write a synthetic checkout and return the number of its files."""
    rng = np.random.default_rng(0)
    skill, hard = rng.normal(0.6, 0.08, models), rng.normal(0, 0.1, tasks)
    values = np.clip(skill[:, None] + hard + rng.normal(0, 0.03, (models, tasks)), 0.01, 0.99)
    kinds, count = list(KINDS.items()), 0
    for m in range(models):
        model_folder = folder / "results" / f"org__model-{m:03d}" / f"{m:040x}"
        model_folder.mkdir(parents=True)
        meta = {"name": f"org/model-{m:03d}", "revision": f"{m:040x}"}
        (model_folder / "model_meta.json").write_text(json.dumps(meta))
        for t in range(tasks):
            if rng.random() < 0.1:
                continue
            kind, (main, others) = kinds[t % len(kinds)]
            scores = {name: float(rng.random()) for name in others}
            scores |= {main: float(values[m, t]), "main_score": float(values[m, t])}
            if kind == "Classification":
                scores["scores_per_experiment"] = [dict(scores) for _ in range(10)]
            entry = {**scores, "hf_subset": "default", "languages": ["eng-Latn"]}
            content = {
                "dataset_revision": "0" * 40,
                "task_name": f"{kind}{t}",
                "mteb_version": "2.0.0",
                "scores": {"test": [entry]},
                "evaluation_time": 1.0,
                "kg_co2_emissions": None,
            }
            (model_folder / f"{kind}{t}.json").write_text(json.dumps(content))
            count += 1
    return count


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the figure, its limit, its unit and what it is compared with."""
    with tempfile.TemporaryDirectory() as folder:
        count = write_checkout(Path(folder))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "karat", "leaderboard", folder]
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    what = f"leaderboard of {count:,} files of mteb, {MODELS} models"
    yield what, seconds, LIMIT, "s", "CPU time of the command"


def main() -> None:
    for what, value, limit, unit, against in measure():
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<50}{value:>8.2f} {unit:<3}{limit:>8.2f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
