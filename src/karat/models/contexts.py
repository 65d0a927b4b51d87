"""Row encoders that learn in context: a network sees a row beside train rows and their truth."""

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

#: networks compute in 32 bits, and square and sum what they are given
LARGEST = 1e15
#: rows that are embedded at once
BLOCK = 1000
#: classes that are read as numbers take one context each
MOST_CONTEXTS = 10


@dataclass(frozen=True)
class Context:
    """Train rows inside of a network: the fitted estimator, and the column it does not see.

    ``fitted`` is nothing where the target does not vary, which no network can use.
    """

    fitted: Any
    without: int | None = None

    def seen(self, rows: np.ndarray) -> np.ndarray:
        """Return the columns of the rows that the network looks at."""
        return rows if self.without is None else np.delete(rows, self.without, axis=1)


class ContextEncoder(TransformerMixin, BaseEstimator):
    """A base for encoders made of networks that are shown train rows and their truth.

    All rows are embedded as rows of unknown truth, each by itself. With ``folds``, the train rows
    of the context are embedded **out of fold**, by contexts that do not hold them; columns are
    read once for all of them, so that a word has the same number everywhere. Subclasses say how
    an estimator is made (``_estimator``) and what it makes of rows (``_members``).

    What is embedded depends on the truth. Numbers make one context. So do classes, where there
    are weights for classes; else they are read as numbers 0 and 1, two classes in one context and
    more in one context each, whose vectors stand side by side. Where the truth is hidden,
    ``targets`` columns are drawn, and each is what the others are to foretell.
    """

    takes = ("table",)
    #: the distribution that has to be installed, and the extra of ours that does it
    package, extra = "", ""
    #: more columns and more classes than these are declined
    most_columns, most_classes = 500, 10
    #: whether the network has to be spared missing values
    imputed = False

    n_estimators: int
    join: str
    folds: int
    rows: int
    targets: int
    kind: str | None
    random_state: int | None

    # -- what a subclass has to say ---------------------------------------------------------

    def _check_weights(self) -> None:
        """Raise MissingExtra or Declined, with what to do, where package or weights are missing."""
        raise NotImplementedError

    def _reads(self, kind: str) -> bool:
        """Return whether there are weights for this kind of truth."""
        raise NotImplementedError

    def _estimator(self, kind: str) -> Any:
        """Return an unfitted estimator with its weights."""
        raise NotImplementedError

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows of unknown truth: members × rows × dimensions."""
        raise NotImplementedError

    # -- what Karat asks --------------------------------------------------------------------

    def unavailable(self) -> str:
        """Return what is missing to run it here, and how to get it; nothing where all is there."""
        self._check_options()
        try:
            self._check_weights()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return who it is: its parameters, and the version of its package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version(self.package)}"

    def fit(self, items: pd.DataFrame, y: Any = None) -> ContextEncoder:
        """Read the columns, and show the train rows to the network."""
        self._fit(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit, and embed these rows; those of the context by others that do not hold them."""
        rows, truth, shown = self._fit(items, y)
        if truth is None or self.folds == 0:
            return self._embedded(self.contexts_, rows)
        held, aside = np.flatnonzero(shown), np.flatnonzero(~shown)
        # rows outside of the context are not known to it, so the whole of it may embed them
        pieces = [(aside, self._embedded(self.contexts_, rows[aside]))] if len(aside) else []
        parts, targets = min(self.folds, len(held)), self._targets(truth)
        part_of = deal(truth[held], kind_of(truth, self.kind), parts, self.random_state or 0)
        for part in range(parts):
            inside, outside = held[part_of != part], held[part_of == part]
            contexts = [self._context(rows[inside], target[inside]) for target in targets]
            pieces.append((outside, self._embedded(contexts, rows[outside])))
        whole = np.empty((len(rows), pieces[0][1].shape[1]), dtype=np.float32)
        for places, values in pieces:
            whole[places] = values
        return whole

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one vector per table row, as the context of the train rows makes it."""
        return self._embedded(self.contexts_, self.columns_.transform(items))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not self._works_blind()
        return tags

    def _works_blind(self) -> bool:
        try:
            return self.targets > 0 and self._reads("numbers")
        except Declined:  # its weights are not here
            return True

    # -- contexts ---------------------------------------------------------------------------

    def _fit(self, items: pd.DataFrame, y: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the rows as numbers, their truth, and which of them make the context."""
        self._check_options()
        self._check_weights()
        truth = None if y is None else np.asarray(y)
        self.columns_ = network_columns(self.imputed)
        rows = self.columns_.fit_transform(items)
        if rows.shape[1] > self.most_columns:
            raise Declined(
                f"it takes {self.most_columns} columns at most; this table makes {rows.shape[1]}"
            )
        shown = drawn(len(rows), self.rows, truth, self.random_state or 0)
        if truth is None:
            self.contexts_ = self._of_columns(rows[shown])
        else:
            self.contexts_ = [self._context(rows[shown], t[shown]) for t in self._targets(truth)]
        if all(context.fitted is None for context in self.contexts_):
            raise Declined("nothing varies in the train rows, so there is nothing to foretell")
        return rows, truth, shown

    def _check_options(self) -> None:
        if self.join not in ("mean", "concat"):
            raise DefinitionError(f'join is "mean" or "concat", not {self.join!r}.')
        least = {"n_estimators": 1, "folds": 0, "rows": 2, "targets": 0}
        wrong = [n for n, low in least.items() if not _whole(getattr(self, n)) >= low]
        if wrong:
            raise DefinitionError(
                f"{wrong[0]} must be a whole number, {least[wrong[0]]} or more, not "
                f"{getattr(self, wrong[0])!r}."
            )
        if self.folds == 1:
            raise DefinitionError("folds must be 2 or more, or 0 for none.")

    def _targets(self, truth: np.ndarray) -> list[np.ndarray]:
        """Return what is to be foretold from the rows, one array per context."""
        if kind_of(truth, self.kind) == "numbers":
            if not self._reads("numbers"):
                raise Declined("it has weights for classes only, and the truth is numbers")
            return [truth.astype(np.float64)]
        classes, codes = np.unique(truth, return_inverse=True)
        most = self.most_classes if self._reads("classes") else MOST_CONTEXTS
        if len(classes) > most:
            raise Declined(f"it takes {most} classes at most, not {len(classes)}")
        if self._reads("classes"):
            return [codes]
        chosen = [1] if len(classes) == 2 else range(len(classes))
        return [(codes == code).astype(np.float64) for code in chosen]

    def _of_columns(self, rows: np.ndarray) -> list[Context]:
        """Return contexts for columns of the table itself, where the truth is hidden."""
        if not self.targets:
            raise Declined("it learns from the truth, which is hidden here")
        if not self._reads("numbers"):
            raise Declined("where the truth is hidden it needs weights for numbers, and has none")
        known = [np.isfinite(column).all() and len(np.unique(column)) > 1 for column in rows.T]
        order = np.random.default_rng(self.random_state or 0).permutation(np.flatnonzero(known))
        if rows.shape[1] < 2 or not len(order):
            raise Declined("the truth is hidden, and no column can be foretold from another")
        return [
            self._context(np.delete(rows, place, axis=1), rows[:, place], int(place))
            for place in order[: self.targets]
        ]

    def _context(self, rows: np.ndarray, target: np.ndarray, without: int | None = None) -> Context:
        varies = len(np.unique(target)) > 1 and any(_varies(column) for column in rows.T)
        if not varies:
            return Context(None, without)
        kind = "numbers" if target.dtype.kind == "f" else "classes"
        with apart():
            return Context(self._estimator(kind).fit(rows, target), without)

    def _embedded(self, contexts: list[Context], rows: np.ndarray) -> np.ndarray:
        return np.hstack([self._joined(context, rows) for context in contexts])

    def _joined(self, context: Context, rows: np.ndarray) -> np.ndarray:
        """Return what one context makes of rows; nothing, where its target does not vary."""
        if context.fitted is None:
            useful = next(whole for whole in self.contexts_ if whole.fitted is not None)
            return np.zeros_like(self._joined(useful, rows))
        seen = context.seen(rows)
        blocks = [
            self._members(context.fitted, seen[start : start + BLOCK])
            for start in range(0, len(seen), BLOCK)
        ]
        members = np.concatenate(blocks, axis=1).astype(np.float32)
        return np.hstack(list(members)) if self.join == "concat" else members.mean(axis=0)


def network_columns(imputed: bool = False) -> Any:
    """Return a transformer: numbers as they are, dates as six numbers, words numbered.

    A missing number and a word not seen in ``fit`` are NaN; with ``imputed``, the median and -1.

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
    return make_pipeline(TypedColumns(words, numbers), FunctionTransformer(_within))


def apart() -> AbstractContextManager[None]:
    """Keep torch's global generator as it is: a network draws weights before its own are loaded."""
    try:
        import torch
    except ImportError:
        return nullcontext()
    return torch.random.fork_rng(devices=[])


def drawn(count: int, most: int, truth: np.ndarray | None, seed: int) -> np.ndarray:
    """Return which rows make a context: all, or as many as it holds, with even shares of the truth.

    >>> drawn(2, 1000, np.array(["a", "b"]), 0).tolist()
    [True, True]
    """
    if count <= most:
        return np.ones(count, dtype=bool)
    warnings.warn(f"the context holds {most} of {count} train rows", stacklevel=2)
    order = np.random.default_rng(seed).permutation(count)
    if truth is not None:
        order = order[np.argsort(truth[order], kind="stable")]
    shown = np.zeros(count, dtype=bool)
    shown[order[np.linspace(0, count - 1, most).astype(int)]] = True
    return shown


def _within(rows: np.ndarray) -> np.ndarray:
    return np.clip(np.asarray(rows, dtype=np.float64), -LARGEST, LARGEST)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else -1


def _varies(column: np.ndarray) -> bool:
    return len(np.unique(column[~np.isnan(column)])) > 1
