"""Readers of words, entities and graphs.

"analogies", "relatedness", "word-pairs", "entities" with a target, "triples" for link prediction,
and pairs of "documents" as bags of entities or as "document-texts".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from karat.core.columns import require_columns
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.core.numbers import parse_number
from karat.core.registry import reader
from karat.data.download import fetch_first
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    OPTIONS,
    ask,
    file_in,
    one_file,
    parse_json,
    read_encoded,
    read_frame,
    read_parts,
    read_text,
)
from karat.errors import DataError, DefinitionError, did_you_mean

WORDS = ("a", "b", "c", "answer")
TRIPLE = ("head", "relation", "tail")
#: the default files of a folder
PARTS: dict[str, Any] = {"train": ["train.txt", "valid.txt"], "test": "test.txt"}
INVERSE = "⁻¹"


def entity_label(iri: str) -> str:
    """Return a readable name of an entity, from its IRI.

    >>> entity_label("http://dbpedia.org/resource/New_York_City")
    'New York City'
    >>> entity_label("<http://dbpedia.org/resource/S%C3%A3o_Paulo>")
    'São Paulo'
    """
    iri = str(iri).strip().removeprefix("<").removesuffix(">")
    for marker in ("/resource/", "/entity/", "/wiki/"):
        if marker in iri:
            name = iri.partition(marker)[2]
            break
    else:
        name = iri.rstrip("/#").replace("#", "/").rpartition("/")[2] if "://" in iri else iri
    return unquote(name).replace("_", " ").strip() or iri


@reader("analogies")
def read_analogies(files: Files, spec: DataSpec) -> Dataset:
    """Return questions a, b, c whose target is the item near b − a + c.

    The usual files write ``Athens Baghdad Greece Iraq``: Athens is to Greece as Baghdad is to
    Iraq. The option ``order`` is ``[a, c, b, answer]`` by default; ``[a, b, c, answer]`` is for
    files that write one pair after the other.

    A line is split at tabs if it has any (an entity may then contain blanks), else at whitespace. A
    line ``: family`` begins a section; ``sections`` selects some of them. ``lower: true``
    converts to lower case, as most word vectors need.
    """
    spec.check_options("order", "sections", "lower")
    order = list(spec.options.get("order", ("a", "c", "b", "answer")))
    if sorted(order) != sorted(WORDS):
        raise DefinitionError(f'{spec.name}: "order" must list {", ".join(WORDS)}, each once.')
    rows = [lowered(words, spec) for words in _quadruples(one_file(files, spec), spec)]
    spec = replace(spec, fields=WORDS[:3], target="answer", kind="items", modality="entity")
    return ask(pd.DataFrame(rows, columns=order), spec, entity_label)


def _quadruples(path: Path, spec: DataSpec) -> list[list[str]]:
    wanted = spec.options.get("sections")
    if wanted is not None and not isinstance(wanted, list):
        raise DefinitionError(f'{spec.name}: "sections" must be a list of names, got {wanted!r}.')
    section, rows = "", []
    names: list[str] = []
    for number, line in lines(path):
        words = line.split()
        if "\t" in line and words[0] != ":":  # an entity may then contain blanks
            words = [cell.strip() for cell in line.split("\t") if cell.strip()]
        if words[0] == ":":
            section = " ".join(words[1:])
            names.append(section)
            continue
        if len(words) != 4:
            raise DataError(f"{path}, line {number}: expected four entities, got {len(words)}.")
        if wanted is None or section in wanted:
            rows.append(words)
    for unknown in [name for name in wanted or () if name not in names]:
        hint = did_you_mean(str(unknown), names) or f" Available: {', '.join(names) or 'none'}."
        raise DataError(f'{path} has no section "{unknown}".{hint}', value=str(unknown))
    if not rows:
        raise DataError(f"{path} has no line of four entities.")
    return rows


@reader("relatedness")
def read_relatedness(files: Files, spec: DataSpec) -> Dataset:
    """Return a question about the relatedness of a main entity and each one indented below it.

    The file lists the most related entity first; the target counts down to 1.
    """
    spec.check_options()
    path = one_file(files, spec)
    groups: list[tuple[str, list[str]]] = []
    for number, line in lines(path):
        if not line[0].isspace():
            groups.append((line.strip(), []))
        elif groups:
            groups[-1][1].append(line.strip())
        else:
            raise DataError(f"{path}, line {number}: indented, but there is no main entity above.")
    rows = []
    for main, related in groups:
        if not related:
            raise DataError(f"{path}: no entity is indented below {main}.")
        rows += [(main, other, float(len(related) - i)) for i, other in enumerate(related)]
    frame = pd.DataFrame(rows, columns=["main", "related", "relatedness"])
    spec = replace(spec, fields=("main", "related"), target="relatedness", group="main")
    return ask(frame, replace(spec, kind="regression", modality="entity"), entity_label)


@reader("entities")
def read_entities(files: Files, spec: DataSpec) -> Dataset:
    """Return one question per row of a table, about the entity in the column ``key``.

    A list of two columns asks about edges, with one field per end. The text of an entity comes
    from its id, or from the column ``label`` (one per key). Rows without an id are an error; with
    ``empty: drop`` they are dropped and counted in ``about``.
    """
    spec.check_options("key", "label", "empty", *OPTIONS)
    keys = _columns(spec, "key") or list(spec.fields)
    if not keys:
        raise DefinitionError(f'{spec.name}: the entity column is missing; set the option "key".')
    labels = _columns(spec, "label")
    if labels and len(labels) != len(keys):
        raise DefinitionError(f'{spec.name}: "label" must list one column per "key".')
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec, [*keys, *labels]))
    require_columns(frame, [*keys, *labels], spec.name)
    frame, spec = _with_ids(frame, keys, spec)
    words: dict[Any, str] = {}  # the text of an entity is the first label in a row with its id
    for key, label in zip(keys, labels, strict=False):
        for entity, text in zip(frame[key], frame[label], strict=True):
            if not pd.isna(text):
                words.setdefault(entity, str(text))
    spec = replace(spec, fields=tuple(keys), modality="entity")
    return ask(frame, spec, lambda entity: words.get(entity) or entity_label(entity))


def _columns(spec: DataSpec, option: str) -> list[str]:
    names = spec.options.get(option) or []
    return list(map(str, names)) if isinstance(names, list) else [str(names)]


def _with_ids(
    frame: pd.DataFrame, keys: list[str], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose entities have ids; others are an error, or dropped."""
    how = spec.choice("empty", "refuse", "drop")
    missing = frame[keys].isna().any(axis=1).to_numpy()
    if not missing.any():
        return frame, spec
    key = next(name for name in keys if frame[name].isna().any())
    count = f"is missing in {int(missing.sum())} of {len(frame)} rows"
    if how == "refuse":
        raise DataError(
            f'{spec.name}: the column "{key}" {count} (first: row {int(missing.argmax())}); '
            f'set the option "empty: drop" to drop these rows.',
            value=key,
        )
    if missing.all():
        raise DataError(f'{spec.name}: the column "{key}" {count}.', value=key)
    note = {"note": f"{' or '.join(keys)} {count}, which were dropped."}
    return frame[~missing].reset_index(drop=True), replace(spec, about={**spec.about, **note})


def lowered(words: Sequence[str], spec: DataSpec) -> list[str]:
    """Return words in lower case if the option ``lower`` is set."""
    return [word.lower() for word in words] if spec.options.get("lower") else list(words)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not empty."""
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path} is empty.")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


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
    content = parse_json(read_text(path), path)
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} is not a list of documents.")
    bags = [
        _document(document, f"{path}, document {i}") for i, document in enumerate(content, start=1)
    ]
    frame, spec = _compared(path, bags, replace(spec, modality="entity"))
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
    table, facts = _pairs(path, spec)
    target = spec.target or "average"
    spec = replace(spec, fields=fields, target=target, kind="regression", options={}, about=facts)
    frame = read_frame(table, spec)
    require_columns(frame, [*fields, target], str(table))
    chosen = {name: _chosen(frame[name], documents, table) for name in fields}
    return frame.assign(**chosen), spec


def _document(document: object, where: str) -> dict[str, float]:
    """Return the entities of a document with their highest weights."""
    annotations = document.get("annotations") if isinstance(document, Mapping) else None
    if not isinstance(annotations, list):
        raise DataError(f'{where} has no list "annotations".')
    bag: dict[str, float] = {}
    for number, annotation in enumerate(annotations, start=1):
        where_here, document = (
            f"{where}, annotation {number}",
            annotation if isinstance(annotation, Mapping) else {},
        )
        for key in ("entity", "weight"):
            if key not in document:
                raise DataError(
                    f'{where_here} has no "{key}".{did_you_mean(key, map(str, document))}'
                )
        entity, weight = document["entity"], document["weight"]
        if not isinstance(entity, str) or not entity.strip():
            raise DataError(f"{where_here}: the entity must be a string, got {entity!r}.")
        numeric = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not numeric or not 0 < weight <= sys.float_info.max:
            raise DataError(f"{where_here}: the weight must be a number above 0, got {weight!r}.")
        bag[entity.strip()] = max(float(weight), bag.get(entity.strip(), 0.0))
    return bag


def _pairs(path: Path, spec: DataSpec) -> tuple[Path, dict[str, str]]:
    """Return the table of questions, and the source and checksum of both files."""
    pairs = spec.options.get("pairs")
    if isinstance(pairs, list) and pairs:
        table, source = fetch_first(f"{spec.name} (its pairs)", pairs, spec.about)
        origin = str(source)
    elif isinstance(pairs, str) and pairs:
        table, origin = path.parent / pairs, pairs
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
        "sha256": f"documents {sha256_of_file(path)}, pairs {sha256_of_file(table)}",
    }
    return table, {**spec.about, **both}


def _chosen(column: pd.Series, documents: Sequence[Any], table: Path) -> list[Any]:
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


@reader("word-pairs")
def read_word_pairs(files: Files, spec: DataSpec) -> Dataset:
    """Return a question about the similarity of the two words of each line.

    A line is split at tabs if it has any (a term may then contain spaces), else at whitespace;
    lines that begin with ``#`` are comments. Words are entities: vector files look up the word,
    text encoders encode it. ``lower: true`` converts to lower case, as most vector files need.
    """
    spec.check_options("lower")
    path = one_file(files, spec)
    rows = []
    for number, line in lines(path):
        if line.startswith("#"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        cells = [cell.strip() for cell in cells if cell.strip()]
        if len(cells) != 3:
            raise DataError(
                f"{path}, line {number}: expected two words and a number, got {len(cells)} cells."
            )
        score = parse_number(cells[2], f"{path}, line {number}")
        rows.append((*lowered(cells[:2], spec), score))
    if not rows:
        raise DataError(f"{path} has no words, only comments.")
    frame = pd.DataFrame(rows, columns=["word1", "word2", "score"])
    spec = replace(spec, fields=("word1", "word2"), target="score", kind="regression")
    return ask(frame, replace(spec, modality="entity"), None)


@reader("triples")
def read_triples(files: Files, spec: DataSpec) -> Dataset:
    """Return a question per triple whose target is the tail, and one whose target is the head.

    A line is head, relation and tail, separated by tabs; the option ``order`` changes the order.
    In the question about the head the relation is called ``relation⁻¹``; ``inverse: false``
    leaves these questions out. Relations are the groups.

    In a folder, ``train`` and ``test`` name the files of both parts, or lists of files; the
    defaults are train.txt with valid.txt, and test.txt. Duplicate triples count once; no triple
    may be in both train and test.
    """
    spec.check_options("order", "inverse", *PARTS)
    order = list(spec.options.get("order", TRIPLE))
    if sorted(order) != sorted(TRIPLE):
        raise DefinitionError(f'{spec.name}: "order" must list {", ".join(TRIPLE)}, each once.')
    frames = [
        pd.DataFrame(_triples(path), columns=order).assign(part=part)
        for part, path in _parts(files, spec)
    ]
    together = pd.concat(frames, ignore_index=True)[[*TRIPLE, "part"]]
    frame = together.drop_duplicates(ignore_index=True)
    both = frame[frame.duplicated(list(TRIPLE))]
    if len(both):
        first = " ".join(both.iloc[0][list(TRIPLE)])
        raise DataError(
            f"{spec.name}: {len(both)} triples are in both train and test (first: {first})."
        )
    duplicates = len(together) - len(frame)
    note = {"note": f"{duplicates} duplicate triples count once."} if duplicates else {}
    if spec.options.get("inverse", True):
        relation = frame["relation"] + INVERSE
        inverse = frame.assign(head=frame["tail"], relation=relation, tail=frame["head"])
        frame = pd.concat([frame, inverse], ignore_index=True)
    part = "part" if isinstance(files, dict) or files.is_dir() else None
    spec = replace(spec, fields=("head",), target="tail", kind="items", modality="entity")
    spec = replace(spec, group="relation", part=part, about={**spec.about, **note}, options={})
    return ask(frame, spec, entity_label)


def _parts(files: Files, spec: DataSpec) -> Iterator[tuple[str, Path]]:
    """Yield the part and path of each file; a single file is the training part."""
    if isinstance(files, Path) and files.is_dir():
        for part, default in PARTS.items():
            named = spec.options.get(part) or default
            for name in named if isinstance(named, list) else [named]:
                yield part, file_in(files, name)
        return
    for part in PARTS:
        if part in spec.options:
            raise DefinitionError(f'{spec.name}: "{part}" requires a folder of files.')
    yield from files.items() if isinstance(files, dict) else [("train", files)]


def _triples(path: Path) -> list[list[str]]:
    rows = []
    for number, line in lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not all(cells):
            raise DataError(
                f"{path}, line {number}: expected three cells separated by tabs, "
                f"got {sum(map(bool, cells))}."
            )
        rows.append(cells)
    return rows
