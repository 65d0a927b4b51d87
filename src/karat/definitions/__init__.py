"""Definitions in YAML: read strictly, merged, checked, and shown with the origin of each value."""

from karat.definitions.loader import Definitions

__all__ = ["Definitions"]
