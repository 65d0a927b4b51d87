"""Statistics of tasks and vectors, checked by hand and by brute force; no score depends on them."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.task import Task
from karat.errors import DefinitionError
from karat.execution import diagnostics as observing
from karat.execution.diagnostics import (
    LibraryGuard,
    count_classes,
    count_constant_dimensions,
    count_duplicates,
    evenly_spaced,
    leaking_column,
    principal,
    same_vectors,
    sample_csv,
    shared_entities,
    task_facts,
    unconverged,
    unmatched_names,
    vector_facts,
)
from karat.execution.job import Job, run_job
from karat.execution.object_store import ObjectStore
from karat.execution.splits import Fold, split
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable

steady = settings(deadline=None, derandomize=True, max_examples=60)


def table(truth, **columns):
    frame = pd.DataFrame({**columns, "y": truth})
    kind = "regression" if isinstance(truth[0], float) else "classification"
    return Dataset.from_table(frame, "y", name="toy", kind=kind)


def fold(train, test):
    return Fold(np.array(train), np.array(test))


def test_classes_are_counted_the_largest_first():
    assert count_classes(table(list("abbcc"), x=range(5))) == {"b": 2, "c": 2, "a": 1}
    many = [f"{i:02}" for i in range(40) for _ in range(1 + (i == 39))]
    counted = count_classes(table(many, x=range(41)))
    assert len(counted) == 30
    assert list(counted.items())[:2] == [("39", 2), ("00", 1)]
    assert count_classes(table([1.0, 2.0], x=[1, 2])) == {}


def test_test_rows_are_counted_once():
    data = table(list("abab"), x=range(4))
    folds = [fold([0, 1], [2, 3]), fold([2, 3], [1, 0]), fold([0, 1], [2, 3])]
    assert [task_facts(data, folds[:i])["tested"] for i in (3, 1)] == [4, 2]


def test_groups_in_both_train_and_test():
    frame = pd.DataFrame({"x": range(4), "who": list("aabb"), "y": list("npnp")})
    data = Dataset.from_table(frame, "y", group="who")
    assert shared_entities(data, [fold([0, 2], [1, 3])]) == (2, 2, "group")
    assert shared_entities(data, [fold([0, 1], [2, 3])]) == (0, 2, "group")
    assert shared_entities(data, [fold([0, 1, 2], [3]), fold([2, 3], [0])]) == (1, 2, "group")


def test_items_of_pairs_in_both_train_and_test():
    frame = pd.DataFrame({"a": list("pqrs"), "b": list("qtuv"), "y": list("npnp")})
    data = Dataset.from_columns(frame, ["a", "b"], "y")
    # q is in the pairs 0 and 1
    assert shared_entities(data, [fold([0], [1, 2])]) == (1, 2, "item")
    assert shared_entities(data, [fold([0, 1], [2, 3])]) == (0, 2, "item")


def visits(agree):
    """10 patients with 4 visits each; whether the answer is the patient's or that of the visit."""
    patient = np.repeat(np.arange(10), 4)
    rng = np.random.default_rng(0)
    truth = (patient % 2) if agree else rng.permutation(np.arange(40) % 2)
    return table([str(v) for v in truth], patient=patient, x=rng.random(40))


def test_a_key_column_with_equal_targets_is_an_entity():
    folds = [fold(np.arange(0, 40, 2), np.arange(1, 40, 2))]
    assert shared_entities(visits(agree=True), folds) == (20, 20, "patient")
    # a patient's visits stay together: none crosses
    apart = [fold(range(20), range(20, 40))]
    assert shared_entities(visits(agree=True), apart) == (0, 20, "patient")
    assert shared_entities(visits(agree=False), folds) is None


def test_columns_that_are_not_keys():
    rows = [fold(range(0, 40, 2), range(1, 40, 2))]
    truth = [str(i % 2) for i in range(40)]
    fractions = np.repeat(np.arange(20) / 7, 2)
    assert shared_entities(table(truth, x=fractions), rows) is None
    assert shared_entities(table(truth, x=range(40)), rows) is None  # all are different
    assert shared_entities(table(truth, x=[i % 2 for i in range(40)]), rows) is None  # too few


def test_a_key_with_some_other_answers_is_an_entity():
    # 200 patients with 4 visits; 15 % of the answers are flipped
    rng = np.random.default_rng(0)
    patient = np.repeat(rng.permutation(200), 4)
    truth = (patient * 7919 % 13 < 6) ^ (rng.random(800) < 0.15)
    data = table([str(v) for v in truth], patient=patient, x=rng.random(800))
    folds = [fold(np.arange(0, 800, 2), np.arange(1, 800, 2))]
    assert shared_entities(data, folds) == (400, 400, "patient")
    # a quantity that predicts the answer is no key: neighboring values agree as well
    amount = np.sort(rng.integers(0, 300, 800))
    truth = (amount > 150) ^ (rng.random(800) < 0.15)
    assert shared_entities(table([str(v) for v in truth], amount=amount), folds) is None


@pytest.mark.parametrize("write", [pd.Timestamp.isoformat, lambda day: f"{day:%d/%m/%Y}", None])
def test_dates_are_no_entities(write):
    day = pd.Series(pd.to_datetime("2026-01-01") + pd.to_timedelta(np.repeat(range(50), 4), "D"))
    days = day if write is None else day.map(write)
    data = table([str(i // 4 % 2) for i in range(200)], day=days)
    assert shared_entities(data, [fold(np.arange(0, 200, 2), np.arange(1, 200, 2))]) is None


def test_nearly_identical_rows_are_one_entity():
    rng = np.random.default_rng(0)
    person = np.repeat(rng.normal(size=(60, 6)), 5, axis=0)
    rows = person + rng.normal(scale=0.003, size=person.shape)
    columns = {f"x{i}": rows[:, i] for i in range(6)}
    truth = [str(i // 5 % 2) for i in range(300)]
    folds = [fold(np.arange(0, 300, 2), np.arange(1, 300, 2))]
    shared, tested, what = shared_entities(table(truth, **columns), folds)
    assert (tested, what) == (150, "nearly identical row") and shared > 75
    # of independent rows, and of rows on a curve, none is that near
    for clean in (rng.normal(size=(300, 6)), np.outer(rng.random(300), np.ones(6))):
        columns = {f"x{i}": clean[:, i] for i in range(6)}
        assert shared_entities(table(truth, **columns), folds) is None


@pytest.mark.parametrize("most_pairs", [observing.MOST_NEAR_PAIRS, 0])
def test_rows_that_are_clearly_apart_are_found_as_by_a_tree(monkeypatch, most_pairs):
    monkeypatch.setattr(observing, "MOST_NEAR_PAIRS", most_pairs)
    apart = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        matrix = rng.normal(size=(int(rng.integers(25, 700)), int(rng.integers(3, 11))))
        copied = rng.random(len(matrix)) < rng.random()
        noise = rng.normal(scale=10.0 ** rng.uniform(-5, -1), size=matrix.shape)
        originals = matrix[rng.integers(0, len(matrix), len(matrix))]
        matrix[copied] = (originals + noise)[copied]
        distances, _ = cKDTree(matrix).query(matrix, observing.NEIGHBORS + 1)
        is_near = distances[:, 1] < observing.NEAR * distances[:, -1]
        is_near &= distances[:, 1] > observing.EQUAL_NUMBERS
        if observing._clearly_apart(matrix, np.arange(len(matrix))):
            assert is_near.mean() < observing.NEAR_SHARE
            apart.add(seed)
    assert len(apart) > 5 if most_pairs else not apart


def test_hidden_targets_cannot_leak():
    data = visits(agree=True)
    rows = np.arange(40)
    facts = task_facts(data, [Fold(rows, rows)], blind=True)
    assert facts == {
        **{"tested": 40, "classes": {"0": 20, "1": 20}, "blind": True},
        "positive": "1",
    }


def test_a_column_that_separates_two_classes():
    # in the order of "code" one of 99 pairs of neighbors differs, of any two a half does
    truth = ["low"] * 50 + ["high"] * 50
    data = table(truth, code=range(100), noise=np.random.default_rng(1).random(100))
    assert leaking_column(data) == ("code", round(1 - (1 / 99) / 0.5, 3))


def test_a_column_that_gives_the_target_away_in_most_rows():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    note = pd.Series(truth.astype(float) + 10).mask(rng.random(500) < 0.1)
    word = pd.Series(np.where(truth, "yes", "no"), dtype=object).mask(rng.random(500) < 0.1)
    for column in (note, word):
        found = leaking_column(table([str(v) for v in truth], x=rng.random(500), note=column))
        assert found[0] == "note" and found[1] > 0.97


def test_numeric_targets_are_compared_by_rank():
    # neighbors differ by one rank: 1 - 1 / (2 · (100² - 1) / 12)
    truth = [float(i) ** 3 for i in range(100)]
    assert leaking_column(table(truth, x=np.arange(100) / 7)) == ("x", round(1 - 1 / (9999 / 6), 3))


def test_text_columns_compare_equal_texts_only():
    truth = list("ab" * 50)
    alike = ["left" if each == "a" else "right" for each in truth]
    # 98 pairs agree, and the one between the two texts is any two rows
    assert leaking_column(table(truth, x=alike)) == ("x", round(1 - (0.5 / 99) / 0.5, 3))
    assert leaking_column(table(truth, x=[f"id {i}" for i in range(100)])) == ("x", 0.0)
    # a row number in a sorted file leaks, unique text does not
    data = table(["a"] * 100 + ["b"] * 100, name=[f"n{i}" for i in range(200)], row=range(200))
    assert leaking_column(data)[0] == "row"
    assert leaking_column(data)[1] > 0.98


def test_columns_of_any_type_are_scored():
    truth = list("ab" * 20)
    columns = {
        "lists": [[i] for i in range(40)],
        "empty": [None] * 40,
        "dates": pd.date_range("2024-01-01", periods=40),
        "whole": pd.array([None, 1] * 20, dtype="Int64"),
        "flags": [True, False] * 20,
    }
    name, score = leaking_column(table(truth, **columns))
    assert name in ("whole", "flags")
    assert score == round(1 - (1 / 39) / 0.5, 3)


def test_no_leak_without_enough_rows_or_columns():
    assert leaking_column(table(["a", "b"], x=[1, 2])) is None
    texts = Dataset.from_columns(pd.DataFrame({"t": list("ab"), "y": list("cd")}), ["t"], "y")
    assert leaking_column(texts) is None
    assert "give_away" not in task_facts(texts, [fold([0], [1])])


def side(matrix, rows, cells=None):
    """Return questions about the items at these rows, and their vectors."""
    size = max(rows) + 1
    data = table(["a", "b"] * size, x=list(cells or range(size)) + [0] * size)
    return data.take(np.array(rows)), Vectors(np.array(matrix, dtype=np.float32), np.array(rows))


def test_statistics_of_vectors():
    # dimensions: constant, nearly so, zero but once, moving
    train = side([[1, 1000, 0, 3], [1, 1000.05, 0, 4]], [0, 1])
    test = side([[1, 1000, 0, 0], [1, 1000, 2, 0], [np.nan] * 4], [2, 3, 4])
    seen = vector_facts(train, test)
    assert (seen["dimensions"], seen["constant"], seen["nearly_dead"]) == (4, 1, 1)
    assert (seen["items"], seen["zero"], seen["same"], seen["compared"]) == (4, 0, 0, 2)
    lengths = [np.sqrt(1 + 1000**2 + 9), np.sqrt(1 + 1000.05**2 + 16), np.sqrt(1 + 1000**2)]
    lengths.append(np.sqrt(1 + 1000**2 + 4))
    assert seen["lengths"] == pytest.approx(np.percentile(lengths, [1, 50, 99]), rel=1e-5)
    json.dumps(seen, allow_nan=False)


def test_vectors_of_zeros_are_counted():
    seen = vector_facts(side([[0, 0], [3, 4]], [0, 1]), side([[0, 0], [0, 0]], [2, 3]))
    assert (seen["zero"], seen["lengths"][1]) == (3, 0.0)
    assert (seen["constant"], seen["same"], seen["compared"]) == (0, 2, 2)


def test_an_encoder_without_any_vector():
    nothing = side([[np.nan, np.nan]], [0])
    assert vector_facts(nothing, nothing) == {"dimensions": 2, "same": 0, "compared": 0}


def test_vectors_that_are_trained_on_and_tested_count_twice():
    both = side([[3, 4], [0, 0], [6, 8]], [0, 1, 2])
    seen = vector_facts(both, both)
    assert (seen["items"], seen["zero"], seen["lengths"][1]) == (6, 2, 5.0)


def test_equal_items_may_have_equal_vectors():
    data, vectors = side([[1, 2], [1, 2], [-0.0, 1], [0.0, 1]], [0, 1, 2, 3], [5, 5, 6, 7])
    # the first two are the same item twice; 6 and 7 differ and share theirs, 0 being -0
    assert same_vectors(data, vectors) == (2, 4)


def test_vectors_may_be_equal_at_the_beginning_only():
    beginning = [1.0] * 20
    data, vectors = side([[*beginning, 2], [*beginning, 3], [*beginning, 2]], [0, 1, 2], [5, 6, 7])
    assert same_vectors(data, vectors) == (2, 3)


@steady
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 6), st.integers(1, 50))
def test_constant_dimensions_are_found_over_all_rows(seed, rows, width, most):
    rng = np.random.default_rng(seed)
    matrix = rng.choice([0.0, 0.0, 0.0, 0.0, 1.0], (rows, width)).astype(np.float32)
    matrix[:, rng.integers(width)] = rng.choice([5.0, 100 + 1e-4 * rng.random()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observing, "MOST_NUMBERS", most)
        places = np.arange(rows)
        samples = [matrix[evenly_spaced(places, most // width)]]
        seen = count_constant_dimensions([(matrix, places)], samples)
    assert seen["constant"] == int((np.ptp(matrix, axis=0) == 0).sum())
    low, high = matrix.min(axis=0).astype(float), matrix.max(axis=0).astype(float)
    nearly = (high > low) & (high - low < 1e-4 * np.maximum(abs(low), abs(high)))
    assert seen["nearly_dead"] == int(nearly.sum())


def test_unconverged_estimators_are_counted():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.random((60, 4))
    y = (X.sum(axis=1) > 2).astype(int)
    done = LogisticRegression().fit(X, y)
    with pytest.warns(ConvergenceWarning):
        short = LogisticRegression(max_iter=1).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        pipe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1)).fit(X, y)
    assert [unconverged(each) for each in (done, short, pipe, None)] == [0, 1, 1, 0]
    assert unconverged({"encoder": pipe, "head": short}) == 2
    # boosting counts its trees there
    assert unconverged(HistGradientBoostingClassifier(max_iter=2).fit(X, y)) == 0


def test_estimators_that_refer_to_each_other_are_counted_once():
    class Part:
        max_iter, n_iter_ = 3, np.array([1, 3])

        def fit(self):
            return self

    one, other = Part(), Part()
    one.inner_, other.inner_ = other, one
    assert unconverged(one) == 2


@pytest.mark.parametrize("shape", [(30, 5), (8, 40)])
def test_principal_components_are_those_of_a_decomposition(shape):
    matrix = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    U, S, _ = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    expected = U * S
    signs = np.sign(expected[np.abs(expected).argmax(axis=0), np.arange(len(S))])
    made = principal(matrix)
    kept = min(shape[0] - 1, shape[1], 16)
    assert made.shape == (shape[0], kept)
    assert made == pytest.approx((expected * signs)[:, :kept], abs=1e-6 * S[0])
    assert (made.max(axis=0) >= -made.min(axis=0) - 1e-9).all()


def test_at_most_16_components_without_rounding_errors():
    rng = np.random.default_rng(1)
    assert principal(rng.normal(size=(50, 30))).shape == (50, 16)
    line = np.outer(np.arange(6.0), [1.0, 2.0, 3.0])
    assert principal(line).shape == (6, 1)
    assert principal(np.ones((4, 3))).shape == (4, 0)
    assert principal(np.ones((1, 3))).shape == (1, 0)


def drawn(test, vectors, seed=0):
    text = sample_csv(test, vectors, seed)
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def test_the_sample_holds_labels_and_five_digits():
    data = table(["a", "b", "a", "c"], x=range(4))
    vectors = Vectors(np.array([[0.0, 0], [1, 0], [2, 0], [np.nan, np.nan]]), np.arange(4))
    assert drawn(data, vectors).to_dict("list") == {
        "label": ["a", "b", "a"],
        "c0": ["1", "0", "-1"],
    }
    third = Vectors(np.array([[0.0], [1.0], [1.0], [1.0]]), np.arange(4))
    assert drawn(data, third)["c0"].tolist() == ["0.75", "-0.25", "-0.25", "-0.25"]
    assert drawn(table([0.5, 1e9, 1 / 3, 2.0], x=range(4)), third)["label"].tolist() == [
        *("0.5", "1e+09", "0.333333", "2")
    ]


def test_the_300_sampled_items_depend_on_seed_and_dataset_only():
    rows = 1000
    data = table([str(i % 3) for i in range(rows)], x=range(rows))
    rng = np.random.default_rng(0)
    one = Vectors(np.arange(rows, dtype=float)[:, None], np.arange(rows))
    other = Vectors(rng.random((rows, 4)), np.arange(rows))
    first = drawn(data, one)
    assert (len(first), first["label"].tolist()) == (300, drawn(data, other)["label"].tolist())
    assert first["label"].tolist() != drawn(data, one, seed=1)["label"].tolist()
    assert sample_csv(data, one, 0) == sample_csv(data, one, 0)


def test_labels_are_quoted_and_rare_classes_have_none():
    data = table([f"{i:02}" for i in range(40)] * 2 + ["00"], x=range(81))
    labels = drawn(data, Vectors(np.random.default_rng(0).random((81, 3)), np.arange(81)))["label"]
    assert (len(set(labels)), (labels == "").sum()) == (31, 20)
    made = drawn(table(['a,"b', "x\ny"], x=range(2)), Vectors(np.eye(2), np.arange(2)))
    assert made["label"].tolist() == ['a,"b', "x\ny"]


def test_pairs_and_equal_vectors_have_no_sample():
    frame = pd.DataFrame({"a": list("pq"), "b": list("rs"), "y": list("np")})
    pairs = Dataset.from_columns(frame, ["a", "b"], "y")
    assert sample_csv(pairs, Vectors(np.eye(4), np.arange(4)), 0) is None
    data = table(list("ab"), x=range(2))
    assert sample_csv(data, Vectors(np.ones((2, 3)), np.arange(2)), 0) is None


def go(folder, task, fold=0):
    store = ObjectStore(folder)
    store.put("model", adapt(OneHotTable()))
    store.put("task", task)
    store.put("data", task.dataset)
    return run_job(Job("model", "task", "data", fold, 42, "spec", ""), store)


def test_a_job_records_statistics_in_its_first_fold(tmp_path, two_classes):
    first, second = (go(tmp_path / str(i), two_classes(), fold=i) for i in range(2))
    assert first.record["observed"]["dimensions"] == 1
    assert first.record["observed"]["items"] == 20
    assert (first.record["unconverged"], second.record["unconverged"]) == (0, 0)
    assert first.files["sample.csv"].startswith("label,c0,key\n")
    assert len(first.files["sample.csv"].splitlines()) == 11
    assert "observed" not in second.record and "sample.csv" not in second.files


def test_predictions_do_not_depend_on_statistics(tmp_path, two_classes, monkeypatch):
    task = two_classes(corruptions={"noise_gaussian": [0.5], "vector_noise": [0.5]})
    seen = go(tmp_path / "a", task)
    monkeypatch.setattr("karat.execution.job.vector_facts", lambda *_: {})
    monkeypatch.setattr("karat.execution.job.sample_csv", lambda *_: None)
    unseen = go(tmp_path / "b", task)
    assert seen.files.keys() - unseen.files.keys() == {"sample.csv"}
    assert {name: seen.files[name] for name in unseen.files} == unseen.files
    assert seen.record["views"] == unseen.record["views"]
    assert [view["status"] for view in seen.record["views"]] == ["ok"] * 3


def test_an_error_in_statistics_is_a_note(tmp_path, two_classes, monkeypatch):
    def broken(*_):
        raise ValueError("odd vectors")

    monkeypatch.setattr("karat.execution.job.vector_facts", broken)
    outcome = go(tmp_path, two_classes())
    assert outcome.record["status"] == "ok"
    assert outcome.record["notes"] == ["ValueError: odd vectors"]


def test_statistics_do_not_use_the_global_generator(tmp_path, two_classes):
    before = np.random.get_state()[1].copy()
    go(tmp_path, two_classes())
    assert (np.random.get_state()[1] == before).all()


def test_statistics_of_a_task_are_written_to_run_json(tmp_path, two_classes):
    (run,) = karat.evaluate("onehot", two_classes(), output=tmp_path)
    (task,) = run.about["tasks"]
    assert (task["tested"], task["classes"]) == (20, {"high": 10, "low": 10})
    assert task["give_away"] == ["x", round(1 - (1 / 19) / 0.5, 3)]


def test_a_task_may_ignore_checks(two_classes):
    assert two_classes(ignore="KRT004").ignore == ("KRT004",)
    assert two_classes(ignore=["KRT0", "KRT102"]).ignore == ("KRT0", "KRT102")
    with pytest.raises(DefinitionError, match="'acc'"):
        Task("t", "d", ignore=["acc"])


def features(**columns):
    frame = pd.DataFrame(columns)
    return Dataset.from_table(frame.assign(y=np.arange(len(frame)) / 7), "y", kind="regression")


@pytest.mark.parametrize(
    "cells",
    [
        [1.5, 1.5, 2.5],
        [np.nan, None, 1.0],
        [None, None, "x"],
        pd.array([None, None, 3], dtype="Int64"),
        pd.Categorical(["u", "u", "v"]),
        pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02"]),
        [True, True, False],
        [[1], [1], [2]],
        [0.0, -0.0, 1.0],
        [1, 1.0, "1"],
    ],
    ids=str,
)
def test_cells_of_every_type(cells):
    data = features(a=cells, b=[7, 7, 7])
    assert count_duplicates(data, [fold([0], [1, 2])]) == (1, 2)
    numbered = data.items.set_axis([0, 1], axis=1)  # column names need not be text
    data = dataclasses.replace(data, items=numbered)
    assert count_duplicates(data, [fold([0], [2]), fold([2], [1])]) == (0, 2)


def test_texts_are_compared_by_content_and_entities_by_id():
    frame = pd.DataFrame({"t": ["a", "b", "a"], "y": [0.5, 1.5, 2.5]})
    text = Dataset.from_columns(frame, ["t"], "y")
    assert count_duplicates(text, [fold([0], [1, 2])]) == (1, 2)
    frame = pd.DataFrame({"e": ["Georgia_1", "Georgia_2", "Georgia_1"], "y": [0.5, 1.5, 2.5]})
    entity = Dataset.from_columns(
        frame, ["e"], "y", modality="entity", label=lambda e: e.split("_")[0]
    )
    assert set(entity.items) == {"Georgia"}
    assert count_duplicates(entity, [fold([0], [1, 2])]) == (1, 2)


def test_pairs_bags_and_searches_have_no_duplicates():
    frame = pd.DataFrame(
        {"a": list("xyx"), "b": list("yxy"), "y": [0.5, 1.5, 2.5], "z": list("xyx")}
    )
    pairs = Dataset.from_columns(frame, ["a", "b"], "y")
    search = Dataset.from_columns(frame, ["a"], "z", kind="items", modality="entity")
    bags = Dataset.from_columns(frame.assign(a=[{"x": 1, "y": 1}] * 3), ["a"], "y")
    for data in (pairs, search, bags):
        assert count_duplicates(data, [fold([0], [1, 2])]) == (0, 2)


@steady
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), min_size=4, max_size=40
    ),
    st.integers(0, 20),
)
def test_the_count_equals_brute_force(rows, seed):
    data = features(a=[a for a, _ in rows], b=[b for _, b in rows])
    folds = split(data, {"use": "kfold", "folds": 2, "repeats": 2}, seed)
    expected = sum(any(rows[i] == rows[j] for j in each.train) for each in folds for i in each.test)
    assert count_duplicates(data, folds) == (expected, 2 * len(rows))


def test_columns_are_read_until_all_rows_differ():
    rng = np.random.default_rng(0)

    class Unread:
        def __hash__(self):
            raise AssertionError("this column need not be read")

    data = features(a=rng.random(50), b=[Unread()] * 50)
    assert count_duplicates(data, [fold(range(25), range(25, 50))]) == (0, 25)


KMEANS = {"use": "trained", "head": "kmeans"}


def test_ids_and_rounding_errors_do_not_hide_duplicates():
    rng = np.random.default_rng(0)
    half = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
    again = half + rng.normal(scale=1e-9, size=half.shape)
    frame = pd.concat([half, again], ignore_index=True)
    frame["id"], frame["y"] = [f"row {i}" for i in range(100)], list("np") * 50
    folds = [fold(range(50), range(50, 100))]
    assert count_duplicates(Dataset.from_table(frame, "y"), folds) == (50, 50)
    # two columns of two values agree by chance: here the id tells rows apart
    few = pd.DataFrame({"a": [0, 1] * 50, "b": [0, 0, 1, 1] * 25, "id": range(100)})
    few["y"] = list("np") * 50
    assert count_duplicates(Dataset.from_table(few, "y"), folds) == (0, 50)


def test_duplicates_are_written_to_run_json(tmp_path):
    frame = pd.DataFrame({"x": [0, 1, 2, 3, 4] * 4, "y": ["p", "q"] * 10})
    data = Dataset.from_table(frame, "y", name="five")
    tasks = [
        Task("apart", data, split={"use": "fixed", "test": [0, 1, 2]}, metrics=["acc"]),
        Task("folds", data, split={"use": "kfold", "folds": 4}, metrics=["acc"]),
        Task("blind", data, probe=KMEANS, split="all", metrics=["v_measure"]),
    ]
    (run,) = karat.evaluate(OneHotTable(), tasks, output=tmp_path, only=karat.Only(folds=[0]))
    duplicate_rows = {
        task["name"]: task["duplicate_rows"] for task in karat.Run.open(run.folder).about["tasks"]
    }
    # one of four folds is run; without held-out rows there are no duplicates
    assert (duplicate_rows["apart"], duplicate_rows["blind"], duplicate_rows["folds"][1]) == (
        [3, 3],
        [0, 0],
        5,
    )


@pytest.mark.parametrize(
    ("asked", "known", "cause"),
    [
        ("Paris", "paris", "case"),
        ("x:Paris", "Paris", "prefix"),
        ("New York", "New_York", "underscores"),
        ("http://x.org/New_York", "new york", "prefix, case and underscores"),
        ("Paris", "Rome", ""),
    ],
)
def test_how_names_differ(asked, known, cause):
    others = [f"other{i}" for i in range(5)]
    found = unmatched_names([asked], [*others, known])
    assert found["cause"] == cause and found["asked"] == [asked]
    assert found["known"] == ([known] if cause else others[:3])


def test_names_that_are_equal_are_matched():
    assert unmatched_names(["a", "b"], ["b", "c"]) == {} == unmatched_names(["a"], [])


def test_the_guard_finds_replaced_removed_and_new_functions(monkeypatch):
    from sklearn import metrics
    from sklearn.metrics import _classification

    guard = LibraryGuard()
    before = guard.replaced()
    assert guard.replaced() == before  # nothing has changed
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "accuracy_score", lambda *_: 1.0)
        patch.delattr(_classification, "zero_one_loss")
        patch.setattr(metrics, "own", lambda: 0, raising=False)
        found = {name for name in guard.replaced() if name not in before}
        names = {"accuracy_score", "_classification.zero_one_loss", "own"}
        assert found == {f"sklearn.metrics.{name}" for name in names}
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "f1_score", np.zeros(2))  # has no truth value if compared
        assert "sklearn.metrics.f1_score" in guard.replaced()
    # functions of another file are remembered, the removed one is back
    assert set(guard.replaced()) - set(before) == {
        "sklearn.metrics.accuracy_score",
        "sklearn.metrics.own",
    }


def test_without_code_of_a_user_nothing_is_looked_for(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(LibraryGuard, "_find_replaced", lambda self: looks.append(self) or [])
    monkeypatch.setattr(observing.guard, "_looked", True)
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{name} {i} {i % 3}\n" for i, name in enumerate("abcdefgh")))
    items = pd.Series(list("abcdefgh"), index=list("abcdefgh"))
    asked = pd.DataFrame({"item": list("abcdefgh")})
    data = Dataset("toy", items, asked, np.arange(8.0), "regression", "entity")
    head = {"use": "knn", "n_neighbors": 1}
    task = karat.Task(
        "toy", data, probe={"use": "trained", "head": head}, split={"use": "kfold", "folds": 2}
    )
    (run,) = karat.evaluate(path, task, output=tmp_path)
    assert {record["status"] for record in run.records()} == {"ok"} and not looks
    other = {name: [float(i), i % 3] for i, name in enumerate("abcdefgh")}
    karat.evaluate(
        {"file": path, "own": lambda names: [other[n] for n in names]}, task, output=tmp_path
    )
    assert len(looks) == 4
