"""What stands beside a board: who is compared with whom, by what rule, on what."""

import numpy as np
import pandas as pd
import pytest

from karat.report.notes import caption, notes, plain, short
from karat.results.leaderboard import leaderboard

COLUMNS = "task model repeat fold corruption severity epoch metric value".split()

#: a failed on u, nobody ran v but b
TASKS = {"t": {"a": 0.5, "b": 0.4}, "u": {"a": np.nan, "b": 0.3}, "v": {"b": 0.1}}
LETTERS = "Models that share a letter cannot be told apart on these tasks."


def board(**options):
    rows = [
        (task, model, 0, 0, "", 0.0, -1, "acc", value)
        for task, models in TASKS.items()
        for model, value in models.items()
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    kinds = {"t": "first", "u": "first", "v": "second"}
    return leaderboard(table.assign(kind=table["task"].map(kinds)), **options)


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {},
            [
                LETTERS,
                "failed, without a score: 1 cell, counted as the worst.",
                "… not run: 1 cell, left out.",
                "Too few tasks to compare, below 3: a.",
            ],
        ),
        (
            {"missing": "exclude"},
            [
                LETTERS,
                "failed, without a score: 1 cell.",
                "… not run: 1 cell.",
                "Compared on the folds in which all models have a score: 1 of 3 tasks.",
            ],
        ),
        (
            {"missing": "baseline:b", "normalise": "range"},
            [
                LETTERS,
                "score: mean over the tasks a model takes; 1 is a task's best model, 0 the worst.",
                "failed, without a score: 1 cell.",
                "… not run: 1 cell.",
                "Missing cells counted as the score of b: 2 of 2.",
            ],
        ),
        (
            {"by": "kind"},
            [
                LETTERS,
                "failed, without a score: 1 cell, counted as the worst.",
                "… not run: 1 cell, left out.",
                "No two models to compare here: second.",
            ],
        ),
        (
            {"by": "task", "normalise": "baseline:b"},
            [
                "Models that share a letter cannot be told apart within their task.",
                "normalised: 1 is the best model of the task, 0 b (-1 the lowest).",
                "95 % of the score: t interval over folds: their spread, not who is better.",
                "failed, without a score: 1 cell, counted as the worst.",
                "… not run: 1 cell, left out.",
            ],
        ),
    ],
)
def test_notes_tell_the_rule_and_the_counts(options, said):
    assert list(notes(board(**options))) == said


def test_where_no_task_is_common_there_is_advice():
    rows = [
        (task, model, 0, 0, "", 0.0, -1, "acc", 0.5)
        for task, model in (("one", "a"), ("other", "b"))
    ]
    found = leaderboard(pd.DataFrame(rows, columns=COLUMNS), missing="exclude")
    said = "No task has a score of all these models: name fewer runs, or another rule."
    assert said in list(notes(found))


@pytest.mark.parametrize(
    "rule, told",
    [
        ("worst", "1 job failed: each counts as the worst score of its fold."),
        ("exclude", "1 job failed: its fold counts for nobody."),
        ("baseline:b", "1 job failed: each counts as the score of b in its fold."),
    ],
)
def test_failed_jobs_are_told_with_what_they_count_as(rule, told):
    made = board(missing=rule)
    assert told in list(notes(made.assign(failed=[1, 0])))


def test_folds_that_are_not_run_yet_are_told():
    made = board()
    made.attrs["missing"]["partial"] = 2
    said = "2 cells of a run that is not finished: compared on the folds all have."
    assert said in list(notes(made))


@pytest.mark.parametrize(
    "options, start",
    [
        ({}, "2 models by mean rank over 2 of 3 tasks, 1 is best. ↑ higher"),
        ({"missing": "baseline:b"}, "2 models by mean rank over 3 tasks, 1 is best. ↑ higher"),
        (
            {"by": "kind"},
            "2 models by mean rank over 2 of 3 tasks within each kind, 1 is best. Mis",
        ),
        ({"by": "task"}, "2 models on 3 tasks: rank on each, 1 is best. ↑ higher"),
    ],
)
def test_a_caption_says_what_is_ranked(options, start):
    assert caption(board(**options)).startswith(start)


def test_names_are_made_harmless_and_short():
    assert plain("a\tb\n c") == "a b c"
    assert plain("x\x1b]0;title\x07") == "x\ufffd]0;title\ufffd"
    assert short("x" * 40) == "x" * 31 + "…"
    assert short("x" * 32) == "x" * 32
