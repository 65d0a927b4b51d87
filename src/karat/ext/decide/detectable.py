"""``karat plan --detect``: which difference a plan can detect, and what it takes to detect one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from karat.core.formatting import dump_json
from karat.errors import DataError, KaratError
from karat.execution.plan import Plan, PlannedTask
from karat.ext.decide.power import power
from karat.output.result import show
from karat.reporting.terminal import plain_console, print_lines
from karat.stats.paired_tests import detectable_difference, needed_pairs

#: standard deviation of the differences of two models over queries, if there are no earlier runs
ASSUMED_SPREAD = 0.3


def show_detectable(plan: Plan, difference: float, output: Path, shape: str = "table") -> None:
    """Print which difference can be detected, and how many queries, tasks, folds or items it takes.

    From the runs in a folder; queries of retrieval tasks can be estimated without any.
    """
    queries = [_detected_queries(planned, difference, output) for planned in _retrieval_tasks(plan)]
    answer = None
    try:
        names = [planned.task.name for planned in plan.tasks]
        models = [model.name for model in plan.models]
        answer = power(output, difference, tasks=names, models=models)
    except KaratError as error:
        if not queries:
            raise DataError(
                f"--detect needs earlier runs of two models on these tasks: {error} Name their "
                "folder with --runs, or run two models first."
            ) from error
    if shape == "json":
        facts = answer.to_dict() if answer is not None else {"difference": difference}
        sys.stdout.write(dump_json({**facts, "queries": queries}))
        return
    for row in queries:
        print_lines(
            plain_console(),
            f"\n {row['task']}: {row['queries']:,} queries detect a difference of about "
            f"{row['detectable']:.2g}; to detect {difference:g}, about {row['needed']:,} are "
            "needed.",
            f"   Two-sided paired test at 5 %, power 80 %; {_of_spread(row['spread'], output)}.",
        )
    if answer is not None and (len(answer.tasks) > 1 or not queries):
        print_lines(plain_console(), "")
        show(answer)


def _retrieval_tasks(plan: Plan) -> list[PlannedTask]:
    return [
        planned
        for planned in plan.tasks
        if planned.data is not None and planned.data.kind == "items"
    ]


def _detected_queries(planned: PlannedTask, difference: float, output: Path) -> dict[str, Any]:
    """Return what the queries of a retrieval task detect, and how many are needed."""
    from karat.analysis.item_tests import earlier_spread

    name, queries = planned.task.name, len(planned.data.asked()) if planned.data else 0
    seen = earlier_spread(output, name)
    spread = seen or ASSUMED_SPREAD
    return {
        "task": name,
        "queries": queries,
        "spread": seen,
        "detectable": detectable_difference(spread, queries),
        "needed": needed_pairs(spread, difference),
    }


def _of_spread(seen: float | None, output: Path) -> str:
    if seen is None:
        return (
            f"no earlier runs of two models in {output}: the difference of two models is assumed "
            f"to have a standard deviation of {ASSUMED_SPREAD} over queries"
        )
    return (
        f"the difference of the two best models in {output} has a standard deviation of "
        f"{seen:.2g} over queries"
    )
