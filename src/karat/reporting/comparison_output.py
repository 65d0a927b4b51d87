"""Comparisons of two or more models in every output format."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.report.formats import DOCUMENTS, dump_json, records
from karat.report.notes import middle_cut, plain
from karat.report.shown import count
from karat.report.tables import MAX_LETTERS, Cell, Column, Table, text_column
from karat.report.terminal import print_board
from karat.results.contests import Contests
from karat.results.verdict import Verdict
from karat.results.worded import Words, number, overall_lines, p_value, shown


def show_verdict(
    found: Verdict, shape: str = "table", regressions: pd.DataFrame | None = None
) -> None:
    """Print a comparison of two models, and the regressions if given."""
    if shape == "csv":
        sys.stdout.write(found.tasks.to_csv(index=False, lineterminator="\n"))
        return
    if shape == "json":
        whole = found.to_dict()
        if regressions is not None:
            whole["regressions"] = records(regressions)
        sys.stdout.write(dump_json(whole))
        return
    table = verdict_table(found)
    named = Words(middle_cut(found.first), middle_cut(found.second), found.rope)
    sentence = named.verdict(_headed(found), found.overall)
    worse = [] if regressions is None else _regressed(regressions, found)
    lines = [sentence, *_sentences(overall_lines(found)), *worse]
    _show(table, lines, shape)


def show_contests(found: Contests, shape: str = "table") -> None:
    """Print a comparison of many models in the order of their ranks."""
    if shape == "csv":
        sys.stdout.write(found.pairs.to_csv(index=False, lineterminator="\n"))
        return
    if shape == "json":
        sys.stdout.write(dump_json(found.to_dict()))
        return
    _show(contests_table(found), [plain(found.sentence)], shape)


def verdict_table(found: Verdict) -> Table:
    """Return one row per task: values, difference, p, and the better model."""
    rows = shown(found)
    first, second = middle_cut(found.first), middle_cut(found.second)
    # "better" may also be a text that is not a model
    leads = [name == found.first for name in rows["better"]]
    trails = [name == found.second for name in rows["better"]]
    return Table(
        groups=[],
        model=text_column("task", rows["task"], right=False),
        columns=[
            text_column("metric", rows["metric"], right=False),
            Column(first, _cells(rows["first"], leads)),
            Column(second, _cells(rows["second"], trails)),
            text_column("difference", rows["difference"], part="task"),
            text_column("p", rows["p"], part="task"),
            text_column("better", map(middle_cut, rows["better"]), right=False, part="task"),
        ],
        starts=[0],
        caption=f"{first} against {second}, paired by task and fold",
        notes=[*_legend(found), *map(plain, found.notes)],
    )


def contests_table(found: Contests) -> Table:
    """Return one row per model, best first: rank, letters of its groups, p against the best."""
    order = [int(m) for m in found.many.order if not np.isnan(found.many.ranks[m])]
    letters = _letters(found, order)
    best = order[0] if order else 0
    against = [found.many.pairs[best, m] if m != best else np.nan for m in order]
    tasks = np.isfinite(found.values.to_numpy()).sum(axis=1)
    return Table(
        groups=[],
        model=text_column("model", (middle_cut(found.models[m]) for m in order), right=False),
        columns=[
            text_column("rank", (f"{found.many.ranks[m]:.1f}" for m in order)),
            Column("tie", [Cell(text) for text in letters], right=False),
            text_column("tasks", (tasks[m] for m in order)),
            text_column("p against the first", map(p_value, against)),
        ],
        starts=[0],
        caption=f"{len(order)} models, all pairs tested on their common tasks",
        notes=[
            "Models that share a letter do not differ significantly (Wilcoxon, Holm correction).",
            *map(plain, found.notes),
        ],
    )


def _letters(found: Contests, order: Sequence[int]) -> list[str]:
    """Return the letters of each model's groups; a model that differs from all is its own group."""
    grouped = {m for group in found.many.cliques for m in group}
    groups = [*found.many.cliques, *([m] for m in order if m not in grouped)]
    groups.sort(key=lambda group: order.index(group[0]))
    if len(groups) > MAX_LETTERS:
        numbers = [[i + 1 for i, group in enumerate(groups) if m in group] for m in order]
        return [", ".join(map(str, each)) for each in numbers]
    lettered = [(chr(ord("a") + i), group) for i, group in enumerate(groups)]
    return [" ".join(x if m in group else " " for x, group in lettered) for m in order]


def _show(table: Table, lines: Sequence[str], shape: str) -> None:
    if shape in DOCUMENTS:
        sys.stdout.write(DOCUMENTS[shape](replace(table, notes=[*lines, *table.notes])))
        return
    console = Console(highlight=False)
    console.print(Text(f" {table.caption}\n"), soft_wrap=True)
    print_board(replace(table, notes=[]), console)
    for style, texts in (("bold", lines[:1]), ("", lines[1:]), ("dim", table.notes)):
        for part in (part for text in texts for part in _wrapped(text, console.width)):
            console.print(Text(part, style=style), soft_wrap=True)
        if texts and style != "dim":
            console.print()


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, initial_indent=" ", subsequent_indent=" ")


def _sentences(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as sentences."""
    yield from (f"{plain(line)[0].upper()}{plain(line)[1:]}." for line in lines)


def _legend(found: Verdict) -> Iterator[str]:
    tests = set(found.tasks["test"]) - {""}
    if not tests:
        return
    first, second = middle_cut(found.first), middle_cut(found.second)
    over = "over folds, corrected for overlapping training sets"
    if len(tests) > 1 or "corrected t" not in tests:
        over = f"of {', '.join(sorted(tests))}"
    tasks = count(int(found.tasks["p"].notna().sum()), "task")
    yield (
        f"Difference: {first} minus {second}; in brackets the 95 % interval {over}. "
        f"p is corrected for {tasks} (Holm)."
    )
    relative = found.tasks[found.tasks["relative"] & (found.tasks["folds"] > 0)]
    if found.overall.tasks > 1 and len(relative):
        names = ", ".join(sorted(set(relative["metric"])))
        yield f"Gain: positive where {first} is better; for {names} relative to the mean of both."
        if len(relative) < found.overall.tasks:
            yield (
                "Different metrics are combined: the tests over tasks use the size of gains, where "
                "relative gains often weigh more. --metric NAME compares one metric."
            )


def _regressed(regressions: pd.DataFrame, found: Verdict) -> Iterator[str]:
    if not len(regressions):
        yield f"No regression from {middle_cut(found.second)} to {middle_cut(found.first)}."
    for _, row in regressions.iterrows():
        values = f"{number(row['second'])} → {number(row['first'])}"
        names = ", ".join(map(middle_cut, (row["task"], row["metric"])))
        yield f"Regression: {names} {values}: {row['why']}."


def _cells(texts: Iterable[str], best: Iterable[bool]) -> list[Cell]:
    pairs = zip(texts, best, strict=True)
    return [Cell(text, best=lead, faint=text == "–") for text, lead in pairs]


def _headed(found: Verdict) -> pd.DataFrame:
    """Return the rows with cut names."""
    names = {found.first: middle_cut(found.first), found.second: middle_cut(found.second)}
    better = [names.get(name, name) for name in found.tasks["better"]]
    return found.tasks.assign(better=better, task=found.tasks["task"].map(middle_cut))
