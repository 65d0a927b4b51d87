"""TACO: ``metrics_<dataset>_<task>.csv``, one row per model, corruption, severity and metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from karat.corruptions.view import CLEAN, View
from karat.errors import KaratError
from karat.results.exports import CONFUSION, METRICS, TACO
from karat.results.imports.files import Row, Sample, rows
from karat.results.imports.found import Found, Told, direction

LOOKS = f"a CSV file with the columns {', '.join(TACO)}"
OURS = {theirs: ours for ours, theirs in METRICS.items()}


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these, or counts that belong to one."""
    return seen.shape == "csv" and (seen.has(*TACO) or seen.has(*CONFUSION))


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per model: all its data sets together."""
    found: dict[str, Found] = {}
    files: dict[str, list[Path]] = {}
    for seen in samples:
        if not seen.has(*TACO):
            told.note(f"{seen.path.name}: counts of a confusion, no scores; left out.")
            continue
        try:
            lines = [(row, row.number("value"), _view(row)) for row in rows(seen)]
        except KaratError as error:
            told.problems.append(str(error))
            continue
        for line in lines:
            model = told.model or line[0].text("model")
            _add(found.setdefault(model, Found("taco", model, "taco", [])), line, told)
            files.setdefault(model, []).append(seen.path)
    for model, run in found.items():
        run.files = list(dict.fromkeys(files[model]))
        yield run


def _add(found: Found, line: tuple[Row, float | None, View], told: Told) -> None:
    row, value, view = line
    metric = OURS.get(row.text("metric"), row.text("metric"))
    if direction(metric) is None:
        told.skipped(row.path, [metric])
        return
    task = row.text("dataset")
    about = {"dataset": task, "metric": metric, "kind": row.text("task")}
    if found.tasks.setdefault(task, about)["kind"] != about["kind"]:
        task = f"{task} ({about['kind']})"  # one table, asked in two ways
        found.tasks.setdefault(task, about)
    # what is told are means over folds and draws: one fold, one draw
    found.put(found.job(task), metric, value, view)


def _view(row: Row) -> View:
    """Return the view of ``clean`` at 0.0, ``a`` at 0.2, or ``a+b`` at ``0.2+0.1``."""
    corruption, severity = row.text("corruption"), row.text("severity")
    if corruption in ("", "clean"):
        return CLEAN
    names, parts = corruption.split("+"), severity.split("+")
    try:
        doses = [float(part) for part in parts]
    except ValueError:
        raise row.wrong("severity", "is no number") from None
    if len(doses) == 1 or len(set(doses)) == 1:
        return View(corruption, doses[0])
    if len(doses) != len(names):
        raise row.wrong("severity", f"does not tell one dose for each of {corruption}")
    return View("+".join(f"{n}@{d:g}" for n, d in zip(names, doses, strict=True)), 1.0)
