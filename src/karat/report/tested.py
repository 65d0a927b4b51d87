"""Verdict: tests of who differs from whom, and the findings of the checks, by their places."""

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

#: so many models are tested pair by pair
MOST_MODELS = 60
#: findings that are listed, the gravest first, and characters of one: names may be long
MOST_FINDINGS, MESSAGE = 1_000, 600


def make_tests(cells: Cells, order: np.ndarray, rule: str) -> dict[str, Any]:
    """Return Friedman's test, the groups none of which differ, and p of every pair.

    Pairs are compared by normalised scores: 1 is the best model of a task, 0 the worst. Of very
    many models, the best are compared among themselves.
    """
    values = comparable(compare(cells, rule))[order]
    statistic, p, tasks = friedman(values)
    overall = {"statistic": statistic, "p": p, "tasks": tasks}
    known = values[:MOST_MODELS]
    found = many(known) if len(known) > 1 else None
    told: dict[str, Any] = {
        "friedman": overall if np.isfinite(statistic) else None,
        "cliques": [] if found is None else found.cliques,
        "pairs": None,
    }
    if found is not None and len(values) <= MOST_MODELS:
        told["pairs"] = {"p": found.pairs, "diff": found.difference}
    return told


def make_checks(runs: Any, shown: Shown) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what the checks find, with the places of model and task, and what was left out."""
    models = {name: place for place, name in enumerate(shown.models)}
    tasks = {name: place for place, name in enumerate(shown.tasks)}
    found = check_runs(runs)
    told = [
        {
            "code": finding.code,
            "level": finding.level,
            "model": models.get(finding.model or ""),
            "task": tasks.get(finding.task or ""),
            "message": cut_text(finding.message, MESSAGE),
            "advice": finding.advice,
        }
        for finding in found[:MOST_FINDINGS]
    ]
    rest = len(found) - len(told)
    more = f"{count(rest, 'finding')} of the checks are left out, the graver ones are shown."
    return told, [more] if rest else []
