"""Extensions: what a folder of ``karat.ext``, or an installed package, adds to Karat.

An extension names its parts by kind and import string; a part is imported on first use. Those of
other packages are entry points of the group ``karat.extensions``. Karat's own are declared the same
way, in ``karat/ext/<folder>/extension.py``, and found by a table of folders, which is faster. A
folder that was deleted adds nothing.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType

from karat.errors import DefinitionError

#: the group of the entry points of installed extensions
GROUP = "karat.extensions"
#: the package whose FOLDERS are the extensions of Karat itself
BUILTIN = "karat.ext"


@dataclass(frozen=True)
class Command:
    """A command of an extension: the help lists it, in a group, without importing it.

    Parameters
    ----------
    path
        Where the command is: ``"package.module:object"``.
    help
        The line of ``karat --help``.
    group
        A group of ``karat --help``; without one of them, the command is listed under "More".
    hidden
        Whether it is another name for what a listed command does.
    """

    path: str
    help: str
    group: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Extension:
    """What an extension adds.

    Parameters
    ----------
    name
        Name of the extension.
    adds
        The parts by kind and name, each as ``"package.module:object"`` or, of the kind
        ``"command"``, as a ``Command``.
    definitions
        YAML files, as ``"package:file.yaml"``.
    requires
        The other extensions that it imports; without one of them it adds nothing.
    """

    name: str
    adds: Mapping[str, Mapping[str, str | Command]] = field(default_factory=dict)
    definitions: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def parts(self, kind: str) -> Mapping[str, str]:
        """Return the import strings of the parts of a kind, by name."""
        parts = self.adds.get(kind, {})
        return {name: part for name, part in parts.items() if isinstance(part, str)}


@functools.cache
def builtin_extensions() -> tuple[Extension, ...]:
    """Return the extensions of Karat itself, without those whose folder is missing."""
    if (package := _module(BUILTIN)) is None:
        return ()
    modules = (_module(f"{BUILTIN}.{folder}.extension") for folder in package.FOLDERS)
    extensions = [module.extension for module in modules if module is not None]
    names = {extension.name for extension in extensions}
    return tuple(extension for extension in extensions if {*extension.requires} <= names)


@functools.cache
def installed_extensions() -> tuple[Extension, ...]:
    """Return the extensions of installed packages; one that cannot be read is an error."""
    from importlib.metadata import entry_points

    extensions = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            extension = point.load()
        except Exception as error:  # importing a package may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise DefinitionError(
                f'cannot load the extension "{point.name}" from "{point.value}" ({reason}); fix '
                f"or uninstall that package."
            ) from error
        if not isinstance(extension, Extension):
            raise DefinitionError(
                f'the entry point "{point.name}" of {GROUP} must refer to a karat Extension, got '
                f"{type(extension).__name__}; fix or uninstall that package."
            )
        extensions.append(extension)
    return tuple(extensions)


def builtin_parts(kind: str) -> dict[str, str]:
    """Return the import strings of what Karat's own extensions add of a kind, by name."""
    parts: dict[str, str] = {}
    for extension in builtin_extensions():
        parts |= extension.parts(kind)
    return parts


def moved_module(name: str) -> str | None:
    """Return where a module of an earlier version, or one of its package, is now."""
    moved = builtin_parts("moved_module")
    package = name
    while package:
        if package in moved:
            return moved[package] + name.removeprefix(package)
        package = package.rpartition(".")[0]
    return None


def commands(extensions: tuple[Extension, ...]) -> Iterator[tuple[str, Command]]:
    """Yield the commands of extensions with their names."""
    for extension in extensions:
        for name, part in extension.adds.get("command", {}).items():
            if isinstance(part, Command):
                yield name, part


def _module(name: str) -> ModuleType | None:
    """Return a module of Karat's extensions, or None if there is none of this name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None
