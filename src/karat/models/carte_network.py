"""CARTE's own code, loaded from the package carte-ai: row graphs, network and training.

``import carte_ai`` imports all of its baselines and needs catboost, xgboost and more. The three
modules used here do not, so they are imported without the package's ``__init__``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from karat.errors import DataError, Declined, MissingExtra

#: dimensions of words, columns and rows in the published weights
DIMENSIONS = 300
_HEADS = 12
#: CARTE's initial validation loss
_INITIAL_LOSS = 9e15
_LIBRARIES = ("torch", "torch_geometric", "torcheval", "fasttext")
_PIP = "pip install --no-deps carte-ai==0.0.26"

State = dict[str, Any]


def check_installed() -> None:
    """Raise MissingExtra or Declined if a package is missing."""
    for module in _LIBRARIES:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module.replace("_", "-"), "carte")
    if importlib.util.find_spec("carte_ai") is None:
        raise Declined(f"carte-ai is not installed: {_PIP}")


def own_weights() -> Path:
    """Return the path of the weights in the package."""
    return _package() / "data" / "etc" / "kg_pretrained.pt"


def _package() -> Path:
    check_installed()
    spec = importlib.util.find_spec("carte_ai")
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        raise Declined(f"carte-ai is not installed as a package: {_PIP}")
    return Path(places[0])


@lru_cache(maxsize=3)
def carte(module: str) -> Any:
    """Return one of CARTE's modules, such as ``carte("carte_model")``."""
    with contextlib.nullcontext() if "carte_ai" in sys.modules else _without_init(_package()):
        try:
            return import_module(f"carte_ai.src.{module}")
        except ImportError as error:
            raise MissingExtra(str(error.name), "carte") from error


@contextlib.contextmanager
def _without_init(folder: Path) -> Iterator[None]:
    """Replace CARTE's packages by empty ones, and remove them afterwards."""
    for name in ("carte_ai", "carte_ai.src", "carte_ai.configs"):
        empty = ModuleType(name)
        empty.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = empty
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "carte_ai"]:
            del sys.modules[name]


@contextlib.contextmanager
def isolated_torch(device: str) -> Iterator[None]:
    """Preserve torch's random state, use one thread, and suppress warnings."""
    import torch

    threads = torch.get_num_threads()
    on_gpu = torch.device(device).type == "cuda"
    with torch.random.fork_rng(enabled=True, devices=None if on_gpu else []):
        with warnings.catch_warnings():
            for category in (FutureWarning, UserWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            torch.set_num_threads(1)  # for reproducible bits
            try:
                yield
            finally:
                torch.set_num_threads(threads)


# -- weights --------------------------------------------------------------------------------


def read_weights(path: Path) -> State:
    """Return the pretrained weights of a file, on the CPU."""
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        size = tuple(state["ft_base.read_out_block.norm2_x.weight"].shape)
    except Exception as error:  # torch raises many types
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path} does not contain CARTE weights: {type(error).__name__}: {reason}"
        ) from error
    if size != (DIMENSIONS,):
        raise DataError(f"{path}: expected weights of {DIMENSIONS} dimensions, got {size[0]}.")
    return dict(state)


def blocks_of(state: State) -> int:
    """Return the number of attention blocks before the read-out."""
    numbers = [int(key.split(".")[2]) for key in state if key.startswith("ft_base.layers.")]
    return max(numbers, default=-1) + 1


def frozen(pretrained: State | None, blocks: int, seed: int) -> State:
    """Return the state of a network with pretrained weights, or random ones if None."""
    import torch

    torch.manual_seed(seed)
    network = _network(blocks, 1)
    if pretrained is not None:
        wanted = {key: pretrained[key] for key in network.state_dict() if key in pretrained}
        network.load_state_dict(wanted, strict=False)
    return dict(network.state_dict())


def _network(blocks: int, outputs: int) -> Any:
    return carte("carte_model").CARTE_NN_Model(
        input_dim_x=DIMENSIONS,
        input_dim_e=DIMENSIONS,
        hidden_dim=DIMENSIONS,
        output_dim=outputs,
        num_layers=blocks,
        ff_dim=DIMENSIONS,
        num_heads=_HEADS,
        dropout=0.0,
    )


# -- training and embedding -----------------------------------------------------------------


def tune(
    graphs: list[Any], y: np.ndarray, kind: str, options: dict[str, Any]
) -> tuple[list[State], bool]:
    """Fit CARTE's estimator on graphs with targets; return the weights of its models.

    Classes are codes 0, 1, …. The second value is whether every model was trained, that is, had a
    finite validation loss.
    """
    estimators = carte("carte_estimator")
    if kind == "numbers":
        estimator = estimators.CARTERegressor(**options)
        estimator._estimator_type = "regressor"  # scikit-learn no longer sets it
    else:
        many = int(y.max()) > 1
        loss = "categorical_crossentropy" if many else "binary_crossentropy"
        estimator = estimators.CARTEClassifier(loss=loss, **options)
        estimator._estimator_type = "classifier"
        if not _can_stratify(y, options["val_size"]):
            splits = _plain_splits(len(y), options)
            estimator._set_train_valid_split = lambda: splits
    estimator.fit(graphs, y)
    states = [dict(model.to("cpu").state_dict()) for model in estimator.model_list_]
    return states, all(loss < _INITIAL_LOSS for loss in estimator.valid_loss_)


def _can_stratify(codes: np.ndarray, share: float) -> bool:
    counts = np.bincount(codes.astype(int))
    held = int(np.ceil(share * len(codes)))
    return counts.min() >= 2 and min(held, len(codes) - held) >= len(counts)


def _plain_splits(rows: int, options: dict[str, Any]) -> list[Any]:
    from sklearn.model_selection import ShuffleSplit

    splitter = ShuffleSplit(
        options["num_model"], test_size=options["val_size"], random_state=options["random_state"]
    )
    return list(splitter.split(np.arange(rows)))


def network_of(state: State, device: str) -> Any:
    """Return a network with these weights in evaluation mode."""
    network = _network(blocks_of(state), len(state["ft_classifier.6.bias"]))
    network.load_state_dict(state)
    return network.to(device).eval()


def embed(networks: Sequence[Any], graphs: list[Any], tuned: bool, device: str) -> np.ndarray:
    """Return the center of each graph, concatenated over networks.

    For tuned networks this is the last hidden layer of the head.
    """
    import torch
    from torch_geometric.data import Batch

    batch = Batch.from_data_list(graphs).to(device)
    outputs = []
    with torch.no_grad():
        for network in networks:
            nodes = network.ft_base(batch.x, batch.edge_index, batch.edge_attr)
            centers = nodes[batch.ptr[:-1]]
            outputs.append(network.ft_classifier[:-1](centers) if tuned else centers)
    return np.asarray(torch.cat(outputs, dim=1).cpu().numpy(), dtype=np.float32)
