"""The reader "tagged": texts that several others belong to, to be found or to be told apart."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame
from karat.data.gold import entity_label
from karat.data.load import DataSpec, Files
from karat.data.questions import need_target, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

#: the answers about a pair; the last one is what is looked for
ANSWERS = ("other", "own")


@reader("tagged")
def read_tagged(files: Files, spec: DataSpec) -> Dataset:
    """Return each text of the one field as a query, and the texts that its tags are as answers.

    The column ``target`` holds a tag, or in JSON a list of tags; an IRI stands for the name in it.
    The option ``without`` lists tags that do not count. With ``ask: search`` a query asks for its
    tags among all there are. With ``ask: lists`` each query has a list to be put in order: its own
    tags and ``others`` (20) drawn from the rest by the ``seed``.
    """
    spec.check_options("ask", "without", "others", "seed", *OPTIONS)
    how = str(spec.options.get("ask", "search"))
    asks = {"search": _search, "lists": _lists}
    if how not in asks:
        raise DefinitionError(
            f'{spec.name}: "ask" is search or lists, not "{how}".{did_you_mean(how, asks)}'
        )
    target = need_target(spec)
    if len(spec.fields) != 1:
        raise DefinitionError(f'{spec.name}: say which column asks: "fields: [NAME]", one column.')
    path = one_file(files, spec)
    options = {name: value for name, value in spec.options.items() if name in OPTIONS}
    plain = replace(spec, target=None, kind=None, options=options)
    frame = read_frame(path, plain, [spec.fields[0], target])
    need_columns(frame, [spec.fields[0], target], str(path))
    return asks[how](_pairs(frame, spec, path), spec)


def _pairs(frame: pd.DataFrame, spec: DataSpec, path: Path) -> pd.DataFrame:
    """Return one row per query and tag of its own, both as words, each pair once."""
    query, target = spec.fields[0], str(spec.target)
    without = set(map(str, spec.options.get("without") or ()))
    rows = []
    for number, (text, tags) in enumerate(zip(frame[query], frame[target], strict=True)):
        named = tags if isinstance(tags, list) else [] if _is_empty(tags) else [tags]
        if _is_empty(text):
            raise DataError(f'{path}, row {number}: "{query}" is empty; fill it or drop the row.')
        rows += [(str(text), entity_label(tag)) for tag in named if str(tag) not in without]
    pairs = pd.DataFrame(rows, columns=["query", "tag"]).drop_duplicates(ignore_index=True)
    if not len(pairs):
        raise DataError(f'{path}: no row has a tag in "{target}" that counts.')
    return pairs


def _is_empty(cell: Any) -> bool:
    return not isinstance(cell, list) and (bool(pd.isna(cell)) or not str(cell).strip())


def _search(pairs: pd.DataFrame, spec: DataSpec) -> Dataset:
    return Dataset.from_columns(
        pairs, ["query"], "tag", name=spec.name, kind="items", group="query", about=spec.about
    )


def _lists(pairs: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return the lists, own tags first: whoever ranks them sees scores, not the order."""
    many, seed = (_whole(spec, *told) for told in (("others", 20), ("seed", 0)))
    rng = np.random.default_rng([seed, zlib.crc32(b"tagged lists")])
    tags = pairs["tag"].unique()
    rows = []
    for query, own in pairs.groupby("query", sort=False)["tag"]:
        rest = tags[~np.isin(tags, own.to_numpy())]
        if not len(rest):
            raise DataError(
                f'{spec.name}: "{query}" has every tag; there is nothing to tell apart.'
            )
        drawn = rest[np.sort(rng.choice(len(rest), min(many, len(rest)), replace=False))]
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


def _whole(spec: DataSpec, option: str, default: int) -> int:
    value = spec.options.get(option, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < (option == "others"):
        raise DefinitionError(f'{spec.name}: "{option}" is a whole number, not {value!r}.')
    return value
