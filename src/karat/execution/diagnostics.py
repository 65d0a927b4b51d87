"""Statistics of a job's vectors, and a small sample of them for a scatter plot.

Of many items, an evenly spaced sample is used, except to find constant dimensions.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from karat.dataset import Dataset
from karat.predictions import as_text
from karat.twins import numbered
from karat.vectors import Vectors

#: maximum number of sampled values of train and of test vectors, and of values read at once
MOST_NUMBERS = 2**20
#: maximum number of items compared with each other
MOST_COMPARED = 1_000
#: a dimension is nearly dead if its range is below this share of its largest value
NEARLY = 1e-4
#: the scatter plot: number of items, components and labels
SAMPLE, COMPONENTS, LABELS = 300, 16, 30
#: variances and scores below these shares of the largest are rounding errors
FLAT, TINY = 1e-10, 1e-9
#: for these estimators ``max_iter`` is the number of trees, which is always reached
GROWN = "HistGradientBoosting"

Side = tuple[Dataset, Vectors]


def observe(train: Side, test: Side) -> dict[str, Any]:
    """Return statistics of the train and test vectors of a fold.

    Of the ``dimensions``, ``constant`` are equal for all items and ``nearly_dead`` vary by less
    than 1/10,000 of their size. Of the sampled ``items``, ``zero`` are all zeros; ``lengths`` are
    the 1st, 50th and 99th percentile of the norms. Of the ``compared`` test items, ``same`` have
    the vector of an item with other cells.
    """
    width = int(train[1].matrix.shape[1])
    parts = [(vectors.matrix, _places(data, vectors)) for data, vectors in (train, test)]
    parts = [(matrix, places) for matrix, places in parts if len(places)]
    facts: dict[str, Any] = {"dimensions": width}
    if parts:
        looked = [matrix[evenly(places, MOST_NUMBERS // width)] for matrix, places in parts]
        lengths = np.concatenate([_lengths(each) for each in looked])
        facts |= still_dimensions(parts, looked)
        facts |= {"items": len(lengths), "zero": int((lengths == 0).sum())}
        facts["lengths"] = [_short(v) for v in np.percentile(lengths, [1, 50, 99])]
    return facts | dict(zip(("same", "compared"), same_vectors(*test), strict=True))


def _places(data: Dataset, vectors: Vectors) -> np.ndarray:
    """Return the matrix rows of the mentioned items that have a vector."""
    places = np.flatnonzero(np.isin(vectors.rows, data.mentioned(), assume_unique=True))
    return places[~np.isnan(vectors.matrix[places, 0])]


def evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` of the rows, evenly spaced.

    >>> evenly(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    if len(rows) <= max(most, 2):
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(most, 2)).round().astype(int)]


def still_dimensions(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], looked: Sequence[np.ndarray]
) -> dict[str, int]:
    """Return the numbers of constant and nearly constant dimensions over all rows.

    Dimensions that vary in the sample ``looked`` are not read again.
    """
    low = np.min([matrix.min(axis=0) for matrix in looked], axis=0)
    high = np.max([matrix.max(axis=0) for matrix in looked], axis=0)
    left = np.flatnonzero(_still(low, high))
    for matrix, places in parts:
        begin = 0
        while begin < len(places) and len(left):
            end = begin + max(MOST_NUMBERS // len(left), 1)
            block = matrix[np.ix_(places[begin:end], left)]
            low[left] = np.minimum(low[left], block.min(axis=0))
            high[left] = np.maximum(high[left], block.max(axis=0))
            left, begin = left[_still(low[left], high[left])], end
    constant = int((low[left] == high[left]).sum())
    return {"constant": constant, "nearly_dead": len(left) - constant}


def _still(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    largest = np.maximum(np.abs(low), np.abs(high)).astype(float)
    moved = high.astype(float) - low
    return (low == high) | (moved < NEARLY * largest)


def _lengths(matrix: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))


def same_vectors(data: Dataset, vectors: Vectors) -> tuple[int, int]:
    """Return how many items have the vector of an item with other cells, and of how many.

    Entities are compared by id, other items by their cells.
    """
    places = evenly(_places(data, vectors), MOST_COMPARED)
    if len(places) < 2:
        return 0, len(places)
    rows, first = vectors.rows[places], dict[bytes, int]()
    matrix = vectors.matrix[places] + 0.0  # -0 is 0
    vector = np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(matrix)])
    item = rows if data.modality == "entity" else numbered(data.items.iloc[rows])
    pairs = np.unique(np.stack([vector, item]), axis=1)
    several = np.bincount(pairs[0], minlength=vector.max() + 1) > 1
    return int(several[vector].sum()), len(rows)


# -- convergence --------------------------------------------------------------------------------


def unconverged(fitted: Any) -> int:
    """Return how many fitted estimators stopped at their iteration limit."""
    seen: set[int] = set()
    return sum(_hit_limit(estimator) for estimator in _estimators(fitted, seen, 0))


def _estimators(whole: Any, seen: set[int], depth: int) -> Iterator[Any]:
    """Yield an estimator and those it consists of."""
    if whole is None or depth > 4 or id(whole) in seen or len(seen) > 500:
        return
    seen.add(id(whole))
    if isinstance(whole, Mapping | list | tuple):
        inside = list(whole.values()) if isinstance(whole, Mapping) else list(whole)
    else:
        if not hasattr(whole, "fit") or isinstance(whole, type):
            return
        yield whole
        own = getattr(whole, "__dict__", {})
        inside = [value for name, value in own.items() if name.endswith("_") or name == "steps"]
    for each in inside:
        if hasattr(each, "fit") or isinstance(each, Mapping | list | tuple):
            yield from _estimators(each, seen, depth + 1)


def _hit_limit(estimator: Any) -> bool:
    if hasattr(estimator, "converged_"):
        return not np.all(estimator.converged_)
    most, done = getattr(estimator, "max_iter", None), getattr(estimator, "n_iter_", None)
    if not isinstance(most, int) or most < 1 or done is None:
        return False
    return bool(np.max(done, initial=0) >= most) and not type(estimator).__name__.startswith(GROWN)


# -- the scatter plot -----------------------------------------------------------------------


def sample_csv(test: Dataset, vectors: Vectors, seed: int) -> str | None:
    """Return up to 300 test items as ``label,c0,c1,…``: scores on their principal components.

    The items depend on seed and dataset, so all models show the same ones. The label is the
    target; empty for classes beyond the 30 largest. None for questions about several items and
    if all vectors are equal.
    """
    if len(test.fields) != 1 or len(test.mentions(test.fields[0]).rows) != len(test):
        return None
    rng = np.random.default_rng([seed, crc32(f"map {test.name}".encode())])
    chosen = np.sort(rng.permutation(len(test))[:SAMPLE])
    rows = test.mentions(test.fields[0]).rows[chosen]
    known = vectors.known(rows)
    scores = principal(vectors.at(rows[known]).astype(np.float64))
    if not scores.size:
        return None
    labels = _labels(test.take(chosen[known]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["label", *(f"c{i}" for i in range(scores.shape[1]))])
    writer.writerows(
        [label, *(f"{value:.5g}" for value in row)]
        for label, row in zip(labels, scores.tolist(), strict=True)
    )
    return out.getvalue()


def principal(matrix: np.ndarray) -> np.ndarray:
    """Return the scores of rows on their first principal components.

    In each component the score farthest from 0 is positive.

    >>> principal(np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])).ravel().tolist()
    [2.0, 0.0, -2.0]
    """
    if len(matrix) < 2:
        return np.empty((len(matrix), 0))
    centered = matrix - matrix.mean(axis=0)
    if centered.shape[1] <= centered.shape[0]:
        values, axes = np.linalg.eigh(centered.T @ centered)
        scores = centered @ axes
    else:
        values, axes = np.linalg.eigh(centered @ centered.T)
        scores = axes * np.sqrt(np.maximum(values, 0))
    largest = [i for i in np.argsort(-values, kind="stable") if values[i] > FLAT * values.max()]
    scores = scores[:, largest[:COMPONENTS]]
    scores[np.abs(scores) < TINY * np.abs(scores).max(initial=0)] = 0.0
    # of equally distant scores the first counts, independent of rounding
    farthest = (np.abs(scores) / np.abs(scores).max(axis=0, initial=0)).round(9).argmax(axis=0)
    signs = np.sign(scores[farthest, np.arange(scores.shape[1])])
    return np.asarray(scores * signs + 0.0)


def _labels(data: Dataset) -> list[str]:
    if data.truth is None or data.kind == "items":
        return [""] * len(data)
    if data.kind == "numbers":
        return [f"{float(value):.6g}" for value in data.truth]
    texts = [str(text) for text in as_text(data.truth)]
    counts = Counter(texts)
    largest = sorted(counts, key=lambda label: (-counts[label], label))[:LABELS]
    return [label if label in largest else "" for label in texts]


def _short(value: float) -> float:
    return float(f"{value:.6g}")
