"""The items on which two models differ, in words and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.core.formatting import count, format_answer, middle_cut, percent, rounded
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.analysis.items import ItemComparison

LEGEND = (
    "In percent: the confidence of an answer, the probability of the predicted class.",
    "The largest changes come first. -o FOLDER or --format csv writes all items.",
)


def items_sentence(items: ItemComparison) -> str:
    """Return on how many items which model is better; of several tasks, their sums."""
    if len(items.tasks) == 1:
        return task_sentence(items, items.tasks.iloc[0])
    sums = items.tasks[["items", "first_better", "second_better"]].sum()
    return (
        f"{len(items.tasks)} tasks, {sums['items']:,} items: {items.first} is better on "
        f"{sums['first_better']:,}, {items.second} on {sums['second_better']:,}."
    )


def task_sentence(items: ItemComparison, row: pd.Series) -> str:
    """Return on how many items of a task which model is better."""
    how = "right where the other is wrong" if row["loss"] == "error" else "better"
    return (
        f"{row['task']}, {row['items']:,} items: {items.first} is {how} on "
        f"{row['first_better']:,}, {items.second} on {row['second_better']:,}; "
        f"mean {row['loss']} {rounded(row['first_loss'])} and {rounded(row['second_loss'])}."
    )


def items_table(items: ItemComparison) -> Table:
    """Return one group per task and better model, one row per item."""
    rows = items.items.groupby(["task", "better"], sort=False).head(items.top)
    names = list(_groups(items, rows))
    codes = pd.factorize(pd.Series(names, dtype=object))[0]
    answers = [
        text_column(middle_cut(name), _answers(rows, side), right=False)
        for name, side in ((items.first, "first"), (items.second, "second"))
    ]
    texts = text_column("item", rows["item"], right=False, flexible=True)
    return Table(
        groups=[text_column("items", names, right=False)],
        model=text_column("key", map(format_answer, rows["key"]), right=False),
        columns=[
            text_column("target", map(format_answer, rows["target"]), right=False),
            *answers,
            *([texts] if rows["item"].any() else []),
        ],
        starts=np.flatnonzero(np.diff(codes, prepend=-1)).tolist(),
        caption=f"{middle_cut(items.first)} against {middle_cut(items.second)}, item by item",
        notes=list(LEGEND),
    )


def _groups(items: ItemComparison, rows: pd.DataFrame) -> Iterator[str]:
    """Yield the group of each row: its task, the better model, and the number of items."""
    sizes = items.items.groupby(["task", "better"]).size()
    binary = set(items.tasks.loc[items.tasks["loss"] == "error", "task"])
    for task, better in zip(rows["task"], rows["better"], strict=True):
        how = "only {} is right" if task in binary else "{} is better"
        number = int(sizes[task, better])
        most = f", {items.top} shown" if number > items.top else ""
        who = how.format(middle_cut(better))
        yield f"{middle_cut(task)}: {who} ({count(number, 'item')}{most})"


def _answers(rows: pd.DataFrame, side: str) -> Iterator[str]:
    """Yield answers, each with its confidence if it has one."""
    for value, confidence in zip(rows[side], rows[f"{side}_confidence"], strict=True):
        share = "" if math.isnan(confidence) else f" {percent(confidence, 0)}"
        yield format_answer(value) + share
