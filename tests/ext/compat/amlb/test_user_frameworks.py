"""A framework of a user's folder, with ``run(dataset, config)``, in a process of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.ext.compat.amlb.user_frameworks import UserFramework

FIRST_CLASS = """\
from amlb.results import save_predictions

def run(dataset, config):
    if config.framework_params.get("fails"):
        raise ValueError("no luck")
    rows = len(dataset.test.X)
    save_predictions(
        dataset=dataset,
        output_file=config.output_predictions_file,
        predictions=[dataset.train.y.iloc[0, 0]] * rows,
        truth=dataset.test.y,
    )
    return {"models_count": 3, "training_duration": 0.5}
"""

IMPUTES = """\
import sys

from amlb.datautils import impute_array
from extensions.first import run as predict

def run(dataset, config):
    train, test = impute_array(dataset.train.X_enc, dataset.test.X_enc)
    assert train is not dataset.train.X_enc
    assert (train == dataset.train.X_enc).all() and (test == dataset.test.X_enc).all()
    return {**predict(dataset, config), "imported": "sklearn" in sys.modules}
"""


def framework(folder, **params):
    (folder / "extensions").mkdir(exist_ok=True)
    (folder / "extensions" / "first.py").write_text(FIRST_CLASS)
    module = {"module": "extensions.first", "folder": str(folder)}
    X, y = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), np.array(["b", "a", "b"])
    return UserFramework(**module, framework_params=params, kind="classification").fit(X, y)


def test_it_predicts_and_its_facts_are_kept(tmp_path):
    model = framework(tmp_path)
    assert model.predict(pd.DataFrame({"x": [5.0, 6.0]})).tolist() == ["b", "b"]
    assert model.models_count_ == 3 and model.durations_ == {"fit_seconds": 0.5}


def test_its_error_is_raised_here(tmp_path):
    with pytest.raises(ValueError, match="no luck"):
        framework(tmp_path, fails=True).predict(pd.DataFrame({"x": [5.0]}))


def test_rows_without_missing_values_are_imputed_without_scikit_learn(tmp_path):
    model = framework(tmp_path)
    (tmp_path / "extensions" / "imputes.py").write_text(IMPUTES)
    model.module = "extensions.imputes"
    assert len(model.predict(pd.DataFrame({"x": [5.0]}))) == 1 and model.notes_ == []
