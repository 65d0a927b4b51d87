"""What went wrong in TabEB does not here: one test or more for each of its known mistakes."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import label_binarize

from karat.compat.tabeb import (
    TabEBBaseEncoder,
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBRegressionTask,
    get_leaderboard,
    get_model,
)
from karat.errors import ContractError, DefinitionError

pytest.importorskip("pyarrow")

ROWS = 120


class Numbers(TabEBBaseEncoder):
    """The numbers of a row, as they are."""

    name = "numbers"

    def fit(self, X, y=None):
        return self

    def transform(self, X, y=None):
        return X.select_dtypes("number").to_numpy(dtype=float)


def noisy(classes: int = 2, labels: list | None = None) -> pd.DataFrame:
    """Return rows whose class shows in x1 and x2, but not clearly."""
    rng = np.random.default_rng(0)
    codes = np.arange(ROWS) % classes
    table = pd.DataFrame({"x1": codes + rng.normal(size=ROWS), "x2": rng.normal(size=ROWS)})
    return table.assign(y=codes if labels is None else np.array(labels)[codes])


def own(cls: type, frame: pd.DataFrame, kind: str = "classification", **options):
    made = cls(data_name_list=["mine"], **options)
    made.data_dict["mine"] = frame
    made.metadata["mine"] = {"target_name": "y", "task": kind}
    return made


class Kept(TabEBClassificationTask):
    """Keeps what get_score is given."""

    def get_score(self, y_true, y_pred, predictions=None):
        self.kept = (y_true, y_pred)
        return super().get_score(y_true, y_pred, predictions)


# -- 1: AUROC of hard labels, and none beyond two classes -----------------------------------


def test_1_the_area_is_that_of_probabilities():
    task = own(Kept, noisy())
    value = task.evaluate([Numbers()]).loc[0, "mine"]
    y_true, chances = task.kept
    assert value == pytest.approx(roc_auc_score(y_true, chances[:, 1]))
    assert value != pytest.approx(roc_auc_score(y_true, chances.argmax(axis=1)))


@pytest.mark.parametrize("labels", [[0, 1, 2], [9, 10, 11], list("cab"), [1.0, 2.0, 4.0]])
def test_1_beyond_two_classes_it_is_the_micro_average(labels):
    task = own(Kept, noisy(3, labels))
    value = task.evaluate([Numbers()]).loc[0, "mine"]
    y_true, chances = task.kept
    truth = label_binarize(y_true, classes=sorted(labels))
    assert value == pytest.approx(roc_auc_score(truth, chances, average="micro"))
    assert task.get_score(y_true, chances) == pytest.approx(value)


def test_1_classes_may_be_missing_from_either_side():
    class Uneven(Kept):
        def get_splits(self, data, metadata, num_train=None, random_state=None):
            X, y = data[["x1", "x2"]], data["y"]
            train, test = y != "c", y != "a"
            train[y.index >= 80] = False
            test[y.index < 80] = False
            return X[train], X[test], y[train], y[test]

    task = own(Uneven, noisy(4, list("abcd")))
    value = task.evaluate([Numbers()]).loc[0, "mine"]
    y_true, chances = task.kept
    assert chances.shape[1] == 4 and (chances[:, 2] == 0).all()
    truth = label_binarize(y_true, classes=list("abcd"))
    assert value == pytest.approx(roc_auc_score(truth.ravel(), chances.ravel()))


def test_1_a_score_by_hand():
    task = TabEBClassificationTask()
    assert task.get_score([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.4]) == 0.875
    assert task.get_score([0, 1, 1, 0], [[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.6, 0.4]]) == 0.875
    # a class that is never true may have a column; columns are in the order 9, 10, not of texts
    assert task.get_score([0, 1], [[0.8, 0.1, 0.1], [0.1, 0.7, 0.2]]) == 1.0
    assert task.get_score([9, 10], [[0.8, 0.2], [0.1, 0.9]]) == 1.0
    with pytest.raises(ContractError, match="y_pred has 3 columns and y_true 2 classes"):
        task.get_score(["a", "b"], np.full((2, 3), 1 / 3))
    with pytest.raises(ContractError, match="there is only one class in the truth"):
        task.get_score([1, 1], [[0.2, 0.8], [0.4, 0.6]])


# -- 2: the first 500 rows, 16 of them to train on ------------------------------------------


def test_2_all_rows_take_part_and_four_fifths_teach():
    frame = pd.DataFrame({"x": np.arange(700.0), "y": np.arange(700.0)})
    task = own(TabEBRegressionTask, frame, "regression")
    sizes = task.evaluate([Numbers()]).attrs["data"][0]
    assert (sizes["train"], sizes["test"]) == (560, 140)
    few = own(TabEBRegressionTask, frame, "regression", max_rows=500, n_train=16)
    X_train, X_test, _, _ = few.get_splits(frame, {"target_name": "y", "task": "regression"})
    assert (len(X_train), len(X_test)) == (16, 484)
    assert max([*X_train.index, *X_test.index]) >= 500  # drawn, and not a slice


# -- 3: the fill value is the one given, and what is broken is said -------------------------


class Holes(Numbers):
    def __init__(self, hole: float = np.nan) -> None:
        self.hole = hole

    def transform(self, X, y=None):
        vectors = np.array(super().transform(X))
        vectors[0, 0] = self.hole
        return vectors


def test_3_nan_is_refused_unless_a_value_is_given():
    task = own(TabEBRegressionTask, noisy(), "regression")
    with pytest.warns(UserWarning, match="returned NaN in part of a row"):
        assert task.evaluate([Holes()])["mine"].isna().all()
    filled = [task.evaluate([Holes()], na_fill_value=v).loc[0, "mine"] for v in (0, 7.5)]
    given = [task.evaluate([Holes(v)]).loc[0, "mine"] for v in (0, 7.5)]
    assert filled == given and filled[0] != filled[1]
    with pytest.warns(UserWarning, match="infinite number"):
        task.evaluate([Holes(np.inf)], na_fill_value=0)


def test_3_vectors_are_checked():
    class Odd(Numbers):
        def __init__(self, how: str = "") -> None:
            self.how = how

        def transform(self, X, y=None):
            vectors = super().transform(X)
            return {
                "rows": vectors[1:],
                "flat": vectors[:, 0],
                "text": vectors.astype(str),
                "whole": np.where(np.arange(len(X))[:, None] == 0, np.nan, vectors),
                "width": vectors[:, : 1 + (len(X) > 30)],
            }[self.how]

    task = own(TabEBRegressionTask, noisy(), "regression")
    for how, said in (
        ("rows", "returned 95 rows for 96 items"),
        ("flat", "it returned 1 dimensions"),
        ("text", "must return numbers"),
        ("whole", "returned NaN for 1 of 96 rows; na_fill_value puts a number"),
        ("width", "returned 1 dimensions for the test items and 2 for the train items"),
    ):
        with pytest.warns(UserWarning, match=said):
            assert task.evaluate([Odd(how)])["mine"].isna().all()


def test_3_skrub_keeps_infinity_to_be_refused():
    pytest.importorskip("skrub")
    frame = noisy()
    encoder = get_model("skrub_encoder", numeric="passthrough")
    frame.loc[3, "x1"] = np.nan
    assert encoder.fit_transform(frame[["x1"]])[3, 0] == 0
    frame.loc[3, "x1"] = np.inf
    assert encoder.fit_transform(frame[["x1"]])[3, 0] == np.inf  # and not the largest number


# -- 4: saving: see test_tabeb_interface.py -------------------------------------------------


def test_4_nothing_is_saved_by_default_and_nothing_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = own(TabEBRegressionTask, noisy(), "regression")
    task.evaluate([Numbers()])
    task.evaluate([Numbers()], save_dir="")
    assert list(tmp_path.iterdir()) == []
    task.evaluate({"first": Numbers()}, save_dir=tmp_path)
    task.evaluate({"second": Numbers()}, save_dir=tmp_path)
    assert get_leaderboard("regression", tmp_path)["encoder"].tolist() == ["first", "second"]


# -- 5: options that become an attribute called "key" ---------------------------------------


def test_5_an_unknown_option_is_an_error():
    assert not hasattr(TabEBRegressionTask(seed=1), "key")
    with pytest.raises(TypeError, match="max_row"):
        TabEBRegressionTask(max_row=10)
    with pytest.raises(DefinitionError, match='has no parameter "embedding"'):
        get_model("random_encoder", embedding=3)


# -- 6: what tasks and metadata say is true -------------------------------------------------


def test_6_the_metric_is_the_one_computed():
    assert TabEBClassificationTask().metric == "auc_micro"
    config = own(TabEBClassificationTask, noisy()).evaluate([Numbers()]).attrs["config"]
    assert (config["metric"], config["higher_is_better"]) == ("auc_micro", True)
    plain = own(TabEBRegressionTask, noisy(), "regression")
    assert plain.evaluate([Numbers()]).attrs["config"]["higher_is_better"] is False


# -- 7: fit returns the encoder, so that fit_transform is its own ---------------------------


def test_7_fit_transform_is_that_of_the_encoder():
    pytest.importorskip("skrub")
    frame = noisy()[["x1"]].assign(word=["a", None, "c"] * 40)
    encoder = get_model("skrub_encoder")
    assert encoder.fit(frame) is encoder
    frame.loc[::2, "x1"] = np.nan
    first = get_model("skrub_encoder").fit_transform(frame)
    assert isinstance(first, np.ndarray) and np.isfinite(first).all()

    class Returning(Numbers):
        def fit(self, X, y=None):
            return "something else"

        def transform(self, X, y=None):
            return np.full((len(X), 1), 7.0)

    assert (Returning().fit_transform(frame) == 7).all()


# -- 8: the random encoder ------------------------------------------------------------------


@pytest.mark.parametrize("as_array", [False, True])
def test_8_no_train_row_shares_its_vector_with_a_test_row(as_array):
    train, test = noisy().iloc[:60], noisy().iloc[60:].reset_index(drop=True)
    pair = [side.to_numpy() if as_array else side for side in (train, test)]
    encoder = get_model("random_encoder", random_state=0)
    vectors = np.concatenate([encoder.fit_transform(pair[0]), encoder.transform(pair[1])])
    assert len(np.unique(vectors, axis=0)) == ROWS


def test_8_and_14_global_generators_are_left_alone():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    task = own(TabEBClassificationTask, noisy())
    task.evaluate([get_model("random_encoder"), Numbers()])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002


# -- 9: parameters reach the part they are for ----------------------------------------------


class Weighted(Numbers):
    """An encoder whose fit takes a factor."""

    def fit(self, X, y=None, factor=1.0):
        self.factor_ = factor
        return self

    def transform(self, X, y=None):
        return super().transform(X) * self.factor_


def test_9_fit_parameters_go_to_the_encoder_only():
    task = own(TabEBClassificationTask, noisy())
    base = task.evaluate([Weighted()]).loc[0, "mine"]
    for given in ({"encoder_fit_params": {"factor": 0.0}}, {"model_kwargs": {"factor": 0.0}}):
        # the head's fit has no such parameter and would refuse it
        assert task.evaluate([Weighted()], **given).loc[0, "mine"] == 0.5 < base
    with pytest.raises(DefinitionError, match="model_kwargs is TabEB's name for encoder_fit_par"):
        task.evaluate([Weighted()], model_kwargs={"a": 1}, encoder_fit_params={"a": 1})
    with pytest.warns(UserWarning, match="unexpected keyword argument 'C'"):
        task.evaluate([Weighted()], encoder_fit_params={"C": 3.0})
    assert "C=3.0" in task.evaluate([Weighted()], head_params={"C": 3.0}).attrs["config"]["head"]


# -- 10: an encoder is told what the truth is -----------------------------------------------


def test_10_one_instance_serves_both_kinds_of_truth():
    class Told(Numbers):
        heard: list[str] = []

        def __init__(self, kind=None):
            self.kind = kind

        def fit(self, X, y=None):
            self.heard.append(self.kind)
            return self

    encoder = Told()
    own(TabEBRegressionTask, noisy(), "regression").evaluate([encoder])
    own(TabEBClassificationTask, noisy()).evaluate([encoder])
    own(TabEBClassificationTask, noisy()).evaluate([Told(kind="numbers")])  # an own word stays
    assert Told.heard == ["numbers", "classes", "numbers"]


# -- 11: entities on both sides: see test_groups_stay_whole ---------------------------------


def test_11_how_much_the_train_side_knows_is_reported():
    frame = noisy().assign(who=[f"w{i // 2}" for i in range(ROWS)])
    frame = pd.concat([frame, frame.iloc[:40]], ignore_index=True)
    task = own(TabEBClassificationTask, frame, n_train=80)
    task.metadata["mine"]["entity_name"] = "who"
    (told,) = task.evaluate([Numbers()]).attrs["data"]
    X_train, X_test, _, _ = task.get_splits(frame, {**task.metadata["mine"], "name": "mine"})
    assert told["test_rows_of_train_entities"] == X_test["who"].isin(X_train["who"]).sum() > 0
    seen = {tuple(row) for row in X_train.to_numpy()}
    copies = sum(tuple(row) in seen for row in X_test.to_numpy())
    assert told["test_rows_alike_in_train"] == copies > 0


# -- 12: unscaled heads ---------------------------------------------------------------------


def test_12_the_unit_of_a_column_does_not_decide():
    """In the original, a column in millimetres and one in kilometres make other predictions."""

    class Units(Numbers):
        name = "units"

        def transform(self, X, y=None):
            return super().transform(X) * [1e6, 1e-6]

    def scores(protocol: str) -> list[float]:
        task = own(TabEBClassificationTask, noisy(), protocol=protocol)
        return task.evaluate([Numbers(), Units()])["mine"].tolist()

    same, plain = scores("corrected"), scores("original")
    assert same[0] == pytest.approx(same[1], abs=1e-9)
    assert plain[0] != plain[1]


def test_12_few_rows_and_many_dimensions_do_not_explode():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(200, 18))).add_prefix("x")
    wide["x0"] *= 1000
    wide["y"] = wide["x1"] + rng.normal(size=200)
    found = {
        protocol: own(TabEBRegressionTask, wide, "regression", protocol=protocol, n_train=16)
        .evaluate([Numbers()])
        .loc[0, "mine"]
        for protocol in ("corrected", "original")
    }
    assert found["corrected"] < found["original"]


# -- 13: the leaderboard: see test_tabeb_interface.py ---------------------------------------


def test_13_a_high_error_does_not_lead(tmp_path):
    class Poor(Numbers):
        name = "poor"

        def transform(self, X, y=None):
            return np.zeros((len(X), 1))

    own(TabEBRegressionTask, noisy(), "regression").evaluate([Poor(), Numbers()], save_dir=tmp_path)
    board = get_leaderboard(["regression"], tmp_path)
    assert board["encoder"].tolist() == ["numbers", "poor"]
    assert board["regression_rank"].tolist() == [1.0, 2.0]


# -- 14: the order in which objects are made ------------------------------------------------


def test_14_the_seed_decides_and_not_the_order_of_making():
    def score(seed: int, before: int = 0) -> float:
        for i in range(before):
            TabEBBaseTask(seed=i)
        task = own(TabEBRegressionTask, noisy(), "regression", seed=seed)
        return task.evaluate([get_model("random_encoder", embedding_size=4)]).loc[0, "mine"]

    assert score(1) == score(1, before=3)
    assert len({score(seed) for seed in range(4)}) == 4
    task = own(TabEBRegressionTask, noisy(), "regression", protocol="original", seed=1)
    other = own(TabEBRegressionTask, noisy(), "regression", protocol="original", seed=2)
    meta = {"target_name": "y", "task": "regression"}
    rows = [t.get_splits(noisy(), meta)[0].index.tolist() for t in (task, other)]
    assert rows[0] != rows[1]


def test_14_a_random_state_of_ones_own_is_kept():
    class Seeded(Numbers):
        seen: list[object] = []

        def __init__(self, random_state=None):
            self.random_state = random_state

        def fit(self, X, y=None):
            self.seen.append(self.random_state)
            return self

    task = own(TabEBRegressionTask, noisy(), "regression", seed=11)
    task.evaluate({"open": Seeded(), "set": Seeded(3)})
    assert Seeded.seen == [11, 3]
