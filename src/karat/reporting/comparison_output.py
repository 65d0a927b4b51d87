"""A comparison of a run with other runs as a table.

Comparisons of two or more models in every output format.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.analysis.all_pairs import (
    AllPairs,
    Sentences,
    format_p,
    format_value,
    overall_lines,
    task_table,
)
from karat.analysis.comparison import Comparison
from karat.analysis.history import History
from karat.corruptions.view import CLEAN
from karat.reporting.formats import (
    DOCUMENTS,
    MAX_LETTERS,
    Cell,
    Column,
    Table,
    dump_json,
    metric_label,
    records,
    rounded,
    text_column,
)
from karat.reporting.notes import SIGNS, count, middle_cut, plain
from karat.reporting.terminal import print_table
from karat.results.load import FAILED, OK

DIFFERENCE = ("difference", "difference_low", "difference_high")
BRACKETS = (
    "difference: this run minus the best other. In brackets: 95 % interval over folds, corrected "
    "for overlapping training sets; an interval that contains 0 is not significant."
)


def show_comparison(found: History, shape: str | None = None, *, as_json: bool = False) -> None:
    """Print a comparison in a format; ``as_json`` is the format "json"."""
    if as_json or shape == "json":
        sys.stdout.write(to_json(found))
        return
    if shape == "csv":
        sys.stdout.write(found.ranks.to_csv(index=False, lineterminator="\n"))
        return
    table = comparison_table(found)
    if shape in DOCUMENTS:
        sys.stdout.write(DOCUMENTS[shape](table))
        return
    console = Console(highlight=False)
    console.print(Text(f" {table.caption}\n"), soft_wrap=True)
    print_table(table, console)


def comparison_table(found: History) -> Table:
    """Return one group per task and view, one row per metric: this run and the best other."""
    rows = found.ranks
    keys = ["task", "dataset", "view"]
    group = rows.groupby(keys, sort=False).ngroup().to_numpy()
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    shown = ["task"]
    shown += ["dataset"] if (rows["dataset"] != rows["task"]).any() else []
    shown += ["view"] if (rows["view"] != CLEAN.name).any() else []
    labels = map(metric_label, rows["metric"], rows["higher_is_better"].map(bool))
    return Table(
        groups=[text_column(name, rows[name], right=False) for name in shown],
        model=text_column("metric", labels, right=False),
        columns=_columns(rows, _states(found)),
        starts=starts,
        caption=caption(found),
        notes=[*_legend(rows), *map(plain, found.notes)],
    )


def caption(found: History) -> str:
    """Return which runs are compared."""
    runs = count(len(found.others), "other run")
    on = ", on common questions" if found.common else ""
    return f"{plain(found.run.folder.resolve().name)} against {runs}{on}"


def to_json(found: History) -> str:
    """Return both tables and the notes as JSON."""
    whole = {
        "run": found.run.folder.resolve().name,
        "common": found.common,
        "values": records(found.values),
        "ranks": records(found.ranks),
        "notes": found.notes,
    }
    return dump_json(whole)


def _columns(rows: pd.DataFrame, states: list[str]) -> list[Column]:
    alone = rows["best_value"].isna()
    leads = rows["rank"].eq(1).fillna(False).astype(bool)
    level = (rows["difference"] == 0) | ~leads
    own = [
        Cell(SIGNS.get(state, "–"), faint=True) if math.isnan(value) else Cell(rounded(value), best)
        for value, best, state in zip(rows["value"], leads, states, strict=True)
    ]
    others = zip(rows["best_value"], level & ~alone, strict=True)
    return [
        Column("this run", own),
        text_column("rank", map(_rank, rows["rank"], rows["compared"])),
        text_column(
            "best other", (middle_cut(name) or "–" for name in rows["best_model"]), right=False
        ),
        Column("its value", [Cell(rounded(value), bool(best)) for value, best in others]),
        text_column("difference", map(_difference, *(rows[n] for n in DIFFERENCE)), part="task"),
        text_column(
            "coverage", map(_covered, rows["coverage"], rows["best_coverage"]), part="task"
        ),
    ]


def _states(found: History) -> list[str]:
    """Return the state of this run in each row."""
    name = found.values["run"].iloc[0] if len(found.values) else ""
    own = found.values[found.values["run"] == name]
    return [FAILED if state != OK else OK for state in own["status"]]


def _rank(rank: Any, compared: int) -> str:
    return "–" if pd.isna(rank) else f"{rank} of {compared}"


def _difference(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "–"
    spread = "" if math.isnan(low) else f" [{_signed(low)}, {_signed(high)}]"
    return _signed(value) + spread


def _signed(value: float) -> str:
    text = rounded(abs(value))
    return text if not float(text) else f"{'-' if value < 0 else '+'}{text}"


def _covered(own: float, other: float) -> str:
    return " / ".join(_share(share) for share in (own, other) if not math.isnan(share)) or "–"


def _share(share: float) -> str:
    """Format a share in percent, rounded down, so that only 1 is 100 %.

    >>> _share(0.9999), _share(1.0)
    ('99.9 %', '100 %')
    """
    return "100 %" if share == 1 else f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def _legend(rows: pd.DataFrame) -> list[str]:
    coverage = "coverage: share of questions answered by this run / by the best other."
    return [coverage, BRACKETS] if rows["difference_low"].notna().any() else [coverage]


def show_verdict(
    found: Comparison, shape: str = "table", regressions: pd.DataFrame | None = None
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
    named = Sentences(middle_cut(found.first), middle_cut(found.second), found.rope)
    sentence = named.verdict(_headed(found), found.overall)
    worse = [] if regressions is None else _regressed(regressions, found)
    lines = [sentence, *_sentences(overall_lines(found)), *worse]
    _show(table, lines, shape)


def show_contests(found: AllPairs, shape: str = "table") -> None:
    """Print a comparison of many models in the order of their ranks."""
    if shape == "csv":
        sys.stdout.write(found.pairs.to_csv(index=False, lineterminator="\n"))
        return
    if shape == "json":
        sys.stdout.write(dump_json(found.to_dict()))
        return
    _show(contests_table(found), [plain(found.sentence)], shape)


def verdict_table(found: Comparison) -> Table:
    """Return one row per task: values, difference, p, and the better model."""
    rows = task_table(found)
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
        notes=[*_verdict_legend(found), *map(plain, found.notes)],
    )


def contests_table(found: AllPairs) -> Table:
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
            text_column("p against the first", map(format_p, against)),
        ],
        starts=[0],
        caption=f"{len(order)} models, all pairs tested on their common tasks",
        notes=[
            "Models that share a letter do not differ significantly (Wilcoxon, Holm correction).",
            *map(plain, found.notes),
        ],
    )


def _letters(found: AllPairs, order: Sequence[int]) -> list[str]:
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
    print_table(replace(table, notes=[]), console)
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


def _verdict_legend(found: Comparison) -> Iterator[str]:
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


def _regressed(regressions: pd.DataFrame, found: Comparison) -> Iterator[str]:
    if not len(regressions):
        yield f"No regression from {middle_cut(found.second)} to {middle_cut(found.first)}."
    for _, row in regressions.iterrows():
        values = f"{format_value(row['second'])} → {format_value(row['first'])}"
        names = ", ".join(map(middle_cut, (row["task"], row["metric"])))
        yield f"Regression: {names} {values}: {row['why']}."


def _cells(texts: Iterable[str], best: Iterable[bool]) -> list[Cell]:
    pairs = zip(texts, best, strict=True)
    return [Cell(text, best=lead, faint=text == "–") for text, lead in pairs]


def _headed(found: Comparison) -> pd.DataFrame:
    """Return the rows with cut names."""
    names = {found.first: middle_cut(found.first), found.second: middle_cut(found.second)}
    better = [names.get(name, name) for name in found.tasks["better"]]
    return found.tasks.assign(better=better, task=found.tasks["task"].map(middle_cut))
