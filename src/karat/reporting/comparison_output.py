"""Comparisons of models and runs in every output format."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.analysis.all_pairs import AllPairs
from karat.analysis.comparison import Comparison, overall_lines, task_table
from karat.analysis.history import History
from karat.analysis.item_tests import AS_FITTED
from karat.analysis.items import ItemComparison
from karat.analysis.slices import SliceComparison
from karat.core.formatting import (
    count,
    dump_json,
    format_answer,
    format_p,
    interval,
    middle_cut,
    plain,
    records,
    rounded,
    short,
    signed,
)
from karat.corruptions.view import CLEAN
from karat.output.table import TIE, Cell, Column, Table, text_column
from karat.output.terminal_table import wrap
from karat.reporting.formats import DOCUMENTS, MAX_LETTERS, SIGNS, TRAIN_AGAIN, metric_label
from karat.reporting.terminal import print_table
from karat.results.load import FAILED, OK
from karat.stats.ranking import FEWEST_TASKS

if TYPE_CHECKING:
    pass

BRACKETS = (
    "difference: this run minus the best other. In brackets: 95 % interval over folds, corrected "
    "for overlapping training sets; an interval that contains 0 is not significant."
)


def show_comparison(found: Comparison, shape: str | None = None) -> None:
    """Print a comparison of two models."""
    cut = _with_cut_names(found)
    lines = [f"{plain(line)[0].upper()}{plain(line)[1:]}." for line in overall_lines(cut)]
    show_result(comparison_table(cut), [cut.sentence, *lines], shape, found.to_dict(), found.tasks)


def show_all_pairs(found: AllPairs, shape: str | None = None) -> None:
    """Print a comparison of many models in the order of their ranks."""
    table = all_pairs_table(found)
    show_result(table, [plain(found.sentence)], shape, found.to_dict(), found.pairs)


def show_history(found: History, shape: str | None = None) -> None:
    """Print a comparison of a run with earlier ones."""
    whole = {
        "run": found.run.folder.resolve().name,
        "common": found.common,
        "values": records(found.values),
        "ranks": records(found.ranks),
        "notes": found.notes,
    }
    show_result(history_table(found), [], shape, whole, found.ranks)


def show_result(
    table: Table, lines: Sequence[str], shape: str | None, whole: Any, rows: pd.DataFrame
) -> None:
    """Print a table and sentences about it in a format; ``whole`` is the JSON, ``rows`` the CSV."""
    if shape == "json":
        sys.stdout.write(dump_json(whole))
    elif shape == "csv":
        sys.stdout.write(rows.to_csv(index=False, lineterminator="\n"))
    elif shape in DOCUMENTS:
        sys.stdout.write(DOCUMENTS[shape](replace(table, notes=[*lines, *table.notes])))
    else:
        console = Console(highlight=False)
        console.print(Text(f" {table.caption}\n"), soft_wrap=True)
        print_table(replace(table, notes=[]), console)
        for style, texts in (("bold", lines[:1]), ("", lines[1:]), ("dim", table.notes)):
            for line in (line for text in texts for line in wrap(text, console.width)):
                console.print(Text(line, style=style), soft_wrap=True)
            if texts and style != "dim":
                console.print()


# -- two models -----------------------------------------------------------------------------


def comparison_table(found: Comparison) -> Table:
    """Return one row per task: values, difference, p, and the better model."""
    rows = task_table(found)
    values = [
        Column(name, [Cell(*cell, cell[0] == "–") for cell in zip(texts, best, strict=True)])
        for name, texts, best in (
            (found.first, rows["first"], rows["better"] == found.first),
            (found.second, rows["second"], rows["better"] == found.second),
        )
    ]
    return Table(
        groups=[],
        model=text_column("task", rows["task"], right=False),
        columns=[
            text_column("metric", rows["metric"], right=False),
            *values,
            text_column("difference", rows["difference"], part="task"),
            text_column("p", rows["p"], part="task"),
            text_column("better", rows["better"], right=False, part="task"),
        ],
        starts=[0],
        caption=f"{found.first} against {found.second}, paired by task and fold",
        notes=[*_legend(found), *map(plain, found.notes)],
    )


def _with_cut_names(found: Comparison) -> Comparison:
    """Return the comparison with names that fit into a table."""
    names = {found.first: middle_cut(found.first), found.second: middle_cut(found.second)}
    better = [names.get(name, name) for name in found.tasks["better"]]
    tasks = found.tasks.assign(better=better, task=found.tasks["task"].map(middle_cut))
    first, second = names.values()
    return replace(found, first=first, second=second, tasks=tasks)


def _legend(found: Comparison) -> Iterator[str]:
    tests = set(found.tasks["test"]) - {""}
    if not tests:
        return
    over = "over folds, corrected for overlapping training sets"
    if len(tests) > 1 or "corrected t" not in tests:
        names = " or ".join(sorted(tests))
        over = f"by the test of the task ({names})"
    tasks = int(found.tasks["p"].notna().sum())
    way = "Holm" if found.overall.tasks >= FEWEST_TASKS else "Bonferroni"
    corrected = f" p and intervals are corrected for {tasks} tasks ({way})." if tasks > 1 else ""
    yield (
        f"Difference: {found.first} minus {found.second}; in brackets the 95 % interval {over}."
        f"{corrected}"
    )
    relative = found.tasks[found.tasks["relative"] & (found.tasks["folds"] > 0)]
    if found.overall.tasks > 1 and len(relative):
        names = ", ".join(sorted(set(relative["metric"])))
        better = f"positive where {found.first} is better"
        yield f"Gain: {better}; for {names} relative to the mean of both."
        if len(relative) < found.overall.tasks:
            yield (
                "Different metrics are combined: mean gain, Wilcoxon's and the Bayesian test use "
                "sizes, where relative gains often weigh more. --metric NAME compares one metric."
            )


# -- many models ----------------------------------------------------------------------------


def all_pairs_table(found: AllPairs) -> Table:
    """Return one row per model, best first: rank, letters of its groups, p against the best."""
    order = [int(m) for m in found.many.order if not np.isnan(found.many.ranks[m])]
    best = order[0] if order else 0
    against = [found.many.pairs[best, m] if m != best else np.nan for m in order]
    tasks = np.isfinite(found.values.to_numpy()).sum(axis=1)
    return Table(
        groups=[],
        model=text_column("model", (middle_cut(found.models[m]) for m in order), right=False),
        columns=[
            text_column("rank", (f"{found.many.ranks[m]:.1f}" for m in order)),
            Column(
                _letters_head(found), [Cell(text) for text in _letters(found, order)], right=False
            ),
            text_column("tasks", (tasks[m] for m in order)),
            text_column("p against the first", map(format_p, against)),
        ],
        starts=[0],
        caption=f"{len(order)} models, all pairs compared on their common tasks",
        notes=[*_letters_note(found), *map(plain, found.notes)],
    )


def _letters_head(found: AllPairs) -> str:
    return f"{TIE}, {AS_FITTED}" if found.many.claim == AS_FITTED else TIE


def _letters_note(found: AllPairs) -> Iterator[str]:
    if not found.many.test:
        yield f"Not tested: {found.why}."
        return
    yield f"Models that share a letter do not differ significantly ({found.many.test}, 5 %)."
    untested = int(found.pairs["p"].isna().sum())
    if untested:
        yield f"{count(untested, 'pair')} not tested: fewer than {FEWEST_TASKS} common tasks."
    if found.many.claim == AS_FITTED:
        yield TRAIN_AGAIN


def _letters(found: AllPairs, order: Sequence[int]) -> list[str]:
    """Return the letters of each model, each in a column of its own, or as numbers if many."""
    each = [re.findall(r"[a-z]|\[\d+\]", found.many.letters[m]) for m in order]
    signs = list(dict.fromkeys(sign for own in each for sign in own))
    if len(signs) > MAX_LETTERS:
        return [", ".join(str(signs.index(sign) + 1) for sign in own) for own in each]
    return [" ".join(sign if sign in own else " " for sign in signs) for own in each]


# -- a run against earlier ones -------------------------------------------------------------


def history_table(found: History) -> Table:
    """Return one group per task and view, one row per metric: this run and the best other."""
    rows = found.ranks
    group = rows.groupby(["task", "dataset", "view"], sort=False).ngroup().to_numpy()
    shown = ["task"]
    shown += ["dataset"] if (rows["dataset"] != rows["task"]).any() else []
    shown += ["view"] if (rows["view"] != CLEAN.name).any() else []
    labels = map(metric_label, rows["metric"], rows["higher_is_better"].map(bool))
    others = count(len(found.others), "other run")
    on = ", on common questions" if found.common else ""
    legend = ["coverage: share of questions answered by this run / by the best other."]
    legend += [BRACKETS] if rows["difference_low"].notna().any() else []
    return Table(
        groups=[text_column(name, rows[name], right=False) for name in shown],
        model=text_column("metric", labels, right=False),
        columns=_history_columns(found),
        starts=np.flatnonzero(np.diff(group, prepend=-1)).tolist(),
        caption=f"{plain(found.run.folder.resolve().name)} against {others}{on}",
        notes=[*legend, *map(plain, found.notes)],
    )


def _history_columns(found: History) -> list[Column]:
    rows = found.ranks
    this_run = found.values["run"].iloc[0] if len(found.values) else ""
    failed = found.values.loc[found.values["run"] == this_run, "status"] != OK
    leads = rows["rank"].eq(1).fillna(False).astype(bool)
    own = [
        Cell(SIGNS[FAILED] if lost else "–", faint=True)
        if math.isnan(value)
        else Cell(rounded(value), best)
        for value, best, lost in zip(rows["value"], leads, failed, strict=True)
    ]
    level = ((rows["difference"] == 0) | ~leads) & rows["best_value"].notna()
    others = zip(rows["best_value"], level, strict=True)
    ranks = zip(rows["rank"], rows["compared"], strict=True)
    names = (middle_cut(name) or "–" for name in rows["best_model"])
    differences = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    coverage = zip(rows["coverage"], rows["best_coverage"], strict=True)
    return [
        Column("this run", own),
        text_column("rank", ("–" if pd.isna(rank) else f"{rank} of {of}" for rank, of in ranks)),
        text_column("best other", names, right=False),
        Column("its value", [Cell(rounded(value), bool(best)) for value, best in others]),
        text_column("difference", map(interval, *differences), part="task"),
        text_column("coverage", map(_shares, coverage), part="task"),
    ]


def _shares(shares: Iterable[float]) -> str:
    """Format shares in percent, rounded down, so that only 1 is 100 %.

    >>> _shares([0.9999, 1.0])
    '99.9 % / 100 %'
    """
    return (
        " / ".join(
            "100 %" if share == 1 else f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"
            for share in shares
            if not math.isnan(share)
        )
        or "–"
    )


# -- items and slices -----------------------------------------------------------------------

#: characters of an item in a table
ITEM_WIDTH = 60
#: of an item on a narrow screen
FEWEST_LETTERS = 20


def show_items(found: ItemComparison, shape: str | None = None, top: int = 10) -> None:
    """Print the items on which one of two models is better, at most ``top`` each way and task."""
    table = items_table(found, top)
    if shape in (None, "table") and table.columns[-1].name == "item":
        table = _fitted(table, Console(highlight=False).width)
    show_result(table, found.sentences, shape, found.to_dict(), found.items)


def _fitted(table: Table, width: int) -> Table:
    """Return the table with items, its last column, cut to the width of the screen."""
    others = [table.model, *table.columns[:-1]]
    used = [max(len(c.name), *(len(cell.text) for cell in c.cells), 0) + 2 for c in others]
    room = max(width - sum(used) - 3, FEWEST_LETTERS)
    last = table.columns[-1]
    cells = [replace(cell, text=short(cell.text, room)) for cell in last.cells]
    return replace(table, columns=[*table.columns[:-1], replace(last, cells=cells)])


def items_table(found: ItemComparison, top: int) -> Table:
    """Return one group per task and better model, one row per item."""
    rows = found.items.groupby(["task", "better"], sort=False).head(top)
    names = list(_flip_groups(found, rows, top))
    place = pd.factorize(pd.Series(names, dtype=object))[0]
    answers = [
        text_column(middle_cut(name), _answers(rows, side), right=False)
        for name, side in ((found.first, "first"), (found.second, "second"))
    ]
    return Table(
        groups=[text_column("items", names, right=False)],
        model=text_column("key", map(format_answer, rows["key"]), right=False),
        columns=[
            text_column("target", map(format_answer, rows["target"]), right=False),
            *answers,
            *([text_column("item", rows["item"], right=False)] if rows["item"].any() else []),
        ],
        starts=np.flatnonzero(np.diff(place, prepend=-1)).tolist(),
        caption=f"{middle_cut(found.first)} against {middle_cut(found.second)}, item by item",
        notes=[
            "In percent: the confidence of an answer, the probability of the predicted class.",
            "The largest changes come first. -o FOLDER or --format csv writes all items.",
            *map(plain, found.notes),
        ],
    )


def _flip_groups(found: ItemComparison, rows: pd.DataFrame, top: int) -> Iterator[str]:
    """Yield the group of each row: its task, the better model, and the number of items."""
    sizes = found.items.groupby(["task", "better"]).size()
    binary = set(found.tasks.loc[found.tasks["loss"] == "error", "task"])
    for task, better in zip(rows["task"], rows["better"], strict=True):
        how = "only {} is right" if task in binary else "{} is better"
        whole = int(sizes[task, better])
        shown = f", {top} shown" if whole > top else ""
        who = how.format(middle_cut(better))
        yield f"{middle_cut(task)}: {who} ({count(whole, 'item')}{shown})"


def _answers(rows: pd.DataFrame, side: str) -> Iterator[str]:
    """Yield answers, each with its confidence if it has one."""
    for value, sure in zip(rows[side], rows[f"{side}_confidence"], strict=True):
        yield format_answer(value) + ("" if math.isnan(sure) else f" {100 * sure:.0f} %")


def show_slices(found: SliceComparison, shape: str | None = None, top: int = 10) -> None:
    """Print the slices with the smallest p, at most ``top``, and a sentence for each claim."""
    lines = found.sentences[:top]
    show_result(slices_table(found, top), lines, shape, found.to_dict(), found.slices)


def slices_table(found: SliceComparison, top: int) -> Table:
    """Return one row per tested slice: losses inside, difference, the same elsewhere, p."""
    rows = found.slices.head(top)
    bounds = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    elsewhere = rows["elsewhere"].map(signed if found.second else rounded)
    both = [(found.first, "first"), *([(found.second, "second")] if found.second else [])]
    against = f" against {middle_cut(found.second)}" if found.second else ""
    tasks = [text_column("task", map(middle_cut, rows["task"]), right=False)]
    tasks = tasks if found.slices["task"].nunique() > 1 else []
    return Table(
        groups=[],
        model=text_column(
            "slice", (short(name, ITEM_WIDTH) for name in rows["slice"]), right=False
        ),
        columns=[
            *tasks,
            text_column("items", (f"{number:,}" for number in rows["items"])),
            *(text_column(middle_cut(name), rows[side].map(rounded)) for name, side in both),
            text_column("difference", map(interval, *bounds), part="task"),
            text_column("elsewhere", elsewhere, part="task"),
            text_column("p", rows["p_adjusted"].map(format_p), part="task"),
            text_column("worse", (middle_cut(n) or "–" for n in rows["worse"]), right=False),
        ],
        starts=[0],
        caption=f"{middle_cut(found.first)}{against}, slices of items",
        notes=[_slice_legend(found, top), *map(plain, found.notes)],
    )


def _slice_legend(found: SliceComparison, top: int) -> str:
    tested = len(found.slices)
    shown = f" {top} of {tested} slices are shown." if tested > top else ""
    what = "loss inside the slice minus that elsewhere"
    if found.second:
        what = f"loss of {middle_cut(found.first)} minus that of {middle_cut(found.second)}"
    return (
        f"Difference: {what}, with its 95 % interval. p is corrected for "
        f"{count(tested, 'slice')} (Benjamini-Hochberg).{shown}"
    )
