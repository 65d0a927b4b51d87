"""Small races: tasks with a leaked answer, and predictors that copy it with some skill."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.core.dataset import Dataset
from karat.core.task import Task

#: classes in a module of their own, which workers get by value
MODELS = '''
import zlib
import numpy as np

class Guess:
    """Copies the answer in this share of the rows, and guesses wrong in the others."""
    def __init__(self, skill=0.5, fails="", refuses=()):
        self.skill, self.fails, self.refuses = skill, fails, refuses
    def declines(self, kind):
        return f"no {kind}" if kind in self.refuses else ""
    def fit(self, X, y):
        if self.fails and str(X["name"].iloc[0]).startswith(self.fails):
            raise ValueError("this model fails here")
        return self
    def predict(self, X):
        seed = zlib.crc32(repr((self.skill, X["name"].iloc[0], list(X.index))).encode())
        right = np.random.default_rng(seed).random(len(X)) < self.skill
        answer = X["answer"].astype(str).to_numpy(dtype=object)
        return np.where(right, answer, np.where(answer == "yes", "no", "yes"))
'''


@pytest.fixture(scope="session")
def guess(tmp_path_factory):
    """Return the class of the predictors."""
    folder = tmp_path_factory.mktemp("guessing")
    (folder / "models_of_races.py").write_text(MODELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.delitem(sys.modules, "models_of_races", raising=False)
        yield importlib.import_module("models_of_races").Guess


def table_of(place: int) -> pd.DataFrame:
    """Return a table of 60 rows whose column ``answer`` is the target."""
    target = np.where(np.random.default_rng(place).random(60) < 0.5, "yes", "no")
    return pd.DataFrame({"name": f"n{place}", "answer": target, "y": target})


def make_tasks(number: int, folds: int = 2) -> list[Task]:
    """Return tasks on tables of their own."""
    return [
        Task(
            f"task {place}",
            Dataset.from_table(table_of(place), "y", name=f"data {place}"),
            metrics=["acc"],
            split={"use": "kfold", "folds": folds},
        )
        for place in range(number)
    ]


def write_suite(folder: Path, number: int) -> Path:
    """Write tables and a YAML file with the suite ``many``; return the file."""
    datasets, tasks = [], []
    for place in range(number):
        table_of(place).to_csv(folder / f"d{place}.csv", index=False)
        datasets.append(f"  d{place}: {{path: d{place}.csv, target: y, kind: classification}}")
        tasks.append(
            f"  t{place}: {{extends: classification, dataset: d{place}, metrics: [acc], "
            f"split: {{folds: 2}}}}"
        )
    names = ", ".join(f"t{place}" for place in range(number))
    lines = ["datasets:", *datasets, "tasks:", *tasks, "suites:", f"  many: {{tasks: [{names}]}}"]
    path = folder / "many.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path
