"""Known mistakes of TabEB that Karat does not have, at least one test for each."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import label_binarize

from karat.errors import ContractError, DefinitionError
from karat.ext.compat.tabeb import (
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBRegressionTask,
    get_model,
)

from .test_tasks import Numbers, own

pytest.importorskip("pyarrow")

ROWS = 120


def noisy(classes: int = 2, labels: list | None = None) -> pd.DataFrame:
    """Return rows whose class depends on x1, with noise."""
    rng = np.random.default_rng(0)
    codes = np.arange(ROWS) % classes
    table = pd.DataFrame({"x1": codes + rng.normal(size=ROWS), "x2": rng.normal(size=ROWS)})
    return table.assign(y=codes if labels is None else np.array(labels)[codes])


class Recorded(TabEBClassificationTask):
    """Records the arguments of get_score."""

    def get_score(self, y_true, y_pred, predictions=None):
        self.recorded = (y_true, y_pred)
        return super().get_score(y_true, y_pred, predictions)


# 1: AUROC of hard labels, and no support for more than two classes


def test_1_auroc_of_probabilities():
    task = own(Recorded, noisy())
    value = task.evaluate([Numbers()]).loc[0, "own"]
    y_true, chances = task.recorded
    assert value == pytest.approx(roc_auc_score(y_true, chances[:, 1]))
    hard = roc_auc_score(y_true, chances.argmax(axis=1))
    assert value != pytest.approx(hard)
    # the balanced accuracy is AUROC of hard labels
    theirs = own(TabEBClassificationTask, noisy(), metric="balacc")
    assert theirs.evaluate([Numbers()]).loc[0, "own"] == pytest.approx(hard)


@pytest.mark.parametrize("labels", [[0, 1, 2], [9, 10, 11], list("cab"), [1.0, 2.0, 4.0]])
def test_1_micro_average_for_more_classes(labels):
    task = own(Recorded, noisy(3, labels))
    value = task.evaluate([Numbers()]).loc[0, "own"]
    y_true, chances = task.recorded
    truth = label_binarize(y_true, classes=sorted(labels))
    assert value == pytest.approx(roc_auc_score(truth, chances, average="micro"))
    assert task.get_score(y_true, chances) == pytest.approx(value)


def test_1_classes_missing_on_either_side():
    class Uneven(Recorded):
        def get_splits(self, data, metadata, num_train=None, random_state=None):
            X, y = data[["x1", "x2"]], data["y"]
            train, test = y != "c", y != "a"
            train[y.index >= 80] = False
            test[y.index < 80] = False
            return X[train], X[test], y[train], y[test]

    task = own(Uneven, noisy(4, list("abcd")))
    value = task.evaluate([Numbers()]).loc[0, "own"]
    y_true, chances = task.recorded
    assert chances.shape[1] == 4 and (chances[:, 2] == 0).all()
    truth = label_binarize(y_true, classes=list("abcd"))
    assert value == pytest.approx(roc_auc_score(truth.ravel(), chances.ravel()))


def test_1_scores_by_hand():
    task = TabEBClassificationTask()
    assert task.get_score([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.4]) == 0.875
    assert task.get_score([0, 1, 1, 0], [[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.6, 0.4]]) == 0.875
    # extra columns for classes that do not occur; columns are sorted as numbers
    assert task.get_score([0, 1], [[0.8, 0.1, 0.1], [0.1, 0.7, 0.2]]) == 1.0
    assert task.get_score([9, 10], [[0.8, 0.2], [0.1, 0.9]]) == 1.0
    with pytest.raises(ContractError, match="3 columns"):
        task.get_score(["a", "b"], np.full((2, 3), 1 / 3))
    with pytest.raises(ContractError, match="class"):
        task.get_score([1, 1], [[0.2, 0.8], [0.4, 0.6]])


# 3: the fill value is ignored, and invalid vectors are accepted


class Holes(Numbers):
    def __init__(self, hole: float = np.nan) -> None:
        self.hole = hole

    def transform(self, X, y=None):
        vectors = np.array(super().transform(X))
        vectors[0, 0] = self.hole
        return vectors


def test_3_nan_is_an_error_unless_filled():
    task = own(TabEBRegressionTask, noisy(), "regression")
    with pytest.warns(UserWarning, match="NaN"):
        assert task.evaluate([Holes()])["own"].isna().all()
    filled = [task.evaluate([Holes()], na_fill_value=v).loc[0, "own"] for v in (0, 7.5)]
    given = [task.evaluate([Holes(v)]).loc[0, "own"] for v in (0, 7.5)]
    assert filled == given and filled[0] != filled[1]
    with pytest.warns(UserWarning, match="infinite"):
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
    matches = {"rows": "95", "flat": "1", "text": "numbers", "whole": "na_fill_value", "width": "2"}
    for how, match in matches.items():
        with pytest.warns(UserWarning, match=match):
            assert task.evaluate([Odd(how)])["own"].isna().all()


def test_3_skrub_encoder_keeps_infinity():
    pytest.importorskip("skrub")
    frame = noisy()
    encoder = get_model("skrub_encoder", numeric="passthrough")
    frame.loc[3, "x1"] = np.nan
    assert encoder.fit_transform(frame[["x1"]])[3, 0] == 0
    frame.loc[3, "x1"] = np.inf
    assert encoder.fit_transform(frame[["x1"]])[3, 0] == np.inf  # and not the largest number


# 2 (first 500 rows, 16 for training) and 6 (wrong metric): see test_tasks.py
# 4 (saving) and 13 (leaderboard): see test_interface.py
# 5: options become an attribute called "key"


def test_5_unknown_option_is_an_error():
    assert not hasattr(TabEBRegressionTask(seed=1), "key")
    with pytest.raises(TypeError, match="max_row"):
        TabEBRegressionTask(max_row=10)
    with pytest.raises(DefinitionError, match='"embedding"'):
        get_model("random_encoder", embedding=3)


# 7: fit does not return the encoder


def test_7_fit_transform_of_the_encoder():
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


# 8: the random encoder repeats vectors and changes global state


@pytest.mark.parametrize("as_array", [False, True])
def test_8_all_random_vectors_differ(as_array):
    train, test = noisy().iloc[:60], noisy().iloc[60:].reset_index(drop=True)
    pair = [side.to_numpy() if as_array else side for side in (train, test)]
    encoder = get_model("random_encoder", random_state=0)
    vectors = np.concatenate([encoder.fit_transform(pair[0]), encoder.transform(pair[1])])
    assert len(np.unique(vectors, axis=0)) == ROWS


def test_8_and_14_global_generators_are_unchanged():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    task = own(TabEBClassificationTask, noisy())
    task.evaluate([get_model("random_encoder"), Numbers()])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002


# 9: parameters of the encoder are passed to the head


class Weighted(Numbers):
    """An encoder whose fit takes a factor."""

    def fit(self, X, y=None, factor=1.0):
        self.factor_ = factor
        return self

    def transform(self, X, y=None):
        return super().transform(X) * self.factor_


def test_9_fit_parameters_go_to_the_encoder_only():
    task = own(TabEBClassificationTask, noisy())
    base = task.evaluate([Weighted()]).loc[0, "own"]
    for given in ({"encoder_fit_params": {"factor": 0.0}}, {"model_kwargs": {"factor": 0.0}}):
        # the head's fit has no such parameter and would refuse it
        assert task.evaluate([Weighted()], **given).loc[0, "own"] == 0.5 < base
    with pytest.raises(DefinitionError, match="encoder_fit_params"):
        task.evaluate([Weighted()], model_kwargs={"a": 1}, encoder_fit_params={"a": 1})
    with pytest.warns(UserWarning, match="'C'"):
        task.evaluate([Weighted()], encoder_fit_params={"C": 3.0})
    assert "C=3.0" in task.evaluate([Weighted()], head_params={"C": 3.0}).attrs["config"]["head"]


# 10: encoders do not know the kind of target


def test_10_and_14_encoder_gets_the_kind_of_target_and_the_seed():
    class Told(Numbers):
        heard: list[tuple] = []

        def __init__(self, kind=None, random_state=None):
            self.kind, self.random_state = kind, random_state

        def fit(self, X, y=None):
            self.heard.append((self.kind, self.random_state))
            return self

    encoder = Told()
    own(TabEBRegressionTask, noisy(), "regression", seed=11).evaluate([encoder])
    own(TabEBClassificationTask, noisy(), seed=12).evaluate([encoder])
    own(TabEBClassificationTask, noisy()).evaluate([Told("regression", 3)])
    assert Told.heard == [("regression", 11), ("classification", 12), ("regression", 3)]


# 11: entities on both sides, see also test_groups_are_not_split


def test_11_overlap_of_train_and_test_is_reported():
    frame = noisy().assign(who=[f"w{i // 2}" for i in range(ROWS)])
    frame = pd.concat([frame, frame.iloc[:40]], ignore_index=True)
    task = own(TabEBClassificationTask, frame, n_train=80)
    task.metadata["own"]["entity_name"] = "who"
    (sizes,) = task.evaluate([Numbers()]).attrs["data"]
    X_train, X_test, _, _ = task.get_splits(frame, {**task.metadata["own"], "name": "own"})
    assert sizes["test_rows_of_train_entities"] == X_test["who"].isin(X_train["who"]).sum() > 0
    seen = {tuple(row) for row in X_train.to_numpy()}
    copies = sum(tuple(row) in seen for row in X_test.to_numpy())
    assert sizes["test_rows_alike_in_train"] == copies > 0


# 12: heads on unscaled vectors


def test_12_scores_do_not_depend_on_units():

    class Units(Numbers):
        name = "units"

        def transform(self, X, y=None):
            return super().transform(X) * [1e6, 1e-6]

    def scores(protocol: str) -> list[float]:
        task = own(TabEBClassificationTask, noisy(), protocol=protocol)
        return task.evaluate([Numbers(), Units()])["own"].tolist()

    same, plain = scores("corrected"), scores("original")
    assert same[0] == pytest.approx(same[1], abs=1e-9)
    assert plain[0] != plain[1]


def test_12_few_rows_and_many_dimensions():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(200, 18))).add_prefix("x")
    wide["x0"] *= 1000
    wide["y"] = wide["x1"] + rng.normal(size=200)
    means = {}
    for protocol in ("corrected", "original"):
        options = {"protocol": protocol, "n_train": 16}
        tasks = [own(TabEBRegressionTask, wide, "regression", seed=s, **options) for s in range(9)]
        means[protocol] = np.mean([t.evaluate([Numbers()]).loc[0, "own"] for t in tasks])
    assert means["corrected"] < means["original"]


# 14: results depend on the order in which objects are created


def test_14_only_the_seed_matters():
    def score(seed: int, before: int = 0) -> float:
        for i in range(before):
            TabEBBaseTask(seed=i)
        task = own(TabEBRegressionTask, noisy(), "regression", seed=seed)
        return task.evaluate([get_model("random_encoder", embedding_size=4)]).loc[0, "own"]

    assert score(1) == score(1, before=3)
    assert len({score(seed) for seed in range(4)}) == 4
    task = own(TabEBRegressionTask, noisy(), "regression", protocol="original", seed=1)
    other = own(TabEBRegressionTask, noisy(), "regression", protocol="original", seed=2)
    meta = {"target_name": "y", "task": "regression"}
    rows = [t.get_splits(noisy(), meta)[0].index.tolist() for t in (task, other)]
    assert rows[0] != rows[1]
