"""Conversion between Karat's Predictions and the two arrays ``y_true`` and ``y_pred``."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.columns import find_classes
from karat.dataset import Dataset
from karat.errors import ContractError
from karat.predictions import Predictions, as_text


def as_arrays(
    predictions: Predictions, test: Dataset, probabilities: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``y_true`` and ``y_pred`` in the labels of the table.

    Ranked answers are returned as queries and ranks. Probabilities have one column per class, in
    sorted label order.
    """
    if predictions.rank is not None:
        return np.asarray(predictions.group), np.asarray(predictions.rank)
    if predictions.answers != "classes":
        paired = len(predictions) != len(test) or predictions.weight is not None
        return np.asarray(predictions.truth if paired else test.truth), predictions.predictions
    if probabilities and predictions.probabilities is not None:
        order = [predictions.classes.index(str(label)) for label in sorted(test.classes)]
        return np.asarray(test.truth), predictions.probabilities[:, order]
    written = dict(zip(as_text(test.classes), test.classes, strict=True))
    labels = [written[label] for label in predictions.predictions]
    return np.asarray(test.truth), np.array(labels, dtype=np.asarray(test.truth).dtype)


def as_predictions(y_true: Any, y_pred: Any, shape: str) -> Predictions:
    """Return two arrays as Predictions.

    ``shape`` names the content of ``y_pred``: ``"numbers"``, ``"classes"`` (probabilities),
    ``"labels"``, ``"clusters"`` or ``"places"`` (ranks). A matrix always holds class
    probabilities; numbers for two classes are scores of the second.

    >>> as_predictions([0, 1, 2], [[0.5, 0.3, 0.2], [0, 1, 0], [0, 0, 1]], "classes").classes
    ('0', '1', '2')
    """
    truth, answers = np.asarray(y_true), np.asarray(y_pred)
    if shape == "places":
        return Predictions(
            as_text(truth), as_text(truth), "items", "items", group=truth, rank=answers
        )
    if shape == "clusters":
        return Predictions(answers, as_text(truth), "clusters", "classes")
    if shape == "numbers" and answers.ndim == 1 and truth.dtype.kind in "iufb":
        return Predictions(answers, truth)
    classes = _classes(truth, answers)
    names = tuple(as_text(classes))
    if answers.ndim == 1 and shape == "classes" and answers.dtype.kind == "f":
        return Predictions(answers, as_text(truth), "numbers", "classes", names)
    if answers.ndim == 1:
        return Predictions(as_text(answers), as_text(truth), "classes", "classes", names)
    columns = [sorted(classes).index(label) for label in classes]
    chances = answers[:, columns]
    best = np.array(names, dtype=object)[chances.argmax(axis=1)]
    return Predictions(best, as_text(truth), "classes", "classes", names, chances)


def _classes(truth: np.ndarray, answers: np.ndarray) -> tuple[Any, ...]:
    """Return the labels in Karat's order; integer classes from 0 need not all occur in truth."""
    labels = find_classes("y_true", truth) if len(np.unique(truth)) > 1 else tuple(truth[:1])
    if answers.ndim == 1 or answers.shape[1] == len(labels):
        return labels
    columns = answers.shape[1]
    if truth.dtype.kind in "iu" and truth.min() >= 0 and truth.max() < columns:
        return tuple(sorted(range(columns), key=str))
    raise ContractError(
        f"y_pred has {columns} columns but y_true has {len(labels)} classes; expected one column "
        f"per class, in sorted label order."
    )
