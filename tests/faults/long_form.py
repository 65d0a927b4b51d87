"""The long form of the tests, ``make faults``: as many cases as fit in its minutes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

FULL = os.environ.get("KARAT_FAULTS") == "full"
#: minutes of the whole long form
MINUTES = float(os.environ.get("KARAT_FAULTS_MINUTES", "10"))
#: the time at which it ends; the first process sets it for the others
END = "KARAT_FAULTS_END"
#: the part of the whole time that a test of one command or of one kind of file takes
SHARE = 1 / 90
#: seconds that a test may take beyond the end before it counts as one that hangs
GRACE = 90


def begin() -> None:
    """Set the end of the long form, unless another process has."""
    os.environ.setdefault(END, str(time.time() + 60 * MINUTES))


def seconds_left() -> float:
    """Return the seconds until the long form ends."""
    return float(os.environ[END]) - time.time()


def share(part: float = SHARE) -> float:
    """Return the seconds that a test may take."""
    return min(part * 60 * MINUTES, seconds_left()) if FULL else 0.0


def cases(short: int) -> Iterator[int]:
    """Yield the numbers of the cases: a few, or in the long form as many as fit in its time."""
    end, number = time.monotonic() + share(), 0
    while number < short or time.monotonic() < end:
        yield number
        number += 1
