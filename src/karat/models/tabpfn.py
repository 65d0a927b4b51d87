"""TabPFN as an encoder (in-context row embeddings) and as a predictor."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.errors import Declined, MissingExtra
from karat.models.contexts import ContextEncoder, drawn, network_columns, preserved_random_state
from karat.models.truth import kind_of

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


def check_weights(*given: str | None) -> None:
    """Raise MissingExtra or Declined if TabPFN or its weights are missing."""
    if importlib.util.find_spec("tabpfn") is None:
        raise MissingExtra("tabpfn", "tabpfn")
    named = [Path(path) for path in given if path is not None]
    if not named:
        raise Declined(_WEIGHTS)
    for path in named:
        if not path.is_file():
            raise Declined(f"file not found: {path}; {_WEIGHTS}")


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
        check_weights(self.checkpoint, self.classifier)

    def _reads(self, kind: str) -> bool:
        return (self.checkpoint if kind == "numbers" else self.classifier) is not None

    def _estimator(self, kind: str) -> Any:
        weights = self.checkpoint if kind == "numbers" else self.classifier
        return estimator(self, kind, weights, inference_config=_PLAIN)

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        # as "train" rows, their targets would be part of the embeddings
        embeddings = np.asarray(fitted.get_embeddings(rows, data_source="test"))
        return embeddings.reshape(self.n_estimators, len(rows), -1)  # a single row has no row axis


@dataclass(eq=False, repr=False)
class TabPFNPredictor(BaseEstimator):
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

    def unavailable(self) -> str:
        """Return what is missing and how to install it, or an empty string."""
        try:
            check_weights(self.checkpoint, self.classifier)
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return the parameters and the version of the package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version('tabpfn')}"

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        if (self.classifier if kind == "classes" else self.checkpoint) is not None:
            return ""
        return f"it has no weights for {kind}"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> TabPFNPredictor:
        """Fit the context."""
        check_weights(self.checkpoint, self.classifier)
        kind = kind_of(y, self.kind)
        if reason := self.declines(kind):
            raise Declined(reason)
        seed, target = self.random_state or 0, np.asarray(y)
        self.columns_ = network_columns()
        rows = self.columns_.fit_transform(X)
        chosen = drawn(len(rows), self.rows, target, seed)
        weights = self.classifier if kind == "classes" else self.checkpoint
        with preserved_random_state():
            self.fitted_ = estimator(self, kind, weights).fit(rows[chosen], target[chosen])
        if kind == "classes":
            self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        return np.asarray(self.fitted_.predict(self.columns_.transform(X)))

    @available_if(lambda self: hasattr(self.fitted_, "predict_proba"))
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.fitted_.predict_proba(self.columns_.transform(X)))


def estimator(owner: Any, kind: str, weights: str | None, **options: Any) -> Any:
    """Return TabPFN's classifier or regressor with the parameters of an encoder or predictor.

    The context is computed once, in ``fit``. TabPFN has no embeddings in half precision, its
    default.
    """
    import torch
    from tabpfn import TabPFNClassifier, TabPFNRegressor

    return (TabPFNClassifier if kind == "classes" else TabPFNRegressor)(
        n_estimators=owner.n_estimators,
        model_path=weights,
        device=owner.device,
        random_state=owner.random_state or 0,
        inference_precision=torch.float32,
        fit_mode="fit_with_cache",
        kv_cache_precision="auto",
        ignore_pretraining_limits=True,
        **options,
    )
