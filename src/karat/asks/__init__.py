"""Askers: other questions about the same rows. ``(data, rng, **parameters) -> Dataset``."""
