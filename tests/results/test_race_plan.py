"""The plan of a race and how far its records take it: any order of results, damage, texts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from karat.errors import DataError, DefinitionError
from karat.results.race_plan import (
    FollowedRace,
    RacePlan,
    RaceScores,
    exit_facts,
    exit_text,
    parse_goal,
    random_order,
)

TASKS = [f"task <{i}>" for i in range(30)]


def make_plan(models, goal="best", folds=1, **more):
    settings = {"confidence": 0.95, "margin": None, "by": "random", **more}
    return RacePlan(
        id="a",
        goal=goal,
        order=tuple(TASKS),
        folds={task: list(range(folds)) for task in TASKS},
        available={task: 5 for task in TASKS},
        models=tuple(models),
        **{"batches": (0,) * len(models), **settings},
    )


def record(task, fold, value, status="ok", metric="acc"):
    views = [{"corruption": "", "severity": 0.0, "scores": {metric: value}}] if value else []
    return {"task": task, "fold": fold, "status": status, "metric": metric, "views": views}


def results(models, folds=1, seed=0):
    """Yield the records of models, of which each is better than the one before."""
    rng = np.random.default_rng(seed)
    for task in TASKS:
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
    assert race.advance(scores) == [(model, TASKS[0], 0) for model in models]
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
    for task in TASKS:
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
    for task in TASKS:
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
    assert random_order(TASKS, 1) == random_order(reversed(TASKS), 1)
    assert random_order(TASKS, 1) != random_order(TASKS, 2)
    assert sorted(random_order(TASKS, 1)) == sorted(TASKS)


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
