"""Find the definition files: built-in, of installed packages, and the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path

from karat.definitions.places import Mistake, SourceFile
from karat.errors import did_you_mean

GROUP = "karat.definitions"
ENDINGS = (".yaml", ".yml")

Found = tuple[list[tuple[SourceFile, bytes]], list[Mistake]]


def builtin_files() -> Found:
    """Return the built-in definition files."""
    package = package_files("karat.definitions")
    found = [(_supplied(file, label), file.read_bytes()) for file, label in _walk(package)]
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
        chosen = _in_folder(given) if given.is_dir() else [given]
        if not chosen:
            mistakes.append(Mistake(_label(given), 0, (), "contains no .yaml or .yml file."))
        for path in chosen:
            try:
                file = SourceFile(_label(path), path.absolute().parent)
                found.setdefault(os.path.realpath(path), (file, path.read_bytes()))
            except OSError as error:
                mistakes.append(Mistake(_label(path), 0, (), _unreadable(path, error)))
    return list(found.values()), mistakes


def _walk(package: Traversable) -> Iterator[tuple[Traversable, str]]:
    for folder, label in ((package, ""), (package / "suites", "suites/")):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda file: file.name):
                if file.name.endswith(ENDINGS):
                    yield file, f"karat/definitions/{label}{file.name}"


def _supplied(file: Traversable, label: str) -> SourceFile:
    return SourceFile(label, file.parent if isinstance(file, Path) else None, supplied=True)


def _in_folder(folder: Path) -> list[Path]:
    """Return the folder's YAML files, sorted, without hidden ones."""
    paths = (path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    return sorted(path for path in paths if not path.name.startswith("."))


def _label(path: Path) -> str:
    """Return a path relative to the current folder if it is inside it."""
    absolute = Path(os.path.abspath(path))
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)


def _unreadable(path: Path, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"cannot be read: {error.strerror or error}."
    parent = path.absolute().parent
    names = [other.name for other in parent.iterdir()] if parent.is_dir() else []
    return f"no such file or folder.{did_you_mean(path.name, names)}"
