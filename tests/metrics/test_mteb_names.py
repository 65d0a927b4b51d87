"""Metrics under MTEB's names against mteb, if it is installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk

import karat
from karat.core.predictions import Predictions
from karat.metrics import score

FILE = Path(__file__).parents[2] / "benchmarks" / "against_mteb.py"


@pytest.fixture(scope="module")
def bench():
    pytest.importorskip("mteb")
    spec = importlib.util.spec_from_file_location("against_mteb", FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(importlib.import_module("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
        module.quiet()
        yield module


def texts(bench, rows, seed=0):
    return bench.Known(np.random.default_rng(seed).normal(size=(rows, 12)))


def columns(frame, fields, target, kind):
    return karat.Dataset.from_columns(frame, fields, target, name="texts", kind=kind)


@pytest.mark.parametrize("kind", ["classification", "pairs", "retrieval"])
def test_the_scores_of_whole_tasks_are_mtebs(bench, kind, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", "")  # set anew by the benchmark, and put back here
    problem = getattr(bench, kind)(scale=0.05)
    both = bench.agreeing(problem, bench.ours(problem)[0], bench.theirs(problem)[0])
    assert len(both) >= 5
    for name, (ours, theirs) in both.items():
        assert 0.05 < theirs < 0.999, name
        assert ours == pytest.approx(theirs, abs=1e-6), name


def test_cosine_spearman(bench, monkeypatch):
    from mteb.abstasks import AbsTaskSTS

    monkeypatch.setenv("KARAT_CACHE", "")
    known = texts(bench, 80)
    # human scores come in steps, so some are equal
    steps = np.random.default_rng(1).integers(6, size=40)
    frame = pd.DataFrame(
        {"sentence1": known.texts[:40], "sentence2": known.texts[40:], "score": steps.astype(float)}
    )

    def theirs():
        task = bench.made(AbsTaskSTS, "STS", "cosine_spearman")
        task.dataset = bench.parts(test=frame)
        return task

    task = karat.Task(
        "sts",
        columns(frame, ["sentence1", "sentence2"], "score", "regression"),
        probe={"use": "similarity"},
        split={"use": "all"},
        metrics=["cosine_spearman", "cosine_pearson"],
    )
    same = {name: [f"sts {name}"] for name in task.metrics}
    problem = bench.Problem("sts", known, [task], theirs, same)
    both = bench.agreeing(problem, bench.ours(problem)[0], bench.theirs(problem)[0])
    for ours, other in both.values():
        assert ours == pytest.approx(other, abs=1e-6) and abs(other) > 0.01


def test_of_two_classes_f1_is_a_macro_average_there(bench):
    from mteb.abstasks import AbsTaskClassification

    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=200)
    answers = np.where(rng.random(200) < 0.7, truth, 1)
    task = bench.made(AbsTaskClassification, "Classification", "accuracy")
    theirs = task._calculate_scores(truth, answers)
    ours = Predictions(answers, truth, "classes", "classes", ("0", "1"))
    for name, other in [("accuracy", "accuracy"), ("f1_macro", "f1"), ("balacc", "recall")]:
        assert score(name, ours)[0] == pytest.approx(theirs[other], abs=1e-12)
    assert abs(score("f1", ours)[0] - theirs["f1"]) > 0.01
    # and its average precision is that of labels, not of probabilities
    assert theirs["ap"] == sk.average_precision_score(truth, answers)
    labels = Predictions(answers.astype(float), truth.astype(float))
    assert score("ap", labels)[0] == pytest.approx(theirs["ap"], abs=1e-12)


def test_a_threshold_above_or_below_all_scores_is_taken_here_only(bench):
    from mteb.abstasks import AbsTaskPairClassification

    task = bench.made(AbsTaskPairClassification, "PairClassification", "max_ap")
    scores, truth = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0, 1, 1, 1])
    theirs = task._compute_metrics_values(scores.tolist(), truth, True)
    ours = Predictions(scores, truth.astype(float))
    # all four are taken: 3 of 4 right, and 2 * 3 / (4 + 3); three are: 2 of 4, and 2 * 2 / (3 + 3)
    assert (score("max_accuracy", ours)[0], theirs["accuracy"]) == (0.75, 0.5)
    assert score("max_f1", ours)[0] == pytest.approx(6 / 7)
    assert theirs["f1"] == pytest.approx(4 / 6)
    assert score("ap", ours)[0] == pytest.approx(theirs["ap"], abs=1e-12)


def test_lists_with_grades_are_scored_as_trec_eval_does():
    trec = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(30), 25)
    grades = rng.integers(4, size=len(group)) * (rng.random(len(group)) < 0.3)
    grades[::25] = 1  # a list with nothing relevant is left out here and counts 0 there
    scores = rng.random(len(group)) + 0.3 * grades  # no two are equal
    truth: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for place, query in enumerate(map(str, group)):
        truth.setdefault(query, {})[str(place)] = int(grades[place])
        run.setdefault(query, {})[str(place)] = float(scores[place])
    measures = {"ndcg_cut.10", "map_cut.10", "recall.10", "P.10"}
    found = pd.DataFrame(trec.RelevanceEvaluator(truth, measures).evaluate(run).values()).mean()
    lists = Predictions(scores, grades.astype(float), group=group)
    for ours, theirs in [
        ("ndcg_at_10", "ndcg_cut_10"),
        ("map_at_10", "map_cut_10"),
        ("recall_at_10", "recall_10"),
        ("precision_at_10", "P_10"),
    ]:
        assert 0.05 < found[theirs] < 0.99
        assert score(ours, lists)[0] == pytest.approx(found[theirs], abs=1e-9), ours
