"""Details: what a model answered on a task: confusion, calibration, scatter, the worst answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from karat.predictions import Predictions
from karat.report.compact import cut_text

#: a confusion matrix has at most so many classes; those with the fewest questions are one then
MOST_CLASSES = 30
BINS = 10
MOST_POINTS = 200
MOST_ROWS = 50
#: longer labels are cut
LABEL_WIDTH = 80
OTHER = "other"
#: a right answer of a lower probability is shown as a doubtful one
HALF = 0.5
#: an answer of a fold: its number, and what was answered in it
Fold = tuple[int, Predictions]


def details(folds: Sequence[Fold], kind: str) -> dict[str, Any]:
    """Return what can be told of the answers in all folds of a task; nothing is None.

    ``kind`` is that of the task: answers of a regression have the scale of the truth, others may
    have one of their own.
    """
    return {
        "confusion": confusion(folds),
        "calibration": calibration(folds),
        "scatter": scatter(folds),
        "rows": worst_rows(folds, kind),
    }


# -- labels ---------------------------------------------------------------------------------


def confusion(folds: Sequence[Fold]) -> dict[str, Any] | None:
    """Return how often each class was answered, a row per true class, over all folds."""
    if not folds or not all(_labelled(answers) for _, answers in folds):
        return None
    labels = sorted({label for _, answers in folds for label in answers.labels})
    place = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for _, answers in folds:
        places = np.array([place[label] for label in answers.labels], dtype=np.intp)
        weight = 1.0 if answers.weight is None else answers.weight
        at = (places[answers.true_codes], places[answers.answered_codes])
        np.add.at(counts, at, weight)
    names, table = _gathered(labels, counts)
    return {"classes": [cut_text(name, LABEL_WIDTH) for name in names], "counts": table}


def _gathered(labels: list[str], counts: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the classes with the most questions, and all others as one."""
    if len(labels) <= MOST_CLASSES:
        return labels, counts
    most = np.argsort(-counts.sum(axis=1), kind="stable")[: MOST_CLASSES - 1]
    kept = np.sort(most)
    place = np.full(len(labels), len(kept))
    place[kept] = np.arange(len(kept))
    table = np.zeros((MOST_CLASSES, MOST_CLASSES))
    np.add.at(table, (place[:, None], place[None, :]), counts)
    names = [labels[i] for i in kept]
    return [*names, f"{OTHER} classes" if OTHER in names else OTHER], table


def calibration(folds: Sequence[Fold]) -> list[dict[str, float]] | None:
    """Return how often answers were right, by how sure the model was, in ten bins of that.

    Sure is the probability it gave to its answer. Bins without an answer are left out.
    """
    sure = [_confidence(answers) for _, answers in folds]
    known = [(c, answers) for c, (_, answers) in zip(sure, folds, strict=True) if c is not None]
    if not known or len(known) < len(folds):
        return None
    confidence = np.concatenate([c for c, _ in known])
    right = np.concatenate([answers.predictions == answers.truth for _, answers in known])
    kept = np.isfinite(confidence)
    confidence, right = confidence[kept], right[kept].astype(float)
    places = np.clip((confidence * BINS).astype(int), 0, BINS - 1)
    return [
        {
            "confidence": float(confidence[places == place].mean()),
            "accuracy": float(right[places == place].mean()),
            "count": int((places == place).sum()),
        }
        for place in np.unique(places)
    ]


def _labelled(answers: Predictions) -> bool:
    return answers.answers == "classes" and answers.truths == "classes"


def _confidence(answers: Predictions) -> np.ndarray | None:
    """Return the probability that was given to each answer, if any were given."""
    if answers.probabilities is None or not _labelled(answers) or not len(answers):
        return None
    # an answer may be a label without a probability of its own
    chances = np.column_stack([answers.probabilities, np.full(len(answers), np.nan)])
    codes = np.minimum(answers.answered_codes, len(answers.classes))
    return np.asarray(chances[np.arange(len(answers)), codes])


# -- numbers --------------------------------------------------------------------------------


def scatter(folds: Sequence[Fold]) -> list[list[float]] | None:
    """Return pairs of truth and answer where both are numbers, evenly picked if there are many."""
    if not folds or not all(_numeric(answers) for _, answers in folds):
        return None
    pairs = np.concatenate([np.column_stack([p.truth, p.predictions]) for _, p in folds])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    picked = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_POINTS)).round().astype(int)
    found: list[list[float]] = pairs[picked].tolist()
    return found


def _numeric(answers: Predictions) -> bool:
    return answers.answers == "numbers" and answers.truths == "numbers"


# -- rows -----------------------------------------------------------------------------------


def worst_rows(folds: Sequence[Fold], kind: str) -> list[list[Any]]:
    """Return fold, row, truth, answer and confidence of the worst answers, the worst first.

    A wrong label is the worse the surer the model was; right ones come after, if the model gave
    them less than a half. A number goes by its distance from the truth, or by that of their ranks
    where the scales differ, an item by where the true one stood.
    """
    found: list[tuple[float, int, int, list[Any]]] = []
    for fold, answers in folds:
        badness = _badness(answers, kind)
        sure = _confidence(answers)
        rows = np.arange(len(answers)) if answers.question is None else answers.question
        for i in np.argsort(-badness, kind="stable")[:MOST_ROWS].tolist():
            if badness[i] > 0:
                told = [fold, int(rows[i]), _told(answers.truth[i]), _told(answers.predictions[i])]
                told.append(None if sure is None else float(sure[i]))
                found.append((-float(badness[i]), fold, int(rows[i]), told))
    found.sort(key=lambda each: each[:3])
    return [told for *_, told in found[:MOST_ROWS]]


def _badness(answers: Predictions, kind: str) -> np.ndarray:
    """Return how wrong each answer is; 0 where nothing is to be told."""
    if not len(answers) or answers.answers == "clusters":
        return np.zeros(len(answers))
    if _numeric(answers):
        pair = [answers.truth, answers.predictions]
        truth, given = pair if kind == "regression" else [rankdata(values) for values in pair]
        return np.nan_to_num(np.abs(truth - given), nan=np.inf, posinf=np.inf)
    if answers.rank is not None:
        return np.nan_to_num(answers.rank - 1, nan=np.inf, posinf=np.inf)
    wrong = answers.predictions.astype(str) != answers.truth.astype(str)
    sure = _confidence(answers)
    if sure is None:
        return wrong.astype(float)
    sure = np.clip(np.nan_to_num(sure), 0.0, 1.0)
    return np.where(wrong, 1 + sure, np.maximum(HALF - sure, 0.0))


def _told(value: Any) -> Any:
    return cut_text(value, LABEL_WIDTH) if isinstance(value, str) else float(value)
