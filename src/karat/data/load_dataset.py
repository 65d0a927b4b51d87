"""Load the Dataset that a definition describes: locate its files and call its reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.data.download import fetch_first
from karat.errors import ContractError, DataError, DefinitionError, did_you_mean

Files = Path | dict[str, Path]
TEXTS = ("title", "description", "language", "license", "citation", "homepage")
PARTS = ("train", "test")
#: the keys of a definition that a reader gets as they are
_PLAIN = ("target", "kind", "group", "modality", "part", "positive", "weight")


@dataclass(frozen=True)
class DataSpec:
    """The settings of a definition that a reader needs.

    Attributes
    ----------
    target
        The target column.
    kind
        ``"classification"``, ``"regression"`` or ``"items"``; inferred if None.
    fields
        The columns that questions refer to; for a table, the columns to use (all if empty).
    part
        The column with ``"train"`` or ``"test"``.
    positive
        The positive class of two.
    weight
        The column with the weight of each row.
    group_feature
        Whether the column of groups is also a feature.
    infer
        Whether separator, decimal commas and dates of a file are inferred, with a warning.
    options
        Options of the reader.
    about
        Title, language, license, citation, source and checksum.
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
    positive: Any = None
    weight: str | None = None
    group_feature: bool = False
    infer: bool = False

    def check_options(self, *options: str) -> None:
        """Raise a DefinitionError for an option that the reader does not have."""
        for option in self.options:
            if option not in options:
                hint = did_you_mean(str(option), options)
                raise DefinitionError(
                    f'{self.name}: the reader has no option "{option}".{hint} '
                    f"Available: {', '.join(options) or 'none'}."
                )

    def choice(self, option: str, *allowed: str) -> str:
        """Return the value of an option; the first allowed value is the default."""
        value = str(self.options.get(option, allowed[0]))
        if value not in allowed:
            raise DefinitionError(
                f'{self.name}: invalid value "{value}" for "{option}": expected '
                f"{' or '.join(allowed)}.{did_you_mean(value, allowed)}"
            )
        return value

    def integer(self, option: str, default: int, least: int) -> int:
        """Return the value of an option that is an integer."""
        return check_integer(self.name, option, self.options.get(option, default), least)


def check_integer(name: str, option: str, value: object, least: int) -> int:
    """Return an integer >= least, or raise a DefinitionError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DefinitionError(f"{name}: {option} must be an integer >= {least}, got {value!r}.")
    return value


def load_dataset(name: str, definition: Mapping[str, Any], folder: Path | None = None) -> Dataset:
    """Return the dataset that a definition describes; its files are downloaded if necessary.

    A relative ``path`` is below ``folder`` (that of the YAML file) or the current folder. Its folds
    depend on its name.
    """
    _check_origin(name, definition, ("path", "sources", "load"))
    facts = _about(definition)
    if definition.get("load"):
        data = _call_loader(name, definition["load"], facts, folder).with_drawn_by("name")
        positive = definition.get("positive")
        return data if positive is None else data.with_positive(positive)
    files, origin = _files(name, definition, folder)
    values = {key: definition.get(key) for key in _PLAIN}
    spec = DataSpec(
        name=name,
        drop=tuple(definition.get("drop") or ()),
        fields=tuple(definition.get("fields") or ()),
        options=dict(definition.get("options") or {}),
        about={**facts, **origin},
        group_feature=bool(definition.get("group_feature")),
        infer=bool(definition.get("path")),
        **values,
    )
    read = registry.readers.get(definition.get("reader") or "table")
    return _check_result(read(files, spec), name, "reader").with_drawn_by("name")


def fetch_file(name: str, definition: Mapping[str, Any], folder: Path | None = None) -> Path:
    """Return the path of a definition's single file, unread (for vector files)."""
    _check_origin(name, definition, ("path", "sources"))
    if definition.get("path"):
        files = _local(name, definition["path"], folder)
        if not isinstance(files, Path):
            raise DefinitionError(f"{name}: expected one file, got {', '.join(files)}.")
        return files
    return fetch_first(name, definition["sources"], _about(definition))[0]


def _about(definition: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(definition[key]) for key in TEXTS if definition.get(key)}


def _check_origin(name: str, definition: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    origins = [key for key in ("path", "sources", "load") if definition.get(key)]
    if len(origins) != 1 or origins[0] not in allowed:
        raise DefinitionError(
            f"{name}: exactly one of {', '.join(allowed)} must be given, "
            f"got {', '.join(origins) or 'none'}."
        )


def _call_loader(
    name: str, load: str | Mapping[str, Any], facts: Mapping[str, str], folder: Path | None
) -> Dataset:
    """Call a function that returns a dataset; ``folder``, if it takes one, is the YAML file's."""
    params = {"use": load} if isinstance(load, str) else dict(load)
    if "use" not in params:
        raise DefinitionError(f'{name}: "load" needs use: "package.module:function".')
    use = params.pop("use")
    function = registry.datasets.get(use)
    if folder is not None and "folder" in registry.accepts(function)[0]:
        params = {"folder": folder, **params}
    data = _check_result(function(name=name, **params), name, use)
    return replace(data, about={**data.about, **facts})


def _check_result(data: object, name: str, source: str) -> Dataset:
    if not isinstance(data, Dataset):
        raise ContractError(
            f"{name}: {source} returned {type(data).__name__}; it must return a karat.Dataset."
        )
    return data


def _files(
    name: str, definition: Mapping[str, Any], folder: Path | None
) -> tuple[Files, dict[str, str]]:
    if not definition.get("path"):
        path, source = fetch_first(name, definition["sources"], _about(definition))
        sha256 = sha256_of_file(path) if path.is_file() else source.sha256
        return path, {"source": str(source), "sha256": sha256}
    paths = definition["path"]
    files = _local(name, paths, folder)
    if isinstance(files, dict):
        sums = [f"{part} {sha256_of_file(path)}" for part, path in files.items() if path.is_file()]
        return files, {"source": ", ".join(map(str, paths.values())), "sha256": ", ".join(sums)}
    return files, {"source": str(paths), "sha256": sha256_of_file(files) if files.is_file() else ""}


def _local(name: str, path: Any, folder: Path | None) -> Files:
    if isinstance(path, Mapping):
        if sorted(path) != sorted(PARTS):
            raise DefinitionError(f"{name}: path must be one file or a mapping of train and test.")
        return {part: _existing(name, path[part], folder) for part in PARTS}
    return _existing(name, path, folder)


def _existing(name: str, path_text: str | Path, folder: Path | None) -> Path:
    path = ((folder or Path()) / Path(path_text).expanduser()).absolute()
    if not path.exists():
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{name}: there is no file {path}.{did_you_mean(path.name, near)}")
    return path
