"""Is a new model worse than a baseline? A non-inferiority test that states its error rates."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from karat.analysis.comparison import NO_SPREAD, ONE_FOLD
from karat.analysis.item_tests import CORRECTED, ItemTest, paired_item_values
from karat.analysis.item_values import GAINS, contributions, is_accuracy
from karat.analysis.items import compare_items, flip_lines, largest_flips
from karat.analysis.pairing import Paired, Pairing, by_cluster, pair
from karat.analysis.stored_items import first_repeat, fold_repeats, read_repeats
from karat.config.catalog import Catalog
from karat.core.formatting import count, dump_json, format_p, short_percent
from karat.core.predictions import Predictions
from karat.core.replicates import replicate_of
from karat.core.writing import write_output
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.execution.arguments import Machines, Only
from karat.execution.evaluation import evaluate, find_suite
from karat.ext.decide import gate_wording
from karat.ext.decide.gate_noise import (
    FitDesign,
    FoldNoise,
    Noise,
    fold_noise,
    item_noises,
    run_differences,
)
from karat.ext.decide.power import (
    Z_LEVEL,
    Z_POWER,
    check_margin,
    count_items,
    fold_difference,
    item_test,
    named_difference,
    pool_tasks,
)
from karat.ext.decide.racing import loss_e_process
from karat.metrics.metric import MTEB, get_metric, is_ratio, metric_range
from karat.output.result import Result
from karat.output.table import Table
from karat.results.clusters import check_cluster_column, count_clusters, item_clusters, unit_notes
from karat.results.load import NOT_RUN, OK
from karat.results.pooling import DOT
from karat.results.run import Run, newest_first, open_runs
from karat.results.run_folders import find_run_folders
from karat.results.selection import ModelRuns
from karat.stats.paired_tests import ALPHA, MeanDifference, fold_ratio, holm
from karat.stats.ranking import FEWEST_TASKS

MARGIN = 0.01
PASSED, FAILED, CANNOT_TELL = OUTCOMES = ("passed", "failed", "cannot tell")
#: exit code of each outcome
EXIT_CODES = {PASSED: 0, FAILED: 1, CANNOT_TELL: 3}
#: the file of the error rates, in the folder of the baseline
FILE = "gate.json"
SIMULATIONS = 2000
#: true losses that are simulated, in margins
LOSSES = (0, 1, 2, 3)
#: level of the test that is valid after every task
ANYTIME = 0.01
#: flips that are listed
FLIPS = 5


# -- the decision ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """The outcome, the mean difference over tasks, and p of the tests.

    ``p_margin``: that the new model is worse by the margin or more; ``p_worse``: that it is not
    worse; ``p_tasks``: of each task, that it is not worse by more than the margin (Holm).
    """

    outcome: str
    mean: MeanDifference
    p_margin: float
    p_worse: float
    p_tasks: np.ndarray


def decide(tasks: Sequence[MeanDifference], margin: float) -> Decision:
    """Return the outcome for differences on tasks, positive if the new model is better.

    >>> decide([MeanDifference(0.0, 0.003, 999)], 0.01).outcome
    'passed'
    >>> decide([MeanDifference(-0.02, 0.003, 999)], 0.01).outcome
    'failed'
    >>> decide([MeanDifference(0.0, 0.02, 999)], 0.01).outcome
    'cannot tell'
    """
    mean = _pooled(tasks)
    p_margin, p_worse = mean.p_above(-margin), mean.p_below(0.0)
    p_tasks = holm([task.p_below(-margin) for task in tasks])
    is_worse = p_worse < ALPHA and not p_margin < ALPHA
    if is_worse or (p_tasks < ALPHA).any():
        outcome = FAILED
    else:
        outcome = PASSED if p_margin < ALPHA else CANNOT_TELL
    return Decision(outcome, mean, p_margin, p_worse, p_tasks)


def _pooled(tasks: Sequence[MeanDifference]) -> MeanDifference:
    """Return the mean over these tasks, which are fixed; without errors within them, over tasks."""
    if any(math.isnan(task.error) for task in tasks):
        return pool_tasks(tasks)
    return MeanDifference.over_tasks(tasks)


# -- the error rates ------------------------------------------------------------------------


def simulate_gates(
    tasks: Sequence[Noise], margin: float, *, simulations: int = SIMULATIONS, seed: int = 0
) -> pd.DataFrame:
    """Return the rate of each outcome if the true loss on all tasks is 0, 1, 2 or 3 margins."""
    rng = np.random.default_rng(seed)
    rows = []
    for factor in LOSSES:
        drawn = [task.draw(rng, factor * margin, simulations) for task in tasks]
        outcomes = Counter(decide(sample, margin).outcome for sample in zip(*drawn, strict=True))
        shares = {name.replace(" ", "_"): outcomes[name] / simulations for name in OUTCOMES}
        rows.append({"loss": factor * margin, **shares})
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False, repr=False)
class GateRates(Result):
    """The error rates of a gate against a baseline, by simulation.

    Attributes
    ----------
    margin
        The margin that was simulated.
    noise
        Where the noise of two models without a difference comes from.
    rates
        One row per true loss (0, 1, 2 and 3 margins): the shares that ``failed``, ``cannot_tell``
        and ``passed``.
    tasks
        The tasks.
    on_items
        The tasks whose noise is that of items; the others are tested over folds.
    simulations
        The number of simulated gates per loss.
    cluster
        The column of items that belong together; None for the declared groups.
    fits
        The repeats, folds and seeds of each task, as ``"10 × 5 folds"``.
    """

    margin: float
    noise: str
    rates: pd.DataFrame
    tasks: tuple[str, ...]
    on_items: tuple[str, ...] = ()
    simulations: int = SIMULATIONS
    cluster: str | None = None
    fits: Mapping[str, str] = field(default_factory=dict)

    csv_prefix: ClassVar[str] = "gate"
    frames: ClassVar[tuple[str, ...]] = ("rates",)

    @property
    def false_alarms(self) -> float:
        """How often the gate fails if there is no difference."""
        return float(self.rates["failed"].iloc[0])

    @property
    def sentence(self) -> str:
        """The rates in one sentence."""
        return gate_wording.rates_sentence(self)

    def tables(self) -> list[Table]:
        """Return the shares of outcomes, one row per true loss."""
        return [gate_wording.rates_table(self)]

    def save(self, folder: str | Path) -> Path:
        """Write ``gate.json`` into a folder."""
        path = Path(folder) / FILE
        write_output(path, dump_json(self.to_dict()))
        return path

    @classmethod
    def load(cls, folder: str | Path) -> GateRates | None:
        """Read ``gate.json`` of a folder; None if the file does not exist."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            rates = pd.DataFrame(stored["rates"])[["loss", "passed", "failed", "cannot_tell"]]
            tasks = tuple(stored["tasks"]), tuple(stored["on_items"])
            facts = float(stored["margin"]), str(stored["noise"]), rates
            simulations, fits = int(stored["simulations"]), dict(stored.get("fits", {}))
            return cls(*facts, *tasks, simulations, stored.get("cluster"), fits)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path} cannot be read ({error}); write it again with karat gate --calibrate."
            ) from error


def calibrate_gate(
    baseline: Run | str | Path,
    *,
    margin: float = MARGIN,
    tasks: str | Sequence[str] = (),
    simulations: int = SIMULATIONS,
    seed: int = 0,
    cluster: str | None = None,
) -> GateRates:
    """Return the error rates of a gate against a baseline, by simulation.

    Each simulated gate compares the baseline with itself on new items (or folds), and with a model
    that is worse on every task by 1, 2 or 3 margins.

    Parameters
    ----------
    baseline
        A run folder, or a folder with several runs of one model, best with several seeds.
    margin
        The margin of the gate.
    tasks
        Names or patterns of the tasks. Default: all.
    simulations, seed
        The number of simulated gates per loss, and the seed of the simulation.
    cluster
        A column kept with the items that belong together, as in ``gate``.

    Returns
    -------
    GateRates
        The rates; ``save(folder)`` stores them next to the baseline.

    Raises
    ------
    DataError
        If a task has neither stored predictions nor several folds or runs.
    """
    check_margin(margin)
    runs = _one_model(_stored_runs(baseline), None, baseline)
    sides = [ModelRuns(run, run.folder.name, run.model) for run in runs]
    names = _chosen_tasks(_scored_tasks(sides), tasks)
    if not names:
        raise DataError(f"{baseline} has no scores.")
    if cluster:
        check_cluster_column(cluster, [(name, run, name) for name in names for run in runs])
    measured = [_TaskNoise.of(sides, name, cluster or "") for name in names]
    noises = _all_noises(measured)
    rates = simulate_gates(noises, margin, simulations=simulations, seed=seed)
    noise = _noise_text(runs, measured, noises)
    on_items = tuple(task_noise.task for task_noise in measured if task_noise.gains is not None)
    fits = {task_noise.task: task_noise.design.name for task_noise in measured}
    return GateRates(margin, noise, rates, tuple(names), on_items, simulations, cluster, fits)


@dataclass(frozen=True)
class _TaskNoise:
    """The data on the noise of a task: gains of items with their units, or the noise of folds.

    ``gains`` are runs × repeats × items.
    """

    task: str
    design: FitDesign
    gains: np.ndarray | None = None
    units: tuple[float, float, bool] = (1.0, 0.0, False)
    folds: FoldNoise | None = None

    @classmethod
    def of(cls, sides: Sequence[ModelRuns], task: str, cluster: str) -> _TaskNoise:
        with_task = [side for side in sides if side.answered.get(task, {}).get(CLEAN)]
        metric, design = str(with_task[0].tasks[task]["metrics"][0]), _fit_design(with_task, task)
        try:
            gains, clustered = _gains(with_task, task, metric, cluster)
            return cls(task, design, gains, _units(with_task[0], task, metric, clustered))
        except (KaratError, ValueError, KeyError, TypeError):
            return cls(task, design, folds=_fold_noise(with_task, task, metric, design))

    @property
    def disagreement(self) -> float:
        """The share of items that two runs do not both answer correctly, or both wrongly."""
        if self.gains is None or len(self.gains) < 2 or not self.units[2]:
            return math.nan
        return float(np.mean(run_differences(self.gains[:, 0]) != 0))


def _all_noises(measured: Sequence[_TaskNoise]) -> list[Noise]:
    on_items = [task_noise for task_noise in measured if task_noise.gains is not None]
    gains = [task_noise.gains for task_noise in on_items if task_noise.gains is not None]
    noises = iter(item_noises(gains, [e.units for e in on_items], [e.design for e in on_items]))
    return [task_noise.folds or next(noises) for task_noise in measured]


def _fit_design(sides: Sequence[ModelRuns], task: str) -> FitDesign:
    """Return the fits of a gate against the newest of some runs."""
    newest, answered = sides[0], sides[0].answered[task][CLEAN]
    repeats = fold_repeats(newest, task)
    of_repeats = Counter(repeats[fold] for fold, _ in answered)
    folds = of_repeats[min(of_repeats)]
    train, test = zip(*(fit.sizes for fit in answered.values()), strict=True)
    ratio = fold_ratio(train, test, folds)
    seeds = {replicate_of(side.run.about) for side in sides if side.seed == newest.seed}
    return FitDesign(len(of_repeats), folds, len(seeds), 0.0 if math.isnan(ratio) else ratio)


def _noise_text(runs: Sequence[Run], measured: Sequence[_TaskNoise], noises: Any) -> str:
    """Return where the noise comes from."""
    unrelated = "as if the errors of both models were unrelated"
    if len(runs) == 1:
        return f"one run, {unrelated}; runs with other seeds would show how much trainings differ"
    seeds = ", ".join(dict.fromkeys(str(run.about.get("seed")) for run in runs))
    text = f"{len(runs)} runs of the baseline (seeds {seeds})"
    shares = [
        task_noise.disagreement
        for task_noise in measured
        if not math.isnan(task_noise.disagreement)
    ]
    if shares:
        text += f", which disagree on {short_percent(float(np.mean(shares)))} of the items"
    if any(getattr(noise, "retraining", 0.0) for noise in noises):
        text += " and vary by more than the items explain"
    alone = [
        task_noise.task
        for task_noise in measured
        if task_noise.gains is not None and len(task_noise.gains) == 1
    ]
    return text + (f"; of {', '.join(alone)} one run, {unrelated}" if alone else "")


def _gains(
    sides: Sequence[ModelRuns], task: str, metric: str, cluster: str
) -> tuple[np.ndarray, int]:
    """Return what each item adds to the score, and the number of clusters.

    Runs × repeats × the items that all have. Of one run only, if the items of the others cannot be
    matched; of one repeat only, if items have no value of their own or repeats test other items.
    With clusters of items that belong together there is a value per cluster, or block of clusters.
    """
    read = [list(first_repeat(side, task).values()) for side in sides]
    keys = [_all_keys(folds) for folds in read]
    by_group = get_metric(metric).by_group
    clusters = item_clusters(sides[0].run, task, read[0], cluster, by_group)
    matched = all(task_keys is not None and task_keys == keys[0] for task_keys in keys)
    if MTEB.get(metric, metric) not in GAINS or clusters:  # values of blocks or groups of items
        gains = [
            contributions(metric, folds, clusters) for folds in (read if matched else read[:1])
        ]
        return np.array(gains)[:, None], count_clusters(clusters) if clusters else 0
    if any(task_keys is None or len({*task_keys}) < len(task_keys) for task_keys in keys):
        return contributions(metric, read[0])[None, None], 0
    repeats = [_repeated_gains(side, task, metric) for side in sides]
    number = min(map(len, repeats))
    series = pd.concat(
        [task_keys for run in repeats for task_keys in run[:number]], axis=1, join="inner"
    )
    return series.to_numpy().T.reshape(len(sides), number, -1), 0


def _repeated_gains(side: ModelRuns, task: str, metric: str) -> list[pd.Series]:
    """Return what each item adds to the score by its key, of repeats that test the same items."""
    repeats: list[pd.Series] = []
    for folds in read_repeats(side, task):
        gains = contributions(metric, list(folds.values()))
        item_gains = pd.Series(gains, index=_all_keys(list(folds.values())) or [])
        if repeats and not repeats[0].index.sort_values().equals(item_gains.index.sort_values()):
            break
        repeats.append(item_gains)
    return repeats


def _all_keys(folds: Sequence[Predictions]) -> list[Any] | None:
    """Return the keys of the items of all folds; None if they were not stored."""
    keys = [fold.key for fold in folds]
    if any(task_keys is None for task_keys in keys):
        return None
    return [key for task_keys in keys if task_keys is not None for key in task_keys.tolist()]


def _units(side: ModelRuns, task: str, metric: str, clusters: int) -> tuple[float, float, bool]:
    """Return the units of a gain, the largest step of an item, and whether it is right or wrong."""
    folds = first_repeat(side, task)
    groups = [f.group for f in folds.values() if f.group is not None]
    independent = sum(len({*g.tolist()}) for g in groups) or sum(len(f) for f in folds.values())
    independent = clusters or independent
    scores = np.array(_fold_scores(side, task, metric))
    size = float(np.abs(scores).mean()) or 1.0
    ratio = is_ratio(metric, scores)
    unit = 1 / size if ratio else 1.0
    if metric == "rmse":  # a difference of squares is the difference times the sum
        unit /= 2 * size
    width = 1.0 if ratio else metric_range(metric)
    return unit, width / independent, is_accuracy(metric) and not clusters


def _fold_scores(side: ModelRuns, task: str, metric: str) -> list[float]:
    units = side.answered[task][CLEAN]
    scores = [units[unit].scores.get(metric) for unit in sorted(units)]
    return [float(score) for score in scores if score is not None]


def _fold_noise(sides: Sequence[ModelRuns], task: str, metric: str, design: FitDesign) -> FoldNoise:
    scores = [np.array(_fold_scores(side, task, metric)) for side in sides]
    folds = min(map(len, scores))
    if len(scores) == 1 and folds < 2:
        raise DataError(
            f"{task} has one fold and no stored predictions; run the baseline with other seeds."
        )
    answered, repeats = sides[0].answered[task][CLEAN], fold_repeats(sides[0], task)
    unit, width = 1.0, metric_range(metric)
    if is_ratio(metric, scores[0]):
        unit, width = float(np.abs(np.concatenate(scores)).mean()) or 1.0, 1.0
    first = min(repeats.values())
    items = sum(fit.questions for (fold, _), fit in answered.items() if repeats[fold] == first)
    noise = fold_noise(np.array([fit[:folds] for fit in scores]) / unit, design.ratio, design)
    return replace(noise, step=width / items if items else 0.0)


# -- stored and new results -----------------------------------------------------------------


def _stored_runs(requested: Any) -> list[Run]:
    if isinstance(requested, Run):
        return [requested]
    return newest_first(open_runs([requested]))


def _is_stored(requested: Any, define: Sequence[str | Path] | str | Path) -> bool:
    """Return whether this is a run or a folder; a folder without runs may have a model's name."""
    if not isinstance(requested, str | Path):
        return isinstance(requested, Run)
    path = Path(requested)
    if not path.is_dir() or any(find_run_folders(path, levels=(0, 1))):
        return path.is_dir()
    try:
        Catalog(define).model(str(requested))
    except DefinitionError:
        return True
    return False


def _one_model(runs: Sequence[Run], name: str | None, requested: Any) -> list[Run]:
    """Return the runs of one model: the only one, or the one with this name."""
    models = sorted({run.model for run in runs})
    chosen = models[0] if len(models) == 1 else name
    if chosen not in models:
        raise DefinitionError(
            f"{requested} has runs of {len(models)} models ({', '.join(models)}); "
            "pass the run folder of one of them."
        )
    return [run for run in runs if run.model == chosen]


def _paired_models(
    new: tuple[Any, Sequence[Run]], baseline: tuple[Any, Sequence[Run]], model: str | None
) -> tuple[list[Run], list[Run]]:
    """Return the runs of a new model and of its baseline, each with the folder it is from.

    Of folders with several models it is ``model``, else the only one that both have.
    """
    names, others = ({run.model for run in runs} for _, runs in (new, baseline))
    if model is not None and model not in names:
        raise DefinitionError(
            f'{new[0]} has no run of "{model}".{did_you_mean(model, sorted(names))}'
        )
    common = sorted(names & others)
    if model is None and len(names) > 1 and len(common) != 1:
        raise DefinitionError(
            f"{new[0]} has runs of {len(names)} models ({', '.join(sorted(names))}), and "
            f"{baseline[0]} of {', '.join(common) or 'none of them'}; name one with --model "
            f"(model=), or pass its run folder."
        )
    chosen = model or (next(iter(names)) if len(names) == 1 else common[0])
    return _one_model(new[1], chosen, new[0]), _one_model(baseline[1], chosen, baseline[0])


def _scored_tasks(sides: Sequence[ModelRuns]) -> list[str]:
    return [task for side in sides for task in side.tasks if side.state(task) == OK]


def _chosen_tasks(task_names: Iterable[str], wanted: str | Sequence[str]) -> list[str]:
    """Return the tasks that fit names or patterns, or all; raise if one fits nothing."""
    names = list(dict.fromkeys(task_names))
    patterns = [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [
        f'the baseline has no task "{p}".{did_you_mean(p, names)}'
        for p in patterns
        if not any(fnmatchcase(name, p) for name in names)
    ]
    if unknown:
        raise DefinitionError(*unknown)
    return [n for n in names if not patterns or any(fnmatchcase(n, p) for p in patterns)]


@dataclass(frozen=True)
class NewRuns:
    """How a new model is run before it is compared.

    Attributes
    ----------
    suite
        The suite, or its name. Default: that of the baseline.
    output
        Folder of the new run.
    workers
        Number of worker processes.
    define
        YAML or Python files with definitions.
    all_tasks
        Run all tasks at once. Default: task by task, until the gate has failed.
    """

    suite: Any = None
    output: str | Path = "results"
    workers: int = 0
    define: Sequence[str | Path] | str | Path = ()
    all_tasks: bool = False

    def run(self, model: Any, baseline: Run, tasks: Sequence[str]) -> Iterator[tuple[Run, int]]:
        """Run a model as the baseline was: same seed, folds and constraint.

        Yields the run and the number of tasks that are done, after each task or at the end.
        """
        facts, start = baseline.about, 0
        suite = self.suite or facts["suite"]
        if not isinstance(suite, str):
            suite = find_suite(Catalog(self.define), suite)  # as named tasks: their number of folds
        folds = [task["folds"] for task in facts["tasks"] if task["name"] in tasks]
        same = folds[0] if folds and all(numbers == folds[0] for numbers in folds) else None
        for end in [len(tasks)] if self.all_tasks else range(1, len(tasks) + 1):
            (new_run,) = evaluate(
                [model],
                suite,
                cv=_number_of_folds(facts, tasks),
                only=Only(tasks[start:end], folds=same),
                seed=facts.get("seed", 42),
                workers=Machines(self.workers, constraint=facts.get("constraint", "default")),
                output=self.output,
                resume=start > 0,
                define=self.define,
            )
            start = end
            yield new_run, end


def _number_of_folds(facts: Mapping[str, Any], tasks: Sequence[str]) -> int | None:
    """Return the number of folds of the tasks of a run, if it is the same for all."""
    splits = [task.get("split") or {} for task in facts["tasks"] if task["name"] in tasks]
    numbers = {split.get("folds") for split in splits}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int) else None


# -- the answer -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Gate(Result):
    """Whether a new model may replace a baseline.

    Attributes
    ----------
    new, baseline
        The names of the models.
    outcome
        ``"passed"``: it is not worse by the margin or more, on the mean over tasks. ``"failed"``:
        it is worse over tasks, or on a task by more than the margin, or scores are missing.
        ``"cannot tell"``: neither could be shown.
    reasons
        Why it failed, or what would decide.
    margin
        The largest acceptable loss.
    difference, difference_low, difference_high, p
        Mean difference over tasks, positive if the new model is better, its 95 % interval, and p
        of the test that it is worse by the margin or more.
    tasks
        One row per task: both scores, the difference with its interval, the test, ``p`` that it is
        not worse by more than the margin (corrected after Holm), and the ``outcome``.
    flips
        The items that became worse most, at most five; empty if it passed.
    rates
        The error rates stored with the baseline; None if they are not known.
    notes
        What was left out.
    runs
        The runs that were compared: new, then baseline.
    """

    new: str
    baseline: str
    outcome: str
    reasons: tuple[str, ...]
    margin: float
    difference: float
    difference_low: float
    difference_high: float
    p: float
    tasks: pd.DataFrame
    flips: pd.DataFrame = field(default_factory=pd.DataFrame)
    rates: GateRates | None = None
    notes: tuple[str, ...] = ()
    runs: tuple[list[Run], list[Run]] = ([], [])

    csv_prefix: ClassVar[str] = "gate"
    frames: ClassVar[tuple[str, ...]] = ("tasks", "flips")
    hidden: ClassVar[tuple[str, ...]] = ("runs",)
    computed: ClassVar[tuple[str, ...]] = ("exit_code",)

    @property
    def exit_code(self) -> int:
        """The exit code of ``karat gate``: 0 passed, 1 failed, 3 cannot tell."""
        return EXIT_CODES[self.outcome]

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return gate_wording.gate_sentence(self)

    @property
    def details(self) -> list[str]:
        """The error rates, and the items that became worse most."""
        rates = [self.rates.sentence] if self.rates else []
        flips = ["Items that became worse most:", *self.flip_lines()] if len(self.flips) else []
        return [*rates, *flips]

    def tables(self) -> list[Table]:
        """Return a row per task: both scores, the difference, and the outcome."""
        return [gate_wording.gate_table(self)]

    def to_markdown(self) -> str:
        """Return a comment: outcome, leaderboard, robustness, checks, flips and error rates."""
        return gate_wording.gate_markdown(self)

    def flip_lines(self) -> list[str]:
        """Return one line per flip: task, key, target, answer of the baseline → of the new."""
        return flip_lines(self.flips, before="second", after="first")


def gate(
    new: Any,
    baseline: Run | str | Path,
    *,
    margin: float = MARGIN,
    tasks: str | Sequence[str] = (),
    run: NewRuns | None = None,
    cluster: str | None = None,
    model: str | None = None,
) -> Gate:
    """Test whether a new model is not worse than a baseline by a margin or more.

    The models are paired by task and fold, and by item where predictions are stored. The tasks are
    fixed: the result holds for these tasks.

    Parameters
    ----------
    new
        A run, a run folder, a folder of runs, or a model in any form that ``karat.evaluate`` takes.
        A model is run first, as the baseline was: same tasks, folds, seed and constraint.
    baseline
        A run, a run folder or a folder of runs. If it has runs of several models, the one with the
        name of the new model.
    margin
        The largest acceptable loss, in the units of the metric; of metrics without an upper bound,
        such as rmse, as a share.
    tasks
        Names or patterns of the tasks. Default: all of the baseline.
    run
        How a model is run. Default: with the suite of the baseline, into ``results``.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and tests on items treat these clusters as the unit. Default: the declared groups.
    model
        The model to compare, of folders with runs of several. Default: the only one in common.

    Returns
    -------
    Gate
        The outcome, ``"passed"``, ``"failed"`` or ``"cannot tell"``, and the evidence.

    Raises
    ------
    DataError
        If folders hold no runs, or no task of the baseline has a score.
    DefinitionError
        If folders have runs of several models and no single one in common, or a task is unknown.
    """
    check_margin(margin)
    stored = _stored_runs(baseline)
    chosen = _chosen_tasks([t["name"] for old in stored for t in old.about["tasks"]], tasks)
    folder = baseline.folder if isinstance(baseline, Run) else Path(baseline)
    rates = GateRates.load(folder)
    if cluster:
        check_cluster_column(cluster, [(name, old, name) for name in chosen for old in stored])
    how = run or NewRuns()
    if _is_stored(new, how.define):
        if how.suite is not None:
            raise DefinitionError(f"{new} has stored runs; a suite is only for a model to run.")
        fresh, base = _paired_models((new, _stored_runs(new)), (baseline, stored), model)
        return _Evidence(fresh, base, margin, chosen, cluster=cluster).judged(rates)
    models = sorted({old.model for old in stored})
    if model is not None and model not in models:
        raise DefinitionError(f'{baseline} has no run of "{model}".{did_you_mean(model, models)}')
    base = _one_model(stored, model or str(new), baseline)
    scored = _scored_tasks([ModelRuns(old, old.folder.name, old.model) for old in base])
    wanted = [name for name in chosen if name in scored]
    if not wanted:
        raise DataError(f"{baseline} has no score of {', '.join(chosen)}.")
    for new_run, done in how.run(new, base[0], wanted):
        postponed = tuple(wanted[done:])
        evidence = _Evidence([new_run], base, margin, wanted[:done], postponed, cluster)
        if not evidence.later or evidence.is_certain:
            break
    return evidence.judged(rates)


@dataclass(frozen=True)
class _Evidence:
    """The runs of a new model and of a baseline, compared on tasks."""

    new: list[Run]
    baseline: list[Run]
    margin: float
    tasks: Sequence[str]
    #: tasks that were not run yet
    later: tuple[str, ...] = ()
    #: the column of items that belong together
    cluster: str | None = None

    @cached_property
    def is_certain(self) -> bool:
        """Whether the gate fails, whatever the remaining tasks show.

        A score is missing; a task is worse by more than the margin, corrected for all tasks; or a
        test that is valid after every task shows this for the items so far.
        """
        if self.missing:
            return True
        every = len(self.tasks) + len(self.later)
        p_values = [difference.p_below(-self.margin) for difference, _ in self.differences.values()]
        return any(every * p < ALPHA for p in p_values) or self.evidence >= 1 / ANYTIME

    @cached_property
    def evidence(self) -> float:
        """The e-value that a task is worse by more than the margin, from right and wrong answers.

        It is computed only while tasks remain, to end the run early, and only after complete
        tasks, where the order of the items does not matter.
        """
        parts = []
        for paired in self.compared if self.later else ():
            with contextlib.suppress(KaratError, ValueError, KeyError, TypeError):
                items = paired_item_values(paired)
                if items.is_right:
                    parts.append(items.values[0] - items.values[1])
        return float(loss_e_process(np.concatenate(parts), self.margin)[-1]) if parts else 0.0

    @cached_property
    def found(self) -> Pairing:
        return by_cluster(pair([], self.new, self.baseline, None, "folds"), self.cluster)

    @cached_property
    def wanted(self) -> list[Paired]:
        """The chosen tasks of which the baseline has a score."""
        pairs = [p for p in self.found.tasks if p.held[1] and _own_name(p) in self.tasks]
        # of a task with another seed, the other seeds of the baseline are not missing
        run = {_own_name(p) for p in pairs if p.states[0] == OK}
        pairs = [p for p in pairs if p.states[0] != NOT_RUN or _own_name(p) not in run]
        if not pairs:
            raise DataError(f"{self.found.second} has no score of {', '.join(self.tasks)}.")
        return pairs

    @cached_property
    def compared(self) -> list[Paired]:
        return [paired for paired in self.wanted if paired.compared]

    @cached_property
    def differences(self) -> dict[str, tuple[MeanDifference, str]]:
        """The difference on each task, and the name of its test."""
        return {
            p.task: named_difference(self.tests[p.task])
            if p.task in self.tests
            else fold_difference(p)
            for p in self.compared
        }

    @cached_property
    def tests(self) -> dict[str, ItemTest]:
        """The test of each task whose items can be tested.

        Of a baseline with several seeds, a new model that was fitted once may be another fit.
        """
        tests = {p.task: item_test(p, retrained=True) for p in self.compared}
        return {task: test for task, test in tests.items() if test is not None}

    @cached_property
    def decided(self) -> Decision | None:
        differences = [difference for difference, _ in self.differences.values()]
        return decide(differences, self.margin) if differences else None

    @cached_property
    def missing(self) -> list[str]:
        """Scores of the baseline that the new model lacks."""
        lacking = [f"{p.task}: {p.states[0]}." for p in self.wanted if p.states[0] != OK]
        for p in self.compared:
            if p.held[0] < p.held[1]:
                gone = p.held[1] - len(p.first)
                lacking.append(f"{p.task}: no score in {gone} of {p.held[1]} folds.")
        return lacking

    @cached_property
    def not_comparable(self) -> list[str]:
        """Tasks on other data or folds than those of the baseline."""
        return [
            f"{p.task} cannot be compared ({p.states[1]}): run the baseline again."
            for p in self.wanted
            if p.states[0] == OK and not p.compared
        ]

    @property
    def outcome(self) -> str:
        if self.missing or self.later:
            return FAILED
        outcome = self.decided.outcome if self.decided else CANNOT_TELL
        return CANNOT_TELL if outcome == PASSED and self.not_comparable else outcome

    def judged(self, rates: GateRates | None) -> Gate:
        """Return the outcome with its evidence."""
        decided, nan, bounds = self.decided, math.nan, (math.nan, math.nan)
        if decided and not math.isnan(decided.mean.error):
            bounds = decided.mean.interval()
        mean, p = (decided.mean.mean, decided.p_margin) if decided else (nan, nan)
        fitting_rates, notes = self._fitting(rates)
        flips = pd.DataFrame() if self.outcome == PASSED else self._flips()
        return Gate(
            new=self.found.first,
            baseline=self.found.second,
            outcome=self.outcome,
            reasons=tuple(self._reasons()),
            margin=self.margin,
            difference=mean,
            difference_low=bounds[0],
            difference_high=bounds[1],
            p=p,
            tasks=self._table(),
            flips=flips,
            rates=fitting_rates,
            notes=tuple(notes),
            runs=(self.new, self.baseline),
        )

    def _table(self) -> pd.DataFrame:
        """Return one row per task."""
        nan = (math.nan, math.nan)
        p_tasks = (
            dict(zip(self.differences, self.decided.p_tasks, strict=True)) if self.decided else {}
        )
        rows = []
        for p in self.wanted:
            difference, test = self.differences.get(
                p.task, (MeanDifference(math.nan, math.nan, 1), "")
            )
            low, high = difference.interval() if not math.isnan(difference.error) else nan
            values = p.own if not p.compared else (float(p.first.mean()), float(p.second.mean()))
            outcome = PASSED if difference.p_above(-self.margin) < ALPHA else CANNOT_TELL
            if p.states[0] != OK or p_tasks.get(p.task, 1.0) < ALPHA:
                outcome = FAILED
            rows.append(
                {
                    **{"task": p.task, "metric": p.metric, "baseline": values[1], "new": values[0]},
                    **{
                        "difference": difference.mean,
                        "difference_low": low,
                        "difference_high": high,
                    },
                    **{"p": p_tasks.get(p.task, math.nan), "test": test, "outcome": outcome},
                }
            )
        return pd.DataFrame(rows)

    def _reasons(self) -> list[str]:
        """Return why it failed, or what would decide."""
        reasons = [*self.missing, *self.not_comparable]
        if self.later:
            every = len(self.tasks) + len(self.later)
            reasons.append(f"Stopped after {len(self.tasks)} of {every} tasks.")
        if self.evidence >= 1 / ANYTIME:
            reasons.append(f"Items show a loss of more than the margin (e {self.evidence:,.0f}).")
        if self.decided is None:
            return reasons
        if worse := self._worse_tasks():
            reasons.append(f"Worse by more than the margin: {', '.join(worse)}.")
        elif self.decided.outcome == FAILED:
            reasons.append(f"It is significantly worse (p {format_p(self.decided.p_worse)}).")
        elif self.decided.outcome == CANNOT_TELL and not self.missing and not self.later:
            reasons.append(self._needed())
        return reasons

    def _worse_tasks(self) -> list[str]:
        """Return the tasks that are worse by more than the margin."""
        p_tasks = self.decided.p_tasks if self.decided else ()
        return [t for t, p in zip(self.differences, p_tasks, strict=True) if p < ALPHA]

    def _needed(self) -> str:
        """Return about how much more evidence would decide, with a power of 90 %."""
        assert self.decided is not None
        mean = self.decided.mean
        untested = [t for t, (_, test) in self.differences.items() if test in (ONE_FOLD, NO_SPREAD)]
        if math.isnan(mean.error):
            names = ", ".join(untested)
            return f"No test is possible on {names}: store predictions or run more folds."
        room = mean.mean + self.margin
        away = room if room > 0 else -mean.mean
        factor = ((Z_LEVEL + Z_POWER) * math.hypot(mean.error, mean.step) / away) ** 2
        over_tasks = bool(untested) and len(self.compared) >= FEWEST_TASKS
        items = 0 if over_tasks else sum(count_items(p) for p in self.compared)
        unit, number = ("item", items) if items else ("task", len(self.compared))
        if not items and not over_tasks:
            unit, number = "fold", sum(len(p.first) for p in self.compared)
        what = "not worse by the margin" if room > 0 else "worse"
        more = max(math.ceil(number * (factor - 1)), 1)
        return f"About {count(more, f'more {unit}')} would show that it is {what}."

    def _flips(self) -> pd.DataFrame:
        """Return the items that became worse most, of tasks that failed if there are any."""
        names = self._worse_tasks() or list(self.differences)
        new, baseline = cast(Any, self.new), cast(Any, self.baseline)
        try:
            flips = compare_items([], new, baseline, tasks=names).items
        except KaratError:  # no stored predictions of the same items
            return pd.DataFrame()
        return largest_flips(flips, self.found.second, FLIPS)

    def _fitting(self, rates: GateRates | None) -> tuple[GateRates | None, list[str]]:
        """Return the stored rates if they are those of this gate, and the notes."""
        counts = {task: (test.clusters, test.items) for task, test in self.tests.items()}
        notes = [*self.found.notes, *unit_notes(counts, self.cluster or "")]
        if rates is None:
            return None, [*notes, "Error rates unknown: run karat gate --calibrate BASELINE."]
        task_names = {*self.later, *(_own_name(p) for p in self.wanted)}
        if (
            rates.margin != self.margin
            or {*rates.tasks} != task_names
            or rates.cluster != self.cluster
        ):
            text = f"The error rates in {FILE} are for margin {rates.margin:g} on"
            unit = f" with --cluster {rates.cluster}" if rates.cluster else ""
            again = "run karat gate --calibrate again"
            return None, [*notes, f"{text} {', '.join(rates.tasks)}{unit}; {again}."]
        if others := self._other_fits(rates):
            return None, [*notes, f"The error rates in {FILE} do not hold: {'; '.join(others)}."]
        over_folds = (CORRECTED, ONE_FOLD, NO_SPREAD)
        tested = {p.task: self.differences[p.task][1] not in over_folds for p in self.compared}
        other = [
            p.task for p in self.compared if tested[p.task] != (_own_name(p) in rates.on_items)
        ]
        if other:
            why = "one side has no stored predictions of the items"
            text = f"The error rates in {FILE} do not hold for {', '.join(other)}"
            return None, [*notes, f"{text}: {why}."]
        return rates, notes

    def _other_fits(self, rates: GateRates) -> list[str]:
        """Return tasks that have other repeats, folds or seeds than the error rates."""
        others = []
        for paired in self.compared:
            fits, known = _paired_design(paired).name, rates.fits.get(_own_name(paired), "unknown")
            if fits != known:
                others.append(f"{paired.task} has {fits}, that of the error rates is {known}")
        return others


def _paired_design(paired: Paired) -> FitDesign:
    """Return the fits of two models that were paired."""
    assert paired.sides is not None
    repeats = fold_repeats(paired.sides[0], paired.task)
    of_repeats = Counter(repeats[fold] for fold, _ in paired.units)
    new, baseline = (
        min(len(own) for own in side.replicates(paired.task).values()) for side in paired.sides
    )
    return FitDesign(len(of_repeats), of_repeats[min(of_repeats)], baseline, new_seeds=new)


def _own_name(paired: Paired) -> str:
    """Return the name of a task without what distinguishes it on a leaderboard."""
    if paired.sides is None:
        return paired.task.partition(DOT)[0]
    facts = paired.sides[1].tasks[paired.task]
    return str(facts.get("task", paired.task))
