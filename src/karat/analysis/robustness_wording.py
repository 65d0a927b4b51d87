"""Robustness to corruption in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from karat.core.formatting import count, percent, rounded
from karat.metrics.metric import metric_label
from karat.output.table import Cell, Column, Table, best_of, text_column

SCORES = (
    "corrupted: {mean}. retention: corrupted score as a share of the clean score. area: mean score "
    "from clean to the highest severity. worst: the worst view. In brackets: 95 % intervals over "
    "folds and draws."
)
MEANS = {False: "mean over corruptions of the mean over severities", True: "mean over severities"}
ERRORS = (
    "{ce}: mean error divided by that of {baseline}; below 1 is more robust. rel. {ce}: the same "
    "for the increase of the error over clean data."
)
TITLES = {"mce": "mCE", "relative_mce": "rel. mCE", "ce": "CE", "relative_ce": "rel. CE"}
CAPTION = "Robustness to corruption."


def robustness_sentence(rows: pd.DataFrame) -> str:
    """Return which model keeps the largest share of its clean score, on average over tasks."""
    models, tasks = rows["model"].nunique(), rows["task"].nunique()
    text = f"{count(models, 'model')} on corrupted data of {count(tasks, 'task')}"
    by_model = rows.groupby("model", sort=False)["retention"]
    kept_shares = by_model.mean()[by_model.count() == by_model.size()].dropna()
    if len(kept_shares) < 2:
        return f"{text}."
    best = kept_shares.idxmax()
    return f"{text}: {best} keeps the most of its clean score, {percent(kept_shares[best])}."


def robustness_table(rows: pd.DataFrame, baseline: str | Sequence[str] | None = None) -> Table:
    """Return the table of ``karat.robustness``: one group per task (and corruption)."""
    keys = [name for name in ("task", "corruption") if name in rows]
    group = rows.groupby(keys, sort=False).ngroup().to_numpy()
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    # direction of each column: errors down, retention up, scores as their metric
    up, more = np.where(rows["higher_is_better"], 1, -1), np.ones(len(rows))
    directions = {"clean": up, "corrupted": up, "retention": more, "area": up, "worst": up}
    if baseline:
        directions |= {name: -more for name in TITLES if name in rows}
    columns = [_column(rows, name, sign, starts) for name, sign in directions.items()]
    columns.append(text_column("worst view", rows["worst_view"], False, "task"))
    pairs = zip(rows["metric"], rows["higher_is_better"], strict=True)
    labels = [metric_label(name, bool(higher)) for name, higher in pairs]
    groups = {**{name: rows[name] for name in keys}, "metric": labels}
    return Table(
        groups=[text_column(name, values, False) for name, values in groups.items()],
        model=text_column("model", rows["model"], False),
        columns=columns,
        starts=starts,
        caption=CAPTION,
        notes=_legend(rows, [baseline] if isinstance(baseline, str) else list(baseline or ())),
    )


def _legend(rows: pd.DataFrame, baselines: list[str]) -> list[str]:
    single = "corruption" in rows
    lines = [SCORES.format(mean=MEANS[single])]
    if baselines:
        name = " or ".join(baselines)
        lines.append(ERRORS.format(ce="CE" if single else "mCE", baseline=name))
    return lines


def _column(rows: pd.DataFrame, name: str, sign: np.ndarray, starts: list[int]) -> Column:
    best = best_of(rows[name] * sign, starts)
    ends = (rows[f"{name}{end}"] for end in ("", "_low", "_high"))
    cells = []
    for value, low, high, is_best in zip(*ends, best, strict=True):
        spread = "" if np.isnan(low) else f" [{rounded(low)}, {rounded(high)}]"
        cells.append(Cell(f"{rounded(value)}{spread}", bool(is_best)))
    part = "rank" if name in ("clean", "corrupted") else "task"
    return Column(TITLES.get(name, name), cells, part=part)
