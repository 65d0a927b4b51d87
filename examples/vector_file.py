"""Judge node vectors from a file; entities it does not have are counted, not hidden."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import karat

VECTORS = """Berlin 1 0 0 0
Germany 1 0 0 1
Paris 0 1 0 0
France 0 1 0 1
Rome 0 0 1 0
Italy 0 0 1 1
"""

pairs = [
    ("Berlin", "Germany", "Paris", "France"),
    ("Paris", "France", "Rome", "Italy"),
    ("Rome", "Italy", "Berlin", "Germany"),
    ("Berlin", "Germany", "Oslo", "Norway"),  # the file knows neither Oslo nor Norway
]
frame = pd.DataFrame(pairs, columns=["a", "b", "c", "d"])
data = karat.Dataset.from_columns(
    frame, ["a", "b", "c"], "d", name="capitals", kind="items", modality="entity"
)

with TemporaryDirectory() as folder:
    path = Path(folder, "mine.txt")
    path.write_text(VECTORS)
    for missing in ("ignore", "penalize"):
        task = karat.Task("capitals", data, probe="analogy", split="all", missing=missing)
        (run,) = karat.evaluate(path, task)
        row = run.results().iloc[0]
        print(f"{missing:9} hits@1 {row['hits@1']:.2f}   coverage {row['coverage']:.2f}")
        assert row["hits@1"] == {"ignore": 1.0, "penalize": 0.75}[missing]
