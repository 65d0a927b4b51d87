"""The user folder of the AutoML Benchmark: its configuration and definition files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from karat.definitions.places import SourceFile
from karat.definitions.strict_yaml import read_yaml
from karat.errors import DefinitionError

#: configuration keys of definition files
FILES = (("frameworks", "definition_file"), ("benchmarks", "constraints_file"))
FOLDERS = ("benchmarks", "definition_dir")
#: default definition files
USUAL = ("frameworks.yaml", "constraints.yaml")
USUAL_FOLDER = "benchmarks"


def files_of(folder: Path, benchmark: str) -> list[Path]:
    """Return the definition files of a user folder, with the one of the benchmark.

    These are the files named in its ``config.yaml``, and ``frameworks.yaml``, ``constraints.yaml``
    and ``benchmarks/NAME.yaml``. Files in the AutoML Benchmark's own folder (``{root}``) are
    ignored: Karat has its own frameworks and constraints.
    """
    if not folder.is_dir():
        raise DefinitionError(f"-u: folder not found: {folder}.")
    folder = folder.absolute()
    config = _config(folder / "config.yaml")
    files = [folder / name for name in USUAL]
    for section, key in FILES:
        files += _named(config, section, key, folder)
    folders = [folder / USUAL_FOLDER, *_named(config, *FOLDERS, folder)]
    files += [place / f"{benchmark}.yaml" for place in folders]
    return [path for path in dict.fromkeys(files) if path.is_file()]


def _config(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        return {}
    node, mistakes = read_yaml(file.read_bytes(), SourceFile(str(file)))
    if mistakes:
        raise DefinitionError(*map(str, mistakes))
    found = node.plain() if node is not None else {}
    return found if isinstance(found, dict) else {}


def _named(config: Mapping[str, Any], section: str, key: str, folder: Path) -> Iterator[Path]:
    given = config.get(section)
    value = given.get(key) if isinstance(given, Mapping) else None
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and "{root}" not in each:
            yield folder / each.replace("{user}", str(folder))
