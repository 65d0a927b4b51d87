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
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import QUERY, Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import file_in, read_encoded, read_frame, read_text
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
    documents: pd.DataFrame | pd.Series | Mapping[Any, str],
    queries: pd.DataFrame | pd.Series | Mapping[Any, str],
    judgments: pd.DataFrame,
    *,
    name: str = "corpus",
    passages: int | None = None,
    overlap: int = 0,
    about: Mapping[str, str] | None = None,
) -> Dataset:
    """Return the retrieval questions of a corpus.

    ``documents`` and ``queries`` have the columns ``id`` and ``text``, documents also ``title``,
    or map ids to texts. ``judgments`` has ``query``, ``document`` and, if it is graded,
    ``relevance``. Empty texts, judgments of unknown documents and queries without a relevant
    document are left out, with a warning that counts them.
    """
    notes = _Notes(name)
    texts = _texts(documents, notes, "documents")
    asked = _texts(queries, notes, "queries")
    pairs = _judged_pairs(judgments, texts, asked, notes)
    items, owners = _passages(texts, passages, overlap, name)
    if passages is None:
        sizes = texts.str.count(_WORD.pattern)
        what = f"with more than {LONG} words, which many encoders cut off; set passages"
        notes.add(texts.index[sizes > LONG], "document", what)
    notes.warn()
    asked = asked[asked.index.isin(pairs["query"])]
    asked.index = [f"{QUERY} {key}" for key in asked.index]
    keys = f"{QUERY} " + pairs["query"].astype(object)
    graded = not (pairs["relevance"] == 1).all()
    return Dataset(
        name,
        pd.concat([asked, items]),
        pd.DataFrame({QUERY: keys.to_numpy()}),
        pairs["document"].to_numpy(dtype=object),
        "items",
        "text",
        group=keys.to_numpy(dtype=object),
        about={**(about or {}), **_found(texts, asked, pairs)},
        roles=(QUERY,),
        gain=pairs["relevance"].to_numpy(dtype=float) if graded else None,
        passage_of=None if passages is None else np.concatenate([asked.index, owners]),
    )


def _found(texts: pd.Series, asked: pd.Series, pairs: pd.DataFrame) -> dict[str, str]:
    relevant = int((pairs["relevance"] > 0).sum())
    return {
        "found": f"{len(texts):,} documents, {len(asked):,} queries with a relevant document, "
        f"{len(pairs):,} judgments ({relevant:,} relevant)"
    }


def _texts(given: Any, notes: _Notes, what: str) -> pd.Series:
    """Return texts by id, with titles before them; empty ones are left out."""
    name = notes.name
    if isinstance(given, Mapping):
        given = pd.Series(dict(given), dtype=object)
    if isinstance(given, pd.DataFrame):
        for column in ("id", "text"):
            if column not in given.columns:
                known = ", ".join(map(str, given.columns))
                raise DataError(f'{name}: {what} have no column "{column}"; they have: {known}.')
        titles = given["title"] if "title" in given.columns else [""] * len(given)
        joined = [f"{_plain(a)} {_plain(b)}" for a, b in zip(titles, given["text"], strict=True)]
        given = pd.Series(joined, given["id"].to_numpy(), dtype=object)
    texts = pd.Series([_plain(text) for text in given], [str(key) for key in given.index])
    if not texts.index.is_unique:
        twice = texts.index[texts.index.duplicated()][0]
        raise DataError(f'{name}: duplicate id "{twice}" in the {what}.')
    texts = pd.Series([text.strip() for text in texts], texts.index, dtype=object)
    notes.add(texts.index[texts == ""], f"empty {_SINGULAR[what]}", "left out")
    if not (texts != "").any():
        raise DataError(f"{name}: the corpus has no {what}.")
    return texts[texts != ""]


def _plain(text: Any) -> str:
    return "" if text is None or (isinstance(text, float) and np.isnan(text)) else str(text)


def _judged_pairs(
    given: pd.DataFrame, texts: pd.Series, asked: pd.Series, notes: _Notes
) -> pd.DataFrame:
    """Return the judgments of known queries and documents, of queries with a relevant one."""
    name = notes.name
    for column in ("query", "document"):
        if column not in given.columns:
            known = ", ".join(map(str, given.columns))
            raise DataError(f'{name}: the judgments have no column "{column}"; they have: {known}.')
    pairs = pd.DataFrame({key: given[key].astype(str) for key in ("query", "document")})
    grades = given["relevance"] if "relevance" in given.columns else pd.Series(1.0, given.index)
    pairs["relevance"] = pd.to_numeric(grades, errors="coerce").to_numpy(dtype=float)
    if pairs["relevance"].isna().any():
        row = int(np.argmax(pairs["relevance"].isna()))
        raise DataError(
            f"{name}: relevance must be a number, got {grades.iloc[row]!r} (judgment {row + 1})."
        )
    pairs["relevance"] = pairs["relevance"].clip(lower=0)  # TREC marks spam with -1 and -2
    unknown = pairs["query"][~pairs["query"].isin(asked.index)].unique()
    notes.add(unknown, "judged query", "not among the queries")
    pairs = pairs[pairs["query"].isin(asked.index)]
    lost = pairs["document"][~pairs["document"].isin(texts.index)].unique()
    notes.add(lost, "judged document", "not in the corpus")
    pairs = pairs[pairs["document"].isin(texts.index)]
    twice = pairs.duplicated(["query", "document"])
    notes.add(pairs["query"][twice].to_list(), "judgment", "repeated; the last one counts")
    pairs = pairs.drop_duplicates(["query", "document"], keep="last")
    answered = pairs["query"][pairs["relevance"] > 0].unique()
    unanswered = asked.index[~asked.index.isin(answered)]
    notes.add(unanswered, "query", "without a relevant document, not scored")
    if not len(answered):
        hint = did_you_mean(str(lost[0]), texts.index[:1000]) if len(lost) else ""
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

    ``passages`` splits documents into passages of so many words, of which ``overlap`` are shared;
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
    return corpus_dataset(
        documents,
        queries,
        judgments,
        name=spec.name,
        passages=words,
        overlap=spec.integer("overlap", 0, 0),
        about=spec.about,
    )


Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


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
    found = sorted(inside.glob("*.tsv")) if inside.is_dir() else []
    found += [path for name in ("qrels.tsv", "qrels.txt") if (path := folder / name).is_file()]
    named = {path.stem: path for path in found}
    if wanted is not None and str(wanted) not in named:
        hint = did_you_mean(str(wanted), named)
        known = ", ".join(named) or "none"
        raise DataError(f'{folder}: no judgments "{wanted}".{hint} Available: {known}.')
    chosen = str(wanted) if wanted is not None else "test" if "test" in named else ""
    if not chosen and len(found) != 1:
        which = "none" if not found else f"several ({', '.join(named)}); set the option split"
        raise DataError(f"{folder}: expected one file of judgments in qrels, found {which}.")
    return named[chosen] if chosen else found[0]


def _read_qrels(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return judgments: BEIR's three columns with a header, or TREC's four without."""
    rows = [line.split() for line in read_encoded(path, spec).splitlines() if line.strip()]
    if rows and rows[0][0].lower().replace("_", "-") in ("query-id", "qid", "query"):
        rows = rows[1:]
    for number, row in enumerate(rows, start=1):
        if len(row) not in (3, 4) or len(row) != len(rows[0]):
            raise DataError(
                f"{path}: judgment {number} has {len(row)} columns; expected query, document and "
                f"relevance, or the four columns of TREC."
            )
    if not rows:
        raise DataError(f"{path} has no judgments.")
    places = (0, 1, 2) if len(rows[0]) == 3 else (0, 2, 3)
    columns = ("query", "document", "relevance")
    return pd.DataFrame({c: [row[i] for row in rows] for c, i in zip(columns, places, strict=True)})


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
    codes, asked = pd.factorize(table[question].astype(str))
    queries = pd.DataFrame({"id": np.arange(1, len(asked) + 1).astype(str), "text": asked})
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
    found = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".tsv"))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(
            f"{folder} has several tables ({names}); set the option questions to the one with "
            f"the questions."
        )
    return found[0]


def _column(table: pd.DataFrame, names: Sequence[str], path: Path) -> str:
    lowered = {str(name).strip().lower(): str(name) for name in table.columns}
    for name in names:
        if name in lowered:
            return lowered[name]
    known = ", ".join(map(str, table.columns))
    raise DataError(f"{path}: expected a column named {' or '.join(names)}; it has: {known}.")


def _document(cell: str, names: Sequence[str]) -> str:
    """Return the document that a cell names: its path, or its file name if that is unique."""
    wanted = Path(cell.strip()).as_posix().removeprefix("./")
    if wanted in names:
        return wanted
    ends = [name for name in names if name.rpartition("/")[2] in (wanted, *_suffixed(wanted))]
    return ends[0] if len(ends) == 1 else wanted


def _suffixed(name: str) -> Iterator[str]:
    for suffix in TEXT_SUFFIXES:
        yield name + suffix
