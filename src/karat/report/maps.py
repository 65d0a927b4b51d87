"""Maps: vectors of test items in two dimensions, coloured by their labels."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import MissingExtra
from karat.report.compact import cut_text
from karat.report.details import LABEL_WIDTH, OTHER
from karat.report.notes import plain, short
from karat.report.shown import Budget, Shown, count, some
from karat.results.run import Run

#: what a job keeps of the vectors of its test items: their labels and first principal components
SAMPLE = "sample.csv"
#: bytes of all maps, points of one, and labels that have a colour of their own
MAPS, MOST_POINTS, MOST_LABELS = 800_000, 300, 30
#: a sample of fewer components has all there are
COMPONENTS = 16
#: fewer items have no neighbourhoods to keep
FEWEST_ITEMS, NEIGHBOURS, SEED = 10, 15, 0


def make_maps(shown: Shown, umap: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return maps of the first fold of each task, of the best models first, and what is left out.

    They show the first two principal components, and, if wanted, UMAP of those that were kept.
    """
    if umap and find_spec("umap") is None:
        raise MissingExtra("umap-learn", "umap")
    found: list[dict[str, Any]] = []
    damaged: list[str] = []
    budget, without = Budget(MAPS), 0
    for task, model in shown.rounds():
        run, records = shown.done[task, model]
        try:
            sample = _sample(run, records[0])
        except (OSError, ValueError, KeyError, TypeError) as error:
            who = f"{short(shown.models[model])} on {short(shown.tasks[task])}"
            damaged.append(f"The map of {who} cannot be read: {short(plain(error), 160)}.")
            continue
        if sample is None:
            continue
        if budget.left <= 0:
            without += 1
            continue
        maps = [{"model": model, "task": task, **each} for each in _maps(sample, umap)]
        if budget.take(maps):
            found += maps
        else:
            budget.left = 0
            without += 1
    cut = some(damaged, lambda n: f"{n} more maps cannot be read.")
    if without:
        cut.append(f"{count(without, 'map')} of vectors are left out, those of the best are shown.")
    return sorted(found, key=lambda each: (each["task"], each["model"])), cut


@dataclass(frozen=True)
class Sample:
    """Labels of some items and their first principal components; whether labels are numbers."""

    labels: list[str]
    parts: np.ndarray
    numbers: bool

    @property
    def explained(self) -> list[float] | None:
        """The shares of the variance in the first two, if all components there are were kept."""
        total = float(self.parts.var(axis=0).sum())
        if self.parts.shape[1] >= COMPONENTS or not total:
            return None
        shares = (self.parts.var(axis=0) / total).tolist()
        return [shares[0], shares[1] if len(shares) > 1 else 0.0]


def _sample(run: Run, record: dict[str, Any]) -> Sample | None:
    """Return the items that a job kept, if it did."""
    folder = run.artifact_folder("predictions", record)
    if not (folder / SAMPLE).resolve().is_relative_to(run.folder.resolve()):
        raise ValueError("it leads out of its run folder")
    try:
        table = pd.read_csv(
            folder / SAMPLE, dtype={"label": str}, keep_default_na=False, encoding="utf-8"
        )
    except FileNotFoundError:
        return None
    names = [name for name in table if str(name).startswith("c") and str(name)[1:].isdecimal()]
    if "label" not in table or not names:
        raise ValueError('it needs the columns "label", c0, c1, …')
    table = table.iloc[:MOST_POINTS]
    parts = table[names].to_numpy(dtype=float)
    if not np.isfinite(parts).all():
        raise ValueError("a component is no number")
    told = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    return Sample(table["label"].tolist(), parts, told["truths"] == "numbers")


def _maps(sample: Sample, umap: bool) -> list[dict[str, Any]]:
    parts = sample.parts
    names, colours = colour_by(sample.labels, sample.numbers)
    flat = parts if parts.shape[1] > 1 else np.column_stack([parts, np.zeros(len(parts))])
    told = {"labels": names, "points": _points(flat[:, :2], colours)}
    found = [{"method": "pca", **told, "explained": sample.explained}]
    if umap and len(parts) >= FEWEST_ITEMS:
        told = {"labels": names, "points": _points(_umap(parts), colours)}
        found.append({"method": "umap", **told, "explained": None})
    return found


def colour_by(
    labels: list[str], numbers: bool = False
) -> tuple[list[str] | None, list[float | int | None]]:
    """Return the labels, and the place of each item's one; of numbers none, and the numbers.

    >>> colour_by(["b", "a", "b"]), colour_by(["1.5", ""], numbers=True)
    ((['a', 'b'], [1, 0, 1]), (None, [1.5, None]))
    """
    if numbers:
        return None, [float(label) if label else None for label in labels]
    counts = Counter(sorted(label for label in labels if label))
    most = MOST_LABELS if len(counts) <= MOST_LABELS else MOST_LABELS - 1
    kept = sorted(name for name, _ in counts.most_common(most))
    place = {name: i for i, name in enumerate(kept)}
    names = [cut_text(name, LABEL_WIDTH) for name in kept]
    if len(counts) > len(kept):
        names.append(OTHER)
    return names, [place.get(label, len(kept)) if label else None for label in labels]


def _points(flat: np.ndarray, colours: list[float | int | None]) -> list[list[float | None]]:
    # four digits are more than a screen shows
    scale = float(np.abs(flat).max(initial=0.0)) or 1.0
    digits = max(3 - math.floor(math.log10(scale)), 0)
    return [[*xy, c] for xy, c in zip(flat.round(digits).tolist(), colours, strict=True)]


def _umap(parts: np.ndarray) -> np.ndarray:
    from umap import UMAP

    near = min(NEIGHBOURS, len(parts) - 1)
    found = UMAP(n_neighbors=near, random_state=SEED, n_jobs=1, init="pca").fit_transform(parts)
    return np.asarray(found, dtype=float)
