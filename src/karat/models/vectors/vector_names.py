"""What readers of vector files return, and names as they stand in files."""

from __future__ import annotations

import numpy as np

#: names, and a matrix with one row for each
NamedVectors = tuple[list[str], np.ndarray]


def strip_angle_brackets(name: str) -> str:
    """Return a name without the angle brackets of an IRI.

    >>> strip_angle_brackets("<http://example.org/a>")
    'http://example.org/a'
    """
    name = name.strip(" \t")
    return name[1:-1] if name.startswith("<") and name.endswith(">") else name
