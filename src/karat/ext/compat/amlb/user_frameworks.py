"""Run a user's framework of the AutoML Benchmark: a module with ``run(dataset, config)``.

Such a framework trains and predicts in one call. It runs in a process of its own, in which the
modules ``amlb`` and ``frameworks.shared`` are those of the folder ``guest``. It is given the train
rows, and the test rows with a placeholder as their target, so that it cannot learn from it.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import ContractError, DataError, KaratError
from karat.execution.resources import Limits
from karat.models.model import Parameterized
from karat.models.table_predictor import table_for_automl

#: the folder with the modules that a framework imports
GUEST = Path(__file__).parent / "guest"
#: the name of the environment variable that the process reads its configuration from
CONFIG_VARIABLE = "KARAT_AMLB_CONFIG"
#: their default limits: seconds, cores and megabytes; 0 or less means all
DEFAULT_SECONDS = 3600
#: the target's column, if no column of the table has this name
TARGET = "target"
#: what a framework returns besides its own facts
FACTS = ("models_count", "training_duration", "predict_duration")
#: lines at the end of its output that are part of an error
LINES = 3
#: seconds that its processes have to end
PATIENCE = 10


class FrameworkError(KaratError):
    """A framework ended with an error that Python does not know."""


@dataclass(frozen=True)
class Made:
    """What a framework has made of the test rows, and facts about it."""

    predictions: np.ndarray
    probabilities: np.ndarray | None
    facts: dict[str, Any]


@dataclass(eq=False, repr=False)
class UserFramework(Parameterized):
    """A module of a user's folder, such as ``extensions.Mine``, with ``run(dataset, config)``.

    ``framework_params`` are passed on as ``config.framework_params``.
    """

    module: str = ""
    folder: str = ""
    framework_params: dict[str, Any] | None = None
    framework: str = ""
    framework_version: str = "stable"
    kind: str | None = None
    random_state: int | None = None
    optimize: str | None = None
    max_runtime_seconds: float | None = None
    max_mem_size_mb: float | None = None
    cores: int | None = None
    job_task: str | None = None
    job_fold: int | None = None
    job_metrics: list[str] | None = None

    takes = ("table",)
    #: predicting again would train again
    trains_to_predict = True

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> UserFramework:
        """Keep the rows: the framework trains when it knows the rows to predict."""
        self.train_, self.y_ = table_for_automl(X), np.asarray(y)
        if self.kind != "regression":
            self.classes_ = np.unique(self.y_)
        self.scratch_ = tempfile.TemporaryDirectory(prefix="karat-amlb-")
        self.calls_ = 0
        self.durations_: dict[str, float] = {}
        self.notes_: list[str] = []
        return self

    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
        """Return labels or numbers, and the probabilities if the framework has written some."""
        folder = Path(self.scratch_.name) / str(self.calls_)
        folder.mkdir()
        self.calls_ += 1
        outcome = self._run(table_for_automl(X), folder)
        if self.calls_ == 1:  # later calls are for corrupted rows
            self._remember(outcome.facts)
            self.output_ = folder / "output"
        return outcome.predictions, outcome.probabilities

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        return self.predict_both(X)[0]

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the files that the framework has written below its output folder."""
        return {f"{kind}/{name}": path for kind, name, path in self._written()}

    @property
    def artifacts_made_(self) -> tuple[str, ...]:
        """The kinds of artifacts that the framework has written."""
        return tuple(dict.fromkeys(kind for kind, _, _ in self._written()))

    def _written(self) -> Iterator[tuple[str, str, Path]]:
        """Yield kind, name and path of each artifact."""
        for path in sorted(self.output_.rglob("*")):
            kind, *inside = path.relative_to(self.output_).parts
            if path.is_file() and inside and kind != "predictions":
                job = (str(self.job_task), str(self.job_fold))
                below = inside[2:] if tuple(inside[:2]) == job and len(inside) > 2 else inside
                yield kind, "/".join(below), path

    def _remember(self, facts: dict[str, Any]) -> None:
        """Keep the facts of the framework: number of models, seconds, and others as notes."""
        count = facts.get("models_count")
        self.models_count_ = 1 if count is None else int(count)
        for theirs, ours in (("training", "fit"), ("predict", "predict")):
            seconds = facts.get(f"{theirs}_duration")
            if seconds is not None:
                self.durations_[f"{ours}_seconds"] = float(seconds)
        others = {key: value for key, value in facts.items() if key not in FACTS and value}
        self.notes_ = [f"{key}: {json.dumps(value)}" for key, value in others.items()]

    def _run(self, test: pd.DataFrame, folder: Path) -> Made:
        """Run the framework on the kept rows and these, in a process of its own."""
        target = TARGET
        while target in self.train_.columns:
            target += "_"
        numbers = self.kind == "regression"
        y = self.y_ if numbers else self.y_.astype(str)
        rows = {"train": self.train_.assign(**{target: y}), "test": test.assign(**{target: y[0]})}
        for part, table in rows.items():
            table.to_pickle(folder / f"{part}.pickle")
        config = self._config(folder)
        job = {"module": self.module, "target": target, "config": config}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        Path(config["output_predictions_file"]).parent.mkdir(parents=True)
        Path(config["output_metadata_file"]).write_text(json.dumps(config, indent=4))
        facts = self._call(folder, config)
        return self._read(Path(config["output_predictions_file"]), len(test), facts)

    def _config(self, folder: Path) -> dict[str, Any]:
        """Return the settings of the job, by the names that frameworks read."""
        task, fold = self.job_task or "task", self.job_fold or 0
        seconds = DEFAULT_SECONDS if self.max_runtime_seconds is None else self.max_runtime_seconds
        classes = 0 if self.kind == "regression" else len(self.classes_)
        output = folder / "output"
        predictions = output / "predictions" / task / str(fold)
        metrics = self.job_metrics or [self.optimize or "rmse"]
        return {
            "framework": self.framework or self.module.rpartition(".")[2],
            "framework_params": dict(self.framework_params or {}),
            "framework_version": self.framework_version,
            "type": "classification" if classes else "regression",
            "type_": {0: "regression", 2: "binary"}.get(classes, "multiclass"),
            "name": task,
            "openml_task_id": None,
            "fold": fold,
            "metric": metrics[0],
            "metrics": metrics,
            "seed": self.random_state,
            "job_timeout_seconds": Limits(seconds=seconds).deadline,
            "max_runtime_seconds": seconds,
            "cores": self.cores or os.cpu_count() or 1,
            "max_mem_size_mb": self.max_mem_size_mb or _free_megabytes(),
            "min_vol_size_mb": -1,
            "input_dir": self.folder,
            "output_dir": str(output),
            "output_predictions_file": str(predictions / "predictions.csv"),
            "output_metadata_file": str(predictions / "metadata.json"),
            "measure_inference_time": False,
            "ext": {},
        }

    def _variables(self, output: str) -> dict[str, str]:
        """Return the environment variables of the process."""
        import_folders = [GUEST, self.folder, os.environ.get("PYTHONPATH", "")]
        places = {"root_dir": str(GUEST), "user_dir": self.folder, "output_dir": output}
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(folder) for folder in import_folders if folder),
            CONFIG_VARIABLE: json.dumps(places),
        }

    def _call(self, folder: Path, config: dict[str, Any]) -> dict[str, Any]:
        """Run the process and return the framework's facts; its error is raised here."""
        program = [sys.executable, str(GUEST / "run_framework.py"), str(folder / "job.json")]
        log = folder / "log.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                program,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._variables(config["output_dir"]),
                cwd=self.folder or None,
                start_new_session=True,
            )
            try:
                # the process interrupts itself at its deadline; this is for one that cannot
                process.wait(config["job_timeout_seconds"] + 2 * PATIENCE)
            except subprocess.TimeoutExpired:
                raise TimeoutError("the framework did not end within its time") from None
            finally:
                _end_group(process)
                sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
        return _outcome(folder / "outcome.json", log)

    def _read(self, file: Path, rows: int, facts: dict[str, Any]) -> Made:
        """Return the predictions of a file that the framework has written."""
        if not file.is_file():
            raise DataError("Missing predictions.")
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        if "predictions" not in table or len(table) != rows:
            raise ContractError(
                f"{self.module} wrote {len(table)} rows with the columns "
                f"{', '.join(map(str, table.columns))} for {rows} test rows."
            )
        if self.kind == "regression":
            return Made(table["predictions"].astype(float).to_numpy(), None, facts)
        labels = {str(label): label for label in self.classes_}
        wrong = set(table["predictions"]) - set(labels)
        if wrong:
            raise ContractError(f'{self.module} predicted the unknown class "{min(wrong)}".')
        predictions = np.array([labels[text] for text in table["predictions"]], dtype=object)
        predictions = predictions.astype(self.classes_.dtype)
        shares = table.reindex(columns=list(labels), fill_value="0")
        written_classes = [name for name in labels if name in table]
        return Made(
            predictions, shares.astype(float).to_numpy() if written_classes else None, facts
        )


def _free_megabytes() -> int:
    import psutil

    return int(psutil.virtual_memory().available / 2**20)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process with all processes that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _outcome(file: Path, log: Path) -> dict[str, Any]:
    """Return the facts in a file, or raise the error in it."""
    if not file.is_file():
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
        raise FrameworkError(f"the framework's process crashed: {' '.join(last)}")
    outcome = json.loads(file.read_text(encoding="utf-8"))
    if "error" not in outcome:
        facts: dict[str, Any] = outcome["facts"]
        return facts
    error_class = getattr(builtins, outcome["error"], None)
    if isinstance(error_class, type) and issubclass(error_class, Exception):
        raise _made(error_class, outcome["message"])
    raise FrameworkError(f"{outcome['error']}: {outcome['message']}")


def _made(kind: type[Exception], message: str) -> Exception:
    try:
        return kind(message)
    except TypeError:  # some need more than a message
        return FrameworkError(f"{kind.__name__}: {message}")
