"""Groups of questions that share a text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from karat.data.load import DataSpec
from karat.errors import DefinitionError

#: the name of the column of groups
TOGETHER = "related texts"


def related(texts: pd.DataFrame) -> np.ndarray:
    """Return a group number per row; rows that share a text, also indirectly, are one group.

    >>> related(pd.DataFrame({"a": ["x", "y", "z"], "b": ["y", "v", "w"]})).tolist()
    [0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, fields = texts.shape
    codes = pd.factorize(texts.to_numpy().ravel())[0].reshape(rows, fields)
    ends = np.repeat(codes[:, :1], fields, axis=1).ravel(), codes.ravel()
    size = int(codes.max()) + 1
    graph = coo_array((np.ones(codes.size), ends), shape=(size, size))
    groups = connected_components(graph, directed=False)[1]
    return np.asarray(pd.factorize(groups[codes[:, 0]])[0])


def keep_together(
    frame: pd.DataFrame, spec: DataSpec, fields: list[str]
) -> tuple[pd.DataFrame, DataSpec]:
    """Add the groups of related texts if the option ``together`` is set."""
    if not spec.options.get("together"):
        return frame, spec
    if spec.group:
        raise DefinitionError(f'{spec.name}: "group" and the option "together" exclude each other.')
    return frame.assign(**{TOGETHER: related(frame[fields])}), replace(spec, group=TOGETHER)
