"""What search models are, and an encoder as one of them.

A search model has ``index(documents)`` and ``scores(queries)``, which returns one row per query and
one column per document; higher scores come first. An encoder searches by cosine and needs none of
this; as the first stage of a reranker it is wrapped in ``EncoderSearch``. A model of several stages
has them in ``stages``, which can be set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from karat.core.dataset import DOCUMENT, QUERY, Dataset
from karat.core.embeddings import TextEncoderLike, encode, unit_rows
from karat.errors import ContractError
from karat.models.adapters import is_searcher, wrapped_model
from karat.models.model import HasRequirements, Model, Parameterized


class SearchModel(HasRequirements, Parameterized):
    """Base of the built-in search models."""

    takes: ClassVar[tuple[str, ...]] = ("text",)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))  # no index and no loaded weights

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library is missing."""

    def index(self, documents: list[str]) -> SearchModel:
        """Read the documents."""
        raise NotImplementedError

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return one row per query and one column per document."""
        raise NotImplementedError


class StoredTexts:
    """Vectors of the texts of a dataset, as they are stored: items, then queries of both roles."""

    def __init__(self, matrix: np.ndarray, data: Dataset) -> None:
        self.matrix = matrix
        self.has_roles = bool(data.roles)
        self._rows: dict[str, dict[str, int]] = {}
        roles, size = data.item_roles, len(data.items)
        texts = data.items.astype(str).tolist()
        # an encoder without different prompts has one vector of an item for both roles
        queries = range(size, len(matrix)) if len(matrix) > size else roles.both
        missing = data.items.isna().to_numpy()
        for row, position, role in [
            *zip(range(size), range(size), roles.main, strict=True),
            *((row, position, QUERY) for row, position in zip(queries, roles.both, strict=True)),
        ]:
            if not missing[position]:
                self._rows.setdefault(role, {})[texts[position]] = row

    def rows(self, texts: list[str], role: str) -> np.ndarray:
        """Return the row of each text in a role, -1 if it has none."""
        row_of = self._rows.get(role, {})
        return np.array([row_of.get(text, -1) for text in texts], dtype=np.intp)


class EncoderSearch(SearchModel):
    """Search by the cosine of an encoder's vectors.

    Texts with a vector in ``stored`` are not encoded again.
    """

    def __init__(self, encoder: TextEncoderLike, stored: StoredTexts | None = None) -> None:
        self.encoder = encoder
        self.stored = stored

    def index(self, documents: list[str]) -> EncoderSearch:
        """Embed the documents."""
        self.documents_ = unit_rows(self._embed(documents, DOCUMENT))
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the cosine of each document; items without a vector come last."""
        cosines = unit_rows(self._embed(queries, QUERY)) @ self.documents_.T
        return np.nan_to_num(cosines, nan=-2.0)

    def _embed(self, texts: list[str], role: str) -> np.ndarray:
        name = type(self.encoder).__name__
        if self.stored is None:
            return encode(self.encoder, texts, name, role=role)
        role = role if self.stored.has_roles else ""
        rows = self.stored.rows(texts, role)
        vectors = np.array(self.stored.matrix[rows])
        if len(new := np.flatnonzero(rows < 0)):  # such as corrupted texts
            vectors[new] = encode(self.encoder, [texts[i] for i in new], name, role=role)
        return vectors


def as_searcher(thing: object) -> Any:
    """Return a search model; a text encoder is wrapped."""
    return thing if is_searcher(thing) else EncoderSearch(stage_model(thing).prototype)


def stage_model(thing: object) -> Model:
    """Return the model of an encoder that is a stage, or raise a ContractError."""
    model = wrapped_model(thing, None)
    if not model.stateless or "text" not in getattr(model.prototype, "by_text", ()):
        raise ContractError(
            f"{model.name} cannot be a first stage: expected a search model such as bm25, or a "
            f"pretrained text encoder."
        )
    return model


def stage_encoders(model: object) -> list[Any]:
    """Return the encoders among the stages of a search model, in their order."""
    stages = getattr(model, "stages", ())
    nested = [stage_encoders(stage) if is_searcher(stage) else [stage] for stage in stages]
    return [encoder for several in nested for encoder in several]


def use_stored(model: Any, stored: Sequence[StoredTexts]) -> list[EncoderSearch]:
    """Let the encoders among the stages of a search model use stored vectors; return them.

    ``stored`` has the order of ``stage_encoders``.
    """
    remaining = iter(stored)
    searches: list[EncoderSearch] = []

    def replaced(stage: Any) -> Any:
        if not is_searcher(stage):
            stage = EncoderSearch(stage_model(stage).prototype, next(remaining))
            searches.append(stage)
        elif getattr(stage, "stages", ()):
            stage.stages = [replaced(inner) for inner in stage.stages]
        return stage

    replaced(model)
    return searches


def descending_ranks(scores: np.ndarray) -> np.ndarray:
    """Return how many scores of its row are higher, for each score.

    >>> descending_ranks(np.array([[0.1, 0.9, 0.1]])).tolist()
    [[1, 0, 1]]
    """
    ordered = np.sort(scores, axis=1)
    ahead = [
        len(row) - np.searchsorted(line, row, side="right")
        for row, line in zip(scores, ordered, strict=True)
    ]
    return np.array(ahead, dtype=np.intp).reshape(scores.shape)


def scored_pairs(model: object) -> tuple[int, int]:
    """Return the pairs that rerankers in a search model have scored, and how many were too long.

    Both are counted since its last index.
    """
    stages = [*getattr(model, "stages_", ()), *([s] if (s := getattr(model, "first_", 0)) else [])]
    counts = [scored_pairs(stage) for stage in stages]
    counts.append((getattr(model, "pairs_", 0), getattr(model, "truncated_", 0)))
    return sum(pairs for pairs, _ in counts), sum(truncated for _, truncated in counts)
