"""A job: one model on one fold of one task, run so that every error becomes a record.

Models, tasks and datasets are shared by jobs through an ObjectStore: a job names them by key, and a
worker process loads each from the store's folder once. The output and the warnings of a model are
captured for the job's log.

A solver is a predictor on raw items, or an encoder with a probe, behind one interface.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import logging
import math
import pickle
import traceback
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
import numpy as np
import pandas as pd

from karat.config.catalog import named_components
from karat.core.dataset import Dataset
from karat.core.embeddings import Keep, Vectors, embed, fit_embed, vector_bytes
from karat.core.files import encodable, fingerprint, safe_name
from karat.core.formatting import cut_text
from karat.core.predictions import Predictions
from karat.core.registry import build, probes
from karat.core.replicates import model_seed, replicate_fact, seed_parameters
from karat.core.task import Task
from karat.core.usage import Counted, job_usage
from karat.core.writing import draft_file
from karat.corruptions.corrupted_data import corrupt_vectors, corrupt_with_share
from karat.corruptions.view import CLEAN, View, changes_items, reason_not_applicable, views
from karat.errors import FAILURES, Declined, KaratError, MissingExtra, NoVectors, Postponed
from karat.execution.diagnostics import (
    Side,
    guard,
    sample_csv,
    unconverged,
    unmatched_names,
    vector_facts,
)
from karat.execution.resources import Limits, Meter, TimedOut, inference_seconds
from karat.execution.splits import Fold, split
from karat.metrics.metric import score
from karat.models.contrib.endpoint_account import Account, use_account
from karat.models.model import Model, fit_weighted
from karat.models.model_identity import object_identity
from karat.models.searchers import StoredTexts, scored_pairs, use_stored
from karat.models.table_predictor import DistinctRows, PreparedRows
from karat.models.vector_files import VectorFile
from karat.probes.trained import Probe, predict_checked
from karat.results.run import collect_artifacts
from karat.results.tables import item_keys, json_value

#: returns changed vectors, such as rounded ones
Change = Callable[[Vectors], Vectors]


@dataclass(frozen=True)
class Answers:
    """Predictions, the share of questions with vectors, and the ids of items without one."""

    predictions: Predictions
    coverage: float = 1.0
    missing: list[str] = field(default_factory=list)


class PredictorSolver:
    """A predictor on the raw items of questions with one field.

    A predictor with ``parts``, a transformer and an estimator, is fitted in two steps; ``keep``
    then shares the transformed items between models with the same transformer.
    """

    dimensions: int | None = None

    def __init__(self, model: Model, seed: int, keep: Keep | None = None) -> None:
        self.model = model
        self.seed = seed
        self.keep = keep
        self.preparation_: Any = None
        self.views_: DistinctRows | None = None

    @property
    def notes(self) -> list[str]:
        """Notes of the predictor, such as that it used only some rows."""
        return [*getattr(self.fitted_, "notes_", []), *self.notes_]

    def fit(self, train: Dataset) -> None:
        """Fit a new copy of the predictor on the train items and their targets."""
        if train.target is None:
            raise Declined("a predictor needs targets to train on, and this task hides them")
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        X: Any = None
        if hasattr(self.fitted_, "parts"):
            unfitted, self.fitted_ = self.fitted_.parts()
            X = self._prepare(unfitted, train)
        X = train.frame() if X is None else X
        self.notes_ = fit_weighted(self.fitted_, X, train.target, train.weight)

    def fit_preparation(self, train: Dataset) -> bool:
        """Fit only the transformer, without loading the estimator; False if that is impossible."""
        predictor = self.model.fresh(self.seed, train.kind)
        if train.target is None or not hasattr(predictor, "preparation"):
            return False
        self._prepare(predictor.preparation(), train)
        return True

    def _prepare(self, unfitted: Any, train: Dataset) -> Any:
        self.identity_ = object_identity(unfitted)
        self.preparation_, X = self._shared(
            "train", lambda: (unfitted, unfitted.fit_transform(train.frame(), train.target))
        )
        return X

    def prepare_views(self, views: Callable[[], Iterator[tuple[str, Dataset]]]) -> None:
        """Transform the test items of several views at once, if the transformer can."""
        if (prepare := getattr(self.preparation_, "transform_views", None)) is not None:
            frames = ((name, test.frame()) for name, test in views())
            self.views_ = self._shared("views", lambda: prepare(frames))

    def prepared(self, test: Dataset, view: str = "") -> Any:
        """Return the test items for the predictor, transformed if it has a transformer.

        Transformed items are shared under the name of the view, if given.
        """
        if (preparation := self.preparation_) is None:
            return test.frame()
        if self.views_ is not None and view in self.views_[1]:
            return PreparedRows(self.views_[0], self.views_[1][view])
        return self._shared(view, lambda: preparation.transform(test.frame()))

    def answer(self, test: Dataset, change: Change | None = None, view: str = "") -> Answers:
        """Return the predictions for the test items of a view; ``change`` is ignored."""
        X = self.prepared(test, view)
        return Answers(predict_checked(self.fitted_, X, test, self.model.name))

    def fitted(self) -> Any:
        """Return the fitted predictor."""
        return self.fitted_

    def infer(self, test: Dataset) -> Answers:
        """Answer without shared objects, to be timed."""
        return self.answer(test)

    def _shared(self, name: str, make: Callable[[], Any]) -> Any:
        # a transformer without an identity is not shared
        if self.keep is None or self.identity_ is None or not name:
            return make()
        return self.keep(f"{self.identity_}-{name}", make)

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch, if the predictor has any."""
        return list(getattr(self.fitted_, "history_", []))


class SearchSolver:
    """A search model ranks the documents for each query; it is not trained."""

    dimensions: int | None = None

    def __init__(
        self, model: Model, probe: Any, seed: int, stored: Sequence[StoredTexts] = ()
    ) -> None:
        """Use ``stored`` vectors of the encoders among its stages."""
        self.model = model
        self.probe = probe
        self.seed = seed
        self.stored = stored

    @property
    def notes(self) -> list[str]:
        """Notes of the probe and of the search model."""
        pairs, truncated = scored_pairs(self.fitted_)
        cut = f", {truncated:,} of them over the reranker's limit and truncated"
        scored = [f"{pairs:,} pairs were reranked{cut if truncated else ''}"] if pairs else []
        return [*self.probe.notes, *scored]

    @property
    def pairs(self) -> int:
        """The number of pairs of query and document that rerankers scored."""
        return scored_pairs(self.fitted_)[0]

    def fit(self, train: Dataset) -> None:
        """Record which items are queries."""
        self.fitted_ = self.model.fresh(self.seed, train.kind)
        self.encoders_ = use_stored(self.fitted_, self.stored) if self.stored else []
        self.probe.fit(train, None)

    def answer(self, test: Dataset, change: Change | None = None) -> Answers:
        """Index the documents and rank them for the queries; ``change`` is ignored."""
        return Answers(self.probe.search(test, self.fitted_))

    def infer(self, test: Dataset) -> Answers:
        """Answer again without stored vectors, to be timed."""
        for each in self.encoders_:
            each.stored = None
        return self.answer(test)

    def fitted(self) -> Any:
        """Return the search model."""
        return self.fitted_

    def history(self) -> list[dict[str, Any]]:
        """Return an empty list: a search model has no epochs."""
        return []


class ProbeSolver:
    """An encoder computes vectors and a probe answers questions from them."""

    def __init__(
        self,
        model: Model,
        probe: Probe,
        missing: str,
        seed: int,
        ready: Vectors | None = None,
        keep: Keep | None = None,
    ) -> None:
        """``keep`` shares vectors between the variants of an encoder whose vectors are ready."""
        self.model = model
        self.probe = probe
        self.missing = missing
        self.seed = seed
        self.ready = ready
        self.keep = keep
        self.dimensions: int | None = None

    @property
    def notes(self) -> list[str]:
        """Notes of the probe, such as that a head did not converge."""
        return self.probe.notes

    def fit(self, train: Dataset) -> None:
        """Embed the train items, unless their vectors are ready, and fit the probe."""
        self.items_ = train.items
        if self.ready is None:
            self.encoder_ = self.model.fresh(self.seed, train.kind)
            self.base_ = fit_embed(self.encoder_, train, self.model.name)
        else:
            self.base_ = self.ready
        self.vectors_ = self._fit_variant(train)
        self.dimensions = self.vectors_.matrix.shape[1]
        able = self.probe.answerable(train, self.vectors_)
        if not able.any():
            raise _no_vectors(train, self.vectors_, "items")
        self.probe.fit(train if able.all() else train.take(np.flatnonzero(able)), self.vectors_)

    def answer(self, test: Dataset, change: Change | None = None) -> Answers:
        """Answer the questions with vectors; omit or penalize the others, as the task defines.

        ``change`` is applied to the vectors of the test items.
        """
        known_items = test.items is self.items_ and (
            self.ready is not None or np.array_equal(test.mentioned(), self.vectors_.rows)
        )
        if change is None:
            self.tested_ = vectors = self.vectors_ if known_items else self._embedded(test)
        else:
            vectors = self._compressed(change(self.base_ if known_items else self._base(test)))
        able = self.probe.answerable(test, vectors)
        rows = test.mentioned()
        lacking = rows[~vectors.known(rows)]
        missing = [str(i) for i in test.items.index[lacking]] if len(lacking) else []
        if not able.any() and self.missing == "ignore":
            raise _no_vectors(test, vectors, "test items")
        # coverage counts questions with vectors, even if the probe can answer the others
        known = able & vectors.answerable(test)
        predictions = self._answered(test, vectors, able)
        each = getattr(self.probe, "one_answer_each", True) and len(predictions) == len(known)
        if each and not known.all():
            predictions = replace(predictions, known=known)
        return Answers(predictions, float(known.mean()), missing)

    def _answered(self, test: Dataset, vectors: Vectors, able: np.ndarray) -> Predictions:
        """Return the answers, with default answers for questions to be penalized."""
        if able.all():
            return self.probe.answer(test, vectors)
        answered = (
            self.probe.answer(test.take(np.flatnonzero(able)), vectors) if able.any() else None
        )
        if self.missing == "penalize":
            defaults = self.probe.unanswered(test.take(np.flatnonzero(~able)))
            return defaults if answered is None else answered.merged(defaults, able)
        assert answered is not None
        if getattr(self.probe, "one_answer_each", True):
            return replace(answered, question=np.flatnonzero(able))
        return answered

    def history(self) -> list[dict[str, Any]]:
        """Return the scores per epoch, if the head has any."""
        return list(getattr(getattr(self.probe, "head_", None), "history_", []))

    def fitted(self) -> Any:
        """Return the encoder, if it was fitted here, and the head."""
        encoder = getattr(self, "encoder_", None)
        return {"encoder": encoder, "head": getattr(self.probe, "head_", None)}

    def infer(self, test: Dataset) -> Predictions:
        """Embed and answer without precomputed vectors, to be timed."""
        self.keep = None
        vectors = self._embedded(test)
        able = np.flatnonzero(self.probe.answerable(test, vectors))
        return self.probe.answer(test.take(able), vectors)

    def _fit_variant(self, train: Dataset) -> Vectors:
        """Return the vectors of the train items in the form in which they would be stored."""
        if (variant := self.model.variant) is None:
            return self.base_
        keep = self.keep
        self.compression_ = fitted = variant.fit(train, self.base_, keep)
        if keep is None:
            return fitted.apply(self.base_)
        vectors: Vectors = keep(fitted.key, lambda: fitted.apply(self.base_, keep))
        return vectors

    def _compressed(self, vectors: Vectors) -> Vectors:
        return vectors if self.model.variant is None else self.compression_.apply(vectors)

    def _embedded(self, test: Dataset) -> Vectors:
        vectors = self._compressed(replace(self._base(test), vocabulary=None))
        return replace(vectors, vocabulary=self.vectors_.vocabulary)

    def _base(self, test: Dataset) -> Vectors:
        """Return the vectors of the test items as the encoder computes them."""
        if self.keep is None:
            return self._encoded(test)
        name = hashlib.sha256(test.mentioned().tobytes()).hexdigest()
        vectors: Vectors = self.keep(
            f"{fingerprint(test.items)} {name}", lambda: self._encoded(test)
        )
        return vectors

    def _encoded(self, test: Dataset) -> Vectors:
        encoder = self.encoder_ if self.ready is None else self.model.fresh(self.seed, test.kind)
        base = self.base_.matrix
        vectors = embed(encoder, test, self.model.name, base.shape[1])
        # the dtype may differ between folds
        matrix = vectors.matrix.astype(base.dtype, copy=False)
        return replace(vectors, matrix=matrix, vocabulary=self.base_.vocabulary)


def _no_vectors(data: Dataset, vectors: Vectors, what: str) -> NoVectors:
    rows = data.mentioned()
    if vectors.known(rows).any():
        return NoVectors(f"no question of {data.name} has vectors for all of its {what}")
    return NoVectors(f"no vector for any of the {len(rows)} {what} of {data.name}")


Solver = PredictorSolver | ProbeSolver | SearchSolver


#: maximum length of a message in results.csv; the job's log has the whole text
INFO_LENGTH = 200
#: number of characters kept at the beginning and at the end of a model's output
LOG_LENGTH = 50_000
#: maximum number of replaced library functions in a record
MOST_REPLACED = 5
#: the status of a job that leaves no record because it cannot go on now
POSTPONED = "postponed"
#: maximum number of bytes of recently used objects
RECENT = 2**30

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Broken:
    """A failed or declined job: its status, its one-line message and its log."""

    status: str
    info: str
    log: str

    @classmethod
    def by(cls, error: BaseException) -> Broken:
        """Return the status, message and log of an error."""
        if isinstance(error, Declined | MissingExtra):
            return cls("declined", _short(str(error)), "")
        if isinstance(error, BrokenEmbedding):
            return error.broken
        if isinstance(error, Postponed):
            return cls(POSTPONED, " ".join(encodable(str(error)).split()), "")
        log = "".join(traceback.format_exception(error))
        if isinstance(error, TimedOut):
            return cls("timeout", "over the time limit", log)
        # PyTorch raises a RuntimeError with one of these messages
        words = ("can't allocate memory", "out of memory", "cannot allocate memory")
        memory = isinstance(error, MemoryError) or any(w in str(error).lower() for w in words)
        info = _short(f"{type(error).__name__}: {error}")
        return cls("memory" if memory else "failed", info, log)


class BrokenEmbedding(KaratError):
    """The vectors of a model could not be computed before the jobs ran."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        super().__init__(broken.info)


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
    broken: Broken | None = None
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

    def vector_seed(self, encoder: Any) -> int:
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
    attempt = _Attempt(job, store)
    record, output = attempt.record, OutputLog()
    log.info("job started: %(model)s, %(task)s, fold %(fold)s", record)
    account = account_of(store)
    try:
        with captured_output(output), use_account(account), account.counting() as used:
            attempt.evaluate()
        attempt.add_usage(used)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit, and panics of Rust libraries
        broken = Broken.by(error)
        limits = job.limits or Limits()
        if isinstance(error, NoVectors):
            record.update(coverage=0.0, unmatched=attempt.unmatched())
        if isinstance(error, MissingExtra):
            record["lacks"] = "library"
        info = broken.info
        if broken.status == "timeout" and limits.seconds:
            info = f"{info} of {limits.seconds:g} s"
        if broken.status == "memory" and limits.memory_mb:
            info = _short(f"over the memory limit of {limits.memory_mb:,} MB: {info}")
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
    _Attempt(job, store).share_views()


def account_of(store: ObjectStore) -> Account:
    """Return the account of the run whose objects these are."""
    try:
        account: Account = store.get("account")
        return account
    except FileNotFoundError:
        return store.get_or_make("account", Account)


class _Attempt:
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
                info = _short(f"{view.name}: {result['info']}")
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
            own = (":" in name or name in parts.own() for parts, name in named_components(task))
            return any(own) or any(map(callable, _values(task.probe)))

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
        """Add what was counted for the vectors of the data and, by endpoints, for the views."""
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
            raise BrokenEmbedding(job.broken)
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
            about, vectors = read_stored_vectors(self.job.vocabulary)
            vocabulary = pd.Index(about["ids"]), vectors
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
            record["notes"].append(_short(f"{type(error).__name__}: {error}"))
            print("".join(traceback.format_exception(error)))

    def _vector_facts(self, train: Side, test: Side) -> dict[str, Any]:
        """Return facts about the vectors, computed once for all tasks on the same items."""
        if self.job.vectors is None:
            return vector_facts(train, test)
        items = b"".join(data.mentioned().tobytes() + b"/" for data, _ in (train, test))
        digest = hashlib.sha256(f"{self.model.variant} ".encode() + items).hexdigest()
        key = f"facts-{self.job.vectors}-{self.job.dataset}-{digest}"
        return self.store.get_or_make(key, lambda: vector_facts(train, test))

    def unmatched(self) -> dict[str, Any]:
        """Return examples of the items without a vector, and of the names of the vectors."""
        vocabulary = getattr(self.model.prototype, "vocabulary", None)

        def compare() -> dict[str, Any]:
            data: Dataset = self.store.get(self.job.dataset)
            asked = data.items if data.modality == "text" else data.items.index
            try:
                known = vocabulary()[0] if callable(vocabulary) else ()
            except (KaratError, OSError):  # the file has been removed
                known = ()
            return unmatched_names(map(str, asked), map(str, known))

        return self.store.get_or_make(f"unmatched-{self.job.model}-{self.job.dataset}", compare)

    def _score(self, solver: Solver, test: Dataset, view: View) -> dict[str, Any]:
        try:
            with self.meter.phase("load"):
                shown, share = self._corrupted(test, view)
            with self.meter.phase("predict"):
                answers = self._answers(solver, shown, view)
        except (KeyboardInterrupt, Postponed):
            raise
        except BaseException as error:
            if view == CLEAN:
                raise
            broken = Broken.by(error)
            print(f"{view.name}: {broken.log or broken.info}")
            return _no_scores(view, broken.status, broken.info)
        with self.meter.phase("score"):
            results = {name: score(name, answers.predictions) for name in self.task.metrics}
        facts: dict[str, Any] = {}
        if view == CLEAN or self.task.keep_predictions == "all":
            stored = self._with_keys(answers.predictions, solver, test, shown)
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

    def _store(self, view: View, stored: Predictions, answers: Answers, test: Dataset) -> None:
        """Keep the files of a view: predictions, their metadata, and items without a vector."""
        folder = "" if view == CLEAN else f"{view.name}/"
        self.files |= {f"{folder}{name}": text for name, text in stored.files().items()}
        self.files[f"{folder}metadata.json"] = self._metadata(answers, test, folder)
        if answers.missing:
            self.files[f"{folder}missing.txt"] = "\n".join(answers.missing) + "\n"

    def _with_keys(
        self, predictions: Predictions, solver: Solver, test: Dataset, shown: Dataset
    ) -> Predictions:
        """Return predictions with the keys of their items, if there is one answer per question."""
        if isinstance(solver, ProbeSolver) and not getattr(solver.probe, "one_answer_each", True):
            return predictions
        keys, names = self.keys, test.questions.index
        if not shown.questions.index.equals(names):  # a corruption drops or repeats rows
            if not names.is_unique:
                return predictions
            keys = keys[names.get_indexer(shown.questions.index)]
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

        def weigh(made: Any) -> int:
            parts = made if isinstance(made, tuple) else (made,)
            return sum(int(getattr(part, "nbytes", 0)) for part in parts)

        return self.store.get_or_make_recent(key, make, weigh)

    def _share_from_vectors(self, rows: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what a probe computes from stored vectors, shared by the heads on these rows."""
        group = f"{self.job.vectors}-{self.model.variant}-{rows}"
        return self.store.get_or_make_in_group("vectors", group, name, make)

    def _share_between_variants(self, name: str, make: Callable[[], Vectors]) -> Vectors:
        """Return vectors that the variants of an encoder share in this process."""
        digest = hashlib.sha256(f"{self.job.vectors} {name}".encode()).hexdigest()
        key = f"variants-{self.job.dataset}-{digest}"
        return self.store.get_or_make_recent(key, make, lambda v: v.matrix.nbytes)

    def _answers(self, solver: Solver, shown: Dataset, view: View) -> Answers:
        if isinstance(solver, PredictorSolver):
            return solver.answer(shown, view=view.name)
        if view == CLEAN:
            return solver.answer(shown)
        job = self.job
        return solver.answer(shown, lambda v: corrupt_vectors(v, view, job.seed, job.fold))

    def _metadata(self, answers: Answers, test: Dataset, folder: str) -> str:
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
        place = f"predictions/{safe_name(self.task.name)}/{job.fold}/{folder}"
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
            "output_predictions_file": f"{place}predictions.csv",
            "output_metadata_file": f"{place}metadata.json",
            "measure_inference_time": bool(job.batches),
            "ext": {},
            "quantile_levels": [],
        }


def _values(nested: Any) -> Iterator[Any]:
    """Yield the values of nested mappings and lists."""
    if isinstance(nested, Mapping | list | tuple):
        for each in nested.values() if isinstance(nested, Mapping) else nested:
            yield from _values(each)
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
    about = json.loads((Path(folder) / "about.json").read_text())
    return about, np.load(Path(folder) / "vectors.npy", mmap_mode="r", allow_pickle=False)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _short(text: str) -> str:
    return cut_text(" ".join(encodable(text).split()), INFO_LENGTH)


class OutputLog(io.TextIOBase):
    """A text stream that keeps the beginning and the end of what is written; cannot be closed."""

    def __init__(self) -> None:
        self.begin, self.end, self.lost = "", "", 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Keep a text, or as much of it as fits."""
        length, text = len(text), encodable(text)
        room = LOG_LENGTH - len(self.begin)
        self.begin += text[:room]
        self.end += text[room:][-LOG_LENGTH:]
        self.lost += max(len(text) - room - LOG_LENGTH, 0)
        if len(self.end) > 2 * LOG_LENGTH:
            self.lost += len(self.end) - LOG_LENGTH
            self.end = self.end[-LOG_LENGTH:]
        return length

    def close(self) -> None:
        """Stay open for later output."""

    def getvalue(self) -> str:
        """Return the kept text."""
        gap = f"\n… {self.lost:,} characters omitted …\n" if self.lost else ""
        return self.begin + gap + self.end


@contextlib.contextmanager
def captured_output(log: OutputLog) -> Iterator[None]:
    """Redirect standard output, standard error and warnings to a log."""
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


class ObjectStore:
    """A table of shared objects that can be written to disk for worker processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects: dict[str, Any] = {}
        self._sent: dict[str, Any] = {}
        self._recent: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        #: number of bytes of recently used objects that may be written for other processes
        self.room = 0
        self._groups: dict[str, tuple[str, dict[str, Any]]] = {}

    def put(self, key: str, value: Any, sent: Any = None) -> str:
        """Store an object and return its key; other processes get ``sent`` instead, if given."""
        self._objects[key] = value
        self._sent[key] = value if sent is None else sent
        return key

    def get(self, key: str) -> Any:
        """Return the object of a key, read from the folder on first use."""
        if key not in self._objects:
            self._objects[key] = _read(self.file(key))
        return self._objects[key]

    def models(self) -> list[Model]:
        """Return the models of this process."""
        return [each for each in self._objects.values() if isinstance(each, Model)]

    def measures(self, dataset: Any) -> Any:
        """Return the similarity measures of all tasks on a dataset; a worker knows none."""
        tasks = [each for each in self._sent.values() if isinstance(each, Task)]
        return [each.probe.get("measure") for each in tasks if each.dataset == dataset]  # type: ignore[union-attr]

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """Return the object of a key, made once per process."""
        if key not in self._objects:
            self._objects[key] = make()
        return self._objects[key]

    def get_or_make_recent(self, key: str, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the object of a key from a cache that drops the least recently used objects.

        ``weigh`` returns the size of an object in bytes. An object that another process has written
        to the folder is read, not made.
        """
        if key not in self._recent:
            shared = self.file(key).exists()
            value = _read(self.file(key)) if shared else make()
            self._recent[key] = (value, size := weigh(value))
            if not shared and size <= self.room:
                self.room -= size
                _write(self.file(key), value)
            while len(self._recent) > 1 and sum(w for _, w in self._recent.values()) > RECENT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key][0]

    def get_or_make_in_group(self, kind: str, group: str, name: str, make: Callable[[], T]) -> T:
        """Return the object of a name in a group; the last group of its kind is dropped."""
        if self._groups.get(kind, ("",))[0] != group:
            self._groups[kind] = (group, {})
        members = self._groups[kind][1]
        if name not in members:
            members[name] = make()
        return members[name]

    def save(self) -> None:
        """Write all objects to the folder, together with the code of scripts they need."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, value in self._sent.items():
            _write(self.file(key), value)

    def file(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{key}.pickle"


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return pickle.load(file)


def _write(path: Path, value: Any) -> None:
    with draft_file(path) as draft, draft.open("wb") as file:
        cloudpickle.dump(value, file)
