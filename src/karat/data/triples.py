"""The reader "triples": a knowledge graph, asked for the other end of each of its links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from karat.data.gold import entity_label, lines
from karat.data.load import DataSpec, Files
from karat.data.questions import ask
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

COLUMNS = ("head", "relation", "tail")
#: the files of a folder, where the options name no others
PARTS: dict[str, Any] = {"train": ["train.txt", "valid.txt"], "test": "test.txt"}
INVERSE = "⁻¹"


@reader("triples")
def read_triples(files: Files, spec: DataSpec) -> Dataset:
    """Return the question "which tail" for each head and relation, and the same from the tail.

    A line is head, relation and tail with tabs between them; the option ``order`` says so. Asked
    from the tail, the head is the answer and the relation is called ``relation⁻¹``; with
    ``inverse: false`` it is not asked. Relations are the groups.

    Of a folder, ``train`` and ``test`` name the files of both parts, several in a list; left out,
    those are train.txt with valid.txt, and test.txt. A triple that stands twice counts once; one
    that is taught must not be tested.
    """
    spec.check_options("order", "inverse", *PARTS)
    order = list(spec.options.get("order", COLUMNS))
    if sorted(order) != sorted(COLUMNS):
        raise DefinitionError(f'{spec.name}: "order" must hold {", ".join(COLUMNS)}, each once.')
    frames = [
        pd.DataFrame(_triples(path), columns=order).assign(part=part)
        for part, path in _parts(files, spec)
    ]
    frame, twice = _once(pd.concat(frames, ignore_index=True)[[*COLUMNS, "part"]], spec)
    if spec.options.get("inverse", True):
        frame = pd.concat([frame, _inverse(frame)], ignore_index=True)
    parted = isinstance(files, dict) or files.is_dir()
    note = {"note": f"{twice} triples stand twice and count once."} if twice else {}
    asked = replace(
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
    return ask(frame, asked, entity_label)


def _parts(files: Files, spec: DataSpec) -> Iterator[tuple[str, Path]]:
    """Yield the files to read, each with its part; a single file is all there is."""
    if isinstance(files, Path) and files.is_dir():
        for part, usual in PARTS.items():
            named = spec.options.get(part) or usual
            for name in named if isinstance(named, list) else [named]:
                yield part, _inside(files, str(name))
        return
    for part in PARTS:
        if part in spec.options:
            raise DefinitionError(f'{spec.name}: "{part}" is for a folder of several files.')
    yield from files.items() if isinstance(files, dict) else [("train", files)]


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        near = did_you_mean(name, [other.name for other in folder.iterdir()])
        raise DataError(f'{folder} has no file "{name}".{near}')
    return path


def _triples(path: Path) -> list[list[str]]:
    rows = []
    for number, line in lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not all(cells):
            raise DataError(
                f"{path}, line {number}: {sum(map(bool, cells))} cells with something in them; "
                f"there must be three, with tabs between them."
            )
        rows.append(cells)
    return rows


def _once(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, int]:
    """Return each triple once, and how many stood twice; refuse what is taught and tested."""
    kept = frame.drop_duplicates(ignore_index=True)
    both = kept[kept.duplicated(list(COLUMNS))]
    if len(both):
        first = " ".join(both.iloc[0][list(COLUMNS)])
        raise DataError(
            f"{spec.name}: {len(both)} triples stand in train and in test (first: {first}); "
            f"what is tested must not be taught."
        )
    return kept, len(frame) - len(kept)


def _inverse(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        head=frame["tail"], relation=frame["relation"] + INVERSE, tail=frame["head"]
    )
