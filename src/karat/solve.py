"""Solvers: a predictor on raw items, or an encoder with a probe; one loop runs both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from karat.dataset import Dataset
from karat.errors import Declined
from karat.heads.answers import ask
from karat.models.base import Model
from karat.predictions import Predictions
from karat.probes.base import Probe
from karat.vectors import Vectors, embed, fit_embed


@dataclass(frozen=True)
class Answers:
    """Predictions, and what the model did not know."""

    predictions: Predictions
    coverage: float = 1.0
    missing: list[str] = field(default_factory=list)


class Direct:
    """A predictor takes the raw items of questions with one field."""

    notes: list[str]
    dimensions: int | None = None

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.seed = seed
        self.notes = []

    def fit(self, train: Dataset) -> None:
        """Fit a fresh copy of the predictor on the train items and their truth."""
        if train.truth is None:
            raise Declined("a predictor has nothing to learn from where the truth is hidden")
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        self.fitted_.fit(train.frame(), train.truth)

    def answer(self, test: Dataset) -> Answers:
        """Return what it predicts for the test items."""
        return Answers(ask(self.fitted_, test.frame(), test, self.model.name))

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch the predictor left, if any."""
        return list(getattr(self.fitted_, "history_", []))


class Probed:
    """An encoder makes vectors and a probe answers from them."""

    def __init__(
        self, model: Model, probe: Probe, missing: str, seed: int, ready: Vectors | None = None
    ) -> None:
        self.model = model
        self.probe = probe
        self.missing = missing
        self.seed = seed
        self.ready = ready
        self.dimensions: int | None = None

    @property
    def notes(self) -> list[str]:
        """What the probe wants people to know, such as a head that did not converge."""
        return self.probe.notes

    def fit(self, train: Dataset) -> None:
        """Embed the train items, with an encoder fitted on them unless it learns nothing."""
        self.items_ = train.items
        if self.ready is None:
            self.encoder_ = self.model.fresh(self.seed, train.kind)
            self.vectors_ = fit_embed(self.encoder_, train, self.model.name)
        else:
            self.vectors_ = self.ready
        self.dimensions = self.vectors_.matrix.shape[1]
        able = self.probe.answerable(train, self.vectors_)
        if not able.any():
            raise Declined(f"it knows none of the {len(train.mentioned())} items of {train.name}")
        self.probe.fit(train.take(np.flatnonzero(able)), self.vectors_)

    def answer(self, test: Dataset) -> Answers:
        """Answer what can be answered; leave the rest out or penalise it, as the task says."""
        vectors = self._vectors_of(test)
        able = self.probe.answerable(test, vectors)
        rows = test.mentioned()
        missing = [str(i) for i in test.items.index[rows[~vectors.known(rows)]]]
        if not able.any() and self.missing == "ignore":
            raise Declined(f"it knows none of the {len(rows)} items tested in {test.name}")
        known = test.take(np.flatnonzero(able))
        if able.all():
            return Answers(self.probe.answer(known, vectors), 1.0, missing)
        if self.missing == "penalise":
            unknown = test.take(np.flatnonzero(~able))
            answered = self.probe.answer(known, vectors) if able.any() else None
            lost = self.probe.unanswered(unknown)
            predictions = lost if answered is None else answered.merged(lost, able)
        else:
            predictions = replace(self.probe.answer(known, vectors), question=np.flatnonzero(able))
        return Answers(predictions, float(able.mean()), missing)

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch the head left, if any."""
        return list(getattr(getattr(self.probe, "head_", None), "history_", []))

    def _vectors_of(self, test: Dataset) -> Vectors:
        rows = test.mentioned()
        if test.items is self.items_:
            if self.ready is not None or np.array_equal(rows, self.vectors_.rows):
                return self.vectors_
        encoder = self.encoder_ if self.ready is None else self.model.fresh(self.seed, test.kind)
        vectors = embed(encoder, test, self.model.name, self.dimensions)
        # whole numbers in one fold and fractions in the other are still the same encoder's
        matrix = vectors.matrix.astype(self.vectors_.matrix.dtype, copy=False)
        return replace(vectors, matrix=matrix, vocabulary=self.vectors_.vocabulary)
