"""Items that belong together: the declared groups of the data, or a column kept with the items.

Answers about the same person, document or template are not independent. A test that treats the
cluster as its unit holds for new clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.results.item_tables import ANSWER, GROUP, LENGTH
from karat.results.load import Gathered
from karat.results.run import Run

#: with fewer clusters their spread is not known, and nothing can be tested on them
FEWEST_CLUSTERS = 6
#: instead of a column: texts that differ in case, digits, punctuation and spaces only
NEAR_DUPLICATES = "near-duplicates"
#: texts of at least twice this length are near duplicates if they start with the same letters
PREFIX_LETTERS = 60
#: columns of the item table that say nothing about where an item comes from
DERIVED_COLUMNS = (LENGTH, ANSWER)
#: cells of a text column have more characters on average
TEXT_LENGTH = 30

#: a task's name on the leaderboard, a run that has it, and its name there
StoredTask = tuple[str, Run, str]
#: what a test on items assumes if nothing says which of them belong together
INDEPENDENT = (
    "Items are assumed independent; --cluster COLUMN if some belong together, such as those of "
    "one person."
)


def count_clusters(clusters: Sequence[np.ndarray]) -> int:
    """Return the number of different labels of all folds.

    >>> count_clusters([np.array(["ann", "bob"]), np.array(["ann"])])
    2
    """
    return len(set().union(*(fold.tolist() for fold in clusters)))


def near_duplicates(texts: Sequence[str]) -> np.ndarray:
    """Return a label of each text; near duplicates have the same one.

    Texts are compared by their letters: case, digits, punctuation and spaces do not count. Long
    texts with the same beginning are near duplicates too.

    >>> near_duplicates(["Order 17 is late.", "order 4 is late", "Thank you"]).tolist()
    ['orderislate', 'orderislate', 'thankyou']
    """
    letters = pd.Series(list(texts), dtype=object).astype(str).str.lower()
    letters = letters.str.replace(r"[\W\d_]+", "", regex=True)
    long = letters.str.len() >= 2 * PREFIX_LETTERS
    return letters.mask(long, letters.str[:PREFIX_LETTERS]).to_numpy(dtype=object)


def cluster_columns(items: pd.DataFrame) -> list[str]:
    """Return the columns of an item table by which items can be clustered."""
    return [str(name) for name in items.columns if name not in DERIVED_COLUMNS]


def text_columns(items: pd.DataFrame) -> list[str]:
    """Return the columns of an item table that hold texts, not names or numbers."""
    columns = [name for name in cluster_columns(items) if name != GROUP]
    if LENGTH in items:
        return columns
    return [name for name in columns if items[name].str.len().mean() > TEXT_LENGTH]


def known_clusters(items: pd.DataFrame) -> list[str]:
    """Return what the items can be clustered by: columns, and near duplicates of texts."""
    return [*cluster_columns(items), *([NEAR_DUPLICATES] if text_columns(items) else [])]


def column_labels(items: pd.DataFrame, column: str) -> pd.Series:
    """Return the cluster of each stored item by its key; a missing cell is a cluster of its own.

    >>> items = pd.DataFrame({"user": ["ann", "", "ann"]}, index=["0", "1", "2"])
    >>> column_labels(items, "user").tolist()
    ['ann', 'item 1', 'ann']
    """
    if column in items:
        labels = items[column]
    else:
        texts = [" ".join(cells) for cells in items[text_columns(items)].to_numpy(dtype=object)]
        labels = pd.Series(near_duplicates(texts), index=items.index)
    empty = labels == ""
    if not empty.any():
        return labels
    item_labels = pd.Series([f"item {key}" for key in items.index], index=items.index, dtype=object)
    return labels.mask(empty, item_labels)


def declared_groups(folds: Sequence[Predictions], by_group: bool) -> list[np.ndarray] | None:
    """Return the group of each row, by fold, if the data declare groups that can be a unit.

    Ranked lists and metrics that are means over groups have units of their own. None also if each
    group has one item, or there are fewer than six groups: then items are the unit.
    """
    groups = [fold.group for fold in folds if fold.group is not None]
    if by_group or len(groups) < len(folds) or any(fold.rank is not None for fold in folds):
        return None
    if any(_has_repeated_questions(fold) for fold in folds):
        return None
    labels = [group.astype(str) for group in groups]
    number, rows = count_clusters(labels), sum(map(len, labels))
    return labels if FEWEST_CLUSTERS <= number < rows else None


def _has_repeated_questions(fold: Predictions) -> bool:
    return fold.question is not None and len(np.unique(fold.question)) < len(fold)


def item_clusters(
    run: Run, task: str, folds: Sequence[Predictions], column: str = "", by_group: bool = False
) -> list[np.ndarray] | None:
    """Return the cluster of each row of some folds' predictions; None if items are independent.

    Clusters are the values of ``column``, which is kept with the items. Without a column, or where
    the task has none of this name, they are the declared groups.

    Raises
    ------
    DataError
        If the column is not known for all items, or has fewer than six values.
    """
    labels = _stored_labels(run, task, column) if column else None
    if labels is None or any(fold.key is None for fold in folds):
        return declared_groups(folds, by_group)
    clusters = [labels.reindex(fold.key).to_numpy(dtype=object) for fold in folds]
    unknown = sum(int(pd.isna(fold).sum()) for fold in clusters)
    if unknown:
        raise DataError(f'"{column}" is not known of {unknown:,} items of {task}.')
    number = count_clusters(clusters)
    if number < FEWEST_CLUSTERS:
        raise DataError(_too_few(column, {number: [task]}))
    return clusters if number < sum(map(len, clusters)) else None


def _stored_labels(run: Run, task: str, column: str) -> pd.Series | None:
    try:
        items = run.items(task)
    except DataError:
        return None
    return column_labels(items, column) if column in known_clusters(items) else None


def _too_few(column: str, tasks: Mapping[int, Sequence[str]]) -> str:
    """Return what is wrong with a column, from tasks by its number of values."""
    parts = [
        f"{'one value' if number == 1 else f'{number} values'} in {', '.join(names)}"
        for number, names in sorted(tasks.items())
    ]
    return (
        f'"{column}" has {"; ".join(parts)}: at least {FEWEST_CLUSTERS} clusters are needed to '
        "test on them."
    )


def cluster_unit(clusters: int, items: int, column: str = "") -> str:
    """Return a sentence that says what the unit of a test is.

    >>> cluster_unit(40, 1000)
    'The unit is the group: 40 groups of 1,000 items.'
    >>> cluster_unit(40, 1000, "user")
    'The unit is the cluster "user": 40 clusters of 1,000 items.'
    """
    kind = "cluster" if column else "group"
    name = f'{kind} "{column}"' if column else kind
    return f"The unit is the {name}: {clusters:,} {kind}s of {items:,} items."


def unit_notes(tested: Mapping[str, tuple[int, int]], column: str = "") -> list[str]:
    """Return one line on the unit of the tests on items; ``tested`` has clusters and items.

    >>> unit_notes({"adult": (40, 1000)})
    ['The unit is the group: 40 groups of 1,000 items.']
    >>> unit_notes({"adult": (40, 1000), "wine": (0, 90)})[0]
    'adult: The unit is the group: 40 groups of 1,000 items.'
    """
    clustered = {task: counts for task, counts in tested.items() if counts[0]}
    alone = len(tested) == 1
    notes = [
        ("" if alone else f"{task}: ") + cluster_unit(*counts, column)
        for task, counts in clustered.items()
    ]
    others = [task for task in tested if task not in clustered]
    if others and clustered:
        notes.append(f"{', '.join(others)}: {INDEPENDENT}")
    return notes or ([INDEPENDENT] if others else [])


# -- the column that was asked for ----------------------------------------------------------


def check_cluster_column(column: str, tasks: Iterable[StoredTask]) -> list[str]:
    """Return notes on tasks that cannot be clustered by a column that is kept with the items.

    Raises ``DefinitionError`` if no task can be.
    """
    reasons: list[str] = []
    tables = _item_tables(tasks, reasons)
    return [*check_labels(column, tables, reasons), *reasons]


def check_labels(
    column: str | None, tables: Mapping[str, pd.DataFrame | None], reasons: Sequence[str] = ()
) -> list[str]:
    """Return ``check_cluster_column`` of item tables by task; None is a task without one."""
    columns: dict[str, None] = {}
    few: dict[int, list[str]] = {}
    without: list[str] = []
    for task, items in tables.items() if column else ():
        columns_of_items = [] if items is None else known_clusters(items)
        columns |= dict.fromkeys(columns_of_items)
        if items is None or column not in columns_of_items:
            without.append(task)
        elif (number := column_labels(items, str(column)).nunique()) < FEWEST_CLUSTERS:
            few.setdefault(number, []).append(task)
    notes = [_too_few(str(column), few)] if few else []
    if column and sum(map(len, few.values())) + len(without) == len(tables):
        raise DefinitionError(*(notes or [_unknown_column(column, list(columns), reasons)]))
    absent = f'Without "{column}", so tested as without --cluster: {", ".join(without)}.'
    return [*notes, *([absent] if without else [])]


def _item_tables(tasks: Iterable[StoredTask], reasons: list[str]) -> dict[str, pd.DataFrame]:
    """Return the item table of each task, of the first run that keeps it, and add why not."""
    tables: dict[str, pd.DataFrame] = {}
    why: dict[str, str] = {}
    for label, run, task in tasks:
        if label in tables:
            continue
        try:
            tables[label] = run.items(task)
        except KaratError as error:
            why.setdefault(label, str(error))
    reasons += [reason for label, reason in why.items() if label not in tables]
    return tables


def _unknown_column(column: str, columns: Sequence[str], reasons: Sequence[str]) -> str:
    if not columns:
        why = f" {reasons[0]}" if reasons else ""
        return f'cluster "{column}": no items are kept with these runs.{why}'
    what = f'no column "{column}" is kept with the items.{did_you_mean(column, columns)}'
    if column == NEAR_DUPLICATES:
        what = f'"{column}" are those of texts; the items have no column of texts.'
    return f"cluster: {what} There are: {', '.join(columns)}."


def cluster_scores(gathered: Gathered, column: str | None) -> Gathered:
    """Return gathered scores whose items are tested by clusters; None and "" change nothing.

    Raises ``DefinitionError`` if no task has the column, or too few values of it.
    """
    if not column:
        return gathered
    if not gathered.sources:
        raise DefinitionError(f'cluster "{column}" needs run folders: a table has no items.')
    tasks = (
        (label, run, task)
        for run, _, labels in gathered.sources
        for task, label in labels.items()
        if label in gathered.metrics
    )
    check_cluster_column(column, tasks)
    return replace(gathered, cluster=column)
