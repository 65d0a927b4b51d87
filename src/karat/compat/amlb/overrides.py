"""``-X key=value``: overrides of options of the run, the tasks and the framework."""

from __future__ import annotations

import ast
import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.errors import DefinitionError, did_you_mean
from karat.task import Task

#: keys of a task and Karat's names for them
TASK_KEYS = {
    "metric": "metrics",
    "folds": "folds",
    "max_runtime_seconds": "max_runtime_seconds",
    "max_mem_size_mb": "max_mem_size_mb",
    "cores": "cores",
}
#: supported keys of AMLB's configuration and Karat's options for them
RUN_KEYS = {
    "seed": "seed",
    "job_scheduler.parallel_jobs": "workers",
    "job_scheduler.exit_on_job_failure": "exit_on_error",
    "max_rows": "max_rows",
}
KNOWN = (*RUN_KEYS, *(f"t.{key}" for key in TASK_KEYS), "f.PARAMETER")


@dataclass(frozen=True)
class Overrides:
    """Overridden options of the run, fields of every task, and parameters of the framework."""

    run: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, task: Task) -> Task:
        """Return a task with the overridden fields."""
        return dataclasses.replace(task, **self.task)


def read_overrides(given: Sequence[str]) -> Overrides:
    """Parse ``key=value`` arguments; a value is a Python literal, or else text.

    >>> read_overrides(["seed=7", "t.metric=['auc']", "f.options.max_depth=3", "f.verbose"])
    Overrides(run={'seed': 7}, task={'metrics': ['auc']}, params={'options': {'max_depth': 3}, \
'verbose': True})
    """
    run: dict[str, Any] = {}
    task: dict[str, Any] = {}
    params: dict[str, Any] = {}
    for each in given:
        key, sign, text = each.partition("=")
        value = _literal(text) if sign else True
        if key.startswith("f.") and key != "f.":
            _put(params, key[2:].split("."), value, each)
        elif key.startswith("t.") and key[2:] in TASK_KEYS:
            task[TASK_KEYS[key[2:]]] = _limit(key[2:], value)
        elif key in RUN_KEYS:
            run[RUN_KEYS[key]] = _seed(value) if key == "seed" else value
        else:
            near = did_you_mean(key, KNOWN) or f" Available: {', '.join(KNOWN)}."
            raise DefinitionError(f'-X {each}: unknown key "{key}".{near}')
    return Overrides(run, task, params)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _put(params: dict[str, Any], path: Sequence[str], value: Any, each: str) -> None:
    for key in path[:-1]:
        params = params.setdefault(key, {})
        if not isinstance(params, dict):
            raise DefinitionError(f'-X {each}: "{key}" already has a value.')
    params[path[-1]] = value


def _limit(key: str, value: Any) -> Any:
    """Return a task's value; -1 means no limit, one metric is a list of one."""
    if key == "metric":
        return [value] if isinstance(value, str) else value
    return None if value == -1 else value


def _seed(value: Any) -> int:
    """Return a seed; ``auto`` draws one, which the run folder records."""
    if value == "auto":
        return secrets.randbelow(2**31 - 1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DefinitionError(f"-X seed={value}: the seed must be an integer or auto.")
    return value
