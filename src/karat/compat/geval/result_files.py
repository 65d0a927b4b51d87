"""GEval's result files, written from the scores and predictions of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.geval.coverage import Coverage
from karat.compat.geval.gold import CLUSTERING, Trial
from karat.results import geval_names
from karat.results.geval_names import METRICS, TOP_K
from karat.results.run import Run

START = ("task_name", "gold_standard_file", "coverage")


@dataclass(frozen=True)
class Outcome:
    """The scored trials on one gold standard; ``declined`` counts the declined folds by task."""

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
        """Return the name of GEval's result file; all analogies share one."""
        return geval_names.Trial(self.coverage.gold.task, self.coverage.gold.name).file

    def start(self, trial: Trial | None = None) -> dict[str, Any]:
        """Return the leading columns of every row, with those of the model if one is given."""
        gold = self.coverage.gold
        row = dict(zip(START, (gold.task, gold.name, self.coverage.share), strict=True))
        if trial is not None:
            row["model_name"] = trial.setup.model
            row["model_configuration"] = trial.setup.configuration
        return row

    def values(self, trial: Trial, metric: str) -> pd.Series:
        """Return the mean of a metric over the folds of each repeat."""
        rows = self.scores[
            (self.scores["task"] == trial.task.name) & (self.scores["metric"] == metric)
        ]
        grouped = rows.groupby("repeat")["value"]
        # an interrupted repeat has no mean
        complete = grouped.size() == self._folds(trial)
        return grouped.mean()[complete].dropna()

    def _folds(self, trial: Trial) -> int:
        """Return the number of folds per repeat, without declined ones."""
        (about,) = [t for t in self.run.about["tasks"] if t["name"] == trial.task.name]
        declined = self.declined.get(trial.task.name, 0)
        return (len(about["folds"]) - declined) // trial.setup.repeats

    def value(self, trial: Trial, metric: str) -> float:
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
