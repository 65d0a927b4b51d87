"""Read ARFF files, in the dialects of OpenML and KEEL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.core.numbers import parse_number
from karat.errors import DataError

# A word in quotes, with escapes.
QUOTED = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)")\s*+""")
NAME = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s{]+))\s*(.*)$""")
NUMBERS = ("numeric", "real", "integer")
# KEEL's files also declare features and target; here the dataset definition does.
ROLES = ("@input", "@inputs", "@output", "@outputs")
MISSING = ("?", "", "<null>")


@dataclass(frozen=True)
class Attribute:
    """A column: its name, its type, and the labels of a nominal one."""

    name: str
    type: str
    labels: frozenset[str] = frozenset()


def parse_arff(text: str, path: str) -> pd.DataFrame:
    r"""Return the table of an ARFF text; numbers are floats, everything else is text.

    >>> parse_arff("@relation r\n@attribute 'my x' real\n@data\n1\n?", "r.arff")
       my x
    0   1.0
    1   NaN
    """
    stripped = enumerate(map(str.strip, text.split("\n")), start=1)
    lines = ((number, line) for number, line in stripped if line and not line.startswith("%"))
    attributes = _header(lines, path)
    columns: list[list[str | float | None]] = [[] for _ in attributes]
    for number, line in lines:
        cells = _cells(line, f"{path}, line {number}")
        if len(cells) != len(attributes):
            raise DataError(
                f"{path}, line {number}: {len(cells)} cells for {len(attributes)} attributes."
            )
        for column, attribute, cell in zip(columns, attributes, cells, strict=True):
            column.append(_value(cell, attribute, f"{path}, line {number}"))
    if not columns[0]:
        raise DataError(f"{path} has no rows after @data.")
    return pd.DataFrame(
        {
            attribute.name: pd.Series(column, dtype=float if attribute.type in NUMBERS else object)
            for attribute, column in zip(attributes, columns, strict=True)
        }
    )


def _header(lines: Iterator[tuple[int, str]], path: str) -> list[Attribute]:
    attributes: dict[str, Attribute] = {}
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if attributes:
                return list(attributes.values())
            raise DataError(f"{path}, line {number}: @data before any @attribute.")
        if word == "@attribute":
            attribute = _attribute(line[len(word) :], f"{path}, line {number}")
            if attribute.name in attributes:
                raise DataError(f'{path}, line {number}: duplicate attribute "{attribute.name}".')
            attributes[attribute.name] = attribute
        elif word not in ("@relation", *ROLES):
            raise DataError(f'{path}, line {number}: "{line[:40]}" is not ARFF.')
    raise DataError(f"{path} has no @data: not an ARFF file, or incomplete.")


def _attribute(text: str, where: str) -> Attribute:
    match = NAME.match(text)
    if match is None or not match[4]:
        raise DataError(f"{where}: an attribute needs a name and a type.")
    name, kind = _word(match), match[4].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise DataError(f'{where}: the labels of "{name}" lack the closing brace.')
        labels = _cells(kind[1:-1], where)
        return Attribute(name, "nominal", frozenset(label for label, _ in labels))
    # KEEL adds the range: "real [0.5, 1.5]"
    kind = re.split(r"[\s\[]", kind)[0].lower()
    if kind not in (*NUMBERS, "string", "date"):
        raise DataError(f'{where}: the type "{kind}" of "{name}" is not supported.')
    return Attribute(name, kind)


def _cells(line: str, where: str) -> list[tuple[str, bool]]:
    """Return the cells of a row, and whether each was quoted."""
    if line.startswith("{"):
        raise DataError(f"{where}: sparse ARFF ({{index value, …}}) is not supported.")
    if "'" not in line and '"' not in line:
        return [(cell.strip(), False) for cell in line.split(",")]
    # one pass: a quoted word, or anything up to the next comma
    cells, start = [], 0
    while True:
        match = QUOTED.match(line, start)
        if match and line[match.end() : match.end() + 1] in ("", ","):
            cells.append((_word(match), True))
            end = match.end()
        else:
            comma = line.find(",", start)
            end = comma if comma >= 0 else len(line)
            cells.append((line[start:end].strip(), False))
        if end >= len(line):
            return cells
        start = end + 1


def _word(match: re.Match[str]) -> str:
    quoted = match[1] if match[1] is not None else match[2]
    return match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)


def _value(cell: tuple[str, bool], attribute: Attribute, where: str) -> str | float | None:
    text, quoted = cell
    if text in MISSING and not quoted:
        return np.nan if attribute.type in NUMBERS else None
    if attribute.type in NUMBERS:
        return parse_number(text, where, attribute.name)
    if attribute.labels and text not in attribute.labels:
        raise DataError(f'{where}: "{text}" is not one of the labels of "{attribute.name}".')
    return text
