"""GEval's result files: written from runs, imported as runs, and compared with earlier runs."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.files import safe_names
from karat.core.predictions import Predictions
from karat.core.writing import write_output
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.ext.compat.geval.gold import (
    ADDED,
    ALL,
    COMPARED,
    METRICS,
    NONE,
    RANKED,
    TOP_K,
    Coverage,
    GoldTrial,
    Parameters,
    Trial,
    comparison_text,
    ranking,
    trial_of,
)
from karat.metrics.rankings import kendall_p_value, kendall_tau
from karat.results.importing import ImportLog, ModelResults, Row, Sample, folder_name, rows
from karat.results.load import Runs, exported_runs
from karat.results.run import Run

START = ("task_name", "gold_standard_file", "coverage")
LOOKS = f"a CSV file with the columns {', '.join(START)} and scores, or {', '.join(COMPARED)}"
RANKING = ("task_name", "gold_standard_file", "ranking", "absolute_total")
EXCHANGED = (
    "GEval's code swaps with_weights and without_weights of document similarity; Karat does not. "
    "The names in the files are not changed."
)
#: part of the ids of legacy runs, which are compared with legacy runs only
LEGACY = "legacy"
#: seconds to wait for a lock
PATIENCE = 60.0


@dataclass(frozen=True)
class Repeat:
    """The mean scores over the folds of one repeat of a trial, and where its predictions are."""

    trial: Trial
    coverage: float | None
    scores: Mapping[str, float]
    run: Run
    task: str
    fold: int
    legacy: bool = False

    def start(self) -> dict[str, Any]:
        """Return the leading columns of every row."""
        values = (self.trial.task, self.trial.gold, self.coverage)
        return dict(zip(START, values, strict=True))

    def answers(self) -> Predictions | None:
        """Return the predictions, or None if the run has none."""
        try:
            return self.run.predictions(self.task, self.fold)
        except KaratError:
            return None

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the result file."""
        trial = self.trial
        scores = {theirs: self.scores.get(ours) for ours, theirs in trial.metrics.items()}
        if trial.task == "EntityRelatedness":
            return list(self._entity_rows())
        if trial.task == "SemanticAnalogies":
            return [{**self.start(), **self._analogy_columns(scores)}]
        if trial.task == "DocumentSimilarity":
            return [{**self.start(), "conf": trial.configuration, **scores}]
        row = {**self.start(), "model_name": trial.model}
        row["model_configuration"] = trial.configuration
        if trial.task == "Clustering":
            answers = self.answers()
            count = None if answers is None else len(np.unique(answers.predictions))
            row["num_clusters"] = count
            if self.legacy:
                del scores["fowlkes_mallows_score"]
        elif not self.scores:  # no complete repeat
            return []
        return [{**row, **scores}]

    def _entity_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per main entity with a vector."""
        answers = self.answers()
        if answers is None or answers.group is None:
            return
        covered = answers.covered(by_group=True)
        group = np.asarray(covered.group)
        for entity in dict.fromkeys(group.tolist()):
            part = group == entity
            ordered, gold = covered.predictions[part], covered.target[part]
            yield {
                **self.start(),
                "entity_name": entity,
                "kendalltau_correlation": float(np.nan_to_num(kendall_tau(ordered, gold))),
                "kendalltau_pvalue": kendall_p_value(ordered, gold),
            }

    def _analogy_columns(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        answers = self.answers()
        top_k = int(self.trial.configuration.removeprefix(TOP_K))
        row: dict[str, Any] = {"top_k_value": top_k, "right_answers": None, "tot_answers": None}
        if answers is not None and answers.rank is not None:
            row["right_answers"] = int((answers.rank <= top_k).sum())
            row["tot_answers"] = len(answers.covered())
        if self.legacy:
            return {**row, "accuracy": scores["accuracy"]}
        count = None if answers is None else len(answers)
        row |= {"accuracy": None, "all_questions": count, **scores}
        if answers is not None and answers.candidates is not None:
            row["candidates"] = int(np.max(answers.candidates))
        return row


@dataclass(frozen=True)
class GevalOutcome:
    """The scored trials on one gold standard."""

    coverage: Coverage
    trials: Sequence[GoldTrial]
    run: Run
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    legacy: bool = False

    def repeats(self) -> Iterator[Repeat]:
        """Yield the complete repeats of each trial, or one without scores."""
        for planned in self.trials:
            for group in _complete(self.records[planned.task.name]) or [{}]:
                scores = _mean_scores([view["scores"] for view in group.values()])
                source = (self.run, planned.task.name, next(iter(group), 0), self.legacy)
                yield Repeat(planned.trial, self.coverage.share, scores, *source)


def _complete(records: Sequence[Mapping[str, Any]]) -> list[dict[int, dict[str, Any]]]:
    """Return the repeats of a task in which every fold has a score or was declined."""
    groups = _by_repeat(records)
    needed = [record for record in records if record["status"] != "declined"]
    broken = {r["repeat"] for r in needed if r["fold"] not in groups.get(r["repeat"], {})}
    return [group for repeat, group in groups.items() if repeat not in broken]


def _by_repeat(records: Sequence[Mapping[str, Any]]) -> dict[int, dict[int, dict[str, Any]]]:
    """Return the scored clean views of a task by fold, for each repeat."""
    groups: dict[int, dict[int, dict[str, Any]]] = {}
    for record in records:
        for view in record["views"]:
            if View(view["corruption"], view["severity"]) == CLEAN and view["scores"]:
                groups.setdefault(record["repeat"], {})[record["fold"]] = view
    return groups


def _mean_scores(scores: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """Return the mean of each metric over the mappings that have it.

    >>> _mean_scores([{"acc": 0.5, "f1": None}, {"acc": 1.0}])
    {'acc': 0.75}
    """
    names = dict.fromkeys(name for view in scores for name in view)
    values = {n: [v for view in scores if (v := view.get(n)) is not None] for n in names}
    return {n: float(np.mean(numbers)) for n, numbers in values.items() if numbers}


def result_tables(repeats: Sequence[Repeat]) -> dict[str, pd.DataFrame]:
    """Return GEval's result tables by file name."""
    files: dict[str, list[dict[str, Any]]] = {}
    for repeat in repeats:
        files.setdefault(repeat.trial.file, []).extend(repeat.rows())
    return {name: pd.DataFrame(lines) for name, lines in files.items() if lines}


def compared_rows(repeats: Sequence[Repeat]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the comparison: the mean of each metric over the repeats, or NaN."""
    trials: dict[Trial, list[Repeat]] = {}
    for repeat in repeats:
        trials.setdefault(repeat.trial, []).append(repeat)
    for trial, group in trials.items():
        means = _mean_scores([repeat.scores for repeat in group])
        left_out = ADDED if group[0].legacy else ()
        metrics = {o: t for o, t in trial.metrics.items() if t not in left_out}
        for ours, theirs in metrics.items():
            model, configuration = _compared_names(group[0])
            yield {
                **group[0].start(),
                "model": model,
                "model_configuration": configuration,
                "metric": theirs,
                "score_value": means.get(ours, float("nan")),
            }


def _compared_names(repeat: Repeat) -> tuple[str, str]:
    """Return the model and the configuration as GEval's comparison has them."""
    trial = repeat.trial
    if trial.task == "DocumentSimilarity":
        return trial.configuration, NONE
    if trial.task == "SemanticAnalogies" and repeat.legacy:  # any k has the same name
        return NONE, NONE
    return trial.model or NONE, trial.configuration or NONE


def geval_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield GEval's result files (one folder per model if several) and the comparison."""
    repeats_of = {
        name: repeats for run, name, _ in exported_runs(runs) if (repeats := _repeats(run))
    }
    if not repeats_of:
        raise DataError(
            "the runs have no GEval task; the suites geval and nodes contain GEval tasks."
        )
    compared = (
        {"test_name": name, **row}
        for name, repeats in repeats_of.items()
        for row in compared_rows(repeats)
    )
    values = pd.DataFrame(compared, columns=list(COMPARED)).dropna(subset=["score_value"])
    for safe_name, (name, repeats) in zip(safe_names(repeats_of), repeats_of.items(), strict=True):
        folder = f"{safe_name}/" if len(repeats_of) > 1 else ""
        for file, table in result_tables(repeats).items():
            yield folder + file, table
        ranks = ranking(values, name).iloc[:, :-3]
        yield f"{folder}comparison_ranking.csv", comparison_text(ranks)
    yield "comparison_values.csv", comparison_text(values)
    yield "comparison.csv", comparison_text(values)


def _repeats(run: Run) -> list[Repeat]:
    repeats, records = [], run.records()
    for task in run.about["tasks"]:
        trial = trial_of(task["name"], str(task.get("dataset", "")), str(task.get("kind", "")))
        if trial is None:
            continue
        task_records = [record for record in records if record["task"] == task["name"]]
        for group in _by_repeat(task_records).values():
            views = group.values()
            shares = [view["coverage"] for view in views if view.get("coverage") is not None]
            coverage = float(np.mean(shares)) if shares else None
            scores = _mean_scores([view["scores"] for view in views])
            repeats.append(Repeat(trial, coverage, scores, run, task["name"], next(iter(group))))
    return repeats


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
    for model_results in (*compared.values(), *_of_folders(results, log)):
        kinds = {task["kind"] for task in model_results.tasks.values()}
        if kinds & {"document-similarity", "DocumentSimilarity"}:
            log.note(EXCHANGED)
        yield model_results


def _add_compared(runs: dict[str, ModelResults], sample: Sample, log: ImportLog) -> None:
    """Add the scores of a comparison; several files may have the same run."""
    lines = [(row, _trial(row), row.number("score_value")) for row in rows(sample)]
    unknown = set()
    for row, trial, value in lines:
        name = row.text("test_name")
        run = runs.setdefault(name, ModelResults("geval", log.model or name, "geval", []))
        run.files = run.files if sample.path in run.files else [*run.files, sample.path]
        ours = {theirs: ours for ours, theirs in trial.metrics.items()}
        metric = ours.get(row.text("metric"))
        if metric is None:
            unknown.add(row.text("metric"))
        else:
            _put(run, trial, (0, row), {metric: value})
    if log.model and len(runs) > 1:
        log.note(f"{sample.path.name}: {len(runs)} runs are all renamed to {log.model}.")
    log.skipped(sample.path, unknown)


def _of_folders(results: Mapping[Path, Sequence[Sample]], log: ImportLog) -> Iterator[ModelResults]:
    for part in results.values():
        model_results = ModelResults("geval", log.model or folder_name([part[0].path]), "geval", [])
        for sample in part:
            try:
                _add_results(model_results, [(row, _trial(row)) for row in rows(sample)])
                model_results.files = [*model_results.files, sample.path]
            except KaratError as error:
                log.problems.append(str(error))
        if model_results.files:
            yield model_results


def _add_results(results: ModelResults, lines: Sequence[tuple[Row, Trial]]) -> None:
    """Add the rows of a file; the rows of one trial are its repeats or its main entities."""
    groups: dict[Trial, list[Row]] = {}
    for row, trial in lines:
        groups.setdefault(trial, []).append(row)
    for trial, part in groups.items():
        if trial.task == "EntityRelatedness":
            taus = [row.number("kendalltau_correlation") for row in part]
            measured = [tau for tau in taus if tau is not None]
            mean = sum(measured) / len(measured) if measured else None
            _put(results, trial, (0, part[0]), {"kendall_covered": mean})
            continue
        for repeat, row in enumerate(part):
            scores = {ours: row.number(theirs) for ours, theirs in trial.metrics.items()}
            _put(results, trial, (repeat, row), scores)


def _put(
    results: ModelResults,
    trial: Trial,
    origin: tuple[int, Row],
    scores: dict[str, float | None],
) -> None:
    repeat, row = origin
    first = next(iter(trial.metrics))
    # the kind of the task in the suite geval, or GEval's task name
    kinds = {
        "DocumentSimilarity": "document-similarity",
        "EntityRelatedness": "relatedness",
        "SemanticAnalogies": "analogy",
    }
    unknown = trial.name.startswith(f"{trial.task} ")
    kind = trial.task if unknown else kinds.get(trial.task, trial.task.lower())
    facts = {"dataset": trial.dataset or trial.gold, "metric": first, "kind": kind}
    results.tasks.setdefault(trial.name, facts)
    job = results.job(trial.name, repeat, repeat)
    coverage = row.number("coverage")
    if coverage is not None:
        job.facts["coverage"] = coverage
    for metric, value in scores.items():
        results.put(job, metric, value)


def _trial(row: Row) -> Trial:
    task = row.text("task_name")
    if task not in METRICS:
        raise DataError(
            f'{row.path}, line {row.line}: unknown task "{task}"; expected one of '
            f"{', '.join(METRICS)}."
        )
    names = (
        row.text("model_name") or row.text("model"),
        row.text("model_configuration") or row.text("conf"),
    )
    model, configuration = ("" if name == NONE else name for name in names)
    if task == "DocumentSimilarity" and not configuration:  # the comparison has it as the model
        model, configuration = "", model
    if task == "Clustering":
        configuration = _true_metric(model, configuration)
    if task == "SemanticAnalogies" and not configuration.startswith(TOP_K):
        configuration = f"{TOP_K}{row.whole('top_k_value', 1) if row.text('top_k_value') else 2}"
    return Trial(task, row.text("gold_standard_file"), model, configuration)


def _true_metric(model: str, configuration: str) -> str:
    """Return the configuration of a clustering with the metric that it has used.

    GEval has a spelling mistake for KMeans, and names the metric of the others for Ward.

    >>> _true_metric("KMeans", "metric=enclidean, n_clusters=2")
    'metric=euclidean, n_clusters=2'
    """
    if model == "KMeans" or model.startswith("Ward"):
        return re.sub("metric=[^,]*", "metric=euclidean", configuration)
    return configuration


# -- earlier runs: their scores, and the rank of the new run ----------------------------------


class Store:
    """The scores of all runs of a results folder, in a file with GEval's columns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "comparison.csv"

    def read(self) -> pd.DataFrame:
        """Return all stored scores."""
        if not self.path.is_file():
            return pd.DataFrame(columns=list(COMPARED))
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter=" "))
        if not lines or tuple(lines[0]) != COMPARED or any(len(r) != len(COMPARED) for r in lines):
            raise DataError(
                f"{self.path} is damaged: expected the columns {', '.join(COMPARED)}, separated by "
                f"blanks. Move the file away to start a new one."
            )
        table = pd.DataFrame(lines[1:], columns=list(COMPARED), dtype=object)
        numbers = ["coverage", "score_value"]
        return table.assign(**{n: pd.to_numeric(table[n], errors="coerce") for n in numbers})

    def check(self, wanted: Sequence[str]) -> None:
        """Raise if a run id does not exist."""
        stored = list(dict.fromkeys(self.read()["test_name"]))
        unknown = [run for run in wanted if run not in stored] if ALL not in wanted else []
        if unknown:
            available = ", ".join(stored) or "none"
            raise DefinitionError(
                *(
                    f'compare_with: unknown run "{run}".{did_you_mean(run, stored)} '
                    f"Runs in {self.path}: {available}."
                    for run in unknown
                )
            )

    def add(self, stem: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Store the scores of a new run under a new id, and return the id."""
        with self._locked():
            earlier = self.read()
            name = f"{stem}_{next_number(stem, earlier['test_name'])}"
            new = pd.DataFrame([{"test_name": name, **row} for row in rows], columns=list(COMPARED))
            write_output(
                self.path, comparison_text(pd.concat([earlier, new]) if len(earlier) else new)
            )
        return name

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_suffix(".lock")
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                if time.monotonic() > deadline:
                    raise DataError(
                        f"{lock} is held by another run; delete it if no other run is active."
                    ) from None
                time.sleep(0.05)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def stem_of(params: Parameters, size: int) -> str:
    """Return the prefix of a run id: file, size, metric and k."""
    metric: Any = params.similarity_metric
    named = metric if isinstance(metric, str) else getattr(metric, "__name__", "own")
    path = Path(params.vector_filename)
    packed = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
    stem = f"{packed.with_suffix('')}_{size}_{named}_{params.top_k}"
    return f"{stem}_{LEGACY}" if params.protocol == LEGACY else stem


def next_number(stem: str, names: Sequence[str]) -> int:
    """Return the next free number of a stem.

    >>> next_number("cities_200", ["cities_200_9", "cities_200_10", "cities_2000_11"])
    11
    """
    numbers = [re.fullmatch(re.escape(stem) + "_([0-9]+)", name) for name in names]
    return max((int(match[1]) for match in numbers if match), default=0) + 1


def is_legacy(name: str) -> bool:
    """Return whether a run used the legacy protocol.

    >>> is_legacy("v_200_cosine_2_legacy_3"), is_legacy("v_200_cosine_2_3")
    (True, False)
    """
    return re.search(f"_{LEGACY}_[0-9]+$", name) is not None


def compared(table: pd.DataFrame, run: str, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the scores of a run and of the runs it is compared with."""
    chosen = table if ALL in wanted else table[table["test_name"].isin([run, *wanted])]
    chosen = chosen[chosen["test_name"].map(is_legacy) == is_legacy(run)]
    keys = table.loc[table["test_name"] == run, list(RANKED)].drop_duplicates()
    return chosen.merge(keys, on=list(RANKED))[list(COMPARED)]
