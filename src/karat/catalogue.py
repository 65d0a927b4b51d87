"""The catalogue: names become models, tasks, suites and data sets, from YAML or registered code."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from karat import registry
from karat.data.load import fetch_file, load_dataset
from karat.dataset import Dataset
from karat.definitions.loader import Definitions
from karat.errors import DataError, DefinitionError, KaratError, Unavailable, unknown
from karat.models.adapters import adapt, is_vector_file
from karat.models.base import Model
from karat.task import Suite, Task

#: a parameter that begins so names a data set whose file is meant
DATA_PREFIX = "data:"


@dataclass(frozen=True)
class DatasetLoader:
    """Loads a defined data set when it is called; mistakes in it are said with file and line."""

    name: str
    definition: Mapping[str, Any]
    folder: Path | None
    origins: Mapping[tuple[str | int, ...], str]

    def __call__(self) -> Dataset:
        """Return the data set."""
        try:
            return load_dataset(self.name, self.definition, self.folder)
        except Unavailable:
            raise
        except DataError as error:
            raise DataError(self._place(error) + str(error), error.value) from error

    def _place(self, error: DataError) -> str:
        # name the line of the setting at fault, or else the line where the definition begins
        for path, place in self.origins.items():
            value: Any = self.definition
            for step in path:
                value = value.get(step) if isinstance(value, Mapping) else None
            if error.value is not None and value == error.value:
                return f"{place}: "
        return f"{next(iter(self.origins.values()))}: " if self.origins else ""


class Catalogue:
    """Everything that has a name: built-in, of the user's YAML files, and registered by code."""

    def __init__(self, files: Sequence[str | Path] | str | Path = ()) -> None:
        given = [files] if isinstance(files, str | Path) else files
        self._files = [Path(file) for file in given]

    @cached_property
    def definitions(self) -> Definitions:
        """The checked definitions of all YAML files; Python files register their parts first."""
        for file in self._files:
            if file.suffix == ".py":
                _import_file(file)
        return Definitions.load([file for file in self._files if file.suffix != ".py"])

    # -- models -----------------------------------------------------------------------------

    def models(self, wanted: Iterable[Any] | Mapping[str, Any] | Any) -> list[Model]:
        """Return what was asked for as models; all mistakes are reported at once."""
        if isinstance(wanted, Mapping):
            pairs = list(wanted.items())
        else:
            several = isinstance(wanted, list | tuple | set)
            pairs = [(None, thing) for thing in (wanted if several else [wanted])]
        found: list[Model] = []
        messages: list[str] = []
        for name, thing in pairs:
            try:
                found.append(self.model(thing, name))
            except DefinitionError as error:
                messages += error.messages
        messages += _twice("model", [model.name for model in found])
        if messages:
            raise DefinitionError(*dict.fromkeys(messages))
        return found

    def model(self, thing: Any, name: str | None = None) -> Model:
        """Return a model from a name, a vector file, a ``"package.module:Name"`` or an object."""
        if isinstance(thing, Path):
            return adapt(thing, name)
        if not isinstance(thing, str):
            return adapt(thing, name)
        if thing in self.definitions.names("models", abstract=True):
            return self._defined(thing, name)
        if thing in registry.models:
            return adapt(registry.models.get(thing), name or thing)
        if is_vector_file(thing) or Path(thing).is_file():
            if not Path(thing).is_file():
                raise DefinitionError(f"there is no vector file {thing}.")
            return adapt(Path(thing), name)
        if ":" in thing:
            return adapt(registry.load_object(thing), name or thing.rpartition(":")[2])
        raise unknown("model", thing, [*self.definitions.names("models"), *registry.models])

    def _defined(self, key: str, name: str | None) -> Model:
        definition = self.definitions.get("models", key)
        if definition.get("abstract"):
            raise DefinitionError(
                f'the model "{key}" is only a pattern: extend it in a YAML file (--define).'
            )
        part = registry.models.get(definition["use"])
        params, missing = self._params(definition.get("params") or {})
        made = registry.build(f'model "{key}"', part, params, {})
        model = adapt(made, name or key, definition.get("role"))
        lacking = [m for m in definition.get("requires") or [] if not _installed(m)]
        if lacking:
            extra = definition.get("extra")
            cure = f'pip install "karat[{extra}]"' if extra else f"pip install {lacking[0]}"
            missing = f"{lacking[0]} is not installed: {cure}"
        return dataclasses.replace(
            model,
            takes=tuple(definition["takes"]) if definition.get("takes") else model.takes,
            version=definition.get("version") or model.version,
            params={k: v for k, v in (definition.get("params") or {}).items()},
            unavailable=missing,
        )

    def _params(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        params, missing = dict(given), ""
        for name, value in given.items():
            if isinstance(value, str) and value.startswith(DATA_PREFIX):
                key = value.removeprefix(DATA_PREFIX)
                definition = self.definitions.get("datasets", key)
                folder = self.definitions.folder("datasets", key, "path")
                try:
                    params[name] = str(fetch_file(key, definition, folder))
                except Unavailable as error:
                    missing = str(error)
        return params, missing

    # -- tasks, suites, data sets -----------------------------------------------------------

    def suite(self, name: str) -> Suite:
        """Return a defined suite; a task's name stands for a suite of that one task."""
        if name not in self.definitions.names("suites"):
            if name in self.definitions.names("tasks"):
                return Suite(name, (self.task(name),))
            raise unknown("suite", name, self.definitions.names("suites"))
        definition = self.definitions.get("suites", name)
        return Suite(
            name,
            tuple(self.task(task) for task in definition["tasks"]),
            tuple(definition.get("models") or ()),
            definition.get("description") or "",
        )

    def task(self, name: str) -> Task:
        """Return a defined task; its data set is loaded when it is needed."""
        definition = dict(self.definitions.get("tasks", name))
        if definition.get("abstract"):
            raise DefinitionError(f'the task "{name}" is only a pattern that others extend.')
        fields = {field.name for field in dataclasses.fields(Task)}
        given = {k: v for k, v in definition.items() if k in fields and v is not None}
        return Task(**{**given, "name": name, "dataset": self._loader(name, definition["dataset"])})

    def dataset(self, name: str) -> Any:
        """Return something to call that loads a data set by its name."""
        if name in self.definitions.names("datasets", abstract=True):
            origins = self.definitions.origins("datasets", name)
            folder = self.definitions.folder("datasets", name, "path")
            return DatasetLoader(name, self.definitions.get("datasets", name), folder, origins)
        if name in registry.datasets:
            return registry.datasets.get(name)
        raise unknown("dataset", name, [*self.definitions.names("datasets"), *registry.datasets])

    def _loader(self, task: str, dataset: Any) -> Any:
        if isinstance(dataset, str):
            return self.dataset(dataset)
        origins = {
            path[1:]: place
            for path, place in self.definitions.origins("tasks", task).items()
            if path[0] == "dataset"
        }
        folder = self.definitions.folder("tasks", task, "dataset", "path")
        return DatasetLoader(task, dataset, folder, origins)


def _import_file(file: Path) -> None:
    """Run a Python file whose decorators register parts; workers get its classes by value."""
    import cloudpickle

    name = f"karat_define_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise DefinitionError(f"there is no Python file {file}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    cloudpickle.register_pickle_by_value(module)
    try:
        spec.loader.exec_module(module)
    except KaratError:
        raise
    except Exception as error:
        raise DefinitionError(f"{file}: {type(error).__name__}: {error}") from error


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _twice(kind: str, names: list[str]) -> list[str]:
    return [
        f'two {kind}s are called "{name}"; name them: {{"first": …, "second": …}}'
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
