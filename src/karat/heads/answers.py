"""Ask a fitted estimator: its labels, probabilities or numbers become checked Predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.dataset import Dataset
from karat.errors import ContractError
from karat.predictions import Predictions, as_text


def ask(estimator: Any, X: Any, test: Dataset, name: str) -> Predictions:
    """Return what a fitted estimator answers to the test questions, checked and aligned.

    Class probabilities stand in the order of all the data set's labels; where the estimator gives
    none, the predicted label has probability 1.
    """
    answers = np.asarray(estimator.predict(X))
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.shape != (len(test),):
        raise ContractError(
            f"{name}.predict returned the shape {answers.shape} for {len(test)} questions."
        )
    if test.kind != "classes":
        return Predictions(
            predictions=_finite(answers, f"{name}.predict"),
            truth=np.asarray(test.truth),
            group=test.group,
        )
    classes = tuple(as_text(np.array(test.classes, dtype=object)).tolist())
    return Predictions(
        predictions=as_text(answers),
        truth=np.asarray(test.truth),
        answers="classes",
        truths="classes",
        classes=classes,
        probabilities=_probabilities(estimator, X, as_text(answers), classes),
        group=test.group,
    )


def baseline(truth: np.ndarray, test: Dataset) -> Predictions:
    """Return what one would answer without looking: the train shares of classes, or the mean."""
    if test.kind != "classes":
        values = np.full(len(test), float(np.mean(truth)))
        return Predictions(predictions=values, truth=np.asarray(test.truth), group=test.group)
    classes = tuple(str(label) for label in test.classes)
    seen = as_text(truth)
    shares = np.array([np.mean(seen == label) for label in classes])
    return Predictions(
        predictions=np.full(len(test), classes[int(np.argmax(shares))], dtype=object),
        truth=np.asarray(test.truth),
        answers="classes",
        truths="classes",
        classes=classes,
        probabilities=np.tile(shares, (len(test), 1)),
        group=test.group,
    )


def _probabilities(
    estimator: Any, X: Any, answers: np.ndarray, classes: tuple[str, ...]
) -> np.ndarray:
    full = np.zeros((len(answers), len(classes)))
    column = {label: i for i, label in enumerate(classes)}
    if not hasattr(estimator, "predict_proba"):
        strange = [label for label in answers if label not in column]
        if strange:
            raise ContractError(
                f'predict returned "{strange[0]}", which is none of the classes '
                f"{', '.join(classes[:10])}."
            )
        full[np.arange(len(answers)), [column[label] for label in answers]] = 1.0
        return full
    given = np.asarray(estimator.predict_proba(X), dtype=float)
    labels = as_text(np.asarray(getattr(estimator, "classes_", classes)))
    if given.shape != (len(answers), len(labels)):
        raise ContractError(
            f"predict_proba returned the shape {given.shape} for {len(answers)} questions "
            f"and {len(labels)} classes."
        )
    full[:, [column[label] for label in labels]] = given
    return _finite(full, "predict_proba")


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must return numbers: {error}.") from error
    broken = int((~np.isfinite(numbers)).sum())
    if broken:
        raise ContractError(f"{what} returned NaN or infinity {broken} times.")
    return numbers
