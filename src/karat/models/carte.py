"""CARTE: a table's rows as graphs, through a network pretrained on a large knowledge graph."""

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
    "CARTE learned nothing: no epoch had a score on the rows that watch. Their truth may be "
    "constant, or the training ran away; then set scale_truth: true or a lower learning_rate."
)
_KINDS = {"regression": "numbers", "classification": "classes"}


@dataclass(eq=False, repr=False)
class CarteEncoder(TransformerMixin, BaseEstimator):
    """Kim, Grinsztajn and Varoquaux' CARTE; needs fastText's English vectors, ``cc.en.300.bin``.

    With the truth, its network is fine-tuned on the train rows, and a row's vector is the last
    layer before the answer: 75 numbers. Without the truth, or with ``finetune=False``, it is the
    row as the pretrained network sees it: 300 numbers; then only the scale of numbers is learned.

    Parameters
    ----------
    task
        ``"regression"``, ``"classification"``, or nothing: whatever the truth is. It declines the
        other.
    fasttext, pretrained
        The files of vectors and weights; nothing: ``KARAT_FASTTEXT`` and CARTE's own weights.
    load_pretrain
        Whether to begin with these weights or with random ones, for comparison.
    num_layers
        Layers of attention, the read-out included: 1 is CARTE's default, its weights have 13.
    num_model
        How many networks are fine-tuned, each on another part of the rows; their vectors stand
        side by side.
    scale_truth
        Whether numbers to learn are brought to mean 0 and deviation 1; CARTE does not.

    Notes
    -----
    ``freeze_pretrain``, ``learning_rate``, ``batch_size``, ``max_epoch``, ``dropout``, ``val_size``
    and ``early_stopping_patience`` are CARTE's own and have its default values.
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
        """Return what is missing to run it here, and how to get it; nothing where all is there."""
        try:
            self._files()
        except (Declined, MissingExtra) as error:
            return str(error)
        return ""

    def fingerprint(self) -> str:
        """Return who it is: parameters, files and versions."""
        self._check_options()
        versions = [f"{name} {metadata.version(name)}" for name in ("carte-ai", "torch")]
        # a file that a parameter names is looked at by whoever asks
        found = [
            _sha256(str(path), path.stat().st_mtime_ns, path.stat().st_size)
            for path, given in zip(self._files(), (self.fasttext, self.pretrained), strict=True)
            if str(path) != given
        ]
        return " ".join([repr(sorted(self.get_params().items())), *versions, *found])

    def _files(self) -> tuple[Path, Path]:
        """Return the vectors and the weights."""
        network.check_installed()
        vectors = find_fasttext(self.fasttext, network.DIMENSIONS)
        if self.pretrained is None:
            return vectors, network.own_weights()
        weights = Path(self.pretrained).expanduser().absolute()
        if not weights.is_file():
            raise Declined(f"pretrained names {weights}, and there is no such file.")
        return vectors, weights

    def _check_options(self) -> None:
        one = ("num_layers", "num_model", "batch_size", "max_epoch")
        least = {**dict.fromkeys(one, 1), "early_stopping_patience": 0}
        wrong = [
            f"{name} must be a whole number, {low} or more; it is {getattr(self, name)!r}."
            for name, low in least.items()
            if not isinstance(getattr(self, name), int) or getattr(self, name) < low
        ]
        if self.task not in (None, *_KINDS):
            wrong.append(f'task must be {" or ".join(_KINDS)}, or left out; not "{self.task}".')
        if not 0 < self.val_size < 1:
            wrong.append(f"val_size must lie between 0 and 1; it is {self.val_size!r}.")
        if wrong:
            raise DefinitionError(*(f"CarteEncoder: {message}" for message in wrong))

    # -- fit and transform ------------------------------------------------------------------

    def fit(self, items: pd.DataFrame, y: Any = None) -> CarteEncoder:
        """Learn the scale of numbers and, with the truth, fine-tune the network."""
        self._check_options()
        vectors, weights = self._files()
        self._check_device()
        self.tuned_ = self.finetune and y is not None
        kind = kind_of(y, self.kind)
        if self.tuned_ and _KINDS.get(self.task or "", kind) != kind:
            raise Declined(f"it was made for {self.task}, and the truth is {kind}")
        self.graphs_ = RowGraphs().fit(items)
        with network.calm(self.device):
            pretrained = self._read_weights(weights)
            if self.tuned_:
                truth = self._truth(np.asarray(y), kind)
                graphs = self.graphs_.transform(items, load_fasttext(vectors), truth)
                self.states_, learned = network.tune(graphs, truth, kind, self._options(weights))
            else:
                seed, learned = self.random_state or 0, True
                self.states_ = [network.frozen(pretrained, self.num_layers - 1, seed)]
        if not learned:
            warnings.warn(_UNTRAINED, stacklevel=2)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        vectors, _ = self._files()
        with network.calm(self.device):
            networks = [network.network_of(state, self.device) for state in self.states_]
            found = [
                network.embed(networks, graphs, self.tuned_, self.device)
                for graphs in self.graphs_.blocks(items, load_fasttext(vectors))
            ]
        whole = np.vstack(found)
        if not np.isfinite(whole).all():
            raise ContractError("CARTE's vectors are not finite: its weights must be wrong.")
        return whole

    def _read_weights(self, path: Path) -> dict[str, Any] | None:
        if not self.load_pretrain:
            return None
        state = network.read_weights(path)
        if self.num_layers > network.blocks_of(state) + 1:
            raise DefinitionError(
                f"CarteEncoder: num_layers is {self.num_layers}, and {path.name} has weights for "
                f"{network.blocks_of(state) + 1}."
            )
        return state

    def _truth(self, y: np.ndarray, kind: str) -> np.ndarray:
        held = math.ceil(self.val_size * len(y))
        if min(held, len(y) - held) < 2:
            raise Declined(f"{len(y)} rows are too few to fine-tune it: {held} of them watch")
        if kind == "classes":
            return np.unique(y, return_inverse=True)[1]
        y = y.astype(np.float64)
        y = (y - y.mean()) / (y.std() or 1.0) if self.scale_truth else y
        if np.abs(y).max() > np.finfo(np.float32).max:
            raise DataError(f"a truth of {np.abs(y).max():g} is too large: set scale_truth: true.")
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
            why = str(error).partition("\n")[0]
            raise Declined(f'the device "{self.device}" cannot be used: {why}') from error


@lru_cache(maxsize=4)
def _sha256(path: str, changed: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
