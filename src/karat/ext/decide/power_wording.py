"""How many tasks, folds and items a difference takes, in words and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.core.formatting import count, middle_cut, signed
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.ext.decide.power import Power

#: more tasks than this are as good as no number
MOST = 1_000_000


def power_sentence(power: Power, fewest: int) -> str:
    """Return the answer in one paragraph; below the fewest tasks there is none over tasks."""
    first, second = power.models
    start = f"From the differences of {first} and {second} on {count(len(power.tasks), 'task')}"
    if np.isnan(power.needed):
        single = "; the numbers are those of single tasks" if len(power.tasks) else ""
        few = f"the number of tasks cannot be estimated: at least {fewest} are needed"
        return f"{start}, {few}{single}."
    text = (
        f"{start}: to detect a difference of {power.difference:g} over tasks with a power of "
        f"80 % (two-sided paired t-test at 5 %), about {_number(power.needed)} tasks with "
        f"{power.folds:.3g} folds each are needed (95 % interval {_number(power.needed_low)} to "
        f"{_number(power.needed_high)}); the {len(power.tasks)} tasks at hand detect about "
        f"{power.detectable:.2g}. The test of wins and losses, the default of karat compare, "
        f"needs about {_number(power.needed_wins)} tasks."
    )
    if power.needed_any_folds < power.needed:
        return (
            f"{text} With more folds per task, at least {_number(power.needed_any_folds)} "
            "tasks are still needed."
        )
    return f"{text} More folds per task do not help: the differences vary between tasks."


def _number(value: float) -> str:
    return f"{value:,.0f}" if value <= MOST else f"more than {MOST:,}"


def power_table(power: Power) -> Table:
    """Return one row per task: the spread and number of folds and items, and those needed."""
    rows = power.tasks
    spread = {name: map(_spread, rows[name]) for name in ("fold_spread", "item_spread")}
    number = {n: map(_needed, rows[n]) for n in ("folds", "folds_needed", "items", "items_needed")}
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("difference", [signed(difference) for difference in rows["difference"]]),
            text_column("sd folds", spread["fold_spread"]),
            text_column("folds", number["folds"]),
            text_column("needed", number["folds_needed"]),
            text_column("sd items", spread["item_spread"]),
            text_column("items", number["items"]),
            text_column("items needed", number["items_needed"]),
        ],
        starts=[0],
        caption=f"Folds and items that detect {power.difference:g} on a single task",
        notes=[
            "needed: folds or items for a two-sided test at 5 % with a power of 80 %; folds by the "
            "t-test corrected for overlapping training sets (∞: no number of folds is enough), "
            "items by a paired t-test of stored predictions.",
        ],
    )


def _spread(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2g}"


def _needed(value: float) -> str:
    if np.isnan(value) or value == 0:
        return "–"
    return "∞" if np.isinf(value) else f"{value:,.0f}"
