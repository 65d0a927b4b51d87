"""From a definition to a Dataset: have the file, choose the reader, tell it what was declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from karat import registry
from karat.data.download import fetch_first
from karat.data.sources import sha256_of
from karat.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError, did_you_mean

Files = Path | dict[str, Path]
TEXTS = ("title", "description", "licence", "citation", "homepage")
PARTS = ("train", "test")


@dataclass(frozen=True)
class DataSpec:
    """What a definition declares about its data, for the reader.

    Attributes
    ----------
    target
        The column of the answers.
    kind
        What they are (``"classes"``, ``"numbers"``, ``"items"``), or nothing: to be inferred.
    fields
        The columns the questions are about; for a table, the columns to keep (all when empty).
    part
        The column that says ``"train"`` or ``"test"``.
    options
        What only the reader understands.
    about
        Title, licence, citation, source and checksum.
    """

    name: str
    target: str | None = None
    kind: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    modality: str | None = None
    part: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    def check_options(self, *known: str) -> None:
        """Refuse an option that the reader does not know."""
        for option in self.options:
            if option not in known:
                hint = did_you_mean(str(option), known)
                raise DefinitionError(
                    f'{self.name}: its reader has no option "{option}".{hint} '
                    f"It has: {', '.join(known) or 'none'}."
                )


def load_dataset(name: str, definition: Mapping[str, Any], folder: Path | None = None) -> Dataset:
    """Return the data set a definition describes; its files are fetched when they must be.

    A relative ``path`` is below ``folder`` (that of the YAML file), or below the current one.
    """
    _check_origin(name, definition, ("path", "sources", "load"))
    about = _about(definition)
    if definition.get("load"):
        return _call(name, definition["load"], about, folder)
    files, origin = _files(name, definition, folder)
    spec = _spec(name, definition, {**about, **origin})
    read = registry.readers.get(definition.get("reader") or "table")
    return _check_result(read(files, spec), name, "reader")


def fetch_file(name: str, definition: Mapping[str, Any], folder: Path | None = None) -> Path:
    """Return the path of a definition's file, for those that use it as it is (vector files)."""
    _check_origin(name, definition, ("path", "sources"))
    if definition.get("path"):
        files = _local(name, definition["path"], folder)
        if not isinstance(files, Path):
            raise DefinitionError(f"{name}: one file is needed here, not {', '.join(files)}.")
        return files
    return fetch_first(name, definition["sources"], _about(definition))[0]


def _about(definition: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(definition[key]) for key in TEXTS if definition.get(key)}


def _check_origin(name: str, definition: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    given = [key for key in ("path", "sources", "load") if definition.get(key)]
    if len(given) != 1 or given[0] not in allowed:
        raise DefinitionError(
            f"{name}: say where the data are with exactly one of {', '.join(allowed)}"
            f" (given: {', '.join(given) or 'none'})."
        )


def _call(
    name: str, load: str | Mapping[str, Any], about: Mapping[str, str], folder: Path | None
) -> Dataset:
    """Return what a function loads; one with a parameter ``folder`` is told the YAML file's."""
    params = {"use": load} if isinstance(load, str) else dict(load)
    if "use" not in params:
        raise DefinitionError(f'{name}: "load" needs use: "package.module:function".')
    use = params.pop("use")
    part = registry.datasets.get(use)
    if folder is not None and "folder" in registry.accepts(part)[0]:
        params = {"folder": folder, **params}
    data = _check_result(part(name=name, **params), name, use)
    return replace(data, about={**data.about, **about})


def _check_result(data: Any, name: str, maker: str) -> Dataset:
    if not isinstance(data, Dataset):
        raise ContractError(
            f"{name}: {maker} returned {type(data).__name__}; it must return a karat.Dataset."
        )
    return data


def _files(
    name: str, definition: Mapping[str, Any], folder: Path | None
) -> tuple[Files, dict[str, str]]:
    """Return the files to read, with where they came from and their checksum."""
    if not definition.get("path"):
        path, source = fetch_first(name, definition["sources"], _about(definition))
        sha256 = sha256_of(path) if path.is_file() else source.sha256
        return path, {"source": str(source), "sha256": sha256}
    files = _local(name, definition["path"], folder)
    if isinstance(files, dict):
        sums = [f"{part} {sha256_of(path)}" for part, path in files.items() if path.is_file()]
        origin = ", ".join(str(path) for path in definition["path"].values())
        return files, {"source": origin, "sha256": ", ".join(sums)}
    sha256 = sha256_of(files) if files.is_file() else ""
    return files, {"source": str(definition["path"]), "sha256": sha256}


def _local(name: str, given: Any, folder: Path | None) -> Files:
    if isinstance(given, Mapping):
        if sorted(given) != sorted(PARTS):
            raise DefinitionError(f"{name}: path needs the keys train and test, or one file.")
        return {part: _existing(name, given[part], folder) for part in PARTS}
    return _existing(name, given, folder)


def _existing(name: str, given: str | Path, folder: Path | None) -> Path:
    path = ((folder or Path()) / Path(given).expanduser()).absolute()
    if not path.exists():
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{name}: there is no file {path}.{did_you_mean(path.name, near)}")
    return path


def _spec(name: str, definition: Mapping[str, Any], about: Mapping[str, str]) -> DataSpec:
    return DataSpec(
        name=name,
        target=definition.get("target"),
        kind=definition.get("kind"),
        group=definition.get("group"),
        drop=tuple(definition.get("drop") or ()),
        fields=tuple(definition.get("fields") or ()),
        modality=definition.get("modality"),
        part=definition.get("part"),
        options=dict(definition.get("options") or {}),
        about=about,
    )
