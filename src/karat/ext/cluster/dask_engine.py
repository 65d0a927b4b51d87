"""Jobs on a Dask cluster, with the same results as on this machine.

Files that a job needs are sent to each worker once, by content hash: a worker that lacks a file
answers MissingFiles, receives the file in pieces and gets the job again. Results are sent back, so
workers need no disk shared with this process; files on a shared disk are not sent. On a worker,
jobs run in child processes, as without Dask, so that limits end the job and not the worker.
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
from typing import IO, TYPE_CHECKING, Any, TypeVar

from karat import __version__
from karat.core.files import file_hash, file_locks, private_folder
from karat.core.registry import engine
from karat.core.writing import full_disk_explained
from karat.errors import DefinitionError, DiskFull, KaratError, MissingExtra
from karat.execution.engine import Engine, EngineLost
from karat.execution.job import Job
from karat.execution.object_store import ObjectStore
from karat.execution.workers import Event, Worker, WorkerDied, save

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture
    from distributed import Worker as DaskWorker

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
#: files of a vector folder that jobs read
VECTORS = ("vectors.npy", "about.json")
#: maximum number of numbered child processes per machine
SLOTS = 1024
LOST = "lost the connection to the scheduler"
#: seconds after which an idle child process is ended
IDLE = 300.0

T = TypeVar("T")
log = logging.getLogger(__name__)
#: the function that a worker calls with a job: it returns the outcome, which is sent back
PERFORM = "karat.execution.runner:perform"


@dataclass(frozen=True)
class RemoteFile:
    """A file that jobs need: its hash, its size and its path on the client."""

    sha256: str
    size: int
    path: str


@dataclass(frozen=True)
class RemoteJob:
    """A job as it is sent to a Dask worker.

    ``files`` are its files by their path in the session's folder; ``folders`` are new values for
    fields of the job, relative to that folder.
    """

    job: Any
    work: str
    session: str
    files: Mapping[str, RemoteFile]
    folders: Mapping[str, tuple[str, ...]]
    versions: tuple[str, str]


@dataclass(frozen=True)
class MissingFiles:
    """The answer of a worker that lacks files of a job."""

    worker: str
    files: tuple[RemoteFile, ...]


def _versions() -> tuple[str, str]:
    """Return the versions of Karat and Python, which must match to read pickles."""
    return __version__, ".".join(platform.python_version_tuple()[:2])


@engine("dask")
class DaskEngine(Engine):
    """Runs jobs on the Dask cluster at an address, or on a new one of this machine."""

    shares_files = False
    #: the address of a cluster that was started for several calls of ``execute``
    started: str | None = None

    def mistakes(self) -> Iterable[str]:
        """Return nothing: an address is what this engine needs."""
        return ()

    def check(self) -> None:
        """Raise an error if there is no such scheduler, or if library versions differ."""
        check_cluster(self.address)

    @contextlib.contextmanager
    def kept(self, workers: int) -> Iterator[None]:
        """Start one cluster for several calls of ``execute``, if there is none."""
        if self.address is not None:
            yield
            return
        with local_cluster(workers) as cluster:
            self.started = cluster.scheduler_address
            yield

    def execute(
        self,
        jobs: Sequence[Job],
        store: ObjectStore,
        workers: int,
        report: Callable[[Job, Event], None],
    ) -> Generator[tuple[Job, Any]]:
        """Yield each job with its answer, in the order in which they finish."""
        yield from execute_on_dask(
            jobs, work=PERFORM, store=store, scheduler=self.address or self.started, workers=workers
        )

    def place(self, workers: int) -> str:
        """Return where the jobs run, for the title of a run."""
        return f"Dask at {self.address}" if self.address else super().place(workers)


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
    store: ObjectStore,
    scheduler: str | None = None,
    workers: int = 1,
) -> Generator[tuple[Job, Any]]:
    """Yield each job with the result of ``work(job, store)``, in the order in which they finish.

    Without a scheduler a cluster of ``workers`` processes is started on this machine. The result
    of a job that could not finish is a WorkerDied.
    """
    if not jobs:
        return
    with pickle_user_modules():
        save(store)
    with _connected(scheduler, workers) as client:
        submitter = _Submitter(client, JobPacker(store, work))
        try:
            yield from submitter.run(jobs)
        finally:
            submitter.close()


@contextlib.contextmanager
def _connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Connect to the cluster at an address or in a scheduler file, or to a new local cluster."""
    from distributed import Client

    with contextlib.ExitStack() as stack:
        # Karat reports failures of the cluster itself
        logger = logging.getLogger("distributed")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL + 1)
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
    worker_options = {**here, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    worker = {"cls": SubprocessWorker, "options": {"worker_kwargs": worker_options}}
    web = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {**here, **web, "port": 0, "allowed_failures": DEATHS}
    return SpecCluster(
        workers={number: worker for number in range(max(1, workers))},
        scheduler={"cls": Scheduler, "options": options},
        silence_logs=logging.CRITICAL,
    )


def _installed() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _check_versions(client: Client) -> None:
    """Raise an error if the cluster's versions of Python and libraries differ from ours."""
    messages = []
    python = client.run(platform.python_version)
    ours = _versions()[1]
    for address, theirs in python.items():
        if ".".join(theirs.split(".")[:2]) != ours:
            messages.append(f"Dask worker {address} has Python {theirs}, this process {ours}")
    for name, here in _installed().items():
        for address, theirs in client.run(version, name, on_error="return").items():
            if theirs != here:
                difference = f"has {name} {theirs}" if isinstance(theirs, str) else f"has no {name}"
                messages.append(f"Dask worker {address} {difference}, this process {here}")
    try:
        client.run_on_scheduler(version, "karat")
    except PackageNotFoundError:
        messages.append("the Dask scheduler has no karat")
    if messages:
        some = messages[:5] + [f"and {len(messages) - 5} more"] * (len(messages) > 5)
        raise DefinitionError(*some, "install the same versions on the cluster and here.")


@dataclass
class _Submitted:
    """A submitted job, its future, and how often its files could not be sent."""

    job: Job
    future: Any
    tries: int


class _Submitter:
    """Submits jobs to a cluster, a bounded number at a time, and yields each result once."""

    def __init__(self, client: Client, packer: JobPacker) -> None:
        self.client = client
        self.packer = packer
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.submitted: dict[str, _Submitted] = {}
        self.failure = ""
        self._cluster = _Cluster(client)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Yield every job with its result."""
        waiting = deque(jobs)
        self._fill(waiting)
        while self.submitted:
            finished = self._finished()
            self._fill(waiting)
            for sent, answer in finished:
                if not isinstance(answer, MissingFiles):
                    yield sent.job, answer
                elif sent.tries >= TRIES:
                    yield sent.job, WorkerDied(f"cannot send the job's files: {self.failure}", "")
                else:
                    failed = not self._send_files(answer)
                    self._submit(sent.job, sent.tries + failed)

    def _fill(self, waiting: deque[Job]) -> None:
        while waiting and len(self.submitted) < max(WINDOW, 2 * self._cluster.threads):
            self._submit(waiting.popleft())

    def _finished(self) -> list[tuple[_Submitted, Any]]:
        """Wait for a finished job; return it and other finished ones, gathered in one message."""
        finished = [self.submitted.pop(self._wait(self.done).key)]
        while len(finished) < BATCH and not self.done.empty():
            finished.append(self.submitted.pop(self.done.get().key))
        fine = [sent.future for sent in finished if sent.future.status == "finished"]
        answers: dict[str, Any] = {}
        try:
            values = self._call(self.client.gather, fine)
            answers = dict(zip((future.key for future in fine), values, strict=True))
        except EngineLost:
            raise
        except Exception:  # one was lost meanwhile: fetch them one by one
            pass
        results = []
        for sent in finished:
            key = sent.future.key
            results.append((sent, answers[key] if key in answers else self._answer(sent.future)))
            sent.future.release()
        return results

    def _submit(self, job: Job, tries: int = 0) -> None:
        key, share = f"karat-{uuid.uuid4().hex}", self._cluster.share(job)
        try:
            remote = self.packer.pack(job)
            future = self.client.submit(
                perform_remote, remote, key=key, pure=False, resources=share
            )
        except (OSError, RuntimeError) as error:  # raised by a client without a scheduler
            if self.client.status == "running":
                raise
            raise EngineLost(LOST) from error
        self.submitted[future.key] = _Submitted(job, future, tries)
        future.add_done_callback(self.done.put)

    def _wait(self, answers: queue.SimpleQueue[Any]) -> Any:
        """Return the next answer, or raise EngineLost."""
        while True:
            try:
                return answers.get(timeout=1.0)
            except queue.Empty:
                futures = [sent.future for sent in self.submitted.values()]
                was_cancelled = any(future.status == "cancelled" for future in futures)
                if was_cancelled or self.client.status != "running":
                    raise EngineLost(LOST) from None

    def _call(self, method: Callable[..., T], *arguments: object, **options: object) -> T:
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
        result: T = self._wait(answers).result()
        return result

    def _answer(self, future: DaskFuture) -> Any:
        from distributed import CancelledError, KilledWorker

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
        raise EngineLost(LOST)

    def _send_files(self, answer: MissingFiles) -> bool:
        """Send the missing files to a worker and return whether that succeeded."""
        worker = answer.worker

        def call(*arguments: object) -> Any:
            return self._call(self.client.run, call_depot, *arguments, workers=[worker])[worker]

        try:
            for remote in call("missing", answer.files):
                with Path(remote.path).open("rb") as file:
                    for start in range(0, max(remote.size, 1), PIECE):
                        call("receive", remote, start, file.read(PIECE), self.packer.session)
        except (OSError, LookupError, DiskFull) as error:
            name = "" if isinstance(error, DiskFull) else f"{type(error).__name__}: "
            self.failure = f"{worker}: {name}{error}"
            log.warning("cannot send files to %s", self.failure)
            time.sleep(0.1)
            return False
        return True

    def close(self) -> None:
        """Cancel the remaining jobs and end their processes."""
        if self.client.status != "running":
            return
        with contextlib.suppress(Exception):  # the cluster may be shutting down
            self.client.cancel([sent.future for sent in self.submitted.values()])
            self.client.run(call_depot, "close", self.packer.session, on_error="ignore")


class _Cluster:
    """The threads and declared resources of the workers, refreshed every two seconds."""

    def __init__(self, client: Client) -> None:
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
        declared = {name: wanted.get(name.lower()) for name in most}
        return {name: min(n, most[name]) for name, n in declared.items() if n is not None} or None


# -- files of jobs ------------------------------------------------------------------------------


@contextlib.contextmanager
def pickle_user_modules() -> Iterator[None]:
    """Pickle the user's modules that are not installed by value."""
    import cloudpickle

    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[2])]
    # packages may be links, as those of uv, to files outside the folders of packages
    forms = (os.path.realpath, os.path.abspath)
    installed = tuple({form(folder) + os.sep for folder in folders for form in forms})
    already = cloudpickle.list_registry_pickle_by_value()
    user_modules = [
        module
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and name not in already
        and getattr(module, "__name__", "") == name
        and (file := getattr(module, "__file__", None))
        and not any(form(file).startswith(installed) for form in forms)
    ]
    for module in user_modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in user_modules:
            cloudpickle.unregister_pickle_by_value(module)


class JobPacker:
    """Adds the files of jobs to them; each file is hashed once."""

    def __init__(self, store: ObjectStore, work: str) -> None:
        self.store = store
        self.work = work
        self.session = uuid.uuid4().hex
        self._hashed: dict[Path, RemoteFile] = {}

    def pack(self, job: Job) -> RemoteJob:
        """Return a job with its files and their paths on the worker."""
        keys = ("parts", job.model, job.source, job.task, job.dataset)
        files = {f"store/{key}.pickle": self._file(self.store.file(key)) for key in keys}
        folders: dict[str, tuple[str, ...]] = {}
        for name in ("vectors", "vocabulary", "stages"):
            value = getattr(job, name)
            for folder in [value] if isinstance(value, str) else value or ():
                inside = {
                    name_of_file: self._file(Path(folder) / name_of_file)
                    for name_of_file in VECTORS
                }
                at = "-".join(["vectors", *(file.sha256 for file in inside.values())])
                folders[name] = (*folders.get(name, ()), at)
                files |= {f"{at}/{name_of_file}": file for name_of_file, file in inside.items()}
        return RemoteJob(
            job=job,
            work=self.work,
            session=self.session,
            files=files,
            folders=folders,
            versions=_versions(),
        )

    def _file(self, path: Path) -> RemoteFile:
        if path not in self._hashed:
            file = path.absolute()
            self._hashed[path] = RemoteFile(file_hash(file), file.stat().st_size, str(file))
        return self._hashed[path]


# -- Dask workers -------------------------------------------------------------------------------


def perform_remote(remote: RemoteJob) -> Any:
    """Run a job on this Dask worker; return its result, a WorkerDied or MissingFiles."""
    from distributed import get_worker

    worker = get_worker()
    if remote.versions != _versions():
        theirs, ours = (" and Python ".join(pair) for pair in (_versions(), remote.versions))
        raise DefinitionError(
            f"Dask worker {worker.address} has karat {theirs}, the run has karat {ours}; install "
            f"the same versions."
        )
    depot = _depot(worker)
    with depot.using(remote.files.values()):
        missing = depot.missing(remote.files.values())
        return MissingFiles(worker.address, missing) if missing else depot.run(remote)


def call_depot(method: str, *arguments: object, dask_worker: DaskWorker) -> Any:
    """Call a method of the depot of a Dask worker."""
    return getattr(_depot(dask_worker), method)(*arguments)


def _depot(worker: DaskWorker) -> Depot:
    # below the local directory, which Dask removes
    depot = vars(worker).get("karat_depot") or Depot(Path(worker.local_directory) / "karat")
    return vars(worker).setdefault("karat_depot", depot)


class Depot:
    """The part of a Dask worker that holds files by their hash and runs jobs in child processes.

    Each session has a folder of links to the files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        #: maximum number of bytes of all files; the least recently used are removed first
        self.room = shutil.disk_usage(folder).free // 2
        self._lock = threading.RLock()
        self._used: Counter[str] = Counter()
        #: files that are being received: the open draft, its hash, and when a piece arrived last
        self._incomplete: dict[tuple[str, str], tuple[IO[bytes], Any, float]] = {}
        self._children: dict[str, list[_Child]] = {}
        self._closed: set[str] = set()
        self._timer: threading.Timer | None = None

    @contextlib.contextmanager
    def using(self, files: Iterable[RemoteFile]) -> Iterator[None]:
        """Protect these files from being removed."""
        names = [file.sha256 for file in files]
        with self._lock:
            self._used.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._used.subtract(names)

    def missing(self, files: Iterable[RemoteFile]) -> tuple[RemoteFile, ...]:
        """Return the files that are neither here nor on a disk shared with the client."""
        missing = []
        for remote in {file.sha256: file for file in files}.values():
            file = self.files / remote.sha256
            if file.exists():
                with contextlib.suppress(OSError):
                    os.utime(file, follow_symlinks=False)
            elif not is_same_file(Path(remote.path), remote):
                missing.append(remote)
            else:
                with self._lock:
                    if not file.exists():  # not yet made by another thread
                        file.unlink(missing_ok=True)  # a broken link
                        file.symlink_to(remote.path)
        return tuple(missing)

    def receive(self, remote: RemoteFile, start: int, piece: bytes, session: str) -> None:
        """Add a piece to a file; after the last piece, check the file's hash."""
        draft = self.files / f".{remote.sha256}.{session}"
        key = (remote.sha256, session)
        with full_disk_explained(draft):
            if start == 0:
                self._drop_incomplete()
                self._incomplete[key] = draft.open("wb"), hashlib.sha256(), time.monotonic()
            file, digest, _ = self._incomplete[key]
            self._incomplete[key] = file, digest, time.monotonic()
            try:
                file.write(piece)
                digest.update(piece)
                if start + len(piece) < remote.size:
                    return
                file.close()
                if digest.hexdigest() != remote.sha256:
                    raise OSError(f"{remote.path} changed while it was sent")
                os.replace(draft, self.files / remote.sha256)
                del self._incomplete[key]
            except OSError:
                self._drop(key)
                raise
        self._make_room(remote.sha256)

    def _drop_incomplete(self, session: str | None = None) -> None:
        """Remove the incomplete files of a session, or of all clients that stopped sending."""
        for key, (_, _, last) in list(self._incomplete.items()):
            stopped = time.monotonic() - last >= IDLE if session is None else key[1] == session
            if stopped:
                self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        file, _, _ = self._incomplete.pop(key)
        with contextlib.suppress(OSError):  # what is not written yet does not fit either
            file.close()
        Path(file.name).unlink(missing_ok=True)

    def _make_room(self, newest: str) -> None:
        """Remove the least recently used files if all files exceed the available room."""
        with self._lock:
            files = [(file, file.stat()) for file in self.files.iterdir() if not file.is_symlink()]
            total = sum(facts.st_size for _, facts in files)
            for file, facts in sorted(files, key=lambda entry: entry[1].st_mtime_ns):
                if total <= self.room:
                    return
                idle = not self._used[file.name] and not file.name.startswith(".")
                if idle and file.name != newest:
                    file.unlink()
                    total -= facts.st_size

    def run(self, remote: RemoteJob) -> Any:
        """Run a job in a child process; return its result or a WorkerDied."""
        root, job = self.folder / remote.session, remote.job
        for path, file in remote.files.items():
            link = root / path
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):  # made by another thread
                    link.symlink_to(self.files / file.sha256)
        moved: dict[str, Any] = {}
        for name, several in remote.folders.items():
            paths = tuple(str(root / at) for at in several)
            moved[name] = paths if name == "stages" else paths[0]
        if getattr(job, "stage", None):
            moved["stage"] = (str(root / "scratch"), job.stage[1])
        child = self.acquire(remote, root / "store")
        try:
            return child.worker.ask(dataclasses.replace(job, **moved))
        except WorkerDied as died:
            return died
        finally:
            self.release(child)

    def acquire(self, remote: RemoteJob, store: Path) -> _Child:
        """Return an idle child process of the session, or a new one."""
        with self._lock:
            children = self._children.setdefault(remote.session, [])
            for child in children:
                if not child.busy:
                    child.busy = True
                    return child
            slot, lock = _reserve_slot()
            children.append(_Child(Worker(remote.work, store, slot), remote.session, lock))
            return children[-1]

    def release(self, child: _Child) -> None:
        """Let other jobs use a child process; end it if its session is closed."""
        with self._lock:
            child.busy, child.since = False, time.monotonic()
            self._end_idle_later()
        if child.session in self._closed:
            child.stop()

    def _end_idle_later(self) -> None:
        """End child processes that stay idle: their client may have disappeared."""
        if self._timer is None:
            self._timer = threading.Timer(IDLE, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            self._timer = None
            for session, children in self._children.items():
                late = [c for c in children if not c.busy and time.monotonic() - c.since >= IDLE]
                for child in late:
                    child.stop()
                self._children[session] = [child for child in children if child not in late]
            if any(self._children.values()):
                self._end_idle_later()

    def close(self, session: str) -> None:
        """End the child processes of a session and remove its folder; files remain."""
        with self._lock:
            self._closed.add(session)
            children = self._children.pop(session, [])
            self._drop_incomplete(session)
        for child in children:
            child.stop()
        shutil.rmtree(self.folder / session, ignore_errors=True)


@dataclass(eq=False)
class _Child:
    """A child process of a session; ``since`` is when it became idle."""

    worker: Worker
    session: str
    slot_lock: IO[str] | None
    busy: bool = True
    since: float = 0.0

    def stop(self) -> None:
        self.worker.stop()
        if self.slot_lock is not None:
            self.slot_lock.close()


def _reserve_slot() -> tuple[int, IO[str] | None]:
    """Return the lowest number that no child process of this machine has, and its lock file.

    The number selects the cores of a child; it is reserved while the file is open.
    """
    locks = file_locks()
    if locks is None:  # Windows, where processes are not bound to cores
        return 0, None
    folder = private_folder(Path(tempfile.gettempdir()) / f"karat-slots-{os.getuid()}")
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in range(SLOTS):
        file = os.fdopen(os.open(folder / str(number), how, 0o600), "w")
        try:
            locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
            return number, file
        except OSError:
            file.close()
    return 0, None  # a file system without locks


def is_same_file(path: Path, remote: RemoteFile) -> bool:
    """Return whether a client's path is a file here with the same content."""
    try:
        return path.stat().st_size == remote.size and file_hash(path) == remote.sha256
    except OSError:
        return False
