"""A small folder of gold standards in GEval's layout, and vectors for most of its entities."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.ext.compat.geval import FrameworkManager, gold

BASE = "http://dbpedia.org/resource/"
#: the starts of the names of GEval's result files
RESULT_FILES = {
    *("classification_Cities", "regression_Cities", "clustering_teams_cluster"),
    *("documentSimilarity_LP50", "entityRelatedness_KORE", "semanticAnalogies"),
}
#: the gold standards of the folder
GOLD_NAMES = ("Cities", "teams_cluster", "LP50", "KORE", "currency_entities")
#: entities without a vector
LOST = ("City_3", "Orphan", "Main_2", "Rel_0_0", "Country_7")


def iri(name: str) -> str:
    return BASE + name


def write_gold(folder: Path) -> Path:
    """Write one gold standard of each task."""
    cities = [f"City_{i}" for i in range(40)] + ["City_5", "City_6"]  # two duplicates
    rows = [
        f"{iri(name)}\t{'high' if int(name[5:]) % 2 else 'low'}\t{10.0 + int(name[5:]) % 2}"
        for name in cities
    ]
    table = "\n".join(["DBpedia_URI15\tlabel\trating", *rows]) + "\n"
    clusters = [f"{iri(f'City_{i}')}\t0" for i in range(12)]
    clusters += [f"{iri(f'Country_{i}')}\t1" for i in range(8)] + [f"{iri('Orphan')}\t1"]
    related = []
    for main in range(3):
        related.append(iri(f"Main_{main}"))
        related += [f"\t{iri(f'Rel_{main}_{i}')}" for i in range(4)]
    quads = [
        " ".join(iri(name) for name in (f"City_{i}", f"City_{j}", f"Land_{i}", f"Land_{j}"))
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    documents = [
        {"text": "", "annotations": [{"entity": iri(f"City_{i}"), "weight": w} for i, w in doc]}
        for doc in (
            [(0, 1.0), (1, 0.5), (0, 0.2)],  # City_0 is mentioned twice
            [(2, 0.9), (1, 0.3)],
            [(4, 1.0), (6, 0.1)],
            [(3, 1.0)],  # nothing of it has a vector
        )
    ]
    pairs = ["doc1,doc2,average", "1,2,4.0", "1,3,2.5", "2,3,1.5", "1,4,1.0", "2,4,2.0", "3,4,3.0"]
    files = {
        "Classification/Cities.tsv": table,
        "Regression/Cities.tsv": table,
        "Clustering/teams_cluster.tsv": "\n".join(["DBpedia_URI\tcluster", *clusters]) + "\n",
        "EntityRelatedness/KORE.txt": "\n".join(related) + "\n",
        "SemanticAnalogies/currency_entities.txt": "\n".join(quads) + "\n",
        "DocumentSimilarity/LP50_entities.json": json.dumps(documents),
        "DocumentSimilarity/LP50_averageScores.csv": "\n".join(pairs) + "\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def vectors(lost: tuple[str, ...] = LOST) -> dict[str, np.ndarray]:
    """Vectors with classes apart, related ones in order, and countries near their cities."""
    rng = np.random.default_rng(5)
    shift = np.array([0, 0, 0, 0, 3.0, 0])
    found: dict[str, np.ndarray] = {}
    for i in range(40):
        found[f"City_{i}"] = rng.normal(0, 0.5, 6) + [4.0 * (i % 2), 0, 0, 0, 0, 1]
    found |= {f"Land_{i}": found[f"City_{i}"] + shift for i in range(5)}
    found |= {f"Country_{i}": rng.normal(0, 0.2, 6) + [0, 9.0, 0, 0, 0, 0] for i in range(8)}
    for main in range(3):
        found[f"Main_{main}"] = np.array([1.0, 0, 0, 0, 0, 0])
        for i in range(4):  # the further down the list, the wider the angle
            found[f"Rel_{main}_{i}"] = np.array([np.cos(0.3 * i), np.sin(0.3 * i), 0, 0, 0, 0])
    found["Orphan"] = rng.normal(0, 1, 6)
    return {iri(name): vector for name, vector in found.items() if name not in lost}


def write_text(path: Path, stock: dict[str, np.ndarray]) -> Path:
    lines = [
        " ".join([name, *map(repr, vector.astype(float).tolist())])
        for name, vector in stock.items()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_compared(path: Path) -> pd.DataFrame:
    """Return a table of the comparison, whose cells are separated by blanks."""
    return pd.read_csv(path, sep=" ", keep_default_na=False, na_values=[""])


def run_geval(place: Path, repeats: int = 1, **given: object) -> Path:
    """Evaluate the vectors on the gold standards with fewer repeats; return the result folder."""
    write_gold(place / "gold")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gold, "REPEATS", repeats)
        return FrameworkManager().evaluate(
            str(write_text(place / "my vectors.txt", vectors())),
            gold_directory_path=place / "gold",
            result_directory_path=place / "results",
            **given,
        )


def write_hdf5(path: Path, stock: dict[str, np.ndarray], rows: bool = False) -> Path:
    """Write the file of the document: one data set per entity, of shape (d,), or (1, d)."""
    import h5py

    with h5py.File(path, "w") as file:
        group = file.create_group("Vectors")
        for name, vector in stock.items():
            key = base64.b32encode(name.encode()).decode()
            group.create_dataset(key, data=vector[None] if rows else vector)
    return path
