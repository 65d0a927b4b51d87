"""Read a user's table: what the file does not say about its columns is inferred and noted.

One file has one way of writing numbers. Only tables with a ``path`` are read like this; those of
``sources`` are read as they are defined, so that their bytes stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import as_numbers, require_columns
from karat.core.numbers import (
    COMMAS,
    MARK_NAMES,
    THOUSANDS,
    NumberFormat,
    WrittenNumbers,
    written_numbers,
)
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    NO_NUMBER,
    Delimited,
    check_integers,
    convert_target,
    is_delimited,
    join_parts,
    read_cells,
)
from karat.errors import DataError, warn_caller

#: options of a user's table beyond those of every table
USER_OPTIONS = ("numbers", "keep")
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_TIME = rf"\d\d:\d\d(?::\d\d(?:\.\d+)?)?{_ZONE}?"
ZONE = re.compile(rf":\d\d(?:\.\d+)?({_ZONE})$")
#: patterns of dates that can be read in one way only, and their format; None: ISO 8601
DATES = (
    (re.compile(rf"\d{{4}}-\d\d-\d\d(?:[ T]{_TIME})?"), None),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}"), "%Y/%m/%d"),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), "%d.%m.%Y"),
)
SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")
#: a cell that is an integer with a leading zero
_CODE = re.compile(rb"0\d+(?=[\"'\s;,|]|$)")
_CODE_TEXT = re.compile(r"\s*[+-]?0\d+\s*", re.ASCII)
#: headers of columns that number or name the rows
_ID_HEADER = re.compile(
    r"(?:|Unnamed: \d+|.*[a-z](?:ID|Id|Nr|No)|(?i:(?:.*[\s_.-])?(?:u?u?id|index|idx|guid|rownames|"
    r"row|pk|key|nr|no|nummer|number)))"
)
#: texts that name a row: a number with a short prefix, or a hash
_ID_CELL = re.compile(r"[A-Za-z]{0,8}[-_/#:.]?\d+|[0-9a-fA-F][0-9a-fA-F-]{7,}")
#: from so many rows on, a column with other values in each row needs no telling header
MANY_ROWS = 20
#: from so many labels on, amounts with a unit are numbers rather than classes
MANY_LABELS = 20
#: separators of lists of labels; the first needs no further evidence
_LISTS = "|;,"


# -- files ------------------------------------------------------------------------------------


def read_user_table(files: Files, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table of one file, or of train and test, and the spec for it.

    A warning says how the file is written, and one per column what is surprising about it.
    """
    paths = {"": files} if isinstance(files, Path) else dict(files)
    forced = _forced_format(spec)
    plain = spec if forced is None else _without(spec, "decimal", "thousands")
    tables = {part: _Table.read(path, plain) for part, path in paths.items()}
    decimal = _Decimal.find(list(tables.values()), spec, forced)
    if decimal.mark == ",":
        tables = {part: table.with_decimal_commas() for part, table in tables.items()}
    tables = _with_codes(tables, spec)
    tables = _with_equal_types(tables)
    frames = {part: table.frame for part, table in tables.items()}
    first = next(iter(paths.values()))
    if isinstance(files, Path):
        frame = frames[""]
    else:
        frame, spec = join_parts(frames, files, spec)
    separator = next((t.source.separator for t in tables.values() if t.source), "")
    typed = all(table.source is None for table in tables.values())
    frame, spec = infer_columns(
        frame, spec, Reading(separator=separator, decimal=decimal, forced=forced, typed=typed)
    )
    return convert_target(frame, spec, first), spec


def _without(spec: DataSpec, *names: str) -> DataSpec:
    return replace(spec, options={n: v for n, v in spec.options.items() if n not in names})


def _forced_format(spec: DataSpec) -> NumberFormat | None:
    """Return the format that the options give; None if they leave it open or have rare marks."""
    decimal, thousands = (spec.options.get(name) or "" for name in ("decimal", "thousands"))
    if not decimal and thousands in (".", ","):
        decimal = "," if thousands == "." else "."
    if decimal not in THOUSANDS or (thousands and thousands not in THOUSANDS[decimal]):
        return None
    return NumberFormat(decimal, thousands)


@dataclass(frozen=True)
class _Table:
    """A table as pandas reads it, and its file if that is delimited text."""

    frame: pd.DataFrame
    source: Delimited | None

    @classmethod
    def read(cls, path: Path, spec: DataSpec) -> _Table:
        source = Delimited.open(path, spec) if is_delimited(path, spec) else None
        frame = read_cells(path, spec) if source is None else source.frame()
        check_integers(frame, path)
        return cls(frame, source)

    def with_decimal_commas(self) -> _Table:
        return self if self.source is None else replace(self, frame=self.source.frame(decimal=","))

    def as_written(self, columns: Sequence[str]) -> _Table:
        if self.source is None or not columns:
            return self
        return replace(self, frame=self.frame.assign(**self.source.as_written(columns)))

    def has_codes(self) -> bool:
        """Return whether any cell is an integer with a leading zero."""
        if self.source is None:
            return False
        content = self.source.utf8
        codes = np.frombuffer(content, dtype=np.uint8)
        digits = (codes >= ord("0")) & (codes <= ord("9"))
        starts = np.isin(codes, np.frombuffer(f'\r\n "{self.source.mark}'.encode(), np.uint8))
        begins = (codes[1:-1] == ord("0")) & digits[2:] & starts[:-2]
        places = (np.flatnonzero(begins) + 1).tolist()
        return any(_CODE.match(content, position) for position in places)


def _with_codes(tables: Mapping[str, _Table], spec: DataSpec) -> dict[str, _Table]:
    """Return the tables with integers that have leading zeros as text."""
    numbers = set(spec.options.get("numbers") or ())
    codes: set[str] = set()
    for table in tables.values():
        if table.source is None or not table.has_codes():
            continue
        frame = table.frame
        whole = [n for n in frame.select_dtypes("number").columns if _is_whole(frame[n])]
        written = table.source.as_written([name for name in whole if name not in numbers])
        codes |= {name for name, cells in written.items() if _any_code(cells)}
    return {part: table.as_written(sorted(codes)) for part, table in tables.items()}


def _is_whole(column: pd.Series) -> bool:
    values = column.to_numpy()
    return values.dtype.kind in "iu" or bool((column.dropna() % 1 == 0).all())


def _any_code(column: pd.Series) -> bool:
    return any(map(_CODE_TEXT.fullmatch, column.dropna().unique()))


def _with_equal_types(tables: Mapping[str, _Table]) -> dict[str, _Table]:
    """Return the tables with columns that are text in one of them as text in all."""
    texts = {
        str(name)
        for table in tables.values()
        for name in table.frame.select_dtypes(exclude="number").columns
    }
    changed = {}
    for part, table in tables.items():
        numbers = table.frame.select_dtypes("number").columns
        changed[part] = table.as_written([name for name in numbers if name in texts])
    return changed


# -- the decimal mark -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Decimal:
    """The decimal mark of a file, and whether it may be another one."""

    mark: str = "."
    doubtful: bool = False
    #: columns with this doubt, each with a cell
    cells: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(
        cls, tables: Sequence[_Table], spec: DataSpec, forced: NumberFormat | None
    ) -> _Decimal:
        """Return the decimal mark that the options give, or that the cells show."""
        if forced is not None and spec.options.get("decimal", spec.options.get("thousands")):
            return cls(forced.decimal)
        if any(name in spec.options for name in ("decimal", "thousands")):
            return cls()
        columns = [pair for table in tables for pair in _written(table.frame, spec)]
        marks = {numbers.decimal for _, numbers in columns}
        ambiguous = {name: numbers.example(",.") for name, numbers in columns if numbers.ambiguous}
        if "," in marks:
            return cls(",", "." in marks, ambiguous if "." in marks else {})
        semicolons = any(t.source is not None and t.source.mark == ";" for t in tables)
        if "." in marks or not (ambiguous or semicolons):
            return cls()
        points = [_open_points(table) for table in tables]
        if any(cells is None for cells in points):
            return cls()
        commas = ambiguous and any(t.source is None or t.source.mark != "," for t in tables)
        cells = {name: cell for table in points for name, cell in (table or {}).items()}
        return cls("," if commas else ".", True, ambiguous | cells)


def _written(frame: pd.DataFrame, spec: DataSpec) -> Iterator[tuple[str, WrittenNumbers]]:
    """Yield the text columns of a table that have numbers, and these."""
    fixed = {spec.part, *(spec.options.get("texts") or ())}
    fixed |= {spec.target} if spec.kind == "classification" else set()
    for name in frame.columns:
        if name not in fixed and (cells := distinct_text_cells(frame[name])):
            numbers = written_numbers(cells, NO_NUMBER)
            if numbers is not None and not numbers.problem:
                yield name, numbers


def _open_points(table: _Table) -> dict[str, str] | None:
    """Return a cell of each column whose points may be thousands marks.

    The result is None if a point of any column is a decimal mark.
    """
    columns = table.frame.select_dtypes("float")
    fractions = [name for name in columns if not _is_whole(columns[name])]
    for name in fractions:
        values = columns[name].abs().dropna()
        values = values[values % 1 != 0]
        if ((values < 1) | (values > 1000) | ((values * 1000).round(6) % 1 != 0)).any():
            return None
    if table.source is None:
        return None if fractions else {}
    written = table.source.as_written(fractions)
    texts = {n: [cell.strip() for cell in distinct_text_cells(c)] for n, c in written.items()}
    numbers = {n: [cell for cell in cells if cell not in NO_NUMBER] for n, cells in texts.items()}
    if not all(map(COMMAS.fits, numbers.values())):
        return None
    return {name: next(cell for cell in cells if "." in cell) for name, cells in numbers.items()}


def distinct_text_cells(column: pd.Series) -> list[str]:
    """Return the distinct cells of a column of text; none if it holds anything else.

    >>> [distinct_text_cells(pd.Series(cells)) for cells in (["b", None, "a", "b"], ["a", 1])]
    [['b', 'a'], []]
    """
    if column.dtype.kind in "iufbmM" or isinstance(column.dtype, pd.CategoricalDtype):
        return []
    try:
        cells = pd.unique(column.dropna()).tolist()
    except TypeError:  # lists and mappings of a JSON file
        return []
    return cells if all(isinstance(cell, str) for cell in cells) else []


# -- columns ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """How a file is written.

    ``forced`` is the format of numbers that the options give; ``typed`` says that the file tells
    numbers from text, as JSON and Parquet do.
    """

    separator: str = ""
    decimal: _Decimal = field(default_factory=_Decimal)
    forced: NumberFormat | None = None
    typed: bool = True


def infer_columns(
    frame: pd.DataFrame, spec: DataSpec, reading: Reading | None = None
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the table with text columns of numbers and dates as what they are, and its spec.

    Declared columns of dates are converted, or refused. Columns that number the rows are dropped.
    """
    declared = spec.options.get("dates")
    declared = [declared] if isinstance(declared, str) else declared
    columns: dict[str, pd.Series] = {
        name: _declared_dates(frame, name, form, spec) for name, form in _formats(declared)
    }
    if not spec.infer:
        return (frame.assign(**columns) if columns else frame), spec
    inference = _Inference(frame=frame, spec=spec, reading=reading or Reading(), columns=columns)
    inference.infer(dates=declared is None)
    ids = list(_row_ids(frame, spec, inference))
    sentence = inference.sentence()
    for line in ([f"read with {sentence}."] if sentence else []) + [*inference.notes.values()]:
        warn_caller(f"{spec.name}: {line}")
    facts = {"reading": sentence} if sentence else {}
    spec = replace(spec, drop=(*spec.drop, *ids), about={**spec.about, **facts})
    return (frame.assign(**columns) if columns else frame), spec


@dataclass
class _Inference:
    """The columns of a table that are not what pandas read, with notes about them."""

    frame: pd.DataFrame
    spec: DataSpec
    reading: Reading
    columns: dict[str, pd.Series]
    notes: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)

    def infer(self, dates: bool) -> None:
        """Convert every column that is not declared."""
        spec = self.spec
        numbers = list(spec.options.get("numbers") or ())
        require_columns(self.frame, numbers, spec.name)
        fixed = {spec.target, spec.part, *(spec.options.get("texts") or ()), *self.columns}
        for name in self.frame.columns:
            cells = [] if name in fixed else distinct_text_cells(self.frame[name])
            if not cells:
                continue
            written = written_numbers(cells, NO_NUMBER)
            if written is None and name in numbers:
                raise self._no_number(name, cells)
            if written is not None and not (written.plain and self.reading.typed):
                self._add_numbers(name, written)
            elif dates:
                self._add_dates(name, cells)
        self._infer_target()
        decimal = self.reading.decimal
        for name, cell in decimal.cells.items():
            if name not in self.columns and name != spec.target:
                self._doubt(name, cell, NumberFormat(decimal.mark).number(cell))

    def sentence(self) -> str:
        """Return how the file is written, where that was inferred and is not the usual way."""
        separator = {"": "", "\t": "the separator tab"}.get(
            self.reading.separator, f'the separator "{self.reading.separator}"'
        )
        options = self.spec.options
        comma = self.reading.decimal.mark == "," and self.reading.forced is None
        decimal = "decimal commas" if comma else ""
        grouping = sorted({MARK_NAMES[mark] for mark in self.marks})
        thousands = f"thousands {' and '.join(grouping)}" if grouping else ""
        parts = (separator, decimal, "" if "thousands" in options else thousands)
        return ", ".join(filter(None, parts))

    def _no_number(self, name: str, cells: Sequence[str]) -> DataError:
        wrong = next((cell for cell in cells if written_numbers([cell]) is None), cells[0])
        return DataError(
            f'{self.spec.name}: the column "{name}" is declared as numbers, and "{wrong}" is none; '
            f"remove it from numbers, or correct the cells.",
            value=name,
        )

    def _add_numbers(self, name: str, written: WrittenNumbers) -> None:
        """Convert a column of numbers, or say why it stays text."""
        declared = name in (self.spec.options.get("numbers") or ())
        if written.problem and not (declared and written.problem == "zeros"):
            if declared:
                raise self._no_number(name, [*written.words, *written.digits])
            self.notes[name] = f'"{name}" stays text: {_reason(written, name)}'
            return
        if (form := self._format(name, written)) is None:
            return
        self.columns[name] = as_numbers(self.frame[name], written, form)
        if written.unit or written.missing:
            self.notes[name] = _read_as(name, written, form)

    def _format(self, name: str, written: WrittenNumbers) -> NumberFormat | None:
        """Return the format of a column, with a note if it is not sure; None if it stays text."""
        decimal, forced = self.reading.decimal, self.reading.forced
        form = forced or NumberFormat(written.decimal or decimal.mark)
        if not form.fits(written.digits.values()):
            mark = "decimal and thousands marks" if self.spec.options.get("thousands") else "marks"
            self.notes[name] = (
                f'"{name}" stays text: "{written.example(",.") or written.example()}" '
                f"does not fit the {mark} that are set"
            )
            return None
        if forced is None:
            self._note_doubt(name, written, form)
        self.marks |= {m for m in form.thousands if any(m in d for d in written.digits.values())}
        return form

    def _note_doubt(self, name: str, written: WrittenNumbers, form: NumberFormat) -> None:
        decimal, cell = self.reading.decimal, written.example(",.")
        if written.decimal and written.decimal != decimal.mark:
            self.notes[name] = (
                f'"{name}" has decimal {MARK_NAMES[written.decimal]} ("{cell}"), '
                f"other columns have decimal {MARK_NAMES[decimal.mark]}"
            )
        elif written.ambiguous and decimal.doubtful:
            self._doubt(name, cell, form.number(written.digits[cell]))

    def _doubt(self, name: str, cell: str, number: float) -> None:
        """Note that a mark may be a decimal or a thousands mark, and what it is read as."""
        mark = next(iter(set(cell) & {",", "."}))
        option = "thousands" if isinstance(number, float) else "decimal"
        self.notes[name] = (
            f'"{name}" may have decimal or thousands {MARK_NAMES[mark]}: "{cell}" is read as '
            f'{number} (--{option} "{mark}" reads the other)'
        )

    def _add_dates(self, name: str, cells: Sequence[str]) -> None:
        column = self.frame[name]
        dates = parse_dates(column)
        if dates is not None:
            self.columns[name] = dates
            forms = {_date_form(cell.strip()): cell for cell in reversed(cells)}
            examples = " and ".join(f'"{cell}"' for cell in sorted(forms.values()))
            written = f"{examples} are" if len(forms) > 1 else f'"{name}" is'
            where = f'"{name}": ' if len(forms) > 1 else ""
            self.notes[name] = f"{where}{written} read as dates (--texts {_word(name)} keeps text)"
        elif all(map(SLASHED.fullmatch, cells)):
            self.notes[name] = (
                f'"{name}" may be dates, day or month first; it stays text. Set the '
                f"option dates, such as {{{name}: '%d/%m/%Y'}}."
            )

    # -- the target --

    def _infer_target(self) -> None:
        """Convert a target of numbers, and labels that differ in case or blanks only."""
        spec, name = self.spec, str(self.spec.target)
        skipped = spec.target not in self.frame.columns or spec.options.get("labels")
        if skipped or name in (spec.options.get("texts") or ()):
            return
        cells = distinct_text_cells(self.frame[name])
        if not cells:
            return
        written = None if spec.kind == "classification" else written_numbers(cells, NO_NUMBER)
        if written is not None and self._is_number_target(written):
            if (form := self._format(name, written)) is not None:
                self.columns[name] = as_numbers(self.frame[name], written, form)
            if written.unit or any(cell.strip() not in NO_NUMBER for cell in written.missing):
                self.notes[name] = _read_as(name, written, form or NumberFormat())
        elif spec.kind != "regression":
            self._infer_labels(name, cells)
            if written is not None and written.unit and not written.problem:
                self.notes.setdefault(
                    name,
                    f'"{name}" is taken as {len(cells)} classes, such as "{written.example()}" '
                    f"(--kind regression reads numbers)",
                )

    def _is_number_target(self, written: WrittenNumbers) -> bool:
        if self.spec.kind == "regression":
            return written.problem in ("", "zeros")
        return not written.problem and (not written.unit or len(written.digits) > MANY_LABELS)

    def _infer_labels(self, name: str, cells: Sequence[str]) -> None:
        column = self.frame[name]
        counts = column.value_counts()
        _refuse_lists(self.spec, name, counts)
        _refuse_row_labels(self.spec, name, counts)
        same = _same_labels(counts)
        if same:
            self.columns[name] = column.replace(same)
            merged = ", ".join(f'"{one}" as "{other}"' for one, other in list(same.items())[:4])
            more = ", …" if len(same) > 4 else ""
            self.notes[name] = (
                f'"{name}": labels that differ in case or blanks are one class: {merged}{more} '
                f"(--texts {_word(name)} keeps them apart)"
            )


def _word(name: str) -> str:
    """Return a header as a word of a command line."""
    return name if re.fullmatch(r"[\w.-]+", name) else f'"{name}"'


def _reason(written: WrittenNumbers, name: str) -> str:
    """Return why a column of numbers stays text, and the option that changes it."""
    words = [f'"{word}"' for word in written.words[:3]]
    if written.problem == "zeros":
        return f"{words[0]} has a leading zero (--numbers {_word(name)} reads numbers)"
    if written.problem == "units":
        return f"its units differ ({', '.join(words)})"
    if written.problem == "marks":
        return f"{words[0]} and {words[1]} have different decimal marks"
    option = " ".join(f"--missing {_word(word)}" for word in written.words[:3])
    return f"{', '.join(words)} among numbers ({option} reads numbers)"


def _read_as(name: str, written: WrittenNumbers, form: NumberFormat) -> str:
    """Return what the cells of a column of numbers with units or missing values are read as."""
    parts = []
    if written.unit:
        cell = written.example()
        parts.append(f'"{cell}" is read as {form.number(written.digits[cell])}')
    if written.missing:
        cells = " and ".join(f'"{cell}"' for cell in written.missing[:3])
        verb = "" if parts else "are read " if len(written.missing) > 1 else "is read "
        parts.append(f"{cells} {verb}as missing")
    return f'"{name}": {", ".join(parts)} (--texts {_word(name)} keeps the text)'


# -- labels -----------------------------------------------------------------------------------


def _refuse_lists(spec: DataSpec, name: str, counts: pd.Series) -> None:
    """Refuse lists of labels, such as "a|b"."""
    labels = [str(label) for label in counts.index]
    for mark in _LISTS:
        lists = [label for label in labels if mark in label.strip(mark)]
        if not lists or len(lists) == len(labels) == 1:
            continue
        parts = [{part.strip() for part in label.split(mark)} for label in labels]
        names = set().union(*parts)
        alone = {label.strip() for label in labels} & names
        shared = sum(map(len, parts)) > len(names)
        if mark == "|" and shared or (alone and len(names) < len(labels)):
            rows = int(counts[lists].sum())
            raise DataError(
                f'{spec.name}: the target "{name}" has lists of labels, such as "{lists[0]}", in '
                f"{rows:,} rows. Multi-label targets are not supported: make one column per label "
                f"(pandas: str.get_dummies({mark!r})) and evaluate one at a time, or set "
                f'"texts: [{name}]" (--texts {_word(name)}) to take each list as a class.',
                value=name,
            )


def _refuse_row_labels(spec: DataSpec, name: str, counts: pd.Series) -> None:
    """Refuse a target that has another text in each row."""
    if len(counts) < MANY_ROWS or counts.iloc[0] > 1:
        return
    label = counts.index[0]
    raise DataError(
        f'{spec.name}: the target "{name}" has another text in each of its {len(counts):,} rows, '
        f'such as "{str(label)[:40]}"; these are neither classes nor numbers. Choose another '
        f"target, or write numbers in one way, with one unit.",
        value=name,
    )


def _same_labels(counts: pd.Series) -> dict[str, str]:
    """Return labels that differ from a more frequent one in case or blanks only, with that one.

    >>> _same_labels(pd.Series({"yes": 5, "Yes ": 2, "no": 4, "a": 1, "A": 1}))
    {'Yes ': 'yes'}
    """
    first: dict[str, str] = {}
    same = {}
    for label in map(str, counts.index):
        text = " ".join(label.split())
        key = text.casefold() if len(text) > 1 else text
        other = first.setdefault(key, label)
        if other != label:
            same[label] = other
    stripped = {label: label.strip() for label in first.values() if label != label.strip()}
    return {label: stripped.get(other, other) for label, other in same.items()} | stripped


# -- columns that number the rows -------------------------------------------------------------


def _row_ids(frame: pd.DataFrame, spec: DataSpec, inference: _Inference) -> Iterator[str]:
    """Yield the columns that number or name the rows, with a note, unless no other would remain."""
    keep = list(spec.options.get("keep") or ())
    require_columns(frame, keep, spec.name)
    texts = spec.options.get("texts") or ()
    used = {spec.target, spec.part, spec.weight, spec.group, *spec.drop, *keep, *texts}
    features = [name for name in frame.columns if name not in used]
    if spec.fields:
        return
    parts = [frame] if spec.part not in frame else [p for _, p in frame.groupby(spec.part)]
    ids = [
        name
        for name in features
        if name not in inference.columns and all(_is_id(part[name], str(name)) for part in parts)
    ]
    for name in ids if len(ids) < len(features) else ():
        inference.notes[str(name)] = (
            f'"{name}" has another value in each row and is not a feature '
            f"(--keep {_word(str(name))} makes it one)"
        )
        yield name


def _is_id(column: pd.Series, header: str) -> bool:
    """Return whether a column has another value in each row that only names the row."""
    named, rows = bool(_ID_HEADER.fullmatch(header)), len(column)
    if rows < 2 or not (named or rows >= MANY_ROWS) or column.hasnans:
        return False
    if column.dtype.kind in "iu":
        return (named or _numbers_rows(column)) and column.is_unique
    first = column.iloc[:MANY_ROWS]
    if not all(isinstance(cell, str) and _ID_CELL.fullmatch(cell.strip()) for cell in first):
        return False
    cells = column.str.strip()
    if not column.is_unique or not all(map(_ID_CELL.fullmatch, cells)):
        return False
    # other codes of digits, such as zip codes, may differ in a small table
    return named or not cells.str.isdecimal().all() or _numbers_rows(pd.to_numeric(cells))


def _numbers_rows(column: pd.Series) -> bool:
    least, most = int(column.min()), int(column.max())
    return most - least == len(column) - 1 and least in (0, 1)


def _formats(declared: Any) -> Iterable[tuple[str, Any]]:
    return (
        declared.items() if isinstance(declared, Mapping) else ((c, None) for c in declared or ())
    )


def _declared_dates(frame: pd.DataFrame, name: str, how: object, spec: DataSpec) -> pd.Series:
    require_columns(frame, [name], spec.name)
    column = frame[name]
    dates = parse_dates(column) if how is None else None
    if dates is None:
        dates = pd.to_datetime(column, errors="coerce", format=how or "mixed")
    wrong = column[dates.isna() & column.notna()]
    if len(wrong):
        raise DataError(
            f'{spec.name}: "{wrong.iloc[0]}" in "{name}" (row {wrong.index[0]}) is not a date'
            f"{f' as {how}' if how else ''}; give its format, such as {{{name}: '%d/%m/%Y'}}.",
            value=name,
        )
    return dates


def parse_dates(column: pd.Series) -> pd.Series | None:
    """Return text as dates if every cell is one that can be read in one way only, or None.

    >>> parse_dates(pd.Series(["2024-01-31", None, "1.2.2024"])).dt.month.tolist()
    [1.0, nan, 2.0]
    >>> parse_dates(pd.Series(["01/02/2024"])) is None
    True
    """
    cells = distinct_text_cells(column)
    texts = [cell.strip() for cell in cells]
    forms = _date_forms(texts)
    if not forms:
        return None
    zones = {match[1] if (match := ZONE.search(text)) else "" for text in texts}
    groups: dict[str, list[int]] = {}
    for position, form in enumerate(forms):
        groups.setdefault(form, []).append(position)
    parts = [
        pd.to_datetime(
            pd.Series([texts[i] for i in positions], index=[cells[i] for i in positions]),
            errors="coerce",
            format=form,
            utc=len(zones) > 1,
        )
        for form, positions in groups.items()
    ]
    if len({part.dtype for part in parts}) > 1 or any(part.isna().any() for part in parts):
        return None
    return column.map(pd.concat(parts))


def _date_forms(texts: Sequence[str]) -> list[str]:
    """Return the format of each date; an empty list if one is no date or can be read in two ways.

    >>> _date_forms(["2024-01-31", "31/1/2024"]), _date_forms(["1/2/2024"])
    (['ISO8601', '%d/%m/%Y'], [])
    """
    forms = []
    for text in texts:
        form = _date_form(text)
        if form is None:
            return []
        forms.append(form)
    slashed = [text for text, form in zip(texts, forms, strict=True) if not form]
    days = [[int(part) for part in text.split("/")[:2]] for text in slashed]
    first, second = (max((day[i] for day in days), default=0) > 12 for i in (0, 1))
    if slashed and first == second:
        return []
    return [form or ("%d/%m/%Y" if first else "%m/%d/%Y") for form in forms]


def _date_form(text: str) -> str | None:
    """Return the format of a date; empty if day or month may be first, None if it is no date."""
    for pattern, form in DATES:
        if pattern.fullmatch(text):
            return form or "ISO8601"
    return "" if SLASHED.fullmatch(text) else None
