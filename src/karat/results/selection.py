"""Find runs to compare, by model name, run folder or folder of runs, and read their scores.

A comparison is some runs on one task and view: their scores on the folds
and questions that they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from karat.core.predictions import Predictions
from karat.core.replicates import fit_seed, replicate_of
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean, simplified_status
from karat.metrics.metric import get_metric, score
from karat.results.load import DECLINED, FAILED, NOT_RUN, OK, FrozenRun
from karat.results.pooling import (
    PooledRun,
    check_pool,
    name_models,
    name_questions,
    place_seeds,
    pool_runs,
    question_difference,
)
from karat.results.run import INCOMPLETE, Run, newest_first, open_runs
from karat.results.run_folders import RUN_FILE, find_run_folders, is_run_folder
from karat.results.tables import ELIMINATED
from karat.stats.paired_tests import corrected_t, fold_ratio

#: fold and draw: the same test rows in two runs of one seed on the same data
Unit = tuple[int, int]
#: why a run that has scores is not compared on a task
OTHER_DATA, OTHER_FOLDS, NO_FOLD = "other data", "other folds", "no common fold"
OTHER_PROBE, OTHER_SPLIT = "other probe", "other split"
#: the same by the fact in which two questions differ
DIFFERENCES = {
    **{"data": OTHER_DATA, "probe": OTHER_PROBE, "missing": OTHER_PROBE, "metric": "other metric"},
    **dict.fromkeys(("split", "count", "rows"), OTHER_SPLIT),
    "positive": "other positive class",
}
NOT_MEASURED = "not measured"
#: relative tolerance below which values are equal: means differ in their last bits
TIE = 1e-12


@dataclass(frozen=True)
class FoldScores:
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
class ModelRuns:
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
        facts = self.tasks.get(task, {})
        return str(facts.get("dataset", "")), str(facts.get("fingerprint", ""))

    def probe(self, task: str) -> tuple[Any, Any] | None:
        """Return a task's probe and its rule for missing vectors; None in old runs."""
        facts = self.tasks.get(task, {})
        return (facts["probe"], facts.get("missing")) if "probe" in facts else None

    def state(self, task: str, view: View = CLEAN) -> str:
        """Return "ok" if it has a score of a task in a view, or why not."""
        states = self._states.get(task, {}).get(view, set())
        return next(
            (state for state in (OK, FAILED, DECLINED, ELIMINATED) if state in states), NOT_RUN
        )

    def check(self) -> None:
        """Raise ``DataError`` if its records are damaged."""
        try:
            self.answered, self._states  # noqa: B018
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self.run.folder / 'jobs'} has a damaged record.") from error

    @cached_property
    def answered(self) -> dict[str, dict[View, dict[Unit, FoldScores]]]:
        """Its scores by task, view and fold; all draws of a corruption belong to one view."""
        scores: dict[str, dict[View, dict[Unit, FoldScores]]] = {}
        for record in self._records:
            for view in record["views"] if record["fold"] is not None else ():
                if view.get("status", OK) != OK:
                    continue
                seen = View(view["corruption"], view["severity"])
                units = scores.setdefault(record["task"], {}).setdefault(seen, {})
                coverage = view.get("coverage")
                units[record["fold"], view.get("draw", 0)] = FoldScores(
                    view["scores"],
                    1.0 if coverage is None else float(coverage),
                    int(record.get("questions") or 0),
                    int(record.get("train_questions") or 0),
                )
        return scores

    def replicates(self, task: str, view: View = CLEAN) -> dict[int, list[int]]:
        """Return the fits of each fold of a task that have a score in a view, counted from 0.

        Several fits of a fold differ in the model's seed only. ``run.predictions(task, fold,
        replicate=number)`` are the predictions of one; those without a number are of the first.
        """
        fits = self._fits.get(task, {}).get(view, {})
        return {fold: sorted(numbers) for fold, numbers in fits.items()}

    def replicate_scores(
        self, task: str, metric: str, view: View = CLEAN
    ) -> dict[int, dict[int, float]]:
        """Return the score of each fit of each fold, by fold and number; the mean over draws."""
        fold_scores: dict[int, dict[int, float]] = {}
        for fold, fits in self._fits.get(task, {}).get(view, {}).items():
            for number, drawn in fits.items():
                values = [scores.get(metric) for scores in drawn]
                present = [float(value) for value in values if value is not None]
                if present:
                    fold_scores.setdefault(fold, {})[number] = _mean(present)
        return fold_scores

    @cached_property
    def _fits(self) -> dict[str, dict[View, dict[int, dict[int, list[dict[str, float | None]]]]]]:
        """The scores of each draw by task, view, fold and number of the fit."""
        fits: dict[str, Any] = {}
        for number, record in self._numbered_records:
            for view in record["views"]:
                if view.get("status", OK) == OK:
                    seen = View(view["corruption"], view["severity"])
                    folds = fits.setdefault(record["task"], {}).setdefault(seen, {})
                    folds.setdefault(record["fold"], {}).setdefault(number, []).append(
                        view["scores"]
                    )
        return fits

    @property
    def _numbered_records(self) -> Iterable[tuple[int, dict[str, Any]]]:
        """The records of all fits, with the number of each among those of its fold."""
        if isinstance(self.run, MergedRun):
            return self.run.numbered_records()
        return ((0, record) for record in self._records if record["fold"] is not None)

    @cached_property
    def _states(self) -> dict[str, dict[View, set[str]]]:
        task_states: dict[str, dict[View, set[str]]] = {}
        for record in self._records:
            states = task_states.setdefault(record["task"], {})
            if not record["views"]:
                states.setdefault(CLEAN, set()).add(simplified_status(record["status"]))
            for view in record["views"]:
                seen = View(view["corruption"], view["severity"])
                states.setdefault(seen, set()).add(simplified_status(view.get("status", OK)))
        return task_states

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
        inside = [path.name for path in find_run_folders(folder)]
        if inside and not is_run_folder(folder):
            raise DataError(
                f"{folder} is not a run folder but holds {len(inside)}; use one of them, such as "
                f"{folder / inside[-1]}."
            )
        if not folder.is_dir():
            siblings = [path.name for path in find_run_folders(folder.parent)]
            raise DataError(f"there is no run folder {folder}.{_near(folder.name, siblings)}")
        run = Run.open(folder)
    if not is_run_folder(run.folder):
        raise DataError(f"{run.folder} is not a run folder: it has no {RUN_FILE}.")
    try:
        tasks = run.about["tasks"]
        complete = isinstance(tasks, list) and bool(run.model)
        complete = complete and all(task["name"] and list(task["metrics"]) for task in tasks)
    except (KeyError, TypeError, ValueError):
        complete = False
    if not complete:
        raise DataError(f"{run.folder / RUN_FILE} lacks a model or its tasks.")
    return run


def find_others(run: Run, others: object = None) -> tuple[list[Run], list[str]]:
    """Return the runs to compare with, and notes on those in the folder that cannot be read.

    Runs that are given must be readable; None means all that are in the same folder.
    """
    if others is None:
        return _inside(run.folder.resolve().parent, run)
    several = [others] if isinstance(others, str | Path | Run) else others
    if not isinstance(several, Iterable):
        raise DefinitionError(f"with_ must be a run or a list of runs, got {others!r}.")
    other_runs: list[Run] = []
    notes: list[str] = []
    messages: list[str] = []
    for other in several:
        try:
            runs, left_out = _named(run, other)
            other_runs, notes = other_runs + runs, notes + left_out
        except DefinitionError as error:
            messages += error.messages
    if not other_runs and not messages:
        messages.append("no run to compare with; leave with_ out for all in the same folder.")
    if messages:
        raise DefinitionError(*messages)
    return list({_place(other): other for other in other_runs}.values()), notes


def _named(run: Run, name_or_run: object) -> tuple[list[Run], list[str]]:
    """Return a run, or those in a folder of runs, and notes on those that cannot be read."""
    if not isinstance(name_or_run, str | Path | Run):
        raise DefinitionError(f"a run must be a folder or the name of one, got {name_or_run!r}.")
    folder = run.folder.resolve().parent
    path = name_or_run.folder if isinstance(name_or_run, Run) else Path(name_or_run)
    tries = [path] if isinstance(name_or_run, Run) else [path, folder / path]
    run_folder = next(filter(is_run_folder, tries), None)
    if run_folder is None and any(find_run_folders(path)):
        return _inside(path.resolve(), run)
    if run_folder is None:
        names = [candidate.name for candidate in _run_folders(folder) if candidate != _place(run)]
        hint = _near(path.name, names)
        raise DefinitionError(f'there is no run "{path}", nor one in {folder.name}.{hint}')
    if run_folder.resolve() == _place(run):
        raise DefinitionError(f'"{name_or_run}" is the run itself; name another to compare with.')
    return [find_run(Run(run_folder))], []


def _near(name: str, folders: list[str]) -> str:
    """Return a suggestion of a folder, by its whole name or by its model's."""
    models = {folder.partition(".")[0]: folder for folder in folders}
    hint = did_you_mean(name, folders) or did_you_mean(name.partition(".")[0], models)
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
    return [path for path in paths if is_run_folder(path) or (path / "jobs").is_dir()]


def _place(run: Run) -> Path:
    return run.folder.resolve()


def make_sides(runs: list[Run]) -> list[ModelRuns]:
    """Return runs under unique names."""
    folders = [run.folder.resolve() for run in runs]
    names = [path.name for path in folders]
    models = [run.model for run in runs]
    sides = []
    for run, path, model in zip(runs, folders, models, strict=True):
        name = path.name if names.count(path.name) == 1 else str(run.folder)
        # two runs of one model are named after their time stamps
        stamp = name.rpartition(".")[2] if names.count(path.name) == 1 else name
        sides.append(
            ModelRuns(run, name, f"{model} ({stamp})" if models.count(model) > 1 else model)
        )
    return sides


def find_two(
    runs: Any, first: object, second: object, notes: list[str], pool: str = "variant"
) -> tuple[list[ModelRuns], int]:
    """Return each of two models as one side, with all its runs, under unique names.

    Also the number of models among which they were found by their names, at least two.

    Runs of a model that cannot be read are added to the notes; a run given by its folder must be
    readable.
    """
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    pool_of_runs = _Pool(several, notes, check_pool(pool))
    models = [pool_of_runs.find(name) for name in (first, second)]
    places = [{run.folder.resolve() for run in group} for _, group in models]
    if shared := places[0] & places[1]:
        raise DefinitionError(
            f'"{models[0][0]}" and "{models[1][0]}" are the same run, {min(shared)}; name two '
            f"models to compare."
        )
    names = _names(models)
    groups = []
    for name, (_, group) in zip(names, models, strict=True):
        sides = [ModelRuns(_with_table(run), run.folder.resolve().name, name) for run in group]
        groups.append([side.run for side in _readable_sides(sides, notes)])
        firsts = [run for run in groups[-1] if not replicate_of(run.about)]
        tasks = [task["name"] for run in firsts for task in run.about["tasks"]]
        if len(set(tasks)) < len(tasks):
            runs_of = f"{name} has {len(firsts)} runs"
            notes.append(f"{runs_of}: they are pooled, and of a repeated job the newest counts.")
        if seeds := {replicate_of(run.about) for run in groups[-1]} - {0}:
            notes.append(f"{name} was fitted with {len(seeds) + 1} seeds: scores are their mean.")
    merged = _merged(groups, names)
    return [
        ModelRuns(run, run.folder.resolve().name, name) for run, name in merged
    ], pool_of_runs.models


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


def pooled_sides(runs: Sequence[Run], pool: str = "variant") -> list[ModelRuns]:
    """Return each model of the leaderboard as one side; its tasks have the columns' names."""
    pooled = pool_runs(runs, pool)
    sides = []
    for model in dict.fromkeys(part.model for part in pooled):
        run = MergedRun([part for part in pooled if part.model == model])
        sides.append(ModelRuns(run, run.folder.resolve().name, model))
    return sides


class MergedRun(Run):
    """Several runs of one model as one, whose tasks are the columns of the leaderboard.

    Of a repeated job the newest counts. Folds of several seeds have different numbers, and scores
    of several seeds, or of several replicates, on the same rows are averaged. These are the fits of
    a fold. The first one has a score if any has, and the lowest number of a replicate.
    """

    def __init__(self, parts: Sequence[PooledRun]) -> None:
        newest = newest_first(part.run for part in parts)
        super().__init__(newest[0].folder)
        age = {id(run): position for position, run in enumerate(reversed(newest))}
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
        """The records that count, by column and fold: one for each fit, the first one last."""
        jobs: dict[tuple[str, int | None], dict[Any, _Owned]] = {}
        for part in self.parts:
            seed = fit_seed(part.run.about)
            for record in part.run.records():
                label = part.labels.get(record["task"], record["task"])
                if label in part.dropped:
                    continue
                shift = part.shifts.get(label, 0)
                fold = None if record["fold"] is None else record["fold"] + shift
                by_seed = jobs.setdefault((label, fold), {})
                if record["status"] not in (DECLINED, ELIMINATED) or seed not in by_seed:
                    by_seed[seed] = _Owned(part.run, record, label, shift)
        ran = {label for label, fold in jobs if fold is not None}
        return {
            (label, fold): sorted(by_seed.values(), key=_Owned.place)
            for (label, fold), by_seed in jobs.items()
            if fold is not None or label not in ran
        }

    @cached_property
    def _merged_records(self) -> list[dict[str, Any]]:
        return self._sorted(_average(owned) for owned in self._jobs.values())

    def records(self) -> list[dict[str, Any]]:
        """Return the records that count, under the names of the columns."""
        return self._merged_records

    def numbered_records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of all fits under the names of the columns, each with its number."""
        for (_, fold), owned in self._jobs.items():
            for number, record in enumerate(reversed(owned) if fold is not None else ()):
                yield number, record.renamed()

    def predictions(
        self, task: str, fold: int = 0, view: str = "clean", replicate: int = 0
    ) -> Predictions:
        """Return the predictions of a fit of a fold, by default of the first one."""
        owned = self._jobs.get((task, fold), [])
        if not 0 <= replicate < len(owned):
            fit = f", replicate {replicate}" if replicate else ""
            raise DataError(f"{self.folder} has no predictions of {task}, fold {fold}{fit}.")
        chosen = owned[-1 - replicate]
        return chosen.run.predictions(chosen.record["task"], chosen.record["fold"], view)

    def items(self, task: str) -> pd.DataFrame:
        """Return the stored items of a task, of the newest run that has the task."""
        for part in reversed(self.parts):
            task_name = next((name for name, label in part.labels.items() if label == task), None)
            if task_name is not None:
                return part.run.items(task_name)
        raise DataError(f'{self.folder} has no task "{task}".')


@dataclass(frozen=True)
class _Owned:
    """A record, its run, its column, and the shift of its repeat and fold."""

    run: Run
    record: dict[str, Any]
    label: str
    shift: int

    def place(self) -> tuple[bool, int]:
        """Return its place among the fits of a fold: those with scores follow those without."""
        scored = any(view.get("status", OK) == OK for view in self.record["views"])
        return scored, -replicate_of(self.run.about)

    def renamed(self) -> dict[str, Any]:
        """Return the record under the name of its column."""
        old = self.record
        moved = {key: old[key] + self.shift for key in ("fold", "repeat") if old[key] is not None}
        return {**old, "task": self.label, **moved}


def _average(owned: Sequence[_Owned]) -> dict[str, Any]:
    """Return the record of the first fit with the mean scores over all."""
    record = owned[-1].renamed()
    if len(owned) == 1:
        return record
    values: dict[Any, dict[str, list[float]]] = {}
    for fit in owned:
        for view in fit.record["views"]:
            key = (view["corruption"], view["severity"], view.get("draw", 0))
            for name, value in view["scores"].items():
                if value is not None:
                    values.setdefault(key, {}).setdefault(name, []).append(value)
    views = []
    for view in record["views"]:
        by_metric = values.get((view["corruption"], view["severity"], view.get("draw", 0)), {})
        means = {name: sum(fit) / len(fit) for name, fit in by_metric.items()}
        views.append({**view, "scores": {**view["scores"], **means}})
    return {**record, "views": views}


class _Pool:
    """Runs to find models in; folders are read when a name is looked up.

    If all runs are given as ``Run``, a string is a model's name and never a folder, since names may
    come from untrusted users. A ``Path`` is always a folder. ``models`` counts those among which a
    name was looked up.
    """

    def __init__(self, sources: Sequence[Any], notes: list[str], pool: str) -> None:
        self.sources = sources
        self.notes = notes
        self.pool = pool
        self.closed = bool(sources) and all(isinstance(run, Run) for run in sources)
        self.opened: list[Run] | None = None
        self.models = 2

    def find(self, name: object) -> tuple[str, list[Run]]:
        """Return the name and the runs of a row, a model, a folder or a list of runs."""
        if isinstance(name, Run):
            return name.model, [find_run(name)]
        if isinstance(name, list):
            return name[0].model, newest_first(map(find_run, name))
        if self.closed and not isinstance(name, Path):
            return self._named(str(name))
        path = Path(str(name))
        if is_run_folder(path):
            run = find_run(path)
            return run.model, [run]
        if path.is_dir() and any(find_run_folders(path)):
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
        self.models = max(self.models, len(set(rows)))
        matching = [run for run, row in zip(self.opened, rows, strict=True) if row == name]
        for run in () if matching else self.opened:
            folder = run.folder.resolve().name
            if name in (folder, f"{run.model} ({folder.rpartition('.')[2]})"):
                matching.append(run)
        if not matching:
            self._fail(name, rows)
        return (name if name in rows else matching[0].model), newest_first(matching)

    def _fail(self, name: str, rows: Sequence[str]) -> NoReturn:
        """Raise an error with the variants of a model, or with the nearest name."""
        opened = self.opened or []
        rows_of_model = [row for run, row in zip(opened, rows, strict=True) if run.model == name]
        variants = list(dict.fromkeys(rows_of_model))
        if variants:
            listed = ", ".join(f'"{variant}"' for variant in variants)
            raise DefinitionError(
                f'"{name}" has {len(variants)} variants; name one of {listed}, or pool them with '
                f'pool="model" (--pool model).'
            )
        models = sorted(set(rows))
        if "/" in name and not self.closed and not did_you_mean(name, models):
            find_run(name)  # raises with what is wrong with the folder
        raise DefinitionError(unknown_model(name, models, "the runs have"))

    def _open(self, name: str) -> list[Run]:
        missing = [p for p in self.sources if not isinstance(p, Run) and not Path(p).is_dir()]
        if missing:
            raise DataError(
                f'there is no run folder "{name}", and the folder {missing[0]}, in which to look '
                f"for a model of that name, does not exist."
            )
        every: list[Run] = []
        for run in self.sources:
            every += [run] if isinstance(run, Run) else open_runs([run], damaged=True)
        return list({run.folder.resolve(): run for run in every}.values())


def _names(models: Sequence[tuple[str, list[Run]]]) -> list[str]:
    """Return the names of the two, with time stamps where these are equal."""
    names = [name for name, _ in models]
    if names[0] != names[1]:
        return names
    stamps = [group[0].folder.resolve().name.rpartition(".")[2] for _, group in models]
    if stamps[0] == stamps[1]:
        stamps = [str(group[0].folder) for _, group in models]
    return [f"{name} ({stamp})" for name, stamp in zip(names, stamps, strict=True)]


def _readable_sides(group: Sequence[ModelRuns], notes: list[str]) -> list[ModelRuns]:
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


class CannotRestrict(KaratError):
    """The predictions of a task cannot be restricted to some of its questions."""


class CannotCompare(KaratError):
    """A run (``place``) has no predictions for these questions."""

    def __init__(self, number: int, reason: str) -> None:
        self.place = number
        super().__init__(reason)


@dataclass
class CommonRows:
    """Scores of each run by fold on ``questions`` of a ``total``.

    ``reasons`` tell by metric why a score is missing, ``candidates`` is each run's largest number
    of candidate answers, where recorded.
    """

    scores: list[dict[Unit, dict[str, float | None]]]
    questions: int = 0
    total: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)


def cut_to_common(
    sides: Sequence[ModelRuns], task: str, view: View, units: Sequence[Unit], metrics: Sequence[str]
) -> CommonRows:
    """Return the scores on the questions of each fold that all runs can answer.

    Raises ``CannotRestrict`` where a prediction is not about one question, and ``CannotCompare``
    where a run's predictions cannot be read or belong to other questions than the first run's.
    """
    cut = CommonRows([{} for _ in sides], candidates=[0] * len(sides))
    for unit in units:
        folds = [side.answered[task][view][unit] for side in sides]
        answers = [_read(sides, i, task, view, unit) for i in range(len(sides))]
        rows_of = common_rows(answers, folds)
        cut.questions += len(rows_of[0])
        cut.total += folds[0].questions
        for i, (predictions, rows) in enumerate(zip(answers, rows_of, strict=True)):
            part = predictions.take(rows)
            if part.candidates is not None and len(part):
                cut.candidates[i] = max(cut.candidates[i], int(part.candidates.max()))
            graded = {name: score(name, part) for name in metrics}
            cut.scores[i][unit] = {name: value for name, (value, _) in graded.items()}
            cut.reasons |= {name: why for name, (_, why) in graded.items() if why}
    return cut


def common_rows(answers: Sequence[Predictions], folds: Sequence[FoldScores]) -> list[np.ndarray]:
    """Return each run's rows of the questions that all can answer, in the order of the questions.

    >>> one = Predictions([1.0, 2.0], [1.0, 3.0], question=[0, 2])
    >>> other = Predictions([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], known=[0, 1, 1])
    >>> folds = [FoldScores({}, 2 / 3, 3, 0)] * 2
    >>> [rows.tolist() for rows in common_rows([one, other], folds)]
    [[1], [2]]
    """
    places = [_places(questions, fold) for questions, fold in zip(answers, folds, strict=True)]
    shared = places[0]
    for questions in places[1:]:
        shared = shared[np.isin(shared, questions)]
    shared = np.sort(shared[shared >= 0])
    rows = []
    for i, questions in enumerate(places):
        order = np.argsort(questions, kind="stable")
        rows.append(order[np.searchsorted(questions[order], shared)])
        if not np.array_equal(answers[i].target[rows[i]], answers[0].target[rows[0]]):
            raise CannotCompare(i, "its folds have other questions")
    return rows


def _places(answers: Predictions, fold: FoldScores) -> np.ndarray:
    """Return the question of each row, -1 where the model cannot answer it."""
    if answers.weight is not None:
        raise CannotRestrict("a row of its predictions counts for several pairs")
    if answers.rank is not None and answers.group is not None:
        if len(set(answers.group.tolist())) < len(answers):
            raise CannotRestrict("the predictions of a query are one ranked list")
    if answers.question is not None:
        places = np.asarray(answers.question)
    elif len(answers) == fold.questions and (answers.known is not None or fold.coverage == 1):
        places = np.arange(len(answers))
    else:
        raise CannotRestrict("there is not one prediction per question")
    return places if answers.known is None else np.where(answers.known == 1, places, -1)


def _read(
    sides: Sequence[ModelRuns], number: int, task: str, view: View, unit: Unit
) -> Predictions:
    fold, draw = unit
    try:
        return sides[number].run.predictions(task, fold, replace(view, draw=draw).name)
    except (KaratError, ValueError, KeyError, TypeError) as error:
        raise CannotCompare(number, f"its predictions of fold {fold} cannot be read") from error


@dataclass(frozen=True)
class TaskScores:
    """Values, ranks, states and coverage of all runs in one metric.

    ``best`` is the index of the best other run, if any, and ``difference`` that of the first run
    minus it, with its interval over folds.
    """

    metric: str
    higher: bool
    values: list[float]
    ranks: list[int | None]
    states: list[str]
    coverage: list[float]
    folds: int
    best: int | None
    difference: tuple[float, float, float]


class PairedComparison:
    """Runs on a task; the first is compared with the others."""

    def __init__(self, sides: Sequence[ModelRuns], task: str, view: View) -> None:
        self.sides = sides
        self.task = task
        self.view = view
        #: pairs of task (and view) and text
        self.notes: list[tuple[str, str]] = []
        self.questions: tuple[int, int] | None = None
        self.states = [comparable_state(sides[0], side, task, view) for side in sides]
        self.units: list[dict[Unit, FoldScores]] = [
            side.answered.get(task, {}).get(view, {}) if state == OK else {}
            for side, state in zip(sides, self.states, strict=True)
        ]

    @property
    def about(self) -> str:
        """The task, and the view unless it is the clean one."""
        return self.task if not self.view.corruption else f"{self.task}, {self.view.name}"

    @property
    def coverage_differs(self) -> bool:
        """Whether the runs cover different shares of the questions."""
        shares = [_coverage(units, units) for units in self.units if units]
        return len(shares) > 1 and max(shares) - min(shares) > TIE

    # -- questions that all runs can answer -------------------------------------------------

    def cut(self, metrics: Sequence[str]) -> None:
        """Replace the scores by those on the questions that all runs can answer.

        Where that is impossible the scores stay and a note gives the reason.
        """
        while (
            len(there := [i for i, scores in enumerate(self.units) if scores]) > 1 and not there[0]
        ):
            units, left_out = shared_units([set(self.units[i]) for i in there])
            try:
                if left_out:
                    raise CannotCompare(left_out[0], NO_FOLD)
                self._cut(there, units, metrics)
                return
            except CannotCompare as error:
                if error.place:
                    self.states[there[error.place]] = str(error)
                    self.units[there[error.place]] = {}
                    continue
                reason = f"this run: {error}"
            except CannotRestrict as error:
                reason = str(error)
            self._note(f"compared on all questions of each run: {reason}.")
            return

    def _cut(self, there: list[int], units: list[Unit], metrics: Sequence[str]) -> None:
        cut = cut_to_common([self.sides[i] for i in there], self.task, self.view, units, metrics)
        self._note_folds(
            self.about, [_folds(answers) for answers in self.units], len(_folds(units))
        )
        for number, scores in zip(there, cut.scores, strict=True):
            old = self.units[number]
            self.units[number] = {u: replace(old[u], scores=scores[u]) for u in units}
        self.questions = (cut.questions, cut.total)
        few, most = min(cut.candidates), max(cut.candidates)
        self._note(
            f"compared on the {cut.questions:,} of {cut.total:,} questions that all "
            f"{len(there)} runs can answer."
        )
        for reason in cut.reasons.values():
            self._note(reason)
        if few < most:
            self._note(f"the runs choose answers from {few:,} to {most:,} candidate items.")

    def _note(self, text: str) -> None:
        self.notes.append((self.about, text))

    # -- scores and ranks -------------------------------------------------------------------

    def score(self, metric: str, higher: bool) -> TaskScores:
        """Return the values of a metric on the folds that all runs have, and their ranks."""
        tables = [_scored(units, metric) for units in self.units]
        shared, left_out = shared_units([set(table) for table in tables])
        whole = [set(table) for table in tables] == [set(units) for units in self.units]
        states = list(self.states)
        for i, units in enumerate(self.units):
            if states[i] == OK and not tables[i]:
                measured = any(metric in fold.scores for fold in units.values())
                states[i] = FAILED if measured else NOT_MEASURED
        for i in left_out:
            states[i], tables[i] = NO_FOLD, {}
        count = len(_folds(shared))
        subject = self.about if whole else f"{self.about}, {metric}"
        self._note_folds(subject, [_folds(table) for table in tables], count)
        folds = [_by_fold(table, shared) for table in tables]
        values = [_mean([table[unit] for unit in shared]) if table else np.nan for table in tables]
        others = [i for i, table in enumerate(tables) if i and table]
        best = max(others, key=lambda i: values[i] if higher else -values[i], default=None)
        difference = (np.nan, np.nan, np.nan)
        if best is not None and tables[0]:
            low, high = self._interval(folds[0] - folds[best], shared)
            difference = (values[0] - values[best], low, high)
        ranks = rank_values(values, higher)
        coverage = [
            _coverage(units, shared if table else units)
            for units, table in zip(self.units, tables, strict=True)
        ]
        return TaskScores(metric, higher, values, ranks, states, coverage, count, best, difference)

    def _note_folds(self, subject: str, held: Sequence[set[int]], shared: int) -> None:
        union = set().union(*held)
        lacking = [
            f"{side.model} lacks {', '.join(map(str, sorted(union - folds)))}"
            for side, folds in zip(self.sides, held, strict=True)
            if folds and folds != union
        ]
        if lacking:
            shared_by_all = f"compared on the {shared} of {len(union)} folds that all have"
            self.notes.append((subject, f"{shared_by_all}; {'; '.join(lacking)}."))

    def _interval(self, differences: np.ndarray, shared: list[Unit]) -> tuple[float, float]:
        """Return the interval of the mean difference; NaN if it is equal in all folds."""
        if len(differences) < 2 or np.ptp(differences) <= TIE:
            return np.nan, np.nan
        test = corrected_t(differences, self.ratio(shared))
        return float(test.low), float(test.high)

    def ratio(self, shared: Iterable[Unit]) -> float:
        """Return n_test / n_train of some folds; see ``fold_ratio``."""
        train, test = zip(*(self.units[0][unit].sizes for unit in shared), strict=True)
        records = [r for r in self.sides[0].run.records() if r["task"] == self.task]
        repeats = Counter(repeat for repeat, _ in {(r["repeat"], r["fold"]) for r in records})
        return fold_ratio(train, test, max(repeats.values(), default=0))


def comparable_state(first: ModelRuns, side: ModelRuns, task: str, view: View) -> str:
    """Return "ok" if a run can be compared with the first on a task, or why not."""
    state = side.state(task, view)
    if side is first or task not in side.tasks:
        return state
    if side.data(task)[1] and side.data(task) != first.data(task):
        return OTHER_DATA
    if side.probe(task) is not None and side.probe(task) != first.probe(task):
        return OTHER_PROBE
    differs = question_difference(first.run, side.run, (task, task))
    if differs in ("split", "rows", "positive"):
        return DIFFERENCES[differs]
    one, other = _sizes(first, task), _sizes(side, task)
    if any(one[fold] != other[fold] for fold in one.keys() & other.keys()):
        return OTHER_FOLDS
    return state


def shared_units(held: Sequence[set[Unit]]) -> tuple[list[Unit], list[int]]:
    """Return the folds shared by all runs that have any, and the indices of runs left out.

    Runs are intersected by the number of folds they share with the first, most first; a run that
    would leave no common fold is left out.

    >>> shared_units([{(0, 0), (1, 0)}, {(1, 0)}, {(2, 0)}, set()])
    ([(1, 0)], [2])
    """
    there = [i for i, units in enumerate(held) if units]
    if not there:
        return [], []
    shared, left_out = held[there[0]], []
    for i in sorted(there[1:], key=lambda i: -len(held[i] & held[there[0]])):
        if shared & held[i]:
            shared = shared & held[i]
        else:
            left_out.append(i)
    return sorted(shared), sorted(left_out)


def rank_values(values: Sequence[float], higher: bool) -> list[int | None]:
    """Return the rank of each value, 1 is best; equal values share the better rank.

    None for a missing value, and where there are fewer than two values.

    >>> rank_values([0.5, 0.7, float("nan"), 0.7], higher=True)
    [3, 1, None, 1]
    >>> rank_values([0.5, float("nan")], higher=True)
    [None, None]
    """
    signed = np.array(values) * (1 if higher else -1)
    present = signed[~np.isnan(signed)]
    if len(present) < 2:
        return [None] * len(signed)
    return [
        None if np.isnan(v) else 1 + int((present - v > TIE * max(1.0, abs(v))).sum())
        for v in signed
    ]


def higher_is_better(sides: Sequence[ModelRuns], task: str, metric: str) -> bool:
    """Return the direction of a metric as the runs recorded it, else as it is registered."""
    for side in sides:
        recorded = side.tasks.get(task, {}).get("higher_is_better", {}).get(metric)
        if recorded is not None:
            return bool(recorded)
    return get_metric(metric).higher_is_better


def _sizes(side: ModelRuns, task: str) -> dict[int, tuple[int, int]]:
    """Return the numbers of train and test questions of each fold."""
    views = side.answered.get(task, {}).values()
    return {fold: answer.sizes for units in views for (fold, _), answer in units.items()}


def _folds(units: Iterable[Unit]) -> set[int]:
    return {fold for fold, _ in units}


def _scored(units: dict[Unit, FoldScores], metric: str) -> dict[Unit, float]:
    scores = {unit: answer.scores.get(metric) for unit, answer in units.items()}
    return {unit: float(value) for unit, value in scores.items() if value is not None}


def _by_fold(table: dict[Unit, float], shared: Sequence[Unit]) -> np.ndarray:
    """Return each fold's mean over draws; no folds if there is no score."""
    folds: dict[int, list[float]] = {}
    for unit in shared if table else ():
        folds.setdefault(unit[0], []).append(table[unit])
    return np.array([_mean(values) for values in folds.values()])


def _coverage(units: dict[Unit, FoldScores], chosen: Iterable[Unit]) -> float:
    return _mean([units[unit].coverage for unit in chosen])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
