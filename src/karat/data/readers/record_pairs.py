"""Read records of which some are the same entity: duplicates in one table, links between two."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from karat.core.columns import require_columns
from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    OPTIONS,
    ask_rows,
    file_in,
    need_target,
    one_file,
    read_frame,
    without_target,
)
from karat.data.readers.text import connected_nodes
from karat.errors import DataError, DefinitionError

#: the classes of a pair; the last one is the positive class
RECORD_ANSWERS = ("no match", "match")
OF_TWO = ("left", "right", "id", "matches", "keys", "match")
#: every row needs an id, so rows without a target cannot be dropped
OF_ROWS = tuple(option for option in OPTIONS if option != "unanswered")
#: more matching pairs than this mean that the column holds classes, not entities
MAX_PAIRS = 5_000_000


@reader("duplicates")
def read_duplicates(files: Files, spec: DataSpec) -> Dataset:
    r"""Return one question per row whose target is the entity; rows of one entity are duplicates.

    The column ``target`` holds the entity's name, or an id from which the option ``entity``, a
    regular expression with one group, extracts it: ``rec-(\d+)-`` for ``rec-12-dup-0``. It is not
    a feature. The rows of one entity are one group.
    """
    spec.check_options("entity", *OF_ROWS)
    target = need_target(spec)
    path = one_file(files, spec)
    frame = _read(path, spec, [target])
    entities = _entities(frame[target], spec, path)
    if not entities.duplicated().any():
        raise DataError(f'{path} has no duplicates: no two rows have the same "{target}".')
    row_spec = replace(spec, kind="classification", group=spec.group or target)
    return ask_rows(frame.assign(**{target: entities}), row_spec)


@reader("linkage")
def read_linkage(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about pairs of rows, with the classes "match" and "no match".

    In a folder, the options ``left`` and ``right`` name the tables, ``id`` the id column of both,
    ``matches`` the file of pairs and ``keys`` its two id columns. If that file labels the pairs,
    ``target`` is the label column and ``match`` the label of a match. Without ``matches``, and in
    a single table, rows of the same entity match, as in the reader "duplicates".

    If the file lists only matches, ``negatives`` (10) other pairs of the same left row are drawn
    per match with ``seed``. The pairs of a left row are one group. Items are the rows of both
    tables, with the columns that both have.

    With ``ask: search`` each left row with a match is a query, and the target is the matching row
    of the right table (or another row of the single table). With ``ask: duplicates`` both tables
    are concatenated and each row's target is its entity; rows without a match are different
    entities.
    """
    spec.check_options(*OF_TWO, "ask", "entity", "negatives", "seed", *OF_ROWS)
    asks = {"pairs": _row_pairs, "search": _search, "duplicates": _duplicates}
    how = spec.choice("ask", *asks)
    for option in ("negatives", "seed"):
        if how != "pairs" and spec.options.get(option) is not None:
            raise DefinitionError(f'{spec.name}: "{option}" requires ask: pairs, got {how}.')
    path = one_file(files, spec)
    tables = _two_tables(path, spec) if path.is_dir() else _one_table(path, spec)
    return asks[how](tables, spec)


def _row_pairs(tables: _Tables, spec: DataSpec) -> Dataset:
    pairs = tables.pairs
    if pairs["same"].all():
        pairs = _add_negatives(tables, spec)
    ids = tables.items.index
    row_ids = {"left": ids[pairs["left"]], "right": ids[pairs["right"] + tables.begin]}
    answers = np.where(pairs["same"], "match", "no match").astype(object)
    return Dataset(
        name=spec.name,
        items=tables.items,
        questions=pd.DataFrame(row_ids),
        target=answers,
        kind="classification",
        modality="table",
        group=tables.group[pairs["left"]],
        classes=RECORD_ANSWERS,
        about=spec.about,
    )


def _search(tables: _Tables, spec: DataSpec) -> Dataset:
    matches = tables.taken[tables.taken["same"]] if tables.begin else tables.taken
    matches = matches.drop_duplicates(["left", "right"])
    left_rows, right_rows = matches["left"].to_numpy(), matches["right"].to_numpy() + tables.begin
    left_rows, right_rows = left_rows[left_rows != right_rows], right_rows[left_rows != right_rows]
    # left rows without a match are neither queries nor candidates
    used = np.arange(len(tables.items)) >= tables.begin
    used[left_rows] = True
    ids = tables.items.index
    questions, answers = pd.DataFrame({"query": ids[left_rows]}), ids[right_rows].to_numpy()
    return Dataset(
        name=spec.name,
        items=tables.items[used],
        questions=questions,
        target=answers,
        kind="items",
        modality="table",
        group=tables.group[left_rows],
        about=spec.about,
    )


def _duplicates(tables: _Tables, spec: DataSpec) -> Dataset:
    """Return one question per row; its class is the connected component of matching rows."""
    matches = tables.pairs[tables.pairs["same"]]
    left_rows, right_rows = matches["left"].to_numpy(), matches["right"].to_numpy() + tables.begin
    entities = connected_nodes(left_rows, right_rows, len(tables.items)).astype(str).astype(object)
    questions = pd.DataFrame({"row": tables.items.index})
    return Dataset(
        name=spec.name,
        items=tables.items,
        questions=questions,
        target=entities,
        kind="classification",
        modality="table",
        group=entities,
        about=spec.about,
    )


@dataclass(frozen=True)
class _Tables:
    """Rows to compare: the items, the position of the first right one, and labeled pairs.

    ``pairs`` has the positions ``left`` and ``right`` in their tables, and whether they are the
    ``same``; ``taken`` are pairs never drawn as negatives; ``group`` is the group of each left row.
    """

    items: pd.DataFrame
    begin: int
    group: np.ndarray
    pairs: pd.DataFrame
    taken: pd.DataFrame


def _one_table(path: Path, spec: DataSpec) -> _Tables:
    for option in OF_TWO:
        if option in spec.options:
            raise DefinitionError(f'{spec.name}: "{option}" requires a folder with two tables.')
    target = need_target(spec)
    frame = _read(path, spec, [target])
    entities = _entities(frame[target], spec, path)
    same = _same_entities(entities, entities, f'{path}: "{target}"')
    pairs = same[same["left"] < same["right"]].assign(same=True)
    if not len(pairs):
        raise DataError(f'{path} has no matches: no two rows have the same "{target}".')
    items = frame[_features(frame, frame, target, spec)]
    return _Tables(items=items, begin=0, group=entities.to_numpy(), pairs=pairs, taken=same)


def _read(path: Path, spec: DataSpec, ids: list[str]) -> pd.DataFrame:
    """Return a table with unconverted id columns, none of them empty."""
    frame = read_frame(path, without_target(spec), ids).reset_index(drop=True)
    require_columns(frame, ids, str(path))
    for column in ids:
        empty = np.flatnonzero(frame[column].isna())
        if len(empty):
            raise DataError(f'{path}: "{column}" is missing in row {empty[0]}.')
    return frame.assign(**{column: frame[column].map(str) for column in ids})


def _entities(ids: pd.Series, spec: DataSpec, path: Path) -> pd.Series:
    """Return the entity of each id: the match of the option ``entity``, or the id itself."""
    written = spec.options.get("entity")
    if written is None:
        return ids
    try:
        pattern = re.compile(str(written))
    except re.error as error:
        raise DefinitionError(f'{spec.name}: invalid pattern "entity": {error}.') from error
    if pattern.groups != 1:
        raise DefinitionError(f'{spec.name}: the pattern "{written}" must have one group, ( ).')
    entities = [match and match[1] for match in map(pattern.search, ids)]
    failed = [row for row, entity in enumerate(entities) if not entity]
    if failed:
        raise DataError(
            f'{path}: the pattern "{written}" does not match "{ids[failed[0]]}" (row {failed[0]}).'
        )
    return pd.Series(entities, dtype=object)


def _same_entities(left_entities: pd.Series, right_entities: pd.Series, where: str) -> pd.DataFrame:
    """Return the positions of all pairs of rows of the same entity, in order."""
    count = int((left_entities.value_counts() * right_entities.value_counts()).sum())
    if count > MAX_PAIRS:
        raise DataError(
            f"{where} gives {count} matching pairs, more than {MAX_PAIRS}: it holds classes, "
            f"not entities."
        )
    sides = [
        pd.DataFrame({"entity": entities.to_numpy(), side: np.arange(len(entities))})
        for side, entities in (("left", left_entities), ("right", right_entities))
    ]
    pairs = sides[0].merge(sides[1], on="entity").drop(columns="entity")
    return pairs.sort_values(["left", "right"], ignore_index=True)


def _features(
    left_table: pd.DataFrame, right_table: pd.DataFrame, key: str, spec: DataSpec
) -> list[str]:
    require_columns(left_table, [*spec.drop, *spec.fields], spec.name)
    columns = [c for c in spec.fields or left_table.columns if c not in (key, *spec.drop)]
    both = [column for column in columns if column in right_table.columns]
    if not both:
        raise DataError(f'{spec.name}: the tables have no column in common besides "{key}".')
    return both


def _two_tables(folder: Path, spec: DataSpec) -> _Tables:
    key = _required(spec, "id")
    sides = {side: file_in(folder, _required(spec, side)) for side in ("left", "right")}
    frames = {side: _read(path, spec, [key]) for side, path in sides.items()}
    for side, frame in frames.items():
        duplicates = frame[key][frame[key].duplicated()]
        if len(duplicates):
            raise DataError(f'{sides[side]}: duplicate {key} "{duplicates.iloc[0]}".')
    left_table, right_table = frames["left"], frames["right"]
    if "matches" in spec.options:
        pairs = _listed(
            file_in(folder, spec.options["matches"]), spec, (left_table[key], right_table[key])
        )
    else:
        _required(spec, "entity")
        entities = [_entities(frame[key], spec, sides[side]) for side, frame in frames.items()]
        pairs = _same_entities(entities[0], entities[1], f"{folder}: {key}").assign(same=True)
    if not pairs["same"].any():
        raise DataError(f"{spec.name}: no row of {sides['left']} has a match.")
    columns = _features(left_table, right_table, key, spec)
    items = pd.concat([left_table[columns], right_table[columns]], ignore_index=True)
    items.index = pd.Index([f"{side}:{i}" for side, frame in frames.items() for i in frame[key]])
    return _Tables(
        items=items,
        begin=len(left_table),
        group=left_table[key].to_numpy(),
        pairs=pairs,
        taken=pairs,
    )


def _required(spec: DataSpec, option: str) -> str:
    if not spec.options.get(option):
        raise DefinitionError(
            f'{spec.name}: a folder with two tables needs the option "{option}" '
            f"({', '.join(OF_TWO[:3])}, matches and keys, or entity)."
        )
    return str(spec.options[option])


def _listed(path: Path, spec: DataSpec, ids: tuple[pd.Series, pd.Series]) -> pd.DataFrame:
    """Return the positions of the pairs in a file of matches or labeled pairs."""
    keys = spec.options.get("keys")
    if not isinstance(keys, list) or len(keys) != 2:
        raise DefinitionError(f'{spec.name}: "keys" must list the two id columns of {path.name}.')
    frame = _read(path, spec, [*keys, *([spec.target] if spec.target else [])])
    pairs = {}
    for side, column, side_ids in zip(("left", "right"), keys, ids, strict=True):
        pairs[side] = pd.Index(side_ids).get_indexer(frame[column])
        unknown = np.flatnonzero(pairs[side] < 0)
        if len(unknown):
            raise DataError(
                f'{path}: unknown id "{frame[column].iloc[unknown[0]]}" in "{column}" (row '
                f"{unknown[0]}): {spec.options[side]} has no such {spec.options['id']}."
            )
    match = str(spec.options.get("match", "1"))
    same = frame[spec.target] == match if spec.target else np.ones(len(frame), dtype=bool)
    return pd.DataFrame({**pairs, "same": same})


def _add_negatives(tables: _Tables, spec: DataSpec) -> pd.DataFrame:
    """Return the matches of each left row, followed by drawn pairs that do not match."""
    negatives, seed = spec.integer("negatives", 10, 1), spec.integer("seed", 0, 0)
    rng = np.random.default_rng([seed, zlib.crc32(b"linkage")])
    rows = len(tables.items) - tables.begin
    taken = tables.taken.groupby("left")["right"].agg(lambda right: sorted(set(right))).to_dict()
    counts = tables.pairs["left"].value_counts(sort=False).sort_index()
    drawn = []
    for query, matches in counts.items():
        free = rows - len(taken[query])
        others_drawn = rng.choice(free, min(free, negatives * int(matches)), replace=False)
        for row in taken[query]:  # ascending: each one shifts the rows after it
            others_drawn = others_drawn + (others_drawn >= row)
        drawn.append(others_drawn)
    query = np.repeat(counts.index.to_numpy(), [len(others) for others in drawn])
    others = pd.DataFrame({"left": query, "right": np.concatenate(drawn), "same": False})
    if not len(others):
        raise DataError(f"{spec.name}: every pair matches; there are no negative pairs.")
    return pd.concat([tables.pairs, others]).sort_values("left", kind="stable", ignore_index=True)
