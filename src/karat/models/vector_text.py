"""Vectors written as text: one entity and its numbers per line, read a block at a time."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from karat.errors import DataError, MissingExtra
from karat.models.vector_kernel import POWERS, SHARES, Kernels, kernels

Line = tuple[int, list[str]]
#: so many bytes of text are held at a time
BLOCK = 1 << 19


def read_text(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the names and the float32 vectors of a text, or say which line is wrong."""
    blocks = _blocks(path)
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    begin = list(itertools.islice(_lines(first, 1, path), 2))
    skipped = begin.pop(0) if _is_header(begin) else (0, ["0", "0"])
    rows = Rows(path, *map(int, skipped[1]))
    rows.width = rows.promised_width or (len(begin[0][1]) - 1 if begin else 0)
    if rows.width:
        # a guess that saves copies; a number takes two bytes at least
        rows.expected = _guessed(path.stat().st_size, first, 2 * rows.width)
    number, loops = 1, kernels()
    for block in itertools.chain([first], blocks):
        if loops is not None and rows.width:
            number += _read_compiled(rows, block, (number, skipped[0]), loops)
        else:
            lines = _lines(block, number, path)
            rows.extend(line for line in lines if line[0] != skipped[0])
            number += block.count(b"\n")
    return rows.whole()


def _guessed(size: int, block: bytes, least: int) -> int:
    """Return how many lines a file may have that begins with this block."""
    return min(size * (block.count(b"\n") + 1) // len(block), size // least) + 1


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the names and vectors of a table with commas; the names of its columns are left out.

    Names may be quoted.
    """
    blocks = _blocks(path)
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    texts = (block.decode() for block in itertools.chain([first], blocks))
    reader = csv.reader(itertools.chain.from_iterable(io.StringIO(t, newline="") for t in texts))
    lines = ((reader.line_num, cells) for cells in reader if any(cells))
    begin = list(itertools.islice(lines, 2))
    head = begin[0][1][1:] if begin else []
    named = bool(head) and not any(map(_is_number, head))
    rows = Rows(path)
    rows.extend(itertools.chain(begin[1:] if named or _is_header(begin) else begin, lines))
    return rows.whole()


class Rows:
    """What was read so far: the line of each name, and a matrix that grows in place."""

    def __init__(self, path: Path, promised: int = 0, width: int = 0) -> None:
        self.path = path
        self.promised = promised
        self.promised_width = width
        self.width = 0
        self.expected = 0
        self.lines: dict[str, int] = {}
        self.matrix = np.empty((0, 1), dtype=np.float32)

    def extend(self, lines: Iterator[Line]) -> None:
        """Take lines that are split into cells."""
        for number, cells in lines:
            values = self.values(number, cells)
            self.room(1)[0] = values
            self.add([unbracketed(cells[0])], [number])

    def values(self, number: int, cells: list[str]) -> np.ndarray:
        """Return the numbers of a line, or say what is wrong with it."""
        values = _numbers(cells[1:], self.path, number)
        self.width = self.width or len(values)
        for width, what in (
            (self.promised_width, "the header says"),
            (self.width, "the lines before have"),
        ):
            if width and len(values) != width:
                raise DataError(
                    f"{self.path}, line {number}: {len(values)} numbers, {what} {width}."
                )
        return values

    def room(self, count: int) -> np.ndarray:
        """Return the next rows, to be written to before any others are asked for."""
        held = len(self.lines)
        if held + count > len(self.matrix):
            # memory that is not written to costs nothing
            length = max(held + count, 2 * held, self.expected)
            grown = np.empty((length, self.width), dtype=np.float32)
            grown[:held] = self.matrix[:held]
            self.matrix = grown
        return self.matrix[held : held + count]

    def add(self, names: list[str], numbers: list[int]) -> None:
        """Take the names of the rows that were written, each only once."""
        new = dict(zip(names, numbers, strict=True))
        if len(new) < len(names) or not self.lines.keys().isdisjoint(new):
            for name, number in zip(names, numbers, strict=True):
                if self.lines.setdefault(name, number) != number:
                    raise DataError(
                        f'{self.path}, line {number}: "{name}" stands already in line '
                        f"{self.lines[name]}."
                    )
        self.lines.update(new)

    def whole(self) -> tuple[list[str], np.ndarray]:
        """Return all names and vectors."""
        held = len(self.lines)
        if not held:
            raise DataError(f"{self.path} holds no vectors.")
        if self.promised and self.promised != held:
            raise DataError(
                f"{self.path}: the header says {self.promised} vectors, the file holds {held}."
            )
        return list(self.lines), self.matrix[:held]


def _read_compiled(rows: Rows, block: bytes, numbers: tuple[int, int], loops: Kernels) -> int:
    """Take a block of lines from the given number on, but for one; return how many it has."""
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    spans = np.empty((len(ends), 3), dtype=np.int64)
    loops.lines(data, ends, b"\t" in block, spans)
    places = numbers[0] + np.arange(len(spans))
    used = (spans[:, 0] < spans[:, 2]) & (places != numbers[1])
    spans, lines = spans[used], places[used].tolist()
    matrix = rows.room(len(spans))
    odd = np.zeros(len(spans), dtype=bool)
    loops.plain(data, spans, SHARES, matrix, odd)
    if odd.any():
        odd[odd] = _read_odd(data, spans[odd], matrix, odd, loops)
    for row in np.flatnonzero(odd):
        begin, _, end = spans[row]
        cells = _cells(_decoded(block[begin:end], lines[row], rows.path))
        matrix[row] = rows.values(lines[row], cells)
    rows.add(_names(block, spans, lines, rows.path), lines)
    return len(ends)


def _read_odd(
    data: np.ndarray, spans: np.ndarray, matrix: np.ndarray, rows: np.ndarray, loops: Kernels
) -> np.ndarray:
    """Read lines with long numbers or exponents, and return which are still odd."""
    odd = np.zeros(len(spans), dtype=bool)
    mantissas = np.zeros((len(spans), matrix.shape[1]), dtype=np.int64)
    scales = np.zeros(mantissas.shape, dtype=np.int32)
    values = np.empty(mantissas.shape, dtype=np.float32)
    loops.digits(data, spans, mantissas, scales, odd)
    loops.values(mantissas, scales, POWERS, values, odd)
    matrix[rows] = values
    return odd


def _names(block: bytes, spans: np.ndarray, lines: list[int], path: Path) -> list[str]:
    begins, ends = spans[:, 0].tolist(), spans[:, 1].tolist()
    raw = [block[begin:end] for begin, end in zip(begins, ends, strict=True)]
    try:
        names = [name.decode() for name in raw]
    except UnicodeDecodeError:  # say where
        names = [_decoded(name, line, path) for name, line in zip(raw, lines, strict=True)]
    # without these, there is nothing around a name
    around = b"<" in block or b"\t" in block
    return [unbracketed(name) for name in names] if around else names


# -- lines ----------------------------------------------------------------------------------


def plain_suffix(path: Path) -> str:
    """Return how a file's name ends, whatever it is packed in.

    >>> plain_suffix(Path("glove.TXT.gz"))
    '.txt'
    """
    return Path(path.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix


def unbracketed(name: str) -> str:
    """Return a name without the angle brackets of an IRI.

    >>> unbracketed("<http://example.org/a>")
    'http://example.org/a'
    """
    name = name.strip(" \t")
    return name[1:-1] if name.startswith("<") and name.endswith(">") else name


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece, unpacked."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        yield from _unpacked_zst(path)
        return
    with gzip.open(path) if suffix == ".gz" else path.open("rb") as file:
        while piece := file.read(BLOCK):
            yield piece if piece.endswith(b"\n") else piece + file.readline()


def _unpacked_zst(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra("zstandard", "zst") from error
    with path.open("rb") as file:
        frame = None
        while packed := file.read(BLOCK // 8):
            while packed:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield frame.decompress(packed)
                except zstandard.ZstdError as error:
                    raise DataError(f"{path} cannot be read: {error}.") from error
                packed = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise DataError(f"{path} cannot be read: it ends in the middle.")


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield pieces that end with a line."""
    rest = b""
    for piece in pieces(path):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
            rest = b""
        rest += piece[cut:]
    if rest:
        yield rest + b"\n"


def _lines(block: bytes, number: int, path: Path) -> Iterator[Line]:
    """Yield the lines that are not empty, split into cells, with their numbers."""
    for place, raw in enumerate(block.split(b"\n")[:-1], number):
        if any(cells := _cells(_decoded(raw, place, path))):
            yield place, cells


def _cells(text: str) -> list[str]:
    # only blanks and tabs part cells: rarer white space may belong to a word
    name, tab, rest = text.strip(" \t\r").partition("\t")
    cells = (rest if tab else name).replace("\t", " ").split(" ")
    return [*([name] if tab else []), *filter(None, cells)]


def _decoded(raw: bytes, number: int, path: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number} cannot be read: it is not UTF-8 ({error.reason})."
        ) from error


def _is_header(begin: list[Line]) -> bool:
    """Return whether the first of two lines is word2vec's "6 200"."""
    first = begin[0][1] if begin else []
    counts = len(first) == 2 and all(cell.strip().isdecimal() for cell in first)
    # it is not if the vectors themselves have one dimension
    return counts and not (len(begin) == 2 and len(begin[1][1]) == 2)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(cells: list[str], path: Path, number: int) -> np.ndarray:
    try:
        # by way of float64: numbers that are too large become infinite without a warning
        with np.errstate(over="ignore"):
            values = np.array(cells, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}.") from error
    if not len(values) or not np.isfinite(values).all():
        what = "no numbers" if not len(values) else "NaN or infinity"
        raise DataError(f"{path}, line {number}: {what} in the vector.")
    return values
