"""Jobs on a Dask cluster: the same work, rows and bytes as on this machine.

A job is small plain data. What it needs goes to a worker by content hash, once: a worker that does
not have a file answers so, gets it in pieces and is asked again. What a job has made comes back, so
that workers need no disk in common with this process.
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

#: so many jobs at least are with the scheduler at a time, and twice as many as there are threads
WINDOW = 100
#: so many answers at most come in one message
BATCH = 20
#: bytes of a file that travel in one message
PIECE = 2**23
#: a job whose files could not be brought to a worker so often is given up
TRIES = 20
#: how many workers may die under a job before it is given up, on a cluster of our own
DEATHS = 2
#: seconds to wait for a scheduler, and for the first worker
PATIENCE = 30.0
#: libraries in which pickles, or the last bits of a score, may differ between versions
LIBRARIES = ("karat", "cloudpickle", "numpy", "pandas", "scikit-learn", "scipy")


class EngineLost(KaratError):
    """The scheduler is gone; what was finished is kept."""


def check_cluster(scheduler: str | None) -> None:
    """Raise an error if there is no such scheduler, or if its cluster is not like this process."""
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
    """Yield (job, what ``work(job, shelf)`` returned on a cluster) as the jobs finish.

    Without a scheduler a cluster of ``workers`` processes is started on this machine. A job that
    could not be run to its end yields a WorkerDied in its place.
    """
    if not jobs:
        return
    with code_goes_along():
        save(shelf)
    with _connected(scheduler, workers) as client:
        flight = _Flight(client, Cargo(shelf, work))
        try:
            yield from flight.run(jobs)
        finally:
            flight.close()


# -- the cluster ------------------------------------------------------------------------------


@contextlib.contextmanager
def _connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Give a client of the cluster at an address or in a scheduler file, or of one of our own."""
    from distributed import Client

    with _quiet(), contextlib.ExitStack() as stack:
        place = {} if scheduler is None else _place(scheduler)
        where = scheduler or "127.0.0.1"
        try:
            if not place:
                place = {"address": stack.enter_context(own_cluster(workers))}
            client = Client(**place, timeout=PATIENCE, set_as_default=False)
            stack.callback(client.close, timeout=1)
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise DefinitionError(
                f"the Dask scheduler at {where} has no worker; start one with: dask worker {where}"
            ) from error
        except (OSError, ValueError) as error:
            raise DefinitionError(
                f"no Dask scheduler answers at {where} ({error}); start one with: dask scheduler"
            ) from error
        yield client


def _place(scheduler: str) -> dict[str, str]:
    return {"scheduler_file" if Path(scheduler).is_file() else "address": scheduler}


def own_cluster(workers: int) -> Any:
    """Return a cluster that only this machine can reach, its workers plain processes."""
    from distributed import Scheduler, SpecCluster
    from distributed.deploy.subprocess import SubprocessWorker

    here = {"host": "127.0.0.1"}
    # limits are held by the processes of the jobs; Dask's own would end all jobs of a worker
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
    """Leave it to our own messages to tell what happens to a cluster."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def _installed() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _check_versions(client: Any) -> None:
    """Refuse a cluster that could not read what we send, or would answer other bits."""
    messages = []
    python = client.run(platform.python_version)
    ours = pickle_versions()[1]
    for place, theirs in python.items():
        if ".".join(theirs.split(".")[:2]) != ours:
            messages.append(f"the Dask worker {place} has Python {theirs}, this process {ours}")
    for name, here in _installed().items():
        for place, theirs in client.run(version, name, on_error="return").items():
            if theirs != here:
                found = f"has {name} {theirs}" if isinstance(theirs, str) else f"has no {name}"
                messages.append(f"the Dask worker {place} {found}, this process {here}")
    try:
        client.run_on_scheduler(version, "karat")
    except PackageNotFoundError:
        messages.append("the Dask scheduler has no karat")
    if messages:
        shown = messages[:5] + [f"and {len(messages) - 5} more"] * (len(messages) > 5)
        raise DefinitionError(*shown, "install the same versions on the cluster and here.")


# -- jobs on their way ---------------------------------------------------------------------------


@dataclass
class _Sent:
    """A job on its way: its future, and how often its files could not be brought to a worker."""

    job: Job
    future: Any
    tries: int


class _Flight:
    """Jobs on their way through a cluster, a bounded number at a time; each lands once."""

    def __init__(self, client: Any, cargo: Cargo) -> None:
        self.client = client
        self.cargo = cargo
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.out: dict[str, _Sent] = {}
        self.failure = ""
        self._cluster = _Cluster(client)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Yield every job with its answer, as they come."""
        waiting = deque(jobs)
        self._fill(waiting)
        while self.out:
            landed = self._land()
            self._fill(waiting)
            for sent, answer in landed:
                if not isinstance(answer, Lacking):
                    yield sent.job, answer
                elif sent.tries >= TRIES:
                    yield sent.job, WorkerDied(f"its data could not be sent: {self.failure}", "")
                else:
                    failed = not self._deliver(answer)
                    self._send(sent.job, sent.tries + failed)

    def _fill(self, waiting: deque[Job]) -> None:
        while waiting and len(self.out) < max(WINDOW, 2 * self._cluster.threads):
            self._send(waiting.popleft())

    def _land(self) -> list[tuple[_Sent, Any]]:
        """Wait for a job that is done, and take with it others that are, in one message."""
        landed = [self.out.pop(self._next().key)]
        while len(landed) < BATCH and not self.done.empty():
            landed.append(self.out.pop(self.done.get().key))
        fine = [sent.future for sent in landed if sent.future.status == "finished"]
        answers: dict[str, Any] = {}
        try:
            values = self._call(self.client.gather, fine)
            answers = dict(zip((future.key for future in fine), values, strict=True))
        except EngineLost:
            raise
        except Exception:  # one was lost since: they are asked for one by one
            pass
        found = []
        for sent in landed:
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
        except (OSError, RuntimeError) as error:  # what a client says that has lost its scheduler
            if self.client.status == "running":
                raise
            raise EngineLost("the scheduler is gone") from error
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
            raise EngineLost("the scheduler is gone")

    def _call(self, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call the client; if the scheduler goes meanwhile it may never return, but this does."""
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
                said = f"Dask workers died under it {times} times, the last {error.last_worker}"
                return WorkerDied(said, str(error))
            if isinstance(error, KaratError):
                raise error
            raise DefinitionError(
                f"a Dask worker cannot run jobs ({type(error).__name__}: {error}); it needs the "
                f"same karat, Python and libraries as this process."
            )
        with contextlib.suppress(OSError, CancelledError):
            if future.status == "finished":
                return self._call(future.result)
        raise EngineLost("the scheduler is gone")

    def _deliver(self, answer: Lacking) -> bool:
        """Bring files to a worker and return whether that went well."""
        worker = answer.worker
        try:
            for parcel in self._ask(lacking, answer.parcels, worker=worker):
                with Path(parcel.path).open("rb") as file:
                    for start in range(0, max(parcel.size, 1), PIECE):
                        piece = file.read(PIECE)
                        self._ask(receive, parcel, start, piece, self.cargo.session, worker=worker)
        except (OSError, LookupError) as error:
            self.failure = f"{worker}: {type(error).__name__}: {error}"
            time.sleep(0.1)
            return False
        return True

    def _ask(self, function: Any, *arguments: Any, worker: str) -> Any:
        return self._call(self.client.run, function, *arguments, workers=[worker])[worker]

    def close(self) -> None:
        """Cancel what is left and end the processes of its jobs."""
        if self.client.status != "running":
            return
        with contextlib.suppress(Exception):  # a cluster that is going down needs no order to
            self.client.cancel([sent.future for sent in self.out.values()])
            self.client.run(close, self.cargo.session, on_error="ignore")


class _Cluster:
    """What the workers have: threads, and the resources they declare; looked up now and then."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._seen: Mapping[str, Any] = {}
        self._when = float("-inf")

    def _workers(self) -> list[Mapping[str, Any]]:
        if time.monotonic() - self._when > 2.0:
            with contextlib.suppress(OSError, AttributeError):  # whoever sends next meets the loss
                self._seen = self.client.scheduler_info(n_workers=-1).get("workers", {})
            self._when = time.monotonic()
        return list(self._seen.values())

    @property
    def threads(self) -> int:
        """How many jobs can run at once."""
        return sum(int(worker["nthreads"]) for worker in self._workers())

    def share(self, job: Job) -> dict[str, float] | None:
        """Return what a job takes of the resources that workers declare, and of no other.

        No job asks for more than the largest worker has: it would never run.
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
