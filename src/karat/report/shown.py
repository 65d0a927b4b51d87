"""The models and tasks of a report page by index, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from karat.errors import FAILURES
from karat.report.compact import compact, size
from karat.results.run import Run

#: maximum number of sentences of one kind
MAX_SENTENCES = 5


@dataclass(frozen=True)
class ShownRun:
    """A run, the index of its model, the indices of its tasks by name, and its records."""

    run: Run
    model: int
    tasks: dict[str, int]
    records: list[dict[str, Any]]

    def jobs(self, *statuses: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of jobs with one of these statuses, each with the index of its task."""
        for record in self.records:
            if record["status"] in statuses and record["task"] in self.tasks:
                yield self.tasks[record["task"]], record


@dataclass(frozen=True)
class Shown:
    """Names in the order of the page; ``kinds`` are those of the tasks."""

    models: list[str]
    tasks: list[str]
    kinds: list[str]
    runs: list[ShownRun] = field(default_factory=list)

    @cached_property
    def done(self) -> dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]]:
        """The run and records of successful jobs, by indices of task and model."""
        found: dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]] = {}
        for run in self.runs:
            for task, record in run.jobs("ok"):
                found.setdefault((task, run.model), (run.run, []))[1].append(record)
        return found

    @property
    def failed(self) -> Iterator[tuple[ShownRun, int, dict[str, Any]]]:
        """The failed jobs with the indices of their tasks."""
        for run in self.runs:
            yield from ((run, task, record) for task, record in run.jobs(*FAILURES))

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield indices of task and model: the best model of every task, then the next of each."""
        queues: dict[int, list[int]] = {}
        for task, model in sorted(self.done):
            queues.setdefault(task, []).append(model)
        for turn in range(max(map(len, queues.values()), default=0)):
            yield from ((task, queue[turn]) for task, queue in queues.items() if turn < len(queue))


@dataclass
class Budget:
    """The number of bytes left for a section of the page."""

    left: int

    def take(self, value: Any) -> bool:
        """Reserve room for a value; return False if there is too little."""
        needed = size(compact(value))
        if needed > self.left:
            return False
        self.left -= needed
        return True


def some(sentences: Sequence[str], more: Callable[[int], str]) -> list[str]:
    """Return the first sentences, and one that counts the others.

    >>> some(["a.", "b.", "c.", "d.", "e.", "f.", "g."], lambda n: f"{n} more.")[-2:]
    ['e.', '2 more.']
    """
    rest = len(sentences) - MAX_SENTENCES
    return [*sentences[:MAX_SENTENCES], *([more(rest)] if rest > 0 else [])]


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "model"), count(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
