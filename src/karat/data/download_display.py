"""Shows a download: one line with a bar on a terminal, a line now and then in a log, or nothing.

Nothing is shown unless a caller asks for it with ``shown_downloads``.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol

from karat.core.formatting import percent

#: seconds between two lines about the same download, where there is no terminal
PAUSE = 10.0
MEGABYTE = 10**6

_shown: ContextVar[bool] = ContextVar("shown", default=False)


class Download(Protocol):
    """Receives how many bytes of a file have arrived."""

    def resize(self, done: int, total: int | None) -> None:
        """Receive the number of bytes at hand and of the whole file, None if it is unknown."""

    def advance(self, done: int) -> None:
        """Receive the number of bytes at hand."""


@contextlib.contextmanager
def shown_downloads(show: bool = True) -> Iterator[None]:
    """Show the downloads inside on standard error, or show none."""
    token = _shown.set(show)
    try:
        yield
    finally:
        _shown.reset(token)


@contextlib.contextmanager
def download_shown(name: str) -> Iterator[Download]:
    """Show the download of a file inside, if downloads are shown."""
    if not _shown.get():
        yield _Silent()
    elif sys.stderr.isatty():
        with _bar(name) as bar:
            yield bar
    else:
        yield _Lines(name)


@contextlib.contextmanager
def unmeasured_download_shown(name: str) -> Iterator[None]:
    """Show a download inside by a library that does not tell how much has arrived."""
    with download_shown(name) as display:
        display.resize(0, None)
        yield


class _Silent:
    """Shows nothing."""

    def resize(self, done: int, total: int | None) -> None:
        """Do nothing."""

    def advance(self, done: int) -> None:
        """Do nothing."""


class _Lines:
    """Prints a line when the transfer starts, and one every few seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total: int | None = None
        self.printed: float | None = None

    def resize(self, done: int, total: int | None) -> None:
        """Print the size once: a transfer that is resumed is the same download."""
        self.total = total
        if self.printed is None:
            size = "" if total is None else f" ({_megabytes(total)} MB)"
            self._print(f"downloading {self.name}{size}")

    def advance(self, done: int) -> None:
        """Print the share that has arrived every few seconds."""
        if self.printed is None or time.monotonic() - self.printed < PAUSE:
            return
        whole = " MB"
        if self.total:
            whole = f" of {_megabytes(self.total)} MB ({percent(done / self.total, 0)})"
        self._print(f"downloading {self.name}: {_megabytes(done)}{whole}")

    def _print(self, text: str) -> None:
        self.printed = time.monotonic()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Download]:
    """Show a bar with percent and size, which stays on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("downloading {task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        DownloadColumn(),
    )
    console = Console(file=sys.stderr, highlight=False)
    with Bars(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bars:
        task = bars.add_task(name, total=None)

        class Bar:
            def resize(self, done: int, total: int | None) -> None:
                bars.update(task, completed=done, total=total)

            def advance(self, done: int) -> None:
                bars.update(task, completed=done)

        yield Bar()


def _megabytes(size: int) -> str:
    """Return a number of bytes in megabytes.

    >>> _megabytes(123_456_789), _megabytes(600_000), _megabytes(900)
    ('123', '0.6', '0.001')
    """
    number = size / MEGABYTE
    return (
        f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 0.1 else f"{number:.3f}"
    )
