"""Definitions in YAML: read strictly, merged, checked, and shown with the origin of each value."""

from karat.config.loading import Definitions

__all__ = ["Definitions"]
