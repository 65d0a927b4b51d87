"""Model: a name for an encoder or predictor, and how a fresh copy is made for each fold."""

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


class TextEncoder(StatelessEncoder):
    """A base for encoders of texts: write ``encode(texts)``, from a list to one row per text.

    Of items of the modalities in ``by_text`` it looks at nothing but their text, so that each
    distinct text needs to be encoded only once.
    """

    takes: tuple[str, ...] | None = ("text", "entity")
    by_text: tuple[str, ...] = ("text", "entity")

    def encode(self, texts: list[str]) -> Any:
        """Return one row per text."""
        raise ContractError(f"{type(self).__name__} has no encode method.")

    def transform(self, items: Any) -> Any:
        """Return one row per item, of its text alone."""
        return self.encode([str(text) for text in items])


class PackagedEncoder(TextEncoder):
    """A base for encoders of texts whose weights are files; what is loaded is never pickled.

    ``needs`` are the modules it imports, ``packages`` those whose version makes other vectors.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    def unavailable(self) -> str:
        """Return what is missing to run it here, and how to get it; nothing where all is there."""
        try:
            self.check_installed()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined, with what to do, where a library or file is missing."""
        for module in self.needs:
            if importlib.util.find_spec(module) is None:
                raise MissingExtra(module, self.extra)

    def fingerprint(self) -> str:
        """Return who it is: its parameters, and the versions of its packages."""
        versions = [f"{name} {metadata.version(name)}" for name in self.packages]
        return " ".join([repr(sorted(self.get_params().items())), *versions])

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


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
    limits
        What a job may take, for parameters of these names that were left open.
    artifacts
        What it is to leave beside its predictions, such as ``"models"``.
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
        """Whether it learns nothing, so that its vectors can be kept."""
        if self.role != "encoder":
            return False
        if not hasattr(self.prototype, "fit"):
            return True
        told = tags_of(self.prototype)
        return told is not None and not told.requires_fit

    def fresh(self, seed: int, kind: str) -> Any:
        """Return an unfitted copy with its ``random_state`` set, those of its parts too.

        A parameter ``kind`` that was left open is told what the truth is; so are the limits, by
        the names ``max_runtime_seconds``, ``max_mem_size_mb`` and ``cores``, and the metric that
        counts, ``optimise``.
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
        offered = {"kind": kind, **self.limits}
        left_open = {name for name in params if params[name] is None}
        return {**seeds, **{name: offered[name] for name in offered if name in left_open}}


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
