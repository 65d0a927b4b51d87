"""Ask a fitted estimator: its labels, probabilities or numbers become checked Predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import ContractError, DefinitionError
from karat.predictions import Predictions, as_text

#: how far from 1 the sum of a row of probabilities may be
TOLERANCE = 1e-3


def ask(estimator: Any, X: Any, test: Dataset, name: str) -> Predictions:
    """Return what a fitted estimator answers to the test questions, checked and aligned.

    Class probabilities stand in the order of all the data set's labels; where the estimator gives
    none, the predicted label has probability 1. One with ``predict_both`` is asked once for labels
    and probabilities.
    """
    answers, chances = _asked(estimator, X, test.kind)
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
    labels = _labels(answers, test, f"{name}.predict returned")
    return Predictions(
        predictions=labels,
        truth=np.asarray(test.truth),
        answers="classes",
        truths="classes",
        classes=tuple(as_text(test.classes)),
        probabilities=_probabilities(estimator, chances, labels, test),
        group=test.group,
    )


def flag(scores: np.ndarray, test: Dataset, shares: Mapping[Any, float]) -> Predictions:
    """Return oddness as answers about two classes: the oddest items are of the rarer one.

    As many are flagged as the rarer class's known share says; the probability of an item is its
    place in the order of oddness, equal scores sharing theirs.
    """
    if test.kind != "classes" or len(test.classes) != 2:
        raise DefinitionError(
            f"an outlier head tells two classes apart; {test.name} has "
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
    return Predictions(
        predictions=np.where(flagged, classes[rare], classes[1 - rare]).astype(object),
        truth=np.asarray(test.truth),
        answers="classes",
        truths="classes",
        classes=classes,
        probabilities=chances,
        group=test.group,
    )


def baseline(truth: np.ndarray, test: Dataset) -> Predictions:
    """Return what one would answer without looking: the train shares of classes, or the mean."""
    if test.kind != "classes":
        values = np.full(len(test), float(np.mean(truth)))
        return Predictions(predictions=values, truth=np.asarray(test.truth), group=test.group)
    seen = as_text(truth)
    return by_shares(test, {label: float(np.mean(seen == str(label))) for label in test.classes})


def by_shares(test: Dataset, known: Mapping[Any, float]) -> Predictions:
    """Return the shares of the classes as every question's probabilities."""
    classes = tuple(as_text(test.classes))
    shares = np.array([known[label] for label in test.classes])
    return Predictions(
        predictions=np.full(len(test), classes[int(np.argmax(shares))], dtype=object),
        truth=np.asarray(test.truth),
        answers="classes",
        truths="classes",
        classes=classes,
        probabilities=np.tile(shares, (len(test), 1)),
        group=test.group,
    )


def _labels(values: np.ndarray, test: Dataset, what: str) -> np.ndarray:
    """Return labels as the data set writes them; ``1.0`` stands for the class ``1``."""
    texts = as_text(test.classes)
    written = {**dict(zip(test.classes, texts, strict=True)), **{text: text for text in texts}}
    names: dict[Any, str] = {}
    for value in dict.fromkeys(values.tolist()):
        name = written.get(str(value), written.get(value))
        if name is None:
            known = ", ".join(texts[:10])
            raise ContractError(f'{what} "{value}", which is none of the classes {known}.')
        names[value] = name
    return np.array([names[value] for value in values.tolist()], dtype=object)


def _asked(estimator: Any, X: Any, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what it predicts, and the probabilities of classes where it has them."""
    if kind != "classes":
        return np.asarray(estimator.predict(X)), None
    if hasattr(estimator, "predict_both"):
        answers, chances = estimator.predict_both(X)
        return np.asarray(answers), np.asarray(chances)
    answers = np.asarray(estimator.predict(X))
    able = hasattr(estimator, "predict_proba")
    return answers, np.asarray(estimator.predict_proba(X)) if able else None


def _probabilities(
    estimator: Any, chances: np.ndarray | None, answers: np.ndarray, test: Dataset
) -> np.ndarray:
    full = np.zeros((len(test), len(test.classes)))
    column = {label: i for i, label in enumerate(as_text(test.classes))}
    if chances is None:
        full[np.arange(len(test)), [column[label] for label in answers]] = 1.0
        return full
    given = _finite(chances, "predict_proba")
    classes = np.asarray(getattr(estimator, "classes_", as_text(test.classes)))
    if given.shape != (len(test), len(classes)):
        raise ContractError(
            f"predict_proba returned the shape {given.shape} for {len(test)} questions "
            f"and {len(classes)} classes."
        )
    sums = given.sum(axis=1)
    if given.min() < -TOLERANCE or np.abs(sums - 1).max() > TOLERANCE:
        row = int(np.argmax(np.maximum(np.abs(sums - 1), -given.min(axis=1))))
        raise ContractError(
            f"predict_proba returned {given[row].tolist()} (row {row}); probabilities are 0 or "
            f"more and sum to 1."
        )
    full[:, [column[label] for label in _labels(classes, test, "classes_ holds")]] = given
    return full


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must return numbers: {error}.") from error
    broken = int((~np.isfinite(numbers)).sum())
    if broken:
        raise ContractError(f"{what} returned NaN or infinity {broken} times.")
    return numbers
