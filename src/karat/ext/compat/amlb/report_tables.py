"""The tables of the AutoML Benchmark's reports: summaries by task and leaderboards of frameworks.

The references are named as in its publications. A failed or missing fold has the score of the
random forest in this fold, unless all folds of the framework on the task are lost; the number of
such folds is in parentheses. A normalized score is 0 for the constant predictor and 1 for the tuned
random forest in the same fold; shown is the mean over folds. Tables whose references were not run
are left out, and without the random forest no fold is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from karat.errors import DataError

#: the frameworks whose scores are 0 and 1
ZERO, ONE = "constantpredictor", "tunedrandomforest"
#: the framework whose score replaces a lost one
SUBSTITUTE = "randomforest"
#: other names of a framework
OTHER_NAMES = {"constantpredictor_enc": ZERO}
#: frameworks that have no place in the leaderboard of tasks
REFERENCES = (ZERO, SUBSTITUTE)
#: types of tasks
TYPES = ("binary", "multiclass", "regression", "timeseries")
JOB = ["type", "task", "fold", "framework"]


def report_tables(jobs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and content of each table, as text.

    ``jobs`` has a row per job, with the columns type, task, fold, framework, score and
    higher_is_better.
    """
    jobs = _by_lower_names(jobs)
    scores = jobs.set_index(JOB)["score"].unstack()
    lower = ~jobs.groupby("task")["higher_is_better"].first().astype(bool)
    filled, counts = _imputed(scores)
    means = _means(filled)
    signs = np.where(means.index.get_level_values("task").map(lower), -1.0, 1.0)
    yield "result_summary.csv", _texts(means.mul(signs, axis=0), counts)
    yield "score_summary.csv", _texts(means, counts)
    if {ZERO, ONE} <= set(scores):
        yield "norm_score_summary.csv", _texts(_means(_normalized(filled)), counts)
    ranked = means.drop(columns=[name for name in REFERENCES if name in means])
    yield "tasks_leaderboard.csv", _texts(_ranks(ranked), counts[ranked.columns])
    yield "folds_leaderboard.csv", _texts(_ranks(scores))


def _by_lower_names(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with names in lower case, one row for each fold of a task and framework."""
    frameworks = jobs["framework"].str.lower().replace(OTHER_NAMES)
    jobs = jobs.assign(framework=frameworks, task=jobs["task"].str.lower())
    # a framework that failed on a task does not know how many classes it has
    task_types = (
        jobs["type"].where(jobs["type"].isin(TYPES)).groupby(jobs["task"]).transform("first")
    )
    jobs = jobs.assign(type=task_types.fillna(jobs["type"]))
    twice = jobs.duplicated(JOB)
    if twice.any():
        row = jobs[twice].iloc[0]
        raise DataError(
            f"there are several results of {row['framework']} on {row['task']}, fold "
            f"{row['fold']}: give runs of one constraint."
        )
    return jobs


def _imputed(scores: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores with the substitute's in lost folds, and how many each task has of them."""
    tasks = scores.groupby(level=["type", "task"])
    some = tasks.transform(lambda column: column.notna().any()).astype(bool)
    if SUBSTITUTE not in scores:
        some = some & False
    missing = scores.isna() & some
    filled = scores.mask(missing, scores.get(SUBSTITUTE), axis=0)
    return filled, missing.groupby(level=["type", "task"]).sum()


def _normalized(filled: pd.DataFrame) -> pd.DataFrame:
    """Return scores as shares of the way from the constant predictor to the tuned forest."""
    way = filled[ONE] - filled[ZERO]
    with np.errstate(divide="ignore", invalid="ignore"):
        return filled.sub(filled[ZERO], axis=0).div(way, axis=0)


def _means(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby(level=["type", "task"]).mean()


def _ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each score in its row: 1 is the best, equal scores share a rank."""
    return table.rank(axis=1, method="dense", ascending=False)


def _texts(values: pd.DataFrame, counts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return numbers with six digits, and the number of imputed folds in parentheses."""

    def cell(value: float, count: object) -> str:
        text = "" if np.isnan(value) else f"{value:.6g}"
        return f"{text} ({count})" if count else text

    filled_counts = np.zeros(values.shape, int) if counts is None else counts.to_numpy()
    rows = [
        list(map(cell, row, row_counts))
        for row, row_counts in zip(values.to_numpy(), filled_counts, strict=True)
    ]
    table = pd.DataFrame(rows, index=values.index, columns=list(values.columns), dtype=object)
    return table.reset_index()
