"""Job → Outcome: one model on one fold of one task. ``run`` never raises."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.view import CLEAN, View, see, views
from karat.dataset import Dataset
from karat.errors import Declined, KaratError
from karat.measure import Meter
from karat.metrics.base import score
from karat.models.base import Model
from karat.probes.base import Probe
from karat.registry import build, probes
from karat.shelf import Shelf
from karat.solve import Answers, Direct, Probed
from karat.splits import Fold, split
from karat.task import Task
from karat.vectors import Vectors

#: a message in a table is cut to this length; the whole text stands in the job's log
INFO_LENGTH = 200


@dataclass(frozen=True)
class Job:
    """What to run, in small plain data; models, tasks and data stand on the shelf by key.

    ``spec`` is a hash of all it depends on, so that a finished job can be told from a changed one.
    ``vectors`` is the folder of vectors made beforehand, ``broken`` why they could not be made.
    """

    model: str
    task: str
    dataset: str
    fold: int
    seed: int
    spec: str
    folder: str
    vectors: str | None = None
    vocabulary: str | None = None
    broken: str | None = None

    @property
    def model_seed(self) -> int:
        """The seed the model gets: the run's plus the fold."""
        return self.seed + self.fold


@dataclass(frozen=True)
class Outcome:
    """A job's record, and the texts of its files by their place in the run folder."""

    record: dict[str, Any]
    files: dict[str, str]


def run(job: Job, shelf: Shelf) -> Outcome:
    """Run a job and return its outcome; whatever goes wrong becomes a record with a message."""
    model: Model = shelf.get(job.model)
    task: Task = shelf.get(job.task)
    meter = Meter()
    log = io.StringIO()
    record: dict[str, Any] = {
        "spec": job.spec,
        "model": model.name,
        "task": task.name,
        "kind": task.kind,
        "fold": job.fold,
        "repeat": 0,
        "seed": job.model_seed,
        "metric": task.metrics[0],
        "status": "ok",
        "info": "",
        "views": [],
        "notes": [],
        "history": [],
    }
    files: dict[str, str] = {}
    try:
        with _captured(log):
            _evaluate(job, shelf, meter, record, files)
    except Declined as reason:
        record.update(status="declined", info=_short(str(reason)))
    except (Exception, SystemExit) as error:
        record.update(status="failed", info=describe(error))
        log.write(job.broken or traceback.format_exc())
    record.update(meter.costs(), utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    if log.getvalue():
        files["log.txt"] = log.getvalue()
    return Outcome(record, files)


def describe(error: BaseException) -> str:
    """Return an error as a table shows it: its class and message on one line, cut to length."""
    if isinstance(error, BrokenEmbedding):
        return _short(str(error))
    return _short(f"{type(error).__name__}: {error}")


class BrokenEmbedding(KaratError):
    """The vectors of a model could not be made before the jobs ran."""


def _evaluate(
    job: Job, shelf: Shelf, meter: Meter, record: dict[str, Any], files: dict[str, str]
) -> None:
    model, task = shelf.get(job.model), shelf.get(job.task)
    with meter.phase("load"):
        data: Dataset = shelf.get(job.dataset)
        fold = _folds(job, shelf, task, data)[job.fold]
        train, test = data.take(fold.train), data.take(fold.test)
        if len(np.intersect1d(fold.train, fold.test, assume_unique=True)):
            train = train.blind()
        solver = _solver(job, model, task)
    record.update(repeat=fold.repeat, train_questions=len(train), questions=len(test))
    with meter.phase("fit"):
        solver.fit(train)
    for view in views(task.corruptions):
        record["views"].append(_view(job, task, solver, test, view, meter, files))
    record.update(notes=solver.notes, history=solver.history(), dimensions=solver.dimensions)


def _view(
    job: Job,
    task: Task,
    solver: Direct | Probed,
    test: Dataset,
    view: View,
    meter: Meter,
    files: dict[str, str],
) -> dict[str, Any]:
    seen: dict[str, Any] = {"corruption": view.corruption, "severity": view.severity}
    try:
        with meter.phase("predict"):
            answers = solver.answer(see(test, view, job.seed, job.fold))
    except Exception as error:
        if view == CLEAN:
            raise
        traceback.print_exc()
        return {**seen, "coverage": None, "scores": {}, "reasons": {}, "info": describe(error)}
    with meter.phase("score"):
        graded = {name: score(name, answers.predictions) for name in task.metrics}
    where = "" if view == CLEAN else f"{view.name}/"
    files[f"{where}predictions.csv"] = answers.predictions.to_csv()
    files[f"{where}metadata.json"] = _metadata(job, task, test, answers)
    if answers.missing:
        files[f"{where}missing.txt"] = "\n".join(answers.missing) + "\n"
    return {
        **seen,
        "coverage": answers.coverage,
        "scores": {name: value for name, (value, _) in graded.items()},
        "reasons": {name: reason for name, (_, reason) in graded.items() if reason},
        "info": "",
    }


def _metadata(job: Job, task: Task, test: Dataset, answers: Answers) -> str:
    predictions = answers.predictions
    kinds = {1: "", 2: "binary"}.get(len(test.classes), "multiclass")
    return json.dumps(
        {
            "task": task.name,
            "dataset": test.name,
            "type": "classification" if test.kind == "classes" else "regression",
            "type_": kinds if test.kind == "classes" else "regression",
            "fold": job.fold,
            "seed": job.model_seed,
            "metric": task.metrics[0],
            "metrics": list(task.metrics),
            "answers": predictions.answers,
            "truths": predictions.truths,
            "classes": list(predictions.classes),
            "coverage": answers.coverage,
        },
        indent=1,
        ensure_ascii=False,
    )


def _folds(job: Job, shelf: Shelf, task: Task, data: Dataset) -> list[Fold]:
    # all folds of a task come from one call; the shelf keeps them for the process's other jobs
    how: Any = task.split
    return shelf.remember(f"folds-{job.task}-{job.seed}", lambda: split(data, how, job.seed))


def _solver(job: Job, model: Model, task: Task) -> Direct | Probed:
    if model.role == "predictor":
        return Direct(model, job.model_seed)
    if job.broken is not None:
        raise BrokenEmbedding(job.broken.strip().splitlines()[-1])
    used = dict(task.probe)  # type: ignore[arg-type]
    name = used.pop("use")
    offers = {"random_state": job.model_seed % (2**31 - 1)}
    probe: Probe = build(f'probe "{name}"', probes.get(name), used, offers)
    if job.vectors is None:
        return Probed(model, probe, task.missing, job.model_seed)
    # an encoder that learns nothing has one seed for all folds: its vectors are made once
    return Probed(model, probe, task.missing, job.seed, _ready(job))


def _ready(job: Job) -> Vectors:
    matrix = np.load(Path(str(job.vectors)) / "vectors.npy", mmap_mode="r", allow_pickle=False)
    vocabulary = None
    if job.vocabulary is not None:
        folder = Path(job.vocabulary)
        ids = pd.Index(json.loads((folder / "about.json").read_text())["ids"])
        stock = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        vocabulary = (ids, stock)
    return Vectors(matrix, np.arange(len(matrix)), vocabulary)


@contextlib.contextmanager
def _captured(log: io.StringIO) -> Iterator[None]:
    with (
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, category, *_, **__: log.write(  # type: ignore[assignment]
            f"{category.__name__}: {message}\n"
        )
        yield


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= INFO_LENGTH else line[: INFO_LENGTH - 1] + "…"
