"""Entity relatedness and document similarity, against pandas merges and a loop over the pairs.

The gold standards are made up in the sizes of KORE (21 × 20) and LP50 (50 documents, 1,225 pairs);
the vectors are 50,000 × 200. Both sides begin with the vectors in memory and end with the score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cosine
from scipy.stats import kendalltau, pearsonr
from threadpoolctl import threadpool_limits

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.metrics.metric import score
from karat.models.vector_files import VectorLookup
from karat.probes.similarity import Similarity

ENTITIES, DIMENSIONS = 50_000, 200
MAINS, RELATED, DOCUMENTS = 21, 20, 50
LIMIT = 1 / 200


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    rng = np.random.default_rng(0)
    names = [f"http://example.org/entity/{i}" for i in range(ENTITIES)]
    matrix = rng.standard_normal((ENTITIES, DIMENSIONS)).astype(np.float32)
    table = pd.DataFrame(matrix.astype(float))
    table.insert(0, "name", names)
    stock = VectorLookup(names, matrix)
    stock.vocabulary()[0].get_indexer(names[:1])  # the index of the names is made once
    cases: tuple[tuple[str, Any, Any], ...] = (
        ("entity relatedness, 420 pairs", _related(rng, names), (_our_tau, _plain_tau)),
        ("document similarity, 1,225 pairs", _documents(rng, names), (_our_match, _plain_match)),
    )
    for what, data, (ours, plain) in cases:
        with threadpool_limits(1):
            quick = [_cpu(lambda d=data, f=ours: f(d, stock)) for _ in range(30)]
            slow, seconds = _cpu(lambda d=data, f=plain: f(d, table))
        value = quick[0][0]
        assert abs(value - slow) < 1e-5, (what, value, slow)
        ratio = min(spent for _, spent in quick) / seconds
        yield f"{what}, CPU", ratio, LIMIT, "×", "pandas merges, one pair at a time"


def _related(rng: np.random.Generator, names: list[str]) -> Dataset:
    mains = rng.choice(ENTITIES, MAINS, replace=False)
    rows = [
        (names[main], names[other], float(RELATED - i))
        for main in mains
        for i, other in enumerate(rng.choice(ENTITIES, RELATED, replace=False))
    ]
    frame = pd.DataFrame(rows, columns=["main", "related", "truth"])
    items = pd.Series(pd.unique(frame[["main", "related"]].to_numpy().ravel()))
    items.index = pd.Index(items)
    asked, truth = frame[["main", "related"]], frame["truth"].to_numpy()
    return Dataset(
        "kore", items, asked, truth, "regression", "entity", group=frame["main"].to_numpy()
    )


def _documents(rng: np.random.Generator, names: list[str]) -> Dataset:
    bags = [
        {names[i]: round(float(rng.uniform(0.1, 1)), 3) for i in rng.choice(400, size, False)}
        for size in rng.integers(4, 22, DOCUMENTS)
    ]
    places = [(i, j) for i in range(DOCUMENTS) for j in range(i + 1, DOCUMENTS)]
    asked = pd.DataFrame({"a": [bags[i] for i, _ in places], "b": [bags[j] for _, j in places]})
    used = sorted({name for bag in bags for name in bag})
    items = pd.Series(used, index=used)
    return Dataset("lp50", items, asked, rng.uniform(1, 5, len(places)), "regression", "entity")


def _answered(data: Dataset, stock: VectorLookup, probe: Similarity, metric: str) -> float:
    vectors = Vectors(stock.transform(data.items), np.arange(len(data.items)))
    value, reason = score(metric, probe.answer(data, vectors))
    assert value is not None, reason
    return value


def _our_tau(data: Dataset, stock: VectorLookup) -> float:
    return _answered(data, stock, Similarity(), "kendall")


def _our_match(data: Dataset, stock: VectorLookup) -> float:
    return _answered(data, stock, Similarity(bags="weighted-matches"), "pearson")


def _plain_tau(data: Dataset, table: pd.DataFrame) -> float:
    asked = data.questions.assign(truth=data.target)
    taus = []
    for main, part in asked.groupby("main", sort=False):
        left = pd.merge(pd.DataFrame({"name": [main]}), table, on="name").iloc[0, 1:]
        right = pd.merge(part.rename(columns={"related": "name"}), table, on="name")
        near = [
            1 - cosine(left.to_numpy(float), row.iloc[3:].to_numpy(float))
            for _, row in right.iterrows()
        ]
        taus.append(kendalltau(near, right["truth"]).statistic)
    return float(np.mean(taus))


def _plain_match(data: Dataset, table: pd.DataFrame) -> float:
    def joined(bag: dict[str, float]) -> pd.DataFrame:
        frame = pd.DataFrame({"name": list(bag), "weight": list(bag.values())})
        return pd.merge(frame, table, on="name")

    bags = {id(bag): bag for column in ("a", "b") for bag in data.questions[column]}
    joined_once = {key: joined(bag) for key, bag in bags.items()}
    found = []
    for one, two in zip(data.questions["a"], data.questions["b"], strict=True):
        a, b = joined_once[id(one)], joined_once[id(two)]
        total = 0.0
        for mine, theirs in ((a, b), (b, a)):
            for _, row in mine.iterrows():
                total += max(
                    (1 - cosine(row.iloc[2:].to_numpy(float), other.iloc[2:].to_numpy(float)))
                    * row["weight"]
                    * other["weight"]
                    for _, other in theirs.iterrows()
                )
        found.append(total / (len(a) + len(b)))
    return float(pearsonr(found, data.target).statistic)


def _cpu(act: Callable[[], float]) -> tuple[float, float]:
    begun = time.process_time()
    value = act()
    return value, time.process_time() - begun
