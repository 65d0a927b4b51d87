"""Leaderboards and other tables as Markdown, LaTeX, HTML, CSV or JSON, with caption and notes."""

from __future__ import annotations

import html
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.item_tests import AS_FITTED, DETECTED, LEARNERS, TRAIN_AGAIN
from karat.analysis.leaderboard import THESE_TASKS, split_groups
from karat.analysis.score_matrix import BASELINE
from karat.analysis.these_tasks import OTHER_TASKS
from karat.core.formatting import (
    count,
    dump_json,
    duration,
    format_rank,
    interval,
    money,
    percent,
    plain,
    records,
    rounded,
    short,
)
from karat.errors import DefinitionError, did_you_mean
from karat.metrics.metric import metric_label
from karat.output.html_table import NOTE_STYLE, html_table
from karat.output.latex_table import escape_latex, latex_table
from karat.output.markdown_table import escape_markdown, markdown_table
from karat.output.table import MAX_LETTERS, TIE, Cell, Column, Table, best_of, text_column
from karat.reporting.task_sentences import headline
from karat.results.load import DECLINED, FAILED, NOT_RUN, SIGNS
from karat.results.tables import ELIMINATED

#: mark of a score over fewer folds than planned
PARTIAL = "*"
#: mark of a score with folds of a baseline in place of missing ones
FILLED = "†"
#: a reason why models are not tested that needs no note
ONE_MODEL = "one model"
#: maximum number of notes about coverage
MAX_NOTES = 6
#: maximum number of names in a note
MAX_NAMES = 12
_COSTS = {"seconds": "time", "memory_mb": "memory"}
_MEANINGS = {
    DECLINED: "– not applicable to this model",
    FAILED: "failed: no score",
    NOT_RUN: "… not run",
}
_LACKING = "– library or data missing"
#: where the takers of tasks differ
BY_PAIRS = "Models took different tasks: ranks are by pairs, over the tasks that both have."
#: what the test of a leaderboard is about
_TESTED = {
    "tasks": "over the tasks; 95 % is the t interval of the mean rank",
    "items": "on the test items, as fitted",
    LEARNERS: "as learners",
    "folds": "over the folds of the task",
    THESE_TASKS: "on average over these tasks",
}
_DIFFERENCE = (
    "difference: mean gain over the reference on common tasks, of metrics such as rmse as a "
    "share; the 95 % intervals hold for these tasks, for all pairs of models together."
)
#: what a rule does with missing scores, and with failed jobs
_WORST = "each counts as the worst score of its fold"
_RULES = {
    "worst": ("failures count as the worst score of their fold, others are left out", _WORST),
    "penalize": (_WORST, _WORST),
    "exclude": (
        "only folds with scores of all models are compared",
        "their folds are left out for all models",
    ),
    BASELINE: ("replaced by those of {}", "each counts as the score of {} in its fold"),
}
#: column of exports with the tasks whose score was filled; by task, the number of filled folds
FILLED_TASKS = "filled"


def scored_tasks(board: pd.DataFrame) -> list[str]:
    """Return the tasks with a score of at least one model."""
    tasks: list[str] = board.attrs["tasks"]
    if board.attrs.get("by") is None:
        return [task for task in tasks if board[task].notna().any()]
    states = board.attrs["cells"].values()
    models = board.index.get_level_values("model").nunique()
    return [task for task in tasks if sum(task in cells for cells in states) < models]


def caption(board: pd.DataFrame) -> str:
    """Return what is ranked, the rule for missing scores, and the seeds."""
    facts = board.attrs
    by, models = facts.get("by"), board.index.get_level_values("model").nunique()
    scored = len(scored_tasks(board))
    if by == "task":
        what = f"{count(models, 'model')} on {count(scored, 'task')}: rank on each, 1 is best."
    else:
        compared = facts.get("missing", {}).get("tasks", scored)
        scored = facts.get("missing", {}).get("of", scored)
        tasks = f"{compared} of " * (compared < scored) + count(scored, "task")
        within = f" within each {by}" if by else ""
        what = f"{count(models, 'model')} by mean rank over {tasks}{within}, 1 is best."
    parts = [f"{facts['group'].capitalize()}: {what}" if facts.get("group") else what]
    if by in (None, "task"):
        parts.append("↑ higher is better, ↓ lower is better.")
    if facts.get("missing"):
        parts.append(f"Missing scores: {_rule_text(facts['missing']['rule'], 0)}.")
    if facts.get("seeds"):
        seeds = ", ".join(map(str, facts["seeds"]))
        parts.append(f"Seed{'' if len(facts['seeds']) == 1 else 's'} {seeds}.")
    return " ".join(parts)


def notes(board: pd.DataFrame) -> Iterator[str]:
    """Yield the notes below a leaderboard."""
    yield from _of_separation(board)
    yield from _of_pooled_runs(board.attrs)
    if board.attrs.get("normalize"):
        yield _scale(board.attrs["normalize"], board.attrs["by"])
    yield from _of_ratings(board)
    if "score_low" in board:
        yield "95 % of a score: t interval over folds; it does not test differences between models."
    yield from _of_missing(board)
    missing = board.attrs.get("missing", {})
    if missing.get("rule") == "exclude" and not missing.get("tasks") and len(board) > 1:
        yield "No task has scores of all models: use fewer runs or another --missing rule."
    scored = scored_tasks(board)
    empty = [short(task) for task in board.attrs["tasks"] if task not in scored]
    if empty:
        yield f"Tasks without any score (see info in results.csv): {', '.join(empty)}."
    yield from eliminated_notes(board.attrs.get("eliminated", {}))
    yield from _of_lacking(board.attrs.get("lacking", {}))
    yield from _of_coverage(board.attrs.get("coverage", {}))
    for task, (number, tested) in list(board.attrs.get("duplicate_rows", {}).items())[:MAX_NOTES]:
        yield f"{plain(task)}: {number:,} of {tested:,} test rows also occur in training data."
    for task, label in list(board.attrs.get("positive", {}).items())[:MAX_NOTES]:
        metric = board.attrs["metrics"][task]
        yield f"{plain(task)}: the positive class of {metric} is {plain(label)}."
    yield from _of_prompts(board.attrs.get("prompts", {}))
    yield from _of_ranks(board)
    yield from _of_other_tasks(board)


def _of_ranks(board: pd.DataFrame) -> Iterator[str]:
    """Yield how models of different tasks are ranked, who has few tasks, and who has no rank."""
    facts = board.attrs
    if facts.get("by_pairs"):
        yield BY_PAIRS
    if facts.get("by") is not None:
        return
    if few := facts.get("few_tasks"):
        names = ", ".join(f"{short(name)} ({number})" for name, number in few.items())
        yield f"Ranked on few tasks, without an interval of the rank: {names}."
    for name, others in list(facts.get("no_common_task", {}).items())[:MAX_NOTES]:
        lacking = _join([short(other) for other in others])
        yield f"Not ranked: {short(name)} has no common task with {lacking}."


def eliminated_notes(gone: Mapping[str, str]) -> Iterator[str]:
    """Yield when and why models were eliminated in a race."""
    for model, text in gone.items():
        yield f"Not ranked: {short(model)}, {plain(text)}."


def _of_pooled_runs(facts: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what is special about scores of several runs, or of unfinished ones."""
    yield from _of_partial(_unfilled(facts))
    yield from _of_seeds(facts.get("seed_spread", {}))
    repeats = facts.get("repeats", {})
    if repeats:
        older, names = sum(repeats.values()), _join([short(name) for name in repeats])
        yield f"{count(older, 'repeated job')}: the newest counts ({names})."


def _of_separation(board: pd.DataFrame) -> Iterator[str]:
    """Yield what the letters mean and which models may be the best, or why nothing is tested."""
    facts = board.attrs.get("separation")
    if not facts or len(board) < 2:
        return
    tests = [facts] if "by" in facts else list(facts.values())
    yield from _of_letters(tests)
    reasons: dict[str, list[str]] = {}
    for name, one in [("", facts)] if "by" in facts else facts.items():
        if one["why"] and one["why"] != ONE_MODEL:
            reasons.setdefault(one["why"], []).append(short(name))
    for why, names in reasons.items():
        where = f" {_join(names)}" if len(names) < len(tests) else ""
        yield f"Differences are not tested{' on' * bool(where)}{where}: {why}."
    these = facts.get("by") == THESE_TASKS and board.attrs.get("these_tasks")
    if these:
        yield headline(these)
    yield from _of_these_tasks(board)
    if (
        not these
        and "top" in board
        and board.index.nlevels == 1
        and 1 < board["top"].sum() < len(board)
    ):
        top = _join([short(name) for name in board.index[board["top"]]])
        yield f"May be the best model (95 %): {top}."
    yield from _of_queries(board, facts.get("queries"), facts.get("spread", 0.0))


def command_text(command: Any) -> str | None:
    """Return a command as one line, whether it is stored as a text or as a list.

    >>> command_text(["karat", "run", "my suite"])
    "karat run 'my suite'"
    """
    if isinstance(command, list | tuple):
        return shlex.join(map(str, command))
    return str(command) if command else None


def command_to_train_again(separation: Mapping[str, Any], command: str) -> str:
    """Return the command of a run with more seeds, if its test is about the models as fitted.

    >>> command_to_train_again({"claim": "as fitted"}, "karat run t.csv --target y")
    'karat run t.csv --target y --resume --seeds 3'
    """
    if separation.get("claim") != AS_FITTED or not command.startswith("karat run "):
        return ""
    return f"{command}{'' if '--resume' in command else ' --resume'} --seeds 3"


def _of_letters(tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the letters of tests mean, and what they do not include."""
    kinds = [LEARNERS if _adds_training(test) else test["by"] for test in tests]
    for kind in dict.fromkeys(filter(None, kinds)):
        same = [test["test"] for test, other in zip(tests, kinds, strict=True) if other == kind]
        names = ", ".join(dict.fromkeys(same))
        yield f"Models that share a letter do not differ significantly {_TESTED[kind]} ({names})."
    if any(test["by"] and test.get("claim") == AS_FITTED for test in tests):
        yield TRAIN_AGAIN


def _adds_training(facts: Mapping[str, Any]) -> bool:
    """Return whether a test on items includes the noise of training."""
    return facts["by"] == "items" and facts.get("claim") == LEARNERS


def _of_these_tasks(board: pd.DataFrame) -> Iterator[str]:
    """Yield what the differences to the first model are, and which models share fewer tasks."""
    these = board.attrs.get("these_tasks")
    if not these or "difference" not in board:
        return
    first, rows = short(these["reference"]), these["models"]
    fewer = [row for row in rows if row["tested"] and row["tested"] < len(these["tasks"])]
    names = [f"{short(row['model'])} {row['tested']}" for row in fewer]
    yield _DIFFERENCE
    if names:
        shared = all(row["tested"] == row["tasks"] for row in fewer)
        what = f"{'shared with' if shared else 'tested against'} {first}"
        yield f"Tasks {what}, of {len(these['tasks'])}: {_join(names)}."


def _of_other_tasks(board: pd.DataFrame) -> Iterator[str]:
    """Yield tasks of a single model, and, with two to five tasks, that other tasks may differ."""
    if alone := _without_ranks(board):
        yield f"Only one model has scores: {', '.join(alone)}."
    facts = board.attrs.get("separation") or {}
    tests = [facts] if "by" in facts else list(facts.values())
    if any(one["by"] == THESE_TASKS for one in tests):
        yield OTHER_TASKS


def _of_queries(
    board: pd.DataFrame, queries: tuple[int, int] | None, spread: float
) -> Iterator[str]:
    """Yield how many queries would be needed to distinguish the two best models."""
    if queries is None or board.index.nlevels > 1 or "tie" not in board:
        return
    best, second = board.index[:2]
    if set(str(board["tie"].iloc[0])) & set(str(board["tie"].iloc[1])) - {" "}:
        have, needed = queries
        if not spread:
            yield f"{short(best)} and {short(second)} have equal scores on all {have:,} queries."
            return
        detect = f"to detect a difference of {DETECTED}."
        more = f"; about {needed:,} would be needed {detect}"
        names = f"{short(best)} and {short(second)} cannot be distinguished with {have:,} queries"
        yield names + (more if needed > have else f", which are enough {detect}")


def _unfilled(facts: Mapping[Any, Any]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the scores over fewer folds than planned that no baseline filled."""
    filled = facts.get("filled", {})
    return {
        model: {task: folds for task, folds in tasks.items() if task not in filled.get(model, {})}
        for model, tasks in facts.get("partial", {}).items()
    }


def _of_partial(partial: Mapping[str, Mapping[str, tuple[int, int]]]) -> Iterator[str]:
    """Yield the scores over fewer folds than planned."""
    cells = [(m, t, *folds) for m, tasks in partial.items() for t, folds in tasks.items()]
    names = [f"{short(m)} on {short(t)} ({have} of {of})" for m, t, have, of in cells]
    if names:
        yield f"{PARTIAL} mean of fewer folds than planned: {_join(names, MAX_NOTES)}."


def _of_seeds(spread: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the range of the standard deviation over seeds, for each model with several."""
    for model, tasks in list(spread.items())[:MAX_NOTES]:
        low, high = min(tasks.values()), max(tasks.values())
        size = rounded(low) if low == high else f"{rounded(low)} to {rounded(high)}"
        yield f"{short(model)}: standard deviation over seeds {size} ({count(len(tasks), 'task')})."


def _join(names: Sequence[str], most: int = MAX_NAMES) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _of_ratings(board: pd.DataFrame) -> Iterator[str]:
    """Yield the meaning of ratings, and the models of the Pareto front."""
    if "borda" in board:
        yield "borda: number of models beaten, summed over tasks."
    if "elo" in board:
        anchor = board.attrs.get("anchor")
        center = (
            "the mean of all models is 1,500" if anchor is None else f"{short(anchor)} is at 1,500"
        )
        yield f"elo: a lead of 400 points means odds of 10:1 to win a task; {center}."
    if "pareto" in board:
        cost = _COSTS.get(board.attrs["pareto"], plain(board.attrs["pareto"]))
        text = f"pareto: no other model is better at a lower cost ({cost})"
        front = board.index[board["pareto"]] if board.index.nlevels == 1 else []
        names = [short(name) for name in front[:MAX_NAMES]]
        names += [f"{len(front) - MAX_NAMES} more"] if len(front) > MAX_NAMES else []
        yield f"{text}: {', '.join(names)}." if names else f"{text}."
        if board.attrs.get("uneven"):
            yield "Costs are those of the tasks of each model; models have different tasks."


def _of_lacking(lacking: Mapping[tuple[str, str], Sequence[tuple[str, str]]]) -> Iterator[str]:
    """Yield which libraries and data were missing, and what to do."""
    for (what, info), pairs in list(lacking.items())[:MAX_NOTES]:
        names = list(dict.fromkeys(model if what == "library" else task for model, task in pairs))
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        listed = ", ".join(map(short, names[:MAX_NAMES])) + more
        kind = "" if what == "library" else "data not available: "
        yield f"{listed}: {kind}{plain(info.partition(' Tried:')[0])}"
    if len(lacking) > MAX_NOTES:
        yield f"{count(len(lacking) - MAX_NOTES, 'more reason')} (karat plan shows all)."


def _of_prompts(prompts: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the prompts that models used, by role."""
    for model, texts in list(prompts.items())[:MAX_NOTES]:
        used = [f'{plain(role)} "{plain(short(text))}"' for role, text in texts.items() if text]
        yield f"{short(model)} used the prompts: {', '.join(used)}."
    if len(prompts) > MAX_NOTES:
        yield f"{count(len(prompts) - MAX_NOTES, 'more model')} used prompts (see run.json)."


def _of_coverage(coverage: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Yield the lowest shares of questions that a model could answer."""
    lowest = sorted(coverage.items(), key=lambda cell: cell[1])
    for (model, task), share in lowest[:MAX_NOTES]:
        yield f"{short(model)} answered {percent(share, 0)} of {plain(task)}."
    if len(lowest) > MAX_NOTES:
        more = count(len(lowest) - MAX_NOTES, "cell")
        least = percent(lowest[MAX_NOTES][1], 0)
        yield f"{more} more, from {least} up (see karat compare --on common)."


def _of_missing(board: pd.DataFrame) -> Iterator[str]:
    counts = board.attrs.get("missing", {"rule": "worst"})
    rule = counts["rule"]
    lacking = _lacking_cells(board)
    states = [(meaning, state, counts.get(state, 0)) for state, meaning in _MEANINGS.items()]
    states = [(m, s, n - lacking if s == DECLINED else n) for m, s, n in states]
    for meaning, state, number in [*states, (_LACKING, DECLINED, lacking)]:
        if number:
            effect = ""
            if rule in ("worst", "penalize"):
                worst = rule == "penalize" or state == FAILED
                effect = ", counted as the worst" if worst else ", left out"
            yield f"{meaning}: {count(number, 'cell')}{effect}."
    if rule == "exclude":
        tasks = f"{counts['tasks']} of {count(counts['of'], 'task')}"
        yield f"Compared on folds with scores of all models: {tasks}."
    if rule.startswith(BASELINE):
        missing = sum(counts[state] for state in _MEANINGS)
        cells = f"{counts['imputed']} of {missing}"
        yield f"Missing cells with the score of {_baseline(rule)}: {cells}."
        yield from _of_filled(board.attrs.get("filled", {}), _baseline(rule))
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        yield f"{count(failed, 'job')} failed: {_rule_text(rule, 1)}."
    if counts.get("partial"):
        cells = count(counts["partial"], "cell")
        common = "compared on common folds"
        effect = "missing folds count as the worst" if rule == "penalize" else common
        yield f"{cells} of unfinished runs: {effect}."


def _of_filled(filled: Mapping[str, Mapping[str, tuple[int, int]]], baseline: str) -> Iterator[str]:
    """Yield which scores have folds of the baseline."""
    cells = [(m, t, *folds) for m, tasks in filled.items() for t, folds in tasks.items()]
    names = [f"{short(m)} on {short(t)} ({number} of {of})" for m, t, number, of in cells]
    if names:
        text = f"{FILLED} as ranked, missing folds filled with the score of {baseline}"
        yield f"{text}: {_join(names, MAX_NOTES)}."


def _lacking_cells(board: pd.DataFrame) -> int:
    """Return how many declined cells lack a library or data, on tasks that have a score."""
    pairs = {pair for where in board.attrs.get("lacking", {}).values() for pair in where}
    cells, scored = board.attrs.get("cells", {}), scored_tasks(board) if pairs else ()
    return sum(t in scored and cells.get(m, {}).get(t) == DECLINED for m, t in pairs)


def _rule_text(rule: str, number: int) -> str:
    if rule.startswith(BASELINE):
        return _RULES[BASELINE][number].format(_baseline(rule))
    return _RULES[rule][number]


def _baseline(rule: str) -> str:
    return short(rule.removeprefix(BASELINE))


def _scale(reference: str, by: str | None) -> str:
    zero = "the worst"
    if reference.startswith(BASELINE):
        zero, comma, one = reference.removeprefix(BASELINE).partition(",")
        if comma:
            text = f"1 is {short(one)}, 0 is {short(zero)}; means over folds."
            return f"normalized: {text}" if by == "task" else f"score: mean over tasks; {text}"
        zero = f"{_baseline(reference)} (at least -1)"
    if by == "task":
        return f"normalized: 1 is the best model of the task, 0 is {zero}."
    return f"score: mean over the tasks of a model; 1 is the best model of a task, 0 is {zero}."


def _without_ranks(board: pd.DataFrame) -> list[str]:
    """Return the kinds or datasets with scores of fewer than two models."""
    groups = board.attrs.get("groups", {})
    if "tasks" not in board:
        return []
    ranked = board["rank"].groupby(level=0).count()
    scored = dict.fromkeys(groups[task] for task in scored_tasks(board))
    return [short(group) for group in scored if not ranked[group]]


def make_table(board: pd.DataFrame | Table) -> Table:
    """Return the table of a leaderboard of any view; a table is returned unchanged."""
    if isinstance(board, Table):
        return board
    by = board.attrs.get("by")
    rows = board
    if by is not None:
        # groups without a score are listed below the table
        group_values = board["score" if by == "task" else "rank"].groupby(level=0, sort=False)
        rows = board[group_values.transform("count") > 0]
    group = pd.factorize(rows.index.get_level_values(0))[0] if by else np.zeros(len(rows))
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    model = text_column("model", rows.index.get_level_values("model"), right=False)
    if by == "task":
        columns = _by_task(rows, starts)
    elif by is None:
        scores = rows.copy(deep=False)
        scores.attrs = {}  # pandas copies all attributes with each column
        tasks = [_task(scores, task, rows.attrs) for task in scored_tasks(rows)]
        tasks += [_metric(scores[name], up) for name, up in _further(rows).items()]
        columns = [*_ranks(rows, starts), *tasks, *_costs(rows)]
    else:
        counts = text_column("tasks", map(_count, rows["tasks"]))
        columns = [*_ranks(rows, starts), counts, *_costs(rows)]
    below, title = list(notes(board)), str(board.attrs.get("group", ""))
    return Table(_groups(rows), model, columns, starts, caption(board), below, title)


def make_tables(board: pd.DataFrame | Table) -> list[Table]:
    """Return the table of each group of models that cannot be compared with the others."""
    if isinstance(board, Table):
        return [board]
    tables = [make_table(part) for part in split_groups(board)]
    if len(tables) > 1:
        tables = [replace(table, notes=[]) for table in tables[:-1]] + [
            replace(tables[-1], notes=_merged_notes(tables))
        ]
    return tables


def _merged_notes(tables: Sequence[Table]) -> list[str]:
    """Return the notes of all groups; those of some groups begin with the name of the group."""
    titles_of: dict[str, list[str]] = {}
    for table in tables:
        for note in table.notes:
            titles_of.setdefault(note, []).append(table.title)
    lines = [
        n if len(at) == len(tables) else f"{', '.join(at)}: {n}" for n, at in titles_of.items()
    ]
    lines.sort(key=lambda line: line.endswith(OTHER_TASKS))  # what cannot be told comes last
    names = ", ".join(table.title for table in tables)
    return [f"Models of different groups ({names}) share too few tasks to be compared.", *lines]


def _groups(rows: pd.DataFrame) -> list[Column]:
    by = rows.attrs.get("by")
    if by is None:
        return []
    names = rows.index.get_level_values(0)
    columns = [text_column(by, names, right=False)]
    if by == "task":
        up = rows.attrs["higher_is_better"]
        pairs = zip(rows["metric"], names, strict=True)
        labels = [metric_label(metric, up[task]) for metric, task in pairs]
        columns.append(text_column("metric", labels, right=False))
    return columns


def _by_task(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    up = np.array([rows.attrs["higher_is_better"][task] for task in rows.index.get_level_values(0)])
    best = best_of(rows["score"] * np.where(up, 1, -1), starts)
    scores = [
        _score(value, is_best, SIGNS.get(state, "–"))
        for value, is_best, state in zip(rows["score"], best, rows["status"], strict=True)
    ]
    if "filled" in rows:
        marks = [FILLED if number else "" for number in rows["filled"]]
        scores = [replace(c, text=c.text + mark) for c, mark in zip(scores, marks, strict=True)]
    columns = [
        *_places(rows, starts),
        Column("score", scores),
        _interval(rows["score_low"], rows["score_high"], rounded),
    ]
    if "normalized" in rows:
        mark = best_of(rows["normalized"], starts)
        columns.append(_numbers("normalized", rows["normalized"], mark, rounded))
    folds = [text_column("folds", _fold_counts(rows))] if "folds" in rows else []
    if "seed_spread" in rows:
        folds.append(text_column("sd of seeds", map(rounded, rows["seed_spread"])))
    costs = [column for column in _costs(rows) if column.name in ("failed", "time")]
    return [*columns, *_front(rows), *folds, *costs]


def _fold_counts(rows: pd.DataFrame) -> list[str]:
    """Return the number of folds with a score, and of how many if more were planned."""
    planned = rows["planned"] if "planned" in rows else rows["folds"]
    pairs = zip(rows["folds"], planned, strict=True)
    return [f"{_count(n)} of {_count(of)}" if of > n > 0 else _count(n) for n, of in pairs]


def _places(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    letters = sorted({letter for ties in rows["tie"] for letter in ties})
    ties = [str(ties) for ties in rows["tie"]]
    if len(letters) < MAX_LETTERS:
        ties = [" ".join(x if x in ties else " " for x in letters) for ties in ties]
    best = best_of(-_compared(rows, "rank", starts), starts)
    columns = [_numbers("rank", rows["rank"], best, format_rank)]
    if rows["rank_low"].notna().any():
        columns.append(_interval(rows["rank_low"], rows["rank_high"], format_rank))
    if any(tie.strip() for tie in ties):  # otherwise nothing is tested
        columns.append(text_column(_tie_head(rows), ties, right=False))
    return columns


def _tie_head(rows: pd.DataFrame) -> str:
    """Return the head of the letters, which says if they are about the models as fitted."""
    return f"{TIE}, {AS_FITTED}" if _claims(rows) == {AS_FITTED} else TIE


def _claims(rows: pd.DataFrame) -> set[str]:
    """Return what the tests of a leaderboard are about: learners, or the models as fitted."""
    facts = rows.attrs.get("separation") or {}
    tests = [facts] if "by" in facts else list(facts.values())
    return {one["claim"] for one in tests if one.get("by") and one.get("claim")}


def _compared(rows: pd.DataFrame, name: str, starts: Sequence[int]) -> pd.Series:
    """Return a column without models on too few tasks: they are not marked as the best."""
    few = rows.attrs.get("few", ()) if rows.attrs.get("by") is None else ()
    ranked = ~rows.index.isin(few) if len(few) else (rows["tie"] != "").to_numpy()
    if ranked.all():
        return rows[name]
    sizes = np.diff([*starts, len(rows)])
    others = np.repeat(np.logical_or.reduceat(ranked, starts), sizes)
    return rows[name].where(ranked | ~others)


def _ranks(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    columns = [*_places(rows, starts), *_differences(rows)]
    points = {"borda": _halves, "elo": _whole}
    for name in ("score", "median", "wins", "borda", "elo"):
        if name in rows:
            best = best_of(_compared(rows, name, starts), starts)
            columns.append(_numbers(name, rows[name], best, points.get(name, rounded)))
    if "elo" in rows:
        columns.append(_interval(rows["elo_low"], rows["elo_high"], _whole))
    return columns + _front(rows)


def _differences(rows: pd.DataFrame) -> list[Column]:
    """Return the difference of each model to the first one over these tasks, if it is known."""
    if "difference" not in rows or rows["difference"].isna().all():
        return []
    ends = zip(*(rows[f"difference{end}"] for end in ("", "_low", "_high")), strict=True)
    texts = [
        "–" if math.isnan(value) else "reference" if math.isnan(low) else interval(value, low, high)
        for value, low, high in ends
    ]
    return [text_column("difference, 95 %", texts)]


def _front(rows: pd.DataFrame) -> list[Column]:
    if "pareto" not in rows:
        return []
    return [text_column("pareto", ("yes" if on else "" for on in rows["pareto"]), right=False)]


def _task(rows: pd.DataFrame, task: str, facts: Mapping[Any, Any]) -> Column:
    up = facts["higher_is_better"][task]
    states_of = facts.get("cells", {})
    signs = [SIGNS.get(states_of.get(model, {}).get(task, ""), "–") for model in rows.index]
    best = best_of(rows[task] if up else -rows[task], [0])
    cells = [_score(*score) for score in zip(rows[task], best, signs, strict=True)]
    marks = [_mark(facts, model, task) for model in rows.index]
    cells = [replace(c, text=c.text + mark) for c, mark in zip(cells, marks, strict=True)]
    label = metric_label(facts["metrics"][task], up)
    return Column(plain(task), cells, plain(label), part="task")


def _mark(facts: Mapping[Any, Any], model: str, task: str) -> str:
    """Return the mark of a score that was filled, or that is the mean of fewer folds."""
    if task in facts.get("filled", {}).get(model, ()):
        return FILLED
    return PARTIAL if task in facts.get("partial", {}).get(model, ()) else ""


def _further(rows: pd.DataFrame) -> dict[str, bool]:
    """Return the columns of the other metrics of a single task, and whether higher is better."""
    return {n: up for n, up in rows.attrs.get("further", {}).items() if n in rows}


def _metric(values: pd.Series, up: bool) -> Column:
    """Return the column of another metric of a task."""
    best = best_of(values if up else -values, [0])
    cells = [_score(*score, "–") for score in zip(values, best, strict=True)]
    return Column("", cells, metric_label(str(values.name), up), part="task")


def _costs(rows: pd.DataFrame) -> list[Column]:
    headings: dict[str, tuple[str, Callable[[float], str]]] = {
        "failed": ("failed", _count),
        "declined": ("n/a", _count),
        "seconds": ("time", duration),
        "memory_mb": ("memory", _form("{:.1f} GB", 1 / 1024)),
        "dimensions": ("dims", _whole),
        "vector_bytes": ("bytes", _whole),
        "tokens": ("tokens", _whole),
        "price": ("price", money),
    }
    there = [name for name in headings if name in rows]
    if "dimensions" in there and rows["dimensions"].isna().all():
        there.remove("dimensions")  # predictors have none
    return [text_column(headings[n][0], map(headings[n][1], rows[n]), part="cost") for n in there]


def _numbers(
    name: str, values: pd.Series, best: np.ndarray, write: Callable[[float], str]
) -> Column:
    pairs = zip(values, best, strict=True)
    return Column(name, [Cell(write(value), bool(is_best)) for value, is_best in pairs])


def _interval(low: pd.Series, high: pd.Series, write: Callable[[float], str]) -> Column:
    pairs = zip(low, high, strict=True)
    texts = ["–" if math.isnan(a) else f"{write(a)} – {write(b)}" for a, b in pairs]
    return Column("95 %", [Cell(text) for text in texts])


def _score(value: float, best: bool, sign: str) -> Cell:
    return Cell(sign, faint=True) if math.isnan(value) else Cell(rounded(value), bool(best))


def _form(form: str, unit: float = 1.0) -> Callable[[float], str]:
    return lambda value: "–" if pd.isna(value) else form.format(value * unit)


def _count(value: float) -> str:
    return "0" if pd.isna(value) else f"{value:.0f}"


def _whole(value: float) -> str:
    return _form("{:,.0f}")(value)


def _halves(value: float) -> str:
    return _form("{:,.1f}")(value).removesuffix(".0")


def render(board: pd.DataFrame, shape: str) -> str:
    """Return a leaderboard as "markdown", "latex", "html", "csv" or "json".

    CSV and JSON contain numbers at full precision; missing values are empty.
    """
    if shape not in FORMATS:
        names, hint = ", ".join(f'"{name}"' for name in FORMATS), did_you_mean(shape, FORMATS)
        raise DefinitionError(f"invalid format {shape!r}: expected one of {names}.{hint}")
    return FORMATS[shape](board)


def render_frame(frame: pd.DataFrame, shape: str) -> str:
    """Return any data frame in one of the formats of ``render``."""
    if shape not in DOCUMENTS:
        return render(frame.set_index(frame.columns[0]), shape)
    numeric = pd.api.types.is_numeric_dtype
    first, *others = (text_column(str(n), frame[n], right=numeric(frame[n])) for n in frame)
    return DOCUMENTS[shape](Table([], first, others, [], "", []))


def to_csv(board: pd.DataFrame) -> str:
    """Return CSV with numbers at full precision."""
    rows = _with_filled(_with_eliminated(board))
    if FILLED_TASKS in rows and board.attrs["by"] != "task":
        rows[FILLED_TASKS] = rows[FILLED_TASKS].map("; ".join)
    return str(rows.to_csv(lineterminator="\n"))


def _to_json(board: pd.DataFrame) -> str:
    """Return a JSON list of rows."""
    return dump_json(records(_with_filled(_with_eliminated(board)).reset_index()))


def _with_filled(board: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with the names of each model's tasks that were filled, if any."""
    filled = board.attrs.get("filled")
    if not filled or board.attrs["by"] == "task":
        return board
    models = board.index.get_level_values("model")
    return board.assign(**{FILLED_TASKS: [list(filled.get(model, ())) for model in models]})


def _with_eliminated(board: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with rows without a rank for the models that a race eliminated."""
    gone = board.attrs.get("eliminated")
    if not gone or board.index.nlevels > 1:
        return board
    rows = pd.DataFrame({ELIMINATED: gone}).rename_axis(board.index.name)
    whole = pd.concat([board.assign(**{ELIMINATED: ""}).astype(object), rows])
    return whole.where(whole.notna(), None)


def to_markdown(board: pd.DataFrame | Table) -> str:
    """Return a caption, a GitHub table and the notes."""
    return markdown_table(make_table(board))


def to_latex(board: pd.DataFrame | Table) -> str:
    """Return a booktabs tabular with caption and notes below it."""
    return latex_table(make_table(board))


def to_html(board: pd.DataFrame | Table, classes: bool = False) -> str:
    """Return an HTML table that needs no other file; ``classes`` uses those of the report."""
    return html_table(make_table(board), classes)


def lines_below(lines: Sequence[str], shape: str) -> str:
    r"""Return lines below a leaderboard in Markdown, LaTeX or HTML.

    >>> print(lines_below(["50 % of a_b", "c"], "latex"), end="")
    {\footnotesize 50 \% of a\_b\par}
    {\footnotesize c\par}
    """
    if shape == "markdown":
        return "".join(f"\n- {escape_markdown(line)}" for line in lines) + "\n" * bool(lines)
    if shape == "latex":
        return "".join(f"{{\\footnotesize {escape_latex(line)}\\par}}\n" for line in lines)
    items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
    return f'<ul style="{NOTE_STYLE}">\n{items}</ul>\n' if items else ""


def _of_groups(write: Callable[[Table], str]) -> Callable[[pd.DataFrame | Table], str]:
    """Return a function that writes the table of each group, with an empty line between them."""
    return lambda board: "\n".join(write(table) for table in make_tables(board))


DOCUMENTS: dict[str, Callable[[pd.DataFrame | Table], str]] = {
    "markdown": _of_groups(to_markdown),
    "latex": _of_groups(to_latex),
    "html": _of_groups(to_html),
}
FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {**DOCUMENTS, "csv": to_csv, "json": _to_json}
