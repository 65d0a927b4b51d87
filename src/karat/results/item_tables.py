"""Item tables: texts or cells of a dataset's test items, kept with a run.

The first column of ``items/<dataset>-<hash>.csv.gz`` is the key that ``rows.csv`` has for each row;
missing cells are empty.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import ITEM_TYPES, item_text
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.files import encodable, read_regular, safe_name
from karat.core.formatting import cut_text
from karat.core.predictions import as_text
from karat.errors import DataError
from karat.results.csv_text import csv_text

FOLDER = "items"
#: longer texts are cut
TEXT_LENGTH = 500
#: size of a file; beyond it, only evenly spaced items are kept
MAX_BYTES = 2_000_000
#: later columns of a wide table are left out
MAX_COLUMNS = 100
#: a file that is larger when decompressed is not read
MAX_READ = 200_000_000
#: columns added to those of the data
GROUP, LENGTH, ANSWER = "group", "characters", "answer"
#: parts of a license that forbid copies of the data
FORBIDDEN = (
    "non-redistribut",
    "not redistribut",
    "no redistribut",
    "not be redistribut",
    "proprietary",
    "confidential",
    "all rights reserved",
    "the copyright of",
    "competition's rules",
)
#: rows from which the size of a table is estimated, unless it has few cells
_SAMPLE, _SMALL = 500, 50_000
#: why a run without a reason has no item table, and how to get it
ABSENT = "made with --no-items or an earlier version; run it again, or add them with --resume"


class NoItems(DataError):
    """A run keeps no items of a task."""


@dataclass(frozen=True)
class ItemTable:
    """The file of an item table, its content, and the numbers of items in it and of all.

    Without a file, ``reason`` says why.
    """

    file: str = ""
    content: bytes = b""
    rows: int = 0
    of: int = 0
    reason: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """The entry of run.json."""
        names = ("file", "rows", "of", "reason")
        return {name: value for name in names if (value := getattr(self, name)) != ""}


def item_keys(data: Dataset) -> np.ndarray:
    """Return the key of each question: its entity, its row name, or its row in the original data.

    >>> frame = pd.DataFrame({"age": [31, 45], "churn": ["yes", "no"]}, index=["Ann", "Bob"])
    >>> item_keys(Dataset.from_table(frame, "churn")).tolist()
    ['Ann', 'Bob']
    """
    names = data.questions.index
    if data.modality in ("entity", *ITEM_TYPES) and has_one_item_each(data):
        names = data.items.index[data.mentions(data.fields[0]).rows]
    texts = as_text(names.to_numpy())
    if not "".join(texts).isascii():
        texts = np.array([encodable(text) for text in texts], dtype=object)
    if len(set(texts.tolist())) < len(texts):
        texts = as_text(np.arange(len(texts)))
    return texts


def has_one_item_each(data: Dataset) -> bool:
    """Return whether each question has one field with one item."""
    return len(data.fields) == 1 and len(data.mentions(data.fields[0]).rows) == len(data)


def copying_forbidden(data_facts: Mapping[str, str]) -> bool:
    """Return whether the license of a dataset forbids copies of its items; unknown ones do not.

    >>> copying_forbidden({"license": "Proprietary"}), copying_forbidden({})
    (True, False)
    """
    terms = f"{data_facts.get('license', '')} {data_facts.get('openml_license', '')}".lower()
    return any(part in terms for part in FORBIDDEN)


def make_item_table(data: Dataset, tested: np.ndarray, max_bytes: int = MAX_BYTES) -> ItemTable:
    """Return the table of the questions at some positions, or why there is none."""
    if copying_forbidden(data.about):
        return ItemTable(of=len(tested), reason="the license of the data forbids copies")
    keys = item_keys(data)

    def packed(rows: np.ndarray) -> bytes:
        cells = _cells(data.take(rows))
        columns = [keys[rows].tolist(), *map(_item_cells, cells.values())]
        text = csv_text(dict(enumerate(columns)), range(len(columns)), ["key", *cells])
        return gzip.compress(text.encode(), 4, mtime=0)  # level 9: 5 % less, twice the time

    try:
        small = len(tested) * (len(data.fields) + data.items.size // len(data.items)) <= _SMALL
        rows = tested if small else _fitting_rows(tested, packed, max_bytes)
        content = packed(rows) if len(rows) else b""
        while len(content) > max_bytes:  # a sample may be smaller than the rest
            rows = _spaced(tested, int(0.95 * len(rows) * max_bytes / len(content)))
            content = packed(rows) if len(rows) else b""
    except Exception as error:  # a cell that cannot be written must not prevent the run
        reason = f"its cells cannot be written: {type(error).__name__}"
        return ItemTable(of=len(tested), reason=reason)
    if not content:
        return ItemTable(of=len(tested), reason=f"a row is larger than {max_bytes:,} bytes")
    digest = sha256_of(data.fingerprint, np.asarray(tested, np.int64).tobytes(), length=8)
    file = f"{FOLDER}/{safe_name(data.name)}-{digest}.csv.gz"
    return ItemTable(file, content, len(rows), len(tested))


def _fitting_rows(tested: np.ndarray, packed: Any, max_bytes: int) -> np.ndarray:
    """Return the rows, or as many evenly spaced ones as probably fit."""
    sample = _spaced(tested, _SAMPLE)
    row_bytes = len(packed(sample)) / len(sample)
    return _spaced(tested, int(max_bytes / row_bytes))


def _spaced(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _item_cells(column: np.ndarray) -> list[Any]:
    """Return cells as the csv module is to write them: numbers as short texts, missing as None."""
    if column.dtype.kind == "f":
        texts: list[str | None] = list(map("{:.8g}".format, column.tolist()))
        for row in np.flatnonzero(np.isnan(column)).tolist():
            texts[row] = None
        return texts
    cells: list[Any] = column.tolist()
    return [None if cell is pd.NA else cell for cell in cells] if column.dtype == object else cells


def _cells(data: Dataset) -> dict[str, np.ndarray]:
    """Return the columns of a table, or the texts of each field, and what else is known."""
    if data.modality == "table" and has_one_item_each(data):
        table = data.frame().iloc[:, :MAX_COLUMNS]
        cells = {encodable(str(name)): _written(table[name]) for name in table.columns}
    else:
        texts = {name: _texts(data, name) for name in data.fields}
        cells = {
            name: _written(pd.Series(field_texts, dtype=object))
            for name, field_texts in texts.items()
        }
        if data.modality == "text":
            lengths = [
                np.fromiter(map(len, field_texts), np.int64) for field_texts in texts.values()
            ]
            cells.setdefault(LENGTH, np.sum(lengths, axis=0))
    if data.kind == "items" and data.target is not None:
        answers = data.items.index.get_indexer(pd.Index(data.target, tupleize_cols=False))
        cells.setdefault(ANSWER, _written(pd.Series(_named(data, answers), dtype=object)))
    if data.group is not None:
        cells.setdefault(GROUP, _written(pd.Series(data.group)))
    return cells


def _texts(data: Dataset, field: str) -> list[str]:
    """Return the text of each question's field; the items of a bag are joined."""
    bags = data.mentions(field)
    names = _named(data, bags.rows)
    if len(names) == len(data):
        return names
    ends = bags.offsets.tolist()
    return ["; ".join(names[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _named(data: Dataset, places: np.ndarray) -> list[str]:
    if data.modality == "table":
        return [str(name) for name in data.items.index[places]]
    items = data.items.iloc[places].to_numpy(dtype=object)
    return list(map(item_text if data.modality in ITEM_TYPES else str, items))


def _written(column: pd.Series) -> Any:
    """Return numbers as they are and other cells as cut texts; a missing cell is None."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy()
    cells = column.astype(object).tolist()
    if _is_plain(cells):
        return np.array(cells, dtype=object)
    texts = [
        None if is_missing else cut_text(encodable(str(cell)), TEXT_LENGTH)
        for is_missing, cell in zip(column.isna().tolist(), cells, strict=True)
    ]
    return np.array(texts, dtype=object)


def _is_plain(cells: Sequence[Any]) -> bool:
    """Return whether all cells are texts that need not be changed."""
    if set(map(type, cells)) - {str}:
        return False
    return "".join(cells).isascii() and max(map(len, cells), default=0) <= TEXT_LENGTH


def read_item_table(folder: Path, task: Mapping[str, Any]) -> pd.DataFrame:
    """Return the item table of a task of run.json: texts by key, empty where a cell is missing.

    Raises ``DataError`` if there is none, or if the file cannot be read.
    """
    facts = task.get("item_table")
    facts = facts if isinstance(facts, Mapping) else {}
    name = str(facts.get("file") or "")
    if not re.fullmatch(rf"{FOLDER}/[^/\\]+\.csv\.gz", name):
        raise NoItems(f"{folder} has no items of {task['name']}: {facts.get('reason') or ABSENT}.")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"the path of {name} leaves the run folder {folder}.")
    try:
        with gzip.open(io.BytesIO(read_regular(path))) as file:
            raw = file.read(MAX_READ + 1)
        if len(raw) > MAX_READ:
            raise DataError(f"{path} has more than {MAX_READ:,} bytes.")
        text = io.StringIO(raw.decode("utf-8"), newline="")
        header = next(csv.reader(text))
        table = pd.read_csv(
            text, header=None, names=range(len(header)), dtype=str, keep_default_na=False
        )
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; --resume writes it again.") from None
    except (OSError, EOFError, ValueError, StopIteration, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}.") from error
    table.columns = pd.Index(header)
    keys = table.iloc[:, 0]
    return table.iloc[:, 1:].set_index(pd.Index(keys, name="key"))


def describe_item(item: pd.Series, width: int) -> str:
    """Return an item as one text: the only text, or its cells with their names.

    >>> describe_item(pd.Series({"age": "31", "plan": "", "city": "Rome"}), 40)
    'age: 31 · city: Rome'
    """
    cells = [pair for pair in item.items() if pair[0] not in (LENGTH, GROUP, ANSWER)]
    filled = {name: value for name, value in cells if value != ""}
    if len(cells) == 1 and filled:
        return cut_text(" ".join(next(iter(filled.values())).split()), width)
    text = " · ".join(f"{name}: {' '.join(value.split())}" for name, value in filled.items())
    return cut_text(text, width)
