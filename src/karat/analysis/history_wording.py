"""A run against earlier ones: what was compared in words, and the ranks as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.core.formatting import count, interval, middle_cut, percent_down, plain, rounded
from karat.corruptions.view import CLEAN
from karat.metrics.metric import metric_label
from karat.output.table import Cell, Column, Table, text_column
from karat.results.load import FAILED, OK, SIGNS

if TYPE_CHECKING:
    from karat.analysis.history import History

BRACKETS = (
    "difference: this run minus the best other. In brackets: 95 % interval over folds, corrected "
    "for overlapping training sets; an interval that contains 0 is not significant."
)
COVERAGE = "coverage: share of questions answered by this run / by the best other."


def history_sentence(history: History) -> str:
    """Return what was compared, and on how many values this run is the best."""
    ranks = history.ranks["rank"].dropna()
    others = count(len(history.others), "earlier run")
    text = f"{history.run.model} compared with {others}"
    if not len(ranks) or not history.others:
        return f"{text}."
    return f"{text}: the best, or as good, in {int((ranks == 1).sum())} of {len(ranks)} values."


def history_table(history: History) -> Table:
    """Return one group per task and view, one row per metric: this run and the best other."""
    rows = history.ranks
    group = rows.groupby(["task", "dataset", "view"], sort=False).ngroup().to_numpy()
    keys = ["task"]
    keys += ["dataset"] if (rows["dataset"] != rows["task"]).any() else []
    keys += ["view"] if (rows["view"] != CLEAN.name).any() else []
    labels = map(metric_label, rows["metric"], rows["higher_is_better"].map(bool))
    others = count(len(history.others), "other run")
    on_common = ", on common questions" if history.common else ""
    return Table(
        groups=[text_column(name, rows[name], right=False) for name in keys],
        model=text_column("metric", labels, right=False),
        columns=_columns(history),
        starts=np.flatnonzero(np.diff(group, prepend=-1)).tolist(),
        caption=f"{plain(history.run.folder.resolve().name)} against {others}{on_common}",
        notes=[COVERAGE] + [BRACKETS] * bool(rows["difference_low"].notna().any()),
    )


def _columns(history: History) -> list[Column]:
    rows = history.ranks
    leads = rows["rank"].eq(1).fillna(False).astype(bool)
    level = ((rows["difference"] == 0) | ~leads) & rows["best_value"].notna()
    others = zip(rows["best_value"], level, strict=True)
    ranks = zip(rows["rank"], rows["compared"], strict=True)
    names = (middle_cut(name) or "–" for name in rows["best_model"])
    differences = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    coverage = zip(rows["coverage"], rows["best_coverage"], strict=True)
    return [
        Column("this run", _values_of_run(history, leads)),
        text_column("rank", ("–" if pd.isna(rank) else f"{rank} of {of}" for rank, of in ranks)),
        text_column("best other", names, right=False),
        Column("its value", [Cell(rounded(value), bool(best)) for value, best in others]),
        text_column("difference", map(interval, *differences), part="task"),
        text_column("coverage", map(_shares, coverage), part="task"),
    ]


def _values_of_run(history: History, leads: pd.Series) -> list[Cell]:
    this_run = history.values["run"].iloc[0] if len(history.values) else ""
    failed = history.values.loc[history.values["run"] == this_run, "status"] != OK
    return [
        Cell(SIGNS[FAILED] if is_failed else "–", faint=True)
        if math.isnan(value)
        else Cell(rounded(value), best)
        for value, best, is_failed in zip(history.ranks["value"], leads, failed, strict=True)
    ]


def _shares(shares: Iterable[float]) -> str:
    """Return shares in percent, separated by a slash.

    >>> _shares([0.9999, 1.0])
    '99.9 % / 100 %'
    """
    return " / ".join(percent_down(share) for share in shares if not math.isnan(share)) or "–"
