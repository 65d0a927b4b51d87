"""Statistics: arrays in, numbers out."""

from karat.core import lazy_names

_MODULES = {
    "paired_tests": "corrected_t holm signed_rank wilcoxon",
    "pairwise_ranks": "mean_ranks",
    "ranking": "compact_letters rank_intervals step_down top_set",
}
__getattr__ = lazy_names(__name__, _MODULES)
