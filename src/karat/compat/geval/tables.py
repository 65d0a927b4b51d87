"""GEval's result files, made of a run's scores and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.geval.coverage import Coverage
from karat.compat.geval.gold import CLUSTERING, Trial
from karat.results.geval_names import METRICS, TOP_K
from karat.results.run import Run

START = ("task_name", "gold_standard_file", "coverage")
#: metrics of which less is better
LOWER = ("root_mean_squared_error",)


@dataclass(frozen=True)
class Outcome:
    """All trials on one gold standard that have scores, and where those are.

    ``declined`` are how many folds of a task there was nothing to learn from.
    """

    coverage: Coverage
    trials: Sequence[Trial]
    run: Run
    scores: pd.DataFrame
    declined: Mapping[str, int]
    legacy: bool = False

    def table(self) -> pd.DataFrame:
        """Return the rows of GEval's result file."""
        return _TABLES[self.coverage.gold.task](self)

    def file_name(self) -> str:
        """Return the name of GEval's result file; analogies share one."""
        task, name = self.coverage.gold.task, self.coverage.gold.name
        stem = task[0].lower() + task[1:]
        middle = "" if task == "SemanticAnalogies" else f"_{name}"
        return f"{stem}{middle}_results.csv"

    def start(self, share: float | None = None) -> dict[str, Any]:
        """Return the columns every row begins with."""
        gold = self.coverage.gold
        return dict(zip(START, (gold.task, gold.name, share or self.coverage.share), strict=True))

    def values(self, trial: Trial, metric: str) -> pd.Series:
        """Return a metric of a trial by repeat: the mean over the folds of each."""
        rows = self.scores[
            (self.scores["task"] == trial.task.name) & (self.scores["metric"] == metric)
        ]
        grouped = rows.groupby("repeat")["value"]
        # a repeat that was stopped in the middle has no mean
        whole = grouped.size() == self._folds(trial)
        return grouped.mean()[whole].dropna()

    def _folds(self, trial: Trial) -> int:
        """Return how many folds a repeat of a trial has, those that were declined left out."""
        (about,) = [t for t in self.run.about["tasks"] if t["name"] == trial.task.name]
        lost = self.declined.get(trial.task.name, 0)
        return (len(about["folds"]) - lost) // trial.setup.repeats

    def value(self, trial: Trial, metric: str) -> float:
        """Return a metric of a trial that has one fold, NaN where it has no value."""
        found = self.values(trial, metric)
        return float(found.iloc[0]) if len(found) else float("nan")

    def summary(self) -> list[dict[str, Any]]:
        """Return what runs are compared by: the mean of each metric over the repeats."""
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
    """Write GEval's result files and those of what is missing."""
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
                {
                    **outcome.start(),
                    "model_name": trial.setup.model,
                    "model_configuration": trial.setup.configuration,
                    column: value,
                }
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
        rows.append(
            {
                **outcome.start(),
                "model_name": trial.setup.model,
                "model_configuration": trial.setup.configuration,
                "num_clusters": len(np.unique(found.predictions)),
                **scores,
            }
        )
    return pd.DataFrame(rows)


def _documents(outcome: Outcome) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                **outcome.start(),
                "conf": trial.setup.configuration,
                "pearson_score": outcome.value(trial, "pearson"),
                "spearman_score": outcome.value(trial, "spearman"),
                "harmonic_mean": outcome.value(trial, "harmonic"),
            }
            for trial in outcome.trials
        ]
    )


def _related(outcome: Outcome) -> pd.DataFrame:
    """Return a row per main entity the file has: keyed by name, whoever else is missing."""
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
