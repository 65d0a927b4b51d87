"""Model trees: a regression tree with a linear model in every node, after M5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.core.registry import head
from karat.errors import DefinitionError
from karat.probes.heads.estimators import need_kind

#: a node is not split if its standard deviation is below this share of that of all rows
CALM = 0.05
#: errors that differ by less than this share of the standard deviation count as equal
EQUAL = 1e-9
#: relative size below which a column counts as linearly dependent on the others
RANK = 1e-10


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
    need_kind("model-tree", kind, "regression", "decision-tree")
    if not isinstance(min_samples_leaf, int) or min_samples_leaf < 1:
        raise DefinitionError(
            f"head model-tree: min_samples_leaf must be an integer >= 1, got {min_samples_leaf!r}."
        )
    if not 0 <= smoothing < np.inf:
        raise DefinitionError(f"head model-tree: smoothing must be >= 0, got {smoothing!r}.")
    return ModelTree(min_samples_leaf, smoothing)


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

    def fit(self, X: np.ndarray, y: Any) -> ModelTree:
        """Grow, model, prune and smooth."""
        from karat.probes.heads.decision_tree import NumberTree

        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        order = np.lexsort([*X.T, y])  # makes sums independent of the order of rows
        X, y = X[order], y[order]
        leaf = min(self.min_samples_leaf, len(y))
        self.grown_ = NumberTree(min_samples_leaf=leaf, random_state=0).fit(X, y).tree_
        self._spread = float(y.std())
        #: smoothed weights of every leaf after pruning, by its node number in the grown tree
        self.leaves_: dict[int, np.ndarray] = {}
        self._prune(X, y)
        width = X.shape[1]
        tree, k = self.grown_, self.smoothing
        waiting: list[tuple[int, list[tuple[int, np.ndarray]]]] = [(0, [])]
        while waiting:
            node, above = waiting.pop()
            mixed = self.lines_[node].dense(width)
            if not self._is_leaf[node]:
                kids = (int(tree.children_left[node]), int(tree.children_right[node]))
                waiting += [(kid, [*above, (node, mixed)]) for kid in kids]
                continue
            count = int(tree.n_node_samples[node])
            for parent, weights in reversed(above):
                mixed = (count * mixed + k * weights) / (count + k)
                count = int(tree.n_node_samples[parent])
            self.leaves_[node] = mixed
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the prediction of the smoothed model of each row's leaf."""
        from karat.probes.heads.decision_tree import leaves

        X = np.asarray(X, dtype=np.float64)
        predicted = np.empty(len(X))
        ends = np.zeros(self.grown_.node_count, dtype=bool)
        ends[list(self.leaves_)] = True
        place = leaves(self.grown_, X, ends)
        for leaf in np.unique(place):
            here = place == leaf
            weights = self.leaves_[int(leaf)]
            predicted[here] = X[here] @ weights[:-1] + weights[-1]
        return predicted

    def _prune(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit every node from the bottom up; prune subtrees that are not better than its model."""
        tree, equal = self.grown_, EQUAL * self._spread
        X32, reached = X.astype(np.float32), {0: np.arange(len(X))}
        for node in np.flatnonzero(tree.feature >= 0).tolist():  # parents come before children
            rows = reached[node]
            left = X32[rows, tree.feature[node]] <= tree.threshold[node]
            reached[int(tree.children_left[node])] = rows[left]
            reached[int(tree.children_right[node])] = rows[~left]
        self.lines_: dict[int, Line] = {}
        #: for every node: whether it is a leaf now, the dimensions split below it, and the mean
        #: absolute error and number of parameters of its subtree, where a split counts as one
        self._is_leaf: dict[int, bool] = {}
        tested: dict[int, np.ndarray] = {}
        subtree: dict[int, tuple[float, int]] = {}
        for node in reversed(range(tree.node_count)):  # children come after their parents
            rows = reached[node]
            kids = [int(tree.children_left[node]), int(tree.children_right[node])]
            calm = kids[0] < 0 or np.sqrt(max(0.0, tree.impurity[node])) < CALM * self._spread
            below = [] if calm else [*(tested[kid] for kid in kids), tree.feature[[node]]]
            tested[node] = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *below]))
            line = _line(X[rows][:, tested[node]], y[rows], tested[node], equal)
            self.lines_[node] = line
            self._is_leaf[node], subtree[node] = True, (line.error, line.parameters)
            if not calm:
                error = sum(subtree[kid][0] * tree.n_node_samples[kid] for kid in kids) / len(rows)
                parameters = sum(subtree[kid][1] for kid in kids) + 1
                split = adjusted(error, len(rows), parameters)
                if adjusted(line.error, len(rows), line.parameters) > split + equal:
                    self._is_leaf[node], subtree[node] = False, (error, parameters)


def _line(X: np.ndarray, y: np.ndarray, terms: np.ndarray, equal: float) -> Line:
    """Return the least-squares model without the terms that do not reduce the adjusted error."""
    center, mean = X.mean(axis=0), float(y.mean())
    chosen = _select_columns(X - center, y - mean, equal)
    weights = np.linalg.lstsq(X[:, chosen] - center[chosen], y - mean, rcond=None)[0]
    offset = mean - float(center[chosen] @ weights)
    rest = y - mean - (X[:, chosen] - center[chosen]) @ weights
    return Line(terms[chosen], weights, offset, _mean_error(rest))


def _select_columns(X: np.ndarray, y: np.ndarray, equal: float) -> np.ndarray:
    """Remove the weakest columns, one by one, while the adjusted error does not rise."""
    from scipy.linalg import qr, solve_triangular

    if not X.shape[1]:
        return np.arange(0)
    q, r, order = qr(X, mode="economic", pivoting=True)
    size = np.abs(r.diagonal())
    rank = int((size > RANK * size[0]).sum())
    inverse = solve_triangular(r[:rank, :rank], np.eye(rank))
    spread, weights = inverse @ inverse.T, inverse @ (q[:, :rank].T @ y)
    chosen, rest = order[:rank], y - q[:, :rank] @ (q[:, :rank].T @ y)
    error = adjusted(_mean_error(rest), len(y), rank + 1)
    while len(chosen):
        weak = int(np.argmin(weights**2 / spread.diagonal()))
        # without this column, the weights of the others change by what they share with it
        change = spread[:, weak] * (weights[weak] / spread[weak, weak])
        without = rest + X[:, chosen] @ change
        fewer = adjusted(_mean_error(without), len(y), len(chosen))
        if fewer > error + equal:
            break
        spread = spread - np.outer(spread[:, weak], spread[weak]) / spread[weak, weak]
        left = np.delete(np.arange(len(chosen)), weak)
        spread, weights, chosen = spread[np.ix_(left, left)], (weights - change)[left], chosen[left]
        rest, error = without, fewer
    return np.sort(chosen)


def adjusted(error: float, rows: int, parameters: int) -> float:
    """Return an error adjusted for the number of fitted parameters; infinite for too many.

    >>> adjusted(1.0, rows=3, parameters=1)
    2.0
    """
    if rows <= parameters:
        return float(np.inf)
    return error * (rows + parameters) / (rows - parameters)


def _mean_error(rest: np.ndarray) -> float:
    return float(np.abs(rest).mean())
