"""A plan: which model runs on which fold of which task, and which tasks a model declines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from karat.config.catalog import (
    check_components,
    check_head,
    check_metrics,
    default_metrics,
    hash_user_components,
    with_task_name,
)
from karat.core.columns import ITEM_TYPES
from karat.core.dataset import PLURAL, QUERY, QUERY_AND_DOCUMENT, Dataset
from karat.core.digest import sha256_of
from karat.core.files import encodable
from karat.core.registry import accepts, build, heads
from karat.core.replicates import depends_on_seed, replicate_fact, seed_parameters
from karat.core.services import service_of
from karat.core.task import Task
from karat.corruptions.view import View, reason_not_applicable
from karat.data.queries import generate_queries
from karat.errors import (
    DataError,
    DefinitionError,
    KaratError,
    KaratWarning,
    MissingExtra,
    Unavailable,
    did_you_mean,
)
from karat.execution.cross_validation import cv_folds
from karat.execution.diagnostics import count_duplicates, task_facts
from karat.execution.resources import Limits
from karat.execution.splits import (
    Fold,
    choose_split,
    describe_split,
    has_number_of_folds,
    split,
    split_facts,
)
from karat.models.model import Model, sklearn_tags
from karat.models.model_identity import encoder_identity, variant_identity
from karat.models.searchers import stage_encoders
from karat.probes.trained import HEADS

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlannedTask:
    """A task with loaded data, chosen metrics, limited rows and counted folds.

    ``repeats`` holds the repeat of every fold, also of those that do not run. ``code`` is a hash
    of the user's own components. ``duplicate_rows`` are the numbers of test rows that are also
    train rows and of all test rows. ``facts`` are its other statistics. ``cut`` is a line
    about its folds. ``tested`` are the positions of all test questions. ``ignores_folds`` is set
    if a number of folds was requested and its split has none. If the data cannot be used,
    ``data_error`` is the reason and ``folds`` are the requested folds.
    """

    task: Task
    data: Dataset | None
    folds: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    blind: bool = False
    unavailable: str = ""
    data_error: str = ""
    code: str = ""
    duplicate_rows: tuple[int, int] = (0, 0)
    facts: Mapping[str, Any] = field(default_factory=dict)
    cut: str = ""
    tested: np.ndarray | None = None
    ignores_folds: bool = False

    @cached_property
    def asked(self) -> str:
        """A hash of the task's definition; cached because fixed folds list many rows."""
        task = self.task
        parts = [task.probe, task.split, task.metrics, task.missing, task.corruptions, task.draws]
        # the default is not a part, so that runs of earlier versions can be resumed
        predictions_kept = [] if task.keep_predictions == "all" else [task.keep_predictions]
        roles = self.data.roles if self.data is not None else ()
        drawn = [self.data.drawn_by] if self.data is not None else []
        drawn = [by for by in drawn if by != "name"]
        return _hash([*parts, *predictions_kept, *([{"roles": roles}] if roles else []), *drawn])


def _hash(value: object) -> str:
    def name(value: object) -> str:  # ``code`` is the hash of a function's source
        return getattr(value, "__qualname__", None) or str(value)

    return sha256_of(json.dumps(value, sort_keys=True, default=name))


@dataclass(frozen=True)
class Decline:
    """A task that a model cannot run, and the reason.

    ``lacks`` is "library" if the model lacks a library or file, "data" if the task lacks its
    data, and empty if the model is not made for the task.
    """

    model: str
    task: str
    reason: str
    lacks: str = ""


@dataclass(frozen=True)
class Plan:
    """The jobs to run, as (model, planned task, fold) in order, and what will not run.

    ``identities`` are the hashes of the models; None if a model cannot be hashed.
    ``lost_tasks`` are tasks whose data cannot be used: they fail for every model. ``part`` are the
    folds by model and task if this is a part of a plan. ``seeds`` is the number of fits of each
    fold by models that use a seed: ``models`` has a replicate of them for each further one, and
    ``seeded`` are the names of these models with those of the tasks on which they use a seed.
    """

    models: tuple[Model, ...]
    tasks: tuple[PlannedTask, ...]
    jobs: tuple[tuple[Model, PlannedTask, int], ...]
    declined: tuple[Decline, ...]
    seed: int
    identities: Mapping[str, str | None]
    skipped_corruptions: tuple[Decline, ...] = ()
    lost_tasks: tuple[Decline, ...] = ()
    limits: Limits = Limits()
    part: Mapping[tuple[str, str], tuple[int, ...]] | None = None
    seeds: int = 1
    seeded: frozenset[tuple[str, str]] = frozenset()

    def take(self, places: Iterable[int]) -> Plan:
        """Return the part with these jobs, its models and its tasks, without what is declined."""
        jobs = tuple(self.jobs[position] for position in sorted(places))
        folds: dict[tuple[str, str], list[int]] = {}
        for model, planned, fold in jobs:
            folds.setdefault((model.key, planned.task.name), []).append(fold)
        models, tasks = (set(names) for names in zip(*folds, strict=True))
        return dataclasses.replace(
            self,
            models=tuple(model for model in self.models if model.key in models),
            tasks=tuple(planned for planned in self.tasks if planned.task.name in tasks),
            jobs=jobs,
            declined=(),
            skipped_corruptions=(),
            lost_tasks=(),
            part={pair: tuple(sorted(pair_folds)) for pair, pair_folds in folds.items()},
        )

    def services(self) -> list[str]:
        """Return the names of the services that models, or their stages, send texts to."""
        prototypes = [model.prototype for model in self.models]
        encoders = [
            *prototypes,
            *(stage for prototype in prototypes for stage in stage_encoders(prototype)),
        ]
        return sorted({service for prototype in encoders if (service := service_of(prototype))})

    def folds_of(self, model: Model, planned: PlannedTask) -> tuple[int, ...]:
        """Return the folds of a task that are planned for a model."""
        if self.part is not None:
            return self.part.get((model.key, planned.task.name), ())
        is_planned = not model.replicate or (model.name, planned.task.name) in self.seeded
        return planned.folds if is_planned else ()

    @cached_property
    def _specs(self) -> dict[tuple[str, str], SpecHash]:
        return {}

    def limits_of(self, task: Task) -> Limits | None:
        """Return the limits of each job of a task: its own, else the constraint's."""
        task_limits = Limits(task.max_runtime_seconds, task.max_mem_size_mb, task.cores, task.gpus)
        limits = {name: value for name, value in vars(task_limits).items() if value is not None}
        return dataclasses.replace(self.limits, **limits) or None


def make_plan(
    models: Sequence[Model],
    tasks: Iterable[Task],
    *,
    seed: int = 42,
    folds: int | None = None,
    only_folds: Sequence[int] | None = None,
    max_folds: int | None = None,
    max_rows: int | None = None,
) -> Plan:
    """Return the plan, or raise one DefinitionError that lists the mistakes of all tasks.

    ``folds`` is the number of folds of each split, and ``only_folds`` selects some of them;
    ``max_folds`` and ``max_rows`` are the constraint's limits.
    """
    wanted = _Wanted(seed, folds, only_folds, max_folds, max_rows)
    planned: list[PlannedTask] = []
    identities: dict[str, str | None] = {}
    mistakes, datasets = _Mistakes(), _Datasets()
    for task in tasks:
        with mistakes.collected(f'task "{task.name}"'):
            load = functools.partial(datasets.load, task)
            planned.append(_plan_task(task, load, wanted))
    if mistakes.messages or all(task_plan.data is None for task_plan in planned):
        mistakes.messages += [task_plan.data_error for task_plan in planned if task_plan.data_error]
    encoders: dict[tuple[int, tuple[str, ...]], str | None] = {}
    for model in models:
        with mistakes.collected(f'model "{model.name}"'):
            key = id(model.prototype), model.depends_on  # variants have one prototype
            if key not in encoders:
                unknown = model.unavailable
                encoders[key] = None if unknown else encoder_identity(model, model.prototype)
            identities[model.name] = variant_identity(encoders[key], model.variant)
    names = Counter(task_plan.task.name for task_plan in planned)
    twice = sorted(name for name, count in names.items() if count > 1)
    mistakes.messages += [f'duplicate task name "{name}"; rename one.' for name in twice]
    if folds is not None and not mistakes.messages:
        mistakes.messages += _check_folds_used(planned, folds)
    if mistakes.messages:
        raise DefinitionError(*dict.fromkeys(mistakes.messages)) from mistakes.first
    jobs, declined, skipped, lost_tasks = _jobs(models, planned)
    log.debug("plan: %d jobs, %d declined, %d lost", len(jobs), len(declined), len(lost_tasks))
    return Plan(
        tuple(models), tuple(planned), jobs, declined, seed, identities, skipped, lost_tasks
    )


def refuse_modalities(plan: Plan, reasons: Mapping[str, Mapping[str, str]]) -> Plan:
    """Return the plan in which models decline tasks, by model and modality, with the reasons."""
    models = tuple(
        dataclasses.replace(model, refused=reasons.get(model.name, {})) for model in plan.models
    )
    jobs, declined, skipped, lost_tasks = _jobs(models, plan.tasks)
    return dataclasses.replace(
        plan,
        models=models,
        jobs=jobs,
        declined=declined,
        skipped_corruptions=skipped,
        lost_tasks=lost_tasks,
    )


def idle_reasons(plan: Plan) -> dict[str, str]:
    """Return the models that no job of a plan is for, each with the reason for its first task."""
    busy = {model.name for model, _, _ in plan.jobs}
    reasons: dict[str, str] = {}
    for decline in (*plan.declined, *plan.lost_tasks):
        if decline.model not in busy:
            reasons.setdefault(decline.model, decline.reason.partition(" Tried:")[0])
    return reasons


def require_jobs(plan: Plan) -> None:
    """Raise a DefinitionError with the reasons if a plan has no jobs."""
    if not plan.jobs:
        reasons = "; ".join(f"{model}: {reason}" for model, reason in idle_reasons(plan).items())
        raise DefinitionError(f"the plan has no jobs. {reasons}. karat plan shows every reason.")


def add_replicates(plan: Plan, seeds: int) -> Plan:
    """Return the plan in which models that use a seed are fitted this often on each fold."""
    if seeds == 1:
        return plan
    seeded = frozenset(seeded_pairs(plan.models, plan.tasks))
    if plan.jobs and not seeded:
        raise DefinitionError(
            f"seeds={seeds} has no effect: none of these models uses a seed on these tasks."
        )
    models = tuple(_with_replicates(plan.models, seeds, {name for name, _ in seeded}))
    jobs = _jobs(models, plan.tasks, seeded)[0]
    return dataclasses.replace(plan, models=models, jobs=jobs, seeds=seeds, seeded=seeded)


def seeded_pairs(
    models: Sequence[Model], planned: Sequence[PlannedTask]
) -> Iterator[tuple[str, str]]:
    """Yield the names of models and tasks where the model, or the head, uses a seed."""
    random_heads = {task_plan.task.name for task_plan in planned if _head_uses_seed(task_plan)}
    for model in models:
        for task_plan in planned:
            if task_plan.data is not None and not decline_reason(model, task_plan):
                by_head = task_plan.task.name in random_heads and model.role == "encoder"
                if by_head or depends_on_seed(model.prototype, task_plan.data.kind):
                    yield model.name, task_plan.task.name


def _head_uses_seed(planned: PlannedTask) -> bool:
    """Return whether the head of a task is random; other probes train nothing."""
    probe: Any = planned.task.probe
    if probe["use"] != "trained" or planned.data is None:
        return False
    data = planned.data
    chosen = probe.get("head") or ("kmeans" if planned.blind else HEADS.get(data.kind))
    params = dict(chosen) if isinstance(chosen, Mapping) else {"use": chosen}
    name = params.pop("use", None)
    if name is None or "random_state" not in accepts(heads.get(name))[0]:
        return False
    offers = {"kind": data.kind, "random_state": 0, "n_clusters": max(len(data.classes), 2)}
    head = build(f'task "{planned.task.name}": head "{name}"', heads.get(name), params, offers)
    # a head that hides its seed inside is taken to use it
    return depends_on_seed(head, data.kind) or not seed_parameters(head)


def _with_replicates(
    models: Iterable[Model], seeds: int, seeded: Container[str]
) -> Iterator[Model]:
    """Yield each model, followed by its replicates if it uses a seed."""
    for model in models:
        yield model
        for replicate in range(1, seeds if model.name in seeded else 1):
            yield dataclasses.replace(model, replicate=replicate)


def _jobs(
    models: Sequence[Model],
    planned: Sequence[PlannedTask],
    seeded: Container[tuple[str, str]] = (),
) -> list[tuple[Any, ...]]:
    """Return the jobs in their order, declined tasks, skipped corruptions and lost tasks.

    A replicate runs the tasks on which the model uses a seed; what it cannot run is not repeated.
    """
    jobs: list[tuple[Model, PlannedTask, int]] = []
    declined, skipped, lost_tasks = [], [], []
    position = {id(task_plan): i for i, task_plan in enumerate(planned)}
    first = _first_tasks(planned)
    for model in models:
        model_jobs: list[tuple[Model, PlannedTask, int]] = []
        for task_plan in planned:
            name, data = task_plan.task.name, task_plan.data
            if model.replicate:
                folds = task_plan.folds if (model.name, name) in seeded else ()
                model_jobs += [(model, task_plan, fold) for fold in folds]
            elif reason := decline_reason(model, task_plan):
                lacks = "library" if model.unavailable else "data" if data is None else ""
                declined.append(Decline(model.name, name, reason, lacks))
            elif data is None:
                lost_tasks.append(Decline(model.name, name, task_plan.data_error))
            else:
                model_jobs += [(model, task_plan, fold) for fold in task_plan.folds]
                views = [View(corruption, 1.0) for corruption in task_plan.task.corruptions]
                reasons = [reason_not_applicable(view, data, model.role) for view in views]
                skipped += [Decline(model.name, name, reason) for reason in reasons if reason]
        # the heads of a fold run one after the other and share scaled vectors and kernels
        jobs += sorted(model_jobs, key=lambda job: (first[id(job[1])], job[2]))
    # with corruptions, the models of a fold run one after the other and share the corrupted data
    jobs.sort(
        key=lambda job: (position[id(job[1])], job[2]) if job[1].task.corruptions else (-1, 0)
    )
    return [tuple(jobs), tuple(declined), tuple(skipped), tuple(lost_tasks)]


def _first_tasks(planned: Sequence[PlannedTask]) -> dict[int, int]:
    """Return, by task, the position of the first task with a trained probe on the same data."""
    first: dict[int, int] = {}
    positions: dict[int, int] = {}
    for i, task_plan in enumerate(planned):
        trained = task_plan.task.probe["use"] == "trained"  # type: ignore[index]
        positions[id(task_plan)] = first.setdefault(id(task_plan.data), i) if trained else i
    return positions


def decline_reason(model: Model, planned: PlannedTask) -> str:
    """Return why a model cannot run a task, or an empty string if it can."""
    data = planned.data
    if model.unavailable or data is None:
        return model.unavailable or planned.unavailable
    if model.takes is not None and data.modality not in model.takes:
        takes = " and ".join(PLURAL.get(m, m) for m in model.takes)
        hint = "; TableSentences writes them as text for it" if _writes(model, data) else ""
        return f"the model takes {takes}, not {PLURAL[data.modality]}{hint}"
    if data.modality in model.refused:
        return model.refused[data.modality]
    probe: Any = planned.task.probe
    if model.role == "searcher" and probe["use"] != "nearest":
        return f"a search model ranks documents; it has no vectors for the {probe['use']} probe"
    return _predictor_reason(model, planned, data) if model.role == "predictor" else ""


def _predictor_reason(model: Model, planned: PlannedTask, data: Dataset) -> str:
    """Return why a predictor cannot run a task, or an empty string."""
    probe: Any = planned.task.probe
    if probe["use"] != "trained" or data.kind == "items":
        return f"a predictor has no vectors for the {probe['use']} probe"
    if planned.blind:
        return "a predictor needs targets to train on, and this task hides them"
    if len(data.fields) != 1 or len(data.mentions(data.fields[0]).rows) != len(data):
        return "a predictor needs questions about one item each"
    if hasattr(model.prototype, "declines"):
        try:
            return str(model.prototype.declines(data.kind) or "")
        except KaratError:
            raise
        except Exception as error:
            return encodable(f"its declines() raised {type(error).__name__}: {error}")
    made_for = getattr(sklearn_tags(model.prototype), "estimator_type", None)
    if data.kind == "classification" and made_for == "regressor":
        return "the model is a regressor and the task is a classification"
    if data.kind == "regression" and made_for == "classifier":
        return "the model is a classifier and the task is a regression"
    return ""


def _writes(model: Model, data: Dataset) -> bool:
    """Return whether a sentence encoder could take columns or tables that are written as text."""
    return data.modality in ITEM_TYPES and model.takes is not None and "text" in model.takes


class SpecHash:
    """Hashes of the jobs of one model on one task, which differ in their folds only."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        text = json.dumps({**facts, "fold": None}, sort_keys=True)
        head, _, tail = text.partition('"fold": null')  # quotes inside texts are escaped
        self._head, self._tail = hashlib.sha256(head.encode()), tail.encode()

    def of(self, fold: int) -> str:
        """Return the hash of the job of a fold."""
        digest = self._head.copy()
        digest.update(f'"fold": {fold}'.encode() + self._tail)
        return digest.hexdigest()


def spec_facts(plan: Plan, planned: PlannedTask) -> dict[str, Any]:
    """Return what the scores of a job depend on besides the model, the fold and Karat's version."""
    data, limits = planned.data, plan.limits_of(planned.task)
    return {
        "task": planned.asked,
        "code": planned.code,
        "data": [data.name, data.fingerprint] if data is not None else [],
        "seed": plan.seed,
        **(limits.as_params() if limits else {}),
    }


def job_spec(plan: Plan, model: Model, planned: PlannedTask, fold: int) -> str:
    """Return a hash of all that a job's scores depend on.

    For a model without an identity the hash is different each time.
    """
    from karat import __version__

    pair = model.key, planned.task.name
    if pair not in plan._specs or plan.identities[model.name] is None:
        identity = plan.identities[model.name] or os.urandom(16).hex()
        facts = {"model": identity, "version": model.version, "karat": __version__}
        facts |= spec_facts(plan, planned) | replicate_fact(model.replicate)
        plan._specs[pair] = SpecHash(facts)
    return plan._specs[pair].of(fold)


class _Mistakes:
    """Collects the errors of tasks and models, to raise them together."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.first: Exception | None = None

    @contextlib.contextmanager
    def collected(self, where: str) -> Iterator[None]:
        """Collect an error raised inside; ``where`` precedes errors of the user's own code."""
        try:
            yield
        except Exception as error:
            self.first = self.first or error
            if isinstance(error, DefinitionError):
                self.messages += error.messages
            elif isinstance(error, KaratError):
                self.messages.append(str(error))
            else:
                self.messages.append(f"{where}: {type(error).__name__}: {error}")


class _Datasets:
    """Loads each dataset once, for all tasks on it; so is the error of one that cannot be used."""

    def __init__(self) -> None:
        self.loaded: list[tuple[Any, Dataset | Exception]] = []

    def load(self, task: Task) -> Dataset:
        """Return the dataset of a task, with the task's positive class."""
        data = self._load(task)
        return data if task.positive is None else data.with_positive(task.positive)

    def _load(self, task: Task) -> Dataset:
        if isinstance(task.dataset, Dataset):
            return task.dataset
        # loaders of one definition are equal; they hold mappings and cannot be keys
        data_or_error = next((data for source, data in self.loaded if source == task.dataset), None)
        if data_or_error is None:
            try:
                data_or_error = _load(task)
            except (DataError, MissingExtra) as error:
                data_or_error = error
            self.loaded.append((task.dataset, data_or_error))
        if isinstance(data_or_error, Exception):
            raise data_or_error
        return data_or_error


@dataclass(frozen=True)
class _Wanted:
    """What ``make_plan`` was asked for: the seed, the folds and the rows of every task."""

    seed: int
    folds: int | None
    only_folds: Sequence[int] | None
    max_folds: int | None
    max_rows: int | None

    def most_folds(self, task: Task) -> int | None:
        """Return the largest number of folds to run; a requested number is not limited."""
        if self.folds is not None:
            return None
        if task.max_folds is None and task.folds is None:
            return self.max_folds
        return task.max_folds


def _check_folds_used(planned: Sequence[PlannedTask], folds: int) -> Iterator[str]:
    """Yield a mistake if no split has a number of folds; warn if some splits have none."""
    names = [task_plan.task.name for task_plan in planned if task_plan.ignores_folds]
    listed = ", ".join(names)
    if names and len(names) == sum(task_plan.data is not None for task_plan in planned):
        yield (
            f"folds={folds} has no effect: {listed} {'has' if len(names) == 1 else 'have'} a "
            f"split without a number of folds, such as a holdout or a given test part; remove "
            f"folds, or give the task split=kfold (-X t.split=kfold)."
        )
    elif names:
        text = "folds=%d has no effect on %s: their splits have no number of folds."
        warnings.warn(text % (folds, listed), KaratWarning, stacklevel=2)


def _plan_task(task: Task, load: Callable[[], Dataset], wanted: _Wanted) -> PlannedTask:
    check_components(task)
    try:
        data = load()
    except (DataError, MissingExtra) as error:
        task = dataclasses.replace(task, metrics=task.metrics or ("?",))
        if isinstance(error, Unavailable | MissingExtra):
            return PlannedTask(task, None, unavailable=str(error))
        return PlannedTask(task, None, _expected_folds(task, wanted), data_error=str(error))
    most = wanted.most_folds(task)
    task, data, cut = _sampled_and_split(task, data, wanted)
    check_head(task, data)
    blind = any(np.isin(fold.train, fold.test).any() for fold in cut)
    task = dataclasses.replace(task, metrics=task.metrics or default_metrics(task, data, blind))
    check_metrics(task, data, blind)
    chosen = _chosen_folds(task, len(cut), most, wanted.only_folds)
    run, how = [cut[fold] for fold in chosen], dict(task.split)  # type: ignore[arg-type]
    return PlannedTask(
        task,
        data,
        tuple(chosen),
        repeats=tuple(fold.repeat for fold in cut),
        blind=blind,
        duplicate_rows=(0, 0) if blind else count_duplicates(data, run),
        code=hash_user_components(task),
        facts={"split": split_facts(how, cut), **task_facts(data, run, blind)},
        cut=describe_split(data, how, cut),
        tested=np.flatnonzero(np.bincount(np.concatenate([fold.test for fold in cut]))),
        ignores_folds=wanted.folds is not None and wanted.folds != how.get("folds"),
    )


def _chosen_folds(
    task: Task, count: int, most: int | None, only: Sequence[int] | None
) -> list[int]:
    """Return the folds to run of all; raise a DefinitionError if one of ``only`` does not exist."""
    if wrong := [fold for fold in only or () if not 0 <= fold < count]:
        raise DefinitionError(
            f'task "{task.name}" has no fold {wrong[0]}; its folds are 0 to {count - 1}.'
        )
    return sorted(set(range(count)[:most] if only is None else only))


def _sampled_and_split(
    task: Task, data: Dataset, wanted: _Wanted
) -> tuple[Task, Dataset, list[Fold]]:
    """Return the task with the split that its data select, the sampled data, and the folds."""
    seed, whole = wanted.seed, data
    rows = min((n for n in (task.max_rows, wanted.max_rows) if n is not None), default=None)
    if rows is not None:
        # seeded with the dataset, so that all tasks on it use the same rows
        rng = np.random.default_rng([seed, zlib.crc32(f"rows {data.draw_key}".encode())])
        data = data.sample(rows, rng)
    how: Any = task
    try:
        data = data if task.ask is None else generate_queries(data, how.ask, seed)
        data = data.with_roles(_field_roles(task)) if task.roles else data
        if task.cv is not None:
            folds = cv_folds(data, task.cv, seed, is_sample=len(data) < len(whole))
            chosen: dict[str, Any] = {"use": "fixed", "folds": folds}
        else:
            chosen = _numbered_split(task, data, wanted)
        task = dataclasses.replace(task, split=chosen, folds=None, cv=None)
        return task, data, split(data, chosen, seed)
    except DefinitionError as error:
        raise with_task_name(task, error) from error


def _numbered_split(task: Task, data: Dataset, wanted: _Wanted) -> dict[str, Any]:
    """Return the split that the data select, with the requested number of folds if it has one."""
    how: Any = task.split
    chosen = choose_split(data, how)
    can_set = has_number_of_folds(chosen)
    if task.folds is not None and not can_set:
        raise DefinitionError(
            f'folds={task.folds} has no effect on the split "{chosen["use"]}" of {data.name}; '
            f"remove folds, or set split=kfold."
        )
    number = wanted.folds if wanted.folds is not None else task.folds
    return chosen if number is None or not can_set else {**chosen, "folds": number}


def _field_roles(task: Task) -> tuple[str, ...]:
    """Return the roles of the fields; queries that are candidates too have both roles."""
    probe: Any = task.probe
    among = probe["use"] == "nearest" and probe.get("queries", "among") == "among"
    return tuple(QUERY_AND_DOCUMENT if among and role == QUERY else role for role in task.roles)


def _load(task: Task) -> Dataset:
    if isinstance(task.dataset, str):
        raise DefinitionError(f'task "{task.name}": dataset "{task.dataset}" was not resolved.')
    load: Any = task.dataset
    data = load()
    if not isinstance(data, Dataset):
        raise DefinitionError(
            f'task "{task.name}": the dataset function must return a karat.Dataset, '
            f"got {type(data).__name__}."
        )
    return data


def _expected_folds(task: Task, wanted: _Wanted) -> tuple[int, ...]:
    """Return the folds that would run if the data were available, guessed from the definition."""
    if wanted.only_folds is not None:
        return tuple(sorted(set(wanted.only_folds)))
    how: Any = task.split
    usual = 5 if how["use"] in ("auto", "kfold") else 1
    numbers = (wanted.folds, task.folds, how.get("folds"), task.cv)
    count = next((number for number in numbers if isinstance(number, int)), usual)
    return tuple(range(count)[: wanted.most_folds(task)])


def pick_tasks(tasks: Iterable[Task], wanted: Sequence[str], suite: str = "") -> list[Task]:
    """Return the tasks of these names or patterns, such as ``adult*``.

    The suite's name may be omitted: ``adult`` is ``taco-adult`` in the suite ``taco``.
    """
    from fnmatch import fnmatchcase

    def fits(name: str, pattern: str) -> bool:
        short = name.removeprefix(f"{suite}-")
        return pattern in (name, short) or fnmatchcase(name, pattern)

    tasks = list(tasks)
    names = [task.name for task in tasks]
    unknown = [
        f'the suite has no task "{pattern}".{did_you_mean(pattern, names)} '
        f"It has: {', '.join(names)}"
        for pattern in wanted
        if not any(fits(name, pattern) for name in names)
    ]
    if unknown:
        raise DefinitionError(*unknown)
    return [task for task in tasks if any(fits(task.name, pattern) for pattern in wanted)]
