"""The Model record and the base classes for encoders."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from types import MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from karat.core.embeddings import Variant, too_many_dimensions
from karat.core.replicates import accepted_seed, replicate_name, seed_parameters
from karat.core.services import service_of
from karat.errors import ContractError, Declined, DefinitionError, MissingExtra

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

#: what an encoder embeds: rows of a table, or a series or list of other items
Items: TypeAlias = "pd.DataFrame | pd.Series | list[Any]"
#: what an encoder is fitted with; None if the target is hidden
Target: TypeAlias = "np.ndarray | pd.Series | None"


class Parameterized:
    """Parameters from the signature of ``__init__``, as scikit-learn's BaseEstimator has them.

    Models of Karat use this base: importing scikit-learn takes longer than many commands. Its
    functions ``clone``, ``Pipeline`` and ``get_tags`` accept them.
    """

    @property
    def requires_fit(self) -> bool:
        """Whether the model learns from the training rows."""
        return True

    @property
    def requires_target(self) -> bool:
        """Whether the model cannot be fitted without a target."""
        return False

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls).parameters.values()
        return {
            p.name: p.default for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; ``deep`` includes those of parameters that have some."""
        params = {}
        for name in sorted(self._defaults()):
            value = params[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def nested(self) -> bool:
        """Return whether a parameter has parameters itself."""
        return any(hasattr(value, "get_params") for value in self.get_params(deep=False).values())

    def set_params(self, **params: Any) -> Any:
        """Set parameters, ``name__inner`` those of a parameter, and return the object."""
        for key in sorted(params, key=lambda path: path.count("__")):  # the outer ones first
            value, (name, nested, inner) = params[key], key.partition("__")
            if name not in self._defaults():
                names = ", ".join(sorted(self._defaults()))
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has: {names}."
                )
            if nested:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        params = self.get_params(deep=False).items()
        texts = {name: repr(value) for name, value in params}
        changed = [f"{name}={text}" for name, text in texts.items() if text != repr(defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        target = TargetTags(required=self.requires_target)
        return Tags(estimator_type=None, target_tags=target, requires_fit=self.requires_fit)


class FittedEncoder(Parameterized):
    """Base of encoders that are fitted: implement ``fit(items, y)`` and ``transform(items)``."""

    def fit_transform(self, items: Items, y: Target = None) -> Any:
        """Fit and transform."""
        fitted: Any = self
        return fitted.fit(items, y).transform(items)


class available_if:  # noqa: N801
    """Decorate a method that exists only if a condition holds, as scikit-learn's function does."""

    def __init__(self, condition: Callable[[Any], bool]) -> None:
        self.condition = condition

    def __call__(self, method: Callable[..., Any]) -> available_if:
        """Return the method, with the condition."""
        functools.update_wrapper(self, method)
        self.method = method
        return self

    def __get__(self, thing: object, owner: type) -> Any:
        if thing is None:
            return self.method
        if not self.condition(thing):
            raise AttributeError(f"{owner.__name__} has no {self.method.__name__} here")
        return MethodType(self.method, thing)


class StatelessEncoder(Parameterized):
    """Base of pretrained encoders: their vectors are computed once and cached.

    Implement ``transform(items)``; ``takes`` lists the supported modalities.
    """

    takes: tuple[str, ...] | None = None
    requires_fit = False

    def fit(self, items: Items, y: Target = None) -> StatelessEncoder:
        """Do nothing."""
        return self

    def transform(self, items: Items) -> Any:
        """Return one row per item."""
        raise ContractError(f"{type(self).__name__} has no transform method.")


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

    def transform(self, items: Items) -> Any:
        """Return one row per item."""
        return self.encode([str(text) for text in items])


class HasRequirements:
    """Base of models that need a library or file: implement ``check_installed``."""

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or file is missing."""
        raise NotImplementedError

    def unavailable(self) -> str:
        """Return what is missing and how to install it, or an empty string."""
        try:
            self.check_installed()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""


class PackagedEncoder(HasRequirements, TextEncoder):
    """Base of text encoders with weights in files; loaded weights are not pickled.

    ``needs`` lists the modules it imports, ``packages`` those whose version affects the vectors.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

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


def import_extra(module: str, extra: str) -> Any:
    """Import an optional library; raise MissingExtra if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(module, extra) from error


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Set the number of torch threads inside; one thread gives the same bits everywhere."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Model:
    """A named encoder or predictor.

    Attributes
    ----------
    prototype
        An unfitted object with ``fit`` and ``transform`` (encoder) or ``predict`` (predictor).
    role
        ``"encoder"``, ``"predictor"``, or ``"searcher"`` (it ranks documents for queries).
    takes
        The supported modalities, or None if not declared.
    unavailable
        Why it cannot run (a library or file is missing), or an empty string.
    limits
        Resource limits, passed to parameters of these names that are None.
    artifacts
        What to save in addition to predictions, such as ``"models"``.
    depends_on
        What its results depend on besides its code and parameters, as part of its identity: paths
        of files and folders, ``"env:NAME"`` for an environment variable, and ``"version:TEXT"``
        for a text that is changed by hand.
    base, variant
        The name of the encoder of which this is a variant, with fewer dimensions or bits.
    variants
        The variants that are evaluated together with it.
    replicate
        0, or the number of a further fit of each fold, with another seed.
    refused
        The modalities that it was found not to take, with the reason of each.
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
    depends_on: tuple[str, ...] = ()
    base: str = ""
    variant: Variant | None = None
    variants: tuple[Variant, ...] = ()
    replicate: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name, with the number of its seed if this is not the first."""
        return replicate_name(self.name, self.replicate)

    @property
    def sends_texts(self) -> bool:
        """Whether it is an encoder that sends texts to a service, such as an endpoint."""
        return bool(service_of(self.prototype))

    @property
    def precision(self) -> str:
        """How a vector is stored: ``"float32"``, ``"float16"``, ``"int8"`` or ``"binary"``."""
        return "float32" if self.variant is None else self.variant.precision

    def expanded(self) -> list[Model]:
        """Return the model and all of its variants."""
        return [dataclasses.replace(self, variants=()), *map(self.as_variant, self.variants)]

    def as_variant(self, variant: Variant) -> Model:
        """Return a variant of an encoder; its prototype is that of the encoder."""
        if self.role != "encoder" or self.variant is not None:
            kind = "a variant" if self.variant is not None else f"a {self.role}"
            raise DefinitionError(
                f"{self.name} is {kind}; dimensions and precision need an encoder."
            )
        server = getattr(self.prototype, "dimensions", None) if self.sends_texts else None
        if variant.dimensions is not None and server is not None:
            raise DefinitionError(
                f"{self.name}: its server shortens vectors to {server} dimensions, a parameter of "
                f"the endpoint; variants with fewer dimensions need an endpoint without it."
            )
        width = getattr(self.prototype, "embedding_dimension", None)
        if variant.dimensions and isinstance(width, int) and variant.dimensions > width:
            raise DefinitionError(f"{self.name}: {too_many_dimensions(variant.dimensions, width)}")
        return dataclasses.replace(
            self,
            name=f"{self.name}@{variant.label}",
            base=self.name,
            variant=variant,
            variants=(),
            params={**self.params, **variant.params},
        )

    @property
    def stateless(self) -> bool:
        """Whether it is a pretrained encoder, whose vectors can be cached."""
        if self.role != "encoder":
            return False
        if not hasattr(self.prototype, "fit"):
            return True
        tags = sklearn_tags(self.prototype)
        return tags is not None and not tags.requires_fit

    def fresh(self, seed: int, kind: str) -> Any:
        """Return an unfitted copy with every ``random_state`` set, including nested ones.

        These parameters are filled in if they are None: ``kind`` (of the target), the limits
        ``max_runtime_seconds``, ``max_mem_size_mb`` and ``cores``, and ``optimize``, the primary
        metric.
        """
        if hasattr(self.prototype, "get_params"):
            defaults = self.prototype.get_params()
        else:
            defaults = getattr(self.prototype, "__dict__", {})
        values = {"kind": kind, **self.limits}
        params = {
            name: values[name] for name in values if name in defaults and defaults[name] is None
        }
        params |= dict.fromkeys(seed_parameters(self.prototype), accepted_seed(seed))
        if self.stateless and not params:
            return self.prototype
        copied = _copy(self.prototype)
        if hasattr(copied, "set_params"):
            return copied.set_params(**params)
        for name, value in params.items():
            setattr(copied, name, value)
        return copied


def sklearn_tags(thing: Any) -> Any | None:
    """Return the scikit-learn tags of an object, or None.

    >>> sklearn_tags(StatelessEncoder()).requires_fit
    False
    """
    if getattr(type(thing), "__sklearn_tags__", None) is Parameterized.__sklearn_tags__:
        target = SimpleNamespace(required=thing.requires_target)  # without scikit-learn
        return SimpleNamespace(
            requires_fit=thing.requires_fit, target_tags=target, estimator_type=None
        )
    try:
        return thing.__sklearn_tags__()
    except Exception:  # a mixin without BaseEstimator has the method, but it fails
        return None


def fit_weighted(
    estimator: BaseEstimator, X: object, y: Target, weight: np.ndarray | None
) -> list[str]:
    """Fit an estimator, with the weights of the rows if it takes them; else return a note.

    >>> from sklearn.linear_model import LinearRegression
    >>> fit_weighted(LinearRegression(), [[0], [1], [2]], [0, 1, 5], np.array([1.0, 1.0, 0.0]))
    []
    """
    name = None if weight is None else _weight_parameter(estimator)
    estimator.fit(X, y, **({} if name is None else {name: weight}))
    if weight is None or name is not None:
        return []
    return [f"{type(estimator).__name__} does not take weights: all rows counted the same in fit"]


def _weight_parameter(estimator: BaseEstimator) -> str | None:
    """Return the parameter of ``fit`` that takes weights; of a pipeline, that of its last step."""
    try:
        if "sample_weight" in inspect.signature(estimator.fit).parameters:
            return "sample_weight"
    except (TypeError, ValueError):  # a function of an extension module
        return None
    steps = getattr(estimator, "steps", None)
    if not isinstance(steps, list) or not steps or not hasattr(steps[-1][1], "fit"):
        return None
    inner = _weight_parameter(steps[-1][1])
    return None if inner is None else f"{steps[-1][0]}__{inner}"


def _copy(prototype: object) -> Any:
    if not hasattr(prototype, "get_params"):
        return copy.deepcopy(prototype)
    if isinstance(prototype, Parameterized) and not prototype.nested():
        # as scikit-learn's clone, which takes longer to import than many jobs
        return type(prototype)(**copy.deepcopy(prototype.get_params(deep=False)))
    from sklearn.base import clone

    try:
        return clone(prototype)
    except (RuntimeError, TypeError):  # its __init__ changes a parameter
        return copy.deepcopy(prototype)


def target_kind(y: np.ndarray | None, kind: str | None) -> str:
    """Return the declared kind of target; if None, floats are numbers, everything else classes.

    >>> target_kind(np.array([0.5, 1.5]), None), target_kind(np.array([0.5, 1.5]), "classification")
    ('regression', 'classification')
    """
    fractions = y is not None and np.asarray(y).dtype.kind == "f"
    return kind or ("regression" if fractions else "classification")


def assign_folds(y: np.ndarray, kind: str, folds: int, seed: int) -> np.ndarray:
    """Return a fold for every row; folds have equal size and are stratified by class.

    A class of two or more rows is in at least two folds.

    >>> sorted(assign_folds(np.array(["a", "b", "a", "b"]), "classification", 2, 0)[:2].tolist())
    [0, 1]
    """
    order = np.random.default_rng(seed).permutation(len(y))
    if kind == "classification":
        codes = np.unique(np.asarray(y)[order], return_inverse=True)[1]
        order = order[np.argsort(codes, kind="stable")]
    fold_of = np.empty(len(y), dtype=int)
    fold_of[order] = np.arange(len(y)) % folds
    return fold_of
