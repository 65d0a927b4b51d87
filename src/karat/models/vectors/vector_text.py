"""Read vectors from text: one name and its numbers per line, parsed block by block."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from karat.errors import DataError
from karat.models.vectors.decompression import read_decompressed
from karat.models.vectors.vector_names import strip_angle_brackets

Line = tuple[int, list[str]]
#: bytes of a file from which the compiled loops save more than the import of numba takes
COMPILED_BYTES = 1 << 24
#: digits of a number in the header
MAX_DIGITS = 18
#: most characters of an error that quotes a cell
LONGEST_REASON = 200


def read_vector_text(path: Path) -> tuple[list[str], np.ndarray]:
    """Return names and float32 vectors; a DataError names the line that is wrong."""
    first, blocks, header, rows = _opened(path)
    if rows.width:
        # estimated from the first block to avoid copies; a number takes at least two bytes
        size = path.stat().st_size
        lines = size * (first.count(b"\n") + 1) // len(first)
        rows.expected = min(lines, size // (2 * rows.width)) + 1
    number, compiled = 1, text_kernels() if path.stat().st_size >= COMPILED_BYTES else None
    for block in itertools.chain([first], blocks):
        # a number takes at least two bytes: lines that are too short are not given any memory
        long_enough = 2 * rows.width * block.count(b"\n") <= len(block)
        if compiled is not None and rows.width and long_enough:
            _read_compiled(rows, block, (number, header), compiled)
        else:
            lines_of_block = _lines(block, number, path)
            rows.extend(line for line in lines_of_block if line[0] != header)
        number += block.count(b"\n")
    return rows.result()


def read_text_rows(path: Path, wanted: Iterable[str]) -> tuple[list[str], np.ndarray]:
    """Return the vectors of some names that the file has, as ``read_vector_text`` does.

    Of the other lines, names and the number of cells are checked, but numbers are not parsed.
    """
    first, blocks, header, rows = _opened(path)
    needed, seen, number = set(wanted), TextVectors(path, rows.header_count), 0
    vectors: dict[str, np.ndarray] = {}
    for block in itertools.chain([first], blocks):
        names, numbers, tabs = [], [], b"\t" in block
        for raw in block.split(b"\n")[:-1]:
            number += 1
            line = raw.strip(b" \t\r")
            if not line or number == header:
                continue
            end = line.find(b"\t") if tabs and b"\t" in line else line.find(b" ")
            name = strip_angle_brackets(_decoded(line[:end] if end > 0 else line, number, path))
            cells = line.count(b" ", end + 1) + (line.count(b"\t", end + 1) if tabs else 0) + 1
            if name in needed or cells != rows.width:
                values = rows.parse(number, _cells(_decoded(raw, number, path)))
                if name in needed:
                    vectors[name] = values
            names.append(name)
            numbers.append(number)
        seen.add(names, numbers)
    seen.result()
    return list(vectors), np.array(list(vectors.values()), dtype=np.float32).reshape(-1, rows.width)


def _opened(path: Path) -> tuple[bytes, Iterator[bytes], int, TextVectors]:
    """Return the first block, the others, the number of the header line, and an empty matrix."""
    blocks = _blocks(path)
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    begin = list(itertools.islice(_lines(first, 1, path), 2))
    header = begin.pop(0) if _is_header(begin) else (0, ["0", "0"])
    rows = TextVectors(path, *_counts(header[1], path))
    rows.width = rows.header_width or (len(begin[0][1]) - 1 if begin else 0)
    return first, blocks, header[0], rows


def _counts(header: list[str], path: Path) -> tuple[int, int]:
    """Return the number and the size of the vectors that a header announces."""
    if max(map(len, header)) > MAX_DIGITS:
        raise DataError(f"{path}, line 1: a number of the header has over {MAX_DIGITS} digits.")
    return int(header[0]), int(header[1])


def read_vector_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Return names and vectors of a CSV file with an optional header; names may be quoted."""
    blocks = _blocks(path)
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    texts = (block.decode() for block in itertools.chain([first], blocks))
    reader = csv.reader(itertools.chain.from_iterable(io.StringIO(t, newline="") for t in texts))
    lines = ((reader.line_num, cells) for cells in reader if any(cells))
    begin = list(itertools.islice(lines, 2))
    head = begin[0][1][1:] if begin else []
    column_names = bool(head) and not any(map(_is_number, head))
    rows = TextVectors(path)
    rows.extend(itertools.chain(begin[1:] if column_names or _is_header(begin) else begin, lines))
    return rows.result()


def text_kernels() -> Any | None:
    """Return the module of compiled loops, or None without numba."""
    try:
        from karat.models.vectors import vector_text_numba
    except ImportError:
        return None
    return vector_text_numba


class TextVectors:
    """The names read so far with their line numbers, and a matrix that grows in place."""

    def __init__(self, path: Path, header_count: int = 0, header_width: int = 0) -> None:
        self.path = path
        self.header_count = header_count
        self.header_width = header_width
        self.width = 0
        self.expected = 0
        self.lines: dict[str, int] = {}
        self.matrix = np.empty((0, 1), dtype=np.float32)

    def extend(self, lines: Iterable[Line]) -> None:
        """Add lines that are already split into cells."""
        for number, cells in lines:
            values = self.parse(number, cells)
            self.reserve(1)[0] = values
            self.add([strip_angle_brackets(cells[0])], [number])

    def parse(self, number: int, cells: list[str]) -> np.ndarray:
        """Return the numbers of a line; raise DataError for an invalid one."""
        values = _numbers(cells[1:], self.path, number)
        self.width = self.width or len(values)
        for width, source in ((self.header_width, "the header"), (self.width, "the lines before")):
            if width and len(values) != width:
                raise DataError(
                    f"{self.path}, line {number}: expected {width} numbers as in {source}, "
                    f"got {len(values)}."
                )
        return values

    def reserve(self, count: int) -> np.ndarray:
        """Return the next rows of the matrix, to be filled before the next call."""
        filled = len(self.lines)
        if filled + count > len(self.matrix):
            # pages that are never written to use no memory
            length = max(filled + count, 2 * filled, self.expected)
            grown = np.empty((length, self.width), dtype=np.float32)
            grown[:filled] = self.matrix[:filled]
            self.matrix = grown
        return self.matrix[filled : filled + count]

    def add(self, names: list[str], numbers: list[int]) -> None:
        """Add the names of the rows just filled; raise DataError for a duplicate."""
        new = dict(zip(names, numbers, strict=True))
        if len(new) < len(names) or not self.lines.keys().isdisjoint(new):
            for name, number in zip(names, numbers, strict=True):
                if self.lines.setdefault(name, number) != number:
                    raise DataError(
                        f'{self.path}, line {number}: duplicate name "{name}", first used in '
                        f"line {self.lines[name]}."
                    )
        self.lines.update(new)

    def result(self) -> tuple[list[str], np.ndarray]:
        """Return all names and vectors."""
        count = len(self.lines)
        if not count:
            raise DataError(f"{self.path} contains no vectors.")
        if self.header_count and self.header_count != count:
            raise DataError(
                f"{self.path}: the header announces {self.header_count} vectors, "
                f"but the file contains {count}."
            )
        return list(self.lines), self.matrix[:count]


def _read_compiled(
    rows: TextVectors, block: bytes, numbers: tuple[int, int], compiled: ModuleType
) -> None:
    """Add a block; ``numbers`` are the number of its first line and that of the header line."""
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    spans = np.empty((len(ends), 3), dtype=np.int64)
    compiled.find_lines(data, ends, b"\t" in block, spans)
    line_numbers = numbers[0] + np.arange(len(spans))
    used = (spans[:, 0] < spans[:, 2]) & (line_numbers != numbers[1])
    spans, lines = spans[used], line_numbers[used].tolist()
    matrix = rows.reserve(len(spans))
    irregular = np.zeros(len(spans), dtype=bool)
    compiled.read_numbers(data, spans, compiled.POWERS, matrix, irregular)
    for row in np.flatnonzero(irregular):
        begin, _, end = spans[row]
        cells = _cells(_decoded(block[begin:end], lines[row], rows.path))
        matrix[row] = rows.parse(lines[row], cells)
    raw_names = [block[begin:end] for begin, end, _ in spans.tolist()]
    names = [_decoded(raw, line, rows.path) for raw, line in zip(raw_names, lines, strict=True)]
    # names need cleaning only if a bracket or a tab occurs
    clean = b"<" in block or b"\t" in block
    rows.add([strip_angle_brackets(name) for name in names] if clean else names, lines)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield pieces that end with a newline."""
    rest = b""
    for piece in read_decompressed(path):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
            rest = b""
        rest += piece[cut:]
    if rest:
        yield rest + b"\n"


def _lines(block: bytes, number: int, path: Path) -> Iterator[Line]:
    """Yield the number and the cells of each non-empty line."""
    for line_number, raw in enumerate(block.split(b"\n")[:-1], number):
        if any(cells := _cells(_decoded(raw, line_number, path))):
            yield line_number, cells


def _cells(text: str) -> list[str]:
    # only spaces and tabs separate cells: other white space may belong to a word
    name, tab, rest = text.strip(" \t\r").partition("\t")
    cells = (rest if tab else name).replace("\t", " ").split(" ")
    return [*([name] if tab else []), *filter(None, cells)]


def _decoded(raw: bytes, number: int, path: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: not UTF-8 ({error.reason}).") from error


def _is_header(begin: list[Line]) -> bool:
    """Return whether the first of two lines is a word2vec header such as "6 200"."""
    first = begin[0][1] if begin else []
    counts = len(first) == 2 and all(cell.strip().isdecimal() for cell in first)
    # two cells in the second line mean vectors of one dimension and no header
    return counts and not (len(begin) == 2 and len(begin[1][1]) == 2)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(cells: list[str], path: Path, number: int) -> np.ndarray:
    try:
        # through float64, so that too large numbers become infinite without a warning
        with np.errstate(over="ignore"):
            values = np.array(cells, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {str(error)[:LONGEST_REASON]}.") from error
    if not len(values) or not np.isfinite(values).all():
        problem = "no numbers" if not len(values) else "NaN or infinity"
        raise DataError(f"{path}, line {number}: {problem} in the vector.")
    return values
