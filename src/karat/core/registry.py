"""Registries of components: the Registry class, its instances, and their decorators.

A component is found by its name, by ``"package.module:Name"``, in an extension
(``karat.core.extension``), or through a Python entry point of the group ``karat.<kind>s``
(``karat.models``, ``karat.metrics``, …). It is imported on first use.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeVar

from karat.core.extension import builtin_parts, installed_extensions, moved_module
from karat.errors import DefinitionError, KaratError, did_you_mean, unknown

T = TypeVar("T")

#: most names of a module that a message lists
MOST_NAMES = 8


class Registry:
    """A mapping from names to components of one kind.

    A value may be a ``"package.module:Name"`` string; it is imported on first use.

    >>> heads = Registry("head")
    >>> _ = heads.register("zero", "math:floor")
    >>> heads.get("zero")(1.5)
    1
    >>> heads.get("zeroo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    karat.errors.DefinitionError: there is no head "zeroo". Did you mean "zero"?   (karat ...
    """

    def __init__(self, kind: str, modules: Iterable[str] = ()) -> None:
        self.kind = kind
        self._modules = list(modules)
        self._parts: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._extensions_read = False
        self._entry_points_read = False

    def register(self, name: str, part: T) -> T:
        """Add a component under a new name and return it; a duplicate name is an error."""
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise DefinitionError(
                f'the name of a {self.kind} must be a non-empty string without ":", got {name!r}.'
            )
        origin = _origin(part)
        if not origin.startswith("karat."):
            self._load_builtin()  # so that a conflict with a built-in name is found now
        if name in self._parts and self._origins[name] != origin:
            raise DefinitionError(
                f'duplicate {self.kind} "{name}", registered by {self._origins[name]}; '
                f"choose another name for {origin}."
            )
        self._parts[name] = part
        self._origins[name] = origin
        return part

    def get(self, name: str) -> Any:
        """Return the component of this name; raise a DefinitionError with the closest name."""
        if ":" in name:
            return load_object(name)
        if name not in self:
            raise unknown(self.kind, name, self._parts)
        part = self._parts[name]
        return load_object(part) if isinstance(part, str) else part

    def own(self) -> dict[str, Any]:
        """Return the components that users registered."""
        names = [name for name in self._parts if not self._origins[name].startswith("karat.")]
        return {name: self._parts[name] for name in names}

    def origin(self, name: str) -> str:
        """Return where a component is defined: a module path or an entry point."""
        return self._origins[name]

    def __contains__(self, name: str) -> bool:
        self._load_builtin(name)
        if name not in self._parts:
            self._load_entry_points()
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        self._load_builtin()
        self._load_entry_points()
        return iter(sorted(self._parts))

    def _load_builtin(self, name: str | None = None) -> None:
        """Import the modules of built-in components, with a name only until it is found."""
        for module in tuple(self._modules):
            if name in self._parts:
                break
            importlib.import_module(module)
            if module in self._modules:  # the import itself may have loaded it
                self._modules.remove(module)
        if name not in self._parts and not self._extensions_read:
            self._extensions_read = True
            for part, path in builtin_parts(self.kind).items():
                if part not in self._parts:  # else its module has registered it
                    self.register(part, path)

    def _load_entry_points(self) -> None:
        if self._entry_points_read:
            return
        from importlib.metadata import entry_points

        self._load_builtin()
        for extension in installed_extensions():
            for name, path in extension.parts(self.kind).items():
                self.register(name, path)
        for point in entry_points(group=f"karat.{self.kind}s"):
            self.register(point.name, point.value)
        self._entry_points_read = True  # last: a duplicate name is reported each time


def _origin(part: object) -> str:
    if isinstance(part, str):
        return part
    part = getattr(part, "compute", part)
    while isinstance(part, functools.partial):
        part = part.func
    return (
        f"{getattr(part, '__module__', '?')}:{getattr(part, '__qualname__', type(part).__name__)}"
    )


def load_object(path: str) -> Any:
    """Import ``"package.module:Name"`` and return the object.

    >>> load_object("math:pi") > 3
    True
    """
    module_name, _, attribute = path.partition(":")
    try:
        loaded = _import_module(module_name)
        for part in attribute.split("."):
            loaded = getattr(loaded, part)
    except KaratError:
        raise
    except Exception as error:  # importing a user's module may raise anything
        reason = f"{type(error).__name__}: {error}"
        hint = _path_hint(path) or _import_hint(error, module_name)
        raise DefinitionError(f'cannot load "{path}": {reason}.{hint}') from error
    return loaded


def _import_hint(error: Exception, module: str) -> str:
    """Return what to do about an error of an import: of the path, or of the code of the module."""
    absent = str(getattr(error, "name", None))
    if isinstance(error, ModuleNotFoundError) and not f"{module}.".startswith(f"{absent}."):
        return f" The module imports {absent}: install it, or correct the import."
    loaded = vars(sys.modules[module]).items() if module in sys.modules else ()
    names = [name for name, part in loaded if getattr(part, "__module__", "") == module]
    if 0 < len(names) <= MOST_NAMES:
        return f" It has: {', '.join(names)}."
    if not importable(module) or isinstance(error, AttributeError):
        return (
            ' Write it as "package.module:Name", with the package installed or in the current '
            "folder."
        )
    return f' Correct the module; python -c "import {module}" shows the whole error.'


def _import_module(name: str) -> ModuleType:
    """Import a module; one of Karat may have been at this place in an earlier version."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        moved = moved_module(name)
        if moved is None or error.name is None or not name.startswith(error.name):
            raise
        return importlib.import_module(moved)


def _path_hint(path: str) -> str:
    """Return a suggestion for a path that cannot be loaded, or an empty string.

    >>> _path_hint("my_module.py:Mine"), _path_hint("./models/mine:Mine")
    (' Did you mean "my_module:Mine"?', ' Did you mean "models.mine:Mine"?')
    >>> _path_hint("karat.errors:KaratEror")
    ' Did you mean "karat.errors:KaratError"?'
    """
    module, _, attribute = path.partition(":")
    dotted = module.removesuffix(".py").removeprefix("./").replace("/", ".")
    if dotted != module:
        return f' Did you mean "{dotted}:{attribute}"?'
    if module not in sys.modules:
        return ""
    content = vars(sys.modules[module])
    names = [name for name in content if not name.startswith("_")]
    names = [name for name in names if not isinstance(content[name], ModuleType)]
    return did_you_mean(attribute, names).replace(' "', f' "{module}:', 1)


def importable(module: str) -> bool:
    """Return whether there is a module of this name; packages above it are imported.

    >>> importable("karat.errors"), importable("karat.nothing"), importable("")
    (True, False, False)
    """
    if not all(part.isidentifier() for part in module.split(".")):
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except Exception:  # importing the package may raise anything
        return False


def _signature(part: Callable[..., Any]) -> inspect.Signature:
    try:
        return _cached_signature(part)
    except TypeError:  # a callable that cannot be hashed
        return inspect.signature(part)


@functools.lru_cache(maxsize=256)
def _cached_signature(part: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(part)


def accepts(part: Callable[..., Any]) -> tuple[set[str], bool]:
    """Return the parameter names of a callable, and whether it has ``**kwargs``.

    >>> accepts(lambda a, b=1: 0) == ({"a", "b"}, False)
    True
    """
    try:
        parameters = _signature(part).parameters.values()
    except ValueError:  # some functions written in C have no signature
        return set(), True
    named = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    return named, any(p.kind == p.VAR_KEYWORD for p in parameters)


def build(
    what: str, part: Callable[..., T], params: Mapping[str, Any], offers: Mapping[str, Any]
) -> T:
    """Call a component with the user's parameters and with those offers that it accepts.

    An unknown or missing parameter is a DefinitionError; errors of the component pass through.

    >>> build('head "knn"', lambda k, seed: (k, seed), {"k": 3}, {"seed": 1, "kind": ""})
    (3, 1)
    """
    named, any_name = accepts(part)
    wrong = [name for name in params if name not in named and not any_name]
    if wrong:
        hint = did_you_mean(wrong[0], named)
        has = ", ".join(sorted(named - set(offers))) or "none"
        raise DefinitionError(f'{what} has no parameter "{wrong[0]}".{hint} It has: {has}.')
    arguments = {**{name: value for name, value in offers.items() if name in named}, **params}
    if named:
        try:
            _signature(part).bind(**arguments)
        except TypeError as error:
            raise DefinitionError(f"{what}: {error}.") from error
    return part(**arguments)


def _modules(package: str, names: str) -> list[str]:
    return [f"karat.{package}.{name}" for name in names.split()]


models = Registry("model")
datasets = Registry("dataset")
metrics = Registry("metric", _modules("metrics", "supervised rankings"))
corruptions = Registry(
    "corruption",
    _modules(
        "corruptions", "row_noise missing_cells cell_noise column_noise text_noise vector_noise"
    ),
)
heads = Registry("head", _modules("probes", "estimators"))
splitters = Registry("splitter", ["karat.execution.splits"])
composers = Registry("composer", ["karat.probes.trained"])
probes = Registry(
    "probe",
    _modules("probes", "trained similarity relations retrieval"),
)
readers = Registry(
    "reader",
    _modules("data.readers", "table_files text graph tabred translations record_pairs"),
)
query_generators = Registry("query_generator")
#: functions that read the names and vectors of a file
vector_formats = Registry("vector_format")
#: functions of two vectors that return their similarity
measures = Registry("measure")
#: functions of the vectors a, b and c that return the vector to search for
analogy_functions = Registry("analogy_function", ["karat.probes.relations"])
#: formats of definition files other than Karat's own, as records of ``DefinitionFormat``
definition_formats = Registry("definition_format")

#: functions that return a suite by its name without the prefix, as in "mteb:STSBenchmark"
suite_sources = Registry("suite_source")
#: functions that return the runs of a folder of result files, or None if it is not theirs
result_folders = Registry("result_folder")

#: functions from a name such as "sentence-transformers:NAME" to a short name and the model
model_sources = Registry("model_source")
#: what makes a dataset of documents, and what tells whether a folder has some
corpora = Registry("corpus")
#: functions that return the model of another library's object, or None if it is not theirs
adapters = Registry("adapter")
#: what a run may spend on a service, as classes of ``karat.core.services.ServiceAccount``
accounts = Registry("account")
#: functions of a plan that yield lines about what it would send to a service
bills = Registry("bill")
#: where jobs run, as classes of ``karat.execution.engine.Engine``
engines = Registry("engine", ["karat.execution.engine"])
#: how several calls divide a plan, as ``PlanParts`` of the same module
plan_parts = Registry("plan_parts")
#: sections of the page, as classes of ``karat.reporting.page_section``
page_sections = Registry("page_section")
#: checks of runs, as records of ``karat.analysis.checks.Rule`` under their codes
checks = Registry("check")
#: functions that print what karat plan tells on request
plan_notes = Registry("plan_note")
#: experiment trackers, as objects with ``check()`` and ``send(runs)``
trackers = Registry("tracker")
#: functions that yield names and contents of the files of an export
exporters = Registry("exporter")
#: what reads and writes result files of other systems
interchange = Registry("interchange")
#: ways to write a report besides the page, as functions of runs and a folder that return files
report_formats = Registry("report_format")
#: functions that draw a kind of plot
plots = Registry("plot")
#: systems that ``karat serve`` evaluates besides suites, as classes made from its settings
served_systems = Registry("served_system")


ALL = (
    models,
    datasets,
    metrics,
    corruptions,
    heads,
    splitters,
    composers,
    probes,
    readers,
    query_generators,
    vector_formats,
    measures,
    analogy_functions,
)


def user_components() -> dict[str, dict[str, Any]]:
    """Return all components that users registered, by kind, to pass to worker processes."""
    return {parts.kind: parts.own() for parts in ALL}


def has_user_components() -> bool:
    """Return whether users have registered any component in this process."""
    return any(user_components().values())


def register_user_components(components: Mapping[str, Mapping[str, Any]]) -> None:
    """Register components of another process."""
    for parts in ALL:
        for name, part in components.get(parts.kind, {}).items():
            parts.register(name, part)


def _decorator(registry: Registry) -> Callable[[str], Callable[[T], T]]:
    def named(name: str) -> Callable[[T], T]:
        return lambda part: registry.register(name, part)

    kind = registry.kind.replace("_", " ")
    named.__doc__ = f"""Register {"an" if kind[0] in "aeiou" else "a"} {kind} under a name.

Parameters
----------
name
    The name in definitions and on the command line; it must not be taken.
"""
    return named


def corruption(
    name: str,
    *,
    takes: Iterable[str] | None = None,
    needs: Iterable[str] | None = None,
    range: tuple[float, float] | None = None,
) -> Callable[[T], T]:
    """Register a corruption under a name.

    The declarations are checked before anything runs. They become attributes of the function; a
    ``functools.partial`` of a corruption inherits them.

    Parameters
    ----------
    name
        The name in tasks.
    takes
        The modalities: ``"table"``, ``"text"``, ``"entity"`` or ``"vectors"``.
    needs
        Requirements on the data: names of ``karat.corruptions.needs.NEEDS``.
    range
        The lowest and the highest severity.
    """

    def add(part: T) -> T:
        whole: Any = part
        while isinstance(whole, functools.partial):
            whole = whole.func
        for what, value in (("takes", takes), ("needs", needs), ("range", range)):
            declared: Any = getattr(whole, what, None) if value is None else value
            if declared is not None:
                setattr(part, what, (declared,) if isinstance(declared, str) else tuple(declared))
        return corruptions.register(name, part)

    return add


encoder = predictor = _decorator(models)
dataset = _decorator(datasets)
head = _decorator(heads)
splitter = _decorator(splitters)
composer = _decorator(composers)
probe = _decorator(probes)
reader = _decorator(readers)
query_generator = _decorator(query_generators)
vector_format = _decorator(vector_formats)
measure = _decorator(measures)
analogy_function = _decorator(analogy_functions)
suite_source = _decorator(suite_sources)
result_folder = _decorator(result_folders)
engine = _decorator(engines)
