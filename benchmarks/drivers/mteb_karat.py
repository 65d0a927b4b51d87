"""Karat's side of ``recipes/mteb.py``: ``python mteb_karat.py PROBLEM FOLDER whole|scoring``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import karat
from karat.execution.progress import Progress
from karat.models.model_identity import encoder_identity

MEASURES = ("cosine", "dot", "euclidean", "manhattan")
CUTS = (1, 3, 5, 10, 20, 100, 1000)


class Known:
    """Returns given vectors of texts."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors
        self.rows = {f"text {i}": i for i in range(len(vectors))}

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.vectors[[self.rows[text] for text in texts]]


class Watch(Progress):
    """Measures the CPU time of embedding."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def embedding(self, *_: object) -> None:
        self.begun = time.process_time()

    def embedded(self, *_: object) -> None:
        self.seconds += time.process_time() - self.begun

    def identity(self, *arguments: Any) -> str | None:
        self.embedding()
        try:
            return encoder_identity(*arguments)
        finally:
            self.embedded()


def classification(texts: list[str], arrays: dict[str, np.ndarray]) -> list[karat.Task]:
    frame = pd.DataFrame({"text": texts, "label": arrays["labels"]})
    tested = np.arange(int(arrays["pool"]), len(texts)).tolist()
    folds = [
        {"train": rows.tolist(), "test": tested, "repeat": number}
        for number, rows in enumerate(arrays["draws"])
    ]
    data = karat.Dataset.from_columns(
        frame, ["text"], "label", name="classes", kind="classification"
    )
    return [
        karat.Task(
            "classification",
            data,
            probe={"use": "trained", "head": "logistic-regression", "scale": "plain"},
            split={"use": "fixed", "folds": folds},
            metrics=[
                "accuracy",
                "f1",
                "f1_weighted",
                "precision",
                "recall",
                "precision_weighted",
                "recall_weighted",
            ],
        )
    ]


def pairs(texts: list[str], arrays: dict[str, np.ndarray]) -> list[karat.Task]:
    half = len(texts) // 2
    frame = pd.DataFrame({"one": texts[:half], "two": texts[half:], "label": arrays["labels"]})
    data = karat.Dataset.from_columns(
        frame, ["one", "two"], "label", name="pairs", kind="classification"
    )
    return [
        karat.Task(
            measure,
            data,
            probe={"use": "similarity", "measure": measure},
            split={"use": "all"},
            metrics=["max_ap", "max_f1", "max_accuracy", "max_precision", "max_recall"],
        )
        for measure in MEASURES
    ]


def retrieval(texts: list[str], arrays: dict[str, np.ndarray]) -> list[karat.Task]:
    data = karat.Dataset(
        name="retrieval",
        items=pd.Series(texts),
        questions=pd.DataFrame({"query": int(arrays["documents"]) + arrays["asked"]}),
        target=arrays["wanted"],
        kind="items",
        modality="text",
    )
    families = ("ndcg", "map", "recall", "precision", "mrr", "hit_rate")
    metrics = [f"{family}_at_{cut}" for family in families for cut in CUTS]
    probe = {"use": "nearest", "queries": "apart"}
    return [karat.Task("retrieval", data, probe=probe, split={"use": "all"}, metrics=metrics)]


def evaluate(problem: str, arrays: dict[str, np.ndarray]) -> tuple[dict[str, float], Any]:
    """Return the scores by their names in mteb, and the CPU seconds: of all, and of scoring."""
    vectors, watch = Known(arrays["vectors"]), Watch()
    tasks = globals()[problem](list(vectors.rows), arrays)
    with tempfile.TemporaryDirectory() as output:
        os.environ["KARAT_CACHE"] = output
        with patch("karat.execution.plan.encoder_identity", watch.identity):
            begun = time.process_time()
            (run,) = karat.evaluate({"known": vectors}, tasks, output=output, progress=watch)
            whole = time.process_time() - begun
        results = run.results().groupby("task").mean(numeric_only=True)
    scores: dict[str, float] = {}
    for task in tasks:
        means = results.loc[task.name, list(task.metrics)].to_dict()
        if problem == "pairs":
            for name, value in means.items():
                scores[name] = max(value, scores.get(name, 0.0))
                scores[name.replace("max", task.name)] = value
        else:
            scores |= means
    return scores, {"whole": whole, "scoring": whole - watch.seconds}


def main() -> None:
    problem, folder, count = sys.argv[1:]
    for suffix in ("-small", ""):
        arrays = dict(np.load(Path(folder) / f"{problem}{suffix}.npz"))
        if problem == "classification":
            arrays["draws"] = np.load(Path(folder) / f"draws{suffix}.npy")
        scores, seconds = evaluate(problem, arrays)
    print(f"cpu_seconds={seconds[count]:.4f}")
    print(f"scores={json.dumps(scores)}")


if __name__ == "__main__":
    main()
