"""Sentence encoders of the library sentence-transformers, and in ONNX format without torch."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.digest import sha256_of_file
from karat.core.embeddings import CHUNK
from karat.core.files import PACKAGE_PREFIX, package_file
from karat.errors import ContractError, Declined, DefinitionError, KaratError, did_you_mean
from karat.models.model import PackagedEncoder, TextEncoder, torch_threads
from karat.models.prompts import ROLE_PROMPTS, Prompts, read_saved_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

_LIBRARY = "sentence_transformers"


#: number of texts per call and device of a pool of processes
POOL_CHUNK = 2048
#: number of special tokens that a tokenizer may add to a text
SPECIAL = 8
#: texts of up to this many bytes are over no model's limit
SHORT = 100
_CUDA = "CUDAExecutionProvider"
_DEVICES = ("auto", "cpu", "cuda")


def saved_dimension(folder: Path) -> int | None:
    """Return the width of a saved SentenceTransformer's vectors if its last module pools tokens."""
    modules = [
        (module["type"].rpartition(".")[2], module["path"])
        for module in read_saved_json(folder / "modules.json", [])
    ]
    last = [path for kind, path in modules if kind != "Normalize"][-1:]
    if not last or ("Pooling", last[0]) not in modules:
        return None
    config = read_saved_json(folder / last[0] / "config.json", {})
    modes = [key for key, used in config.items() if key.startswith("pooling_mode_") and used]
    width = config.get("word_embedding_dimension")
    return width if len(modes) == 1 and isinstance(width, int) else None


def check_prompt(prompt: object) -> None:
    """Raise a DefinitionError unless a prompt is a text, or texts by role."""
    texts = prompt.values() if isinstance(prompt, Mapping) else [prompt]
    if prompt is not None and not all(isinstance(text, str) for text in texts):
        raise DefinitionError(
            f"prompt must be a text or a mapping such as {{query: TEXT, document: TEXT}}, "
            f"got {prompt!r}."
        )


def check_devices(devices: object, device: str) -> None:
    """Raise a DefinitionError unless devices are a list of numbers and names."""
    numbers = isinstance(devices, list | tuple) and all(
        isinstance(entry, str) or (type(entry) is int and entry >= 0) for entry in devices
    )
    if not numbers:
        raise DefinitionError(
            f"devices must be a list of GPU numbers or device names, such as [0, 1], got "
            f"{devices!r}."
        )
    if devices and device != "auto":
        raise DefinitionError(f"use device or devices, not both, got {device!r} and {devices!r}.")


@contextlib.contextmanager
def _hidden_main() -> Iterator[None]:
    """Hide the main module from processes that are started, which would run a script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def encode_in_role(
    model: SentenceTransformer, texts: list[str], role: str, prompt: str, **options: Any
) -> Any:
    """Return the vectors of a SentenceTransformer, by its own method for queries or documents."""
    method = (
        f"encode_{role}" if role in ROLE_PROMPTS and hasattr(model, f"encode_{role}") else "encode"
    )
    return getattr(model, method)(texts, prompt=prompt, show_progress_bar=False, **options)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def count_over_limit(model: SentenceTransformer, texts: Sequence[Any], prompt: str = "") -> int:
    """Return how many texts have more tokens than a SentenceTransformer reads.

    The texts of a CrossEncoder are pairs.
    """
    limit = getattr(model, "max_seq_length", None) or getattr(model, "max_length", None)
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None or not limit or not hasattr(tokenizer, "backend_tokenizer"):
        return 0
    whole = [prompt + text if isinstance(text, str) else text for text in texts]
    # a token has at least one byte, and special tokens are few
    long = [text for text in whole if _bytes("".join(text)) > limit - SPECIAL]
    options = {"truncation": False, "padding": False, "verbose": False}
    token_ids = tokenizer(long, **options)["input_ids"] if long else ()
    return sum(len(ids) > limit for ids in token_ids)


def model_folder(name: str) -> Path | None:
    """Return the folder of a saved model, or None for a name on the hub."""
    path = package_file(name)
    if path.is_dir():
        return path
    if name.startswith((PACKAGE_PREFIX, ".", "~", os.sep)):
        raise Declined(f"folder of a sentence-transformers model not found: {path}")
    return None


def file_stamps(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of every file of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def load_model(kind: str, name: str, device: str = "auto", revision: str | None = None) -> Any:
    """Return a SentenceTransformer or CrossEncoder from a folder or the hub, or raise Declined."""
    import sentence_transformers

    offline = os.environ.get("KARAT_OFFLINE", "").lower() not in ("", "0", "false", "no")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # suppress its progress bar
            return getattr(sentence_transformers, kind)(
                str(model_folder(name) or name),
                device=None if device == "auto" else device,
                revision=revision,
                local_files_only=offline,
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:  # offline, unknown name or device, pickled weights
        reason = " ".join(str(error).split())
        raise Declined(f'sentence-transformers cannot load "{name}": {reason}') from error


@dataclass(eq=False, repr=False)
class SentenceTransformerEncoder(PackagedEncoder):
    """A sentence encoder loaded by sentence-transformers; pickled weights are refused.

    Parameters
    ----------
    name
        A folder, a name on the Hugging Face hub, or ``"package:NAME/FOLDER"``.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"`` …, or ``"auto"``: the best available.
    batch
        Texts per batch.
    prompt
        A prefix for every text, or a mapping from roles to prefixes or to the names of the model's
        own prompts: ``{"query": "query: ", "document": "passage: "}``. Default: the model's own
        prompts for queries and documents, otherwise its default prompt.
    revision
        Revision on the hub.
    threads
        Number of torch threads on the CPU.
    devices
        Several devices, such as ``[0, 1]`` (GPUs) or ``["cpu", "cpu"]``: texts are encoded by
        sentence-transformers' pool of processes, one per device.
    """

    needs = (_LIBRARY,)
    packages = ("sentence-transformers", "transformers", "torch")
    extra = "sentence-transformers"
    uses_roles = True

    name: str
    device: str = "auto"
    batch: int = 32
    prompt: str | Mapping[str, str] | None = None
    revision: str | None = None
    threads: int = 1
    devices: Sequence[int | str] = ()

    @property
    def chunk(self) -> int:
        """Number of texts per call; a pool gets more, so that all its processes have work."""
        return POOL_CHUNK * len(self.devices) if self.devices else CHUNK

    def encode(self, texts: list[str], role: str = "") -> Any:
        """Return one row per text in a role."""
        prompt = self._prompts().of(role, self.prompt)
        options: dict[str, Any] = {"batch_size": self.batch}
        if self.devices:
            options["pool"] = self._pool()
        try:
            with torch_threads(self.threads):
                return encode_in_role(self._loaded(), texts, role, prompt, **options)
        except Exception:
            if self.devices:  # a process of the pool may have died
                self._stop_pool()
                del self._stop_pool
            raise

    def _pool(self) -> Any:
        """Return the running pool of processes; it ends with this object."""
        if not hasattr(self, "_stop_pool"):
            model = self._loaded()
            devices = [
                f"cuda:{device}" if isinstance(device, int) else device for device in self.devices
            ]
            with _hidden_main():
                self._processes = model.start_multi_process_pool(devices)
            stop = type(model).stop_multi_process_pool
            self._stop_pool = weakref.finalize(self, stop, self._processes)
        return self._processes

    def count_truncated(self, texts: list[str], role: str = "") -> int:
        """Return how many texts are over the model's limit in a role."""
        if not any(_bytes(text) > SHORT for text in texts):
            return 0  # without loading the model
        return count_over_limit(self._loaded(), texts, self._prompts().of(role, self.prompt))

    def prompt_for(self, role: str) -> str:
        """Return the prompt of a role."""
        return self._prompts().key(role, self.prompt)

    @property
    def declared_prompts(self) -> list[str]:
        """The names of the model's own prompts."""
        return self._prompts().names

    @property
    def embedding_dimension(self) -> int | None:
        """The width of the vectors, read from the folder of the model; None if it is not there."""
        try:
            folder = model_folder(self.name)
            return saved_dimension(folder) if folder else None
        except (KaratError, OSError, ValueError, LookupError):  # reported when it encodes
            return None

    def _prompts(self) -> Prompts:
        folder = model_folder(self.name)
        return Prompts.in_folder(folder) if folder else Prompts.of_model(self._loaded())

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or folder is missing."""
        check_prompt(self.prompt)
        check_devices(self.devices, self.device)
        super().check_installed()
        model_folder(self.name)

    def fingerprint(self) -> str:
        """Return parameters, versions and file stamps, or a hash of weights from the hub."""
        folder = model_folder(self.name)
        try:
            content = file_stamps(folder) if folder else sentence_transformer_hash(self._loaded())
            return f"{super().fingerprint()} {content}"
        except Declined as error:  # reported when it encodes; a plan goes on
            raise TypeError(str(error)) from error

    def _loaded(self) -> Any:
        if hasattr(self, "load_error_"):  # do not retry an unreachable server
            raise Declined(self.load_error_)
        if not hasattr(self, "model_"):
            self.check_installed()
            arguments = (self.name, "cpu" if self.devices else self.device, self.revision)
            try:
                self.model_ = load_model("SentenceTransformer", *arguments)
            except Declined as error:
                self.load_error_: str = str(error)
                raise
        return self.model_


@dataclass(eq=False, repr=False)
class SentenceTransformerObject(TextEncoder):
    """A SentenceTransformer object, identified by its weights and settings."""

    uses_roles = True

    model: Any

    def encode(self, texts: list[str], role: str = "") -> Any:
        """Return one row per text in a role, with the model's own prompt for it."""
        return encode_in_role(self.model, texts, role, Prompts.of_model(self.model).of(role))

    def count_truncated(self, texts: list[str], role: str = "") -> int:
        """Return how many texts are over the model's limit in a role."""
        return count_over_limit(self.model, texts, Prompts.of_model(self.model).of(role))

    def prompt_for(self, role: str) -> str:
        """Return the prompt of a role."""
        return Prompts.of_model(self.model).key(role)

    @property
    def declared_prompts(self) -> list[str]:
        """The names of the model's own prompts."""
        return Prompts.of_model(self.model).names

    @property
    def embedding_dimension(self) -> int | None:
        """The width of the vectors, None if the model does not state it."""
        width = self.model.get_sentence_embedding_dimension()
        return None if width is None else int(width)

    def fingerprint(self) -> str:
        """Return a hash of weights, tokenizer and settings."""
        return sentence_transformer_hash(self.model)


def is_sentence_transformer(thing: object) -> bool:
    """Return whether an object is a SentenceTransformer."""
    kind = type(thing)
    return kind.__name__ == "SentenceTransformer" and kind.__module__.startswith(_LIBRARY)


def sentence_transformer_hash(model: SentenceTransformer) -> str:
    """Return a hash of everything the vectors of a SentenceTransformer depend on.

    Its pickle changes with every use. Raise TypeError for components of other libraries, whose
    dependencies are unknown.
    """
    import torch

    modules = list(model)
    foreign = [part for part in modules if not type(part).__module__.startswith(f"{_LIBRARY}.")]
    adapted = any(getattr(module, "_hf_peft_config_loaded", False) for module in model.modules())
    if foreign or adapted or {"encode", "forward"} & set(vars(model)):
        raise TypeError("it has components of other libraries.")
    digest = hashlib.sha256(_settings(model, modules).encode())
    for name, tensor in model.state_dict().items():
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"")
    return digest.hexdigest()


def _settings(model: SentenceTransformer, modules: list[Any]) -> str:
    named = ("max_seq_length", "prompts", "default_prompt_name", "truncate_dim")
    networks = [part.auto_model for part in modules if hasattr(part, "auto_model")]
    configs = [network.config.to_dict() for network in networks]
    facts = {
        "model": {name: getattr(model, name, None) for name in named},
        "device": model.device.type,
        "parts": [(type(part).__qualname__, part.get_config_dict()) for part in modules],
        # the path of a network does not matter
        "configs": [
            {k: v for k, v in config.items() if k != "_name_or_path"} for config in configs
        ],
        "tokenizer": _tokenizer(model.tokenizer),
    }
    return json.dumps(facts, sort_keys=True, default=str)


def _tokenizer(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """Return the settings of a tokenizer, without padding and truncation, which every call sets."""
    facts = json.loads(getattr(tokenizer, "backend_tokenizer", tokenizer).to_str())
    sides = [getattr(tokenizer, f"{what}_side", None) for what in ("padding", "truncation")]
    if hasattr(tokenizer, "backend_tokenizer"):
        facts.update(padding=None, truncation=None)
    return [facts, *sides]


@dataclass(eq=False, repr=False)
class OnnxEncoder(PackagedEncoder):
    """A sentence encoder run by onnxruntime: the normalized mean of its last layer.

    Parameters
    ----------
    model, tokenizer
        The ``.onnx`` file and its ``tokenizer.json``; ``"package:NAME/PATH"`` is in an installed
        package.
    max_length
        Maximum number of tokens per text.
    batch
        Texts per batch.
    device
        ``"cpu"``, ``"cuda"``, or ``"auto"``: CUDA if onnxruntime supports it.
    threads
        Number of CPU threads.
    prompt
        A prefix for every text, or prefixes by role, such as
        ``{"query": "query: ", "document": "passage: "}``.
    """

    needs = ("onnxruntime", "tokenizers")
    packages = ("tokenizers",)
    extra = "minilm-int8"
    uses_roles = True

    model: str
    tokenizer: str
    max_length: int = 256
    batch: int = 32
    device: str = "auto"
    threads: int = 1
    prompt: str | Mapping[str, str] | None = None

    def prompt_for(self, role: str) -> str:
        """Return the prompt of a role."""
        return Prompts({}).of(role, self.prompt)

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or file is missing."""
        check_prompt(self.prompt)
        super().check_installed()
        if self.device not in _DEVICES:
            hint = did_you_mean(self.device, _DEVICES)
            raise DefinitionError(
                f'device must be one of {", ".join(_DEVICES)}, got "{self.device}".{hint}'
            )
        for name in (self.model, self.tokenizer):
            if not package_file(name).is_file():
                raise Declined(f"file not found: {package_file(name)}")

    def fingerprint(self) -> str:
        """Return parameters, versions and hashes of both files."""
        import onnxruntime

        files = [package_file(name) for name in (self.model, self.tokenizer)]
        hashes = [sha256_of_file(path) for path in files]
        return " ".join([super().fingerprint(), onnxruntime.__version__, *hashes])

    def count_truncated(self, texts: list[str], role: str = "") -> int:
        """Return how many texts have more than ``max_length`` tokens in a role."""
        self._ready()
        prompt = self.prompt_for(role)
        long = [
            prompt + text for text in texts if _bytes(prompt + text) > self.max_length - SPECIAL
        ]
        return sum(bool(read.overflowing) for read in self.tokenizer_.encode_batch(long))

    def _ready(self) -> None:
        if not hasattr(self, "session_"):
            self.check_installed()
            self._load()

    def encode(self, texts: list[str], role: str = "") -> np.ndarray:
        """Return one row per text in a role."""
        self._ready()
        if prompt := self.prompt_for(role):
            texts = [prompt + text for text in texts]
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        places = [order[i : i + self.batch] for i in range(0, len(order), self.batch)]
        blocks = [self._means([texts[i] for i in block]) for block in places]
        rows = np.concatenate(blocks)
        vectors = np.empty_like(rows)
        vectors[order] = rows
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)

    def _load(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.tokenizer_ = Tokenizer.from_file(str(package_file(self.tokenizer)))
        self.tokenizer_.enable_truncation(self.max_length)
        self.tokenizer_.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = self.threads
        available = _CUDA in onnxruntime.get_available_providers()
        if self.device == "cuda" and not available:
            raise Declined("onnxruntime has no CUDA support: pip install onnxruntime-gpu")
        cuda = [_CUDA] if available and self.device != "cpu" else []
        self.session_ = onnxruntime.InferenceSession(
            str(package_file(self.model)), options, providers=[*cuda, "CPUExecutionProvider"]
        )

    def _means(self, texts: list[str]) -> np.ndarray:
        read = self.tokenizer_.encode_batch(texts)
        mask = np.zeros((len(read), max(len(tokens.ids) for tokens in read)), dtype=np.int64)
        ids, kinds = np.zeros_like(mask), np.zeros_like(mask)
        for row, tokens in enumerate(read):
            width = len(tokens.ids)
            ids[row, :width], kinds[row, :width], mask[row, :width] = tokens.ids, tokens.type_ids, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        names = [node.name for node in self.session_.get_inputs()]
        if unknown := [name for name in names if name not in inputs]:
            raise ContractError(f"{self.model} has the unsupported input {unknown[0]}.")
        layer = self.session_.run(None, {name: inputs[name] for name in names})[0]
        if layer.ndim == 2:  # already one vector per text
            return np.asarray(layer)
        shares = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
        return np.einsum("btd,bt->bd", layer, shares.astype(layer.dtype))
