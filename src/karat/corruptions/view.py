"""Views: the test questions as they are, or seen through corruptions at a severity.

A corruption's generator comes from seed, fold, draw and its own name alone. Adding a corruption
changes no other, and since all severities share their draws, a higher one contains the lower ones.
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

#: what a corruption of vectors says it takes
VECTORS = "vectors"


@dataclass(frozen=True)
class View:
    """A corruption, its severity and which of several draws it is; the clean view has none.

    The corruption may be composed, ``a+b`` or ``a@0.2+b@0.1``: one is applied after the other,
    each at its dose times the severity.
    """

    corruption: str = ""
    severity: float = 0.0
    draw: int = 0

    @property
    def name(self) -> str:
        """The view's name as results show it: ``clean``, ``noise@0.2``, its second draw ``…#1``."""
        if not self.corruption:
            return "clean"
        draw = f"#{self.draw}" if self.draw else ""
        if self.severity == 1 and "@" in self.corruption:
            return f"{self.corruption}{draw}"
        return f"{self.corruption}@{_written(self.severity)}{draw}"

    def parts(self) -> list[tuple[str, float]]:
        """Return the corruptions it is made of, each with its own severity."""
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
                f'corruption "{corruption}": write a composition as "a+b" or "a@0.2+b@0.1".'
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
    """Refuse a corruption nobody knows, and a severity it does not take."""
    for name, severity in view.parts():
        check_severity(name, severity)


def why_not(view: View, data: Dataset, role: str) -> str:
    """Return why a model of this role cannot see the data through a view, or nothing."""
    for name, _ in view.parts():
        if VECTORS not in getattr(corruptions.get(name), "takes", ()):
            why = reason_not(name, data)
        else:
            why = "" if role == "encoder" else "it changes vectors, and a predictor has none"
        if why:
            return f"{name}: {why}"
    return ""


def see(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the test questions through a view; the given data set is left as it is."""
    return look(test, view, seed, fold)[0]


def look(test: Dataset, view: View, seed: int, fold: int) -> tuple[Dataset, float]:
    """Return the test questions through a view, and the share of what it changed.

    The share is of cells, or of rows where a corruption drops or repeats some.
    """
    seen, rows = test, np.arange(len(test))
    for (name, severity), rng in _generators(view, seed, fold):
        if severity and VECTORS not in getattr(corruptions.get(name), "takes", ()):
            seen, kept = _see_one(seen, View(name, severity, view.draw), rng)
            rows = rows[kept]
    return seen, 0.0 if seen is test else _changed(test, seen, rows)


def _changed(test: Dataset, seen: Dataset, rows: np.ndarray) -> float:
    """Return the share of cells or rows that differ; of answers where no cell does."""
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
    """Return vectors through the corruptions of a view that change vectors, not items."""
    for (name, severity), rng in _generators(view, seed, fold):
        part = corruptions.get(name)
        if severity and VECTORS in getattr(part, "takes", ()):
            state = rng.bit_generator.state
            matrix = _blurred(part, vectors.matrix, severity, rng)
            stock = vectors.vocabulary
            if stock is not None:
                rng.bit_generator.state = state
                stock = (stock[0], _blurred(part, stock[1], severity, rng))
            vectors = dataclasses.replace(vectors, matrix=matrix, vocabulary=stock)
    return vectors


def _blurred(part: Any, matrix: np.ndarray, severity: float, rng: np.random.Generator) -> Any:
    changed, _ = part(np.array(matrix), None, severity, rng)
    if np.shape(changed) != matrix.shape:
        raise ContractError(
            f"a corruption of vectors made the shape {np.shape(changed)} of {matrix.shape}."
        )
    return np.asarray(changed, dtype=matrix.dtype)


def _generators(
    view: View, seed: int, fold: int
) -> Iterator[tuple[tuple[str, float], np.random.Generator]]:
    """Yield the parts of a view with their generators; the same part again has another."""
    seen: dict[str, int] = {}
    for part in view.parts():
        turn = seen[part[0]] = seen.get(part[0], -1) + 1
        more = [view.draw, turn] if view.draw or turn else []
        yield part, np.random.default_rng([seed, fold, zlib.crc32(part[0].encode()), *more])


def _see_one(test: Dataset, view: View, rng: np.random.Generator) -> tuple[Dataset, np.ndarray]:
    """Return the questions through one corruption, and which questions they were."""
    every = np.arange(len(test))
    if by_row(test):
        return _see_rows(test, view, rng, test.items.index[test.mentions(test.fields[0]).rows])
    if test.kind == "items":
        return _see_queries(test, view, rng), every
    return _see_items(test, view, rng), every


def _see_rows(
    test: Dataset, view: View, rng: np.random.Generator, ids: pd.Index
) -> tuple[Dataset, np.ndarray]:
    """Change the items question by question, with the truth; rows may be dropped or repeated."""
    items = test.frame().reset_index(drop=True).copy()
    truth = None if test.truth is None else pd.Series(test.truth)
    items, truth = _corrupted(view, items, truth, rng)
    kept = np.asarray(items.index)
    if not len(items):
        raise ContractError(f"{view.name} left no row to test.")
    if not np.isin(kept, np.arange(len(test))).all():
        raise ContractError(f"{view.name} returned rows under new labels; keep the index of X.")
    if test.truth is not None:
        _check_truth(view, items, truth)
    kept = kept.astype(np.intp)
    # rows keep their index, so ids and groups follow even where some are dropped or repeated
    named = ids[kept]
    items = items.set_axis(named if named.is_unique else pd.RangeIndex(len(items)), axis=0)
    seen = dataclasses.replace(
        test,
        items=items,
        questions=pd.DataFrame({test.fields[0]: items.index}),
        truth=None if test.truth is None else np.asarray(truth),
        group=None if test.group is None else test.group[kept],
        part=None,
    )
    return seen, kept


def _see_queries(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Change what is asked about, each item once; the candidates for an answer stay clean."""
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    changed = _changed_items(test, view, rng, asked)
    others = np.setdiff1d(np.arange(len(test.items)), asked)
    items = pd.concat([changed, test.items.iloc[others]])
    return dataclasses.replace(test, items=items.iloc[np.argsort(np.concatenate([asked, others]))])


def _see_items(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Change each item once, however many questions mention it; the truth cannot follow."""
    return dataclasses.replace(test, items=_changed_items(test, view, rng, test.mentioned()))


def _changed_items(test: Dataset, view: View, rng: np.random.Generator, rows: np.ndarray) -> Any:
    items = test.items.iloc[rows]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} drops items, and {test.name} asks about each by name.")
    return changed


def _corrupted(view: View, items: Any, truth: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    result = corruptions.get(view.corruption)(items, truth, view.severity, rng)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], type(items)):
        raise ContractError(
            f"{view.name} must return (X, y) with X a {type(items).__name__}, as it was given."
        )
    return result


def _check_truth(view: View, items: pd.DataFrame | pd.Series, truth: Any) -> None:
    answers = 0 if truth is None else len(truth)
    if answers != len(items):
        raise ContractError(
            f"{view.name} returned {len(items)} rows and {answers} answers; one each is needed."
        )
    if isinstance(truth, pd.Series) and not truth.index.equals(items.index):
        raise ContractError(f"{view.name} returned X and y with unlike indexes; keep them alike.")


def _written(severity: float) -> str:
    short = f"{severity:g}"
    return short if float(short) == severity else repr(severity)
