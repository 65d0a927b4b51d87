"""How loops of heads are compiled (``pip install "karat[fast]"``)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(
    function: Any, fast: Any = frozenset({"reassoc", "contract", "arcp"}), inline: str = "never"
) -> Any:
    """Compile a function, with sums in any order unless ``fast`` says otherwise."""
    options: dict[str, Any] = {"fastmath": set(fast), "error_model": "numpy", "inline": inline}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return njit(**options)(function)


def as_numpy(function: Callable[..., object]) -> Any:
    """Compile a function so that it rounds as NumPy does."""
    return compiled(function, ())


def inlined(function: Callable[..., object]) -> Any:
    """Compile a function as a part of those that call it: passing arrays takes longer."""
    return compiled(function, (), "always")
