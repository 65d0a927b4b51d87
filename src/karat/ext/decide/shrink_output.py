"""A smaller suite in every output format."""

from __future__ import annotations

import pandas as pd

from karat.core.formatting import count, middle_cut, plain
from karat.ext.decide.shrink import Shrunk
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result


def show_shrunk(found: Shrunk, shape: str | None = None) -> None:
    """Print how well a smaller suite keeps the order of models, and its tasks."""
    rows = pd.DataFrame({"task": list(found.tasks), "folds": list(found.tasks.values())})
    folds = [f"{k} of {found.all_folds[task]}" for task, k in found.tasks.items()]
    table = Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[text_column("folds", folds)],
        starts=[0],
        caption=f"{count(len(rows), 'task')} of {found.suite}, in the order of their selection",
        notes=[*map(plain, found.notes)],
    )
    show_result(table, [plain(found.sentence)], shape, found.to_dict(), rows)
