"""Support vectors: the labels and numbers of scikit-learn's, from a kernel of our own making."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import karat
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.heads import svm as module
from karat.heads.svm import Kernel, svm
from karat.splits import split


def blobs(classes: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return classes that overlap, in columns of unequal scales and far from 0."""
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
def test_the_labels_are_scikit_learns(name, gamma):
    X, y = SETS[name]
    train = np.arange(len(X)) % 3 > 0
    for C in (0.001, 0.1, 1, 10, 1000):
        ours = svm("classes", C=C, gamma=gamma).fit(X[train], y[train])
        theirs = SVC(C=C, gamma=gamma, random_state=0).fit(X[train], y[train])
        assert np.array_equal(ours.predict(X), theirs.predict(X)), C


def test_the_numbers_are_scikit_learns_on_a_scaled_truth():
    X, y = datasets.load_diabetes(return_X_y=True)
    for C, gamma, epsilon in [(1.0, "scale", 0.1), (10.0, 3.0, 0.3)]:
        ours = svm("numbers", C=C, gamma=gamma, epsilon=epsilon).fit(X[::2], y[::2])
        theirs = TransformedTargetRegressor(
            SVR(C=C, gamma=gamma, epsilon=epsilon), transformer=StandardScaler()
        )
        gap = np.abs(ours.predict(X) - theirs.fit(X[::2], y[::2]).predict(X))
        assert gap.max() < 1e-3 * y.std()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.01, 1.0, 100.0]))
def test_the_labels_are_scikit_learns_on_anything(seed, classes, C):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)) * rng.uniform(0.1, 10, 3)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, 60 - classes)])
    theirs = SVC(C=C, decision_function_shape="ovo", random_state=0).fit(X, y)
    # what lies on the border to the last digits may be on either side of it
    clear = np.abs(theirs.decision_function(X).reshape(60, -1)).min(axis=1) > 1e-3
    ours = svm("classes", C=C).fit(X, y)
    assert np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])


def test_two_points_by_hand():
    # K(0, 1) = e^-1; both are support vectors of the weight C = 0.1, and the middle is undecided
    head = svm("classes", C=0.1, gamma=1.0).fit([[0.0], [1.0]], ["l", "r"])
    assert head.predict(np.array([[-5.0], [0.4], [0.6], [2.0]])).tolist() == ["l", "l", "r", "r"]
    assert head.machine_.dual_coef_.tolist() == [[-0.1, 0.1]]


def test_the_kernel_is_the_rbf_kernel():
    X, _ = blobs(3)
    kernel = Kernel(X[:50], "scale")
    gamma = 1 / (8 * X[:50].var())
    assert kernel.gamma == pytest.approx(gamma)
    np.testing.assert_allclose(kernel.square, rbf_kernel(X[:50], gamma=gamma), rtol=0, atol=1e-12)
    assert np.array_equal(kernel.square, kernel.square.T)
    assert kernel.square.diagonal().tolist() == [1.0] * 50
    some = kernel.against(X[50:60], np.array([3, 1]))
    wanted = rbf_kernel(X[50:60], X[[3, 1]], gamma=gamma)
    np.testing.assert_allclose(some, wanted, rtol=0, atol=1e-12)


def test_many_rows_have_no_whole_kernel(monkeypatch):
    X, y = blobs(3)
    few = svm("classes").fit(X[:200], y[:200]).predict(X)
    monkeypatch.setattr(module, "LARGEST", 100)
    head = svm("classes").fit(X[:200], y[:200])
    assert head.machine_.kernel == "rbf"
    assert np.array_equal(head.predict(X), few)
    monkeypatch.setattr(module, "BLOCK", 7)
    assert np.array_equal(head.predict(X), few)
    assert len(head.predict(X[:0])) == 0


def test_rows_without_spread_and_a_single_class():
    same = np.ones((6, 2))
    assert svm("classes").fit(same, list("aabbbb")).predict(same).tolist() == ["b"] * 6
    assert svm("classes").fit(same, ["a"] * 6).predict(same[:2]).tolist() == ["a", "a"]
    assert svm("numbers").fit(same, [2.0] * 6).predict(same[:2]).tolist() == [2.0, 2.0]


def test_it_leaves_rows_and_the_global_generator_alone():
    X, y = blobs(2)
    before, state = X.copy(), np.random.get_state()[1].copy()
    svm("classes").fit(X, y).predict(X)
    svm("numbers").fit(X, y).predict(X)
    assert np.array_equal(X, before) and np.array_equal(state, np.random.get_state()[1])


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"C": 0}, "C of svm is a number above 0, not 0"),
        ({"C": "big"}, "C of svm is a number above 0, not 'big'"),
        ({"C": True}, "C of svm is a number above 0"),
        ({"epsilon": -1}, "epsilon of svm is a number above 0, not -1"),
        ({"gamma": "auto"}, "gamma of svm is \"scale\" or a number above 0, not 'auto'"),
        ({"gamma": -2.0}, "gamma of svm"),
    ],
)
def test_parameters_are_checked(params, said):
    with pytest.raises(DefinitionError, match=said):
        svm("classes", **params)


def test_a_task_counts_its_labels(tmp_path):
    frame = datasets.load_wine(as_frame=True).frame
    data = Dataset.from_table(frame, target="target", name="wine", kind="classes")
    probe = {"use": "trained", "head": {"use": "svm", "C": 10}, "scale": "plain"}
    metrics = ["acc", "f1_macro", "logloss"]
    task = karat.Task("wine", data, probe=probe, split="kfold", metrics=metrics)
    plain = {"plain": lambda items: items.to_numpy()}
    (run,) = karat.evaluate(plain, task, output=tmp_path, seed=3)
    X, y = datasets.load_wine(return_X_y=True)
    folds = split(data, {"use": "kfold"}, 3)
    wanted = [SVC(C=10).fit(X[f.train], y[f.train]).score(X[f.test], y[f.test]) for f in folds]
    assert run.results()["acc"].tolist() == pytest.approx(wanted, abs=1e-12)
    assert 0.5 < np.mean(wanted) < 1 and np.isfinite(run.results()[metrics].to_numpy()).all()
