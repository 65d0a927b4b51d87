"""The trained probe, a head on composed and scaled vectors, and the interface of all probes.

Outputs of heads and predictors become checked and aligned Predictions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from karat.core.columns import holds_bags
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, align_rows
from karat.core.predictions import Predictions, as_floats, as_text, sum_tolerance
from karat.core.registry import build, composer, composers, heads, probe
from karat.errors import ContractError, DefinitionError
from karat.models.model import fit_weighted
from karat.probes.estimators import ignores_target
from karat.probes.scaling import Scaler

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: returns the object of (rows, name), made by the third argument unless another probe has made it
Share = Callable[[str, str, Callable[[], Any]], Any]
#: the default heads; without a visible target it is k-means
HEADS = {"classification": "logistic-regression", "regression": "ridge"}


def predict_checked(
    estimator: BaseEstimator, X: np.ndarray, test: Dataset, name: str
) -> Predictions:
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
            f"{name}.predict returned the shape {answers.shape} for {len(test)} rows."
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


def predict_frequencies(test: Dataset, shares_of: Mapping[Any, float]) -> Predictions:
    """Return the shares of the classes as the probabilities of every question."""
    shares = np.array([shares_of[label] for label in test.classes])
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
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    names = [written.get(str(value), written.get(value)) for value in distinct.tolist()]
    if None in names:
        first_classes, value = ", ".join(texts[:10]), distinct[names.index(None)]
        raise ContractError(f'{what} the unknown class "{value}". Classes: {first_classes}.')
    return np.array(names, dtype=object)[codes]


def _raw_predictions(
    estimator: BaseEstimator, X: np.ndarray, kind: str, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predictions, and the class probabilities if the estimator has them."""

    def called(method: str) -> np.ndarray:
        return np.asarray(align_rows(getattr(estimator, method)(X), X, f"{name}.{method}"))

    if kind != "classification":
        return called("predict"), None
    if hasattr(estimator, "predict_both"):
        answers, chances = estimator.predict_both(X)
        return np.asarray(answers), np.asarray(chances)
    if _is_plain_logistic(estimator):
        return _logistic_predictions(estimator, X)
    answers = called("predict")
    return answers, called("predict_proba") if hasattr(estimator, "predict_proba") else None


def _is_plain_logistic(estimator: BaseEstimator) -> bool:
    """Return whether an estimator is scikit-learn's multinomial logistic regression."""
    logistic = getattr(sys.modules.get("sklearn.linear_model"), "LogisticRegression", None)
    plain = type(estimator) is logistic and estimator.solver == "lbfgs"
    return plain and getattr(estimator, "multi_class", "auto") in ("auto", "deprecated")


def _logistic_predictions(estimator: BaseEstimator, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what ``predict`` and ``predict_proba`` return, from one matrix product."""
    from scipy.special import expit
    from sklearn.utils.extmath import softmax

    scores = estimator.decision_function(X)
    if scores.ndim == 1:
        chances = expit(scores)
        return estimator.classes_[(scores > 0).astype(int)], np.column_stack([1 - chances, chances])
    return estimator.classes_[scores.argmax(axis=1)], softmax(scores, copy=False)


def _probabilities(
    estimator: BaseEstimator, chances: np.ndarray | None, answers: np.ndarray, test: Dataset
) -> np.ndarray:
    chances_given = None if chances is None else _finite(chances, "predict_proba")
    full = np.zeros(
        (len(test), len(test.classes)), None if chances_given is None else chances_given.dtype
    )
    column = {label: i for i, label in enumerate(as_text(test.classes))}
    if chances_given is None:
        full[np.arange(len(test)), [column[label] for label in answers]] = 1.0
        return full
    classes = np.asarray(getattr(estimator, "classes_", as_text(test.classes)))
    if chances_given.shape != (len(test), len(classes)):
        raise ContractError(
            f"predict_proba returned the shape {chances_given.shape} for {len(test)} rows "
            f"and {len(classes)} classes."
        )
    sums, tolerance = chances_given.sum(axis=1, dtype=float), sum_tolerance(chances_given.dtype)
    if chances_given.min() < -tolerance or np.abs(sums - 1).max() > tolerance:
        row = int(np.argmax(np.maximum(np.abs(sums - 1), -chances_given.min(axis=1))))
        raise ContractError(
            f"predict_proba returned {chances_given[row].tolist()} (row {row}); "
            f"probabilities must be >= 0 and sum to 1."
        )
    full[:, [column[label] for label in _labels(classes, test, "classes_ holds")]] = chances_given
    return full


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    try:
        numbers = as_floats(values)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must return numbers: {error}.") from error
    if broken := int((~np.isfinite(numbers)).sum()):
        raise ContractError(f"{what} returned {broken} values that are NaN or infinite.")
    return numbers


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


def ranked_predictions(
    test: Dataset,
    answers: np.ndarray,
    rank: np.ndarray,
    candidates: np.ndarray,
    group: np.ndarray | None = None,
) -> Predictions:
    """Return predicted items with the rank of the target; without groups a list per question."""
    return Predictions(
        predictions=answers,
        target=np.asarray(test.target),
        answers="items",
        truths="items",
        group=group,
        rank=rank,
        candidates=candidates,
        gain=test.gain,
    )


def missed(test: Dataset, candidates: int) -> Predictions:
    """Return empty predictions that rank the target behind every candidate."""
    count = len(test)
    return ranked_predictions(
        test, np.full(count, ""), np.full(count, np.inf), np.full(count, candidates)
    )


@composer("single")
def single(*fields: np.ndarray) -> np.ndarray:
    """Return the vector of the only field."""
    if len(fields) != 1:
        raise DefinitionError(
            f"compose: single needs one field, the questions have {len(fields)}; "
            f"use compose: interaction (pairs) or concat."
        )
    return fields[0]


@composer("interaction")
def interaction(*fields: np.ndarray) -> np.ndarray:
    """Return (a, b, |a − b|, a · b), as sentence-pair tasks do."""
    if len(fields) != 2:
        raise DefinitionError(
            f"compose: interaction needs two fields, the questions have {len(fields)}."
        )
    a, b = fields
    apart = a - b
    return np.hstack([a, b, np.abs(apart, out=apart), a * b])


@composer("concat")
def concat(*fields: np.ndarray) -> np.ndarray:
    """Return the concatenated vectors of all fields."""
    return np.hstack(fields)


@probe("trained")
class Trained:
    """Fit a head on the vectors of the train questions and predict the test questions.

    ``scale: standard`` standardizes every dimension with mean and variance of the train questions;
    ``scale: plain`` does not change the vectors. ``share`` shares the scaled vectors, and what
    heads compute from them, between the heads on the same train rows.
    """

    def __init__(
        self,
        head: str | Mapping[str, Any] | None = None,
        compose: str | None = None,
        scale: str = "standard",
        random_state: int | None = None,
        fold: int | None = None,
        share: Share | None = None,
    ) -> None:
        if scale not in ("standard", "plain"):
            raise DefinitionError(f'probe: scale must be "standard" or "plain", got "{scale}".')
        self.head = head
        self.compose = compose
        self.scale = scale
        self.random_state = random_state
        self.fold = fold
        self.share = share
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector in every field."""
        if data.kind == "items":
            raise DefinitionError(
                f"probe: trained predicts classes or numbers, but the target of {data.name} is an "
                f"item; use probe: analogy."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Scale the train vectors and fit the head; clusterers are fitted on the test questions."""
        self.vectors_ = vectors
        self.rows_ = self._row_names(train)
        self.head_ = self._make_head(train)
        self.train_, self.truth_ = train, train.target
        self.scaler_, X = self._shared("train", lambda: self._fit_scaler(train, vectors))
        X = self._owned(X)
        if train.target is None:
            return
        if ignores_target(self.head_):
            raise DefinitionError(
                f"probe: {type(self.head_).__name__} does not use the target; set split: all or "
                f"use another head."
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.notes += fit_weighted(self.head_, X, train.target, train.weight)
        for warning in caught:
            if "Convergence" not in warning.category.__name__:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
            elif not any("converge" in note for note in self.notes):
                steps = np.max(getattr(self.head_, "n_iter_", 0))
                after = f" in {steps} iterations" if steps else ""
                self.notes.append(f"the head did not converge{after}")
        self.notes += getattr(self.head_, "notes_", [])

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the predictions of the head; without a visible target, it clusters."""
        name = f"test-{self._row_names(test)}" if vectors is self.vectors_ else ""
        X = self._shared(name, lambda: self._scaled(self._compose(test, vectors), fit=False))
        X = self._owned(X)
        if hasattr(self.head_, "outlier_scores"):
            return flag_outliers(self.head_.outlier_scores(X), test, self.train_.shares())
        if self.truth_ is None:
            if not hasattr(self.head_, "fit_predict"):
                raise DefinitionError(
                    f"split: all hides the target, which {type(self.head_).__name__} needs to be "
                    f"fitted; use a clustering head (kmeans) or another split."
                )
            clusters = np.asarray(self.head_.fit_predict(X))
            if clusters.shape != (len(X),) or clusters.dtype.kind not in "iu":
                name = type(self.head_).__name__
                raise ContractError(
                    f"{name}.fit_predict must return one integer per question; it returned "
                    f"{clusters.dtype} of the shape {clusters.shape}."
                )
            # each item that the head marks as noise (-1) becomes a separate cluster
            noise = clusters < 0
            clusters = clusters.astype(np.intp)
            alone = _distinct_items(test.take(np.flatnonzero(noise)))
            clusters[noise] = clusters.max(initial=-1) + 1 + alone
            return self._clustering(clusters, test)
        return predict_checked(self.head_, X, test, type(self.head_).__name__)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return the baseline; in a clustering, a separate cluster per item."""
        if hasattr(self.head_, "outlier_scores"):
            return predict_frequencies(test, self.train_.shares())
        if self.truth_ is None:
            return self._clustering(-1 - _distinct_items(test), test)
        return baseline(self.truth_, test)

    def _clustering(self, clusters: np.ndarray, test: Dataset) -> Predictions:
        truth = np.asarray(test.target)
        return Predictions(
            predictions=clusters,
            target=truth,
            answers="clusters",
            truths=test.target_type,
            weight=test.weight,
        )

    def _make_head(self, train: Dataset) -> Any:
        chosen = self.head or ("kmeans" if train.target is None else HEADS[train.kind])
        chosen = {"use": chosen} if isinstance(chosen, str) else dict(chosen)
        name = chosen.pop("use", None)
        if name is None:
            raise DefinitionError(f"probe: head needs use: <name of the head>, got {self.head!r}.")
        offers = {
            "kind": train.kind,
            "random_state": self.random_state,
            "fold": self.fold,
            "n_clusters": len(train.classes),
            "share": None if self.share is None else self._shared,
        }
        return build(f'head "{name}"', heads.get(name), chosen, offers)

    def _compose(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        name = self.compose or {1: "single", 2: "interaction"}.get(len(data.fields), "concat")
        read = name == "single" and self.share is not None  # copied for heads that may change it
        composed = np.asarray(
            composers.get(name)(*(vectors.of(data, f, read) for f in data.fields))
        )
        if composed.ndim != 2 or len(composed) != len(data):
            raise ContractError(
                f"compose: {name} must return one row per question; it returned the shape "
                f"{composed.shape} for {len(data)} questions."
            )
        return composed

    def _fit_scaler(self, train: Dataset, vectors: Vectors) -> tuple[Any, np.ndarray]:
        """Return the fitted scaler, if vectors are scaled, and the scaled train vectors."""
        X = self._scaled(self._compose(train, vectors), fit=True)
        return getattr(self, "scaler_", None), X

    def _scaled(self, X: np.ndarray, *, fit: bool) -> np.ndarray:
        if self.scale == "plain":
            return X
        if fit:
            self.scaler_ = Scaler(X)
        return self.scaler_.scaled(X)

    def _shared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return an object that depends on the train rows and its name only."""
        if self.share is None or not name:
            return make()
        return self.share(self.rows_, name, make)

    def _owned(self, X: np.ndarray) -> np.ndarray:
        """Return shared vectors; a copy for heads that may change them."""
        if self.share is None:
            return X
        X.setflags(write=False)
        keeps = hasattr(self.head_, "share") or hasattr(self.head_, "keeps_X")
        return X if keeps or _is_plain_logistic(self.head_) else X.copy()

    def _row_names(self, data: Dataset) -> str:
        """Return a digest of the items of all questions, and of how their vectors are made."""
        return f"{self.compose} {self.scale} {data.mentions_digest}" if self.share else ""


def _distinct_items(data: Dataset) -> np.ndarray:
    """Return a number per question, equal for questions about the same items."""
    bags = [data.mentions(name) for name in data.fields]
    if not len(data) or any(len(bag.rows) != len(data) for bag in bags):
        return np.arange(len(data))
    rows = np.column_stack([bag.rows for bag in bags])
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1]).ravel()
