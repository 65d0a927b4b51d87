"""Definitions: find, load, expand, merge and check the YAML files; report all mistakes at once.

The files are built in, of installed packages (entry points ``karat.definitions``), or the user's.
Entries are expanded by ``for_each`` and merged by ``extends``.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from karat import __version__
from karat.config.yaml_files import (
    DefinitionFormat,
    Key,
    Mistake,
    Node,
    SourceFile,
    describe_value,
    format_mistakes,
    keep,
    mistake_at,
    read_kept,
    read_supplied,
    read_yaml,
    show_definition,
)
from karat.core import registry
from karat.core.extension import builtin_extensions
from karat.core.registry import definition_formats
from karat.errors import DefinitionError, did_you_mean, unknown

MOST_ENTRIES = 10_000
MOST_VALUES = 2_000_000
Row = dict[Key, Node]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
SECTIONS = ("models", "tasks", "suites", "datasets", "constraints")
#: sections whose entries are used as soon as they are looked up
UNREFUSED = ("suites", "datasets", "constraints")
_NAME = re.compile(r"(?![-. ])[^/\\:{}\x00-\x1f]+(?<! )")
LONGEST_CHAIN = 100
NOT_INHERITED = ("abstract", "extends", "for_each")
COMPONENTS = {"tasks": ("ask", "probe", "split"), "datasets": ("load",)}
PLACES_OF_DATA = ("path", "sources", "load")
GROUP = "karat.definitions"
#: the folder of the library: its files are supplied, also those that a command adds
PACKAGE = Path(__file__).parents[1]
ENDINGS = (".yaml", ".yml")
Found = tuple[list[tuple[SourceFile, bytes]], list[Mistake]]
_REGISTRIES = {"models": registry.models, "datasets": registry.datasets}
#: the checked entries that this process used last, by the hash of their files
_KEPT: dict[str, dict[str, Any]] = {}


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
                placeholders = ", ".join(f"{{{key}}}" for key in row) or "none"
                self._mistake(
                    node, path, f"unknown placeholder {match[0]}. Defined: {placeholders}"
                )
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
    return describe_value(node.value, node.text)


def singular(section: str) -> str:
    """Return the singular of a section's name.

    >>> singular("tasks")
    'task'
    """
    return section.removesuffix("s")


@dataclass(frozen=True)
class Entry:
    """One definition as written, before inheritance.

    A ``foreign`` one is of another system's file: it replaces a supplied entry of the same name,
    and its mistakes are the reason why it cannot be selected.
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
        if not file.supplied:
            return self._add_content(file, content)
        supplied = _supplied_entries(content, file)
        self.mistakes += supplied.mistakes
        self.lost |= supplied.lost
        for entry in supplied.found.values():
            self._add(entry)

    def _add_content(self, file: SourceFile, content: bytes) -> None:
        root, mistakes = (read_supplied if file.supplied else read_yaml)(content, file)
        foreign = None if root is None else _foreign_format(root)
        translated = None if foreign is None or root is None else foreign.translate(root)
        self.mistakes += mistakes if translated is None or not translated.left_out else []
        if root is None:
            self.lost |= bool(mistakes)
        elif translated is not None:
            self.mistakes += translated.mistakes
            for section, name, node in translated.entries:
                self._add(Entry(section, name, node, foreign=True))
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
            expanded, mistakes = expand(section, name, node)
            self.mistakes += mistakes
            self.lost |= any(mistake.path[2:3] in ((), ("for_each",)) for mistake in mistakes)
            for made_name, made_node in expanded:
                self._add(Entry(section, made_name, made_node))

    def _add(self, entry: Entry) -> None:
        path = (entry.section, entry.name)
        existing = self.found.get(path)
        if existing is not None and entry.foreign and existing.node.file.supplied:
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
def _supplied_entries(content: bytes, file: SourceFile) -> Entries:
    """Return the entries of a supplied file, cached: every evaluation needs them."""
    entries = Entries()
    entries._add_content(file, content)
    return entries


def _foreign_format(root: Node) -> DefinitionFormat | None:
    """Return the format of a file that another system wrote, such as the AutoML Benchmark."""
    if not isinstance(root.value, dict | list) or any(name in SECTIONS for name in root.value):
        return None
    formats = map(definition_formats.get, definition_formats)
    return next((foreign for foreign in formats if foreign.recognizes(root)), None)


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
        return Resolved(node=node, mistakes=tuple(mistakes), sound=sound, depth=depth)

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
            ancestor = None if far else self.resolve(section, parent, trail)
            if ancestor is None or ancestor.depth >= LONGEST_CHAIN:
                return None, mistake_at(name, path, f"more than {LONGEST_CHAIN} levels of extends.")
            return ancestor, None
        if self._entries.lost:
            return None, None
        names = [other for kind, other in self._entries.found if kind == section]
        # what is named after the missing parent builds on it, as this entry does
        names = [other for other in names if not other.startswith(parent)]
        text = unknown(singular(section), parent, names).messages[0]
        if entry.foreign and "Did you mean" not in text:
            text = f'"{parent}" is not defined here. Add the file that defines it: --define FILE.'
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


"""Keys whose value is a component: the text ``knn`` means ``{use: knn}``."""

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
    own_places = [key for key in PLACES_OF_DATA if child.child(key) is not None]
    dropped = set(PLACES_OF_DATA) - set(own_places) if own_places else set()
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


# -- Definitions: find, load, merge and check the YAML files; report all mistakes at once ---------


def builtin_files() -> Found:
    """Return the built-in definition files, and those of Karat's extensions."""
    files = []
    for inner in ("builtin", "builtin/suites"):
        folder = package_files("karat.config").joinpath(*inner.split("/"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(ENDINGS):
                label = f"karat/config/{inner}/{file.name}"
                files.append((_supplied(file, label), file.read_bytes()))
    for resource in (
        definitions for extension in builtin_extensions() for definitions in extension.definitions
    ):
        package, _, name = resource.partition(":")
        file = package_files(package).joinpath(name)
        files.append((_supplied(file, f"{package.replace('.', '/')}/{name}"), file.read_bytes()))
    return files, []


def installed_files() -> Found:
    """Return the files of installed packages, from entry points ``package:file.yaml``."""
    files = []
    mistakes = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package, _, name = point.value.partition(":")
        label = f"{package.replace('.', '/')}/{name}"
        try:
            file = package_files(package).joinpath(*name.split("/"))
            files.append((_supplied(file, label), file.read_bytes()))
        except Exception as error:  # importing a package may raise anything
            text = (
                f'the entry point "{point.name}" of {GROUP} refers to "{point.value}", which '
                f"cannot be read ({type(error).__name__}: {error}); fix or uninstall that package."
            )
            mistakes.append(Mistake(file=label, line=0, path=(), text=text))
    return files, mistakes


def user_files(paths: Sequence[Path | str]) -> Found:
    """Return the given files and all YAML files of the given folders, without duplicates."""
    files: dict[str, tuple[SourceFile, bytes]] = {}
    mistakes = []
    for path_given in map(Path, paths):
        chosen = [path_given]
        if path_given.is_dir():
            inside = (
                path for path in path_given.iterdir() if path.suffix in ENDINGS and path.is_file()
            )
            chosen = sorted(path for path in inside if not path.name.startswith("."))
        if not chosen:
            mistakes.append(
                Mistake(
                    file=_label(path_given), line=0, path=(), text="contains no .yaml or .yml file."
                )
            )
        for path in chosen:
            try:
                ours = path.is_absolute() and path.is_relative_to(PACKAGE)
                label = str(path.relative_to(PACKAGE.parent)) if ours else _label(path)
                file = SourceFile(label, path.absolute().parent, supplied=ours)
                files.setdefault(os.path.realpath(path), (file, path.read_bytes()))
            except FileNotFoundError:
                parent = path.absolute().parent
                names = [other.name for other in parent.iterdir()] if parent.is_dir() else []
                text = f"no such file or folder.{did_you_mean(path.name, names)}"
                mistakes.append(Mistake(file=_label(path), line=0, path=(), text=text))
            except OSError as error:
                text = f"cannot be read: {error.strerror or error}."
                mistakes.append(Mistake(file=_label(path), line=0, path=(), text=text))
    return list(files.values()), mistakes


def _supplied(file: Traversable, label: str) -> SourceFile:
    return SourceFile(label, file.parent if isinstance(file, Path) else None, supplied=True)


def _label(path: Path) -> str:
    absolute = Path(os.path.abspath(path))
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)


class Definitions:
    """Models, tasks, suites, datasets and constraints defined in YAML, by name.

    The user's entries are checked on loading, those of the library and of installed packages on
    first use; ``key`` is a hash of their files, for which the checked entries are kept.
    """

    def __init__(self, entries: Entries, key: str = "") -> None:
        self._entries = entries
        self._key = key
        self._inheritance = Inheritance(entries)
        self._checked: dict[tuple[str, str], tuple[dict[str, Any], list[Mistake]]] = {}

    @classmethod
    def load(cls, files: Sequence[Path | str] = ()) -> Definitions:
        """Return all definitions; raise a DefinitionError with every mistake of every file.

        ``files`` are YAML files or folders of them. They add entries and cannot override any.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "my.yaml")
        ...     _ = file.write_text("constraints: {brief: {max_folds: 3}}")
        ...     Definitions.load([file]).get("constraints", "brief")["max_folds"]
        3
        """
        entries = Entries()
        labels = []
        digest = hashlib.sha256(__version__.encode())
        for contents, mistakes in (builtin_files(), installed_files(), user_files(files)):
            entries.mistakes += mistakes
            entries.lost |= bool(mistakes)
            for file, content in contents:
                labels.append(file.label)
                entries.add_file(file, content)
                digest.update(f"\n{file.label}\n".encode() + content if file.supplied else b"")
        definitions = cls(entries, "" if entries.mistakes else digest.hexdigest())
        user_entries = [entry for entry in entries.found.values() if not entry.node.file.supplied]
        _raise([*entries.mistakes, *definitions._mistakes(user_entries)], labels)
        return definitions

    def validate_all(self) -> None:
        """Check every entry, built-in ones included; raise all mistakes at once."""
        _raise(self._mistakes(self._entries.found.values()))

    def names(self, section: str, *, abstract: bool = False) -> list[str]:
        """Return the sorted names of a section, on request with abstract and refused entries."""
        _check_section(section)
        entries = [entry for entry in self._entries.found.values() if entry.section == section]
        if not abstract:
            entries = [entry for entry in entries if not entry.hidden]
            # in the files of other systems, ``refuse`` may be inherited
            entries = [e for e in entries if not e.foreign or not self._is_refused(e)]
        return sorted(entry.name for entry in entries)

    def _is_refused(self, entry: Entry) -> bool:
        """Return whether an entry of another system's file cannot be run, for whatever reason."""
        return bool(self._check(entry)[0].get("refuse"))

    @staticmethod
    def _refused(resolved: Resolved) -> bool:
        why = resolved.node.child("refuse")
        return why is not None and why.value is not None

    def names_everywhere(self, name: str) -> list[str]:
        """Return the sections in which a name is defined."""
        return [section for section in SECTIONS if (section, name) in self._entries.found]

    def get(self, section: str, name: str) -> dict[str, Any]:
        """Return a definition with inherited values and defaults, as a new dictionary.

        An abstract one has ``abstract`` and no defaults.
        """
        entry = self._entry(section, name)
        values, mistakes = self._check(entry)
        _raise(mistakes)
        if section in UNREFUSED and values.get("refuse"):
            raise DefinitionError(values["refuse"])
        return copy.deepcopy({**values, "abstract": True} if entry.abstract else values)

    def chosen(self, section: str, name: str) -> dict[str, Any]:
        """Return a definition to run; raise a DefinitionError if it is refused."""
        definition = self.get(section, name)
        if definition.get("refuse"):
            raise DefinitionError(definition["refuse"])
        return definition

    def folder(self, section: str, name: str, *keys: Key) -> Path | None:
        """Return the folder of an entry's file, for relative paths in it.

        With keys, the folder of the file that defines this value, which may be inherited.
        """
        entry = self._entry(section, name)
        node = self._resolved(entry).node if keys else entry.node
        return node.nearest(keys)[0].file.folder

    def origins(self, section: str, name: str) -> dict[tuple[Key, ...], str]:
        """Return the place of each value by key path, as ``file.yaml:12``."""
        node = self._resolved(self._entry(section, name)).node
        leaves = _without(node, *NOT_INHERITED).leaves()
        return {path: leaf.place for path, leaf in leaves if path}

    def show(self, section: str, name: str) -> str:
        """Return a resolved definition as YAML text with the origin of every line."""
        entry = self._entry(section, name)
        values = {} if entry.abstract else self.get(section, name)
        node = _without(self._resolved(entry).node, "extends")
        fixed = {k: v for k, v in values.items() if k not in node.value and v not in (None, [], {})}
        return show_definition(node, fixed)

    def _entry(self, section: str, name: str) -> Entry:
        _check_section(section)
        if (section, name) not in self._entries.found:
            raise unknown(singular(section), name, self.names(section))
        return self._entries.found[section, name]

    def _resolved(self, entry: Entry) -> Resolved:
        return self._inheritance.resolve(entry.section, entry.name)

    # -- checking ---------------------------------------------------------------------------

    def _check(self, entry: Entry) -> tuple[dict[str, Any], list[Mistake]]:
        key = (entry.section, entry.name)
        if key not in self._checked and self._key and entry.node.file.supplied:
            values = self._kept.get("/".join(key))
            self._checked[key] = (values, []) if values is not None else self._compute(entry)
        elif key not in self._checked:
            self._checked[key] = self._compute(entry)
        return self._checked[key]

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """The supplied entries as they were checked before; those with mistakes are not kept."""
        checked = _KEPT.get(self._key) or read_kept("checked", self._key)
        if not isinstance(checked, dict):
            supplied = [e for e in self._entries.found.values() if e.node.file.supplied]
            computed = {f"{entry.section}/{entry.name}": self._compute(entry) for entry in supplied}
            checked = {
                name: values for name, (values, mistakes) in computed.items() if not mistakes
            }
            with suppress(TypeError, ValueError):
                if json.loads(json.dumps(checked)) == checked:
                    keep("checked", self._key, checked)
        _KEPT.clear()
        _KEPT[self._key] = checked
        return checked

    def _compute(self, entry: Entry) -> tuple[dict[str, Any], list[Mistake]]:
        """Return the values of an entry and its mistakes."""
        from karat.config.schema import check_definition  # it imports pydantic

        key, resolved = (entry.section, entry.name), self._resolved(entry)
        if entry.foreign and entry.section in UNREFUSED and self._refused(resolved):
            return {"refuse": resolved.node.value["refuse"].plain()}, []
        complete = resolved.sound and not entry.abstract and not self._refused(resolved)
        values, problems = check_definition(entry.section, resolved.node, complete=complete)
        problems += self._unknown_names(entry, resolved.node)
        mistakes = list(resolved.mistakes)
        for problem in problems:
            node, _ = resolved.node.nearest(problem.path)
            mistakes.append(mistake_at(node, (*key, *problem.path), problem.text, key=True))
        if entry.foreign and mistakes and not entry.abstract:
            return _refusal(entry, mistakes), []
        return values, [] if entry.foreign else mistakes

    def _mistakes(self, entries: Iterable[Entry]) -> list[Mistake]:
        """Return all mistakes, parents first: an inherited mistake is reported at its parent."""
        ordered = sorted(entries, key=lambda entry: self._resolved(entry).depth)
        return [mistake for entry in ordered for mistake in self._check(entry)[1]]

    def _unknown_names(self, entry: Entry, node: Node) -> Iterator[Problem]:
        """Yield the references to entries that are neither defined nor registered."""
        if self._entries.lost:
            return
        for section, path, name in _references(entry.section, node):
            component_names = _REGISTRIES.get(section, ())
            referred = self._entries.found.get((section, name))
            if referred is not None and referred.abstract:
                text = f'the {singular(section)} "{name}" is abstract; extend it instead.'
                yield Problem(path, text)
            elif referred is None and name not in component_names:
                names = {*self.names(section), *component_names}
                yield Problem(path, unknown(singular(section), name, names).messages[0])


def _refusal(entry: Entry, mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """Return a definition that says, when it is selected, why it cannot be run."""
    from karat.config.schema import check_definition

    # what its parent lacks is said of itself
    why = "; ".join(dict.fromkeys(map(str, mistakes)))
    node = entry.node.renewed({"refuse": replace(entry.node, value=why, text=why)})
    return check_definition(entry.section, node, complete=False)[0]


def _references(section: str, node: Node) -> Iterator[tuple[str, tuple[Key, ...], str]]:
    """Yield section, key path and name of every reference to another entry."""
    if section == "tasks":
        dataset = node.child("dataset")
        if dataset is not None and isinstance(dataset.value, str):
            yield "datasets", ("dataset",), dataset.value
    for named in ("tasks", "models") if section == "suites" else ():
        listed = node.child(named)
        for i, name in enumerate(listed.value if listed and isinstance(listed.value, list) else []):
            text = str(name.value)
            elsewhere = ":" in text and text.partition(":")[0] in registry.suite_sources
            if named == "models":
                elsewhere = any(mark in text for mark in ":/.")
            if isinstance(name.value, str) and not elsewhere:
                yield named, (named, i), name.value


def _without(node: Node, *keys: str) -> Node:
    return node.renewed({key: child for key, child in node.value.items() if key not in keys})


def _check_section(section: str) -> None:
    if section not in SECTIONS:
        near = did_you_mean(section, SECTIONS)
        raise DefinitionError(f'unknown section "{section}".{near}')


def _raise(mistakes: Iterable[Mistake], files: Sequence[str] = ()) -> None:
    messages = format_mistakes(mistakes, files)
    if messages:
        raise DefinitionError(*messages)
