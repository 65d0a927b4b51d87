"""TACO's functions: corruptions with its signature, and a benchmark that writes its files."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score

import karat
from karat.compat import taco
from karat.compat.taco import (
    CORRUPTION_FUNCS,
    benchmark,
    run_benchmark,
    run_classification_suite,
    run_regression_suite,
)
from karat.core.registry import corruptions
from karat.corruptions.view import changed_share
from karat.errors import DataError, DefinitionError
from karat.models.automl import MatrixPredictor
from karat.results.run import open_runs

NAMES = [
    *("missingness_mcar", "missingness_mnar", "scaling_error", "categorical_remap"),
    *("noise_gaussian", "noise_uniform", "rare_class_dilution"),
]
COLUMNS = ["dataset", "task", "corruption", "severity", "model", "metric", "value"]


def rows(size: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=size),
            "b": rng.integers(0, 50, size=size),
            "c": rng.choice(["x", "y", "z"], size=size),
        }
    )


def split(kind: str = "classification", train: int = 60, test: int = 40) -> tuple:
    """Return X_train, X_test, y_train, y_test; the target depends on column a."""
    X = rows(train + test)
    noisy = X["a"] + np.random.default_rng(1).normal(0, 0.5, len(X))
    targets = {
        "classification": (noisy > 0.4).astype(int),
        "words": pd.Series(np.where(noisy > 0.4, "yes", "no")),
        "three": pd.Series(np.digitize(noisy, [-0.5, 0.5])).map({0: "lo", 1: "mid", 2: "hi"}),
        "regression": 3 * noisy,
    }
    y = targets[kind]
    return X[:train], X[train:], y[:train], y[train:]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quick(here, monkeypatch):
    """Two fast models, and no plots."""
    few = {"classification": ("logreg", "dummy"), "regression": ("linreg", "dummy")}
    monkeypatch.setattr(benchmark, "MODELS", few)
    for name in ("plot_runs", "plot_confusions"):
        monkeypatch.setattr(benchmark, name, lambda *_, **__: [])
    return here


@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_has_the_documented_signature(name):
    parameters = inspect.signature(CORRUPTION_FUNCS[name]).parameters
    assert list(parameters) == ["X", "y", "severity", "rng"]
    assert parameters["rng"].default is None
    assert CORRUPTION_FUNCS[name].__name__ == name and CORRUPTION_FUNCS[name].__doc__
    assert list(CORRUPTION_FUNCS) == NAMES and taco.__all__ == sorted(taco.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_seed_is_42_a_number_or_a_generator(name):
    X, y = rows(), pd.Series([0, 0, 0, 1] * 15)
    corrupt = CORRUPTION_FUNCS[name]
    usual = corrupt(X, y, 0.4)
    for rng in (None, 42, np.random.default_rng(42)):
        for one, other in zip(usual, corrupt(X, y, 0.4, rng), strict=True):
            assert one.equals(other)
    others = [corrupt(X, y, 0.4, rng=seed) for seed in range(5)]
    assert any(not usual[0].equals(other) for other, _ in others)
    for one, other in zip(usual, corruptions.get(name)(X, y, 0.4, 42), strict=True):
        assert one.equals(other)
    assert changed_share((X, y), usual) > 0 and isinstance(usual[1], pd.Series)
    if name != "categorical_remap":
        array = X[["a", "b"]].to_numpy()
        assert isinstance(corrupt(array, y.to_numpy(), 0.4)[0], pd.DataFrame)


def test_documented_signatures_of_suites():
    wanted = ["dataset_name", "X_train", "X_test", "y_train", "y_test", "results_dir", "task"]
    parameters = inspect.signature(run_benchmark).parameters
    options = ["draws", "pairs", "keep_predictions", "min_frequency", "missing_category"]
    assert list(parameters) == [*wanted, "severities", *options]
    assert {parameters[name].kind for name in options} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["results_dir"].default == "results" and parameters["task"].default is None
    assert parameters["severities"].default == (0.1, 0.2, 0.4)
    for suite in (run_classification_suite, run_regression_suite):
        parameters = inspect.signature(suite).parameters
        assert list(parameters) == [
            *("name", "X_train", "X_test", "y_train", "y_test", "results_dir", "severities"),
            *("random_state", *options),
        ]
        assert parameters["random_state"].default == 42


def test_return_value_and_files(quick):
    returned = run_benchmark("own", *split(), results_dir="out", severities=(0.2,))
    assert returned == {
        "dataset_name": "own",
        "task": "classification",
        "results_dir": "out",
        "severities": (0.2,),
    }
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "confusion_own_classification.csv",
        "metrics_own_classification.csv",
        "runs",
    ]
    assert {run.model for run in open_runs(["out/runs"])} == {"logreg", "dummy"}


def test_one_row_per_view_model_and_metric(quick):
    run_benchmark("own", *split(), severities=(0.1, 0.2, 0.4))
    table = pd.read_csv("results/metrics_own_classification.csv")
    assert list(table) == COLUMNS
    views = table[["corruption", "severity"]].drop_duplicates()
    pairs = [f"{a}+{b}" for a, b in combinations(NAMES, 2)]
    assert views["corruption"].tolist() == [
        "clean",
        *(name for name in NAMES for _ in range(3)),
        *pairs,
    ]
    assert views["severity"].tolist() == ["0.0"] + ["0.1", "0.2", "0.4"] * 7 + ["0.2+0.2"] * 21
    assert set(table["metric"]) >= {"AUC", "accuracy", "precision", "recall"}
    assert len(table) == 2 * 7 * (1 + 21 + 21) and set(table["model"]) == {"logreg", "dummy"}
    assert set(table["dataset"]) == {"own"} and set(table["task"]) == {"classification"}


def test_regression_has_five_corruptions(quick):
    table = run_regression_suite("own", *split("regression"), severities=(0.1, 0.2, 0.4))
    assert list(table) == COLUMNS and table["value"].notna().all()
    names = set(table["corruption"])
    assert not any("mnar" in name or "dilution" in name for name in names)
    assert len(table) == 2 * 3 * (1 + 15 + 10) and set(table["metric"]) == {"RMSE", "mae", "r2"}
    written = pd.read_csv("results/metrics_own_regression.csv")
    assert written["value"].tolist() == pytest.approx(table["value"].tolist())
    assert not list(Path("results").glob("confusion*"))


def test_middle_severity_of_an_even_number(quick):
    for severities, middle in (((0.1, 0.3), "0.3+0.3"), ((0.1, 0.2, 0.25, 0.4), "0.25+0.25")):
        table = run_regression_suite("own", *split("regression"), severities=severities)
        assert table["severity"].iloc[-1] == middle
        assert set(table["severity"]) == {0.0, *severities, middle}, "0.25 is not 0.2"


def test_pairs_at_every_combination_of_severities(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "classification", ("dummy",))
    table = run_classification_suite("own", *split(), pairs="all")
    table = table[table["metric"] == "AUC"]
    assert len(table) == 1 + 21 + 63 + 126  # clean, single, the same and different severities
    labels = [f"{a}+{b}" for a in (0.1, 0.2, 0.4) for b in (0.1, 0.2, 0.4)]
    pairs = table[table["corruption"].str.contains("+", regex=False)]
    assert set(pairs.groupby("corruption")["severity"].agg(lambda part: len({*part}))) == {9}
    assert set(pairs["severity"]) == set(labels) and not table.duplicated().any()
    table = run_classification_suite("own", *split(), "other", pairs="none")
    assert len(table[table["metric"] == "AUC"]) == 1 + 21
    with pytest.raises(DefinitionError, match='"middle"'):
        run_benchmark("own", *split(), pairs="midle")


def test_predictions_of_corrupted_views_are_stored_on_request(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "classification", ("logreg",))
    options = {"severities": (0.2,), "draws": 2}
    few = run_classification_suite("own", *split(), "few", **options)
    whole = run_classification_suite("own", *split(), "all", keep_predictions="all", **options)
    pd.testing.assert_frame_equal(few, whole)
    name = "confusion_own_classification.csv"
    assert Path("few", name).read_text() == Path("all", name).read_text()
    files = {name: len([*Path(name).rglob("predictions.csv")]) for name in ("few", "all")}
    assert files == {"few": 1, "all": 1 + 2 * (7 + 21)}


def test_draws_are_averaged(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "regression", ("linreg",))
    options = {"severities": (0.2,), "pairs": "none"}
    table = run_regression_suite("own", *split("regression"), draws=3, **options)
    (run,) = open_runs(["results/runs"])
    scores = run.scores().query("metric == 'rmse' and corruption == 'noise_gaussian'")
    assert scores["draw"].tolist() == [0, 1, 2] and scores["value"].nunique() == 3
    found = table.query("metric == 'RMSE' and corruption == 'noise_gaussian'")["value"]
    assert found.tolist() == pytest.approx([scores["value"].mean()])


@pytest.mark.parametrize(("min_frequency", "columns"), [(0.3, 2), (None, 5)])
def test_rare_levels_are_merged_unless_asked(quick, monkeypatch, min_frequency, columns):
    seen = []
    fit = MatrixPredictor.fit
    monkeypatch.setattr(
        MatrixPredictor, "fit", lambda self, X, y: (seen.append(X.shape[1]), fit(self, X, y))[1]
    )
    monkeypatch.setitem(benchmark.MODELS, "classification", ("logreg",))
    words = pd.DataFrame({"w": [*"aabcde" * 10, *"aabcde" * 10]})
    y = np.arange(120) % 2
    options = {"severities": (), "min_frequency": min_frequency}
    run_benchmark("own", words[:60], words[60:], y[:60], y[60:], **options)
    assert seen == [columns]


def test_given_split_is_used_unchanged(quick, clean_registry, monkeypatch):
    seen: dict[str, list] = {"fit": [], "asked": []}

    @karat.predictor("watcher")
    class Watcher:
        def fit(self, X, y):
            seen["fit"].append((X.copy(), np.array(y)))
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            seen["asked"].append(X.copy())
            return np.repeat(self.classes_[0], len(X))

    monkeypatch.setitem(benchmark.MODELS, "classification", ("watcher",))
    X_train, X_test, y_train, y_test = split("words")
    given = [part.copy(deep=True) for part in (X_train, X_test, y_train, y_test)]
    mixed = X_test[["c", "a", "b"]]  # the same columns in another order
    run_benchmark("own", X_train, mixed, y_train, y_test, severities=(0.2,))
    ((X, y),) = seen["fit"]
    assert X.to_numpy().tolist() == X_train.to_numpy().tolist() and y.tolist() == y_train.tolist()
    assert seen["asked"][0].to_numpy().tolist() == X_test.to_numpy().tolist()
    assert len(seen["asked"]) == 1 + 7 + 21
    for part, before in zip((X_train, X_test, y_train, y_test), given, strict=True):
        assert part.equals(before), "input changed"


def test_clean_scores_equal_scikit_learn(quick):
    X_train, X_test, y_train, y_test = split()
    X_train, X_test = X_train[["a"]], X_test[["a"]]
    with pytest.warns(UserWarning, match="categorical_remap"):
        table = run_classification_suite("own", X_train, X_test, y_train, y_test, severities=(0.2,))
    clean = table[(table["corruption"] == "clean") & (table["model"] == "logreg")]
    clean = clean.set_index("metric")["value"]
    # one column: any logistic regression ranks the rows as the column does
    wanted = roc_auc_score(y_test, X_test["a"])
    assert clean["AUC"] == pytest.approx(wanted)
    scale = X_train["a"].mean(), X_train["a"].std(ddof=0)
    model = LogisticRegression().fit((X_train - scale[0]) / scale[1], y_train)
    predicted = model.predict((X_test - scale[0]) / scale[1])
    assert clean["accuracy"] == pytest.approx((predicted == y_test).mean())
    counts = pd.read_csv("results/confusion_own_classification.csv")
    counts = counts[(counts["corruption"] == "clean") & (counts["model"] == "logreg")]
    square = counts.pivot(index="truth", columns="prediction", values="count").fillna(0)
    assert (square.to_numpy() == confusion_matrix(y_test, predicted)).all()


@pytest.mark.parametrize("kind", ["classification", "words", "three", "regression"])
@pytest.mark.parametrize("given", [None, "right"])
def test_inferred_or_given_task(quick, kind, given):
    right = "regression" if kind == "regression" else "classification"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returned = run_benchmark("m", *split(kind), task=given and right, severities=())
    assert returned["task"] == right
    table = pd.read_csv(f"results/metrics_m_{right}.csv")
    first = {"three": "auc_ovr", "regression": "RMSE"}.get(kind, "AUC")
    assert table["metric"].iloc[0] == first and table["value"].notna().all()
    assert set(table["corruption"]) == {"clean"}


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([True, False] * 50, "classification"),
        (pd.Categorical(["u", "v"] * 50), "classification"),
        (pd.array([0, 1] * 50, dtype="Int8"), "classification"),
        ([0.0, 1.0] * 50, "classification"),
        (np.array([[0], [1]] * 50), "classification"),
        (np.linspace(0, 1, 100), "regression"),
    ],
    ids=["flags", "categories", "nullable", "whole floats", "column", "fractions"],
)
def test_target_types(quick, y, task):
    X = rows(100)
    returned = run_benchmark("m", X[:60], X[60:], y[:60], y[60:], severities=())
    assert returned["task"] == task


def test_integer_targets_give_a_warning(quick):
    X_train, X_test, _, _ = split()
    grades, prices = np.arange(100) % 5, np.arange(100) * 1000
    for y, taken in ((grades, "classification"), (prices, "regression")):
        with pytest.warns(UserWarning, match=taken):
            returned = run_benchmark("m", X_train, X_test, y[:60], y[60:], severities=())
        assert returned["task"] == taken
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_benchmark(
            "m", X_train, X_test, grades[:60], grades[60:], task="regression", severities=()
        )


def test_arrays_and_frames_give_the_same_numbers(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "classification", ("logreg",))
    X_train, X_test, y_train, y_test = split()
    X_train, X_test = X_train[["a", "b"]].astype(float), X_test[["a", "b"]].astype(float)
    with pytest.warns(UserWarning, match="categorical_remap"):
        one = run_classification_suite("m", X_train, X_test, y_train, y_test, "one", (0.2,))
        arrays = [part.to_numpy() for part in (X_train, X_test, y_train, y_test)]
        other = run_classification_suite("m", *arrays, "other", (0.2,))
    pd.testing.assert_frame_equal(one, other)


def test_random_state_changes_corruptions_only(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "classification", ("logreg",))
    tables = [
        run_classification_suite("m", *split(), f"out{i}", (0.2,), seed)
        for i, seed in enumerate((42, 42, 7))
    ]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    clean = tables[0]["corruption"] == "clean"
    assert tables[0]["value"][clean].equals(tables[2]["value"][clean])
    assert not tables[0]["value"][~clean].equals(tables[2]["value"][~clean])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["three", "regression"])
def test_all_models_run_or_give_one_warning(here, kind, monkeypatch):
    for name in ("plot_runs", "plot_confusions"):
        monkeypatch.setattr(benchmark, name, lambda *_, **__: [])
    end = "_reg" if kind == "regression" else ""
    lacking = {f"xgb{end}": "xgboost", f"ffn{end}": "torch"}
    lost = [name for name, library in lacking.items() if importlib.util.find_spec(library) is None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_benchmark("own", *split(kind), severities=(0.2,))
    messages = [str(each.message) for each in caught if each.category is UserWarning]
    assert len(messages) == bool(lost)
    for name in lost:
        assert name in messages[0] and lacking[name] in messages[0]
    (path,) = Path("results").glob("metrics_*.csv")
    table = pd.read_csv(path)
    names = ["linreg", "svr"] if kind == "regression" else ["logreg", "svm"]
    names += [f"{name}{end}" for name in ("rf", "xgb", "ffn")]
    assert list(table["model"].unique()) == [name for name in names if name not in lost]
    assert table["value"].notna().all()
    (run,) = [run for run in open_runs(["results/runs"]) if run.model == f"rf{end}"]
    assert set(run.scores()["draw"]) == {0}


class Broken:
    def fit(self, X, y):
        raise ValueError("out of order")

    def predict(self, X):
        return X


def test_failed_model_gives_a_warning(quick, clean_registry, monkeypatch):
    karat.predictor("taco-test-broken")(Broken)
    monkeypatch.setitem(benchmark.MODELS, "classification", ("taco-test-broken", "dummy"))
    with pytest.warns(UserWarning, match="taco-test-broken.*out of order"):
        table = run_classification_suite("m", *split(), severities=(0.2,))
    assert set(table["model"]) == {"dummy"}
    monkeypatch.setitem(benchmark.MODELS, "classification", ("taco-test-broken",))
    with pytest.raises(DataError, match="out of order"):
        run_classification_suite("m", *split(), severities=(0.2,))


def test_row_limit_gives_a_warning(quick, monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "classification", ("svm",))
    X = rows(5200)
    y = (X["a"] > 0).astype(int)
    with pytest.warns(UserWarning, match="svm.*5,000"):
        run_benchmark("m", X[:5100], X[5100:], y[:5100], y[5100:], severities=())


def test_plot_names(here, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(benchmark, "MODELS", {"regression": ("linreg",)})
    run_benchmark("own", *split("regression"), severities=(0.2,))
    names = {path.name for path in Path("results/own_plots").iterdir()}
    five = [name for name in NAMES if name not in ("missingness_mnar", "rare_class_dilution")]
    pairs = [f"{a}_plus_{b}" for a, b in combinations(five, 2)]
    assert len(pairs) == 10
    assert names == {
        "own_clean_RMSE_bar.png",
        *(f"own_{name}_RMSE_curve.png" for name in (*five, *pairs)),
    }


def test_missing_matplotlib_gives_a_warning(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(benchmark, "MODELS", {"regression": ("linreg",)})
    with pytest.warns(UserWarning, match="matplotlib"):
        run_benchmark("own", *split("regression"), severities=(0.2,))
    assert Path("results/metrics_own_regression.csv").is_file()
    assert not Path("results/own_plots").exists()


def changed(place: int, value) -> tuple:
    parts = list(split())
    parts[place] = value(parts[place])
    return tuple(parts)


@pytest.mark.parametrize(
    ("parts", "more", "match"),
    [
        (split(), {"task": "clasification"}, '"classification"'),
        (split(), {"task": "both"}, "both"),
        (split("words"), {"task": "regression"}, "numbers"),
        (split("regression"), {"task": "classification"}, "y"),
        (split(), {"severities": (0.1, 2.0)}, r"2\.0"),
        (split(), {"severities": (-0.1,)}, r"-0\.1"),
        (split(), {"severities": ("much",)}, "much"),
        (split(), {"dataset_name": ""}, "dataset_name"),
        (changed(0, lambda X: X[:10]), {}, "X_train has 10 .*60"),
        (changed(3, lambda y: y[:10]), {}, "X_test has 40 .*10"),
        (changed(1, lambda X: X.rename(columns={"a": "A"})), {}, 'X_test .*"a"'),
        (changed(1, lambda X: X.assign(d=1)), {}, 'X_train .*"d"'),
        (changed(0, lambda X: X[:0]), {}, "X_train"),
        (changed(0, lambda X: X["a"].to_numpy()), {}, "X_train"),
        (changed(2, lambda y: y.replace(1, np.nan)), {}, r"y_train .*\d+ of 60"),
        (changed(2, lambda y: np.zeros((60, 2))), {}, "y_train"),
        ((*split()[:2], [0] * 60, [0] * 40), {"task": "classification"}, "class"),
    ],
)
def test_bad_input_is_reported_before_anything_runs(quick, parts, more, match):
    given = {"dataset_name": "own", "severities": (0.2,), **more}
    name = given.pop("dataset_name")
    with pytest.raises((DataError, DefinitionError), match=match):
        run_benchmark(name, *parts, **given)
    assert not list(quick.glob("results/*.csv"))
