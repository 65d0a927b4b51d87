"""``verify``: find out whether the results in a run folder can be trusted.

Scores are computed again from the predictions, these are compared with the data, and a sample of
jobs is run again.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.formatting import count, rounded
from karat.config.catalog import Catalog
from karat.config.components import change_models
from karat.core.predictions import Predictions, as_text
from karat.core.task import Suite
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError
from karat.execution.evaluation import evaluate, make_options, plan_suite
from karat.execution.plan import PlannedTask
from karat.execution.splits import Fold, split
from karat.models.model import Model
from karat.results.compact import read_compact
from karat.results.load import as_runs
from karat.results.rescore import read_predictions_checked, rescore, view_of
from karat.results.run import Run
from karat.results.selection import find_run
from karat.results.tables import SCORE_COLUMNS, item_keys, scores_table

CHECKS = ("schema", "data", "scores", "copies", "rerun", "timing")
COLUMNS = ["check", "outcome", "detail"]
#: mean distance of predictions per row, from 0 to 1, that differences of machines may cause
TOLERANCE = 0.002
#: rows whose distance is at most this have the same prediction
SAME_ROW = 1e-7
#: a run may differ from a repetition by this multiple of the difference between seeds
NOISE = 1.5
#: largest difference of two scores from the same predictions, relative to the score
SCORE_TOLERANCE = 1e-9
#: rows that two runs must share before equal predictions are reported, and their distinct values
FEWEST_ROWS, FEWEST_VALUES = 20, 10
#: predictions are equal if they differ by less than this share of their standard deviation
EQUAL = 1e-4
#: probabilities that are closer to 0 or 1 are not compared
SURE = 0.01
#: clocks may differ by this time
CLOCK = timedelta(hours=24)
#: seconds and share by which measured times may differ from each other
SLACK_SECONDS, SLACK_SHARE = 5.0, 0.05
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


@dataclass(frozen=True, eq=False)
class Verification:
    """What was checked in a run.

    Attributes
    ----------
    run
        The run.
    checks
        One row per check: ``check``, ``outcome`` ("passed", "refused" or "skipped") and ``detail``.
    reasons
        Why the run is refused; empty if it is verified.
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

    @property
    def verified(self) -> bool:
        """Whether there is no reason to refuse the run."""
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        return {
            "run": self.run.folder.resolve().name,
            "verified": self.verified,
            "checks": self.checks.to_dict("records"),
            "reasons": [dataclasses.asdict(reason) for reason in self.reasons],
            "notes": list(self.notes),
            "seed": self.seed,
        }


def verify(
    run: Run | str | Path,
    *,
    against: Any = (),
    jobs: int = 3,
    seed: int | None = None,
    model: Any = None,
    suite: str | Suite | None = None,
    define: Sequence[str | Path] | str | Path = (),
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

    Raises
    ------
    DataError
        If there is no such run folder.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 0:
        raise DefinitionError(f"jobs must be an integer >= 0, got {jobs!r}.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    found = run if isinstance(run, Run) else Run.open(run)
    try:
        found = find_run(found)
    except DataError as error:
        return _damaged_plan(found, str(error), seed)
    others = [each for each in as_runs(against) if not _is_same(each, found)] if against else []
    return _Work(
        found, others, jobs, seed, _Reference(found, model, suite, Catalog(define))
    ).result()


def _damaged_plan(run: Run, message: str, seed: int) -> Verification:
    """Return the result for a run whose plan cannot be read."""
    rows = [(name, "refused" if name == "schema" else "skipped", "") for name in CHECKS]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return Verification(run, table, (Reason("schema", message),), (), seed)


def _is_same(one: Run, other: Run) -> bool:
    return one.folder.resolve() == other.folder.resolve()


class _Reference:
    """The tasks and the model of a run, as they are defined here."""

    def __init__(self, run: Run, model: Any, suite: str | Suite | None, catalog: Catalog) -> None:
        self.run, self.catalog = run, catalog
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
        self.why_no_suite = f'the suite "{name}" is not defined here; use --define or --suite'
        return None

    @cached_property
    def tasks(self) -> dict[str, PlannedTask]:
        """The tasks of the run with their data, planned again; only those that are defined."""
        if self.suite is None:
            return {}
        known = {task.name: task for task in self.suite}
        found = {}
        for facts in self.run.about["tasks"]:
            name = facts["name"]
            if name not in known:
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
            found[name] = plan.tasks[0]
        return found

    @property
    def _seed(self) -> int:
        seed = self.run.about.get("seed")
        return seed if isinstance(seed, int) and 0 <= seed < 2**31 else 42

    def _max_rows(self, facts: Mapping[str, Any]) -> int | None:
        """Return the limit of rows: the plan does not store it, but the number of questions."""
        limits = self.catalog.definitions
        name = self.run.about["constraint"]
        own = limits.get("constraints", name) if name in limits.names("constraints") else {}
        rows = own.get("max_rows")
        asked = facts.get("questions")
        return min((n for n in (rows, asked) if n is not None and n >= 2), default=None)

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
        about = self.run.about
        name, given = about["model"], self._model
        if given is None and name not in self.catalog.definitions.names("models"):
            self.why_no_model = f'no built-in or defined model is named "{name}"; use --model'
            return None
        (model,) = self.catalog.models([name if given is None else given])
        model = dataclasses.replace(model, name=name)
        if given is None and model.unavailable:
            self.why_no_model = str(model.unavailable)
            return None
        params = {k: v for k, v in about["params"].items() if model.params.get(k) != v}
        if given is None and params:
            if not all(isinstance(v, int | float | None) for v in params.values()):
                self.why_no_model = "its parameters are not numbers; use --model"
                return None
            try:
                (model,) = change_models([model], params)
            except KaratError as error:
                self.why_no_model = str(error)
                return None
        return model

    def run_again(self, task: str, fold: int, seed: int | None = None) -> Predictions:
        """Return the predictions of a job on clean data; ``seed`` replaces that of the model."""
        planned, cut = self.tasks[task], self.folds(task)[fold]
        data: Any = planned.data
        same = seed is None
        chosen = self._seed if same else seed
        # the split and the rows stay, so that only the seed of the model changes
        fixed = {
            "use": "fixed",
            "folds": [{"train": cut.train.tolist(), "test": cut.test.tolist()}],
        }
        how = planned.task.split if same else fixed
        made = dataclasses.replace(
            planned.task, dataset=data, split=how, ask=None, max_rows=None, corruptions={}
        )
        at = fold if same else 0
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (run,) = evaluate(
                [self.model],
                [made],
                seed=chosen,  # type: ignore[arg-type]
                folds=[at],
                output=folder,
                items=False,
                progress=False,
            )
            (record,) = run.records()
            if record["status"] != "ok":
                raise DataError(f"{record['status']}: {record['info']}")
            return run.predictions(task, at)


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
        self.skipped: set[str] = set()
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
                self.details.get(name, ""),
            )
            for name in CHECKS
        ]
        table = pd.DataFrame(rows, columns=COLUMNS)
        return Verification(self.run, table, tuple(self.reasons), tuple(self.notes), self.seed)

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
        about = self.run.about
        if imported := about.get("imported"):
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
        about, task = self.run.about, self.plans.get(record["task"])
        if record["model"] != about["model"]:
            yield f'the record is of the model "{record["model"]}", the run of "{about["model"]}".'
        if task is None:
            yield "the plan has no such task."
            return
        if record["fold"] is None or record["status"] != "ok":
            return
        if record["metric"] != task["metrics"][0]:
            yield f"its metric is {record['metric']}, that of the task {task['metrics'][0]}."
        seed = about.get("seed")
        if isinstance(seed, int) and record["seed"] != (seed + record["fold"]) % (2**31 - 1):
            yield f"the seed of the job is {record['seed']}, expected {seed} + {record['fold']}."
        clean = [view for view in record["views"] if view_of(view) == CLEAN]
        lacking = [name for name in task["metrics"] if not clean or name not in clean[0]["scores"]]
        if lacking and task["metrics"] != ["?"]:
            yield f"no score of {', '.join(lacking)}."

    def _check_complete(self) -> None:
        """Every planned fold needs a record, so that a bad one cannot be removed."""
        never = {record["task"] for record in self.records if record["fold"] is None}
        have = {(record["task"], record["fold"]) for record in self.records}
        for name, task in self.plans.items():
            lost = [fold for fold in task["folds"] if (name, fold) not in have]
            if lost and name not in never:
                folds = ", ".join(map(str, lost))
                self._refuse("schema", f"planned folds without a record: {folds}.", name)
        stored = self.run.folder / "predictions"
        kept = {self.run._predictions(r) for r in self.records if r["fold"] is not None}
        for folder in sorted(stored.glob("*/*")) if stored.is_dir() else ():
            if folder not in kept:
                where = folder.relative_to(self.run.folder).as_posix()
                self._refuse("schema", f"{where} has predictions of a job without a record.")

    # -- data -------------------------------------------------------------------------------

    def _check_data(self) -> None:
        tasks = self.reference.tasks
        for name, facts in self.plans.items():
            if name in tasks:
                self._compare_task(facts, tasks[name])
        if self.reference.why_no_suite:
            self.notes.append(f"data: {self.reference.why_no_suite}.")
        for name, reason in self.reference.why_no_task.items():
            self.notes.append(f"data: {name}: {reason}.")
        same = [r for r in self.done if r["task"] in tasks and not self._has_other_data(r["task"])]
        for record in same:
            self._compare_rows(record)
        if not tasks:
            self.skipped.add("data")
        self.details["data"] = f"{len(tasks)} of {count(len(self.plans), 'task')}"

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
        own: dict[str, Any] = {
            "split": planned.facts["split"].get("rows"),
            "probe": json.loads(json.dumps(planned.task.probe, default=repr)),
            "missing": planned.task.missing,
            "metrics": list(planned.task.metrics),
        }
        split_rows = (facts.get("split") or {}).get("rows")
        given = {**{name: facts.get(name) for name in own}, "split": split_rows}
        for name, expected in own.items():
            if given[name] is not None and given[name] != expected:
                shown = "other rows" if name == "split" else f"{given[name]}, expected {expected}"
                self._refuse("data", f"{name} differs from the suite: {shown}.", facts["name"])

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
            self.skipped.add("scores")
            return
        found = rescore(self.run)
        for message in found.problems:
            short = message.replace(f"{self.run.folder}/", "")
            self._refuse("scores", f"predictions cannot be used: {short}")
        rows = found.differences
        old, new = rows["before"].to_numpy(), rows["value"].to_numpy()
        with np.errstate(invalid="ignore"):
            near = np.abs(old - new) <= SCORE_TOLERANCE * np.maximum(1, np.abs(old))
        for row in rows[~near].to_dict("records"):
            if row["why"] in found.problems:
                continue
            view = "" if row["view"] == "clean" else f" ({row['view']})"
            message = f"{row['metric']}{view} is {_number(row['before'])} in the record, and "
            message += f"{_number(row['value'])} from the predictions."
            self._refuse("scores", message, row["task"], row["fold"])
        self._check_tables()
        self.notes += [f"scores: {note}" for note in found.notes]
        self.details["scores"] = count(len(found.scores), "score")

    def _check_tables(self) -> None:
        """Refuse tables, which other programs read, with other scores than the records."""
        made = _by_key(scores_table(self.records))
        path = self.run.folder / "scores" / "scores.csv"
        stored = {"scores/scores.csv": _read_scores(path)} if path.is_file() else {}
        if (compact := read_compact(self.run.folder)) is not None:
            stored["scores/jobs.columns"] = compact.scores()
        for name, table in stored.items():
            try:
                same = _by_key(table).equals(made) if table is not None else False
            except (KeyError, TypeError, ValueError):
                same = False
            if not same:
                self._refuse("scores", f"{name} has other scores than the records.")

    # -- copies -----------------------------------------------------------------------------

    def _check_copies(self) -> None:
        compared = 0
        for other in self.others:
            about = other.about
            names = {about["model"], about.get("base")} - {None}
            if names & {self.run.model, self.run.about.get("base")}:
                continue  # runs of one model, or its variants, may be equal
            theirs = {
                (record["task"], record["fold"]): record
                for record in other.records()
                if record["status"] == "ok" and record["fold"] is not None
            }
            shared = [r for r in self.done if (r["task"], r["fold"]) in theirs]
            compared += bool(shared)
            equal = [r for r in shared if self._is_copy(r, other, theirs[r["task"], r["fold"]])]
            if equal and sum(self._rows(record) for record in equal) >= FEWEST_ROWS:
                what = f"predictions equal those of {other.model} ({other.folder.name})"
                self.copied[what] = [(record["task"], record["fold"]) for record in equal]
        if not self.others:
            self.skipped.add("copies")
            return
        self.details["copies"] = f"against {count(compared, 'run')} with common jobs"

    def _rows(self, record: Mapping[str, Any]) -> int:
        answers = self._answers(record)
        return 0 if answers is None else len(answers)

    def _is_copy(self, record: Mapping[str, Any], other: Run, theirs: Mapping[str, Any]) -> bool:
        mine = self._answers(record)
        try:
            found = read_predictions_checked(other, theirs, CLEAN)
        except KaratError:
            return False
        return mine is not None and are_copies(mine, found)

    # -- running jobs again -----------------------------------------------------------------

    def _check_rerun(self) -> None:
        chosen = self._sample()
        if self.jobs and not chosen:
            why = self.reference.why_no_model if self.reference.model is None else ""
            if not why:
                known = bool(self.reference.tasks)
                why = "no finished job" if known else "the tasks are not defined here"
            self.notes.append(f"rerun: {why}.")
        for record in chosen:
            self._compare_again(record)
        for what, jobs in self.copied.items():
            again = [self.repeated[job] for job in jobs if job in self.repeated]
            if again and all(again):  # two models can be the same on these data
                self.notes.append(f"copies: {what}; so are those of a new run.")
                continue
            tasks = ", ".join(dict.fromkeys(task for task, _ in jobs))
            self._refuse("copies", f"{what} in {count(len(jobs), 'job')}: {tasks}.")
        if not self.repeated:
            self.skipped.add("rerun")
            return
        self.details["rerun"] = f"{count(len(self.repeated), 'job')}, sample seed {self.seed}"

    def _sample(self) -> list[dict[str, Any]]:
        """Return jobs to run again: those that look like copies, then a random sample."""
        tasks = self.reference.tasks
        able = [r for r in self.done if r["task"] in tasks and not self._has_other_data(r["task"])]
        if not self.jobs or not able or self.reference.model is None:
            return []
        able = [r for r in able if r["fold"] < len(self.reference.folds(r["task"]))]
        order = np.random.default_rng(self.seed).permutation(len(able))
        mixed = [able[place] for place in order]
        first = {jobs[0] for jobs in self.copied.values()}
        seen: Counter[str] = Counter()
        places = []
        for record in mixed:  # one job of every task before a second one of any
            places.append(((record["task"], record["fold"]) not in first, seen[record["task"]]))
            seen[record["task"]] += 1
        chosen = sorted(range(len(mixed)), key=places.__getitem__)[: self.jobs]
        return [mixed[place] for place in chosen]

    def _compare_again(self, record: Mapping[str, Any]) -> None:
        """Run a job again and compare its predictions with the stored ones."""
        task, fold = record["task"], record["fold"]
        stored = self._answers(record)
        if stored is None:
            return
        try:
            again = self.reference.run_again(task, fold)
            apart, noise = distance(stored, again), 0.0
            if apart > TOLERANCE:
                seeds = [record["seed"] + step for step in (1000, 2000)]
                others = [self.reference.run_again(task, fold, seed) for seed in seeds]
                noise = seed_noise(stored, again, others)
        except KaratError as error:
            self.notes.append(f"rerun: {task}, fold {fold} could not be run: {error}")
            return
        self.repeated[task, fold] = apart <= TOLERANCE + NOISE * noise
        if not self.repeated[task, fold]:
            message = f"a new run gives other predictions: they differ by {rounded(apart)} per row "
            message += f"(of at most 1), and by up to {rounded(noise)} between seeds."
            self._refuse("rerun", message, task, fold)

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
        known = [end for end in ends if end is not None]
        early = [end < start for end in known] if start is not None else []
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


def are_copies(one: Predictions, other: Predictions) -> bool:
    """Return whether two predictions are more equal than those of two models would be.

    Only real numbers can show it: two good models may give the same labels.
    """
    mine, theirs = _numbers(one), _numbers(other)
    if mine is None or theirs is None or mine.shape != theirs.shape:
        return False
    if one.key is not None and other.key is not None and (one.key != other.key).any():
        return False
    if other.probabilities is not None:  # two good models are equally sure of many rows
        unsure = (theirs > SURE) & (theirs < 1 - SURE)
        mine, theirs = mine[unsure], theirs[unsure]
    if len(np.unique(theirs.round(12))) < FEWEST_VALUES:
        return False  # such as a model that predicts a constant
    return bool(np.median(np.abs(mine - theirs)) <= EQUAL * float(np.std(theirs)))


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


def _number(value: float) -> str:
    return "missing" if np.isnan(value) else f"{value:.12g}"


def _read_scores(path: Path) -> pd.DataFrame | None:
    try:
        texts = {name: str for name in ("task", "model", "corruption", "metric")}
        return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values={"value": [""]})
    except (OSError, ValueError):
        return None


def _by_key(table: pd.DataFrame) -> pd.Series:
    """Return scores by all that names them, sorted."""
    frame = table[list(SCORE_COLUMNS)].fillna({"corruption": ""})
    keys = [name for name in SCORE_COLUMNS if name != "value"]
    made = frame.astype(dict.fromkeys(("repeat", "fold", "draw", "epoch", "severity"), float))
    return made.astype({"value": float}).set_index(keys)["value"].sort_index()


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


def _moment(text: Any) -> datetime | None:
    """Return a time stamp; None if the text is not one."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
