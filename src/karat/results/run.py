"""Run: the result folder of one model on one suite, and the artifacts in it.

::

    <model>.<suite>.<constraint>.<mode>.<timestamp>/
        run.json                                  the plan: model, tasks, seed, versions
        jobs/<task>.<fold>.json                   one record per finished job
        jobs/imported.jsonl                       the records of an imported run, one per line
        predictions/<task>/<fold>/predictions.csv, rows.csv, metadata.json, missing.txt
        items/<dataset>-<hash>.csv.gz             keys and texts or cells of the test items
        missing/<task>.txt                        items without a vector, over all folds
        logs/<task>/<fold>.txt                    warnings, output and traceback
        scores/results.csv, <model>.benchmark_<suite>.csv   one row per job, as the AutoML
                                                  Benchmark writes them
        scores/jobs.csv, scores.csv               tables of all facts and of all scores
        scores/jobs.columns                       all records in one file, of a large run
        <kind>/<task>/<fold>/                     artifacts that the model's definition names

A model may have a method ``artifacts(names)`` that returns contents by ``"kind/file"``: text,
bytes, a table, or the path of a file or folder. Any model can store ``models``: itself, pickled.
Karat loads such a pickle only on explicit request.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import pickle
import platform
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.core.extension import moved_module
from karat.core.files import encodable, read_regular, safe_name
from karat.core.notebook import facts_html
from karat.core.predictions import FILE, ROWS_FILE, Predictions
from karat.core.writing import write_atomic
from karat.errors import ContractError, DataError, did_you_mean
from karat.results.compact import FILE as COMPACT
from karat.results.compact import IMPORTED, Compact, make_compact, stamp_records, write_compact
from karat.results.csv_text import csv_text
from karat.results.item_tables import FOLDER, ItemTable, read_item_table
from karat.results.run_folders import RUN_FILE, find_run_folders, is_run_folder
from karat.results.stored_facts import NEEDED, check_about, check_record, without_wrong_facts
from karat.results.stored_json import parse_stored_json, read_json_object
from karat.results.tables import (
    ELIMINATED,
    WHOLE_COLUMNS,
    amlb_columns,
    eliminated_records,
    results_columns,
    results_table,
    scores_table,
)

#: folders of a run that cannot hold artifacts
TAKEN = ("jobs", "predictions", "scores", "missing", FOLDER)
MODELS = "models"
#: what functions about runs accept: runs, run folders and folders of run folders
Runs: TypeAlias = "Run | str | Path | Iterable[Run | str | Path]"

_KEYS = {"licence": "license", "openml_licence": "openml_license"}  # old key: present key
_HEADS = {
    "logistic": "logistic-regression",
    "linear": "linear-regression",
    "nb": "naive-bayes",
    "tree": "decision-tree",
}
SCHEMA = 1
#: most characters of the error of a library in a message
LONGEST_REASON = 200
#: what precedes the tasks in a run.json
_TASKS = '\n "tasks": '
#: what is wrong with a record that is no JSON object with all keys
INCOMPLETE = "incomplete"
#: values of keys that a run.json may lack
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("suite", "constraint", "mode", "stamp", "version", "karat"), ""),
    "params": {},
}
PICKLES = (".pkl", ".pickle", ".joblib")
#: modules of heads in ``karat.probes.heads``, where earlier versions had them, and the present ones
MOVED = {
    "model_tree": "decision_tree",
    "nested_selection": "estimators",
    "stacked_training": "adamw",
}
#: classes of the core that were in a module that is an extension now, and where they are
TABLE_CLASSES = {
    ("karat.models.automl", name): "karat.models.table_predictor"
    for name in ("ConstantPredictor", "MatrixPredictor", "PreparedTable", "TablePredictor")
}


def collect_artifacts(fitted: Any, names: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Return the requested artifacts by ``kind/file``, and a note for each missing one."""
    artifacts: dict[str, bytes] = {}
    if callable(getattr(fitted, "artifacts", None)):
        contents = fitted.artifacts(list(names))
        if not isinstance(contents, Mapping):
            raise ContractError(f"artifacts must return a mapping, got {type(contents).__name__}.")
        for name, content in contents.items():
            artifacts |= _contents(name, content)
    if MODELS in names and not any(name.startswith(f"{MODELS}/") for name in artifacts):
        import cloudpickle

        artifacts[f"{MODELS}/model.pkl"] = cloudpickle.dumps(fitted)
    kinds = {name.partition("/")[0] for name in artifacts}
    return artifacts, [f'the model has no artifact "{name}"' for name in names if name not in kinds]


def _contents(name: str, content: object) -> dict[str, bytes]:
    """Return the files of one artifact; its name must stay inside the artifact's folder."""
    parts = PurePosixPath(str(name)).parts
    if len(parts) < 2 or ".." in parts or parts[0] in (*TAKEN, "/") or "\\" in str(name):
        raise ContractError(
            f'an artifact name must be "kind/file" in a folder of its own, got "{name}".'
        )
    if isinstance(content, Path) and content.is_dir():
        inside = sorted(path for path in content.rglob("*") if path.is_file())
        return {f"{name}/{p.relative_to(content).as_posix()}": p.read_bytes() for p in inside}
    if isinstance(content, Path):
        return {str(name): content.read_bytes()}
    if isinstance(content, pd.DataFrame):
        return {str(name): content.to_csv(index=False).encode()}
    if isinstance(content, str | bytes):
        return {str(name): content.encode() if isinstance(content, str) else content}
    raise ContractError(
        f'artifact "{name}" must be str, bytes, DataFrame or Path, got {type(content).__name__}.'
    )


def read_rows(folder: Path) -> str:
    """Return the further columns of a job's predictions, which it may not have."""
    try:
        return read_regular(folder / ROWS_FILE).decode()
    except FileNotFoundError:
        return ""


class Run:
    """A result folder. ``scores()`` and ``results()`` are its tables, ``records()`` its jobs.

    Attributes
    ----------
    folder
        The path of the folder.
    gone
        Number of records that another program removed while the run was running.
    """

    gone = 0

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._has_warned = False

    def __repr__(self) -> str:
        return f"<Run {self.folder.name}>"

    def _repr_html_(self) -> str:
        try:
            facts_shown = {
                name: self.about.get(name) for name in ("model", "suite", "seed", "karat")
            }
            jobs = Counter(str(record["status"]) for record in self.records())
        except (DataError, KeyError):  # a damaged folder is shown by its name
            facts_shown, jobs = {}, Counter()
        statuses = ", ".join(f"{number:,} {status}" for status, number in jobs.items())
        facts = {**facts_shown, "jobs": statuses, "folder": self.folder}
        return facts_html(f"Run {self.folder.name}", facts)

    @classmethod
    def create(cls, output: Path, about: Mapping[str, Any]) -> Run:
        """Create the folder of a new run and write its plan."""
        for folder in _folders(output, about):
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                if not output.is_dir():
                    raise
        write_atomic(folder / RUN_FILE, _json({"schema": SCHEMA, **about}), durable=True)
        return cls(folder)

    def move(self, output: Path) -> Run:
        """Move the folder into another one of the same file system; return the moved run."""
        for folder in _folders(output, self.about):
            if not folder.exists():
                try:
                    self.folder.rename(folder)
                    return type(self)(folder)
                except OSError:  # another process has just made it
                    if not folder.exists():
                        raise
        raise AssertionError("there are always more names")

    def merge_plan(
        self, tasks: Sequence[Mapping[str, Any]], order: Sequence[str] | None = None
    ) -> None:
        """Add the tasks of a new plan; remove earlier records that these tasks were declined.

        The tasks are stored in this order of their names, by default that of the new plan, so that
        the tables are those of a run that was made at once.
        """
        planned = {task["name"] for task in tasks}
        for record in self.records():
            if record["fold"] is None and record["task"] in planned:
                self._record(record).unlink(missing_ok=True)
        merged = {task["name"]: dict(task) for task in self.about["tasks"]}
        for task in tasks:
            earlier = merged.get(task["name"], {}).get("folds", [])
            merged[task["name"]] = {**task, "folds": sorted({*earlier, *task["folds"]})}
        names = [task["name"] for task in tasks] if order is None else order
        run_facts = {**self.about, "tasks": [merged[name] for name in _merged_order(merged, names)]}
        if run_facts != self.about:
            write_atomic(self.folder / RUN_FILE, _json(run_facts), durable=True)
            self.__dict__["about"] = run_facts

    def set_race(self, race: Mapping[str, Any]) -> None:
        """Store the plan and the state of the race that this run is part of."""
        run_facts = {**self.about, "race": dict(race)}
        if run_facts != self.about:
            write_atomic(self.folder / RUN_FILE, _json(run_facts), durable=True)
            self.__dict__["about"] = run_facts
            # records of eliminated jobs have no file
            (self.folder / "scores" / COMPACT).unlink(missing_ok=True)

    def copy_job(self, other: Run, record: Mapping[str, Any]) -> None:
        """Copy a finished job of another run; the record is written last."""
        source = other._predictions(record)
        if source.is_dir():
            shutil.copytree(source, self._predictions(record), dirs_exist_ok=True)
        if other.log(record).is_file():
            self.log(record).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(other.log(record), self.log(record))
        write_atomic(self._record(record), _json(record, None), durable=True)

    def write_items(self, tables: Iterable[ItemTable]) -> None:
        """Write the item tables that this run does not have yet."""
        for file, content in {table.file: table.content for table in tables}.items():
            if file and not (self.folder / file).is_file():
                write_atomic(self.folder / file, content)

    def copy_items(self, other: Run) -> None:
        """Copy the item tables of another run."""
        if (other.folder / FOLDER).is_dir():
            shutil.copytree(other.folder / FOLDER, self.folder / FOLDER, dirs_exist_ok=True)

    def items(self, task: str) -> pd.DataFrame:
        """Return the stored test items of a task, one row per key; missing cells are empty.

        Raises ``DataError`` if the run keeps no items of the task.
        """
        tasks = {entry["name"]: entry for entry in self.about["tasks"]}
        if task not in tasks:
            hint = did_you_mean(task, tasks)
            raise DataError(f'{self.folder} has no task "{task}".{hint}')
        return read_item_table(self.folder, tasks[task])

    def mark_running(self, task: str, fold: int) -> None:
        """Mark a job as running in this process."""
        path = self._record({"task": task, "fold": fold}).with_suffix(".running")
        with contextlib.suppress(OSError):  # a full disk: the job may end when it no longer is
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{os.getpid()} {platform.node()}")

    def unmark_running(self, record: Mapping[str, Any]) -> None:
        """Remove the mark of a job that ended without a record."""
        self._record(record).with_suffix(".running").unlink(missing_ok=True)

    @contextlib.contextmanager
    def marked_running(self) -> Iterator[None]:
        """Mark the run as running while this process waits for jobs on other machines."""
        path = self.folder / "jobs" / "elsewhere.running"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{os.getpid()} {platform.node()}")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def write(
        self,
        record: Mapping[str, Any],
        files: Mapping[str, str],
        artifacts: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write a finished job: its files first, then its record."""
        for name, content in (artifacts or {}).items():
            kind, _, rest = name.partition("/")
            inside = [safe_name(part) for part in rest.split("/")]
            write_atomic(self.artifact_folder(kind, record).joinpath(*inside), content)
        if "log.txt" not in files:
            self.log(record).unlink(missing_ok=True)  # log of an earlier attempt
        for name, text in files.items():
            view, _, file = name.rpartition("/")
            within = [safe_name(view), file] if view else [file]
            path = self._predictions(record).joinpath(*within)
            write_atomic(self.log(record) if name == "log.txt" else path, text)
        write_atomic(self._record(record), _json(record, None), durable=True)
        self.unmark_running(record)

    def write_not_run(self, record: dict[str, Any], reason: str, lacks: str | None) -> None:
        """Write the record of a task that was declined or, without ``lacks``, lost its data."""
        info = " ".join(encodable(reason).split())
        if lacks is None:
            failed = {"status": "failed", "info": f"DataError: {info}", "repeat": 0}
            self.write(record | failed, {"log.txt": reason})
        else:
            more = {"lacks": lacks} if lacks else {}
            self.write(record | {"status": "declined", "info": info, **more}, {})

    def artifact_folder(self, name: str, record: Mapping[str, Any]) -> Path:
        """Return the folder of a job's artifacts of one kind."""
        return self.folder / safe_name(name) / safe_name(record["task"]) / _fold(record)

    def running_jobs(self) -> list[str]:
        """Return the running jobs, by task and fold; jobs of dead processes do not count."""
        import psutil

        running = []
        for path in sorted((self.folder / "jobs").glob("*.running")):
            with contextlib.suppress(OSError, ValueError, OverflowError):
                pid, _, host = read_regular(path).decode().partition(" ")
                number = int(pid)  # raises for a damaged mark, also of another machine
                if host != platform.node() or psutil.pid_exists(number):
                    running.append(path.stem)
        return running

    def log(self, record: Mapping[str, Any]) -> Path:
        """Return the path of a job's log, which may not exist."""
        return self.folder / "logs" / safe_name(record["task"]) / f"{_fold(record)}.txt"

    def _predictions(self, record: Mapping[str, Any]) -> Path:
        return self.folder / "predictions" / safe_name(record["task"]) / _fold(record)

    def _record(self, record: Mapping[str, Any]) -> Path:
        return self.folder / "jobs" / _file_name(record)

    def has(self, record: Mapping[str, Any]) -> bool:
        """Return whether the record of a job is stored."""
        return self._record(record).exists()

    def folders(self) -> list[str]:
        """Return the names of the folders of predictions, logs, artifacts and others."""
        with os.scandir(self.folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def replace_records(self, records: Sequence[dict[str, Any]]) -> None:
        """Write these records, one per line, instead of their own files, and the tables."""
        dump = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
        lines = [dump(record) + "\n" for record in self._sorted(records)]
        write_atomic(self.folder / "jobs" / IMPORTED, "".join(lines), durable=True)
        for name in set(map(_file_name, records)) & set(os.listdir(self.folder / "jobs")):
            (self.folder / "jobs" / name).unlink()
        self.finish()

    def write_records(self, records: Sequence[dict[str, Any]]) -> None:
        """Write all records of an imported run into one file, and its tables."""
        dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        ordered = self._sorted(records)
        as_they_are = True
        (self.folder / "jobs").mkdir()
        with (self.folder / "jobs" / IMPORTED).open("wb") as file:
            for record in ordered:
                text = dump(record)
                try:
                    line = text.encode()
                except UnicodeEncodeError:
                    line, as_they_are = text.encode(errors="backslashreplace"), False
                file.write(line + b"\n")
        compact = make_compact(ordered)
        valid = not any(map(check_record, ordered)) if compact is None else compact.is_valid()
        if as_they_are and valid:
            self._write_tables(ordered, compact)
        else:
            self.finish()

    def finish(self) -> int:
        """Rebuild the tables from the records; return the number of those of jobs that ran."""
        stamp = stamp_records(self.folder)
        records = self.records()
        self._write_tables(records, make_compact(records), stamp)
        ran = (record["fold"] is not None for record in records if record["status"] != ELIMINATED)
        return sum(ran)

    def restore_plan(self) -> bool:
        """Write ``run.json`` again, as it was read, if it was removed; return whether it was."""
        path = self.folder / RUN_FILE
        if path.is_file():
            return False
        write_atomic(path, _json(self.about), durable=True)
        return True

    def _write_tables(
        self, records: list[dict[str, Any]], compact: Compact | None, stamp: list[int] | None = None
    ) -> None:
        write_compact(self.folder, stamp or stamp_records(self.folder), compact)
        scores = self.folder / "scores"
        every = results_columns(self.about, records)
        write_atomic(scores / "jobs.csv", csv_text(every, WHOLE_COLUMNS))
        text = csv_text(amlb_columns(self.about, every), WHOLE_COLUMNS)
        write_atomic(scores / "results.csv", text)
        stem = safe_name(f"{self.about['model']}.benchmark_{self.about['suite']}")
        write_atomic(scores / f"{stem}.csv", text)
        table = scores_table(records) if compact is None else compact.scores()
        text = csv_text({name: column.tolist() for name, column in table.items()})
        write_atomic(scores / "scores.csv", text)
        if not (self.folder / "predictions").is_dir():
            return
        for task in dict.fromkeys(record["task"] for record in records):
            if items := self.missing(task):
                path = self.folder / "missing" / f"{safe_name(task)}.txt"
                write_atomic(path, "\n".join(items) + "\n")

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open an existing run folder."""
        run = cls(Path(folder))
        if not is_run_folder(run.folder):
            raise DataError(f"{folder} is not a run folder: it has no {RUN_FILE}.")
        return run

    @cached_property
    def about(self) -> dict[str, Any]:
        """The plan: model, suite, seed, tasks, versions."""
        path = self.folder / RUN_FILE
        self._about_stamp = about_stamp(self.folder)
        if (read := _read_about(path)) is not None:
            return read
        run_facts = _renamed(read_json_object(path))
        if wrong := check_about(run_facts):
            where = f"{self.folder.name}/{RUN_FILE}"
            raise DataError(f"{where} is damaged: {wrong} is missing or wrong.")
        return _complete(run_facts)

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.about["model"])

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the finished jobs, in the order of the plan."""
        records, damaged = self.read_records()
        if damaged and not self._has_warned:
            self._has_warned = True
            name, reason = next(iter(damaged.items()))
            warnings.warn(
                f"{self.folder.name}: {len(damaged)} of {len(damaged) + len(records)} records are "
                f"damaged and left out ({name}: {reason}); --resume runs these jobs again.",
                stacklevel=2,
            )
        return records

    def read_records(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return the records in the order of the plan, and what is wrong with damaged ones."""
        records, damaged = {}, {}
        folder = self.folder / "jobs"
        names = os.listdir(folder) if folder.is_dir() else []
        # a record in its own file replaces an imported one
        for name in sorted(filter(is_job_file, names), key=lambda name: name != IMPORTED):
            for line, record in enumerate(read_job_file(os.path.join(folder, name)), start=1):
                wrong = INCOMPLETE if record is None else check_record(record)
                job = "" if wrong or record is None else _file_name(record)
                if not wrong and name not in (job, IMPORTED):
                    wrong = "the name does not fit its task and fold"
                if wrong:
                    damaged[f"{name}, line {line}" if name == IMPORTED else name] = wrong
                elif record is not None:
                    records[job] = record
        return self._sorted(records.values()), damaged

    def _in_order(self, records: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
        """Return records in the order of the plan; raise ``DataError`` if they have none."""
        existing = [record for record in records if record is not None]
        for record in existing:
            if not isinstance(record["task"], str) or not isinstance(record["fold"], int | None):
                raise DataError(f"{self.folder.name}/jobs has a damaged record: task or fold.")
        return self._sorted(existing)

    def _sorted(self, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        order = {task["name"]: i for i, task in enumerate(self.about["tasks"])}
        last = len(order)
        every = list(records)
        every += eliminated_records(self.about, every)
        return sorted(every, key=lambda r: (order.get(r["task"], last), r["task"], r["fold"] or 0))

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per score, built from the records."""
        return scores_table(self.records())

    def results(self) -> pd.DataFrame:
        """Return one row per job and view: the columns of ``jobs.csv``."""
        return results_table(self.about, self.records())

    def predictions(
        self, task: str, fold: int = 0, view: str = "clean", replicate: int = 0
    ) -> Predictions:
        """Return the predictions of a fold, on clean data or on a view such as "typos@0.1".

        A run folder has one fit of each fold; several runs of a model as one may have further
        ones, each by its number as ``replicate``.
        """
        if replicate:
            raise DataError(f"{self.folder} has one fit of {task}, fold {fold}; see karat run.")
        folder = self._view_folder(task, fold, view)
        with self._explain_missing(task, fold, view):
            facts = parse_stored_json(read_regular(folder / "metadata.json"))
            kinds = {name: facts[name] for name in ("answers", "truths", "classes")}
            kinds["precision"] = facts.get("precision", "float64")
            text = read_regular(folder / FILE).decode()
            return Predictions.from_csv(text, **kinds, rows=read_rows(folder))

    def missing(self, task: str) -> list[str]:
        """Return the items of a task without a vector, over all folds."""
        files = self._predictions({"task": task, "fold": "*"}).parent.glob("*/missing.txt")
        return sorted(
            {line for file in files for line in read_regular(file).decode().split("\n")} - {""}
        )

    def labels(self, task: str, fold: int = 0, view: str = "clean") -> pd.DataFrame:
        """Return the columns ``predictions`` and ``truth`` as text; faster than ``predictions``."""
        path = self._view_folder(task, fold, view) / "predictions.csv"
        with self._explain_missing(task, fold, view):
            raw = read_regular(path)
            header = next(csv.reader(io.StringIO(raw.decode(), newline="")))
            # classes may have these names too, so use the last pair
            pairs = range(len(header) - 1)
            at = max(i for i in pairs if header[i : i + 2] == ["predictions", "truth"])
            columns = {"usecols": [at, at + 1], "names": range(len(header)), "header": 0}
            labels = pd.read_csv(io.BytesIO(raw), dtype=str, na_filter=False, **columns)
        return labels.set_axis(["predictions", "truth"], axis=1)

    def _view_folder(self, task: str, fold: int, view: str) -> Path:
        folder = self._predictions({"task": task, "fold": fold})
        return folder if view == "clean" else folder / safe_name(view)

    @contextlib.contextmanager
    def _explain_missing(self, task: str, fold: int, view: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            keeps = {entry["name"]: entry.get("keep_predictions") for entry in self.about["tasks"]}
            reason = str(error.strerror)
            if view != "clean" and keeps.get(task) == "clean":
                reason = "the task keeps those on clean data only (keep_predictions)"
            raise DataError(
                f"{self.folder} has no predictions of {task}, fold {fold}, {view}: {reason}."
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{self.folder} has damaged predictions of {task}, fold {fold}, {view}: "
                f"{type(error).__name__}: {str(error)[:LONGEST_REASON]}."
            ) from error


def _complete(run_facts: dict[str, Any]) -> dict[str, Any]:
    """Return a checked ``run.json`` with the values of keys that it may lack."""
    tasks = map(without_wrong_facts, run_facts["tasks"])
    run_facts["tasks"] = [{"dataset": "", "folds": [], **task} for task in tasks]
    return {**DEFAULTS, **without_wrong_facts(run_facts)}


def _read_about(path: Path) -> dict[str, Any] | None:
    """Return a ``run.json`` whose tasks are its last key, as Karat writes it; None for others.

    The tasks of all runs of a plan are the same text, which is read and checked once: runs share
    the objects, so they must not be changed.
    """
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        head, mark, tail = read_regular(path).decode().partition(_TASKS)
        if mark and tail.endswith("]\n}"):
            tasks = _read_tasks(tail[:-2])
            run_facts = parse_stored_json(f"{head.rstrip().removesuffix(',')}}}")
            if tasks is not None and not check_about({**run_facts, "tasks": tasks[:1]}):
                return {**_complete({**run_facts, "tasks": []}), "tasks": list(tasks)}
    return None


@lru_cache(maxsize=32)
def _read_tasks(text: str) -> list[dict[str, Any]] | None:
    """Return the tasks of a ``run.json``; None if one is damaged."""
    run_facts = _renamed({"model": "any", "tasks": parse_stored_json(text)})
    tasks: list[dict[str, Any]] | None = (
        None if check_about(run_facts) else _complete(run_facts)["tasks"]
    )
    return tasks


def about_stamp(folder: Path) -> tuple[int, int] | None:
    """Return time and size of the plan of a run."""
    with contextlib.suppress(OSError):
        facts = (folder / RUN_FILE).stat()
        return facts.st_mtime_ns, facts.st_size
    return None


def is_job_file(name: str) -> bool:
    """Return whether a file in ``jobs`` has records."""
    return name.endswith(".json") or name == IMPORTED


def read_job_file(path: str | Path) -> list[dict[str, Any] | None]:
    """Return the records in a file: one, or one per line if they were imported.

    None is one that is incomplete, for example after a power failure.
    """
    try:
        content = read_regular(path)
    except OSError:
        return [None]
    several = os.path.basename(path) == IMPORTED
    return list(map(_parse, content.splitlines() if several else [content]))


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(content.decode())
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and all(key in record for key in NEEDED) else None


def open_runs(paths: Iterable[str | Path] | str | Path, *, damaged: bool = False) -> list[Run]:
    """Open run folders, and all run folders inside other folders.

    Parameters
    ----------
    paths
        One folder or several.
    damaged
        Whether to return damaged runs inside a folder too, instead of skipping them with a
        warning.
    """
    runs: list[Run] = []
    for path in [Path(paths)] if isinstance(paths, str | Path) else map(Path, paths):
        if is_run_folder(path):
            runs.append(Run.open(path))
            continue
        inside = list(find_run_folders(path))
        readable = [run for run in map(Run, inside) if damaged or _is_readable(run)]
        if inside and not readable:
            raise DataError(f"none of the {len(inside)} runs in {path} can be read.")
        if not inside:
            missing = "is not a folder" if path.exists() else "does not exist"
            what = "contains no run folder" if path.is_dir() else missing
            deeper = sorted(
                {str(folder.parent) for folder in find_run_folders(path, levels=(2, 3))}
            )
            todo = f"use {' '.join(deeper[:3])}" if deeper else "create one with karat run"
            raise DataError(f"{path} {what}; {todo}.")
        runs += readable
    return runs


def _is_readable(run: Run) -> bool:
    """Return whether run.json can be read; warn if not."""
    try:
        run.about  # noqa: B018
    except DataError as error:
        warnings.warn(f"skipping {run.folder.name}: {error}", stacklevel=3)
        return False
    return True


def earlier_runs(output: Path, run_facts: Mapping[str, Any], keys: Sequence[str]) -> Iterator[Run]:
    """Yield the runs in a folder with the same values of these keys, newest first."""
    runs = []
    for run in map(Run, find_run_folders(output)):
        if _is_readable(run) and all(run.about.get(key) == run_facts[key] for key in keys):
            runs.append(run)
    yield from newest_first(runs)


def _merged_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names in an order; one that it lacks stays behind the one that precedes it.

    >>> _merged_order(["c", "x", "a", "b"], ["a", "b", "c", "d"])
    ['a', 'b', 'c', 'x']
    """
    existing = list(names)
    merged = [name for name in order if name in existing]
    at = 0
    for name in existing:
        if name not in merged:
            merged.insert(at, name)
        at = merged.index(name) + 1
    return merged


def _folders(output: Path, run_facts: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the possible folders of a run; those after the first have a number."""
    names = [safe_name(str(run_facts[key])) for key in ("model", "suite", "constraint", "mode")]
    stem = ".".join([*names, run_facts["stamp"]])
    yield output / stem
    yield from (output / f"{stem}-{attempt}" for attempt in itertools.count(2))


def _renamed(run_facts: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a ``run.json`` with the present names of keys and values."""
    tasks = run_facts.get("tasks")
    for task in tasks if isinstance(tasks, list) else []:
        if not isinstance(task, dict):
            continue
        if isinstance(task.get("about"), dict):
            task["about"] = {_KEYS.get(key, key): value for key, value in task["about"].items()}
        if "twins" in task:
            task["duplicate_rows"] = task.pop("twins")
        if task.get("missing") == "penalise":
            task["missing"] = "penalize"
        probe = task.get("probe")
        if isinstance(probe, dict) and isinstance(probe.get("head"), str):
            task["probe"] = probe | {"head": _HEADS.get(probe["head"], probe["head"])}
    return run_facts


def newest_first(runs: Iterable[Run]) -> list[Run]:
    """Return runs by their time stamps, newest first."""

    def age(run: Run) -> tuple[str, int, str]:
        # runs of the same second differ by the number at the end of the name
        name = run.folder.resolve().name
        return str(run.about.get("stamp")), len(name), name

    return sorted(runs, key=age, reverse=True)


def _file_name(record: Mapping[str, Any]) -> str:
    return f"{safe_name(record['task'])}.{_fold(record)}.json"


def _fold(record: Mapping[str, Any]) -> str:
    # tasks that were declined or whose data cannot be loaded have no fold
    never = "declined" if record.get("status", "declined") == "declined" else "lost"
    return never if record["fold"] is None else str(record["fold"])


def _json(value: Mapping[str, Any], indent: int | None = 1) -> str:
    """Return a value as JSON; lone surrogates in its texts become escapes.

    Without ``indent`` it is one line, which takes a tenth of the time.
    """

    def dump(value: object) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=str)

    text = dump(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = dump(_without_surrogates(value))
    return text


def _without_surrogates(value: object) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_without_surrogates(inner) for inner in value]
    if isinstance(value, dict):
        return {encodable(key): _without_surrogates(inner) for key, inner in value.items()}
    return value


class _Unpickler(pickle.Unpickler):
    """Finds the classes that an earlier version has stored, where they are now."""

    def find_class(self, module: str, name: str) -> Any:
        package, _, last = module.rpartition(".")
        if package == "karat.probes.heads":
            module = f"karat.probes.{MOVED.get(last, last)}"
        module = TABLE_CLASSES.get((module, name)) or moved_module(module) or module
        return super().find_class(module, name)


def load_artifact(
    run: Any, name: str, task: str, fold: int = 0, *, allow_pickle: bool = False
) -> Any:
    """Return an artifact of a run: the content of its file, or a dict by file name if several.

    CSV files give DataFrames, ``.json`` the parsed value, ``.npy`` arrays, text files strings,
    and other files bytes.

    Parameters
    ----------
    run
        A run or its folder.
    name
        The kind of artifact, such as ``"models"``.
    task, fold
        The job.
    allow_pickle
        Load pickles, too. This executes code: only if you trust the run.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    folder = opened.artifact_folder(name, {"task": task, "fold": fold})
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    if not files:
        folders = [path.name for path in opened.folder.iterdir() if path.is_dir()]
        artifacts = sorted(set(folders) - set(TAKEN))
        raise DataError(
            f'{opened.folder} has no artifact "{name}" of {task}, fold {fold}.'
            f"{did_you_mean(name, artifacts)} Available: {', '.join(artifacts) or 'none'}."
        )
    loaded = {p.relative_to(folder).as_posix(): _load(p, allow_pickle) for p in files}
    return next(iter(loaded.values())) if len(loaded) == 1 else loaded


def _load(path: Path, allow_pickle: bool) -> Any:
    raw = read_regular(path)
    if path.suffix in PICKLES:
        if not allow_pickle:
            raise DataError(
                f"{path} is a pickle, and loading it executes code; pass allow_pickle=True if you "
                f"trust the run."
            )
        return _Unpickler(io.BytesIO(raw)).load()
    if path.suffix == ".csv":
        return pd.read_csv(io.BytesIO(raw))
    if path.suffix == ".json":
        return json.loads(raw)
    if path.suffix == ".npy":
        return np.load(io.BytesIO(raw), allow_pickle=False)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
