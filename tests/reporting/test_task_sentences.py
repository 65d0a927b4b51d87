"""Sentences on what these tasks show, from numbers chosen by hand."""

import math

from karat.reporting.task_sentences import (
    differences_text,
    headline,
    holds_for,
    join_names,
    losses_text,
    lost_tasks,
    task_by_task,
)


def on(task, difference, verdict, half=0.05):
    low, high = difference - half, difference + half
    return {"task": task, "difference": difference, "low": low, "high": high, "verdict": verdict}


def row(model, verdict, *by_task, difference=-0.2, tasks=3):
    numbers = {"difference": difference, "low": difference - 0.1, "high": difference + 0.1}
    return {
        **{"model": model, **numbers, "p": 0.5, "verdict": verdict},
        **{"tasks": tasks, "tested": tasks, "by_task": list(by_task)},
    }


def facts(*rows, reference="a", tasks=3):
    first = row(reference, "reference", difference=0.0, tasks=0)
    about = {"reference": reference, "margin": 0.01, "claim": "learners", "test": "t"}
    return {**about, "tasks": [f"t{t}" for t in range(tasks)], "models": [first, *rows]}


def test_the_headline_says_whom_the_first_model_beats_and_what_is_open():
    found = facts(row("b", "worse"), row("c", "same"), row("d", "open", tasks=1))
    assert headline(found) == (
        "a leads on these 3 tasks: better than b, the same within 0.01 as c, "
        "open against d (-0.300 to -0.100), which shares 1 task."
    )
    assert headline(facts(row("b", "worse"), row("c", "worse"))).endswith("every other model.")


def test_two_models_have_a_sentence_with_each_task():
    found = facts(row("b", "worse", on("t0", -0.2, "worse"), on("t1", 0.0, "equal"), tasks=2))
    assert headline(found) == (
        "a is better than b on average over these 2 tasks (+0.200, 95 % interval +0.100 to +0.300)"
        ": better on t0 (+0.200, +0.150 to +0.250), equal scores on t1."
    )
    same = facts(row("b", "equal", on("t0", 0.0, "equal"), on("t1", 0.0, "equal"), tasks=2))
    assert headline(same) == "a and b have equal scores on these 2 tasks."


def test_models_with_an_untested_task_are_not_told_to_be_equal_on_it():
    untested = {**on("t2", -0.2, "not tested"), "low": math.nan, "high": math.nan}
    tasks = [on("t0", 0.0, "equal"), on("t1", 0.0, "equal"), untested]
    found = {**row("b", "equal", *tasks), "tested": 2}
    assert headline(facts(found)) == (
        "a and b have equal scores on 2 of these 3 tasks: not tested on t2 (+0.200)."
    )
    text = headline(facts(found, row("c", "worse")))
    assert "better than c, equal to b, tested on 2 of 3 tasks" in text


def test_equal_scores_are_counted_and_tasks_without_a_test_are_named():
    rows = [on("t", 0.0, "equal"), on("u", 0.0, "equal"), on("v", 0.004, "open")]
    assert differences_text(rows) == (
        "no difference shown on v (-0.004, -0.054 to +0.046), equal scores on 2"
    )
    assert differences_text([on("t", math.nan, "not tested")]) == "not tested on t"


def test_lost_tasks_are_named_with_the_model_that_is_best_there():
    found = facts(
        row("b", "worse", on("t0", 0.1, "better"), on("t1", -0.5, "worse")),
        row("c", "worse", on("t0", 0.3, "better"), on("t2", 0.2, "open")),
    )
    assert lost_tasks(found) == {"c": ["t0"]}
    assert losses_text(found) == "first on 1 of 3, loses t0 to c"
    assert headline(found).endswith("; first on 1 of 3, loses t0 to c.")
    assert losses_text(facts(row("b", "worse", on("t0", 0.1, "open")))) == ""


def test_all_tasks_of_a_kind_are_named_by_it():
    lost = [on("t0", 0.1, "better"), on("t1", 0.1, "better"), on("t2", -0.1, "worse")]
    kinds = {"t0": "retrieval", "t1": "retrieval", "t2": "pairs"}
    assert "both retrieval tasks to b" in losses_text(facts(row("b", "worse", *lost)), kinds)
    more = {**kinds, "t2": "retrieval"}
    assert "loses t0 and t1 to b" in losses_text(facts(row("b", "worse", *lost)), more)


def test_task_by_task_is_about_models_that_are_not_clearly_beaten():
    found = facts(
        row("b", "worse", on("t0", -0.2, "worse")), row("c", "open", on("t1", 0.01, "open"))
    )
    assert task_by_task(found) == "a and c: no difference shown on t1 (-0.010, -0.060 to +0.040)."
    beaten = facts(row("b", "worse", on("t0", -0.2, "worse")))
    assert task_by_task(beaten).startswith("a and b: better on t0")


def test_claims_and_names():
    assert "new training data" in holds_for(facts())
    assert join_names(["a"]) == "a" and join_names(["a", "b", "c"]) == "a, b and c"
