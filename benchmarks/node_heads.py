"""Node classification and regression heads against scikit-learn's ``cross_val_score``.

Ten folds of generated vectors, one thread, CPU seconds; numba compiles before the measurement.
The heads on a fold share its vectors and kernels, as the tasks on one dataset do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.core.registry import build, heads
from karat.execution.workers import one_thread

ROWS, DIMENSIONS, CLASSES, FOLDS = 2000, 200, 3, 10
C = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: largest CPU time allowed, relative to scikit-learn; the heads for numbers are scikit-learn's own
LIMIT, LIMIT_NUMBERS = 0.4, 1.1

CLASSIFIERS: list[tuple[dict[str, Any], Any]] = [
    ({"use": "naive-bayes"}, GaussianNB()),
    ({"use": "knn", "n_neighbors": 3}, KNeighborsClassifier(3)),
    ({"use": "decision-tree"}, DecisionTreeClassifier(criterion="entropy", random_state=0)),
    *(({"use": "svm", "C": value}, SVC(C=value)) for value in C),
]
REGRESSORS: list[tuple[dict[str, Any], Any]] = [
    ({"use": "linear-regression"}, LinearRegression()),
    ({"use": "knn", "n_neighbors": 3}, KNeighborsRegressor(3)),
    ({"use": "decision-tree"}, DecisionTreeRegressor(random_state=0)),
]


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    X, y, numbers = _problem()
    with one_thread():
        for kind, target, splitter, chosen, limit in (
            ("classification", y, StratifiedKFold, CLASSIFIERS, LIMIT),
            ("regression", numbers, KFold, REGRESSORS, LIMIT_NUMBERS),
        ):
            folds = list(splitter(FOLDS).split(X, target))
            shared: list[dict[str, Any]] = [{} for _ in folds]
            ours, plain = _compare(X, target, kind, chosen, folds, shared)
            what = f"{len(chosen)} heads for {kind}, {FOLDS} folds, CPU"
            yield what, ours / plain, limit, "×", "cross_val_score of the same"
        yield _nested(X, y)


def _problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vectors, overlapping classes, and noisy linear numbers."""
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    centers = rng.standard_normal((CLASSES, DIMENSIONS)) * (2.2 / np.sqrt(DIMENSIONS))
    X = rng.standard_normal((ROWS, DIMENSIONS)) + centers[y]
    numbers = X @ rng.standard_normal(DIMENSIONS) + 3 * rng.standard_normal(ROWS)
    return X, y, numbers


def _compare(
    X: np.ndarray,
    target: np.ndarray,
    kind: str,
    chosen: list[tuple[dict[str, Any], Any]],
    folds: list[tuple[np.ndarray, np.ndarray]],
    shared: list[dict[str, Any]],
) -> tuple[float, float]:
    """Print the seconds of each head; return the totals of ours and of scikit-learn's."""
    scoring = "accuracy" if kind == "classification" else "neg_root_mean_squared_error"
    totals = np.zeros(2)
    for definition, plain in chosen:
        _scores(X, target, kind, definition, folds[:1], [{}])
        start = time.process_time()
        expected = cross_val_score(plain, X, target, cv=folds, scoring=scoring)
        middle = time.process_time()
        scores = _scores(X, target, kind, definition, folds, shared)
        seconds = np.array([time.process_time() - middle, middle - start])
        totals += seconds
        different = int((np.abs(scores - expected) > 1e-12 * np.abs(expected).max()).sum())
        print(
            f"  {' '.join(map(str, definition.values()))}: {seconds[0]:.2f} s, "
            f"plain {seconds[1]:.2f} s; {seconds[1] / seconds[0]:.1f} ×; "
            f"{abs(np.mean(expected)):.4f}; {different} folds differ"
        )
        assert not different, (scores, expected)
    return float(totals[0]), float(totals[1])


def _scores(
    X: np.ndarray,
    target: np.ndarray,
    kind: str,
    definition: Mapping[str, Any],
    folds: list[tuple[np.ndarray, np.ndarray]],
    shared: list[dict[str, Any]],
) -> np.ndarray:
    params = {name: value for name, value in definition.items() if name != "use"}
    scores = []
    for (train, test), cache in zip(folds, shared, strict=True):
        share = partial(_shared, cache)
        offers = {"kind": kind, "random_state": 0, "share": share}
        head = build("head", heads.get(definition["use"]), params, offers)
        head.fit(share("train", lambda train=train: X[train]), target[train])
        predicted = head.predict(share("test", lambda test=test: X[test]))
        if kind == "classification":
            scores.append(np.mean(predicted == target[test]))
        else:
            scores.append(-np.sqrt(np.mean((predicted - target[test]) ** 2)))
    return np.array(scores)


def _shared(cache: dict[str, Any], name: str, make: Callable[[], Any]) -> Any:
    if name not in cache:
        cache[name] = make()
    return cache[name]


def _nested(X: np.ndarray, y: np.ndarray) -> tuple[str, float, float, str, str]:
    """Compare the choice of C by five inner folds with that of a grid search."""
    params = {"heads": [{"use": "svm", "C": list(C)}]}
    head = build(
        "head", heads.get("best-of"), params, {"kind": "classification", "random_state": 0}
    )
    start = time.process_time()
    head.fit(X, y)
    middle = time.process_time()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(), {"C": C}, cv=folds).fit(X, y)
    seconds = middle - start, time.process_time() - middle
    assert np.allclose(head.scores_, search.cv_results_["mean_test_score"], rtol=0, atol=1e-12)
    assert head.choice_["C"] == search.best_params_["C"]
    print(f"  {head.notes_[0]}: {seconds[0]:.2f} s, grid search {seconds[1]:.2f} s")
    what = "best-of 7 C by 5 inner folds, CPU"
    return what, seconds[0] / seconds[1], LIMIT, "×", "GridSearchCV of the same"


def main() -> None:
    for what, value, limit, unit, against in measure():
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<46}{value:>8.4f} {unit:<3}{limit:>8.4f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
