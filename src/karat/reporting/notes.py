"""Compact JSON: six significant digits, null for missing numbers.

The models and tasks of a report page by index, and their runs.
The caption of a leaderboard and the notes below it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.score_matrix import BASELINE
from karat.errors import FAILURES
from karat.results.load import DECLINED, FAILED, NOT_RUN
from karat.results.run import Run
from karat.stats.ranking import FEWEST_TASKS, has_too_few_tasks

#: significant digits of a number
DIGITS = 6
#: characters that must be escaped inside a script element
_ESCAPES = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def compact(value: Any) -> Any:
    """Return plain lists, dicts, texts and rounded numbers; NaN and infinities become None.

    >>> compact({"a": (0.12345678, float("nan"), 2.0), "b": np.array([[1.5]])})
    {'a': [0.123457, None, 2], 'b': [[1.5]]}
    """
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): compact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [compact(each) for each in value]
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f":
        return [_rounded(each) for each in value.tolist()]  # fast path for most numbers of a page
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    return clean(str(value))


def clean(text: str) -> str:
    r"""Replace lone surrogates, which cannot be encoded.

    >>> clean("a\ud800")
    'a�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_text(text: str, width: int) -> str:
    """Cut a text to a maximum length.

    >>> cut_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def to_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element.

    >>> print(to_json(["</script>", 1.5]))
    ["\u003c/script>",1.5]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def size(value: Any) -> int:
    """Return the size of a value in the page, in bytes."""
    return len(to_json(value).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


#: maximum number of sentences of one kind
MAX_SENTENCES = 5


@dataclass(frozen=True)
class ShownRun:
    """A run, the index of its model, the indices of its tasks by name, and its records."""

    run: Run
    model: int
    tasks: dict[str, int]
    records: list[dict[str, Any]]

    def jobs(self, *statuses: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of jobs with one of these statuses, each with the index of its task."""
        for record in self.records:
            if record["status"] in statuses and record["task"] in self.tasks:
                yield self.tasks[record["task"]], record


@dataclass(frozen=True)
class PageIndex:
    """Names in the order of the page; ``kinds`` are those of the tasks."""

    models: list[str]
    tasks: list[str]
    kinds: list[str]
    runs: list[ShownRun] = field(default_factory=list)

    @cached_property
    def done(self) -> dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]]:
        """The run and records of successful jobs, by indices of task and model."""
        found: dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]] = {}
        for run in self.runs:
            for task, record in run.jobs("ok"):
                found.setdefault((task, run.model), (run.run, []))[1].append(record)
        return found

    @property
    def failed(self) -> Iterator[tuple[ShownRun, int, dict[str, Any]]]:
        """The failed jobs with the indices of their tasks."""
        for run in self.runs:
            yield from ((run, task, record) for task, record in run.jobs(*FAILURES))

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield indices of task and model: the best model of every task, then the next of each."""
        queues: dict[int, list[int]] = {}
        for task, model in sorted(self.done):
            queues.setdefault(task, []).append(model)
        for turn in range(max(map(len, queues.values()), default=0)):
            yield from ((task, queue[turn]) for task, queue in queues.items() if turn < len(queue))


@dataclass
class Budget:
    """The number of bytes left for a section of the page."""

    left: int

    def take(self, value: Any) -> bool:
        """Reserve room for a value; return False if there is too little."""
        needed = size(compact(value))
        if needed > self.left:
            return False
        self.left -= needed
        return True


def first_sentences(sentences: Sequence[str], more: Callable[[int], str]) -> list[str]:
    """Return the first sentences, and one that counts the others.

    >>> some(["a.", "b.", "c.", "d.", "e.", "f.", "g."], lambda n: f"{n} more.")[-2:]
    ['e.', '2 more.']
    """
    rest = len(sentences) - MAX_SENTENCES
    return [*sentences[:MAX_SENTENCES], *([more(rest)] if rest > 0 else [])]


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "model"), count(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


#: signs of cells without a score
SIGNS = {DECLINED: "–", FAILED: "failed", NOT_RUN: "…"}
#: maximum number of notes about coverage
MAX_NOTES = 6
#: maximum number of names in a note
MAX_NAMES = 12
#: maximum length of a name
NAME_WIDTH = 32
_COSTS = {"seconds": "time", "memory_mb": "memory"}
_MEANINGS = {
    DECLINED: "– not applicable to this model",
    FAILED: "failed: no score",
    NOT_RUN: "… not run",
}


def plain(name: object) -> str:
    r"""Return a name on one line, without control characters.

    >>> plain("a\nb\x1b[1m")
    'a b�[1m'
    """
    line = " ".join(str(name).split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


def short(name: object, width: int = NAME_WIDTH) -> str:
    """Return a name on one line, cut if it is long."""
    text = plain(name)
    return text if len(text) <= width else text[: width - 1] + "…"


def middle_cut(name: str) -> str:
    """Return a name cut in the middle, because runs of one model differ at the end."""
    text, half = plain(name), NAME_WIDTH // 2
    return text if len(text) <= NAME_WIDTH else f"{text[: half - 1]}…{text[-half:]}"


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
    """Yield the notes below a leaderboard."""
    if "tie" in board and len(board) > 1:
        where = "on their task" if board.attrs.get("by") == "task" else "on these tasks"
        yield f"Models that share a letter do not differ significantly {where}."
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
    yield from _of_coverage(board.attrs.get("coverage", {}))
    for task, (duplicates, tested) in list(board.attrs.get("twins", {}).items())[:MAX_NOTES]:
        yield f"{plain(task)}: {duplicates:,} of {tested:,} test rows also occur in training data."
    few = _ranked_on_few(board) if board.attrs.get("by") is None else []
    if few:
        yield f"Too few tasks to compare (fewer than {FEWEST_TASKS}): {', '.join(few)}."
    alone = _without_ranks(board)
    if alone:
        yield f"Only one model has scores: {', '.join(alone)}."


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


def _of_coverage(coverage: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Yield the lowest shares of questions that a model could answer."""
    lowest = sorted(coverage.items(), key=lambda each: each[1])
    for (model, task), share in lowest[:MAX_NOTES]:
        yield f"{short(model)} answered {share:.0%} of {plain(task)}."
    if len(lowest) > MAX_NOTES:
        more = count(len(lowest) - MAX_NOTES, "cell")
        yield f"{more} more, from {lowest[MAX_NOTES][1]:.0%} up (see karat compare --common)."


def _of_missing(board: pd.DataFrame) -> Iterator[str]:
    counts = board.attrs.get("missing")
    if counts is None:
        if board[scored_tasks(board)].isna().to_numpy().any():
            yield f"{_MEANINGS[DECLINED]}, or no score."
        counts = {"rule": "worst"}
    rule = counts["rule"]
    for state, meaning in _MEANINGS.items():
        if counts.get(state):
            yield f"{meaning}: {count(counts[state], 'cell')}{_effect(rule, state)}."
    if rule == "exclude":
        tasks = f"{counts['tasks']} of {count(counts['of'], 'task')}"
        yield f"Compared on folds with scores of all models: {tasks}."
    if rule.startswith(BASELINE):
        lost = sum(counts[state] for state in _MEANINGS)
        cells = f"{counts['imputed']} of {lost}"
        yield f"Missing cells with the score of {_baseline(rule)}: {cells}."
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        yield f"{count(failed, 'job')} failed: {_failed_fold(rule)}."
    if counts.get("partial"):
        cells = count(counts["partial"], "cell")
        common = "compared on common folds"
        effect = "missing folds count as the worst" if rule == "penalize" else common
        yield f"{cells} of unfinished runs: {effect}."


def _rule(rule: str) -> str:
    if rule == "exclude":
        return "only folds with scores of all models are compared"
    if rule.startswith(BASELINE):
        return f"replaced by those of {_baseline(rule)}"
    if rule == "penalize":
        return "each counts as the worst score of its fold"
    return "failures count as the worst score of their fold, others are left out"


def _effect(rule: str, state: str) -> str:
    if rule not in ("worst", "penalize"):
        return ""
    return ", counted as the worst" if rule != "worst" or state == FAILED else ", left out"


def _failed_fold(rule: str) -> str:
    if rule == "exclude":
        return "their folds are left out for all models"
    if rule.startswith(BASELINE):
        return f"each counts as the score of {_baseline(rule)} in its fold"
    return "each counts as the worst score of its fold"


def _baseline(rule: str) -> str:
    return short(rule.removeprefix(BASELINE))


def _scale(reference: str, by: str | None) -> str:
    zero = "the worst"
    if reference.startswith(BASELINE):
        zero = f"{_baseline(reference)} (at least -1)"
    if by == "task":
        return f"normalized: 1 is the best model of the task, 0 is {zero}."
    return f"score: mean over the tasks of a model; 1 is the best model of a task, 0 is {zero}."


def _ranked_on_few(board: pd.DataFrame) -> list[str]:
    """Return the models with too few tasks, where others have more."""
    few = board.attrs.get("few")
    if few is None:
        counts = board[board.attrs["tasks"]].notna().sum(axis=1)
        few = counts[(counts > 0) & has_too_few_tasks(counts.to_numpy())].index
    return [short(name) for name in few]


def _without_ranks(board: pd.DataFrame) -> list[str]:
    """Return the kinds or datasets with scores of fewer than two models."""
    groups = board.attrs.get("groups", {})
    if "tasks" not in board:
        return []
    ranked = board["rank"].groupby(level=0).count()
    scored = dict.fromkeys(groups[task] for task in scored_tasks(board))
    return [short(group) for group in scored if not ranked[group]]
