"""Is one model better than another? Tests of each task and of all tasks together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy

from karat.analysis import comparison_wording
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
from karat.analysis.pairing import Paired, Pairing, cluster_pairing, pair
from karat.analysis.these_tasks import (
    TheseTasks,
    these_tasks,
)
from karat.errors import DataError, KaratError
from karat.metrics.metric import is_ratio
from karat.output.result import Result
from karat.output.table import Table
from karat.results.clusters import unit_notes
from karat.results.load import OK
from karat.results.run import Run
from karat.stats.paired_tests import (
    ALPHA,
    CONFIDENCE,
    EQUAL,
    Chances,
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
from karat.stats.ranking import FEWEST_TASKS

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
#: columns of the test of a task
TEST_COLUMNS = ("test", "why", "p_folds", "folds", "p_items", "items", "clusters", "claim")
#: where there are other models as well
TWO_ALONE = (
    "p and intervals are those of these two models alone; karat leaderboard corrects for all pairs "
    "of the models."
)
OVER_FITS = "Tests over folds or seeds hold for the learners: they include the noise of training."


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


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
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

    csv_prefix: ClassVar[str] = "comparison"

    @property
    def sentence(self) -> str:
        """The conclusion in one sentence."""
        return comparison_wording.comparison_sentence(self)

    @property
    def details(self) -> list[str]:
        """The results over all tasks."""
        return comparison_wording.overall_sentences(self)

    def tables(self) -> list[Table]:
        """Return the tasks, with their values, difference and p."""
        return [comparison_wording.comparison_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tasks, and the results over all tasks."""
        overall = pd.DataFrame([{"first": self.first, "second": self.second, **vars(self.overall)}])
        return {"tasks": self.tasks, "overall": overall.assign(rope=self.rope)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: names, conclusion, tasks, overall, notes."""
        return {**super().to_dict(), "verdict": self.sentence}


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
    pairing = cluster_pairing(pair(runs, a, b, metric, on, pool), cluster)
    if not pairing.tasks:
        raise DataError(f"{pairing.first} and {pairing.second} have no task.")
    tests, reasons = _item_tests(pairing, on)
    notes = [*pairing.notes, *_left_out(pairing, tests), *reasons]
    these = _test_these_tasks(pairing, tests)
    table = _table(pairing, rope, tests, these)
    claims = set(table.loc[table["p"].notna(), "claim"])
    notes += [ON_ITEMS] * (AS_FITTED in claims) + [OVER_FITS] * (LEARNERS in claims)
    notes += unit_notes(
        {pairing.tasks[t].task: (e.clusters, e.items) for t, e in tests.items()}, cluster or ""
    )
    notes += [TWO_ALONE] * (pairing.models > 2)
    overall = _overall(table, rope, test, these)
    return Comparison(pairing.first, pairing.second, table, overall, rope, notes)


# -- task by task ---------------------------------------------------------------------------


def _table(
    pairing: Pairing, rope: float, by_items: dict[int, ItemTest], these: TheseTasks | None
) -> pd.DataFrame:
    tasks = pairing.tasks
    differences = _fold_differences(tasks)
    ratio = np.array([paired.ratio for paired in tasks])
    tested = corrected_t(differences, ratio, CONFIDENCE)
    # means over the shared folds; without any, over each model's own
    values = np.array([(p.first.mean(), p.second.mean()) if p.compared else p.own for p in tasks])
    relative = [is_ratio(paired.metric, paired.own) for paired in tasks]
    unit = _units(values, relative, [paired.higher for paired in tasks])
    decided = _deciding_tests(tested, by_items)
    corrected, low, high = (
        _corrected(decided) if these is None else _of_these(these, pairing.compared, unit)
    )
    same = subtract(values[:, 0], values[:, 1]) == 0
    gain = np.where(same, 0.0, tested.mean / unit)
    better = np.where(gain > 0, pairing.first, pairing.second).astype(object)
    better[~(corrected < ALPHA) | (gain == 0)] = ""
    bounds = {"difference": tested.mean, "difference_low": low, "difference_high": high}
    columns = {
        **_described(tasks),
        **{"first": values[:, 0], "second": values[:, 1], **bounds},
        **{"p": decided["p"], "p_holm": corrected, "better": better},
        **{name: decided[name] for name in TEST_COLUMNS},
        **{"gain": gain, "relative": relative},
        **_chances(correlated_t(differences / unit[:, None], ratio, rope)),
        "effect": cohens_d(differences / unit[:, None]),
        **_folds_and_states(tasks),
    }
    return pd.DataFrame(columns)


def _fold_differences(tasks: Sequence[Paired]) -> np.ndarray:
    """Return tasks × folds, the first minus the second; NaN after the last fold of a task."""
    longest = max(1, *(len(paired.first) for paired in tasks))
    differences = np.full((len(tasks), longest), np.nan)
    for row, paired in zip(differences, tasks, strict=True):
        row[: len(paired.first)] = subtract(paired.first, paired.second)
    return differences


def _described(tasks: Sequence[Paired]) -> dict[str, list[object]]:
    names = {"task": "task", "metric": "metric", "higher_is_better": "higher"}
    return {name: [getattr(p, field) for p in tasks] for name, field in names.items()}


def _chances(chances: Chances) -> dict[str, np.ndarray]:
    return {"p_better": chances.better, "p_equal": chances.equal, "p_worse": chances.worse}


def _folds_and_states(tasks: Sequence[Paired]) -> dict[str, list[object]]:
    """Return the number of folds and the state of each model."""
    ends = {"folds": "held", "status": "states"}
    return {
        f"{side}_{name}": [getattr(paired, field)[at] for paired in tasks]
        for name, field in ends.items()
        for at, side in enumerate(("first", "second"))
    }


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


def _item_tests(pairing: Pairing, on: str) -> tuple[dict[int, ItemTest], list[str]]:
    """Return the tests on stored predictions by task, and why there is none where one was asked.

    Without ``on="rows"``, only single folds are read if there are many.
    """
    tests, reasons = {}, []
    few = sum(len(paired.first) for paired in pairing.tasks) <= MAX_FOLDS
    for t, paired in enumerate(pairing.tasks):
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


def _test_these_tasks(pairing: Pairing, by_items: Mapping[int, ItemTest]) -> TheseTasks | None:
    """Return what two to five tasks show, as the leaderboard has it; None with fewer or more."""
    compared = pairing.compared
    if not 1 < len(compared) < FEWEST_TASKS:
        return None
    tests = [_task_separation(pairing.tasks[t], by_items.get(t)) for t in compared]
    names = [pairing.tasks[t].task for t in compared]
    takes = np.ones((2, len(compared)), dtype=bool)
    return these_tasks([pairing.first, pairing.second], names, takes, tests)


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


def _left_out(pairing: Pairing, tests: dict[int, ItemTest]) -> Iterator[str]:
    """Yield which tasks were not compared or tested, which folds were left out, and why."""
    names = (pairing.first, pairing.second)
    tasks_of: dict[str, list[str]] = {}
    for t, paired in enumerate(pairing.tasks):
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
