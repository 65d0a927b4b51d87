"""Convert results: files of other systems to run folders, and runs to their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.amlb import result_files as amlb
from karat.compat.geval import result_files as geval
from karat.compat.mteb import result_files as mteb
from karat.compat.result_cards import every_eval_ever_records, model_cards
from karat.compat.result_tables import MULTABENCH, TABARENA, Layout
from karat.compat.tabeb import interface as tabeb
from karat.compat.taco import result_files as taco
from karat.compat.ulysses import result_files as ulysses
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.results.importing import (
    SUFFIXES,
    ImportLog,
    ModelResults,
    Sample,
    make_records,
    no_garbage_collection,
    sample_file,
    write_run,
)
from karat.results.run import Run
from karat.results.tables import scores_table

SYSTEMS: dict[str, ModuleType | Layout] = {
    "amlb": amlb,
    "geval": geval,
    "mteb": mteb,
    "multabench": MULTABENCH,
    "tabarena": TABARENA,
    "tabeb": tabeb,
    "taco": taco,
    "ulysses": ulysses,
}
#: messages of an import that found nothing
MOST_MESSAGES = 10
#: functions that yield file names with their tables or texts
EXPORT_FORMATS: dict[str, Callable[[Any], Iterator[tuple[str, pd.DataFrame | str]]]] = {
    "amlb": amlb.amlb_tables,
    "amlb-new": amlb.new_amlb_tables,
    "every-eval-ever": every_eval_ever_records,
    "geval": geval.geval_tables,
    "model-card": model_cards,
    "mteb": mteb.mteb_files,
    "taco": taco.taco_tables,
    "ulysses": ulysses.senteval_tables,
}


@dataclass(frozen=True, eq=False)
class Imported:
    """The imported runs, notes about skipped content, and problems with files."""

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
    """Read result files of other systems and write a run folder for every model.

    Parameters
    ----------
    files
        CSV, JSON or Parquet files, or folders of them.
    output
        Folder for the run folders.
    system
        The system that wrote the files: ``"amlb"``, ``"geval"``, ``"mteb"``, ``"multabench"``,
        ``"tabarena"``, ``"tabeb"``, ``"taco"`` or ``"ulysses"``. Default: inferred from their
        columns and keys.
    model
        Name of the model. Default: the name in the files.
    """
    log = ImportLog(model)
    with no_garbage_collection():
        written = [write_run(each, Path(output), log) for each in _results(files, system, log)]
    runs = [run for run in written if run is not None]
    if not runs:
        raise _nothing(log)
    if log.again:
        more = f" and {len(log.again) - 1} more" * (len(log.again) > 1)
        log.note(f"already imported: {log.again[0]}{more}; delete to import again.")
    return Imported(runs, log.notes, log.problems)


def read_scores(
    files: str | Path | Iterable[str | Path], *, system: str | None = None
) -> pd.DataFrame:
    """Return the scores in result files of other systems as one table, and write nothing.

    The table can be passed to ``karat.leaderboard`` and ``karat.compare``. Failed jobs have no row.

    Parameters
    ----------
    files, system
        As in ``karat.import_results``.
    """
    log = ImportLog()
    tables = []
    with no_garbage_collection():
        for found in _results(files, system, log):
            found.settle()
            table = scores_table(make_records(found))
            ways = {metric: found.way(metric) for metric in table["metric"].unique()}
            kinds = {task: facts.get("kind", "") for task, facts in found.tasks.items()}
            firsts = {task: facts["metric"] for task, facts in found.tasks.items()}
            table["kind"] = table["task"].map(kinds)
            table["higher_is_better"] = table["metric"].map(ways)
            # the first metric of a task in a table is its primary one
            other = table["metric"] != table["task"].map(firsts)
            tables.append(table.iloc[np.argsort(other, kind="stable")])
    if not tables or not any(map(len, tables)):
        raise _nothing(log)
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def _results(files: Any, system: str | None, log: ImportLog) -> Iterator[ModelResults]:
    """Yield the results of each model in some files."""
    if system is not None:
        _check_known("system", system, SYSTEMS)
    given = [files] if isinstance(files, str | Path) else list(files)
    by_system: dict[str, list[Sample]] = {}
    for path, named in _all_files([Path(each) for each in given], log):
        try:
            sample = sample_file(path)
            by_system.setdefault(_system(sample, system), []).append(sample)
        except KaratError as error:
            (log.problems if named else log.notes).append(str(error))
    for name, samples in by_system.items():
        yield from SYSTEMS[name].read(samples, log)


def _nothing(log: ImportLog) -> DataError:
    messages = [*log.problems, *log.notes] or ["no file given."]
    more = [f"and {len(messages) - MOST_MESSAGES} more messages."]
    shown = [*messages[:MOST_MESSAGES], *(more if len(messages) > MOST_MESSAGES else [])]
    return DataError("\n".join(["nothing was imported.", *shown]))


def export_results(
    runs: Run | str | Path | Iterable[Run | str | Path], system: str, output: str | Path = "export"
) -> list[Path]:
    """Write the scores of runs in the file format of another system, and return the files.

    Parameters
    ----------
    runs
        Runs, run folders, or folders of run folders.
    system
        ``"taco"`` writes ``metrics_<dataset>_<task>.csv`` (means over folds and draws) and
        ``confusion_<dataset>_<task>.csv`` (counts over all folds and draws). ``"ulysses"`` writes
        ``results_nonagg.csv``, ``results_agg.json`` and ``summary.csv``, ``"geval"`` GEval's
        result files and its comparison; with several models, each model has its own folder.
        ``"amlb"`` writes the AutoML Benchmark's ``results.csv`` as documented, ``"amlb-new"``
        with its current columns; both for clean data only. ``"mteb"`` writes MTEB's
        ``results/MODEL/REVISION/TASK.json``, for all tasks with a score on clean data.
        ``"model-card"`` writes a ``README.md`` per model with the metadata of the Hugging Face hub,
        ``"every-eval-ever"`` the JSON files of that collection.
    output
        Folder for the files.
    """
    _check_known("export format", system, EXPORT_FORMATS)
    written = taco.write_files(EXPORT_FORMATS[system](runs), output)
    if not written:
        raise DataError("the runs have no classification or regression task to export.")
    return written


def _check_known(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        hint = did_you_mean(name, known)
        raise DefinitionError(f'unknown {kind} "{name}".{hint} Available: {", ".join(known)}.')


def _all_files(paths: Sequence[Path], log: ImportLog) -> Iterator[tuple[Path, bool]]:
    """Yield files and whether they were given by name; of folders all with a known suffix."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
        ours = {each.parent for each in inside if each.name == "run.json"}
        others = [each for each in inside if not ours & {each.parent, *each.parents}]
        if ours:
            log.note(f"{path}: skipped {len(ours)} run folders of Karat.")
        if not others and not ours:
            log.problems.append(f"{path} has no file with suffix {', '.join(SUFFIXES)}.")
        yield from ((each, False) for each in others if each.name != mteb.META)


def _system(sample: Sample, asked: str | None) -> str:
    names = list(SYSTEMS) if asked is None else [asked]
    found = next((name for name in names if SYSTEMS[name].recognizes(sample)), None)
    if found is not None:
        return found
    expected = "; ".join(f"{name}: {SYSTEMS[name].LOOKS}" for name in names)
    raise DataError(
        f"unknown file format: {sample.path} has the {sample.shown}. Expected {expected}."
    )
