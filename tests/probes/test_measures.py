"""Measures by name and by function, beside scikit-learn's and scipy's own numbers."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_distances, pairwise_kernels

from karat.errors import ContractError, DefinitionError
from karat.probes.measures import MEASURES, Measure, names

RNG = np.random.default_rng(7)
A, B = RNG.random((6, 4)), RNG.random((6, 4))


@pytest.mark.parametrize("name", ["cityblock", "chebyshev", "canberra", "braycurtis", "l1", "l2"])
def test_distances_are_negated(name):
    wanted = np.diag(pairwise_distances(A, B, metric=name))
    np.testing.assert_allclose(Measure(name).rows(A, B), -wanted, rtol=1e-9)
    table = 1 / (1 + pairwise_distances(A, B, metric=name))
    np.testing.assert_allclose(Measure(name).table(A, B), table, rtol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "sigmoid", "linear", "polynomial"])
def test_kernels_are_similarities_as_they_are(name):
    wanted = pairwise_kernels(A, B, metric=name)
    np.testing.assert_allclose(Measure(name).table(A, B), wanted, rtol=1e-9)
    np.testing.assert_allclose(Measure(name).rows(A, B), np.diag(wanted), rtol=1e-9)


@pytest.mark.parametrize("name", names())
def test_every_name_measures(name):
    measure = Measure(name)
    rows, table = measure.rows(A, B), measure.table(A, B)
    assert rows.shape == (6,)
    assert table.shape == (6, 6)
    assert np.isfinite(rows).all()
    assert np.isfinite(table).all()


@pytest.mark.parametrize("name", ["cosine", "euclidean", "manhattan", "cityblock", "rbf"])
def test_a_vector_is_most_similar_to_itself(name):
    table = Measure(name).table(A, A)
    assert (table.max(axis=1) <= np.diag(table) + 1e-12).all()


def test_the_cosine_of_pairs_and_of_tables_agree():
    np.testing.assert_allclose(Measure("cosine").table(A, B), 1 - cdist(A, B, "cosine"))
    np.testing.assert_allclose(MEASURES["cosine"](A, B), np.diag(1 - cdist(A, B, "cosine")))


def test_zero_vectors_never_give_nan():
    flat = np.ones((1, 4))
    for name in ("cosine", "correlation"):
        assert np.isfinite(Measure(name).rows(np.zeros((1, 4)), flat)).all()
        assert np.isfinite(Measure(name).table(np.zeros((1, 4)), flat)).all()


def sigmoid(a, b):
    return 1 / (1 + np.exp(-(a @ b)))


def test_a_custom_function_is_a_similarity():
    wanted = 1 / (1 + np.exp(-(A @ B.T)))
    np.testing.assert_allclose(Measure(sigmoid).table(A, B), wanted)
    np.testing.assert_allclose(Measure(sigmoid).rows(A, B), np.diag(wanted))
    assert Measure("numpy:dot").rows(A, B)[0] == pytest.approx(A[0] @ B[0])


def test_wrong_results_of_a_custom_function():
    with pytest.raises(ContractError, match="array"):
        Measure(lambda a, b: a - b).rows(A, B)
    with pytest.raises(ContractError, match="nan"):
        Measure(lambda a, b: np.nan).rows(A, B)


def test_a_wrong_name_suggests_the_nearest():
    with pytest.raises(DefinitionError, match='"cosine"'):
        Measure("cosin")
    with pytest.raises(DefinitionError, match="3"):
        Measure(3)  # type: ignore[arg-type]
