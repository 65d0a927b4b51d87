"""TabEB's encoders: the base class, and the random, skrub and CARTE encoders."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.compat.tabeb.rows import row_keys
from karat.data.tabeb import KINDS
from karat.errors import Declined, DefinitionError, MissingExtra, did_you_mean
from karat.models.random import RandomEncoder
from karat.registry import accepts, build, load_object
from karat.vectors import unit_rows

CARTE = "karat.models.carte:CarteEncoder"
#: CARTE's parameters by TabEB's names
CARTE_NAMES = {
    "pretrain_model_path": "pretrained",
    "lm_path": "fasttext",
    "num_models": "num_model",
}


class TabEBBaseEncoder(TransformerMixin, BaseEstimator, ABC):
    """Base class of encoders; subclasses implement ``fit`` and ``transform``.

    ``name`` labels the encoder's row in score tables (default: the class name).
    """

    name: str = ""
    device: str | None = None

    def __init__(self, device: str | None = None) -> None:
        self.device = device

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit on the rows of a table, and on their target if given."""

    @abstractmethod
    def transform(self, X: Any, y: Any = None) -> Any:
        """Return one vector per row, all of the same length and without NaN."""

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the encoder and return the vectors of the rows."""
        self.fit(X, **fit_params) if y is None else self.fit(X, y, **fit_params)
        return self.transform(X)

    def normalize(self, emb: Any) -> np.ndarray:
        """Scale the rows to length 1; rows of zeros are unchanged."""
        emb = np.asarray(emb)
        if emb.ndim != 2:
            raise ValueError(f"embeddings must have two dimensions, got {emb.ndim}.")
        return unit_rows(emb)


class RandomRows(TabEBBaseEncoder):
    """A random unit vector per row, drawn from the row's index, its cells and the seed."""

    name = "random_encoder"

    def __init__(self, embedding_size: int = 128, random_state: int | None = None) -> None:
        self.embedding_size = embedding_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomRows:
        """Return self; the encoder is stateless."""
        return self

    def transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return one random vector per row."""
        keys = pd.Series(0, index=row_keys(X, index=True))
        drawn = RandomEncoder(self.embedding_size, self.random_state).transform(keys)
        return self.normalize(drawn)


class SkrubRows(TabEBBaseEncoder):
    """skrub's TableVectorizer with ``options``; missing values become 0."""

    name = "skrub_encoder"

    def __init__(
        self, options: Mapping[str, Any] | None = None, random_state: int | None = None
    ) -> None:
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SkrubRows:
        """Fit the vectorizer."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit the vectorizer and encode the rows."""
        try:
            from skrub import StringEncoder, TableVectorizer
        except ImportError as error:
            raise MissingExtra("skrub", "tables") from error
        usual = {"high_cardinality": StringEncoder(random_state=self.random_state)}
        self.vectorizer_ = TableVectorizer(**{**usual, **(self.options or {})})
        return _filled(self.vectorizer_.fit_transform(X, y, **fit_params))

    def transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return one row of numbers per table row."""
        return _filled(self.vectorizer_.transform(X))


class CarteRows(TabEBBaseEncoder):
    """Karat's CARTE encoder with ``options``; ``kind``, if set, overrides ``task``."""

    name = "carte_encoder"

    def __init__(
        self,
        task: str = "regression",
        options: Mapping[str, Any] | None = None,
        kind: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.task = task
        self.options = options
        self.kind = kind
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> CarteRows:
        """Fine-tune the network on the rows and their target."""
        self.encoder_ = self._made().fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fine-tune the network and return the vectors of the rows."""
        self.encoder_ = self._made()
        return self.encoder_.fit_transform(X, y, **fit_params)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the network's vectors of the rows."""
        return self.encoder_.transform(X)

    def _made(self) -> Any:
        offers = {"kind": self.kind or KINDS[self.task], "random_state": self.random_state}
        return build(f'model "{self.name}"', load_object(CARTE), self.options or {}, offers)


class AbsentRows(TabEBBaseEncoder):
    """An unavailable encoder: every call raises the reason."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def fit(self, X: Any, y: Any = None) -> Any:
        """Raise the reason."""
        raise Declined(self.reason)

    transform = fit


def random_encoder(**params: Any) -> RandomRows:
    """Return the random encoder."""
    return build('model "random_encoder"', RandomRows, params, {})


def skrub_encoder(random_state: int | None = None, **options: Any) -> SkrubRows:
    """Return skrub's vectorizer with options of ``TableVectorizer``."""
    # if skrub is missing, the error is raised on use, so that other encoders still run
    with contextlib.suppress(ImportError):
        from skrub import TableVectorizer

        check_params("skrub_encoder", options, accepts(TableVectorizer)[0])
    return SkrubRows(options, random_state)


def carte_encoder(
    task: str = "regression", random_state: int | None = None, **options: Any
) -> CarteRows:
    """Return the CARTE encoder; missing dependencies raise on use."""
    if task not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        raise DefinitionError(
            f'model "carte_encoder": task must be regression or classification, got {task!r}.{hint}'
        )
    check_params("carte_encoder", options, accepts(load_object(CARTE))[0] | set(CARTE_NAMES))
    named = {CARTE_NAMES.get(name, name): value for name, value in options.items()}
    return CarteRows(task, named, random_state=random_state)


def check_params(name: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise if a model does not have one of the given parameters."""
    for param in given:
        if param not in known:
            raise DefinitionError(
                f'model "{name}" has no parameter "{param}".{did_you_mean(param, known)} '
                f"Available: {', '.join(sorted(known)) or 'none'}."
            )


def _filled(table: Any) -> np.ndarray:
    numbers = np.asarray(table, dtype=np.float64)
    return np.where(np.isnan(numbers), 0.0, numbers)
