"""The side of a framework's environment: read the data, run the framework, write its result."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from amlb.utils import (
    InterruptTimeout,
    Namespace,
    Timer,
    deserialize_data,
    json_dump,
    json_loads,
    kill_proc_tree,
    serialize_data,
    touch,
)

log = logging.getLogger(__name__)

#: keys of the input whose values are files of data
DATA_KEYS = re.compile("^(X|y|data)(_.+)?$")
#: parts of a result that are passed as files
ARRAYS = ("predictions", "truth", "probabilities", "optional_columns")


class FrameworkError(Exception):
    """An error of a framework."""


def result(
    output_file: str | None = None,
    predictions: Any = None,
    truth: Any = None,
    probabilities: Any = None,
    probabilities_labels: Any = None,
    optional_columns: Any = None,
    target_is_encoded: bool = False,
    error_message: str | None = None,
    models_count: int | None = None,
    training_duration: float | None = None,
    predict_duration: float | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return what a framework has computed; ``others`` are facts of its own."""
    return {
        "output_file": output_file,
        "predictions": predictions,
        "truth": truth,
        "probabilities": probabilities,
        "probabilities_labels": probabilities_labels,
        "optional_columns": optional_columns,
        "target_is_encoded": target_is_encoded,
        "error_message": error_message,
        "models_count": models_count,
        "training_duration": training_duration,
        "predict_duration": predict_duration,
        "others": others,
    }


def output_subdir(name: str, config: Any) -> str:
    """Return the folder of a kind of artifacts of this job, created if necessary."""
    folder = os.path.join(config.output_dir, name, config.name, str(config.fold))
    return touch(folder, as_dir=True)


def save_metadata(config: Any, **facts: Any) -> None:
    """Write the settings of the job, with further facts, as JSON."""
    json_dump({**vars(config), **facts}, config.output_metadata_file, style="pretty")


def measure_inference_times(
    predict_fn: Callable[[Any], Any], files: Iterable[tuple[int, Any]]
) -> dict[int, list[float]]:
    """Return the seconds of predicting each file, by number of rows."""
    times: dict[int, list[float]] = {}
    for size, file in files:
        with Timer() as predict:
            predict_fn(file)
        times.setdefault(size, []).append(predict.duration)
    return times


def call_run(run_fn: Callable[[Any, Any], dict[str, Any]]) -> None:
    """Run a framework on the job that standard input describes; errors are part of the result."""
    params = Namespace.from_dict(json_loads(sys.stdin.read()))
    options = params["options"] or Namespace()

    def loaded(name: str, value: Any, **_: Any) -> tuple[str, Any]:
        is_file = isinstance(value, str) and DATA_KEYS.match(name)
        return name, deserialize_data(value, options["serialization"]) if is_file else value

    config = params.config
    config.framework_params = Namespace.dict(config.framework_params)
    try:
        with InterruptTimeout(config.job_timeout_seconds):
            outcome = dict(run_fn(Namespace.walk(params.dataset, loaded), config))
            for name in ARRAYS:
                if outcome.get(name) is not None:
                    path = os.path.join(config.result_dir, name)
                    outcome[name] = serialize_data(outcome[name], path)
    except BaseException as error:
        log.exception("the framework failed")
        outcome = result(error_message=f"{type(error).__name__}: {error}", models_count=0)
    finally:
        kill_proc_tree(include_parent=False, timeout=5)
    json_dump(outcome, config.result_file, style="compact")
