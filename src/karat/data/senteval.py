"""The reader "senteval": a CSV file of an index, one text or two, and the label last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.questions import ask
from karat.data.related import related
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

FORM = "an index, a text (or two), and the label last"
OWN = ("options", "index", "empty", "together")
TOGETHER = "related texts"


@reader("senteval")
def read_senteval(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about one text, or about two, whose answers are the labels.

    The first column is an index and is left away, the last one is the label, and the texts stand
    between: one, or two, and columns after the second text are no part of it. ``fields`` and
    ``target`` name others. Labels may be anything; of numbers the order is that of numbers.

    The options: ``index: false`` if there is no index column; ``options`` is what stands between
    the answers to choose from in the second text, which become fields of their own beside the
    question; ``empty: drop`` leaves rows out that lack a text, ``unanswered: drop`` those that lack
    a label; ``together: true`` keeps questions that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    frame, spec = read_parts(files, spec, lambda path: _read(path, spec))
    label = str(frame.columns[-1 - (spec.part == frame.columns[-1])])
    fields = [name for name in frame.columns if name not in (label, spec.group, spec.part)]
    where = files if isinstance(files, Path) else " and ".join(map(str, files.values()))
    if frame[label].nunique() == 1:
        raise DataError(
            f'{where}: every row has the label "{frame[label].iloc[0]}"; there is nothing to tell '
            f"apart. Give rows of two classes or more."
        )
    if spec.options.get("together"):
        if spec.group:
            raise DefinitionError(f'{spec.name}: say "group" or the option "together", not both.')
        frame = frame.assign(**{TOGETHER: related(frame[fields])})
        spec = replace(spec, group=TOGETHER)
    asked = replace(spec, fields=tuple(fields), target=label, kind="classes", modality="text")
    if spec.options.get("labels"):
        return ask(frame, asked, None)
    data = ask(frame.assign(**{label: _typed(frame[label])}), asked, None)
    return replace(data, classes=_in_order(data.classes))


def _read(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the texts of a file, the columns kept beside them, and the label last."""
    options = {name: value for name, value in spec.options.items() if name in OPTIONS}
    plain = replace(spec, target=None, kind=None, part=None, options=options)
    texts, label = _columns(read_frame(path, plain), spec, path)
    kept = [name for name in (spec.group, spec.part) if name]
    # read again, now that it is known which cells must stay as they are written
    told = replace(plain, target=label, kind="classes", part=spec.part)
    frame = read_frame(path, told, [*texts, *kept])
    need_columns(frame, kept, str(path))
    frame = _complete(frame[[*texts, *kept, label]], "empty", texts, spec, path)
    frame = _complete(frame, "unanswered", [label], spec, path)
    separator = spec.options.get("options")
    return frame if separator is None else _with_options(frame, texts, str(separator), path)


def _columns(frame: pd.DataFrame, spec: DataSpec, path: Path) -> tuple[list[str], str]:
    """Return which columns hold the texts, and which one the label."""
    need_columns(frame, [*spec.fields, *([spec.target] if spec.target else [])], str(path))
    indexed = _has_index(frame, spec, path)
    names = [name for name in frame.columns[indexed:] if name not in (spec.group, spec.part)]
    label = spec.target or (names[-1] if names else "")
    texts = list(spec.fields) or [name for name in names if name != label][:2]
    if not texts or label in texts:
        raise DataError(
            f"{path} has {frame.shape[1]} columns ({', '.join(map(str, frame.columns))}); the form "
            f'is {FORM}. Without an index say "options: {{index: false}}".'
        )
    return texts, label


def _has_index(frame: pd.DataFrame, spec: DataSpec, path: Path) -> bool:
    """Return whether the first column is an index; one that looks like a text must be told."""
    told = spec.options.get("index")
    if told is not None and not isinstance(told, bool):
        raise DefinitionError(f'{spec.name}: the option "index" is true or false, not {told!r}.')
    if told is not None:
        return told
    name, first = str(frame.columns[0]), frame.iloc[:, 0]
    plausible = name.startswith("Unnamed: ") or pd.api.types.is_integer_dtype(first)
    if not plausible and not spec.fields and frame.shape[1] > 2:
        raise DataError(
            f'{path}: the first column, "{name}", is no index: it holds "{first.iloc[0]}". The '
            f'form is {FORM}; say "options: {{index: false}}" if it is a text, "{{index: true}}" '
            f"if it is an index."
        )
    return True


def _complete(
    frame: pd.DataFrame, option: str, columns: list[str], spec: DataSpec, path: Path
) -> pd.DataFrame:
    """Return the rows that have these columns; a cell of blanks is empty."""
    how = spec.options.get(option, "refuse")
    if how not in ("refuse", "drop"):
        raise DefinitionError(f'{spec.name}: "{option}" is "refuse" or "drop", not "{how}".')
    lost = frame[columns].isna()
    rows = lost.any(axis=1).to_numpy()
    if rows.any() and how == "refuse":
        row = int(np.argmax(rows))
        column = columns[int(np.argmax(lost.iloc[row].to_numpy()))]
        raise DataError(
            f'{path}, row {row}: "{column}" is empty, as in {int(rows.sum())} of {len(frame)} '
            f'rows; fill it, or leave such rows out: "options: {{{option}: drop}}".'
        )
    if rows.all():
        raise DataError(f"{path}: no row has both its texts and a label.")
    return frame[~rows].reset_index(drop=True)


def _with_options(
    frame: pd.DataFrame, texts: list[str], separator: str, path: Path
) -> pd.DataFrame:
    """Return the question, and each answer to choose from as a field of its own."""
    if len(texts) != 2 or not separator:
        raise DataError(
            f'{path}: with "options: {separator}" there must be a second text, and what separates '
            f"the answers to choose from in it."
        )
    question, joined = texts
    choices = [str(cell).split(separator) for cell in frame[joined]]
    many = len(choices[0])
    for row, found in enumerate(choices):
        if len(found) != many:
            raise DataError(
                f'{path}, row {row}: "{joined}" has {len(found)} options, row 0 has {many}; every '
                f'row needs as many, with "{separator}" between them.'
            )
        if not all(map(str.strip, found)):
            raise DataError(f'{path}, row {row}: an option in "{joined}" is empty; fill it.')
    if many == 1:
        raise DataError(f'{path}: no row has "{separator}" in "{joined}"; say what separates them.')
    named = {f"option_{i + 1}": list(cells) for i, cells in enumerate(zip(*choices, strict=True))}
    asked = pd.DataFrame({"question": frame[question], **named})
    return pd.concat([asked, frame.drop(columns=texts)], axis=1)


# -- labels ---------------------------------------------------------------------------------


def _typed(labels: pd.Series) -> pd.Series:
    """Return labels as numbers where that is how numbers are written, else as they are."""
    for kind in (int, float):
        try:
            numbers = labels.map(kind)
        except (TypeError, ValueError):
            continue
        if np.isfinite(numbers.to_numpy(dtype=float)).all() and (numbers.map(str) == labels).all():
            return numbers
    return labels


def _in_order(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return labels in their order: that of numbers if they are some, else that of their text.

    >>> _in_order(("10", "9", "08")), _in_order(("10", "9", "x"))
    (('08', '9', '10'), ('10', '9', 'x'))
    """
    numbers = pd.to_numeric(pd.Series(labels, dtype=object), errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        return labels
    return tuple(labels[i] for i in np.argsort(numbers, kind="stable"))
