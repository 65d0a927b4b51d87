"""The seven corruptions under TACO's signature: ``fn(X, y, severity, rng=None) -> (X, y)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from karat.registry import corruptions

Rng = np.random.Generator | int | None
Corruption = Callable[..., tuple[pd.DataFrame, pd.Series]]

#: in the order of TACO's table
NAMES = (
    "missingness_mcar",
    "missingness_mnar",
    "scaling_error",
    "categorical_remap",
    "noise_gaussian",
    "noise_uniform",
    "rare_class_dilution",
)
#: not defined for regression
FOR_CLASSES = ("missingness_mnar", "rare_class_dilution")


def _function(name: str) -> Corruption:
    def corrupt(
        X: pd.DataFrame | np.ndarray, y: Any, severity: float, rng: Rng = None
    ) -> tuple[pd.DataFrame, pd.Series]:
        changed: tuple[pd.DataFrame, pd.Series] = corruptions.get(name)(X, y, severity, rng)
        return changed

    corrupt.__name__ = corrupt.__qualname__ = name
    corrupt.__doc__ = corruptions.get(name).__doc__
    return corrupt


#: the input is not modified; the default seed is 42
CORRUPTION_FUNCS: dict[str, Corruption] = {name: _function(name) for name in NAMES}
