"""TACO's whole benchmark on Adult: five models, seven corruptions, their pairs, and all plots.

TACO is not on PyPI. ``--source taco=FOLDER`` is a checkout of its repository, the folder that
contains ``tabular_c``. Both sides read the same file and hold out 20 % of its rows, stratified,
each with its own generator, so the clean scores agree only within the noise of the split.

The settings differ in Karat's disfavor: TACO's later code fits 100 trees in its forest, 200 in
XGBoost, on at most 20,000 rows, approximates the support vector machine, and tests pairs on 4,000
rows. Karat has the settings of TACO's first code, 200 and 400 trees on 26,048 rows and a calibrated
support vector machine, and tests everything on all 6,513 test rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from recipe import Case, Recipe

#: runs a module's command line on a copy of the data, and prints clean scores that are comparable
COMMAND = """
import json, runpy, shutil, sys
shutil.copytree({data!r}, "data")
sys.argv = ["", "--only", "adult", "--data_dir", "data", "--results_dir", "results"]
try:
    runpy.run_module({module!r}, run_name="__main__")
except SystemExit as end:
    if end.code:
        raise
import pandas as pd
rows = pd.read_csv("results/metrics_adult_classification.csv", dtype={{"severity": str}})
rows = rows[rows["metric"] == "AUC"]
assert len(rows) == 215 and rows["value"].notna().all(), rows
clean = rows[rows["corruption"] == "clean"].set_index("model")["value"]
print("scores=" + json.dumps({{name: clean[name] for name in ("logreg", "rf", "xgb")}}))
"""

#: lets the processes that the original starts find its package
FIND_SOURCE = """
import os, sys
os.environ["PYTHONPATH"] = "{source}"
sys.path.insert(0, "{source}")
"""


def prepare(folder: Path) -> list[Case]:
    """Write Adult as TACO expects it."""
    from karat.config.catalog import Catalog

    data = Catalog().dataset("taco_adult")()
    (folder / "data").mkdir(exist_ok=True)
    income = np.where(data.target == data.classes[1], ">50K", "<=50K")
    table = data.frame().assign(income=income)
    table.to_csv(folder / "data" / "adult.csv", index=False)
    place = str((folder / "data").resolve())
    original = FIND_SOURCE + COMMAND.format(data=place, module="tabular_c.cli")
    ours = COMMAND.format(data=place, module="karat.compat.taco")
    return [
        Case(
            "five models on Adult through 43 views, with plots",
            ["{python}", "-c", original],
            ["{python}", "-c", ours],
            goal=2.5,
            tolerance=0.02,
        )
    ]


RECIPE = Recipe(
    title="TACO",
    requirements=(
        "numpy==2.4.6",
        "pandas==3.1.1",
        "scikit-learn==1.9.1",
        "torch==2.13.0",
        "xgboost-cpu==3.2.0",
        "joblib==1.6.0",
        "matplotlib==3.11.2",
        "pyarrow==26.0.1",
    ),
    prepare=prepare,
    source="github.com/rehanraza786/taco-benchmark at commit 4f58e3a",
    extras=("xgb", "net"),
)
