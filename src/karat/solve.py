"""Solvers: a predictor on raw items, or an encoder with a probe; one loop runs both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from karat.dataset import Dataset
from karat.errors import Declined, KnowsNothing
from karat.heads.answers import ask
from karat.models.base import Model
from karat.models.identity import identity_of
from karat.predictions import Predictions
from karat.probes.base import Probe
from karat.vectors import Vectors, embed, fit_embed

#: makes other vectors of some, such as rougher ones
Change = Callable[[Vectors], Vectors]
#: returns the thing of a name, made by the second argument where nobody has made it yet
Keep = Callable[[str, Callable[[], Any]], Any]


@dataclass(frozen=True)
class Answers:
    """Predictions, and what the model did not know."""

    predictions: Predictions
    coverage: float = 1.0
    missing: list[str] = field(default_factory=list)


class Direct:
    """A predictor takes the raw items of questions with one field.

    One that has ``parts``, a transformer and a predictor of what it makes, is fitted in two steps;
    ``keep`` then lets all models that prepare the same items alike share what is prepared.
    """

    dimensions: int | None = None

    def __init__(self, model: Model, seed: int, keep: Keep | None = None) -> None:
        self.model = model
        self.seed = seed
        self.keep = keep

    @property
    def notes(self) -> list[str]:
        """What the predictor wants people to know, such as that it took only some rows."""
        return list(getattr(self.fitted_, "notes_", []))

    def fit(self, train: Dataset) -> None:
        """Fit a fresh copy of the predictor on the train items and their truth."""
        if train.truth is None:
            raise Declined("a predictor has nothing to learn from where the truth is hidden")
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        self.preparation_ = None
        X: Any = train.frame()
        if hasattr(self.fitted_, "parts"):
            unfitted, self.fitted_ = self.fitted_.parts()
            self.who_ = identity_of(unfitted)
            self.preparation_, X = self._kept(
                "train", lambda: (unfitted, unfitted.fit_transform(X, train.truth))
            )
        self.fitted_.fit(X, train.truth)

    def answer(self, test: Dataset, change: Change | None = None, view: str = "") -> Answers:
        """Return what it predicts for the test items; it has no vectors to change.

        What is prepared is kept under the name of the view, where it has one.
        """
        if self.preparation_ is None:
            X: Any = test.frame()
        else:
            prepare = self.preparation_.transform
            X = self._kept(view, lambda: prepare(test.frame()))
        return Answers(ask(self.fitted_, X, test, self.model.name))

    def fitted(self) -> Any:
        """Return the fitted predictor, for what it leaves."""
        return self.fitted_

    def infer(self, test: Dataset) -> Answers:
        """Answer as one who has never seen these items."""
        return self.answer(test)

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        # what cannot be told from its changed self is not shared
        if self.keep is None or self.who_ is None or not name:
            return make()
        return self.keep(f"{self.who_}-{name}", make)

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
            items = len(train.mentioned())
            raise KnowsNothing(f"it knows none of the {items} items of {train.name}")
        self.probe.fit(train.take(np.flatnonzero(able)), self.vectors_)

    def answer(self, test: Dataset, change: Change | None = None) -> Answers:
        """Answer what can be answered; leave the rest out or penalise it, as the task says.

        ``change`` makes other vectors of those of the test items.
        """
        vectors = self._vectors_of(test)
        if change is None:
            self.tested_ = vectors
        vectors = vectors if change is None else change(vectors)
        able = self.probe.answerable(test, vectors)
        rows = test.mentioned()
        missing = [str(i) for i in test.items.index[rows[~vectors.known(rows)]]]
        if not able.any() and self.missing == "ignore":
            raise KnowsNothing(f"it knows none of the {len(rows)} items tested in {test.name}")
        # a probe may answer about an item nobody knows: it is still one that is not known
        known = able & vectors.answerable(test)
        predictions = self._answered(test, vectors, able)
        each = getattr(self.probe, "one_answer_each", True) and len(predictions) == len(known)
        if each and not known.all():
            predictions = replace(predictions, known=known)
        return Answers(predictions, float(known.mean()), missing)

    def _answered(self, test: Dataset, vectors: Vectors, able: np.ndarray) -> Predictions:
        """Return the answers, and those that stand for what cannot be answered where asked to."""
        if able.all():
            return self.probe.answer(test, vectors)
        part = test.take(np.flatnonzero(able))
        if self.missing == "penalise":
            answered = self.probe.answer(part, vectors) if able.any() else None
            lost = self.probe.unanswered(test.take(np.flatnonzero(~able)))
            return lost if answered is None else answered.merged(lost, able)
        predictions = self.probe.answer(part, vectors)
        if getattr(self.probe, "one_answer_each", True):
            predictions = replace(predictions, question=np.flatnonzero(able))
        return predictions

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch the head left, if any."""
        return list(getattr(getattr(self.probe, "head_", None), "history_", []))

    def fitted(self) -> Any:
        """Return the encoder, where it was fitted, and the head, for what they leave."""
        encoder = getattr(self, "encoder_", None)
        return {"encoder": encoder, "head": getattr(self.probe, "head_", None)}

    def infer(self, test: Dataset) -> Predictions:
        """Embed and answer as one who has never seen these items."""
        vectors = self._embedded(test)
        able = np.flatnonzero(self.probe.answerable(test, vectors))
        return self.probe.answer(test.take(able), vectors)

    def _vectors_of(self, test: Dataset) -> Vectors:
        rows = test.mentioned()
        if test.items is self.items_:
            if self.ready is not None or np.array_equal(rows, self.vectors_.rows):
                return self.vectors_
        return self._embedded(test)

    def _embedded(self, test: Dataset) -> Vectors:
        encoder = self.encoder_ if self.ready is None else self.model.fresh(self.seed, test.kind)
        vectors = embed(encoder, test, self.model.name, self.dimensions)
        # whole numbers in one fold and fractions in the other are still the same encoder's
        matrix = vectors.matrix.astype(self.vectors_.matrix.dtype, copy=False)
        return replace(vectors, matrix=matrix, vocabulary=self.vectors_.vocabulary)
