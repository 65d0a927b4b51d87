"""Import of Ulysses SentEval: the frame of all scores, or the aggregates, of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from karat.errors import DataError, KaratError
from karat.results.imports.files import Row, Sample, folder_name, rows
from karat.results.imports.found import ImportLog, ModelResults, number
from karat.results.layouts import FINAL
from karat.results.senteval import CURVES, KEYS, TESTS

LOOKS = f"a CSV file with the columns {', '.join((*KEYS, 'value'))}, or its aggregates as JSON"
OURS = {theirs: ours for ours, theirs in TESTS.items()}
MEAN = "avg_metric_test"


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    if sample.shape == "csv":
        return sample.has(*KEYS, "value") or sample.has("group", "metric", "avg", "nb99_low")
    content = sample.content
    if not isinstance(content, Mapping) or not content:
        return False
    return all(isinstance(part, Mapping) and MEAN in part for part in content.values())


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per folder, from the frame if there is one, else from the aggregates."""
    frames = {sample.path.parent for sample in samples if sample.has(*KEYS)}
    for sample in samples:
        if sample.shape == "csv" and not sample.has(*KEYS):
            log.note(f"{sample.path.name}: skipped, it is a summary of other files.")
        elif sample.shape == "json" and sample.path.parent in frames:
            log.note(f"{sample.path.name}: skipped, the frame in the same folder has more detail.")
        else:
            model = log.model or folder_name([sample.path])
            found = ModelResults("ulysses", model, "ulysses", [sample.path])
            try:
                (_add_frame if sample.shape == "csv" else _add_means)(found, sample, log)
            except KaratError as error:
                log.problems.append(str(error))
            else:
                yield found


def _add_frame(found: ModelResults, sample: Sample, log: ImportLog) -> None:
    table = list(rows(sample))
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
        found.tasks.setdefault(task, _task_facts(task))
        job = found.job(task, fold, repeat)
        epoch = _epoch(row)
        if metric in OURS and epoch == FINAL:
            found.put(job, OURS[metric], row.number("value"))
        else:
            step = {"epoch": epoch, "metric": metric, "value": row.number("value")}
            job.history.append(step)
    log.skipped(sample.path, unknown)


def _epoch(row: Row) -> int:
    if row.text("train_epoch") == str(FINAL):
        return FINAL
    return row.whole("train_epoch", 1)


def _add_means(found: ModelResults, sample: Sample, log: ImportLog) -> None:
    log.note(f"{sample.path.name}: means over all folds, imported as one fold.")
    for task, part in sample.content.items():
        found.tasks[task] = _task_facts(task)
        for theirs, ours in OURS.items():
            try:
                found.put(found.job(task), ours, number(part.get(f"avg_{theirs}")))
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"{sample.path}: avg_{theirs} of {task} must be a number."
                ) from error


def _task_facts(task: str) -> dict[str, str]:
    kind = f"ulysses-{task[0]}" if task[:1] in ("F", "G", "T") else "ulysses"
    return {"dataset": task, "metric": OURS["metric_test"], "kind": kind}
