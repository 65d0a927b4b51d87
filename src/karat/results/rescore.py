"""Compute the scores of a run again from its predictions, and add other metrics."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from karat import __version__
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError
from karat.metrics.base import get_metric, score
from karat.predictions import Predictions
from karat.results.beside import find_run
from karat.results.reread import reread, view_of
from karat.results.run import Run

COLUMNS = ("task", "fold", "view", "metric", "before", "value", "why")
#: maximum length of a message in a table
INFO_LENGTH = 200


@dataclass(frozen=True, eq=False)
class Rescored:
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

    @property
    def differences(self) -> pd.DataFrame:
        """The scores of the run's own metrics that are not exactly equal to the earlier ones."""
        old, new = self.scores["before"], self.scores["value"]
        same = (old == new) | (old.isna() & new.isna())
        return self.scores[~same & ~self.scores["added"]][list(COLUMNS)].reset_index(drop=True)

    def write(self, output: str | Path) -> Run:
        """Write a new run folder with the new scores and the predictions."""
        made = Run.create(Path(output), self._about())
        before = {(r["task"], r["fold"]): r for r in self.run.records()}
        for record in self.records:
            old = before[record["task"], record["fold"]]
            made.take_over(self.run, record)
            for view in old["views"]:
                # do not copy unreadable files
                if view.get("status", "ok") == "ok" and not _is_ok(record, view):
                    place = made._view_folder(record["task"], record["fold"], view_of(view).name)
                    _remove(place, whole=view_of(view) != CLEAN)
        made.finish()
        return made

    def _about(self) -> dict[str, Any]:
        about = copy.deepcopy(self.run.about)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        source = {"run": self.run.folder.resolve().name, "karat": __version__, "added": self.added}
        fits = self.scores[self.scores["added"] & self.scores["value"].notna()]
        for task in about["tasks"]:
            new = list(dict.fromkeys(fits.loc[fits["task"] == task["name"], "metric"]))
            task["metrics"] = [*task["metrics"], *new]
            higher = {name: get_metric(name).higher_is_better for name in new}
            task["higher_is_better"] = {**task.get("higher_is_better", {}), **higher}
        return {**about, "stamp": stamp, "rescored": source}


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
    found = find_run(run)
    imported = found.about.get("imported")
    if imported:
        raise DataError(
            f"{found.folder} was imported from {imported.get('system')} "
            f"({imported.get('file')}) and has no predictions to compute scores from."
        )
    work = _Work(found, check_metrics(metrics))
    for record in _valid_records(found):
        work.rescore(record)
    result = work.result()
    if output is not None:
        result.write(output)
    return result


def _valid_records(run: Run) -> list[dict[str, Any]]:
    try:
        records = run.records()
    except TypeError:  # they cannot be sorted
        records = [{}]
    if not all(map(_is_valid, records)):
        raise DataError(f"{run.folder / 'jobs'} has a damaged record.")
    return records


def _is_valid(record: Mapping[str, Any]) -> bool:
    """Return whether a record has valid types; its fold becomes part of file paths."""
    if not record or not isinstance(record["task"], str) or not isinstance(record["views"], list):
        return False
    fold = record["fold"]
    integer = isinstance(fold, int) and not isinstance(fold, bool) and fold >= 0
    return (fold is None or integer) and all(
        isinstance(view, dict)
        and isinstance(view.get("scores"), dict)
        and isinstance(view.get("corruption"), str)
        and "severity" in view
        for view in record["views"]
    )


def check_metrics(metrics: Sequence[str] | str | None) -> list[str]:
    """Return the names of metrics without duplicates; raise if one is unknown."""
    asked = [metrics] if isinstance(metrics, str) else list(metrics or ())
    messages: list[str] = []
    for name in asked:
        try:
            get_metric(name)
        except DefinitionError as error:
            messages += error.messages
    if messages:
        raise DefinitionError(*messages)
    return list(dict.fromkeys(asked))


class _Work:
    """The state of rescoring a run."""

    def __init__(self, run: Run, asked: Sequence[str]) -> None:
        self.run = run
        self.asked = asked
        self.rows: list[tuple[Any, ...]] = []
        self.records: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.unknown: set[str] = set()

    def rescore(self, record: Mapping[str, Any]) -> None:
        """Score one job again; a job without predictions is not changed."""
        new = copy.deepcopy(dict(record))
        for view in new["views"] if record["fold"] is not None else ():
            if view.get("status", "ok") != "ok":
                continue
            try:
                answers = reread(self.run, record, view_of(view))
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
        own, reasons = view["scores"], view.get("reasons", {})
        values: dict[str, float | None] = {}
        whys: dict[str, str] = {}
        for name in dict.fromkeys([*own, *self.asked]):
            if not self._is_available(name):
                value, why = own[name], reasons.get(name, "")
            else:
                value, why = score(name, answers)
            values[name] = value
            whys |= {name: why} if why else {}
            row = (own.get(name), value, why, name not in own)
            self._row(record, view_of(view), name, row)
        view.update(scores=values, reasons=whys)

    def _is_available(self, name: str) -> bool:
        """Return whether a metric can be computed; names in files never import code."""
        if name in self.asked:
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
        return Rescored(
            self.run,
            table,
            [name for name in self.asked if (table["added"] & (table["metric"] == name)).any()],
            self.problems,
            list(self._notes(table)),
            self.records,
        )

    def _notes(self, table: pd.DataFrame) -> Iterator[str]:
        for name in sorted(self.unknown):
            yield (
                f"{name} is not registered and was not recomputed; pass it with --metric, or the "
                f"file that registers it with --define."
            )
        missing = table[table["added"] & table["value"].isna()]
        for (task, name), part in missing.groupby(["task", "metric"], sort=False):
            yield f"{task}: {part['why'].iloc[0] or name}"


def _is_ok(record: Mapping[str, Any], view: Mapping[str, Any]) -> bool:
    seen = [each for each in record["views"] if view_of(each) == view_of(view)]
    return bool(seen) and seen[0].get("status", "ok") == "ok"


def _remove(folder: Path, *, whole: bool) -> None:
    if whole:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for name in ("predictions.csv", "metadata.json", "missing.txt", "sample.csv"):
            (folder / name).unlink(missing_ok=True)
