"""What a worker does with a job: it computes its vectors, runs it and writes its outcome."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from karat.core.services import use_services
from karat.errors import (
    ContractError,
    KaratError,
)
from karat.execution.embedding_cache import VectorStage
from karat.execution.job import Job, Outcome, run_job, services_of
from karat.execution.job_failure import POSTPONED
from karat.execution.object_store import ObjectStore
from karat.execution.progress import Progress
from karat.execution.workers import Event
from karat.results.run import Run

#: the function of a worker that only computes the vectors of a job
EMBED = "karat.execution.runner:embed_in_worker"


def work(job: Job, store: ObjectStore) -> dict[str, Any] | Outcome:
    """Run a job, write its outcome into its run folder and return its record.

    If the disk is full, the outcome is returned: writing it ends the run in the parent process,
    and the job does not count as failed.
    """
    Run(Path(job.folder)).mark_running(store.get(job.task).name, job.fold)
    outcome = perform(job, store)
    try:
        return store_outcome(job, outcome)
    except KaratError:
        return outcome


def perform(job: Job, store: ObjectStore) -> Outcome:
    """Run a job and return its outcome, without writing into the run folder."""
    if job.stage is not None:
        folder, cached = job.stage
        stage = store.get_or_make(
            "stage", lambda: VectorStage(store, Progress(), cached, Path(folder))
        )
        job = stage.embedded(job)
    return run_job(job, store)


def store_outcome(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Write the outcome of a job into its run folder and return its record.

    A postponed job is not recorded, so that ``resume`` runs it.
    """
    if outcome.record["status"] == POSTPONED:
        Run(Path(job.folder)).unmark_running(outcome.record)
        return outcome.record
    Run(Path(job.folder)).write(outcome.record, outcome.files, outcome.artifacts)
    return outcome.record


def embed_in_worker(job: Job, store: ObjectStore) -> dict[str, Any]:
    """Compute the vectors of a job in a worker; return the fields of jobs that use them."""
    assert job.stage is not None
    folder, cached = job.stage
    stage = VectorStage(store, ReportedProgress(store.get("report")), cached, Path(folder))
    with use_services(services_of(store)):
        return stage.fields(job)


class Unsendable:
    """Replaces, in worker processes, a model that cannot be pickled."""

    def fit(self, *_: object) -> NoReturn:
        """Raise the error that becomes the job's message."""
        raise ContractError(
            "the model cannot be pickled to send it to a worker process; run it without limits."
        )

    transform = predict = fit


class ReportedProgress(Progress):
    """Sends the events of an embedding from a worker to the process of the session."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.send = send

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Send the start of an embedding."""
        self.send(Event("embedding", (model, dataset, items)))

    def encoded(self, done: int, total: int) -> None:
        """Send the number of texts encoded so far."""
        self.send(Event("encoded", (done, total)))

    def cached(self, done: int, total: int) -> None:
        """Send how many vectors are from the cache."""
        self.send(Event("cached", (done, total)))

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Send the end of an embedding."""
        self.send(Event("embedded", (model, dataset, seconds)))
