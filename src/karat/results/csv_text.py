"""Columns as the text of a CSV file, as pandas writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from karat.core.predictions import quote_cells


def csv_text(columns: Mapping[Any, Any], whole: Collection[Any] = (), names: Any = ()) -> str:
    r"""Return the text that pandas writes for columns of texts, numbers and None.

    A column of integers and None has decimal points, as in pandas, unless it is one of ``whole``.
    ``names`` are the names in the header, if they are not those of the columns.

    >>> csv_text({"a,b": ["x", None], "n": [1, None], "v": [0.5, float("nan")]}, whole=["n"])
    '"a,b",n,v\nx,1,0.5\n,,\n'
    """
    cells = [_csv_cells(values, name in whole) for name, values in columns.items()]
    header = ",".join(_csv_cells(list(names or columns)))
    return "\n".join([header, *map(",".join, zip(*cells, strict=True))]) + "\n"


def _csv_cells(values: Sequence[Any], whole: bool = False) -> list[str]:
    """Return the cells of a column as they are in a CSV file."""
    kinds = set(map(type, values))
    numbers = {int, float, type(None)}
    if kinds in ({str}, {int}):
        return quote_cells(list(values if str in kinds else map(str, values)))
    if kinds <= numbers and not whole and kinds != {type(None)}:
        floats = values if kinds == {float} else [np.nan if v is None else v for v in values]
        texts = list(map(repr, map(float, floats)))
        return ["" if text == "nan" else text for text in texts] if "nan" in texts else texts
    if len(kinds - {type(None)}) > 1:
        return list(map(_csv_cell, values))
    cell_of = {value: _csv_cell(value) for value in set(values)}
    return [cell_of[value] for value in values]


def _csv_cell(value: object) -> str:
    return "" if value is None else quote_cells([str(value)])[0]
