"""Races from run folders and replays: tables, sentences, leaderboards, reports and bad input."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError, DefinitionError
from karat.ext.decide.race import follow_races, replay_race
from karat.ext.decide.race_wording import race_rows, replay_rows
from karat.ext.decide.racing import RaceState, Rules
from karat.reporting.page import make_bundle, plain_sections
from karat.results.load import gather_scores, make_cells
from karat.results.run import open_runs
from karat.results.tables import SCORE_COLUMNS

from ...races import guess, make_tasks  # noqa: F401 (a fixture)

TASKS = make_tasks(14)


@pytest.fixture(scope="module")
def folder(guess, tmp_path_factory):  # noqa: F811
    """The folder of a race in which two of four models leave; one has a name to escape.

    The other two differ by so little that 14 tasks do not show it.
    """
    folder = tmp_path_factory.mktemp("race")
    models = {
        "good": guess(0.95),
        "fair": guess(0.94),
        "poor": guess(0.6),
        "<b>bad</b>": guess(0.3),
    }
    karat.race(models, TASKS, output=folder)
    return folder


def table_of(means, tasks=20, folds=3, spread=0.1, seed=0, metric="acc"):
    """Return a table of scores of models with these means."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"t{t}", name, 0, fold, "", 0.0, 0, -1, metric, mean + spread * rng.standard_normal())
        for t in range(tasks)
        for name, mean in means.items()
        for fold in range(folds)
    ]
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def test_a_race_is_read_from_its_folder(folder):
    (found,) = follow_races(folder)
    assert found.outcome in ("decided", "undecided") and found.remaining[0] in ("good", "fair")
    assert found.tasks == 14 and found.jobs == found.trace["jobs"].iloc[-1]
    assert found.saved == 1 - found.jobs / (4 * 14 * 2)
    whole = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert whole["remaining"] == found.remaining and len(whole["models"]) == 4
    gone = [row for row in whole["models"] if row["status"] == "eliminated"]
    assert {row["model"] for row in gone} == {"poor", "<b>bad</b>"}
    assert all(row["e_value"] >= row["needed"] and row["better"] for row in gone)
    assert "&lt;b&gt;bad" in found._repr_html_() and "<b>bad" not in found._repr_html_()
    assert f"{found.jobs} of 112 jobs" in " ".join(repr(found).split())
    assert race_rows(found)["model"].tolist() == found.models["model"].tolist()


def test_the_trace_ends_where_a_model_leaves(folder):
    (found,) = follow_races(folder)
    for row in found.models.to_dict("records"):
        known = found.trace[f"e_value {row['model']}"].dropna()
        assert len(known) == row["tasks"] and known.iloc[-1] == pytest.approx(row["e_value"])


def test_tables_are_written(folder, tmp_path):
    (found,) = follow_races(folder)
    paths = found.to_csv(tmp_path)
    assert [path.name for path in paths] == ["race_models.csv", "race_trace.csv"]
    assert len(pd.read_csv(paths[0])) == 4


def test_folders_without_a_race_have_none(guess, tmp_path):  # noqa: F811
    karat.evaluate({"a": guess(0.9)}, TASKS[:1], output=tmp_path)
    assert follow_races(tmp_path) == []


def test_a_missing_run_is_reported(folder):
    runs = [run for run in open_runs(folder) if run.model != "fair"]
    (found,) = follow_races(runs)
    assert any("fair" in note for note in found.notes) and found.tasks_used == 0


def test_no_leaderboard_ranks_an_eliminated_model(folder):
    board = karat.leaderboard(folder)
    assert sorted(board.index) == ["fair", "good"]
    assert board["rank"].sum() == pytest.approx(3)  # ranks among two models
    gone = board.attrs["eliminated"]
    assert set(gone) == {"poor", "<b>bad</b>"}
    assert all("eliminated after" in text and "e-value" in text for text in gone.values())
    for by in ("task", "kind"):
        view = karat.leaderboard(folder, by=by)
        assert set(view.index.get_level_values("model")) == {"fair", "good"}
        assert view.attrs["eliminated"] == gone


def test_eliminated_models_alone_have_no_leaderboard(folder):
    runs = [run for run in open_runs(folder) if run.model == "poor"]
    with pytest.raises(DataError, match="eliminated"):
        karat.leaderboard(runs)
    with pytest.raises(DataError, match="eliminated"):
        make_bundle(runs)


def test_a_model_with_another_run_is_ranked(folder, guess, tmp_path):  # noqa: F811
    other = karat.evaluate({"poor": guess(0.6)}, TASKS, output=tmp_path)
    board = karat.leaderboard([*open_runs(folder), *other])
    assert "poor" in board.index and set(board.attrs["eliminated"]) == {"<b>bad</b>"}


def test_the_state_of_a_cell_is_eliminated(folder):
    given = gather_scores(open_runs(folder))
    cells = make_cells(given, given.chosen({}))
    states = cells.states[cells.models.index("poor")]
    assert set(states) == {"ok", "eliminated"}


def test_models_that_are_decided_early_are_ranked_on_the_tasks_that_they_ran(
    guess,  # noqa: F811
    tmp_path,
):
    models = {"good": guess(0.95), "fair": guess(0.6), "bad": guess(0.1)}
    found = karat.race(models, TASKS, goal="order", output=tmp_path)
    assert found.remaining == ["good", "fair", "bad"]
    rows = found.models.set_index("model")
    assert rows.loc["bad", ["place_low", "place_high"]].tolist() == [3, 3]
    board = karat.leaderboard(tmp_path)
    assert sorted(board.index) == ["bad", "fair", "good"]
    assert len(board.attrs["tasks"]) == found.models["tasks"].min()


def test_the_report_shows_the_race(folder):
    bundle = make_bundle(folder)
    (shown,) = bundle["races"]
    (found,) = follow_races(folder)
    assert shown["sentence"] == found.sentence and shown["jobs"] == found.jobs
    assert [model["name"] for model in bundle["models"]] == list(karat.leaderboard(folder).index)
    assert [line["model"] for line in shown["lines"]] == found.models["model"].tolist()
    assert [len(line["log"]) for line in shown["lines"]] == found.models["tasks"].tolist()
    assert any("Not ranked: poor, eliminated after" in note for note in bundle["notes"])
    sections = "".join(plain_sections(bundle))
    assert "<h2>Race</h2>" in sections and "&lt;b&gt;bad" in sections


def test_reports_without_a_race_are_as_before(guess, tmp_path):  # noqa: F811
    karat.evaluate({"a": guess(0.9), "b": guess(0.5)}, TASKS[:2], output=tmp_path)
    assert "races" not in make_bundle(tmp_path)


# -- replays --------------------------------------------------------------------------------


def test_a_replay_counts_what_races_would_have_run():
    # a clear order: every race ends alike, and its jobs can be counted by hand
    table = table_of({"a": 0.9, "b": 0.5, "c": 0.1}, tasks=30, spread=0.001)
    found = replay_race(table, orders=5)
    assert found.full_jobs == 3 * 30 * 3
    state, jobs = RaceState(Rules(), [0] * 3), 0
    while not state.over:
        jobs += int(state.running.sum())
        state.update(np.array([[0.9], [0.5], [0.1]]), np.ones(3, dtype=bool))
    assert found.orders["jobs"].tolist() == pytest.approx([jobs / 270] * 5)
    assert found.times_fewer == pytest.approx(270 / jobs)
    assert found.orders[["best_kept", "top_kept", "same_top"]].to_numpy().all()
    assert found.models["model"].tolist() == ["a", "b", "c"]
    assert found.models["eliminated"].tolist() == [0, 1, 1]
    assert len(replay_rows(found)) == 3 and "times fewer" in found.sentence
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_headline_of_a_replay_rests_on_the_races_that_were_decided():
    # the two best are equal, so that no race can find the best; the third is far behind
    table = table_of({"a": 0.9, "b": 0.9, "c": 0.1}, tasks=30, spread=0.2)
    found = replay_race(table, orders=6)
    assert found.orders["decided"].equals(found.orders["remain"] == 1)
    if found.decided == 0:
        assert np.isnan(found.times_fewer) and "times fewer" not in found.sentence
        assert found.to_dict()["times_fewer"] is None
    assert f"{int(found.orders['decided'].sum())} of 6 races" in found.sentence
    clear = replay_race(table_of({"a": 0.9, "b": 0.5, "c": 0.1}, tasks=30, spread=0.001), orders=2)
    assert clear.decided == 1 and "2 of 2 races (100 %)" in clear.sentence
    assert "undecided" not in clear.sentence
    half = dataclasses.replace(clear, orders=clear.orders.assign(decided=[True, False]))
    half.orders["jobs"] = [0.1, 0.9]
    assert half.times_fewer == pytest.approx(10)  # the undecided race does not count
    assert "1 of 2 races (50 %)" in half.sentence and "90.0 % of the jobs" in half.sentence


def test_a_replay_is_the_same_with_the_same_seed():
    table = table_of({"a": 0.6, "b": 0.5, "c": 0.5, "d": 0.4})
    first, again = (replay_race(table, orders=4) for _ in range(2))
    assert first.orders.equals(again.orders)
    assert not first.orders.equals(replay_race(table, orders=4, seed=1).orders)


def test_all_folds_cost_more_jobs():
    table = table_of({"a": 0.9, "b": 0.1}, spread=0.01)
    one, all_ = (replay_race(table, orders=2, folds_per_task=n) for n in (1, 3))
    assert all_.orders["jobs"].tolist() == pytest.approx((3 * one.orders["jobs"]).tolist())


def test_a_replay_of_runs(folder, guess, tmp_path):  # noqa: F811
    karat.evaluate({"a": guess(0.99), "b": guess(0.2)}, TASKS, output=tmp_path)
    found = replay_race(tmp_path, orders=3)
    assert found.tasks == 14 and found.orders["best_kept"].all()
    names = [path.name for path in found.to_csv(tmp_path / "out")]
    assert names == ["replay_models.csv", "replay_orders.csv"]


def test_a_replay_respects_the_direction_of_metrics():
    table = table_of({"a": 0.9, "b": 0.1}, spread=0.001, metric="rmse")
    assert replay_race(table, orders=2).models["model"].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("means", "tasks", "options", "error"),
    [
        ({"a": 0.5}, 20, {}, DefinitionError),
        ({"a": 0.5, "b": 0.4}, 7, {}, DataError),
        ({"a": 0.5, "b": 0.4}, 20, {"orders": 0}, DefinitionError),
        ({"a": 0.5, "b": 0.4}, 20, {"goal": "top-2"}, DefinitionError),
        ({"a": 0.5, "b": 0.4}, 20, {"confidence": 0}, DefinitionError),
    ],
)
def test_what_cannot_be_replayed(means, tasks, options, error):
    with pytest.raises(error):
        replay_race(table_of(means, tasks), **options)
