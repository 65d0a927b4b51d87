"""Endpoints: the API as one table, from which routes, checks and documentation are made."""

from __future__ import annotations

from typing import Any

from karat.serve import boards, reads, writes
from karat.serve.asking import Endpoint, Parameter, paging
from karat.serve.replies import CSV, TEXT
from karat.serve.schemas import TEXT as WORD
from karat.serve.schemas import many, named, page, record

BASE = "/api/v1"
_STRING = {"type": "string"}
_NAMED = Parameter("name", "A plain name: letters, digits and _@+,-.", needed=True)
_TASK = Parameter("task", "The task's name.", needed=True)
_FOLD = Parameter("fold", "The fold, counted from 0.", "number", needed=True)
_VIEW = Parameter(
    "view", 'A view such as typos@0.1; "clean" is the fold as it is.', default="clean"
)
_RUNS = Parameter("run", "Only these runs, by their folder. Repeatable.", many=True)
_SHAPE = Parameter("format", "Instead of the Accept header.", choices=("json", "csv"))
_BOARD = (
    Parameter("by", "Rank within each of these.", choices=("task", "kind", "dataset")),
    Parameter("missing", "What a missing score counts as.", default="worst"),
    Parameter("normalize", 'Add scores from 0 to 1: "range" or "baseline:MODEL".'),
    Parameter("sort", "A column, the better first."),
    Parameter("metric", "TASK=METRIC: another metric of a task. Repeatable.", many=True),
    Parameter("columns", "Further columns, as karat leaderboard has them. Repeatable.", many=True),
    _RUNS,
    Parameter("format", "Instead of the Accept header.", choices=("json", "csv", "markdown")),
)
_SCORES = (
    _RUNS,
    *(
        Parameter(name, f"Only this {name}. Repeatable.", many=True)
        for name in ("model", "task", "metric")
    ),
    Parameter("fold", "Only this fold.", "number"),
    Parameter("corruption", "Only this corruption; empty: clean data."),
    Parameter("epoch", "Only this epoch; -1: final scores.", "number", least=-1),
    *paging(),
    _SHAPE,
)


def _tables(schema: dict[str, Any], *others: str) -> dict[str, Any]:
    return {"application/json": schema, **{kind.partition(";")[0]: _STRING for kind in others}}


READING = (
    Endpoint(
        "GET",
        "/runs",
        reads.runs,
        "All runs and how far they have come",
        page(named("Run"), left_out=many(record({"run": WORD, "why": WORD}))),
        paging(),
    ),
    Endpoint(
        *("GET", "/runs/{run}", reads.run, "One run: what was planned, with what, on what"),
        {"allOf": [named("Run"), record({"about": {"type": "object"}})]},
        refuses=(404,),
    ),
    Endpoint(
        *("GET", "/runs/{run}/jobs", reads.jobs, "The records of finished jobs"),
        page(named("Job")),
        (
            Parameter("task", "Only this task."),
            Parameter("fold", "Only this fold.", "number"),
            Parameter("status", "Only jobs that ended so: ok, failed, timeout, memory, declined."),
            *paging(),
        ),
        refuses=(404,),
    ),
    Endpoint(
        *("GET", "/runs/{run}/log", reads.log, "What a job printed, and its traceback"),
        {TEXT.partition(";")[0]: _STRING},
        (_TASK, _FOLD),
        refuses=(404,),
    ),
    Endpoint(
        *("GET", "/runs/{run}/predictions", reads.predictions, "Answers beside the truth, paged"),
        named("Predictions"),
        (_TASK, _FOLD, _VIEW, *paging()),
        refuses=(404, 422),
    ),
    Endpoint(
        "GET",
        "/runs/{run}/predictions.csv",
        reads.predictions_file,
        "The predictions file, or a range of its bytes",
        {CSV.partition(";")[0]: _STRING},
        (_TASK, _FOLD, _VIEW),
        refuses=(404, 422),
    ),
    Endpoint(
        *("GET", "/scores", reads.scores, "The tidy table: one row per number"),
        _tables(page(named("Score")), CSV),
        _SCORES,
        refuses=(406,),
    ),
    Endpoint(
        *("GET", "/board", boards.board, "The leaderboard"),
        _tables(named("Board"), CSV, "text/markdown"),
        _BOARD,
        refuses=(404, 406, 409, 422),
    ),
    Endpoint(
        *("GET", "/compare", boards.comparison, "Two models, paired by task and fold"),
        named("Comparison"),
        (
            Parameter("a", "A model, as the board calls it.", needed=True),
            Parameter("b", "Another one.", needed=True),
            Parameter("metric", "One metric instead of each task's first."),
            Parameter(
                "on",
                "What is compared: scores of folds, of the questions both know, or predictions.",
                choices=("folds", "common", "rows"),
                default="folds",
            ),
            _RUNS,
        ),
        refuses=(404, 409, 422),
    ),
    Endpoint(
        *("GET", "/bundle", reads.bundle, "All that the live page shows, and the progress"),
        named("Bundle"),
    ),
    Endpoint(
        *("GET", "/progress", reads.progress, "How far all runs have come, what runs now"),
        named("Progress"),
    ),
    Endpoint(
        *("GET", "/names", writes.names, "The names that can be evaluated here"),
        record({kind: many(WORD) for kind in ("models", "suites", "tasks", "constraints")}),
    ),
    Endpoint(
        *("GET", "/vectors", writes.list_vectors, "Uploaded vector files"),
        page(named("Vectors")),
    ),
    Endpoint(
        *("GET", "/evaluations", writes.list_evaluations, "Evaluations, the newest first"),
        page(named("Evaluation")),
        paging(50),
    ),
    Endpoint(
        *("GET", "/evaluations/{id}", writes.get_evaluation, "One evaluation"),
        named("Evaluation"),
        refuses=(404,),
    ),
)
WRITING = (
    Endpoint(
        *("POST", "/vectors", writes.add_vectors, "Upload a vector file"),
        named("Vectors"),
        (_NAMED,),
        takes="bytes",
        token=True,
        status=201,
        refuses=(408, 409, 413, 507),
    ),
    Endpoint(
        *("DELETE", "/vectors/{name}", writes.remove_vectors, "Forget a vector file"),
        record({"removed": WORD}),
        token=True,
        refuses=(404,),
    ),
    Endpoint(
        *("POST", "/runs", writes.add_run, "Upload a run folder as zip, tar or tar.gz"),
        record({"id": WORD}),
        (_NAMED,),
        takes="bytes",
        token=True,
        status=201,
        refuses=(408, 409, 413, 422, 507),
    ),
    Endpoint(
        *("POST", "/evaluations", writes.add_evaluation, "Queue an evaluation"),
        named("Evaluation"),
        takes="Order",
        token=True,
        status=202,
        refuses=(404, 408, 413, 422, 429),
    ),
    Endpoint(
        "POST",
        "/evaluations/{id}/cancel",
        writes.cancel_evaluation,
        "End an evaluation; what is finished is kept",
        named("Evaluation"),
        token=True,
        status=202,
        refuses=(404, 409),
    ),
    Endpoint(
        "POST",
        "/evaluations/{id}/resume",
        writes.resume_evaluation,
        "Queue an evaluation again, to finish what is left",
        named("Evaluation"),
        token=True,
        status=202,
        refuses=(404, 409, 429),
    ),
)
ENDPOINTS = (*READING, *WRITING)
