"""Learning curves: the metrics of heads and networks after each epoch, over folds."""

from __future__ import annotations

from typing import Any

import pandas as pd

from karat.results.gather import named_scores
from karat.results.layouts import FINAL

KEYS = ["task", "model", "metric", "epoch"]


def learning_curves(runs: Any) -> pd.DataFrame:
    """Return mean, std and count over folds by task, model, metric and epoch.

    Folds whose training stopped early have no later epochs.
    """
    table, _, _ = named_scores(runs)
    table = table[(table["epoch"] != FINAL) & (table["corruption"] == "")]
    found = table.groupby(KEYS, sort=False)["value"].agg(["mean", "std", "count"])
    return found.reset_index().sort_values(KEYS, kind="stable", ignore_index=True)
