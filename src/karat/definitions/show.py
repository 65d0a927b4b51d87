"""Print a resolved definition as YAML with the origin of every line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from karat.definitions.places import Node
from karat.definitions.strict_yaml import resolve_scalar

WIDEST = 80
WIDEST_ALIGNED = 60

_SAFE = re.compile(r"[A-Za-z0-9_.+/-]([A-Za-z0-9_.+@/(), '-]*[A-Za-z0-9_.+@/()-])?")
_SAFE_IN_LIST = re.compile(r"[A-Za-z0-9_.+/-][A-Za-z0-9_.+@/-]*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

Line = tuple[str, str]


def show(node: Node, defaults: Mapping[str, Any]) -> str:
    r"""Return a definition as YAML that reads back the same, each line with its origin.

    >>> from karat.definitions.strict_yaml import SourceFile, read_yaml
    >>> node, _ = read_yaml(b"metrics: [auc, acc]\nmax_rows: 100", SourceFile("my.yaml"))
    >>> print(show(node, {"missing": "ignore"}))
    metrics: [auc, acc]   # my.yaml:1
    max_rows: 100         # my.yaml:2
    missing: ignore       # default
    """
    lines = list(_mapping(node, ""))
    lines += [(f"{scalar(key)}: {scalar(value)}", "default") for key, value in defaults.items()]
    width = max((len(text) for text, _ in lines if len(text) <= WIDEST_ALIGNED), default=0)
    return "\n".join(f"{text:<{width}}   # {origin}" for text, origin in lines)


def scalar(value: Any, *, in_list: bool = False) -> str:
    """Return a scalar as YAML, quoted where it would be read as another value.

    >>> scalar("no"), scalar("1e5"), scalar(1e-5), scalar(None), scalar("a: b")
    ('no', '"1e5"', '1e-05', 'null', '"a: b"')
    """
    if isinstance(value, str):
        safe = _SAFE_IN_LIST if in_list else _SAFE
        plain = safe.fullmatch(value) and not value.startswith(("- ", "---", "..."))
        return (
            value if plain and resolve_scalar(value) == value and value != "-" else _quoted(value)
        )
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return repr(value)


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _mapping(node: Node, indent: str) -> Iterator[Line]:
    for key, child in node.value.items():
        yield from _pair(f"{indent}{scalar(key)}:", child, indent + "  ")


def _pair(start: str, node: Node, indent: str) -> Iterator[Line]:
    """Yield the lines of a value after its key or dash."""
    inline = _inline(node)
    if inline is not None and (len(start) + len(inline) < WIDEST or not node.value):
        yield f"{start} {inline}", node.place
    elif isinstance(node.value, dict):
        yield start, f"{node.file.label}:{node.key_line}"
        yield from _mapping(node, indent)
    elif isinstance(node.value, list):
        yield start, f"{node.file.label}:{node.key_line}"
        for child in node.value:
            yield from _item(child, indent)
    else:
        yield f"{start} {scalar(node.value)}", node.place


def _item(node: Node, indent: str) -> Iterator[Line]:
    """Yield the lines of a list item; a mapping starts after the dash."""
    if isinstance(node.value, dict) and node.value:
        (first, origin), *others = _mapping(node, indent + "  ")
        yield f"{indent}- {first.lstrip()}", origin
        yield from others
    else:
        yield from _pair(f"{indent}-", node, indent + "  ")


def _inline(node: Node) -> str | None:
    """Return a value as one line, or None if it was written on several."""
    if isinstance(node.value, dict):
        return None if node.value else "{}"
    if not isinstance(node.value, list):
        return scalar(node.value)
    simple = all(not isinstance(child.value, dict | list) for child in node.value)
    if not simple or len({child.place for child in node.value}) > 1:
        return None
    return f"[{', '.join(scalar(child.value, in_list=True) for child in node.value)}]"
