"""Clusterers: the k-means of the TabEB document; hierarchies and dense groups as scikit-learn's."""

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
    centres = np.repeat([[0, 0], [50, 0], [0, 50]], 20, axis=0)
    return centres + rng.standard_normal((60, 2))


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


def test_it_is_a_mini_batch_of_32():
    head = kmeans(4, random_state=3)
    assert type(head).__name__ == "MiniBatchKMeans"
    assert (head.batch_size, head.n_clusters, head.random_state) == (32, 4, 3)


def test_without_batches_it_is_k_means():
    head = kmeans(4, batch_size=None, random_state=3)
    assert type(head).__name__ == "KMeans"
    assert (head.n_init, head.n_clusters, head.random_state) == (10, 4, 3)


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan", "chebyshev"])
def test_hierarchies_are_scikit_learns(metric, linkage):
    X = load_digits().data[:400]
    ours = agglomerative(10, metric, linkage).fit_predict(X)
    theirs = AgglomerativeClustering(10, metric=metric, linkage=linkage).fit_predict(X)
    assert adjusted_rand_score(ours, theirs) == 1.0
    assert sorted(set(ours)) == list(range(10))


def test_ward_is_scikit_learns():
    for X, count in [(load_iris().data, 3), (load_digits().data[:400], 10)]:
        theirs = AgglomerativeClustering(count, linkage="ward").fit_predict(X)
        assert adjusted_rand_score(ward(count).fit_predict(X), theirs) == 1.0


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_dense_groups_are_scikit_learns(metric):
    X = load_iris().data
    eps = {"cosine": 0.0005, "euclidean": 0.4, "manhattan": 0.7}[metric]
    theirs = DBSCAN(eps=eps, metric=metric).fit_predict(X)
    assert -1 in theirs and theirs.max() > 0
    assert np.array_equal(dbscan(eps=eps, metric=metric).fit_predict(X), theirs)


def test_a_function_of_ones_own_is_a_similarity():
    X = load_iris().data[::3]
    named = agglomerative(4, "cosine").fit_predict(X)
    assert np.array_equal(agglomerative(4, cosine).fit_predict(X), named)
    eps = 0.0008
    named = dbscan(eps, metric="cosine").fit_predict(X)
    assert -1 in named and named.max() > 0
    assert np.array_equal(dbscan(eps, metric=cosine).fit_predict(X), named)


def test_a_similarity_above_1_is_no_distance_below_0():
    X = np.array([[1.0], [2.0], [0.25]])
    # products 2, 0.25 and 0.5
    assert Distance(lambda a, b: a @ b).condensed(X).tolist() == [0.0, 0.75, 0.5]
    assert Distance("cityblock").condensed(X).tolist() == [1.0, 0.75, 1.75]


def test_a_function_may_be_named_by_its_module():
    assert Distance("numpy:dot").condensed(np.array([[1.0], [0.25]])).tolist() == [0.75]


def test_a_function_must_return_a_number():
    with pytest.raises(ContractError, match="must return one finite number for two vectors"):
        agglomerative(2, lambda a, b: a - b).fit_predict(clouds())
    with pytest.raises(ContractError, match="it returned nan"):
        dbscan(metric=lambda a, b: float("nan")).fit_predict(clouds())


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_vectors_without_direction_are_unrelated(metric):
    X = np.array([[0, 0, 0], [1, 0, 0.1], [1, 0, 0], [0, 1, 0], [0, 1, 0.1]], dtype=float)
    assert Distance(metric).condensed(X)[:4] == pytest.approx([1, 1, 1, 1])
    found = agglomerative(3, metric).fit_predict(X)
    assert adjusted_rand_score(found, [0, 1, 1, 2, 2]) == 1.0
    assert dbscan(0.3, 2, metric).fit_predict(X).tolist() == [-1, 0, 0, 1, 1]


def test_all_distances_are_those_of_scikit_learn():
    X = np.random.default_rng(1).standard_normal((30, 5))
    wanted = cosine_distances(X)[np.triu_indices(30, 1)]
    np.testing.assert_allclose(Distance("cosine").condensed(X), wanted, atol=1e-14)


@pytest.mark.parametrize("make", [agglomerative, ward])
def test_fewer_rows_than_clusters_are_one_each(make):
    assert make(5).fit_predict(np.eye(3)).tolist() == [0, 1, 2]
    assert make(1).fit_predict(np.eye(3)).tolist() == [0, 0, 0]
    assert make(2).fit_predict(np.eye(1)).tolist() == [0]


@pytest.mark.parametrize("make", [kmeans, agglomerative, ward])
def test_data_without_classes_must_say_how_many(make):
    name = make.__name__
    with pytest.raises(DefinitionError, match=f"{name} needs n_clusters"):
        make(0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: agglomerative(2, "cosin"), 'no metric "cosin". Did you mean "cosine"'),
        (lambda: dbscan(metric="precomputed"), 'there is no metric "precomputed"'),
        (lambda: dbscan(metric=3), 'there is no metric "3"'),
        (lambda: agglomerative(2, linkage="averag"), 'no linkage "averag". Did you mean "average"'),
        (lambda: agglomerative(2, linkage="ward"), "and the head ward"),
    ],
)
def test_unknown_names_are_said(make, said):
    with pytest.raises(DefinitionError, match=said):
        make()


@pytest.mark.parametrize("head", ["agglomerative", "ward", {"use": "dbscan", "eps": 0.2}])
def test_a_task_groups_rows_without_seeing_labels(head, tmp_path):
    table = pd.DataFrame(clouds() - 20, columns=["x", "y"]).assign(label=np.repeat(list("abc"), 20))
    data = Dataset.from_table(table, target="label", name="clouds", kind="classes")
    probe = {"use": "trained", "head": head}
    task = karat.Task("clouds", data, probe=probe, split="all", metrics=["v_measure"])
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()["v_measure"].tolist() == [1.0]


def test_what_learns_no_answers_is_no_head_for_folds(tmp_path):
    table = pd.DataFrame(clouds(), columns=["x", "y"]).assign(label=np.repeat(list("abc"), 20))
    data = Dataset.from_table(table, target="label", name="clouds", kind="classes")
    task = karat.Task("clouds", data, probe={"use": "trained", "head": "ward"}, split="kfold")
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()["info"].str.contains("looks at vectors only").all()
