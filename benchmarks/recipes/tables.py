"""A CSV file of one's own: ``karat run`` against a script with pandas and scikit-learn.

29 columns of numbers and words, logistic regression and a dummy, five folds. The script imputes the
median, scales and encodes as Karat's models do, and computes the ROC AUC; it writes no files and
tests nothing. The folds are drawn apart, so that the means differ a little. Karat uses one worker.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from recipe import Case, Recipe

SCRIPT = """
import json, sys
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
table = pd.read_csv(sys.argv[1])
label = table.pop("label")
models = {"dummy": DummyClassifier(), "logistic-regression": LogisticRegression(max_iter=1000)}
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
scores = {}
for name, model in models.items():
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    pipeline = make_pipeline(columns, model)
    scores[name] = cross_val_score(pipeline, table, label, cv=folds, scoring="roc_auc").mean()
print("scores=" + json.dumps(scores))
"""
KARAT = """
import csv, glob, json, sys
from karat.cli.app import main
models = ("dummy", "logistic-regression")
sys.argv = ["karat", "run", sys.argv[1], "--target", "label", "-m", models[0], "-m", models[1]]
sys.argv += ["--folds", "5", "--workers", "1", "-o", "runs"]
try:
    main()
except SystemExit as ended:
    if ended.code:
        raise
results = {name: [] for name in models}
for path in glob.glob("runs/*/scores/results.csv"):
    for row in csv.DictReader(open(path)):
        results[row["framework"]].append(float(row["auc"]))
assert all(len(values) == 5 for values in results.values()), results
print("scores=" + json.dumps({name: sum(values) / 5 for name, values in results.items()}))
"""


def write_table(path: Path, rows: int) -> None:
    """Write a table of 16 columns of fractions, 6 of whole numbers, 6 of words, and the label."""
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {
        f"fraction {i}": rng.normal(size=rows).round(4) for i in range(16)
    }
    columns |= {f"whole {i}": rng.integers(1000, size=rows) for i in range(6)}
    for i in range(6):
        levels = np.array([f"level {level}" for level in range(5 + 3 * i)], dtype=object)
        columns[f"word {i}"] = rng.choice(levels, rows)
    logit = columns["fraction 0"] + columns["fraction 1"] / 2 - (columns["word 0"] == "level 1")
    label = np.where(logit + rng.normal(size=rows) > 0, "yes", "no")
    pd.DataFrame(columns).assign(label=label).to_csv(path, index=False)


def prepare(folder: Path) -> list[Case]:
    """Write the tables; return the cases."""
    cases = []
    for rows in (100_000, 1_000_000):
        path = folder / f"table-{rows}.csv"
        if not path.exists():
            write_table(path, rows)
        cases.append(
            Case(
                f"own CSV, {rows:,} rows × 29 columns, two models, 5 folds",
                ["{python}", "-c", SCRIPT, str(path)],
                [sys.executable, "-c", KARAT, str(path)],
                0.95,
                tolerance=0.002,
                quick=rows == 100_000,
            )
        )
    return cases


RECIPE = Recipe(
    title="scikit-learn script",
    requirements=("scikit-learn==1.9.1", "pandas==3.1.1", "pyarrow==26.0.1"),
    prepare=prepare,
    quick=True,
)
