"""Curves over severities and epochs for a page, and the robustness table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.report.compact import compact, size
from karat.report.robust import robustness_table
from karat.report.shown import Shown, count
from karat.results.epochs import learning_curves
from karat.results.robustness import curves, robustness

#: maximum bytes of the curves of each kind, points of a line, and rows of the robustness table
LINES, MAX_POINTS, MAX_ROWS = 700_000, 60, 1_000

Charts = list[dict[str, Any]]


def make_curves(runs: Any, shown: Shown) -> tuple[Charts, list[str]]:
    """Return one chart per task and corruption: scores over severities, with 0 for clean.

    Bands are standard deviations over folds and draws. A composition with a single severity has no
    curve.
    """
    try:
        found = curves(runs)
    except DataError:  # no task has a corrupted view
        return [], []
    charts = []
    keys = ["task", "metric", "higher_is_better", "corruption"]
    for (task, metric, higher, corruption), part in found.groupby(keys, sort=False):
        if "+" in str(corruption) and part["severity"].nunique() <= 2:
            continue
        facts = {"metric": metric, "higher": bool(higher), "corruption": corruption}
        lines = [_band(line) for line in _lines(part, "severity", shown)]
        charts.append({"task": _place(shown.tasks, task), **facts, "lines": lines})
    return _fitting(charts, shown, "corruption")


def make_learning(runs: Any, shown: Shown) -> tuple[Charts, list[str]]:
    """Return one chart per task and metric: values by epoch, over folds."""
    charts = []
    for (task, metric), part in learning_curves(runs).groupby(["task", "metric"], sort=False):
        lines = _lines(part, "epoch", shown)
        charts.append({"task": _place(shown.tasks, task), "metric": metric, "lines": lines})
    found, cut = _fitting(charts, shown, "learning")
    if any(len(line["x"]) == MAX_POINTS for chart in found for line in chart["lines"]):
        cut.append(f"Learning curves have at most {MAX_POINTS} evenly sampled points.")
    return found, cut


def make_robustness(runs: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the robustness table as texts, or None without corrupted views."""
    try:
        table = robustness_table(robustness(runs))
    except DataError:
        return None, []
    columns = table.all_columns
    rows = [[column.cells[row].text for column in columns] for row in range(len(table))]
    cut = []
    if len(rows) > MAX_ROWS:
        cut.append(f"The robustness table shows {MAX_ROWS:,} of {len(rows):,} rows.")
    return {"columns": [column.name for column in columns], "rows": rows[:MAX_ROWS]}, cut


def _lines(part: pd.DataFrame, x: str, shown: Shown) -> Charts:
    found = []
    for model, line in part.groupby("model", sort=False):
        place = _place(shown.models, model)
        line = line.sort_values(x, kind="stable")
        picked = np.linspace(0, len(line) - 1, min(len(line), MAX_POINTS)).round().astype(int)
        values = {name: line[name].to_numpy(dtype=float)[picked] for name in (x, "mean", "std")}
        found.append({"model": place, "x": values.pop(x), **values})
    shown_lines = [line for line in found if line["model"] is not None]
    return sorted(shown_lines, key=lambda line: line["model"])


def _band(line: dict[str, Any]) -> dict[str, Any]:
    spread = line.pop("std")
    return {**line, "low": line["mean"] - spread, "high": line["mean"] + spread}


def _place(names: list[str], name: Any) -> int | None:
    return names.index(name) if name in names else None


def _fitting(charts: Charts, shown: Shown, what: str) -> tuple[Charts, list[str]]:
    """Return the charts with the lines of as many models as there is room for, best first."""
    charts = [chart for chart in charts if chart["task"] is not None and chart["lines"]]
    needed = np.zeros(len(shown.models))
    for line in (line for chart in charts for line in chart["lines"]):
        needed[line["model"]] += size(compact(line))
    models = int(np.searchsorted(np.cumsum(needed), LINES, side="right"))
    if models >= len(needed):
        return charts, []
    charts = [
        {**chart, "lines": [line for line in chart["lines"] if line["model"] < models]}
        for chart in charts
    ]
    note = f"Curves of {what} are shown for the best {count(models, 'model')}."
    return [chart for chart in charts if chart["lines"]], [note]
