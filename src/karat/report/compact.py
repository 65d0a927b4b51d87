"""Compact JSON: six significant digits, null for missing numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: significant digits of a number
DIGITS = 6
#: characters that must be escaped inside a script element
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
        return [_rounded(each) for each in value.tolist()]  # fast path for most numbers of a page
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    return clean(str(value))


def clean(text: str) -> str:
    r"""Replace lone surrogates, which cannot be encoded.

    >>> clean("a\ud800")
    'a�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_text(text: str, width: int) -> str:
    """Cut a text to a maximum length.

    >>> cut_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def to_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element.

    >>> print(to_json(["</script>", 1.5]))
    ["\u003c/script>",1.5]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def size(value: Any) -> int:
    """Return the size of a value in the page, in bytes."""
    return len(to_json(value).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
