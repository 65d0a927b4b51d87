"""Models item by item: the answers and losses of each item, and the items that flipped.

The loss of an item is 0 for the best answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis import items_wording
from karat.analysis.pairing import Paired, pair
from karat.core.formatting import format_answer, short
from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.output.result import Result
from karat.output.table import Table
from karat.results.item_tables import ABSENT, GROUP, NoItems, describe_item
from karat.results.run import Run, open_runs
from karat.results.run_folders import is_run_folder
from karat.results.selection import ModelRuns, common_rows, find_run, pooled_sides, unknown_model
from karat.stats.paired_tests import average_ranks

#: items or slices in the table of a result
TOP = 10
#: relative size below which a change is rounding
EQUAL = 1e-12
#: characters of an item in a table
ITEM_WIDTH = 200
#: characters of an item in a list
LINE_WIDTH = 60
ITEM_COLUMNS = (
    "task",
    "better",
    "key",
    "target",
    "first",
    "second",
    "first_confidence",
    "second_confidence",
    "first_loss",
    "second_loss",
    "change",
    "fold",
    "item",
)
COUNT_COLUMNS = (
    "task",
    "loss",
    "items",
    "first_loss",
    "second_loss",
    "first_better",
    "second_better",
    "same",
)

Runs = Run | str | Path | Iterable[Run | str | Path]


# -- the answers of a task, item by item ----------------------------------------------------


@dataclass(frozen=True)
class TaskItems:
    """The items of a task: ``table`` has one row per item, ``texts`` the item table, if any.

    ``loss`` is the name of the loss, ``why`` the reason if there is no item table.
    """

    task: str
    loss: str
    table: pd.DataFrame
    texts: pd.DataFrame | None = None
    why: str = ""

    def described(self) -> list[str]:
        """Return the text of each item, empty if it is not stored."""
        if self.texts is None:
            return [""] * len(self.table)
        stored_keys = self.texts.index
        places = stored_keys.get_indexer(pd.Index(self.table["key"]))
        return [describe_item(self.texts.iloc[i], ITEM_WIDTH) if i >= 0 else "" for i in places]


def item_losses(answers: Predictions, kind: str) -> tuple[np.ndarray, str]:
    """Return the loss of each answer, 0 if it is the best one, and the name of the loss.

    It is the error (0 or 1) of a class, the absolute error of a number, the difference in rank
    (as a share of all) where numbers are not on the scale of the target, and 1 - 1/rank of an item.

    >>> item_losses(Predictions([1.0, 5.0], [1.0, 3.0]), "regression")
    (array([0., 2.]), 'absolute error')
    """
    if answers.answers == "clusters":
        raise DataError("a clustering has no answer about a single item.")
    if answers.answers == answers.truths == "numbers":
        if kind == "regression":
            return np.abs(answers.target - answers.predictions), "absolute error"
        apart = average_ranks(answers.target) - average_ranks(answers.predictions)
        return np.abs(apart) / max(len(answers), 1), "rank distance"
    if answers.rank is not None:
        return 1 - 1 / np.maximum(answers.rank, 1.0), "1 - 1/rank"
    if answers.answers == "numbers":
        raise DataError("a number is not an answer that is right or wrong.")
    return (answers.predictions.astype(str) != answers.target.astype(str)).astype(float), "error"


def _columns(name: str, answers: Predictions, kind: str) -> tuple[dict[str, Any], str]:
    losses, loss = item_losses(answers, kind)
    none = np.full(len(answers), np.nan)
    sure, chance = answers.confidence, answers.target_chance
    return {
        name: answers.predictions,
        f"{name}_confidence": none if sure is None else sure,
        f"{name}_chance": none if chance is None else chance,
        f"{name}_loss": losses,
    }, loss


def _keyed(answers: Predictions, fold: int) -> np.ndarray:
    """Return the keys of rows; those of earlier versions are numbered within their fold."""
    if answers.key is not None:
        return answers.key
    rows = np.arange(len(answers)) if answers.question is None else answers.question
    return np.array([f"fold {fold}, row {row}" for row in rows], dtype=object)


def _one_repeat(run: Run, task: str, folds: Iterable[int]) -> list[int]:
    """Return the folds of the first repeat, in which no item occurs twice."""
    repeats = {r["fold"]: r["repeat"] for r in run.records() if r["task"] == task}
    chosen = [fold for fold in folds if fold in repeats]
    return [fold for fold in chosen if repeats[fold] == repeats[chosen[0]]]


def paired_items(paired: Paired) -> TaskItems:
    """Return the items of a task that both models answered.

    Raises ``KaratError`` if predictions are missing, or not about one item each.
    """
    if paired.sides is None or not paired.units:
        reason = next((state for state in paired.states if state != "ok"), "no common fold")
        raise DataError(f"{reason}.")
    sides, parts = paired.sides, []
    kind = str(sides[0].tasks[paired.task].get("kind", ""))
    loss = ""
    for fold in _one_repeat(sides[0].run, paired.task, [fold for fold, _ in paired.units]):
        one, other = _matched(paired, fold)
        facts = {"fold": fold, "key": _keyed(one, fold), "target": one.target}
        first, loss = _columns("first", one, kind)
        second, _ = _columns("second", other, kind)
        group = {} if one.group is None else {GROUP: one.group}
        parts.append(pd.DataFrame({**facts, **first, **second, **group}))
    table = pd.concat(parts, ignore_index=True)
    if not len(table):
        raise DataError("there is no item that both answered.")
    return _with_texts([side.run for side in sides], paired.task, loss, table)


def _matched(paired: Paired, fold: int) -> tuple[Predictions, Predictions]:
    """Return the rows of a fold about the same items, in the order of the first model."""
    assert paired.sides is not None
    task, sides = paired.task, paired.sides
    one, other = (side.run.predictions(task, fold).covered() for side in sides)
    if one.key is None or other.key is None:
        folds = [side.answered[task][CLEAN][fold, 0] for side in sides]
        rows = common_rows([one, other], folds)
    else:
        _, first, second = np.intersect1d(one.key, other.key, return_indices=True)
        order = np.argsort(first)
        rows = [first[order], second[order]]
        if len({*one.key.tolist()}) < len(one) or len({*other.key.tolist()}) < len(other):
            raise DataError("a row of its predictions is not about one item.")
    one, other = one.take(rows[0]), other.take(rows[1])
    if not np.array_equal(one.target, other.target):
        raise DataError(f"the items of fold {fold} have other targets.")
    return one, other


def _with_texts(runs: Sequence[Run], task: str, loss: str, table: pd.DataFrame) -> TaskItems:
    """Add the item table of the first run that has one."""
    why = ""
    for run in runs:
        try:
            return TaskItems(task, loss, table, run.items(task))
        except NoItems:
            facts = next(
                task_facts for task_facts in run.about["tasks"] if task_facts["name"] == task
            )
            why = why or str((facts.get("item_table") or {}).get("reason") or ABSENT)
        except DataError as error:
            why = why or str(error).rstrip(".")
    return TaskItems(task, loss, table, None, why)


def items_of_two(
    runs: Any, a: Any, b: Any, tasks: str | Sequence[str], pool: str = "variant"
) -> tuple[str, str, list[TaskItems], list[str]]:
    """Return the names of two models and the items of each task; raise if there are none."""
    if isinstance(runs, pd.DataFrame):
        raise DefinitionError("a table of scores has no items; pass run folders.")
    pairing = pair(runs, a, b, None, "folds", pool)
    chosen = _chosen([paired_task.task for paired_task in pairing.tasks], tasks)
    task_items, notes = [], list(pairing.notes)
    tasks_of: dict[str, list[str]] = {}
    for paired in pairing.tasks:
        if paired.task not in chosen:
            continue
        try:
            task_items.append(paired_items(paired))
        except KaratError as error:
            tasks_of.setdefault(str(error).rstrip("."), []).append(paired.task)
    notes += [f"Not compared, {why}: {', '.join(names)}." for why, names in tasks_of.items()]
    if not task_items:
        reasons = " ".join(notes[-3:])
        raise DataError(f"{pairing.first} and {pairing.second} have no common items. {reasons}")
    return pairing.first, pairing.second, task_items, notes


def _chosen(task_names: Sequence[str], wanted: str | Sequence[str]) -> list[str]:
    """Return the tasks that were asked for, or all; raise for an unknown one."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [
        f'the runs have no task "{name}".{did_you_mean(name, task_names)} '
        f"They have: {', '.join(task_names)}."
        for name in names
        if name not in task_names
    ]
    if unknown:
        raise DefinitionError(*unknown)
    return names or list(task_names)


def items_of_one(
    runs: Any, name: Any, tasks: str | Sequence[str], pool: str = "variant"
) -> tuple[str, list[TaskItems], list[str]]:
    """Return the name of a model and the items of each of its tasks; its runs are pooled."""
    side = _side_of(runs, name, pool)
    task_items, notes = [], []
    for task in _chosen(list(side.tasks), tasks):
        try:
            task_items.append(_own_items(side.run, task))
        except KaratError as error:
            notes.append(f"{task}: left out, {str(error).rstrip('.')}.")
    if not task_items:
        raise DataError(f"{side.model} has no items. {' '.join(notes[:3])}")
    return side.model, task_items, notes


def _side_of(runs: Any, name: Any, pool: str) -> ModelRuns:
    if isinstance(runs, pd.DataFrame):
        raise DefinitionError("a table of scores has no items; pass run folders.")
    if isinstance(name, Run | Path) or is_run_folder(Path(str(name))):
        return pooled_sides([find_run(name)], pool)[0]
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [run for run in several if isinstance(run, Run)]
    if paths := [path for path in several if not isinstance(path, Run)]:
        opened += open_runs(paths)
    sides = {side.model: side for side in pooled_sides(opened, pool)}
    if name not in sides:
        raise DefinitionError(unknown_model(str(name), list(sides), "the runs have"))
    return sides[name]


def _own_items(run: Run, task: str) -> TaskItems:
    """Return the items of a task that one model answered."""
    described = next(facts for facts in run.about["tasks"] if facts["name"] == task)
    done = [r["fold"] for r in run.records() if r["task"] == task and r["status"] == "ok"]
    parts, loss = [], ""
    for fold in _one_repeat(run, task, [fold for fold in done if fold is not None]):
        answers = run.predictions(task, fold).covered()
        columns, loss = _columns("first", answers, str(described.get("kind", "")))
        facts = {"fold": fold, "key": _keyed(answers, fold), "target": answers.target}
        group = {} if answers.group is None else {GROUP: answers.group}
        parts.append(pd.DataFrame({**facts, **columns, **group}))
    if not parts:
        raise DataError("it has no predictions.")
    return _with_texts([run], task, loss, pd.concat(parts, ignore_index=True))


# -- flips ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class ItemComparison(Result):
    """The items on which one of two models is better.

    Attributes
    ----------
    first, second
        The names of a and b.
    items
        One row per item whose loss differs: ``better`` is the better model, then the key, target,
        both answers with their confidence and loss, ``change`` (loss of the first minus that of
        the second), fold, and the text or the cells. For classes, these are the items that only
        one model answers correctly. The largest changes come first.
    tasks
        One row per task: the name of the ``loss``, the number of items, both mean losses, and the
        numbers of items on which the first is better, the second is better, and both are the same.
    notes
        What was left out and why.
    top
        Number of items of a task in the table, each way; the other outputs have all.
    """

    first: str
    second: str
    items: pd.DataFrame
    tasks: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    top: int = TOP

    csv_prefix: ClassVar[str] = "comparison"
    hidden: ClassVar[tuple[str, ...]] = ("top",)

    @property
    def sentence(self) -> str:
        """On how many items which model is better."""
        return items_wording.items_sentence(self)

    @property
    def sentences(self) -> list[str]:
        """One sentence per task."""
        return [items_wording.task_sentence(self, row) for _, row in self.tasks.iterrows()]

    @property
    def details(self) -> list[str]:
        """The sentences of several tasks."""
        return self.sentences if len(self.tasks) > 1 else []

    def tables(self) -> list[Table]:
        """Return the items with the largest changes."""
        return [items_wording.items_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return all items, and their numbers by task."""
        return {"items": self.items, "item_counts": self.tasks}


def compare_items(
    runs: Runs,
    a: Run | str | Path,
    b: Run | str | Path,
    *,
    tasks: str | Sequence[str] = (),
    pool: str = "variant",
) -> ItemComparison:
    """Return the items on which one of two models is better than the other.

    The models are paired as by ``compare``; only items that both answered on clean data count, and
    of repeated folds only the first repeat. Texts and cells are shown if the runs keep them.

    Parameters
    ----------
    runs
        Runs, run folders or folders of runs, in which the models are looked up.
    a, b
        Names of models, runs, or run folders.
    tasks
        Names of the tasks to compare. Default: all.
    pool
        Which runs are one model: ``"variant"``, ``"model"`` or ``"none"``, as in ``compare``.

    Returns
    -------
    ItemComparison
        The items that flipped, both ways, and their numbers.

    Raises
    ------
    DataError
        If no task has predictions of both models about the same items.
    DefinitionError
        If a model or task is unknown, or both models are the same.

    Examples
    --------
    >>> found = karat.compare_items("results", "skrub", "onehot")  # doctest: +SKIP
    >>> found.items[["better", "target", "first", "second", "item"]]  # doctest: +SKIP
    """
    first, second, task_items, notes = items_of_two(runs, a, b, tasks, pool)
    flips = [_flips(several, first, second) for several in task_items]
    counts = [_counts(several) for several in task_items]
    notes += without_texts(task_items)
    items = pd.concat(flips, ignore_index=True)[list(ITEM_COLUMNS)]
    return ItemComparison(first, second, items, pd.DataFrame(counts), notes)


def largest_flips(items: pd.DataFrame, better: str, most: int) -> pd.DataFrame:
    """Return the largest changes of the items that one model answers better.

    The tasks take turns, because losses of different tasks have different units.
    """
    rows = items[items["better"] == better]
    turn = rows.groupby("task", sort=False).cumcount()
    return rows.iloc[np.argsort(turn.to_numpy(), kind="stable")[:most]]


def flip_lines(flips: pd.DataFrame, before: str, after: str) -> list[str]:
    """Return one line per item: task, key, target, and the answers in two columns."""
    return [
        f"{row['task']}, {row['key']}: target {format_answer(row['target'])}, "
        f"{format_answer(row[before])} → {format_answer(row[after])}"
        + (f" ({short(row['item'], LINE_WIDTH)})" if row["item"] else "")
        for _, row in flips.iterrows()
    ]


def _changed(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the change in loss of each item, and whether it is more than rounding."""
    one, other = table["first_loss"].to_numpy(), table["second_loss"].to_numpy()
    with np.errstate(invalid="ignore"):
        change = np.where(one == other, 0.0, one - other)
    return change, np.abs(change) > EQUAL * np.maximum(1.0, np.minimum(np.abs(one), np.abs(other)))


def _flips(task_items: TaskItems, first: str, second: str) -> pd.DataFrame:
    """Return the items whose loss differs, the largest change first, by the better model."""
    change, differs = _changed(task_items.table)
    rows = task_items.table.assign(change=change)[differs]
    # of wrong classes, those with the largest change in the probability of the target come first
    apart = (rows["first_chance"] - rows["second_chance"]).abs().fillna(0.0)
    order = np.lexsort((-apart, -rows["change"].abs(), rows["change"] > 0))
    rows = rows.iloc[order].assign(task=task_items.task)
    better = np.where(rows["change"] < 0, first, second)
    rows = rows.assign(better=better, target=rows["target"].astype(object))
    part = TaskItems(task_items.task, task_items.loss, rows, task_items.texts)
    return rows.assign(item=part.described())


def _counts(task_items: TaskItems) -> dict[str, Any]:
    change, differs = _changed(task_items.table)
    ahead, behind = int((differs & (change < 0)).sum()), int((differs & (change > 0)).sum())
    means = (float(task_items.table[f"{name}_loss"].mean()) for name in ("first", "second"))
    rest = len(change) - ahead - behind
    values = (task_items.task, task_items.loss, len(change), *means, ahead, behind, rest)
    return dict(zip(COUNT_COLUMNS, values, strict=True))


def without_texts(task_items: Sequence[TaskItems]) -> list[str]:
    """Return a note for each reason why the items of some tasks are not stored."""
    tasks: dict[str, list[str]] = {}
    for items in task_items:
        if items.texts is None:
            tasks.setdefault(items.why, []).append(items.task)
    return [f"Keys only, no items ({why}): {', '.join(names)}." for why, names in tasks.items()]
