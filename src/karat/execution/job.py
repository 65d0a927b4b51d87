"""A job: one model on one fold of one task, run so that every error becomes a record.

Models, tasks and datasets are shared by jobs through an ObjectStore: a job names them by key, and a
worker process loads each from the store's folder once. The output and the warnings of a model are
captured for the job's log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.config.catalog import named_components
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.embeddings import Vectors, vector_bytes
from karat.core.files import encodable, safe_name
from karat.core.predictions import Predictions
from karat.core.registry import build, probes
from karat.core.replicates import model_seed, replicate_fact, seed_parameters
from karat.core.services import RunServices, use_services
from karat.core.task import Task
from karat.core.usage import Counted, job_usage
from karat.corruptions.corrupted_data import corrupt_vectors, corrupt_with_share
from karat.corruptions.view import CLEAN, View, changes_items, reason_not_applicable, views
from karat.errors import FAILURES, KaratError, MissingExtra, NoVectors, Postponed
from karat.execution.captured_output import OutputLog, captured_output
from karat.execution.diagnostics import (
    Side,
    guard,
    sample_csv,
    unconverged,
    unmatched_names,
    vector_facts,
)
from karat.execution.job_failure import FailedEmbedding, JobFailure, short_message
from karat.execution.object_store import RECENT, ObjectStore
from karat.execution.resources import Limits, Meter, inference_seconds
from karat.execution.solvers import (
    PredictorSolver,
    ProbeSolver,
    SearchSolver,
    Solver,
    ViewPredictions,
)
from karat.execution.splits import Fold, split
from karat.metrics.metric import score
from karat.models.model import Model
from karat.models.searchers import StoredTexts
from karat.models.vector_files import VectorFile
from karat.probes.trained import Probe
from karat.results.item_tables import item_keys
from karat.results.run import collect_artifacts
from karat.results.stored_json import json_value

#: maximum number of replaced library functions in a record
MOST_REPLACED = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """What to run. ``model``, ``task`` and ``dataset`` are keys of the object store.

    ``spec`` is a hash of everything the job depends on. ``vectors`` is the folder of precomputed
    vectors, ``embed_seconds`` the time they took, ``usage`` what was counted for them,
    ``broken`` why they could not be computed.
    ``stage``, a folder and whether vectors are cached between runs, lets the job compute its
    vectors itself, under its ``limits``. ``batches`` are the sizes for which inference is timed.
    ``encoder`` is the key of the model whose vectors are used, if it is another one: variants of an
    encoder use the same vectors. ``stages`` are the folders of the vectors of a search model's
    encoders. ``replicate`` counts the fits of a fold from 0; only the seed of the model, and of its
    head, depends on it.
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
    usage: Mapping[str, Any] | None = None
    broken: JobFailure | None = None
    limits: Limits | None = None
    stage: tuple[str, bool] | None = None
    batches: tuple[int, ...] = ()
    encoder: str = ""
    stages: tuple[str, ...] = ()
    replicate: int = 0

    @property
    def source(self) -> str:
        """The key of the model whose vectors the job uses."""
        return self.encoder or self.model

    @property
    def model_seed(self) -> int:
        """The seed of the model: the run's seed plus the fold, other ones for replicates."""
        return model_seed(self.seed, self.fold, self.replicate)

    def vector_seed(self, encoder: object) -> int:
        """Return the seed of vectors that are computed once for all folds.

        Replicates share those of an encoder without a seed.
        """
        return model_seed(self.seed, 0, self.replicate if seed_parameters(encoder) else 0)


@dataclass(frozen=True)
class Outcome:
    """A job's record, its files by path, and the artifacts of the model."""

    record: dict[str, Any]
    files: dict[str, str]
    artifacts: dict[str, bytes] = field(default_factory=dict)


def run_job(job: Job, store: ObjectStore) -> Outcome:
    """Run a job and return its outcome; every error becomes a record with a message."""
    attempt = RunningJob(job, store)
    record, output = attempt.record, OutputLog()
    log.info("job started: %(model)s, %(task)s, fold %(fold)s", record)
    services = services_of(store)
    try:
        with captured_output(output), use_services(services), services.counting() as used:
            attempt.evaluate()
        attempt.add_usage(used)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit, and panics of Rust libraries
        broken = JobFailure.by(error)
        limits = job.limits or Limits()
        if isinstance(error, NoVectors):
            record.update(coverage=0.0, unmatched=attempt.unmatched())
        if isinstance(error, MissingExtra):
            record["lacks"] = "library"
        info = broken.info
        if broken.status == "timeout" and limits.seconds:
            info = f"{info} of {limits.seconds:g} s"
        if broken.status == "memory" and limits.memory_mb:
            info = short_message(f"over the memory limit of {limits.memory_mb:,} MB: {info}")
        record.update(status=broken.status, info=info)
        output.write(broken.log)
    record["replaced"] = guard.replaced(foreign=attempt.ran_foreign_code())[:MOST_REPLACED]
    record.update(attempt.meter.costs(), embed_seconds=job.embed_seconds, utc=_now())
    record.update(attempt.durations)
    if output.getvalue():
        attempt.files["log.txt"] = output.getvalue()
    return Outcome(record, attempt.files, attempt.artifacts)


def new_record(spec: str, model: str, task: Task) -> dict[str, Any]:
    """Return the record of a job without scores."""
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


def share_views(job: Job, store: ObjectStore) -> None:
    """Write the views of a job's fold to the folder of the store, for the jobs of all models."""
    store.room = RECENT
    RunningJob(job, store).share_views()


def services_of(store: ObjectStore) -> RunServices:
    """Return the services of the run whose objects these are."""
    try:
        services: RunServices = store.get("services")
        return services
    except FileNotFoundError:
        return store.get_or_make("services", RunServices)


class RunningJob:
    """A running job; its record and files remain when an error ends it."""

    def __init__(self, job: Job, store: ObjectStore) -> None:
        self.job = job
        self.store = store
        self.model: Model = store.get(job.model)
        self.task: Task = store.get(job.task)
        self.meter = Meter()
        self.files: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}
        #: seconds that a model has measured itself, instead of those around its calls
        self.durations: dict[str, float] = {}
        self.record = new_record(job.spec, self.model.name, self.task)
        self.record.update(fold=job.fold, repeat=0, seed=job.model_seed)
        self.record.update(replicate_fact(job.replicate))

    def evaluate(self) -> None:
        """Fit once, then score every view; if a corrupted view fails, the others still run."""
        record = self.record
        with self.meter.phase("load"):
            data, train, test = self._load()
            solver = self._solver()
        with self.meter.phase("fit"):
            solver.fit(train)
        with self.meter.phase("load"):
            self._prepare_views(solver, data, test)
        record.update(_size(solver.dimensions, self.model))
        for view in views(self.task.corruptions, self.task.draws):
            reason = reason_not_applicable(view, data, self.model.role)
            result = self._score(solver, test, view) if not reason else {}
            result = result or _no_scores(view, "declined", reason)
            record["views"].append(result)
            if result["status"] in FAILURES:
                info = short_message(f"{view.name}: {result['info']}")
                record.update(status=result["status"], info=info)
        if pairs := getattr(solver, "pairs", 0):
            record["pairs"] = pairs
        notes = [encodable(str(note)) for note in solver.notes]
        record.update(notes=notes, history=_steps(solver.history()))
        self._add_extras(solver, train, test)

    def ran_foreign_code(self) -> bool:
        """Return whether code of a user, a model or a component, may have run in this process."""
        job, task = self.job, self.task
        if job.vectors is None or job.batches or task.corruptions:
            return True

        def may_run() -> bool:
            if any(type(model.prototype) is not VectorFile for model in self.store.models()):
                return True
            foreign = (":" in name or name in parts.own() for parts, name in named_components(task))
            return any(foreign) or any(map(callable, _values(task.probe)))

        return self.store.get_or_make(f"foreign-{job.task}", may_run)

    def _load(self) -> tuple[Dataset, Dataset, Dataset]:
        """Return all data, the train fold and the test fold."""
        job = self.job
        data: Dataset = self.store.get(job.dataset)
        # one call makes all folds, for all jobs of this process with the same data and split
        how: Any = self.task.split
        # given folds are long: hashed once per task, not once per job
        written = self.store.get_or_make(f"split-{job.task}", lambda: hash(str(how)))
        key = f"folds-{job.dataset}-{written}-{job.seed}"
        folds = self.store.get_or_make(key, lambda: split(data, how, job.seed))
        fold: Fold = folds[job.fold]

        def taken() -> tuple[Dataset, Dataset]:
            train, test = data.take(fold.train), data.take(fold.test)
            return train.blind() if np.isin(fold.train, fold.test).any() else train, test

        group, share = f"{key}-{job.fold}", self.store.get_or_make_in_group
        foreign = self.ran_foreign_code()  # which may change the tables
        train, test = taken() if foreign else share("fold", group, "both", taken)
        keys = self.store.get_or_make(f"keys-{job.dataset}", lambda: item_keys(data))
        self.keys = keys[fold.test]
        self.record.update(repeat=fold.repeat, train_questions=len(train), questions=len(test))
        return data, train, test

    def share_views(self) -> None:
        """Corrupt the test fold and preprocess each view, for the jobs of other processes."""
        data, train, test = self._load()
        solver = PredictorSolver(self.model, self.job.model_seed, self._share_prepared)
        if self.model.role == "predictor" and solver.fit_preparation(train):
            self._prepare_views(solver, data, test)
        list(self._shown_views(data, test))

    def _prepare_views(self, solver: Solver, data: Dataset, test: Dataset) -> None:
        """Prepare all views together; if one fails, each is prepared when it is scored."""
        if self.task.corruptions and isinstance(solver, PredictorSolver):
            with contextlib.suppress(Exception):
                solver.prepare_views(lambda: self._shown_views(data, test))

    def _shown_views(self, data: Dataset, test: Dataset) -> Iterator[tuple[str, Dataset]]:
        """Yield the name and the test fold of each view that applies to the model."""
        for view in views(self.task.corruptions, self.task.draws):
            if not reason_not_applicable(view, data, self.model.role):
                yield view.name, self._corrupted(test, view)[0]

    def add_usage(self, used: Counted) -> None:
        """Add what was counted for the vectors of the data and, by services, for the views."""
        shared = dict(self.job.usage or {})
        # an encoder in this process has counted truncated texts only
        facts = job_usage(shared if "tokens" in shared else None, used) or shared
        self.record["notes"] += facts.pop("remarks", [])
        self.record.update(facts)
        if facts.get("truncated"):
            texts = f"{facts['truncated']:,} of {facts['texts']:,} texts"
            self.record["notes"].append(f"{texts} were over the model's limit and truncated")
        if "tokens" in facts and self.job.batches:
            self.record["notes"].append(
                "inference was not timed: vectors of an endpoint come from the cache"
            )

    def _solver(self) -> Solver:
        job, task = self.job, self.task
        if job.broken is not None:
            raise FailedEmbedding(job.broken)
        limits = job.limits.as_params() if job.limits else {}
        facts = {"job_task": task.name, "job_fold": job.fold, "job_metrics": list(task.metrics)}
        limits = {**limits, "optimize": task.metrics[0], **facts}
        model = dataclasses.replace(self.model, limits=limits)
        if model.role == "predictor":
            return PredictorSolver(model, job.model_seed, self._share_prepared)
        used = dict(task.probe)  # type: ignore[arg-type]
        name = used.pop("use")
        share = None if job.vectors is None else self._share_from_vectors
        # what other probes draw is part of the question: the same for all replicates
        seed = job.model_seed if name == "trained" else model_seed(job.seed, job.fold)
        offers = {"random_state": seed, "fold": job.fold, "share": share}
        offers["measures"] = self.store.measures(task.dataset)
        probe: Probe = build(f'probe "{name}"', probes.get(name), used, offers)
        if model.role == "searcher":
            data = self.store.get(job.dataset)
            read = {at: StoredTexts(read_stored_vectors(at)[1], data) for at in set(job.stages)}
            return SearchSolver(model, probe, job.model_seed, [read[at] for at in job.stages])
        if job.vectors is None:
            return ProbeSolver(model, probe, task.missing, job.model_seed)
        key = f"vectors-{job.vectors}-{job.vocabulary}-{job.dataset}"
        ready = self.store.get_or_make_recent(key, self._stored_vectors, lambda v: v.matrix.nbytes)
        # a stateless encoder has one seed for all folds: its vectors are computed once
        keep = self._share_between_variants if job.encoder else None
        seed = job.vector_seed(model.prototype)
        return ProbeSolver(model, probe, task.missing, seed, ready, keep)

    def _stored_vectors(self) -> Vectors:
        """Return the precomputed vectors, which the jobs of a process share."""
        assert self.job.vectors is not None
        _, matrix = read_stored_vectors(self.job.vectors)
        vocabulary = None
        if self.job.vocabulary is not None:
            facts, vectors = read_stored_vectors(self.job.vocabulary)
            vocabulary = pd.Index(facts["ids"]), vectors
        data: Dataset = self.store.get(self.job.dataset)
        both = data.item_roles.both if len(matrix) > len(data.items) else None
        # a plain view of the mapped file, of which parts are taken faster
        return Vectors(np.asarray(matrix), np.arange(len(data.items)), vocabulary, both)

    def _add_extras(self, solver: Solver, train: Dataset, test: Dataset) -> None:
        """Add artifacts, inference times and the data of the checks; an error becomes a note."""
        record, fitted = self.record, solver.fitted()
        record["models"] = getattr(fitted, "models_count_", None)
        try:
            # a model may have written some that its definition does not name
            if wanted := (*self.model.artifacts, *getattr(fitted, "artifacts_made_", ())):
                self.artifacts, notes = collect_artifacts(fitted, wanted)
                record["notes"] += notes
            self.durations = dict(getattr(fitted, "durations_", {}))
            if self.job.batches and getattr(fitted, "trains_to_predict", False):
                record["notes"].append("inference was not timed: it is part of the training")
            elif self.job.batches and "tokens" not in (self.job.usage or {}):
                seed = self.job.model_seed
                record["inference"] = inference_seconds(solver.infer, test, self.job.batches, seed)
                record["notes"] += [
                    f"inference of {size} rows was not timed: the fold has {len(test)} rows"
                    for size in self.job.batches
                    if size > len(test)
                ]
            with self.meter.phase("observe"):
                record["unconverged"] = unconverged(fitted)
                if isinstance(solver, ProbeSolver) and not self.job.fold:
                    tested = solver.tested_
                    record["observed"] = self._vector_facts(
                        (train, solver.vectors_), (test, tested)
                    )
                    sample = sample_csv(test, tested, self.job.seed, self.keys)
                    if sample is not None:
                        self.files["sample.csv"] = sample
        except Exception as error:
            record["notes"].append(short_message(f"{type(error).__name__}: {error}"))
            print("".join(traceback.format_exception(error)))

    def _vector_facts(self, train: Side, test: Side) -> dict[str, Any]:
        """Return facts about the vectors, computed once for all tasks on the same items."""
        if self.job.vectors is None:
            return vector_facts(train, test)
        items = b"".join(data.mentioned().tobytes() + b"/" for data, _ in (train, test))
        digest = sha256_of(f"{self.model.variant} ", items)
        key = f"facts-{self.job.vectors}-{self.job.dataset}-{digest}"
        return self.store.get_or_make(key, lambda: vector_facts(train, test))

    def unmatched(self) -> dict[str, Any]:
        """Return examples of the items without a vector, and of the names of the vectors."""
        vocabulary = getattr(self.model.prototype, "vocabulary", None)

        def compare() -> dict[str, Any]:
            data: Dataset = self.store.get(self.job.dataset)
            items = data.items if data.modality == "text" else data.items.index
            try:
                names = vocabulary()[0] if callable(vocabulary) else ()
            except (KaratError, OSError):  # the file has been removed
                names = ()
            return unmatched_names(map(str, items), map(str, names))

        return self.store.get_or_make(f"unmatched-{self.job.model}-{self.job.dataset}", compare)

    def _score(self, solver: Solver, test: Dataset, view: View) -> dict[str, Any]:
        try:
            with self.meter.phase("load"):
                view_data, share = self._corrupted(test, view)
            with self.meter.phase("predict"):
                answers = self._answers(solver, view_data, view)
        except (KeyboardInterrupt, Postponed):
            raise
        except BaseException as error:
            if view == CLEAN:
                raise
            broken = JobFailure.by(error)
            print(f"{view.name}: {broken.log or broken.info}")
            return _no_scores(view, broken.status, broken.info)
        with self.meter.phase("score"):
            results = {name: score(name, answers.predictions) for name in self.task.metrics}
        facts: dict[str, Any] = {}
        if view == CLEAN or self.task.keep_predictions == "all":
            stored = self._with_keys(answers.predictions, solver, test, view_data)
            self._store(view, stored, answers, test)
        else:
            facts = {"stored": False, "confusion": _confusion(answers.predictions)}
        return {
            **_no_scores(view, "ok", ""),
            **facts,
            "affected": share,
            "coverage": answers.coverage,
            "scores": {name: value for name, (value, _) in results.items()},
            "reasons": {name: encodable(why) for name, (_, why) in results.items() if why},
        }

    def _store(
        self, view: View, stored: Predictions, answers: ViewPredictions, test: Dataset
    ) -> None:
        """Keep the files of a view: predictions, their metadata, and items without a vector."""
        folder = "" if view == CLEAN else f"{view.name}/"
        self.files |= {f"{folder}{name}": text for name, text in stored.files().items()}
        self.files[f"{folder}metadata.json"] = self._metadata(answers, test, folder)
        if answers.missing:
            self.files[f"{folder}missing.txt"] = "\n".join(answers.missing) + "\n"

    def _with_keys(
        self, predictions: Predictions, solver: Solver, test: Dataset, view_data: Dataset
    ) -> Predictions:
        """Return predictions with the keys of their items, if there is one answer per question."""
        if isinstance(solver, ProbeSolver) and not getattr(solver.probe, "one_answer_each", True):
            return predictions
        keys, names = self.keys, test.questions.index
        if not view_data.questions.index.equals(names):  # a corruption drops or repeats rows
            if not names.is_unique:
                return predictions
            keys = keys[names.get_indexer(view_data.questions.index)]
        keys = keys if predictions.question is None else keys[predictions.question]
        return dataclasses.replace(predictions, key=keys)

    def _corrupted(self, test: Dataset, view: View) -> tuple[Dataset, float]:
        """Return the test fold of a view, computed once for all models of a process."""
        job = self.job
        if not changes_items(view):
            return test, 0.0
        return self.store.get_or_make_recent(
            f"view-{job.task}-{job.seed}-{job.fold}-{safe_name(view.name)}",
            lambda: corrupt_with_share(test, view, job.seed, job.fold),
            lambda seen: int(np.sum(seen[0].items.memory_usage(deep=True))),
        )

    def _share_prepared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return preprocessed rows, shared by the predictors of a process that preprocess alike."""
        key = f"prepared-{self.job.task}-{self.job.seed}-{self.job.fold}-{safe_name(name)}"

        def weigh(prepared: object) -> int:
            parts = prepared if isinstance(prepared, tuple) else (prepared,)
            return sum(int(getattr(part, "nbytes", 0)) for part in parts)

        return self.store.get_or_make_recent(key, make, weigh)

    def _share_from_vectors(self, rows: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what a probe computes from stored vectors, shared by the heads on these rows."""
        group = f"{self.job.vectors}-{self.model.variant}-{rows}"
        return self.store.get_or_make_in_group("vectors", group, name, make)

    def _share_between_variants(self, name: str, make: Callable[[], Vectors]) -> Vectors:
        """Return vectors that the variants of an encoder share in this process."""
        digest = sha256_of(f"{self.job.vectors} {name}")
        key = f"variants-{self.job.dataset}-{digest}"
        return self.store.get_or_make_recent(key, make, lambda v: v.matrix.nbytes)

    def _answers(self, solver: Solver, view_data: Dataset, view: View) -> ViewPredictions:
        if isinstance(solver, PredictorSolver):
            return solver.answer(view_data, view=view.name)
        if view == CLEAN:
            return solver.answer(view_data)
        job = self.job
        return solver.answer(view_data, lambda v: corrupt_vectors(v, view, job.seed, job.fold))

    def _metadata(self, answers: ViewPredictions, test: Dataset, folder: str) -> str:
        predictions = answers.predictions
        classes = test.kind == "classification"
        kind = "binary" if len(test.classes) == 2 else "multiclass"
        facts = {
            "framework": self.model.name,
            "task": self.task.name,
            "dataset": test.name,
            "type": "classification" if classes else "regression",
            "type_": kind if classes else "regression",
            "fold": self.job.fold,
            "seed": self.job.model_seed,
            "metric": self.task.metrics[0],
            "metrics": list(self.task.metrics),
            "answers": predictions.answers,
            "truths": predictions.truths,
            "classes": list(predictions.classes),
            **({} if predictions.precision == "float64" else {"precision": predictions.precision}),
            **({} if test.positive is None else {"positive": str(test.positive)}),
            "coverage": answers.coverage,
            **self._amlb_metadata(test, folder),
        }
        return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False, default=str)

    def _amlb_metadata(self, test: Dataset, folder: str) -> dict[str, Any]:
        """Return the facts that the AutoML Benchmark's readers expect.

        Paths are relative to the run folder, and what differs between equal runs is null: the
        command, and how much of the machine a job without limits may use.
        """
        job, limits = self.job, self.job.limits or Limits()
        prefix = f"predictions/{safe_name(self.task.name)}/{job.fold}/{folder}"
        number = test.about.get("openml_task")
        unknown = ("tag", "command", "git_info", "input_dir")
        return {
            "name": self.task.name,
            "framework_params": json_value(self.model.params),
            "framework_version": self.model.version,
            "openml_task_id": None if number is None else int(number),
            "test_server": False,
            "job_timeout_seconds": limits.deadline,
            "max_runtime_seconds": limits.seconds,
            "cores": limits.cores,
            "max_mem_size_mb": limits.memory_mb,
            "min_vol_size_mb": -1,
            **dict.fromkeys(unknown),
            "output_dir": ".",
            "output_predictions_file": f"{prefix}predictions.csv",
            "output_metadata_file": f"{prefix}metadata.json",
            "measure_inference_time": bool(job.batches),
            "ext": {},
            "quantile_levels": [],
        }


def _values(nested: object) -> Iterator[Any]:
    """Yield the values of nested mappings and lists."""
    if isinstance(nested, Mapping | list | tuple):
        for value in nested.values() if isinstance(nested, Mapping) else nested:
            yield from _values(value)
    else:
        yield nested


def _size(dimensions: int | None, model: Model) -> dict[str, Any]:
    """Return the number of dimensions of a model's vectors, and how one is stored."""
    if dimensions is None:
        return {"dimensions": None}
    precision = model.precision
    size = vector_bytes(dimensions, precision)
    return {"dimensions": dimensions, "precision": precision, "vector_bytes": size}


def _confusion(predictions: Predictions) -> list[list[Any]]:
    """Return true class, predicted class and count of each pair that occurs; sorted."""
    if not predictions.is_labeled:
        return []
    pairs = zip(predictions.target.tolist(), predictions.predictions.tolist(), strict=True)
    return [[*pair, count] for pair, count in sorted(Counter(pairs).items())]


def _no_scores(view: View, status: str, info: str) -> dict[str, Any]:
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
    """Return the scores per epoch as JSON values; a NaN or infinite score becomes None."""
    steps = []
    for step in history:
        value = float(step["value"])
        finite = value if math.isfinite(value) else None
        metric = encodable(str(step["metric"]))
        steps.append({"epoch": int(step["epoch"]), "metric": metric, "value": finite})
    return steps


def read_stored_vectors(folder: str | Path) -> tuple[dict[str, Any], np.ndarray]:
    """Return the facts and the memory-mapped matrix of a folder of vectors."""
    facts = json.loads((Path(folder) / "about.json").read_text())
    return facts, np.load(Path(folder) / "vectors.npy", mmap_mode="r", allow_pickle=False)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
