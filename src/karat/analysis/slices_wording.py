"""Slices of items on which a model is worse, in words and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from karat.core.formatting import count, format_p, interval, middle_cut, rounded, short, signed
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.analysis.slices import SliceComparison

#: characters of the name of a slice in a table
NAME_WIDTH = 60


def slices_sentence(slices: SliceComparison) -> str:
    """Return the only claim, how many there are, or that there is none."""
    claims = len(slices.claims)
    if claims == 1:
        return slice_sentence(slices, slices.claims.iloc[0])
    tested = len(slices.slices)
    if not claims:
        return f"No slice is significantly worse than the other items ({tested} tested)."
    if not slices.second:
        return f"{slices.first} is significantly worse on {claims} of {tested} slices."
    return f"One of the models is significantly worse on {claims} of {tested} slices."


def slice_sentence(slices: SliceComparison, row: pd.Series) -> str:
    """Return on which slice a model is worse, with its losses and p."""
    p = f"{row['items']:,} items, adjusted p {format_p(row['p_adjusted'])}"
    bounds = (row["difference"], row["difference_low"], row["difference_high"])
    where, loss = f"{row['task']} where {row['slice']}", row["loss"]
    if not slices.second:
        return (
            f"{slices.first} is worse on {where} than elsewhere: {loss} {rounded(row['first'])} "
            f"against {rounded(row['elsewhere'])}, difference {interval(*bounds)}; {p}."
        )
    other = slices.second if row["worse"] == slices.first else slices.first
    return (
        f"{row['worse']} loses against {other} on {where}: {loss} {rounded(row['first'])} of "
        f"{slices.first} and {rounded(row['second'])} of {slices.second}, difference "
        f"{interval(*bounds)}; {p}."
    )


def slices_table(slices: SliceComparison) -> Table:
    """Return one row per tested slice: losses inside, difference, the same elsewhere, p."""
    rows = slices.slices.head(slices.top)
    bounds = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    elsewhere = rows["elsewhere"].map(signed if slices.second else rounded)
    sides = [(slices.first, "first")] + [(slices.second, "second")] * bool(slices.second)
    against = f" against {middle_cut(slices.second)}" if slices.second else ""
    tasks = [text_column("task", map(middle_cut, rows["task"]), right=False)]
    names = (short(name, NAME_WIDTH) for name in rows["slice"])
    return Table(
        groups=[],
        model=text_column("slice", names, right=False),
        columns=[
            *(tasks if slices.slices["task"].nunique() > 1 else []),
            text_column("items", (f"{number:,}" for number in rows["items"])),
            *(text_column(middle_cut(name), rows[side].map(rounded)) for name, side in sides),
            text_column("difference", map(interval, *bounds), part="task"),
            text_column("elsewhere", elsewhere, part="task"),
            text_column("p", rows["p_adjusted"].map(format_p), part="task"),
            text_column("worse", (middle_cut(n) or "–" for n in rows["worse"]), right=False),
        ],
        starts=[0],
        caption=f"{middle_cut(slices.first)}{against}, slices of items",
        notes=[_legend(slices)],
    )


def _legend(slices: SliceComparison) -> str:
    tested = len(slices.slices)
    most = f" {slices.top} of {tested} slices are shown." if tested > slices.top else ""
    what = "loss inside the slice minus that elsewhere"
    if slices.second:
        what = f"loss of {middle_cut(slices.first)} minus that of {middle_cut(slices.second)}"
    return (
        f"Difference: {what}, with its 95 % interval. p is corrected for "
        f"{count(tested, 'slice')} (Benjamini-Hochberg).{most}"
    )
