"""Contestants: what may stand in a list of models, and how a fresh copy meets each data set."""

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
    """What an evaluation does with every encoder.

    ``fit_params`` go to its ``fit``; ``fill`` takes the place of NaN in its vectors, and nothing
    means that NaN is refused.
    """

    fit_params: Mapping[str, Any] = field(default_factory=dict)
    fill: float | None = None


@dataclass(frozen=True, eq=False)
class Contestant(Model):
    """An encoder whose copies keep what its owner has set, under the treatment of an evaluation."""

    treatment: Treatment = field(default_factory=Treatment)

    def fresh(self, seed: int, kind: str) -> Any:
        """Return a copy; a ``random_state`` or ``kind`` that was left open is filled in."""
        made = copy_of(self.prototype)
        given = _settings(made)
        offers: dict[str, Any] = {"random_state": seed, "kind": kind}
        left_open = [name for name, value in given.items() if value is None]
        filled = {name: offers[name] for name in left_open if name in offers}
        # those of its parts, too
        filled |= {name: seed for name in left_open if name.endswith("__random_state")}
        if filled and _cloneable(made):
            made.set_params(**filled)
        else:
            for name, value in filled.items():
                setattr(made, name, value)
        return Treated(made, self.name, self.treatment)


class Treated:
    """A fresh encoder whose vectors are checked: TabEB's promise is that none holds NaN."""

    def __init__(self, encoder: Any, name: str, treatment: Treatment) -> None:
        self.encoder = encoder
        self.name = name
        self.treatment = treatment

    def fit_transform(self, items: Any, y: Any = None) -> np.ndarray:
        """Fit the encoder and return the vectors of these items."""
        given = (items,) if y is None else (items, y)
        if hasattr(self.encoder, "fit_transform"):
            values = self.encoder.fit_transform(*given, **self.treatment.fit_params)
        else:
            if hasattr(self.encoder, "fit"):
                self.encoder.fit(*given, **self.treatment.fit_params)
            values = self.encoder.transform(items)
        return self._checked(values, len(items))

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of these items."""
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
                f"na_fill_value puts a number in its place."
            )
        return matrix


def contestants(models: Any, treatment: Treatment, named: Any) -> list[Contestant]:
    """Return a list of models, ready to be copied; all mistakes in it are said at once.

    ``named`` finds an encoder by its name. Two of one name are a mistake: both would be one row.
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
        f'two models are called "{name}"; set the attribute name of one, or pass '
        f'{{"first": …, "second": …}}.'
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not found and not messages:
        messages.append("no model was given.")
    if messages:
        raise DefinitionError(*dict.fromkeys(messages))
    return found


def copy_of(prototype: Any) -> Any:
    """Return an unfitted copy, or a true one where scikit-learn would lose parameters.

    A constructor with ``*args`` or ``**kwargs`` does not tell what it was given.
    """
    if _cloneable(prototype):
        try:
            return clone(prototype)
        except (AttributeError, RuntimeError, TypeError):  # its __init__ changes what it is given
            pass
    return copy.deepcopy(prototype)


def _cloneable(thing: Any) -> bool:
    if not hasattr(thing, "get_params"):
        return False
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = inspect.signature(type(thing).__init__).parameters.values()
    # the constructor that every class has takes anything and means nothing
    plain = type(thing).__init__ is object.__init__
    return plain or not any(parameter.kind in starred for parameter in taken)


def _settings(thing: Any) -> dict[str, Any]:
    if not _cloneable(thing):
        return dict(getattr(thing, "__dict__", {}))
    try:
        return dict(thing.get_params())
    except RuntimeError:  # one of its parts takes *args
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
    except RuntimeError:  # scikit-learn's word on a constructor that takes *args
        model = Model(type(thing).__name__, thing, "encoder")
    if model.unavailable:
        thing = AbsentRows(model.name, model.unavailable)
        model = adapt(thing)
    if not hasattr(model.prototype, "transform"):
        raise DefinitionError(
            f"{name or model.name} is a predictor; a task takes encoders, with fit and transform."
        )
    own = getattr(thing, "name", "")
    label = name or (own if isinstance(own, str) and own else "") or _class_name(thing, model)
    return Contestant(label, model.prototype, "encoder", params=model.params, treatment=treatment)


def _class_name(thing: Any, model: Model) -> str:
    return model.name or (thing if inspect.isclass(thing) else type(thing)).__name__
