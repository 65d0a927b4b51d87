"""In-context row encoders: a network gets a row together with training rows and their targets."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import Declined, DefinitionError, MissingExtra
from karat.models.tables import TypedColumns
from karat.models.truth import deal, kind_of

#: float32 networks square and sum their input
LARGEST = 1e15
#: rows embedded at a time
BLOCK = 1000
#: classes encoded as numbers take one context each
MOST_CONTEXTS = 10


@dataclass(frozen=True)
class Context:
    """A fitted in-context estimator, and the column it does not get.

    ``fitted`` is None if the target is constant.
    """

    fitted: Any
    without: int | None = None

    def seen(self, rows: np.ndarray) -> np.ndarray:
        """Return the columns that the network gets."""
        return rows if self.without is None else np.delete(rows, self.without, axis=1)


@dataclass(eq=False, repr=False)
class ContextEncoder(TransformerMixin, BaseEstimator):
    """Base of encoders that give training rows and targets to a network as context.

    All rows are embedded as rows with unknown target, independently of each other. With ``folds``,
    training rows are embedded **out of fold**, by contexts without them; columns are fitted once,
    so that a word has the same code in all folds. Subclasses implement ``_estimator`` and
    ``_members``.

    The contexts depend on the target. A numeric target makes one context, and so do classes if
    there are weights for classes. Otherwise classes are encoded as numbers 0 and 1: two classes in
    one context, more in one context per class, with concatenated vectors. Without a target,
    ``targets`` random columns are predicted from the others, one context each.
    """

    takes = ("table",)
    #: the required distribution, and the extra of Karat that installs it
    package, extra = "", ""
    #: tables with more columns or classes are declined
    most_columns, most_classes = 500, 10
    #: whether missing values are imputed
    imputed = False

    checkpoint: str | None = None
    classifier: str | None = None
    n_estimators: int = 8
    join: str = "mean"
    folds: int = 5
    rows: int = 1000
    targets: int = 4
    device: str = "cpu"
    kind: str | None = None
    random_state: int | None = None

    # -- implemented by subclasses ----------------------------------------------------------

    def _check_weights(self) -> None:
        """Raise MissingExtra or Declined if package or weights are missing."""
        raise NotImplementedError

    def _reads(self, kind: str) -> bool:
        """Return whether there are weights for this kind of target."""
        raise NotImplementedError

    def _estimator(self, kind: str) -> Any:
        """Return an unfitted estimator."""
        raise NotImplementedError

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows: members × rows × dimensions."""
        raise NotImplementedError

    # -- the encoder ------------------------------------------------------------------------

    def unavailable(self) -> str:
        """Return what is missing and how to install it, or an empty string."""
        self._check_options()
        try:
            self._check_weights()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return the parameters and the version of the package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version(self.package)}"

    def fit(self, items: pd.DataFrame, y: Any = None) -> ContextEncoder:
        """Fit the columns and the context."""
        self._fit(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit, and embed the rows; those of the context are embedded out of fold."""
        rows, target, in_context = self._fit(items, y)
        if target is None or self.folds == 0:
            return self._embed(self.contexts_, rows)
        inside, outside = np.flatnonzero(in_context), np.flatnonzero(~in_context)
        # rows outside the context can be embedded by all of it
        pieces = [(outside, self._embed(self.contexts_, rows[outside]))] if len(outside) else []
        folds, targets = min(self.folds, len(inside)), self._targets(target)
        fold_of = deal(target[inside], kind_of(target, self.kind), folds, self.random_state or 0)
        for fold in range(folds):
            train, test = inside[fold_of != fold], inside[fold_of == fold]
            contexts = [self._context(rows[train], each[train]) for each in targets]
            pieces.append((test, self._embed(contexts, rows[test])))
        embeddings = np.empty((len(rows), pieces[0][1].shape[1]), dtype=np.float32)
        for chosen, values in pieces:
            embeddings[chosen] = values
        return embeddings

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one vector per table row."""
        return self._embed(self.contexts_, self.columns_.transform(items))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not self._works_without_target()
        return tags

    def _works_without_target(self) -> bool:
        try:
            return self.targets > 0 and self._reads("numbers")
        except Declined:  # no weights
            return True

    # -- contexts ---------------------------------------------------------------------------

    def _fit(self, items: pd.DataFrame, y: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the rows as numbers, their targets, and a mask of the rows in the context."""
        self._check_options()
        self._check_weights()
        target = None if y is None else np.asarray(y)
        self.columns_ = network_columns(self.imputed)
        rows = self.columns_.fit_transform(items)
        if rows.shape[1] > self.most_columns:
            raise Declined(f"it supports at most {self.most_columns} columns, got {rows.shape[1]}")
        chosen = drawn(len(rows), self.rows, target, self.random_state or 0)
        if target is None:
            self.contexts_ = self._column_contexts(rows[chosen])
        else:
            targets = self._targets(target)
            self.contexts_ = [self._context(rows[chosen], each[chosen]) for each in targets]
        if all(context.fitted is None for context in self.contexts_):
            raise Declined("the training rows are constant")
        return rows, target, chosen

    def _check_options(self) -> None:
        if self.join not in ("mean", "concat"):
            raise DefinitionError(f'join must be "mean" or "concat", got {self.join!r}.')
        least = {"n_estimators": 1, "folds": 0, "rows": 2, "targets": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < low:
                raise DefinitionError(f"{name} must be an integer >= {low}, got {value!r}.")
        if self.folds == 1:
            raise DefinitionError("folds must be 0 or >= 2, got 1.")

    def _targets(self, target: np.ndarray) -> list[np.ndarray]:
        """Return the target of each context."""
        if kind_of(target, self.kind) == "numbers":
            if not self._reads("numbers"):
                raise Declined("it has weights for classes only, but the target is numeric")
            return [target.astype(np.float64)]
        classes, codes = np.unique(target, return_inverse=True)
        most = self.most_classes if self._reads("classes") else MOST_CONTEXTS
        if len(classes) > most:
            raise Declined(f"it supports at most {most} classes, got {len(classes)}")
        if self._reads("classes"):
            return [codes]
        chosen = [1] if len(classes) == 2 else range(len(classes))
        return [(codes == code).astype(np.float64) for code in chosen]

    def _column_contexts(self, rows: np.ndarray) -> list[Context]:
        """Return contexts that predict columns of the table from the others."""
        if not self.targets:
            raise Declined("it needs the target, which is hidden here")
        if not self._reads("numbers"):
            raise Declined("without a target it needs weights for numbers")
        usable = [np.isfinite(column).all() and len(np.unique(column)) > 1 for column in rows.T]
        order = np.random.default_rng(self.random_state or 0).permutation(np.flatnonzero(usable))
        if rows.shape[1] < 2 or not len(order):
            raise Declined("the target is hidden, and no column can be predicted from another")
        return [
            self._context(np.delete(rows, column, axis=1), rows[:, column], int(column))
            for column in order[: self.targets]
        ]

    def _context(self, rows: np.ndarray, target: np.ndarray, without: int | None = None) -> Context:
        varies = len(np.unique(target)) > 1 and any(_varies(column) for column in rows.T)
        if not varies:
            return Context(None, without)
        kind = "numbers" if target.dtype.kind == "f" else "classes"
        with preserved_random_state():
            return Context(self._estimator(kind).fit(rows, target), without)

    def _embed(self, contexts: list[Context], rows: np.ndarray) -> np.ndarray:
        return np.hstack([self._joined(context, rows) for context in contexts])

    def _joined(self, context: Context, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of one context; zeros if its target is constant."""
        if context.fitted is None:
            useful = next(each for each in self.contexts_ if each.fitted is not None)
            return np.zeros_like(self._joined(useful, rows))
        seen = context.seen(rows)
        blocks = [
            self._members(context.fitted, seen[start : start + BLOCK])
            for start in range(0, len(seen), BLOCK)
        ]
        members = np.concatenate(blocks, axis=1).astype(np.float32)
        return np.hstack(list(members)) if self.join == "concat" else members.mean(axis=0)


def network_columns(imputed: bool = False) -> Any:
    """Return a transformer: numbers unchanged, dates as six numbers, words as ordinal codes.

    Missing numbers and unseen words are NaN; with ``imputed``, the median and -1.

    >>> rows = pd.DataFrame({"n": [1.0, None], "w": ["a", "b"]})
    >>> network_columns().fit_transform(rows).tolist()
    [[1.0, 0.0], [nan, 1.0]]
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    unknown = -1 if imputed else np.nan
    words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=unknown)
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    numbers = median if imputed else FunctionTransformer()
    return make_pipeline(TypedColumns(words, numbers), FunctionTransformer(_clipped))


def preserved_random_state() -> AbstractContextManager[None]:
    """Preserve torch's global random state, which creating a network changes."""
    try:
        import torch
    except ImportError:
        return nullcontext()
    return torch.random.fork_rng(devices=[])


def drawn(count: int, most: int, target: np.ndarray | None, seed: int) -> np.ndarray:
    """Return a mask of the rows of a context: all, or a sample stratified by target.

    >>> drawn(2, 1000, np.array(["a", "b"]), 0).tolist()
    [True, True]
    """
    if count <= most:
        return np.ones(count, dtype=bool)
    warnings.warn(f"the context has {most} of {count} training rows", stacklevel=2)
    order = np.random.default_rng(seed).permutation(count)
    if target is not None:
        order = order[np.argsort(target[order], kind="stable")]
    chosen = np.zeros(count, dtype=bool)
    chosen[order[np.linspace(0, count - 1, most).astype(int)]] = True
    return chosen


def _clipped(rows: np.ndarray) -> np.ndarray:
    return np.clip(np.asarray(rows, dtype=np.float64), -LARGEST, LARGEST)


def _varies(column: np.ndarray) -> bool:
    return len(np.unique(column[~np.isnan(column)])) > 1
