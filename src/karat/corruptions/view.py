"""Views: the clean test questions, or the test questions corrupted with a severity.

The generator of a corruption depends only on seed, fold, draw and its name, so adding a corruption
changes no other. All severities share their random draws.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.effect import affected
from karat.corruptions.needs import by_row, check_severity, reason_not
from karat.dataset import Dataset
from karat.errors import ContractError, DefinitionError
from karat.registry import corruptions
from karat.vectors import Vectors

#: the ``takes`` of corruptions of vectors
VECTORS = "vectors"


@dataclass(frozen=True)
class View:
    """A corruption, its severity and the number of the draw; the clean view has no corruption.

    Corruptions can be composed, ``a+b`` or ``a@0.2+b@0.1``: they are applied in this order, each
    with its dose times the severity.
    """

    corruption: str = ""
    severity: float = 0.0
    draw: int = 0

    @property
    def name(self) -> str:
        """The name in results: ``clean``, ``noise@0.2``, or ``noise@0.2#1`` for the second draw."""
        if not self.corruption:
            return "clean"
        draw = f"#{self.draw}" if self.draw else ""
        if self.severity == 1 and "@" in self.corruption:
            return f"{self.corruption}{draw}"
        return f"{self.corruption}@{_written(self.severity)}{draw}"

    def parts(self) -> list[tuple[str, float]]:
        """Return the composed corruptions, each with its severity."""
        return [(name, dose * self.severity) for name, dose in doses(self.corruption)]


CLEAN = View()


def doses(corruption: str) -> list[tuple[str, float]]:
    """Return the corruptions in a name and the dose of each.

    >>> doses("missingness_mcar@0.2+noise_gaussian")
    [('missingness_mcar', 0.2), ('noise_gaussian', 1.0)]
    """
    if not corruption or corruption in corruptions:
        return [(corruption, 1.0)] if corruption else []
    found = []
    for part in corruption.split("+"):
        name, at, written = part.strip().partition("@")
        try:
            dose = float(written) if at else 1.0
        except ValueError:
            dose = -1.0
        if not name or not 0 <= dose < np.inf:
            raise DefinitionError(
                f'corruption "{corruption}" is not valid; write "a+b" or "a@0.2+b@0.1".'
            )
        found.append((name, dose))
    return found


def views(chosen: Mapping[str, Sequence[float]], draws: int = 1) -> Iterator[View]:
    """Yield the clean view and then every corruption at each of its severities, in each draw.

    >>> [view.name for view in views({"noise": [0.1, 0.4]})]
    ['clean', 'noise@0.1', 'noise@0.4']
    """
    yield CLEAN
    for corruption, severities in chosen.items():
        for severity in severities:
            for draw in range(draws if severity else 1):
                yield View(corruption, float(severity), draw)


def check_view(view: View) -> None:
    """Refuse unknown corruptions and severities outside of their range."""
    for name, severity in view.parts():
        check_severity(name, severity)


def why_not(view: View, data: Dataset, role: str) -> str:
    """Return why a view cannot be applied to the data for a model of this role, or ""."""
    for name, _ in view.parts():
        if VECTORS not in getattr(corruptions.get(name), "takes", ()):
            why = reason_not(name, data)
        else:
            why = "" if role == "encoder" else "it changes vectors, but a predictor has none"
        if why:
            return f"{name}: {why}"
    return ""


def see(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the corrupted test questions; the given dataset does not change."""
    return look(test, view, seed, fold)[0]


def look(test: Dataset, view: View, seed: int, fold: int) -> tuple[Dataset, float]:
    """Return the corrupted test questions, and the share of changed cells.

    If a corruption drops or repeats rows, it is the share of rows.
    """
    seen, rows = test, np.arange(len(test))
    for (name, severity), rng in _generators(view, seed, fold):
        if severity and VECTORS not in getattr(corruptions.get(name), "takes", ()):
            seen, remaining = _see_one(seen, View(name, severity, view.draw), rng)
            rows = rows[remaining]
    return seen, 0.0 if seen is test else _changed(test, seen, rows)


def _changed(test: Dataset, seen: Dataset, rows: np.ndarray) -> float:
    """Return the share of cells or rows that differ; of targets if no cell differs."""
    if by_row(test):
        pairs = [
            (each.frame().set_axis(places, axis=0), pd.Series(each.truth, index=places))
            for each, places in ((test, np.arange(len(test))), (seen, rows))
        ]
        return affected(*pairs)
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    ids = test.items.index[asked]
    return affected(test.items.loc[ids], seen.items.loc[ids])


def blur(vectors: Vectors, view: View, seed: int, fold: int) -> Vectors:
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


def _blurred(function: Any, matrix: np.ndarray, severity: float, rng: np.random.Generator) -> Any:
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
    if by_row(test):
        return _see_rows(test, view, rng, test.items.index[test.mentions(test.fields[0]).rows])
    if test.kind == "items":
        return _see_queries(test, view, rng), every
    return _see_items(test, view, rng), every


def _see_rows(
    test: Dataset, view: View, rng: np.random.Generator, ids: pd.Index
) -> tuple[Dataset, np.ndarray]:
    """Corrupt the item and target of each question; rows may be dropped or repeated."""
    items = test.frame().reset_index(drop=True).copy()
    truth = None if test.truth is None else pd.Series(test.truth)
    items, truth = _corrupted(view, items, truth, rng)
    rows = np.asarray(items.index)
    if not len(items):
        raise ContractError(f"{view.name} returned no rows.")
    if not np.isin(rows, np.arange(len(test))).all():
        raise ContractError(f"{view.name} returned rows with new labels; keep the index of X.")
    if test.truth is not None:
        _check_truth(view, items, truth)
    rows = rows.astype(np.intp)
    # the index identifies dropped and repeated rows
    named = ids[rows]
    items = items.set_axis(named if named.is_unique else pd.RangeIndex(len(items)), axis=0)
    seen = dataclasses.replace(
        test,
        items=items,
        questions=pd.DataFrame({test.fields[0]: items.index}),
        truth=None if test.truth is None else np.asarray(truth),
        group=None if test.group is None else test.group[rows],
        part=None,
    )
    return seen, rows


def _see_queries(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Corrupt the items in the questions; items that are only candidates do not change."""
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    changed = _changed_items(test, view, rng, asked)
    others = np.setdiff1d(np.arange(len(test.items)), asked)
    items = pd.concat([changed, test.items.iloc[others]])
    return dataclasses.replace(test, items=items.iloc[np.argsort(np.concatenate([asked, others]))])


def _see_items(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Corrupt each item once, independent of the number of its questions; targets do not change."""
    return dataclasses.replace(test, items=_changed_items(test, view, rng, test.mentioned()))


def _changed_items(test: Dataset, view: View, rng: np.random.Generator, rows: np.ndarray) -> Any:
    items = test.items.iloc[rows]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} must not drop items of {test.name}; questions use them.")
    return changed


def _corrupted(view: View, items: Any, truth: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    result = corruptions.get(view.corruption)(items, truth, view.severity, rng)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], type(items)):
        raise ContractError(
            f"{view.name} must return (X, y), and X must be a {type(items).__name__}."
        )
    return result


def _check_truth(view: View, items: pd.DataFrame | pd.Series, truth: Any) -> None:
    targets = 0 if truth is None else len(truth)
    if targets != len(items):
        raise ContractError(
            f"{view.name} returned X with {len(items)} rows and y with {targets}; they must match."
        )
    if isinstance(truth, pd.Series) and not truth.index.equals(items.index):
        raise ContractError(f"{view.name} returned X and y with different indexes.")


def _written(severity: float) -> str:
    short = f"{severity:g}"
    return short if float(short) == severity else repr(severity)
