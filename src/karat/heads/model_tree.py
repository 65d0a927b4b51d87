"""Model trees: a decision tree for numbers with a linear model in every node, after M5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import DefinitionError
from karat.registry import head

#: a node whose numbers spread less than this share of all is not cut further
CALM = 0.05
#: errors that differ by less than this share of the spread of all numbers are equal
EQUAL = 1e-9
#: a column that lies this close to the others' plane adds nothing to them
RANK = 1e-10


@head("model-tree")
def model_tree(kind: str = "numbers", min_samples_leaf: int = 4, smoothing: float = 15.0) -> Any:
    """Grow a model tree after M5 (Quinlan 1992).

    Of M5 it has: cuts that lower the spread most, until a node is small or calm; in every node a
    least-squares model over the dimensions that are cut below it, without the terms that do not
    pay; pruning from the leaves up by the mean absolute error times (n + v) / (n - v), for v
    parameters fitted on n rows; and predictions smoothed towards the models above, which weigh as
    much as ``smoothing`` rows (0: not at all). Cuts are chosen by variance, as CART has it, where
    M5 has the standard deviation. It has no nominal dimensions and no missing values.
    """
    if kind != "numbers":
        raise DefinitionError(f"head: model-tree predicts numbers, not {kind}; say tree.")
    if not isinstance(min_samples_leaf, int) or min_samples_leaf < 1:
        raise DefinitionError(
            f"head: min_samples_leaf of model-tree is 1 or more, not {min_samples_leaf!r}."
        )
    if not 0 <= smoothing < np.inf:
        raise DefinitionError(f"head: smoothing of model-tree is 0 or more, not {smoothing!r}.")
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
        """How many numbers were fitted."""
        return len(self.weights) + 1

    def dense(self, width: int) -> np.ndarray:
        """Return the weight of every dimension, and the offset last."""
        whole = np.zeros(width + 1)
        whole[self.terms] = self.weights
        whole[-1] = self.offset
        return whole


class ModelTree:
    """A tree whose leaves are linear models; the order of the train rows does not matter."""

    def __init__(self, min_samples_leaf: int = 4, smoothing: float = 15.0) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.smoothing = smoothing

    def fit(self, X: np.ndarray, y: Any) -> ModelTree:
        """Grow, model, prune and smooth."""
        from sklearn.tree import DecisionTreeRegressor

        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        order = np.lexsort([*X.T, y])  # sums hang on the order of rows, so they get one of ours
        X, y = X[order], y[order]
        leaf = min(self.min_samples_leaf, len(y))
        grown = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0).fit(X, y)
        self.grown_ = grown.tree_
        self._spread = float(y.std())
        #: of every leaf that is left after pruning, by its number in the tree grown
        self.leaves_: dict[int, np.ndarray] = {}
        self._prune(X, y)
        self._smooth(X.shape[1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return what the smoothed model of each row's leaf says."""
        X = np.asarray(X, dtype=np.float64)
        answers = np.empty(len(X))
        place = self._reached(X)
        for node in np.unique(place):
            here = place == node
            weights = self.leaves_[int(node)]
            answers[here] = X[here] @ weights[:-1] + weights[-1]
        return answers

    def _prune(self, X: np.ndarray, y: np.ndarray) -> None:
        """Model every node, the lowest first, and cut off what its model is not worse than."""
        tree, equal = self.grown_, EQUAL * self._spread
        path = tree.decision_path(X.astype(np.float32)).tocsc()
        self.lines_: dict[int, Line] = {}
        #: of every node: whether it is a leaf now, the dimensions cut below, and what its leaves
        #: have: the mean absolute error and the parameters, a cut being one
        self._whole: dict[int, bool] = {}
        tested: dict[int, np.ndarray] = {}
        left: dict[int, tuple[float, int]] = {}
        for node in reversed(range(tree.node_count)):  # children come after their parents
            rows = np.sort(path.indices[path.indptr[node] : path.indptr[node + 1]])
            kids = [int(tree.children_left[node]), int(tree.children_right[node])]
            calm = kids[0] < 0 or np.sqrt(max(0.0, tree.impurity[node])) < CALM * self._spread
            below = [] if calm else [*(tested[kid] for kid in kids), tree.feature[[node]]]
            tested[node] = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *below]))
            line = _line(X[rows][:, tested[node]], y[rows], tested[node], equal)
            self.lines_[node] = line
            self._whole[node], left[node] = True, (line.error, line.parameters)
            if not calm:
                error = sum(left[kid][0] * tree.n_node_samples[kid] for kid in kids) / len(rows)
                parameters = sum(left[kid][1] for kid in kids) + 1
                split = adjusted(error, len(rows), parameters)
                if adjusted(line.error, len(rows), line.parameters) > split + equal:
                    self._whole[node], left[node] = False, (error, parameters)

    def _smooth(self, width: int) -> None:
        """Mix each model with the smoothed ones above, from the root down to the leaves left."""
        tree, k = self.grown_, self.smoothing
        waiting: list[tuple[int, list[tuple[int, np.ndarray]]]] = [(0, [])]
        while waiting:
            node, above = waiting.pop()
            mixed = self.lines_[node].dense(width)
            if not self._whole[node]:
                kids = (int(tree.children_left[node]), int(tree.children_right[node]))
                waiting += [(kid, [*above, (node, mixed)]) for kid in kids]
                continue
            count = int(tree.n_node_samples[node])
            for parent, weights in reversed(above):
                mixed = (count * mixed + k * weights) / (count + k)
                count = int(tree.n_node_samples[parent])
            self.leaves_[node] = mixed

    def _reached(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf, of those left, that each row comes to."""
        tree, X32 = self.grown_, X.astype(np.float32)
        place = np.zeros(len(X), dtype=np.intp)
        ends = np.zeros(tree.node_count, dtype=bool)
        ends[list(self.leaves_)] = True
        moving = np.flatnonzero(~ends[place])
        while len(moving):
            node = place[moving]
            left = X32[moving, tree.feature[node]] <= tree.threshold[node]
            place[moving] = np.where(left, tree.children_left[node], tree.children_right[node])
            moving = moving[~ends[place[moving]]]
        return place


def _line(X: np.ndarray, y: np.ndarray, terms: np.ndarray, equal: float) -> Line:
    """Return the least-squares model without the terms that do not pay."""
    centre, mean = X.mean(axis=0), float(y.mean())
    kept = _paying(X - centre, y - mean, equal)
    weights = np.linalg.lstsq(X[:, kept] - centre[kept], y - mean, rcond=None)[0]
    offset = mean - float(centre[kept] @ weights)
    rest = y - mean - (X[:, kept] - centre[kept]) @ weights
    return Line(terms[kept], weights, offset, _mean_error(rest))


def _paying(X: np.ndarray, y: np.ndarray, equal: float) -> np.ndarray:
    """Return the columns to keep: the weakest go, one by one, while the adjusted error falls."""
    from scipy.linalg import qr, solve_triangular

    if not X.shape[1]:
        return np.arange(0)
    q, r, order = qr(X, mode="economic", pivoting=True)
    size = np.abs(r.diagonal())
    rank = int((size > RANK * size[0]).sum())
    inverse = solve_triangular(r[:rank, :rank], np.eye(rank))
    spread, weights = inverse @ inverse.T, inverse @ (q[:, :rank].T @ y)
    kept, rest = order[:rank], y - q[:, :rank] @ (q[:, :rank].T @ y)
    error = adjusted(_mean_error(rest), len(y), rank + 1)
    while len(kept):
        weak = int(np.argmin(weights**2 / spread.diagonal()))
        # without a term, the others take over what they share with it
        change = spread[:, weak] * (weights[weak] / spread[weak, weak])
        without = rest + X[:, kept] @ change
        fewer = adjusted(_mean_error(without), len(y), len(kept))
        if fewer > error + equal:
            break
        spread = spread - np.outer(spread[:, weak], spread[weak]) / spread[weak, weak]
        left = np.delete(np.arange(len(kept)), weak)
        spread, weights, kept = spread[np.ix_(left, left)], (weights - change)[left], kept[left]
        rest, error = without, fewer
    return np.sort(kept)


def adjusted(error: float, rows: int, parameters: int) -> float:
    """Return an error raised for the parameters it was reached with; infinite for too many.

    >>> adjusted(1.0, rows=3, parameters=1)
    2.0
    """
    if rows <= parameters:
        return float(np.inf)
    return error * (rows + parameters) / (rows - parameters)


def _mean_error(rest: np.ndarray) -> float:
    return float(np.abs(rest).mean())
