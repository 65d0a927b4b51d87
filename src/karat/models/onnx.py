"""Sentence encoders in ONNX format, without torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from karat.errors import ContractError, Declined, DefinitionError, did_you_mean
from karat.models.base import PackagedEncoder
from karat.models.package_files import package_file

_CUDA = "CUDAExecutionProvider"
_DEVICES = ("auto", "cpu", "cuda")


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
    """

    needs = ("onnxruntime", "tokenizers")
    packages = ("tokenizers",)
    extra = "minilm-int8"

    model: str
    tokenizer: str
    max_length: int = 256
    batch: int = 32
    device: str = "auto"
    threads: int = 1

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined if a library or file is missing."""
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
        hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        return " ".join([super().fingerprint(), onnxruntime.__version__, *hashes])

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return one row per text."""
        if not hasattr(self, "session_"):
            self.check_installed()
            self._load()
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
        self.session_ = onnxruntime.InferenceSession(
            str(package_file(self.model)), options, providers=self._providers()
        )

    def _providers(self) -> list[str]:
        import onnxruntime

        available = _CUDA in onnxruntime.get_available_providers()
        if self.device == "cuda" and not available:
            raise Declined("onnxruntime has no CUDA support: pip install onnxruntime-gpu")
        use = available and self.device in ("auto", "cuda")
        return [*([_CUDA] if use else []), "CPUExecutionProvider"]

    def _means(self, texts: list[str]) -> np.ndarray:
        read = self.tokenizer_.encode_batch(texts)
        mask = np.zeros((len(read), max(len(each.ids) for each in read)), dtype=np.int64)
        ids, kinds = np.zeros_like(mask), np.zeros_like(mask)
        for row, each in enumerate(read):
            width = len(each.ids)
            ids[row, :width], kinds[row, :width], mask[row, :width] = each.ids, each.type_ids, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        names = [each.name for each in self.session_.get_inputs()]
        if unknown := [name for name in names if name not in inputs]:
            raise ContractError(f"{self.model} has the unsupported input {unknown[0]}.")
        layer = self.session_.run(None, {name: inputs[name] for name in names})[0]
        if layer.ndim == 2:  # already one vector per text
            return np.asarray(layer)
        shares = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
        return np.einsum("btd,bt->bd", layer, shares.astype(layer.dtype))
