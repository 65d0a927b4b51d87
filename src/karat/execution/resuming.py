"""What ``resume`` says about earlier runs that it does not continue."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karat.core.formatting import count
from karat.errors import KaratWarning
from karat.results.run import Run

#: the value of ``resume`` with which failed jobs run again, too
RETRY_FAILED = "retry-failed"
#: facts about a model and about a task that scores depend on, and what they are called
MODEL_FACTS = {
    "karat": "Karat's version",
    "version": "the model's version",
    "versions": "libraries",
}
TASK_FACTS = {
    "kind": "kind",
    "metrics": "metrics",
    "probe": "probe",
    "missing": "rule for missing vectors",
    "fingerprint": "data",
    "dataset": "dataset",
}
#: number of folders that are named
MOST_FOLDERS = 3


class NotContinued:
    """Collects earlier runs that are not continued, and tells of them once for all models."""

    def __init__(self) -> None:
        self._folders: dict[str, list[str]] = {}

    def add_other(self, run: Run, facts: Mapping[str, Any], same: Sequence[str]) -> None:
        """Add a run of the same model and suite that is another one."""
        if run.about.get("race"):
            reason = "it is part of a race, which karat race --resume continues"
        else:
            keys = [key for key in same if run.about.get(key) != facts.get(key)]
            named = [f"its {key} is {run.about.get(key)!r}" for key in keys]
            reason = ", ".join(named) or "it is not part of a race"
        self._add(run, reason)

    def add_outdated(self, run: Run, why: str, jobs: int, copied: int) -> None:
        """Add a run of which some jobs have changed, and the number of jobs that were copied."""
        taken_over = f"; the other {copied:,} are taken over" if copied else ""
        changed = "jobs have" if jobs > 1 else "job has"
        self._add(run, f"{jobs:,} {changed} changed ({why}){taken_over}")

    def _add(self, run: Run, reason: str) -> None:
        self._folders.setdefault(reason, []).append(str(run.folder))

    def tell(self) -> None:
        """Tell which folders are not continued and why."""
        for reason, folders in self._folders.items():
            named = ", ".join(folders[:MOST_FOLDERS])
            more = len(folders) - MOST_FOLDERS
            named += f" and {count(more, 'other folder')}" if more > 0 else ""
            text = f"resume does not continue {named}: {reason}. What is not there runs in a new"
            warnings.warn(f"{text} folder.", KaratWarning, stacklevel=2)
        self._folders = {}


def reason_outdated(before: Mapping[str, Any], after: Mapping[str, Any], is_known: bool) -> str:
    """Return why jobs of a plan are outdated; ``is_known`` tells whether the model has a hash."""
    if not is_known:
        return "a model that cannot be pickled is never known to be the same"
    return ", ".join(differences(before, after)) or "code of the model, of Karat or of a task"


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield in what two plans differ that scores depend on, as far as plans tell it."""
    for key, name in MODEL_FACTS.items():
        if before.get(key) != after.get(key):
            yield f"{name}: {_changed(before.get(key), after.get(key))}"
    tasks = {task["name"]: task for task in before["tasks"]}
    for key, name in TASK_FACTS.items():
        changed = [
            task["name"]
            for task in after["tasks"]
            if task["name"] in tasks and tasks[task["name"]].get(key) != task.get(key)
        ]
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            yield f"{name} of {changed[0]}{more}"


def _changed(before: object, after: object) -> str:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return ", ".join(f"{key} {before.get(key)}, now {after.get(key)}" for key in keys)
    return f"{before}, now {after}"
