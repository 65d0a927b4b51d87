"""What the API answers: the fields of each response, and the events of its streams."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, Literal

from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, create_model

from karat.errors import FAILURES
from karat.ext.serve.request_parameters import (
    Number,
)
from karat.ext.serve.submissions import (
    GevalOrder,
    Order,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


Dict = dict[str, Any]
States = Literal["queued", "running", "finished", "failed", "cancelled", "stopped"]
GevalFacts = {str: "name run vectors tasks started similarity_metric top_k vector_size protocol"}
_SCHEMAS = "#/components/schemas"


class Answer(BaseModel):
    """Fields that a response always has; it may have more."""

    model_config = ConfigDict(extra="allow")


def answer(name: str, fields: dict[Any, str]) -> Any:
    """Return the model of a response from the names of its fields by type."""
    typed = {name: (type_, ...) for type_, names in fields.items() for name in names.split()}
    return create_model(name, __base__=Answer, **typed)  # type: ignore[call-overload]


def answer_list(name: str, item: object, fields: dict[Any, str] | None = None) -> Any:
    """Return the model of a response that is a page of a list."""
    return answer(name, {int: "total", GenericAlias(list, (item,)): "items", **(fields or {})})


Error = answer("Error", {str: "error hint"})
RunSummary = answer(
    "Run",
    {str: "id model suite constraint stamp state last", float | None: "seconds_per_job"}
    | {Number: f"planned ok {' '.join(FAILURES)} declined running left"},
)
Score = answer(
    "Score",
    {str: "run task model corruption metric", int: "draw epoch", int | None: "repeat fold"}
    | {float | None: "severity value"},
)
RunningJob = answer("RunningJob", {str: "model task", int: "fold"})
Progress = answer(
    "Progress", {Number: "done failed left", GenericAlias(list, (RunningJob,)): "running"}
)
EvaluationState = answer(
    "Evaluation",
    {str: "id created started ended output", Order | GevalOrder: "order", States: "status"}
    | {int | None: "code position", list[str]: "runs models", Progress: "progress"},
)
VectorFile = answer("VectorFile", {str: "name model", Number: "bytes"})
Board = answer_list(
    "Board", Dict, {list[str]: "tasks", Dict: "metrics higher_is_better separation"}
)
Compared = answer(
    "Comparison",
    {
        str: "sentence first second verdict",
        float | None: "rope",
        list[str]: "notes",
        Dict: "overall",
    }
    | {list[Dict]: "tasks"},
)
GevalOptions = answer(
    "GevalOptions",
    {list[Dict]: "tasks gold_standards", str: "message"}
    | {list[str]: "formats similarity_metrics analogy_functions protocols"},
)
GevalTable = answer("GevalTable", {list[str]: "columns", list[list[Any]]: "rows", int: "total"})
GevalSummary = answer("GevalSummary", GevalFacts)
GevalResult = answer(
    "GevalResult",
    {str: f"{GevalFacts[str]} log", list[str]: "problems", Dict: "ignored"}
    | {GenericAlias(dict, (str, GevalTable)): "tables"},
)
GevalRun = answer(
    "GevalRun",
    {str: "id", list[str]: "tasks", int: "gold_standards scores", float | None: "coverage"},
)
GevalComparison = answer("GevalComparison", {str: "run", list[Dict]: "values ranks"})
LiveBundle = answer("Bundle", {str: "title", list[Dict]: "models tasks", Progress: "progress"})
Predictions = answer_list(
    "Predictions",
    list[str],
    {list[str]: "columns", str | None: "answers truths", list[Any] | None: "classes"},
)


class EventStream(StreamingResponse):
    """A stream of events that ends with its connection."""

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the stream ends or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.body_iterator.aclose()  # type: ignore[attr-defined]


def _event(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an event of a stream."""
    fields = {"event": {"const": name}, "id": {"type": "string"}, "data": data}
    return {"type": "object", "required": ["event", "data"], "properties": fields}


#: an event of the folder, one of an evaluation, and the one after which a stream ends
EVENT_SCHEMA = {
    "oneOf": [
        _event(
            "progress",
            {
                "type": "object",
                "required": ["version", "progress"],
                "properties": {
                    "version": {"type": "string"},
                    "progress": {"$ref": f"{_SCHEMAS}/Progress"},
                },
            },
        ),
        _event("evaluation", {"$ref": f"{_SCHEMAS}/Evaluation"}),
        _event("end", {"type": "object", "maxProperties": 0}),
    ]
}
EVENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, whose data are JSON",
        "content": {
            EventStream.media_type: {
                "schema": {
                    "type": "string",
                    "contentMediaType": EventStream.media_type,
                    "contentSchema": EVENT_SCHEMA,
                }
            }
        },
    },
    204: {"description": "The evaluation has ended, and the client has its last event"},
}
