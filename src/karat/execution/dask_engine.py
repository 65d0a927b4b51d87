"""The depot of a Dask worker: files by content hash, and the processes that run jobs.

A worker gets each file once: from a disk shared with the client, or in pieces from the client. Jobs
run in child processes, as without Dask, so that limits end the job and not the worker.

What is sent with a job to a Dask worker: files by content hash, and the user's own code.
Jobs on a Dask cluster, with the same results as on this machine.

Files that a job needs are sent to each worker once, by content hash: a worker that lacks a file
answers Lacking, receives the file in pieces and gets the job again. Results are sent back, so
workers need no disk shared with this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import platform
import queue
import shutil
import site
import sys
import sysconfig
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, TypeVar

from karat import __version__
from karat.errors import DefinitionError, KaratError, MissingExtra
from karat.execution.job import Job, ObjectStore
from karat.execution.workers import Worker, WorkerDied, save

#: maximum number of numbered child processes per machine
SEATS = 1024
#: seconds after which an idle child process is ended
IDLE = 300.0


@dataclass(frozen=True)
class RemoteFile:
    """A file that jobs need: its hash, its size and its path on the client."""

    sha256: str
    size: int
    path: str


@dataclass(frozen=True)
class RemoteJob:
    """A job as it is sent to a Dask worker.

    ``parcels`` are its files by their path in the session's folder; ``folders`` are new values for
    fields of the job, relative to that folder.
    """

    job: Any
    work: str
    session: str
    parcels: Mapping[str, RemoteFile]
    folders: Mapping[str, str]
    versions: tuple[str, str]


@dataclass(frozen=True)
class MissingFiles:
    """The answer of a worker that lacks files of a job."""

    worker: str
    parcels: tuple[RemoteFile, ...]


def versions() -> tuple[str, str]:
    """Return the versions of Karat and Python, which must match to read pickles."""
    return __version__, ".".join(platform.python_version_tuple()[:2])


def perform(order: RemoteJob) -> Any:
    """Run a job on this Dask worker; return its result, a WorkerDied or Lacking."""
    from distributed import get_worker

    worker = get_worker()
    if order.versions != versions():
        theirs, ours = (" and Python ".join(pair) for pair in (versions(), order.versions))
        raise DefinitionError(
            f"Dask worker {worker.address} has karat {theirs}, the run has karat {ours}; install "
            f"the same versions."
        )
    depot = depot_of(worker)
    with depot.using(order.parcels.values()):
        lacking = depot.lacking(order.parcels.values())
        return MissingFiles(worker.address, lacking) if lacking else depot.run(order)


def missing_files(parcels: Iterable[RemoteFile], dask_worker: Any) -> tuple[RemoteFile, ...]:
    """Return the files that a Dask worker lacks."""
    return depot_of(dask_worker).lacking(parcels)


def receive(parcel: RemoteFile, start: int, piece: bytes, session: str, dask_worker: Any) -> None:
    """Receive a piece of a file; the last piece completes it."""
    depot_of(dask_worker).receive(parcel, start, piece, session)


def close(session: str, dask_worker: Any) -> None:
    """End the child processes of a session and remove its folder; files remain."""
    depot_of(dask_worker).close(session)


def depot_of(worker: Any) -> Depot:
    """Return the depot of a Dask worker, below the local directory that Dask cleans up."""
    made = vars(worker).get("karat_depot") or Depot(Path(worker.local_directory) / "karat")
    return vars(worker).setdefault("karat_depot", made)


class Depot:
    """Files by their hash, folders of sessions that link to them, and child processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        #: maximum number of bytes of all files; the least recently used are removed first
        self.room = shutil.disk_usage(folder).free // 2
        self._lock = threading.RLock()
        self._used: Counter[str] = Counter()
        self._growing: dict[tuple[str, str], tuple[IO[bytes], Any]] = {}
        self._crew: dict[str, list[_Child]] = {}
        self._closed: set[str] = set()

    # -- files --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def using(self, parcels: Iterable[RemoteFile]) -> Iterator[None]:
        """Protect these files from being removed."""
        names = [parcel.sha256 for parcel in parcels]
        with self._lock:
            self._used.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._used.subtract(names)

    def lacking(self, parcels: Iterable[RemoteFile]) -> tuple[RemoteFile, ...]:
        """Return the files that are neither here nor on a disk shared with the client."""
        once = {parcel.sha256: parcel for parcel in parcels}
        return tuple(parcel for parcel in once.values() if not self._has(parcel))

    def _has(self, parcel: RemoteFile) -> bool:
        file = self.files / parcel.sha256
        if file.exists():
            with contextlib.suppress(OSError):
                os.utime(file, follow_symlinks=False)
            return True
        if not _is_same(Path(parcel.path), parcel):
            return False
        with self._lock:
            if not file.exists():  # not yet made by another thread
                file.unlink(missing_ok=True)  # a broken link
                file.symlink_to(parcel.path)
        return True

    def receive(self, parcel: RemoteFile, start: int, piece: bytes, session: str) -> None:
        """Add a piece to a file; after the last piece, check the file's hash."""
        draft = self.files / f".{parcel.sha256}.{session}"
        key = (parcel.sha256, session)
        if start == 0:
            self._growing[key] = draft.open("wb"), hashlib.sha256()
        file, digest = self._growing[key]
        try:
            file.write(piece)
            digest.update(piece)
            if start + len(piece) < parcel.size:
                return
            file.close()
            if digest.hexdigest() != parcel.sha256:
                raise OSError(f"{parcel.path} changed while it was sent")
            os.replace(draft, self.files / parcel.sha256)
        except OSError:
            file.close()
            draft.unlink(missing_ok=True)
            raise
        self._tidy(parcel.sha256)

    def _tidy(self, newest: str) -> None:
        """Remove the least recently used files if all files exceed the available room."""
        with self._lock:
            files = [(file, file.stat()) for file in self.files.iterdir() if not file.is_symlink()]
            total = sum(facts.st_size for _, facts in files)
            for file, facts in sorted(files, key=lambda each: each[1].st_mtime_ns):
                if total <= self.room:
                    return
                idle = not self._used[file.name] and not file.name.startswith(".")
                if idle and file.name != newest:
                    file.unlink()
                    total -= facts.st_size

    # -- jobs ---------------------------------------------------------------------------------

    def run(self, order: RemoteJob) -> Any:
        """Run a job in a child process; return its result or a WorkerDied."""
        root = self._unpack(order)
        job = order.job
        moved: dict[str, Any] = {name: str(root / at) for name, at in order.folders.items()}
        if getattr(job, "stage", None):
            moved["stage"] = (str(root / "scratch"), job.stage[1])
        child = self._hire(order, root / "shelf")
        try:
            return child.worker.ask(dataclasses.replace(job, **moved))
        except WorkerDied as died:
            return died
        finally:
            self._rest(child)

    def _unpack(self, order: RemoteJob) -> Path:
        root = self.folder / order.session
        for place, parcel in order.parcels.items():
            link = root / place
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):  # made by another thread
                    link.symlink_to(self.files / parcel.sha256)
        return root

    def _hire(self, order: RemoteJob, shelf: Path) -> _Child:
        with self._lock:
            self._dismiss()
            crew = self._crew.setdefault(order.session, [])
            for child in crew:
                if not child.busy:
                    child.busy = True
                    return child
            slot, seat = _seat()
            crew.append(_Child(Worker(order.work, shelf, slot), order.session, seat))
            return crew[-1]

    def _dismiss(self) -> None:
        """End idle child processes, whose client may have disappeared."""
        for session, crew in self._crew.items():
            late = [c for c in crew if not c.busy and time.monotonic() - c.since > IDLE]
            for child in late:
                child.stop()
            self._crew[session] = [child for child in crew if child not in late]

    def _rest(self, child: _Child) -> None:
        with self._lock:
            child.busy, child.since = False, time.monotonic()
        if child.session in self._closed:
            child.stop()

    def close(self, session: str) -> None:
        """End the child processes of a session and remove its folder."""
        with self._lock:
            self._closed.add(session)
            crew = self._crew.pop(session, [])
        for child in crew:
            child.stop()
        shutil.rmtree(self.folder / session, ignore_errors=True)


@dataclass(eq=False)
class _Child:
    """A child process of a session; ``since`` is when it became idle."""

    worker: Worker
    session: str
    seat: IO[str] | None
    busy: bool = True
    since: float = 0.0

    def stop(self) -> None:
        """End the process and release its number."""
        self.worker.stop()
        if self.seat is not None:
            self.seat.close()


def _seat() -> tuple[int, IO[str] | None]:
    """Return the lowest number that no child process of this machine has, and its lock file.

    The number selects the cores of a child; it is reserved while the file is open.
    """
    try:
        import fcntl
    except ImportError:  # Windows, where processes are not bound to cores
        return 0, None
    folder = Path(tempfile.gettempdir()) / f"karat-seats-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(SEATS):
        file = (folder / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number, file
        except OSError:
            file.close()
    return 0, None  # a file system without locks


def _is_same(path: Path, parcel: RemoteFile) -> bool:
    """Return whether a client's path is a file here with the same content."""
    try:
        return path.stat().st_size == parcel.size and file_hash(path) == parcel.sha256
    except OSError:
        return False


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


#: files of a vector folder that jobs read
VECTORS = ("vectors.npy", "about.json")


@contextlib.contextmanager
def pickle_user_modules() -> Iterator[None]:
    """Pickle the user's modules that are not installed by value."""
    import cloudpickle

    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    installed = tuple({os.path.realpath(folder) + os.sep for folder in folders})
    already = cloudpickle.list_registry_pickle_by_value()
    found = [m for name, m in list(sys.modules.items()) if _is_own(name, m, installed)]
    own = [module for module in found if module.__name__ not in already]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _is_own(name: str, module: Any, installed: tuple[str, ...]) -> bool:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not file or getattr(module, "__name__", "") != name:
        return False
    return not os.path.realpath(file).startswith(installed)


class JobPacker:
    """Adds the files of jobs to them; each file is hashed once."""

    def __init__(self, shelf: ObjectStore, work: str) -> None:
        self.shelf = shelf
        self.work = work
        self.session = uuid.uuid4().hex
        self._parcels: dict[Path, RemoteFile] = {}

    def order(self, job: Job) -> RemoteJob:
        """Return a job with its files and their paths on the worker."""
        keys = ("parts", job.model, job.task, job.dataset)
        parcels = {f"shelf/{key}.pickle": self._parcel(self.shelf.file(key)) for key in keys}
        folders = {}
        for name in ("vectors", "vocabulary"):
            folder = getattr(job, name)
            if folder is not None:
                files = {each: self._parcel(Path(folder) / each) for each in VECTORS}
                at = "-".join(["vectors", *(parcel.sha256 for parcel in files.values())])
                folders[name] = at
                parcels |= {f"{at}/{each}": parcel for each, parcel in files.items()}
        return RemoteJob(job, self.work, self.session, parcels, folders, versions())

    def _parcel(self, path: Path) -> RemoteFile:
        if path not in self._parcels:
            file = path.absolute()
            self._parcels[path] = RemoteFile(file_hash(file), file.stat().st_size, str(file))
        return self._parcels[path]


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


log = logging.getLogger("karat.execution.dask_engine")


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
    jobs: Sequence[Job],
    work: str,
    shelf: ObjectStore,
    scheduler: str | None = None,
    workers: int = 1,
) -> Generator[tuple[Job, Any]]:
    """Yield each job with the result of ``work(job, shelf)``, in the order in which they finish.

    Without a scheduler a cluster of ``workers`` processes is started on this machine. The result
    of a job that could not finish is a WorkerDied.
    """
    if not jobs:
        return
    with pickle_user_modules():
        save(shelf)
    with _connected(scheduler, workers) as client:
        submitter = _Submitter(client, JobPacker(shelf, work))
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
            cluster = scheduler or stack.enter_context(local_cluster(workers))
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


def local_cluster(workers: int) -> Any:
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
    ours = versions()[1]
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

    def __init__(self, client: Any, cargo: JobPacker) -> None:
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
                if not isinstance(answer, MissingFiles):
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

    def _send_files(self, answer: MissingFiles) -> bool:
        """Send the missing files to a worker and return whether that succeeded."""
        worker = answer.worker
        try:
            for parcel in self._run_on(missing_files, answer.parcels, worker=worker):
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
