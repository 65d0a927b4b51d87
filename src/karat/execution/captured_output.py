"""What models print and warn, captured for the log of a job."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

from karat.core.files import encodable

#: number of characters kept at the beginning and at the end of a model's output
LOG_LENGTH = 50_000


class OutputLog(io.TextIOBase):
    """A text stream that keeps the beginning and the end of what is written; cannot be closed."""

    def __init__(self) -> None:
        self.begin, self.end, self.lost = "", "", 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Keep a text, or as much of it as fits."""
        length, text = len(text), encodable(text)
        room = LOG_LENGTH - len(self.begin)
        self.begin += text[:room]
        self.end += text[room:][-LOG_LENGTH:]
        self.lost += max(len(text) - room - LOG_LENGTH, 0)
        if len(self.end) > 2 * LOG_LENGTH:
            self.lost += len(self.end) - LOG_LENGTH
            self.end = self.end[-LOG_LENGTH:]
        return length

    def close(self) -> None:
        """Stay open for later output."""

    def getvalue(self) -> str:
        """Return the kept text."""
        gap = f"\n… {self.lost:,} characters omitted …\n" if self.lost else ""
        return self.begin + gap + self.end


@contextlib.contextmanager
def captured_output(log: OutputLog) -> Iterator[None]:
    """Redirect standard output, standard error and warnings to a log."""
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
