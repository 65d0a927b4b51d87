"""CPU time of the statistics of 100 models on 100 tasks: all pairs, intervals, ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from karat.analysis.all_pairs import compare_pairs
from karat.stats.paired_tests import signed_rank
from karat.stats.ranking import rank_models

MODELS, TASKS, FOLDS = 100, 100, 5


def scores() -> list[np.ndarray]:
    """Return models × folds for every task; models differ by less than tasks and folds do."""
    rng = np.random.default_rng(0)
    skill = np.linspace(0.0, 0.1, MODELS)[:, None]
    shape = (MODELS, FOLDS)
    return [0.6 + skill + rng.normal(0, 0.05, shape) + rng.normal(0, 0.1) for _ in range(TASKS)]


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    tables = scores()
    values = np.column_stack([table.mean(axis=1) for table in tables])
    takes = np.ones(values.shape, dtype=bool)
    compare_pairs(values[:3])  # not to measure the imports
    pairs = seconds(lambda: compare_pairs(values))
    yield (
        f"all pairs of {MODELS} models × {TASKS} tasks, CPU",
        pairs,
        2,
        "s",
        "step-down max-T",
    )
    ranks = seconds(lambda: rank_models(tables, takes))
    yield "ranks, intervals, ties and all pairs, CPU", pairs + ranks, 2, "s", "the same"
    apart = values[0] - values[1]
    ours = seconds(lambda: signed_rank(apart, 0.01))
    try:
        import baycomp
    except ImportError:
        yield "Bayesian signed ranks, 100 tasks, CPU", ours, 1, "s", "nothing"
        return
    theirs = seconds(lambda: baycomp.two_on_multiple(values[0], values[1], rope=0.01))
    yield "Bayesian signed ranks, 100 tasks, CPU", ours / theirs, 0.5, "×", "baycomp"
