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
        if not hasattr(self.prototype, "__sklearn_tags__"):
            return False
        return not self.prototype.__sklearn_tags__().requires_fit

    def fresh(self, seed: int, kind: str) -> Any:
        """Return an unfitted copy; its parameters ``random_state`` and ``kind`` are filled in."""
        offers = {"random_state": seed % (2**31 - 1), "kind": kind}
        params: dict[str, Any] = getattr(self.prototype, "get_params", dict)()
        filled = {
            name: offers[name.rpartition("__")[2]]
            for name in params
            if name.rpartition("__")[2] == "random_state" or name == "kind"
        }
        if self.stateless and not filled:
            return self.prototype
        made = _copy(self.prototype)
        return made.set_params(**filled) if filled else made


def _copy(prototype: Any) -> Any:
    if hasattr(prototype, "get_params") and not isinstance(prototype, type):
        from sklearn.base import clone

        return clone(prototype)
    return copy.deepcopy(prototype)
