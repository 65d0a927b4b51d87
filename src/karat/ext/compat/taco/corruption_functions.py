"""TACO's corruption functions, with the arguments of its current code.

``inplace`` changes the cells of the table that is passed (rows are dropped in a new one),
``col_idx`` names the columns to corrupt by their positions, and ``precomputed_stds`` are the
standard deviations of the columns of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.core.registry import corruptions
from karat.errors import DataError, DefinitionError

Rng: TypeAlias = np.random.Generator | int | None
#: positions of columns of numbers ("num") and of categories ("cat")
Columns: TypeAlias = Mapping[str, Sequence[int]] | None
#: the true classes or values of the rows
Target: TypeAlias = pd.Series | np.ndarray | Sequence[Any] | None
Stds: TypeAlias = pd.Series | np.ndarray | Sequence[float] | None
Corrupted: TypeAlias = tuple[pd.DataFrame, pd.Series]
Corruption: TypeAlias = Callable[..., Corrupted]

#: in the order of TACO's table; the kinds of columns that each one changes
KINDS = {
    "missingness_mcar": ("num", "cat"),
    "missingness_mnar": ("num", "cat"),
    "scaling_error": ("num",),
    "categorical_remap": ("cat",),
    "noise_gaussian": ("num",),
    "noise_uniform": ("num",),
    "rare_class_dilution": (),
}
NAMES = tuple(KINDS)
NOISE = ("noise_gaussian", "noise_uniform")
DILUTION = "rare_class_dilution"


def _function(name: str) -> Corruption:
    def corrupt(
        X: pd.DataFrame | np.ndarray,
        y: Target,
        severity: float,
        rng: Rng = None,
        inplace: bool = False,
        col_idx: Columns = None,
        precomputed_stds: Stds = None,
    ) -> Corrupted:
        options: dict[str, Any] = {}
        if precomputed_stds is not None and name in NOISE:
            options["spreads"] = _spreads(X, col_idx, precomputed_stds)
        positions = _positions(name, col_idx, np.shape(X)[1])
        return _apply(
            name,
            arguments=(X, y, severity, rng),
            positions=positions,
            inplace=inplace,
            options=options,
        )

    corrupt.__name__ = corrupt.__qualname__ = name
    corrupt.__doc__ = corruptions.get(name).__doc__
    return corrupt


def _positions(name: str, col_idx: Columns, width: int) -> list[int] | None:
    """Return the positions of the columns to change; None: all of them."""
    if col_idx is None or not KINDS[name]:
        return None
    positions = sorted({int(i) for kind in KINDS[name] for i in col_idx.get(kind, ())})
    if wrong := [i for i in positions if not 0 <= i < width]:
        raise DefinitionError(f"col_idx: no column {wrong[0]}, X has {width} columns (0 is first).")
    return positions


def _spreads(X: pd.DataFrame | np.ndarray, col_idx: Columns, stds: Stds) -> dict[Any, float]:
    """Return standard deviations by column: by its name, or in the order of the numbers."""
    columns = list(X.columns) if isinstance(X, pd.DataFrame) else list(range(np.shape(X)[1]))
    if isinstance(stds, pd.Series) and set(stds.index) <= set(columns):
        return {column: float(value) for column, value in stds.items()}
    if col_idx is not None:
        columns = [columns[i] for i in col_idx.get("num", ())]
    elif isinstance(X, pd.DataFrame):
        columns = list(X.select_dtypes("number"))
    values = np.asarray(stds, dtype=float)
    if len(values) != len(columns):
        raise DefinitionError(
            f"precomputed_stds has {len(values)} values for {len(columns)} columns of numbers."
        )
    return dict(zip(columns, values.tolist(), strict=True))


def _apply(
    name: str,
    arguments: tuple[Any, Any, float, Rng],
    positions: list[int] | None,
    inplace: bool,
    options: Mapping[str, Any],
) -> Corrupted:
    X, y, severity, rng = arguments
    if inplace and not isinstance(X, pd.DataFrame):
        raise DataError(f"corruption {name}: inplace needs a table, got {type(X).__name__}.")
    change = corruptions.get(name)
    if positions is None:
        changed, labels = change(X, y, severity, rng, **options)
    else:
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
        part, labels = table.iloc[:, positions], y
        if positions:
            part, labels = change(part, y, severity, rng, **options)
        changed = table.copy()
        for at, position in enumerate(positions):
            changed.isetitem(position, part.iloc[:, at])
    if inplace and len(changed) == len(X):
        for position in range(X.shape[1]):
            X.isetitem(position, changed.iloc[:, position])
        return X, labels
    return changed, labels


#: the input is not modified unless ``inplace``; the default seed is 42
CORRUPTION_FUNCS: dict[str, Corruption] = {name: _function(name) for name in NAMES}


def apply_missingness(
    df: pd.DataFrame,
    y: Target,
    severity: float = 0.1,
    mnar: bool = False,
    rng: Rng = None,
    inplace: bool = False,
    col_idx: Columns = None,
) -> Corrupted:
    """Remove a share of all cells, or with ``mnar`` of those of the rarest class."""
    corrupt = CORRUPTION_FUNCS["missingness_mnar" if mnar else "missingness_mcar"]
    return corrupt(df, y, severity, rng, inplace=inplace, col_idx=col_idx)


def apply_scaling_errors(
    df: pd.DataFrame,
    y: Target,
    severity: float = 0.1,
    rng: Rng = None,
    inplace: bool = False,
    col_idx: Columns = None,
) -> Corrupted:
    """Multiply a share of the columns of numbers by a wrong unit."""
    return CORRUPTION_FUNCS["scaling_error"](df, y, severity, rng, inplace=inplace, col_idx=col_idx)


def apply_categorical_remap(
    df: pd.DataFrame,
    y: Target,
    severity: float = 0.1,
    rng: Rng = None,
    inplace: bool = False,
    col_idx: Columns = None,
) -> Corrupted:
    """Exchange the levels of a share of the columns of categories."""
    return CORRUPTION_FUNCS["categorical_remap"](
        df, y, severity, rng, inplace=inplace, col_idx=col_idx
    )


def apply_noise_injection(
    df: pd.DataFrame,
    y: Target,
    severity: float = 0.1,
    gaussian: bool = True,
    rng: Rng = None,
    inplace: bool = False,
    precomputed_stds: Stds = None,
    col_idx: Columns = None,
) -> Corrupted:
    """Add normal or uniform noise, in standard deviations of each column of numbers."""
    corrupt = CORRUPTION_FUNCS["noise_gaussian" if gaussian else "noise_uniform"]
    options = {"col_idx": col_idx, "precomputed_stds": precomputed_stds}
    return corrupt(df, y, severity, rng, inplace=inplace, **options)


def apply_rare_class_dilution(
    X_test: pd.DataFrame,
    y_test: Target,
    severity: float = 0.1,
    minority_label: object = None,
    rng: Rng = None,
    inplace: bool = False,
) -> Corrupted:
    """Drop a share of the rows of one class: ``minority_label``, or by default the rarest one."""
    options = {} if minority_label is None else {"label": minority_label}
    return _apply(
        DILUTION,
        arguments=(X_test, y_test, severity, rng),
        positions=None,
        inplace=inplace,
        options=options,
    )
