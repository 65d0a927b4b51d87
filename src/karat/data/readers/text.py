"""Readers of texts.

"columns" of a table, "folders" named after the classes, "pieces" (several files, with classes
derived from their columns), and "tagged" texts whose tags are retrieved or ranked.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import require_columns
from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.graph import entity_label
from karat.data.readers.table_files import (
    OPTIONS,
    ask,
    file_in,
    need_target,
    one_file,
    read_bytes,
    read_frame,
    read_parts,
    without_target,
)
from karat.errors import DataError, DefinitionError

#: the name of the column of groups
TOGETHER = "related texts"
OWN = ("train", "test", "file", "answers", "key", "keep", "classes", "one_of", "together")
#: the classes of a pair; the last one is the positive class
ANSWERS = ("other", "own")


def related(texts: pd.DataFrame) -> np.ndarray:
    """Return a group number per row; rows that share a text, also indirectly, are one group.

    >>> related(pd.DataFrame({"a": ["x", "y", "z"], "b": ["y", "v", "w"]})).tolist()
    [0, 0, 1]
    """
    rows, fields = texts.shape
    codes = pd.factorize(texts.to_numpy().ravel())[0].reshape(rows, fields)
    groups = connected_nodes(np.repeat(codes[:, 0], fields), codes.ravel(), int(codes.max()) + 1)
    return np.asarray(pd.factorize(groups[codes[:, 0]])[0])


def connected_nodes(one: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """Return the connected component of each node of a graph with edges from one to other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = (one.astype(np.int32), other.astype(np.int32))  # scipy before 1.15 takes no others
    graph = coo_array((np.ones(len(one)), edges), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1])


def keep_together(
    frame: pd.DataFrame, spec: DataSpec, fields: list[str]
) -> tuple[pd.DataFrame, DataSpec]:
    """Add the groups of related texts if the option ``together`` is set."""
    if not spec.options.get("together"):
        return frame, spec
    if spec.group:
        raise DefinitionError(f'{spec.name}: "group" and the option "together" exclude each other.')
    return frame.assign(**{TOGETHER: related(frame[fields])}), replace(spec, group=TOGETHER)


@reader("columns")
def read_columns(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the cells of some columns: texts or ids of entities."""
    spec.check_options(*OPTIONS)
    if not spec.fields:
        raise DefinitionError(f'{spec.name}: the text columns are missing; add "fields: [NAME]".')
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec, spec.fields))
    require_columns(frame, spec.fields, spec.name)
    for field in spec.fields:
        cells = [None if pd.isna(c) or not str(c).strip() else str(c) for c in frame[field]]
        frame = frame.assign(**{field: pd.Series(cells, index=frame.index, dtype=object)})
    return ask(frame, spec, entity_label if spec.modality == "entity" else None)


@reader("folders")
def read_folders(files: Files, spec: DataSpec) -> Dataset:
    """Return one text per file; the name of its folder is its class.

    The option ``first_line`` keeps only the first line of each file, such as a headline.
    """
    spec.check_options("glob", "first_line")
    pattern = str(spec.options.get("glob", "*"))
    text = spec.fields[0] if spec.fields else "text"
    target = spec.target or "class"
    frame, spec = read_parts(
        files, spec, lambda path: pd.DataFrame(_texts(path, pattern), columns=[text, target])
    )
    if spec.options.get("first_line"):
        frame[text] = [str(cell).strip().partition("\n")[0].strip() for cell in frame[text]]
    return ask(frame, replace(spec, fields=(text,), target=target, kind="classification"), None)


def _texts(folder: Path, pattern: str) -> list[tuple[str, str]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder of class folders.")
    rows = []
    for path in sorted(folder.glob(f"*/{pattern}")):
        if path.name.startswith(".") or not path.is_file():
            continue
        content = read_bytes(path)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            # Old corpora mix encodings; latin-1 decodes any byte, and is nearly always right.
            text = content.decode("latin-1")
        if not text.strip():
            raise DataError(f"{path} is empty.")
        rows.append((text, path.relative_to(folder).parts[0]))
    if not rows:
        raise DataError(f'{folder} has no file "{pattern}" in any class folder.')
    return rows


@reader("pieces")
def read_pieces(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the texts in the columns ``fields`` of one file or a folder.

    In a folder, the options ``train`` and ``test`` name the files of both parts (a list is
    concatenated), or ``file`` the only one; ``answers`` is a file with the targets, joined by the
    column ``key`` of both.

    The target is the column ``target``. ``keep`` lists the labels to use;
    ``classes: {name: [low, high]}`` bins numbers into classes; ``one_of`` lists columns and uses
    the name of the only one that is 1. Other rows are dropped. Classes are in the order of the
    list; ``{label: class}`` instead of a list renames them. ``together: true`` keeps questions
    that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    if not spec.fields:
        raise DefinitionError(f'{spec.name}: the text columns are missing; add "fields: [NAME]".')
    if isinstance(files, Path) and files.is_dir():
        frame, spec = _from_folder(files, spec)
    else:
        for option in ("train", "test", "file", "answers"):
            if option in spec.options:
                raise DefinitionError(f'{spec.name}: "{option}" requires a folder of files.')
        frame, spec = read_parts(files, spec, lambda path: read_piece(path, spec, spec.fields))
    require_columns(frame, spec.fields, spec.name)
    functions = {"keep": _keep_labels, "classes": _bin_numbers, "one_of": _one_column}
    chosen = [option for option in functions if spec.options.get(option)]
    if len(chosen) > 1:
        raise DefinitionError(f"{spec.name}: {' and '.join(chosen)} exclude each other.")
    frame, spec = functions[chosen[0]](frame, spec) if chosen else (frame, spec)
    if not len(frame):
        raise DataError(f"{spec.name}: no row has one of the requested targets.")
    frame, spec = keep_together(frame, spec, list(spec.fields))
    return ask(frame, replace(spec, modality="text"), None)


def _from_folder(folder: Path, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows of the files that the options name, and the spec for them."""
    parts = ("file",) if spec.options.get("file") else ("train", "test")
    frames = []
    for part in parts:
        named = spec.options.get(part)
        if not named:
            raise DefinitionError(
                f'{spec.name}: a folder needs the option "file", or the options "train" and "test".'
            )
        for name in named if isinstance(named, list) else [named]:
            read = read_piece(file_in(folder, name), spec, spec.fields)
            frames.append(read if part == "file" else read.assign(part=part))
    frame = pd.concat(frames, ignore_index=True)
    spec = spec if parts == ("file",) else replace(spec, part="part")
    return (join_answers(frame, folder, spec) if spec.options.get("answers") else frame), spec


def read_piece(path: Path, spec: DataSpec, texts: Sequence[str]) -> pd.DataFrame:
    """Return a table whose texts, keys and class labels are not converted."""
    keys = [str(spec.options["key"])] if spec.options.get("key") else []
    labels = [spec.target] if spec.target and spec.kind != "regression" else []
    return read_frame(path, without_target(spec), [*texts, *keys, *labels])


def join_answers(frame: pd.DataFrame, folder: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the rows with the columns of the file in the option ``answers``, by ``key``."""
    key = spec.options.get("key")
    if not key:
        raise DefinitionError(f'{spec.name}: the option "answers" needs the option "key".')
    path = file_in(folder, spec.options["answers"])
    answers = read_piece(path, spec, ())
    for where, table in ((str(folder), frame), (str(path), answers)):
        require_columns(table, [key], where)
        duplicates = table[key][table[key].duplicated()]
        if len(duplicates):
            raise DataError(f'{where}: duplicate {key} "{duplicates.iloc[0]}".')
    missing = frame[key][~frame[key].isin(answers[key])]
    if len(missing):
        raise DataError(f'{path} has no row for the {key} "{missing.iloc[0]}".')
    new = [name for name in answers.columns if name not in frame.columns]
    return frame.merge(answers[[key, *new]], on=key, how="left", validate="one_to_one")


def _keep_labels(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose label is listed; a mapping also renames the labels."""
    target, names = need_target(spec), _named(spec, "keep")
    require_columns(frame, [target], spec.name)
    answers = frame[target].map(lambda cell: names.get(str(cell)), na_action="ignore")
    return _classes(frame, answers, list(names.values()), spec)


def _bin_numbers(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose number lies within the limits (inclusive) of a class."""
    target, limits = need_target(spec), spec.options["classes"]
    if not isinstance(limits, dict):
        raise DefinitionError(f'{spec.name}: "classes" must be a mapping {{name: [low, high]}}.')
    require_columns(frame, [target], spec.name)
    numbers = pd.to_numeric(frame[target], errors="coerce").to_numpy(dtype=float)
    answers = pd.Series([None] * len(frame), index=frame.index, dtype=object)
    for name, pair in limits.items():
        if not isinstance(pair, list) or len(pair) != 2 or not pair[0] <= pair[1]:
            raise DefinitionError(f'{spec.name}: the class "{name}" needs limits: [low, high].')
        within = (numbers >= pair[0]) & (numbers <= pair[1])
        if answers[within].notna().any():
            raise DefinitionError(f'{spec.name}: the limits of "{name}" overlap another class.')
        answers[within] = str(name)
    return _classes(frame, answers, list(map(str, limits)), spec)


def _one_column(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows in which exactly one of the listed columns is 1."""
    names = _named(spec, "one_of")
    require_columns(frame, list(names), spec.name)
    marks = frame[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float) == 1
    label = np.array(list(names.values()), dtype=object)[marks.argmax(axis=1)]
    answers = pd.Series(np.where(marks.sum(axis=1) == 1, label, None), index=frame.index)
    spec = replace(spec, target=spec.target or "class")
    return _classes(frame, answers, list(names.values()), spec)


def _named(spec: DataSpec, option: str) -> dict[str, str]:
    """Return an option that is a list, or a mapping to classes, as a mapping."""
    labels = spec.options[option]
    if not isinstance(labels, list | dict):
        raise DefinitionError(
            f'{spec.name}: "{option}" must be a list or a mapping {{label: class}}, got {labels!r}.'
        )
    mapping = labels if isinstance(labels, dict) else {label: label for label in labels}
    return {str(written): str(name) for written, name in mapping.items()}


def _classes(
    frame: pd.DataFrame, answers: pd.Series, names: list[str], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows that have a class, with the classes in the given order."""
    present = answers.notna()
    labeled = frame[present].assign(**{need_target(spec): answers[present]})
    options = {**spec.options, "labels": {name: name for name in names}}
    return labeled.reset_index(drop=True), replace(spec, kind="classification", options=options)


@reader("tagged")
def read_tagged(files: Files, spec: DataSpec) -> Dataset:
    """Return each text of the single field as a query, and its tags as targets.

    The column ``target`` has a tag or, in JSON, a list of tags; the name is taken from an IRI. The
    option ``without`` lists tags to ignore. With ``ask: search`` the tags of a query are retrieved
    from all tags. With ``ask: lists`` each query has a list to rank: its own tags and ``others``
    (20) drawn from the rest with ``seed``.
    """
    spec.check_options("ask", "without", "others", "seed", *OPTIONS)
    how = spec.choice("ask", "search", "lists")
    target = need_target(spec)
    if len(spec.fields) != 1:
        raise DefinitionError(f'{spec.name}: "fields" must list one column, the text.')
    path = one_file(files, spec)
    frame = read_frame(path, without_target(spec), [spec.fields[0], target])
    require_columns(frame, [spec.fields[0], target], str(path))
    pairs = _pairs(frame, spec, path)
    if how == "lists":
        return _lists(pairs, spec)
    return Dataset.from_columns(
        pairs, ["query"], "tag", name=spec.name, kind="items", group="query", about=spec.about
    )


def _pairs(frame: pd.DataFrame, spec: DataSpec, path: Path) -> pd.DataFrame:
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


def _is_empty(cell: object) -> bool:
    return not isinstance(cell, list) and (bool(pd.isna(cell)) or not str(cell).strip())


def _lists(pairs: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return the lists, own tags first; rankings do not depend on this order."""
    others, seed = spec.integer("others", 20, 1), spec.integer("seed", 0, 0)
    rng = np.random.default_rng([seed, zlib.crc32(b"tagged lists")])
    tags = pairs["tag"].unique()
    rows = []
    for query, query_tags in pairs.groupby("query", sort=False)["tag"]:
        rest = tags[~np.isin(tags, query_tags.to_numpy())]
        if not len(rest):
            raise DataError(f'{spec.name}: "{query}" has every tag; no others can be drawn.')
        drawn = rest[np.sort(rng.choice(len(rest), min(others, len(rest)), replace=False))]
        rows += [(query, tag, ANSWERS[1]) for tag in query_tags]
        rows += [(query, tag, ANSWERS[0]) for tag in drawn]
    frame = pd.DataFrame(rows, columns=["query", "tag", "answer"])
    facts: dict[str, Any] = {"name": spec.name, "group": "query", "about": spec.about}
    data = Dataset.from_columns(frame, ["query", "tag"], "answer", kind="classification", **facts)
    return replace(data, classes=ANSWERS)
