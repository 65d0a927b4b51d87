"""The Model record, and base classes for encoders."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from karat.errors import ContractError, Declined, MissingExtra


class StatelessEncoder(BaseEstimator):
    """Base of pretrained encoders: their vectors are computed once and cached.

    Implement ``transform(items)``; ``takes`` lists the supported modalities.
    """

    takes: tuple[str, ...] | None = None

    def fit(self, items: Any, y: Any = None) -> StatelessEncoder:
        """Do nothing."""
        return self

    def transform(self, items: Any) -> Any:
        """Return one row per item."""
        raise ContractError(f"{type(self).__name__} has no transform method.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class TextEncoder(StatelessEncoder):
    """Base of text encoders: implement ``encode(texts)``, from a list to one row per text.

    The vector of an item depends on its text only for the modalities in ``by_text``, so that each
    distinct text is encoded once.
    """

    takes: tuple[str, ...] | None = ("text", "entity")
    by_text: tuple[str, ...] = ("text", "entity")

    def encode(self, texts: list[str]) -> Any:
        """Return one row per text."""
        raise ContractError(f"{type(self).__name__} has no encode method.")

    def transform(self, items: Any) -> Any:
        """Return one row per item."""
        return self.encode([str(text) for text in items])


class PackagedEncoder(TextEncoder):
    """Base of text encoders with weights in files; loaded weights are not pickled.

    ``needs`` lists the modules it imports, ``packages`` those whose version affects the vectors.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    def unavailable(self) -> str:
        """Return what is missing and how to install it, or an empty string."""
        try:
            self.check_installed()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or file is missing."""
        for module in self.needs:
            if importlib.util.find_spec(module) is None:
                raise MissingExtra(module, self.extra)

    def fingerprint(self) -> str:
        """Return the parameters and the package versions."""
        versions = [f"{name} {metadata.version(name)}" for name in self.packages]
        return " ".join([repr(sorted(self.get_params().items())), *versions])

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


@dataclass(frozen=True, eq=False)
class Model:
    """A named encoder or predictor.

    Attributes
    ----------
    prototype
        An unfitted object with ``fit`` and ``transform`` (encoder) or ``predict`` (predictor).
    role
        ``"encoder"`` or ``"predictor"``.
    takes
        The supported modalities, or None if not declared.
    unavailable
        Why it cannot run (a library or file is missing), or an empty string.
    limits
        Resource limits, passed to parameters of these names that are None.
    artifacts
        What to save in addition to predictions, such as ``"models"``.
    """

    name: str
    prototype: Any
    role: str
    takes: tuple[str, ...] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    unavailable: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()

    @property
    def stateless(self) -> bool:
        """Whether it is a pretrained encoder, whose vectors can be cached."""
        if self.role != "encoder":
            return False
        if not hasattr(self.prototype, "fit"):
            return True
        tags = tags_of(self.prototype)
        return tags is not None and not tags.requires_fit

    def fresh(self, seed: int, kind: str) -> Any:
        """Return an unfitted copy with every ``random_state`` set, including nested ones.

        These parameters are filled in if they are None: ``kind`` (of the target), the limits
        ``max_runtime_seconds``, ``max_mem_size_mb`` and ``cores``, and ``optimise``, the primary
        metric.
        """
        params = self._params_to_set(seed % (2**31 - 1), kind)
        if self.stateless and not params:
            return self.prototype
        made = _copy(self.prototype)
        if hasattr(made, "set_params"):
            return made.set_params(**params)
        for name, value in params.items():
            setattr(made, name, value)
        return made

    def _params_to_set(self, seed: int, kind: str) -> dict[str, Any]:
        if hasattr(self.prototype, "get_params"):
            params = self.prototype.get_params()
        else:
            params = getattr(self.prototype, "__dict__", {})
        seeds = {name: seed for name in params if name.rpartition("__")[2] == "random_state"}
        values = {"kind": kind, **self.limits}
        unset = {name for name in params if params[name] is None}
        return {**seeds, **{name: values[name] for name in values if name in unset}}


def tags_of(thing: Any) -> Any | None:
    """Return the scikit-learn tags of an object, or None.

    >>> tags_of(StatelessEncoder()).requires_fit
    False
    """
    try:
        return thing.__sklearn_tags__()
    except Exception:  # a mixin without BaseEstimator has the method, but it fails
        return None


def _copy(prototype: Any) -> Any:
    from sklearn.base import clone

    if not hasattr(prototype, "get_params"):
        return copy.deepcopy(prototype)
    try:
        return clone(prototype)
    except (RuntimeError, TypeError):  # its __init__ changes a parameter
        return copy.deepcopy(prototype)
