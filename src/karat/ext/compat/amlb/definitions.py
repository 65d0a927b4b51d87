"""The AutoML Benchmark's definition files, user folder, file datasets and ``-X`` overrides.

Files are recognized by their shape. Frameworks become models, a list of tasks becomes tasks and a
suite named after the file, and constraints become constraints. Every value keeps its place in the
file. An entry that cannot be run raises its error when it is selected.

The path of a dataset may be a file, a folder, an archive or a URL. Split files keep their folds:
the id of a row contains its fold and part, so that it stays valid in any subset of the rows.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import secrets
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd

from karat.config.yaml_files import (
    DefinitionFormat,
    Key,
    Mistake,
    Node,
    describe_value,
    mistake_at,
)
from karat.core import registry
from karat.core.columns import infer_kind, require_columns
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of, sha256_of_file
from karat.core.files import cache_folder
from karat.core.writing import draft_folder
from karat.data import http_download
from karat.data.archives import unpack
from karat.data.download import offline
from karat.data.file_sources import is_safe, without_password
from karat.data.load_dataset import DataSpec
from karat.data.readers.table_files import read_frame
from karat.errors import DataError, DefinitionError, KaratWarning, Unavailable, did_you_mean

IGNORED = ("ec2_instance_type", "ec2_volume_type")
LIMITS = ("folds", "max_runtime_seconds", "max_mem_size_mb", "cores")
#: their keys that have another name in Karat: their folds are the first ones that run
RENAMED = {"folds": "max_folds"}
CONSTRAINT_KEYS = (*LIMITS, "min_vol_size_mb", "description", *IGNORED)
INSTALLING = ("version", "setup_args", "setup_cmd", "setup_script", "setup_env", "repo", "image")
FRAMEWORK_KEYS = (
    "extends",
    "abstract",
    "removed",
    "module",
    "params",
    "description",
    "project",
    "refs",
    *INSTALLING,
)
#: the supported frameworks, in lower case, and the abstract model of each
MODULES = {
    f"frameworks.{name.lower()}": f"frameworks.{name}"
    for name in (
        "constantpredictor",
        "DecisionTree",
        "RandomForest",
        "TunedRandomForest",
        "flaml",
        "AutoGluon",
    )
}

#: the model that runs a module of the user's folder
USER_FRAMEWORK = "karat.compat.amlb.user_frameworks:UserFramework"
#: parameters of their wrappers that have an effect here, without the underscore
WRAPPER_PARAMS = ("step_size", "memory_margin", "k_folds")
#: keys with an underscore that the parameters of a framework may have
WRAPPER_KEYS = ("_save_artifacts", *(f"_{param}" for param in WRAPPER_PARAMS))
#: values of ``enabled`` that mean no
NOT_ENABLED = ("false", "no", "off", "n", "f", "0")

Entry = tuple[str, str, Node]
#: what a definition says of a dataset: a path, a mapping or a list of paths
Form = str | Mapping[str, Any] | Sequence[str]
DEFAULTS = "__defaults__"
TASK_KEYS = (
    "name",
    "enabled",
    "description",
    "openml_task_id",
    "openml_dataset_id",
    "dataset",
    "id",
    "metric",
    *LIMITS,
    "min_vol_size_mb",
    "quantile_levels",
    *IGNORED,
)
DATASET_KEYS = ("path", "train", "test", "target", "type", "features", "name")
SERIES_KEYS = ("freq", "forecast_horizon_in_steps", "seasonality", "id_column", "timestamp_column")
TYPES = ("binary", "multiclass", "classification", "regression")
#: their default metrics; the first is the result
USUAL = {
    "binary": ["auc", "logloss", "acc", "balacc"],
    "multiclass": ["logloss", "acc", "balacc"],
    "regression": ["rmse", "r2", "mae"],
}
#: default number of folds of a single file
FOLDS = 10
#: keys of a configuration file that name definition files
LOCATION_KEYS = (
    "frameworks.definition_file",
    "benchmarks.constraints_file",
    "benchmarks.definition_dir",
)
#: keys of a task and Karat's names for them
TASK_FIELDS = {"metric": "metrics", **{key: RENAMED.get(key, key) for key in LIMITS}}
#: supported keys of AMLB's configuration and Karat's options for them
RUN_KEYS = {
    "seed": "seed",
    "job_scheduler.parallel_jobs": "workers",
    "job_scheduler.exit_on_job_failure": "exit_on_error",
    "max_rows": "max_rows",
    "inference_time_measurements.batch_sizes": "inference",
}
#: their batch sizes for inference times
BATCHES = (1, 10, 100, 1000, 10000)
TIMING = "inference_time_measurements.enabled"
#: the default metrics of their configuration, by type
METRIC_KEYS = {f"benchmarks.metrics.{kind}": kind for kind in USUAL}
KNOWN = (*RUN_KEYS, TIMING, *METRIC_KEYS, *(f"t.{key}" for key in TASK_FIELDS), "f.PARAMETER")
#: sections of their configuration of which some keys have an effect
EFFECTIVE = (
    "benchmarks",
    "frameworks",
    "inference_time_measurements",
    "input_dir",
    "job_scheduler",
    "output_dir",
    "seed",
)
#: sections of their configuration that have no effect
UNUSED = (
    "archive",
    "aws",
    "container",
    "docker",
    "docs",
    "hidden",
    "job_history",
    "monitoring",
    "openml",
    "profiling",
    "project_repository",
    "results",
    "root_dir",
    "run_mode",
    "script",
    "setup",
    "sid",
    "singularity",
    "test_mode",
    "token_separator",
    "user_dir",
    "verbose",
    "versions",
)
#: sections that no definition file has
CONFIG_ONLY = ("project_repository", "aws", "job_scheduler", "input_dir", "output_dir")
#: largest size of a configuration file, in bytes
LARGEST_CONFIG = 1_000_000
#: folders in their configuration, used by the command
FOLDER_KEYS = ("input_dir", "output_dir")
#: the tags of frameworks in their default configuration, and the key that replaces them
TAGS = ("stable", "latest", "2020Q2", "2021Q3", "2023Q2")
TAGS_KEY = "frameworks.tags"
#: the benchmarks and constraints of this command
BUILT_IN = Path(__file__).parent / "builtin"
TABLES = (".csv", ".arff", ".parquet")
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
KINDS = {
    **dict.fromkeys(("binary", "multiclass", "classification"), "classification"),
    "regression": "regression",
}
_PART = re.compile(r"(.*[_-])?(train|test)(?:[_-](\d+))?", re.IGNORECASE)
_ID = re.compile(r"fold (\d+) (train|test) \d+")
_PLACEHOLDER = re.compile(r"\{(input|output|user|root)\}/*")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+://")


@dataclass
class Translation:
    """The entries of a file, as (section, name, definition), and its mistakes.

    ``left_out`` says that the file has no definitions, so that nothing in it matters.
    """

    entries: list[Entry] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    left_out: bool = False

    def check_keys(self, node: Node, path: tuple[Key, ...], allowed: Iterable[str]) -> None:
        """Report unknown keys."""
        allowed = list(allowed)
        for key, child in node.value.items():
            if key not in allowed:
                near = did_you_mean(str(key), allowed) or f" Allowed: {', '.join(allowed)}."
                text = f"unknown key of the AutoML Benchmark.{near}"
                self.mistakes.append(mistake_at(child, (*path, key), text, key=True))

    def refusals(self, section: str, name: str) -> str:
        """Return the mistakes of an entry as the reason why it cannot be selected."""
        return "; ".join(
            str(mistake) for mistake in self.mistakes if mistake.path[:2] == (section, name)
        )

    def refuse_mistaken(self) -> None:
        """Replace the entries with mistakes by their reasons: no mistake stops the others."""
        for position, (section, name, node) in enumerate(self.entries):
            if why := self.refusals(section, name):
                entry: dict[Key, Any] = {"refuse": why}
                self.entries[position] = (section, name, plain_node(entry, node))
        refused = {(section, name) for section, name, _ in self.entries}
        self.mistakes = [mistake for mistake in self.mistakes if mistake.path[:2] not in refused]

    def wrong(self, node: Node, path: tuple[Key, ...], wanted: str) -> None:
        """Report a value of the wrong type."""
        text = f"must be {wanted}, got {describe_value(node.value, node.text)}."
        self.mistakes.append(mistake_at(node, path, text, key=True))


def shape_of(root: Node) -> str:
    """Return ``"benchmark"``, ``"frameworks"``, ``"constraints"``, ``"configuration"`` or ``""``.

    >>> from karat.config.yaml_files import SourceFile, read_yaml
    >>> def shape(text): return shape_of(read_yaml(text.encode(), SourceFile("my.yaml"))[0])
    >>> shape("[{name: iris, openml_task_id: 59}]"), shape("{1h: {cores: 4}}"), shape("{a: {b: 1}}")
    ('benchmark', 'constraints', '')
    >>> shape("{RandomForest: {version: stable, params: {n_estimators: 2000}}}")
    'frameworks'
    """
    if isinstance(root.value, list):
        task_keys = {"name", "openml_task_id", "openml_dataset_id", "dataset"}
        tasks = [n for n in root.value if isinstance(n.value, dict) and task_keys & n.value.keys()]
        return "benchmark" if tasks and len(tasks) == len(root.value) else ""
    if set(root.value) & {*CONFIG_ONLY} and set(root.value) <= {*UNUSED, *EFFECTIVE}:
        return "configuration"
    entries = [n for n in root.value.values() if isinstance(n.value, dict)]
    if len(entries) < len(root.value):
        return ""
    # a mapping under one of their keys is a definition of Karat below a mistyped section
    keys = {
        key
        for node in entries
        for key, value in node.value.items()
        if key in ("params", "image") or not isinstance(value.value, dict)
    }
    if keys & {*LIMITS, "min_vol_size_mb"}:
        return "constraints"
    return "frameworks" if keys & {*FRAMEWORK_KEYS} - {"description"} else ""


def translate(root: Node) -> Translation:
    """Return the entries of one of their files."""
    translation = Translation()
    shape = shape_of(root)
    if shape == "benchmark":
        add_benchmark(translation, root, PurePath(root.file.label).stem)
    elif shape == "configuration":
        text = (
            f"{root.file.label} is a configuration of the AutoML Benchmark, without definitions: "
            "pass it as -X config=FILE, or its folder as -u."
        )
        warnings.warn(text, KaratWarning, stacklevel=2)
        translation.left_out = True
    elif shape == "constraints":
        for name, node in root.value.items():
            path = ("constraints", str(name))
            translation.check_keys(node, path, CONSTRAINT_KEYS)
            entry = dict(limits_of(translation, node, path))
            if node.child("description") is not None:
                entry["description"] = node.value["description"]
            translation.entries.append((*path, node.renewed(entry)))
    else:
        frameworks = {str(name): node for name, node in root.value.items()}
        for name in frameworks:
            if not name.startswith("__"):  # a template in their file
                translation.entries.append(
                    ("models", name, _Framework(translation, name, frameworks).entry())
                )
    translation.refuse_mistaken()
    return translation


def plain_node(value: object, at: Node) -> Node:
    """Return a value as a node at the place of another; nodes keep their own place."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Mapping):
        value = {key: plain_node(child, at) for key, child in value.items()}
    elif isinstance(value, list | tuple):
        value = [plain_node(child, at) for child in value]
    text = str(value) if isinstance(value, str | int | float) else ""
    return Node(value, at.file, at.line, at.key_line, text)


def limits_of(
    translation: Translation, node: Node, path: tuple[Key, ...]
) -> Iterator[tuple[str, Node]]:
    """Yield the limits that are set; -1 and null mean no limit."""
    for key in (*LIMITS, "min_vol_size_mb"):
        limit = node.child(key)
        if limit is None or limit.value in (None, -1):
            continue
        number = isinstance(limit.value, int | float) and not isinstance(limit.value, bool)
        if not number or limit.value <= 0:
            translation.wrong(limit, (*path, key), "a number > 0, or -1 for no limit")
        else:
            yield RENAMED.get(key, key), limit


class _Framework:
    """One of their frameworks during translation; ``others`` are those of its file."""

    def __init__(self, translation: Translation, name: str, others: Mapping[str, Node]) -> None:
        self.translation = translation
        self.name = name
        self.node = others[name]
        self.others = others
        self.path: tuple[Key, ...] = ("models", name)
        self.parent = self._parent(name)
        #: what runs it: the module of the framework, or that of the parent it ends at
        self.module = self._module(name, ())
        self.user_folder = user_module_folder(self.module, self.node.file.folder)

    def entry(self) -> Node:
        """Return the definition of the model."""
        translation, node = self.translation, self.node
        translation.check_keys(node, self.path, FRAMEWORK_KEYS)
        entry: dict[Key, Node] = {}
        names_of = {"abstract": "abstract", "description": "description", "project": "homepage"}
        for theirs, ours in names_of.items():
            if node.child(theirs) is not None:
                entry[ours] = node.value[theirs]
        if (refs := node.child("refs")) is not None:
            texts = refs.plain() if isinstance(refs.value, list) else [refs.plain()]
            entry["citation"] = plain_node(" ".join(map(str, texts)), refs)
        entry |= self._runs()
        entry |= self._params()
        removed = node.child("removed")
        if removed is not None and removed.value not in (None, False):
            why = f": {removed.value}" if isinstance(removed.value, str) else "."
            text = f'{removed.place}: "{self.name}" was removed{why}'
            entry["refuse"] = plain_node(text, removed)
        return node.renewed(entry)

    def _parent(self, name: str) -> str | None:
        """Return the parent of a framework, spelled as it is defined; one of itself is ignored."""
        extends = self.others[name].child("extends") if name in self.others else None
        if extends is None or extends.value is None:
            return None
        ours = [pattern.partition(".")[2] for pattern in MODULES.values()]
        spelling = {framework.lower(): framework for framework in (*ours, *self.others)}
        parent = spelling.get(str(extends.value).lower(), str(extends.value))
        return None if parent == name else parent

    def _module(self, name: str, trail: tuple[str, ...]) -> str:
        """Return the module of a framework, or of the first parent that names one."""
        node = self.others.get(name)
        written = node.child("module") if node is not None else None
        if written is not None and written.value is not None:
            return str(written.value)
        parent = self._parent(name)
        if parent is None or parent in trail:
            return f"frameworks.{name}"
        return self._module(parent, (*trail, name))

    def _runs(self) -> dict[Key, Node]:
        """Return the parent and the class of a framework, or why it cannot be run."""
        written = self.node.child("module")
        module = written.value if written is not None else None
        extends = self.node.child("extends")
        parents = [extends.renewed(self.parent)] if extends is not None and self.parent else []
        if module is None and parents:
            return {"extends": parents[0]}
        at = written if written is not None and module is not None else self.node
        inherited: dict[Key, Node] = {}
        if parents:  # it can be run even if its parent is refused
            inherited = {"extends": parents[0], "refuse": plain_node(None, self.node)}
        if ":" in self.module:  # a user's own class
            return {"use": plain_node(self.module, at)} | inherited
        if self.user_folder is not None:
            files = plain_node(module_files(self.module, self.user_folder), at)
            role = plain_node("predictor", at)
            use = plain_node(USER_FRAMEWORK, at)
            return {"use": use, "role": role, "depends_on": files} | inherited
        if self.module.lower() in MODULES:
            here = plain_node(MODULES[self.module.lower()], at)
            return {**inherited, "extends": at.renewed([*parents, here])}
        available = ", ".join(pattern.partition(".")[2] for pattern in MODULES.values())
        why = (
            f'{at.place}: the framework "{self.name}" needs the AutoML Benchmark module '
            f"{self.module}, which is not available. Available: {available}, modules in the user "
            f"folder (-u), and your own classes (module: package.module:Name)."
        )
        return {**inherited, "refuse": plain_node(why, at)}

    def _params(self) -> dict[Key, Node]:
        """Return the parameters without those of their wrapper, and the artifacts."""
        params = self.node.child("params")
        if self.user_folder is not None:
            return self._user_params(params)
        if params is None or params.value is None:
            return {}
        if not isinstance(params.value, dict):
            self.translation.wrong(params, (*self.path, "params"), "a mapping")
            return {}
        model_params = {
            key: value for key, value in params.value.items() if not str(key).startswith("_")
        }
        entry: dict[Key, Node] = {"params": params.renewed(model_params)}
        for key, value in params.value.items():
            if key == "_save_artifacts":
                entry["artifacts"] = _artifacts(self.translation, value, self.path)
            elif str(key).startswith("_") and key[1:] in WRAPPER_PARAMS:
                model_params[key[1:]] = value
            elif str(key).startswith("_") and self._runs_here():
                text = (
                    "is a parameter of the AutoML Benchmark's own wrapper; remove it. "
                    f"Supported: {', '.join(WRAPPER_KEYS)}."
                )
                mistake = mistake_at(value, (*self.path, "params", key), text, key=True)
                self.translation.mistakes.append(mistake)
        return entry

    def _runs_here(self) -> bool:
        return self.module.lower() in MODULES or ":" in self.module

    def _user_params(self, params: Node | None) -> dict[Key, Node]:
        """Return the parameters of the model that runs a module of the user."""
        at = self.node if params is None else params
        values = {} if params is None or params.value is None else params.value
        if not isinstance(values, dict):
            self.translation.wrong(at, (*self.path, "params"), "a mapping")
            return {}
        facts: dict[str, Any] = {"module": self.module, "folder": str(self.user_folder)}
        facts["framework"] = self.name
        if (version := self.node.child("version")) is not None and version.value:
            facts["framework_version"] = str(version.text or version.value)
        entry: dict[Key, Node] = {
            "params": plain_node({**facts, "framework_params": at.renewed(dict(values))}, at)
        }
        if (wanted := values.get("_save_artifacts")) is not None:
            entry["artifacts"] = _artifacts(self.translation, wanted, self.path)
        return entry


def module_files(module: str, folder: Path) -> list[str]:
    """Return the files of a module's own folder, or its only file; not those of an environment."""
    inside = folder.joinpath(*module.split("."))
    if not inside.is_dir():
        return [str(inside.with_suffix(".py"))]
    return [str(path) for path in sorted(inside.iterdir()) if path.is_file()]


def user_module_folder(module: str, folder: Path | None) -> Path | None:
    """Return the folder of a user's files that has this module, such as ``extensions.Mine``.

    Searched are the folder of the definition file and the user folders (KARAT_DATA).
    """
    inside = Path(*module.split(".")) if module and ":" not in module else None
    data_folders = os.environ.get("KARAT_DATA", "").split(os.pathsep)
    for candidate in [
        *([folder] if folder else []),
        *(Path(path) for path in data_folders if path),
    ]:
        if inside is None or inside == Path():
            continue
        if (candidate / inside).is_dir() or (candidate / inside).with_suffix(".py").is_file():
            return candidate.absolute()
    return None


def _artifacts(translation: Translation, node: Node, path: tuple[Key, ...]) -> Node:
    listed = node.value if isinstance(node.value, list) else [node]
    if isinstance(node.value, bool) or node.value is None:
        return plain_node(["models"] if node.value else [], node)
    if not all(isinstance(artifact.value, str) for artifact in listed):
        translation.wrong(node, (*path, "params", "_save_artifacts"), "a list of names")
        return plain_node([], node)
    return node.renewed(listed)


def add_benchmark(translation: Translation, root: Node, suite: str) -> None:
    """Add the tasks of a list as ``suite.name``, and the suite of the runnable ones."""
    defaults: dict[Key, Node] = {}
    tasks: dict[str, Node] = {}
    for position, node in enumerate(root.value, start=1):
        name = node.child("name")
        if name is None:
            text = f"task {position} of the list has no name; add name: …"
            translation.mistakes.append(mistake_at(node, ("tasks",), text))
        elif name.value == DEFAULTS:
            translation.check_keys(node, ("tasks", DEFAULTS), TASK_KEYS)
            defaults = {key: child for key, child in node.value.items() if key != "name"}
        elif not isinstance(name.value, str | int) or isinstance(name.value, bool):
            translation.wrong(name, ("tasks", "?", "name"), "a name")
        elif any(str(name.text).lower() == other.lower() for other in tasks):
            translation.wrong(name, ("tasks", str(name.text), "name"), "a unique name")
        else:
            tasks[str(name.text)] = node
    left_out: dict[Key, Node] = {}
    runnable = []
    for name, node in tasks.items():
        task = _Task(translation, suite, name, node.renewed({**defaults, **node.value}))
        why = task.refused or translation.refusals("tasks", f"{suite}.{name}")
        if why and not task.disabled:
            left_out[name] = plain_node(why, node)
        elif not why:
            runnable.append(plain_node(f"{suite}.{name}", node))
        translation.entries.append(("tasks", f"{suite}.{name}", task.definition()))
    suite_entry = {"tasks": root.renewed(runnable), "left_out": root.renewed(left_out)}
    translation.entries.append(("suites", suite, root.renewed(suite_entry)))


class _Task:
    """One of their tasks during translation; ``refused`` is the reason why it cannot be run."""

    def __init__(self, translation: Translation, suite: str, name: str, node: Node) -> None:
        self.translation = translation
        self.name = name
        self.node = node
        self.path: tuple[Key, ...] = ("tasks", f"{suite}.{name}")
        self.refused = ""
        self.entry: dict[Key, Any] = {"called": name}
        enabled = node.child("enabled")
        #: whether the file excludes it: then nothing else in it matters
        self.disabled = enabled is not None and str(enabled.plain()).lower() in NOT_ENABLED
        if self.disabled and enabled is not None:
            self._refuse(enabled, "it is disabled; remove enabled: false to run it.")
            return
        translation.check_keys(node, self.path, TASK_KEYS)
        for key, value in limits_of(translation, node, self.path):
            if key != "min_vol_size_mb":
                self.entry[key] = value
        if (text := node.child("description")) is not None:
            self.entry["description"] = text
        self._data()
        self._metrics()

    def definition(self) -> Node:
        """Return the definition; that of a refused task holds only the reason."""
        if self.refused:
            return plain_node({"called": self.name, "refuse": self.refused}, self.node)
        return plain_node(self.entry, self.node)

    def _refuse(self, node: Node, why: str) -> None:
        self.refused = self.refused or f'{node.place}: the task "{self.name}" is skipped: {why}'

    def _metrics(self) -> None:
        metric = self.node.child("metric")
        if metric is None or metric.value in (None, []):
            self.entry["usual"] = USUAL
            return
        listed = metric.value if isinstance(metric.value, list) else [metric]
        for name_node in listed:
            if not isinstance(name_node.value, str):
                self.translation.wrong(
                    metric, (*self.path, "metric"), "a metric or a list of metrics"
                )
                return
            if name_node.value not in registry.metrics:
                near = did_you_mean(name_node.value, registry.metrics)
                self._refuse(name_node, f'unknown metric "{name_node.value}".{near}')
        self.entry["metrics"] = metric.renewed(listed)

    def _data(self) -> None:
        source_keys = [
            key
            for key in ("openml_task_id", "openml_dataset_id", "dataset")
            if self.node.child(key) is not None and self.node.value[key].value is not None
        ]
        if not source_keys:
            self._refuse(self.node, "it has neither openml_task_id nor dataset.")
            return
        if len(source_keys) > 1:
            both = " and ".join(source_keys)
            self._refuse(self.node.value[source_keys[1]], f"{both} are mutually exclusive.")
            return
        node = self.node.value[source_keys[0]]
        if source_keys[0] == "dataset":
            self._files(node)
        elif not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < 1:
            self.translation.wrong(node, (*self.path, source_keys[0]), "an OpenML id")
        elif source_keys[0] == "openml_task_id":
            self._load(
                node, "karat.ext.compat.amlb.openml_tasks:openml_or_local_table", task_id=node
            )
            self.entry["split"] = {
                "use": "karat.ext.compat.amlb.openml_tasks:openml_or_local_folds",
                "task_id": node,
            }
        else:
            self._load(node, "karat.data.openml:openml_table", data_id=node)
            self.entry["split"] = {"use": "kfold", "folds": self._folds()}

    def _load(self, node: Node, use: str, **params: object) -> None:
        self.entry["dataset"] = plain_node({"load": {"use": use, **params}}, node)

    def _folds(self) -> int:
        folds = self.entry.get("max_folds")
        return folds.value if folds is not None and folds.value >= 2 else FOLDS

    def _files(self, node: Node) -> None:
        if not isinstance(node.value, str | dict | list) or not node.value:
            self.translation.wrong(
                node, (*self.path, "dataset"), "a path, a mapping or a list of paths"
            )
            return
        if isinstance(node.value, dict):
            kind = node.child("type")
            series = [key for key in SERIES_KEYS if key in node.value]
            if series or (kind is not None and kind.value == "timeseries"):
                at = node.value[series[0]] if series else node
                self._refuse(at, "it is a time series, which is not supported.")
                return
            self.translation.check_keys(node, (*self.path, "dataset"), DATASET_KEYS)
            if kind is not None and kind.value is not None and kind.value not in TYPES:
                self.translation.wrong(
                    kind, (*self.path, "dataset", "type"), f"one of {', '.join(TYPES)}"
                )
            elif kind is not None and kind.value is not None:
                numbers = kind.value == "regression"
                self.entry["kind"] = "regression" if numbers else "classification"
        self._load(node, "karat.compat.amlb.definitions:amlb_table", dataset=node)
        use = "karat.compat.amlb.definitions:amlb_folds"
        self.entry["split"] = {"use": use, "folds": self._folds()}


@dataclass(frozen=True)
class Overrides:
    """Overridden options of the run, fields of every task, and parameters of the framework.

    ``metrics`` has their default metrics by type, ``folders`` their data and output folders,
    ``tags`` those that a framework may be selected with, ``unused`` the keys without effect.
    """

    run: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, list[str]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=lambda: list(TAGS))
    unused: list[str] = field(default_factory=list)
    switched_off: list[str] = field(default_factory=list, compare=False)

    def put(self, key: str, value: object, origin: str) -> None:
        """Set one key; ``origin`` is how it was written."""
        if key.startswith("f.") and key != "f.":
            _put(self.params, key[2:].split("."), value, origin)
        elif key.startswith("t.") and key[2:] in TASK_FIELDS:
            listed = [value] if key == "t.metric" and isinstance(value, str) else value
            self.task[TASK_FIELDS[key[2:]]] = None if value == -1 else listed  # -1 is no limit
        elif key in METRIC_KEYS:
            self.metrics[METRIC_KEYS[key]] = _metrics_of(value, origin)
        elif key in RUN_KEYS:
            self.run[RUN_KEYS[key]] = _seed(value) if key == "seed" else value
        elif key == TIMING:
            self.run["inference"] = self.run.get("inference") or BATCHES
            self.switched_off[:] = [] if value else [origin]
        elif key in FOLDER_KEYS and isinstance(value, str):
            self.folders[key] = value
        elif key == TAGS_KEY:
            self.tags[:] = map(str, value if isinstance(value, list) else [value])
        elif key.partition(".")[0] in EFFECTIVE:
            self.unused.append(key)
        elif key.partition(".")[0] in UNUSED:
            self.unused.append(key.partition(".")[0])
        else:
            near = did_you_mean(key, KNOWN) or f" Available: {', '.join(KNOWN)}."
            raise DefinitionError(f'{origin}: unknown key "{key}".{near}')


def read_overrides(
    arguments: Sequence[str], config: Mapping[str, Any] | None = None, file: str = "config.yaml"
) -> Overrides:
    """Parse ``key=value`` arguments; a value is a Python literal, or else text.

    ``config`` is the content of a configuration file, which the arguments override.

    >>> read = read_overrides(["seed=7", "t.metric=['auc']", "f.options.max_depth=3", "f.verbose"])
    >>> read.run, read.task, read.params
    ({'seed': 7}, {'metrics': ['auc']}, {'options': {'max_depth': 3}, 'verbose': True})
    """
    overrides = Overrides()
    for key, value in _dotted(config or {}):
        if key not in LOCATION_KEYS and value is not None:  # null is their default
            overrides.put(key, value, f"{file}: {key}")
    for argument in arguments:
        key, sign, text = argument.partition("=")
        value = text if sign else True
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(text) if sign else True
        overrides.put(key, value, f"-X {argument}")
    if overrides.switched_off:
        overrides.run["inference"] = ()
    overrides.unused[:] = dict.fromkeys(overrides.unused)  # each is named once
    return overrides


def _dotted(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested mapping with dotted keys.

    >>> list(_dotted({"a": 1, "b": {"c": [2]}}))
    [('a', 1), ('b.c', [2])]
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _metrics_of(value: object, origin: str) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed:
        raise DefinitionError(f"{origin}: must be a metric or a list of metrics.")
    for name in listed:
        if name not in registry.metrics:
            near = did_you_mean(str(name), registry.metrics)
            raise DefinitionError(f'{origin}: unknown metric "{name}".{near}')
    return list(listed)


def _put(params: dict[str, Any], path: Sequence[str], value: object, origin: str) -> None:
    for key in path[:-1]:
        params = params.setdefault(key, {})
        if not isinstance(params, dict):
            raise DefinitionError(f'{origin}: "{key}" already has a value.')
    params[path[-1]] = value


def _seed(value: object) -> int:
    """Return a seed; ``auto`` and ``none`` draw one, which the run folder records."""
    if value in ("auto", "none"):
        return secrets.randbelow(2**31 - 1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DefinitionError(f"-X seed={value}: the seed must be an integer, auto or none.")
    return value


def built_in_files(benchmark: str) -> list[Path]:
    """Return the definition files that come with the command, with that of the benchmark.

    >>> [file.name for file in built_in_files("small")], len(built_in_files("mine"))
    (['constraints.yaml', 'small.yaml'], 1)
    """
    files = [BUILT_IN / "constraints.yaml", BUILT_IN / "benchmarks" / f"{benchmark}.yaml"]
    return [file for file in files if file.is_file()]


def files_of(folder: Path, benchmark: str, tag: str = "") -> list[Path]:
    """Return the definition files of a user folder, with the one of the benchmark.

    These are the files named in its ``config.yaml``, and ``frameworks.yaml``, ``constraints.yaml``
    and ``benchmarks/NAME.yaml``. Files in the AutoML Benchmark's own folder (``{root}``) are
    ignored: Karat has its own frameworks and constraints. With a tag, ``frameworks_TAG.yaml`` takes
    the place of ``frameworks.yaml``, also where it does not exist.
    """
    if not folder.is_dir():
        raise DefinitionError(f"-u: folder not found: {folder}.")
    folder = folder.absolute()
    config = read_config(folder / "config.yaml")
    frameworks = _named(config, "frameworks", "definition_file", folder)
    files = [tagged_file(folder / "frameworks.yaml", tag), folder / "constraints.yaml"]
    files += [tagged_file(file, tag) for file in frameworks]
    files += _named(config, "benchmarks", "constraints_file", folder)
    folders = [folder / "benchmarks", *_named(config, "benchmarks", "definition_dir", folder)]
    files += [definitions / f"{benchmark}.yaml" for definitions in folders]
    return [path for path in dict.fromkeys(files) if path.is_file()]


def tagged_file(file: Path, tag: str) -> Path:
    """Return the file with the definitions of a tag.

    >>> tagged_file(Path("frameworks.yaml"), "stable").name, tagged_file(Path("mine.yml"), "").name
    ('frameworks_stable.yaml', 'mine.yml')
    """
    return file.with_stem(f"{file.stem}_{tag}") if tag else file


def read_config(file: Path) -> Mapping[str, Any]:
    """Return the content of a configuration file, which may be missing.

    Unlike definitions it may have merge keys (``<<``), as their default configuration does.
    """
    if not file.is_file():
        return {}
    if file.stat().st_size > LARGEST_CONFIG:
        raise DefinitionError(f"{file}: a configuration has at most {LARGEST_CONFIG:,} bytes.")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise DefinitionError(f"{file}{line}: cannot be read as YAML: {problem}.") from error
    return content if isinstance(content, dict) else {}


def _named(config: Mapping[str, Any], section: str, key: str, folder: Path) -> Iterator[Path]:
    settings = config.get(section)
    value = settings.get(key) if isinstance(settings, Mapping) else None
    for file in value if isinstance(value, list) else [value]:
        if isinstance(file, str) and "{root}" not in file:
            yield folder / file.replace("{user}", str(folder))


FORMAT = DefinitionFormat(shape_of, translate, USUAL)


# -- file datasets ----------------------------------------------------------------------------


def amlb_table(name: str, dataset: Form, folder: Path | None = None) -> Dataset:
    """Return the dataset that a definition of the AutoML Benchmark describes.

    A relative path is searched below ``folder``, then below the current one; a path that begins
    with ``{input}`` or ``{user}`` in the folders of KARAT_DATA. The default ``target`` is the
    column called target or class, or else the last one.
    """
    definition = dataset if isinstance(dataset, Mapping) else {"path": dataset}
    pairs = _Places(name, folder).pairs(definition)
    tables = _Tables(name, definition, next(iter(pairs)).train)
    frames, ids, files = [], [], []
    for fold, pair in enumerate(pairs):
        for part, path in pair.parts():
            frame = tables.read(path)
            frames.append(frame)
            files.append(path)
            if pair.test is not None:
                ids += [f"fold {fold} {part} {row}" for row in range(len(frame))]
    facts = {"source": ", ".join(path.name for path in files[:4]) + " …" * (len(files) > 4)}
    facts["sha256"] = ", ".join(sha256_of_file(path) for path in files[:20])
    data = tables.dataset(_concatenated(name, frames, files), facts)
    if not ids:
        return data
    labels = pd.Index(ids)
    return replace(
        data, items=data.items.set_axis(labels, axis=0), questions=pd.DataFrame({"row": labels})
    )


def amlb_folds(data: Dataset, rng: np.random.Generator, folds: int = 10) -> Iterator[Any]:
    """Yield the folds of split files, or stratified k-fold cross-validation of a single file."""
    ids = [_ID.fullmatch(str(row)) for row in data.questions[data.fields[0]]]
    if not all(ids):
        yield from registry.splitters.get("kfold")(data, rng, folds=folds)
        return
    fold = np.array([int(match[1]) for match in ids if match])
    train = np.array([match[2] == "train" for match in ids if match])
    for number in np.unique(fold):
        rows = fold == number
        yield np.flatnonzero(rows & train), np.flatnonzero(rows & ~train)


@dataclass(frozen=True)
class Pair:
    """The files of one fold; a single table has no test file."""

    train: Path
    test: Path | None = None

    def parts(self) -> list[tuple[str, Path]]:
        """Return the name and path of each part."""
        return [("train", self.train), *([("test", self.test)] if self.test else [])]


@dataclass(frozen=True)
class _Places:
    """Finds the files of one dataset."""

    name: str
    folder: Path | None

    def pairs(self, definition: Mapping[str, Any]) -> list[Pair]:
        """Return the files of each fold."""
        path = definition.get("path")
        if isinstance(path, Mapping):
            return self.pairs(path)
        split = definition.get("train") is not None or definition.get("test") is not None
        if (path is None) == (not split):
            raise DefinitionError(f"{self.name}: give either path, or train and test.")
        if isinstance(path, list | tuple):
            if not path or len(path) % 2:
                raise DefinitionError(
                    f"{self.name}: a list of files must be train, test, train, test …; "
                    f"got {len(path)} files."
                )
            return self._both(path[::2], path[1::2])
        if path is not None:
            local_path = self._found(path)
            return _of_folder(self.name, local_path) if local_path.is_dir() else [Pair(local_path)]
        files = [definition.get(part) or [] for part in ("train", "test")]
        return self._both(*([file] if isinstance(file, str) else list(file) for file in files))

    def _both(self, train: Sequence[str], test: Sequence[str]) -> list[Pair]:
        if len(train) != len(test) or not train:
            raise DefinitionError(
                f"{self.name}: each fold needs a train and a test file, "
                f"got {len(train)} train and {len(test)} test files."
            )
        pairs = [Pair(self._one(a), self._one(b)) for a, b in zip(train, test, strict=True)]
        for pair in pairs:
            if pair.train == pair.test:
                raise DataError(f"{self.name}: {pair.train} is both the train and the test file.")
        return pairs

    def _one(self, source: str) -> Path:
        path = self._found(source)
        if path.is_dir():
            pairs = _of_folder(self.name, path)
            if len(pairs) > 1 or pairs[0].test is not None:
                raise DataError(f"{self.name}: {source} has several tables; give one file.")
            return pairs[0].train
        return path

    def _found(self, source: object) -> Path:
        """Return a local file or folder, downloaded and unpacked if necessary."""
        if not isinstance(source, str) or not source:
            raise DefinitionError(f"{self.name}: a path must be a string, got {source!r}.")
        path = _downloaded(self.name, source) if _ADDRESS.match(source) else self._local(source)
        if path.is_file() and path.name.lower().endswith(ARCHIVES):
            return _unpacked(path)
        return path

    def _local(self, source: str) -> Path:
        inside = _PLACEHOLDER.sub("", source, count=1)
        if inside != source:
            data_folders = os.environ.get("KARAT_DATA", "").split(os.pathsep)
            folders = [Path(folder).expanduser() for folder in data_folders if folder]
            hint = " Set KARAT_DATA (--data-dir) to its folder."
        else:
            folders, hint = [self.folder or Path(), Path()], ""
        tried = [(folder / Path(inside).expanduser()).absolute() for folder in folders]
        for path in tried:
            if path.exists():
                return path
        near = [o.name for p in tried[:1] if p.parent.is_dir() for o in p.parent.iterdir()]
        where = tried[0] if tried else source
        hint = did_you_mean(Path(source).name, near) + hint
        raise DataError(f"{self.name}: there is no file {where}.{hint}", source)


def _of_folder(name: str, folder: Path) -> list[Pair]:
    """Return the pairs of a folder by name (X_train.csv, X_test_0.csv), or its only table."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.suffix.lower() in TABLES
        and not any(p.startswith((".", "__MACOSX")) for p in path.relative_to(folder).parts)
    )
    if len(files) == 1:
        return [Pair(files[0])]
    tables: dict[tuple[str, str], dict[tuple[str, int | None], Path]] = {}
    for path in files:
        match = _PART.fullmatch(path.stem)
        if match:
            fold = None if match[3] is None else int(match[3])
            stem = str(path.parent / (match[1] or "").rstrip("_-"))
            tables.setdefault((stem, path.suffix.lower()), {})[match[2].lower(), fold] = path
    complete = {key: pairs for key, parts in tables.items() if (pairs := _paired(parts))}
    if len({stem for stem, _ in complete}) != 1:
        raise DataError(
            f"{name}: {folder} has {len(files)} tables; expected X_train.csv and X_test.csv, or "
            f"X_train_0.csv, X_test_0.csv, X_train_1.csv …, or a single table."
        )
    return complete[min(complete, key=lambda key: TABLES.index(key[1]))]


def _paired(parts: Mapping[tuple[str, int | None], Path]) -> list[Pair]:
    """Return one pair per fold; files without a fold number take precedence."""
    folds = sorted({fold for _, fold in parts}, key=lambda fold: -1 if fold is None else fold)
    for (part, fold), path in parts.items():
        other = "test" if part == "train" else "train"
        if (other, fold) not in parts:
            raise DataError(f"{path} has no {other} file next to it.")
    if None in folds:
        folds = [None]
    return [Pair(parts["train", fold], parts["test", fold]) for fold in folds]


def _downloaded(name: str, address: str) -> Path:
    """Return the file of a URL, downloaded once; its checksum is unknown."""
    what = without_password(address)
    if urlsplit(address).scheme not in ("http", "https"):
        raise DataError(f"{name}: {what}: only http and https are supported; download it first.")
    last = PurePosixPath(unquote(urlsplit(address).path)).name
    key = sha256_of(address, length=16)
    file = cache_folder() / "amlb" / key / (last if last and is_safe(last) else "data")
    if file.is_file():
        return file
    if offline():
        raise Unavailable(f"{name}: {what} is not in the cache; unset KARAT_OFFLINE to get it.")
    try:
        http_download.download(address, file, name=name)
    except DataError as error:
        raise Unavailable(f"{name}: {error}.") from error
    return file


def _unpacked(path: Path) -> Path:
    """Return the folder with the tables of an archive, unpacked once into the cache."""
    folder = cache_folder() / "amlb" / f"unpacked-{sha256_of_file(path)[:32]}"
    if folder.is_dir():
        return folder
    with draft_folder(folder.parent) as draft:
        scratch = draft / folder.name
        unpack(path, scratch, TABLES)
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process unpacked the same file first
                raise
    return folder


class _Tables:
    """Reads the files of one dataset; the first one determines target and kind."""

    def __init__(self, name: str, definition: Mapping[str, Any], first: Path) -> None:
        self.name = name
        frame = self._frame(first, DataSpec(name))
        features = definition.get("features") or ()
        self.features = [
            feature.get("name") if isinstance(feature, Mapping) else feature for feature in features
        ]
        if not all(isinstance(feature, str) for feature in self.features):
            raise DefinitionError(f"{name}: features must be a list of column names.")
        self.target = self._target(frame, definition.get("target"))
        kind = definition.get("type")
        if kind is not None and kind not in KINDS:
            raise DefinitionError(
                f'{name}: invalid type "{kind}": expected one of {", ".join(KINDS)}.'
                + did_you_mean(str(kind), KINDS)
            )
        self.type = kind
        self.kind = KINDS[kind] if kind else self._kind(first)

    def _frame(self, path: Path, spec: DataSpec) -> pd.DataFrame:
        if not path.name.lower().removesuffix(".gz").endswith(TABLES):
            raise DataError(f"{self.name}: {path.name} must be one of {', '.join(TABLES)}.")
        return read_frame(path, spec)

    def _target(self, frame: pd.DataFrame, target: Any) -> str:
        columns = list(frame.columns)
        if isinstance(target, int) and not isinstance(target, bool):
            if not -len(columns) <= target < len(columns):
                raise DefinitionError(f"{self.name}: there is no column {target}.")
            return str(columns[target])
        if target is not None:
            require_columns(frame, [target], self.name)
            return str(target)
        lower = {str(column).lower(): str(column) for column in reversed(columns)}
        return lower.get("target") or lower.get("class") or str(columns[-1])

    def _kind(self, first: Path) -> str:
        frame = self._frame(first, DataSpec(self.name, target=self.target))
        values = frame[self.target].dropna().to_numpy()
        if values.dtype.kind not in "iuf":
            return infer_kind(values, self.name)
        if (values == np.round(values)).all():
            warnings.warn(
                f'{self.name}: the type is not given and "{self.target}" has integers; assuming '
                "regression, as the AutoML Benchmark does. Set type: binary, multiclass or "
                "regression.",
                KaratWarning,
                stacklevel=2,
            )
        return "regression"

    def read(self, path: Path) -> pd.DataFrame:
        """Return the table of one file."""
        frame = self._frame(path, DataSpec(self.name, target=self.target, kind=self.kind))
        require_columns(frame, [*self.features, self.target], f"{self.name}: {path.name}")
        return frame[[*self.features, self.target]] if self.features else frame

    def dataset(self, frame: pd.DataFrame, facts: Mapping[str, str]) -> Dataset:
        """Return the dataset of all rows."""
        data = Dataset.from_table(frame, self.target, name=self.name, kind=self.kind, about=facts)
        data = data.with_drawn_by("name")
        if self.type == "binary" and len(data.classes) != 2:
            raise DataError(
                f'{self.name}: type is binary, but "{self.target}" has {len(data.classes)} classes.'
            )
        return data


def _concatenated(name: str, frames: Sequence[pd.DataFrame], files: Sequence[Path]) -> pd.DataFrame:
    first = frames[0]
    for frame, path in zip(frames, files, strict=True):
        for one, other, lacking in ((first, frame, path), (frame, first, files[0])):
            for column in [column for column in one.columns if column not in other.columns][:1]:
                raise DataError(
                    f'{name}: {lacking} has no column "{column}"; all files must have the same.'
                )
    return first if len(frames) == 1 else pd.concat(frames, ignore_index=True)
