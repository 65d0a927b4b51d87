"""Readers of rows that stand for one thing: "duplicates" of one table, and "linkage" of two."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame
from karat.data.load import DataSpec, Files
from karat.data.questions import ask_rows, need_target, one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

#: the answers about a pair; the last one is what is looked for
ANSWERS = ("no match", "match")
OF_TWO = ("left", "right", "id", "matches", "keys", "match")
#: a row without an id is no row, so none can be dropped for want of an answer
OF_ROWS = tuple(option for option in OPTIONS if option != "unanswered")
#: more pairs than this are rows of one class, not rows of one thing
MANY = 5_000_000


@reader("duplicates")
def read_duplicates(files: Files, spec: DataSpec) -> Dataset:
    r"""Return one question per row: which thing is it? Rows with one answer are duplicates.

    The column ``target`` holds the thing's name, or an id in which the option ``entity`` finds it,
    a pattern with one group: ``rec-(\d+)-`` in ``rec-12-dup-0``. It is not a feature, and the rows
    of one thing are one group.
    """
    spec.check_options("entity", *OF_ROWS)
    target = need_target(spec)
    path = one_file(files, spec)
    frame = _read(path, spec, [target])
    things = _things(frame[target], spec, path)
    if not things.duplicated().any():
        raise DataError(f'{path}: no two rows have the same "{target}"; nothing is a duplicate.')
    asked = replace(spec, kind="classes", group=spec.group or target)
    return ask_rows(frame.assign(**{target: things}), asked)


@reader("linkage")
def read_linkage(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about pairs of rows, whose answer is "match" or "no match".

    Of a folder, the options ``left`` and ``right`` name the tables, ``id`` the column that both
    are known by, ``matches`` the file of pairs and ``keys`` its two columns of ids. If it labels
    the pairs, ``target`` is that column and ``match`` the label of a match. Without ``matches``,
    and in one table read alone, rows match that are one thing, as the reader "duplicates" tells.

    Where only matches are known, other pairs are drawn: for each match ``negatives`` (10) more
    pairs of its left row, by the ``seed``. The pairs of a left row are one group. Items are the
    rows of both tables, with the columns that both have.

    With ``ask: search`` there are no pairs to tell apart: each left row that has a match is a
    query, and the answer is the row of the right table, or another row of the one table. With
    ``ask: duplicates`` both tables are one, with a question per row: which thing is it? Rows that
    no match joins are different things.
    """
    spec.check_options(*OF_TWO, "ask", "entity", "negatives", "seed", *OF_ROWS)
    asks = {"pairs": _pairs, "search": _search, "duplicates": _duplicates}
    how = str(spec.options.get("ask", "pairs"))
    if how not in asks:
        raise DefinitionError(
            f'{spec.name}: "ask" is one of {", ".join(asks)}, not "{how}".{did_you_mean(how, asks)}'
        )
    for option in ("negatives", "seed"):
        if how != "pairs" and spec.options.get(option) is not None:
            raise DefinitionError(f'{spec.name}: "{option}" is for ask: pairs, not for {how}.')
    path = one_file(files, spec)
    tables = _two_tables(path, spec) if path.is_dir() else _one_table(path, spec)
    return asks[how](tables, spec)


def _pairs(tables: _Tables, spec: DataSpec) -> Dataset:
    pairs = tables.pairs
    if pairs["same"].all():
        pairs = _with_others(tables, spec)
    ids = tables.items.index
    return Dataset(
        name=spec.name,
        items=tables.items,
        questions=pd.DataFrame(
            {"left": ids[pairs["left"]], "right": ids[pairs["right"] + tables.begin]}
        ),
        truth=np.where(pairs["same"], "match", "no match").astype(object),
        kind="classes",
        modality="table",
        group=tables.group[pairs["left"]],
        classes=ANSWERS,
        about=spec.about,
    )


def _search(tables: _Tables, spec: DataSpec) -> Dataset:
    """Return each left row with a match as a query, and its matches as the items to be found."""
    known = tables.taken[tables.taken["same"]] if tables.begin else tables.taken
    known = known.drop_duplicates(["left", "right"])
    left, right = known["left"].to_numpy(), known["right"].to_numpy() + tables.begin
    left, right = left[left != right], right[left != right]
    # rows of the left table that match nothing are neither asked about nor candidates
    kept = np.arange(len(tables.items)) >= tables.begin
    kept[left] = True
    ids = tables.items.index
    return Dataset(
        name=spec.name,
        items=tables.items[kept],
        questions=pd.DataFrame({"query": ids[left]}),
        truth=ids[right].to_numpy(),
        kind="items",
        modality="table",
        group=tables.group[left],
        about=spec.about,
    )


def _duplicates(tables: _Tables, spec: DataSpec) -> Dataset:
    """Return one question per row, whose class is the thing: rows that matches join are one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matches = tables.pairs[tables.pairs["same"]]
    ends = (matches["left"].to_numpy(), matches["right"].to_numpy() + tables.begin)
    size = len(tables.items)
    joined = coo_array((np.ones(len(matches)), ends), shape=(size, size))
    things = connected_components(joined, directed=False)[1].astype(str).astype(object)
    return Dataset(
        name=spec.name,
        items=tables.items,
        questions=pd.DataFrame({"row": tables.items.index}),
        truth=things,
        kind="classes",
        modality="table",
        group=things,
        about=spec.about,
    )


@dataclass(frozen=True)
class _Tables:
    """Rows to compare: the items, where the right ones begin, and what is known of pairs.

    ``pairs`` has the rows ``left`` and ``right``, counted in their tables, and whether they are
    the ``same``; ``taken`` are those not to be drawn as different; ``group`` is that of a left row.
    """

    items: pd.DataFrame
    begin: int
    group: np.ndarray
    pairs: pd.DataFrame
    taken: pd.DataFrame


# -- one table ------------------------------------------------------------------------------


def _one_table(path: Path, spec: DataSpec) -> _Tables:
    for option in OF_TWO:
        if option in spec.options:
            raise DefinitionError(f'{spec.name}: "{option}" is for a folder of two tables.')
    target = need_target(spec)
    frame = _read(path, spec, [target])
    things = _things(frame[target], spec, path)
    same = _same_things(things, things, f'{path}: "{target}"')
    pairs = same[same["left"] < same["right"]].assign(same=True)
    if not len(pairs):
        raise DataError(f'{path}: no two rows have the same "{target}"; nothing matches.')
    items = frame[_features(frame, frame, target, spec)]
    return _Tables(items, 0, things.to_numpy(), pairs, same)


def _read(path: Path, spec: DataSpec, ids: list[str]) -> pd.DataFrame:
    """Return a table whose columns of ids are as they are written, and none of them empty."""
    options = {name: value for name, value in spec.options.items() if name in OF_ROWS}
    plain = replace(spec, target=None, kind=None, options=options)
    frame = read_frame(path, plain, ids).reset_index(drop=True)
    need_columns(frame, ids, str(path))
    for column in ids:
        empty = np.flatnonzero(frame[column].isna())
        if len(empty):
            raise DataError(f'{path}: "{column}" is missing in row {empty[0]}.')
    return frame.assign(**{column: frame[column].map(str) for column in ids})


def _things(ids: pd.Series, spec: DataSpec, path: Path) -> pd.Series:
    """Return which thing each id is of: what the pattern ``entity`` finds in it, or itself."""
    written = spec.options.get("entity")
    if written is None:
        return ids
    try:
        pattern = re.compile(str(written))
    except re.error as error:
        raise DefinitionError(f'{spec.name}: "entity" is not a pattern: {error}.') from error
    if pattern.groups != 1:
        raise DefinitionError(f'{spec.name}: the pattern "{written}" needs one group, ( ).')
    found = [match and match[1] for match in map(pattern.search, ids)]
    lost = [row for row, thing in enumerate(found) if not thing]
    if lost:
        raise DataError(
            f'{path}: the pattern "{written}" finds nothing in "{ids[lost[0]]}" (row {lost[0]}).'
        )
    return pd.Series(found, dtype=object)


def _same_things(left: pd.Series, right: pd.Series, where: str) -> pd.DataFrame:
    """Return all pairs of rows that are one thing, as positions, in order."""
    count = int((left.value_counts() * right.value_counts()).sum())
    if count > MANY:
        raise DataError(f"{where} makes {count} pairs of rows the same: it tells classes apart.")
    sides = [
        pd.DataFrame({"thing": things.to_numpy(), side: np.arange(len(things))})
        for side, things in (("left", left), ("right", right))
    ]
    pairs = sides[0].merge(sides[1], on="thing").drop(columns="thing")
    return pairs.sort_values(["left", "right"], ignore_index=True)


def _features(left: pd.DataFrame, right: pd.DataFrame, key: str, spec: DataSpec) -> list[str]:
    need_columns(left, [*spec.drop, *spec.fields], spec.name)
    columns = [c for c in spec.fields or left.columns if c not in (key, *spec.drop)]
    both = [column for column in columns if column in right.columns]
    if not both:
        raise DataError(f'{spec.name}: the tables have no column in common besides "{key}".')
    return both


# -- two tables -----------------------------------------------------------------------------


def _two_tables(folder: Path, spec: DataSpec) -> _Tables:
    key = _needed(spec, "id")
    sides = {side: _file(folder, _needed(spec, side)) for side in ("left", "right")}
    frames = {side: _read(path, spec, [key]) for side, path in sides.items()}
    for side, frame in frames.items():
        twice = frame[key][frame[key].duplicated()]
        if len(twice):
            raise DataError(f'{sides[side]}: the {key} "{twice.iloc[0]}" stands twice.')
    left, right = frames["left"], frames["right"]
    if "matches" in spec.options:
        pairs = _listed(_file(folder, spec.options["matches"]), spec, (left[key], right[key]))
    else:
        _needed(spec, "entity")
        things = [_things(frame[key], spec, sides[side]) for side, frame in frames.items()]
        pairs = _same_things(things[0], things[1], f"{folder}: {key}").assign(same=True)
    if not pairs["same"].any():
        raise DataError(f"{spec.name}: no row of {sides['left']} has a match.")
    columns = _features(left, right, key, spec)
    items = pd.concat([left[columns], right[columns]], ignore_index=True)
    items.index = pd.Index([f"{side}:{i}" for side, frame in frames.items() for i in frame[key]])
    return _Tables(items, len(left), left[key].to_numpy(), pairs, pairs)


def _needed(spec: DataSpec, option: str) -> str:
    if not spec.options.get(option):
        known = ", ".join((*OF_TWO[:3], "matches and keys, or entity"))
        raise DefinitionError(
            f'{spec.name}: a folder of two tables needs the option "{option}" ({known}).'
        )
    return str(spec.options[option])


def _file(folder: Path, name: Any) -> Path:
    path = folder / str(name)
    if not path.is_file():
        near = did_you_mean(str(name), [other.name for other in folder.iterdir()])
        raise DataError(f'{folder} has no file "{name}".{near}')
    return path


def _listed(path: Path, spec: DataSpec, ids: tuple[pd.Series, pd.Series]) -> pd.DataFrame:
    """Return the pairs of a file of matches, or of labelled pairs, as positions."""
    keys = spec.options.get("keys")
    if not isinstance(keys, list) or len(keys) != 2:
        raise DefinitionError(f'{spec.name}: "keys" names the two columns of ids in {path.name}.')
    frame = _read(path, spec, [*keys, *([spec.target] if spec.target else [])])
    pairs = {}
    for side, column, known in zip(("left", "right"), keys, ids, strict=True):
        pairs[side] = pd.Index(known).get_indexer(frame[column])
        lost = np.flatnonzero(pairs[side] < 0)
        if len(lost):
            raise DataError(
                f'{path}: "{frame[column].iloc[lost[0]]}" in "{column}" (row {lost[0]}) is no '
                f"{spec.options['id']} of {spec.options[side]}."
            )
    match = str(spec.options.get("match", "1"))
    same = frame[spec.target] == match if spec.target else np.ones(len(frame), dtype=bool)
    return pd.DataFrame({**pairs, "same": same})


# -- pairs that do not match ----------------------------------------------------------------


def _with_others(tables: _Tables, spec: DataSpec) -> pd.DataFrame:
    """Return the matches of each left row, followed by pairs drawn from its other rows."""
    negatives, seed = (_whole(spec, *given) for given in (("negatives", 10, 1), ("seed", 0, 0)))
    rng = np.random.default_rng([seed, zlib.crc32(b"linkage")])
    rows = len(tables.items) - tables.begin
    taken = tables.taken.groupby("left")["right"].agg(lambda right: sorted(set(right))).to_dict()
    counts = tables.pairs["left"].value_counts(sort=False).sort_index()
    drawn = [
        _drawn(rows, taken[left], negatives * int(matches), rng) for left, matches in counts.items()
    ]
    left = np.repeat(counts.index.to_numpy(), [len(others) for others in drawn])
    others = pd.DataFrame({"left": left, "right": np.concatenate(drawn), "same": False})
    if not len(others):
        raise DataError(f"{spec.name}: every pair matches; there is nothing to tell apart.")
    return pd.concat([tables.pairs, others]).sort_values("left", kind="stable", ignore_index=True)


def _drawn(rows: int, taken: list[int], wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Return some of the rows that are not taken, each once."""
    free = rows - len(taken)
    found = rng.choice(free, min(free, wanted), replace=False)
    for row in taken:  # ascending: each one shifts those from it on
        found = found + (found >= row)
    return found


def _whole(spec: DataSpec, option: str, default: int, least: int) -> int:
    value = spec.options.get(option, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DefinitionError(
            f'{spec.name}: "{option}" is a whole number of {least} or more, not {value!r}.'
        )
    return value
