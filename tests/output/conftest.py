"""A small table with signs that every format escapes."""

from __future__ import annotations

import pytest

from karat.output.table import Cell, Column, Table, text_column


@pytest.fixture
def small_table() -> Table:
    values = [Cell("0.5", best=True), Cell("–", faint=True)]
    return Table(
        groups=[],
        model=text_column("model", ["a_b & <c>", "plain"], right=False),
        columns=[Column("score", values)],
        starts=[0],
        caption="Two | models",
        notes=["50 % of *all*."],
    )
