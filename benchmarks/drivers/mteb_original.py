"""The side of mteb in ``recipes/mteb.py``: ``python mteb_original.py PROBLEM FOLDER COUNT``.

COUNT is ``whole`` or ``scoring``. It also stores the texts that mteb draws for classification, on
which Karat then trains.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")

import datasets
import mteb
import numpy as np
import torch
from mteb._create_dataloaders import create_dataloader
from mteb.abstasks import AbsTaskClassification, AbsTaskPairClassification, AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction

LOADERS = (
    "mteb.abstasks.classification",
    "mteb._evaluators.pair_classification_evaluator",
    "mteb.models.search_wrappers",
)


class Known(AbsEncoder):
    """Returns given vectors of texts and measures the CPU time that this takes."""

    mteb_model_meta = ModelMeta.create_empty(
        {"name": "benchmarks/known", "similarity_fn_name": ScoringFunction.COSINE}
    )

    def __init__(self, vectors: np.ndarray) -> None:
        self.model = None
        self.vectors = vectors
        self.rows = {f"text {i}": i for i in range(len(vectors))}
        self.seconds = 0.0

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        begun = time.process_time()
        rows = [self.rows[text] for batch in inputs for text in batch["text"]]
        encoded = self.vectors[rows]
        self.seconds += time.process_time() - begun
        return encoded

    def load(self, *arguments: Any, **named: Any) -> Any:
        begun = time.process_time()
        loader = create_dataloader(*arguments, **named)
        self.seconds += time.process_time() - begun
        return loader


class Classification(AbsTaskClassification):
    """Remembers the drawn texts."""

    drawn: list[list[int]]

    def _undersample_data(self, *arguments: Any, **named: Any) -> Any:
        drawn = super()._undersample_data(*arguments, **named)
        self.drawn.append(drawn[2])
        return drawn


#: what the metrics of each query are called there
NAMES = {"ndcg_cut": "ndcg", "map_cut": "map", "P": "precision", "success": "hit_rate"}


class Retrieval(AbsTaskRetrieval):
    """Remembers the means of the scores of all queries, which mteb rounds to five digits."""

    exact: dict[str, float]

    def task_specific_scores(self, scores: Any, *_: Any, **__: Any) -> dict[str, float]:
        self.exact = {}
        for name in next(iter(scores.values())):
            stem, _, cut = name.rpartition("_")
            mean = np.mean([query_scores[name] for query_scores in scores.values()])
            self.exact[f"{NAMES.get(stem, stem)}_at_{cut}"] = float(mean)
        return {}


def classification(texts: list[str], arrays: dict[str, np.ndarray]) -> Any:
    task = made(Classification, "Classification", "accuracy")
    pool, labels = int(arrays["pool"]), arrays["labels"].tolist()
    task.drawn = []
    task.dataset = datasets.DatasetDict(
        train=datasets.Dataset.from_dict({"text": texts[:pool], "label": labels[:pool]}),
        test=datasets.Dataset.from_dict({"text": texts[pool:], "label": labels[pool:]}),
    )
    return task


def pairs(texts: list[str], arrays: dict[str, np.ndarray]) -> Any:
    task = made(AbsTaskPairClassification, "PairClassification", "max_ap")
    half, labels = len(texts) // 2, arrays["labels"].tolist()
    columns = {"sentence1": texts[:half], "sentence2": texts[half:], "labels": labels}
    task.dataset = datasets.DatasetDict(test=datasets.Dataset.from_dict(columns))
    return task


def retrieval(texts: list[str], arrays: dict[str, np.ndarray]) -> Any:
    documents = int(arrays["documents"])
    relevant: dict[str, dict[str, int]] = {}
    for query, answer in zip(arrays["asked"].tolist(), arrays["wanted"].tolist(), strict=True):
        relevant.setdefault(texts[documents + query], {})[texts[answer]] = 1
    sides = {
        name: datasets.Dataset.from_dict({"id": part, "text": part})
        for name, part in (("corpus", texts[:documents]), ("queries", texts[documents:]))
    }
    task = made(Retrieval, "Retrieval", "ndcg_at_10")
    task.dataset = {"default": {"test": {**sides, "relevant_docs": relevant, "top_ranked": None}}}
    return task


def made(kind: type, what: str, main_score: str) -> Any:
    """Return a task of mteb that gets its data from this module."""
    metadata = TaskMetadata(
        name=f"Known{what}",
        description="Given vectors.",
        dataset={"path": "none", "revision": "none"},
        type=what,
        category="t2c" if what == "Classification" else "t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=main_score,
    )
    task = type(f"Known{what}", (kind,), {"metadata": metadata})()
    task.data_loaded = True
    return task


def evaluate(make: Callable[..., Any], arrays: dict[str, np.ndarray]) -> tuple[Any, Any, Any]:
    """Return the task, its scores, and the CPU seconds: of all, and of scoring."""
    model = Known(arrays["vectors"])
    task = make(list(model.rows), arrays)
    with ExitStack() as stack:
        for module in LOADERS:
            stack.enter_context(patch(f"{module}.create_dataloader", model.load))
        begun = time.process_time()
        results = mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)
        whole = time.process_time() - begun
    scores = {**results.task_results[0].scores["test"][0], **getattr(task, "exact", {})}
    return task, scores, {"whole": whole, "scoring": whole - model.seconds}


def main() -> None:
    problem, folder, count = sys.argv[1:]
    datasets.disable_progress_bars()
    torch.set_num_threads(1)
    for suffix in ("-small", ""):
        arrays = dict(np.load(Path(folder) / f"{problem}{suffix}.npz"))
        task, scores, seconds = evaluate(globals()[problem], arrays)
        if problem == "classification":
            np.save(Path(folder) / f"draws{suffix}.npy", np.array(task.drawn))
    print(f"cpu_seconds={seconds[count]:.4f}")
    finite = {k: v for k, v in scores.items() if isinstance(v, float) and np.isfinite(v)}
    print("scores=" + json.dumps(finite))


if __name__ == "__main__":
    main()
