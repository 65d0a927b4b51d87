"""Collect the entries of all files: sections, ``for_each``, unique names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from karat.definitions.amlb import REPLACED, shape_of, translate
from karat.definitions.for_each import expand
from karat.definitions.places import Mistake, Node, SourceFile, describe, mistake_at
from karat.definitions.strict_yaml import read_yaml
from karat.errors import did_you_mean

SECTIONS = ("models", "tasks", "suites", "datasets", "constraints")

_NAME = re.compile(r"(?![-. ])[^/\\:{}\x00-\x1f]+(?<! )")


def singular(section: str) -> str:
    """Return the singular of a section's name.

    >>> singular("tasks")
    'task'
    """
    return section.removesuffix("s")


@dataclass(frozen=True)
class Entry:
    """One definition as written, before inheritance.

    A ``foreign`` one, of an AutoML Benchmark file, replaces the built-in one of the same name.
    """

    section: str
    name: str
    node: Node
    foreign: bool = False

    @property
    def abstract(self) -> bool:
        """Whether it can only be extended."""
        node = self.node.child("abstract")
        return node is not None and node.value is True

    @property
    def hidden(self) -> bool:
        """Whether it cannot be selected: it is abstract or refused."""
        node = self.node.child("refuse")
        return self.abstract or (node is not None and node.value is not None)


@dataclass
class Entries:
    """All entries by section and name; ``lost`` if a mistake may hide further entries."""

    found: dict[tuple[str, str], Entry] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    lost: bool = False

    def add_file(self, file: SourceFile, content: bytes) -> None:
        """Add the entries of a file."""
        if file.supplied:
            self._add_all(_supplied(content, file))
        else:
            self._add_content(file, content)

    def _add_all(self, others: Entries) -> None:
        self.mistakes += others.mistakes
        self.lost |= others.lost
        for entry in others.found.values():
            self._add(entry)

    def _add_content(self, file: SourceFile, content: bytes) -> None:
        root, mistakes = read_yaml(content, file)
        self.mistakes += mistakes
        if root is None:
            self.lost |= bool(mistakes)
        elif _is_foreign(root):
            made = translate(root)
            self.mistakes += made.mistakes
            for section, name, node in made.entries:
                self._add(Entry(section, name, node, foreign=True))
        elif not isinstance(root.value, dict):
            text = f"must be a mapping with the sections {_listed(SECTIONS)}, got {_what(root)}."
            self._lose(mistake_at(root, (), text))
        else:
            for section, node in root.value.items():
                self._add_section(str(section), node)

    def _add_section(self, section: str, node: Node) -> None:
        if section not in SECTIONS:
            near = did_you_mean(section, SECTIONS) or f" Sections: {_listed(SECTIONS)}."
            self._lose(mistake_at(node, (section,), f"unknown section.{near}", key=True))
        elif isinstance(node.value, dict):
            for name, entry in node.value.items():
                self._add_written(section, name, entry)
        elif node.value is not None:
            text = f"must be a mapping of names to definitions, got {_what(node)}."
            self._lose(mistake_at(node, (section,), text, key=True))

    def _add_written(self, section: str, name: str | int, node: Node) -> None:
        if not isinstance(name, str):
            text = "a name must be text; put it in quotes."
            self._lose(mistake_at(node, (section, str(name)), text, key=True))
        elif not isinstance(node.value, dict):
            text = f"must be a mapping, got {_what(node)}."
            self._lose(mistake_at(node, (section, name), text, key=True))
        else:
            made, mistakes = expand(section, name, node)
            self.mistakes += mistakes
            self.lost |= any(mistake.path[2:3] in ((), ("for_each",)) for mistake in mistakes)
            for made_name, made_node in made:
                self._add(Entry(section, made_name, made_node))

    def _add(self, entry: Entry) -> None:
        path = (entry.section, entry.name)
        existing = self.found.get(path)
        if existing is not None and entry.foreign and existing.node.file.label in REPLACED:
            del self.found[path]
        first = self.found.setdefault(path, entry)
        if not _NAME.fullmatch(entry.name):
            text = 'a name must not contain "/", "\\", ":" or braces, nor start with "." or "-".'
            self.mistakes.append(mistake_at(entry.node, path, text, key=True))
        if first is not entry:
            text = (
                f'duplicate {singular(entry.section)} "{entry.name}" '
                f"({first.node.file.label}:{first.node.key_line}). "
                f"Choose another name; to build on the existing one, use extends: {entry.name}."
            )
            self.mistakes.append(mistake_at(entry.node, path, text, key=True))

    def _lose(self, mistake: Mistake) -> None:
        self.mistakes.append(mistake)
        self.lost = True


@lru_cache(maxsize=64)
def _supplied(content: bytes, file: SourceFile) -> Entries:
    """Return the entries of a supplied file, cached: every evaluation needs them."""
    entries = Entries()
    entries._add_content(file, content)
    return entries


def _is_foreign(root: Node) -> bool:
    """Return whether it is a file of the AutoML Benchmark."""
    if not isinstance(root.value, dict | list) or any(name in SECTIONS for name in root.value):
        return False
    return bool(shape_of(root))


def _what(node: Node) -> str:
    return describe(node.value, node.text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
