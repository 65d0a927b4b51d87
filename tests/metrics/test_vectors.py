"""From vectors to scores: what sentence encoders are asked gives the numbers of other libraries."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from scipy.stats import pearsonr, spearmanr

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.predictions import Predictions
from karat.metrics import score
from karat.probes.retrieval import Nearest
from karat.probes.similarity import Similarity

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


def pairs(seed: int, kind: str) -> tuple[Dataset, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    a, b = rng.permutation(ROWS), rng.permutation(ROWS)
    truth = rng.integers(0, 5, ROWS).astype(float)
    answers = truth if kind == "regression" else np.where(truth > 2, "same", "other").astype(object)
    asked = pd.DataFrame({"a": a, "b": b})
    texts = pd.Series([f"text {i}" for i in range(ROWS)])
    return Dataset("pairs", texts, asked, answers, kind, "text"), a, b


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_similarity_is_scipys(seed, tied):
    vectors = matrix(seed, tied=tied)
    data, a, b = pairs(seed, "numbers")
    answers = Similarity().answer(data, Vectors(vectors, np.arange(ROWS)))
    expected = cosines(vectors)[a, b]
    rounded = Predictions(answers.predictions.round(9), answers.truth)
    assert rounded.predictions == pytest.approx(expected)
    assert value("cosine_spearman", rounded) == pytest.approx(
        spearmanr(expected, data.truth).statistic
    )
    assert value("cosine_pearson", rounded) == pytest.approx(
        pearsonr(expected, data.truth).statistic
    )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_pair_classification_is_scikit_learns(seed, tied):
    vectors = matrix(seed, tied=tied)
    data, a, b = pairs(seed, "classes")
    answers = Similarity().answer(data, Vectors(vectors, np.arange(ROWS)))
    truth, scores = data.truth == "same", cosines(vectors)[a, b]
    answers = Predictions(answers.predictions.round(9), data.truth, truths="classes")
    # the second class in the order of the labels is the positive one
    assert value("ap", answers) == pytest.approx(sk.average_precision_score(truth, scores))
    precision, recall, _ = sk.precision_recall_curve(truth, scores)
    total = np.where(precision + recall > 0, precision + recall, 1)
    assert value("max_f1", answers) == pytest.approx((2 * precision * recall / total).max())


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


def by_list(gains: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Return the mean average precision, and the mean reciprocal rank, of lists without ties."""
    lists = list(zip(gains, scores, strict=True))
    precisions = [sk.average_precision_score(gain, order) for gain, order in lists]
    places = [np.flatnonzero(gain[np.argsort(-order)])[0] + 1 for gain, order in lists]
    return float(np.mean(precisions)), float(np.mean(1 / np.array(places)))


@pytest.mark.parametrize("seed", range(3))
def test_retrieval_is_scikit_learns(seed):
    vectors, data = matrix(seed, tied=False), search(seed)
    answers, scores = found(data, vectors), cosines(vectors)[:10, 10:]
    gains = np.zeros((10, ROWS - 10))
    gains[data.questions["query"], data.truth.astype(int) - 10] = 1
    for k in KS:
        assert value(f"ndcg_at_{k}", answers) == pytest.approx(sk.ndcg_score(gains, scores, k=k))
    precisions, first = by_list(gains, scores)
    assert value("map", answers) == pytest.approx(precisions)
    assert value("mrr", answers) == pytest.approx(first)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_retrieval_is_trec_evals(seed, tied):
    """Ties included: trec_eval puts tied documents in the reverse order of their names."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    vectors, data = matrix(seed, tied=tied), search(seed)
    answers, scores = found(data, vectors), cosines(vectors)[:10, 10:]
    relevant = {(q, a) for q, a in zip(data.questions["query"], data.truth, strict=True)}
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for query in range(10):
        # an answer is named so that it stands behind what ties with it, as we count it
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


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lists_are_put_in_order_as_scikit_learn_does(seed, tied):
    """A query's own list: the cosine against which of its candidates are relevant."""
    vectors = matrix(seed, tied=tied)
    rng = np.random.default_rng(seed + 3)
    query = np.repeat(np.arange(10), 5)
    truth = np.where(np.arange(50) % 5 < rng.integers(1, 4, 50), "yes", "no").astype(object)
    asked = pd.DataFrame({"query": query, "candidate": np.arange(10, 60)})
    texts = pd.Series([f"text {i}" for i in range(ROWS)])
    data = Dataset("lists", texts, asked, truth, "classification", "text", group=query)
    answers = Similarity().answer(data, Vectors(vectors, np.arange(ROWS)))
    answers = Predictions(
        answers.predictions.round(9), truth, truths="classes", group=query, classes=("no", "yes")
    )
    gains = (truth == "yes").reshape(10, 5).astype(float)
    scores = cosines(vectors)[query, np.arange(10, 60)].reshape(10, 5)
    kept = gains.any(axis=1)
    expected = sk.ndcg_score(gains[kept], scores[kept], k=3)
    assert value("ndcg_at_3", answers) == pytest.approx(expected)
    if not tied:
        precisions, first = by_list(gains[kept], scores[kept])
        assert value("map", answers) == pytest.approx(precisions)
        assert value("mrr", answers) == pytest.approx(first)
