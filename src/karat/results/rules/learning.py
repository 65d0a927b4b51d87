"""KRT2xx: training that did not converge, or depends on the seed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from karat.results.rules.base import Facts, Hit, several


def unconverged(facts: Facts) -> Iterator[Hit]:
    """KRT201: heads or models that stopped at their iteration limit."""
    counts: dict[tuple[str, str], list[bool]] = {}
    names = {}
    for job in facts.jobs:
        if job.record["status"] == "ok":
            stopped = bool(job.record.get("unconverged"))
            counts.setdefault((job.model, job.task), []).append(stopped)
            names[job.model] = job.record["model"]
    for (model, task), folds in counts.items():
        if any(folds):
            yield Hit(
                f"{names[model]} on {task}: did not converge in {sum(folds)} of "
                f"{several(len(folds), 'fold')}.",
                model,
                task,
            )


def unstable(facts: Facts) -> Iterator[Hit]:
    """KRT202: the mean varies more over seeds than the score over folds."""
    for task in facts.given.metrics:
        for runs in _same_but_for_seed(facts, task):
            folds = facts.cells.folds[facts.place[task]][list(runs.values())]
            within = [row[~np.isnan(row)] for row in folds]
            if min(map(len, within)) < 2:
                continue
            means = np.array([row.mean() for row in within])
            between = float(means.std(ddof=1))
            inside = float(np.sqrt(np.mean([row.var(ddof=1) for row in within])))
            if between > inside and between > 1e-9 * np.abs(means).max():
                first = next(iter(runs.values()))
                ends = means if facts.given.higher(facts.given.metrics[task]) else -means
                yield Hit(
                    f"{facts.called(first)} on {task}: {min(ends):.4g} to {max(ends):.4g} with "
                    f"{len(runs)} seeds, a standard deviation of {between:.2g}; over folds it is "
                    f"{inside:.2g}.",
                    facts.cells.models[first],
                    task,
                )


def _same_but_for_seed(facts: Facts, task: str) -> Iterator[dict[int, int]]:
    """Yield the runs of a model with several seeds: the index of each by its seed."""
    found: dict[str, dict[int, int]] = {}
    for m in facts.scored(task):
        about = facts.abouts.get(facts.cells.models[m], {})
        seed = about.get("seed")
        if isinstance(seed, int):
            key = json.dumps([about.get(k) for k in ("model", "version", "params")], default=str)
            found.setdefault(key, {}).setdefault(seed, int(m))
    yield from (runs for runs in found.values() if len(runs) > 1)
