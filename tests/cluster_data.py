"""A table of users with ten rows each, and two models that are right on some of the users.

Model a is right where b is wrong on all rows of 8 users of 24, and b on those of 3 others: 80
against 30 rows, which are not by chance if rows are independent, and 8 against 3 users, which are.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import karat
from karat.results.run import Run

USERS, ROWS = 24, 10
A_ONLY, B_ONLY = range(8), range(8, 11)


class Says:
    """Encode a row by what a model says: the value of a column."""

    def __init__(self, column: str = "a") -> None:
        self.column = column

    def fit(self, X: pd.DataFrame, y: object = None) -> Says:
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return X[[self.column]].to_numpy(dtype=float)


def users_table() -> pd.DataFrame:
    """Return the rows; those of four more users are for training."""
    user = np.repeat(np.arange(USERS + 4), ROWS)
    truth = np.tile([1.0, -1.0], len(user) // 2)
    wrong = {"a": np.isin(user, B_ONLY), "b": np.isin(user, A_ONLY)}
    says = {name: np.where(missed, -truth, truth) for name, missed in wrong.items()}
    return pd.DataFrame(
        {
            "user": [f"u{number}" for number in user],
            "same": "x",
            **says,
            "y": np.where(truth > 0, "yes", "no"),
            "part": np.where(user < USERS, "test", "train"),
        }
    )


def run_users(output: object, **table: object) -> list[Run]:
    """Run both models on one hold-out; ``table`` are further options of the table."""
    data = karat.Dataset.from_table(users_table(), "y", name="users", part="part", **table)
    task = karat.Task("users", data, metrics=["acc", "auc"])
    return karat.evaluate({"a": Says("a"), "b": Says("b")}, task, output=output)
