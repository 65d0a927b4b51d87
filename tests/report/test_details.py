import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.predictions import Predictions
from karat.report.details import (
    MAX_CLASSES,
    MAX_POINTS,
    MAX_ROWS,
    calibration,
    confusion,
    details,
    scatter,
    worst_rows,
)


def labels(predictions, truth, probabilities=None, classes=("a", "b"), **more):
    kinds = {"answers": "classes", "truths": "classes"}
    given = None if probabilities is None else np.array(probabilities)
    return Predictions(
        predictions=np.array(list(predictions), dtype=object),
        truth=np.array(list(truth), dtype=object),
        classes=classes,
        probabilities=given,
        **kinds,
        **more,
    )


def numbers(predictions, truth, **more):
    return Predictions(predictions=np.array(predictions), truth=np.array(truth), **more)


@pytest.mark.parametrize(
    "folds, counts",
    [
        # summed over folds: target a once as a; target b twice as a, twice as b
        ([labels("aab", "abb"), labels("ba", "bb")], [[1, 0], [2, 2]]),
        # a predicted label without a class gets its own row
        ([labels("ca", "aa")], [[1, 0, 1], [0, 0, 0], [0, 0, 0]]),
        ([labels("ab", "aa", weight=np.array([3.0, 2.0]))], [[3, 2], [0, 0]]),
    ],
)
def test_confusion(folds, counts):
    found = confusion(list(enumerate(folds)))
    assert found["classes"] == list("abc"[: len(counts)])
    assert found["counts"].tolist() == counts


def test_rare_classes_are_merged():
    # class 00 has 40 questions, 01 has 39, …: the last 11 of 40 are gathered
    names = [f"{i:02}" for i in range(40)]
    truth = [name for i, name in enumerate(names) for _ in range(40 - i)]
    answers = ["39"] * len(truth)
    found = confusion([(0, labels(answers, truth, classes=tuple(names)))])
    assert len(found["classes"]) == MAX_CLASSES
    assert found["classes"] == [*names[:29], "other"]
    assert found["counts"][:, :-1].sum() == 0
    assert found["counts"][:, -1].tolist() == [*range(40, 11, -1), sum(range(1, 12))]


def test_a_class_called_other_is_not_mixed_up_with_the_others():
    names = [f"{i:02}" for i in range(40)]
    truth = ["other"] * 9 + names
    found = confusion([(0, labels(truth, truth, classes=(*names, "other")))])
    assert found["classes"][-2:] == ["other", "other classes"]
    assert found["counts"][-2:, -2:].tolist() == [[9, 0], [0, 12]]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1))
def test_no_question_is_lost(pairs):
    answers = labels(*zip(*[(f"{a}", f"{b}") for a, b in pairs], strict=True), classes=())
    found = confusion([(0, answers)])
    assert found["counts"].sum() == len(pairs)
    assert len(found["classes"]) == len(found["counts"]) <= MAX_CLASSES
    diagonal = sum(a == b for a, b in pairs)
    assert np.trace(found["counts"]) >= diagonal  # what is gathered may only add to it


@pytest.mark.parametrize(
    "answers, bins",
    [
        (
            labels("aaba", "abbb", [[0.92, 0.08], [0.98, 0.02], [0.35, 0.65], [0.5, 0.5]]),
            # 0.5 wrong; 0.65 right; 0.92 right and 0.98 wrong
            [(0.5, 0.0, 1), (0.65, 1.0, 1), (0.95, 0.5, 2)],
        ),
        # 1 is in the last bin, NaN in none
        (labels("aa", "ab", [[1.0, 0.0], [np.nan, 0.5]]), [(1.0, 1.0, 1)]),
        # the probability of the prediction, even if another one is higher
        (labels("b", "b", [[0.8, 0.2]]), [(0.2, 1.0, 1)]),
    ],
)
def test_calibration(answers, bins):
    found = [tuple(each.values()) for each in calibration([(0, answers)])]
    assert found == [pytest.approx(each) for each in bins]


def test_without_probabilities_in_every_fold_there_is_no_calibration():
    confident = labels("a", "a", [[0.9, 0.1]])
    assert calibration([(0, confident), (1, labels("a", "a"))]) is None
    assert calibration([]) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=200))
def test_bins_hold_every_answer_once(rows):
    chances = [[p, 1 - p] for p, _ in rows]
    truth = ["a" if right else "b" for _, right in rows]
    found = calibration([(0, labels(["a"] * len(rows), truth, chances))])
    assert sum(each["count"] for each in found) == len(rows)
    right = sum(each["accuracy"] * each["count"] for each in found)
    assert right == pytest.approx(sum(right for _, right in rows))
    assert all(0 <= each["confidence"] <= 1 for each in found)
    assert len(found) <= 10


def test_scatter_is_sampled_evenly():
    assert scatter([(0, numbers([2.0, np.nan], [1.0, 5.0])), (1, numbers([4.0], [3.0]))]) == [
        [1.0, 2.0],
        [3.0, 4.0],
    ]
    many = scatter([(0, numbers(np.arange(1000.0), np.arange(1000.0)))])
    assert len(many) == MAX_POINTS
    assert (many[0], many[-1]) == ([0.0, 0.0], [999.0, 999.0])
    assert scatter([(0, labels("a", "a"))]) is None


def test_worst_rows_are_sorted_by_confidence():
    chances = [[0.9, 0.1, 0], [0.6, 0.4, 0], [0.45, 0.35, 0.2], [0.7, 0.3, 0], [0.4, 0.3, 0.3]]
    answers = labels("aaaaa", "ababa", chances, classes=("a", "b", "c"))
    rows = worst_rows([(3, answers)], "classification")
    assert [row[:4] for row in rows] == [
        [3, 3, "b", "a"],  # wrong at 0.7
        [3, 1, "b", "a"],  # wrong at 0.6
        [3, 4, "a", "a"],  # right at 0.4
        [3, 2, "a", "a"],  # right at 0.45; 0.9 is not listed
    ]
    assert [row[4] for row in rows] == pytest.approx([0.7, 0.6, 0.4, 0.45])


def test_without_probabilities_only_wrong_labels_are_listed():
    rows = worst_rows([(0, labels("ab", "aa"))], "classification")
    assert rows == [[0, 1, "a", "b", None]]


def test_numbers_are_sorted_by_distance_or_distance_of_ranks():
    answers = numbers([1.0, 2.0, 30.0], [1.5, 5.0, 3.0])
    regression = worst_rows([(0, answers)], "regression")
    assert [row[1] for row in regression] == [2, 1, 0]  # 27, 3, 0.5 apart
    similarity = worst_rows([(0, answers)], "similarity")
    assert [row[1] for row in similarity] == [1, 2]  # ranks 1 2 3 against 1 3 2


def test_items_are_sorted_by_the_rank_of_the_correct_one():
    answers = Predictions(
        predictions=np.array(["x", "y"], dtype=object),
        truth=np.array(["u", "y"], dtype=object),
        answers="items",
        truths="items",
        rank=np.array([7.0, 1.0]),
        candidates=np.array([9, 9]),
    )
    assert worst_rows([(0, answers)], "analogy") == [[0, 0, "u", "x", None]]


def test_worst_rows_have_row_numbers_of_the_dataset():
    answers = labels(["b"] * 80, ["a"] * 80, question=np.arange(100, 180))
    rows = worst_rows([(0, answers), (1, answers)], "classification")
    assert len(rows) == MAX_ROWS
    assert [row[:2] for row in rows] == [[0, n] for n in range(100, 150)]


def test_clusters_and_empty_folds_have_no_details():
    clusters = Predictions(
        predictions=np.array([0, 1]),
        truth=np.array(["a", "b"], dtype=object),
        answers="clusters",
        truths="classes",
    )
    nothing = {"confusion": None, "calibration": None, "scatter": None, "rows": []}
    assert details([(0, clusters)], "clustering") == nothing
    assert details([(0, labels([], []))], "classification")["rows"] == []


def test_long_labels_are_cut():
    (row,) = worst_rows([(0, labels(["b" * 10_000], ["a" * 10_000]))], "classification")
    assert max(len(text) for text in row[2:4]) == 80
