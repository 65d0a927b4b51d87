"""Export in GEval's files: a table per gold standard, and the comparison of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError
from karat.predictions import Predictions
from karat.results.files import safe_name
from karat.results.gather import named_runs
from karat.results.geval_names import COMPARED, TOP_K, Trial, comparison_text, ranking, trial_of
from karat.results.run import Run


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
