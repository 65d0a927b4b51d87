"""Still: runs as they stood when they were first read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd

from karat.results.gather import opened
from karat.results.run import Run


class Still(Run):
    """A run as it stood when it was first read: whatever reads it sees the same jobs."""

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return super().records()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return super().scores()

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the finished jobs, in the order of the plan."""
        return self._records

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per number."""
        return self._scores


def read_once(runs: Any) -> list[Run]:
    """Return runs that stay as they are now; one that does already is taken as it is."""
    return [run if isinstance(run, Still) else Still(run.folder) for run in opened(runs)]
