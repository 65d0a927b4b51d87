"""Checks of what a server of embeddings answers: vectors, numbers of tokens, and messages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import ContractError
from karat.ext.endpoints.endpoint_vectors import DIMENSIONS

#: maximum length of a server's message
MESSAGE_LENGTH = 300
#: bytes of an answer besides numbers, and of a number in JSON with its comma and blanks
_FRAME_BYTES, _NUMBER_BYTES = 2**20, 28
#: quotes, brackets and braces of the JSON of a text; more are no answer, and take much memory
_SIGNS = 100
#: a server may count so many times the largest number of tokens that Karat expects
_MOST_TOKENS = 64.0
#: sequences that change a terminal, and all other characters that are not printed
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b.?", re.DOTALL)


def largest_answer(texts: int, width: int | None) -> int:
    """Return the most bytes of an answer for some texts; ``width`` None: not known yet.

    >>> largest_answer(1, 4) == 2**20 + 4 * 28
    True
    """
    return _FRAME_BYTES + _NUMBER_BYTES * texts * (width or DIMENSIONS)


def answer_json(content: bytes, texts: int) -> Any:
    """Return the JSON of an answer for some texts; raise a ValueError if it is something else.

    >>> answer_json(b'{"data": [[1, 2]]}', 1)
    {'data': [[1, 2]]}
    """
    signs = sum(content.count(sign) for sign in (b'"', b"[", b"{"))
    if signs > _SIGNS * (texts + 10):
        raise ValueError("it has far more values than there are texts")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def plain_message(text: str, key: str = "") -> str:
    r"""Return a server's message on one line, without the API key and without what is not printed.

    >>> plain_message("\x1b]0;title\x07\x1b[31mno\x1b[0m  key\nK", "K")
    'no key ***'
    """
    text = text.replace(key, "***") if key else text
    text = _ESCAPES.sub("", text[: 20 * MESSAGE_LENGTH])
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line.replace(key, "***") if key else line


def error_text(body: object, depth: int = 0) -> str:
    """Return the message in the JSON of an error.

    >>> error_text({"error": {"message": "no"}})
    'no'
    """
    for name in ("error", "message", "detail"):
        if isinstance(body, Mapping) and body.get(name) and depth < 10:
            return error_text(body[name], depth + 1)
    return body if isinstance(body, str) else json.dumps(body)


def token_count(value: object, most: float) -> float | None:
    """Return a number of tokens that a server reports; None if it is none.

    ``most`` is the largest number that Karat expects.

    >>> token_count(12, 100), token_count("12", 100), token_count(-1, 100), token_count(1e300, 100)
    (12.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST_TOKENS * most else None


def check_answer(values: Sequence[Any], texts: int) -> np.ndarray:
    """Return the vectors of an answer as a matrix, or raise a ContractError.

    >>> check_answer(["AACAPwAAAEA=", [3, 4]], 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if len(values) != texts:
        raise ContractError(f"the answer has {len(values)} vectors for {texts} texts")
    try:
        rows = [_vector(value) for value in values]
    except (ValueError, TypeError, OverflowError):
        raise ContractError("the answer has vectors that are not lists of numbers") from None
    shapes = {row.shape for row in rows}
    if len(shapes) > 1 or rows[0].ndim != 1 or not rows[0].size:
        listed = ", ".join(sorted(map(str, shapes))[:5])
        raise ContractError(f"the answer has vectors of different or wrong shapes: {listed}")
    matrix = np.stack(rows)
    if not np.isfinite(matrix).all():
        raise ContractError("the answer has vectors with NaN or infinite values")
    return matrix


def _vector(value: object) -> np.ndarray:
    """Return a vector from base64 or from a list of numbers; texts and booleans are none."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    if not isinstance(value, list):
        raise TypeError("not a list")
    kinds = set(map(type, value))
    if not kinds <= {int, float, list}:
        raise TypeError("not numbers")
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype=np.float32)


def indexed_vectors(answer: Mapping[str, Any]) -> list[Any]:
    """Return the vectors of an answer with an index each, in the order of the texts."""
    items = answer["data"]
    order = [item.get("index", index) for index, item in enumerate(items)]
    if any(type(index) is not int for index in order) or sorted(order) != list(range(len(items))):
        raise ContractError(f"the answer has wrong values of index: {order[:10]}")
    placed = dict(zip(order, items, strict=True))
    return [placed[i]["embedding"] for i in range(len(items))]


def reported_tokens(answer: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """Return the tokens in the usage of an answer, as OpenAI and others report them."""
    usage = _mapping(answer, "usage")
    return usage.get("total_tokens") or usage.get("prompt_tokens")


def billed_tokens(answer: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """Return the tokens that Cohere bills."""
    return _mapping(_mapping(answer, "meta"), "billed_units").get("input_tokens")


def _mapping(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of an answer; nothing if it is of another form."""
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def header_tokens(answer: object, headers: Mapping[str, str]) -> float | str:
    """Return the tokens in a header of an answer; its text if it is no number."""
    text = headers.get("x-compute-tokens") or "0"
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d*)?", text) else text
