"""Train small embeddings on a knowledge graph, write them to a text file, and evaluate them.

The graph is UMLS: 135 medical concepts and 46 relations, fetched from the package PyKEEN and
checked. An entity is described by what its links lead to, weighted by how telling that is, in 32
dimensions: the vectors learn from the train links alone, and the test links are asked for.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import karat

DIMENSIONS = 32


def train(links):
    """Return one vector per entity: the singular vectors of its positive mutual information."""
    seen = pd.crosstab(links["head"], links["relation"] + " " + links["tail"])
    counts = seen.to_numpy(dtype=float)
    share = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    telling = np.log(np.maximum(counts / share, 1.0))
    left, size, _ = np.linalg.svd(telling, full_matrices=False)
    return pd.DataFrame(left[:, :DIMENSIONS] * np.sqrt(size[:DIMENSIONS]), index=seen.index)


def write(path, vectors):
    """Write a line per entity: its name, then its numbers."""
    lines = [" ".join([name, *map(str, vectors.loc[name])]) for name in vectors.index]
    path.write_text("\n".join(lines) + "\n")
    return path


(task,) = karat.suite("umls-links")
try:
    graph = task.dataset()
except karat.KaratError as error:
    print(error)  # without a network and without the file there is nothing to learn from
    raise SystemExit(0) from None

links = graph.questions.assign(relation=graph.group, tail=graph.target)
vectors = train(links[graph.part == "train"])
guess = np.random.default_rng(0).normal(size=vectors.shape)

with TemporaryDirectory() as folder:
    mine = write(Path(folder, "mine.txt"), vectors)
    noise = write(Path(folder, "noise.txt"), pd.DataFrame(guess, index=vectors.index))
    runs = karat.evaluate({"mine": mine, "noise": noise}, task, output=Path(folder, "results"))
    for run in runs:
        row = run.results().iloc[0]
        print(f"{run.model:6} mrr {row['mrr']:.3f}   hits@10 {row['hits@10']:.3f}")
    scores = [run.results()["mrr"].iloc[0] for run in runs]
assert scores[0] > 2 * scores[1]
