"""The head svm predicts what scikit-learn's machines predict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.svm import SVC

import karat
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.heads.svm import svm
from karat.splits import split


def blobs(classes: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping classes in columns of unequal scales and offsets."""
    rng = np.random.default_rng(classes)
    labels = np.arange(rows) * 7 % 11 % classes
    points = rng.standard_normal((rows, 8)) + rng.standard_normal((classes, 8))[labels]
    return points * [1, 1, 1, 1, 1, 1, 1e3, 1e-3] + [0, 0, 0, 0, 0, 1e5, 0, 0], labels


SETS = {
    "iris": datasets.load_iris(return_X_y=True),
    "wine": datasets.load_wine(return_X_y=True),
    "breast cancer": datasets.load_breast_cancer(return_X_y=True),
    "digits": tuple(part[:700] for part in datasets.load_digits(return_X_y=True)),
    "two": blobs(2),
    "three": blobs(3),
    "seven": blobs(7),
}


@pytest.mark.parametrize("gamma", ["scale", 0.05])
@pytest.mark.parametrize("name", SETS)
def test_labels_equal_those_of_scikit_learn(name, gamma):
    X, y = SETS[name]
    train = np.arange(len(X)) % 3 > 0
    for C in (0.001, 0.1, 1, 10, 1000):
        ours = svm("classes", C=C, gamma=gamma).fit(X[train], y[train])
        theirs = SVC(C=C, gamma=gamma, random_state=0).fit(X[train], y[train])
        assert np.array_equal(ours.predict(X), theirs.predict(X)), C


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.01, 1.0, 100.0]))
def test_labels_equal_those_of_scikit_learn_on_random_data(seed, classes, C):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)) * rng.uniform(0.1, 10, 3)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, 60 - classes)])
    theirs = SVC(C=C, decision_function_shape="ovo", random_state=0).fit(X, y)
    # rows on the border, to the last digits, may be on either side of it
    clear = np.abs(theirs.decision_function(X).reshape(60, -1)).min(axis=1) > 1e-3
    ours = svm("classes", C=C).fit(X, y)
    assert np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])


def test_two_points_by_hand():
    # K(0, 1) = e^-1; both are support vectors of the weight C = 0.1, and the middle is undecided
    head = svm("classes", C=0.1, gamma=1.0).fit([[0.0], [1.0]], ["l", "r"])
    assert head.predict(np.array([[-5.0], [0.4], [0.6], [2.0]])).tolist() == ["l", "l", "r", "r"]
    assert head.machine_.dual_coef_.tolist() == [[-0.1, 0.1]]
    assert not hasattr(head, "predict_proba")


def test_rows_without_spread_and_a_single_class():
    same = np.ones((6, 2))
    assert svm("classes").fit(same, list("aabbbb")).predict(same).tolist() == ["b"] * 6
    assert svm("classes").fit(same, ["a"] * 6).predict(same[:2]).tolist() == ["a", "a"]
    assert svm("numbers").fit(same, [2.0] * 6).predict(same[:2]).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "params", [{"C": 0}, {"C": "big"}, {"C": True}, {"epsilon": -1}, {"gamma": "auto"}]
)
def test_parameters_are_checked(params):
    ((name, value),) = params.items()
    with pytest.raises(DefinitionError, match=f"{name}.*{value}"):
        svm("classes", **params)


def test_a_task_scores_the_labels(tmp_path):
    frame = datasets.load_wine(as_frame=True).frame
    data = Dataset.from_table(frame, target="target", name="wine", kind="classes")
    probe = {"use": "trained", "head": {"use": "svm", "C": 10}, "scale": "plain"}
    metrics = ["acc", "f1_macro", "logloss"]
    task = karat.Task("wine", data, probe=probe, split="kfold", metrics=metrics)
    plain = {"plain": lambda items: items.to_numpy()}
    (run,) = karat.evaluate(plain, task, output=tmp_path, seed=3)
    X, y = datasets.load_wine(return_X_y=True)
    folds = split(data, {"use": "kfold"}, 3)
    expected = [SVC(C=10).fit(X[f.train], y[f.train]).score(X[f.test], y[f.test]) for f in folds]
    assert run.results()["acc"].tolist() == pytest.approx(expected, abs=1e-12)
    assert 0.5 < np.mean(expected) < 1 and np.isfinite(run.results()[metrics].to_numpy()).all()
