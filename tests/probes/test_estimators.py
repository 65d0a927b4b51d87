"""Heads by hand and against scikit-learn; their predictions are aligned and checked."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import karat
from karat.core import registry
from karat.core.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError
from karat.models import predictors as svm_module
from karat.models.predictors import Kernel
from karat.probes.estimators import (
    BestOf,
    Distance,
    IsolationForestScore,
    KnnDistance,
    agglomerative,
    dbscan,
    inner_folds,
    kmeans,
    knn,
    linear,
    logistic,
    naive_bayes,
    name_of,
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
        (lambda: svm("classification", gamma="car"), "gamma.*car"),
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


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.05])
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
    kept: dict = {}

    def share(name, make):
        kept[name] = kept[name] if name in kept else make()
        return kept[name]

    for _ in range(2):  # the second time from the distances of the first
        shared = dbscan(eps=eps, metric=metric, share=share).fit_predict(X)
        assert np.array_equal(shared, theirs)
    assert list(kept) == [f"distances {metric}"]


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
def test_neighbors_are_those_of_scikit_learn(kind):
    X, y = load_digits(return_X_y=True)
    X = np.concatenate([X, X[:50]])  # equal rows with other targets
    y = np.concatenate([y, y[1:51]])
    plain = KNeighborsClassifier(3) if kind == "classification" else KNeighborsRegressor(3)
    wanted = plain.fit(X[::2], y[::2]).predict(X[1::2])
    for dtype in (np.float32, np.float64):
        found = knn(kind, n_neighbors=3).fit(X[::2].astype(dtype), y[::2])
        assert found.predict(X[1::2].astype(dtype)).tolist() == wanted.tolist()


def test_least_squares_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 20)) * np.logspace(-2, 2, 20) + 5
    y = X @ random.normal(size=20) + random.normal(size=90)
    weight = random.uniform(0.1, 1, 90)
    dependent = np.column_stack([X, X[:, 0] + X[:, 1]])
    for rows, given in ((X, None), (X, weight), (dependent, None), (X[:10], None)):
        target, given = y[: len(rows)], None if given is None else given[: len(rows)]
        ours = linear().fit(rows, target, given).predict(rows)
        theirs = LinearRegression().fit(rows, target, given).predict(rows)
        assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_machine_without_weights_at_the_limit_is_fitted_once(classes):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(120, 40)), np.arange(120) % classes
    X[3], X[7], X[20] = X[1], X[6], X[18]  # equal rows, some of two classes
    kernel, other = Kernel(X, "scale"), random.normal(size=(30, 40))
    against, machines = kernel.against(other), []
    for C in (0.1, 1.0, 10.0, 100.0, 1000.0):
        machine = svm("classification", C)
        machine.fit_kernel(kernel, y)
        machines.append(machine.machine_)
        plain = SVC(C=C, kernel="precomputed").fit(kernel.square, y)
        found = machine.predict_kernel(against[:, machine.support()])
        assert found.tolist() == plain.predict(against).tolist()
    assert machines[0] is not machines[1]
    assert machines[2] is machines[3] is machines[4]
    assert np.abs(machines[2].dual_coef_).max() == 10  # of equal rows of two classes
    # of other targets, of a smaller limit
    assert kernel.fit(SVC(C=1000.0), (y + 1) % classes) is not machines[4]
    assert kernel.fit(SVC(C=0.1), y) is not machines[4]


def test_a_machine_with_a_weight_at_the_limit_is_fitted_again():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(60, 2)), random.integers(0, 2, 60)
    X[1] = X[0]
    kernel = Kernel(X, "scale")
    machines = [kernel.fit(SVC(C=C), y) for C in (1.0, 10.0)]
    assert machines[0] is not machines[1]


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


C = [0.001, 0.01, 0.1, 1, 10, 100, 1000]
HEADS = ["naive-bayes", {"use": "knn", "n_neighbors": 3}, {"use": "svm", "C": C}]
NAMED = [{"use": "naive-bayes"}, HEADS[1], *({"use": "svm", "C": value} for value in C)]
PLAIN = [GaussianNB(), KNeighborsClassifier(3), *(SVC(C=value) for value in C)]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_selection_equals_nested_cross_validation(load, seed):
    X, y = load(return_X_y=True)
    X, first = np.unique(X, axis=0, return_index=True)  # equal rows are another test's matter
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[first][order]
    train, test = slice(0, 2 * len(X) // 3), slice(2 * len(X) // 3, None)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    means = [cross_val_score(head, X[train], y[train], cv=folds).mean() for head in PLAIN]
    best = int(np.argmax(means))
    head = BestOf(HEADS, "classification", random_state=seed).fit(X[train], y[train])
    assert head.candidates == NAMED
    assert head.scores_ == pytest.approx(means, abs=1e-12)
    assert head.choice_ == NAMED[best]
    wanted = PLAIN[best].fit(X[train], y[train]).predict(X[test])
    assert np.array_equal(head.predict(X[test]), wanted)


def test_heads_for_numbers_are_selected_by_rmse():
    X, y = load_diabetes(return_X_y=True)
    plain = [KNeighborsRegressor(), LinearRegression(), Ridge(0.1), Ridge(1.0)]
    folds = KFold(4, shuffle=True, random_state=2)
    scoring = "neg_root_mean_squared_error"
    means = [cross_val_score(head, X, y, cv=folds, scoring=scoring).mean() for head in plain]
    heads = ["knn", "linear-regression", {"use": "ridge", "alpha": [0.1, 1.0]}]
    head = BestOf(heads, "regression", folds=4, random_state=2).fit(X, y)
    assert head.scores_ == pytest.approx(means, abs=1e-9)
    best = int(np.argmax(means))
    assert head.choice_ == head.candidates[best] == {"use": "ridge", "alpha": 0.1}
    assert head.predict(X) == pytest.approx(plain[best].fit(X, y).predict(X))
    assert f"ridge alpha=0.1 (RMSE {-means[best]:.4g} " in head.notes_[0]


def test_the_note_names_the_selected_head():
    X = np.repeat([[0.0, 0], [9, 0], [0, 9], [9, 9]], 10, axis=0)
    X = X + np.random.default_rng(0).standard_normal(X.shape)
    y = np.repeat(list("abba"), 10)
    head = BestOf(["logistic-regression", {"use": "svm", "C": [1, 10]}], "classification").fit(X, y)
    # not linearly separable; both machines are perfect, and the first is selected
    assert name_of(head.choice_) == "svm C=1" and "svm C=1 (accuracy 1.000" in head.notes_[0]
    assert head.choice_ == {"use": "svm", "C": 1} and head.scores_[1] == head.scores_[2] == 1.0


def test_ties_go_to_the_first_head():
    X, y = load_iris(return_X_y=True)
    for first in ("uniform", "distance"):
        other = {"uniform": "distance", "distance": "uniform"}[first]
        heads = [{"use": "knn", "n_neighbors": 1, "weights": [first, other]}]
        assert BestOf(heads, "classification").fit(X, y).choice_["weights"] == first


def test_heads_are_never_fitted_on_rows_they_are_scored_on(monkeypatch):
    seen = []

    class Spy:
        def fit(self, X, y):
            self.rows = {tuple(row) for row in X}
            return self

        def predict(self, X):
            asked = {tuple(row) for row in X}
            seen.append((self.rows, asked))
            return np.zeros(len(X))

    monkeypatch.setitem(registry.heads._parts, "naive-bayes", lambda: Spy())
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (90, 2)).astype(float)  # at most 16 rows that differ
    y = rng.integers(0, 2, 90)
    BestOf(["naive-bayes"], "classification", folds=4).fit(X, y)
    assert len(seen) == 4
    for taught, asked in seen:
        assert taught and asked and not taught & asked
    everything = {tuple(row) for row in X}
    assert set.union(*(asked for _, asked in seen)) == everything
    assert sum(len(asked) for _, asked in seen) == len(everything)


def test_the_selection_does_not_depend_on_test_labels(tmp_path):
    X, y = load_wine(return_X_y=True)
    part = np.where(np.arange(len(X)) % 3 == 0, "test", "train")
    notes = []
    for shift in (0, 1):
        labels = np.where(part == "test", (y + shift) % 3, y)
        table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=labels)
        data = Dataset.from_table(table, target="y", name="wine", kind="classification")
        data = replace(data, part=part)
        probe = {"use": "trained", "head": {"use": "best-of", "heads": HEADS}}
        task = karat.Task("wine", data, probe=probe, split="fixed", metrics=["acc"])
        plain = {"plain": lambda items: items.to_numpy()}
        (run,) = karat.evaluate(plain, task, output=tmp_path / str(shift))
        notes.append(run.results()["notes"].tolist())
        assert "best-of" in notes[-1][0]
    assert notes[0] == notes[1]


def test_equal_rows_are_in_one_fold_and_folds_are_stratified():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    X[40:] = X[:20]
    X[0], X[40] = 0.0, -0.0  # the same number
    y = np.arange(60) % 3
    y[40:] = y[:20]
    folds = inner_folds(X, y, 4, 0)
    assert len(folds) == 4 and np.array_equal(np.sum(folds, axis=0), np.ones(60))
    for held in folds:
        assert np.array_equal(held[40:], held[:20])
        assert np.bincount(y[:40][held[:40]]).tolist() in ([3, 3, 4], [3, 4, 3], [4, 3, 3])


@pytest.mark.parametrize("rows", [2, 3, 5, 17, 100])
def test_inner_folds_of_numbers_are_those_of_kfold(rows):
    X = np.random.default_rng(rows).normal(size=(rows, 3))
    splits = KFold(min(3, rows), shuffle=True, random_state=7).split(X)
    expected = [np.isin(np.arange(rows), test) for _, test in splits]
    np.testing.assert_array_equal(inner_folds(X, None, 3, 7), expected)


def test_fewer_folds_for_few_rows():
    X = np.arange(6.0)[:, None]
    assert len(inner_folds(X, list("aaabbb"), 5, 0)) == 3
    assert len(inner_folds(X, list("aabbcd"), 5, 0)) == 2
    assert inner_folds(X, list("abcdef"), 5, 0) == []
    assert len(inner_folds(X, None, 10, 0)) == 6
    assert inner_folds(np.ones((6, 1)), None, 5, 0) == []


def test_without_folds_the_first_head_is_selected():
    head = BestOf(["decision-tree", "naive-bayes"], "classification").fit(
        np.arange(3.0)[:, None], list("abc")
    )
    assert "decision-tree" in head.notes_[0] and "too few rows" in head.notes_[0]
    assert head.predict(np.array([[1.1]])).tolist() == ["b"]


def test_a_class_with_one_member():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((21, 3)), np.array([*"ab" * 10, "c"])
    X += 5 * (y == "b")[:, None]
    head = BestOf(
        ["naive-bayes", {"use": "svm", "C": [1, 10]}, "logistic-regression"], "classification"
    ).fit(X, y)
    assert (head.predict(X[:20]) == y[:20]).all() and "failed" not in head.notes_[0]


def test_a_head_that_fails_is_not_selected():
    X, y = np.arange(8.0)[:, None], np.repeat(list("ab"), 4)
    head = BestOf([{"use": "knn", "n_neighbors": [7, 1]}], "classification", folds=2).fit(X, y)
    assert head.choice_ == {"use": "knn", "n_neighbors": 1}
    assert "knn n_neighbors=7 failed" in head.notes_[0]
    with pytest.raises(DataError, match="best-of.*Expected n_neighbors"):
        BestOf([{"use": "knn", "n_neighbors": 7}], "classification", folds=2).fit(X, y)


def test_probabilities_are_those_of_the_selected_head():
    X, y = load_iris(return_X_y=True)
    head = BestOf(["naive-bayes"], "classification").fit(X, y)
    assert np.array_equal(head.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X))
    assert head.classes_.tolist() == [0, 1, 2]
    assert not hasattr(BestOf(["svm"], "classification").fit(X, y), "predict_proba")
    assert not hasattr(BestOf(["naive-bayes"], "classification"), "predict_proba")


def test_machines_with_equal_gamma_share_a_kernel(monkeypatch):
    made = []
    real = svm_module.Kernel.__init__

    def counted(self, X, gamma):
        made.append(gamma)
        real(self, X, gamma)

    monkeypatch.setattr(svm_module.Kernel, "__init__", counted)
    X, y = load_iris(return_X_y=True)
    heads = [{"use": "svm", "C": C}, {"use": "svm", "C": [1, 2], "gamma": 0.5}]
    BestOf(heads, "classification", folds=3).fit(X, y)
    assert sorted(map(str, made[:-1])) == ["0.5"] * 3 + ["scale"] * 3  # and one for the winner


@pytest.mark.parametrize(
    ("heads", "word"),
    [
        ([], r"\[\]"),
        ("naive-bayes", "naive-bayes"),
        ([{"C": 1}], "use"),
        (["knnn"], '"knnn".*"knn"'),
        ([{"use": "svm", "c": 1}], '"best-of".*"svm".*"c"'),
        ([{"use": "svm", "C": [1, -1]}], "C .*-1"),
        (["ridge"], "ridge .*classification"),
        (["dbscan"], "dbscan"),
        (["isolation-forest"], "isolation-forest"),
        ([{"use": "best-of", "heads": ["naive-bayes"]}], "another best-of"),
    ],
)
def test_wrong_definitions_fail_before_anything_is_fitted(heads, word):
    with pytest.raises(DefinitionError, match=word):
        BestOf(heads, "classification")
    with pytest.raises(DefinitionError, match="folds.*1"):
        BestOf(["naive-bayes"], "classification", folds=1)


def test_candidates_of_two_selections_are_fitted_once_per_inner_fold(monkeypatch):
    X, y = load_wine(return_X_y=True)
    fitted, made = [], {}
    fit_kernel = svm_module.RbfLabels.fit_kernel
    monkeypatch.setattr(
        svm_module.RbfLabels,
        "fit_kernel",
        lambda self, kernel, y: fitted.append(self.C) or fit_kernel(self, kernel, y),
    )

    def share(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    def select(heads, target):
        return BestOf(heads, "classification", folds=3, share=share).fit(X, target)

    machines = {"use": "svm", "C": [1, 10]}
    alone = BestOf([machines], "classification", folds=3).fit(X, y)
    fitted.clear()
    first, second = select([machines], y), select(["naive-bayes", machines], y)
    assert first.scores_.tolist() == alone.scores_.tolist() == second.scores_[1:].tolist()
    refitted = 1 + (second.choice_["use"] == "svm")
    assert len(fitted) == 2 * 3 + refitted
    # another target on the same rows has its own inner folds
    other = select([machines], y == 1)
    plain = BestOf([machines], "classification", folds=3).fit(X, y == 1)
    assert other.scores_.tolist() == plain.scores_.tolist()
