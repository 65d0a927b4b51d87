"""Verdict: is one model better than another? Paired by task and fold, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, DefinitionError, KaratError
from karat.results.answers import Asked, ask_answers
from karat.results.bayes import check_rope, correlated_t, signed_rank
from karat.results.cells import OK
from karat.results.effects import cohens_d, superiority
from karat.results.files import write_atomic
from karat.results.pairing import Paired, Pairing, pair
from karat.results.significance import (
    ALPHA,
    CONFIDENCE,
    EQUAL,
    corrected_t,
    holm,
    subtract,
    wilcoxon,
)
from karat.results.unit import is_ratio
from karat.results.worded import Words, repr_html, repr_text

#: differences up to this size count as none in practice, unless it is said otherwise
ROPE = 0.01
#: resamples of tasks for the interval of the mean gain, and the seed that makes them repeatable
RESAMPLES = 10_000
SEED = 0
CORRECTED = "corrected t"
COLUMNS = (
    *("task", "metric", "higher_is_better", "first", "second"),
    *("difference", "difference_low", "difference_high", "p", "p_holm", "better", "test", "folds"),
    *("gain", "relative", "p_better", "p_equal", "p_worse", "effect"),
    *("first_folds", "second_folds", "first_status", "second_status"),
)


@dataclass(frozen=True)
class Overall:
    """Two models over all tasks on which they could be compared.

    Attributes
    ----------
    tasks, of
        How many tasks were compared, of how many that either has a score of.
    wins, ties, losses
        On how many the first has the better value, the same, the worse.
    better, worse, untold, untested
        On how many the first is told to be better or worse (corrected p below 0.05), on how many
        they cannot be told apart, and on how many the folds allow no test.
    gain, gain_low, gain_high
        Mean gain of the first over tasks, and its 95 % interval by resampling tasks.
    p
        Wilcoxon's signed-rank test of the gains.
    p_better, p_equal, p_worse
        Bayesian signed-rank test: better by more than the ROPE, within it, worse.
    rank_biserial, superiority, cohens_d
        Effect sizes: the ranks' balance (-1 to 1), the share of tasks won (ties count half), the
        mean gain by its spread over tasks.
    """

    tasks: int
    of: int
    wins: int
    ties: int
    losses: int
    better: int
    worse: int
    untold: int
    untested: int
    gain: float
    gain_low: float
    gain_high: float
    p: float
    p_better: float
    p_equal: float
    p_worse: float
    rank_biserial: float
    superiority: float
    cohens_d: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """Two models beside each other.

    Attributes
    ----------
    first, second
        The models' names.
    tasks
        One row per task: both values (means over the folds that both have), the ``difference`` of
        the first less the second with its 95 % interval, ``p`` and ``p_holm`` (corrected over
        tasks), ``better`` (a model's name, or empty if they cannot be told apart), which ``test``
        says so, the ``gain`` of the first (positive is better; a share of both values' mean where
        ``relative``), the chances by the Bayesian test, Cohen's d over folds, and both states.
    overall
        The same over all tasks.
    rope
        The region of practical equivalence, in units of the gain.
    notes
        What a reader must know: what was left out and why.
    """

    first: str
    second: str
    tasks: pd.DataFrame
    overall: Overall
    rope: float = ROPE
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        return Words(self.first, self.second, self.rope).verdict(self.tasks, self.overall)

    def regressions(self, tolerance: float) -> pd.DataFrame:
        """Return the tasks on which the first is worse than the second by more than a tolerance.

        ``loss`` is the difference in the metric's own units; of metrics that begin at 0 and have no
        upper bound, such as rmse, it is a share of the second's value. A task or fold of which the
        second has a score and the first has none is one too; ``why`` tells.
        """
        if not (np.isfinite(tolerance) and tolerance >= 0):
            raise DefinitionError(f"a tolerance is 0 or more, such as 0.01, not {tolerance!r}.")
        found = [(row, *_regression(row, tolerance)) for _, row in self.tasks.iterrows()]
        kept = [
            (row["task"], row["metric"], row["first"], row["second"], loss, why)
            for row, loss, why in found
            if why
        ]
        return pd.DataFrame(kept, columns=["task", "metric", "first", "second", "loss", "why"])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values: names, the sentence, tasks, overall, notes."""
        rows = self.tasks.astype(object).where(self.tasks.notna(), None).to_dict(orient="records")
        facts = {k: None if v != v else v for k, v in vars(self.overall).items()}
        names = {"first": self.first, "second": self.second, "verdict": self.sentence}
        return {**names, "rope": self.rope, "tasks": rows, "overall": facts, "notes": self.notes}

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``verdict_tasks.csv`` and ``verdict_overall.csv``, and return the files."""
        overall = pd.DataFrame([{"first": self.first, "second": self.second, **vars(self.overall)}])
        tables = {"tasks": self.tasks, "overall": overall.assign(rope=self.rope)}
        paths = {name: Path(folder) / f"verdict_{name}.csv" for name in tables}
        for name, table in tables.items():
            write_atomic(paths[name], table.to_csv(index=False, lineterminator="\n"))
        return list(paths.values())

    def __repr__(self) -> str:
        return repr_text(self)

    def _repr_html_(self) -> str:
        return repr_html(self)


def verdict(
    runs: Any,
    first: Any,
    second: Any,
    *,
    metric: str | None = None,
    rope: float = ROPE,
    on: str = "folds",
) -> Verdict:
    """Return whether the first model is better than the second, task by task and over all.

    Only folds that both have are compared: of runs with the same seed on the same data. What is
    left out, and why, stands in ``notes``.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of them, in which the models are found.
    first, second
        Names of models, runs, or run folders; among runs a text is a name, a ``Path`` a folder.
    metric
        One metric instead of each task's first.
    rope
        Gains up to this size count as none in practice.
    on
        ``"folds"``: the scores of the folds. ``"common"``: scores of the questions that both know,
        computed again. ``"rows"``: the same, and each task is tested on its stored predictions,
        with McNemar's test or a paired bootstrap.
    """
    check_rope(rope)
    found = pair(runs, first, second, metric, on)
    if not found.tasks:
        raise DataError(f"{found.first} and {found.second} have no task.")
    notes = [*found.notes, *_left_out(found)]
    asked = _asked(found, notes) if on == "rows" else {}
    table = _table(found, rope, asked)
    return Verdict(found.first, found.second, table, _overall(table, rope), rope, notes)


# -- task by task ---------------------------------------------------------------------------


def _table(found: Pairing, rope: float, asked: dict[int, Asked]) -> pd.DataFrame:
    tasks = found.tasks
    apart = _padded([subtract(p.first, p.second) for p in tasks])
    ratio = np.array([p.ratio for p in tasks])
    tested = corrected_t(apart, ratio, CONFIDENCE)
    values = np.array([_values(p) for p in tasks])
    relative = [is_ratio(p.metric, p.own) for p in tasks]
    unit = np.where(relative, np.abs(values).mean(axis=1), 1.0)
    unit = np.where(unit > 0, unit, 1.0) * np.array([1 if p.higher else -1 for p in tasks])
    chances = correlated_t(apart / unit[:, None], ratio, rope)
    p, low, high = tested.p.copy(), tested.low.copy(), tested.high.copy()
    names = [CORRECTED if not np.isnan(each) else "" for each in p]
    for t, each in asked.items():
        names[t], p[t], low[t], high[t] = each.test, each.p, each.low, each.high
    corrected = holm(p)
    same = subtract(values[:, 0], values[:, 1]) == 0
    gain = np.where(same, 0.0, tested.mean / unit)
    first, second = np.array([found.first, found.second], dtype=object)
    better = np.where(gain > 0, first, second)
    better[~(corrected < ALPHA) | (gain == 0)] = ""
    columns = (
        *([p.task for p in tasks], [p.metric for p in tasks], [p.higher for p in tasks]),
        *(values[:, 0], values[:, 1], tested.mean, low, high, p, corrected, better, names),
        *(tested.folds, gain, relative, chances.better, chances.equal, chances.worse),
        cohens_d(apart / unit[:, None]),
        *([p.held[0] for p in tasks], [p.held[1] for p in tasks]),
        *([p.states[0] for p in tasks], [p.states[1] for p in tasks]),
    )
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _values(paired: Paired) -> tuple[float, float]:
    """Return the means over the folds that both have, or else what each has by itself."""
    if paired.compared:
        return float(paired.first.mean()), float(paired.second.mean())
    return paired.own


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    table = np.full((len(rows), max([1, *map(len, rows)])), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def _asked(found: Pairing, notes: list[str]) -> dict[int, Asked]:
    """Return what the stored answers say of each task; where they say nothing, a note says why."""
    asked = {}
    for t, paired in enumerate(found.tasks):
        if paired.compared:
            try:
                asked[t] = ask_answers(paired)
            except KaratError as error:
                notes.append(f"{paired.task}: not tested on its rows, {str(error).rstrip('.')}.")
    return asked


# -- over all tasks -------------------------------------------------------------------------


def _overall(table: pd.DataFrame, rope: float) -> Overall:
    compared = table[table["folds"] > 0]
    gain = compared["gain"].to_numpy(dtype=float)
    told, tested = compared["better"] != "", compared["p"].notna()
    low, high = _interval(gain)
    ranks, chances = wilcoxon(gain), signed_rank(gain, rope)
    return Overall(
        tasks=len(compared),
        of=int(((table["first_folds"] > 0) | (table["second_folds"] > 0)).sum()),
        wins=int((gain > 0).sum()),
        ties=int((gain == 0).sum()),
        losses=int((gain < 0).sum()),
        better=int((told & (gain > 0)).sum()),
        worse=int((told & (gain < 0)).sum()),
        untold=int((tested & ~told).sum()),
        untested=int((~tested).sum()),
        gain=float(gain.mean()) if len(gain) else np.nan,
        gain_low=low,
        gain_high=high,
        p=float(ranks.p),
        p_better=float(chances.better),
        p_equal=float(chances.equal),
        p_worse=float(chances.worse),
        rank_biserial=float(ranks.effect),
        superiority=float(superiority(gain)),
        cohens_d=float(cohens_d(gain)),
    )


def _interval(gain: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval of the mean over resampled tasks; none of fewer than two."""
    if len(gain) < 2:
        return np.nan, np.nan
    rng = np.random.default_rng([SEED, len(gain)])
    # by size, so that neither the order of tasks nor that of the models changes what is drawn
    ranked = gain[np.argsort(np.abs(gain), kind="stable")]
    means = ranked[rng.integers(len(gain), size=(RESAMPLES, len(gain)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


# -- what is left out, and what got worse ---------------------------------------------------


def _left_out(found: Pairing) -> Iterator[str]:
    """Yield which tasks were not compared or not tested, which folds do not count, and why."""
    names = (found.first, found.second)
    said: dict[str, list[str]] = {}
    for paired in found.tasks:
        one, other = paired.states
        if one == other != OK:
            said.setdefault(f"Not compared, both {one}", []).append(paired.task)
        else:
            for name, state in zip(names, paired.states, strict=True):
                if state != OK:
                    said.setdefault(f"Not compared, {name} {state}", []).append(paired.task)
        many = len(paired.first)
        if many == 1 and max(paired.held) == 1:
            why = 'One fold, so no test over folds (--rows or on="rows" tests the answers)'
            said.setdefault(why, []).append(paired.task)
        for name, whole in zip(names, paired.held[::-1], strict=True):
            if many and whole > many:
                lost = f"Left out, {name} has no score in {whole - many} of {whole} folds"
                said.setdefault(lost, []).append(paired.task)
    yield from (f"{why}: {', '.join(tasks)}." for why, tasks in said.items())


def _regression(row: pd.Series, tolerance: float) -> tuple[float, str]:
    """Return by how much a task got worse, and why that is a regression, if it is one."""
    if not row["second_folds"]:
        return np.nan, ""
    if not row["folds"]:
        state = row["first_status"] if row["first_status"] != OK else row["second_status"]
        return np.nan, f"no score to compare: {state}"
    loss = row["difference"] * (-1 if row["higher_is_better"] else 1)
    if row["relative"]:
        loss = loss / abs(row["second"]) if row["second"] else np.sign(loss) * np.inf
    if loss > tolerance + EQUAL:
        share = " of its value" if row["relative"] else ""
        return loss, f"worse by {loss:.4g}{share}"
    if row["folds"] < row["second_folds"]:
        lost = row["second_folds"] - row["folds"]
        return loss, f"no score in {lost} of {row['second_folds']} folds"
    return loss, ""
