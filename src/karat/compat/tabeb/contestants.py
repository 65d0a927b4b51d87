"""The models of an evaluation: which objects are accepted, and fresh copies for each dataset."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from karat.compat.tabeb.encoders import AbsentRows
from karat.errors import ContractError, DefinitionError, KaratError
from karat.models.adapters import adapt
from karat.models.base import Model
from karat.vectors import check_vectors


@dataclass(frozen=True)
class Treatment:
    """Options for every encoder: parameters of ``fit``, and the replacement of NaN in vectors."""

    fit_params: Mapping[str, Any] = field(default_factory=dict)
    fill: float | None = None


@dataclass(frozen=True, eq=False)
class Contestant(Model):
    """An encoder whose copies keep the parameters set by the user."""

    treatment: Treatment = field(default_factory=Treatment)

    def fresh(self, seed: int, kind: str) -> Any:
        """Return a copy; a ``random_state`` or ``kind`` that is None is set."""
        made = copy_of(self.prototype)
        offers: dict[str, Any] = {"random_state": seed, "kind": kind}
        unset = [name for name, value in _settings(made).items() if value is None]
        filled = {name: offers[name] for name in unset if name in offers}
        filled |= {name: seed for name in unset if name.endswith("__random_state")}
        if filled and _cloneable(made):
            made.set_params(**filled)
        else:
            for name, value in filled.items():
                setattr(made, name, value)
        return Treated(made, self.name, self.treatment)


class Treated:
    """A fresh encoder whose vectors are checked for NaN."""

    def __init__(self, encoder: Any, name: str, treatment: Treatment) -> None:
        self.encoder = encoder
        self.name = name
        self.treatment = treatment

    def fit_transform(self, items: Any, y: Any = None) -> np.ndarray:
        """Fit the encoder and return the vectors of the items."""
        given = (items,) if y is None else (items, y)
        if hasattr(self.encoder, "fit_transform"):
            values = self.encoder.fit_transform(*given, **self.treatment.fit_params)
        else:
            if hasattr(self.encoder, "fit"):
                self.encoder.fit(*given, **self.treatment.fit_params)
            values = self.encoder.transform(items)
        return self._checked(values, len(items))

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items."""
        return self._checked(self.encoder.transform(items), len(items))

    def _checked(self, values: Any, count: int) -> np.ndarray:
        fill = self.treatment.fill
        if fill is not None:
            dense = values.toarray() if hasattr(values, "toarray") else values
            numbers = np.asarray(dense, dtype=np.float64)
            values = np.where(np.isnan(numbers), fill, numbers)
        matrix = check_vectors(values, count, f"{self.name}.transform")
        empty = int(np.isnan(matrix[:, 0]).sum())
        if empty:
            raise ContractError(
                f"{self.name}.transform returned NaN for {empty} of {count} rows; "
                f"set na_fill_value to replace NaN."
            )
        return matrix


def contestants(models: Any, treatment: Treatment, named: Any) -> list[Contestant]:
    """Return the models of a list; raise one error with all mistakes, such as duplicate names.

    ``named`` finds an encoder by its name.
    """
    found: list[Contestant] = []
    messages: list[str] = []
    for name, thing in _pairs(models):
        try:
            found.append(_contestant(thing, name, treatment, named))
        except DefinitionError as error:
            messages += error.messages
        except KaratError as error:
            messages.append(str(error))
    names = [contestant.name for contestant in found]
    messages += [
        f'duplicate model name "{name}"; set the attribute name of one, or pass '
        f'{{"first": ..., "second": ...}}.'
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not found and not messages:
        messages.append("no model given.")
    if messages:
        raise DefinitionError(*dict.fromkeys(messages))
    return found


def copy_of(prototype: Any) -> Any:
    """Return an unfitted clone, or a deep copy if the constructor takes ``*args`` or ``**kwargs``.

    scikit-learn cannot recover the parameters of such a constructor.
    """
    if _cloneable(prototype):
        try:
            return clone(prototype)
        except (AttributeError, RuntimeError, TypeError):  # __init__ changes its parameters
            pass
    return copy.deepcopy(prototype)


def _cloneable(thing: Any) -> bool:
    if not hasattr(thing, "get_params"):
        return False
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = inspect.signature(type(thing).__init__).parameters.values()
    # object.__init__ has a signature with *args
    plain = type(thing).__init__ is object.__init__
    return plain or not any(parameter.kind in starred for parameter in taken)


def _settings(thing: Any) -> dict[str, Any]:
    if not _cloneable(thing):
        return dict(getattr(thing, "__dict__", {}))
    try:
        return dict(thing.get_params())
    except RuntimeError:  # a nested estimator takes *args
        return dict(thing.get_params(deep=False))


def _pairs(models: Any) -> list[tuple[str | None, Any]]:
    if isinstance(models, Mapping):
        return [(str(name), thing) for name, thing in models.items()]
    several = isinstance(models, Iterable) and not hasattr(models, "transform")
    listed = list(models) if several and not isinstance(models, str) else [models]
    return [(None, thing) for thing in listed]


def _contestant(thing: Any, name: str | None, treatment: Treatment, named: Any) -> Contestant:
    if isinstance(thing, str):
        thing = named(thing)
    try:
        model = adapt(thing)
    except RuntimeError:  # the constructor takes *args
        model = Model(type(thing).__name__, thing, "encoder")
    if model.unavailable:
        thing = AbsentRows(model.name, model.unavailable)
        model = adapt(thing)
    if not hasattr(model.prototype, "transform"):
        raise DefinitionError(
            f"{name or model.name} is a predictor; expected an encoder with fit and transform."
        )
    own = getattr(thing, "name", "")
    class_name = (thing if inspect.isclass(thing) else type(thing)).__name__
    label = name or (own if isinstance(own, str) else "") or model.name or class_name
    return Contestant(label, model.prototype, "encoder", params=model.params, treatment=treatment)
