"""The settings of a job that a framework of the AutoML Benchmark is given."""

from __future__ import annotations

from typing import Any

from amlb.utils import Namespace


class TaskConfig(Namespace):
    """Settings of a job: task, fold, type, metrics, seed, limits, parameters and output files."""

    def __json__(self) -> dict[str, Any]:
        return Namespace.dict(self)
