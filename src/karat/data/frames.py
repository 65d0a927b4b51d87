"""From a file to a data frame: CSV, TSV, Parquet, Feather, ARFF and JSON, with clear complaints."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from karat.columns import need_columns
from karat.data.arff import parse_arff
from karat.data.load import DataSpec, Files
from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SUFFIXES = (*SEPARATORS, ".parquet", ".feather", ".arff", ".dat", ".json", ".jsonl", ".ndjson")
OPTIONS = (
    "separator",
    "encoding",
    "names",
    "header",
    "quoting",
    "rows_from",
    "missing",
    "thousands",
    "strip",
    "texts",
    "labels",
    "unanswered",
)
# What people write for "no number here"; in a column of labels these are labels.
NO_NUMBER = ("NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A")


def read_frame(path: Path, spec: DataSpec, texts: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a file; the columns ``texts`` keep their cells as they are written.

    The answers keep theirs too when they are classes, so that the label ``"NA"`` survives. An
    empty cell is missing everywhere.
    """
    path = Path(path)
    suffix = _suffix(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    if "separator" in spec.options or suffix in SEPARATORS:
        frame = _read_delimited(path, spec, texts)
    elif suffix in (".parquet", ".feather"):
        frame = _unmarked(_read_arrow(path, suffix), spec)
    elif suffix in (".arff", ".dat"):
        frame = parse_arff(_text(path, spec), str(path))
    elif suffix in (".json", ".jsonl", ".ndjson"):
        frame = _read_json(_text(path, spec), path, lines=suffix != ".json")
    else:
        raise DataError(
            f'{path}: the ending "{suffix}" is not known.{did_you_mean(suffix, SUFFIXES)} '
            f'Known: {", ".join(SUFFIXES)} (and .gz, .bz2, .xz); or give the option "separator".'
        )
    return _with_answers(frame, spec, path)


def read_parts(
    files: Files, spec: DataSpec, read: Callable[[Path], pd.DataFrame]
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table of one file, or of train and test below each other; the spec knows both."""
    if isinstance(files, Path):
        return read(files), spec
    column = spec.part or "part"
    frames = {part: read(path) for part, path in files.items()}
    train, test = frames["train"], frames["test"]
    for one, other, path in ((train, test, files["test"]), (test, train, files["train"])):
        for lost in [name for name in one.columns if name not in other.columns][:1]:
            raise DataError(f'{path} has no column "{lost}"; train and test need the same ones.')
    if column in train.columns:
        raise DataError(f'{spec.name}: the files have a column "{column}" already; set "part".')
    parts = [frame.assign(**{column: part}) for part, frame in frames.items()]
    return pd.concat(parts, ignore_index=True), replace(spec, part=column)


# -- bytes and text -------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    # ".parquet.brotli" names the compression inside the file, which is plain Parquet outside
    if suffixes and (suffixes[-1] in OPENERS or suffixes[-2:] == [".parquet", ".brotli"]):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed; a broken one is a DataError."""
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            return bytes(file.read())
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _text(path: Path, spec: DataSpec) -> str:
    return _decoded(read_bytes(path), path, spec)


def _decoded(content: bytes, path: Path, spec: DataSpec) -> str:
    """Return the text of a file; empty, binary and wrongly encoded ones are refused."""
    encoding = spec.options.get("encoding")
    if not content.strip():
        raise DataError(f"{path} is empty.")
    if b"\0" in content[:8192] and not encoding:
        raise DataError(f'{path} is not a text file (if it is UTF-16: "encoding: utf-16").')
    try:
        return content.decode(encoding or "utf-8-sig")
    except LookupError:
        raise DefinitionError(f'{spec.name}: there is no encoding "{encoding}".') from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not "
            f'{encoding or "UTF-8"}; set the option "encoding", for example latin-1.'
        ) from error


# -- CSV ------------------------------------------------------------------------------------


def _read_delimited(path: Path, spec: DataSpec, texts: Sequence[str]) -> pd.DataFrame:
    content = read_bytes(path)
    _decoded(content, path, spec)
    arguments = _csv_arguments(spec, _suffix(path))
    with _complaints(path):
        if arguments["header"] is not None:
            _check_header(content, arguments, path)
        frame = pd.read_csv(BytesIO(content), index_col=False, **arguments)
    if not len(frame):
        raise DataError(f"{path} has a header and no rows.")
    if spec.options.get("strip"):
        for column in frame.select_dtypes(exclude="number").columns:
            frame[column] = _stripped(frame[column], spec)
    declared = spec.options.get("texts") or ()
    need_columns(frame, declared, spec.name)
    wanted = dict.fromkeys([*declared, *texts, *_label_columns(spec)])
    as_written = [column for column in wanted if column in frame.columns]
    if as_written:
        # pandas has one notion of "missing" for a whole file, so these are read apart.
        plain = {**arguments, "na_values": None, "na_filter": False, "dtype": str}
        raw = pd.read_csv(BytesIO(content), usecols=as_written, index_col=False, **plain)
        frame = frame.assign(**{column: _as_written(raw[column], spec) for column in as_written})
        frame = frame.assign(**{column: frame[column].infer_objects() for column in declared})
    if spec.kind is None and spec.target in frame.columns:
        frame = frame.assign(**{str(spec.target): _settled(frame[spec.target])})
    return frame


def _stripped(column: pd.Series, spec: DataSpec) -> pd.Series:
    """Return cells without blanks around them; what only then is a mark of nothing is missing."""
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in column]
    marks = set(map(str, spec.options.get("missing") or ()))
    stripped = pd.Series(cells, dtype=column.dtype)
    lost = stripped.isin(marks)
    if not lost.any():
        return stripped
    kept = stripped.mask(lost)
    said = kept.astype(object).map(str, na_action="ignore")
    thousands = spec.options.get("thousands")
    said = said.str.replace(thousands, "", regex=False) if thousands else said
    numbers = pd.to_numeric(said, errors="coerce")
    return kept if numbers.isna().sum() > kept.isna().sum() or kept.isna().all() else numbers


def _csv_arguments(spec: DataSpec, suffix: str) -> dict[str, Any]:
    options = spec.options
    separator = options.get("separator", SEPARATORS.get(suffix, ","))
    names = options.get("names")
    header = options.get("header", names is None)
    if not header and not names:
        raise DefinitionError(f'{spec.name}: a file without header needs the option "names".')
    if options.get("quoting") not in (None, "none"):
        raise DefinitionError(f'{spec.name}: the option "quoting" can only be none.')
    plain = len(separator) == 1 or separator == r"\s+"
    return {
        "sep": separator,
        "encoding": options.get("encoding") or "utf-8-sig",
        "header": 0 if header else None,
        "names": names,
        "quoting": csv.QUOTE_NONE if options.get("quoting") else csv.QUOTE_MINIMAL,
        "skiprows": int(options.get("rows_from", 1)) - 1,
        "na_values": options.get("missing"),
        "thousands": options.get("thousands"),
        "skipinitialspace": bool(options.get("strip")),
        "engine": "c" if plain else "python",
        **({"low_memory": False} if plain else {}),
    }


def _label_columns(spec: DataSpec) -> list[str]:
    columns = [spec.part] if spec.part else []
    return [*columns, spec.target] if spec.target and spec.kind != "numbers" else columns


def _as_written(column: pd.Series, spec: DataSpec) -> pd.Series:
    """Return the cells as they are written; empty ones and declared marks are None."""
    missing = {"", *map(str, spec.options.get("missing") or ())}
    strip = bool(spec.options.get("strip"))
    cells = (cell.strip() if strip else cell for cell in column.tolist())
    kept = [None if cell.strip() in missing else cell for cell in cells]
    return pd.Series(kept, index=column.index, dtype=object)


def _check_header(content: bytes, arguments: dict[str, Any], path: Path) -> None:
    """Refuse a column that stands twice: pandas would rename it without a word."""
    given = {**arguments, "header": None, "names": None, "na_values": None}
    first = pd.read_csv(BytesIO(content), nrows=1, dtype=str, keep_default_na=False, **given).iloc[
        0
    ]
    twice = first[first.duplicated() & (first != "")]
    if len(twice):
        raise DataError(f'{path}: the column "{twice.iloc[0]}" stands twice; rename one.')


@contextmanager
def _complaints(path: Path) -> Iterator[None]:
    """Turn what pandas says about a malformed file into one sentence with file and line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except pd.errors.ParserWarning as error:
        raise DataError(f"{path}: its rows have more cells than its header.") from error
    except (pd.errors.ParserError, csv.Error) as error:
        said = re.sub("^Error tokenizing data. C error: ", "", str(error)).strip()
        line = re.search(r" in line (\d+)", said)
        where = f"{path}, line {line[1]}" if line else str(path)
        raise DataError(f"{where}: {said.replace(line[0], '') if line else said}.") from error


# -- the other formats ----------------------------------------------------------------------


def _read_arrow(path: Path, suffix: str) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
    read = pd.read_parquet if suffix == ".parquet" else pd.read_feather
    try:
        return read(path)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise DataError(f"{path} cannot be read as {suffix[1:]}: {said}") from error


def _unmarked(frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    """Return the table with the declared marks of a missing cell ("?") taken as such."""
    marks = [str(mark) for mark in spec.options.get("missing") or ()]
    columns = frame.select_dtypes(exclude="number").columns if marks else ()
    return frame.assign(**{c: frame[c].mask(frame[c].isin(marks)) for c in columns})


def _read_json(text: str, path: Path, *, lines: bool) -> pd.DataFrame:
    rows = _json_lines(text, path) if lines else _json(text, path, 1)
    records = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    columns = isinstance(rows, dict) and all(isinstance(cells, list) for cells in rows.values())
    if not records and not columns:
        raise DataError(f"{path} holds neither a list of rows {{…}} nor columns {{name: […]}}.")
    try:
        return pd.DataFrame(rows)
    except ValueError as error:
        raise DataError(f"{path}: {error}.") from error


def _json_lines(text: str, path: Path) -> list[Any]:
    lines = enumerate(text.split("\n"), start=1)
    return [_json(line, path, number) for number, line in lines if line.strip()]


def _json(text: str, path: Path, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {first_line + error.lineno - 1}: {error.msg}.") from error


# -- the answers ----------------------------------------------------------------------------


def _with_answers(frame: pd.DataFrame, spec: DataSpec, path: Path) -> pd.DataFrame:
    """Return the table with answers of the declared kind: numbers are numbers, labels labels."""
    if spec.target is None or spec.target not in frame.columns:
        return frame
    answers = frame[spec.target]
    if spec.options.get("labels"):
        return frame.assign(**{spec.target: _relabelled(answers, spec, path)})
    if spec.kind == "numbers" and not pd.api.types.is_numeric_dtype(answers):
        numbers = pd.to_numeric(answers, errors="coerce")
        wrong = answers[numbers.isna() & answers.notna()]
        if len(wrong):
            raise DataError(
                f'{path}: the target "{spec.target}" should be numbers and holds '
                f'"{wrong.iloc[0]}" (row {wrong.index[0]}).'
            )
        return frame.assign(**{spec.target: numbers})
    return frame


def _relabelled(answers: pd.Series, spec: DataSpec, path: Path) -> pd.Series:
    """Return the labels under the names that the option ``labels`` gives them."""
    if spec.kind == "numbers" or not isinstance(spec.options["labels"], dict):
        raise DefinitionError(f'{spec.name}: "labels" names classes anew: {{written: name, …}}.')
    names = {str(label): str(name) for label, name in spec.options["labels"].items()}
    written = answers.map(str, na_action="ignore")
    strange = written[written.notna() & ~written.isin(list(names))]
    if len(strange):
        raise DataError(
            f'{path}: the target "{spec.target}" holds "{strange.iloc[0]}" (row '
            f'{strange.index[0]}), which "labels" does not name; it names {", ".join(names)}.'
        )
    return written.map(names)


def _settled(answers: pd.Series) -> pd.Series:
    """Return numbers when every cell that says something is one; else the labels as written."""
    says = answers.notna() & ~answers.isin(NO_NUMBER)
    numbers = pd.to_numeric(answers.where(says), errors="coerce")
    return numbers if says.any() and numbers[says].notna().all() else answers
