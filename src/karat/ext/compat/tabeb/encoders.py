"""TabEB's encoders, the rows they are trained and tested on, and fresh copies per dataset."""

from __future__ import annotations

import contextlib
import copy
import inspect
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone

from karat.core.dataset import Dataset
from karat.core.embeddings import check_vectors
from karat.core.registry import accepts, build, load_object
from karat.errors import (
    ContractError,
    DataError,
    Declined,
    DefinitionError,
    KaratError,
    MissingExtra,
    did_you_mean,
)
from karat.execution.splits import Fold, split
from karat.ext.compat.tabeb.readers import KINDS
from karat.models.adapters import adapt
from karat.models.model import Model
from karat.models.random_encoder import RandomEncoder

#: the features of rows
Features: TypeAlias = pd.DataFrame | np.ndarray
PROTOCOLS = ("corrected", "original")
GROUPS = (None, "entity", "row")
CARTE = "karat.ext.models.carte:CarteEncoder"
#: CARTE's parameters by TabEB's names
CARTE_NAMES = {
    "pretrain_model_path": "pretrained",
    "lm_path": "fasttext",
    "num_models": "num_model",
}
#: its parameters that are accepted without effect: Karat trains in one process, without a bar
CARTE_IGNORED = ("n_jobs", "disable_pbar")


@dataclass(frozen=True)
class Rows:
    """How a table is sampled and split.

    Attributes
    ----------
    protocol
        ``"corrected"``: a random sample and a stratified split by groups. ``"original"``: the
        first rows, and scikit-learn's GroupShuffleSplit as TabEB calls it.
    n_train
        Number of training rows (of groups under ``"original"``). Default: 80 %.
    group
        Keep rows of one ``"entity"`` or with equal features (``"row"``) on the same side.
        Default: by entity if the metadata have ``repeated``.
    whole_classes
        Whether a sample contains all rows of a class or none, for deduplication.
    """

    protocol: str = "corrected"
    seed: int = 42
    max_rows: int | None = None
    n_train: int | None = None
    group: str | None = None
    whole_classes: bool = False

    def __post_init__(self) -> None:
        for name, allowed_values in (("protocol", PROTOCOLS), ("group", GROUPS)):
            value = getattr(self, name)
            if value not in allowed_values:
                hint = did_you_mean(str(value), [text for text in allowed_values if text])
                allowed = " or ".join(map(repr, allowed_values))
                raise DefinitionError(f"{name} must be {allowed}, got {value!r}.{hint}")
        for name, least in (("seed", 0), ("max_rows", 2), ("n_train", 1)):
            value = getattr(self, name)
            is_integer = isinstance(value, Integral) and not isinstance(value, bool)
            if not (is_integer and value >= least) and (name == "seed" or value is not None):
                raise DefinitionError(f"{name} must be an integer >= {least}, got {value!r}.")

    def taken(self, table: pd.DataFrame, metadata: Mapping[str, Any], name: str) -> Dataset:
        """Return the rows that are used as a dataset, with their groups."""
        entity = metadata.get("entity_name")
        by_entity = self.group == "entity" or bool(self.group is None and metadata.get("repeated"))
        if by_entity and not entity:
            raise DataError(f'{name}: cannot group by entity: the metadata lack "entity_name".')
        if "target_name" not in metadata:
            raise DataError(f'{name}: the metadata lack "target_name".')
        data = Dataset.from_table(
            table,
            metadata["target_name"],
            name=name,
            kind=column_kind(metadata, name),
            group=entity if by_entity else None,
            group_feature=True,
        ).with_drawn_by("name")
        if self.group == "row":
            data = replace(data, group=row_keys(data.items, index=False))
        if self.whole_classes:
            data = replace(data, group=data.target)
        if self.max_rows is None or self.max_rows >= len(data):
            return data
        if self.protocol == "original":
            return data.take(np.arange(self.max_rows))
        # the same sample as in a Karat run
        rng = np.random.default_rng([self.seed, zlib.crc32(f"rows {name}".encode())])
        return data.sample(self.max_rows, rng)

    def fold(self, data: Dataset) -> Fold:
        """Return the training and test rows."""
        from sklearn.model_selection import GroupShuffleSplit

        if self.protocol == "corrected":
            rows = {} if self.n_train is None else {"train_rows": int(self.n_train)}
            return split(data, {"use": "holdout", **rows}, self.seed)[0]
        # sorted, as TabEB numbers its groups
        codes = None if data.group is None else pd.factorize(data.group, sort=True)[0]
        groups = np.arange(len(data)) if codes is None else codes
        count = int(groups.max()) + 1
        wanted = int(0.8 * len(data)) if self.n_train is None else int(self.n_train)
        if not 0 < wanted < count:
            raise DataError(f"{data.name}: cannot train on {wanted} of {count} groups of rows.")
        splitter = GroupShuffleSplit(n_splits=1, test_size=count - wanted, random_state=self.seed)
        return Fold(*next(splitter.split(np.zeros(len(data)), groups=groups)))


def column_kind(metadata: Mapping[str, Any], name: str) -> str | None:
    """Return the kind of the target according to the metadata, or None."""
    task = metadata.get("task")
    if task is None or task in KINDS:
        return task
    raise DataError(
        f'{name}: "task" in the metadata must be regression or classification, got {task!r}.'
        f"{did_you_mean(str(task), KINDS)}"
    )


def row_keys(table: pd.DataFrame, *, index: bool) -> np.ndarray:
    """Return a hash per row, equal for rows with equal cells (and index).

    >>> keys = row_keys([[1, "a"], [1, "a"], [2, "a"]], index=False)
    >>> (keys == keys[0]).tolist()
    [True, True, False]
    """
    frame = pd.DataFrame(table)
    try:
        keys = pd.util.hash_pandas_object(frame, index=index)
    except TypeError:  # cells that cannot be hashed
        keys = pd.util.hash_pandas_object(frame.map(repr), index=index)
    return np.asarray(keys)


class TabEBBaseEncoder(TransformerMixin, BaseEstimator, ABC):
    """Base class of encoders; subclasses implement ``fit`` and ``transform``.

    ``name`` labels the encoder's row in score tables (default: the class name).
    """

    name: str = ""
    device: str | None = None

    def __init__(self, device: str | None = None) -> None:
        self.device = device

    @abstractmethod
    def fit(self, X: Features, y: np.ndarray | None = None) -> Any:
        """Fit on the rows of a table, and on their target if given."""

    @abstractmethod
    def transform(self, X: Features, y: np.ndarray | None = None) -> Any:
        """Return one vector per row, all of the same length and without NaN."""

    def fit_transform(self, X: Features, y: np.ndarray | None = None, **fit_params: Any) -> Any:
        """Fit the encoder and return the vectors of the rows."""
        self.fit(X, **fit_params) if y is None else self.fit(X, y, **fit_params)
        return self.transform(X)

    def normalize(self, embedding: np.ndarray) -> np.ndarray:
        """Scale the rows to length 1; rows of zeros are unchanged."""
        embedding = np.asarray(embedding)
        if embedding.ndim != 2:
            raise ValueError(f"embeddings must have two dimensions, got {embedding.ndim}.")
        norms = np.linalg.norm(embedding, axis=1, keepdims=True)
        return np.asarray(embedding / np.where(norms == 0, 1, norms))


class RandomRows(TabEBBaseEncoder):
    """A random unit vector per row, drawn from the row's index, its cells and the seed."""

    name = "random_encoder"

    def __init__(self, embedding_size: int = 128, random_state: int | None = None) -> None:
        self.embedding_size = embedding_size
        self.random_state = random_state

    def fit(self, X: Features, y: np.ndarray | None = None) -> RandomRows:
        """Return self; the encoder is stateless."""
        return self

    def transform(self, X: Features, y: np.ndarray | None = None) -> np.ndarray:
        """Return one random vector per row."""
        keys = pd.Series(0, index=row_keys(X, index=True))
        drawn = RandomEncoder(self.embedding_size, self.random_state).transform(keys)
        return self.normalize(drawn)


class SkrubRows(TabEBBaseEncoder):
    """skrub's TableVectorizer with ``options``; missing values become 0."""

    name = "skrub_encoder"

    def __init__(
        self, options: Mapping[str, Any] | None = None, random_state: int | None = None
    ) -> None:
        self.options = options
        self.random_state = random_state

    def fit(self, X: Features, y: np.ndarray | None = None) -> SkrubRows:
        """Fit the vectorizer."""
        self.fit_transform(X, y)
        return self

    def fit_transform(
        self, X: Features, y: np.ndarray | None = None, **fit_params: Any
    ) -> np.ndarray:
        """Fit the vectorizer and encode the rows."""
        try:
            from skrub import StringEncoder, TableVectorizer
        except ImportError as error:
            raise MissingExtra("skrub", "tables") from error
        usual = {"high_cardinality": StringEncoder(random_state=self.random_state)}
        self.vectorizer_ = TableVectorizer(**{**usual, **(self.options or {})})
        return _filled(self.vectorizer_.fit_transform(X, y, **fit_params))

    def transform(self, X: Features, y: np.ndarray | None = None) -> np.ndarray:
        """Return one row of numbers per table row."""
        return _filled(self.vectorizer_.transform(X))


class CarteRows(TabEBBaseEncoder):
    """Karat's CARTE encoder with ``options``; ``kind``, if set, overrides ``task``."""

    name = "carte_encoder"

    def __init__(
        self,
        task: str = "regression",
        options: Mapping[str, Any] | None = None,
        kind: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.task = task
        self.options = options
        self.kind = kind
        self.random_state = random_state

    def fit(self, X: Features, y: np.ndarray | None = None) -> CarteRows:
        """Fine-tune the network on the rows and their target."""
        self.encoder_ = self._made().fit(X, y)
        return self

    def fit_transform(self, X: Features, y: np.ndarray | None = None, **fit_params: Any) -> Any:
        """Fine-tune the network and return the vectors of the rows."""
        self.encoder_ = self._made()
        return self.encoder_.fit_transform(X, y, **fit_params)

    def transform(self, X: Features, y: np.ndarray | None = None) -> Any:
        """Return the network's vectors of the rows."""
        return self.encoder_.transform(X)

    def _made(self) -> Any:
        offers = {"kind": self.kind or self.task, "random_state": self.random_state}
        return build(f'model "{self.name}"', load_object(CARTE), self.options or {}, offers)


class AbsentRows(TabEBBaseEncoder):
    """An unavailable encoder: every call raises the reason."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def fit(self, X: Features, y: np.ndarray | None = None) -> Any:
        """Raise the reason."""
        raise Declined(self.reason)

    transform = fit


def random_encoder(**params: Any) -> RandomRows:
    """Return the random encoder."""
    return build('model "random_encoder"', RandomRows, params, {})


def skrub_encoder(random_state: int | None = None, **options: Any) -> SkrubRows:
    """Return skrub's vectorizer with options of ``TableVectorizer``."""
    # if skrub is missing, the error is raised on use, so that other encoders still run
    with contextlib.suppress(ImportError):
        from skrub import TableVectorizer

        check_params("skrub_encoder", options, accepts(TableVectorizer)[0])
    return SkrubRows(options, random_state)


def carte_encoder(
    task: str = "regression", random_state: int | None = None, **options: Any
) -> CarteRows:
    """Return the CARTE encoder; missing dependencies raise on use.

    ``n_jobs`` and ``disable_pbar`` have no effect.
    """
    if task not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        raise DefinitionError(
            f'model "carte_encoder": task must be regression or classification, got {task!r}.{hint}'
        )
    params = {*accepts(load_object(CARTE))[0], *CARTE_NAMES, *CARTE_IGNORED}
    check_params("carte_encoder", options, params)
    used = {name: value for name, value in options.items() if name not in CARTE_IGNORED}
    named = {CARTE_NAMES.get(name, name): value for name, value in used.items()}
    return CarteRows(task, named, random_state=random_state)


def check_params(name: str, params: Iterable[str], available: Collection[str]) -> None:
    """Raise if a model does not have one of the given parameters."""
    for param in params:
        if param not in available:
            raise DefinitionError(
                f'model "{name}" has no parameter "{param}".{did_you_mean(param, available)} '
                f"Available: {', '.join(sorted(available)) or 'none'}."
            )


def _filled(table: pd.DataFrame, value: float = 0.0) -> np.ndarray:
    """Return numbers of the same precision with a value instead of NaN."""
    numbers = np.asarray(table)
    if numbers.dtype.kind != "f":
        numbers = numbers.astype(np.float64)
    return np.where(np.isnan(numbers), numbers.dtype.type(value), numbers)


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
        fresh = copy_of(self.prototype)
        offers: dict[str, Any] = {"random_state": seed, "kind": kind}
        unset = [name for name, value in _settings(fresh).items() if value is None]
        filled = {name: offers[name] for name in unset if name in offers}
        filled |= {name: seed for name in unset if name.endswith("__random_state")}
        if filled and _cloneable(fresh):
            fresh.set_params(**filled)
        else:
            for name, value in filled.items():
                setattr(fresh, name, value)
        return Treated(fresh, self.name, self.treatment)


@dataclass
class Treated:
    """A fresh encoder whose vectors are checked for NaN."""

    encoder: Any
    name: str
    treatment: Treatment

    def fit_transform(self, items: Features, y: np.ndarray | None = None) -> np.ndarray:
        """Fit the encoder and return the vectors of the items."""
        arguments = (items,) if y is None else (items, y)
        if hasattr(self.encoder, "fit_transform"):
            values = self.encoder.fit_transform(*arguments, **self.treatment.fit_params)
        else:
            if hasattr(self.encoder, "fit"):
                self.encoder.fit(*arguments, **self.treatment.fit_params)
            values = self.encoder.transform(items)
        return self._checked(values, len(items))

    def transform(self, items: Features) -> np.ndarray:
        """Return the vectors of the items."""
        return self._checked(self.encoder.transform(items), len(items))

    def _checked(self, values: np.ndarray, count: int) -> np.ndarray:
        fill = self.treatment.fill
        if fill is not None:
            dense = values.toarray() if hasattr(values, "toarray") else values
            values = _filled(dense, fill)
        matrix = check_vectors(values, count, f"{self.name}.transform")
        empty = int(np.isnan(matrix[:, 0]).sum())
        if empty:
            raise ContractError(
                f"{self.name}.transform returned NaN for {empty} of {count} rows; "
                f"set na_fill_value to replace NaN."
            )
        return matrix


def contestants(
    models: Any, treatment: Treatment, named: Callable[[str], object]
) -> list[Contestant]:
    """Return the models of a list; raise one error with all mistakes, such as duplicate names.

    ``named`` finds an encoder by its name.
    """
    checked: list[Contestant] = []
    messages: list[str] = []
    if isinstance(models, Mapping):
        pairs: list[tuple[str | None, Any]] = [(str(name), model) for name, model in models.items()]
    else:
        several = isinstance(models, Iterable) and not hasattr(models, "transform")
        listed = models if several and not isinstance(models, str) else [models]
        pairs = [(None, model) for model in listed]
    for name, thing in pairs:
        try:
            checked.append(_contestant(thing, name, treatment, named))
        except DefinitionError as error:
            messages += error.messages
        except KaratError as error:
            messages.append(str(error))
    names = [contestant.name for contestant in checked]
    messages += [
        f'duplicate model name "{name}"; set the attribute name of one, or pass '
        f'{{"first": ..., "second": ...}}.'
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not checked and not messages:
        messages.append("no model given.")
    if messages:
        raise DefinitionError(*dict.fromkeys(messages))
    return checked


def copy_of(prototype: object) -> Any:
    """Return an unfitted clone, or a deep copy if the constructor takes ``*args`` or ``**kwargs``.

    scikit-learn cannot recover the parameters of such a constructor.
    """
    if _cloneable(prototype):
        try:
            return clone(prototype)
        except (AttributeError, RuntimeError, TypeError):  # __init__ changes its parameters
            pass
    return copy.deepcopy(prototype)


def _cloneable(thing: object) -> bool:
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


def _contestant(
    thing: object, name: str | None, treatment: Treatment, named: Callable[[str], object]
) -> Contestant:
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
    own_name = getattr(thing, "name", "")
    class_name = (thing if inspect.isclass(thing) else type(thing)).__name__
    label = name or (own_name if isinstance(own_name, str) else "") or model.name or class_name
    return Contestant(label, model.prototype, "encoder", params=model.params, treatment=treatment)
