"""What a vector file knows of a gold standard: coverage, and GEval's files of what is missing."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from karat.compat.geval.gold import Gold
from karat.dataset import Dataset
from karat.models.vector_file import VectorFile

FILE_ORDER = ("a", "c", "b")


@dataclass(frozen=True)
class Coverage:
    """A gold standard beside a vector file: which items and which questions the file knows."""

    gold: Gold
    data: Dataset
    items: np.ndarray
    questions: np.ndarray

    @classmethod
    def of(cls, gold: Gold, data: Dataset, encoder: VectorFile) -> Coverage:
        """Look up all items of a gold standard."""
        items = ~np.isnan(encoder.transform(data.items)[:, 0])
        questions = np.ones(len(data), dtype=bool)
        for name in data.fields:
            bags = data.mentions(name)
            questions &= np.logical_or.reduceat(items[bags.rows], bags.offsets[:-1])
        if data.kind == "items":
            questions &= items[data.items.index.get_indexer(pd.Index(data.truth))]
        return cls(gold, data, items, questions)

    @property
    def share(self) -> float:
        """The share of the gold standard's rows that are covered."""
        return float(self.questions.mean())

    @property
    def missing(self) -> list[str]:
        """The entities the file does not have, in the order of the gold standard."""
        return [str(name) for name in self.data.items.index[~self.items]]

    def covered(self) -> Dataset:
        """Return the covered rows alone, as GEval joins them before it cuts folds."""
        return self.data.take(np.flatnonzero(self.questions))

    def told(self) -> str:
        """Return it in one line for the log."""
        rows, lost = len(self.questions), len(self.missing)
        return (
            f"{self.gold.name}: coverage {self.share:.4f} ({self.questions.sum()} of {rows} rows), "
            f"{lost} of {len(self.items)} entities missing"
        )

    def write(self, folder: Path) -> Path | None:
        """Write GEval's file of ignored data where something is missing, and return it."""
        if not self.missing:
            return None
        stem = f"{_lower(self.gold.task)}_{self.gold.name}_ignoredData"
        if self.gold.task == "EntityRelatedness":
            return _table(folder / f"{stem}.csv", ("entity", "related_to"), self._pairs())
        if self.gold.task == "SemanticAnalogies":
            columns = [f"entity_{i}" for i in range(1, 5)]
            return _table(folder / f"{stem}.csv", columns, self._quadruples())
        path = folder / f"{stem}.txt"
        path.write_text("\n".join(self.missing) + "\n", encoding="utf-8")
        return path

    def _pairs(self) -> list[tuple[str, str]]:
        """Return missing related entities with their main one; a missing main one is its own."""
        main, related = (self.data.mentions(name).rows for name in self.data.fields)
        names = self.data.items.index
        lost = [(names[m], names[m]) for m in dict.fromkeys(main) if not self.items[m]]
        lost += [
            (names[r], names[m]) for m, r in zip(main, related, strict=True) if not self.items[r]
        ]
        return [(str(entity), str(other)) for entity, other in lost]

    def _quadruples(self) -> list[tuple[str, ...]]:
        lost = np.flatnonzero(~self.questions)
        asked = self.data.questions.iloc[lost]
        truth = np.asarray(self.data.truth)[lost]
        columns = [asked[name].astype(str) for name in FILE_ORDER]
        return list(zip(*columns, map(str, truth), strict=True))


def _table(path: Path, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def _lower(task: str) -> str:
    return task[0].lower() + task[1:]
