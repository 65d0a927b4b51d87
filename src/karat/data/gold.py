"""Readers of knowledge-graph data: analogies, relatedness, and entities with an answer each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pandas as pd

from karat.data.frames import OPTIONS, read_bytes, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

WORDS = ("a", "b", "c", "answer")


def entity_label(iri: str) -> str:
    """Return an entity's name in words, from its IRI.

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
    """Return questions a, b, c whose answer is the item near b − a + c.

    The files of the field write ``Athens Baghdad Greece Iraq``: Athens is to Greece as Baghdad is
    to Iraq. The option ``order`` says so; ``[a, b, c, answer]`` is for files that write the pairs
    one after the other.
    """
    spec.check_options("order")
    order = list(spec.options.get("order", ("a", "c", "b", "answer")))
    if sorted(order) != sorted(WORDS):
        raise DefinitionError(f'{spec.name}: "order" must hold {", ".join(WORDS)}, each once.')
    path = one_file(files, spec)
    rows = []
    for number, line in _lines(path):
        words = line.split()
        if len(words) != 4:
            raise DataError(f"{path}, line {number}: {len(words)} entities; there must be four.")
        rows.append(words)
    asked = replace(spec, fields=WORDS[:3], target="answer", kind="items", modality="entity")
    return ask(pd.DataFrame(rows, columns=order), asked, entity_label)


@reader("relatedness")
def read_relatedness(files: Files, spec: DataSpec) -> Dataset:
    """Return the question "how related" for each main entity and those indented below it.

    The file gives an order, most related first; the truth counts down to 1.
    """
    spec.check_options()
    path = one_file(files, spec)
    groups: list[tuple[str, list[str]]] = []
    for number, line in _lines(path):
        if not line[0].isspace():
            groups.append((line.strip(), []))
        elif groups:
            groups[-1][1].append(line.strip())
        else:
            raise DataError(f"{path}, line {number}: indented, but no main entity stands above.")
    rows = []
    for main, related in groups:
        if not related:
            raise DataError(f"{path}: nothing is indented below {main}.")
        rows += [(main, other, float(len(related) - i)) for i, other in enumerate(related)]
    frame = pd.DataFrame(rows, columns=["main", "related", "relatedness"])
    asked = replace(
        spec,
        fields=("main", "related"),
        target="relatedness",
        kind="numbers",
        group="main",
        modality="entity",
    )
    return ask(frame, asked, entity_label)


@reader("entities")
def read_entities(files: Files, spec: DataSpec) -> Dataset:
    """Return one question per row of a table, about the entity in the column ``key``."""
    spec.check_options("key", *OPTIONS)
    key = spec.options.get("key") or (spec.fields[0] if spec.fields else None)
    if not key:
        raise DefinitionError(f'{spec.name}: say which column holds the entity: the option "key".')
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec, [key]))
    return ask(frame, replace(spec, fields=(key,), modality="entity"), entity_label)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error
    if not text.strip():
        raise DataError(f"{path} is empty.")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line
