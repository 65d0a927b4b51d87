"""Beside: the runs that one is compared with, by path, by the name of a folder, or all there are.

What a run has on a task stands here as plain numbers, by view and by fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, did_you_mean, plainly
from karat.results.cells import DECLINED, FAILED, NOT_RUN, OK
from karat.results.run import Run

ALL = "all"

#: fold and draw: what is the same question to two runs of one seed on the same data
Unit = tuple[int, int]


@dataclass(frozen=True)
class Answered:
    """A fold through a view: scores by metric, the share that was known, and how many it asks."""

    scores: dict[str, float | None]
    coverage: float
    questions: int
    train: int

    @property
    def sizes(self) -> tuple[int, int]:
        """How many questions teach, and how many test."""
        return self.train, self.questions


@dataclass(frozen=True, eq=False)
class Side:
    """A run: ``name`` is that of its folder, ``model`` what its model is called beside others."""

    run: Run
    name: str
    model: str

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """What the run tells of its tasks."""
        return {task["name"]: task for task in self.run.about["tasks"]}

    @property
    def seed(self) -> Any:
        """The seed that made its folds."""
        return self.run.about.get("seed")

    def data(self, task: str) -> tuple[str, str]:
        """Return the name and the fingerprint of a task's data: both decide its folds."""
        about = self.tasks.get(task, {})
        return str(about.get("dataset", "")), str(about.get("fingerprint", ""))

    def probe(self, task: str) -> tuple[Any, Any] | None:
        """Return how a task was asked, and what not knowing cost; nothing in runs of old."""
        about = self.tasks.get(task, {})
        return (about["probe"], about.get("missing")) if "probe" in about else None

    def state(self, task: str, view: View = CLEAN) -> str:
        """Return whether it has answered a task, seen through a view, or why not."""
        said = self._states.get(task, {}).get(view, set())
        return next((state for state in (OK, FAILED, DECLINED) if state in said), NOT_RUN)

    def check(self) -> None:
        """Say so if its records are not what a run writes."""
        try:
            self.answered, self._states  # noqa: B018
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self.run.folder / 'jobs'} has a record that is damaged.") from error

    @cached_property
    def answered(self) -> dict[str, dict[View, dict[Unit, Answered]]]:
        """Its answers by task, view and fold; a view stands for all its draws."""
        found: dict[str, dict[View, dict[Unit, Answered]]] = {}
        for record in self._records:
            for view in record["views"] if record["fold"] is not None else ():
                if view.get("status", OK) != OK:
                    continue
                seen = View(view["corruption"], view["severity"])
                units = found.setdefault(record["task"], {}).setdefault(seen, {})
                units[record["fold"], view.get("draw", 0)] = _answered(record, view)
        return found

    @cached_property
    def _states(self) -> dict[str, dict[View, set[str]]]:
        found: dict[str, dict[View, set[str]]] = {}
        for record in self._records:
            states = found.setdefault(record["task"], {})
            if not record["views"]:
                states.setdefault(CLEAN, set()).add(plainly(record["status"]))
            for view in record["views"]:
                seen = View(view["corruption"], view["severity"])
                states.setdefault(seen, set()).add(plainly(view.get("status", OK)))
        return found

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return self.run.records()


def _answered(record: dict[str, Any], view: dict[str, Any]) -> Answered:
    coverage = view.get("coverage")
    return Answered(
        view["scores"],
        1.0 if coverage is None else float(coverage),
        int(record.get("questions") or 0),
        int(record.get("train_questions") or 0),
    )


# -- which runs -----------------------------------------------------------------------------


def find_run(run: Run | str | Path) -> Run:
    """Return the run that is compared with others, or say what is wrong with the folder."""
    if not isinstance(run, Run):
        folder = Path(run)
        inside = sorted(path.parent.name for path in folder.glob("*/run.json"))
        if inside and not (folder / "run.json").is_file():
            raise DataError(
                f"{folder} is no run but a folder of {len(inside)}; name one, such as "
                f"{folder / inside[-1]}."
            )
        if not folder.is_dir():
            beside = [path.parent.name for path in folder.parent.glob("*/run.json")]
            raise DataError(f"there is no run {folder}.{_near(folder.name, beside)}")
        run = Run.open(folder)
    _check(run)
    return run


def find_others(run: Run, others: Any) -> tuple[list[Run], list[str]]:
    """Return the runs to compare with, and a note on each beside that cannot be read.

    Whoever is named must be there and whole; of all there are, those that cannot be read are told.
    """
    if isinstance(others, str) and others == ALL:
        return _all_beside(run)
    named = [others] if isinstance(others, str | Path | Run) else others
    if not isinstance(named, Iterable):
        raise DefinitionError(f'others are "all" or a list of runs, not {others!r}.')
    found: list[Run] = []
    messages: list[str] = []
    for each in named:
        try:
            found.append(_named(run, each))
        except DefinitionError as error:
            messages += error.messages
    if not found and not messages:
        messages.append('no other run was named; "all" stands for those beside it.')
    if messages:
        raise DefinitionError(*messages)
    return list({_place(each): each for each in found}.values()), []


def _named(run: Run, given: Any) -> Run:
    if not isinstance(given, str | Path | Run):
        raise DefinitionError(f"a run is a folder or the name of one, not {given!r}.")
    folder = run.folder.resolve().parent
    place = given.folder if isinstance(given, Run) else Path(given)
    tries = [place] if isinstance(given, Run) else [place, folder / place]
    found = next((path for path in tries if (path / "run.json").is_file()), None)
    if found is None:
        known = [path.name for path in _folders(folder) if path != run.folder.resolve()]
        hint = _near(place.name, known)
        raise DefinitionError(f'there is no run "{place}", nor in {folder.name}.{hint}')
    other = Run(found)
    if _place(other) == _place(run):
        raise DefinitionError(f'"{given}" is the run itself; name another to compare with.')
    _check(other)
    return other


def _near(name: str, known: list[str]) -> str:
    """Return a hint at the nearest folder, by its whole name or by its model's."""
    models = {folder.partition(".")[0]: folder for folder in known}
    hint = did_you_mean(name, known) or did_you_mean(name.partition(".")[0], models)
    for model, folder in models.items():
        hint = hint.replace(f'"{model}"', f'"{folder}"')
    return hint


def _all_beside(run: Run) -> tuple[list[Run], list[str]]:
    found, notes = [], []
    for folder in _folders(run.folder.resolve().parent):
        if folder == _place(run):
            continue
        other = Run(folder)
        try:
            _check(other)
            found.append(other)
        except DataError as error:
            notes.append(f"{folder.name} is left out: {error}")
    return found, notes


def _folders(folder: Path) -> Iterator[Path]:
    """Yield what are run folders, or were meant to be."""
    for path in sorted(folder.iterdir()):
        if (path / "run.json").exists() or (path / "jobs").is_dir():
            yield path


def _place(run: Run) -> Path:
    return run.folder.resolve()


def _check(run: Run) -> None:
    """Say what a folder lacks that a run must tell."""
    if not (run.folder / "run.json").is_file():
        raise DataError(f"{run.folder} is not a run folder: it has no run.json.")
    try:
        tasks = run.about["tasks"]
        whole = all(task["name"] and list(task["metrics"]) for task in tasks)
        whole = whole and bool(run.model) and isinstance(tasks, list)
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise DataError(f"{run.folder / 'run.json'} does not tell a model and its tasks.")


def make_sides(runs: list[Run]) -> list[Side]:
    """Return runs under names that tell them apart."""
    folders = [run.folder.resolve() for run in runs]
    names = [path.name for path in folders]
    models = [run.model for run in runs]
    sides = []
    for run, path, model in zip(runs, folders, models, strict=True):
        name = path.name if names.count(path.name) == 1 else str(run.folder)
        # two runs of one model stand side by side under their time stamps
        stamp = name.rpartition(".")[2] if names.count(path.name) == 1 else name
        sides.append(Side(run, name, f"{model} ({stamp})" if models.count(model) > 1 else model))
    return sides
