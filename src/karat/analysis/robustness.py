"""Robustness of models to corruption, with the measures of ImageNet-C.

An error is 1 − score where higher is better, else the score itself. Sums are over the severities of
one corruption, means over corruptions; compositions are summarized separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.view import View
from karat.errors import DataError, did_you_mean
from karat.metrics.metric import get_metric
from karat.results.load import named_scores
from karat.results.tables import FINAL_EPOCH

#: resamples of folds and draws for the intervals
RESAMPLES = 1000
SEED = 42
SUMMARIES = ("clean", "corrupted", "mce", "relative_mce", "retention", "area", "worst")
FOLD, UNIT, VIEW = ["repeat", "fold"], ["repeat", "fold", "draw"], ["corruption", "severity"]


def robustness(
    runs: Any,
    *,
    baseline: str | Sequence[str] | None = None,
    metric: str | None = None,
    compositions: bool = False,
    by_corruption: bool = False,
) -> pd.DataFrame:
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

    Returns
    -------
    pandas.DataFrame
        One row per task and model. ``clean`` and ``corrupted`` are mean scores; ``mce`` is the mean
        over corruptions of the model's summed error relative to the baseline's, ``relative_mce``
        that of the summed losses against clean; ``retention`` is the mean share of the clean score,
        ``area`` the mean height of the curve of scores over severities, ``worst`` the worst mean
        score of a corruption at a severity, named in ``worst_view``. Each has a 95 % interval,
        ``…_low`` and ``…_high``, by resampling folds and draws within them; NaN if there is one of
        each. ``corruptions`` counts the corruptions with a score at every severity, which are used.

    Raises
    ------
    DataError
        If no run has corrupted scores, or the metric or baseline is unknown.

    Examples
    --------
    >>> table = karat.robustness("results", baseline="onehot")  # doctest: +SKIP
    >>> table[["task", "model", "clean", "corrupted", "mce"]]  # doctest: +SKIP
    """
    table = _scores(runs, metric)
    composed = table["corruption"].str.contains("+", regex=False)
    table = table[(composed == compositions) | (table["corruption"] == "")]
    if not (table["corruption"] != "").any():
        what = "composed" if compositions else "single"
        raise DataError(f"no task has a {what} corruption; add corruptions to a task.")
    baselines = [baseline] if isinstance(baseline, str) else list(baseline or ())
    known = list(pd.unique(table["model"]))
    if baselines and not set(baselines) & set(known):
        hint = did_you_mean(baselines[0], known) or f" There are: {', '.join(known)}."
        raise DataError(f'baseline: there is no run of "{baselines[0]}".{hint}')
    frames = []
    for _, part in table.groupby("task", sort=False):
        if (part["corruption"] != "").any():
            frames += _frames(part, baselines, by_corruption)
    return pd.concat(frames, ignore_index=True)


def curves(runs: Any, *, metric: str | None = None) -> pd.DataFrame:
    """Return mean, std and count of scores by task, model, corruption and severity (0 is clean)."""
    table = _scores(runs, metric)
    corrupted = table[table["corruption"] != ""]
    clean = table[table["corruption"] == ""].drop(columns=VIEW)
    pairs = corrupted[["task", "corruption"]].drop_duplicates().assign(severity=0.0)
    both = pd.concat([clean.merge(pairs, on="task"), corrupted], ignore_index=True)
    keys = ["task", "model", "metric", "higher_is_better", *VIEW]
    grouped = both.groupby(keys, sort=False)["value"]
    found = grouped.agg(["mean", "std", "count"]).reset_index()
    return found.sort_values(keys, kind="stable", ignore_index=True)


def _scores(runs: Any, metric: str | None) -> pd.DataFrame:
    """Return the final scores in one metric per task, without corruptions of severity 0."""
    table, firsts, directions = named_scores(runs)
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
        known = dirty[dirty["value"].notna()]
        views = pd.MultiIndex.from_frame(known[VIEW].drop_duplicates())
        units = pd.MultiIndex.from_frame(dirty[UNIT].drop_duplicates().sort_values(UNIT))
        folds = units.droplevel("draw").unique()
        seen = np.full((len(models), len(views), len(units)), np.nan)
        at = (models.get_indexer(known["model"]), _places(views, known), _places(units, known))
        seen[at] = known["value"]
        clean = np.full((len(models), len(folds)), np.nan)
        plain = plain[_places(folds, plain) >= 0]
        clean[models.get_indexer(plain["model"]), _places(folds, plain)] = plain["value"]
        fold = folds.get_indexer(units.droplevel("draw"))
        corruption, severity = (np.asarray(views.get_level_values(name)) for name in VIEW)
        up = bool(part["higher_is_better"].iloc[0])
        return cls(models.tolist(), corruption, severity, fold, clean[:, fold], seen, up)

    def only(self, corruption: str) -> _Cells:
        """Return the views of one corruption."""
        rows = self.corruption == corruption
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
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0.0) @ times.T, known.astype(float) @ times.T
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


# -- numbers --------------------------------------------------------------------------------


def _frames(part: pd.DataFrame, baselines: Sequence[str], each: bool) -> list[pd.DataFrame]:
    """Return the rows of a task: one per model, or one per corruption and model."""
    first = part.iloc[0]
    cells = _Cells.of(part)
    base = next((cells.models.index(name) for name in baselines if name in cells.models), None)
    keys = {"metric": first["metric"], "higher_is_better": cells.up}
    if not each:
        return [_rows({"task": first["task"]}, keys, cells, base)]
    frames = []
    for name in dict.fromkeys(cells.corruption):
        names = {"task": first["task"], "corruption": name}
        found = _rows(names, keys, cells.only(name), base).drop(columns="corruptions")
        renamed = {f"{old}mce{end}": f"{old}ce{end}" for old in _OLD for end in ("", *_ENDS)}
        frames.append(found.rename(columns=renamed))
    return frames


_OLD, _ENDS = ("", "relative_"), {"_low": 2.5, "_high": 97.5}


def _rows(
    names: dict[str, Any], keys: dict[str, Any], cells: _Cells, base: int | None
) -> pd.DataFrame:
    means = cells.averaged(np.ones((1, len(cells.fold))))
    found = _summaries(means, base)
    frame = pd.DataFrame({**names, "model": cells.models, **keys})
    several = len(cells.fold) > 1
    times = cells.resamples(RESAMPLES) if several else np.empty((0, len(cells.fold)))
    drawn = _summaries(cells.averaged(times), base)
    for name in SUMMARIES:
        frame[name] = found[name][:, 0]
        # clean scores do not vary over draws
        spread = drawn[name] if name != "clean" or cells.fold.max() > 0 else drawn[name][:, :0]
        for end, share in _ENDS.items():
            # NaN where more than half of the resamples are NaN
            known = (~np.isnan(spread)).sum(axis=1) > spread.shape[1] / 2
            edge = np.full(len(spread), np.nan)
            if known.any():
                edge[known] = np.nanpercentile(spread[known], share, axis=1)
            frame[f"{name}{end}"] = edge
    seen = means.seen[:, :, 0]
    frame["worst_view"] = _worst_views(cells, seen)
    frame["corruptions"] = [
        len(set(cells.corruption) - set(cells.corruption[np.isnan(scores)])) for scores in seen
    ]
    order = np.argsort(frame["corrupted"] * (-1 if cells.up else 1), kind="stable")
    return frame.iloc[order]


def _summaries(means: _Cells, base: int | None) -> dict[str, np.ndarray]:
    """Return every measure by model and resample."""
    clean, seen = means.clean, means.seen
    before = clean[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        retained = seen / before if means.up else before / seen
    retained = np.where(np.isfinite(retained), retained, np.nan)
    nothing = np.full(clean.shape, np.nan)
    bad = np.where(np.isnan(seen), np.inf if means.up else -np.inf, seen)
    worst = bad.min(axis=1) if means.up else bad.max(axis=1)
    found = {
        "clean": clean,
        "corrupted": _over(means, seen, lambda part, _: part.mean(axis=1)),
        "mce": nothing,
        "relative_mce": nothing,
        "retention": _over(means, retained, lambda part, _: part.mean(axis=1)),
        "area": _over(means, seen, lambda part, severity: _area(clean, part, severity)),
        "worst": np.where(np.isinf(worst), np.nan, worst),
    }
    if base is not None:
        error = 1 - seen if means.up else seen
        loss = before - seen if means.up else seen - before
        found["mce"] = _over(means, error, lambda part, _: _ratio(part, base))
        found["relative_mce"] = _over(means, loss, lambda part, _: _ratio(part, base))
    return found


def _over(
    means: _Cells, values: np.ndarray, reduce: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the mean over corruptions of a reduction over their severities, ignoring NaN."""
    found = []
    for name in dict.fromkeys(means.corruption):
        rows = np.flatnonzero(means.corruption == name)
        rows = rows[np.argsort(means.severity[rows], kind="stable")]
        found.append(reduce(values[:, rows], means.severity[rows]))
    every = np.stack(found)
    known = ~np.isnan(every)
    sums, counts = np.where(known, every, 0.0).sum(axis=0), known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _ratio(part: np.ndarray, base: int) -> np.ndarray:
    """Return sums relative to the baseline's; NaN where the baseline has no error."""
    sums = part.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[base] > 0, sums / sums[base], np.nan)


def _area(clean: np.ndarray, part: np.ndarray, severity: np.ndarray) -> np.ndarray:
    """Return the mean height of the curve from severity 0 (clean) to the largest one."""
    from scipy.integrate import trapezoid

    heights = np.concatenate([clean[:, None], part], axis=1)
    places = np.concatenate([[0.0], severity])
    return np.asarray(trapezoid(heights, places, axis=1) / places[-1])


def _worst_views(cells: _Cells, seen: np.ndarray) -> list[str]:
    names = []
    for scores in seen if cells.up else -seen:
        known = np.flatnonzero(~np.isnan(scores))
        at = known[np.argmin(scores[known])] if len(known) else None
        view = None if at is None else View(cells.corruption[at], float(cells.severity[at]))
        names.append("" if view is None else view.name)
    return names
