"""In-context row encoders: a network gets a row together with training rows and their targets.

TabPFN as an encoder and a predictor, TabICL, and the networks of the package tfm-embeddings.
"""

from __future__ import annotations

import importlib.util
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metaestimators import available_if

from karat.errors import Declined, DefinitionError, MissingExtra, did_you_mean
from karat.models.model import HasRequirements, assign_folds, target_kind
from karat.models.tables.typed_columns import TypedColumns

#: float32 networks square and sum their input
LARGEST = 1e15
#: rows embedded at a time
BLOCK = 1000
#: classes encoded as numbers take one context each
MOST_CONTEXTS = 10
_WEIGHTS = (
    'TabPFN\'s weights not found: the model "tabpfn" fetches those of its regressor; get those of '
    "its classifier with: hf download Prior-Labs/TabPFN-v2-clf tabpfn-v2-classifier.ckpt; "
    "set the parameter checkpoint (numbers) or classifier (classes) to the file"
)
#: no preprocessing: the row hash and components that TabPFN adds differ between contexts
_PLAIN = {
    "FINGERPRINT_FEATURE": False,
    "PREPROCESS_TRANSFORMS": [
        {"name": "none", "categorical_name": "numeric", "append_original": False}
    ],
}
TABICL_HUB = "jingang/TabICL"
TABICL_FILES = {
    "regression": "tabicl-regressor-v2-20260212.ckpt",
    "classification": "tabicl-classifier-v2-20260212.ckpt",
}
_BACKENDS = ("tabicl", "tabpfn", "tabfm")


@dataclass(frozen=True)
class FittedContext:
    """A fitted in-context estimator, and the column it does not get.

    ``fitted`` is None if the target is constant.
    """

    fitted: Any
    without: int | None = None


@dataclass(eq=False, repr=False)
class ContextEncoder(HasRequirements, TransformerMixin, BaseEstimator):
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

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if package or weights are missing."""
        self._check_options()
        self._check_weights()

    def _check_weights(self) -> None:
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

    def fingerprint(self) -> str:
        """Return the parameters and the version of the package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version(self.package)}"

    def fit(self, items: pd.DataFrame, y: np.ndarray | None = None) -> ContextEncoder:
        """Fit the columns and the context."""
        self._fit(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: np.ndarray | None = None) -> np.ndarray:
        """Fit, and embed the rows; those of the context are embedded out of fold."""
        rows, target, in_context = self._fit(items, y)
        if target is None or self.folds == 0:
            return self._embed(self.contexts_, rows)
        inside, outside = np.flatnonzero(in_context), np.flatnonzero(~in_context)
        # rows outside the context can be embedded by all of it
        pieces = [(outside, self._embed(self.contexts_, rows[outside]))] if len(outside) else []
        folds, targets = min(self.folds, len(inside)), self._targets(target)
        fold_of = assign_folds(
            target[inside], target_kind(target, self.kind), folds, self.random_state or 0
        )
        for fold in range(folds):
            train, test = inside[fold_of != fold], inside[fold_of == fold]
            contexts = [self._context(rows[train], one_target[train]) for one_target in targets]
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
        try:
            tags.target_tags.required = self.targets == 0 or not self._reads("regression")
        except Declined:  # no weights
            tags.target_tags.required = False
        return tags

    def _fit(
        self, items: pd.DataFrame, y: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the rows as numbers, their targets, and a mask of the rows in the context."""
        self.check_installed()
        target = None if y is None else np.asarray(y)
        self.columns_ = network_columns(self.imputed)
        rows = self.columns_.fit_transform(items)
        if rows.shape[1] > self.most_columns:
            raise Declined(f"it supports at most {self.most_columns} columns, got {rows.shape[1]}")
        chosen = context_mask(len(rows), self.rows, target, self.random_state or 0)
        if target is None:
            self.contexts_ = self._column_contexts(rows[chosen])
        else:
            targets = self._targets(target)
            self.contexts_ = [
                self._context(rows[chosen], one_target[chosen]) for one_target in targets
            ]
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
        if target_kind(target, self.kind) == "regression":
            if not self._reads("regression"):
                raise Declined("it has weights for classes only, but the target is numeric")
            return [target.astype(np.float64)]
        classes, codes = np.unique(target, return_inverse=True)
        most = self.most_classes if self._reads("classification") else MOST_CONTEXTS
        if len(classes) > most:
            raise Declined(f"it supports at most {most} classes, got {len(classes)}")
        if self._reads("classification"):
            return [codes]
        chosen = [1] if len(classes) == 2 else range(len(classes))
        return [(codes == code).astype(np.float64) for code in chosen]

    def _column_contexts(self, rows: np.ndarray) -> list[FittedContext]:
        """Return contexts that predict columns of the table from the others."""
        if not self.targets:
            raise Declined("it needs the target, which is hidden here")
        if not self._reads("regression"):
            raise Declined("without a target it needs weights for numbers")
        usable = [np.isfinite(column).all() and len(np.unique(column)) > 1 for column in rows.T]
        order = np.random.default_rng(self.random_state or 0).permutation(np.flatnonzero(usable))
        if rows.shape[1] < 2 or not len(order):
            raise Declined("the target is hidden, and no column can be predicted from another")
        return [
            self._context(np.delete(rows, column, axis=1), rows[:, column], int(column))
            for column in order[: self.targets]
        ]

    def _context(
        self, rows: np.ndarray, target: np.ndarray, without: int | None = None
    ) -> FittedContext:
        varying = (len(np.unique(column[~np.isnan(column)])) > 1 for column in rows.T)
        if len(np.unique(target)) < 2 or not any(varying):
            return FittedContext(None, without)
        kind = "regression" if target.dtype.kind == "f" else "classification"
        with preserved_random_state():
            return FittedContext(self._estimator(kind).fit(rows, target), without)

    def _embed(self, contexts: list[FittedContext], rows: np.ndarray) -> np.ndarray:
        return np.hstack([self._joined(context, rows) for context in contexts])

    def _joined(self, context: FittedContext, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of one context; zeros if its target is constant."""
        if context.fitted is None:
            useful = next(other for other in self.contexts_ if other.fitted is not None)
            return np.zeros_like(self._joined(useful, rows))
        seen = rows if context.without is None else np.delete(rows, context.without, axis=1)
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


def context_mask(count: int, most: int, target: np.ndarray | None, seed: int) -> np.ndarray:
    """Return a mask of the rows of a context: all, or a sample stratified by target.

    >>> context_mask(2, 1000, np.array(["a", "b"]), 0).tolist()
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


def weight_files(
    name: str, checkpoint: str | None, classifier: str | None, help: str = ""
) -> dict[str, Path]:
    """Return the given weight files by kind of target; raise Declined if one does not exist."""
    checkpoints = {"regression": checkpoint, "classification": classifier}
    files = {kind: Path(path) for kind, path in checkpoints.items() if path is not None}
    for path in files.values():
        if not path.is_file():
            raise Declined(f"{name} weights not found: {path}{help}")
    return files


def check_tabpfn_weights(checkpoint: str | None, classifier: str | None) -> None:
    """Raise MissingExtra or Declined if TabPFN or its weights are missing."""
    if importlib.util.find_spec("tabpfn") is None:
        raise MissingExtra("tabpfn", "tabpfn")
    if not weight_files("TabPFN", checkpoint, classifier, f"; {_WEIGHTS}"):
        raise Declined(_WEIGHTS)


@dataclass(eq=False, repr=False)
class TabPFNEncoder(ContextEncoder):
    """The last layer of TabPFN's transformer for each row, 192 dimensions for version 2.

    Parameters
    ----------
    checkpoint
        File of a regressor's weights, for numbers, and for classes encoded as numbers.
    classifier
        File of a classifier's weights; None: classes are encoded as numbers.
    n_estimators
        Number of embeddings per row, each with the columns in another order.
    join
        ``"mean"`` or ``"concat"``: how these embeddings are combined.
    folds
        Number of folds to embed the rows of the context; 0 embeds them by a context that includes
        them and their targets, which overfits.
    rows
        Maximum number of training rows in the context; TabPFN's limit is 1,000 without a GPU and
        10,000 for version 2.
    targets
        Number of columns to predict from the others if the target is hidden; 0 declines.
    device
        ``"cpu"``, ``"cuda"`` or ``"auto"``.
    """

    package = extra = "tabpfn"

    n_estimators: int = 1

    def _check_weights(self) -> None:
        check_tabpfn_weights(self.checkpoint, self.classifier)

    def _reads(self, kind: str) -> bool:
        return (self.checkpoint if kind == "regression" else self.classifier) is not None

    def _estimator(self, kind: str) -> Any:
        return tabpfn_estimator(self, kind, inference_config=_PLAIN)

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        # as "train" rows, their targets would be part of the embeddings
        embeddings = np.asarray(fitted.get_embeddings(rows, data_source="test"))
        return embeddings.reshape(self.n_estimators, len(rows), -1)  # a single row has no row axis


@dataclass(eq=False, repr=False)
class TabPFNPredictor(HasRequirements, BaseEstimator):
    """TabPFN as a predictor; classes need a classifier's weights.

    See TabPFNEncoder for ``checkpoint``, ``classifier``, ``rows`` and ``device``. More than
    ``rows`` training rows are sampled.
    """

    takes = ("table",)

    checkpoint: str | None = None
    classifier: str | None = None
    n_estimators: int = 4
    rows: int = 1000
    device: str = "cpu"
    kind: str | None = None
    random_state: int | None = None

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if TabPFN or its weights are missing."""
        check_tabpfn_weights(self.checkpoint, self.classifier)

    def fingerprint(self) -> str:
        """Return the parameters and the version of the package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version('tabpfn')}"

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        if (self.classifier if kind == "classification" else self.checkpoint) is not None:
            return ""
        return f"it has no weights for {kind}"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> TabPFNPredictor:
        """Fit the context."""
        self.check_installed()
        kind = target_kind(y, self.kind)
        if reason := self.declines(kind):
            raise Declined(reason)
        seed, target = self.random_state or 0, np.asarray(y)
        self.columns_ = network_columns()
        rows = self.columns_.fit_transform(X)
        chosen = context_mask(len(rows), self.rows, target, seed)
        with preserved_random_state():
            self.fitted_ = tabpfn_estimator(self, kind).fit(rows[chosen], target[chosen])
        if kind == "classification":
            self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        return np.asarray(self.fitted_.predict(self.columns_.transform(X)))

    @available_if(lambda self: hasattr(self.fitted_, "predict_proba"))
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.fitted_.predict_proba(self.columns_.transform(X)))


def tabpfn_estimator(owner: TabPFNEncoder | TabPFNPredictor, kind: str, **options: Any) -> Any:
    """Return TabPFN's classifier or regressor with the parameters of an encoder or predictor.

    The context is computed once, in ``fit``. TabPFN has no embeddings in half precision, its
    default.
    """
    import torch
    from tabpfn import TabPFNClassifier, TabPFNRegressor

    classes = kind == "classification"
    return (TabPFNClassifier if classes else TabPFNRegressor)(
        n_estimators=owner.n_estimators,
        model_path=owner.classifier if classes else owner.checkpoint,
        device=owner.device,
        random_state=owner.random_state or 0,
        inference_precision=torch.float32,
        fit_mode="fit_with_cache",
        kv_cache_precision="auto",
        ignore_pretraining_limits=True,
        **options,
    )


@dataclass(eq=False, repr=False)
class TabICLEncoder(ContextEncoder):
    """TabICL's row representation, before its in-context learning layers.

    A first transformer embeds columns given the training rows and targets, a second one combines
    the columns of each row: 512 dimensions for version 2.

    Parameters
    ----------
    checkpoint, classifier
        Files of a regressor's and a classifier's weights. If both are None, they are searched in
        the cache of ``hf download``; nothing is downloaded. Without a classifier, classes are
        encoded as numbers.
    n_estimators, join, folds, rows, targets, device
        See TabPFNEncoder.
    """

    package = extra = "tabicl"
    imputed = True  # TabICL drops columns without a value

    rows: int = 10_000

    def _check_weights(self) -> None:
        if importlib.util.find_spec("tabicl") is None:
            raise MissingExtra("tabicl", "tabicl")
        tabicl_weights(self.checkpoint, self.classifier)

    def _reads(self, kind: str) -> bool:
        return kind in tabicl_weights(self.checkpoint, self.classifier)

    def _estimator(self, kind: str) -> Any:
        from tabicl import TabICLClassifier, TabICLRegressor

        return (TabICLClassifier if kind == "classification" else TabICLRegressor)(
            n_estimators=self.n_estimators,
            model_path=tabicl_weights(self.checkpoint, self.classifier)[kind],
            allow_auto_download=False,
            device=self.device,
            kv_cache=True,
            random_state=self.random_state or 0,
        )

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        # TabICL returns predictions only, so a hook records the rows
        recorded: list[np.ndarray] = []
        hook = fitted.model_.row_interactor.register_forward_hook(
            lambda module, inputs, output: recorded.append(
                output[:, -len(rows) :].float().cpu().numpy()
            )
        )
        try:
            fitted.predict(rows)
        finally:
            hook.remove()
        return np.concatenate(recorded)


def tabicl_weights(checkpoint: str | None, classifier: str | None) -> dict[str, Path]:
    """Return the weight files by kind of target; raise Declined if one is missing."""
    if checkpoint is None and classifier is None:
        from huggingface_hub import try_to_load_from_cache

        cached = {k: try_to_load_from_cache(TABICL_HUB, f) for k, f in TABICL_FILES.items()}
        missing = [TABICL_FILES[k] for k, path in cached.items() if not isinstance(path, str)]
        if missing:
            raise Declined(
                f"TabICL's weights not found: hf download {TABICL_HUB} {' '.join(missing)}"
            )
        checkpoint, classifier = str(cached["regression"]), str(cached["classification"])
    return weight_files("TabICL", checkpoint, classifier)


@dataclass(eq=False, repr=False)
class TfmEncoder(ContextEncoder):
    """Row embeddings of TabICL, TabPFN or TabFM by the package tfm-embeddings.

    Columns, contexts and folds are handled as in TabICLEncoder and TabPFNEncoder.

    Parameters
    ----------
    model
        ``"tabicl"``, ``"tabpfn"`` or ``"tabfm"``.
    checkpoint, classifier
        Files of the weights for numbers and for classes, see TabICLEncoder; required except for
        TabICL.
    n_estimators, join, folds, rows, targets, device
        See TabPFNEncoder.
    """

    package, extra = "tfm-embeddings", "tfm"
    imputed = True

    model: str = field(default="tabicl", kw_only=True)

    def _check_weights(self) -> None:
        if importlib.util.find_spec("tfm_embeddings") is None:
            raise MissingExtra(self.package, self.extra)
        if importlib.util.find_spec(self.model) is None:
            if self.model == "tabfm":
                raise Declined('tabfm is not installed: pip install "tabfm[pytorch]"')
            raise MissingExtra(self.model, self.model)
        self._weights()

    def _check_options(self) -> None:
        super()._check_options()
        if self.model not in _BACKENDS:
            hint = did_you_mean(self.model, _BACKENDS)
            raise DefinitionError(
                f'model must be one of {", ".join(_BACKENDS)}, got "{self.model}".{hint}'
            )

    def _weights(self) -> dict[str, Path]:
        if self.model == "tabicl":
            return tabicl_weights(self.checkpoint, self.classifier)
        files = weight_files(self.model, self.checkpoint, self.classifier)
        if not files:
            raise Declined(f"set checkpoint or classifier to the weights of {self.model}")
        return files

    def _reads(self, kind: str) -> bool:
        return kind in self._weights()

    def _estimator(self, kind: str) -> Any:
        names = ("n_estimators", "device", "random_state")
        options: dict[str, Any] = {name: getattr(self, name) or 0 for name in names}
        if self.model == "tabpfn":
            import torch

            # no embeddings in half precision, its default
            options |= {"inference_precision": torch.float32, "fit_mode": "fit_with_cache"}
            options["ignore_pretraining_limits"] = True
        return TfmContext(self.model, self._weights()[kind], options)

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(fitted.embedder_.encode(rows))


@dataclass(eq=False)
class TfmContext:
    """A TabularEmbedder that does not treat integers as classes."""

    model: str
    weights: Path
    options: dict[str, Any]

    def fit(self, rows: np.ndarray, target: np.ndarray) -> TfmContext:
        """Fit the context."""
        from tfm_embeddings import TabularEmbedder

        named, files = f"{self.model}/{self.weights}", {}
        if self.model == "tabicl":
            named, files = self.model, {"model_path": self.weights, "allow_auto_download": False}
        embedder = TabularEmbedder(named, aggregate="none", **files, **self.options)
        if target.dtype.kind == "f":
            # it treats integers as classes; the networks standardize the target anyway
            target = (target - target.mean()) / (target.std() * np.sqrt(2))
        self.embedder_ = embedder.fit(rows, target)
        return self
