"""The reader "tables": a folder of tables with annotations becomes columns or tables to embed.

Two layouts are read. ``plain`` is a folder of table files with ``columns.csv`` (table, column,
type), ``tables.csv`` (table, class, caption) and ``cells.csv`` (table, column, entity), of which
only those are needed that the questions ask for. ``sm`` is the layout of the package sm-datasets
(T2Dv2, 250WT, BioTables): tables with linked cells, and semantic models that name the classes and
properties of their columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import (
    caption_item,
    caption_of,
    column_items,
    find_targets,
    frame_items,
    pack,
    require_columns,
)
from karat.core.dataset import Dataset
from karat.core.files import cell_text
from karat.core.numbers import NUMBER
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    SUFFIXES,
    file_in,
    one_file,
    parse_json,
    read_frame,
    read_text,
)
from karat.data.readers.text import connected_nodes
from karat.errors import DataError, DefinitionError

#: a column of a table: the name of the table, and the position
Place = tuple[str, int]
#: options that say how the table files are written
_WRITTEN = ("separator", "encoding", "decimal", "thousands", "missing")
_GOLD = {"columns.csv": "column-types", "tables.csv": "table-classes", "cells.csv": "column-joins"}
#: the end of the name of a table file, which is not part of the table's name
_ENDING = re.compile(rf"({'|'.join(map(re.escape, SUFFIXES))})(\.gz|\.bz2|\.xz)?$", re.IGNORECASE)
#: between the cells of a table and its other data in a file of T2Dv2
RULE = "-" * 80
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


@dataclass(frozen=True)
class Corpus:
    """Tables by name, and what is known about them.

    ``types`` are the types of columns, ``classes`` those of tables, ``entities`` the entities that
    the cells of a column refer to.
    """

    tables: dict[str, pd.DataFrame]
    types: dict[Place, str] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    entities: dict[Place, frozenset[str]] = field(default_factory=dict)


@reader("tables")
def read_tables(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the columns or the tables of a folder.

    ``ask: column-types`` asks for the type of a column, ``table-classes`` for the class of a
    table, ``column-joins`` for the columns of other tables that share entities with a column, and
    ``captions`` for the table of a caption. Types and classes of fewer than ``least`` tables are
    left out. Two columns can be joined if they share ``shared`` entities, and at least the fraction
    ``contained`` of those of the column with fewer.
    """
    spec.check_options("layout", "ask", "least", "shared", "contained", *_WRITTEN)
    folder = one_file(files, spec)
    if not folder.is_dir():
        raise DataError(f"{folder} is a file; the reader tables needs a folder of tables.")
    ask = ASKED[spec.choice("ask", *ASKED)]
    layout = LAYOUTS[spec.choice("layout", *LAYOUTS)]
    corpus = layout(folder, spec)
    if not corpus.tables:
        raise DataError(f"{folder} contains no tables.")
    return ask(corpus, spec)


# -- the layout "plain" ---------------------------------------------------------------------


def read_plain(folder: Path, spec: DataSpec) -> Corpus:
    """Return the tables of a folder; the name of a table is that of its file."""
    tables: dict[str, pd.DataFrame] = {}
    written = {name: value for name, value in spec.options.items() if name in _WRITTEN}
    for path in sorted(folder.iterdir()):
        ending = _ENDING.search(path.name)
        if path.name in _GOLD or not path.is_file() or ending is None:
            continue
        name = path.name[: ending.start()]
        if name in tables:
            raise DataError(f'{folder} has two tables with the name "{name}".')
        frame = read_frame(path, replace(spec, options=written, target=None))
        _check_header(frame, path)
        tables[name] = frame
    corpus = Corpus(tables)
    for row in _gold(folder, "tables.csv", ("table",)):
        table = _known(tables, row["table"], folder / "tables.csv")
        table.attrs["caption"] = row.get("caption", "")
        if row.get("class"):
            corpus.classes[row["table"]] = row["class"]
    for row in _gold(folder, "columns.csv", ("table", "column", "type")):
        corpus.types[_place(tables, row, folder / "columns.csv")] = row["type"]
    linked = defaultdict(set)
    for row in _gold(folder, "cells.csv", ("table", "column", "entity")):
        linked[_place(tables, row, folder / "cells.csv")].add(row["entity"])
    corpus.entities.update({column: frozenset(entities) for column, entities in linked.items()})
    if needed := [file for file, kind in _GOLD.items() if kind == spec.options.get("ask")]:
        file_in(folder, needed[0])
    return corpus


def _check_header(frame: pd.DataFrame, path: Path) -> None:
    numbers = [name for name in frame.columns if not _is_word(name)]
    if len(frame.columns) and len(numbers) == len(frame.columns):
        raise DataError(
            f"{path} has no header: its first line is {', '.join(map(str, numbers[:5]))}. Add a "
            f"line with the names of the columns."
        )


def _is_word(name: object) -> bool:
    text = str(name).strip()
    if not text or text.startswith("Unnamed:"):
        return False
    return not NUMBER.fullmatch(text.replace(",", ""))


def _gold(folder: Path, name: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    path = folder / name
    if not path.is_file():
        return
    frame = read_frame(path, DataSpec(name), texts=(*columns, "class", "caption"))
    require_columns(frame, columns, str(path))
    for row in frame.astype(object).where(frame.notna(), "").to_dict("records"):
        yield {str(key): str(value) for key, value in row.items()}


def _known(tables: Mapping[str, pd.DataFrame], name: str, path: Path) -> pd.DataFrame:
    find_targets(tables, {name: ""}, str(path))  # raises a DataError
    return tables[name]


def _place(tables: Mapping[str, pd.DataFrame], row: Mapping[str, str], path: Path) -> Place:
    table = row["table"]
    by_name = {table: _known(tables, table, path)}
    return table, find_targets(by_name, {(table, row["column"]): ""}, str(path))[0][0]


# -- the layout "sm" ------------------------------------------------------------------------


def read_sm(folder: Path, spec: DataSpec) -> Corpus:
    """Return the tables and the newest semantic models of a dataset of sm-datasets."""
    corpus, names = Corpus({}), dict[str, str]()
    for path in sorted(file_in_folder(folder, "tables")):
        name = path.name.partition(".")[0]
        frame, entities = _sm_table(path)
        corpus.tables[name] = frame
        corpus.entities.update({(name, column): linked for column, linked in entities.items()})
        model = _sm_model(folder / "descriptions", name)
        corpus.types.update({(name, column): kind for column, kind in model.types.items()})
        if model.table is not None:
            corpus.classes[name] = model.table
        names |= model.names
    types = {target: names.get(kind, kind) for target, kind in corpus.types.items()}
    classes = {name: names.get(kind, kind) for name, kind in corpus.classes.items()}
    return replace(corpus, types=types, classes=classes)


def file_in_folder(folder: Path, name: str) -> list[Path]:
    """Return the files in a folder of a folder, or raise a DataError if there is none."""
    if not (folder / name).is_dir():
        raise DataError(f'{folder} has no folder "{name}".')
    return [path for path in (folder / name).iterdir() if path.is_file()]


def _short(uri: str) -> str:
    """Return the last part of an IRI: ``Q5``, ``P569``, ``Book``."""
    return uri.rstrip("/").replace("#", "/").rpartition("/")[2]


def _readable(parts: list[dict[str, Any]]) -> dict[str, str]:
    """Return the labels of classes and properties, such as "human (Q5)"."""
    return {
        _short(part["abs_uri"]): part["readable_label"]
        for part in parts
        if part.get("readable_label") and "abs_uri" in part
    }


def _sm_table(path: Path) -> tuple[pd.DataFrame, dict[int, frozenset[str]]]:
    """Return a table and the entities of its columns."""
    text = read_text(path)
    cells, ruled, rest = text.partition(f"\n{RULE}\n")
    description = parse_json(rest if ruled else text, path)
    try:
        if ruled:
            frame = _frame(list(csv.reader(io.StringIO(cells.strip("\n"), newline=""))))
        else:
            columns = description["table"]["columns"]
            rows = zip(*(column["values"] for column in columns), strict=True)
            names = [_plain_name(column["name"]) for column in columns]
            frame = _frame([names, *rows])
        frame.attrs["caption"] = str(description["context"].get("page_title") or "")
        linked: dict[int, set[str]] = defaultdict(set)
        for row in description["links"]:
            for column, links in enumerate(row):
                linked[column].update(entity for link in links for entity in _entities(link))
    except (KeyError, TypeError, ValueError, AttributeError, csv.Error) as error:
        raise DataError(f"{path} is not a table of sm-datasets: {error!r}.") from error
    return frame, {column: frozenset(entities) for column, entities in linked.items() if entities}


def _plain_name(name: str | Sequence[str] | None) -> Any:
    return name if isinstance(name, str) or name is None else name[0]


def _frame(rows: list[Any]) -> pd.DataFrame:
    """Return rows of texts, the first of them the header, as a table; empty cells are missing."""
    header, *body = rows
    cells = [[None if cell is None else str(cell).strip() or None for cell in row] for row in body]
    return pd.DataFrame(cells, columns=pd.Index(list(header), dtype=object), dtype=object)


def _entities(link: Mapping[str, Any]) -> Iterator[str]:
    if link.get("entity_id"):
        yield str(link["entity_id"])
    for entity in link.get("entities") or ():
        yield str(entity["id"] if isinstance(entity, Mapping) else entity)


@dataclass(frozen=True)
class _Model:
    """A semantic model: types of columns, the class of the table, and names of both."""

    types: dict[int, str] = field(default_factory=dict)
    table: str | None = None
    names: dict[str, str] = field(default_factory=dict)


def _sm_model(folder: Path, name: str) -> _Model:
    """Return the first semantic model of the newest version; an empty one if there is none."""
    versions = [*sorted((folder / name).glob("*.json")), *folder.glob(f"{name}.json")]
    if not versions:
        return _Model()
    models = parse_json(read_text(versions[-1]), versions[-1])
    try:
        return _annotated(models[0]["nodes"], models[0]["edges"])
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise DataError(
            f"{versions[-1]} is not a list of semantic models of sm-datasets: {error!r}."
        ) from error


def _annotated(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> _Model:
    """Return what the nodes and edges of a semantic model say about columns and table."""
    if not nodes or not edges:
        return _Model()
    by_id, types = {node["id"]: node for node in nodes}, {}
    for edge in edges:
        column = by_id[edge["target"]].get("col_index")
        if column is not None:
            meant = by_id[edge["source"]] if edge["abs_uri"] == LABEL else edge
            types[int(column)] = _short(meant["abs_uri"])
    reached = {edge["target"] for edge in edges}
    first = [n for n in nodes if "abs_uri" in n and n["id"] not in reached]
    table = _short(first[0]["abs_uri"]) if first else None
    return _Model(types, table, _readable([*nodes, *edges]))


# -- questions ------------------------------------------------------------------------------


def ask_types(corpus: Corpus, spec: DataSpec) -> Dataset:
    """Return questions about the types of columns.

    The groups are the tables; tables with an equal column are one group.
    """
    tables = defaultdict(set)
    for (table, _), kind in corpus.types.items():
        tables[kind].add(table)
    counts = {kind: len(where) for kind, where in tables.items()}
    target = _frequent(corpus.types, counts, "column", spec)
    data = Dataset.from_tables(corpus.tables, target, **_facts(spec))
    table, names = pd.factorize(data.group)
    content = pd.factorize(np.array([cell_text(column) for column in data.items], object))[0]
    # tables and contents are the nodes of a graph, columns are its edges
    family = connected_nodes(table, len(names) + content, len(names) + content.max() + 1)
    first = pd.Series(names).groupby(family[: len(names)]).transform("first")
    return replace(data, group=first.to_numpy(dtype=object)[table])


def ask_classes(corpus: Corpus, spec: DataSpec) -> Dataset:
    """Return questions about the classes of tables."""
    target = _frequent(corpus.classes, Counter(corpus.classes.values()), "table", spec)
    return Dataset.from_tables(corpus.tables, target, **_facts(spec))


def _frequent(
    target: Mapping[Any, str], counts: Mapping[str, int], what: str, spec: DataSpec
) -> dict[Any, str]:
    least = spec.integer("least", 1, 1)
    frequent = {key: kind for key, kind in target.items() if counts[kind] >= least}
    if not frequent:
        raise DataError(f"{spec.name}: no type of a {what} is annotated in {least} tables.")
    return frequent


def _facts(spec: DataSpec) -> dict[str, Any]:
    return {"name": spec.name, "kind": spec.kind or "classification", "about": spec.about}


def ask_joins(corpus: Corpus, spec: DataSpec) -> Dataset:
    """Return columns as queries; the targets are columns of other tables with shared entities.

    All columns with at least ``shared`` entities are candidates. The group of a query is its table.
    """
    shared = spec.integer("shared", 3, 1)
    contained = _fraction(spec, "contained", 0.5)
    places = [column for column, entities in corpus.entities.items() if len(entities) >= shared]
    items = column_items(corpus.tables)
    numbers = find_targets(corpus.tables, dict.fromkeys(places), spec.name)[0]
    items = items.iloc[numbers]
    joinable = _joinable([corpus.entities[column] for column in places], shared, contained)
    pairs = [(i, j) for i, j in joinable if places[i][0] != places[j][0]]
    if not pairs:
        raise DataError(f"{spec.name}: no columns of different tables share {shared} entities.")
    query_numbers, answers = np.array(sorted(pairs)).T
    return Dataset(
        name=spec.name,
        items=items,
        questions=pd.DataFrame({"query": items.index[query_numbers]}),
        target=items.index.to_numpy()[answers],
        kind="items",
        modality="column",
        group=np.array([places[i][0] for i in query_numbers], dtype=object),
        about=spec.about,
    )


def _fraction(spec: DataSpec, option: str, default: float) -> float:
    value = spec.options.get(option, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise DefinitionError(f"{spec.name}: {option} must be from 0 to 1, got {value!r}.")
    return float(value)


def _joinable(
    entities: list[frozenset[str]], shared: int, contained: float
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of columns that share entities, in both orders."""
    for i, one in enumerate(entities):
        for j, other in enumerate(entities):
            common = len(one & other) if i != j else 0
            if common >= shared and common >= contained * min(len(one), len(other)):
                yield i, j


def ask_captions(corpus: Corpus, spec: DataSpec) -> Dataset:
    """Return captions as queries, whose targets are their tables; these have no captions.

    A query is a table without columns that has only a caption. The names of the tables, which may
    contain their captions, are replaced by numbers.
    """
    named = {name: caption_of(table) for name, table in corpus.tables.items()}
    queries = list(dict.fromkeys(filter(None, named.values())))
    if not queries:
        raise DataError(f"{spec.name}: no table has a caption.")
    tables = frame_items(corpus.tables)
    for frame in tables:
        frame.attrs = {}
    ids = [f"table {number}" for number in range(len(tables))]
    query_ids = [f"caption {queries.index(text)}" for text in named.values() if text]
    items = pd.concat(
        [
            tables.set_axis(ids),
            pack([caption_item(text) for text in queries], dict.fromkeys(query_ids)),
        ]
    )
    answers = np.array([i for i, text in zip(ids, named.values(), strict=True) if text], object)
    return Dataset(
        name=spec.name,
        items=items,
        questions=pd.DataFrame({"query": query_ids}),
        target=answers,
        kind="items",
        modality="frame",
        group=np.array(query_ids, dtype=object),
        about=spec.about,
    )


ASKED: dict[str, Callable[[Corpus, DataSpec], Dataset]] = {
    "column-types": ask_types,
    "table-classes": ask_classes,
    "column-joins": ask_joins,
    "captions": ask_captions,
}
LAYOUTS: dict[str, Callable[[Path, DataSpec], Corpus]] = {"plain": read_plain, "sm": read_sm}
