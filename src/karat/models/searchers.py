"""Search models: BM25, rerankers, and the fusion of two rankings.

A search model has ``index(documents)`` and ``scores(queries)``, which returns one row per query and
one column per document; higher scores come first. An encoder searches by cosine and needs none of
this; as the first stage of a reranker it is wrapped in ``EncoderSearch``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from karat.core.dataset import DOCUMENT, QUERY
from karat.core.embeddings import encode, unit_rows
from karat.errors import ContractError, Declined, DefinitionError, did_you_mean
from karat.models.adapters import is_searcher, wrapped_fingerprint, wrapped_model
from karat.models.model import (
    HasRequirements,
    Parameterized,
    import_extra,
    object_identity,
    torch_threads,
)

#: constant of reciprocal rank fusion, from Cormack, Clarke and Büttcher (2009)
FUSION = 60
#: queries that are scored at once by an encoder
BLOCK = 64


class SearchModel(HasRequirements, Parameterized):
    """Base of the built-in search models."""

    takes: ClassVar[tuple[str, ...]] = ("text",)

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library is missing."""

    def index(self, documents: list[str]) -> SearchModel:
        """Read the documents."""
        raise NotImplementedError

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return one row per query and one column per document."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class BM25(SearchModel):
    """Okapi BM25 through the library bm25s.

    Parameters
    ----------
    k1, b
        Saturation of term frequency, and normalization by document length.
    method
        The variant: ``"lucene"``, ``"robertson"``, ``"atire"``, ``"bm25l"`` or ``"bm25+"``.
    language
        Language of the stop words, ``"english"`` …, or None: no word is removed.
    """

    k1: float = 1.5
    b: float = 0.75
    method: str = "lucene"
    language: str | None = None

    def check_installed(self) -> None:
        """Raise MissingExtra if bm25s is not installed."""
        import_extra("bm25s", "bm25")
        methods = ("lucene", "robertson", "atire", "bm25l", "bm25+")
        if self.method not in methods:
            hint = did_you_mean(self.method, methods)
            raise DefinitionError(
                f'method must be one of {", ".join(methods)}, got "{self.method}".{hint}'
            )

    def fingerprint(self) -> str:
        """Return the parameters and the version of bm25s."""
        return f"{sorted(self.get_params().items())} {import_extra('bm25s', 'bm25').__version__}"

    def index(self, documents: list[str]) -> BM25:
        """Count the words of the documents."""
        self.check_installed()
        import bm25s

        self.size_ = len(documents)
        self.index_ = bm25s.BM25(k1=self.k1, b=self.b, method=self.method)
        words = self._words(documents)
        self.known_ = set().union(*words) if words else set()
        if self.known_:
            self.index_.index(words, show_progress=False)
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the BM25 score of each document; 0 without a common word."""
        rows = np.zeros((len(queries), self.size_), dtype=np.float32)
        for row, words in zip(rows, self._words(queries), strict=True):
            if known := [word for word in words if word in self.known_]:
                row[:] = self.index_.get_scores(known)
        return rows

    def _words(self, texts: list[str]) -> list[list[str]]:
        import bm25s

        words: list[list[str]] = bm25s.tokenize(
            texts, stopwords=self.language or [], return_ids=False, show_progress=False
        )
        return words


class EncoderSearch(SearchModel):
    """Search by the cosine of an encoder's vectors."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def index(self, documents: list[str]) -> EncoderSearch:
        """Embed the documents."""
        self.documents_ = unit_rows(self._embed(documents, DOCUMENT))
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the cosine of each document; items without a vector come last."""
        cosines = unit_rows(self._embed(queries, QUERY)) @ self.documents_.T
        return np.nan_to_num(cosines, nan=-2.0)

    def _embed(self, texts: list[str], role: str) -> np.ndarray:
        return encode(self.encoder, texts, type(self.encoder).__name__, role=role)


def as_searcher(thing: Any) -> Any:
    """Return a search model; a text encoder is wrapped."""
    if is_searcher(thing):
        return thing
    model = wrapped_model(thing, None)
    if not model.stateless or "text" not in getattr(model.prototype, "by_text", ()):
        raise ContractError(
            f"{model.name} cannot be a first stage: expected a search model such as bm25, or a "
            f"pretrained text encoder."
        )
    return EncoderSearch(model.prototype)


def _identity(thing: Any) -> str:
    """Return the identity of a stage; raise TypeError if it has none."""
    if is_searcher(thing):
        if (found := object_identity(thing)) is None:
            raise TypeError(f"{type(thing).__name__} has no identity: it cannot be pickled.")
        return found
    return wrapped_fingerprint(wrapped_model(thing, None))


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


@dataclass(eq=False, repr=False)
class Fusion(SearchModel):
    """Two or more rankings combined by reciprocal rank: the sum of 1 / (60 + rank).

    Parameters
    ----------
    models
        Search models or text encoders.
    """

    models: Sequence[Any] = ()

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a model cannot run."""
        if len(self.models) < 2:
            raise DefinitionError(f"fusion needs two or more models, got {len(self.models)}.")
        for each in self.models:
            _require(each)

    def fingerprint(self) -> str:
        """Return the identities of the models."""
        return " | ".join(map(_identity, self.models))

    def index(self, documents: list[str]) -> Fusion:
        """Let every model read the documents."""
        self.stages_ = [as_searcher(each) for each in self.models]
        for stage in self.stages_:
            stage.index(documents)
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the sum of reciprocal ranks."""
        ranks = [descending_ranks(stage.scores(queries)) + 1 for stage in self.stages_]
        return np.asarray(sum(1.0 / (FUSION + each) for each in ranks))


@dataclass(eq=False, repr=False)
class Reranker(SearchModel):
    """The best documents of a first stage, ordered again by a model of (query, document) pairs.

    The others follow in the order of the first stage.

    Parameters
    ----------
    model
        A CrossEncoder of sentence-transformers (folder or name on the hub), or an object with
        ``predict(pairs)`` that returns one score per pair.
    first
        The first stage: a search model or a text encoder.
    top
        Number of documents of each query that are ordered again.
    batch
        Pairs per batch.
    threads
        Number of torch threads on the CPU.
    """

    model: Any = None
    first: Any = None
    top: int = 100
    batch: int = 32
    threads: int = 1

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or the first stage is missing."""
        if self.model is None or self.first is None:
            raise DefinitionError("a reranker needs model and first, such as first: model:bm25.")
        if isinstance(self.top, bool) or not isinstance(self.top, int) or self.top < 1:
            raise DefinitionError(f"top must be an integer >= 1, got {self.top!r}.")
        if isinstance(self.model, str | os.PathLike):
            import_extra("sentence_transformers", "sentence-transformers")
        _require(self.first)

    def fingerprint(self) -> str:
        """Return the parameters, and the identities of both stages."""
        own = str(self.model)
        if not isinstance(self.model, str | os.PathLike):
            own = object_identity(self.model) or ""
        if not own:
            raise TypeError("the model of the reranker has no identity: it cannot be pickled.")
        return f"{own} {self.top} {_identity(self.first)}"

    def index(self, documents: list[str]) -> Reranker:
        """Let the first stage read the documents."""
        self.check_installed()
        self.documents_ = documents
        self.first_ = as_searcher(self.first)
        self.first_.index(documents)
        self.pairs_ = 0
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return minus the rank of each document after reranking."""
        ahead = descending_ranks(self.first_.scores(queries))
        for query, ranks in zip(queries, ahead, strict=True):
            # of documents that tie at the last place, the first ones are ordered again
            best = np.argsort(ranks, kind="stable")[: self.top]
            scores = self._pair_scores([(query, self.documents_[place]) for place in best])
            ranks += len(best)
            ranks[best] = descending_ranks(scores[None])[0]
        return -ahead.astype(np.float64)

    def _pair_scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        self.pairs_ += len(pairs)
        if isinstance(self.model, str | os.PathLike):
            with torch_threads(self.threads):
                model, options = self._cross_encoder(), {"batch_size": self.batch}
                found = model.predict(pairs, show_progress_bar=False, **options)
        else:
            found = self.model.predict(pairs)
        scores = np.asarray(found, dtype=np.float64)
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise ContractError(
                f"a reranker must return one finite score per pair; got {scores.shape} for "
                f"{len(pairs)} pairs."
            )
        return scores

    def _cross_encoder(self) -> Any:
        if not hasattr(self, "model_"):
            from sentence_transformers import CrossEncoder

            try:
                options = {"model_kwargs": {"use_safetensors": True}}
                self.model_ = CrossEncoder(str(self.model), **options)
            except Exception as error:  # offline, unknown name, pickled weights
                reason = " ".join(str(error).split())
                raise Declined(f'cannot load the reranker "{self.model}": {reason}') from error
        return self.model_


def scored_pairs(model: Any) -> int:
    """Return how many pairs the rerankers in a search model have scored since its last index."""
    stages = [*getattr(model, "stages_", ()), *([s] if (s := getattr(model, "first_", 0)) else [])]
    return int(getattr(model, "pairs_", 0)) + sum(map(scored_pairs, stages))


def _require(stage: Any) -> None:
    """Raise MissingExtra or Declined if a stage cannot run."""
    if callable(check := getattr(stage, "check_installed", None)):
        check()
