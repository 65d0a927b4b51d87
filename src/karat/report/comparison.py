"""A comparison of a run with other runs as a table."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.corruptions.view import CLEAN
from karat.report.formats import DOCUMENTS, dump_json, records
from karat.report.notes import SIGNS, middle_cut, plain
from karat.report.shown import count
from karat.report.tables import Cell, Column, Table, metric_label, rounded, text_column
from karat.report.terminal import print_board
from karat.results.cells import FAILED, OK
from karat.results.compare import Comparison

DIFFERENCE = ("difference", "difference_low", "difference_high")
BRACKETS = (
    "difference: this run minus the best other. In brackets: 95 % interval over folds, corrected "
    "for overlapping training sets; an interval that contains 0 is not significant."
)


def show_comparison(found: Comparison, shape: str | None = None, *, as_json: bool = False) -> None:
    """Print a comparison in a format; ``as_json`` is the format "json"."""
    if as_json or shape == "json":
        sys.stdout.write(to_json(found))
        return
    if shape == "csv":
        sys.stdout.write(found.ranks.to_csv(index=False, lineterminator="\n"))
        return
    table = comparison_table(found)
    if shape in DOCUMENTS:
        sys.stdout.write(DOCUMENTS[shape](table))
        return
    console = Console(highlight=False)
    console.print(Text(f" {table.caption}\n"), soft_wrap=True)
    print_board(table, console)


def comparison_table(found: Comparison) -> Table:
    """Return one group per task and view, one row per metric: this run and the best other."""
    rows = found.ranks
    keys = ["task", "dataset", "view"]
    group = rows.groupby(keys, sort=False).ngroup().to_numpy()
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    shown = ["task"]
    shown += ["dataset"] if (rows["dataset"] != rows["task"]).any() else []
    shown += ["view"] if (rows["view"] != CLEAN.name).any() else []
    labels = map(metric_label, rows["metric"], rows["higher_is_better"].map(bool))
    return Table(
        groups=[text_column(name, rows[name], right=False) for name in shown],
        model=text_column("metric", labels, right=False),
        columns=_columns(rows, _states(found)),
        starts=starts,
        caption=caption(found),
        notes=[*_legend(rows), *map(plain, found.notes)],
    )


def caption(found: Comparison) -> str:
    """Return which runs are compared."""
    runs = count(len(found.others), "other run")
    on = ", on common questions" if found.common else ""
    return f"{plain(found.run.folder.resolve().name)} against {runs}{on}"


def to_json(found: Comparison) -> str:
    """Return both tables and the notes as JSON."""
    whole = {
        "run": found.run.folder.resolve().name,
        "common": found.common,
        "values": records(found.values),
        "ranks": records(found.ranks),
        "notes": found.notes,
    }
    return dump_json(whole)


def _columns(rows: pd.DataFrame, states: list[str]) -> list[Column]:
    alone = rows["best_value"].isna()
    leads = rows["rank"].eq(1).fillna(False).astype(bool)
    level = (rows["difference"] == 0) | ~leads
    own = [
        Cell(SIGNS.get(state, "–"), faint=True) if math.isnan(value) else Cell(rounded(value), best)
        for value, best, state in zip(rows["value"], leads, states, strict=True)
    ]
    others = zip(rows["best_value"], level & ~alone, strict=True)
    return [
        Column("this run", own),
        text_column("rank", map(_rank, rows["rank"], rows["compared"])),
        text_column(
            "best other", (middle_cut(name) or "–" for name in rows["best_model"]), right=False
        ),
        Column("its value", [Cell(rounded(value), bool(best)) for value, best in others]),
        text_column("difference", map(_difference, *(rows[n] for n in DIFFERENCE)), part="task"),
        text_column(
            "coverage", map(_covered, rows["coverage"], rows["best_coverage"]), part="task"
        ),
    ]


def _states(found: Comparison) -> list[str]:
    """Return the state of this run in each row."""
    name = found.values["run"].iloc[0] if len(found.values) else ""
    own = found.values[found.values["run"] == name]
    return [FAILED if state != OK else OK for state in own["status"]]


def _rank(rank: Any, compared: int) -> str:
    return "–" if pd.isna(rank) else f"{rank} of {compared}"


def _difference(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "–"
    spread = "" if math.isnan(low) else f" [{_signed(low)}, {_signed(high)}]"
    return _signed(value) + spread


def _signed(value: float) -> str:
    text = rounded(abs(value))
    return text if not float(text) else f"{'-' if value < 0 else '+'}{text}"


def _covered(own: float, other: float) -> str:
    return " / ".join(_share(share) for share in (own, other) if not math.isnan(share)) or "–"


def _share(share: float) -> str:
    """Format a share in percent, rounded down, so that only 1 is 100 %.

    >>> _share(0.9999), _share(1.0)
    ('99.9 %', '100 %')
    """
    return "100 %" if share == 1 else f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def _legend(rows: pd.DataFrame) -> list[str]:
    coverage = "coverage: share of questions answered by this run / by the best other."
    return [coverage, BRACKETS] if rows["difference_low"].notna().any() else [coverage]
