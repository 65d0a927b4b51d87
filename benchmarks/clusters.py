"""Simulations with known truth of tests and intervals on items that belong together.

Equal models answer 40 groups of 25 items. A model is better on some groups and worse on others, so
that the differences of items of a group are alike: with the design effect d, n items are worth n/d.
A group is whole in a fold if the data declare it, and in several folds if --cluster names it later.

    python benchmarks/clusters.py [--runs N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, stdtrit

from karat.analysis.cluster_check import strongest_cluster
from karat.analysis.gate import FAILED, decide
from karat.analysis.item_tests import Fits, Separation, separate_pairs
from karat.analysis.item_values import contributions, is_accuracy
from karat.analysis.score_intervals import cluster_half_width, half_widths
from karat.analysis.slices import Slice, estimate_slices
from karat.analysis.stored_items import ItemValues
from karat.core.predictions import Predictions
from karat.metrics.metric import get_metric, score
from karat.stats.learner_tests import SeedNoise

GROUPS, SIZE = 40, 25
#: latent skill, at which about 80 % of the answers are right
SKILL = 0.85
DESIGN_EFFECTS = (1, 2, 5, 10)
#: metrics, and the share of the runs that they get: blocks of items take long to score
METRICS = {"acc": 1.0, "rmse": 1.0, "auc": 0.25, "f1_macro": 0.25}
MARGIN = 0.02
LEVEL = 0.05


@dataclass(frozen=True)
class Design:
    """Groups of items, and how much the answers to a group's items have in common."""

    effect: float
    groups: int = GROUPS
    size: int = SIZE
    folds: int = 1
    #: whether the items of a group are in one fold
    whole: bool = True

    @property
    def labels(self) -> np.ndarray:
        """The group of each item."""
        return np.repeat(np.arange(self.groups), self.size).astype(str).astype(object)

    @property
    def fold_of(self) -> np.ndarray:
        """The fold of each item."""
        items = np.arange(self.groups * self.size)
        return (items // self.size if self.whole else items) % self.folds

    @property
    def spread(self) -> float:
        """The standard deviation of a group's skill."""
        return _spread((self.effect - 1) / max(self.size - 1, 1))


@cache
def _spread(correlation: float) -> float:
    """Return the standard deviation of latent skills at which right answers have a correlation."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def excess(spread: float) -> float:
        chances = ndtr(SKILL + spread * points)
        mean = float(weights @ chances)
        return float(weights @ chances**2 - mean**2) / (mean * (1 - mean)) - correlation

    return 0.0 if correlation <= 0 else float(brentq(excess, 0.0, 10.0))


def draw(rng: np.random.Generator, design: Design, metric: str, models: int) -> list[Predictions]:
    """Return the answers of equal models to all items."""
    items = design.groups * design.size
    target = rng.integers(0, 2, items)
    found = []
    for _ in range(models):
        skill = SKILL + design.spread * rng.normal(size=design.groups)
        latent = np.repeat(skill, design.size) + rng.normal(size=items)
        if metric == "rmse":  # errors are larger in groups of less skill
            found.append(Predictions(rng.normal(size=items) - latent, np.zeros(items)))
            continue
        chance = ndtr(latent * np.where(target == 1, 1, -1))
        answers = np.where(chance > 0.5, "1", "0")
        chances = np.column_stack([1 - chance, chance])
        found.append(
            Predictions(answers, target, "classes", "classes", ("0", "1"), probabilities=chances)
        )
    return found


def _folds(answers: Predictions, design: Design) -> list[Predictions]:
    parts = [np.flatnonzero(design.fold_of == fold) for fold in range(design.folds)]
    return [answers.take(rows) for rows in parts]


def _clusters(design: Design) -> list[np.ndarray]:
    return [design.labels[design.fold_of == fold] for fold in range(design.folds)]


def separate(answers: Sequence[Predictions], design: Design, metric: str, by: bool) -> Separation:
    """Return the test of all pairs; ``by`` is whether groups are the unit."""
    folds = [_folds(each, design) for each in answers]
    clusters = _clusters(design) if by else None
    values = np.array([contributions(metric, own, clusters) for own in folds])
    number = design.groups if by else 0
    items = ItemValues(
        [str(m) for m in range(len(answers))],
        values,
        items=design.groups * design.size,
        clusters=number,
        independent=number or design.groups * design.size,
        is_right=is_accuracy(metric) and not by,
        seeds=[SeedNoise()] * len(answers),
    )
    sign = 1 if get_metric(metric).higher_is_better else -1
    scores = sign * np.array([[score(metric, fold)[0] for fold in own] for own in folds])
    ratio = 1 / (design.folds - 1) if design.folds > 1 else 0.25
    return separate_pairs(items, Fits(scores, [0] * design.folds, ratio), metric)


def covered(tested: Separation) -> bool:
    """Return whether the interval of the first two models' difference contains 0."""
    found = tested.mean_difference(0, 1)
    half = float(stdtrit(found.freedom, 0.975)) * found.error
    return bool(abs(found.mean) <= half)


# -- the tables -----------------------------------------------------------------------------


def separations(runs: int, metrics: Sequence[str] = tuple(METRICS)) -> Iterator[dict[str, object]]:
    """Yield how often equal models are separated, and how often intervals cover 0."""
    for metric in metrics:
        for folds, whole in ((1, True), (5, True), (5, False)):
            for effect in DESIGN_EFFECTS if METRICS[metric] == 1 else (1, 10):
                design = Design(effect, folds=folds, whole=whole)
                yield {
                    **{"metric": metric, "folds": folds, "groups": "whole" if whole else "cut"},
                    "design effect": effect,
                    **_rates(design, metric, round(runs * METRICS[metric])),
                }


def _rates(design: Design, metric: str, runs: int) -> dict[str, float]:
    rng = np.random.default_rng([runs, design.folds, int(design.effect), len(metric)])
    found: dict[str, list[bool]] = {}
    many = 5 if METRICS[metric] == 1 else 2
    for _ in range(runs):
        answers = draw(rng, design, metric, many)
        for by, name in ((False, "items"), (True, "groups")):
            two = separate(answers[:2], design, metric, by)
            found.setdefault(f"two, {name}", []).append(bool(two.p[0, 1] < LEVEL))
            found.setdefault(f"covers, {name}", []).append(covered(two))
        if many > 2:
            five = separate(answers, design, metric, True).p[np.triu_indices(5, 1)]
            found.setdefault("five, groups", []).append(bool((five < LEVEL).any()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def gates(runs: int) -> Iterator[dict[str, object]]:
    """Yield the false alarms of a gate on 1,000 items in clusters, as items and by --cluster."""
    for size, correlation in ((1, 0.0), (5, 0.3), (20, 0.3)):
        design = Design(1 + (size - 1) * correlation, 1000 // size, size)
        rng = np.random.default_rng([runs, size])
        failed = {"items": 0, "--cluster": 0}
        for _ in range(runs):
            answers = draw(rng, design, "acc", 2)
            for by, name in ((False, "items"), (True, "--cluster")):
                found = separate(answers, design, "acc", by).mean_difference(0, 1)
                failed[name] += decide([found], MARGIN).outcome == FAILED
        rates = {name: number / runs for name, number in failed.items()}
        yield {"items of a cluster": size, "design effect": design.effect, **rates}


def scores(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often the interval of a score covers the expected score on new groups."""
    for folds, whole in ((1, True), (5, True), (5, False)):
        for effect in DESIGN_EFFECTS:
            design = Design(effect, folds=folds, whole=whole)
            rng, covers = np.random.default_rng([runs, folds, effect]), {"folds": 0, "groups": 0}
            truth = float(ndtr(SKILL / np.sqrt(1 + design.spread**2)))
            for _ in range(runs):
                parts = _folds(draw(rng, design, "acc", 1)[0], design)
                values = np.array([score("acc", fold)[0] for fold in parts], dtype=float)
                units = contributions("acc", parts, _clusters(design))
                away = abs(float(values.mean()) - truth)
                covers["folds"] += bool(away <= half_widths(values[None])[0])
                covers["groups"] += away <= cluster_half_width(units, truth, "acc")
            yield {
                **{"folds": folds, "groups": "whole" if whole else "cut", "design effect": effect},
                **{f"covers, by {name}": number / runs for name, number in covers.items()},
            }


def slices(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often one of four random slices is called worse, at 5 % each."""
    for effect in DESIGN_EFFECTS:
        design = Design(effect)
        rng, wrong = np.random.default_rng([runs, effect]), {"items": 0, "groups": 0}
        for _ in range(runs):
            one, other = draw(rng, design, "acc", 2)
            values = contributions("acc", [other]) - contributions("acc", [one])
            inside = np.repeat(rng.random(design.groups) < 0.4, design.size)
            each = [(Slice("s", "s", inside), 1 if values[inside].mean() > 0 else -1)]
            every = np.ones(len(values), dtype=bool)
            for name, labels in (("items", None), ("groups", design.labels)):
                tested = estimate_slices(values, each, every, True, labels)
                wrong[name] += bool(tested) and tested[0].p < LEVEL
        rates = {f"worse, by {name}": number / runs for name, number in wrong.items()}
        yield {"design effect": effect, **rates}


def checks(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often KRT306 reports 20 random columns, and finds the groups among them."""
    for effect in DESIGN_EFFECTS:
        design = Design(effect)
        rng, found = np.random.default_rng([runs, effect]), {"random": 0, "group": 0}
        for _ in range(runs):
            one, other = draw(rng, design, "acc", 2)
            values = contributions("acc", [one]) - contributions("acc", [other])
            columns = {f"random {c}": _names(rng, len(values)) for c in range(20)}
            hit = strongest_cluster(values, columns)
            found["random"] += hit is not None
            hit = strongest_cluster(values, {**columns, "group": design.labels})
            found["group"] += hit is not None and hit.column == "group"
        rates = {f"reports {name}": number / runs for name, number in found.items()}
        yield {"design effect": effect, **rates}


def _names(rng: np.random.Generator, items: int) -> np.ndarray:
    values = int(rng.choice([6, 20, 100, items // 3]))
    return rng.integers(0, values, items).astype(str).astype(object)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    tables = {"separated": separations, "gate": gates, "scores": scores}
    for name, table in {**tables, "slices": slices, "KRT306": checks}.items():
        print(f"\n{name}\n", pd.DataFrame(table(runs)).to_string(index=False), sep="")


if __name__ == "__main__":
    main()
