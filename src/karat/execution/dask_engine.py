"""Jobs on a Dask cluster, with the same results as on this machine.

Files that a job needs are sent to each worker once, by content hash: a worker that lacks a file
answers Lacking, receives the file in pieces and gets the job again. Results are sent back, so
workers need no disk shared with this process.
"""

from __future__ import annotations

import contextlib
import logging
import platform
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from karat.engines.cargo import Cargo, code_goes_along
from karat.engines.depot import Lacking, close, lacking, perform, receive
from karat.engines.depot import versions as pickle_versions
from karat.errors import DefinitionError, KaratError, MissingExtra
from karat.execute import WorkerDied, save
from karat.job import Job
from karat.shelf import Shelf

T = TypeVar("T")

#: minimum number of submitted jobs; with many workers, twice their number of threads
WINDOW = 100
#: maximum number of answers in one message
BATCH = 20
#: bytes of a file in one message
PIECE = 2**23
#: a job fails after this many attempts to send its files
TRIES = 20
#: number of workers that may die while running a job, on a cluster that Karat started
DEATHS = 2
#: seconds to wait for a scheduler and for the first worker
PATIENCE = 30.0
#: libraries whose versions must match, because pickles or the last bits of scores may differ
LIBRARIES = ("karat", "cloudpickle", "numpy", "pandas", "scikit-learn", "scipy")


log = logging.getLogger("karat.engines.dask")


class EngineLost(KaratError):
    """The connection to the scheduler was lost."""

    def __init__(self) -> None:
        super().__init__("lost the connection to the scheduler")


def check_cluster(scheduler: str | None) -> None:
    """Raise an error if there is no such scheduler, or if library versions differ."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingExtra("distributed", "dask") from None
    if scheduler is not None:
        with _connected(scheduler, 0) as client:
            _check_versions(client)


def execute_on_dask(
    jobs: Sequence[Job], work: str, shelf: Shelf, scheduler: str | None = None, workers: int = 1
) -> Generator[tuple[Job, Any]]:
    """Yield each job with the result of ``work(job, shelf)``, in the order in which they finish.

    Without a scheduler a cluster of ``workers`` processes is started on this machine. The result
    of a job that could not finish is a WorkerDied.
    """
    if not jobs:
        return
    with code_goes_along():
        save(shelf)
    with _connected(scheduler, workers) as client:
        submitter = _Submitter(client, Cargo(shelf, work))
        try:
            yield from submitter.run(jobs)
        finally:
            submitter.close()


# -- the cluster ------------------------------------------------------------------------------


@contextlib.contextmanager
def _connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Connect to the cluster at an address or in a scheduler file, or to a new local cluster."""
    from distributed import Client

    with _quiet(), contextlib.ExitStack() as stack:
        where = scheduler or "127.0.0.1"
        try:
            key = "scheduler_file" if Path(where).is_file() else "address"
            cluster = scheduler or stack.enter_context(own_cluster(workers))
            client = Client(**{key: cluster}, timeout=PATIENCE, set_as_default=False)
            stack.callback(client.close, timeout=1)
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise DefinitionError(
                f"the Dask scheduler at {where} has no workers; start one: dask worker {where}"
            ) from error
        except (OSError, ValueError) as error:
            raise DefinitionError(
                f"no Dask scheduler at {where} ({error}); start one: dask scheduler"
            ) from error
        log.info("connected to the Dask scheduler at %s", where)
        yield client


def own_cluster(workers: int) -> Any:
    """Return a cluster of worker processes that only this machine can reach."""
    from distributed import Scheduler, SpecCluster
    from distributed.deploy.subprocess import SubprocessWorker

    here = {"host": "127.0.0.1"}
    # Karat enforces the limits of each job; Dask's memory limit would end all jobs of a worker
    about = {**here, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    worker = {"cls": SubprocessWorker, "options": {"worker_kwargs": about}}
    web = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {**here, **web, "port": 0, "allowed_failures": DEATHS}
    return SpecCluster(
        workers={number: worker for number in range(max(1, workers))},
        scheduler={"cls": Scheduler, "options": options},
        silence_logs=logging.CRITICAL,
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log messages; Karat reports failures of the cluster itself."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _installed() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _check_versions(client: Any) -> None:
    """Raise an error if the cluster's versions of Python and libraries differ from ours."""
    messages = []
    python = client.run(platform.python_version)
    ours = pickle_versions()[1]
    for place, theirs in python.items():
        if ".".join(theirs.split(".")[:2]) != ours:
            messages.append(f"Dask worker {place} has Python {theirs}, this process {ours}")
    for name, here in _installed().items():
        for place, theirs in client.run(version, name, on_error="return").items():
            if theirs != here:
                found = f"has {name} {theirs}" if isinstance(theirs, str) else f"has no {name}"
                messages.append(f"Dask worker {place} {found}, this process {here}")
    try:
        client.run_on_scheduler(version, "karat")
    except PackageNotFoundError:
        messages.append("the Dask scheduler has no karat")
    if messages:
        shown = messages[:5] + [f"and {len(messages) - 5} more"] * (len(messages) > 5)
        raise DefinitionError(*shown, "install the same versions on the cluster and here.")


# -- submitted jobs ------------------------------------------------------------------------------


@dataclass
class _Sent:
    """A submitted job, its future, and how often its files could not be sent."""

    job: Job
    future: Any
    tries: int


class _Submitter:
    """Submits jobs to a cluster, a bounded number at a time, and yields each result once."""

    def __init__(self, client: Any, cargo: Cargo) -> None:
        self.client = client
        self.cargo = cargo
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.out: dict[str, _Sent] = {}
        self.failure = ""
        self._cluster = _Cluster(client)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Yield every job with its result."""
        waiting = deque(jobs)
        self._fill(waiting)
        while self.out:
            finished = self._finished()
            self._fill(waiting)
            for sent, answer in finished:
                if not isinstance(answer, Lacking):
                    yield sent.job, answer
                elif sent.tries >= TRIES:
                    yield sent.job, WorkerDied(f"cannot send the job's files: {self.failure}", "")
                else:
                    failed = not self._send_files(answer)
                    self._send(sent.job, sent.tries + failed)

    def _fill(self, waiting: deque[Job]) -> None:
        while waiting and len(self.out) < max(WINDOW, 2 * self._cluster.threads):
            self._send(waiting.popleft())

    def _finished(self) -> list[tuple[_Sent, Any]]:
        """Wait for a finished job; return it and other finished ones, gathered in one message."""
        finished = [self.out.pop(self._next().key)]
        while len(finished) < BATCH and not self.done.empty():
            finished.append(self.out.pop(self.done.get().key))
        fine = [sent.future for sent in finished if sent.future.status == "finished"]
        answers: dict[str, Any] = {}
        try:
            values = self._call(self.client.gather, fine)
            answers = dict(zip((future.key for future in fine), values, strict=True))
        except EngineLost:
            raise
        except Exception:  # one was lost meanwhile: fetch them one by one
            pass
        found = []
        for sent in finished:
            key = sent.future.key
            found.append((sent, answers[key] if key in answers else self._answer(sent)))
            sent.future.release()
        return found

    def _send(self, job: Job, tries: int = 0) -> None:
        try:
            future = self.client.submit(
                perform,
                self.cargo.order(job),
                key=f"karat-{uuid.uuid4().hex}",
                pure=False,
                resources=self._cluster.share(job),
            )
        except (OSError, RuntimeError) as error:  # raised by a client without a scheduler
            if self.client.status == "running":
                raise
            raise EngineLost from error
        self.out[future.key] = _Sent(job, future, tries)
        future.add_done_callback(self.done.put)

    def _next(self) -> Any:
        while True:
            try:
                return self.done.get(timeout=1.0)
            except queue.Empty:
                self._check()

    def _check(self) -> None:
        lost = any(sent.future.status == "cancelled" for sent in self.out.values())
        if lost or self.client.status != "running":
            raise EngineLost

    def _call(self, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call the client in a thread: it may never return if the scheduler disappears."""
        answers: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()

        def call() -> None:
            answer: Future[T] = Future()
            try:
                answer.set_result(method(*arguments, **options))
            except Exception as error:
                answer.set_exception(error)
            answers.put(answer)

        threading.Thread(target=call, daemon=True).start()
        while True:
            try:
                return answers.get(timeout=1.0).result()
            except queue.Empty:
                self._check()

    def _answer(self, sent: _Sent) -> Any:
        from distributed import CancelledError, KilledWorker

        future = sent.future
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                times = error.allowed_failures + 1
                cause = f"{times} Dask workers died while running it, last {error.last_worker}"
                return WorkerDied(cause, str(error))
            if isinstance(error, KaratError):
                raise error
            raise DefinitionError(
                f"a Dask worker cannot run jobs ({type(error).__name__}: {error}); install the "
                f"same karat, Python and libraries as in this process."
            )
        with contextlib.suppress(OSError, CancelledError):
            if future.status == "finished":
                return self._call(future.result)
        raise EngineLost

    def _send_files(self, answer: Lacking) -> bool:
        """Send the missing files to a worker and return whether that succeeded."""
        worker = answer.worker
        try:
            for parcel in self._run_on(lacking, answer.parcels, worker=worker):
                with Path(parcel.path).open("rb") as file:
                    for start in range(0, max(parcel.size, 1), PIECE):
                        piece = file.read(PIECE)
                        session = self.cargo.session
                        self._run_on(receive, parcel, start, piece, session, worker=worker)
        except (OSError, LookupError) as error:
            self.failure = f"{worker}: {type(error).__name__}: {error}"
            log.warning("cannot send files to %s", self.failure)
            time.sleep(0.1)
            return False
        return True

    def _run_on(self, function: Any, *arguments: Any, worker: str) -> Any:
        return self._call(self.client.run, function, *arguments, workers=[worker])[worker]

    def close(self) -> None:
        """Cancel the remaining jobs and end their processes."""
        if self.client.status != "running":
            return
        with contextlib.suppress(Exception):  # the cluster may be shutting down
            self.client.cancel([sent.future for sent in self.out.values()])
            self.client.run(close, self.cargo.session, on_error="ignore")


class _Cluster:
    """The threads and declared resources of the workers, refreshed every two seconds."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._seen: Mapping[str, Any] = {}
        self._when = float("-inf")

    def _workers(self) -> list[Mapping[str, Any]]:
        if time.monotonic() - self._when > 2.0:
            with contextlib.suppress(OSError, AttributeError):  # submitting reports a lost client
                self._seen = self.client.scheduler_info(n_workers=-1).get("workers", {})
            self._when = time.monotonic()
        return list(self._seen.values())

    @property
    def threads(self) -> int:
        """Number of jobs that can run at once."""
        return sum(int(worker["nthreads"]) for worker in self._workers())

    def share(self, job: Job) -> dict[str, float] | None:
        """Return the declared resources that a job requires.

        At most what the largest worker has, because otherwise the job would never run.
        """
        limits = job.limits
        if not limits:
            return None
        most: dict[str, float] = {}
        for worker in self._workers():
            for name, amount in worker["resources"].items():
                most[name] = max(amount, most.get(name, 0.0))
        memory = None if limits.memory_mb is None else limits.memory_mb * 2**20
        wanted = {"cores": limits.cores, "memory": memory, "gpu": limits.gpus}
        asked = {name: wanted.get(name.lower()) for name in most}
        return {name: min(n, most[name]) for name, n in asked.items() if n is not None} or None
