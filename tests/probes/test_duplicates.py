"""All pairs without their matrix: the same numbers as with it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.predictions import Predictions
from karat.probes import duplicates
from karat.probes.duplicates import Duplicates
from karat.vectors import Vectors


def entities(labels: list) -> Dataset:
    table = pd.DataFrame({"x": range(len(labels)), "entity": labels})
    return Dataset.from_table(table, target="entity", name="people", kind="classes")


def answer(matrix: np.ndarray, labels: list) -> Predictions:
    data = entities(labels)
    vectors = Vectors(np.asarray(matrix, dtype=np.float32), np.arange(len(labels)))
    return Duplicates().answer(data, vectors)


def test_four_people_by_hand():
    # cosines: (a, a') 1, (a, b) 0, (a, c) 0.6, (a', b) 0, (a', c) 0.6, (b, c) 0.8
    matrix = [[1, 0], [2, 0], [0, 1], [0.6, 0.8]]
    got = answer(matrix, ["a", "a", "b", "c"])
    assert got.weight.sum() == 6
    pairs = dict(zip(got.predictions.round(6), got.weight, strict=True))
    assert pairs[1.0] == 1  # the duplicate; the five others lie below it and count as one row
    assert sorted(got.weight) == [1, 5]
    assert score("auc", got) == (1.0, "")
    assert score("f1_best", got) == (1.0, "")


def test_a_duplicate_in_the_middle_by_hand():
    # the pair (b, c) is the same at 0.8: below (a, a') at 1, above the four others
    got = answer([[1, 0], [2, 0], [0, 1], [0.6, 0.8]], ["a", "x", "b", "b"])
    assert score("auc", got)[0] == pytest.approx(4 / 5)
    assert score("pr_auc", got)[0] == pytest.approx(1 / 2)
    assert score("f1_best", got)[0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("block", [7, 64, 10**6])
def test_the_same_as_the_full_matrix(monkeypatch, block):
    monkeypatch.setattr(duplicates, "BLOCK", block)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 40, size=120)
    matrix = rng.normal(size=(40, 5))[labels] + rng.normal(size=(120, 5)) * 0.7
    got = answer(matrix, labels.tolist())
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b = np.triu_indices(120, 1)
    grid = np.rint((unit[a] * unit[b]).sum(axis=1) * 1e6)
    truth = labels[a] == labels[b]
    assert got.weight.sum() == len(a) and got.weight[got.truth == 1].sum() == truth.sum()
    assert score("auc", got)[0] == pytest.approx(roc_auc_score(truth, grid), abs=1e-6)
    assert score("pr_auc", got)[0] == pytest.approx(average_precision_score(truth, grid), abs=1e-4)
    precision, recall, _ = precision_recall_curve(truth, grid)
    best = np.nanmax(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    assert score("f1_best", got)[0] == pytest.approx(best, abs=1e-4)


def test_equal_vectors_have_no_skill():
    got = answer(np.ones((6, 3)), ["a", "a", "b", "b", "c", "d"])
    assert score("auc", got)[0] == pytest.approx(0.5)


def test_the_file_gives_the_same_scores():
    rng = np.random.default_rng(0)
    got = answer(rng.normal(size=(30, 3)), [i // 2 for i in range(30)])
    again = Predictions.from_csv(got.to_csv(), answers="numbers", truths="numbers")
    for name in ("auc", "pr_auc", "f1_best"):
        assert score(name, again) == score(name, got)


def test_metrics_without_weights_are_undefined():
    got = answer(np.eye(3), ["a", "a", "b"])
    value, reason = score("spearman", got)
    assert value is None and "weight" in reason


def test_memory_is_below_that_of_all_pairs():
    rng = np.random.default_rng(0)
    labels = [i // 2 for i in range(6000)]
    matrix = rng.normal(size=(6000, 4)).astype(np.float32)
    tracemalloc.start()
    answer(matrix, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4  # a float32 matrix of all pairs alone would take this much


def test_unsuitable_questions_are_refused():
    with pytest.raises(DataError, match="no two items"):
        answer(np.eye(3), ["a", "b", "c"])
    numbers = Dataset.from_table(pd.DataFrame({"x": [1, 2], "y": [0.5, 1.5]}), target="y")
    vectors = Vectors(np.eye(2, dtype=np.float32), np.arange(2))
    with pytest.raises(DefinitionError, match="duplicates"):
        Duplicates().answerable(numbers, vectors)
    with pytest.raises(DefinitionError, match="missing: ignore"):
        Duplicates().unanswered(entities(["a", "a", "b"]))
