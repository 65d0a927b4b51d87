"""What a reader must know beside the numbers of a board: its caption and the notes below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from karat.results.cells import DECLINED, FAILED, NOT_RUN
from karat.results.missing import BASELINE
from karat.results.ranks import FEWEST_TASKS, too_few

#: how a cell without a score is shown, by why it has none
SIGNS = {DECLINED: "–", FAILED: "failed", NOT_RUN: "…"}
#: so many notes about coverage are enough
MOST_NOTES = 6
#: so many names of one kind too
MOST_NAMES = 12
#: longer names are cut in a note
NAME_WIDTH = 32
_COSTS = {"seconds": "time", "memory_mb": "memory"}
_MEANINGS = {
    DECLINED: "– not applicable to this model",
    FAILED: "failed, without a score",
    NOT_RUN: "… not run",
}


def plain(name: object) -> str:
    r"""Return a name on one line, without signs that steer a terminal.

    >>> plain("a\nb\x1b[1m")
    'a b�[1m'
    """
    line = " ".join(str(name).split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


def short(name: object, width: int = NAME_WIDTH) -> str:
    """Return a name for the middle of a sentence, cut where it is long."""
    text = plain(name)
    return text if len(text) <= width else text[: width - 1] + "…"


def scored_tasks(board: pd.DataFrame) -> list[str]:
    """Return the tasks of which a model has a score."""
    tasks: list[str] = board.attrs["tasks"]
    if board.attrs.get("by") is None:
        return [task for task in tasks if board[task].notna().any()]
    lost = board.attrs["cells"].values()
    models = board.index.get_level_values("model").nunique()
    return [task for task in tasks if sum(task in cells for cells in lost) < models]


def caption(board: pd.DataFrame) -> str:
    """Return what is ranked, what the signs mean, the rule for missing scores, and the seeds."""
    facts = board.attrs
    by, models = facts.get("by"), board.index.get_level_values("model").nunique()
    scored = len(scored_tasks(board))
    if by == "task":
        what = f"{_count(models, 'model')} on {_count(scored, 'task')}: rank on each, 1 is best."
    else:
        compared = facts.get("missing", {}).get("tasks", scored)
        scored = facts.get("missing", {}).get("of", scored)
        tasks = f"{compared} of " * (compared < scored) + _count(scored, "task")
        within = f" within each {by}" if by else ""
        what = f"{_count(models, 'model')} by mean rank over {tasks}{within}, 1 is best."
    parts = [what]
    if by in (None, "task"):
        parts.append("↑ higher is better, ↓ lower is better.")
    if facts.get("missing"):
        parts.append(f"Missing scores: {_rule(facts['missing']['rule'])}.")
    if facts.get("seeds"):
        seeds = ", ".join(map(str, facts["seeds"]))
        parts.append(f"Seed{'' if len(facts['seeds']) == 1 else 's'} {seeds}.")
    return " ".join(parts)


def notes(board: pd.DataFrame) -> Iterator[str]:
    """Yield what a reader must know to read the board."""
    if "tie" in board and len(board) > 1:
        where = "within their task" if board.attrs.get("by") == "task" else "on these tasks"
        yield f"Models that share a letter cannot be told apart {where}."
    if board.attrs.get("normalise"):
        yield _scale(board.attrs["normalise"], board.attrs["by"])
    yield from _of_ratings(board)
    if "score_low" in board:
        yield "95 % of the score: t interval over folds: their spread, not who is better."
    yield from _of_missing(board)
    told = board.attrs.get("missing", {})
    if told.get("rule") == "exclude" and not told.get("tasks") and len(board) > 1:
        yield "No task has a score of all these models: name fewer runs, or another rule."
    scored = scored_tasks(board)
    empty = [short(task) for task in board.attrs["tasks"] if task not in scored]
    if empty:
        yield f"No model has a score here (info in results.csv says why): {', '.join(empty)}."
    yield from _of_coverage(board.attrs.get("coverage", {}))
    for task, (twins, tested) in list(board.attrs.get("twins", {}).items())[:MOST_NOTES]:
        yield f"{plain(task)}: {twins:,} of {tested:,} test rows also stand in their train part."
    few = _ranked_on_few(board) if board.attrs.get("by") is None else []
    if few:
        yield f"Too few tasks to compare, below {FEWEST_TASKS}: {', '.join(few)}."
    alone = _without_ranks(board)
    if alone:
        yield f"No two models to compare here: {', '.join(alone)}."


def _of_ratings(board: pd.DataFrame) -> Iterator[str]:
    """Yield what ratings mean, and who stands on the front."""
    if "borda" in board:
        yield "borda: how many models are beaten, summed over tasks."
    if "elo" in board:
        anchor = board.attrs.get("anchor")
        centre = "the mean of all is 1,500" if anchor is None else f"{short(anchor)} is at 1,500"
        yield f"elo: 400 points are odds of ten to one to win a task; {centre}."
    if "pareto" in board:
        cost = _COSTS.get(board.attrs["pareto"], plain(board.attrs["pareto"]))
        said = f"pareto: no other model is better at a lower cost ({cost})"
        front = board.index[board["pareto"]] if board.index.nlevels == 1 else []
        names = [short(name) for name in front[:MOST_NAMES]]
        names += [f"{len(front) - MOST_NAMES} more"] if len(front) > MOST_NAMES else []
        yield f"{said}: {', '.join(names)}." if names else f"{said}."
        if board.attrs.get("uneven"):
            yield "Costs are those of the tasks a model takes, and these are not the same for all."


def _of_coverage(coverage: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Yield who could answer how much, the least first."""
    lowest = sorted(coverage.items(), key=lambda each: each[1])
    for (model, task), share in lowest[:MOST_NOTES]:
        yield f"{short(model)} could answer {share:.0%} of {plain(task)}."
    if len(lowest) > MOST_NOTES:
        more = _count(len(lowest) - MOST_NOTES, "cell")
        yield f"{more} more, from {lowest[MOST_NOTES][1]:.0%} up (karat compare --common)."


def _of_missing(board: pd.DataFrame) -> Iterator[str]:
    counts = board.attrs.get("missing")
    if counts is None:
        if board[scored_tasks(board)].isna().to_numpy().any():
            yield f"{_MEANINGS[DECLINED]}, or no score."
        counts = {"rule": "worst"}
    rule = counts["rule"]
    for state, meaning in _MEANINGS.items():
        if counts.get(state):
            yield f"{meaning}: {_count(counts[state], 'cell')}{_fate(rule, state)}."
    if rule == "exclude":
        tasks = f"{counts['tasks']} of {_count(counts['of'], 'task')}"
        yield f"Compared on the folds in which all models have a score: {tasks}."
    if rule.startswith(BASELINE):
        lost = sum(counts[state] for state in _MEANINGS)
        cells = f"{counts['imputed']} of {lost}"
        yield f"Missing cells counted as the score of {_baseline(rule)}: {cells}."
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        yield f"{_count(failed, 'job')} failed: {_failed_fold(rule)}."
    if counts.get("partial"):
        cells = _count(counts["partial"], "cell")
        fate = "compared on the folds all have" if rule != "penalise" else "what lacks is the worst"
        yield f"{cells} of a run that is not finished: {fate}."


def _rule(rule: str) -> str:
    if rule == "exclude":
        return "only folds in which all models have a score are compared"
    if rule.startswith(BASELINE):
        return f"counted as those of {_baseline(rule)}"
    if rule == "penalise":
        return "counted as the worst score of their fold, why ever they are missing"
    return (
        "a failed fold counts as the worst score of its fold, "
        "what is not applicable or not run is left out"
    )


def _fate(rule: str, state: str) -> str:
    if rule not in ("worst", "penalise"):
        return ""
    return ", counted as the worst" if rule != "worst" or state == FAILED else ", left out"


def _failed_fold(rule: str) -> str:
    if rule == "exclude":
        return "its fold counts for nobody"
    if rule.startswith(BASELINE):
        return f"each counts as the score of {_baseline(rule)} in its fold"
    return "each counts as the worst score of its fold"


def _baseline(rule: str) -> str:
    return short(rule.removeprefix(BASELINE))


def _scale(reference: str, by: str | None) -> str:
    zero = "the worst"
    if reference.startswith(BASELINE):
        zero = f"{_baseline(reference)} (-1 the lowest)"
    if by == "task":
        return f"normalised: 1 is the best model of the task, 0 {zero}."
    return f"score: mean over the tasks a model takes; 1 is a task's best model, 0 {zero}."


def _ranked_on_few(board: pd.DataFrame) -> list[str]:
    """Return the models whose rank rests on hardly any task, where others rest on more."""
    few = board.attrs.get("few")
    if few is None:
        counts = board[board.attrs["tasks"]].notna().sum(axis=1)
        few = counts[(counts > 0) & too_few(counts.to_numpy())].index
    return [short(name) for name in few]


def _without_ranks(board: pd.DataFrame) -> list[str]:
    """Return the kinds or data sets that have scores, but of no two models."""
    groups = board.attrs.get("groups", {})
    if "tasks" not in board:
        return []
    ranked = board["rank"].groupby(level=0).count()
    scored = dict.fromkeys(groups[task] for task in scored_tasks(board))
    return [short(group) for group in scored if not ranked[group]]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
