"""Corruptions of texts: fingers that slip."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.registry import corruption


@corruption("typos")
def typos(
    X: pd.Series, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> tuple[pd.Series, pd.Series | None]:
    """Swap each pair of neighbouring letters with a probability of ``severity``."""
    return pd.Series([_swap(str(text), severity, rng) for text in X], index=X.index), y


def _swap(text: str, severity: float, rng: np.random.Generator) -> str:
    letters = list(text)
    slips = rng.random(max(len(letters) // 2, 0)) < severity
    for pair in np.flatnonzero(slips):
        i = 2 * int(pair)
        letters[i], letters[i + 1] = letters[i + 1], letters[i]
    return "".join(letters)
