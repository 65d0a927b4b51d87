"""Leaderboards: models by mean rank, with intervals, ties, failures and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.item_tests import Separation, separate_task
from karat.analysis.score_intervals import score_intervals
from karat.analysis.score_matrix import (
    BASELINE,
    REFERENCES,
    RULES,
    ModelGroup,
    RankedScores,
    apply_missing_rule,
    check_rule,
    connected_groups,
    count_missing,
    fill_means,
    find_baseline,
    normalize,
    over_tasks,
    references_of,
    win_shares,
)
from karat.analysis.these_tasks import MARGIN, TheseTasks, these_tasks
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.metrics.metric import ROUNDED, get_metric, has_positive_class
from karat.results.clusters import cluster_scores
from karat.results.load import OK, Cells, Gathered, gather_scores, make_cells
from karat.results.run import Run
from karat.results.tables import ELIMINATED
from karat.stats.paired_tests import fold_ratio
from karat.stats.pairwise_ranks import comparable_models
from karat.stats.ranking import (
    FEWEST_TASKS,
    borda,
    elo,
    letters_of,
    rank_bounds,
    rank_each,
    rank_models,
    ranked_on_few,
)

#: columns of which more is better, besides tasks by their metric
MORE = {"score", "median", "wins", "borda", "elo", "elo_low", "elo_high", "pareto"}
MORE |= {"normalized", "tasks", "folds", "top", "difference"}
#: columns computed on request
ON_REQUEST = ("score", "median", "wins", "borda", "elo", "pareto", "difference")
#: columns of the view by task with the direction of the task's metric
OF_METRIC = {"score", "score_low", "score_high"}
#: fewest models with Elo: upsets of one strong model among three are mostly luck
FEWEST_RATED = 4
#: with more jobs, single tasks are tested over folds: reading stored predictions takes too long
MAX_JOBS = 500
RANKS = ("rank", "rank_low", "rank_high", "tie", "top")
#: the difference to the first model over these tasks: by default with two to five tasks
DIFFERENCES = ("difference", "difference_low", "difference_high")
#: what a leaderboard of two to five tasks is tested on
THESE_TASKS = "these tasks"
NORMALIZED = ("score", "median", "wins")
RATINGS = (*NORMALIZED, "borda", "elo", "elo_low", "elo_high", "pareto")
COSTS = (
    "failed",
    "declined",
    "seconds",
    "memory_mb",
    "dimensions",
    "vector_bytes",
    "tokens",
    "price",
)
#: costs of endpoints: columns only if a model has some
OF_ENDPOINTS = ("tokens", "price")
#: columns of every leaderboard: ranks always come with their uncertainty
ALWAYS = {*RANKS, *DIFFERENCES, "metric", "status", "failed"}
#: further columns of each view
OF_VIEW = {
    "task": ("score", "score_low", "score_high"),
    **dict.fromkeys(("kind", "dataset"), ("tasks",)),
    "language": ("tasks", "score"),
}
#: index of a model that is not there
NO_MODEL = -1
BY = ("task", "kind", "dataset", "language")
#: the view over all tasks of models that cannot all be compared
GROUP = "group"
#: names of groups by what their items are
MODALITIES = {"table": "tables", "text": "texts", "entity": "entities"}
#: group of tasks whose kind, dataset or language is not recorded
OTHER = "other"
#: columns besides the tasks; a task of such a name gets a suffix
COLUMNS = {"model", *RANKS, *DIFFERENCES, *RATINGS, *COSTS, "tasks", "costs", "filled"}
#: the kind of tasks of which a leaderboard shows all metrics if there is one task
RETRIEVAL = "retrieval"


def sort_leaderboard(frame: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> pd.DataFrame:
    """Return a leaderboard sorted by a column, best first, within groups of rows.

    Missing values come last; the sort is stable. ``higher`` is the direction of each task.
    """
    key = better_first(frame, sort, higher)
    if sort == "rank":
        return frame
    names = frame.index.names
    if len(names) == 1:
        return frame.iloc[np.argsort(key, kind="stable")]
    group, _ = pd.factorize(frame.index.get_level_values(0))
    places = (key,) if sort == names[0] else (key, group)
    return frame.iloc[np.lexsort(places)]


def better_first(
    frame: pd.DataFrame, column: str, higher: Mapping[str, bool], option: str = "sort"
) -> np.ndarray:
    """Return a sort key per row, lower is better; missing values are worst."""
    names = [str(name) for name in frame.index.names]
    if column not in (*names, *frame.columns):
        column_names = [*names, *map(str, frame.columns)]
        hint = other_names(str(column), column_names, names[0])
        raise DefinitionError(f'{option}: there is no column "{column}".{hint}')
    values = frame.index.get_level_values(column) if column in names else frame[column]
    values = pd.Series(values)
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=float) * _signs(frame, column, higher)
        return np.where(np.isnan(numbers), np.inf, numbers)
    codes, words = pd.factorize(values, sort=True)
    return np.where((values.to_numpy() == "") | (codes < 0), len(words), codes)


def other_names(name: str, column_names: Sequence[str], by: str | None) -> str:
    """Return a suggestion for an unknown column, or all columns of a view.

    >>> other_names("zzz", ["rank", "elo"], "kind")
    ' There are: rank, elo; on request: score, median, wins, borda, pareto, difference.'
    """
    more = ("normalized", "pareto") if by == "task" else ON_REQUEST
    could = [column for column in more if column not in column_names]
    on_request = f"; on request: {', '.join(could)}" if could else ""
    return (
        did_you_mean(name, [*column_names, *could])
        or f" There are: {', '.join(column_names)}{on_request}."
    )


def _signs(frame: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> np.ndarray:
    """Return -1 for every row in which more is better, 1 elsewhere."""
    more = np.full(len(frame), sort in MORE)
    if "task" in frame.index.names and sort in OF_METRIC:
        more = np.array([higher[task] for task in frame.index.get_level_values("task")])
    elif frame.index.names[0] in ("model", GROUP) and sort in higher:
        more[:] = higher[sort]
    return np.where(more, -1.0, 1.0)


@dataclass(frozen=True)
class RequestedColumns:
    """The columns requested: ``names`` to show, or None for all.

    ``normalize`` is the reference of normalized scores, ``anchor`` the model whose Elo is 1500,
    ``cost`` the cost column of the Pareto front. ``baseline`` (the 0 of normalized scores; default:
    the worst model of each task), ``one`` (their 1; default: the best) and ``anchor_index`` are the
    indices of these models.
    """

    names: tuple[str, ...] | None = None
    sort: str | None = None
    normalize: str | None = None
    anchor: str | None = None
    cost: str = "seconds"
    baseline: int | None = None
    one: int | None = None
    anchor_index: int | None = None

    @classmethod
    def read(
        cls,
        columns: Iterable[str] | str | None,
        normalize: str | None,
        by: str | None,
        sort: str | None,
    ) -> RequestedColumns:
        """Return the request for a view; sorting by a column requests it."""
        requested = [columns] if isinstance(columns, str) else list(columns or ())
        parts = [str(column).partition(":") for column in requested]
        options = {name: rest for name, _, rest in parts if name in ("elo", "pareto") and rest}
        names = tuple(name if name in options else "".join((name, *rest)) for name, *rest in parts)
        if normalize is not None:
            normalize = check_rule("normalize", normalize, REFERENCES)
        elif by == "task":
            normalize = "range" if "normalized" in (*names, sort) else None
        elif sort in NORMALIZED or {"score", "median"} & {*names}:
            plain = by == "language" and not {"median", "wins"} & {sort, *names}
            normalize = None if plain else "range"
        visible = None if columns is None else names
        return cls(visible, sort, normalize, options.get("elo"), options.get("pareto", cls.cost))

    def check(self, models: list[str]) -> None:
        """Raise ``DefinitionError`` if it names an unknown model."""
        for name in references_of(self.normalize or "", models):
            find_baseline("normalize", f"{BASELINE}{name}", models)
        find_baseline("elo", f"{BASELINE}{self.anchor}" if self.anchor else "", models)

    def look_up(self, models: list[str]) -> RequestedColumns:
        """Return the request with the indices of the models that it names.

        Without the baseline among the models, no score is normalized; without the anchor, the mean
        of the models has 1500 points.
        """
        named = references_of(self.normalize or "", models)
        places = [models.index(name) if name in models else NO_MODEL for name in named]
        if NO_MODEL in places:
            places = [NO_MODEL]
        zero, one = [*places, None, None][:2]
        anchor = models.index(self.anchor) if self.anchor in models else None
        return replace(self, baseline=zero, one=one, anchor_index=anchor)

    def wants(self, name: str) -> bool:
        """Return whether a column must be computed."""
        scaled = self.normalize is not None and name in (*NORMALIZED, "normalized")
        return scaled or name == self.sort or name in (self.names or ())

    def pick(self, frame: pd.DataFrame, by: str | None) -> pd.DataFrame:
        """Return the requested columns, in the order of the leaderboard."""
        if self.names is None:
            return frame
        column_names = [str(name) for name in frame.columns]
        tasks = [name for name in column_names if name not in {*ALWAYS, *RATINGS, *COSTS}]
        several = {"costs": COSTS} | ({"tasks": tuple(tasks)} if by in (None, GROUP) else {})
        chosen = {*ALWAYS, *OF_VIEW.get(by or "", ())} | {n for n in RATINGS if self.wants(n)}
        for name in self.names:
            if name not in (*several, *column_names):
                hint = other_names(name, [*several, *column_names], by)
                raise DefinitionError(f'columns: there is no column "{name}".{hint}')
            chosen |= {name, f"{name}_low", f"{name}_high", *several.get(name, ())}
        return frame[[name for name in frame.columns if name in chosen]]


def rank_within(compared: RankedScores, tests: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns of ranks as models × tasks.

    ``tests[t]`` is the p of each pair on a task, models × models, corrected for all pairs of the
    task; NaN is not tested. Letters and the bounds of the rank follow from it; where no pair of a
    model is tested, as with a single fold, it has neither.
    """
    rank = rank_each(compared.values, compared.takes)
    low, high = np.full((2, *rank.shape), np.nan)
    ties = np.full(rank.shape, "", dtype=object)
    top = np.zeros(rank.shape, dtype=bool)
    for t, p in enumerate(tests):
        low[:, t], high[:, t], top[:, t] = rank_bounds(rank[:, t], p)
        ties[:, t] = letters_of(rank[:, t], p)
    return dict(zip(RANKS, (rank, low, high, ties, top), strict=True))


@dataclass(frozen=True)
class TaskTests:
    """Which models differ on single tasks: on items of stored predictions, or over folds.

    ``metrics`` are those of each task; ``known`` are the tests already made.
    """

    given: Gathered
    metrics: Mapping[str, str]
    known: dict[tuple[str, tuple[str, ...]], Separation] = field(default_factory=dict)

    def of(self, compared: RankedScores, t: int) -> Separation:
        """Return the test of the models of a task, with the p of all pairs of models."""
        taking = compared.takes[:, t]
        names = tuple(name for name, takes in zip(compared.models, taking, strict=True) if takes)
        task = compared.tasks[t]
        if (task, names) not in self.known:
            stored = self.given if len(self.given.jobs) <= MAX_JOBS else pd.DataFrame()
            task_metric, values = (task, self.metrics[task]), compared.values[t][taking]
            test = separate_task(stored, task_metric, names, values, self._ratios[task])
            self.known[task, names] = test
        return self.known[task, names].placed(np.flatnonzero(taking), len(taking))

    @cached_property
    def _ratios(self) -> dict[str, float]:
        """n_test / n_train of the folds of each task."""
        tasks = list(self.metrics)
        return dict(zip(tasks, fold_ratios(self.given, tasks), strict=True))

    @property
    def made(self) -> dict[str, Separation]:
        """The tests made so far, by task."""
        return {task: tested for (task, _), tested in self.known.items()}


def find_these_tasks(compared: RankedScores, tests: TaskTests) -> TheseTasks | None:
    """Return what the tasks of more than one model show about them; None without such a task."""
    compared = compared.by_name()
    contested = [int(t) for t in np.flatnonzero(compared.takes.sum(axis=0) > 1)]
    if not contested:
        return None
    part = compared.only(contested)
    task_tests = [tests.of(part, t) for t in range(len(contested))]
    return these_tasks(part.models, part.tasks, part.takes, task_tests)


def enough_tasks(takes: np.ndarray) -> bool:
    """Return whether two models share enough tasks for a test over tasks.

    >>> enough_tasks(np.ones((2, 5), dtype=bool)), enough_tasks(np.ones((2, 6), dtype=bool))
    (False, True)
    """
    shared = takes.astype(int) @ takes.T.astype(int)
    return bool(np.triu(shared, 1).max(initial=0) >= FEWEST_TASKS)


def separation(compared: RankedScores, tests: TaskTests) -> dict[str, Any]:
    """Return what tells the models of a leaderboard apart.

    ``by`` is ``"tasks"`` for the test over tasks, ``"these tasks"`` for that of two to five fixed
    tasks, ``"items"`` or ``"folds"`` for that of a single task, None if there is no test; ``why``
    is then a short reason, such as ``"one fold"``. ``test`` is the name of the test, ``tasks`` the
    number of tasks of more than one model, ``items`` that of items tested on, ``clusters`` that of
    groups of items that belong together, ``claim`` whether the test is about the ``"learners"`` or
    about the models ``"as fitted"``, ``queries`` the number of queries, and how many would detect a
    difference of 0.05 between the two best models.
    """
    contested = np.flatnonzero(compared.takes.sum(axis=0) > 1)
    facts: dict[str, Any] = {"by": None, "test": "", "why": "", "tasks": len(contested), "items": 0}
    if not len(contested):
        return facts | {"why": "one model"}
    if enough_tasks(compared.takes[:, contested]):
        return facts | {"by": "tasks", "test": "max-T over tasks"}
    if len(contested) > 1:
        these = find_these_tasks(compared, tests)
        if these is None or not these.test:
            return facts | {"why": these.why if these else ""}
        return facts | {"by": THESE_TASKS, "test": these.test, "claim": these.claim}
    test = tests.of(compared, int(contested[0]))
    by = "items" if test.items else "folds" if test.test else None
    facts |= {"queries": test.queries, "spread": test.spread} if test.queries else {}
    facts |= {"by": by, "test": test.test, "why": test.why, "items": test.items}
    facts |= {"claim": test.claim, "clusters": test.clusters}
    return facts | _margin(compared.only([int(contested[0])]), test)


def _margin(compared: RankedScores, tested: Separation) -> dict[str, Any]:
    """Return the gain of the best model of a task over the next one, with its 95 % interval.

    The interval agrees with the letters, which are corrected for all pairs.
    """
    ranks = rank_each(compared.values, compared.takes)[:, 0]
    first, second = np.argsort(ranks, kind="stable")[:2]
    if tested.error is None or not np.isfinite(tested.error[first, second]):
        return {}
    gain = tested.mean_difference(int(first), int(second))
    low, high = tested.interval(int(first), int(second))
    names = {"first": compared.models[first], "second": compared.models[second]}
    return {"margin": {**names, "gain": gain.mean, "low": low, "high": high}}


def separations(
    compared: RankedScores, by: str | None, group_of: Mapping[str, str], tests: TaskTests
) -> dict[str, Any]:
    """Return ``separation`` of a leaderboard, or of each group of its rows."""
    if by is None:
        return separation(compared, tests)
    groups: dict[str, list[int]] = {}
    for position, task in enumerate(compared.tasks):
        groups.setdefault(group_of[task], []).append(position)
    return {group: separation(compared.only(places), tests) for group, places in groups.items()}


def fold_ratios(gathered: Gathered, tasks: Sequence[str]) -> list[float]:
    """Return n_test / n_train of each task's folds; see ``significance.fold_ratio``."""
    repeats = gathered.scores.groupby(["task", "repeat"], dropna=False, observed=True)["fold"]
    folds = repeats.nunique().groupby(level=0, observed=True).max()
    sizes = gathered.jobs.groupby("task", observed=True)[["train", "test"]].sum()
    rows = pd.concat([sizes, folds], axis=1).reindex(list(tasks)).astype(float).fillna(0)
    columns = zip(rows["train"], rows["test"], rows["fold"], strict=True)
    return [fold_ratio(train, test, int(k)) for train, test, k in columns]


def within_limits(low: np.ndarray, high: np.ndarray, scores: np.ndarray, metric: str) -> np.ndarray:
    """Return an interval clipped to the range of a registered metric.

    Scores outside that range, by more than rounding, are on another scale, such as percent; they
    are not clipped.

    >>> ends = np.array([0.9, 90.0]), np.array([1.1, 110.0]), np.array([1.0, 100.0])
    >>> within_limits(*ends, "acc").tolist()
    [[0.9, 90.0], [1.0, 110.0]]
    >>> within_limits(np.array([0.9]), np.array([1.1]), np.array([1.0000001]), "acc").tolist()
    [[0.9], [1.0]]
    """
    ends = np.stack([low, high])
    try:
        least, most = get_metric(metric).range
    except KaratError:
        return ends
    slack = ROUNDED * (most - least) if np.isfinite(most - least) else 0.0
    inside = (scores >= least - slack) & (scores <= most + slack)
    return np.where(inside, np.clip(ends, least, most), ends)


def overall(
    gathered: Gathered,
    cells: Cells,
    compared: RankedScores,
    columns: Mapping[str, str],
    requested: RequestedColumns,
    tests: TaskTests,
) -> pd.DataFrame:
    """Return one row per model: its ranks over all tasks, its score on each, its costs."""
    means = pd.DataFrame(cells.means, index=cells.models, columns=list(columns.values()))
    costs = _costs(gathered.jobs, gathered.jobs["model"]).reindex(cells.models)
    frame = pd.concat([_summary(compared, requested, tests), means, _whole(costs)], axis=1)
    frame.index.name = "model"
    return frame.iloc[_order(frame, compared)]


def connected(gathered: Gathered, cells: Cells) -> dict[str, ModelGroup]:
    """Return the groups of models that can be ranked together, by name; see ``connected_groups``.

    A group is named after what its items are, or by its number.
    """
    groups_found = connected_groups(cells.takes)
    names = []
    for group in groups_found:
        modalities = {gathered.modalities.get(cells.tasks[t]) or "" for t in group.tasks}
        words = [word for name, word in MODALITIES.items() if name in modalities]
        names.append(" and ".join(words) if modalities <= {*MODALITIES} else "")
    if "" in names or len(set(names)) < len(names):
        names = [f"group {number + 1}" for number in range(len(names))]
    return dict(zip(names, groups_found, strict=True))


def split_kinds(gathered: Gathered, cells: Cells, group_of: Mapping[str, str]) -> dict[str, str]:
    """Return the group of each task in a view, split where its models cannot be compared."""
    every = range(len(cells.models))
    kind_of: dict[str, str] = {}
    for name in dict.fromkeys(group_of.values()):
        places = [t for t, task in enumerate(cells.tasks) if group_of[task] == name]
        parts = connected(gathered, cells.only(places, every))
        for label, part in parts.items():
            whole = name if len(parts) == 1 else f"{name} · {label}"
            kind_of |= {cells.tasks[places[t]]: whole for t in part.tasks}
    return kind_of


def by_connection(
    gathered: Gathered,
    cells: Cells,
    compared: RankedScores,
    headings: Mapping[str, str],
    requested: RequestedColumns,
    tests: TaskTests,
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]]]:
    """Return the leaderboards of all groups below each other, and the facts of each."""
    boards, facts = {}, {}
    groups = connected(gathered, cells)
    for name, group in groups.items():
        part, ranked = cells.only(group.tasks, group.models), compared.only(*astuple(group))
        of_part = gathered.of_tasks(part.tasks) if len(groups) > 1 else gathered
        columns = {task: headings[task] for task in part.tasks}
        boards[name] = overall(
            of_part, part, ranked, columns, requested.look_up(part.models), tests
        )
        facts[name] = {"group": name, **_facts(of_part, part, ranked, columns)}
        facts[name]["separation"] = separation(ranked, tests)
        facts[name]["these_tasks"] = _these_tasks_facts(boards[name], ranked, tests)
    whole = pd.concat(boards, names=[GROUP, "model"])
    first = [name for name in (*RANKS, *DIFFERENCES) if name in whole]
    last = [name for name in COSTS if name in whole]
    return whole[[*first, *whole.columns.drop([*first, *last]), *last]], facts


def _these_tasks_facts(
    board: pd.DataFrame, compared: RankedScores, tests: TaskTests
) -> dict[str, Any]:
    """Return what these tasks show about each model and the first one; empty if not computed."""
    these = find_these_tasks(compared, tests) if DIFFERENCES[0] in board else None
    if these is None or not these.test or not len(board):
        return {}
    first = compared.models[_reference(board.reindex(compared.models), compared)]
    rows = {row["model"]: row for row in these.against(these.models.index(first))}
    facts = {"reference": first, "margin": MARGIN, "test": these.test, "claim": these.claim}
    return {**facts, "tasks": these.tasks, "models": [rows[str(name)] for name in board.index]}


def split_groups(board: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the leaderboard of each group of models that cannot be compared with the others.

    A leaderboard whose models can all be compared is returned as it is.
    """
    if board.attrs.get("by") != GROUP:
        return [board]
    parts = []
    for name, facts in board.attrs["boards"].items():
        part = board.xs(name, level=GROUP)
        others = set(board.attrs["tasks"]) - set(facts["tasks"])
        part = part.drop(columns=[task for task in others if task in part])
        part.attrs = {**board.attrs, **facts, "by": None}
        parts.append(part)
    return parts


def by_group(
    gathered: Gathered,
    compared: RankedScores,
    group_of: Mapping[str, str],
    requested: RequestedColumns,
    tests: TaskTests,
) -> pd.DataFrame:
    """Return one row per group of tasks and model: its ranks within the group, its costs."""
    groups: dict[str, list[int]] = {}
    for position, task in enumerate(compared.tasks):
        groups.setdefault(group_of[task], []).append(position)
    costs = _costs(gathered.jobs, [gathered.jobs["task"].map(group_of), gathered.jobs["model"]])
    boards = []
    for places in groups.values():
        part = compared.only(places)
        frame = _summary(part, requested, tests)
        contested = part.takes.sum(axis=0) > 1
        frame["tasks"] = part.takes[:, contested].sum(axis=1)
        boards.append(frame.iloc[_order(frame, part)])
    long = pd.concat(boards, keys=list(groups))
    return pd.concat([long, _whole(costs.reindex(long.index))], axis=1)


def mean_scores(cells: Cells, group_of: Mapping[str, str], metrics: Mapping[str, str]) -> pd.Series:
    """Return each model's mean score over the tasks of a group, by group and model.

    It is NaN unless the tasks have one metric, which is bounded and higher is better, and the
    model has a score on each of them.
    """
    mean_columns = {}
    for name in dict.fromkeys(group_of.values()):
        places = [t for t, task in enumerate(cells.tasks) if group_of[task] == name]
        used = {metrics[cells.tasks[t]] for t in places}
        one_scale = len(used) == 1 and all(cells.higher[t] for t in places) and _bounded(*used)
        means = cells.means[:, places].mean(axis=1)
        mean_columns[name] = pd.Series(means if one_scale else np.nan, index=cells.models)
    return pd.concat(mean_columns)


def _bounded(metric: str) -> bool:
    try:
        return bool(np.isfinite(get_metric(metric).range).all())
    except KaratError:
        return False


def by_task(
    gathered: Gathered,
    cells: Cells,
    compared: RankedScores,
    metrics: Mapping[str, str],
    requested: RequestedColumns,
    tests: TaskTests,
) -> pd.DataFrame:
    """Return one row per task and model: its rank there, its score, the intervals over folds."""
    keys = pd.MultiIndex.from_product([cells.tasks, cells.models])
    ranks = rank_within(compared, [tests.of(compared, t).p for t in range(len(cells.tasks))])
    low, high = _score_intervals(gathered, cells, list(metrics.values()))
    filled = np.zeros(cells.means.shape, int) if compared.filled is None else compared.filled
    low[filled.T > 0] = high[filled.T > 0] = np.nan  # they are those of other folds
    counts = [(~np.isnan(table)).sum(axis=1) for table in cells.folds]
    columns = {
        "metric": np.repeat(list(metrics.values()), len(cells.models)),
        **{name: table.T.ravel() for name, table in ranks.items()},
        "score": cells.means.T.ravel(),
        "score_low": low.ravel(),
        "score_high": high.ravel(),
    }
    if requested.normalize is not None:
        columns["normalized"] = normalize(compared, requested.baseline, requested.one).T.ravel()
    columns["folds"] = np.concatenate(counts)
    columns |= {"filled": filled.T.ravel()} if filled.any() else {}
    columns |= _pooled_columns(cells)
    columns["status"] = cells.states.T.ravel()
    frame = pd.DataFrame(columns, index=keys)
    costs = _costs(gathered.jobs, [gathered.jobs["task"], gathered.jobs["model"]]).drop(
        columns="declined"
    )
    frame = pd.concat([frame, _whole(costs.reindex(keys))], axis=1)
    task = np.repeat(np.arange(len(cells.tasks)), len(cells.models))
    missing = (frame["status"] != OK).to_numpy() & (filled.T.ravel() == 0)
    return frame.iloc[np.lexsort((frame["rank"].fillna(np.inf), missing, task))]


def _pooled_columns(cells: Cells) -> dict[str, Any]:
    """Return the folds planned, if some are missing, and the spread over seeds, if there is one."""
    columns: dict[str, Any] = {}
    if cells.partial:
        columns["planned"] = cells.planned.T.ravel()
    if not np.isnan(cells.seed_spread).all():
        columns["seed_spread"] = cells.seed_spread.T.ravel()
    return columns


def groups_of(gathered: Gathered, tasks: list[str], by: str | None) -> dict[str, str]:
    """Return the group of each task in a view: its kind, dataset or language; none over all."""
    if by is None:
        return {}
    if by not in BY:
        hint = did_you_mean(str(by), BY)
        raise DefinitionError(f"by must be one of {', '.join(BY)}, got {by!r}.{hint}")
    if not tasks:
        raise DataError(
            "no task could be run, so there is nothing to compare; karat plan shows why."
        )
    if by == "task":
        return {task: task for task in tasks}
    groups = {"kind": gathered.kinds, "dataset": gathered.datasets, "language": gathered.languages}[
        by
    ]
    if not groups:
        raise DataError(f'by="{by}" needs a column "{by}" in the table of scores.')
    return {task: str(groups.get(task) or OTHER) for task in tasks}


# -- parts ----------------------------------------------------------------------------------


def _summary(compared: RankedScores, requested: RequestedColumns, tests: TaskTests) -> pd.DataFrame:
    compared = compared.by_name()
    ranks = rank_models(compared.values, compared.takes)
    summaries = (ranks.mean, ranks.low, ranks.high, ranks.ties, ranks.top)
    columns = dict(zip(RANKS, summaries, strict=True))
    contested = np.flatnonzero(compared.takes.sum(axis=0) > 1)
    if len(contested) == 1:
        one = compared.only([int(contested[0])])
        within = rank_within(one, [tests.of(one, 0).p])
        columns = {name: table[:, 0] for name, table in within.items()}
        # the rank over tasks cannot be estimated from one
        columns |= dict.fromkeys(("rank_low", "rank_high"), np.nan)
    frame = pd.DataFrame(columns, index=pd.Index(compared.models, name="model"))
    few = len(contested) > 1 and not enough_tasks(compared.takes[:, contested])
    if requested.wants("difference"):
        frame[list(DIFFERENCES)] = np.nan  # also if nothing can be tested
    if few or requested.wants("difference"):
        _add_differences(frame, compared, tests, letters=few)
    if requested.normalize is not None:
        frame["score"], frame["median"] = over_tasks(
            normalize(compared, requested.baseline, requested.one)
        )
    if requested.wants("wins"):
        frame["wins"] = over_tasks(win_shares(ranks.each))[0]
    if requested.wants("borda"):
        frame["borda"] = borda(ranks.each)
    if requested.wants("elo"):
        rated = elo(ranks.each, requested.anchor_index)
        frame["elo"], frame["elo_low"], frame["elo_high"] = rated.mean, rated.low, rated.high
        if frame["elo"].count() < FEWEST_RATED:
            frame[["elo", "elo_low", "elo_high"]] = np.nan
    return frame


def _add_differences(
    frame: pd.DataFrame, compared: RankedScores, tests: TaskTests, *, letters: bool
) -> None:
    """Add the difference to the first model over these tasks, and the letters that hold for them.

    Nothing is added if no pair was tested.
    """
    these, ranks = find_these_tasks(compared, tests), frame["rank"].to_numpy()
    if these is None or not these.test:
        return
    if letters:
        frame["tie"], frame["top"] = these.letters(ranks), these.may_be_best(ranks)
    rows = these.against(_reference(frame, compared))
    for name, key in zip(DIFFERENCES, ("difference", "low", "high"), strict=True):
        frame[name] = [row[key] for row in rows]


def _order(frame: pd.DataFrame, compared: RankedScores) -> np.ndarray:
    """Return the rows by rank; of equal ranks, those on few tasks come last."""
    return np.lexsort((ranked_on_few(compared.takes), frame["rank"].fillna(np.inf)))


def _reference(frame: pd.DataFrame, compared: RankedScores) -> int:
    """Return the place of the model that the others are compared with: the best with enough tasks.

    Rows are in the order of the models.
    """
    few, ranks = ranked_on_few(compared.takes), frame["rank"].fillna(np.inf)
    return int(np.lexsort((ranks, few))[0])


def takers_differ(takes: np.ndarray) -> bool:
    """Return whether models take different tasks, of those that several models take.

    Models and tasks without any of the others do not count.

    >>> takers_differ(np.array([[1, 1, 0], [1, 1, 1]])), takers_differ(np.array([[1, 0], [1, 1]]))
    (False, False)
    >>> takers_differ(np.array([[1, 1], [1, 1], [1, 0]]))
    True
    """
    contested = takes[:, takes.sum(axis=0) > 1]
    return not bool(contested[contested.any(axis=1)].all())


def _ranked_by_pairs(compared: RankedScores, by: str | None, group_of: Mapping[str, str]) -> bool:
    """Return whether ranks of a view depend on pairs, as the takers of its tasks differ."""
    if by == "task":
        return False
    parts: dict[str, list[int]] = {}
    for position, task in enumerate(compared.tasks):
        parts.setdefault(group_of.get(task, ""), []).append(position)
    return any(takers_differ(compared.takes[:, places]) for places in parts.values())


def _without_common_task(compared: RankedScores) -> dict[str, list[str]]:
    """Return the models without a rank, with ranked models with which they share no task."""
    takes = compared.takes & (compared.takes.sum(axis=0) > 1)
    ranked = comparable_models(takes)
    others_of = {}
    for m in np.flatnonzero(takes.any(axis=1) & ~ranked):
        lacking = ~(takes & takes[m]).any(axis=1)
        others = np.flatnonzero(lacking & ranked) if ranked.any() else np.flatnonzero(lacking)
        others_of[compared.models[m]] = [compared.models[other] for other in others]
    return others_of


def _score_intervals(gathered: Gathered, cells: Cells, metrics: list[str]) -> np.ndarray:
    """Return the bounds of each score, tasks × models, within the limits of its metric."""
    low, high = score_intervals(gathered, cells, metrics)
    return np.stack(
        [
            within_limits(low[t], high[t], cells.means[:, t], metric)
            for t, metric in enumerate(metrics)
        ],
        axis=1,
    )


def _costs(jobs: pd.DataFrame, keys: pd.Series | list[pd.Series]) -> pd.DataFrame:
    declined = jobs["task"].where(jobs["status"] == "declined")
    counted = jobs.assign(failed=jobs["status"] == "failed", declined=declined)
    numbers = dict.fromkeys(("dimensions", "vector_bytes", *OF_ENDPOINTS), float)
    grouped = counted.astype(numbers).groupby(keys, observed=True)
    columns = (
        grouped["failed"].sum(),
        grouped["declined"].nunique(),
        grouped["seconds"].sum(min_count=1),
        grouped["memory"].max(),
        grouped["dimensions"].max(),
        grouped["vector_bytes"].max(),
        *(grouped[name].sum(min_count=1) for name in OF_ENDPOINTS),
    )
    costs = pd.DataFrame(dict(zip(COSTS, columns, strict=True)))
    unused = [name for name in OF_ENDPOINTS if costs[name].isna().all()]
    if jobs["precision"].dropna().eq("float32").all():  # then it is 4 × dimensions
        unused.append("vector_bytes")
    return costs.drop(columns=unused)


def _whole(costs: pd.DataFrame) -> pd.DataFrame:
    """Return costs with counts of 0 for models without jobs, unless there are no jobs at all."""
    counts = [name for name in ("failed", "declined") if name in costs]
    if costs[counts].notna().to_numpy().any():
        return costs.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))
    return costs.astype(float)


def pareto(frame: pd.DataFrame, cost: str = "seconds", quality: str = "rank") -> pd.Series:
    """Return which rows of a leaderboard are on the Pareto front of quality against cost.

    A model is on the front of its group if no other is at least as good at no higher cost, and
    better in one of them. Models that lack either number, have no score, or have too few tasks to
    be ranked are not. ``cost`` and ``quality`` are columns of the leaderboard.

    >>> frame = pd.DataFrame({"rank": [1.0, 2.0, 3.0], "seconds": [9.0, 2.0, 4.0]})
    >>> pareto(frame).tolist()
    [True, True, False]
    """
    higher = frame.attrs.get("higher_is_better", {})
    good = better_first(frame, quality, higher, "pareto")
    cheap = better_first(frame, cost, higher, "pareto")
    comparable = np.isfinite(good) & np.isfinite(cheap) & ~_on_few_tasks(frame)
    if "tie" in frame and (frame["tie"] != "").any():
        comparable &= (frame["tie"] != "").to_numpy()
    scored = [task for task in frame.attrs.get("tasks", ()) if task in frame]
    if scored:  # a model that failed on every task is cheap but not on the front
        comparable &= frame[scored].notna().any(axis=1).to_numpy()
    group = np.zeros(len(frame))
    if frame.index.nlevels > 1:
        group = np.asarray(pd.factorize(frame.index.get_level_values(0))[0])
    on = np.zeros(len(frame), dtype=bool)
    for number in np.unique(group[comparable]):
        rows = np.flatnonzero(comparable & (group == number))
        on[rows] = _front(good[rows], cheap[rows])
    return pd.Series(on, index=frame.index, name="pareto")


def _on_few_tasks(frame: pd.DataFrame) -> np.ndarray:
    """Return which rows of a leaderboard over all tasks rest on too few of them."""
    few: list[Any] = list(frame.attrs.get("few", ()))
    if frame.index.nlevels > 1:
        boards = frame.attrs.get("boards") or {}
        few = [(name, model) for name, facts in boards.items() for model in facts["few"]]
    return frame.index.isin(few) if few else np.zeros(len(frame), dtype=bool)


def _front(good: np.ndarray, cheap: np.ndarray) -> np.ndarray:
    order = np.lexsort((cheap, good))
    # the lowest cost among the strictly better points, and among equally good ones
    lowest = np.minimum.accumulate(cheap[order])
    start = np.searchsorted(good[order], good[order], side="left")
    before = np.append(np.inf, lowest)[start]
    on = np.empty(len(good), dtype=bool)
    on[order] = (cheap[order] < before) & (cheap[order] == cheap[order][start])
    return on


def leaderboard(
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
    by: str | None = None,
    missing: str = "worst",
    normalize: str | None = None,
    sort: str | None = None,
    columns: Iterable[str] | str | None = None,
    pool: str = "variant",
    cluster: str | None = None,
) -> pd.DataFrame:
    """Rank the models of some runs.

    A score is the mean over folds of a task's metric on clean data. Ranks respect each metric's
    direction; scores on different scales are never averaged. Models are ranked on the folds that
    they all have, by pairs where they take different tasks: 1 + the sum, over the other models, of
    the share of common tasks on which the other is better. Those with fewer than six tasks get no
    interval and no tie letter.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders, folders of runs, or a mapping from names of models to
        what scikit-learn's ``cross_validate`` returned (or by model and task), or ``cv_results_``.
    metrics
        Metrics by task, instead of the tasks' primary metrics.
    by
        ``"task"``, ``"kind"``, ``"dataset"`` or ``"language"``: one row per model within each.
    missing
        Rule for missing scores. ``"worst"``: a failed fold ranks below all others of that fold; a
        task that was declined or not run does not count. ``"exclude"`` or ``"common"``: only folds
        in which all models have a score. ``"penalize"``: the worst score of the fold, whatever the
        reason. ``"baseline:MODEL"``: that model's score, whatever the reason; the score shown is
        then the one that was ranked, and marked.
    normalize
        ``"range"`` adds ``score``, ``median`` and ``wins``, with each task's scores from 0 (the
        worst model) to 1 (the best); ``"baseline:MODEL"`` puts that model at 0, and
        ``"baseline:ZERO,ONE"`` two models at 0 and 1, fold by fold.
    sort
        Column to sort by, best first. Default: rank.
    columns
        Columns to show besides ranks and failures. Default: a column per task, and costs. On
        request: ``"borda"``, ``"wins"``, ``"elo"``, ``"pareto"``; ``"elo:MODEL"`` puts that model
        at 1500, ``"pareto:memory_mb"`` uses another cost than time; ``"tasks"`` and ``"costs"``
        stand for all of them.
    pool
        Which runs are one row. ``"variant"``: runs of one model with the same constraint, version
        and parameters; of a repeated job the newest counts. ``"model"``: all runs of one name.
        ``"none"``: each run folder.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and tests on items treat these clusters as the unit. Default: the declared groups.

    Returns
    -------
    pandas.DataFrame
        A ``Leaderboard``, which prints as a table. One row per model, best first: rank, its 95 %
        interval, tie letters, whether it may be the best (``top``), a score per task.
        ``attrs`` holds ``tasks`` (their columns), ``metrics``, ``higher_is_better``, ``missing``
        (rule and counts), ``cells`` (why a score is missing), ``lacking`` (which libraries or
        data were missing, and where), ``coverage`` and ``seeds``; by model and task ``partial``,
        the folds with a score and the folds planned where these are more, ``filled``, the number
        of folds with the baseline's score and of all folds that were ranked, and ``seed_spread``,
        the standard deviation over seeds; ``further``, the columns of the other metrics of a
        single retrieval task; by model ``repeats``, the number of older jobs;
        ``separation``, the test that separates models, or why there was no test; ``by_pairs``,
        whether models take different tasks; ``few``, the models on too few tasks to be named as
        the best, and ``no_common_task``, those without a rank for that reason; ``these_tasks``,
        the difference of each model to the first one over these tasks and on each;
        ``eliminated``, the models that a race eliminated, which are not ranked, with when and why.

    Raises
    ------
    DataError
        If there are no scores to compare, or a task or metric is unknown.
    DefinitionError
        If an option or a model or column named in one is unknown.

    Examples
    --------
    >>> karat.leaderboard("results", columns=["elo", "costs"])  # doctest: +SKIP
    """
    rule = check_rule("missing", missing, RULES)
    requested = RequestedColumns.read(columns, normalize, by, sort)
    gathered, eliminated = without_eliminated(cluster_scores(gather_scores(runs, pool), cluster))
    chosen = gathered.chosen(dict(metrics or {}))
    groups = groups_of(gathered, list(chosen), by)
    cells = make_cells(gathered, chosen)
    compared = apply_missing_rule(cells, rule)
    cells = fill_means(cells, compared)
    gathered = _costs_of(gathered, compared) if rule == "exclude" else gathered
    # a task with the name of a column gets a suffix
    headings = {t: f"{t} (task)" if not by and t in COLUMNS else t for t in chosen}
    requested.check(cells.models)
    tests, boards = TaskTests(gathered, chosen), dict[str, dict[str, Any]]()
    if by is None:
        frame, boards = by_connection(gathered, cells, compared, headings, requested, tests)
    elif by == "task":
        frame = by_task(gathered, cells, compared, chosen, requested.look_up(cells.models), tests)
    else:
        groups = split_kinds(gathered, cells, groups)
        frame = by_group(gathered, compared, groups, requested.look_up(cells.models), tests)
        if by == "language":
            _add_mean_scores(frame, mean_scores(cells, groups, chosen))
    further = _add_further_metrics(frame, gathered, chosen, headings) if by is None else {}
    frame.index.names = [by or GROUP, "model"]
    facts = _facts(gathered, cells, compared, headings)
    facts |= {
        "by": by,
        "normalize": requested.normalize,
        "anchor": requested.anchor,
        "further": further,
    }
    facts |= {"groups": groups, "boards": boards, "positive": _positive(gathered, headings, chosen)}
    facts["metrics"] = {headings[task]: metric for task, metric in chosen.items()}
    facts |= {"separation": separations(compared, by, groups, tests), "eliminated": eliminated}
    facts |= {"by_pairs": _ranked_by_pairs(compared, by, groups)}
    return _finish(frame, requested, facts)


def without_eliminated(gathered: Gathered) -> tuple[Gathered, dict[str, str]]:
    """Return scores without the models that a race eliminated, and when and why they were.

    Of models that stopped for another reason, only the tasks count that they ran, for all models.
    """
    gone = {m: str(e.get("text")) for m, e in gathered.exits.items() if e["reason"] == ELIMINATED}
    remaining = [model for model in gathered.models if model not in gone]
    if gone and not remaining:
        raise DataError(
            "all models of these runs were eliminated in a race; add the runs of those that remain."
        )
    stopped = [model for model in gathered.exits if model not in gone]
    gathered = gathered.of_models(remaining) if gone else gathered
    if not stopped:
        return gathered, gone
    ran = gathered.jobs.groupby("model", observed=True)["task"].agg(set)
    common = [task for task in gathered.metrics if all(task in ran.get(m, ()) for m in stopped)]
    if common:
        gathered = replace(
            gathered.of_tasks(common), metrics={t: gathered.metrics[t] for t in common}
        )
    return gathered, gone


def _add_mean_scores(frame: pd.DataFrame, scores: pd.Series) -> None:
    """Add the mean score of each group, if the user did not ask for another score."""
    if "score" not in frame and scores.notna().any():
        frame.insert(int(frame.columns.get_loc("tasks")), "score", scores)


def _add_further_metrics(
    frame: pd.DataFrame, gathered: Gathered, chosen: Mapping[str, str], headings: Mapping[str, str]
) -> dict[str, bool]:
    """Add a column for each other metric of a single retrieval task.

    Returns for each column whether higher is better.
    """
    task = next(iter(chosen), "")
    if len(chosen) != 1 or gathered.kinds.get(task) != RETRIEVAL:
        return {}
    position, added = frame.columns.get_loc(headings[task]), {}
    for metric in gathered.scores.loc[gathered.scores["task"] == task, "metric"].unique():
        if metric != chosen[task] and metric not in (*frame.columns, *COLUMNS):
            cells = make_cells(gathered, {task: metric})
            means = dict(zip(cells.models, cells.means[:, 0], strict=True))
            added[metric] = gathered.higher_is_better.get(metric, True)
            models = frame.index.get_level_values(-1)
            frame.insert(position + len(added), metric, models.map(means).to_numpy(dtype=float))
    return added


def _positive(
    gathered: Gathered, headings: Mapping[str, str], metrics: Mapping[str, str]
) -> dict[str, str]:
    """Return the positive class of tasks whose metric depends on it."""
    return {
        headings[task]: label
        for task, label in gathered.positive.items()
        if task in headings and has_positive_class(metrics.get(task, ""))
    }


def _finish(
    frame: pd.DataFrame, requested: RequestedColumns, facts: dict[str, Any]
) -> pd.DataFrame:
    """Return a leaderboard with its Pareto front, sorted, with the requested columns and attrs."""
    if len(facts["boards"]) > 1:
        facts["by"] = GROUP
    elif facts["boards"]:
        (only,) = facts["boards"].values()
        facts["these_tasks"] = only["these_tasks"]
        frame, facts["boards"] = frame.droplevel(GROUP), {}
    if requested.wants("pareto"):
        position = sum(name in COLUMNS and name not in COSTS for name in frame.columns)
        frame.attrs.update({name: facts[name] for name in ("few", "boards", "higher_is_better")})
        frame.insert(position, "pareto", pareto(frame, requested.cost))
        facts["pareto"] = requested.cost
    if requested.sort is not None:
        frame = sort_leaderboard(frame, requested.sort, facts["higher_is_better"])
    frame = requested.pick(frame, facts["by"])
    for board_facts in (facts, *facts["boards"].values()) if facts["by"] in (None, GROUP) else ():
        board_facts["tasks"] = [task for task in board_facts["tasks"] if task in frame]
    frame.attrs.update({name: _shared(value) for name, value in facts.items()})
    return frame


def _shared(value: Any) -> Any:
    if isinstance(value, dict):
        return Shared(value)
    return SharedList(value) if isinstance(value, list) else value


def _costs_of(gathered: Gathered, compared: RankedScores) -> Gathered:
    """Return the scores without the costs of tasks on which no model is compared."""
    counted = {
        task for task, taking in zip(compared.tasks, compared.takes.T, strict=True) if taking.any()
    }
    named = ["seconds", "memory", "dimensions", "vector_bytes", *OF_ENDPOINTS]
    jobs = gathered.jobs.copy()
    jobs.loc[~jobs["task"].isin(counted), named] = np.nan
    return replace(gathered, jobs=jobs)


class Shared(dict[Any, Any]):
    """A dictionary that is not copied when pandas deep-copies the attrs of a frame."""

    def __deepcopy__(self, _: Any) -> Shared:
        return self


class SharedList(list[Any]):
    """A list that is not copied when pandas deep-copies the attrs of a frame."""

    def __deepcopy__(self, _: Any) -> SharedList:
        return self


def _facts(
    gathered: Gathered, cells: Cells, compared: RankedScores, columns: Mapping[str, str]
) -> dict[str, Any]:
    names = list(columns.values())
    states_of: dict[str, dict[str, str]] = {}
    for m, t in np.argwhere(cells.states != OK):
        states_of.setdefault(cells.models[m], {})[names[t]] = cells.states[m, t]
    ran = cells.takes[cells.takes.any(axis=1)]
    covered = gathered.jobs.dropna(subset=["coverage"]).astype({"coverage": float})
    coverage = covered.groupby(["model", "task"], sort=False)["coverage"].mean()
    return {
        "tasks": names,
        "missing": count_missing(cells, compared),
        "uneven": bool((ran != ran[:1]).any()) and compared.rule != "exclude",
        "higher_is_better": dict(zip(names, cells.higher, strict=True)),
        # by model and task, where it is below 1
        "coverage": {(m, columns.get(t, t)): float(c) for (m, t), c in coverage.items() if c < 1},
        "cells": states_of,
        **_taker_facts(compared),
        "seeds": gathered.seeds,
        "prompts": {m: prompts for m, prompts in gathered.prompts.items() if any(prompts.values())},
        **_pooled_facts(gathered, cells, columns),
        "filled": _filled_cells(compared, columns),
        "lacking": {
            why: [(model, columns.get(task, task)) for model, task in where]
            for why, where in gathered.lacking.items()
        },
        "duplicate_rows": {
            columns[task]: rows for task, rows in gathered.duplicate_rows.items() if task in columns
        },
    }


def _taker_facts(compared: RankedScores) -> dict[str, Any]:
    """Return who has few tasks, whether takers differ, and who has no rank for lack of tasks."""
    few = np.flatnonzero(ranked_on_few(compared.takes) & compared.takes.any(axis=1))
    taken = compared.takes[:, compared.takes.sum(axis=0) > 1].sum(axis=1)
    return {
        "few": [compared.models[m] for m in few],
        "few_tasks": {compared.models[m]: int(taken[m]) for m in few},
        "by_pairs": takers_differ(compared.takes),
        "no_common_task": _without_common_task(compared),
    }


def _filled_cells(
    compared: RankedScores, columns: Mapping[str, str]
) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the folds with a baseline's score, and all ranked folds, by model and task."""
    cells: dict[str, dict[str, tuple[int, int]]] = {}
    filled = compared.filled if compared.filled is not None else np.zeros((0, 0))
    for m, t in np.argwhere(filled):
        counts = (int(filled[m, t]), compared.values[t].shape[1])
        cells.setdefault(compared.models[m], {})[columns[compared.tasks[t]]] = counts
    return cells


def _pooled_facts(gathered: Gathered, cells: Cells, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return scores over fewer folds than planned, repeated jobs and spreads over seeds."""
    repeats = gathered.repeated["model"].value_counts() if len(gathered.repeated) else {}
    partial = {
        model: {columns[task]: counts for task, counts in partial_tasks.items()}
        for model, partial_tasks in cells.partial.items()
    }
    spread: dict[str, dict[str, float]] = {}
    for m, t in np.argwhere(~np.isnan(cells.seed_spread)):
        name = columns[cells.tasks[t]]
        spread.setdefault(cells.models[m], {})[name] = float(cells.seed_spread[m, t])
    counts = {str(model): int(number) for model, number in repeats.items()}
    return {"partial": partial, "seed_spread": spread, "repeats": counts}
