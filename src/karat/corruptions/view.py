"""Views: the test questions as they are, or seen through a named corruption at a severity.

The generator of a view comes from seed, fold and the corruption's name alone. Adding a corruption
changes no other, and since all severities share their draws, a higher one contains the lower ones.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
        return f"{self.corruption}@{self.severity:g}" if self.corruption else "clean"


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
    corrupt = corruptions.get(view.corruption)
    rng = np.random.default_rng([seed, fold, zlib.crc32(view.corruption.encode())])
    if len(test.fields) == 1 and len(test.mentions(test.fields[0]).rows) == len(test):
        items = test.frame().reset_index(drop=True)
        truth = None if test.truth is None else pd.Series(test.truth)
        return _of_rows(test, view, *corrupt(items.copy(), truth, view.severity, rng))
    rows = test.mentioned()
    changed, _ = corrupt(test.items.iloc[rows].copy(), None, view.severity, rng)
    if len(changed) != len(rows):
        raise ContractError(f"{view.name} drops items, and {test.name} asks about each by name.")
    items = test.items.copy()
    items.iloc[rows] = changed.to_numpy()
    return dataclasses.replace(test, items=items)


def _of_rows(test: Dataset, view: View, items: pd.DataFrame | pd.Series, truth: object) -> Dataset:
    kept = np.asarray(items.index)
    values = None if test.truth is None else np.asarray(truth)
    if values is not None and len(values) != len(items):
        raise ContractError(
            f"{view.name} returned {len(items)} rows and {len(values)} answers; one each is needed."
        )
    if not len(items):
        raise ContractError(f"{view.name} left no row to test.")
    # rows keep their index, so the groups follow even where a corruption drops or repeats rows
    items = items.reset_index(drop=True)
    return dataclasses.replace(
        test,
        items=items,
        questions=pd.DataFrame({test.fields[0]: items.index}),
        truth=values,
        group=None if test.group is None else test.group[kept],
        part=None,
    )
