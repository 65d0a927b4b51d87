"""The cheapest model in every output format."""

from __future__ import annotations

from karat.core.formatting import count, middle_cut, plain
from karat.ext.decide.cheapest import Cheapest, cheapest_rows
from karat.output.table import Cell, Column, Table, text_column
from karat.reporting.comparison_output import show_result


def show_cheapest(found: Cheapest, shape: str | None = None) -> None:
    """Print the cheapest model that is not worse than the reference, and a row per model."""
    lines = [plain(found.sentence)]
    show_result(cheapest_table(found), lines, shape, found.to_dict(), found.models)


def cheapest_table(found: Cheapest) -> Table:
    """Return one row per model, the cheapest first: cost, score, difference and verdict."""
    rows = cheapest_rows(found)
    verdicts = zip(rows["verdict"], rows["model"] == found.model, strict=True)
    against = f"against {middle_cut(found.reference)}"
    return Table(
        groups=[],
        model=text_column("model", map(middle_cut, rows["model"]), right=False),
        columns=[
            text_column(found.cost, rows[found.cost]),
            text_column("score", rows["score"], part="task"),
            text_column("difference", rows["difference"]),
            Column("verdict", [Cell(text, best) for text, best in verdicts], right=False),
        ],
        starts=[0],
        caption=f"{count(len(rows), 'model')} by {found.cost}, {against}",
        notes=[*map(plain, found.notes)],
    )
