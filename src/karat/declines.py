"""Why a model cannot run a task, found before anything runs."""

from __future__ import annotations

from typing import Any

from karat.dataset import Dataset
from karat.models.base import Model
from karat.task import Task

_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}


def declines(model: Model, task: Task, data: Dataset, blind: bool) -> str:
    """Return why a model cannot run a task on this data, or an empty string if it can.

    ``blind``: the targets are hidden from the train rows.
    """
    if model.unavailable:
        return model.unavailable
    if model.takes is not None and data.modality not in model.takes:
        takes = " and ".join(_PLURAL.get(m, m) for m in model.takes)
        return f"the model takes {takes}, not {_PLURAL[data.modality]}"
    if model.role == "predictor":
        return _predictor_declines(model, task, data, blind)
    return ""


def _predictor_declines(model: Model, task: Task, data: Dataset, blind: bool) -> str:
    probe: Any = task.probe
    if probe["use"] != "trained" or data.kind == "items":
        return f"a predictor has no vectors for the {probe['use']} probe"
    if blind:
        return "a predictor needs targets to train on, and this task hides them"
    if len(data.fields) != 1 or len(data.mentions(data.fields[0]).rows) != len(data):
        return "a predictor needs questions about one item each"
    if hasattr(model.prototype, "declines"):
        return str(model.prototype.declines(data.kind))
    if hasattr(model.prototype, "__sklearn_tags__"):
        from sklearn.base import is_classifier, is_regressor

        if data.kind == "classes" and is_regressor(model.prototype):
            return "the model is a regressor and the task is a classification"
        if data.kind == "numbers" and is_classifier(model.prototype):
            return "the model is a classifier and the task is a regression"
    return ""
