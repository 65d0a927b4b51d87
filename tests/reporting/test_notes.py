"""The caption and the notes of a leaderboard."""

import numpy as np
import pytest

from karat.analysis.leaderboard import leaderboard
from karat.reporting.notes import caption, notes

from ..score_data import score_table

#: a failed on u; only b ran v
TASKS = {"t": {"a": 0.5, "b": 0.4}, "u": {"a": np.nan, "b": 0.3}, "v": {"b": 0.1}}


def board(**options):
    kinds = {"t": "first", "u": "first", "v": "second"}
    return leaderboard(score_table(TASKS, kind=kinds), **options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, ["letter", "1 cell, counted", "1 cell, left out", ": a."]),
        ({"missing": "exclude"}, ["one fold", "1 cell.", "1 cell.", "1 of 3 tasks"]),
        (
            {"missing": "baseline:b", "normalize": "range"},
            ["letter", "score: mean", "1 cell.", "1 cell.", "of b: 2 of 2"],
        ),
        ({"by": "kind"}, ["letter", "1 cell, counted", "1 cell, left out", ": second."]),
        (
            {"by": "task", "normalize": "baseline:b"},
            ["one fold", "0 is b", "95 %", "1 cell, counted", "1 cell, left out"],
        ),
    ],
)
def test_notes_name_the_rule_and_the_counts(options, words):
    found = list(notes(board(**options)))
    assert len(found) == len(words)
    assert all(word in note for word, note in zip(words, found, strict=True)), found


def test_advice_where_no_task_is_common():
    found = leaderboard(score_table({"one": {"a": 0.5}, "other": {"b": 0.5}}), missing="exclude")
    assert any("--missing" in note for note in notes(found))


def test_note_on_models_with_few_tasks():
    tasks = {f"t{i}": {"broad": 0.5, "other": 0.4} for i in range(3)}
    tasks["t0"]["narrow"] = 0.6
    (note,) = [line for line in notes(leaderboard(score_table(tasks))) if "narrow" in line]
    assert note.endswith(": narrow.")
    # no note if no model has three tasks
    del tasks["t2"]
    assert not [line for line in notes(leaderboard(score_table(tasks))) if "narrow" in line]


@pytest.mark.parametrize(
    "rule, word", [("worst", "worst"), ("exclude", "left out"), ("baseline:b", "of b")]
)
def test_failed_jobs_and_unfinished_runs(rule, word):
    found = board(missing=rule).assign(failed=[1, 0])
    found.attrs["missing"]["partial"] = 2
    *_, failed, partial = (note for note in notes(found) if "1 job" in note or "2 cells" in note)
    assert "1 job failed" in failed and word in failed
    assert "2 cells" in partial


@pytest.mark.parametrize(
    "options, start",
    [
        ({}, "2 models by mean rank over 2 of 3 tasks,"),
        ({"missing": "baseline:b"}, "2 models by mean rank over 3 tasks,"),
        ({"by": "kind"}, "2 models by mean rank over 2 of 3 tasks within each kind,"),
        ({"by": "task"}, "2 models on 3 tasks:"),
    ],
)
def test_captions(options, start):
    assert caption(board(**options)).startswith(start)


def test_notes_on_partial_scores_seeds_and_repeats():
    found = board()
    found.attrs["partial"] = {"a": {"t": (3, 5)}}
    found.attrs["seed_spread"] = {"a": {"t": 0.01, "u": 0.02}, "b": {"t": 0.03}}
    found.attrs["repeats"] = {"a": 2, "b": 3}
    text = "\n".join(notes(found))
    assert "a on t (3 of 5)" in text
    assert "a: standard deviation over seeds 0.010 to 0.020 (2 tasks)" in text
    assert "5 repeated jobs" in text and "(a, b)" in text
