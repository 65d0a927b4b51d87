"""The runs of two models, found by the models' names, by run folders or by folders of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.beside import Side, find_run
from karat.results.run import Run, open_runs


def find_two(runs: Any, first: Any, second: Any, notes: list[str]) -> list[list[Side]]:
    """Return the runs of each of two models, newest first, under unique names.

    Runs of a model that cannot be read are added to the notes; a run given by its folder must be
    readable.
    """
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    pool = _Pool(several, notes)
    groups = [pool.find(name) for name in (first, second)]
    places = [{run.folder.resolve() for run in group} for group in groups]
    if places[0] & places[1]:
        raise DefinitionError(
            f'"{first}" and "{second}" are the same run; name two models to compare.'
        )
    sides = [
        [Side(run, run.folder.resolve().name, name) for run in group]
        for group, name in zip(groups, _names(groups), strict=True)
    ]
    sides = [_readable(group, notes) for group in sides]
    notes += _repeated(sides)
    return sides


class _Pool:
    """Runs to find models in; folders are read when a name is looked up.

    If all runs are given as ``Run``, a string is a model's name and never a folder, since names may
    come from untrusted users. A ``Path`` is always a folder.
    """

    def __init__(self, given: Sequence[Any], notes: list[str]) -> None:
        self.given = given
        self.notes = notes
        self.closed = bool(given) and all(isinstance(run, Run) for run in given)
        self.opened: list[Run] | None = None

    def find(self, name: Any) -> list[Run]:
        """Return the runs of a model or a folder, newest first."""
        if isinstance(name, Run):
            return [find_run(name)]
        if self.closed and not isinstance(name, Path):
            return self._named(str(name))
        path = Path(str(name))
        if (path / "run.json").is_file():
            return [find_run(path)]
        if path.is_dir() and any(path.glob("*/run.json")):
            inside = _newest(self._readable(open_runs([path], damaged=True)))
            models = list(dict.fromkeys(run.model for run in inside))
            if len(models) != 1:
                raise DefinitionError(
                    f"{path} holds runs of {len(models)} models; name one of {', '.join(models)}."
                )
            return inside
        return self._named(str(name))

    def _named(self, name: str) -> list[Run]:
        if self.opened is None:
            self.opened = self._readable(self._open(name))
        found = [run for run in self.opened if run.model == name]
        found = found or [run for run in self.opened if name in _called(run)]
        if not found:
            models = sorted({run.model for run in self.opened})
            if "/" in name and not self.closed and not did_you_mean(name, models):
                find_run(name)  # raises with what is wrong with the folder
            raise DefinitionError(unknown_model(name, models, "the runs have"))
        return _newest(found)

    def _open(self, name: str) -> list[Run]:
        missing = [p for p in self.given if not isinstance(p, Run) and not Path(p).is_dir()]
        if missing:
            raise DataError(
                f'there is no run folder "{name}", and the folder {missing[0]}, in which to look '
                f"for a model of that name, does not exist."
            )
        every = [
            r
            for run in self.given
            for r in ([run] if isinstance(run, Run) else open_runs([run], damaged=True))
        ]
        return list({run.folder.resolve(): run for run in every}.values())

    def _readable(self, runs: Sequence[Run]) -> list[Run]:
        readable = []
        for run in runs:
            try:
                readable.append(find_run(run))
            except DataError as error:
                self.notes.append(f"{run.folder.name} is left out: {error}")
        return readable


def _names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Return the names of the two: their models, with time stamps where these are equal."""
    models = [group[0].model for group in groups]
    if models[0] != models[1]:
        return models
    folders = [group[0].folder.resolve().name for group in groups]
    stamps = [folder.rpartition(".")[2] for folder in folders]
    if stamps[0] == stamps[1]:
        stamps = [str(group[0].folder) for group in groups]
    return [f"{model} ({stamp})" for model, stamp in zip(models, stamps, strict=True)]


def _called(run: Run) -> tuple[str, str]:
    folder = run.folder.resolve().name
    return folder, f"{run.model} ({folder.rpartition('.')[2]})"


def _newest(runs: Sequence[Run]) -> list[Run]:
    def age(run: Run) -> tuple[str, int, str]:
        name = run.folder.resolve().name
        return str(run.about.get("stamp")), len(name), name

    return sorted(runs, key=age, reverse=True)


def _readable(group: Sequence[Side], notes: list[str]) -> list[Side]:
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


def _repeated(groups: Sequence[Sequence[Side]]) -> Iterator[str]:
    for group in groups:
        tasks = [task for side in group for task in side.tasks]
        if len(set(tasks)) < len(tasks):
            yield f"{group[0].model} has {len(group)} runs: the newest that fits each task is used."


def unknown_model(name: str, models: Sequence[str], where: str) -> str:
    """Return the message for an unknown model, with the nearest name."""
    hint = did_you_mean(name, models) or f" There are: {', '.join(models)}."
    return f'{where} no model "{name}".{hint}'
