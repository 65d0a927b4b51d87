"""Metrics of regression."""

from __future__ import annotations

import numpy as np

from karat.metrics.base import Undefined, metric
from karat.predictions import Predictions

_UNBOUNDED = (0.0, np.inf)


@metric("mse", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",))
def mse(predictions: Predictions) -> float:
    """Mean squared error."""
    return float(np.mean((predictions.predictions - predictions.truth) ** 2))


@metric("rmse", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",))
def rmse(predictions: Predictions) -> float:
    """Root of the mean squared error, in the unit of the target."""
    return float(np.sqrt(mse(predictions)))


@metric("mae", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",))
def mae(predictions: Predictions) -> float:
    """Mean absolute error, in the unit of the target."""
    return float(np.mean(np.abs(predictions.predictions - predictions.truth)))


@metric("msle", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",))
def msle(predictions: Predictions) -> float:
    """Mean squared difference of log(1 + value); undefined for negative values."""
    for what, values in (("predictions", predictions.predictions), ("targets", predictions.truth)):
        if negative := int((values < 0).sum()):
            raise Undefined(f"{negative} of {len(values)} {what} are negative.")
    return float(np.mean((np.log1p(predictions.predictions) - np.log1p(predictions.truth)) ** 2))


@metric("rmsle", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",))
def rmsle(predictions: Predictions) -> float:
    """Root of the mean squared difference of log(1 + value); undefined for negative values."""
    return float(np.sqrt(msle(predictions)))


@metric("r2", range=(-np.inf, 1.0), needs=("numbers",))
def r2(predictions: Predictions) -> float:
    """Share of the variance of the target explained; undefined for a constant target."""
    truth = predictions.truth
    if truth.min() == truth.max():
        raise Undefined("the target is constant.")
    spread = np.sum((truth - truth.mean()) ** 2)
    return float(1.0 - np.sum((predictions.predictions - truth) ** 2) / spread)
