"""Why a job failed or was declined: its status, its one-line message and its log."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from karat.core.files import encodable
from karat.core.formatting import cut_text
from karat.errors import Declined, KaratError, MissingExtra, Postponed
from karat.execution.resources import TimedOut

#: maximum length of a message in results.csv; the job's log has the whole text
INFO_LENGTH = 200
#: the status of a job that leaves no record because it cannot go on now
POSTPONED = "postponed"


@dataclass(frozen=True)
class JobFailure:
    """A failed or declined job: its status, its one-line message and its log."""

    status: str
    info: str
    log: str

    @classmethod
    def by(cls, error: BaseException) -> JobFailure:
        """Return the status, message and log of an error."""
        if isinstance(error, Declined | MissingExtra):
            return cls("declined", short_message(str(error)), "")
        if isinstance(error, FailedEmbedding):
            return error.broken
        if isinstance(error, Postponed):
            return cls(POSTPONED, " ".join(encodable(str(error)).split()), "")
        log = "".join(traceback.format_exception(error))
        if isinstance(error, TimedOut):
            return cls("timeout", "over the time limit", log)
        # PyTorch raises a RuntimeError with one of these messages
        words = ("can't allocate memory", "out of memory", "cannot allocate memory")
        memory = isinstance(error, MemoryError) or any(w in str(error).lower() for w in words)
        info = short_message(f"{type(error).__name__}: {error}")
        return cls("memory" if memory else "failed", info, log)


class FailedEmbedding(KaratError):
    """The vectors of a model could not be computed before the jobs ran."""

    def __init__(self, broken: JobFailure) -> None:
        self.broken = broken
        super().__init__(broken.info)


def short_message(text: str) -> str:
    """Return a message on one line that fits into results.csv."""
    return cut_text(" ".join(encodable(text).split()), INFO_LENGTH)
