"""Readers of texts: "columns" of a table, and "folders" named after the classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_bytes, read_frame, read_parts
from karat.data.gold import entity_label
from karat.data.load import DataSpec, Files
from karat.data.questions import ask
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader


@reader("columns")
def read_columns(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the cells of some columns: texts or ids of entities."""
    spec.check_options(*OPTIONS)
    if not spec.fields:
        raise DefinitionError(f'{spec.name}: the text columns are missing; add "fields: [NAME]".')
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec, spec.fields))
    need_columns(frame, spec.fields, spec.name)
    frame = frame.assign(**{field: _as_text(frame[field]) for field in spec.fields})
    return ask(frame, spec, entity_label if spec.modality == "entity" else None)


def _as_text(column: pd.Series) -> pd.Series:
    cells = [None if pd.isna(cell) or not str(cell).strip() else str(cell) for cell in column]
    return pd.Series(cells, index=column.index, dtype=object)


@reader("folders")
def read_folders(files: Files, spec: DataSpec) -> Dataset:
    """Return one text per file; the name of its folder is its class.

    The option ``first_line`` keeps only the first line of each file, such as a headline.
    """
    spec.check_options("glob", "first_line")
    pattern = str(spec.options.get("glob", "*"))
    text = spec.fields[0] if spec.fields else "text"
    target = spec.target or "class"
    frame, spec = read_parts(
        files, spec, lambda path: pd.DataFrame(_texts(path, pattern), columns=[text, target])
    )
    if spec.options.get("first_line"):
        frame[text] = [str(cell).strip().partition("\n")[0].strip() for cell in frame[text]]
    return ask(frame, replace(spec, fields=(text,), target=target, kind="classes"), None)


def _texts(folder: Path, pattern: str) -> list[tuple[str, str]]:
    """Return (text, class) of every file, sorted by path."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder of class folders.")
    rows = []
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        paths = sorted(path for path in inner.glob(pattern) if path.is_file())
        rows += [(_read(path), inner.name) for path in paths if not path.name.startswith(".")]
    if not rows:
        raise DataError(f'{folder} has no file "{pattern}" in any class folder.')
    return rows


def _read(path: Path) -> str:
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Old corpora mix encodings; latin-1 decodes any byte, and is nearly always right.
        text = content.decode("latin-1")
    if not text.strip():
        raise DataError(f"{path} is empty.")
    return text
