"""Heads on scikit-learn estimators.

Supervised heads are linear models, nearest neighbors, naive Bayes, decision trees and support
vector machines; ``best-of`` selects among heads. Outlier detectors and clusterers do not see the
target.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.digest import blake2_of
from karat.core.registry import build, head, heads, measures
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.models.model import Parameterized
from karat.probes.similarity import checked_similarity, distance_names, metric_arguments

if TYPE_CHECKING:
    from karat.models.predictors import Kernel, RbfMachine

#: returns the object of a name, made by the second argument unless another head has made it
Share = Callable[[str, Callable[[], Any]], Any]
#: smallest diagonal entry of the Cholesky factor, as a share of the largest, that is precise enough
REGULAR = 1e-3
#: split criteria of a tree, by kind of target; the first is the default
CRITERIA = {
    "classification": ("entropy", "gini"),
    "regression": ("squared_error", "absolute_error"),
}
#: number of distances in a block
DISTANCES = 2**22
#: number of columns up to which scikit-learn searches a tree, by differences instead of products
FEW_COLUMNS = 15
#: how the distance between two clusters follows from the distances between their members
LINKAGES = ("average", "complete", "single")
#: working memory for distances, in MB; larger blocks are new pages of memory each time
MEMORY = 4
#: number of rows up to which the distances of all pairs are kept for other heads: 128 MB
KEPT_ROWS = 5792


@head("logistic-regression")
def logistic(
    C: float = 1.0,
    max_iter: int = 100,
    random_state: int | None = None,
    kind: str = "classification",
) -> Any:
    """Logistic regression with at most ``max_iter`` iterations."""
    need_kind("logistic-regression", kind, "classification", "ridge or linear-regression")
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=max_iter, random_state=random_state)


@head("linear-regression")
def linear(kind: str = "regression") -> Any:
    """Ordinary least squares."""
    need_kind("linear-regression", kind, "regression", "logistic-regression")
    return LeastSquares()


class LeastSquares(Parameterized):
    """Ordinary least squares by the normal equations where they lose no precision.

    With weights, and for columns that are nearly dependent, by scikit-learn.
    """

    def fit(
        self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> LeastSquares:
        """Fit the weights of all columns and the offset."""
        rows, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        center, mean = rows.mean(axis=0), target.mean()
        rows = rows - center
        products = rows.T @ rows
        if sample_weight is None and len(rows) > rows.shape[1] and _is_regular(products):
            self.coef_ = np.linalg.solve(products, rows.T @ (target - mean))
            self.intercept_ = float(mean - center @ self.coef_)
            return self
        from sklearn.linear_model import LinearRegression

        fitted = LinearRegression().fit(X, y, sample_weight)
        self.coef_, self.intercept_ = fitted.coef_, fitted.intercept_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return np.asarray(X @ self.coef_ + self.intercept_)


def _is_regular(products: np.ndarray) -> bool:
    try:
        diagonal = np.linalg.cholesky(products).diagonal()
    except np.linalg.LinAlgError:
        return False
    return bool(diagonal.min() > REGULAR * diagonal.max())


@head("ridge")
def ridge(alpha: float = 1.0, kind: str = "regression") -> Any:
    """Ridge regression."""
    need_kind("ridge", kind, "regression", "logistic-regression")
    from sklearn.linear_model import Ridge

    return Ridge(alpha=alpha)


def need_kind(head: str, kind: str, needed: str, instead: str) -> None:
    """Refuse a target of another kind."""
    if kind != needed:
        raise DefinitionError(f"head {head} is for {needed}, not {kind}; use {instead}.")


@head("knn")
def knn(kind: str, n_neighbors: int = 5, weights: str = "uniform") -> Any:
    """Predict the majority class or the mean of the nearest train items."""
    if not isinstance(n_neighbors, int) or n_neighbors < 1:
        raise DefinitionError(f"head knn: n_neighbors must be an integer >= 1: {n_neighbors!r}.")
    if weights != "uniform":
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

        chosen = KNeighborsClassifier if kind == "classification" else KNeighborsRegressor
        return chosen(n_neighbors=n_neighbors, weights=weights)
    return (NearestLabels if kind == "classification" else NearestNumbers)(n_neighbors)


@dataclass(eq=False, repr=False)
class _Nearest(Parameterized):
    """The nearest train rows, as scikit-learn finds them in one thread."""

    n_neighbors: int = 5

    def _remember(self, X: np.ndarray) -> None:
        self.rows_ = np.asarray(X, dtype=np.float64)
        if self.n_neighbors > len(self.rows_):
            raise ValueError(
                f"Expected n_neighbors <= train rows, got {self.n_neighbors} and {len(self.rows_)}"
            )

    def _neighbors(self, X: np.ndarray) -> np.ndarray:
        """Return the places of the nearest train rows, by increasing distance."""
        X, rows, count = np.asarray(X, dtype=np.float64), self.rows_, self.n_neighbors
        if rows.shape[1] <= FEW_COLUMNS:
            from sklearn.neighbors import NearestNeighbors

            search = NearestNeighbors(n_neighbors=count).fit(rows)
            return np.asarray(search.kneighbors(X, return_distance=False))
        squares, height = np.einsum("ij,ij->i", rows, rows), max(1, DISTANCES // len(rows))
        nearest = [np.empty((0, count), dtype=np.intp)]
        for start in range(0, len(X), height):
            # the squares of the other rows do not change the order
            distances = squares - 2 * (X[start : start + height] @ rows.T)
            nearest.append(_smallest(distances, count))
        return np.concatenate(nearest)


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the columns of the smallest values of each row, by increasing value."""
    remaining, rows = values.copy(), np.arange(len(values))
    columns = np.empty((len(values), count), dtype=np.intp)
    for position in range(count):
        columns[:, position] = remaining.argmin(axis=1)
        remaining[rows, columns[:, position]] = np.inf
    # of equal values, not all of which fit
    for row in np.flatnonzero(remaining.min(axis=1) == values[rows, columns[:, -1]]):
        columns[row] = _kept_in_heap(values[row].tolist(), count)
    return columns


def _kept_in_heap(values: Sequence[float], count: int) -> list[int]:
    """Return the places of the smallest values that remain in a heap whose first is the largest."""
    heap = [(np.inf, 0)] * count
    for new in zip(values, range(len(values)), strict=True):
        if new[0] >= heap[0][0]:
            continue
        at, below = 0, 1
        while below < count:
            below += below + 1 < count and heap[below][0] < heap[below + 1][0]
            if heap[below][0] <= new[0]:
                break
            heap[at], at, below = heap[below], below, 2 * below + 1
        heap[at] = new
    return [position for _, position in sorted(heap)]


class NearestLabels(_Nearest):
    """Labels and probabilities from one search; the first of equally frequent classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NearestLabels:
        """Remember the rows and their classes."""
        self._remember(X)
        self.classes_, self.codes_ = np.unique(np.asarray(y), return_inverse=True)
        return self

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most frequent classes and the shares of all."""
        codes = self.codes_[self._neighbors(X)]
        shares = np.stack([(codes == code).mean(axis=1) for code in range(len(self.classes_))], 1)
        return self.classes_[shares.argmax(axis=1)], shares

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most frequent classes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the shares of all classes."""
        return self.predict_both(X)[1]


class NearestNumbers(_Nearest):
    """The mean of the nearest train rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NearestNumbers:
        """Remember the rows and their targets."""
        self._remember(X)
        self.target_ = np.asarray(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return np.asarray(self.target_[self._neighbors(X)].mean(axis=1))


@head("naive-bayes")
def naive_bayes(kind: str = "classification", var_smoothing: float = 1e-9) -> Any:
    """Gaussian naive Bayes: one mean and variance per class and dimension."""
    need_kind("naive-bayes", kind, "classification", "ridge or linear-regression")
    if not 0 < var_smoothing < np.inf:
        raise DefinitionError(
            f"head naive-bayes: var_smoothing must be > 0, got {var_smoothing!r}."
        )
    from karat.models.predictors import NaiveBayes

    return NaiveBayes(var_smoothing=var_smoothing)


@head("decision-tree")
def tree(
    kind: str,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    random_state: int | None = None,
) -> Any:
    """scikit-learn's decision tree (CART: binary splits), without pruning.

    Classes are split by information gain (``entropy``) or ``gini``, numbers by variance
    (``squared_error``) or ``absolute_error``. ``random_state`` decides between equally good splits.
    This is not C4.5, which also has gain ratios and pruning.
    """
    from karat.probes.decision_tree import ClassTree, NumberTree

    allowed = CRITERIA["classification" if kind == "classification" else "regression"]
    criterion = criterion or allowed[0]
    if criterion not in allowed:
        raise DefinitionError(
            f'head decision-tree: unknown criterion "{criterion}" for {kind}.'
            f"{did_you_mean(criterion, allowed)} Available: {', '.join(allowed)}."
        )
    return (ClassTree if kind == "classification" else NumberTree)(
        criterion=criterion,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state or 0,  # without a seed it would draw from the global generator
    )


@head("model-tree")
def model_tree(kind: str = "regression", min_samples_leaf: int = 4, smoothing: float = 15.0) -> Any:
    """Grow a model tree after M5 (Quinlan 1992).

    As in M5: splits minimize the variance until a node is small or nearly constant; every node has
    a least-squares model of the dimensions that are split below it, without the terms that do not
    reduce the adjusted error; pruning from the leaves up by the mean absolute error times
    (n + v) / (n - v), for v parameters fitted on n rows; predictions are smoothed with the models
    of the nodes above, weighted like ``smoothing`` rows (0: no smoothing). Splits use the variance
    as CART does, where M5 uses the standard deviation. Nominal dimensions and missing values are
    not supported.
    """
    from karat.probes.decision_tree import ModelTree

    need_kind("model-tree", kind, "regression", "decision-tree")
    if not isinstance(min_samples_leaf, int) or min_samples_leaf < 1:
        raise DefinitionError(
            f"head model-tree: min_samples_leaf must be an integer >= 1, got {min_samples_leaf!r}."
        )
    if not 0 <= smoothing < np.inf:
        raise DefinitionError(f"head model-tree: smoothing must be >= 0, got {smoothing!r}.")
    return ModelTree(min_samples_leaf, smoothing)


@head("svm")
def svm(
    kind: str,
    C: float = 1.0,
    gamma: float | str = "scale",
    epsilon: float = 0.1,
    share: Share | None = None,
) -> RbfMachine:
    """Support vectors with the RBF kernel: classes one against one, or numbers.

    ``gamma: scale`` is 1 / (dimensions × variance of all values), ``auto`` is 1 / dimensions. The
    head predicts labels without probabilities. A numeric target is standardized, as ``C`` and
    ``epsilon`` assume unit variance.
    """
    for name, value in (("C", C), ("epsilon", epsilon)):
        if not _is_positive(value):
            raise DefinitionError(f"head svm: {name} must be a number > 0, got {value!r}.")
    if gamma not in ("scale", "auto") and not _is_positive(gamma):
        raise DefinitionError(
            f'head svm: gamma must be "scale", "auto" or a number > 0, got {gamma!r}.'
        )
    from karat.models.predictors import RbfLabels, RbfRegressor

    machine: RbfMachine = RbfLabels(C, gamma)
    if kind != "classification":
        machine = RbfRegressor(C, gamma, epsilon)
    machine.share = share
    return machine


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < np.inf


@head("knn-distance")
@dataclass
class KnnDistance:
    """Outlier score: mean distance to the nearest neighbors."""

    n_neighbors: int = 10

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.neighbors import NearestNeighbors

        count = max(1, min(self.n_neighbors, len(X) - 1))
        distances, _ = NearestNeighbors(n_neighbors=count).fit(X).kneighbors()
        return np.asarray(distances.mean(axis=1))


@head("isolation-forest")
@dataclass
class IsolationForestScore:
    """Isolation forest outlier score."""

    n_estimators: int = 100
    random_state: int | None = None

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.ensemble import IsolationForest

        forest = IsolationForest(n_estimators=self.n_estimators, random_state=self.random_state)
        return -np.asarray(forest.fit(X).score_samples(X))


@head("kmeans")
def kmeans(
    n_clusters: int, batch_size: int | None = 32, n_init: int = 10, random_state: int | None = None
) -> Any:
    """Mini-batch k-means with one cluster per class; ``batch_size: null`` is plain k-means."""
    _need_clusters("kmeans", n_clusters)
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if batch_size is None:
        return KMeans(n_clusters=n_clusters, n_init=n_init, random_state=random_state)
    return MiniBatchKMeans(
        n_clusters=n_clusters, batch_size=batch_size, n_init=n_init, random_state=random_state
    )


@head("agglomerative")
def agglomerative(
    n_clusters: int,
    metric: str | Callable[..., float] = "cosine",
    linkage: str = "average",
    share: Share | None = None,
) -> Any:
    """Merge the two nearest clusters until there are as many as classes.

    ``metric`` is a distance of scikit-learn, or a function that returns the similarity of two
    vectors; the distance is then max(0, 1 - similarity). All distances are kept in memory: 1 GB for
    11,000 rows. With fewer rows than clusters, each row is its own cluster.
    """
    _need_clusters("agglomerative", n_clusters)
    if linkage not in LINKAGES:
        raise DefinitionError(
            f'head agglomerative: unknown linkage "{linkage}".{did_you_mean(linkage, LINKAGES)} '
            f"Available: {', '.join(LINKAGES)}; for Ward linkage use the head ward."
        )
    return _Hierarchy(n_clusters, Distance(metric, share), linkage)


@head("ward")
def ward(n_clusters: int) -> Any:
    """Merge the two clusters whose union increases the within-cluster variance least."""
    _need_clusters("ward", n_clusters)
    return _Hierarchy(n_clusters, Distance("euclidean"), "ward")


@head("dbscan")
def dbscan(
    eps: float = 0.5,
    min_samples: int = 5,
    metric: str | Callable[..., float] = "cosine",
    share: Share | None = None,
) -> Any:
    """Find dense groups: items with ``min_samples`` items within ``eps``, including points.

    Items outside of all groups get the cluster -1. ``metric`` is as in the head agglomerative.
    """
    return _Dense(eps, min_samples, Distance(metric, share))


class Distance:
    """The distance between vectors, named as in scikit-learn or given by a similarity function.

    ``share`` lets the heads on the same vectors compute the distances of all pairs once.
    """

    def __init__(self, metric: str | Callable[..., float], share: Share | None = None) -> None:
        if isinstance(metric, str) and metric not in distance_names():
            metric = measures.get(metric) if ":" in metric or metric in measures else metric
        if not callable(metric) and metric not in distance_names():
            raise DefinitionError(
                f'head: unknown metric "{metric}".{did_you_mean(str(metric), distance_names())} '
                f'Available: {", ".join(distance_names())}; or write "package.module:function".'
            )
        self.metric = metric
        self.share = None if callable(metric) else share

    def is_shared(self, rows: int) -> bool:
        """Return whether other heads use the distances of all pairs of this many rows."""
        return self.share is not None and rows <= KEPT_ROWS

    def rows(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield, for each vector, the distances to the vectors after it."""
        X = np.asarray(X, dtype=np.float64)
        if callable(self.metric):
            for position, one in enumerate(X):
                similarities = [
                    checked_similarity(self.metric, one, other) for other in X[position + 1 :]
                ]
                yield np.maximum(0.0, 1.0 - np.array(similarities))
            return
        from sklearn.metrics import pairwise_distances

        options = {"metric": self.metric, **metric_arguments(str(self.metric), X)}
        height = max(1, MEMORY * 2**17 // len(X))
        for start in range(0, len(X), height):
            block = pairwise_distances(X[start : start + height], X[start:], **options)
            if not np.isfinite(block).all():
                # a zero vector has the distance of an unrelated one
                block = np.nan_to_num(block, nan=1.0)
            for position, distances in enumerate(block, 1):
                yield distances[position:]

    def condensed(self, X: np.ndarray) -> np.ndarray:
        """Return the distances of all pairs of rows in SciPy's condensed form."""
        if self.share is None or not self.is_shared(len(X)):
            return self._condensed(X)
        # not read-only, which SciPy 1.11 refuses; linkage copies them
        return np.asarray(self.share(f"distances {self.metric}", lambda: self._condensed(X)))

    def _condensed(self, X: np.ndarray) -> np.ndarray:
        distances = np.empty(len(X) * (len(X) - 1) // 2)
        start = 0
        for rest in self.rows(X):
            distances[start : start + len(rest)] = rest
            start += len(rest)
        return distances


class _Clusterer(Parameterized):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


@dataclass(eq=False, repr=False)
class _Hierarchy(_Clusterer):
    n_clusters: int
    distance: Distance
    linkage: str

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        from scipy.cluster.hierarchy import linkage

        if len(X) <= self.n_clusters:
            return np.arange(len(X))
        merges = linkage(self.distance.condensed(X), method=self.linkage)
        return _cut(merges[: len(X) - self.n_clusters, :2].astype(np.intp), len(X))


@dataclass(eq=False, repr=False)
class _Dense(_Clusterer):
    eps: float
    min_samples: int
    distance: Distance

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        from sklearn.cluster import DBSCAN

        metric = self.distance.metric
        scan = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric=metric)
        if not callable(metric) and not self.distance.is_shared(len(X)):
            options = metric_arguments(metric, np.asarray(X, dtype=np.float64))
            return np.asarray(scan.set_params(metric_params=options or None).fit_predict(X))
        return np.asarray(scan.set_params(metric="precomputed").fit_predict(self._neighbors(X)))

    def _neighbors(self, X: np.ndarray) -> Any:
        """Return the distances of at most ``eps`` as a sparse matrix."""
        from scipy.sparse import coo_matrix

        distances, points = self.distance.condensed(X), np.arange(len(X))
        near = np.flatnonzero(distances <= self.eps)
        # of each point's distances to those after it
        starts = points * len(X) - points * (points + 1) // 2
        one = np.searchsorted(starts, near, side="right") - 1
        other, values = near - starts[one] + one + 1, distances[near]
        pairs = (np.concatenate([points, one, other]), np.concatenate([points, other, one]))
        values = np.concatenate([np.zeros(len(X)), values, values])
        return coo_matrix((values, pairs), shape=(len(X), len(X))).tocsr()


def _cut(merges: np.ndarray, rows: int) -> np.ndarray:
    """Return the clusters after some merges; each merge makes a cluster with the next number."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    merged = rows + np.arange(len(merges))
    size = rows + len(merges)
    pairs = (merges.ravel(), np.repeat(merged, 2))
    graph = coo_matrix((np.ones(2 * len(merges), dtype=bool), pairs), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][:rows], dtype=np.intp)


def ignores_target(estimator: Any) -> bool:
    """Return whether an estimator clusters rows or scores outliers."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    # the first condition is quick: most tags import scikit-learn
    clusters = hasattr(estimator, "fit_predict") and tags is not None
    is_clusterer = clusters and tags().estimator_type == "clusterer"  # type: ignore[misc]
    return is_clusterer or hasattr(estimator, "outlier_scores")


def _need_clusters(head: str, count: int) -> None:
    if count < 1:
        raise DefinitionError(f"head {head} needs n_clusters, as the dataset has no classes.")


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
            if ignores_target(estimator):
                name = candidate["use"]
                raise DefinitionError(f"head best-of: {name} does not use the target; remove it.")

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestOf:
        """Select a head and fit it on all rows."""
        X, y = np.asarray(X), np.asarray(y)
        share, self.share = self.share, None
        seeds = (self.folds, self.random_state, self.fold, self.kind)
        name = f"inner-{seeds}-{blake2_of(repr(y.tolist()), size=64)}"
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
        for position, candidate in enumerate(self.candidates):
            try:
                predicted = fold.predictions(candidate, self._build)
            except (ValueError, DataError) as error:
                failed.setdefault(position, str(error).splitlines()[0].rstrip("."))
                continue
            if self.kind == "classification":
                scores[position] = float(np.mean(predicted == fold.target))
            else:
                scores[position] = -float(np.sqrt(np.mean((predicted - fold.target) ** 2)))
        return scores

    def _note(self, best: int, folds: int, failed: Mapping[int, str]) -> str:
        chosen = f"best-of selected {name_of(self.choice_)}"
        if not folds:
            return f"{chosen}, the first head: too few rows for inner folds"
        score = self.scores_[best]
        value = f"accuracy {score:.3f}" if self.kind == "classification" else f"RMSE {-score:.4g}"
        failures = "".join(
            f"; {name_of(self.candidates[position])} failed to fit: {why}"
            for position, why in failed.items()
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
            if not hasattr(estimator, "fit_kernel"):
                estimator.fit(self.X, self.y)
                return np.asarray(estimator.predict(self.held))
            from karat.models.predictors import Kernel  # it imports scikit-learn

            if estimator.gamma not in self._kernels:
                kernel = Kernel(self.X, estimator.gamma)
                self._kernels[estimator.gamma] = kernel, kernel.against(self.held)
            kernel, against_held = self._kernels[estimator.gamma]
            estimator.fit_kernel(kernel, self.y)
            return estimator.predict_kernel(against_held[:, estimator.support()])


def inner_folds(
    X: np.ndarray, classes: np.ndarray | None, folds: int, seed: int
) -> list[np.ndarray]:
    """Return which rows each fold holds out; equal rows stay together, folds are stratified.

    With too few rows there are fewer folds, or none.
    """
    _, first, inverse = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    distinct = np.sort(first)  # the first of each set of equal rows represents all of them
    group_number = np.searchsorted(distinct, first)[inverse.ravel()]
    labels = None if classes is None else np.asarray(classes)[distinct]
    most = len(distinct) if labels is None else np.unique(labels, return_counts=True)[1].max()
    folds = min(folds, int(most))
    if folds < 2:
        return []
    if labels is None:  # as scikit-learn's KFold, without importing it
        shuffled = np.arange(len(distinct))
        np.random.RandomState(seed).shuffle(shuffled)
        return [np.isin(group_number, test) for test in np.array_split(shuffled, folds)]
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer members than there are folds
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        splits = list(splitter.split(distinct, labels))
    return [np.isin(group_number, test) for _, test in splits]


def name_of(candidate: Mapping[str, Any]) -> str:
    """Return the name of a head with its parameters, such as ``svm C=10``."""
    params = [f"{name}={value}" for name, value in candidate.items() if name != "use"]
    return " ".join([str(candidate["use"]), *params])


def _candidates(heads: object) -> Iterator[dict[str, Any]]:
    """Yield each head with its parameters, one head per value of a list."""
    if isinstance(heads, str | Mapping) or not isinstance(heads, Sequence) or not heads:
        raise DefinitionError(
            f"head best-of: heads must be a list of names, or of names with parameters "
            f"({{use: svm, C: [1, 10]}}), got {heads!r}."
        )
    for entry in heads:
        chosen = {"use": entry} if isinstance(entry, str) else entry
        if not isinstance(chosen, Mapping) or not isinstance(chosen.get("use"), str):
            raise DefinitionError(
                f"head best-of: a head must be a name or have use: <name>, got {entry}."
            )
        if chosen["use"] == "best-of":
            raise DefinitionError("head best-of: heads must not contain another best-of.")
        grid = [value if isinstance(value, list | tuple) else [value] for value in chosen.values()]
        yield from (dict(zip(chosen, values, strict=True)) for values in product(*grid))
