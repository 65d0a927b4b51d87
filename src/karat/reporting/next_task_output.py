"""The rank on the next task in every output format."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.analysis.leaderboard import GROUP
from karat.analysis.next_task import NextTask, next_task
from karat.core.formatting import count, dump_json, fixed, percent_chance, plain, rounded
from karat.errors import DefinitionError
from karat.output.table import Cell, Column, Table, text_column
from karat.output.terminal_table import wrap
from karat.reporting.formats import DOCUMENTS, format_rank
from karat.reporting.terminal import metric_by_task, print_table

CAPTION = (
    "The rank on a new task like these. next 90 %: its bounds for 90 % of new tasks; first: the "
    "chance to be the best; loss: how far below the best model of a task on average, as a share of "
    "the distance from the worst to the best. In brackets: 95 % intervals over tasks."
)
#: options of karat leaderboard that change a table which is not shown
OTHER_TABLE = ("by", "columns", "normalize", "sort")


def print_next_task(paths: Sequence[str | Path], shape: str | None, **options: Any) -> None:
    """Print what to expect of models on a new task; options as in ``karat leaderboard``."""
    wrong = [name for name in OTHER_TABLE if options.pop(name)]
    if wrong:
        raise DefinitionError(
            f"--next conflicts with --{wrong[0]}: it prints a table of its own, with the kinds and "
            "sizes of tasks where at least 19 are alike; use one of them."
        )
    options["metrics"] = metric_by_task(options["metrics"])
    show_next_task(next_task(paths, **options), shape)


def show_next_task(found: NextTask, shape: str | None = None) -> None:
    """Print what to expect of models on a new task."""
    if shape == "json":
        sys.stdout.write(dump_json(found.to_dict()))
    elif shape == "csv":
        sys.stdout.write(_long_rows(found).to_csv(index=False, lineterminator="\n"))
    elif shape in DOCUMENTS:
        table = next_task_table(found)
        lines = [plain(found.sentence), *table.notes]
        sys.stdout.write(DOCUMENTS[shape](replace(table, notes=lines)))
    else:
        _print_text(next_task_table(found), plain(found.sentence))


def _print_text(table: Table, sentence: str) -> None:
    console = Console(highlight=False)
    for line in wrap(table.caption, console.width):
        console.print(Text(line), soft_wrap=True)
    console.print()
    print_table(replace(table, notes=[]), console)
    for text, style in [(sentence, "bold"), *((note, "dim") for note in table.notes)]:
        for line in wrap(text, console.width):
            console.print(Text(line, style=style), soft_wrap=True)


def _long_rows(found: NextTask) -> pd.DataFrame:
    """Return the models on all tasks, then on tasks that are alike."""
    keys = [name for name in (GROUP,) if name in found.models]
    names = [*keys, "kind", "size", *found.models.columns.drop(keys)]
    every = found.models.assign(kind="", size="")
    return pd.concat([every, found.within], ignore_index=True)[names]


def next_task_table(found: NextTask) -> Table:
    """Return a row per model: its rank on the next task, the chance to be first, the loss."""
    rows = found.models
    group = pd.factorize(rows[GROUP])[0] if GROUP in rows else np.zeros(len(rows))
    columns = [
        text_column("rank", map(format_rank, rows["rank"])),
        _bounds("next 90 %", rows),
        Column("first", [Cell(_chance(row)) for row in rows.to_dict("records")]),
        _loss("loss", rows, "loss"),
    ]
    if found.metric:
        columns.append(_loss(f"loss in {plain(found.metric)}", rows, "score_loss"))
    if rows["tasks"].nunique() > 1:
        columns.append(text_column("tasks", rows["tasks"]))
    return Table(
        groups=[text_column(GROUP, rows[GROUP], right=False)] if GROUP in rows else [],
        model=text_column("model", rows["model"], right=False),
        columns=[*columns, *_alike_columns(found)],
        starts=np.flatnonzero(np.diff(group, prepend=-1)).tolist(),
        caption=CAPTION,
        notes=[*_narrower(found), *map(plain, found.notes)],
    )


def _chance(row: dict[Any, Any]) -> str:
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


def _alike_columns(found: NextTask) -> Iterator[Column]:
    """Yield the interval on tasks of each kind and size."""
    keys = [name for name in (GROUP,) if name in found.models] + ["model"]
    for kind, size in found.alike[["kind", "size"]].drop_duplicates().itertuples(index=False):
        own = found.within[(found.within["kind"] == kind) & (found.within["size"] == size)]
        rows = found.models[keys].merge(own, on=keys, how="left")
        yield _bounds(plain(kind or size), rows, size if kind else "", part="task")


def _narrower(found: NextTask) -> Iterator[str]:
    """Yield by how much intervals are narrower on tasks that are alike."""
    if not len(found.alike):
        return
    texts = []
    for row in found.alike.to_dict("records"):
        name = ", ".join(plain(row[key]) for key in (GROUP, "kind", "size") if row.get(key))
        share = fixed(100 * abs(row["narrower"]), 0)
        way = "narrower" if row["narrower"] >= 0 else "wider"
        change = "as wide" if share == "0" else f"{share} % {way}"
        texts.append(f"{name} ({count(row['tasks'], 'task')}) {change}")
    yield (
        "On a new task of a kind or size, compared with the interval from all tasks, on average "
        f"over models: {'; '.join(texts)}."
    )
