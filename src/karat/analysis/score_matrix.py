"""Scores of models on tasks: rules for missing scores, and normalization to one scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DefinitionError, did_you_mean
from karat.results.load import DECLINED, FAILED, NOT_RUN, OK, Cells
from karat.stats.paired_tests import mean_of
from karat.stats.ranking import significant as significant

RULES = ("worst", "exclude", "common", "penalize")
#: aliases of rules
SAME = {"common": "exclude"}
BASELINE = "baseline:"
#: two models share enough tasks if they share this many, or this part of the fewer tasks of the two
SHARED_TASKS, SHARED_PART = 6, 0.25
#: share of the others with which a model of a group may share too few tasks
UNSHARED = 0.1
REFERENCES = ("range",)
#: relative tolerance below which scores are equal
EQUAL = 1e-12


@dataclass(frozen=True)
class RankedScores:
    """The scores to rank: ``values[t]`` are models × folds, higher is better.

    NaN is a failed fold, which counts as the worst of that fold. ``takes`` is models × tasks,
    whether a model is ranked on a task; ``rule`` is the rule for missing scores, and ``filled`` is
    models × tasks, the number of folds with the score of a baseline.
    """

    models: list[str]
    tasks: list[str]
    values: list[np.ndarray]
    takes: np.ndarray
    rule: str = RULES[0]
    filled: np.ndarray | None = None

    def only(self, places: Sequence[int], models: Sequence[int] | None = None) -> RankedScores:
        """Return only these tasks, and only these models if they are given."""
        rows = list(range(len(self.models)) if models is None else models)
        tasks, values = [self.tasks[t] for t in places], [self.values[t][rows] for t in places]
        names = [self.models[m] for m in rows]
        part = np.ix_(rows, list(places))
        filled = None if self.filled is None else self.filled[part]
        return RankedScores(names, tasks, values, self.takes[part], self.rule, filled)

    def by_name(self) -> RankedScores:
        """Return the tasks sorted by name as the page does, so that their order changes no test."""
        return self.only(name_order(self.tasks))


def name_order(names: Sequence[str]) -> list[int]:
    """Return the places of names in the order in which the page sorts them.

    >>> name_order(["b", "a"])
    [1, 0]
    """
    encoded = [name.encode("utf-16-be", "surrogatepass") for name in names]
    return sorted(range(len(encoded)), key=encoded.__getitem__)


@dataclass(frozen=True)
class ModelGroup:
    """Models that are compared with each other: the places of their tasks and of the models."""

    tasks: list[int]
    models: list[int]


def connected_groups(takes: np.ndarray) -> list[ModelGroup]:
    """Return groups of tasks whose models can be ranked together; ``takes`` is models × tasks.

    The models of a group share tasks directly: at least 6, or a quarter of the tasks of the one
    with fewer; among more than 10 models, a tenth of the pairs of each may share less. A model may
    belong to several groups, so that baselines that take every task do not connect groups. The
    largest group comes first; tasks of single models that fit into no group come last.

    >>> takes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
    >>> [(group.tasks, group.models) for group in connected_groups(takes)]
    [([0, 1], [0, 1, 4]), ([2, 3], [2, 3, 4])]
    """
    there = np.asarray(takes, dtype=bool)
    taken = there.any(axis=0)
    merged = _merged(there, list(_split(there, np.flatnonzero(taken)))) if taken.any() else []
    contested = [part for part in merged if (there[:, part].sum(axis=0) > 1).any()]
    alone = [part for part in merged if not (there[:, part].sum(axis=0) > 1).any()]
    contested.sort(key=lambda part: (-there[:, part].sum(), part[0]))
    parts = [*contested, np.sort(np.concatenate(alone))] if alone else contested
    parts = parts or [np.arange(0)]
    groups = [
        ModelGroup(p.tolist(), np.flatnonzero(there[:, p].any(axis=1)).tolist()) for p in parts
    ]
    # models without any task, and tasks without any model, are listed in the first group
    idle = np.flatnonzero(~there.any(axis=1)).tolist()
    models, tasks = [*groups[0].models, *idle], [*groups[0].tasks, *np.flatnonzero(~taken).tolist()]
    return [replace(groups[0], tasks=sorted(tasks), models=sorted(models)), *groups[1:]]


def _split(takes: np.ndarray, tasks: np.ndarray) -> Iterator[np.ndarray]:
    """Yield parts of the tasks whose models can be ranked together, by splitting in two."""
    part = takes[:, tasks]
    if _can_be_ranked(part):
        yield tasks
        return
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import pdist

    patterns, which = np.unique(part.T, axis=0, return_inverse=True)
    near = linkage(pdist(patterns, "jaccard"), method="average")
    half = cut_tree(near, 2).ravel()[which.ravel()]
    # the models of each half, without those that take every task
    sides = [part[:, half == side].any(axis=1) & ~part.all(axis=1) for side in (0, 1)]
    if 2 * (sides[0] & sides[1]).sum() > min(sides[0].sum(), sides[1].sum()):
        yield tasks  # scores are missing here and there: no split helps
        return
    for side in (0, 1):
        yield from _split(takes, tasks[half == side])


def _can_be_ranked(takes: np.ndarray) -> bool:
    """Return whether the models share enough tasks directly.

    Of a model with less than half of the usual number of tasks, these must be tasks that half of
    the others take.
    """
    counts = takes.sum(axis=1)
    if not counts.any():
        return True
    usual = counts >= max(np.median(counts[counts > 0]) / 2, 1)
    part, usual_counts = takes[usual].astype(np.float32), counts[usual]
    needed = np.minimum(SHARED_TASKS, SHARED_PART * np.minimum.outer(usual_counts, usual_counts))
    lacking = (part @ part.T < np.maximum(needed, 1)).sum(axis=1)
    few = ~usual & (counts > 0)
    taken = takes[few] @ part.mean(axis=0)
    enough = (taken >= counts[few] / 2).all()
    return bool(enough and (lacking <= UNSHARED * (len(usual_counts) - 1)).all())


def _merged(takes: np.ndarray, groups: list[np.ndarray]) -> list[np.ndarray]:
    """Return the groups after merging those with common models that can be ranked together."""
    merged: list[np.ndarray] = []
    for tasks in groups:
        takers = takes[:, tasks].any(axis=1)
        overlap = np.array(
            [(takes[:, group_tasks].any(axis=1) & takers).sum() for group_tasks in merged]
        )
        for number in np.argsort(-overlap, kind="stable"):
            union = np.sort(np.concatenate([merged[number], tasks]))
            if overlap[number] and _can_be_ranked(takes[:, union]):
                merged[number] = union
                break
        else:
            merged.append(tasks)
    return merged if len(merged) == len(groups) else _merged(takes, merged)


def find_baseline(option: str, requested: str, models: Sequence[str]) -> int | None:
    """Return the index of the model in ``"baseline:NAME"``, None if there is no such prefix.

    >>> find_baseline("missing", "baseline:dummy", ["onehot", "dummy"])
    1
    """
    if not requested.startswith(BASELINE):
        return None
    name = requested.removeprefix(BASELINE)
    if name not in models:
        hint = did_you_mean(name, models) or f" There are: {', '.join(models)}."
        raise DefinitionError(f'{option}: there is no model "{name}".{hint}')
    return list(models).index(name)


def references_of(requested: str, models: Sequence[str]) -> list[str]:
    """Return the models of ``"baseline:ZERO"`` or ``"baseline:ZERO,ONE"``, none without the prefix.

    >>> references_of("baseline:dummy,tuned", ["dummy", "tuned"])
    ['dummy', 'tuned']
    >>> references_of("baseline:a,b", ["a,b"])  # a name may have a comma
    ['a,b']
    """
    if not requested.startswith(BASELINE):
        return []
    text = requested.removeprefix(BASELINE)
    places = [comma for comma, letter in enumerate(text) if letter == ","]
    pairs = [[text[:comma], text[comma + 1 :]] for comma in places]
    named = [pair for pair in pairs if set(pair) <= set(models)]
    return [text] if text in models or not pairs else (named or pairs)[0]


def check_rule(option: str, requested: Any, rules: Sequence[str]) -> str:
    """Return the name of a rule, or raise ``DefinitionError``."""
    if isinstance(requested, str) and (requested in rules or requested.startswith(BASELINE)):
        return SAME.get(requested, requested)
    named = ", ".join(f'"{rule}"' for rule in rules)
    hint = did_you_mean(str(requested), rules)
    raise DefinitionError(f'{option} must be {named} or "baseline:MODEL", got {requested!r}.{hint}')


def apply_missing_rule(cells: Cells, rule: str) -> RankedScores:
    """Return the scores to rank under a rule of RULES or "baseline:MODEL".

    A model that took no task at all is not ranked.
    """
    baseline = find_baseline("missing", rule, cells.models)
    takes, filled = cells.takes.copy(), np.zeros(cells.takes.shape, dtype=int)
    values = []
    for t, table in enumerate(cells.folds):
        if rule == "exclude":
            # the folds in which all models have a score
            present = (cells.states == OK).any(axis=1)
            common = ~np.isnan(table[present]).any(axis=0) & present.any()
            table, takes[:, t] = (table[:, common], present) if common.any() else (table, False)
        elif rule == "penalize":
            # missing scores count as the worst of their fold, whatever the reason
            takes[:, t] = cells.takes.any(axis=1) & cells.scored[t]
        else:
            table = _of_common_folds(table, cells.tried[t], takes[:, t])
        if baseline is not None and not np.isnan(table[baseline]).all():
            takes[:, t] = cells.takes.any(axis=1)
            missing = np.isnan(table) & ~np.isnan(table[baseline])
            filled[:, t] = missing.sum(axis=1) * takes[:, t]
            table = np.where(missing, table[baseline], table)
        values.append(significant(table))
    return RankedScores(cells.models, cells.tasks, values, takes, rule, filled)


def fill_means(cells: Cells, compared: RankedScores) -> Cells:
    """Return the cells with the means that were ranked, where folds have a baseline's score.

    A fold without a score of the baseline either counts as the worst, and not in the mean.
    """
    means = cells.means.copy()
    for m, t in np.argwhere(compared.filled) if compared.filled is not None else ():
        sign = 1 if cells.higher[t] else -1
        means[m, t] = sign * mean_of(compared.values[t][[m]])[0]
    return replace(cells, means=means)


def _of_common_folds(values: np.ndarray, tried: np.ndarray, takes: np.ndarray) -> np.ndarray:
    """Return the scores of the folds that all models ran, not to penalize an unfinished run."""
    common = tried[takes].all(axis=0) if takes.any() else np.zeros(values.shape[1], dtype=bool)
    if common.any():
        return values[:, common]
    return mean_of(values)[:, None]


def count_missing(cells: Cells, compared: RankedScores) -> dict[str, Any]:
    """Return the rule and the numbers of missing scores, by reason, and of tasks compared.

    Tasks without any score are not counted. ``imputed`` counts scores replaced by the baseline's,
    ``penalized`` those that count as the worst, ``partial`` models with fewer folds than others.
    """
    rule, scored = compared.rule, cells.scored
    states, takes = cells.states[:, scored], compared.takes[:, scored]
    # a group of models may lack the baseline
    is_baseline = [name == rule.removeprefix(BASELINE) for name in cells.models]
    imputed = np.zeros(takes.shape, dtype=bool)
    if rule.startswith(BASELINE) and any(is_baseline):
        imputed = takes & (states != OK) & (states[is_baseline.index(True)] == OK)
    fewer = [run.any(axis=1) & ~run.all(axis=1) for run in cells.tried]
    return {
        "rule": rule,
        **{state: int((states == state).sum()) for state in (FAILED, DECLINED, NOT_RUN)},
        "imputed": int(imputed.sum()),
        "penalized": int((takes & (states != OK)).sum()) if rule == "penalize" else 0,
        "partial": int(np.sum(fewer)),
        "cells": int(states.size),
        "tasks": int((takes.sum(axis=0) > 1).sum()),
        "of": int(scored.sum()),
    }


def normalize(
    compared: RankedScores, baseline: int | None = None, one: int | None = None
) -> np.ndarray:
    """Return models × tasks: 1 is the best model of a task, 0 the worst, or the baseline.

    Scores below a baseline are clipped at -1, which is as far below as the best is above. NaN on a
    task on which all are equal, the baseline has no score, or there is one model only. With ``one``
    this model has 1, nothing is clipped, and a score is the mean of those of the folds.

    >>> two = [np.array([[0.5], [0.7], [0.9]])]
    >>> ranked = RankedScores(["a", "b", "c"], ["t"], two, np.ones((3, 1), bool))
    >>> normalize(ranked).round(3).ravel().tolist()
    [0.0, 0.5, 1.0]
    >>> normalize(ranked, baseline=1).round(3).ravel().tolist()
    [-1.0, 0.0, 1.0]
    >>> normalize(ranked, baseline=0, one=1).round(3).ravel().tolist()
    [0.0, 1.0, 2.0]
    """
    result = np.full(compared.takes.shape, np.nan)
    for t, values in enumerate(compared.values):
        taking = np.flatnonzero(compared.takes[:, t])
        table = values[taking]
        failed = np.isnan(table).all(axis=1)
        if len(taking) < 2 or failed.all():
            continue
        if baseline is None:
            result[taking, t] = _by_range(_means(table), failed)
        elif one is not None:
            result[taking, t] = _between(table, values[[baseline, one]])
        elif (taking[~failed] == baseline).any():
            means = _means(table)
            zero, best = means[taking == baseline][0], means.max()
            if _equal(zero, best):
                same = np.isclose(means, zero, rtol=EQUAL, atol=0)
                result[taking, t] = np.where(same, 0.0, -1.0)
            else:
                result[taking, t] = np.clip((means - zero) / (best - zero), -1, 1)
    return result


def _between(table: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return the mean over folds of the shares of the way from one reference to the other.

    A failed fold counts as its worst score, as everywhere. Folds without both references, or in
    which they are equal, are left out.
    """
    has_scores = ~np.isnan(references).any(axis=0) & ~np.isnan(table).all(axis=0)
    zero, one = references[:, has_scores]
    table = table[:, has_scores]
    apart = np.array([not _equal(a, b) for a, b in zip(zero, one, strict=True)], dtype=bool)
    if not apart.any():
        return np.full(len(table), np.nan)
    table = np.where(np.isnan(table), np.nanmin(table, axis=0), table)[:, apart]
    return np.asarray(((table - zero[apart]) / (one[apart] - zero[apart])).mean(axis=1))


def _means(values: np.ndarray) -> np.ndarray:
    """Return means over the folds with any score; a failed fold counts as its worst."""
    measured = values[:, ~np.isnan(values).all(axis=0)]
    return np.where(np.isnan(measured), np.nanmin(measured, axis=0), measured).mean(axis=1)


def _by_range(means: np.ndarray, failed: np.ndarray) -> np.ndarray:
    finite = means[np.isfinite(means)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    if not _equal(low, high):
        return np.clip((means - low) / (high - low), 0, 1)
    if failed.any():
        # a failure is worse than the only score
        return np.where(failed, 0.0, 1.0)
    return np.full(len(means), np.nan)


def _equal(a: float, b: float) -> bool:
    return bool(abs(a - b) <= EQUAL * max(abs(a), abs(b)))


def win_shares(ranks: np.ndarray) -> np.ndarray:
    """Return models × tasks: the share of other models beaten on a task; a tie counts half.

    >>> win_shares(np.array([[1.0], [2.5], [2.5], [np.nan]])).ravel().tolist()
    [1.0, 0.25, 0.25, nan]
    """
    others = (~np.isnan(ranks)).sum(axis=0) - 1
    # a task of one model has no rank
    return (others + 1 - ranks) / np.where(others > 0, others, 1)


def over_tasks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each model's mean and median over its tasks; NaN if it has none."""
    frame = pd.DataFrame(values)
    return frame.mean(axis=1).to_numpy(), frame.median(axis=1).to_numpy()
