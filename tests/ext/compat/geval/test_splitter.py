"""The folds of this system: found by name, the same for every seed of the run."""

from ..splitter_checks import SplitterChecks


class TestSplitter(SplitterChecks):
    name = "geval"
