"""Evaluations that were asked for over the web: checked, queued, and run one after the other."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.core.files import write_atomic
from karat.serve.orders import Order, command
from karat.serve.replies import Refused
from karat.serve.settings import TOKEN, Settings
from karat.serve.uploads import Uploads

QUEUED, RUNNING, FINISHED, FAILED, CANCELLED, STOPPED = STATES = (
    *("queued", "running", "finished", "failed", "cancelled", "stopped"),
)
#: seconds a run has to end by itself when it is told to
GRACE = 10.0
#: how many are remembered, and how much of what they said
REMEMBERED, SAID = 200, 4000
#: exit codes of ``karat run``: 0 all went well, 1 some jobs failed and are rows
WELL = (0, 1)


@dataclass
class Evaluation:
    """One evaluation: what was asked, and what became of it."""

    id: str
    order: Order
    status: str = QUEUED
    created: str = ""
    started: str = ""
    ended: str = ""
    code: int | None = None
    #: number and birth of the server's process and of the child's
    owner: list[float] = field(default_factory=list)
    child: list[float] = field(default_factory=list)


class Evaluations:
    """A bounded queue, and a thread that runs what is in it; one child process at a time."""

    def __init__(self, settings: Settings, uploads: Uploads) -> None:
        self.settings = settings
        self.uploads = uploads
        self.folder = settings.uploads / "evaluations"
        self._changed = threading.Condition()
        self._known: dict[str, Evaluation] = {}
        self._ending: str | None = None  # what becomes of the running one: cancelled or stopped
        self._closed = False
        self._thread: threading.Thread | None = None

    # -- what is asked ----------------------------------------------------------------------

    def submit(self, order: Order) -> Evaluation:
        """Queue an evaluation, if there is room."""
        with self._changed:
            self._check_room()
            made = Evaluation(f"{_now('%Y%m%dT%H%M%S')}-{secrets.token_hex(4)}", order)
            made.created = _now()
            self._enter(made)
            return made

    def resume(self, name: str) -> Evaluation:
        """Queue an evaluation again; what is finished of it is not done twice."""
        with self._changed:
            found = self.get(name)
            if found.status in (QUEUED, RUNNING):
                raise Refused(409, f"it is {found.status}", "only what has ended can be resumed")
            self._check_room()
            found.status, found.ended, found.code = QUEUED, "", None
            self._enter(found)
            return found

    def cancel(self, name: str) -> Evaluation:
        """Take an evaluation out of the queue, or end it; what is finished of it is kept."""
        with self._changed:
            found = self.get(name)
            if found.status == QUEUED:
                self._end(found, CANCELLED)
            elif found.status == RUNNING and found.owner == _birth(os.getpid()):
                self._ending = CANCELLED
                self._changed.notify_all()
            else:
                raise Refused(409, f"it is {found.status}", "only what is queued or runs can be")
            return found

    def get(self, name: str) -> Evaluation:
        """Return an evaluation by its id."""
        if name not in self._known:
            hint = "/api/v1/evaluations lists those there are"
            raise Refused(404, f'there is no evaluation "{name[:200]}"', hint)
        return self._known[name]

    def all(self) -> list[Evaluation]:
        """Return all evaluations, the newest first."""
        with self._changed:
            return list(reversed(self._known.values()))

    def told(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return what anybody may know of an evaluation."""
        with self._changed:
            waiting = [each.id for each in self._known.values() if each.status == QUEUED]
            facts = {k: v for k, v in asdict(evaluation).items() if k not in ("owner", "child")}
        at = waiting.index(evaluation.id) + 1 if evaluation.id in waiting else None
        return {**facts, "position": at, "said": self._said(evaluation)}

    def _said(self, evaluation: Evaluation) -> str:
        try:
            with self._log(evaluation).open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - 4 * SAID, 0))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        # where things stand on this machine is nobody's business
        hidden = {str(path.absolute()): path.name for path in self.settings.define}
        for path, name in {str(self.settings.folder.absolute()): "DIR", **hidden}.items():
            text = text.replace(path, name)
        return text[-SAID:]

    def _check_room(self) -> None:
        if self._closed:
            raise Refused(503, "the server is about to end", "", {"retry-after": "30"})
        waiting = sum(each.status == QUEUED for each in self._known.values())
        if waiting >= self.settings.queue:
            hint = f"{waiting} evaluations wait; come back later, or cancel one"
            raise Refused(429, "the queue is full", hint, {"retry-after": "60"})

    def _enter(self, evaluation: Evaluation) -> None:
        self._known.pop(evaluation.id, None)
        self._known[evaluation.id] = evaluation
        self._write(evaluation)
        self._forget()
        self._changed.notify_all()

    # -- what is run ------------------------------------------------------------------------

    def start(self) -> None:
        """Remember what earlier servers left, and begin to work."""
        self._remember()
        self._thread = threading.Thread(target=self._work, name="karat-evaluations", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End what runs, so that it can be resumed, and stop working."""
        with self._changed:
            self._closed = True  # it may be said twice
            self._ending = self._ending or STOPPED
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(GRACE + 5)
        with self._changed:
            for each in self._known.values():
                if each.status == QUEUED:
                    self._end(each, STOPPED)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                if self._closed:
                    return
                chosen = self._next()
                assert chosen is not None
                self._ending = None
                chosen.status, chosen.started = RUNNING, _now()
                chosen.owner = _birth(os.getpid())
            try:
                status, code = self._run(chosen)
            except (OSError, Refused) as error:
                status, code = FAILED, None
                self._log(chosen).write_text(f"{error}\n", encoding="utf-8")
            with self._changed:
                chosen.code = code
                self._end(chosen, status)

    def _next(self) -> Evaluation | None:
        return next((each for each in self._known.values() if each.status == QUEUED), None)

    def _run(self, evaluation: Evaluation) -> tuple[str, int | None]:
        words = command(evaluation.order, self.settings, self.uploads)
        # models run code: the token is none of their business
        environment = {k: v for k, v in os.environ.items() if k != TOKEN}
        with self._log(evaluation).open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "karat", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        evaluation.child = _birth(child.pid)
        self._write(evaluation)
        while child.poll() is None:
            with self._changed:
                if self._ending is None:
                    self._changed.wait(0.1)
            if self._ending is not None:
                _end_process(child)
                return self._ending, child.returncode
        return (FINISHED if child.returncode in WELL else FAILED), child.returncode

    def _end(self, evaluation: Evaluation, status: str) -> None:
        evaluation.status, evaluation.ended, evaluation.child = status, _now(), []
        self._write(evaluation)

    # -- what is remembered -----------------------------------------------------------------

    def _log(self, evaluation: Evaluation) -> Path:
        return self.folder / f"{evaluation.id}.log"

    def _write(self, evaluation: Evaluation) -> None:
        text = json.dumps(asdict(evaluation), indent=1)
        write_atomic(self.folder / f"{evaluation.id}.json", text)

    def _remember(self) -> None:
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                found = Evaluation(**{**told, "order": Order(**told["order"])})
            except (OSError, ValueError, TypeError, KeyError):
                continue
            self._known[found.id] = found
            if found.status in (QUEUED, RUNNING) and not _lives(found.owner):
                if _lives(found.child):  # its server was killed, and it works on for nobody
                    _end_left(int(found.child[0]))
                self._end(found, STOPPED)

    def _forget(self) -> None:
        over = [e for e in self._known.values() if e.status not in (QUEUED, RUNNING)]
        for old in over[: max(len(self._known) - REMEMBERED, 0)]:
            del self._known[old.id]
            for end in (".json", ".log"):
                (self.folder / f"{old.id}{end}").unlink(missing_ok=True)


def _end_process(child: subprocess.Popen[bytes]) -> None:
    from karat.execution.resources import end_tree

    with contextlib.suppress(OSError):
        child.terminate()  # as Ctrl-C: the finished jobs are kept
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        end_tree(child.pid)
        child.wait()


def _end_left(pid: int) -> None:
    import psutil

    from karat.execution.resources import end_tree

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        process.terminate()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(GRACE)
            return
    end_tree(pid)


def _birth(pid: int) -> list[float]:
    import psutil

    try:
        return [pid, psutil.Process(pid).create_time()]
    except psutil.Error:
        return []


def _lives(birth: list[float]) -> bool:
    """Return whether a process is still the one it was; numbers of processes are used again."""
    return bool(birth) and _birth(int(birth[0])) == birth


def _now(shape: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime(shape)
