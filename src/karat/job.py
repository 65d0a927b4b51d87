"""Job → Outcome: one model on one fold of one task. ``run`` never raises."""

from __future__ import annotations

import dataclasses
import json
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.artifacts import collect
from karat.capture import Log, captured
from karat.corruptions.view import CLEAN, View, blur, look, views, why_not
from karat.dataset import Dataset
from karat.errors import FAILURES, Declined, KaratError, KnowsNothing, MissingExtra
from karat.limits import Limits, TimedOut
from karat.measure import Meter
from karat.metrics.base import score
from karat.models.base import Model
from karat.observe.vectors import observe, sample_csv, unconverged
from karat.probes.base import Probe
from karat.registry import build, probes
from karat.shelf import Shelf
from karat.solve import Answers, Direct, Keep, Probed
from karat.splits import Fold, split
from karat.task import Task
from karat.timing import inference
from karat.vectors import Vectors

#: a message in a table is cut to this length; the whole text stands in the job's log
INFO_LENGTH = 200


@dataclass(frozen=True)
class Broken:
    """What an error makes of a job: its status, the line tables show, and the whole log."""

    status: str
    info: str
    log: str

    @classmethod
    def by(cls, error: BaseException) -> Broken:
        """Return what this error means: a decline has a reason, everything else is a failure."""
        if isinstance(error, Declined | MissingExtra):
            return cls("declined", _short(str(error)), "")
        if isinstance(error, BrokenEmbedding):
            return error.broken
        log = "".join(traceback.format_exception(error))
        if isinstance(error, TimedOut):
            return cls("timeout", "over the time limit", log)
        status = "memory" if _is_memory(error) else "failed"
        return cls(status, _short(f"{type(error).__name__}: {error}"), log)


def _is_memory(error: BaseException) -> bool:
    # PyTorch says so in words
    words = ("can't allocate memory", "out of memory", "cannot allocate memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


class BrokenEmbedding(KaratError):
    """The vectors of a model could not be made before the jobs ran."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        super().__init__(broken.info)


@dataclass(frozen=True)
class Job:
    """What to run, in small plain data; models, tasks and data stand on the shelf by key.

    ``spec`` is a hash of all it depends on, so that a finished job can be told from a changed one.
    ``vectors`` is the folder of vectors made beforehand, ``embed_seconds`` how long that took when
    they were made, ``broken`` why they could not be. ``stage`` says where vectors are made by the
    job itself, so that its ``limits`` hold for them too, and whether they are kept between runs.
    ``batches`` are the sizes for which inference is timed.
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
    embed_seconds: float | None = None
    broken: Broken | None = None
    limits: Limits | None = None
    stage: tuple[str, bool] | None = None
    batches: tuple[int, ...] = ()

    @property
    def model_seed(self) -> int:
        """The seed the model gets: the run's plus the fold, kept within 32 bits."""
        return (self.seed + self.fold) % (2**31 - 1)


@dataclass(frozen=True)
class Outcome:
    """A job's record, the texts of its files by their place, and what the model leaves besides."""

    record: dict[str, Any]
    files: dict[str, str]
    artifacts: dict[str, bytes] = field(default_factory=dict)


def run(job: Job, shelf: Shelf) -> Outcome:
    """Run a job and return its outcome; whatever goes wrong becomes a record with a message."""
    attempt = _Attempt(job, shelf)
    record, log = attempt.record, Log()
    try:
        with captured(log):
            attempt.evaluate()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit, and the panics of libraries written in Rust
        broken = Broken.by(error)
        limit = f" of {job.limits.seconds:g} s" if job.limits and job.limits.seconds else ""
        if isinstance(error, KnowsNothing):
            record["coverage"] = 0.0
        said = broken.info + limit * (broken.status == "timeout")
        if broken.status == "memory" and job.limits and job.limits.memory_mb:
            said = _short(f"over the memory limit of {job.limits.memory_mb:,} MB: {broken.info}")
        record.update(status=broken.status, info=said)
        log.write(broken.log)
    record.update(attempt.meter.costs(), embed_seconds=job.embed_seconds, utc=_now())
    if log.getvalue():
        attempt.files["log.txt"] = log.getvalue()
    return Outcome(record, attempt.files, attempt.artifacts)


def new_record(spec: str, model: str, task: Task) -> dict[str, Any]:
    """Return the record of a job that has no scores yet."""
    return {
        "spec": spec,
        "model": model,
        "task": task.name,
        "kind": task.kind,
        "fold": None,
        "repeat": None,
        "seed": None,
        "metric": task.metrics[0],
        "status": "ok",
        "info": "",
        "views": [],
        "notes": [],
        "history": [],
        "utc": _now(),
    }


class _Attempt:
    """A job under way: what it has found out so far stays, whatever happens next."""

    def __init__(self, job: Job, shelf: Shelf) -> None:
        self.job = job
        self.shelf = shelf
        self.model: Model = shelf.get(job.model)
        self.task: Task = shelf.get(job.task)
        self.meter = Meter()
        self.files: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}
        self.record = new_record(job.spec, self.model.name, self.task)
        self.record.update(fold=job.fold, repeat=0, seed=job.model_seed)

    def evaluate(self) -> None:
        """Fit once, then ask through every view; a view that fails leaves the others."""
        job, record = self.job, self.record
        with self.meter.phase("load"):
            data: Dataset = self.shelf.get(job.dataset)
            fold = _folds(job, self.shelf, self.task, data)[job.fold]
            train, test = data.take(fold.train), data.take(fold.test)
            record.update(repeat=fold.repeat, train_questions=len(train), questions=len(test))
            if np.isin(fold.train, fold.test).any():
                train = train.blind()
            solver = _solver(job, self.model, self.task, self._prepared)
        with self.meter.phase("fit"):
            solver.fit(train)
        record.update(dimensions=solver.dimensions)
        for view in views(self.task.corruptions, self.task.draws):
            reason = why_not(view, data, self.model.role)
            seen = _unseen(view, "declined", reason) if reason else self._see(solver, test, view)
            record["views"].append(seen)
            if seen["status"] in FAILURES:
                record.update(status=seen["status"], info=_short(f"{view.name}: {seen['info']}"))
        record.update(notes=list(map(str, solver.notes)), history=_steps(solver.history()))
        self._leave(solver, train, test)

    def _leave(self, solver: Direct | Probed, train: Dataset, test: Dataset) -> None:
        """Keep what is asked for besides: artifacts, how long batches take, what checks read.

        What goes wrong here is a note: the scores stand.
        """
        record, fitted = self.record, solver.fitted()
        record["models"] = getattr(fitted, "models_count_", None)
        try:
            if self.model.artifacts:
                self.artifacts, lacking = collect(fitted, self.model.artifacts)
                record["notes"] += lacking
            if self.job.batches:
                seed = self.job.model_seed
                record["inference"] = inference(solver.infer, test, self.job.batches, seed)
                record["notes"] += [
                    f"no batch of {size} rows was timed: the fold has {len(test)}"
                    for size in self.job.batches
                    if size > len(test)
                ]
            with self.meter.phase("observe"):
                self._observe(solver, train, test)
        except Exception as error:
            record["notes"].append(_short(f"{type(error).__name__}: {error}"))
            print("".join(traceback.format_exception(error)))

    def _observe(self, solver: Direct | Probed, train: Dataset, test: Dataset) -> None:
        """Keep whether heads converged; in the first fold, numbers about vectors and a sample."""
        self.record["unconverged"] = unconverged(solver.fitted())
        if isinstance(solver, Direct) or self.job.fold:
            return
        self.record["observed"] = observe((train, solver.vectors_), (test, solver.tested_))
        drawn = sample_csv(test, solver.tested_, self.job.seed)
        if drawn is not None:
            self.files["sample.csv"] = drawn

    def _see(self, solver: Direct | Probed, test: Dataset, view: View) -> dict[str, Any]:
        try:
            with self.meter.phase("load"):
                shown, share = self._look(test, view)
            with self.meter.phase("predict"):
                answers = self._answers(solver, shown, view)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if view == CLEAN:
                raise
            broken = Broken.by(error)
            print(f"{view.name}: {broken.log or broken.info}")
            return _unseen(view, broken.status, broken.info)
        with self.meter.phase("score"):
            graded = {name: score(name, answers.predictions) for name in self.task.metrics}
        self._keep(answers, test, "" if view == CLEAN else f"{view.name}/")
        return {
            **_unseen(view, "ok", ""),
            "affected": share,
            "coverage": answers.coverage,
            "scores": {name: value for name, (value, _) in graded.items()},
            "reasons": {name: reason for name, (_, reason) in graded.items() if reason},
        }

    def _look(self, test: Dataset, view: View) -> tuple[Dataset, float]:
        """Return the test fold through a view: all models of a process see the same table."""
        job = self.job
        key = f"view-{job.task}-{job.seed}-{job.fold}-{view.name}"
        if view == CLEAN:
            return test, 0.0
        return self.shelf.recall(key, lambda: look(test, view, job.seed, job.fold), _weight)

    def _prepared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return rows as predictors want them: those of a process that prepare alike share them."""
        job = self.job
        key = f"prepared-{job.task}-{job.seed}-{job.fold}-{name}"
        return self.shelf.recall(key, make, _bytes)

    def _answers(self, solver: Direct | Probed, shown: Dataset, view: View) -> Answers:
        if isinstance(solver, Direct):
            return solver.answer(shown, view=view.name)
        return solver.answer(shown, self._blur(view))

    def _blur(self, view: View) -> Callable[[Vectors], Vectors] | None:
        if view == CLEAN:
            return None
        return lambda vectors: blur(vectors, view, self.job.seed, self.job.fold)

    def _keep(self, answers: Answers, test: Dataset, where: str) -> None:
        self.files[f"{where}predictions.csv"] = answers.predictions.to_csv()
        self.files[f"{where}metadata.json"] = self._metadata(answers, test)
        if answers.missing:
            self.files[f"{where}missing.txt"] = "\n".join(answers.missing) + "\n"

    def _metadata(self, answers: Answers, test: Dataset) -> str:
        predictions = answers.predictions
        classes = test.kind == "classes"
        many = "binary" if len(test.classes) == 2 else "multiclass"
        facts = {
            "framework": self.model.name,
            "task": self.task.name,
            "dataset": test.name,
            "type": "classification" if classes else "regression",
            "type_": many if classes else "regression",
            "fold": self.job.fold,
            "seed": self.job.model_seed,
            "metric": self.task.metrics[0],
            "metrics": list(self.task.metrics),
            "answers": predictions.answers,
            "truths": predictions.truths,
            "classes": list(predictions.classes),
            "coverage": answers.coverage,
        }
        return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)


def _weight(seen: tuple[Dataset, float]) -> int:
    return int(np.sum(seen[0].items.memory_usage(deep=True)))


def _bytes(made: Any) -> int:
    parts = made if isinstance(made, tuple) else (made,)
    return sum(int(getattr(part, "nbytes", 0)) for part in parts)


def _unseen(view: View, status: str, info: str) -> dict[str, Any]:
    """Return the record of a view that has no scores yet."""
    return {
        **dataclasses.asdict(view),
        "affected": None,
        "coverage": None,
        "scores": {},
        "reasons": {},
        "status": status,
        "info": info,
    }


def _steps(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the scores per epoch in plain numbers; a score that is none is empty."""
    steps = []
    for step in history:
        value = float(step["value"])
        kept = value if math.isfinite(value) else None
        steps.append({"epoch": int(step["epoch"]), "metric": str(step["metric"]), "value": kept})
    return steps


def _folds(job: Job, shelf: Shelf, task: Task, data: Dataset) -> list[Fold]:
    # all folds of a task come from one call; the shelf keeps them for the process's other jobs
    how: Any = task.split
    return shelf.remember(f"folds-{job.task}-{job.seed}", lambda: split(data, how, job.seed))


def _solver(job: Job, model: Model, task: Task, keep: Keep) -> Direct | Probed:
    if job.broken is not None:
        raise BrokenEmbedding(job.broken)
    told = job.limits.told() if job.limits else {}
    model = dataclasses.replace(model, limits={**told, "optimise": task.metrics[0]})
    if model.role == "predictor":
        return Direct(model, job.model_seed, keep)
    used = dict(task.probe)  # type: ignore[arg-type]
    name = used.pop("use")
    offers = {"random_state": job.model_seed, "fold": job.fold}
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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= INFO_LENGTH else line[: INFO_LENGTH - 1] + "…"
