"""Details of stored predictions, read fold by fold within the size limits of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.errors import DataError
from karat.report.details import Fold, details
from karat.report.notes import plain, short
from karat.report.shown import Budget, Shown, count, some
from karat.results.run import Run

#: bytes of details in a page, of predictions read per model and task, and of all predictions
DETAILS, READ_EACH, READ_ALL = 1_500_000, 10_000_000, 100_000_000


@dataclass
class Reader:
    """Reads predictions up to a number of bytes, and records what could not be read."""

    left: int = READ_ALL
    damaged: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)

    def folds(self, run: Run, records: Sequence[dict[str, Any]], label: str) -> list[Fold]:
        """Return the predictions of the jobs, as many folds as there is room for."""
        found: list[Fold] = []
        room = min(self.left, READ_EACH)
        for record in records:
            needed = _size(run, record)
            if needed is None:
                continue
            if needed > room:
                self.large.append(f"{label}: predictions of {count(len(found), 'fold')} only.")
                break
            room, self.left = room - needed, self.left - needed
            found += self._fold(run, record, label)
        return found

    def _fold(self, run: Run, record: dict[str, Any], label: str) -> list[Fold]:
        try:
            return [(int(record["fold"]), run.predictions(record["task"], record["fold"]))]
        except Exception as error:  # a damaged file must not prevent the page
            why = plain(error) if isinstance(error, DataError) else type(error).__name__
            where = f"{label}, fold {record['fold']}"
            text = f"{where}: predictions cannot be read: {short(why, 160)}"
            self.damaged.append(f"{text.rstrip('.')}.")
            return []

    def details(self, folds: Sequence[Fold], kind: str, label: str) -> dict[str, Any] | None:
        """Return the details of predictions, or None if the folds are inconsistent."""
        try:
            return details(folds, kind)
        except Exception as error:  # as above
            self.damaged.append(f"{label}: inconsistent predictions: {short(error, 160)}.")
            return None


def make_details(
    shown: Shown, max_bytes: int = DETAILS
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the details by task, best models first, and notes on what was left out."""
    found: dict[int, list[dict[str, Any]]] = {}
    budget, reader = Budget(max_bytes), Reader()
    omitted = 0
    for task, model in shown.rounds():
        run, records = shown.done[task, model]
        if budget.left <= 0 or reader.left <= 0:
            omitted += any(_size(run, record) is not None for record in records)
            continue
        label = f"{short(shown.models[model])} on {short(shown.tasks[task])}"
        folds = reader.folds(run, records, label)
        made = reader.details(folds, shown.kinds[task], label) if folds else None
        if made is None:
            continue
        if budget.take(entry := {"model": model, **made}):
            found.setdefault(task, []).append(entry)
        else:
            budget.left = 0  # do not fill the rest with smaller entries of worse models
            omitted += 1
    cut = some(reader.damaged, lambda n: f"{n} more prediction files cannot be read.")
    cut += some(reader.large, lambda n: f"{n} more with some folds only.")
    if omitted:
        pairs = count(omitted, "pair")
        cut.append(f"Predictions of {pairs} of model and task are left out (best models first).")
    ordered = {str(t): sorted(found[t], key=lambda each: each["model"]) for t in sorted(found)}
    return ordered, cut


def _size(run: Run, record: dict[str, Any]) -> int | None:
    path = run.artifact_folder("predictions", record) / "predictions.csv"
    try:
        return path.stat().st_size
    except OSError:
        return None
