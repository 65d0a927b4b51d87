"""Definitions: find, load, merge and check the YAML files; report all mistakes at once.

The files are built in, of installed packages (entry points ``karat.definitions``), or the user's.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import entry_points
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from karat import __version__
from karat.config.inheritance import (
    NOT_INHERITED,
    SECTIONS,
    Entries,
    Entry,
    Inheritance,
    Problem,
    Resolved,
    singular,
)
from karat.config.yaml_files import (
    Key,
    Mistake,
    Node,
    SourceFile,
    format_mistakes,
    keep,
    mistake_at,
    read_kept,
    show,
)
from karat.core import registry
from karat.errors import DefinitionError, did_you_mean, unknown

GROUP = "karat.definitions"
ENDINGS = (".yaml", ".yml")

Found = tuple[list[tuple[SourceFile, bytes]], list[Mistake]]


def builtin_files() -> Found:
    """Return the built-in definition files."""
    found = []
    for inner in ("builtin", "builtin/suites"):
        folder = package_files("karat.config").joinpath(*inner.split("/"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(ENDINGS):
                label = f"karat/config/{inner}/{file.name}"
                found.append((_supplied(file, label), file.read_bytes()))
    return found, []


def installed_files() -> Found:
    """Return the files of installed packages, from entry points ``package:file.yaml``."""
    found = []
    mistakes = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package, _, name = point.value.partition(":")
        label = f"{package.replace('.', '/')}/{name}"
        try:
            file = package_files(package).joinpath(*name.split("/"))
            found.append((_supplied(file, label), file.read_bytes()))
        except Exception as error:  # importing a package may raise anything
            text = (
                f'the entry point "{point.name}" of {GROUP} refers to "{point.value}", which '
                f"cannot be read ({type(error).__name__}: {error}); fix or uninstall that package."
            )
            mistakes.append(Mistake(label, 0, (), text))
    return found, mistakes


def user_files(paths: Sequence[Path | str]) -> Found:
    """Return the given files and all YAML files of the given folders, without duplicates."""
    found: dict[str, tuple[SourceFile, bytes]] = {}
    mistakes = []
    for given in map(Path, paths):
        chosen = [given]
        if given.is_dir():
            inside = (path for path in given.iterdir() if path.suffix in ENDINGS and path.is_file())
            chosen = sorted(path for path in inside if not path.name.startswith("."))
        if not chosen:
            mistakes.append(Mistake(_label(given), 0, (), "contains no .yaml or .yml file."))
        for path in chosen:
            try:
                file = SourceFile(_label(path), path.absolute().parent)
                found.setdefault(os.path.realpath(path), (file, path.read_bytes()))
            except FileNotFoundError:
                parent = path.absolute().parent
                names = [other.name for other in parent.iterdir()] if parent.is_dir() else []
                text = f"no such file or folder.{did_you_mean(path.name, names)}"
                mistakes.append(Mistake(_label(path), 0, (), text))
            except OSError as error:
                text = f"cannot be read: {error.strerror or error}."
                mistakes.append(Mistake(_label(path), 0, (), text))
    return list(found.values()), mistakes


def _supplied(file: Traversable, label: str) -> SourceFile:
    return SourceFile(label, file.parent if isinstance(file, Path) else None, supplied=True)


def _label(path: Path) -> str:
    absolute = Path(os.path.abspath(path))
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)


_REGISTRIES = {"models": registry.models, "datasets": registry.datasets}


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
        ...     _ = file.write_text("constraints: {brief: {folds: 3}}")
        ...     Definitions.load([file]).get("constraints", "brief")["folds"]
        3
        """
        entries = Entries()
        labels = []
        digest = hashlib.sha256(__version__.encode())
        for found, mistakes in (builtin_files(), installed_files(), user_files(files)):
            entries.mistakes += mistakes
            entries.lost |= bool(mistakes)
            for file, content in found:
                labels.append(file.label)
                entries.add_file(file, content)
                digest.update(f"\n{file.label}\n".encode() + content if file.supplied else b"")
        definitions = cls(entries, "" if entries.mistakes else digest.hexdigest())
        given = [entry for entry in entries.found.values() if not entry.node.file.supplied]
        _raise([*entries.mistakes, *definitions._mistakes(given)], labels)
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
            entries = [e for e in entries if not e.replaces or not self._refused(self._resolved(e))]
        return sorted(entry.name for entry in entries)

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
        return show(node, fixed)

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
        kept = read_kept("checked", self._key)
        if not isinstance(kept, dict):
            supplied = [e for e in self._entries.found.values() if e.node.file.supplied]
            found = {f"{each.section}/{each.name}": self._compute(each) for each in supplied}
            kept = {name: values for name, (values, mistakes) in found.items() if not mistakes}
            with suppress(TypeError, ValueError):
                if json.loads(json.dumps(kept)) == kept:
                    keep("checked", self._key, kept)
        return kept

    def _compute(self, entry: Entry) -> tuple[dict[str, Any], list[Mistake]]:
        """Return the values of an entry and its mistakes."""
        from karat.config.schema import check  # it imports pydantic

        key, resolved = (entry.section, entry.name), self._resolved(entry)
        complete = resolved.sound and not entry.abstract and not self._refused(resolved)
        values, problems = check(entry.section, resolved.node, complete=complete)
        problems += self._unknown_names(entry, resolved.node)
        mistakes = list(resolved.mistakes)
        for problem in problems:
            node, _ = resolved.node.nearest(problem.path)
            mistakes.append(mistake_at(node, (*key, *problem.path), problem.text, key=True))
        return values, mistakes

    def _mistakes(self, entries: Iterable[Entry]) -> list[Mistake]:
        """Return all mistakes, parents first: an inherited mistake is reported at its parent."""
        ordered = sorted(entries, key=lambda entry: self._resolved(entry).depth)
        return [mistake for entry in ordered for mistake in self._check(entry)[1]]

    def _unknown_names(self, entry: Entry, node: Node) -> Iterator[Problem]:
        """Yield the references to entries that are neither defined nor registered."""
        if self._entries.lost:
            return
        for section, path, name in _references(entry.section, node):
            known = _REGISTRIES.get(section, ())
            found = self._entries.found.get((section, name))
            if found is not None and found.abstract:
                text = f'the {singular(section)} "{name}" is abstract; extend it instead.'
                yield Problem(path, text)
            elif found is None and name not in known:
                names = {*self.names(section), *known}
                yield Problem(path, unknown(singular(section), name, names).messages[0])


def _references(section: str, node: Node) -> Iterator[tuple[str, tuple[Key, ...], str]]:
    """Yield section, key path and name of every reference to another entry."""
    if section == "tasks":
        dataset = node.child("dataset")
        if dataset is not None and isinstance(dataset.value, str):
            yield "datasets", ("dataset",), dataset.value
    for named in ("tasks", "models") if section == "suites" else ():
        listed = node.child(named)
        for i, name in enumerate(listed.value if listed and isinstance(listed.value, list) else []):
            is_path = named == "models" and any(mark in str(name.value) for mark in ":/.")
            if isinstance(name.value, str) and not is_path:
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
