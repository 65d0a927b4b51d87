"""The items of a task that several models answered, read from stored predictions.

Items are those of the first repeat of a cross-validation, so that none counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.analysis.item_values import contributions, is_accuracy
from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN
from karat.errors import DataError, KaratError
from karat.metrics.metric import get_metric
from karat.results.clusters import count_clusters, item_clusters
from karat.results.load import Gathered, as_runs
from karat.results.selection import CannotCompare, ModelRuns, Unit, common_rows, pooled_sides
from karat.stats.learner_tests import SeedNoise
from karat.stats.paired_items import FEWEST_ITEMS

#: the predictions of a model by fold, of its first seed
FoldPredictions = dict[int, Predictions]


@dataclass(frozen=True, eq=False)
class ItemValues:
    """What each unit of a task adds to the scores of some models.

    Attributes
    ----------
    models
        Names of the models whose predictions could be read.
    values
        Models × units, higher is better, mean over seeds. A unit is an item, a block of items, or
        a cluster of items that belong together.
    items, clusters, lists
        Number of items; of clusters, 0 if items are independent; of ranked lists, 0 if none are.
    independent
        Number of clusters, groups of items that have one score, or items: what is independent.
    is_right
        Whether the values are 1 for a right and 0 for a wrong answer.
    seeds
        What several seeds of a model add to the noise of its score.
    """

    models: list[str]
    values: np.ndarray
    items: int
    clusters: int = 0
    lists: int = 0
    independent: int = 0
    is_right: bool = False
    seeds: list[SeedNoise] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Aligned:
    """Predictions of each model by fold, on the items of all; ``left_out`` has places and why.

    ``shared`` are the items of each fold.
    """

    folds: list[list[Predictions]]
    places: list[int]
    left_out: dict[int, str]
    shared: dict[int, np.ndarray]


def read_item_values(
    sides: Mapping[str, tuple[ModelRuns, str]], metric: str, cluster: str = ""
) -> ItemValues:
    """Return what each item of a task adds to the scores of models, by name, with their tasks.

    Only items that all models were scored on count. A model whose predictions are not stored, or
    that would leave fewer than half of the others' items, is left out. ``cluster`` is the column of
    items that belong together. Raises a ``KaratError`` if fewer than two models, or too few items,
    can be compared.
    """
    by_group = get_metric(metric).by_group
    aligned = _align(list(sides.values()), by_group)
    names = [list(sides)[number] for number in aligned.places]
    reasons = list(aligned.left_out.values())
    if not names:
        raise DataError(next(iter(reasons), "no model has predictions."))
    side, task = sides[names[0]]
    clusters = item_clusters(side.run, task, aligned.folds[0], cluster, by_group)
    models, values, seeds = [], [], []
    for name, folds in zip(names, aligned.folds, strict=True):
        try:
            fits = [folds, *_further_fits(sides[name], aligned.shared, by_group)]
            of_seeds = np.array([contributions(metric, fit, clusters) for fit in fits])
        except KaratError as error:
            reasons.append(str(error))
            continue
        models.append(name)
        values.append(of_seeds.mean(axis=0))
        seeds.append(SeedNoise.of(of_seeds))
    if len(models) < 2 or len(values[0]) < FEWEST_ITEMS:
        raise DataError(next(iter(reasons), f"there are fewer than {FEWEST_ITEMS} items."))
    return ItemValues(
        models, np.array(values), seeds=seeds, **_counts(metric, aligned.folds[0], clusters, seeds)
    )


def common_items(
    sides: tuple[ModelRuns, ModelRuns],
    task: str,
    units: Sequence[Unit],
    metric: str,
    cluster: str = "",
) -> ItemValues:
    """Return what each question that two models can both answer adds to their scores."""
    both = _common_answers(sides, task, units)
    clusters = item_clusters(sides[0].run, task, both[0], cluster, get_metric(metric).by_group)
    values = np.array([contributions(metric, folds, clusters) for folds in both])
    if values.shape[1] < FEWEST_ITEMS:
        raise DataError(f"there are fewer than {FEWEST_ITEMS} items.")
    names, seeds = [side.model for side in sides], [SeedNoise(), SeedNoise()]
    return ItemValues(names, values, seeds=seeds, **_counts(metric, both[0], clusters, seeds))


def _counts(
    metric: str,
    folds: Sequence[Predictions],
    clusters: Sequence[np.ndarray] | None,
    seeds: Sequence[SeedNoise],
) -> dict[str, Any]:
    """Return what the items of a task are, and how many."""
    items, lists = sum(map(len, folds)), _count_groups([f for f in folds if f.rank is not None])
    groups = _count_groups(folds) if get_metric(metric).by_group else lists
    several = count_clusters(clusters) if clusters else 0
    fitted_once = not any(noise.freedom for noise in seeds)
    return {
        "items": items,
        "clusters": several,
        "lists": lists,
        "independent": several or groups or items,
        "is_right": is_accuracy(metric) and clusters is None and fitted_once,
    }


def _further_fits(
    side: tuple[ModelRuns, str], shared: Mapping[int, np.ndarray], by_group: bool
) -> Iterator[list[Predictions]]:
    """Yield the predictions of each further seed by fold, of seeds that all folds have."""
    model, task = side
    replicates = model.replicates(task)
    seeds = set.intersection(*(set(replicates.get(fold, [0])) for fold in shared))
    for number in sorted(seeds - {0}):
        read = [model.run.predictions(task, fold, replicate=number) for fold in shared]
        rows = zip(read, shared.values(), strict=True)
        yield [_take(fold, _keys(fold, by_group), items, by_group) for fold, items in rows]


def _count_groups(folds: Sequence[Predictions]) -> int:
    return sum(len(set(fold.group.tolist())) for fold in folds if fold.group is not None)


def find_sides(runs: Any, task: str, models: Sequence[str]) -> dict[str, tuple[ModelRuns, str]]:
    """Return the runs of each model that has answers to the task, as one side, and the task."""
    if isinstance(runs, Gathered):
        pooled = pooled_sides([run for run, _, _ in runs.sources], runs.pool)
    else:
        pooled = pooled_sides(as_runs(runs), "variant")
    sides = {side.model: side for side in pooled}
    named = {name: sides[name] for name in models if name in sides}
    return {n: (s, task) for n, s in named.items() if s.answered.get(task, {}).get(CLEAN)}


def fold_repeats(side: ModelRuns, task: str) -> dict[int, int]:
    """Return the repeat of each fold of a task."""
    return {r["fold"]: r["repeat"] for r in side.run.records() if r["task"] == task}


def first_repeat(side: ModelRuns, task: str) -> FoldPredictions:
    """Return the predictions of a task by fold, of the first repeat, so that no item is twice."""
    return next(read_repeats(side, task))


def read_repeats(side: ModelRuns, task: str) -> Iterator[FoldPredictions]:
    """Yield the predictions of a task by fold, of each repeat."""
    repeats = fold_repeats(side, task)
    folds = sorted(fold for fold, _ in side.answered[task][CLEAN])
    for number in sorted({repeats[fold] for fold in folds}):
        predictions = {
            fold: side.run.predictions(task, fold) for fold in folds if repeats[fold] == number
        }
        if any(fold.weight is not None for fold in predictions.values()):
            raise CannotCompare(0, "a row of its predictions counts for several items")
        yield predictions


def _align(sides: Sequence[tuple[ModelRuns, str]], by_group: bool) -> _Aligned:
    """Return the predictions of each model on the items that all have."""
    left_out: dict[int, str] = {}
    read: dict[int, FoldPredictions] = {}
    for number, (side, task) in enumerate(sides):
        try:
            read[number] = first_repeat(side, task)
        except (KaratError, ValueError, KeyError, TypeError):
            left_out[number] = f"predictions of {side.model} are not stored"
    keys = {p: {f: _keys(fold, by_group) for f, fold in folds.items()} for p, folds in read.items()}
    shared, others = _shared_items(keys)
    for number in others:
        left_out[number] = f"{sides[number][0].model} has predictions of other items"
    remaining = [number for number in read if number not in left_out]
    taken = {
        p: [_take(read[p][f], keys[p][f], shared[f], by_group) for f in shared] for p in remaining
    }
    for number in remaining[1:]:
        targets = zip(taken[number], taken[remaining[0]], strict=True)
        if not by_group and not all(np.array_equal(a.target, b.target) for a, b in targets):
            left_out[number] = f"{sides[number][0].model} has predictions of other items"
    places = [number for number in remaining if number not in left_out]
    return _Aligned([taken[number] for number in places], places, left_out, shared)


def _shared_items(
    keys: Mapping[int, dict[int, np.ndarray]],
) -> tuple[dict[int, np.ndarray], list[int]]:
    """Return the items that all models have, by fold, and the models that have other items."""
    shared: dict[int, np.ndarray] = {}
    others = []
    for number in sorted(keys, key=lambda p: -sum(map(len, keys[p].values()))):
        item_keys = keys[number]
        both = (
            {f: np.intersect1d(shared[f], item_keys[f]) for f in shared if f in item_keys}
            if shared
            else item_keys
        )
        if 2 * sum(map(len, both.values())) < sum(map(len, shared.values())):
            others.append(number)
            continue
        shared = {f: np.unique(items) for f, items in both.items() if len(items)}
    return shared, others


def _keys(answers: Predictions, by_group: bool) -> np.ndarray:
    """Return the item of each row: its group, or its question."""
    if by_group and answers.group is not None:
        return answers.group.astype(str)
    if answers.question is not None:
        return np.asarray(answers.question)
    return np.arange(len(answers))


def _take(answers: Predictions, keys: np.ndarray, shared: np.ndarray, group: bool) -> Predictions:
    if group and answers.group is not None:
        return answers.take(np.flatnonzero(np.isin(keys, shared)))
    order = np.argsort(keys, kind="stable")
    return answers.take(order[np.searchsorted(keys[order], shared)])


def _common_answers(
    sides: tuple[ModelRuns, ModelRuns], task: str, units: Sequence[Unit]
) -> list[list[Predictions]]:
    """Return the predictions of both, fold by fold, on the questions that both can answer."""
    repeats = fold_repeats(sides[0], task)
    first = repeats[units[0][0]]
    both: list[list[Predictions]] = [[], []]
    for unit in units:
        if repeats[unit[0]] != first:
            continue
        folds = [side.answered[task][CLEAN][unit] for side in sides]
        answers = [side.run.predictions(task, unit[0]) for side in sides]
        rows = common_rows(answers, folds)
        for taken, predictions, shared in zip(both, answers, rows, strict=True):
            taken += [predictions.take(shared)] if len(shared) else []
    if not both[0]:
        raise DataError("there is no question that both can answer.")
    return both
