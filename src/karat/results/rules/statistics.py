"""KRT3xx: what the scores of a task cannot tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.results.rules.base import Facts, Hit, best_value, several
from karat.results.rules.paired import detectable

#: so near to the best possible value, as a part of the metric's range, nothing is left to gain
CEILING = 0.02
#: so many models there, and so large a part of all, make a task saturated
FEWEST_THERE, PART_THERE = 3, 0.5
#: scores that differ by less, as a part of their size, are equal
TIE = 1e-6


def saturated(facts: Facts) -> Iterator[Hit]:
    """KRT301: half of the models, or more, have nearly the best possible score."""
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
    """KRT302: the first and the second are nearer than the test rows can tell."""
    for task in facts.given.metrics:
        models = facts.rivals(task)
        if len(models) < 2:
            continue
        first, second = models[:2]
        means = facts.cells.means[[first, second], facts.place[task]]
        gap = abs(float(means[0] - means[1]))
        least, told = detectable(facts, task, first, second) or (0.0, "")
        if TIE * float(np.abs(means).max()) < gap < least:
            yield Hit(
                f"On {task}, {facts.called(first)} leads {facts.called(second)} by {gap:.2g}; "
                f"{told} can tell differences from {least:.2g}.",
                task=task,
            )
