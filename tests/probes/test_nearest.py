"""Queries and their answers: places by hand, and the same numbers as scikit-learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

import karat
from karat.asks.base import ask
from karat.corruptions.view import View, see
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.models.adapters import adapt
from karat.predictions import Predictions
from karat.probes import nearest
from karat.probes.nearest import Nearest, places
from karat.solve import Probed
from karat.splits import split
from karat.task import Task
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


def test_equal_vectors_rank_last():
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


def test_unsuitable_questions_are_refused():
    with pytest.raises(DefinitionError, match="inside"):
        Nearest(queries="inside")
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(DefinitionError, match="nearest"):
        Nearest().answerable(Dataset.from_table(table, target="y"), circle())


# -- who is a candidate ---------------------------------------------------------------------


def on_a_line(count: int) -> Vectors:
    """Return vectors in the first quarter of a circle, one degree apart."""
    angles = np.radians(np.arange(count))
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(count))


def lookups(pairs: list[tuple[int, int]], count: int) -> Dataset:
    ids = [f"e{i}" for i in range(count)]
    asked = pd.DataFrame({"query": [ids[query] for query, _ in pairs]})
    truth = np.array([ids[answer] for _, answer in pairs], dtype=object)
    return Dataset("line", pd.Series(ids, index=ids), asked, truth, "items", "entity")


def test_the_queries_of_the_train_side_are_no_candidates():
    # 0 to 3 ask for 4 to 7
    data = lookups([(0, 4), (1, 5), (2, 6), (3, 7)], 8)
    train, test = data.take(np.array([0, 1, 2])), data.take(np.array([3]))
    for queries, rank, candidates in (("apart", 4, 4), ("among", 7, 7)):
        probe = Nearest(queries=queries)
        probe.fit(train, on_a_line(8))
        got = probe.answer(test, on_a_line(8))
        assert (got.rank.tolist(), got.candidates.tolist()) == ([rank], [candidates])


@pytest.mark.parametrize(
    "how",
    [
        {"use": "kfold", "folds": 3},
        {"use": "holdout", "train_rows": 2, "test_rows": 2},
        {"use": "all", "share": 0.5},
    ],
    ids=lambda how: how["use"],
)
def test_a_query_is_no_candidate_whatever_the_split_leaves_out(how):
    data = lookups([(i, 6 + i) for i in range(6)], 12)
    for fold in split(data, how, 3):
        probe = Nearest(queries="apart")
        probe.fit(data.take(fold.train), on_a_line(12))
        got = probe.answer(data.take(fold.test), on_a_line(12))
        assert set(got.candidates) == {6}
        # candidates are 6 to 11 degrees, so the answer of i is place i + 1
        assert got.rank.tolist() == [i + 1 for i in fold.test]


def test_a_query_whose_answer_is_unknown_is_still_no_candidate():
    data = lookups([(0, 4), (1, 5), (2, 6), (3, 7)], 8)
    vectors = on_a_line(8)
    vectors.matrix[[4, 5]] = np.nan  # neither the train question 0 nor the test question 1
    solver = Probed(adapt(Fixed(vectors)), Nearest(queries="apart"), "ignore", 0, vectors)
    solver.fit(data.take(np.array([0, 2])))
    answers = solver.answer(data.take(np.array([1, 3])))
    assert answers.predictions.candidates.tolist() == [2]
    assert answers.predictions.rank.tolist() == [2] and answers.coverage == 0.5
    assert answers.predictions.question.tolist() == [1]


def test_limited_rows_leave_no_query_among_the_candidates():
    data = lookups([(i, 6 + i) for i in range(6)], 12)
    kept = data.sample(2, np.random.default_rng(0))
    got = Nearest(queries="apart").answer(kept, on_a_line(12))
    assert len(kept) == 2 and set(got.candidates) == {6}


def test_candidates_stay_the_same_through_a_corruption(clean_registry):
    karat.corruption("reversed")(lambda X, y, severity, rng: (X.str[::-1], y))
    data = dataclasses.replace(lookups([(0, 4), (1, 5), (2, 6), (3, 7)], 8), modality="text")
    test = data.take(np.array([3]))
    seen = see(test, View("reversed", 1.0), 0, 0)
    assert seen.items.tolist() == ["e0", "e1", "e2", "3e", "e4", "e5", "e6", "e7"]
    probe = Nearest(queries="apart")
    probe.fit(data.take(np.array([0, 1, 2])), on_a_line(8))
    assert probe.answer(seen, on_a_line(8)).candidates.tolist() == [4]


def test_an_answer_that_is_a_query_cannot_be_found_and_is_noted():
    data = questions([("a", "b"), ("b", "c")])
    probe = Nearest(queries="apart")
    got = probe.answer(data, circle())
    assert got.rank.tolist() == [np.inf, 1]
    assert "1 of 2" in probe.notes[0]
    probe.answer(questions([("a", "c")]), circle())
    assert probe.notes == []


def test_no_candidates_and_duplicate_answers_are_refused():
    data = questions([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    with pytest.raises(DataError, match="circle: .*candidates"):
        Nearest(queries="apart").answer(data, circle())
    with pytest.raises(DataError, match='circle: .*"a"'):
        Nearest().answer(questions([("b", "a"), ("a", "d"), ("a", "d")]), circle())


class Fixed:
    """Gives the vectors it was made of."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def transform(self, items: pd.Series) -> np.ndarray:
        return self.vectors.matrix[[int(i[1:]) for i in items.index]]


# -- what an encoder is fitted on -----------------------------------------------------------

FITTED: list[list[str]] = []


class Watches:
    """Counts letters, and notes the texts it is fitted on."""

    def fit(self, items: pd.Series, y: object = None) -> Watches:
        assert y is None
        FITTED.append(items.tolist())
        return self

    def transform(self, items: pd.Series) -> np.ndarray:
        return np.array([[len(text), text.count("a") + 1.0] for text in items])


def test_an_encoder_is_not_fitted_on_the_queries_that_test_it(tmp_path):
    FITTED.clear()
    table = pd.DataFrame({"n": np.arange(60.0), "w": [f"w{i % 20}" for i in range(60)]})
    data = Dataset.from_table(table.assign(y=table["n"] / 7), "y", name="sixty", kind="numbers")
    task = Task(
        "search",
        data,
        ask={"use": "text-queries", "queries": 12},
        probe={"use": "nearest", "queries": "apart"},
        split={"use": "kfold", "folds": 3},
        metrics=["map"],
    )
    (run,) = karat.evaluate(Watches(), task, output=tmp_path, seed=1)
    assert run.results()["status"].tolist() == ["ok"] * 3
    asked = ask(data, {"use": "text-queries", "queries": 12}, 1)
    rows, queries = set(asked.items.iloc[:60]), set(asked.items.iloc[60:])
    assert len(queries) == 12
    tested: set[str] = set()
    for fold, texts in enumerate(FITTED):
        got = run.predictions("search", fold)
        assert set(texts) == (rows | queries) - set(got.group)
        assert set(got.candidates) == {60}
        tested |= set(got.group)
    assert tested == queries


# -- places ---------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(st.sampled_from([-np.inf, -0.5, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40),
    st.data(),
)
def test_places_are_those_of_a_sorted_list(scores, data):
    wanted = data.draw(
        st.lists(st.integers(0, len(scores) - 1), min_size=1, max_size=30, unique=True)
    )
    found = places(np.array(scores), np.array(wanted))
    # best first, strangers before answers of the same score, answers in the order given
    order = [i for i in range(len(scores)) if i not in wanted] + wanted
    order.sort(key=lambda i: -scores[i])
    expected = [order.index(i) + 1 if np.isfinite(scores[i]) else np.inf for i in wanted]
    assert found.tolist() == expected


def test_scores_within_rounding_are_equal():
    scores = np.array([0.5, 0.5 + 1e-14, 0.5 - 1e-14, 0.5 - 1e-9])
    assert places(scores.copy(), np.array([0])).tolist() == [3]
    assert places(scores.copy(), np.array([3])).tolist() == [4]
    assert nearest.nearest(scores) == 0
