"""A smaller suite in words and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.core.formatting import count, middle_cut, percent
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.ext.decide.shrink import Shrunk


def shrunk_sentence(small: Shrunk) -> str:
    """Return how well the smaller suite keeps the order of models."""
    folds = sorted(set(small.tasks.values()))
    range_of_folds = f"{folds[0]}" if len(folds) == 1 else f"{folds[0]} to {folds[-1]}"
    text = (
        f"{len(small.tasks)} of {len(small.all_folds)} tasks with {range_of_folds} "
        f"fold{'s' * (folds[-1] > 1)} each, {small.jobs} of {small.all_jobs} jobs per model, "
        f"keep the order of {percent(small.kept)} of the pairs of models, measured on models "
        f"left out of the selection ({len(small.models)} models). Random subsets of this size "
        f"keep {percent(small.random)}."
    )
    if not np.isnan(small.repeatability):
        text += (
            f" For comparison, two halves of the folds of all tasks agree on "
            f"{percent(small.repeatability)}."
        )
    if not np.isnan(small.seconds):
        text += f" The jobs take {percent(small.seconds)} of the time."
    return text


def shrunk_table(small: Shrunk) -> Table:
    """Return the selected tasks with their folds."""
    folds = [f"{number} of {small.all_folds[task]}" for task, number in small.tasks.items()]
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, small.tasks), right=False),
        columns=[text_column("folds", folds)],
        starts=[0],
        caption=f"{count(len(folds), 'task')} of {small.suite}, in the order of their selection",
        notes=[],
    )
