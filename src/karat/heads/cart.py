"""scikit-learn's decision trees, grown by compiled loops: the same trees in less time.

Without numba (``pip install "karat[fast]"``), and wherever it is not certain that the tree is the
same to the bit, scikit-learn grows it. Where values of a feature are equal and sums of ``y`` are
rounded, the order of equals matters and is made by scikit-learn's steps, which saves no time.
"""

from __future__ import annotations

import platform
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.heads import cart_loops as loops

#: the criteria that are compiled, and their numbers
CRITERIA = {"entropy": loops.ENTROPY, "gini": loops.GINI, "squared_error": loops.SQUARES}
#: with fewer numbers in X, ten trees take no longer than loading numba; with more, they and their
#: orders would fill more than half a GB
SMALLEST, LARGEST = 100_000, 2**26
#: the scikit-learn whose steps are followed, and the processors where neither side fuses a product
#: with a sum
KNOWN, MACHINES = "1.9.", ("x86_64", "AMD64")
#: squares of larger numbers could leave the range of a float
HUGE = 1e100


class Problem(NamedTuple):
    """What a tree is grown from.

    ``values`` and ``order`` have a row per feature. ``codes`` are the classes. ``scores`` is k², or
    k log₂ k in whole steps, and ``shares`` 1 / k, from 0 on. ``exact`` says that sums of ``y`` and
    of its squares are not rounded, in whatever order.
    """

    values: np.ndarray
    order: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    scores: np.ndarray
    shares: np.ndarray
    criterion: int
    smallest_leaf: int
    deepest: int
    exact: bool


class Work(NamedTuple):
    """Room to work in.

    ``samples`` are the rows of the nodes in scikit-learn's order; ``value`` and ``target`` those of
    the feature at hand, in its order. ``sums`` are those of a node's ``y`` and of its squares, and
    ``counts`` the members of classes in it, and left and right of a cut.
    """

    features: np.ndarray
    constants: np.ndarray
    visits: np.ndarray
    samples: np.ndarray
    spare: np.ndarray
    value: np.ndarray
    target: np.ndarray
    is_left: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    state: np.ndarray
    stack: np.ndarray


class Grown(NamedTuple):
    """The nodes of a tree: whole numbers; thresholds and impurities; sums or members of classes."""

    links: np.ndarray
    reals: np.ndarray
    totals: np.ndarray


class CartClassifier(DecisionTreeClassifier):
    """scikit-learn's tree for classes; its nodes and answers are the same."""

    def __init__(
        self,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            criterion=criterion,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Grow the tree."""
        labels = np.asarray(y)
        if sample_weight is not None or not _is_for_loops(self, X, labels) or not _is_plain(labels):
            return super().fit(X, y, sample_weight, check_input)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.n_classes_ = np.int64(len(self.classes_))
        return _grow(self, X, np.zeros(len(codes)), codes.astype(np.int64), len(self.classes_))


class CartRegressor(DecisionTreeRegressor):
    """scikit-learn's tree for numbers; its nodes and answers are the same."""

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            criterion=criterion,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Grow the tree."""
        given = np.asarray(y)
        fine = given.dtype.kind in "iuf" and bool((np.abs(given) < HUGE).all())
        if sample_weight is not None or not fine or not _is_for_loops(self, X, given):
            return super().fit(X, y, sample_weight, check_input)
        numbers = np.ascontiguousarray(given, dtype=np.float64)
        return _grow(self, X, numbers, np.zeros(len(numbers), np.int64), 1)


def _is_for_loops(tree: Any, X: Any, y: np.ndarray) -> bool:
    """Whether the loops can grow this tree, and grow it as scikit-learn would."""
    depth, leaf = tree.max_depth, tree.min_samples_leaf
    return (
        sklearn.__version__.startswith(KNOWN)
        and platform.machine() in MACHINES
        and type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.kind in "iuf"
        and SMALLEST <= X.size <= LARGEST
        and y.shape == X.shape[:1]
        and tree.criterion in CRITERIA
        and (depth is None or (isinstance(depth, Integral) and int(depth) > 0))
        and (isinstance(leaf, Integral) and int(leaf) > 0)
        and isinstance(tree.random_state, Integral)
        and bool((np.abs(X) <= np.finfo(np.float32).max).all())
        and loops.grower() is not None
    )


def _is_plain(labels: np.ndarray) -> bool:
    texts = labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
    return texts or labels.dtype.kind in "iubU"


def _grow(tree: Any, X: np.ndarray, y: np.ndarray, codes: np.ndarray, classes: int) -> Any:
    """Grow the tree of an estimator and return the estimator, fitted."""
    grower = loops.grower()
    assert grower is not None
    work = _work(tree, X.shape, classes)
    leaf = (-1, -1, -2, 0, 0), (-2.0, 0.0), (0.0,) * classes
    grown = Grown(*(np.tile(part, (2 * len(y), 1)) for part in leaf))
    count, depth = grower(_problem(tree, X, y, codes), work, grown)
    tree.n_features_in_ = tree.max_features_ = X.shape[1]
    tree.n_outputs_ = 1
    tree.tree_ = _planted(Grown(*(part[:count] for part in grown)), X.shape[1], depth)
    return tree


def _problem(tree: Any, X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> Problem:
    values = np.ascontiguousarray(X.T, dtype=np.float32)
    order = np.empty(values.shape, np.uint32)
    for feature, column in enumerate(values):
        order[feature] = np.argsort(column)
    k = np.arange(1, len(y) + 1)
    scores = k**2 if tree.criterion == "gini" else np.rint(k * np.log2(k) * loops.STEPS)
    return Problem(
        values,
        order,
        y,
        codes,
        scores=np.concatenate([[0], scores]).astype(np.int64),
        shares=np.concatenate([[0.0], 1 / k]),
        criterion=CRITERIA[tree.criterion],
        smallest_leaf=int(tree.min_samples_leaf),
        deepest=len(y) if tree.max_depth is None else int(tree.max_depth),
        exact=_adds_exactly(y),
    )


def _work(tree: Any, shape: tuple[int, ...], classes: int) -> Work:
    from sklearn.utils import check_random_state

    rows, features = shape
    #: as scikit-learn seeds its own generator
    seed = check_random_state(int(tree.random_state)).randint(0, 2**31 - 1)
    return Work(
        features=np.arange(features),
        constants=np.zeros(features, np.int64),
        visits=np.zeros(features, np.int64),
        samples=np.arange(rows, dtype=np.uint32),
        spare=np.empty(rows, np.uint32),
        value=np.empty(rows, np.float32),
        target=np.empty(rows),
        is_left=np.empty(rows, np.bool_),
        sums=np.zeros(2),
        counts=np.zeros((3, classes), np.int64),
        state=np.array([seed], np.int64),
        stack=np.empty((2 * rows.bit_length() + 2, 3), np.int64),
    )


def _adds_exactly(y: np.ndarray) -> bool:
    """Whether all are whole eighths, and few and small enough that no sum of squares is rounded."""
    eighths = y * 8
    return bool((eighths == np.rint(eighths)).all() and (eighths**2).sum() < 2**52)


def _planted(grown: Grown, features: int, depth: int) -> Any:
    """Return scikit-learn's tree of these nodes."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    links, reals, totals = grown
    rows = links[:, loops.ROWS]
    nodes = np.zeros(len(links), NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = links[:, loops.LEFT], links[:, loops.RIGHT]
    nodes["feature"], nodes["threshold"] = links[:, loops.FEATURE], reals[:, 0]
    nodes["impurity"], nodes["missing_go_to_left"] = reals[:, 1], links[:, loops.MOST_LEFT]
    nodes["n_node_samples"] = nodes["weighted_n_node_samples"] = rows
    values = np.ascontiguousarray((totals / rows[:, None])[:, None])
    tree = Tree(features, np.array([totals.shape[1]], np.intp), 1)
    state = {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    tree.__setstate__(state)
    return tree
