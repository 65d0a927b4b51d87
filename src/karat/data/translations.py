"""The reader "translations": a gettext file; each translation asks for its original."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from karat.data.frames import read_text
from karat.data.load import DataSpec, Files
from karat.data.questions import one_file
from karat.dataset import Dataset
from karat.errors import DataError
from karat.registry import reader

_LINE = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*(".*")')
_MARKUP = re.compile(r"[%<{]")


@reader("translations")
def read_translations(files: Files, spec: DataSpec) -> Dataset:
    """Return each translation of a ``.po`` file as a query whose target is the original.

    Options: ``words`` is the minimum number of words of an original (1), and ``plain: true`` skips
    messages with markup or placeholders, which both sides share. Of plural forms the singular is
    used. Untranslated and fuzzy messages, and translations equal to any original, are skipped.
    """
    spec.check_options("words", "plain")
    least = spec.integer("words", 1, 1)
    path = one_file(files, spec)
    plain = bool(spec.options.get("plain"))
    messages = [
        (original, translation)
        for original, translation in _messages(path)
        if len(original.split()) >= least and not (plain and _MARKUP.search(original + translation))
    ]
    pairs = pd.DataFrame(messages, columns=["original", "translation"]).drop_duplicates()
    pairs = pairs[~pairs["translation"].isin(pairs["original"])]
    if len(pairs) < 2:
        raise DataError(f"{path}: at least two translated messages are needed, got {len(pairs)}.")
    return Dataset.from_columns(
        pairs, ["translation"], "original", name=spec.name, kind="items", about=spec.about
    )


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield original and translation of every message that has both."""
    for block in re.split(r"\n\s*\n", read_text(path)):
        texts = _message(block, path)
        original = texts.get("msgid", "")
        translation = texts.get("msgstr", texts.get("msgstr[0]", ""))
        if original.strip() and translation.strip():
            yield original.strip(), translation.strip()


def _message(block: str, path: Path) -> dict[str, str]:
    """Return the texts of one message by keyword; none if it is fuzzy."""
    texts: dict[str, str] = {}
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
            raise DataError(f"{path} is not a gettext file (.po): unexpected line {line[:60]!r}.")
        keyword = match[1] or keyword
        texts[keyword] = texts.get(keyword, "") + _unquoted(match[2], path)
    return texts


def _unquoted(text: str, path: Path) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError) as error:
        raise DataError(f"{path} has an invalid string: {text[:60]}.") from error
