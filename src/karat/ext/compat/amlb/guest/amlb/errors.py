"""Errors that frameworks of the AutoML Benchmark raise."""


class AutoMLError(Exception):
    """An error of a framework."""


class NoResultError(AutoMLError):
    """A framework ended without predictions."""
