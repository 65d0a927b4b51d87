"""Entries of definition files: collected, expanded by ``for_each``, and merged by ``extends``.

Mappings merge deeply, everything else replaces. Alternatives are never mixed: a component with
another ``use`` replaces the parent's component, and a dataset with its own location of the data
replaces the parent's location.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from karat.config.yaml_files import (
    DefinitionFormat,
    Key,
    Mistake,
    Node,
    SourceFile,
    describe,
    mistake_at,
    read_supplied,
    read_yaml,
)
from karat.core.registry import definition_formats
from karat.errors import did_you_mean, unknown

MOST_ENTRIES = 10_000
MOST_VALUES = 2_000_000
Row = dict[Key, Node]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def expand(section: str, name: str, node: Node) -> tuple[list[tuple[str, Node]], list[Mistake]]:
    """Return the entries that an entry expands to, and its mistakes.

    An entry without ``for_each`` is returned unchanged, braces included.

    >>> from karat.config.yaml_files import SourceFile, read_yaml
    >>> text = b'{for_each: {n: [16, 32]}, max_rows: "{n}"}'
    >>> entries, _ = expand("tasks", "few-{n}", read_yaml(text, SourceFile("my.yaml"))[0])
    >>> [(name, node.plain()) for name, node in entries]
    [('few-16', {'max_rows': 16}), ('few-32', {'max_rows': 32})]
    """
    if "for_each" not in node.value:
        return [(name, node)], []
    filling = _Filling(section, name)
    rows = filling.rows(node.value["for_each"])
    body = node.renewed({key: value for key, value in node.value.items() if key != "for_each"})
    entries: dict[str, Node] = {}
    for row in filling.few(rows, body, node.value["for_each"]):
        generated = filling.text(name, row, node=node, path=())
        entry = filling.node(body, row, ())
        if generated in entries:
            unused = [f"{{{key}}}" for key in row if f"{{{key}}}" not in name]
            remedy = f"Add {' and '.join(unused)} to the name." if unused else "Use other values."
            text = f'for_each expands to two entries named "{generated}". {remedy}'
            filling.mistakes.append(mistake_at(node, (section, name), text, key=True))
            break
        entries[generated] = entry
    return list(entries.items()), list(dict.fromkeys(filling.mistakes))


class _Filling:
    """Fill the placeholders of one entry and collect the mistakes."""

    def __init__(self, section: str, name: str) -> None:
        self.mistakes: list[Mistake] = []
        self._path: tuple[Key, ...] = (section, name)

    def rows(self, node: Node) -> list[Row]:
        """Return the values of each entry: all combinations of lists, or a list of mappings."""
        if not isinstance(node.value, dict | list):
            text = f"must be a mapping of lists or a list of mappings, got {_what(node)}."
            self._mistake(node, ("for_each",), text)
            return []
        if not node.value:
            self._mistake(node, ("for_each",), "is empty; it must define at least one entry.")
        if isinstance(node.value, dict):
            return self._combinations(node)
        for i, row in enumerate(node.value):
            if not isinstance(row.value, dict):
                self._mistake(row, ("for_each", i), f"must be a mapping, got {_what(row)}.")
        return [row.value for row in node.value if isinstance(row.value, dict)]

    def _combinations(self, node: Node) -> list[Row]:
        for key, values in node.value.items():
            if not isinstance(values.value, list) or not values.value:
                text = "is empty" if values.value == [] else f"must be a list, got {_what(values)}"
                self._mistake(values, ("for_each", key), f"{text}.")
        if self.mistakes:
            return []
        lists = [values.value for values in node.value.values()]
        if math.prod(map(len, lists)) > MOST_ENTRIES:
            self._mistake(node, ("for_each",), f"expands to more than {MOST_ENTRIES:,} entries.")
            return []
        return [dict(zip(node.value, row, strict=True)) for row in itertools.product(*lists)]

    def few(self, rows: list[Row], body: Node, node: Node) -> list[Row]:
        """Return the rows, or none if the entries would have too many values."""
        largest = max((_count(value) for row in rows for value in row.values()), default=1)
        if len(rows) * _count(body) * largest <= MOST_VALUES:
            return rows
        self._mistake(node, ("for_each",), f"expands to more than {MOST_VALUES:,} values.")
        return []

    def node(self, node: Node, row: Row, path: tuple[Key, ...]) -> Node:
        """Return a node with all placeholders filled."""
        if isinstance(node.value, dict):
            for key, value in node.value.items() if path and len(node.value) == 1 else ():
                if key in row and value.value is None and not value.text:
                    self._mistake(node, path, f'put the placeholder in quotes: "{{{key}}}".')
            return node.renewed({k: self.node(n, row, (*path, k)) for k, n in node.value.items()})
        if isinstance(node.value, list):
            return node.renewed([self.node(n, row, (*path, i)) for i, n in enumerate(node.value)])
        if not isinstance(node.value, str) or not _BRACES.search(node.value):
            return node
        whole = _PLACEHOLDER.fullmatch(node.value)
        if whole and whole[1] in row:
            return row[whole[1]]
        text = self.text(node.value, row, node=node, path=path)
        return replace(node, value=text, text=text)

    def text(self, template: str, row: Row, *, node: Node, path: tuple[Key, ...]) -> str:
        """Return a text with its placeholders filled; ``{{`` and ``}}`` become single braces."""

        def filled(match: re.Match[str]) -> str:
            if match[0] in ("{{", "}}"):
                return match[0][0]
            if match[1] is None:
                self._mistake(node, path, f'unmatched "{match[0]}"; write "{match[0] * 2}".')
            elif match[1] not in row:
                known = ", ".join(f"{{{key}}}" for key in row) or "none"
                self._mistake(node, path, f"unknown placeholder {match[0]}. Defined: {known}")
            elif isinstance(row[match[1]].value, dict | list):
                text = f"{match[0]} is {_what(row[match[1]])} and cannot be part of a text."
                self._mistake(node, path, text)
            else:
                return row[match[1]].text
            return match[0]

        return _BRACES.sub(filled, template)

    def _mistake(self, node: Node, path: tuple[Key, ...], text: str) -> None:
        mistake = mistake_at(node, (*self._path, *path), text, key=True)
        self.mistakes.append(replace(mistake, root=True))


def _count(node: Node) -> int:
    """Return the number of values of a node, itself included."""
    if not isinstance(node.value, dict | list):
        return 1
    children = node.value.values() if isinstance(node.value, dict) else node.value
    return 1 + sum(map(_count, children))


def _what(node: Node) -> str:
    return describe(node.value, node.text)


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

    ``replaces`` names files whose entries of the same name it replaces.
    """

    section: str
    name: str
    node: Node
    replaces: tuple[str, ...] = ()

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
        if not file.supplied:
            return self._add_content(file, content)
        supplied = _supplied(content, file)
        self.mistakes += supplied.mistakes
        self.lost |= supplied.lost
        for entry in supplied.found.values():
            self._add(entry)

    def _add_content(self, file: SourceFile, content: bytes) -> None:
        root, mistakes = (read_supplied if file.supplied else read_yaml)(content, file)
        self.mistakes += mistakes
        if root is None:
            self.lost |= bool(mistakes)
        elif foreign := _foreign_format(root):
            made = foreign.translate(root)
            self.mistakes += made.mistakes
            for section, name, node in made.entries:
                self._add(Entry(section, name, node, replaces=foreign.replaces))
        elif not isinstance(root.value, dict):
            sections = ", ".join(SECTIONS)
            text = f"must be a mapping with the sections {sections}, got {_what(root)}."
            self._lose(mistake_at(root, (), text))
        else:
            for section, node in root.value.items():
                self._add_section(str(section), node)

    def _add_section(self, section: str, node: Node) -> None:
        if section not in SECTIONS:
            near = did_you_mean(section, SECTIONS) or f" Sections: {', '.join(SECTIONS)}."
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
        if existing is not None and existing.node.file.label in entry.replaces:
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


def _foreign_format(root: Node) -> DefinitionFormat | None:
    """Return the format of a file that another system wrote, such as the AutoML Benchmark."""
    if not isinstance(root.value, dict | list) or any(name in SECTIONS for name in root.value):
        return None
    formats = map(definition_formats.get, definition_formats)
    return next((each for each in formats if each.recognizes(root)), None)


LONGEST_CHAIN = 100


@dataclass(frozen=True)
class Resolved:
    """An entry with inherited values; not ``sound`` if a parent is missing."""

    node: Node
    mistakes: tuple[Mistake, ...]
    sound: bool
    depth: int


class Inheritance:
    """Resolve entries on demand and cache them."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._resolved: dict[tuple[str, str], Resolved] = {}

    def resolve(self, section: str, name: str, trail: tuple[str, ...] = ()) -> Resolved:
        """Return an entry merged with its parents; later parents override earlier ones."""
        if (section, name) not in self._resolved:
            entry = self._entries.found[section, name]
            self._resolved[section, name] = self._merged(entry, (*trail, name))
        return self._resolved[section, name]

    def _merged(self, entry: Entry, trail: tuple[str, ...]) -> Resolved:
        names, mistakes = _parents(entry)
        sound = not mistakes
        node: Node | None = None
        depth = 0
        for name in names:
            parent, mistake = self._parent(entry, name, trail)
            mistakes += [mistake] if mistake else []
            if parent is None:
                sound = False
                continue
            sound &= parent.sound
            mistakes += parent.mistakes
            depth = max(depth, parent.depth + 1)
            node = merge_entry(entry.section, node, parent.node) if node else parent.node
        node = merge_entry(entry.section, node, entry.node) if node else entry.node
        return Resolved(node, tuple(mistakes), sound, depth)

    def _parent(
        self, entry: Entry, name: Node, trail: tuple[str, ...]
    ) -> tuple[Resolved | None, Mistake | None]:
        section, parent = entry.section, name.value
        path = (section, entry.name, "extends")
        if parent in trail:
            circle = " -> ".join([*trail[trail.index(parent) :], parent])
            return None, mistake_at(name, path, f"circular inheritance: {circle}.")
        if (section, parent) in self._entries.found:
            far = len(trail) > LONGEST_CHAIN
            found = None if far else self.resolve(section, parent, trail)
            if found is None or found.depth >= LONGEST_CHAIN:
                return None, mistake_at(name, path, f"more than {LONGEST_CHAIN} levels of extends.")
            return found, None
        if self._entries.lost:
            return None, None
        names = [other for kind, other in self._entries.found if kind == section]
        text = unknown(singular(section), parent, names).messages[0]
        return None, mistake_at(name, path, text)


def _parents(entry: Entry) -> tuple[list[Node], list[Mistake]]:
    """Return the names in ``extends``, and the mistakes in ``extends`` and ``abstract``."""
    path = (entry.section, entry.name)
    mistakes = []
    abstract = entry.node.child("abstract")
    if abstract is not None and not isinstance(abstract.value, bool):
        text = f"must be true or false, got {_what(abstract)}."
        mistakes.append(mistake_at(abstract, (*path, "abstract"), text, key=True))
    extends = entry.node.child("extends")
    if extends is None:
        return [], mistakes
    names = extends.value if isinstance(extends.value, list) else [extends]
    wrong = [name for name in names if not isinstance(name.value, str) or not name.value]
    if wrong or not names:
        what = _what(wrong[0]) if wrong else "an empty list"
        text = f"must be a name or a list of names, got {what}."
        mistakes.append(mistake_at(extends, (*path, "extends"), text, key=True))
    return [name for name in names if name not in wrong], mistakes


NOT_INHERITED = ("abstract", "extends", "for_each")
COMPONENTS = {"tasks": ("ask", "probe", "split"), "datasets": ("load",)}
"""Keys whose value is a component: the text ``knn`` means ``{use: knn}``."""

PLACES_OF_DATA = ("path", "sources", "load")
"""Keys of a dataset of which exactly one is given."""


def merge(parent: Node, child: Node, *, component: bool = False) -> Node:
    """Return the child merged over the parent; each value keeps its place.

    A mapping whose ``use`` differs from the parent's replaces it. In a ``component``, the parent's
    text is read as ``{use: text}`` if the child is a mapping.

    >>> from karat.config.yaml_files import SourceFile, read_yaml
    >>> def node(text): return read_yaml(text.encode(), SourceFile("my.yaml"))[0]
    >>> merge(node("{a: {x: 1, y: [1, 2]}}"), node("{a: {y: [3]}, b: 2}")).plain()
    {'a': {'x': 1, 'y': [3]}, 'b': 2}
    >>> merge(node("{use: kfold, folds: 5}"), node("{use: holdout}")).plain()
    {'use': 'holdout'}
    """
    if not isinstance(child.value, dict):
        return child
    if component and isinstance(parent.value, str):
        parent = parent.renewed({"use": parent})
    if not isinstance(parent.value, dict):
        return child
    uses = [node.plain() for node in (parent.child("use"), child.child("use")) if node is not None]
    if len(uses) == 2 and uses[0] != uses[1]:
        return child
    merged = dict(parent.value)
    for key, node in child.value.items():
        merged[key] = merge(merged[key], node, component=component) if key in merged else node
    return child.renewed(merged)


def merge_values(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values merged over others.

    >>> merge_values({"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 3}})
    {'a': 1, 'b': {'x': 1, 'y': 3}}
    """
    both = [k for k in above if isinstance(below.get(k), Mapping) and isinstance(above[k], Mapping)]
    return {**below, **above, **{key: merge_values(below[key], above[key]) for key in both}}


def merge_entry(section: str, parent: Node, child: Node) -> Node:
    """Return an entry merged over the one it extends.

    ``abstract``, ``extends`` and ``for_each`` are not inherited. An entry's own ``use`` (a model's
    class) replaces only that key: title, license and parameters stay.
    """
    merged = {key: node for key, node in parent.value.items() if key not in NOT_INHERITED}
    if section == "datasets":
        merged = _without_other_places(merged, child)
    for key, node in child.value.items():
        old = merged.get(key)
        if old is None:
            merged[key] = node
            continue
        if section == "tasks" and key == "dataset" and isinstance(old.value, dict):
            old = old.renewed(_without_other_places(old.value, node))
        merged[key] = merge(old, node, component=key in COMPONENTS.get(section, ()))
    return child.renewed(merged)


def _without_other_places(parent: dict[Key, Node], child: Node) -> dict[Key, Node]:
    """Return the parent without its location of the data if the child gives another."""
    given = [key for key in PLACES_OF_DATA if child.child(key) is not None]
    dropped = set(PLACES_OF_DATA) - set(given) if given else set()
    return {key: node for key, node in parent.items() if key not in dropped}


@dataclass(frozen=True)
class Problem:
    """A mistake at a key path of one entry.

    ``incomplete``: a value is missing, which abstract entries may do; ``meant`` is the path of the
    key that a mistyped one probably means.
    """

    path: tuple[Key, ...]
    text: str
    incomplete: bool = False
    meant: tuple[Key, ...] | None = None
