"""The head that chooses among heads, by folds of the train rows only."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from karat.errors import DataError, DefinitionError
from karat.models.svm import Kernel, RbfMachine
from karat.registry import build, head, heads


@head("best-of")
class BestOf:
    """Try heads on inner folds of the train rows, and fit the best of them on all.

    ``heads`` are names, or names with parameters (``{use: knn, n_neighbors: 3}``). A list stands
    for each of its values: ``{use: svm, C: [1, 10]}`` is two heads. Classes are chosen for by the
    mean accuracy of the inner folds, numbers by their mean RMSE; of equals the first named is
    taken. Rows that are equal lie in one fold. Where there are too few rows or members of classes
    for ``folds``, there are fewer, down to two.
    """

    def __init__(
        self,
        heads: Sequence[str | Mapping[str, Any]],
        kind: str,
        folds: int = 5,
        random_state: int | None = None,
        fold: int | None = None,
    ) -> None:
        if not isinstance(folds, int) or folds < 2:
            raise DefinitionError(f"head: folds of best-of is 2 or more, not {folds!r}.")
        self.heads = heads
        self.kind = kind
        self.folds = folds
        self.random_state = random_state
        self.fold = fold
        self.candidates = list(_candidates(heads))
        for candidate in self.candidates:
            _check(self._made(candidate), candidate)

    def fit(self, X: np.ndarray, y: Any) -> BestOf:
        """Choose a head and fit it on all rows."""
        X, y = np.asarray(X), np.asarray(y)
        parts = inner_folds(X, y if self.kind == "classes" else None, self.folds, self._seed)
        failed: dict[int, str] = {}
        scores = [self._tried(X, y, held, failed) for held in parts]
        #: the mean score of each candidate; a number's error counts below 0
        self.scores_ = np.mean(scores, axis=0) if scores else np.zeros(len(self.candidates))
        best = int(np.argmax(self.scores_))
        if len(failed) == len(self.candidates):
            raise DataError(f"head best-of: no head could learn: {failed[best]}.")
        self.choice_ = self.candidates[best]
        self.winner_ = self._made(self.choice_)
        self.winner_.fit(X, y)
        self.notes_ = [self._told(best, len(parts), failed), *getattr(self.winner_, "notes_", [])]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return what the head chosen predicts."""
        return np.asarray(self.winner_.predict(X))

    def __getattr__(self, name: str) -> Any:
        # probabilities are there where the head chosen has them
        if name in ("predict_proba", "predict_both", "classes_") and "winner_" in vars(self):
            return getattr(self.winner_, name)
        raise AttributeError(f"{type(self).__name__} has no {name}.")

    @property
    def _seed(self) -> int:
        return self.random_state or 0

    def _made(self, candidate: Mapping[str, Any]) -> Any:
        params = {name: value for name, value in candidate.items() if name != "use"}
        offers = {"kind": self.kind, "random_state": self.random_state, "fold": self.fold}
        what = f'head "best-of": head "{candidate["use"]}"'
        return build(what, heads.get(candidate["use"]), params, offers)

    def _tried(
        self, X: np.ndarray, y: np.ndarray, held: np.ndarray, failed: dict[int, str]
    ) -> list[float]:
        """Return the score of every candidate on the rows held out; a failure is the worst."""
        made = [self._made(candidate) for candidate in self.candidates]
        asked, truth = _Asked(X[~held], y[~held], X[held]), y[held]
        scores = []
        for place, estimator in enumerate(made):
            score = -np.inf
            try:
                score = _score(asked.answers(estimator), truth, self.kind)
            except (ValueError, DataError) as error:
                failed.setdefault(place, str(error).splitlines()[0].rstrip("."))
            scores.append(score)
        return scores

    def _told(self, best: int, folds: int, failed: Mapping[int, str]) -> str:
        chosen = f"best-of chose {name_of(self.choice_)}"
        if not folds:
            return f"{chosen}, the first: too few rows for inner folds"
        score = self.scores_[best]
        value = f"{score:.3f}" if self.kind == "classes" else f"RMSE {-score:.4g}"
        lost = "".join(
            f"; {name_of(self.candidates[place])} could not learn: {why}"
            for place, why in failed.items()
        )
        return f"{chosen} ({value} by {folds} inner folds){lost}"


class _Asked:
    """Train rows and the rows to be judged by; the kernels between them are made once."""

    def __init__(self, X: np.ndarray, y: np.ndarray, held: np.ndarray) -> None:
        self.X, self.y, self.held = X, y, held
        self._kernels: dict[Any, tuple[Kernel, np.ndarray]] = {}

    def answers(self, estimator: Any) -> np.ndarray:
        """Teach an estimator and return what it says of the rows held out."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the head chosen come again, and are shown
            if not isinstance(estimator, RbfMachine):
                estimator.fit(self.X, self.y)
                return np.asarray(estimator.predict(self.held))
            if estimator.gamma not in self._kernels:
                kernel = Kernel(self.X, estimator.gamma)
                self._kernels[estimator.gamma] = kernel, kernel.against(self.held)
            kernel, asked = self._kernels[estimator.gamma]
            estimator.fit_kernel(kernel, self.y)
            return estimator.predict_kernel(asked[:, estimator.support()])


def inner_folds(X: np.ndarray, classes: Any, folds: int, seed: int) -> list[np.ndarray]:
    """Return which rows each fold holds out; equal rows go together, classes are spread evenly.

    There are as many folds as asked for, fewer where the rows do not suffice, or none.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    _, first, twin = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(first)  # of rows that are equal the first stands for all
    place = np.searchsorted(kept, first)[twin.ravel()]
    labels = None if classes is None else np.asarray(classes)[kept]
    most = len(kept) if labels is None else np.unique(labels, return_counts=True)[1].max()
    folds = min(folds, int(most))
    if folds < 2:
        return []
    chosen = KFold if labels is None else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer members than there are folds
        cuts = list(chosen(folds, shuffle=True, random_state=seed).split(kept, labels))
    return [np.isin(place, test) for _, test in cuts]


def name_of(candidate: Mapping[str, Any]) -> str:
    """Return a head's name with its parameters.

    >>> name_of({"use": "svm", "C": 10})
    'svm C=10'
    """
    params = [f"{name}={value}" for name, value in candidate.items() if name != "use"]
    return " ".join([str(candidate["use"]), *params])


def _candidates(given: Any) -> Iterator[dict[str, Any]]:
    """Yield each head with its parameters, a list of values being as many heads."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise DefinitionError(
            "head: best-of needs heads: a list of names, or of names with parameters "
            "({use: svm, C: [1, 10]})."
        )
    for each in given:
        chosen = {"use": each} if isinstance(each, str) else each
        if not isinstance(chosen, Mapping) or not isinstance(chosen.get("use"), str):
            raise DefinitionError(
                f"head: best-of: a head is a name or has use: <name>, not {each}."
            )
        if chosen["use"] == "best-of":
            raise DefinitionError("head: best-of: name the heads themselves, not another best-of.")
        grid = [value if isinstance(value, list | tuple) else [value] for value in chosen.values()]
        yield from (dict(zip(chosen, values, strict=True)) for values in product(*grid))


def _check(made: Any, candidate: Mapping[str, Any]) -> None:
    tags = getattr(made, "__sklearn_tags__", None)
    groups = tags is not None and tags().estimator_type == "clusterer"
    if groups or hasattr(made, "outlier_scores"):
        raise DefinitionError(
            f"head: best-of chooses among heads that learn answers; {candidate['use']} looks at "
            f"vectors only."
        )


def _score(given: np.ndarray, truth: np.ndarray, kind: str) -> float:
    if kind == "classes":
        return float(np.mean(given == truth))
    return -float(np.sqrt(np.mean((given - truth) ** 2)))
