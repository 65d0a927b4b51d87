"""Values that know where they were written, and mistakes that say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Key = str | int


@dataclass(frozen=True)
class SourceFile:
    """A file of definitions: what people read in messages, and the folder it stands in.

    ``supplied`` files come with the library or an installed package, not from the user.
    """

    label: str
    folder: Path | None = None
    supplied: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place: a plain value, a list of nodes or a mapping of nodes.

    ``line`` is where the value starts, ``key_line`` where its key stands, ``text`` a plain value as
    it was written (``1.10``, where the value is 1.1).
    """

    value: Any
    file: SourceFile
    line: int
    key_line: int
    text: str = ""

    @property
    def place(self) -> str:
        """File and line of the value, ``tasks.yaml:14``."""
        return f"{self.file.label}:{self.line}"

    def renewed(self, value: Any) -> Node:
        """Return the same place with another value."""
        return replace(self, value=value)

    def child(self, key: Key) -> Node | None:
        """Return the node under a key or at a position, or nothing."""
        if isinstance(self.value, dict):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            return self.value[key]
        return None

    def nearest(self, path: Sequence[Key]) -> tuple[Node, bool]:
        """Return the node at a path, or the last one on the way to it and False."""
        node = self
        for key in path:
            found = node.child(key)
            if found is None:
                return node, False
            node = found
        return node, True

    def plain(self) -> Any:
        """Return the value alone, without places, as new lists and dictionaries."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def leaves(self, path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], Node]]:
        """Yield every value that holds no other, with its key path."""
        if isinstance(self.value, dict | list) and self.value:
            pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
            for key, node in pairs:
                yield from node.leaves((*path, key))
        else:
            yield path, self


@dataclass(frozen=True)
class Mistake:
    """One mistake: its file, its line (0 for the file as a whole), its key path, and what to do.

    What else is wrong at the place of a ``root`` mistake follows from it and is not told.

    >>> print(Mistake("my.yaml", 14, ("tasks", "churn", "metrcs"), "unknown key."))
    my.yaml:14: tasks.churn.metrcs: unknown key.
    """

    file: str
    line: int
    path: tuple[Key, ...]
    text: str
    root: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, written(self.path), self.text) if part)

    @property
    def place(self) -> tuple[Any, ...]:
        """Where it was written: the same for all entries that inherit it."""
        return (self.file, self.line, self.path[2:])


def told(mistakes: Iterable[Mistake], files: Sequence[str] = ()) -> list[str]:
    """Return the messages, each mistake once, in the order of the files and their lines."""
    mistakes = list(mistakes)
    roots = {mistake.place for mistake in mistakes if mistake.root}
    once: dict[Any, Mistake] = {}
    for mistake in mistakes:
        if mistake.root or mistake.place not in roots:
            once.setdefault((mistake.place, mistake.text), mistake)
    order = {file: i for i, file in enumerate(files)}
    ordered = sorted(once.values(), key=lambda m: (order.get(m.file, len(order)), m.line))
    return [str(mistake) for mistake in ordered]


def mistake_at(node: Node, path: Sequence[Key], text: str, *, key: bool = False) -> Mistake:
    """Return the mistake of a node, at the line of its value or of its key."""
    return Mistake(node.file.label, node.key_line if key else node.line, tuple(path), text)


def written(path: Sequence[Key]) -> str:
    """Return a key path as people write it.

    >>> written(("suites", "small", "tasks", 2))
    'suites.small.tasks[2]'
    """
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    return "".join(parts).removeprefix(".")


def described(value: Any, text: str = "") -> str:
    """Return what a value is, in words for a message.

    >>> described("x"), described(1.1, "1.10"), described(None), described([])
    ('the text "x"', 'the number 1.10', 'nothing', 'a list')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return text or str(value).lower()
    if isinstance(value, int | float):
        return f"the number {text or value}"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) <= 60 else f'the text "{value[:57]}…"'
    return "a list" if isinstance(value, list | tuple) else "a mapping"
