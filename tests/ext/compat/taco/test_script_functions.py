"""TACO's loaders, models, scores and plots, and the names that Karat declines."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.pipeline import Pipeline

from karat.compat import taco
from karat.errors import KaratError

LOADERS = {
    "load_adult": ("income", [">50K", "<=50K"]),
    "load_diabetes_130": ("readmitted", ["<30", "NO"]),
    "load_porto_seguro": ("target", [1, 0]),
    "load_ieee_cis": ("isFraud", [1, 0]),
}


def rows(count: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=count), "w": rng.choice(["x", "y"], count)})


@pytest.mark.parametrize("name", LOADERS)
def test_loaders_return_four_parts_with_targets_0_and_1(name, tmp_path):
    target, (yes, no) = LOADERS[name]
    table, positive = rows(), np.arange(120) % 3 == 0
    path = tmp_path / "own.csv"
    table.assign(**{target: np.where(positive, yes, no)}).to_csv(path, index=False)
    X_train, X_test, y_train, y_test = getattr(taco, name)(path)
    assert list(X_train) == ["a", "w"] and (len(X_train), len(X_test)) == (96, 24)
    assert set(y_train) == {0, 1} and y_train.dtype == np.int8
    assert (y_train.sum(), y_test.sum()) == (32, 8)  # stratified
    both = pd.concat([X_train.assign(y=y_train), X_test.assign(y=y_test)])
    wanted = dict(zip(table["a"].round(9), positive, strict=True))
    assert all(wanted[round(a, 9)] == y for a, y in zip(both["a"], both["y"], strict=True))
    other = getattr(taco, name)(path, random_state=7)
    assert not other[0]["a"].equals(X_train["a"])


def test_prices_are_logarithms(tmp_path):
    path = tmp_path / "sales.csv"
    rows().assign(**{"SALE PRICE": 2000 + np.arange(120)}).to_csv(path, index=False)
    _, X_test, y_train, y_test = taco.load_nyc_property_sales(path)
    assert len(X_test) == 24 and np.expm1([*y_train, *y_test]).round().min() == 2000


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="porto-seguro-safe-driver") as error:
        taco.load_porto_seguro(tmp_path / "porto_seguro.csv")
    assert isinstance(error.value, KaratError) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_models_are_the_last_step_of_a_pipeline(kind):
    table = rows()
    noisy = table["a"] + (table["w"] == "x") + np.random.default_rng(1).normal(0, 0.5, 120)
    y = (noisy > 0.5).astype(int) if kind == "classification" else noisy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models whose library is not installed
        build = taco.build_classifiers if kind == "classification" else taco.build_regressors
        models = build(random_state=3)
    assert set(models) >= ({"logreg", "svm", "rf"} if kind == "classification" else {"linreg"})
    name = "logreg" if kind == "classification" else "linreg"
    pipe = Pipeline([("pre", taco.build_preprocessor(table)), ("model", models[name])])
    score = taco.evaluate_classifier if kind == "classification" else taco.evaluate_regressor
    value, nothing = score(pipe, table[:90], y[:90], table[90:], y[90:])
    assert nothing is None
    if kind == "classification":
        assert value == roc_auc_score(y[90:], pipe.predict_proba(table[90:])[:, 1]) > 0.8
        assert taco.evaluate_classifier(pipe, None, None, table, y, refit=False)[0] > 0.8
    else:
        assert value == pytest.approx(root_mean_squared_error(y[90:], pipe.predict(table[90:])))


def test_a_classifier_without_probabilities_is_scored_by_its_decisions():
    table, y = rows()[["a"]], (rows()["a"] > 0).astype(int)

    class Machine:
        def fit(self, X, y):
            self.model = LogisticRegression().fit(X, y)

        def decision_function(self, X):
            return self.model.decision_function(X)

        predict = decision_function

    assert taco.evaluate_classifier(Machine(), table, y, table, y) == (1.0, None)


def test_text_becomes_categories():
    table = rows()
    changed = taco.infer_types(table)
    assert isinstance(changed["w"].dtype, pd.CategoricalDtype) and changed["a"].equals(table["a"])
    assert not isinstance(table["w"].dtype, pd.CategoricalDtype)


def test_plots_of_a_table(tmp_path):
    pytest.importorskip("matplotlib")
    lines = [
        ("clean", 0.0, "m", "AUC", 0.9),
        ("clean", 0.0, "m", "accuracy", 0.5),
        ("noise_gaussian", 0.1, "m", "AUC", 0.8),
        ("noise_gaussian", 0.4, "m", "AUC", 0.7),
        ("noise_gaussian+scaling_error", "0.2+0.2", "m", "AUC", 0.6),
    ]
    names = ["corruption", "severity", "model", "metric", "value"]
    table = pd.DataFrame(lines, columns=names).assign(task="classification", dataset="d")
    bars = taco.plot_bar_clean(table, "own", tmp_path)
    assert [path.name for path in bars] == ["own_clean_AUC_bar.png"]
    written = taco.plot_degradation(table, "own", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "own_plots/own_noise_gaussian_AUC_curve.png",
        "own_plots/own_noise_gaussian_plus_scaling_error_AUC_curve.png",
    ]
    assert all(path.stat().st_size > 1000 for path in (*bars, *written))


@pytest.mark.parametrize("name", taco.DECLINED)
def test_a_declined_name_says_what_to_use(name):
    with pytest.raises(ImportError, match=f"no {name}: .{{10,}}"):
        getattr(taco, name)
    with pytest.raises(AttributeError):
        getattr(taco, "no_such_name")  # noqa: B009
