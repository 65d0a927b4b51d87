"""8,000 analogies among 50,000 entities, against the bare product and one question at a time.

And what a vector file of a million entities takes: called as a script with a folder, this answers
analogies and relatedness questions from the file there and prints the process's peak memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.execution import resources
from karat.probes.relations import Analogy

QUESTIONS, ENTITIES, DIMENSIONS = 8_000, 50_000, 200
#: one question at a time takes long, so that only these are asked so; their time is scaled
PART = 100
#: all take turns so often, so that whatever else this machine does slows all; the best counts
TURNS = 5
MANY, ASKED = 1_000_000, 500


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    names, questions = _asked(ENTITIES, QUESTIONS)
    matrix = np.random.default_rng(1).standard_normal((ENTITIES, DIMENSIONS), dtype=np.float32)
    data, vectors = _analogies(names, questions), Vectors(matrix, np.arange(ENTITIES))
    unit = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    # a table as pandas reads it from text, in 64 bits; its rows at length 1 beforehand
    table = pd.DataFrame(unit, index=names, dtype=np.float64)
    some = [[names[i] for i in row] for row in questions[:, :PART].T]
    held = np.empty((QUESTIONS, ENTITIES), dtype=np.float32)

    def ours() -> np.ndarray:
        return np.asarray(Analogy().answer(data, vectors).rank)

    def product() -> np.ndarray:
        wanted = unit[questions[1]] - unit[questions[0]] + unit[questions[2]]
        return np.asarray(np.matmul(wanted, unit.T, out=held))

    def plain() -> np.ndarray:
        return _one_by_one(table, some)

    with threadpool_limits(1):
        assert (np.abs(ours()[:PART] - plain()) <= 5).all()  # what nearly ties counts against us
        seconds = np.array([list(map(_seconds, (ours, product, plain))) for _ in range(TURNS)])
    mine, bare, slow = seconds.min(axis=0)
    what = f"{QUESTIONS:,} analogies among {ENTITIES:,}, CPU"
    yield what, mine / bare, 2, "×", f"the bare product of {bare:.1f} s, in NumPy"
    against = f"one question at a time, {PART} of them scaled"
    yield "the same", mine / (slow * QUESTIONS / PART), 0.05, "×", against
    with tempfile.TemporaryDirectory() as folder:
        write_many(Path(folder))
        for when in ("first read", "kept"):
            what = f"{MANY:,} × {DIMENSIONS} from a file, {when}, peak"
            yield what, _peak(folder), 4, "GB", f"{MANY * DIMENSIONS * 4 / 1e9:.1f} GB of vectors"


def _asked(entities: int, questions: int) -> tuple[list[str], np.ndarray]:
    """Return names of entities, and four different ones of them per question, in columns."""
    rng = np.random.default_rng(0)
    names = [f"http://dbpedia.org/resource/Entity_{i}" for i in range(entities)]
    return names, np.array([rng.choice(entities, 4, replace=False) for _ in range(questions)]).T


def _analogies(names: list[str], questions: np.ndarray) -> Dataset:
    texts = np.array(names, dtype=object)
    frame = pd.DataFrame(dict(zip("abc", texts[questions[:3]], strict=True)))
    items = pd.Series(names, index=names)
    return Dataset("analogies", items, frame, texts[questions[3]], "items", "entity")


def _one_by_one(table: pd.DataFrame, questions: list[list[str]]) -> np.ndarray:
    """Return ranks as people write it down: a table, and each question over all of it."""
    matrix, ranks = table.to_numpy(), []
    for a, b, c, d in questions:
        scores = matrix @ (table.loc[b] - table.loc[a] + table.loc[c]).to_numpy()
        scores[[table.index.get_loc(name) for name in (a, b, c)]] = -np.inf
        order = np.argsort(-scores)
        ranks.append(int(np.flatnonzero(table.index[order] == d)[0]) + 1)
    return np.array(ranks)


def _seconds(function: Callable[[], np.ndarray]) -> float:
    begun = time.process_time()
    function()
    return time.process_time() - begun


# -- a million entities ---------------------------------------------------------------------


def write_many(folder: Path) -> None:
    """Write a vector file of many entities."""
    rng = np.random.default_rng(2)
    ids = np.array([f"http://dbpedia.org/resource/Entity_{i}" for i in range(MANY)])
    vectors = rng.standard_normal((MANY, DIMENSIONS), dtype=np.float32)
    np.savez(folder / "many.npz", ids=ids, vectors=vectors)


def _peak(folder: str) -> float:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    printed = subprocess.run(
        [sys.executable, __file__, folder],
        env={**os.environ, **threads, "KARAT_CACHE": str(Path(folder) / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(printed.stdout.split()[-1])


def ask_many(folder: Path) -> float:
    """Answer analogies and relatedness questions about a few of many; return the peak in GB."""
    names, questions = _asked(MANY, ASKED)
    names_in_use = [names[i] for i in np.unique(questions)]
    positions = np.searchsorted(np.unique(questions), questions)
    del names
    analogies = _analogies(names_in_use, positions)
    pairs = pd.DataFrame({"a": analogies.questions["a"], "b": analogies.questions["b"]})
    related = Dataset(
        "related", analogies.items, pairs, np.arange(float(ASKED)), "regression", "entity"
    )
    tasks = [
        karat.Task("analogies", analogies, probe="analogy", split="all"),
        karat.Task("related", related, probe="similarity", split="all", metrics=["kendall"]),
    ]
    # a job has its own peak; here all of the process counts, the reading of the file too
    resources.forget_peak = lambda: None
    (run,) = karat.evaluate({"many": str(folder / "many.npz")}, tasks, output=folder / "results")
    assert [record["status"] for record in run.records()] == ["ok", "ok"]
    return resources.peak_memory() * 2**20 / 1e9


if __name__ == "__main__":
    print(ask_many(Path(sys.argv[1])))
