"""Shown: the models and tasks of a page by their places, and the runs they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from karat.errors import FAILURES
from karat.report.compact import compact, size
from karat.results.run import Run

#: so many sentences of one sort are enough
MOST_SENTENCES = 5


@dataclass(frozen=True)
class Told:
    """A run, its model's place on the board, the places of its tasks by name, and its records."""

    run: Run
    model: int
    tasks: dict[str, int]
    records: list[dict[str, Any]]

    def jobs(self, *statuses: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of jobs that ended so, each with the place of its task."""
        for record in self.records:
            if record["status"] in statuses and record["task"] in self.tasks:
                yield self.tasks[record["task"]], record


@dataclass(frozen=True)
class Shown:
    """Names in the order of the page; ``kinds`` are those of the tasks."""

    models: list[str]
    tasks: list[str]
    kinds: list[str]
    runs: list[Told] = field(default_factory=list)

    @cached_property
    def done(self) -> dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]]:
        """The run and the records of the jobs that have answers, by places of task and model."""
        found: dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]] = {}
        for told in self.runs:
            for task, record in told.jobs("ok"):
                found.setdefault((task, told.model), (told.run, []))[1].append(record)
        return found

    @property
    def failed(self) -> Iterator[tuple[Told, int, dict[str, Any]]]:
        """The jobs that failed, with the places of their tasks."""
        for told in self.runs:
            yield from ((told, task, record) for task, record in told.jobs(*FAILURES))

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield places of tasks and models: the best model of every task, then each one's next."""
        queues: dict[int, list[int]] = {}
        for task, model in sorted(self.done):
            queues.setdefault(task, []).append(model)
        for turn in range(max(map(len, queues.values()), default=0)):
            yield from ((task, queue[turn]) for task, queue in queues.items() if turn < len(queue))


@dataclass
class Budget:
    """Bytes that are left of what a part of the page may take."""

    left: int

    def take(self, value: Any) -> bool:
        """Return whether there is room for a value, and keep it for that."""
        needed = size(compact(value))
        if needed > self.left:
            return False
        self.left -= needed
        return True


def some(sentences: Sequence[str], more: Callable[[int], str]) -> list[str]:
    """Return a few sentences, and one that counts the others.

    >>> some(["a.", "b.", "c.", "d.", "e.", "f.", "g."], lambda n: f"{n} more.")[-2:]
    ['e.', '2 more.']
    """
    rest = len(sentences) - MOST_SENTENCES
    return [*sentences[:MOST_SENTENCES], *([more(rest)] if rest > 0 else [])]


def count(number: int, noun: str) -> str:
    """Return a number of things.

    >>> count(1, "model"), count(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
