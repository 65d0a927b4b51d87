"""Which metrics are compared by relative differences, so that different metrics can be combined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.errors import KaratError
from karat.metrics.base import get_metric


def is_ratio(metric: str, values: Sequence[float] | np.ndarray) -> bool:
    """Return whether differences of a metric are relative: it starts at 0 and is unbounded.

    For a metric that is not registered, whether a value lies outside [-1, 1].

    >>> is_ratio("rmse", [0.5]), is_ratio("acc", [0.5]), is_ratio("r2", [-3.0])
    (True, False, False)
    """
    try:
        return get_metric(metric).range == (0.0, np.inf)
    except KaratError:
        return bool(np.nanmax(np.abs([*values, 0.0])) > 1)
