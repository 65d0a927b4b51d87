"""Corpora for retrieval: documents, queries, and judgments of which document answers which query.

The reader "corpus" reads two kinds of folders: BEIR's files (``corpus.jsonl``, ``queries.jsonl``
and ``qrels``), and text files with a table of questions and the files that answer them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.core.dataset import QUERY, Dataset
from karat.core.numbers import parse_number
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    file_in,
    read_encoded,
    read_frame,
    read_text,
)
from karat.errors import DataError, DefinitionError, did_you_mean

#: suffixes of the documents of a folder
TEXT_SUFFIXES = (".md", ".markdown", ".txt", ".rst")
#: names of the columns of a table of questions, in the order of preference
QUESTION = ("question", "query", "text")
ANSWER = ("file", "document", "expected", "answer", "path", "source")
GRADE = ("relevance", "grade", "score", "gain")
#: a document with more words is longer than what most encoders read
LONG = 400
_WORD = re.compile(r"\S+")
_SINGULAR = {"documents": "document", "queries": "query"}
_OPTIONS = ("split", "passages", "overlap", "titles", "questions", "encoding")
#: texts by id, or a table of texts
Texts: TypeAlias = Mapping[str, str] | pd.DataFrame | pd.Series
Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


@dataclass
class _Notes:
    """Counted notes about a corpus, each with its first example."""

    name: str
    lines: list[str] = field(default_factory=list)

    def add(self, ids: Sequence[Any], noun: str, what: str) -> None:
        """Add a note if it applies to any id."""
        if len(ids):
            nouns = noun if len(ids) == 1 else f"{noun[:-1]}ies" if noun[-1] == "y" else f"{noun}s"
            self.lines.append(f'{len(ids):,} {nouns} {what} (first: "{str(ids[0])[:60]}")')

    def warn(self) -> None:
        """Warn with all notes in one message."""
        if self.lines:
            warnings.warn(f"{self.name}: {'; '.join(self.lines)}.", stacklevel=3)


def corpus_dataset(
    documents: Texts,
    queries: Texts,
    judgments: pd.DataFrame,
    name: str,
    facts: Mapping[str, str] | None,
    passages: int | None,
    overlap: int,
) -> Dataset:
    """Return the retrieval questions of a corpus, as ``Dataset.from_corpus`` documents.

    Empty texts, judgments of unknown documents and queries without a relevant document are left
    out, with a warning that counts them.
    """
    notes = _Notes(name)
    texts = _texts(documents, notes, "documents")
    query_texts = _texts(queries, notes, "queries")
    pairs = _judged_pairs(judgments, texts, query_texts, notes)
    items, owners = _passages(texts, passages, overlap, name)
    if passages is None:
        sizes = texts.str.count(_WORD.pattern)
        what = f"with more than {LONG} words, which many encoders cut off; set passages"
        notes.add(texts.index[sizes > LONG], "document", what)
    notes.warn()
    query_texts = query_texts[query_texts.index.isin(pairs["query"])]
    query_texts.index = [f"{QUERY} {key}" for key in query_texts.index]
    keys = f"{QUERY} " + pairs["query"].astype(object)
    graded = not (pairs["relevance"] == 1).all()
    return Dataset(
        name=name,
        items=pd.concat([query_texts, items]),
        questions=pd.DataFrame({QUERY: keys.to_numpy()}),
        target=pairs["document"].to_numpy(dtype=object),
        kind="items",
        modality="text",
        group=keys.to_numpy(dtype=object),
        about={**(facts or {}), **_found(texts, query_texts, pairs)},
        roles=(QUERY,),
        gain=pairs["relevance"].to_numpy(dtype=float) if graded else None,
        passage_of=None if passages is None else np.concatenate([query_texts.index, owners]),
    )


def _found(texts: pd.Series, query_texts: pd.Series, pairs: pd.DataFrame) -> dict[str, str]:
    relevant = int((pairs["relevance"] > 0).sum())
    return {
        "found": f"{len(texts):,} documents, {len(query_texts):,} queries with a relevant "
        f"document, {len(pairs):,} judgments ({relevant:,} relevant)"
    }


def _texts(table: Texts, notes: _Notes, what: str) -> pd.Series:
    """Return texts by id, with titles before them; empty ones are left out."""
    name = notes.name
    if isinstance(table, Mapping):
        table = pd.Series(dict(table), dtype=object)
    if isinstance(table, pd.DataFrame):
        for column in ("id", "text"):
            if column not in table.columns:
                columns = ", ".join(map(str, table.columns))
                raise DataError(f'{name}: {what} have no column "{column}"; they have: {columns}.')
        titles = table["title"] if "title" in table.columns else [""] * len(table)
        joined = [f"{_plain(a)} {_plain(b)}" for a, b in zip(titles, table["text"], strict=True)]
        table = pd.Series(joined, table["id"].to_numpy(), dtype=object)
    texts = pd.Series([_plain(text) for text in table], [str(key) for key in table.index])
    if not texts.index.is_unique:
        twice = texts.index[texts.index.duplicated()][0]
        raise DataError(f'{name}: duplicate id "{twice}" in the {what}.')
    texts = pd.Series([text.strip() for text in texts], texts.index, dtype=object)
    notes.add(texts.index[texts == ""], f"empty {_SINGULAR[what]}", "left out")
    if not (texts != "").any():
        raise DataError(f"{name}: the corpus has no {what}.")
    return texts[texts != ""]


def _plain(text: object) -> str:
    return "" if text is None or (isinstance(text, float) and np.isnan(text)) else str(text)


def _judged_pairs(
    table: pd.DataFrame, texts: pd.Series, queries: pd.Series, notes: _Notes
) -> pd.DataFrame:
    """Return the judgments of known queries and documents, of queries with a relevant one."""
    name = notes.name
    for column in ("query", "document"):
        if column not in table.columns:
            names = ", ".join(map(str, table.columns))
            raise DataError(f'{name}: the judgments have no column "{column}"; they have: {names}.')
    pairs = pd.DataFrame({key: table[key].astype(str) for key in ("query", "document")})
    grades = table["relevance"] if "relevance" in table.columns else pd.Series(1.0, table.index)
    pairs["relevance"] = pd.to_numeric(grades, errors="coerce").to_numpy(dtype=float)
    if (wrong := ~np.isfinite(pairs["relevance"])).any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{name}: relevance must be a number, got {grades.iloc[row]!r} (judgment {row + 1})."
        )
    pairs["relevance"] = pairs["relevance"].clip(lower=0)  # TREC marks spam with -1 and -2
    unknown = pairs["query"][~pairs["query"].isin(queries.index)].unique()
    notes.add(unknown, "judged query", "not among the queries")
    pairs = pairs[pairs["query"].isin(queries.index)]
    absent = pairs["document"][~pairs["document"].isin(texts.index)].unique()
    notes.add(absent, "judged document", "not in the corpus")
    pairs = pairs[pairs["document"].isin(texts.index)]
    twice = pairs.duplicated(["query", "document"])
    notes.add(pairs["query"][twice].to_list(), "judgment", "repeated; the last one counts")
    pairs = pairs.drop_duplicates(["query", "document"], keep="last")
    answered = pairs["query"][pairs["relevance"] > 0].unique()
    unanswered = queries.index[~queries.index.isin(answered)]
    notes.add(unanswered, "query", "without a relevant document, not scored")
    if not len(answered):
        hint = did_you_mean(str(absent[0]), texts.index[:1000]) if len(absent) else ""
        raise DataError(f"{name}: no query has a relevant document in the corpus.{hint}")
    return pairs[pairs["query"].isin(answered)].reset_index(drop=True)


def _passages(
    texts: pd.Series, size: int | None, overlap: int, name: str
) -> tuple[pd.Series, np.ndarray]:
    """Return the passages of documents, and the document of each.

    >>> items, owners = _passages(pd.Series({"d": "a b c d e"}), 2, 0, "c")
    >>> items.to_dict(), owners.tolist()
    ({'d': 'a b', 'd, passage 2': 'c d', 'd, passage 3': 'e'}, ['d', 'd', 'd'])
    """
    if size is None:
        return texts, texts.index.to_numpy(dtype=object)
    if size < 1 or not 0 <= overlap < size:
        raise DefinitionError(
            f"{name}: passages must be >= 1 word and overlap below it, got {size} and {overlap}."
        )
    names, parts, owners = [], [], []
    for key, text in texts.items():
        for number, part in enumerate(_windows(str(text), size, overlap), start=1):
            names.append(key if number == 1 else f"{key}, passage {number}")
            parts.append(part)
            owners.append(key)
    return pd.Series(parts, names, dtype=object), np.array(owners, dtype=object)


def _windows(text: str, size: int, overlap: int) -> Iterator[str]:
    """Yield pieces of at most ``size`` words that cover the text."""
    spans = [match.span() for match in _WORD.finditer(text)]
    for begin in range(0, max(1, len(spans) - overlap), size - overlap):
        chosen = spans[begin : begin + size]
        yield text[chosen[0][0] : chosen[-1][1]]


# -- files ----------------------------------------------------------------------------------


def corpus_layout(folder: Path) -> str:
    """Return "beir" or "files", the kind of corpus in a folder; empty if it is none."""
    if not folder.is_dir():
        return ""
    if any((folder / f"corpus.jsonl{end}").is_file() for end in ("", ".gz")):
        return "beir"
    tables = [path for path in folder.iterdir() if path.suffix in (".csv", ".tsv")]
    return "files" if tables and next(_text_files(folder), None) is not None else ""


@reader("corpus")
def read_corpus(files: Files, spec: DataSpec) -> Dataset:
    """Return the retrieval questions of a folder with documents, queries and judgments.

    BEIR: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``; the option ``split`` names
    another file of ``qrels``. Text files (Markdown, .txt) in the folder and its subfolders: the
    option ``questions`` names the table with the columns ``question``, ``file`` and, if it is
    graded, ``relevance``; default: the only one. The id of a document is its path.

    ``passages`` splits documents into passages of this many words, of which ``overlap`` are shared;
    a document has the score of its best passage. ``titles: drop`` leaves titles out.
    """
    spec.check_options(*_OPTIONS)
    if not isinstance(files, Path) or not files.is_dir():
        raise DataError(f"{spec.name}: a corpus is a folder, got {files}.")
    layout = corpus_layout(files)
    if not layout:
        raise DataError(
            f"{files} is not a corpus: expected corpus.jsonl, queries.jsonl and qrels, or "
            f"text files ({', '.join(TEXT_SUFFIXES)}) with a table of questions and files (.csv)."
        )
    read = _read_beir if layout == "beir" else _read_files
    documents, queries, judgments = read(files, spec)
    if spec.choice("titles", "join", "drop") == "drop":
        documents = documents.drop(columns="title", errors="ignore")
    words = spec.integer("passages", 0, 0) or None
    overlap = spec.integer("overlap", 0, 0)
    return corpus_dataset(
        documents,
        queries=queries,
        judgments=judgments,
        name=spec.name,
        facts=spec.about,
        passages=words,
        overlap=overlap,
    )


def _read_beir(folder: Path, spec: DataSpec) -> Tables:
    documents = _json_lines(folder, "corpus.jsonl", spec)
    queries = _json_lines(folder, "queries.jsonl", spec)
    return documents, queries, _read_qrels(_qrels_file(folder, spec), spec)


def _json_lines(folder: Path, name: str, spec: DataSpec) -> pd.DataFrame:
    packed = folder / f"{name}.gz"
    path = packed if packed.is_file() else file_in(folder, name)
    frame = read_frame(path, DataSpec(spec.name), ["_id", "id", "title", "text"])
    frame = frame.rename(columns={"_id": "id"})
    for column in ("id", "text"):
        if column not in frame.columns:
            raise DataError(f'{path}: there is no "{"_id" if column == "id" else column}".')
    return frame


def _qrels_file(folder: Path, spec: DataSpec) -> Path:
    """Return the file of judgments: that of the option ``split``, "test", or the only one."""
    wanted = spec.options.get("split")
    inside = folder / "qrels"
    files = sorted(inside.glob("*.tsv")) if inside.is_dir() else []
    files += [path for name in ("qrels.tsv", "qrels.txt") if (path := folder / name).is_file()]
    named = {path.stem: path for path in files}
    if wanted is not None and str(wanted) not in named:
        hint = did_you_mean(str(wanted), named)
        names = ", ".join(named) or "none"
        raise DataError(f'{folder}: no judgments "{wanted}".{hint} Available: {names}.')
    chosen = str(wanted) if wanted is not None else "test" if "test" in named else ""
    if not chosen and len(files) != 1:
        which = "none" if not files else f"several ({', '.join(named)}); set the option split"
        raise DataError(f"{folder}: expected one file of judgments in qrels, found {which}.")
    return named[chosen] if chosen else files[0]


def _read_qrels(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return judgments: BEIR's three columns with a header, or TREC's four without.

    Lines with tabs are split at tabs only, so that ids may contain blanks.
    """
    numbered = enumerate(read_encoded(path, spec).split("\n"), start=1)
    lines = [(number, line.rstrip("\r")) for number, line in numbered if line.strip()]
    tabs = any("\t" in line for _, line in lines)
    rows = [(n, _tab_cells(line) if tabs else line.split()) for n, line in lines]
    header = bool(rows) and rows[0][1][0].lower().replace("_", "-") in ("query-id", "qid", "query")
    width = len(rows[0][1]) if rows else 0
    rows = rows[1:] if header else rows
    for number, cells in rows:
        if len(cells) not in (3, 4) or len(cells) != width:
            hint = "" if tabs else " Separate ids that contain blanks by tabs."
            raise DataError(
                f"{path}, line {number}: {len(cells)} columns; expected query, document and "
                f"relevance, or the four columns of TREC.{hint}"
            )
    if not rows:
        raise DataError(f"{path} has no judgments.")
    query, document, grade = (0, 1, 2) if width == 3 else (0, 2, 3)
    return pd.DataFrame(
        {
            "query": [cells[query] for _, cells in rows],
            "document": [cells[document] for _, cells in rows],
            "relevance": [parse_number(cells[grade], f"{path}, line {n}") for n, cells in rows],
        }
    )


def _tab_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("\t ").split("\t")]


def _text_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in TEXT_SUFFIXES and path.is_file() and not hidden:
            yield path


def _read_files(folder: Path, spec: DataSpec) -> Tables:
    paths = list(_text_files(folder))
    names = [path.relative_to(folder).as_posix() for path in paths]
    texts = [read_text(path) for path in paths]
    documents = pd.DataFrame({"id": names, "text": texts})
    path = _questions_file(folder, spec)
    table = read_frame(path, DataSpec(spec.name, infer=True), [*QUESTION, *ANSWER])
    question, answer = _column(table, QUESTION, path), _column(table, ANSWER, path)
    table = table[table[question].notna()]
    if not table[answer].notna().any():
        raise DataError(f"{path} has no question with a file.")
    # a question without a file is a query without a judgment
    codes, distinct = pd.factorize(table[question].astype(str))
    queries = pd.DataFrame({"id": np.arange(1, len(distinct) + 1).astype(str), "text": distinct})
    codes, cells = codes[table[answer].notna()], table[table[answer].notna()]
    pairs = {
        "query": (codes + 1).astype(str),
        "document": [_document(str(cell), names) for cell in cells[answer]],
    }
    grade = next((name for name in GRADE if name in table.columns), None)
    judgments = pd.DataFrame(pairs, index=cells.index)
    return documents, queries, judgments.assign(**{} if not grade else {"relevance": table[grade]})


def _questions_file(folder: Path, spec: DataSpec) -> Path:
    if spec.options.get("questions"):
        return file_in(folder, spec.options["questions"])
    tables = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".tsv"))
    if len(tables) > 1:
        names = ", ".join(path.name for path in tables)
        raise DataError(
            f"{folder} has several tables ({names}); set the option questions to the one with "
            f"the questions."
        )
    return tables[0]


def _column(table: pd.DataFrame, names: Sequence[str], path: Path) -> str:
    lowered = {str(name).strip().lower(): str(name) for name in table.columns}
    for name in names:
        if name in lowered:
            return lowered[name]
    available = ", ".join(map(str, table.columns))
    raise DataError(f"{path}: expected a column named {' or '.join(names)}; it has: {available}.")


def _document(cell: str, names: Sequence[str]) -> str:
    """Return the document that a cell names: its path, or its file name if that is unique."""
    wanted = Path(cell.strip()).as_posix().removeprefix("./")
    if wanted in names:
        return wanted
    files = [wanted, *(wanted + suffix for suffix in TEXT_SUFFIXES)]
    ends = [name for name in names if name.rpartition("/")[2] in files]
    return ends[0] if len(ends) == 1 else wanted
