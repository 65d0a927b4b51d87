"""The caption and the notes of a leaderboard."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.analysis.leaderboard import leaderboard
from karat.reporting.bundle import make_bundle
from karat.reporting.notes import (
    Budget,
    PageIndex,
    caption,
    clean,
    compact,
    notes,
    plain,
    short,
    size,
    to_json,
)
from karat.results.load import FrozenRun


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123456789, 0.123457),
        (1234567.8, 1234570),
        (-0.0, 0),
        (float("inf"), None),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.array([[1.0, np.nan]]), [[1, None]]),
        (True, True),
        ({1: (2.5,)}, {"1": [2.5]}),
    ],
)
def test_values_become_short_ones(value, expected):
    found = compact(value)
    assert found == expected and type(found) is type(expected)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_six_digits(value):
    assert compact(value) == pytest.approx(value, rel=5e-6, abs=0)


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.floats()))
def test_what_is_written_reads_back_and_ends_no_script(value):
    short = compact(value)
    text = to_json(short)
    assert json.loads(text) == short
    assert not {"<", "\u2028", "\u2029"} & set(text)
    assert size(short) == len(text.encode())


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_written_and_whole_ones_stay(text):
    clean(text).encode()
    if not any("\ud800" <= sign <= "\udfff" for sign in text):
        assert clean(text) == text


def test_surrogate_pairs_are_joined():
    assert clean("\ud83d\ude00!\ud83d") == "\U0001f600!\ufffd"


COLUMNS = "task model repeat fold corruption severity epoch metric value".split()

#: a failed on u; only b ran v
TASKS = {"t": {"a": 0.5, "b": 0.4}, "u": {"a": np.nan, "b": 0.3}, "v": {"b": 0.1}}


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
    "options, words",
    [
        ({}, ["letter", "1 cell, counted", "1 cell, left out", ": a."]),
        ({"missing": "exclude"}, ["letter", "1 cell.", "1 cell.", "1 of 3 tasks"]),
        (
            {"missing": "baseline:b", "normalize": "range"},
            ["letter", "score: mean", "1 cell.", "1 cell.", "of b: 2 of 2"],
        ),
        ({"by": "kind"}, ["letter", "1 cell, counted", "1 cell, left out", ": second."]),
        (
            {"by": "task", "normalize": "baseline:b"},
            ["letter", "0 is b", "95 %", "1 cell, counted", "1 cell, left out"],
        ),
    ],
)
def test_notes_name_the_rule_and_the_counts(options, words):
    found = list(notes(board(**options)))
    assert len(found) == len(words)
    assert all(word in note for word, note in zip(words, found, strict=True)), found


def test_advice_where_no_task_is_common():
    rows = [
        (task, model, 0, 0, "", 0.0, -1, "acc", 0.5)
        for task, model in (("one", "a"), ("other", "b"))
    ]
    found = leaderboard(pd.DataFrame(rows, columns=COLUMNS), missing="exclude")
    assert any("--missing" in note for note in notes(found))


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


def test_names_are_sanitized_and_cut():
    assert plain("a\tb\n c") == "a b c"
    assert plain("x\x1b]0;title\x07") == "x\ufffd]0;title\ufffd"
    assert short("x" * 40) == "x" * 31 + "…"
    assert short("x" * 32) == "x" * 32


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_rounds_name_every_pair_once_and_no_task_waits_for_another(pairs):
    shown = PageIndex([], [], [])
    shown.__dict__["done"] = dict.fromkeys(pairs)
    order = list(shown.rounds())
    assert sorted(order) == sorted(pairs)
    for task in {task for task, _ in pairs}:
        models = [model for t, model in order if t == task]
        assert models == sorted(models), "the best first"
    turns = [sum(t == task for t, _ in order[:i]) for i, (task, _) in enumerate(order)]
    assert turns == sorted(turns), "nobody has a second turn before all had the first"


def test_a_budget_is_spent_by_the_bytes_of_json():
    budget = Budget(10)
    assert budget.take(["abc"])  # ["abc"] is 7 bytes
    assert not budget.take("ab")  # 4, and 3 are left
    assert budget.take(0.5)
    assert budget.left == 0


def test_a_page_reads_a_run_once(make_run):
    run = make_run("m", {"t": [0.5, 0.7]})
    still = FrozenRun(run.folder)
    assert len(still.records()) == 2
    assert len(still.scores()) == 2
    (run.folder / "jobs" / "t.1.json").unlink()
    run.finish()
    assert (len(still.records()), len(still.scores()), len(run.records())) == (2, 2, 1)
    assert make_bundle(run)["folds"] == [[[0.5]]], "another page sees what is there now"
