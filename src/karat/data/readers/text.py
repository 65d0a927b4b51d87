"""Readers of texts and records.

"columns" of a table, "folders" named after the classes, "pieces" (several files, with classes
derived from their columns), "tagged" texts whose tags are retrieved or ranked, and "translations",
a gettext file in which each translation asks for its original; for record linkage, "duplicates" in
one table and "linkage" of two tables.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
    ask_rows,
    file_in,
    need_target,
    one_file,
    read_bytes,
    read_frame,
    read_parts,
    read_text,
    without_target,
)
from karat.errors import DataError, DefinitionError

#: the name of the column of groups
TOGETHER = "related texts"
OWN = ("train", "test", "file", "answers", "key", "keep", "classes", "one_of", "together")
#: the classes of a pair; the last one is the positive class
ANSWERS = ("other", "own")
_KEYWORD = r"(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?"
_LINE = re.compile(_KEYWORD + r'\s*("(?:[^"\\]|\\.)*")')
_MARKUP = re.compile(r"[%<{]")
#: the classes of a pair; the last one is the positive class
RECORD_ANSWERS = ("no match", "match")
OF_TWO = ("left", "right", "id", "matches", "keys", "match")
#: every row needs an id, so rows without a target cannot be dropped
OF_ROWS = tuple(option for option in OPTIONS if option != "unanswered")
#: more matching pairs than this mean that the column holds classes, not entities
MAX_PAIRS = 5_000_000


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


@reader("translations")
def read_translations(files: Files, spec: DataSpec) -> Dataset:
    """Return each translation of a ``.po`` file as a query whose target is the original.

    The files of a folder and its subfolders are read in the order of their paths. Options:
    ``words`` is the minimum number of words of an original (1), and ``plain: true`` skips messages
    with markup or placeholders, which both sides share. Of plural forms the singular is used.
    Untranslated and fuzzy messages, and translations equal to any original, are skipped. With
    ``unique: true`` each query has one right answer: texts that differ only in case, spaces and
    final punctuation are the same; of several translations of an original the first counts, and
    translations of several originals are skipped.
    """
    spec.check_options("words", "plain", "unique")
    least = spec.integer("words", 1, 1)
    path = one_file(files, spec)
    plain = bool(spec.options.get("plain"))
    messages = []
    for texts in _messages(path):
        original = texts.get("msgid", "").strip()
        translation = texts.get("msgstr", texts.get("msgstr[0]", "")).strip()
        marked = plain and _MARKUP.search(original + translation)
        if original and translation and len(original.split()) >= least and not marked:
            messages.append((original, translation))
    pairs = pd.DataFrame(messages, columns=["original", "translation"]).drop_duplicates()
    pairs = pairs[~pairs["translation"].isin(pairs["original"])]
    pairs = _one_to_one(pairs) if spec.options.get("unique") else pairs
    if len(pairs) < 2:
        raise DataError(f"{path}: at least two translated messages are needed, got {len(pairs)}.")
    return Dataset.from_columns(
        pairs, ["translation"], "original", name=spec.name, kind="items", about=spec.about
    )


def _one_to_one(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of which neither text occurs in another one; see the option ``unique``."""
    keys = pairs.map(lambda text: " ".join(text.casefold().split()).rstrip(" .:!?…。"))
    pairs = pairs[(keys["translation"] != keys["original"]) & ~keys["original"].duplicated()]
    return pairs[~keys["translation"].loc[pairs.index].duplicated(keep=False)]


def _messages(path: Path) -> Iterator[dict[str, str]]:
    """Yield the texts of each message of a file, or of all ``.po`` files of a folder."""
    files = sorted(path.rglob("*.po")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} has no gettext file (.po).")
    for file in files:
        for block in re.split(r"\n\s*\n", read_text(file)):
            yield _message(block, file)


def _message(block: str, path: Path) -> dict[str, str]:
    """Return the texts of one message by keyword; none if it is fuzzy."""
    texts: dict[str, str] = {}
    keyword = ""
    for line in map(str.strip, block.splitlines()):
        if line.startswith("#"):
            if line.startswith("#,") and "fuzzy" in line:
                return {}
            continue
        match = _LINE.fullmatch(line)
        if match is None or not (match[1] or keyword):
            if not line:
                continue
            raise DataError(f"{path} is not a gettext file (.po): unexpected line {line[:60]!r}.")
        keyword = match[1] or keyword
        try:
            texts[keyword] = texts.get(keyword, "") + str(ast.literal_eval(match[2]))
        except (SyntaxError, ValueError) as error:
            raise DataError(f"{path} has an invalid string: {match[2][:60]}.") from error
    return texts


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
    left, right = matches["left"].to_numpy(), matches["right"].to_numpy() + tables.begin
    left, right = left[left != right], right[left != right]
    # left rows without a match are neither queries nor candidates
    used = np.arange(len(tables.items)) >= tables.begin
    used[left] = True
    ids = tables.items.index
    questions, answers = pd.DataFrame({"query": ids[left]}), ids[right].to_numpy()
    return Dataset(
        name=spec.name,
        items=tables.items[used],
        questions=questions,
        target=answers,
        kind="items",
        modality="table",
        group=tables.group[left],
        about=spec.about,
    )


def _duplicates(tables: _Tables, spec: DataSpec) -> Dataset:
    """Return one question per row; its class is the connected component of matching rows."""
    matches = tables.pairs[tables.pairs["same"]]
    left, right = matches["left"].to_numpy(), matches["right"].to_numpy() + tables.begin
    entities = connected_nodes(left, right, len(tables.items)).astype(str).astype(object)
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


def _same_entities(left: pd.Series, right: pd.Series, where: str) -> pd.DataFrame:
    """Return the positions of all pairs of rows of the same entity, in order."""
    count = int((left.value_counts() * right.value_counts()).sum())
    if count > MAX_PAIRS:
        raise DataError(
            f"{where} gives {count} matching pairs, more than {MAX_PAIRS}: it holds classes, "
            f"not entities."
        )
    sides = [
        pd.DataFrame({"entity": entities.to_numpy(), side: np.arange(len(entities))})
        for side, entities in (("left", left), ("right", right))
    ]
    pairs = sides[0].merge(sides[1], on="entity").drop(columns="entity")
    return pairs.sort_values(["left", "right"], ignore_index=True)


def _features(left: pd.DataFrame, right: pd.DataFrame, key: str, spec: DataSpec) -> list[str]:
    require_columns(left, [*spec.drop, *spec.fields], spec.name)
    columns = [c for c in spec.fields or left.columns if c not in (key, *spec.drop)]
    both = [column for column in columns if column in right.columns]
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
    left, right = frames["left"], frames["right"]
    if "matches" in spec.options:
        pairs = _listed(file_in(folder, spec.options["matches"]), spec, (left[key], right[key]))
    else:
        _required(spec, "entity")
        entities = [_entities(frame[key], spec, sides[side]) for side, frame in frames.items()]
        pairs = _same_entities(entities[0], entities[1], f"{folder}: {key}").assign(same=True)
    if not pairs["same"].any():
        raise DataError(f"{spec.name}: no row of {sides['left']} has a match.")
    columns = _features(left, right, key, spec)
    items = pd.concat([left[columns], right[columns]], ignore_index=True)
    items.index = pd.Index([f"{side}:{i}" for side, frame in frames.items() for i in frame[key]])
    return _Tables(
        items=items, begin=len(left), group=left[key].to_numpy(), pairs=pairs, taken=pairs
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
