"""The scores of a page by task, metric and model, with the spread over folds.

Curves over severities and epochs for a page, and the robustness table.
Provenance: runs with their commands and versions, and failed jobs.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.robustness import curves, robustness
from karat.errors import FAILURES, DataError, KaratError
from karat.reporting.leaderboard_output import robustness_table
from karat.reporting.notes import (
    PageIndex,
    ShownRun,
    compact,
    count,
    cut_text,
    first_sentences,
    short,
    size,
)
from karat.results.load import DECLINED, FAILED, NOT_RUN, OK, Cells, Gathered, learning_curves

#: one character per state of a cell
SIGNS = {OK: ".", FAILED: "f", DECLINED: "d", NOT_RUN: "n"}
#: maximum number of scores of secondary metrics
MAX_NUMBERS = 200_000


@dataclass(frozen=True)
class Metrics:
    """The metrics of each task (primary metric first) and their directions."""

    names: list[list[str]]
    higher: list[list[bool]]
    cut: list[str]


def metrics_of(given: Gathered, chosen: dict[str, str]) -> Metrics:
    """Return the metrics of each task, as many as there is room for."""
    pairs = given.scores[["task", "metric"]].drop_duplicates()
    seen: dict[str, list[str]] = {}
    for task, metric in zip(pairs["task"], pairs["metric"], strict=True):
        seen.setdefault(task, []).append(metric)
    names, higher, unknown = [], [], []
    room = MAX_NUMBERS // max(len(given.models) * len(chosen), 1)
    for task, first in chosen.items():
        rest = [metric for metric in seen.get(task, []) if metric != first]
        directions = {first: given.higher(first)}
        for metric in rest[: max(room, 0)]:
            try:
                directions[metric] = given.higher(metric)
            except KaratError:
                unknown.append(f"{short(metric)} of {short(task)}: unknown direction.")
        names.append(list(directions))
        higher.append(list(directions.values()))
    cut = first_sentences(unknown, lambda n: f"{n} more metrics with unknown direction.")
    if any(len(seen.get(task, [])) > room + 1 for task in chosen):
        cut.append(f"Only the first {room + 1} metrics of each task are shown (too many scores).")
    return Metrics(names, higher, cut)


def means_of(
    given: Gathered, cells: Cells, metrics: Metrics, order: np.ndarray
) -> list[list[np.ndarray]]:
    """Return the mean over folds by task, metric and model, in this order of models."""
    table = given.scores[given.scores["value"].notna()]
    means = table.groupby(["task", "metric", "model"], sort=False)["value"].mean()
    by_pair = {key: part.droplevel([0, 1]) for key, part in means.groupby(level=[0, 1], sort=False)}
    names = pd.Index([cells.models[m] for m in order])
    found = []
    for t, (task, own) in enumerate(zip(cells.tasks, metrics.names, strict=True)):
        first = cells.means[order, t]
        rest = [by_pair.get((task, metric), pd.Series(dtype=float)) for metric in own[1:]]
        found.append([first, *(part.reindex(names).to_numpy(dtype=float) for part in rest)])
    return found


def spread_of(cells: Cells, order: np.ndarray) -> list[np.ndarray]:
    """Return the standard deviation over folds by task and model; NaN for one fold."""
    found = []
    for table in cells.folds:
        values = table[order]
        count = (~np.isnan(values)).sum(axis=1)
        spread = np.full(len(values), np.nan)
        several = count > 1
        if several.any():
            spread[several] = np.nanstd(values[several], axis=1, ddof=1)
        found.append(spread)
    return found


def folds_of(
    cells: Cells, order: np.ndarray, max_numbers: int
) -> tuple[list[list[Any]] | None, list[str]]:
    """Return the scores of folds by task and model, unless there are too many."""
    numbers = sum(table.size for table in cells.folds)
    if numbers > max_numbers:
        return None, [f"Scores of single folds are left out (too many: {numbers:,})."]
    found = []
    for table, up in zip(cells.folds, cells.higher, strict=True):
        values = (table if up else -table)[order]
        found.append([None if np.isnan(row).all() else row for row in values])
    return found, []


def states_of(cells: Cells, order: np.ndarray) -> list[str]:
    """Return one text per task with one character per model."""
    return ["".join(SIGNS[state] for state in column) for column in cells.states[order].T]


#: maximum bytes of the curves of each kind, points of a line, and rows of the robustness table
LINES, MAX_POINTS, MAX_ROWS = 700_000, 60, 1_000

Charts = list[dict[str, Any]]


def make_curves(runs: Any, shown: PageIndex) -> tuple[Charts, list[str]]:
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


def make_learning(runs: Any, shown: PageIndex) -> tuple[Charts, list[str]]:
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


def _lines(part: pd.DataFrame, x: str, shown: PageIndex) -> Charts:
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


def _fitting(charts: Charts, shown: PageIndex, what: str) -> tuple[Charts, list[str]]:
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


#: maximum number of characters of a log and of all logs, and of listed failures
LOG, LOGS, MAX_FAILURES = 4_000, 600_000, 2_000
#: maximum length of a reason
INFO = 1_000


def make_runs(shown: PageIndex) -> list[dict[str, Any]]:
    """Return the folder, command, seed, versions and job counts of each run."""
    return [_run(run) for run in shown.runs]


def _run(shown: ShownRun) -> dict[str, Any]:
    about = shown.run.about
    statuses = Counter(record["status"] for record in shown.records)
    return {
        "model": shown.model,
        "folder": shown.run.folder.resolve().name,
        "command": text_of(about.get("command")),
        "seed": about.get("seed"),
        "versions": versions(about),
        "platform": about.get("platform"),
        "jobs": sum(record["fold"] is not None for record in shown.records),
        "ok": statuses["ok"],
        "failed": sum(statuses[status] for status in FAILURES),
    }


def versions(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of Karat, Python, the model and libraries."""
    found = {name: about.get(name) for name in ("karat", "python")} | {
        "model": about.get("version")
    }
    libraries = about.get("versions")
    found |= libraries if isinstance(libraries, Mapping) else {}
    return {str(name): str(each) for name, each in found.items() if each}


def text_of(command: Any) -> str | None:
    """Return a command as one line, whether it is stored as a text or as a list.

    >>> text_of(["karat", "run", "my suite"])
    "karat run 'my suite'"
    """
    if isinstance(command, list | tuple):
        return shlex.join(map(str, command))
    return str(command) if command else None


def make_failures(shown: PageIndex) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the failed jobs with the ends of their logs, and notes on what was left out."""
    failed = list(shown.failed)
    width = min(LOG, LOGS // max(min(len(failed), MAX_FAILURES), 1))
    found, unread = [], []
    for run, task, record in failed[:MAX_FAILURES]:
        log = _log(run, record, width)
        if log is None:
            label = f"{short(shown.models[run.model])} on {short(shown.tasks[task])}"
            unread.append(f"{label}, fold {record['fold']}: the log cannot be read.")
        facts = {key: record[key] for key in ("fold", "status")}
        facts |= {"info": cut_text(str(record["info"]), INFO), "log": log or ""}
        found.append({"model": run.model, "task": task, **facts})
    cut = first_sentences(unread, lambda n: f"{n} more logs cannot be read.")
    if len(failed) > MAX_FAILURES:
        more = count(len(failed) - MAX_FAILURES, "failed job")
        cut.append(f"{more} more, see results.csv in the run folders.")
    if width < LOG and any(each["log"] for each in found):
        cut.append(f"Logs are cut to their last {width:,} characters.")
    unlisted = sum(
        record["status"] in FAILURES and record["task"] not in run.tasks
        for run in shown.runs
        for record in run.records
    )
    if unlisted:
        cut.append(f"{count(unlisted, 'failed job')} of tasks without any score not listed.")
    return found, cut


def _log(shown: ShownRun, record: Mapping[str, Any], width: int) -> str | None:
    """Return the end of a job's log; empty if there is none, None if it cannot be read."""
    path = shown.run.log(record)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4 * width, 0))
            return file.read().decode("utf-8", "replace")[-width:]
    except FileNotFoundError:
        return ""
    except OSError:
        return None
