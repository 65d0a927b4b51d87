"""MTEB's splitters and probes, without mteb."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.compat.mteb.protocol import Bitext, Candidates, Clustering, Pairs, few_shot
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import DataError, DefinitionError
from karat.execution.splits import split
from karat.metrics import score


def texts(count, fields, target, kind, **given):
    items = pd.Series([f"text {i}" for i in range(count)])
    return Dataset("texts", items, pd.DataFrame(fields), np.asarray(target), kind, "text", **given)


def vectors(matrix):
    matrix = np.asarray(matrix, dtype=np.float32)
    return Vectors(matrix, np.arange(len(matrix)))


def few(labels, part):
    return texts(
        len(labels), {"text": range(len(labels))}, labels, "classification", part=np.array(part)
    )


def test_few_shot_draws_the_same_number_of_each_class():
    data = few(["a", "b"] * 20 + ["a"] * 5, ["train"] * 40 + ["test"] * 5)
    folds = split(data, {"use": "few-shot", "samples": 3, "repeats": 4}, seed=1)
    assert [fold.repeat for fold in folds] == [0, 1, 2, 3]
    for fold in folds:
        labels = np.asarray(data.target)[fold.train]
        assert sorted(labels) == ["a"] * 3 + ["b"] * 3
        assert fold.test.tolist() == [40, 41, 42, 43, 44]
    assert len({tuple(sorted(fold.train)) for fold in folds}) > 1
    again = split(data, {"use": "few-shot", "samples": 3, "repeats": 4}, seed=2)
    assert all((a.train == b.train).all() for a, b in zip(folds, again, strict=True))


def test_few_shot_in_folds_tests_every_row_once():
    data = few(["a", "b"] * 20, ["train"] * 40)
    folds = split(data, {"use": "few-shot", "samples": 2, "folds": 4}, seed=1)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(40))
    assert all(len(fold.train) == 4 and fold.repeat == 0 for fold in folds)


def test_few_shot_needs_classes_and_parts():
    with pytest.raises(DefinitionError):
        list(few_shot(texts(2, {"text": [0, 1]}, [0.5, 1.5], "regression")))
    with pytest.raises(DataError, match="part"):
        list(few_shot(texts(2, {"text": [0, 1]}, ["a", "b"], "classification")))


def test_each_group_is_a_fold():
    data = texts(4, {"text": [0, 1, 2, 3]}, list("abab"), "classification", group=list("yyxx"))
    folds = split(data, {"use": "each-group"}, seed=0)
    assert [fold.test.tolist() for fold in folds] == [[0, 1], [2, 3]]
    with pytest.raises(DefinitionError, match="groups"):
        split(texts(2, {"text": [0, 1]}, list("ab"), "classification"), {"use": "each-group"}, 0)


def test_the_number_of_clusters_is_that_of_the_set():
    target = ["0: a", "0: a", "0: b", "0: b"]
    classes = ("0: a", "0: b", "1: c", "1: d", "1: e")
    data = texts(4, {"text": [0, 1, 2, 3]}, target, "classification", classes=classes)
    found = Clustering().answer(data, vectors([[0, 0], [0, 0.1], [9, 9], [9, 9.1]]))
    assert len(set(found.predictions)) == 2
    assert score("v_measure", found)[0] == 1.0
    assert len(set(Clustering().unanswered(data).predictions)) == 4


def test_pairs_have_a_row_per_measure():
    data = texts(4, {"a": [0, 1], "b": [2, 3]}, [0, 1], "classification", classes=(0, 1))
    # by cosine the second pair is nearer, by distance the first one
    found = Pairs().answer(data, vectors([[1, 0], [9, 0], [1, 0.5], [1, 0]]))
    assert (
        found.group.tolist() == ["cosine"] * 2 + ["dot"] * 2 + ["euclidean"] * 2 + ["manhattan"] * 2
    )
    own = {name: found.take(np.flatnonzero(found.group == name)) for name in set(found.group)}
    assert score("pr_auc", own["cosine"])[0] == 1.0 and score("pr_auc", own["euclidean"])[0] == 0.5
    assert score("max_ap", found)[0] == 1.0


def test_candidates_are_ranked_within_their_query():
    items = pd.Series({"q": "q", "d:1": "x", "d:2": "y", "d:3": "z", "x:4": None}, dtype=object)
    fields = {"query": ["q"] * 4, "document": ["d:1", "d:2", "d:3", "x:4"]}
    data = Dataset(
        *("lists", items, pd.DataFrame(fields), np.array([0.0, 1.0, 0.0, 1.0]), "regression"),
        *("text",),
        group=np.array(["q"] * 4),
    )
    # d:1 and d:3 tie, the higher id is first; x:4 has no vector
    space = vectors([[1, 0], [1, 0.5], [1, 0.1], [1, 0.5], [np.nan, np.nan]])
    probe = Candidates()
    able = probe.answerable(data, space)
    assert able.tolist() == [True, True, True, False]
    found = probe.answer(data.take(np.flatnonzero(able)), space)
    assert found.rank.tolist() == [3, 1, 2]
    both = found.merged(probe.unanswered(data.take(np.flatnonzero(~able))), able)
    # two are relevant, one of which is never found
    assert score("map@1000", both)[0] == 0.5 and score("recall@10", both)[0] == 0.5


def test_bitext_predicts_one_of_many_classes():
    data = texts(4, {"query": [0, 1]}, [2, 3], "items")
    found = Bitext(queries="apart")
    found.fit(data, vectors(np.eye(4)))
    answers = found.answer(data, vectors([[1, 0], [1, 0.1], [1, 0], [0, 1]]))
    assert answers.predictions.tolist() == ["2", "2"]
    # of class 2 precision 1/2 and recall 1, of class 3 nothing
    assert score("f1_weighted", answers)[0] == pytest.approx(1 / 3)
    assert score("acc", answers)[0] == 0.5
