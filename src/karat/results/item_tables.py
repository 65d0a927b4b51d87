"""Item tables: the key and the texts or cells of a dataset's test items, kept in a run folder.

``items/<dataset>-<hash>.csv.gz`` is written once per dataset. Its first column is the key that
``predictions.csv`` has for each row; missing cells are empty.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.files import encodable, safe_name
from karat.core.predictions import as_text
from karat.errors import DataError

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
    *("non-redistribut", "not redistribut", "no redistribut", "not be redistribut"),
    *("proprietary", "confidential", "all rights reserved"),
    *("research use", "research only", "research purposes", "competition's rules"),
)
#: rows from which the size of a table is estimated
_SAMPLE = 500


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
    if data.modality == "entity" and has_one_item_each(data):
        names = data.items.index[data.mentions(data.fields[0]).rows]
    texts = np.array([encodable(text) for text in as_text(names.to_numpy())], dtype=object)
    if len(set(texts.tolist())) < len(texts):
        texts = as_text(np.arange(len(texts)))
    return texts


def has_one_item_each(data: Dataset) -> bool:
    """Return whether each question has one field with one item."""
    return len(data.fields) == 1 and len(data.mentions(data.fields[0]).rows) == len(data)


def copying_forbidden(about: Mapping[str, str]) -> bool:
    """Return whether the license of a dataset forbids copies of its items; unknown ones do not.

    >>> copying_forbidden({"license": "Research use only"}), copying_forbidden({})
    (True, False)
    """
    terms = f"{about.get('license', '')} {about.get('openml_license', '')}".lower()
    return any(part in terms for part in FORBIDDEN)


def make_item_table(
    data: Dataset, tested: np.ndarray, max_bytes: int = MAX_BYTES
) -> ItemTable:
    """Return the table of the questions at some positions, or why there is none."""
    if copying_forbidden(data.about):
        return ItemTable(of=len(tested), reason="the license of the data forbids copies")
    keys = item_keys(data)

    def packed(rows: np.ndarray) -> bytes:
        cells = _cells(data.take(rows))
        cells.insert(0, "\0", keys[rows])  # no column of the data has this name
        text = cells.to_csv(
            index=False, header=False, float_format="%.8g", lineterminator="\n", errors="replace"
        )
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(["key", *cells.columns[1:]])
        return gzip.compress((out.getvalue() + text).encode(), mtime=0)

    try:
        rows = _fitting_rows(tested, packed, max_bytes)
        content = packed(rows) if len(rows) else b""
        while len(content) > max_bytes:  # the sample was smaller than the rest
            rows = _spaced(rows, int(0.8 * len(rows)))
            content = packed(rows) if len(rows) else b""
    except Exception as error:  # a cell that cannot be written must not prevent the run
        reason = f"its cells cannot be written: {type(error).__name__}"
        return ItemTable(of=len(tested), reason=reason)
    if not content:
        return ItemTable(of=len(tested), reason=f"a row is larger than {max_bytes:,} bytes")
    digest = hashlib.sha256(data.fingerprint.encode() + np.asarray(tested, np.int64).tobytes())
    file = f"{FOLDER}/{safe_name(data.name)}-{digest.hexdigest()[:8]}.csv.gz"
    return ItemTable(file, content, len(rows), len(tested))


def _fitting_rows(tested: np.ndarray, packed: Any, max_bytes: int) -> np.ndarray:
    """Return the rows, or as many evenly spaced ones as probably fit."""
    sample = _spaced(tested, _SAMPLE)
    if len(sample) == len(tested):
        return tested
    each = len(packed(sample)) / len(sample)
    return _spaced(tested, int(max_bytes / each))


def _spaced(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _cells(data: Dataset) -> pd.DataFrame:
    """Return the columns of a table, or the texts of each field, and what else is known."""
    if data.modality == "table" and has_one_item_each(data):
        shown = data.frame().iloc[:, :MAX_COLUMNS]
        found = {encodable(str(name)): _written(shown[name]) for name in shown.columns}
    else:
        texts = {name: _texts(data, name) for name in data.fields}
        found = {name: _written(pd.Series(each, dtype=object)) for name, each in texts.items()}
        if data.modality == "text":
            lengths = zip(*(map(len, each) for each in texts.values()), strict=True)
            found.setdefault(LENGTH, np.array([sum(each) for each in lengths]))
    if data.kind == "items" and data.target is not None:
        answers = data.items.index.get_indexer(pd.Index(data.target, tupleize_cols=False))
        found.setdefault(ANSWER, _written(pd.Series(_named(data, answers), dtype=object)))
    if data.group is not None:
        found.setdefault(GROUP, _written(pd.Series(data.group)))
    return pd.DataFrame(found)


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
    return [str(text) for text in data.items.iloc[places]]


def _written(column: pd.Series) -> Any:
    """Return numbers as they are and other cells as cut texts; a missing cell is None."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy()
    missing = column.isna().tolist()
    cells = column.astype(object).tolist()
    texts = [None if lost else cut(encodable(str(cell))) for lost, cell in zip(missing, cells, strict=True)]
    return np.array(texts, dtype=object)


def cut(text: str, length: int = TEXT_LENGTH) -> str:
    """Return a text of at most some characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


# -- reading --------------------------------------------------------------------------------


def read_item_table(folder: Path, task: Mapping[str, Any]) -> pd.DataFrame:
    """Return the item table of a task of run.json: texts by key, empty where a cell is missing.

    Raises ``DataError`` if there is none, or if the file cannot be read.
    """
    facts = task.get("item_table")
    facts = facts if isinstance(facts, Mapping) else {}
    name = str(facts.get("file") or "")
    if not re.fullmatch(rf"{FOLDER}/[^/\\]+\.csv\.gz", name):
        why = facts.get("reason") or "run it again with a version of Karat that keeps items"
        raise DataError(f"{folder} has no item table of {task['name']}: {why}.")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"the path of {name} leaves the run folder {folder}.")
    try:
        with gzip.open(path) as file:
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
    except (OSError, EOFError, ValueError, StopIteration) as error:
        raise DataError(f"{path} is damaged: {error}.") from error
    table.columns = pd.Index(header)
    keys = table.iloc[:, 0]
    return table.iloc[:, 1:].set_index(pd.Index(keys, name="key"))


def describe(item: pd.Series, width: int) -> str:
    """Return an item as one text: the only text, or its cells with their names.

    >>> describe(pd.Series({"age": "31", "plan": "", "city": "Rome"}), 40)
    'age: 31 · city: Rome'
    """
    cells = {name: value for name, value in item.items() if value != ""}
    shown = {name: value for name, value in cells.items() if name not in (LENGTH, GROUP, ANSWER)}
    if len(item.drop([LENGTH, GROUP, ANSWER], errors="ignore")) == 1 and shown:
        return cut(" ".join(next(iter(shown.values())).split()), width)
    return cut(" · ".join(f"{name}: {' '.join(v.split())}" for name, v in shown.items()), width)
