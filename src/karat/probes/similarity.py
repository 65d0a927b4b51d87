"""The similarity probe, and similarity measures: scikit-learn's by name, or a function.

Higher means more similar: distances are negated, or become 1 / (1 + distance) where a similarity
must not be negative. A custom function takes two vectors and returns their similarity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from karat.core.columns import Bags
from karat.core.dataset import QUERY, Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions
from karat.core.registry import measures, probe
from karat.errors import ContractError, DataError, DefinitionError, did_you_mean

#: distances that divide by the variances or the covariance of all vectors
SCALED = ("seuclidean", "mahalanobis")
#: vectorized measures
MEASURES = ("cosine", "dot", "euclidean", "manhattan")
#: number of values of a block of vectors, small enough for the processor cache
BLOCK = 2**17
#: largest number of items whose matches are in memory
ITEMS = 4096
#: how to compare bags: by mean vectors, by each item's best match in the other bag, or by the best
BAGS = ("mean", "matches", "weighted-matches", "max")
#: the predicted similarity of questions without vectors, if they are penalized
UNKNOWN = ("last", "random-last", "mean")


def _similarities(a: Any, b: Any, names: Iterable[str], apart: Any = None) -> dict[str, np.ndarray]:
    """Return similarities of rows by several of ``MEASURES``, for which they are read once.

    The cosine is 0 where a vector is zero. Of two equal vectors it is exactly 1, so that such pairs
    tie. Distances are negated. ``apart`` is memory for differences, which may be that of ``a``.
    """
    dot = partial(np.einsum, "ij,ij->i")
    a, b = _as_float64(a), _as_float64(b)
    values, names = {}, set(names)
    if names & {"cosine", "dot"}:
        values["dot"] = products = dot(a, b)
    if "cosine" in names:
        one, other = dot(a, a), dot(b, b)
        lengths = np.where(one == other, one, np.sqrt(one) * np.sqrt(other))
        cosines = np.divide(products, lengths, out=np.zeros(len(a)), where=lengths > 0)
        values["cosine"] = np.clip(cosines, -1, 1)
    if names & {"euclidean", "manhattan"}:
        apart = np.subtract(a, b, out=apart)
    if "euclidean" in names:
        values["euclidean"] = -np.sqrt(dot(apart, apart))
    if "manhattan" in names:
        values["manhattan"] = -np.abs(apart, out=apart).sum(axis=1)
    return values


class Measure:
    """The similarity of two vectors, for pairs of rows and for all rows of two matrices."""

    def __init__(self, measure: str | Callable[..., Any]) -> None:
        self.given = measure
        if (
            isinstance(measure, str)
            and not _is_name(measure)
            and (":" in measure or measure in measures)
        ):
            measure = measures.get(measure)
        if not isinstance(measure, str) and not callable(measure):
            raise DefinitionError(f"probe: measure must be a name or a function, got {measure!r}.")
        self.own = None if isinstance(measure, str) else measure
        self.name = measure if isinstance(measure, str) else ""
        #: variances or covariance of the vectors, for the distances that divide by them
        self.arguments: dict[str, np.ndarray] | None = None
        if self.own is None and not _is_name(self.name):
            measure_names = [*names(), *measures]
            raise DefinitionError(
                f'probe: unknown similarity measure "{self.name}".'
                f"{did_you_mean(self.name, measure_names)} Available: {', '.join(measure_names)}; "
                f'or write "package.module:function".'
            )

    def fit(self, matrix: np.ndarray) -> None:
        """Estimate the variances or the covariance that some distances divide by."""
        self.arguments = metric_arguments(self.name, _as_float64(matrix))

    def rows(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the similarity of each row of one matrix to the same row of the other."""
        if self.name in MEASURES:
            return _similarities(a, b, [self.name])[self.name]
        a, b = _as_float64(a), _as_float64(b)
        distance = self._distances(a, b)
        pairs = zip(a, b, strict=True)
        return np.array([self._one(one, other, distance) for one, other in pairs], dtype=float)

    def table(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the similarity of every row of one matrix to every row of the other, at least -1.

        Distances become 1 / (1 + distance), so that multiplying by a weight below 1 never increases
        a similarity.
        """
        a, b = _as_float64(a), _as_float64(b)
        if self.own is not None:
            function = self.own
            return np.array(
                [[checked_similarity(function, one, other) for other in b] for one in a]
            )
        if self.name == "cosine":  # first, as it needs no scikit-learn
            return unit_rows(a, np.float64) @ unit_rows(b, np.float64).T
        if self.name in _kernels():
            from sklearn.metrics.pairwise import pairwise_kernels

            return np.asarray(pairwise_kernels(a, b, metric=_kernels()[self.name]))
        distances = self._distances(a, b)(a, b)
        return 1.0 - distances if self.name == "correlation" else 1.0 / (1.0 + distances)

    def _one(self, a: np.ndarray, b: np.ndarray, distance: Callable[..., Any]) -> float:
        if self.own is None:
            if self.name in _kernels():
                return float(self.table(a[None], b[None])[0, 0])
            return -float(distance(a[None], b[None])[0, 0])
        return checked_similarity(self.own, a, b)

    def _distances(self, a: np.ndarray, b: np.ndarray) -> Callable[..., Any]:
        """Return the distance, fitted on these vectors unless it was fitted before."""
        if self.arguments is not None:
            return _distances(self.name, self.arguments)
        both = np.concatenate([a, b]) if self.name in SCALED else a
        return _distances(self.name, metric_arguments(self.name, both))


@lru_cache(maxsize=1)
def _is_name(name: str) -> bool:
    return name in MEASURES or name in names()  # the second imports scikit-learn


def names() -> list[str]:
    """Return the names of all measures: ours, and scikit-learn's distances and kernels."""
    return list(dict.fromkeys([*MEASURES, *distance_names(), *sorted(_kernels())]))


@lru_cache(maxsize=1)
def _kernels() -> dict[str, str]:
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return {"dot": "linear", **{n: n for n in PAIRWISE_KERNEL_FUNCTIONS if n != "cosine"}}


def _distances(name: str, arguments: dict[str, np.ndarray]) -> Callable[..., Any]:
    from scipy.spatial.distance import cdist
    from sklearn.metrics.pairwise import pairwise_distances

    if name in ("l1", "l2", "manhattan", "nan_euclidean", "p", "haversine"):
        return partial(pairwise_distances, metric=name)
    # a zero vector has the distance of an unrelated one
    return lambda a, b: np.nan_to_num(cdist(a, b, metric=name, **arguments), nan=1.0)


def _as_float64(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix, dtype=np.float64)


@probe("similarity")
class Similarity:
    """Predict the similarity of the vectors of two fields.

    ``measure`` is a name (any distance or kernel of scikit-learn) or a function of two vectors that
    returns a similarity. Bags of items are compared by their weighted means, or with ``bags:
    matches`` by the mean, over the items of both bags, of the best match in the other bag; with
    ``weighted-matches`` every match is multiplied by the weights of its two items. With ``max`` it
    is the highest similarity of an item of one bag to one of the other.

    If a task penalizes missing vectors, such questions are less similar than all others
    (``unknown: last``, for rankings) or have the mean similarity (``unknown: mean``, for
    correlations). With ``last`` they are tied; with ``random-last`` they have a random order,
    always the same, except in groups without any vector, where they stay tied.
    ``measures`` are those of all probes on the same data, which ``share`` their similarities.
    """

    def __init__(
        self,
        measure: str | Callable[..., Any] = "cosine",
        bags: str = "mean",
        unknown: str = "last",
        measures: Sequence[str] = (),
        share: Callable[..., Any] | None = None,
    ) -> None:
        for name, value, allowed in (("bags", bags, BAGS), ("unknown", unknown, UNKNOWN)):
            if value not in allowed:
                raise DefinitionError(
                    f'probe: {name} must be one of {", ".join(allowed)}, got "{value}".'
                )
        self.unknown = unknown
        self.measure = Measure(measure)
        self.bags = bags
        self.measures = measures
        self.share = share
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector in every field."""
        if len(data.fields) != 2:
            raise DefinitionError(
                f"probe: similarity needs two fields; {data.name} has {len(data.fields)}."
            )
        answerable = vectors.answerable(data)
        self.groups_ = None if data.group is None else np.unique(np.asarray(data.group)[answerable])
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Remember the vectors, of which probes share what they compute."""
        self.vectors_ = vectors

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the similarity of each question's two items."""
        if self.measure.name in SCALED:
            self.measure.fit(vectors.matrix[~np.isnan(vectors.matrix[:, 0])])
        compare = {"mean": self._means, "max": self._highest}.get(self.bags, self._matches)
        scores = compare(test, vectors)
        self.lowest_, self.mean_ = float(scores.min()), float(scores.mean())
        return self._predictions(test, scores)

    def _means(self, test: Dataset, vectors: Vectors) -> np.ndarray:
        measure, share = self.measure.name, self.share
        if measure not in MEASURES:
            rows = self.measure.rows
            return np.concatenate(_in_blocks(test, vectors, lambda a, b: rows(a.copy(), b.copy())))
        if share is None or vectors is not self.vectors_:
            return np.asarray(mean_similarities(test, vectors, [measure])[measure])
        names = sorted({measure, *self.measures} & {*MEASURES})
        make = partial(mean_similarities, test, vectors, names)
        return np.array(share(test.mentions_digest, f"similarities {names}", make)[measure])

    def _highest(self, test: Dataset, vectors: Vectors) -> np.ndarray:
        scores = np.full(len(test), -np.inf)
        one, other = (test.mentions(name) for name in test.fields)
        for row in range(len(test)):
            a, b = (bags.rows[slice(*bags.offsets[row : row + 2])] for bags in (one, other))
            sides = [vectors.at(part[vectors.known(part)]) for part in (a, b)]
            pairs = (
                np.repeat(sides[0], len(sides[1]), axis=0),
                np.tile(sides[1], (len(sides[0]), 1)),
            )
            scores[row] = self.measure.rows(*pairs).max()
        return scores

    def _matches(self, test: Dataset, vectors: Vectors) -> np.ndarray:
        weighted = self.bags == "weighted-matches"
        items = [np.unique(test.mentions(name).rows) for name in test.fields]
        if max(map(len, items)) > ITEMS and len(test) > 1:
            halves = np.array_split(np.arange(len(test)), 2)
            return np.concatenate([self._matches(test.take(half), vectors) for half in halves])
        one, other = (_Sets(test.mentions(name), vectors, weighted) for name in test.fields)
        return match(one, other, lambda a, b: self.measure.table(vectors.at(a), vectors.at(b)))

    def unanswered(self, test: Dataset) -> Predictions:
        """Return a similarity below all others, or the mean of them."""
        lowest = getattr(self, "lowest_", 0.0)
        below = min(lowest - 1.0, np.nextafter(lowest, -np.inf))
        value = getattr(self, "mean_", 0.0) if self.unknown == "mean" else below
        scores = np.full(len(test), value)
        if self.unknown == "random-last":
            order = np.random.default_rng(0).permutation(len(test))
            groups = getattr(self, "groups_", None)
            has_group = True if groups is None else np.isin(np.asarray(test.group), groups)
            # steps that floating point can represent at this size
            scores -= np.where(has_group, order * max(1.0, np.spacing(abs(below))), 0.0)
        return self._predictions(test, scores)

    def _predictions(self, test: Dataset, scores: np.ndarray) -> Predictions:
        return Predictions(
            predictions=scores,
            target=np.asarray(test.target),
            truths=test.target_type,
            classes=tuple(str(label) for label in test.classes),
            group=test.group,
            weight=test.weight,
        )


def _in_blocks(test: Dataset, vectors: Vectors, compare: Callable[..., Any]) -> list[Any]:
    """Compare the 64-bit vectors of the two fields, of some questions at a time."""
    fields = [(test.mentions(name), QUERY in test.role_of(name)) for name in test.fields]
    width = vectors.matrix.shape[1]
    step, blocks = max(1, BLOCK // width), []
    buffers = np.empty((2, step, width))  # new memory for each block would take longer
    for start in range(0, len(test), step):
        rows = np.arange(start, min(start + step, len(test)))
        for buffer, (bags, query) in zip(buffers, fields, strict=True):
            buffer[: len(rows)] = vectors.means(bags.take(rows), query, read=True)
        blocks.append(compare(*buffers[:, : len(rows)]))
    return blocks


def mean_similarities(test: Dataset, vectors: Vectors, names: Sequence[str]) -> Any:
    """Return the similarities of each question's two items by several of ``MEASURES``."""
    blocks = _in_blocks(test, vectors, lambda a, b: _similarities(a, b, names, apart=a))
    return {name: np.concatenate([block[name] for block in blocks]) for name in names}


class _Sets:
    """The items with vectors of distinct bags; questions often repeat the same few bags."""

    def __init__(self, bags: Bags, vectors: Vectors, weighted: bool) -> None:
        has_vector = vectors.known(bags.rows)
        bag = np.repeat(np.arange(len(bags.offsets) - 1), np.diff(bags.offsets))[has_vector]
        rows, weights = bags.rows[has_vector], bags.weights[has_vector]
        ends = np.searchsorted(bag, np.arange(len(bags.offsets)))
        cells = [slice(ends[i], ends[i + 1]) for i in range(len(ends) - 1)]
        keys = [rows[cell].tobytes() + weights[cell].tobytes() for cell in cells]
        set_number: dict[bytes, int] = {}
        self.which = np.array([set_number.setdefault(key, len(set_number)) for key in keys])
        first = np.unique(self.which, return_index=True)[1]
        self.sizes = np.array([cells[i].stop - cells[i].start for i in first])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.rows = np.concatenate([rows[cells[i]] for i in first])
        self.weights = np.concatenate([weights[cells[i]] for i in first])
        if not weighted:
            self.weights = np.ones(len(self.rows))


def match(
    one: _Sets, other: _Sets, table: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return, for each question, the mean best match over the items of its two bags."""
    items, position = np.unique(np.concatenate([one.rows, other.rows]), return_inverse=True)
    of_one, of_other = (position[: len(one.rows)], one), (position[len(one.rows) :], other)
    scores = table(items, items)
    total = _best(scores, of_one, of_other) + _best(scores, of_other, of_one).T
    similarities = total / (one.sizes[:, None] + other.sizes)
    return np.asarray(similarities[one.which, other.which])


def _best(
    scores: np.ndarray, one: tuple[np.ndarray, _Sets], other: tuple[np.ndarray, _Sets]
) -> np.ndarray:
    """Return, for all pairs of bags, the sum over the items of one of their best in the other."""
    (rows, bags), (columns, others) = one, other
    best = np.maximum.reduceat(scores[:, columns] * others.weights, others.starts, axis=1)
    return np.asarray(np.add.reduceat(best[rows] * bags.weights[:, None], bags.starts, axis=0))


def distance_names() -> list[str]:
    """Return the distances of scikit-learn that need at most the vectors as an argument."""
    from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
    from sklearn.neighbors import VALID_METRICS

    other = {"precomputed", "wminkowski"}  # a matrix of distances, weights
    return sorted({*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"], "mahalanobis"} - other)


def metric_arguments(name: str, X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arguments of a distance between these vectors; most have none.

    ``seuclidean`` divides by the variance of each dimension, ``mahalanobis`` by the covariance;
    ``haversine`` needs two dimensions, latitude and longitude in radians.
    """
    rows, columns = X.shape
    if name == "haversine" and columns != 2:
        raise DataError(
            f"the metric haversine needs vectors of 2 dimensions (latitude and longitude in "
            f"radians), got {columns}; choose another metric."
        )
    if name == "seuclidean":
        variance = X.var(axis=0, ddof=1) if rows > 1 else np.ones(columns)
        return {"V": np.where(variance > 0, variance, 1.0)}
    if name != "mahalanobis":
        return {}
    covariance = np.atleast_2d(np.cov(X.T)) if rows > columns else np.zeros((columns, columns))
    if np.linalg.matrix_rank(covariance) < columns:
        raise DataError(
            f"the metric mahalanobis needs a covariance that can be inverted, which {rows} vectors "
            f"of {columns} dimensions do not give; choose another metric, such as seuclidean."
        )
    return {"VI": np.linalg.inv(covariance)}


def checked_similarity(function: Callable[..., Any], one: np.ndarray, other: np.ndarray) -> float:
    """Return the similarity of two vectors by a custom function; it must be a finite number."""
    value = function(one, other)
    try:
        valid = np.ndim(value) == 0 and bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        name = getattr(function, "__name__", "the function")
        raise ContractError(
            f"{name} must return one finite similarity for two vectors, got {value!r}."
        )
    return float(value)
