"""Numbers written as text: one pattern for all readers, and the marks and units of a table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from karat.errors import DataError

#: a number in a file: no blanks, underscores, names such as inf, or digits of other scripts
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
BLANKS = " \u00a0\u2009\u202f"
APOSTROPHES = "'\u2019"
#: the thousands marks that go with a decimal mark
THOUSANDS = {".": f",{BLANKS}{APOSTROPHES}", ",": f".{BLANKS}{APOSTROPHES}"}
#: what the marks of a file are called
MARK_NAMES = {
    **{".": "points", ",": "commas"},
    **dict.fromkeys(BLANKS, "blanks"),
    **dict.fromkeys(APOSTROPHES, "apostrophes"),
}
#: cells that mean a missing value in a column of numbers
NO_VALUE = frozenset(("?", "-", "--", "–", "—"))
#: more characters are not a number with a unit
LONGEST = 60
_CURRENCY = r"[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY)(?=[\s\d])"
_BLANK = rf"[\s{BLANKS}]*+"
_CELL = re.compile(
    rf"{_BLANK}([+\-−]?){_BLANK}({_CURRENCY})?{_BLANK}([+\-−]?)"
    rf"([.,]?\d(?:[\d.,{BLANKS}{APOSTROPHES}]*\d)?(?:[eE][+-]?\d+)?)"
    rf"{_BLANK}([%‰$€£¥₹]|[a-zA-Z°µμΩ][^\d.,;:!?()\"'+]{{0,11}})?{_BLANK}",
    re.ASCII,
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+", re.ASCII)
#: distinct cells that are looked at first, and those that are no numbers in a column of numbers
FIRST, MOST_WORDS, WORDS_SHARE = 200, 5, 0.1


def parse_number(text: str, where: str, column: str = "") -> float:
    """Return the finite number in a text, or raise a DataError.

    >>> parse_number("1.5e3", "line 1")
    1500.0
    """
    number = float(text) if NUMBER.fullmatch(text.strip()) else math.inf
    if math.isinf(number):
        what = f' in "{column}"' if column else ""
        raise DataError(f'{where}: "{text}"{what} is not a finite number.')
    return number


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written: the decimal mark, and the marks that may group thousands.

    >>> german = NumberFormat(",")
    >>> german.fits(["1.234,5", "7"]), german.fits(["1.5"]), german.number("1.234,5")
    (True, False, 1234.5)
    """

    decimal: str = "."
    thousands: str = field(default="")

    def __post_init__(self) -> None:
        marks = self.thousands or THOUSANDS.get(self.decimal, "".join(THOUSANDS.values()))
        object.__setattr__(self, "thousands", marks.replace(self.decimal, ""))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        groups = rf"[1-9]\d{{0,2}}([{re.escape(self.thousands)}])\d{{3}}(?:\1\d{{3}})*"
        mark = re.escape(self.decimal)
        whole = rf"(?:{groups}|\d+)(?:{mark}\d+)?|{mark}\d+"
        return re.compile(rf"[+-]?(?:{whole})(?:[eE][+-]?\d+)?", re.ASCII)

    @cached_property
    def _marks(self) -> dict[int, str | None]:
        return str.maketrans({**dict.fromkeys(self.thousands), self.decimal: "."})

    def fits(self, texts: Iterable[str]) -> bool:
        """Return whether all texts are numbers of this format."""
        return all(map(self._pattern.fullmatch, texts))

    def number(self, text: str) -> int | float:
        """Return the number in a text of this format."""
        plain = text.translate(self._marks)
        return int(plain) if plain.lstrip("+-").isdecimal() else float(plain)


POINTS, COMMAS = NumberFormat("."), NumberFormat(",")


@dataclass(frozen=True)
class WrittenNumbers:
    """The numbers in the distinct cells of a text column.

    Attributes
    ----------
    digits
        The number in each cell, without unit and blanks.
    unit
        The unit or currency of all cells; empty if they have none.
    missing
        The cells that mean a missing value.
    problem
        Why the column is better read as text; empty if it is numbers.
    words
        The cells that are not numbers, if these are the problem.
    """

    digits: Mapping[str, str]
    unit: str = ""
    missing: tuple[str, ...] = ()
    problem: str = ""
    words: tuple[str, ...] = ()

    @cached_property
    def formats(self) -> tuple[str, ...]:
        """The decimal marks with which all cells are numbers."""
        both = ((".", POINTS), (",", COMMAS))
        return tuple(mark for mark, form in both if form.fits(self.digits.values()))

    @cached_property
    def decimal(self) -> str:
        """The decimal mark, if only one is possible; otherwise empty."""
        return self.formats[0] if len(self.formats) == 1 else ""

    @cached_property
    def ambiguous(self) -> bool:
        """Whether a comma or a point may be a decimal or a thousands mark."""
        return len(self.formats) == 2 and self.example(",.") != ""

    @property
    def plain(self) -> bool:
        """Whether all cells are written as in a program."""
        return not self.unit and not self.missing and all(map(NUMBER.fullmatch, self.digits))

    def example(self, marks: str = "") -> str:
        """Return the first cell that contains one of the marks, or an empty text."""
        cells = (cell for cell, digits in self.digits.items() if set(marks) & set(digits))
        return next(cells, "") if marks else next(iter(self.digits), "")


def written_numbers(cells: Sequence[str], missing: Iterable[str] = ()) -> WrittenNumbers | None:
    """Return the numbers in distinct cells, or None if the column is plainly text.

    ``missing`` are further cells that mean a missing value.

    >>> found = written_numbers(["65 kg", "7 kg", "?"])
    >>> dict(found.digits), found.unit, found.missing
    ({'65 kg': '65', '7 kg': '7'}, 'kg', ('?',))
    >>> written_numbers(["a", "b", "1"]) is None
    True
    """
    no_value = NO_VALUE.union(missing)
    matches = {cell: _match(cell) for cell in cells[:FIRST]}
    if 2 * sum(map(bool, matches.values())) <= len(matches) - _count(matches, no_value):
        return None
    matches |= {cell: _match(cell) for cell in cells[FIRST:]}
    numbers = {cell: match for cell, match in matches.items() if match}
    others = [cell for cell, match in matches.items() if not match and cell.strip()]
    marks = tuple(cell for cell in others if cell.strip() in no_value)
    words = tuple(cell for cell in others if cell.strip() not in no_value)
    if not numbers or len(words) > min(MOST_WORDS, WORDS_SHARE * len(cells)):
        return None
    digits = {cell: _digits(match) for cell, match in numbers.items()}
    units = Counter(_unit(match) for match in numbers.values())
    if words or len(units) > 1:
        many = len(units) > 3 or (words and len(units) > 1)
        problem = "words" if words else "units"
        named = words or tuple(filter(None, units))
        return (
            None
            if many
            else WrittenNumbers(digits=digits, unit="", missing=marks, problem=problem, words=named)
        )
    return _checked(WrittenNumbers(digits, next(iter(units)), marks))


def _checked(numbers: WrittenNumbers) -> WrittenNumbers | None:
    """Return the numbers, with what is wrong with them; None if they are something else."""
    digits = numbers.digits
    if not numbers.unit and (codes := [c for c, d in digits.items() if _LEADING_ZERO.fullmatch(d)]):
        return WrittenNumbers(
            digits=digits, unit="", missing=numbers.missing, problem="zeros", words=(codes[0],)
        )
    if numbers.formats:
        return numbers
    neither = tuple(c for c, d in digits.items() if not POINTS.fits([d]) and not COMMAS.fits([d]))
    if neither:  # such as 1.2.3: a few among numbers are mistakes, many are something else
        few = len(neither) <= min(MOST_WORDS, WORDS_SHARE * len(digits))
        remaining = {cell: number for cell, number in digits.items() if cell not in neither}
        return (
            WrittenNumbers(
                digits=remaining, unit="", missing=numbers.missing, problem="words", words=neither
            )
            if few
            else None
        )
    points = [cell for cell, number in digits.items() if not COMMAS.fits([number])]
    commas = [cell for cell, number in digits.items() if not POINTS.fits([number])]
    return WrittenNumbers(
        digits=digits,
        unit=numbers.unit,
        missing=numbers.missing,
        problem="marks",
        words=(points[0], commas[0]),
    )


def _count(cells: Iterable[str], wanted: Iterable[str]) -> int:
    return sum(cell.strip() in wanted for cell in cells)


def _match(cell: str) -> re.Match[str] | None:
    if len(cell) > LONGEST:
        return None
    match = _CELL.fullmatch(cell)
    return None if match and match[1] and match[3] else match


def _digits(match: re.Match[str]) -> str:
    sign = (match[1] or match[3]).replace("−", "-")
    return sign + match[4]


def _unit(match: re.Match[str]) -> str:
    """Return the unit of a cell; "day" and "days" are one."""
    unit = ((match[2] or "") + (match[5] or "")).strip()
    return unit.removesuffix("s") if len(unit) > 2 else unit
