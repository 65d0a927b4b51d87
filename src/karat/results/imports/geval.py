"""GEval: the result files of one run, or the comparison of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from karat.errors import DataError, KaratError
from karat.results.geval_names import COMPARED, METRICS, TOP_K, Trial
from karat.results.imports.files import Row, Sample, folder_name, rows
from karat.results.imports.found import Found, Told

START = ("task_name", "gold_standard_file", "coverage")
LOOKS = f"a CSV file with the columns {', '.join(START)} and scores, or {', '.join(COMPARED)}"
RANKING = ("task_name", "gold_standard_file", "ranking", "absolute_total")
EXCHANGED = (
    "GEval's own code exchanges with_weights and without_weights of document similarity; Karat "
    "does not: the names are kept as they are."
)


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these."""
    csv = seen.shape in ("csv", "blanks")
    return csv and (seen.has(*START) or seen.has(*RANKING))


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per id of a comparison, and one per folder of result files."""
    results: dict[Path, list[Sample]] = {}
    compared: dict[str, Found] = {}
    for seen in samples:
        if seen.has(*COMPARED):
            try:
                _add_compared(compared, seen, told)
            except KaratError as error:
                told.problems.append(str(error))
        elif seen.has(*RANKING):
            told.note(f"{seen.path.name}: ranks, no scores; left out.")
        else:
            results.setdefault(seen.path.resolve().parent, []).append(seen)
    for found in (*compared.values(), *_of_folders(results, told)):
        kinds = {task["kind"] for task in found.tasks.values()}
        if kinds & {"document-similarity", "DocumentSimilarity"}:
            told.note(EXCHANGED)
        yield found


def _add_compared(found: dict[str, Found], seen: Sample, told: Told) -> None:
    """Add the scores of a comparison; another file may tell of the same run."""
    lines = [(row, _trial(row), row.number("score_value")) for row in rows(seen)]
    unknown = set()
    for row, trial, value in lines:
        name = row.text("test_name")
        run = found.setdefault(name, Found("geval", told.model or name, "geval", []))
        run.files = run.files if seen.path in run.files else [*run.files, seen.path]
        ours = {theirs: ours for ours, theirs in trial.metrics.items()}
        metric = ours.get(row.text("metric"))
        if metric is None:
            unknown.add(row.text("metric"))
        else:
            _put(run, trial, (0, row), {metric: value})
    if told.model and len(found) > 1:
        told.note(f"{seen.path.name}: {len(found)} runs, all of them called {told.model} now.")
    told.skipped(seen.path, unknown)


def _of_folders(results: Mapping[Path, Sequence[Sample]], told: Told) -> Iterator[Found]:
    for part in results.values():
        found = Found("geval", told.model or folder_name([part[0].path]), "geval", [])
        for seen in part:
            try:
                _add_results(found, [(row, _trial(row)) for row in rows(seen)])
                found.files = [*found.files, seen.path]
            except KaratError as error:
                told.problems.append(str(error))
        if found.files:
            yield found


def _add_results(found: Found, lines: Sequence[tuple[Row, Trial]]) -> None:
    """Add the rows of a file; those of one trial are its repeats, or its main entities."""
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
    found: Found, trial: Trial, place: tuple[int, Row], scores: dict[str, float | None]
) -> None:
    repeat, row = place
    first = next(iter(trial.metrics))
    told = {"dataset": trial.dataset or trial.gold, "metric": first, "kind": _kind(trial)}
    found.tasks.setdefault(trial.name, told)
    job = found.job(trial.name, repeat, repeat)
    coverage = row.number("coverage")
    if coverage is not None:
        job.facts["coverage"] = coverage
    for metric, value in scores.items():
        found.put(job, metric, value)


def _kind(trial: Trial) -> str:
    """Return the kind that the task has in the suite ``geval``."""
    kinds = {
        "DocumentSimilarity": "document-similarity",
        "EntityRelatedness": "relatedness",
        "SemanticAnalogies": "analogy",
    }
    # a trial that is none of ours keeps its own names, kind and all
    whole = trial.name.startswith(f"{trial.task} ")
    return trial.task if whole else kinds.get(trial.task, trial.task.lower())


def _trial(row: Row) -> Trial:
    task = row.text("task_name")
    if task not in METRICS:
        raise DataError(
            f'{row.path}, line {row.line}: there is no task "{task}"; GEval\'s are '
            f"{', '.join(METRICS)}."
        )
    model = row.text("model_name") or row.text("model")
    configuration = row.text("model_configuration") or row.text("conf")
    if task == "SemanticAnalogies" and not configuration.startswith(TOP_K):
        configuration = f"{TOP_K}{row.whole('top_k_value', 1) if row.text('top_k_value') else 2}"
    return Trial(task, row.text("gold_standard_file"), model, configuration)
