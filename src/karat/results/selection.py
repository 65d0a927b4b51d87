"""Find runs to compare, by model name, run folder or folder of runs, and read their scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, did_you_mean, simplified_status
from karat.results.load import DECLINED, FAILED, NOT_RUN, OK, FrozenRun
from karat.results.pooling import (
    PooledRun,
    check_pool,
    name_models,
    name_questions,
    place_seeds,
    pool_runs,
)
from karat.results.run import INCOMPLETE, Run, newest_first, open_runs
from karat.results.tables import ELIMINATED

#: fold and draw: the same test rows in two runs of one seed on the same data
Unit = tuple[int, int]


@dataclass(frozen=True)
class Answered:
    """A fold in a view: scores by metric, coverage, and the numbers of test and train questions."""

    scores: dict[str, float | None]
    coverage: float
    questions: int
    train: int

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of train and of test questions."""
        return self.train, self.questions


@dataclass(frozen=True, eq=False)
class Side:
    """A run: ``name`` of its folder, and ``model``, unique among the runs compared."""

    run: Run
    name: str
    model: str

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The entries of run.json about its tasks, by name."""
        return {task["name"]: task for task in self.run.about["tasks"]}

    @property
    def seed(self) -> Any:
        """The seed of its folds."""
        return self.run.about.get("seed")

    def data(self, task: str) -> tuple[str, str]:
        """Return the name and the fingerprint of a task's data, which determine its folds."""
        about = self.tasks.get(task, {})
        return str(about.get("dataset", "")), str(about.get("fingerprint", ""))

    def probe(self, task: str) -> tuple[Any, Any] | None:
        """Return a task's probe and its rule for missing vectors; None in old runs."""
        about = self.tasks.get(task, {})
        return (about["probe"], about.get("missing")) if "probe" in about else None

    def state(self, task: str, view: View = CLEAN) -> str:
        """Return "ok" if it has a score of a task in a view, or why not."""
        states = self._states.get(task, {}).get(view, set())
        return next((state for state in (OK, FAILED, DECLINED, ELIMINATED) if state in states), NOT_RUN)

    def check(self) -> None:
        """Raise ``DataError`` if its records are damaged."""
        try:
            self.answered, self._states  # noqa: B018
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self.run.folder / 'jobs'} has a damaged record.") from error

    @cached_property
    def answered(self) -> dict[str, dict[View, dict[Unit, Answered]]]:
        """Its scores by task, view and fold; all draws of a corruption belong to one view."""
        found: dict[str, dict[View, dict[Unit, Answered]]] = {}
        for record in self._records:
            for view in record["views"] if record["fold"] is not None else ():
                if view.get("status", OK) != OK:
                    continue
                seen = View(view["corruption"], view["severity"])
                units = found.setdefault(record["task"], {}).setdefault(seen, {})
                coverage = view.get("coverage")
                units[record["fold"], view.get("draw", 0)] = Answered(
                    view["scores"],
                    1.0 if coverage is None else float(coverage),
                    int(record.get("questions") or 0),
                    int(record.get("train_questions") or 0),
                )
        return found

    @cached_property
    def _states(self) -> dict[str, dict[View, set[str]]]:
        found: dict[str, dict[View, set[str]]] = {}
        for record in self._records:
            states = found.setdefault(record["task"], {})
            if not record["views"]:
                states.setdefault(CLEAN, set()).add(simplified_status(record["status"]))
            for view in record["views"]:
                seen = View(view["corruption"], view["severity"])
                states.setdefault(seen, set()).add(simplified_status(view.get("status", OK)))
        return found

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        if isinstance(self.run, FrozenRun | MergedRun):
            return self.run.records()
        records, damaged = self.run.read_records()
        for name, reason in damaged.items():
            if reason != INCOMPLETE:  # such a job did not finish
                raise DataError(f"{self.run.folder / 'jobs' / name} is a damaged record: {reason}.")
        return self.run.records() if damaged else records  # with a warning


def find_run(run: Run | str | Path) -> Run:
    """Return a run by its folder, or raise ``DataError`` with what is wrong with the folder."""
    if not isinstance(run, Run):
        folder = Path(run)
        inside = sorted(path.parent.name for path in folder.glob("*/run.json"))
        if inside and not (folder / "run.json").is_file():
            raise DataError(
                f"{folder} is not a run folder but holds {len(inside)}; use one of them, such as "
                f"{folder / inside[-1]}."
            )
        if not folder.is_dir():
            siblings = [path.parent.name for path in folder.parent.glob("*/run.json")]
            raise DataError(f"there is no run folder {folder}.{_near(folder.name, siblings)}")
        run = Run.open(folder)
    if not (run.folder / "run.json").is_file():
        raise DataError(f"{run.folder} is not a run folder: it has no run.json.")
    try:
        tasks = run.about["tasks"]
        complete = isinstance(tasks, list) and bool(run.model)
        complete = complete and all(task["name"] and list(task["metrics"]) for task in tasks)
    except (KeyError, TypeError, ValueError):
        complete = False
    if not complete:
        raise DataError(f"{run.folder / 'run.json'} lacks a model or its tasks.")
    return run


def find_others(run: Run, others: Any = None) -> tuple[list[Run], list[str]]:
    """Return the runs to compare with, and notes on those in the folder that cannot be read.

    Runs that are given must be readable; None means all that are in the same folder.
    """
    if others is None:
        return _inside(run.folder.resolve().parent, run)
    given = [others] if isinstance(others, str | Path | Run) else others
    if not isinstance(given, Iterable):
        raise DefinitionError(f"with_ must be a run or a list of runs, got {others!r}.")
    found: list[Run] = []
    notes: list[str] = []
    messages: list[str] = []
    for each in given:
        try:
            runs, left_out = _named(run, each)
            found, notes = found + runs, notes + left_out
        except DefinitionError as error:
            messages += error.messages
    if not found and not messages:
        messages.append("no run to compare with; leave with_ out for all in the same folder.")
    if messages:
        raise DefinitionError(*messages)
    return list({_place(each): each for each in found}.values()), notes


def _named(run: Run, given: Any) -> tuple[list[Run], list[str]]:
    """Return a run, or those in a folder of runs, and notes on those that cannot be read."""
    if not isinstance(given, str | Path | Run):
        raise DefinitionError(f"a run must be a folder or the name of one, got {given!r}.")
    folder = run.folder.resolve().parent
    path = given.folder if isinstance(given, Run) else Path(given)
    tries = [path] if isinstance(given, Run) else [path, folder / path]
    found = next((each for each in tries if (each / "run.json").is_file()), None)
    if found is None and any(path.glob("*/run.json")):
        return _inside(path.resolve(), run)
    if found is None:
        known = [each.name for each in _run_folders(folder) if each != _place(run)]
        hint = _near(path.name, known)
        raise DefinitionError(f'there is no run "{path}", nor one in {folder.name}.{hint}')
    if found.resolve() == _place(run):
        raise DefinitionError(f'"{given}" is the run itself; name another to compare with.')
    return [find_run(Run(found))], []


def _near(name: str, known: list[str]) -> str:
    """Return a suggestion of a folder, by its whole name or by its model's."""
    models = {folder.partition(".")[0]: folder for folder in known}
    hint = did_you_mean(name, known) or did_you_mean(name.partition(".")[0], models)
    for model, folder in models.items():
        hint = hint.replace(f'"{model}"', f'"{folder}"')
    return hint


def _inside(folder: Path, run: Run) -> tuple[list[Run], list[str]]:
    """Return the other runs in a folder, and notes on those that cannot be read."""
    notes: list[str] = []
    others = [Run(path) for path in _run_folders(folder) if path != _place(run)]
    return _readable_runs(others, notes), notes


def _readable_runs(runs: Iterable[Run], notes: list[str]) -> list[Run]:
    """Return the runs that can be read, and add a note about each of the others."""
    readable = []
    for run in runs:
        try:
            readable.append(find_run(run))
        except DataError as error:
            notes.append(f"{run.folder.name} is left out: {error}")
    return readable


def _run_folders(folder: Path) -> list[Path]:
    """Return the run folders, damaged ones too."""
    paths = sorted(folder.iterdir())
    return [path for path in paths if (path / "run.json").exists() or (path / "jobs").is_dir()]


def _place(run: Run) -> Path:
    return run.folder.resolve()


def make_sides(runs: list[Run]) -> list[Side]:
    """Return runs under unique names."""
    folders = [run.folder.resolve() for run in runs]
    names = [path.name for path in folders]
    models = [run.model for run in runs]
    sides = []
    for run, path, model in zip(runs, folders, models, strict=True):
        name = path.name if names.count(path.name) == 1 else str(run.folder)
        # two runs of one model are named after their time stamps
        stamp = name.rpartition(".")[2] if names.count(path.name) == 1 else name
        sides.append(Side(run, name, f"{model} ({stamp})" if models.count(model) > 1 else model))
    return sides


def find_two(
    runs: Any, first: Any, second: Any, notes: list[str], pool: str = "variant"
) -> list[Side]:
    """Return each of two models as one side, with all its runs, under unique names.

    Runs of a model that cannot be read are added to the notes; a run given by its folder must be
    readable.
    """
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    place = _Pool(several, notes, check_pool(pool))
    found = [place.find(name) for name in (first, second)]
    places = [{run.folder.resolve() for run in group} for _, group in found]
    if places[0] & places[1]:
        raise DefinitionError(
            f'"{first}" and "{second}" are the same run; name two models to compare.'
        )
    names = _names(found)
    groups = []
    for name, (_, group) in zip(names, found, strict=True):
        sides = [Side(_with_table(run), run.folder.resolve().name, name) for run in group]
        groups.append([side.run for side in _readable_sides(sides, notes)])
        tasks = [task["name"] for run in groups[-1] for task in run.about["tasks"]]
        if len(set(tasks)) < len(tasks):
            runs_of = f"{name} has {len(groups[-1])} runs"
            notes.append(f"{runs_of}: they are pooled, and of a repeated job the newest counts.")
    return [Side(run, run.folder.resolve().name, name) for run, name in _merged(groups, names)]


def _with_table(run: Run) -> Run:
    """Return a run that reads the file of all its records, if this is up to date."""
    frozen = FrozenRun.of(run) if type(run) is Run else run
    return frozen if isinstance(frozen, FrozenRun) and frozen.stored is not None else run


def _merged(groups: Sequence[list[Run]], names: Sequence[str]) -> list[tuple[Run, str]]:
    """Return the runs of each group as one, with questions and seeds placed for these groups."""
    every = [run for group in groups for run in group]
    models = [name for name, group in zip(names, groups, strict=True) for _ in group]
    pooled = place_seeds(every, models, name_questions(every, by_count=False))
    return [(MergedRun([e for e in pooled if e.model == name]), name) for name in names]


def pooled_sides(runs: Sequence[Run], pool: str = "variant") -> list[Side]:
    """Return each model of the leaderboard as one side; its tasks have the columns' names."""
    pooled = pool_runs(runs, pool)
    sides = []
    for model in dict.fromkeys(each.model for each in pooled):
        run = MergedRun([each for each in pooled if each.model == model])
        sides.append(Side(run, run.folder.resolve().name, model))
    return sides


class MergedRun(Run):
    """Several runs of one model as one, whose tasks are the columns of the leaderboard.

    Of a repeated job the newest counts. Folds of several seeds have different numbers, and scores
    of several seeds on the same rows are averaged.
    """

    def __init__(self, parts: Sequence[PooledRun]) -> None:
        newest = newest_first(each.run for each in parts)
        super().__init__(newest[0].folder)
        age = {id(run): place for place, run in enumerate(reversed(newest))}
        self.parts = sorted(parts, key=lambda part: age[id(part.run)])

    @cached_property
    def about(self) -> dict[str, Any]:
        """The newest run.json, with the tasks of all runs; ``task`` is a task's own name."""
        tasks: dict[str, dict[str, Any]] = {}
        for part in self.parts:
            for task in part.run.about["tasks"]:
                label = part.labels[task["name"]]
                shift = part.shifts.get(label, 0)
                folds = {shift + fold for fold in task["folds"]}
                folds |= set(tasks.get(label, {}).get("folds", ()))
                facts = {**task, "name": label, "task": task["name"], "folds": sorted(folds)}
                tasks[label] = facts
        return {**self.parts[-1].run.about, "tasks": list(tasks.values())}

    @cached_property
    def _jobs(self) -> dict[tuple[str, int | None], list[_Owned]]:
        """The records that count, by column and fold: one for each seed."""
        found: dict[tuple[str, int | None], dict[Any, _Owned]] = {}
        for part in self.parts:
            seed = part.run.about.get("seed")
            for record in part.run.records():
                label = part.labels.get(record["task"], record["task"])
                if label in part.dropped:
                    continue
                shift = part.shifts.get(label, 0)
                fold = None if record["fold"] is None else record["fold"] + shift
                own = found.setdefault((label, fold), {})
                if record["status"] not in (DECLINED, ELIMINATED) or seed not in own:
                    own[seed] = _Owned(part.run, record, label, shift)
        ran = {label for label, fold in found if fold is not None}
        return {
            (label, fold): list(own.values())
            for (label, fold), own in found.items()
            if fold is not None or label not in ran
        }

    @cached_property
    def _merged_records(self) -> list[dict[str, Any]]:
        return self._sorted(_average(owned) for owned in self._jobs.values())

    def records(self) -> list[dict[str, Any]]:
        """Return the records that count, under the names of the columns."""
        return self._merged_records

    def predictions(self, task: str, fold: int = 0, view: str = "clean") -> Predictions:
        """Return the predictions of the newest run that has the fold."""
        owned = self._jobs.get((task, fold))
        if owned is None:
            raise DataError(f"{self.folder} has no predictions of {task}, fold {fold}.")
        record = owned[-1].record
        return owned[-1].run.predictions(record["task"], record["fold"], view)

    def items(self, task: str) -> pd.DataFrame:
        """Return the stored items of a task, of the newest run that has the task."""
        for part in reversed(self.parts):
            own = next((name for name, label in part.labels.items() if label == task), None)
            if own is not None:
                return part.run.items(own)
        raise DataError(f'{self.folder} has no task "{task}".')


@dataclass(frozen=True)
class _Owned:
    """A record, its run, its column, and the shift of its repeat and fold."""

    run: Run
    record: dict[str, Any]
    label: str
    shift: int

    def renamed(self) -> dict[str, Any]:
        """Return the record under the name of its column."""
        old = self.record
        moved = {key: old[key] + self.shift for key in ("fold", "repeat") if old[key] is not None}
        return {**old, "task": self.label, **moved}


def _average(owned: Sequence[_Owned]) -> dict[str, Any]:
    """Return the newest record with the mean scores over seeds."""
    record = owned[-1].renamed()
    if len(owned) == 1:
        return record
    values: dict[Any, dict[str, list[float]]] = {}
    for each in owned:
        for view in each.record["views"]:
            key = (view["corruption"], view["severity"], view.get("draw", 0))
            for name, value in view["scores"].items():
                if value is not None:
                    values.setdefault(key, {}).setdefault(name, []).append(value)
    views = []
    for view in record["views"]:
        own = values.get((view["corruption"], view["severity"], view.get("draw", 0)), {})
        means = {name: sum(each) / len(each) for name, each in own.items()}
        views.append({**view, "scores": {**view["scores"], **means}})
    return {**record, "views": views}


class _Pool:
    """Runs to find models in; folders are read when a name is looked up.

    If all runs are given as ``Run``, a string is a model's name and never a folder, since names may
    come from untrusted users. A ``Path`` is always a folder.
    """

    def __init__(self, given: Sequence[Any], notes: list[str], pool: str) -> None:
        self.given = given
        self.notes = notes
        self.pool = pool
        self.closed = bool(given) and all(isinstance(run, Run) for run in given)
        self.opened: list[Run] | None = None

    def find(self, name: Any) -> tuple[str, list[Run]]:
        """Return the name and the runs of a row, a model, a folder or a list of runs."""
        if isinstance(name, Run):
            return name.model, [find_run(name)]
        if isinstance(name, list):
            return name[0].model, newest_first(map(find_run, name))
        if self.closed and not isinstance(name, Path):
            return self._named(str(name))
        path = Path(str(name))
        if (path / "run.json").is_file():
            run = find_run(path)
            return run.model, [run]
        if path.is_dir() and any(path.glob("*/run.json")):
            inside = newest_first(_readable_runs(open_runs([path], damaged=True), self.notes))
            models = list(dict.fromkeys(run.model for run in inside))
            if len(models) != 1:
                raise DefinitionError(
                    f"{path} holds runs of {len(models)} models; name one of {', '.join(models)}."
                )
            return models[0], inside
        return self._named(str(name))

    def _named(self, name: str) -> tuple[str, list[Run]]:
        if self.opened is None:
            self.opened = _readable_runs(self._open(name), self.notes)
        rows = name_models(self.opened, self.pool)
        found = [run for run, row in zip(self.opened, rows, strict=True) if row == name]
        for run in () if found else self.opened:
            folder = run.folder.resolve().name
            if name in (folder, f"{run.model} ({folder.rpartition('.')[2]})"):
                found.append(run)
        if not found:
            self._fail(name, rows)
        return (name if name in rows else found[0].model), newest_first(found)

    def _fail(self, name: str, rows: Sequence[str]) -> NoReturn:
        """Raise an error with the variants of a model, or with the nearest name."""
        opened = self.opened or []
        own = [row for run, row in zip(opened, rows, strict=True) if run.model == name]
        variants = list(dict.fromkeys(own))
        if variants:
            shown = ", ".join(f'"{each}"' for each in variants)
            raise DefinitionError(
                f'"{name}" has {len(variants)} variants; name one of {shown}, or pool them with '
                f'pool="model" (--pool model).'
            )
        models = sorted(set(rows))
        if "/" in name and not self.closed and not did_you_mean(name, models):
            find_run(name)  # raises with what is wrong with the folder
        raise DefinitionError(unknown_model(name, models, "the runs have"))

    def _open(self, name: str) -> list[Run]:
        missing = [p for p in self.given if not isinstance(p, Run) and not Path(p).is_dir()]
        if missing:
            raise DataError(
                f'there is no run folder "{name}", and the folder {missing[0]}, in which to look '
                f"for a model of that name, does not exist."
            )
        every: list[Run] = []
        for run in self.given:
            every += [run] if isinstance(run, Run) else open_runs([run], damaged=True)
        return list({run.folder.resolve(): run for run in every}.values())


def _names(found: Sequence[tuple[str, list[Run]]]) -> list[str]:
    """Return the names of the two, with time stamps where these are equal."""
    names = [name for name, _ in found]
    if names[0] != names[1]:
        return names
    stamps = [group[0].folder.resolve().name.rpartition(".")[2] for _, group in found]
    if stamps[0] == stamps[1]:
        stamps = [str(group[0].folder) for _, group in found]
    return [f"{name} ({stamp})" for name, stamp in zip(names, stamps, strict=True)]


def _readable_sides(group: Sequence[Side], notes: list[str]) -> list[Side]:
    """Return the runs whose records can be read, and note the others; raise if there is none."""
    readable, errors = [], []
    for side in group:
        try:
            side.check()
            readable.append(side)
        except DataError as error:
            errors.append(error)
    if not readable:
        raise errors[0]
    notes += [f"Left out: {error}" for error in errors]
    return readable


def unknown_model(name: str, models: Sequence[str], where: str) -> str:
    """Return the message for an unknown model, with the nearest name."""
    hint = did_you_mean(name, models) or f" There are: {', '.join(models)}."
    return f'{where} no model "{name}".{hint}'
