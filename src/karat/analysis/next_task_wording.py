"""What to expect of models on a new task, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.analysis.leaderboard import GROUP
from karat.core.formatting import (
    count,
    fixed,
    format_rank,
    percent,
    percent_chance,
    plain,
    rounded,
)
from karat.output.table import Cell, Column, Table, text_column

if TYPE_CHECKING:
    from karat.analysis.next_task import NextTask

CAPTION = "The rank on a new task like these"
LEGEND = (
    "next 90 %: the bounds of the rank for 90 % of new tasks; first: the chance to be the best; "
    "loss: how far below the best model of a task on average, as a share of the distance from the "
    "worst to the best. In brackets: 95 % intervals over tasks."
)


def next_task_sentence(expected: NextTask) -> str:
    """Return what to expect of the first model of the leaderboard."""
    rows = expected.models.dropna(subset=["next_low"])
    best, models = rows.iloc[0], len(expected.models)
    if GROUP in expected.models:
        models = int((expected.models[GROUP] == best[GROUP]).sum())
    return (
        f"On 90 % of new tasks like these {best['tasks']:,}, {best['model']} has a rank from "
        f"{best['next_low']:.0f} to {best['next_high']:.0f} of {models}; its chance to be "
        f"first is {percent_chance(best['first'])}. Who always chooses it loses "
        f"{fixed(best['loss'], 3)} of the distance between the worst and the best model of a "
        "task on average."
    )


def next_task_table(expected: NextTask) -> Table:
    """Return a row per model: its rank on the next task, the chance to be first, the loss."""
    rows = expected.models
    group = pd.factorize(rows[GROUP])[0] if GROUP in rows else np.zeros(len(rows))
    columns = [
        text_column("rank", map(format_rank, rows["rank"])),
        _bounds("next 90 %", rows),
        Column("first", [Cell(_first_chance(row)) for _, row in rows.iterrows()]),
        _loss("loss", rows, "loss"),
    ]
    if expected.metric:
        columns.append(_loss(f"loss in {plain(expected.metric)}", rows, "score_loss"))
    if rows["tasks"].nunique() > 1:
        columns.append(text_column("tasks", rows["tasks"]))
    return Table(
        groups=[text_column(GROUP, rows[GROUP], right=False)] if GROUP in rows else [],
        model=text_column("model", rows["model"], right=False),
        columns=[*columns, *_alike_columns(expected)],
        starts=np.flatnonzero(np.diff(group, prepend=-1)).tolist(),
        caption=CAPTION,
        notes=[LEGEND, *_narrower(expected)],
    )


def _first_chance(row: pd.Series) -> str:
    if np.isnan(row["first"]):
        return "–"
    ends = ", ".join(fixed(100 * row[f"first_{end}"], 0) for end in ("low", "high"))
    return f"{percent_chance(row['first'])} [{ends}]"


def _bounds(name: str, rows: pd.DataFrame, label: str = "", part: str = "rank") -> Column:
    pairs = zip(rows["next_low"], rows["next_high"], strict=True)
    texts = ["–" if np.isnan(low) else f"{low:.0f} – {high:.0f}" for low, high in pairs]
    return Column(name, [Cell(text) for text in texts], label=label, part=part)


def _loss(name: str, rows: pd.DataFrame, column: str) -> Column:
    ends = (rows[f"{column}{end}"] for end in ("", "_low", "_high"))
    texts = [
        "–" if np.isnan(mean) else f"{rounded(mean)} [{rounded(low)}, {rounded(high)}]"
        for mean, low, high in zip(*ends, strict=True)
    ]
    return Column(name, [Cell(text) for text in texts])


def _alike_columns(expected: NextTask) -> Iterator[Column]:
    """Yield the interval on tasks of each kind and size."""
    keys = [name for name in (GROUP,) if name in expected.models] + ["model"]
    within = expected.within
    for kind, size in expected.alike[["kind", "size"]].drop_duplicates().itertuples(index=False):
        alike = within[(within["kind"] == kind) & (within["size"] == size)]
        rows = expected.models[keys].merge(alike, on=keys, how="left")
        yield _bounds(plain(kind or size), rows, size if kind else "", part="task")


def _narrower(expected: NextTask) -> Iterator[str]:
    """Yield by how much intervals are narrower on tasks that are alike."""
    if not len(expected.alike):
        return
    texts = []
    for row in expected.alike.to_dict("records"):
        name = ", ".join(plain(row[key]) for key in (GROUP, "kind", "size") if row.get(key))
        share = percent(abs(row["narrower"]), 0)
        direction = "narrower" if row["narrower"] >= 0 else "wider"
        change = "as wide" if share == percent(0.0, 0) else f"{share} {direction}"
        texts.append(f"{name} ({count(row['tasks'], 'task')}) {change}")
    yield (
        "On a new task of a kind or size, compared with the interval from all tasks, on average "
        f"over models: {'; '.join(texts)}."
    )
