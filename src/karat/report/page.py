"""The report: one HTML file that needs nothing else: the board, curves and failures of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import FAILURES, DataError
from karat.report.charts import Line, bar_chart, colour, line_chart
from karat.report.notes import plain
from karat.report.robust import robustness_table
from karat.report.style import STYLE
from karat.report.tables import Cell, Column, Table, make_table, metric_label
from karat.results.epochs import learning_curves
from karat.results.files import write_atomic
from karat.results.gather import named_runs, opened
from karat.results.leaderboard import leaderboard
from karat.results.robustness import curves, robustness

LEARNING = "Means over the folds that were still training; the band is a standard deviation."


def report(runs: Any, path: str | Path = "report.html") -> Path:
    """Write the report of some runs to a file and return its path.

    ``runs`` are run folders, folders of them, or Run objects.
    """
    found = opened(runs)
    board = leaderboard(found)
    numbers = {str(model): i for i, model in enumerate(board.index)}
    sections = [
        _section("Leaderboard", _table(make_table(board))),
        *_corruption(found, numbers),
        *_learning(found, numbers),
        *_failures(found),
        _section("How this was made", _made(found)),
    ]
    title = " · ".join(dict.fromkeys(str(run.about["suite"]) for run in found))
    write_atomic(Path(path), _page(title, sections))
    return Path(path)


def _page(title: str, sections: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)} – Karat</title><style>{STYLE}</style></head>\n"
        f'<body><header><p class="brand">Karat</p><h1>{escape(title)}</h1></header>\n<main>\n'
        + "\n".join(sections)
        + "\n</main></body></html>\n"
    )


def _section(title: str, content: str, level: int = 2) -> str:
    return f"<section><h{level}>{escape(title)}</h{level}>{content}</section>"


# -- tables ---------------------------------------------------------------------------------


def _table(table: Table) -> str:
    columns = table.all_columns
    head = "".join(
        f'<th scope="col"{_right(column.right)}>{escape(column.name)}'
        + (f"<small>{escape(column.label)}</small>" if column.label else "")
        + "</th>"
        for column in columns
    )
    rows = []
    for row in range(len(table)):
        kind = ' class="start"' if row and row in table.starts else ""
        cells = "".join(
            _cell(column.cells[row], column.right, column is table.model) for column in columns
        )
        rows.append(f"<tr{kind}>{cells}</tr>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    caption = f"<p>{escape(table.caption)}</p>" if table.caption else ""
    return (
        f'{caption}<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><ul class="notes">{notes}</ul>'
    )


def _cell(cell: Any, right: bool, heading: bool) -> str:
    tag, scope = ("th", ' scope="row"') if heading else ("td", "")
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.best else text
    faint = ' class="faint"' if cell.faint else _right(right)
    return f"<{tag}{scope}{faint}>{text}</{tag}>"


def _right(right: bool) -> str:
    return ' class="number"' if right else ""


# -- corruption -----------------------------------------------------------------------------


def _corruption(runs: Any, numbers: dict[str, int]) -> Iterator[str]:
    try:
        found, costs = curves(runs), robustness(runs)
    except DataError:  # no task has a corrupted view
        return
    parts = [_table(replace(robustness_table(costs), caption=""))]
    for (task, metric), part in found.groupby(["task", "metric"], sort=False):
        label = metric_label(str(metric), bool(part["higher_is_better"].iloc[0]))
        clean = part[part["severity"] == 0].drop_duplicates("model")
        bars = [
            (str(model), numbers.get(str(model), 0), float(value))
            for model, value in zip(clean["model"], clean["mean"], strict=True)
        ]
        figures = [_figure("clean", bar_chart(bars, f"{task}, clean {metric}"))]
        figures += [
            _figure(
                str(name),
                line_chart(_lines(rows, "severity", numbers), "severity", f"{task}, {name}"),
            )
            for name, rows in part.groupby("corruption", sort=False)
            if rows["severity"].nunique() > 2 or "+" not in str(name)
        ]
        models = [str(model) for model in clean["model"]]
        parts.append(_group(f"{task}   {label}", models, numbers, figures))
    yield _section("What corruption costs", "".join(parts))


# -- learning -------------------------------------------------------------------------------


def _learning(runs: Any, numbers: dict[str, int]) -> Iterator[str]:
    found = learning_curves(runs)
    parts = []
    for task, part in found.groupby("task", sort=False):
        figures = [
            _figure(
                str(metric).replace("_", " "),
                line_chart(_lines(rows, "epoch", numbers), "epoch", f"{task}, {metric}"),
            )
            for metric, rows in part.groupby("metric", sort=False)
        ]
        models = [str(model) for model in part["model"].unique()]
        parts.append(_group(str(task), models, numbers, figures))
    if parts:
        yield _section("How heads learned", f"<p>{LEARNING}</p>" + "".join(parts))


def _lines(rows: pd.DataFrame, x: str, numbers: dict[str, int]) -> list[Line]:
    return [
        Line(
            str(model),
            numbers.get(str(model), 0),
            line[x].astype(float).tolist(),
            line["mean"].astype(float).tolist(),
            np.nan_to_num(line["std"].to_numpy(dtype=float)).tolist(),
        )
        for model, line in rows.groupby("model", sort=False)
    ]


def _group(
    title: str, models: Sequence[str], numbers: dict[str, int], figures: Sequence[str]
) -> str:
    keys = "".join(
        f'<li><i class="key {colour(numbers.get(model, 0))}"></i>{escape(model)}</li>'
        for model in models
    )
    return _section(
        title, f'<ul class="keys">{keys}</ul><div class="charts">{"".join(figures)}</div>', 3
    )


def _figure(title: str, chart: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>" if chart else ""


# -- failures and origin --------------------------------------------------------------------


def _failures(runs: Any) -> Iterator[str]:
    rows = [
        (name, tasks.get(str(record["task"]), str(record["task"])), record["fold"], record["info"])
        for run, name, tasks in named_runs(runs)
        for record in run.records()
        if record["status"] in FAILURES
    ]
    if rows:
        yield _section(f"Failures: {len(rows)}", _rows(("model", "task", "fold", "reason"), rows))


def _made(runs: Sequence[Any]) -> str:
    keys = ("model", "suite", "constraint", "seed", "stamp", "karat")
    return _rows(keys, [[run.about.get(key, "") for key in keys] for run in runs])


def _rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    model, *columns = (
        Column(name, [Cell(plain(value)) for value in values], right=False)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    )
    return _table(Table([], model, columns, [], "", []))
