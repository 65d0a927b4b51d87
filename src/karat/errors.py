"""Exception classes. Messages name what is wrong, where, and what to do next.

::

    KaratError                an error the user can fix
    ├── DefinitionError       a wrong name, YAML file or option: found before anything runs
    ├── DataError             a wrong table, text file, vector file or download
    │   └── Unavailable       the data cannot be reached (offline): declines a task
    ├── ContractError         a model, head, metric or corruption violates its contract
    ├── MissingExtra          an optional library is not installed
    ├── DiskFull              a disk or a quota is full
    ├── JobsFailed            jobs of a run failed; raised only on request
    ├── Postponed             an endpoint or a budget stops a job for now: resume runs it
    └── Declined              a model cannot run a task: shown as not applicable, not as failed
        └── NoVectors         it has a vector for none of the items

A KaratWarning tells of failed jobs when nothing is raised.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

#: the statuses of failed jobs; "declined" is not a failure
FAILURES = ("failed", "timeout", "memory")


def simplified_status(status: str) -> str:
    """Return the status of a job, with one name for all failures.

    >>> simplified_status("timeout"), simplified_status("declined")
    ('failed', 'declined')
    """
    return "failed" if status in FAILURES else status


class KaratError(Exception):
    """An error the user can fix; printed as one message, never as a traceback."""


class DefinitionError(KaratError):
    """A name, an option or a YAML file is wrong. Holds one message per mistake."""

    def __init__(self, *messages: str) -> None:
        self.messages = messages
        super().__init__("\n".join(messages))


class DataError(KaratError):
    """A dataset cannot be used as it is. ``value`` is the wrong setting, if there is one."""

    def __init__(self, message: str, value: str | None = None) -> None:
        self.value = value
        super().__init__(message)


class Unavailable(DataError):
    """No source of the data can be reached."""


class ContractError(KaratError):
    """A model, head, metric or corruption violates the contract of its kind."""


class MissingExtra(KaratError):
    """An optional library is required and not installed."""

    def __init__(self, library: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f'{library} is not installed: pip install "karat[{extra}]"')

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        # unpickling would otherwise call the class with the message alone
        return type(self), (self.library, self.extra)


class JobsFailed(KaratError):
    """Jobs failed, or a model ran on no task. ``runs`` are the finished runs."""

    def __init__(self, message: str, runs: Sequence[Any] = ()) -> None:
        self.runs = list(runs)
        super().__init__(message)


class DiskFull(KaratError):
    """A disk or a quota is full. ``path`` could not be written, for this ``reason``."""

    def __init__(self, path: str, reason: str, then: str = "repeat the command") -> None:
        self.path = path
        self.reason = reason
        self.then = then
        super().__init__(f"cannot write {path}: {reason}; free some space there, then {then}.")

    def __reduce__(self) -> tuple[type[DiskFull], tuple[str, str, str]]:
        return type(self), (self.path, self.reason, self.then)


class Postponed(KaratError):
    """A job cannot go on now; it leaves no record, and ``resume`` runs it.

    An endpoint has refused for too long, or the next request might pass the budget.
    """


class KaratWarning(UserWarning):
    """A run has finished, but some of its jobs have no score."""


class Declined(KaratError):
    """A model cannot run a task. The message is the reason shown to the user."""


class NoVectors(Declined):
    """A model has a vector for none of the items: its coverage is 0."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the caller's code outside Karat, however deep in Karat it is."""
    frame: FrameType | None = sys._getframe(1)
    level, outside = 2, 2
    while frame is not None:
        level += 1
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "karat":
            outside = level
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=outside)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``' Did you mean "x"?'`` for the closest known name, or an empty string.

    >>> did_you_mean("onehott", ["onehot", "random"])
    ' Did you mean "onehot"?'
    >>> did_you_mean("zzz", ["onehot"])
    ''
    """
    lowered = {str(item).lower(): item for item in names}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.6)
    return f' Did you mean "{lowered[near[0]]}"?' if near else ""


def unknown(kind: str, name: str, names: Iterable[str]) -> DefinitionError:
    """Return the error for an unknown name, with the closest name and the command that lists all.

    >>> print(unknown("model", "onehott", ["onehot"]))
    there is no model "onehott". Did you mean "onehot"?   (karat list models)
    """
    plural = kind + "s"
    return DefinitionError(
        f'there is no {kind} "{name}".{did_you_mean(name, names)}   (karat list {plural})'
    )
