"""Corruptions of test data with a severity: functions ``(X, y, severity, rng)``."""
