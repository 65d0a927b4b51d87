"""Metrics by name, requirements, reasons, and covered questions."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from karat.core import registry
from karat.core.predictions import Predictions
from karat.errors import DefinitionError
from karat.metrics import Metric, Undefined, get_metric, metric, score
from karat.metrics.metric import MTEB, NEEDS

steady = settings(deadline=None, derandomize=True)


def labels(answers, truth, classes=()):
    return Predictions(answers, truth, answers="classes", truths="classes", classes=classes)


def value(name, predictions):
    found, reason = score(name, predictions)
    assert reason == ""
    return found


@pytest.mark.parametrize(
    ("answers", "truth", "classes", "expected"),
    [
        # hits 3 of y and 1 of n, 4 answered y, 4 are y: (3*1 - 1*1) / sqrt(4*4*2*2) = 2/8
        ("yyynyn", "yyyynn", "ny", 0.25),
        ("yn", "ny", "ny", 0.0),  # below chance
        # f1 of a: 2*1/(2+1) = 2/3, of b: 2*1/(2+3) = 2/5, of c: 0 (one is c, one answered so)
        ("abbcb", "aabbc", "abc", ((2 / 3 + 2 / 5 + 0) / 3 - 1 / 3) / (2 / 3)),
        # classes that the fold lacks are counted, but do not change the mean f1
        ("ab", "ab", "abcd", 1.0),
        ("aa", "ab", "abcd", ((2 / 3 + 0) / 2 - 1 / 4) / (3 / 4)),
    ],
)
def test_above_chance_by_hand(answers, truth, classes, expected):
    predictions = labels(list(answers), list(truth), tuple(classes))
    assert value("above_chance", predictions) == pytest.approx(expected)


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


def test_best_accuracy_by_hand():
    # best: above 0.5, where 0.9 and 0.7 are positive; 0.4 is missed: 4 of 5
    scores = Predictions([0.9, 0.7, 0.5, 0.4, 0.1], [1, 1, 0, 1, 0])
    assert value("acc_best", scores) == 0.8
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


@pytest.mark.parametrize(("theirs", "ours"), MTEB.items())
def test_names_of_mteb_are_metrics_of_ours(theirs, ours):
    part = get_metric(theirs)
    assert part.name == theirs and part.compute is get_metric(ours).compute


@pytest.mark.parametrize("stem", ["ndcg", "map", "recall", "precision", "mrr", "hits", "hit_rate"])
def test_families_of_mteb(stem):
    ranks = Predictions(["x"] * 4, ["x"] * 4, "items", "items", rank=np.array([1, 2, 3, 9]))
    theirs, ours = f"{stem}_at_3", f"{stem}@3"
    assert get_metric(theirs).name == theirs
    assert value(theirs, ranks) == value(ours, ranks) > 0


def test_a_name_of_mteb_that_is_none_of_ours():
    assert 'no metric "nauc@3"' in score("nauc_at_3", Predictions([1.0], [1.0]))[1]


NUMBERS = Predictions(predictions=[1.0, 2.0], target=[1.0, 4.0])
LABELS = Predictions(["a", "b"], ["a", "a"], answers="classes", truths="classes")
ALL = [
    *("acc", "balacc", "mean_pce", "max_pce", "precision", "recall", "f1", "f05", "f2"),
    *("f1_macro", "f1_weighted", "f1_micro", "mcc", "above_chance"),
    *("auc", "auc_ovr", "auc_ovo", "auc_micro", "pr_auc", "f1_best", "acc_best"),
    *("precision_weighted", "recall_weighted", "f1_best_precision", "f1_best_recall"),
    *("max_ap", "max_f1", "max_accuracy", "max_precision", "max_recall"),
    *("logloss", "brier"),
    *("mse", "rmse", "mae", "msle", "rmsle", "r2"),
    *("homogeneity", "completeness", "v_measure", "nmi", "ari", "ami"),
    *("fowlkes_mallows", "clustering_accuracy"),
    *("map", "map@k", "ndcg@k", "precision@k", "recall@k"),
    *("hits@k", "hit_rate@k", "mrr", "mrr@k", "kendall", "spearman", "pearson", "harmonic"),
]
LOWER_IS_BETTER = {
    *("mean_pce", "max_pce", "logloss", "brier", "mse", "rmse", "mae", "msle", "rmsle")
}


@pytest.fixture
def scratch(monkeypatch):
    """Let a test register metrics that are gone when it ends."""
    assert "acc" in registry.metrics
    for table in ("_parts", "_origins"):
        monkeypatch.setattr(registry.metrics, table, dict(getattr(registry.metrics, table)))


@pytest.mark.parametrize("name", ALL)
def test_every_metric_is_described(name):
    part = registry.metrics.get(name)
    assert isinstance(part, Metric)
    assert part.name == name
    assert part.about.strip()
    assert part.range[0] < part.range[1]
    assert set(part.needs) <= set(NEEDS)
    assert part.higher_is_better is (name not in LOWER_IS_BETTER)
    assert registry.metrics.origin(name).startswith("karat.metrics.")


def test_the_list_above_is_complete():
    ours = [n for n in registry.metrics if registry.metrics.origin(n).startswith("karat.metrics.")]
    assert sorted(ours) == sorted(ALL)


def test_the_decorator_returns_the_plain_function(scratch):
    def error(predictions):
        """Share of wrong answers.

        More words.
        """
        return np.mean(predictions.predictions != predictions.target)

    assert metric("error", higher_is_better=False, needs=("classes",))(error) is error
    part = get_metric("error")
    assert part == Metric(
        "error", error, False, (0.0, 1.0), ("classes",), "Share of wrong answers."
    )
    assert score("error", LABELS) == (0.5, "")


def test_a_taken_name_is_refused(scratch):
    with pytest.raises(DefinitionError, match="karat.metrics.supervised:acc"):
        metric("acc")(lambda predictions: 1.0)


def test_an_unknown_need_is_refused():
    with pytest.raises(DefinitionError, match='"odd".*"probability".*"probabilities"'):
        metric("odd", needs=("probability",))
    with pytest.raises(DefinitionError, match="classes, binary, "):
        metric("odd", needs=("zzz",))


def test_a_family_binds_k(scratch):
    @metric("first@k")
    def first(predictions, k):
        """Report k."""
        return k / 10

    part = get_metric("first@3")
    assert (part.name, part.about) == ("first@3", "Report k.")
    assert score("first@3", NUMBERS) == (0.3, "")
    assert score("first@10", NUMBERS) == (1.0, "")


def test_a_bound_family_can_be_pickled():
    part = pickle.loads(pickle.dumps(get_metric("hits@2")))
    ranks = Predictions(["x"] * 4, ["x"] * 4, "items", "items", rank=np.array([1, 2, 3, 9]))
    assert part.compute(ranks) == 0.5


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@x", "ndcg@-1", "ndcg@1.5", "ndcg@"])
def test_a_wrong_k_is_a_definition_error(name):
    with pytest.raises(DefinitionError, match=rf'"{name}".*"ndcg@10"'):
        get_metric(name)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("acccc", "acc"), ("LogLos", "logloss"), ("ndgc@5", "ndcg@5"), ("hit@3", "hits@3")],
)
def test_an_unknown_name_suggests_the_nearest(wrong, near):
    with pytest.raises(DefinitionError, match=f'"{wrong}".*"{near}"'):
        get_metric(wrong)


def test_a_plain_metric_takes_no_k():
    with pytest.raises(DefinitionError, match='"acc@3"'):
        get_metric("acc@3")


def test_a_path_and_an_entry_point_find_the_decorated_function(scratch):
    assert get_metric("karat.metrics.supervised:rmse") is get_metric("rmse")
    registry.metrics.register("a_plugin", "karat.metrics.supervised:rmse")
    assert get_metric("a_plugin") is get_metric("rmse")
    assert score("a_plugin", NUMBERS) == score("rmse", NUMBERS)


def test_a_path_to_something_else_is_refused():
    with pytest.raises(DefinitionError, match='"math:floor".*@karat.metric'):
        get_metric("math:floor")


def test_asking_for_a_simple_metric_loads_no_heavy_library():
    code = (
        "import sys; from karat.metrics import score;"
        "from karat.core.predictions import Predictions;"
        "assert score('rmse', Predictions([1.0], [3.0])) == (2.0, '');"
        "print({'sklearn', 'scipy', 'pandas'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "predictions", "missing"),
    [
        ("acc", NUMBERS, "class labels"),
        ("rmse", LABELS, "classes (2)"),
        ("logloss", LABELS, "class probabilities"),
        ("ari", LABELS, "clusters"),
        ("map", LABELS, "score"),
        ("hits@3", NUMBERS, "rank"),
        ("mrr", LABELS, "score"),
        ("auc", NUMBERS, "two classes"),
    ],
)
def test_an_unmet_need_is_named(name, predictions, missing):
    found, reason = score(name, predictions)
    assert found is None and reason.startswith(f"Scoring {name}: ") and missing in reason


def test_a_group_can_be_needed(scratch):
    metric("grouped", needs=("group",))(lambda predictions: 1.0)
    assert "group of each" in score("grouped", NUMBERS)[1]
    grouped = Predictions([1.0], [1.0], group=np.array(["g"]))
    assert score("grouped", grouped) == (1.0, "")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (float("nan"), "nan"),
        (-float("inf"), "-inf"),
        (np.float64("nan"), "nan"),
        (None, "TypeError"),
        ("many", "ValueError"),
        ([1.0, 2.0], "TypeError"),
        (ValueError("two\n   lines"), "ValueError: two lines"),
        (Undefined("nothing to see."), "nothing to see."),
    ],
)
def test_a_result_that_is_no_finite_number_becomes_a_reason(scratch, result, reason):
    def odd(predictions):
        if isinstance(result, Exception):
            raise result
        return result

    metric("odd")(odd)
    found, why = score("odd", NUMBERS)
    assert found is None and why.startswith("Scoring odd: ") and reason in why


@pytest.mark.parametrize("name", ["acccc", "ndcg@0", "no.such.module:thing"])
def test_even_an_unknown_name_does_not_raise(name):
    found, reason = score(name, NUMBERS)
    assert found is None and reason.startswith(f"Scoring {name}: ")


def test_interrupts_are_not_swallowed(scratch):
    def interrupted(predictions):
        raise KeyboardInterrupt

    metric("interrupted")(interrupted)
    with pytest.raises(KeyboardInterrupt):
        score("interrupted", NUMBERS)


@pytest.mark.parametrize("name", ["acc", "rmse", "logloss", "ari", "map", "mrr", "kendall"])
def test_without_rows_the_value_is_undefined(name):
    kinds = {"acc": ("classes", "classes"), "ari": ("clusters", "classes")}
    answers, truths = kinds.get(name, ("numbers", "numbers"))
    empty = Predictions([], [], answers=answers, truths=truths)
    assert score(name, empty) == (None, f"Scoring {name}: there are no rows to score.")


def test_nan_counts_are_reported():
    answers = Predictions([1.0, np.nan], [1.0, 2.0])
    assert "1 of 2 predictions" in score("mae", answers)[1]
    truth = Predictions([1.0, 2.0], [np.nan, np.nan])
    assert "2 of 2 targets" in score("mae", truth)[1]
    clusters = Predictions([1.0, np.nan], ["a", "b"], answers="clusters", truths="classes")
    assert "1 of 2 predictions" in score("ari", clusters)[1]


def test_nan_probabilities_spoil_only_what_uses_them():
    chances = np.array([[np.nan, 0.5], [0.1, 0.9]])
    predictions = Predictions(["a", "b"], ["a", "b"], "classes", "classes", ("a", "b"), chances)
    assert score("acc", predictions) == (1.0, "")
    assert "1 of 2 rows of probabilities" in score("auc", predictions)[1]


def test_overflow_is_a_reason_and_no_warning(recwarn):
    value, reason = score("mse", Predictions([1e200], [-1e200]))
    assert (value, reason) == (None, "Scoring mse: the value is inf.")
    assert not recwarn.list


def test_known_classes_keep_their_order_and_others_follow():
    predictions = Predictions(
        ["x", "a"], ["b", "a"], answers="classes", truths="classes", classes=("b", "a")
    )
    assert predictions.labels == ("b", "a", "x")


def test_zero_and_one_count_as_two_classes():
    assert Predictions([0.5], [1]).labels == ("0", "1")
    assert Predictions([0.5, 0.1], [1, 2]).labels == ()


def relatedness(answers, known):
    """Three main entities with four related ones each; the truth counts down."""
    return Predictions(
        predictions=np.array(answers, dtype=float),
        target=np.tile([4.0, 3, 2, 1], len(answers) // 4),
        group=np.repeat(list("abc")[: len(answers) // 4], 4),
        known=np.array(known),
    )


def test_hits_over_all_and_over_the_covered():
    about = {"rank": [1, 2, np.inf, np.inf], "candidates": [9] * 4, "known": [1, 1, 1, 0]}
    found = Predictions(list("wxyz"), list("wwyz"), "items", "items", **about)
    assert score("hits@1", found) == (0.25, "")
    assert score("hits@1_covered", found) == (1 / 3, "")
    assert score("hits@2_covered", found) == (2 / 3, "")
    assert score("mrr_covered", found)[0] == pytest.approx(1.5 / 3)


def test_a_missing_main_entity_is_left_out_of_one_mean_and_costs_in_the_other():
    # a in the right order, b reversed, of c nothing is known: all at the tail
    found = relatedness([4, 3, 2, 1, 1, 2, 3, 4, -9, -9, -9, -9], [1] * 8 + [0] * 4)
    assert score("kendall_covered", found)[0] == pytest.approx(0.0)
    right = relatedness([4, 3, 2, 1, 8, 6, 4, 2, -9, -9, -9, -9], [1] * 8 + [0] * 4)
    assert score("kendall_covered", right)[0] == pytest.approx(1.0)
    assert score("kendall", right)[0] == pytest.approx(2 / 3)


def test_missing_related_entities_stay_at_the_tail_of_their_group():
    # the two best related are not known: a compacted list would score a perfect 1
    found = relatedness([-9, -9, 2, 1], [0, 0, 1, 1])
    wanted = kendalltau([-9, -9, 2, 1], [4, 3, 2, 1]).statistic
    assert wanted < 0
    assert score("kendall_covered", found)[0] == pytest.approx(wanted)


def test_without_a_gap_both_are_one():
    assert score("acc_covered", LABELS) == score("acc", LABELS) == (0.5, "")


def test_nothing_known_has_no_value():
    found = Predictions(predictions=[1.0, 2.0], target=[1.0, 2.0], known=[0, 0])
    assert "no rows" in score("rmse_covered", found)[1]


def test_the_harmonic_mean_is_that_of_both_correlations():
    rng = np.random.default_rng(3)
    truth = rng.random(40)
    answers = truth + rng.normal(0, 0.3, 40)
    p, s = pearsonr(answers, truth).statistic, spearmanr(answers, truth).statistic
    found = Predictions(predictions=answers, target=truth)
    assert score("harmonic", found)[0] == pytest.approx(2 * p * s / (p + s))


def test_opposite_signs_have_no_harmonic_mean():
    # Pearson is above 0 because of one far value, Spearman below: 2ps / (p + s) would explode
    found = Predictions(predictions=[5.0, 4, 3, 2, 1, 100], target=[1.0, 2, 3, 4, 5, 50])
    assert "> 0" in score("harmonic", found)[1]
