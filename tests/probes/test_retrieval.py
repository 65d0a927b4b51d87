"""Ranks, nearest items, items of the same class, and duplicates."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    ndcg_score,
    precision_recall_curve,
    roc_auc_score,
)

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions
from karat.core.task import Task
from karat.corruptions.corrupted_data import corrupt
from karat.corruptions.view import View
from karat.data.queries import generate_queries
from karat.errors import DataError, DefinitionError
from karat.execution.solvers import ProbeSolver
from karat.execution.splits import split
from karat.metrics.metric import score
from karat.models.adapters import adapt
from karat.probes import retrieval
from karat.probes.retrieval import (
    TIE,
    Duplicates,
    Nearest,
    Ranking,
    SameClass,
    _certain,
    rank_answers,
)


def entities(labels: list) -> Dataset:
    table = pd.DataFrame({"x": range(len(labels)), "entity": labels})
    return Dataset.from_table(table, target="entity", name="people", kind="classification")


def answer(matrix: np.ndarray, labels: list) -> Predictions:
    data = entities(labels)
    vectors = Vectors(np.asarray(matrix, dtype=np.float32), np.arange(len(labels)))
    return Duplicates().answer(data, vectors)


def test_four_people_by_hand():
    # cosines: (a, a') 1, (a, b) 0, (a, c) 0.6, (a', b) 0, (a', c) 0.6, (b, c) 0.8
    matrix = [[1, 0], [2, 0], [0, 1], [0.6, 0.8]]
    got = answer(matrix, ["a", "a", "b", "c"])
    assert got.weight.sum() == 6
    pairs = dict(zip(got.predictions.round(6), got.weight, strict=True))
    assert pairs[1.0] == 1  # the duplicate; the five others lie below it and count as one row
    assert sorted(got.weight) == [1, 5]
    assert score("auc", got) == (1.0, "")
    assert score("f1_best", got) == (1.0, "")


def test_a_duplicate_in_the_middle_by_hand():
    # the pair (b, c) is the same at 0.8: below (a, a') at 1, above the four others
    got = answer([[1, 0], [2, 0], [0, 1], [0.6, 0.8]], ["a", "x", "b", "b"])
    assert score("auc", got)[0] == pytest.approx(4 / 5)
    assert score("pr_auc", got)[0] == pytest.approx(1 / 2)
    assert score("f1_best", got)[0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("block", [7, 64, 10**6])
def test_the_same_as_the_full_matrix(monkeypatch, block):
    monkeypatch.setattr(retrieval, "BLOCK", block)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 40, size=120)
    matrix = rng.normal(size=(40, 5))[labels] + rng.normal(size=(120, 5)) * 0.7
    got = answer(matrix, labels.tolist())
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b = np.triu_indices(120, 1)
    grid = np.rint((unit[a] * unit[b]).sum(axis=1) * 1e6)
    truth = labels[a] == labels[b]
    assert got.weight.sum() == len(a) and got.weight[got.target == 1].sum() == truth.sum()
    assert score("auc", got)[0] == pytest.approx(roc_auc_score(truth, grid), abs=1e-6)
    assert score("pr_auc", got)[0] == pytest.approx(average_precision_score(truth, grid), abs=1e-4)
    precision, recall, _ = precision_recall_curve(truth, grid)
    best = np.nanmax(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    assert score("f1_best", got)[0] == pytest.approx(best, abs=1e-4)


def test_equal_vectors_have_no_skill():
    got = answer(np.ones((6, 3)), ["a", "a", "b", "b", "c", "d"])
    assert score("auc", got)[0] == pytest.approx(0.5)


def test_metrics_without_weights_are_undefined():
    got = answer(np.eye(3), ["a", "a", "b"])
    value, reason = score("spearman", got)
    assert value is None and "weight" in reason


def test_memory_is_below_that_of_all_pairs():
    rng = np.random.default_rng(0)
    labels = [i // 2 for i in range(6000)]
    matrix = rng.normal(size=(6000, 4)).astype(np.float32)
    tracemalloc.start()
    answer(matrix, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4  # a float32 matrix of all pairs alone would take this much


def test_unsuitable_questions_are_refused():
    with pytest.raises(DataError, match="no two items"):
        answer(np.eye(3), ["a", "b", "c"])
    numbers = Dataset.from_table(pd.DataFrame({"x": [1, 2], "y": [0.5, 1.5]}), target="y")
    vectors = Vectors(np.eye(2, dtype=np.float32), np.arange(2))
    with pytest.raises(DefinitionError, match="duplicates"):
        Duplicates().answerable(numbers, vectors)
    with pytest.raises(DefinitionError, match="missing: ignore"):
        Duplicates().unanswered(entities(["a", "a", "b"]))


# on a circle: a at 0°, b at 10°, c at 30°, d at 90°
ANGLES = {"a": 0, "b": 10, "c": 30, "d": 90}


def circle() -> Vectors:
    angles = np.radians(list(ANGLES.values()))
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(4))


def questions(pairs: list[tuple[str, str]], ids: list[str] | None = None) -> Dataset:
    ids = ids or list(ANGLES)
    asked = pd.DataFrame({"query": [query for query, _ in pairs]})
    truth = np.array([answer for _, answer in pairs], dtype=object)
    return Dataset("circle", pd.Series(ids, index=ids), asked, truth, "items", "entity")


def test_places_by_hand():
    data = questions([("a", "d"), ("a", "b"), ("d", "a")])
    got = Nearest().answer(data, circle())
    # from a: b, c, d; from d: c, b, a
    assert got.rank.tolist() == [3, 1, 3]
    assert got.predictions.tolist() == ["b", "b", "c"]
    assert got.group.tolist() == ["a", "a", "d"]
    assert got.candidates.tolist() == [3, 3, 3]
    # list a: answers at 1 and 3; list d: answer at 3
    assert score("map", got)[0] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert score("mrr", got)[0] == pytest.approx((1 + 1 / 3) / 2)
    assert score("recall@1", got)[0] == pytest.approx((1 / 2 + 0) / 2)
    ideal = 1 + 1 / np.log2(3)
    ndcg = ((1 + 1 / np.log2(4)) / ideal + 1 / np.log2(4)) / 2
    assert score("ndcg@10", got)[0] == pytest.approx(ndcg)
    assert score("hits@1", got)[0] == pytest.approx(1 / 3)


def test_queries_apart_are_no_candidates():
    data = questions([("a", "d"), ("b", "c")])
    got = Nearest(queries="apart").answer(data, circle())
    assert got.rank.tolist() == [2, 1]  # only c and d compete
    assert got.candidates.tolist() == [2, 2]


def test_the_query_cannot_be_its_own_answer():
    got = Nearest().answer(questions([("a", "a"), ("a", "b")]), circle())
    assert got.rank.tolist() == [np.inf, 1]


def assert_scores_are_scikit_learns(got, matrix, labels, candidates):
    """Compare the scores of predictions with those of each query among its candidates."""
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    average, gain = [], []
    for q, others in candidates.items():
        scores, relevant = unit[others] @ unit[q], labels[others] == labels[q]
        average.append(average_precision_score(relevant, scores))
        gain.append(ndcg_score([relevant.astype(int)], [scores], k=10))
    assert score("map", got)[0] == pytest.approx(np.mean(average), abs=1e-12)
    assert score("ndcg@10", got)[0] == pytest.approx(np.mean(gain), abs=1e-12)
    again = Predictions.from_csv(got.to_csv(), answers="items", truths="items", rows=got.rows_csv())
    assert score("map", again) == score("map", got)


@pytest.mark.parametrize("block", [1, 100, 2**20])
def test_the_same_as_scikit_learn(monkeypatch, block):
    monkeypatch.setattr(retrieval, "BLOCK", block)
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(40, 6))
    labels = rng.integers(0, 4, size=40)
    pairs = [(q, i) for q in range(10) for i in range(40) if i != q and labels[i] == labels[q]]
    got = Nearest().answer(lookups(pairs, 40), Vectors(matrix, np.arange(40)))
    others = {q: np.delete(np.arange(40), q) for q in range(10)}
    assert_scores_are_scikit_learns(got, matrix, labels, others)


def test_unknown_items_are_misses_or_left_out():
    vectors = circle()
    vectors.matrix[3] = np.nan
    data = questions([("a", "d"), ("a", "b"), ("d", "a")])
    assert Nearest().answerable(data, vectors).tolist() == [False, True, False]
    lost = Nearest().unanswered(data)
    assert score("map", lost) == (0.0, "") and score("hits@1", lost) == (0.0, "")


def test_nearest_refuses_unsuitable_questions():
    with pytest.raises(DefinitionError, match="inside"):
        Nearest(queries="inside")
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(DefinitionError, match="nearest"):
        Nearest().answerable(Dataset.from_table(table, target="y"), circle())


def on_a_line(count: int) -> Vectors:
    """Return vectors in the first quarter of a circle, one degree apart."""
    angles = np.radians(np.arange(count))
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(count))


def lookups(pairs: list[tuple[int, int]], count: int) -> Dataset:
    named = [(f"e{query}", f"e{answer}") for query, answer in pairs]
    return questions(named, [f"e{i}" for i in range(count)])


@pytest.mark.parametrize(
    "how",
    [
        {"use": "kfold", "folds": 3},
        {"use": "holdout", "train_rows": 2, "test_rows": 2},
        {"use": "all", "share": 0.5},
    ],
    ids=lambda how: how["use"],
)
def test_a_query_is_no_candidate_whatever_the_split_leaves_out(how):
    data = lookups([(i, 6 + i) for i in range(6)], 12)
    for fold in split(data, how, 3):
        probe = Nearest(queries="apart")
        probe.fit(data.take(fold.train), on_a_line(12))
        got = probe.answer(data.take(fold.test), on_a_line(12))
        assert set(got.candidates) == {6}
        # candidates are 6 to 11 degrees, so the answer of i is place i + 1
        assert got.rank.tolist() == [i + 1 for i in fold.test]


def test_a_query_whose_answer_is_unknown_is_still_no_candidate():
    data = lookups([(0, 4), (1, 5), (2, 6), (3, 7)], 8)
    vectors = on_a_line(8)
    vectors.matrix[[4, 5]] = np.nan  # neither the train question 0 nor the test question 1
    solver = ProbeSolver(adapt(Fixed(vectors)), Nearest(queries="apart"), "ignore", 0, vectors)
    solver.fit(data.take(np.array([0, 2])))
    answers = solver.answer(data.take(np.array([1, 3])))
    assert answers.predictions.candidates.tolist() == [2]
    assert answers.predictions.rank.tolist() == [2] and answers.coverage == 0.5
    assert answers.predictions.question.tolist() == [1]


def test_candidates_stay_the_same_through_a_corruption(clean_registry):
    karat.corruption("reversed")(lambda X, y, severity, rng: (X.str[::-1], y))
    data = dataclasses.replace(lookups([(0, 4), (1, 5), (2, 6), (3, 7)], 8), modality="text")
    test = data.take(np.array([3]))
    seen = corrupt(test, View("reversed", 1.0), 0, 0)
    assert seen.items.tolist() == ["e0", "e1", "e2", "3e", "e4", "e5", "e6", "e7"]
    probe = Nearest(queries="apart")
    probe.fit(data.take(np.array([0, 1, 2])), on_a_line(8))
    assert probe.answer(seen, on_a_line(8)).candidates.tolist() == [4]


def test_an_answer_that_is_a_query_cannot_be_found_and_is_noted():
    data = questions([("a", "b"), ("b", "c")])
    probe = Nearest(queries="apart")
    got = probe.answer(data, circle())
    assert got.rank.tolist() == [np.inf, 1]
    assert "1 of 2" in probe.notes[0]
    probe.answer(questions([("a", "c")]), circle())
    assert probe.notes == []


def test_no_candidates_and_duplicate_answers_are_refused():
    data = questions([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    with pytest.raises(DataError, match="circle: .*candidates"):
        Nearest(queries="apart").answer(data, circle())
    with pytest.raises(DataError, match='circle: .*"a"'):
        Nearest().answer(questions([("b", "a"), ("a", "d"), ("a", "d")]), circle())


class Fixed:
    """Gives the vectors it was made of."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def transform(self, items: pd.Series) -> np.ndarray:
        return self.vectors.matrix[[int(i[1:]) for i in items.index]]


FITTED: list[list[str]] = []


class Watches:
    """Counts letters, and notes the texts it is fitted on."""

    def fit(self, items: pd.Series, y: object = None) -> Watches:
        assert y is None
        FITTED.append(items.tolist())
        return self

    def transform(self, items: pd.Series) -> np.ndarray:
        return np.array([[len(text), text.count("a") + 1.0] for text in items])


def test_an_encoder_is_not_fitted_on_the_queries_that_test_it(tmp_path):
    FITTED.clear()
    table = pd.DataFrame({"n": np.arange(60.0), "w": [f"w{i % 20}" for i in range(60)]})
    data = Dataset.from_table(table.assign(y=table["n"] / 7), "y", name="sixty", kind="regression")
    task = Task(
        "search",
        data,
        ask={"use": "text-queries", "queries": 12},
        probe={"use": "nearest", "queries": "apart"},
        split={"use": "kfold", "folds": 3},
        metrics=["map"],
    )
    (run,) = karat.evaluate(Watches(), task, output=tmp_path, seed=1)
    assert run.results()["status"].tolist() == ["ok"] * 3
    asked = generate_queries(data, {"use": "text-queries", "queries": 12}, 1)
    rows, queries = set(asked.items.iloc[:60]), set(asked.items.iloc[60:])
    assert len(queries) == 12
    tested: set[str] = set()
    for fold, texts in enumerate(FITTED):
        got = run.predictions("search", fold)
        assert set(texts) == (rows | queries) - set(got.group)
        assert set(got.candidates) == {60}
        tested |= set(got.group)
    assert tested == queries


def answer_ranks(scores, wanted):
    """Return the ranks of answers in the order given."""
    order, ranks = rank_answers(np.array(scores, dtype=float), np.array(wanted))
    found = np.empty(len(ranks))
    found[order] = ranks
    return found


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(st.sampled_from([-np.inf, -0.5, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40),
    st.data(),
)
def test_places_are_those_of_a_sorted_list(scores, data):
    wanted = data.draw(
        st.lists(st.integers(0, len(scores) - 1), min_size=1, max_size=30, unique=True)
    )
    found = answer_ranks(scores, wanted)
    # best first, strangers before answers of the same score, answers in the order given
    order = [i for i in range(len(scores)) if i not in wanted] + wanted
    order.sort(key=lambda i: -scores[i])
    expected = [order.index(i) + 1 if np.isfinite(scores[i]) else np.inf for i in wanted]
    assert found.tolist() == expected


def test_scores_within_rounding_are_equal():
    scores = np.array([0.5, 0.5 + 1e-14, 0.5 - 1e-14, 0.5 - 1e-9])
    assert answer_ranks(scores, [0]).tolist() == [3]
    assert answer_ranks(scores, [3]).tolist() == [4]
    assert retrieval.nearest(scores) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("answers", [1, 5, 30])
@pytest.mark.parametrize("block", [1, 2**20])
def test_ranks_of_nearest_are_those_of_64_bit_cosines(monkeypatch, dtype, answers, block):
    # copies of rows tie exactly; copies with an error of 1e-6 are closer than 32 bits can decide
    monkeypatch.setattr(retrieval, "BLOCK", block)
    rng = np.random.default_rng(answers)
    base = rng.normal(size=(30, 24))
    near = base * (1 + 1e-6 * rng.normal(size=base.shape))
    matrix = np.concatenate([base, base, near, 2 * base, near]).astype(dtype)
    size = len(matrix)
    pairs = [(q, i) for q in range(12) for i in rng.permutation(np.arange(12, size))[:answers]]
    got = Nearest("apart").answer(lookups(pairs, size), Vectors(matrix, np.arange(size)))
    unit = unit_rows(matrix, np.float64)
    scores = unit @ unit.T
    scores[:, :12] = -np.inf
    for q in range(12):
        wanted = [i for query, i in pairs if query == q]
        rows = [row for row, (query, _) in enumerate(pairs) if query == q]
        # the order of answers that tie depends on their last bits
        assert sorted(got.rank[rows]) == sorted(answer_ranks(scores[q], wanted))
        assert set(got.predictions[rows]) == {f"e{retrieval.nearest(scores[q])}"}
    assert set(got.candidates) == {size - 12}


@pytest.mark.parametrize("few", [0, 8])
def test_scores_near_a_line_are_unclear_by_hand(monkeypatch, few):
    monkeypatch.setattr(retrieval, "FEW", few)
    scores = np.array([0.1, 0.9, 0.5, 0.505, -np.inf], dtype=np.float32)
    certain, unclear = _certain(scores, np.array([0.8, 0.5, 0.0]), 0.01)
    assert certain.tolist() == [1, 1, 4]
    assert [sorted(places.tolist()) for places in unclear] == [[], [2, 3], []]


def contest(queries, candidates, truth, out=()):
    queries, candidates = np.array(queries, np.float32), np.array(candidates, np.float32)
    pairs = np.array(list(out), dtype=np.intp).reshape(-1, 2).T
    return Ranking(
        queries, np.array(truth), (pairs[0], pairs[1]), len(candidates), candidates.__getitem__
    )


def rounded(numbers):
    return np.array(numbers, np.float32).astype(np.float64)


def plainly(queries, candidates, truth, out):
    """The same in words: one score after the other, in 64 bits."""
    for question, wanted in enumerate(truth):
        scores = rounded(candidates) @ rounded(queries[question])
        fine = [i for i in range(len(scores)) if (question, i) not in out]
        line = max((scores[i] for i in fine), default=-np.inf) - TIE
        best = next((i for i in fine if scores[i] >= line), 0)
        ahead = sum(scores[i] >= scores[wanted] - TIE for i in fine if i != wanted)
        yield best, ahead + 1 if wanted in fine else np.inf


def test_by_hand():
    candidates = [[1, 0], [0.8, 0.6], [0, 1], [0.8, 0.6], [-1, 0]]
    # the scores to (1, 0) are 1, 0.8, 0, 0.8, −1
    asked = [[1, 0]] * 5
    best, ranks = contest(asked, candidates, [0, 1, 2, 3, 4]).settle()
    assert best.tolist() == [0] * 5
    assert ranks.tolist() == [1, 3, 4, 3, 5]
    out = [(0, 1), (1, 0), (2, 2), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2), (4, 3)]
    best, ranks = contest(asked, candidates, [0, 1, 2, 3, 4], out).settle()
    assert best.tolist() == [0, 1, 0, 3, 4]
    assert ranks.tolist() == [1, 2, np.inf, 1, 1]


def test_without_candidates_nothing_is_found():
    best, ranks = contest([[1.0]], [[1.0], [0.5]], [0], [(0, 0), (0, 1)]).settle()
    assert (best.tolist(), ranks.tolist()) == ([0], [np.inf])


COORDINATES = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])


@st.composite
def contests(draw):
    """Few coordinates make many ties, and sums without rounding."""
    many, asked, size = (draw(st.integers(1, top)) for top in (20, 6, 3))
    rows = st.lists(COORDINATES, min_size=size, max_size=size)
    candidates = draw(st.lists(rows, min_size=many, max_size=many))
    queries = draw(st.lists(rows, min_size=asked, max_size=asked))
    places = st.integers(0, many - 1)
    truth = draw(st.lists(places, min_size=asked, max_size=asked))
    out = draw(st.sets(st.tuples(st.integers(0, asked - 1), places), max_size=30))
    return queries, candidates, truth, out


@settings(max_examples=150, deadline=None)
@given(contests(), st.integers(1, 9), st.integers(1, 9))
def test_any_tiles_give_what_a_plain_loop_gives(given, height, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "HEIGHT", height)
        patch.setattr(retrieval, "WIDTH", width)
        best, ranks = contest(*given).settle()
    wanted = list(plainly(*given))
    assert best.tolist() == [first for first, _ in wanted]
    assert ranks.tolist() == [place for _, place in wanted]


def crowd(count=3000, asked=60, size=50, seed=0):
    """Return random queries, and candidates that lie close together."""
    rng = np.random.default_rng(seed)
    near = rng.standard_normal(size) + 1e-3 * rng.standard_normal((count, size))
    queries = unit_rows(rng.standard_normal((asked, size)))
    return queries, unit_rows(near), rng.integers(count, size=asked)


def test_ranks_do_not_depend_on_other_questions():
    # of several candidates of each question, 32 bits say now that they are ahead and now not
    queries, candidates, truth = crowd()
    best, ranks = contest(queries, candidates, truth).settle()
    plain = list(plainly(queries, candidates, truth, set()))
    assert ranks.tolist() == [place for _, place in plain]
    assert best.tolist() == [first for first, _ in plain]
    assert len(set(ranks)) > 50
    for rows in ([7], [3, 2, 1], list(range(59, -1, -1)), list(range(5, 41))):
        some, places = contest(queries[rows], candidates, truth[rows]).settle()
        assert places.tolist() == ranks[rows].tolist()
        assert some.tolist() == best[rows].tolist()


def test_undecided_candidates_are_compared_in_64_bits():
    # the second misses the first by just more and just less than a tie
    for gap, place in ((0.999 * TIE, 2), (1.001 * TIE, 1)):
        query = [1.0, np.float32(gap)]
        _, ranks = contest([query], [[0.5, 1.0], [0.5, 0.0]], [0]).settle()
        assert ranks.tolist() == [place]


@pytest.mark.parametrize("size", [1, 7, 200, 768])
def test_ones_tie_in_any_number_of_dimensions(size):
    # the same sum in 32 bits, again and again rounded the same way, is off by more than a tie
    ones = unit_rows(np.ones((1100, size)))
    best, ranks = contest(3 * ones[:5], ones, [0, 1, 500, 1098, 1099]).settle()
    assert best.tolist() == [0] * 5
    assert ranks.tolist() == [1100] * 5


steady = settings(deadline=None, derandomize=True, max_examples=60)


def labeled(labels: list[object], items: list[int] | None = None) -> Dataset:
    """Return one question per label, about the item of its own number by default."""
    asked = list(range(len(labels))) if items is None else items
    names = [f"text {i}" for i in range(max(asked) + 1)]
    table = pd.Series(names, index=[f"e{i}" for i in range(len(names))])
    return Dataset(
        "toy",
        table,
        pd.DataFrame({"item": [f"e{i}" for i in asked]}),
        np.array(labels, dtype=object),
        "classification",
        "text",
    )


def at(*degrees: float) -> Vectors:
    angles = np.radians(degrees)
    return Vectors(np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(len(degrees)))


def blind(data: Dataset, vectors: Vectors, **how: object) -> Predictions:
    probe = SameClass(random_state=0, **how)
    probe.fit(data.blind(), vectors)
    return probe.answer(data, vectors)


def lists(got: Predictions) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for query, answer, place in zip(got.group, got.target, got.rank, strict=True):
        found.setdefault(query, []).append((answer, place))
    return found


#: e0 and e3 are of one class, e1, e2 and e4 of the other
LABELS, PLACES = ["a", "b", "b", "a", "b"], at(0, 10, 30, 40, 90)


def test_every_item_is_a_query_among_all_others():
    got = blind(labeled(LABELS), PLACES)
    assert lists(got) == {
        "e0": [("e3", 3)],  # e1, e2, e3, e4
        "e1": [("e2", 2), ("e4", 4)],  # e0, e2, e3, e4
        "e2": [("e1", 2), ("e4", 4)],  # e3, e1, e0, e4
        "e3": [("e0", 3)],  # e2, e1, e0, e4
        "e4": [("e2", 2), ("e1", 3)],  # e3, e2, e1, e0
    }
    first = {q: got.predictions[got.group == q][0] for q in lists(got)}
    assert first == {"e0": "e1", "e1": "e0", "e2": "e3", "e3": "e2", "e4": "e3"}
    assert set(got.candidates) == {4}
    pairs = [1 / 2, 2 / 4], [1 / 2, 2 / 4], [1 / 2, 2 / 3]
    expected = [1 / 3, 1 / 3, *(sum(pair) / 2 for pair in pairs)]
    assert score("map", got)[0] == pytest.approx(np.mean(expected))
    assert score("mrr@10", got)[0] == pytest.approx((1 / 3 * 2 + 1 / 2 * 3) / 5)
    assert score("mrr@2", got)[0] == pytest.approx(1 / 2 * 3 / 5)


def test_test_items_are_queries_among_train_items():
    data = labeled(LABELS)
    probe = SameClass(random_state=0)
    probe.fit(data.take(np.array([0, 1, 2])), PLACES)
    got = probe.answer(data.take(np.array([4, 3])), PLACES)
    assert lists(got) == {"e3": [("e0", 3)], "e4": [("e2", 1), ("e1", 2)]}
    assert got.predictions.tolist() == ["e2", "e2", "e2"] and set(got.candidates) == {3}


def test_a_class_without_train_items_is_not_queried():
    data = labeled(["a", "b", "a", "c"])
    probe = SameClass(random_state=0)
    probe.fit(data.take(np.array([0, 1])), at(0, 10, 20, 30))
    got = probe.answer(data.take(np.array([2, 3])), at(0, 10, 20, 30))
    assert lists(got) == {"e2": [("e0", 2)]}
    assert "1 of 2" in probe.notes[0]
    with pytest.raises(DataError, match="toy"):
        probe.answer(data.take(np.array([3])), at(0, 10, 20, 30))


def test_the_only_item_of_a_class_is_a_candidate_but_not_a_query():
    got = blind(labeled(["a", "alone", "a"]), at(0, 10, 30))
    assert lists(got) == {"e0": [("e2", 2)], "e2": [("e0", 2)]}
    with pytest.raises(DataError, match="toy"):
        blind(labeled(["a", "b", "c"]), at(0, 10, 30))


def test_nearly_equal_vectors_are_distinguished():
    # numbers far from zero make cosines that agree in their first seven digits
    vectors = Vectors(np.array([[1.0, 1e2 + step] for step in (0, 1, 3, 4)]), np.arange(4))
    assert blind(labeled(["a", "a", "b", "b"]), vectors).rank.tolist() == [1, 1, 1, 1]


def test_a_repeated_item_is_one_query_and_one_candidate():
    data = labeled(["a", "b", "a", "a", "b"], items=[0, 1, 2, 0, 3])
    got = blind(data, at(0, 10, 30, 90))
    assert lists(got) == {
        "e0": [("e2", 2)],
        "e1": [("e3", 3)],
        "e2": [("e0", 2)],
        "e3": [("e1", 2)],
    }


def test_an_item_of_two_classes_has_both():
    data = labeled(["a", "b", "a", "b"], items=[0, 0, 1, 2])
    got = blind(data, at(0, 10, 30))
    assert lists(got) == {"e0": [("e1", 1), ("e2", 2)], "e1": [("e0", 1)], "e2": [("e0", 2)]}


@pytest.mark.parametrize("block", [1, 100, 2**20])
def test_same_class_the_same_as_scikit_learn(monkeypatch, block):
    monkeypatch.setattr(retrieval, "BLOCK", block)
    rng = np.random.default_rng(4)
    matrix, labels = rng.normal(size=(80, 6)), rng.integers(0, 3, size=80)
    data, vectors = labeled(labels.tolist()), Vectors(matrix, np.arange(80))
    whole = np.arange(80)
    for train, test in ((None, whole), (whole[:50], whole[50:])):
        probe = SameClass(random_state=0)
        probe.fit(data.blind() if train is None else data.take(train), vectors)
        got = probe.answer(data.take(test), vectors)
        others = {q: np.delete(whole, q) if train is None else train for q in test}
        assert_scores_are_scikit_learns(got, matrix, labels, others)


@steady
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=30))
def test_ties_count_against_the_answers(rows):
    labels = [label for label, _ in rows]
    angles = [angle * 10 for _, angle in rows]  # few angles, so many ties
    if not 1 < len(set(labels)) < len(labels):
        return
    got = lists(blind(labeled(labels), at(*angles)))
    asked = [i for i, label in enumerate(labels) if labels.count(label) > 1]
    assert list(got) == [f"e{i}" for i in asked]
    for i in asked:
        others = [j for j in range(len(rows)) if j != i]
        far = {j: abs(angles[j] - angles[i]) for j in others}
        order = sorted(others, key=lambda j: (far[j], labels[j] == labels[i]))
        places = [order.index(j) + 1 for j in others if labels[j] == labels[i]]
        assert sorted(rank for _, rank in got[f"e{i}"]) == sorted(places)
        assert [rank for _, rank in got[f"e{i}"]] == sorted(places)


def test_the_seed_draws_the_queries_and_candidates_stay():
    rng = np.random.default_rng(0)
    data = labeled((rng.integers(0, 3, size=60)).tolist())
    vectors = Vectors(rng.normal(size=(60, 4)), np.arange(60))
    whole = lists(blind(data, vectors))

    def drawn(seed: int) -> dict[str, list[tuple[str, float]]]:
        probe = SameClass(queries=7, random_state=seed)
        probe.fit(data.blind(), vectors)
        return lists(probe.answer(data, vectors))

    assert len(drawn(1)) == 7 and drawn(1) == drawn(1) != drawn(2)
    assert all(whole[query] == found for query, found in drawn(1).items())


@pytest.mark.parametrize("queries", [0, -1, 2.0, True, "all"])
def test_queries_must_be_a_positive_integer(queries):
    with pytest.raises(DefinitionError, match="queries"):
        SameClass(queries=queries)


def test_same_class_refuses_unsuitable_questions():
    frame = pd.DataFrame(
        {"a": list("xyz"), "b": list("yzx"), "y": [0.5, 1.5, 2.5], "c": list("ppq")}
    )
    numbers = Dataset.from_columns(frame, ["a"], "y")
    pairs = Dataset.from_columns(frame, ["a", "b"], "c")
    bags = Dataset.from_columns(frame.assign(a=[{"x": 1, "y": 1}] * 3), ["a"], "c")
    vectors = at(0, 10, 20)
    for data in (numbers, pairs, bags):
        with pytest.raises(DefinitionError, match="same-class"):
            SameClass().answerable(data, vectors)
    with pytest.raises(DefinitionError, match="missing: ignore"):
        SameClass().unanswered(labeled(LABELS))


def test_items_without_vectors_are_neither_queries_nor_candidates():
    known = {f"e{i}": [float(np.cos(a)), float(np.sin(a))] for i, a in enumerate((0.0, 0.2, 0.5))}
    data = dataclasses.replace(labeled(["a", "b", "a", "b"]), modality="entity")
    solver = ProbeSolver(adapt(known, "known"), SameClass(random_state=0), "ignore", seed=0)
    solver.fit(data.blind())
    answers = solver.answer(data)
    assert answers.coverage == 0.75 and answers.missing == ["e3"]
    assert lists(answers.predictions) == {"e0": [("e2", 2)], "e2": [("e0", 2)]}
    assert answers.predictions.question is None  # two answers, but not of two questions


SEEN: list[tuple[list[float], list[object] | None]] = []


class NotesLabels:
    """Notes the rows and labels it is fitted on."""

    takes = ("table",)

    def fit(self, items: pd.DataFrame, y: object = None) -> NotesLabels:
        SEEN.append((items["x"].tolist(), None if y is None else list(y)))
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        return np.column_stack([np.sin(items["x"]), np.cos(items["x"])])


@pytest.mark.parametrize("how", ["kfold", "all"])
def test_an_encoder_gets_only_train_labels(tmp_path, how):
    SEEN.clear()
    x = np.arange(30.0)
    labels = np.where(x % 3 == 0, "third", "other")
    data = Dataset.from_table(pd.DataFrame({"x": x, "y": labels}), "y", name="thirty")
    splits = {
        "kfold": {"use": "kfold", "folds": 3},
        "all": {"use": "all", "repeats": 3, "share": 0.8},
    }
    task = Task("ask", data, probe={"use": "same-class"}, split=splits[how], metrics=["map"])
    (run,) = karat.evaluate(NotesLabels(), task, output=tmp_path, seed=5)
    assert run.results()["status"].tolist() == ["ok"] * 3
    folds = split(data, splits[how], 5)
    assert len(SEEN) == 3
    for (rows, truth), fold in zip(SEEN, folds, strict=True):
        assert rows == x[fold.train].tolist()
        assert truth == (labels[fold.train].tolist() if how == "kfold" else None)
        assert how == "all" or not set(rows) & set(x[fold.test])
    for number, fold in enumerate(folds):
        got = run.predictions("ask", number)
        tested = {str(i) for i in fold.test}
        assert set(got.group) == tested
        if how == "kfold":  # what is found are train rows
            assert set(got.target) <= {str(i) for i in fold.train} and not set(got.target) & tested


# -- columns of tables ----------------------------------------------------------------------

#: columns a and b of one table, c and d of another; a and b have the same vector
FOUR = {
    "t": pd.DataFrame({"a": [1], "b": [2]}),
    "u": pd.DataFrame({"c": [3], "d": [4]}),
}
PLACED = Vectors(np.array([[1, 0], [1, 0], [0.6, 0.8], [0.8, 0.6]], np.float32), np.arange(4))
NAMES = ["t/0 a", "t/1 b", "u/0 c", "u/1 d"]


def test_columns_of_the_same_table_are_no_candidates_by_hand():
    types = {("t", "a"): "x", ("t", "b"): "x", ("u", "c"): "x", ("u", "d"): "y"}
    data = Dataset.from_tables(FOUR, types)
    probe = SameClass()
    probe.fit(data.blind(), PLACED)
    found = probe.answer(data, PLACED)
    # a and b ask for c, which d precedes; c asks for a and b; no other column is of d's type
    assert list(zip(found.group, found.target, found.rank, strict=True)) == [
        (NAMES[0], NAMES[2], 2.0),
        (NAMES[1], NAMES[2], 2.0),
        (NAMES[2], NAMES[0], 1.0),
        (NAMES[2], NAMES[1], 2.0),
    ]
    assert found.candidates.tolist() == [2, 2, 2, 2]
    assert found.predictions.tolist() == [NAMES[3], NAMES[3], NAMES[0], NAMES[0]]
    assert probe.notes and probe.notes[0].startswith("1 of 4")
    # average precision 1/2, 1/2 and (1/1 + 2/2) / 2
    assert score("map", found)[0] == pytest.approx(2 / 3)
    assert score("recall@1", found)[0] == pytest.approx((0 + 0 + 1 / 2) / 3)


def test_columns_of_train_tables_are_candidates_of_test_columns():
    types = {("t", "a"): "x", ("t", "b"): "y", ("u", "c"): "x", ("u", "d"): "y"}
    data = Dataset.from_tables(FOUR, types)
    probe = SameClass()
    probe.fit(data.take(np.array([0, 1])), PLACED)
    found = probe.answer(data.take(np.array([2, 3])), PLACED)
    assert found.target.tolist() == [NAMES[0], NAMES[1]]
    assert found.rank.tolist() == [2.0, 2.0]  # a and b have the same vector


def test_a_joinable_column_is_searched_in_other_tables_by_hand():
    items = Dataset.from_tables(FOUR, dict.fromkeys([("t", 0), ("t", 1), ("u", 0), ("u", 1)], 0.5))
    questions = pd.DataFrame({"query": [NAMES[0], NAMES[2]]})
    answers = np.array([NAMES[2], NAMES[1]], dtype=object)
    data = Dataset("joins", items.items, questions, answers, "items", "column")
    found = Nearest().answer(data, PLACED)
    assert found.rank.tolist() == [2.0, 2.0] and found.candidates.tolist() == [2, 2]
    # 1/log2(3) of the ideal 1
    assert score("ndcg@10", found)[0] == pytest.approx(1 / np.log2(3))
    assert score("map", found)[0] == pytest.approx(0.5)


def test_a_corpus_of_one_table_has_no_candidates():
    items = Dataset.from_tables({"t": FOUR["t"]}, {("t", 0): 0.5, ("t", 1): 1.5})
    questions = pd.DataFrame({"query": [NAMES[0]]})
    data = Dataset("alone", items.items, questions, np.array([NAMES[1]], object), "items", "column")
    with pytest.raises(DataError, match="no candidates"):
        Nearest().answer(data, Vectors(PLACED.matrix[:2], np.arange(2)))


@st.composite
def searches(draw):
    """Few coordinates make many ties; some queries have many answers, some documents passages."""
    size, items, asked = (draw(st.integers(1, top)) for top in (3, 24, 5))
    cells = st.lists(COORDINATES, min_size=size, max_size=size)
    matrix = draw(st.lists(cells, min_size=asked + items, max_size=asked + items))
    answers = st.sets(st.integers(asked, asked + items - 1), min_size=1, max_size=items)
    return np.array(matrix), [sorted(draw(answers)) for _ in range(asked)]


@settings(max_examples=100, deadline=None)
@given(
    searches(),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([np.float32, np.float64]),
)
def test_any_tiles_of_a_search_give_what_sorting_gives(given, span, height, dense, dtype):
    matrix, answers = given
    pairs = [(query, item) for query, several in enumerate(answers) for item in several]
    data = lookups(pairs, len(matrix))
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"SPAN": span, "HEIGHT": height, "GROUP": 2, "FEW": 2, "BAND": 2, "DENSE": dense}
        for name, value in sizes.items():
            patch.setattr(retrieval, name, value)
        vectors = Vectors(matrix.astype(dtype), np.arange(len(matrix)))
        got = Nearest("apart").answer(data, vectors)
        first = Nearest("apart", ties="first").answer(data, vectors)
    unit = unit_rows(matrix, np.float64)
    for query, several in enumerate(answers):
        scores = unit[len(answers) :] @ unit[query]
        rows = [row for row, pair in enumerate(pairs) if pair[0] == query]
        wanted = np.array(several) - len(answers)
        assert sorted(got.rank[rows]) == sorted(answer_ranks(scores, wanted))
        order = np.lexsort((np.arange(len(scores)), -scores.round(9)))
        assert first.rank[rows].tolist() == (np.argsort(order)[wanted] + 1).tolist()
        assert set(got.predictions[rows]) == {f"e{len(answers) + retrieval.nearest(scores)}"}


def test_of_equal_scores_the_first_item_is_first_if_asked():
    matrix = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8], [0.8, 0.6], [0.6, 0.8]])
    vectors, data = Vectors(matrix, np.arange(5)), lookups([(0, 2)], 5)
    ranks = {ties: Nearest("apart", ties).answer(data, vectors).rank for ties in TIES}
    assert ranks["against"] == [4.0] and ranks["first"] == [3.0]
    bits = lookups([(0, 1), (0, 4)], 5)
    assert Nearest("apart", "first").answer(bits, vectors).rank.tolist() == [2.0, 4.0]
    with pytest.raises(DefinitionError, match='ties must be "against" or "first", got "last"'):
        Nearest(ties="last")


TIES = ("against", "first")


def test_candidates_that_tie_with_every_query():
    """All documents have the same vector: the answer is behind all others, and e1 is first."""
    matrix = np.tile(np.float32([1, 2, 3]), (5000, 1))
    got = Nearest("apart").answer(lookups([(0, 4000)], 5000), Vectors(matrix, np.arange(5000)))
    assert got.rank.tolist() == [4999] and got.predictions.tolist() == ["e1"]


def test_the_query_and_columns_of_its_table_are_left_out():
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(40, 6)).astype(np.float32)
    candidates = retrieval._Candidates.of(np.arange(40), None)
    tables = np.arange(40) // 4
    vectors = Vectors(matrix, np.arange(40))
    found = retrieval._Cosines(vectors, candidates, tables).settle(
        np.array([0, 9]), [np.array([1, 20]), np.array([0])]
    )
    unit = unit_rows(matrix, np.float64)
    for place, (query, answer, rank) in enumerate(
        [(0, 20, found.ranks[1]), (9, 0, found.ranks[2])]
    ):
        scores = np.where(tables == tables[query], -np.inf, unit @ unit[query])
        assert rank == 1 + (scores > scores[answer]).sum()
        assert found.first[place] == scores.argmax()
    assert found.candidates.tolist() == [36, 36] and found.ranks[0] == np.inf


def test_counts_of_wide_rows():
    scores = np.ones((2, 5000), dtype=np.float32)
    reached = retrieval._reached(scores, np.array([0.5, 2.0]))
    assert retrieval._count(reached).tolist() == [5000, 0]
