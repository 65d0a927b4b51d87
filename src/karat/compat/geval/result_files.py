"""GEval's result files, written from the scores and predictions of a run.

Export in GEval's files: a table per gold standard, and the comparison of all runs.
Import of GEval's result files and of its comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.geval import gold as geval_names
from karat.compat.geval.gold import (
    CLUSTERING,
    COMPARED,
    METRICS,
    TOP_K,
    Coverage,
    GoldTrial,
    Trial,
    comparison_text,
    ranking,
    trial_of,
)
from karat.core.files import safe_name
from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError
from karat.results.importing import ImportLog, ModelResults, Row, Sample, folder_name, rows
from karat.results.load import named_runs
from karat.results.run import Run

START = ("task_name", "gold_standard_file", "coverage")


@dataclass(frozen=True)
class Outcome:
    """The scored trials on one gold standard; ``declined`` counts the declined folds by task."""

    coverage: Coverage
    trials: Sequence[GoldTrial]
    run: Run
    scores: pd.DataFrame
    declined: Mapping[str, int]
    legacy: bool = False

    def table(self) -> pd.DataFrame:
        """Return the rows of GEval's result file."""
        return _TABLES[self.coverage.gold.task](self)

    def file_name(self) -> str:
        """Return the name of GEval's result file; all analogies share one."""
        return geval_names.Trial(self.coverage.gold.task, self.coverage.gold.name).file

    def start(self, trial: GoldTrial | None = None) -> dict[str, Any]:
        """Return the leading columns of every row, with those of the model if one is given."""
        gold = self.coverage.gold
        row = dict(zip(START, (gold.task, gold.name, self.coverage.share), strict=True))
        if trial is not None:
            row["model_name"] = trial.setup.model
            row["model_configuration"] = trial.setup.configuration
        return row

    def values(self, trial: GoldTrial, metric: str) -> pd.Series:
        """Return the mean of a metric over the folds of each repeat."""
        rows = self.scores[
            (self.scores["task"] == trial.task.name) & (self.scores["metric"] == metric)
        ]
        grouped = rows.groupby("repeat")["value"]
        # an interrupted repeat has no mean
        complete = grouped.size() == self._folds(trial)
        return grouped.mean()[complete].dropna()

    def _folds(self, trial: GoldTrial) -> int:
        """Return the number of folds per repeat, without declined ones."""
        (about,) = [t for t in self.run.about["tasks"] if t["name"] == trial.task.name]
        declined = self.declined.get(trial.task.name, 0)
        return (len(about["folds"]) - declined) // trial.setup.repeats

    def value(self, trial: GoldTrial, metric: str) -> float:
        """Return a metric of a trial with one fold, NaN if there is none."""
        found = self.values(trial, metric)
        return float(found.iloc[0]) if len(found) else float("nan")

    def summary(self) -> list[dict[str, Any]]:
        """Return the rows of the comparison: the mean of each metric over the repeats."""
        rows = []
        for trial in self.trials:
            k = trial.setup.configuration.removeprefix(TOP_K)
            for metric, name in METRICS[self.coverage.gold.task].items():
                metric = metric.format(k=k)
                found = self.values(trial, metric)
                rows.append(
                    {
                        **self.start(),
                        "model": trial.setup.model,
                        "model_configuration": trial.setup.configuration,
                        "metric": name,
                        "score_value": float(found.mean()) if len(found) else float("nan"),
                    }
                )
        return rows


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Write GEval's result files and its files of missing entities."""
    files: dict[str, list[pd.DataFrame]] = {}
    written = []
    for outcome in outcomes:
        ignored = outcome.coverage.write(folder)
        written += [ignored] if ignored else []
        table = outcome.table()
        if len(table):
            files.setdefault(outcome.file_name(), []).append(table)
    for name, tables in files.items():
        pd.concat(tables, ignore_index=True).to_csv(folder / name, index=False)
        written.append(folder / name)
    return written


def _repeated(metric: str, column: str) -> Callable[[Outcome], pd.DataFrame]:
    def table(outcome: Outcome) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {**outcome.start(trial), column: value}
                for trial in outcome.trials
                for value in outcome.values(trial, metric)
            ]
        )

    return table


def _clusters(outcome: Outcome) -> pd.DataFrame:
    rows = []
    for trial in outcome.trials:
        found = outcome.run.predictions(trial.task.name)
        scores = {name: outcome.value(trial, metric) for metric, name in CLUSTERING.items()}
        if outcome.legacy:
            del scores["fowlkes_mallows_score"]
        clusters = len(np.unique(found.predictions))
        rows.append({**outcome.start(trial), "num_clusters": clusters, **scores})
    return pd.DataFrame(rows)


def _documents(outcome: Outcome) -> pd.DataFrame:
    rows = []
    for trial in outcome.trials:
        scores = METRICS["DocumentSimilarity"].items()
        values = {name: outcome.value(trial, metric) for metric, name in scores}
        rows.append({**outcome.start(), "conf": trial.setup.configuration, **values})
    return pd.DataFrame(rows)


def _related(outcome: Outcome) -> pd.DataFrame:
    """Return a row per main entity with a vector."""
    from scipy.stats import kendalltau

    rows = []
    for trial in outcome.trials:
        found = outcome.run.predictions(trial.task.name)
        main = outcome.coverage.data.mentions(outcome.coverage.data.fields[0]).rows
        for entity in dict.fromkeys(main[outcome.coverage.items[main]].tolist()):
            part = main == entity
            tau = kendalltau(found.predictions[part], found.truth[part])
            rows.append(
                {
                    **outcome.start(),
                    "entity_name": str(outcome.coverage.data.items.index[entity]),
                    "kendalltau_correlation": float(np.nan_to_num(tau.statistic)),
                    "kendalltau_pvalue": float(tau.pvalue),
                }
            )
    return pd.DataFrame(rows)


def _analogies(outcome: Outcome) -> pd.DataFrame:
    rows = []
    for trial in outcome.trials:
        found = outcome.run.predictions(trial.task.name)
        top_k = int(trial.setup.configuration.removeprefix(TOP_K))
        right = int((np.asarray(found.rank) <= top_k).sum())
        covered = int(outcome.coverage.questions.sum())
        row = {
            **outcome.start(),
            "top_k_value": top_k,
            "right_answers": right,
            "tot_answers": covered,
            "accuracy": right / covered,
        }
        if not outcome.legacy:
            row |= {
                "all_questions": len(found),
                "accuracy_over_all": right / len(found),
                "mean_reciprocal_rank": outcome.value(trial, "mrr_covered"),
                "mean_reciprocal_rank_over_all": outcome.value(trial, "mrr"),
                "candidates": int(np.max(np.asarray(found.candidates))),
            }
        rows.append(row)
    return pd.DataFrame(rows)


_TABLES: dict[str, Callable[[Outcome], pd.DataFrame]] = {
    "Classification": _repeated("acc", "accuracy"),
    "Regression": _repeated("rmse", "root_mean_squared_error"),
    "Clustering": _clusters,
    "DocumentSimilarity": _documents,
    "EntityRelatedness": _related,
    "SemanticAnalogies": _analogies,
}


@dataclass(frozen=True)
class Repeat:
    """The mean scores over the folds of one repeat of a trial, and where its predictions are."""

    trial: Trial
    number: int
    coverage: float | None
    scores: Mapping[str, float]
    run: Run
    task: str
    fold: int

    def start(self) -> dict[str, Any]:
        """Return the leading columns of every row."""
        names = (self.trial.task, self.trial.gold, self.coverage)
        return dict(zip(("task_name", "gold_standard_file", "coverage"), names, strict=True))

    def answers(self) -> Predictions | None:
        """Return the predictions, or None if the run has none."""
        try:
            return self.run.predictions(self.task, self.fold)
        except KaratError:
            return None


def geval_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield GEval's result files (one folder per model if several) and the comparison."""
    found = {name: list(_repeats(run)) for run, name, _ in named_runs(runs)}
    found = {name: repeats for name, repeats in found.items() if repeats}
    if not found:
        raise DataError(
            "the runs have no GEval task; the suites geval and nodes contain GEval tasks."
        )
    rows = [row for name, repeats in found.items() for row in _compared_rows(name, repeats)]
    values = pd.DataFrame(rows, columns=list(COMPARED))
    for name, repeats in found.items():
        folder = f"{safe_name(name)}/" if len(found) > 1 else ""
        files: dict[str, list[dict[str, Any]]] = {}
        for repeat in repeats:
            files.setdefault(repeat.trial.file, []).extend(_file_rows(repeat))
        for file, lines in files.items():
            yield folder + file, pd.DataFrame(lines)
        yield f"{folder}comparison_ranking.csv", ranking(values, name).iloc[:, :-3]
    yield "comparison_values.csv", values
    yield "comparison.csv", comparison_text(values)


def _repeats(run: Run) -> Iterator[Repeat]:
    """Yield the scores of a run on GEval's tasks, folds of one repeat combined."""
    records = run.records()
    for task in run.about["tasks"]:
        trial = trial_of(task["name"], str(task.get("dataset", "")), str(task.get("kind", "")))
        if trial is None:
            continue
        groups: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        for record in records:
            if record["task"] == task["name"]:
                for view in record["views"]:
                    if View(view["corruption"], view["severity"]) == CLEAN and view["scores"]:
                        groups.setdefault(record["repeat"], []).append((record["fold"], view))
        for number, folds in groups.items():
            views = [view for _, view in folds]
            shares = [view["coverage"] for view in views if view.get("coverage") is not None]
            coverage = float(np.mean(shares)) if shares else None
            scores = _mean_scores([view["scores"] for view in views])
            yield Repeat(trial, number, coverage, scores, run, task["name"], folds[0][0])


def _mean_scores(scores: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in scores for name in each)
    values = {n: [each[n] for each in scores if each.get(n) is not None] for n in names}
    return {n: float(np.mean(found)) for n, found in values.items() if found}  # type: ignore[arg-type]


def _file_rows(repeat: Repeat) -> list[dict[str, Any]]:
    trial = repeat.trial
    scores = {theirs: repeat.scores.get(ours) for ours, theirs in trial.metrics.items()}
    if trial.task == "EntityRelatedness":
        return list(_entity_rows(repeat))
    if trial.task == "SemanticAnalogies":
        return [{**repeat.start(), **_analogy_counts(repeat), **scores}]
    if trial.task == "DocumentSimilarity":
        return [{**repeat.start(), "conf": trial.configuration, **scores}]
    named = {"model_name": trial.model, "model_configuration": trial.configuration}
    if trial.task == "Clustering":
        answers = repeat.answers()
        count = None if answers is None else len(np.unique(answers.predictions))
        named["num_clusters"] = count  # type: ignore[assignment]
    return [{**repeat.start(), **named, **scores}]


def _entity_rows(repeat: Repeat) -> Iterator[dict[str, Any]]:
    """Yield a row per main entity with at least one vector."""
    from scipy.stats import kendalltau

    answers = repeat.answers()
    if answers is None or answers.group is None:
        return
    covered = answers.covered(by_group=True)
    group = np.asarray(covered.group)
    for entity in dict.fromkeys(group.tolist()):
        part = group == entity
        tau = kendalltau(covered.predictions[part], covered.truth[part])
        yield {
            **repeat.start(),
            "entity_name": entity,
            "kendalltau_correlation": float(np.nan_to_num(tau.statistic)),
            "kendalltau_pvalue": float(tau.pvalue),
        }


def _analogy_counts(repeat: Repeat) -> dict[str, Any]:
    top_k = int(repeat.trial.configuration.removeprefix(TOP_K))
    answers = repeat.answers()
    counts: dict[str, Any] = {"top_k_value": top_k, "right_answers": None, "tot_answers": None}
    if answers is not None and answers.rank is not None:
        right = int((answers.rank <= top_k).sum())
        counts |= {"right_answers": right, "tot_answers": len(answers.covered())}
    return counts


def _compared_rows(name: str, repeats: Sequence[Repeat]) -> Iterator[dict[str, Any]]:
    """Yield the mean of each metric over the repeats."""
    trials: dict[Trial, list[Repeat]] = {}
    for repeat in repeats:
        trials.setdefault(repeat.trial, []).append(repeat)
    for trial, part in trials.items():
        means = _mean_scores([repeat.scores for repeat in part])
        for ours, theirs in trial.metrics.items():
            if ours in means:
                yield {
                    "test_name": name,
                    **part[0].start(),
                    "model": trial.model,
                    "model_configuration": trial.configuration,
                    "metric": theirs,
                    "score_value": means[ours],
                }


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
