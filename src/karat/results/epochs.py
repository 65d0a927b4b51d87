"""Learning curves: what heads and nets reported after each epoch, over folds."""

from __future__ import annotations

from typing import Any

import pandas as pd

from karat.results.gather import named_scores
from karat.results.layouts import FINAL

KEYS = ["task", "model", "metric", "epoch"]


def learning_curves(runs: Any) -> pd.DataFrame:
    """Return mean and spread by task, model, metric and epoch, over the folds that came so far.

    ``count`` says how many those are: training that stopped early has no later epochs.
    """
    table, _, _ = named_scores(runs)
    table = table[(table["epoch"] != FINAL) & (table["corruption"] == "")]
    found = table.groupby(KEYS, sort=False)["value"].agg(["mean", "std", "count"])
    return found.reset_index().sort_values(KEYS, kind="stable", ignore_index=True)
