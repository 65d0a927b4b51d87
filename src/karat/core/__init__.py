"""Core: datasets, tasks, predictions, embeddings and the registries."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose public names are imported on first use.

    ``modules`` has the names, separated by spaces, by the module of the package that defines them.
    Other names are those that extensions add to the package.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in places:
            return getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        if not name.startswith("__"):
            from karat.core.extension import builtin_parts

            dotted = f"{package}.{name}".removeprefix("karat.")
            if path := builtin_parts("name").get(dotted):
                module, _, attribute = path.partition(":")
                return getattr(importlib.import_module(module), attribute)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
