"""Reread: a predictions file read with all checks, since somebody may have edited it."""

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

#: the columns that may come after ``truth``
EXTRAS = ("group", "rank", "candidates", "question", "weight", "known")
_FACTS = ("answers", "truths", "classes")
_PAIR = ["predictions", "truth"]


def reread(run: Run, record: Mapping[str, Any], view: View) -> Predictions:
    """Return the answers of a job through a view, or say what is wrong, in which file and line."""
    folder = run._view_folder(record["task"], record["fold"], view.name)
    facts = _facts(folder / "metadata.json")
    path = folder / "predictions.csv"
    text = _text(path)
    try:
        found = Predictions.from_csv(text, **facts)
    except (KaratError, ValueError) as error:
        raise DataError(_why(path, text, facts, error)) from error
    _check_columns(path, text, facts)
    _check_labels(path, text, found)
    _check_chances(path, text, found)
    _check_questions(path, found, record, view)
    return found


# -- the files ------------------------------------------------------------------------------


def _facts(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(_text(path))
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    known = {"answers": ANSWERS, "truths": TRUTHS}
    for name in _FACTS:
        given = read.get(name) if isinstance(read, dict) else None
        if name == "classes":
            right = isinstance(given, list) and all(isinstance(each, str) for each in given)
        else:
            right = given in known[name]
        if not right:
            allowed = "a list of labels" if name == "classes" else ", ".join(known[name])
            raise DataError(f'{path}: "{name}" is {given!r}; it must be {allowed}.')
    return {name: read[name] for name in _FACTS}


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: it is not UTF-8 ({error.reason}).") from error


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line it begins in."""
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


def _why(path: Path, text: str, facts: Mapping[str, Any], error: Exception) -> str:
    """Return what is wrong with a file that could not be read, with the line where it is."""
    try:
        return f"{path}, {_found(text, facts)}"
    except DataError as damage:
        return f"{path}, {damage}."
    except StopIteration:
        return f"{path}: {error}"


def _found(text: str, facts: Mapping[str, Any]) -> str:
    """Return the first line that is wrong and how, or raise ``StopIteration`` if none is."""
    rows = _rows(text)
    _, header = next(rows)
    numbers = _numeric(header, facts)
    for line, row in rows:
        if len(row) != len(header):
            return f"line {line}: it has {len(row)} cells, the header has {len(header)}."
        for at in numbers:
            if not _is_number(row[at]):
                return f'line {line}: "{row[at][:40]}" in column "{header[at]}" is no number.'
    raise StopIteration


def _numeric(header: list[str], facts: Mapping[str, Any]) -> list[int]:
    at = _truth(header)
    if at is None:
        return []
    told = {at - 1: facts["answers"], at: facts["truths"]}
    text = {place for place, what in told.items() if what in ("classes", "items")}
    text |= {place for place in range(at + 1, len(header)) if header[place] == "group"}
    return [place for place in range(len(header)) if place not in text]


def _truth(header: list[str]) -> int | None:
    places = (at for at in range(len(header) - 1, 0, -1) if header[at - 1 : at + 1] == _PAIR)
    return next(places, None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# -- what they hold -------------------------------------------------------------------------


def _check_columns(path: Path, text: str, facts: Mapping[str, Any]) -> None:
    _, header = next(_rows(text))
    at = _truth(header) or 0
    chances, extras = header[: at - 1], header[at + 1 :]
    if chances and chances != facts["classes"]:
        raise DataError(
            f"{path}, line 1: the columns before predictions are {_listed(chances)}; the classes "
            f"in metadata.json are {_listed(facts['classes'])}."
        )
    for name in extras:
        if name not in EXTRAS or extras.count(name) > 1:
            what = "stands there twice" if name in EXTRAS else "is none of ours"
            raise DataError(
                f'{path}, line 1: the column "{name}" {what}.{did_you_mean(name, EXTRAS)}'
            )


def _check_labels(path: Path, text: str, found: Predictions) -> None:
    known = set(found.classes)
    for name, kind in (("predictions", found.answers), ("truth", found.truths)):
        if kind != "classes" or not known:
            continue
        labels = getattr(found, name).tolist()
        strange = set(labels) - known
        if strange:
            row = next(i for i, label in enumerate(labels) if label in strange)
            raise DataError(
                f'{path}, line {_line(text, row)}: the label "{labels[row][:40]}" in column '
                f'"{name}" is none of {_listed(found.classes)}.'
            )


def _check_chances(path: Path, text: str, found: Predictions) -> None:
    chances = found.probabilities
    if chances is None or not len(chances):
        return
    sums = chances.sum(axis=1)
    off = ~((np.abs(sums - 1) <= TOLERANCE) & (chances >= -TOLERANCE).all(axis=1))
    if off.any():
        row = int(np.argmax(off))
        raise DataError(
            f"{path}, line {_line(text, row)}: the probabilities {chances[row].tolist()} sum to "
            f"{sums[row]:.6g}; they must be 0 or more and sum to 1 ({int(off.sum())} such rows)."
        )


def _check_questions(path: Path, found: Predictions, record: Mapping[str, Any], view: View) -> None:
    asked = record.get("questions")
    told = next((v.get("coverage") for v in record["views"] if _view(v) == view), None)
    listed = found.weight is not None or (found.rank is not None and found.group is not None)
    if asked is None or (listed and found.question is None and found.known is None):
        return  # rows that stand for pairs or lists are as many as they are
    if found.question is not None:
        places = found.question
        if len(np.unique(places)) < len(places) or (places < 0).any() or (places >= asked).any():
            raise DataError(
                f'{path}: the column "question" must hold numbers from 0 to {asked - 1}, each '
                f"once at most."
            )
        if told is None or len(found) >= round(float(told) * asked):
            return
        asked = round(float(told) * asked)
    if len(found) != asked:
        raise DataError(
            f"{path}: it has {len(found)} rows; the record says that {asked} questions were asked."
        )


def _view(view: Mapping[str, Any]) -> View:
    return View(view["corruption"], view["severity"], view.get("draw", 0))


def _line(text: str, row: int) -> int:
    line, _ = next(itertools.islice(_rows(text), row + 1, None))
    return line


def _listed(names: Any) -> str:
    shown = [str(name)[:20] for name in names[:6]]
    more = [f"… ({len(names)})"] if len(names) > 6 else []
    return ", ".join([*shown, *more]) or "none"
