"""Mistakes of TACO's code that are tested nowhere else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.corruptions.corrupted_data import corrupt_with_share
from karat.corruptions.view import View
from karat.ext.compat.taco import run_classification_suite
from karat.ext.models.automl import TablePredictor
from karat.models.predictors import RbfClassifier


def halves(rows: int = 400, levels: int = 3) -> pd.DataFrame:
    """Return two numbers, a category, and classes that depend on the first number."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=rows), "n": rng.integers(0, 90, rows)})
    table["w"] = [f"level {i % levels}" for i in range(rows)]
    return table.assign(y=np.where(table["x"] + rng.normal(size=rows) > 1, "yes", "no"))


def suite(table: pd.DataFrame, folder, severities=(0.2,), **options) -> pd.DataFrame:
    X, y, cut = table.drop(columns="y"), table["y"], len(table) // 2
    parts = (X[:cut], X[cut:], y[:cut], y[cut:])
    return run_classification_suite("halves", *parts, folder, severities, **options)


@pytest.fixture
def few(monkeypatch):
    from karat.ext.compat.taco import benchmark

    monkeypatch.setattr(benchmark, "MODELS", {"classification": ("logreg",)})
    for name in ("plot_runs", "plot_confusions"):
        monkeypatch.setattr(f"karat.ext.compat.taco.taco_plots.{name}", lambda *_, **__: [])


def test_clean_and_corrupted_rows_are_the_same_rows(few, tmp_path):
    suite(halves(), tmp_path, keep_predictions="all")
    (run,) = karat.open_runs([tmp_path / "runs"])
    truth = run.predictions("halves").target
    assert len(truth) == 200
    for view in run.records()[0]["views"]:
        name = View(view["corruption"], view["severity"], view["draw"]).name
        if "rare_class_dilution" not in name:
            assert np.array_equal(run.predictions("halves", 0, name).target, truth)


def test_row_limit_of_one_model_does_not_affect_others(tmp_path, monkeypatch):
    seen, fit = {}, {}

    def noted(kind):
        def counting(self, X, y):
            seen.setdefault(kind.__name__, len(X))
            return fit[kind](self, X, y)

        fit[kind] = kind.fit
        monkeypatch.setattr(kind, "fit", counting)

    noted(RbfClassifier)
    noted(LogisticRegression)
    task = karat.Task("halves", Dataset.from_table(halves(), "y", name="halves"))
    capped = Catalog().model("svm").prototype.set_params(max_train_rows=50)
    models = {"svm": capped, "linear": "logistic-regression"}
    karat.evaluate(models, task, only=karat.Only(folds=[0]), output=tmp_path)
    assert seen == {"RbfClassifier": 50, "LogisticRegression": 320}


def test_corruptions_of_a_pair_are_drawn_independently():
    table = pd.DataFrame(np.ones((1000, 10))).assign(y=np.resize(["a", "b"], 1000))
    table.iloc[::3, :10] = 5.0
    data = Dataset.from_table(table.rename(columns=str), "y", name="ones")
    hit = {}
    for name in ("sign_flip", "outliers"):
        seen = corrupt_with_share(data, View(name, 0.2), 42, 0)[0].items
        hit[name] = (seen != data.items).to_numpy()
        assert hit[name].mean() == pytest.approx(0.2)
    assert (hit["sign_flip"] & hit["outliers"]).mean() == pytest.approx(0.04, abs=0.01)
    both = corrupt_with_share(data, View("sign_flip+outliers", 0.2), 42, 0)[0].items
    assert np.array_equal((both != data.items).to_numpy(), hit["sign_flip"] | hit["outliers"])


def test_scores_do_not_depend_on_other_severities(few, tmp_path):
    table = halves()
    one = suite(table, tmp_path / "one", (0.2,))
    three = suite(table, tmp_path / "three", (0.1, 0.2, 0.4))
    wanted = three[three["severity"].isin([0.0, 0.2, "0.2+0.2"])]
    pd.testing.assert_frame_equal(one, wanted.reset_index(drop=True))


def test_remap_of_many_categories_changes_predictions(few, tmp_path):
    table = halves(levels=120)
    table["y"] = np.where(pd.factorize(table["w"])[0] % 3 == 0, "yes", "no")
    scores = suite(table, tmp_path, (1.0,)).query("metric == 'AUC'")
    found = scores.set_index("corruption")["value"]
    assert found["clean"] > 0.95
    assert found["categorical_remap"] < 0.8


def test_dilution_changes_precision_and_not_auc(few, tmp_path):
    scores = suite(halves(4000), tmp_path, (0.8,))
    scores = pd.concat([scores, pd.read_csv(tmp_path / "other_metrics_halves_classification.csv")])
    found = scores.pivot(index="corruption", columns="metric", values="value")
    lost = found.loc["clean"] - found.loc["rare_class_dilution"]
    assert abs(lost["AUC"]) < 0.05 and abs(lost["recall"]) < 0.1
    assert lost["precision"] > 0.2 and lost["pr_auc"] > 0.2


def test_edited_file_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    for target in ("0011", "0111"):
        lines = [f"{i},{label},{i}" for i, label in enumerate(target)]
        (tmp_path / "porto_seguro.csv").write_text("\n".join(["id,target,a", *lines]))
        data = Catalog().dataset("taco_porto")()
        assert (data.target == "yes").sum() == target.count("1")


def test_column_with_many_categories_is_used():
    table = halves(600, levels=150)
    y = np.where(pd.factorize(table["w"])[0] % 2, "odd", "even")
    fitted = TablePredictor("sklearn.linear_model:LogisticRegression").fit(table[["w"]], y)
    assert (fitted.predict(table[["w"]]) == y).all()


IMPORTS = """
import json, os, random
import numpy, pandas, sklearn, rich.style  # rich draws random numbers
before = dict(os.environ), sklearn.get_config(), repr(numpy.random.get_state()), random.getstate()
options = pandas.describe_option(_print_desc=False)
import karat.ext.compat.taco, karat.ext.compat.taco.__main__
import karat.models.predictors, karat.models.predictors
import karat.ext.compat.taco.result_files, karat.corruptions.view
after = dict(os.environ), sklearn.get_config(), repr(numpy.random.get_state()), random.getstate()
same = options == pandas.describe_option(_print_desc=False)
print(json.dumps([one == other for one, other in zip(before, after)] + [same]))
"""


def test_import_changes_no_global_state(python):
    done = python("-c", IMPORTS)
    assert json.loads(done.stdout) == [True] * 5, done.stderr
