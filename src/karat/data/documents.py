"""Readers of pairs of documents, each seen as the entities that are found in it, or as a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.download import fetch_first
from karat.data.frames import read_bytes, read_frame
from karat.data.gold import entity_label
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, one_file
from karat.data.sources import sha256_of
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

Bag = dict[str, float]


@reader("documents")
def read_documents(files: Files, spec: DataSpec) -> Dataset:
    """Return the question "how alike" about two documents, as bags of weighted entities.

    The file is a JSON list of documents, each with ``annotations``: a list of ``entity`` and
    ``weight``. An entity counts once in a document, with its highest weight. The option ``pairs``
    is the table of the questions, a file beside it or a list of sources: two columns (``fields``,
    or doc1 and doc2) count the documents from 1, the ``target`` (or average) says how alike.
    """
    spec.check_options("pairs")
    path = one_file(files, spec)
    frame, asked = _compared(path, _documents(path), replace(spec, modality="entity"))
    return ask(frame, asked, entity_label)


@reader("document-texts")
def read_document_texts(files: Files, spec: DataSpec) -> Dataset:
    """Return the question "how alike" about two documents, of a file with one text per line.

    The options ``pairs`` and the columns are those of the reader "documents"; ``encoding`` is that
    of the texts, where it is not UTF-8.
    """
    spec.check_options("pairs", "encoding")
    path = one_file(files, spec)
    encoding = str(spec.options.get("encoding", "utf-8-sig"))
    try:
        texts = read_bytes(path).decode(encoding).split("\n")
    except LookupError:
        raise DefinitionError(f'{spec.name}: there is no encoding "{encoding}".') from None
    except UnicodeDecodeError as error:
        raise DataError(f'{path} is not {encoding}; set the option "encoding".') from error
    texts = [text.strip() for text in texts if text.strip()]
    frame, asked = _compared(path, texts, replace(spec, modality="text"))
    return ask(frame, asked, None)


def _compared(
    path: Path, documents: Sequence[Any], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table of the pairs with the documents in place of their numbers."""
    fields = spec.fields or ("doc1", "doc2")
    if len(fields) != 2:
        raise DefinitionError(f"{spec.name}: two documents are compared, not {len(fields)} fields.")
    table, about = _pairs(path, spec)
    target = spec.target or "average"
    asked = replace(spec, fields=fields, target=target, kind="numbers", options={}, about=about)
    frame = read_frame(table, asked)
    need_columns(frame, [*fields, target], str(table))
    chosen = {name: _chosen(frame[name], documents, table) for name in fields}
    return frame.assign(**chosen), asked


# -- documents ------------------------------------------------------------------------------


def _documents(path: Path) -> list[Bag]:
    """Return the entities of each document with the highest weight each has there."""
    try:
        content = json.loads(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: {error.msg}.") from error
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} holds no list of documents.")
    return [_document(each, f"{path}, document {i}") for i, each in enumerate(content, start=1)]


def _document(given: Any, where: str) -> Bag:
    found = given.get("annotations") if isinstance(given, Mapping) else None
    if not isinstance(found, list):
        raise DataError(f'{where} has no list "annotations".')
    bag: Bag = {}
    for number, each in enumerate(found, start=1):
        entity, weight = _annotation(each, f"{where}, annotation {number}")
        bag[entity] = max(weight, bag.get(entity, weight))
    return bag


def _annotation(given: Any, where: str) -> tuple[str, float]:
    for key in ("entity", "weight"):
        if not isinstance(given, Mapping) or key not in given:
            known = list(given) if isinstance(given, Mapping) else []
            raise DataError(f'{where} has no "{key}".{did_you_mean(key, map(str, known))}')
    entity, weight = given["entity"], given["weight"]
    if not isinstance(entity, str) or not entity.strip():
        raise DataError(f"{where}: the entity is a text, not {entity!r}.")
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not (np.isfinite(weight) and weight > 0):
        raise DataError(f"{where}: the weight is a number above 0, not {weight!r}.")
    return entity.strip(), float(weight)


# -- pairs ----------------------------------------------------------------------------------


def _pairs(path: Path, spec: DataSpec) -> tuple[Path, dict[str, str]]:
    """Return the table of the questions, and where both files come from."""
    given = spec.options.get("pairs")
    if isinstance(given, list) and given:
        table, source = fetch_first(f"{spec.name} (its pairs)", given, spec.about)
        origin = str(source)
    elif isinstance(given, str) and given:
        table, origin = path.parent / given, given
    else:
        raise DefinitionError(
            f'{spec.name}: say which table has the questions: the option "pairs", '
            f"a file beside the documents or a list of sources."
        )
    if not table.is_file():
        near = did_you_mean(table.name, [other.name for other in path.parent.iterdir()])
        raise DataError(f"{spec.name}: there is no file {table}.{near}")
    both = {
        "source": f"{spec.about.get('source', path.name)}; {origin}",
        "sha256": f"documents {sha256_of(path)}, pairs {sha256_of(table)}",
    }
    return table, {**spec.about, **both}


def _chosen(column: pd.Series, documents: Sequence[Any], table: Path) -> list[Any]:
    """Return the documents that the cells of a column count, in the order of its rows."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = ~((numbers >= 1) & (numbers <= len(documents)) & (numbers % 1 == 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f'{table}, row {row}: "{column.name}" is {column.iloc[row]}; the documents are '
            f"counted from 1 to {len(documents)}."
        )
    chosen = [documents[int(number) - 1] for number in numbers]
    for row, document in enumerate(chosen):
        if not document:
            raise DataError(
                f"{table}, row {row}: no entity was found in document {int(numbers[row])}; "
                f"leave its pairs out."
            )
    return chosen
