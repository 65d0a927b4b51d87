"""Clusterers: k-means as in the TabEB document; hierarchies and DBSCAN as in scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_distances

import karat
from karat.dataset import Dataset
from karat.errors import ContractError, DefinitionError
from karat.heads.transductive import Distance, agglomerative, dbscan, kmeans, ward


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def clouds() -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = np.repeat([[0, 0], [50, 0], [0, 50]], 20, axis=0)
    return centers + rng.standard_normal((60, 2))


HEADS = {
    "mini-batches": lambda: kmeans(3, random_state=1),
    "k-means": lambda: kmeans(3, batch_size=None, random_state=1),
    "average": lambda: agglomerative(3, "euclidean"),
    "ward": lambda: ward(3),
    "dbscan": lambda: dbscan(eps=3, metric="euclidean"),
}


@pytest.mark.parametrize("name", HEADS)
def test_far_groups_are_found(name):
    found = HEADS[name]().fit_predict(clouds())
    groups = [set(found[i : i + 20]) for i in (0, 20, 40)]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3


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


def test_distances_equal_scikit_learns():
    X = np.random.default_rng(1).standard_normal((30, 5))
    wanted = cosine_distances(X)[np.triu_indices(30, 1)]
    np.testing.assert_allclose(Distance("cosine").condensed(X), wanted, atol=1e-14)


@pytest.mark.parametrize("make", [agglomerative, ward])
def test_with_fewer_rows_than_clusters_each_row_is_a_cluster(make):
    assert make(5).fit_predict(np.eye(3)).tolist() == [0, 1, 2]
    assert make(1).fit_predict(np.eye(3)).tolist() == [0, 0, 0]
    assert make(2).fit_predict(np.eye(1)).tolist() == [0]


@pytest.mark.parametrize("make", [kmeans, agglomerative, ward])
def test_without_classes_n_clusters_is_required(make):
    with pytest.raises(DefinitionError, match=f"{make.__name__}.*n_clusters"):
        make(0)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: agglomerative(2, "cosin"), '"cosin".*"cosine"'),
        (lambda: dbscan(metric="precomputed"), '"precomputed"'),
        (lambda: dbscan(metric=3), '"3"'),
        (lambda: agglomerative(2, linkage="averag"), '"averag".*"average"'),
        (lambda: agglomerative(2, linkage="ward"), "head ward"),
    ],
)
def test_unknown_names(make, word):
    with pytest.raises(DefinitionError, match=word):
        make()


@pytest.mark.parametrize("head", ["agglomerative", "ward", {"use": "dbscan", "eps": 0.2}])
def test_a_task_clusters_rows_without_labels(head, tmp_path):
    table = pd.DataFrame(clouds() - 20, columns=["x", "y"]).assign(label=np.repeat(list("abc"), 20))
    data = Dataset.from_table(table, target="label", name="clouds", kind="classes")
    probe = {"use": "trained", "head": head}
    task = karat.Task("clouds", data, probe=probe, split="all", metrics=["v_measure"])
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()["v_measure"].tolist() == [1.0]


def test_a_clusterer_cannot_be_used_with_folds(tmp_path):
    table = pd.DataFrame(clouds(), columns=["x", "y"]).assign(label=np.repeat(list("abc"), 20))
    data = Dataset.from_table(table, target="label", name="clouds", kind="classes")
    task = karat.Task("clouds", data, probe={"use": "trained", "head": "ward"}, split="kfold")
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()["info"].str.contains("split: all").all()
