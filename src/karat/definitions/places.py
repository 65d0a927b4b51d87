"""Values with the file and line they come from, and mistakes at such places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Key = str | int


@dataclass(frozen=True)
class SourceFile:
    """A file of definitions: its label in messages and its folder.

    ``supplied`` files belong to the library or an installed package, not to the user.
    """

    label: str
    folder: Path | None = None
    supplied: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place: a scalar, a list of nodes or a mapping of nodes.

    ``line`` is the line of the value, ``key_line`` that of its key, ``text`` the scalar as written
    (``1.10`` for the value 1.1).
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
        """Return a node with another value at the same place."""
        return replace(self, value=value)

    def child(self, key: Key) -> Node | None:
        """Return the node at a key or index, or None."""
        if isinstance(self.value, dict):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            return self.value[key]
        return None

    def nearest(self, path: Sequence[Key]) -> tuple[Node, bool]:
        """Return the node at a path and True, or its nearest existing parent and False."""
        node = self
        for key in path:
            found = node.child(key)
            if found is None:
                return node, False
            node = found
        return node, True

    def plain(self) -> Any:
        """Return the value without places, as new lists and dictionaries."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def leaves(self, path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], Node]]:
        """Yield every scalar and empty collection with its key path."""
        if isinstance(self.value, dict | list) and self.value:
            pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
            for key, node in pairs:
                yield from node.leaves((*path, key))
        else:
            yield path, self


@dataclass(frozen=True)
class Mistake:
    """A mistake: its file, line (0 for the whole file), key path and message.

    Other mistakes at the place of a ``root`` mistake are consequences and are not reported.

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
        return ": ".join(text for text in (place, format_path(self.path), self.text) if text)

    @property
    def place(self) -> tuple[Any, ...]:
        """The place in the file: the same for all entries that inherit the mistake."""
        return (self.file, self.line, self.path[2:])


def format_mistakes(mistakes: Iterable[Mistake], files: Sequence[str] = ()) -> list[str]:
    """Return the messages of the mistakes, without duplicates, sorted by file and line."""
    mistakes = list(mistakes)
    roots = {mistake.place for mistake in mistakes if mistake.root}
    unique: dict[Any, Mistake] = {}
    for mistake in mistakes:
        if mistake.root or mistake.place not in roots:
            unique.setdefault((mistake.place, mistake.text), mistake)
    order = {file: i for i, file in enumerate(files)}
    ordered = sorted(unique.values(), key=lambda m: (order.get(m.file, len(order)), m.line))
    return [str(mistake) for mistake in ordered]


def mistake_at(node: Node, path: Sequence[Key], text: str, *, key: bool = False) -> Mistake:
    """Return a mistake at the line of a node's value or of its key."""
    return Mistake(node.file.label, node.key_line if key else node.line, tuple(path), text)


def format_path(path: Sequence[Key]) -> str:
    """Return a key path as text.

    >>> format_path(("suites", "small", "tasks", 2))
    'suites.small.tasks[2]'
    """
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    return "".join(parts).removeprefix(".")


def describe(value: Any, text: str = "") -> str:
    """Describe a value for a message.

    >>> describe("x"), describe(1.1, "1.10"), describe(None), describe([])
    ('the text "x"', 'the number 1.10', 'null', 'a list')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return text or str(value).lower()
    if isinstance(value, int | float):
        return f"the number {text or value}"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) <= 60 else f'the text "{value[:57]}…"'
    return "a list" if isinstance(value, list | tuple) else "a mapping"
