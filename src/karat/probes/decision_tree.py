"""Decision trees of scikit-learn, grown by compiled loops that give the same, and model trees."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.models.model import Parameterized

#: numbers of train vectors for which scikit-learn takes about as long as loading numba
PATIENCE = 2**19
#: integers up to this size are exact as float64
EXACT = 2**53
_seen = [0]
#: a node is not split if its standard deviation is below this share of that of all rows
CALM = 0.05
#: errors that differ by less than this share of the standard deviation count as equal
EQUAL = 1e-9
#: relative size below which a column counts as linearly dependent on the others
RANK = 1e-10
#: columns that LAPACK's loops take at once
BLOCK = 32


@dataclass(frozen=True)
class Grown:
    """The nodes of a tree, in the attributes of scikit-learn's ``tree_``."""

    feature: np.ndarray
    children_left: np.ndarray
    children_right: np.ndarray
    n_node_samples: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    value: np.ndarray

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.feature)


@dataclass(eq=False, repr=False)
class _Tree(Parameterized):
    """The parameters of scikit-learn's trees that heads use."""

    criterion: str
    max_depth: int | None = None
    min_samples_leaf: int = 1
    random_state: int = 0


@dataclass(eq=False, repr=False)
class ClassTree(_Tree):
    """A tree that predicts classes and their shares in one pass."""

    criterion: str = "gini"

    def fit(
        self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> ClassTree:
        """Grow the tree; weighted rows by scikit-learn."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        grown = None if sample_weight is not None else _grown(self, X, codes, len(self.classes_))
        if grown is None:
            from sklearn.tree import DecisionTreeClassifier

            grown = DecisionTreeClassifier(**self.get_params()).fit(X, y, sample_weight).tree_
        self.tree_ = grown
        return self

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most frequent class of each row's leaf, and the shares of all."""
        shares = self.tree_.value[leaves(self.tree_, X), 0]
        return self.classes_[shares.argmax(axis=1)], shares

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the shares of all classes."""
        return self.predict_both(X)[1]


@dataclass(eq=False, repr=False)
class NumberTree(_Tree):
    """A tree that predicts the mean of each row's leaf."""

    criterion: str = "squared_error"

    def fit(
        self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> NumberTree:
        """Grow the tree; weighted rows and sums that are not exact by scikit-learn."""
        y = np.asarray(y, dtype=np.float64)
        exact = np.array_equal(y, np.rint(y)) and np.dot(y, y) * len(y) < EXACT
        usual = exact and sample_weight is None and self.criterion == "squared_error"
        grown = _grown(self, X, y, 0) if usual else None
        if grown is None:
            from sklearn.tree import DecisionTreeRegressor

            grown = DecisionTreeRegressor(**self.get_params()).fit(X, y, sample_weight).tree_
        self.tree_ = grown
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the means."""
        return np.asarray(self.tree_.value[leaves(self.tree_, X), 0, 0])


def leaves(tree: Grown, X: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Return the leaf of each row; ``ends`` are the leaves after pruning."""
    X = np.asarray(X, dtype=np.float32)
    ends = tree.feature < 0 if ends is None else ends
    node_of = np.zeros(len(X), dtype=np.intp)
    moving = np.flatnonzero(~ends[node_of])
    while len(moving):
        node = node_of[moving]
        goes_left = X[moving, tree.feature[node]] <= tree.threshold[node]
        node_of[moving] = np.where(goes_left, tree.children_left[node], tree.children_right[node])
        moving = moving[~ends[node_of[moving]]]
    return node_of


def _grown(tree: Any, X: np.ndarray, y: np.ndarray, classes: int) -> Grown | None:
    """Return the tree that scikit-learn would grow, or None if it has to."""
    with np.errstate(over="ignore"):
        columns = np.asarray(X, dtype=np.float32).T.copy()
    loops = _loops(columns.size)
    if loops is None or classes == 1 or not np.isfinite(columns).all():
        return None
    size, width = len(y), classes or 2
    rule = {"gini": loops.GINI, "entropy": loops.ENTROPY}.get(tree.criterion, loops.SQUARES)
    counts = np.arange(size + 1.0)
    parts, scale, shift = counts**2, 1 / np.maximum(counts, 1), np.zeros(size + 1)
    if rule == loops.ENTROPY:
        parts = shift = counts * np.log2(np.maximum(counts, 1))
        scale = np.ones(size + 1)
    nodes, numbers = np.full((2 * size, 4), -1), np.full((2 * size, 2), -2.0)
    sums = np.zeros((2 * size, width))
    # the seed of the order in which scikit-learn tries the features; its generator replaces 0
    seed = int(np.random.RandomState(tree.random_state).randint(0, 2**31 - 1)) or 1
    count = loops.grow(
        columns,
        np.argsort(columns, axis=1).astype(np.uint32),
        (y.astype(np.float64), (y if classes else y[:0]).astype(np.uint32), rule),
        (tree.min_samples_leaf, tree.max_depth or size, seed),
        (parts, np.diff(parts), scale, shift, np.empty(size), np.empty(size)),
        (nodes, numbers, sums),
    )
    feature, left_children, right_children, rows = nodes[:count].T.copy()
    threshold, impurity = numbers[:count].T.copy()
    shares = sums[:count, None, : classes or 1] / rows[:, None, None]
    return Grown(feature, left_children, right_children, rows, threshold, impurity, shares)


def _loops(size: int) -> Any:
    """Return the module of compiled loops once their start pays, or None."""
    _seen[0] += size
    # importing scikit-learn takes as long as numba
    if "numba" not in sys.modules and "sklearn.tree" in sys.modules and _seen[0] < PATIENCE:
        return None
    try:
        from karat.probes import heads_numba
    except ImportError:
        return None
    return heads_numba


@dataclass(frozen=True)
class Line:
    """A linear model: weights of some dimensions, and its mean absolute error."""

    terms: np.ndarray
    weights: np.ndarray
    offset: float
    error: float

    @property
    def parameters(self) -> int:
        """The number of fitted parameters."""
        return len(self.weights) + 1

    def dense(self, width: int) -> np.ndarray:
        """Return the weights of all dimensions, followed by the offset."""
        whole = np.zeros(width + 1)
        whole[self.terms] = self.weights
        whole[-1] = self.offset
        return whole


@dataclass(eq=False)
class ModelTree:
    """A tree whose leaves are linear models; the order of the train rows does not matter."""

    min_samples_leaf: int = 4
    smoothing: float = 15.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> ModelTree:
        """Grow, model, prune and smooth."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        order = _row_order(X, y)  # makes sums independent of the order of rows
        X, y = X[order], y[order]
        leaf = min(self.min_samples_leaf, len(y))
        self.grown_ = NumberTree(min_samples_leaf=leaf, random_state=0).fit(X, y).tree_
        self._spread = float(y.std())
        #: the models of all nodes, and whether each is a leaf after pruning
        self.lines_: dict[int, Line] = {}
        self._is_leaf = np.ones(self.grown_.node_count, dtype=bool)
        self._prune(X, y)
        #: smoothed weights of every leaf after pruning, by its node number in the grown tree
        self.leaves_: dict[int, np.ndarray] = self._smoothed(X.shape[1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the prediction of the smoothed model of each row's leaf."""
        X = np.asarray(X, dtype=np.float64)
        predicted = np.empty(len(X))
        ends = np.zeros(self.grown_.node_count, dtype=bool)
        ends[list(self.leaves_)] = True
        leaf_of = leaves(self.grown_, X, ends)
        for leaf in np.unique(leaf_of):
            here = leaf_of == leaf
            weights = self.leaves_[int(leaf)]
            predicted[here] = X[here] @ weights[:-1] + weights[-1]
        return predicted

    def _smoothed(self, width: int) -> dict[int, np.ndarray]:
        """Return the weights of every leaf, mixed with those of the nodes above it."""
        tree, k = self.grown_, self.smoothing
        parents, inner, ends = np.full(tree.node_count, -1), list[int](), list[int]()
        waiting = [0]
        while waiting:
            node = waiting.pop()
            (ends if self._is_leaf[node] else inner).append(node)
            if not self._is_leaf[node]:
                kids = [int(tree.children_left[node]), int(tree.children_right[node])]
                parents[kids] = node
                waiting += kids
        mixed = np.array([self.lines_[node].dense(width) for node in ends])
        dense = {node: self.lines_[node].dense(width) for node in inner}
        counts, above = tree.n_node_samples[ends].astype(float), parents[ends]
        while k and (climbing := np.flatnonzero(above >= 0)).size:
            weights = np.array([dense[node] for node in above[climbing].tolist()])
            rows = counts[climbing, None]
            mixed[climbing] = (rows * mixed[climbing] + k * weights) / (rows + k)
            counts[climbing] = tree.n_node_samples[above[climbing]]
            above[climbing] = parents[above[climbing]]
        return dict(zip(ends, mixed, strict=True))

    def _prune(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit every node from the bottom up; prune subtrees that are not better than its model."""
        tree, equal = self.grown_, EQUAL * self._spread
        reached = _rows_of_nodes(tree, X)
        calm = np.sqrt(np.maximum(tree.impurity, 0.0)) < CALM * self._spread
        #: for every node: the dimensions split below it, and the mean absolute error and number of
        #: parameters of its subtree, where a split counts as one
        tested = np.zeros((tree.node_count, X.shape[1]), dtype=bool)
        subtree: dict[int, tuple[float, int]] = {}
        for node in reversed(range(tree.node_count)):  # children come after their parents
            rows = reached[node]
            lower, upper = int(tree.children_left[node]), int(tree.children_right[node])
            ends = lower < 0 or calm[node]
            if not ends:
                np.logical_or(tested[lower], tested[upper], out=tested[node])
                tested[node, tree.feature[node]] = True
            terms = np.flatnonzero(tested[node]) if not ends else np.empty(0, dtype=np.intp)
            self.lines_[node] = line = _line(X[rows[:, None], terms], y[rows], terms, equal)
            subtree[node] = line.error, line.parameters
            if not ends:
                error = sum(subtree[kid][0] * len(reached[kid]) for kid in (lower, upper))
                error /= len(rows)
                parameters = subtree[lower][1] + subtree[upper][1] + 1
                split = adjusted(error, len(rows), parameters)
                if adjusted(line.error, len(rows), line.parameters) > split + equal:
                    self._is_leaf[node], subtree[node] = False, (error, parameters)


def _row_order(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the order by target, and by the vectors from the last dimension on.

    >>> _row_order(np.array([[1.0, 5.0], [0.0, 5.0], [0.0, 4.0]]), np.array([2, 2, 2])).tolist()
    [2, 1, 0]
    """
    order = np.lexsort([*X.T[-1:], y])  # the other dimensions are compared where these are equal
    same = y[order[1:]] == y[order[:-1]]
    same &= (X[order[1:], -1:] == X[order[:-1], -1:]).all(axis=1)
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    tied = np.sort(order[places])
    order[places] = tied[np.lexsort([*X[tied].T, y[tied]])]
    return order


def _rows_of_nodes(tree: Any, X: np.ndarray) -> dict[int, np.ndarray]:
    """Return the rows that reach each node, in ascending order."""
    columns, reached = X.T.astype(np.float32), {0: np.arange(len(X))}
    for node in np.flatnonzero(tree.feature >= 0).tolist():  # parents come before children
        rows = reached[node]
        goes_left = columns[tree.feature[node]][rows] <= tree.threshold[node]
        reached[int(tree.children_left[node])] = rows[goes_left]
        reached[int(tree.children_right[node])] = rows[~goes_left]
    return reached


def _line(X: np.ndarray, y: np.ndarray, terms: np.ndarray, equal: float) -> Line:
    """Return the least-squares model without the terms that do not reduce the adjusted error."""
    mean = float(np.add.reduce(y)) / len(y)
    if not len(terms):
        return Line(terms, np.empty(0), mean, _mean_error(y - mean))
    center = np.add.reduce(X, axis=0) / len(y)
    chosen, weights, rest = _select_columns(X - center, y - mean, equal)
    offset = mean - float(center[chosen] @ weights)
    return Line(terms[chosen], weights, offset, _mean_error(rest))


def _factors(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inverse of R of X = QR on independent columns, Qᵀy, and these columns' order."""
    from scipy.linalg import lapack

    rows, width = X.shape
    most = min(rows, width)
    q, order, scales, *_ = lapack.dgeqp3(X, lwork=2 * width + (width + 1) * BLOCK)
    size = np.abs(q.diagonal())
    rank = int(np.count_nonzero(size > RANK * size[0]))
    inverse, _ = lapack.dtrtri(q[:rank, :rank])
    inverse = np.triu(inverse) if rank > 1 else inverse
    projected, *_ = lapack.dormqr("L", "T", q[:, :most], scales[:most], y[:, None], BLOCK)
    return inverse, projected[:rank, 0], order[:rank] - 1


def _select_columns(
    X: np.ndarray, y: np.ndarray, equal: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Remove the weakest columns, one by one, while the adjusted error does not rise.

    Return the columns left, their weights, and what these do not explain of ``y``.
    """
    inverse, projected, order = _factors(X, y)
    rank = len(order)
    spread, weights = inverse @ inverse.T, inverse @ projected
    columns = X[:, order]  # copied once; the weights of removed ones are 0
    in_model, rest = np.ones(rank, dtype=bool), y - columns @ weights
    error = adjusted(_mean_error(rest), len(y), rank + 1)
    strength, diagonal = np.full(rank, np.inf), spread.diagonal()
    for parameters in range(rank, 0, -1):
        np.divide(weights * weights, diagonal, out=strength, where=in_model)
        weak = int(strength.argmin())
        # without this column, the weights of the others change by what they share with it
        shared = spread[weak].copy()
        change = shared * (weights[weak] / shared[weak])
        without = rest + columns @ change
        fewer = adjusted(_mean_error(without), len(y), parameters)
        if fewer > error + equal:
            break
        spread -= shared[:, None] * (shared / shared[weak])
        weights = weights - change
        in_model[weak], weights[weak], strength[weak] = False, 0.0, np.inf
        spread[weak], spread[:, weak] = 0.0, 0.0
        rest, error = without, fewer
    chosen = np.flatnonzero(in_model)
    chosen = chosen[np.argsort(order[chosen])]
    return order[chosen], weights[chosen], rest


def adjusted(error: float, rows: int, parameters: int) -> float:
    """Return an error adjusted for the number of fitted parameters; infinite for too many.

    >>> adjusted(1.0, rows=3, parameters=1)
    2.0
    """
    if rows <= parameters:
        return float(np.inf)
    return error * (rows + parameters) / (rows - parameters)


def _mean_error(rest: np.ndarray) -> float:
    return float(np.add.reduce(np.abs(rest))) / len(rest)
