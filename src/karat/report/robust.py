"""Robustness to corruption as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from karat.report.tables import Cell, Column, Table, best_of, metric_label, rounded, text_column

SCORES = (
    "corrupted: {mean}. retention: corrupted score as a share of the clean score. area: mean score "
    "from clean to the highest severity. worst: the worst view. In brackets: 95 % intervals over "
    "folds and draws."
)
MEANS = {False: "mean over corruptions of the mean over severities", True: "mean over severities"}
ERRORS = (
    "{ce}: sum of errors over severities divided by that of {baseline}; below 1 is more robust. "
    "rel. {ce}: the same for the increase of the error over clean data."
)
TITLES = {"mce": "mCE", "relative_mce": "rel. mCE", "ce": "CE", "relative_ce": "rel. CE"}


def robustness_table(found: pd.DataFrame, baseline: str | Sequence[str] | None = None) -> Table:
    """Return the table of ``karat.robustness``: one group per task (and corruption)."""
    keys = [name for name in ("task", "corruption") if name in found]
    group = found.groupby(keys, sort=False).ngroup().to_numpy()
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    # direction of each column: errors down, retention up, scores as their metric
    up, more = np.where(found["higher_is_better"], 1, -1), np.ones(len(found))
    ways = {"clean": up, "corrupted": up, "retention": more, "area": up, "worst": up}
    if baseline:
        ways |= {name: -more for name in TITLES if name in found}
    columns = [_column(found, name, sign, starts) for name, sign in ways.items()]
    columns.append(text_column("worst view", found["worst_view"], False, "task"))
    pairs = zip(found["metric"], found["higher_is_better"], strict=True)
    labels = [metric_label(name, bool(higher)) for name, higher in pairs]
    groups = {**{name: found[name] for name in keys}, "metric": labels}
    return Table(
        groups=[text_column(name, values, False) for name, values in groups.items()],
        model=text_column("model", found["model"], False),
        columns=columns,
        starts=starts,
        caption="Robustness to corruption.",
        notes=_notes(found, [baseline] if isinstance(baseline, str) else list(baseline or ())),
    )


def _notes(found: pd.DataFrame, baselines: list[str]) -> list[str]:
    single = "corruption" in found
    lines = [SCORES.format(mean=MEANS[single])]
    if baselines:
        name = " or ".join(baselines)
        lines.append(ERRORS.format(ce="CE" if single else "mCE", baseline=name))
    if not single:
        most = found.groupby("task", sort=False)["corruptions"].transform("max")
        for row in found[found["corruptions"] < most].itertuples():
            lines.append(
                f"{row.model} on {row.task}: {row.corruptions} of {most[row.Index]} corruptions."
            )
    return lines


def _column(found: pd.DataFrame, name: str, sign: np.ndarray, starts: list[int]) -> Column:
    best = best_of(found[name] * sign, starts)
    cells = []
    for value, low, high, is_best in zip(
        found[name], found[f"{name}_low"], found[f"{name}_high"], best, strict=True
    ):
        spread = "" if np.isnan(low) else f" [{rounded(low)}, {rounded(high)}]"
        cells.append(Cell(f"{rounded(value)}{spread}", bool(is_best)))
    part = "rank" if name in ("clean", "corrupted") else "task"
    return Column(TITLES.get(name, name), cells, part=part)
