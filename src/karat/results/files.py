"""Atomic file writes, and safe file names."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9_@+=,-][A-Za-z0-9_@+=,.-]{0,59}")
#: the suffix of generated names
_MADE = re.compile(r"-[0-9a-f]{12}$")


def safe_name(name: str) -> str:
    """Return a name that is a single path component, different for different names.

    >>> safe_name("penguins"), safe_name("noise@0.1")
    ('penguins', 'noise@0.1')
    >>> safe_name("../etc"), safe_name("a b")
    ('_etc-f7f9121fdb53', 'a_b-c8687a08aa5d')
    """
    if _PLAIN.fullmatch(name) and not _MADE.search(name) and not name.endswith("."):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain}-{digest[:12]}"


def write_atomic(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file atomically; ``durable`` waits until the content has reached the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(draft, path)
