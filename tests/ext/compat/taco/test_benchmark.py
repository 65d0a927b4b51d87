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
from karat.config.catalog import Catalog
from karat.core.registry import corruptions
from karat.corruptions.changed_cells import changed_share
from karat.errors import DataError, DefinitionError, Unavailable
from karat.ext.compat import taco
from karat.ext.compat.taco import (
    CORRUPTION_FUNCS,
    benchmark,
    run_benchmark,
    run_classification_suite,
    run_regression_suite,
)
from karat.ext.compat.taco.benchmark import synthetic
from karat.ext.models.automl import MatrixPredictor, TablePredictor
from karat.results.run import open_runs

NAMES = [
    "missingness_mcar",
    "missingness_mnar",
    "scaling_error",
    "categorical_remap",
    "noise_gaussian",
    "noise_uniform",
    "rare_class_dilution",
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
        monkeypatch.setattr(f"karat.ext.compat.taco.taco_plots.{name}", lambda *_, **__: [])
    return here


@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_has_the_documented_signature(name):
    parameters = inspect.signature(CORRUPTION_FUNCS[name]).parameters
    current = ["inplace", "col_idx", "precomputed_stds"]
    assert list(parameters) == ["X", "y", "severity", "rng", *current]
    assert parameters["rng"].default is None
    assert CORRUPTION_FUNCS[name].__name__ == name and CORRUPTION_FUNCS[name].__doc__
    assert tuple(CORRUPTION_FUNCS) == tuple(NAMES) and taco.__all__ == sorted(taco.__all__)


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
    options = ["draws", "pairs", "keep_predictions", "min_frequency", "missing_category", "models"]
    assert list(parameters) == [*wanted, "severities", *options]
    assert {parameters[name].kind for name in options} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["results_dir"].default == "results" and parameters["task"].default is None
    assert parameters["severities"].default == (0.1, 0.2, 0.4)
    for suite in (run_classification_suite, run_regression_suite):
        parameters = inspect.signature(suite).parameters
        assert list(parameters) == [
            "name",
            "X_train",
            "X_test",
            "y_train",
            "y_test",
            "results_dir",
            "severities",
            "random_state",
            *options,
        ]
        assert parameters["random_state"].default == 42


def test_own_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = TablePredictor("sklearn.linear_model:LogisticRegression", options={"C": 0.5})
    models = {"mine": half, "theirs": "logistic-regression"}
    table = run_classification_suite("own", *split(), severities=(0.2,), models=models)
    clean = table[(table["corruption"] == "clean") & (table["metric"] == "AUC")]
    assert list(clean["model"]) == ["mine", "theirs"] and clean["value"].between(0.7, 1).all()


def test_return_value_and_files(quick):
    returned = run_benchmark("own", *split(), results_dir="out", severities=(0.2,))
    assert returned == {
        "dataset_name": "own",
        "task": "classification",
        "results_dir": "out",
        "severities": [0.2],
    }
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "confusion_own_classification.csv",
        "metrics_own_classification.csv",
        "other_metrics_own_classification.csv",
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
    assert set(table["metric"]) == {"AUC"}
    others = pd.read_csv("results/other_metrics_own_classification.csv")
    assert set(others["metric"]) >= {"accuracy", "precision", "recall"}
    assert len(table) == 2 * (1 + 21 + 21) and len(others) == 6 * len(table)
    assert set(table["model"]) == {"logreg", "dummy"}
    assert set(table["dataset"]) == {"own"} and set(table["task"]) == {"classification"}


def test_regression_has_five_corruptions(quick):
    table = run_regression_suite("own", *split("regression"), severities=(0.1, 0.2, 0.4))
    assert list(table) == COLUMNS and table["value"].notna().all()
    names = set(table["corruption"])
    assert not any("mnar" in name or "dilution" in name for name in names)
    assert len(table) == 2 * (1 + 15 + 10) and set(table["metric"]) == {"RMSE"}
    others = pd.read_csv("results/other_metrics_own_regression.csv")
    assert list(others) == COLUMNS and set(others["metric"]) == {"mae", "r2"}
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
    table = pd.concat([table, pd.read_csv("results/other_metrics_own_classification.csv")])
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
        monkeypatch.setattr(f"karat.ext.compat.taco.taco_plots.{name}", lambda *_, **__: [])
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


pytestmark = pytest.mark.usefixtures("download_settings")


TABLE_NAMES = ("adult", "diabetes", "porto", "ieee", "nyc")
SYNTHETIC = ("diabetes", "porto", "ieee", "nyc")

ADULT = """\
age, workclass, education, hours-per-week, income
39, State-gov, Bachelors, 40, <=50K
50, ?, Bachelors, 13, >50K
38, Private, HS-grad, 40, <=50K.
53, Private, 11th, 40, >50K.
"""
DIABETES = """\
encounter_id,patient_nbr,race,age,weight,time_in_hospital,readmitted
2278392,8222157,Caucasian,[0-10),?,1,NO
149190,55629189,Caucasian,[10-20),?,3,>30
64410,86047875,?,[20-30),?,2,<30
500364,8222157,Caucasian,[30-40),[50-75),2,NO
"""
PORTO = """\
id,target,ps_ind_01,ps_ind_02_cat,ps_reg_03,ps_car_03_cat
7,0,2,2,0.718,-1
9,0,1,1,0.766,-1
13,1,5,4,-1.0,0
16,0,0,1,0.580,1
"""
IEEE = """\
TransactionID,isFraud,TransactionDT,TransactionAmt,ProductCD,card4,D1
2987000,0,86400,68.5,W,discover,14.0
2987001,0,86401,29.0,W,mastercard,
2987002,1,86469,59.0,C,visa,0.0
2987003,0,86499,50.0,W,,112.0
"""
NYC = """\
,BOROUGH,NEIGHBORHOOD,BLOCK,LOT,EASE-MENT,ADDRESS,APARTMENT NUMBER,ZIP CODE,\
GROSS SQUARE FEET,SALE PRICE
4,1,ALPHABET CITY             ,392,6, ,153 AVENUE B, ,10009,6440,6625000
5,1,ALPHABET CITY             ,399,26, ,234 EAST 4TH   STREET, ,10009, -  , -
6,1,CHELSEA                   ,399,39, ,197 EAST 3RD   STREET, ,10011,"2,272",0
7,2,CHELSEA                   ,402,21, ,154 EAST 7TH STREET, ,10009, -  ,10
8,3,HARLEM                    ,404,55, ,301 EAST 10TH   STREET, ,10009,2050,"1,000,000"
"""
FILES = {
    "adult": ("adult.csv", ADULT),
    "diabetes": ("diabetes_130_us_hospitals.csv", DIABETES),
    "porto": ("porto_seguro.csv", PORTO),
    "ieee": ("ieee_cis_fraud.csv", IEEE),
    "nyc": ("nyc_property_sales.csv", NYC),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return tmp_path


@pytest.fixture
def load(folder):
    """Write a data set's file, the usual one or another, and load it."""

    def make(name: str, text: str | None = None, file: str | None = None):
        path = folder / (file or FILES[name][0])
        path.parent.mkdir(exist_ok=True)
        path.write_text(FILES[name][1] if text is None else text)
        return Catalog().dataset(f"taco_{name}")()

    return make


def test_adult(load):
    data = load("adult")
    assert data.target.tolist() == ["no", "yes", "no", "yes"] and data.classes == ("no", "yes")
    assert list(data.items) == ["age", "workclass", "education", "hours-per-week"]
    assert data.items["workclass"].isna().tolist() == [False, True, False, False]
    assert data.items["education"].tolist() == ["Bachelors", "Bachelors", "HS-grad", "11th"]
    assert pd.api.types.is_integer_dtype(data.items["hours-per-week"])


def test_diabetes(load):
    data = load("diabetes")
    # readmitted after more than 30 days is not within 30 days
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert list(data.items) == ["race", "age", "weight", "time_in_hospital"], "no id is a feature"
    assert data.items["weight"].isna().sum() == 3 and data.items["race"].isna().sum() == 1
    assert data.group.tolist() == [8222157, 55629189, 86047875, 8222157]


def test_porto(load):
    data = load("porto")
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert list(data.items) == ["ps_ind_01", "ps_ind_02_cat", "ps_reg_03", "ps_car_03_cat"]
    # -1 is a missing value, also when written as -1.0
    assert data.items["ps_reg_03"].isna().tolist() == [False, False, True, False]
    assert data.items["ps_car_03_cat"].isna().tolist() == [True, True, False, False]


def test_ieee(load):
    data = load("ieee")
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert "TransactionID" not in data.items and "isFraud" not in data.items
    assert data.items["D1"].isna().sum() == 1 and data.items["card4"].isna().sum() == 1


def test_nyc(load):
    data = load("nyc")
    # 0 and 10 dollars and a dash are no sales
    assert data.target.tolist() == pytest.approx([np.log(6625001), np.log(1000001)])
    assert data.kind == "regression"
    assert list(data.items) == ["BOROUGH", "NEIGHBORHOOD", "ZIP CODE", "GROSS SQUARE FEET"]
    assert data.items["NEIGHBORHOOD"].tolist() == ["ALPHABET CITY", "HARLEM"]
    assert data.items["GROSS SQUARE FEET"].tolist() == [6440.0, 2050.0], "numbers, not text"


def test_dashes_with_spaces_are_missing_numbers(load):
    data = load("nyc", NYC.replace(", -  , -\n", ", -  ,500000\n").replace('",0\n', '",700000\n'))
    feet = data.items["GROSS SQUARE FEET"]
    assert feet.dtype == float and np.isnan(feet[1])
    assert feet[2] == 2272, "commas in thousands and dashes in one column"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("adult", "income", "class"),
        ("adult", "income", "Income"),
        ("nyc", "SALE PRICE", "sale_price"),
        ("nyc", "SALE PRICE", "SALE_PRICE"),
    ],
)
def test_other_names_of_the_target(load, name, old, new):
    usual = load(name)
    other = load(name, FILES[name][1].replace(old, new))
    assert other.target.tolist() == usual.target.tolist()
    assert list(other.items) == list(usual.items)


def test_flag_of_0_and_1_is_a_target(load):
    text = DIABETES.replace("readmitted", "readmitted_flag")
    text = text.replace("NO\n", "0\n").replace(",>30\n", ",0\n").replace(",<30\n", ",1\n")
    assert load("diabetes", text).target.tolist() == ["no", "no", "yes", "no"]
    assert load("ieee", IEEE.replace(",1,86469", ",1.0,86469")).target.tolist()[2] == "yes"


def test_other_target_columns_are_not_features(load):
    lines = DIABETES.splitlines()
    flags = ["readmitted_flag", "0", "0", "1", "0"]
    both = "\n".join(f"{line},{flag}" for line, flag in zip(lines, flags, strict=True))
    assert list(load("diabetes", both).items) == ["race", "age", "weight", "time_in_hospital"]


def test_column_called_group_stays_a_feature(load):
    lines = DIABETES.splitlines()
    cells = ["group", "a", "b", "a", "b"]
    data = load("diabetes", "\n".join(f"{c},{line}" for c, line in zip(cells, lines, strict=True)))
    assert data.items["group"].tolist() == ["a", "b", "a", "b"]
    assert data.group.tolist()[0] == 8222157


def test_rows_without_a_target_are_dropped(load):
    data = load("ieee", IEEE.replace("2987001,0", "2987001,"))
    assert len(data) == 3 and data.items["TransactionAmt"].tolist() == [68.5, 59.0, 50.0]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("diabetes", "diabetic_data.csv"),
        ("porto", "porto_seguro/train.csv"),
        ("ieee", "ieee_cis_fraud/train_transaction.csv"),
        ("nyc", "nyc_property_sales/nyc-rolling-sales.csv"),
    ],
)
def test_file_under_the_name_its_site_gives_it(load, name, file):
    assert len(load(name, file=file)) >= 2


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_about(load, name):
    about = load(name).about
    assert about["source"] == f"folder {FILES[name][0]}" and len(about["sha256"]) == 64
    assert about["license"] and about["citation"] and about["homepage"]
    assert "synthetic" not in str(about).lower()


@pytest.mark.parametrize("name", TABLE_NAMES[1:])
def test_missing_file_names_where_to_put_it(folder, name):
    with pytest.raises(Unavailable) as error:
        Catalog().dataset(f"taco_{name}")()
    assert f"put it at {folder}/{FILES[name][0]}. Tried" in str(error.value)
    assert "get it from https://" in str(error.value)


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_wrong_file_is_reported_with_its_path(load, folder, name):
    with pytest.raises(DataError) as error:
        load(name, "a,b\n1,2\n")
    message = str(error.value)
    assert str(folder / FILES[name][0]) in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("adult", "age,income\n3,low\n4,high\n", "low, high"),
        ("adult", "age,income\n3,2\n4,1\n", " 2, 1"),
        ("ieee", "a,isFraud\n3,0\n4,0\n", "got 0"),
        ("porto", "a,target\n3,10\n4,1\n", " 10, 1"),
        ("nyc", "a,SALE PRICE\n3,0\n4,1000\n", " 0, 1000"),
        ("nyc", "a,SALE PRICE\n3,none\n4,much\n", "none, much"),
        ("diabetes", "", "is empty."),
        ("diabetes", "patient_nbr,readmitted\n", "a header and no rows."),
    ],
)
def test_invalid_targets_are_reported_with_the_path(load, folder, name, text, word):
    with pytest.raises(DataError, match=word) as error:
        load(name, text)
    assert str(folder / FILES[name][0]) in str(error.value)


def test_one_class_alone_is_refused(load):
    with pytest.raises(DataError, match="only one class"):
        load("porto", "a,target\n3,1\n4,1\n")


def test_similar_column_is_suggested(load):
    with pytest.raises(DataError, match='"isfraud"'):
        load("ieee", IEEE.replace("isFraud", "isfraud"))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_are_marked_everywhere(name):
    catalog = Catalog()
    data = catalog.dataset(f"taco_{name}_synthetic")()
    assert data.name == f"taco_{name}_synthetic"
    assert data.about["title"].startswith("SYNTHETIC, no real row")
    assert data.about["source"] == "synthetic: made up by Karat, no real row"
    task = catalog.task(f"taco-{name}-synthetic")
    assert task.dataset().name == data.name
    suite = catalog.suite("taco-synthetic")
    assert suite.description.startswith("SYNTHETIC") and task.name in [t.name for t in suite]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_are_reproducible(name):
    one, two, other = (
        synthetic("a synthetic one", name, rows=300, seed=seed) for seed in (0, 0, 1)
    )
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert len(one) == 300 and one.items.shape[1] >= 6
    kinds = {pd.api.types.is_numeric_dtype(dtype) for dtype in one.items.dtypes}
    assert kinds == {True, False}, "numbers and categories, so that every corruption finds some"


@pytest.mark.parametrize(("name", "share"), [("diabetes", 0.11), ("porto", 0.04), ("ieee", 0.035)])
def test_synthetic_data_have_real_class_shares(name, share):
    data = synthetic("synthetic", name, rows=2000)
    assert data.classes == ("no", "yes")
    assert data.shares()["yes"] == pytest.approx(share, abs=0.001)


def test_synthetic_data_can_be_learned_imperfectly():
    from sklearn.metrics import r2_score
    from sklearn.tree import DecisionTreeRegressor

    data = synthetic("synthetic", "nyc", rows=3000)
    numbers = data.items.select_dtypes("number")
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(
        numbers[:2000], data.target[:2000]
    )
    assert 0.2 < r2_score(data.target[2000:], model.predict(numbers[2000:])) < 0.9


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (("x synthetic", "adult"), '"adult"'),
        (("diabetes", "diabetes"), '"synthetic"'),
        (("synthetic", "nyc", 0), "100"),
        (("synthetic", "nyc", 250.5), r"250\.5"),
    ],
)
def test_invalid_synthetic_data(given, word):
    with pytest.raises(DefinitionError, match=word):
        synthetic(*given)
