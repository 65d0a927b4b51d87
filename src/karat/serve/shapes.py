"""Shapes: what run folders must hold to be shown; strangers may have written them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from karat.errors import DataError

if TYPE_CHECKING:
    from karat.results.run import Run

Name = Annotated[str, Field(max_length=20_000)]
Names = Annotated[list[Name], Field(min_length=1, max_length=1000)]


class Loose(BaseModel):
    """What has these keys, and any others."""

    model_config = ConfigDict(extra="allow", strict=True)


class TaskShape(Loose):
    """A planned task."""

    name: Annotated[str, Field(min_length=1, max_length=20_000)]
    metrics: Names
    folds: list[int]
    dataset: Name
    kind: Name = ""
    fingerprint: Name = ""
    higher_is_better: dict[str, bool] = {}
    twins: Annotated[list[int], Field(min_length=2, max_length=2)] = [0, 0]
    about: dict[str, Any] = {}


class AboutShape(Loose):
    """``run.json``."""

    model: Annotated[str, Field(min_length=1, max_length=20_000)]
    suite: Name
    constraint: Name
    mode: Name
    stamp: Name
    karat: Name
    version: Name | None
    params: dict[str, Any]
    seed: int = 0
    tasks: Annotated[list[TaskShape], Field(max_length=100_000)]
    versions: dict[str, Any] = {}


class ViewShape(Loose):
    """Scores of a job, through one view."""

    corruption: Name
    severity: float
    draw: int = 0
    coverage: float | None = None
    scores: dict[str, float | None]


class StepShape(Loose):
    """A score along the way."""

    epoch: int
    metric: Name
    value: float | None


class RecordShape(Loose):
    """A job's record."""

    model: Name
    task: Name
    metric: Name
    status: Name
    info: str
    utc: Name
    fold: int | None
    repeat: int | None
    seed: int | None
    seconds: float | None = None
    embed_seconds: float | None = None
    peak_memory_mb: float | None = None
    notes: list[str]
    views: list[ViewShape]
    history: list[StepShape]


def check_run(run: Run) -> None:
    """Raise a DataError that tells what is wrong with a run, if something is."""
    try:
        AboutShape.model_validate(run.about)
        planned = {task["name"] for task in run.about["tasks"]}
    except ValidationError as error:
        raise DataError(f"run.json: {_said(error)}") from error
    if len(planned) < len(run.about["tasks"]):
        raise DataError("run.json: a task stands there twice.")
    for record in run.records():
        check_record(record)


def check_record(record: Any) -> None:
    """Raise a DataError that tells what is wrong with a record, if something is."""
    try:
        RecordShape.model_validate(record)
    except ValidationError as error:
        name = str(record.get("task"))[:60] if isinstance(record, dict) else "?"
        raise DataError(f"the record of {name}: {_said(error)}") from error


def _said(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part)[:60] for part in first["loc"])
    return f"{place}: {first['msg']}."
