"""Experiment trackers, as ``karat run --track`` uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from karat.ext.publish import tracking
from karat.results.run import Run


@dataclass(frozen=True)
class Tracker:
    """A tracker by its name."""

    name: str

    def check(self) -> None:
        """Raise an error if the tracker's client is not installed."""
        tracking.check_tracker(self.name)

    def send(self, runs: Sequence[Run]) -> list[str]:
        """Send finished runs; return what the tracker calls them."""
        return tracking.track(runs, self.name)


mlflow = Tracker("mlflow")
trackio = Tracker("trackio")
wandb = Tracker("wandb")
