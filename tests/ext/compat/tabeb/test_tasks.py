"""TabEB's tasks: tables, splits, heads, scores and failures."""

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
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GroupShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import karat.ext.compat.tabeb as compat
from karat.errors import ContractError, DataError, DefinitionError, MissingExtra
from karat.ext.compat.tabeb import (
    TabEBAnomalyDetectionTask,
    TabEBBaseEncoder,
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBClusteringTask,
    TabEBDeduplicationTask,
    TabEBRankingTask,
    TabEBRegressionTask,
)
from karat.ext.compat.tabeb.readers import LostData
from karat.ext.compat.tabeb.tasks import describe_object
from karat.models.out_of_fold import OutOfFold

from .test_interface import Scaled

pytest.importorskip("pyarrow")

ALL = [getattr(compat, name) for name in compat.__all__ if name.endswith("Task")]
ROWS = 60
X = np.arange(ROWS, dtype=float)


class Numbers(TabEBBaseEncoder):
    """The numeric columns."""

    name = "numbers"

    def fit(self, X, y=None):
        return self

    def transform(self, X, y=None):
        return X.select_dtypes("number").to_numpy(dtype=float)


class Constant(Numbers):
    """The same vector for every row, so that a linear head predicts the mean."""

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
    metadata = {"name": name, "task": task, "target_name": "y", "entity_name": "name", **more}
    (place / f"{name}_metadata.json").write_text(json.dumps(metadata))
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
    made = cls(data_name_list=["own"], **options)
    made.data_dict["own"] = (frame, {"target_name": "y", "task": kind})
    return made


def with_head(cls: type, head) -> type:
    """Return a subclass of a task with its own head."""
    return type("Task", (cls,), {"get_head": lambda self: head})


@pytest.mark.parametrize("task", ALL, ids=lambda t: t.__name__)
def test_documented_settings(task):
    made = task()
    assert (made.data_dir, made.seed, made.split) == ("", 42, ["train", "test"])
    assert (made.protocol, made.max_rows, made.n_train) == ("corrected", None, None)
    assert made.data_loaded_ is False and made.data_dict == {} and made.metadata == {}


def test_documented_order_of_the_settings_of_the_base_class():
    given = ("own", "r2", ["test"], ["line"], "folder", 7)
    names = ("task", "metric", "split", "data_name_list", "data_dir", "seed")
    task = TabEBBaseTask(*given)
    assert tuple(getattr(task, name) for name in names) == given
    parameters = inspect.signature(TabEBBaseTask).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert keywords == ["max_rows", "n_train", "protocol", "group"]
    task = TabEBBaseTask()
    assert (task.task, task.metric, task.data_name_list) == ("classification", "accuracy", [])


@pytest.mark.parametrize("task", [t for t in ALL if t is not TabEBBaseTask])
def test_settings_of_the_six_tasks_are_given_by_name(task):
    with pytest.raises(TypeError):
        task("data")


def test_documented_content_of_data_dict(folder):
    task = regression(folder)
    task.load_data()
    frame, metadata = task.data_dict["line"]
    assert frame.equals(table("regression")) and metadata["target_name"] == "y"
    assert task.metadata["line"] is metadata
    assert [list(part) for part in task._load_data("line", folder)] == [list(frame), list(metadata)]


def test_documented_result_of_get_splits(folder):
    task = regression(folder)
    task.load_data()
    frame, metadata = task.data_dict["line"]
    sides = task.get_splits(frame, data_metadata=metadata, num_train=16, random_state=3)
    X_train, X_test, y_train, y_test = sides
    assert (len(X_train), len(X_test)) == (16, 44)
    assert isinstance(y_train, np.ndarray) and isinstance(y_test, np.ndarray)
    assert (y_train == 2 * X_train["x"] + 1).all() and (y_test == 2 * X_test["x"] + 1).all()


def test_get_splits_gives_the_split_of_evaluate():
    task = own(TabEBRegressionTask, table("regression"), "regression")
    _, _, y_train, y_test = task.get_splits(*task.data_dict["own"])
    error = np.sqrt(np.mean((y_test - y_train.mean()) ** 2))
    assert task.evaluate([Constant()]).loc[0, "own"] == pytest.approx(error)


def test_documented_tasks():
    documented = {t.task: (t.metric, list(t.data_name_list)) for t in ALL if t is not TabEBBaseTask}
    assert [t().direction() for t in ALL] == [t.task != "regression" for t in ALL]
    assert documented == {
        "regression": ("rmse", ["wine_pl", "wine_vivino_price"]),
        "classification": ("auc_micro", ["spotify"]),
        "clustering": ("v_measure", ["wine", "penguins"]),
        "ranking": ("map", ["wine", "penguins"]),
        "anomaly_detection": ("f1_weighted", ["shuttle_c0_c4", "glass5"]),
        "deduplication": ("auc", ["febrl1", "febrl2"]),
    }


def test_the_documented_frame(folder):
    write(folder, "steep", "regression", table("regression").assign(y=20 * X))
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["line", "steep"])
    frame = task.evaluate([Constant(), Numbers()])
    assert list(frame.columns) == ["encoder", "line", "steep", "regression_average"]
    assert frame["encoder"].tolist() == ["constant", "numbers"]
    _, _, y_train, y_test = task.get_splits(*task.data_dict["line"])
    mean = np.sqrt(np.mean((y_test - y_train.mean()) ** 2))
    assert frame.loc[0, "line"] == pytest.approx(mean)
    means = frame[["line", "steep"]].mean(axis=1)
    assert frame["regression_average"].tolist() == means.tolist()
    assert (frame.loc[1, ["line", "steep"]] < frame.loc[0, ["line", "steep"]] / 10).all()
    assert frame.attrs["failures"] == []
    json.dumps(frame.attrs)  # pandas writes them into a Parquet file


def test_documented_order_of_the_arguments_of_evaluate(folder, tmp_path):
    class Fitted(Numbers):
        def fit(self, X, y=None, weight=None):
            assert weight == 3
            return self

        def transform(self, X, y=None):
            return np.full((len(X), 1), np.nan)

    place = tmp_path / "saved"
    frame = regression(folder).evaluate([Fitted()], "train", {"weight": 3}, 0, place)
    assert frame.attrs["config"]["split"] == "train" and frame["line"].notna().all()
    assert [path.name for path in place.iterdir()] == ["scores_regression.parquet"]


def test_score_of_the_training_side(folder):
    task = regression(folder)
    inside = task.evaluate([Constant()], split="train").loc[0, "line"]
    _, _, y_train, _ = task.get_splits(*task.data_dict["line"])
    assert inside == pytest.approx(np.std(y_train))
    with pytest.raises(DefinitionError, match="'tst'"):
        task.evaluate([Constant()], split="tst")
    only = regression(folder, split="test")
    with pytest.raises(DefinitionError, match="'train'"):
        only.evaluate([Constant()], split="train")


def test_accepted_models(folder):
    pipeline = make_pipeline(Numbers(), StandardScaler(), PCA(1))
    models = ["random_encoder", "onehot", pipeline, Numbers, lambda rows: rows[["x"]]]
    frame = classification(folder).evaluate(models)
    names = ["random_encoder", "onehot", "Pipeline", "numbers", "function"]
    assert frame["encoder"].tolist() == names
    assert frame["halves"].tolist()[2:] == [1.0, 1.0, 1.0]
    frame = classification(folder).evaluate({"a": Numbers(), "b": Numbers()})
    assert frame["encoder"].tolist() == ["a", "b"]
    assert classification(folder).evaluate(Numbers())["encoder"].tolist() == ["numbers"]
    # an estimator with transform is an encoder, even if it can also predict
    both = make_pipeline(Numbers(), LinearDiscriminantAnalysis())
    assert classification(folder).evaluate(both).loc[0, "halves"] == 1.0


def test_all_invalid_models_are_reported_at_once(folder):
    with pytest.raises(DefinitionError) as caught:
        classification(folder).evaluate([Numbers(), "onehott", 3, "ridge", Numbers()])
    unknown, invalid, predictor, duplicate = caught.value.messages
    assert '"onehot"' in unknown and "int" in invalid
    assert "ridge" in predictor and '"numbers"' in duplicate
    for models in ([], [LinearRegression()]):
        with pytest.raises(DefinitionError):
            classification(folder).evaluate(models)


def test_fresh_copy_for_each_dataset(folder):
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


def test_documented_encoder_with_args_and_kwargs(folder):
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


def test_input_of_an_encoder(folder):
    class Looking(Numbers):
        name = "looking"
        seen = []

        def fit(self, X, y=None):
            self.seen.append((list(X.columns), sorted(X.index), None if y is None else list(y)))
            return self

    task = regression(folder)
    task.evaluate([Looking()])
    ((columns, rows, truth),) = Looking.seen
    X_train, X_test, y_train, _ = task.get_splits(*task.data_dict["line"])
    assert columns == ["name", "x"]  # never the target
    assert rows == sorted(X_train.index) and not set(rows) & set(X_test.index)
    assert truth == y_train.tolist()
    Looking.seen.clear()
    own(TabEBClusteringTask, table("classification")).evaluate([Looking()])
    assert Looking.seen[0][2] is None


def test_cells_of_any_type():
    class Brightness(Numbers):
        name = "brightness"

        def transform(self, X, y=None):
            return [[picture.mean()] for picture in X["picture"]]

    frame = pd.DataFrame({"picture": [np.full((2, 2), value) for value in X], "y": X})
    task = own(TabEBRegressionTask, frame, "regression", protocol="original")
    assert task.evaluate([Brightness()]).loc[0, "own"] == pytest.approx(0, abs=1e-9)


def test_missing_cells_of_an_encoder():
    class Looking(Numbers):
        def fit(self, X, y=None):
            assert X["note"].isna().all() and X["x"].isna().sum() <= 1
            return self

        def transform(self, X, y=None):
            return X[["x"]].fillna(0).to_numpy()

    frame = table("regression").assign(note=None)
    frame.loc[3, "x"] = np.nan
    assert own(TabEBRegressionTask, frame, "regression").evaluate([Looking()])["own"].notna().all()


def test_out_of_fold_vectors_of_supervised_encoders(folder):
    models = {"cross-fitted": OutOfFold(), "in-sample": "forest-scores-in-sample"}
    frame = classification(folder).evaluate(models)
    assert frame["halves"].tolist() == [1.0, 1.0]


class Broken(Numbers):
    name = "broken"

    def transform(self, X, y=None):
        raise ZeroDivisionError("no")


def test_failing_model(folder):
    with pytest.warns(UserWarning, match="^broken on line") as caught:
        frame = regression(folder).evaluate([Broken(), Numbers()])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert np.isnan(frame.loc[0, ["line", "regression_average"]].astype(float)).all()
    assert np.isfinite(frame.loc[1, "regression_average"])
    assert frame.attrs["failures"] == [
        {"encoder": "broken", "dataset": "line", "reason": "ZeroDivisionError: no"}
    ]


def test_missing_dataset(folder):
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["lines", "line"])
    with pytest.warns(UserWarning, match="lines.parquet"):
        frame = task.evaluate([Numbers(), Constant()])
    assert frame["lines"].isna().all() and frame["line"].notna().all()
    assert frame["regression_average"].isna().all()  # no mean over fewer datasets
    assert {failure["encoder"] for failure in frame.attrs["failures"]} == {"numbers", "constant"}
    assert task.data_loaded_ is False
    with pytest.raises(LostData, match="lines.parquet"):
        task.load_data()


def test_failure_to_load_one_dataset(folder):
    class Task(TabEBRegressionTask):
        def _load_data(self, name, data_dir):
            if name == "odd":
                raise ZeroDivisionError("no")
            return super()._load_data(name, data_dir)

    task = Task(data_dir=folder, data_name_list=["odd", "line"])
    with pytest.warns(UserWarning, match="^odd: ZeroDivisionError"):
        assert task.evaluate([Numbers()])["line"].notna().all()

    class Never(TabEBRegressionTask):
        def load_data(self):
            self.data_loaded_ = True

    with pytest.warns(UserWarning, match="^line: load_data"):
        Never(data_dir=folder, data_name_list=["line"]).evaluate([Numbers()])


def test_dataset_that_cannot_be_split(folder):
    for protocol in ("corrected", "original"):
        with pytest.warns(UserWarning, match="^line: .*60 of 60"):
            task = regression(folder, n_train=60, protocol=protocol)
            assert task.evaluate([Numbers()])["line"].isna().all()


def test_unavailable_model_raises_on_use_only(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    models = [compat.get_model("skrub_encoder"), Numbers()]
    with pytest.warns(UserWarning, match="^skrub_encoder on line"):
        frame = regression(folder).evaluate(models)
    assert frame["line"].isna().tolist() == [True, False]


def test_unavailable_data(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "empty"))
    task = TabEBRegressionTask(data_dir=folder, data_name_list=["penguins"])
    with pytest.raises(DataError, match="penguins.parquet"):
        task.load_data()


def test_invalid_dataset_names():
    with pytest.raises(DefinitionError, match="data_name_list"):
        TabEBBaseTask().evaluate([Numbers()])
    task = TabEBRegressionTask(data_name_list=["line", "line"])
    with pytest.raises(DefinitionError, match='"line"'):
        task.evaluate([Numbers()])


def test_library_warnings_become_notes(folder):
    class Talking(Numbers):
        def transform(self, X, y=None):
            warnings.warn("twice", stacklevel=1)
            warnings.warn("old", FutureWarning, stacklevel=1)
            return super().transform(X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = regression(folder).evaluate([Talking()])
    assert [note["note"] for note in frame.attrs["notes"]] == ["twice"]


def test_own_tables():
    frame = own(TabEBRegressionTask, table("regression"), "regression").evaluate([Constant()])
    assert frame["own"].notna().all()
    task = TabEBRegressionTask(data_name_list=["own"])
    for wrong in (table("regression"), (table("regression"), None), (table("regression"), {})):
        task.data_dict["own"] = wrong
        with pytest.warns(UserWarning, match="^own: .*target_name"):
            task.evaluate([Constant()])
    task.data_dict["own"] = table("regression")
    with pytest.raises(DataError, match="data_dict"):
        task.metadata["own"]
    with pytest.raises(TypeError):
        TabEBRegressionTask().metadata["own"] = {"target_name": "y"}
    with pytest.warns(UserWarning, match="'regresion'"):
        own(TabEBRegressionTask, table("regression"), "regresion").evaluate([Constant()])
    plain = own(TabEBRegressionTask, table("regression"))
    with pytest.warns(UserWarning, match="60 distinct"):  # the kind is inferred
        plain.get_splits(table("regression"), {"target_name": "y"})


def test_karat_datasets_replace_missing_files(folder):
    task = TabEBClassificationTask(data_dir=folder, data_name_list=["halves", "iris", "wine"])
    with pytest.warns(UserWarning, match="iris, wine") as caught:
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
def test_other_kinds_of_data_are_rejected(name, monkeypatch):
    data = {
        "stsb": ("text", "regression", 2),
        "bbc_headlines": ("text", "classification", 1),
        "capital_country": ("entity", "items", 3),
    }[name]
    from karat.ext.compat.tabeb import readers as tables

    class Found:
        modality, kind, fields = data[0], data[1], ["f"] * data[2]

    monkeypatch.setattr(tables.Catalog, "dataset", lambda self, name: lambda: Found)
    with pytest.raises(LostData, match=f"^{name} "):
        TabEBRegressionTask(data_name_list=[name]).load_data()


def test_wrong_metadata(folder):
    write(folder, "line", "regression", target_name="yy")
    with pytest.warns(UserWarning, match='"yy"'):
        assert regression(folder).evaluate([Numbers()])["line"].isna().all()
    write(folder, "line", "regression", dtype={"x": "object", "z": "int64"})
    with pytest.warns(UserWarning, match="^line_metadata.json"):
        assert regression(folder).evaluate([Numbers()])["line"].notna().all()


def test_size_of_the_training_side(folder):
    for protocol in ("corrected", "original"):
        sizes = regression(folder, protocol=protocol).evaluate([Numbers()]).attrs["data"]
        assert (sizes[0]["train"], sizes[0]["test"]) == (48, 12)
        few = regression(folder, protocol=protocol, n_train=16, max_rows=40)
        sizes = few.evaluate([Numbers()]).attrs["data"]
        assert (sizes[0]["train"], sizes[0]["test"]) == (16, 24)


def test_sample_of_rows(folder):
    def rows(protocol: str) -> set[int]:
        task = regression(folder, max_rows=20, protocol=protocol)
        task.load_data()
        assert task.data_loaded_ is True and task.metadata["line"]["repeated"] is False
        X_train, X_test, _, _ = task.get_splits(*task.data_dict["line"])
        assert len(X_train) + len(X_test) == 20
        return {*X_train.index, *X_test.index}

    assert rows("original") == set(range(20))
    assert rows("corrected") != set(range(20)) and rows("corrected") == rows("corrected")


@pytest.mark.parametrize("rows", [None, 200])
def test_corrected_protocol_equals_a_karat_run(tmp_path, rows):
    import karat

    tasks = [
        karat.Task(
            name,
            name,
            probe={"use": "trained", "head": head},
            split={"use": "holdout"},
            metrics=[metric],
        )
        for name, head, metric in (
            ("diabetes", "ridge", "rmse"),
            ("iris", "logistic-regression", "auc_micro"),
        )
    ]
    options = {"output": tmp_path, "seed": 7, "only": karat.Only(max_rows=rows)}
    (run,) = karat.evaluate("onehot", tasks, **options)
    scores = run.scores().set_index("task")["value"]
    for cls, name in ((TabEBRegressionTask, "diabetes"), (TabEBClassificationTask, "iris")):
        task = cls(data_name_list=[name], seed=7, max_rows=rows)
        assert task.evaluate(["onehot"]).loc[0, name] == scores[name]


@pytest.mark.parametrize("protocol", ["corrected", "original"])
def test_groups_are_not_split(folder, protocol):
    def known(**options) -> int:
        frame = regression(folder, protocol=protocol, **options).evaluate([Numbers()])
        return frame.attrs["data"][0]["test_rows_of_train_entities"]

    n_train = 10 if protocol == "original" else 30  # groups there, rows here
    assert known(n_train=n_train) > 0
    assert known(n_train=n_train, group="entity") == 0
    write(folder, "line", "regression", repeated=True)
    assert known(n_train=n_train) == 0


@pytest.mark.parametrize("entity", [str, int, "w{:02}".format])
def test_groups_of_the_original_split(entity):
    """Entities are numbered in sorted order, as groupby does."""
    frame = table("regression").assign(name=[entity(39 - i % 40) for i in range(ROWS)])
    metadata = {"target_name": "y", "task": "regression", "entity_name": "name", "repeated": True}
    task = TabEBRegressionTask(protocol="original", n_train=16)
    X_train, X_test, _, _ = task.get_splits(frame, metadata)
    groups = frame.groupby("name").ngroup()
    splitter = GroupShuffleSplit(n_splits=1, test_size=24, random_state=42)
    train, test = next(splitter.split(frame, groups=groups))
    assert X_train.index.tolist() == train.tolist() and X_test.index.tolist() == test.tolist()


def test_group_by_equal_rows():
    frame = pd.concat([table("regression").assign(name="n")] * 2, ignore_index=True)
    found = {}
    for group in (None, "row"):
        task = own(TabEBRegressionTask, frame, "regression", group=group)
        found[group] = task.evaluate([Numbers()]).attrs["data"][0]["test_rows_alike_in_train"]
    assert found[None] > 0 and found["row"] == 0
    with pytest.warns(UserWarning, match='"entity_name"'):
        own(TabEBRegressionTask, frame, "regression", group="entity").evaluate([Numbers()])


def test_override_of_get_splits(folder):
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
    "options",
    [
        {"seed": -1},
        {"seed": None},
        {"max_rows": 1},
        {"n_train": 0.8},
        {"n_train": True},
        {"protocol": "orignal"},
        {"group": "name"},
    ],
)
def test_wrong_settings(options):
    ((name, value),) = options.items()
    with pytest.raises(DefinitionError, match=f"^{name} .*{value!r}"):
        TabEBRegressionTask(**options)


@pytest.mark.parametrize(
    "task", [TabEBClusteringTask, TabEBAnomalyDetectionTask, TabEBDeduplicationTask]
)
@pytest.mark.parametrize("option", [{"n_train": 16}, {"group": "entity"}])
def test_settings_without_effect_are_rejected(task, option):
    with pytest.raises(DefinitionError, match="n_train and group"):
        task(**option)


class OwnTask(TabEBBaseTask):
    """A task of one's own on one table, with a metric that Karat does not know."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.task, self.metric, self.data_name_list = "slope", "distance", ["line"]

    def get_head(self):
        return LinearRegression()

    def get_score(self, y_true, y_pred=None):
        return root_mean_squared_error(y_true, y_pred)


def test_own_task(folder, tmp_path):
    task = OwnTask(data_dir=folder, seed=7)
    frame = task.evaluate([Numbers(), Constant()], save_dir=tmp_path / "results")
    assert list(frame.columns) == ["encoder", "line", "slope_average"]
    assert frame.loc[0, "line"] == pytest.approx(0, abs=1e-9)
    with pytest.warns(UserWarning, match="distance"):
        board = compat.get_leaderboard(["slope"], tmp_path / "results")
    assert board["slope_rank"].isna().all()
    pd.testing.assert_frame_equal(board[list(frame.columns)], frame, check_exact=True)


def test_own_task_with_direction(folder, tmp_path):
    class Task(OwnTask):
        higher_is_better = False

    task = Task(data_dir=folder)
    task.evaluate([Constant(), Numbers()], save_dir=tmp_path)
    assert compat.get_leaderboard([task], tmp_path)["encoder"].tolist() == ["numbers", "constant"]


def test_default_head_and_karat_metric(folder):
    for name, metric, value in (("line", "r2", 1), ("halves", "acc", 1), ("halves", "auc", 1)):
        task = TabEBBaseTask(data_dir=folder, task="own", metric=metric, data_name_list=[name])
        assert task.evaluate([Numbers()]).loc[0, name] == pytest.approx(value, abs=0.1)
    wrong = TabEBBaseTask(data_dir=folder, metric="r22", data_name_list=["line"])
    with pytest.warns(UserWarning, match='"r22"'):
        wrong.evaluate([Numbers()])


def test_vectors_of_an_own_head(folder):
    seen = {}

    class Looking(LogisticRegression):
        def fit(self, X, y):
            seen["X"] = X
            return super().fit(X, y)

    Task = with_head(TabEBClassificationTask, Looking())
    for protocol, mean in (("corrected", 0.0), ("original", pytest.approx(29.5, abs=5))):
        task = Task(data_dir=folder, data_name_list=["halves"], protocol=protocol)
        assert task.evaluate([Numbers()]).loc[0, "halves"] == 1.0
        assert seen["X"].mean() == mean if protocol == "original" else abs(seen["X"].mean()) < 1e-9


def test_labels_and_probabilities_in_get_score(folder):
    got = {}

    class Seeing(TabEBClassificationTask):
        def get_score(self, y_true, y_pred):
            got.update(y_true=y_true, y_pred=y_pred)
            return 0.5

    Seeing(data_dir=folder, data_name_list=["halves"]).evaluate([Numbers()])
    assert set(got["y_true"]) == {"high", "low"}
    assert got["y_pred"].shape == (12, 2)
    # the columns are in sorted label order
    assert (got["y_pred"].argmax(axis=1) == (got["y_true"] == "low")).all()

    class Labels(TabEBBaseTask):
        get_score = Seeing.get_score

    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0], 30), "y": np.repeat([2, 10], 30)})
    own(Labels, frame, task="own").evaluate([Numbers()])
    assert got["y_pred"].dtype == got["y_true"].dtype == np.int64
    assert (got["y_pred"] == got["y_true"]).all()
    own(Seeing, frame).evaluate([Numbers()])
    assert (got["y_pred"].argmax(axis=1) == (got["y_true"] == 10)).all()


def test_head_params(folder):
    task = with_head(TabEBClassificationTask, KNeighborsClassifier())(
        data_dir=folder, data_name_list=["halves"]
    )
    frame = task.evaluate([Numbers()], head_params={"n_neighbors": 1})
    assert "n_neighbors=1," in frame.attrs["config"]["head"]
    with pytest.raises(DefinitionError, match='"k"'):
        task.evaluate([Numbers()], head_params={"k": 1})
    with pytest.raises(DefinitionError, match='"head_params"'):
        task.evaluate([Numbers()], head_param={"k": 1})


def test_head_with_at_most_100_iterations(folder):
    assert TabEBClassificationTask().get_head().max_iter == 100
    task = with_head(TabEBRegressionTask, SGDRegressor(random_state=0))(
        data_dir=folder, data_name_list=["line"]
    )
    frame = task.evaluate([Numbers()], head_params={"max_iter": 100})
    assert "max_iter=100," in frame.attrs["config"]["head"] and frame.loc[0, "line"] < 1


def test_invalid_head(folder):
    with pytest.raises(ContractError, match="get_head"):
        with_head(TabEBClassificationTask, LogisticRegression)(data_dir=folder).evaluate(
            [Numbers()]
        )


def test_invalid_score(folder):
    class Task(TabEBRegressionTask):
        def get_score(self, y_true, y_pred):
            return np.nan

    with pytest.warns(UserWarning, match="numbers on line: .*nan"):
        Task(data_dir=folder, data_name_list=["line"]).evaluate([Numbers()])


def test_clustering():
    frame = pd.DataFrame({"x": np.repeat([0.0, 50.0, 100.0], 20), "y": np.repeat(list("abc"), 20)})
    frame["x"] += np.tile(np.arange(20) / 100, 3)
    task = own(TabEBClusteringTask, frame)
    assert task.evaluate([Numbers(), Constant()])["own"].tolist() == [1.0, 0.0]
    assert task.get_head(n_clusters=3).n_clusters == 3
    assert task.get_head().batch_size == 32
    assert "n_clusters" not in task.evaluate([Numbers()]).attrs["config"]["head"]
    assert task.get_score(list("aabb"), [1, 1, 0, 0]) == 1.0


def test_own_clusterer():
    from sklearn.cluster import KMeans

    Two = with_head(TabEBClusteringTask, KMeans(2, n_init=1, random_state=0))
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 100.0], 20), "y": np.repeat(list("aab"), 20)})
    assert own(Two, frame).evaluate([Numbers()]).loc[0, "own"] == 1.0


class Angle(Numbers):
    """A unit vector at an angle of x degrees."""

    name = "angle"

    def transform(self, X, y=None):
        turn = np.deg2rad(X["x"].to_numpy())
        return np.column_stack([np.cos(turn), np.sin(turn)])


def test_ranking_by_cosine():
    near = np.concatenate([np.arange(30) / 10, 90 + np.arange(30) / 10])
    frame = pd.DataFrame({"x": near, "y": np.repeat([0, 1], 30)})
    task = own(TabEBRankingTask, frame)
    found = task.evaluate([Angle(), Constant()])
    assert found.loc[0, "own"] == 1.0
    # all tie: the 24 rows of the other class come first
    places = np.arange(1, 25)
    assert found.loc[1, "own"] == pytest.approx(np.mean(places / (24 + places)))
    assert task.get_score(["q", "q"], [1, 4]) == pytest.approx((1 + 2 / 4) / 2)


def two_directions() -> pd.DataFrame:
    return pd.DataFrame({"x": np.repeat([0.0, 90.0], 30), "y": np.repeat([0, 1], 30)})


def test_ranking_of_the_first_rows():
    # 24 training rows of each class are relevant
    found = own(TabEBRankingTask, two_directions(), metric="recall@6").evaluate([Angle()])
    assert found.loc[0, "own"] == 6 / 24


def test_ranking_without_labels():
    class Unsupervised(TabEBRankingTask):
        unsupervised = True

    class Blind(Angle):
        def fit(self, X, y=None):
            assert y is None
            return self

    found = own(Unsupervised, two_directions()).evaluate([Blind()])
    assert found.loc[0, "own"] == 1.0
    assert found.attrs["data"] == [{"dataset": "own", "train": 60, "test": 60}]


def test_micro_and_weighted_f1():
    truth, answers = [0, 0, 0, 1], [0, 0, 1, 1]
    # F1 of the classes is 4 / 5 and 2 / 3
    weighted = TabEBAnomalyDetectionTask().get_score(truth, answers)
    assert weighted == pytest.approx((3 * 4 / 5 + 2 / 3) / 4)
    assert TabEBAnomalyDetectionTask(metric="f1_micro").get_score(truth, answers) == 3 / 4


def test_duplicates_above_the_best_threshold():
    # above 0.6 three pairs are duplicates, two of them are right
    task = TabEBDeduplicationTask(metric="f1_best")
    assert task.get_score([1, 1, 0, 0], [0.9, 0.6, 0.7, 0.1]) == pytest.approx(2 * 2 / (3 + 2))


def test_deduplication_by_cosine():
    frame = pd.DataFrame({"x": np.repeat(np.arange(0, 90, 3.0), 2), "y": np.repeat(range(30), 2)})
    frame["y"] = frame["y"].astype(str)
    task = own(TabEBDeduplicationTask, frame)
    assert task.evaluate([Angle(), Constant()])["own"].tolist() == [1.0, 0.5]
    assert task.get_score([1, 0, 0], [0.9, 0.1, 0.95]) == 0.5
    # a sample keeps duplicates together
    few = own(TabEBDeduplicationTask, frame, max_rows=10)
    assert few.evaluate([Angle()]).attrs["data"] == [{"dataset": "own", "train": 10, "test": 10}]
    assert few.evaluate([Angle()]).loc[0, "own"] == 1.0


@pytest.mark.parametrize("task", [TabEBRankingTask, TabEBDeduplicationTask])
def test_tasks_without_a_head(task):
    with pytest.raises(DefinitionError, match="Task"):
        own(with_head(task, LogisticRegression()), table("classification")).evaluate([Numbers()])
    with pytest.raises(DefinitionError, match="head_params"):
        own(task, table("classification")).evaluate([Numbers()], head_params={"C": 1})


def test_saving_needs_pyarrow(folder, monkeypatch, tmp_path):
    task = regression(folder)
    task.load_data()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pyarrow"):
        task.evaluate([Numbers()], save_dir=tmp_path / "results")
    assert not (tmp_path / "results").exists()


# -- What heads and ``get_score`` receive and return, and descriptions of objects -----------------


def test_regressor_on_integer_classes():
    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "y": [0, 1] * 30})
    task = own(TabEBBaseTask, frame, task="own", metric="rmse")
    task.get_head = LinearRegression
    assert task.evaluate([Numbers()]).loc[0, "own"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("cls", "base", "protocol", "expected"),
    [
        (TabEBRegressionTask, LinearRegression, "original", [np.float32, np.float64]),
        (TabEBRegressionTask, LinearRegression, "corrected", [np.float64, np.float64]),
        (TabEBClassificationTask, LogisticRegression, "original", [np.float64, np.float64]),
    ],
)
def test_precision_of_the_vectors_of_a_head(cls, base, protocol, expected):
    """The least squares of TabEB get the vectors in the precision of the encoder."""
    seen = []

    class Single(Numbers):
        name = "single"

        def transform(self, X, y=None):
            return super().transform(X).astype(np.float32)

    class Head(base):
        def fit(self, X, y):
            seen.append(X.dtype)
            return super().fit(X, y)

    kind = "regression" if cls is TabEBRegressionTask else "classification"
    frame = pd.DataFrame({"x": X, "y": X // 30})
    own(with_head(cls, Head()), frame, kind, protocol=protocol).evaluate([Single(), Numbers()])
    assert seen == expected


def rows_with_outliers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=57), [40.0, -40.0, 80.0]])
    return pd.DataFrame({"x": x, "y": [0] * 57 + [1] * 3})


def test_anomaly_detection():
    task = own(TabEBAnomalyDetectionTask, rows_with_outliers())
    frame = task.evaluate([Numbers(), Constant()])
    assert frame.loc[0, "own"] == 1.0
    # all rows tie: the first three are flagged, and six rows are wrong
    f1 = [54 * 2 / (57 + 57), 0.0]
    assert frame.loc[1, "own"] == pytest.approx((57 * f1[0] + 3 * f1[1]) / 60)
    assert task.get_score([0, 0, 1, 1], [0, 0, 1, 1]) == 1.0
    by_order = own(TabEBAnomalyDetectionTask, rows_with_outliers(), metric="auc")
    assert by_order.evaluate([Numbers()]).loc[0, "own"] == 1.0


@pytest.mark.parametrize(
    "head",
    [
        IsolationForest(random_state=0),
        LocalOutlierFactor(n_neighbors=5),
        LocalOutlierFactor(n_neighbors=5, novelty=True),
    ],
)
def test_scikit_learn_detectors(head):
    frame = own(with_head(TabEBAnomalyDetectionTask, head), rows_with_outliers()).evaluate(
        [Numbers()]
    )
    assert frame.loc[0, "own"] == 1.0
    assert type(head).__name__ in frame.attrs["config"]["head"]


def test_invalid_anomaly_tasks():
    with pytest.raises(ContractError, match="outlier_scores"):
        own(
            with_head(TabEBAnomalyDetectionTask, LogisticRegression()), rows_with_outliers()
        ).evaluate([Numbers()])
    three = pd.DataFrame({"x": X, "y": np.repeat(list("abc"), 20)})
    with pytest.warns(UserWarning, match="own.* 3"):
        own(TabEBAnomalyDetectionTask, three).evaluate([Numbers()])


def test_get_score_of_a_ranking():
    class First(TabEBRankingTask):
        def get_score(self, y_true, y_pred):
            return float(pd.Series(y_pred).groupby(np.asarray(y_true)).min().eq(1).mean())

    frame = pd.DataFrame({"x": np.repeat([0.0, 90.0], 30), "y": np.repeat([0, 1], 30)})
    assert own(First, frame).evaluate([Angle()]).loc[0, "own"] == 1.0


def test_get_score_of_deduplication_needs_weights():
    class Blind(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred):
            return 1.0

    class Seeing(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred, predictions):
            return float(predictions.weight.sum())

    frame = pd.DataFrame({"x": np.repeat(np.arange(0, 90, 3.0), 2), "y": np.repeat(range(30), 2)})
    with pytest.warns(UserWarning, match="Blind.get_score"):
        own(Blind, frame).evaluate([Angle()])
    assert own(Seeing, frame).evaluate([Angle()]).loc[0, "own"] == 60 * 59 / 2


def test_descriptions():
    class Odd:
        def __init__(self):
            self.me, self.rows, self.name, self.pairs = self, np.ones(3), "x", {"a": [1, None]}

    assert describe_object(Odd()) == "Odd(name='x', pairs={a: [1, None]})"
    assert describe_object(None) == "None"
    long = [describe_object(Scaled(1, "n" * 600 + end)) for end in "ab"]
    assert long[0][:500] == long[1][:500] and long[0] != long[1] and len(long[0]) < 520
