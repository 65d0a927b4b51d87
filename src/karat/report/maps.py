"""Maps of vectors: test items in two dimensions, colored by label."""

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

#: file of a job with the labels and first principal components of its test items
SAMPLE = "sample.csv"
#: bytes of all maps, points of one map, and labels with their own color
MAPS, MAX_POINTS, MAX_LABELS = 800_000, 300, 30
#: a sample with fewer components has all components
COMPONENTS = 16
#: settings of UMAP; fewer items than the minimum are not projected
MIN_ITEMS, NEIGHBORS, SEED = 10, 15, 0


def make_maps(shown: Shown, umap: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return maps of the first fold of each task, best models first, and notes on what is left out.

    A map shows the first two principal components; ``umap`` adds UMAP of the stored components.
    """
    if umap and find_spec("umap") is None:
        raise MissingExtra("umap-learn", "umap")
    found: list[dict[str, Any]] = []
    damaged: list[str] = []
    budget, omitted = Budget(MAPS), 0
    for task, model in shown.rounds():
        run, records = shown.done[task, model]
        try:
            sample = _sample(run, records[0])
        except (OSError, ValueError, KeyError, TypeError) as error:
            label = f"{short(shown.models[model])} on {short(shown.tasks[task])}"
            damaged.append(f"{label}: the map cannot be read: {short(plain(error), 160)}.")
            continue
        if sample is None:
            continue
        if budget.left <= 0:
            omitted += 1
            continue
        maps = [{"model": model, "task": task, **each} for each in _maps(sample, umap)]
        if budget.take(maps):
            found += maps
        else:
            budget.left = 0
            omitted += 1
    cut = some(damaged, lambda n: f"{n} more maps cannot be read.")
    if omitted:
        cut.append(f"{count(omitted, 'map')} of vectors are left out (best models first).")
    return sorted(found, key=lambda each: (each["task"], each["model"])), cut


@dataclass(frozen=True)
class Sample:
    """Labels and first principal components of some items; whether labels are numbers."""

    labels: list[str]
    components: np.ndarray
    numbers: bool

    @property
    def explained(self) -> list[float] | None:
        """The explained variance of the first two, if all components are stored."""
        total = float(self.components.var(axis=0).sum())
        if self.components.shape[1] >= COMPONENTS or not total:
            return None
        shares = (self.components.var(axis=0) / total).tolist()
        return [shares[0], shares[1] if len(shares) > 1 else 0.0]


def _sample(run: Run, record: dict[str, Any]) -> Sample | None:
    """Return the stored sample of a job, or None."""
    folder = run.artifact_folder("predictions", record)
    if not (folder / SAMPLE).resolve().is_relative_to(run.folder.resolve()):
        raise ValueError("the path leaves the run folder")
    try:
        table = pd.read_csv(
            folder / SAMPLE, dtype={"label": str}, keep_default_na=False, encoding="utf-8"
        )
    except FileNotFoundError:
        return None
    names = [name for name in table if str(name).startswith("c") and str(name)[1:].isdecimal()]
    if "label" not in table or not names:
        raise ValueError('missing columns "label", c0, c1, ...')
    table = table.iloc[:MAX_POINTS]
    components = table[names].to_numpy(dtype=float)
    if not np.isfinite(components).all():
        raise ValueError("a component is not a finite number")
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    return Sample(table["label"].tolist(), components, metadata["truths"] == "numbers")


def _maps(sample: Sample, umap: bool) -> list[dict[str, Any]]:
    components = sample.components
    names, colors = color_by(sample.labels, sample.numbers)
    if components.shape[1] == 1:
        components = np.column_stack([components, np.zeros(len(components))])
    methods = {"pca": (components[:, :2], sample.explained)}
    if umap and len(components) >= MIN_ITEMS:
        methods["umap"] = (_umap(sample.components), None)
    return [
        {"method": name, "labels": names, "points": _points(xy, colors), "explained": explained}
        for name, (xy, explained) in methods.items()
    ]


def color_by(
    labels: list[str], numbers: bool = False
) -> tuple[list[str] | None, list[float | int | None]]:
    """Return the labels and the index of each item's label; for numbers None and the numbers.

    >>> color_by(["b", "a", "b"]), color_by(["1.5", ""], numbers=True)
    ((['a', 'b'], [1, 0, 1]), (None, [1.5, None]))
    """
    if numbers:
        return None, [float(label) if label else None for label in labels]
    counts = Counter(sorted(label for label in labels if label))
    number = MAX_LABELS if len(counts) <= MAX_LABELS else MAX_LABELS - 1
    frequent = sorted(name for name, _ in counts.most_common(number))
    place = {name: i for i, name in enumerate(frequent)}
    names = [cut_text(name, LABEL_WIDTH) for name in frequent]
    if len(counts) > len(frequent):
        names.append(OTHER)
    return names, [place.get(label, len(frequent)) if label else None for label in labels]


def _points(flat: np.ndarray, colors: list[float | int | None]) -> list[list[float | None]]:
    # four digits are enough for a screen
    scale = float(np.abs(flat).max(initial=0.0)) or 1.0
    digits = max(3 - math.floor(math.log10(scale)), 0)
    return [[*xy, c] for xy, c in zip(flat.round(digits).tolist(), colors, strict=True)]


def _umap(components: np.ndarray) -> np.ndarray:
    from umap import UMAP

    near = min(NEIGHBORS, len(components) - 1)
    found = UMAP(n_neighbors=near, random_state=SEED, n_jobs=1, init="pca").fit_transform(
        components
    )
    return np.asarray(found, dtype=float)
