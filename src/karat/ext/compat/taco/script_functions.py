"""TACO's other public functions: loaders of its five tables, models, scores and plots."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.files import safe_name
from karat.data.load_dataset import load_dataset
from karat.errors import DataError
from karat.ext.compat.taco.benchmark import MODELS, SEED, with_test_rows
from karat.ext.compat.taco.result_files import MODEL_NAMES
from karat.models.tables.one_hot_table import OneHotTable

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from karat.ext.compat.taco.benchmark import Features
    from karat.ext.compat.taco.corruption_functions import Target

#: train rows, test rows, train targets, test targets
Parts = tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]

#: names of TACO's code that Karat does not have, and what to use
DECLINED = {
    "TorchMLPBase": 'the net of Karat is the model "mlp"',
    "TorchMLPClassifier": 'use build_classifiers()["ffn"], or the model "mlp"',
    "TorchMLPRegressor": 'use build_regressors()["ffn_reg"], or the model "mlp"',
    "run_suite_generic": "use run_classification_suite or run_regression_suite",
    "load_cached": "files are read as they are; use pandas.read_csv, or load_adult and the like",
    "ensure_dir": "folders of results are created; use pathlib.Path.mkdir",
    "get_working_copy": "corruptions copy their input unless inplace=True",
    "get_smart_copy": "corruptions copy their input unless inplace=True",
}


class MissingFile(DataError, FileNotFoundError):
    """The file of a table does not exist."""


def load_adult(path: str | Path | None = None, random_state: int = SEED) -> Parts:
    """Return Adult as 80 % train and 20 % test rows; the target is 1 above 50,000 dollars."""
    return _load("adult", path, random_state)


def load_diabetes_130(path: str | Path | None = None, random_state: int = SEED) -> Parts:
    """Return the diabetes table; the target is 1 if readmitted within 30 days."""
    return _load("diabetes", path, random_state)


def load_porto_seguro(path: str | Path | None = None, random_state: int = SEED) -> Parts:
    """Return Porto Seguro's drivers; the target is 1 for a claim."""
    return _load("porto", path, random_state)


def load_ieee_cis(path: str | Path | None = None, random_state: int = SEED) -> Parts:
    """Return the payments of IEEE-CIS; the target is 1 for fraud."""
    return _load("ieee", path, random_state)


def load_nyc_property_sales(path: str | Path | None = None, random_state: int = SEED) -> Parts:
    """Return the sales in New York; the target is the logarithm of the price."""
    return _load("nyc", path, random_state)


def _load(name: str, path: str | Path | None, seed: int) -> Parts:
    """Return the parts that ``python -m karat.compat.taco`` uses, from a file or where it looks."""
    catalog = Catalog()
    if path is None:
        data: Dataset = catalog.dataset(f"taco_{name}")()
    elif not Path(path).is_file():
        homepage = catalog.definitions.get("datasets", f"taco_{name}").get("homepage")
        raise MissingFile(f"no file {path}; get the table {name} from {homepage}.")
    else:
        definition = dict(catalog.definitions.get("datasets", f"taco_{name}"))
        data = load_dataset(f"taco_{name}", {**definition, "sources": None, "path": str(path)})
    target = pd.Series(np.asarray(data.target), name="target")
    if data.kind == "classification":
        target = (target == "yes").astype(np.int8)
    part = np.asarray(with_test_rows(data, name, seed).part)
    rows = [np.flatnonzero(part == side) for side in ("train", "test")]
    items = [data.items.iloc[at].reset_index(drop=True) for at in rows]
    labels = [target.iloc[at].reset_index(drop=True) for at in rows]
    return items[0], items[1], labels[0], labels[1]


def infer_types(df: pd.DataFrame) -> pd.DataFrame:
    """Return a copy with columns of text as categories; numbers keep their width."""
    texts = [name for name in df if pd.api.types.is_string_dtype(df[name])]
    return df.astype(dict.fromkeys(texts, "category"))


def build_preprocessor(X: pd.DataFrame | None = None) -> OneHotTable:
    """Return what prepares tables for the models: imputed, scaled and one-hot encoded columns."""
    return OneHotTable()


def build_classifiers(random_state: int = SEED) -> dict[str, Any]:
    """Return TACO's five classifiers by name; one without its library is left out with a warning.

    They are scikit-learn estimators of what ``build_preprocessor`` returns. Unlike in a run,
    ``svm`` is fitted on all rows.
    """
    return _build("classification", random_state)


def build_regressors(random_state: int = SEED) -> dict[str, Any]:
    """Return TACO's five regressors by name, see ``build_classifiers``."""
    return _build("regression", random_state)


def _build(kind: str, seed: int) -> dict[str, Any]:
    named = {name: MODEL_NAMES[kind][name] for name in MODELS[kind]}
    estimators = {}
    for model in Catalog().models(named):
        if model.prototype is None:
            warnings.warn(f"{model.name}: left out: {model.unavailable}.", stacklevel=3)
            continue
        settings = {**model.prototype.get_params(), "kind": kind, "random_state": seed}
        estimators[model.name] = type(model.prototype)(**settings).parts()[1].estimator
    return estimators


def evaluate_classifier(
    pipe: Pipeline,
    X_train: Features,
    y_train: Target,
    X_test: Features,
    y_test: Target,
    refit: bool = True,
) -> tuple[float, None]:
    """Return the AUC of a classifier of two classes, and None."""
    if refit:
        pipe.fit(X_train, y_train)
    if hasattr(pipe, "predict_proba"):
        scores = pipe.predict_proba(X_test)[:, 1]
    else:
        rank = getattr(pipe, "decision_function", pipe.predict)
        scores = rank(X_test)
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y_test, scores)), None


def evaluate_regressor(
    pipe: Pipeline,
    X_train: Features,
    y_train: Target,
    X_test: Features,
    y_test: Target,
    refit: bool = True,
) -> tuple[float, None]:
    """Return the RMSE of a regressor, and None."""
    if refit:
        pipe.fit(X_train, y_train)
    errors = np.asarray(y_test, dtype=float) - np.asarray(pipe.predict(X_test), dtype=float)
    return float(np.sqrt(np.mean(errors**2))), None


def plot_bar_clean(df: pd.DataFrame, dataset_name: str, results_dir: str | Path) -> list[Path]:
    """Write ``<name>_clean_<metric>_bar.png`` of a table of metrics."""
    from karat.ext.compat.taco.taco_plots import plot_table

    return plot_table(df.assign(dataset=dataset_name), results_dir, bars=True)


def plot_degradation(df: pd.DataFrame, dataset_name: str, results_dir: str | Path) -> list[Path]:
    """Write ``<name>_plots/<name>_<corruption>_<metric>_curve.png`` of a table of metrics."""
    from karat.ext.compat.taco.taco_plots import plot_table

    folder = Path(results_dir) / f"{safe_name(dataset_name)}_plots"
    return plot_table(df.assign(dataset=dataset_name), folder)
