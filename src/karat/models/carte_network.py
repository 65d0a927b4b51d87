"""CARTE's own code, as it lies in its package: graphs of rows, the network and its training.

``import carte_ai`` runs all of its baselines and needs catboost, xgboost and more. The three
modules that matter need none of them, so they are loaded without the package's own ``__init__``.
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

#: of words, columns and rows: what the published weights were made for
DIMENSIONS = 300
_HEADS = 12
#: CARTE's loss before the first epoch
_NEVER = 9e15
_LIBRARIES = ("torch", "torch_geometric", "torcheval", "fasttext")
_PIP = "pip install --no-deps carte-ai==0.0.26"

State = dict[str, Any]


def check_installed() -> None:
    """Say which package is missing and how it is installed."""
    for module in _LIBRARIES:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module.replace("_", "-"), "carte")
    if importlib.util.find_spec("carte_ai") is None:
        raise Declined(f"carte-ai is not installed: {_PIP}")


def own_weights() -> Path:
    """Return the pretrained weights that come with the package."""
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
    """Return one of CARTE's modules: ``carte("carte_model").CARTE_Base`` is its network."""
    with contextlib.nullcontext() if "carte_ai" in sys.modules else _without_init(_package()):
        try:
            return import_module(f"carte_ai.src.{module}")
        except ImportError as error:
            raise MissingExtra(str(error.name), "carte") from error


@contextlib.contextmanager
def _without_init(folder: Path) -> Iterator[None]:
    """Let empty packages stand where CARTE's are, and leave none behind."""
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
def calm(device: str) -> Iterator[None]:
    """Leave torch's random numbers as they are, use one thread, and keep old warnings quiet."""
    import torch

    threads = torch.get_num_threads()
    on_gpu = torch.device(device).type == "cuda"
    with torch.random.fork_rng(enabled=True, devices=None if on_gpu else []):
        with warnings.catch_warnings():
            for category in (FutureWarning, UserWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            torch.set_num_threads(1)  # the same bits everywhere
            try:
                yield
            finally:
                torch.set_num_threads(threads)


# -- weights --------------------------------------------------------------------------------


def read_weights(path: Path) -> State:
    """Return the pretrained weights of a file, on the processor."""
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        size = tuple(state["ft_base.read_out_block.norm2_x.weight"].shape)
    except Exception as error:  # what torch raises depends on what the file is
        why = str(error).partition("\n")[0]
        raise DataError(
            f"{path} holds no weights of CARTE: {type(error).__name__}: {why}"
        ) from error
    if size != (DIMENSIONS,):
        raise DataError(f"{path} holds weights of {size[0]} dimensions, not {DIMENSIONS}.")
    return dict(state)


def blocks_of(state: State) -> int:
    """Return how many attention blocks stand before the read-out."""
    numbers = [int(key.split(".")[2]) for key in state if key.startswith("ft_base.layers.")]
    return max(numbers, default=-1) + 1


def frozen(pretrained: State | None, blocks: int, seed: int) -> State:
    """Return a network of the pretrained weights alone, or of random ones where there are none."""
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
    """Fit CARTE's estimator on graphs that carry their truth; return the weights of its models.

    Classes are given as codes 0, 1, … . Also told is whether each model had an epoch that could be
    scored; one that had none is as it began.
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
    return states, all(loss < _NEVER for loss in estimator.valid_loss_)


def _can_stratify(codes: np.ndarray, share: float) -> bool:
    counts = np.bincount(codes.astype(int))
    held = int(np.ceil(share * len(codes)))
    return counts.min() >= 2 and min(held, len(codes) - held) >= len(counts)


def _plain_splits(rows: int, options: dict[str, Any]) -> list[Any]:
    from sklearn.model_selection import ShuffleSplit

    cut = ShuffleSplit(
        options["num_model"], test_size=options["val_size"], random_state=options["random_state"]
    )
    return list(cut.split(np.arange(rows)))


def network_of(state: State, device: str) -> Any:
    """Return the network of these weights, ready to embed."""
    network = _network(blocks_of(state), len(state["ft_classifier.6.bias"]))
    network.load_state_dict(state)
    return network.to(device).eval()


def embed(networks: Sequence[Any], graphs: list[Any], tuned: bool, device: str) -> np.ndarray:
    """Return the centre of each graph as the networks see it, one beside the other.

    A tuned network goes on through its head up to the last layer, which gives the answer.
    """
    import torch
    from torch_geometric.data import Batch

    batch = Batch.from_data_list(graphs).to(device)
    found = []
    with torch.no_grad():
        for network in networks:
            nodes = network.ft_base(batch.x, batch.edge_index, batch.edge_attr)
            centres = nodes[batch.ptr[:-1]]
            found.append(network.ft_classifier[:-1](centres) if tuned else centres)
    return np.asarray(torch.cat(found, dim=1).cpu().numpy(), dtype=np.float32)
