"""Similarity measures against scikit-learn and SciPy, and the similarity probe."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance
from sklearn.metrics.pairwise import paired_cosine_distances, pairwise_distances, pairwise_kernels

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import ContractError, DataError, DefinitionError
from karat.metrics import score
from karat.probes import similarity
from karat.probes.similarity import MEASURES, Measure, Similarity, names

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
    size = 2 if name == "haversine" else 4
    rows, table = measure.rows(A[:, :size], B[:, :size]), measure.table(A[:, :size], B[:, :size])
    assert rows.shape == (6,)
    assert table.shape == (6, 6)
    assert np.isfinite(rows).all()
    assert np.isfinite(table).all()


@pytest.mark.parametrize("name", ["seuclidean", "mahalanobis"])
def test_distances_scaled_by_all_vectors(name):
    """The variances come from the vectors of all items, as in SciPy from all rows."""
    X = np.vstack([A, B])
    wanted = distance.squareform(distance.pdist(X, name))
    measure = Measure(name)
    measure.fit(X)
    np.testing.assert_allclose(measure.rows(A, B), -np.diag(wanted[:6, 6:]), rtol=1e-9)
    np.testing.assert_allclose(measure.table(A[:2], B), 1 / (1 + wanted[:2, 6:]), rtol=1e-9)
    questions = pairs("wx", "yz", [1.0, 2.0])
    found = Similarity(name).answer(questions, Vectors(X[:7, :2], np.arange(7))).predictions
    wanted = distance.squareform(distance.pdist(X[:7, :2], name))
    np.testing.assert_allclose(found, [-wanted[0, 2], -wanted[1, 3]], rtol=1e-9)


def test_haversine_of_two_dimensions():
    a, b = np.array([[0.0, 0.0]]), np.array([[0.0, np.pi / 2]])  # a quarter of the equator
    assert Measure("haversine").rows(a, b) == pytest.approx([-np.pi / 2])
    with pytest.raises(DataError, match="4"):
        Measure("haversine").rows(A, B)


def test_mahalanobis_needs_more_vectors_than_dimensions():
    with pytest.raises(DataError, match="4 vectors of 4"):
        Measure("mahalanobis").fit(A[:4])


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
    with pytest.raises(ContractError, match="None"):
        Measure(lambda a, b: None).rows(A, B)


NAN = np.nan


def pairs(one, two, truth, kind="regression", **given):
    items = pd.Series(list("wxyz"), index=list("wxyz"))
    questions = pd.DataFrame({"one": list(one), "two": list(two)})
    return Dataset("pairs", items, questions, np.array(truth), kind, "entity", **given)


def vectors(matrix):
    return Vectors(np.array(matrix, dtype=np.float32), np.arange(len(matrix)))


def draw(dtype, seed=0, shape=(200, 17)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_measures_agree_with_scikit_learn_and_scipy(dtype):
    a, b = draw(dtype)
    theirs = 1 - paired_cosine_distances(a, b)
    np.testing.assert_allclose(Measure("cosine").rows(a, b), theirs, atol=np.finfo(dtype).eps * 4)
    for i in range(0, 200, 20):
        x, y = a[i].astype(float), b[i].astype(float)
        assert Measure("dot").rows(a, b)[i] == pytest.approx(x @ y)
        assert Measure("euclidean").rows(a, b)[i] == pytest.approx(-distance.euclidean(x, y))
        assert Measure("manhattan").rows(a, b)[i] == pytest.approx(-distance.cityblock(x, y))


def test_measures_by_hand():
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [1.0, 2.0]])
    assert Measure("cosine").rows(a, b).tolist() == [24 / 25, 0]  # a zero vector is near nothing
    assert Measure("dot").rows(a, b).tolist() == [24, 0]
    assert Measure("euclidean").rows(a, b).tolist() == [-np.sqrt(2), -np.sqrt(5)]
    assert Measure("manhattan").rows(a, b).tolist() == [-2, -3]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(0, 1000), st.floats(1e-15, 1e15))
def test_the_cosine_has_bounds_and_no_scale(seed, scale):
    a, b = draw(np.float32, seed, (5, 3))
    cosine = Measure("cosine").rows
    assert (np.abs(cosine(a, a * np.float32(scale))) <= 1).all()
    np.testing.assert_allclose(cosine(a, a), 1, atol=1e-12)
    scaled = (a * np.float32(scale)).astype(np.float32)
    np.testing.assert_allclose(cosine(scaled, b), cosine(a, b), atol=1e-6)


def test_questions_are_answered_one_by_one():
    data = pairs("wxw", "yyx", [1.0, 2.0, 3.0], group=np.array(["g", "g", "h"]))
    found = Similarity().answer(data, vectors([[1, 0], [0, 2], [1, 1], [5, 5]]))
    np.testing.assert_allclose(found.predictions, [np.sqrt(0.5), np.sqrt(0.5), 0])
    assert found.target.tolist() == [1, 2, 3]
    assert found.group.tolist() == ["g", "g", "h"]


def test_blocks_do_not_change_the_numbers(monkeypatch):
    rng = np.random.default_rng(0)
    data = pairs(rng.choice(list("wxyz"), 50), rng.choice(list("wxyz"), 50), rng.random(50))
    known = vectors(rng.standard_normal((4, 8)))
    whole = Similarity("euclidean").answer(data, known).predictions
    monkeypatch.setattr(similarity, "BLOCK", 7)
    np.testing.assert_array_equal(Similarity("euclidean").answer(data, known).predictions, whole)


def test_probes_on_the_same_data_compute_their_measures_together():
    rng = np.random.default_rng(0)
    data = pairs(rng.choice(list("wxyz"), 50), rng.choice(list("wxyz"), 50), rng.random(50))
    known, made = vectors(rng.standard_normal((4, 8))), {}

    def share(rows, name, make):
        if (rows, name) not in made:
            made[rows, name] = make()
        return made[rows, name]

    for measure in MEASURES:
        probe = Similarity(measure, measures=[*MEASURES, len], share=share)
        probe.fit(data, known)
        alone = Similarity(measure).answer(data, known).predictions
        np.testing.assert_array_equal(probe.answer(data, known).predictions, alone)
        other = replace(known, matrix=2 * known.matrix)  # as corrupted vectors
        doubled = Similarity(measure).answer(data, other).predictions
        np.testing.assert_array_equal(probe.answer(data, other).predictions, doubled)
    assert len(made) == 1


def test_a_bag_is_compared_by_its_mean():
    data = pairs([{"w": 1.0, "x": 3.0}], ["z"], [1.0])
    found = Similarity("dot").answer(data, vectors([[4, 0], [0, 4], [9, 9], [1, 2]]))
    assert found.predictions.tolist() == [1 * 1 + 3 * 2]


def test_a_similarity_can_predict_classes():
    data = pairs("wx", "yz", ["no", "yes"], kind="classification")
    found = Similarity().answer(data, vectors([[1, 0], [1, 0], [0, 1], [1, 0]]))
    assert (found.truths, found.classes) == ("classes", ("no", "yes"))
    assert score("auc", found) == (1.0, "")


@pytest.mark.parametrize("measure", list(MEASURES))
def test_penalized_questions_are_last(measure):
    data = pairs("wwwx", "xyzz", [1.0, 2.0, 3.0, 4.0])
    known = vectors([[1, 0], [NAN, NAN], [1, -3], [4, 1]])
    probe = Similarity(measure)
    able = probe.answerable(data, known)
    assert able.tolist() == [False, True, True, False]
    answered = probe.answer(data.take(np.flatnonzero(able)), known)
    lost = probe.unanswered(data.take(np.flatnonzero(~able)))
    found = answered.merged(lost, able)
    assert found.target.tolist() == [1, 2, 3, 4]
    assert found.predictions[~able].max() < found.predictions[able].min()
    assert len(set(found.predictions[~able])) == 1
    assert np.isfinite(found.predictions).all()


def test_a_random_order_of_penalized_questions():
    group = np.array(["g", "g", "g", "g", "h", "h"])
    data = pairs("wwwwyy", "xyzwxw", np.arange(6.0), group=group)
    known = vectors([[1, 0], [NAN, NAN], [NAN, NAN], [4, 1]])
    probe = Similarity(unknown="random-last")
    able = probe.answerable(data, known)
    assert able.tolist() == [False, False, True, True, False, False]
    lowest = probe.answer(data.take(np.flatnonzero(able)), known).predictions.min()
    lost = probe.unanswered(data.take(np.flatnonzero(~able))).predictions
    assert lost.max() < lowest
    assert lost[0] != lost[1]  # of a group with other vectors
    assert lost[2] == lost[3]  # no question of the group has an answer
    again = probe.unanswered(data.take(np.flatnonzero(~able))).predictions
    assert again.tolist() == lost.tolist()


def test_missing_items_are_ignored_or_penalized():
    # the model has the order right, and does not know the most related item
    data = pairs("wwz", "xyw", [3.0, 2.0, 1.0])
    known = vectors([[1, 0], [NAN, NAN], [1, 0.1], [0, 1]])
    probe = Similarity()
    able = probe.answerable(data, known)
    ignored = probe.answer(data.take(np.flatnonzero(able)), known)
    assert score("kendall", ignored) == (1.0, "")
    penalized = ignored.merged(probe.unanswered(data.take(np.flatnonzero(~able))), able)
    # of the three pairs only (2, 1) is in order
    assert score("kendall", penalized)[0] == pytest.approx((1 - 2) / 3)


def test_a_huge_distance_still_has_something_below_it():
    probe = Similarity("euclidean")
    data = pairs("w", "x", [1.0])
    probe.answer(data, vectors([[1e30, 0], [0, 0]]))
    assert probe.unanswered(data).predictions[0] < -1e30


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"measure": "cosin"}, '"cosin".*"cosine"'),
        ({"measure": 3}, "3"),
        ({"bags": "match"}, "bags.*mean, matches"),
        ({"unknown": "first"}, "unknown.*last, random-last, mean"),
    ],
)
def test_wrong_options_are_refused(options, word):
    with pytest.raises(DefinitionError, match=word):
        Similarity(**options)


def test_other_questions_are_refused():
    items = pd.Series(["a", "b"])
    one = Dataset("one", items, pd.DataFrame({"q": [0, 1]}), np.ones(2), "regression", "text")
    with pytest.raises(DefinitionError, match="one .*1"):
        Similarity().answerable(one, vectors([[1], [2]]))


def bagged(one, two, names="wxyz"):
    items = pd.Series(list(names), index=list(names))
    questions = pd.DataFrame({"one": one, "two": two})
    return Dataset("documents", items, questions, np.arange(len(one)) + 1.0, "regression", "entity")


def by_hand(one, two, near, weighted):
    """The mean over both bags of the best match in the other, in plain loops."""

    def best(mine, theirs):
        total = 0.0
        for a, w in mine.items():
            total += max(near[a, b] * (w * v if weighted else 1.0) for b, v in theirs.items())
        return total

    return (best(one, two) + best(two, one)) / (len(one) + len(two))


def test_the_best_match_of_each_item_counts():
    data = bagged([{"w": 1.0, "x": 0.5}], [{"y": 0.2}])
    known = vectors([[1, 0], [0, 1], [0.6, 0.8], [1, 1]])
    # w and y meet at 0.6, x and y at 0.8: (0.6 + 0.8 + 0.8) / 3
    found = Similarity(bags="matches").answer(data, known).predictions
    np.testing.assert_allclose(found, [2.2 / 3], rtol=1e-6)
    # 0.6 · 0.2 and 0.8 · 0.1: (0.12 + 0.08 + 0.12) / 3
    found = Similarity(bags="weighted-matches").answer(data, known).predictions
    np.testing.assert_allclose(found, [0.32 / 3], rtol=1e-6)


@pytest.mark.parametrize("limit", [4096, 3])
@pytest.mark.parametrize("how", ["matches", "weighted-matches"])
@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.data())
def test_matches_are_those_of_plain_loops(how, limit, data):
    names = "abcdefgh"
    weight = st.floats(0.1, 1.0).map(lambda x: round(x, 2))
    bag = st.dictionaries(st.sampled_from(names), weight, min_size=1)
    pair = st.tuples(bag, bag)
    given_pairs = data.draw(st.lists(pair, min_size=1, max_size=12))
    matrix = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal((8, 5))
    unknown = data.draw(st.sets(st.sampled_from(range(8)), max_size=3))
    matrix[list(unknown)] = np.nan
    asked = bagged([a for a, _ in given_pairs], [b for _, b in given_pairs], names)
    stock = vectors(matrix)
    able = Similarity(bags=how).answerable(asked, stock)
    if not able.any():
        return
    part = asked.take(np.flatnonzero(able))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "ITEMS", limit)
        found = Similarity(bags=how).answer(part, stock).predictions
    kept = [[{k: v for k, v in bag.items() if names.index(k) not in unknown} for bag in pair]
            for pair, ok in zip(given_pairs, able, strict=True) if ok]  # fmt: skip
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    near = {(a, b): unit[i] @ unit[j] for i, a in enumerate(names) for j, b in enumerate(names)}
    wanted = [by_hand(one, two, near, how == "weighted-matches") for one, two in kept]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_bag_without_vectors_is_not_answerable():
    data = bagged([{"w": 1.0}, {"w": 1.0, "x": 1.0}], [{"y": 1.0}, {"y": 1.0}])
    known = vectors([[NAN, NAN], [0, 1], [1, 1], [1, 0]])
    assert Similarity(bags="matches").answerable(data, known).tolist() == [False, True]
    alone = Similarity(bags="matches").answer(data.take(np.array([1])), known)
    np.testing.assert_allclose(alone.predictions, [np.sqrt(0.5)], rtol=1e-6)  # x and y only


def test_questions_without_vectors_are_last_or_the_mean():
    data = pairs("wx", "yy", [1.0, 2.0])
    known = vectors([[1, 0], [0, 1], [1, 1], [0, 0]])
    for way, wanted in (("last", np.sqrt(0.5) - 1), ("mean", np.sqrt(0.5))):
        probe = Similarity(unknown=way)
        probe.answer(data, known)
        assert probe.unanswered(data).predictions == pytest.approx([wanted, wanted])
