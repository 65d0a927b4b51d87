"""The head ``svm``: support vector machines with the RBF kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DefinitionError
from karat.models.svm import RbfLabels, RbfMachine, RbfRegressor
from karat.registry import head


@head("svm")
def svm(
    kind: str, C: float = 1.0, gamma: float | str = "scale", epsilon: float = 0.1
) -> RbfMachine:
    """Support vectors with the RBF kernel: classes one against one, or numbers.

    ``gamma: scale`` is 1 / (dimensions × variance of all values). The head predicts labels without
    probabilities. A numeric target is standardized, as ``C`` and ``epsilon`` assume unit variance.
    """
    for name, value in (("C", C), ("epsilon", epsilon)):
        if not _is_positive(value):
            raise DefinitionError(f"head svm: {name} must be a number > 0, got {value!r}.")
    if gamma != "scale" and not _is_positive(gamma):
        raise DefinitionError(f'head svm: gamma must be "scale" or a number > 0, got {gamma!r}.')
    return RbfLabels(C, gamma) if kind == "classes" else RbfRegressor(C, gamma, epsilon)


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < np.inf
