"""Analysis: tables of scores in, conclusions out."""

from karat.core import lazy_names

_MODULES = {
    "all_pairs": "AllPairs compare_all compare_models compare_pairs",
    "checks": "Finding Findings Hit Rule check_runs",
    "comparison": "Comparison Overall compare",
    "history": "History compare_to_history",
    "items": "ItemComparison compare_items",
    "leaderboard": "pareto",
    "next_task": "NextTask",
    "robustness": "Robustness",
    "slices": "SliceComparison compare_slices",
}
__getattr__ = lazy_names(__name__, _MODULES)
