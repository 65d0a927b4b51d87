"""A verdict on two models, or on many, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.report.formats import to_markdown
from karat.report.notes import NAME_WIDTH, plain
from karat.report.tables import MAX_LETTERS, Cell, Column, Table
from karat.report.terminal import print_board
from karat.results.contests import Contests
from karat.results.verdict import Verdict
from karat.results.worded import Words, number, overall_lines, p_value, shown

TABLE, MARKDOWN, JSON = "table", "markdown", "json"


def show_verdict(
    found: Verdict, shape: str = TABLE, regressions: pd.DataFrame | None = None
) -> None:
    """Print a verdict on two models, and what got worse, if that was asked."""
    told = [] if regressions is None else list(_regressed(regressions, found))
    if shape == JSON:
        whole = found.to_dict()
        if regressions is not None:
            whole["regressions"] = _records(regressions)
        sys.stdout.write(_json(whole))
        return
    table = verdict_table(found)
    named = Words(_head(found.first), _head(found.second), found.rope)
    sentence = named.verdict(_headed(found), found.overall)
    lines = [sentence, *_sentences(overall_lines(found)), *told]
    _show(table, lines, shape)


def show_contests(found: Contests, shape: str = TABLE) -> None:
    """Print many models in the order of their ranks, and which cannot be told apart."""
    if shape == JSON:
        sys.stdout.write(_json(found.to_dict()))
        return
    _show(contests_table(found), [plain(found.sentence)], shape)


def verdict_table(found: Verdict) -> Table:
    """Return a row per task of which a model has a score: values, difference, p, who is better."""
    rows = shown(found)
    # a name of one model is marked, words are not
    leads = [name == found.first for name in rows["better"]]
    trails = [name == found.second for name in rows["better"]]
    return Table(
        groups=[],
        model=_texts("task", rows["task"], right=False),
        columns=[
            _texts("metric", rows["metric"], right=False),
            Column(_head(found.first), _cells(rows["first"], leads)),
            Column(_head(found.second), _cells(rows["second"], trails)),
            _texts("difference", rows["difference"], part="task"),
            _texts("p", rows["p"], part="task"),
            _texts("better", map(_head, rows["better"]), right=False, part="task"),
        ],
        starts=[0],
        caption=f"{_head(found.first)} beside {_head(found.second)}, paired by task and fold",
        notes=[*_legend(found), *map(plain, found.notes)],
    )


def contests_table(found: Contests) -> Table:
    """Return a row per model, best first: rank, letters of its cliques, p against the best."""
    order = [int(m) for m in found.many.order if not np.isnan(found.many.ranks[m])]
    letters = _letters(found, order)
    best = order[0] if order else 0
    against = [found.many.pairs[best, m] if m != best else np.nan for m in order]
    tasks = np.isfinite(found.values.to_numpy()).sum(axis=1)
    named = f"{len(order)} models beside each other, all pairs tested on the tasks both have"
    return Table(
        groups=[],
        model=_texts("model", (_head(found.models[m]) for m in order), right=False),
        columns=[
            _texts("rank", (f"{found.many.ranks[m]:.1f}" for m in order)),
            Column("tie", [Cell(text) for text in letters], right=False),
            _texts("tasks", (tasks[m] for m in order)),
            _texts("p against the first", map(p_value, against)),
        ],
        starts=[0],
        caption=named,
        notes=[
            "Models that share a letter cannot be told apart (Wilcoxon, corrected after Holm).",
            *map(plain, found.notes),
        ],
    )


def _letters(found: Contests, order: Sequence[int]) -> list[str]:
    """Return the letters of each model's groups; who differs from all is a group alone."""
    grouped = {m for group in found.many.cliques for m in group}
    groups = [*found.many.cliques, *([m] for m in order if m not in grouped)]
    groups.sort(key=lambda group: order.index(group[0]))
    if len(groups) > MAX_LETTERS:
        held = [[i + 1 for i, group in enumerate(groups) if m in group] for m in order]
        return [", ".join(map(str, each)) for each in held]
    signs = [chr(ord("a") + i) for i in range(len(groups))]
    lettered = list(zip(signs, groups, strict=True))
    return [" ".join(sign if m in group else " " for sign, group in lettered) for m in order]


# -- how it is shown ------------------------------------------------------------------------


def _show(table: Table, lines: Sequence[str], shape: str) -> None:
    if shape == MARKDOWN:
        sys.stdout.write(to_markdown(replace(table, notes=[*lines, *table.notes])))
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
    """Yield lines as sentences, so that they can stand in one paragraph too."""
    yield from (f"{plain(line)[0].upper()}{plain(line)[1:]}." for line in lines)


def _legend(found: Verdict) -> Iterator[str]:
    tests = set(found.tasks["test"]) - {""}
    if not tests:
        return
    first, second = _head(found.first), _head(found.second)
    over = "over folds, corrected for the training rows they share"
    if len(tests) > 1 or "corrected t" not in tests:
        over = f"of {', '.join(sorted(tests))}"
    many = int(found.tasks["p"].notna().sum())
    yield (
        f"Difference: {first} less {second}; in brackets its 95 % interval {over}. "
        f"p is corrected for {many} task{'' if many == 1 else 's'} (Holm)."
    )
    relative = found.tasks[found.tasks["relative"] & (found.tasks["folds"] > 0)]
    if found.overall.tasks > 1 and len(relative):
        names = ", ".join(sorted(set(relative["metric"])))
        yield f"Gain: positive where {first} is better; of {names} as a share of the mean of both."
        if len(relative) < found.overall.tasks:
            yield (
                "Unlike metrics stand together: the tests over tasks go by the size of gains, in "
                "which shares often weigh more. --metric NAME compares by one metric."
            )


def _regressed(regressions: pd.DataFrame, found: Verdict) -> Iterator[str]:
    if not len(regressions):
        yield f"No regression from {_head(found.second)} to {_head(found.first)}."
    for _, row in regressions.iterrows():
        values = f"{number(row['second'])} → {number(row['first'])}"
        yield f"Regression: {_head(row['task'])}, {_head(row['metric'])} {values}: {row['why']}."


def _texts(name: str, values: Iterable[object], right: bool = True, part: str = "rank") -> Column:
    return Column(name, [Cell(plain(value)) for value in values], right=right, part=part)


def _cells(texts: Iterable[str], best: Iterable[bool]) -> list[Cell]:
    pairs = zip(texts, best, strict=True)
    return [Cell(text, best=lead, faint=text == "–") for text, lead in pairs]


def _headed(found: Verdict) -> pd.DataFrame:
    """Return the rows with names as they are shown."""
    names = {found.first: _head(found.first), found.second: _head(found.second)}
    better = [names.get(name, name) for name in found.tasks["better"]]
    return found.tasks.assign(better=better, task=found.tasks["task"].map(_head))


def _head(name: str) -> str:
    """Return a name cut in its middle, since two runs of a model differ at the end."""
    text = plain(name)
    half = NAME_WIDTH // 2
    return text if len(text) <= NAME_WIDTH else f"{text[: half - 1]}…{text[-half:]}"


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [
        {str(key): None if value == np.inf else value for key, value in row.items()} for row in rows
    ]


def _json(whole: dict[str, Any]) -> str:
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
