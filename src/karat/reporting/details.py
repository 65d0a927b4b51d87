"""Details of predictions: confusion matrix, calibration, scatter plot, worst predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from karat.predictions import Predictions
from karat.report.compact import cut_text

#: maximum number of classes of a confusion matrix; the rarest are merged
MAX_CLASSES = 30
BINS = 10
MAX_POINTS = 200
MAX_ROWS = 50
#: longer labels are cut
LABEL_WIDTH = 80
OTHER = "other"
#: a correct prediction with a lower confidence is listed too
LOW_CONFIDENCE = 0.5
#: number and predictions of a fold
Fold = tuple[int, Predictions]


def details(folds: Sequence[Fold], kind: str) -> dict[str, Any]:
    """Return the details of the predictions of all folds; those that do not apply are None.

    ``kind`` is the kind of task: only in a regression are predictions on the scale of the target.
    """
    return {
        "confusion": confusion(folds),
        "calibration": calibration(folds),
        "scatter": scatter(folds),
        "rows": worst_rows(folds, kind),
    }


def confusion(folds: Sequence[Fold]) -> dict[str, Any] | None:
    """Return the confusion matrix over all folds, one row per true class."""
    if not folds or not all(_labelled(answers) for _, answers in folds):
        return None
    labels = sorted({label for _, answers in folds for label in answers.labels})
    place = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for _, answers in folds:
        places = np.array([place[label] for label in answers.labels], dtype=np.intp)
        weight = 1.0 if answers.weight is None else answers.weight
        np.add.at(counts, (places[answers.true_codes], places[answers.answered_codes]), weight)
    names, table = _merged(labels, counts)
    return {"classes": [cut_text(name, LABEL_WIDTH) for name in names], "counts": table}


def _merged(labels: list[str], counts: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Keep the most frequent classes and merge the others into one."""
    if len(labels) <= MAX_CLASSES:
        return labels, counts
    frequent = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: MAX_CLASSES - 1])
    place = np.full(len(labels), len(frequent))
    place[frequent] = np.arange(len(frequent))
    table = np.zeros((MAX_CLASSES, MAX_CLASSES))
    np.add.at(table, (place[:, None], place[None, :]), counts)
    names = [labels[i] for i in frequent]
    return [*names, f"{OTHER} classes" if OTHER in names else OTHER], table


def calibration(folds: Sequence[Fold]) -> list[dict[str, float]] | None:
    """Return the accuracy of predictions by confidence, in ten bins; empty bins are left out.

    The confidence is the probability of the predicted class.
    """
    by_fold = [c for _, answers in folds if (c := _confidence(answers)) is not None]
    if not by_fold or len(by_fold) < len(folds):
        return None
    confidence = np.concatenate(by_fold)
    correct = np.concatenate([answers.predictions == answers.truth for _, answers in folds])
    finite = np.isfinite(confidence)
    confidence, correct = confidence[finite], correct[finite].astype(float)
    bins = np.clip((confidence * BINS).astype(int), 0, BINS - 1)
    return [
        {
            "confidence": float(confidence[bins == b].mean()),
            "accuracy": float(correct[bins == b].mean()),
            "count": int((bins == b).sum()),
        }
        for b in np.unique(bins)
    ]


def _labelled(answers: Predictions) -> bool:
    return answers.answers == "classes" and answers.truths == "classes"


def _confidence(answers: Predictions) -> np.ndarray | None:
    """Return the probability of each predicted class, or None without probabilities."""
    if answers.probabilities is None or not _labelled(answers) or not len(answers):
        return None
    # a predicted label may lack a probability
    chances = np.column_stack([answers.probabilities, np.full(len(answers), np.nan)])
    codes = np.minimum(answers.answered_codes, len(answers.classes))
    return np.asarray(chances[np.arange(len(answers)), codes])


def scatter(folds: Sequence[Fold]) -> list[list[float]] | None:
    """Return pairs of numeric target and prediction, evenly sampled if there are many."""
    if not folds or not all(_numeric(answers) for _, answers in folds):
        return None
    pairs = np.concatenate([np.column_stack([p.truth, p.predictions]) for _, p in folds])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    picked = np.linspace(0, len(pairs) - 1, min(len(pairs), MAX_POINTS)).round().astype(int)
    found: list[list[float]] = pairs[picked].tolist()
    return found


def _numeric(answers: Predictions) -> bool:
    return answers.answers == "numbers" and answers.truths == "numbers"


def worst_rows(folds: Sequence[Fold], kind: str) -> list[list[Any]]:
    """Return fold, row, target, prediction and confidence of the worst predictions.

    Wrong labels are sorted by confidence, followed by correct ones with a confidence below 0.5.
    Numbers are sorted by their distance from the target (or the distance of their ranks, where the
    scales differ), items by the rank of the correct one.
    """
    found: list[tuple[float, int, int, list[Any]]] = []
    for fold, answers in folds:
        errors = _errors(answers, kind)
        confidence = _confidence(answers)
        rows = np.arange(len(answers)) if answers.question is None else answers.question
        for i in np.argsort(-errors, kind="stable")[:MAX_ROWS].tolist():
            if errors[i] > 0:
                row = [fold, int(rows[i]), _value(answers.truth[i]), _value(answers.predictions[i])]
                row.append(None if confidence is None else float(confidence[i]))
                found.append((-float(errors[i]), fold, int(rows[i]), row))
    found.sort(key=lambda each: each[:3])
    return [row for *_, row in found[:MAX_ROWS]]


def _errors(answers: Predictions, kind: str) -> np.ndarray:
    """Return the size of the error of each prediction; 0 for those not to list."""
    if not len(answers) or answers.answers == "clusters":
        return np.zeros(len(answers))
    if _numeric(answers):
        pair = [answers.truth, answers.predictions]
        target, predicted = pair if kind == "regression" else map(rankdata, pair)
        return np.nan_to_num(np.abs(target - predicted), nan=np.inf, posinf=np.inf)
    if answers.rank is not None:
        return np.nan_to_num(answers.rank - 1, nan=np.inf, posinf=np.inf)
    wrong = answers.predictions.astype(str) != answers.truth.astype(str)
    confidence = _confidence(answers)
    if confidence is None:
        return wrong.astype(float)
    confidence = np.clip(np.nan_to_num(confidence), 0.0, 1.0)
    return np.where(wrong, 1 + confidence, np.maximum(LOW_CONFIDENCE - confidence, 0.0))


def _value(value: Any) -> Any:
    return cut_text(value, LABEL_WIDTH) if isinstance(value, str) else float(value)
