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

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.files import cell_text
from karat.core.registry import corruptions
from karat.corruptions.applicability import by_row, check_severity, unmet_reason
from karat.errors import ContractError, DefinitionError


def changed_share(before: Any, after: Any) -> float:
    """Return the share of changed cells, or of changed rows if rows were dropped or repeated.

    Both arguments are a table, a series, or a pair ``(X, y)``; ``y`` counts if ``X`` has not
    changed. Missing cells are equal, and so are equal numbers of different types. If the index
    differs, rows count that were dropped, repeated, or differ in any cell.

    >>> before = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> changed_share(before, before.assign(a=[1.0, 3.0]))
    0.25
    >>> changed_share(before, before[1:])
    0.5
    """
    if isinstance(before, tuple):
        items = changed_share(before[0], after[0])
        return items if items or before[1] is None else changed_share(before[1], after[1])
    one, other = pd.DataFrame(before), pd.DataFrame(after)
    if not one.size:
        return 0.0
    if one.index.equals(other.index):
        return float(_differing(one, other).mean())
    return min(1.0, _rows_changed(one, other) / len(one))


def _rows_changed(one: pd.DataFrame, other: pd.DataFrame) -> float:
    labels = one.index.append(other.index)
    numbers = pd.factorize(labels)[0]
    had, has = (
        np.bincount(part, minlength=numbers.max() + 1) for part in np.split(numbers, [len(one)])
    )
    moved = float(np.abs(had - has).sum())
    if not one.index.is_unique:
        return moved
    still = other[~other.index.duplicated()]
    still = still[still.index.isin(one.index)]
    return moved + float(_differing(one.loc[still.index], still).any(axis=1).sum())


def _differing(one: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Return which cells differ; all of a removed column."""
    same_columns = one.columns.equals(other.columns)
    found = np.ones(one.shape, dtype=bool)
    for i, name in enumerate(one.columns):
        if same_columns or name in other.columns:
            column = other.iloc[:, i] if same_columns else other[name]
            found[:, i] = _differing_cells(one.iloc[:, i], column)
    return found


def _differing_cells(one: pd.Series, other: pd.Series) -> np.ndarray:
    missing_before, missing_after = one.isna().to_numpy(), other.isna().to_numpy()
    present = ~(missing_before | missing_after)
    differing = missing_before != missing_after
    if one.dtype == other.dtype == "str":
        # compared without conversion to objects
        return np.asarray(differing | (present & np.asarray(one.array != other.array)))
    before, after = (values[present] for values in _plain(one, other))
    try:
        differing[present] = before != after
    except (TypeError, ValueError):  # arrays in cells, or a date that became a number
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        differing[present] = [cell_text(a) != cell_text(b) for a, b in pairs]
    return differing


def _plain(one: pd.Series, other: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns as numbers, dates or codes if both are; otherwise as objects."""
    both = (one, other)
    if isinstance(one.dtype, pd.CategoricalDtype) and one.dtype == other.dtype:
        other = other.cat.set_categories(one.cat.categories)
        return one.cat.codes.to_numpy(), other.cat.codes.to_numpy()
    if all(isinstance(each.dtype, np.dtype) and each.dtype.kind in "iufbmM" for each in both):
        return one.to_numpy(), other.to_numpy()
    return one.to_numpy(dtype=object), other.to_numpy(dtype=object)


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
        short = f"{self.severity:g}"
        severity = short if float(short) == self.severity else repr(self.severity)
        return f"{self.corruption}@{severity}{draw}"

    def parts(self) -> list[tuple[str, float]]:
        """Return the composed corruptions, each with its severity."""
        return [(name, dose * self.severity) for name, dose in parse_composition(self.corruption)]


CLEAN = View()


def parse_composition(corruption: str) -> list[tuple[str, float]]:
    """Return the corruptions in a name and the dose of each.

    >>> parse_composition("missingness_mcar@0.2+noise_gaussian")
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


def reason_not_applicable(view: View, data: Dataset, role: str) -> str:
    """Return why a view cannot be applied to the data for a model of this role, or ""."""
    for name, _ in view.parts():
        if VECTORS not in getattr(corruptions.get(name), "takes", ()):
            why = unmet_reason(name, data)
        else:
            why = "" if role == "encoder" else f"it changes vectors, but a {role} has none"
        if why:
            return f"{name}: {why}"
    return ""


def changes_items(view: View) -> bool:
    """Return whether a view differs from the clean one in items or targets, not only in vectors."""
    return any(_changes_items(name, severity) for name, severity in view.parts())


def _changes_items(name: str, severity: float) -> bool:
    return bool(severity) and VECTORS not in getattr(corruptions.get(name), "takes", ())


def corrupt(test: Dataset, view: View, seed: int, fold: int) -> Dataset:
    """Return the corrupted test questions; the given dataset does not change."""
    return corrupt_with_share(test, view, seed, fold)[0]


def corrupt_with_share(test: Dataset, view: View, seed: int, fold: int) -> tuple[Dataset, float]:
    """Return the corrupted test questions, and the share of changed cells.

    If a corruption drops or repeats rows, it is the share of rows.
    """
    seen, rows = test, np.arange(len(test))
    for (name, severity), rng in _generators(view, seed, fold):
        if _changes_items(name, severity):
            seen, remaining = _see_one(seen, View(name, severity, view.draw), rng)
            rows = rows[remaining]
    return seen, 0.0 if seen is test else _changed(test, seen, rows)


def _changed(test: Dataset, seen: Dataset, rows: np.ndarray) -> float:
    """Return the share of cells or rows that differ; of targets if no cell differs."""
    if by_row(test):
        pairs = [
            (each.frame().set_axis(places, axis=0), pd.Series(each.target, index=places))
            for each, places in ((test, np.arange(len(test))), (seen, rows))
        ]
        return changed_share(*pairs)
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    ids = test.items.index[asked]
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
    asked = np.unique(np.concatenate([test.mentions(name).rows for name in test.fields]))
    changed = _changed_items(test, view, rng, asked)
    others = np.setdiff1d(np.arange(len(test.items)), asked)
    items = pd.concat([changed, test.items.iloc[others]])
    return dataclasses.replace(test, items=items.iloc[np.argsort(np.concatenate([asked, others]))])


def _changed_items(test: Dataset, view: View, rng: np.random.Generator, rows: np.ndarray) -> Any:
    items = test.items.iloc[rows]
    changed, _ = _corrupted(view, items.copy(), None, rng)
    if not changed.index.equals(items.index):
        raise ContractError(f"{view.name} must not drop items of {test.name}; questions use them.")
    return changed


def _corrupted(view: View, items: Any, target: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    result = corruptions.get(view.corruption)(items, target, view.severity, rng)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], type(items)):
        raise ContractError(
            f"{view.name} must return (X, y), and X must be a {type(items).__name__}."
        )
    return result


def _check_truth(view: View, items: pd.DataFrame | pd.Series, target: Any) -> None:
    targets = 0 if target is None else len(target)
    if targets != len(items):
        raise ContractError(
            f"{view.name} returned X with {len(items)} rows and y with {targets}; they must match."
        )
    if isinstance(target, pd.Series) and not target.index.equals(items.index):
        raise ContractError(f"{view.name} returned X and y with different indexes.")
