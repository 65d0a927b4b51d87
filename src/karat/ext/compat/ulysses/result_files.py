"""Result files of Ulysses SentEval: scores, aggregates with intervals and a summary; their import.

They are projections of the tidy table: ``metric_test`` is Karat's ``above_chance``, ``loss_test``
is ``logloss``, and the three curves are recorded per epoch by the head ``adamw``. Intervals are
those of means over folds: the bootstrap of Ulysses SentEval, and corrected t intervals.

The reader "senteval" reads a CSV file with an index, one or two texts, and the label last.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pandas as pd
import scipy

from karat.core.columns import require_columns
from karat.core.dataset import Dataset
from karat.core.files import safe_names
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import OPTIONS, ask, read_frame, read_parts, without_target
from karat.data.readers.text import keep_together
from karat.errors import DataError, DefinitionError, KaratError
from karat.ext.compat.ulysses.adamw import MASTER, bootstrap_seed, interval_seeds, resamples
from karat.metrics.metric import get_metric
from karat.results.importing import ImportLog, ModelResults, Sample, folder_name, number, rows
from karat.results.load import exported_runs, exported_scores
from karat.results.run import Run
from karat.results.tables import FINAL_EPOCH
from karat.stats.paired_tests import corrected_variance, fold_ratio

if TYPE_CHECKING:
    from karat.results.run import Runs

#: tolerance, relative to the range of the values, below which a resampled mean is the mean
TIE = 1e-9

Bounds = tuple[np.ndarray, np.ndarray]
#: the metric of Ulysses SentEval tasks
ASKED = "above_chance"
CURVES = ("loss_per_epoch_train", "loss_per_epoch_eval", "metric_per_epoch_eval")
#: the curve of the option ``train_metric``, which the original does not have
TRAIN_CURVE = "metric_per_epoch_train"
TESTS = {"logloss": "loss_test", ASKED: "metric_test"}
METRICS = (*CURVES, *TESTS.values())
ALL_METRICS = (*CURVES, TRAIN_CURVE, *TESTS.values())
FOLD = ["kfold_repetition", "kfold_partition"]
KEYS = ["task", *FOLD, "train_epoch", "metric"]
LOOKS = f"a CSV file with the columns {', '.join((*KEYS, 'value'))}, or its aggregates as JSON"
#: the metrics in the summary of a task
REPORTED = (ASKED, "mcc", "f1_macro", "acc", "logloss")
#: the group of all tasks
ALL = "all"
OURS = {theirs: ours for ours, theirs in TESTS.items()}
Aggregates = dict[str, dict[str, Any]]
FORM = "an index, a text (or two), and the label last"
OWN = ("options", "index", "empty", "together")


@dataclass(frozen=True)
class Resampling:
    """Confidence, number of resamples, and whether intervals are exactly those of the original."""

    confidence: float = 0.99
    times: int = 10_000
    faithful: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise DefinitionError(f"confidence must be between 0 and 1, got {self.confidence!r}.")
        if self.times < 1:
            raise DefinitionError(f"resamples must be >= 1, got {self.times!r}.")

    @property
    def percent(self) -> str:
        """The confidence in percent, as in column names: "99" for 0.99."""
        return f"{100 * self.confidence:g}"

    def named(self, kind: str, pair: Bounds) -> dict[str, np.ndarray]:
        """Return both bounds by name, such as ``ci99_low`` and ``ci99_high``."""
        return {f"{kind}{self.percent}_{end}": bound for end, bound in zip(ENDS, pair, strict=True)}


ENDS = ("low", "high")


def describe_columns(
    table: np.ndarray, seed: int, how: Resampling, limits: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Return mean, standard deviation and interval of each column, ignoring NaN.

    Intervals are clipped to the limits, and equal the mean where all values are equal, unless
    ``how.faithful``.
    """
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    statistics = np.full((4, table.shape[1]), np.nan)
    for count in np.unique(counts[counts > 0]):
        columns = np.flatnonzero(counts == count)
        values = np.stack([table[there[:, i], i] for i in columns], axis=1)
        mean = values.mean(axis=0)
        pair = np.stack(
            bootstrap(
                values, seed=seed, confidence=how.confidence, times=how.times, faithful=how.faithful
            )
        )
        if not how.faithful:
            pair = np.clip(np.where(np.isnan(pair), mean, pair), *limits)
        statistics[:, columns] = mean, _spread(values), *pair
    return {
        "avg": statistics[0],
        "std": statistics[1],
        **how.named("ci", (statistics[2], statistics[3])),
    }


def _spread(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column; 0 for a single value."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


def bootstrap(
    values: np.ndarray,
    seed: int,
    confidence: float = 0.99,
    times: int = 10_000,
    faithful: bool = False,
) -> Bounds:
    """Return the interval of each column's mean as in Ulysses SentEval; NaN if all are equal.

    It resamples mean minus resampled mean, corrects for bias and acceleration (BCa), and adds the
    bounds to the mean. That reflects the usual interval, so that a bound may lie outside the range
    of the values. For a single fold both bounds are its value. A resample with every value once
    counts as equal to the mean; ``faithful`` lets rounding decide that, as in the original.
    """
    mean = np.ascontiguousarray(values.T).mean(axis=1)
    if len(values) == 1:
        return mean, mean.copy()
    means = _means_as_summed if faithful else resampled_means
    above = mean - means(values, resamples(len(values), times, seed))
    varies = np.ptp(values, axis=0) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        alpha = (1 - confidence) / 2
        near = (0.0 if faithful else TIE) * np.ptp(values, axis=0)
        below = ((above < -near).mean(axis=0) + (above <= near).mean(axis=0)) / 2
        bias = scipy.special.ndtri(below)
        apart = values.mean(axis=0) - values
        acceleration = (apart**3).sum(axis=0) / (6 * (apart**2).sum(axis=0) ** 1.5)
        ends = [bias + scipy.special.ndtri(end) for end in (alpha, 1 - alpha)]
        shares = [scipy.special.ndtr(bias + end / (1 - acceleration * end)) for end in ends]
    ordered = np.sort(above.T, axis=1)
    low, high = (np.where(varies, mean + _quantile(ordered, share), np.nan) for share in shares)
    return low, high


def resampled_means(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the mean of each column in each resample, as one sparse product."""
    from scipy.sparse import csr_array

    times, size = drawn.shape
    starts = np.arange(0, times * size + 1, size, dtype=drawn.dtype)
    counted = csr_array((np.ones(times * size), drawn.ravel(), starts), (times, size))
    return np.asarray(counted @ values) / size


def _means_as_summed(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the same, summed in the order of each resample, to the last bit as SciPy does."""
    columns = np.ascontiguousarray(values.T)
    return np.stack([column[drawn].mean(axis=1) for column in columns], axis=1)


def _quantile(ordered: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return a quantile of each sorted row, by linear interpolation."""
    last = ordered.shape[1] - 1
    positions = np.nan_to_num(shares) * last
    below = np.minimum(positions.astype(int), max(last - 1, 0))
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, np.minimum(below + 1, last)]
    return np.where(np.isnan(shares), np.nan, low + (positions - below) * (high - low))


# Tasks are fixed; the folds of each vary independently.


def corrected(values: np.ndarray, parts: int, confidence: float = 0.99) -> Bounds:
    """Return the t interval of each column's mean with the Nadeau-Bengio correction.

    ``parts`` is the k of k-fold cross-validation: n_test / n_train = 1 / (k - 1). NaN for one fold.

    >>> low, high = corrected(np.array([[0.5], [0.7]]), parts=2, confidence=0.5)
    >>> float(round(high[0] - 0.6, 4))  # 1 × sqrt(0.02 × (1/2 + 1/1))
    0.1732
    """
    return pooled_corrected([values], [parts], confidence)


def pooled_corrected(
    tasks: Sequence[np.ndarray], parts: Sequence[int], confidence: float = 0.99
) -> Bounds:
    """Return the corrected interval of the mean over tasks of their columns' means.

    Degrees of freedom after Welch and Satterthwaite.
    """
    mean = np.mean([values.mean(axis=0) for values in tasks], axis=0)
    if min(map(len, tasks)) < 2 or min(parts) < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    variances = np.array(
        [
            corrected_variance(values.var(axis=0, ddof=1), len(values), fold_ratio([], [], folds))
            for values, folds in zip(tasks, parts, strict=True)
        ]
    )
    freedom = np.array([[len(values) - 1] for values in tasks])
    whole, weighted = variances.sum(axis=0), (variances**2 / freedom).sum(axis=0)
    degrees = np.where(weighted > 0, whole**2 / np.where(weighted > 0, weighted, 1), 1)
    half = scipy.special.stdtrit(degrees, (1 + confidence) / 2) * np.sqrt(whole) / len(tasks)
    return mean - half, mean + half


def pooled_bootstrap(
    tasks: Mapping[str, np.ndarray], seed: int, confidence: float = 0.99, times: int = 10_000
) -> Bounds:
    """Return the percentile interval of the mean over tasks of their columns' means.

    The resamples of a task depend on the seed and its name.
    """
    total: Any = 0.0
    for name, values in tasks.items():
        rng = np.random.default_rng([seed, crc32(name.encode())])
        drawn = rng.integers(0, len(values), size=(times, len(values)), dtype=np.int32)
        total = total + resampled_means(values, drawn)
    alpha = (1 - confidence) / 2
    low, high = np.quantile(total / len(tasks), [alpha, 1 - alpha], axis=0)
    return low, high


# -- files ------------------------------------------------------------------------------------


def frame(runs: Runs) -> pd.DataFrame:
    """Return all scores of one model's runs, or of a tidy table, in the original's columns.

    Repetitions, partitions and epochs start at 1; test scores have the epoch -1. The task
    ``F1A-exact`` is called ``F1A`` here.
    """
    scores = _clean(exported_scores(runs))
    names = short_names(scores)
    final = (scores["epoch"] == FINAL_EPOCH) & scores["metric"].isin(TESTS)
    curves = (scores["epoch"] != FINAL_EPOCH) & scores["metric"].isin((*CURVES, TRAIN_CURVE))
    part = numbered(scores[(final | curves) & scores["task"].isin(names)])
    renamed = pd.DataFrame(
        {
            "task": pd.Categorical(part["task"].map(names), list(names.values())),
            **{name: part[name].to_numpy() for name in FOLD},
            "train_epoch": part["epoch"].to_numpy(dtype=int),
            "metric": pd.Categorical(part["metric"].replace(TESTS), ALL_METRICS),
            "value": part["value"].to_numpy(dtype=float),
        }
    )
    renamed = renamed.sort_values(["task", "metric", *FOLD, "train_epoch"], ignore_index=True)
    renamed = renamed.astype({"task": str, "metric": str})
    _check(renamed)
    return renamed


def aggregate(
    frame: pd.DataFrame,
    *,
    seed: int | None = None,
    confidence: float = 0.99,
    resamples: int = 10_000,
    faithful: bool = False,
) -> Aggregates:
    """Return mean, standard deviation and interval of every loss and metric, by task.

    The keys are ``avg_``, ``std_``, ``ci99_low_`` and ``ci99_high_`` plus the metric. Curves are
    arrays with one value per epoch, over the folds that reached it; test scores are numbers. The
    interval is the original's bootstrap with its seeds, clipped to the metric's range, and equal to
    the mean if all values are equal. ``faithful`` disables these two corrections, and gives the
    original's intervals to the last digits, which depend on rounding where folds are few.
    """
    _check(frame)
    how = Resampling(confidence, resamples, faithful)
    by_task: Aggregates = {}
    for task, part in frame.groupby("task", sort=False):
        seeds = metric_seeds(part["kfold_repetition"].max(), seed)
        of_task: dict[str, Any] = {}
        statistics: dict[str, Any]
        present = set(part["metric"])
        for metric in (name for name in ALL_METRICS if name in METRICS or name in present):
            limits = (0.0, math.inf) if metric.startswith("loss") else (0.0, 1.0)
            rows = part[part["metric"] == metric]
            # a row per fold and a column per epoch, NaN after the last epoch
            table = rows.pivot(index=FOLD, columns="train_epoch", values="value").sort_index()
            statistics = describe_columns(table.to_numpy(dtype=float), seeds[metric], how, limits)
            if metric in TESTS.values():
                statistics = {k: float(v[0]) if len(v) else math.nan for k, v in statistics.items()}
            of_task |= {f"{name}_{metric}": value for name, value in statistics.items()}
        by_task[str(task)] = of_task
    return by_task


def metric_seeds(repetitions: int, seed: int | None = None) -> dict[str, int]:
    """Return the original's seed of each metric's interval."""
    seeds = interval_seeds(METRICS, bootstrap_seed(int(repetitions)) if seed is None else seed)
    return {**seeds, TRAIN_CURVE: seeds["metric_per_epoch_eval"]}


def _check(frame: pd.DataFrame) -> None:
    missing = [name for name in (*KEYS, "value") if name not in frame.columns]
    if missing:
        raise DataError(f'the frame has no column "{missing[0]}"; create it with frame(runs).')
    twice = frame.duplicated(KEYS)
    if twice.any():
        first = frame.loc[twice.idxmax()]
        raise DataError(
            f"{first['task']} has two values of {first['metric']} in one fold; pass the runs of "
            f"one model only."
        )


def _clean(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores on clean data."""
    return scores[scores["corruption"].fillna("") == ""]


def short_names(scores: pd.DataFrame) -> dict[str, str]:
    """Return the tasks scored above chance with the original's names, where these are unique."""
    rows = (scores["metric"] == ASKED) & (scores["epoch"] == FINAL_EPOCH)
    short = {task: task.removesuffix("-exact") for task in pd.unique(scores.loc[rows, "task"])}
    if not short:
        raise DataError(
            "no task has the metric above_chance; tasks that extend senteval have above_chance "
            "and logloss."
        )
    names = list(short.values())
    return {task: name if names.count(name) == 1 else task for task, name in short.items()}


def numbered(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores with repetitions and partitions from 1, given consecutive folds."""
    repeat, fold = scores["repeat"].astype(int), scores["fold"].astype(int)
    # the first fold of a later repetition gives the number of folds per repetition
    per_repetition = (fold // repeat.where(repeat > 0)).groupby(scores["task"]).transform("min")
    before = (repeat * per_repetition.fillna(0)).astype(int)
    return scores.assign(kfold_repetition=repeat + 1, kfold_partition=fold - before + 1)


def summary(runs: Runs, *, confidence: float = 0.99, resamples: int = 10_000) -> pd.DataFrame:
    """Return a row per model, task and metric, and rows for the means of groups and of all tasks.

    ``ci`` is the interval of Ulysses SentEval, ``nb`` the one of Nadeau and Bengio, which accounts
    for folds that share rows; both are clipped to the metric's range. Groups are the kinds of
    tasks without ``ulysses-``, or the first letters of task names in a plain table. Rows of groups
    have the mean of ``above_chance``, its standard deviation over the tasks, and intervals for the
    variation over folds.
    """
    how = Resampling(confidence, resamples)
    rows = [
        {"model": model.name, **row}
        for model in _models(runs)
        for row in (*_of_tasks(model, how), *_of_groups(model, how))
    ]
    return pd.DataFrame(rows)


def senteval_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield the files of Ulysses SentEval (one folder per model if several) and a summary."""
    models = list(_models(runs))
    for name, model in zip(safe_names(m.name for m in models), models, strict=True):
        folder = f"{name}/" if len(models) > 1 else ""
        table = frame(model.scores)
        yield f"{folder}results_nonagg.csv", table
        yield f"{folder}results_agg.json", _json(aggregate(table))
    yield "summary.csv", summary(runs)


def _json(aggregates: Aggregates) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return [plain(member) for member in value.tolist()]
        return value if math.isfinite(value) else None

    named = {
        task: {k: plain(v) for k, v in statistics.items()}
        for task, statistics in aggregates.items()
    }
    return json.dumps(named, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class _Model:
    """The scores of a model, and by task its group and the mode of its head."""

    name: str
    scores: pd.DataFrame
    kinds: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)

    def tables(self) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
        """Yield name, group and mode of each task, and its scores, a row per fold."""
        scores = _clean(self.scores)
        names = short_names(scores)
        final = numbered(scores[(scores["epoch"] == FINAL_EPOCH) & scores["metric"].isin(REPORTED)])
        for task, name in names.items():
            part = final[final["task"] == task]
            table = part.pivot(index=FOLD, columns="metric", values="value").sort_index()
            group = self.kinds.get(task, "").removeprefix("ulysses-") or name[:1]
            labels = {"task": name, "group": group, "mode": self.modes.get(task, "")}
            yield labels, table[[metric for metric in REPORTED if metric in table]]


def _models(runs: Runs) -> Iterator[_Model]:
    """Yield the models of runs, or of a tidy table, with a task scored above chance."""
    if isinstance(runs, pd.DataFrame):
        tables = exported_scores(runs).groupby("model", sort=False)
        models = [_Model(str(name), part) for name, part in tables]
    else:
        models = [_model(*named) for named in exported_runs(runs)]
    scored = [model for model in models if (model.scores["metric"] == ASKED).any()]
    if not scored:
        short_names(models[0].scores)  # raises
    yield from scored


def _model(run: Run, name: str, label: Mapping[str, str]) -> _Model:
    scores = run.scores()
    kinds = {label[task["name"]]: task["kind"] for task in run.about["tasks"]}
    modes = {
        label[record["task"]]: match[1]
        for record in run.records()
        for note in record["notes"]
        if (match := re.match(r"mode (\w+)", note))
    }
    return _Model(name, scores.assign(model=name, task=scores["task"].map(label)), kinds, modes)


def _of_tasks(model: _Model, how: Resampling) -> Iterator[dict[str, Any]]:
    for labels, table in model.tables():
        repetitions, partitions = (table.index.get_level_values(name).max() for name in FOLD)
        seeds = metric_seeds(repetitions)
        for metric in table.columns:
            values = table[[metric]].dropna().to_numpy()
            if not len(values):
                continue
            # metrics that the original lacks use the seed of its metric
            seed, limits = seeds[TESTS.get(metric, TESTS[ASKED])], get_metric(metric).range
            statistics = describe_columns(values, seed, how, limits)
            pair = corrected(values, partitions, how.confidence)
            yield _row(
                {**labels, "metric": metric}, statistics, how.named("nb", _clipped(pair, limits))
            )


def _of_groups(model: _Model, how: Resampling) -> Iterator[dict[str, Any]]:
    """Yield the unweighted means over the tasks of each group and over all tasks."""
    members: dict[str, list[tuple[str, np.ndarray, int, str]]] = {}
    for labels, table in model.tables():
        values = table[[ASKED]].dropna().to_numpy()
        parts = int(table.index.get_level_values(FOLD[1]).max())
        for group in (labels["group"], ALL) if len(values) else ():
            members.setdefault(group, []).append((labels["task"], values, parts, labels["mode"]))
    for group in sorted(members, key=lambda name: (name == ALL, name)):
        tasks, tables, parts_of, modes = zip(*members[group], strict=True)
        named = dict(zip(tasks, tables, strict=True))
        pair = pooled_corrected(tables, parts_of, how.confidence)
        means = np.array([values.mean(axis=0) for values in tables])
        drawn = pooled_bootstrap(named, MASTER, how.confidence, how.times)
        statistics = {"avg": means.mean(axis=0), "std": _spread(means), **how.named("ci", drawn)}
        count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''}"
        labels = {"task": count, "group": group, "metric": ASKED}
        labels["mode"] = modes[0] if len(set(modes)) == 1 else ""
        yield _row(labels, statistics, how.named("nb", _clipped(pair, get_metric(ASKED).range)))


def _row(
    labels: dict[str, str], statistics: dict[str, np.ndarray], corrected: dict[str, np.ndarray]
) -> dict[str, Any]:
    values = {"mean": statistics["avg"], "std": statistics["std"]}
    values |= {name: value for name, value in statistics.items() if name not in ("avg", "std")}
    numbers = {name: float(value[0]) for name, value in (values | corrected).items()}
    first = {name: labels[name] for name in ("task", "group", "metric")}
    return {**first, **numbers, "mode": labels["mode"]}


def _clipped(pair: Bounds, limits: tuple[float, float]) -> Bounds:
    return np.clip(pair[0], *limits), np.clip(pair[1], *limits)


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    if sample.shape == "csv":
        return sample.has(*KEYS, "value") or sample.has("group", "metric", "avg", "nb99_low")
    content = sample.content
    if not isinstance(content, Mapping) or not content:
        return False
    return all(isinstance(part, Mapping) and "avg_metric_test" in part for part in content.values())


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per folder, from the frame if there is one, else from the aggregates."""
    frames = {sample.path.parent for sample in samples if sample.has(*KEYS)}
    for sample in samples:
        if sample.shape == "csv" and not sample.has(*KEYS):
            log.note(f"{sample.path.name}: skipped, it is a summary of other files.")
        elif sample.shape == "json" and sample.path.parent in frames:
            log.note(f"{sample.path.name}: skipped, the frame in the same folder has more detail.")
        else:
            model = log.model or folder_name([sample.path])
            results = ModelResults("ulysses", model, "ulysses", [sample.path])
            try:
                (_add_frame if sample.shape == "csv" else _add_means)(results, sample, log)
            except KaratError as error:
                log.problems.append(str(error))
            else:
                yield results


def _add_frame(results: ModelResults, sample: Sample, log: ImportLog) -> None:
    table = list(rows(sample))
    parts: dict[str, int] = {}
    for row in table:
        task = row.text("task")
        parts[task] = max(parts.get(task, 0), row.whole("kfold_partition", 1))
    unknown = set()
    for row in table:
        task, metric = row.text("task"), row.text("metric")
        if metric not in ALL_METRICS:
            unknown.add(metric)
            continue
        repeat = row.whole("kfold_repetition", 1) - 1
        fold = repeat * parts[task] + row.whole("kfold_partition", 1) - 1
        results.tasks.setdefault(task, _task_facts(task))
        job = results.job(task, fold, repeat)
        final = row.text("train_epoch") == str(FINAL_EPOCH)
        epoch = FINAL_EPOCH if final else row.whole("train_epoch", 1)
        if metric in OURS and final:
            results.put(job, OURS[metric], row.number("value"))
        else:
            step = {"epoch": epoch, "metric": metric, "value": row.number("value")}
            job.history.append(step)
    log.skipped(sample.path, unknown)


def _add_means(results: ModelResults, sample: Sample, log: ImportLog) -> None:
    log.note(f"{sample.path.name}: means over all folds, imported as one fold.")
    for task, part in sample.content.items():
        results.tasks[task] = _task_facts(task)
        for theirs, ours in OURS.items():
            try:
                results.put(results.job(task), ours, number(part.get(f"avg_{theirs}")))
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"{sample.path}: avg_{theirs} of {task} must be a number."
                ) from error


def _task_facts(task: str) -> dict[str, str]:
    kind = f"ulysses-{task[0]}" if task[:1] in ("F", "G", "T") else "ulysses"
    return {"dataset": task, "metric": OURS["metric_test"], "kind": kind}


@reader("senteval")
def read_senteval(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about one or two texts, whose targets are the labels.

    The first column is an index and is ignored, the last one is the label, and the one or two
    columns after the index are the texts; other columns are ignored. ``fields`` and ``target``
    select other columns. Labels may be anything; numeric labels are ordered as numbers.

    Options: ``index: false`` if there is no index column; ``options`` is the separator of the
    choices in the second text, which then become fields next to the question; ``empty: drop``
    drops rows without a text, ``unanswered: drop`` those without a label; ``together: true`` keeps
    questions that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    frame, spec = read_parts(files, spec, lambda path: _read(path, spec))
    label = str(frame.columns[-1 - (spec.part == frame.columns[-1])])
    fields = [name for name in frame.columns if name not in (label, spec.group, spec.part)]
    where = files if isinstance(files, Path) else " and ".join(map(str, files.values()))
    if frame[label].nunique() == 1:
        raise DataError(
            f'{where}: every row has the label "{frame[label].iloc[0]}"; at least two classes '
            f"are needed."
        )
    frame, spec = keep_together(frame, spec, fields)
    text_spec = replace(
        spec, fields=tuple(fields), target=label, kind="classification", modality="text"
    )
    if spec.options.get("labels"):
        return ask(frame, text_spec, None)
    data = ask(frame.assign(**{label: _typed(frame[label])}), text_spec, None)
    return replace(data, classes=_sorted_labels(data.classes))


def _read(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the texts of a file, the group and part columns, and the label last."""
    plain = replace(without_target(spec), part=None)
    texts, label = _columns(read_frame(path, plain), spec, path)
    extra = [name for name in (spec.group, spec.part) if name]
    # read again, because the cells of these columns must not be converted
    text_spec = replace(plain, target=label, kind="classification", part=spec.part)
    frame = read_frame(path, text_spec, [*texts, *extra])
    require_columns(frame, extra, str(path))
    frame = _complete(
        frame[[*texts, *extra, label]], option="empty", columns=texts, spec=spec, path=path
    )
    frame = _complete(frame, option="unanswered", columns=[label], spec=spec, path=path)
    separator = spec.options.get("options")
    return frame if separator is None else _with_options(frame, texts, str(separator), path)


def _columns(frame: pd.DataFrame, spec: DataSpec, path: Path) -> tuple[list[str], str]:
    require_columns(frame, [*spec.fields, *([spec.target] if spec.target else [])], str(path))
    indexed = _has_index(frame, spec, path)
    names = [name for name in frame.columns[indexed:] if name not in (spec.group, spec.part)]
    label = spec.target or (names[-1] if names else "")
    texts = list(spec.fields) or [name for name in names if name != label][:2]
    if not texts or label in texts:
        raise DataError(
            f"{path} has {frame.shape[1]} columns ({', '.join(map(str, frame.columns))}); expected "
            f'{FORM}. Without an index set "options: {{index: false}}".'
        )
    return texts, label


def _has_index(frame: pd.DataFrame, spec: DataSpec, path: Path) -> bool:
    """Return whether the first column is an index; raise an error if it looks like a text."""
    option = spec.options.get("index")
    if option is not None and not isinstance(option, bool):
        raise DefinitionError(f'{spec.name}: "index" must be true or false, got {option!r}.')
    if option is not None:
        return option
    name, first = str(frame.columns[0]), frame.iloc[:, 0]
    plausible = name.startswith("Unnamed: ") or pd.api.types.is_integer_dtype(first)
    if not plausible and not spec.fields and frame.shape[1] > 2:
        raise DataError(
            f'{path}: the first column, "{name}", is not an index: it has "{first.iloc[0]}". '
            f'Expected {FORM}; set "options: {{index: false}}" if it is a text, '
            f'"{{index: true}}" if it is an index.'
        )
    return True


def _complete(
    frame: pd.DataFrame, option: str, columns: list[str], spec: DataSpec, path: Path
) -> pd.DataFrame:
    """Return the rows without missing values in these columns."""
    how = spec.choice(option, "refuse", "drop")
    missing = frame[columns].isna()
    rows = missing.any(axis=1).to_numpy()
    if rows.any() and how == "refuse":
        row = int(np.argmax(rows))
        column = columns[int(np.argmax(missing.iloc[row].to_numpy()))]
        raise DataError(
            f'{path}, row {row}: "{column}" is empty, as in {int(rows.sum())} of {len(frame)} '
            f'rows; fill it, or drop such rows: "options: {{{option}: drop}}".'
        )
    if rows.all():
        raise DataError(f"{path}: no row has texts and a label.")
    return frame[~rows].reset_index(drop=True)


def _with_options(
    frame: pd.DataFrame, texts: list[str], separator: str, path: Path
) -> pd.DataFrame:
    """Return the question and one field per choice."""
    if len(texts) != 2 or not separator:
        raise DataError(
            f'{path}: "options: {separator}" needs a second text and the separator of the choices '
            f"in it."
        )
    question, joined = texts
    choices = [str(cell).split(separator) for cell in frame[joined]]
    count = len(choices[0])
    for row, options in enumerate(choices):
        if len(options) != count:
            raise DataError(
                f'{path}, row {row}: "{joined}" has {len(options)} options, row 0 has {count}; all '
                f'rows must have the same number, separated by "{separator}".'
            )
        if not all(map(str.strip, options)):
            raise DataError(f'{path}, row {row}: an option in "{joined}" is empty.')
    if count == 1:
        raise DataError(f'{path}: no row has the separator "{separator}" in "{joined}".')
    named = {f"option_{i + 1}": list(cells) for i, cells in enumerate(zip(*choices, strict=True))}
    fields = pd.DataFrame({"question": frame[question], **named})
    return pd.concat([fields, frame.drop(columns=texts)], axis=1)


def _typed(labels: pd.Series) -> pd.Series:
    """Return numbers if each label is the usual form of a number, else the labels."""
    for kind in (int, float):
        try:
            numbers = labels.map(kind)
        except (TypeError, ValueError):
            continue
        if np.isfinite(numbers.to_numpy(dtype=float)).all() and (numbers.map(str) == labels).all():
            return numbers
    return labels


def _sorted_labels(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return labels sorted as numbers if all are numbers, else unchanged.

    >>> _sorted_labels(("10", "9", "08")), _sorted_labels(("10", "9", "x"))
    (('08', '9', '10'), ('10', '9', 'x'))
    """
    numbers = pd.to_numeric(pd.Series(labels, dtype=object), errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        return labels
    return tuple(labels[i] for i in np.argsort(numbers, kind="stable"))
