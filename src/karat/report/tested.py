"""Significance tests and findings of checks for a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.report.compact import cut_text
from karat.report.shown import Shown, count
from karat.results.cells import Cells
from karat.results.contests import comparable
from karat.results.missing import compare
from karat.results.rules import check_runs
from karat.results.significance import friedman, many

#: maximum number of models tested pairwise
MAX_MODELS = 60
#: maximum number of findings (most severe first), and of characters of one
MAX_FINDINGS, MESSAGE = 1_000, 600


def make_tests(cells: Cells, order: np.ndarray, rule: str) -> dict[str, Any]:
    """Return the Friedman test, the groups of models that do not differ, and p of every pair.

    Pairs are compared by normalized scores: 1 is the best model of a task, 0 the worst. If there
    are too many models, only the best are compared.
    """
    values = comparable(compare(cells, rule))[order]
    statistic, p, tasks = friedman(values)
    overall = {"statistic": statistic, "p": p, "tasks": tasks}
    best = values[:MAX_MODELS]
    found = many(best) if len(best) > 1 else None
    tests: dict[str, Any] = {
        "friedman": overall if np.isfinite(statistic) else None,
        "cliques": [] if found is None else found.cliques,
        "pairs": None,
    }
    if found is not None and len(values) <= MAX_MODELS:
        tests["pairs"] = {"p": found.pairs, "diff": found.difference}
    return tests


def make_checks(runs: Any, shown: Shown) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the findings with indices of model and task, and notes on what was left out."""
    models = {name: place for place, name in enumerate(shown.models)}
    tasks = {name: place for place, name in enumerate(shown.tasks)}
    found = check_runs(runs)
    rows = [
        {
            "code": finding.code,
            "level": finding.level,
            "model": models.get(finding.model or ""),
            "task": tasks.get(finding.task or ""),
            "message": cut_text(finding.message, MESSAGE),
            "advice": finding.advice,
        }
        for finding in found[:MAX_FINDINGS]
    ]
    rest = len(found) - len(rows)
    more = f"{count(rest, 'finding')} left out (most severe first)."
    return rows, [more] if rest else []
