"""Queries and their answers: places by hand, and the same numbers as scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.metrics.base import score
from karat.predictions import Predictions
from karat.probes import nearest
from karat.probes.nearest import Nearest
from karat.vectors import Vectors

# on a circle: a at 0°, b at 10°, c at 30°, d at 90°
ANGLES = {"a": 0, "b": 10, "c": 30, "d": 90}


def circle() -> Vectors:
    angles = np.radians(list(ANGLES.values()))
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(4))


def questions(pairs: list[tuple[str, str]]) -> Dataset:
    ids = list(ANGLES)
    asked = pd.DataFrame({"query": [query for query, _ in pairs]})
    truth = np.array([answer for _, answer in pairs], dtype=object)
    return Dataset("circle", pd.Series(ids, index=ids), asked, truth, "items", "entity")


def test_places_by_hand():
    data = questions([("a", "d"), ("a", "b"), ("d", "a")])
    got = Nearest().answer(data, circle())
    # from a: b, c, d; from d: c, b, a
    assert got.rank.tolist() == [3, 1, 3]
    assert got.predictions.tolist() == ["b", "b", "c"]
    assert got.group.tolist() == ["a", "a", "d"]
    assert got.candidates.tolist() == [3, 3, 3]
    # list a: answers at 1 and 3; list d: answer at 3
    assert score("map", got)[0] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert score("mrr", got)[0] == pytest.approx((1 + 1 / 3) / 2)
    assert score("recall@1", got)[0] == pytest.approx((1 / 2 + 0) / 2)
    ideal = 1 + 1 / np.log2(3)
    ndcg = ((1 + 1 / np.log2(4)) / ideal + 1 / np.log2(4)) / 2
    assert score("ndcg@10", got)[0] == pytest.approx(ndcg)
    assert score("hits@1", got)[0] == pytest.approx(1 / 3)


def test_queries_apart_are_no_candidates():
    data = questions([("a", "d"), ("b", "c")])
    got = Nearest(queries="apart").answer(data, circle())
    assert got.rank.tolist() == [2, 1]  # only c and d compete
    assert got.candidates.tolist() == [2, 2]


def test_equal_vectors_earn_nothing():
    data = questions([("a", "b")])
    got = Nearest().answer(data, Vectors(np.ones((4, 2)), np.arange(4)))
    assert got.rank.tolist() == [3]


def test_the_query_cannot_be_its_own_answer():
    got = Nearest().answer(questions([("a", "a"), ("a", "b")]), circle())
    assert got.rank.tolist() == [np.inf, 1]


@pytest.mark.parametrize("block", [1, 100, 2**20])
def test_the_same_as_scikit_learn(monkeypatch, block):
    monkeypatch.setattr(nearest, "BLOCK", block)
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(40, 6))
    labels = rng.integers(0, 4, size=40)
    ids = [f"e{i}" for i in range(40)]
    pairs = [(q, i) for q in range(10) for i in range(40) if i != q and labels[i] == labels[q]]
    asked = pd.DataFrame({"query": [ids[q] for q, _ in pairs]})
    truth = np.array([ids[i] for _, i in pairs], dtype=object)
    data = Dataset("forty", pd.Series(ids, index=ids), asked, truth, "items", "entity")
    got = Nearest().answer(data, Vectors(matrix, np.arange(40)))
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    average, gain = [], []
    for q in range(10):
        others = np.delete(np.arange(40), q)
        scores, relevant = unit[others] @ unit[q], labels[others] == labels[q]
        average.append(average_precision_score(relevant, scores))
        gain.append(ndcg_score([relevant.astype(int)], [scores], k=10))
    assert score("map", got)[0] == pytest.approx(np.mean(average), abs=1e-9)
    assert score("ndcg@10", got)[0] == pytest.approx(np.mean(gain), abs=1e-9)
    again = Predictions.from_csv(got.to_csv(), answers="items", truths="items")
    assert score("map", again) == score("map", got)


def test_unknown_items_are_misses_or_left_out():
    vectors = circle()
    vectors.matrix[3] = np.nan
    data = questions([("a", "d"), ("a", "b"), ("d", "a")])
    assert Nearest().answerable(data, vectors).tolist() == [False, True, False]
    lost = Nearest().unanswered(data)
    assert score("map", lost) == (0.0, "") and score("hits@1", lost) == (0.0, "")


def test_what_cannot_be_asked_is_said():
    with pytest.raises(DefinitionError, match='"among" or "apart", not "inside"'):
        Nearest(queries="inside")
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(DefinitionError, match="whose truth is an item"):
        Nearest().answerable(Dataset.from_table(table, target="y"), circle())
