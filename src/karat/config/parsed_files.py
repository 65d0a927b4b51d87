"""Built-in definition files as parsed before: parsing all of them takes a third of a second.

A parsed file is kept with the hash of its text and Karat's version next to the compiled modules,
or in the cache folder if that place is not writable. A file that is damaged, outdated or cannot be
written is no error: the definitions are parsed again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from karat import __version__
from karat.config.yaml_files import Mistake, Node, SourceFile, read_yaml
from karat.core.files import cache_folder, safe_name, write_atomic
from karat.errors import KaratError


def read_supplied(content: bytes, file: SourceFile) -> tuple[Node | None, list[Mistake]]:
    """Return what ``read_yaml`` returns for a file of the library or of an installed package."""
    key = hashlib.sha256(__version__.encode() + b"\n" + content).hexdigest()
    for place in _places(file):
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            stored = json.loads(place.read_bytes())
            if stored["key"] == key:
                return _node(stored["root"], file), []
    root, mistakes = read_yaml(content, file)
    if root is not None and not mistakes:
        text = json.dumps({"key": key, "root": _stored(root)}, separators=(",", ":"))
        for place in _places(file)[sys.dont_write_bytecode :]:
            with suppress(OSError, KaratError):
                write_atomic(place, text)
                break
    return root, mistakes


def _places(file: SourceFile) -> list[Path]:
    """Return where the parsed file may be, the preferred place first."""
    compiled = Path(cache_from_source(__file__)).parent
    name = f"{safe_name(file.label)}.json"
    return [compiled / name, cache_folder() / "definitions" / name]


def _stored(node: Node) -> list[Any]:
    """Return a node as JSON: place, text and value; the keys of a mapping are text or numbers."""
    value = node.value
    if isinstance(value, dict):
        value = [[key, _stored(child)] for key, child in value.items()]
        return [node.line, node.key_line, value, {}]
    if isinstance(value, list):
        return [node.line, node.key_line, [_stored(child) for child in value], []]
    return [node.line, node.key_line, value, node.text]


def _node(stored: list[Any], file: SourceFile) -> Node:
    line, key_line, value, text = stored
    if isinstance(text, str):
        return Node(value, file, line, key_line, text)
    if isinstance(text, dict):
        return Node({key: _node(child, file) for key, child in value}, file, line, key_line)
    return Node([_node(child, file) for child in value], file, line, key_line)
