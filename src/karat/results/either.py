"""The public comparisons: two models, all models, or a run against earlier ones."""

from karat.results.compare import History, compare_to_history
from karat.results.contests import AllPairs, compare_all
from karat.results.verdict import Comparison, compare

__all__ = ["AllPairs", "Comparison", "History", "compare", "compare_all", "compare_to_history"]
