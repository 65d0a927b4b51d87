"""Scores above chance, at the best threshold and among the first k, by hand and by scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.metrics import get_metric, score
from karat.metrics.base import MTEB
from karat.predictions import Predictions

steady = settings(deadline=None, derandomize=True)


def labels(answers, truth, classes=()):
    return Predictions(answers, truth, answers="classes", truths="classes", classes=classes)


def value(name, predictions):
    found, reason = score(name, predictions)
    assert reason == ""
    return found


# -- above chance ---------------------------------------------------------------------------


def test_two_classes_are_their_correlation():
    # hits 3 of y and 1 of n, 4 answered y, 4 are y: (3*1 - 1*1) / sqrt(4*4*2*2) = 2/8
    six = labels(list("yyynyn"), list("yyyynn"), classes=("n", "y"))
    assert value("above_chance", six) == pytest.approx(0.25)


def test_scores_below_chance_are_zero():
    wrong = labels(list("yn"), list("ny"))
    assert value("above_chance", wrong) == 0.0 and value("mcc", wrong) == -1.0


def test_three_classes_by_hand():
    # f1 of a: 2*1/(2+1) = 2/3, of b: 2*1/(2+3) = 2/5, of c: 0 (one is c, one answered so)
    five = labels(list("abbcb"), list("aabbc"))
    f1 = (2 / 3 + 2 / 5 + 0) / 3
    assert value("f1_macro", five) == pytest.approx(f1)
    assert value("above_chance", five) == pytest.approx((f1 - 1 / 3) / (2 / 3))


def test_classes_that_the_fold_lacks_are_counted():
    # both rows right: f1 1 for the classes there are, whatever the data's number of classes
    right = labels(list("ab"), list("ab"), classes=("a", "b", "c", "d"))
    assert value("above_chance", right) == 1.0
    half = labels(list("aa"), list("ab"), classes=("a", "b", "c", "d"))
    f1 = (2 / 3 + 0) / 2
    assert value("above_chance", half) == pytest.approx((f1 - 1 / 4) / (3 / 4))


def test_one_class_has_no_chance():
    for one in (labels(["a"], ["a"]), labels(["a", "b"], ["a", "a"], classes=("a", "b"))):
        found, reason = score("above_chance", one)
        assert found is None and "only one class" in reason


@steady
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_it_is_scikit_learns(classes, seed):
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(classes)]
    truth = np.array(names)[np.arange(60) % classes]
    answers = np.where(rng.random(60) < 0.5, truth, rng.choice(names, 60))
    if classes == 2:
        expected = max(0.0, sk.matthews_corrcoef(truth, answers))
    else:
        f1 = sk.f1_score(truth, answers, average="macro")
        expected = max(0.0, (f1 - 1 / classes) / (1 - 1 / classes))
    assert value("above_chance", labels(answers, truth, tuple(names))) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 5])
def test_guessing_scores_almost_zero(classes):
    rng = np.random.default_rng(0)
    truth = np.array([f"c{i}" for i in range(classes)])[np.arange(20_000) % classes]
    assert value("above_chance", labels(rng.permutation(truth), truth)) < 0.02


# -- the best threshold ---------------------------------------------------------------------


def test_best_accuracy_by_hand():
    # best: above 0.5, where 0.9 and 0.7 are positive; 0.4 is missed: 4 of 5
    scores = Predictions([0.9, 0.7, 0.5, 0.4, 0.1], [1, 1, 0, 1, 0])
    assert value("acc_best", scores) == 0.8


def test_ties_stand_on_one_side():
    # one threshold parts nothing of the ties: all on one side, 2 of 3
    assert value("acc_best", Predictions([0.5, 0.5, 0.5], [1, 0, 0])) == pytest.approx(2 / 3)


@steady
@given(st.integers(0, 10**6), st.booleans())
def test_best_accuracy_is_the_best_of_all_thresholds(seed, tied):
    rng = np.random.default_rng(seed)
    truth = np.arange(30) % 3 == 0
    scores = rng.normal(size=30) + truth
    scores = scores.round(0 if tied else 6)
    thresholds = [*scores, np.inf]
    best = max(np.mean(truth == (scores >= threshold)) for threshold in thresholds)
    assert value("acc_best", Predictions(scores, truth.astype(int))) == pytest.approx(best)


@steady
@given(st.integers(0, 10**6))
def test_best_f1_and_average_precision_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(40) % 4 == 0
    scores = (rng.normal(size=40) + truth).round(1)
    p = Predictions(scores, truth.astype(int))
    precision, recall, _ = sk.precision_recall_curve(truth, scores)
    total = np.where(precision + recall > 0, precision + recall, 1)
    assert value("max_f1", p) == pytest.approx((2 * precision * recall / total).max())
    assert value("max_ap", p) == pytest.approx(sk.average_precision_score(truth, scores))


# -- the names of MTEB ----------------------------------------------------------------------


@pytest.mark.parametrize(("theirs", "ours"), MTEB.items())
def test_names_of_mteb_are_metrics_of_ours(theirs, ours):
    part = get_metric(theirs)
    assert part.name == theirs and part.compute is get_metric(ours).compute


@pytest.mark.parametrize("stem", ["ndcg", "map", "recall", "precision", "mrr", "hits"])
def test_families_of_mteb(stem):
    ranks = Predictions(["x"] * 4, ["x"] * 4, "items", "items", rank=np.array([1, 2, 3, 9]))
    theirs, ours = f"{stem}_at_3", f"{stem}@3"
    assert get_metric(theirs).name == theirs
    assert value(theirs, ranks) == value(ours, ranks) > 0


def test_a_name_of_mteb_that_is_none_of_ours():
    assert 'no metric "nauc@3"' in score("nauc_at_3", Predictions([1.0], [1.0]))[1]
