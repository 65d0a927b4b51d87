"""CARTE: table rows as graphs, encoded by a network pretrained on a knowledge graph."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import ContractError, DataError, Declined, DefinitionError, MissingExtra
from karat.models import carte_network as network
from karat.models.carte_graphs import RowGraphs
from karat.models.fasttext import find_fasttext, load_fasttext
from karat.models.truth import kind_of

_UNTRAINED = (
    "CARTE was not trained: no epoch had a finite validation loss. The validation target may be "
    "constant, or the training diverged; then set scale_truth: true or a lower learning_rate."
)
_KINDS = {"regression": "numbers", "classification": "classes"}


@dataclass(eq=False, repr=False)
class CarteEncoder(TransformerMixin, BaseEstimator):
    """Kim, Grinsztajn and Varoquaux' CARTE; needs fastText's English vectors, ``cc.en.300.bin``.

    With a target, the network is fine-tuned on the training rows, and a row's vector is the last
    hidden layer (75 dimensions). Without a target, or with ``finetune=False``, it is the output of
    the pretrained network (300 dimensions); then only the scale of numbers is learned.

    Parameters
    ----------
    task
        ``"regression"`` or ``"classification"`` declines the other; None accepts both.
    fasttext, pretrained
        Files of vectors and weights; default: ``KARAT_FASTTEXT`` and CARTE's own weights.
    load_pretrain
        Whether to start from these weights or from random ones.
    num_layers
        Attention layers including the read-out: CARTE's default is 1, its weights have 13.
    num_model
        Number of networks, each fine-tuned on another split; their vectors are concatenated.
    scale_truth
        Whether to standardize a numeric target; CARTE does not.

    Notes
    -----
    The other parameters are CARTE's own, with its default values.
    """

    takes = ("table",)

    task: str | None = None
    finetune: bool = True
    fasttext: str | None = None
    pretrained: str | None = None
    load_pretrain: bool = True
    freeze_pretrain: bool = True
    num_layers: int = 1
    num_model: int = 1
    learning_rate: float = 1e-3
    batch_size: int = 16
    max_epoch: int = 500
    dropout: float = 0.0
    val_size: float = 0.2
    early_stopping_patience: int = 40
    scale_truth: bool = False
    device: str = "cpu"
    kind: str | None = None
    random_state: int | None = None

    # -- what it needs ----------------------------------------------------------------------

    def unavailable(self) -> str:
        """Return what is missing and how to install it, or an empty string."""
        try:
            self._files()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return parameters, versions and hashes of files."""
        self._check_options()
        versions = [f"{name} {metadata.version(name)}" for name in ("carte-ai", "torch")]
        # files named by parameters are hashed by identity_of
        hashes = [
            _sha256(str(path), path.stat().st_mtime_ns, path.stat().st_size)
            for path, given in zip(self._files(), (self.fasttext, self.pretrained), strict=True)
            if str(path) != given
        ]
        return " ".join([repr(sorted(self.get_params().items())), *versions, *hashes])

    def _files(self) -> tuple[Path, Path]:
        """Return the vectors and the weights."""
        network.check_installed()
        vectors = find_fasttext(self.fasttext, network.DIMENSIONS)
        if self.pretrained is None:
            return vectors, network.own_weights()
        weights = Path(self.pretrained).expanduser().absolute()
        if not weights.is_file():
            raise Declined(f"pretrained: file not found: {weights}.")
        return vectors, weights

    def _check_options(self) -> None:
        one = ("num_layers", "num_model", "batch_size", "max_epoch")
        least = {**dict.fromkeys(one, 1), "early_stopping_patience": 0}
        problems = [
            f"{name} must be an integer >= {low}, got {getattr(self, name)!r}."
            for name, low in least.items()
            if not isinstance(getattr(self, name), int) or getattr(self, name) < low
        ]
        if self.task not in (None, *_KINDS):
            problems.append(f'task must be {" or ".join(_KINDS)} or None, got "{self.task}".')
        if not 0 < self.val_size < 1:
            problems.append(f"val_size must be between 0 and 1, got {self.val_size!r}.")
        if problems:
            raise DefinitionError(*(f"CarteEncoder: {message}" for message in problems))

    # -- fit and transform ------------------------------------------------------------------

    def fit(self, items: pd.DataFrame, y: Any = None) -> CarteEncoder:
        """Learn the scale of numbers and, with a target, fine-tune the network."""
        self._check_options()
        vectors, weights = self._files()
        self._check_device()
        self.tuned_ = self.finetune and y is not None
        kind = kind_of(y, self.kind)
        if self.tuned_ and _KINDS.get(self.task or "", kind) != kind:
            raise Declined(f"it has task={self.task}, but the target is {kind}")
        self.graphs_ = RowGraphs().fit(items)
        with network.isolated_torch(self.device):
            pretrained = self._read_weights(weights)
            if self.tuned_:
                target = self._target(np.asarray(y), kind)
                graphs = self.graphs_.transform(items, load_fasttext(vectors), target)
                self.states_, learned = network.tune(graphs, target, kind, self._options(weights))
            else:
                seed, learned = self.random_state or 0, True
                self.states_ = [network.frozen(pretrained, self.num_layers - 1, seed)]
        if not learned:
            warnings.warn(_UNTRAINED, stacklevel=2)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        vectors, _ = self._files()
        with network.isolated_torch(self.device):
            networks = [network.network_of(state, self.device) for state in self.states_]
            blocks = [
                network.embed(networks, graphs, self.tuned_, self.device)
                for graphs in self.graphs_.blocks(items, load_fasttext(vectors))
            ]
        embeddings = np.vstack(blocks)
        if not np.isfinite(embeddings).all():
            raise ContractError("CARTE's vectors are not finite; check its weights.")
        return embeddings

    def _read_weights(self, path: Path) -> dict[str, Any] | None:
        if not self.load_pretrain:
            return None
        state = network.read_weights(path)
        if self.num_layers > network.blocks_of(state) + 1:
            raise DefinitionError(
                f"CarteEncoder: num_layers must be at most {network.blocks_of(state) + 1} for "
                f"{path.name}, got {self.num_layers}."
            )
        return state

    def _target(self, y: np.ndarray, kind: str) -> np.ndarray:
        held = math.ceil(self.val_size * len(y))
        if min(held, len(y) - held) < 2:
            raise Declined(f"{len(y)} rows are too few to fine-tune it ({held} for validation)")
        if kind == "classes":
            return np.unique(y, return_inverse=True)[1]
        y = y.astype(np.float64)
        y = (y - y.mean()) / (y.std() or 1.0) if self.scale_truth else y
        if np.abs(y).max() > np.finfo(np.float32).max:
            raise DataError(f"a target of {np.abs(y).max():g} is too large: set scale_truth: true.")
        return y

    def _options(self, weights: Path) -> dict[str, Any]:
        same = ("load_pretrain", "freeze_pretrain", "learning_rate", "batch_size", "max_epoch")
        more = ("dropout", "val_size", "early_stopping_patience", "num_model", "device")
        return {
            **{name: getattr(self, name) for name in (*same, *more)},
            "num_layers": self.num_layers,
            "random_state": self.random_state or 0,
            "pretrained_model_path": str(weights),
        }

    def _check_device(self) -> None:
        import torch

        try:
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise Declined(f'device "{self.device}" cannot be used: {reason}') from error


@lru_cache(maxsize=4)
def _sha256(path: str, changed: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
