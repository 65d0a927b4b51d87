"""``gather``: merge the runs of shards, and find the jobs that are missing or there twice.

A job is identified by its hash, as in ``--resume``. Records of all shards go into one file per run;
predictions, logs and artifacts are linked, or copied to another disk.

``plan.json`` has all jobs of a plan with their hashes and is next to the runs of each shard; here
it is read to find what is missing. The hash of a job is not stored but computed from the facts of
its model and its task, so that the file of a million jobs has a few megabytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from karat.core.digest import sha256_of
from karat.core.files import encodable
from karat.core.formatting import count
from karat.core.replicates import replicate_fact, replicate_name, replicate_of
from karat.core.writing import draft_folder, remove_drafts, write_atomic
from karat.errors import FAILURES, DataError, DefinitionError
from karat.execution.job import new_record
from karat.execution.plan import Plan, SpecHash, spec_facts
from karat.execution.run_facts import task_entry
from karat.execution.session import SAME, Session
from karat.models.model import Model
from karat.output.result import Result
from karat.results.load import FrozenRun
from karat.results.run import Run, earlier_runs
from karat.results.run_folders import find_run_folders
from karat.results.stored_facts import check_about
from karat.results.stored_json import read_json_object

FILE = "plan.json"
SCHEMA = 1
#: facts about all jobs of a plan
_COMMON = ("karat", "suite", "constraint", "mode", "seed")
#: folders of a run that are not divided by task and fold, or are written anew
_OWN = ("jobs", "scores", "missing", "items")
Job = tuple[str, str, int]


@dataclass(frozen=True)
class PlanFile:
    """The content of a ``plan.json``."""

    path: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """Read a file; raise DataError if it is damaged."""
        content = read_json_object(path)
        plan = cls(path, content)
        try:
            wrong = "schema" if content["schema"] != SCHEMA else ""
            tasks = [task["facts"] for task in content["tasks"]]
            for model in content["models"]:
                wrong = wrong or check_about({**model["about"], "tasks": tasks})
                tasks = []  # checked once
            count = sum(1 for _ in plan.jobs())
            if content["parts"] and sum(size for _, size in content["parts"]) != count:
                wrong = "parts"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path} is damaged: {type(error).__name__}: {error}.") from error
        if wrong:
            raise DataError(f"{path} is damaged: {wrong} is missing or wrong.")
        return plan

    @property
    def models(self) -> list[Mapping[str, Any]]:
        """The models: their ``about``, identity, and the tasks that do not run."""
        return list(self.content["models"])

    @cached_property
    def tasks(self) -> dict[str, Mapping[str, Any]]:
        """The facts of the tasks as in ``run.json``, and those that hashes depend on, by name."""
        return {task["facts"]["name"]: task for task in self.content["tasks"]}

    @cached_property
    def count(self) -> int:
        """The number of parts, 0 if there are none."""
        return int(self.content["count"])

    def folds(self, model: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        """Yield the task and fold of each job of a model."""
        declined = {name for name, *_ in model["declined"]}
        for name, task in self.tasks.items():
            if name not in declined and name in model.get("only", (name,)):
                yield from ((name, fold) for fold in task["facts"]["folds"])

    def jobs(self) -> Iterator[tuple[str, str, int]]:
        """Yield the model, task and fold of each job."""
        for model in self.models:
            yield from ((_key(model["about"]), *job) for job in self.folds(model))

    def parts(self) -> Iterator[int]:
        """Yield the part of each job, counted from 1, in the order of ``jobs``."""
        for part, size in self.content["parts"]:
            yield from (part for _ in range(size))

    def specs(self, model: Mapping[str, Any]) -> dict[tuple[str, int], str] | None:
        """Return the hashes of the jobs of a model; None if it cannot be hashed."""
        if model["identity"] is None:
            return None
        settings = model["about"]
        facts = {"model": model["identity"], "version": settings["version"]}
        facts["karat"] = self.content["karat"]
        facts |= replicate_fact(replicate_of(settings))
        hashes = {
            name: SpecHash({**facts, "seed": self.content["seed"], **task["spec"]})
            for name, task in self.tasks.items()
        }
        return {(task, fold): hashes[task].of(fold) for task, fold in self.folds(model)}

    def not_run(self, model: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str | None]]:
        """Yield the record, the reason and what lacks of each task that does not run."""
        for name, reason, lacks in model["declined"]:
            facts = self.tasks[name]["facts"]
            record = new_record("", model["about"]["model"], _Named(name, facts))  # type: ignore[arg-type]
            yield record, reason, lacks

    def difference(self, other: PlanFile) -> str:
        """Return in what the jobs of another plan differ; empty if they are the same."""
        for key in _COMMON:
            if self.content[key] != other.content[key]:
                return f"{key} is {self.content[key]!r} and {other.content[key]!r}"
        for what, jobs in (("task", _task_jobs), ("model", _model_jobs)):
            mine, theirs = jobs(self), jobs(other)
            for name in dict.fromkeys([*mine, *theirs]):
                if name not in mine or name not in theirs:
                    return f'{what} "{name}" is in one of them only'
                if mine[name] != theirs[name]:
                    return f'{what} "{name}" has another definition, code, data or library version'
        return ""

    @cached_property
    def digest(self) -> str:
        """A hash of all jobs."""
        facts = [[self.content[key] for key in _COMMON], _task_jobs(self), _model_jobs(self)]
        return sha256_of(json.dumps(facts))


def _key(settings: Mapping[str, Any]) -> str:
    """Return the name of the model of a run, with the number of its seed after the first."""
    return replicate_name(str(settings["model"]), replicate_of(settings))


@dataclass(frozen=True)
class _Named:
    """What a record needs of a task."""

    name: str
    facts: Mapping[str, Any]

    @property
    def kind(self) -> Any:
        return self.facts["kind"]

    @property
    def metrics(self) -> Any:
        return self.facts["metrics"]


def _task_jobs(plan: PlanFile) -> dict[str, Any]:
    return {name: [task["facts"]["folds"], task["spec"]] for name, task in plan.tasks.items()}


def _model_jobs(plan: PlanFile) -> dict[str, Any]:
    return {
        _key(model["about"]): [
            model["identity"],
            model["about"]["version"],
            [name for name, *_ in model["declined"]],
            *([model["only"]] if "only" in model else []),
        ]
        for model in plan.models
    }


def write_plan_file(
    folder: Path, session: Session, parts: Mapping[int, int], *, replace: bool = False
) -> None:
    """Write the plan of a session; ``parts`` are those of its jobs, counted from 0.

    A file of the same plan stays as it is. One of another plan is an error unless ``replace``.
    """
    path = folder / FILE
    plan = PlanFile(path, _content(session, parts))
    if path.is_file() and not replace:
        if difference := PlanFile.read(path).difference(plan):
            raise DefinitionError(
                f"{path} is of another plan: {difference}; choose another --output."
            )
        return
    text = json.dumps(plan.content, allow_nan=False, default=str)
    write_atomic(path, text, durable=True)


def _content(session: Session, parts: Mapping[int, int]) -> dict[str, Any]:
    plan, options = session.plan, session.options
    declined: dict[str, list[Any]] = {}
    for job in plan.declined:
        declined.setdefault(job.model, []).append([job.task, encodable(job.reason), job.lacks])
    for job in plan.lost_tasks:
        declined.setdefault(job.model, []).append([job.task, encodable(job.reason), None])
    models: list[dict[str, Any]] = [
        {
            "about": session.about_model(model),
            "identity": plan.identities[model.name],
            "declined": declined.get(model.key, []),
            **_replicated_tasks(plan, model),
        }
        for model in plan.models
    ]
    tasks = [
        {"facts": task_entry(planned), "spec": spec_facts(plan, planned)} for planned in plan.tasks
    ]
    settings = models[0]["about"]
    return {
        "schema": SCHEMA,
        **{key: settings[key] for key in _COMMON},
        "command": list(options.command),
        "output": str(options.output),
        "count": max(parts.values(), default=-1) + 1,
        "tasks": tasks,
        "models": models,
        "parts": _run_lengths(plan, parts),
    }


def _replicated_tasks(plan: Plan, model: Model) -> dict[str, list[str]]:
    """Return the tasks that a replicate runs: those on which the model uses a seed."""
    names = [planned.task.name for planned in plan.tasks if plan.folds_of(model, planned)]
    return {"only": names} if model.replicate else {}


def _run_lengths(plan: Plan, parts: Mapping[int, int]) -> list[list[int]]:
    """Return the parts of all jobs by model, task and fold, as [part from 1, number of jobs]."""
    model_place = {model.key: number for number, model in enumerate(plan.models)}
    task_place = {planned.task.name: number for number, planned in enumerate(plan.tasks)}
    rows = sorted(
        (model_place[model.key], task_place[planned.task.name], fold, parts[job] + 1)
        for job, (model, planned, fold) in enumerate(plan.jobs if parts else ())
    )
    lengths: list[list[int]] = []
    for *_, part in rows:
        if lengths and lengths[-1][0] == part:
            lengths[-1][1] += 1
        else:
            lengths.append([part, 1])
    return lengths


@dataclass(frozen=True, repr=False)
class Gathering(Result):
    """The result of ``gather``: runs, and the jobs that are missing, double, differing or outdated.

    Attributes
    ----------
    runs
        The merged runs, one per model.
    planned
        Number of jobs of the plan.
    missing
        Model, task and fold of each job without a record.
    double
        Jobs with several records and the same scores; one of them counts.
    differing
        Jobs with several records and different scores; the oldest one counts.
    outdated
        Jobs with records of another version of model, data or task, which do not count.
    failed
        Number of jobs that failed, ran out of time or memory.
    commands
        Commands that run what is missing, with what each one runs.
    """

    runs: list[Run]
    planned: int
    missing: list[Job] = field(default_factory=list)
    double: list[Job] = field(default_factory=list)
    differing: list[Job] = field(default_factory=list)
    outdated: list[Job] = field(default_factory=list)
    failed: int = 0
    commands: dict[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """How many of the planned jobs are there."""
        done = self.planned - len(self.missing)
        return (
            f"{done:,} of {self.planned:,} jobs of {count(len(self.runs), 'run')}, {self.failed:,} "
            f"failed, {len(self.differing):,} with different scores."
        )

    @property
    def details(self) -> list[str]:
        """What to run."""
        return self.todo

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; runs are their folders."""
        return {**super().to_dict(), "runs": [str(run.folder) for run in self.runs]}

    @property
    def todo(self) -> list[str]:
        """What to run, and the command."""
        return [f"{text}: {command}" for text, command in self.commands.items()]

    @property
    def is_complete(self) -> bool:
        """Whether every planned job is there and equal jobs have equal scores."""
        return not self.missing and not self.differing


def gather(folders: str | Path | Sequence[str | Path], output: str | Path) -> Gathering:
    """Merge the runs that shards have written.

    The tables are those of a run on one machine. Runs that were gathered into ``output`` before are
    completed, so the call can be repeated while shards still run.

    Parameters
    ----------
    folders : path or sequence of paths
        Output folders of ``karat run --shard``, folders of single shards, or run
        folders.
    output : path
        Where to write one run folder per model.

    Returns
    -------
    Gathering
        The merged runs, and which planned jobs are missing, double, different or outdated.

    Raises
    ------
    DataError
        If no folder has a plan, or if the shards are of different plans.

    Examples
    --------
    >>> import tempfile, karat
    >>> folder = tempfile.mkdtemp()
    >>> for shard in ("1/2", "2/2"):
    ...     machines = karat.Machines(shard=shard)
    ...     runs = karat.evaluate("dummy", ["diabetes"], output=folder, workers=machines)
    >>> found = karat.gather(folder, f"{folder}/gathered")
    >>> found.is_complete, found.planned
    (True, 5)
    """
    several = [folders] if isinstance(folders, str | Path) else list(folders)
    paths = list(dict.fromkeys(Path(folder) for folder in several))
    plan = _common_plan(paths)
    into = Path(output)
    if into.exists() and not into.is_dir():
        raise DefinitionError(
            f"cannot write to {into}: it is not a folder; choose another --output."
        )
    sources = _runs_by_model(paths, into)
    before: dict[str, list[Run]] = {}
    for run in earlier_runs(into, {}, ()) if into.is_dir() else ():
        if run.about.get("gathered"):
            before.setdefault(_key(run.about), []).append(run)
    gathering = Gathering([], sum(1 for _ in plan.jobs()))
    failed = 0
    with draft_folder(into) as draft:
        for model in plan.models:
            name = _key(model["about"])
            merge = _Merge(
                plan=plan,
                model=model,
                draft=draft,
                sources=sources.get(name, []),
                before=before.get(name, []),
                report=gathering,
            )
            gathering.runs.append(merge.write())
            failed += merge.failed
    commands = dict(_commands(plan, gathering.missing, into)) if gathering.missing else {}
    return Gathering(**{**vars(gathering), "failed": failed, "commands": commands})


def _common_plan(paths: Iterable[Path]) -> PlanFile:
    """Return the plan of all shards, or raise a DataError that names what differs."""
    plans: list[PlanFile] = []
    for path in paths:
        if not path.is_dir():
            raise DataError(f"{path} {'is not a folder' if path.exists() else 'does not exist'}.")
        files = [path / FILE, *sorted(path.glob(f"*/{FILE}"))]
        plans += [PlanFile.read(file) for file in files if file.is_file()]
    if not plans:
        raise DataError(
            f"no {FILE} in {', '.join(map(str, paths))}; karat gather merges the output folders of "
            f"karat run with --shard."
        )
    for other in plans[1:]:
        if other.digest != plans[0].digest:
            difference = plans[0].difference(other)
            raise DataError(
                f"{plans[0].path} and {other.path} are of different plans: {difference}. Gather "
                f"the folders of one plan, with the same versions on every machine."
            )
    # a plan that was split in parts knows which command runs a missing job
    return max(plans, key=lambda plan: plan.count)


def _runs_by_model(paths: Iterable[Path], output: Path) -> dict[str, list[Run]]:
    """Return the runs of shards by model; those that were gathered into the output are not."""
    by_model: dict[str, list[Run]] = {}
    seen: set[Path] = set()
    for path in paths:
        for folder in sorted(find_run_folders(path, levels=(0, 1, 2))):
            if folder.resolve() in seen:
                continue
            seen.add(folder.resolve())
            with contextlib.suppress(DataError):  # its jobs are missing
                run = Run(folder)
                if not (run.about.get("gathered") and folder.parent.resolve() == output.resolve()):
                    by_model.setdefault(_key(run.about), []).append(run)
    return by_model


@dataclass
class _Merge:
    """The run of one model, merged from those of the shards; a new one is made in ``draft``."""

    plan: PlanFile
    model: Mapping[str, Any]
    draft: Path
    sources: list[Run]
    before: list[Run]
    report: Gathering
    failed: int = 0

    @cached_property
    def target(self) -> Run:
        """The run that was made before, or a draft."""
        settings = self._about()
        for run in self.before:
            if all(run.about.get(key) == settings.get(key) for key in SAME):
                for folder in (run.folder, run.folder / "jobs", run.folder / "scores"):
                    remove_drafts(folder)
                run.merge_plan(settings["tasks"], list(self.plan.tasks))
                return run
        return Run.create(self.draft, settings)

    def _about(self) -> dict[str, Any]:
        tables = {
            task["name"]: {"item_table": task["item_table"]}
            for run in self.sources
            for task in run.about["tasks"]
            if "item_table" in task
        }
        tasks = [
            {**task_plan["facts"], **tables.get(name, {})}
            for name, task_plan in self.plan.tasks.items()
            if name in self.model.get("only", (name,))
        ]
        return {**self.model["about"], "gathered": True, "tasks": tasks}

    def write(self) -> Run:
        """Merge the records, link the other files, write the tables, and return the run."""
        target = self.target
        files = _Files(self.draft)
        before = {(record["task"], record["fold"]) for record in target.records()}
        chosen = self._chosen([target, *self.sources])
        name = _key(self.model["about"])
        self.report.missing.extend(
            (name, *job) for job in self.plan.folds(self.model) if job not in chosen
        )
        for run in self.sources:
            files.link_tree(run.folder / "items", target.folder / "items")
        kinds = {id(run): run.folders() for run in self.sources}
        for job, (run, _) in chosen.items():
            if run is not target:
                link = _Link(run, target, {"task": job[0], "fold": job[1]}, job in before)
                link.make(kinds[id(run)], files)
        for record, reason, lacks in self.plan.not_run(self.model):
            if not target.has(record):
                target.write_not_run(record, reason, lacks)
        target.replace_records([record for _, record in chosen.values()])
        self.failed = sum(record["status"] in FAILURES for _, record in chosen.values())
        return target.move(self.draft.parent) if target.folder.parent == self.draft else target

    def _chosen(self, runs: Sequence[Run]) -> dict[tuple[str, int], tuple[Run, dict[str, Any]]]:
        """Return the record of each job that counts, with its run, and report the others."""
        specs = self.plan.specs(self.model)
        planned = set(self.plan.folds(self.model))
        records: dict[tuple[str, int], list[tuple[Run, dict[str, Any]]]] = {}
        outdated: dict[tuple[str, int], None] = {}
        for run in runs:
            for stored in FrozenRun.of(run).records():
                job = (stored["task"], stored["fold"])
                if job in planned and (specs is None or stored["spec"] == specs[job]):
                    records.setdefault(job, []).append((run, dict(stored)))
                elif stored["fold"] is not None:
                    outdated[job] = None
        name = _key(self.model["about"])
        self.report.outdated.extend((name, *job) for job in outdated if job not in records)
        return {job: self._first((name, *job), several) for job, several in records.items()}

    def _first(
        self, job: Job, several: list[tuple[Run, dict[str, Any]]]
    ) -> tuple[Run, dict[str, Any]]:
        """Return the record that counts: one with scores before a failure, then the oldest."""
        distinct: list[tuple[Run, dict[str, Any]]] = []
        for run, record in several:
            if all(record != other for _, other in distinct):
                distinct.append((run, record))
        if len(distinct) > 1:
            scores = [_scores(record) for _, record in distinct if record["status"] == "ok"]
            same = all(scores_of_record == scores[0] for scores_of_record in scores)
            (self.report.double if same else self.report.differing).append(job)
        return min(distinct, key=lambda entry: (entry[1]["status"] != "ok", str(entry[1]["utc"])))


def _scores(record: Mapping[str, Any]) -> list[Any]:
    keys = ("corruption", "severity", "draw", "scores")
    return [[view.get(key) for key in keys] for view in record["views"]]


@dataclass(frozen=True)
class _Link:
    """Links the files of a job from one run to another; ``replace`` those that are there."""

    source: Run
    target: Run
    job: Mapping[str, Any]
    replace: bool

    def make(self, kinds: Iterable[str], files: _Files) -> None:
        """Link predictions and artifacts of these kinds, and the log."""
        for kind in kinds:
            if kind == "logs":
                self._link_log(files)
            elif kind not in _OWN:
                into = self.target.artifact_folder(kind, self.job)
                if self.replace:
                    shutil.rmtree(into, ignore_errors=True)
                files.link_tree(self.source.artifact_folder(kind, self.job), into)

    def _link_log(self, files: _Files) -> None:
        if self.replace:
            self.target.log(self.job).unlink(missing_ok=True)
        if self.source.log(self.job).is_file():
            files.link(self.source.log(self.job), self.target.log(self.job))


@dataclass(frozen=True)
class _Files:
    """Links files, or copies those of another disk by way of a folder of drafts."""

    draft: Path

    def link_tree(self, source: Path, target: Path) -> None:
        """Link all files of a folder."""
        if not source.is_dir():
            return
        target.mkdir(parents=True, exist_ok=True)
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.is_dir():
                    self.link_tree(Path(entry.path), target / entry.name)
                elif not entry.name.endswith(".tmp"):
                    self.link(Path(entry.path), target / entry.name)

    def link(self, source: Path, target: Path) -> None:
        """Link a file, or copy it to another disk; an existing file stays."""
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            pass
        except OSError:
            copied = self.draft / "copy.tmp"
            shutil.copyfile(source, copied)
            os.replace(copied, target)


def _commands(plan: PlanFile, missing: Sequence[Job], output: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands that run the missing jobs: one per part, and one for all of them."""
    words = list(plan.content["command"])
    called = shlex.join(["karat", *words]) if words else "the same call of karat.evaluate with"
    before, whole = (f"{called} -o {shlex.quote(str(p))}" for p in (plan.content["output"], output))
    missing_jobs = set(missing)
    if plan.count > 1:
        jobs = list(zip(plan.jobs(), plan.parts(), strict=True))
        sizes = Counter(part for _, part in jobs)
        for part, number in sorted(
            Counter(part for job, part in jobs if job in missing_jobs).items()
        ):
            text = f"part {part} of {plan.count}: {number:,} of {sizes[part]:,} jobs are missing"
            yield text, f"{before} --shard {part}/{plan.count} --resume"
    yield f"all {len(missing_jobs):,} missing jobs on this machine", f"{whole} --resume"
