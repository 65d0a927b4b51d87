"""Answers: the stored predictions of runs, read fold by fold as far as a page has room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.errors import DataError
from karat.report.details import Fold, details
from karat.report.notes import plain, short
from karat.report.shown import Budget, Shown, count, some
from karat.results.run import Run

#: bytes of details in a page, and of predictions that are read for one model on one task, and all
DETAILS, READ_EACH, READ_ALL = 1_500_000, 10_000_000, 100_000_000


@dataclass
class Reader:
    """Reads predictions until so many bytes are read, and remembers what it could not read."""

    left: int = READ_ALL
    damaged: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)

    def folds(self, run: Run, records: Sequence[dict[str, Any]], who: str) -> list[Fold]:
        """Return the answers of the jobs that have any, as many folds as there is room for."""
        found: list[Fold] = []
        room = min(self.left, READ_EACH)
        for record in records:
            needed = _size(run, record)
            if needed is None:
                continue
            if needed > room:
                self.large.append(f"Answers of {who} are shown of {count(len(found), 'fold')}.")
                break
            room, self.left = room - needed, self.left - needed
            found += self._fold(run, record, who)
        return found

    def _fold(self, run: Run, record: dict[str, Any], who: str) -> list[Fold]:
        try:
            answers = run.predictions(record["task"], record["fold"])
            return [(int(record["fold"]), answers)]
        except Exception as error:  # whatever is wrong with one file, the page has the others
            why = plain(error) if isinstance(error, DataError) else type(error).__name__
            told = f"Predictions of {who}, fold {record['fold']}, cannot be read: {short(why, 160)}"
            self.damaged.append(f"{told.rstrip('.')}.")
            return []

    def details(self, folds: Sequence[Fold], kind: str, who: str) -> dict[str, Any] | None:
        """Return what is told of the answers, or nothing if they make no sense together."""
        try:
            return details(folds, kind)
        except Exception as error:  # as above
            self.damaged.append(f"Predictions of {who} do not fit together: {short(error, 160)}.")
            return None


def make_details(
    shown: Shown, most: int = DETAILS
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the details by task, of the best models first, and what was left out."""
    found: dict[int, list[dict[str, Any]]] = {}
    budget, reader = Budget(most), Reader()
    without = 0
    for task, model in shown.rounds():
        run, records = shown.done[task, model]
        if budget.left <= 0 or reader.left <= 0:
            without += any(_size(run, record) is not None for record in records)
            continue
        who = f"{short(shown.models[model])} on {short(shown.tasks[task])}"
        folds = reader.folds(run, records, who)
        seen = reader.details(folds, shown.kinds[task], who) if folds else None
        if seen is None:
            continue
        told = {"model": model, **seen}
        if budget.take(told):
            found.setdefault(task, []).append(told)
        else:
            budget.left = 0  # a smaller one after it would take the turn of a better model
            without += 1
    cut = some(reader.damaged, lambda n: f"{n} more files of predictions cannot be read.")
    cut += some(reader.large, lambda n: f"So it is with {n} more.")
    if without:
        cut.append(
            f"Answers of {count(without, 'model')} on tasks are left out, the best are shown."
        )
    ordered = {str(t): sorted(found[t], key=lambda each: each["model"]) for t in sorted(found)}
    return ordered, cut


def _size(run: Run, record: dict[str, Any]) -> int | None:
    path = run.artifact_folder("predictions", record) / "predictions.csv"
    try:
        return path.stat().st_size
    except OSError:
        return None
