"""Readers of knowledge-graph data: analogies, relatedness, and entities with an answer each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_bytes, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
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

    A line ``: family`` begins a section; ``sections`` lists those to ask, of all there are.
    With ``lower: true`` words are in lower case, as most vectors of words are.
    """
    spec.check_options("order", "sections", "lower")
    order = list(spec.options.get("order", ("a", "c", "b", "answer")))
    if sorted(order) != sorted(WORDS):
        raise DefinitionError(f'{spec.name}: "order" must hold {", ".join(WORDS)}, each once.')
    rows = [lowered(words, spec) for words in _quadruples(one_file(files, spec), spec)]
    asked = replace(spec, fields=WORDS[:3], target="answer", kind="items", modality="entity")
    return ask(pd.DataFrame(rows, columns=order), asked, entity_label)


def _quadruples(path: Path, spec: DataSpec) -> list[list[str]]:
    """Return the entities of each line, of the sections that are wanted."""
    wanted = spec.options.get("sections")
    if wanted is not None and not isinstance(wanted, list):
        raise DefinitionError(f'{spec.name}: "sections" is a list of names, not {wanted!r}.')
    section, rows = "", []
    names: list[str] = []
    for number, line in lines(path):
        words = line.split()
        if words[0] == ":":
            section = " ".join(words[1:])
            names.append(section)
            continue
        if len(words) != 4:
            raise DataError(f"{path}, line {number}: {len(words)} entities; there must be four.")
        if wanted is None or section in wanted:
            rows.append(words)
    for lost in [name for name in wanted or () if name not in names]:
        hint = did_you_mean(str(lost), names) or f" It has: {', '.join(names) or 'none'}."
        raise DataError(f'{path} has no section "{lost}".{hint}', value=str(lost))
    if not rows:
        raise DataError(f"{path} has no line of four entities.")
    return rows


@reader("relatedness")
def read_relatedness(files: Files, spec: DataSpec) -> Dataset:
    """Return the question "how related" for each main entity and those indented below it.

    The file gives an order, most related first; the truth counts down to 1.
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
    """Return one question per row of a table, about the entity in the column ``key``.

    A list of two columns asks about edges, with a field for either end. The words of an entity
    come from its id, or from the column ``label``, one for each key. Rows without an id are
    refused; with ``empty: drop`` they are left out, and counted in ``about``.
    """
    spec.check_options("key", "label", "empty", *OPTIONS)
    keys = _columns(spec, "key") or list(spec.fields)
    if not keys:
        raise DefinitionError(f'{spec.name}: say which column holds the entity: the option "key".')
    labels = _columns(spec, "label")
    if labels and len(labels) != len(keys):
        raise DefinitionError(f'{spec.name}: "label" names one column for each of "key".')
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec, [*keys, *labels]))
    need_columns(frame, [*keys, *labels], spec.name)
    frame, spec = _with_ids(frame, keys, spec)
    words = _labelled(frame, keys, labels) if labels else entity_label
    return ask(frame, replace(spec, fields=tuple(keys), modality="entity"), words)


def _columns(spec: DataSpec, option: str) -> list[str]:
    given = spec.options.get(option) or []
    return list(map(str, given)) if isinstance(given, list) else [str(given)]


def _with_ids(
    frame: pd.DataFrame, keys: list[str], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose entities have ids; those without are an error, or left out."""
    how = spec.options.get("empty", "refuse")
    if how not in ("refuse", "drop"):
        raise DefinitionError(f'{spec.name}: "empty" is "refuse" or "drop", not "{how}".')
    lost = frame[keys].isna().any(axis=1).to_numpy()
    if not lost.any():
        return frame, spec
    key = next(name for name in keys if frame[name].isna().any())
    said = f"is missing in {int(lost.sum())} of {len(frame)} rows"
    if how == "refuse":
        raise DataError(
            f'{spec.name}: the column "{key}" {said} (first: row {int(lost.argmax())}); '
            f'"empty: drop" among the options leaves such rows out.',
            value=key,
        )
    note = {"note": f"{' or '.join(keys)} {said}, which are left out."}
    kept = frame[~lost].reset_index(drop=True)
    if not len(kept):
        raise DataError(f'{spec.name}: the column "{key}" {said}; none is left.', value=key)
    return kept, replace(spec, about={**spec.about, **note})


def _labelled(frame: pd.DataFrame, keys: list[str], labels: list[str]) -> Callable[[str], str]:
    """Return what gives an entity its words: the first that stand beside its id."""
    words: dict[Any, str] = {}
    for key, label in zip(keys, labels, strict=True):
        for entity, text in zip(frame[key], frame[label], strict=True):
            if not pd.isna(text):
                words.setdefault(entity, str(text))
    return lambda entity: words.get(entity) or entity_label(entity)


def lowered(words: Sequence[str], spec: DataSpec) -> list[str]:
    """Return words in lower case, where the option ``lower`` says so."""
    return [word.lower() for word in words] if spec.options.get("lower") else list(words)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers and without their ends."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error
    if not text.strip():
        raise DataError(f"{path} is empty.")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")
