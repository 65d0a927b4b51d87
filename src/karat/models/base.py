"""Model: a name for an encoder or predictor, and how a fresh copy is made for each fold."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from karat.errors import ContractError


class StatelessEncoder(BaseEstimator):
    """A base for encoders that learn nothing: their vectors are computed once and kept.

    Write ``transform(items)``; say which items you take in ``takes``.
    """

    takes: tuple[str, ...] | None = None

    def fit(self, items: Any, y: Any = None) -> StatelessEncoder:
        """Learn nothing."""
        return self

    def transform(self, items: Any) -> Any:
        """Return one row per item."""
        raise ContractError(f"{type(self).__name__} has no transform method.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@dataclass(frozen=True, eq=False)
class Model:
    """An encoder or a predictor under the name people know it by.

    Attributes
    ----------
    prototype
        An unfitted object with ``fit`` and ``transform`` (encoder) or ``predict`` (predictor).
    role
        ``"encoder"`` or ``"predictor"``.
    takes
        The modalities it can read, or nothing when it did not say.
    unavailable
        Why it cannot run here (a library or file is missing), or nothing.
    """

    name: str
    prototype: Any
    role: str
    takes: tuple[str, ...] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    unavailable: str = ""

    @property
    def stateless(self) -> bool:
        """Whether it learns nothing, so that its vectors can be kept."""
        if self.role != "encoder":
            return False
        if not hasattr(self.prototype, "fit"):
            return True
        told = tags_of(self.prototype)
        return told is not None and not told.requires_fit

    def fresh(self, seed: int, kind: str) -> Any:
        """Return an unfitted copy with its ``random_state`` set, those of its parts too.

        A parameter ``kind`` that was left open is told what the truth is.
        """
        filled = self._filled(seed % (2**31 - 1), kind)
        if self.stateless and not filled:
            return self.prototype
        made = _copy(self.prototype)
        if hasattr(made, "set_params"):
            return made.set_params(**filled)
        for name, value in filled.items():
            setattr(made, name, value)
        return made

    def _filled(self, seed: int, kind: str) -> dict[str, Any]:
        if hasattr(self.prototype, "get_params"):
            params = self.prototype.get_params()
        else:
            params = getattr(self.prototype, "__dict__", {})
        seeds = {name: seed for name in params if name.rpartition("__")[2] == "random_state"}
        open_kind = "kind" in params and params["kind"] is None
        return {**seeds, "kind": kind} if open_kind else seeds


def tags_of(thing: Any) -> Any | None:
    """Return what an object tells about itself in scikit-learn's way, or nothing.

    >>> tags_of(StatelessEncoder()).requires_fit
    False
    """
    try:
        return thing.__sklearn_tags__()
    except Exception:  # a mixin without BaseEstimator has the method and fails inside it
        return None


def _copy(prototype: Any) -> Any:
    from sklearn.base import clone

    if not hasattr(prototype, "get_params"):
        return copy.deepcopy(prototype)
    try:
        return clone(prototype)
    except (RuntimeError, TypeError):  # its __init__ changes what it is given
        return copy.deepcopy(prototype)
