"""Robustness of models to corruption, with the measures of ImageNet-C.

An error is 1 − score where higher is better (100 − score in percent), else the score itself. Errors
are averaged over the severities of a corruption and then over corruptions, and a ratio is one of
these means. Compositions are summarized separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis import robustness_wording
from karat.corruptions.view import View
from karat.errors import DataError, KaratError, did_you_mean
from karat.metrics.metric import ROUNDED, get_metric
from karat.output.frame_result import FrameResult
from karat.output.table import Table
from karat.results.load import named_scores
from karat.results.tables import FINAL_EPOCH

#: resamples of folds and draws for the intervals
RESAMPLES = 1000
SEED = 42
SUMMARIES = ("clean", "corrupted", "mce", "relative_mce", "retention", "area", "worst")
FOLD, UNIT, VIEW = ["repeat", "fold"], ["repeat", "fold", "draw"], ["corruption", "severity"]
_OLD, _ENDS = ("", "relative_"), {"_low": 2.5, "_high": 97.5}


class Robustness(FrameResult):
    """The effect of corruptions on scores: a data frame that prints as a table with notes."""

    @property
    def sentence(self) -> str:
        """Which model keeps the largest share of its clean score."""
        return robustness_wording.robustness_sentence(self)

    def tables(self) -> list[Table]:
        """Return one group per task (and corruption), one row per model."""
        return [robustness_wording.robustness_table(self, self.attrs["baselines"])]


def robustness(
    runs: Any,
    *,
    baseline: str | Sequence[str] | None = None,
    metric: str | None = None,
    compositions: bool = False,
    by_corruption: bool = False,
    pool: str = "variant",
) -> Robustness:
    """Summarize the effect of corruptions on the scores of each model.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    baseline
        Model that ``mce`` and ``relative_mce`` refer to; of several the first that a task has.
    metric
        Metric to use. Default: each task's primary metric.
    compositions
        Summarize composed corruptions instead of single ones.
    by_corruption
        Return a row per corruption, with ``ce`` and ``relative_ce``, instead of means over them.
    pool
        Which runs are one model, as in ``leaderboard``.

    Returns
    -------
    Robustness
        One row per task and model, on the corruptions of which all models have a score at every
        severity; ``corruptions`` is their number. ``clean`` and ``corrupted`` are mean scores;
        ``mce`` is the mean error divided by the baseline's, ``relative_mce`` the mean loss against
        clean divided by the baseline's, without corruptions under which the baseline gains (these
        are named in ``relative_without``, ``relative_corruptions`` is the number of the others),
        and NaN if the baseline's loss is within its error;
        ``retention`` is the mean share of the clean score, NaN for metrics that can be negative;
        ``area`` the mean height of the curve of scores over severities, ``worst`` the worst mean
        score of a corruption at a severity, named in ``worst_view``. Each has a 95 % interval,
        ``…_low`` and ``…_high``, by resampling folds and draws within them; NaN if there is one of
        each. ``attrs["notes"]`` lists what was left out and why.

    Raises
    ------
    DataError
        If no run has corrupted scores, or the metric or baseline is unknown.

    Examples
    --------
    >>> table = karat.robustness("results", baseline="onehot")  # doctest: +SKIP
    >>> table[["task", "model", "clean", "corrupted", "mce"]]  # doctest: +SKIP
    """
    table = _scores(runs, metric, pool)
    composed = table["corruption"].str.contains("+", regex=False)
    table = table[(composed == compositions) | (table["corruption"] == "")]
    if not (table["corruption"] != "").any():
        what = "composed" if compositions else "single"
        raise DataError(f"no task has a {what} corruption; add corruptions to a task.")
    baselines = [baseline] if isinstance(baseline, str) else list(baseline or ())
    models = list(pd.unique(table["model"]))
    if baselines and not set(baselines) & set(models):
        hint = did_you_mean(baselines[0], models) or f" There are: {', '.join(models)}."
        raise DataError(f'baseline: there is no run of "{baselines[0]}".{hint}')
    frames: list[pd.DataFrame] = []
    notes: list[str] = []
    for _, part in table.groupby("task", sort=False):
        if (part["corruption"] != "").any():
            frames += _frames(part, baselines, by_corruption, notes)
    summary = Robustness(pd.concat(frames, ignore_index=True))
    summary.attrs["notes"] = list(dict.fromkeys(notes))
    summary.attrs["baselines"] = baselines
    return summary


def curves(runs: Any, *, metric: str | None = None, pool: str = "variant") -> pd.DataFrame:
    """Return mean, std and count of scores by task, model, corruption and severity (0 is clean)."""
    table = _scores(runs, metric, pool)
    corrupted = table[table["corruption"] != ""]
    clean = table[table["corruption"] == ""].drop(columns=VIEW)
    pairs = corrupted[["task", "corruption"]].drop_duplicates().assign(severity=0.0)
    both = pd.concat([clean.merge(pairs, on="task"), corrupted], ignore_index=True)
    keys = ["task", "model", "metric", "higher_is_better", *VIEW]
    grouped = both.groupby(keys, sort=False)["value"]
    summary = grouped.agg(["mean", "std", "count"]).reset_index()
    return summary.sort_values(keys, kind="stable", ignore_index=True)


def _scores(runs: Any, metric: str | None, pool: str) -> pd.DataFrame:
    """Return the final scores in one metric per task, without corruptions of severity 0."""
    table, firsts, directions = named_scores(runs, pool)
    table = table[table["epoch"] == FINAL_EPOCH]
    there = sorted(table["metric"].unique())
    if metric is not None and metric not in there:
        hint = did_you_mean(metric, there) or f" There are: {', '.join(there)}."
        raise DataError(f'no run has the metric "{metric}".{hint}')
    table = table[table["metric"] == (table["task"].map(firsts) if metric is None else metric)]
    table = table[(table["corruption"] == "") | (table["severity"] > 0)]
    if not (table["corruption"] != "").any():
        raise DataError("no run has a corrupted view; add corruptions to a task.")
    up = {
        name: directions[name] if name in directions else get_metric(name).higher_is_better
        for name in table["metric"].unique()
    }
    return table.assign(higher_is_better=table["metric"].map(up).astype(bool))


# -- scores as arrays -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """Scores by model, view and unit; a unit is a draw of a fold.

    ``clean`` has the shape (models, units) and ``seen`` (models, views, units); ``corruption`` and
    ``severity`` describe the views, ``fold`` is the fold of each unit. After averaging over units
    the last axis is that of the resamples.
    """

    models: list[str]
    corruption: np.ndarray
    severity: np.ndarray
    fold: np.ndarray
    clean: np.ndarray
    seen: np.ndarray
    up: bool

    @classmethod
    def of(cls, part: pd.DataFrame) -> _Cells:
        """Return the scores of one task as arrays, without views that have no score at all."""
        plain, dirty = part[part["corruption"] == ""], part[part["corruption"] != ""]
        models = pd.Index(pd.unique(part["model"]))
        measured = dirty[dirty["value"].notna()]
        views = pd.MultiIndex.from_frame(measured[VIEW].drop_duplicates())
        units = pd.MultiIndex.from_frame(dirty[UNIT].drop_duplicates().sort_values(UNIT))
        folds = units.droplevel("draw").unique()
        seen = np.full((len(models), len(views), len(units)), np.nan)
        at = (
            models.get_indexer(measured["model"]),
            _places(views, measured),
            _places(units, measured),
        )
        seen[at] = measured["value"]
        clean = np.full((len(models), len(folds)), np.nan)
        plain = plain[_places(folds, plain) >= 0]
        clean[models.get_indexer(plain["model"]), _places(folds, plain)] = plain["value"]
        fold = folds.get_indexer(units.droplevel("draw"))
        corruption, severity = (np.asarray(views.get_level_values(name)) for name in VIEW)
        up = bool(part["higher_is_better"].iloc[0])
        return cls(models.tolist(), corruption, severity, fold, clean[:, fold], seen, up)

    def only(self, corruptions: Sequence[str]) -> _Cells:
        """Return the views of some corruptions."""
        rows = np.isin(self.corruption, list(corruptions))
        return replace(
            self,
            corruption=self.corruption[rows],
            severity=self.severity[rows],
            seen=self.seen[:, rows],
        )

    def averaged(self, times: np.ndarray) -> _Cells:
        """Return means over units, weighted by each row of ``times``."""
        return replace(self, clean=_weighed(self.clean, times), seen=_weighed(self.seen, times))

    def resamples(self, count: int) -> np.ndarray:
        """Return how often each unit is drawn: folds with replacement, then draws within folds."""
        rng = np.random.default_rng(SEED)
        sizes = np.bincount(self.fold)
        folds, most = len(sizes), int(sizes.max())
        chosen = rng.integers(folds, size=(count, folds))
        room = sizes[chosen][:, :, None]
        drawn = (rng.random((count, folds, most)) * room).astype(np.intp)
        # units are sorted by fold
        units = (np.cumsum(sizes) - sizes)[chosen][:, :, None] + drawn
        at = np.arange(count)[:, None, None] * len(self.fold) + units
        inside = np.broadcast_to(np.arange(most) < room, at.shape)
        drawn_times = np.bincount(at[inside], minlength=count * len(self.fold))
        return drawn_times.reshape(count, len(self.fold)).astype(float)


def _places(index: pd.MultiIndex, frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(index.get_indexer(pd.MultiIndex.from_frame(frame[list(index.names)])))


def _weighed(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    has_value = ~np.isnan(values)
    sums, counts = np.where(has_value, values, 0.0) @ times.T, has_value.astype(float) @ times.T
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


# -- numbers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """What ratios refer to: the baseline's place, the best score, which ratios there are.

    ``top`` is NaN where the best score is unknown, ``losing`` the corruptions under which the
    baseline loses by more than its error; ``retention`` is whether shares of a score make sense.
    """

    base: int | None
    top: float
    losing: tuple[str, ...]
    retention: bool


def _frames(
    part: pd.DataFrame, baselines: Sequence[str], by_corruption: bool, notes: list[str]
) -> list[pd.DataFrame]:
    """Return the rows of a task: one per model, or one per corruption and model."""
    first = part.iloc[0]
    task, metric = str(first["task"]), str(first["metric"])
    cells = _Cells.of(part)
    base = next((cells.models.index(name) for name in baselines if name in cells.models), None)
    keys = {"metric": metric, "higher_is_better": cells.up}
    if not by_corruption:
        cells = _common(cells, task, notes)
        scale = _scale(cells, base, (task, metric), notes)
        return [_rows({"task": task}, keys, cells, scale)]
    frames = []
    for name in dict.fromkeys(cells.corruption):
        names, of_corruption = {"task": task, "corruption": name}, cells.only([name])
        scale = _scale(of_corruption, base, (task, metric), notes)
        rows = _rows(names, keys, of_corruption, scale)
        counts = ["corruptions", "relative_corruptions", "relative_without"]
        rows = rows.drop(columns=counts, errors="ignore")
        renamed = {f"{old}mce{end}": f"{old}ce{end}" for old in _OLD for end in ("", *_ENDS)}
        frames.append(rows.rename(columns=renamed))
    return frames


def _common(cells: _Cells, task: str, notes: list[str]) -> _Cells:
    """Return the corruptions that all models have, of those that have any."""
    means = cells.averaged(np.ones((1, len(cells.fold)))).seen[:, :, 0]
    names = list(dict.fromkeys(cells.corruption))
    whole = np.array([~np.isnan(means[:, cells.corruption == n]).any(axis=1) for n in names])
    present = np.flatnonzero(whole.any(axis=0))
    lacking = {
        name: [cells.models[m] for m in present if not has[m]]
        for name, has in zip(names, whole, strict=True)
    }
    shared = [name for name, lack in lacking.items() if not lack and len(present)]
    if not shared:
        notes.append(f"{task}: no corruption is common to all models; each has its own.")
        return cells
    for name, lack in lacking.items():
        if lack:
            models = f"{', '.join(lack)} {'lacks' if len(lack) == 1 else 'lack'}"
            notes.append(f"{task}: compared without {name}, which {models}.")
    return cells.only(shared)


def _scale(
    cells: _Cells, base: int | None, task_metric: tuple[str, str], notes: list[str]
) -> _Scale:
    """Return what the ratios of a task refer to, and note which of them are left out."""
    task, metric = task_metric
    try:
        least, most = get_metric(metric).range
    except KaratError:
        all_scores = np.concatenate([cells.clean.ravel(), cells.seen.ravel()])
        least, most = float(np.nanmin(all_scores, initial=0.0)), 1.0
    retention = least >= 0
    if not retention:
        notes.append(f"{task}: no retention, {metric} can be negative.")
    if base is None:
        return _Scale(None, most, (), retention)
    largest = max(float(np.nanmax(scores, initial=-np.inf)) for scores in (cells.clean, cells.seen))
    top = most
    beyond = largest > most * (1 + ROUNDED)
    if cells.up and beyond and largest <= 100 * most * (1 + ROUNDED):
        top = 100 * most
        notes.append(f"{task}: {metric} is in percent, so errors are {top:g} − score.")
    elif cells.up and (beyond or not np.isfinite(most)):
        top = np.nan
        notes.append(f"{task}: no mCE, the best possible {metric} is unknown.")
    return _Scale(base, top, _losing(cells, base, task, notes), retention)


def _losing(cells: _Cells, base: int, task: str, notes: list[str]) -> tuple[str, ...]:
    """Return the corruptions under which the baseline loses; none if that is within its error."""
    losing, name = [], cells.models[base]
    for corruption in dict.fromkeys(cells.corruption):
        of_corruption = cells.only([corruption]).averaged(np.ones((1, len(cells.fold))))
        if _loss(of_corruption)[base].mean() > 0:
            losing.append(str(corruption))
        elif not np.isnan(_loss(of_corruption)[base]).any():
            notes.append(f"{task}: relative mCE without {corruption}, under which {name} gains.")
    if not losing:
        return ()
    drawn = cells.only(losing).averaged(cells.resamples(RESAMPLES))
    spread = _over(drawn, _loss(drawn), _mean)[base]
    if len(cells.fold) > 1 and np.nanpercentile(spread, _ENDS["_low"]) <= 0:
        notes.append(f"{task}: no relative mCE, the loss of {name} is within its error.")
        return ()
    return tuple(losing)


def _loss(means: _Cells) -> np.ndarray:
    before = means.clean[:, None]
    return before - means.seen if means.up else means.seen - before


def _mean(part: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.asarray(part.mean(axis=1))


def _rows(
    names: dict[str, Any], keys: dict[str, Any], cells: _Cells, scale: _Scale
) -> pd.DataFrame:
    means = cells.averaged(np.ones((1, len(cells.fold))))
    columns = _summaries(means, scale)
    frame = pd.DataFrame({**names, "model": cells.models, **keys})
    several = len(cells.fold) > 1
    times = cells.resamples(RESAMPLES) if several else np.empty((0, len(cells.fold)))
    drawn = _summaries(cells.averaged(times), scale)
    for name in SUMMARIES:
        frame[name] = columns[name][:, 0]
        # clean scores do not vary over draws
        spread = drawn[name] if name != "clean" or cells.fold.max() > 0 else drawn[name][:, :0]
        for end, share in _ENDS.items():
            # NaN where more than half of the resamples are NaN
            has_spread = (~np.isnan(spread)).sum(axis=1) > spread.shape[1] / 2
            edge = np.full(len(spread), np.nan)
            if has_spread.any():
                edge[has_spread] = np.nanpercentile(spread[has_spread], share, axis=1)
            frame[f"{name}{end}"] = edge
    seen = means.seen[:, :, 0]
    frame["worst_view"] = _worst_views(cells, seen)
    whole = [set(cells.corruption) - set(cells.corruption[np.isnan(scores)]) for scores in seen]
    frame["corruptions"] = [len(corruptions) for corruptions in whole]
    frame["relative_corruptions"] = [len(corruptions & set(scale.losing)) for corruptions in whole]
    if scale.base is not None:
        left_out = [sorted(corruptions - set(scale.losing)) for corruptions in whole]
        frame["relative_without"] = [", ".join(map(str, names)) for names in left_out]
    order = np.argsort(frame["corrupted"] * (-1 if cells.up else 1), kind="stable")
    return frame.iloc[order]


def _summaries(means: _Cells, scale: _Scale) -> dict[str, np.ndarray]:
    """Return every measure by model and resample."""
    clean, seen = means.clean, means.seen
    before = clean[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        retained = seen / before if means.up else before / seen
    retained = np.where(np.isfinite(retained) & scale.retention, retained, np.nan)
    nothing = np.full(clean.shape, np.nan)
    bad = np.where(np.isnan(seen), np.inf if means.up else -np.inf, seen)
    worst = bad.min(axis=1) if means.up else bad.max(axis=1)
    summaries = {
        "clean": clean,
        "corrupted": _over(means, seen, _mean),
        "mce": nothing,
        "relative_mce": nothing,
        "retention": _over(means, retained, _mean),
        "area": _over(means, seen, lambda part, severity: _area(clean, part, severity)),
        "worst": np.where(np.isinf(worst), np.nan, worst),
    }
    if scale.base is not None:
        error = scale.top - seen if means.up else seen
        summaries["mce"] = _ratio(_over(means, error, _mean), scale.base)
        part = means.only(scale.losing)
        if scale.losing:
            summaries["relative_mce"] = _ratio(_over(part, _loss(part), _mean), scale.base)
    return summaries


def _over(
    means: _Cells, values: np.ndarray, reduce: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the mean over corruptions of a reduction over their severities, ignoring NaN."""
    ratios = []
    for name in dict.fromkeys(means.corruption):
        rows = np.flatnonzero(means.corruption == name)
        rows = rows[np.argsort(means.severity[rows], kind="stable")]
        ratios.append(reduce(values[:, rows], means.severity[rows]))
    every = np.stack(ratios)
    has_value = ~np.isnan(every)
    sums, counts = np.where(has_value, every, 0.0).sum(axis=0), has_value.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _ratio(values: np.ndarray, base: int) -> np.ndarray:
    """Return values relative to the baseline's; NaN where that is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values[base] > 0, values / values[base], np.nan)


def _area(clean: np.ndarray, part: np.ndarray, severity: np.ndarray) -> np.ndarray:
    """Return the mean height of the curve from severity 0 (clean) to the largest one."""
    from scipy.integrate import trapezoid

    heights = np.concatenate([clean[:, None], part], axis=1)
    places = np.concatenate([[0.0], severity])
    return np.asarray(trapezoid(heights, places, axis=1) / places[-1])


def _worst_views(cells: _Cells, seen: np.ndarray) -> list[str]:
    names = []
    for scores in seen if cells.up else -seen:
        measured = np.flatnonzero(~np.isnan(scores))
        at = measured[np.argmin(scores[measured])] if len(measured) else None
        view = None if at is None else View(cells.corruption[at], float(cells.severity[at]))
        names.append("" if view is None else view.name)
    return names
