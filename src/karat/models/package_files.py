"""Find files of installed packages without importing them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from karat.errors import Declined

PREFIX = "package:"


def package_file(name: str) -> Path:
    """Return the path of a file or folder; ``"package:NAME/PATH"`` is in an installed package.

    >>> package_file("package:karat/definitions/models.yaml").name
    'models.yaml'
    """
    if not name.startswith(PREFIX):
        return Path(name).expanduser()
    package, _, inner = name.removeprefix(PREFIX).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / inner
        if path.exists():
            return path
    raise Declined(f"package {package} or its file {inner or 'folder'} not found")
