"""Output of results: terminal, documents, HTML report and plots."""

from karat.core import lazy_names

_MODULES = {
    "formats": "render",
    "leaderboard_output": "Leaderboard leaderboard",
    "page": "make_bundle make_page",
    "verdict": "find_evidence make_verdict verdict_lines",
}
__getattr__ = lazy_names(__name__, _MODULES)
