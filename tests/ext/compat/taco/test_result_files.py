"""Plots of ``karat export``.

Export in TACO's files: names, columns, means and confusion matrices.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

import karat
from karat.errors import DataError, DefinitionError, MissingExtra
from karat.ext.compat.convert import export_results, import_results, read_scores
from karat.ext.compat.taco.result_files import (
    CONFUSION_COLUMNS,
    TACO_COLUMNS,
    taco_tables,
)
from karat.ext.compat.taco.taco_plots import plot_confusions, plot_runs
from karat.ext.models.automl import TablePredictor
from karat.ext.plots.figures import COLORS, Plot

matplotlib = pytest.importorskip("matplotlib")

KEYS = dict(repeat=0, epoch=-1)
#: (corruption, severity): how much of the clean score is lost
VIEWS = {("", 0.0): 0.0, ("noise", 0.1): 0.1, ("noise", 0.4): 0.3, ("gaps", 0.2): 0.2}
VIEWS |= {("gaps+noise", 0.2): 0.4, ("a+b", 0.1): 0.1, ("a+b", 0.2): 0.2}


def scores(*models: str, task: str = "t", metric: str = "auc", only: str = "") -> pd.DataFrame:
    """Return the scores of some models, two draws of each view, or of those of one corruption."""
    return pd.DataFrame(
        [
            {
                **dict(task=task, model=model, fold=0, draw=draw, metric=metric, **KEYS),
                **dict(corruption=c, severity=s, value=0.9 - lost - 0.05 * draw * bool(c)),
            }
            for model in models
            for (c, s), lost in VIEWS.items()
            for draw in range(2 if c else 1)
            if not only or c in ("", only)
        ]
    )


def texts(path: Path) -> set[str]:
    """Return what is written in an SVG picture."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(each.itertext()).strip() for each in found}


def test_one_plot_per_corruption_and_one_of_clean_scores(tmp_path):
    written = plot_runs(scores("ada", "ben"), tmp_path / "new" / "folder")
    names = {path.name for path in written}
    assert names == {
        "t_clean_AUC_bar.png",
        "t_gaps_AUC_curve.png",
        "t_noise_AUC_curve.png",
        "t_gaps_plus_noise_AUC_curve.png",
        "t_a_plus_b_AUC_curve.png",
    }
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == names
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_every_task_has_its_plots(tmp_path):
    numbers = scores("ada", task="u", metric="rmse", only="noise")
    several = pd.concat([scores("ada", only="noise"), numbers])
    names = {path.name for path in plot_runs(several, tmp_path, shape="svg")}
    assert {"t_noise_AUC_curve.svg", "u_noise_RMSE_curve.svg", "u_clean_RMSE_bar.svg"} <= names
    assert "u   RMSE ↓" in texts(tmp_path / "u_noise_RMSE_curve.svg")
    assert {"t   AUC ↑", "ada", "0.900", "clean"} <= texts(tmp_path / "t_clean_AUC_bar.svg")
    assert {"ada", "severity of noise"} <= texts(tmp_path / "t_noise_AUC_curve.svg")


def test_lines_go_through_the_means_and_bands_show_the_spread(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.append((path.name, self.figure)))
    plot_runs(scores("ada"), tmp_path)
    axes = dict(drawn)["t_noise_AUC_curve.png"].axes[0]
    (line,) = axes.get_lines()
    # the two draws are 0.05 apart
    assert line.get_xdata() == pytest.approx([0, 0.1, 0.4])
    assert line.get_ydata() == pytest.approx([0.9, 0.775, 0.575])
    corners = axes.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(0.9)
    assert corners[:, 1].min() == pytest.approx(0.575 - 0.05 / 2**0.5)


def test_a_model_has_the_same_color_in_all_plots(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.setdefault(path.name, self.figure))
    lacking = scores("ada", "ben")
    lacking = lacking[(lacking["model"] != "ada") | (lacking["corruption"] != "gaps")]
    plot_runs(lacking[lacking["corruption"] != "a+b"], tmp_path)
    ben = {
        name: dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))["ben"]
        for name, figure in drawn.items()
        if "curve" in name
    }
    colors = {(line[0] if isinstance(line, tuple) else line).get_color() for line in ben.values()}
    assert len(ben) == 3 and colors == {COLORS[1]}


def test_a_pair_has_a_point_for_each_combination_of_severities(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.setdefault(path.name, self.figure))
    table = scores("ada", only="a+b")
    changes = {"corruption": "a@0.2+b@0.1", "severity": 1.0, "value": 0.4}
    mixed = table[table["severity"] == 0.2].assign(**changes)
    plot_runs(pd.concat([table, mixed]), tmp_path)
    assert set(drawn) == {"t_clean_AUC_bar.png", "t_a_plus_b_AUC_curve.png"}
    axes = drawn["t_a_plus_b_AUC_curve.png"].axes[0]
    labels = [each.get_text() for each in axes.get_xticklabels()]
    assert labels == ["clean", "0.1+0.1", "0.2+0.1", "0.2+0.2"]
    points = dict(zip(*axes.get_lines()[0].get_data(), strict=True))
    # of two draws that are 0.05 apart
    assert [points[i] for i in range(4)] == pytest.approx([0.9, 0.775, 0.4, 0.675])


def test_more_models_than_colours_differ_in_their_dashes(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.append(self.figure))
    plot_runs(scores(*(f"model {i:02}" for i in range(30))), tmp_path)
    lines = drawn[1].axes[0].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 30


@pytest.mark.parametrize("name", ["_under", "a $ b $ c", "$5", "<script>", "50 % & more", "ünï 模"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_not_interpreted(tmp_path, name):
    frame = scores(name, "plain", task=name, only="noise").replace({"noise": name})
    written = plot_runs(frame, tmp_path, shape="svg")
    assert all(path.parent == tmp_path for path in written)
    assert not any(set(path.name) & set("$<> &%") for path in written)
    (curve,) = [p for p in written if texts(p) & {f"severity of {name}", f"severity of  {name}"}]
    assert name in {text.strip() for text in texts(curve)}, "in the legend"
    bars = next(path for path in written if "bar" in path.name)
    assert name in texts(bars)


def test_similar_names_have_different_files(tmp_path):
    several = pd.concat([scores("ada", task=task, only="noise") for task in ("a b", "a/b")])
    written = plot_runs(several, tmp_path)
    assert len(set(written)) == len(written) == 4


def test_errors_before_anything_is_written(tmp_path):
    with pytest.raises(DefinitionError, match='"gif"'):
        plot_runs(scores("ada"), tmp_path / "no", shape="gif")
    with pytest.raises(DataError, match='"acc"'):
        plot_runs(scores("ada"), tmp_path / "no", metric="acc")
    with pytest.raises(DataError, match="corrupt"):
        plot_runs(scores("ada").query("corruption == ''"), tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[plots'):
        plot_runs(scores("ada"), tmp_path / "no")
    assert not (tmp_path / "no").exists()


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
        *({"AUC"}, {"accuracy", "recall"}),
        *({"auc_ovr"}, {"accuracy"}),
        *({"RMSE"}, {"r2"}),
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
