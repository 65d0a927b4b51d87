"""Rescore: every score of a run computed again from its predictions files, others added."""

from __future__ import annotations

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
from karat.results.reread import reread
from karat.results.run import Run

COLUMNS = ("task", "fold", "view", "metric", "before", "value", "why")
#: a message in a table is cut to this length
INFO_LENGTH = 200


@dataclass(frozen=True, eq=False)
class Rescored:
    """A run's scores computed again.

    Attributes
    ----------
    run
        The run whose predictions were read; it is left as it is.
    scores
        One row per score: ``task``, ``fold``, ``view``, ``metric``, the value ``before`` (NaN if
        there was none), the ``value`` now, and ``why`` there is none.
    added
        The metrics that the run did not have on some task.
    problems
        A message for every file that could not be used; its fold counts as failed.
    notes
        What a reader must know, such as metrics that cannot be computed here.
    records
        The jobs' records with the new scores.
    """

    run: Run
    scores: pd.DataFrame
    added: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def differences(self) -> pd.DataFrame:
        """The scores of the run's own metrics that are not what they were, to the last digit."""
        old, new = self.scores["before"], self.scores["value"]
        same = (old == new) | (old.isna() & new.isna())
        return self.scores[~same & ~self.scores["added"]][list(COLUMNS)].reset_index(drop=True)

    def write(self, output: str | Path) -> Run:
        """Write a new run folder with the new scores and the predictions they were made of."""
        made = Run.create(Path(output), self._about())
        before = {(r["task"], r["fold"]): r for r in self.run.records()}
        for record in self.records:
            old = before[record["task"], record["fold"]]
            made.take_over(self.run, record)
            for view in old["views"]:
                # what could not be read is not handed on
                if view.get("status", "ok") == "ok" and not _is_ok(record, view):
                    place = made._view_folder(record["task"], record["fold"], _view(view).name)
                    _remove(place, whole=_view(view) != CLEAN)
        made.finish()
        return made

    def _about(self) -> dict[str, Any]:
        about = copy.deepcopy(self.run.about)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        told = {"run": self.run.folder.resolve().name, "karat": __version__, "added": self.added}
        fits = self.scores[self.scores["added"] & self.scores["value"].notna()]
        for task in about["tasks"]:
            new = list(dict.fromkeys(fits.loc[fits["task"] == task["name"], "metric"]))
            task["metrics"] = [*task["metrics"], *new]
            higher = {name: get_metric(name).higher_is_better for name in new}
            task["higher_is_better"] = {**task.get("higher_is_better", {}), **higher}
        return {**about, "stamp": stamp, "rescored": told}


def rescore(
    run: Run | str | Path,
    metrics: Sequence[str] | str | None = None,
    output: str | Path | None = None,
) -> Rescored:
    """Compute every score of a run again from its predictions, in all folds and views.

    Parameters
    ----------
    run
        A run folder. Nothing in it is changed.
    metrics
        Metrics to compute besides the run's own; one that does not fit a task has a reason there.
    output
        Where to write a new run folder with the new scores; without it nothing is written.
    """
    found = find_run(run)
    told = found.about.get("imported")
    if told:
        raise DataError(
            f"{found.folder} was imported from {told.get('system')} ({told.get('file')}): it has "
            f"no predictions to compute scores from."
        )
    work = _Work(found, check_metrics(metrics))
    for record in _records(found):
        work.again(record)
    done = work.done()
    if output is not None:
        done.write(output)
    return done


def _records(run: Run) -> list[dict[str, Any]]:
    """Return a run's records, or say that one is not what a run writes."""
    try:
        records = run.records()
    except TypeError:  # they cannot be put in order
        records = [{}]
    if not all(map(_is_whole, records)):
        raise DataError(f"{run.folder / 'jobs'} has a record that is damaged.")
    return records


def _is_whole(record: Mapping[str, Any]) -> bool:
    """Return whether a record is what a run writes; its fold is part of the paths of its files."""
    if not record:
        return False
    fold, views = record["fold"], record["views"]
    whole = isinstance(fold, int) and not isinstance(fold, bool) and fold >= 0
    right = isinstance(record["task"], str) and (fold is None or whole) and isinstance(views, list)
    for view in views if right else ():
        right = right and isinstance(view, dict) and isinstance(view.get("scores"), dict)
        right = right and isinstance(view.get("corruption"), str) and "severity" in view
    return right


def check_metrics(metrics: Sequence[str] | str | None) -> list[str]:
    """Return the names of metrics, or say which there are none of."""
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
    """A run being scored again: what was found so far."""

    def __init__(self, run: Run, asked: Sequence[str]) -> None:
        self.run = run
        self.asked = asked
        self.rows: list[tuple[Any, ...]] = []
        self.records: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.unknown: set[str] = set()

    def again(self, record: Mapping[str, Any]) -> None:
        """Score one job again; who had no answers stays as it is."""
        new = copy.deepcopy(dict(record))
        for view in new["views"] if record["fold"] is not None else ():
            if view.get("status", "ok") != "ok":
                continue
            try:
                answers = reread(self.run, record, _view(view))
            except KaratError as error:
                self._fail(new, view, str(error))
                if not new["views"]:
                    break
            else:
                self._score(new, view, answers)
        self.records.append(new)

    def _fail(self, record: dict[str, Any], view: dict[str, Any], message: str) -> None:
        self.problems.append(message)
        seen, before = _view(view), view["scores"]
        # in a table the file's place in the run will do
        said = message.replace(f"{self.run.folder}{os.sep}", "")[:INFO_LENGTH]
        view.update(status="failed", info=said, scores={}, reasons={})
        record.update(status="failed", info=said if seen == CLEAN else f"{seen.name}: {said}")
        if seen == CLEAN:
            # as in a job: without answers on clean data there are none at all
            record["views"] = []
        for name, value in before.items():
            self._row(record, seen, name, (value, None, message, False))

    def _score(self, record: dict[str, Any], view: dict[str, Any], answers: Predictions) -> None:
        own, reasons = view["scores"], view.get("reasons", {})
        values: dict[str, float | None] = {}
        whys: dict[str, str] = {}
        for name in dict.fromkeys([*own, *self.asked]):
            if not self._knows(name):
                value, why = own[name], reasons.get(name, "")
            else:
                value, why = score(name, answers)
            values[name] = value
            whys |= {name: why} if why else {}
            row = (own.get(name), value, why, name not in own)
            self._row(record, _view(view), name, row)
        view.update(scores=values, reasons=whys)

    def _knows(self, name: str) -> bool:
        """Return whether a metric is at hand; a name in a file never makes us import code."""
        if name in self.asked:
            return True
        if ":" not in name:
            try:
                get_metric(name)
                return True
            except KaratError:
                pass
        self.unknown.add(name)
        return False

    def _row(self, record: Mapping[str, Any], view: View, name: str, told: tuple[Any, ...]) -> None:
        self.rows.append((record["task"], record["fold"], view.name, name, *told))

    def done(self) -> Rescored:
        """Return all that was found."""
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
                f"{name} is not known here and was kept as it was; name it with --metric, or the "
                f"file that registers it with --define."
            )
        lost = table[table["added"] & table["value"].isna()]
        for (task, name), part in lost.groupby(["task", "metric"], sort=False):
            yield f"{task}: {part['why'].iloc[0] or name}"


def _view(view: Mapping[str, Any]) -> View:
    return View(view["corruption"], view["severity"], view.get("draw", 0))


def _is_ok(record: Mapping[str, Any], view: Mapping[str, Any]) -> bool:
    seen = [each for each in record["views"] if _view(each) == _view(view)]
    return bool(seen) and seen[0].get("status", "ok") == "ok"


def _remove(folder: Path, *, whole: bool) -> None:
    if whole:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for name in ("predictions.csv", "metadata.json", "missing.txt", "sample.csv"):
            (folder / name).unlink(missing_ok=True)
