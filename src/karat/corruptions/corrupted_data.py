"""Apply the corruptions of a view to a dataset or to vectors.

The generator of a corruption depends only on seed, fold, draw and its name, so adding a corruption
changes no other. All severities share their random draws, so a higher severity affects a superset.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.registry import corruptions
from karat.corruptions.changed_cells import changed_share
from karat.corruptions.needs import Function, Items, Target, has_items_by_row
from karat.corruptions.view import VECTORS, View, part_changes_items
from karat.errors import ContractError


def corrupt(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the corrupted test questions; the given dataset does not change."""
    return corrupt_with_share(test, view, seed, fold)[0]


def corrupt_with_share(test: Dataset, view: View, seed: int, fold: int) -> tuple[Dataset, float]:
    """Return the corrupted test questions, and the share of changed cells.

    If a corruption drops or repeats rows, it is the share of rows.
    """
    seen, rows = test, np.arange(len(test))
    for (name, severity), rng in _generators(view, seed, fold):
        if part_changes_items(name, severity):
            seen, remaining = _see_one(seen, View(name, severity, view.draw), rng)
            rows = rows[remaining]
    return seen, 0.0 if seen is test else _changed(test, seen, rows)


def _changed(test: Dataset, seen: Dataset, rows: np.ndarray) -> float:
    """Return the share of cells or rows that differ; of targets if no cell differs."""
    if has_items_by_row(test):
        pairs = [
            (data.frame().set_axis(places, axis=0), pd.Series(data.target, index=places))
            for data, places in ((test, np.arange(len(test))), (seen, rows))
        ]
        return changed_share(*pairs)
    mentioned = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    ids = test.items.index[mentioned]
    return changed_share(test.items.loc[ids], seen.items.loc[ids])


def corrupt_vectors(vectors: Vectors, view: View, seed: int, fold: int) -> Vectors:
    """Apply the corruptions of a view that change vectors instead of items."""
    for (name, severity), rng in _generators(view, seed, fold):
        function = corruptions.get(name)
        if severity and VECTORS in getattr(function, "takes", ()):
            state = rng.bit_generator.state
            matrix = _blurred(function, vectors.matrix, severity, rng)
            vocabulary = vectors.vocabulary
            if vocabulary is not None:
                rng.bit_generator.state = state
                vocabulary = (vocabulary[0], _blurred(function, vocabulary[1], severity, rng))
            vectors = dataclasses.replace(vectors, matrix=matrix, vocabulary=vocabulary)
    return vectors


def _blurred(
    function: Function, matrix: np.ndarray, severity: float, rng: np.random.Generator
) -> Any:
    changed, _ = function(np.array(matrix), None, severity, rng)
    if np.shape(changed) != matrix.shape:
        raise ContractError(
            f"a corruption of vectors must return the shape {matrix.shape}, got "
            f"{np.shape(changed)}."
        )
    return np.asarray(changed, dtype=matrix.dtype)


def _generators(
    view: View, seed: int, fold: int
) -> Iterator[tuple[tuple[str, float], np.random.Generator]]:
    """Yield the corruptions of a view with their generators; repeated ones get different ones."""
    repeats: dict[str, int] = {}
    for name, severity in view.parts():
        turn = repeats[name] = repeats.get(name, -1) + 1
        more = [view.draw, turn] if view.draw or turn else []
        rng = np.random.default_rng([seed, fold, zlib.crc32(name.encode()), *more])
        yield (name, severity), rng


def _see_one(test: Dataset, view: View, rng: np.random.Generator) -> tuple[Dataset, np.ndarray]:
    """Apply one corruption; return the questions and their original positions."""
    every = np.arange(len(test))
    if has_items_by_row(test):
        items = test.frame().reset_index(drop=True).copy()
        truth = None if test.target is None else pd.Series(test.target)
        items, truth = _corrupted(view, items, truth, rng)
        rows = np.asarray(items.index)
        if not len(items):
            raise ContractError(f"{view.name} returned no rows.")
        if not np.isin(rows, np.arange(len(test))).all():
            raise ContractError(f"{view.name} returned rows with new labels; keep the index of X.")
        if test.target is not None:
            _check_truth(view, items, truth)
        rows = rows.astype(np.intp)
        # the index identifies dropped and repeated rows
        named = test.items.index[test.mentions(test.fields[0]).rows][rows]
        items = items.set_axis(named if named.is_unique else pd.RangeIndex(len(items)), axis=0)
        seen = dataclasses.replace(
            test,
            items=items,
            questions=pd.DataFrame({test.fields[0]: items.index}, index=test.questions.index[rows]),
            target=None if test.target is None else np.asarray(truth),
            group=None if test.group is None else test.group[rows],
            part=None,
            weight=None if test.weight is None else test.weight[rows],
        )
        return seen, rows
    if test.kind == "items":
        return _see_queries(test, view, rng), every
    return dataclasses.replace(test, items=_changed_items(test, view, rng, test.mentioned())), every


def _see_queries(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Corrupt the items in the questions; items that are only candidates do not change."""
    mentioned = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    changed = _changed_items(test, view, rng, mentioned)
    others = np.setdiff1d(np.arange(len(test.items)), mentioned)
    items = pd.concat([changed, test.items.iloc[others]])
    return dataclasses.replace(
        test, items=items.iloc[np.argsort(np.concatenate([mentioned, others]))]
    )


def _changed_items(test: Dataset, view: View, rng: np.random.Generator, rows: np.ndarray) -> Any:
    items = test.items.iloc[rows]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} must not drop items of {test.name}; questions use them.")
    return changed


def _corrupted(
    view: View, items: Items, target: Target, rng: np.random.Generator
) -> tuple[Any, Any]:
    result = corruptions.get(view.corruption)(items, target, view.severity, rng)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], type(items)):
        raise ContractError(
            f"{view.name} must return (X, y), and X must be a {type(items).__name__}."
        )
    return result


def _check_truth(view: View, items: pd.DataFrame | pd.Series, target: Target) -> None:
    targets = 0 if target is None else len(target)
    if targets != len(items):
        raise ContractError(
            f"{view.name} returned X with {len(items)} rows and y with {targets}; they must match."
        )
    if isinstance(target, pd.Series) and not target.index.equals(items.index):
        raise ContractError(f"{view.name} returned X and y with different indexes.")
