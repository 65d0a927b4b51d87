"""The parameters of requests to the API: their types, limits and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi import Path as PathParameter
from fastapi import Query
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

Pool = Literal["variant", "model", "none"]
T = TypeVar("T")
#: an endpoint's parameter whose fields are the query parameters
Queried = Annotated[T, Query()]
Text = Annotated[str, Field(max_length=20_000)]
Texts = Annotated[list[Text], Field(max_length=1000)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
Limit = Annotated[int, Field(ge=1, le=10_000)]
RunName = Annotated[str, PathParameter(min_length=1, description="Name of the run's folder.")]
FileName = Annotated[str, PathParameter(min_length=1, description="Name of the vector file.")]
ResultName = Annotated[str, PathParameter(min_length=1, description="Name of the result folder.")]
EvaluationName = Annotated[str, PathParameter(min_length=1, description="Id of the evaluation.")]
#: None is the default but cannot be sent: it does not belong in the schema
MaybeText = Text | SkipJsonSchema[None]
MaybeNumber = Number | SkipJsonSchema[None]


def _described(description: str, default: object = None) -> Any:
    """Return a query parameter with a default."""
    return Field(default, description=description)


class Paging(BaseModel):
    """Parameters of lists."""

    offset: Number = _described("Number of items to skip.", 0)
    limit: Limit = _described("Maximum number of items.", 1000)

    def page(self, items: list[Any]) -> dict[str, Any]:
        """Return the selected items and the total number."""
        selected = items[self.offset : self.offset + self.limit]
        return {"total": len(items), "offset": self.offset, "items": selected}


class JobsQuery(Paging):
    """Parameters of the list of jobs."""

    task: MaybeText = _described("Only this task.")
    fold: MaybeNumber = _described("Only this fold.")
    status: MaybeText = _described("Only ok, failed, timeout, memory or declined jobs.")


class JobQuery(BaseModel):
    """Parameters that select a job."""

    task: Text = _described("Name of the task.", ...)
    fold: Number = _described("Number of the fold, starting at 0.", ...)


class ViewQuery(JobQuery):
    """Parameters that select predictions."""

    view: Text = _described('A view such as typos@0.1, or "clean".', "clean")


class PredictionsQuery(ViewQuery, Paging):
    """Parameters of predictions as JSON."""


class RunsQuery(BaseModel):
    """The parameter that selects runs."""

    run: Texts = _described("Only these runs, by folder name. Repeatable.", [])


class ScoresQuery(RunsQuery, Paging):
    """Parameters of the score table."""

    model: Texts = _described("Only these models. Repeatable.", [])
    task: Texts = _described("Only these tasks. Repeatable.", [])
    metric: Texts = _described("Only these metrics. Repeatable.", [])
    fold: MaybeNumber = _described("Only this fold.")
    corruption: MaybeText = _described("Only this corruption; empty: clean data.")
    epoch: Annotated[int, Field(ge=-1, le=2**31 - 1)] | SkipJsonSchema[None] = _described(
        "Only this epoch; -1: final scores."
    )
    format: Literal["json", "csv"] | SkipJsonSchema[None] = _described(
        "Overrides the Accept header. CSV has all rows unless limit is set."
    )


class BoardQuery(RunsQuery):
    """Parameters of the leaderboard."""

    by: Literal["task", "kind", "dataset", "language"] | SkipJsonSchema[None] = _described(
        "Rank within each."
    )
    missing: Text = _described("How missing scores count.", "worst")
    normalize: MaybeText = _described(
        'Add scores from 0 to 1: "range", "baseline:MODEL" or "baseline:ZERO,ONE".'
    )
    sort: MaybeText = _described("Sort by this column, best first.")
    metric: Texts = _described("TASK=METRIC: another metric of a task. Repeatable.", [])
    columns: Texts = _described("More columns, as in karat leaderboard. Repeatable.", [])
    pool: Pool = _described("Which runs are one model.", "variant")
    format: Literal["json", "csv", "markdown"] | SkipJsonSchema[None] = _described(
        "Overrides the Accept header."
    )


class CompareQuery(RunsQuery):
    """Parameters of a comparison."""

    a: Text = _described("A model, as named in the leaderboard.", ...)
    b: Text = _described("The model to compare with.", ...)
    metric: MaybeText = _described("Only this metric. Default: each task's primary metric.")
    on: Literal["folds", "common", "rows"] = _described(
        "Compare scores of folds, scores on the items both models cover, or predictions.", "folds"
    )
    pool: Pool = _described("Which runs are one model.", "variant")


class EventsQuery(BaseModel):
    """The parameter of event streams."""

    evaluation: MaybeText = _described("Only this evaluation; the stream ends when it has ended.")


class SuiteQuery(BaseModel):
    """The parameter of the tasks of a suite."""

    suite: Text = _described("Name of a suite or of a task.", ...)


class GevalComparisonQuery(BaseModel):
    """Parameters of a comparison of GEval runs."""

    run: Text = _described("Id of a run.", ...)
    compare_with: Texts = _described("Ids of other runs; default: all. Repeatable.", [])


class NameQuery(BaseModel):
    """The parameter of uploads."""

    name: Text = _described("File name made of letters, digits and _@+,-.", ...)
