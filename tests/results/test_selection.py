"""Runs are found by folder, by name or among the neighbors of a run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from karat.errors import DataError, DefinitionError
from karat.results.run import Run
from karat.results.selection import find_others, find_run, make_sides, rank_values, shared_units


@pytest.fixture
def make(tmp_path):
    def make(model: str, stamp: str) -> Run:
        task = {"name": "t", "dataset": "d", "kind": "classification", "metrics": ["acc"]}
        task |= {"folds": [0], "higher_is_better": {"acc": True}, "fingerprint": "f"}
        about = {"suite": "s", "constraint": "c", "mode": "local", "seed": 42, "karat": "0.1.0"}
        about |= {"version": "1", "params": {}}
        facts = {**about, "model": model, "stamp": stamp, "tasks": [task]}
        run = Run.create(tmp_path / "results", facts)
        view = {"corruption": "", "severity": 0.0, "draw": 0, "scores": {"acc": 0.5}}
        record = {"spec": "", "model": model, "task": "t", "fold": 0, "repeat": 0, "seed": 42}
        record |= {"metric": "acc", "status": "ok", "info": "", "notes": [], "history": []}
        run.write({**record, "views": [view], "utc": "2026-01-01T00:00:00"}, {})
        run.finish()
        return run

    return make


def test_a_run_is_found_by_its_folder(make):
    run = make("a", "1")
    assert find_run(run.folder).model == find_run(str(run.folder)).model == "a"
    assert find_run(run) is run


def test_folders_that_are_not_a_complete_run_are_explained(make):
    run = make("a", "1")
    with pytest.raises(DataError, match=run.folder.name):
        find_run(run.folder.parent)
    with pytest.raises(DataError, match=run.folder.name):
        find_run(str(run.folder) + "x")
    (run.folder / "run.json").write_text('{"model": "a"}')
    with pytest.raises(DataError, match="tasks"):
        find_run(run.folder)
    (run.folder / "run.json").unlink()
    with pytest.raises(DataError, match="run.json"):
        find_run(run.folder)


def test_the_others_are_the_runs_of_the_same_folder_or_those_named(make):
    first, second, third = (
        make(model, stamp) for model, stamp in (("a", "1"), ("b", "2"), ("c", "3"))
    )
    found, notes = find_others(first)
    assert {run.model for run in found} == {"b", "c"} and not notes
    found, _ = find_others(first, [second.folder, second.folder])
    assert [run.model for run in found] == ["b"]
    (third.folder / "run.json").write_text("{")
    found, notes = find_others(first)
    assert [run.model for run in found] == ["b"] and third.folder.name in notes[0]
    for wrong in (3, [], [first.folder / "nothing"]):
        with pytest.raises(DefinitionError):
            find_others(first, wrong)


def test_sides_have_the_scores_by_task_view_and_fold(make):
    (side,) = make_sides([make("a", "1")])
    assert (side.seed, list(side.tasks)) == (42, ["t"])
    (by_unit,) = side.answered["t"].values()
    assert [answered.scores["acc"] for answered in by_unit.values()] == [0.5]


@given(st.lists(st.integers(0, 5) | st.none(), min_size=2, max_size=8), st.booleans())
def test_ranks_are_those_of_competitions(scores, higher):
    numbers = [math.nan if each is None else float(each) for each in scores]
    known = [each for each in numbers if not math.isnan(each)]
    expected = iter(rankdata([-v if higher else v for v in known], method="min") if known else ())
    ranks = [None if math.isnan(v) else int(next(expected)) for v in numbers]
    assert rank_values(numbers, higher) == (ranks if len(known) > 1 else [None] * len(numbers))


@given(st.lists(st.sets(st.tuples(st.integers(0, 3), st.just(0))), min_size=1, max_size=5))
def test_shared_folds_are_held_by_all_who_stay(held):
    shared, lost = shared_units(held)
    there = [units for i, units in enumerate(held) if units and i not in lost]
    assert set(shared) == (set.intersection(*there) if there else set())
    assert bool(shared) == any(held)
    assert not held[0] or 0 not in lost
