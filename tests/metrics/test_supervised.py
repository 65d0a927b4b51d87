"""Metrics of classes and numbers by hand, and against scikit-learn."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import label_binarize

from karat.core import registry
from karat.core.predictions import Predictions
from karat.metrics import get_metric, score
from karat.metrics.metric import shared

steady = settings(deadline=None, derandomize=True)

FROM_LABELS = [
    *("acc", "balacc", "mean_pce", "max_pce", "precision", "recall", "f1", "f05", "f2"),
    *("f1_macro", "f1_weighted", "f1_micro", "mcc", "precision_weighted", "recall_weighted"),
]
FROM_CHANCES = ["auc_ovr", "auc_ovo", "auc_micro", "logloss", "brier"]
BINARY = ["auc", "pr_auc"]


def labels(answers, truth, classes=()):
    return Predictions(answers, truth, answers="classes", truths="classes", classes=classes)


def chances(probabilities, truth, classes):
    """Return predictions whose answer is the most probable class."""
    probabilities = np.asarray(probabilities, dtype=float)
    answers = np.array(classes)[probabilities.argmax(axis=1)]
    return Predictions(answers, truth, "classes", "classes", classes, probabilities)


def draw(seed, classes, rows=80, decimals=1):
    """Return random predictions, rounded so that many scores tie."""
    rng = np.random.default_rng(seed)
    tenths = rng.multinomial(10**decimals, rng.dirichlet(np.ones(len(classes)), rows))
    truth = np.array(classes, dtype=object)[rng.integers(0, len(classes), rows)]
    return chances(tenths / 10**decimals, truth, classes)


def value(name, predictions):
    found, reason = score(name, predictions)
    assert reason == ""
    return found


# truth    y y y y n n     answers  y y y n y n      positive: y, hits 3, answered 4, true 4
SIX = labels(list("yyynyn"), list("yyyynn"), classes=("n", "y"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acc", 4 / 6),
        ("balacc", (3 / 4 + 1 / 2) / 2),
        ("mean_pce", (1 / 4 + 1 / 2) / 2),
        ("max_pce", 1 / 2),
        ("precision", 3 / 4),
        ("recall", 3 / 4),
        ("f1", 3 / 4),
        ("f05", 3 / 4),
        ("f2", 3 / 4),
        ("f1_macro", (3 / 4 + 1 / 2) / 2),
        ("f1_weighted", (4 * 3 / 4 + 2 * 1 / 2) / 6),
        ("f1_micro", 4 / 6),
        ("precision_weighted", (4 * 3 / 4 + 2 * 1 / 2) / 6),
        ("recall_weighted", 4 / 6),
        ("mcc", (3 * 1 - 1 * 1) / np.sqrt(4 * 4 * 2 * 2)),
    ],
)
def test_six_rows_by_hand(name, expected):
    assert value(name, SIX) == pytest.approx(expected, abs=1e-15)


def test_f_scores_lean_to_their_side():
    # precision 1, recall 1/2
    shy = labels(list("ynnn"), list("yynn"), classes=("n", "y"))
    assert value("f1", shy) == pytest.approx(2 / 3)
    assert value("f05", shy) == pytest.approx(1.25 * 0.5 / (0.25 + 0.5))
    assert value("f2", shy) == pytest.approx(5 * 0.5 / (4 + 0.5))


def test_auc_by_hand():
    # the positives .9 and .4 against the negatives .4 and .1: 1 + 1 + ½ + 1 of 4
    p = chances([[0.1, 0.9], [0.6, 0.4], [0.6, 0.4], [0.9, 0.1]], list("yynn"), ("n", "y"))
    assert value("auc", p) == 3.5 / 4
    # retrieved: .9 (1 of 1), then both .4 together (2 of 3)
    assert value("pr_auc", p) == pytest.approx((1 + 2 / 3) / 2)
    assert value("brier", p) == pytest.approx((0.01 + 0.36 + 0.16 + 0.01) / 4)
    assert value("logloss", p) == pytest.approx(-np.log([0.9, 0.4, 0.6, 0.9]).mean())
    # of three classes it sums over classes
    p = chances([[0.5, 0.3, 0.2], [0, 0, 1]], ["a", "a"], ("a", "b", "c"))
    assert value("brier", p) == pytest.approx((0.25 + 0.09 + 0.04 + 2) / 2)


def test_pooling_two_columns_would_ask_for_calibration():
    # the order is perfect; pooled over both columns, .2 for the true class lies under .8
    p = chances([[0.1, 0.9], [0.2, 0.8]], ["y", "n"], ("n", "y"))
    assert value("auc_micro", p) == value("auc", p) == 1.0


def test_micro_auc_of_three_classes_by_hand():
    # true decisions .6 .3 against .3 .1 .5 .2: 4 + (½ + 1 + 0 + 1)
    p = chances([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]], ["a", "b"], ("a", "b", "c"))
    assert value("auc_micro", p) == pytest.approx(6.5 / 8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c"), tuple("abcdefg")])
def test_label_metrics_are_scikit_learns(seed, classes):
    p = draw(seed, classes)
    y, answers = p.target, p.predictions
    binary = len(classes) == 2
    how = {"average": "binary", "pos_label": "yes"} if binary else {"average": "macro"}
    expected = {
        "acc": sk.accuracy_score(y, answers),
        "balacc": sk.balanced_accuracy_score(y, answers),
        "precision": sk.precision_score(y, answers, zero_division=0, **how),
        "recall": sk.recall_score(y, answers, **how),
        "f1": sk.f1_score(y, answers, **how),
        "f05": sk.fbeta_score(y, answers, beta=0.5, **how),
        "f2": sk.fbeta_score(y, answers, beta=2, **how),
        "f1_macro": sk.f1_score(y, answers, average="macro"),
        "f1_weighted": sk.f1_score(y, answers, average="weighted"),
        "f1_micro": sk.f1_score(y, answers, average="micro"),
        "precision_weighted": sk.precision_score(y, answers, average="weighted", zero_division=0),
        "recall_weighted": sk.recall_score(y, answers, average="weighted"),
        "mcc": sk.matthews_corrcoef(y, answers),
    }
    for name, number in expected.items():
        assert value(name, p) == pytest.approx(number, abs=1e-12), name
    recalls = sk.recall_score(y, answers, average=None)
    assert value("max_pce", p) == pytest.approx(1 - recalls.min(), abs=1e-12)
    assert value("mean_pce", p) == pytest.approx(1 - recalls.mean(), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [("a", "b", "c"), tuple("abcdefg")])
def test_probability_metrics_are_scikit_learns(seed, classes):
    p = draw(seed, classes)
    y, q = p.target, p.probabilities
    how = {"average": "weighted", "labels": list(classes)}
    expected = {
        "auc_ovr": sk.roc_auc_score(y, q, multi_class="ovr", **how),
        "auc_ovo": sk.roc_auc_score(y, q, multi_class="ovo", **how),
        "auc_micro": sk.roc_auc_score(label_binarize(y, classes=list(classes)), q, average="micro"),
        "logloss": sk.log_loss(y, q, labels=list(classes)),
        "brier": np.mean(((q - label_binarize(y, classes=list(classes))) ** 2).sum(axis=1)),
    }
    for name, number in expected.items():
        assert value(name, p) == pytest.approx(number, abs=1e-12), name


@pytest.mark.parametrize("seed", range(10))
def test_binary_probability_metrics_are_scikit_learns(seed):
    p = draw(seed, ("no", "yes"))
    y, q = p.target == "yes", p.probabilities
    area = sk.roc_auc_score(y, q[:, 1])
    expected = {
        **dict.fromkeys(("auc", "auc_ovr", "auc_ovo", "auc_micro"), area),
        "pr_auc": sk.average_precision_score(y, q[:, 1]),
        "logloss": sk.log_loss(y, q),
        "brier": sk.brier_score_loss(y, q[:, 1]),
    }
    for name, number in expected.items():
        assert value(name, p) == pytest.approx(number, abs=1e-12), name


@pytest.mark.parametrize("seed", range(5))
def test_numeric_scores_do_for_two_classes(seed):
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 2, 60), rng.normal(size=60).round(1)
    as_classes = Predictions(scores, np.where(truth, "same", "other"), truths="classes")
    # "other" comes before "same", so "same" is the positive class
    for p in (as_classes, Predictions(scores, truth)):
        for name in ("auc", "auc_ovr", "auc_ovo", "auc_micro"):
            assert value(name, p) == pytest.approx(sk.roc_auc_score(truth, scores), abs=1e-12)
        assert value("pr_auc", p) == pytest.approx(sk.average_precision_score(truth, scores))


def test_infinite_scores_have_their_place():
    assert value("auc", Predictions([-np.inf, 0.2, np.inf], [0, 0, 1])) == 1.0
    assert value("auc", Predictions([-np.inf, 0.2, -np.inf], [0, 0, 1])) == 0.25


def test_scores_are_not_probabilities():
    p = Predictions([0.2, 0.9], ["a", "b"], truths="classes")
    for name in ("logloss", "brier"):
        assert "instead of class probabilities" in score(name, p)[1]


@pytest.mark.parametrize(
    "classes",
    [
        *(("B", "a"), ("NA", "yes"), ("None", "nan"), ("False", "True"), ("0", "1"), ("ß", "é")),
        *(("1,5", "2;5"), ("", " "), ("YES", "yes"), ("predictions", "truth")),
    ],
)
def test_a_perfect_model_is_perfect_whatever_the_labels(classes):
    p = chances([[0.8, 0.2], [0.1, 0.9], [0.7, 0.3]], [classes[i] for i in (0, 1, 0)], classes)
    again = Predictions.from_csv(p.to_csv(), answers="classes", truths="classes")
    for name in [*FROM_LABELS, *FROM_CHANCES, *BINARY]:
        if name in ("logloss", "brier"):
            continue
        best = 1.0 if get_metric(name).higher_is_better else 0.0
        assert value(name, p) == value(name, again) == best, name
    assert value("brier", p) == value("brier", again) == pytest.approx((0.04 + 0.01 + 0.09) / 3)
    assert value("logloss", p) == pytest.approx(-np.log([0.8, 0.9, 0.7]).mean())


def test_only_one_class_in_the_truth_has_no_ranking():
    p = chances([[0.8, 0.2], [0.1, 0.9]], ["b", "b"], ("a", "b"))
    for name in ("auc", "auc_ovr", "auc_ovo", "auc_micro", "pr_auc", "mcc"):
        reason = f"Scoring {name}: there is only one class in the target."
        assert score(name, p) == (None, reason)
    # what is well defined has a value
    assert value("acc", p) == value("balacc", p) == value("recall", p) == 0.5
    assert value("precision", p) == 1.0
    assert value("f1", p) == pytest.approx(2 / 3)
    assert value("logloss", p) == pytest.approx(-np.log([0.2, 0.9]).mean())
    assert value("brier", p) == pytest.approx((0.64 + 0.01) / 2)


def test_a_positive_class_absent_from_the_fold():
    answered = labels(["b", "a"], ["a", "a"], classes=("a", "b"))
    assert value("f1", answered) == value("precision", answered) == 0.0
    assert score("recall", answered)[1] == (
        'Scoring recall: the positive class "b" is not in the target.'
    )
    silent = labels(["a", "a"], ["a", "a"], classes=("a", "b"))
    for name in ("f1", "f05", "f2", "precision", "recall"):
        assert 'positive class "b" is not in the target' in score(name, silent)[1]
    assert value("acc", silent) == value("f1_macro", silent) == value("balacc", silent) == 1.0


def test_an_absent_class_does_not_lower_an_average():
    few = labels(list("aabb"), list("aabb"), classes=("a", "b", "c"))
    for name in FROM_LABELS:
        assert value(name, few) == (1.0 if get_metric(name).higher_is_better else 0.0), name


def test_a_class_absent_from_the_truth_but_answered():
    p = labels(list("acbb"), list("aabb"), classes=("a", "b", "c"))
    # recalls ½ 1, precisions 1 1 0, F1 2/3 1 0
    assert value("recall", p) == value("balacc", p) == 0.75
    assert value("precision", p) == pytest.approx(2 / 3)
    assert value("f1", p) == value("f1_macro", p) == pytest.approx((2 / 3 + 1) / 3)
    assert value("f1_weighted", p) == pytest.approx((2 * 2 / 3 + 2) / 4)


@pytest.mark.parametrize("seed", range(5))
def test_a_class_absent_from_the_fold_leaves_the_areas_of_the_others(seed):
    full = draw(seed, ("a", "b", "c", "d"))
    p = full.take(np.flatnonzero(full.target != "b"))
    q = p.probabilities
    there = ["a", "c", "d"]
    areas = [sk.roc_auc_score(p.target == c, q[:, "abcd".index(c)]) for c in there]
    weights = [(p.target == c).sum() for c in there]
    assert value("auc_ovr", p) == pytest.approx(np.average(areas, weights=weights), abs=1e-12)
    onehot = label_binarize(p.target, classes=list("abcd"))
    assert value("auc_micro", p) == pytest.approx(sk.roc_auc_score(onehot, q, average="micro"))
    assert value("logloss", p) == pytest.approx(sk.log_loss(p.target, q, labels=list("abcd")))
    assert value("brier", p) == pytest.approx(np.mean(((q - onehot) ** 2).sum(axis=1)))
    codes = np.searchsorted(there, p.target.astype(str))
    rest = q[:, [0, 2, 3]] + 0.1
    rest /= rest.sum(axis=1, keepdims=True)
    ovo = sk.roc_auc_score(codes, rest, multi_class="ovo", average="weighted")
    padded = chances(np.insert(rest, 1, 0.0, axis=1), p.target, p.classes)
    assert value("auc_ovo", padded) == pytest.approx(ovo, abs=1e-12)


def test_a_target_class_without_probabilities_is_undefined():
    p = chances([[0.8, 0.2], [0.1, 0.9]], ["a", "c"], ("a", "b"))
    for name in FROM_CHANCES:
        assert 'class "c" has no probabilities' in score(name, p)[1]
    assert "classes (3)" in score("auc", p)[1]
    assert value("acc", p) == 0.5


def test_one_known_class_has_no_positive():
    lone = labels(["a", "a"], ["a", "a"])
    assert 'one class, "a"' in score("f1", lone)[1]
    assert value("acc", lone) == 1.0


def test_constant_answers():
    p = chances([[0.5, 0.5]] * 4, list("abab"), ("a", "b"))
    assert value("mcc", p) == 0.0
    assert value("auc", p) == value("pr_auc", p) == value("acc", p) == value("balacc", p) == 0.5
    assert value("logloss", p) == pytest.approx(np.log(2))


def test_certain_and_wrong_is_finite():
    p = chances([[1, 0], [0, 1]], ["b", "b"], ("a", "b"))
    assert value("logloss", p) == pytest.approx(-np.log(np.finfo(float).eps) / 2)
    assert value("logloss", p) == pytest.approx(sk.log_loss([1, 1], p.probabilities, labels=[0, 1]))


@pytest.mark.parametrize(
    ("dtype", "worst"), [("float64", 36.0437), ("float32", 15.9424), ("float16", 6.9315)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_zero_probabilities_cost_the_epsilon_of_their_type(dtype, worst, weighted):
    given = np.array([[1, 0], [0, 1], [0.75, 0.25], [0, 1]], dtype=dtype)
    weight = np.array([1.0, 2.0, 1.0, 4.0]) if weighted else None
    p = Predictions(list("abab"), list("bbaa"), "classes", "classes", ("a", "b"), given)
    p = replace(p, weight=weight)
    counts = np.ones(4) if weight is None else weight
    by_hand = counts @ [worst, 0, -np.log(0.75), worst] / counts.sum()
    truth = [1, 1, 0, 0]
    # scikit-learn adds up in the type itself
    near = {"rel": 4 * float(np.finfo(dtype).eps), "abs": 2 * float(np.finfo(dtype).eps)}
    assert value("logloss", p) == pytest.approx(by_hand, rel=1e-4, abs=1e-3)
    assert value("logloss", p) == pytest.approx(
        sk.log_loss(truth, given, sample_weight=weight), **near
    )
    assert value("brier", p) == pytest.approx(
        sk.brier_score_loss(truth, given[:, 1], sample_weight=weight), **near
    )
    for name, theirs in (("auc", sk.roc_auc_score), ("pr_auc", sk.average_precision_score)):
        assert value(name, p) == pytest.approx(theirs(truth, given[:, 1], sample_weight=weight))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_types_of_probabilities_of_many_classes(dtype):
    classes = tuple("abcdefgh")
    exact = draw(3, classes, rows=200, decimals=2)
    given = exact.probabilities.astype(dtype)
    p = replace(exact, probabilities=given)
    assert p.precision == dtype
    near = 4 * float(np.finfo(dtype).eps)
    theirs = sk.log_loss(p.target, given, labels=list(classes))
    assert value("logloss", p) == pytest.approx(theirs, rel=near)
    wide = given.astype(float)
    onehot = label_binarize(p.target, classes=list(classes))
    assert value("brier", p) == pytest.approx(np.mean(((wide - onehot) ** 2).sum(axis=1)))
    ranks = sk.roc_auc_score(
        p.target, wide / wide.sum(axis=1, keepdims=True), multi_class="ovr", average="weighted"
    )
    assert value("auc_ovr", p) == pytest.approx(ranks, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([[1.5, -0.5], [0.5, 0.5]], "below 0 or above 1"),
        ([[1.0, 1.0], [0.5, 0.5]], "1 of 2 rows do not sum to 1"),
    ],
)
def test_invalid_probabilities(wrong, why):
    for name in ("logloss", "brier"):
        assert why in score(name, chances(wrong, ["a", "b"], ("a", "b")))[1]


def test_single_precision_probabilities_are_welcome():
    exact = draw(0, ("a", "b", "c"), decimals=3)
    rounded = replace(exact, probabilities=exact.probabilities.astype(np.float32))
    again = Predictions.from_csv(
        rounded.to_csv(), answers="classes", truths="classes", precision="float32"
    )
    for name in FROM_CHANCES:
        if name != "logloss":  # it depends on the type if there are zeros
            assert value(name, rounded) == pytest.approx(value(name, exact), abs=1e-5), name
        assert value(name, rounded) == value(name, again), name


@st.composite
def folds(draw_value):
    size = draw_value(st.integers(2, 5))
    classes = tuple("abcde"[:size])
    cells = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    weights = np.array(draw_value(st.lists(cells, min_size=1, max_size=25)), dtype=float)
    rows = len(weights)
    truth = draw_value(st.lists(st.sampled_from(classes), min_size=rows, max_size=rows))
    return chances(weights / weights.sum(axis=1, keepdims=True), truth, classes)


def check_range_and_order(p, name, random, **tolerance):
    low, high = get_metric(name).range
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, reason = score(name, p)
    rows = list(range(len(p)))
    random.shuffle(rows)
    shuffled, other_reason = score(name, p.take(np.array(rows)))
    assert reason == other_reason and "Error" not in reason
    if found is not None:
        assert low <= found <= high
        assert shuffled == pytest.approx(found, **tolerance)


@steady
@given(folds(), st.sampled_from([*FROM_LABELS, *FROM_CHANCES, *BINARY]), st.randoms())
def test_range_and_order_of_rows(p, name, random):
    check_range_and_order(p, name, random, abs=1e-12)


@steady
@given(folds(), st.sampled_from([*FROM_LABELS, *FROM_CHANCES, *BINARY]))
def test_perfect_answers_are_best(p, name):
    part = get_metric(name)
    onehot = p.target[:, None] == np.array(p.classes, dtype=object)
    found, _ = score(name, chances(onehot, p.target, p.classes))
    best = part.range[1] if part.higher_is_better else part.range[0]
    assert found is None or found == pytest.approx(best, abs=1e-12)
    if len(set(p.target)) == len(p.classes):
        assert (found is None) == (name in BINARY and len(p.classes) > 2)


NAMES = ["mse", "rmse", "mae", "msle", "rmsle", "r2"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", (1 + 0 + 4) / 3),
        ("rmse", np.sqrt(5 / 3)),
        ("mae", 1.0),
        ("msle", (np.log(2) ** 2 + np.log(6 / 4) ** 2) / 3),
        ("rmsle", np.sqrt((np.log(2) ** 2 + np.log(6 / 4) ** 2) / 3)),
        # the truth 0 1 5 has the mean 2: spread 4 + 1 + 9
        ("r2", 1 - 5 / 14),
    ],
)
def test_three_rows_by_hand(name, expected):
    assert value(name, Predictions([1, 1, 3], [0, 1, 5])) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_they_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    truth, answers = rng.gamma(2, size=(2, 50)) * 10.0 ** rng.integers(-3, 4)
    expected = {
        "mse": sk.mean_squared_error,
        "rmse": sk.root_mean_squared_error,
        "mae": sk.mean_absolute_error,
        "msle": sk.mean_squared_log_error,
        "rmsle": sk.root_mean_squared_log_error,
        "r2": sk.r2_score,
    }
    for name, function in expected.items():
        found = value(name, Predictions(answers, truth))
        assert found == pytest.approx(function(truth, answers), rel=1e-12)


@pytest.mark.parametrize("name", ["msle", "rmsle"])
def test_negative_values_have_no_logarithm(name):
    assert "1 of 2 predictions are negative." in score(name, Predictions([1, -2], [1, 2]))[1]
    assert "2 of 2 targets are negative." in score(name, Predictions([1, 2], [-1, -2]))[1]


@pytest.mark.parametrize(("answers", "truth"), [([1, 2], [3, 3]), ([3, 3], [3, 3]), ([1], [1])])
def test_a_constant_truth_has_no_variance_to_explain(answers, truth):
    assert score("r2", Predictions(answers, truth)) == (None, "Scoring r2: the target is constant.")


def test_infinite_answers_give_a_reason():
    for name in NAMES:
        assert "inf" in score(name, Predictions([np.inf, 1], [1, 2]))[1]


VALUES = st.lists(
    st.tuples(*[st.floats(0, 1e6, allow_subnormal=False)] * 2), min_size=1, max_size=30
)


@steady
@given(VALUES, st.sampled_from(NAMES), st.randoms())
def test_range_and_order_of_numbers(pairs, name, random):
    numbers = Predictions(*zip(*pairs, strict=True))
    check_range_and_order(numbers, name, random, rel=1e-9, abs=1e-12)


@steady
@given(VALUES, st.sampled_from(NAMES))
def test_the_truth_itself_is_best(pairs, name):
    truth = [pair[1] for pair in pairs]
    part = get_metric(name)
    found, _ = score(name, Predictions(truth, truth))
    assert found == (part.range[1] if part.higher_is_better else 0.0) or (
        name == "r2" and len(set(truth)) == 1
    )


WEIGHTED = [name for name in registry.metrics if getattr(registry.metrics.get(name), "weighted", 0)]


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_weight_counts_as_repetition(name):
    rng = np.random.default_rng(3)
    times = rng.integers(1, 4, size=40)
    if "numbers" in get_metric(name).needs:
        target, answers = rng.random((2, 40))
        made = Predictions(predictions=answers, target=target)
    else:
        count = 2 if "binary" in get_metric(name).needs else 3
        classes = tuple("abc"[:count])
        chances = rng.dirichlet(np.ones(count), size=40)
        target = np.array(classes, dtype=object)[rng.integers(count, size=40)]
        answers = np.array(classes, dtype=object)[chances.argmax(axis=1)]
        kinds = {"answers": "classes", "truths": "classes"}
        made = Predictions(answers, target, **kinds, classes=classes, probabilities=chances)
    repeated = made.take(np.repeat(np.arange(40), times))
    for scale in (1.0, 0.01):
        value, reason = score(name, replace(made, weight=times * scale))
        assert value == pytest.approx(score(name, repeated)[0]), reason


def test_metrics_without_weights_say_so():
    made = Predictions(predictions=[1, 2, 3], target=[1, 3, 2], weight=[1, 2, 3])
    value, reason = score("spearman", made)
    assert value is None and "weight" in reason


def test_precision_and_recall_at_the_best_f1_by_hand():
    # from the top: +, +, -, +, -: F1 is 2/4, 4/5, 4/6, 6/7, 6/8, so the threshold is at the fourth
    p = Predictions([0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 0, 1, 0])
    assert value("f1_best", p) == pytest.approx(6 / 7)
    assert value("f1_best_precision", p) == pytest.approx(3 / 4)
    assert value("f1_best_recall", p) == 1.0
    # a tie is passed at once: above 0.7 are two of three, below are three of five
    p = Predictions([0.9, 0.8, 0.8, 0.3, 0.3], [1, 1, 0, 1, 0])
    assert value("f1_best_precision", p) == pytest.approx(3 / 5)
    assert value("max_recall", p) == 1.0 and value("max_precision", p) == pytest.approx(3 / 5)


def test_what_metrics_share_is_computed_once():
    calls = []

    @shared
    def helper(predictions):
        calls.append(predictions)
        return len(predictions)

    one, other = Predictions([0.5], [1]), Predictions([0.5, 0.1], [1, 0])
    assert [helper(one), helper(one), helper(other)] == [1, 1, 2]
    assert calls == [one, other]


# -- Cluster metrics by hand, and against scikit-learn and SciPy ----------------------------------


SCIKIT_LEARN = {
    "homogeneity": sk.homogeneity_score,
    "completeness": sk.completeness_score,
    "v_measure": sk.v_measure_score,
    "nmi": sk.normalized_mutual_info_score,
    "ari": sk.adjusted_rand_score,
    "ami": sk.adjusted_mutual_info_score,
    "fowlkes_mallows": sk.fowlkes_mallows_score,
}
CLUSTER_METRICS = [*SCIKIT_LEARN, "clustering_accuracy"]


def clusters(answers, truth):
    return Predictions(answers, truth, answers="clusters", truths="classes")


def cluster_value(name, answers, truth):
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
    assert cluster_value(name, *FOUR) == pytest.approx(expected, abs=1e-12)


def test_the_v_measure_is_the_harmonic_mean():
    pure, whole = cluster_value("homogeneity", *FOUR), cluster_value("completeness", *FOUR)
    assert cluster_value("v_measure", *FOUR) == pytest.approx(2 / (1 / pure + 1 / whole))
    assert cluster_value("nmi", *FOUR) == cluster_value("v_measure", *FOUR)


@pytest.mark.parametrize("seed", range(20))
def test_cluster_metrics_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(5, 200))
    truth = rng.integers(0, rng.integers(1, 12), rows)
    answers = np.where(rng.random(rows) < 0.5, truth, rng.integers(0, rng.integers(1, 30), rows))
    labels = np.array([f"class {code}" for code in truth])
    for name, function in SCIKIT_LEARN.items():
        assert cluster_value(name, answers, labels) == pytest.approx(
            function(truth, answers), abs=1e-9
        )


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_is_the_hungarian_matching(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 120))
    truth = rng.integers(0, rng.integers(1, 15), rows)
    answers = rng.integers(0, rng.integers(1, 15), rows)
    table = contingency_matrix(truth, answers)
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    assert cluster_value("clustering_accuracy", answers, truth) == matched / rows


def test_the_best_matching_is_not_the_greedy_one():
    # cluster 0: 3 a, 2 b; cluster 1: 2 a. Greedy takes a-0 (3); a-1 and b-0 give 4
    assert cluster_value("clustering_accuracy", [0, 0, 0, 0, 0, 1, 1], list("aaabbaa")) == 4 / 7


@pytest.mark.parametrize("name", CLUSTER_METRICS)
@pytest.mark.parametrize("truth", ["aabbb", "aaaaa", "aabcc"])
def test_the_classes_themselves_are_best_under_any_numbering(name, truth):
    answers = [{"a": 7.0, "b": -1.0, "c": 0.0}[label] for label in truth]
    assert cluster_value(name, answers, list(truth)) == 1.0


@pytest.mark.parametrize("name", [n for n in CLUSTER_METRICS if n != "fowlkes_mallows"])
def test_all_alone_in_both_is_perfect(name):
    assert cluster_value(name, [3, 1, 2], list("abc")) == 1.0


def test_pairs_that_do_not_exist_have_no_precision():
    found = score("fowlkes_mallows", clusters([0, 0, 1], list("abc")))
    assert found == (None, "Scoring fowlkes_mallows: no two rows share a class.")


@pytest.mark.parametrize("answers", [[0, 0, 0, 0], [0, 1, 2, 3]])
def test_trivial_clusters_are_worth_nothing(answers):
    assert cluster_value("ari", answers, list("aabb")) == 0.0
    assert cluster_value("ami", answers, list("aabb")) == pytest.approx(0.0, abs=1e-12)
    assert cluster_value("clustering_accuracy", answers, list("aabb")) == 0.5


def test_thousands_of_clusters_need_no_square_table():
    rows = 20_000
    truth, answers = np.arange(rows) // 2, np.arange(rows)
    tracemalloc.start()
    assert cluster_value("clustering_accuracy", answers, truth) == 0.5
    assert cluster_value("ari", answers, truth) == 0.0
    assert cluster_value("homogeneity", answers, truth) == 1.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a table of 10 000 × 20 000 numbers would be 1.6 GB
    assert peak < 100e6


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd")), min_size=1, max_size=40)


@steady
@given(PAIRS, st.sampled_from(CLUSTER_METRICS), st.randoms())
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


@pytest.mark.parametrize("seed", range(3))
def test_the_area_of_some_rows_is_that_of_predictions_with_only_them(seed):
    rng = np.random.default_rng(seed)
    chances = rng.integers(0, 9, 60) / 9
    labels = np.array(["no", "yes"], dtype=object)
    truth, answers = labels[rng.integers(0, 2, 60)], labels[(chances > 0.5).astype(int)]
    both = np.column_stack([1 - chances, chances])

    def made(rows):
        kinds = ("classes", "classes", ("no", "yes"))
        return Predictions(answers[rows], truth[rows], *kinds, probabilities=both[rows])

    whole = made(np.arange(60))
    assert score("auc", whole)[0] == pytest.approx(sk.roc_auc_score(truth == "yes", chances))
    for rows in (np.arange(0, 60, 2), rng.permutation(60)[:40], np.repeat(np.arange(9, 30), 2)):
        assert score("auc", whole.take(rows)) == score("auc", made(rows))
