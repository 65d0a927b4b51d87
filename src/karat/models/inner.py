"""Encoders that wrap another encoder, given by name, class or instance."""

from __future__ import annotations

import inspect
from typing import Any

from karat import registry
from karat.errors import ContractError, DefinitionError
from karat.models.adapters import adapt
from karat.models.base import Model
from karat.models.identity import identity_of


def inner_model(encoder: Any, options: dict[str, Any] | None) -> Model:
    """Return the Model for ``"package.module:Name"``, a class or an object.

    >>> inner_model("karat.models.texts:TfIdf", {"ngrams": 2}).prototype
    TfIdf(ngrams=2)
    """
    thing = registry.models.get(encoder) if isinstance(encoder, str) else encoder
    name = encoder if isinstance(encoder, str) else type(encoder).__name__
    if inspect.isclass(thing):
        thing = registry.build(f'the encoder "{name}"', thing, options or {}, {})
    elif options:
        raise DefinitionError(f'options require a class, but "{name}" is an instance.')
    model = adapt(thing)
    if model.role != "encoder":
        raise ContractError(f'"{name}" is a predictor; expected an encoder with transform.')
    return model


def inner_fingerprint(model: Model, *others: Any) -> str:
    """Return the identity of a wrapped model and other parameters.

    The code of a class given by name is not part of a pickle, so it is hashed here.
    """
    identity = identity_of(model.prototype)
    if identity is None:
        raise TypeError(f"{model.name} has no identity: it cannot be pickled.")
    return " ".join([identity, *map(repr, others)])
