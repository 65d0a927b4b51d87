"""Outputs of heads and predictors as checked and aligned Predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import align_rows
from karat.core.predictions import Predictions, as_floats, as_text, sum_tolerance
from karat.errors import ContractError, DefinitionError


def predict_checked(estimator: Any, X: Any, test: Dataset, name: str) -> Predictions:
    """Return the predictions of a fitted estimator for the test questions, checked and aligned.

    Class probabilities are in the order of all classes of the dataset. Without ``predict_proba``,
    the predicted label has probability 1. ``predict_both`` returns labels and probabilities in one
    call.
    """
    answers, chances = _raw_predictions(estimator, X, test.kind, name)
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.shape != (len(test),):
        raise ContractError(
            f"{name}.predict returned the shape {answers.shape} for {len(test)} questions."
        )
    if test.kind != "classification":
        return _numbers(_finite(answers, f"{name}.predict"), test)
    labels = _labels(answers, test, f"{name}.predict returned")
    return _classes(labels, _probabilities(estimator, chances, labels, test), test)


def flag_outliers(scores: np.ndarray, test: Dataset, shares: Mapping[Any, float]) -> Predictions:
    """Turn outlier scores into predictions of two classes: outliers belong to the rarer one.

    The number of outliers follows from the share of the rarer class. The probability of an item
    is its rank divided by n + 1; equal scores share their mean rank.
    """
    if test.kind != "classification" or len(test.classes) != 2:
        raise DefinitionError(
            f"an outlier head needs a target with two classes; {test.name} has "
            f"{len(test.classes) or test.kind}."
        )
    scores = _finite(np.asarray(scores), "outlier_scores")
    classes = tuple(str(label) for label in test.classes)
    rare = min(range(2), key=lambda code: (shares[test.classes[code]], -code))
    count = round(shares[test.classes[rare]] * len(scores))
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[np.argsort(-scores, kind="stable")[:count]] = True
    order = pd.Series(scores).rank(method="average").to_numpy() / (len(scores) + 1)
    chances = np.empty((len(scores), 2))
    chances[:, rare], chances[:, 1 - rare] = order, 1 - order
    labels = np.where(flagged, classes[rare], classes[1 - rare]).astype(object)
    return _classes(labels, chances, test)


def baseline(target: np.ndarray, test: Dataset) -> Predictions:
    """Return the predictions of a dummy model: the class frequencies or the mean of train rows."""
    if test.kind != "classification":
        return _numbers(np.full(len(test), float(np.mean(target))), test)
    seen = as_text(target)
    return predict_frequencies(
        test, {label: float(np.mean(seen == str(label))) for label in test.classes}
    )


def predict_frequencies(test: Dataset, known: Mapping[Any, float]) -> Predictions:
    """Return the shares of the classes as the probabilities of every question."""
    shares = np.array([known[label] for label in test.classes])
    labels = np.full(len(test), as_text(test.classes)[int(np.argmax(shares))], dtype=object)
    return _classes(labels, np.tile(shares, (len(test), 1)), test)


def _numbers(values: np.ndarray, test: Dataset) -> Predictions:
    truth = np.asarray(test.target)
    return Predictions(predictions=values, target=truth, group=test.group, weight=test.weight)


def _classes(labels: np.ndarray, probabilities: np.ndarray, test: Dataset) -> Predictions:
    return Predictions(
        predictions=labels,
        target=np.asarray(test.target),
        answers="classes",
        truths="classes",
        classes=tuple(as_text(test.classes)),
        probabilities=probabilities,
        group=test.group,
        weight=test.weight,
    )


def _labels(values: np.ndarray, test: Dataset, what: str) -> np.ndarray:
    """Return labels as the dataset writes them; ``1.0`` also means the class ``1``."""
    texts = as_text(test.classes)
    written = {**dict(zip(test.classes, texts, strict=True)), **{text: text for text in texts}}
    names: dict[Any, str] = {}
    for value in dict.fromkeys(values.tolist()):
        name = written.get(str(value), written.get(value))
        if name is None:
            known = ", ".join(texts[:10])
            raise ContractError(f'{what} the unknown class "{value}". Classes: {known}.')
        names[value] = name
    return np.array([names[value] for value in values.tolist()], dtype=object)


def _raw_predictions(
    estimator: Any, X: Any, kind: str, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predictions, and the class probabilities if the estimator has them."""

    def called(method: str) -> np.ndarray:
        return np.asarray(align_rows(getattr(estimator, method)(X), X, f"{name}.{method}"))

    if kind != "classification":
        return called("predict"), None
    if hasattr(estimator, "predict_both"):
        answers, chances = estimator.predict_both(X)
        return np.asarray(answers), np.asarray(chances)
    answers = called("predict")
    return answers, called("predict_proba") if hasattr(estimator, "predict_proba") else None


def _probabilities(
    estimator: Any, chances: np.ndarray | None, answers: np.ndarray, test: Dataset
) -> np.ndarray:
    given = None if chances is None else _finite(chances, "predict_proba")
    full = np.zeros((len(test), len(test.classes)), None if given is None else given.dtype)
    column = {label: i for i, label in enumerate(as_text(test.classes))}
    if given is None:
        full[np.arange(len(test)), [column[label] for label in answers]] = 1.0
        return full
    classes = np.asarray(getattr(estimator, "classes_", as_text(test.classes)))
    if given.shape != (len(test), len(classes)):
        raise ContractError(
            f"predict_proba returned the shape {given.shape} for {len(test)} questions "
            f"and {len(classes)} classes."
        )
    sums, tolerance = given.sum(axis=1, dtype=float), sum_tolerance(given.dtype)
    if given.min() < -tolerance or np.abs(sums - 1).max() > tolerance:
        row = int(np.argmax(np.maximum(np.abs(sums - 1), -given.min(axis=1))))
        raise ContractError(
            f"predict_proba returned {given[row].tolist()} (row {row}); probabilities must be >= 0 "
            f"and sum to 1."
        )
    full[:, [column[label] for label in _labels(classes, test, "classes_ holds")]] = given
    return full


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    try:
        numbers = as_floats(values)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must return numbers: {error}.") from error
    if broken := int((~np.isfinite(numbers)).sum()):
        raise ContractError(f"{what} returned {broken} values that are NaN or infinite.")
    return numbers
