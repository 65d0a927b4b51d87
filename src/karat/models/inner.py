"""An encoder inside an encoder, given by its name, its class or an instance."""

from __future__ import annotations

import inspect
from typing import Any

from karat import registry
from karat.errors import ContractError, DefinitionError
from karat.models.adapters import adapt
from karat.models.base import Model
from karat.models.identity import identity_of


def inner_model(encoder: Any, options: dict[str, Any] | None) -> Model:
    """Return what ``"package.module:Name"``, a class or an object names as a model.

    >>> inner_model("karat.models.texts:TfIdf", {"ngrams": 2}).prototype
    TfIdf(ngrams=2)
    """
    thing = registry.models.get(encoder) if isinstance(encoder, str) else encoder
    name = encoder if isinstance(encoder, str) else type(encoder).__name__
    if inspect.isclass(thing):
        thing = registry.build(f'the encoder "{name}"', thing, options or {}, {})
    elif options:
        raise DefinitionError(f'options are for a class; "{name}" is none: set them on it.')
    model = adapt(thing)
    if model.role != "encoder":
        raise ContractError(f'"{name}" predicts; give an encoder, a class with transform.')
    return model


def inner_fingerprint(model: Model, *others: Any) -> str:
    """Return who a model and the parameters around it are; an unknown model is an error.

    A class named in a text is no part of a pickle, so its code is looked at here.
    """
    who = identity_of(model.prototype)
    if who is None:
        raise TypeError(f"{model.name} cannot be told from its changed self.")
    return " ".join([who, *map(repr, others)])
