"""Ulysses SentEval: the frame of all numbers, or the aggregates, of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from karat.errors import DataError, KaratError
from karat.results.imports.files import Row, Sample, folder_name, rows
from karat.results.imports.found import Found, Told, number
from karat.results.layouts import FINAL
from karat.results.senteval import CURVES, KEYS, TESTS

LOOKS = f"a CSV file with the columns {', '.join((*KEYS, 'value'))}, or its aggregates as JSON"
OURS = {theirs: ours for ours, theirs in TESTS.items()}
MEAN = "avg_metric_test"


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these."""
    if seen.shape == "csv":
        return seen.has(*KEYS, "value") or seen.has("group", "metric", "avg", "nb99_low")
    content = seen.content
    if not isinstance(content, Mapping) or not content:
        return False
    return all(isinstance(part, Mapping) and MEAN in part for part in content.values())


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per folder: of the frame, else of the aggregates."""
    frames = {seen.path.parent for seen in samples if seen.has(*KEYS)}
    for seen in samples:
        if seen.shape == "csv" and not seen.has(*KEYS):
            told.note(f"{seen.path.name}: a summary of other files; left out.")
        elif seen.shape == "json" and seen.path.parent in frames:
            told.note(f"{seen.path.name}: the frame beside it tells more; left out.")
        else:
            model = told.model or folder_name([seen.path])
            found = Found("ulysses", model, "ulysses", [seen.path])
            try:
                (_add_frame if seen.shape == "csv" else _add_means)(found, seen, told)
            except KaratError as error:
                told.problems.append(str(error))
            else:
                yield found


def _add_frame(found: Found, seen: Sample, told: Told) -> None:
    table = list(rows(seen))
    parts: dict[str, int] = {}
    for row in table:
        task = row.text("task")
        parts[task] = max(parts.get(task, 0), row.whole("kfold_partition", 1))
    unknown = set()
    for row in table:
        task, metric = row.text("task"), row.text("metric")
        if metric not in (*OURS, *CURVES):
            unknown.add(metric)
            continue
        repeat = row.whole("kfold_repetition", 1) - 1
        fold = repeat * parts[task] + row.whole("kfold_partition", 1) - 1
        found.tasks.setdefault(task, _told(task))
        job = found.job(task, fold, repeat)
        epoch = _epoch(row)
        if metric in OURS and epoch == FINAL:
            found.put(job, OURS[metric], row.number("value"))
        else:
            step = {"epoch": epoch, "metric": metric, "value": row.number("value")}
            job.history.append(step)
    told.skipped(seen.path, unknown)


def _epoch(row: Row) -> int:
    if row.text("train_epoch") == str(FINAL):
        return FINAL
    return row.whole("train_epoch", 1)


def _add_means(found: Found, seen: Sample, told: Told) -> None:
    told.note(f"{seen.path.name}: means of all folds; each stands as one fold.")
    for task, part in seen.content.items():
        found.tasks[task] = _told(task)
        for theirs, ours in OURS.items():
            try:
                found.put(found.job(task), ours, number(part.get(f"avg_{theirs}")))
            except (TypeError, ValueError) as error:
                raise DataError(f"{seen.path}: avg_{theirs} of {task} is no number.") from error


def _told(task: str) -> dict[str, str]:
    kind = f"ulysses-{task[0]}" if task[:1] in ("F", "G", "T") else "ulysses"
    return {"dataset": task, "metric": OURS["metric_test"], "kind": kind}
