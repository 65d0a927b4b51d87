"""Import of TACO's ``metrics_<dataset>_<task>.csv``: a row per model, view and metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from karat.corruptions.view import CLEAN, View
from karat.errors import KaratError
from karat.results.exports import CONFUSION, METRICS, TACO
from karat.results.imports.files import Row, Sample, rows
from karat.results.imports.found import ImportLog, ModelResults, direction

LOOKS = f"a CSV file with the columns {', '.join(TACO)}"
OURS = {theirs: ours for ours, theirs in METRICS.items()}


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these, or a confusion matrix."""
    return sample.shape == "csv" and (sample.has(*TACO) or sample.has(*CONFUSION))


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per model with all its datasets."""
    found: dict[str, ModelResults] = {}
    files: dict[str, list[Path]] = {}
    for sample in samples:
        if not sample.has(*TACO):
            log.note(f"{sample.path.name}: skipped, it has counts and no scores.")
            continue
        try:
            lines = [(row, row.number("value"), _view(row)) for row in rows(sample)]
        except KaratError as error:
            log.problems.append(str(error))
            continue
        for line in lines:
            model = log.model or line[0].text("model")
            _add(found.setdefault(model, ModelResults("taco", model, "taco", [])), line, log)
            files.setdefault(model, []).append(sample.path)
    for model, run in found.items():
        run.files = list(dict.fromkeys(files[model]))
        yield run


def _add(found: ModelResults, line: tuple[Row, float | None, View], log: ImportLog) -> None:
    row, value, view = line
    metric = OURS.get(row.text("metric"), row.text("metric"))
    if direction(metric) is None:
        log.skipped(row.path, [metric])
        return
    task = row.text("dataset")
    about = {"dataset": task, "metric": metric, "kind": row.text("task")}
    if found.tasks.setdefault(task, about)["kind"] != about["kind"]:
        task = f"{task} ({about['kind']})"  # one dataset with two tasks
        found.tasks.setdefault(task, about)
    # the values are means over folds and draws, imported as one fold and one draw
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
        raise row.wrong("severity", "a number") from None
    if len(doses) == 1 or len(set(doses)) == 1:
        return View(corruption, doses[0])
    if len(doses) != len(names):
        raise row.wrong("severity", f"one number for each of {corruption}")
    return View("+".join(f"{n}@{d:g}" for n, d in zip(names, doses, strict=True)), 1.0)
