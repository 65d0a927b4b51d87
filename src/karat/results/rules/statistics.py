"""KRT3xx: what the scores of a task cannot distinguish."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.results.rules.base import Facts, Hit, best_value, several
from karat.results.rules.paired import detectable

#: distance to the best possible value, relative to the metric's range, that counts as there
CEILING = 0.02
#: number and share of models there from which a task is saturated
FEWEST_THERE, PART_THERE = 3, 0.5
#: relative tolerance below which scores are equal
TIE = 1e-6


def saturated(facts: Facts) -> Iterator[Hit]:
    """KRT301: half of the models or more have nearly the best possible score."""
    for task, metric in facts.given.metrics.items():
        best = best_value(metric)
        models = facts.rivals(task)
        if best is None or not len(models):
            continue
        means = facts.cells.means[models, facts.place[task]]
        there = int((np.abs(best[0] - means) <= (CEILING + TIE) * best[1]).sum())
        if there >= FEWEST_THERE and there >= PART_THERE * len(models):
            yield Hit(
                f"{there} of {several(len(models), 'model')} are within {CEILING * best[1]:g} of "
                f"the best possible {metric} on {task}.",
                task=task,
            )


def too_few_rows(facts: Facts) -> Iterator[Hit]:
    """KRT302: the difference of first and second is below the detectable one."""
    for task in facts.given.metrics:
        models = facts.rivals(task)
        if len(models) < 2:
            continue
        first, second = models[:2]
        means = facts.cells.means[[first, second], facts.place[task]]
        gap = abs(float(means[0] - means[1]))
        least, basis = detectable(facts, task, first, second) or (0.0, "")
        if TIE * float(np.abs(means).max()) < gap < least:
            yield Hit(
                f"On {task}, {facts.called(first)} leads {facts.called(second)} by {gap:.2g}; "
                f"{basis} can detect differences from {least:.2g}.",
                task=task,
            )
