"""The leaderboard of saved scores: TabEB's documented averages, and mean ranks."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.tabeb.scores import CONFIG, ENCODER, read_scores, score_file
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.ranks import rank_models


class Scores:
    """The scores of one task with the most recently saved settings."""

    def __init__(self, task: str, folder: str | Path) -> None:
        self.task = task
        table = read_scores(_existing(score_file(folder, task)))
        config = table[CONFIG].iloc[-1] if len(table) else ""
        latest = table[table[CONFIG] == config].reset_index(drop=True)
        if len(latest) < len(table):
            warnings.warn(
                f"scores_{task}.parquet has scores with several settings; only the most recently "
                f"saved are shown: {config or 'unknown'}",
                stacklevel=4,
            )
        self.settings: dict[str, Any] = json.loads(config) if config else {}
        self.average = f"{task}_average"
        columns = [n for n in table.columns if n not in ("encoder", self.average, CONFIG, ENCODER)]
        self.datasets = list(self.settings.get("datasets", columns))
        self.frame = latest[["encoder", *self.datasets, self.average]]

    def upwards(self, encoders: list[str]) -> list[np.ndarray]:
        """Return one column per dataset with any score, higher is better; NaN if missing."""
        up = self.settings.get("higher_is_better")
        if up is None:
            warnings.warn(
                f"{self.task}: cannot rank by {self.settings.get('metric', 'score')}: direction "
                f"unknown. Set higher_is_better in the task's class.",
                stacklevel=4,
            )
            return []
        cells = self.frame.set_index("encoder").reindex(encoders)
        scored = [name for name in self.datasets if cells[name].notna().any()]
        return [(1 if up else -1) * cells[[name]].to_numpy(dtype=float) for name in scored]


def get_leaderboard(tasks: Any, result_dir: str | Path = "") -> pd.DataFrame:
    """Return the encoders of some tasks, best first.

    One task gives its table of scores, several give ``<task>_average`` of each. ``<task>_rank`` is
    the mean rank of an encoder over the task's datasets (1 is best, in the direction of the
    metric) and ``mean_rank`` the mean over all datasets of all tasks. A failure ranks last.
    Encoders that lack some task are listed below those that have all.
    """
    found = [Scores(task, result_dir) for task in _named(tasks)]
    encoders = list(dict.fromkeys(name for one in found for name in one.frame["encoder"]))
    board = pd.DataFrame({"encoder": encoders})
    for one in found:
        shown = one.frame if len(found) == 1 else one.frame[["encoder", one.average]]
        board = board.merge(shown, on="encoder", how="left")
    evaluated = np.array([np.isin(encoders, one.frame["encoder"].tolist()) for one in found])
    values = [one.upwards(encoders) for one in found]
    for one, columns, takes in zip(found, values, evaluated, strict=True):
        board[f"{one.task}_rank"] = _mean_rank(columns, [takes] * len(columns), len(encoders))
    if len(found) > 1:
        takes_all = [row for row, columns in zip(evaluated, values, strict=True) for _ in columns]
        board["mean_rank"] = _mean_rank(sum(values, []), takes_all, len(encoders))
    order = np.lexsort((board.iloc[:, -1].fillna(np.inf), (~evaluated).sum(axis=0)))
    board = board.iloc[order].reset_index(drop=True)
    board.attrs["configs"] = {one.task: one.settings for one in found}
    return board


def _mean_rank(values: list[np.ndarray], takes: list[np.ndarray], encoders: int) -> np.ndarray:
    if not values:
        return np.full(encoders, np.nan)
    return rank_models(values, np.column_stack(takes)).mean


def _named(tasks: Any) -> list[str]:
    several = isinstance(tasks, Iterable) and not isinstance(tasks, str)
    listed = list(tasks) if several else [tasks]
    names = [task if isinstance(task, str) else getattr(task, "task", task) for task in listed]
    if not names:
        raise DefinitionError(
            'no task given; pass task names, for example get_leaderboard(["regression"], folder).'
        )
    for name in names:
        if not isinstance(name, str):
            raise DefinitionError(f"a task must be a name or a task object, got {name!r}.")
    return list(dict.fromkeys(names))


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    saved = sorted(other.stem.removeprefix("scores_") for other in path.parent.glob("scores_*"))
    name = path.stem.removeprefix("scores_")
    raise DataError(
        f"file not found: {path}; evaluate the task with save_dir first."
        f"{did_you_mean(name, saved)} Saved tasks: {', '.join(saved) or 'none'}."
    )
