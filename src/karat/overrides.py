"""Overrides: ``key=value`` on the command line changes values of definitions.

``f.n_estimators=300`` sets a parameter of the models, ``t.max_runtime_seconds=60`` or
``t.split.folds=3`` a value of the tasks, ``seed=7`` an option of the run.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.errors import DefinitionError, did_you_mean
from karat.models.base import Model
from karat.task import Suite, Task

MODELS, TASKS = ("f", "m"), ("t",)
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
        where = "models" if start in MODELS else "tasks" if start in TASKS else "options"
        name = rest if dot and where != "options" else key
        if not name.strip() or (where != "options" and not dot):
            raise DefinitionError(
                f'-X must be key=value, f.PARAM=value or t.KEY=value, got "{text}".'
            )
        found[where][name] = _value(value) if equals else True
    return Overrides(**found)


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def change_models(models: Sequence[Model], given: Mapping[str, Any]) -> list[Model]:
    """Return the models with changed parameters; one that no model has is an error."""
    if not given:
        return list(models)
    known = {name for model in models for name in _parameters(model)}
    lost = [name for name in given if name not in known]
    if lost:
        raise DefinitionError(
            *(
                f'-X f.{name}: none of the models has a parameter "{name}".'
                f"{did_you_mean(name, known)} Parameters: {', '.join(sorted(known)) or 'none'}."
                for name in lost
            )
        )
    return [_changed(model, given) for model in models]


def _parameters(model: Model) -> Mapping[str, Any]:
    read = getattr(model.prototype, "get_params", None)
    return dict(read()) if callable(read) else {}


def _changed(model: Model, given: Mapping[str, Any]) -> Model:
    from sklearn.base import clone

    own = {name: value for name, value in given.items() if name in _parameters(model)}
    if not own:
        return model
    prototype = clone(model.prototype).set_params(**own)
    return dataclasses.replace(model, prototype=prototype, params={**model.params, **own})


def change_tasks(suite: Suite, given: Mapping[str, Any]) -> Suite:
    """Return the suite with changed tasks; ``split.folds`` changes a nested value."""
    if not given:
        return suite
    return dataclasses.replace(suite, tasks=tuple(_task(task, given) for task in suite))


def _task(task: Task, given: Mapping[str, Any]) -> Task:
    changes: dict[str, Any] = {}
    for name, value in given.items():
        key, dot, rest = name.partition(".")
        if key not in CHANGEABLE:
            raise DefinitionError(
                f'-X t.{name}: a task has no field "{key}".{did_you_mean(key, CHANGEABLE)} '
                f"Fields: {', '.join(CHANGEABLE)}."
            )
        changes[key] = _inside(changes.get(key, getattr(task, key)), rest, value) if dot else value
    return dataclasses.replace(task, **changes)


def _inside(whole: Any, path: str, value: Any) -> Any:
    key, dot, rest = path.partition(".")
    inner = dict(whole) if isinstance(whole, Mapping) else {} if whole is None else {"use": whole}
    inner[key] = _inside(inner.get(key), rest, value) if dot else value
    return inner
