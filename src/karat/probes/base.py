"""What a probe promises: fit on train questions, answer test questions, and own what it cannot."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from karat.bags import holds_bags
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions
from karat.vectors import Vectors


class Probe(Protocol):
    """Turns vectors into answers. Questions it cannot answer never reach ``fit`` or ``answer``.

    A probe whose answers are about pairs or lists, not one for each question, says
    ``one_answer_each = False``.
    """

    notes: list[str]

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions can be answered with these vectors."""

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn from the train questions; their truth may be hidden."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return one answer per question."""

    def unanswered(self, test: Dataset) -> Predictions:
        """Return the answers that penalise: what stands for questions that cannot be answered."""


def need_items(data: Dataset, probe: str) -> None:
    """Refuse questions that do not ask for an item by one other item."""
    if data.kind != "items" or len(data.fields) != 1 or holds_bags(data.questions.iloc[:, 0]):
        raise DefinitionError(
            f"probe: {probe} takes questions of one field, one item each, whose truth is an "
            f"item; {data.name} has {len(data.fields)} fields and {data.kind}."
        )


def ranked(
    test: Dataset, answers: np.ndarray, rank: np.ndarray, candidates: np.ndarray
) -> Predictions:
    """Return items as answers, with the rank of the true one; each question is its own list."""
    return Predictions(
        predictions=answers,
        truth=np.asarray(test.truth),
        answers="items",
        truths="items",
        rank=rank,
        candidates=candidates,
    )
