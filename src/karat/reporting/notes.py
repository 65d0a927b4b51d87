"""The caption of a leaderboard and the notes below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from karat.analysis.formatting import count, plain, rounded, short
from karat.analysis.item_tests import DETECTED
from karat.analysis.score_matrix import BASELINE
from karat.results.load import DECLINED, FAILED, NOT_RUN
from karat.results.tables import ELIMINATED
from karat.stats.ranking import FEWEST_TASKS

#: signs of cells without a score
SIGNS = {DECLINED: "–", FAILED: "failed", NOT_RUN: "…", ELIMINATED: "out"}
#: mark of a score over fewer folds than planned
PARTIAL = "*"
#: reasons why models are not tested
TOO_FEW, ONE_MODEL = "too few tasks", "one model"
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


def scored_tasks(board: pd.DataFrame) -> list[str]:
    """Return the tasks with a score of at least one model."""
    tasks: list[str] = board.attrs["tasks"]
    if board.attrs.get("by") is None:
        return [task for task in tasks if board[task].notna().any()]
    lost = board.attrs["cells"].values()
    models = board.index.get_level_values("model").nunique()
    return [task for task in tasks if sum(task in cells for cells in lost) < models]


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
    for task, (duplicates, tested) in list(board.attrs.get("twins", {}).items())[:MAX_NOTES]:
        yield f"{plain(task)}: {duplicates:,} of {tested:,} test rows also occur in training data."
    for task, label in list(board.attrs.get("positive", {}).items())[:MAX_NOTES]:
        metric = board.attrs["metrics"][task]
        yield f"{plain(task)}: the positive class of {metric} is {plain(label)}."
    yield from _of_prompts(board.attrs.get("prompts", {}))
    few = board.attrs.get("few", ()) if board.attrs.get("by") is None else ()
    if len(few):
        names = ", ".join(map(short, few))
        yield f"Too few tasks to compare with the other models: {names}."
    if alone := _without_ranks(board):
        yield f"Only one model has scores: {', '.join(alone)}."


def eliminated_notes(gone: Mapping[str, str]) -> Iterator[str]:
    """Yield when and why models were eliminated in a race."""
    for model, text in gone.items():
        yield f"Not ranked: {short(model)}, {plain(text)}."


def _of_pooled_runs(facts: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what is special about scores of several runs, or of unfinished ones."""
    yield from _of_partial(facts.get("partial", {}))
    yield from _of_seeds(facts.get("seed_spread", {}))
    repeats = facts.get("repeats", {})
    if repeats:
        older, names = sum(repeats.values()), _join([short(name) for name in repeats])
        yield f"{count(older, 'repeated job')}: the newest counts ({names})."


#: what the test of a leaderboard is about
_TESTED = {
    "tasks": "over the tasks; 95 % is the t interval of the mean rank",
    "items": "on the test items, for the models as they were fitted",
    "folds": "over the folds of the task",
}


def _of_separation(board: pd.DataFrame) -> Iterator[str]:
    """Yield what the letters mean and which models may be the best, or why nothing is tested."""
    facts = board.attrs.get("separation")
    if not facts or len(board) < 2:
        return
    each = [facts] if "by" in facts else list(facts.values())
    for by in dict.fromkeys(one["by"] for one in each if one["by"]):
        tests = ", ".join(dict.fromkeys(one["test"] for one in each if one["by"] == by))
        yield f"Models that share a letter do not differ significantly {_TESTED[by]} ({tests})."
    reasons: dict[str, list[str]] = {}
    for name, one in [("", facts)] if "by" in facts else facts.items():
        if one["why"] and one["why"] != ONE_MODEL:
            reasons.setdefault(one["why"], []).append(short(name))
    for why, names in reasons.items():
        where = f" {_join(names)}" if len(names) < len(each) else ""
        needed = f"; intervals and letters need at least {FEWEST_TASKS}" if why == TOO_FEW else ""
        yield f"Differences are not tested{' on' * bool(where)}{where}: {why}{needed}."
    if "top" in board and board.index.nlevels == 1 and 1 < board["top"].sum() < len(board):
        top = _join([short(name) for name in board.index[board["top"]]])
        yield f"May be the best model (95 %): {top}."
    yield from _of_queries(board, facts.get("queries"), facts.get("spread", 0.0))


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


def _of_partial(partial: Mapping[str, Mapping[str, tuple[int, int]]]) -> Iterator[str]:
    """Yield the scores over fewer folds than planned."""
    cells = [(m, t, *folds) for m, tasks in partial.items() for t, folds in tasks.items()]
    shown = [f"{short(m)} on {short(t)} ({have} of {of})" for m, t, have, of in cells]
    if shown:
        yield f"{PARTIAL} mean of fewer folds than planned: {_join(shown, MAX_NOTES)}."


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
        shown = ", ".join(map(short, names[:MAX_NAMES])) + more
        kind = "" if what == "library" else "data not available: "
        yield f"{shown}: {kind}{plain(info.partition(' Tried:')[0])}"
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
    lowest = sorted(coverage.items(), key=lambda each: each[1])
    for (model, task), share in lowest[:MAX_NOTES]:
        yield f"{short(model)} answered {share:.0%} of {plain(task)}."
    if len(lowest) > MAX_NOTES:
        more = count(len(lowest) - MAX_NOTES, "cell")
        yield f"{more} more, from {lowest[MAX_NOTES][1]:.0%} up (see karat compare --on common)."


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
        lost = sum(counts[state] for state in _MEANINGS)
        cells = f"{counts['imputed']} of {lost}"
        yield f"Missing cells with the score of {_baseline(rule)}: {cells}."
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        yield f"{count(failed, 'job')} failed: {_rule_text(rule, 1)}."
    if counts.get("partial"):
        cells = count(counts["partial"], "cell")
        common = "compared on common folds"
        effect = "missing folds count as the worst" if rule == "penalize" else common
        yield f"{cells} of unfinished runs: {effect}."


def _lacking_cells(board: pd.DataFrame) -> int:
    """Return how many declined cells lack a library or data, on tasks that have a score."""
    pairs = {pair for where in board.attrs.get("lacking", {}).values() for pair in where}
    cells, scored = board.attrs.get("cells", {}), scored_tasks(board) if pairs else ()
    return sum(t in scored and cells.get(m, {}).get(t) == DECLINED for m, t in pairs)


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


def _rule_text(rule: str, place: int) -> str:
    if rule.startswith(BASELINE):
        return _RULES[BASELINE][place].format(_baseline(rule))
    return _RULES[rule][place]


def _baseline(rule: str) -> str:
    return short(rule.removeprefix(BASELINE))


def _scale(reference: str, by: str | None) -> str:
    zero = "the worst"
    if reference.startswith(BASELINE):
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
