"""Combine the vectors of a question's fields into the input vector of a head."""

from __future__ import annotations

import numpy as np

from karat.errors import DefinitionError
from karat.registry import composer


@composer("single")
def single(*fields: np.ndarray) -> np.ndarray:
    """Return the vector of the only field."""
    if len(fields) != 1:
        raise DefinitionError(
            f"compose: single needs one field, the questions have {len(fields)}; "
            f"use compose: interaction (pairs) or concat."
        )
    return fields[0]


@composer("interaction")
def interaction(*fields: np.ndarray) -> np.ndarray:
    """Return (a, b, |a − b|, a · b), as sentence-pair tasks do."""
    if len(fields) != 2:
        raise DefinitionError(
            f"compose: interaction needs two fields, the questions have {len(fields)}."
        )
    a, b = fields
    return np.hstack([a, b, np.abs(a - b), a * b])


@composer("concat")
def concat(*fields: np.ndarray) -> np.ndarray:
    """Return the concatenated vectors of all fields."""
    return np.hstack(fields)
