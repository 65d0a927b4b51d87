"""A run against others: values, ranks, shared folds and questions, and what is left out."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.metrics import v_measure_score

import karat
from karat.analysis.history import RANKS, VALUES
from karat.analysis.history import compare_to_history as history
from karat.errors import DataError, DefinitionError
from karat.results.run import Run

from ..score_data import make_view, write_run

# -- runs whose scores are written down -----------------------------------------------------


@pytest.fixture
def run(write):
    """Write a run of tasks with acc and rmse; ``run("mine", 0.5, 0.7)`` has the task t with acc."""

    def make(model, *scores, metrics=("acc", "rmse"), **about):
        folds = [{"acc": each} if isinstance(each, float) else each for each in scores]
        metrics = ["acc"] if isinstance(next(iter(scores), None), float) else list(metrics)
        given = scores[0] if len(scores) == 1 and isinstance(scores[0], dict) else {"t": folds}
        return write(model, given, task={"metrics": metrics, **about.pop("task", {})}, **about)

    return make


def row(found, task="t", metric="acc", view="clean"):
    ranks = found.ranks
    (one,) = ranks[
        (ranks["task"] == task) & (ranks["metric"] == metric) & (ranks["view"] == view)
    ].to_dict(orient="records")
    return {name: None if value is pd.NA else value for name, value in one.items()}


def values(found, task="t", metric="acc", what="value", view="clean"):
    table = found.values
    part = table[(table["task"] == task) & (table["metric"] == metric) & (table["view"] == view)]
    cells = [None if value is pd.NA else value for value in part[what]]
    return dict(zip(part["model"], cells, strict=True))


def test_values_ranks_and_the_best_other(run):
    mine = run("mine", {"acc": 0.5, "rmse": 3}, {"acc": 0.7, "rmse": 5})
    run("a", {"acc": 0.8, "rmse": 9}, {"acc": 0.8, "rmse": 9})
    run("b", {"acc": 0.1, "rmse": 1}, {"acc": 0.2, "rmse": 2})
    found = history(mine)
    assert [other.model for other in found.others] == ["a", "b"]
    assert found.notes == []
    assert tuple(found.values.columns) == VALUES and tuple(found.ranks.columns) == RANKS
    assert values(found) == pytest.approx({"mine": 0.6, "a": 0.8, "b": 0.15})
    assert values(found, what="rank") == {"mine": 2, "a": 1, "b": 3}
    # of errors, the lowest is best
    assert values(found, metric="rmse", what="rank") == {"mine": 2, "a": 3, "b": 1}
    one, error = row(found), row(found, metric="rmse")
    assert (one["rank"], one["compared"], one["best_model"]) == (2, 3, "a")
    assert one["best_run"] == "a.s.c.m.20260101T000000"
    assert one["difference"] == pytest.approx(-0.2)
    assert (error["rank"], error["best_model"], error["best_value"]) == (2, "b", 1.5)
    assert error["difference"] == pytest.approx(2.5)
    assert (one["dataset"], one["kind"], one["folds"]) == ("t-data", "classification", 2)
    assert (one["failed"], one["absent"]) == (0, 0)
    assert one["questions"] is None and one["asked"] is None


def test_equal_values_share_the_better_rank(run):
    assert 0.1 + 0.7 < 0.4 + 0.4, "these differ in their last bit"
    mine, _, _ = run("mine", 0.1, 0.7), run("a", 0.4, 0.4), run("b", 0.0, 0.0)
    found = history(mine)
    assert values(found, what="rank") == {"mine": 1, "a": 1, "b": 3}
    assert (row(found)["rank"], row(found)["compared"], row(found)["best_model"]) == (1, 3, "a")


def test_a_run_alone_has_values_and_no_rank(run, tmp_path):
    found = history(run("mine", 0.5))
    assert found.others == []
    one = row(found)
    assert (one["value"], one["compared"], one["best_model"]) == (0.5, 1, "")
    assert one["rank"] is None and math.isnan(one["difference"])
    assert len(found.notes) == 1 and tmp_path.name in found.notes[0]


def test_interval_of_paired_folds(run):
    mine, _ = run("mine", 0.9, 0.6), run("a", 0.6, 0.5)
    one = row(history(mine))
    # differences 0.3 and 0.1: variance 0.02; 80 train rows and 20 test rows
    half = student.ppf(0.975, 1) * math.sqrt(0.02 * (1 / 2 + 20 / 80))
    assert one["difference"] == pytest.approx(0.2)
    assert one["difference_low"] == pytest.approx(0.2 - half)
    assert one["difference_high"] == pytest.approx(0.2 + half)


def test_folds_that_do_not_vary_have_no_interval(run):
    mine, _ = run("mine", 0.5, 0.5, 0.5), run("a", 0.5, 0.5, 0.5)
    one = row(history(mine))
    assert one["difference"] == 0
    assert math.isnan(one["difference_low"]) and math.isnan(one["difference_high"])


# -- which folds ----------------------------------------------------------------------------


def test_means_are_over_the_folds_all_have(run):
    mine = run("mine", 0.2, 0.4, {"acc": 0.9, "coverage": 0.4})
    run("a", 0.2, 0.4, None)
    found = history(mine)
    assert values(found) == pytest.approx({"mine": 0.3, "a": 0.3})
    assert values(found, what="folds") == {"mine": 2, "a": 2}
    assert values(found, what="coverage") == {"mine": 1.0, "a": 1.0}
    assert "2 of 3 folds" in found.notes[0] and "a lacks 2" in found.notes[0]


def test_a_run_without_a_common_fold_is_left_out(run):
    mine, _ = run("mine", 0.2, 0.4), run("a", None, {"acc": 0.5})
    run("b", {"t": {7: {"acc": 0.9}}})
    found = history(mine)
    assert (row(found)["value"], row(found)["rank"], row(found)["compared"]) == (0.4, 2, 2)
    assert values(found, what="status")["b"] == "no common fold"
    assert row(found)["absent"] == 1


def test_folds_of_other_sizes_are_other_folds(run):
    mine, _ = run("mine", 0.2), run("a", 0.9, record={"train_questions": 90, "questions": 10})
    found = history(mine)
    assert row(found)["compared"] == 1
    assert values(found, what="status")["a"] == "other folds"


# -- what is left out -----------------------------------------------------------------------


def test_failed_and_absent_are_counted_and_named(run):
    fine = [{"acc": 0.5, "rmse": 1}]
    mine = run("mine", {"t": fine, "u": [None], "v": "declined"})
    run("a", {"t": [None], "u": fine})
    run("b", {"t": "declined", "u": [{"acc": 0.9, "rmse": 0}]})
    run("c", {"u": fine})
    run("d", {"t": [{"acc": None, "rmse": 2}]})
    found = history(mine)
    one = row(found)
    assert (one["rank"], one["compared"], one["failed"], one["absent"]) == (None, 1, 2, 2)
    assert row(found, metric="rmse")["rank"] == 1
    # this run failed: the others are shown, and it has no rank
    lost = row(found, "u")
    assert (lost["rank"], lost["compared"], lost["best_model"]) == (None, 3, "b")
    assert (lost["failed"], lost["absent"]) == (1, 1)
    assert values(found, "u", what="rank") == {"mine": None, "a": 2, "b": 1, "c": 2, "d": None}
    assert set(found.ranks["task"]) == {"t", "u"}
    pairs = [("This run", "v"), ("This run", "u"), ("a", "t"), ("b", "t"), ("c", "t"), ("d", "u")]
    for name, task in pairs:
        assert any(n.startswith(name) and f" {task}" in n for n in found.notes), (name, task)
    assert any(note.startswith("d") and "t (acc)" in note for note in found.notes)


def test_a_metric_that_was_not_measured_is_no_failure(run):
    mine, _ = run("mine", {"acc": 0.5, "rmse": 1}, {"acc": 0.5, "rmse": 1}), run("a", 0.4, 0.4)
    found = history(mine)
    assert values(found, metric="rmse", what="status") == {"mine": "ok", "a": "not measured"}
    assert (row(found)["rank"], row(found, metric="rmse")["failed"]) == (1, 0)


def test_other_data_other_seeds_and_other_tasks_are_not_compared(run):
    mine = run("mine", 0.5)
    run("a", 0.5, task={"fingerprint": "another"})
    run("b", 0.5, seed=7)
    run("c", {"else": [0.5]})
    found = history(mine)
    assert row(found)["compared"] == 1
    assert values(found, what="status") == {"mine": "ok", "a": "other data"}
    assert [note.split(":")[0] for note in found.notes][0] == "No task in common"
    assert "42" in found.notes[1] and "b.s.c.m.20260101T000000 (7)" in found.notes[1]


def test_two_runs_of_one_model_have_unique_names(run):
    mine, _ = run("m", 0.5, stamp="2"), run("m", 0.6, stamp="1")
    found = history(mine)
    assert values(found) == {"m (2)": 0.5, "m (1)": 0.6}
    assert row(found)["best_run"] == "m.s.c.m.1"


def test_corrupted_views_are_compared_where_asked(run):
    def seen(acc):
        draws = [make_view("typos", 0.1, draw, acc=acc - draw / 10) for draw in (0, 1)]
        return {"t": [[make_view(acc=acc), *draws]]}

    mine = run("mine", seen(0.5), metrics=["acc"])
    run("a", seen(0.8), metrics=["acc"])
    run("b", 0.1)
    assert set(history(mine).ranks["view"]) == {"clean"}
    found = history(mine, views=True)
    # the mean of two draws
    assert values(found, view="typos@0.1") == pytest.approx(
        {"mine": 0.45, "a": 0.75, "b": math.nan}, nan_ok=True
    )
    assert row(found, view="typos@0.1")["compared"] == 2
    assert len(found.notes) == 1 and "t, typos@0.1" in found.notes[0]


# -- which runs -----------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path) -> list[Run]:
    scores, facts = {"t": [{"acc": 0.5, "rmse": 1}]}, {"metrics": ["acc", "rmse"]}
    models = ("mine", "first", "second")
    return [write_run(tmp_path / "out", model, scores, task=facts) for model in models]


def test_runs_are_named_by_folder_by_path_or_as_they_are(three, tmp_path):
    mine, first, second = three
    assert [r.model for r in history(mine.folder, with_=first.folder.name).others] == ["first"]
    assert [r.model for r in history(str(mine.folder), with_=[second.folder, first]).others] == [
        "second",
        "first",
    ]
    assert [r.model for r in history(mine, with_=[first, first.folder.name]).others] == ["first"]
    away = tmp_path / "away" / mine.folder.name
    shutil.copytree(mine.folder, away)
    found = history(mine, with_=[away])
    assert found.values["run"].nunique() == found.values["model"].nunique() == 2


def test_unknown_runs_are_an_error_with_the_nearest(three):
    mine, first, _ = three
    with pytest.raises(DefinitionError) as error:
        history(mine, with_=["frist", first.folder.name, "first.s.c.m.20260101T000001", "zzz"])
    messages = error.value.messages
    assert len(messages) == 3
    assert [first.folder.name in message for message in messages] == [True, True, False]


@pytest.mark.parametrize(
    ("others", "word"), [(7, "7"), ([], "no run"), ([None], "None"), ("itself", "itself")]
)
def test_wrong_others_raise(three, others, word):
    others = three[0].folder.name if others == "itself" else others
    with pytest.raises(DefinitionError, match=word):
        history(three[0], with_=others)


@pytest.mark.parametrize(
    ("folder", "word"),
    [("out", "holds 3"), ("out/mien.s.c.m.20260101T000000", 'mean "mine'), (".", "run.json")],
)
def test_folders_that_are_no_runs_raise(three, tmp_path, folder, word):
    with pytest.raises(DataError, match=word):
        history(tmp_path / folder)


def test_a_folder_of_runs_means_all_in_it(three):
    current, first, _ = three
    assert len(history(current, with_=current.folder.parent).others) == 2
    (first.folder / "run.json").write_text("{}")
    found = history(current, with_=current.folder.parent)
    assert len(found.others) == 1 and first.folder.name in found.notes[0]


def test_unknown_options_and_metrics_raise(three):
    mine = three[0]
    assert set(history(mine, metric="rmse").ranks["metric"]) == {"rmse"}
    for options, message in (
        ({"on": "rows"}, "row"),
        ({"metric": "rmes"}, 'no metric "rmes". Did you mean "rmse"'),
        ({"metric": "zzz"}, "It has: acc, rmse"),
    ):
        with pytest.raises(DefinitionError, match=message):
            history(mine, **options)


def test_a_task_without_the_metric_is_noted(run):
    mine = run("mine", {"t": [0.5], "u": [{"r2": 1}]}, tasks={"u": {"metrics": ["r2"]}})
    found = history(mine, metric="acc")
    assert list(found.ranks["task"]) == ["t"]
    assert any("no acc: u" in note for note in found.notes)


@pytest.mark.parametrize(
    "text", ["{", "[1, 2]", "{}", '{"model": "x", "tasks": 3}', '{"model": "x", "tasks": [{}]}']
)
def test_a_broken_run_is_noted_and_an_error_if_named(three, text):
    mine, first, _ = three
    (first.folder / "run.json").write_text(text)
    found = history(mine)
    assert [run.model for run in found.others] == ["second"]
    assert len(found.notes) == 1 and f"{first.folder.name} is left out: " in found.notes[0]
    with pytest.raises(DataError, match="run.json"):
        history(mine, with_=[first.folder.name])
    with pytest.raises(DataError, match="run.json"):
        history(first.folder)


def test_damaged_folders_and_records_are_noted(three):
    mine, first, second = three
    (first.folder / "run.json").unlink()
    record = next((second.folder / "jobs").iterdir())
    whole = json.loads(record.read_text())
    record.write_text(json.dumps({**whole, "views": [{}]}))
    found = history(mine)
    assert found.others == []
    assert any("first" in note and "it has no run.json" in note for note in found.notes)
    assert any("second" in note and "damaged record" in note for note in found.notes)
    with pytest.raises(DataError, match="damaged record"):
        history(second)


def test_a_run_without_a_finished_job_has_nothing_to_compare(run):
    with pytest.raises(DataError, match="no finished job"):
        history(run("mine", {"t": []}))


# -- common questions, from real runs --------------------------------------------------------

NAMES = ["w", "x", "y", "z"]


def near(truth, name="pairs", **changes) -> karat.Task:
    """Ask how near "a" is to each of some items."""
    frame = pd.DataFrame({"one": "a", "other": NAMES[: len(truth)], "near": truth})
    frame["main"] = ["p", "p", "q", "q"][: len(truth)]
    kinds = {"kind": "regression", "modality": "entity"}
    fields = ["one", "other"]
    data = karat.Dataset.from_columns(frame, fields, "near", name="d", group="main", **kinds)
    given = {"probe": "similarity", "split": "all", "metrics": ["mae"], **changes}
    return karat.Task(name, data, **given)


def cosines(*wanted) -> dict[str, np.ndarray]:
    """Return vectors whose cosines to "a" are these; None means no vector."""
    pairs = zip(NAMES, wanted, strict=False)
    found = {n: np.array([c, math.sqrt(1 - c * c)]) for n, c in pairs if c is not None}
    return {"a": np.array([1.0, 0.0]), **found}


def runs_of(task, output, **models) -> list[Run]:
    return [karat.evaluate({name: each}, task, output=output)[0] for name, each in models.items()]


@pytest.mark.parametrize("missing", ["ignore", "penalize"])
def test_the_common_questions_turn_the_order_around(tmp_path, missing):
    task = near([0.5, 0.5, 0.5, 0.0], missing=missing)
    # errors 0.1, 0.1, 0.1, 0.9 and 0.2, 0.2, 0.2
    models = {"mine": cosines(0.6, 0.6, 0.6, 0.9), "other": cosines(0.7, 0.7, 0.7)}
    mine, _ = runs_of(task, tmp_path, **models)
    own = history(mine)
    if missing == "ignore":
        assert values(own, "pairs", "mae") == pytest.approx({"mine": 0.3, "other": 0.2}, abs=1e-6)
        assert row(own, "pairs", "mae")["rank"] == 2
    assert values(own, "pairs", "mae", "coverage") == {"mine": 1.0, "other": 0.75}
    assert len(own.notes) == 1 and "common" in own.notes[0]
    found = history(mine, on="common")
    assert found.common
    assert values(found, "pairs", "mae") == pytest.approx({"mine": 0.1, "other": 0.2}, abs=1e-6)
    one = row(found, "pairs", "mae")
    assert (one["rank"], one["questions"], one["asked"]) == (1, 3, 4)
    assert (one["coverage"], one["best_coverage"]) == (1.0, 0.75)
    assert any("3 of 4 questions" in note for note in found.notes)


def test_only_questions_of_every_run_are_common(tmp_path):
    models = {"mine": cosines(None, 0.6, 0.9, 0.9), "a": cosines(0.9, 0.8, 0.5, None)}
    models["b"] = cosines(0.9, 0.5, None, 0.9)
    found = history(runs_of(near([0.5] * 4), tmp_path, **models)[0], on="common")
    expected = {"mine": 0.1, "a": 0.3, "b": 0.0}
    assert values(found, "pairs", "mae") == pytest.approx(expected, abs=1e-6)
    assert values(found, "pairs", "mae", "rank") == {"mine": 2, "a": 3, "b": 1}
    assert any("1 of 4 questions" in note for note in found.notes)


def test_nothing_in_common(tmp_path):
    models = {"mine": cosines(0.6, 0.6), "a": cosines(None, None, 0.5, 0.5)}
    found = history(runs_of(near([0.5] * 4), tmp_path, **models)[0], on="common")
    assert found.ranks["value"].isna().all() and found.ranks["rank"].isna().all()
    assert any("0 of 4 questions" in note for note in found.notes)


def test_groups_are_scored_on_the_remaining_rows(tmp_path):
    task = near([0.1, 0.2, 0.3, 0.4], metrics=["kendall"])
    models = {"mine": cosines(0.9, 0.1, 0.2, 0.8), "other": cosines(0.1, 0.3, 0.5)}
    mine, _ = runs_of(task, tmp_path, **models)
    assert values(history(mine), "pairs", "kendall")["mine"] == pytest.approx(0.0)
    # of group q one row is left, so that p alone has an order: falling and rising
    found = history(mine, on="common")
    assert values(found, "pairs", "kendall") == pytest.approx({"mine": -1, "other": 1})


def entities(target, kind="classification", **changes) -> karat.Task:
    ids = [f"e{i}" for i in range(len(target))]
    frame = pd.DataFrame({"id": ids, "y": target})
    data = karat.Dataset.from_columns(frame, ["id"], "y", name="d", kind=kind, modality="entity")
    return karat.Task("t", data, **changes)


def points(count, known, seed) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"e{i}": rng.normal(size=3) + i % 2 for i in range(count) if i in known}


def test_clusters_are_scored_on_the_remaining_rows(tmp_path):
    task = entities(["a", "b"] * 12, split="all", metrics=["v_measure"])
    runs = runs_of(task, tmp_path, mine=points(24, range(20), 1), other=points(24, range(4, 24), 2))
    found = history(runs[0], on="common")
    expected = {}
    for run in runs:
        answers = run.predictions("t")
        kept = (answers.question >= 4) & (answers.question < 20)
        assert kept.sum() == 16
        expected[run.model] = v_measure_score(answers.target[kept], answers.predictions[kept])
    assert values(found, "t", "v_measure") == pytest.approx(expected)
    assert row(found, "t", "v_measure")["questions"] == 16


def test_common_questions_are_found_fold_by_fold(tmp_path):
    task = entities(["a", "b"] * 12, split={"use": "kfold", "folds": 3}, metrics=["acc"])
    runs = runs_of(task, tmp_path, mine=points(24, range(24), 1), other=points(24, range(18), 2))
    found = history(runs[0], on="common")
    kept = [runs[1].predictions("t", fold).question for fold in range(3)]
    mine = [runs[0].predictions("t", fold) for fold in range(3)]
    right = [(p.predictions == p.target)[rows].mean() for p, rows in zip(mine, kept, strict=True)]
    assert values(found, "t")["mine"] == pytest.approx(np.mean(right))
    # of the other run nothing is left out
    assert values(found, "t")["other"] == values(history(runs[0]), "t")["other"]
    assert (row(found)["questions"], row(found)["asked"], row(found)["folds"]) == (18, 24, 3)


def test_common_folds_are_noted_too(tmp_path):
    task = entities(["a", "b"] * 12, split={"use": "kfold", "folds": 3}, metrics=["acc"])
    (mine,) = runs_of(task, tmp_path, mine=points(24, range(24), 1))
    karat.evaluate(
        {"other": points(24, range(18), 2)}, task, output=tmp_path, only=karat.Only(folds=[1])
    )
    found = history(mine, on="common")
    assert row(found)["folds"] == 1 and row(found)["asked"] == 8
    assert "1 of 3 folds" in found.notes[0] and "other lacks 0, 2" in found.notes[0]


@pytest.mark.parametrize(
    "probe, metric, reason", [("same-class", "map", "list"), ("duplicates", "auc", "pairs")]
)
def test_pairs_and_lists_keep_their_own_scores(tmp_path, probe, metric, reason):
    task = entities(["a", "b"] * 6, probe=probe, split="all", metrics=[metric])
    runs = runs_of(task, tmp_path, mine=points(12, range(12), 1), other=points(12, range(9), 2))
    found = history(runs[0], on="common")
    assert len(found.notes) == 1 and reason in found.notes[0]
    assert row(found, "t", metric)["questions"] is None
    own = values(history(runs[0]), "t", metric)
    assert values(found, "t", metric) == own
    assert row(found, "t", metric)["compared"] == 2


def test_different_candidates_are_noted(tmp_path):
    ids = [f"e{i}" for i in range(8)]
    frame = pd.DataFrame({field: np.roll(ids, i) for i, field in enumerate("abcd")})
    data = karat.Dataset.from_columns(
        frame, ["a", "b", "c"], "d", name="q", kind="items", modality="entity"
    )
    task = karat.Task("t", data, probe="analogy", split="all", metrics=["hits@1"])
    mine, other = runs_of(task, tmp_path, mine=points(8, range(8), 1), other=points(8, range(7), 2))
    found = history(mine, on="common")
    # a question has 4 neighbors, so that the item without a vector removes 4 of 8
    assert (row(found, "t", "hits@1")["questions"], row(found, "t", "hits@1")["asked"]) == (4, 8)
    assert any("4 to 5 candidate" in note for note in found.notes)


def test_predictions_that_are_gone_or_of_other_questions_leave_a_run_out(tmp_path):
    half, other = cosines(0.5, 0.5, 0.5), cosines(0.7, 0.7, 0.7)
    models = {"mine": cosines(0.6, 0.6, 0.6, 0.9), "gone": half, "odd": half, "other": other}
    mine, gone, odd, _ = runs_of(near([0.5, 0.5, 0.5, 0.0]), tmp_path, **models)
    shutil.rmtree(gone.folder / "predictions")
    file = odd.folder / "predictions" / "pairs" / "0" / "predictions.csv"
    file.write_text(file.read_text().replace(",0.5\n", ",0.4\n"))
    found = history(mine, on="common")
    ranks = {"mine": 1, "gone": None, "odd": None, "other": 2}
    assert values(found, "pairs", "mae", "rank") == ranks
    assert {note.split()[0] for note in found.notes} == {"pairs:", "gone", "odd"}
    shutil.rmtree(mine.folder / "predictions")
    found = history(mine, on="common")
    assert row(found, "pairs", "mae")["compared"] == 4
    assert len(found.notes) == 1 and "this run" in found.notes[0]


def test_full_coverage_changes_nothing_in_any_view_or_draw(two_classes, tmp_path):
    task = two_classes("t", corruptions={"noise_gaussian": [0.5, 2.0]}, draws=2)
    mine, _ = karat.evaluate(["logistic-regression", "dummy"], task, output=tmp_path)
    own, found = (history(mine, views=True, on=on) for on in ("folds", "common"))
    views = ["clean", "noise_gaussian@0.5", "noise_gaussian@2"]
    assert list(dict.fromkeys(found.ranks["view"])) == views
    pd.testing.assert_frame_equal(found.values, own.values)
    # two folds make 20 questions, and two draws of them 40
    assert found.ranks["questions"].tolist() == found.ranks["asked"].tolist() == [20] * 2 + [40] * 4


def test_a_task_with_another_probe_is_not_compared(line, tmp_path):
    heads = ("linear-regression", "knn", "knn", "knn")
    tasks = [line(probe={"use": "trained", "head": head}) for head in heads]
    runs = [karat.evaluate("onehot", task, output=tmp_path)[0] for task in tasks]
    found = history(runs[-1])
    assert "other probe" in set(found.values["status"])
    assert found.ranks["compared"].max() == 3
