"""Who a model is: a hash of its code, parameters, weights, files and versions.

Two models of one name but other weights, parameters or source code have other identities, so the
vectors of one are never taken for those of the other.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import cloudpickle

from karat.models.base import Model


def identity(model: Model) -> str | None:
    """Return a hash of everything a model's vectors depend on, or nothing if it cannot be told.

    Unequal hashes may belong to equal models (a cache miss); the reverse cannot happen.
    """
    digest = hashlib.sha256()
    for part in _parts(model.prototype):
        if part is None:
            return None
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _parts(prototype: Any) -> list[str | None]:
    modules = {type(prototype).__module__}
    values = _values(prototype)
    modules |= {type(v).__module__ for v in values.values()}
    modules |= {getattr(v, "__module__", None) or "builtins" for v in values.values()}
    return [
        f"{type(prototype).__module__}:{type(prototype).__qualname__}",
        prototype.fingerprint() if hasattr(prototype, "fingerprint") else _content(prototype),
        *(_code(module) for module in sorted(modules)),
        *(_file(value) for value in values.values()),
    ]


def _values(prototype: Any) -> dict[str, Any]:
    if hasattr(prototype, "get_params"):
        return dict(prototype.get_params(deep=True))
    return dict(getattr(prototype, "__dict__", {}))


def _content(prototype: Any) -> str | None:
    try:
        return hashlib.sha256(cloudpickle.dumps(prototype)).hexdigest()
    except Exception:  # an object that cannot be pickled has no identity: nothing is kept for it
        return None


@cache
def _code(module: str) -> str:
    """Return the version of an installed module, or a hash of the source code of one's own."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root == "__main__":
        return module
    found = sys.modules.get(root)
    file = getattr(found, "__file__", None)
    if file is None:
        return module
    path = Path(file)
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return f"{root} {_version(root)}"
    sources = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return f"{root} {digest.hexdigest()}"


def _version(root: str) -> str:
    names = metadata.packages_distributions().get(root, [root])
    try:
        return " ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names)))
    except metadata.PackageNotFoundError:
        return "?"


def _file(value: Any) -> str:
    """Return what tells a file or folder named by a parameter from its earlier self."""
    if not isinstance(value, str | Path) or len(str(value)) > 4096:
        return ""
    try:
        path = Path(value)
        if path.is_file():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        if path.is_dir():
            stats = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in path.rglob("*")]
            return repr(sorted(stats))
    except (OSError, ValueError):
        return ""
    return ""
