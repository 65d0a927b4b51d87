"""Corruptions of test data with a severity: functions ``(X, y, severity, rng)``."""

from karat.core import lazy_names

_MODULES = {
    "cell_noise": "outliers",
    "changed_cells": "changed_share",
    "needs": "check_severity unmet_reason",
}
__getattr__ = lazy_names(__name__, _MODULES)
