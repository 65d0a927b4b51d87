"""How the vectors of two encoders on the same items differ, and what is the likely cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.core.embeddings import unit_rows
from karat.core.formatting import rough_percent

#: relative difference of vectors that are equal up to the rounding of 32-bit arithmetic
ROUNDING = 1e-5
#: relative differences of computing in a number format, largest first, and its name
FORMATS = ((0.6, "4-bit weights"), (0.1, "8-bit weights"), (0.018, "bfloat16"), (0.003, "float16"))
#: number of neighbors whose overlap is measured
NEIGHBORS = 10
#: smallest factor between the differences of affected and unaffected items
CONTRAST = 10.0


@dataclass(frozen=True)
class ProbeItems:
    """The items on which vectors are compared: length in words, language and role of each."""

    lengths: np.ndarray
    languages: np.ndarray
    roles: np.ndarray

    @classmethod
    def of(cls, items: Sequence[Any], languages: Any = None, roles: Any = None) -> ProbeItems:
        """Return the facts of items; those that are no texts have length 0."""
        lengths = [len(item.split()) if isinstance(item, str) else 0 for item in items]
        none = np.full(len(items), "", dtype=object)
        return cls(
            np.array(lengths, dtype=float),
            none if languages is None else np.asarray(languages, dtype=object),
            none if roles is None else np.asarray(roles, dtype=object),
        )

    def take(self, chosen: np.ndarray) -> ProbeItems:
        """Return the facts of some items."""
        return ProbeItems(self.lengths[chosen], self.languages[chosen], self.roles[chosen])


@dataclass(frozen=True)
class VectorDifference:
    """What differs between two matrices of vectors.

    ``code`` is "none" (equal up to rounding), "noise" (small and without structure), or the kind
    of a structural difference; ``sentence`` describes it. ``relative`` are the differences of the
    items, relative to the length of the longer vector; NaN where a side has no vector.
    """

    code: str
    sentence: str
    relative: np.ndarray
    cosine: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_structural(self) -> bool:
        """Whether the difference is more than noise."""
        return self.code not in ("none", "noise")


def vector_difference(
    a: np.ndarray,
    b: np.ndarray,
    items: ProbeItems,
    *,
    rounding: float = ROUNDING,
    names: tuple[str, str] = ("A", "B"),
) -> VectorDifference:
    """Return how the rows of ``b`` differ from those of ``a``, with the most specific cause.

    ``rounding`` is the relative difference up to which vectors count as equal; ``names`` are used
    in the description.
    """
    with_a, with_b = ~np.isnan(a).any(axis=1), ~np.isnan(b).any(axis=1)
    both = with_a & with_b
    relative, cosine = np.full((2, len(a)), np.nan)
    if a.shape[1] == b.shape[1]:
        relative[both], cosine[both] = _distances(a[both], b[both])
    if not np.array_equal(with_a, with_b):
        code, sentence = "coverage", _coverage(with_a, with_b, names)
    elif a.shape[1] != b.shape[1]:
        code, sentence = _widths(a[both], b[both], names)
    elif not both.any() or np.nanmax(relative) <= rounding:
        code, sentence = "none", "The vectors are equal up to rounding."
    else:
        pair = _Pair(
            a[both], b[both], relative[both], cosine[both], items.take(both), rounding, names
        )
        code, sentence = pair.cause()
    return VectorDifference(code, sentence, relative, cosine)


def _distances(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = a.astype(np.float64), b.astype(np.float64)
    lengths = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    relative = np.linalg.norm(a - b, axis=1) / np.where(lengths > 0, lengths, 1.0)
    cosine = np.einsum("ij,ij->i", unit_rows(a, np.float64), unit_rows(b, np.float64))
    return relative, np.where(lengths > 0, cosine, 1.0)  # two vectors of zeros are equal


def _coverage(with_a: np.ndarray, with_b: np.ndarray, names: tuple[str, str]) -> str:
    parts = [
        f"{count:,} items have a vector of {one} only"
        for one, count in zip(
            names, ((with_a & ~with_b).sum(), (with_b & ~with_a).sum()), strict=True
        )
        if count
    ]
    return f"{' and '.join(parts)}."


def _widths(a: np.ndarray, b: np.ndarray, names: tuple[str, str]) -> tuple[str, str]:
    """Return the cause of vectors of different length: truncated, or others."""
    wide, narrow, ordered_names = (a, b, names[::-1]) if a.shape[1] > b.shape[1] else (b, a, names)
    width = narrow.shape[1]
    cosine = _distances(wide[:, :width], narrow)[1] if len(a) else np.zeros(1)
    if np.median(cosine) > 0.999:
        return "truncated", (
            f"{ordered_names[0]} has the first {width:,} of the {wide.shape[1]:,} dimensions of "
            f"{ordered_names[1]}."
        )
    return "width", f"{names[0]} has {a.shape[1]:,} dimensions and {names[1]} {b.shape[1]:,}."


@dataclass(frozen=True)
class _Pair:
    """Two matrices of the same shape that are not equal; every row has a vector."""

    a: np.ndarray
    b: np.ndarray
    relative: np.ndarray
    cosine: np.ndarray
    items: ProbeItems
    rounding: float
    names: tuple[str, str]

    def cause(self) -> tuple[str, str]:
        """Return the code and the sentence of the most specific cause."""
        tests = (self._order, self._scale, self._permutation, self._rotation, self._subset)
        for test in (*tests, self._noise):
            if (cause := test()) is not None:
                return cause
        mean = float(np.mean(self.cosine))
        if self._similar_coordinates(mean):
            return "pooling", (
                f"The vectors share coordinates but differ (mean cosine {mean:.2f}): another "
                "pooling, layer, prompt or fine-tuning of one model."
            )
        return "model", (
            f"The vectors have nothing in common (mean cosine {mean:.2f}): another model or "
            "checkpoint."
        )

    def _similar_coordinates(self, mean: float) -> bool:
        """Return whether a vector is nearer to its counterpart than to those of other items."""
        a, b = unit_rows(self.a, np.float64), unit_rows(self.b, np.float64)
        others = (a.sum(axis=0) @ b.sum(axis=0) - self.cosine.sum()) / (len(a) * (len(a) - 1))
        return mean - float(others) > 0.25

    def _order(self) -> tuple[str, str] | None:
        """Find rows that are equal to the vector of another item."""
        similar = unit_rows(self.b, np.float64) @ unit_rows(self.a, np.float64).T
        nearest = similar.argmax(axis=1)
        moved = nearest != np.arange(len(nearest))
        exact = similar.max(axis=1) > 1 - 1e-4
        wrong = moved & exact & (self.cosine < similar.max(axis=1) - 1e-3)
        differs = self.cosine < 1 - 1e-3
        if wrong.sum() < max(3, 0.8 * differs.sum()):
            return None
        shift = (nearest - np.arange(len(nearest)))[wrong]
        values, counts = np.unique(shift, return_counts=True)
        common = int(values[counts.argmax()])
        rows = "1 row" if abs(common) == 1 else f"{abs(common)} rows"
        most = f", most of them {rows} away" if counts.max() > 0.5 * len(shift) else ""
        return "order", (
            f"{wrong.sum():,} of {len(moved):,} vectors of {self.names[1]} belong to another "
            f"item{most}: the rows are in another order."
        )

    def _scale(self) -> tuple[str, str] | None:
        """Find parallel vectors of different lengths."""
        lengths = [np.linalg.norm(side.astype(np.float64), axis=1) for side in (self.a, self.b)]
        used = (lengths[0] > 0) & (lengths[1] > 0)
        if not used.any() or np.quantile(self.cosine[used], 0.02) < 0.9999:
            return None
        ratios = (lengths[1] / np.where(used, lengths[0], 1.0))[used]
        if abs(np.median(ratios) - 1) < 0.01 and np.ptp(ratios) < 0.02:
            return None
        for name, lengths_of, other in zip(self.names, lengths, lengths[::-1], strict=True):
            if np.abs(other[used] - 1).max() < 0.01 and np.abs(lengths_of[used] - 1).max() > 0.01:
                return "scale", (
                    f"The vectors are parallel, but those of {name} are not normalized (length "
                    f"{lengths_of[used].min():.3g} to {lengths_of[used].max():.3g})."
                )
        return "scale", (
            f"The vectors are parallel, but those of {self.names[1]} are "
            f"{np.median(ratios):.4g} times as long."
        )

    def _permutation(self) -> tuple[str, str] | None:
        """Find the same columns in another order."""
        scale = np.maximum(np.abs(self.a).max(), np.abs(self.b).max())
        a, b = (np.sort(side.astype(np.float64), axis=1) / scale for side in (self.a, self.b))
        if np.abs(a - b).max() > 1e-3 or np.median(self.relative) < 0.02:
            return None
        similar = _correlations(self.a, self.b)
        places = similar.argmax(axis=1)
        moved = int((places != np.arange(len(places))).sum())
        if len(np.unique(places)) != len(places) or not moved:
            return None
        return "permutation", (
            f"The same dimensions are in another order ({moved:,} of {len(places):,} moved)."
        )

    def _rotation(self) -> tuple[str, str] | None:
        """Find vectors with the same inner products in other coordinates."""
        difference = gram_difference(self.a, self.b)
        if difference > 0.01 or difference > 0.1 * np.median(self.relative):
            return None
        return "rotation", (
            "All inner products are the same, but the coordinates differ: a rotation of the space."
        )

    def _subset(self) -> tuple[str, str] | None:
        """Find a group of items that explains which vectors differ: long ones, queries, ..."""
        sizes = np.maximum(self.relative, self.rounding / 10)
        low, high = np.quantile(sizes, [0.01, 0.99])
        if high < CONTRAST * low:
            return None
        for test in (self._queries, self._long, self._languages):
            if (text := test(sizes > np.sqrt(low * high))) is not None:
                return text
        return None

    def _queries(self, affected: np.ndarray) -> tuple[str, str] | None:
        queries = self.items.roles == "query"
        if _balanced(queries, affected) < 0.95:
            return None
        return "queries", (
            f"Only queries differ ({affected.sum():,} vectors): one side uses another prompt for "
            "queries."
        )

    def _long(self, affected: np.ndarray) -> tuple[str, str] | None:
        lengths = self.items.lengths
        limits = np.unique(lengths)
        shares = [_balanced(lengths > limit, affected) for limit in limits[:-1]]
        if not shares or max(shares) < 0.95:
            return None
        best = int(np.argmax(shares))
        return "length", (
            f"Only texts of more than about {limits[best]:.0f} words differ ({affected.sum():,} "
            "vectors): long texts are cut at another length."
        )

    def _languages(self, affected: np.ndarray) -> tuple[str, str] | None:
        names = [name for name in np.unique(self.items.languages.astype(str)) if name]
        shares = {name: affected[self.items.languages == name].mean() for name in names}
        differ = [name for name, share in shares.items() if share > 0.8]
        if not differ or len(differ) == len(names):
            return None
        if any(0.2 < share < 0.8 for share in shares.values()):
            return None
        return "languages", (
            f"Only texts in some languages differ ({', '.join(differ)}): another tokenizer or "
            "vocabulary."
        )

    def _noise(self) -> tuple[str, str] | None:
        """Find differences that look like random errors of a limited precision."""
        size = float(np.median(self.relative))
        change = self.b.astype(np.float64) - self.a
        if size > FORMATS[0][0] or _shared_part(change) > 0.5:
            return None
        name = [name for limit, name in FORMATS if size <= limit][-1]
        return "noise", (
            f"The vectors differ by {rough_percent(size)} of their length (median), "
            "without a pattern: "
            f"errors as of {name}."
        )


def _shared_part(change: np.ndarray) -> float:
    """Return the share of the squared differences that is the same vector for all items."""
    total = float((change**2).sum())
    return float(len(change) * (change.mean(axis=0) ** 2).sum() / total) if total else 0.0


def _correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the correlations of the columns of two matrices."""
    a, b = (side.astype(np.float64) - side.mean(axis=0) for side in (a, b))
    lengths = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    return (a.T @ b) / np.where(lengths > 0, lengths, 1.0)


def _balanced(group: np.ndarray, affected: np.ndarray) -> float:
    """Return how well a group explains which items are affected: the mean of both recalls."""
    if not group.any() or group.all() or not affected.any() or affected.all():
        return 0.0
    return float((affected[group].mean() + (~affected[~group]).mean()) / 2)


def gram_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the relative difference of the inner products; 0 for rotated vectors.

    >>> a = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> gram_difference(a, a @ turn)
    0.0
    """
    first, second = (side.astype(np.float64) @ side.T.astype(np.float64) for side in (a, b))
    size = np.linalg.norm(first)
    return float(np.linalg.norm(first - second) / size) if size else 0.0


# -- neighbors ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NeighborAgreement:
    """Agreement of the nearest neighbors of each item by cosine, per item."""

    overlap: np.ndarray
    correlation: np.ndarray
    k: int = NEIGHBORS


def neighbor_agreement(a: np.ndarray, b: np.ndarray, k: int = NEIGHBORS) -> NeighborAgreement:
    """Return the share of common neighbors and the rank correlation of the similarities, per item.

    Rows without a vector on a side are left out. Ties of similarities are broken by position.

    >>> a = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> neighbor_agreement(a, a @ np.array([[0.0, 1.0], [1.0, 0.0]]), k=1).overlap.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    comparable = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    similar = [_similarities(side[comparable]) for side in (a, b)]
    count = int(comparable.sum())
    k = min(k, max(1, count - 2))
    nearest = [np.argsort(-similarities, axis=1, kind="stable")[:, :k] for similarities in similar]
    member = np.zeros((count, count), dtype=bool)
    np.put_along_axis(member, nearest[0], True, axis=1)
    overlap = np.take_along_axis(member, nearest[1], axis=1).mean(axis=1)
    return NeighborAgreement(overlap, _rank_correlations(*similar), k)


def _similarities(vectors: np.ndarray) -> np.ndarray:
    units = unit_rows(vectors, np.float64)
    similar = np.round(units @ units.T, 7)
    np.fill_diagonal(similar, -np.inf)
    return similar


def _rank_correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of each pair of rows, without the diagonal."""
    ranks = [
        np.argsort(np.argsort(matrix, axis=1), axis=1)[:, :].astype(float)
        for matrix in (first, second)
    ]
    off = ~np.eye(len(first), dtype=bool)
    ranks = [matrix[off].reshape(len(first), -1) for matrix in ranks]
    centered = [matrix - matrix.mean(axis=1, keepdims=True) for matrix in ranks]
    products = np.einsum("ij,ij->i", *centered)
    lengths = np.linalg.norm(centered[0], axis=1) * np.linalg.norm(centered[1], axis=1)
    return products / np.where(lengths > 0, lengths, 1.0)
