"""Items that ask for their class: places by hand, scikit-learn's numbers, and no peeking."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

import karat
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.models.adapters import adapt
from karat.predictions import Predictions
from karat.probes import nearest
from karat.probes.same_class import SameClass
from karat.solve import Probed
from karat.splits import split
from karat.task import Task
from karat.vectors import Vectors

steady = settings(deadline=None, derandomize=True, max_examples=60)


def questions(labels: list[object], items: list[int] | None = None) -> Dataset:
    """Return one question per label, about the item of its own number unless told otherwise."""
    asked = list(range(len(labels))) if items is None else items
    names = [f"text {i}" for i in range(max(asked) + 1)]
    table = pd.Series(names, index=[f"e{i}" for i in range(len(names))])
    return Dataset(
        "toy",
        table,
        pd.DataFrame({"item": [f"e{i}" for i in asked]}),
        np.array(labels, dtype=object),
        "classes",
        "text",
    )


def at(*degrees: float) -> Vectors:
    angles = np.radians(degrees)
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(len(degrees)))


def blind(data: Dataset, vectors: Vectors, **how: object) -> Predictions:
    probe = SameClass(random_state=0, **how)
    probe.fit(data.blind(), vectors)
    return probe.answer(data, vectors)


def lists(got: Predictions) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for query, answer, rank in zip(got.group, got.truth, got.rank, strict=True):
        found.setdefault(query, []).append((answer, rank))
    return found


# -- by hand --------------------------------------------------------------------------------

#: e0 and e3 are of one class, e1, e2 and e4 of the other
LABELS, PLACES = ["a", "b", "b", "a", "b"], at(0, 10, 30, 40, 90)


def test_every_item_is_a_query_among_all_others():
    got = blind(questions(LABELS), PLACES)
    assert lists(got) == {
        "e0": [("e3", 3)],  # e1, e2, e3, e4
        "e1": [("e2", 2), ("e4", 4)],  # e0, e2, e3, e4
        "e2": [("e1", 2), ("e4", 4)],  # e3, e1, e0, e4
        "e3": [("e0", 3)],  # e2, e1, e0, e4
        "e4": [("e2", 2), ("e1", 3)],  # e3, e2, e1, e0
    }
    first = {q: got.predictions[got.group == q][0] for q in lists(got)}
    assert first == {"e0": "e1", "e1": "e0", "e2": "e3", "e3": "e2", "e4": "e3"}
    assert set(got.candidates) == {4}
    pairs = [1 / 2, 2 / 4], [1 / 2, 2 / 4], [1 / 2, 2 / 3]
    expected = [1 / 3, 1 / 3, *(sum(pair) / 2 for pair in pairs)]
    assert score("map", got)[0] == pytest.approx(np.mean(expected))
    assert score("mrr@10", got)[0] == pytest.approx((1 / 3 * 2 + 1 / 2 * 3) / 5)
    assert score("mrr@2", got)[0] == pytest.approx(1 / 2 * 3 / 5)


def test_test_items_are_queries_among_train_items():
    data = questions(LABELS)
    probe = SameClass(random_state=0)
    probe.fit(data.take(np.array([0, 1, 2])), PLACES)
    got = probe.answer(data.take(np.array([4, 3])), PLACES)
    assert lists(got) == {"e3": [("e0", 3)], "e4": [("e2", 1), ("e1", 2)]}
    assert got.predictions.tolist() == ["e2", "e2", "e2"] and set(got.candidates) == {3}


def test_a_class_without_train_items_is_not_queried():
    data = questions(["a", "b", "a", "c"])
    probe = SameClass(random_state=0)
    probe.fit(data.take(np.array([0, 1])), at(0, 10, 20, 30))
    got = probe.answer(data.take(np.array([2, 3])), at(0, 10, 20, 30))
    assert lists(got) == {"e2": [("e0", 2)]}
    assert "1 of 2" in probe.notes[0]
    with pytest.raises(DataError, match="toy"):
        probe.answer(data.take(np.array([3])), at(0, 10, 20, 30))


def test_the_only_item_of_a_class_is_a_candidate_but_not_a_query():
    got = blind(questions(["a", "alone", "a"]), at(0, 10, 30))
    assert lists(got) == {"e0": [("e2", 2)], "e2": [("e0", 2)]}
    with pytest.raises(DataError, match="toy"):
        blind(questions(["a", "b", "c"]), at(0, 10, 30))


def test_equal_vectors_rank_last():
    got = blind(questions(["a", "b", "a", "b"]), Vectors(np.ones((4, 3)), np.arange(4)))
    assert got.rank.tolist() == [3, 3, 3, 3]
    nothing = blind(questions(["a", "b", "a", "b"]), Vectors(np.zeros((4, 3)), np.arange(4)))
    assert nothing.rank.tolist() == [3, 3, 3, 3]


def test_vectors_that_hardly_differ_are_told_apart():
    # numbers far from zero make cosines that agree in their first seven digits
    vectors = Vectors(np.array([[1.0, 1e2 + step] for step in (0, 1, 3, 4)]), np.arange(4))
    assert blind(questions(["a", "a", "b", "b"]), vectors).rank.tolist() == [1, 1, 1, 1]


def test_a_repeated_item_is_one_query_and_one_candidate():
    data = questions(["a", "b", "a", "a", "b"], items=[0, 1, 2, 0, 3])
    got = blind(data, at(0, 10, 30, 90))
    assert lists(got) == {
        "e0": [("e2", 2)],
        "e1": [("e3", 3)],
        "e2": [("e0", 2)],
        "e3": [("e1", 2)],
    }


def test_an_item_of_two_classes_has_both():
    data = questions(["a", "b", "a", "b"], items=[0, 0, 1, 2])
    got = blind(data, at(0, 10, 30))
    assert lists(got) == {"e0": [("e1", 1), ("e2", 2)], "e1": [("e0", 1)], "e2": [("e0", 2)]}


@pytest.mark.parametrize("labels", [[1, 2, 1, 2], [True, False, True, False], [0.5, 1.5, 0.5, 1.5]])
def test_labels_need_not_be_text(labels):
    assert blind(questions(labels), at(0, 5, 30, 40)).rank.tolist() == [2, 3, 3, 2]


# -- against others -------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 100, 2**20])
def test_the_same_as_scikit_learn(monkeypatch, block):
    monkeypatch.setattr(nearest, "BLOCK", block)
    rng = np.random.default_rng(4)
    matrix, labels = rng.normal(size=(80, 6)), rng.integers(0, 3, size=80)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    data, vectors = questions(labels.tolist()), Vectors(matrix, np.arange(80))
    whole = np.arange(80)
    for train, test in ((None, whole), (whole[:50], whole[50:])):
        probe = SameClass(random_state=0)
        probe.fit(data.blind() if train is None else data.take(train), vectors)
        got = probe.answer(data.take(test), vectors)
        average, gain = [], []
        for q in test:
            others = np.delete(whole, q) if train is None else train
            scores, relevant = unit[others] @ unit[q], labels[others] == labels[q]
            average.append(average_precision_score(relevant, scores))
            gain.append(ndcg_score([relevant.astype(int)], [scores], k=10))
        assert score("map", got)[0] == pytest.approx(np.mean(average), abs=1e-12)
        assert score("ndcg@10", got)[0] == pytest.approx(np.mean(gain), abs=1e-12)
        again = Predictions.from_csv(got.to_csv(), answers="items", truths="items")
        assert score("map", again) == score("map", got)


@steady
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=30))
def test_ties_count_against_the_answers(rows):
    labels = [label for label, _ in rows]
    angles = [angle * 10 for _, angle in rows]  # few angles, so many ties
    if not 1 < len(set(labels)) < len(labels):
        return
    got = lists(blind(questions(labels), at(*angles)))
    asked = [i for i, label in enumerate(labels) if labels.count(label) > 1]
    assert list(got) == [f"e{i}" for i in asked]
    for i in asked:
        others = [j for j in range(len(rows)) if j != i]
        far = {j: abs(angles[j] - angles[i]) for j in others}
        order = sorted(others, key=lambda j: (far[j], labels[j] == labels[i]))
        places = [order.index(j) + 1 for j in others if labels[j] == labels[i]]
        assert sorted(rank for _, rank in got[f"e{i}"]) == sorted(places)
        assert [rank for _, rank in got[f"e{i}"]] == sorted(places)


# -- which items are asked about ------------------------------------------------------------


def test_the_seed_draws_the_queries_and_candidates_stay():
    rng = np.random.default_rng(0)
    data = questions((rng.integers(0, 3, size=60)).tolist())
    vectors = Vectors(rng.normal(size=(60, 4)), np.arange(60))
    whole = lists(blind(data, vectors))

    def drawn(seed: int) -> dict[str, list[tuple[str, float]]]:
        probe = SameClass(queries=7, random_state=seed)
        probe.fit(data.blind(), vectors)
        return lists(probe.answer(data, vectors))

    assert len(drawn(1)) == 7 and drawn(1) == drawn(1) != drawn(2)
    assert all(whole[query] == found for query, found in drawn(1).items())


@pytest.mark.parametrize("queries", [0, -1, 2.0, True, "all"])
def test_queries_must_be_a_positive_integer(queries):
    with pytest.raises(DefinitionError, match="queries"):
        SameClass(queries=queries)


def test_unsuitable_questions_are_refused():
    frame = pd.DataFrame(
        {"a": list("xyz"), "b": list("yzx"), "y": [0.5, 1.5, 2.5], "c": list("ppq")}
    )
    numbers = Dataset.from_columns(frame, ["a"], "y")
    pairs = Dataset.from_columns(frame, ["a", "b"], "c")
    bags = Dataset.from_columns(frame.assign(a=[{"x": 1, "y": 1}] * 3), ["a"], "c")
    vectors = at(0, 10, 20)
    for data in (numbers, pairs, bags):
        with pytest.raises(DefinitionError, match="same-class"):
            SameClass().answerable(data, vectors)
    with pytest.raises(DefinitionError, match="missing: ignore"):
        SameClass().unanswered(questions(LABELS))


def test_items_without_vectors_are_neither_queries_nor_candidates():
    known = {f"e{i}": [float(np.cos(a)), float(np.sin(a))] for i, a in enumerate((0.0, 0.2, 0.5))}
    data = dataclasses.replace(questions(["a", "b", "a", "b"]), modality="entity")
    solver = Probed(adapt(known, "known"), SameClass(random_state=0), "ignore", seed=0)
    solver.fit(data.blind())
    answers = solver.answer(data)
    assert answers.coverage == 0.75 and answers.missing == ["e3"]
    assert lists(answers.predictions) == {"e0": [("e2", 2)], "e2": [("e0", 2)]}
    assert answers.predictions.question is None  # two answers, but not of two questions


# -- who sees which labels ------------------------------------------------------------------

SEEN: list[tuple[list[float], list[object] | None]] = []


class Watches:
    """Notes the rows and labels it is fitted on."""

    takes = ("table",)

    def fit(self, items: pd.DataFrame, y: object = None) -> Watches:
        SEEN.append((items["x"].tolist(), None if y is None else list(y)))
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        return np.column_stack([np.sin(items["x"]), np.cos(items["x"])])


@pytest.mark.parametrize("how", ["kfold", "all"])
def test_an_encoder_gets_only_train_labels(tmp_path, how):
    SEEN.clear()
    x = np.arange(30.0)
    labels = np.where(x % 3 == 0, "third", "other")
    data = Dataset.from_table(pd.DataFrame({"x": x, "y": labels}), "y", name="thirty")
    splits = {
        "kfold": {"use": "kfold", "folds": 3},
        "all": {"use": "all", "repeats": 3, "share": 0.8},
    }
    task = Task("ask", data, probe={"use": "same-class"}, split=splits[how], metrics=["map"])
    (run,) = karat.evaluate(Watches(), task, output=tmp_path, seed=5)
    assert run.results()["status"].tolist() == ["ok"] * 3
    folds = split(data, splits[how], 5)
    assert len(SEEN) == 3
    for (rows, truth), fold in zip(SEEN, folds, strict=True):
        assert rows == x[fold.train].tolist()
        assert truth == (labels[fold.train].tolist() if how == "kfold" else None)
        assert how == "all" or not set(rows) & set(x[fold.test])
    for number, fold in enumerate(folds):
        got = run.predictions("ask", number)
        tested = {str(i) for i in fold.test}
        assert set(got.group) == tested
        if how == "kfold":  # what is found are train rows
            assert set(got.truth) <= {str(i) for i in fold.train} and not set(got.truth) & tested
