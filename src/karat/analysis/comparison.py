"""Is one model better than another? Paired by task and fold, with tests and a conclusion.

All runs of a model are pooled as on the leaderboard, and tasks are paired if they ask the same
question with the same seeds. Tasks that cannot be paired stay in the result, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from karat.analysis.all_pairs import TESTS, separate
from karat.analysis.item_tests import (
    AS_FITTED,
    CORRECTED,
    LEARNERS,
    ItemTest,
    Separation,
    compare_predictions,
    fold_separation,
)
from karat.analysis.leaderboard import fold_ratios
from karat.analysis.score_matrix import significant
from karat.analysis.these_tasks import (
    BETTER,
    OPEN,
    OTHER_TASKS,
    UNTESTED,
    WORSE,
    TheseTasks,
    these_tasks,
)
from karat.analysis.these_tasks import EQUAL as EQUAL_SCORES
from karat.core.formatting import (
    chance,
    count,
    format_p,
    interval,
    plain,
    records,
    result_html,
    rounded,
    signed,
    write_tables,
)
from karat.core.metric_names import recorded_metric
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.metrics.metric import is_ratio as is_ratio
from karat.results.clusters import check_cluster_column, unit_notes
from karat.results.load import NOT_RUN, OK, choose_metric, frozen_runs, gather_scores, make_cells
from karat.results.pooling import question_difference
from karat.results.run import Run
from karat.results.selection import (
    DIFFERENCES,
    NO_FOLD,
    NOT_MEASURED,
    Answered,
    Contest,
    Side,
    Unit,
    find_two,
    higher_is_better,
    pooled_sides,
    unknown_model,
)
from karat.stats.paired_tests import (
    ALPHA,
    CONFIDENCE,
    EQUAL,
    Corrected,
    agreeing,
    check_rope,
    cohens_d,
    corrected_t,
    correlated_t,
    holm,
    mean_of,
    signed_rank,
    subtract,
    superiority,
    wilcoxon,
)

OTHER_SEED = "another seed"
#: what is compared: all questions of a fold, those both can answer, or each question by itself
ON = ("folds", "common", "rows")


@dataclass(frozen=True)
class Paired:
    """Two models on a task: ``first`` and ``second`` are their scores by fold, as measured.

    ``ratio`` is n_test / n_train, NaN if unknown. Both ``states`` are "ok" if they could be paired.
    ``own`` are each model's means over all folds it has a score of, ``held`` their numbers.
    ``sides`` and ``units`` locate the stored predictions, if there are any. ``cluster`` is the
    column of items that belong together, empty for the declared groups.
    """

    task: str
    metric: str
    higher: bool
    first: np.ndarray
    second: np.ndarray
    ratio: float
    states: tuple[str, str]
    held: tuple[int, int]
    own: tuple[float, float]
    sides: tuple[Side, Side] | None = None
    units: list[Unit] = field(default_factory=list)
    cluster: str = ""

    @property
    def compared(self) -> bool:
        """Whether both have a score of some fold."""
        return len(self.first) > 0


@dataclass(frozen=True)
class Pairing:
    """The names of two models, their tasks, and notes on what was left out.

    ``models`` is the number of models among which the two were found by their names.
    """

    first: str
    second: str
    tasks: list[Paired]
    notes: list[str]
    models: int = 2

    @property
    def compared(self) -> list[int]:
        """The places of the tasks on which both have a score."""
        return [place for place, paired in enumerate(self.tasks) if paired.compared]


def pair(
    runs: Any, first: Any, second: Any, metric: str | None, on: str, pool: str = "variant"
) -> Pairing:
    """Return two models, named in a table or in some runs or as run folders, task by task."""
    if on not in ON:
        hint = did_you_mean(str(on), ON)
        raise DefinitionError(f"on must be one of {', '.join(ON)}, got {on!r}.{hint}")
    if isinstance(runs, pd.DataFrame | Mapping):
        if on != "folds":
            raise DefinitionError(f'on="{on}" needs run folders: a table has no predictions.')
        return _of_table(runs, str(first), str(second), metric)
    notes: list[str] = []
    sides, models = find_two(runs, first, second, notes, pool)
    return replace(_RunPairing(sides, metric, on, notes).done(), models=models)


def pair_with(
    runs: Any,
    reference: str,
    others: Iterable[str],
    metric: str | None,
    pool: str = "variant",
    cluster: str | None = None,
) -> dict[str, Pairing]:
    """Return each of several models paired with a reference, all named as on the leaderboard."""
    if isinstance(runs, pd.DataFrame | Mapping):
        return {
            name: cluster_pairing(_of_table(runs, name, reference, metric), cluster)
            for name in others
        }
    sides = {side.model: side for side in pooled_sides(frozen_runs(runs), pool)}
    found = {
        name: _RunPairing((sides[name], sides[reference]), metric, "folds", []).done()
        for name in others
    }
    return {name: cluster_pairing(each, cluster) for name, each in found.items()}


def cluster_pairing(found: Pairing, column: str | None) -> Pairing:
    """Return a pairing whose items are tested by clusters; None and "" change nothing.

    Raises ``DefinitionError`` if no task has the column, or too few values of it.
    """
    if not column:
        return found
    stored = [
        (paired.task, side.run, paired.task)
        for paired in found.tasks
        for side in paired.sides or ()
    ]
    if not stored:
        raise DefinitionError(f'cluster "{column}" needs stored predictions of both models.')
    notes = check_cluster_column(column, stored)
    return replace(by_cluster(found, column), notes=[*found.notes, *notes])


def by_cluster(found: Pairing, column: str | None) -> Pairing:
    """Return a pairing whose items are tested by a column that was checked."""
    tasks = [replace(paired, cluster=column or "") for paired in found.tasks]
    return replace(found, tasks=tasks)


# -- from a table of scores -----------------------------------------------------------------


def _of_table(table: Any, first: str, second: str, metric: str | None) -> Pairing:
    given = gather_scores(table)
    for name in (first, second):
        if name not in given.models:
            raise DefinitionError(unknown_model(name, given.models, "the table has"))
    if first == second:
        raise DefinitionError(f'a and b are both "{first}"; name two models to compare.')
    rows = given.scores[given.scores["model"].isin([first, second])]
    tasks = dict.fromkeys(rows["task"])
    chosen = {task: given.metrics[task] for task in tasks}
    if metric is not None:
        metric = recorded_metric(metric, rows["metric"])
        measured = dict.fromkeys(rows.loc[rows["metric"] == metric, "task"])
        chosen = choose_metric(metric, measured, given.scores["metric"])
    notes = _without(metric, [task for task in tasks if task not in chosen])
    cells = make_cells(given, chosen)
    places = [given.models.index(name) for name in (first, second)]
    ratios = fold_ratios(given, cells.tasks)
    found = []
    for t, task in enumerate(cells.tasks):
        both = cells.folds[t][places] * (1 if cells.higher[t] else -1)
        states = (str(cells.states[places[0], t]), str(cells.states[places[1], t]))
        found.append(_paired(task, chosen[task], cells.higher[t], both, ratios[t], states))
    return Pairing(first, second, found, notes, len(given.models))


def _paired(
    task: str, metric: str, higher: bool, both: np.ndarray, ratio: float, states: tuple[str, str]
) -> Paired:
    known = ~np.isnan(both)
    shared = known.all(axis=0) & (states == (OK, OK))
    held = (int(known[0].sum()), int(known[1].sum()))
    own = mean_of(both)
    if states == (OK, OK) and not shared.any():
        states = (OK, NO_FOLD)
    # scores that agree in all significant digits are equal
    both = both[:, shared]
    first, second = np.where(np.equal(*significant(both)), both.mean(axis=0), both)
    return Paired(
        task, metric, higher, first, second, ratio, states, held, (float(own[0]), float(own[1]))
    )


# -- from runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Match:
    """A task of both, or of one: its name in each, and why the two cannot be paired."""

    task: str
    names: tuple[str | None, str | None]
    why: str = ""


class _RunPairing:
    """Two models' runs, paired task by task."""

    def __init__(self, sides: Sequence[Side], metric: str | None, on: str, notes: list[str]):
        self.first, self.second = sides
        self.metric, self.on, self.notes = metric, on, notes

    def done(self) -> Pairing:
        """Return the tasks of both, those of the first model first."""
        matches = {match.task: match for match in self._matches()}
        names = {task: self._metrics(match) for task, match in matches.items()}
        chosen = {task: next(iter(known)) for task, known in names.items() if known}
        if self.metric is not None:
            recorded = [name for several in names.values() for name in several]
            self.metric = recorded_metric(self.metric, recorded)
            measured = [task for task, known in names.items() if self.metric in known]
            chosen = choose_metric(self.metric, measured, recorded)
        self.notes += _without(self.metric, [task for task in names if task not in chosen])
        found = [self._task(matches[task], name) for task, name in chosen.items()]
        notes = list(dict.fromkeys(self.notes))
        return Pairing(self.first.model, self.second.model, found, notes)

    def _matches(self) -> Iterator[_Match]:
        """Yield the tasks that both have, and those of one, with what they differ in."""
        left = {task: self.second.tasks[task]["task"] for task in self.second.tasks}
        for task, about in self.first.tasks.items():
            if left.pop(task, None) is not None:
                yield _Match(task, (task, task))
                continue
            free = [t for t in left if t not in self.first.tasks and left[t] == about["task"]]
            if free:
                del left[free[0]]
                why = _difference(self.first, self.second, (task, free[0]))
                yield _Match(str(about["task"]), (task, free[0]), why)
            else:
                yield _Match(task, (task, None))
        yield from (_Match(task, (None, task)) for task in left)

    def _metrics(self, match: _Match) -> dict[str, None]:
        known: dict[str, None] = {}
        for side, task in zip((self.first, self.second), match.names, strict=True):
            given = side.tasks[task]["metrics"] if task is not None else ()
            known |= dict.fromkeys(str(name) for name in given if name != "?")
        return known

    def _task(self, match: _Match, metric: str) -> Paired:
        sides = (self.first, self.second)
        contest = None if match.why or None in match.names else Contest(sides, match.task, CLEAN)
        states = [
            NOT_RUN if task is None else side.state(task)
            for side, task in zip(sides, match.names, strict=True)
        ]
        units: list[dict[Unit, Answered]] = [{}, {}]
        if contest is not None:
            if self.on != "folds":
                contest.cut([metric])
            self._note(contest)
            units, states = contest.units, contest.states
        elif match.why and states == [OK, OK]:
            states[1] = match.why
        # a model that could not be paired still has a value of its own
        tables = [
            _scores(given or _answered(side, task), metric)
            for given, side, task in zip(units, sides, match.names, strict=True)
        ]
        return self._paired(match, metric, (tables, states), contest)

    def _paired(
        self,
        match: _Match,
        metric: str,
        found: tuple[list[dict[Unit, float]], list[str]],
        contest: Contest | None,
    ) -> Paired:
        tables, states = found
        one, other = (
            NOT_MEASURED if state == OK and not table else state
            for state, table in zip(states, tables, strict=True)
        )
        every = sorted({unit for table in tables for unit in table})
        both = [[table.get(unit, np.nan) for unit in every] for table in tables]
        named = match.names[0] or match.names[1] or match.task
        higher = higher_is_better([self.first, self.second], named, metric)
        values = np.array(both, dtype=float).reshape(2, len(every))
        made = _paired(match.task, metric, higher, values, np.nan, (one, other))
        if contest is None or not made.compared:
            return made
        shared = [unit for unit in every if all(unit in table for table in tables)]
        pair = (contest.sides[0], contest.sides[1])
        return replace(made, ratio=contest.ratio(shared), sides=pair, units=shared)

    def _note(self, contest: Contest) -> None:
        self.notes += [f"{about}: {text}" for about, text in contest.notes]
        if self.on == "folds" and contest.coverage_differs:
            self.notes.append(
                f"{contest.task}: coverage of the questions differs between the models; "
                f'on="common" (--on common) compares on those that both can answer.'
            )


def _difference(first: Side, second: Side, tasks: tuple[str, str]) -> str:
    """Return why two tasks of one name cannot be paired."""
    return DIFFERENCES.get(question_difference(first.run, second.run, tasks), OTHER_SEED)


def _answered(side: Side, task: str | None) -> dict[Unit, Answered]:
    return {} if task is None else side.answered.get(task, {}).get(CLEAN, {})


def _scores(units: dict[Unit, Answered], metric: str) -> dict[Unit, float]:
    found = {unit: answer.scores.get(metric) for unit, answer in units.items()}
    return {unit: v for unit, v in found.items() if v is not None and np.isfinite(v)}


def _without(metric: str | None, tasks: Sequence[str]) -> list[str]:
    return [f"Not compared, no {metric or 'metric'}: {', '.join(tasks)}."] if tasks else []


#: default region of practical equivalence
ROPE = 0.01
#: with more folds, only tasks with a single one are tested on stored predictions
MAX_FOLDS = 250
#: why a task is not tested
ONE_FOLD, NO_SPREAD = "one fold", "no spread over folds"
#: what the p of a task holds for, by the test that made it
ON_ITEMS = (
    "Tests on items hold for the models as fitted, on new items of this kind; with --seeds 3 they "
    "would include the noise of training."
)
#: where there are other models as well
TWO_ALONE = (
    "p and intervals are those of these two models alone; karat leaderboard corrects for all pairs "
    "of the models."
)
OVER_FITS = "Tests over folds or seeds hold for the learners: they include the noise of training."
COLUMNS = (
    *("task", "metric", "higher_is_better", "first", "second"),
    *("difference", "difference_low", "difference_high", "p", "p_holm", "better", "test", "why"),
    *("p_folds", "folds", "p_items", "items", "clusters", "claim"),
    *("gain", "relative", "p_better", "p_equal", "p_worse", "effect"),
    *("first_folds", "second_folds", "first_status", "second_status"),
)


@dataclass(frozen=True)
class Overall:
    """Two models over all tasks on which they could be compared.

    Attributes
    ----------
    tasks, of
        Number of tasks compared, and number for which either model has a score.
    wins, ties, losses
        Number of tasks on which the first has the better, the same, the worse value.
    better, worse, not_significant, untested
        Number of tasks on which the first is significantly better or worse (corrected p < 0.05),
        on which there is no significant difference, and which could not be tested.
    gain, gain_low, gain_high
        Mean gain of the first over tasks, and its 95 % t interval over tasks; with two to five
        tasks over those that were tested, and the interval holds for these tasks.
    within
        Share of tasks whose gain is within the ROPE.
    p, test
        The test over tasks and its name, by default that of the leaderboard's letters; with two to
        five tasks that of the mean gain over these tasks, and NaN with a single one.
    p_wilcoxon
        Wilcoxon's signed-rank test of the gains.
    p_better, p_equal, p_worse
        Bayesian signed-rank test: better by more than the ROPE, within it, worse.
    rank_biserial, superiority, cohens_d
        Effect sizes: matched rank-biserial correlation (-1 to 1), share of tasks won (ties count
        half), mean gain divided by its standard deviation over tasks.

    NaN, or null in JSON, is what a single task cannot tell: probabilities and effects over tasks.
    """

    tasks: int
    of: int
    wins: int
    ties: int
    losses: int
    better: int
    worse: int
    not_significant: int
    untested: int
    gain: float
    gain_low: float
    gain_high: float
    within: float
    p: float
    test: str
    p_wilcoxon: float
    p_better: float
    p_equal: float
    p_worse: float
    rank_biserial: float
    superiority: float
    cohens_d: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models compared.

    Attributes
    ----------
    first, second
        The names of a and b.
    tasks
        One row per task: both values (means over the shared folds), the ``difference`` first minus
        second with its 95 % interval, ``p`` and ``p_holm`` (corrected over tasks), ``better`` (a
        model's name, empty without a significant difference), the ``test`` used or ``why`` there
        is none, ``p_folds`` of the corrected t over folds and ``p_items`` of the test that uses
        items, what the test is about (``claim``: the learners, or the models as fitted), the
        ``gain`` of the first (positive is better; relative to the mean of both values where
        ``relative``), the Bayesian probabilities, Cohen's d over folds, and both states.
    overall
        The same over all tasks.
    rope
        The region of practical equivalence, in units of the gain.
    notes
        What was left out and why.
    """

    first: str
    second: str
    tasks: pd.DataFrame
    overall: Overall
    rope: float = ROPE
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The conclusion in one sentence."""
        return _conclusion(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: names, conclusion, tasks, overall, notes."""
        facts = {k: None if v != v else v for k, v in vars(self.overall).items()}
        names = {"first": self.first, "second": self.second, "verdict": self.sentence}
        tables = {"rope": self.rope, "tasks": records(self.tasks), "overall": facts}
        return {**names, **tables, "notes": self.notes}

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``comparison_tasks.csv`` and ``comparison_overall.csv``, and return the files."""
        overall = pd.DataFrame([{"first": self.first, "second": self.second, **vars(self.overall)}])
        tables = {"tasks": self.tasks, "overall": overall.assign(rope=self.rope)}
        return write_tables(folder, "comparison", tables)

    def __repr__(self) -> str:
        table = self._task_table().map(plain).rename(columns=plain).to_string(index=False)
        blocks = [plain(self.sentence), table, "\n".join(overall_lines(self))]
        return "\n\n".join(filter(None, [*blocks, "\n".join(map(plain, self.notes))]))

    def _repr_html_(self) -> str:
        lines = [*overall_lines(self), *self.notes]
        return result_html(self.sentence, self._task_table(), lines)

    def _task_table(self) -> pd.DataFrame:
        return task_table(self).rename(columns={"first": self.first, "second": self.second})


def compare(
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    a: Run | str | Path,
    b: Run | str | Path,
    *,
    metric: str | None = None,
    rope: float = ROPE,
    on: str = "folds",
    pool: str = "variant",
    test: str = "max-t",
    cluster: str | None = None,
) -> Comparison:
    """Test whether model ``a`` is better than model ``b``, on each task and over all tasks.

    Only folds that both models have are compared, on the same data with the same split and seed.
    ``notes`` of the result list what was left out and why.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders, folders of runs, or a mapping from names of models to
        what scikit-learn's ``cross_validate`` returned, in which the models are looked up.
    a, b
        Names of models, runs, or run folders. If ``runs`` are ``Run`` objects, a string is always
        a name; a ``Path`` is always a folder.
    metric
        Compare on this metric only. Default: each task's primary metric.
    rope
        Region of practical equivalence: gains up to this size count as no difference.
    on
        ``"folds"``: scores as they were measured. ``"common"``: scores computed again on the
        questions that both models can answer. ``"rows"``: the same, and each task is tested on its
        stored predictions. Tasks are tested on their predictions anyway if they are stored and not
        too many.
    pool
        Which runs are one model, as in ``leaderboard``.
    test
        Test over tasks: ``"max-t"`` on ranks, as for the letters of the leaderboard, which for two
        models is the exact sign-flip test of wins and losses, or ``"wilcoxon"`` on the sizes of
        gains.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and tests on items treat these clusters as the unit. Default: the declared groups.

    Returns
    -------
    Comparison
        Differences, intervals and tests of each task and of all together, and a conclusion.

    Raises
    ------
    DataError
        If a run cannot be read, or the two models have no task.
    DefinitionError
        If a model, the metric or an option is unknown, or both models are the same.

    Examples
    --------
    >>> found = karat.compare("results", "skrub", "onehot")  # doctest: +SKIP
    >>> found.sentence, found.overall.p  # doctest: +SKIP
    """
    check_rope(rope)
    found = cluster_pairing(pair(runs, a, b, metric, on, pool), cluster)
    if not found.tasks:
        raise DataError(f"{found.first} and {found.second} have no task.")
    tests, reasons = _item_tests(found, on)
    notes = [*found.notes, *_left_out(found, tests), *reasons]
    these = _test_these_tasks(found, tests)
    table = _table(found, rope, tests, these)
    claims = set(table.loc[table["p"].notna(), "claim"])
    notes += [ON_ITEMS] * (AS_FITTED in claims) + [OVER_FITS] * (LEARNERS in claims)
    notes += unit_notes(
        {found.tasks[t].task: (e.clusters, e.items) for t, e in tests.items()}, cluster or ""
    )
    notes += [TWO_ALONE] * (found.models > 2)
    overall = _overall(table, rope, test, these)
    return Comparison(found.first, found.second, table, overall, rope, notes)


# -- task by task ---------------------------------------------------------------------------


def _table(
    found: Pairing, rope: float, by_items: dict[int, ItemTest], these: TheseTasks | None
) -> pd.DataFrame:
    tasks = found.tasks
    longest = max(1, *(len(p.first) for p in tasks))
    apart = np.full((len(tasks), longest), np.nan)
    for row, paired in zip(apart, tasks, strict=True):
        row[: len(paired.first)] = subtract(paired.first, paired.second)
    ratio = np.array([p.ratio for p in tasks])
    tested = corrected_t(apart, ratio, CONFIDENCE)
    # means over the shared folds; without any, over each model's own
    values = np.array([(p.first.mean(), p.second.mean()) if p.compared else p.own for p in tasks])
    relative = [is_ratio(p.metric, p.own) for p in tasks]
    unit = _units(values, relative, [p.higher for p in tasks])
    chances = correlated_t(apart / unit[:, None], ratio, rope)
    decided = _deciding_tests(tested, by_items)
    corrected, low, high = (
        _corrected(decided) if these is None else _of_these(these, found.compared, unit)
    )
    same = subtract(values[:, 0], values[:, 1]) == 0
    gain = np.where(same, 0.0, tested.mean / unit)
    better = np.where(gain > 0, found.first, found.second).astype(object)
    better[~(corrected < ALPHA) | (gain == 0)] = ""
    columns = (
        *([p.task for p in tasks], [p.metric for p in tasks], [p.higher for p in tasks]),
        *(values[:, 0], values[:, 1], tested.mean, low, high, decided["p"], corrected, better),
        *(decided[name] for name in ("test", "why", "p_folds", "folds", "p_items", "items")),
        *(decided["clusters"], decided["claim"]),
        *(gain, relative, chances.better, chances.equal, chances.worse),
        cohens_d(apart / unit[:, None]),
        *([p.held[0] for p in tasks], [p.held[1] for p in tasks]),
        *([p.states[0] for p in tasks], [p.states[1] for p in tasks]),
    )
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _units(values: np.ndarray, relative: Sequence[bool], higher: Sequence[bool]) -> np.ndarray:
    """Return the unit of each task's gain, negative if lower is better."""
    unit = np.where(relative, np.abs(values).mean(axis=1), 1.0)
    return np.where(unit > 0, unit, 1.0) * np.where(higher, 1, -1)


def _deciding_tests(tested: Corrected, by_items: Mapping[int, ItemTest]) -> pd.DataFrame:
    """Return p, interval and name of each task's test, and what it is about."""
    table = pd.DataFrame({"p": tested.p, "low": tested.low, "high": tested.high})
    table["freedom"] = tested.folds - 1.0
    over_folds = table["p"].notna()
    table["test"] = np.where(over_folds, CORRECTED, "")
    table["p_items"], table["items"], table["clusters"] = np.nan, 0, 0
    table["claim"] = np.where(over_folds, LEARNERS, "")
    for t, test in by_items.items():
        row = {name: getattr(test, name) for name in table if name not in ("p_items", "freedom")}
        row |= {"p_items": test.p, "freedom": test.difference.freedom}
        table.loc[t, list(row)] = list(row.values())
    table["p_folds"], table["folds"] = tested.p, tested.folds
    tests = zip(table["test"], tested.folds, strict=True)
    table["why"] = ["" if test else _why(folds) for test, folds in tests]
    return table


def _corrected(decided: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p of each task, corrected for all tasks (Holm), and intervals that agree with it.

    The intervals hold for all tasks together: those of Bonferroni, which contain 0 if and only if
    the corrected p is at least 0.05.
    """
    corrected = holm(decided["p"])
    low, high, freedom = (decided[name].to_numpy(float) for name in ("low", "high", "freedom"))
    statements = max(int(decided["p"].notna().sum()), 1)
    ends = [1 - (1 - CONFIDENCE) / 2 / number for number in (1, statements)]
    with np.errstate(invalid="ignore"):
        one, all_together = (scipy.special.stdtrit(freedom, end) for end in ends)
        middle, half = (low + high) / 2, (high - low) / 2 * (all_together / one)
    half = agreeing(middle, half, corrected)
    return corrected, middle - half, middle + half


def _of_these(
    these: TheseTasks, compared: Sequence[int], unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p and intervals of two to five tasks as the leaderboard has them; see ``_corrected``.

    ``compared`` are the places of these tasks, ``unit`` is that of each task's gain.
    """
    numbers = np.full((3, len(unit)), np.nan)
    numbers[:, compared] = [table[:, 0, 1] for table in (these.p_each, *these.bounds_each)]
    p, low, high = numbers
    ends = np.sort([low * unit, high * unit], axis=0)
    return p, ends[0], ends[1]


def _why(folds: int) -> str:
    return ONE_FOLD if folds == 1 else NO_SPREAD if folds else ""


def _item_tests(found: Pairing, on: str) -> tuple[dict[int, ItemTest], list[str]]:
    """Return the tests on stored predictions by task, and why there is none where one was asked.

    Without ``on="rows"``, only single folds are read if there are many.
    """
    tests, reasons = {}, []
    few = sum(len(paired.first) for paired in found.tasks) <= MAX_FOLDS
    for t, paired in enumerate(found.tasks):
        if not paired.compared or not (on == "rows" or few or len(paired.first) == 1):
            continue
        try:
            tests[t] = compare_predictions(paired, common=on != "folds")
        except (KaratError, ValueError, KeyError, TypeError) as error:
            if on == "rows":
                reason = str(error).rstrip(".")
                reasons.append(f"{paired.task}: not tested on its items, {reason}.")
    return tests, reasons


# -- over all tasks -------------------------------------------------------------------------


def _test_these_tasks(found: Pairing, by_items: Mapping[int, ItemTest]) -> TheseTasks | None:
    """Return what two to five tasks show, as the leaderboard has it; None with fewer or more."""
    compared = found.compared
    if not 1 < len(compared) < FEWEST:
        return None
    tests = [_task_separation(found.tasks[t], by_items.get(t)) for t in compared]
    names = [found.tasks[t].task for t in compared]
    takes = np.ones((2, len(compared)), dtype=bool)
    return these_tasks([found.first, found.second], names, takes, tests)


def _task_separation(paired: Paired, test: ItemTest | None) -> Separation:
    """Return the test that decides on a task as that of all pairs of two models."""
    if test is None:
        sign = 1 if paired.higher else -1
        scores = sign * np.array([paired.first, paired.second])
        return fold_separation(scores, paired.ratio, paired.metric)
    mean, sides = test.difference, np.array([[0.0, 1.0], [-1.0, 0.0]])
    return Separation(
        np.where(sides == 0, 1.0, test.p),
        test.test,
        claim=test.claim,
        difference=sides * mean.mean,
        error=np.abs(sides) * mean.error,
        freedom=np.full((2, 2), mean.freedom),
        step=mean.step,
    )


def _overall(table: pd.DataFrame, rope: float, test: str, these: TheseTasks | None) -> Overall:
    compared = table[table["folds"] > 0]
    gain = compared["gain"].to_numpy(dtype=float)
    differs, tested = compared["better"] != "", compared["p"].notna()
    ranks, chances, several = wilcoxon(gain), signed_rank(gain, rope), len(gain) > 1
    return Overall(
        tasks=len(compared),
        of=int(((table["first_folds"] > 0) | (table["second_folds"] > 0)).sum()),
        wins=int((gain > 0).sum()),
        ties=int((gain == 0).sum()),
        losses=int((gain < 0).sum()),
        better=int((differs & (gain > 0)).sum()),
        worse=int((differs & (gain < 0)).sum()),
        not_significant=int((tested & ~differs).sum()),
        untested=int((~tested).sum()),
        **(_mean_of_tasks(gain, test) if these is None else _mean_of_these(these)),
        within=float((np.abs(gain) <= rope + EQUAL).mean()) if len(gain) else np.nan,
        p_wilcoxon=float(ranks.p) if several else np.nan,
        p_better=float(chances.better) if several else np.nan,
        p_equal=float(chances.equal) if several else np.nan,
        p_worse=float(chances.worse) if several else np.nan,
        rank_biserial=float(ranks.effect) if several else np.nan,
        superiority=float(superiority(gain)) if several else np.nan,
        cohens_d=float(cohens_d(gain)),
    )


def _mean_of_tasks(gain: np.ndarray, test: str) -> dict[str, Any]:
    """Return the mean gain with its interval over tasks, and the test over tasks."""
    decided = separate(np.stack([gain, np.zeros(len(gain))]), test=test)
    low, high = gain_interval(gain)
    facts = {"gain": float(mean_of(gain)), "gain_low": low, "gain_high": high}
    return {**facts, "p": float(decided.p[0, 1]), "test": decided.test or TESTS[test]}


def _mean_of_these(these: TheseTasks) -> dict[str, Any]:
    """Return the mean gain of the first of two models over these tasks, and its test."""
    low, high = (float(end[0, 1]) for end in these.bounds)
    facts = {"gain": float(these.mean.gain[0, 1]), "gain_low": low, "gain_high": high}
    return {**facts, "p": float(these.p[0, 1]), "test": these.test}


def gain_interval(gain: np.ndarray) -> tuple[float, float]:
    """Return the t interval of the mean over tasks; NaN for fewer than two.

    >>> [round(end, 3) for end in gain_interval(np.array([0.01, 0.02, 0.03]))]
    [-0.005, 0.045]
    """
    if len(gain) < 2:
        return np.nan, np.nan
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    half = float(scipy.special.stdtrit(len(gain) - 1, (1 + CONFIDENCE) / 2) * error)
    return float(gain.mean()) - half, float(gain.mean()) + half


# -- what is left out ----------------------------------------------------------------------


def _left_out(found: Pairing, tests: dict[int, ItemTest]) -> Iterator[str]:
    """Yield which tasks were not compared or tested, which folds were left out, and why."""
    names = (found.first, found.second)
    tasks_of: dict[str, list[str]] = {}
    for t, paired in enumerate(found.tasks):
        if paired.states[0] == paired.states[1] != OK:
            reasons = [f"Not compared, both {paired.states[0]}"]
        else:
            states = zip(names, paired.states, strict=True)
            reasons = [f"Not compared, {name} {state}" for name, state in states if state != OK]
        folds = len(paired.first)
        if folds == 1 and t not in tests:
            reasons.append("Not tested, one fold and no stored predictions of both")
        for name, held in zip(names, paired.held[::-1], strict=True):
            if folds and held > folds:
                reasons.append(f"Left out, {name} has no score in {held - folds} of {held} folds")
        for reason in reasons:
            tasks_of.setdefault(reason, []).append(paired.task)
    yield from (f"{reason}: {', '.join(tasks)}." for reason, tasks in tasks_of.items())


# -- the conclusion and the text of a comparison --------------------------------------------

#: a Bayesian probability from here on counts as a conclusion
PROBABLE = 1 - ALPHA
#: with fewer tasks p stays above 0.05 even for a win on all: 2 / 2⁵ = 0.0625
FEWEST = 6
UNDECIDED = "no significant difference"


def _conclusion(found: Comparison) -> str:
    o, over = found.overall, f"over {found.overall.tasks} tasks"
    both = f"{found.first} and {found.second}"
    if not o.tasks:
        return f"{both} could not be compared on any task."
    if o.tasks == 1:
        return _conclusion_of_task(found, found.tasks[found.tasks["folds"] > 0].iloc[0])
    if o.tasks < FEWEST:
        return f"{_few_tasks(found)}. {OTHER_TASKS}"
    first, second, p_ahead = found.second, found.first, o.p_worse
    if (_lead(o) or o.rank_biserial) > 0:
        first, second, p_ahead = found.first, found.second, o.p_better
    beyond = f"by more than {found.rope:g} with probability {chance(p_ahead)}"
    p, significant = format_p(o.p), bool(o.p < ALPHA)
    if o.p_equal >= PROBABLE and 2 * o.within > 1:
        but = f", though {first} is significantly ahead (p {p})" if significant else ""
        within = f"within {found.rope:g} with probability {chance(o.p_equal)}"
        return f"{both} are practically equal {over}: {within}, {_inside(found)}{but}."
    if significant:
        result = f"{first} is better than {second} {over} ({o.test}, p {p}), {beyond}"
    elif p_ahead >= PROBABLE:
        apart = f"the difference of {both} {over} is not significant ({o.test}, p {p})"
        ahead = f"posterior probability {chance(p_ahead)} that {first} is ahead by more than"
        result = f"{apart[0].upper()}{apart[1:]}; {ahead} {found.rope:g}"
    else:
        tasks = f"; {_counts(found)}" if o.better + o.worse else ""
        apart = f"; {_inside(found)}" if o.p_equal >= PROBABLE else ""
        result = f"{both} do not differ significantly {over} ({o.test}, p {p}){apart}{tasks}"
    return f"{result}.{_contradiction(found)}"


def _lead(o: Overall) -> float:
    """Return the direction of the test over tasks: positive if the first model is ahead."""
    return o.wins - o.losses if o.test == TESTS["max-t"] else o.rank_biserial


def _inside(found: Comparison) -> str:
    """Return on how many tasks the two are within the margin."""
    o = found.overall
    return f"{round(o.within * o.tasks)} of {o.tasks} tasks differ by no more than {found.rope:g}"


def _contradiction(found: Comparison) -> str:
    """Return a sentence if one model wins more tasks and the mean gain favors the other."""
    o = found.overall
    if (o.wins - o.losses) * o.gain >= 0 or signed(o.gain) == signed(0.0):
        return ""
    ahead, mean = (found.first, found.second) if o.wins > o.losses else (found.second, found.first)
    most = max(o.wins, o.losses)
    return (
        f" {ahead} wins more tasks ({most} of {o.tasks}), but the mean gain favors {mean} "
        f"({signed(o.gain)} for {found.first})."
    )


def _conclusion_of_task(found: Comparison, row: pd.Series) -> str:
    both, tests = f"{found.first} and {found.second}", _tests_of(row)
    if row["why"]:
        values = f"{rounded(row['first'])} and {rounded(row['second'])}"
        return f"{both} were not tested on {row['task']}: {row['why']} ({row['metric']} {values})."
    where = row["task"] + f", {AS_FITTED}" * (row["claim"] == AS_FITTED)
    if not row["better"]:
        return f"{both} do not differ significantly on {where} ({tests})."
    worse = found.second if row["better"] == found.first else found.first
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


def _few_tasks(found: Comparison) -> str:
    """Return what two to five tasks show on average and on each of them."""
    if found.overall.untested == found.overall.tasks:
        return _counts(found)
    mean = _mean_of_few(found)
    compared = [row for _, row in found.tasks[found.tasks["folds"] > 0].iterrows()]
    words = {
        BETTER: f"{found.first} is better on",
        WORSE: f"{found.second} is better on",
        OPEN: "no difference shown on",
        EQUAL_SCORES: "equal scores on",
        UNTESTED: "not tested on",
    }
    parts = []
    for verdict, word in words.items():
        rows = [row for row in compared if _verdict_on_task(row, found.first) == verdict]
        if verdict == EQUAL_SCORES and len(rows) > 1:
            parts.append(f"{word} {len(rows)}")
        elif rows:
            parts.append(f"{word} {', '.join(_task_difference(row, verdict) for row in rows)}")
    return f"{mean}: {'; '.join(parts)}"


def _mean_of_few(found: Comparison) -> str:
    """Return what the mean over two to five tasks shows."""
    o, first, second = found.overall, found.first, found.second
    over = f"over these {o.tasks - o.untested} tasks"
    mean = f"{interval(o.gain, o.gain_low, o.gain_high)}, p {format_p(o.p)}"
    if not o.wins + o.losses:
        return f"{first} and {second} have equal scores {over.replace('over', 'on')}"
    if o.p < ALPHA:
        first, second = (first, second) if o.gain > 0 else (second, first)
        return f"{first} is better than {second} on average {over} ({mean})"
    if -found.rope <= o.gain_low and o.gain_high <= found.rope:
        within = f"are the same within {found.rope:g} on average {over}"
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


def _counts(found: Comparison) -> str:
    """Return on how many tasks which model is better; the one that leads is named first."""
    o, first, second = found.overall, found.first, found.second
    wins, losses = o.better, o.worse
    if o.untested == o.tasks:
        reasons = ", ".join(sorted({why for why in found.tasks["why"] if why}))
        return f"{first} and {second} were not tested on any of {o.tasks} tasks: {reasons}"
    if not wins + losses + o.untested:
        return f"{first} and {second} do not differ significantly on any of {o.tasks} tasks"
    if losses > wins:
        first, second, wins, losses = second, first, losses, wins
    counts = [f"{first} is significantly better than {second} on {wins} of {o.tasks} tasks"]
    counts += [f"worse on {losses}"] if losses else []
    counts += [f"{UNDECIDED} on {o.not_significant}"] if o.not_significant else []
    return ", ".join(counts + ([f"{o.untested} not tested"] if o.untested else []))


def task_table(found: Comparison) -> pd.DataFrame:
    """Return the tasks of a comparison as text; those without any score are left to the notes."""
    rows = found.tasks[found.tasks[["first", "second"]].notna().any(axis=1)]
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
            "difference": [interval(*each) for each in zip(*bounds, strict=True)],
            "p": rows["p_holm"].map(format_p),
            "better": np.where(rows["better"] == "", undecided, rows["better"]),
        }
    )


def _tests(o: Overall) -> str:
    """Return the p of the test over tasks, and of Wilcoxon's test if it is another."""
    if o.tasks < FEWEST:
        return f"{o.test}, p {format_p(o.p)}" if o.test else "not tested"
    other = f", Wilcoxon p {format_p(o.p_wilcoxon)}" if o.test == TESTS["max-t"] else ""
    return f"{o.test} p {format_p(o.p)}{other}"


def overall_lines(found: Comparison) -> list[str]:
    """Return the results over all tasks, line by line."""
    o = found.overall
    if not o.tasks:
        return []
    line = f"{o.tasks} of {o.of} tasks: {o.wins} won, {o.ties} tied, {o.losses} lost; "
    line += f"significantly better on {o.better}, worse on {o.worse}, "
    line += f"{UNDECIDED} on {o.not_significant}"
    lines = [line + (f", {o.untested} not tested" if o.untested else "")]
    if o.tasks > 1:
        tested = o.tasks - o.untested
        over = f" over these {count(tested, 'task')}" if 0 < tested and o.tasks < FEWEST else ""
        mean = f"{interval(o.gain, o.gain_low, o.gain_high)}{over}"
        lines += [
            f"mean gain {mean}; {_tests(o)}; {_inside(found)}",
            f"P(better) {chance(o.p_better)}, P(equal within {found.rope:g}) {chance(o.p_equal)}, "
            f"P(worse) {chance(o.p_worse)}",
            f"effect: rank-biserial {signed(o.rank_biserial)}, probability of superiority "
            f"{o.superiority:.3f}, Cohen's d {signed(o.cohens_d)}",
        ]
    return lines
