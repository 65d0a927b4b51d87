"""The head ``best-of`` selects a head by cross-validation within the train rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np

from karat.core.registry import build, head, heads
from karat.errors import DataError, DefinitionError
from karat.models.predictors import Kernel, RbfMachine


@head("best-of")
class BestOf:
    """Compare heads on inner folds of the train rows, and fit the best one on all of them.

    ``heads`` are names, or names with parameters (``{use: knn, n_neighbors: 3}``). A list of values
    makes one head per value: ``{use: svm, C: [1, 10]}`` is two heads. The criterion is the mean
    accuracy of the inner folds for classes and the mean RMSE for numbers; ties go to the first
    head. Equal rows are in the same fold. With too few rows or class members for ``folds``, fewer
    folds are used, down to two.
    """

    def __init__(
        self,
        heads: Sequence[str | Mapping[str, Any]],
        kind: str,
        folds: int = 5,
        random_state: int | None = None,
        fold: int | None = None,
        share: Callable[[str, Callable[[], Any]], Any] | None = None,
    ) -> None:
        if not isinstance(folds, int) or folds < 2:
            raise DefinitionError(f"head best-of: folds must be an integer >= 2, got {folds!r}.")
        self.heads = heads
        self.kind = kind
        self.folds = folds
        self.random_state = random_state
        self.fold = fold
        self.share = share
        self.candidates = list(_candidates(heads))
        for candidate in self.candidates:
            estimator = self._build(candidate)
            tags = getattr(estimator, "__sklearn_tags__", None)
            is_clusterer = tags is not None and tags().estimator_type == "clusterer"
            if is_clusterer or hasattr(estimator, "outlier_scores"):
                name = candidate["use"]
                raise DefinitionError(f"head best-of: {name} does not use the target; remove it.")

    def fit(self, X: np.ndarray, y: Any) -> BestOf:
        """Select a head and fit it on all rows."""
        X, y = np.asarray(X), np.asarray(y)
        share, self.share = self.share, None
        seeds = (self.folds, self.random_state, self.fold, self.kind)
        name = f"inner-{seeds}-{blake2b(repr(y.tolist()).encode()).hexdigest()}"
        folds = share(name, lambda: self._inner(X, y)) if share else self._inner(X, y)
        failed: dict[int, str] = {}
        scores = [self._fold_scores(fold, failed) for fold in folds]
        #: mean score of each candidate: accuracy, or the negative RMSE
        self.scores_ = np.mean(scores, axis=0) if scores else np.zeros(len(self.candidates))
        best = int(np.argmax(self.scores_))
        if len(failed) == len(self.candidates):
            raise DataError(f"head best-of: every head failed to fit: {failed[best]}.")
        self.choice_ = self.candidates[best]
        self.winner_ = self._build(self.choice_, share)
        self.winner_.fit(X if hasattr(self.winner_, "share") else X.copy(), y)
        self.notes_ = [self._note(best, len(folds), failed), *getattr(self.winner_, "notes_", [])]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of the selected head."""
        return np.asarray(self.winner_.predict(X))

    def __getattr__(self, name: str) -> Any:
        # available only if the selected head has it
        if name in ("predict_proba", "predict_both", "classes_") and "winner_" in vars(self):
            return getattr(self.winner_, name)
        raise AttributeError(f"{type(self).__name__} has no {name}.")

    def _inner(self, X: np.ndarray, y: np.ndarray) -> list[_InnerFold]:
        classes = y if self.kind == "classification" else None
        folds = inner_folds(X, classes, self.folds, self.random_state or 0)
        return [_InnerFold(X, y, held) for held in folds]

    def _build(self, candidate: Mapping[str, Any], share: Any = None) -> Any:
        params = {name: value for name, value in candidate.items() if name != "use"}
        offers = {"kind": self.kind, "random_state": self.random_state, "fold": self.fold}
        offers["share"] = share
        what = f'head "best-of": head "{candidate["use"]}"'
        return build(what, heads.get(candidate["use"]), params, offers)

    def _fold_scores(self, fold: _InnerFold, failed: dict[int, str]) -> list[float]:
        """Return the score of every candidate on the held-out rows; a failure is minus infinity."""
        scores = [-np.inf] * len(self.candidates)
        for place, candidate in enumerate(self.candidates):
            try:
                predicted = fold.predictions(candidate, self._build)
            except (ValueError, DataError) as error:
                failed.setdefault(place, str(error).splitlines()[0].rstrip("."))
                continue
            if self.kind == "classification":
                scores[place] = float(np.mean(predicted == fold.target))
            else:
                scores[place] = -float(np.sqrt(np.mean((predicted - fold.target) ** 2)))
        return scores

    def _note(self, best: int, folds: int, failed: Mapping[int, str]) -> str:
        chosen = f"best-of selected {name_of(self.choice_)}"
        if not folds:
            return f"{chosen}, the first head: too few rows for inner folds"
        score = self.scores_[best]
        value = f"accuracy {score:.3f}" if self.kind == "classification" else f"RMSE {-score:.4g}"
        failures = "".join(
            f"; {name_of(self.candidates[place])} failed to fit: {why}"
            for place, why in failed.items()
        )
        return f"{chosen} ({value} in {folds} inner folds){failures}"


class _InnerFold:
    """The train rows and the held-out rows.

    The kernels between them are computed once, as are the predictions of each candidate.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, held: np.ndarray) -> None:
        self.X, self.y, self.held, self.target = X[~held], y[~held], X[held], y[held]
        self._kernels: dict[Any, tuple[Kernel, np.ndarray]] = {}
        self._predictions: dict[str, np.ndarray] = {}

    def predictions(
        self, candidate: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Any]
    ) -> np.ndarray:
        """Fit a candidate and return its predictions for the held-out rows."""
        name = repr(sorted(candidate.items()))
        if name not in self._predictions:
            self._predictions[name] = self._predicted(make(candidate))
        return self._predictions[name]

    def _predicted(self, estimator: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final fit of the selected head repeats its own
            if not isinstance(estimator, RbfMachine):
                estimator.fit(self.X, self.y)
                return np.asarray(estimator.predict(self.held))
            if estimator.gamma not in self._kernels:
                kernel = Kernel(self.X, estimator.gamma)
                self._kernels[estimator.gamma] = kernel, kernel.against(self.held)
            kernel, against_held = self._kernels[estimator.gamma]
            estimator.fit_kernel(kernel, self.y)
            return estimator.predict_kernel(against_held[:, estimator.support()])


def inner_folds(X: np.ndarray, classes: Any, folds: int, seed: int) -> list[np.ndarray]:
    """Return which rows each fold holds out; equal rows stay together, folds are stratified.

    With too few rows there are fewer folds, or none.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    _, first, inverse = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    distinct = np.sort(first)  # the first of each set of equal rows represents all of them
    place = np.searchsorted(distinct, first)[inverse.ravel()]
    labels = None if classes is None else np.asarray(classes)[distinct]
    most = len(distinct) if labels is None else np.unique(labels, return_counts=True)[1].max()
    folds = min(folds, int(most))
    if folds < 2:
        return []
    chosen = KFold if labels is None else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer members than there are folds
        splits = list(chosen(folds, shuffle=True, random_state=seed).split(distinct, labels))
    return [np.isin(place, test) for _, test in splits]


def name_of(candidate: Mapping[str, Any]) -> str:
    """Return the name of a head with its parameters, such as ``svm C=10``."""
    params = [f"{name}={value}" for name, value in candidate.items() if name != "use"]
    return " ".join([str(candidate["use"]), *params])


def _candidates(given: Any) -> Iterator[dict[str, Any]]:
    """Yield each head with its parameters, one head per value of a list."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise DefinitionError(
            f"head best-of: heads must be a list of names, or of names with parameters "
            f"({{use: svm, C: [1, 10]}}), got {given!r}."
        )
    for each in given:
        chosen = {"use": each} if isinstance(each, str) else each
        if not isinstance(chosen, Mapping) or not isinstance(chosen.get("use"), str):
            raise DefinitionError(
                f"head best-of: a head must be a name or have use: <name>, got {each}."
            )
        if chosen["use"] == "best-of":
            raise DefinitionError("head best-of: heads must not contain another best-of.")
        grid = [value if isinstance(value, list | tuple) else [value] for value in chosen.values()]
        yield from (dict(zip(chosen, values, strict=True)) for values in product(*grid))
