"""The answer of a race in every output format."""

from __future__ import annotations

import pandas as pd

from karat.core.formatting import count, middle_cut, plain
from karat.ext.decide.race import Race, RaceReplay, race_rows, replay_rows
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result


def show_race(found: Race, shape: str | None = None) -> None:
    """Print the answer of a race, and a row per model."""
    caption = f"race to the goal {found.goal}: {count(len(found.models), 'model')}"
    _show_rows(found, race_rows(found), caption, shape)


def show_replay(found: RaceReplay, shape: str | None = None) -> None:
    """Print what races on finished runs would have saved, and a row per model."""
    caption = f"{count(len(found.orders), 'race')} to the goal {found.goal}, in random orders"
    _show_rows(found, replay_rows(found), caption, shape)


def _show_rows(
    found: Race | RaceReplay, rows: pd.DataFrame, caption: str, shape: str | None
) -> None:
    first, *others = rows.columns
    left = ("status", "better or equal", "top")
    table = Table(
        groups=[],
        model=text_column(first, map(middle_cut, rows[first]), right=False),
        columns=[text_column(name, rows[name], right=name not in left) for name in others],
        starts=[0],
        caption=caption,
        notes=[*map(plain, found.notes)],
    )
    show_result(table, [plain(found.sentence)], shape, found.to_dict(), found.models)
