"""plan.json: all jobs of a plan with their hashes, written next to the runs of each shard.

``karat gather`` reads it to find what is missing. The hash of a job is not stored but computed from
the facts of its model and its task, so that the file of a million jobs has a few megabytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from karat.core.files import encodable, write_atomic
from karat.errors import DataError, DefinitionError
from karat.execution.job import new_record
from karat.execution.plan import Plan, SpecHash, spec_facts
from karat.execution.runner import Session, task_facts
from karat.results.tables import check_about, read_json_object

FILE = "plan.json"
SCHEMA = 1
#: facts about all jobs of a plan
_COMMON = ("karat", "suite", "constraint", "mode", "seed")


@dataclass(frozen=True)
class PlanFile:
    """The content of a ``plan.json``."""

    path: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """Read a file; raise DataError if it is damaged."""
        content = read_json_object(path)
        found = cls(path, content)
        try:
            wrong = "schema" if content["schema"] != SCHEMA else ""
            tasks = [task["facts"] for task in content["tasks"]]
            for model in content["models"]:
                wrong = wrong or check_about({**model["about"], "tasks": tasks})
                tasks = []  # checked once
            count = sum(1 for _ in found.jobs())
            if content["parts"] and sum(size for _, size in content["parts"]) != count:
                wrong = "parts"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path} is damaged: {type(error).__name__}: {error}.") from error
        if wrong:
            raise DataError(f"{path} is damaged: {wrong} is missing or wrong.")
        return found

    @property
    def models(self) -> list[Mapping[str, Any]]:
        """The models: their ``about``, identity, and the tasks that do not run."""
        return list(self.content["models"])

    @cached_property
    def tasks(self) -> dict[str, Mapping[str, Any]]:
        """The facts of the tasks as in ``run.json``, and those that hashes depend on, by name."""
        return {task["facts"]["name"]: task for task in self.content["tasks"]}

    @cached_property
    def count(self) -> int:
        """The number of parts, 0 if there are none."""
        return int(self.content["count"])

    def folds(self, model: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        """Yield the task and fold of each job of a model."""
        lost = {name for name, *_ in model["declined"]}
        for name, task in self.tasks.items():
            if name not in lost:
                yield from ((name, fold) for fold in task["facts"]["folds"])

    def jobs(self) -> Iterator[tuple[str, str, int]]:
        """Yield the model, task and fold of each job."""
        for model in self.models:
            yield from ((model["about"]["model"], *job) for job in self.folds(model))

    def parts(self) -> Iterator[int]:
        """Yield the part of each job, counted from 1, in the order of ``jobs``."""
        for part, size in self.content["parts"]:
            yield from (part for _ in range(size))

    def specs(self, model: Mapping[str, Any]) -> dict[tuple[str, int], str] | None:
        """Return the hashes of the jobs of a model; None if it cannot be hashed."""
        if model["identity"] is None:
            return None
        about = model["about"]
        facts = {"model": model["identity"], "version": about["version"]}
        facts["karat"] = self.content["karat"]
        hashes = {
            name: SpecHash({**facts, "seed": self.content["seed"], **task["spec"]})
            for name, task in self.tasks.items()
        }
        return {(task, fold): hashes[task].of(fold) for task, fold in self.folds(model)}

    def not_run(self, model: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str | None]]:
        """Yield the record, the reason and what lacks of each task that does not run."""
        for name, reason, lacks in model["declined"]:
            facts = self.tasks[name]["facts"]
            record = new_record("", model["about"]["model"], _Named(name, facts))  # type: ignore[arg-type]
            yield record, reason, lacks

    def difference(self, other: PlanFile) -> str:
        """Return in what the jobs of another plan differ; empty if they are the same."""
        for key in _COMMON:
            if self.content[key] != other.content[key]:
                return f"{key} is {self.content[key]!r} and {other.content[key]!r}"
        for what, jobs in (("task", _task_jobs), ("model", _model_jobs)):
            mine, theirs = jobs(self), jobs(other)
            for name in dict.fromkeys([*mine, *theirs]):
                if name not in mine or name not in theirs:
                    return f'{what} "{name}" is in one of them only'
                if mine[name] != theirs[name]:
                    return f'{what} "{name}" has another definition, code, data or library version'
        return ""

    @cached_property
    def digest(self) -> str:
        """A hash of all jobs."""
        facts = [[self.content[key] for key in _COMMON], _task_jobs(self), _model_jobs(self)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True)
class _Named:
    """What a record needs of a task."""

    name: str
    facts: Mapping[str, Any]

    @property
    def kind(self) -> Any:
        return self.facts["kind"]

    @property
    def metrics(self) -> Any:
        return self.facts["metrics"]


def _task_jobs(plan: PlanFile) -> dict[str, Any]:
    return {name: [task["facts"]["folds"], task["spec"]] for name, task in plan.tasks.items()}


def _model_jobs(plan: PlanFile) -> dict[str, Any]:
    return {
        model["about"]["model"]: [
            model["identity"],
            model["about"]["version"],
            [name for name, *_ in model["declined"]],
        ]
        for model in plan.models
    }


def write_plan_file(
    folder: Path, session: Session, parts: Mapping[int, int], *, replace: bool = False
) -> None:
    """Write the plan of a session; ``parts`` are those of its jobs, counted from 0.

    A file of the same plan stays as it is. One of another plan is an error unless ``replace``.
    """
    path = folder / FILE
    made = PlanFile(path, _content(session, parts))
    if path.is_file() and not replace:
        if difference := PlanFile.read(path).difference(made):
            raise DefinitionError(
                f"{path} is of another plan: {difference}; choose another --output."
            )
        return
    text = json.dumps(made.content, allow_nan=False, default=str)
    write_atomic(path, text, durable=True)


def _content(session: Session, parts: Mapping[int, int]) -> dict[str, Any]:
    plan, options = session.plan, session.options
    declined: dict[str, list[Any]] = {}
    for each in plan.declined:
        declined.setdefault(each.model, []).append([each.task, encodable(each.reason), each.lacks])
    for each in plan.lost_tasks:
        declined.setdefault(each.model, []).append([each.task, encodable(each.reason), None])
    models: list[dict[str, Any]] = [
        {
            "about": session.about_model(model),
            "identity": plan.identities[model.name],
            "declined": declined.get(model.name, []),
        }
        for model in plan.models
    ]
    tasks = [{"facts": task_facts(each), "spec": spec_facts(plan, each)} for each in plan.tasks]
    about = models[0]["about"]
    return {
        "schema": SCHEMA,
        **{key: about[key] for key in _COMMON},
        "command": list(options.command),
        "output": str(options.output),
        "count": max(parts.values(), default=-1) + 1,
        "tasks": tasks,
        "models": models,
        "parts": _run_lengths(plan, parts),
    }


def _run_lengths(plan: Plan, parts: Mapping[int, int]) -> list[list[int]]:
    """Return the parts of all jobs by model, task and fold, as [part from 1, number of jobs]."""
    model_place = {model.name: place for place, model in enumerate(plan.models)}
    task_place = {planned.task.name: place for place, planned in enumerate(plan.tasks)}
    rows = sorted(
        (model_place[model.name], task_place[planned.task.name], fold, parts[job] + 1)
        for job, (model, planned, fold) in enumerate(plan.jobs if parts else ())
    )
    found: list[list[int]] = []
    for *_, part in rows:
        if found and found[-1][0] == part:
            found[-1][1] += 1
        else:
            found.append([part, 1])
    return found
