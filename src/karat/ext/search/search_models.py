"""Search models: BM25, rerankers, and the fusion of two rankings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.ext.models.sentence_models import (
    count_over_limit,
    file_stamps,
    load_model,
    model_folder,
    sentence_transformer_hash,
)
from karat.models.adapters import is_searcher, wrapped_fingerprint, wrapped_model
from karat.models.model import import_extra, torch_threads
from karat.models.model_identity import object_identity
from karat.models.searchers import SearchModel, as_searcher, descending_ranks

#: constant of reciprocal rank fusion, from Cormack, Clarke and Büttcher (2009)
FUSION = 60


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
            if known_words := [word for word in words if word in self.known_]:
                row[:] = self.index_.get_scores(known_words)
        return rows

    def _words(self, texts: list[str]) -> list[list[str]]:
        import bm25s

        words: list[list[str]] = bm25s.tokenize(
            texts, stopwords=self.language or [], return_ids=False, show_progress=False
        )
        return words


def _identity(thing: object) -> str:
    """Return the identity of a stage; raise TypeError if it has none."""
    if is_searcher(thing):
        if (identity := object_identity(thing)) is None:
            raise TypeError(f"{type(thing).__name__} has no identity: it cannot be pickled.")
        return identity
    return wrapped_fingerprint(wrapped_model(thing, None))


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
        for model in self.models:
            _require(model)

    def fingerprint(self) -> str:
        """Return the identities of the models."""
        return " | ".join(map(_identity, self.models))

    def index(self, documents: list[str]) -> Fusion:
        """Let every model read the documents."""
        self.stages_ = [as_searcher(model) for model in self.models]
        for stage in self.stages_:
            stage.index(documents)
        return self

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the sum of reciprocal ranks."""
        ranks = [descending_ranks(stage.scores(queries)) + 1 for stage in self.stages_]
        return np.asarray(sum(1.0 / (FUSION + stage_ranks) for stage_ranks in ranks))


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
            identity = f"{self.model} {self.revision} {file_stamps(folder) if folder else ''}"
        elif _is_cross_encoder(self.model):
            identity = sentence_transformer_hash(self.model)
        elif (pickled := object_identity(self.model)) is not None:
            identity = pickled
        else:
            raise TypeError("the model of the reranker has no identity: it cannot be pickled.")
        return f"{identity} {self.top} {_identity(self.first)}"

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
            scores = self._pair_scores([(query, self.documents_[number]) for number in best])
            ranks += len(best)
            ranks[best] = descending_ranks(scores[None])[0]
        return -ahead.astype(np.float64)

    def _pair_scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        self.pairs_ += len(pairs)
        if (model := self._cross_encoder()) is not None:
            self.truncated_ += count_over_limit(model, pairs)
            with torch_threads(self.threads):
                predicted = model.predict(pairs, batch_size=self.batch, show_progress_bar=False)
        else:
            predicted = self.model.predict(pairs)
        scores = np.asarray(predicted, dtype=np.float64)
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


def _is_cross_encoder(thing: object) -> bool:
    kind = type(thing)
    return kind.__name__ == "CrossEncoder" and kind.__module__.startswith("sentence_transformers")


def _require(stage: object) -> None:
    """Raise MissingExtra or Declined if a stage cannot run."""
    if callable(check := getattr(stage, "check_installed", None)):
        check()
