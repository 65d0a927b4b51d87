"""The web application: the endpoints and errors.

FastAPI validates requests and describes the API as OpenAPI; response models are documentation
only, because large responses would be slow to validate.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import hmac
import itertools
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_origin, get_type_hints
from urllib.parse import quote

import pandas as pd
from fastapi import APIRouter, Depends, FastAPI, Header, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from karat import __version__
from karat.core.digest import sha256_of
from karat.core.predictions import ROWS_FILE
from karat.errors import DataError, KaratError, did_you_mean
from karat.ext.serve.answers import (
    EVENT_RESPONSES,
    Board,
    Compared,
    Dict,
    Error,
    EvaluationState,
    EventStream,
    GevalComparison,
    GevalOptions,
    GevalResult,
    GevalRun,
    GevalSummary,
    LiveBundle,
    Predictions,
    Progress,
    RunSummary,
    Score,
    VectorFile,
    answer,
    answer_list,
)
from karat.ext.serve.guard import (
    BASE,
    NO_STORE,
    ORDER_PATHS,
    Guard,
    Json,
    Turns,
    client_of,
    error_response,
    has_tag,
    internal_error,
)
from karat.ext.serve.request_parameters import (
    BoardQuery,
    CompareQuery,
    EvaluationName,
    EventsQuery,
    FileName,
    GevalComparisonQuery,
    JobQuery,
    JobsQuery,
    NameQuery,
    Paging,
    PredictionsQuery,
    Queried,
    ResultName,
    RunName,
    RunsQuery,
    ScoresQuery,
    SuiteQuery,
    Text,
    ViewQuery,
)
from karat.ext.serve.screens import example_values, make_api_page, make_form
from karat.ext.serve.server import ApiError, ServerSettings
from karat.ext.serve.snapshots import (
    BundleCache,
    CheckedRecord,
    Events,
    FolderWatcher,
    ServedRun,
    Snapshot,
    StreamEvent,
    count_job_states,
    file_stamp,
    short_hash,
    to_ascii_json,
)
from karat.ext.serve.submissions import (
    QUEUED,
    RUNNING,
    DefinedNames,
    Evaluation,
    Evaluations,
    GevalOrder,
    Order,
    Uploads,
)
from karat.results.tables import SCORE_COLUMNS

#: seconds before a wrong token is answered
WRONG_TOKEN_DELAY = 0.25
#: most uploaded runs that wait to be checked
MAX_WAITING_RUNS = 4
#: number of cached leaderboards and comparisons
CACHE_SIZE = 32
MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}
ABOUT = (
    "Runs, scores, predictions, leaderboards and comparisons of one folder. Reading is open to "
    "everyone who reaches the server; uploads and evaluations require a token. Errors are JSON "
    "with a message and a hint."
)
BEARER = HTTPBearer(auto_error=False, scheme_name="token")
NAMES = ("models", "suites", "tasks", "constraints")
ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    b'<path fill="#b8860b" d="M4 2h8l3 4-7 8-7-8z"/></svg>'
)
WAIT_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Karat</title>'
    "<p>The page is being made and will appear here. There are many runs.</p></html>"
)
#: example of a body by path
BODIES = {
    f"{BASE}/evaluations": '{"suite": "quickstart", "models": ["onehot"]}',
    f"{BASE}/geval": '{"vectors": "vectors.txt", "tasks": ["Class", "EntRel"]}',
}


class Service:
    """Everything that the endpoints share."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.watcher = FolderWatcher(settings.folder)
        self.bundles = BundleCache()
        self.names = DefinedNames(settings)
        self.uploads = Uploads(settings)
        #: the progress of an ended evaluation comes from a scan after its end
        self.evaluations = Evaluations(settings, self.uploads, self.watcher.rescan)
        #: a client has one wrong token at a time answered, which limits how many it can try
        self.guesses = Turns(total=1000, per_client=1)
        #: run folders are unpacked one at a time
        self.unpacking = Turns(total=1, per_client=1)
        self.events = Events(self.look, settings.limits)
        self._lock = threading.Lock()
        self._cache: OrderedDict[Any, Any] = OrderedDict()

    def cached(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return the cached value of a key, or compute it; one computation at a time."""
        with self._lock:
            if key not in self._cache:
                self._cache[key] = compute()
                while len(self._cache) > CACHE_SIZE:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(key)
            return self._cache[key]

    def look(self, topic: str) -> StreamEvent:
        """Return the state of an evaluation, or of the whole folder, as an event."""
        if topic:
            evaluation = self.describe(self.evaluations.get(topic))
            ended = evaluation["status"] not in (QUEUED, RUNNING)
            return StreamEvent("evaluation", to_ascii_json(evaluation), last=ended)
        snapshot = self.watcher.snapshot()
        try:
            version = self.bundles.bundle(snapshot).version
        except Exception:  # requests for the page report it
            version = ""
        return StreamEvent(
            "progress", to_ascii_json({"version": version, "progress": snapshot.progress})
        )

    def describe(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the public fields of an evaluation, and the progress of its runs."""
        fields = self.evaluations.describe(evaluation)  # before the scan: see the constructor
        if isinstance(evaluation.order, GevalOrder):
            facts = self.evaluations.geval.describe(evaluation.id)
            return {**fields, "runs": [], "models": [], **facts}
        runs = evaluation.order.find_runs(self.watcher.snapshot().runs, self.settings.constraint)
        models = sorted({run.model for run in runs.values()})
        progress = {"runs": list(runs), "models": models, "progress": count_job_states(runs)}
        return {**fields, **progress}


# -- requests -------------------------------------------------------------------------------

# -- responses ------------------------------------------------------------------------------


class ConditionalRoute(APIRoute):
    """A route with entity tags that answers If-None-Match; Starlette has that for files only."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, followed by a check of the entity tag."""
        handle = super().get_route_handler()

        async def handle_conditional(request: Request) -> Response:
            response = await handle(request)
            streamed = isinstance(response, EventStream)
            if request.method != "GET" or response.status_code != 200 or streamed:
                return response
            headers = response.headers
            headers["vary"] = "Accept, Accept-Encoding"
            if "etag" not in headers:
                headers["etag"] = f'"{short_hash(bytes(response.body))}"'
            if not has_tag(request.headers.get("if-none-match", ""), headers["etag"]):
                if request.scope.get("karat.head"):
                    request.scope["method"] = "HEAD"  # files are not read
                return response
            names = ("etag", "vary", "cache-control", "content-security-policy")
            return Response(None, 304, {name: headers[name] for name in names if name in headers})

        return handle_conditional


# -- dependencies ---------------------------------------------------------------------------


async def get_service(request: Request) -> Service:
    """Return the shared objects of the application."""
    service: Service = request.app.state.service
    return service


Shared = Annotated[Service, Depends(get_service)]


async def check_parameters(request: Request) -> None:
    """Refuse unknown and repeated parameters, which FastAPI ignores."""
    model = get_type_hints(request.scope["endpoint"]).get("query", BaseModel)
    fields = model.model_fields
    for name in request.query_params:
        if name not in fields:
            allowed = f"parameters: {', '.join(sorted(fields)) or 'none'}"
            hint = did_you_mean(name[:100], fields).strip() or allowed
            raise ApiError(400, f'unknown parameter "{name[:100]}"', hint)
        repeated = len(request.query_params.getlist(name)) > 1
        if repeated and get_origin(fields[name].annotation) is not list:
            raise ApiError(400, f'the parameter "{name}" is given more than once')


async def require_token(
    request: Request,
    service: Shared,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
) -> None:
    """Refuse a request without the token; the time this takes reveals nothing about it."""
    if service.settings.token is None:
        hint = "start it with --token-file or KARAT_TOKEN to allow more"
        raise ApiError(403, "this server is read-only", hint)
    words = (credentials.credentials if credentials else "", service.settings.token)
    digests = [bytes.fromhex(sha256_of(word)) for word in words]
    if not hmac.compare_digest(*digests):
        leave = await service.guesses.enter(client_of(request.scope))
        try:
            await asyncio.sleep(WRONG_TOKEN_DELAY)
        finally:
            leave()
        hint = "send the header Authorization: Bearer TOKEN"
        headers = {"www-authenticate": "Bearer"}
        raise ApiError(401, "missing or wrong token", hint, headers, field="token")


api = APIRouter(
    prefix=BASE,
    route_class=ConditionalRoute,
    dependencies=[Depends(check_parameters)],
    responses={"4XX": {"model": Error}, "5XX": {"model": Error}},
    generate_unique_id_function=lambda route: route.name,
)


def endpoint(
    method: str,
    path: str,
    model: type | None,
    *types: str,
    status: int = 200,
    responses: Mapping[int | str, dict[str, Any]] = MappingProxyType({}),
) -> Any:
    """Return a decorator that adds an endpoint; its docstring becomes the summary.

    ``model`` describes the JSON response (None: a file). ``types`` are other media types of the
    response or, for methods other than GET, of the body; these methods require the token.
    ``responses`` replace the description of those of a GET.
    """
    content = {"content": {media_type: {"schema": {"type": "string"}} for media_type in types}}
    options: dict[str, Any]
    if method == "GET":
        usual: dict[int | str, dict[str, Any]]
        usual = {200: content, 304: {"description": "Not modified"}}
        options = {"responses": dict(responses) or usual}
    else:
        body = {"requestBody": {"required": True, **content}}
        options = {"dependencies": [Depends(require_token)], "openapi_extra": types and body}
        if types or BASE + path in ORDER_PATHS:  # the others read no body
            options["responses"] = {413: {"model": Error, "description": "The body is too large"}}

    def register(function: Callable[..., Any]) -> Any:
        return api.api_route(
            path,
            methods=[method],
            summary=str(function.__doc__).rstrip("."),
            description="",
            status_code=status,
            response_model=model,
            response_class=FileResponse if model is None else Json,
            **options,
        )(function)

    return register


# -- endpoints that read --------------------------------------------------------------------


@endpoint("GET", "/runs", answer_list("Runs", RunSummary, {list[Dict]: "left_out"}))
def list_runs(query: Queried[Paging], service: Shared) -> Response:
    """List all runs and their progress."""
    snapshot = service.watcher.snapshot()
    summaries = [run.summary() for run in snapshot.runs.values()]
    left_out = [{"run": name, "why": reason} for name, reason in snapshot.left_out.items()]
    return Json({**query.page(summaries), "left_out": left_out})


@endpoint("GET", "/runs/{run}", RunSummary)
def get_run(run: RunName, service: Shared) -> Response:
    """Get a run with its plan and settings."""
    served = service.watcher.snapshot().run(run)
    return Json({**served.summary(), "about": served.about})


@endpoint("GET", "/runs/{run}/jobs", answer_list("Jobs", CheckedRecord))
def list_jobs(run: RunName, query: Queried[JobsQuery], service: Shared) -> Response:
    """List the records of finished jobs."""
    wanted = query.model_dump(include={"task", "fold", "status"}, exclude_none=True)
    records = service.watcher.snapshot().run(run).records()
    matching = [r for r in records if all(r[key] == value for key, value in wanted.items())]
    return Json(query.page(matching))


@endpoint("GET", "/runs/{run}/log", None, "text/plain")
def get_log(run: RunName, query: Queried[JobQuery], service: Shared) -> Response:
    """Get the output and traceback of a job."""
    job = {"task": query.task, "fold": query.fold, "status": ""}
    path = service.watcher.snapshot().run(run).log(job)
    if not path.is_file():
        raise ApiError(404, "this job has no log", "only jobs that printed or failed have one")
    return FileResponse(path, media_type="text/plain", stat_result=path.stat())


@endpoint("GET", "/runs/{run}/predictions", Predictions)
def get_predictions(run: RunName, query: Queried[PredictionsQuery], service: Shared) -> Response:
    """Get predictions and targets of a job."""
    path, facts = _find_predictions(service.watcher.snapshot().run(run), query)

    def count() -> int:
        with path.open(encoding="utf-8", newline="") as file:
            return max(sum(1 for _ in csv.reader(file)) - 1, 0)

    try:
        columns, rows = _window(path, query)
        beside = path.with_name(ROWS_FILE)
        if beside.is_file():  # the further columns, such as the keys of the items
            names, more = _window(beside, query)
            columns += names
            rows = [[*one, *other] for one, other in zip(rows, more, strict=True)]
        total = service.cached(("rows", str(path), file_stamp(path)), count)
    except (csv.Error, ValueError) as error:
        raise ApiError(422, "the file is damaged", "karat rescore shows where") from error
    page = {"total": total, "offset": query.offset, "items": rows}
    return Json({**page, "columns": columns, **facts})


def _window(path: Path, query: PredictionsQuery) -> tuple[list[str], list[list[str]]]:
    """Return the header of a file and the wanted rows."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = next(reader, [])
        return columns, list(itertools.islice(reader, query.offset, query.offset + query.limit))


@endpoint("GET", "/runs/{run}/predictions.csv", None, "text/csv")
def get_predictions_file(run: RunName, query: Queried[ViewQuery], service: Shared) -> Response:
    """Get the predictions file of a job."""
    path, _ = _find_predictions(service.watcher.snapshot().run(run), query)
    return FileResponse(path, media_type="text/csv", stat_result=path.stat())


def _find_predictions(run: ServedRun, query: ViewQuery) -> tuple[Path, dict[str, Any]]:
    try:
        folder = run._view_folder(query.task, query.fold, query.view)
        facts = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        path = folder / "predictions.csv"
        if not path.is_file():
            raise FileNotFoundError(path.name)
    except (OSError, DataError) as error:
        hint = "jobs lists all tasks and folds; a view is named like typos@0.1"
        raise ApiError(404, "there are no such predictions", hint) from error
    except ValueError as error:
        raise ApiError(422, "metadata.json is not JSON", "karat rescore shows more") from error
    facts = facts if isinstance(facts, dict) else {}
    return path, {name: facts.get(name) for name in ("answers", "truths", "classes")}


@endpoint("GET", "/scores", answer_list("Scores", Score), "text/csv")
def get_scores(request: Request, query: Queried[ScoresQuery], service: Shared) -> Response:
    """Get the tidy table of scores."""
    shape = query.format or accepted_format(request.headers.get("accept", ""), "json", "csv")
    snapshot = service.watcher.snapshot()
    table = service.cached(("scores", snapshot.version), snapshot.scores)
    columns = ["run", *SCORE_COLUMNS]
    table = table if len(table) else pd.DataFrame(columns=columns)
    for name in ("run", "model", "task", "metric"):
        if wanted := getattr(query, name):
            table = table[table[name].isin(wanted)]
    for name in ("fold", "corruption", "epoch"):
        if (value := getattr(query, name)) is not None:
            table = table[table[name] == value]
    total = len(table)
    limit = total if shape == "csv" and "limit" not in query.model_fields_set else query.limit
    rows = table.iloc[query.offset : query.offset + limit].loc[:, columns]
    if shape == "csv":
        text = rows.to_csv(index=False, lineterminator="\n").encode("utf-8", "replace")
        return Response(text, headers={"x-total-count": str(total)}, media_type="text/csv")
    items = rows.astype(object).where(rows.notna(), None).to_dict(orient="records")
    return Json({"total": total, "offset": query.offset, "items": items})


def accepted_format(accept: str, *formats: str) -> str:
    """Return the format that an Accept header prefers; the first one without a preference.

    >>> accepted_format("text/csv;q=0.9, */*;q=0.1", "json", "csv")
    'csv'
    """
    quality = dict.fromkeys(formats, 0.0 if accept else 1.0)
    # from general to specific: a specific range has precedence
    for media_range in sorted(accept.lower().split(","), key=lambda text: -text.count("*")):
        name, *options = (word.strip() for word in media_range.split(";"))
        text = next((word[2:] for word in options if word.startswith("q=")), "1")
        number = float(text) if re.fullmatch(r"[01](\.\d{0,3})?", text) else 1.0
        quality |= {kind: number for kind in formats if fnmatchcase(MEDIA_TYPES[kind], name)}
    best = max(formats, key=lambda kind: quality[kind])
    if not quality[best]:
        types = ", ".join(MEDIA_TYPES[kind] for kind in formats)
        raise ApiError(406, "this format is not available", f"Accept: {types}")
    return best


@endpoint("GET", "/board", Board, "text/csv", "text/markdown")
def get_board(request: Request, query: Queried[BoardQuery], service: Shared) -> Response:
    """Get the leaderboard."""
    accept = request.headers.get("accept", "")
    shape = query.format or accepted_format(accept, "json", "csv", "markdown")
    snapshot = service.watcher.snapshot()
    key = ("board", snapshot.version, query.model_dump_json(exclude={"format"}))
    table = service.cached(key, lambda: _leaderboard(snapshot, query))
    if shape == "json":
        rows = table.reset_index().astype(object).to_dict(orient="records")
        names = ("tasks", "metrics", "higher_is_better", "missing", "few", "seeds", "by")
        facts = {name: table.attrs.get(name) for name in (*names, "normalize")}
        facts["separation"] = {
            name: board["separation"] for name, board in table.attrs["boards"].items()
        } or table.attrs["separation"]
        return Json({"total": len(rows), "items": rows, **facts})
    from karat.reporting.formats import render

    text = render(table, shape).encode("utf-8", "replace")
    return Response(text, media_type=MEDIA_TYPES[shape])


def _leaderboard(snapshot: Snapshot, query: BoardQuery) -> pd.DataFrame:
    from karat.analysis.leaderboard import leaderboard
    from karat.reporting.terminal import metric_by_task

    options = query.model_dump(include={"by", "missing", "normalize", "sort", "pool"})
    return leaderboard(
        _selected_runs(snapshot, query),
        metrics=metric_by_task(query.metric),
        columns=query.columns or None,
        **options,
    )


def _selected_runs(snapshot: Snapshot, query: RunsQuery) -> list[ServedRun]:
    if not snapshot.runs:
        raise ApiError(409, "there is no run here yet", "karat run creates one")
    return [snapshot.run(name) for name in query.run] or list(snapshot.runs.values())


@endpoint("GET", "/compare", Compared)
def get_comparison(query: Queried[CompareQuery], service: Shared) -> Response:
    """Compare two models on the tasks and folds of both."""
    snapshot = service.watcher.snapshot()
    key = ("compare", snapshot.version, query.model_dump_json())
    return Json(service.cached(key, lambda: _comparison(_selected_runs(snapshot, query), query)))


def _comparison(runs: list[ServedRun], query: CompareQuery) -> dict[str, Any]:
    from karat.analysis.comparison import compare
    from karat.results.load import named_runs

    # a name is one of a model or of a run, never a path
    sources: dict[str, Any] = {run.id: run for run in runs}
    sources |= {name: name for _, name, _ in named_runs(runs, query.pool)}
    for name in (query.a, query.b):
        if name not in sources:
            hint = did_you_mean(name[:200], sources).strip() or "see /api/v1/board"
            raise ApiError(404, f'there is no model "{name[:200]}"', hint)
    a, b = sources[query.a], sources[query.b]
    if a is b or a == b:
        raise ApiError(422, "a and b are the same model", "name two models of the leaderboard")
    options = query.model_dump(include={"metric", "on", "pool"})
    return dict(compare(runs, a, b, **options).to_dict())


@endpoint("GET", "/bundle", LiveBundle)
def get_bundle(service: Shared) -> Response:
    """Get all data of the live page, and the progress."""
    tag, body = service.bundles.live(service.watcher.snapshot())
    return Response(body, headers={"etag": f'"{tag}"'}, media_type="application/json")


@endpoint("GET", "/progress", Progress)
def get_progress(service: Shared) -> Response:
    """Get the progress of all runs, and the running jobs."""
    return Json(service.watcher.snapshot().progress)


@endpoint("GET", "/events", None, responses=EVENT_RESPONSES)
async def follow_events(
    request: Request,
    query: Queried[EventsQuery],
    service: Shared,
    last_event_id: Annotated[Text, Header(description="The id of the last event received.")] = "",
) -> Response:
    """Follow the progress of all runs, or of one evaluation, as server-sent events."""
    headers = {**NO_STORE, "x-accel-buffering": "no"}
    client = client_of(request.scope)
    if query.evaluation:
        service.evaluations.get(query.evaluation)
        event = await run_in_threadpool(service.look, query.evaluation)
        if event.last and event.id == last_event_id:
            return Response(None, 204, headers)  # browsers do not connect again
    service.events.check(client)
    if request.scope.get("karat.head"):
        return Response(None, 200, headers, EventStream.media_type)
    return EventStream(
        service.events.follow(query.evaluation or "", client, last_event_id), headers=headers
    )


@endpoint("GET", "/names", answer("Names", {list[str]: " ".join(NAMES)}))
def list_names(service: Shared) -> Response:
    """List the names that can be evaluated."""
    return Json({kind: service.names.list(kind) for kind in NAMES})


@endpoint("GET", "/tasks", answer_list("Tasks", str, {list[str]: "models"}))
def list_tasks(query: Queried[SuiteQuery], service: Shared) -> Response:
    """List the tasks of a suite, and the models that it evaluates by default."""
    suite = service.names.suite(query.suite)
    tasks = [task.name for task in suite]
    return Json({"total": len(tasks), "items": tasks, "models": list(suite.models)})


@endpoint("GET", "/vectors", answer_list("VectorFiles", VectorFile))
def list_vectors(service: Shared) -> Response:
    """List uploaded vector files."""
    vectors = service.uploads.list_vectors()
    return Json({"total": len(vectors), "items": vectors})


@endpoint("GET", "/evaluations", answer_list("Evaluations", EvaluationState))
def list_evaluations(query: Queried[Paging], service: Shared) -> Response:
    """List evaluations, newest first."""
    page = query.page(service.evaluations.all())
    return Json({**page, "items": [service.describe(evaluation) for evaluation in page["items"]]})


@endpoint("GET", "/evaluations/{id}", EvaluationState)
def get_evaluation(id: EvaluationName, service: Shared) -> Response:
    """Get an evaluation."""
    return Json(service.describe(service.evaluations.get(id)))


@endpoint("GET", "/geval", GevalOptions)
def list_geval_options(service: Shared) -> Response:
    """List GEval's tasks, formats, measures and gold standards on this server."""
    return Json(service.evaluations.geval.options())


@endpoint("GET", "/geval/results", answer_list("GevalResults", GevalSummary))
def list_geval_results(query: Queried[Paging], service: Shared) -> Response:
    """List the result folders of GEval evaluations, newest first."""
    return Json(query.page(service.evaluations.geval.results()))


@endpoint("GET", "/geval/results/{result}", GevalResult)
def get_geval_result(result: ResultName, service: Shared) -> Response:
    """Get the result files of a GEval evaluation as JSON, with the comparison."""
    return Json(service.evaluations.geval.result(result))


@endpoint("GET", "/geval/results/{result}/files.zip", None, "application/zip")
def get_geval_files(result: ResultName, service: Shared) -> Response:
    """Get the result files of a GEval evaluation as a zip."""
    packed = service.evaluations.geval.archive(result)
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(result)}.zip"}
    return Response(packed, 200, headers, "application/zip")


@endpoint("GET", "/geval/runs", answer_list("GevalRuns", GevalRun))
def list_geval_runs(query: Queried[Paging], service: Shared) -> Response:
    """List the GEval runs whose scores are stored, oldest first."""
    return Json(query.page(service.evaluations.geval.runs()))


@endpoint("GET", "/geval/comparison", GevalComparison)
def get_geval_comparison(query: Queried[GevalComparisonQuery], service: Shared) -> Response:
    """Compare a GEval run with earlier ones: all scores, and its ranks."""
    return Json(service.evaluations.geval.comparison(query.run, query.compare_with))


# -- endpoints that write -------------------------------------------------------------------


@contextlib.asynccontextmanager
async def received_file(request: Request, service: Service) -> AsyncIterator[Path]:
    """Write the body of a request to a draft, which is deleted at the end."""
    if "content-type" not in request.headers:
        raise ApiError(415, "the body has no type", "Content-Type: application/octet-stream")
    try:
        length = request.headers.get("content-length")
        draft = await service.uploads.receive(request.stream(), length)
    except ClientDisconnect as error:
        raise ApiError(400, "the body ended early") from error
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@endpoint("POST", "/vectors", VectorFile, "application/octet-stream", status=201)
async def add_vectors(request: Request, query: Queried[NameQuery], service: Shared) -> Response:
    """Upload a vector file."""
    async with received_file(request, service) as draft:
        stored = await run_in_threadpool(service.uploads.add_vectors, draft, query.name)
    return Json(stored, 201, NO_STORE)


@endpoint("DELETE", "/vectors/{name}", answer("Removed", {str: "removed"}), status=200)
def remove_vectors(name: FileName, service: Shared) -> Response:
    """Delete a vector file."""
    service.uploads.find_vectors(name).unlink(missing_ok=True)
    return Json({"removed": name}, headers=NO_STORE)


def _check_room(service: Service) -> None:
    """Refuse a run folder if many others wait to be checked, one at a time."""
    if service.unpacking.waiting >= MAX_WAITING_RUNS:
        message = "too many uploaded runs wait to be checked"
        raise ApiError(503, message, "send it again later", {"retry-after": "30"})


@endpoint("POST", "/runs", answer("AddedRun", {str: "id"}), "application/octet-stream", status=201)
async def add_run(request: Request, query: Queried[NameQuery], service: Shared) -> Response:
    """Upload a run folder as zip, tar or tar.gz."""
    _check_room(service)  # before the body is received
    async with received_file(request, service) as draft:
        _check_room(service)
        leave = await service.unpacking.enter("")
        try:
            await run_in_threadpool(service.uploads.add_run, draft, query.name)
        finally:
            leave()
    await run_in_threadpool(service.watcher.rescan)
    return Json({"id": query.name}, 201, {**NO_STORE, "location": f"{BASE}/runs/{query.name}"})


@endpoint("POST", "/evaluations", EvaluationState, status=202)
def add_evaluation(order: Order, service: Shared) -> Response:
    """Start an evaluation."""
    service.names.check(order, service.uploads)
    return _accepted(service, service.evaluations.submit(order))


@endpoint("POST", "/geval", EvaluationState, status=202)
def add_geval_evaluation(order: GevalOrder, service: Shared) -> Response:
    """Start an evaluation with GEval's parameters."""
    service.uploads.find_vectors(order.vectors, field="vectors")
    service.evaluations.geval.check(order)
    return _accepted(service, service.evaluations.submit(order))


@endpoint("POST", "/evaluations/{id}/cancel", EvaluationState, status=202)
def cancel_evaluation(id: EvaluationName, service: Shared) -> Response:
    """Cancel an evaluation; finished jobs are kept."""
    return _accepted(service, service.evaluations.cancel(id))


@endpoint("POST", "/evaluations/{id}/resume", EvaluationState, status=202)
def resume_evaluation(id: EvaluationName, service: Shared) -> Response:
    """Queue an evaluation again to finish it."""
    return _accepted(service, service.evaluations.resume(id))


def _accepted(service: Service, evaluation: Evaluation) -> Response:
    headers = {**NO_STORE, "location": f"{BASE}/evaluations/{evaluation.id}"}
    return Json(service.describe(evaluation), 202, headers)


# -- pages ----------------------------------------------------------------------------------

pages = APIRouter(route_class=ConditionalRoute, include_in_schema=False)


@pages.get("/")
@pages.get("/report.html")
def report_page(request: Request, service: Shared) -> Response:
    """Return the live page, or the report as a file to download."""
    live = request.url.path == "/"
    try:
        tag, body, headers = service.bundles.page(service.watcher.snapshot(), live=live)
    except ApiError as error:
        return HTMLResponse(WAIT_PAGE, error.status, {**NO_STORE, "refresh": "3", **error.headers})
    return HTMLResponse(body, headers={"etag": f'"{tag}"', **headers})


@pages.get("/favicon.ico")
def icon() -> Response:
    """Return the icon."""
    return Response(ICON, 200, {"cache-control": "max-age=86400"}, "image/svg+xml")


@pages.get("/upload")
@pages.get("/evaluate")
@pages.get("/geval")
def form(request: Request, service: Shared) -> Response:
    """Return the page for uploads or for evaluations."""
    screen = make_form(request.url.path.removeprefix("/"), service.settings)
    return HTMLResponse(screen.body, headers=screen.headers)


@pages.get("/docs")
def docs_page(request: Request, service: Shared) -> Response:
    """Return the documentation of the API, with examples for the address that was asked for.

    FastAPI's own pages load scripts from other servers, which the content security policy
    forbids and which do not work offline.
    """
    evaluations = [evaluation.id for evaluation in service.evaluations.all()]
    vectors = [vector_file["name"] for vector_file in service.uploads.list_vectors()]
    values = example_values(service.watcher.snapshot(), evaluations, vectors)
    values = values.with_geval(service.evaluations.geval)
    base = f"http://{request.headers['host']}"
    screen = make_api_page(request.app.openapi(), values, base)
    return HTMLResponse(screen.body, headers=screen.headers)


# -- errors and the application -------------------------------------------------------------


async def handle_error(request: Request, error: Exception) -> Response:
    """Return any exception as the JSON of an error, FastAPI's lists of mistakes too."""
    if isinstance(error, RequestValidationError):
        location, *names = error.errors()[0]["loc"]
        kind = {"query": "parameter", "path": "path"}.get(location, "body")
        where = f'{kind} "{".".join(map(str, names))[:100]}"' if names else kind
        hint = BODIES.get(request.url.path, "see /docs") if kind == "body" else "see /docs"
        message = f"invalid {where}: {error.errors()[0]['msg'][:200]}"
        error = ApiError(400, message, hint, field=str(names[0])[:100] if names else "")
    elif isinstance(error, StarletteHTTPException):
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers = {"allow": ", ".join(_allowed_methods(request))}
        hint = "see /docs" if error.status_code in (404, 405) else ""
        error = ApiError(error.status_code, error.detail.lower(), hint, headers)
    elif isinstance(error, KaratError):
        folder = str(request.app.state.service.settings.folder)
        error = ApiError(422, str(error).replace(folder, "DIR")[:2000])
    elif not isinstance(error, ApiError):
        error = internal_error()
    return error_response(error)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of a path; Starlette names those of the first matching route only."""
    allowed = [
        method
        for method in ("GET", "POST", "DELETE")
        for route in request.app.router.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
    ]
    return ["HEAD", *allowed] if "GET" in allowed else allowed


def make_app(settings: ServerSettings) -> Guard:
    """Return the ASGI application; its evaluations run during its lifespan."""
    service = Service(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if settings.token is not None:
            await asyncio.to_thread(service.uploads.delete_old_drafts)
            await asyncio.to_thread(service.evaluations.start)
        yield
        await asyncio.to_thread(service.evaluations.stop)

    app = FastAPI(
        title="Karat",
        version=__version__,
        description=ABOUT,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/"}],
        openapi_url=f"{BASE}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (ApiError, RequestValidationError, StarletteHTTPException, KaratError, Exception),
            handle_error,
        ),
    )
    app.state.service = service
    app.include_router(api)
    app.include_router(pages)
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=6)
    return Guard(app, service)
