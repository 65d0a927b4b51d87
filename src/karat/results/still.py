"""Runs whose records are read once, so that all readers see the same jobs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd

from karat.results.gather import opened
from karat.results.run import Run


class Still(Run):
    """A run that caches its records and scores on first access."""

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return super().records()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return super().scores()

    def records(self) -> list[dict[str, Any]]:
        """Return the cached records, in the order of the plan."""
        return self._records

    def scores(self) -> pd.DataFrame:
        """Return the cached table of scores."""
        return self._scores


def read_once(runs: Any) -> list[Run]:
    """Return runs with cached records."""
    return [run if isinstance(run, Still) else Still(run.folder) for run in opened(runs)]
