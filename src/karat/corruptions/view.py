"""Views: the test questions as they are, or seen through a named corruption at a severity.

The generator of a view comes from seed, fold and the corruption's name alone. Adding a corruption
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

from karat.dataset import Dataset
from karat.errors import ContractError
from karat.registry import corruptions


@dataclass(frozen=True)
class View:
    """A corruption and its severity; the clean view has neither."""

    corruption: str = ""
    severity: float = 0.0

    @property
    def name(self) -> str:
        """The view's name as results show it: ``clean`` or ``noise@0.2``."""
        short = f"{self.severity:g}"
        severity = short if float(short) == self.severity else repr(self.severity)
        return f"{self.corruption}@{severity}" if self.corruption else "clean"


CLEAN = View()


def views(chosen: Mapping[str, Sequence[float]]) -> Iterator[View]:
    """Yield the clean view and then every corruption at each of its severities.

    >>> [view.name for view in views({"noise": [0.1, 0.4]})]
    ['clean', 'noise@0.1', 'noise@0.4']
    """
    yield CLEAN
    for corruption, severities in chosen.items():
        for severity in severities:
            yield View(corruption, float(severity))


def see(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the test questions through a view; the given data set is left as it is."""
    if not view.corruption or view.severity == 0:
        return test
    rng = np.random.default_rng([seed, fold, zlib.crc32(view.corruption.encode())])
    asked = test.mentions(test.fields[0]).rows
    if len(test.fields) == 1 and len(asked) == len(test):
        ids = test.items.index[asked]
        # an entity keeps its id, by which vectors are looked up, so each is changed only once
        if ids.is_unique or test.modality != "entity":
            return _see_rows(test, view, rng, ids)
    return _see_items(test, view, rng)


def _see_rows(test: Dataset, view: View, rng: np.random.Generator, ids: pd.Index) -> Dataset:
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
    return dataclasses.replace(
        test,
        items=items,
        questions=pd.DataFrame({test.fields[0]: items.index}),
        truth=None if test.truth is None else np.asarray(truth),
        group=None if test.group is None else test.group[kept],
        part=None,
    )


def _see_items(test: Dataset, view: View, rng: np.random.Generator) -> Dataset:
    """Change each item once, however many questions mention it; the truth cannot follow."""
    items = test.items.iloc[test.mentioned()]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} drops items, and {test.name} asks about each by name.")
    return dataclasses.replace(test, items=changed)


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
