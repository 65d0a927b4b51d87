"""Corruptions: what happens to test data in the world, in doses. ``(X, y, severity, rng)``."""
