"""Five predictors on Adult through 43 views, against a plain loop over models and views.

The plain loop is typical scikit-learn code: a pipeline per model, fitted once, that preprocesses
and predicts every corrupted table; the models share the tables. Both use the same rows, seeds and
hyperparameters and predict probabilities, and their scores must agree.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

import karat
from karat.config.catalog import Catalog
from karat.core import registry
from karat.core.dataset import Dataset, sample_rows
from karat.execution.solvers import PredictorSolver
from karat.execution.splits import split
from karat.execution.workers import one_thread

SEED, ROWS, TURNS = 42, 32_561, 2
METRICS = ["auc", "acc", "precision", "recall"]
MODELS = {
    "logistic-regression": "",
    "svm": "",
    "random-forest": "",
    "xgboost": "xgboost",
    "mlp": "torch",
}
NAMES = (
    "missingness_mcar",
    "missingness_mnar",
    "scaling_error",
    "categorical_remap",
    "noise_gaussian",
    "noise_uniform",
    "rare_class_dilution",
)
SPLIT = {"use": "holdout", "test": 0.2}

Scores = dict[tuple[str, str, float, str], float]


def measure(rows: int = ROWS) -> Iterator[tuple[str, float, float, str, str]]:
    whole = Catalog().dataset("adult")()
    data = whole if rows >= len(whole) else whole.sample(rows, np.random.default_rng(SEED))
    chosen = {name: (0.1, 0.2, 0.4) for name in NAMES}
    chosen |= {f"{a}+{b}": (0.2,) for a, b in combinations(NAMES, 2)}
    models = [name for name, needs in MODELS.items() if not needs or find_spec(needs)]
    for needs in filter(None, map(MODELS.get, models)):
        __import__(needs)  # imports are not measured
    with one_thread():  # in turns, so that noise affects both
        turns = [(_ours(data, models, chosen), _plain(data, models, chosen)) for _ in range(TURNS)]
    (ours, our_cost), (plain, plain_cost) = (
        min(side, key=lambda turn: turn[1]["whole"]) for side in zip(*turns, strict=True)
    )
    assert ours.keys() == plain.keys(), "the cells differ"
    assert np.isfinite([*ours.values(), *plain.values()]).all(), "a score is missing"
    worst = max(abs(ours[cell] - plain[cell]) for cell in plain)
    clean = max(abs(ours[cell] - plain[cell]) for cell in plain if not cell[1])
    assert clean < 1e-9 and worst < 1e-3, (clean, worst)
    views = len({cell[1:3] for cell in plain})
    print(f"  {', '.join(models)}; {len(data):,} rows, {views} views; the scores differ by at most")
    print(f"  {clean:.0e} (clean) and {worst:.0e} (all views)")
    for what in our_cost:
        print(f"  {what:<8} ours {our_cost[what]:7.1f} s   plain {plain_cost[what]:7.1f} s   CPU")
    for what in ("views", "whole"):
        share = our_cost[what] / plain_cost[what]
        named = f"{len(models)} models, {views} views of Adult, {what}, CPU"
        yield named, share, 1 / 2.5, "×", "a plain loop"


# -- our side -------------------------------------------------------------------------------


def _ours(
    data: Dataset, models: list[str], chosen: dict[str, tuple[float, ...]]
) -> tuple[Scores, dict[str, float]]:
    task = karat.Task("adult", data, split=SPLIT, metrics=METRICS, corruptions=chosen)
    fitting, fit = 0.0, PredictorSolver.fit

    def timed(self: PredictorSolver, train: Dataset) -> None:
        nonlocal fitting
        start = time.process_time()
        fit(self, train)
        fitting += time.process_time() - start

    with tempfile.TemporaryDirectory() as folder:
        os.environ["KARAT_CACHE"] = folder
        PredictorSolver.fit = timed  # type: ignore[method-assign]
        start = time.process_time()
        try:
            runs = karat.evaluate(models, task, output=folder, seed=SEED)
        finally:
            PredictorSolver.fit = fit  # type: ignore[method-assign]
        cost = time.process_time() - start
        table = pd.concat([run.scores() for run in runs])
    table = table[table["epoch"] == -1]
    keys = table[["model", "corruption", "severity", "metric"]].itertuples(index=False)
    scores = dict(zip(map(tuple, keys), table["value"], strict=True))
    return scores, {"fitting": fitting, "views": cost - fitting, "whole": cost}


# -- the plain loop -------------------------------------------------------------------------


def _plain(
    data: Dataset, models: list[str], chosen: dict[str, tuple[float, ...]]
) -> tuple[Scores, dict[str, float]]:
    (fold,) = split(data, SPLIT, SEED)
    train, test = data.take(fold.train), data.take(fold.test)
    positive = data.classes[1]
    start = time.process_time()
    fitted = {name: _fitted(name, train.frame(), train.target) for name in models}
    fitting = time.process_time() - start
    scores: Scores = {}
    for corruption, severity in [
        ("", 0.0),
        *((c, s) for c, every in chosen.items() for s in every),
    ]:
        X, y = test.frame().reset_index(drop=True), pd.Series(test.target)
        for part in filter(None, corruption.split("+")):
            rng = np.random.default_rng([SEED, 0, zlib.crc32(part.encode())])
            X, y = registry.corruptions.get(part)(X, y, severity, rng)
            X, y = X.reset_index(drop=True), y.reset_index(drop=True)
        for name, pipeline in fitted.items():
            for metric, value in _scored(pipeline, X, y == positive).items():
                scores[name, corruption, severity, metric] = value
    cost = time.process_time() - start
    return scores, {"fitting": fitting, "views": cost - fitting, "whole": cost}


def _fitted(name: str, X: pd.DataFrame, y: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    codes = np.unique(y, return_inverse=True)[1]
    if name != "svm":
        return make_pipeline(_preprocessing(X), _estimator(name)).fit(X, codes)
    # preprocessing is fitted on all rows, the machines on at most as many as ours
    cap = Catalog().model("svm").prototype.max_train_rows
    rows = sample_rows(len(y), cap, np.random.default_rng(SEED), y) if cap < len(y) else slice(None)
    pipeline = make_pipeline(_preprocessing(X), _estimator(name))
    pipeline[-1].fit(pipeline[:-1].fit_transform(X)[rows], codes[rows])
    return pipeline


def _preprocessing(X: pd.DataFrame) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = X.select_dtypes("number").columns
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=0.005, sparse_output=False
    )
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list(numbers)),
        (
            make_pipeline(SimpleImputer(strategy="constant", fill_value=""), one_hot),
            [column for column in X.columns if column not in set(numbers)],
        ),
    )


def _estimator(name: str) -> Any:
    if name == "svm":
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        # scikit-learn's replacement for SVC(probability=True), which the document uses
        return CalibratedClassifierCV(SVC(), ensemble=False)
    if name == "random-forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(200, random_state=SEED)
    # the same class with the same options
    model = Catalog().model(name).fresh(SEED, "classification")
    return model.parts()[1].estimator


def _scored(pipeline: Any, X: pd.DataFrame, y: Any) -> dict[str, float]:
    scores, labels = _answers(pipeline, X)
    return {
        "auc": float(roc_auc_score(y, scores)),
        "acc": float(accuracy_score(y, labels)),
        "precision": float(precision_score(y, labels)),
        "recall": float(recall_score(y, labels)),
    }


def _answers(pipeline: Any, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels from one pass."""
    if not hasattr(pipeline[-1], "calibrated_classifiers_"):
        chances = pipeline.predict_proba(X)[:, 1]
        return chances, chances > 0.5
    # labels are those of the machine, not of the probabilities
    (calibrated,) = pipeline[-1].calibrated_classifiers_
    decisions = calibrated.estimator.decision_function(pipeline[:-1].transform(X))
    return calibrated.calibrators[0].predict(decisions), decisions > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="number of rows of Adult")
    for what, value, limit, unit, against in measure(parser.parse_args().rows):
        print(f"{what:<46}{value:>8.2f} {unit:<3}{limit:>8g} {unit:<3}   {against}")


if __name__ == "__main__":
    main()
