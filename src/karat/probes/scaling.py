"""Vectors with mean 0 and variance 1 in every dimension, bit for bit as scikit-learn has them.

Importing scikit-learn for this alone takes longer than many a whole evaluation.
"""

from __future__ import annotations

import numpy as np


class Scaler:
    """The means and standard deviations of the train vectors; 1 where all are equal."""

    def __init__(self, X: np.ndarray) -> None:
        rows = len(X)
        self.mean = np.sum(X, axis=0, dtype=np.float64) / rows
        apart = X - self.mean
        correction = np.sum(apart, axis=0, dtype=np.float64)
        squares = np.sum(apart**2, axis=0, dtype=np.float64) - correction**2 / rows
        self.variance = squares / rows
        rounding = rows * np.finfo(np.float64).eps
        constant = self.variance <= rounding * self.variance + (rounding * self.mean) ** 2
        self.deviation = np.where(constant, 1.0, np.sqrt(self.variance))

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return scaled vectors; integers become 64-bit floats."""
        kind = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        return np.asarray((X - self.mean.astype(kind)) / self.deviation.astype(kind), dtype=kind)
