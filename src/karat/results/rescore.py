"""Compute the scores of a run again from its predictions, and add other metrics.

Predictions files are read with all checks, because they may have been edited.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import io
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat import __version__
from karat.core.files import read_regular
from karat.core.metric_names import canonical_metric
from karat.core.predictions import (
    ANSWERS,
    EXTRAS,
    FILE,
    PRECISIONS,
    ROWS_FILE,
    TEXT_EXTRAS,
    TRUTHS,
    Predictions,
)
from karat.core.writing import draft_folder
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.metrics.metric import get_metric, score
from karat.output.result import Result
from karat.output.table import Table
from karat.results import rescore_wording
from karat.results.run import Run
from karat.results.selection import find_run

_FACTS = ("answers", "truths", "classes", "precision")
_PAIR = ["predictions", "truth"]
COLUMNS = ("task", "fold", "view", "metric", "before", "value", "why")
#: maximum length of a message in a table
INFO_LENGTH = 200


def read_predictions_checked(run: Run, record: Mapping[str, Any], view: View) -> Predictions:
    """Return the predictions of a job on a view; errors name the file and the line."""
    folder = run._view_folder(record["task"], record["fold"], view.name)
    facts = _facts(folder / "metadata.json")
    path, beside = folder / FILE, folder / ROWS_FILE
    text = _text(path)
    rows = _text(beside) if beside.exists() else ""
    try:
        predictions = Predictions.from_csv(text, **facts, rows=rows)
    except (KaratError, ValueError) as error:
        if rows and (mistake := _mistake_beside(rows)):
            raise DataError(f"{beside}{mistake}") from error
        try:
            mistake = _first_mistake(text, facts)
        except DataError as damage:
            mistake = f", {damage}."
        raise DataError(f"{path}{mistake or f': {error}'}") from error
    if rows:
        _check_extras(beside, next(_rows(rows))[1])
    try:
        _check_columns(path, text, facts)
        _check_labels(path, text, predictions)
        _check_probabilities(path, text, predictions)
    except _DamagedLine as damage:
        raise DataError(f"{path}, {damage}.") from damage
    _check_questions(path, predictions, record, view)
    return predictions


class _DamagedLine(DataError):
    """A line of a file that is no CSV; the file is not named."""


def _facts(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(_text(path))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error
    read = read if isinstance(read, dict) else {}
    facts = {name: read.get(name) for name in _FACTS}
    facts["precision"] = read.get("precision", PRECISIONS[0])
    for name, allowed_values in (
        ("answers", ANSWERS),
        ("truths", TRUTHS),
        ("precision", PRECISIONS),
    ):
        if facts[name] not in allowed_values:
            allowed = ", ".join(allowed_values)
            raise DataError(f'{path}: "{name}" must be one of {allowed}, got {facts[name]!r}.')
    classes = facts["classes"]
    if not isinstance(classes, list) or not all(isinstance(label, str) for label in classes):
        raise DataError(f'{path}: "classes" must be a list of labels, got {classes!r}.')
    return facts


def _text(path: Path) -> str:
    try:
        raw = read_regular(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({error.reason}).") from error


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its first line number."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _DamagedLine(f"line {line}: {error}") from error
        yield line, row


def _first_mistake(text: str, facts: Mapping[str, Any]) -> str:
    """Return the first mistake after a comma and its line, or an empty text."""
    header = next(_rows(text), (1, []))[1]
    numbers: list[int] = []
    if (at := _truth(header)) is not None:
        kinds = {at - 1: facts["answers"], at: facts["truths"]}
        labels = {column for column, kind in kinds.items() if kind in ("classes", "items")}
        labels |= {p for p in range(at + 1, len(header)) if header[p] in TEXT_EXTRAS}
        numbers = [column for column in range(len(header)) if column not in labels]
    return _wrong_cell(text, numbers)


def _mistake_beside(text: str) -> str:
    """Return the first mistake in ``rows.csv`` as ``_first_mistake`` does."""
    try:
        header = next(_rows(text), (1, []))[1]
        return _wrong_cell(text, [at for at, n in enumerate(header) if n not in TEXT_EXTRAS])
    except DataError as damage:
        return f", {damage}."


def _wrong_cell(text: str, numbers: list[int]) -> str:
    """Return the first row with a wrong number of cells, or the first cell that is no number."""
    rows = _rows(text)
    _, header = next(rows, (1, []))
    for line, row in rows:
        if len(row) != len(header):
            return f", line {line}: expected {len(header)} cells as in the header, got {len(row)}."
        for at in numbers:
            try:
                float(row[at])
            except ValueError:
                cell = row[at][:40]
                return f', line {line}: column "{header[at]}" must be a number, got "{cell}".'
    return ""


def _truth(header: list[str]) -> int | None:
    places = (at for at in range(len(header) - 1, 0, -1) if header[at - 1 : at + 1] == _PAIR)
    return next(places, None)


def _check_columns(path: Path, text: str, facts: Mapping[str, Any]) -> None:
    _, header = next(_rows(text))
    at = _truth(header) or 0
    labels, extras = header[: at - 1], header[at + 1 :]
    if labels and sorted(labels) != sorted(facts["classes"]):
        raise DataError(
            f"{path}, line 1: the columns before predictions are {_listed(labels)}, but the "
            f"classes in metadata.json are {_listed(facts['classes'])}."
        )
    _check_extras(path, extras)


def _check_extras(path: Path, extras: list[str]) -> None:
    for name in extras:
        if name not in EXTRAS or extras.count(name) > 1:
            what = "duplicate" if name in EXTRAS else "unknown"
            raise DataError(f'{path}, line 1: {what} column "{name}".{did_you_mean(name, EXTRAS)}')


def _check_labels(path: Path, text: str, predictions: Predictions) -> None:
    classes = set(predictions.classes)
    for name, kind, values in (
        ("predictions", predictions.answers, predictions.predictions),
        ("truth", predictions.truths, predictions.target),
    ):
        if kind != "classes" or not classes:
            continue
        labels = values.tolist()
        row = next((i for i, label in enumerate(labels) if label not in classes), None)
        if row is not None:
            raise DataError(
                f'{path}, line {_line(text, row)}: unknown label "{labels[row][:40]}" in column '
                f'"{name}"; expected one of {_listed(predictions.classes)}.'
            )


def _check_probabilities(path: Path, text: str, predictions: Predictions) -> None:
    values = predictions.probabilities
    if values is None or not len(values):
        return
    sums, tolerance = values.sum(axis=1, dtype=float), predictions.tolerance
    wrong = ~((np.abs(sums - 1) <= tolerance) & (values >= -tolerance).all(axis=1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{path}, line {_line(text, row)}: probabilities must be >= 0 and sum to 1, got "
            f"{values[row].tolist()} with sum {sums[row]:.6g} ({int(wrong.sum())} such rows)."
        )


def _check_questions(
    path: Path, predictions: Predictions, record: Mapping[str, Any], view: View
) -> None:
    expected = record.get("questions")
    coverage = next((v.get("coverage") for v in record["views"] if view_of(v) == view), None)
    listed = predictions.weight is not None or (
        predictions.rank is not None and predictions.group is not None
    )
    if expected is None or (listed and predictions.question is None and predictions.known is None):
        return  # rows of pairs or ranked lists can have any number
    if predictions.question is not None:
        numbers = predictions.question
        invalid = (numbers < 0) | (numbers >= expected)
        if len(np.unique(numbers)) < len(numbers) or invalid.any():
            raise DataError(
                f'{path}: the column "question" must have distinct numbers from 0 to '
                f"{expected - 1}."
            )
        if coverage is None or len(predictions) >= round(float(coverage) * expected):
            return
        expected = round(float(coverage) * expected)
    if len(predictions) != expected:
        raise DataError(
            f"{path}: expected {expected} rows as in the record, got {len(predictions)}."
        )


def view_of(view: Mapping[str, Any]) -> View:
    """Return the view of an entry in the views of a record."""
    return View(view["corruption"], view["severity"], view.get("draw", 0))


def _line(text: str, row: int) -> int:
    line, _ = next(itertools.islice(_rows(text), row + 1, None))
    return line


def _listed(names: Any) -> str:
    texts = [str(name)[:20] for name in names[:6]]
    more = [f"... ({len(names)})"] if len(names) > 6 else []
    return ", ".join([*texts, *more]) or "none"


@dataclass(frozen=True, eq=False, repr=False)
class Rescored(Result):
    """The recomputed scores of a run.

    Attributes
    ----------
    run
        The run whose predictions were read; it is not changed.
    scores
        One row per score: ``task``, ``fold``, ``view``, ``metric``, the value ``before`` (NaN if
        there was none), the new ``value``, and ``why`` it is missing.
    added
        The metrics that the run did not have on some task.
    problems
        A message for every file that could not be used; its fold counts as failed.
    notes
        Notes for the user, such as metrics that cannot be computed.
    records
        The records of the jobs with the new scores.
    """

    run: Run
    scores: pd.DataFrame
    added: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "rescored"
    hidden: ClassVar[tuple[str, ...]] = ("run", "records")

    @property
    def sentence(self) -> str:
        """How many scores were computed, and how many differ."""
        return rescore_wording.rescored_sentence(self)

    @property
    def details(self) -> list[str]:
        """The means of added metrics, and the files that could not be used."""
        return [*rescore_wording.added_lines(self), *self.problems]

    @property
    def exit_code(self) -> int:
        """The exit code of ``karat rescore``: 1 if a score differs or a file cannot be used."""
        return int(bool(self.problems) or len(self.differences) > 0)

    def tables(self) -> list[Table]:
        """Return the scores that differ, if any."""
        return [rescore_wording.differences_table(self)] if len(self.differences) else []

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return all scores, and those that differ."""
        return {"scores": self.scores, "differences": self.differences}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; the run is named by its folder."""
        return {**super().to_dict(), "run": self.run.folder.resolve().name}

    @property
    def differences(self) -> pd.DataFrame:
        """The scores of the run's own metrics that are not exactly equal to the earlier ones."""
        old, new = self.scores["before"], self.scores["value"]
        same = (old == new) | (old.isna() & new.isna())
        return self.scores[~same & ~self.scores["added"]][list(COLUMNS)].reset_index(drop=True)

    def write(self, output: str | Path) -> Run:
        """Write a new run folder with the new scores and the predictions."""
        with draft_folder(Path(output)) as draft:
            rescored = Run.create(draft, self._about())
            self._write_files(rescored)
            return rescored.move(Path(output))

    def _write_files(self, rescored: Run) -> None:
        """Write the records, predictions and tables into a new run."""
        rescored.copy_items(self.run)
        before = {(r["task"], r["fold"]): r for r in self.run.records()}
        for record in self.records:
            old = before[record["task"], record["fold"]]
            rescored.copy_job(self.run, record)
            ok = {view_of(view) for view in record["views"] if view.get("status", "ok") == "ok"}
            for view in old["views"]:
                if view.get("status", "ok") != "ok" or view_of(view) in ok:
                    continue
                # do not copy unreadable files
                folder = rescored._view_folder(record["task"], record["fold"], view_of(view).name)
                if view_of(view) != CLEAN:
                    shutil.rmtree(folder, ignore_errors=True)
                    continue
                for name in (FILE, ROWS_FILE, "metadata.json", "missing.txt", "sample.csv"):
                    (folder / name).unlink(missing_ok=True)
        rescored.finish()

    def _about(self) -> dict[str, Any]:
        run_facts = copy.deepcopy(self.run.about)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        source = {"run": self.run.folder.resolve().name, "karat": __version__, "added": self.added}
        fits = self.scores[self.scores["added"] & self.scores["value"].notna()]
        for task in run_facts["tasks"]:
            new = list(dict.fromkeys(fits.loc[fits["task"] == task["name"], "metric"]))
            task["metrics"] = [*task["metrics"], *new]
            higher = {name: get_metric(name).higher_is_better for name in new}
            task["higher_is_better"] = {**task.get("higher_is_better", {}), **higher}
        return {**run_facts, "stamp": stamp, "rescored": source}


def rescore(
    run: Run | str | Path,
    metrics: Sequence[str] | str | None = None,
    output: str | Path | None = None,
) -> Rescored:
    """Compute the scores of a run again from its predictions, in all folds and views.

    Parameters
    ----------
    run
        A run folder, which is not changed.
    metrics
        Additional metrics; if one does not apply to a task, the table has the reason.
    output
        Folder for a new run folder with the new scores. Default: nothing is written.
    """
    opened = find_run(run)
    imported = opened.about.get("imported")
    if imported:
        raise DataError(
            f"{opened.folder} was imported from {imported.get('system')} "
            f"({imported.get('file')}) and has no predictions to compute scores from."
        )
    work = _Work(opened, known_metrics(metrics))
    records, damaged = opened.read_records()
    for name, reason in damaged.items():
        raise DataError(
            f"{opened.folder / 'jobs' / name} is damaged: {reason}; run the job again with "
            f"--resume."
        )
    for record in records:
        work.rescore(record)
    result = work.result()
    if output is not None:
        result.write(output)
    return result


def known_metrics(metrics: Sequence[str] | str | None) -> list[str]:
    """Return Karat's names of metrics without duplicates; raise if one is unknown."""
    several = [metrics] if isinstance(metrics, str) else list(metrics or ())
    canonical = [canonical_metric(name) for name in several]
    messages: list[str] = []
    for name in canonical:
        try:
            get_metric(name)
        except DefinitionError as error:
            messages += error.messages
    if messages:
        raise DefinitionError(*messages)
    return list(dict.fromkeys(canonical))


class _Work:
    """The state of rescoring a run."""

    def __init__(self, run: Run, metrics: Sequence[str]) -> None:
        self.run = run
        self.metrics = metrics
        self.rows: list[tuple[Any, ...]] = []
        self.records: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.unknown: set[str] = set()
        self.not_stored: dict[str, int] = {}

    def rescore(self, record: Mapping[str, Any]) -> None:
        """Score one job again; jobs and views without predictions are not changed."""
        new = copy.deepcopy(dict(record))
        for view in new["views"] if record["fold"] is not None else ():
            if view.get("status", "ok") != "ok":
                continue
            if not view.get("stored", True):
                self.not_stored[record["task"]] = self.not_stored.get(record["task"], 0) + 1
                continue
            try:
                answers = read_predictions_checked(self.run, record, view_of(view))
            except KaratError as error:
                self._fail(new, view, str(error))
                if not new["views"]:
                    break
            else:
                self._score(new, view, answers)
        self.records.append(new)

    def _fail(self, record: dict[str, Any], view: dict[str, Any], message: str) -> None:
        self.problems.append(message)
        seen, before = view_of(view), view["scores"]
        # tables have the path relative to the run folder
        info = message.replace(f"{self.run.folder}{os.sep}", "")[:INFO_LENGTH]
        view.update(status="failed", info=info, scores={}, reasons={})
        record.update(status="failed", info=info if seen == CLEAN else f"{seen.name}: {info}")
        if seen == CLEAN:
            # as in a job that fails on clean data
            record["views"] = []
        for name, value in before.items():
            self._row(record, seen, name, (value, None, message, False))

    def _score(self, record: dict[str, Any], view: dict[str, Any], answers: Predictions) -> None:
        scores, reasons = view["scores"], view.get("reasons", {})
        values: dict[str, float | None] = {}
        whys: dict[str, str] = {}
        for name in dict.fromkeys([*scores, *self.metrics]):
            if not self._is_available(name):
                value, why = scores[name], reasons.get(name, "")
            else:
                value, why = score(name, answers)
            values[name] = value
            whys |= {name: why} if why else {}
            row = (scores.get(name), value, why, name not in scores)
            self._row(record, view_of(view), name, row)
        view.update(scores=values, reasons=whys)

    def _is_available(self, name: str) -> bool:
        """Return whether a metric can be computed; names in files never import code."""
        if name in self.metrics:
            return True
        if ":" not in name:
            with contextlib.suppress(KaratError):
                get_metric(name)
                return True
        self.unknown.add(name)
        return False

    def _row(self, record: Mapping[str, Any], view: View, name: str, row: tuple[Any, ...]) -> None:
        self.rows.append((record["task"], record["fold"], view.name, name, *row))

    def result(self) -> Rescored:
        """Return the result."""
        table = pd.DataFrame(self.rows, columns=[*COLUMNS, "added"])
        table = table.astype({"before": float, "value": float, "added": bool})
        added = set(table.loc[table["added"], "metric"])
        notes = [
            f"{name} is not registered and was not recomputed; pass it with --metric, or the file "
            f"that registers it with --define."
            for name in sorted(self.unknown)
        ]
        notes += [
            f"{task}: {count} corrupted views were not recomputed, their predictions are not "
            f"stored; run the task with keep_predictions: all."
            for task, count in self.not_stored.items()
        ]
        missing = table[table["added"] & table["value"].isna()]
        for (task, name), part in missing.groupby(["task", "metric"], sort=False):
            notes.append(f"{task}: {part['why'].iloc[0] or name}")
        new = [name for name in self.metrics if name in added]
        return Rescored(self.run, table, new, self.problems, notes, self.records)
