"""Read a data frame from a CSV, TSV, Parquet, Feather, ARFF or JSON file; make it a Dataset."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import attach_target, parse_numbers, require_columns
from karat.core.dataset import Dataset
from karat.core.files import check_content, check_parquet, read_feather
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.arff import parse_arff
from karat.data.readers.long_cells import LONGEST_CELL, refuse_long_cells, refuse_long_texts
from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean, warn_caller

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: bytes decompressed at a time
PIECE = 1 << 20
SUFFIXES = (
    *SEPARATORS,
    ".parquet",
    ".pq",
    ".feather",
    ".arff",
    ".dat",
    ".json",
    ".jsonl",
    ".ndjson",
)
#: files of spreadsheet programs, which are not read
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
#: characters of a suffix from which it may be a misspelled one: .py is not .pq
SHORTEST = 3
_CSV_OPTIONS = ("separator", "encoding", "names", "header", "quoting", "rows_from", "decimal")
OPTIONS = (
    *_CSV_OPTIONS,
    "missing",
    "thousands",
    "strip",
    "texts",
    "dates",
    "labels",
    "unanswered",
)
# Missing values in a numeric column; in a column of labels these are labels.
NO_NUMBER = ("NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A")
#: number of characters from which the separator is inferred
HEAD = 100_000
#: what pyarrow and pandas raise for invalid files; pyarrow's own errors are among these
_ARROW_ERRORS = (OSError, ValueError, TypeError, LookupError, NotImplementedError, RuntimeError)
#: options of the reader "table" for a folder of files
FOLDER_OPTIONS = ("files", "answers", "key")
KINDS = {
    **dict.fromkeys(
        ("load_iris", "load_wine", "load_breast_cancer", "load_digits"), "classification"
    ),
    "load_diabetes": "regression",
}


def read_frame(path: Path, spec: DataSpec, texts: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a file; cells of the columns ``texts`` are not converted.

    Class labels are not converted either, so that the label ``"NA"`` stays. An empty cell is
    missing in every column.
    """
    path = Path(path)
    delimited = is_delimited(path, spec)
    frame = _read_delimited(path, spec, texts) if delimited else read_cells(path, spec)
    check_integers(frame, path)
    return convert_target(frame, spec, path)


def is_delimited(path: Path, spec: DataSpec) -> bool:
    """Return whether a file is text with a separator between its cells."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    return "separator" in spec.options or suffix_of(path) in SEPARATORS


def read_cells(path: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the table in a file that is not delimited text; its target is not converted."""
    suffix = suffix_of(path)
    if suffix in (".parquet", ".feather"):
        frame = _read_arrow(path, suffix)
        marks = [str(mark) for mark in spec.options.get("missing") or ()]
        for column in frame.select_dtypes(exclude="number").columns if marks else ():
            frame[column] = frame[column].mask(frame[column].isin(marks))
    elif suffix in (".arff", ".dat"):
        frame = parse_arff(read_encoded(path, spec), str(path))
    elif suffix in (".json", ".jsonl", ".ndjson"):
        frame = _read_json(read_encoded(path, spec), path, lines=suffix != ".json")
    else:
        raise DataError(
            f'{path}: unknown suffix "{suffix}".{_suffix_hint(suffix)} Supported: '
            f'{", ".join(SUFFIXES)} (and .gz, .bz2, .xz); or set the option "separator".'
        )
    return frame


def _suffix_hint(suffix: str) -> str:
    if suffix in SPREADSHEETS:
        return " Save the sheet as CSV."
    return did_you_mean(suffix, SUFFIXES) if len(suffix) > SHORTEST else ""


def check_integers(frame: pd.DataFrame, path: Path) -> None:
    """Raise a DataError for an integer that no float can represent."""
    objects = [i for i, kind in enumerate(frame.dtypes) if pd.api.types.is_object_dtype(kind)]
    for name, column in [(frame.columns[i], frame.iloc[:, i]) for i in objects]:
        if "integer" not in pd.api.types.infer_dtype(column, skipna=True):
            continue
        for row, cell in enumerate(column):
            if isinstance(cell, int) and abs(cell) > sys.float_info.max:
                raise DataError(
                    f'{path}: the column "{name}" has an integer of more than 308 digits (row '
                    f'{row}); to read the column as text, set the option "texts: [{name}]".',
                    value=str(name),
                )


def read_parts(
    files: Files, spec: DataSpec, read: Callable[[Path], pd.DataFrame]
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table of one file, or of train and test concatenated, and the spec for it."""
    if isinstance(files, Path):
        return read(files), spec
    return join_parts({part: read(path) for part, path in files.items()}, files, spec)


def join_parts(
    frames: Mapping[str, pd.DataFrame], files: Mapping[str, Path], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows of train and test in one table, and the spec for it."""
    column = spec.part or "part"
    train, test = frames["train"], frames["test"]
    for one, other, path in ((train, test, files["test"]), (test, train, files["train"])):
        for missing in [name for name in one.columns if name not in other.columns][:1]:
            raise DataError(f'{path} has no column "{missing}"; train and test must have the same.')
    if column in train.columns:
        raise DataError(f'{spec.name}: the files already have a column "{column}"; set "part".')
    parts = [frame.assign(**{column: part}) for part, frame in frames.items()]
    return pd.concat(parts, ignore_index=True), replace(spec, part=column)


def suffix_of(path: Path) -> str:
    """Return the suffix that names the format of a file, in lower case."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    # ".parquet.brotli" is a Parquet file with internal compression
    if suffixes and (suffixes[-1] in OPENERS or suffixes[-2:] == [".parquet", ".brotli"]):
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return ".parquet" if last == ".pq" else last


def read_bytes(path: Path) -> bytes:
    """Return the decompressed content of a file, or raise a DataError."""
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            if opener is open:
                return bytes(file.read())
            pieces, size = [], 0
            while piece := file.read(PIECE):
                pieces.append(piece)
                size += len(piece)
                check_content(path, size)
            return b"".join(pieces)
    except FileNotFoundError as error:
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"there is no file {path}.{did_you_mean(path.name, near)}") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, or raise a DataError."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """Return the value of a JSON text, or raise a DataError with the line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {first_line + error.lineno - 1}: {error.msg}.") from error
    except RecursionError:
        raise DataError(f"{path}, line {first_line}: nested too deeply.") from None
    except ValueError as error:  # an integer of more than 4,300 digits
        raise DataError(f"{path}, line {first_line}: {error}.") from error


def without_target(spec: DataSpec) -> DataSpec:
    """Return the spec that reads a file without converting its target."""
    options = {name: value for name, value in spec.options.items() if name in OPTIONS}
    return replace(spec, target=None, kind=None, options=options)


def read_encoded(path: Path, spec: DataSpec) -> str:
    """Return the text of a file in the encoding of the spec, or raise an error."""
    return _decoded(read_bytes(path), path, spec)


def _decoded(content: bytes, path: Path, spec: DataSpec) -> str:
    """Return the text of a file, or raise an error if it is empty, binary or wrongly encoded."""
    encoding = spec.options.get("encoding") or _marked_encoding(content)
    if not content.strip():
        raise DataError(f"{path} is empty.")
    if b"\0" in content[:8192] and not encoding:
        raise DataError(
            f'{path} is not a text file (if it is UTF-16: --encoding utf-16, or "encoding: utf-16" '
            f"among the options)."
        )
    try:
        return content.decode(encoding or "utf-8-sig")
    except LookupError:
        raise DefinitionError(f'{spec.name}: unknown encoding "{encoding}".') from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not "
            f"{encoding or 'UTF-8'}; set the encoding of the file, for example --encoding cp1252 "
            f'("encoding: cp1252" among the options).'
        ) from error


def _marked_encoding(content: bytes) -> str:
    """Return UTF-16 if a file begins with the mark of it, as text of spreadsheets does."""
    return "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


@dataclass(frozen=True)
class Delimited:
    """A delimited file, and how pandas reads it."""

    path: Path
    spec: DataSpec
    content: bytes
    arguments: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path, spec: DataSpec) -> Delimited:
        """Return a file with its separator, or raise a DataError if it cannot be a table."""
        content = read_bytes(path)
        text = _decoded(content, path, spec)
        if "encoding" not in spec.options and _marked_encoding(content):
            content = text.encode()
        arguments = _csv_arguments(spec, suffix_of(path))
        if spec.infer and "separator" not in spec.options:
            arguments["sep"] = _infer_separator(text, arguments)
        refuse_long_cells(content, arguments["sep"].encode(), path)
        if arguments["header"] is not None:
            with _readable_errors(path):
                _refuse_duplicates(content, arguments, path)
        return cls(path, spec, content, arguments)

    @property
    def separator(self) -> str:
        """The separator, if it is another one than the suffix says; otherwise empty."""
        separator = self.spec.options.get("separator")
        usual = SEPARATORS.get(suffix_of(self.path), ",") if separator is None else separator
        return "" if self.arguments["sep"] == usual else str(self.arguments["sep"])

    @property
    def mark(self) -> str:
        """The separator if it is one character; otherwise a blank."""
        separator = str(self.arguments["sep"])
        return separator if len(separator) == 1 else " "

    @property
    def utf8(self) -> bytes:
        """The content as UTF-8."""
        if self.spec.options.get("encoding") is None:
            return self.content
        return _decoded(self.content, self.path, self.spec).encode()

    def frame(self, texts: Sequence[str] = (), **changes: object) -> pd.DataFrame:
        """Return the table; declared texts, labels and ``texts`` are not converted.

        ``changes`` are other arguments of ``pandas.read_csv``.
        """
        with _readable_errors(self.path):
            arguments = {**self.arguments, **changes}
            frame = pd.read_csv(BytesIO(self.content), index_col=False, **arguments)
        if not len(frame):
            raise DataError(f"{self.path} has a header and no rows.")
        if len(self.content) >= LONGEST_CELL:
            refuse_long_texts(frame, self.path)
        spec = self.spec
        if spec.options.get("strip"):
            for column in frame.select_dtypes(exclude="number").columns:
                frame[column] = _strip(frame[column], spec)
        declared = spec.options.get("texts") or ()
        require_columns(frame, declared, spec.name)
        labels = [spec.part, None if spec.kind == "regression" else spec.target]
        wanted = dict.fromkeys([*declared, *texts, *filter(None, labels)])
        as_written = [column for column in wanted if column in frame.columns]
        if as_written:
            frame = frame.assign(**self.as_written(as_written))
            frame = frame.assign(**{column: frame[column].infer_objects() for column in declared})
        self._refuse_infinite(frame)
        return frame

    def as_written(self, columns: Sequence[str]) -> dict[str, pd.Series]:
        """Return columns as text; empty cells and declared missing values are None."""
        # pandas has one set of missing values per file, so these columns are read separately.
        plain = {**self.arguments, "na_values": None, "na_filter": False, "dtype": str}
        raw = pd.read_csv(BytesIO(self.content), usecols=list(columns), index_col=False, **plain)
        return {column: _unconverted(raw[column], self.spec) for column in columns}

    def _refuse_infinite(self, frame: pd.DataFrame) -> None:
        for name in frame.select_dtypes(include="float").columns:
            infinite = np.isinf(frame[name].to_numpy())
            if not infinite.any():
                continue
            row = int(np.argmax(infinite))
            cell = self.as_written([name])[name].iloc[row]
            raise DataError(
                f'{self.path}, line {self._line(row)}: "{cell}" in "{name}" is not a finite number '
                f"({int(infinite.sum())} of {len(frame)} rows). If it is missing, set the option "
                f"missing: [{cell}] (--missing {cell}).",
                value=name,
            )

    def _line(self, row: int) -> int:
        """Return the line of the file on which a row ends."""
        arguments = self.arguments
        lines = _decoded(self.content, self.path, self.spec).splitlines()[arguments["skiprows"] :]
        if len(arguments["sep"]) > 1:
            return arguments["skiprows"] + row + 1 + (arguments["header"] is not None)
        rows = csv.reader(lines, delimiter=arguments["sep"], quoting=arguments["quoting"])
        present = (cells for cells in rows if cells)
        for _ in range(row + 1 + (arguments["header"] is not None)):
            next(present)
        return int(arguments["skiprows"] + rows.line_num)


def _read_delimited(path: Path, spec: DataSpec, texts: Sequence[str]) -> pd.DataFrame:
    source = Delimited.open(path, spec)
    if source.separator:
        separator = {"\t": "tab"}.get(source.separator, f'"{source.separator}"')
        _say_inferred(path, f"with the separator {separator}")
    frame = source.frame(texts)
    if spec.kind in (None, "regression") and spec.target in frame.columns:
        answers = frame[spec.target]
        commas = source.arguments["sep"] != ","
        frame = frame.assign(**{str(spec.target): _infer_target(answers, spec, path, commas)})
    return frame


def _refuse_duplicates(content: bytes, arguments: Mapping[str, Any], path: Path) -> None:
    # pandas would rename duplicate columns silently
    options = {**arguments, "header": None, "names": None, "na_values": None}
    options |= {"nrows": 1, "dtype": str, "keep_default_na": False}
    first = pd.read_csv(BytesIO(content), **options).iloc[0]
    duplicates = first[first.duplicated() & (first != "")]
    if len(duplicates):
        raise DataError(f'{path}: duplicate column "{duplicates.iloc[0]}"; rename one in the file.')


def _infer_target(answers: pd.Series, spec: DataSpec, path: Path, decimal: bool) -> pd.Series:
    """Return numbers if every cell that is not missing is one; else the labels as text."""
    if pd.api.types.is_numeric_dtype(answers):
        return answers
    present = answers.notna() & ~answers.isin(NO_NUMBER)
    written = answers.where(present)
    for option, other in (("thousands", ""), ("decimal", ".")):
        if mark := spec.options.get(option):
            written = written.astype(object).map(
                lambda cell, mark=mark, other=other: str(cell).replace(mark, other),
                na_action="ignore",
            )
    numbers = pd.to_numeric(written, errors="coerce")
    if present.any() and numbers[present].notna().all():
        return numbers
    read, how = parse_numbers(written, decimal) if _infers_numbers(spec) else (None, "")
    if read is None:
        return answers
    _say_inferred(path, f'the target "{spec.target}" as numbers with {how}')
    return read


def _say_inferred(where: Path | str, what: str) -> None:
    warn_caller(f"{where}: read {what}.")


def _infers_numbers(spec: DataSpec) -> bool:
    return spec.infer and not {"decimal", "thousands"} & set(spec.options)


def _infer_separator(text: str, arguments: Mapping[str, Any]) -> str:
    """Return the separator that divides the first lines into equally many cells."""
    usual, head = str(arguments["sep"]), text[:HEAD]
    lines = head.splitlines()[arguments["skiprows"] :]
    for separator in dict.fromkeys([usual, ",", ";", "\t", "|"]):
        try:
            read = csv.reader(lines, delimiter=separator, quoting=arguments["quoting"])
            sizes = [len(row) for row in read if row]
        except csv.Error:  # a cell is too long
            continue
        sizes = sizes[:-1] if len(head) < len(text) else sizes  # the last line is cut
        if len(set(sizes)) == 1 and sizes[0] > 1:
            return separator
    return usual


def _strip(column: pd.Series, spec: DataSpec) -> pd.Series:
    """Strip the cells; those that then equal a declared missing value are missing."""
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in column]
    marks = set(map(str, spec.options.get("missing") or ()))
    stripped = pd.Series(cells, dtype=column.dtype)
    missing = stripped.isin(marks)
    if not missing.any():
        return stripped
    masked = stripped.mask(missing)
    texts = masked.astype(object).map(str, na_action="ignore")
    thousands = spec.options.get("thousands")
    texts = texts.str.replace(thousands, "", regex=False) if thousands else texts
    numbers = pd.to_numeric(texts, errors="coerce")
    all_numbers = numbers.isna().sum() == masked.isna().sum() and not masked.isna().all()
    return numbers if all_numbers else masked


def _check_marks(spec: DataSpec) -> None:
    """Refuse decimal and thousands marks that are not one character each, or equal."""
    options = spec.options
    for option in ("decimal", "thousands"):
        mark = options.get(option)
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1):
            raise DefinitionError(f'{spec.name}: "{option}" must be one character, got {mark!r}.')
    if options.get("thousands") and options["thousands"] == options.get("decimal"):
        raise DefinitionError(
            f'{spec.name}: "decimal" and "thousands" are the same mark, "{options["decimal"]}".'
        )


def _csv_arguments(spec: DataSpec, suffix: str) -> dict[str, Any]:
    options = spec.options
    separator = options.get("separator", SEPARATORS.get(suffix, ","))
    names = options.get("names")
    header = options.get("header", names is None)
    if not header and not names:
        raise DefinitionError(f'{spec.name}: a file without header needs the option "names".')
    if options.get("quoting") not in (None, "none"):
        raise DefinitionError(f'{spec.name}: the option "quoting" can only be none.')
    _check_marks(spec)
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
        "decimal": options.get("decimal", "."),
        "skipinitialspace": bool(options.get("strip")),
        "engine": "c" if plain else "python",
        **({"low_memory": False} if plain else {}),
    }


def _unconverted(column: pd.Series, spec: DataSpec) -> pd.Series:
    """Return the cells as text; empty ones and declared missing values are None."""
    missing = {"", *map(str, spec.options.get("missing") or ())}
    strip = bool(spec.options.get("strip"))
    codes, distinct = pd.factorize(column)
    cells = (cell.strip() if strip else cell for cell in distinct.tolist())
    texts = [None if cell.strip() in missing else cell for cell in cells]
    return pd.Series(np.array(texts, dtype=object)[codes], index=column.index, dtype=object)


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Turn the errors of pandas about a malformed file into a DataError with file and line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except pd.errors.ParserWarning as error:
        raise DataError(f"{path}: its rows have more cells than its header.") from error
    except (pd.errors.ParserError, csv.Error) as error:
        reason = re.sub("^Error tokenizing data. C error: ", "", str(error)).strip()
        if "EOF inside string" in reason:
            reason = "a quotation mark is opened and never closed"
        line = re.search(r" in line (\d+)", reason)
        where = f"{path}, line {line[1]}" if line else str(path)
        raise DataError(f"{where}: {reason.replace(line[0], '') if line else reason}.") from error


def _read_arrow(path: Path, suffix: str) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
    read = pd.read_parquet if suffix == ".parquet" else pd.read_feather
    try:
        check_parquet(path) if suffix == ".parquet" else read_feather(path)
        return read(path)
    except _ARROW_ERRORS as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as {suffix[1:]}: {reason}") from error


def _read_json(text: str, path: Path, *, lines: bool) -> pd.DataFrame:
    if lines:
        numbered = enumerate(text.split("\n"), start=1)
        rows: Any = [parse_json(line, path, number) for number, line in numbered if line.strip()]
    else:
        rows = parse_json(text, path)
    records = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    columns = isinstance(rows, dict) and all(isinstance(cells, list) for cells in rows.values())
    if not records and not columns:
        raise DataError(f"{path} is neither a list of rows {{…}} nor columns {{name: […]}}.")
    if records:
        # rows with different keys make a table with as many columns as there are keys
        check_content(path, 8 * len(rows) * len(set().union(*rows)))
    try:
        frame = pd.DataFrame(rows)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path}: {error}.") from error
    for name in frame.select_dtypes(include="float").columns:
        infinite = np.isinf(frame[name].to_numpy())
        if infinite.any():
            row = int(np.argmax(infinite))
            raise DataError(
                f'{path}: "{name}" is infinite in row {row}; write null if it is missing.',
                value=str(name),
            )
    return frame


def convert_target(frame: pd.DataFrame, spec: DataSpec, path: Path) -> pd.DataFrame:
    """Return the table with renamed labels, or with a regression target as numbers."""
    if spec.target is None or spec.target not in frame.columns:
        return frame
    answers = frame[spec.target]
    if spec.options.get("labels"):
        return frame.assign(**{spec.target: _rename_labels(answers, spec, path)})
    if spec.kind == "regression" and not pd.api.types.is_numeric_dtype(answers):
        numbers = pd.to_numeric(answers, errors="coerce")
        wrong = answers[numbers.isna() & answers.notna()]
        if len(wrong):
            raise DataError(
                f'{path}: the target "{spec.target}" must be numeric, got '
                f'"{wrong.iloc[0]}" (row {wrong.index[0]}).'
            )
        return frame.assign(**{spec.target: numbers})
    return frame


def _rename_labels(answers: pd.Series, spec: DataSpec, path: Path) -> pd.Series:
    if spec.kind == "regression" or not isinstance(spec.options["labels"], dict):
        raise DefinitionError(f'{spec.name}: "labels" must map class labels to names.')
    names = {str(label): str(name) for label, name in spec.options["labels"].items()}
    written = answers.map(str, na_action="ignore")
    unknown = written[written.notna() & ~written.isin(list(names))]
    if len(unknown):
        raise DataError(
            f'{path}: the target "{spec.target}" has the value "{unknown.iloc[0]}" (row '
            f'{unknown.index[0]}), which is not in "labels": {", ".join(names)}.'
        )
    return written.map(names)


def ask(frame: pd.DataFrame, spec: DataSpec, label: Callable[[str], str] | None) -> Dataset:
    """Return a dataset with one question per row about the cells of the spec's fields."""
    target = need_target(spec)
    require_columns(frame, [*spec.fields, target], spec.name)
    frame = _drop_missing_targets(frame, spec)
    modality = "entity" if spec.modality == "entity" else "text"
    data = Dataset.from_columns(
        frame, list(spec.fields), target, modality=modality, label=label, **_facts(spec)
    )
    return _order_classes(data, spec)


def ask_rows(frame: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return a dataset whose items are the rows of a table, with one question about each."""
    target = need_target(spec)
    attach_target(frame, target, spec.name)  # refuses the names of several columns
    require_columns(frame, [target, *spec.fields], spec.name)
    frame = _drop_missing_targets(frame, spec)
    used = {target, spec.group, spec.part, spec.weight, *spec.fields}
    unused = [c for c in frame.columns if c not in used] if spec.fields else []
    drop = list(dict.fromkeys([*spec.drop, *unused]))
    facts = {**_facts(spec), "group_feature": spec.group_feature}
    return _order_classes(Dataset.from_table(frame, target, drop=drop, **facts), spec)


def _facts(spec: DataSpec) -> dict[str, Any]:
    names = ("name", "kind", "group", "part", "about", "weight")
    return {name: getattr(spec, name) for name in names}


def need_target(spec: DataSpec) -> str:
    """Return the target column, or raise a DefinitionError if there is none."""
    if not spec.target:
        raise DefinitionError(f'{spec.name}: the target column is missing; add "target: NAME".')
    return spec.target


def one_file(files: Files, spec: DataSpec) -> Path:
    """Return the file, for readers that do not support a train and a test file."""
    if not isinstance(files, Path):
        raise DefinitionError(f"{spec.name}: this reader takes one file, not train and test.")
    return files


def file_in(folder: Path, name: object) -> Path:
    """Return the path of a file in a folder, or raise a DataError."""
    path = folder / str(name)
    if not path.is_file():
        near = did_you_mean(str(name), [other.name for other in folder.iterdir()])
        raise DataError(f'{folder} has no file "{name}".{near}')
    return path


def _drop_missing_targets(frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    drop = spec.choice("unanswered", "refuse", "drop") == "drop"
    return frame[frame[spec.target].notna()] if drop else frame


def _order_classes(data: Dataset, spec: DataSpec) -> Dataset:
    """Order the classes as in the option ``labels``, the positive class last."""
    names = list(dict.fromkeys(map(str, (spec.options.get("labels") or {}).values())))
    if names and data.kind == "classification":
        data = replace(data, classes=tuple(name for name in names if name in data.classes))
    return data if spec.positive is None else data.with_positive(spec.positive)


@reader("table")
def read_table(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of a file (or of a train and a test file) as a dataset.

    In a folder, the option ``files`` lists the files whose rows are concatenated; a file without
    the target gets it from the file ``answers``, by the column ``key`` of both.
    """
    if spec.modality in ("text", "entity"):
        from karat.data.readers.text import read_columns

        return read_columns(files, spec)
    from karat.data.readers.user_tables import USER_OPTIONS, infer_columns, read_user_table

    spec.check_options(*OPTIONS, *(USER_OPTIONS if spec.infer else ()), *FOLDER_OPTIONS)
    need_target(spec)
    if isinstance(files, Path) and files.is_dir() and spec.options.get("files"):
        frame, spec = infer_columns(_read_folder(files, spec), spec)
    elif spec.infer:
        frame, spec = read_user_table(files, spec)
    else:
        frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec))
        frame, spec = infer_columns(frame, spec)
    return ask_rows(frame, spec)


def _read_folder(folder: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the rows of the files in the option ``files``, one after the other.

    A file without the target gets it from the file ``answers``, by the column ``key``.
    """
    from karat.data.readers.text import join_answers, read_piece

    names, target = spec.options["files"], need_target(spec)
    if not isinstance(names, list):
        raise DefinitionError(f"{spec.name}: files must be a list of file names, got {names!r}.")
    frames = []
    for name in names:
        frame = read_piece(file_in(folder, name), spec, ())
        lacks = target not in frame.columns and spec.options.get("answers")
        frames.append(join_answers(frame, folder, spec) if lacks else frame)
    whole = pd.concat(frames, ignore_index=True)
    for column in whole.columns:  # levels that not all files have make a category plain text
        kinds = [frame[column].dtype for frame in frames if column in frame]
        if all(isinstance(kind, pd.CategoricalDtype) for kind in kinds):
            whole[column] = whole[column].astype("category")
    return whole


def sklearn_table(
    name: str, loader: str, *, target: str = "target", kind: str | None = None
) -> Dataset:
    """Return one of scikit-learn's bundled tables, with class names as labels.

    >>> sklearn_table("iris", "load_iris", target="species")
    <Dataset iris: 150 rows, 4 features, 3 classes>
    """
    from sklearn import datasets

    if loader not in KINDS:
        raise DefinitionError(
            f'{name}: "{loader}" is not a bundled table.{did_you_mean(loader, KINDS)} '
            f"Available: {', '.join(KINDS)}."
        )
    kind = kind or KINDS[loader]
    bunch = getattr(datasets, loader)(as_frame=True)
    table = bunch.frame.rename(columns={"target": target})
    if kind == "classification" and "target_names" in bunch:
        table[target] = [str(bunch.target_names[code]) for code in table[target]]
    facts = {"source": f"scikit-learn, {loader}", "license": "BSD-3-Clause"}
    return Dataset.from_table(table, target, name=name, kind=kind, about=facts)
