"""Results: run folders, the tables in them, and what can be concluded from the tables."""

from karat.core import lazy_names

_MODULES = {"rescore": "Rescored rescore", "run": "Run load_artifact open_runs"}
__getattr__ = lazy_names(__name__, _MODULES)
