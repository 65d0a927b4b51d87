"""Cluster metrics by hand, and against scikit-learn and SciPy."""

import tracemalloc

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from karat.core.predictions import Predictions
from karat.metrics import get_metric, score

steady = settings(deadline=None, derandomize=True)

SCIKIT_LEARN = {
    "homogeneity": sk.homogeneity_score,
    "completeness": sk.completeness_score,
    "v_measure": sk.v_measure_score,
    "nmi": sk.normalized_mutual_info_score,
    "ari": sk.adjusted_rand_score,
    "ami": sk.adjusted_mutual_info_score,
    "fowlkes_mallows": sk.fowlkes_mallows_score,
}
NAMES = [*SCIKIT_LEARN, "clustering_accuracy"]


def clusters(answers, truth):
    return Predictions(answers, truth, answers="clusters", truths="classes")


def value(name, answers, truth):
    found, reason = score(name, clusters(answers, truth))
    assert reason == ""
    return found


# a a b b in the clusters 0 0 0 1
FOUR = ([0, 0, 0, 1], list("aabb"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # H(class | cluster) = ¾ H(⅓), H(class) = log 2
        ("homogeneity", 1 - 0.75 * -(np.log(1 / 3) / 3 + 2 * np.log(2 / 3) / 3) / np.log(2)),
        # H(cluster | class) = ½ log 2, H(cluster) = H(¼)
        ("completeness", 1 - 0.5 * np.log(2) / -(np.log(1 / 4) / 4 + 3 * np.log(3 / 4) / 4)),
        # pairs: 1 in both, 2 by class, 3 by cluster, of 6; expected 1
        ("ari", 0.0),
        ("fowlkes_mallows", 1 / np.sqrt(6)),
        ("clustering_accuracy", 3 / 4),
    ],
)
def test_four_rows_by_hand(name, expected):
    assert value(name, *FOUR) == pytest.approx(expected, abs=1e-12)


def test_the_v_measure_is_the_harmonic_mean():
    pure, whole = value("homogeneity", *FOUR), value("completeness", *FOUR)
    assert value("v_measure", *FOUR) == pytest.approx(2 / (1 / pure + 1 / whole))
    assert value("nmi", *FOUR) == value("v_measure", *FOUR)


@pytest.mark.parametrize("seed", range(20))
def test_they_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(5, 200))
    truth = rng.integers(0, rng.integers(1, 12), rows)
    answers = np.where(rng.random(rows) < 0.5, truth, rng.integers(0, rng.integers(1, 30), rows))
    labels = np.array([f"class {code}" for code in truth])
    for name, function in SCIKIT_LEARN.items():
        assert value(name, answers, labels) == pytest.approx(function(truth, answers), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_is_the_hungarian_matching(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 120))
    truth = rng.integers(0, rng.integers(1, 15), rows)
    answers = rng.integers(0, rng.integers(1, 15), rows)
    table = contingency_matrix(truth, answers)
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    assert value("clustering_accuracy", answers, truth) == matched / rows


def test_the_best_matching_is_not_the_greedy_one():
    # cluster 0: 3 a, 2 b; cluster 1: 2 a. Greedy takes a-0 (3); a-1 and b-0 give 4
    assert value("clustering_accuracy", [0, 0, 0, 0, 0, 1, 1], list("aaabbaa")) == 4 / 7


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("truth", ["aabbb", "aaaaa", "aabcc"])
def test_the_classes_themselves_are_best_under_any_numbering(name, truth):
    answers = [{"a": 7.0, "b": -1.0, "c": 0.0}[label] for label in truth]
    assert value(name, answers, list(truth)) == 1.0


@pytest.mark.parametrize("name", [n for n in NAMES if n != "fowlkes_mallows"])
def test_all_alone_in_both_is_perfect(name):
    assert value(name, [3, 1, 2], list("abc")) == 1.0


def test_pairs_that_do_not_exist_have_no_precision():
    found = score("fowlkes_mallows", clusters([0, 0, 1], list("abc")))
    assert found == (None, "Scoring fowlkes_mallows: no two rows share a class.")


@pytest.mark.parametrize("answers", [[0, 0, 0, 0], [0, 1, 2, 3]])
def test_trivial_clusters_are_worth_nothing(answers):
    assert value("ari", answers, list("aabb")) == 0.0
    assert value("ami", answers, list("aabb")) == pytest.approx(0.0, abs=1e-12)
    assert value("clustering_accuracy", answers, list("aabb")) == 0.5


def test_thousands_of_clusters_need_no_square_table():
    rows = 20_000
    truth, answers = np.arange(rows) // 2, np.arange(rows)
    tracemalloc.start()
    assert value("clustering_accuracy", answers, truth) == 0.5
    assert value("ari", answers, truth) == 0.0
    assert value("homogeneity", answers, truth) == 1.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a table of 10 000 × 20 000 numbers would be 1.6 GB
    assert peak < 100e6


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd")), min_size=1, max_size=40)


@steady
@given(PAIRS, st.sampled_from(NAMES), st.randoms())
def test_range_numbering_and_order_of_rows(pairs, name, random):
    low, high = get_metric(name).range
    found, reason = score(name, clusters(*zip(*pairs, strict=True)))
    random.shuffle(pairs)
    renumbered = [(-3 * cluster, label) for cluster, label in pairs]
    shuffled, other_reason = score(name, clusters(*zip(*renumbered, strict=True)))
    assert reason == other_reason
    if found is not None:
        assert low - 1e-12 <= found <= high
        assert shuffled == pytest.approx(found, abs=1e-9)
