"""Read a matrix of a ``.safetensors`` file, and its row names."""

from __future__ import annotations

import itertools
import json
import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import DataError
from karat.models.vectors.decompression import mapped_bytes
from karat.models.vectors.vector_names import NamedVectors, strip_angle_brackets

SAFETENSORS_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
#: bits per number of the types with whole bytes
SAFETENSORS_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


def names_file(path: Path) -> Path | None:
    """Return the text file with the row names of a ``.safetensors`` file, or None."""
    candidates = (path.with_suffix(end) for end in (".names", ".names.txt", ".txt"))
    return next((file for file in candidates if file.is_file()), None)


def read_safetensors(path: Path) -> NamedVectors:
    """Read a matrix; its row names are a JSON list in the metadata or lines of a text file."""
    with mapped_bytes(path) as data:
        begin = 8 + int.from_bytes(data[:8], "little")
        try:
            header = json.loads(bytes(data[8:begin]))
            names = json.loads(header.pop("__metadata__", {}).get("names", "null"))
            _check_tensors(header, len(data) - begin, path)
            matrices = {
                name: tensor for name, tensor in header.items() if len(tensor["shape"]) == 2
            }
            name = "vectors" if "vectors" in matrices else next(iter(matrices), "")
            if not name or (len(matrices) > 1 and name != "vectors"):
                names_of_matrices = ", ".join(matrices) or "none"
                raise DataError(
                    f'{path} needs one matrix, or one named "vectors"; got: {names_of_matrices}.'
                )
            vectors = _tensor(data, begin, matrices[name], f'{path}: the tensor "{name}"')
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"cannot read {path} as safetensors: {error}.") from error
    if names is not None and not isinstance(names, list):
        raise DataError(f'{path}: "names" in the metadata must be a JSON list.')
    return [strip_angle_brackets(str(name)) for name in names or _names_from_file(path)], vectors


def _check_tensors(header: dict[str, Any], size: int, path: Path) -> None:
    """Check that each tensor has its own bytes in the file, as many as its shape needs."""
    spans = []
    for name, tensor in header.items():
        what = f'{path}: the tensor "{name}"'
        shape, (first, last) = tensor["shape"], tensor["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
            raise DataError(f"{what}: shape and data_offsets must be integers >= 0.")
        if not first <= last <= size:
            raise DataError(f"{what} is truncated: its data_offsets are not in the file.")
        width = SAFETENSORS_BITS.get(tensor["dtype"])
        if width is not None and math.prod(shape) * width != 8 * (last - first):
            raise DataError(f"{what}: {last - first} bytes do not match the shape {shape}.")
        spans += [(first, last, name)] if last > first else []
    spans.sort()
    for (_, end, name), (begin, _, other) in itertools.pairwise(spans):
        if begin < end:
            raise DataError(f'{path}: the tensors "{name}" and "{other}" overlap.')


def _tensor(data: bytes | mmap.mmap, begin: int, tensor: dict[str, Any], what: str) -> np.ndarray:
    if tensor["dtype"] not in (*SAFETENSORS_TYPES, "BF16"):
        raise DataError(
            f"{what} must be one of {', '.join(SAFETENSORS_TYPES)}, BF16, got {tensor['dtype']}."
        )
    first, last = tensor["data_offsets"]
    raw = bytes(data[begin + first : begin + last])
    if tensor["dtype"] == "BF16":  # the upper half of a float32
        wide = np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(tensor["shape"])
    values = np.frombuffer(raw, dtype=SAFETENSORS_TYPES[tensor["dtype"]])
    return values.reshape(tensor["shape"]).astype("f4")


def _names_from_file(path: Path) -> list[str]:
    file = names_file(path)
    if file is None:
        raise DataError(
            f"{path} has no row names; write one per line to {path.with_suffix('.names').name}."
        )
    return file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
