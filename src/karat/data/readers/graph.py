"""Readers of knowledge-graph data: analogies, relatedness, and entities with a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame, read_parts, read_text
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

WORDS = ("a", "b", "c", "answer")


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

    A line ``: family`` begins a section; ``sections`` selects some of them. ``lower: true``
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
    """Return the entities of each line in the selected sections."""
    wanted = spec.options.get("sections")
    if wanted is not None and not isinstance(wanted, list):
        raise DefinitionError(f'{spec.name}: "sections" must be a list of names, got {wanted!r}.')
    section, rows = "", []
    names: list[str] = []
    for number, line in lines(path):
        words = line.split()
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
    return ask(frame, replace(spec, kind="numbers", modality="entity"), entity_label)


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
    need_columns(frame, [*keys, *labels], spec.name)
    frame, spec = _with_ids(frame, keys, spec)
    text_of = _labeled(frame, keys, labels) if labels else entity_label
    return ask(frame, replace(spec, fields=tuple(keys), modality="entity"), text_of)


def _columns(spec: DataSpec, option: str) -> list[str]:
    given = spec.options.get(option) or []
    return list(map(str, given)) if isinstance(given, list) else [str(given)]


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


def _labeled(frame: pd.DataFrame, keys: list[str], labels: list[str]) -> Callable[[str], str]:
    """Return a function from an entity to its text: the first label in a row with its id."""
    words: dict[Any, str] = {}
    for key, label in zip(keys, labels, strict=True):
        for entity, text in zip(frame[key], frame[label], strict=True):
            if not pd.isna(text):
                words.setdefault(entity, str(text))
    return lambda entity: words.get(entity) or entity_label(entity)


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
