"""TabICL's rows, and those of the networks that the package tfm-embeddings opens."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
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
    """What TabICL makes of a row before it compares it with others: its row representation.

    Columns are embedded by what the train rows and their truth show of them, and a second
    transformer joins the columns of each row: 512 dimensions for version 2.

    Parameters
    ----------
    checkpoint, classifier
        The files of a regressor's and a classifier's weights. Where neither is given, both are
        looked for where ``hf download`` puts them; nothing is downloaded. Where only the first is
        given, classes are read as numbers.
    n_estimators, join, folds, rows, targets, device
        As those of TabPFNEncoder.
    """

    package = extra = "tabicl"
    imputed = True  # a column without a value in the rows at hand would be left out

    checkpoint: str | None = None
    classifier: str | None = None
    n_estimators: int = 8
    join: str = "mean"
    folds: int = 5
    rows: int = 10_000
    targets: int = 4
    device: str = "cpu"
    kind: str | None = None
    random_state: int | None = None

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
        # TabICL hands out predictions only; the rows on their way to them are listened to
        heard: list[np.ndarray] = []
        listening = fitted.model_.row_interactor.register_forward_hook(
            lambda part, given, made: heard.append(made[:, -len(rows) :].float().cpu().numpy())
        )
        try:
            fitted.predict(rows)
        finally:
            listening.remove()
        return np.concatenate(heard)


def tabicl_weights(checkpoint: str | None, classifier: str | None) -> dict[str, Path]:
    """Return the files of weights by the kind of truth; what is missing is a Declined."""
    given = {"numbers": checkpoint, "classes": classifier}
    if checkpoint is None and classifier is None:
        from huggingface_hub import try_to_load_from_cache

        found = {k: try_to_load_from_cache(TABICL_HUB, f) for k, f in TABICL_FILES.items()}
        lacking = [TABICL_FILES[k] for k, path in found.items() if not isinstance(path, str)]
        if lacking:
            raise Declined(
                f"TabICL's weights are not here: hf download {TABICL_HUB} {' '.join(lacking)}"
            )
        given = {kind: str(path) for kind, path in found.items()}
    files = {kind: Path(path) for kind, path in given.items() if path is not None}
    for path in files.values():
        if not path.is_file():
            raise Declined(f"there is no file {path} with TabICL's weights")
    return files


@dataclass(eq=False, repr=False)
class TfmEncoder(ContextEncoder):
    """Rows as the package tfm-embeddings gets them out of TabICL, TabPFN or TabFM.

    The package chooses the estimator and cuts the rows out of it; columns, contexts and folds are
    Karat's, as they are for TabICLEncoder and TabPFNEncoder.

    Parameters
    ----------
    model
        ``"tabicl"``, ``"tabpfn"`` or ``"tabfm"``.
    checkpoint, classifier
        The files of the weights for numbers and for classes, as for TabICLEncoder; only TabICL
        can do without.
    n_estimators, join, folds, rows, targets, device
        As those of TabPFNEncoder.
    """

    package, extra = "tfm-embeddings", "tfm"
    imputed = True

    model: str = "tabicl"
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
                f'model is one of {", ".join(_BACKENDS)}, not "{self.model}".{hint}'
            )

    def _weights(self) -> dict[str, Path]:
        if self.model == "tabicl":
            return tabicl_weights(self.checkpoint, self.classifier)
        given = {"numbers": self.checkpoint, "classes": self.classifier}
        files = {kind: Path(path) for kind, path in given.items() if path is not None}
        if not files:
            raise Declined(f"name the files of {self.model}'s weights in checkpoint or classifier")
        for path in files.values():
            if not path.is_file():
                raise Declined(f"there is no file {path} with {self.model}'s weights")
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

            # its default, half precision, has no embeddings
            precise = {"inference_precision": torch.float32, "fit_mode": "fit_with_cache"}
            return {**chosen, **precise, "ignore_pretraining_limits": True}
        return chosen

    def _members(self, fitted: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(fitted.embedder_.encode(rows))


class TfmContext:
    """A TabularEmbedder that cannot mistake whole numbers for classes."""

    def __init__(self, model: str, weights: Path, options: dict[str, Any]) -> None:
        self.model = model
        self.weights = weights
        self.options = options

    def fit(self, rows: np.ndarray, target: np.ndarray) -> TfmContext:
        """Show the rows to the network."""
        from tfm_embeddings import TabularEmbedder

        if self.model == "tabicl":
            files = {"model_path": self.weights, "allow_auto_download": False}
            made = TabularEmbedder(self.model, aggregate="none", **files, **self.options)
        else:
            named = f"{self.model}/{self.weights}"
            made = TabularEmbedder(named, aggregate="none", **self.options)
        if target.dtype.kind == "f":
            # it takes whole numbers for classes: these are none, and the networks scale them anyway
            target = (target - target.mean()) / (target.std() * np.sqrt(2))
        self.embedder_ = made.fit(rows, target)
        return self
