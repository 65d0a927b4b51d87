"""TACO's whole benchmark on Adult: five models, seven corruptions, their pairs, and all plots.

TACO is not on PyPI. ``--source taco=FOLDER`` is a checkout of its repository, the folder that
contains ``tabular_c``. Both sides read the same file and write the metrics and the plots.

Case "settings of each": the two commands as they are, each with its own random split, so the
clean scores agree only within the noise of the split.

| | TACO | Karat |
|---|---|---|
| train rows | 20,000 | 26,049; the support vector machine 5,000 |
| columns | one for each category | 69: rare categories are merged |
| logistic regression | saga, up to 5,000 steps | lbfgs, up to 1,000 steps |
| support vector machine | Nystroem, 300 components, and SGD | exact, calibrated |
| random forest | 100 trees | 200 trees |
| XGBoost | 200 trees | 400 trees |
| network | 20 steps on up to 16,384 rows | early stopping, batches of 256 rows |
| test rows of pairs | 4,000 of 6,512 | 6,512 |

Case "equal settings": Karat's ``run_benchmark`` gets the left column as ``models``, and the rows of
TACO's split. Two things remain different. Karat tests pairs on all 6,512 rows. And logistic
regression is solved by newton-cholesky instead of saga: the objective (L2 penalty, C=1) is strictly
convex, so both have the same solution.
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

#: the estimator of TACO's pipeline that has no probabilities, with decisions from 0 to 1 as such
APPROXIMATED_SVM = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline


class ApproximatedSvm(ClassifierMixin, BaseEstimator):
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        features = Nystroem(gamma=0.2, n_components=300, random_state=self.random_state)
        machine = SGDClassifier(alpha=1e-4, early_stopping=True, random_state=self.random_state)
        self.pipeline_ = make_pipeline(features, machine).fit(X, y)
        return self

    def predict_proba(self, X):
        decisions = self.pipeline_.decision_function(X)
        share = 0.5 + decisions / (2 + 2 * np.abs(decisions))
        return np.column_stack([1 - share, share])
"""

#: Karat with the models and train rows of TACO's later code, on its split
EQUAL = """
import json, sys
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.utils import resample
from karat.ext.compat.taco import run_benchmark
from karat.models.predictors import TablePredictor
sys.path.insert(0, {data!r})
table = pd.read_csv({data!r} + "/adult.csv")
y = (table.pop("income") == ">50K").astype(int)
split = train_test_split(table, y, test_size=0.2, random_state=42, stratify=y)
train, test, y_train, y_test = split
train, y_train = resample(
    train, y_train, n_samples=20_000, random_state=42, stratify=y_train, replace=False
)
estimators = dict(
    logreg=("sklearn.linear_model:LogisticRegression", dict(solver="newton-cholesky")),
    svm=("approximated_svm:ApproximatedSvm", dict()),
    rf=("karat.models.predictors:OrderedForestClassifier", dict(n_estimators=100)),
    xgb=("xgboost:XGBClassifier", dict(n_estimators=200, tree_method="hist", n_jobs=1)),
    ffn=("karat.models.predictors:NetClassifier", dict(batch=16_384, epochs=1, held_out=0.0)),
)
same = dict(min_frequency=None, missing_category="most_frequent", likeliest=True)
models = {{
    name: TablePredictor(path, options=given, **same) for name, (path, given) in estimators.items()
}}
run_benchmark("adult", train, test, y_train, y_test, "results", models=models)
""" + COMMAND[COMMAND.index("import pandas") :].replace('"rf", "xgb"', '"svm", "rf", "xgb"')

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
    (folder / "data" / "approximated_svm.py").write_text(APPROXIMATED_SVM)
    place = str((folder / "data").resolve())
    original = FIND_SOURCE + COMMAND.format(data=place, module="tabular_c.cli")
    ours = COMMAND.format(data=place, module="karat.ext.compat.taco")
    name = "five models on Adult through 43 views, with plots"
    theirs = ["{python}", "-c", original]
    equal = EQUAL.format(data=place)
    return [
        Case(f"{name}, settings of each", theirs, ["{python}", "-c", ours], 2.5, tolerance=0.02),
        Case(f"{name}, equal settings", theirs, ["{python}", "-c", equal], 2.5, tolerance=0.02),
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
