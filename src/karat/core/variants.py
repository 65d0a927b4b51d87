"""Variants of an encoder: its vectors with fewer dimensions and bits, as one would store them.

A variant keeps the first dimensions of every vector and stores each in 32, 16 or 8 bits, or as its
sign. Training and test vectors are compressed in the same way; whatever is measured for this is
measured on the training documents.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from karat.core.dataset import QUERY, Dataset
from karat.core.embeddings import BITS, Vectors, unit_rows
from karat.errors import DefinitionError, did_you_mean

#: number of documents that are ranked again with ``rescore: true``
RESCORED = 40
#: largest number of 16 bits
_MOST = float(np.finfo(np.float16).max)
_NAME = re.compile(
    r"(?P<base>.+)@(?:(?P<dimensions>\d+)d)?-?(?P<precision>float16|int8|binary)?(?P<rescore>-rescore)?"
)


@dataclass(frozen=True)
class Variant:
    """The dimensions (None: all) and the precision of stored vectors.

    ``rescore``: a search by Hamming distance ranks the first ``rescore`` documents again, by the
    32-bit vector of the query.
    """

    dimensions: int | None = None
    precision: str = "float32"
    rescore: int = 0

    @property
    def label(self) -> str:
        """The part of its name after the @: "128d-int8", "128d", "int8"; empty for the encoder."""
        width = "" if self.dimensions is None else f"{self.dimensions}d"
        bits = "" if self.precision == "float32" else self.precision
        return "-".join(filter(None, (width, bits, "rescore" if self.rescore else "")))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the run."""
        width = {} if self.dimensions is None else {"dimensions": self.dimensions}
        again = {"rescore": self.rescore} if self.rescore else {}
        return {**width, "precision": self.precision, **again}

    def fit(self, train: Dataset, vectors: Vectors) -> Compression:
        """Return the compression of a fold, fitted on its training documents."""
        width = vectors.matrix.shape[1]
        if self.dimensions is not None and self.dimensions > width:
            raise DefinitionError(
                f"dimensions: {self.dimensions}, but the vectors of the encoder have {width}; "
                f"choose {width} or fewer."
            )
        shorter = self.dimensions is not None and self.dimensions < width
        made = Compression(self, shorter and vectors.normalized)
        if self.precision != "int8":
            return made
        documents = made.shortened(_documents(train, vectors)[:, : self.dimensions])
        documents = documents if len(documents) else np.zeros((1, documents.shape[1]), np.float32)
        return replace(made, low=documents.min(axis=0), high=documents.max(axis=0))


def _documents(train: Dataset, vectors: Vectors) -> np.ndarray:
    """Return the vectors on which a compression is fitted: of all training items but the queries.

    Of an encoder with a vocabulary, that is what is searched. If all items are queries, such as
    pairs without a training split, it is all of them.
    """
    if vectors.vocabulary is not None:
        matrix = vectors.vocabulary[1]
    else:
        rows = train.learnable()
        query = np.zeros(len(train.items), dtype=bool)
        if train.kind == "items":
            query[train.asked()] = True
        elif train.roles:
            query = train.item_roles.main == QUERY
        matrix = vectors.at(rows if query[rows].all() else rows[~query[rows]])
    return np.asarray(matrix[~np.isnan(matrix[:, 0])], dtype=np.float32)


@dataclass(frozen=True)
class Compression:
    """A variant that is fitted to a fold. ``low`` and ``high`` are the range of 8-bit numbers."""

    variant: Variant
    normalize: bool
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def key(self) -> str:
        """A hash that differs between compressions with different results."""
        bounds = b"".join(each.tobytes() for each in (self.low, self.high) if each is not None)
        text = f"{self.variant} {self.normalize} {bounds.hex()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def apply(self, vectors: Vectors) -> Vectors:
        """Return compressed vectors; items without a vector have none."""
        vocabulary = vectors.vocabulary
        if vocabulary is not None:
            vocabulary = (vocabulary[0], self.compressed(vocabulary[1]))
        exact = self.shortened(vectors.matrix) if self.variant.rescore else None
        return replace(
            vectors,
            matrix=self.compressed(vectors.matrix),
            vocabulary=vocabulary,
            exact=exact,
            rescore=self.variant.rescore,
        )

    def shortened(self, matrix: np.ndarray) -> np.ndarray:
        """Return the first dimensions in 32 bits, with norm 1 again if all vectors had that."""
        short = np.asarray(matrix[:, : self.variant.dimensions], dtype=np.float32)
        return unit_rows(short) if self.normalize else short

    def compressed(self, matrix: np.ndarray) -> np.ndarray:
        """Return the numbers that stored vectors represent, in 32 bits; for 1 bit, -1 and 1.

        The cosine of vectors of -1 and 1 is 1 - 2 h / d for a Hamming distance h in d dimensions.
        """
        short = self.shortened(matrix)
        if self.variant.precision == "float16":
            short = np.clip(short, -_MOST, _MOST).astype(np.float16).astype(np.float32)
        elif self.variant.precision == "int8":
            short = self._decoded(self.codes(short))
        elif self.variant.precision == "binary":
            unknown = np.isnan(short[:, 0])
            short = np.where(short > 0, np.float32(1), np.float32(-1))
            short[unknown] = np.nan
        return short

    def codes(self, short: np.ndarray) -> np.ndarray:
        """Return the integers from -128 to 127 that store the first dimensions in 8 bits.

        -128 is the lowest number of a dimension in the training documents and 127 the highest;
        numbers outside are clipped. A dimension that is constant there has the code 0. NaN stays.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            codes = np.clip(np.rint((short - self.low) / self._step) - 128, -128, 127)
        return np.where((self._step > 0) | np.isnan(short), codes, np.float32(0))

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        return np.asarray(self.low + (codes + 128) * self._step, dtype=np.float32)

    @property
    def _step(self) -> np.ndarray:
        assert self.low is not None and self.high is not None
        return (self.high - self.low) / np.float32(255)


def make_variants(dimensions: Any = (), precision: Any = (), rescore: Any = False) -> list[Variant]:
    """Return all combinations of dimensions and precisions but the encoder itself.

    ``rescore`` is the number of documents that a search with one bit ranks again, or True.

    >>> [each.label for each in make_variants([64], ["float32", "int8"])]
    ['64d', '64d-int8']
    """
    widths, bits = _listed(dimensions), _listed(precision)
    messages = [
        f"dimensions must be integers >= 1, got {each!r}."
        for each in widths
        if isinstance(each, bool) or not isinstance(each, Integral) or int(each) < 1
    ]
    messages += [
        f"precision must be one of {', '.join(BITS)}, got {each!r}.{did_you_mean(str(each), BITS)}"
        for each in bits
        if each not in BITS
    ]
    again = RESCORED if rescore is True else int(rescore) if _is_count(rescore) else None
    if again is None:
        messages.append(f"rescore must be true or an integer >= 1, got {rescore!r}.")
    elif again and "binary" not in bits:
        messages.append("rescore requires precision: binary, which is searched in two steps.")
    if messages:
        raise DefinitionError(*messages)
    chosen: list[int | None] = [*map(int, dict.fromkeys(widths))] or [None]
    found = [
        Variant(width, each, (again or 0) if each == "binary" else 0)
        for width in chosen
        for each in dict.fromkeys(bits or ["float32"])
    ]
    return [each for each in found if each.label]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def _is_count(value: Any) -> bool:
    return value is False or (
        isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    )


def split_name(name: str) -> tuple[str, Variant] | None:
    """Return the name of the encoder and the variant that a name states, None if it states none.

    >>> split_name("minilm@128d-int8")
    ('minilm', Variant(dimensions=128, precision='int8', rescore=0))
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    width, again = found["dimensions"], RESCORED if found["rescore"] else 0
    try:
        (variant,) = make_variants(int(width) if width else None, found["precision"], bool(again))
    except (DefinitionError, ValueError):
        return None
    return (found["base"], variant) if name == f"{found['base']}@{variant.label}" else None
