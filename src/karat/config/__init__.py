"""Definitions in YAML: read strictly, merged, checked, and shown with the origin of each value."""

from karat.core import lazy_names

_MODULES = {"catalog": "Catalog", "loading": "Definitions"}
__getattr__ = lazy_names(__name__, _MODULES)
