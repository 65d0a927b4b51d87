"""Declines: why a model does not take a task, found out before anything runs."""

from __future__ import annotations

from typing import Any

from karat.dataset import Dataset
from karat.models.base import Model
from karat.task import Task

_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}


def declines(model: Model, task: Task, data: Dataset, blind: bool) -> str:
    """Return why a model does not take a task on this data; nothing where it does.

    ``blind`` says that the train side does not see the truth.
    """
    if model.unavailable:
        return model.unavailable
    if model.takes is not None and data.modality not in model.takes:
        takes = " and ".join(_PLURAL.get(m, m) for m in model.takes)
        return f"it takes {takes}, not {_PLURAL[data.modality]}"
    if model.role == "predictor":
        return _predictor_declines(model, task, data, blind)
    return ""


def _predictor_declines(model: Model, task: Task, data: Dataset, blind: bool) -> str:
    probe: Any = task.probe
    if probe["use"] != "trained" or data.kind == "items":
        return f"a predictor has no vectors for the {probe['use']} probe"
    if blind:
        return "a predictor cannot learn where the truth is hidden"
    if len(data.fields) != 1 or len(data.mentions(data.fields[0]).rows) != len(data):
        return "a predictor takes questions about one item each"
    if hasattr(model.prototype, "declines"):
        return str(model.prototype.declines(data.kind))
    return _estimator_declines(model.prototype, data.kind)


def _estimator_declines(prototype: Any, kind: str) -> str:
    from sklearn.base import is_classifier, is_regressor

    if not hasattr(prototype, "__sklearn_tags__"):
        return ""
    if kind == "classes" and is_regressor(prototype):
        return "it predicts numbers, not classes"
    if kind == "numbers" and is_classifier(prototype):
        return "it predicts classes, not numbers"
    return ""
