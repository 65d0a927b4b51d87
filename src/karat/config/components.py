"""Check that the components of a task exist and fit its data; choose default metrics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from karat import registry
from karat.corruptions.view import check_view, doses, views
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.metrics.base import get_metric
from karat.models.identity import identity_of
from karat.task import Task

_METRICS = {
    "binary": ("auc", "acc", "balacc", "logloss"),
    "multiclass": ("acc", "balacc", "logloss"),
    "numbers": ("rmse", "mae", "r2"),
    "items": ("hits@1", "hits@10", "mrr"),
    "lists": ("map", "mrr@10", "ndcg@10", "recall@10"),
    "clusters": ("v_measure", "ari", "ami"),
    "scores": ("spearman", "pearson"),
}


def check_parts(task: Task) -> None:
    """Refuse unknown components, and parameters or severities they do not accept."""
    messages: list[str] = []
    for parts, name in named_parts(task):
        try:
            get_metric(name) if parts is registry.metrics else parts.get(name)
        except DefinitionError as error:
            messages += of_task(task, error).messages
    if messages:
        raise DefinitionError(*messages)
    try:
        for view in views(task.corruptions):
            check_view(view)
    except DefinitionError as error:
        raise of_task(task, error) from error
    probe: Any = task.probe
    used = {name: value for name, value in probe.items() if name != "use"}
    made = registry.build(f'task "{task.name}": probe', registry.probes.get(probe["use"]), used, {})
    if task.missing == "penalise" and not getattr(made, "one_answer_each", True):
        raise DefinitionError(
            f'task "{task.name}": the probe {probe["use"]} has no default answer, so '
            f"it cannot penalise; set missing: ignore."
        )


def named_parts(task: Task) -> Iterator[tuple[registry.Registry, str]]:
    """Yield the registry and the name of every component of a task."""
    probe: Any = task.probe
    how: Any = task.split
    if task.ask is not None:
        yield registry.askers, task.ask["use"]  # type: ignore[index]
    yield registry.probes, probe["use"]
    yield registry.splitters, how["use"]
    for name in _heads(probe.get("head")):
        yield registry.heads, name
    if probe.get("compose"):
        yield registry.composers, str(probe["compose"])
    for name in dict.fromkeys(part for each in task.corruptions for part, _ in doses(each)):
        yield registry.corruptions, name
    for name in task.metrics:
        yield registry.metrics, name


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
    offered = {
        "trained": {"clusters", "classes"} if blind else {data.kind},
        "similarity": {"scores", data.kind},
        "duplicates": {"scores", "numbers"},
        "analogy": {"rank"},
        "links": {"rank"},
        "nearest": {"rank"},
        "same-class": {"rank"},
    }.get(probe["use"])
    needs = set(get_metric(task.metrics[0]).needs)
    if "binary" in needs and probe["use"] == "trained" and (why := _not_two(data)):
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


def _not_two(data: Dataset) -> str:
    """Describe the target if it is not binary; the numbers 0 and 1 are binary."""
    if data.kind == "classes":
        many = len(data.classes)
        return f"{many}; use auc_ovr or acc" if many > 2 else ""
    if data.kind == "numbers" and not np.isin(np.asarray(data.truth), (0, 1)).all():
        return "numbers"
    return ""


def usual_metrics(task: Task, data: Dataset, blind: bool) -> tuple[str, ...]:
    """Return the default metrics for the data."""
    probe: Any = task.probe
    if probe["use"] in ("nearest", "same-class"):
        return _METRICS["lists"]
    if data.kind == "items":
        return _METRICS["items"]
    if blind and probe["use"] == "trained":
        return _METRICS["clusters"]
    if probe["use"] == "similarity":
        return ("auc", "pr_auc") if data.kind == "classes" else _METRICS["scores"]
    many = "binary" if len(data.classes) == 2 else "multiclass"
    kind = "numbers" if data.kind == "numbers" else many
    return tuple(task.usual.get(kind) or _METRICS[kind])


def code_of_parts(task: Task) -> str:
    """Return a hash of the user's own components in a task: changed code changes it."""
    own = registry.users_parts()
    codes = []
    for parts, name in named_parts(task):
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
    return identity_of(part) or os.urandom(16).hex()


def of_task(task: Task, error: DefinitionError) -> DefinitionError:
    """Return the error with the name of the task in front."""
    return DefinitionError(*(f'task "{task.name}": {message}' for message in error.messages))
