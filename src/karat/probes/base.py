"""The interface of probes, and predictions of items."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from karat.bags import holds_bags
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions
from karat.vectors import Vectors


class Probe(Protocol):
    """Turns vectors into predictions. ``fit`` and ``answer`` receive only answerable questions.

    A probe that predicts pairs or lists instead of one value per question sets
    ``one_answer_each = False``.
    """

    notes: list[str]

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions can be answered with these vectors."""

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Fit on the train questions; their target may be hidden."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return one prediction per question."""

    def unanswered(self, test: Dataset) -> Predictions:
        """Return the penalizing predictions for questions that cannot be answered."""


def need_fields(data: Dataset, probe: str, kind: str, fields: int = 1) -> None:
    """Refuse questions with another kind of target, another number of fields, or sets of items."""
    bags = any(holds_bags(data.questions[name]) for name in data.fields)
    if data.kind != kind or len(data.fields) != fields or bags:
        raise DefinitionError(
            f"probe: {probe} needs questions with {fields} field(s) of one item each and a target "
            f"of kind {kind}; {data.name} has {len(data.fields)} field(s) and {data.kind}."
        )


def ranked(
    test: Dataset,
    answers: np.ndarray,
    rank: np.ndarray,
    candidates: np.ndarray,
    group: np.ndarray | None = None,
) -> Predictions:
    """Return predicted items with the rank of the target; without groups a list per question."""
    return Predictions(
        predictions=answers,
        truth=np.asarray(test.truth),
        answers="items",
        truths="items",
        group=group,
        rank=rank,
        candidates=candidates,
    )


def missed(test: Dataset, candidates: int) -> Predictions:
    """Return empty predictions that rank the target behind every candidate."""
    count = len(test)
    return ranked(test, np.full(count, ""), np.full(count, np.inf), np.full(count, candidates))
