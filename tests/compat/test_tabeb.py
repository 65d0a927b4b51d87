"""The tasks: tables, splits, heads, scores, and a run that nothing ends."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import root_mean_squared_error
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import karat.compat.tabeb as compat
from karat.compat.tabeb import (
    TabEBAnomalyDetectionTask,
    TabEBBaseEncoder,
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBClusteringTask,
    TabEBDeduplicationTask,
    TabEBRankingTask,
    TabEBRegressionTask,
)
from karat.compat.tabeb.tables import LostData
from karat.errors import ContractError, DataError, DefinitionError, MissingExtra
from karat.models.out_of_fold import OutOfFold

pytest.importorskip("pyarrow")

ALL = [getattr(compat, name) for name in compat.__all__ if name.endswith("Task")]
ROWS = 60
X = np.arange(ROWS, dtype=float)


class Numbers(TabEBBaseEncoder):
    """The numbers of a row, as they are."""

    name = "numbers"

    def fit(self, X, y=None):
        return self

    def transform(self, X, y=None):
        return X.select_dtypes("number").to_numpy(dtype=float)


class Constant(Numbers):
    """The same vector for every row: a linear head on it predicts the mean."""

    name = "constant"

    def transform(self, X, y=None):
        return np.ones((len(X), 1))


def table(task: str) -> pd.DataFrame:
    """Return 60 rows: x is 0 … 59; y is 2 x + 1, or "high" from 30 on; 20 names, thrice each."""
    target = 2 * X + 1 if task == "regression" else np.where(X < 30, "low", "high")
    return pd.DataFrame({"name": [f"n{i % 20}" for i in range(ROWS)], "x": X, "y": target})


def write(folder: Path, name: str, task: str, frame: pd.DataFrame | None = None, **more) -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (table(task) if frame is None else frame).to_parquet(place / f"{name}.parquet")
    said = {"name": name, "task": task, "target_name": "y", "entity_name": "name", **more}
    (place / f"{name}_metadata.json").write_text(json.dumps(said))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "line", "regression")
    write(tmp_path, "halves", "classification")
    return tmp_path


def regression(folder: Path, **options) -> TabEBRegressionTask:
    return TabEBRegressionTask(data_dir=folder, data_name_list=["line"], **options)


def classification(folder: Path, **options) -> TabEBClassificationTask:
    return TabEBClassificationTask(data_dir=folder, data_name_list=["halves"], **options)


def own(cls: type, frame: pd.DataFrame, kind: str = "classification", **options):
    """Return a task on a frame with the target y, without any file."""
    made = cls(data_name_list=["mine"], **options)
    made.data_dict["mine"] = frame
    made.metadata["mine"] = {"target_name": "y", "task": kind}
    return made


# -- names and signatures -------------------------------------------------------------------


def test_both_ways_to_import():
    from karat.compat.tabeb import interface, tasks

    assert tasks.TabEBRankingTask is compat.TabEBRankingTask
    assert interface.get_model is compat.get_model
    assert list(compat.__all__) == sorted(compat.__all__)
    assert len(ALL) == 7


@pytest.mark.parametrize("task", ALL, ids=lambda t: t.__name__)
def test_every_task_takes_the_documented_settings(task):
    taken = inspect.signature(task).parameters
    known = {"data_dir": None, "seed": 42, "max_rows": None, "n_train": None}
    assert {name: taken[name].default for name in known} == known
    made = task()
    assert (made.seed, made.protocol, made.split) == (42, "corrected", ["train", "test"])
    assert made.data_loaded_ is False and made.data_dict == {} and made.metadata == {}


def test_the_tasks_of_the_document():
    told = {t.task: (t.metric, list(t.data_name_list)) for t in ALL if t is not TabEBBaseTask}
    assert told == {
        "regression": ("rmse", ["wine_pl", "wine_vivino_price"]),
        "classification": ("auc_micro", ["spotify"]),
        "clustering": ("v_measure", ["wine", "penguins"]),
        "ranking": ("map", ["wine", "penguins"]),
        "anomaly_detection": ("f1_weighted", ["shuttle_c0_c4", "glass5"]),
        "deduplication": ("auc", ["febrl1", "febrl2"]),
    }


# -- the frame ------------------------------------------------------------------------------


def test_the_documented_frame(folder):
    write(folder, "steep", "regression", table("regression").assign(y=20 * X))
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["line", "steep"])
    frame = task.evaluate([Constant(), Numbers()])
    assert list(frame.columns) == ["encoder", "line", "steep", "regression_average"]
    assert frame["encoder"].tolist() == ["constant", "numbers"]
    _, _, y_train, y_test = task.get_splits(task.data_dict["line"], task.metadata["line"])
    mean = np.sqrt(np.mean((y_test - y_train.mean()) ** 2))
    assert frame.loc[0, "line"] == pytest.approx(mean)
    means = frame[["line", "steep"]].mean(axis=1)
    assert frame["regression_average"].tolist() == means.tolist()
    assert (frame.loc[1, ["line", "steep"]] < frame.loc[0, ["line", "steep"]] / 10).all()
    assert frame.attrs["failures"] == []
    json.dumps(frame.attrs)  # pandas writes them into a Parquet file


def test_least_squares_of_the_original_fits_a_line_exactly(folder):
    frame = regression(folder, protocol="original").evaluate([Numbers()])
    assert frame.loc[0, "line"] == pytest.approx(0, abs=1e-9)


def test_a_class_is_told_by_its_probability(folder):
    frame = classification(folder).evaluate([Numbers(), Constant()])
    assert frame["halves"].tolist() == [1.0, 0.5]


def test_the_train_side_can_be_scored(folder):
    task = regression(folder)
    inside = task.evaluate([Constant()], split="train").loc[0, "line"]
    _, _, y_train, _ = task.get_splits(task.data_dict["line"], task.metadata["line"])
    assert inside == pytest.approx(np.std(y_train))
    with pytest.raises(DefinitionError, match="split is train or test, not 'tst'. Did you mean"):
        task.evaluate([Constant()], split="tst")
    only = regression(folder, split="test")
    with pytest.raises(DefinitionError, match="split is test, not 'train'"):
        only.evaluate([Constant()], split="train")


# -- models ---------------------------------------------------------------------------------


def test_what_may_be_a_model(folder):
    pipeline = make_pipeline(Numbers(), StandardScaler(), PCA(1))
    models = ["random_encoder", "onehot", pipeline, Numbers, lambda rows: rows[["x"]]]
    frame = classification(folder).evaluate(models)
    names = ["random_encoder", "onehot", "Pipeline", "numbers", "function"]
    assert frame["encoder"].tolist() == names
    assert frame["halves"].tolist()[2:] == [1.0, 1.0, 1.0]
    frame = classification(folder).evaluate({"a": Numbers(), "b": Numbers()})
    assert frame["encoder"].tolist() == ["a", "b"]
    assert classification(folder).evaluate(Numbers())["encoder"].tolist() == ["numbers"]
    # what can transform is an encoder, whatever else it can
    both = make_pipeline(Numbers(), LinearDiscriminantAnalysis())
    assert classification(folder).evaluate(both).loc[0, "halves"] == 1.0


def test_wrong_models_are_all_said_before_anything_runs(folder):
    with pytest.raises(DefinitionError) as caught:
        classification(folder).evaluate([Numbers(), "onehott", 3, "ridge", Numbers()])
    said = caught.value.messages
    assert said[0].startswith('there is no model "onehott". Did you mean "onehot"?')
    assert said[1].startswith("int is not a model")
    assert said[2] == "ridge is a predictor; TabEB's tasks take encoders."
    assert said[3].startswith('two models are called "numbers"; set the attribute name')
    with pytest.raises(DefinitionError, match="^no model was given"):
        classification(folder).evaluate([])
    with pytest.raises(DefinitionError, match="^LinearRegression is a predictor; a task takes"):
        classification(folder).evaluate([LinearRegression()])


def test_each_data_set_meets_a_fresh_copy(folder):
    class Counting(Numbers):
        name = "counting"
        met = []

        def fit(self, X, y=None):
            self.met.append(getattr(self, "fitted_", 0))
            self.fitted_ = 1
            return self

    write(folder, "again", "regression")
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["line", "again"])
    encoder = Counting()
    frame = task.evaluate([encoder])
    assert Counting.met == [0, 0]
    assert not hasattr(encoder, "fitted_")
    assert not frame.isna().any(axis=None)


def test_the_encoder_of_the_document_takes_anything(folder):
    class NewEncoder(TabEBBaseEncoder):
        def __init__(self, *args, **kwargs):
            self.kept = (args, kwargs)

        def fit(self, X, y=None):
            self.rows_ = len(X)  # and returns nothing, as one may read the document

        def transform(self, X, y=None):
            assert self.kept == ((2,), {"by": 3})
            return X[["x"]].to_numpy() * self.kept[0][0] * self.kept[1]["by"]

    frame = regression(folder, protocol="original").evaluate([NewEncoder(2, by=3)])
    assert frame["encoder"].tolist() == ["NewEncoder"]
    assert frame.loc[0, "line"] == pytest.approx(0, abs=1e-9)
    assert "by: 3" in next(iter(frame.attrs["encoders"].values()))
    pipeline = make_pipeline(NewEncoder(2, by=3), StandardScaler())
    frame = regression(folder, protocol="original").evaluate({"two steps": pipeline})
    assert frame.loc[0, "line"] == pytest.approx(0, abs=1e-9)


def test_what_an_encoder_sees(folder):
    class Looking(Numbers):
        name = "looking"
        seen = []

        def fit(self, X, y=None):
            self.seen.append((list(X.columns), sorted(X.index), None if y is None else list(y)))
            return self

    task = regression(folder)
    task.evaluate([Looking()])
    ((columns, rows, truth),) = Looking.seen
    X_train, X_test, y_train, _ = task.get_splits(task.data_dict["line"], task.metadata["line"])
    assert columns == ["name", "x"]  # never the target
    assert rows == sorted(X_train.index) and not set(rows) & set(X_test.index)
    assert truth == y_train.tolist()
    Looking.seen.clear()
    own(TabEBClusteringTask, table("classification")).evaluate([Looking()])
    assert Looking.seen[0][2] is None


def test_out_of_fold_vectors_for_encoders_that_look_at_the_truth(folder):
    models = {"cross-fitted": OutOfFold(), "in-sample": "forest-scores-in-sample"}
    frame = classification(folder).evaluate(models)
    assert frame["halves"].tolist() == [1.0, 1.0]


# -- what fails -----------------------------------------------------------------------------


class Broken(Numbers):
    name = "broken"

    def transform(self, X, y=None):
        raise ZeroDivisionError("no")


def test_a_failing_model_is_an_empty_row_with_its_reason(folder):
    with pytest.warns(UserWarning, match="^broken on line: ZeroDivisionError: no$") as caught:
        frame = regression(folder).evaluate([Broken(), Numbers()])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert np.isnan(frame.loc[0, ["line", "regression_average"]].astype(float)).all()
    assert np.isfinite(frame.loc[1, "regression_average"])
    assert frame.attrs["failures"] == [
        {"encoder": "broken", "dataset": "line", "reason": "ZeroDivisionError: no"}
    ]


def test_a_lost_data_set_is_an_empty_column(folder):
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["lines", "line"])
    with pytest.warns(UserWarning, match="^lines: there is no file .*lines.parquet, and Karat"):
        frame = task.evaluate([Numbers(), Constant()])
    assert frame["lines"].isna().all() and frame["line"].notna().all()
    assert frame["regression_average"].isna().all()  # a mean over fewer would be another number
    assert {failure["encoder"] for failure in frame.attrs["failures"]} == {"numbers", "constant"}
    assert task.data_loaded_ is False
    with pytest.raises(LostData, match=r"^lines: there is no file .*/lines/lines.parquet, and"):
        task.load_data()


def test_any_failure_to_load_spares_the_others(folder):
    class Task(TabEBRegressionTask):
        def _load_data(self, name, data_dir):
            if name == "odd":
                raise ZeroDivisionError("no")
            return super()._load_data(name, data_dir)

    task = Task(data_dir=folder, data_name_list=["odd", "line"])
    with pytest.warns(UserWarning, match="^odd: ZeroDivisionError: no$"):
        assert task.evaluate([Numbers()])["line"].notna().all()

    class Never(TabEBRegressionTask):
        def load_data(self):
            self.data_loaded_ = True

    with pytest.warns(UserWarning, match="^line: load_data did not load it.$"):
        Never(data_dir=folder, data_name_list=["line"]).evaluate([Numbers()])


def test_a_data_set_that_cannot_be_cut_is_an_empty_column(folder):
    with pytest.warns(UserWarning, match="^line: cannot train on 60 of 60 questions"):
        assert regression(folder, n_train=60).evaluate([Numbers()])["line"].isna().all()
    with pytest.warns(UserWarning, match="^line: cannot train on 60 of 60 groups of rows"):
        task = regression(folder, n_train=60, protocol="original")
        assert task.evaluate([Numbers()])["line"].isna().all()


def test_missing_models_do_not_raise_before_they_are_used(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    models = [compat.get_model("skrub_encoder"), Numbers()]
    with pytest.warns(UserWarning, match="^skrub_encoder on line: skrub is not installed: pip in"):
        frame = regression(folder).evaluate(models)
    assert frame["line"].isna().tolist() == [True, False]


def test_a_task_without_data_sets():
    with pytest.raises(DefinitionError, match="^the task has no data sets; name some in data_na"):
        TabEBBaseTask().evaluate([Numbers()])
    task = TabEBRegressionTask(data_name_list=["line", "line"])
    with pytest.raises(DefinitionError, match='^data_name_list: "line" is taken; each name once'):
        task.evaluate([Numbers()])


def test_a_head_that_does_not_converge_is_noted(folder):
    rng = np.random.default_rng(0)
    noisy = pd.DataFrame(rng.normal(size=(ROWS, 30)), columns=[f"x{i}" for i in range(30)])
    noisy["y"] = np.arange(ROWS) % 2
    task = own(TabEBClassificationTask, noisy)
    frame = task.evaluate([Numbers()], head_params={"max_iter": 2})
    (note,) = frame.attrs["notes"]
    assert note == {
        **{"encoder": "numbers", "dataset": "mine"},
        "note": "the head did not converge in 2 iterations",
    }
    assert task.evaluate([Numbers()]).attrs["notes"] == []


def test_what_libraries_say_is_noted_and_not_shown(folder):
    class Talking(Numbers):
        def transform(self, X, y=None):
            warnings.warn("twice", stacklevel=1)
            warnings.warn("old", FutureWarning, stacklevel=1)
            return super().transform(X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = regression(folder).evaluate([Talking()])
    assert [note["note"] for note in frame.attrs["notes"]] == ["twice"]


# -- tables ---------------------------------------------------------------------------------


def test_tables_and_metadata_are_there_after_loading(folder):
    task = regression(folder)
    task.load_data()
    assert task.data_loaded_ is True
    assert list(task.data_dict["line"].columns) == ["name", "x", "y"]
    assert len(task.data_dict["line"]) == ROWS
    assert task.metadata["line"]["target_name"] == "y"
    assert task.metadata["line"]["repeated"] is False


def test_tables_of_ones_own():
    frame = own(TabEBRegressionTask, table("regression"), "regression").evaluate([Constant()])
    assert frame["mine"].notna().all()
    task = TabEBRegressionTask(data_name_list=["mine"])
    task.data_dict["mine"] = table("regression")
    with pytest.warns(UserWarning, match="^mine: nothing is known about it; put its target_name"):
        task.evaluate([Constant()])
    with pytest.warns(UserWarning, match="not 'regresion'. Did you mean \"regression\"?"):
        own(TabEBRegressionTask, table("regression"), "regresion").evaluate([Constant()])
    plain = own(TabEBRegressionTask, table("regression"))
    plain.metadata["mine"] = {"target_name": "y"}  # what the truth is can be seen
    with pytest.warns(UserWarning, match='60 distinct; taken as "numbers"'):
        plain.get_splits(plain.data_dict["mine"], plain.metadata["mine"])


def test_karats_own_data_stand_in_for_what_the_folder_lacks(folder):
    task = TabEBClassificationTask(data_dir=folder, data_name_list=["halves", "iris", "wine"])
    with pytest.warns(UserWarning, match="does not hold iris, wine; Karat's own") as caught:
        frame = task.evaluate([Numbers()])
    assert len(caught) == 1
    assert frame.loc[0, ["halves", "iris", "wine"]].astype(float).gt(0.95).all()
    assert task.metadata["iris"] == {
        **{"name": "iris", "task": "classification", "target_name": "species"},
        **{"entity_name": None, "repeated": False, "dtype": {}},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TabEBClassificationTask(data_name_list=["iris"]).evaluate([Numbers()])


@pytest.mark.parametrize("name", ["stsb", "bbc_headlines", "capital_country"])
def test_texts_and_questions_of_several_fields_are_no_tables(name, monkeypatch):
    data = {
        "stsb": ("text", "numbers", 2),
        "bbc_headlines": ("text", "classes", 1),
        "capital_country": ("entity", "items", 3),
    }[name]
    from karat.compat.tabeb import tables

    class Found:
        modality, kind, fields = data[0], data[1], ["f"] * data[2]

    monkeypatch.setattr(tables.Catalogue, "dataset", lambda self, name: lambda: Found)
    with pytest.raises(LostData, match=f"^{name} is no table whose rows have a class or a number"):
        TabEBRegressionTask(data_name_list=[name]).load_data()


def test_data_that_cannot_be_had(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "empty"))
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["penguins"])
    with pytest.raises(DataError, match=r"^penguins: there is no file .*penguins.parquet, and the"):
        task.load_data()


def test_wrong_metadata_say_so(folder):
    write(folder, "line", "regression", target_name="yy")
    with pytest.warns(UserWarning, match='target_name: "yy" is not a column. Did you mean "y"'):
        assert regression(folder).evaluate([Numbers()])["line"].isna().all()
    write(folder, "line", "regression", dtype={"x": "object", "z": "int64"})
    with pytest.warns(UserWarning, match="^line_metadata.json: 2 of its 2 declared types are wro"):
        assert regression(folder).evaluate([Numbers()])["line"].notna().all()


# -- splits ---------------------------------------------------------------------------------


def test_four_fifths_teach_unless_a_number_is_given(folder):
    for protocol in ("corrected", "original"):
        sizes = regression(folder, protocol=protocol).evaluate([Numbers()]).attrs["data"]
        assert (sizes[0]["train"], sizes[0]["test"]) == (48, 12)
        few = regression(folder, protocol=protocol, n_train=16, max_rows=40)
        sizes = few.evaluate([Numbers()]).attrs["data"]
        assert (sizes[0]["train"], sizes[0]["test"]) == (16, 24)


def test_the_sample_is_drawn_and_the_original_takes_the_first_rows(folder):
    def rows(protocol: str) -> set[int]:
        task = regression(folder, max_rows=20, protocol=protocol)
        task.load_data()
        X_train, X_test, _, _ = task.get_splits(task.data_dict["line"], task.metadata["line"])
        assert len(X_train) + len(X_test) == 20
        return {*X_train.index, *X_test.index}

    assert rows("original") == set(range(20))
    assert rows("corrected") != set(range(20)) and rows("corrected") == rows("corrected")


@pytest.mark.parametrize("rows", [None, 200])
def test_the_corrected_protocol_is_that_of_karats_own_runs(tmp_path, rows):
    import karat

    tasks = [
        karat.Task(
            name,
            name,
            probe={"use": "trained", "head": head},
            split={"use": "holdout"},
            metrics=[metric],
        )
        for name, head, metric in (("diabetes", "ridge", "rmse"), ("iris", "logistic", "auc_micro"))
    ]
    options = {"output": tmp_path, "seed": 7, **({"max_rows": rows} if rows else {})}
    (run,) = karat.evaluate("onehot", tasks, **options)
    scores = run.scores().set_index("task")["value"]
    for cls, name in ((TabEBRegressionTask, "diabetes"), (TabEBClassificationTask, "iris")):
        task = cls(data_name_list=[name], seed=7, max_rows=rows)
        assert task.evaluate(["onehot"]).loc[0, name] == scores[name]


def test_classes_keep_their_shares(folder):
    task = classification(folder, max_rows=20, n_train=10)
    task.load_data()
    _, _, y_train, y_test = task.get_splits(task.data_dict["halves"], task.metadata["halves"])
    assert y_train.value_counts().tolist() == y_test.value_counts().tolist() == [5, 5]


@pytest.mark.parametrize("protocol", ["corrected", "original"])
def test_groups_stay_whole(folder, protocol):
    def known(**options) -> int:
        frame = regression(folder, protocol=protocol, **options).evaluate([Numbers()])
        return frame.attrs["data"][0]["test_rows_of_train_entities"]

    n_train = 10 if protocol == "original" else 30  # groups there, rows here
    assert known(n_train=n_train) > 0
    assert known(n_train=n_train, group="entity") == 0
    write(folder, "line", "regression", repeated=True)
    assert known(n_train=n_train) == 0


def test_rows_alike_stay_together_if_asked():
    frame = pd.concat([table("regression").assign(name="n")] * 2, ignore_index=True)
    found = {}
    for group in (None, "row"):
        task = own(TabEBRegressionTask, frame, "regression", group=group)
        found[group] = task.evaluate([Numbers()]).attrs["data"][0]["test_rows_alike_in_train"]
    assert found[None] > 0 and found["row"] == 0
    with pytest.warns(UserWarning, match='mine: its metadata have no "entity_name" to group the'):
        own(TabEBRegressionTask, frame, "regression", group="entity").evaluate([Numbers()])


def test_get_splits_may_be_written_anew(folder):
    class Ordered(TabEBRegressionTask):
        def get_splits(self, data, metadata, num_train=None, random_state=None):
            X = data[["x"]].to_numpy()
            return X[:40], X[40:], data["y"][:40], data["y"][40:]

    task = Ordered(data_dir=folder, data_name_list=["line"], protocol="original")
    frame = task.evaluate([compat.get_model("random_encoder"), Doubled()])
    assert frame.attrs["data"][0]["test"] == 20
    assert frame.loc[1, "line"] == pytest.approx(0, abs=1e-9)


class Doubled(Numbers):
    name = "doubled"

    def transform(self, X, y=None):
        return 2 * X.to_numpy()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed is a whole number of 0 or more, not -1."),
        ({"seed": None}, "seed is a whole number of 0 or more, not None."),
        ({"max_rows": 1}, "max_rows is a whole number of 2 or more, not 1."),
        ({"n_train": 0.8}, "n_train is a whole number of 1 or more, not 0.8."),
        ({"n_train": True}, "n_train is a whole number of 1 or more, not True."),
        (
            {"protocol": "orignal"},
            "protocol is 'corrected' or 'original', not 'orignal'. Did you mean \"original\"?",
        ),
        ({"group": "name"}, "group is None or 'entity' or 'row', not 'name'."),
    ],
)
def test_wrong_settings(options, said):
    with pytest.raises(DefinitionError) as caught:
        TabEBRegressionTask(**options)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "task", [TabEBClusteringTask, TabEBAnomalyDetectionTask, TabEBDeduplicationTask]
)
@pytest.mark.parametrize("option", [{"n_train": 16}, {"group": "entity"}])
def test_no_setting_that_means_nothing(task, option):
    with pytest.raises(DefinitionError, match="holds no rows out, so n_train and group mean noth"):
        task(**option)


# -- the seams ------------------------------------------------------------------------------


class TabEBNewTask(TabEBBaseTask):
    """The class of the document."""

    def __init__(self, **kwarg):
        super().__init__(**kwarg)
        self.task = "task_name"
        self.metric = "metric_name"
        self.data_name_list = ["line"]

    def get_head(self):
        return LinearRegression()

    def get_score(self, y_true: np.array, y_pred: np.array = None) -> float:
        return root_mean_squared_error(y_true, y_pred)


def test_a_task_of_ones_own(folder, tmp_path):
    task = TabEBNewTask(data_dir=folder, seed=7)
    frame = task.evaluate([Numbers(), Constant()], save_dir=tmp_path / "results")
    assert list(frame.columns) == ["encoder", "line", "task_name_average"]
    assert frame.loc[0, "line"] == pytest.approx(0, abs=1e-9)
    with pytest.warns(UserWarning, match="task_name: whether a higher metric_name is better is n"):
        board = compat.get_leaderboard(["task_name"], tmp_path / "results")
    assert board["task_name_rank"].isna().all()
    pd.testing.assert_frame_equal(board[list(frame.columns)], frame, check_exact=True)


def test_a_task_of_ones_own_may_say_which_way_is_better(folder, tmp_path):
    class Task(TabEBNewTask):
        higher_is_better = False

    task = Task(data_dir=folder)
    task.evaluate([Constant(), Numbers()], save_dir=tmp_path)
    assert compat.get_leaderboard([task], tmp_path)["encoder"].tolist() == ["numbers", "constant"]


def test_the_usual_head_and_a_metric_of_karats(folder):
    class Task(TabEBBaseTask):
        pass

    for name, metric, value in (("line", "r2", 1), ("halves", "acc", 1), ("halves", "auc", 1)):
        task = Task(data_dir=folder, task="mine", metric=metric, data_name_list=[name])
        assert task.evaluate([Numbers()]).loc[0, name] == pytest.approx(value, abs=0.1)
    wrong = Task(data_dir=folder, metric="r22", data_name_list=["line"])
    with pytest.warns(UserWarning, match='there is no metric "r22". Did you mean "r2"'):
        wrong.evaluate([Numbers()])


def test_a_head_of_ones_own_gets_the_vectors_of_the_protocol(folder):
    seen = {}

    class Looking(LogisticRegression):
        def fit(self, X, y):
            seen["X"] = X
            return super().fit(X, y)

    class Task(TabEBClassificationTask):
        def get_head(self):
            return Looking()

    for protocol, mean in (("corrected", 0.0), ("original", pytest.approx(29.5, abs=5))):
        task = Task(data_dir=folder, data_name_list=["halves"], protocol=protocol)
        assert task.evaluate([Numbers()]).loc[0, "halves"] == 1.0
        assert seen["X"].mean() == mean if protocol == "original" else abs(seen["X"].mean()) < 1e-9


def test_labels_and_probabilities_are_those_of_the_table(folder):
    got = {}

    class Seeing(TabEBClassificationTask):
        def get_score(self, y_true, y_pred):
            got.update(y_true=y_true, y_pred=y_pred)
            return 0.5

    Seeing(data_dir=folder, data_name_list=["halves"]).evaluate([Numbers()])
    assert set(got["y_true"]) == {"high", "low"}
    assert got["y_pred"].shape == (12, 2)
    # the columns stand in the order of the labels
    assert (got["y_pred"].argmax(axis=1) == (got["y_true"] == "low")).all()

    class Labels(TabEBBaseTask):
        def get_score(self, y_true, y_pred):
            got.update(y_true=y_true, y_pred=y_pred)
            return 0.5

    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0], 30), "y": np.repeat([2, 10], 30)})
    own(Labels, frame, task="mine").evaluate([Numbers()])
    assert got["y_pred"].dtype == got["y_true"].dtype == np.int64
    assert (got["y_pred"] == got["y_true"]).all()
    own(Seeing, frame).evaluate([Numbers()])
    assert (got["y_pred"].argmax(axis=1) == (got["y_true"] == 10)).all()


def test_a_regressor_may_learn_numbered_classes():
    class Task(TabEBNewTask):
        def __init__(self, **kwarg):
            super().__init__(**kwarg)
            self.data_name_list = ["mine"]

    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "y": [0, 1] * 30})
    made = Task()
    made.data_dict["mine"], made.metadata["mine"] = frame, {"target_name": "y", "task": "classif"}
    made.metadata["mine"]["task"] = "classification"
    assert made.evaluate([Numbers()]).loc[0, "mine"] == pytest.approx(0, abs=1e-9)


def test_head_params_are_set_on_the_head_and_nothing_else(folder):
    class Task(TabEBClassificationTask):
        def get_head(self):
            return KNeighborsClassifier()

    task = Task(data_dir=folder, data_name_list=["halves"])
    frame = task.evaluate([Numbers()], head_params={"n_neighbors": 1})
    assert "n_neighbors=1," in frame.attrs["config"]["head"]
    with pytest.raises(DefinitionError, match='KNeighborsClassifier has no parameter "k"'):
        task.evaluate([Numbers()], head_params={"k": 1})
    with pytest.raises(DefinitionError, match='evaluate has no parameter "head_param". Did you m'):
        task.evaluate([Numbers()], head_param={"k": 1})


def test_a_head_that_is_none(folder):
    class Task(TabEBClassificationTask):
        def get_head(self):
            return LogisticRegression

    with pytest.raises(ContractError, match="it must return an unfitted head"):
        Task(data_dir=folder).evaluate([Numbers()])


def test_a_score_that_is_none(folder):
    class Task(TabEBRegressionTask):
        def get_score(self, y_true, y_pred):
            return np.nan

    with pytest.warns(UserWarning, match="numbers on line: Task.get_score returned nan."):
        Task(data_dir=folder, data_name_list=["line"]).evaluate([Numbers()])


# -- the four kinds that TabEB only describes -----------------------------------------------


def test_clustering_finds_what_lies_apart():
    frame = pd.DataFrame({"x": np.repeat([0.0, 50.0, 100.0], 20), "y": np.repeat(list("abc"), 20)})
    frame["x"] += np.tile(np.arange(20) / 100, 3)
    task = own(TabEBClusteringTask, frame)
    assert task.evaluate([Numbers(), Constant()])["mine"].tolist() == [1.0, 0.0]
    assert task.get_head(n_clusters=3).n_clusters == 3
    assert task.get_head().batch_size == 32
    assert "n_clusters" not in task.evaluate([Numbers()]).attrs["config"]["head"]
    assert task.get_score(list("aabb"), [1, 1, 0, 0]) == 1.0


def test_a_clusterer_of_ones_own():
    from sklearn.cluster import KMeans

    class Two(TabEBClusteringTask):
        def get_head(self):
            return KMeans(2, n_init=1, random_state=0)

    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 100.0], 20), "y": np.repeat(list("abb"), 20)})
    frame["y"] = np.repeat(list("aab"), 20)
    assert own(Two, frame).evaluate([Numbers()]).loc[0, "mine"] == 1.0


def odd_rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=57), [40.0, -40.0, 80.0]])
    return pd.DataFrame({"x": x, "y": [0] * 57 + [1] * 3})


def test_anomalies_are_what_lies_far_from_its_neighbours():
    task = own(TabEBAnomalyDetectionTask, odd_rows())
    frame = task.evaluate([Numbers(), Constant()])
    assert frame.loc[0, "mine"] == 1.0
    # all alike: the three first rows are flagged, and six rows are wrong
    f1 = [54 * 2 / (57 + 57), 0.0]
    assert frame.loc[1, "mine"] == pytest.approx((57 * f1[0] + 3 * f1[1]) / 60)
    assert task.get_score([0, 0, 1, 1], [0, 0, 1, 1]) == 1.0
    by_order = own(TabEBAnomalyDetectionTask, odd_rows(), metric="auc")
    assert by_order.evaluate([Numbers()]).loc[0, "mine"] == 1.0


@pytest.mark.parametrize(
    "head",
    [
        IsolationForest(random_state=0),
        LocalOutlierFactor(n_neighbors=5),
        LocalOutlierFactor(n_neighbors=5, novelty=True),
    ],
)
def test_detectors_of_scikit_learn(head):
    class Task(TabEBAnomalyDetectionTask):
        def get_head(self):
            return head

    frame = own(Task, odd_rows()).evaluate([Numbers()])
    assert frame.loc[0, "mine"] == 1.0
    assert type(head).__name__ in frame.attrs["config"]["head"]


def test_what_cannot_tell_oddness():
    class Task(TabEBAnomalyDetectionTask):
        def get_head(self):
            return LogisticRegression()

    with pytest.raises(ContractError, match="an anomaly task needs outlier_scores"):
        own(Task, odd_rows()).evaluate([Numbers()])
    three = pd.DataFrame({"x": X, "y": np.repeat(list("abc"), 20)})
    with pytest.warns(UserWarning, match="an outlier head tells two classes apart; mine has 3"):
        own(TabEBAnomalyDetectionTask, three).evaluate([Numbers()])


class Angle(Numbers):
    """The direction that a row's number of degrees points in."""

    name = "angle"

    def transform(self, X, y=None):
        turn = np.deg2rad(X["x"].to_numpy())
        return np.column_stack([np.cos(turn), np.sin(turn)])


def test_ranking_by_cosine():
    near = np.concatenate([np.arange(30) / 10, 90 + np.arange(30) / 10])
    frame = pd.DataFrame({"x": near, "y": np.repeat([0, 1], 30)})
    task = own(TabEBRankingTask, frame)
    found = task.evaluate([Angle(), Constant()])
    assert found.loc[0, "mine"] == 1.0
    # all tie: the 24 rows of the other class stand first, then those that are wanted
    places = np.arange(1, 25)
    assert found.loc[1, "mine"] == pytest.approx(np.mean(places / (24 + places)))
    assert task.get_score(["q", "q"], [1, 4]) == pytest.approx((1 + 2 / 4) / 2)


def test_what_get_score_of_a_ranking_gets():
    class First(TabEBRankingTask):
        def get_score(self, y_true, y_pred):
            return float(pd.Series(y_pred).groupby(np.asarray(y_true)).min().eq(1).mean())

    frame = pd.DataFrame({"x": np.repeat([0.0, 90.0], 30), "y": np.repeat([0, 1], 30)})
    assert own(First, frame).evaluate([Angle()]).loc[0, "mine"] == 1.0


def test_duplicates_by_cosine():
    frame = pd.DataFrame({"x": np.repeat(np.arange(0, 90, 3.0), 2), "y": np.repeat(range(30), 2)})
    frame["y"] = frame["y"].astype(str)
    task = own(TabEBDeduplicationTask, frame)
    assert task.evaluate([Angle(), Constant()])["mine"].tolist() == [1.0, 0.5]
    assert task.get_score([1, 0, 0], [0.9, 0.1, 0.95]) == 0.5
    # a sample keeps the rows of a thing together
    few = own(TabEBDeduplicationTask, frame, max_rows=10)
    assert few.evaluate([Angle()]).attrs["data"] == [{"dataset": "mine", "train": 10, "test": 10}]
    assert few.evaluate([Angle()]).loc[0, "mine"] == 1.0


def test_pairs_are_counted_so_get_score_must_take_the_weights():
    class Blind(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred):
            return 1.0

    class Seeing(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred, predictions):
            return float(predictions.weight.sum())

    frame = pd.DataFrame({"x": np.repeat(np.arange(0, 90, 3.0), 2), "y": np.repeat(range(30), 2)})
    with pytest.warns(UserWarning, match="Blind.get_score must take predictions: pairs are count"):
        own(Blind, frame).evaluate([Angle()])
    assert own(Seeing, frame).evaluate([Angle()]).loc[0, "mine"] == 60 * 59 / 2


@pytest.mark.parametrize("task", [TabEBRankingTask, TabEBDeduplicationTask])
def test_no_head_where_vectors_are_compared(task):
    class Task(task):
        def get_head(self):
            return LogisticRegression()

    with pytest.raises(DefinitionError, match="compares vectors by their cosine: it has no head"):
        own(Task, table("classification")).evaluate([Numbers()])
    with pytest.raises(DefinitionError, match="neither get_head nor head_params mean anything"):
        own(task, table("classification")).evaluate([Numbers()], head_params={"C": 1})


def test_saving_needs_a_library(folder, monkeypatch, tmp_path):
    task = regression(folder)
    task.load_data()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r'pyarrow is not installed: pip install "karat\[tab'):
        task.evaluate([Numbers()], save_dir=tmp_path / "results")
    assert not (tmp_path / "results").exists()
