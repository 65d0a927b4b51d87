"""Translate files of the AutoML Benchmark, recognized by their shape, into definitions.

Frameworks become models, a list of tasks becomes tasks and a suite named after the file, and
constraints become constraints. Every value keeps its place. An entry that cannot be run raises its
error when it is selected, and does not affect other entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from karat.definitions.places import Key, Mistake, Node, describe, mistake_at
from karat.errors import did_you_mean

IGNORED = ("ec2_instance_type", "ec2_volume_type")
LIMITS = ("folds", "max_runtime_seconds", "max_mem_size_mb", "cores")
CONSTRAINT_KEYS = (*LIMITS, "min_vol_size_mb", "description", *IGNORED)
INSTALLING = ("version", "setup_args", "setup_cmd", "setup_script", "setup_env", "repo", "image")
FRAMEWORK_KEYS = (
    *("extends", "abstract", "removed", "module", "params", "description", "project", "refs"),
    *INSTALLING,
)
#: built-in files whose entries may be replaced by their files
REPLACED = ("karat/definitions/models_automl.yaml", "karat/definitions/constraints.yaml")
#: the supported frameworks, in lower case, and the abstract model of each
MODULES = {
    f"frameworks.{name.lower()}": f"frameworks.{name}"
    for name in (
        *("constantpredictor", "DecisionTree", "RandomForest", "TunedRandomForest"),
        *("flaml", "AutoGluon"),
    )
}

Made = tuple[str, str, Node]


@dataclass
class Translation:
    """The entries of a file, as (section, name, definition), and its mistakes."""

    entries: list[Made] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)

    def check_keys(self, node: Node, path: tuple[Key, ...], known: Iterable[str]) -> None:
        """Report unknown keys."""
        known = list(known)
        for key, child in node.value.items():
            if key not in known:
                near = did_you_mean(str(key), known) or f" Allowed: {', '.join(known)}."
                text = f"unknown key of the AutoML Benchmark.{near}"
                self.mistakes.append(mistake_at(child, (*path, key), text, key=True))

    def wrong(self, node: Node, path: tuple[Key, ...], wanted: str) -> None:
        """Report a value of the wrong type."""
        text = f"must be {wanted}, got {describe(node.value, node.text)}."
        self.mistakes.append(mistake_at(node, path, text, key=True))


def shape_of(root: Node) -> str:
    """Return ``"benchmark"``, ``"frameworks"``, ``"constraints"`` or ``""``.

    >>> from karat.definitions.strict_yaml import SourceFile, read_yaml
    >>> def shape(text): return shape_of(read_yaml(text.encode(), SourceFile("my.yaml"))[0])
    >>> shape("[{name: iris, openml_task_id: 59}]"), shape("{1h: {cores: 4}}"), shape("{a: {b: 1}}")
    ('benchmark', 'constraints', '')
    >>> shape("{RandomForest: {version: stable, params: {n_estimators: 2000}}}")
    'frameworks'
    """
    if isinstance(root.value, list):
        known = {"name", "openml_task_id", "openml_dataset_id", "dataset"}
        tasks = [n for n in root.value if isinstance(n.value, dict) and known & n.value.keys()]
        return "benchmark" if tasks and len(tasks) == len(root.value) else ""
    entries = [n for n in root.value.values() if isinstance(n.value, dict)]
    if len(entries) < len(root.value):
        return ""
    # a mapping under one of their keys is a definition of Karat below a mistyped section
    found = {
        key
        for node in entries
        for key, value in node.value.items()
        if key in ("params", "image") or not isinstance(value.value, dict)
    }
    if found & {*LIMITS, "min_vol_size_mb"}:
        return "constraints"
    return "frameworks" if found & {*FRAMEWORK_KEYS} - {"description"} else ""


def translate(root: Node) -> Translation:
    """Return the entries of one of their files."""
    made = Translation()
    shape = shape_of(root)
    if shape == "benchmark":
        from karat.definitions.amlb_tasks import add_benchmark

        add_benchmark(made, root, PurePath(root.file.label).stem)
    elif shape == "constraints":
        for name, node in root.value.items():
            _add_constraint(made, str(name), node)
    else:
        names = {str(name).lower(): str(name) for name in root.value}
        for name, node in root.value.items():
            if not str(name).startswith("__"):  # a template in their file
                _add_framework(made, str(name), node, names)
    return made


def plain_node(value: Any, at: Node) -> Node:
    """Return a value as a node at the place of another; nodes keep their own place."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Mapping):
        value = {key: plain_node(each, at) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        value = [plain_node(each, at) for each in value]
    text = str(value) if isinstance(value, str | int | float) else ""
    return Node(value, at.file, at.line, at.key_line, text)


def limits_of(made: Translation, node: Node, path: tuple[Key, ...]) -> Iterator[tuple[str, Node]]:
    """Yield the limits that are set; -1 and null mean no limit."""
    for key in (*LIMITS, "min_vol_size_mb"):
        given = node.child(key)
        if given is None or given.value in (None, -1):
            continue
        number = isinstance(given.value, int | float) and not isinstance(given.value, bool)
        if not number or given.value <= 0:
            made.wrong(given, (*path, key), "a number > 0, or -1 for no limit")
        else:
            yield key, given


def _add_constraint(made: Translation, name: str, node: Node) -> None:
    path = ("constraints", name)
    made.check_keys(node, path, CONSTRAINT_KEYS)
    entry = dict(limits_of(made, node, path))
    if node.child("description") is not None:
        entry["description"] = node.value["description"]
    made.entries.append(("constraints", name, node.renewed(entry)))


# -- frameworks -----------------------------------------------------------------------------


def _add_framework(made: Translation, name: str, node: Node, names: Mapping[str, str]) -> None:
    path = ("models", name)
    made.check_keys(node, path, FRAMEWORK_KEYS)
    entry: dict[Key, Node] = {}
    for theirs, ours in (("abstract", "abstract"), ("description", "description")):
        if node.child(theirs) is not None:
            entry[ours] = node.value[theirs]
    if (project := node.child("project")) is not None:
        entry["homepage"] = project
    if (refs := node.child("refs")) is not None:
        texts = refs.plain() if isinstance(refs.value, list) else [refs.plain()]
        entry["citation"] = plain_node(" ".join(map(str, texts)), refs)
    entry |= _parents(name, node, names)
    entry |= _params(made, node, path)
    removed = node.child("removed")
    if removed is not None and removed.value not in (None, False):
        why = f": {removed.value}" if isinstance(removed.value, str) else "."
        entry["refuse"] = plain_node(f'{removed.place}: "{name}" was removed{why}', removed)
    made.entries.append(("models", name, node.renewed(entry)))


def _parents(name: str, node: Node, names: Mapping[str, str]) -> dict[Key, Node]:
    """Return the parents of a framework and of its module, or why it cannot be run."""
    parent = node.child("extends")
    parents = []
    if parent is not None and parent.value is not None:
        ours = [pattern.partition(".")[2] for pattern in MODULES.values()]
        spelling = {each.lower(): each for each in ours} | dict(names)
        parents.append(parent.renewed(spelling.get(str(parent.value).lower(), parent.value)))
    written = node.child("module")
    module = written.value if written is not None else None
    if module is None and parents:
        return {"extends": parents[0]}
    none = plain_node(None, node)  # it can be run even if its parent is refused
    at = written if written is not None and module is not None else node
    module = str(module or f"frameworks.{name}")
    if ":" in module:  # a user's own class
        use: dict[Key, Node] = {"use": plain_node(module, at)}
        return use | ({"extends": parents[0], "refuse": none} if parents else {})
    if module.lower() in MODULES:
        here = plain_node(MODULES[module.lower()], at)
        entry: dict[Key, Node] = {"extends": at.renewed([*parents, here])}
        return {**entry, **({"refuse": none} if parents else {})}
    known = ", ".join(pattern.partition(".")[2] for pattern in MODULES.values())
    why = (
        f'{at.place}: the framework "{name}" needs the AutoML Benchmark module {module}, which is '
        f"not available. Available: {known}; for your own class, module: package.module:Name."
    )
    return {"refuse": plain_node(why, at), **({"extends": parents[0]} if parents else {})}


def _params(made: Translation, node: Node, path: tuple[Key, ...]) -> dict[Key, Node]:
    """Return the parameters without those of their wrapper, and the artifacts."""
    params = node.child("params")
    if params is None or params.value is None:
        return {}
    if not isinstance(params.value, dict):
        made.wrong(params, (*path, "params"), "a mapping")
        return {}
    own = {key: value for key, value in params.value.items() if not str(key).startswith("_")}
    entry: dict[Key, Node] = {"params": params.renewed(own)}
    for key, value in params.value.items():
        if key == "_save_artifacts":
            entry["artifacts"] = _artifacts(made, value, path)
        elif str(key).startswith("_") and key[1:] in ("step_size", "memory_margin", "k_folds"):
            own[key[1:]] = value
        elif str(key).startswith("_"):
            text = "is a parameter of the AutoML Benchmark's own wrapper; remove it."
            known = "_save_artifacts, _step_size, _memory_margin, _k_folds"
            made.mistakes.append(
                mistake_at(value, (*path, "params", key), f"{text} Supported: {known}.", key=True)
            )
    return entry


def _artifacts(made: Translation, node: Node, path: tuple[Key, ...]) -> Node:
    listed = node.value if isinstance(node.value, list) else [node]
    if isinstance(node.value, bool) or node.value is None:
        return plain_node(["models"] if node.value else [], node)
    if not all(isinstance(each.value, str) for each in listed):
        made.wrong(node, (*path, "params", "_save_artifacts"), "a list of names")
        return plain_node([], node)
    return node.renewed(listed)
