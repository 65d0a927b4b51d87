"""Row embeddings of TabICL, and of the networks supported by the package tfm-embeddings."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import Declined, DefinitionError, MissingExtra, did_you_mean
from karat.models.contexts import ContextEncoder

TABICL_HUB = "jingang/TabICL"
TABICL_FILES = {
    "numbers": "tabicl-regressor-v2-20260212.ckpt",
    "classes": "tabicl-classifier-v2-20260212.ckpt",
}
_BACKENDS = ("tabicl", "tabpfn", "tabfm")


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

        return (TabICLClassifier if kind == "classes" else TabICLRegressor)(
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
    given = {"numbers": checkpoint, "classes": classifier}
    if checkpoint is None and classifier is None:
        from huggingface_hub import try_to_load_from_cache

        found = {k: try_to_load_from_cache(TABICL_HUB, f) for k, f in TABICL_FILES.items()}
        missing = [TABICL_FILES[k] for k, path in found.items() if not isinstance(path, str)]
        if missing:
            raise Declined(
                f"TabICL's weights not found: hf download {TABICL_HUB} {' '.join(missing)}"
            )
        given = {kind: str(path) for kind, path in found.items()}
    files = {kind: Path(path) for kind, path in given.items() if path is not None}
    for path in files.values():
        if not path.is_file():
            raise Declined(f"TabICL weights not found: {path}")
    return files


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
        given = {"numbers": self.checkpoint, "classes": self.classifier}
        files = {kind: Path(path) for kind, path in given.items() if path is not None}
        if not files:
            raise Declined(f"set checkpoint or classifier to the weights of {self.model}")
        for path in files.values():
            if not path.is_file():
                raise Declined(f"{self.model} weights not found: {path}")
        return files

    def _reads(self, kind: str) -> bool:
        return kind in self._weights()

    def _estimator(self, kind: str) -> Any:
        return TfmContext(self.model, self._weights()[kind], self._backend_options())

    def _backend_options(self) -> dict[str, Any]:
        chosen = {
            "n_estimators": self.n_estimators,
            "device": self.device,
            "random_state": self.random_state or 0,
        }
        if self.model == "tabpfn":
            import torch

            # no embeddings in half precision, its default
            precise = {"inference_precision": torch.float32, "fit_mode": "fit_with_cache"}
            return {**chosen, **precise, "ignore_pretraining_limits": True}
        return chosen

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(fitted.embedder_.encode(rows))


class TfmContext:
    """A TabularEmbedder that does not treat integers as classes."""

    def __init__(self, model: str, weights: Path, options: dict[str, Any]) -> None:
        self.model = model
        self.weights = weights
        self.options = options

    def fit(self, rows: np.ndarray, target: np.ndarray) -> TfmContext:
        """Fit the context."""
        from tfm_embeddings import TabularEmbedder

        if self.model == "tabicl":
            files = {"model_path": self.weights, "allow_auto_download": False}
            made = TabularEmbedder(self.model, aggregate="none", **files, **self.options)
        else:
            named = f"{self.model}/{self.weights}"
            made = TabularEmbedder(named, aggregate="none", **self.options)
        if target.dtype.kind == "f":
            # it treats integers as classes; the networks standardize the target anyway
            target = (target - target.mean()) / (target.std() * np.sqrt(2))
        self.embedder_ = made.fit(rows, target)
        return self
