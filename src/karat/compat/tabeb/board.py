"""The leaderboard of saved scores: TabEB's averages as documented, and ranks that compare."""

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
    """The scores of one task that belong together: those of the setting saved last."""

    def __init__(self, task: str, folder: str | Path) -> None:
        self.task = task
        table = read_scores(_existing(score_file(folder, task)))
        config = table[CONFIG].iloc[-1] if len(table) else ""
        kept = table[table[CONFIG] == config].reset_index(drop=True)
        if len(kept) < len(table):
            warnings.warn(
                f"scores_{task}.parquet holds scores of several settings; shown are those saved "
                f"last: {config or 'unknown'}",
                stacklevel=4,
            )
        self.settings: dict[str, Any] = json.loads(config) if config else {}
        self.average = f"{task}_average"
        told = [n for n in table.columns if n not in ("encoder", self.average, CONFIG, ENCODER)]
        self.datasets = list(self.settings.get("datasets", told))
        self.frame = kept[["encoder", *self.datasets, self.average]]

    def upwards(self, encoders: list[str]) -> list[np.ndarray]:
        """Return one column per data set, higher is better; NaN where an encoder has none.

        A data set on which nobody has a score is left out.
        """
        up = self.settings.get("higher_is_better")
        if up is None:
            warnings.warn(
                f"{self.task}: whether a higher {self.settings.get('metric', 'score')} is better "
                f"is not known, so it ranks nobody; set higher_is_better in the task's class.",
                stacklevel=4,
            )
            return []
        cells = self.frame.set_index("encoder").reindex(encoders)
        scored = [name for name in self.datasets if cells[name].notna().any()]
        return [(1 if up else -1) * cells[[name]].to_numpy(dtype=float) for name in scored]


def get_leaderboard(tasks: Any, result_dir: str | Path = "") -> pd.DataFrame:
    """Return the encoders of some tasks, best first.

    One task gives its table of scores, several give ``<task>_average`` of each. ``<task>_rank`` is
    the mean of an encoder's ranks over the task's data sets (1 is best, each in its metric's
    direction) and ``mean_rank`` that over all data sets of all tasks. A failure ranks last. An
    encoder that was not evaluated in some task stands below those that were.
    """
    found = [Scores(task, result_dir) for task in _named(tasks)]
    encoders = list(dict.fromkeys(name for one in found for name in one.frame["encoder"]))
    board = pd.DataFrame({"encoder": encoders})
    for one in found:
        shown = one.frame if len(found) == 1 else one.frame[["encoder", one.average]]
        board = board.merge(shown, on="encoder", how="left")
    there = np.array([np.isin(encoders, one.frame["encoder"].tolist()) for one in found])
    values = [one.upwards(encoders) for one in found]
    for one, columns, takes in zip(found, values, there, strict=True):
        board[f"{one.task}_rank"] = _mean_rank(columns, [takes] * len(columns), len(encoders))
    if len(found) > 1:
        takes_all = [takes for takes, columns in zip(there, values, strict=True) for _ in columns]
        board["mean_rank"] = _mean_rank(sum(values, []), takes_all, len(encoders))
    # the last column decides, among those that took every task
    order = np.lexsort((board.iloc[:, -1].fillna(np.inf), (~there).sum(axis=0)))
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
            'no task was given; name some, as in get_leaderboard(["regression"], result_dir).'
        )
    for name in names:
        if not isinstance(name, str):
            raise DefinitionError(f"a task is a name or a task object, not {name!r}.")
    return list(dict.fromkeys(names))


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    saved = sorted(other.stem.removeprefix("scores_") for other in path.parent.glob("scores_*"))
    name = path.stem.removeprefix("scores_")
    raise DataError(
        f"there is no file {path}; evaluate the task with save_dir first."
        f"{did_you_mean(name, saved)} Saved there: {', '.join(saved) or 'nothing'}."
    )
