"""Adapters: what people have becomes a Model, with no base class to inherit from.

Accepted are: a class or an instance with ``transform`` or ``predict``, a scikit-learn pipeline, an
object with ``encode`` (a SentenceTransformer), a function from items to a matrix, a mapping or a
data frame of vectors, gensim ``KeyedVectors``, and the path of a vector file.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import ContractError
from karat.models.base import Model, StatelessEncoder
from karat.models.vector_file import SUFFIXES, KnownVectors, VectorFile


class FunctionEncoder(StatelessEncoder):
    """An encoder made of a function from items to a matrix."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def transform(self, items: Any) -> Any:
        """Return what the function makes of the items."""
        return self.function(items)


class EncodeEncoder(StatelessEncoder):
    """An encoder made of an object with ``encode``, as sentence encoders have it."""

    takes = ("text", "entity")

    def __init__(self, model: Any) -> None:
        self.model = model

    def transform(self, items: Any) -> Any:
        """Return what ``encode`` makes of the texts."""
        return self.model.encode([str(text) for text in items])


def adapt(thing: Any, name: str | None = None, role: str | None = None) -> Model:
    """Return anything that can be evaluated as a Model, or say what is missing.

    >>> adapt(lambda texts: [[len(t)] for t in texts], "length").role
    'encoder'
    """
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, str | os.PathLike):
        thing = VectorFile(str(thing))
    if inspect.isclass(thing):
        thing = _instance(thing)
    prototype = _wrapped(thing)
    return Model(
        name=name or _name(thing),
        prototype=prototype,
        role=role or _role(prototype),
        takes=_takes(prototype),
        params=_params(prototype),
        version=_version(thing),
    )


def is_vector_file(text: str) -> bool:
    """Return whether a name looks like the path of a vector file.

    >>> is_vector_file("rdf2vec.txt"), is_vector_file("onehot")
    (True, False)
    """
    lowered = text.lower()
    return any(
        lowered.endswith(ending) for suffix in SUFFIXES for ending in (suffix, suffix + ".gz")
    )


def _instance(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        raise ContractError(
            f"{cls.__name__} cannot be made without arguments ({error}); pass an instance."
        ) from error


def _wrapped(thing: Any) -> Any:
    if hasattr(thing, "transform") or (hasattr(thing, "predict") and hasattr(thing, "fit")):
        return thing
    if hasattr(thing, "encode") and callable(thing.encode):
        return EncodeEncoder(thing)
    if hasattr(thing, "key_to_index") and hasattr(thing, "vectors"):
        return KnownVectors(list(thing.key_to_index), np.asarray(thing.vectors))
    if isinstance(thing, Mapping) and thing:
        return KnownVectors(list(thing), np.array([np.asarray(v) for v in thing.values()]))
    if isinstance(thing, pd.DataFrame):
        return KnownVectors(list(thing.index), thing.to_numpy())
    if callable(thing):
        return FunctionEncoder(thing)
    raise ContractError(
        f"{type(thing).__name__} is not a model: it has neither transform nor predict with fit, "
        f"nor encode, nor can it be called. karat check tells more."
    )


def _role(prototype: Any) -> str:
    from sklearn.base import is_classifier, is_regressor

    if hasattr(prototype, "__sklearn_tags__") and (
        is_classifier(prototype) or is_regressor(prototype)
    ):
        return "predictor"
    return "encoder" if hasattr(prototype, "transform") else "predictor"


def _name(thing: Any) -> str:
    if isinstance(thing, VectorFile):
        return Path(thing.path).name.split(".")[0]
    name = getattr(thing, "__name__", None) or getattr(thing, "name", None)
    return name if isinstance(name, str) and name != "<lambda>" else type(thing).__name__


def _takes(prototype: Any) -> tuple[str, ...] | None:
    takes = getattr(prototype, "takes", None)
    return None if takes is None else tuple([takes] if isinstance(takes, str) else takes)


def _params(prototype: Any) -> dict[str, Any]:
    if not hasattr(prototype, "get_params"):
        return {}
    plain = (str, int, float, bool, type(None))
    own = prototype.get_params(deep=False)
    return {k: v for k, v in own.items() if isinstance(v, plain) and v is not None}


def _version(thing: Any) -> str:
    from importlib import metadata

    root = type(thing).__module__.partition(".")[0]
    try:
        return metadata.version({"sklearn": "scikit-learn"}.get(root, root))
    except metadata.PackageNotFoundError:
        return ""
