"""The size that a difference takes, as a table."""

from __future__ import annotations

import numpy as np

from karat.core.formatting import middle_cut, plain, signed
from karat.ext.decide.power import Power
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result


def show_power(found: Power) -> None:
    """Print how many tasks, folds or items a difference takes."""
    show_result(power_table(found), [plain(found.sentence)], None, found.to_dict(), found.tasks)


def power_table(found: Power) -> Table:
    """Return one row per task: the spread and number of folds and items, and those needed."""
    rows = found.tasks
    spread = {name: map(_spread, rows[name]) for name in ("fold_spread", "item_spread")}
    number = {n: map(_needed, rows[n]) for n in ("folds", "folds_needed", "items", "items_needed")}
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("difference", [signed(each) for each in rows["difference"]]),
            text_column("sd folds", spread["fold_spread"]),
            text_column("folds", number["folds"]),
            text_column("needed", number["folds_needed"]),
            text_column("sd items", spread["item_spread"]),
            text_column("items", number["items"]),
            text_column("items needed", number["items_needed"]),
        ],
        starts=[0],
        caption=f"Folds and items that detect {found.difference:g} on a single task",
        notes=[
            "needed: folds or items for a two-sided test at 5 % with a power of 80 %; folds by the "
            "t-test corrected for overlapping training sets (∞: no number of folds is enough), "
            "items by a paired t-test of stored predictions.",
            *map(plain, found.notes),
        ],
    )


def _spread(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2g}"


def _needed(value: float) -> str:
    if np.isnan(value) or value == 0:
        return "–"
    return "∞" if np.isinf(value) else f"{value:,.0f}"
