"""Components of a task: check that they exist and fit its data, and apply overrides to them.

Overrides are ``key=value`` texts of the command line:
``f.n_estimators=300`` sets a parameter of the models, ``t.max_runtime_seconds=60`` or
``t.split.folds=3`` a value of the tasks, ``seed=7`` an option of the run.
"""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.task import Suite, Task
from karat.corruptions.view import check_view, parse_composition, views
from karat.errors import DefinitionError, did_you_mean
from karat.metrics.metric import get_metric
from karat.models.model import Model, object_identity

_METRICS = {
    "binary": ("auc", "acc", "balacc", "logloss"),
    "multiclass": ("acc", "balacc", "logloss"),
    "regression": ("rmse", "mae", "r2"),
    "items": ("hits@1", "hits@10", "mrr"),
    "lists": ("map", "mrr@10", "ndcg@10", "recall@10"),
    "clusters": ("v_measure", "ari", "ami"),
    "scores": ("spearman", "pearson"),
}


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
    made = registry.build(f'task "{task.name}": probe', registry.probes.get(probe["use"]), used, {})
    if task.missing == "penalize" and not getattr(made, "one_answer_each", True):
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
        part for each in task.corruptions for part, _ in parse_composition(each)
    ):
        yield registry.corruptions, name
    for name in task.metrics:
        yield registry.metrics, name
    yield from _functions(probe)


def _functions(probe: Mapping[str, Any]) -> Iterator[tuple[registry.Registry, str]]:
    """Yield the user's similarity measures and analogy functions by registered name."""
    head: Any = probe.get("head")
    given = [probe.get("measure"), head.get("metric") if isinstance(head, Mapping) else None]
    own = registry.measures.own()
    yield from (
        (registry.measures, name) for name in given if isinstance(name, str) and name in own
    )
    function = probe.get("function")
    if isinstance(function, str) and ":" not in function:
        yield registry.analogy_functions, function


def _heads(head: Any) -> Iterator[str]:
    """Yield the name of the head and of the heads inside it."""
    if isinstance(head, Mapping):
        inner = head.get("heads")
        for each in (head.get("use"), *(inner if isinstance(inner, list | tuple) else ())):
            yield from _heads(each)
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
    own = registry.user_components()
    codes = []
    for parts, name in named_components(task):
        if name in own[parts.kind] or ":" in name:
            part = parts.get(name)
            codes.append(f"{name} {_code(getattr(part, 'compute', part))}")
    probe: Any = task.probe
    for name, value in probe.items():  # the user's own function, as a measure
        path = isinstance(value, str) and ":" in value
        if path or (callable(value) and not isinstance(value, str)):
            codes.append(f"{name} {_code(registry.load_object(value) if path else value)}")
    return " ".join(codes)


def _code(part: Any) -> str:
    return object_identity(part) or os.urandom(16).hex()


def with_task_name(task: Task, error: DefinitionError) -> DefinitionError:
    """Return the error with the name of the task in front."""
    return DefinitionError(*(f'task "{task.name}": {message}' for message in error.messages))


#: the fields of a task that can be changed: all but name and dataset
CHANGEABLE = tuple(f.name for f in dataclasses.fields(Task) if f.name not in ("name", "dataset"))


@dataclass(frozen=True)
class Overrides:
    """Overrides of models, of tasks and of the run."""

    models: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def parse(texts: Iterable[str]) -> Overrides:
    """Parse ``key=value`` texts; a key alone is true.

    >>> parse(["f.max_depth=3", "seed=7", "t.metrics=['acc']"])
    Overrides(models={'max_depth': 3}, tasks={'metrics': ['acc']}, options={'seed': 7})
    """
    found: dict[str, dict[str, Any]] = {"models": {}, "tasks": {}, "options": {}}
    for text in texts:
        key, equals, value = text.partition("=")
        start, dot, rest = key.partition(".")
        where = {"f": "models", "m": "models", "t": "tasks"}.get(start, "options")
        name = rest if dot and where != "options" else key
        if not name.strip() or (where != "options" and not dot):
            raise DefinitionError(
                f'-X must be key=value, f.PARAM=value or t.KEY=value, got "{text}".'
            )
        found[where][name] = value if equals else True
        words = {"true": True, "false": False, "null": None, "none": None}
        if equals and value.lower() in words:
            found[where][name] = words[value.lower()]
        elif equals:
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                found[where][name] = ast.literal_eval(value)
    return Overrides(**found)


def change_models(models: Sequence[Model], given: Mapping[str, Any]) -> list[Model]:
    """Return the models with changed parameters; one that no model has is an error."""
    if not given:
        return list(models)
    from sklearn.base import clone

    read: list[Mapping[str, Any]] = [
        getattr(model.prototype, "get_params", dict)() for model in models
    ]
    known = {name for parameters in read for name in parameters}
    messages = [
        f'-X f.{name}: none of the models has a parameter "{name}".'
        f"{did_you_mean(name, known)} Parameters: {', '.join(sorted(known)) or 'none'}."
        for name in given
        if name not in known
    ]
    if messages:
        raise DefinitionError(*messages)
    changed = []
    prototypes: dict[int, Any] = {}  # variants of an encoder keep one prototype
    for model, parameters in zip(models, read, strict=True):
        own = {name: value for name, value in given.items() if name in parameters}
        if own:
            place = id(model.prototype)
            if place not in prototypes:
                prototypes[place] = clone(model.prototype).set_params(**own)
            params = {**model.params, **own}
            model = dataclasses.replace(model, prototype=prototypes[place], params=params)
        changed.append(model)
    return changed


def change_tasks(suite: Suite, given: Mapping[str, Any]) -> Suite:
    """Return the suite with changed tasks; ``split.folds`` changes a nested value."""
    if not given:
        return suite
    tasks = []
    for task in suite:
        changes: dict[str, Any] = {}
        for name, value in given.items():
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


def _inside(whole: Any, path: str, value: Any) -> Any:
    key, dot, rest = path.partition(".")
    inner = dict(whole) if isinstance(whole, Mapping) else {} if whole is None else {"use": whole}
    inner[key] = _inside(inner.get(key), rest, value) if dot else value
    return inner
