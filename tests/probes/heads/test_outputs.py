"""Outputs of heads: checked labels, probabilities, numbers and outlier flags."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC

from karat.core.dataset import Dataset
from karat.errors import ContractError, DefinitionError
from karat.metrics.metric import score
from karat.probes.heads.outputs import baseline, flag_outliers, predict_checked


def classes(labels, group=None):
    table = pd.DataFrame({"x": np.arange(float(len(labels))), "y": pd.Series(labels)})
    extra = {} if group is None else {"g": group}
    return Dataset.from_table(
        table.assign(**extra), "y", kind="classification", group="g" if group is not None else None
    )


def numbers(values):
    table = pd.DataFrame({"x": np.arange(float(len(values))), "y": values})
    return Dataset.from_table(table, "y", kind="regression")


class Fixed:
    """An estimator with fixed predictions."""

    def __init__(self, labels, probabilities=None, classes=None):
        self.labels = labels
        if probabilities is not None:
            self.predict_proba = lambda X: probabilities
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict(self, X):
        return self.labels


ABC = classes(list("abca"), group=list("gghh"))


def test_probabilities_have_a_column_for_a_class_without_train_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2))
    model = LogisticRegression().fit(X, np.array(["c", "a"] * 10))
    found = predict_checked(model, X[:4], ABC, "logistic")
    assert found.classes == ("a", "b", "c")
    np.testing.assert_array_equal(found.probabilities[:, [0, 2]], model.predict_proba(X[:4]))
    assert (found.probabilities[:, 1] == 0).all()
    assert found.predictions.tolist() == model.predict(X[:4]).tolist()
    assert found.target.tolist() == list("abca")
    assert found.group.tolist() == list("gghh")


def test_the_order_of_the_estimators_classes_does_not_matter():
    model = Fixed(list("aabc"), np.array([[0.2, 0.5, 0.3]] * 4), ["c", "a", "b"])
    assert predict_checked(model, None, ABC, "m").probabilities.tolist() == [[0.5, 0.3, 0.2]] * 4


@pytest.mark.parametrize("model", [RidgeClassifier(), SVC()])
def test_without_probabilities_the_label_has_probability_one(model):
    X = np.array([[0.0], [1.0], [2.0], [0.1]])
    model.fit(X, list("abca"))
    found = predict_checked(model, X, ABC, "m")
    column = {"a": 0, "b": 1, "c": 2}
    expected = np.eye(3)[[column[label] for label in found.predictions]]
    np.testing.assert_array_equal(found.probabilities, expected)


@pytest.mark.parametrize(
    ("labels", "predicted", "texts"),
    [
        ([0, 1, 1], np.array([1.0, 0.0, 1.0]), ["1", "0", "1"]),
        ([0.0, 1.0, 1.0], np.array([1, 0, 1]), ["1.0", "0.0", "1.0"]),
        ([False, True, True], np.array([1, 0, 1]), ["True", "False", "True"]),
        (["0", "1", "1"], np.array([1, 0, 1]), ["1", "0", "1"]),
        (["NA", "n a", "NA"], np.array([["n a"], ["NA"], ["NA"]]), ["n a", "NA", "NA"]),
        ([0, 1, 1], pd.Series([1, 0, 1]), ["1", "0", "1"]),
    ],
)
def test_labels_are_written_as_in_the_dataset(labels, predicted, texts):
    found = predict_checked(Fixed(predicted), None, classes(labels), "m")
    assert found.predictions.tolist() == texts
    assert set(texts) == set(found.classes)


@pytest.mark.parametrize(
    ("labels", "chances", "names", "word"),
    [
        (["a"] * 3, None, None, r"m\.predict .*\(3,\)"),
        (np.eye(4), None, None, r"m\.predict .*\(4, 4\)"),
        (list("abcd"), None, None, r'm\.predict .*"d"'),
        (np.array([0.0, 1, 2, np.nan]), None, None, r'm\.predict .*"0\.0"'),
        (list("abca"), np.ones((4, 2)) / 2, list("ad"), 'classes_ .*"d"'),
        (list("abca"), np.ones((4, 2)) / 2, None, r"predict_proba .*\(4, 2\)"),
        (list("abca"), np.ones(4), None, r"predict_proba .*\(4,\)"),
        (list("abca"), np.full((4, 3), np.nan), None, "predict_proba .*12"),
        (list("abca"), np.full((4, 3), "x"), None, "predict_proba .*numbers"),
        (list("abca"), np.ones((4, 3)), None, r"predict_proba .*\[1.0, 1.0, 1.0\] \(row 0\)"),
        (list("abca"), np.array([[1, 1, -1]] * 4), None, "predict_proba"),
    ],
)
def test_wrong_predictions_are_refused(labels, chances, names, word):
    with pytest.raises(ContractError, match=word):
        predict_checked(Fixed(labels, chances, names), None, ABC, "m")


def test_numbers_are_checked_too():
    data = numbers([1.5, 2.5])
    found = predict_checked(Fixed(np.array([[1], [2]])), None, data, "m")
    assert (found.predictions.tolist(), found.target.tolist()) == ([1, 2], [1.5, 2.5])
    assert (found.answers, found.truths, found.probabilities) == ("numbers", "numbers", None)
    for wrong in ([1.0, np.nan], [1.0, np.inf], ["a", "b"]):
        with pytest.raises(ContractError, match=r"m\.predict"):
            predict_checked(Fixed(wrong), None, data, "m")


def test_the_baseline_is_the_class_frequency_or_the_mean_of_the_train_rows():
    found = baseline(np.array(list("ccca")), ABC)
    assert found.predictions.tolist() == ["c"] * 4
    assert found.probabilities.tolist() == [[0.25, 0, 0.75]] * 4
    assert found.target.tolist() == list("abca")
    assert found.group.tolist() == list("gghh")
    assert baseline(np.array([1, 2, 6]), numbers([1.5, 2.5])).predictions.tolist() == [3, 3]


@pytest.mark.parametrize(("odd", "usual"), [("outlier", "normal"), ("a", "b")])
def test_as_many_are_flagged_as_the_rarer_class_has_members(odd, usual):
    data = classes([usual, odd, usual, usual, usual])
    got = flag_outliers(np.array([1.0, 9.0, 2.0, 2.0, 0.0]), data, data.shares())
    assert got.predictions.tolist() == [usual, odd, usual, usual, usual]
    assert score("acc", got) == (1.0, "")
    column = got.classes.index(odd)
    assert got.probabilities[:, column].tolist() == pytest.approx(
        [2 / 6, 5 / 6, 3.5 / 6, 3.5 / 6, 1 / 6]
    )
    assert score("auc", got) == (1.0, "")


def test_only_two_classes():
    data = classes(["a", "b", "c"])
    with pytest.raises(DefinitionError, match="two classes.* 3"):
        flag_outliers(np.zeros(3), data, data.shares())


def test_predictions_with_an_index_are_matched_by_it():
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.5, 1.5, 2.5, 3.5]})
    data = Dataset.from_table(table, "y", kind="regression")

    class Sorted:
        def predict(self, X):
            return X["x"].sort_values(ascending=False)

    found = predict_checked(Sorted(), data.frame(), data, "sorted")
    assert found.predictions.tolist() == [0.0, 1.0, 2.0, 3.0]
