"""What clients with the token may send: vector files, run folders and evaluations.

Uploads are stored completely or not at all. Run folders are unpacked by a child process that runs
this module with limits. Evaluations use names that are defined on the server, wait in a bounded
queue and run one at a time, each as a child process.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from pydantic import BaseModel, ConfigDict, Field

from karat.core import registry
from karat.core.digest import sha256_of_file
from karat.core.writing import draft_of, remove_drafts, write_atomic
from karat.data.archives import unpack
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.ext.serve.server import MEGABYTE, TOKEN_VARIABLE, ApiError, ServerSettings
from karat.ext.serve.snapshots import ServedRun
from karat.models.vectors.vector_formats import VECTOR_FILE_SUFFIXES
from karat.results.run import Run
from karat.results.run_folders import find_run_folders, is_run_folder

#: allowed names of uploads: a single path component that is not hidden
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_@+,-]*(\.[A-Za-z0-9_@+,-]+)*"
MAX_NAME_LENGTH = 150
COMPRESSED = (".gz", ".zst")
#: files taken from an uploaded run folder: records, tables and logs; no code, no pickles
RUN_FILE_SUFFIXES = (".json", ".jsonl", ".csv", ".txt")
#: maximum number of files in a run folder, and of its unpacked size relative to the upload limit
MAX_FILES, MAX_EXPANSION = 100_000, 8
#: limits of the process that unpacks and checks a run folder
MAX_UNPACK_SECONDS, MAX_UNPACK_MB = 120.0, 2048
#: maximum size of all vector files, relative to the upload limit
MAX_TOTAL = 20
#: seconds before the speed of an upload is checked
SPEED_GRACE = 5.0
#: prefix of models that are uploaded vector files
UPLOAD = "upload:"
#: prefix of the folders with GEval's files
RESULT = "result_"

QUEUED, RUNNING, FINISHED = "queued", "running", "finished"
FAILED, CANCELLED, STOPPED = "failed", "cancelled", "stopped"
#: seconds a child process has to stop
STOP_GRACE = 10.0
#: number of evaluations that are remembered, and of characters shown of their output
MAX_REMEMBERED, MAX_OUTPUT = 200, 4000


NO_SPACE = ApiError(
    507, "there is no space for more uploads", "DELETE /api/v1/vectors/{name} frees space"
)
DefinedName = Annotated[str, Field(min_length=1, max_length=200)]


# -- uploads --------------------------------------------------------------------------------


class Uploads:
    """Stores uploaded vector files, and unpacks uploaded run folders."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.vectors = settings.uploads / "vectors"
        self.drafts = settings.uploads / "drafts"
        self.receiving = 0

    async def receive(self, chunks: AsyncIterator[bytes], length: str | None) -> Path:
        """Write a body with this Content-Length to a draft, unless it is too large or slow."""
        self._check_size(int(length[:20]) if length and length.isdecimal() else 0)
        self._check_space()
        self.drafts.mkdir(parents=True, exist_ok=True)
        draft = draft_of(self.drafts / secrets.token_hex(8))
        start, size = time.monotonic(), 0
        self.receiving += 1
        try:
            with draft.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    self._check_size(size)
                    seconds = time.monotonic() - start
                    if seconds > SPEED_GRACE and size / seconds < self.settings.limits.rate:
                        raise ApiError(408, "the upload is too slow", "", {"connection": "close"})
                    file.write(chunk)
            if not size:
                raise ApiError(400, "the body is empty", "send the file as the body")
        except BaseException as error:
            draft.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NO_SPACE from error
            raise
        finally:
            self.receiving -= 1
        return draft

    def _check_space(self) -> None:
        """Raise an ApiError if the vector files and the uploads in progress are too large."""
        stored = sum(vector_file["bytes"] for vector_file in self.list_vectors())
        if (
            stored + self.receiving * self.settings.max_upload
            > MAX_TOTAL * self.settings.max_upload
        ):
            raise NO_SPACE

    def _check_size(self, size: int) -> None:
        limit = self.settings.max_upload
        if size > limit:
            hint = f"the limit is {limit // MEGABYTE:,} MB; karat serve --max-upload changes it"
            raise ApiError(413, "the body is too large", hint, {"connection": "close"})

    def delete_old_drafts(self) -> None:
        """Delete drafts that a killed server left, but not those of other living servers."""
        with contextlib.suppress(OSError):
            remove_drafts(self.drafts)

    def add_vectors(self, draft: Path, name: str) -> dict[str, Any]:
        """Store a vector file under a new name."""
        _check_name(name)
        stem = next((name.removesuffix(end) for end in COMPRESSED if name.endswith(end)), name)
        if not stem.lower().endswith(VECTOR_FILE_SUFFIXES):
            hint = f"allowed: {', '.join(VECTOR_FILE_SUFFIXES)}, with or without .gz or .zst"
            raise ApiError(400, f'"{name}" does not end like a vector file', hint, field="name")
        self.vectors.mkdir(parents=True, exist_ok=True)
        digest = sha256_of_file(draft)
        size = draft.stat().st_size
        try:
            os.link(draft, self.vectors / name)  # unlike a move, it never replaces a file
        except FileExistsError as error:
            hint = f"use it, choose another name, or DELETE /api/v1/vectors/{name} first"
            message = f'the vector file "{name}" already exists'
            raise ApiError(409, message, hint, field="name") from error
        return {"name": name, "bytes": size, "sha256": digest, "model": UPLOAD + name}

    def find_vectors(self, name: str, field: str = "name") -> Path:
        """Return the path of an uploaded vector file; ``field`` is wrong if there is none."""
        valid = re.fullmatch(NAME_PATTERN, name) and len(name) <= MAX_NAME_LENGTH
        path = self.vectors / name if valid else None
        if path is None or path.is_symlink() or not path.is_file():
            message = f'there is no vector file "{name[:200]}"'
            raise ApiError(404, message, "see /api/v1/vectors", field=field)
        return path

    def list_vectors(self) -> list[dict[str, Any]]:
        """Return the uploaded vector files."""
        vector_files = []
        for path in sorted(self.vectors.iterdir()) if self.vectors.is_dir() else ():
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    size, utc = path.stat().st_size, _utc(path.stat().st_mtime)
                    facts = {"name": path.name, "bytes": size, "utc": utc}
                    vector_files.append({**facts, "model": UPLOAD + path.name})
        return vector_files

    def add_run(self, draft: Path, name: str) -> None:
        """Unpack and check a run folder, and move it into the served folder."""
        _check_name(name)
        scratch = draft_of(self.drafts / f"folder-{secrets.token_hex(8)}")
        try:
            self._unpack(draft, scratch)
            run_folder = _find_run(scratch)
            target = self.settings.folder / name
            try:
                target.mkdir()  # reserves the name; an empty folder can be replaced
            except FileExistsError as error:
                message, hint = f'"{name}" already exists', "choose another name"
                raise ApiError(409, message, hint, field="name") from error
            os.replace(run_folder, target)
        except DataError as error:
            message = str(error).replace(str(draft.parent), "").replace(draft.name, "the archive")
            hint = "send one run folder as zip, tar or tar.gz"
            raise ApiError(422, f"cannot add the run: {message[:500]}", hint) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _unpack(self, draft: Path, scratch: Path) -> None:
        """Call ``unpack_run`` in a process with limits of time and memory."""
        limit = min(MAX_EXPANSION * self.settings.max_upload, 2**31)
        arguments = [str(draft.absolute()), str(scratch.absolute()), str(MAX_FILES), str(limit)]
        command = [sys.executable, "-P", "-m", "karat.ext.serve.submissions", *arguments]
        try:
            child = subprocess.run(
                [*command, str(MAX_UNPACK_MB)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,
                timeout=MAX_UNPACK_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise DataError(f"it takes more than {MAX_UNPACK_SECONDS:g} seconds") from error
        why = child.stderr.decode("utf-8", "replace").strip()
        if child.returncode == 1 and "Traceback" not in why:
            raise DataError(why)
        if child.returncode:
            raise DataError("it cannot be read, or it needs too much memory")


def unpack_run(draft: Path, scratch: Path, files: int, limit: int) -> str:
    """Unpack a run folder, check it and write its tables; return why this cannot be done.

    It may have this many files and bytes.
    """
    try:
        _check_archive(draft, limit, files)
        unpack(draft, target=scratch, suffixes=RUN_FILE_SUFFIXES, most=files, limit=limit)
        run_folder = _find_run(scratch)
        _check_run(ServedRun(run_folder, scratch.resolve()))
        shutil.rmtree(run_folder / "scores", ignore_errors=True)  # computed from the records
        Run(run_folder).finish()
    except MemoryError:
        return "it needs too much memory"
    except KaratError as error:
        return str(error)
    except Exception as error:  # the input may be hostile
        return f"it cannot be read: {type(error).__name__}"
    return ""


def main(arguments: list[str]) -> str:
    """Call ``unpack_run`` within a limit of memory."""
    from karat.execution.resources import Limits, limits_enforced

    draft, scratch, files, limit, megabytes = arguments
    if hasattr(signal, "alarm"):  # should the server be killed
        signal.alarm(int(2 * MAX_UNPACK_SECONDS))
    with limits_enforced(Limits(memory_mb=int(megabytes))):
        return unpack_run(Path(draft), Path(scratch), int(files), int(limit))


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > MAX_NAME_LENGTH:
        hint = f"use up to {MAX_NAME_LENGTH} letters, digits and _@+,-. after a letter or digit"
        raise ApiError(400, f'invalid name "{name[:200]}"', hint, field="name")


def _check_archive(path: Path, limit: int, files: int) -> None:
    """Raise a DataError unless a file is a zip or a tar that is small enough when unpacked."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    if compressed:
        bytes_left = limit + 512 * files
        try:
            with gzip.open(path) as stream:
                while bytes_left >= 0 and (chunk := stream.read(MEGABYTE)):
                    bytes_left -= len(chunk)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"it cannot be unpacked: {error}") from error
        if bytes_left < 0:
            raise DataError(f"it is larger than {limit:,} bytes when unpacked")
    elif not zipfile.is_zipfile(path):
        try:
            tarfile.open(path, "r:").close()
        except (tarfile.TarError, OSError) as error:
            raise DataError("it is not a zip, tar or tar.gz archive") from error


def _find_run(scratch: Path) -> Path:
    """Return the run folder in an unpacked archive: its top or the only folder in it."""
    if is_run_folder(scratch):
        return scratch
    folders = list(find_run_folders(scratch))
    if len(folders) != 1:
        raise DataError(f"it contains {len(folders)} run folders instead of one")
    return folders[0]


def _check_run(run: ServedRun) -> None:
    """Compute what pages and leaderboards show of a run, so that it cannot break them later."""
    from karat.analysis.leaderboard import leaderboard

    if not run.records():
        raise DataError("it has no finished job")
    try:
        leaderboard([run])
        run.results()
    except KaratError:
        raise
    except Exception as error:
        raise DataError(f"it cannot be shown: {type(error).__name__}") from error


def _utc(seconds: float, pattern: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(pattern)


# -- what can be evaluated ------------------------------------------------------------------


class Order(BaseModel):
    """A requested evaluation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    suite: DefinedName = Field(description="Name of a suite or of a task.")
    models: list[DefinedName] = Field(
        [], max_length=50, description="Defined models or upload:NAME; default: those of the suite."
    )
    tasks: list[DefinedName] = Field(
        [], max_length=500, description="Only these tasks of the suite."
    )
    folds: list[Annotated[int, Field(ge=0, le=10_000)]] = Field(
        [], max_length=1000, description="Only these folds."
    )
    seed: int = Field(42, ge=0, le=2**31 - 1, description="Seed of splits and models.")

    def find_runs(self, runs: Mapping[str, ServedRun], constraint: str) -> dict[str, ServedRun]:
        """Return the runs that this order creates or resumes: of each model the newest one."""
        models = {model.removeprefix(UPLOAD) for model in self.models}
        newest: dict[str, ServedRun] = {}
        for run in sorted(runs.values(), key=lambda run: str(run.about["stamp"])):
            settings = run.about
            tasks = {task["name"] for task in settings["tasks"]}
            same = (settings["suite"], settings["constraint"]) == (self.suite, constraint)
            same = same and settings.get("seed", self.seed) == self.seed
            if same and run.model in (models or {run.model}):
                if not self.tasks or tasks <= set(self.tasks):
                    newest[run.model] = run
        return {run.id: run for run in newest.values()}


class GevalOrder(BaseModel):
    """A requested evaluation with GEval's parameters."""

    model_config = ConfigDict(extra="forbid", strict=True)

    vectors: DefinedName = Field(description="Name of an uploaded vector file.")
    tasks: list[DefinedName] = Field(
        [],
        max_length=100,
        description="GEval's tasks, TASK:GOLD, or tasks defined on the server; default: all six.",
    )
    vector_file_format: str = Field(
        "", max_length=200, description="Default: by the suffix of the file."
    )
    vector_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Expected number of dimensions; default: as in the file."
    )
    similarity_metric: DefinedName = Field("cosine", description="Name of a similarity measure.")
    top_k: int = Field(2, ge=1, le=10_000, description="An analogy is right within this rank.")
    analogy_function: str = Field(
        "", max_length=200, description="Name of a function; default: b - a + c."
    )
    compare_with: list[DefinedName] = Field(
        [], max_length=1000, description="Ids of earlier runs; default: all."
    )
    protocol: Literal["corrected", "legacy"] = Field(
        "corrected", description="legacy: as in published tables."
    )

    @property
    def models(self) -> list[str]:
        """The uploaded file as a model."""
        return [UPLOAD + self.vectors]


class DefinedNames:
    """The names that are defined on this server, read once."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()

    @cached_property
    def _catalog(self) -> Any:
        from karat.config.catalog import Catalog

        return Catalog([str(path) for path in self.settings.define])

    def list(self, kind: str) -> list[str]:
        """Return the names of "models", "suites", "tasks" or "constraints"."""
        with self._lock:
            return sorted(self._catalog.definitions.names(kind))

    def check(self, order: Order, uploads: Uploads) -> None:
        """Raise an ApiError if an order uses a name that is not defined."""
        models = self.list("models")
        for model in order.models:
            if model.startswith(UPLOAD):
                uploads.find_vectors(model.removeprefix(UPLOAD), field="models")
            elif model not in models or "=" in model:
                raise _unknown("model", model, models)
        if len(set(order.models)) < len(order.models):
            raise ApiError(422, "duplicate model", "name each model once", field="models")
        tasks = [task.name for task in self.suite(order.suite)]
        for task in order.tasks:
            if task not in tasks:
                raise _unknown("task", task, tasks)

    def suite(self, name: str) -> Any:
        """Return a defined suite, or a suite of one defined task."""
        suites = [*self.list("suites"), *self.list("tasks")]
        if name not in suites:
            raise _unknown("suite", name, suites)
        try:
            with self._lock:
                return self._catalog.suite(name)
        except KaratError as error:
            raise ApiError(422, str(error)[:500], "karat list suites", field="suite") from error

    def check_constraint(self) -> None:
        """Raise a DefinitionError if the constraint does not limit both time and memory."""
        name = self.settings.constraint
        limits = self._catalog.definitions.get("constraints", name)
        missing = [k for k in ("max_runtime_seconds", "max_mem_size_mb") if limits.get(k) is None]
        if missing:
            raise DefinitionError(
                f'the constraint "{name}" has no {" and no ".join(missing)}; karat serve requires '
                f"both (karat list constraints)."
            )


def _unknown(kind: str, name: str, available: list[str]) -> ApiError:
    hint = did_you_mean(name, available).strip() or "see /api/v1/names"
    field = "suite" if kind == "suite" else f"{kind}s"
    return ApiError(422, f'there is no {kind} "{name}"', hint, field=field)


def run_arguments(order: Order, settings: ServerSettings, uploads: Uploads) -> list[str]:
    """Return the arguments of ``karat run`` for an order; values cannot be taken for options."""
    models = []
    for model in order.models:
        if model.startswith(UPLOAD):
            name = model.removeprefix(UPLOAD)
            model = f"{name}={uploads.find_vectors(name).absolute()}"
        models.append(f"--model={model}")
    return [
        "run",
        f"--output={settings.folder.absolute()}",
        f"--constraint={settings.constraint}",
        f"--workers={settings.workers}",
        f"--seed={order.seed}",
        "--resume",
        "--retry-failed",
        "--quiet",
        *(f"--define={path.absolute()}" for path in settings.define),
        *models,
        *(f"--task={task}" for task in order.tasks),
        *(f"--only-fold={fold}" for fold in order.folds),
        "--",
        order.suite,
    ]


def geval_arguments(
    order: GevalOrder, names: Mapping[str, Sequence[str]], folder: str, settings: ServerSettings
) -> list[str]:
    """Return the arguments of ``karat geval`` for an order, in the folder of the vector file.

    ``names`` are the tasks whose gold standards are here, and the stored ids of earlier runs.
    """
    arguments = {
        "vector_file": order.vectors,
        "vector_file_format": order.vector_file_format,
        "vector_size": order.vector_size,
        "similarity_metric": order.similarity_metric,
        "top_k": order.top_k,
        "analogy_function": order.analogy_function,
        "protocol": order.protocol,
        "result_directory_path": settings.folder.absolute(),
        "result_name": folder,
        "gold_directory_path": settings.geval_gold and settings.geval_gold.absolute(),
        "constraint": settings.constraint,
        "workers": settings.workers,
    }
    return [
        "geval",
        *(f"--{key}={value}" for key, value in arguments.items() if value not in (None, "")),
        *(f"--tasks={task}" for task in names["tasks"]),
        *(f"--compare_with={run}" for run in names["compare_with"]),
        *(f"--define={path.absolute()}" for path in settings.define),
    ]


# -- the queue of evaluations ---------------------------------------------------------------


class Evaluation(BaseModel):
    """An evaluation and its state, as stored in a file."""

    id: str
    order: Order | GevalOrder
    status: str = QUEUED
    created: str = ""
    started: str = ""
    ended: str = ""
    code: int | None = None
    #: id and start time of the server's process and of the child process
    owner: list[float] = []
    child: list[float] = []


class Evaluations:
    """A bounded queue, and a thread that runs one child process at a time.

    ``before_end`` is called after the child process has exited and before the status changes.
    """

    def __init__(
        self,
        settings: ServerSettings,
        uploads: Uploads,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.uploads = uploads
        self.before_end = before_end
        self.folder = settings.uploads / "evaluations"
        self._changed = threading.Condition()
        self._known: dict[str, Evaluation] = {}
        self._interrupt: str | None = None  # new status of the running one: cancelled or stopped
        self._closed = False
        self._thread: threading.Thread | None = None

    @cached_property
    def geval(self) -> Any:
        """GEval's tasks on this server."""
        return registry.served_systems.get("geval")(self.settings)

    def submit(self, order: Order | GevalOrder) -> Evaluation:
        """Add an evaluation to the queue."""
        with self._changed:
            self._check_queue()
            now = time.time()
            name = f"{_utc(now, '%Y%m%dT%H%M%S')}-{secrets.token_hex(4)}"
            return self._enqueue(Evaluation(id=name, order=order, created=_utc(now)))

    def resume(self, name: str) -> Evaluation:
        """Add an evaluation to the queue again; finished jobs do not run again."""
        with self._changed:
            evaluation = self.get(name)
            if evaluation.status in (QUEUED, RUNNING):
                raise ApiError(
                    409, f"the evaluation is {evaluation.status}", "wait until it has ended"
                )
            self._check_queue()
            evaluation.status, evaluation.ended, evaluation.code = QUEUED, "", None
            return self._enqueue(evaluation)

    def cancel(self, name: str) -> Evaluation:
        """Remove an evaluation from the queue, or stop it; finished jobs are kept."""
        with self._changed:
            evaluation = self.get(name)
            if evaluation.status == QUEUED:
                self._end(evaluation, CANCELLED)
            elif evaluation.status == RUNNING and evaluation.owner == _process(os.getpid()):
                self._interrupt = CANCELLED
                self._changed.notify_all()
            else:
                hint = "only queued and running evaluations can be cancelled"
                raise ApiError(409, f"the evaluation is {evaluation.status}", hint)
            return evaluation

    def get(self, name: str) -> Evaluation:
        """Return an evaluation by its id."""
        if name not in self._known:
            hint = "see /api/v1/evaluations"
            raise ApiError(404, f'there is no evaluation "{name[:200]}"', hint)
        return self._known[name]

    def all(self) -> list[Evaluation]:
        """Return all evaluations, newest first."""
        with self._changed:
            return list(reversed(self._known.values()))

    def describe(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the public fields of an evaluation, its position in the queue and its output."""
        with self._changed:
            queued = [other.id for other in self._known.values() if other.status == QUEUED]
            fields = evaluation.model_dump(exclude={"owner", "child"})
        position = queued.index(evaluation.id) + 1 if evaluation.id in queued else None
        return {**fields, "position": position, "output": self._output(evaluation)}

    def _output(self, evaluation: Evaluation) -> str:
        try:
            with self._log(evaluation).open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - 4 * MAX_OUTPUT, 0))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        # clients do not see paths of this machine
        public_names = {
            self.settings.folder: "DIR",
            **{path: path.name for path in self.settings.define},
        }
        public_names |= {self.settings.geval_gold: "GOLD"} if self.settings.geval_gold else {}
        for path, name in public_names.items():
            text = text.replace(str(path.absolute()), name)
        return text[-MAX_OUTPUT:]

    def _check_queue(self) -> None:
        if self._closed:
            raise ApiError(503, "the server is shutting down", "", {"retry-after": "30"})
        queued = sum(evaluation.status == QUEUED for evaluation in self._known.values())
        if queued >= self.settings.queue:
            hint = f"{queued} evaluations are queued; try again later, or cancel one"
            raise ApiError(429, "the queue is full", hint, {"retry-after": "60"})

    def _enqueue(self, evaluation: Evaluation) -> Evaluation:
        self._known.pop(evaluation.id, None)
        self._known[evaluation.id] = evaluation
        self._write(evaluation)
        ended = [e for e in self._known.values() if e.status not in (QUEUED, RUNNING)]
        for old in ended[: max(len(self._known) - MAX_REMEMBERED, 0)]:
            del self._known[old.id]
            for path in (self._log(old), self.folder / f"{old.id}.json"):
                path.unlink(missing_ok=True)
        self._changed.notify_all()
        return evaluation

    def start(self) -> None:
        """Load the evaluations of earlier servers and start the thread."""
        with self._changed:
            self._load()
        self._thread = threading.Thread(target=self._work, name="evaluations", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the running evaluation; it and the queued ones can be resumed later."""
        with self._changed:
            self._closed = True
            self._interrupt = self._interrupt or STOPPED
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(2 * STOP_GRACE)
        with self._changed:
            for evaluation in self._known.values():
                if evaluation.status == QUEUED:
                    self._end(evaluation, STOPPED)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                chosen = self._next()
                if self._closed or chosen is None:
                    return
                self._interrupt = None
                chosen.status, chosen.started = RUNNING, _utc(time.time())
                chosen.owner = _process(os.getpid())
            try:
                status, chosen.code = self._run(chosen)
            except (OSError, ApiError) as error:
                status, chosen.code = FAILED, None
                self._log(chosen).write_text(f"{error}\n", encoding="utf-8")
            with self._changed:
                self._end(chosen, status)

    def _next(self) -> Evaluation | None:
        return next(
            (evaluation for evaluation in self._known.values() if evaluation.status == QUEUED), None
        )

    def _run(self, evaluation: Evaluation) -> tuple[str, int | None]:
        arguments, options = self._command(evaluation)
        with self._log(evaluation).open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "karat", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        evaluation.child = _process(child.pid)
        self._write(evaluation)
        while child.poll() is None:
            with self._changed:
                if self._interrupt is None:
                    self._changed.wait(0.1)
            if self._interrupt is not None:
                _end_process(child)
                return self._interrupt, child.wait()
        # exit code 1: some jobs failed, which the results show
        return (FINISHED if child.returncode in (0, 1) else FAILED), child.returncode

    def _command(self, evaluation: Evaluation) -> tuple[list[str], dict[str, Any]]:
        """Return the arguments of karat, and the environment and folder of the child process."""
        order, environment = evaluation.order, _environment()
        if isinstance(order, Order):
            return run_arguments(order, self.settings, self.uploads), {"env": environment}
        # run ids contain the path of the vector file, which clients must not see
        folder = self.uploads.find_vectors(order.vectors).absolute().parent
        environment |= {"KARAT_OFFLINE": "1", "COLUMNS": "120"}
        names = {
            "tasks": self.geval.available_tasks(order.tasks),
            "compare_with": self.geval.stored_ids(order.compare_with),
        }
        arguments = geval_arguments(order, names, RESULT + evaluation.id, self.settings)
        return arguments, {"env": environment, "cwd": folder}

    def _end(self, evaluation: Evaluation, status: str) -> None:
        self.before_end()
        evaluation.status, evaluation.ended, evaluation.child = status, _utc(time.time()), []
        self._write(evaluation)

    def _log(self, evaluation: Evaluation) -> Path:
        return self.folder / f"{evaluation.id}.log"

    def _write(self, evaluation: Evaluation) -> None:
        write_atomic(self.folder / f"{evaluation.id}.json", evaluation.model_dump_json(indent=1))

    def _load(self) -> None:
        for path in sorted(self.folder.glob("*.json")):
            try:
                evaluation = Evaluation.model_validate_json(path.read_bytes())
            except (OSError, ValueError):
                continue
            self._known[evaluation.id] = evaluation
            if evaluation.status in (QUEUED, RUNNING) and not _is_alive(evaluation.owner):
                if _is_alive(evaluation.child):  # its server was killed
                    with contextlib.suppress(psutil.Error):
                        _end_process(psutil.Process(int(evaluation.child[0])))
                self._end(evaluation, STOPPED)


def _environment() -> dict[str, str]:
    """Return the environment of child processes: models run code and must not see the token."""
    return {k: v for k, v in os.environ.items() if k != TOKEN_VARIABLE}


def _end_process(process: subprocess.Popen[bytes] | psutil.Process) -> None:
    """Stop a Popen or psutil.Process as Ctrl-C does, keeping finished jobs; or kill its tree."""
    from karat.execution.resources import end_tree

    with contextlib.suppress(OSError, psutil.Error, subprocess.TimeoutExpired):
        process.terminate()
        process.wait(STOP_GRACE)
        return
    end_tree(process.pid)
    process.wait()


def _process(pid: int) -> list[float]:
    try:
        return [pid, psutil.Process(pid).create_time()]
    except psutil.Error:
        return []


def _is_alive(process: list[float]) -> bool:
    """Return whether a process still runs; its id alone may belong to another process by now."""
    return bool(process) and _process(int(process[0])) == process


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) or 0)  # a text is printed
