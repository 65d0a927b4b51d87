"""Heads by hand and against scikit-learn; their predictions are aligned and checked."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import karat
from karat.core.dataset import Dataset
from karat.errors import ContractError, DefinitionError
from karat.probes.heads.estimators import (
    Distance,
    IsolationForestScore,
    KnnDistance,
    agglomerative,
    dbscan,
    kmeans,
    knn,
    linear,
    logistic,
    naive_bayes,
    ridge,
    svm,
    tree,
    ward,
)


def classes(labels, group=None):
    table = pd.DataFrame({"x": np.arange(float(len(labels))), "y": pd.Series(labels)})
    extra = {} if group is None else {"g": group}
    return Dataset.from_table(
        table.assign(**extra), "y", kind="classification", group="g" if group is not None else None
    )


X = np.array([[0.0], [1.0], [2.0], [10.0]])


def test_the_nearest_neighbors_vote():
    head = knn("classification", n_neighbors=3).fit(X, list("aabb"))
    assert head.predict([[0.0]]).tolist() == ["a"]
    assert head.predict_proba([[0.0]]).tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)]]


def test_naive_bayes_by_hand():
    # both classes have the variance 1 and as many members: at 1 the odds are exp(((1-4)² - 1²) / 2)
    head = naive_bayes(var_smoothing=1e-12).fit([[-1.0], [1.0], [3.0], [5.0]], list("aabb"))
    odds = math.exp((9 - 1) / 2)
    assert head.predict_proba([[1.0]])[0, 0] == pytest.approx(odds / (1 + odds))
    assert head.predict([[1.9], [2.1]]).tolist() == ["a", "b"]


def test_naive_bayes_is_scikit_learns():
    points, labels = load_iris(return_X_y=True)
    ours, theirs = naive_bayes().fit(points, labels), GaussianNB().fit(points, labels)
    assert np.array_equal(ours.predict_proba(points), theirs.predict_proba(points))
    labels, chances = ours.predict_both(points)
    assert np.array_equal(labels, ours.predict(points))
    assert np.array_equal(labels, theirs.predict(points))
    np.testing.assert_allclose(chances, theirs.predict_proba(points), rtol=1e-12, atol=1e-300)


def test_equal_vectors_give_the_class_frequencies():
    head = naive_bayes().fit(np.ones((8, 3)), list("aabbbbbb"))
    labels, chances = head.predict_both(np.ones((2, 3)))
    assert labels.tolist() == ["b", "b"]
    assert chances == pytest.approx(np.array([[0.25, 0.75]] * 2))


@pytest.mark.parametrize(
    ("criterion", "cut"),
    # behind the 4th: 4 · 1 bit, or 4 · 1/2; behind the 7th: 7 · 0.592 = 4.14, or 7 · 12/49 = 1.71
    [(None, 3.5), ("entropy", 3.5), ("gini", 6.5)],
)
def test_the_criterion_decides_the_split(criterion, cut):
    head = tree("classification", criterion, max_depth=1).fit(
        np.arange(8.0)[:, None], list("aaaabaab")
    )
    assert head.tree_.threshold[0] == cut


def test_a_tree_is_scikit_learns_with_a_seed():
    points, labels = load_iris(return_X_y=True)
    asked = points + 0.3
    ours = tree("classification", random_state=3).fit(points, labels)
    theirs = DecisionTreeClassifier(criterion="entropy", random_state=3).fit(points, labels)
    assert np.array_equal(ours.predict(asked), theirs.predict(asked))
    ours = tree("regression", random_state=4).fit(points[:, 1:], points[:, 0])
    theirs = DecisionTreeRegressor(random_state=4).fit(points[:, 1:], points[:, 0])
    assert np.array_equal(ours.predict(asked[:, 1:]), theirs.predict(asked[:, 1:]))
    assert theirs.criterion == ours.criterion == "squared_error"


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: naive_bayes("regression"), "regression.*ridge"),
        (lambda: logistic(kind="regression"), "regression.*ridge"),
        (lambda: ridge(kind="classification"), "classification.*logistic"),
        (lambda: linear(kind="classification"), "classification.*logistic"),
        (lambda: naive_bayes(var_smoothing=0), "var_smoothing"),
        (lambda: tree("classification", "entrpy"), '"entrpy".*"entropy"'),
        (lambda: tree("regression", "gini"), "squared_error, absolute_error"),
        (lambda: agglomerative(2, "cosin"), '"cosin".*"cosine"'),
        (lambda: dbscan(metric="precomputed"), '"precomputed"'),
        (lambda: dbscan(metric=3), '"3"'),
        (lambda: agglomerative(2, linkage="averag"), '"averag".*"average"'),
        (lambda: agglomerative(2, linkage="ward"), "head ward"),
        (lambda: svm("classification", C=0), "C.*0"),
        (lambda: svm("classification", C="big"), "C.*big"),
        (lambda: svm("classification", C=True), "C.*True"),
        (lambda: svm("classification", epsilon=-1), "epsilon.*-1"),
        (lambda: svm("classification", gamma="auto"), "gamma.*auto"),
        (lambda: kmeans(0), "kmeans.*n_clusters"),
        (lambda: agglomerative(0), "agglomerative.*n_clusters"),
        (lambda: ward(0), "ward.*n_clusters"),
    ],
)
def test_wrong_parameters(make, word):
    with pytest.raises(DefinitionError, match=word):
        make()


LINEAR_X = np.array([[-1.0], [1.0]])
Y = np.array([-2.0, 2.0])


def test_least_squares_finds_the_line():
    head = linear().fit(LINEAR_X + 3, Y + 5)
    assert head.predict([[0.0]])[0] == pytest.approx(5 - 3 * 2)


@pytest.mark.parametrize(("alpha", "slope"), [(1.0, 4 / 3), (2.0, 1.0), (0.5, 1.6)])
def test_ridge_shrinks_the_slope(alpha, slope):
    # slope = Σxy / (Σx² + alpha) = 4 / (2 + alpha)
    assert ridge(alpha=alpha).fit(LINEAR_X, Y).coef_[0] == pytest.approx(slope)
    assert ridge().alpha == 1.0


def test_logistic_is_scikit_learns_with_a_hundred_iterations():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((60, 3))
    labels = np.digitize(points[:, 0] + 0.3 * rng.standard_normal(60), [-0.5, 0.5])
    ours, theirs = logistic(random_state=1).fit(points, labels), LogisticRegression()
    assert ours.max_iter == 100
    theirs.fit(points, labels)
    np.testing.assert_array_equal(ours.predict_proba(points), theirs.predict_proba(points))
    assert logistic(C=0.1, max_iter=7).get_params()["C"] == 0.1


def test_the_distance_to_neighbors_by_hand():
    assert KnnDistance(1).outlier_scores(X).tolist() == [1, 1, 1, 8]
    assert KnnDistance(2).outlier_scores(X).tolist() == [1.5, 1, 1.5, 8.5]
    # more neighbors than other rows: all other rows
    assert KnnDistance(50).outlier_scores(X)[3] == pytest.approx((10 + 9 + 8) / 3)


def test_isolation_is_scikit_learns():
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=20, random_state=3).fit(X)
    got = IsolationForestScore(20, random_state=3).outlier_scores(X)
    assert np.array_equal(got, -forest.score_samples(X))


@pytest.mark.parametrize("head", ["knn-distance", "isolation-forest"])
def test_a_task_finds_outliers_without_labels(head, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["label"] = "normal"
    # far from the rest and from each other, so that nothing short of perfect is right
    table.loc[:9, ["a", "b", "c"]] += 30 * np.arange(1, 11)[:, None] * [1, -1, 1]
    table.loc[:9, "label"] = "outlier"
    data = Dataset.from_table(table, target="label", name="odd", kind="classification")
    metrics = ["auc", "pr_auc", "f1_weighted", "f1_micro"]
    probe = {"use": "trained", "head": head}
    task = karat.Task("odd", data, probe=probe, split="all", metrics=metrics)
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()[metrics].iloc[0].tolist() == pytest.approx([1, 1, 1, 1], abs=1e-12)


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
        ours = svm("classification", C=C, gamma=gamma).fit(X[train], y[train])
        theirs = SVC(C=C, gamma=gamma, random_state=0).fit(X[train], y[train])
        assert np.array_equal(ours.predict(X), theirs.predict(X)), C


def test_two_points_by_hand():
    # K(0, 1) = e^-1; both are support vectors of the weight C = 0.1, and the middle is undecided
    head = svm("classification", C=0.1, gamma=1.0).fit([[0.0], [1.0]], ["l", "r"])
    assert head.predict(np.array([[-5.0], [0.4], [0.6], [2.0]])).tolist() == ["l", "l", "r", "r"]
    assert head.machine_.dual_coef_.tolist() == [[-0.1, 0.1]]
    assert not hasattr(head, "predict_proba")


def test_rows_without_spread_and_a_single_class():
    same = np.ones((6, 2))
    assert svm("classification").fit(same, list("aabbbb")).predict(same).tolist() == ["b"] * 6
    assert svm("classification").fit(same, ["a"] * 6).predict(same[:2]).tolist() == ["a", "a"]
    assert svm("regression").fit(same, [2.0] * 6).predict(same[:2]).tolist() == [2.0, 2.0]


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def clouds() -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = np.repeat([[0, 0], [50, 0], [0, 50]], 20, axis=0)
    return centers + rng.standard_normal((60, 2))


def test_k_means_with_and_without_mini_batches():
    head = kmeans(4, random_state=3)
    assert type(head).__name__ == "MiniBatchKMeans"
    assert (head.batch_size, head.n_clusters, head.random_state) == (32, 4, 3)
    head = kmeans(4, batch_size=None, random_state=3)
    assert type(head).__name__ == "KMeans"
    assert (head.n_init, head.n_clusters, head.random_state) == (10, 4, 3)


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan", "chebyshev"])
def test_hierarchies_equal_scikit_learns(metric, linkage):
    X = load_digits().data[:400]
    ours = agglomerative(10, metric, linkage).fit_predict(X)
    theirs = AgglomerativeClustering(10, metric=metric, linkage=linkage).fit_predict(X)
    assert adjusted_rand_score(ours, theirs) == 1.0
    assert sorted(set(ours)) == list(range(10))


def test_ward_equals_scikit_learns():
    for X, count in [(load_iris().data, 3), (load_digits().data[:400], 10)]:
        theirs = AgglomerativeClustering(count, linkage="ward").fit_predict(X)
        assert adjusted_rand_score(ward(count).fit_predict(X), theirs) == 1.0


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_dbscan_equals_scikit_learns(metric):
    X = load_iris().data
    eps = {"cosine": 0.0005, "euclidean": 0.4, "manhattan": 0.7}[metric]
    theirs = DBSCAN(eps=eps, metric=metric).fit_predict(X)
    assert -1 in theirs and theirs.max() > 0
    assert np.array_equal(dbscan(eps=eps, metric=metric).fit_predict(X), theirs)


def test_a_custom_function_is_a_similarity():
    X = load_iris().data[::3]
    named = agglomerative(4, "cosine").fit_predict(X)
    assert np.array_equal(agglomerative(4, cosine).fit_predict(X), named)
    eps = 0.0008
    named = dbscan(eps, metric="cosine").fit_predict(X)
    assert -1 in named and named.max() > 0
    assert np.array_equal(dbscan(eps, metric=cosine).fit_predict(X), named)


def test_distances_by_hand():
    X = np.array([[1.0], [2.0], [0.25]])
    # products 2, 0.25 and 0.5; a similarity above 1 is the distance 0
    assert Distance(lambda a, b: a @ b).condensed(X).tolist() == [0.0, 0.75, 0.5]
    assert Distance("numpy:dot").condensed(X).tolist() == [0.0, 0.75, 0.5]
    assert Distance("cityblock").condensed(X).tolist() == [1.0, 0.75, 1.75]


def test_a_function_must_return_a_number():
    with pytest.raises(ContractError, match="array"):
        agglomerative(2, lambda a, b: a - b).fit_predict(clouds())
    with pytest.raises(ContractError, match="nan"):
        dbscan(metric=lambda a, b: float("nan")).fit_predict(clouds())


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_zero_vectors_are_unrelated(metric):
    X = np.array([[0, 0, 0], [1, 0, 0.1], [1, 0, 0], [0, 1, 0], [0, 1, 0.1]], dtype=float)
    assert Distance(metric).condensed(X)[:4] == pytest.approx([1, 1, 1, 1])
    found = agglomerative(3, metric).fit_predict(X)
    assert adjusted_rand_score(found, [0, 1, 1, 2, 2]) == 1.0
    assert dbscan(0.3, 2, metric).fit_predict(X).tolist() == [-1, 0, 0, 1, 1]


@pytest.mark.parametrize("make", [agglomerative, ward])
def test_with_fewer_rows_than_clusters_each_row_is_a_cluster(make):
    assert make(5).fit_predict(np.eye(3)).tolist() == [0, 1, 2]
    assert make(1).fit_predict(np.eye(3)).tolist() == [0, 0, 0]
    assert make(2).fit_predict(np.eye(1)).tolist() == [0]


@pytest.mark.parametrize("head", ["agglomerative", "ward", {"use": "dbscan", "eps": 0.2}])
def test_a_task_clusters_rows_without_labels(head, tmp_path):
    table = pd.DataFrame(clouds() - 20, columns=["x", "y"]).assign(label=np.repeat(list("abc"), 20))
    data = Dataset.from_table(table, target="label", name="clouds", kind="classification")
    probe = {"use": "trained", "head": head}
    task = karat.Task("clouds", data, probe=probe, split="all", metrics=["v_measure"])
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()["v_measure"].tolist() == [1.0]


def test_neighbors_are_searched_once_for_labels_and_probabilities():
    X, y = load_iris(return_X_y=True)
    X = X.round()  # many ties
    ours = knn("classification", n_neighbors=4).fit(X[::2], y[::2])
    plain = KNeighborsClassifier(4).fit(X[::2], y[::2])
    labels, shares = ours.predict_both(X[1::2])
    assert labels.tolist() == plain.predict(X[1::2]).tolist()
    assert shares.tolist() == plain.predict_proba(X[1::2]).tolist()
    assert not hasattr(knn("classification", weights="distance"), "predict_both")


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_machines_on_a_shared_kernel_predict_the_same(kind):
    X, y = load_digits(return_X_y=True)
    X, y, other = X[:300], y[:300], X[300:400]
    made = {}

    def share(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    for C in (0.1, 1.0, 100.0):
        alone, shared = svm(kind, C), svm(kind, C, share=share)
        wanted = alone.fit(X, y).predict(other)
        assert shared.fit(X, y).predict(other) == pytest.approx(wanted, abs=1e-9)
        assert pickle.loads(pickle.dumps(shared)).predict(other) == pytest.approx(wanted, abs=1e-9)
        # the kernel is shared for one fit only
        assert shared.fit(X[:200], y[:200]).predict(other) == pytest.approx(
            alone.fit(X[:200], y[:200]).predict(other), abs=1e-9
        )
    assert len(made) == 1
