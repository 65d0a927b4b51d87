"""Why a job failed or was declined, by the error that ended it."""

import pytest

from karat.errors import Declined, Postponed
from karat.execution.job_failure import (
    INFO_LENGTH,
    POSTPONED,
    FailedEmbedding,
    JobFailure,
    short_message,
)
from karat.execution.resources import TimedOut


@pytest.mark.parametrize(
    ("error", "status", "info"),
    [
        (ValueError("no\nway"), "failed", "ValueError: no way"),
        (MemoryError("all"), "memory", "MemoryError: all"),
        (RuntimeError("CUDA out of memory"), "memory", "RuntimeError: CUDA out of memory"),
        (TimedOut(), "timeout", "over the time limit"),
        (Declined("not for me"), "declined", "not for me"),
        (Postponed("later"), POSTPONED, "later"),
    ],
)
def test_an_error_has_a_status_and_one_line(error, status, info):
    failure = JobFailure.by(error)
    assert (failure.status, failure.info) == (status, info)
    assert JobFailure.by(FailedEmbedding(failure)) is failure


def test_a_long_message_is_cut():
    assert len(short_message("x" * 1000)) <= INFO_LENGTH
