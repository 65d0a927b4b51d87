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

from karat.core.dataset import DOCUMENT, QUERY, Dataset
from karat.core.embeddings import encode, unit_rows
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.ext.models.sentence_models import (
    count_over_limit,
    file_stamps,
    load_model,
    model_folder,
    sentence_transformer_hash,
)
from karat.models.adapters import is_searcher, wrapped_fingerprint, wrapped_model
from karat.models.model import HasRequirements, Model, Parameterized, import_extra, torch_threads
from karat.models.model_identity import object_identity

#: constant of reciprocal rank fusion, from Cormack, Clarke and Büttcher (2009)
FUSION = 60


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
        for row, place, role in [
            *zip(range(size), range(size), roles.main, strict=True),
            *((row, place, QUERY) for row, place in zip(queries, roles.both, strict=True)),
        ]:
            if not missing[place]:
                self._rows.setdefault(role, {})[texts[place]] = row

    def rows(self, texts: list[str], role: str) -> np.ndarray:
        """Return the row of each text in a role, -1 if it has none."""
        known = self._rows.get(role, {})
        return np.array([known.get(text, -1) for text in texts], dtype=np.intp)


class EncoderSearch(SearchModel):
    """Search by the cosine of an encoder's vectors.

    Texts with a vector in ``stored`` are not encoded again.
    """

    def __init__(self, encoder: Any, stored: StoredTexts | None = None) -> None:
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


def as_searcher(thing: Any) -> Any:
    """Return a search model; a text encoder is wrapped."""
    return thing if is_searcher(thing) else EncoderSearch(stage_model(thing).prototype)


def stage_model(thing: Any) -> Model:
    """Return the model of an encoder that is a stage, or raise a ContractError."""
    model = wrapped_model(thing, None)
    if not model.stateless or "text" not in getattr(model.prototype, "by_text", ()):
        raise ContractError(
            f"{model.name} cannot be a first stage: expected a search model such as bm25, or a "
            f"pretrained text encoder."
        )
    return model


def stage_encoders(model: Any) -> list[Any]:
    """Return the encoders among the stages of a search model, in their order."""
    stages = model.stages if isinstance(model, Fusion | Reranker) else ()
    nested = [stage_encoders(each) if is_searcher(each) else [each] for each in stages]
    return [encoder for several in nested for encoder in several]


def use_stored(model: Any, stored: Sequence[StoredTexts]) -> list[EncoderSearch]:
    """Let the encoders among the stages of a search model use stored vectors; return them.

    ``stored`` has the order of ``stage_encoders``.
    """
    left = iter(stored)
    found: list[EncoderSearch] = []

    def replaced(stage: Any) -> Any:
        if not is_searcher(stage):
            stage = EncoderSearch(stage_model(stage).prototype, next(left))
            found.append(stage)
        elif isinstance(stage, Fusion | Reranker):
            stage.stages = [replaced(each) for each in stage.stages]
        return stage

    replaced(model)
    return found


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

    @property
    def stages(self) -> list[Any]:
        """The models."""
        return list(self.models)

    @stages.setter
    def stages(self, stages: list[Any]) -> None:
        self.models = stages

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
    batch, device, revision, threads
        Of a CrossEncoder: pairs per batch; ``"cpu"``, ``"cuda"`` … or ``"auto"``; the revision on
        the hub; torch threads on the CPU.
    """

    model: Any = None
    first: Any = None
    top: int = 100
    batch: int = 32
    threads: int = 1
    device: str = "auto"
    revision: str | None = None

    @property
    def stages(self) -> list[Any]:
        """The first stage."""
        return [self.first]

    @stages.setter
    def stages(self, stages: list[Any]) -> None:
        (self.first,) = stages

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library, a folder or the first stage is missing."""
        if self.model is None or self.first is None:
            raise DefinitionError("a reranker needs model and first, such as first: model:bm25.")
        if isinstance(self.top, bool) or not isinstance(self.top, int) or self.top < 1:
            raise DefinitionError(f"top must be an integer >= 1, got {self.top!r}.")
        if isinstance(self.model, str | os.PathLike):
            import_extra("sentence_transformers", "sentence-transformers")
            model_folder(str(self.model))
        _require(self.first)

    def fingerprint(self) -> str:
        """Return the parameters, and the identities of both stages."""
        if isinstance(self.model, str | os.PathLike):
            folder = model_folder(str(self.model))
            own = f"{self.model} {self.revision} {file_stamps(folder) if folder else ''}"
        elif _is_cross_encoder(self.model):
            own = sentence_transformer_hash(self.model)
        elif (found := object_identity(self.model)) is not None:
            own = found
        else:
            raise TypeError("the model of the reranker has no identity: it cannot be pickled.")
        return f"{own} {self.top} {_identity(self.first)}"

    def index(self, documents: list[str]) -> Reranker:
        """Let the first stage read the documents."""
        self.check_installed()
        self.documents_ = documents
        self.first_ = as_searcher(self.first)
        self.first_.index(documents)
        self.pairs_ = self.truncated_ = 0
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
        if (model := self._cross_encoder()) is not None:
            self.truncated_ += count_over_limit(model, pairs)
            with torch_threads(self.threads):
                found = model.predict(pairs, batch_size=self.batch, show_progress_bar=False)
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
        """Return the CrossEncoder, loaded on first use; None for another object."""
        if not isinstance(self.model, str | os.PathLike):
            return self.model if _is_cross_encoder(self.model) else None
        if not hasattr(self, "model_"):
            name = str(self.model)
            self.model_ = load_model("CrossEncoder", name, self.device, self.revision)
        return self.model_


def _is_cross_encoder(thing: Any) -> bool:
    kind = type(thing)
    return kind.__name__ == "CrossEncoder" and kind.__module__.startswith("sentence_transformers")


def scored_pairs(model: Any) -> tuple[int, int]:
    """Return the pairs that rerankers in a search model have scored, and how many were too long.

    Both are counted since its last index.
    """
    stages = [*getattr(model, "stages_", ()), *([s] if (s := getattr(model, "first_", 0)) else [])]
    counts = [scored_pairs(stage) for stage in stages]
    counts.append((getattr(model, "pairs_", 0), getattr(model, "truncated_", 0)))
    return sum(pairs for pairs, _ in counts), sum(truncated for _, truncated in counts)


def _require(stage: Any) -> None:
    """Raise MissingExtra or Declined if a stage cannot run."""
    if callable(check := getattr(stage, "check_installed", None)):
        check()
