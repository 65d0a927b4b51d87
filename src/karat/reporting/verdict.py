"""The answer of a leaderboard: who leads, by how much, what it rests on, and what to do next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.checks import UNINFORMED, Finding, check_runs, rule_of
from karat.analysis.item_tests import AS_FITTED
from karat.analysis.leaderboard import THESE_TASKS, fold_ratios, split_groups
from karat.analysis.robustness import robustness
from karat.analysis.score_matrix import RankedScores, apply_missing_rule, name_order
from karat.analysis.these_tasks import (
    BETTER,
    EQUAL_SCORES,
    OPEN,
    OTHER_TASKS,
    UNTESTED,
    WORSE,
)
from karat.core.formatting import count, duration, fixed, percent, plain, rounded, short, signed
from karat.errors import DataError
from karat.metrics.metric import is_ratio, metric_label
from karat.reporting.formats import command_text, command_to_train_again
from karat.reporting.task_sentences import (
    MAX_NAMES,
    headline,
    holds_for,
    join_names,
    losses_text,
    rivals_of,
    task_by_task,
)
from karat.results.load import Cells, Gathered, frozen_runs, gather_scores, make_cells, named_runs
from karat.stats.paired_tests import ALPHA, corrected_t
from karat.stats.ranking import RankLeads, rank_each, rank_leads

#: maximum number of weaknesses
MAX_WEAK = 5
#: code of the check for failed jobs
FAILED_JOBS = "KRT402"
#: the test behind the tie letters, where the leaderboard does not name it
TEST = "max-T over tasks"
_LETTERS = re.compile(r"[a-z]|\[\d+\]")


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on besides the leaderboard; all tables are models × tasks.

    ``folds`` are the scores of each task's folds, models × folds, higher is better, and ``ratios``
    n_test / n_train of the folds. ``kinds`` are those of tasks, ``items`` counts their test items,
    ``robust`` is the table of ``karat.robustness``, and ``where`` the folder of the runs in
    commands.
    """

    metrics: Mapping[str, str]
    higher: Mapping[str, bool]
    scores: pd.DataFrame
    ranks: pd.DataFrame
    folds: Mapping[str, np.ndarray]
    ratios: Mapping[str, float]
    kinds: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    robust: pd.DataFrame | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


def make_evidence(
    gathered: Gathered, cells: Cells, compared: RankedScores, **more: Any
) -> Evidence:
    """Return the evidence of gathered scores; ``more`` are the other fields of ``Evidence``."""
    chosen, tasks = gathered.chosen({}), cells.tasks
    ranks = rank_each(compared.values, compared.takes)
    return Evidence(
        metrics={task: chosen[task] for task in tasks},
        higher=dict(zip(tasks, cells.higher, strict=True)),
        scores=pd.DataFrame(cells.means, index=cells.models, columns=tasks),
        ranks=pd.DataFrame(ranks, index=cells.models, columns=tasks),
        folds=dict(zip(tasks, compared.values, strict=True)),
        ratios=dict(zip(tasks, fold_ratios(gathered, tasks), strict=True)),
        kinds={task: str(gathered.kinds.get(task) or "") for task in tasks},
        **more,
    )


def find_evidence(
    runs: Any, where: str = "", rule: str = "worst", pool: str = "variant"
) -> Evidence:
    """Return the evidence of run folders, runs, or a table of scores."""
    read_runs = runs if isinstance(runs, pd.DataFrame) else frozen_runs(runs)
    gathered = gather_scores(read_runs, pool)
    cells = make_cells(gathered, gathered.chosen({}))
    robust = find_robustness(read_runs, pool)
    findings = check_runs(read_runs, pool=pool, missing=rule)
    more = {"findings": findings, "robust": robust, "where": where}
    more |= {} if isinstance(read_runs, pd.DataFrame) else _of_runs(read_runs, pool)
    return make_evidence(gathered, cells, apply_missing_rule(cells, rule), **more)


def _of_runs(runs: Any, pool: str) -> dict[str, Any]:
    """Return the commands of models, and the number of test items of each task."""
    commands: dict[str, str] = {}
    by_fold: dict[str, dict[Any, int]] = {}
    for run, model, labels in named_runs(runs, pool):
        commands[model] = command_text(run.about.get("command")) or ""
        for record in run.records():
            counts = by_fold.setdefault(labels.get(record["task"], record["task"]), {})
            fold, number = (record["repeat"], record["fold"]), int(record.get("questions") or 0)
            counts[fold] = max(counts.get(fold, 0), number)
    items = {task: sum(counts.values()) for task, counts in by_fold.items()}
    return {"commands": commands, "items": items}


def find_robustness(runs: Any, pool: str = "variant") -> pd.DataFrame | None:
    """Return the table of ``karat.robustness``, or None without corrupted views."""
    try:
        return robustness(runs, pool=pool)
    except DataError:
        return None


def make_verdict(
    board: pd.DataFrame | Sequence[pd.DataFrame], evidence: Evidence
) -> list[dict[str, Any]]:
    """Return a verdict on each group of models that can be compared.

    Parameters
    ----------
    board
        A leaderboard over all tasks, or those of its groups.
    evidence
        What the leaderboard was computed from.

    Returns
    -------
    list of dict
        ``name`` is that of the group, ``kind`` is "ranking", "comparison" (of two models) or
        "robustness"; ``state`` is "clear", "tied", "untested", "alone" or "none". ``winner``,
        ``next`` and ``top`` are names of models, ``margin`` has value and interval, ``lines`` are
        ``{"what", "text"}``, ``weak`` texts, and ``next_step`` has a text and a command.
        ``these_tasks`` are the differences of all models to the winner over these tasks.
    """
    parts = split_groups(board) if isinstance(board, pd.DataFrame) else board
    return [
        {"name": str(part.attrs.get("group", "")), **_decide(_Case(part, evidence))}
        for part in parts
    ]


def verdict_lines(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return verdicts as lines of text, the answer of each group first."""
    lines = []
    for verdict in verdicts:
        prefix = f"{plain(verdict['name'])}: " if len(verdicts) > 1 and verdict["name"] else ""
        texts = [line["text"] for line in verdict["lines"]]
        lines += [prefix + text if not i else text for i, text in enumerate(texts)]
        lines += [f"Weakened by: {text}" for text in verdict["weak"]]
        if step := verdict["next_step"]:
            lines.append(f"Next: {plain(step['command'])} ({step['text']})")
    return lines


@dataclass(frozen=True)
class _Case:
    """The leaderboard of one group of models."""

    board: pd.DataFrame
    evidence: Evidence

    @cached_property
    def group_tasks(self) -> list[str]:
        """The tasks of the group."""
        names = {f"{task} (task)": task for task in self.evidence.scores}
        return [names.get(heading, heading) for heading in self.board.attrs["tasks"]]

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The ranks within the group, on the tasks that at least two of its models have."""
        ranks = self.evidence.ranks
        group_ranks = ranks.loc[ranks.index.isin(self.board.index), self.group_tasks].rank()
        return group_ranks.loc[:, group_ranks.notna().sum() > 1]

    @property
    def tasks(self) -> list[str]:
        """The tasks on which models of the group are compared."""
        return list(self.ranks)

    @cached_property
    def ranked(self) -> list[str]:
        """The models with a rank on enough tasks, best first."""
        few = set(self.board.attrs.get("few", ()))
        candidates = self.board[self.board["rank"].notna() & ~self.board.index.isin(few)]
        return [str(name) for name in candidates["rank"].sort_values(kind="stable").index]

    @cached_property
    def ahead(self) -> list[str]:
        """The models on few tasks whose rank is better than that of the first of the others."""
        if not self.ranked:
            return []
        few = self.board.index.isin(list(self.board.attrs.get("few", ())))
        better = self.board["rank"] < self.board.at[self.ranked[0], "rank"]
        return [str(name) for name in self.board.index[few & better]]

    @cached_property
    def folds(self) -> list[int]:
        """The number of compared folds of each task."""
        return [self.evidence.folds[task].shape[1] for task in self.tasks]

    @cached_property
    def leads(self) -> RankLeads:
        """By how much the rank of the leader is better than that of each model."""
        ranks = self.ranks.iloc[:, name_order(list(self.ranks))]
        return rank_leads(ranks.to_numpy(), int(ranks.index.get_loc(self.ranked[0])))

    @property
    def separation(self) -> Mapping[str, Any]:
        """What tells the models apart, as the leaderboard has it."""
        return self.board.attrs.get("separation") or {}

    @property
    def these_tasks(self) -> Mapping[str, Any]:
        """What these tasks show about the first model and the others; empty if unknown."""
        facts = self.board.attrs.get("these_tasks") or {}
        return facts if facts.get("reference") == self.ranked[0] and rivals_of(facts) else {}

    @property
    def few_tasks(self) -> bool:
        """Whether the models are compared on two to five tasks only."""
        return self.separation.get("by") == THESE_TASKS and bool(self.these_tasks)

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of the tasks."""
        return {task: self.evidence.kinds.get(task, "") for task in self.tasks}

    @cached_property
    def losses(self) -> str:
        """The tasks that the leader clearly loses, and to whom; empty if none or unknown."""
        several = len(self.tasks) > 1 and self.these_tasks
        return losses_text(self.these_tasks, self.kinds) if several else ""

    @cached_property
    def untested(self) -> str:
        """Why the leaderboard tests no differences; empty if it does."""
        if self.separation:
            why = str(self.separation.get("why") or "too few tasks")
            return "" if self.separation.get("by") else why
        if len(self.tasks) == 1 and self.folds == [1]:
            return "one fold"
        letters = "tie" in self.board and (self.board.loc[self.ranked, "tie"] != "").any()
        return "" if letters else "too few tasks" if len(self.tasks) > 1 else "one fold"

    @cached_property
    def top(self) -> list[str]:
        """The leader and the models that share a letter with it."""
        winner, *rest = self.ranked
        if self.untested:
            return [winner]
        mine = set(_LETTERS.findall(self.board.at[winner, "tie"]))
        return [winner, *(n for n in rest if mine & set(_LETTERS.findall(self.board.at[n, "tie"])))]

    @property
    def tied(self) -> bool:
        """Whether some model cannot be distinguished from the leader."""
        rivals = rivals_of(self.these_tasks) if self.few_tasks else []
        return len(self.top) > 1 or any(row["verdict"] != WORSE for row in rivals)

    @property
    def test(self) -> str:
        """The name of the test, and what it is about."""
        name = str(self.separation.get("test") or TEST)
        return f"{name}, {AS_FITTED}" if self.separation.get("claim") == AS_FITTED else name


def _decide(case: _Case) -> dict[str, Any]:
    if len(case.ranked) < 2:
        return _undecided(case)
    winner, rival = case.ranked[:2]
    state = "untested" if case.untested else "tied" if case.tied else "clear"
    margin = _margin(case, winner, rival)
    robust_text, robust = _robust_lines(case)
    kind = "robustness" if robust_text else "comparison" if len(case.board) == 2 else "ranking"
    answer = _compared(case, state) if kind == "comparison" else _answer(case, state)
    clean = "On clean data: " if robust_text else ""
    lines = [*robust, _line("clean" if robust_text else "answer", clean + answer)]
    lines += [_line("margin", _margin_text(case, margin))] if margin else []
    lines += [*_task_lines(case), _line("basis", _basis(case)), *_cost(case), *_limit(case)]
    winner, rival = robust_text[:2] if len(robust_text) > 1 else (winner, rival)
    return {
        **{"kind": kind, "state": state, "winner": winner, "next": rival, "top": case.top},
        **{"reason": case.untested, "margin": margin, "lines": lines, "weak": _weak(case)},
        "next_step": _next_step(case, state),
        "these_tasks": _picture(case),
        "over_tasks": _over_tasks(case),
    }


def _undecided(case: _Case) -> dict[str, Any]:
    names = case.ranked or [str(name) for name in case.board.index]
    alone = len(case.board) == 1
    text = f"{short(names[0])} is the only model." if alone else "No two models have a common task."
    facts: dict[str, Any] = {"kind": "ranking", "state": "alone" if alone else "none", "top": []}
    facts |= {"winner": None, "next": None, "reason": "", "margin": None, "weak": []}
    facts |= {"these_tasks": {}, "over_tasks": {}}
    return {**facts, "lines": [_line("answer", text), *_cost(case)], "next_step": None}


def _line(what: str, text: str) -> dict[str, str]:
    return {"what": what, "text": text}


# -- the answer ------------------------------------------------------------------------------


def _answer(case: _Case, state: str) -> str:
    winner = short(case.ranked[0])
    if case.few_tasks:
        return headline(case.these_tasks, case.kinds)
    losses = f"; {case.losses}" if case.losses else ""
    enough = " with enough tasks" if case.ahead else ""
    if state == "clear":
        return f"{winner} is better than every other model{enough} ({case.test}){losses}."
    if state == "tied":
        rest = join_names(case.top[1:])
        return f"{winner} leads; {rest} cannot be distinguished from it ({case.test}){losses}."
    what = "score" if len(case.tasks) == 1 else "mean rank"
    among = f" of the models{enough}" if enough else ""
    return f"{winner} has the best {what}{among}; not tested: {case.untested}."


def _task_lines(case: _Case) -> list[dict[str, str]]:
    """Return on which tasks the leader differs from models that it does not clearly beat."""
    facts = case.these_tasks
    if not facts or len(case.tasks) < 2 or (case.few_tasks and len(rivals_of(facts)) == 1):
        return []
    text = task_by_task(facts)
    return [_line("tasks", text)] if text else []


def _limit(case: _Case) -> list[dict[str, str]]:
    """Return what two to five tasks cannot show."""
    few = len(case.tasks) > 1 and case.separation.get("by") == THESE_TASKS
    holds = f"{holds_for(case.these_tasks)} " if case.these_tasks else ""
    return [_line("limit", f"{holds}{OTHER_TASKS if few else ''}".strip())] if few or holds else []


def _picture(case: _Case) -> dict[str, Any]:
    """Return what the page draws: the difference of each model to the leader; empty if unknown."""
    facts = case.these_tasks
    keys = ("model", "difference", "low", "high", "p", "verdict", "tasks", "by_task")
    rows = [{key: row[key] for key in keys} for row in facts.get("models", ())]
    return {**facts, "models": rows} if facts else {}


def _over_tasks(case: _Case) -> dict[str, Any]:
    """Return by how much the mean rank of each model is better than that of the leader.

    Tested as the letters are; empty if no test over tasks was made.
    """
    if case.separation.get("by") != "tasks":
        return {}
    leads, rows = case.leads, []
    for name in (str(model) for model in case.board.index if model in case.ranks.index):
        number = case.ranks.index.get_loc(name)
        value, low, high, p = (x[number] for x in (leads.value, leads.low, leads.high, leads.p))
        verdict = OPEN if not p < ALPHA else WORSE if value > 0 else BETTER
        verdict = "reference" if name == case.ranked[0] else UNTESTED if np.isnan(p) else verdict
        row = {"model": name, "difference": -float(value), "low": -float(high)}
        row |= {"high": -float(low), "p": float(p), "verdict": verdict}
        rows.append({**row, "tasks": int(leads.tasks[number])})
    return {"reference": case.ranked[0], "test": case.test, "tasks": case.tasks, "models": rows}


def _compared(case: _Case, state: str) -> str:
    """Return the answer about two models: on how many tasks the first is better."""
    first, other = case.ranked
    if case.few_tasks:
        return headline(case.these_tasks, case.kinds)
    apart = _apart(case, first, other)
    more = int((apart > 0).sum())
    where = f"better on {more} of {count(len(apart), 'task')}, worse on {int((apart < 0).sum())}"
    a, b = short(first), short(other)
    one = f" on {short(case.tasks[0])}" if len(case.tasks) == 1 else ""
    where = "" if one else f": {a} is {where}"
    if state == "clear":
        return f"{a} is better than {b}{one} ({case.test}){where}."
    if state == "tied":
        return f"{a} and {b} cannot be distinguished{one} ({case.test}){where}."
    return f"{a} is ahead of {b}{one}{where}; not tested: {case.untested}."


# -- margin, basis, cost ---------------------------------------------------------------------


def _apart(case: _Case, first: str, other: str) -> np.ndarray:
    """Return by how many ranks a model is better on each task that both have."""
    ranks = case.ranks.loc[[first, other]].dropna(axis=1)
    return np.asarray(ranks.loc[other] - ranks.loc[first], dtype=float)


def _margin(case: _Case, first: str, other: str) -> dict[str, Any] | None:
    """Return the difference to the next model: of mean ranks, or of scores on a single task."""
    if len(case.tasks) == 1:
        return _score_margin(case, first, other)
    if case.few_tasks:
        return _these_tasks_margin(case, other)
    number, leads = case.ranks.index.get_loc(other), case.leads
    tasks = int(leads.tasks[number])
    if not tasks:
        return None
    value, low, high = (float(x[number]) for x in (leads.value, leads.low, leads.high))
    facts = {"what": "mean rank", "value": value, "low": low, "high": high}
    # a task that one of them failed counts in the rank, but it is no common task, as in compare
    scores = case.evidence.scores.loc[[first, other], case.tasks]
    ranked = case.ranks.loc[[first, other]].notna().all()
    common = int((scores.notna().all() & ranked).sum())
    return {**facts, "tasks": common, "failed": tasks - common, "folds": None}


def _these_tasks_margin(case: _Case, other: str) -> dict[str, Any] | None:
    """Return the mean gain of the leader over another model on these tasks."""
    row = next((row for row in rivals_of(case.these_tasks) if row["model"] == other), None)
    if row is None:
        return None
    facts = {"what": "mean gain", "value": -row["difference"], "low": -row["high"]}
    return {**facts, "high": -row["low"], "tasks": row["tested"], "folds": None}


def _score_margin(case: _Case, first: str, other: str) -> dict[str, Any]:
    (task,) = case.tasks
    models = list(case.evidence.scores.index)
    values = case.evidence.folds[task][[models.index(first), models.index(other)]]
    tested = corrected_t(values[0] - values[1], case.evidence.ratios[task])
    metric, low, high = case.evidence.metrics[task], float(tested.low), float(tested.high)
    margin = case.separation.get("margin", {})
    if (margin.get("first"), margin.get("second")) == (first, other):
        # the interval of the test that decides; that of a ratio is a share of both scores
        unit = float(np.nanmean(np.abs(values))) if is_ratio(metric, values.ravel()) else 1.0
        low, high = margin["low"] * unit, margin["high"] * unit
    facts = {"what": metric, "value": float(tested.mean), "low": low, "high": high}
    return {**facts, "tasks": 1, "folds": int(tested.folds)}


def _margin_text(case: _Case, margin: Mapping[str, Any]) -> str:
    first, other = case.ranked[:2]
    equal = _equal_tasks(case, first, other)
    lead = "better" if margin["low"] > 0 else "ahead"
    if margin["what"] == "mean gain":
        value, *ends = (signed(margin[key]) for key in ("value", "low", "high"))
        text = f"Mean gain over {short(other)} {value}"
        over = f" over {count(margin['tasks'], 'common task')}"
    elif equal:
        a, b = (fixed(float(case.board.at[name, "rank"]), 2) for name in (first, other))
        return f"Mean rank {a} against {b} of {short(other)}; {equal}."
    elif margin["folds"] is None:
        a, b = (fixed(float(case.board.at[name, "rank"]), 2) for name in (first, other))
        value, *ends = (fixed(margin[key], 2) for key in ("value", "low", "high"))
        text = f"Mean rank {a} against {b} of {short(other)}: {lead} by {value}"
        over = f" over {count(margin['tasks'], 'common task')}"
        over += f" and {margin['failed']} on which one failed" if margin["failed"] else ""
    else:
        (task,) = case.tasks
        a, b = (rounded(float(case.evidence.scores.at[name, task])) for name in (first, other))
        value, *ends = (signed(margin[key]) for key in ("value", "low", "high"))
        label = metric_label(margin["what"], case.evidence.higher[task])
        text = f"{plain(label)} {a} against {b} of {short(other)}: {lead} by {value.lstrip('+')}"
        over = f" over {count(margin['folds'], 'fold')}"
    equal = f"; {equal}" if equal else ""
    if np.isnan(margin["low"]):
        return f"{text}{over}{equal}."
    return f"{text} (95 % interval {ends[0]} to {ends[1]}{over}){equal}."


def _equal_tasks(case: _Case, first: str, other: str) -> str:
    """Return on which tasks two models differ if their scores are equal on most; else empty."""
    both = case.evidence.scores.loc[[first, other], case.tasks].dropna(axis=1)
    size = both.abs().max()
    apart = (both.loc[first] - both.loc[other]).abs() > EQUAL_SCORES * size.where(size > 1, 1.0)
    if len(apart) < 2 or 2 * int(apart.sum()) >= len(apart):
        return ""
    on = [str(task) for task in apart.index[apart]]
    differ = f", they differ on {join_names(on)}" if on else ""
    return f"equal scores on {len(apart) - len(on)} of {count(len(apart), 'common task')}{differ}"


def _basis(case: _Case) -> str:
    """Return what the verdict rests on: models, tasks, folds, test items."""
    models = len(case.these_tasks["models"]) if case.few_tasks else len(case.ranked)
    parts = [count(models, "model"), count(len(case.tasks), "task")]
    if case.folds:
        few, most = min(case.folds), max(case.folds)
        parts.append(count(most, "fold") if few == most else f"{few} to {most} folds")
        parts[-1] += " each" if len(case.tasks) > 1 else ""
    items = [case.evidence.items.get(task) for task in case.tasks]
    if items and all(items):
        parts.append(count(sum(number for number in items if number), "test item"))
    return f"{', '.join(parts)}."


def _cost(case: _Case) -> list[dict[str, str]]:
    """Return the time of the leader, and of the cheapest model that may be as good."""
    seconds = case.board["seconds"] if "seconds" in case.board else pd.Series(dtype=float)
    if len(case.ranked) < 2 or not seconds.reindex(case.ranked[:1]).notna().all():
        return []
    winner = case.ranked[0]
    others = case.top[1:] or case.ranked[1:2]
    times = seconds.reindex(others).dropna()
    text = f"{short(winner)} took {duration(seconds[winner])}"
    if len(times):
        cheapest = str(times.idxmin())
        role = "the cheapest of the others in the top group" if case.top[1:] else "the next"
        text += f"; {short(cheapest)}, {role}, took {duration(times[cheapest])}"
    uneven = " Costs are those of each model's own tasks." * bool(case.board.attrs.get("uneven"))
    return [_line("cost", f"{text}.{uneven}")]


# -- corrupted data --------------------------------------------------------------------------


def _robust_lines(case: _Case) -> tuple[list[str], list[dict[str, str]]]:
    """Return the models by what they keep of their score on corrupted data, and lines about it."""
    table = case.evidence.robust
    if table is None:
        return [], []
    ranked = table["model"].isin(case.ranked) & ~table["model"].isin(UNINFORMED)
    table = table[ranked & table["task"].isin(case.group_tasks)]
    retention = table.pivot_table(index="model", columns="task", values="retention").dropna()
    if not len(retention):
        return [], []
    order = retention.mean(axis=1).sort_values(ascending=False, kind="stable")
    first = str(order.index[0])
    text = f"{short(first)} keeps most of its score on corrupted data: {percent(order.iloc[0], 0)}"
    ends = table[table["model"] == first][["retention_low", "retention_high"]].to_numpy()
    if len(ends) == 1 and not np.isnan(ends).any():
        text += f" (95 % interval {percent(ends[0, 0], 0)} to {percent(ends[0, 1], 0)})"
    if len(order) > 1:
        text += f"; next is {short(str(order.index[1]))} with {percent(order.iloc[1], 0)}"
    tasks = f", mean of {count(retention.shape[1], 'task')}" if retention.shape[1] > 1 else ""
    lines = [_line("answer", f"{text}{tasks}."), *_best_corrupted(table)]
    return [str(name) for name in order.index], lines


def _best_corrupted(table: pd.DataFrame) -> list[dict[str, str]]:
    way = np.where(table["higher_is_better"], 1.0, -1.0)
    ranks = (table["corrupted"] * way).groupby(table["task"]).rank(ascending=False)
    best = ranks.groupby(table["model"], sort=False).mean().sort_values(kind="stable")
    name = str(best.index[0])
    rows = table[table["model"] == name]
    text = f"Best on corrupted data: {short(name)}"
    if len(rows) == 1:
        row = rows.iloc[0]
        label = plain(metric_label(row["metric"], bool(row["higher_is_better"])))
        text += f", {label} {rounded(row['corrupted'])} (clean {rounded(row['clean'])})"
    return [_line("corrupted", f"{text}.")]


# -- weaknesses and the next step --------------------------------------------------------------


def _weak(case: _Case) -> list[str]:
    """Return what weakens the verdict."""
    reasons = []
    if case.untested:
        reasons.append(f"Differences are not tested: {case.untested}.")
    for name in case.ahead[:MAX_NAMES]:
        rank, tasks = fixed(float(case.board.at[name, "rank"]), 2), case.ranks.loc[name].count()
        reasons.append(
            f"{short(name)} has a better mean rank, {rank}, but on {tasks} of "
            f"{count(len(case.tasks), 'task')} only{_on_common_tasks(case, name)}."
        )
    if case.ranked[0] in UNINFORMED:
        reasons.append(f"{short(case.ranked[0])} knows nothing about the items: no model beats it.")
    partial = case.board.attrs.get("partial", {}).get(case.ranked[0], {})
    for task, (have, planned) in list(partial.items())[:MAX_NAMES]:
        reasons.append(f"{short(case.ranked[0])} has {have} of {planned} folds of {short(task)}.")
    by_code: dict[str, list[Finding]] = {}
    for finding in _relevant(case):
        by_code.setdefault(finding.code, []).append(finding)
    reasons += [f"{code} {_summary(group)}" for code, group in by_code.items()]
    more = len(reasons) - MAX_WEAK
    rest = [f"{count(more, 'more finding')}, see the checks."] if more > 0 else []
    return [*reasons[:MAX_WEAK], *rest]


def _on_common_tasks(case: _Case, name: str) -> str:
    """Return what the tasks that a model shares with the leader show; empty if not tested."""
    row = next((row for row in case.these_tasks.get("models", ()) if row["model"] == name), None)
    if row is None or np.isnan(row["p"]):
        return ""
    said = {BETTER: "it is better than", WORSE: "it is worse than"}
    what = said.get(row["verdict"], "no difference is shown to")
    ends = f"{signed(row['difference'])}, {signed(row['low'])} to {signed(row['high'])}"
    return f"; on these {what} {short(case.ranked[0])} ({ends})"


def _relevant(case: _Case) -> Iterator[Finding]:
    """Yield errors and warnings about the leader, the data of its tasks, or all runs."""
    winner, rival = case.ranked[:2]
    for finding in case.evidence.findings:
        models = {winner, rival} if finding.code == FAILED_JOBS else {winner}
        mine = finding.model in models if finding.model else True
        here = finding.task in case.group_tasks if finding.task else True
        if finding.level != "note" and mine and here:
            yield finding


def _summary(group: Sequence[Finding]) -> str:
    if len(group) == 1:
        return plain(group[0].message)
    places = [" on ".join(short(n) for n in (f.model, f.task) if n) for f in group]
    return f"{rule_of(group[0].code).title}: {join_names(list(dict.fromkeys(places)))}."


def _next_step(case: _Case, state: str) -> dict[str, str] | None:
    """Return what to do next, with a command."""
    where, (winner, rival) = case.evidence.where, case.ranked[:2]
    if not where:
        return None
    errors = [finding.code for finding in _relevant(case) if finding.level == "error"]
    if errors:
        return {"text": "what is wrong", "command": f"karat check --explain {errors[0]}"}
    command = case.evidence.commands.get(winner, "")
    failed = any(f.code == FAILED_JOBS and f.model == winner for f in _relevant(case))
    if failed and command.startswith("karat run "):
        more = "" if "--resume" in command else " --resume"
        return {"text": "run its failed jobs again", "command": f"{command}{more} --retry-failed"}
    if again := command_to_train_again(case.separation, command):
        text = "train again: is the difference more than the noise of training?"
        return {"text": text, "command": again}
    if state == "untested" and len(case.tasks) > 1:
        command = shlex.join(["karat", "leaderboard", where, "--by", "task"])
        return {"text": "differences on each task", "command": command}
    other = case.top[1] if len(case.top) > 1 else rival
    command = shlex.join(["karat", "compare", where, "-a", winner, "-b", other])
    text = "on which tasks the two differ" if len(case.tasks) > 1 else "test the two models"
    return {"text": text, "command": command}
