"""Encoders, models by name, saved scores, leaderboards and display."""

from __future__ import annotations

import os
import sys
import types

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError, Declined, DefinitionError, DiskFull
from karat.ext.compat.tabeb import (
    TabEBBaseEncoder,
    TabEBClassificationTask,
    TabEBRegressionTask,
    display,
    get_leaderboard,
    get_model,
)
from karat.ext.compat.tabeb.interface import CONFIG, ENCODER, read_tabeb_scores
from karat.models.model import Model

pytest.importorskip("pyarrow")

ROWS = 40
TABLE = pd.DataFrame({"x": np.arange(ROWS, dtype=float), "w": ["a", "b"] * 20})


class Scaled(TabEBBaseEncoder):
    """The column x times a factor."""

    def __init__(self, factor: float = 1.0, name: str = "scaled") -> None:
        self.factor = factor
        self.name = name

    def fit(self, X, y=None):
        return self

    def transform(self, X, y=None):
        return X[["x"]].to_numpy() * self.factor


def task(kind: str = "regression", names: tuple[str, ...] = ("one",), **options):
    cls = TabEBRegressionTask if kind == "regression" else TabEBClassificationTask
    made = cls(data_name_list=list(names), protocol="original", **options)
    for i, name in enumerate(names):
        target = TABLE["x"] * (i + 1) if kind == "regression" else (TABLE["x"] >= 20).astype(int)
        made.data_dict[name] = (TABLE.assign(y=target), {"target_name": "y", "task": kind})
    return made


def test_karat_models():
    encoder = get_model("onehot", min_frequency=3)
    assert encoder.name == "onehot" and encoder.min_frequency == 3
    assert encoder.fit_transform(TABLE).shape == (ROWS, 3)
    with pytest.raises(DefinitionError, match='"min_frequency"'):
        get_model("onehot", min_freq=3)
    with pytest.raises(DefinitionError, match="^ridge"):
        get_model("ridge")
    assert get_model("karat.models.tabular_encoders:OneHotTable").min_frequency == 0.005


def test_encoder_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "twice_encoder.py").write_text(
        "from karat.ext.compat.tabeb.interface import TabEBBaseEncoder\n\n"
        "class Twice(TabEBBaseEncoder):\n"
        "    def __init__(self, factor=2):\n        self.factor = factor\n\n"
        "    def fit(self, X, y=None):\n        return self\n\n"
        "    def transform(self, X, y=None):\n"
        "        return X[['x']].to_numpy() * self.factor\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    encoder = get_model("twice_encoder:Twice", factor=3)
    assert encoder.fit(TABLE).transform(TABLE)[-1, 0] == 3 * (ROWS - 1)
    assert task().evaluate([encoder])["one"].notna().all()


def test_unavailable_model(monkeypatch):
    from karat.config.catalog import Catalog

    absent = Model("skrub", None, "encoder", unavailable="skrub is not installed: pip …")
    monkeypatch.setattr(Catalog, "model", lambda self, name: absent)
    encoder = get_model("skrub")
    for use in (encoder.fit, encoder.transform, encoder.fit_transform):
        with pytest.raises(Declined, match="skrub"):
            use(TABLE)
    for model in (encoder, absent):
        with pytest.warns(UserWarning, match="^skrub on one"):
            assert task().evaluate([model])["one"].isna().all()


def test_unknown_models_and_revisions():
    with pytest.raises(DefinitionError, match='"skrub_encoder"'):
        get_model("skrub_encode")
    with pytest.raises(DefinitionError, match='"None"'):
        get_model(None)
    for name in ("random_encoder", "onehot"):
        assert get_model(name, revision=None).name == name
        with pytest.raises(DefinitionError, match="'v2'"):
            get_model(name, revision="v2")


def test_model_with_revisions(monkeypatch):
    from karat.config.catalog import Catalog

    class Versioned(Scaled):
        def __init__(self, revision=None):
            self.revision = revision

    monkeypatch.setattr(Catalog, "model", lambda *_: Model("v", Versioned(), "encoder"))
    assert get_model("onehot", revision="v2").revision == "v2"


def test_nothing_is_saved_unless_a_folder_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task().evaluate([Scaled()])
    task().evaluate([Scaled()], save_dir="")
    assert list(tmp_path.iterdir()) == []


def test_content_of_the_score_file(tmp_path):
    frame = task(names=("one", "two")).evaluate([Scaled()], save_dir=tmp_path / "deep" / "er")
    path = tmp_path / "deep" / "er" / "scores_regression.parquet"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    saved = read_tabeb_scores(path)
    assert list(saved.columns) == [
        "encoder",
        "one",
        "two",
        "regression_average",
        CONFIG,
        ENCODER,
    ]
    pd.testing.assert_frame_equal(saved[list(frame.columns)], frame, check_exact=True)
    for item in ('"protocol": "original"', '"seed": 42', '"max_rows": null', '"metric": "rmse"'):
        assert item in saved.loc[0, CONFIG]
    assert saved.loc[0, ENCODER] == "Scaled(factor=1.0, name='scaled')"
    (run,) = karat.import_results(path, tmp_path / "imported").runs
    assert run.scores()["value"].tolist() == frame.loc[0, ["one", "two"]].tolist()


def test_encoders_are_added_and_replaced(tmp_path):
    task().evaluate([Scaled(name="a")], save_dir=tmp_path)
    task().evaluate([Scaled(name="b"), Scaled(0, name="c")], save_dir=tmp_path)
    saved = read_tabeb_scores(tmp_path / "scores_regression.parquet")
    assert saved["encoder"].tolist() == ["a", "b", "c"]
    with pytest.warns(UserWarning, match=" b "):
        task().evaluate([Scaled(0, name="b")], save_dir=tmp_path)
    saved = read_tabeb_scores(tmp_path / "scores_regression.parquet").set_index("encoder")
    assert sorted(saved.index) == ["a", "b", "c"]
    assert saved.loc["b", "one"] == saved.loc["c", "one"] > saved.loc["a", "one"]


@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"max_rows": 30}, {"n_train": 8}, {"names": ("one", "two")}],
    ids=lambda other: next(iter(other)),
)
def test_other_settings_are_separate_rows(tmp_path, other):
    first = task().evaluate([Scaled(0)], save_dir=tmp_path)
    with pytest.warns(UserWarning, match="other settings"):
        second = task(**other).evaluate([Scaled(0)], save_dir=tmp_path)
    saved = read_tabeb_scores(tmp_path / "scores_regression.parquet")
    assert saved["encoder"].tolist() == ["scaled", "scaled"]
    assert saved["one"].tolist() == [first.loc[0, "one"], second.loc[0, "one"]]
    assert saved[CONFIG].nunique() == 2
    with pytest.warns(UserWarning, match="several settings"):
        board = get_leaderboard(["regression"], tmp_path)
    assert board["one"].tolist() == [second.loc[0, "one"]]


def test_failure_keeps_an_earlier_score(tmp_path):
    class Failing(Scaled):
        fails: tuple[float, ...] = ()

        def fit(self, X, y=None):
            if y is not None and np.isclose(y, X["x"] * 2).all() and self.fails:
                raise OSError("no network")
            return self

    made = task(names=("one", "two"))
    good = made.evaluate([Failing(0)], save_dir=tmp_path)
    Failing.fails = (2,)
    with pytest.warns(UserWarning, match="scaled on two"):
        bad = made.evaluate([Failing(0)], save_dir=tmp_path)
    assert np.isnan(bad.loc[0, "two"])
    saved = read_tabeb_scores(tmp_path / "scores_regression.parquet")
    pd.testing.assert_frame_equal(saved[list(good.columns)], good, check_exact=True)


def test_invalid_score_files_are_reported_before_the_run(tmp_path):
    class Never(Scaled):
        def fit(self, X, y=None):
            raise AssertionError("it ran")

    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="^save_dir"):
        task().evaluate([Never()], save_dir=tmp_path / "file")
    path = tmp_path / "scores_regression.parquet"
    path.write_text("no table")
    with pytest.raises(DataError, match="scores_regression.parquet"):
        task().evaluate([Never()], save_dir=tmp_path)
    pd.DataFrame({"x": [1]}).to_parquet(path)
    with pytest.raises(DataError, match='"encoder"'):
        task().evaluate([Never()], save_dir=tmp_path)


def test_score_file_of_tabeb(tmp_path):
    path = tmp_path / "scores_regression.parquet"
    scores = pd.DataFrame({"encoder": ["a", "b"], "one": [0.5, 0.4]})
    for name, order in (("regression", ["b", "a"]), ("classification", ["a", "b"])):
        file = tmp_path / f"scores_{name}.parquet"
        scores.assign(**{f"{name}_average": scores["one"]}).to_parquet(file)
        assert get_leaderboard([name], tmp_path)["encoder"].tolist() == order
    scores.assign(own_average=scores["one"]).to_parquet(tmp_path / "scores_own.parquet")
    with pytest.warns(UserWarning, match="higher_is_better"):
        assert get_leaderboard(["own"], tmp_path)["encoder"].tolist() == ["a", "b"]
    with pytest.warns(UserWarning, match="other settings"):
        task().evaluate([Scaled()], save_dir=tmp_path)
    assert read_tabeb_scores(path)["encoder"].tolist() == ["a", "b", "scaled"]


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    task().evaluate([Scaled(name="a")], save_dir=tmp_path)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DiskFull, match="scores_regression.parquet.*No space"):
        task().evaluate([Scaled(name="b")], save_dir=tmp_path)
    (path,) = tmp_path.iterdir()
    assert read_tabeb_scores(path)["encoder"].tolist() == ["a"]


def test_ranks_use_the_direction_of_the_metric(tmp_path):
    models = [Scaled(0, "constant"), Scaled(1, "line")]
    for kind in ("regression", "classification"):
        task(kind).evaluate(models, save_dir=tmp_path)
    board = get_leaderboard(["regression", "classification"], tmp_path)
    assert list(board.columns) == [
        "encoder",
        "regression_average",
        "classification_average",
        "regression_rank",
        "classification_rank",
        "mean_rank",
    ]
    assert board["encoder"].tolist() == ["line", "constant"]
    assert board["mean_rank"].tolist() == [1, 2]
    assert board["classification_average"].tolist() == [1.0, 0.5]
    assert set(board.attrs["configs"]) == {"regression", "classification"}


def test_ranks_do_not_depend_on_scale(tmp_path):
    path = tmp_path / "scores_regression.parquet"
    made = task(names=("one", "two", "three"))
    made.evaluate([Scaled(0, "a"), Scaled(0, "b")], save_dir=tmp_path)
    saved = read_tabeb_scores(path)
    # b is better on two of three, and much worse in the mean
    saved[["one", "two", "three"]] = [[0.2, 0.2, 100.0], [0.1, 0.1, 200.0]]
    saved["regression_average"] = saved[["one", "two", "three"]].mean(axis=1)
    saved.to_parquet(path)
    board = get_leaderboard(["regression"], tmp_path)
    assert board["encoder"].tolist() == ["b", "a"]
    assert board["regression_rank"].tolist() == pytest.approx([4 / 3, 5 / 3])
    assert board["regression_average"].is_monotonic_decreasing


def test_leaderboard_of_one_task(tmp_path):
    frame = task(names=("one", "two")).evaluate([Scaled(1, "line")], save_dir=tmp_path)
    for asked in (["regression"], "regression", task()):
        board = get_leaderboard(asked, tmp_path)
        assert list(board.columns) == [*frame.columns, "regression_rank"]
        assert board["regression_rank"].isna().all()  # a single encoder has no rank


def test_leaderboard_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task().evaluate([Scaled()], save_dir=".")
    assert get_leaderboard(["regression"])["encoder"].tolist() == ["scaled"]


def test_failures_rank_last_and_missing_encoders_below(tmp_path):
    class Broken(Scaled):
        def transform(self, X, y=None):
            return np.full((len(X), 1), np.inf)

    line, constant = Scaled(1, "line"), Scaled(0, "constant")
    with pytest.warns(UserWarning, match="infinite"):
        task().evaluate([Broken(name="broken"), line, constant], save_dir=tmp_path)
    with pytest.warns(UserWarning, match="infinite"):
        task("classification").evaluate([Broken(name="broken"), constant], save_dir=tmp_path)
    board = get_leaderboard(["regression", "classification"], tmp_path).set_index("encoder")
    assert board.index.tolist() == ["constant", "broken", "line"]
    assert board["regression_rank"].to_dict() == {"constant": 2, "broken": 3, "line": 1}
    assert board["mean_rank"].to_dict() == {"constant": 1.5, "broken": 2.5, "line": 1}
    assert np.isnan(board.loc["line", "classification_rank"])


def test_dataset_without_scores_is_ignored(tmp_path):
    made = task(names=("one", "lost"))
    del made.data_dict["lost"]
    with pytest.warns(UserWarning, match="^lost: "):
        made.evaluate([Scaled(0, "constant"), Scaled(1, "line")], save_dir=tmp_path)
    board = get_leaderboard(["regression"], tmp_path)
    assert board["regression_rank"].tolist() == [1.0, 2.0]
    assert board["encoder"].tolist() == ["line", "constant"]


def test_invalid_leaderboards(tmp_path):
    with pytest.raises(DefinitionError, match="get_leaderboard"):
        get_leaderboard([], tmp_path)
    with pytest.raises(DefinitionError, match="3"):
        get_leaderboard([3], tmp_path)
    with pytest.raises(DataError, match="scores_regression.parquet"):
        get_leaderboard(["regression"], tmp_path)
    task().evaluate([Scaled()], save_dir=tmp_path)
    with pytest.raises(DataError, match='"regression"'):
        get_leaderboard(["regresion"], tmp_path)


def test_display_prints(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    display(pd.DataFrame({"encoder": ["a"], "score": [0.5]}), "and text")
    assert capsys.readouterr().out == "  encoder  score\n0       a    0.5\nand text\n"


def test_display_in_a_notebook(monkeypatch):
    shown: list[object] = []
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: object()
    inner = types.ModuleType("IPython.display")
    inner.display = lambda *things: shown.extend(things)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    display(1, 2)
    assert shown == [1, 2]
    notebook.get_ipython = lambda: None
    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(write=shown.append))
    display(3)
    assert shown == [1, 2, "3\n"]
