"""The reader "senteval": a CSV file with an index, one or two texts, and the label last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import require_columns
from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import OPTIONS, ask, read_frame, read_parts, without_target
from karat.data.readers.text import keep_together
from karat.errors import DataError, DefinitionError

FORM = "an index, a text (or two), and the label last"
OWN = ("options", "index", "empty", "together")


@reader("senteval")
def read_senteval(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about one or two texts, whose targets are the labels.

    The first column is an index and is ignored, the last one is the label, and the one or two
    columns after the index are the texts; other columns are ignored. ``fields`` and ``target``
    select other columns. Labels may be anything; numeric labels are ordered as numbers.

    Options: ``index: false`` if there is no index column; ``options`` is the separator of the
    choices in the second text, which then become fields next to the question; ``empty: drop``
    drops rows without a text, ``unanswered: drop`` those without a label; ``together: true`` keeps
    questions that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    frame, spec = read_parts(files, spec, lambda path: _read(path, spec))
    label = str(frame.columns[-1 - (spec.part == frame.columns[-1])])
    fields = [name for name in frame.columns if name not in (label, spec.group, spec.part)]
    where = files if isinstance(files, Path) else " and ".join(map(str, files.values()))
    if frame[label].nunique() == 1:
        raise DataError(
            f'{where}: every row has the label "{frame[label].iloc[0]}"; at least two classes '
            f"are needed."
        )
    frame, spec = keep_together(frame, spec, fields)
    text_spec = replace(
        spec, fields=tuple(fields), target=label, kind="classification", modality="text"
    )
    if spec.options.get("labels"):
        return ask(frame, text_spec, None)
    data = ask(frame.assign(**{label: _typed(frame[label])}), text_spec, None)
    return replace(data, classes=_sorted_labels(data.classes))


def _read(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the texts of a file, the group and part columns, and the label last."""
    plain = replace(without_target(spec), part=None)
    texts, label = _columns(read_frame(path, plain), spec, path)
    extra = [name for name in (spec.group, spec.part) if name]
    # read again, because the cells of these columns must not be converted
    text_spec = replace(plain, target=label, kind="classification", part=spec.part)
    frame = read_frame(path, text_spec, [*texts, *extra])
    require_columns(frame, extra, str(path))
    frame = _complete(frame[[*texts, *extra, label]], "empty", texts, spec, path)
    frame = _complete(frame, "unanswered", [label], spec, path)
    separator = spec.options.get("options")
    return frame if separator is None else _with_options(frame, texts, str(separator), path)


def _columns(frame: pd.DataFrame, spec: DataSpec, path: Path) -> tuple[list[str], str]:
    require_columns(frame, [*spec.fields, *([spec.target] if spec.target else [])], str(path))
    indexed = _has_index(frame, spec, path)
    names = [name for name in frame.columns[indexed:] if name not in (spec.group, spec.part)]
    label = spec.target or (names[-1] if names else "")
    texts = list(spec.fields) or [name for name in names if name != label][:2]
    if not texts or label in texts:
        raise DataError(
            f"{path} has {frame.shape[1]} columns ({', '.join(map(str, frame.columns))}); expected "
            f'{FORM}. Without an index set "options: {{index: false}}".'
        )
    return texts, label


def _has_index(frame: pd.DataFrame, spec: DataSpec, path: Path) -> bool:
    """Return whether the first column is an index; raise an error if it looks like a text."""
    given = spec.options.get("index")
    if given is not None and not isinstance(given, bool):
        raise DefinitionError(f'{spec.name}: "index" must be true or false, got {given!r}.')
    if given is not None:
        return given
    name, first = str(frame.columns[0]), frame.iloc[:, 0]
    plausible = name.startswith("Unnamed: ") or pd.api.types.is_integer_dtype(first)
    if not plausible and not spec.fields and frame.shape[1] > 2:
        raise DataError(
            f'{path}: the first column, "{name}", is not an index: it has "{first.iloc[0]}". '
            f'Expected {FORM}; set "options: {{index: false}}" if it is a text, '
            f'"{{index: true}}" if it is an index.'
        )
    return True


def _complete(
    frame: pd.DataFrame, option: str, columns: list[str], spec: DataSpec, path: Path
) -> pd.DataFrame:
    """Return the rows without missing values in these columns."""
    how = spec.choice(option, "refuse", "drop")
    missing = frame[columns].isna()
    rows = missing.any(axis=1).to_numpy()
    if rows.any() and how == "refuse":
        row = int(np.argmax(rows))
        column = columns[int(np.argmax(missing.iloc[row].to_numpy()))]
        raise DataError(
            f'{path}, row {row}: "{column}" is empty, as in {int(rows.sum())} of {len(frame)} '
            f'rows; fill it, or drop such rows: "options: {{{option}: drop}}".'
        )
    if rows.all():
        raise DataError(f"{path}: no row has texts and a label.")
    return frame[~rows].reset_index(drop=True)


def _with_options(
    frame: pd.DataFrame, texts: list[str], separator: str, path: Path
) -> pd.DataFrame:
    """Return the question and one field per choice."""
    if len(texts) != 2 or not separator:
        raise DataError(
            f'{path}: "options: {separator}" needs a second text and the separator of the choices '
            f"in it."
        )
    question, joined = texts
    choices = [str(cell).split(separator) for cell in frame[joined]]
    count = len(choices[0])
    for row, found in enumerate(choices):
        if len(found) != count:
            raise DataError(
                f'{path}, row {row}: "{joined}" has {len(found)} options, row 0 has {count}; all '
                f'rows must have the same number, separated by "{separator}".'
            )
        if not all(map(str.strip, found)):
            raise DataError(f'{path}, row {row}: an option in "{joined}" is empty.')
    if count == 1:
        raise DataError(f'{path}: no row has the separator "{separator}" in "{joined}".')
    named = {f"option_{i + 1}": list(cells) for i, cells in enumerate(zip(*choices, strict=True))}
    fields = pd.DataFrame({"question": frame[question], **named})
    return pd.concat([fields, frame.drop(columns=texts)], axis=1)


def _typed(labels: pd.Series) -> pd.Series:
    """Return numbers if each label is the usual form of a number, else the labels."""
    for kind in (int, float):
        try:
            numbers = labels.map(kind)
        except (TypeError, ValueError):
            continue
        if np.isfinite(numbers.to_numpy(dtype=float)).all() and (numbers.map(str) == labels).all():
            return numbers
    return labels


def _sorted_labels(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return labels sorted as numbers if all are numbers, else unchanged.

    >>> _sorted_labels(("10", "9", "08")), _sorted_labels(("10", "9", "x"))
    (('08', '9', '10'), ('10', '9', 'x'))
    """
    numbers = pd.to_numeric(pd.Series(labels, dtype=object), errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        return labels
    return tuple(labels[i] for i in np.argsort(numbers, kind="stable"))
