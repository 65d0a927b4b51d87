"""A random vector per item: a lower bound for scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.models.model import (
    StatelessEncoder,
)


@dataclass(eq=False, repr=False)
class RandomEncoder(StatelessEncoder):
    """A random vector per item, derived from its id and the seed, whatever its content."""

    dimensions: int = 64
    random_state: int | None = None

    @property
    def embedding_dimension(self) -> int:
        """The width of the vectors."""
        return self.dimensions

    def transform(self, items: Any) -> np.ndarray:
        """Return one standard normal row per item."""
        framed = isinstance(items, pd.Series | pd.DataFrame)  # a list, too, has an "index"
        ids = items.index if framed else pd.RangeIndex(len(items))
        keys = pd.util.hash_array(np.asarray(ids.astype(str), dtype=object)).astype(np.uint64)
        with np.errstate(over="ignore"):
            keys = mix_bits(
                keys + np.uint64(self.random_state or 0) * np.uint64(0x9E3779B97F4A7C15)
            )
            steps = np.arange(1, 2 * self.dimensions + 1, dtype=np.uint64)
            bits = mix_bits(keys[:, None] + steps[None, :] * np.uint64(0x9E3779B97F4A7C15))
        uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        radius, angle = uniform[:, : self.dimensions], uniform[:, self.dimensions :]
        # Box-Muller transform
        return (np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)).astype(np.float32)


def mix_bits(x: np.ndarray) -> np.ndarray:
    """Return numbers that look random, by the finalizer of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
