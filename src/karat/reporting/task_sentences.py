"""Sentences on what these tasks show about the first model of a leaderboard and the others.

They are written from the ``these_tasks`` of a leaderboard's ``attrs``, whose differences are those
of each model to the first one. Gains are those of the first model: their signs are turned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat.analysis.item_tests import LEARNERS
from karat.analysis.these_tasks import BETTER, EQUAL, OPEN, SAME, UNTESTED, WORSE
from karat.core.formatting import count, short, signed
from karat.stats.ranking import FEWEST_TASKS

#: maximum number of names in a list, of models compared task by task, and of tasks with numbers
MAX_NAMES, MAX_RIVALS, MAX_TASKS = 3, 3, 5


def join_names(names: Sequence[str]) -> str:
    """Return names as a text.

    >>> join_names(["a", "b"]), join_names(["a", "b", "c", "d"])
    ('a and b', 'a, b, c and 1 more')
    """
    some_names = [short(name) for name in names[:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        return f"{', '.join(some_names)} and {len(names) - MAX_NAMES} more"
    return (
        " and ".join([", ".join(some_names[:-1]), some_names[-1]])
        if len(some_names) > 1
        else some_names[0]
    )


def rivals_of(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the models other than the first one that share a task with it."""
    return [row for row in facts["models"] if row["tasks"] and row["model"] != facts["reference"]]


def headline(facts: Mapping[str, Any], kinds: Mapping[str, str] | None = None) -> str:
    r"""Return whom the first model beats on these tasks, and against whom it is open.

    The interval of an open model is that of its difference to the first one, as in the picture.
    ``kinds`` are those of the tasks, as in ``losses_text``.

    >>> row = {"model": "b", "difference": -0.2, "low": -0.3, "high": -0.1, "by_task": []}
    >>> row |= {"verdict": "worse", "tasks": 3, "tested": 3}
    >>> other = {**row, "model": "c", "low": -0.5, "high": 0.1, "verdict": "open", "tasks": 1}
    >>> facts = {"reference": "a", "tasks": ["t", "u", "v"], "margin": 0.01}
    >>> print(headline({**facts, "models": [row, other]}).replace(": ", ":\n"))
    a leads on these 3 tasks:
    better than b, open against c (-0.500 to +0.100), which shares 1 task.
    """
    rivals = rivals_of(facts)
    if len(rivals) == 1:
        return _pair_headline(facts, rivals[0])
    by_verdict: dict[str, list[dict[str, Any]]] = {}
    for row in rivals:
        by_verdict.setdefault(row["verdict"], []).append(row)
    words = {
        WORSE: "better than",
        EQUAL: "equal to",
        SAME: f"the same within {facts['margin']:g} as",
        OPEN: "open against",
        BETTER: "worse on average than",
        UNTESTED: "not tested against",
    }
    tasks = len(facts["tasks"])
    parts = [
        f"{word} {_rows_text(by_verdict[verdict], rivals, tasks)}"
        for verdict, word in words.items()
        if verdict in by_verdict
    ]
    losses = losses_text(facts, kinds)
    text = f"{short(facts['reference'])} leads on these {tasks} tasks: {', '.join(parts)}"
    return f"{text}{'; ' if losses else ''}{losses}."


def _rows_text(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Any], tasks: int) -> str:
    """Return the names of models; of a single one with its interval and its common tasks."""
    if len(rows) > 1:
        whole = len(rows) == len(rivals)
        return "every other model" if whole else join_names([row["model"] for row in rows])
    (row,) = rows
    name = short(row["model"])
    if row["verdict"] == OPEN:
        name = f"{name} ({signed(row['low'])} to {signed(row['high'])})"
    if row["verdict"] == WORSE:
        return name
    if row["verdict"] != UNTESTED and row["tested"] < row["tasks"]:
        return f"{name}, tested on {row['tested']} of {count(row['tasks'], 'task')}"
    return f"{name}, which shares {count(row['tasks'], 'task')}" if row["tasks"] < tasks else name


def _pair_headline(facts: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return what these tasks show about two models, on average and on each task."""
    a, b = short(facts["reference"]), short(row["model"])
    over, mean = f"over {_tested_text(row)}", gain_text(row)
    texts = {
        WORSE: f"{a} is better than {b} on average {over} ({mean})",
        BETTER: f"{a} has the better mean rank, but {b} is better on average {over} ({mean})",
        SAME: f"{a} and {b} are the same within {facts['margin']:g} on average {over} ({mean})",
        OPEN: f"{a} and {b}: no difference shown on average {over} ({mean})",
        EQUAL: f"{a} and {b} have equal scores {over.replace('over', 'on')}",
        UNTESTED: f"{a} and {b} are not tested {over.replace('over', 'on')}",
    }
    by_task, text = row["by_task"], texts[row["verdict"]]
    if row["verdict"] == EQUAL:
        by_task = [on for on in by_task if on["verdict"] == UNTESTED]
    return f"{text}: {differences_text(by_task)}." if by_task else f"{text}."


def _tested_text(row: Mapping[str, Any]) -> str:
    """Return the tasks that a mean difference is about.

    >>> _tested_text({"by_task": [{}] * 3, "tested": 3})
    'these 3 tasks'
    >>> _tested_text({"by_task": [{}] * 3, "tested": 2})
    '2 of these 3 tasks'
    """
    tasks = len(row["by_task"])
    part = f"{row['tested']} of " if 0 < row["tested"] < tasks else ""
    return f"{part}these {count(tasks, 'task')}"


def gain_text(row: Mapping[str, Any]) -> str:
    """Return the gain of the first model over another one with its interval.

    >>> gain_text({"difference": -0.2, "low": -0.3, "high": -0.1})
    '+0.200, 95 % interval +0.100 to +0.300'
    """
    value = signed(-row["difference"])
    if np.isnan(row["low"]):
        return value
    return f"{value}, 95 % interval {signed(-row['high'])} to {signed(-row['low'])}"


def lost_tasks(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the tasks that the first model clearly loses, by the model that is the best there."""
    largest: dict[str, tuple[float, str]] = {}
    for row in rivals_of(facts):
        for on in row["by_task"]:
            best = largest.get(on["task"], (0.0, ""))
            if on["verdict"] == BETTER and on["difference"] > best[0]:
                largest[on["task"]] = (on["difference"], row["model"])
    tasks_of: dict[str, list[str]] = {}
    for task, (_, model) in largest.items():
        tasks_of.setdefault(model, []).append(task)
    return tasks_of


def losses_text(facts: Mapping[str, Any], kinds: Mapping[str, str] | None = None) -> str:
    """Return on how many tasks the first model is first, which it clearly loses, and to whom.

    Empty if it clearly loses none.

    ``kinds`` are the kinds of the tasks: if all tasks of a kind are lost, it is named.
    """
    tasks_of = lost_tasks(facts)
    parts = [f"{_tasks_text(tasks, kinds or {})} to {short(m)}" for m, tasks in tasks_of.items()]
    more = len(parts) - MAX_NAMES
    parts = [*parts[:MAX_NAMES], *([f"tasks to {count(more, 'more model')}"] if more > 0 else [])]
    if not parts:
        return ""
    best, tasks = _first_on(facts)
    return f"first on {best} of {tasks}, loses {', '.join(parts)}"


def _first_on(facts: Mapping[str, Any]) -> tuple[int, int]:
    """Return on how many tasks no other model is ahead of the first one, and of how many."""
    ahead: dict[str, bool] = {}
    for row in rivals_of(facts):
        for on in row["by_task"]:
            wins = on["verdict"] != EQUAL and on["difference"] > 0
            ahead[on["task"]] = ahead.get(on["task"], False) or wins
    return sum(not wins for wins in ahead.values()), len(ahead)


def _tasks_text(tasks: Sequence[str], kinds: Mapping[str, str]) -> str:
    """Return tasks by their names, or by their kind if it has no others.

    >>> _tasks_text(["t", "u"], {"t": "retrieval", "u": "retrieval", "v": "pairs"})
    'both retrieval tasks'
    """
    kind = kinds.get(tasks[0])
    alike = {task for task, other in kinds.items() if other == kind}
    if kind and len(tasks) > 1 and alike == set(tasks):
        return f"{'both' if len(tasks) == 2 else f'all {len(tasks)}'} {short(kind)} tasks"
    return join_names(list(tasks))


def task_by_task(facts: Mapping[str, Any]) -> str:
    """Return on which tasks the first model differs from those that it does not clearly beat.

    If it beats all of them, from the next one.
    """
    rivals = rivals_of(facts)
    close = [row for row in rivals if row["verdict"] != WORSE] or rivals[:1]
    first = short(facts["reference"])
    texts = [
        f"{first} and {short(row['model'])}: {differences_text(row['by_task'])}."
        for row in close[:MAX_RIVALS]
        if row["by_task"]
    ]
    return " ".join(texts)


def differences_text(by_task: Sequence[Mapping[str, Any]]) -> str:
    """Return on which tasks the first model is better, worse, or not shown to differ.

    >>> on = {"task": "t", "difference": -0.2, "low": -0.3, "high": -0.1, "verdict": "worse"}
    >>> same = {"task": "u", "difference": 0.0, "verdict": "equal"}
    >>> differences_text([on, same])
    'better on t (+0.200, +0.100 to +0.300), equal scores on u'
    """
    words = {
        WORSE: "better on",
        BETTER: "worse on",
        OPEN: "no difference shown on",
        EQUAL: "equal scores on",
        UNTESTED: "not tested on",
    }
    parts = []
    for verdict, word in words.items():
        rows = [row for row in by_task if row["verdict"] == verdict]
        if len(rows) > MAX_TASKS or (verdict == EQUAL and len(rows) > 1):
            parts.append(f"{word} {len(rows)}")
        elif rows:
            parts.append(f"{word} {', '.join(map(_difference_on, rows))}")
    return ", ".join(parts)


def _difference_on(row: Mapping[str, Any]) -> str:
    if row["verdict"] == EQUAL or np.isnan(row["difference"]):
        return short(row["task"])
    value = signed(-row["difference"])
    ends = f", {signed(-row['high'])} to {signed(-row['low'])}" if not np.isnan(row["low"]) else ""
    return f"{short(row['task'])} ({value}{ends})"


def holds_for(facts: Mapping[str, Any]) -> str:
    """Return what the intervals over these tasks hold for; ranks are about other tasks as well.

    >>> holds_for({"tasks": ["t", "u"], "claim": "as fitted", "test": "t over items"})
    'Intervals hold for these 2 tasks and the models as fitted (t over items).'
    """
    claim = "new training data" if facts["claim"] == LEARNERS else "the models as fitted"
    tasks = f"these {len(facts['tasks'])} tasks" if len(facts["tasks"]) > 1 else "this task"
    what = "Intervals" if len(facts["tasks"]) < FEWEST_TASKS else "Intervals of gains"
    return f"{what} hold for {tasks} and {claim} ({facts['test']})."
