"""Read a predictions file with all checks, because it may have been edited."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.corruptions.view import View
from karat.errors import DataError, KaratError, did_you_mean
from karat.heads.answers import TOLERANCE
from karat.predictions import ANSWERS, TRUTHS, Predictions
from karat.results.run import Run

#: the columns allowed after ``truth``
EXTRAS = ("group", "rank", "candidates", "question", "weight", "known")
_FACTS = ("answers", "truths", "classes")
_PAIR = ["predictions", "truth"]


def reread(run: Run, record: Mapping[str, Any], view: View) -> Predictions:
    """Return the predictions of a job on a view; errors name the file and the line."""
    folder = run._view_folder(record["task"], record["fold"], view.name)
    facts = _facts(folder / "metadata.json")
    path = folder / "predictions.csv"
    text = _text(path)
    try:
        found = Predictions.from_csv(text, **facts)
    except (KaratError, ValueError) as error:
        raise DataError(_explain(path, text, facts, error)) from error
    _check_columns(path, text, facts)
    _check_labels(path, text, found)
    _check_probabilities(path, text, found)
    _check_questions(path, found, record, view)
    return found


def _facts(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(_text(path))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error
    facts = {name: read.get(name) if isinstance(read, dict) else None for name in _FACTS}
    for name, known in (("answers", ANSWERS), ("truths", TRUTHS)):
        if facts[name] not in known:
            allowed = ", ".join(known)
            raise DataError(f'{path}: "{name}" must be one of {allowed}, got {facts[name]!r}.')
    classes = facts["classes"]
    if not isinstance(classes, list) or not all(isinstance(each, str) for each in classes):
        raise DataError(f'{path}: "classes" must be a list of labels, got {classes!r}.')
    return facts


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
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
            raise DataError(f"line {line}: {error}") from error
        yield line, row


def _explain(path: Path, text: str, facts: Mapping[str, Any], error: Exception) -> str:
    """Return why a file could not be read, with the line."""
    try:
        return f"{path}, {_first_mistake(text, facts)}"
    except DataError as damage:
        return f"{path}, {damage}."
    except StopIteration:
        return f"{path}: {error}"


def _first_mistake(text: str, facts: Mapping[str, Any]) -> str:
    """Return the first mistake with its line, or raise ``StopIteration`` if there is none."""
    rows = _rows(text)
    _, header = next(rows)
    numbers = _numeric(header, facts)
    for line, row in rows:
        if len(row) != len(header):
            return f"line {line}: expected {len(header)} cells as in the header, got {len(row)}."
        for at in numbers:
            try:
                float(row[at])
            except ValueError:
                cell = row[at][:40]
                return f'line {line}: column "{header[at]}" must be a number, got "{cell}".'
    raise StopIteration


def _numeric(header: list[str], facts: Mapping[str, Any]) -> list[int]:
    at = _truth(header)
    if at is None:
        return []
    kinds = {at - 1: facts["answers"], at: facts["truths"]}
    text = {place for place, kind in kinds.items() if kind in ("classes", "items")}
    text |= {place for place in range(at + 1, len(header)) if header[place] == "group"}
    return [place for place in range(len(header)) if place not in text]


def _truth(header: list[str]) -> int | None:
    places = (at for at in range(len(header) - 1, 0, -1) if header[at - 1 : at + 1] == _PAIR)
    return next(places, None)


def _check_columns(path: Path, text: str, facts: Mapping[str, Any]) -> None:
    _, header = next(_rows(text))
    at = _truth(header) or 0
    labels, extras = header[: at - 1], header[at + 1 :]
    if labels and labels != facts["classes"]:
        raise DataError(
            f"{path}, line 1: the columns before predictions are {_listed(labels)}, but the "
            f"classes in metadata.json are {_listed(facts['classes'])}."
        )
    for name in extras:
        if name not in EXTRAS or extras.count(name) > 1:
            what = "duplicate" if name in EXTRAS else "unknown"
            raise DataError(f'{path}, line 1: {what} column "{name}".{did_you_mean(name, EXTRAS)}')


def _check_labels(path: Path, text: str, found: Predictions) -> None:
    known = set(found.classes)
    for name, kind in (("predictions", found.answers), ("truth", found.truths)):
        if kind != "classes" or not known:
            continue
        labels = getattr(found, name).tolist()
        row = next((i for i, label in enumerate(labels) if label not in known), None)
        if row is not None:
            raise DataError(
                f'{path}, line {_line(text, row)}: unknown label "{labels[row][:40]}" in column '
                f'"{name}"; expected one of {_listed(found.classes)}.'
            )


def _check_probabilities(path: Path, text: str, found: Predictions) -> None:
    values = found.probabilities
    if values is None or not len(values):
        return
    sums = values.sum(axis=1)
    wrong = ~((np.abs(sums - 1) <= TOLERANCE) & (values >= -TOLERANCE).all(axis=1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{path}, line {_line(text, row)}: probabilities must be >= 0 and sum to 1, got "
            f"{values[row].tolist()} with sum {sums[row]:.6g} ({int(wrong.sum())} such rows)."
        )


def _check_questions(path: Path, found: Predictions, record: Mapping[str, Any], view: View) -> None:
    expected = record.get("questions")
    coverage = next((v.get("coverage") for v in record["views"] if view_of(v) == view), None)
    listed = found.weight is not None or (found.rank is not None and found.group is not None)
    if expected is None or (listed and found.question is None and found.known is None):
        return  # rows of pairs or ranked lists can have any number
    if found.question is not None:
        numbers = found.question
        invalid = (numbers < 0) | (numbers >= expected)
        if len(np.unique(numbers)) < len(numbers) or invalid.any():
            raise DataError(
                f'{path}: the column "question" must have distinct numbers from 0 to '
                f"{expected - 1}."
            )
        if coverage is None or len(found) >= round(float(coverage) * expected):
            return
        expected = round(float(coverage) * expected)
    if len(found) != expected:
        raise DataError(f"{path}: expected {expected} rows as in the record, got {len(found)}.")


def view_of(view: Mapping[str, Any]) -> View:
    """Return the view of an entry in the views of a record."""
    return View(view["corruption"], view["severity"], view.get("draw", 0))


def _line(text: str, row: int) -> int:
    line, _ = next(itertools.islice(_rows(text), row + 1, None))
    return line


def _listed(names: Any) -> str:
    shown = [str(name)[:20] for name in names[:6]]
    more = [f"... ({len(names)})"] if len(names) > 6 else []
    return ", ".join([*shown, *more]) or "none"
