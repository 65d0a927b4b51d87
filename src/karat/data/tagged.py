"""The reader "tagged": texts with tags, to be retrieved or ranked."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame, without_target
from karat.data.gold import entity_label
from karat.data.load import DataSpec, Files
from karat.data.questions import need_target, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

#: the classes of a pair; the last one is the positive class
ANSWERS = ("other", "own")


@reader("tagged")
def read_tagged(files: Files, spec: DataSpec) -> Dataset:
    """Return each text of the single field as a query, and its tags as targets.

    The column ``target`` has a tag or, in JSON, a list of tags; the name is taken from an IRI. The
    option ``without`` lists tags to ignore. With ``ask: search`` the tags of a query are retrieved
    from all tags. With ``ask: lists`` each query has a list to rank: its own tags and ``others``
    (20) drawn from the rest with ``seed``.
    """
    spec.check_options("ask", "without", "others", "seed", *OPTIONS)
    make = {"search": _search, "lists": _lists}[spec.choice("ask", "search", "lists")]
    target = need_target(spec)
    if len(spec.fields) != 1:
        raise DefinitionError(f'{spec.name}: "fields" must list one column, the text.')
    path = one_file(files, spec)
    frame = read_frame(path, without_target(spec), [spec.fields[0], target])
    need_columns(frame, [spec.fields[0], target], str(path))
    return make(_pairs(frame, spec, path), spec)


def _pairs(frame: pd.DataFrame, spec: DataSpec, path: Path) -> pd.DataFrame:
    """Return the distinct pairs of a query and one of its tags, as texts."""
    query, target = spec.fields[0], str(spec.target)
    without = set(map(str, spec.options.get("without") or ()))
    rows = []
    for number, (text, tags) in enumerate(zip(frame[query], frame[target], strict=True)):
        named = tags if isinstance(tags, list) else [] if _is_empty(tags) else [tags]
        if _is_empty(text):
            raise DataError(f'{path}, row {number}: "{query}" is empty.')
        rows += [(str(text), entity_label(tag)) for tag in named if str(tag) not in without]
    pairs = pd.DataFrame(rows, columns=["query", "tag"]).drop_duplicates(ignore_index=True)
    if not len(pairs):
        raise DataError(f'{path}: no row has a tag in "{target}".')
    return pairs


def _is_empty(cell: Any) -> bool:
    return not isinstance(cell, list) and (bool(pd.isna(cell)) or not str(cell).strip())


def _search(pairs: pd.DataFrame, spec: DataSpec) -> Dataset:
    return Dataset.from_columns(
        pairs, ["query"], "tag", name=spec.name, kind="items", group="query", about=spec.about
    )


def _lists(pairs: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return the lists, own tags first; rankings do not depend on this order."""
    others, seed = spec.integer("others", 20, 1), spec.integer("seed", 0, 0)
    rng = np.random.default_rng([seed, zlib.crc32(b"tagged lists")])
    tags = pairs["tag"].unique()
    rows = []
    for query, own in pairs.groupby("query", sort=False)["tag"]:
        rest = tags[~np.isin(tags, own.to_numpy())]
        if not len(rest):
            raise DataError(f'{spec.name}: "{query}" has every tag; no others can be drawn.')
        drawn = rest[np.sort(rng.choice(len(rest), min(others, len(rest)), replace=False))]
        rows += [(query, tag, ANSWERS[1]) for tag in own]
        rows += [(query, tag, ANSWERS[0]) for tag in drawn]
    frame = pd.DataFrame(rows, columns=["query", "tag", "answer"])
    data = Dataset.from_columns(
        frame,
        ["query", "tag"],
        "answer",
        name=spec.name,
        kind="classes",
        group="query",
        about=spec.about,
    )
    return replace(data, classes=ANSWERS)
