"""The next task: the rank to expect of each model on a new task like those at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis import next_task_wording
from karat.analysis.leaderboard import (
    GROUP,
    connected,
    leaderboard,
    split_groups,
    without_eliminated,
)
from karat.analysis.score_matrix import (
    RULES,
    RankedScores,
    apply_missing_rule,
    check_rule,
    normalize,
)
from karat.core.formatting import count, percent, plain
from karat.errors import DataError, KaratError
from karat.metrics.metric import get_metric
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import Gathered, gather_scores, make_cells
from karat.results.run import Run
from karat.stats.conformal_ranks import (
    FEWEST_SEEN,
    TAKEN_PART,
    alike_rank_bounds,
    mean_loss,
    next_ranks,
    ranks_among_all,
)
from karat.stats.ranking import rank_each

#: classes of tables by their rows: the name, and the fewest rows that are too many for it
SIZES = (("under 1,000 rows", 1_000.0), ("1,000–9,999 rows", 10_000.0))
LARGEST = "10,000+ rows"
#: columns of the table of models
COLUMNS = (
    "model",
    "rank",
    "next_low",
    "next_high",
    "first",
    "first_low",
    "first_high",
    "loss",
    "loss_low",
    "loss_high",
    "tasks",
)
#: the loss in the unit of the metric that all tasks share
SCORE_LOSS = ("score_loss", "score_loss_low", "score_loss_high")


@dataclass(frozen=True, eq=False, repr=False)
class NextTask(Result):
    """What to expect of each model on a new task like those at hand.

    Attributes
    ----------
    models
        A row per model in the order of the leaderboard: its mean ``rank``; ``next_low`` and
        ``next_high``, which contain its rank among all models on 90 % of new tasks; ``first``, the
        chance to be the best of all, with its 95 % interval; ``loss``, how far it is below the best
        model of a task on average, as a share of the distance from the worst to the best, with its
        95 % interval; ``tasks``, how many were used. ``score_loss`` is the same in the unit of
        the metric, where all tasks have one with a finite range. NaN with fewer than 19 tasks. A
        column ``group`` comes first if not all models can be compared.
    within
        The same columns for tasks that are alike, with their ``kind`` and ``size``: each kind, each
        size of table and each kind of a size with at least 19 tasks.
    alike
        A row per class of tasks in ``within``: how many tasks, the mean width of its intervals
        (the number of ranks they contain), that of the intervals from all tasks of the same models,
        and by which share it is narrower; negative is wider.
    metric
        The metric that all tasks share, or an empty text.
    notes
        What was left out and why.
    """

    models: pd.DataFrame
    within: pd.DataFrame
    alike: pd.DataFrame
    metric: str = ""
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "next_task"

    @property
    def sentence(self) -> str:
        """What to expect of the first model of the leaderboard."""
        return next_task_wording.next_task_sentence(self)

    def tables(self) -> list[Table]:
        """Return the models with their rank on the next task."""
        return [next_task_wording.next_task_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the models on all tasks and then on tasks that are alike, and the widths."""
        keys = [name for name in (GROUP,) if name in self.models]
        names = [*keys, "kind", "size", *self.models.columns.drop(keys)]
        all_tasks = self.models.assign(kind="", size="")
        models = pd.concat([all_tasks, self.within], ignore_index=True)[names]
        return {"models": models, "alike": self.alike}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; None is not known."""
        return {**super().to_dict(), "verdict": self.sentence}


def next_task(
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
    missing: str = "worst",
    pool: str = "variant",
) -> NextTask:
    """Return the rank, the chance to be first and the loss of each model on a new task.

    The new task must be like those at hand: drawn in the same way, with all of these models. The
    interval of a rank is conformal over tasks, so it contains the rank on at least 90 % of new
    tasks, whatever the distribution of ranks. The interval of the mean rank in ``leaderboard``
    answers another question: which mean rank a model has over very many tasks.

    Parameters
    ----------
    runs
        As for ``leaderboard``.
    metrics
        Metrics by task, instead of the tasks' primary metrics.
    missing
        Rule for missing scores, as in ``leaderboard``.
    pool
        Which runs are one model, as in ``leaderboard``.

    Raises
    ------
    DataError
        If there are fewer than 19 tasks: then no such interval exists.

    Examples
    --------
    >>> karat.next_task("results").models  # doctest: +SKIP
    """
    rule = check_rule("missing", missing, RULES)
    board = leaderboard(runs, metrics=metrics, missing=missing, pool=pool)
    scores, _ = without_eliminated(gather_scores(runs, pool))
    chosen = scores.chosen(dict(metrics or {}))
    cells = make_cells(scores, chosen)
    compared = apply_missing_rule(cells, rule)
    groups = connected(scores, cells)
    parts = {name: compared.only(part.tasks, part.models) for name, part in groups.items()}
    enough = {name: part for name, part in parts.items() if _usable(part) >= FEWEST_SEEN}
    if not enough:
        raise DataError(_too_few(max(map(_usable, parts.values())), len(compared.tasks)))
    metric = _shared_metric(chosen)
    expectations = [
        _of_group(part, scores, part_board, metric, name if len(parts) > 1 else "")
        for (name, part), part_board in zip(parts.items(), split_groups(board), strict=True)
        if name in enough
    ]
    models, within, alike = (
        pd.concat(tables, ignore_index=True) for tables in zip(*expectations, strict=True)
    )
    notes = [*_notes_of(models, scores, compared), *_short_groups(parts, enough)]
    return NextTask(models, within, alike, metric, notes)


def _usable(part: RankedScores) -> int:
    """Return the number of tasks on which ranks among all models can be told."""
    ranks = ranks_among_all(rank_each(part.values, part.takes))
    return int((~np.isnan(ranks)).any(axis=0).sum())


def _too_few(usable: int, tasks: int) -> str:
    taken = "" if usable == tasks else " that at least half of the models take"
    return (
        f"the rank on the next task needs at least {FEWEST_SEEN} tasks, and there "
        f"{'is' if usable == 1 else 'are'} {count(usable, 'task')}{taken}: with fewer, no interval "
        "exists that contains the rank on 90 % of new tasks. Run more tasks, or use karat "
        "leaderboard without --next, whose interval is that of the mean rank."
    )


def _short_groups(parts: Mapping[str, RankedScores], enough: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {count(_usable(part), 'task')}, at least {FEWEST_SEEN} are needed."
        for name, part in parts.items()
        if name not in enough
    ]


def _shared_metric(chosen: Mapping[str, str]) -> str:
    """Return the metric of all tasks if it is one, with a finite range; else an empty text."""
    metric, *others = set(chosen.values())
    try:
        bounded = not others and bool(np.isfinite(get_metric(metric).range).all())
    except KaratError:
        return ""
    return metric if bounded else ""


def _of_group(
    part: RankedScores, scores: Gathered, board: pd.DataFrame, metric: str, group: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the tables of models, of tasks that are alike, and of their widths, of a group."""
    order = [part.models.index(name) for name in board.index]
    part = part.only(range(len(part.tasks)), order)
    every = expected(part, metric)
    every.insert(1, "rank", board["rank"].to_numpy())
    rows, widths = [], []
    ranks = ranks_among_all(rank_each(part.values, part.takes))
    kinds, sizes = task_classes(part.tasks, scores.kinds, table_sizes(scores.jobs))
    for kind, size, places, facts in alike_tasks(kinds, sizes):
        table = expected(part.only(places.tolist()), metric)
        bounds = alike_rank_bounds(ranks, facts, facts[places[0]])
        table["next_low"], table["next_high"] = bounds
        if table["next_low"].notna().any():
            widths.append({"kind": kind, "size": size, **_widths(table, every, len(places))})
            rows.append(table.assign(kind=kind, size=size))
    names = [name for name in every.columns if name != "rank"]
    blank = pd.DataFrame(columns=["kind", "size", *names])
    within = pd.concat(rows, ignore_index=True)[blank.columns] if rows else blank
    columns = ["kind", "size", "tasks", "width", "width_of_all", "narrower"]
    tables = every, within, pd.DataFrame(widths, columns=columns)
    if group:
        for table in tables:
            table.insert(0, GROUP, group)
    return tables


def expected(part: RankedScores, metric: str = "") -> pd.DataFrame:
    """Return what to expect of each model on a task like these: a row per model."""
    ranks = rank_each(part.values, part.takes)
    bounds = next_ranks(ranks)
    used = ~np.isnan(ranks_among_all(ranks))
    share, score = task_losses(part)
    loss = mean_loss(np.where(used, share, np.nan))
    values = (
        part.models,
        bounds.low,
        bounds.high,
        bounds.first,
        bounds.first_low,
        bounds.first_high,
        *loss,
        bounds.tasks,
    )
    names = [name for name in COLUMNS if name != "rank"]
    table = pd.DataFrame(dict(zip(names, values, strict=True)))
    table["loss_high"] = table["loss_high"].clip(upper=1.0)
    if metric:
        table[list(SCORE_LOSS)] = np.column_stack(mean_loss(np.where(used, score, np.nan)))
    return table


def task_losses(part: RankedScores) -> tuple[np.ndarray, np.ndarray]:
    """Return models × tasks: how far each model is below the best of a task.

    As a share of the distance from the worst to the best model, and in the unit of the metric. A
    failed fold counts as the worst of its fold; where all models are equal, the loss is 0.
    """
    share, score = np.full((2, *part.takes.shape), np.nan)
    share[part.takes] = 1.0 - normalize(part)[part.takes]
    for t, table in enumerate(part.values):
        taking = part.takes[:, t]
        folds = table[np.ix_(taking, ~np.isnan(table[taking]).all(axis=0))]
        if folds.size:
            means = np.where(np.isnan(folds), np.nanmin(folds, axis=0), folds).mean(axis=1)
            score[taking, t] = means.max() - means
    share[part.takes & np.isnan(share)] = 0.0
    return share, score


def table_sizes(jobs: pd.DataFrame) -> dict[str, float]:
    """Return the rows of each task's table, training and test rows of a fold, where recorded."""
    rows = jobs["train"].astype(float) + jobs["test"].astype(float)
    sizes = rows.groupby(jobs["task"], observed=True).median().dropna()
    return {str(task): float(size) for task, size in sizes.items() if size > 0}


def size_class(rows: float | None) -> str:
    """Return the name of the class of tables with this many rows; empty if it is not known.

    >>> size_class(999), size_class(1_000), size_class(25_000), size_class(None)
    ('under 1,000 rows', '1,000–9,999 rows', '10,000+ rows', '')
    """
    if rows is None:
        return ""
    return next((name for name, too_many in SIZES if rows < too_many), LARGEST)


def task_classes(
    tasks: Sequence[str], kinds: Mapping[str, str], sizes: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the kind and the class of size of each task; an empty text is not known."""
    kind = [str(kinds.get(task) or "") for task in tasks]
    size = [size_class(sizes.get(task)) for task in tasks]
    return np.array(kind, dtype=object), np.array(size, dtype=object)


def alike_tasks(
    kinds: np.ndarray, sizes: np.ndarray
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield a kind, a size (an empty text is any), the places of its tasks, and facts of all tasks.

    By kind, by size, and by both: each class of at least ``FEWEST_SEEN`` tasks but not of all. A
    class of the same tasks as one before is left out. The limits of sizes are fixed, so that they
    do not depend on the ranks. Tasks of a class have equal facts.

    >>> kinds = np.array(["regression"] * 20 + ["classification"], dtype=object)
    >>> for kind, size, places, facts in alike_tasks(kinds, np.full(21, "", dtype=object)):
    ...     print(kind, len(places), facts.shape)
    regression 20 (21, 4)
    """
    nothing = np.full(len(kinds), "", dtype=object)
    seen: list[list[int]] = []
    for kind_of, size_of in ((kinds, nothing), (nothing, sizes), (kinds, sizes)):
        for kind, size in sorted(set(zip(kind_of, size_of, strict=True))):
            places = np.flatnonzero((kind_of == kind) & (size_of == size))
            enough = FEWEST_SEEN <= len(places) < len(kinds)
            if enough and places.tolist() not in seen and (kind or size):
                seen.append(places.tolist())
                yield kind, size, places, _facts(kind_of, size_of)


def _facts(kinds: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return tasks × numbers: whether each is of a kind, its class of size, whether that is known.

    Sizes are -1, 0 and 1: what larger tables change, they change step by step.
    """
    order = [name for name, _ in SIZES] + [LARGEST]
    steps = [order.index(size) - 1 if size else 0 for size in sizes]
    columns = [kinds == kind for kind in sorted(set(kinds))]
    return np.column_stack([*columns, steps, sizes != ""]).astype(float)


def _widths(table: pd.DataFrame, every: pd.DataFrame, tasks: int) -> dict[str, float]:
    """Return the mean numbers of ranks in the intervals of a class and of all tasks."""
    widths, whole = (rows["next_high"] - rows["next_low"] + 1 for rows in (table, every))
    width, width_of_all = float(widths.mean()), float(whole[widths.notna()].mean())
    narrower = 1 - width / width_of_all
    return {"tasks": tasks, "width": width, "width_of_all": width_of_all, "narrower": narrower}


def _notes_of(models: pd.DataFrame, scores: Gathered, compared: RankedScores) -> list[str]:
    few = models.loc[models["next_low"].isna(), "model"]
    notes = []
    if len(few):
        notes.append(
            f"–: fewer than {FEWEST_SEEN} tasks that at least half of the other models take: "
            f"{', '.join(map(plain, few))}."
        )
    if not compared.takes[compared.takes.any(axis=1)].all():
        notes.append(
            "Where models skip a task, ranks on it are stretched to the number of all models, and "
            f"tasks that fewer than {percent(TAKEN_PART, 0)} of the others take are left out."
        )
    datasets = {scores.datasets[task] for task in compared.tasks if task in scores.datasets}
    if datasets and len(datasets) < len(compared.tasks):
        notes.append(
            f"The {len(compared.tasks)} tasks are on {count(len(datasets), 'dataset')}: a task on "
            "another dataset may differ more than these do from each other."
        )
    return notes
