"""Encoders under TabEB's names: its base class, the random, the skrub and the CARTE encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
#: what TabEB calls the parameters that CARTE calls otherwise
CARTE_NAMES = {
    "pretrain_model_path": "pretrained",
    "lm_path": "fasttext",
    "num_models": "num_model",
}


class TabEBBaseEncoder(TransformerMixin, BaseEstimator, ABC):
    """A base for encoders: write ``fit`` and ``transform``.

    ``name`` is the label of the encoder's row in a table of scores, its class where it is empty;
    ``device`` is for encoders that compute on one.
    """

    name: str = ""
    device: str | None = None

    def __init__(self, device: str | None = None) -> None:
        self.device = device

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from the rows of a table, and from their truth where it is given."""

    @abstractmethod
    def transform(self, X: Any, y: Any = None) -> Any:
        """Return one vector per row, all of one length and without NaN."""

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit this encoder and return its own vectors, whatever its ``fit`` returns."""
        self.fit(X, **fit_params) if y is None else self.fit(X, y, **fit_params)
        return self.transform(X)

    def normalize(self, emb: Any) -> np.ndarray:
        """Return the rows at length 1; a row of zeros stays as it is."""
        emb = np.asarray(emb)
        if emb.ndim != 2:
            raise ValueError(f"embeddings have two dimensions, not {emb.ndim}.")
        return unit_rows(emb)


class RandomRows(TabEBBaseEncoder):
    """A random vector of length 1 for each row, drawn from its index, its cells and the seed.

    Row 3 of a train table and row 3 of a test table have vectors of their own.
    """

    name = "random_encoder"

    def __init__(self, embedding_size: int = 128, random_state: int | None = None) -> None:
        self.embedding_size = embedding_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomRows:
        """Learn nothing."""
        return self

    def transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return one random vector per row."""
        keys = pd.Series(0, index=row_keys(X, index=True))
        drawn = RandomEncoder(self.embedding_size, self.random_state).transform(keys)
        return self.normalize(drawn)


class SkrubRows(TabEBBaseEncoder):
    """skrub's TableVectorizer with ``options``; what it leaves empty becomes 0."""

    name = "skrub_encoder"

    def __init__(
        self, options: Mapping[str, Any] | None = None, random_state: int | None = None
    ) -> None:
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SkrubRows:
        """Learn how each column is encoded."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Learn how each column is encoded, and encode these rows."""
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
    """Karat's CARTE encoder with ``options``.

    An evaluation tells it what the truth is (``kind``); ``task`` says so where nobody does.
    """

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
        """Fine-tune the network on the rows and their truth."""
        self.encoder_ = self._made().fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fine-tune the network, and return the vectors of these rows."""
        self.encoder_ = self._made()
        return self.encoder_.fit_transform(X, y, **fit_params)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return what the network makes of the rows."""
        return self.encoder_.transform(X)

    def _made(self) -> Any:
        offers = {"kind": self.kind or KINDS[self.task], "random_state": self.random_state}
        return build(f'model "{self.name}"', load_object(CARTE), self.options or {}, offers)


class AbsentRows(TabEBBaseEncoder):
    """An encoder that cannot run here: whoever uses it is told why."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def fit(self, X: Any, y: Any = None) -> Any:
        """Say why it cannot run."""
        raise Declined(self.reason)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Say why it cannot run."""
        raise Declined(self.reason)


def random_encoder(**params: Any) -> RandomRows:
    """Return the random encoder."""
    return build('model "random_encoder"', RandomRows, params, {})


def skrub_encoder(random_state: int | None = None, **options: Any) -> SkrubRows:
    """Return skrub's vectoriser; the options are those of its TableVectorizer."""
    try:
        from skrub import TableVectorizer
    except ImportError:  # said when it is used: the other encoders of a list still run
        return SkrubRows(options, random_state)
    _check_options("skrub_encoder", options, accepts(TableVectorizer)[0])
    return SkrubRows(options, random_state)


def carte_encoder(
    task: str = "regression", random_state: int | None = None, **options: Any
) -> CarteRows:
    """Return the CARTE encoder; what it needs and is not there is said when it is used."""
    if task not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        raise DefinitionError(
            f'model "carte_encoder": task is regression or classification, not {task!r}.{hint}'
        )
    _check_options("carte_encoder", options, accepts(load_object(CARTE))[0] | set(CARTE_NAMES))
    named = {CARTE_NAMES.get(name, name): value for name, value in options.items()}
    return CarteRows(task, named, random_state=random_state)


def _check_options(name: str, options: Mapping[str, Any], known: set[str]) -> None:
    for option in options:
        if option not in known:
            raise DefinitionError(
                f'model "{name}" has no parameter "{option}".{did_you_mean(option, known)} '
                f"It has: {', '.join(sorted(known))}."
            )


def _filled(table: Any) -> np.ndarray:
    numbers = np.asarray(table, dtype=np.float64)
    return np.where(np.isnan(numbers), 0.0, numbers)
