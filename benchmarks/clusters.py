"""Simulations with known truth of tests and intervals on items that belong together.

Models answer 40 groups of 25 items. A model is better on some groups and worse on others, so that
what the items of a group add to a score is alike: with the design effect d, n items are worth n/d.
Items are a hold-out, or five folds with whole groups, or five folds that divide groups.

    python benchmarks/clusters.py [--runs N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from retraining import jackknife
from retraining import score as score_arrays
from scipy.optimize import brentq
from scipy.special import ndtr, stdtrit

from karat.analysis.cluster_check import strongest_cluster
from karat.analysis.item_tests import Fits, Separation, separate_pairs
from karat.analysis.item_values import SEED, UNITS, contributions, is_accuracy
from karat.analysis.score_intervals import cluster_interval, half_widths
from karat.analysis.slices import Slice, estimate_slices
from karat.analysis.stored_items import ItemValues
from karat.core.predictions import Predictions
from karat.ext.decide.cheapest import ACCEPTED, WORSE, judge
from karat.ext.decide.gate import FAILED, PASSED, decide
from karat.ext.decide.power import Equivalence
from karat.metrics.metric import get_metric, score
from karat.stats.learner_tests import SeedNoise
from karat.stats.paired_tests import MeanDifference

GROUPS, SIZE = 40, 25
#: latent skill, at which about 80 % of the answers are right
SKILL = 0.85
DESIGN_EFFECTS = (1, 2, 5, 10)
#: metrics by the names in the tables
METRICS = {"accuracy": "acc", "RMSE": "rmse", "AUC": "auc", "macro-F1": "f1_macro"}
#: metrics with a value of each item: others have a jackknife, which takes long over items
OF_ITEMS = ("acc", "rmse")
#: folds, and whether the items of a group are in one fold
LAYOUTS = {"hold-out": (1, True), "5 folds, whole": (5, True), "5 folds, divided": (5, False)}
MODELS = 5
MARGIN = 0.02
LEVEL = 0.05
#: groups whose score is the expected one
MANY_GROUPS = 8000


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

    def spread(self, metric: str) -> float:
        """Return the standard deviation of a group's skill that has this design effect."""
        return _spread((self.effect - 1) / max(self.size - 1, 1), metric == "rmse")


@cache
def _spread(correlation: float, squares: bool) -> float:
    """Return the standard deviation of latent skills with which items have a correlation.

    That of right answers, or of squared errors.
    """
    excess = _excess_of_squares if squares else _excess_of_answers
    spread = brentq(lambda spread: excess(spread) - correlation, 0.0, 50.0) if correlation else 0
    return float(spread)


def _excess_of_answers(spread: float) -> float:
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    chances = ndtr(SKILL + spread * points)
    mean = float(weights @ chances)
    return float(weights @ chances**2 - mean**2) / (mean * (1 - mean))


def _excess_of_squares(spread: float) -> float:
    """Return the correlation of squared errors, which are normal around the skill."""
    common, every = spread**2, spread**2 + 2
    return (common**2 + 2 * SKILL**2 * common) / (every**2 + 2 * SKILL**2 * every)


def draw(
    rng: np.random.Generator, design: Design, metric: str, models: int, worse: float = 0.0
) -> list[Predictions]:
    """Return the answers of equal models to all items; the skill of the second is ``worse``."""
    items, spread = design.groups * design.size, design.spread(metric)
    target, answers_of_models = rng.integers(0, 2, items), []
    for model in range(models):
        skill = SKILL - worse * (model == 1) + spread * rng.normal(size=design.groups)
        latent = np.repeat(skill, design.size) + rng.normal(size=items)
        chance = ndtr(latent * np.where(target == 1, 1, -1))
        if metric == "rmse":  # errors are larger in groups of less skill
            answers_of_models.append(Predictions(rng.normal(size=items) - latent, np.zeros(items)))
        elif metric == "auc":
            answers_of_models.append(Predictions(chance, target.astype(float)))
        else:
            answers = np.where(chance > 0.5, "1", "0")
            answers_of_models.append(Predictions(answers, target, "classes", "classes", ("0", "1")))
    return answers_of_models


def _folds(answers: Predictions, design: Design) -> list[Predictions]:
    parts = [np.flatnonzero(design.fold_of == fold) for fold in range(design.folds)]
    return [answers.take(rows) for rows in parts]


def _clusters(design: Design) -> list[np.ndarray]:
    return [design.labels[design.fold_of == fold] for fold in range(design.folds)]


def fold_score(metric: str, fold: Predictions) -> float:
    """Return the score of a fold."""
    if metric in OF_ITEMS:
        return float(score(metric, fold)[0] or 0.0)
    return score_arrays(metric, *_numbers(fold))


def _numbers(fold: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Return answers and truths as numbers."""
    return fold.predictions.astype(float), fold.target.astype(float)


def block_contributions(
    metric: str, folds: Sequence[Predictions], clusters: Sequence[np.ndarray]
) -> np.ndarray:
    """Return what ``contributions`` returns for AUC and macro-F1, which it computes slowly."""
    shared = len(folds) > 1 and bool(set(clusters[0]) & set(clusters[1]))
    per_fold = []
    for fold, labels in zip(folds, clusters, strict=True):
        every, codes = np.unique(labels, return_inverse=True)
        count = min(len(every), UNITS if shared else max(2, -(-UNITS // len(folds))))
        block = (np.random.default_rng(SEED).permutation(len(every)) % count)[codes]
        per_fold.append(jackknife(metric, *_numbers(fold), block))
    return np.mean(per_fold, axis=0) if shared else np.concatenate(per_fold)


@dataclass(frozen=True)
class Scored:
    """Some models' scores by fold, and what each unit adds to them: groups, or items."""

    design: Design
    metric: str
    values: np.ndarray
    scores: np.ndarray
    by: bool

    @classmethod
    def of(cls, answers: Sequence[Predictions], design: Design, metric: str, by: bool) -> Scored:
        """Return those of answers; ``by`` is whether groups are the unit."""
        folds = [_folds(answer, design) for answer in answers]
        clusters = _clusters(design) if by else None
        added = contributions if metric in OF_ITEMS else block_contributions
        values = np.array([added(metric, of_model, clusters) for of_model in folds])
        scores = np.array([[fold_score(metric, fold) for fold in of_model] for of_model in folds])
        return cls(design, metric, values, scores, by)

    def separate(self, models: int = MODELS) -> Separation:
        """Return the test of all pairs of the first models."""
        design, number = self.design, self.design.groups if self.by else 0
        items = ItemValues(
            [str(m) for m in range(models)],
            self.values[:models],
            items=design.groups * design.size,
            clusters=number,
            independent=number or design.groups * design.size,
            is_right=is_accuracy(self.metric) and not self.by,
            seeds=[SeedNoise()] * models,
        )
        sign = 1 if get_metric(self.metric).higher_is_better else -1
        ratio = 1 / (design.folds - 1) if design.folds > 1 else 0.25
        fits = Fits(sign * self.scores[:models], [0] * design.folds, ratio)
        return separate_pairs(items, fits, self.metric)

    def covers(self, truth: float) -> dict[str, bool]:
        """Return which intervals of the first model's score contain the truth."""
        mean = float(self.scores[0].mean())
        half = float(half_widths(self.scores[:1])[0])
        low, high = cluster_interval(self.values[0], mean, self.metric)
        return {"folds": abs(mean - truth) <= half, "groups": low <= truth <= high}


def separate(answers: Sequence[Predictions], design: Design, metric: str, by: bool) -> Separation:
    """Return the test of all pairs; ``by`` is whether groups are the unit."""
    return Scored.of(answers, design, metric, by).separate(len(answers))


def covered(tested: Separation) -> bool:
    """Return whether the interval of the first two models' difference contains 0."""
    difference = tested.mean_difference(0, 1)
    half = float(stdtrit(difference.freedom, 0.975)) * difference.error
    return bool(abs(difference.mean) <= half)


# -- the tables -----------------------------------------------------------------------------


def separations(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often equal models are separated, and how often intervals hold the truth.

    Intervals are those of the difference of two models, and of the score of one.
    """
    for name, metric in METRICS.items():
        for layout, (folds, whole) in LAYOUTS.items():
            for effect in DESIGN_EFFECTS:
                design = Design(effect, folds=folds, whole=whole)
                facts = {"metric": name, "groups": layout, "design effect": effect}
                yield {**facts, **_rates(design, metric, runs)}


def _rates(design: Design, metric: str, runs: int) -> dict[str, float]:
    rng = np.random.default_rng([runs, design.folds, int(design.effect), len(metric)])
    truth, rows = expected_score(metric, design.effect), []
    for _ in range(runs):
        answers = draw(rng, design, metric, MODELS)
        groups = Scored.of(answers, design, metric, True)
        row: dict[str, float] = {}
        if metric in OF_ITEMS:
            items = separate(answers[:2], design, metric, False)
            row["two by items"] = items.p[0, 1] < LEVEL
        two, five = groups.separate(2), groups.separate().p[np.triu_indices(MODELS, 1)]
        row |= {"two": two.p[0, 1] < LEVEL, "five": (five < LEVEL).any()}
        covers = groups.covers(truth)
        # as score_intervals chooses: folds show how much whole groups vary
        covers_score = covers["folds" if design.folds > 1 and design.whole else "groups"]
        row |= {"difference": covered(two), "score": covers_score}
        rows.append(row | {"score by folds": covers["folds"] if design.folds > 1 else np.nan})
    return {"two by items": np.nan, **pd.DataFrame(rows).astype(float).mean().to_dict()}


@cache
def expected_score(metric: str, effect: float) -> float:
    """Return the score on very many groups."""
    if metric == "acc":
        return _accuracy(0.0, effect)
    design = Design(effect, groups=MANY_GROUPS)
    (answers,) = draw(np.random.default_rng(99), design, metric, 1)
    return float(score(metric, answers)[0] or 0.0)


def _accuracy(worse: float, effect: float) -> float:
    """Return the expected share of right answers of a model with less skill."""
    return float(ndtr((SKILL - worse) / np.sqrt(1 + Design(effect).spread("acc") ** 2)))


def decisions(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often gate, cheapest and same are wrong about two models on a hold-out.

    Of equal models, that one is worse, or they differ; of models that differ by the margin, that
    it is not worse by the margin, or that they are the same within it.
    """
    for effect in DESIGN_EFFECTS:
        loss = brentq(lambda w, d=effect: _accuracy(0, d) - _accuracy(w, d) - MARGIN, 0, 1)
        for by, unit in ((False, "items"), (True, "groups")):
            rng, design = np.random.default_rng([runs, effect]), Design(effect)
            rows = []
            for _ in range(runs):
                equal = separate(draw(rng, design, "acc", 2), design, "acc", by)
                worse = separate(draw(rng, design, "acc", 2, loss), design, "acc", by)
                rows.append({**_of_equal(equal), **_of_worse(worse)})
            shares = pd.DataFrame(rows).astype(float).mean().to_dict()
            yield {"unit": unit, "design effect": effect, **shares}


def _of_equal(tested: Separation) -> dict[str, bool]:
    """Return which commands call the second model worse, or different."""
    second = tested.mean_difference(1, 0)
    verdict = judge([second], MARGIN)["verdict"].iloc[0]
    return {
        "gate fails": decide([second], MARGIN).outcome == FAILED,
        "cheapest: worse": verdict == WORSE,
        "same: different": _equivalence(second).verdict == "different",
    }


def _of_worse(tested: Separation) -> dict[str, bool]:
    """Return which commands accept the second model, although it is worse by the margin."""
    second = tested.mean_difference(1, 0)
    return {
        "gate passes": decide([second], MARGIN).outcome == PASSED,
        "cheapest: accepted": judge([second], MARGIN)["verdict"].iloc[0] in ACCEPTED,
        "same: equivalent": _equivalence(second).verdict == "equivalent",
    }


def _equivalence(difference: MeanDifference) -> Equivalence:
    """Return what karat same says about one task."""
    row = pd.DataFrame({"task": ["t"], "verdict": ["undecided"]})
    return Equivalence(row, difference, MARGIN, GROUPS * SIZE)


def gates(runs: int) -> Iterator[dict[str, object]]:
    """Yield the false alarms of a gate on 1,000 items in clusters, as items and by --cluster."""
    for size, correlation in ((1, 0.0), (5, 0.3), (20, 0.3)):
        design = Design(1 + (size - 1) * correlation, 1000 // size, size)
        rng = np.random.default_rng([runs, size])
        failed = {"items": 0, "--cluster": 0}
        for _ in range(runs):
            answers = draw(rng, design, "acc", 2)
            for by, name in ((False, "items"), (True, "--cluster")):
                difference = separate(answers, design, "acc", by).mean_difference(0, 1)
                failed[name] += decide([difference], MARGIN).outcome == FAILED
        rates = {name: number / runs for name, number in failed.items()}
        yield {"items of a cluster": size, "design effect": design.effect, **rates}


def slices(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often a random slice of groups is called worse, at 5 %."""
    for effect in DESIGN_EFFECTS:
        design = Design(effect)
        rng, wrong = np.random.default_rng([runs, effect]), {"items": 0, "groups": 0}
        for _ in range(runs):
            one, other = draw(rng, design, "acc", 2)
            values = contributions("acc", [other]) - contributions("acc", [one])
            inside = np.repeat(rng.random(design.groups) < 0.4, design.size)
            proposed = [(Slice("s", "s", inside), 1 if values[inside].mean() > 0 else -1)]
            every = np.ones(len(values), dtype=bool)
            for name, labels in (("items", None), ("groups", design.labels)):
                tested = estimate_slices(values, proposed, every, True, labels)
                wrong[name] += bool(tested) and tested[0].p < LEVEL
        rates = {f"by {name}": number / runs for name, number in wrong.items()}
        yield {"design effect": effect, **rates}


def checks(runs: int) -> Iterator[dict[str, object]]:
    """Yield how often KRT306 reports one of 20 random columns, and finds groups among them.

    Further columns: the number of items that would be as certain as these, and what it says.
    """
    for effect in DESIGN_EFFECTS:
        design = Design(effect)
        rng, rows = np.random.default_rng([runs, effect]), []
        for _ in range(runs):
            one, other = draw(rng, design, "acc", 2)
            values = contributions("acc", [one]) - contributions("acc", [other])
            columns = {f"random {c}": _names(rng, len(values)) for c in range(20)}
            by_chance = strongest_cluster(values, columns)
            hit = strongest_cluster(values, {**columns, "group": design.labels})
            is_group = hit is not None and hit.column == "group"
            effective = hit.effective if hit is not None and is_group else np.nan
            rows.append({"a random one": by_chance is not None, "the group": is_group})
            rows[-1]["reported"] = effective
        reports = pd.DataFrame(rows).astype(float)
        shares = reports[["a random one", "the group"]].mean().to_dict()
        worth = {"worth": GROUPS * SIZE / effect, "reported": reports["reported"].median()}
        yield {"design effect": effect, **shares, **worth}


def _names(rng: np.random.Generator, items: int) -> np.ndarray:
    values = int(rng.choice([6, 20, 100, items // 3]))
    return rng.integers(0, values, items).astype(str).astype(object)


#: the tables by their titles
TABLES: Mapping[str, Callable[[int], Iterator[dict[str, object]]]] = {
    "Gate, cheapest and same: wrong answers about two models": decisions,
    "A gate on 1,000 items in clusters: false alarms": gates,
    "A random slice of groups: called worse": slices,
    "KRT306: columns that are reported": checks,
    "Equal models: separated, and intervals that hold the truth": separations,
}


def to_markdown(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for number, row in enumerate(rows):
        if number == 0:
            yield from (_line(row), _line(["---"] * len(row)))
        yield _line([_cell(name, value) for name, value in row.items()])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(name: str, value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return "–"
    return f"{value:g}" if name == "design effect" else f"{value:.{0 if value > 1 else 3}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    for title, table in TABLES.items():
        print(f"{title}:\n")
        for line in to_markdown(table(runs)):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
