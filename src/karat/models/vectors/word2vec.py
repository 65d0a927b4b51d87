"""Read word2vec's binary format."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from karat.errors import DataError
from karat.models.vectors.decompression import mapped_bytes
from karat.models.vectors.vector_names import NamedVectors, strip_angle_brackets


def read_word2vec(path: Path) -> NamedVectors:
    """Read word2vec's binary format: a header, then name, space and float32 values per vector."""
    with mapped_bytes(path) as data:
        header = data.find(b"\n")
        counts = bytes(data[: max(header, 0)]).split()
        if not (0 < header < 100 and len(counts) == 2 and all(c.isdigit() for c in counts)):
            raise DataError(
                f"{path} is not in word2vec's binary format: the first line is not two integers."
            )
        count, width = map(int, counts)
        if not count:
            raise DataError(f"{path} contains no vectors.")
        short = DataError(
            f"{path} is truncated: the header announces {count} vectors of {width} numbers."
        )
        # checked first, so that a wrong count does not allocate memory
        if not width or count * (4 * width + 1) > len(data):
            raise short
        names, vectors, at = [], np.empty((count, width), dtype=np.float32), header + 1
        for row in range(count):
            space = data.find(b" ", at)
            if space < 0 or space + 1 + 4 * width > len(data):
                raise short
            names.append(_word(data[at:space], row, path))
            vectors[row] = np.frombuffer(data, "<f4", width, space + 1)
            at = space + 1 + 4 * width
        if bytes(data[at:]).strip(b"\n"):
            raise DataError(f"{path} has more than the {count} vectors of its header.")
    return names, vectors


def _word(raw: bytes, row: int, path: Path) -> str:
    try:
        # some programs write a newline after each vector
        return strip_angle_brackets(raw.lstrip(b"\n").decode())
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: name {row + 1} is not UTF-8 ({error.reason}).") from error
