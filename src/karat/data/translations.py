"""The reader "translations": a gettext file of messages, each to be matched with its original."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from karat.data.frames import read_bytes
from karat.data.load import DataSpec, Files
from karat.data.questions import one_file
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

_LINE = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*(".*")')
_MARKUP = re.compile(r"[%<{]")


@reader("translations")
def read_translations(files: Files, spec: DataSpec) -> Dataset:
    """Return each translation of a ``.po`` file as a query whose answer is the original.

    The options: ``words`` is the least number of words an original must have (1), and ``plain:
    true`` leaves messages out that hold markup or places to be filled, which both sides share. Of
    plurals the singular counts; what is not translated, marked as doubtful, or the same as some
    original is left out.
    """
    spec.check_options("words", "plain")
    least = spec.options.get("words", 1)
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise DefinitionError(f'{spec.name}: "words" is 1 or more, not {least!r}.')
    path = one_file(files, spec)
    plain = bool(spec.options.get("plain"))
    told = [
        (original, translation)
        for original, translation in _messages(path)
        if len(original.split()) >= least and not (plain and _MARKUP.search(original + translation))
    ]
    pairs = pd.DataFrame(told, columns=["original", "translation"]).drop_duplicates()
    pairs = pairs[~pairs["translation"].isin(pairs["original"])]
    if len(pairs) < 2:
        raise DataError(f"{path}: {len(pairs)} messages are translated; two are the least.")
    return Dataset.from_columns(
        pairs, ["translation"], "original", name=spec.name, kind="items", about=spec.about
    )


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield original and translation of every message that has both."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error
    for block in re.split(r"\n\s*\n", text):
        told = _told(block, path)
        original, translation = told.get("msgid", ""), told.get("msgstr", told.get("msgstr[0]", ""))
        if original.strip() and translation.strip():
            yield original.strip(), translation.strip()


def _told(block: str, path: Path) -> dict[str, str]:
    """Return the texts of one message by their keywords; nothing if it is doubtful."""
    told: dict[str, str] = {}
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
            raise DataError(f"{path} is not a gettext file (.po): it has the line {line[:60]!r}.")
        keyword = match[1] or keyword
        told[keyword] = told.get(keyword, "") + _unquoted(match[2], path)
    return told


def _unquoted(text: str, path: Path) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError) as error:
        raise DataError(f"{path} has a broken text: {text[:60]}.") from error
