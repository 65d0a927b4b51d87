"""Analysis: tables of scores in, conclusions out."""

from karat.core import lazy_names

_MODULES = {"all_pairs": "compare_models compare_pairs", "leaderboard": "pareto"}
__getattr__ = lazy_names(__name__, _MODULES)
