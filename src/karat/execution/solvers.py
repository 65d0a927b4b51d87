"""Solvers: a predictor on raw items, an encoder with a probe, a search model; one interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.embeddings import Keep, Vectors, embed, fit_embed
from karat.core.files import fingerprint
from karat.core.predictions import Predictions
from karat.errors import Declined, NoVectors
from karat.models.model import Model, fit_weighted
from karat.models.model_identity import object_identity
from karat.models.searchers import StoredTexts, scored_pairs, use_stored
from karat.models.table_predictor import DistinctRows, PreparedRows
from karat.probes.trained import Probe, predict_checked

#: returns changed vectors, such as rounded ones
Change = Callable[[Vectors], Vectors]


@dataclass(frozen=True)
class ViewPredictions:
    """Predictions, the share of questions with vectors, and the ids of items without one."""

    predictions: Predictions
    coverage: float = 1.0
    missing: list[str] = field(default_factory=list)


class PredictorSolver:
    """A predictor on the raw items of questions with one field.

    A predictor with ``parts``, a transformer and an estimator, is fitted in two steps; ``keep``
    then shares the transformed items between models with the same transformer.
    """

    dimensions: int | None = None

    def __init__(self, model: Model, seed: int, keep: Keep | None = None) -> None:
        self.model = model
        self.seed = seed
        self.keep = keep
        self.preparation_: Any = None
        self.views_: DistinctRows | None = None

    @property
    def notes(self) -> list[str]:
        """Notes of the predictor, such as that it used only some rows."""
        return [*getattr(self.fitted_, "notes_", []), *self.notes_]

    def fit(self, train: Dataset) -> None:
        """Fit a new copy of the predictor on the train items and their targets."""
        if train.target is None:
            raise Declined("a predictor needs targets to train on, and this task hides them")
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        X: Any = None
        if hasattr(self.fitted_, "parts"):
            unfitted, self.fitted_ = self.fitted_.parts()
            X = self._prepare(unfitted, train)
        X = train.frame() if X is None else X
        self.notes_ = fit_weighted(self.fitted_, X, train.target, train.weight)

    def fit_preparation(self, train: Dataset) -> bool:
        """Fit only the transformer, without loading the estimator; False if that is impossible."""
        predictor = self.model.fresh(self.seed, train.kind)
        if train.target is None or not hasattr(predictor, "preparation"):
            return False
        self._prepare(predictor.preparation(), train)
        return True

    def _prepare(self, unfitted: Any, train: Dataset) -> Any:
        self.identity_ = object_identity(unfitted)
        self.preparation_, X = self._shared(
            "train", lambda: (unfitted, unfitted.fit_transform(train.frame(), train.target))
        )
        return X

    def prepare_views(self, views: Callable[[], Iterator[tuple[str, Dataset]]]) -> None:
        """Transform the test items of several views at once, if the transformer can."""
        if (prepare := getattr(self.preparation_, "transform_views", None)) is not None:
            frames = ((name, test.frame()) for name, test in views())
            self.views_ = self._shared("views", lambda: prepare(frames))

    def prepared(self, test: Dataset, view: str = "") -> Any:
        """Return the test items for the predictor, transformed if it has a transformer.

        Transformed items are shared under the name of the view, if given.
        """
        if (preparation := self.preparation_) is None:
            return test.frame()
        if self.views_ is not None and view in self.views_[1]:
            return PreparedRows(self.views_[0], self.views_[1][view])
        return self._shared(view, lambda: preparation.transform(test.frame()))

    def answer(
        self, test: Dataset, change: Change | None = None, view: str = ""
    ) -> ViewPredictions:
        """Return the predictions for the test items of a view; ``change`` is ignored."""
        X = self.prepared(test, view)
        return ViewPredictions(predict_checked(self.fitted_, X, test, self.model.name))

    def fitted(self) -> Any:
        """Return the fitted predictor."""
        return self.fitted_

    def infer(self, test: Dataset) -> ViewPredictions:
        """Answer without shared objects, to be timed."""
        return self.answer(test)

    def _shared(self, name: str, make: Callable[[], Any]) -> Any:
        # a transformer without an identity is not shared
        if self.keep is None or self.identity_ is None or not name:
            return make()
        return self.keep(f"{self.identity_}-{name}", make)

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch, if the predictor has any."""
        return list(getattr(self.fitted_, "history_", []))


class SearchSolver:
    """A search model ranks the documents for each query; it is not trained."""

    dimensions: int | None = None

    def __init__(
        self, model: Model, probe: Any, seed: int, stored: Sequence[StoredTexts] = ()
    ) -> None:
        """Use ``stored`` vectors of the encoders among its stages."""
        self.model = model
        self.probe = probe
        self.seed = seed
        self.stored = stored

    @property
    def notes(self) -> list[str]:
        """Notes of the probe and of the search model."""
        pairs, truncated = scored_pairs(self.fitted_)
        cut = f", {truncated:,} of them over the reranker's limit and truncated"
        scored = [f"{pairs:,} pairs were reranked{cut if truncated else ''}"] if pairs else []
        return [*self.probe.notes, *scored]

    @property
    def pairs(self) -> int:
        """The number of pairs of query and document that rerankers scored."""
        return scored_pairs(self.fitted_)[0]

    def fit(self, train: Dataset) -> None:
        """Record which items are queries."""
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        self.encoders_ = use_stored(self.fitted_, self.stored) if self.stored else []
        self.probe.fit(train, None)

    def answer(self, test: Dataset, change: Change | None = None) -> ViewPredictions:
        """Index the documents and rank them for the queries; ``change`` is ignored."""
        return ViewPredictions(self.probe.search(test, self.fitted_))

    def infer(self, test: Dataset) -> ViewPredictions:
        """Answer again without stored vectors, to be timed."""
        for encoder in self.encoders_:
            encoder.stored = None
        return self.answer(test)

    def fitted(self) -> Any:
        """Return the search model."""
        return self.fitted_

    def history(self) -> list[dict[str, Any]]:
        """Return an empty list: a search model has no epochs."""
        return []


class ProbeSolver:
    """An encoder computes vectors and a probe answers questions from them."""

    def __init__(
        self,
        model: Model,
        probe: Probe,
        missing: str,
        seed: int,
        ready: Vectors | None = None,
        keep: Keep | None = None,
    ) -> None:
        """``keep`` shares vectors between the variants of an encoder whose vectors are ready."""
        self.model = model
        self.probe = probe
        self.missing = missing
        self.seed = seed
        self.ready = ready
        self.keep = keep
        self.dimensions: int | None = None

    @property
    def notes(self) -> list[str]:
        """Notes of the probe, such as that a head did not converge."""
        return self.probe.notes

    def fit(self, train: Dataset) -> None:
        """Embed the train items, unless their vectors are ready, and fit the probe."""
        self.items_ = train.items
        if self.ready is None:
            self.encoder_ = self.model.fresh(self.seed, train.kind)
            self.base_ = fit_embed(self.encoder_, train, self.model.name)
        else:
            self.base_ = self.ready
        self.vectors_ = self._fit_variant(train)
        self.dimensions = self.vectors_.matrix.shape[1]
        able = self.probe.answerable(train, self.vectors_)
        if not able.any():
            raise _no_vectors(train, self.vectors_, "items")
        self.probe.fit(train if able.all() else train.take(np.flatnonzero(able)), self.vectors_)

    def answer(self, test: Dataset, change: Change | None = None) -> ViewPredictions:
        """Answer the questions with vectors; omit or penalize the others, as the task defines.

        ``change`` is applied to the vectors of the test items.
        """
        known_items = test.items is self.items_ and (
            self.ready is not None or np.array_equal(test.mentioned(), self.vectors_.rows)
        )
        if change is None:
            self.tested_ = vectors = self.vectors_ if known_items else self._embedded(test)
        else:
            vectors = self._compressed(change(self.base_ if known_items else self._base(test)))
        able = self.probe.answerable(test, vectors)
        rows = test.mentioned()
        lacking = rows[~vectors.known(rows)]
        missing = [str(i) for i in test.items.index[lacking]] if len(lacking) else []
        if not able.any() and self.missing == "ignore":
            raise _no_vectors(test, vectors, "test items")
        # coverage counts questions with vectors, even if the probe can answer the others
        with_vectors = able & vectors.answerable(test)
        predictions = self._answered(test, vectors, able)
        one_each = getattr(self.probe, "one_answer_each", True)
        if one_each and len(predictions) == len(with_vectors) and not with_vectors.all():
            predictions = replace(predictions, known=with_vectors)
        return ViewPredictions(predictions, float(with_vectors.mean()), missing)

    def _answered(self, test: Dataset, vectors: Vectors, able: np.ndarray) -> Predictions:
        """Return the answers, with default answers for questions to be penalized."""
        if able.all():
            return self.probe.answer(test, vectors)
        answered = (
            self.probe.answer(test.take(np.flatnonzero(able)), vectors) if able.any() else None
        )
        if self.missing == "penalize":
            defaults = self.probe.unanswered(test.take(np.flatnonzero(~able)))
            return defaults if answered is None else answered.merged(defaults, able)
        assert answered is not None
        if getattr(self.probe, "one_answer_each", True):
            return replace(answered, question=np.flatnonzero(able))
        return answered

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch, if the head has any."""
        return list(getattr(getattr(self.probe, "head_", None), "history_", []))

    def fitted(self) -> Any:
        """Return the encoder, if it was fitted here, and the head."""
        encoder = getattr(self, "encoder_", None)
        return {"encoder": encoder, "head": getattr(self.probe, "head_", None)}

    def infer(self, test: Dataset) -> Predictions:
        """Embed and answer without precomputed vectors, to be timed."""
        self.keep = None
        vectors = self._embedded(test)
        able = np.flatnonzero(self.probe.answerable(test, vectors))
        return self.probe.answer(test.take(able), vectors)

    def _fit_variant(self, train: Dataset) -> Vectors:
        """Return the vectors of the train items in the form in which they would be stored."""
        if (variant := self.model.variant) is None:
            return self.base_
        keep = self.keep
        self.compression_ = fitted = variant.fit(train, self.base_, keep)
        if keep is None:
            return fitted.apply(self.base_)
        vectors: Vectors = keep(fitted.key, lambda: fitted.apply(self.base_, keep))
        return vectors

    def _compressed(self, vectors: Vectors) -> Vectors:
        return vectors if self.model.variant is None else self.compression_.apply(vectors)

    def _embedded(self, test: Dataset) -> Vectors:
        vectors = self._compressed(replace(self._base(test), vocabulary=None))
        return replace(vectors, vocabulary=self.vectors_.vocabulary)

    def _base(self, test: Dataset) -> Vectors:
        """Return the vectors of the test items as the encoder computes them."""
        if self.keep is None:
            return self._encoded(test)
        name = sha256_of(test.mentioned().tobytes())
        vectors: Vectors = self.keep(
            f"{fingerprint(test.items)} {name}", lambda: self._encoded(test)
        )
        return vectors

    def _encoded(self, test: Dataset) -> Vectors:
        encoder = self.encoder_ if self.ready is None else self.model.fresh(self.seed, test.kind)
        base = self.base_.matrix
        vectors = embed(encoder, test, self.model.name, base.shape[1])
        # the dtype may differ between folds
        matrix = vectors.matrix.astype(base.dtype, copy=False)
        return replace(vectors, matrix=matrix, vocabulary=self.base_.vocabulary)


#: what answers the questions of a job
Solver = PredictorSolver | ProbeSolver | SearchSolver


def _no_vectors(data: Dataset, vectors: Vectors, what: str) -> NoVectors:
    rows = data.mentioned()
    if vectors.known(rows).any():
        return NoVectors(f"no question of {data.name} has vectors for all of its {what}")
    return NoVectors(f"no vector for any of the {len(rows)} {what} of {data.name}")
