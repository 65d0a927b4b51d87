"""The reader "triples": link prediction in a knowledge graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from karat.data.gold import entity_label, lines
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, file_in
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

COLUMNS = ("head", "relation", "tail")
#: the default files of a folder
PARTS: dict[str, Any] = {"train": ["train.txt", "valid.txt"], "test": "test.txt"}
INVERSE = "⁻¹"


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
    order = list(spec.options.get("order", COLUMNS))
    if sorted(order) != sorted(COLUMNS):
        raise DefinitionError(f'{spec.name}: "order" must list {", ".join(COLUMNS)}, each once.')
    frames = [
        pd.DataFrame(_triples(path), columns=order).assign(part=part)
        for part, path in _parts(files, spec)
    ]
    frame, duplicates = _drop_duplicates(
        pd.concat(frames, ignore_index=True)[[*COLUMNS, "part"]], spec
    )
    if spec.options.get("inverse", True):
        frame = pd.concat([frame, _inverse(frame)], ignore_index=True)
    parted = isinstance(files, dict) or files.is_dir()
    note = {"note": f"{duplicates} duplicate triples count once."} if duplicates else {}
    spec = replace(
        spec,
        fields=("head",),
        target="tail",
        kind="items",
        group="relation",
        part="part" if parted else None,
        modality="entity",
        about={**spec.about, **note},
        options={},
    )
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


def _drop_duplicates(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, int]:
    """Return the distinct triples and the number of duplicates."""
    distinct = frame.drop_duplicates(ignore_index=True)
    both = distinct[distinct.duplicated(list(COLUMNS))]
    if len(both):
        first = " ".join(both.iloc[0][list(COLUMNS)])
        raise DataError(
            f"{spec.name}: {len(both)} triples are in both train and test (first: {first})."
        )
    return distinct, len(frame) - len(distinct)


def _inverse(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        head=frame["tail"], relation=frame["relation"] + INVERSE, tail=frame["head"]
    )
