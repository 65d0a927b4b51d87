"""Linear heads: logistic regression for classes, least squares and ridge for numbers."""

from __future__ import annotations

from typing import Any

from karat.registry import head


@head("logistic")
def logistic(C: float = 1.0, max_iter: int = 100, random_state: int | None = None) -> Any:
    """Logistic regression; at most 100 iterations unless told otherwise."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=max_iter, random_state=random_state)


@head("linear")
def linear() -> Any:
    """Ordinary least squares."""
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


@head("ridge")
def ridge(alpha: float = 1.0) -> Any:
    """Ridge regression."""
    from sklearn.linear_model import Ridge

    return Ridge(alpha=alpha)
