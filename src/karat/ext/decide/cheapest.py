"""The cheapest model that is not worse than a reference by more than a margin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis.comparison import NO_SPREAD, ON_ITEMS, ONE_FOLD, OVER_FITS
from karat.analysis.pairing import Paired, Pairing, pair_with
from karat.core.metric_names import recorded_metric
from karat.errors import DataError, DefinitionError
from karat.ext.decide import cheapest_wording
from karat.ext.decide.cheapest_wording import (
    BETTER,
    EQUIVALENT,
    NOT_WORSE,
    UNDECIDED,
    VERDICTS,
    WORSE,
)
from karat.ext.decide.costs import COSTS, ModelCosts
from karat.ext.decide.power import ON_ITEM, OVER_TASKS, pool_tasks, task_difference
from karat.metrics.metric import is_ratio
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import (
    FAILED,
    OK,
    Gathered,
    choose_metric,
    frozen_runs,
    gather_scores,
    make_cells,
)
from karat.results.run import Run
from karat.results.selection import unknown_model
from karat.stats.paired_tests import ALPHA, MeanDifference, holm
from karat.stats.ranking import FEWEST_TASKS

MARGIN = 0.01
EXIT_CODES = {"found": 0, "none": 1, "undecided": 3}
#: what the table has instead of a verdict
REFERENCE, NOT_CHEAPER, NO_COST, NO_TASK = (
    "reference",
    "not cheaper",
    "no cost recorded",
    "no common task",
)
#: verdicts with which a cheaper model can replace the reference
ACCEPTED = (EQUIVALENT, BETTER, NOT_WORSE)
COLUMNS = (
    "model",
    "base",
    "cost",
    "relative_cost",
    "score",
    "tasks",
    "difference",
    "difference_low",
    "difference_high",
    "p_not_worse",
    "p_equivalent",
    "p_different",
    "verdict",
    "test",
    "why",
)
#: a model is cheaper if its cost is at most this share of the reference's
CHEAPER = 0.99


# -- differences ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Against:
    """A model against the reference: the tasks compared, the mean difference, and the test.

    ``why`` says why there is no test, or why the model cannot be accepted.
    """

    tasks: list[Paired]
    found: MeanDifference | None
    test: str = ""
    why: str = ""

    @property
    def score(self) -> float:
        return _mean_score([(p, p.first) for p in self.tasks])


def _mean_score(values: Sequence[tuple[Paired, np.ndarray]]) -> float:
    """Return the mean over tasks of scores in their own units; NaN if there are none."""
    means = [
        float(v.mean()) for p, v in values if len(values) == 1 or not is_ratio(p.metric, p.own)
    ]
    return float(np.mean(means)) if means else math.nan


def _against(pairing: Pairing) -> _Against:
    tasks = [paired for paired in pairing.tasks if paired.compared]
    if not tasks:
        return _Against([], None, why=NO_TASK)
    without_score = [p.task for p in pairing.tasks if p.states[0] == FAILED and p.states[1] == OK]
    without_score += [p.task for p in tasks if p.held[0] < p.held[1]]
    why = f"no score in some folds of {', '.join(without_score)}" if without_score else ""
    differences = [task_difference(paired, by_items=len(tasks) < FEWEST_TASKS) for paired in tasks]
    pooled = pool_tasks([gain for gain, _ in differences])
    if len(tasks) >= FEWEST_TASKS:
        return _Against(tasks, pooled, OVER_TASKS, why)
    tests = {paired.task: test for paired, (_, test) in zip(tasks, differences, strict=True)}
    untested = [f"{t} of {task}" for task, t in tests.items() if t in (ONE_FOLD, NO_SPREAD)]
    if untested:
        return _Against(tasks, pooled, "", ", ".join(untested))
    return _Against(tasks, pooled, ", ".join(sorted({*tests.values()})), why)


# -- the reference --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reference:
    """The model that the others are compared with: the best of ``of`` models, or a given one."""

    model: str
    about: str
    of: int = 1


def _bases(gathered: Gathered) -> dict[str, str]:
    """Return the base of each variant whose base is among the models, by their labels."""
    names: dict[str, str] = {}
    for run, label, _ in gathered.sources:
        names.setdefault(run.model, label)
    labels = ((label, names.get(run.about.get("base") or "")) for run, label, _ in gathered.sources)
    return {label: base for label, base in labels if base and base != label}


def _find_reference(
    gathered: Gathered, costs: ModelCosts, reference: str | None, metrics: dict[str, str]
) -> _Reference:
    with_cost = [name for name in gathered.models if not math.isnan(costs.of(name))]
    if reference is not None:
        if reference not in gathered.models:
            raise DefinitionError(unknown_model(reference, gathered.models, "the runs have"))
        if reference not in with_cost:
            raise DataError(
                f'no {costs.name} is recorded of the reference "{reference}"; '
                f"name another with --reference. {_with_cost(with_cost)}"
            )
        return _Reference(reference, "as requested")
    if len(with_cost) < 2:
        raise DataError(
            f"at least two models with a recorded {costs.name} are needed. {_with_cost(with_cost)} "
            f"Other costs: {', '.join(name for name in COSTS if name != costs.name)}."
        )
    bases = _bases(gathered)
    free = [name for name in with_cost if bases.get(name) not in with_cost]
    if len(free) == 1:
        return _Reference(free[0], "the base of all others")
    means = _mean_scores(gathered, free, metrics)
    best = free[int(np.argmax(means))]
    what = "models" if len(free) == len(with_cost) else "models that are no variants"
    return _Reference(best, f"the best mean score of {len(free)} {what}", len(free))


def _with_cost(names: Sequence[str]) -> str:
    return f"It is recorded of: {', '.join(names)}." if names else "No model has it."


def _mean_scores(gathered: Gathered, models: list[str], metrics: dict[str, str]) -> np.ndarray:
    """Return mean scores over the tasks that all have, higher is better, in comparable units."""
    cells = make_cells(gathered, metrics)
    means = cells.means[[cells.models.index(name) for name in models]]
    common = np.flatnonzero(~np.isnan(means).any(axis=0))
    if not len(common):
        raise DataError(
            f"no task has a score of all of {', '.join(models)}; "
            "name the model to compare with: --reference MODEL."
        )
    names = list(metrics.values())
    units = [np.abs(means[:, t]).mean() if is_ratio(names[t], means[:, t]) else 1 for t in common]
    signs = np.where([cells.higher[t] for t in common], 1, -1)
    return np.asarray((means[:, common] / np.where(units, units, 1) * signs).mean(axis=1))


# -- the answer -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Cheapest(Result):
    """The cheapest model that is not worse than a reference by more than a margin.

    Attributes
    ----------
    reference, about_reference
        The model that the others are compared with, and why this one.
    model
        The cheapest model that was shown to be not worse by more than the margin; None if no
        cheaper one was.
    outcome
        ``"found"``, ``"none"`` (the reference is the cheapest) or ``"undecided"``.
    cost, margin
        What was compared, and the margin.
    models
        One row per model, the cheapest first: ``cost`` and ``relative_cost`` (1 is the reference)
        on the common tasks, mean ``score``, number of ``tasks``, mean ``difference`` to the
        reference with its 95 % interval, p of three tests, corrected after Holm for all cheaper
        models, the ``verdict``, the ``test``, and ``why`` there is none.
    notes
        What was left out and why.
    """

    reference: str
    about_reference: str
    cost: str
    margin: float
    models: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "cheapest"
    frames: ClassVar[tuple[str, ...]] = ("models",)
    computed: ClassVar[tuple[str, ...]] = ("model", "outcome")

    @property
    def cheaper_models(self) -> pd.DataFrame:
        """The rows of the models that cost less than the reference."""
        return self.models[self.models["verdict"].isin(VERDICTS)]

    @property
    def model(self) -> str | None:
        """The cheapest model that can replace the reference, or None."""
        accepted = self.cheaper_models[self.cheaper_models["verdict"].isin(ACCEPTED)]
        best = accepted.sort_values(["relative_cost", "difference"], ascending=[True, False])
        return str(best["model"].iloc[0]) if len(best) else None

    @property
    def outcome(self) -> str:
        """``"found"``, ``"none"`` or ``"undecided"``."""
        if self.model is not None:
            return "found"
        return "undecided" if (self.cheaper_models["verdict"] == UNDECIDED).any() else "none"

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return cheapest_wording.cheapest_sentence(self)

    @property
    def exit_code(self) -> int:
        """The exit code of ``karat cheapest``: 0 found, 1 none, 3 undecided."""
        return EXIT_CODES[self.outcome]

    def tables(self) -> list[Table]:
        """Return the models, the cheapest first."""
        return [cheapest_wording.cheapest_table(self)]


def cheapest(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    cost: str | Mapping[str, float] = "bytes",
    margin: float = MARGIN,
    reference: str | None = None,
    *,
    metric: str | None = None,
    pool: str = "variant",
    cluster: str | None = None,
) -> Cheapest:
    """Find the cheapest model that is not worse than a reference by more than a margin.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    cost
        ``"price"``, ``"seconds"`` (to encode and predict one item), ``"bytes"`` (of a stored
        vector) or ``"dimensions"``, as recorded by the runs; or a mapping of models to their costs.
    margin
        The largest loss that is acceptable, on the scale of the metric; for metrics that start at
        0 and have no upper bound, such as rmse, relative to the mean of both values.
    reference
        Model to compare with. Default: the one with the best mean score among those that are not
        variants of another; of the variants of one encoder, this encoder.
    metric
        Compare on this metric only. Default: each task's primary metric.
    pool
        Which runs are one model, as in ``leaderboard``.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and tests on items treat these clusters as the unit. Default: the declared groups.

    Returns
    -------
    Cheapest
        The answer, a table of all models, and notes.

    Raises
    ------
    DataError
        If fewer than two models have this cost, or no model has a task of the reference.
    DefinitionError
        If the cost, the margin, the reference or the metric is invalid.

    Examples
    --------
    >>> found = karat.cheapest("results", cost="bytes", margin=0.01)  # doctest: +SKIP
    >>> found.model, found.sentence  # doctest: +SKIP
    """
    if not (isinstance(margin, int | float) and 0 < margin < math.inf):
        raise DefinitionError(f"margin must be a number > 0, such as 0.01, got {margin!r}.")
    read_runs = runs if isinstance(runs, pd.DataFrame) else frozen_runs(runs)
    return ModelDifferences(read_runs, metric, pool, cluster=cluster).cheapest(
        cost, margin, reference
    )


class ModelDifferences:
    """The differences of models to references; those to one reference are computed once.

    ``models`` are those to compare. Default: all models of the runs. ``cluster`` is a column of
    items that belong together.
    """

    def __init__(
        self,
        runs: Any,
        metric: str | None = None,
        pool: str = "variant",
        models: Iterable[str] | None = None,
        cluster: str | None = None,
    ) -> None:
        self.runs, self.metric, self.pool, self.cluster = runs, metric, pool, cluster
        gathered = gather_scores(runs, pool)
        self.given = gathered if models is None else gathered.of_models(models)
        self._known: dict[str, dict[str, _Against]] = {}
        self._notes: dict[str, list[str]] = {}

    def cheapest(
        self, cost: str | Mapping[str, float], margin: float, reference: str | None = None
    ) -> Cheapest:
        """Return the cheapest model that is not worse by more than the margin."""
        gathered, metrics = self.given, self._metrics()
        if len(gathered.models) < 2:
            raise DataError(f"at least two models are needed, got {len(gathered.models)}.")
        costs = ModelCosts(gathered, cost)
        chosen = _find_reference(gathered, costs, reference, metrics)
        against = self._against(chosen.model)
        if not any(difference.tasks for difference in against.values()):
            raise DataError(f'no model has a task in common with the reference "{chosen.model}".')
        table = _table(against, chosen, costs, margin)
        table.insert(1, "base", table["model"].map(lambda name: _bases(gathered).get(name, name)))
        notes = [*_legend(costs, chosen, against, margin), *self._notes[chosen.model]]
        notes += _left_out(against, table)
        return Cheapest(chosen.model, chosen.about, costs.name, float(margin), table, notes)

    def _metrics(self) -> dict[str, str]:
        if self.metric is None:
            return self.given.chosen({})
        scores = self.given.scores
        metric = recorded_metric(self.metric, scores["metric"])
        tasks = dict.fromkeys(scores.loc[scores["metric"] == metric, "task"])
        return choose_metric(metric, tasks, scores["metric"])

    def _against(self, reference: str) -> dict[str, _Against]:
        if reference not in self._known:
            others = [name for name in self.given.models if name != reference]
            which = (self.metric, self.pool, self.cluster)
            pairs = pair_with(self.runs, reference, others, *which)
            self._known[reference] = {name: _against(pairing) for name, pairing in pairs.items()}
            notes = (note for pairing in pairs.values() for note in pairing.notes)
            self._notes[reference] = list(dict.fromkeys(notes))
        return self._known[reference]


def _table(
    against: dict[str, _Against], reference: _Reference, costs: ModelCosts, margin: float
) -> pd.DataFrame:
    """Return the rows of all models, the cheapest first; those without a cost last."""
    most = max(against.values(), key=lambda compared: len(compared.tasks)).tasks
    lines = [_row(name, compared, reference.model, costs) for name, compared in against.items()]
    reference_row = {
        "model": reference.model,
        "cost": costs.of(reference.model, [p.task for p in most]),
    }
    reference_row |= {"relative_cost": 1.0, "score": _mean_score([(p, p.second) for p in most])}
    lines.append({**reference_row, "tasks": len(most), "verdict": REFERENCE})
    columns = [name for name in COLUMNS if name != "base"]
    for line in lines:  # means over other tasks are not comparable
        line["score"] = line["score"] if line["tasks"] == len(most) else math.nan
    table = pd.DataFrame(lines, columns=columns)
    rows = table.index[table["verdict"] == UNDECIDED]
    cheaper = [against[name] for name in table["model"][rows]]
    verdicts = judge([a.found if a.test else None for a in cheaper], margin, reference.of)
    has_reason = np.array([bool(a.why) for a in cheaper], dtype=bool)
    verdicts.loc[has_reason & verdicts["verdict"].isin(ACCEPTED), "verdict"] = UNDECIDED
    table.loc[rows, verdicts.columns] = verdicts.to_numpy()
    texts = {name: table[name].fillna("") for name in ("test", "why")}
    ordered = table.assign(**texts).sort_values("relative_cost", kind="stable", na_position="last")
    return ordered.reset_index(drop=True)


def _row(name: str, compared: _Against, reference: str, costs: ModelCosts) -> dict[str, Any]:
    tasks = [paired.task for paired in compared.tasks]
    model_cost, other = costs.of(name, tasks or None), costs.of(reference, tasks)
    relative = (
        model_cost / other if other else (math.inf if model_cost else model_cost and math.nan)
    )
    relative = 1.0 if model_cost == other else relative
    low, high = compared.found.interval() if compared.found is not None else (math.nan, math.nan)
    verdict = UNDECIDED
    if not tasks:
        verdict, relative = NO_TASK, math.nan
    elif math.isnan(model_cost):
        verdict = NO_COST
    elif not relative <= CHEAPER:
        verdict = NOT_CHEAPER
    return {
        **{"model": name, "cost": model_cost, "relative_cost": relative, "verdict": verdict},
        **{"score": compared.score, "tasks": len(tasks)},
        "difference": compared.found.mean if compared.found is not None else math.nan,
        **{
            "difference_low": low,
            "difference_high": high,
            "test": compared.test,
            "why": compared.why,
        },
    }


def judge(
    differences: Sequence[MeanDifference | None], margin: float, chosen_of: int = 1
) -> pd.DataFrame:
    """Return p and the verdict of each cheaper model; None was not tested.

    p is corrected after Holm. A model is accepted if the test that it is worse by the margin or
    more is rejected, so that the share of answers with a false one is at most 5 %. ``chosen_of`` is
    the number of models of which the reference has the best score: it may lead by luck.
    """
    tested = [difference is not None for difference in differences]
    tested_differences = [difference for difference in differences if difference is not None]
    lower = np.array([difference.p_above(-margin) for difference in tested_differences])
    upper = np.array([difference.p_below(margin) for difference in tested_differences])
    sides = np.array(
        [
            2 * min(difference.p_above(0.0), difference.p_below(0.0))
            for difference in tested_differences
        ]
    )
    # the differences of the best of k models are some of those of all pairs
    p_different = np.minimum(holm(sides) * max(chosen_of / 2, 1), 1.0)
    p = {"p_not_worse": holm(lower), "p_equivalent": holm(np.maximum(lower, upper))}
    table = pd.DataFrame({**p, "p_different": p_different}, dtype=float)
    means = np.array([difference.mean for difference in tested_differences])
    accepted, differs = table["p_not_worse"] < ALPHA, table["p_different"] < ALPHA
    table["verdict"] = np.select(
        [table["p_equivalent"] < ALPHA, accepted & differs & (means > 0), accepted]
        + [differs & (means < 0)],
        [EQUIVALENT, BETTER, NOT_WORSE, WORSE],
        UNDECIDED,
    )
    table.index = pd.Index(np.flatnonzero(tested))
    return table.reindex(range(len(tested))).fillna({"verdict": UNDECIDED})


def _legend(
    costs: ModelCosts, reference: _Reference, against: dict[str, _Against], margin: float
) -> Iterator[str]:
    """Yield what was compared, and by which tests."""
    yield f"Reference: {reference.model}, {reference.about}. Cost: {costs.kind.about}."
    tests = sorted(
        {test for compared in against.values() for test in compared.test.split(", ") if test}
    )
    if tests:
        yield (
            "Difference: mean over tasks, with the 95 % interval of the two models alone "
            f"({', '.join(tests)}). "
            f"Equivalent: within {margin:g} by two one-sided tests at 5 %, corrected for all "
            "cheaper models (Holm)."
        )
    yield from [ON_ITEMS] if ON_ITEM in tests else []
    yield from [OVER_FITS] if {*tests} - {ON_ITEM, OVER_TASKS} else []
    tasks = {p.task: p for compared in against.values() for p in compared.tasks}
    relative = sorted({p.metric for p in tasks.values() if is_ratio(p.metric, p.own)})
    if relative:
        names = ", ".join(relative)
        yield f"Differences in {names} are relative to the mean of both values."
        if len(tasks) > 1:
            yield f"Score: mean over the tasks with other metrics than {names}."


def _left_out(against: dict[str, _Against], table: pd.DataFrame) -> Iterator[str]:
    most = max(len(compared.tasks) for compared in against.values())
    few = [f"{name} ({len(e.tasks)})" for name, e in against.items() if 0 < len(e.tasks) < most]
    if few:
        yield f"Compared on fewer than {most} tasks: {', '.join(few)}."
    for verdict in (NO_COST, NO_TASK):
        names = table.loc[table["verdict"] == verdict, "model"]
        if len(names):
            yield f"{verdict.capitalize()}: {', '.join(names)}."
    for name, compared in against.items():
        if compared.why and compared.tasks:
            yield f"{name}: {compared.why}."
