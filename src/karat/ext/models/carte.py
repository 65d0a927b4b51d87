"""CARTE: table rows as graphs, encoded by a network pretrained on a knowledge graph.

A row is a graph with a center, a leaf per cell, and column names as edges; words are fastText
vectors. The network and its training are CARTE's own code, from the package carte-ai:
``import carte_ai`` imports all of its baselines and needs catboost, xgboost and more. The three
modules used here do not, so they are imported without the package's ``__init__``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import mmap
import os
import struct
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.core.columns import cell_as_text
from karat.core.files import cache_folder, file_hash
from karat.errors import ContractError, DataError, Declined, DefinitionError, MissingExtra
from karat.models.model import HasRequirements, import_extra, target_kind, torch_threads
from karat.models.tables.typed_columns import LARGEST, numeric_columns

if TYPE_CHECKING:
    from fasttext.FastText import _FastText

FILE = "cc.en.300.bin"
ADDRESS = f"https://dl.fbaipublicfiles.com/fasttext/vectors-crawl/{FILE}.gz"
_MAGIC = 793712314
#: dimensions of words, columns and rows in the published weights
DIMENSIONS = 300
_HEADS = 12
#: CARTE's initial validation loss
_INITIAL_LOSS = 9e15
_LIBRARIES = ("torch", "torch_geometric", "torcheval", "fasttext")
_PIP = "pip install --no-deps carte-ai==0.0.26"
NetworkState = dict[str, Any]
#: scaled numbers are clipped to this
MAX_SCALED = 1e6
#: number of graphs in memory at a time during transform
GRAPHS_PER_BLOCK = 512
_UNTRAINED = (
    "CARTE was not trained: no epoch had a finite validation loss. The validation target may be "
    "constant, or the training diverged; then set scale_truth: true or a lower learning_rate."
)
_KINDS = ("regression", "classification")


def find_fasttext(option: str | None, dimensions: int) -> Path:
    """Return the path of the vector file; raise Declined with instructions if there is none.

    Searched in this order: ``given``, ``KARAT_FASTTEXT``, the folders of ``KARAT_DATA``, the cache.
    The first two must exist. Only the header of the file is read.
    """
    for source, value in (
        ("fasttext", option),
        ("KARAT_FASTTEXT", os.environ.get("KARAT_FASTTEXT")),
    ):
        if value:
            path = Path(value).expanduser().absolute()
            if not path.is_file():
                raise Declined(f"{source}: file not found: {path}. {_instructions()}")
            return _with_dimensions(path, dimensions)
    given_folders = [
        folder_name
        for folder_name in os.environ.get("KARAT_DATA", "").split(os.pathsep)
        if folder_name
    ]
    for folder in [
        *(Path(folder_name).expanduser() for folder_name in given_folders),
        cache_folder(),
    ]:
        for path in (folder.absolute() / FILE, folder.absolute() / "fasttext" / FILE):
            if path.is_file():
                return _with_dimensions(path, dimensions)
    raise Declined(f"fastText's English vectors ({FILE}) not found. {_instructions()}")


def _instructions() -> str:
    return (
        f"Unpack {ADDRESS} (4.2 GB) and set KARAT_FASTTEXT to the file. Alternatives: the same "
        f"file at https://huggingface.co/hi-paris/fastText; the parameter fasttext; "
        f"a file $KARAT_DATA/fasttext/{FILE}."
    )


def _with_dimensions(path: Path, dimensions: int) -> Path:
    actual = dimensions_of(path)
    if actual != dimensions:
        raise Declined(f"{path}: expected vectors of {dimensions} dimensions, got {actual}.")
    return path


def dimensions_of(path: Path) -> int:
    """Return the number of dimensions in the header of a fastText file."""
    try:
        with path.open("rb") as file:
            begin = file.read(12)
    except OSError as error:
        raise Declined(f"cannot read {path}: {error.strerror or error}.") from error
    if begin[:2] == b"\x1f\x8b":
        raise Declined(f"{path} is compressed; run gunzip first.")
    if len(begin) < 12 or struct.unpack("<i", begin[:4])[0] != _MAGIC:
        raise Declined(f"{path} is not in fastText's binary format (such as {FILE}).")
    return int(struct.unpack("<i", begin[8:])[0])


def load_fasttext(path: Path) -> Any:
    """Return fastText's model of a file; only the last one is cached, as it may take gigabytes."""
    stat = path.stat()
    return _loaded(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1)
def _loaded(path: str, changed: int, size: int) -> Any:
    fasttext = import_extra("fasttext", "carte")
    _check_complete(Path(path))
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # suppress a deprecation notice
            return fasttext.load_model(path)
    except (ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"fastText cannot read {path}: {error or 'too little memory'}.") from error


def _check_complete(path: Path) -> None:
    """Refuse a truncated file, on which fastText would hang or return wrong vectors.

    Layout: 64 bytes of settings; the words, each followed by a zero and 9 bytes; two matrices, each
    preceded by a byte and its two sizes.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            words, _, _, _, pruned = struct.unpack_from("<iiiqq", content, 64)
            offset = 64 + struct.calcsize("<iiiqq")
            for _ in range(words):
                end = content.find(b"\0", offset)
                offset = end + 10 if end >= 0 else len(content)
            offset += 8 * max(pruned, 0)
            for _ in range(2):
                packed, rows, columns = struct.unpack_from("<?qq", content, offset)
                if packed:  # quantized, with another layout
                    return
                offset += 17 + 4 * rows * columns
        except struct.error:
            offset = len(content) + 1
        if offset > len(content):
            raise DataError(f"{path} is truncated; download it again.")


def check_installed() -> None:
    """Raise MissingExtra or Declined if a package is missing."""
    for module in _LIBRARIES:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module.replace("_", "-"), "carte")
    if importlib.util.find_spec("carte_ai") is None:
        raise Declined(f"carte-ai is not installed: {_PIP}")


def packaged_weights() -> Path:
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
def carte_module(module: str) -> Any:
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

    on_gpu = torch.device(device).type == "cuda"
    preserved = torch.random.fork_rng(devices=None if on_gpu else [])
    with preserved, torch_threads(1), warnings.catch_warnings():
        for category in (FutureWarning, UserWarning, DeprecationWarning):
            warnings.simplefilter("ignore", category)
        yield


def read_weights(path: Path) -> NetworkState:
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


def count_blocks(state: NetworkState) -> int:
    """Return the number of attention blocks before the read-out."""
    numbers = [int(key.split(".")[2]) for key in state if key.startswith("ft_base.layers.")]
    return max(numbers, default=-1) + 1


def pretrained_state(pretrained: NetworkState | None, blocks: int, seed: int) -> NetworkState:
    """Return the state of a network with pretrained weights, or random ones if None."""
    import torch

    torch.manual_seed(seed)
    network = _network(blocks, 1)
    if pretrained is not None:
        wanted = {key: pretrained[key] for key in network.state_dict() if key in pretrained}
        network.load_state_dict(wanted, strict=False)
    return dict(network.state_dict())


def _network(blocks: int, outputs: int) -> Any:
    return carte_module("carte_model").CARTE_NN_Model(
        input_dim_x=DIMENSIONS,
        input_dim_e=DIMENSIONS,
        hidden_dim=DIMENSIONS,
        output_dim=outputs,
        num_layers=blocks,
        ff_dim=DIMENSIONS,
        num_heads=_HEADS,
        dropout=0.0,
    )


def fine_tune(
    graphs: list[Any], y: np.ndarray, kind: str, options: dict[str, Any]
) -> tuple[list[NetworkState], bool]:
    """Fit CARTE's estimator on graphs with targets; return the weights of its models.

    Classes are codes 0, 1, …. The second value is whether every model was trained, that is, had a
    finite validation loss.
    """
    estimators = carte_module("carte_estimator")
    if kind == "regression":
        estimator = estimators.CARTERegressor(**options)
        estimator._estimator_type = "regressor"  # scikit-learn no longer sets it
    else:
        many = int(y.max()) > 1
        loss = "categorical_crossentropy" if many else "binary_crossentropy"
        estimator = estimators.CARTEClassifier(loss=loss, **options)
        estimator._estimator_type = "classifier"
        counts = np.bincount(y.astype(int))
        held = int(np.ceil(options["val_size"] * len(y)))
        if not (counts.min() >= 2 and min(held, len(y) - held) >= len(counts)):
            from sklearn.model_selection import ShuffleSplit

            splitter = ShuffleSplit(
                options["num_model"],
                test_size=options["val_size"],
                random_state=options["random_state"],
            )
            splits = list(splitter.split(np.arange(len(y))))
            estimator._set_train_valid_split = lambda: splits
    estimator.fit(graphs, y)
    states = [dict(model.to("cpu").state_dict()) for model in estimator.model_list_]
    return states, all(loss < _INITIAL_LOSS for loss in estimator.valid_loss_)


def load_network(state: NetworkState, device: str) -> Any:
    """Return a network with these weights in evaluation mode."""
    network = _network(count_blocks(state), len(state["ft_classifier.6.bias"]))
    network.load_state_dict(state)
    return network.to(device).eval()


def embed_graphs(
    networks: Sequence[Any], graphs: list[Any], tuned: bool, device: str
) -> np.ndarray:
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


class RowGraphs:
    """Convert rows to graphs with CARTE's own transformer.

    ``fit`` decides which columns are numeric; everything else, including dates and booleans, is
    lower-case text. A numeric column without any number is ignored.
    """

    def fit(self, table: pd.DataFrame) -> RowGraphs:
        """Learn the numeric columns and their transformation."""
        numbers = [name for name in numeric_columns(table) if _floats(table[name]).notna().any()]
        self.numbers = numbers
        self.texts = [name for name in table.columns if name not in numeric_columns(table)]
        names: list[str] = []
        for name in [*self.texts, *numbers]:
            text = _line(str(name))
            while text in names:  # trailing spaces distinguish equal names
                text += " "
            names.append(text)
        self.names = {"text": names[: len(self.texts)], "number": names[len(self.texts) :]}
        self.normal = PowerNumbers().fit(self._numbers(table))
        return self

    def transform(
        self, table: pd.DataFrame, vectors: _FastText, y: np.ndarray | None = None
    ) -> list[Any]:
        """Return a graph per row; ``vectors`` is a fastText model, ``y`` the target to train on."""
        import torch

        converter = carte_module("carte_table_to_graph").Table2GraphTransformer()
        converter.lm_model_ = vectors
        converter.cat_col_names, converter.num_col_names = self.names["text"], self.names["number"]
        converter.col_names = converter.cat_col_names + converter.num_col_names
        converter.num_transformer_, converter.y_ = self.normal, y
        prepared = pd.concat([self._texts(table), self._numbers(table)], axis=1)
        # lower case by Python: Arrow's differs, and CARTE uses both
        with pd.option_context("mode.string_storage", "python"):
            graphs = converter.transform(prepared)
        for graph in graphs:  # the mean of a row without leaves is NaN
            graph.x = torch.nan_to_num(graph.x)
        return list(graphs)

    def blocks(self, table: pd.DataFrame, vectors: _FastText) -> Iterator[list[Any]]:
        """Yield the graphs of a table block by block."""
        for start in range(0, len(table), GRAPHS_PER_BLOCK):
            yield self.transform(table.iloc[start : start + GRAPHS_PER_BLOCK], vectors)

    def _texts(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            unique: pd.Series([_text(cell) for cell in table[name].astype(object)], dtype=object)
            for name, unique in zip(self.texts, self.names["text"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=object)

    def _numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            unique: _floats(table[name]).to_numpy()
            for name, unique in zip(self.numbers, self.names["number"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=float)


class PowerNumbers:
    """scikit-learn's PowerTransformer per column, as in CARTE; missing values stay missing.

    A column it cannot transform (numbers that differ only in their last digits) is standardized.
    """

    def fit(self, table: pd.DataFrame) -> PowerNumbers:
        """Fit each column."""
        from sklearn.preprocessing import StandardScaler

        self.columns: dict[Any, tuple[Any, Any]] = {}
        for name in table:
            values = table[[name]].to_numpy()
            power = _power(values)
            self.columns[name] = power, StandardScaler().fit(_apply_power(power, values))
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the transformed table."""
        values = {
            name: scale.transform(_apply_power(power, table[[name]].to_numpy()))[:, 0]
            for name, (power, scale) in self.columns.items()
        }
        return pd.DataFrame(values, index=table.index).clip(-MAX_SCALED, MAX_SCALED)


def _power(values: np.ndarray) -> Any | None:
    from sklearn.preprocessing import PowerTransformer

    try:
        with np.errstate(all="ignore"):
            transformer = PowerTransformer(standardize=False).fit(values)
            transformed = transformer.transform(values)
    except (ValueError, RuntimeError, np.linalg.LinAlgError):
        return None
    flat = np.nanstd(transformed) == 0 < np.nanstd(values)
    return None if flat or np.isinf(transformed).any() else transformer


def _apply_power(power: Any | None, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        transformed = values if power is None else power.transform(values)
    return np.clip(transformed, -LARGEST, LARGEST)


def _text(cell: object) -> str | None:
    missing = pd.isna(cell)
    return None if isinstance(missing, bool) and missing else _line(cell_as_text(cell)).lower()


def _line(text: str) -> str:
    # fastText accepts single lines of UTF-8
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))


def _floats(column: pd.Series) -> pd.Series:
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    values = pd.to_numeric(column, errors="coerce").astype(float)
    return values.where(~np.isinf(values)).clip(-LARGEST, LARGEST)


@dataclass(eq=False, repr=False)
class CarteEncoder(HasRequirements, TransformerMixin, BaseEstimator):
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

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a package or file is missing."""
        self._files()

    def fingerprint(self) -> str:
        """Return parameters, versions and hashes of files."""
        self._check_options()
        versions = [f"{name} {metadata.version(name)}" for name in ("carte-ai", "torch")]
        # files named by parameters are hashed by identity_of
        hashes = [
            file_hash(path)
            for path, parameter in zip(self._files(), (self.fasttext, self.pretrained), strict=True)
            if str(path) != parameter
        ]
        return " ".join([repr(sorted(self.get_params().items())), *versions, *hashes])

    def _files(self) -> tuple[Path, Path]:
        check_installed()
        vectors = find_fasttext(self.fasttext, DIMENSIONS)
        if self.pretrained is None:
            return vectors, packaged_weights()
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

    def fit(self, items: pd.DataFrame, y: np.ndarray | None = None) -> CarteEncoder:
        """Learn the scale of numbers and, with a target, fine-tune the network."""
        self._check_options()
        vectors, weights = self._files()
        import torch

        try:
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise Declined(f'device "{self.device}" cannot be used: {reason}') from error
        self.tuned_ = self.finetune and y is not None
        kind = target_kind(y, self.kind)
        if self.tuned_ and (self.task or kind) != kind:
            raise Declined(f"it has task={self.task}, but the target is {kind}")
        self.graphs_ = RowGraphs().fit(items)
        with isolated_torch(self.device):
            pretrained = self._read_weights(weights)
            if self.tuned_:
                target = self._target(np.asarray(y), kind)
                graphs = self.graphs_.transform(items, load_fasttext(vectors), target)
                self.states_, learned = fine_tune(graphs, target, kind, self._options(weights))
            else:
                seed, learned = self.random_state or 0, True
                self.states_ = [pretrained_state(pretrained, self.num_layers - 1, seed)]
        if not learned:
            warnings.warn(_UNTRAINED, stacklevel=2)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        vectors, _ = self._files()
        with isolated_torch(self.device):
            networks = [load_network(state, self.device) for state in self.states_]
            blocks = [
                embed_graphs(networks, graphs, self.tuned_, self.device)
                for graphs in self.graphs_.blocks(items, load_fasttext(vectors))
            ]
        embeddings = np.vstack(blocks)
        if not np.isfinite(embeddings).all():
            raise ContractError("CARTE's vectors are not finite; check its weights.")
        return embeddings

    def _read_weights(self, path: Path) -> dict[str, Any] | None:
        if not self.load_pretrain:
            return None
        state = read_weights(path)
        if self.num_layers > count_blocks(state) + 1:
            raise DefinitionError(
                f"CarteEncoder: num_layers must be at most {count_blocks(state) + 1} for "
                f"{path.name}, got {self.num_layers}."
            )
        return state

    def _target(self, y: np.ndarray, kind: str) -> np.ndarray:
        held = math.ceil(self.val_size * len(y))
        if min(held, len(y) - held) < 2:
            raise Declined(f"{len(y)} rows are too few to fine-tune it ({held} for validation)")
        if kind == "classification":
            return np.unique(y, return_inverse=True)[1]
        y = y.astype(np.float64)
        y = (y - y.mean()) / (y.std() or 1.0) if self.scale_truth else y
        if np.abs(y).max() > np.finfo(np.float32).max:
            raise DataError(f"a target of {np.abs(y).max():g} is too large: set scale_truth: true.")
        return y

    def _options(self, weights: Path) -> dict[str, Any]:
        not_of_carte = ("task", "finetune", "fasttext", "pretrained", "scale_truth", "kind")
        return {
            **{
                name: value for name, value in self.get_params().items() if name not in not_of_carte
            },
            "random_state": self.random_state or 0,
            "pretrained_model_path": str(weights),
        }
