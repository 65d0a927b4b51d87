"""TabPFN: rows as its transformer sees them beside the train rows, and its predictions."""

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
from karat.models.contexts import ContextEncoder, apart, drawn, network_columns
from karat.models.truth import kind_of

_WEIGHTS = (
    'TabPFN\'s weights are not here: the model "tabpfn" fetches those of its regressor; those of '
    "its classifier come with: hf download Prior-Labs/TabPFN-v2-clf tabpfn-v2-classifier.ckpt; "
    "name the file in the parameter checkpoint (numbers) or classifier (classes)"
)
#: rows as they are: what TabPFN adds by itself, a hash of the row and components, means something
#: else in every context
_PLAIN = {
    "FINGERPRINT_FEATURE": False,
    "PREPROCESS_TRANSFORMS": [
        {"name": "none", "categorical_name": "numeric", "append_original": False}
    ],
}


def check_weights(*given: str | None) -> None:
    """Raise MissingExtra or Declined, with what to do, where TabPFN cannot run."""
    if importlib.util.find_spec("tabpfn") is None:
        raise MissingExtra("tabpfn", "tabpfn")
    named = [Path(path) for path in given if path is not None]
    if not named:
        raise Declined(_WEIGHTS)
    for path in named:
        if not path.is_file():
            raise Declined(f"there is no file {path}; {_WEIGHTS}")


@dataclass(eq=False, repr=False)
class TabPFNEncoder(ContextEncoder):
    """The last layer of TabPFN's transformer for each row, 192 dimensions for version 2.

    Parameters
    ----------
    checkpoint
        The file of a regressor's weights, for numbers, and for classes read as numbers.
    classifier
        The file of a classifier's weights; nothing: classes are read as numbers.
    n_estimators
        How many times a row is embedded, with its columns in another order each time.
    join
        ``"mean"`` or ``"concat"``: what becomes of these vectors.
    folds
        Into how many parts the context is cut to embed its own rows; 0 embeds them by a context
        that holds them and their truth, which flatters them.
    rows
        The context holds so many train rows at most; TabPFN calls 1,000 its limit without a
        graphics card and 10,000 the limit of version 2.
    targets
        How many columns are foretold from the others where the truth is hidden; 0 declines.
    device
        ``"cpu"``, ``"cuda"`` or ``"auto"``.
    """

    package = extra = "tabpfn"

    checkpoint: str | None = None
    classifier: str | None = None
    n_estimators: int = 1
    join: str = "mean"
    folds: int = 5
    rows: int = 1000
    targets: int = 4
    device: str = "cpu"
    kind: str | None = None
    random_state: int | None = None

    def _check_weights(self) -> None:
        check_weights(self.checkpoint, self.classifier)

    def _reads(self, kind: str) -> bool:
        return (self.checkpoint if kind == "numbers" else self.classifier) is not None

    def _estimator(self, kind: str) -> Any:
        weights = self.checkpoint if kind == "numbers" else self.classifier
        return estimator(self, kind, weights, inference_config=_PLAIN)

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        # as "train" rows they would lie elsewhere than the test rows: their truth is in them
        found = np.asarray(fitted.get_embeddings(rows, data_source="test"))
        return found.reshape(self.n_estimators, len(rows), -1)  # of a single row, it drops an axis


@dataclass(eq=False, repr=False)
class TabPFNPredictor(BaseEstimator):
    """TabPFN as it is meant to be used; classes only with a classifier's weights.

    ``checkpoint``, ``classifier``, ``rows`` and ``device`` are those of TabPFNEncoder. Where the
    context cannot hold all train rows, it holds a sample of them.
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
        """Return what is missing to run it here, and how to get it; nothing where all is there."""
        try:
            check_weights(self.checkpoint, self.classifier)
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return who it is: its parameters, and the version of its package."""
        return f"{sorted(self.get_params().items())!r} {metadata.version('tabpfn')}"

    def declines(self, kind: str) -> str:
        """Return why it cannot answer this kind of question, or nothing."""
        if (self.classifier if kind == "classes" else self.checkpoint) is not None:
            return ""
        return f"it has no weights for {kind}"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> TabPFNPredictor:
        """Show the train rows and their truth to the network."""
        check_weights(self.checkpoint, self.classifier)
        kind = kind_of(y, self.kind)
        if reason := self.declines(kind):
            raise Declined(reason)
        seed, truth = self.random_state or 0, np.asarray(y)
        self.columns_ = network_columns()
        rows = self.columns_.fit_transform(X)
        shown = drawn(len(rows), self.rows, truth, seed)
        weights = self.classifier if kind == "classes" else self.checkpoint
        with apart():
            self.fitted_ = estimator(self, kind, weights).fit(rows[shown], truth[shown])
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


def estimator(asked: Any, kind: str, weights: str | None, **options: Any) -> Any:
    """Return TabPFN's classifier or regressor as an encoder or predictor asks for it.

    The context goes into the network once, in ``fit``. The half precision that TabPFN computes in
    by default has no embeddings.
    """
    import torch
    from tabpfn import TabPFNClassifier, TabPFNRegressor

    return (TabPFNClassifier if kind == "classes" else TabPFNRegressor)(
        n_estimators=asked.n_estimators,
        model_path=weights,
        device=asked.device,
        random_state=asked.random_state or 0,
        inference_precision=torch.float32,
        fit_mode="fit_with_cache",
        kv_cache_precision="auto",
        ignore_pretraining_limits=True,
        **options,
    )
