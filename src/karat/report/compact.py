"""Compact: values as JSON writes them shortly: six digits that count, null for what is unknown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: digits of a number that count
DIGITS = 6
#: what a script element must not hold, as JSON also writes it
_ESCAPES = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def compact(value: Any) -> Any:
    """Return plain lists, dicts, texts and rounded numbers; NaN and infinities become None.

    >>> compact({"a": (0.12345678, float("nan"), 2.0), "b": np.array([[1.5]])})
    {'a': [0.123457, None, 2], 'b': [[1.5]]}
    """
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): compact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [compact(each) for each in value]
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f":
        return [_rounded(each) for each in value.tolist()]  # most numbers of a page come this way
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    return clean(str(value))


def clean(text: str) -> str:
    r"""Return a text that can be written: halves of signs, which no file can hold, are replaced.

    >>> clean("a\ud800")
    'a�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_text(text: str, width: int) -> str:
    """Return a text that is at most so long.

    >>> cut_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def to_json(value: Any) -> str:
    r"""Return compact values as JSON that may stand in a script element and in any file.

    >>> print(to_json(["</script>", 1.5]))
    ["\u003c/script>",1.5]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def size(value: Any) -> int:
    """Return how many bytes a value takes in the page."""
    return len(to_json(value).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
