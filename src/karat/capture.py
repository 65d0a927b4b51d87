"""Capture: what a model prints and warns of, kept for its log."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

#: of what a model prints, so many characters at the beginning and at the end are kept
LOG_LENGTH = 50_000


class Log(io.TextIOBase):
    """What a model prints: its beginning and its end, however much it is; it cannot be closed."""

    def __init__(self) -> None:
        self.begin, self.end, self.lost = "", "", 0

    def writable(self) -> bool:
        """Return that it may be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep a text, or as much of it as there is room for."""
        room = LOG_LENGTH - len(self.begin)
        self.begin += text[:room]
        self.end += text[room:][-LOG_LENGTH:]
        self.lost += max(len(text) - room - LOG_LENGTH, 0)
        if len(self.end) > 2 * LOG_LENGTH:
            self.lost += len(self.end) - LOG_LENGTH
            self.end = self.end[-LOG_LENGTH:]
        return len(text)

    def close(self) -> None:
        """Stay open: what comes later must find a place."""

    def getvalue(self) -> str:
        """Return all that was kept."""
        gap = f"\n… {self.lost:,} characters are left out here …\n" if self.lost else ""
        return self.begin + gap + self.end


@contextlib.contextmanager
def captured(log: Log) -> Iterator[None]:
    """Send what is printed, and warnings, into a log."""
    with (
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, category, *_, **__: log.write(  # type: ignore[assignment]
            f"{category.__name__}: {message}\n"
        )
        yield
