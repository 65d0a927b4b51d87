"""The side of the benchmark: run a framework's script in the framework's own environment."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amlb.resources import config as read_config
from amlb.results import NoResultError, save_predictions
from amlb.utils import (
    Namespace,
    Timer,
    deserialize_data,
    dir_of,
    is_serializable_data,
    json_dumps,
    json_load,
    run_cmd,
    serialize_data,
)

from frameworks.shared.callee import ARRAYS

#: keys of targets, which are passed as columns
TARGET_KEYS = re.compile("^y(_.+)?$")


def as_vec(data: Any) -> Any:
    """Return an array as a vector."""
    return data.reshape(-1) if hasattr(data, "reshape") else data


def as_col(data: Any) -> Any:
    """Return an array as a column."""
    return data.reshape(-1, 1) if hasattr(data, "reshape") else data


def venv_bin(framework_dir: str) -> str:
    """Return the folder of programs of a framework's environment, or of this one."""
    folder = os.path.join(framework_dir, "venv", "bin")
    return folder if os.path.isdir(folder) else os.path.dirname(sys.executable)


def venv_python_exec(framework_dir: str) -> str:
    """Return the Python of a framework's environment, or this one if it has none."""
    python = os.path.join(framework_dir, "venv", "bin", "python")
    return f"{python if os.path.exists(python) else sys.executable} -W ignore"


def run_cmd_in_venv(caller_file: str, cmd: str, *args: Any, **options: Any) -> tuple[str, str]:
    """Run a command in which ``{py}`` and ``{pip}`` are those of the framework's environment."""
    python = venv_python_exec(dir_of(caller_file))
    options.pop("_python_exec_", None)
    return run_cmd(cmd.format(py=python, pip=f"{python} -m pip"), *args, **options)


def run_in_venv(
    caller_file: str,
    script_file: str,
    *args: Any,
    input_data: Any,
    dataset: Any,
    config: Any,
    options: Any = None,
    process_results: Callable[[Any], Any] | None = None,
    python_exec: str | None = None,
    retained_env_vars: list[str] | None = None,
) -> dict[str, Any]:
    """Run a script of the caller's folder on data, save its predictions, and return its facts."""
    here = dir_of(caller_file)
    settings = Namespace.from_dict(options) if options else Namespace()
    with tempfile.TemporaryDirectory(prefix="amlb_") as folder:
        config.result_dir = folder
        config.result_file = os.path.join(folder, "result.json")
        inputs = _as_files(input_data, folder)
        dataset.release()
        text = json_dumps({"dataset": inputs, "config": config, "options": settings}, "compact")
        command = f"{python_exec or venv_python_exec(here)} {os.path.join(here, script_file)}"
        environment = {
            "PATH": os.pathsep.join([venv_bin(here), os.environ.get("PATH", "")]),
            "PYTHONPATH": str(read_config().root_dir),
            **Namespace.dict(settings["env"] or Namespace()),
        }
        with Timer() as whole:
            _, errors = run_cmd(command, *args, _input_str_=text, _env_=environment)
        if not Path(config.result_file).is_file():
            raise NoResultError(f"Process crashed:\n{errors}")
        outcome = _loaded(json_load(config.result_file, as_namespace=True))
        if callable(process_results):
            outcome = process_results(outcome)
        _save(outcome, dataset)
    return {
        "models_count": 1 if outcome.models_count is None else outcome.models_count,
        "training_duration": outcome.training_duration or whole.duration,
        "predict_duration": outcome.predict_duration,
        **Namespace.dict(outcome["others"] or Namespace()),
    }


def _as_files(input_data: Any, folder: str) -> Any:
    """Return the input with arrays and tables written to files."""

    def written(key: str, value: Any, parents: list[str]) -> tuple[str, Any]:
        if not is_serializable_data(value):
            return key, value
        shaped = as_col(value) if TARGET_KEYS.match(key) else value
        return key, serialize_data(shaped, os.path.join(folder, ".".join([*parents, key])))

    return Namespace.walk(Namespace.from_dict(input_data), written)


def _loaded(outcome: Any) -> Any:
    """Return a result with the arrays of its files."""
    if outcome.error_message is not None:
        raise NoResultError(outcome.error_message)
    for name in ARRAYS:
        if outcome[name] is not None:
            outcome[name] = deserialize_data(outcome[name])
    return outcome


def _save(outcome: Any, dataset: Any) -> None:
    """Write the predictions of a result, unless the script has written them."""
    if not outcome.output_file:
        return
    truth = outcome.truth
    if truth is None:
        truth = dataset.test.y_enc if outcome.target_is_encoded else dataset.test.y
    save_predictions(
        dataset=dataset,
        output_file=outcome.output_file,
        predictions=as_vec(outcome.predictions),
        truth=as_vec(truth),
        probabilities=outcome.probabilities,
        probabilities_labels=outcome.probabilities_labels,
        optional_columns=outcome.optional_columns,
        target_is_encoded=outcome.target_is_encoded,
    )
