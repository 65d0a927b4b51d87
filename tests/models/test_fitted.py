"""Already fitted pipelines are checked, not refitted, and marked in the results."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import karat
from karat.declines import declines
from karat.errors import ContractError
from karat.models.adapters import adapt
from karat.models.fitted import NOTE, Fitted

TABLE = pd.DataFrame({"x": range(20), "z": [1, 2] * 10})
CLASSES = np.repeat(["low", "high"], 10)


def pipeline():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE[["x"]], CLASSES)


def weights(of):
    return [*of[-1].coef_.ravel(), *of[-1].intercept_, *of[0].mean_, *of[0].scale_]


def test_it_learns_nothing():
    given = pipeline()
    before = weights(given)
    fitted = adapt(Fitted(given), "mine").fresh(7, "classes")
    fitted.fit(TABLE[["x"]], CLASSES[::-1])
    assert weights(given) == before
    assert fitted.pipeline is given
    assert np.array_equal(fitted.predict_proba(TABLE[["x"]]), given.predict_proba(TABLE[["x"]]))


def test_every_fold_asks_the_one_pipeline(two_classes, tmp_path):
    given = pipeline()
    task = two_classes(corruptions={"noise_gaussian": [0.5]})
    (run,) = karat.evaluate({"mine": Fitted(given)}, task, output=tmp_path)
    table = run.results()
    assert set(table["status"]) == {"ok"}
    assert set(table["notes"]) == {NOTE}
    expected = {tuple(row) for row in given.predict_proba(TABLE[["x"]]).tolist()}
    assert given.classes_.tolist() == list(task.dataset.classes)
    for fold in (0, 1):
        found = [tuple(row) for row in run.predictions("halves", fold).probabilities.tolist()]
        assert len(set(found)) == 10 and set(found) <= expected


def test_a_fresh_copy_is_the_same_object():
    fitted = Fitted(pipeline())
    assert copy.deepcopy(fitted) is fitted
    assert adapt(fitted).fresh(1, "classes") is fitted


def test_what_is_not_fitted_is_refused():
    with pytest.raises(ContractError, match="Pipeline"):
        Fitted(make_pipeline(StandardScaler(), LogisticRegression()))
    with pytest.raises(ContractError, match="StandardScaler"):
        Fitted(StandardScaler().fit([[1.0]]))


def test_unknown_classes_raise():
    with pytest.raises(ContractError, match='"middle".*high, low'):
        Fitted(pipeline()).fit(TABLE[["x"]], np.array([*CLASSES[:-1], "middle"]))


def test_labels_may_be_written_otherwise():
    known = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    for y in (["0", "1"], [0.0, 1.0], [1, 1]):
        Fitted(known).fit([[0.0], [1.0]], np.array(y))


def test_missing_columns_raise():
    with pytest.raises(ContractError, match='"x"'):
        Fitted(pipeline()).fit(TABLE[["z"]], CLASSES)
    Fitted(pipeline()).fit(TABLE, CLASSES)


def test_it_declines_the_other_kind(line, two_classes):
    numbers = Fitted(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]))
    assert numbers.declines("classes") == "it predicts numbers, not classes"
    assert Fitted(pipeline()).declines("numbers") == "it predicts classes, not numbers"
    task = line()
    assert declines(adapt(numbers), task, task.dataset, False) == ""
    other = two_classes()
    assert declines(adapt(numbers), other, other.dataset, False) == numbers.declines("classes")


def test_numbers_and_strangers_objects_work():
    numbers = Fitted(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]))
    assert numbers.fit([[5.0]], [9.0]).predict([[3.0]]) == pytest.approx([6.0])
    assert not hasattr(numbers, "predict_proba")

    class Own:
        def predict(self, X):
            return np.full(len(X), 4.0)

    own = Fitted(Own())
    assert own.declines("classes") == own.declines("numbers") == ""
    assert own.fit([[1.0]], [1.0]).predict([[1.0]]).tolist() == [4.0]
