"""KRT0xx: problems of a task's data, whatever the model."""

from __future__ import annotations

from collections.abc import Iterator

from karat.results.rules.base import Facts, Hit, plain_metric

#: share of test rows that also occur in training, from which it is reported
LEAKED = 0.01
#: score of a single column from which it predicts the target
GIVEN_AWAY = 0.95
#: share of the largest class from which a constant prediction looks good
LOPSIDED = 0.8
#: metrics that weight all rows equally, whatever their class
HIDING = {"acc", "f1_micro", "f1_weighted"}
#: probes that do not train on the training rows
UNTRAINED = {"similarity", "analogy", "nearest", "same-class", "duplicates"}


def duplicates(facts: Facts) -> Iterator[Hit]:
    """KRT001: test rows that also occur in their training rows."""
    for task, leaked, tested, _ in facts.counted("twins"):
        if leaked >= LEAKED * tested:
            yield Hit(
                f"{leaked / tested:.0%} of the test rows of {task} also occur in the training rows "
                f"({leaked:,} of {tested:,}).",
                task=task,
            )


def entities(facts: Facts) -> Iterator[Hit]:
    """KRT002: test questions about an entity that was seen in training."""
    for task, shared, tested, what in facts.counted("entities"):
        if shared >= LEAKED * tested and facts.probe(task) not in UNTRAINED:
            yield Hit(
                f"{shared / tested:.0%} of the test questions of {task} share their {what} with a "
                f"training question ({shared:,} of {tested:,}).",
                task=task,
            )


def give_away(facts: Facts) -> Iterator[Hit]:
    """KRT003: one column alone predicts the target."""
    for task, about in facts.tasks.items():
        column, score = about.get("give_away") or ("", 0.0)
        if score >= GIVEN_AWAY:
            yield Hit(
                f'Column "{column}" alone predicts the target of {task} ({score:.0%}).', task=task
            )


def imbalance(facts: Facts) -> Iterator[Hit]:
    """KRT004: one class is most of the rows, and the metric does not correct for it."""
    for task, about in facts.tasks.items():
        classes = about.get("classes") or {}
        metric = facts.given.metrics.get(task, "")
        total = sum(classes.values())
        largest = max(classes, key=lambda label: classes[label], default="")
        if total and plain_metric(metric) in HIDING and classes[largest] >= LOPSIDED * total:
            share = classes[largest] / total
            # a constant prediction has the class's share as precision and a recall of 1
            gained = 2 * share**2 / (1 + share) if "weighted" in metric else share
            yield Hit(
                f'{share:.0%} of {task} is the class "{largest}": always predicting it has '
                f"{metric} {gained:.2f}.",
                task=task,
            )
