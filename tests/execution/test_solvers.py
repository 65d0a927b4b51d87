"""Solvers: what they are trained on and answer, and items without vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import ContractError, Declined
from karat.execution.solvers import PredictorSolver, ProbeSolver
from karat.models.adapters import adapt
from karat.models.tabular_encoders import OneHotTable
from karat.probes.retrieval import Duplicates, Nearest, SameClass
from karat.probes.similarity import Similarity
from karat.probes.trained import Trained

FRAME = pd.DataFrame({"e": list("abcdef"), "y": ["p", "p", "p", "q", "q", "q"]})
DATA = Dataset.from_columns(FRAME, ["e"], "y", name="six", modality="entity")
ALL = np.arange(6)


class Remembers:
    """Stores its training items and predicts the first target."""

    def fit(self, X, y):
        self.rows_, self.first_ = list(X), y[0]
        self.history_ = [{"epoch": 1, "metric": "loss", "value": 0.5}]
        return self

    def predict(self, X):
        return np.full(len(X), self.first_, dtype=object)


def test_a_predictor_sees_the_train_items_and_answers_the_test_items():
    solver = PredictorSolver(adapt(Remembers()), seed=0)
    solver.fit(DATA.take(np.array([3, 0])))
    answers = solver.answer(DATA.take(np.array([5, 1, 2])))
    assert solver.fitted_.rows_ == ["d", "a"]
    assert answers.predictions.predictions.tolist() == ["q", "q", "q"]
    assert answers.predictions.target.tolist() == ["q", "p", "p"]
    assert (answers.coverage, answers.missing) == (1.0, [])
    assert solver.history() == [{"epoch": 1, "metric": "loss", "value": 0.5}]


def test_a_predictor_declines_hidden_targets():
    with pytest.raises(Declined):
        PredictorSolver(adapt(Remembers()), 0).fit(DATA.blind())


def probed(known, missing="ignore", probe=None):
    vectors = {k: [float(v), 1.0] for k, v in known.items()}
    return ProbeSolver(adapt(vectors, "known"), probe or Trained(), missing, seed=0)


def test_items_without_vectors_are_omitted_and_counted():
    solver = probed({"a": 0, "b": 0, "d": 5, "e": 5})
    solver.fit(DATA.take(np.array([0, 1, 3, 4])))
    answers = solver.answer(DATA.take(np.array([2, 0, 5, 4])))
    assert answers.coverage == 0.5
    assert answers.missing == ["c", "f"]
    assert answers.predictions.predictions.tolist() == ["p", "q"]
    assert answers.predictions.question.tolist() == [1, 3]


def test_items_without_vectors_get_the_majority_class_when_penalized():
    solver = probed({"a": 0, "b": 0, "d": 5}, "penalize")
    solver.fit(DATA.take(np.array([0, 1, 3])))
    answers = solver.answer(DATA.take(np.array([5, 3, 2])))
    assert answers.coverage == pytest.approx(1 / 3)
    # two of three train questions are "p", so that is the default answer
    assert answers.predictions.predictions.tolist() == ["p", "q", "p"]
    assert answers.predictions.probabilities[0] == pytest.approx([2 / 3, 1 / 3])


def test_without_any_vector_a_job_is_declined_or_penalized():
    with pytest.raises(Declined, match="6 items of six"):
        probed({"zzz": 1}).fit(DATA)
    for policy in ("ignore", "penalize"):
        solver = probed({"a": 0, "d": 1}, policy)
        solver.fit(DATA.take(np.array([0, 3])))
        if policy == "ignore":
            with pytest.raises(Declined, match="2 test items"):
                solver.answer(DATA.take(np.array([1, 4])))
        else:
            answers = solver.answer(DATA.take(np.array([1, 4])))
            assert answers.coverage == 0.0
            assert len(answers.predictions) == 2


def test_similarity_ranks_pairs_without_vectors_last():
    frame = pd.DataFrame({"a": ["x", "x", "x"], "b": ["x", "y", "?"], "y": [1.0, 0.5, 0.0]})
    pairs = Dataset.from_columns(frame, ["a", "b"], "y", modality="entity", kind="regression")
    encoder = adapt({"x": [1.0, 0.0], "y": [0.0, 1.0]}, "known")
    solver = ProbeSolver(encoder, Similarity(), "penalize", seed=0)
    solver.fit(pairs.blind())
    answers = solver.answer(pairs)
    assert answers.predictions.predictions.tolist() == [1.0, 0.0, -1.0]


@pytest.mark.parametrize(
    "probe", [SameClass(queries=9, random_state=0), Duplicates()], ids=["lists", "pairs"]
)
def test_probes_without_one_answer_per_question_have_no_question_index(probe):
    # "f" is unknown; of five items there are ten pairs, and lists of two and one answers
    known = {k: v for k, v in zip("abcde", (0.0, 1.0, 2.0, 4.0, 8.0), strict=True)}
    solver = probed(known, probe=probe)
    solver.fit(DATA.blind())
    answers = solver.answer(DATA)
    assert answers.missing == ["f"] and answers.coverage == pytest.approx(5 / 6)
    assert answers.predictions.question is None


def test_answers_of_a_search_keep_their_question_index():
    frame = pd.DataFrame({"q": list("aab"), "y": list("cdc")})
    data = Dataset.from_columns(frame, ["q"], "y", kind="items", modality="entity")
    solver = probed({"a": 0, "b": 1, "c": 2}, probe=Nearest())
    solver.fit(data.blind())
    answers = solver.answer(data)
    assert answers.predictions.question.tolist() == [0, 2]
    assert answers.predictions.target.tolist() == ["c", "c"]


class Width:
    """One column per train item: a width of its own in each fold."""

    def fit(self, items, y=None):
        return self

    def transform(self, items):
        return np.ones((len(items), len(items)))


class Types:
    """Whole numbers where it was fitted, fractions elsewhere."""

    def fit(self, items, y=None):
        self.size_ = len(items)
        return self

    def transform(self, items):
        rows = [[ord(str(i)), 1] for i in items]
        return rows if len(items) == self.size_ else [[a / 1, b / 1] for a, b in rows]


def test_a_different_width_in_test_is_an_error():
    solver = ProbeSolver(adapt(Width()), Trained(), "ignore", seed=0)
    solver.fit(DATA.take(np.array([0, 3, 4])))
    with pytest.raises(ContractError, match="2 dim.* 3 "):
        solver.answer(DATA.take(np.array([1, 2])))


def test_a_different_dtype_in_test_is_allowed():
    solver = ProbeSolver(adapt(Types()), Trained(), "ignore", seed=0)
    solver.fit(DATA.take(np.array([0, 1, 3, 4])))
    answers = solver.answer(DATA.take(np.array([2, 5])))
    assert answers.predictions.predictions.tolist() == ["p", "q"]


class Counts:
    calls = 0

    def fit(self, items, y=None):
        self.truth_ = y
        return self

    def transform(self, items):
        type(self).calls += 1
        return [[ord(str(item)), 1.0] for item in items]


def test_train_vectors_are_reused_if_test_rows_are_train_rows():
    Counts.calls = 0
    solver = ProbeSolver(adapt(Counts()), Trained(head="kmeans"), "ignore", seed=0)
    solver.fit(DATA.blind())
    solver.answer(DATA)
    assert Counts.calls == 1
    assert solver.encoder_.truth_ is None


def test_precomputed_vectors_are_used():
    ready = Vectors(np.array([[0.0], [0.0], [0.0], [9.0], [9.0], [9.0]]), ALL)
    solver = ProbeSolver(adapt(Counts()), Trained(), "ignore", 0, ready)
    Counts.calls = 0
    solver.fit(DATA.take(np.array([0, 3])))
    answers = solver.answer(DATA.take(np.array([1, 5])))
    assert answers.predictions.predictions.tolist() == ["p", "q"]
    assert (Counts.calls, solver.dimensions) == (0, 1)


def weighted_data(labels=True):
    table = pd.DataFrame({"x": [0.0, 0.0, 0.0, 1.0], "y": list("abbb"), "w": [6.0, 1.0, 1.0, 1.0]})
    if not labels:
        table["y"] = [1.0, 0.0, 0.0, 3.0]
    kind = "classification" if labels else "regression"
    return Dataset.from_table(table, "y", name="weighted", kind=kind, weight="w")


def test_a_predictor_is_fitted_with_the_weights_of_the_rows():
    data = weighted_data(labels=False)
    solver = PredictorSolver(adapt(DecisionTreeRegressor()), 0)
    solver.fit(data)
    answers = solver.answer(data).predictions
    assert answers.predictions.tolist() == [0.75, 0.75, 0.75, 3.0] and solver.notes == []
    assert answers.weight.tolist() == [6.0, 1.0, 1.0, 1.0]


def test_the_last_step_of_a_pipeline_gets_the_weights():
    solver = PredictorSolver(adapt(make_pipeline(StandardScaler(), DecisionTreeRegressor())), 0)
    solver.fit(weighted_data(labels=False))
    assert solver.answer(weighted_data(labels=False)).predictions.predictions[0] == 0.75
    assert solver.notes == []


def test_a_predictor_that_takes_no_weights_says_so():
    solver = PredictorSolver(adapt(KNeighborsRegressor(1)), 0)
    solver.fit(weighted_data(labels=False))
    (note,) = solver.notes
    assert "KNeighborsRegressor" in note and "weights" in note


@pytest.mark.parametrize(("head", "notes"), [("decision-tree", 0), ("knn", 1)])
def test_a_head_is_fitted_with_the_weights_if_it_takes_them(head, notes):
    data = weighted_data()
    probe = Trained({"use": head, **({"n_neighbors": 3} if head == "knn" else {})})
    solver = ProbeSolver(adapt(OneHotTable()), probe, "ignore", 0)
    solver.fit(data)
    label = solver.answer(data).predictions.predictions[0]
    assert label == ("b" if notes else "a") and len(solver.notes) == notes
