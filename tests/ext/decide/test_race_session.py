"""Races that run: rounds, budgets, resuming, later models, workers, Dask, failures, bad input."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec

import numpy as np
import pytest

import karat
from karat.errors import DataError, DefinitionError
from karat.execution.arguments import Machines, Only, Output
from karat.execution.progress import Progress
from karat.execution.session import Stopped
from karat.ext.decide.race import follow_races, race
from karat.ext.decide.race_session import (
    FollowedRace,
    RaceOptions,
    RacePlan,
    RaceScores,
    exit_facts,
    exit_text,
    parse_goal,
    random_order,
)
from karat.results.run import open_runs

from ...races import guess, make_tasks  # noqa: F401 (a fixture)

TASKS = make_tasks(14)


@pytest.fixture(scope="module")
def models(guess):  # noqa: F811
    return {"good": guess(0.95), "fair": guess(0.9), "poor": guess(0.6), "worst": guess(0.3)}


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    """A race without interruption, and its folder."""
    folder = tmp_path_factory.mktemp("race")
    return race(models, TASKS, output=folder), folder


def answers(found):
    """Return what a race decided."""
    return found.models[["model", "status", "tasks", "e_value", "why"]].to_dict("records")


def scored(folder):
    """Return the scores of all runs by model, task and fold."""
    return {
        (run.model, record["task"], record["fold"]): record["views"][0]["scores"]
        for run in open_runs(folder)
        for record in run.records()
        if record["status"] == "ok"
    }


def test_models_leave_and_their_other_jobs_are_not_run(whole):
    found, folder = whole
    status = dict(zip(found.models["model"], found.models["status"], strict=True))
    assert status["worst"] == status["poor"] == "eliminated"
    assert status["good"] != "eliminated"
    after = dict(zip(found.models["model"], found.models["tasks"], strict=True))
    assert 8 <= after["worst"] < 14
    assert len(scored(folder)) == found.jobs == found.models["tasks"].sum()
    assert found.full_jobs == 4 * 14 * 2
    # all models ran the same tasks until they left
    tasks = {m: {t for model, t, _ in scored(folder) if model == m} for m in status}
    assert tasks["worst"] <= tasks["good"]


def test_records_of_jobs_that_were_not_run_have_a_status_of_their_own(whole):
    found, folder = whole
    (run,) = [each for each in open_runs(folder) if each.model == "worst"]
    records = [record for record in run.records() if record["status"] == "eliminated"]
    tasks = int(found.models.set_index("model").loc["worst", "tasks"])
    assert len(records) == 14 - tasks
    assert {record["info"] for record in records} == {run.about["race"]["exit"]["text"]}
    rows = run.results()
    assert (rows["status"] == "eliminated").sum() == 14 - tasks
    assert rows.loc[rows["status"] == "eliminated", "result"].isna().all()
    assert len(list((run.folder / "jobs").glob("*.json"))) == tasks
    state = karat.results.load.status(folder).set_index("model")
    assert (state["left"] == 0).all() and (state["state"] == "finished").all()
    assert state.loc["worst", "eliminated"] == 14 - tasks
    assert state.loc["worst", "failed"] == state.loc["worst", "declined"] == 0


def test_a_budget_stops_a_race_and_resume_comes_to_the_same_end(whole, models, tmp_path):
    found, folder = whole
    first = race(models, TASKS, output=tmp_path, budget=18)
    assert first.outcome == "stopped" and first.jobs == 16 and first.tasks_used == 4
    again = race(models, TASKS, output=tmp_path, resume=True)
    assert answers(again) == answers(found)
    assert scored(tmp_path) == scored(folder)
    # nothing is left to do
    assert answers(race(models, TASKS, output=tmp_path, resume=True)) == answers(found)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_time_budget_stops_before_the_next_task(models, tmp_path):
    found = race(models, TASKS, output=tmp_path, budget="0.000001s")
    assert found.outcome == "stopped" and found.jobs == 0


class _Interrupts(Progress):
    def __init__(self, after):
        self.after = after

    def finished(self, record, folder):
        self.after -= 1
        if not self.after:
            raise KeyboardInterrupt


def test_an_interrupted_race_is_resumed(whole, models, tmp_path):
    # in the middle of a task
    with pytest.raises(Stopped):
        race(models, TASKS, output=tmp_path, progress=_Interrupts(7))
    assert len(scored(tmp_path)) == 7
    found = race(models, TASKS, output=tmp_path, resume=True)
    assert answers(found) == answers(whole[0]) and scored(tmp_path) == scored(whole[1])


def test_lost_records_and_decisions_are_made_again(whole, models, tmp_path):
    # as after kill -9: decisions were not stored, and a record is missing
    race(models, TASKS, output=tmp_path)
    for run in open_runs(tmp_path):
        path = run.folder / "run.json"
        about = json.loads(path.read_text())
        about["race"] |= {"exit": None, "over": False}
        path.write_text(json.dumps(about))
        if run.model == "good":
            sorted((run.folder / "jobs").glob("*.json"))[0].unlink()
    found = race(models, TASKS, output=tmp_path, resume=True)
    assert answers(found) == answers(whole[0]) and scored(tmp_path) == scored(whole[1])


@pytest.mark.slow
def test_workers_change_nothing(whole, models, tmp_path):
    found = race(models, TASKS, output=tmp_path, workers=2)
    assert answers(found) == answers(whole[0]) and scored(tmp_path) == scored(whole[1])
    assert found.trace.equals(whole[0].trace)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("distributed"), reason="distributed is not installed")
def test_a_dask_cluster_changes_nothing(whole, models, tmp_path):
    found = race(models, TASKS, output=tmp_path, workers=Machines(2, engine="dask"))
    assert answers(found) == answers(whole[0]) and scored(tmp_path) == scored(whole[1])


def test_a_model_joins_later_at_a_stated_price(whole, models, guess, tmp_path):  # noqa: F811
    old = {name: models[name] for name in ("fair", "poor", "worst")}
    first = race(old, TASKS, output=tmp_path)
    before = {row["model"]: row for row in answers(first)}
    found = race({**old, "new": guess(1.0)}, TASKS, output=tmp_path, resume=True)
    assert found.confidence == pytest.approx(0.925) and first.confidence == pytest.approx(0.95)
    assert any("new joined later" in note for note in found.notes)
    after = {row["model"]: row for row in answers(found)}
    # those that had left stay out, and run no more jobs
    assert after["worst"] == before["worst"]
    assert after["new"]["tasks"] > 0 and after["new"]["status"] != "eliminated"
    plans = [run.about["race"]["plan"] for run in open_runs(tmp_path)]
    assert all(plan == plans[0] for plan in plans)
    assert plans[0]["batches"] == [0, 0, 0, 1] and plans[0]["since"] == [0, first.tasks_used]
    # a second one costs less
    found = race(
        {**old, "new": guess(1.0), "newer": guess(0.2)}, TASKS, output=tmp_path, resume=True
    )
    assert found.confidence == pytest.approx(0.9125)


@pytest.mark.parametrize(
    "changed", [{"confidence": 0.9}, {"goal": "order"}, {"margin": 0.01}, {"folds_per_task": 2}]
)
def test_settings_cannot_change_on_resume(whole, models, changed):
    with pytest.raises(DefinitionError, match="race in"):
        race(models, TASKS, output=whole[1], resume=True, **changed)
    assert len(list(whole[1].iterdir())) == 4


def test_a_model_cannot_be_dropped_on_resume(whole, models):
    fewer = {name: models[name] for name in ("good", "fair")}
    with pytest.raises(DefinitionError, match="-m poor -m worst"):
        race(fewer, TASKS, output=whole[1], resume=True)


def test_other_races_and_runs_in_the_folder_are_left_alone(whole, models, tmp_path):
    karat.evaluate({"good": models["good"]}, TASKS[:1], output=tmp_path)
    found = race(models, TASKS, output=tmp_path, resume=True)  # there is no race to resume
    assert answers(found) == answers(whole[0])
    again = race(models, TASKS, output=tmp_path, confidence=0.9)  # a new one
    assert answers(again) != answers(found)
    assert len(follow_races(tmp_path)) == 2
    # karat run --resume does not continue a race
    run = karat.evaluate({"good": models["good"]}, TASKS, output=tmp_path, resume=True)[0]
    assert "race" not in run.about


def test_failed_jobs_count_as_the_worst(models, guess, tmp_path):  # noqa: F811
    found = race(
        {"fails": guess(0.99, fails="n"), "poor": models["poor"], "good": models["good"]},
        TASKS,
        output=tmp_path,
    )
    rows = found.models.set_index("model")
    assert rows.loc["fails", "status"] == "eliminated"
    assert rows.loc["fails", "failed"] == rows.loc["fails", "jobs"] == rows.loc["fails", "tasks"]
    assert any("failed and lost" in note for note in found.notes)


def test_declined_tasks_are_left_out_of_the_pairs(models, guess, tmp_path):  # noqa: F811
    picky = guess(0.01, refuses=("classification",))
    given = {"good": models["good"], "worst": models["worst"], "picky": picky}
    found = race(given, TASKS, output=tmp_path)
    # it takes no task, so it is not in the race
    assert set(found.models["model"]) == {"good", "worst"}


def test_several_folds_are_one_task(models, tmp_path):
    found = race(models, TASKS, output=tmp_path, folds_per_task=2)
    assert found.jobs == 2 * found.models["tasks"].sum() and found.full_jobs == 4 * 14 * 2
    assert {fold for _, _, fold in scored(tmp_path)} == {0, 1}


def test_ties_are_undecided(guess, tmp_path):  # noqa: F811
    found = race({"a": guess(1.0), "b": guess(1.0)}, TASKS, output=tmp_path)
    assert found.outcome == "undecided" and found.remaining == ["a", "b"]
    found = race({"a": guess(1.0), "b": guess(1.0)}, TASKS, output=tmp_path, margin=0.01)
    assert found.outcome == "decided" and set(found.models["status"]) == {"equivalent"}
    assert found.tasks_used < 14


def test_cheap_tasks_first(models, tmp_path):
    with pytest.raises(DefinitionError, match="earlier runs"):
        race(models, TASKS, output=tmp_path, order="cheap")
    (run,) = karat.evaluate({"good": models["good"]}, TASKS, output=tmp_path)
    spent = {}
    for record in run.records():
        spent.setdefault(record["task"], []).append(record["seconds"])
    found = race(models, TASKS, output=tmp_path, order="cheap")
    cheap_first = sorted(spent, key=lambda task: sum(spent[task]) / len(spent[task]))
    assert found.trace["task"].tolist() == cheap_first[: found.tasks_used]
    assert any("every cost" in note for note in found.notes)


@pytest.mark.parametrize(
    ("number", "tasks", "options", "reason"),
    [
        (1, 14, {}, "is alone"),
        (2, 1, {}, "1 task of"),
        (2, 7, {}, "before 8 tasks"),
        (4, 14, {"goal": "top-4"}, "top-4"),
        (4, 8, {"goal": "order"}, "nothing can be"),
        (4, 14, {"workers": Machines(shard="1/2", budget=1.0)}, "no shards and no budget of money"),
        (4, 14, {"output": Output("none", inference=[1])}, "timed inference"),
        (4, 14, {"only": Only(folds=0)}, "choice of folds"),
        (4, 14, {"constraint": "test"}, "now workers=karat.Machines"),
    ],
)
def test_what_cannot_be_decided_is_refused_before_running(
    models, tmp_path, number, tasks, options, reason
):
    given = dict(list(models.items())[:number])
    with pytest.raises(DefinitionError, match=reason):
        race(given, TASKS[:tasks], **{"output": tmp_path / "none", **options})
    assert not (tmp_path / "none").exists()


def test_all_wrong_options_are_listed():
    wrong = RaceOptions("fastest", 1.0, -1.0, 0, "shortest", "4 weeks")
    with pytest.raises(DefinitionError) as error:
        wrong.check()
    assert len(error.value.messages) == 6


@pytest.mark.parametrize(
    ("budget", "limits"),
    [
        *[
            ("90s", (90, None)),
            ("30m", (1800, None)),
            ("1.5h", (5400, None)),
            ("2d", (172800, None)),
        ],
        *[(7, (None, 7)), ("7", (None, 7)), (None, (None, None))],
    ],
)
def test_budgets(budget, limits):
    assert RaceOptions(budget=budget).limits() == limits


@pytest.mark.parametrize("budget", ["", "0", "-1", "1.5", "h", "4 hours", 0, True, 1.5, "nan"])
def test_wrong_budgets(budget):
    with pytest.raises(DefinitionError, match="budget"):
        RaceOptions(budget=budget).limits()


PLAN_TASKS = [f"task <{i}>" for i in range(30)]


def make_plan(models, goal="best", folds=1, **more):
    settings = {"confidence": 0.95, "margin": None, "by": "random", **more}
    return RacePlan(
        id="a",
        goal=goal,
        order=tuple(PLAN_TASKS),
        folds={task: list(range(folds)) for task in PLAN_TASKS},
        available={task: 5 for task in PLAN_TASKS},
        models=tuple(models),
        **{"batches": (0,) * len(models), **settings},
    )


def record(task, fold, value, status="ok", metric="acc"):
    views = [{"corruption": "", "severity": 0.0, "scores": {metric: value}}] if value else []
    return {"task": task, "fold": fold, "status": status, "metric": metric, "views": views}


def results(models, folds=1, seed=0):
    """Yield the records of models, of which each is better than the one before."""
    rng = np.random.default_rng(seed)
    for task in PLAN_TASKS:
        for fold in range(folds):
            for place, model in enumerate(models):
                yield model, record(task, fold, 0.1 * place + 0.3 + 0.2 * rng.random())


def finish(plan, given):
    scores = RaceScores()
    for model, each in given:
        scores.add(model, each)
    race = FollowedRace(plan)
    race.advance(scores)
    return race


def test_results_in_any_order_give_the_same_decisions():
    models = ["a", "b", "c", "d"]
    plan = make_plan(models, folds=2)
    known = list(results(models, folds=2))
    expected = finish(plan, known).state.exits
    assert expected
    rng = np.random.default_rng(1)
    for _ in range(3):
        scores, race = RaceScores(), FollowedRace(plan)
        for place in rng.permutation(len(known)):
            scores.add(*known[place])
            race.advance(scores)  # after every job, in whatever order they end
        assert race.state.exits == expected


def test_only_the_next_task_is_asked_for():
    models = ["a", "b", "c"]
    plan, race, scores = make_plan(models), None, RaceScores()
    race = FollowedRace(plan)
    assert race.advance(scores) == [(model, PLAN_TASKS[0], 0) for model in models]
    known = {(m, r["task"]): r for m, r in results(models)}
    asked = 0
    while needed := race.advance(scores):
        assert len({task for _, task, _ in needed}) == 1
        for model, task, _ in needed:
            asked += 1
            scores.add(model, known[model, task])
    assert race.over and asked < len(known) / 2
    assert sum(int(takes.sum()) for _, takes, *_ in race.trace) == asked


def test_failed_jobs_lose_and_declined_tasks_do_not_count():
    models = ["fails", "declines", "works"]
    scores = RaceScores()
    for task in PLAN_TASKS:
        scores.add("fails", record(task, 0, None, status="timeout"))
        scores.add("declines", record(task, None, None, status="declined"))
        scores.add("works", record(task, 0, 0.1))
    race = FollowedRace(make_plan(models))
    race.advance(scores)
    assert [race.plan.models[each.model] for each in race.state.exits] == ["fails"]
    assert race.state.compared[1] == 0 and race.exhausted


def test_lower_is_better_for_losses():
    scores = RaceScores()
    scores.add("a", record("t", 0, 2.0, metric="rmse"))
    assert scores.scores["a", "t"] == {0: -2.0} and scores.relative["t"]
    scores.add("b", record("t", 0, 2.0, metric="unknown metric"), higher=True)
    assert scores.scores["b", "t"] == {0: 2.0}


def test_a_score_without_a_value_is_a_failure():
    scores = RaceScores()
    scores.add("a", record("t", 0, None))
    assert math.isnan(scores.scores["a", "t"][0])


def test_numerical_noise_is_a_tie():
    scores = RaceScores()
    for task in PLAN_TASKS:
        scores.add("a", record(task, 0, 0.123456789))
        scores.add("b", record(task, 0, 0.123456780))
    race = FollowedRace(make_plan(["a", "b"]))
    race.advance(scores)
    assert race.exhausted and not race.state.exits


def test_a_plan_is_read_as_it_was_written():
    plan = make_plan(["a", "b"], goal="top-1", margin=0.01).joined(["a", "b", "c"], 7)
    about = json.loads(json.dumps({"race": {"plan": plan.to_dict()}}))
    assert RacePlan.read(about) == plan
    assert plan.since == (0, 7) and plan.batches == (0, 0, 1)
    assert plan.guarantee == pytest.approx(0.925)
    assert RacePlan.read({}) is None


@pytest.mark.parametrize("race", [{}, {"plan": {}}, {"plan": None}, {"plan": {"goal": "best"}}])
def test_a_damaged_plan(race):
    with pytest.raises(DataError, match="race"):
        RacePlan.read({"race": race})


def test_a_goal_needs_more_models():
    parse_goal("top-2", 3)
    with pytest.raises(DefinitionError, match="top-3"):
        parse_goal("top-3", 3)
    with pytest.raises(DefinitionError, match="fastest"):
        parse_goal("fastest", 3)


def test_the_order_depends_on_names_and_seed_only():
    assert random_order(PLAN_TASKS, 1) == random_order(reversed(PLAN_TASKS), 1)
    assert random_order(PLAN_TASKS, 1) != random_order(PLAN_TASKS, 2)
    assert sorted(random_order(PLAN_TASKS, 1)) == sorted(PLAN_TASKS)


def test_how_a_model_left():
    models = ["a", "b"]
    race = finish(make_plan(models), results(models))
    facts = exit_facts(race, "a")
    assert facts["reason"] == "eliminated" and facts["others"] == ["b"]
    assert facts["text"].startswith(f"eliminated after {facts['after']} tasks, e-value")
    assert exit_facts(race, "b") is None
    race = finish(make_plan(models, goal="order"), results(models))
    assert exit_facts(race, "b")["place"] == [1, 1] and "place 1" in exit_facts(race, "b")["text"]
    equal = {"reason": "equivalent", "after": 1, "others": ["b"]}
    assert exit_text(equal, 0.01) == "equivalent to b within 0.01, decided after 1 task"
