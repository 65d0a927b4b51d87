"""From vectors to ranking metrics, against trec_eval."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.predictions import Predictions
from karat.metrics import score
from karat.probes.retrieval import Nearest

ROWS = 60
KS = (1, 3, 10, 100)


def matrix(seed: int, *, tied: bool) -> np.ndarray:
    """Return vectors; where ties are wanted, few directions that many items share exactly."""
    rng = np.random.default_rng(seed)
    if not tied:
        return rng.normal(size=(ROWS, 8)).astype(np.float32)
    return np.eye(6, dtype=np.float32)[rng.integers(0, 6, ROWS)] + np.float32(1)


def value(name: str, predictions: Predictions) -> float:
    found, reason = score(name, predictions)
    assert found is not None, reason
    return found


def cosines(vectors: np.ndarray) -> np.ndarray:
    return sk.pairwise.cosine_similarity(vectors.astype(np.float64)).round(9)


def search(seed: int) -> Dataset:
    """Return ten queries with one to three answers each among the other items."""
    rng = np.random.default_rng(seed + 2)
    rows = [
        (query, answer)
        for query in range(10)
        for answer in rng.choice(np.arange(10, ROWS), int(rng.integers(1, 4)), replace=False)
    ]
    asked, truth = (np.array(side) for side in zip(*rows, strict=True))
    texts = pd.Series([f"text {i}" for i in range(ROWS)])
    return Dataset("search", texts, pd.DataFrame({"query": asked}), truth, "items", "text")


def found(data: Dataset, vectors: np.ndarray) -> Predictions:
    probe, known = Nearest(queries="apart"), Vectors(vectors, np.arange(ROWS))
    probe.fit(data, known)
    return probe.answer(data, known)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_retrieval_is_trec_evals(seed, tied):
    """Ties included: trec_eval puts tied documents in the reverse order of their names."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    vectors, data = matrix(seed, tied=tied), search(seed)
    answers, scores = found(data, vectors), cosines(vectors)[:10, 10:]
    relevant = {(q, a) for q, a in zip(data.questions["query"], data.target, strict=True)}
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for query in range(10):
        # an answer is named so that it sorts after what ties with it, as Karat counts it
        names = [f"{'a' if (query, i) in relevant else 'b'}{i}" for i in range(10, ROWS)]
        judged[f"q{query}"] = {name: int(name[0] == "a") for name in names}
        ranked[f"q{query}"] = dict(zip(names, scores[query].tolist(), strict=True))
    cuts = ",".join(map(str, KS))
    wanted = {f"{name}.{cuts}" for name in ("map_cut", "ndcg_cut", "recall", "P")}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"map", "recip_rank", *wanted})
    theirs = pd.DataFrame(evaluator.evaluate(ranked)).T.mean()
    assert value("map", answers) == pytest.approx(theirs["map"])
    assert value("mrr", answers) == pytest.approx(theirs["recip_rank"])
    for k in KS:
        assert value(f"map_at_{k}", answers) == pytest.approx(theirs[f"map_cut_{k}"])
        assert value(f"ndcg_at_{k}", answers) == pytest.approx(theirs[f"ndcg_cut_{k}"])
        assert value(f"recall_at_{k}", answers) == pytest.approx(theirs[f"recall_{k}"])
        assert value(f"precision_at_{k}", answers) == pytest.approx(theirs[f"P_{k}"])
