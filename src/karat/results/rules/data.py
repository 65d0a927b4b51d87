"""KRT0xx: what is wrong with the data of a task, whoever answers."""

from __future__ import annotations

from collections.abc import Iterator

from karat.results.rules.base import Facts, Hit, plain_metric

#: so large a part of the tested rows on both sides is worth a word
LEAKED = 0.01
#: a column that tells so much of the answer gives it away
GIVEN_AWAY = 0.95
#: one class is so much of the rows that saying it always looks good
LOPSIDED = 0.8
#: metrics that count every row alike, whatever its class
HIDING = {"acc", "f1_micro", "f1_weighted"}
#: probes that learn nothing from the train part
LEARNS_NOTHING = {"similarity", "analogy", "nearest", "same-class", "duplicates"}


def duplicates(facts: Facts) -> Iterator[Hit]:
    """KRT001: test rows that also stand in their train part."""
    for task, twins, tested, _ in facts.counted("twins"):
        if twins >= LEAKED * tested:
            yield Hit(
                f"{twins / tested:.0%} of the test rows of {task} also stand in their train part "
                f"({twins:,} of {tested:,}).",
                task=task,
            )


def entities(facts: Facts) -> Iterator[Hit]:
    """KRT002: test questions about an entity that was seen in training."""
    for task, shared, tested, what in facts.counted("entities"):
        if shared >= LEAKED * tested and facts.probe(task) not in LEARNS_NOTHING:
            yield Hit(
                f"{shared / tested:.0%} of the test questions of {task} share their {what} with a "
                f"train question ({shared:,} of {tested:,}).",
                task=task,
            )


def give_away(facts: Facts) -> Iterator[Hit]:
    """KRT003: one column alone tells the answer."""
    for task, told in facts.tasks.items():
        column, score = told.get("give_away") or ("", 0.0)
        if score >= GIVEN_AWAY:
            yield Hit(
                f'The column "{column}" alone tells the answers of {task} ({score:.0%}).', task=task
            )


def imbalance(facts: Facts) -> Iterator[Hit]:
    """KRT004: one class is most of the rows, and the metric does not mind."""
    for task, told in facts.tasks.items():
        classes = told.get("classes") or {}
        metric = facts.given.metrics.get(task, "")
        total = sum(classes.values())
        largest = max(classes, key=lambda label: classes[label], default="")
        if total and plain_metric(metric) in HIDING and classes[largest] >= LOPSIDED * total:
            share = classes[largest] / total
            # of always the same answer, precision is the share and recall 1, of this class alone
            gained = 2 * share**2 / (1 + share) if "weighted" in metric else share
            yield Hit(
                f'{share:.0%} of {task} is the class "{largest}": always saying so has {metric} '
                f"{gained:.2f}.",
                task=task,
            )
