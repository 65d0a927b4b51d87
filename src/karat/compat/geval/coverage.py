"""Coverage of a gold standard by a vector file, and GEval's files of missing entities."""

from __future__ import annotations

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
    """Which items and questions of a gold standard a vector file has vectors for."""

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
        """The fraction of the gold standard's rows that are covered."""
        return float(self.questions.mean())

    @property
    def missing(self) -> list[str]:
        """The entities without a vector, in the order of the gold standard."""
        return [str(name) for name in self.data.items.index[~self.items]]

    def covered(self) -> Dataset:
        """Return the covered rows, as GEval joins them before it splits."""
        return self.data.take(np.flatnonzero(self.questions))

    def summary(self) -> str:
        """Return one line for the log."""
        rows = f"{self.questions.sum()} of {len(self.questions)} rows"
        entities = f"{len(self.missing)} of {len(self.items)} entities missing"
        return f"{self.gold.name}: coverage {self.share:.4f} ({rows}), {entities}"

    def write(self, folder: Path) -> Path | None:
        """Write GEval's file of ignored data if anything is missing, and return its path."""
        if not self.missing:
            return None
        task = self.gold.task
        stem = f"{task[0].lower()}{task[1:]}_{self.gold.name}_ignoredData"
        tables = {"EntityRelatedness": self._pairs, "SemanticAnalogies": self._quadruples}
        path = folder / f"{stem}.{'csv' if task in tables else 'txt'}"
        if task in tables:
            tables[task]().to_csv(path, index=False, lineterminator="\n")
        else:
            path.write_text("\n".join(self.missing) + "\n", encoding="utf-8")
        return path

    def _pairs(self) -> pd.DataFrame:
        """Return missing related entities with their main entity; missing main ones come first."""
        main, related = (self.data.mentions(name).rows for name in self.data.fields)
        pairs = [(m, m) for m in dict.fromkeys(main)] + list(zip(related, main, strict=True))
        names = self.data.items.index
        missing = [(names[a], names[b]) for a, b in pairs if not self.items[a]]
        return pd.DataFrame(missing, columns=["entity", "related_to"])

    def _quadruples(self) -> pd.DataFrame:
        missing = self.data.questions.loc[~self.questions, list(FILE_ORDER)]
        answers = np.asarray(self.data.truth)[~self.questions]
        table = missing.assign(answer=answers).astype(str)
        return table.set_axis([f"entity_{i}" for i in range(1, 5)], axis=1)
