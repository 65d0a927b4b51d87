"""What can go wrong, and how it is said: what was wrong, where, and what to do next.

::

    KaratError                a mistake a person can mend
    ├── DefinitionError       in a name, a YAML file or an option: found before anything runs
    ├── DataError             in a table, a text file, a vector file or a download
    │   └── Unavailable       the data cannot be had from here (offline): declines a task
    ├── ContractError         a model, head, metric or corruption broke its promise
    ├── MissingExtra          an optional library is not installed
    └── Declined              a model cannot take a task: shown as not applicable, never a failure
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: the ways a job can end without a score; "declined" is none of them
FAILURES = ("failed", "timeout", "memory")


def plainly(status: str) -> str:
    """Return how a job ended, whatever made it fail.

    >>> plainly("timeout"), plainly("declined")
    ('failed', 'declined')
    """
    return "failed" if status in FAILURES else status


class KaratError(Exception):
    """A mistake a person can mend; printed as one message, never as a traceback."""


class DefinitionError(KaratError):
    """A name, an option or a YAML file is wrong. Holds one message per mistake."""

    def __init__(self, *messages: str) -> None:
        self.messages = messages
        super().__init__("\n".join(messages))


class DataError(KaratError):
    """A data set cannot be used as it is. ``value`` is the setting at fault, where one is."""

    def __init__(self, message: str, value: str | None = None) -> None:
        self.value = value
        super().__init__(message)


class Unavailable(DataError):
    """Data cannot be had from here: no source of it can be reached."""


class ContractError(KaratError):
    """A model, head, metric or corruption broke the promise of its kind."""


class MissingExtra(KaratError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f'{library} is not installed: pip install "karat[{extra}]"')

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        # an exception is otherwise remade from its message alone, in another process
        return type(self), (self.library, self.extra)


class Declined(KaratError):
    """A model cannot take a task. The message is the reason shown to people."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``' Did you mean "x"?'`` for the nearest known name, or nothing.

    >>> did_you_mean("onehott", ["onehot", "random"])
    ' Did you mean "onehot"?'
    >>> did_you_mean("zzz", ["onehot"])
    ''
    """
    lowered = {str(item).lower(): item for item in known}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.6)
    return f' Did you mean "{lowered[near[0]]}"?' if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> DefinitionError:
    """Return the error for a name nobody knows, with the nearest one and where to look.

    >>> print(unknown("model", "onehott", ["onehot"]))
    there is no model "onehott". Did you mean "onehot"?   (karat list models)
    """
    plural = kind + "s"
    return DefinitionError(
        f'there is no {kind} "{name}".{did_you_mean(name, known)}   (karat list {plural})'
    )


class KnowsNothing(Declined):
    """A model knows none of the items it is asked about: its coverage is 0."""
