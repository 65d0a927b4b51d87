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
from karat.analysis.cheapest import Cheapest, cheapest_rows
from karat.analysis.comparison import Comparison, overall_lines, task_table
from karat.analysis.history import History
from karat.analysis.items import ItemComparison
from karat.analysis.slices import SliceComparison
from karat.core.formatting import (
    count,
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
from karat.errors import KaratError
from karat.reporting.formats import (
    DOCUMENTS,
    MAX_LETTERS,
    SIGNS,
    Cell,
    Column,
    Table,
    dump_json,
    escape_markdown,
    metric_label,
    text_column,
)
from karat.reporting.leaderboard_output import wrap
from karat.reporting.terminal import print_table
from karat.results.load import FAILED, OK
from karat.stats.ranking import FEWEST_TASKS

if TYPE_CHECKING:
    from karat.analysis.gate import Gate, GateRates
    from karat.analysis.power import Power
    from karat.analysis.race import Race, RaceReplay
    from karat.analysis.same_encoder import Same
    from karat.analysis.shrink import Shrunk
    from karat.analysis.verification import Verification
    from karat.results.run import Run

BRACKETS = (
    "difference: this run minus the best other. In brackets: 95 % interval over folds, corrected "
    "for overlapping training sets; an interval that contains 0 is not significant."
)


def show_comparison(found: Comparison, shape: str | None = None) -> None:
    """Print a comparison of two models."""
    cut = _with_cut_names(found)
    lines = [f"{plain(line)[0].upper()}{plain(line)[1:]}." for line in overall_lines(cut)]
    _show(comparison_table(cut), [cut.sentence, *lines], shape, found.to_dict(), found.tasks)


def show_all_pairs(found: AllPairs, shape: str | None = None) -> None:
    """Print a comparison of many models in the order of their ranks."""
    table = all_pairs_table(found)
    _show(table, [plain(found.sentence)], shape, found.to_dict(), found.pairs)


def show_history(found: History, shape: str | None = None) -> None:
    """Print a comparison of a run with earlier ones."""
    whole = {
        "run": found.run.folder.resolve().name,
        "common": found.common,
        "values": records(found.values),
        "ranks": records(found.ranks),
        "notes": found.notes,
    }
    _show(history_table(found), [], shape, whole, found.ranks)


def _show(
    table: Table, lines: Sequence[str], shape: str | None, whole: Any, rows: pd.DataFrame
) -> None:
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
    tasks = count(int(found.tasks["p"].notna().sum()), "task")
    yield (
        f"Difference: {found.first} minus {found.second}; in brackets the 95 % interval {over}. "
        f"p is corrected for {tasks} (Holm)."
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
            Column("tie", [Cell(text) for text in _letters(found, order)], right=False),
            text_column("tasks", (tasks[m] for m in order)),
            text_column("p against the first", map(format_p, against)),
        ],
        starts=[0],
        caption=f"{len(order)} models, all pairs compared on their common tasks",
        notes=[*_letters_note(found), *map(plain, found.notes)],
    )


def _letters_note(found: AllPairs) -> Iterator[str]:
    if not found.many.test:
        yield f"Not tested: {found.why}."
        return
    yield f"Models that share a letter do not differ significantly ({found.many.test}, 5 %)."
    untested = int(found.pairs["p"].isna().sum())
    if untested:
        yield f"{count(untested, 'pair')} not tested: fewer than {FEWEST_TASKS} common tasks."


def _letters(found: AllPairs, order: Sequence[int]) -> list[str]:
    """Return the letters of each model, each in a column of its own, or as numbers if many."""
    each = [re.findall(r"[a-z]|\[\d+\]", found.many.letters[m]) for m in order]
    signs = list(dict.fromkeys(sign for own in each for sign in own))
    if len(signs) > MAX_LETTERS:
        return [", ".join(str(signs.index(sign) + 1) for sign in own) for own in each]
    return [" ".join(sign if sign in own else " " for sign in signs) for own in each]


# -- the cheapest model ---------------------------------------------------------------------


def show_cheapest(found: Cheapest, shape: str | None = None) -> None:
    """Print the cheapest model that is not worse than the reference, and a row per model."""
    lines = [plain(found.sentence)]
    _show(cheapest_table(found), lines, shape, found.to_dict(), found.models)


def cheapest_table(found: Cheapest) -> Table:
    """Return one row per model, the cheapest first: cost, score, difference and verdict."""
    rows = cheapest_rows(found)
    verdicts = zip(rows["verdict"], rows["model"] == found.model, strict=True)
    against = f"against {middle_cut(found.reference)}"
    return Table(
        groups=[],
        model=text_column("model", map(middle_cut, rows["model"]), right=False),
        columns=[
            text_column(found.cost, rows[found.cost]),
            text_column("score", rows["score"], part="task"),
            text_column("difference", rows["difference"]),
            Column("verdict", [Cell(text, best) for text, best in verdicts], right=False),
        ],
        starts=[0],
        caption=f"{count(len(rows), 'model')} by {found.cost}, {against}",
        notes=[*map(plain, found.notes)],
    )


# -- smaller suites, and the size that a difference takes -------------------------------------


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
    _show(table, [plain(found.sentence)], shape, found.to_dict(), rows)


def show_power(found: Power) -> None:
    """Print how many tasks, folds or items a difference takes."""
    _show(power_table(found), [plain(found.sentence)], None, found.to_dict(), found.tasks)


def power_table(found: Power) -> Table:
    """Return one row per task: the spread and number of folds and items, and those needed."""
    rows = found.tasks
    spread = {name: map(_spread, rows[name]) for name in ("fold_spread", "item_spread")}
    number = {n: map(_needed, rows[n]) for n in ("folds", "folds_needed", "items", "items_needed")}
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("difference", [signed(each) for each in rows["difference"]]),
            text_column("sd folds", spread["fold_spread"]),
            text_column("folds", number["folds"]),
            text_column("needed", number["folds_needed"]),
            text_column("sd items", spread["item_spread"]),
            text_column("items", number["items"]),
            text_column("items needed", number["items_needed"]),
        ],
        starts=[0],
        caption=f"Folds and items that detect {found.difference:g} on a single task",
        notes=[
            "needed: folds or items for a two-sided test at 5 % with a power of 80 %; folds by the "
            "t-test corrected for overlapping training sets (∞: no number of folds is enough), "
            "items by a paired t-test of stored predictions.",
            *map(plain, found.notes),
        ],
    )


def _spread(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2g}"


def _needed(value: float) -> str:
    if np.isnan(value) or value == 0:
        return "–"
    return "∞" if np.isinf(value) else f"{value:,.0f}"


# -- a race ---------------------------------------------------------------------------------


def show_race(found: Race, shape: str | None = None) -> None:
    """Print the answer of a race, and a row per model."""
    from karat.analysis.race import race_rows

    caption = f"race to the goal {found.goal}: {count(len(found.models), 'model')}"
    _show_rows(found, race_rows(found), caption, shape)


def show_replay(found: RaceReplay, shape: str | None = None) -> None:
    """Print what races on finished runs would have saved, and a row per model."""
    from karat.analysis.race import replay_rows

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
    _show(table, [plain(found.sentence)], shape, found.to_dict(), found.models)


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
    _show(table, found.sentences, shape, found.to_dict(), found.items)


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
    _show(slices_table(found, top), lines, shape, found.to_dict(), found.slices)


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


# -- two encoders ---------------------------------------------------------------------------


def show_same(found: Same, shape: str | None = None) -> None:
    """Print whether two encoders are the same, with the measured values."""
    rows = found.lines()
    levels = [level for level, _, _ in rows]
    place = pd.factorize(pd.Series(levels, dtype=object))[0]
    table = Table(
        groups=[text_column("level", levels, right=False)],
        model=text_column("measure", [name for _, name, _ in rows], right=False),
        columns=[text_column("value", [value for _, _, value in rows])],
        starts=np.flatnonzero(np.diff(place, prepend=-1)).tolist(),
        caption=f"{found.a} against {found.b}",
        notes=[*found.flip_lines(), *found.notes],
    )
    frame = pd.DataFrame(rows, columns=["level", "measure", "value"])
    _show(table, [found.sentence], shape, found.to_dict(), frame)


# -- a gate ---------------------------------------------------------------------------------


def show_gate(found: Gate, shape: str | None = None) -> None:
    """Print the outcome of a gate; in Markdown also changes of robustness and of checks."""
    lines = [plain(found.sentence)]
    lines += [plain(found.rates.sentence)] if found.rates else []
    if shape == "markdown":
        sys.stdout.write(gate_markdown(found))
        return
    flips = ["Items that became worse most:", *found.flip_lines()] if len(found.flips) else []
    _show(gate_table(found), [*lines, *map(plain, flips)], shape, found.to_dict(), found.tasks)


def gate_table(found: Gate) -> Table:
    """Return one row per task: both scores, the difference, and the outcome."""
    rows = found.tasks
    bounds = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("metric", rows["metric"], right=False),
            text_column("baseline", rows["baseline"].map(rounded)),
            text_column("new", rows["new"].map(rounded)),
            text_column("difference", map(interval, *bounds), part="task"),
            text_column("outcome", rows["outcome"], right=False, part="task"),
        ],
        starts=[0],
        caption=f"{middle_cut(found.new)} against {middle_cut(found.baseline)}",
        notes=list(map(plain, found.notes)),
    )


def gate_markdown(found: Gate) -> str:
    """Return the comment of a gate: outcome, leaderboard, robustness, checks, flips, rates."""
    parts = [f"### Gate: {found.outcome}", escape_markdown(plain(found.sentence))]
    table = replace(gate_table(found), notes=[], caption="")
    parts += ["#### Leaderboard", DOCUMENTS["markdown"](table)]
    changed = robustness_change(*found.runs)
    if len(changed):
        parts += ["#### Robustness", _render_frame(changed)]
    findings = new_findings(*found.runs)
    parts += ["#### Checks", "\n".join(findings) or "No new finding."]
    if len(found.flips):
        flips = (escape_markdown(plain(line)) for line in found.flip_lines())
        parts += ["#### Items that became worse most", "\n".join(f"- {line}" for line in flips)]
    parts += [found.rates.sentence] if found.rates else []
    parts += [escape_markdown(plain(note)) for note in found.notes]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _render_frame(frame: pd.DataFrame) -> str:
    """Return a frame of texts as a Markdown table."""
    first, *others = (text_column(str(name), frame[name], right=name != "task") for name in frame)
    return DOCUMENTS["markdown"](Table([], first, others, [0], "", []))


def robustness_change(new: list[Run], baseline: list[Run]) -> pd.DataFrame:
    """Return the share of the clean score kept under corruption, of both, by task, as text."""
    from karat.analysis.robustness import robustness

    try:
        tables = [robustness(runs, pool="model") for runs in (baseline, new)]
    except KaratError:  # no corrupted views
        return pd.DataFrame()
    both = [table.set_index("task")["retention"] for table in tables]
    found = pd.DataFrame({"baseline": both[0], "new": both[1]}).dropna()
    change = found["new"] - found["baseline"]
    shown = found.map(rounded).assign(difference=change.map(signed))
    return shown.reset_index(names="task")


def new_findings(new: list[Run], baseline: list[Run]) -> list[str]:
    """Return the findings of the checks that only the new runs have."""
    from karat.analysis.checks import check_runs

    known = {(each.code, each.task) for each in check_runs(baseline, pool="model")}
    found = [e for e in check_runs(new, pool="model") if (e.code, e.task) not in known]
    return [f"- {e.code} ({e.level}): {escape_markdown(plain(e.message))}" for e in found]


def show_rates(found: GateRates, shape: str | None = None) -> None:
    """Print the error rates of a gate."""
    rows = found.rates
    shares = [
        text_column(name.replace("_", " "), (f"{100 * share:.1f} %" for share in rows[name]))
        for name in ("failed", "cannot_tell", "passed")
    ]
    table = Table(
        groups=[],
        model=text_column("true loss", (f"{loss:g}" for loss in rows["loss"])),
        columns=shares,
        starts=[0],
        caption=f"{found.simulations:,} simulated gates per row",
        notes=[],
    )
    _show(table, [found.sentence], shape, found.to_dict(), rows)


# -- verification ---------------------------------------------------------------------------


def show_verifications(found: Sequence[Verification], shape: str | None = None) -> None:
    """Print what was checked in each run, and why it is refused."""
    if shape == "json":
        sys.stdout.write(dump_json([each.to_dict() for each in found]))
    elif shape == "csv":
        tables = [each.checks.assign(run=each.run.folder.resolve().name) for each in found]
        sys.stdout.write(pd.concat(tables).to_csv(index=False, lineterminator="\n"))
    else:
        for each in found:
            name = plain(each.run.folder.resolve().name)
            if shape == "markdown":
                answer = "refused" if each.refused else each.sentence.rstrip(".")
                title = f"{name}: {answer[0].lower()}{answer[1:]}"
                sys.stdout.write(verification_markdown(each, plain(title)))
                continue
            reasons = [plain(f"{reason.check}: {reason}") for reason in each.reasons]
            table = verification_table(each, name)
            _show(table, [plain(each.sentence), *reasons], shape, None, each.checks)


def verification_table(found: Verification, caption: str) -> Table:
    """Return one row per check."""
    rows = found.checks
    columns = [text_column(name, rows[name], right=False) for name in ("outcome", "detail")]
    first = text_column("check", rows["check"], right=False)
    return Table([], first, columns, [0], caption, list(map(plain, found.notes)))


def verification_markdown(found: Verification, title: str) -> str:
    """Return the comment of a verification: the outcome, the reasons, the checks, the notes."""
    parts = [f"### {escape_markdown(title)}"]
    reasons = (f"- {reason.check}: {reason}" for reason in found.reasons)
    parts += ["\n".join(escape_markdown(plain(each)) for each in reasons)]
    parts += [DOCUMENTS["markdown"](replace(verification_table(found, ""), notes=[]))]
    parts += ["\n".join(f"- {escape_markdown(plain(note))}" for note in found.notes)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n\n"
