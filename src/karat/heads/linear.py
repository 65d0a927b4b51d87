"""Linear heads: logistic regression for classes, least squares and ridge for numbers."""

from __future__ import annotations

from typing import Any

from karat.errors import DefinitionError
from karat.registry import head


@head("logistic")
def logistic(
    C: float = 1.0, max_iter: int = 100, random_state: int | None = None, kind: str = "classes"
) -> Any:
    """Logistic regression with at most ``max_iter`` iterations."""
    if kind != "classes":
        raise DefinitionError(f"head logistic predicts classes, not {kind}; use ridge or linear.")
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=max_iter, random_state=random_state)


@head("linear")
def linear(kind: str = "numbers") -> Any:
    """Ordinary least squares."""
    _need_numbers("linear", kind)
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


@head("ridge")
def ridge(alpha: float = 1.0, kind: str = "numbers") -> Any:
    """Ridge regression."""
    _need_numbers("ridge", kind)
    from sklearn.linear_model import Ridge

    return Ridge(alpha=alpha)


def _need_numbers(head: str, kind: str) -> None:
    if kind != "numbers":
        raise DefinitionError(f"head {head} predicts numbers, not {kind}; use logistic.")
