"""The heads for vectors of nodes against scikit-learn's ``cross_val_score`` over the same folds.

Ten folds of made-up vectors, one thread, CPU seconds of the same run; what numba compiles is there
before. Every head is fitted on its own, as a task has it; only ``best-of`` shares what its
candidates have in common.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.execute import one_thread
from karat.registry import build, heads

ROWS, DIMENSIONS, CLASSES, FOLDS = 2000, 200, 3, 10
C = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: how many times less CPU is wanted
LIMIT = 1.5
#: so many rows are learned from before the clock runs, since trees of fewer need nothing compiled
FIRST = 500

CLASSIFIERS: list[tuple[dict[str, Any], Any]] = [
    ({"use": "nb"}, GaussianNB()),
    ({"use": "knn", "n_neighbors": 3}, KNeighborsClassifier(3)),
    ({"use": "tree"}, DecisionTreeClassifier(criterion="entropy", random_state=0)),
    *(({"use": "svm", "C": value}, SVC(C=value)) for value in C),
]
REGRESSORS: list[tuple[dict[str, Any], Any]] = [
    ({"use": "linear"}, LinearRegression()),
    ({"use": "knn", "n_neighbors": 3}, KNeighborsRegressor(3)),
    ({"use": "tree"}, DecisionTreeRegressor(random_state=0)),
]


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    X, y, numbers = _problem()
    with one_thread():
        for kind, truth, chosen in (
            ("classes", y, CLASSIFIERS),
            ("numbers", numbers, REGRESSORS),
        ):
            folds = list((StratifiedKFold if kind == "classes" else KFold)(FOLDS).split(X, truth))
            ours, plain = _compared(X, truth, kind, chosen, folds)
            what = f"{len(chosen)} heads for {kind}, {FOLDS} folds, CPU"
            yield what, ours / plain, 1 / LIMIT, "×", "cross_val_score of the same"
        yield _nested(X, y)


def _problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vectors of classes that overlap, and numbers that hang on the vectors."""
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    centres = rng.standard_normal((CLASSES, DIMENSIONS)) * (2.2 / np.sqrt(DIMENSIONS))
    X = rng.standard_normal((ROWS, DIMENSIONS)) + centres[y]
    numbers = X @ rng.standard_normal(DIMENSIONS) + 3 * rng.standard_normal(ROWS)
    return X, y, numbers


def _compared(
    X: np.ndarray,
    truth: np.ndarray,
    kind: str,
    chosen: list[tuple[dict[str, Any], Any]],
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[float, float]:
    """Return the seconds of all our heads and of all of scikit-learn's; say those of each."""
    scoring = "accuracy" if kind == "classes" else "neg_root_mean_squared_error"
    totals = np.zeros(2)
    for told, plain in chosen:
        _ours(X, truth, kind, told, [(np.arange(FIRST), np.arange(FIRST, FIRST + 50))])
        begun = time.process_time()
        wanted = cross_val_score(plain, X, truth, cv=folds, scoring=scoring)
        middle = time.process_time()
        got = _ours(X, truth, kind, told, folds)
        seconds = np.array([time.process_time() - middle, middle - begun])
        totals += seconds
        differ = int((np.abs(got - wanted) > 1e-12 * np.abs(wanted).max()).sum())
        print(
            f"  {' '.join(map(str, told.values()))}: {seconds[0]:.2f} s, plain {seconds[1]:.2f} s; "
            f"{seconds[1] / seconds[0]:.1f} ×; {abs(np.mean(wanted)):.4f}; {differ} folds differ"
        )
        assert not differ, (got, wanted)
    return float(totals[0]), float(totals[1])


def _ours(
    X: np.ndarray,
    truth: np.ndarray,
    kind: str,
    told: Mapping[str, Any],
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    params = {name: value for name, value in told.items() if name != "use"}
    scores = []
    for train, test in folds:
        offers = {"kind": kind, "random_state": 0}
        head = build("head", heads.get(told["use"]), params, offers)
        head.fit(X[train], truth[train])
        given = head.predict(X[test])
        if kind == "classes":
            scores.append(np.mean(given == truth[test]))
        else:
            scores.append(-np.sqrt(np.mean((given - truth[test]) ** 2)))
    return np.array(scores)


def _nested(X: np.ndarray, y: np.ndarray) -> tuple[str, float, float, str, str]:
    """Compare the choice of C by five inner folds with that of a grid search."""
    params = {"heads": [{"use": "svm", "C": list(C)}]}
    head = build("head", heads.get("best-of"), params, {"kind": "classes", "random_state": 0})
    begun = time.process_time()
    head.fit(X, y)
    middle = time.process_time()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(), {"C": C}, cv=folds).fit(X, y)
    seconds = middle - begun, time.process_time() - middle
    assert np.allclose(head.scores_, search.cv_results_["mean_test_score"], rtol=0, atol=1e-12)
    assert head.choice_["C"] == search.best_params_["C"]
    print(f"  {head.notes_[0]}: {seconds[0]:.2f} s, grid search {seconds[1]:.2f} s")
    ratio = seconds[0] / seconds[1]
    return "best-of 7 C by 5 inner folds, CPU", ratio, 1 / LIMIT, "×", "GridSearchCV of the same"


def main() -> None:
    for what, value, limit, unit, against in measure():
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<46}{value:>8.4f} {unit:<3}{limit:>8.4f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
