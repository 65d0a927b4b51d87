"""Reading: which system wrote a file, and the run folders made of all that were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.results.imports import amlb, geval, mteb, tabeb, taco, ulysses
from karat.results.imports.files import SUFFIXES, Sample, sample
from karat.results.imports.found import Told, write_run
from karat.results.run import Run

SYSTEMS: dict[str, ModuleType] = {
    "amlb": amlb,
    "geval": geval,
    "mteb": mteb,
    "tabeb": tabeb,
    "taco": taco,
    "ulysses": ulysses,
}


@dataclass(frozen=True, eq=False)
class Imported:
    """What was read: the runs made of it, what was left out, and which files cannot be used."""

    runs: list[Run]
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def import_results(
    files: str | Path | Iterable[str | Path],
    output: str | Path = "results",
    *,
    system: str | None = None,
    model: str | None = None,
) -> Imported:
    """Read result files of other systems and write a run folder for every model in them.

    Parameters
    ----------
    files
        CSV, JSON or Parquet files, or folders of them.
    output
        Where the run folders go.
    system
        Whose results they are: ``"amlb"``, ``"geval"``, ``"mteb"``, ``"tabeb"``, ``"taco"`` or
        ``"ulysses"``; without it, their columns and keys tell.
    model
        A name for the model, in place of what the files tell.
    """
    if system is not None and system not in SYSTEMS:
        raise DefinitionError(
            f'nothing is known about results of "{system}".{did_you_mean(system, SYSTEMS)} '
            f"There are: {', '.join(SYSTEMS)}."
        )
    told = Told(model)
    given = [files] if isinstance(files, str | Path) else list(files)
    by_system: dict[str, list[Sample]] = {}
    for path, sure in _all_files([Path(each) for each in given], told):
        try:
            seen = sample(path)
            by_system.setdefault(_system(seen, system), []).append(seen)
        except KaratError as error:
            (told.problems if sure else told.notes).append(str(error))
    runs = list(_runs(by_system, Path(output), told))
    if not runs:
        messages = [*told.problems, *told.notes] or ["no file was given to import."]
        raise DataError("\n".join(["nothing was imported.", *messages]))
    if told.again:
        more = f" and {len(told.again) - 1} more" * (len(told.again) > 1)
        told.note(f"there already, delete to import anew: {told.again[0]}{more}.")
    return Imported(runs, told.notes, told.problems)


def _runs(by_system: dict[str, list[Sample]], output: Path, told: Told) -> Iterator[Run]:
    for name, samples in by_system.items():
        for found in SYSTEMS[name].read(samples, told):
            run = write_run(found, output, told)
            if run is not None:
                yield run


def _all_files(paths: Sequence[Path], told: Told) -> Iterator[tuple[Path, bool]]:
    """Yield files, and whether they were named; of folders all that may hold results."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
        ours = {each.parent for each in inside if each.name == "run.json"}
        kept = [each for each in inside if not ours & {each.parent, *each.parents}]
        if ours:
            told.note(f"{path}: {len(ours)} run folders of Karat in it are left as they are.")
        if not kept and not ours:
            told.problems.append(f"{path} holds no file of {', '.join(SUFFIXES)}.")
        yield from ((each, False) for each in kept if each.name != mteb.META)


def _system(seen: Sample, asked: str | None) -> str:
    names = list(SYSTEMS) if asked is None else [asked]
    found = next((name for name in names if SYSTEMS[name].recognises(seen)), None)
    if found is not None:
        return found
    looked = "; ".join(f"{name}: {SYSTEMS[name].LOOKS}" for name in names)
    raise DataError(f"{seen.path} is not recognised: it has the {seen.shown}. Looked for {looked}.")
