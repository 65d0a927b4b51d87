"""Two models compared: the conclusion in words, and the tasks as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.analysis.all_pairs import TESTS
from karat.analysis.item_tests import AS_FITTED
from karat.analysis.these_tasks import BETTER, OPEN, OTHER_TASKS, UNTESTED, WORSE
from karat.analysis.these_tasks import EQUAL as EQUAL_SCORES
from karat.core.formatting import chance, count, format_p, interval, middle_cut, rounded, signed
from karat.output.table import Cell, Column, Table, text_column
from karat.stats.paired_tests import ALPHA
from karat.stats.ranking import FEWEST_TASKS

if TYPE_CHECKING:
    from karat.analysis.comparison import Comparison, Overall

#: a Bayesian probability from here on counts as a conclusion
PROBABLE = 1 - ALPHA
UNDECIDED = "no significant difference"


def comparison_sentence(comparison: Comparison) -> str:
    """Return the conclusion in one sentence, or in a few for two to five tasks."""
    o, over = comparison.overall, f"over {comparison.overall.tasks} tasks"
    both = f"{comparison.first} and {comparison.second}"
    if not o.tasks:
        return f"{both} could not be compared on any task."
    if o.tasks == 1:
        return _conclusion_of_task(comparison, _compared_tasks(comparison)[0])
    if o.tasks < FEWEST_TASKS:
        return f"{_few_tasks(comparison)}. {OTHER_TASKS}"
    first, second, p_ahead = comparison.second, comparison.first, o.p_worse
    if (_lead(o) or o.rank_biserial) > 0:
        first, second, p_ahead = comparison.first, comparison.second, o.p_better
    beyond = f"by more than {comparison.rope:g} with probability {chance(p_ahead)}"
    p, significant = format_p(o.p), bool(o.p < ALPHA)
    if o.p_equal >= PROBABLE and 2 * o.within > 1:
        but = f", though {first} is significantly ahead (p {p})" if significant else ""
        within = f"within {comparison.rope:g} with probability {chance(o.p_equal)}"
        return f"{both} are practically equal {over}: {within}, {_inside(comparison)}{but}."
    if significant:
        result = f"{first} is better than {second} {over} ({o.test}, p {p}), {beyond}"
    elif p_ahead >= PROBABLE:
        apart = f"the difference of {both} {over} is not significant ({o.test}, p {p})"
        ahead = f"posterior probability {chance(p_ahead)} that {first} is ahead by more than"
        result = f"{apart[0].upper()}{apart[1:]}; {ahead} {comparison.rope:g}"
    else:
        tasks = f"; {_counts(comparison)}" if o.better + o.worse else ""
        apart = f"; {_inside(comparison)}" if o.p_equal >= PROBABLE else ""
        result = f"{both} do not differ significantly {over} ({o.test}, p {p}){apart}{tasks}"
    return f"{result}.{_contradiction(comparison)}"


def _compared_tasks(comparison: Comparison) -> list[pd.Series]:
    """Return the rows of the tasks on which both have a score."""
    return [row for _, row in comparison.tasks[comparison.tasks["folds"] > 0].iterrows()]


def _lead(o: Overall) -> float:
    """Return the direction of the test over tasks: positive if the first model is ahead."""
    return o.wins - o.losses if o.test == TESTS["max-t"] else o.rank_biserial


def _inside(comparison: Comparison) -> str:
    """Return on how many tasks the two are within the margin."""
    o, rope = comparison.overall, comparison.rope
    return f"{round(o.within * o.tasks)} of {o.tasks} tasks differ by no more than {rope:g}"


def _contradiction(comparison: Comparison) -> str:
    """Return a sentence if one model wins more tasks and the mean gain favors the other."""
    o = comparison.overall
    if (o.wins - o.losses) * o.gain >= 0 or signed(o.gain) == signed(0.0):
        return ""
    both = (comparison.first, comparison.second)
    ahead, mean = both if o.wins > o.losses else both[::-1]
    most = max(o.wins, o.losses)
    return (
        f" {ahead} wins more tasks ({most} of {o.tasks}), but the mean gain favors {mean} "
        f"({signed(o.gain)} for {comparison.first})."
    )


def _conclusion_of_task(comparison: Comparison, row: pd.Series) -> str:
    both, tests = f"{comparison.first} and {comparison.second}", _tests_of(row)
    if row["why"]:
        values = f"{rounded(row['first'])} and {rounded(row['second'])}"
        return f"{both} were not tested on {row['task']}: {row['why']} ({row['metric']} {values})."
    where = row["task"] + f", {AS_FITTED}" * (row["claim"] == AS_FITTED)
    if not row["better"]:
        return f"{both} do not differ significantly on {where} ({tests})."
    worse = comparison.second if row["better"] == comparison.first else comparison.first
    return (
        f"{row['better']} is better than {worse} on {where} "
        f"({row['metric']} {signed(row['difference'])}, {tests})."
    )


def _tests_of(row: pd.Series) -> str:
    """Return the p of a task with the names of the tests."""
    p = f"p {format_p(row['p'])}"
    if math.isnan(row["p_items"]):
        return f"{row['test']} over {count(row['folds'], 'fold')}, {p}"
    parts = [count(row["folds"], "fold")] if row["folds"] > 1 else []
    parts += [count(row["clusters"], "group")] if row["clusters"] else []
    return f"{row['test']}: {', '.join([*parts, count(row['items'], 'item')])}, {p}"


def _few_tasks(comparison: Comparison) -> str:
    """Return what two to five tasks show on average and on each of them."""
    if comparison.overall.untested == comparison.overall.tasks:
        return _counts(comparison)
    mean = _mean_of_few(comparison)
    compared = _compared_tasks(comparison)
    words = {
        BETTER: f"{comparison.first} is better on",
        WORSE: f"{comparison.second} is better on",
        OPEN: "no difference shown on",
        EQUAL_SCORES: "equal scores on",
        UNTESTED: "not tested on",
    }
    parts = []
    for verdict, word in words.items():
        rows = [row for row in compared if _verdict_on_task(row, comparison.first) == verdict]
        if verdict == EQUAL_SCORES and len(rows) > 1:
            parts.append(f"{word} {len(rows)}")
        elif rows:
            parts.append(f"{word} {', '.join(_task_difference(row, verdict) for row in rows)}")
    return f"{mean}: {'; '.join(parts)}"


def _mean_of_few(comparison: Comparison) -> str:
    """Return what the mean over two to five tasks shows."""
    o, first, second = comparison.overall, comparison.first, comparison.second
    over = f"over these {o.tasks - o.untested} tasks"
    mean = f"{interval(o.gain, o.gain_low, o.gain_high)}, p {format_p(o.p)}"
    if not o.wins + o.losses:
        return f"{first} and {second} have equal scores {over.replace('over', 'on')}"
    if o.p < ALPHA:
        first, second = (first, second) if o.gain > 0 else (second, first)
        return f"{first} is better than {second} on average {over} ({mean})"
    if -comparison.rope <= o.gain_low and o.gain_high <= comparison.rope:
        within = f"are the same within {comparison.rope:g} on average {over}"
        return f"{first} and {second} {within} ({mean})"
    return f"{first} and {second}: no difference shown on average {over} ({mean})"


def _verdict_on_task(row: pd.Series, first: str) -> str:
    if row["gain"] == 0:
        return EQUAL_SCORES
    if math.isnan(row["p"]):
        return UNTESTED
    return OPEN if not row["better"] else BETTER if row["better"] == first else WORSE


def _task_difference(row: pd.Series, verdict: str) -> str:
    """Return a task with the difference of the first model to the second, and its interval."""
    if verdict in (EQUAL_SCORES, UNTESTED):
        return str(row["task"])
    values = (row[f"difference{end}"] for end in ("", "_low", "_high"))
    return f"{row['task']} ({row['metric']} {interval(*values)}, p {format_p(row['p_holm'])})"


def _counts(comparison: Comparison) -> str:
    """Return on how many tasks which model is better; the one that leads is named first."""
    o, first, second = comparison.overall, comparison.first, comparison.second
    wins, losses = o.better, o.worse
    if o.untested == o.tasks:
        reasons = ", ".join(sorted({why for why in comparison.tasks["why"] if why}))
        return f"{first} and {second} were not tested on any of {o.tasks} tasks: {reasons}"
    if not wins + losses + o.untested:
        return f"{first} and {second} do not differ significantly on any of {o.tasks} tasks"
    if losses > wins:
        first, second, wins, losses = second, first, losses, wins
    counts = [f"{first} is significantly better than {second} on {wins} of {o.tasks} tasks"]
    counts += [f"worse on {losses}"] if losses else []
    counts += [f"{UNDECIDED} on {o.not_significant}"] if o.not_significant else []
    return ", ".join(counts + ([f"{o.untested} not tested"] if o.untested else []))


def task_table(comparison: Comparison) -> pd.DataFrame:
    """Return the tasks of a comparison as text; those without any score are left to the notes."""
    rows = comparison.tasks[comparison.tasks[["first", "second"]].notna().any(axis=1)]
    undecided = np.where(rows["p"].notna(), UNDECIDED, "not tested: " + rows["why"])
    undecided = np.where(rows["folds"] > 0, undecided, "not compared")
    arrow = rows["higher_is_better"].map({True: " ↑", False: " ↓"})
    bounds = (rows["difference"], rows["difference_low"], rows["difference_high"])
    return pd.DataFrame(
        {
            "task": rows["task"],
            "metric": rows["metric"] + arrow,
            "first": rows["first"].map(rounded),
            "second": rows["second"].map(rounded),
            "difference": [interval(*bound) for bound in zip(*bounds, strict=True)],
            "p": rows["p_holm"].map(format_p),
            "better": np.where(rows["better"] == "", undecided, rows["better"]),
        }
    )


def _tests(o: Overall) -> str:
    """Return the p of the test over tasks, and of Wilcoxon's test if it is another."""
    if o.tasks < FEWEST_TASKS:
        return f"{o.test}, p {format_p(o.p)}" if o.test else "not tested"
    other = f", Wilcoxon p {format_p(o.p_wilcoxon)}" if o.test == TESTS["max-t"] else ""
    return f"{o.test} p {format_p(o.p)}{other}"


def overall_lines(comparison: Comparison) -> list[str]:
    """Return the results over all tasks, line by line."""
    o = comparison.overall
    if not o.tasks:
        return []
    line = f"{o.tasks} of {o.of} tasks: {o.wins} won, {o.ties} tied, {o.losses} lost; "
    line += f"significantly better on {o.better}, worse on {o.worse}, "
    line += f"{UNDECIDED} on {o.not_significant}"
    lines = [line + (f", {o.untested} not tested" if o.untested else "")]
    if o.tasks > 1:
        tested = o.tasks - o.untested
        few = 0 < tested and o.tasks < FEWEST_TASKS
        over = f" over these {count(tested, 'task')}" if few else ""
        mean = f"{interval(o.gain, o.gain_low, o.gain_high)}{over}"
        lines += [
            f"mean gain {mean}; {_tests(o)}; {_inside(comparison)}",
            f"P(better) {chance(o.p_better)}, "
            f"P(equal within {comparison.rope:g}) {chance(o.p_equal)}, "
            f"P(worse) {chance(o.p_worse)}",
            f"effect: rank-biserial {signed(o.rank_biserial)}, probability of superiority "
            f"{o.superiority:.3f}, Cohen's d {signed(o.cohens_d)}",
        ]
    return lines


def comparison_table(comparison: Comparison) -> Table:
    """Return one row per task: values, difference, p, and the better model."""
    rows = task_table(comparison)
    names = {name: middle_cut(name) for name in (comparison.first, comparison.second)}
    values = [
        Column(names[name], [Cell(*cell, cell[0] == "–") for cell in zip(texts, best, strict=True)])
        for name, texts, best in (
            (comparison.first, rows["first"], rows["better"] == comparison.first),
            (comparison.second, rows["second"], rows["better"] == comparison.second),
        )
    ]
    better = [names.get(name, name) for name in rows["better"]]
    first, second = names.values()
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("metric", rows["metric"], right=False),
            *values,
            text_column("difference", rows["difference"], part="task"),
            text_column("p", rows["p"], part="task"),
            text_column("better", better, right=False, part="task"),
        ],
        starts=[0],
        caption=f"{first} against {second}, paired by task and fold",
        notes=list(_legend(comparison)),
    )


def _legend(comparison: Comparison) -> Iterator[str]:
    """Yield what the differences and gains of the table are."""
    tests = set(comparison.tasks["test"]) - {""}
    if not tests:
        return
    first, second = middle_cut(comparison.first), middle_cut(comparison.second)
    over = "over folds, corrected for overlapping training sets"
    if len(tests) > 1 or "corrected t" not in tests:
        names = " or ".join(sorted(tests))
        over = f"by the test of the task ({names})"
    tasks = int(comparison.tasks["p"].notna().sum())
    correction = "Holm" if comparison.overall.tasks >= FEWEST_TASKS else "Bonferroni"
    corrected = f" p and intervals are corrected for {tasks} tasks ({correction})."
    yield (
        f"Difference: {first} minus {second}; in brackets the 95 % interval {over}."
        f"{corrected if tasks > 1 else ''}"
    )
    compared = comparison.tasks["relative"] & (comparison.tasks["folds"] > 0)
    relative = comparison.tasks[compared]
    if comparison.overall.tasks > 1 and len(relative):
        names = ", ".join(sorted(set(relative["metric"])))
        yield f"Gain: positive where {first} is better; for {names} relative to the mean of both."
        if len(relative) < comparison.overall.tasks:
            yield (
                "Different metrics are combined: mean gain, Wilcoxon's and the Bayesian test use "
                "sizes, where relative gains often weigh more. --metric NAME compares one metric."
            )


def overall_sentences(comparison: Comparison) -> list[str]:
    """Return the results over all tasks as sentences."""
    return [f"{line[0].upper()}{line[1:]}." for line in overall_lines(comparison)]
