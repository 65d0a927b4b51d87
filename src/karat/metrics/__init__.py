"""Metrics: functions from Predictions to one number, each with its name, direction and needs."""

from karat.metrics.metric import Metric, Undefined, get_metric, metric, score

__all__ = ["Metric", "Undefined", "get_metric", "metric", "score"]
