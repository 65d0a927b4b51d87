"""Exact search of 1,000 queries among 1,000,000 documents, against faiss's flat index.

Karat answers as in a run: the probe ``nearest`` reads vectors from a memory-mapped file, normalizes
them and returns the exact rank of every relevant document. faiss gets normalized vectors and
returns the 100 best documents of each query; building its index is not counted. Both sides run in
a process of their own with one thread. Without faiss in this environment, it is installed into a
temporary one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

QUERIES, DOCUMENTS, DIMENSIONS, TOP, TURNS = 1_000, 1_000_000, 384, 100, 2
#: relevant documents of each query, and the range of their cosines, to which noise is added: one in
#: eight is behind the 1,000th place
ANSWERS, COSINES = 3, (0.1, 0.55)
FAISS = ("faiss-cpu==1.15.1", "numpy==2.4.6")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def write(folder: Path) -> None:
    """Write vectors of the queries and then of the documents, of any length, and the answers."""
    rng = np.random.default_rng(0)
    shape = (QUERIES + DOCUMENTS, DIMENSIONS)
    path = folder / "vectors.npy"
    matrix = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    for begin in range(QUERIES, len(matrix), 50_000):
        part = matrix[begin : begin + 50_000]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
    relevant = rng.permutation(DOCUMENTS)[: QUERIES * ANSWERS].reshape(QUERIES, -1)
    cosines = rng.uniform(*COSINES, relevant.shape).astype(np.float32)
    noise = rng.standard_normal((QUERIES, DIMENSIONS), dtype=np.float32)
    rest = np.sqrt(1 - np.square(cosines).sum(axis=1, keepdims=True))
    parts = np.einsum("qad,qa->qd", matrix[QUERIES + relevant], cosines)
    matrix[:QUERIES] = parts + rest * noise
    matrix.flush()
    np.save(folder / "relevant.npy", relevant)


def search(folder: Path) -> np.ndarray:
    """Return the ranks of the relevant documents; print the CPU seconds of the search."""
    import pandas as pd

    from karat.core.dataset import Dataset
    from karat.core.embeddings import Vectors
    from karat.probes.retrieval import Nearest

    matrix = np.load(folder / "vectors.npy", mmap_mode="r")
    relevant = np.load(folder / "relevant.npy")
    names = np.char.mod("d%d", np.arange(DOCUMENTS))
    asked = np.char.mod("q%d", np.arange(QUERIES))
    found = {"query": np.repeat(asked, ANSWERS), "document": names[relevant.ravel()]}
    pairs = pd.DataFrame(found)
    texts, queries = pd.Series(names, names), pd.Series(asked, asked)
    data = Dataset.from_corpus(texts, queries, pairs)
    vectors = Vectors(matrix, np.arange(len(matrix)))
    begun = time.process_time()
    found = Nearest("apart").answer(data, vectors)
    print(json.dumps({"cpu": time.process_time() - begun}))
    return np.asarray(found.rank)


def search_with_faiss(folder: Path) -> np.ndarray:
    """Return the ranks that faiss finds, infinite beyond the best; print its CPU seconds."""
    import faiss

    faiss.omp_set_num_threads(1)
    matrix = np.load(folder / "vectors.npy", mmap_mode="r")
    relevant = np.load(folder / "relevant.npy")
    queries = np.array(matrix[:QUERIES])
    faiss.normalize_L2(queries)
    index = faiss.IndexFlatIP(DIMENSIONS)
    for begin in range(QUERIES, len(matrix), 50_000):
        part = np.array(matrix[begin : begin + 50_000])
        faiss.normalize_L2(part)
        index.add(part)
    begun = time.process_time()
    _, best = index.search(queries, TOP)
    print(json.dumps({"cpu": time.process_time() - begun}))
    found = best[:, None, :] == relevant[:, :, None]
    return np.where(found.any(axis=2), found.argmax(axis=2) + 1.0, np.inf).ravel()


def run(side: str, python: str, folder: Path) -> tuple[float, float, np.ndarray]:
    """Return the CPU seconds, the peak memory in GB and the ranks of a side."""
    command = [python, __file__, side, str(folder)]
    environment = {**os.environ, **ONE_THREAD}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().splitlines()
    if process.returncode:
        raise SystemExit(f"{side} failed with exit code {process.returncode}.")
    seconds = json.loads(lines[-1])["cpu"]
    return seconds, usage.ru_maxrss / 2**20, np.load(folder / f"{side}.npy")


def python_with_faiss(folder: Path) -> str:
    """Return an interpreter that has faiss."""
    if find_spec("faiss"):
        return sys.executable
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *FAISS], check=True)
    return python


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the time and the memory of the search."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder)
        python = python_with_faiss(folder / "faiss")
        ours, theirs = [], []
        for _ in range(TURNS):
            ours.append(run("karat", sys.executable, folder))
            theirs.append(run("faiss", python, folder))
    ranks, other = ours[0][2], theirs[0][2]
    best = other <= TOP
    assert best.mean() > 0.5 and (ranks[best] == other[best]).all() and (ranks[~best] > TOP).all()
    fast, slow = min(each[0] for each in ours), min(each[0] for each in theirs)
    what = f"search, {QUERIES:,} × {DOCUMENTS:,} × {DIMENSIONS}, CPU"
    yield what, fast / slow, 1.2, "×", f"{slow:.1f} s of faiss.IndexFlatIP, {TOP} best"
    peak = max(each[1] for each in ours)
    yield "the same, peak memory", peak, 4, "GB", f"{max(each[1] for each in theirs):.1f} GB of it"


if __name__ == "__main__":
    side, folder = sys.argv[1], Path(sys.argv[2])
    np.save(folder / f"{side}.npy", {"karat": search, "faiss": search_with_faiss}[side](folder))
