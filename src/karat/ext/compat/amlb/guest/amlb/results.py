"""The predictions file that a framework of the AutoML Benchmark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb.errors import NoResultError

__all__ = ["NoResultError", "save_predictions"]


def save_predictions(
    dataset: Any,
    output_file: str,
    predictions: Any = None,
    truth: Any = None,
    probabilities: Any = None,
    probabilities_labels: Any = None,
    optional_columns: Any = None,
    target_is_encoded: bool = False,
    preview: bool = True,
) -> None:
    """Write probabilities by class in alphabetical order, predictions and truth as CSV.

    The columns of ``probabilities`` are the sorted classes, or ``probabilities_labels``.
    """
    labels = _labels(predictions)
    expected = _labels(dataset.test.y if truth is None else truth)
    encoder = dataset.target.label_encoder
    columns = (
        None if probabilities_labels is None else [str(label) for label in probabilities_labels]
    )
    if target_is_encoded and dataset.target.values is not None:
        # codes of a framework that names its columns follow their order
        decode = (lambda codes: np.asarray(columns, object)[codes.astype(int)]) if columns else None
        labels = encoder.inverse_transform(labels) if decode is None else decode(labels)
        expected = (
            encoder.inverse_transform(expected)
            if truth is None or decode is None
            else decode(expected)
        )
    table = pd.DataFrame(index=range(len(labels)))
    if probabilities is not None:
        names = encoder.classes if columns is None else columns
        matrix = np.asarray(getattr(probabilities, "values", probabilities))
        shares = pd.DataFrame(matrix, columns=list(names))
        table = shares[sorted(shares.columns)]
    table = table.assign(predictions=labels, truth=expected)
    if optional_columns is not None:
        table = pd.concat([table, pd.DataFrame(optional_columns).reset_index(drop=True)], axis=1)
    Path(output_file).parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(output_file, index=False)


def _labels(values: Any) -> np.ndarray:
    """Return labels or numbers as a vector."""
    if values is None:
        raise NoResultError("the framework returned no predictions")
    values = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(values).reshape(-1)
