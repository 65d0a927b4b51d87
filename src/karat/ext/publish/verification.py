"""``verify``: find out whether the results in a run folder can be trusted.

Scores are computed again from the predictions, these are compared with the data, and a sample of
jobs is run again.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog, change_models
from karat.core.formatting import count, rounded
from karat.core.predictions import Predictions, as_text
from karat.core.replicates import model_seed, replicate_of
from karat.core.task import Suite, Task
from karat.corruptions.view import CLEAN, View
from karat.errors import FAILURES, DataError, DefinitionError, KaratError
from karat.execution.arguments import Only, Output, Variants
from karat.execution.evaluation import evaluate, make_options, plan_suite
from karat.execution.plan import PlannedTask
from karat.execution.splits import Fold, split
from karat.ext.publish import verification_wording
from karat.ext.publish.recorded_tables import recorded_table, table_suite_again
from karat.ext.publish.rerun_costs import is_less_memory, size_differences, unequal_costs
from karat.models.model import Model
from karat.output.result import Result
from karat.output.table import Table
from karat.results.compact import read_compact
from karat.results.item_tables import item_keys
from karat.results.load import as_runs
from karat.results.rescore import read_predictions_checked, rescore, view_of
from karat.results.run import Run
from karat.results.selection import find_run
from karat.results.tables import SCORE_COLUMNS, scores_table

if TYPE_CHECKING:
    from karat.results.run import Runs

CHECKS = ("schema", "data", "scores", "copies", "rerun", "timing")
COLUMNS = ["check", "outcome", "detail"]
#: mean distance of predictions per row, from 0 to 1, that differences of machines may cause
TOLERANCE = 0.002
#: rows whose distance is at most this have the same prediction
SAME_ROW = 1e-7
#: a run may differ from a repetition by this multiple of the difference between seeds
NOISE = 1.5
#: the same with the same versions of libraries: a new run must be closer than another seed is
SAME_NOISE = 0.5
#: largest difference of two scores from the same predictions, relative to the score
SCORE_TOLERANCE = 1e-9
#: rows that two runs must share before equal predictions are reported, and their distinct values
FEWEST_ROWS, FEWEST_VALUES = 20, 10
#: predictions are equal if they differ by less than this share of their standard deviation
EQUAL = 1e-4
#: predictions that differ by less than this share are reported in a note
CLOSE = 0.02
#: probabilities that are closer to 0 or 1 are not compared
SURE = 0.01
#: clocks may differ by this time
CLOCK = timedelta(hours=24)
#: seconds and share by which measured times may differ from each other
SLACK_SECONDS, SLACK_SHARE = 5.0, 0.05
#: no processor is this many times faster; shorter new runs than these seconds are not compared
FASTER, FEWEST_SECONDS = 20, 0.2
#: libraries that can compute on a GPU, whose CPU time cannot be compared
GPU = ("torch", "tensorflow", "jax")
PHASES = ("load_seconds", "fit_seconds", "predict_seconds", "score_seconds")


@dataclass(frozen=True)
class Reason:
    """Why a run is refused: the check, the message, and the task and fold if there is one."""

    check: str
    message: str
    task: str = ""
    fold: int | None = None

    def __str__(self) -> str:
        where = self.task if self.fold is None else f"{self.task}, fold {self.fold}"
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True)
class Repeated:
    """A job that was run again: its record, and its predictions on clean and on corrupted data."""

    record: Mapping[str, Any]
    clean: Predictions
    corrupted: Predictions | None


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Result):
    """What was checked in a run.

    Attributes
    ----------
    run
        The run.
    checks
        One row per check: ``check``, ``outcome`` ("passed", "refused" or "skipped") and ``detail``,
        which is the reason if it was skipped.
    reasons
        Why the run is refused; empty if it is not.
    notes
        What could not be checked.
    seed
        The seed of the sample of jobs that were run again.
    """

    run: Run
    checks: pd.DataFrame
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    seed: int

    csv_prefix: ClassVar[str] = "verification"
    hidden: ClassVar[tuple[str, ...]] = ("run",)
    computed: ClassVar[tuple[str, ...]] = ("verified", "refused")

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.run.folder.resolve().name

    @property
    def refused(self) -> bool:
        """Whether there is a reason to refuse the run."""
        return bool(self.reasons)

    @property
    def verified(self) -> bool:
        """Whether every check was made, and none refuses the run."""
        return not self.reasons and not self.skipped

    @property
    def skipped(self) -> dict[str, str]:
        """The checks that could not be made, with the reason of each."""
        rows = self.checks[self.checks["outcome"] == "skipped"]
        return dict(zip(rows["check"], rows["detail"], strict=True))

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        return verification_wording.verification_sentence(self)

    @property
    def details(self) -> list[str]:
        """Why the run is refused."""
        return [f"{reason.check}: {reason}" for reason in self.reasons]

    @property
    def exit_code(self) -> int:
        """The exit code of ``karat verify``: 1 if the run is refused."""
        return int(self.refused)

    def tables(self) -> list[Table]:
        """Return the outcome of each check."""
        return [verification_wording.verification_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the checks, with the name of the run."""
        return {"checks": self.checks.assign(run=self.name)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; the run is named by its folder."""
        return {**super().to_dict(), "run": self.name}

    def to_markdown(self) -> str:
        """Return a comment: the outcome, the reasons, the checks and the notes."""
        return verification_wording.verification_markdown(self)


def verify(
    run: Run | str | Path,
    *,
    against: Runs = (),
    jobs: int = 3,
    seed: int | None = None,
    model: object | None = None,
    suite: str | Suite | None = None,
    define: Sequence[str | Path] | str | Path = (),
    data: str | Path | None = None,
) -> Verification:
    """Check the results of a run.

    The records must be complete and fit the plan, the data those of the suite, every score that of
    the stored predictions, and the times possible. A sample of jobs is run again if the model is
    built in, or given. Names in the run folder never import code.

    Parameters
    ----------
    run
        A run folder, which is not changed.
    against
        Runs, or folders of runs, whose predictions must not be equal to those of this run.
    jobs
        Number of jobs to run again; 0: none.
    seed
        Seed of this sample. Default: a random one, so that the sample cannot be foreseen.
    model
        The model to run again. Default: the built-in or defined one with the name in the run.
    suite
        The suite, or its name. Default: the defined one with the name in the run.
    define
        YAML or Python files with definitions.
    data
        The table file of a run on a table. Default: the file that the run names, if it has the
        same content.

    Raises
    ------
    DataError
        If there is no such run folder, or no such table file.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 0:
        raise DefinitionError(f"jobs must be an integer >= 0, got {jobs!r}.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    verified = run if isinstance(run, Run) else Run.open(run)
    try:
        verified = find_run(verified)
    except DataError as error:
        return _damaged_plan(verified, str(error), seed)
    own_folder, several = verified.folder.resolve(), as_runs(against) if against else []
    others = [other for other in several if other.folder.resolve() != own_folder]
    return _Work(
        run=verified,
        others=others,
        jobs=jobs,
        seed=seed,
        reference=_Reference(
            run=verified, model=model, suite=suite, catalog=Catalog(define), data=data
        ),
    ).result()


def _damaged_plan(run: Run, message: str, seed: int) -> Verification:
    """Return the result for a run whose plan cannot be read."""
    rows = [("schema", "refused", "")]
    rows += [(name, "skipped", "damaged plan") for name in CHECKS if name != "schema"]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return Verification(
        run=run, checks=table, reasons=(Reason("schema", message),), notes=(), seed=seed
    )


class _Reference:
    """The tasks and the model of a run, as they are defined here."""

    def __init__(
        self,
        run: Run,
        model: object,
        suite: str | Suite | None,
        catalog: Catalog,
        data: str | Path | None = None,
    ) -> None:
        self.run, self.catalog, self.data = run, catalog, data
        self._model, self._suite = model, suite
        self.why_no_model = self.why_no_suite = ""
        self.why_no_task: dict[str, str] = {}

    @cached_property
    def suite(self) -> Suite | None:
        """The suite; None if it is not defined here."""
        if isinstance(self._suite, Suite):
            return self._suite
        name = self._suite or self.run.about["suite"]
        if name in self.catalog.definitions.names("suites"):
            return self.catalog.suite(name)
        if self._suite is not None:
            return self.catalog.suite(self._suite)  # raises with a suggestion
        return self._own_table(name)

    def _own_table(self, name: str) -> Suite | None:
        """Return the suite of the user's table that was run; None if the file is not at hand."""
        table = recorded_table(self.run.about)
        if table is None:
            self.why_no_suite = f'the suite "{name}" is not defined here; use --define or --suite'
            return None
        try:
            return table_suite_again(table, self.catalog, self.data)
        except KaratError as error:
            if self.data is not None:
                raise
            self.why_no_suite = str(error).rstrip(".")
            return None

    @cached_property
    def tasks(self) -> dict[str, PlannedTask]:
        """The tasks of the run with their data, planned again; only those that are defined."""
        if self.suite is None:
            return {}
        defined = {task.name: task for task in self.suite}
        planned = {}
        for facts in self.run.about["tasks"]:
            name = facts["name"]
            if name not in defined:
                self.why_no_task[name] = f'the suite "{self.suite.name}" has no such task'
                continue
            options = {"only": [name], "seed": self._seed, "max_rows": self._max_rows(facts)}
            try:
                plan = plan_suite([], self.suite, self.catalog, make_options(options))
            except KaratError as error:
                self.why_no_task[name] = f"its data cannot be loaded: {error}"
                continue
            if plan.tasks[0].data is None:
                reason = plan.tasks[0].unavailable or plan.tasks[0].data_error
                self.why_no_task[name] = f"its data cannot be loaded: {reason}"
                continue
            planned[name] = plan.tasks[0]
        return planned

    @property
    def _seed(self) -> int:
        seed = self.run.about.get("seed")
        return seed if isinstance(seed, int) and 0 <= seed < 2**31 else 42

    def _max_rows(self, facts: Mapping[str, Any]) -> int | None:
        """Return the limit of rows: the plan does not store it, but the number of questions."""
        limits = self.catalog.definitions
        name = self.run.about["constraint"]
        constraint = limits.get("constraints", name) if name in limits.names("constraints") else {}
        rows = constraint.get("max_rows")
        questions = facts.get("questions")
        return min((n for n in (rows, questions) if n is not None and n >= 2), default=None)

    def folds(self, task: str) -> list[Fold]:
        """Return the folds of a task."""
        if task not in self._folds:
            planned = self.tasks[task]
            self._folds[task] = split(planned.data, planned.task.split, self._seed)  # type: ignore[arg-type]
        return self._folds[task]

    @cached_property
    def _folds(self) -> dict[str, list[Fold]]:
        return {}

    @cached_property
    def model(self) -> Model | None:
        """The model; None if it is not at hand."""
        settings = self.run.about
        name, own_model = settings["model"], self._model
        if own_model is None and name not in self.catalog.definitions.names("models"):
            self.why_no_model = f'no built-in or defined model is named "{name}"; use --model'
            return None
        (model,) = self.catalog.models([name if own_model is None else own_model])
        model = dataclasses.replace(model, name=name)
        if own_model is None and model.unavailable:
            self.why_no_model = str(model.unavailable)
            return None
        params = {k: v for k, v in settings["params"].items() if model.params.get(k) != v}
        if own_model is None and params:
            if not all(isinstance(v, int | float | None) for v in params.values()):
                self.why_no_model = "its parameters are not numbers; use --model"
                return None
            try:
                (model,) = change_models([model], params)
            except KaratError as error:
                self.why_no_model = str(error)
                return None
        return model

    def _task_of(self, task: str, fold: int | None, view: View) -> Task:
        """Return a task with the rows of the run, only this fold if given, and only this view."""
        planned = self.tasks[task]
        data: Any = planned.data
        how: Any = planned.task.split
        if fold is not None:  # the split stays, so that only the seed of the model changes
            cut = self.folds(task)[fold]
            rows = {"train": cut.train.tolist(), "test": cut.test.tolist()}
            how = {"use": "fixed", "folds": [rows]}
        return dataclasses.replace(
            planned.task,
            dataset=data,
            split=how,
            ask=None,
            max_rows=None,
            corruptions={} if view == CLEAN else {view.corruption: (view.severity,)},
            draws=view.draw + 1,
            keep_predictions="all",
        )

    def run_again(
        self,
        task: str,
        fold: int,
        seed: int | None = None,
        view: View = CLEAN,
        workers: int = 0,
    ) -> Repeated:
        """Run a job on clean data and on a view; ``seed`` replaces that of the model."""
        same = seed is None
        chosen = self._seed if same else seed
        task_again = self._task_of(task, None if same else fold, view)
        at = fold if same else 0
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seeds = replicate_of(self.run.about) + 1 if same else 1
            *_, run = evaluate(
                Variants([self.model], seeds=seeds),
                [task_again],
                only=Only(folds=[at]),
                seed=chosen,  # type: ignore[arg-type]
                workers=workers,
                output=Output(folder, items=False),
                progress=False,
            )
            (record,) = run.records()
            if record["status"] != "ok":
                raise DataError(f"{record['status']}: {record['info']}")
            corrupted = None if view == CLEAN else run.predictions(task, at, view.name)
            return Repeated(record, run.predictions(task, at), corrupted)


class _Work:
    """The state of verifying a run."""

    def __init__(
        self, run: Run, others: Sequence[Run], jobs: int, seed: int, reference: _Reference
    ) -> None:
        self.run, self.others, self.jobs, self.seed = run, others, jobs, seed
        self.reference = reference
        self.records, self.damaged = run.read_records()
        self.reasons: list[Reason] = []
        self.notes: list[str] = []
        self.details: dict[str, str] = {}
        #: checks that could not be made, with the reason
        self.skipped: dict[str, str] = {}
        #: jobs (task and fold) with the predictions of another run, by a message that names it
        self.copied: dict[str, list[tuple[str, int]]] = {}
        #: jobs that were run again, and whether they gave the stored predictions
        self.repeated: dict[tuple[str, int], bool] = {}
        self._read: dict[tuple[str, int, View], Predictions | None] = {}

    def result(self) -> Verification:
        """Check all and return the result."""
        for name in CHECKS:
            getattr(self, f"_check_{name}")()
        wrong = {reason.check for reason in self.reasons}
        rows = [
            (
                name,
                "refused" if name in wrong else "skipped" if name in self.skipped else "passed",
                self.skipped.get(name) or self.details.get(name, ""),
            )
            for name in CHECKS
        ]
        table = pd.DataFrame(rows, columns=COLUMNS)
        return Verification(
            run=self.run,
            checks=table,
            reasons=tuple(self.reasons),
            notes=tuple(self.notes),
            seed=self.seed,
        )

    def _refuse(self, check: str, message: str, task: str = "", fold: int | None = None) -> None:
        self.reasons.append(Reason(check, message, task, fold))

    @cached_property
    def done(self) -> list[dict[str, Any]]:
        """The records of jobs that have scores."""
        return [r for r in self.records if r["fold"] is not None and r["status"] == "ok"]

    @cached_property
    def plans(self) -> dict[str, dict[str, Any]]:
        """The tasks in the plan by name."""
        return {task["name"]: task for task in self.run.about["tasks"]}

    def _answers(self, record: Mapping[str, Any], view: View = CLEAN) -> Predictions | None:
        """Return stored predictions; None if they cannot be read, which is another reason."""
        key = (record["task"], record["fold"], view)
        if key not in self._read:
            try:
                self._read[key] = read_predictions_checked(self.run, record, view)
            except KaratError:
                self._read[key] = None
        return self._read[key]

    # -- schema -----------------------------------------------------------------------------

    def _check_schema(self) -> None:
        settings = self.run.about
        if imported := settings.get("imported"):
            self._refuse("schema", f"imported from {imported.get('system')}: no predictions.")
        for name, reason in self.damaged.items():
            self._refuse("schema", f"jobs/{name} is damaged: {reason}.")
        for record in self.records:
            for message in self._wrong_facts(record):
                self._refuse("schema", message, record["task"], record["fold"])
        self._check_complete()
        self.details["schema"] = count(len(self.records), "record")

    def _wrong_facts(self, record: Mapping[str, Any]) -> Iterator[str]:
        """Yield what in a record does not fit the plan."""
        settings, task = self.run.about, self.plans.get(record["task"])
        base = settings.get("base")
        if base and not record["model"].startswith(f"{base}@"):
            yield f'a variant of "{base}" has a name such as "{base}@64d".'
        if record["model"] != settings["model"]:
            model = settings["model"]
            yield f'the record is of the model "{record["model"]}", the run of "{model}".'
        if task is None:
            yield "the plan has no such task."
            return
        if record["fold"] is None or record["status"] != "ok":
            return
        if record["metric"] != task["metrics"][0]:
            yield f"its metric is {record['metric']}, that of the task {task['metrics'][0]}."
        seed = settings.get("seed")
        if isinstance(seed, int):
            expected = model_seed(seed, record["fold"], replicate_of(settings))
            if record["seed"] != expected:
                yield f"the seed of the job is {record['seed']}, expected {expected}."
        clean = [view for view in record["views"] if view_of(view) == CLEAN]
        lacking = [name for name in task["metrics"] if not clean or name not in clean[0]["scores"]]
        if lacking and task["metrics"] != ["?"]:
            yield f"no score of {', '.join(lacking)}."
        to_store = record["views"] if task.get("keep_predictions") != "clean" else clean
        if not all(view.get("stored", True) for view in to_store):
            yield "its predictions are declared as not stored, though the task keeps them."

    def _check_complete(self) -> None:
        """Every planned fold needs a record, so that a bad one cannot be removed."""
        never = {record["task"] for record in self.records if record["fold"] is None}
        have = {(record["task"], record["fold"]) for record in self.records}
        for name, task in self.plans.items():
            missing = [fold for fold in task["folds"] if (name, fold) not in have]
            if missing and name not in never:
                folds = ", ".join(map(str, missing))
                self._refuse("schema", f"planned folds without a record: {folds}.", name)
        stored = self.run.folder / "predictions"
        recorded = {self.run._predictions(r) for r in self.records if r["fold"] is not None}
        for folder in sorted(stored.glob("*/*")) if stored.is_dir() else ():
            if folder not in recorded:
                where = folder.relative_to(self.run.folder).as_posix()
                self._refuse("schema", f"{where} has predictions of a job without a record.")

    # -- data -------------------------------------------------------------------------------

    def _check_data(self) -> None:
        tasks = self.reference.tasks
        for name, facts in self.plans.items():
            if name in tasks:
                self._compare_task(facts, tasks[name])
                self._count_folds(facts)
        if self.reference.why_no_suite:
            self.notes.append(f"data: {self.reference.why_no_suite}.")
        for name, reason in self.reference.why_no_task.items():
            self.notes.append(f"data: {name}: {reason}.")
        same = [r for r in self.done if r["task"] in tasks and not self._has_other_data(r["task"])]
        for record in same:
            self._compare_rows(record)
        if not tasks:
            reasons = [self.reference.why_no_suite, *self.reference.why_no_task.values()]
            self.skipped["data"] = next(filter(None, reasons), "no task")
        self.details["data"] = f"{len(tasks)} of {count(len(self.plans), 'task')}"

    def _count_folds(self, facts: Mapping[str, Any]) -> None:
        """Add a note if the suite has more folds of a task than the run."""
        name, planned = facts["name"], len(facts["folds"])
        if self._has_other_data(name) or not planned:
            return
        folds = len(self.reference.folds(name))
        if planned < folds:
            self.notes.append(f"data: {name}: the run has {planned} of the {folds} folds.")

    def _has_other_data(self, task: str) -> bool:
        return any(r.check == "data" and r.task == task for r in self.reasons)

    def _compare_task(self, facts: Mapping[str, Any], planned: PlannedTask) -> None:
        """Compare the data and the protocol of a task with the definition."""
        if all(r["status"] == "declined" for r in self.records if r["task"] == facts["name"]):
            return
        data: Any = planned.data
        stored = facts.get("fingerprint")
        if stored != data.fingerprint:
            mine, theirs = data.fingerprint[:12], str(stored)[:12]
            self._refuse(
                "data", f"other data: the hash is {theirs}, expected {mine}.", facts["name"]
            )
            return
        protocol: dict[str, Any] = {
            "split": planned.facts["split"].get("rows"),
            "probe": json.loads(json.dumps(planned.task.probe, default=repr)),
            "missing": planned.task.missing,
            "metrics": list(planned.task.metrics),
        }
        split_rows = (facts.get("split") or {}).get("rows")
        recorded = {**{name: facts.get(name) for name in protocol}, "split": split_rows}
        for name, expected in protocol.items():
            if recorded[name] is not None and recorded[name] != expected:
                difference = (
                    "other rows" if name == "split" else f"{recorded[name]}, expected {expected}"
                )
                self._refuse("data", f"{name} differs from the suite: {difference}.", facts["name"])

    def _compare_rows(self, record: Mapping[str, Any]) -> None:
        """Compare the targets and keys of stored predictions with the test rows of the data."""
        name, number = record["task"], record["fold"]
        folds = self.reference.folds(name)
        if number >= len(folds):
            self._refuse("data", f"the split has {count(len(folds), 'fold')}.", name, number)
            return
        data: Any = self.reference.tasks[name].data
        fold = folds[number]
        for key, rows in (("train_questions", fold.train), ("questions", fold.test)):
            if record.get(key) is not None and record[key] != len(rows):
                self._refuse("data", f"{key} is {record[key]}, expected {len(rows)}.", name, number)
                return
        answers = self._answers(record)
        if answers is None or data.kind not in ("classification", "regression"):
            return
        rows = fold.test if answers.question is None else fold.test[answers.question]
        if len(rows) != len(answers):
            return  # pairs or groups of items
        if answers.key is not None and (answers.key != item_keys(data)[rows]).any():
            wrong = int((answers.key != item_keys(data)[rows]).sum())
            self._refuse("data", f"{count(wrong, 'row')} not of the test fold.", name, number)
        elif wrong := _count_unequal(answers, data.target[rows]):
            message = f"{count(wrong, 'target')} differ from those of the data."
            self._refuse("data", message, name, number)

    # -- scores -----------------------------------------------------------------------------

    def _check_scores(self) -> None:
        if self.run.about.get("imported") or self.damaged:
            why = "imported" if self.run.about.get("imported") else "damaged records"
            self.skipped["scores"] = why
            return
        rescored = rescore(self.run)
        for message in rescored.problems:
            short = message.replace(f"{self.run.folder}/", "")
            self._refuse("scores", f"predictions cannot be used: {short}")
        rows = rescored.differences
        old, new = rows["before"].to_numpy(), rows["value"].to_numpy()
        with np.errstate(invalid="ignore"):
            near = np.abs(old - new) <= SCORE_TOLERANCE * np.maximum(1, np.abs(old))
        for row in rows[~near].to_dict("records"):
            if row["why"] in rescored.problems:
                continue
            view = "" if row["view"] == "clean" else f" ({row['view']})"
            message = f"{row['metric']}{view} is {_number(row['before'])} in the record, and "
            message += f"{_number(row['value'])} from the predictions."
            self._refuse("scores", message, row["task"], row["fold"])
        self._check_tables()
        self.notes += [f"scores: {note}" for note in rescored.notes]
        self.details["scores"] = count(len(rescored.scores), "score")

    def _check_tables(self) -> None:
        """Refuse tables, which other programs read, with other scores than the records."""
        expected = _by_key(scores_table(self.records))
        path = self.run.folder / "scores" / "scores.csv"
        stored = {"scores/scores.csv": _read_scores(path)} if path.is_file() else {}
        if (compact := read_compact(self.run.folder)) is not None:
            stored["scores/jobs.columns"] = compact.scores()
        for name, table in stored.items():
            try:
                same = _by_key(table).equals(expected) if table is not None else False
            except (KeyError, TypeError, ValueError):
                same = False
            if not same:
                self._refuse("scores", f"{name} has other scores than the records.")
        job = unequal_costs(self.records, compact.records) if compact is not None else None
        if job is not None:
            self._refuse("scores", "scores/jobs.columns has other costs than the record.", *job)

    # -- copies -----------------------------------------------------------------------------

    def _check_copies(self) -> None:
        compared = 0
        for other in self.others:
            settings = other.about
            names = {settings["model"], settings.get("base")} - {None}
            if names & {self.run.model, self.run.about.get("base")}:
                continue  # runs of one model, or its variants, may be equal
            theirs = {
                (record["task"], record["fold"]): record
                for record in other.records()
                if record["status"] == "ok" and record["fold"] is not None
            }
            shared = [r for r in self.done if (r["task"], r["fold"]) in theirs]
            compared += bool(shared)
            apart = [self._copy_distance(r, other, theirs[r["task"], r["fold"]]) for r in shared]
            equal = [r for r, distance in zip(shared, apart, strict=True) if distance <= EQUAL]
            if equal and sum(self._rows(record) for record in equal) >= FEWEST_ROWS:
                what = f"predictions equal those of {other.model} ({other.folder.name})"
                self.copied[what] = [(record["task"], record["fold"]) for record in equal]
            elif min(apart, default=np.inf) < CLOSE and self.reference.model is None:
                near = f"{other.model} ({other.folder.name}) in {sum(a < CLOSE for a in apart)}"
                self.notes.append(f"copies: predictions are close to those of {near} jobs.")
        if not self.others:
            self.skipped["copies"] = "no runs to compare with: --against"
            return
        self.details["copies"] = f"against {count(compared, 'run')} with common jobs"

    def _rows(self, record: Mapping[str, Any]) -> int:
        answers = self._answers(record)
        return 0 if answers is None else len(answers)

    def _copy_distance(
        self, record: Mapping[str, Any], other: Run, theirs: Mapping[str, Any]
    ) -> float:
        mine = self._answers(record)
        try:
            predictions = read_predictions_checked(other, theirs, CLEAN)
        except KaratError:
            return np.inf
        return np.inf if mine is None else copy_distance(mine, predictions)

    # -- running jobs again -----------------------------------------------------------------

    def _check_rerun(self) -> None:
        chosen = self._sample()
        if not self.jobs:
            self.skipped["rerun"] = "0 jobs were to be run again"
        elif not chosen:
            self.skipped["rerun"] = self._why_no_job()
            self.notes.append(f"rerun: {self.skipped['rerun']}.")
        for record in chosen:
            self._compare_again(record)
        if chosen:
            self._run_failed()
        for what, jobs in self.copied.items():
            again = [self.repeated[job] for job in jobs if job in self.repeated]
            if again and all(again):  # two models can be the same on these data
                self.notes.append(f"copies: {what}; so are those of a new run.")
                continue
            tasks = list(dict.fromkeys(task for task, _ in jobs))
            message = f"{what} in {count(len(jobs), 'job')}: {', '.join(tasks)}."
            if self.reference.model is None:
                message += " If this model gives them too, pass it: -m."
            if self.reference.model is None and len(tasks) == 1:
                self.notes.append(f"copies: {message}")  # two models can be the same on one task
            else:
                self._refuse("copies", message)
        if not self.repeated:
            self.skipped.setdefault("rerun", "no job could be run again")
            return
        self.details["rerun"] = f"{count(len(self.repeated), 'job')}, sample seed {self.seed}"

    def _why_no_job(self) -> str:
        """Return why no job can be run again."""
        why = self.reference.why_no_model if self.reference.model is None else ""
        if why:
            return why
        return "no finished job" if self.reference.tasks else "the tasks are not defined here"

    def _sample(self) -> list[dict[str, Any]]:
        """Return jobs to run again: possible copies, the most surprising score, a random sample."""
        tasks = self.reference.tasks
        able = [r for r in self.done if r["task"] in tasks and not self._has_other_data(r["task"])]
        if not self.jobs or not able or self.reference.model is None:
            return []
        able = [r for r in able if r["fold"] < len(self.reference.folds(r["task"]))]
        order = np.random.default_rng(self.seed).permutation(len(able))
        copies = {jobs[0] for jobs in self.copied.values()}
        best = self._most_surprising(able)

        def urgency(record: Mapping[str, Any]) -> int:
            job = record["task"], record["fold"]
            return 0 if job in copies else 1 if job == best else 2

        mixed = sorted((able[number] for number in order), key=urgency)
        seen: Counter[str] = Counter()
        places = []
        for record in mixed:  # one job of every task before a second one of any
            places.append((urgency(record), seen[record["task"]]))
            seen[record["task"]] += 1
        chosen = sorted(range(len(mixed)), key=places.__getitem__)[: self.jobs]
        return [mixed[number] for number in chosen]

    def _compare_again(self, record: Mapping[str, Any]) -> None:
        """Run a job again and compare its predictions with the stored ones."""
        task, fold = record["task"], record["fold"]
        stored = self._answers(record)
        if stored is None:
            return
        view = self._random_view(record)
        try:
            again = self.reference.run_again(task, fold, view=view)
            apart, noise = distance(stored, again.clean), 0.0
            if apart > TOLERANCE:
                noise = self._seed_noise(record, stored, again.clean)
            least = self._least_seconds(record, again.record)
        except KaratError as error:
            self.notes.append(f"rerun: {task}, fold {fold} could not be run: {error}")
            return
        self.repeated[task, fold] = apart <= TOLERANCE + noise
        if not self.repeated[task, fold]:
            message = f"a new run gives other predictions: they differ by {rounded(apart)} per row "
            message += f"(of at most 1); up to {rounded(TOLERANCE + noise)} is accepted."
            self._refuse("rerun", message, task, fold)
        elif again.corrupted is not None:
            self._compare_view(record, view, again, apart + noise)
        self._compare_costs(record, again.record, least)

    def _compare_costs(
        self, record: Mapping[str, Any], again: Mapping[str, Any], least: float
    ) -> None:
        """Compare sizes exactly, memory and time within a factor; ``least`` is the CPU time."""
        task, fold = record["task"], record["fold"]
        for message in size_differences(record, again):
            self._refuse("rerun", message, task, fold)
        claimed = record.get("cpu_seconds")
        if claimed is not None and least > FASTER * claimed:
            message = f"it took {claimed:.3g} s of CPU time, and a new run {least:.3g} s."
            self._refuse("timing", message, task, fold)
        elif record.get("seconds") and least > FASTER * self._threads * record["seconds"]:
            message = f"it took {record['seconds']:.3g} s, and a new run {least:.3g} s."
            self._refuse("timing", message, task, fold)
        memory, measured = record.get("peak_memory_mb"), again.get("peak_memory_mb")
        if is_less_memory(memory, measured):  # this process may hold more than a worker
            alone = self.reference.run_again(task, fold, workers=1).record.get("peak_memory_mb")
            if is_less_memory(memory, alone):
                text = f"it needed {memory:,.0f} MB of memory, and a new run {alone:,.0f} MB."
                self._refuse("rerun", text, task, fold)

    @property
    def _threads(self) -> int:
        threads = self.run.about.get("threads")
        return threads if isinstance(threads, int) and threads > 0 else 1

    def _run_failed(self) -> None:
        """Add a note if a job that failed can be run."""
        tasks = self.reference.tasks
        failed = [r for r in self.records if r["fold"] is not None and r["status"] in FAILURES]
        failed = [r for r in failed if r["task"] in tasks and not self._has_other_data(r["task"])]
        if not failed:
            return
        record = failed[self.seed % len(failed)]
        task, fold = record["task"], record["fold"]
        with suppress(KaratError):
            self.reference.run_again(task, fold)
            self.notes.append(f"rerun: {task}, fold {fold} failed, but a new run finished.")

    def _most_surprising(self, records: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
        """Return the job whose score is best compared with the other folds of its task."""
        by_task: dict[str, list[tuple[int, float]]] = {}
        for record in records:
            value = next((v["scores"].get(record["metric"]) for v in record["views"]), None)
            higher = self.plans[record["task"]].get("higher_is_better") or {}
            if value is not None:
                value = value if higher.get(record["metric"], True) else -value
                by_task.setdefault(record["task"], []).append((record["fold"], value))
        best, job = -np.inf, (records[0]["task"], records[0]["fold"])
        for task, scores in by_task.items():
            values = np.array([value for _, value in scores])
            for position, (fold, value) in enumerate(scores if len(values) > 2 else ()):
                others = np.delete(values, position)
                gap = (value - others.mean()) / (others.std() + 1e-3 * abs(others.mean()) + 1e-12)
                if gap > best:
                    best, job = gap, (task, fold)
        return job

    def _random_view(self, record: Mapping[str, Any]) -> View:
        """Return one of the corrupted views of a job, or the clean one if it has no other."""
        corruptions = self.reference.tasks[record["task"]].task.corruptions
        views = [view_of(view) for view in record["views"] if view.get("status", "ok") == "ok"]
        able = [view for view in views if view.severity in corruptions.get(view.corruption, ())]
        rng = np.random.default_rng([self.seed, record["fold"]])
        return able[rng.integers(len(able))] if able else CLEAN

    def _seed_noise(
        self, record: Mapping[str, Any], stored: Predictions, again: Predictions
    ) -> float:
        """Return the accepted difference between a job and its repetition, from other seeds."""
        task, fold = record["task"], record["fold"]
        seeds = [record["seed"] + step for step in (1000, 2000)]
        others = [self.reference.run_again(task, fold, seed).clean for seed in seeds]
        noise = seed_noise(stored, again, others)
        if noise and self._has_same_versions:
            twice = self.reference.run_again(task, fold).clean
            if distance(again, twice) <= SAME_ROW:  # here the model can be repeated exactly
                return SAME_NOISE * noise
        return NOISE * noise

    @cached_property
    def _has_same_versions(self) -> bool:
        """Whether the run has the libraries of this process, so that seeds have the same effect."""
        versions = self.run.about.get("versions") or {}
        here = {name: installed_version(name) for name in versions}
        if versions != here:
            names = ", ".join(f"{n} {v}" for n, v in versions.items() if v != here[n])
            self.notes.append(f"rerun: the run had other libraries than this process: {names}.")
        return bool(versions) and versions == here and not set(GPU) & set(sys.modules)

    def _compare_view(
        self, record: Mapping[str, Any], view: View, again: Repeated, accepted: float
    ) -> None:
        """Compare predictions on corrupted data, or the scores if they are not stored."""
        stored, repeated = self._answers(record, view), again.corrupted
        if stored is not None and repeated is not None:
            apart = distance(stored, repeated)
            # predictions on corrupted data depend more on the seed
            if apart <= TOLERANCE + 2 * accepted:
                return
            message = f"a new run gives other predictions on {view.name}: they differ by "
            message += f"{rounded(apart)} per row (of at most 1)."
        else:
            named = {
                view_of(other_view).name: other_view["scores"]
                for other_view in again.record["views"]
            }
            claimed = next(v["scores"] for v in record["views"] if view_of(v) == view)
            metric = record["metric"]
            old, new = claimed.get(metric), named.get(view.name, {}).get(metric)
            if accepted > SAME_ROW or old is None or new is None or np.isclose(old, new, 1e-6):
                return
            message = f"{metric} on {view.name} is {_number(old)}, and {_number(new)} in a new run."
        self._refuse("rerun", message, record["task"], record["fold"])

    def _least_seconds(self, record: Mapping[str, Any], again: Mapping[str, Any]) -> float:
        """Return the CPU seconds of a new run, the shorter of two if the first took much longer."""
        claimed, spent = record.get("cpu_seconds"), again.get("cpu_seconds") or 0.0
        if claimed is None or spent < FEWEST_SECONDS or set(GPU) & set(sys.modules):
            return 0.0
        if spent > FASTER * claimed:  # the first run may import libraries or compile
            second = self.reference.run_again(record["task"], record["fold"]).record
            spent = min(spent, second.get("cpu_seconds") or 0.0)
        return float(spent) if spent >= FEWEST_SECONDS else 0.0

    # -- timing -----------------------------------------------------------------------------

    def _check_timing(self) -> None:
        start, now = _moment(self.run.about.get("stamp")), datetime.now(UTC)
        if start is not None and start > now + CLOCK:
            self._refuse("timing", f"the run starts in the future: {self.run.about['stamp']}.")
        ends = [_moment(record["utc"]) for record in self.done]
        for record, end in zip(self.done, ends, strict=True):
            for message in _impossible_times(record, start, end, now):
                self._refuse("timing", message, record["task"], record["fold"])
        # a resumed run may have some jobs of an earlier one, not all
        known_ends = [end for end in ends if end is not None]
        early = [end < start for end in known_ends] if start is not None else []
        if early and all(early) and not self.run.about.get("rescored"):
            self._refuse("timing", "all jobs ended before the run started.")
        times = pd.Series([r.get("seconds") for r in self.done], dtype=float).dropna()
        same = times.value_counts()
        if len(times) and same.iloc[0] > 2:
            what = f"{same.iloc[0]} jobs took exactly {same.index[0]!r} seconds."
            self._refuse("timing", what)
        self.details["timing"] = count(len(self.done), "job")


def distance(one: Predictions, other: Predictions) -> float:
    """Return the mean distance of two predictions of the same rows, from 0 (equal) to 1."""
    rows = row_distances(one, other)
    return float(rows.mean()) if len(rows) else 0.0


def row_distances(one: Predictions, other: Predictions) -> np.ndarray:
    """Return the distance of two predictions of each row, from 0 (equal) to 1.

    It is 1 if the labels differ, otherwise half the sum of the absolute differences of the class
    probabilities; of numbers, the difference in standard deviations of the target, up to 1; of
    ranks, the difference of the reciprocal ranks.
    """
    if len(one) != len(other) or one.answers != other.answers:
        return np.ones(max(len(one), len(other)))
    if one.rank is not None and other.rank is not None:
        return np.abs(1 / one.rank - 1 / other.rank)
    if one.answers == "numbers":
        spread = float(np.std(other.target if other.truths == "numbers" else other.predictions))
        return np.minimum(np.abs(one.predictions - other.predictions) / (spread or 1.0), 1.0)
    if one.answers == "clusters":  # their numbers have no meaning: compare with the closest
        pairs = pd.crosstab(one.predictions, other.predictions)
        closest = pairs.idxmax(axis=1).reindex(one.predictions).to_numpy()
        return np.asarray(closest != other.predictions, dtype=float)
    unequal = np.asarray(one.predictions != other.predictions, dtype=float)
    mine, theirs = one.probabilities, other.probabilities
    if mine is None or theirs is None or one.classes != other.classes:
        return unequal
    return np.maximum(np.abs(mine.astype(float) - theirs.astype(float)).sum(axis=1) / 2, unequal)


def seed_noise(stored: Predictions, again: Predictions, others: Sequence[Predictions]) -> float:
    """Return the largest mean distance between seeds; 0 if the stored run had the same seed.

    This is so if most of the rows that depend on the seed are equal to the new run. Then the other
    rows must be equal too.
    """
    between = [row_distances(again, other) for other in others]
    depends = np.max(between, axis=0) > SAME_ROW
    equal = row_distances(stored, again) <= SAME_ROW
    if depends.sum() >= FEWEST_VALUES and equal[depends].mean() > 0.5:
        return 0.0
    return float(max(rows.mean() for rows in between))


def copy_distance(one: Predictions, other: Predictions) -> float:
    """Return the typical difference in standard deviations; infinite if it cannot be compared.

    Only real numbers can show a copy: two good models may give the same labels. A change of scale
    does not make another model: a line is fitted through numbers, or through the log odds of the
    two most probable classes.
    """
    mine, theirs = _comparable(one, other)
    if len(np.unique(theirs.round(12))) < FEWEST_VALUES:
        return np.inf  # such as a model that predicts a constant
    # the medians, because some rows may have been changed
    slope = float(np.median(np.abs(mine - np.median(mine))))
    slope /= float(np.median(np.abs(theirs - np.median(theirs)))) or np.nan
    spread = float(np.std(theirs))
    apart = [np.median(np.abs(mine - theirs)) / spread]
    if slope > 0:
        scaled = (mine - np.median(mine)) / slope + np.median(theirs)
        apart.append(np.median(np.abs(scaled - theirs)) / spread)
    return float(min(apart))


def _comparable(one: Predictions, other: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of real numbers with one entry per row, empty if there is none."""
    mine, theirs, none = _numbers(one), _numbers(other), (np.empty(0), np.empty(0))
    if mine is None or theirs is None or mine.shape != theirs.shape:
        return none
    if one.key is not None and other.key is not None and (one.key != other.key).any():
        return none
    if other.probabilities is None or theirs.shape[1] < 2:
        return mine.ravel().astype(float), theirs.ravel().astype(float)
    # two good models are equally sure of many rows
    second, first = np.argsort(theirs, axis=1)[:, -2:].T
    rows = np.arange(len(theirs))
    unsure = theirs[rows, second] > SURE
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = [np.log(p[rows, first] / p[rows, second])[unsure] for p in (mine, theirs)]
    return (np.nan_to_num(odds[0], posinf=50.0, neginf=-50.0), odds[1])


def _numbers(answers: Predictions) -> np.ndarray | None:
    if answers.probabilities is not None:
        return np.asarray(answers.probabilities, dtype=float)
    return answers.predictions if answers.answers == "numbers" else None


def _count_unequal(answers: Predictions, target: np.ndarray) -> int:
    """Return the number of stored targets that differ from those of the data."""
    if answers.truths == "numbers":
        numbers = np.asarray(target, dtype=float)
        return int((~np.isclose(answers.target, numbers, rtol=1e-9, atol=0)).sum())
    return int((answers.target != as_text(target)).sum())


def installed_version(library: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _number(value: float) -> str:
    return "missing" if np.isnan(value) else f"{value:.12g}"


def _read_scores(path: Path) -> pd.DataFrame | None:
    try:  # as texts, because pandas 2 rounds numbers while it reads them
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        return table.assign(value=table["value"].replace("", "nan"))
    except (OSError, ValueError, KeyError):
        return None


def _by_key(table: pd.DataFrame) -> pd.Series:
    """Return scores by all that names them, sorted."""
    frame = table[list(SCORE_COLUMNS)].fillna({"corruption": ""})
    keys = [name for name in SCORE_COLUMNS if name != "value"]
    typed = frame.astype(dict.fromkeys(("repeat", "fold", "draw", "epoch", "severity"), float))
    return typed.astype({"value": float}).set_index(keys)["value"].sort_index()


def _impossible_times(
    record: Mapping[str, Any], start: datetime | None, end: datetime | None, now: datetime
) -> Iterator[str]:
    """Yield what cannot be true of the times of a job."""
    total = record.get("seconds")
    parts = {name: record[name] for name in PHASES if record.get(name) is not None}
    for name, value in {
        **parts,
        "seconds": total,
        "cpu_seconds": record.get("cpu_seconds"),
    }.items():
        if value is not None and value < 0:
            yield f"{name} is {value:g}."
    if end is not None and end > now + CLOCK:
        yield f"it ended in the future: {record['utc']}."
    if total is None:
        return
    if total == 0 or ("predict_seconds" in parts and parts["predict_seconds"] == 0):
        yield "its time is 0 seconds."
    spent = sum(parts.values())
    if spent > total * 1.001 + 0.001:
        yield f"its phases took {spent:.3g} s, longer than the job ({total:.3g} s)."
    if start is not None and end is not None and end >= start:
        passed = (end - start).total_seconds()
        if total > passed * (1 + SLACK_SHARE) + SLACK_SECONDS:
            yield f"it took {total:.3g} s, but ended {passed:.3g} s after the start of the run."


def _moment(text: object) -> datetime | None:
    """Return a time stamp; None if the text is not one."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
