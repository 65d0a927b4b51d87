"""Metrics by name, and scoring that never raises."""

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

from karat import registry
from karat.errors import DefinitionError
from karat.metrics import Metric, Undefined, get_metric, metric, score
from karat.metrics.base import NEEDS
from karat.predictions import Predictions

NUMBERS = Predictions(predictions=[1.0, 2.0], truth=[1.0, 4.0])
LABELS = Predictions(["a", "b"], ["a", "a"], answers="classes", truths="classes")
ALL = [
    *("acc", "balacc", "mean_pce", "max_pce", "precision", "recall", "f1", "f05", "f2"),
    *("f1_macro", "f1_weighted", "f1_micro", "mcc", "above_chance"),
    *("auc", "auc_ovr", "auc_ovo", "auc_micro", "pr_auc", "f1_best", "acc_best"),
    *("logloss", "brier"),
    *("mse", "rmse", "mae", "msle", "rmsle", "r2"),
    *("homogeneity", "completeness", "v_measure", "nmi", "ari", "ami"),
    *("fowlkes_mallows", "clustering_accuracy"),
    *("map", "map@k", "ndcg@k", "precision@k", "recall@k"),
    *("hits@k", "mrr", "mrr@k", "kendall", "spearman", "pearson", "harmonic"),
]
LOWER_IS_BETTER = {
    *("mean_pce", "max_pce", "logloss", "brier", "mse", "rmse", "mae", "msle", "rmsle"),
}


@pytest.fixture
def scratch(monkeypatch):
    """Let a test register metrics that are gone when it ends."""
    assert "acc" in registry.metrics
    for table in ("_parts", "_origins"):
        monkeypatch.setattr(registry.metrics, table, dict(getattr(registry.metrics, table)))


# -- the register ---------------------------------------------------------------------------


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
        return np.mean(predictions.predictions != predictions.truth)

    assert metric("error", higher_is_better=False, needs=("classes",))(error) is error
    part = get_metric("error")
    assert part == Metric(
        "error", error, False, (0.0, 1.0), ("classes",), "Share of wrong answers."
    )
    assert score("error", LABELS) == (0.5, "")


def test_a_metric_without_docstring(scratch):
    metric("silent")(lambda predictions: 0.25)
    assert get_metric("silent").about == ""
    assert score("silent", NUMBERS) == (0.25, "")


def test_a_taken_name_is_refused(scratch):
    with pytest.raises(DefinitionError, match='already a metric "acc".*karat.metrics.labels:acc'):
        metric("acc")(lambda predictions: 1.0)


def test_an_unknown_need_is_refused():
    with pytest.raises(DefinitionError, match='"odd".*"probability".*"probabilities"'):
        metric("odd", needs=("probability",))
    with pytest.raises(DefinitionError, match="classes, binary, "):
        metric("odd", needs=("zzz",))


# -- names ----------------------------------------------------------------------------------


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


def test_a_path_finds_the_decorated_function():
    assert get_metric("karat.metrics.numbers:rmse") is get_metric("rmse")


def test_an_entry_point_finds_the_decorated_function(scratch):
    registry.metrics.register("a_plugin", "karat.metrics.numbers:rmse")
    assert get_metric("a_plugin") is get_metric("rmse")
    assert score("a_plugin", NUMBERS) == score("rmse", NUMBERS)


def test_a_path_to_something_else_is_refused():
    with pytest.raises(DefinitionError, match='"math:floor".*@karat.metric'):
        get_metric("math:floor")


def test_asking_for_a_simple_metric_loads_no_heavy_library():
    code = (
        "import sys; from karat.metrics import score; from karat.predictions import Predictions;"
        "assert score('rmse', Predictions([1.0], [3.0])) == (2.0, '');"
        "print({'sklearn', 'scipy', 'pandas'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


# -- scoring --------------------------------------------------------------------------------


def test_score_gives_a_plain_float():
    value, reason = score("rmse", NUMBERS)
    assert type(value) is float
    assert value == pytest.approx(math.sqrt(2))
    assert reason == ""


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
    value, reason = score(name, predictions)
    assert value is None
    assert reason.startswith(f"Scoring {name}: ")
    assert missing in reason


def test_a_group_can_be_needed(scratch):
    metric("grouped", needs=("group",))(lambda predictions: 1.0)
    assert "group of each" in score("grouped", NUMBERS)[1]
    grouped = Predictions([1.0], [1.0], group=np.array(["g"]))
    assert score("grouped", grouped) == (1.0, "")


def test_three_classes_are_counted():
    three = Predictions([0.1, 0.2, 0.3], ["a", "b", "c"], truths="classes")
    assert "classes (3)" in score("auc", three)[1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_a_value_that_is_not_finite_is_undefined(scratch, value):
    metric("odd")(lambda predictions: value)
    assert score("odd", NUMBERS) == (None, f"Scoring odd: the value is {float(value)}.")


def test_an_exception_becomes_a_reason(scratch):
    def broken(predictions):
        raise ValueError("two\n   lines")

    metric("broken")(broken)
    assert score("broken", NUMBERS) == (None, "Scoring broken: ValueError: two lines")


def test_undefined_becomes_its_reason(scratch):
    def undefined(predictions):
        raise Undefined("nothing to see.")

    metric("undefined")(undefined)
    assert score("undefined", NUMBERS) == (None, "Scoring undefined: nothing to see.")


@pytest.mark.parametrize("value", [None, "many", [1.0, 2.0]])
def test_a_result_that_is_no_number_becomes_a_reason(scratch, value):
    metric("odd")(lambda predictions: value)
    nothing, reason = score("odd", NUMBERS)
    assert nothing is None
    assert reason.startswith("Scoring odd: ")


@pytest.mark.parametrize("name", ["acccc", "ndcg@0", "no.such.module:thing"])
def test_even_an_unknown_name_does_not_raise(name):
    value, reason = score(name, NUMBERS)
    assert value is None
    assert reason.startswith(f"Scoring {name}: ")


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


@pytest.mark.parametrize("name", ["rmse", "auc", "map", "ndcg@2", "mrr", "kendall", "pearson"])
def test_nan_predictions_are_undefined(name):
    value, reason = score(name, Predictions([0.1, np.nan, 0.3], [0, 1, 1]))
    assert value is None
    assert "NaN" in reason or "numeric" in reason


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


# -- classes --------------------------------------------------------------------------------


def test_known_classes_keep_their_order_and_others_follow():
    predictions = Predictions(
        ["x", "a"], ["b", "a"], answers="classes", truths="classes", classes=("b", "a")
    )
    assert predictions.labels == ("b", "a", "x")


def test_zero_and_one_count_as_two_classes():
    assert Predictions([0.5], [1]).labels == ("0", "1")
    assert Predictions([0.5, 0.1], [1, 2]).labels == ()


def test_items_are_no_classes():
    assert Predictions(["x"], ["x"], answers="items", truths="items").labels == ()
