"""Export in TACO's files: names, columns, means and confusion matrices."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

import karat
from karat.errors import DataError, DefinitionError
from karat.ext.compat.convert import export_results, import_results, read_scores
from karat.ext.compat.taco.result_files import (
    CONFUSION_COLUMNS,
    TACO_COLUMNS,
    taco_tables,
)
from karat.ext.compat.taco.taco_plots import plot_confusions
from karat.ext.models.automl import TablePredictor
from karat.ext.plots.figures import Plot

matplotlib = pytest.importorskip("matplotlib")


EXPORTS_VIEWS = {"noise_gaussian": [0.5, 2.0], "noise_gaussian+sign_flip": [0.5]}
EXPORTS_VIEWS |= {"sign_flip": [1.0], "sign_flip@0.5+noise_gaussian@0.25": [1.0]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[karat.Run]:
    """Two models on classes and on numbers, two folds, two draws."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    labels = np.where(table["x"] + rng.normal(0, 0.5, 60) > 0, "yes", "no, <b>")
    three = pd.cut(table["x"], [-9, -0.5, 0.5, 9], labels=["a", "b", "c"]).astype(str)
    make, split = karat.Dataset.from_table, {"use": "kfold", "folds": 2}
    data = [
        make(table.assign(y=labels), "y", name="halves"),
        make(table.assign(y=three), "y", name="thirds"),
        make(table.assign(y=3 * table["x"]), "y", name="line", kind="regression"),
    ]
    metrics = [["auc", "acc", "recall"], ["auc_ovr", "acc"], ["rmse", "r2"]]
    tasks = [
        karat.Task(
            f"{each.name}-task", each, split=split, metrics=m, corruptions=EXPORTS_VIEWS, draws=2
        )
        for each, m in zip(data, metrics, strict=True)
    ]
    words = [f"{letter}{i}" for letter in "ab" for i in range(10)]
    texts = karat.Dataset.from_columns(
        pd.DataFrame({"text": words, "y": ["A"] * 10 + ["B"] * 10}), ["text"], "y", name="words"
    )
    tasks.append(karat.Task("groups", texts, split="all", kind="clustering"))
    output = tmp_path_factory.mktemp("runs")
    return karat.evaluate(["rows-tfidf", "dummy"], tasks, output=output)


@pytest.fixture(scope="module")
def tables(runs) -> dict[str, pd.DataFrame]:
    return dict(taco_tables(runs))


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_files_and_columns(runs, tmp_path):
    written = export_results(runs, "taco", tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        "metrics_halves_classification.csv",
        "other_metrics_halves_classification.csv",
        "confusion_halves_classification.csv",
        "metrics_thirds_classification.csv",
        "other_metrics_thirds_classification.csv",
        "confusion_thirds_classification.csv",
        "metrics_line_regression.csv",
        "other_metrics_line_regression.csv",
    ]  # TACO has no clustering, and regression has no confusion matrix
    assert read(written[0])[0] == list(TACO_COLUMNS)
    assert read(written[1])[0] == list(TACO_COLUMNS)
    assert read(written[2])[0] == list(CONFUSION_COLUMNS)
    first = read(written[0])[1]
    assert first[:6] == ["halves", "classification", "clean", "0.0", "rows-tfidf", "AUC"]
    metrics = [{line[5] for line in read(path)[1:]} for path in written if "metrics" in path.name]
    assert metrics == [
        {"AUC"},
        {"accuracy", "recall"},
        {"auc_ovr"},
        {"accuracy"},
        {"RMSE"},
        {"r2"},
    ]


def test_one_line_per_view_model_and_metric(tables):
    frame = tables["metrics_halves_classification.csv"]
    assert not frame.duplicated(list(TACO_COLUMNS[:-1])).any()
    assert len(frame) == 2 * (1 + 5)
    assert len(tables["other_metrics_halves_classification.csv"]) == 2 * 2 * (1 + 5)
    views = frame[["corruption", "severity"]].drop_duplicates().to_numpy().tolist()
    assert views == [
        ["clean", 0.0],
        ["noise_gaussian", 0.5],
        ["noise_gaussian", 2.0],
        ["noise_gaussian+sign_flip", "0.5+0.5"],
        ["sign_flip", 1.0],
        ["sign_flip+noise_gaussian", "0.5+0.25"],
    ]


def test_imported_files_of_both_kinds_are_one_task(runs, tmp_path):
    written = export_results(runs, "taco", tmp_path)
    files = [path for path in reversed(written) if path.name.startswith(("metrics", "other"))]
    for run in import_results(files, system="taco", output=tmp_path / "in").runs:
        firsts = {task["name"]: task["metrics"][0] for task in run.about["tasks"]}
        assert firsts == {"halves": "auc", "thirds": "auc_ovr", "line": "rmse"}
        assert {"acc", "recall", "r2"} <= set(run.scores()["metric"])


def test_values_are_means_over_folds_and_draws(runs, tables):
    frame = tables["metrics_line_regression.csv"]
    scores = pd.concat([run.scores() for run in runs])
    scores = scores[(scores["task"] == "line-task") & (scores["metric"] == "rmse")]
    for model in ("rows-tfidf", "dummy"):
        seen = scores[(scores["model"] == model) & (scores["severity"] == 2.0)]
        assert len(seen) == 4  # two folds, two draws
        found = frame[(frame["model"] == model) & (frame["severity"] == 2.0)]
        found = found[found["metric"] == "RMSE"]["value"]
        assert found.tolist() == pytest.approx([seen["value"].mean()])


@pytest.mark.parametrize(("data", "labels"), [("halves", ["no, <b>", "yes"]), ("thirds", "abc")])
def test_confusion_counts_equal_scikit_learn(runs, tables, data, labels):
    frame = tables[f"confusion_{data}_classification.csv"]
    assert (frame["count"] > 0).all()
    for run in runs:
        for corruption, severity, names in [
            ("clean", 0.0, ["clean"]),
            ("noise_gaussian", 2.0, ["noise_gaussian@2", "noise_gaussian@2#1"]),
        ]:
            answers = [run.predictions(f"{data}-task", fold, n) for fold in (0, 1) for n in names]
            truth = np.concatenate([each.target for each in answers])
            predicted = np.concatenate([each.predictions for each in answers])
            wanted = confusion_matrix(truth, predicted, labels=list(labels))
            counts = frame[(frame["model"] == run.model) & (frame["corruption"] == corruption)]
            counts = counts[counts["severity"] == severity]
            square = counts.pivot(index="truth", columns="prediction", values="count")
            square = square.reindex(index=list(labels), columns=list(labels)).fillna(0)
            assert (square.to_numpy() == wanted).all()
            assert wanted.sum() == 60 * len(names)


def test_plots_of_clean_confusion_matrices(tables, monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.setdefault(path.name, self.figure))
    written = plot_confusions(tables, tmp_path)
    data, models = ("halves", "thirds"), ("rows-tfidf", "dummy")
    assert (
        [path.name for path in written]
        == list(drawn)
        == [f"{name}_{model}_clean_confusion.png" for name in data for model in models]
    )
    counts = tables["confusion_halves_classification.csv"]
    clean = counts[(counts["corruption"] == "clean") & (counts["model"] == "dummy")]
    axes = drawn["halves_dummy_clean_confusion.png"].axes[0]
    assert sum(int(each.get_text()) for each in axes.texts) == clean["count"].sum() == 60
    assert [each.get_text() for each in axes.get_xticklabels()] == ["no, <b>", "yes"]


def test_models_of_regression_have_their_names(tmp_path, line, two_classes):
    trees = [f"sklearn.ensemble:RandomForest{kind}" for kind in ("Classifier", "Regressor")]
    models = {name: name for name in ("linear-regression", "logistic-regression", "svm")}
    models["random-forest"] = TablePredictor(*trees, options={"n_estimators": 3})
    runs = karat.evaluate(models, [line(), two_classes()], output=tmp_path)
    tables = {name: set(table["model"]) for name, table in taco_tables(runs)}
    assert tables["metrics_line_regression.csv"] == {"linreg", "svr", "rf_reg"}
    assert tables["metrics_halves_classification.csv"] == {"logreg", "svm", "rf"}
    assert tables["confusion_halves_classification.csv"] == {"logreg", "svm", "rf"}


def test_missing_value_is_an_empty_cell(tmp_path):
    # without the rare class, AUC is not defined
    table = pd.DataFrame({"x": range(40), "y": ["no"] * 30 + ["yes"] * 10})
    data = karat.Dataset.from_table(table, "y", name="rare")
    task = karat.Task(
        "rare", data, metrics=["auc", "acc"], corruptions={"rare_class_dilution": [1]}
    )
    (run,) = karat.evaluate("dummy", task, output=tmp_path)
    files = [path for path in export_results(run, "taco", tmp_path) if "metrics" in path.name]
    lines = [line for path in files for line in read(path)]
    assert [line[5:] for line in lines if line[2] == "rare_class_dilution"] == [
        ["AUC", ""],
        ["accuracy", "1.0"],
    ]


@pytest.mark.parametrize(
    "labels", [["predictions", "truth"], ["NA", "None"], ['a"b, c', "line\nbreak"], [" 1", "01"]]
)
def test_labels_are_not_converted(tmp_path, labels):
    table = pd.DataFrame({"x": range(20), "y": [labels[0]] * 10 + [labels[1]] * 10})
    task = karat.Task("t", karat.Dataset.from_table(table, "y", name="t"), split="kfold")
    (run,) = karat.evaluate({"m": LogisticRegression()}, task, output=tmp_path)
    whole = run.predictions("t", 1)
    found = run.labels("t", 1)
    assert found["truth"].tolist() == whole.target.tolist()
    assert found["predictions"].tolist() == whole.predictions.tolist()
    frame = dict(taco_tables(run))["confusion_t_classification.csv"]
    assert set(frame["truth"]) == set(labels) and frame["count"].sum() == 20
    with pytest.raises(DataError, match="t, fold 9"):
        run.labels("t", 9)


@pytest.mark.parametrize(
    "name", ["my data", "../../etc/passwd", "<script>alert(1)</script>", "a,b"]
)
def test_unsafe_names(two_classes, tmp_path, name):
    model = {f"{name}!": LogisticRegression()}
    (run,) = karat.evaluate(model, two_classes(name=name, data=name), output=tmp_path / "runs")
    written = export_results(run, "taco", tmp_path / "files")
    assert [path.name.split("_")[0] for path in written][::2] == ["metrics", "confusion"]
    for path in written:
        assert path.parent == tmp_path / "files" and path.is_file()
        assert not set(path.name) & set("<>/ ")
        line = read(path)[1]
        assert line[0] == name and line[4] == f"{name}!"


def test_similar_names_have_different_files_exports(two_classes, tmp_path):
    tasks = [two_classes(name=name, data=name) for name in ("a b", "a/b")]
    runs = karat.evaluate("dummy", tasks, output=tmp_path)
    assert len({path.name for path in export_results(runs, "taco", tmp_path / "files")}) == 6


def test_two_tasks_on_one_dataset(two_classes, tmp_path):
    tasks = [two_classes("one"), two_classes("two", split={"use": "kfold", "folds": 5})]
    runs = karat.evaluate("dummy", tasks, output=tmp_path)
    names = [path.name for path in export_results(runs, "taco", tmp_path / "files")]
    assert names == [
        "metrics_halves_one_classification.csv",
        "other_metrics_halves_one_classification.csv",
        "confusion_halves_one_classification.csv",
        "metrics_halves_two_classification.csv",
        "other_metrics_halves_two_classification.csv",
        "confusion_halves_two_classification.csv",
    ]


def test_two_runs_of_one_model(two_classes, tmp_path):
    runs = [karat.evaluate("dummy", two_classes(), output=tmp_path, seed=s)[0] for s in (1, 2)]
    tables = dict(taco_tables(runs))
    for table in tables.values():
        assert table["model"].nunique() == 2
    confusion = tables["confusion_halves_classification.csv"]
    assert confusion.groupby("model")["count"].sum().tolist() == [20, 20]


def test_two_datasets_with_one_name(two_classes, tmp_path):
    table = pd.DataFrame({"x": range(30), "y": ["low"] * 15 + ["high"] * 15})
    other = karat.Task("halves", karat.Dataset.from_table(table, "y", name="halves"))
    runs = [
        karat.evaluate({name: LogisticRegression()}, task, output=tmp_path)[0]
        for name, task in (("small", two_classes()), ("large", other))
    ]
    tables = [t for name, t in taco_tables(runs) if name.startswith("confusion")]
    assert [table["count"].sum() for table in tables] == [20, 30]


def test_mistakes(runs, tmp_path, words):
    with pytest.raises(DefinitionError, match='"taco"'):
        export_results(runs, "tacco", tmp_path / "files")
    assert not (tmp_path / "files").exists()
    with pytest.raises(DataError, match="nowhere"):
        export_results(tmp_path / "nowhere", "taco", tmp_path)
    task = words(split="all", kind="clustering", metrics=["v_measure"])
    with pytest.raises(DataError, match="classification or regression"):
        export_results(karat.evaluate("tfidf", task, output=tmp_path), "taco", tmp_path / "files")


@pytest.mark.parametrize("severity", ["true", "None", "nan", "inf", "1_0", "-1", "0.2+nan"])
def test_severities_are_finite_numbers(tmp_path, severity):
    path = tmp_path / "metrics_t_classification.csv"
    rows = [["t", "classification", name, severity, "m", "AUC", "0.5"] for name in ("a", "clean")]
    for row in rows:
        path.write_text(",".join(TACO_COLUMNS) + "\n" + ",".join(row) + "\n")
        with pytest.raises(DataError, match="line 2: severity must be"):
            read_scores(tmp_path)
