"""Any model of the library sentence-transformers, by its folder, its name, or as an object."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.errors import Declined
from karat.models.base import PackagedEncoder, TextEncoder
from karat.models.package_files import PREFIX, package_file

_LIBRARY = "sentence_transformers"


@dataclass(eq=False, repr=False)
class SentenceTransformerEncoder(PackagedEncoder):
    """A sentence encoder that sentence-transformers loads; weights in pickles are refused.

    Parameters
    ----------
    name
        A folder, a name on the hub, or ``"package:NAME/FOLDER"`` inside an installed package.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"`` …, or ``"auto"``: the best there is.
    batch
        How many texts go through the network at once.
    prompt
        A text to put before every text; left open, the model's own default.
    revision
        Which version of a name on the hub.
    threads
        How many threads torch may use on a processor.
    """

    needs = (_LIBRARY,)
    packages = ("sentence-transformers", "transformers", "torch")
    extra = "sentence-transformers"

    name: str
    device: str = "auto"
    batch: int = 32
    prompt: str | None = None
    revision: str | None = None
    threads: int = 1

    def encode(self, texts: list[str]) -> Any:
        """Return one row per text."""
        with _torch_threads(self.threads):
            return self._loaded().encode(
                texts, batch_size=self.batch, prompt=self.prompt, show_progress_bar=False
            )

    def check_installed(self) -> None:
        """Raise MissingExtra or Declined, with what to do, where a library or folder is missing."""
        super().check_installed()
        self._folder()

    def fingerprint(self) -> str:
        """Return who it is; what lies on the hub may change there, so its weights are looked at."""
        folder = self._folder()
        files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder else []
        stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        try:
            return f"{super().fingerprint()} {stamps if folder else content(self._loaded())}"
        except Declined as error:  # whoever embeds is told; a plan is not stopped by it
            raise TypeError(str(error)) from error

    def _folder(self) -> Path | None:
        """Return the folder that is meant, or nothing for a name on the hub."""
        path = package_file(self.name)
        if path.is_dir():
            return path
        if self.name.startswith((PREFIX, ".", "~", os.sep)):
            raise Declined(f"there is no folder {path} of a sentence encoder")
        return None

    def _loaded(self) -> Any:
        if hasattr(self, "refusal_"):  # a server that cannot be reached is asked only once
            raise Declined(self.refusal_)
        if not hasattr(self, "model_"):
            self.check_installed()
            self.model_ = self._load()
        return self.model_

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        offline = os.environ.get("KARAT_OFFLINE", "").lower() not in ("", "0", "false", "no")
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # it draws a bar of its own
                return SentenceTransformer(
                    str(self._folder() or self.name),
                    device=None if self.device == "auto" else self.device,
                    revision=self.revision,
                    local_files_only=offline,
                    model_kwargs={"use_safetensors": True},
                )
        except Exception as error:  # offline, no such name, no such device, only a pickle there
            why = " ".join(str(error).split())
            self.refusal_ = f'sentence-transformers cannot load "{self.name}": {why}'
            raise Declined(self.refusal_) from error


@dataclass(eq=False, repr=False)
class SentenceTransformerObject(TextEncoder):
    """A SentenceTransformer that somebody made: it is told apart by its weights and settings."""

    model: Any

    def encode(self, texts: list[str]) -> Any:
        """Return one row per text."""
        return self.model.encode(texts, show_progress_bar=False)

    def fingerprint(self) -> str:
        """Return a hash of weights, tokenizer and settings."""
        return content(self.model)


def is_sentence_transformer(thing: Any) -> bool:
    """Return whether an object is of the library's own class for sentence encoders."""
    kind = type(thing)
    return kind.__name__ == "SentenceTransformer" and kind.__module__.startswith(_LIBRARY)


def content(model: Any) -> str:
    """Return a hash of all that the vectors of a SentenceTransformer depend on.

    Pickled as it is, it would be another after each use. A TypeError says that it has parts of
    which only their author knows what they depend on.
    """
    parts = list(model)
    foreign = [part for part in parts if not type(part).__module__.startswith(f"{_LIBRARY}.")]
    adapted = any(getattr(module, "_hf_peft_config_loaded", False) for module in model.modules())
    if foreign or adapted or {"encode", "forward"} & set(vars(model)):
        raise TypeError("it is not made of the library's own parts alone.")
    digest = hashlib.sha256(_settings(model, parts).encode())
    for name, tensor in model.state_dict().items():
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(flat.view(_bytes()).numpy().tobytes() if len(flat) else b"")
    return digest.hexdigest()


def _settings(model: Any, parts: list[Any]) -> str:
    named = ("max_seq_length", "prompts", "default_prompt_name", "truncate_dim")
    networks = [part.auto_model for part in parts if hasattr(part, "auto_model")]
    configs = [network.config.to_dict() for network in networks]
    facts = {
        "model": {name: getattr(model, name, None) for name in named},
        "device": model.device.type,
        "parts": [(type(part).__qualname__, part.get_config_dict()) for part in parts],
        # where a network was read from does not change it
        "configs": [{k: v for k, v in each.items() if k != "_name_or_path"} for each in configs],
        "tokenizer": _tokenizer(model.tokenizer),
    }
    return json.dumps(facts, sort_keys=True, default=str)


def _tokenizer(tokenizer: Any) -> list[Any]:
    """Return what a tokenizer does; how it cuts and fills up is set anew in every call."""
    facts = json.loads(getattr(tokenizer, "backend_tokenizer", tokenizer).to_str())
    sides = [getattr(tokenizer, f"{what}_side", None) for what in ("padding", "truncation")]
    if hasattr(tokenizer, "backend_tokenizer"):
        facts.update(padding=None, truncation=None)
    return [facts, *sides]


def _bytes() -> Any:
    import torch

    return torch.uint8


@contextlib.contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    """Let torch use so many threads inside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
