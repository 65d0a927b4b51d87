"""Tasks of mteb on random data, an encoder without a library, and the scores of both."""

from __future__ import annotations

import hashlib
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import karat
from karat.ext.compat.mteb.task_data import part_name

WORDS = [
    f"{a}{b}" for a in ("lo", "mi", "ra", "tu", "se") for b in ("ka", "no", "pel", "dri", "zu")
]


class Hashed:
    """The mean of a fixed random vector per word: texts with common words are similar."""

    takes = ("text",)
    by_text = ("text",)

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([self._one(text) for text in texts], dtype=np.float32)

    def transform(self, items: Any) -> np.ndarray:
        return self.encode([str(item) for item in items])

    @staticmethod
    def _one(text: str) -> np.ndarray:
        words = text.split() or [""]
        seeds = [int(hashlib.md5(word.encode()).hexdigest()[:8], 16) for word in words]
        return np.mean([np.random.default_rng(s).normal(0.1, 1, 24) for s in seeds], axis=0)


def sentences(count: int, seed: int = 0, words: int = 6) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=words)) for _ in range(count)]


def noisy(texts: list[str], seed: int, changed: int = 3) -> list[str]:
    rng = random.Random(seed)
    found = []
    for text in texts:
        words = text.split()
        for _ in range(rng.randrange(changed + 1)):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        found.append(" ".join(words))
    return found


def task_of(base: type, kind: str, main_score: str, dataset: Any, **given: Any) -> Any:
    """Return a task of mteb that has its data already."""
    from mteb.abstasks.task_metadata import TaskMetadata

    settings = {"eval_splits": ["test"], "eval_langs": ["eng-Latn"], **given.pop("about", {})}
    metadata = TaskMetadata(
        name=f"Own{kind}",
        description="Random words.",
        reference="https://example.org",
        dataset={"path": "none", "revision": "r1"},
        type=kind,
        category="t2c" if kind in ("Classification", "Clustering") else "t2t",
        modalities=["text"],
        main_score=main_score,
        **settings,
    )

    def load_data(self: Any, **_: Any) -> None:
        self.dataset = dataset() if callable(dataset) else dataset
        self.data_loaded = True

    return type(f"Own{kind}", (base,), {"metadata": metadata, "load_data": load_data, **given})


def table(**columns: Any) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(columns)


def ours(task: Any, output: Path, **options: Any) -> dict[str, float]:
    """Return the first score of each subset and split of a task, by Karat."""
    from karat.ext.compat.mteb import suite

    (run,) = karat.evaluate({"hashed": Hashed()}, suite(task), output=output, **options)
    scores = run.scores()
    found = {}
    for each in run.about["tasks"]:
        own = (scores["task"] == each["name"]) & (scores["metric"] == each["metrics"][0])
        found[each["name"]] = float(scores[own]["value"].mean())
    return found


def theirs(task: Any, encoder: Any = None) -> dict[str, float]:
    """Return the main score of each subset and split of a task, by mteb."""
    import mteb

    from karat.ext.compat.mteb import Encoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = mteb.evaluate(
            encoder or Encoder(Hashed(), "hashed"),
            task,
            cache=None,
            co2_tracker=False,
            show_progress_bar=False,
        )
    return {
        part_name(task.metadata.name, entry["hf_subset"], split): entry["main_score"]
        for split, entries in result.task_results[0].scores.items()
        for entry in entries
    }
