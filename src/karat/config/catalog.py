"""The catalog: find models, tasks, suites and datasets by name, in YAML or registered code.

Components of a task are checked: they must exist and fit its data. _Overrides are ``key=value``
texts of the command line: ``f.n_estimators=300`` sets a parameter of the models,
``t.max_runtime_seconds=60`` or ``t.split.folds=3`` a value of the tasks, ``seed=7`` an option of
the run.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import inspect
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from karat.config.loading import Definitions, merge_values
from karat.config.model_names import no_such_model
from karat.config.yaml_files import format_path
from karat.core import registry
from karat.core.columns import refuse_fractions
from karat.core.dataset import Dataset
from karat.core.embeddings import Variant, make_variants, split_name
from karat.core.task import Suite, Task
from karat.corruptions.view import check_view, parse_composition, views
from karat.data.load_dataset import fetch_file, load_dataset
from karat.data.readers.table_files import OPENERS
from karat.errors import DataError, DefinitionError, KaratError, Unavailable, did_you_mean, unknown
from karat.metrics.metric import get_metric
from karat.models.adapters import adapt, dependencies, is_address, is_vector_file
from karat.models.model import Model
from karat.models.model_identity import object_identity

#: prefix of a parameter that names a dataset, whose file is passed
DATA_PREFIX = "data:"
#: prefix of parameters that are defined models, such as the first stage of a reranker
MODEL_PREFIX = "model:"
#: prefix of a folder or a hub name that sentence-transformers loads
#: targets by task kind; suffixes of task names; the default task of each
ANSWERS = {"classification": "classification", "regression": "regression"}
ENDS = ("classification", "multiclass", "regression")
PLAIN = {
    "classification": "binary-classification",
    "multiclass": "classification",
    "regression": "regression",
}
_METRICS = {
    "binary": ("auc", "acc", "balacc", "logloss"),
    "multiclass": ("acc", "balacc", "logloss"),
    "regression": ("rmse", "mae", "r2"),
    "items": ("hits@1", "hits@10", "mrr"),
    "lists": ("map", "mrr@10", "ndcg@10", "recall@10"),
    "clusters": ("v_measure", "ari", "ami"),
    "scores": ("spearman", "pearson"),
}
#: the fields of a task that can be changed: all but name and dataset
CHANGEABLE = tuple(f.name for f in dataclasses.fields(Task) if f.name not in ("name", "dataset"))


@dataclass(frozen=True)
class DatasetLoader:
    """Load a defined dataset when called; errors name file and line.

    ``path`` is the key path of the definition, ``origins`` the place of each value.
    """

    name: str
    definition: Mapping[str, Any]
    folder: Path | None
    path: tuple[str, ...]
    origins: Mapping[tuple[str | int, ...], str]

    def __call__(self) -> Dataset:
        """Return the dataset."""
        try:
            return load_dataset(self.name, self.definition, self.folder)
        except Unavailable:
            raise
        except DataError as error:
            raise DataError(self._located(str(error), error.value), error.value) from error
        except DefinitionError as error:
            raise DefinitionError(*(self._located(m, None) for m in error.messages)) from error

    def _located(self, message: str, value: str | None) -> str:
        # the line of the wrong setting, or the first line of the definition
        message = message.removeprefix(f"{self.name}: ")
        quoted = [value] if value is not None else re.findall('"([^"]+)"', message)[:1]
        for path, file_line in self.origins.items():
            if path == ("modality",) and "modality" not in message:  # "column" is often a header
                continue
            setting: Any = self.definition
            with suppress(KeyError, IndexError, TypeError):
                for step in path:
                    setting = setting[step]
            if setting in quoted:
                return f"{file_line}: {format_path((*self.path, *path))}: {message}"
        begin, where = next(iter(self.origins.values()), ""), format_path(self.path)
        if message.startswith(where):  # the file of a table, which its reader names too
            where = ""
        return ": ".join(text for text in (begin, where, message) if text)


class Catalog:
    """All named objects: built-in, of the user's YAML files, and registered in Python."""

    def __init__(self, files: Sequence[str | Path] | str | Path = ()) -> None:
        paths = [files] if isinstance(files, str | Path) else files
        self._files = [Path(file) for file in paths]

    @cached_property
    def definitions(self) -> Definitions:
        """The checked definitions of all YAML files; Python files are imported first."""
        for file in self._files:
            if file.suffix == ".py":
                _import_file(file)
        return Definitions.load([file for file in self._files if file.suffix != ".py"])

    # -- models -----------------------------------------------------------------------------

    def models(
        self, wanted: Iterable[Any] | Mapping[str, Any] | Any, variants: Sequence[Variant] = ()
    ) -> list[Model]:
        """Return the wanted models with their variants; all mistakes are reported at once.

        ``variants`` are those of every encoder, instead of those that its definition has.
        """
        if isinstance(wanted, Mapping):
            pairs = list(wanted.items())
        else:
            several = isinstance(wanted, list | tuple | set)
            pairs = [(None, model) for model in (wanted if several else [wanted])]
        models: list[Model] = []
        messages: list[str] = []
        for name, model in pairs:
            try:
                one = self.model(model, name)
                if variants and one.role == "encoder":
                    one = dataclasses.replace(one, variants=tuple(variants))
                models += one.expanded()
            except DefinitionError as error:
                messages += error.messages
            except KaratError as error:
                messages.append(str(error))
        names = [model.name for model in models]
        messages += [
            f'two models are named "{name}"; name them: first=…, second=…'
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
        if variants and models and all(model.role != "encoder" for model in models):
            messages.append("dimensions and precision need an encoder; no model given is one.")
        if messages:
            raise DefinitionError(*dict.fromkeys(messages))
        return models

    def model(
        self, model: object, name: str | None = None, params: Mapping[str, Any] | None = None
    ) -> Model:
        """Return a model from a name, a file, a URL, a ``"package.module:Name"`` or an object.

        ``"NAME=…"`` sets its name, ``"…@64d-int8"`` is a variant; ``params`` override its
        parameters.
        """
        if params and not (isinstance(model, str) and model in self.definitions.names("models")):
            raise DefinitionError(f"{model}: params need a model defined in YAML.")
        if not isinstance(model, str):
            return adapt(model, name)
        source = model.partition(":")[0]
        if is_address(model):
            return _from_source(source.lower(), model, name)
        label, _, what = model.partition("=")
        if what and label.strip() and name is None and not _is_file(model):
            return self.model(what, label.strip())
        if model in self.definitions.names("models", abstract=True):
            return self._defined(model, name, params or {})
        if model in registry.models:
            return adapt(registry.models.get(model), name or model)
        if is_vector_file(model) or _is_file(model) or model.endswith(".py"):
            return adapt(_vector_file(model), name)
        if stated := split_name(model):
            one = self.model(stated[0]).as_variant(stated[1])
            return one if name is None else dataclasses.replace(one, name=name)
        if ":" in model and source in registry.model_sources:
            return _from_source(source, model, name)
        if ":" in model:
            return adapt(registry.load_object(model), name or model.rpartition(":")[2])
        raise no_such_model(model, [*self.definitions.names("models"), *registry.models])

    def _defined(self, key: str, name: str | None, more: Mapping[str, Any]) -> Model:
        definition = self.definitions.chosen("models", key)
        definition["params"] = merge_values(definition.get("params") or {}, more)
        if definition.get("abstract"):
            raise DefinitionError(
                f'the model "{key}" is abstract; extend it in a YAML file (--define).'
            )
        not_installed = [m for m in definition.get("requires") or [] if not _installed(m)]
        # do not download files for a model that cannot run
        params, missing, stages = self._params({} if not_installed else definition["params"])
        if not_installed:
            extra = definition.get("extra")
            package = f'"karat[{extra}]"' if extra else not_installed[0]
            missing = f"{not_installed[0]} is not installed: pip install {package}"
        role, folds = definition.get("role"), definition.get("out_of_fold")
        if missing:  # importing its class may need what is missing
            model = Model(name or key, None, role or "encoder")
        else:
            built = _made(f'model "{key}"', registry.models.get(definition["use"]), params)
            if folds:
                built = _out_of_fold(f'model "{key}"', built, folds)
            model = adapt(built, name or key, role)
        return dataclasses.replace(
            model,
            depends_on=(*self._dependencies(key, definition, model), *stages),
            artifacts=tuple(definition.get("artifacts") or ()),
            takes=tuple(definition["takes"]) if definition.get("takes") else model.takes,
            version=definition.get("version") or model.version,
            params={**definition["params"], **({"out_of_fold": folds} if folds else {})},
            unavailable=missing or model.unavailable,
            variants=_variants(key, definition),
        )

    def _dependencies(
        self, key: str, definition: Mapping[str, Any], model: Model
    ) -> tuple[str, ...]:
        """Return what a defined model depends on: its class, its definition, and its version."""
        named = definition.get("depends_on") or []
        folder = self.definitions.folder("models", key, "depends_on") if named else None
        version = [f"version:{definition['version']}"] if definition.get("version") else []
        return (*model.depends_on, *dependencies(f'model "{key}"', [*named, *version], folder))

    def _params(self, written: Mapping[str, Any]) -> tuple[dict[str, Any], str, tuple[str, ...]]:
        """Return the parameters, what is missing, and what models among them depend on."""
        params, missing = dict(written), ""
        depends_on: tuple[str, ...] = ()
        for name, value in written.items():
            if _names_models(value):
                stages = self._stages(value)
                objects = [stage.prototype for stage in stages]
                params[name] = objects[0] if isinstance(value, str) else objects
                missing = next(
                    (stage.unavailable for stage in stages if stage.unavailable), missing
                )
                depends_on += tuple(one for stage in stages for one in stage.depends_on)
            elif isinstance(value, str) and value.startswith(DATA_PREFIX):
                key = value.removeprefix(DATA_PREFIX)
                definition = self.definitions.get("datasets", key)
                folder = self.definitions.folder("datasets", key, "path")
                try:
                    params[name] = str(fetch_file(key, definition, folder))
                except Unavailable as error:
                    missing = str(error)
        return params, missing, depends_on

    def _stages(self, value: str | list[str]) -> list[Model]:
        """Return the models that a parameter names."""
        names = [value] if isinstance(value, str) else value
        stages = [self.model(name.removeprefix(MODEL_PREFIX)) for name in names]
        for stage in stages:
            if stage.variant is not None:
                raise DefinitionError(f'a stage cannot be a variant: "{stage.name}".')
        return stages

    # -- tasks, suites, datasets ------------------------------------------------------------

    def suite(self, name: str) -> Suite:
        """Return a suite: a defined one, ``openml/s/271``, ``mteb:STS17``, or that of a task."""
        if name.startswith("openml/"):
            from karat.data.openml import openml_tasks_by_name

            formats = registry.definition_formats
            usual = formats.get("amlb").usual_metrics if "amlb" in formats else {}
            tasks = openml_tasks_by_name(name)
            return Suite(name, tuple(Task(**fields, usual=usual) for fields in tasks))
        if source := suite_source(name):
            suite: Suite = source(name)
            return suite
        if name not in self.definitions.names("suites"):
            if name in self.definitions.names("tasks"):
                return Suite(name, (self.task(name),))
            names = [*self.definitions.names("suites"), *self.definitions.names("tasks")]
            raise unknown("suite", name, names)
        definition = self.definitions.get("suites", name)
        left_out = (definition.get("left_out") or {}).values()
        if not definition["tasks"]:
            raise DefinitionError(f'no task of the suite "{name}" can be run.', *left_out)
        for why in left_out:
            warnings.warn(why, stacklevel=2)
        return Suite(
            name=name,
            tasks=tuple(task for named in definition["tasks"] for task in self.tasks(named)),
            models=tuple(definition.get("models") or ()),
            description=definition.get("description") or "",
        )

    def tasks(self, name: str) -> Sequence[Task]:
        """Return a defined task, or those of a name such as ``mteb:STS17``."""
        return self.suite(name).tasks if suite_source(name) else (self.task(name),)

    def task(self, name: str) -> Task:
        """Return a defined task; its dataset is loaded on first use."""
        definition = self.definitions.chosen("tasks", name)
        if definition.get("abstract"):
            raise DefinitionError(f'the task "{name}" is abstract; extend it in a YAML file.')
        called, dataset = definition.get("called") or name, definition["dataset"]
        if isinstance(dataset, str):
            return _task(called, definition, self.dataset(dataset))
        origins = {
            path[1:]: file_line
            for path, file_line in self.definitions.origins("tasks", name).items()
            if path[0] == "dataset"
        }
        folder = self.definitions.folder("tasks", name, "dataset", "path")
        loader = DatasetLoader(
            name=called,
            definition=dataset,
            folder=folder,
            path=("tasks", name, "dataset"),
            origins=origins,
        )
        return _task(called, definition, loader)

    def table_suite(
        self,
        path: str | Path,
        target: str,
        like: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Suite:
        """Return a suite of one task on the user's table, configured like a defined task.

        ``settings`` are further keys of the dataset, such as ``positive`` or ``options``.

        ``like`` is the name of a task, or the common prefix of tasks named "-classification",
        "-multiclass" and "-regression", of which the data select one. Default: plain classification
        or regression. The models are those of the suite ``like``, if there is one.
        """
        task_names = self.definitions.names("tasks", abstract=True)
        if like is not None and not any(
            name in task_names for name in (like, *_alike(like, *ENDS))
        ):
            short = [
                name.removesuffix(f"-{end}") for end in ENDS for name in task_names if end in name
            ]
            raise unknown("task", like, [*short, *task_names])
        kind = self.definitions.get("tasks", str(like)).get("kind") if like in task_names else ""
        settings = {"kind": ANSWERS.get(str(kind)), **(settings or {})}
        data = load_user_table(Path(path), target, settings)
        request = {"file": str(Path(path).absolute()), "target": target, "like": like}
        named = {name: value for name, value in settings.items() if value is not None}
        facts: Any = {**data.about, "table": {**request, "settings": named}}
        data = replace(data, about=facts)
        ends = ["multiclass", "classification"] if len(data.classes) > 2 else ["classification"]
        ends = ["regression"] if data.kind == "regression" else ends
        names = [PLAIN[ends[0]]] if like is None else [like, *_alike(like, *ends)]
        templates = [name for name in names if name in task_names]
        if not templates:
            raise unknown("task", names[-1], task_names)
        task = _task(data.name, self.definitions.get("tasks", templates[0]), data)
        suites = self.definitions.names("suites")
        models = self.definitions.get("suites", str(like)).get("models") if like in suites else ()
        return Suite(data.name, (task,), tuple(models or ()))

    def corpus_suite(self, folder: str | Path, options: Mapping[str, Any] | None = None) -> Suite:
        """Return a suite of one retrieval task on the user's corpus; see the reader "corpus"."""
        name = Path(folder).absolute().name
        definition = {"path": str(folder), "reader": "corpus", "options": dict(options or {})}
        loader = DatasetLoader(
            name=name, definition=definition, folder=None, path=(str(folder),), origins={}
        )
        return Suite(name, (_task(name, self.definitions.get("tasks", "corpus"), loader),))

    def dataset(self, name: str) -> Any:
        """Return a function that loads a dataset."""
        if name in self.definitions.names("datasets", abstract=True):
            origins = self.definitions.origins("datasets", name)
            folder = self.definitions.folder("datasets", name, "path")
            definition = self.definitions.get("datasets", name)
            return DatasetLoader(
                name=name,
                definition=definition,
                folder=folder,
                path=("datasets", name),
                origins=origins,
            )
        if name in registry.datasets:
            return registry.datasets.get(name)
        raise unknown("dataset", name, [*self.definitions.names("datasets"), *registry.datasets])


def suite_source(name: str) -> Callable[[str], Suite] | None:
    """Return the function that finds a suite such as ``mteb:STSBenchmark``, if it has a prefix."""
    prefix, colon, _ = name.partition(":")
    source: Callable[[str], Suite] | None = None
    if colon and prefix in registry.suite_sources:
        source = registry.suite_sources.get(prefix)
    return source


def builtin_file(name: str) -> Path:
    """Return the file of a dataset of the built-in definitions, downloaded if necessary."""
    return fetch_file(name, Definitions.load().get("datasets", name))


def table_name(file: Path) -> str:
    """Return the name of a table: that of its file without suffixes.

    >>> table_name(Path("data/churn.csv.gz")), table_name(Path("v1.2.csv"))
    ('churn', 'v1.2')
    """
    packed = file.suffix.lower() in OPENERS
    return Path(file.stem).stem if packed else file.stem


def load_user_table(file: Path, target: str, settings: Mapping[str, Any]) -> Dataset:
    """Return the dataset of a table; warn if its target may be classes or numbers."""
    options, kind = dict(settings), settings.get("kind")
    test = options.pop("test", None)
    places = {"train": str(file.absolute()), "test": str(test)}
    path = places["train"] if test is None else places
    definition = {**options, "path": path, "target": target}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the target is whole numbers")
        data = DatasetLoader(
            name=table_name(file), definition=definition, folder=None, path=(str(file),), origins={}
        )()
    data = data.with_drawn_by("target")  # a renamed file has the same folds
    truth: Any = data.target
    if data.kind == "classification":
        refuse_fractions(truth, f'{file}: "{target}"')
    whole = truth.dtype.kind in "iuf" and bool((truth % 1 == 0).all())
    if kind is None and whole and len(set(truth.tolist())) > 2:
        warnings.warn(
            f'{data.name}: "{target}" is whole numbers, taken as {data.kind} '
            f"(--kind classification or --kind regression sets it)",
            stacklevel=2,
        )
    return data


def _from_source(source: str, model: str, name: str | None) -> Model:
    """Return the model of a name with a prefix, from what an extension has for the prefix."""
    short, prototype = registry.model_sources.get(source)(model)
    return adapt(prototype, name or short)


def _alike(like: str, *ends: str) -> list[str]:
    return [f"{like}-{end}" for end in ends]


def _vector_file(model: str) -> Path:
    """Return the path of a vector file, or raise a DefinitionError."""
    if model.endswith(".py"):
        raise DefinitionError(
            f'{model} is Python code; name a class in it, "{Path(model).stem}:Name", '
            f"or register it there and add --define {model}."
        )
    if not _is_file(model):
        near = [path.name for path in Path(model).parent.glob("*")]
        hint = did_you_mean(Path(model).name, near)
        raise DefinitionError(f"there is no vector file {model}.{hint}")
    return Path(model)


def _variants(key: str, definition: Mapping[str, Any]) -> tuple[Variant, ...]:
    """Return the variants of a defined model."""
    widths, bits = definition.get("dimensions"), definition.get("precision")
    try:
        return tuple(make_variants(widths, bits, definition.get("rescore") or False))
    except DefinitionError as error:
        raise DefinitionError(
            *(f'model "{key}": {message}' for message in error.messages)
        ) from error


def _names_models(value: object) -> bool:
    """Return whether a parameter is "model:NAME", or a list of such names."""
    several = value if isinstance(value, list) and value else [value]
    return all(isinstance(part, str) and part.startswith(MODEL_PREFIX) for part in several)


def _task(name: str, definition: Mapping[str, Any], dataset: object) -> Task:
    fields = {field.name for field in dataclasses.fields(Task)}
    values = {k: v for k, v in definition.items() if k in fields and v is not None}
    return Task(**{**values, "name": name, "dataset": dataset})


def _import_file(file: Path) -> None:
    """Import a Python file that registers components; workers get its classes by value."""
    import cloudpickle

    # the module name depends on the path: files of the same name are different modules
    checksum = zlib.crc32(str(file.absolute()).encode())
    name = f"karat_define_{file.stem}_{checksum:08x}"
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
    except (Exception, SystemExit) as error:
        raise DefinitionError(f"{file}: {type(error).__name__}: {error}") from error


def _made(what: str, part: object, params: Mapping[str, Any]) -> Any:
    """Return the model of ``use``: an instance, or a function of the items."""
    if not callable(part):
        if params:
            raise DefinitionError(f"{what}: an object has no params; give its class in use.")
        return part
    if inspect.isfunction(part):
        needed = [p for p in inspect.signature(part).parameters.values() if p.default is p.empty]
        if any(p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in params for p in needed):
            return functools.partial(part, **params)
    return registry.build(what, part, params, {})


def _out_of_fold(what: str, built: object, folds: int) -> Any:
    """Return an encoder that embeds the train rows out of fold, if the model supports it."""
    from karat.models.out_of_fold import OutOfFold

    model = adapt(built)
    if model.role != "encoder" or model.stateless:
        why = "a predictor" if model.role != "encoder" else "stateless"
        raise DefinitionError(
            f"{what}: out_of_fold needs an encoder that is fitted; this one is {why}."
        )
    if not getattr(model.prototype, "aligned", True):
        raise DefinitionError(
            f"{what}: out_of_fold needs dimensions with the same meaning in every fit; remove it."
        )
    return OutOfFold(model.prototype, folds=folds)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent package is missing
        return False


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or a null byte in it
        return False


def check_components(task: Task) -> None:
    """Refuse unknown components, and parameters or severities they do not accept."""
    messages: list[str] = []
    for parts, name in named_components(task):
        try:
            get_metric(name) if parts is registry.metrics else parts.get(name)
        except DefinitionError as error:
            messages += with_task_name(task, error).messages
    if messages:
        raise DefinitionError(*messages)
    try:
        for view in views(task.corruptions):
            check_view(view)
    except DefinitionError as error:
        raise with_task_name(task, error) from error
    probe: Any = task.probe
    used = {name: value for name, value in probe.items() if name != "use"}
    built = registry.build(
        f'task "{task.name}": probe', registry.probes.get(probe["use"]), used, {}
    )
    if task.missing == "penalize" and not getattr(built, "one_answer_each", True):
        raise DefinitionError(
            f'task "{task.name}": the probe {probe["use"]} has no default answer, so '
            f"it cannot penalize; set missing: ignore."
        )


def named_components(task: Task) -> Iterator[tuple[registry.Registry, str]]:
    """Yield the registry and the name of every component of a task."""
    probe: Any = task.probe
    how: Any = task.split
    if task.ask is not None:
        yield registry.query_generators, task.ask["use"]  # type: ignore[index]
    yield registry.probes, probe["use"]
    yield registry.splitters, how["use"]
    for name in _heads(probe.get("head")):
        yield registry.heads, name
    if probe.get("compose"):
        yield registry.composers, str(probe["compose"])
    for name in dict.fromkeys(
        part for composition in task.corruptions for part, _ in parse_composition(composition)
    ):
        yield registry.corruptions, name
    for name in task.metrics:
        yield registry.metrics, name
    yield from _functions(probe)


def _functions(probe: Mapping[str, Any]) -> Iterator[tuple[registry.Registry, str]]:
    """Yield the user's similarity measures and analogy functions by registered name."""
    head: Any = probe.get("head")
    functions = [probe.get("measure"), head.get("metric") if isinstance(head, Mapping) else None]
    user_measures = registry.measures.own()
    yield from (
        (registry.measures, name)
        for name in functions
        if isinstance(name, str) and name in user_measures
    )
    function = probe.get("function")
    if isinstance(function, str) and ":" not in function:
        yield registry.analogy_functions, function


def _heads(head: object) -> Iterator[str]:
    """Yield the name of the head and of the heads inside it."""
    if isinstance(head, Mapping):
        inner = head.get("heads")
        for name in (head.get("use"), *(inner if isinstance(inner, list | tuple) else ())):
            yield from _heads(name)
    elif head:
        yield str(head)


def check_head(task: Task, data: Dataset) -> None:
    """Create the head once, so that a wrong parameter is found before any job runs."""
    probe: Any = task.probe
    head = probe.get("head")
    if not isinstance(head, Mapping):
        return
    if not isinstance(head.get("use"), str):
        raise DefinitionError(f'task "{task.name}": a head with parameters needs use: <its name>.')
    params = {name: value for name, value in head.items() if name != "use"}
    offers = {"kind": data.kind, "random_state": 0, "n_clusters": max(len(data.classes), 2)}
    what = f'task "{task.name}": head "{head["use"]}"'
    registry.build(what, registry.heads.get(head["use"]), params, offers)


def check_metrics(task: Task, data: Dataset, blind: bool) -> None:
    """Refuse a task whose primary metric cannot be computed; other metrics may be empty."""
    probe: Any = task.probe
    _check_weights(task, data)
    offered = {
        "trained": {"clusters", "classes"} if blind else {data.target_type},
        "similarity": {"scores", data.target_type},
        "duplicates": {"scores", "numbers"},
        **dict.fromkeys(("analogy", "links", "nearest", "same-class"), {"rank"}),
    }.get(probe["use"])
    needs = set(get_metric(task.metrics[0]).needs)
    if "binary" in needs and probe["use"] == "trained":
        why = f"{len(data.classes)}; use auc_ovr or acc" if len(data.classes) > 2 else ""
        if data.kind == "regression" and not np.isin(np.asarray(data.target), (0, 1)).all():
            why = "numbers"
        if why:
            raise DefinitionError(
                f'task "{task.name}": the metric {task.metrics[0]} needs exactly two classes; '
                f"{data.name} has {why}."
            )
    needed = {"classes", "numbers", "clusters", "rank"} & needs
    if offered is not None and needed - offered:
        raise DefinitionError(
            f'task "{task.name}": the metric {task.metrics[0]} needs {needed.pop()}, and '
            f"{data.name} under the probe {probe['use']} gives {' or '.join(sorted(offered))}."
        )


def _check_weights(task: Task, data: Dataset) -> None:
    if data.weight is None:
        return
    probe: Any = task.probe
    if probe["use"] not in ("trained", "similarity"):
        raise DefinitionError(
            f'task "{task.name}": the probe {probe["use"]} does not take the weights of '
            f"{data.name}; remove them."
        )
    if not get_metric(task.metrics[0]).weighted:
        raise DefinitionError(
            f'task "{task.name}": the metric {task.metrics[0]} does not take the weights of '
            f"{data.name}; choose another first metric, or remove the weights."
        )


def default_metrics(task: Task, data: Dataset, blind: bool) -> tuple[str, ...]:
    """Return the default metrics for the data."""
    probe: Any = task.probe
    if probe["use"] in ("nearest", "same-class"):
        return _METRICS["lists"]
    if data.kind == "items":
        return _METRICS["items"]
    if blind and probe["use"] == "trained":
        return _METRICS["clusters"]
    if probe["use"] == "similarity":
        return ("auc", "pr_auc") if data.kind == "classification" else _METRICS["scores"]
    many = "binary" if len(data.classes) == 2 else "multiclass"
    kind = "regression" if data.kind == "regression" else many
    return tuple(task.usual.get(kind) or _METRICS[kind])


def hash_user_components(task: Task) -> str:
    """Return a hash of the user's own components in a task: changed code changes it."""
    user_components = registry.user_components()
    codes = []
    for parts, name in named_components(task):
        if name in user_components[parts.kind] or ":" in name:
            part = parts.get(name)
            codes.append(f"{name} {_code(getattr(part, 'compute', part))}")
    probe: Any = task.probe
    for name, value in probe.items():  # the user's own function, as a measure
        path = isinstance(value, str) and ":" in value
        if path or (callable(value) and not isinstance(value, str)):
            codes.append(f"{name} {_code(registry.load_object(value) if path else value)}")
    return " ".join(codes)


def _code(part: object) -> str:
    return object_identity(part) or os.urandom(16).hex()


def with_task_name(task: Task, error: DefinitionError) -> DefinitionError:
    """Return the error with the name of the task in front."""
    return DefinitionError(*(f'task "{task.name}": {message}' for message in error.messages))


@dataclass(frozen=True)
class _Overrides:
    """_Overrides of models, of tasks and of the run."""

    models: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def parse(texts: Iterable[str]) -> _Overrides:
    """Parse ``key=value`` texts; a key alone is true.

    >>> parse(["f.max_depth=3", "seed=7", "t.metrics=['acc']"])
    _Overrides(models={'max_depth': 3}, tasks={'metrics': ['acc']}, options={'seed': 7})
    """
    overrides: dict[str, dict[str, Any]] = {"models": {}, "tasks": {}, "options": {}}
    for text in texts:
        key, equals, value = text.partition("=")
        start, dot, rest = key.partition(".")
        where = {"f": "models", "m": "models", "t": "tasks"}.get(start, "options")
        name = rest if dot and where != "options" else key
        if not name.strip() or (where != "options" and not dot):
            raise DefinitionError(
                f'-X must be key=value, f.PARAM=value or t.KEY=value, got "{text}".'
            )
        overrides[where][name] = value if equals else True
        words = {"true": True, "false": False, "null": None, "none": None}
        if equals and value.lower() in words:
            overrides[where][name] = words[value.lower()]
        elif equals:
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                overrides[where][name] = ast.literal_eval(value)
    return _Overrides(**overrides)


def change_models(models: Sequence[Model], overrides: Mapping[str, Any]) -> list[Model]:
    """Return the models with changed parameters; one that no model has is an error."""
    if not overrides:
        return list(models)
    from sklearn.base import clone

    read: list[Mapping[str, Any]] = [
        getattr(model.prototype, "get_params", dict)() for model in models
    ]
    parameter_names = {name for parameters in read for name in parameters}
    messages = [
        f'-X f.{name}: none of the models has a parameter "{name}".'
        f"{did_you_mean(name, parameter_names)} "
        f"Parameters: {', '.join(sorted(parameter_names)) or 'none'}."
        for name in overrides
        if name not in parameter_names
    ]
    if messages:
        raise DefinitionError(*messages)
    changed = []
    prototypes: dict[int, Any] = {}  # variants of an encoder keep one prototype
    for model, parameters in zip(models, read, strict=True):
        changes = {name: value for name, value in overrides.items() if name in parameters}
        if changes:
            prototype_id = id(model.prototype)
            if prototype_id not in prototypes:
                prototypes[prototype_id] = clone(model.prototype).set_params(**changes)
            params = {**model.params, **changes}
            model = dataclasses.replace(model, prototype=prototypes[prototype_id], params=params)
        changed.append(model)
    return changed


def change_tasks(suite: Suite, overrides: Mapping[str, Any]) -> Suite:
    """Return the suite with changed tasks; ``split.folds`` changes a nested value."""
    if not overrides:
        return suite
    tasks = []
    for task in suite:
        changes: dict[str, Any] = {}
        for name, value in overrides.items():
            key, dot, rest = name.partition(".")
            if key not in CHANGEABLE:
                raise DefinitionError(
                    f'-X t.{name}: a task has no field "{key}".{did_you_mean(key, CHANGEABLE)} '
                    f"Fields: {', '.join(CHANGEABLE)}."
                )
            old = changes.get(key, getattr(task, key))
            changes[key] = _inside(old, rest, value) if dot else value
        tasks.append(dataclasses.replace(task, **changes))
    return dataclasses.replace(suite, tasks=tuple(tasks))


def _inside(whole: object, path: str, value: object) -> Any:
    key, dot, rest = path.partition(".")
    inner = dict(whole) if isinstance(whole, Mapping) else {} if whole is None else {"use": whole}
    inner[key] = _inside(inner.get(key), rest, value) if dot else value
    return inner
