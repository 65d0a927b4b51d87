"""What run.json tells of a run: the machine, the prompts of its model, and its tasks."""

from __future__ import annotations

import functools
import logging
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from karat import __version__
from karat.core.dataset import QUERY
from karat.core.embeddings import declared_prompts, uses_roles
from karat.core.files import encodable
from karat.execution.plan import PlannedTask
from karat.metrics.metric import get_metric
from karat.models.model import Model
from karat.results.stored_json import json_value

#: libraries whose versions are stored in run.json
LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy")
#: reads and parses the package's metadata, once per process
_version = functools.cache(version)
log = logging.getLogger(__name__)


def machine_facts() -> dict[str, Any]:
    """Return versions, platform, and the command line of ``karat`` or the user's script."""
    called, *rest = sys.argv or [""]
    name = Path(called).name
    command = f"python {shlex.quote(name)}" if name.endswith(".py") else ""
    if name in ("karat", "karat.exe", "__main__.py"):
        command = shlex.join(["karat", *rest])
    return {
        "karat": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": 1,
        "versions": {name: _version(name) for name in LIBRARIES},
        "command": command,
    }


def prompt_facts(model: Model, tasks: Iterable[PlannedTask]) -> dict[str, Any]:
    """Return the prompts that a model uses for the roles of the tasks, and the names of its own."""
    item_roles = [task.data.item_roles for task in tasks if task.data and task.data.roles]
    named = [role for roles in item_roles for role in pd.unique(roles.main)]
    named += [QUERY for roles in item_roles if len(roles.both)]
    roles = [role for role in dict.fromkeys(named) if role]
    encoder = model.prototype
    if not roles or model.unavailable or not uses_roles(encoder):
        return {"declared_prompts": names} if roles and (names := declared_prompts(encoder)) else {}
    try:
        used = {role: encodable(str(encoder.prompt_for(role))) for role in roles}
        return {"prompts": used, "declared_prompts": declared_prompts(encoder)}
    except Exception as error:  # its jobs fail with the same error
        log.warning("the prompts of %s are unknown: %s", model.name, error)
        return {}


def _address(planned: PlannedTask) -> str:
    """Return the address of an OpenML task, else the name of the data, if they are known."""
    task, data = planned.task, planned.data
    if data is not None:
        number = data.about.get("openml_task")
    else:
        number = task.split.get("task_id") if isinstance(task.split, Mapping) else None
    return f"openml.org/t/{number}" if number else data.name if data is not None else ""


def task_entry(planned: PlannedTask) -> dict[str, Any]:
    """Return the definition of a task and the facts about its data, as stored in run.json."""
    task, data = planned.task, planned.data
    higher = {name: get_metric(name).higher_is_better for name in task.metrics if name != "?"}
    facts = {
        "name": task.name,
        "kind": task.kind,
        "metrics": list(task.metrics),
        "higher_is_better": higher,
        "folds": list(planned.folds),
        "dataset": getattr(task.dataset, "name", ""),
        "id": "",
        "fingerprint": "",
        "probe": json_value(task.probe),
        "missing": task.missing,
        "modality": "",
        "duplicate_rows": list(planned.duplicate_rows),
        **planned.facts,
        "ignore": list(task.ignore),
        "about": {},
    }
    if task.keep_predictions != "all":
        facts["keep_predictions"] = task.keep_predictions
    facts["id"] = _address(planned)
    if data is not None:
        facts["dataset"] = data.name
        facts |= {"fingerprint": data.fingerprint, "modality": data.modality}
        facts |= {"roles": list(data.roles)} if data.roles else {}
        facts |= {"about": json_value(data.about), "items": len(data.items), "questions": len(data)}
        if data.items.ndim > 1:
            facts["columns"] = data.items.shape[1]
    return facts
