"""Import of GEval's result files and of its comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from karat.errors import DataError, KaratError
from karat.results.geval_names import COMPARED, METRICS, TOP_K, Trial
from karat.results.imports.files import Row, Sample, folder_name, rows
from karat.results.imports.found import ImportLog, ModelResults

START = ("task_name", "gold_standard_file", "coverage")
LOOKS = f"a CSV file with the columns {', '.join(START)} and scores, or {', '.join(COMPARED)}"
RANKING = ("task_name", "gold_standard_file", "ranking", "absolute_total")
EXCHANGED = (
    "GEval's code swaps with_weights and without_weights of document similarity; Karat does not. "
    "The names in the files are not changed."
)


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    csv = sample.shape in ("csv", "blanks")
    return csv and (sample.has(*START) or sample.has(*RANKING))


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per id of a comparison, and one per folder of result files."""
    results: dict[Path, list[Sample]] = {}
    compared: dict[str, ModelResults] = {}
    for sample in samples:
        if sample.has(*COMPARED):
            try:
                _add_compared(compared, sample, log)
            except KaratError as error:
                log.problems.append(str(error))
        elif sample.has(*RANKING):
            log.note(f"{sample.path.name}: skipped, it has ranks and no scores.")
        else:
            results.setdefault(sample.path.resolve().parent, []).append(sample)
    for found in (*compared.values(), *_of_folders(results, log)):
        kinds = {task["kind"] for task in found.tasks.values()}
        if kinds & {"document-similarity", "DocumentSimilarity"}:
            log.note(EXCHANGED)
        yield found


def _add_compared(found: dict[str, ModelResults], sample: Sample, log: ImportLog) -> None:
    """Add the scores of a comparison; several files may have the same run."""
    lines = [(row, _trial(row), row.number("score_value")) for row in rows(sample)]
    unknown = set()
    for row, trial, value in lines:
        name = row.text("test_name")
        run = found.setdefault(name, ModelResults("geval", log.model or name, "geval", []))
        run.files = run.files if sample.path in run.files else [*run.files, sample.path]
        ours = {theirs: ours for ours, theirs in trial.metrics.items()}
        metric = ours.get(row.text("metric"))
        if metric is None:
            unknown.add(row.text("metric"))
        else:
            _put(run, trial, (0, row), {metric: value})
    if log.model and len(found) > 1:
        log.note(f"{sample.path.name}: {len(found)} runs are all renamed to {log.model}.")
    log.skipped(sample.path, unknown)


def _of_folders(results: Mapping[Path, Sequence[Sample]], log: ImportLog) -> Iterator[ModelResults]:
    for part in results.values():
        found = ModelResults("geval", log.model or folder_name([part[0].path]), "geval", [])
        for sample in part:
            try:
                _add_results(found, [(row, _trial(row)) for row in rows(sample)])
                found.files = [*found.files, sample.path]
            except KaratError as error:
                log.problems.append(str(error))
        if found.files:
            yield found


def _add_results(found: ModelResults, lines: Sequence[tuple[Row, Trial]]) -> None:
    """Add the rows of a file; the rows of one trial are its repeats or its main entities."""
    groups: dict[Trial, list[Row]] = {}
    for row, trial in lines:
        groups.setdefault(trial, []).append(row)
    for trial, part in groups.items():
        if trial.task == "EntityRelatedness":
            taus = [row.number("kendalltau_correlation") for row in part]
            known = [tau for tau in taus if tau is not None]
            mean = sum(known) / len(known) if known else None
            _put(found, trial, (0, part[0]), {"kendall_covered": mean})
            continue
        for repeat, row in enumerate(part):
            scores = {ours: row.number(theirs) for ours, theirs in trial.metrics.items()}
            _put(found, trial, (repeat, row), scores)


def _put(
    found: ModelResults, trial: Trial, place: tuple[int, Row], scores: dict[str, float | None]
) -> None:
    repeat, row = place
    first = next(iter(trial.metrics))
    facts = {"dataset": trial.dataset or trial.gold, "metric": first, "kind": _kind(trial)}
    found.tasks.setdefault(trial.name, facts)
    job = found.job(trial.name, repeat, repeat)
    coverage = row.number("coverage")
    if coverage is not None:
        job.facts["coverage"] = coverage
    for metric, value in scores.items():
        found.put(job, metric, value)


def _kind(trial: Trial) -> str:
    """Return the kind of the task in the suite ``geval``, or GEval's task name."""
    kinds = {
        "DocumentSimilarity": "document-similarity",
        "EntityRelatedness": "relatedness",
        "SemanticAnalogies": "analogy",
    }
    unknown = trial.name.startswith(f"{trial.task} ")
    return trial.task if unknown else kinds.get(trial.task, trial.task.lower())


def _trial(row: Row) -> Trial:
    task = row.text("task_name")
    if task not in METRICS:
        raise DataError(
            f'{row.path}, line {row.line}: unknown task "{task}"; expected one of '
            f"{', '.join(METRICS)}."
        )
    model = row.text("model_name") or row.text("model")
    configuration = row.text("model_configuration") or row.text("conf")
    if task == "SemanticAnalogies" and not configuration.startswith(TOP_K):
        configuration = f"{TOP_K}{row.whole('top_k_value', 1) if row.text('top_k_value') else 2}"
    return Trial(task, row.text("gold_standard_file"), model, configuration)
