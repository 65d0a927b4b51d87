"""Readers of pairs of documents, represented by their entities or as texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.download import fetch_first
from karat.data.frames import parse_json, read_encoded, read_frame, read_text
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
    """Return questions about the similarity of two documents, as bags of weighted entities.

    The file is a JSON list of documents, each with ``annotations``: a list of ``entity`` and
    ``weight``. An entity counts once per document, with its highest weight. The option ``pairs``
    is the table of questions, a file in the same folder or a list of sources: two columns
    (``fields``, default doc1 and doc2) are document numbers from 1, and ``target`` (default
    average) is the similarity.
    """
    spec.check_options("pairs")
    path = one_file(files, spec)
    frame, spec = _compared(path, _documents(path), replace(spec, modality="entity"))
    return ask(frame, spec, entity_label)


@reader("document-texts")
def read_document_texts(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the similarity of two documents, from a file with one text per line.

    The option ``pairs`` and the columns are those of the reader "documents"; ``encoding`` is the
    encoding of the texts (default UTF-8).
    """
    spec.check_options("pairs", "encoding")
    path = one_file(files, spec)
    lines = map(str.strip, read_encoded(path, spec).split("\n"))
    texts = [line for line in lines if line]
    frame, spec = _compared(path, texts, replace(spec, modality="text"))
    return ask(frame, spec, None)


def _compared(
    path: Path, documents: Sequence[Any], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table of pairs, with document numbers replaced by the documents."""
    fields = spec.fields or ("doc1", "doc2")
    if len(fields) != 2:
        raise DefinitionError(f"{spec.name}: expected two fields, got {len(fields)}.")
    table, about = _pairs(path, spec)
    target = spec.target or "average"
    spec = replace(spec, fields=fields, target=target, kind="numbers", options={}, about=about)
    frame = read_frame(table, spec)
    need_columns(frame, [*fields, target], str(table))
    chosen = {name: _chosen(frame[name], documents, table) for name in fields}
    return frame.assign(**chosen), spec


# -- documents ------------------------------------------------------------------------------


def _documents(path: Path) -> list[Bag]:
    """Return the entities of each document with their highest weights."""
    content = parse_json(read_text(path), path)
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} is not a list of documents.")
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
        raise DataError(f"{where}: the entity must be a string, got {entity!r}.")
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not (np.isfinite(weight) and weight > 0):
        raise DataError(f"{where}: the weight must be a number above 0, got {weight!r}.")
    return entity.strip(), float(weight)


# -- pairs ----------------------------------------------------------------------------------


def _pairs(path: Path, spec: DataSpec) -> tuple[Path, dict[str, str]]:
    """Return the table of questions, and the source and checksum of both files."""
    given = spec.options.get("pairs")
    if isinstance(given, list) and given:
        table, source = fetch_first(f"{spec.name} (its pairs)", given, spec.about)
        origin = str(source)
    elif isinstance(given, str) and given:
        table, origin = path.parent / given, given
    else:
        raise DefinitionError(
            f'{spec.name}: the option "pairs" is missing: a file in the folder of the documents, '
            f"or a list of sources."
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
    """Return the documents with the numbers in a column."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = ~((numbers >= 1) & (numbers <= len(documents)) & (numbers % 1 == 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f'{table}, row {row}: "{column.name}" must be a document number from 1 to '
            f"{len(documents)}, got {column.iloc[row]}."
        )
    chosen = [documents[int(number) - 1] for number in numbers]
    for row, document in enumerate(chosen):
        if not document:
            raise DataError(
                f"{table}, row {row}: document {int(numbers[row])} has no entity; remove its pairs."
            )
    return chosen
